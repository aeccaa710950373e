//! Reading the log back: rounds in order, and where each incarnation ends (R8).
//!
//! A round that is not whole is a hole. It is the end of its incarnation (a torn tail: the crash came
//! before its sync returned), unless something behind it says that it was durable: a frame or
//! segment header that names it, or a later round, as synced, or the verdict of a recovery that
//! read it. Then it is corruption.
//!
//! Invariants:
//! - I1 Rounds come with consecutive numbers, C and M never fall, and each slot's chunks
//!   continue one another, within an incarnation.
//! - I2 A segment takes over at its first round: rounds from there on in segments before it are
//!   void (left by an attempt that failed). Within a flush all rounds are of one attempt.
//! - I3 A verdict on disk is final: rounds behind it are not read.
//! - I4 Memory is bounded by one round (1 MiB) and one read.
//!
//! Not here: what records mean; which transactions are losers (`txn`).

use std::sync::Arc;
use vellum_base::maps::HashMap;

use vellum_base::{Gsn, Lsn, Result, SlotId, StorageError, Timestamp};
use vellum_io::{Directory, File, OpenOptions};

use crate::config::{BLOCK_BYTES, ChunkPosition, LogPosition, LogStart, Verdict};
use crate::frame::{
    CHUNK_HEADER_BYTES, ChunkHeader, Evidence, NUMBER_MAX, SegmentHeader, TRAILER_BYTES, Trailer,
    align_block, align8, chain_crc, evidence, impossible, records_crc,
};
use crate::record::Records;
use crate::round::ROUND_BYTES_MAX;
use crate::segment::{Found, SegmentFiles, scan};

/// New records of one slot in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Whose.
    pub slot: SlotId,
    /// Where the first record lies in the slot's log of its incarnation.
    pub start_lsn: Lsn,
    /// Stamp of the transaction that was live at the start, zero for none.
    pub stamp: Timestamp,
    /// Whole records.
    pub bytes: Vec<u8>,
    /// Where the chunk lies, for [`crate::BackwardRecords::from_chunk`].
    pub position: ChunkPosition,
}

impl Chunk {
    /// The records, in order.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.bytes, self.start_lsn)
    }
}

/// One complete round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundData {
    /// Its number.
    pub number: u64,
    /// The incarnation that wrote it.
    pub incarnation: u64,
    /// Commit timestamps below it were hardened by it.
    pub c: Timestamp,
    /// Records at or below it were durable by it.
    pub m: Gsn,
    /// Where it starts.
    pub position: LogPosition,
    /// In the order of the log; at most one piece of a slot, perhaps in several chunks.
    pub chunks: Vec<Chunk>,
}

#[derive(Debug)]
struct Segment {
    header: SegmentHeader,
    file: Arc<dyn File>,
    bytes: u64,
}

/// Reads rounds from a position on, through all later incarnations.
#[derive(Debug)]
pub struct LogReader {
    files: Arc<SegmentFiles>,
    /// Ascending by number.
    segments: Vec<Segment>,
    at: usize,
    offset: u64,
    expected: u64,
    /// Of the round read before; `None` where a reader starts behind rounds that it does not read.
    attempt: Option<u16>,
    /// How the incarnation that is read would end if nothing more came.
    last: Verdict,
    /// C and M of the round read before, in this incarnation.
    floor: (Timestamp, Gsn),
    ends: Vec<Verdict>,
    /// Where each slot's log goes on.
    slots: HashMap<SlotId, Lsn>,
    window: Window,
    segment_max: u64,
    incarnation_max: u64,
    /// Of the last flush that was read: the round that was durable before it, and the segment that it began in.
    last_flush: (u64, u64),
}

/// Bytes of a segment that were read ahead.
#[derive(Debug, Default)]
struct Window {
    segment: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    const READ_BYTES: u64 = 256 << 10;

