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

impl VersionError {
    /// [`concerns_one`] of a storage error; others do not.
    pub(crate) fn concerns_one(&self) -> bool {
        matches!(self, Self::Storage(error) if concerns_one(error))
    }
}

/// True if it says something about what was looked at, say a page that cannot be read: others may be better off. (Where the log is full,
/// or has failed, or there is no memory, nobody is.)
pub fn concerns_one(error: &StorageError) -> bool {
    !matches!(
        error,
        StorageError::OutOfSpace { .. } | StorageError::Poisoned | StorageError::MemoryLimit { .. }
    )
}

/// The first error of several things that are done one after another, whatever becomes of those before.
#[derive(Debug, Default)]
pub(crate) struct FirstError(Option<VersionError>);

impl FirstError {
    /// Remembers an error, if there was none before.
    pub fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.get_or_insert(error);
                None
            }
        }
    }

    /// As [`FirstError::note`], of what others may be better off than.
    ///
    /// # Errors
    /// Those that do not concern one.
    pub fn note_of_one<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(error) if !error.concerns_one() => Err(error),
            other => Ok(self.note(other)),
        }
    }

    /// # Errors
    /// What was noted, if that is a lack of memory: whoever asks next waits for it as long.
    pub fn go_on(&self) -> Result<()> {
        match &self.0 {
            Some(error @ VersionError::Storage(StorageError::MemoryLimit { .. })) => {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    /// The error, if there was one.
    pub fn into_result(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
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
