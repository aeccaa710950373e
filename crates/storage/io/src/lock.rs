//! Who has the directory open.

use std::fmt;
use std::sync::Arc;
use vellum_base::{Result, StorageError};
use vellum_sync::Mutex;

/// Name of the lock file.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// The lock of a directory; dropping it gives the directory free.
#[must_use = "the directory is unlocked when the guard is dropped"]
pub struct LockGuard {
    // Only what its destructor does counts.
    _held: Held,
}

enum Held {
    /// The lock belongs to the open file description and ends with it.
    File { _file: std::fs::File },
    /// A flag in memory.
    Flag { flag: Arc<MemoryLock> },
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Self::Flag { flag } = self {
            *flag.held.lock() = false;
        }
    }
}

impl LockGuard {
    /// A guard that closes the file when it is dropped.
    pub(crate) fn of_file(file: std::fs::File) -> Self {
        Self {
            _held: Held::File { _file: file },
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockGuard")
    }
}

/// The lock of a directory that lives in this process.
#[derive(Debug, Default)]
pub(crate) struct MemoryLock {
    held: Mutex<bool>,
}

impl MemoryLock {
    pub(crate) fn try_lock(self: &Arc<Self>) -> Result<LockGuard> {
        let mut held = self.held.lock();
        if *held {
            return Err(StorageError::Locked {
                pid: std::process::id(),
            });
        }
        *held = true;
        Ok(LockGuard {
            _held: Held::Flag { flag: self.clone() },
        })
    }
}