    /// `length` bytes at `offset`; `None` beyond the segment's end.
    fn get(&mut self, segment: &Segment, offset: u64, length: usize) -> Result<Option<&[u8]>> {
        let end = offset + length as u64;
        if end > segment.bytes {
            return Ok(None);
        }
        let have = self.start..self.start + self.bytes.len() as u64;
        if self.segment != segment.header.segment || offset < have.start || end > have.end {
            let count = (length as u64)
                .max(Self::READ_BYTES)
                .min(segment.bytes - offset);
            // Whatever fails, the window then claims nothing.
            self.segment = 0;
            self.bytes.resize(count as usize, 0);
            segment.file.read_at(&mut self.bytes, offset)?;
            (self.segment, self.start) = (segment.header.segment, offset);
        }
        let at = (offset - self.start) as usize;
        Ok(Some(&self.bytes[at..at + length]))
    }
}

fn corrupt(file: &Arc<dyn File>, what: &'static str, expected: u64, found: u64) -> StorageError {
    StorageError::Corruption {
        file: file.name().clone(),
        page: None,
        what,
        expected,
        found,
    }
}

/// What a frame says under a right checksum, and cannot be.
fn impossible_in(file: &Arc<dyn File>, found: u64) -> StorageError {
    corrupt(file, "numbers of a log round", NUMBER_MAX, found)
}

/// A header is synced before the first round behind it is written: a file without a header that has
/// a round of a later segment than any with one had a header. (A middle segment is missed by
/// what follows it.)
fn check_headless(file: &Arc<dyn File>, segment_max: u64) -> Result<()> {
    if file.len()? < 2 * BLOCK_BYTES {
        return Ok(());
    }
    let mut head = [0; CHUNK_HEADER_BYTES];
    file.read_at(&mut head, BLOCK_BYTES)?;
    let mut segment = [0; 8];
    segment.copy_from_slice(&head[8..16]);
    let segment = u64::from_le_bytes(segment);
    if segment > segment_max && evidence(&head, segment).is_some() {
        return Err(corrupt(file, "header of log segment", segment, 0));
    }
    Ok(())
}

impl LogReader {
    /// A reader that starts at `from`, the position of a checkpoint, where `known` (horizon, durable
    /// GSN, last round) held. Defaults of both read everything there is; a position with a segment but without a
    /// round is the start of that segment.
    ///
    /// # Errors
    /// `Corruption` if the segment is missing, `ForeignFormat`, `Io`.
    pub fn open(dir: &dyn Directory, from: LogPosition, known: Verdict) -> Result<Self> {
        let found = if dir.exists("log")? {
            scan(dir, OpenOptions::read_only())?
        } else {
            Vec::new()
        };
        let named = [from.segment, from.offset, from.round, known.incarnation];
        let held = [known.last_round, known.c.0, known.m.0];
        if let Some(found) = impossible(&named).or_else(|| impossible(&held)) {
            return Err(StorageError::Corruption {
                file: "log".into(),
                page: None,
                what: "numbers of a log position",
                expected: NUMBER_MAX,
                found,
            });
        }
        let files = Arc::new(SegmentFiles::default());
        let (mut segments, mut headless) = (Vec::new(), Vec::new());
        let (mut segment_max, mut incarnation_max) = (0, known.incarnation);
        for Found { file, header, .. } in found {
            let Some(header) = header else {
                headless.push(file);
                continue;
            };
            segment_max = segment_max.max(header.segment);
            incarnation_max = incarnation_max.max(header.incarnation);
            if header.segment >= from.segment {
                // A segment has its length, durably, before it gets its header: one that is shorter was cut, and
                // rounds that were acknowledged may be gone with nothing behind them to tell of it.
                let (bytes, found) = (header.segment_bytes, file.len()?);
                if found < bytes {
                    return Err(corrupt(&file, "length of log segment", bytes, found));
                }
                files.insert(header.segment, file.clone());
                segments.push(Segment {
                    header,
                    file,
                    bytes,
                });
            }
        }
        for file in headless {
            check_headless(&file, segment_max)?;
        }
        segments.sort_by_key(|segment| segment.header.segment);
        for pair in segments.windows(2) {
            let (a, b) = (&pair[0].header, &pair[1].header);
            if a.segment == b.segment || a.incarnation > b.incarnation {
                return Err(corrupt(
                    &pair[1].file,
                    "order of segments",
                    a.segment,
                    b.segment,
                ));
            }
        }
        let mut reader = Self {
            files,
            segments,
            at: 0,
            offset: from.offset,
            expected: from.round,
            attempt: None,
            last: known,
            floor: Default::default(),
            ends: Vec::new(),
            slots: HashMap::default(),
            window: Window::default(),
            segment_max,
            incarnation_max,
            last_flush: (u64::MAX, 0),
        };
        match reader.segments.first() {
            Some(first)
                if from.segment == 0
                    || (from.round == 0 && first.header.segment == from.segment) =>
            {
                let header = first.header;
                reader.begin(header);
                // The segment may start in the middle of an incarnation, and of a flush.
                reader.attempt = None;
            }
            Some(first) if first.header.segment == from.segment => {
                // Rounds start at blocks behind the header; the last may have filled the segment.
                let within = (BLOCK_BYTES..=first.bytes).contains(&from.offset);
                if !within || !from.offset.is_multiple_of(BLOCK_BYTES) {
                    let what = "offset of the first round to redo";
                    return Err(corrupt(&first.file, what, first.bytes, from.offset));
                }
                reader.last.incarnation = first.header.incarnation;
                reader.last.last_round = from.round.saturating_sub(1);
            }
            None if from.segment == 0 => {}
            _ => {
                return Err(reader.files.get(from.segment).err().unwrap_or(
                    StorageError::Corruption {
                        file: "log".into(),
                        page: None,
                        what: "first log segment",
                        expected: from.segment,
                        found: 0,
                    },
                ));
            }
        }
        Ok(reader)
    }

