//! One slot's log: its latch, its ring, and what it knows of the live transaction.
//!
//! States of a slot: idle (costs a round nothing) --[`Cell::lock`]--> active --round, nothing
//! left to write, no transaction, no promise--> idle.
//!
//! Invariants:
//! - I1 An append by a slot lies above every M whose round did not include it (R7). An active slot
//!   is visited by every round and raised to M. An idle slot sets its bit, then reads the
//!   published M; a round publishes M, then reads the bits: one of the two sees the other (a
//!   Dekker pair, closed by sequentially consistent fences).
//! - I2 Idle: nothing unflushed, no transaction, nothing granted.
//! - I3 What `reserve` promised stays granted until it is appended, superseded or withdrawn.
//!
//! Concurrency: everything in [`SlotState`] is under the slot's latch. `flushed` mirrors the ring's
//! for waiters; a stale value costs them another look.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use vellum_base::{Gsn, Lsn, SlotId, StorageError, Timestamp};
use vellum_sync::atomic::{AtomicU64, Ordering, fence};
use vellum_sync::rank::{Rank, RankToken};
use vellum_sync::{Mutex, MutexGuard};

use crate::backward::{BackwardRecords, RingTail};
use crate::config::{BLOCK_BYTES, ChunkPosition, Purpose};
use crate::core::Core;
use crate::record::{
    FLAG_COMPENSATION, FLAG_UNDOABLE, RECORD_HEADER_BYTES, REDO_BYTES_MAX, RecordHeader,
};
use crate::ring::Ring;

/// The part of a live transaction's records that lies in one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub segment: u64,
    /// Lsn of the first byte of the slot's log in the segment.
    pub first: Lsn,
    /// The slot's last chunk in the segment.
    pub last: ChunkPosition,
    /// Bytes set aside for undoing what lies there.
    pub aside: u64,
}

/// The live transaction of a slot.
#[derive(Debug)]
pub(crate) struct Live {
    pub stamp: Timestamp,
    pub first: Lsn,
    /// Records below are carried forward: undo finds them elsewhere.
    pub carried: Lsn,
    /// A compensation record was appended.
    pub compensated: bool,
    /// The lowest GSN that a compensation record named since the last [`SlotLog::carry`], `Gsn::MAX`
    /// for none. Not since ever: what is written after a rollback to a savepoint lies above what was
    /// compensated, and is not void.
    pub lowest_compensated: Gsn,
    /// What that was at the last [`SlotLog::carry`], until [`SlotGuard::set_carried`] says that the copies
    /// that it voided are gone.
    pub void_copies: Gsn,
    /// Ascending by segment; at most one a segment of the log.
    pub extents: VecDeque<Extent>,
}

/// What is to be read to carry a live transaction's records forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarryBounds {
    pub stamp: Timestamp,
    /// End of what was carried before.
    pub carried: Lsn,
    /// Where to start reading, backward.
    pub from: Lsn,
    /// End of what is to be carried.
    pub to: Lsn,
    /// Copies at or above it are void.
    pub void_copies: Gsn,
}

/// What the slot's latch protects.
#[derive(Debug, Default)]
pub(crate) struct SlotState {
    pub ring: Ring,
    pub gsn: u64,
    pub active: bool,
    /// Log bytes that may be appended.
    pub allowance: u64,
    /// The part of `allowance` that the last `reserve` promised.
    pub promised: u64,
    /// Log bytes kept for undoing the live transaction.
    pub aside: u64,
    /// The part of `aside` that belongs to records that are not in an extent yet.
    pub aside_unflushed: u64,
    /// A block is granted for the padding of the round that writes this slot's bytes.
    pub taxed: bool,
    pub pending: Timestamp,
    pub live: Option<Live>,
    /// Stamp of the transaction that was live where the next chunk starts.
    pub chunk_stamp: Timestamp,
    pub last_chunk: ChunkPosition,
}

