//! Records of one slot in descending order: what rollback and recovery's undo read (R8).
//!
//! Each chunk on disk names the slot's chunk before it, so that going backward needs no memory but
//! one chunk, whatever the length of a transaction.
//!
//! Invariants:
//! - I1 [`Uncompensated`] yields every undoable record of its transaction that no compensation record
//!   voids, once, and no other: on the way down, a compensation record voids everything of its
//!   transaction from itself down to and including the GSN that it names.

use std::sync::Arc;

use vellum_base::{Gsn, Lsn, PageId, Result, SlotId, StorageError, Timestamp};

use crate::config::ChunkPosition;
use crate::frame::{CHUNK_HEADER_BYTES, ChunkHeader, records_crc};
use crate::record::{FLAG_UNDOABLE, Record, Records};
use crate::segment::SegmentFiles;
use crate::slot::{CarryBounds, SlotLog};

/// What a slot's ring gave: where it starts, and the chunk to go on with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingTail {
    pub start: Lsn,
    pub before: ChunkPosition,
}

/// A stream of one slot's records in descending order. Made by [`SlotLog::backward`] and
/// [`BackwardRecords::from_chunk`].
#[derive(Debug)]
pub struct BackwardRecords {
    files: Arc<SegmentFiles>,
    slot: SlotId,
    /// The ring is read first.
    ring: Option<SlotLog>,
    /// Records below it are still to come, from disk.
    above: Lsn,
    to: Lsn,
    bytes: Vec<u8>,
    base: Lsn,
    /// Offsets in `bytes` of records still to be yielded, ascending.
    starts: Vec<u32>,
    next: ChunkPosition,
}

impl BackwardRecords {
    pub(crate) fn of_slot(slot: SlotLog, from: Lsn, to: Lsn) -> Self {
        let files = slot.core.segments.files.clone();
        let mut stream = Self::from_chunk(files, slot.id(), ChunkPosition::default(), from, to);
        stream.ring = Some(slot);
        stream
    }

    /// The records of `slot` in `to..from` of an earlier incarnation, going back from `last`, a chunk
    /// of the slot at or after the one that ends at `from`: recovery found it while it read the log.
    pub fn from_chunk(
        files: Arc<SegmentFiles>,
        slot: SlotId,
        last: ChunkPosition,
        from: Lsn,
        to: Lsn,
    ) -> Self {
        let (bytes, starts) = (Vec::new(), Vec::new());
        Self {
            files,
            slot,
            ring: None,
            above: from,
            to,
            bytes,
            base: from,
            starts,
            next: last,
        }
    }

    /// The next older record, `None` at the end. Reads a chunk when the one before is used up.
    ///
    /// # Errors
    /// `Io`; `Corruption` if a chunk is not what the chain says.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        while self.starts.is_empty() {
            if self.above <= self.to {
                return Ok(None);
            }
            match self.ring.take() {
                Some(slot) => {
                    let tail = slot.ring_tail(self.above, self.to, &mut self.bytes);
                    self.next = tail.before;
                    self.index(tail.start)?;
                }
                None => self.load()?,
            }
        }
        let at = self.starts.pop().expect("not empty") as usize;
        let lsn = Lsn(self.base.0 + at as u64);
        let record = Record::decode(&self.bytes[at..], lsn);
        Ok(Some(
            record.expect("was decoded when the chunk was indexed"),
        ))
    }

    /// The pages that the next records have to be undone on, newest first: those of records that are in memory already, up to
    /// `pages` of them, a page once where it comes several times in a row. Returns for how many of the next calls of
    /// [`BackwardRecords::next_record`] that is all; zero where the next one reads a chunk.
    pub fn upcoming(&self, pages: usize, out: &mut Vec<PageId>) -> usize {
        for (seen, at) in self.starts.iter().rev().enumerate() {
            let Some(record) = Record::decode(&self.bytes[*at as usize..], Lsn::ZERO) else {
                return seen;
            };
            let page = record.header.page;
            if record.header.has(FLAG_UNDOABLE) && !page.is_zero() && out.last() != Some(&page) {
                if out.len() == pages {
                    return seen;
                }
                out.push(page);
            }
        }
        self.starts.len()
    }

    /// Finds the records in `bytes`, which start at `start`.
    fn index(&mut self, start: Lsn) -> Result<()> {
        self.base = start;
        let mut records = Records::new(&self.bytes, start);
        for record in &mut records {
            if record.lsn >= self.to && record.lsn < self.above {
                self.starts.push((record.lsn.0 - start.0) as u32);
            }
        }
        if records.is_broken() {
            return Err(corrupt("log record", start.0, self.bytes.len() as u64));
        }
        self.above = start.min(self.above);
        Ok(())
    }

    /// Reads the next chunk of the chain that has records below `above`.
    fn load(&mut self) -> Result<()> {
        let at = self.next;
        if !at.is_some() {
            return Err(corrupt(
                "chain of log chunks ends early",
                self.to.0,
                self.above.0,
            ));
        }
        let file = self.files.get(at.segment)?;
        let mut head = [0; CHUNK_HEADER_BYTES];
        file.read_at(&mut head, u64::from(at.offset))?;
        let header = ChunkHeader::decode(&head, at.segment)
            .map(|(header, _)| header)
            .filter(|header| header.slot == self.slot && header.start == at.start)
            .ok_or_else(|| corrupt("log chunk header", at.segment, u64::from(at.offset)))?;
        let start = header.start;
        if start < self.above {
            self.bytes.clear();
            self.bytes.resize(header.length as usize, 0);
            file.read_at(
                &mut self.bytes,
                u64::from(at.offset) + CHUNK_HEADER_BYTES as u64,
            )?;
            let found = records_crc(at.segment, &self.bytes);
            if found != header.records_crc {
                let expected = u64::from(header.records_crc);
                return Err(corrupt("log chunk checksum", expected, u64::from(found)));
            }
            self.index(start)?;
        }
        self.next = ChunkPosition {
            segment: header.before_segment,
            offset: header.before_offset,
            length: 0,
            start: header.before_start,
        };
        // A chain that does not descend would never end.
        if self.next.is_some() && self.next.start >= start {
            return Err(corrupt("order of log chunks", start.0, self.next.start.0));
        }
        Ok(())
    }
}

