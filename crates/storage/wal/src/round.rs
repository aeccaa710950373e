//! The flush round (R7): a consistent cut through all slots, made durable by one sync.
//!
//! 1. Read the clock: C.
//! 2. Pass 1: M is the maximum of the active slots' GSNs.
//! 3. Publish M.
//! 4. Pass 2, under each latch: raise the slot to M, take its end, lower C to its pending timestamp.
//! 5. Lay the new bytes out as chunks and write them. The slots have their room in the rings again: who waited for it goes on.
//! 6. Sync, publish M (durable GSN) and C (hardened horizon).
//!
//! Content that does not fit the write buffer or the rest of the segment becomes several rounds on
//! disk; all but the last repeat the C and M of the round before, so that nothing of them counts
//! until the last one is complete.
//!
//! Invariants:
//! - I1 Every record with a GSN at or below M, and every commit record with a timestamp below C, lies
//!   in this round or an earlier one.
//! - I2 What was not synced is not published. A round of which a write failed is written again,
//!   with the same number at the same place and a higher attempt, from the rings, which keep all of it until its last write has
//!   returned. A failed sync is the end, and so is the last attempt that can be numbered, which is days away: a device that goes
//!   on failing is left alone for ever longer ([`pause_after`]). What a round takes from slots goes back to them if it fails.
//! - I3 Rounds that would write nothing write nothing: nothing was appended, and all that is on
//!   disk counts already under the round before (`clean`).
//!
//! Concurrency: one leader at a time (`group`); slot latches one by one; appending goes on
//! all the time, into the rings. The bytes `flushed..taken` of a ring do not change until
//! `flushed` moves, which only step 5 does, at its end.

use std::sync::Arc;
use std::time::Duration;
use vellum_base::planted::{self, Bug};

use vellum_base::{Gsn, Lsn, Result, SlotId, StorageError, Timestamp};
use vellum_io::{AlignedBuf, File};
use vellum_sync::atomic::{Ordering, fence};
use vellum_sync::rank::{Rank, RankToken};

use crate::config::{BLOCK_BYTES, ChunkPosition, LogPosition, Round};
use crate::core::Core;
use crate::frame::{
    CHUNK_HEADER_BYTES, ChunkHeader, TRAILER_BYTES, Trailer, align_block, align8, chain_crc,
    records_crc,
};
use crate::gather::now;
use crate::segment::Place;
use crate::slot::{Extent, SlotState};

/// Attempts of an incarnation that may fail before the device is left alone behind one.
const QUICK_ATTEMPTS: u16 = 4096;
/// How long it is left alone at most.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How long after an attempt failed the next one is made, at the earliest, if there were `attempts` of them: a millisecond longer each time. A device that
/// fails for an hour is asked again within three seconds; all attempts that can be numbered last for six days.
fn pause_after(attempts: u16) -> Duration {
    let longer = attempts.saturating_sub(QUICK_ATTEMPTS);
    PAUSE_MAX.min(Duration::from_millis(longer.into()))
}

/// Longest round on disk.
pub(crate) const ROUND_BYTES_MAX: usize = 1 << 20;

/// New bytes of one slot.
#[derive(Clone, Copy, Debug)]
struct Piece {
    slot: SlotId,
    from: Lsn,
    to: Lsn,
    stamp: Timestamp,
    before: ChunkPosition,
    /// Bytes set aside for undoing what is in the piece, by the transaction `live`.
    aside: u64,
    live: Timestamp,
    tax: u64,
}

/// What the leader owns from round to round.
#[derive(Debug)]
pub(crate) struct RoundState {
    buffer: AlignedBuf,
    pieces: Vec<Piece>,
    written: Vec<(usize, ChunkPosition)>,
    unsynced: Vec<Arc<dyn File>>,
    /// Number of the next round.
    pub next: u64,
    /// C and M of the last round on disk.
    c: Timestamp,
    m: Gsn,
    /// See I3.
    clean: bool,
    attempt: u16,
    /// The last attempt failed, with this error and at this time, perhaps after it took a segment into use for a later round.
    failed: Option<(StorageError, u64)>,
}

/// A round on disk being filled.
struct Part {
    place: Place,
    number: u64,
    room: usize,
    used: usize,
    chunks: u32,
    crc: u32,
}

impl RoundState {
    pub fn new(buffer_bytes: usize, next: u64, c: Timestamp, m: Gsn) -> Result<Self> {
        Ok(Self {
            buffer: AlignedBuf::zeroed(buffer_bytes)?,
            pieces: Vec::new(),
            written: Vec::new(),
            unsynced: Vec::new(),
            next,
            c,
            m,
            clean: true,
            attempt: 0,
            failed: None,
        })
    }

