//! What all transactions of a database share: clock, log, slots, watermarks; and the questions that
//! others ask about them.
//!
//! Invariants:
//! - I1 One watermark pass at a time; it publishes a consistent set or leaves the old one (R3).
//! - I2 `oldest_tx` as published is at or below every snapshot that is open or can still be drawn.
//!
//! Concurrency: every method may be called by any thread. Those that take a slot's latch say so; the caller
//! holds no latch of a slot then.

use crate::active::ActiveSnapshots;
use crate::begin::Config;
use crate::clock::Clock;
use crate::holders::TransactionId;
use crate::protocol::{ActiveWriters, CommitStamper, Policy, Protocol};
use crate::quiet::Known;
use crate::slots::{Slot, Slots};
use crate::stamp::VersionStamp;
use crate::waiters::Waiters;
use crate::watermarks::{PublishedWatermarks, Watermarks};
use std::sync::{Arc, OnceLock};
use vellum_base::clock::monotonic_nanos;
use vellum_base::{SlotId, Timestamp};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use vellum_wal::Log;

/// How many times earlier than usual a pass promotes that was asked to, at least.
const EARLY: u64 = 16;

/// Ticks that a transaction may be behind (unless [`Config::promote_after`] is a few of them): who commits within some dozen others is not idle. Not the
/// one that holds back all others, where promotion is very urgent.
const PROMOTION_TICKS: u64 = 64;

/// How urgent that is.
const URGENT: u64 = 64;

/// The shared state of all transactions of one database.
pub struct Domain {
    log: Arc<Log>,
    clock: Arc<Clock>,
    restart_floor: Timestamp,
    promote_after: u64,
    may_withdraw: bool,
    protocol: Protocol,
    /// Of [`Protocol::ReadView`].
    active_writers: ActiveWriters,
    /// Of [`Protocol::Stamping`].
    stamper: OnceLock<Box<dyn CommitStamper>>,
    pub(crate) slots: Slots,
    published: PublishedWatermarks,
    /// What is known from one pass to the next; held by who makes one.
    pass: Mutex<Known>,
    /// Slots that passes looked at.
    looks: AtomicU64,
    /// Slots that the last whole pass has looked at: what the next one costs, about.
    looks_a_pass: AtomicU64,
    /// Writers that were dropped and are not rolled back.
    parked: AtomicUsize,
    /// How urgently somebody asked the next pass to promote early; zero if nobody did.
    early: AtomicU64,
    /// About the time, in nanoseconds of the monotonic clock: as of the last [`Domain::note_time`].
    nanos: AtomicU64,
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("clock", &self.clock.now())
            .field("watermarks", &self.watermarks())
            .field("slots_taken", &self.slots_taken())
            .finish_non_exhaustive()
    }
}

impl Domain {
    pub(crate) fn new(log: Arc<Log>, clock: Arc<Clock>, config: Config) -> Self {
        let Config {
            slots_max,
            restart_floor,
            promote_after,
            may_withdraw,
            protocol,
        } = config;
        assert!(
            restart_floor <= clock.now(),
            "the clock starts above everything on disk"
        );
        Self {
            published: PublishedWatermarks::new(restart_floor),
            log,
            clock,
            restart_floor,
            promote_after,
            may_withdraw,
            protocol,
            active_writers: ActiveWriters::new(),
            stamper: OnceLock::new(),
            slots: Slots::new(slots_max),
            pass: Mutex::new(Known::new()),
            looks: AtomicU64::new(0),
            looks_a_pass: AtomicU64::new(0),
            parked: AtomicUsize::new(0),
            early: AtomicU64::new(0),
            nanos: AtomicU64::new(monotonic_nanos()),
        }
    }

    /// The log.
    #[inline]
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// The global logical clock.
    #[inline]
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// How commits become visible.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Says who visits rows for [`Protocol::Stamping`]. Until then, and for other protocols, nobody does; a second
    /// call changes nothing.
    pub fn set_commit_stamper(&self, stamper: Box<dyn CommitStamper>) {
        // The first one stays.
        let _ = self.stamper.set(stamper);
    }