/// A slot's state with its latch.
#[derive(Debug)]
pub(crate) struct Cell {
    pub state: Mutex<SlotState>,
    /// Mirror of the ring's flushed end, written under the latch. What is below is in the files, perhaps not durable.
    pub flushed: AtomicU64,
}

impl Cell {
    pub fn new() -> Self {
        Self {
            state: Mutex::new(SlotState::default()),
            flushed: AtomicU64::new(0),
        }
    }
}

/// The log of one slot.
#[derive(Clone)]
pub struct SlotLog {
    pub(crate) core: Arc<Core>,
    pub(crate) id: SlotId,
}

impl fmt::Debug for SlotLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotLog({})", self.id)
    }
}

impl SlotLog {
    /// Which slot this is.
    pub fn id(&self) -> SlotId {
        self.id
    }

    pub(crate) fn cell(&self) -> &Cell {
        self.core.cell(self.id)
    }

    /// Takes the slot's one latch: it covers drawing a GSN with the append, drawing a commit
    /// timestamp with the commit record, and the visits of flush rounds. Hold it briefly, do no
    /// I/O under it. Tens of nanoseconds where nobody contends.
    #[inline]
    pub fn lock(&self) -> SlotGuard<'_> {
        let rank = RankToken::acquire(Rank::SlotLatch);
        let mut state = self.cell().state.lock();
        if !state.active {
            self.core.activate(self.id, &mut state);
        }
        SlotGuard {
            core: &self.core,
            id: self.id,
            state,
            _rank: rank,
        }
    }

    /// Sees to it that `bytes` of records can be appended without waiting. The only place that
    /// waits for space (in the ring: for a flush round; in the log: until segments are recycled,
    /// by the [`crate::LogSpace`] hook if nobody else does). Holds no latch while it waits, and the
    /// caller must hold none above [`Rank::Bitmap`].
    ///
    /// One reservation at a time: a later one does not add to an earlier one. `bytes` counts whole
    /// records ([`RECORD_HEADER_BYTES`] each); [`Purpose::Forward`] also sets space aside for
    /// rolling them back.
    ///
    /// # Errors
    /// `OutOfSpace` if the log is full and nothing can be recycled, `MemoryLimit` for more than
    /// the log can take at once, the error of a failed flush, `Poisoned`. Nothing is half-done.
    #[inline]
    pub fn reserve(&self, bytes: usize) -> vellum_base::Result<()> {
        self.reserve_for(bytes, Purpose::Forward)
    }

    /// As [`SlotLog::reserve`], for a purpose.
    ///
    /// # Errors
    /// As [`SlotLog::reserve`].
    #[inline]
    pub fn reserve_for(&self, bytes: usize, purpose: Purpose) -> vellum_base::Result<()> {
        {
            let _rank = RankToken::acquire(Rank::SlotLatch);
            let mut state = self.cell().state.lock();
            if state.active && state.promise(bytes, purpose) {
                let half_full = state.ring.free() < state.ring.capacity() / 2;
                drop(state);
                // Somebody may flush while this slot goes on appending.
                if half_full && self.core.group.wants_demand.load(Ordering::Relaxed) {
                    self.core.group.demand();
                }
                return Ok(());
            }
        }
        self.core.reserve_slowly(self, bytes, purpose)
    }

    /// Withdraws what the last reservation promised and nobody appended: for who ends his work in the slot outside of a
    /// transaction, whose end does the same. Until then the slot does not come to rest, keeps its ring and that log
    /// space, and every round visits it.
    pub fn withdraw(&self) {
        let _rank = RankToken::acquire(Rank::SlotLatch);
        self.cell().state.lock().promised = 0;
    }

    /// The highest GSN of the slot.
    pub fn slot_gsn(&self) -> Gsn {
        let _rank = RankToken::acquire(Rank::SlotLatch);
        Gsn(self.cell().state.lock().gsn)
    }

    /// Streams the slot's records from the one that ends at `from` (exclusive) down to the one that
    /// starts at `to` (inclusive), in descending order: from the ring where they still are, else
    /// from the segments, one chunk in memory at a time. `from` and `to` are bounds of records.
    ///
    /// The caller knows that nothing in `to..from` was recycled: it is part of the live transaction
    /// and not below what was carried forward.
    pub fn backward(&self, from: Lsn, to: Lsn) -> BackwardRecords {
        BackwardRecords::of_slot(self.clone(), from, to)
    }

    /// The bytes of `..end` that are in the ring, down to `to`, cut where the oldest chunk in
    /// the ring starts, and the chunk to go on with.
    pub(crate) fn ring_tail(&self, end: Lsn, to: Lsn, out: &mut Vec<u8>) -> RingTail {
        let _rank = RankToken::acquire(Rank::SlotLatch);
        let state = self.cell().state.lock();
        // All of it is in the ring, or else what is in no file yet, which starts at a record.
        let start = if to >= state.ring.start() {
            to
        } else {
            state.ring.flushed().max(to).min(end)
        };
        if start < end {
            state.ring.copy_out(start, end, out);
        }
        RingTail {
            start,
            before: state.chunk_before(end),
        }
    }
}

