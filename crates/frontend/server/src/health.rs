//! Looks whether the database does what it should by itself, and tells the log what changes: no client's statement would.
//!
//! Concurrency: one thread, which looks once a second.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use vellum::{BackgroundWork, Database, Health};

/// How long a change may stay untold.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread; dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Looks at a database.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(database: Database) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("vellum-health".into())
            .spawn(move || {
                let mut told = Told::default();
                while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                    told.look(&database.health());
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// What the log was told of last.
#[derive(Debug, Default)]
struct Told {
    poisoned: bool,
    failing: Vec<BackgroundWork>,
}

impl Told {
    fn look(&mut self, health: &Health) {
        for (work, error) in &health.failures {
            if !self.failing.contains(work) {
                tracing::error!(work = work.name(), %error, "work in the background fails");
            }
        }
        let failing: Vec<_> = health.failures.iter().map(|(work, _)| *work).collect();
        for work in self.failing.iter().filter(|work| !failing.contains(work)) {
            tracing::info!(work = work.name(), "work in the background succeeds again");
        }
        self.failing = failing;
        if health.poisoned && !self.poisoned {
            tracing::error!(
                "the database takes no writes any more: {}; start the server anew",
                reason(health)
            );
        }
        self.poisoned = health.poisoned;
    }
}

/// Why nothing is written any more.
pub fn reason(health: &Health) -> String {
    let poisoned = vellum::Error::Poisoned.to_string();
    match health.failures.first() {
        Some((work, error)) => format!("{poisoned} ({}: {error})", work.name()),
        None => poisoned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::rules::Rules;
    use crate::server::Server;
    use crate::settings::Settings;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;
    use vellum_io::{Call, Fault, SimulatedDirectory};

    /// What the log of a test says.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(work: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_change_is_told_once() {
        let full = || vellum::Error::OutOfSpace {
            file: "data".into(),
        };
        let mut health = Health::default();
        health.failures = vec![(BackgroundWork::Checkpoint, full())];
        let mut told = Told::default();
        let text = logged(|| {
            told.look(&health);
            told.look(&health);
        });
        assert_eq!(text.matches("ERROR").count(), 1, "{text}");
        assert!(text.contains("work=\"checkpoint\"") && text.contains("out of space in data"));
        health.poisoned = true;
        health.failures.clear();
        let text = logged(|| {
            told.look(&health);
            told.look(&health);
        });
        assert_eq!(text.matches("ERROR").count(), 1, "{text}");
        assert!(text.contains("succeeds again") && text.contains("takes no writes any more"));
    }

    fn get(server: &Server, path: &str) -> String {
        let mut stream = TcpStream::connect(server.http_address().unwrap()).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_server_whose_disk_has_failed_is_not_healthy() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            data: folder.path().into(),
            listen: vec!["127.0.0.1:0".into()],
            http: "127.0.0.1:0".into(),
            unix_socket: false,
            pool_mib: 16,
            log_mib_max: 256,
            ..Settings::default()
        };
        let disk = Arc::new(SimulatedDirectory::new());
        let config = settings.engine().unwrap();
        let engine = Database::open_directory(disk.clone(), config).unwrap();
        let rules = Rules::standard(false);
        let server = Server::serve(settings, rules, None, engine.clone()).unwrap();
        assert!(get(&server, "/health").starts_with("HTTP/1.1 200"));
        assert!(get(&server, "/metrics").contains("\nvellum_poisoned 0\n"));
        disk.fail(Fault::nth(Call::Sync, 0).on("log/"));
        let written = engine.retry(|transaction| transaction.create_table("t").map(drop));
        assert!(written.is_err());
        let health = get(&server, "/health");
        assert!(health.starts_with("HTTP/1.1 503"), "{health}");
        assert!(health.contains("an earlier fsync failed"), "{health}");
        let metrics = get(&server, "/metrics");
        assert!(metrics.contains("\nvellum_poisoned 1\n"), "{metrics}");
        assert!(metrics.contains("\nvellum_background_failures{work=\"evict\"} 0\n"));
        let begun = Instant::now();
        assert!(server.stop().is_err());
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
