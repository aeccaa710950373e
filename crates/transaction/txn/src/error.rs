//! Errors of the transaction layer. `vellum::Error` sorts them into the families that a user acts
//! on.

use std::time::Duration;
use vellum_base::{StorageError, Timestamp};

/// What can go wrong with a transaction as such.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransactionError {
    /// Every slot was taken for as long as the caller was ready to wait. Nothing was begun.
    #[error("no free transaction slot: {taken} of {slots_max} taken after waiting {waited:?}")]
    SlotsExhausted {
        /// Slots in use when the wait ended.
        taken: usize,
        /// Slots that are configured.
        slots_max: u16,
        /// How long the caller was ready to wait.
        waited: Duration,
    },
    /// A write in a transaction that was begun read-only. The transaction stays usable.
    #[error("transaction is read-only")]
    ReadOnly,
    /// Its snapshots were withdrawn, because old versions take more space than they may. It can only be ended; what it read
    /// was right.
    #[error("snapshot too old: it was withdrawn to free the space of old versions")]
    SnapshotTooOld,
    /// The transaction used all 2^32 command ids; it can only be ended.
    #[error("transaction has no command ids left")]
    TooManyCommands,
    /// The log refused (I/O, space, poisoned).
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a commit did not succeed, and what that leaves behind.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The commit did not happen. The transaction is still open and must be rolled back.
    #[error("not committed: {error}")]
    NotCommitted {
        /// The transaction, to be rolled back.
        transaction: Box<crate::Transaction>,
        /// What went wrong.
        error: TransactionError,
    },
    /// The commit happened and others may have seen it, but whether it is durable is unknown. It
    /// becomes durable with the next flush that succeeds; none does, if the database is poisoned.
    #[error("committed at {commit_ts}, but not known to be durable: {error}")]
    NotHardened {
        /// The commit timestamp (for a read-only transaction, its newest snapshot).
        commit_ts: Timestamp,
        /// What went wrong.
        error: StorageError,
    },
}