    /// What the last attempt failed with, where it is too early for another: there are only so many.
    fn too_early(&self) -> Option<StorageError> {
        let (error, at) = self.failed.as_ref()?;
        let pause = pause_after(self.attempt);
        (Duration::from_nanos(now() - at) < pause).then(|| error.clone())
    }
}

/// What a round found out beyond its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub round: Round,
    /// The clock was read as this; C is lower if a pending timestamp held it back.
    pub clock: Timestamp,
}

impl Core {
    /// Runs one round. The caller is the leader.
    pub fn run_round(&self) -> Result<Outcome> {
        let mut guard = self.round.lock();
        let state = &mut *guard;
        if self.segments.poisoned() {
            return Err(StorageError::Poisoned);
        }
        if let Some(error) = state.too_early() {
            return Err(error);
        }
        let clock = (self.clock)();
        vellum_sync::test_point!("round: clock read");
        let (c, m, above) = self.visit_all(state, clock);
        vellum_sync::test_point!("round: slots visited");
        let clean = !above && c == clock && (self.clock)() == clock;
        let mut round = Round {
            number: state.next - 1,
            c,
            m,
            bytes: 0,
        };
        if state.pieces.is_empty() && state.clean {
            self.publish(c, m);
            self.statistics.rounds_empty.add(1);
            return Ok(Outcome { round, clock });
        }
        let next = state.next;
        match self.write_all(state, c, m) {
            Ok((place, bytes)) => {
                let back = self.hand_out(state);
                self.ring_reached();
                vellum_sync::test_point!("round: written");
                self.sync_all(state)?;
                state.clean = clean;
                state.failed = None;
                (state.c, state.m) = (c, m);
                round.bytes = bytes;
                round.number = state.next - 1;
                let (segment, offset) = (place.segment, place.offset);
                let position = LogPosition {
                    segment,
                    offset,
                    round: state.next,
                };
                self.segments.advance(position, back);
                self.publish(c, m);
                self.statistics.rounds.add(1);
                self.statistics.bytes_written.add(bytes);
                Ok(Outcome { round, clock })
            }
            Err(error) => {
                state.next = next;
                // What the failed attempt left in the segment is void, but it is not nothing.
                state.clean = false;
                state.failed = Some((error.clone(), now()));
                self.put_back(state);
                match state.attempt.checked_add(1) {
                    Some(attempt) => {
                        state.attempt = attempt;
                        Err(error)
                    }
                    // Another one could not be told from what this one left. Who leads rounds takes this as the end.
                    None => Err(StorageError::Poisoned),
                }
            }
        }
    }

    /// Gives the slots of a round that failed back what [`Core::visit`] took from them: the next round takes it again.
    fn put_back(&self, state: &RoundState) {
        let mut back = 0;
        for piece in &state.pieces {
            let _rank = RankToken::acquire(Rank::SlotLatch);
            let mut slot = self.cell(piece.slot).state.lock();
            debug_assert_eq!(slot.ring.flushed(), piece.from, "nothing was handed out");
            slot.chunk_stamp = piece.stamp;
            if piece.tax > 0 && slot.taxed {
                // The slot reserved meanwhile, and was granted another one.
                back += piece.tax;
            }
            slot.taxed |= piece.tax > 0;
            let live = slot
                .live
                .as_ref()
                .map_or(Timestamp::ZERO, |live| live.stamp);
            // What was set aside for a transaction that has ended is free already.
            if live == piece.live {
                slot.aside_unflushed += piece.aside;
            }
        }
        if back > 0 {
            self.segments.give_back(back);
        }
    }

