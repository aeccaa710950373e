//! The errors of the embedded API, sorted into the families that a caller acts on.
//!
//! A variant exists only if something can provoke it; each is provoked by a test.

use std::path::PathBuf;
use std::sync::Arc;
use vellum_base::{PageId, StorageError};

/// Result of an operation on a database.
pub type Result<T> = std::result::Result<T, Error>;

/// What an error is about, and so what to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Another transaction was in the way: run the transaction again.
    Retry,
    /// The call asked for something that cannot be: the transaction stays usable.
    Usage,
    /// Memory, disk space or a size limit ran out: the operation was undone, the transaction stays usable.
    Resource,
    /// Bytes on disk are not what was written: other tables go on.
    Corrupt,
    /// The operating system failed.
    Io,
}

/// Every way in which an operation can fail.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A row was written by a transaction that this one does not see (first writer wins).
    /// The operation is undone, and the transaction can only be rolled back; [`Database::retry`](crate::Database::retry) runs it
    /// again. Under [`Isolation::Statement`](crate::Isolation) the transaction stays usable:
    /// [`Transaction::restart_statement`](crate::Transaction::restart_statement) runs its statement again.
    #[error("conflict: the row was changed by a concurrent transaction")]
    Conflict,
    /// The transaction's snapshot was withdrawn, because old versions took more space than
    /// [`Config::version_bytes_max`](crate::Config::version_bytes_max). What it has read until now was right. It can only be
    /// rolled back; [`Database::retry`](crate::Database::retry) runs it again.
    #[error("snapshot too old: it was withdrawn to free the space of old versions")]
    SnapshotTooOld,
    /// A wait took longer than its limit. The transaction (where there is one) stays usable.
    #[error("timeout while waiting for {what}")]
    Timeout {
        /// What was waited for, with figures.
        what: String,
    },
    /// An insert found its key, or a unique index found its columns.
    #[error("key exists already in {table:?}")]
    KeyExists {
        /// The table or index.
        table: Arc<str>,
    },
    /// The key is longer than an eighth of a page, or the entry of an index than [`KeyDescription`](crate::KeyDescription) says.
    #[error("key of {length} bytes is too long (at most {limit})")]
    KeyTooLong {
        /// Its length in bytes; of an entry of which the end is not looked at once it is too long: at least.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// The value is longer than 1 GiB.
    #[error("value of {length} bytes is too long (at most {limit})")]
    ValueTooLong {
        /// Its length in bytes.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A byte range of an update lies outside the value.
    #[error("range {start}..{end} lies outside a value of {length} bytes")]
    RangeOutsideValue {
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
        /// Length of the value.
        length: usize,
    },
    /// A write in a transaction that was begun read-only.
    #[error("write in a read-only transaction")]
    ReadOnly,
    /// No table of this name is visible to the transaction (or the handle's table was dropped).
    #[error("no table {name:?}")]
    NoSuchTable {
        /// The name that was asked for.
        name: String,
    },
    /// A table or index of this name exists.
    #[error("table {name:?} exists already")]
    TableExists {
        /// The name.
        name: String,
    },
    /// A name, key description or setting that cannot be used.
    #[error("invalid argument: {what}")]
    InvalidArgument {
        /// What is wrong with it.
        what: String,
    },
    /// The transaction failed with [`Error::Conflict`] earlier, or a savepoint is used after its end.
    #[error("the transaction is over: {what}")]
    TransactionOver {
        /// Why.
        what: &'static str,
    },
    /// The file system is full. Readers go on; writers go on once space is there.
    #[error("out of space in {file}")]
    OutOfSpace {
        /// File inside the database directory.
        file: Arc<str>,
    },
    /// Old versions take more space than they may, and the database is told to refuse writers then
    /// ([`VersionPolicy::RefuseWriter`](crate::VersionPolicy::RefuseWriter)). Writers go on once those who keep them have ended;
    /// [`Database::holders`](crate::Database::holders) names them.
    #[error("old versions take {bytes} bytes, at most {limit} are allowed: {}", kept_by(*own))]
    VersionSpace {
        /// Bytes that they took when the writer was refused.
        bytes: u64,
        /// [`Config::version_bytes_max`](crate::Config::version_bytes_max).
        limit: u64,
        /// More than half is what this transaction has changed itself, and needs to be able to roll back: it has to end. Else old snapshots, or other
        /// transactions, keep them.
        own: bool,
    },
    /// A memory budget is used up, or the system has no memory (or addresses) for a large value.
    #[error("memory limit reached: {what}")]
    MemoryLimit {
        /// Which budget, or for what.
        what: &'static str,
    },
    /// Another process (or another `Database` of this one) has the directory open.
    #[error("database {path:?} is open in process {pid}")]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The holder's process id; zero where it could not be read.
        pid: u32,
    },
    /// The directory is no Vellum database, or one of another format version.
    #[error("{file} is not of a format that this version reads: {what}")]
    ForeignFormat {
        /// File inside the database directory.
        file: Arc<str>,
        /// What was found.
        what: String,
    },
    /// A check of bytes from disk failed.
    #[error("corruption in {file}{}: {what} (expected {expected}, found {found})", page.map_or_else(String::new, |p| format!(", page {p}")))]
    Corruption {
        /// File inside the database directory.
        file: Arc<str>,
        /// The page, for the data file.
        page: Option<PageId>,
        /// Which check.
        what: &'static str,
        /// What should have been there.
        expected: u64,
        /// What was there.
        found: u64,
    },
    /// The operating system refused a call.
    #[error("{action} of {file} failed: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// File inside the database directory.
        file: Arc<str>,
        /// The operating system's error.
        source: Arc<std::io::Error>,
    },
    /// The transaction is committed, and others may have seen it, but the log could not be written or flushed since: whether it outlives a crash is not
    /// known. It is durable once the log can be written again (never by this process, if the database is poisoned). Whoever runs it again may
    /// have it twice.
    #[error("committed, but not known to be durable: {cause}")]
    NotDurable {
        /// Why the log was not written: [`Error::Io`], [`Error::OutOfSpace`] or [`Error::Poisoned`].
        cause: Box<Error>,
    },
    /// An fsync failed earlier, or a thread of the database panicked. What was acknowledged before is safe; nothing is written any more.
    #[error("database is poisoned: an earlier fsync failed, or a thread of it panicked; reopen it")]
    Poisoned,
}

