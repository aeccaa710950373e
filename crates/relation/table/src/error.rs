//! Errors of operations on tables.

use std::sync::Arc;
use vellum_base::StorageError;
use vellum_txn::TransactionError;
use vellum_version::VersionError;

/// Result of an operation on a table.
pub type Result<T> = std::result::Result<T, TableError>;

/// What can go wrong with one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TableError {
    /// First writer wins. Nothing is changed; whether the transaction can go on is its isolation's business.
    #[error("conflict in {table}")]
    Conflict {
        /// Table or index.
        table: Arc<str>,
    },
    /// The key is there already.
    #[error("key exists already in {table}")]
    KeyExists {
        /// Table or unique index.
        table: Arc<str>,
    },
    /// A key (of a table or an index) is too long.
    #[error("key of {length} bytes, at most {limit}")]
    KeyTooLong {
        /// Its length.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A value is too long.
    #[error("value of {length} bytes, at most {limit}")]
    ValueTooLong {
        /// Its length.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A range of an update lies outside the value.
    #[error("range {start}..{end} of a value of {length} bytes")]
    RangeOutsideValue {
        /// First byte.
        start: usize,
        /// One past the last.
        end: usize,
        /// Length of the value.
        length: usize,
    },
    /// User code that was handed a value rolled back what had made it, its table or an index of that.
    #[error("what the value was read of was rolled back meanwhile")]
    ValueGone,
    /// User code that was to change a value changed the table or the row itself, in the same transaction.
    #[error("{what}")]
    ChangedBeneath {
        /// What it changed.
        what: &'static str,
    },
    /// An operation failed, and so did undoing what it had done until then. The transaction can only be rolled
    /// back.
    #[error("a failed operation could not be undone: {0}")]
    NotUndone(StorageError),
    /// Everything else.
    #[error(transparent)]
    Version(VersionError),
}

impl TableError {
    /// Names the table that an error is about.
    pub fn of(error: VersionError, table: &Arc<str>) -> Self {
        match error {
            VersionError::Conflict => Self::Conflict {
                table: table.clone(),
            },
            VersionError::KeyExists => Self::KeyExists {
                table: table.clone(),
            },
            other => Self::Version(other),
        }
    }
}

impl From<VersionError> for TableError {
    fn from(error: VersionError) -> Self {
        Self::Version(error)
    }
}

impl From<TransactionError> for TableError {
    fn from(error: TransactionError) -> Self {
        Self::Version(error.into())
    }
}

impl From<StorageError> for TableError {
    fn from(error: StorageError) -> Self {
        Self::Version(error.into())
    }
}
