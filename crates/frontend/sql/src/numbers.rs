//! Numbers of transactions, as `pg_current_xact_id()` tells them, and which of them had ended for a snapshot.
//!
//! A transaction has none until it asks. Then one is drawn from the engine's clock, which draws commits, too, and whose values snapshots are: who asks later has a larger number, over restarts of
//! the server, too, and a commit's value is above its transaction's number.
//!
//! Invariants:
//! - N1 What is below a snapshot and not told as in progress for it had ended when that was drawn: the snapshot sees what it has committed. An end is noted behind the commit, with a value of the
//!   clock that is drawn then; so one that has just ended may be told as in progress, never the other way.
//! - N2 Of those that have ended the last [`ENDED_MAX`] are known. What is told of a snapshot that is older than an end that was forgotten would be wrong: it is refused.
//!
//! Concurrency: a number is drawn and noted under one lock, so that no snapshot that is above it can miss it. Transactions that do not ask never come here.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use vellum::{Database, Transaction, TransactionId};
use vellum_row::Snapshot;
use vellum_sync::Mutex;

/// Transactions that have ended and are known, at most.
const ENDED_MAX: usize = 10_000;

/// The numbers that were drawn since the database was opened.
#[derive(Debug)]
pub(crate) struct Numbers {
    engine: Database,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Each with what tells its transaction from others in the engine.
    open: BTreeMap<u64, TransactionId>,
    /// In the order of their ends.
    ended: VecDeque<Ended>,
    /// The last end that is forgotten.
    forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    number: u64,
    /// A value of the clock behind its commit.
    at: u64,
    committed: bool,
}

impl Numbers {
    pub fn new(engine: Database) -> Self {
        Self {
            engine,
            known: Mutex::default(),
        }
    }

    fn draw(&self, own: TransactionId) -> u64 {
        let mut known = self.known.lock();
        let number = self.engine.draw_time();
        known.open.insert(number, own);
        number
    }

    /// The number of an open transaction as an `xid` has room for it; of one that has not asked the engine's, which no other one has that is open.
    pub fn xid(&self, own: TransactionId) -> u32 {
        let known = self.known.lock();
        let mut open = known.open.iter();
        let drawn = open.find(|(_, other)| **other == own);
        drawn.map_or_else(|| own.number(), |(number, _)| *number) as u32
    }

    fn end(&self, number: u64, committed: bool) {
        let mut known = self.known.lock();
        let at = self.engine.draw_time();
        known.open.remove(&number);
        known.ended.push_back(Ended {
            number,
            at,
            committed,
        });
        if known.ended.len() > ENDED_MAX
            && let Some(first) = known.ended.pop_front()
        {
            known.forgotten = first.at;
        }
    }

    /// What the snapshot of a transaction's statement tells apart (N1).
    ///
    /// # Errors
    /// `54000` for one that is too old (N2).
    pub fn snapshot(&self, transaction: &Transaction) -> Result<Snapshot> {
        let own = transaction.snapshot_time();
        let known = self.known.lock();
        if own <= known.forgotten {
            let text = "the snapshot is older than what is known of transactions that have ended";
            return Err(SqlError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, text));
        }
        let open = known.open.range(..own).map(|(number, _)| *number);
        let ended = known.ended.iter().rev().take_while(|ended| ended.at >= own);
        let ended = ended
            .map(|ended| ended.number)
            .filter(|number| *number < own);
        Ok(Snapshot::new(own, open.chain(ended).collect()))
    }

    /// `in progress`, `committed` or `aborted`; `None` for a number that nobody knows any more.
    ///
    /// # Errors
    /// `22023` for one that is not drawn yet.
    pub fn status(&self, number: u64) -> Result<Option<&'static str>> {
        if number >= self.engine.statistics().clock {
            let message = format!("transaction ID {number} is in the future");
            return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
        }
        let known = self.known.lock();
        if known.open.contains_key(&number) {
            return Ok(Some("in progress"));
        }
        let mut ended = known.ended.iter().rev();
        let found = ended.find(|ended| ended.number == number);
        Ok(found.map(|ended| match ended.committed {
            true => "committed",
            false => "aborted",
        }))
    }
}

/// The number of one transaction, once it has asked for it. Dropped, it tells that the transaction has ended without a commit.
#[derive(Debug, Default)]
pub(crate) struct OwnNumber(OnceCell<Drawn>);

#[derive(Debug)]
struct Drawn {
    number: u64,
    numbers: Arc<Numbers>,
    committed: bool,
}

impl OwnNumber {
    /// The number; it is drawn if the transaction has none.
    pub fn get(&self, numbers: &Arc<Numbers>, transaction: &Transaction) -> u64 {
        let draw = || Drawn {
            number: numbers.draw(transaction.id()),
            numbers: numbers.clone(),
            committed: false,
        };
        self.0.get_or_init(draw).number
    }

    /// The number, if the transaction has one.
    pub fn drawn(&self) -> Option<u64> {
        self.0.get().map(|own| own.number)
    }

    /// The transaction has committed.
    pub fn committed(mut self) {
        if let Some(own) = self.0.get_mut() {
            own.committed = true;
        }
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.numbers.end(self.number, self.committed);
    }
}
