//! Ctrl-C while a statement runs: it is the statement that ends, with 57014, not the shell.
//!
//! Not here: Ctrl-C while something is typed, which the terminal then gives as a key.

use signal_hook::consts::SIGINT;
use signal_hook::iterator::{Handle, Signals};
use signal_hook::{SigId, flag, low_level};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use vellum_sql::CancelHandle;

/// Takes SIGINT over from the system, which would end the process, as long as it lives.
#[derive(Debug)]
pub struct Interrupts {
    /// Whether one has come. Relaxed: it carries nothing but itself.
    come: Arc<AtomicBool>,
    /// What sets it, before the thread that cancels has woken.
    setter: SigId,
    handle: Handle,
}

impl Interrupts {
    /// From now on a signal cancels what a session runs.
    ///
    /// # Errors
    /// If the system gives no signals, or no thread for them.
    pub fn of(session: CancelHandle) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT])?;
        let come = Arc::new(AtomicBool::new(false));
        let setter = flag::register(SIGINT, come.clone())?;
        let handle = signals.handle();
        thread::Builder::new()
            .name("vellum-signals".into())
            .spawn(move || {
                for _ in signals.forever() {
                    session.cancel();
                }
            })?;
        Ok(Self {
            come,
            setter,
            handle,
        })
    }

    /// Whether one has come since they were forgotten.
    pub fn come(&self) -> bool {
        self.come.load(Ordering::Relaxed)
    }

    /// Forgets those that have come; true if there were any.
    pub fn forget(&self) -> bool {
        self.come.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.handle.close();
        low_level::unregister(self.setter);
    }
}