    /// Goes to the start of an incarnation.
    fn begin(&mut self, header: SegmentHeader) {
        self.offset = BLOCK_BYTES;
        self.expected = header.first_round;
        self.attempt = Some(0);
        self.slots.clear();
        self.floor = Default::default();
        self.last = Verdict {
            incarnation: header.incarnation,
            last_round: header.first_round - 1,
            c: header.previous.c.max(self.last.c),
            m: header.previous.m.max(self.last.m),
        };
    }

    /// The next complete round, `None` behind the last one of the last incarnation.
    ///
    /// # Errors
    /// `Corruption` for a hole that was durable, `Io`.
    pub fn next_round(&mut self) -> Result<Option<RoundData>> {
        loop {
            let Some(segment) = self.segments.get(self.at) else {
                return Ok(None);
            };
            let incarnation = segment.header.incarnation;
            let fixed = self.verdict_on_disk(incarnation);
            if fixed.is_some_and(|verdict| self.expected > verdict.last_round) {
                self.end_incarnation(fixed);
                continue;
            }
            // The last one, if there are several: a flush that failed left those between.
            let takes_over = |segment: &Segment| {
                segment.header.incarnation == incarnation
                    && segment.header.first_round <= self.expected
            };
            if let Some(at) = self.segments.iter().rposition(takes_over)
                && at > self.at
            {
                self.at = at;
                self.offset = BLOCK_BYTES;
                continue;
            }
            if let Some(round) = self.read_round()? {
                return Ok(Some(round));
            }
            let durable = self
                .durable_by(incarnation)?
                .max(fixed.map_or(0, |v| v.last_round));
            if durable >= self.expected {
                let file = &self.segments[self.at].file;
                return Err(corrupt(
                    file,
                    "durable log round is damaged",
                    self.expected,
                    durable,
                ));
            }
            self.end_incarnation(None);
        }
    }

    fn verdict_on_disk(&self, incarnation: u64) -> Option<Verdict> {
        self.segments
            .iter()
            .map(|segment| segment.header.previous)
            .find(|previous| previous.incarnation == incarnation && incarnation != 0)
    }

