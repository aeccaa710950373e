//! What an engine leaves to whoever embeds it to do behind the commits: its log is handed to the disk every so often.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use vellum_workload::engine::Result;

/// How long a commit that waits for nothing stays in the process's memory: as long as in Vellum.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// A thread that does something every [`INTERVAL`], ended with this.
#[derive(Debug)]
pub(crate) struct Background {
    /// Its end is the thread's.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Does `work` until it fails: an engine whose log could not be written refuses the commits behind it itself.
    pub(crate) fn new(mut work: impl FnMut() -> Result<()> + Send + 'static) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if work().is_err() {
                    return;
                }
            }
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // What it panicked with stands on standard error.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use vellum_workload::engine::EngineError;

    #[test]
    fn work_is_done_again_until_it_fails_or_is_let_go() {
        let (done, told) = channel();
        let held = Arc::new(());
        let of_thread = held.clone();
        let background = Background::new(move || {
            let _of_thread = &of_thread;
            done.send(()).map_err(EngineError::failed)
        });
        for _ in 0..3 {
            told.recv().expect("it is done again");
        }
        drop(background);
        assert_eq!(Arc::strong_count(&held), 1, "the thread is gone");
        let failing = Background::new(|| Err(EngineError::failed("no disk")));
        drop(failing);
    }
}
