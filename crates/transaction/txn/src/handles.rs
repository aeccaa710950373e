//! What a transaction hands out: an open snapshot, a running operation. Both borrow it, so none
//! outlives it.

use crate::error::TransactionError;
use crate::slot::Class;
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

    /// Whose snapshot it is.
    #[inline]
    pub fn transaction(&self) -> &'t Transaction {
        self.transaction
    }
}

impl Drop for SnapshotHandle<'_> {
    fn drop(&mut self) {
        self.transaction.close_snapshot(self.index);
    }
}

/// A running operation (R10); see [`Transaction::operation`]. While it is counted, the class of its transaction does not
/// change. What looks at rows borrows it, so nothing looks at rows outside one.
#[derive(Debug)]
pub struct Operation<'t> {
    transaction: &'t Transaction,
    olap: bool,
    /// It is counted in the slot's word.
    raised: bool,
}

impl<'t> Operation<'t> {
    #[inline]
    pub(crate) fn start(transaction: &'t Transaction) -> Result<Self, TransactionError> {
        let mut operation = Self {
            transaction,
            olap: false,
            raised: false,
        };
        operation.resume()?;
        Ok(operation)
    }

    /// Whose operation it is.
    #[inline]
    pub fn transaction(&self) -> &'t Transaction {
        self.transaction
    }

    /// True if the transaction is analytical: the operation looks into graveyards.
    #[inline]
    pub fn is_olap(&self) -> bool {
        self.olap
    }

    /// Stops being counted: before user code runs, before anything is waited for that is not the engine's own.
    #[inline]
    pub fn pause(&mut self) {
        if self.raised {
            self.raised = false;
            let transaction = self.transaction;
            transaction.domain().slot(transaction.slot()).words.lower();
        }
    }

    /// Is counted again after [`Operation::pause`], with the class read anew.
    ///
    /// # Errors
    /// `SnapshotTooOld`: the transaction can only be ended.
    #[inline]
    pub fn resume(&mut self) -> Result<(), TransactionError> {
        debug_assert!(!self.raised, "an operation is counted once");
        let transaction = self.transaction;
        if !transaction.is_counted() {
            // Nobody changes its class.
            self.olap = transaction.options().class == Class::Olap;
            return Ok(());
        }
        match transaction.domain().slot(transaction.slot()).words.raise() {
            Some(olap) => {
                (self.olap, self.raised) = (olap, true);
                Ok(())
            }
            None => Err(TransactionError::SnapshotTooOld),
        }
    }
}

impl Drop for Operation<'_> {
    #[inline]
    fn drop(&mut self) {
        self.pause();
    }
}