    fn end_incarnation(&mut self, fixed: Option<Verdict>) {
        let incarnation = self.segments[self.at].header.incarnation;
        self.last = fixed.unwrap_or(self.last);
        self.ends.push(self.last);
        let ended = |segment: &&Segment| segment.header.incarnation <= incarnation;
        self.at = self.segments.iter().take_while(ended).count();
        if let Some(next) = self.segments.get(self.at) {
            let header = next.header;
            self.begin(header);
        }
    }

    /// The round that is expected at the current place, if it is whole.
    fn read_round(&mut self) -> Result<Option<RoundData>> {
        let segment = &self.segments[self.at];
        let number = segment.header.segment;
        let limit = segment.bytes.min(self.offset + ROUND_BYTES_MAX as u64);
        let (mut at, mut crc, mut chunks) = (self.offset, 0, Vec::new());
        let mut attempt = None;
        loop {
            // A trailer is shorter than a chunk header, and may end the segment.
            let Some(head) = self.window.get(segment, at, TRAILER_BYTES)? else {
                return Ok(None);
            };
            if let Some(trailer) = Trailer::decode(head, number) {
                if let Some(found) = trailer.impossible() {
                    return Err(impossible_in(&segment.file, found));
                }
                let end = at + TRAILER_BYTES as u64;
                let whole = trailer.round == self.expected
                    && trailer.chunks as usize == chunks.len()
                    && trailer.chunks_crc == crc
                    && u64::from(trailer.bytes) == align_block(end - self.offset)
                    && trailer.attempt == *attempt.get_or_insert(trailer.attempt)
                    && self.attempt_fits(trailer.attempt, trailer.last_durable)
                    && trailer.c >= self.floor.0
                    && trailer.m >= self.floor.1;
                return Ok(whole.then(|| self.accept(trailer, chunks)));
            }
            let Some(head) = self.window.get(segment, at, CHUNK_HEADER_BYTES)? else {
                return Ok(None);
            };
            let Some((header, header_crc)) = ChunkHeader::decode(head, number) else {
                return Ok(None);
            };
            if let Some(found) = header.impossible() {
                return Err(impossible_in(&segment.file, found));
            }
            let start = at + CHUNK_HEADER_BYTES as u64;
            let length = header.length as usize;
            let next = start + align8(length) as u64;
            if header.round != self.expected
                || !self.attempt_fits(header.attempt, header.last_durable)
                || header.attempt != *attempt.get_or_insert(header.attempt)
                || next > limit
            {
                return Ok(None);
            }
            let Some(bytes) = self.window.get(segment, start, length)? else {
                return Ok(None);
            };
            if records_crc(number, bytes) != header.records_crc {
                return Ok(None);
            }
            let chunk = Chunk {
                slot: header.slot,
                start_lsn: header.start,
                stamp: header.stamp,
                bytes: bytes.to_vec(),
                position: ChunkPosition {
                    segment: number,
                    offset: at as u32,
                    length: header.length,
                    start: header.start,
                },
            };
            let mut records = chunk.records();
            (&mut records).for_each(drop);
            let before = chunks.iter().rev().find(|c: &&Chunk| c.slot == chunk.slot);
            let continues = match before {
                Some(chunk) => Some(chunk.position.end()),
                None => self.slots.get(&chunk.slot).copied(),
            };
            if records.is_broken() || continues.is_some_and(|lsn| lsn != chunk.start_lsn) {
                // The crcs are right: this is no tear.
                let (expected, found) = (continues.unwrap_or_default().0, chunk.start_lsn.0);
                return Err(corrupt(&segment.file, "log chunk", expected, found));
            }
            crc = chain_crc(crc, header_crc);
            chunks.push(chunk);
            at = next;
        }
    }

    /// A failed flush is repeated as a whole: a higher attempt begins at the first round of a flush, where
    /// the round before was durable. Elsewhere the round before is a leftover that was to
    /// be overwritten, and the two do not belong together.
    fn attempt_fits(&self, attempt: u16, last_durable: u64) -> bool {
        self.attempt.is_none_or(|before| {
            attempt == before || (attempt > before && last_durable + 1 == self.expected)
        })
    }