    pub(crate) fn stamper(&self) -> Option<&dyn CommitStamper> {
        self.stamper.get().map(|stamper| &**stamper)
    }

    /// Reads a snapshot from the clock, for a slot that has announced it (R2). `keep`: the last one is still open.
    #[inline]
    pub(crate) fn take_snapshot(&self, policy: Option<&Policy>, keep: bool) -> Timestamp {
        match policy {
            Some(Policy::ReadView(views)) => {
                let mut views = views.borrow_mut();
                views.take(&self.active_writers, &self.clock, keep)
            }
            _ => self.clock.now(),
        }
    }

    /// Draws the stamp of a writer. The caller holds the latch of its slot.
    #[inline]
    pub(crate) fn draw_stamp(&self) -> Timestamp {
        match self.protocol {
            Protocol::ReadView => self.active_writers.draw_stamp(&self.clock),
            Protocol::Osic | Protocol::Stamping => self.clock.draw(),
        }
    }

    /// Draws the commit timestamp of the writer `stamp`. The caller holds the latch of its slot.
    #[inline]
    pub(crate) fn draw_commit(&self, stamp: Timestamp) -> Timestamp {
        match self.protocol {
            Protocol::ReadView => self.active_writers.draw_commit(&self.clock, stamp),
            Protocol::Osic | Protocol::Stamping => self.clock.draw(),
        }
    }

    /// Notes that everything that the writer `stamp` wrote is reverted.
    pub(crate) fn aborted(&self, stamp: Timestamp) {
        if self.protocol == Protocol::ReadView {
            self.active_writers.aborted(stamp);
        }
    }

    /// Stamps below it are from before the restart: visible to everyone.
    #[inline]
    pub fn restart_floor(&self) -> Timestamp {
        self.restart_floor
    }

    #[inline]
    pub(crate) fn slot(&self, slot: SlotId) -> &Slot {
        self.slots
            .get(slot)
            .expect("a lease names a slot that exists")
    }

    /// Slots that exist.
    pub fn slots_max(&self) -> usize {
        self.slots.len()
    }

    /// Slots that passes look at, about: those that are leased, and were a short time ago.
    #[inline]
    pub fn slots_in_use(&self) -> usize {
        self.slots.open_count()
    }

    /// Slots that were ever leased: bound of a loop over what transactions have left in them.
    pub fn slots_ever(&self) -> usize {
        self.slots.ever()
    }

    /// Takes slots out of use that were needed by more sessions than there are now, a few at a time. For maintenance, between its passes.
    pub fn close_unused_slots(&self) {
        self.slots.close_unused();
        self.slots.settle_all(&self.watermarks());
    }

    /// Slots that are leased (or parked) now.
    pub fn slots_taken(&self) -> usize {
        self.slots.taken()
    }

    /// Entries in all commit logs: at most a small multiple of the open snapshots for each slot in use.
    pub fn commit_log_entries(&self) -> usize {
        self.slots.commit_log_entries()
    }

    /// Slots that nobody leases now and that were leased before: they may hold garbage that nobody but
    /// maintenance cleans. A hint: take one with `Manager::lease_idle`.
    pub fn idle_slots(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.slots.quiet(false)
    }

    /// Slots whose transaction was dropped without an end after it wrote. Roll them back with
    /// `Manager::take_parked`.
    pub fn parked_slots(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.slots.quiet(true)
    }

    /// True while a writer is open whose snapshots do not count: one that was dropped unfinished and is not rolled back, by
    /// whoever does that included, or one whose snapshots were withdrawn. Its undo may be still to come: what that
    /// needs must stay.
    pub fn has_hidden_writer(&self) -> bool {
        // Acquire pairs with the release in `park_one`. A withdrawn writer that is parked meanwhile counts as
        // parked first.
        self.slots.has_withdrawn_writer() || self.parked.load(Ordering::Acquire) > 0
    }

    /// True if snapshots may be withdrawn.
    #[inline]
    pub fn may_withdraw(&self) -> bool {
        self.may_withdraw
    }

    /// Reads the clock of the machine for the ages of transactions, which are as exact as this is called often.
    pub fn note_time(&self) {
        self.nanos.store(monotonic_nanos(), Ordering::Relaxed);
    }