impl SlotState {
    /// Promises space if it is there.
    #[inline]
    pub fn promise(&mut self, bytes: usize, purpose: Purpose) -> bool {
        let need = needed(bytes, purpose);
        // First of all: what is taken from what is set aside and not promised goes to others in the next round.
        if self.ring.free() < bytes || !self.taxed {
            return false;
        }
        if self.allowance < need {
            if self.allowance + self.drawable(purpose) < need {
                return false;
            }
            self.aside -= need - self.allowance;
            self.allowance = need;
        }
        self.promised = need;
        true
    }

    /// Log bytes that were set aside for what a reservation is for.
    #[inline]
    fn drawable(&self, purpose: Purpose) -> u64 {
        if purpose == Purpose::Undo {
            self.aside
        } else {
            0
        }
    }

    /// The newest chunk in a file that starts below `end`, where known without reading.
    fn chunk_before(&self, end: Lsn) -> ChunkPosition {
        if let Some(live) = &self.live {
            for extent in live.extents.iter().rev() {
                if extent.first < end {
                    return extent.last;
                }
            }
        }
        self.last_chunk
    }
}

/// How much longer a compensation may be than the record that it voids: it repeats the before-image and names the
/// record, which takes a few bytes more than what the record says besides. (Redo of the empty row is one byte.)
const COMPENSATION_EXCESS: u64 = 4;

/// Log bytes that a reservation needs: for a forward change also those of its undo.
#[inline]
pub(crate) const fn needed(bytes: usize, purpose: Purpose) -> u64 {
    match purpose {
        Purpose::Forward => 2 * bytes as u64 + COMPENSATION_EXCESS,
        Purpose::Checkpoint | Purpose::Undo | Purpose::Optional => bytes as u64,
    }
}

/// The latch of a slot, held. Who shows one may change what the latch covers (the slot's commit
/// log, too).
pub struct SlotGuard<'a> {
    core: &'a Core,
    id: SlotId,
    state: MutexGuard<'a, SlotState>,
    _rank: RankToken,
}

impl fmt::Debug for SlotGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotGuard({})", self.id)
    }
}