    fn accept(&mut self, trailer: Trailer, chunks: Vec<Chunk>) -> RoundData {
        let header = self.segments[self.at].header;
        let position = LogPosition {
            segment: header.segment,
            offset: self.offset,
            round: trailer.round,
        };
        for chunk in &chunks {
            self.slots.insert(chunk.slot, chunk.position.end());
        }
        self.offset += u64::from(trailer.bytes);
        self.expected += 1;
        self.attempt = Some(trailer.attempt);
        if self.last_flush.0 != trailer.last_durable {
            self.last_flush = (trailer.last_durable, header.segment);
        }
        let (number, incarnation) = (trailer.round, header.incarnation);
        let (c, m) = (trailer.c, trailer.m);
        self.floor = (c, m);
        self.last = Verdict {
            incarnation,
            last_round: number,
            c: c.max(self.last.c),
            m: m.max(self.last.m),
        };
        RoundData {
            number,
            incarnation,
            c,
            m,
            position,
            chunks,
        }
    }

    /// The highest round that a frame from the current place on, in this incarnation, says was
    /// durable.
    ///
    /// Rounds start at blocks, with a frame, and each takes a block at least: nothing else is believed. Behind a hole nothing says where frames
    /// end and what users wrote begins, and a value may look like a frame.
    fn durable_by(&mut self, incarnation: u64) -> Result<u64> {
        let mut durable = 0;
        let mut from = self.offset;
        // Bytes of the segments that are done with.
        let mut passed = 0;
        for segment in &self.segments[self.at..] {
            if segment.header.incarnation != incarnation {
                break;
            }
            // The header of the segment with the hole was written before the hole.
            durable = durable.max(segment.header.last_durable);
            let mut at = from;
            while at < segment.bytes {
                let count = Window::READ_BYTES.min(segment.bytes - at);
                let Some(bytes) = self.window.get(segment, at, count as usize)? else {
                    break;
                };
                for offset in (0..bytes.len()).step_by(BLOCK_BYTES as usize) {
                    let found = evidence(&bytes[offset..], segment.header.segment);
                    let blocks = (passed + at + offset as u64 - from) / BLOCK_BYTES;
                    let possible = |found: &Evidence| {
                        found.last_durable < found.round
                            && (self.expected..=self.expected + blocks).contains(&found.round)
                    };
                    if let Some(found) = found.filter(possible) {
                        durable = durable.max(found.last_durable);
                    }
                }
                // The overlap finds a header that the end of this piece cut.
                at += if at + count < segment.bytes {
                    count - BLOCK_BYTES
                } else {
                    count
                };
            }
            passed += segment.bytes - from;
            from = BLOCK_BYTES;
        }
        Ok(durable)
    }

    /// Makes the last flush that was read durable, which a process that was killed may have written and not synced: for
    /// who acts upon it before an incarnation names it. (Each flush names the rounds before it as durable.)
    ///
    /// # Errors
    /// `Io`: the directory is poisoned.
    pub fn make_durable(&self) -> Result<()> {
        for segment in &self.segments {
            if segment.header.segment >= self.last_flush.1 {
                segment.file.sync_data()?;
            }
        }
        Ok(())
    }

    /// How the incarnations that were read completely ended, in order.
    pub fn ends(&self) -> &[Verdict] {
        &self.ends
    }

    /// The files, for [`crate::BackwardRecords::from_chunk`].
    pub fn files(&self) -> &Arc<SegmentFiles> {
        &self.files
    }

    /// What the next incarnation starts with, once everything was read. Segments from
    /// `keep_from_segment` on are kept.
    pub fn start_after(&self, keep_from_segment: u64) -> LogStart {
        let previous = self.ends.last().copied().unwrap_or(self.last);
        LogStart {
            incarnation: self.incarnation_max + 1,
            first_gsn: Gsn(previous.m.0 + 1),
            next_round: previous.last_round + 1,
            next_segment: self.segment_max + 1,
            horizon: previous.c,
            previous,
            keep_from_segment,
        }
    }
}
