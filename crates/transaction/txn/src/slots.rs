//! All worker slots: leasing one, looking at all.
//!
//! Invariants:
//! - I1 A slot is open or closed; the open ones have a bit in `open`. It is set before the slot's word leaves CLOSED and cleared after that has come
//!   back to it, so a pass that reads C, then the bits, then the slots misses nobody (R2). Interleaving: a pass finds a bit clear and goes by; then the
//!   slot is opened and leased: its snapshot is drawn after C was read.
//! - I2 A slot runs one transaction after another, never two at once.
//! - I3 A pass during which snapshots were withdrawn counts for nothing, and looks at all slots again. Interleaving otherwise: a pass
//!   finds slot F free; the transaction in slot L, behind it, has a follower begin there, with its old snapshot, and is withdrawn; the
//!   pass finds nothing in L: it has missed a snapshot that was open all the time. (Who goes by ending takes its followers
//!   with it before: `begin` I2.) The same holds of a pass during which a snapshot was handed on to a transaction that may outlive the one that had it (`begin` I3).
//! - I4 Slots below `ever` are those that were ever open. What ran in one may have left garbage there, closed or not.
//! - I5 Of slots that are all closed or taken, no waiter for one is left asleep: who closes a slot holds `opening`, and so does who opens one.
//!   Interleaving otherwise: a slot is given back and closed while a waiter looks past it; the waiter finds nothing to open, since the count of open
//!   slots has not fallen yet, and nobody wakes it any more.
//!
//! Slots are closed so that what passes cost, and how often they come, go by the sessions of today: a thousand that were connected once
//! would otherwise have each pass look at a thousand words for good, and come after as many transactions.
//!
//! Concurrency: the bits and `ever` belong to the Dekker pair of `slot`: set (SeqCst) before the state word
//! is taken, read (SeqCst) after the clock. I3: a withdrawal is counted as begun before the word says so, and as done after; a pass reads
//! the second count before the first slot, and the first one behind the last slot: equal, if none was under way in between. A snapshot that is handed on
//! is counted as both between its publishing by the second slot and its end in the first: a pass that finds it gone there finds the count of begun raised; one that finds it done before it looks
//! at the first slot finds the second slot running.

use crate::active::ActiveSnapshots;
use crate::clock::Clock;
use crate::commit_log::CommitLog;
use crate::quiet::{Known, QuietBits, Span, places};
use crate::slot::{Class, Ended, Seen, SlotWords, Withdrawal, dekker_fence};
use crate::visibility::SnapshotCache;
use crate::waiters::Waiters;
use crate::watermarks::Watermarks;
use vellum_base::planted::{self, Bug};
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
    /// A bit for each open slot (I1).
    open: Box<[AtomicU64]>,
    /// A bit for each slot that passes need not look at.
    quiet: QuietBits,
    /// How many are open.
    open_count: CachePadded<AtomicUsize>,
    /// I4.
    ever: CachePadded<AtomicUsize>,
    /// Held by who opens or closes.
    opening: Mutex<Opening>,
    /// Analytical snapshots that ended. Seldom written, and after they are gone from the words.
    olap_ended: CachePadded<AtomicU64>,
    /// Transactions that were promoted.
    promotions: AtomicU64,
    /// Writers that go on without their snapshots. Counted before these go.
    withdrawn_writers: AtomicUsize,
    /// Withdrawals (also in vain) that began, and that are done; and snapshots that were handed on (I3).
    withdrawals_begun: AtomicU64,
    withdrawals_done: AtomicU64,
    pub(crate) waiters: Waiters,
}

/// How many slots are to stay open.
#[derive(Debug, Default)]
struct Opening {
    /// Four times as many as were leased at the fullest look of late: falls by a sixteenth from one to the next. (Who leases a slot for a tenth of his time is
    /// found by one look of ten.)
    wanted: usize,
}

/// Slots of a word of bits.
pub(crate) const BITS: usize = 64;
/// Open slots that are never closed.
const OPEN_LEAST: usize = 8;

