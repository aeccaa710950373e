//! Signals that stop a server.
//!
//! States: starting (SIGTERM and SIGINT end the process at once: a recovery may be cut anywhere, and nothing else was begun) → serving, from
//! [`StopSignals::serving`] on (the first stops the server, the second ends what still runs, the third the process). SIGHUP, by which a terminal that is closed ends
//! what was started in it, and which others take for "read the settings again", stops nothing.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

/// SIGTERM and SIGINT, from now on.
#[derive(Debug)]
pub struct StopSignals {
    came: Receiver<i32>,
    serving: Arc<AtomicBool>,
    handle: Handle,
}

impl StopSignals {
    /// Takes the signals over from the system, which would end the process.
    ///
    /// # Errors
    /// If the system does not give them, or no thread.
    pub fn new() -> io::Result<Self> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let (tell, came) = mpsc::channel();
        let serving = Arc::new(AtomicBool::new(false));
        let this = Self {
            came,
            serving: serving.clone(),
            handle: signals.handle(),
        };
        thread::Builder::new()
            .name("vellum-signals".into())
            .spawn(move || {
                for signal in signals.forever() {
                    if signal == SIGHUP {
                        tracing::info!("SIGHUP does nothing: settings are read at the start");
                    } else if serving.load(Ordering::SeqCst) {
                        // Nobody listens any more once the server has stopped.
                        let _ = tell.send(signal);
                    } else {
                        tracing::info!(signal, "stopped before anything was served");
                        low_level::exit(0);
                    }
                }
            })?;
        Ok(this)
    }

    /// The server serves: whoever stops it lets it end in good order.
    pub fn serving(&self) {
        self.serving.store(true, Ordering::SeqCst);
    }

    /// Waits for the next; `None` once none can come any more.
    pub(crate) fn wait(&self) -> Option<i32> {
        self.serving();
        self.came.recv().ok()
    }

    /// Does something at the next signal, beside the caller, and ends the process at the one behind it. Without a thread it does neither.
    pub(crate) fn beside(self, at_next: impl FnOnce() + Send + 'static) -> Impatient {
        let handle = self.handle.clone();
        let spawned = thread::Builder::new()
            .name("vellum-impatient".into())
            .spawn(move || {
                if self.wait().is_some() {
                    at_next();
                }
                if let Some(signal) = self.wait() {
                    tracing::error!(
                        signal,
                        "ended before the database was closed: the next start recovers"
                    );
                    low_level::exit(1);
                }
            });
        if let Err(error) = &spawned {
            tracing::warn!(%error, "further signals are not heard");
        }
        Impatient {
            handle,
            thread: spawned.ok(),
        }
    }
}

/// Hears further signals until it is dropped.
#[derive(Debug)]
pub(crate) struct Impatient {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Impatient {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported when it happened.
            let _ = thread.join();
        }
    }
}
