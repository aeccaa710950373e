//! Rollback, whole or to a savepoint: drives undo over the transaction's own log records, backward. Who
//! implements [`Undo`] knows pages; nothing here does.
//!
//! Invariants:
//! - I1 (R8) Each undoable record is undone once: the implementor logs one compensation record that names
//!   its GSN, and a reader going backward skips from a compensation down to and including that GSN. So a rollback
//!   that failed half-way, or was cut off by a crash, goes on where it stopped.
//! - I2 Undo goes in descending GSN.
//! - I3 The abort record is written when everything is compensated, and the slot is given back after that.
//! - I4 (R9) Records that were carried forward are older than all that are still in the log.
//!
//! Crash: nothing here is waited for. An abort that is lost with the last round is undone again from what was durable
//! of it.

use crate::domain::Domain;
use crate::record::{RedoBytes, TransactionRecord};
use crate::transaction::Transaction;
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, Lsn, PageId, Result, SlotId, StorageError, Timestamp};
use vellum_wal::{BackwardRecords, FLAG_UNDOABLE, Purpose, Record};

/// Pages that undo asks for at a time: what a device reads at once without much waiting.
const PAGES_AHEAD: usize = 32;

/// Reverts changes. Implemented where pages are known.
pub trait Undo {
    /// Reverts the change of `record`, an undoable one, and logs exactly one compensation record
    /// (the last record of what it logs, naming the record's GSN).
    ///
    /// # Errors
    /// Nothing is half-done; the record will be handed over again.
    fn undo(&mut self, record: &Record<'_>) -> Result<()>;

    /// The pages that the next records were about, newest first: a hint, so that those which are not in memory can be read
    /// together.
    fn ahead(&mut self, _pages: &[PageId]) {}

    /// A transaction that is rolled back is reverted, all of it, and its end is not logged: what could wait is to be done now.
    ///
    /// # Errors
    /// Nothing is reverted again; this is called again.
    fn all_is_reverted(&mut self) -> Result<()> {
        Ok(())
    }

    /// In recovery: the log has nothing more to undo, only what was carried forward is left ([`Undo::carried`]). Tells down to which
    /// GSN each loser was undone by the log, now or by an earlier recovery; `Gsn::MAX` where nothing was.
    ///
    /// # Errors
    /// Run recovery again.
    fn log_is_done(&mut self, _undone: &mut dyn Iterator<Item = (Timestamp, Gsn)>) -> Result<()> {
        Ok(())
    }

    /// Puts the newest carried-forward record of `stamp` with a GSN below `below` into `out`, encoded as in the log,
    /// and returns true; false if there is none (R9).
    ///
    /// # Errors
    /// Reading the carried records failed.
    fn carried(&mut self, stamp: Timestamp, below: Gsn, out: &mut Vec<u8>) -> Result<bool>;
}

/// Tells what undo will need next, a stretch of records at a time.
#[derive(Debug)]
pub(crate) struct LookAhead {
    /// Pages of one stretch, at most.
    most: usize,
    /// Records until the next stretch.
    left: usize,
    pages: Vec<PageId>,
}

impl LookAhead {
    /// For one of so many streams that are undone by turns.
    pub fn one_of(streams: usize) -> Self {
        Self {
            most: PAGES_AHEAD / streams.max(1),
            left: 0,
            pages: Vec::new(),
        }
    }

    /// Before each record is taken from the stream.
    #[inline]
    pub fn before_next(&mut self, records: &BackwardRecords, undo: &mut dyn Undo) {
        if self.left == 0 && self.most > 1 {
            self.pages.clear();
            self.left = records.upcoming(self.most, &mut self.pages);
            if !self.pages.is_empty() {
                undo.ahead(&self.pages);
            }
        }
        self.left = self.left.saturating_sub(1);
    }
}

/// A point in a transaction to roll back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    /// Records of the transaction below it stay (comparable within the slot).
    pub lsn: Lsn,
    /// The same, as a GSN: for records that were carried forward.
    pub gsn: Gsn,
    /// Command ids below it were given out before. Rolling back does not give them out again.
    pub command: u64,
}

impl Savepoint {
    /// The start of the transaction.
    pub const START: Self = Self {
        lsn: Lsn::ZERO,
        gsn: Gsn::ZERO,
        command: 0,
    };
}

impl Transaction {
    /// Reverts what was done after `savepoint`, which stays valid. The transaction goes on, with the same stamp and
    /// new command ids. The caller holds no latch.
    ///
    /// # Errors
    /// What `undo` or the log reports: some of the changes are reverted. Call again, or roll back.
    pub fn rollback_to(&self, savepoint: &Savepoint, undo: &mut dyn Undo) -> Result<()> {
        if !self.has_written() || (planted::has(Bug::SavepointKept) && savepoint.command > 0) {
            return Ok(());
        }
        if let Some(policy) = &self.policy {
            // Also where undo fails half-way: what is not visited is judged by the commit log.
            policy.reverted(savepoint.command);
        }
        revert(
            self.domain(),
            self.slot(),
            self.stamp.get(),
            savepoint,
            undo,
        )
    }