    /// Counts a writer that is about to be parked, before its snapshots go: who finds them gone finds it counted.
    pub(crate) fn park_one(&self) {
        self.parked.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn unpark_one(&self) {
        self.parked.fetch_sub(1, Ordering::Release);
    }

    /// The watermarks of the last pass. Reads a line that only passes write.
    #[inline]
    pub fn watermarks(&self) -> Watermarks {
        self.published.load()
    }

    /// Looks at every slot in use and publishes new watermarks (R2, R3); promotes undeclared
    /// transactions that are far behind. Where another pass is under way, or a slot is just beginning for
    /// longer than a few looks, the published set stays as it was.
    ///
    /// Takes no latch. Costs some ten nanoseconds a slot in use, but for those whose analytical transaction idles.
    pub fn pass(&self) -> Watermarks {
        let Some(mut known) = self.pass.try_lock() else {
            return self.watermarks();
        };
        // Relaxed: it says nothing about anything else. One request is good for one pass.
        let urgency = match self.early.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.early.swap(0, Ordering::Relaxed),
        };
        let promote_after = (
            promote_after(self.promote_after, urgency),
            promote_oldest_after(self.promote_after, urgency),
        );
        let nanos = self.nanos.load(Ordering::Relaxed);
        let before = known.looks;
        let marks = self
            .slots
            .watermarks(&mut known, &self.clock, promote_after, nanos);
        self.looks.store(known.looks, Ordering::Relaxed);
        let Some(marks) = marks else {
            return self.watermarks();
        };
        self.looks_a_pass
            .store(known.looks - before, Ordering::Relaxed);
        debug_assert!(marks.clock >= self.watermarks().clock);
        debug_assert!(
            marks.oldest_tx >= self.watermarks().oldest_tx,
            "watermarks never go back"
        );
        self.published.publish(&marks);
        self.slots.settle(&mut known, &marks);
        marks
    }

    /// Asks the next pass to promote transactions from a sixteenth of the usual age on, divided by `urgency`, but not below
    /// 64 ticks, and the oldest alone from [`promotion_ticks`] on: for collectors that are held up by the oldest OLTP snapshot. The urgency is how many times as much is held up as
    /// would make one ask: what is held up is no matter of ticks, for a transaction of any size takes two. Ask again where that goes on: an
    /// operation may have been running.
    pub fn request_promotion(&self, urgency: u64) {
        if self.early.load(Ordering::Relaxed) < urgency {
            self.early.fetch_max(urgency, Ordering::Relaxed);
        }
    }

    /// Slots that the next pass will look at, about: those in use but for those whose analytical transaction idles.
    #[inline]
    pub(crate) fn looks_a_pass(&self) -> u64 {
        self.looks_a_pass.load(Ordering::Relaxed)
    }

