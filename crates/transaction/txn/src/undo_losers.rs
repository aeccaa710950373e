//! Recovery's undo: the records of all losers, merged into one descending order.
//!
//! Invariants:
//! - I1 (R8) Undo steps go in descending GSN over all losers; a record that any compensation record voids is not undone
//!   again (`recovery` I3).
//! - I2 A loser's abort record is written when its last record is compensated.
//!
//! Memory: one chunk and one record a loser.

use crate::record::{RedoBytes, TransactionRecord};
use crate::recovery::Loser;
use crate::rollback::{LookAhead, Undo, corrupt};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, Lsn, PageId, Result, SlotId, Timestamp};
use vellum_wal::{
    BackwardRecords, FLAG_UNDOABLE, Log, Purpose, Record, RecordHeader, SegmentFiles, Verdict,
};

/// A record with bytes of its own, used again for the next one.
#[derive(Debug)]
struct Copied {
    header: RecordHeader,
    lsn: Lsn,
    /// Redo bytes, then undo bytes.
    bytes: Vec<u8>,
    redo: usize,
}

impl Copied {
    fn nothing() -> Self {
        let header = RecordHeader {
            kind: 0,
            flags: 0,
            page: PageId::ZERO,
            tree: PageId::ZERO,
            gsn: Gsn::ZERO,
        };
        Self {
            header,
            lsn: Lsn::ZERO,
            bytes: Vec::new(),
            redo: 0,
        }
    }

    fn take(&mut self, record: &Record<'_>) {
        (self.header, self.lsn) = (record.header, record.lsn);
        self.bytes.clear();
        self.bytes.extend_from_slice(record.redo);
        self.bytes.extend_from_slice(record.undo);
        self.redo = record.redo.len();
    }

    fn record(&self) -> Record<'_> {
        let (redo, undo) = self.bytes.split_at(self.redo);
        Record {
            header: self.header,
            redo,
            undo,
            lsn: self.lsn,
        }
    }
}

/// One loser on its way down.
#[derive(Debug)]
struct Descent {
    stamp: Timestamp,
    /// Records at or above it are compensated.
    void_from: Gsn,
    /// `None` once the log has no more of it; carried records come after.
    records: Option<BackwardRecords>,
    /// The record that is next.
    head: Copied,
    /// Where carried records are read into.
    encoded: Vec<u8>,
    /// What `void_from` was then.
    by_log: Gsn,
    ahead: LookAhead,
}

impl Descent {
    /// One of so many that are undone.
    fn new(files: &Arc<SegmentFiles>, loser: &Loser, losers: usize) -> Self {
        let records = loser.slot.map(|slot| {
            let (from, to) = (loser.end, loser.first);
            BackwardRecords::from_chunk(files.clone(), slot, loser.last_chunk, from, to)
        });
        Self {
            stamp: loser.stamp,
            void_from: loser.void_from,
            records,
            by_log: loser.void_from,
            head: Copied::nothing(),
            encoded: Vec::new(),
            ahead: LookAhead::one_of(losers),
        }
    }

