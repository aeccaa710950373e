//! The log as the layers above see it.

use std::sync::Arc;
use std::task::{Poll, Waker};

use vellum_base::{Gsn, Result, SlotId, Timestamp};
use vellum_io::Directory;
use vellum_sync::atomic::Ordering;
use vellum_sync::rank::{Rank, RankToken};

use crate::config::{
    DurableGsn, LogConfig, LogPosition, LogSpace, LogStart, LogStatistics, Round, Verdict,
};
use crate::core::{Clock, Core};
use crate::group::{Group, Target};
use crate::round::{ROUND_BYTES_MAX, RoundState};
use crate::segment::{SegmentFiles, Segments};
use crate::slot::SlotLog;

/// The write-ahead log of a database. One incarnation: from opening the database to closing it or
/// to a crash.
#[derive(Debug)]
pub struct Log {
    pub(crate) core: Arc<Core>,
    slots: Box<[SlotLog]>,
}

impl Log {
    /// Starts an incarnation: makes the folder and the first segments where they are missing, and
    /// takes a segment into use. `clock` reads the global logical clock, sequentially consistent.
    ///
    /// # Errors
    /// `MemoryLimit` for sizes that do not fit together, `ForeignFormat`, `OutOfSpace`, `Io`.
    pub fn create(
        dir: Arc<dyn Directory>,
        config: LogConfig,
        clock: Clock,
        start: LogStart,
    ) -> Result<Self> {
        assert!(start.first_gsn.0 > 0 && start.next_round > 0 && start.next_segment > 0);
        let segments = Segments::open(dir, config.clone(), start)?;
        let m = start.first_gsn.0 - 1;
        let buffer = ROUND_BYTES_MAX.min(config.segment_bytes as usize - 4096);
        let round = RoundState::new(buffer, start.next_round, start.horizon, Gsn(m))?;
        let group = Group::new(start.horizon, Gsn(m));
        let count = config.slots_max;
        let core = Arc::new(Core::new(config, clock, segments, round, group, m));
        let slots = (0..count)
            .map(|id| SlotLog {
                core: core.clone(),
                id: SlotId(id),
            })
            .collect();
        Ok(Self { core, slots })
    }

    /// The log of one slot.
    ///
    /// # Panics
    /// If the slot's number is not below `slots_max`.
    #[inline]
    pub fn slot(&self, slot: SlotId) -> &SlotLog {
        &self.slots[usize::from(slot.0)]
    }

    /// Every record with a GSN at or below it is on disk.
    #[inline]
    pub fn durable_gsn(&self) -> Gsn {
        self.core.group.durable()
    }

    /// The hardened horizon: every commit with a timestamp below it survives a crash.
    #[inline]
    pub fn horizon(&self) -> Timestamp {
        self.core.group.horizon()
    }