    /// Reverts everything, logs the abort, gives the slot back. The caller holds no latch.
    ///
    /// # Errors
    /// What `undo` or the log reports: the writer is parked then, and `Manager::take_parked` can try
    /// again.
    pub fn rollback(mut self, undo: &mut dyn Undo) -> Result<()> {
        if self.has_written() {
            self.rollback_to(&Savepoint::START, undo)?;
            undo.all_is_reverted()?;
            log_abort(self.domain(), self.slot(), self.stamp.get())?;
        }
        self.end();
        Ok(())
    }
}

/// Reverts what `stamp`, live in `slot`, did after `savepoint`.
pub(crate) fn revert(
    domain: &Domain,
    slot: SlotId,
    stamp: Timestamp,
    savepoint: &Savepoint,
    undo: &mut dyn Undo,
) -> Result<()> {
    let log = domain.log().slot(slot);
    let bounds = || {
        let latch = log.lock();
        let live = latch.live_transaction();
        debug_assert_eq!(
            live.map(|live| live.0),
            Some(stamp),
            "the slot's live transaction"
        );
        let first = live.map_or(latch.end(), |live| live.1);
        (latch.end(), first.max(latch.carried()).max(savepoint.lsn))
    };
    let (mut from, mut to) = bounds();
    let mut void_from = Gsn::MAX;
    while from > to {
        match revert_from_log(
            log.backward(from, to),
            stamp,
            &mut from,
            &mut void_from,
            undo,
        )? {
            None => break,
            Some(error) => {
                // A checkpoint may have carried forward what is still to come, and its segment may be
                // gone: then it is read from where it went to.
                let carried_to = bounds().1;
                if carried_to == to {
                    return Err(error);
                }
                to = carried_to;
            }
        }
    }
    if savepoint.lsn >= bounds().1 {
        // Nothing above it was carried forward. What lies below it may be copied at this moment: a look would find
        // half a record.
        return Ok(());
    }
    revert_carried(stamp, void_from, savepoint.gsn, undo)
}

/// Reverts the records of a stream. The outer error is undo's, the inner one the stream's: all
/// records at or above `from` are done then.
fn revert_from_log(
    mut records: BackwardRecords,
    stamp: Timestamp,
    from: &mut Lsn,
    void_from: &mut Gsn,
    undo: &mut dyn Undo,
) -> Result<Option<StorageError>> {
    let mut ahead = LookAhead::one_of(1);
    loop {
        ahead.before_next(&records, undo);
        let record = match records.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        };
        if record.stamp() == Some(stamp) {
            if let Some(gsn) = record.compensated() {
                *void_from = gsn.min(*void_from);
            } else if record.header.has(FLAG_UNDOABLE) && record.header.gsn < *void_from {
                undo.undo(&record)?;
                // As its compensation record now says.
                *void_from = record.header.gsn;
            }
        }
        *from = record.lsn;
    }
}

/// Reverts what was carried forward, below `below` and above `kept`.
fn revert_carried(stamp: Timestamp, mut below: Gsn, kept: Gsn, undo: &mut dyn Undo) -> Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if !undo.carried(stamp, below, &mut bytes)? {
            return Ok(());
        }
        let Some(record) = Record::decode(&bytes, Lsn::ZERO) else {
            return Err(corrupt("record that was carried forward", below.get(), 0));
        };
        let gsn = record.header.gsn;
        if gsn >= below || record.stamp() != Some(stamp) || !record.header.has(FLAG_UNDOABLE) {
            return Err(corrupt(
                "order of records carried forward",
                below.get(),
                gsn.get(),
            ));
        }
        if gsn <= kept {
            return Ok(());
        }
        undo.undo(&record)?;
        below = gsn;
    }
}

pub(crate) fn corrupt(what: &'static str, expected: u64, found: u64) -> StorageError {
    StorageError::Corruption {
        file: "log".into(),
        page: None,
        what,
        expected,
        found,
    }
}

/// Logs that everything is compensated, and ends the transaction for the log.
pub(crate) fn log_abort(domain: &Domain, slot: SlotId, stamp: Timestamp) -> Result<()> {
    let log = domain.log().slot(slot);
    log.reserve_for(TransactionRecord::BYTES_MAX, Purpose::Undo)?;
    let mut latch = log.lock();
    let record = TransactionRecord::Abort { stamp };
    let gsn = latch.draw(Gsn::ZERO);
    latch.append(
        &record.header(gsn),
        &[RedoBytes::of(&record).as_slice()],
        &[],
    );
    latch.end_transaction();
    drop(latch);
    domain.aborted(stamp);
    Ok(())
}
