//! Errors of operations on versioned rows.

use vellum_base::{PageId, StorageError};
use vellum_txn::TransactionError;

/// Result of an operation on versioned rows.
pub type Result<T> = std::result::Result<T, VersionError>;

/// What can go wrong with one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum VersionError {
    /// The newest version of the row is not visible to the writer: first writer wins.
    #[error("the row was changed by a concurrent transaction")]
    Conflict,
    /// An insert found a live row.
    #[error("the key exists already")]
    KeyExists,
    /// The transaction cannot go on.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    /// Pages or log failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A row, delta or work-list entry whose bytes cannot have been written by this program.
pub(crate) fn damaged(what: &'static str, tree: PageId) -> StorageError {
    StorageError::Corruption {
        file: "data".into(),
        page: Some(tree),
        what,
        expected: 0,
        found: 0,
    }
}