    /// Steps 2 to 4. Returns C, M and whether any slot was above M in pass 2.
    fn visit_all(&self, state: &mut RoundState, clock: Timestamp) -> (Timestamp, Gsn, bool) {
        let mut m = self.published_m.load(Ordering::Relaxed);
        m = m.max(self.requested_m.load(Ordering::Relaxed));
        self.bits.for_each(|slot| {
            let _rank = RankToken::acquire(Rank::SlotLatch);
            m = m.max(self.cell(slot).state.lock().gsn);
        });
        // Release: who activates and reads this M may rely on everything below it having been drawn.
        self.published_m.store(m, Ordering::Release);
        // Pairs with the fence in `Core::activate`.
        fence(Ordering::SeqCst);
        let (mut c, mut above, mut returned) = (clock, false, 0);
        state.pieces.clear();
        self.bits.for_each(|slot| {
            let _rank = RankToken::acquire(Rank::SlotLatch);
            let mut cell = self.cell(slot).state.lock();
            above |= cell.gsn > m;
            cell.gsn = cell.gsn.max(m);
            if !cell.pending.is_zero() {
                c = c.min(cell.pending);
            }
            self.visit(slot, &mut cell, &mut state.pieces, &mut returned);
        });
        if returned > 0 {
            self.segments.give_back(returned);
        }
        // The horizon never goes back: a pending timestamp was drawn after the clock was read for
        // the horizon that is published.
        (c.max(self.group.horizon()), Gsn(m), above)
    }

    /// Takes a slot's new bytes, or puts the slot to rest.
    fn visit(&self, slot: SlotId, cell: &mut SlotState, pieces: &mut Vec<Piece>, back: &mut u64) {
        debug_assert!(cell.active);
        *back += cell.allowance - cell.promised;
        cell.allowance = cell.promised;
        let (from, to) = (cell.ring.flushed(), cell.ring.end());
        let live = cell
            .live
            .as_ref()
            .map_or(Timestamp::ZERO, |live| live.stamp);
        let quiet = cell.promised == 0 && live.is_zero();
        if from < to {
            let tax = if quiet && cell.taxed { BLOCK_BYTES } else { 0 };
            cell.taxed &= !quiet;
            let stamp = cell.chunk_stamp;
            cell.chunk_stamp = live;
            let aside = std::mem::take(&mut cell.aside_unflushed);
            let before = cell.last_chunk;
            pieces.push(Piece {
                slot,
                from,
                to,
                stamp,
                before,
                aside,
                live,
                tax,
            });
        } else if quiet && cell.pending.is_zero() {
            debug_assert!(cell.aside == 0, "space is set aside for no transaction");
            if cell.taxed {
                *back += BLOCK_BYTES;
            }
            cell.taxed = false;
            cell.active = false;
            self.rings.rest(&mut cell.ring);
            self.bits.clear(slot);
        }
    }

    /// Step 5, the writing. Returns where the next round starts, and the bytes written.
    fn write_all(&self, state: &mut RoundState, c: Timestamp, m: Gsn) -> Result<(Place, u64)> {
        state.written.clear();
        state.unsynced.clear();
        let durable = state.next - 1;
        let mut bytes = 0;
        let mut place = self.segments.place();
        if state.failed.is_some() && place.offset == BLOCK_BYTES {
            place = self.segments.relabel(state.next, durable)?;
        }
        let mut part = self.start_part(state, place, durable)?;
        for index in 0..state.pieces.len() {
            let mut from = state.pieces[index].from;
            while from < state.pieces[index].to {
                if let Some(to) = self.put_chunk(state, &mut part, index, from, durable) {
                    from = to;
                    continue;
                }
                let (full, segment_full) = (part.chunks > 0, part.room < state.buffer.len());
                if !full && part.place.offset == BLOCK_BYTES {
                    return Err(StorageError::MemoryLimit { what: "log record" });
                }
                if full {
                    let (old_c, old_m) = (state.c, state.m);
                    bytes += self.finish_part(state, &mut part, durable, old_c, old_m)?;
                }
                let place = if segment_full {
                    self.segments.switch(state.next, durable)?
                } else {
                    part.place
                };
                part = self.start_part(state, place, durable)?;
            }
        }
        bytes += self.finish_part(state, &mut part, durable, c, m)?;
        Ok((part.place, bytes))
    }

    /// Step 6, the sync. An error is the end of the log: the rings no longer have what was written.
    fn sync_all(&self, state: &mut RoundState) -> Result<()> {
        for file in std::mem::take(&mut state.unsynced) {
            if planted::has(Bug::LogNotSynced) {
                continue;
            }
            if let Err(error) = file.sync_data() {
                // A failed sync poisons the directory; not so one that a simulated machine refuses after it has lost power. The log ends either way.
                return Err(if self.segments.poisoned() {
                    error
                } else {
                    StorageError::Poisoned
                });
            }
        }
        Ok(())
    }

    fn start_part(&self, state: &RoundState, place: Place, durable: u64) -> Result<Part> {
        let rest = self.config.segment_bytes - place.offset;
        let place = if rest < BLOCK_BYTES {
            self.segments.switch(state.next, durable)?
        } else {
            place
        };
        let rest = self.config.segment_bytes - place.offset;
        let room = (rest as usize).min(state.buffer.len());
        Ok(Part {
            place,
            number: state.next,
            room,
            used: 0,
            chunks: 0,
            crc: 0,
        })
    }