    /// Slots that passes have looked at.
    pub fn slots_looked_at(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// How many transactions that declared no class have become analytical ones.
    pub fn promotions(&self) -> u64 {
        self.slots.promotions()
    }

    /// Changes whenever analytical snapshots have ended: versions that were kept for one of them alone may go. Read it
    /// before the list of snapshots by which that is decided.
    pub fn olap_ended(&self) -> u64 {
        self.slots.olap_ended()
    }

    /// Collects every open snapshot into `out`, with the clock C that was read before (R2). Waits for slots
    /// that are just beginning, so the caller holds no latch.
    pub fn active_snapshots(&self, out: &mut ActiveSnapshots) {
        self.slots.collect(&self.clock, out);
    }

    /// LCB: the last commit timestamp of `slot` below `ts`, zero for none. Exact if `ts` is an open
    /// snapshot; for any other `ts` up to the clock it is at most too small. Takes the slot's latch.
    ///
    /// A slot that does not exist has no commits.
    pub fn lcb(&self, slot: SlotId, ts: Timestamp) -> Timestamp {
        debug_assert!(ts <= self.clock.now() || ts == Timestamp::MAX);
        let Some(words) = self.slots.get(slot) else {
            return Timestamp::ZERO;
        };
        let latch = self.log.slot(slot).lock();
        words.commit_log.lcb(&latch, ts)
    }

    /// Some commit timestamp of `slot` below `ts`, zero if none is found: a lower bound of LCB that takes no
    /// latch. What the slot stamped below it was committed below `ts`; of the rest it says nothing.
    #[inline]
    pub fn proven_below(&self, slot: SlotId, ts: Timestamp) -> Timestamp {
        self.slots
            .get(slot)
            .map_or(Timestamp::ZERO, |slot| slot.commit_log.proven_below(ts))
    }

    /// True if `version` was committed before `ts` (frozen, for `ts` = oldest_tx). Exact for open snapshots;
    /// for any other `ts` a "no" may be too careful. May take the writer's slot latch.
    pub fn is_committed_before(&self, version: &VersionStamp, ts: Timestamp) -> bool {
        version.stamp < self.restart_floor
            || version.stamp < ts
                && (version.stamp < self.proven_below(version.slot, ts)
                    || version.stamp < self.lcb(version.slot, ts))
    }

    /// True if `version` is committed by now. Ask while the page that holds it is latched, else it may
    /// not be the newest any more. May take the writer's slot latch.
    pub fn is_committed(&self, version: &VersionStamp) -> bool {
        if self.protocol == Protocol::ReadView {
            return version.stamp < self.restart_floor
                || !self.active_writers.contains(version.stamp);
        }
        self.is_committed_before(version, Timestamp::MAX)
    }

    /// True if every snapshot that is open or can still be drawn sees `version`, as far as the last pass knows. No
    /// latch, two loads. A "no" may be too careful.
    #[inline]
    pub fn is_settled(&self, version: &VersionStamp) -> bool {
        version.stamp < self.restart_floor
            || self
                .slots
                .get(version.slot)
                .is_some_and(|slot| version.stamp < slot.commit_log.settled())
    }

    /// A stamp below which every OLTP snapshot that is open or can still be drawn sees what `slot` wrote, as far as the last pass knows. No latch, one load. Who goes by
    /// it and by `newest_olap` asks for that second. Interleaving otherwise: watermarks are read, without snapshot S, which is OLTP; a pass promotes S, and
    /// what S does not see is settled for all who are OLTP now: nobody seems to be left who does not see it.
    #[inline]
    pub fn settled_for_oltp(&self, slot: SlotId) -> Timestamp {
        self.slots
            .get(slot)
            .map_or(Timestamp::ZERO, |slot| slot.commit_log.settled_for_oltp())
    }

    /// The transaction that wrote `version`, if it has neither committed nor reverted everything yet. Takes the writer's slot
    /// latch.
    pub fn running_writer(&self, version: &VersionStamp) -> Option<TransactionId> {
        let slot = self.slots.get(version.slot)?;
        let latch = self.log.slot(version.slot).lock();
        let (stamp, _) = latch.live_transaction()?;
        // The number changes when the slot's next transaction begins: not before this one has ended, under this latch.
        (stamp == version.stamp).then(|| TransactionId {
            slot: version.slot,
            number: slot.words.number(),
        })
    }

    pub(crate) fn waiters(&self) -> &Waiters {
        &self.slots.waiters
    }

    /// Asserts, in builds with debug assertions, that no snapshot that is open now needs what `slot` stamped below
    /// `dead_below` to be kept apart: each of them sees a later commit of the slot (the brute-force model
    /// of R2 and R4). Others do nothing.
    pub fn debug_check_dead_below(&self, slot: SlotId, dead_below: Timestamp) {
        #[cfg(all(debug_assertions, not(loom)))]
        if dead_below > self.restart_floor
            && let Some(words) = self.slots.get(slot)
        {
            let mut active = ActiveSnapshots::new();
            self.active_snapshots(&mut active);
            for &ts in active.snapshots().iter().chain([&active.clock()]) {
                // `None`: it has ended meanwhile.
                let Some(lcb) = words.commit_log.history().lcb(ts) else {
                    continue;
                };
                assert!(
                    dead_below <= lcb,
                    "R2: snapshot {ts} sees slot {slot} up to {lcb} only, not {dead_below}"
                );
            }
        }
        #[cfg(not(all(debug_assertions, not(loom))))]
        let _ = (slot, dead_below);
    }

    /// Asserts, in builds with debug assertions, that no snapshot that is open now, or will be drawn, sees `version` and not what took its
    /// place, `successor`: the brute-force model of every "nobody needs it". `None`: a version that everyone sees who does not see
    /// the successor. Those at or below `bound` do not matter. Others do nothing. Only for [`Protocol::Osic`]; the caller holds no latch of a slot.
    pub fn debug_check_unseen(
        &self,
        version: Option<&VersionStamp>,
        successor: &VersionStamp,
        bound: Timestamp,
    ) {
        #[cfg(all(debug_assertions, not(any(loom, shuttle))))]
        if self.protocol == Protocol::Osic {
            let mut active = ActiveSnapshots::new();
            self.active_snapshots(&mut active);
            // `None`: the snapshot has ended meanwhile.
            let sees = |version: &VersionStamp, ts: Timestamp| {
                if version.stamp < self.restart_floor {
                    return Some(true);
                }
                let Some(slot) = self.slots.get(version.slot) else {
                    return Some(false);
                };
                let lcb = slot.commit_log.history().lcb(ts)?;
                Some(version.stamp < lcb)
            };
            let clock = active.clock();
            let snapshots = active.snapshots().iter().copied().chain([clock]);
            for ts in snapshots.filter(|ts| *ts > bound) {
                assert!(
                    sees(successor, ts) != Some(false)
                        || version.is_some_and(|version| sees(version, ts) != Some(true)),
                    "snapshot {ts} sees {version:?} and not {successor:?}"
                );
            }
        }
        #[cfg(not(all(debug_assertions, not(any(loom, shuttle)))))]
        let _ = (version, successor, bound);
    }

    /// Makes room in the slot's commit log, before a commit latches anything (R4).
    pub(crate) fn make_room(&self, slot: SlotId) {
        let log = &self.slot(slot).commit_log;
        if log.wants_cleaning() {
            let mut active = ActiveSnapshots::new();
            self.active_snapshots(&mut active);
            let latch = self.log.slot(slot).lock();
            log.clean(&latch, &active);
        }
    }
}

/// From which age on a pass promotes.
fn promote_after(usual: u64, urgency: u64) -> u64 {
    match (usual, urgency) {
        (u64::MAX, _) | (_, 0) => usual,
        _ => {
            let early = usual / EARLY;
            (early / urgency).max(early.min(PROMOTION_TICKS))
        }
    }
}

/// The same for the transaction that holds back all others: where very much is held up, it alone goes after a few ticks. A transaction that deletes a
/// million rows takes two, so nobody falls behind by it. (Alone: where it cannot be promoted, nothing is won by promoting who comes after it.)
fn promote_oldest_after(usual: u64, urgency: u64) -> u64 {
    let after = promote_after(usual, urgency);
    if usual == u64::MAX || urgency < URGENT {
        after
    } else {
        after.min(promotion_ticks(urgency))
    }
}

/// From how many ticks behind the clock on it is worth to ask for promotion at `urgency`.
#[inline]
pub fn promotion_ticks(urgency: u64) -> u64 {
    match urgency {
        0..URGENT => PROMOTION_TICKS,
        _ => (8 * PROMOTION_TICKS / urgency).max(1),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_the_earlier_the_more_is_held_up() {
        assert_eq!(promote_after(100_000, 0), 100_000);
        assert_eq!(promote_after(100_000, 1), 6250);
        assert_eq!(promote_after(100_000, 10), 625);
        assert_eq!(promote_after(100_000, 1000), PROMOTION_TICKS);
        assert_eq!(promote_oldest_after(100_000, 10), 625);
        assert_eq!(promote_oldest_after(100_000, 64), 8);
        assert_eq!(promote_oldest_after(100_000, 1000), 1);
        assert_eq!(promote_oldest_after(100_000, 0), 100_000);
        assert_eq!(promote_oldest_after(u64::MAX, 1000), u64::MAX, "never");
        assert_eq!(promote_after(200, 1000), 12, "where it is small anyway");
        assert_eq!(promote_after(u64::MAX, 1000), u64::MAX, "never");
    }
}
