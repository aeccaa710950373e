//! Who has the directory open.

use rustix::fs::{FlockOperation, flock};
use std::fmt;
use std::sync::Arc;
use vellum_base::{Result, StorageError};
use vellum_sync::Mutex;

/// Name of the lock file.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// The lock of a directory; dropping it gives the directory free.
#[must_use = "the directory is unlocked when the guard is dropped"]
pub struct LockGuard {
    // Only what their destructors do counts.
    _held: Held,
    _below: Option<Box<LockGuard>>,
}

enum Held {
    /// The lock belongs to the open file description. It is given back, not left to the last descriptor: a process that another thread is
    /// just starting has a copy of it until it runs its program.
    File { file: std::fs::File },
    /// A count in memory, and what this guard added to it.
    Count { lock: Arc<MemoryLock>, share: u32 },
    /// There was nothing to lock.
    Nothing,
}

impl Drop for Held {
    fn drop(&mut self) {
        match self {
            // If it fails the lock ends with the last descriptor.
            Self::File { file } => drop(flock(file, FlockOperation::Unlock)),
            Self::Count { lock, share } => *lock.held.lock() -= *share,
            Self::Nothing => {}
        }
    }
}

impl LockGuard {
    /// A guard of a file that is locked; unlocks it when it is dropped.
    pub(crate) fn of_file(file: std::fs::File) -> Self {
        Self {
            _held: Held::File { file },
            _below: None,
        }
    }

    /// A guard of what cannot be locked: a directory where the file system locks none.
    pub(crate) fn of_nothing() -> Self {
        Self {
            _held: Held::Nothing,
            _below: None,
        }
    }

    /// This guard and that of the directory below, as one.
    pub(crate) fn with(self, below: Self) -> Self {
        Self {
            _below: Some(Box::new(below)),
            ..self
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
    /// Guards of readers, or [`EXCLUSIVE`].
    held: Mutex<u32>,
}

/// What the one guard of an opener counts as.
const EXCLUSIVE: u32 = 1 << 31;

impl MemoryLock {
    pub(crate) fn try_lock(self: &Arc<Self>) -> Result<LockGuard> {
        self.add(EXCLUSIVE, 0)
    }

    pub(crate) fn try_lock_shared(self: &Arc<Self>) -> Result<LockGuard> {
        self.add(1, EXCLUSIVE - 1)
    }

    /// Takes a share if at most `others` is held.
    fn add(self: &Arc<Self>, share: u32, others: u32) -> Result<LockGuard> {
        let mut held = self.held.lock();
        if *held > others {
            return Err(StorageError::Locked {
                pid: std::process::id(),
            });
        }
        *held += share;
        Ok(LockGuard {
            _held: Held::Count {
                lock: self.clone(),
                share,
            },
            _below: None,
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Symptom: a database that had just been closed was "open in process …". Cause: another thread of the process started a child meanwhile, which
    /// has a copy of every descriptor until it runs its program, and the lock was left to the last of them. Guard: it is given back.
    #[test]
    fn regress_copies_of_the_descriptor_do_not_hold_the_lock() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join(LOCK_NAME);
        let locked = || {
            let file = std::fs::File::create(&path).expect("a file");
            flock(&file, FlockOperation::NonBlockingLockExclusive).map(|()| file)
        };
        let file = locked().expect("nobody has it");
        let copy = file.try_clone().expect("a copy");
        let guard = LockGuard::of_file(file);
        assert!(locked().is_err(), "it is held");
        drop(guard);
        assert!(locked().is_ok(), "it is given back");
        drop(copy);
    }
}