    /// Copies as many whole records of a piece as fit into a chunk. Returns where to go on; `None` if
    /// not even one fits.
    fn put_chunk(
        &self,
        state: &mut RoundState,
        part: &mut Part,
        index: usize,
        from: Lsn,
        durable: u64,
    ) -> Option<Lsn> {
        let piece = state.pieces[index];
        let at = part.used + CHUNK_HEADER_BYTES;
        let room = part.room.checked_sub(at + TRAILER_BYTES + 8)?;
        let want = (piece.to.0 - from.0) as usize;
        let take = want.min(room);
        {
            let _rank = RankToken::acquire(Rank::SlotLatch);
            let cell = self.cell(piece.slot).state.lock();
            cell.ring.copy_to(from, &mut state.buffer[at..at + take]);
        }
        let records = &state.buffer[at..at + take];
        let take = if take == want {
            take
        } else {
            whole_records(records)
        };
        if take == 0 {
            return None;
        }
        let header = ChunkHeader {
            segment: part.place.segment,
            round: part.number,
            last_durable: durable,
            start: from,
            stamp: if from == piece.from {
                piece.stamp
            } else {
                piece.live
            },
            length: take as u32,
            records_crc: records_crc(part.place.segment, &records[..take]),
            slot: piece.slot,
            attempt: state.attempt,
            before_segment: piece.before.segment,
            before_offset: piece.before.offset,
            before_start: piece.before.start,
        };
        let crc = header.encode(&mut state.buffer[part.used..at]);
        let position = ChunkPosition {
            segment: part.place.segment,
            offset: (part.place.offset + part.used as u64) as u32,
            length: take as u32,
            start: from,
        };
        state.pieces[index].before = position;
        state.written.push((index, position));
        part.crc = chain_crc(part.crc, crc);
        part.chunks += 1;
        part.used = at + align8(take);
        state.buffer[at + take..part.used].fill(0);
        Some(Lsn(from.0 + take as u64))
    }

    /// Closes a part with its trailer and writes it.
    fn finish_part(
        &self,
        state: &mut RoundState,
        part: &mut Part,
        durable: u64,
        c: Timestamp,
        m: Gsn,
    ) -> Result<u64> {
        let end = part.used + TRAILER_BYTES;
        let bytes = align_block(end as u64);
        debug_assert!(bytes <= part.room as u64);
        let trailer = Trailer {
            segment: part.place.segment,
            round: part.number,
            last_durable: durable,
            c,
            m,
            bytes: bytes as u32,
            chunks: part.chunks,
            chunks_crc: part.crc,
            attempt: state.attempt,
        };
        trailer.encode(&mut state.buffer[part.used..end]);
        state.buffer[end..bytes as usize].fill(0);
        part.place
            .file
            .write_at(&state.buffer[..bytes as usize], part.place.offset)?;
        if !state
            .unsynced
            .iter()
            .any(|file| Arc::ptr_eq(file, &part.place.file))
        {
            state.unsynced.push(part.place.file.clone());
        }
        part.place.offset += bytes;
        state.next += 1;
        Ok(bytes)
    }

    /// Step 5, for the slots: their bytes are found in the files from now on, and their rings have room. Returns how much space
    /// was held for what was written; it is given back once it is durable.
    fn hand_out(&self, state: &RoundState) -> u64 {
        let mut back = 0;
        for at in 0..state.written.len() {
            let (index, chunk) = state.written[at];
            let piece = &state.pieces[index];
            let last = chunk.end() == piece.to;
            back += u64::from(chunk.length) + if last { piece.tax } else { 0 };
            self.statistics.bytes_records.add(u64::from(chunk.length));
            let cell = self.cell(piece.slot);
            let _rank = RankToken::acquire(Rank::SlotLatch);
            let mut slot = cell.state.lock();
            slot.ring.set_flushed(chunk.end());
            slot.last_chunk = chunk;
            if let Some(live) = &mut slot.live
                && chunk.end() > live.first
            {
                let same = live
                    .extents
                    .back()
                    .is_some_and(|e| e.segment == chunk.segment);
                if !same {
                    let (segment, first) = (chunk.segment, chunk.start.max(live.first));
                    live.extents.push_back(Extent {
                        segment,
                        first,
                        last: chunk,
                        aside: 0,
                    });
                }
                let extent = live
                    .extents
                    .back_mut()
                    .expect("pushed where it was missing");
                extent.last = chunk;
                if last && live.stamp == piece.live {
                    extent.aside += piece.aside;
                }
            }
            // Release: pairs with the acquire load in `Group::covered`.
            cell.flushed.store(chunk.end().0, Ordering::Release);
        }
        self.statistics.chunks.add(state.written.len() as u64);
        back
    }

