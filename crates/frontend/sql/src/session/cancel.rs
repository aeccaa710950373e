//! Cancelling a statement from another thread.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::fmt;
use std::sync::{Arc, OnceLock};
use vellum_sync::atomic::{AtomicU8, Ordering};

const NONE: u8 = 0;
const CANCELLED: u8 = 1;
const SHUTDOWN: u8 = 2;

/// Cancels what its session runs. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle {
    shared: Arc<Asked>,
}

#[derive(Default)]
struct Asked {
    what: AtomicU8,
    /// Wakes whoever waits for the session's client, as the session is to end.
    wake: OnceLock<Wake>,
    /// The same, as its statement is to end.
    nudge: OnceLock<Wake>,
}

type Wake = Box<dyn Fn() + Send + Sync>;

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(&self.what).finish()
    }
}

impl CancelHandle {
    /// Asks the statement that runs now to end with `57014`. Does nothing if none runs: the next one forgets it.
    pub fn cancel(&self) {
        // A shutdown is not taken back. Relaxed: it carries nothing but itself.
        let asked = self.shared.what.compare_exchange(
            NONE,
            CANCELLED,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if let (Ok(_), Some(nudge)) = (asked, self.shared.nudge.get()) {
            nudge();
        }
    }

    /// Says how whoever waits for the session's client is woken when its statement is to end, which may be a COPY that waits for data; the first to say so
    /// is heard.
    pub fn when_cancelled(&self, wake: Box<dyn Fn() + Send + Sync>) {
        let _ = self.shared.nudge.set(wake);
    }

    /// Asks the session to end with `57P01`: the statement that runs now, and every later one.
    pub fn shut_down(&self) {
        // Release: with the acquire in `is_shut_down`, by whoever is woken below.
        self.shared.what.store(SHUTDOWN, Ordering::Release);
        if let Some(wake) = self.shared.wake.get() {
            wake();
        }
    }

    /// Says how whoever waits for the session's client is woken when the session is to end; the first to say so is heard.
    pub fn when_shut_down(&self, wake: Box<dyn Fn() + Send + Sync>) {
        let _ = self.shared.wake.set(wake);
    }

    /// Whether the session was asked to end.
    pub fn is_shut_down(&self) -> bool {
        self.shared.what.load(Ordering::Acquire) == SHUTDOWN
    }

    /// A statement starts: what was asked before it is not about it.
    pub(crate) fn start(&self) {
        let _ = self.shared.what.compare_exchange(
            CANCELLED,
            NONE,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// # Errors
    /// `57014` or `57P01` if somebody asked.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.shared.what.load(Ordering::Relaxed) {
            NONE => Ok(()),
            asked => Err(refused(asked)),
        }
    }
}

#[cold]
fn refused(asked: u8) -> SqlError {
    if asked == SHUTDOWN {
        let text = "terminating connection due to administrator command";
        return SqlError::new(sqlstate::ADMIN_SHUTDOWN, text).fatal();
    }
    SqlError::new(
        sqlstate::QUERY_CANCELED,
        "canceling statement due to user request",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_is_for_the_statement_that_runs() {
        let handle = CancelHandle::default();
        handle.cancel();
        assert!(handle.check().is_err());
        handle.start();
        assert!(handle.check().is_ok(), "the next one forgets it");
        handle.shut_down();
        handle.cancel();
        handle.start();
        let error = handle.check().unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate::ADMIN_SHUTDOWN);
    }
}
