//! Who holds old versions back.

use crate::database::Database;
use crate::transaction::Transaction;
use std::time::Duration;

/// What tells a transaction from all others since the database was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionId {
    slot: u16,
    number: u64,
}

impl std::fmt::Display for TransactionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.slot, self.number)
    }
}

impl From<vellum_txn::TransactionId> for TransactionId {
    fn from(id: vellum_txn::TransactionId) -> Self {
        Self {
            slot: id.slot.get(),
            number: id.number,
        }
    }
}

/// An open transaction whose snapshot keeps old versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Which: [`Transaction::id`].
    pub transaction: TransactionId,
    /// It counts as analytical: what it needs is in no OLTP transaction's way.
    pub analytical: bool,
    /// It has written.
    pub writer: bool,
    /// The clock when its oldest snapshot was drawn.
    pub snapshot: u64,
    /// Ticks of the clock since.
    pub age_ticks: u64,
    /// How long it has been known to be open, within a maintenance step (a twentieth of a second).
    pub age: Duration,
}

impl Transaction {
    /// What tells this transaction from all others; [`Database::holders`] names it by this.
    pub fn id(&self) -> TransactionId {
        self.inner().id().into()
    }
}

impl Database {
    /// The open transactions, oldest snapshot first: the first is what keeps the oldest versions.
    ///
    /// Costs some ten nanoseconds a worker slot in use, and blocks nobody.
    pub fn holders(&self) -> Vec<Holder> {
        let manager = &self.engine().manager;
        let holders = manager.holders();
        let now = manager.clock().now().get();
        let describe = |holder: vellum_txn::Holder| Holder {
            transaction: holder.id.into(),
            analytical: holder.olap,
            writer: holder.writer,
            snapshot: holder.oldest.get(),
            age_ticks: now.saturating_sub(holder.oldest.get()),
            age: holder.age,
        };
        holders.into_iter().map(describe).collect()
    }
}