impl SlotGuard<'_> {
    /// Which slot's latch this is.
    pub fn slot(&self) -> SlotId {
        self.id
    }

    /// Draws the GSN of a structure change: above the slot's, the page's, and every M whose round did
    /// not include it (I1). With several pages, `page_gsn` is the highest.
    #[inline]
    pub fn draw(&mut self, page_gsn: Gsn) -> Gsn {
        let gsn = self.state.gsn.max(page_gsn.0) + 1;
        self.state.gsn = gsn;
        Gsn(gsn)
    }

    /// Appends a record with the GSN drawn last under this hold of the latch; returns where it
    /// starts. Space was reserved.
    ///
    /// # Panics
    /// If less was reserved, or the redo part is longer than [`REDO_BYTES_MAX`].
    #[inline]
    pub fn append(&mut self, header: &RecordHeader, redo: &[&[u8]], undo: &[&[u8]]) -> Lsn {
        let redo_length: usize = redo.iter().map(|part| part.len()).sum();
        let undo_length: usize = undo.iter().map(|part| part.len()).sum();
        let length = RECORD_HEADER_BYTES + redo_length + undo_length;
        assert!(redo_length <= REDO_BYTES_MAX, "redo of {redo_length} bytes");
        let state = &mut *self.state;
        assert!(
            length <= state.ring.free(),
            "appended without room in the ring"
        );
        debug_assert_eq!(header.gsn.0, state.gsn, "not the GSN that was drawn");
        debug_assert!(header.flags & !crate::record::FLAGS_KNOWN == 0);
        let lsn = state.ring.end();
        let head = header.encode(redo_length, undo_length);
        state.ring.put_all(length, [&[&head], redo, undo]);
        let mut cost = length as u64;
        if header.flags & (FLAG_UNDOABLE | FLAG_COMPENSATION) != 0 {
            if header.flags & FLAG_UNDOABLE != 0 {
                debug_assert!(
                    state.live.is_some(),
                    "an undoable record outside a transaction"
                );
                let undo = cost + COMPENSATION_EXCESS;
                state.aside += undo;
                state.aside_unflushed += undo;
                cost += undo;
            }
            if header.flags & FLAG_COMPENSATION != 0 {
                let gsn = compensated(undo);
                if let (Some(live), Some(gsn)) = (&mut state.live, gsn) {
                    live.compensated = true;
                    live.lowest_compensated = live.lowest_compensated.min(gsn);
                }
            }
        }
        debug_assert!(state.allowance >= cost, "appended without log space");
        state.allowance = state.allowance.saturating_sub(cost);
        state.promised = state.promised.saturating_sub(cost);
        lsn
    }

    /// The slot's highest GSN.
    pub fn slot_gsn(&self) -> Gsn {
        Gsn(self.state.gsn)
    }

    /// Where the next record will start.
    #[inline]
    pub fn end(&self) -> Lsn {
        self.state.ring.end()
    }

    /// Says that the records from here on belong to the transaction `stamp`.
    ///
    /// # Panics
    /// If a transaction is live in the slot, or the stamp is zero.
    pub fn begin_transaction(&mut self, stamp: Timestamp) {
        assert!(
            self.state.live.is_none(),
            "a slot runs one transaction at a time"
        );
        assert!(!stamp.is_zero(), "stamp zero is never given out");
        let end = self.state.ring.end();
        self.state.live = Some(Live {
            stamp,
            first: end,
            carried: end,
            compensated: false,
            lowest_compensated: Gsn::MAX,
            void_copies: Gsn::MAX,
            extents: VecDeque::new(),
        });
    }

    /// Ends the live transaction (commit, or rolled back completely): its undo is no longer kept and
    /// what was set aside for it is free.
    pub fn end_transaction(&mut self) {
        debug_assert!(self.state.live.is_some(), "no transaction is live");
        let state = &mut *self.state;
        state.live = None;
        state.allowance += state.aside;
        state.aside = 0;
        state.aside_unflushed = 0;
        state.promised = 0;
    }

    /// Stamp and first lsn of the live transaction.
    pub fn live_transaction(&self) -> Option<(Timestamp, Lsn)> {
        self.state
            .live
            .as_ref()
            .map(|live| (live.stamp, live.first))
    }

    /// Publishes (or withdraws) the pending timestamp of a transaction that validates (R11): no round
    /// raises the horizon above it.
    pub fn set_pending(&mut self, pending: Option<Timestamp>) {
        let had = !self.state.pending.is_zero();
        self.state.pending = pending.unwrap_or(Timestamp::ZERO);
        if had && pending.is_none() {
            self.core.group.pending_withdrawn();
        }
    }

    /// Below this lsn the live transaction's undo was carried forward.
    pub fn carried(&self) -> Lsn {
        self.state
            .live
            .as_ref()
            .map_or(Lsn::ZERO, |live| live.carried)
    }

    /// What is to be read to carry forward what lies before `segment`.
    pub(crate) fn carry_bounds(&mut self, segment: u64) -> Option<CarryBounds> {
        let (end, flushed) = (self.state.ring.end(), self.state.ring.flushed());
        let live = self.state.live.as_mut()?;
        if live.extents.front()?.segment >= segment {
            return None;
        }
        // Who reads from `from` on meets every compensation up to now.
        live.void_copies = live.void_copies.min(live.lowest_compensated);
        live.lowest_compensated = Gsn::MAX;
        let next = live.extents.iter().find(|extent| extent.segment >= segment);
        let to = next.map_or(flushed, |extent| extent.first);
        // Where nothing was compensated, nothing behind the bound can void what lies before it.
        let from = if live.compensated { end } else { to };
        let (stamp, carried, void_copies) = (live.stamp, live.carried, live.void_copies);
        Some(CarryBounds {
            stamp,
            carried,
            from,
            to,
            void_copies,
        })
    }

    /// Notes that the records of transaction `stamp` below `to` are carried forward, durably: undo no
    /// longer reads them here, and their segments may be recycled. Returns false, and does
    /// nothing, if the transaction has ended.
    pub fn set_carried(&mut self, stamp: Timestamp, to: Lsn) -> bool {
        let state = &mut *self.state;
        let Some(live) = &mut state.live else {
            return false;
        };
        if live.stamp != stamp {
            return false;
        }
        debug_assert!(to <= state.ring.end());
        live.carried = live.carried.max(to);
        live.void_copies = Gsn::MAX;
        while let Some(extent) = live.extents.front() {
            if extent.last.end() > live.carried {
                break;
            }
            // The undo of what was carried can wait for recycling, which it no longer hinders.
            let freed = extent.aside.min(state.aside);
            state.aside -= freed;
            state.allowance += freed;
            live.extents.pop_front();
        }
        true
    }
}

