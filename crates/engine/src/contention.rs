//! Who is in whose way: what a layer above that waits for transactions, instead of giving up, goes by.
//!
//! A write never waits (first writer wins). After [`Error::Conflict`](crate::Error::Conflict) [`Transaction::take_blocker`] names the transaction whose
//! uncommitted version was met; [`Database::is_running`] tells whether it has ended since. Waiting, its order, and finding
//! circles in it are the caller's, who must look again after saying that it waits (docs/design/0018-row-locks.md).

use crate::database::Database;
use crate::error::Result;
use crate::holders::TransactionId;
use crate::schema::Table;
use crate::transaction::{Savepoint, Transaction};
use std::ops::Range;
use vellum_txn::VersionStamp;

/// A transaction that was running when its uncommitted version of a row was met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocker {
    transaction: TransactionId,
    version: VersionStamp,
}

impl Blocker {
    /// Which transaction it is.
    pub fn transaction(&self) -> TransactionId {
        self.transaction
    }

    /// The command of that transaction which wrote the version: those that [`Transaction::commands_since`] tells of a savepoint are reverted with it.
    pub fn command(&self) -> u32 {
        self.version.command
    }
}

/// What stands newest at a key, whoever wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Newest {
    /// No row, and nothing that this transaction does not see.
    Nothing,
    /// What this transaction sees, or wrote itself.
    Seen {
        /// A row, not the end of one.
        live: bool,
    },
    /// It was committed after this transaction's snapshot.
    Committed {
        /// A row, not the end of one.
        live: bool,
    },
    /// Its writer is still running.
    Running {
        /// A row, not the end of one.
        live: bool,
        /// The writer.
        by: Blocker,
    },
}

impl Transaction {
    /// The transaction that was in the way of the last operation that failed with `Conflict`, if it is still running; `None`
    /// too if it was asked before. Under [`Isolation::Statement`](crate::Isolation) the statement can be run again when that has ended.
    pub fn take_blocker(&self) -> Option<Blocker> {
        let version = self.inner().take_conflict()?;
        self.engine().blocker(version)
    }

    /// The commands whose versions a return to `savepoint` reverts: those that were given out since. They are not given out again.
    pub fn commands_since(&self, savepoint: &Savepoint) -> Range<u64> {
        savepoint.at.command..self.inner().savepoint().command
    }

    /// What stands newest at a key. Draws no snapshot and changes nothing; blocks only for pages.
    ///
    /// # Errors
    /// `NoSuchTable`, `TransactionOver`, storage errors. The transaction stays usable.
    pub fn newest(&self, table: &Table, key: &[u8]) -> Result<Newest> {
        let found = self.read_operation(|| self.with_rows(table, |rows| rows.newest(key)))?;
        let Some(found) = found else {
            return Ok(Newest::Nothing);
        };
        let live = found.live;
        if found.seen {
            return Ok(Newest::Seen { live });
        }
        Ok(match found.running.zip(found.writer) {
            Some((transaction, version)) => {
                let transaction = transaction.into();
                let by = Blocker {
                    transaction,
                    version,
                };
                Newest::Running { live, by }
            }
            None => Newest::Committed { live },
        })
    }

    /// The last key at which anything stands, whoever sees it: rows that are not committed count, and rows that were deleted as long as they are not
    /// cleaned away. For who makes keys that nobody else has.
    ///
    /// # Errors
    /// As [`Transaction::newest`].
    pub fn last_key(&self, table: &Table) -> Result<Option<Vec<u8>>> {
        self.read_operation(|| self.with_rows(table, |rows| rows.last_key()))
    }
}

impl Database {
    /// Whether that transaction has not ended yet. Takes a latch for an instant.
    pub fn is_running(&self, blocker: &Blocker) -> bool {
        self.engine().blocker(blocker.version).is_some()
    }
}

impl crate::engine::Engine {
    fn blocker(&self, version: VersionStamp) -> Option<Blocker> {
        let transaction = self.manager.running_writer(&version)?;
        Some(Blocker {
            transaction: transaction.into(),
            version,
        })
    }
}
