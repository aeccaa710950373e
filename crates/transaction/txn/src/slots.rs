//! All worker slots: leasing one, looking at all.
//!
//! Invariants:
//! - I1 Slots below `high` are those that were ever leased. `high` is raised before a slot is leased
//!   for the first time, so a pass that reads C, then `high`, then the slots misses nobody (R2).
//! - I2 A slot runs one transaction after another, never two at once.
//! - I3 A pass during which snapshots were withdrawn counts for nothing, and looks at all slots again. Interleaving otherwise: a pass
//!   finds slot F free; the transaction in slot L, behind it, has a follower begin there, with its old snapshot, and is withdrawn; the
//!   pass finds nothing in L: it has missed a snapshot that was open all the time. (Who goes by ending takes its followers
//!   with it before: `begin` I2.)
//!
//! Concurrency: `high` belongs to the Dekker pair of `slot`: raised (SeqCst) before the state word
//! is taken, read (SeqCst) after the clock. I3: a withdrawal is counted as begun before the word says so, and as done after; a pass reads
//! the second count before the first slot, and the first one behind the last slot: equal, if none was under way in between.

use crate::active::ActiveSnapshots;
use crate::clock::Clock;
use crate::commit_log::CommitLog;
use crate::slot::{Class, Ended, Seen, SlotWords, Withdrawal, dekker_fence};
use crate::visibility::SnapshotCache;
use crate::waiters::Waiters;
use crate::watermarks::Watermarks;
use vellum_base::{SlotId, Timestamp};
use vellum_sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use vellum_sync::{Backoff, CachePadded, Mutex};

/// One slot: its published words, its commit log, and what it keeps from one transaction to the next.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) words: SlotWords,
    pub(crate) commit_log: CommitLog,
    /// Writers that ended since the slot's last pass; only the owner touches it.
    pub(crate) ended: AtomicU32,
    pub(crate) parts: Mutex<Parts>,
}

/// What only the owner needs, and rarely.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Answers to LCB questions; they stay true, so the next transaction begins with them.
    pub(crate) cache: Option<Box<SnapshotCache>>,
    /// The unfinished writer of a parked slot.
    pub(crate) parked: Option<Parked>,
}

/// What is needed to roll back a writer whose owner is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked {
    pub(crate) stamp: Timestamp,
    pub(crate) next_command: u64,
}

/// The slots of one database.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Box<[Slot]>,
    high: CachePadded<AtomicUsize>,
    /// Analytical snapshots that ended. Seldom written, and after they are gone from the words.
    olap_ended: CachePadded<AtomicU64>,
    /// Transactions that were promoted.
    promotions: AtomicU64,
    /// Writers that go on without their snapshots. Counted before these go.
    withdrawn_writers: AtomicUsize,
    /// Withdrawals (also in vain) that began, and that are done (I3).
    withdrawals_begun: AtomicU64,
    withdrawals_done: AtomicU64,
    pub(crate) waiters: Waiters,
}