fn compensated(undo: &[&[u8]]) -> Option<Gsn> {
    let mut head = [0; 16];
    let mut filled = 0;
    for part in undo {
        let take = part.len().min(16 - filled);
        head[filled..filled + take].copy_from_slice(&part[..take]);
        filled += take;
    }
    debug_assert_eq!(filled, 16, "a compensation record names stamp and gsn");
    let gsn: [u8; 8] = *head.last_chunk()?;
    (filled == 16).then_some(Gsn(u64::from_le_bytes(gsn)))
}

impl Core {
    /// Makes an idle slot active, under its latch (I1).
    #[cold]
    fn activate(&self, id: SlotId, state: &mut SlotState) {
        debug_assert!(!state.active && state.allowance == 0);
        state.active = true;
        self.bits.set(id);
        // Pairs with the fence in `round::visit_all`: our bit before our look at M, its M before its
        // look at the bits.
        fence(Ordering::SeqCst);
        state.gsn = state.gsn.max(self.published_m.load(Ordering::Acquire));
    }

    /// The waiting half of [`SlotLog::reserve`].
    #[cold]
    fn reserve_slowly(
        &self,
        slot: &SlotLog,
        bytes: usize,
        purpose: Purpose,
    ) -> vellum_base::Result<()> {
        if bytes > self.reserve_bytes_max {
            return Err(StorageError::MemoryLimit {
                what: "log bytes reserved at once",
            });
        }
        // A rollback asks for a checkpoint once, while there is room for one, before it uses the last reserve.
        let mut asked = purpose != Purpose::Undo;
        loop {
            if !asked && self.segments.undo_runs_short(self.quantum) {
                asked = true;
                self.wait_for_space(self.quantum, purpose)?;
            }
            let (missing, to) = {
                let mut guard = slot.lock();
                let state = &mut *guard.state;
                if state.ring.capacity() < bytes.next_power_of_two() {
                    self.rings.provide(&mut state.ring, bytes);
                }
                if state.promise(bytes, purpose) {
                    return Ok(());
                }
                let need = needed(bytes, purpose);
                let tax = if state.taxed { 0 } else { BLOCK_BYTES };
                let there = state.allowance + state.drawable(purpose);
                let missing = need.saturating_sub(there) + tax;
                // Where the ring alone is full, nothing is asked for.
                let wanted = if missing == tax {
                    tax
                } else {
                    missing.max(self.quantum)
                };
                let granted = if self.segments.try_grant(wanted, purpose) {
                    Some(wanted)
                } else if self.segments.try_grant(missing, purpose) {
                    Some(missing)
                } else {
                    None
                };
                if let Some(granted) = granted {
                    state.taxed = true;
                    state.allowance += granted - tax;
                }
                if state.promise(bytes, purpose) {
                    return Ok(());
                }
                let ring_full = state.ring.free() < bytes;
                if ring_full && self.rings.double(&mut state.ring) {
                    continue;
                }
                // No more than it needs: what is behind it goes to the disk while this slot goes on appending.
                let to = state.ring.end().0 + bytes as u64;
                let to = Lsn(to.saturating_sub(state.ring.capacity() as u64));
                if granted.is_some() || missing == 0 {
                    debug_assert!(ring_full);
                    (None, to)
                } else {
                    (Some(missing), to)
                }
            };
            match missing {
                None => self.wait_for_ring(slot, to)?,
                Some(missing) if purpose == Purpose::Optional => {
                    if !self.segments.try_grow(missing, purpose)? {
                        return Err(StorageError::OutOfSpace { file: "log".into() });
                    }
                }
                Some(missing) => self.wait_for_space(missing, purpose)?,
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::{Log, LogConfig, LogStart};
    use vellum_base::PageId;
    use vellum_io::MemoryDirectory;

    #[test]
    fn regress_reservation_that_waits_for_the_ring_takes_nothing_from_what_is_set_aside() {
        let config = LogConfig {
            slots_max: 4,
            slot_buffer_bytes: 16 << 10,
            segment_bytes: 64 << 10,
            log_bytes_max: 256 << 10,
        };
        let clock = Arc::new(|| Timestamp(1));
        let dir = Arc::new(MemoryDirectory::new());
        let log = Log::create(dir, config, clock, LogStart::first()).unwrap();
        let slot = log.slot(SlotId(0));
        slot.lock().begin_transaction(Timestamp(1));
        for _ in 0..5 {
            slot.reserve(RECORD_HEADER_BYTES + 1000).unwrap();
            let mut guard = slot.lock();
            let header = RecordHeader {
                kind: 16,
                flags: FLAG_UNDOABLE,
                page: PageId(1),
                tree: PageId(1),
                gsn: guard.draw(Gsn::ZERO),
            };
            guard.append(&header, &[&[0; 500]], &[&[0; 500]]);
        }
        let mut state = slot.cell().state.lock();
        let before = (state.aside, state.allowance);
        assert!(before.0 > 5000);
        assert!(!state.promise(16 << 10, Purpose::Undo));
        assert_eq!((state.aside, state.allowance), before);
        // Where there is room, it is taken from there.
        assert!(state.promise(4000, Purpose::Undo));
        assert_eq!(state.aside + state.allowance, before.0 + before.1);
        assert!(state.allowance >= 4000 && state.aside < before.0);
    }
}