fn corrupt(what: &'static str, expected: u64, found: u64) -> StorageError {
    StorageError::Corruption {
        file: "log".into(),
        page: None,
        what,
        expected,
        found,
    }
}

/// The undoable records of one transaction that are not compensated, in descending order.
#[derive(Debug)]
pub struct Uncompensated {
    records: BackwardRecords,
    stamp: Timestamp,
    /// Records at or above it are void.
    void_from: Gsn,
    /// Only records that start below are yielded.
    below: Lsn,
}

impl Uncompensated {
    /// Those of transaction `stamp` among `records`, which start at the transaction's newest record
    /// (or at a savepoint's end) so that no compensation is missed.
    pub fn new(records: BackwardRecords, stamp: Timestamp) -> Self {
        Self {
            records,
            stamp,
            void_from: Gsn::MAX,
            below: Lsn::MAX,
        }
    }

    /// The same, yielding only records that start below `lsn`.
    #[must_use]
    pub fn below(self, lsn: Lsn) -> Self {
        Self { below: lsn, ..self }
    }

    /// The same, where records at or above `gsn` are known to be compensated.
    #[must_use]
    pub fn void_from(self, gsn: Gsn) -> Self {
        Self {
            void_from: self.void_from.min(gsn),
            ..self
        }
    }

    /// The next older record to undo, `None` at the end.
    ///
    /// # Errors
    /// As [`BackwardRecords::next_record`].
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        loop {
            // Decoded twice, because a loop cannot lend what it may skip.
            let Some(record) = self.records.next_record()? else {
                return Ok(None);
            };
            if record.stamp() != Some(self.stamp) {
                continue;
            }
            if let Some(gsn) = record.compensated() {
                self.void_from = self.void_from.min(gsn);
                continue;
            }
            let wanted = record.header.has(FLAG_UNDOABLE)
                && record.header.gsn < self.void_from
                && record.lsn < self.below;
            if wanted {
                let lsn = record.lsn;
                let at = (lsn.0 - self.records.base.0) as usize;
                return Ok(Record::decode(&self.records.bytes[at..], lsn));
            }
        }
    }
}

/// What is to be carried forward of one live transaction (R9).
#[derive(Debug)]
pub struct Carry {
    /// Whose.
    pub stamp: Timestamp,
    /// Pass this to [`crate::SlotGuard::set_carried`] once the copies are durable.
    pub to: Lsn,
    /// Copies of the transaction's records that were made before are void at or above this GSN:
    /// to be deleted before the new ones are made. `Gsn::MAX` for none.
    pub void_copies: Gsn,
    /// The undoable records to copy, newest first.
    pub records: Uncompensated,
}

impl SlotLog {
    /// The records of the slot's live transaction that lie in segments before `segment`, are not
    /// compensated and not carried yet. `None` if nothing is.
    ///
    /// What is compensated afterwards voids its copy: the next call says so ([`Carry::void_copies`]), before the segments
    /// of those compensations can go.
    pub fn carry(&self, segment: u64) -> Option<Carry> {
        let bounds = self.lock().carry_bounds(segment)?;
        let CarryBounds {
            stamp,
            carried,
            from,
            to,
            void_copies,
        } = bounds;
        let records = Uncompensated::new(self.backward(from, carried), stamp).below(to);
        Some(Carry {
            stamp,
            to,
            void_copies,
            records,
        })
    }
}