impl Slots {
    pub(crate) fn new(slots_max: u16) -> Self {
        let slot = || Slot {
            words: SlotWords::new(),
            commit_log: CommitLog::new(),
            ended: AtomicU32::new(0),
            parts: Mutex::new(Parts::default()),
        };
        Self {
            slots: (0..slots_max).map(|_| slot()).collect(),
            high: CachePadded::new(AtomicUsize::new(0)),
            olap_ended: CachePadded::new(AtomicU64::new(0)),
            promotions: AtomicU64::new(0),
            withdrawn_writers: AtomicUsize::new(0),
            withdrawals_begun: AtomicU64::new(0),
            withdrawals_done: AtomicU64::new(0),
            waiters: Waiters::new(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, slot: SlotId) -> Option<&Slot> {
        self.slots.get(usize::from(slot.get()))
    }

    /// Number of slots that exist.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Number of slots that were ever leased (I1). Read after the clock.
    #[inline]
    pub(crate) fn in_use(&self) -> usize {
        self.high.load(Ordering::SeqCst)
    }

    /// Slots that are leased now.
    pub(crate) fn taken(&self) -> usize {
        self.used()
            .iter()
            .filter(|slot| !slot.words.is_free())
            .count()
    }

    /// Entries in all commit logs.
    pub(crate) fn commit_log_entries(&self) -> usize {
        self.used().iter().map(|slot| slot.commit_log.count()).sum()
    }

    /// Slots that were ever leased.
    pub(crate) fn used(&self) -> &[Slot] {
        &self.slots[..self.in_use()]
    }

    /// Leases a slot and announces a snapshot: `hint` if it is free, else another one.
    #[inline]
    pub(crate) fn take(&self, class: Class, hint: u16) -> Option<SlotId> {
        // Relaxed: a hint below `high` was leased before, by whoever raised it; passes read `high`
        // themselves, and in the order of that first lease.
        let high = self.high.load(Ordering::Relaxed);
        let index = usize::from(hint);
        if index < high && self.slots[index].words.try_begin(class) {
            return Some(SlotId(hint));
        }
        self.take_slowly(class, index)
    }

    fn take_slowly(&self, class: Class, hint: usize) -> Option<SlotId> {
        let high = self.in_use();
        let start = if hint < high { hint + 1 } else { 0 };
        let found = (start..high)
            .chain(0..start)
            .find(|&i| self.slots[i].words.try_begin(class));
        if let Some(index) = found {
            return Some(SlotId(index as u16));
        }
        for index in high..self.slots.len() {
            // I1. SeqCst pairs with `in_use`.
            self.high.fetch_max(index + 1, Ordering::SeqCst);
            dekker_fence();
            if self.slots[index].words.try_begin(class) {
                return Some(SlotId(index as u16));
            }
        }
        None
    }

    /// Gives a slot back and wakes who waits for one.
    #[inline]
    pub(crate) fn release(&self, slot: SlotId) {
        let ended = self.slots[usize::from(slot.get())].words.release();
        self.count_ended(ended);
        self.waiters.wake_next();
    }

    /// Counts what ended with a transaction, once its words say so.
    #[inline]
    pub(crate) fn count_ended(&self, ended: Ended) {
        if !ended.is_plain() {
            self.count_ended_slowly(ended);
        }
    }

    #[cold]
    fn count_ended_slowly(&self, ended: Ended) {
        if ended.withdrawn_writer {
            self.withdrawn_writers.fetch_sub(1, Ordering::Release);
        }
        if ended.olap {
            self.olap_has_ended();
        }
    }

    /// Makes the snapshots of transaction `number` of a slot count no more (R10).
    pub(crate) fn withdraw(&self, slot: &Slot, number: u64) -> Withdrawal {
        let writers = &self.withdrawn_writers;
        let about_to = |writer: bool| {
            // Relaxed: the release of the word's change publishes it to who finds that.
            self.withdrawals_begun.fetch_add(1, Ordering::Relaxed);
            if writer {
                writers.fetch_add(1, Ordering::Relaxed);
            }
        };
        // Release pairs with the acquire in `withdrawals_done`: who counts it as done finds the followers that began before it.
        let done = || self.withdrawals_done.fetch_add(1, Ordering::Release);
        let in_vain = |writer: bool| {
            done();
            if writer {
                writers.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let withdrawal = slot.words.withdraw(number, about_to, in_vain);
        if withdrawal == Withdrawal::Done {
            done();
            self.olap_has_ended();
        }
        withdrawal
    }

    /// What a pass asks before it looks at the first slot, for `is_whole`.
    fn withdrawals_done(&self) -> u64 {
        self.withdrawals_done.load(Ordering::Acquire)
    }

    /// True if nobody withdrew snapshots since `withdrawals_done` gave `before` (I3).
    fn is_whole(&self, before: u64) -> bool {
        // Relaxed: the looks at the slots before it acquire.
        self.withdrawals_begun.load(Ordering::Relaxed) == before
    }

    /// True while a writer whose snapshots were withdrawn has not ended.
    pub(crate) fn has_withdrawn_writer(&self) -> bool {
        self.withdrawn_writers.load(Ordering::Acquire) > 0
    }

    /// Counts an analytical snapshot that is gone from its words by now.
    #[cold]
    pub(crate) fn olap_has_ended(&self) {
        // Release pairs with the acquire in `olap_ended`.
        self.olap_ended.fetch_add(1, Ordering::Release);
    }

    /// How many transactions were promoted.
    pub(crate) fn promotions(&self) -> u64 {
        self.promotions.load(Ordering::Relaxed)
    }

    /// How many analytical snapshots (or transactions with several) have ended.
    pub(crate) fn olap_ended(&self) -> u64 {
        self.olap_ended.load(Ordering::Acquire)
    }

    /// Collects every open snapshot. Waits (briefly, for others between two instructions) for slots that are
    /// about to publish one, and for withdrawals; so the caller holds no latch.
    pub(crate) fn collect(&self, clock: &Clock, out: &mut ActiveSnapshots) {
        let mut again = Backoff::new();
        loop {
            let withdrawals = self.withdrawals_done();
            // R2: the clock first, the slots second.
            out.restart(clock.now());
            dekker_fence();
            for slot in self.used() {
                let before = out.count();
                let mut backoff = Backoff::new();
                while slot.words.look(|snapshot| out.push(snapshot)) == Seen::Busy {
                    out.truncate(before);
                    backoff.wait();
                }
                vellum_sync::test_point!("pass: looked at a slot");
            }
            if self.is_whole(withdrawals) {
                break;
            }
            again.wait();
        }
        out.seal();
    }

    /// Computes the watermarks; `None` where a slot is about to publish a snapshot and does not get
    /// there within a few looks, or snapshots were withdrawn meanwhile (I3). Promotes undeclared transactions that are more than `promote_after` behind.
    /// `nanos` is about the time, for the ages of transactions.
    pub(crate) fn watermarks(
        &self,
        clock: &Clock,
        promote_after: u64,
        nanos: u64,
    ) -> Option<Watermarks> {
        let withdrawals = self.withdrawals_done();
        let now = clock.now();
        dekker_fence();
        let mut marks = Watermarks {
            oldest_tx: now,
            oldest_oltp: now,
            newest_olap: Timestamp::ZERO,
            clock: now,
        };
        for slot in self.used() {
            let mut backoff = Backoff::new();
            let (mut oldest, mut newest);
            let mut olap = loop {
                (oldest, newest) = (now, Timestamp::ZERO);
                let seen = slot.words.look(|snapshot| {
                    oldest = oldest.min(snapshot);
                    newest = newest.max(snapshot.min(now));
                });
                match seen {
                    Seen::Idle => break None,
                    Seen::Running { olap } => break Some(olap),
                    Seen::Busy if backoff.should_park() => return None,
                    Seen::Busy => backoff.wait(),
                }
            };
            vellum_sync::test_point!("pass: looked at a slot");
            if olap.is_some() {
                slot.words.note_seen(nanos);
            }
            if olap == Some(false) && now.get() - oldest.get() > promote_after {
                // Where the slot holds another transaction by now, that one began at or above C: it is
                // analytical without need, which costs it a few looks into graveyards.
                let promoted = slot.words.promote();
                self.promotions
                    .fetch_add(u64::from(promoted), Ordering::Relaxed);
                olap = Some(promoted);
            }
            match olap {
                None => continue,
                Some(true) => marks.newest_olap = marks.newest_olap.max(newest),
                Some(false) => marks.oldest_oltp = marks.oldest_oltp.min(oldest),
            }
            marks.oldest_tx = marks.oldest_tx.min(oldest);
        }
        debug_assert!(marks.is_consistent());
        self.is_whole(withdrawals).then_some(marks)
    }

    /// Moves every slot's `settled` up (see [`CommitLog::settle`]).
    pub(crate) fn settle(&self, oldest_tx: Timestamp) {
        for slot in self.used() {
            slot.commit_log.settle(oldest_tx);
        }
    }

    /// Slots that were ever leased and are free or parked now.
    pub(crate) fn quiet(&self, parked: bool) -> impl Iterator<Item = SlotId> + '_ {
        self.used()
            .iter()
            .enumerate()
            .filter_map(move |(index, slot)| {
                let hit = if parked {
                    slot.words.is_parked()
                } else {
                    slot.words.is_free()
                };
                hit.then_some(SlotId(index as u16))
            })
    }
}
