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
use crate::rollback::{Undo, corrupt};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, Lsn, Result, SlotId, Timestamp};
use vellum_wal::{
    BackwardRecords, FLAG_UNDOABLE, Log, Purpose, Record, RecordHeader, SegmentFiles, Verdict,
};

/// A record with bytes of its own.
#[derive(Debug)]
struct Copied {
    header: RecordHeader,
    redo: Vec<u8>,
    undo: Vec<u8>,
    lsn: Lsn,
}

impl Copied {
    fn of(record: &Record<'_>) -> Self {
        Self {
            header: record.header,
            redo: record.redo.to_vec(),
            undo: record.undo.to_vec(),
            lsn: record.lsn,
        }
    }

    fn record(&self) -> Record<'_> {
        Record {
            header: self.header,
            redo: &self.redo,
            undo: &self.undo,
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
}

impl Descent {
    fn new(files: &Arc<SegmentFiles>, loser: &Loser) -> Self {
        let records = loser.slot.map(|slot| {
            let (from, to) = (loser.end, loser.first);
            BackwardRecords::from_chunk(files.clone(), slot, loser.last_chunk, from, to)
        });
        Self {
            stamp: loser.stamp,
            void_from: loser.void_from,
            records,
        }
    }

    /// The next older record in the log that is not void.
    fn next_in_log(&mut self) -> Result<Option<Copied>> {
        while let Some(records) = &mut self.records {
            let Some(record) = records.next_record()? else {
                self.records = None;
                break;
            };
            if record.stamp() != Some(self.stamp) {
                continue;
            }
            if let Some(gsn) = record.compensated() {
                self.void_from = self.void_from.min(gsn);
            } else if record.header.has(FLAG_UNDOABLE) && record.header.gsn < self.void_from {
                self.void_from = record.header.gsn;
                return Ok(Some(Copied::of(&record)));
            }
        }
        Ok(None)
    }

    /// The next older record that is not void.
    fn next(&mut self, undo: &mut dyn Undo) -> Result<Option<Copied>> {
        if let Some(record) = self.next_in_log()? {
            return Ok(Some(record));
        }
        let mut bytes = Vec::new();
        if !undo.carried(self.stamp, self.void_from, &mut bytes)? {
            return Ok(None);
        }
        let record = Record::decode(&bytes, Lsn::ZERO)
            .filter(|record| record.stamp() == Some(self.stamp))
            .filter(|record| record.header.gsn < self.void_from)
            .ok_or_else(|| corrupt("record that was carried forward", self.void_from.get(), 0))?;
        self.void_from = record.header.gsn;
        Ok(Some(Copied::of(&record)))
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
    let mut descent = Descent::new(files, loser);
    while let Some(record) = descent.next_in_log()? {
        keep(&record.record())?;
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
    let losers = if planted::has(Bug::LosersKept) {
        &[]
    } else {
        losers
    };
    let mut descents: Vec<Descent> = losers
        .iter()
        .map(|loser| Descent::new(files, loser))
        .collect();
    let mut heads: Vec<Option<Copied>> = Vec::with_capacity(losers.len());
    // Highest GSN first; of equal ones (a loser's records of one change) any.
    let mut heap = BinaryHeap::with_capacity(losers.len());
    for (index, descent) in descents.iter_mut().enumerate() {
        let head = descent.next(undo)?;
        match &head {
            Some(record) => heap.push((record.header.gsn, Reverse(index))),
            None => log_abort(log, slot, descent.stamp)?,
        }
        heads.push(head);
    }
    let mut last = Gsn::MAX;
    while let Some((gsn, Reverse(index))) = heap.pop() {
        debug_assert!(gsn <= last, "I1");
        last = gsn;
        let head = heads[index]
            .take()
            .expect("what is in the heap has a record");
        undo.undo(&head.record())?;
        match descents[index].next(undo)? {
            Some(record) => {
                heap.push((record.header.gsn, Reverse(index)));
                heads[index] = Some(record);
            }
            None => log_abort(log, slot, descents[index].stamp)?,
        }
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
