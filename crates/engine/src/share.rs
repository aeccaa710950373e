//! What a transaction sees, for several threads at a time.
//!
//! A transaction belongs to one thread. Who reads much shares its snapshot and has *followers* read parts of it, each in a thread of
//! its own: transactions that see what the leader sees, what it wrote included, and cannot write.
//!
//! Invariants:
//! - S1 Followers end before the shared snapshot goes: they borrow it. Before that the leader neither writes nor reverts anything: followers
//!   keep copies of leaves, which are void after that (V14).
//!
//! Concurrency: a follower has a slot of its own and publishes the leader's snapshot (0006, `begin` I2), so the two share nothing that
//! either of them writes.

use crate::database::Database;
use crate::error::{Error, Result};
use crate::schema::Table;
use crate::transaction::Transaction;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_txn::{SnapshotHandle, Touched};

/// A snapshot that followers read; see [`Transaction::share`]. As long as it lives its transaction can only read.
#[derive(Debug)]
pub struct SharedSnapshot<'t> {
    transaction: &'t Transaction,
    snapshot: SnapshotHandle<'t>,
    command: u32,
    /// What followers that have ended touched: it counts as the leader's.
    touched: Arc<(AtomicU64, AtomicU64)>,
}

/// A transaction that reads what another one sees; see [`Database::follow`]. Moves to another thread, and has to be gone
/// before the shared snapshot is.
#[derive(Debug)]
pub struct Follower<'s> {
    transaction: Transaction,
    touched: Arc<(AtomicU64, AtomicU64)>,
    /// S1.
    shared: PhantomData<&'s ()>,
}

impl Deref for Follower<'_> {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

impl Transaction {
    /// Lets other threads read what this transaction sees by now ([`Database::follow`]).
    ///
    /// # Errors
    /// `TransactionOver` after a conflict or a withdrawal; `InvalidArgument` in the callback of an update or a load, which could
    /// end before the shared snapshot does.
    pub fn share(&self) -> Result<SharedSnapshot<'_>> {
        self.check_not_in_write("sharing a snapshot")?;
        self.read_operation(|| {
            let _operation = self.operation()?;
            self.inner().statement();
            self.hold_still();
            Ok(SharedSnapshot {
                transaction: self,
                snapshot: self.inner().open_snapshot(),
                command: self.inner().commands_seen(),
                touched: Arc::default(),
            })
        })
    }

    /// What reading has touched so far, that of followers included which had ended when the shared snapshot was dropped.
    pub fn touched(&self) -> Touched {
        self.inner().touched()
    }

    /// Keys in ascending order that part a table into about equally many rows: `wanted` at least, or as many as it has leaves beside the
    /// first. Costs a look at inner pages of its tree.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn separators(&self, table: &Table, wanted: usize) -> Result<Vec<Vec<u8>>> {
        self.read_operation(|| {
            let operation = self.operation()?;
            Ok(self.shape_in(&operation, table)?.tree.separators(wanted)?)
        })
    }
}

impl Drop for SharedSnapshot<'_> {
    fn drop(&mut self) {
        self.transaction.move_on();
        // Relaxed: who ended a follower has told who drops this in another way.
        let (pages, versions) = &*self.touched;
        let (pages, versions) = (
            pages.load(Ordering::Relaxed),
            versions.load(Ordering::Relaxed),
        );
        self.transaction.inner().touch(pages, versions);
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        let own = self.transaction.touched();
        self.touched.0.fetch_add(own.pages, Ordering::Relaxed);
        self.touched.1.fetch_add(own.versions, Ordering::Relaxed);
    }
}

impl Database {
    /// A transaction that sees what the shared snapshot's sees. None if no slot is free for it, but for those that are kept back: nothing is waited for, since those who have
    /// slots may be waiting for followers, too. None under another [`Protocol`](crate::Protocol) than the product's.
    ///
    /// # Errors
    /// `SnapshotTooOld` if the snapshot was withdrawn; `InvalidArgument` for that of another database.
    pub fn follow<'s>(&self, shared: &'s SharedSnapshot<'_>) -> Result<Option<Follower<'s>>> {
        let engine = self.engine();
        if !Arc::ptr_eq(engine, &shared.transaction.token.engine) {
            return Err(Error::InvalidArgument {
                what: "a snapshot of another database".into(),
            });
        }
        let inner = engine.manager.follow(&shared.snapshot, shared.command)?;
        let inner = inner.filter(|inner| !self.is_reserved(inner.slot()));
        Ok(inner.map(|inner| Follower {
            transaction: Transaction::new(self.token(inner.slot()), inner),
            touched: shared.touched.clone(),
            shared: PhantomData,
        }))
    }
}

// Followers are for other threads.
const _: () = {
    const fn sendable<T: Send>() {}
    sendable::<Follower<'static>>();
};
