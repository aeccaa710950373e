//! After a failed sync nobody knows what is durable.
//!
//! The kernel reports a write-back error once, marks the pages clean and answers the next fsync
//! with success ("fsyncgate", 2018). So the first failure ends all changes: it is reported to the
//! caller, kept in a flag, and every later change is refused before it reaches the system.
//!
//! States: sound -> poisoned ([`Poison::after_sync`]); never back. A restart reads what is really
//! there and begins sound.
//!
//! Concurrency: one relaxed flag. It protects no other memory; whoever learned of the failure from
//! another thread synchronized with it by that, and then reads the flag set.

use std::io;
use std::sync::Arc;
use vellum_base::{Result, StorageError};
use vellum_sync::atomic::{AtomicBool, Ordering};

/// The flag that all files of one directory share.
#[derive(Debug, Default)]
pub struct Poison {
    poisoned: AtomicBool,
}

impl Poison {
    /// A sound directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// True once a sync failed.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    /// To be asked before every change.
    ///
    /// # Errors
    /// `Poisoned` once a sync failed.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() {
            Err(StorageError::Poisoned)
        } else {
            Ok(())
        }
    }

    /// Passes on the result of a sync that was really done, and remembers a failure. Whatever the
    /// reason was, full disk and interruption included: none says what is durable.
    ///
    /// # Errors
    /// The failure, as `Io`.
    pub fn after_sync(&self, file: &Arc<str>, result: io::Result<()>) -> Result<()> {
        result.map_err(|source| {
            self.poisoned.store(true, Ordering::Relaxed);
            StorageError::Io {
                action: "fsync",
                file: file.clone(),
                source: Arc::new(source),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_failure_poisons_for_good_and_is_reported_as_io() {
        let poison = Poison::new();
        let file = Arc::from("data");
        assert!(poison.after_sync(&file, Ok(())).is_ok());
        assert!(poison.check().is_ok());
        // A full disk at sync is no OutOfSpace: that would tell the writer to try again.
        let error = poison
            .after_sync(&file, Err(io::ErrorKind::StorageFull.into()))
            .unwrap_err();
        assert!(matches!(
            error,
            StorageError::Io {
                action: "fsync",
                ..
            }
        ));
        assert!(poison.after_sync(&file, Ok(())).is_ok());
        assert!(matches!(poison.check(), Err(StorageError::Poisoned)));
    }
}