    /// True once nothing that is not on disk can get there any more: a sync failed, a round panicked, or failed once too often.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.core.group.has_failed()
    }

    /// Runs one flush round that starts after the call (waiting for the one that runs now). Returns
    /// what it covered.
    ///
    /// # Errors
    /// `OutOfSpace`, `Io`: the round can be tried again. After a failed sync: that error to all who
    /// waited, `Poisoned` to later calls.
    pub fn flush_round(&self) -> Result<Round> {
        let round = self.core.wait_for(Target::Turn)?;
        Ok(round.expect("this target is reached by leading"))
    }

    /// Blocks until `horizon() > ts`: a commit with timestamp `ts` is then durable. Whoever finds no
    /// round running leads one. A timestamp that was not drawn yet counts as the newest that was.
    ///
    /// # Errors
    /// As [`Log::flush_round`]; the commit may or may not survive then.
    pub fn harden(&self, ts: Timestamp) -> Result<()> {
        if self.horizon() > ts {
            return Ok(());
        }
        let Some(ts) = self.drawn(ts) else {
            return Ok(());
        };
        self.core.statistics.commits_hardened.add(1);
        self.core.wait_for(Target::Hardened(ts)).map(|_| ())
    }

    /// As [`Log::harden`], for a task: `Pending` after noting the waker. Leads a round itself (and
    /// blocks for it) where no round runs and no thread serves.
    pub fn poll_harden(&self, ts: Timestamp, waker: &Waker) -> Poll<Result<()>> {
        if self.horizon() > ts {
            return Poll::Ready(Ok(()));
        }
        let Some(ts) = self.drawn(ts) else {
            return Poll::Ready(Ok(()));
        };
        match self.core.poll_for(ts, waker) {
            Some(result) => {
                self.core.statistics.commits_hardened.add(1);
                Poll::Ready(result)
            }
            None => Poll::Pending,
        }
    }

    /// `ts`, or the newest timestamp that was drawn; `None` if no timestamp was.
    fn drawn(&self, ts: Timestamp) -> Option<Timestamp> {
        (self.core.clock)()
            .0
            .checked_sub(1)
            .map(|newest| Timestamp(newest.min(ts.0)))
    }

    /// A step of a thread that serves polled waits, and rings that are half full: blocks until a
    /// round is wanted, runs it, returns true. False once [`Log::stop_serving`] was called.
    ///
    /// # Errors
    /// As [`Log::flush_round`].
    pub fn serve_one(&self) -> Result<bool> {
        self.core.serve_one()
    }

    /// Makes the thread in [`Log::serve_one`], or the next to enter it, return false.
    pub fn stop_serving(&self) {
        self.core.stop_serving();
    }

    /// Registers what gives log space back when nobody else does.
    pub fn set_log_space(&self, hook: Arc<dyn LogSpace>) {
        *self.core.hook.lock() = Some(hook);
    }

    /// While this is on, the log grows beyond `log_bytes_max` where it would be full: for a recovery, which can
    /// give nothing back before the losers are undone, and may find more log than this bound allows. What
    /// is too much goes with the next [`Log::release_before`]. A full disk still bounds the log.
    pub fn set_unbounded(&self, on: bool) {
        self.core.segments.set_unbounded(on);
    }

    /// Where the next round starts: a checkpoint that covers everything up to now lets recovery start
    /// there.
    pub fn position(&self) -> LogPosition {
        self.core.segments.position()
    }

    /// [`Log::position`], and what was durable there at least: what [`crate::LogReader::open`] wants to
    /// know of a checkpoint. `last_round` is the round before the position.
    pub fn known_position(&self) -> (LogPosition, Verdict) {
        // In this order: rounds from the position on have at least this C and M.
        let (c, m) = (self.horizon(), self.durable_gsn());
        let position = self.position();
        let incarnation = self.core.segments.incarnation();
        (
            position,
            Verdict {
                incarnation,
                last_round: position.round - 1,
                c,
                m,
            },
        )
    }

    /// Frees the segments that lie wholly before `position`, but none that a live transaction's undo
    /// still needs: carry that forward first ([`SlotLog::carry`]). Returns how many were freed. The
    /// caller has made it durable that recovery starts at `position` or later.
    ///
    /// # Errors
    /// `Io` from removing a surplus file.
    pub fn release_before(&self, position: LogPosition) -> Result<u64> {
        let keep = self.oldest_live_segment().unwrap_or(u64::MAX);
        self.core
            .segments
            .release_before(position.segment.min(keep))
    }

    /// The oldest segment that the undo of a live transaction needs.
    pub fn oldest_live_segment(&self) -> Option<u64> {
        let mut oldest = None;
        self.core.bits.for_each(|slot| {
            let _rank = RankToken::acquire(Rank::SlotLatch);
            let state = self.core.cell(slot).state.lock();
            let first = state.live.as_ref().and_then(|live| live.extents.front());
            if let Some(extent) = first {
                let known: u64 = oldest.unwrap_or(u64::MAX);
                oldest = Some(known.min(extent.segment));
            }
        });
        oldest
    }

    /// Slots with a live transaction that needs a segment before `position`: whose undo is to be
    /// carried forward before the segment can be recycled.
    pub fn slots_before(&self, position: LogPosition) -> Vec<SlotId> {
        let mut slots = Vec::new();
        self.core.bits.for_each(|slot| {
            let _rank = RankToken::acquire(Rank::SlotLatch);
            let state = self.core.cell(slot).state.lock();
            let first = state.live.as_ref().and_then(|live| live.extents.front());
            if first.is_some_and(|extent| extent.segment < position.segment) {
                slots.push(slot);
            }
        });
        slots
    }

    /// The oldest segment that is kept.
    pub fn oldest_segment(&self) -> u64 {
        self.core.segments.oldest()
    }

    /// Bytes of the log that may not be overwritten yet.
    pub fn bytes_in_use(&self) -> u64 {
        self.core.segments.bytes_in_use()
    }

    /// [`Log::bytes_in_use`] and what is promised or set aside, as per cent of `log_bytes_max`; may
    /// exceed 100.
    pub fn pressure(&self) -> u64 {
        let used = self.bytes_in_use() + self.core.segments.held();
        used * 100 / self.core.config.log_bytes_max
    }

    /// The files of live segments, for streams that outlast the log.
    pub fn files(&self) -> &Arc<SegmentFiles> {
        &self.core.segments.files
    }

    /// Counters since the log was opened, and what its buffers take.
    pub fn statistics(&self) -> LogStatistics {
        self.core.statistics.snapshot(&self.core.rings)
    }
}

impl DurableGsn for Log {
    fn durable_gsn(&self) -> Gsn {
        Log::durable_gsn(self)
    }

    fn make_durable(&self, gsn: Gsn) -> Result<()> {
        if self.durable_gsn() >= gsn {
            return Ok(());
        }
        // A page that was taken and not changed may lie above every slot.
        self.core.requested_m.fetch_max(gsn.0, Ordering::Relaxed);
        self.core.wait_for(Target::Durable(gsn)).map(|_| ())
    }
}