impl Slots {
    pub(crate) fn new(slots_max: u16) -> Self {
        let slot = || Slot {
            words: SlotWords::new(),
            commit_log: CommitLog::new(),
            ended: AtomicU32::new(0),
            parts: Mutex::new(Parts::default()),
        };
        let words = usize::from(slots_max).div_ceil(BITS);
        Self {
            slots: (0..slots_max).map(|_| slot()).collect(),
            open: (0..words).map(|_| AtomicU64::new(0)).collect(),
            quiet: QuietBits::new(words),
            open_count: CachePadded::new(AtomicUsize::new(0)),
            ever: CachePadded::new(AtomicUsize::new(0)),
            opening: Mutex::new(Opening::default()),
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

    /// Number of open slots, of which a pass looks at each. A hint.
    #[inline]
    pub(crate) fn open_count(&self) -> usize {
        self.open_count.load(Ordering::Relaxed)
    }

    /// Number of slots that were ever open (I4).
    pub(crate) fn ever(&self) -> usize {
        self.ever.load(Ordering::SeqCst)
    }

    /// Slots that are leased now.
    pub(crate) fn taken(&self) -> usize {
        self.used()
            .iter()
            .filter(|slot| slot.words.is_taken())
            .count()
    }

    /// Entries in all commit logs.
    pub(crate) fn commit_log_entries(&self) -> usize {
        self.used().iter().map(|slot| slot.commit_log.count()).sum()
    }

    /// Slots that were ever open.
    pub(crate) fn used(&self) -> &[Slot] {
        &self.slots[..self.ever()]
    }

    /// Words of bits of slots that were ever open.
    fn words(&self) -> usize {
        self.ever().div_ceil(BITS)
    }

    /// The bits of the open slots from `index * BITS` on (I1). Looked at after the clock.
    #[inline]
    fn open_bits(&self, index: usize) -> u64 {
        // SeqCst: the pair of `slot`.
        self.open[index].load(Ordering::SeqCst)
    }

    /// The places of the open slots.
    fn open_places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.words()).flat_map(move |index| places(index, self.open_bits(index)))
    }

