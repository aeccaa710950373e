//! What a transaction hands out: an open snapshot, a running operation. Both borrow it, so none
//! outlives it.

use crate::transaction::Transaction;
use vellum_base::Timestamp;

/// Keeps a snapshot of its transaction open; see [`Transaction::open_snapshot`].
#[derive(Debug)]
pub struct SnapshotHandle<'t> {
    transaction: &'t Transaction,
    snapshot: Timestamp,
    index: usize,
}

impl<'t> SnapshotHandle<'t> {
    pub(crate) fn new(transaction: &'t Transaction, snapshot: Timestamp, index: usize) -> Self {
        Self {
            transaction,
            snapshot,
            index,
        }
    }

    /// The snapshot.
    #[inline]
    pub fn snapshot(&self) -> Timestamp {
        self.snapshot
    }
}

impl Drop for SnapshotHandle<'_> {
    fn drop(&mut self) {
        self.transaction.close_snapshot(self.index);
    }
}

/// A running operation; see [`Transaction::operation`].
#[derive(Debug)]
pub struct Operation<'t> {
    transaction: &'t Transaction,
    olap: bool,
}

impl<'t> Operation<'t> {
    #[inline]
    pub(crate) fn new(transaction: &'t Transaction, olap: bool) -> Self {
        Self { transaction, olap }
    }

    /// True if the transaction is analytical: the operation looks into graveyards.
    #[inline]
    pub fn is_olap(&self) -> bool {
        self.olap
    }
}

impl Drop for Operation<'_> {
    #[inline]
    fn drop(&mut self) {
        let transaction = self.transaction;
        transaction.domain().slot(transaction.slot()).words.lower();
    }
}
