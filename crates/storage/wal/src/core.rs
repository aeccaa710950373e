//! What all slots share: settings, the published M, segments, the round leader's state.

use std::fmt;
use std::sync::Arc;

use vellum_base::{Lsn, Result, SlotId, StorageError, Timestamp};
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::rank::{Rank, assert_may_wait_below};
use vellum_sync::{CachePadded, Mutex, thread};

use crate::active::ActiveSlots;
use crate::config::{LogConfig, LogSpace, LogStatistics, Purpose};
use crate::group::{Group, Target};
use crate::ring_memory::RingMemory;
use crate::round::RoundState;
use crate::segment::Segments;
use crate::slot::{Cell, SlotLog};

/// Reads the global logical clock, sequentially consistent, without advancing it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub rounds: Counter,
    pub rounds_empty: Counter,
    pub bytes_written: Counter,
    pub bytes_records: Counter,
    pub chunks: Counter,
    pub commits_hardened: Counter,
    pub ring_waits: Counter,
    pub space_waits: Counter,
}

impl Counters {
    pub fn snapshot(&self, rings: &RingMemory) -> LogStatistics {
        LogStatistics {
            ring_bytes: rings.bytes(),
            rounds: self.rounds.get(),
            rounds_empty: self.rounds_empty.get(),
            bytes_written: self.bytes_written.get(),
            bytes_records: self.bytes_records.get(),
            chunks: self.chunks.get(),
            commits_hardened: self.commits_hardened.get(),
            ring_waits: self.ring_waits.get(),
            space_waits: self.space_waits.get(),
        }
    }
}

pub(crate) struct Core {
    pub config: LogConfig,
    pub clock: Clock,
    cells: Box<[CachePadded<Cell>]>,
    pub bits: ActiveSlots,
    /// M of the newest round that published one; see `slot` I1.
    pub published_m: CachePadded<AtomicU64>,
    /// An M that somebody asked for: pages may carry a GSN above all slots'.
    pub requested_m: AtomicU64,
    pub segments: Segments,
    pub rings: RingMemory,
    /// The round leader's; contended never, because there is one leader.
    pub round: Mutex<RoundState>,
    pub group: Group,
    pub statistics: Counters,
    pub hook: Mutex<Option<Arc<dyn LogSpace>>>,
    /// Held by the one thread that runs the hook.
    making_space: Mutex<()>,
    /// Which thread that is: its own reservations in the hook must not wait for themselves.
    maker: Mutex<Option<thread::ThreadId>>,
    /// Log bytes that a slot is granted at least at once.
    pub quantum: u64,
    /// Longest reservation.
    pub reserve_bytes_max: usize,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Core {
    pub fn new(
        config: LogConfig,
        clock: Clock,
        segments: Segments,
        round: RoundState,
        group: Group,
        m: u64,
    ) -> Self {
        let cells = (0..config.slots_max)
            .map(|_| CachePadded::new(Cell::new()))
            .collect();
        let bits = ActiveSlots::new(config.slots_max);
        // What one reservation asks for must fit into a segment with room to spare.
        let reserve_bytes_max = (config.segment_bytes / 4) as usize;
        let quantum = (config.segment_bytes / 64).min(64 << 10);
        Self {
            clock,
            cells,
            bits,
            published_m: CachePadded::new(AtomicU64::new(m)),
            requested_m: AtomicU64::new(m),
            segments,
            rings: RingMemory::new(config.slot_buffer_bytes),
            round: Mutex::new(round),
            group,
            statistics: Counters::default(),
            hook: Mutex::new(None),
            making_space: Mutex::new(()),
            maker: Mutex::new(None),
            quantum,
            reserve_bytes_max,
            config,
        }
    }

    #[inline]
    pub fn cell(&self, slot: SlotId) -> &Cell {
        &self.cells[usize::from(slot.0)]
    }

    /// Waits until the slot's bytes below `to` are written, which frees their room in the ring.
    pub fn wait_for_ring(&self, slot: &SlotLog, to: Lsn) -> Result<()> {
        self.statistics.ring_waits.add(1);
        self.wait_for(Target::Flushed(slot.id, to)).map(|_| ())
    }

    /// Waits until `missing` log bytes may be granted: what idle slots hold, then a new file, then
    /// recycling.
    pub fn wait_for_space(&self, missing: u64, purpose: Purpose) -> Result<()> {
        // The hook descends trees.
        assert_may_wait_below(Rank::TableTree);
        self.statistics.space_waits.add(1);
        self.wait_for(Target::Turn)?;
        let polite = purpose == Purpose::Undo && self.segments.undo_runs_short(missing);
        let grow_for = if polite { Purpose::Forward } else { purpose };
        if self.segments.try_grow(missing, grow_for)? {
            return Ok(());
        }
        let full = || Err(StorageError::OutOfSpace { file: "log".into() });
        let me = Some(thread::current().id());
        if purpose == Purpose::Checkpoint || *self.maker.lock() == me {
            // The hook is a checkpoint: it cannot wait for itself.
            return full();
        }
        if purpose == Purpose::Undo {
            // A rollback has its own reserve; this only keeps it from eating the checkpoint's.
            let _one = self.making_space.lock();
            // One checkpoint may free less than is missing: it carries a bounded amount.
            loop {
                let hook = self.hook.lock().clone();
                let made = hook.is_some_and(|hook| {
                    *self.maker.lock() = me;
                    let made = hook.make_space();
                    *self.maker.lock() = None;
                    matches!(made, Ok(true))
                });
                if self.segments.would_grant(missing, purpose) {
                    return Ok(());
                }
                if !made {
                    return full();
                }
            }
        }
        let _one = self.making_space.lock();
        while !self.segments.would_grant(missing, purpose) {
            let hook = self.hook.lock().clone();
            let Some(hook) = hook else { return full() };
            *self.maker.lock() = me;
            let made = hook.make_space();
            *self.maker.lock() = None;
            if !made? && !self.segments.would_grant(missing, purpose) {
                return full();
            }
        }
        Ok(())
    }
}