    /// The open slots.
    pub(crate) fn open_slots(&self) -> impl Iterator<Item = &Slot> + '_ {
        self.open_places().map(|place| &self.slots[place])
    }

    /// Leases a slot and announces a snapshot: `hint` if it is free, else another one.
    #[inline]
    pub(crate) fn take(&self, class: Class, hint: u16) -> Option<SlotId> {
        // A slot that is free is open.
        if let Some(slot) = self.get(SlotId(hint))
            && slot.words.try_begin(class)
        {
            return Some(SlotId(hint));
        }
        self.take_slowly(class, usize::from(hint))
    }

    fn take_slowly(&self, class: Class, hint: usize) -> Option<SlotId> {
        let is_free = |place: &usize| self.slots[*place].words.try_begin(class);
        // The one behind the hint first: who comes one after the other does not meet at the first.
        let behind = self.open_places().filter(|place| *place > hint);
        let before = self.open_places().take_while(|place| *place <= hint);
        let found = behind.chain(before).find(is_free);
        found
            .or_else(|| self.open_one(class))
            .map(|place| SlotId(place as u16))
    }

    /// Opens the first closed slot and leases it.
    #[cold]
    fn open_one(&self, class: Class) -> Option<usize> {
        let _opening = self.opening.lock();
        for (place, slot) in self.slots.iter().enumerate() {
            let (word, bit) = (&self.open[place / BITS], 1 << (place % BITS));
            if word.load(Ordering::Relaxed) & bit != 0 || !slot.words.is_closed() {
                continue;
            }
            // I1, I4. SeqCst pairs with `open_places`.
            self.ever.fetch_max(place + 1, Ordering::SeqCst);
            word.fetch_or(bit, Ordering::SeqCst);
            dekker_fence();
            if slot.words.try_open(class) {
                self.open_count.fetch_add(1, Ordering::Relaxed);
                return Some(place);
            }
            // Maintenance has it for a moment.
            word.fetch_and(!bit, Ordering::SeqCst);
        }
        None
    }

    /// Closes slots that nobody has leased, where many more are open than were leased of late: the last ones first, and an eighth of them at most.
    /// For maintenance, now and then.
    pub(crate) fn close_unused(&self) {
        let mut opening = self.opening.lock();
        let rest = opening.wanted - opening.wanted.div_ceil(16);
        opening.wanted = rest.max(4 * self.taken()).max(OPEN_LEAST);
        let open = self.open_count();
        self.close_down_to(opening.wanted.max(open - open / 8));
    }

    /// For who holds `opening`.
    fn close_down_to(&self, wanted: usize) {
        for place in (0..self.ever()).rev() {
            if self.open_count() <= wanted {
                return;
            }
            if self.slots[place].words.try_close() {
                // I1: behind the word.
                self.open[place / BITS].fetch_and(!(1 << (place % BITS)), Ordering::SeqCst);
                self.open_count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Closes every slot that is free.
    #[cfg(all(test, loom))]
    pub(crate) fn close_all(&self) {
        let _opening = self.opening.lock();
        self.close_down_to(0);
    }

    /// Gives a slot back and wakes who waits for one.
    #[inline]
    pub(crate) fn release(&self, slot: SlotId) {
        let words = &self.slots[usize::from(slot.get())].words;
        while !self.has_released(slot, words) {
            // Q2 of `quiet`.
            self.keep(slot);
        }
        self.waiters.wake_next();
    }

    #[inline]
    fn has_released(&self, slot: SlotId, words: &SlotWords) -> bool {
        let ended = words.release();
        if let Some(ended) = ended {
            self.count_ended(slot, ended);
        }
        ended.is_some()
    }

    /// Ends the transaction of a slot, but not the lease.
    pub(crate) fn keep(&self, slot: SlotId) {
        let ended = self.slots[usize::from(slot.get())].words.keep();
        self.count_ended(slot, ended);
    }

    /// Passes look at the slot again: before what they have to know, and behind what they may learn late (`quiet`).
    #[cold]
    pub(crate) fn stir(&self, slot: SlotId) {
        self.quiet.take_away(usize::from(slot.get()));
    }

    /// Gives a slot back that was leased while it was closed, and wakes who waits for one (he opens it).
    pub(crate) fn release_closed(&self, slot: SlotId) {
        self.slots[usize::from(slot.get())].words.release_closed();
        self.waiters.wake_next();
    }

    /// Counts what ended with a transaction, once its words say so.
    #[inline]
    fn count_ended(&self, slot: SlotId, ended: Ended) {
        if !ended.is_plain() {
            self.count_ended_slowly(slot, ended);
        }
    }

    #[cold]
    fn count_ended_slowly(&self, slot: SlotId, ended: Ended) {
        if ended.analytical && !planted::has(Bug::QuietForGood) {
            // Q2, before passes are asked to look again.
            self.stir(slot);
        }
        if ended.withdrawn_writer {
            self.withdrawn_writers.fetch_sub(1, Ordering::Release);
        }
        if ended.olap {
            self.olap_has_ended();
        }
    }

    /// Makes the snapshots of transaction `number` of a slot count no more (R10).
    pub(crate) fn withdraw(&self, slot: SlotId, number: u64) -> Withdrawal {
        let Some(words) = self.get(slot).map(|slot| &slot.words) else {
            return Withdrawal::Gone;
        };
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
        let withdrawal = words.withdraw(number, about_to, in_vain);
        if withdrawal == Withdrawal::Done {
            // Q4. A pass meanwhile counts for nothing (I3).
            self.stir(slot);
            done();
            self.olap_has_ended();
        }
        withdrawal
    }

    /// Counts a snapshot that a second slot holds now, which may keep it for longer than the first one (I3). Before the first one can end.
    pub(crate) fn has_handed_on(&self) {
        // Relaxed: the release of the first slot's end, which comes later, publishes it to who finds that.
        self.withdrawals_begun.fetch_add(1, Ordering::Relaxed);
        // Release pairs with the acquire in `withdrawals_done`: who counts it as done finds the second slot's snapshot.
        self.withdrawals_done.fetch_add(1, Ordering::Release);
    }

    /// What a pass asks before it looks at the first slot, for `is_whole`.
    fn withdrawals_done(&self) -> u64 {
        self.withdrawals_done.load(Ordering::Acquire)
    }

    /// True if nobody withdrew snapshots, or handed one on, since `withdrawals_done` gave `before` (I3).
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
            for slot in self.open_slots() {
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
    /// there within a few looks, or snapshots were withdrawn meanwhile (I3). Promotes undeclared transactions that are more than `promote_after` behind, and
    /// the one that holds back all others where it is more than `promote_oldest_after` behind (for the marks of this pass it is OLTP, which is too careful).
    /// `nanos` is about the time, for the ages of transactions. Looks at no slot that is quiet.
    pub(crate) fn watermarks(
        &self,
        known: &mut Known,
        clock: &Clock,
        (promote_after, promote_oldest_after): (u64, u64),
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
        let mut holds_back = None;
        for index in 0..self.words() {
            // Q1: before the slots. (Only open ones have one.)
            let quiet = self.quiet.word(index);
            known.note_bits(index, quiet);
            for place in places(index, self.open_bits(index) & !quiet) {
                let slot = &self.slots[place];
                known.looks += 1;
                let (seen, span) = look_patiently(slot)?;
                vellum_sync::test_point!("pass: looked at a slot");
                let Seen::Running { mut olap } = seen else {
                    continue;
                };
                slot.words.note_seen(nanos);
                if olap && known.note_span(place, span) {
                    self.quieten(place, known);
                }
                let oldest = span.oldest.min(now);
                if !olap && now.get() - oldest.get() > promote_after {
                    // Where the slot holds another transaction by now, that one began at or above C: it is
                    // analytical without need, which costs it a few looks into graveyards.
                    olap = slot.words.promote();
                    self.promotions
                        .fetch_add(u64::from(olap), Ordering::Relaxed);
                }
                if olap {
                    marks.newest_olap = marks.newest_olap.max(span.newest.min(now));
                } else if oldest < marks.oldest_oltp {
                    marks.oldest_oltp = oldest;
                    holds_back = Some(slot);
                }
                marks.oldest_tx = marks.oldest_tx.min(oldest);
            }
        }
        let quiet = known.quiet_span();
        marks.oldest_tx = marks.oldest_tx.min(quiet.oldest);
        marks.newest_olap = marks.newest_olap.max(quiet.newest.min(now));
        if let Some(slot) = holds_back
            && now.get() - marks.oldest_oltp.get() > promote_oldest_after
        {
            let promoted = slot.words.promote();
            self.promotions
                .fetch_add(u64::from(promoted), Ordering::Relaxed);
        }
        debug_assert!(marks.is_consistent());
        self.is_whole(withdrawals).then_some(marks)
    }

    /// Has passes go by what a slot shows now, if it runs an analytical transaction (Q3).
    #[cold]
    fn quieten(&self, place: usize, known: &mut Known) {
        self.quiet.set(place);
        if planted::has(Bug::QuietUnchecked) {
            return;
        }
        let mut span = Span::NONE;
        let seen = self.slots[place].words.look(|snapshot| span.add(snapshot));
        known.note_span(place, span);
        if seen != (Seen::Running { olap: true }) {
            self.quiet.take_away(place);
        }
    }

    /// Moves every open slot's `settled` up (see [`CommitLog::settle`]) by marks that are published.
    pub(crate) fn settle(&self, known: &mut Known, marks: &Watermarks) {
        let all = known.take_unsettled(marks);
        for index in 0..self.words() {
            let quiet = known.bits(index);
            let skipped = if all { 0 } else { quiet };
            for place in places(index, self.open_bits(index) & !skipped) {
                let settled = self.slots[place].commit_log.settle(marks);
                if quiet & 1 << (place % BITS) != 0 {
                    known.note_settled(settled, marks);
                }
            }
        }
    }

    /// The same for all slots: what ran in closed ones is settled by maintenance.
    pub(crate) fn settle_all(&self, marks: &Watermarks) {
        for slot in self.used() {
            slot.commit_log.settle(marks);
        }
    }

    /// Slots that were ever leased and are free, or closed, or parked now.
    pub(crate) fn quiet(&self, parked: bool) -> impl Iterator<Item = SlotId> + '_ {
        self.used()
            .iter()
            .enumerate()
            .filter_map(move |(index, slot)| {
                let hit = if parked {
                    slot.words.is_parked()
                } else {
                    !slot.words.is_taken()
                };
                hit.then_some(SlotId(index as u16))
            })
    }
}

/// What a slot shows; `None` where it is about to publish a snapshot and does not get there within a few looks.
#[inline]
fn look_patiently(slot: &Slot) -> Option<(Seen, Span)> {
    let mut backoff = Backoff::new();
    loop {
        let mut span = Span::NONE;
        match slot.words.look(|snapshot| span.add(snapshot)) {
            Seen::Busy if backoff.should_park() => return None,
            Seen::Busy => backoff.wait(),
            seen => return Some((seen, span)),
        }
    }
}