    /// Makes the next older record in the log that is not void the head; false if there is none. Says to `undo` what will be needed, if
    /// it is going to be undone.
    fn next_in_log(&mut self, mut undo: Option<&mut dyn Undo>) -> Result<bool> {
        while let Some(records) = &mut self.records {
            if let Some(undo) = &mut undo {
                self.ahead.before_next(records, *undo);
            }
            let Some(record) = records.next_record()? else {
                self.records = None;
                self.by_log = self.void_from;
                break;
            };
            if record.stamp() != Some(self.stamp) {
                continue;
            }
            if let Some(gsn) = record.compensated() {
                self.void_from = self.void_from.min(gsn);
            } else if record.header.has(FLAG_UNDOABLE) && record.header.gsn < self.void_from {
                self.void_from = record.header.gsn;
                self.head.take(&record);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes the next older record that is not void the head; false if there is none.
    fn next(&mut self, undo: &mut dyn Undo) -> Result<bool> {
        if self.next_in_log(Some(undo))? {
            return Ok(true);
        }
        self.encoded.clear();
        if !undo.carried(self.stamp, self.void_from, &mut self.encoded)? {
            return Ok(false);
        }
        let record = Record::decode(&self.encoded, Lsn::ZERO)
            .filter(|record| record.stamp() == Some(self.stamp))
            .filter(|record| record.header.gsn < self.void_from)
            .ok_or_else(|| corrupt("record that was carried forward", self.void_from.get(), 0))?;
        self.void_from = record.header.gsn;
        self.head.take(&record);
        Ok(true)
    }
}

/// Hands what undo of a loser needs of the log to `keep`, newest first: for a recovery that carries it forward, so that
/// the log is not needed. What was carried forward before is not among it. Returns the lowest GSN that was handed over
/// or is compensated: copies that were made before are void at or above it.
///
/// # Errors
/// What reading or `keep` reports.
pub fn loser_records(
    files: &Arc<SegmentFiles>,
    loser: &Loser,
    keep: &mut dyn FnMut(&Record<'_>) -> Result<()>,
) -> Result<Gsn> {
    let mut descent = Descent::new(files, loser, 1);
    while descent.next_in_log(None)? {
        keep(&descent.head.record())?;
    }
    Ok(descent.void_from)
}

/// Undoes all losers, in descending GSN over all of them, and logs their aborts in `slot`, which the
/// caller leases (or nobody else uses yet). What `undo` logs goes where it likes.
///
/// # Errors
/// What reading, `undo` or the log reports. Run recovery again.
pub fn undo_losers(
    log: &Log,
    slot: SlotId,
    files: &Arc<SegmentFiles>,
    losers: &[Loser],
    undo: &mut dyn Undo,
) -> Result<()> {
    let losers = match losers {
        _ if planted::has(Bug::LosersKept) => &[],
        [others @ .., _, _] if planted::has(Bug::OneLoserKept) => &losers[..=others.len()],
        losers => losers,
    };
    let mut descents: Vec<Descent> = losers
        .iter()
        .map(|loser| Descent::new(files, loser, losers.len()))
        .collect();
    // Highest GSN first; of equal ones (a loser's records of one change) any.
    let mut heap = BinaryHeap::with_capacity(losers.len());
    for (index, descent) in descents.iter_mut().enumerate() {
        if descent.next(undo)? {
            heap.push((descent.head.header.gsn, Reverse(index)));
        } else {
            log_abort(log, slot, descent.stamp)?;
        }
    }
    let mut last = Gsn::MAX;
    let mut in_log = descents.iter().filter(|it| it.records.is_some()).count();
    let mut told = false;
    while let Some((gsn, Reverse(index))) = heap.pop() {
        if in_log == 0 && !told {
            told = true;
            let mut undone = descents.iter().map(|it| (it.stamp, it.by_log));
            undo.log_is_done(&mut undone)?;
        }
        debug_assert!(gsn <= last, "I1");
        last = gsn;
        let descent = &mut descents[index];
        undo.undo(&descent.head.record())?;
        let was_in_log = descent.records.is_some();
        if descent.next(undo)? {
            heap.push((descent.head.header.gsn, Reverse(index)));
        } else {
            log_abort(log, slot, descent.stamp)?;
        }
        in_log -= usize::from(was_in_log && descent.records.is_none());
    }
    Ok(())
}

fn log_abort(log: &Log, slot: SlotId, stamp: Timestamp) -> Result<()> {
    append(
        log,
        slot,
        &TransactionRecord::Abort { stamp },
        Purpose::Undo,
    )
}

/// Logs how an earlier incarnation ended: the first thing that a recovery makes durable, before it undoes
/// anything (R8).
///
/// # Errors
/// What the log reports.
pub fn log_verdict(log: &Log, slot: SlotId, verdict: Verdict) -> Result<()> {
    append(
        log,
        slot,
        &TransactionRecord::Verdict(verdict),
        Purpose::Checkpoint,
    )
}

fn append(log: &Log, slot: SlotId, record: &TransactionRecord, purpose: Purpose) -> Result<()> {
    let slot = log.slot(slot);
    slot.reserve_for(TransactionRecord::BYTES_MAX, purpose)?;
    let mut latch = slot.lock();
    let gsn = latch.draw(Gsn::ZERO);
    latch.append(
        &record.header(gsn),
        &[RedoBytes::of(record).as_slice()],
        &[],
    );
    Ok(())
}
