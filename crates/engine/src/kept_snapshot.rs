//! A snapshot that transactions of other threads begin at, and keep for themselves then.
//!
//! Invariants:
//! - KS1 A kept snapshot is that of a transaction of its own, which only reads, in a slot of its own. So it lasts as long as there is a handle of it, whatever becomes of
//!   the transaction that it is from.
//! - KS2 Who begins at it sees what was committed before the snapshot, and nothing of what its transaction wrote.
//!
//! Concurrency: the holder is begun at, under a lock, for as long as it takes to publish the snapshot once more: nothing is waited for meanwhile. It cannot end
//! before that is done, as who begins has a handle (`vellum_txn`'s `begin` I3 has the rest).

use crate::database::{Database, inner_options};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::options::{Class, TransactionOptions};
use crate::transaction::Transaction;
use std::sync::Arc;
use vellum_sync::Mutex;
use vellum_txn::TransactionError;

/// Keeps a snapshot; see [`Database::keep_snapshot`]. Takes a worker slot until it is dropped.
#[derive(Debug)]
pub struct KeptSnapshot {
    holder: Mutex<Transaction>,
    time: u64,
}

impl KeptSnapshot {
    /// As [`Transaction::snapshot_time`] of the transactions that begin at it.
    pub fn time(&self) -> u64 {
        self.time
    }
}

impl Database {
    /// Keeps what a transaction's current statement sees, but for what the transaction has written itself, for transactions of any thread
    /// ([`Database::begin_at`]). As an analytical transaction, it holds back what becomes of old versions until it is dropped.
    ///
    /// # Errors
    /// `Timeout` if no slot is free, but for those that are kept back: nothing is waited for. `SnapshotTooOld` if the transaction's was withdrawn;
    /// `InvalidArgument` for a transaction of another database, and under another [`Protocol`](crate::Protocol) than the product's.
    pub fn keep_snapshot(&self, transaction: &Transaction) -> Result<KeptSnapshot> {
        let options = TransactionOptions::default()
            .read_only(true)
            .class(Class::Olap)
            .leaves_reserved(true);
        let holder = self.begin_beside(transaction, options)?;
        Ok(KeptSnapshot {
            time: holder.snapshot_time(),
            holder: Mutex::new(holder),
        })
    }

    /// Begins a transaction at a kept snapshot: under [`Isolation::Snapshot`](crate::Isolation) all of it, under the others what it reads before its first
    /// [`Transaction::begin_statement`]. It is analytical, whatever the options say, may write, and does not need the kept one any more.
    ///
    /// # Errors
    /// As [`Database::keep_snapshot`].
    pub fn begin_at(
        &self,
        kept: &KeptSnapshot,
        options: TransactionOptions,
    ) -> Result<Transaction> {
        self.begin_beside(&kept.holder.lock(), options)
    }

    fn begin_beside(
        &self,
        other: &Transaction,
        options: TransactionOptions,
    ) -> Result<Transaction> {
        let engine = self.engine();
        if !Arc::ptr_eq(engine, &other.token.engine) {
            return Err(Error::InvalidArgument {
                what: "a snapshot of another database".into(),
            });
        }
        // Those that are kept back are held meanwhile, so that none is found twice.
        let mut held = Vec::new();
        loop {
            let begun = engine
                .manager
                .begin_at(other.inner(), inner_options(options))?;
            match begun {
                Some(inner) if options.leaves_reserved && self.is_reserved(inner.slot()) => {
                    held.push(inner);
                }
                Some(inner) => return Ok(Transaction::new(self.token(inner.slot()), inner)),
                None => return Err(no_slot(engine)),
            }
        }
    }
}

#[cold]
fn no_slot(engine: &Engine) -> Error {
    if engine.config.protocol != crate::Protocol::Osic {
        return Error::InvalidArgument {
            what: "a kept snapshot under this protocol".into(),
        };
    }
    let slots_max = engine.config.slots_max;
    TransactionError::SlotsExhausted {
        taken: engine.manager.slots_taken(),
        slots_max,
        waited: std::time::Duration::ZERO,
    }
    .into()
}

// Handles are for other threads.
const _: () = {
    const fn shareable<T: Send + Sync>() {}
    shareable::<KeptSnapshot>();
};
