//! Errors of the storage layers. `vellum::Error` sorts them into the families that a user acts on.

use crate::ids::PageId;
use std::sync::Arc;

/// Result of a storage operation.
pub type Result<T> = std::result::Result<T, StorageError>;

/// What can go wrong below the transaction layer.
///
/// Cheap to clone, because one failed flush is reported to everybody who waits for it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system refused a call. Nothing half-done is visible to the caller.
    #[error("{action} of {file} failed: {source}")]
    Io {
        /// What was tried: "read", "write", "fsync", …
        action: &'static str,
        /// The file's name inside the database directory.
        file: Arc<str>,
        /// The operating system's error.
        source: Arc<std::io::Error>,
    },
    /// The file system is full (or a configured size limit is reached).
    #[error("out of space in {file}")]
    OutOfSpace {
        /// The file's name inside the database directory.
        file: Arc<str>,
    },
    /// Bytes that were read are not what was written.
    #[error("corruption in {file}{}: {what} (expected {expected}, found {found})", at_page(*page))]
    Corruption {
        /// The file's name inside the database directory.
        file: Arc<str>,
        /// The page, for the data file.
        page: Option<PageId>,
        /// Which check failed.
        what: &'static str,
        /// What should have been there.
        expected: u64,
        /// What was there.
        found: u64,
    },
    /// The directory is not a Vellum database, or one of a version that this build cannot read.
    #[error("foreign format in {file}: {what}")]
    ForeignFormat {
        /// The file's name inside the database directory.
        file: Arc<str>,
        /// What was found instead.
        what: String,
    },
    /// Another process has the database open.
    #[error("database is locked by process {pid}")]
    Locked {
        /// Process id of the holder, zero where it could not be read.
        pid: u32,
    },
    /// An fsync failed earlier, so that what is durable is unknown, or a thread of the engine panicked: nothing is written any more.
    #[error("database is poisoned: an earlier fsync failed, or a thread of it panicked")]
    Poisoned,
    /// A budget of memory is used up (buffer pool frames that cannot be evicted, version space).
    #[error("memory limit reached: {what}")]
    MemoryLimit {
        /// Which budget.
        what: &'static str,
    },
}

fn at_page(page: Option<PageId>) -> String {
    page.map_or_else(String::new, |p| format!(", page {p}"))
}

impl StorageError {
    /// Wraps an operating-system error; a full disk, a quota, and a limit of a file's size become
    /// [`StorageError::OutOfSpace`].
    pub fn io(action: &'static str, file: &Arc<str>, source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::StorageFull
            | std::io::ErrorKind::QuotaExceeded
            | std::io::ErrorKind::FileTooLarge => Self::OutOfSpace { file: file.clone() },
            _ => Self::Io {
                action,
                file: file.clone(),
                source: Arc::new(source),
            },
        }
    }
}