    /// Step 6, for everybody.
    fn publish(&self, c: Timestamp, m: Gsn) {
        self.group.publish(c, m);
    }
}

/// Bytes of the whole records at the front of `bytes`, which are this process's own.
fn whole_records(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        let length = u32::from_le_bytes(*head) as usize;
        debug_assert!(length >= crate::record::RECORD_HEADER_BYTES);
        if at + length > bytes.len() {
            break;
        }
        at += length;
    }
    at
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use vellum_base::{Gsn, PageId, SlotId, StorageError, Timestamp};
    use vellum_io::{Call, Fault, SimulatedDirectory};

    use super::{PAUSE_MAX, QUICK_ATTEMPTS, pause_after};
    use crate::{Log, LogConfig, LogStart, RECORD_HEADER_BYTES, RecordHeader};

    /// A log with a record that no round has written, in which so many attempts have failed.
    // Clippy does not take a module for tests' whose condition is more than that.
    #[allow(clippy::unwrap_used)]
    fn log_behind_attempts(attempts: u16) -> (SimulatedDirectory, Log) {
        let dir = SimulatedDirectory::new();
        let config = LogConfig {
            slots_max: 4,
            slot_buffer_bytes: 16 << 10,
            segment_bytes: 64 << 10,
            log_bytes_max: 256 << 10,
        };
        let clock = Arc::new(|| Timestamp(1));
        let log = Log::create(Arc::new(dir.clone()), config, clock, LogStart::first()).unwrap();
        log.core.round.lock().attempt = attempts;
        let slot = log.slot(SlotId(0));
        slot.reserve(RECORD_HEADER_BYTES).unwrap();
        let mut guard = slot.lock();
        let header = RecordHeader {
            kind: 16,
            flags: 0,
            page: PageId(1),
            tree: PageId(1),
            gsn: guard.draw(Gsn::ZERO),
        };
        guard.append(&header, &[], &[]);
        drop(guard);
        (dir, log)
    }

    #[test]
    fn regress_log_ends_with_the_last_attempt_that_can_be_numbered() {
        let (dir, log) = log_behind_attempts(u16::MAX);
        dir.fail(Fault::nth(Call::Write, 0).on("log/"));
        assert!(!log.has_failed());
        assert!(log.flush_round().is_err());
        assert!(log.has_failed(), "who does not wait for rounds is told");
        dir.clear_faults();
        for _ in 0..2 {
            let again = log.flush_round();
            assert!(matches!(again, Err(StorageError::Poisoned)), "{again:?}");
        }
    }

    /// Symptom: a device that took no writes for a minute ended the log, though it took them again. Cause: nothing kept attempts apart, and the last
    /// that can be numbered came within seconds. Guard: the more there were, the later the next one is made.
    #[test]
    fn regress_attempts_outlast_a_device_that_fails_for_days() {
        let before_failure = (0..QUICK_ATTEMPTS).map(pause_after);
        assert!(before_failure.sum::<Duration>().is_zero());
        let all: Duration = (0..u16::MAX).map(pause_after).sum();
        assert!(all > 5 * Duration::from_secs(24 * 60 * 60), "{all:?}");
        assert_eq!(pause_after(u16::MAX), PAUSE_MAX);
    }

    #[test]
    fn device_that_goes_on_failing_is_left_alone_for_a_while_and_then_asked_again() {
        let (dir, log) = log_behind_attempts(QUICK_ATTEMPTS + 299);
        dir.fail(Fault::nth(Call::Write, 0).on("log/"));
        let began = Instant::now();
        assert!(log.flush_round().is_err());
        let calls = dir.mutating_calls();
        let round = loop {
            match log.flush_round() {
                Ok(round) => break round,
                Err(error) => assert!(matches!(error, StorageError::Io { .. }), "{error}"),
            }
            assert_eq!(dir.mutating_calls(), calls);
        };
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(300), "{took:?}");
        assert!(round.bytes > 0 && !log.has_failed());
        assert!(log.core.round.lock().failed.is_none());
    }
}
