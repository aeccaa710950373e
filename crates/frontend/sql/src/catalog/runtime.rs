//! What is known of a relation while the database is open and is in no catalog row.

use super::Gate;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::sync::Arc;
use vellum::{PendingCommit, Transaction};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// One a relation, whatever DDL does to it: images hand it on.
#[derive(Debug, Default)]
pub(crate) struct Runtime {
    /// Who writes it, and who changes it. A sequence keeps it when it is started again, with other values.
    pub gate: Arc<Gate>,
    /// Locks on its rows and on entries of its indexes.
    pub row_locks: AtomicU64,
    /// The next key of a table without primary key; 0: not known yet.
    next_row: AtomicU64,
    /// What its rows are like.
    pub statistics: crate::statistics::Known,
    /// Values of a sequence that were taken from the store.
    pub sequence: Mutex<Option<Taken>>,
}

/// Values of a sequence that may be given out without asking the store.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// The last value that was given out, or the one that comes next if `called` is false.
    pub last: i64,
    /// Whether `last` was given out.
    pub called: bool,
    /// How many more values the store knows as given out, if the increment is `step`.
    pub ahead: u64,
    pub step: i64,
    /// The last commit of what the store knows, if that may not be durable yet.
    pub stored: Option<PendingCommit>,
}

impl Runtime {
    /// Another one behind the same gate.
    pub fn anew(&self) -> Arc<Self> {
        Arc::new(Self {
            gate: self.gate.clone(),
            ..Self::default()
        })
    }

    /// Key of a new row of a table without primary key: ascending, so that rows are appended.
    pub fn draw_row(&self, transaction: &Transaction, table: &vellum::Table) -> Result<u64> {
        self.know_rows(transaction, table)?;
        Ok(self.next_row.fetch_add(1, Ordering::AcqRel))
    }

    /// Looks for the last key that rows have, unless that is known: before the first key is drawn, and before the transaction gives the
    /// table another place for its rows, which it may take back.
    ///
    /// What counts is what stands there, not what the transaction sees: it may have deleted the last rows itself. Every row that was written since the
    /// database was opened has come through here, so all that the look could miss are rows that were deleted since, and are
    /// cleaned away: such a key is drawn again, and is to old snapshots what one is that is deleted and inserted again in a table with a key.
    pub fn know_rows(&self, transaction: &Transaction, table: &vellum::Table) -> Result<()> {
        if self.next_row.load(Ordering::Acquire) == 0 {
            let last = transaction.last_key(table)?;
            let last = last.as_deref().and_then(<[u8]>::first_chunk::<8>);
            // A key of all ones is none that was drawn.
            let next = last.map_or(0, |key| u64::from_be_bytes(*key));
            let next = next.checked_add(1).ok_or_else(|| {
                SqlError::new(sqlstate::DATA_CORRUPTED, "a row's number cannot be read")
            })?;
            // Only one who comes first sets it. Acquire/Release: pairs with itself.
            let _ = self
                .next_row
                .compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire);
        }
        Ok(())
    }
}