/// Who keeps old versions.
fn kept_by(own: bool) -> &'static str {
    match own {
        true => "this transaction's own changes are most of that",
        false => "an older snapshot keeps them, or another transaction's changes",
    }
}

impl Error {
    /// The family that the error belongs to.
    pub fn family(&self) -> Family {
        match self {
            Self::Conflict | Self::SnapshotTooOld | Self::Timeout { .. } => Family::Retry,
            Self::KeyExists { .. }
            | Self::KeyTooLong { .. }
            | Self::ValueTooLong { .. }
            | Self::RangeOutsideValue { .. }
            | Self::ReadOnly
            | Self::NoSuchTable { .. }
            | Self::TableExists { .. }
            | Self::InvalidArgument { .. }
            | Self::TransactionOver { .. } => Family::Usage,
            Self::OutOfSpace { .. } | Self::VersionSpace { .. } | Self::MemoryLimit { .. } => {
                Family::Resource
            }
            Self::Locked { .. } | Self::ForeignFormat { .. } | Self::Corruption { .. } => {
                Family::Corrupt
            }
            Self::Io { .. } | Self::NotDurable { .. } | Self::Poisoned => Family::Io,
        }
    }

    /// Of a commit whose flush failed.
    pub(crate) fn not_durable(cause: Self) -> Self {
        Self::NotDurable {
            cause: Box::new(cause),
        }
    }

    /// True if running the whole transaction again may succeed.
    pub fn is_retryable(&self) -> bool {
        self.family() == Family::Retry
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io {
                action,
                file,
                source,
            } => Self::Io {
                action,
                file,
                source,
            },
            StorageError::OutOfSpace { file } => Self::OutOfSpace { file },
            StorageError::Corruption {
                file,
                page,
                what,
                expected,
                found,
            } => Self::Corruption {
                file,
                page,
                what,
                expected,
                found,
            },
            StorageError::ForeignFormat { file, what } => Self::ForeignFormat { file, what },
            StorageError::Locked { pid } => Self::Locked {
                path: PathBuf::new(),
                pid,
            },
            StorageError::Poisoned => Self::Poisoned,
            StorageError::MemoryLimit { what } => Self::MemoryLimit { what },
        }
    }
}
