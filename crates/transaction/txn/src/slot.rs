//! One worker slot: its state word and the snapshots that it publishes.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.1 (watermark maintenance).
//! Differences: the paper ties a worker to a thread and publishes one start timestamp; here a slot
//! is leased from begin to end of a transaction and publishes every open snapshot (R3).
//!
//! Layout of the state word:
//! | bits | meaning |
//! | --- | --- |
//! | 0 | BUSY: the owner is about to publish a snapshot; a pass waits |
//! | 1 | RUNNING: a transaction; its published snapshots count |
//! | 2 | KEPT: leased without a snapshot (maintenance, cleaning after commit); pins nothing |
//! | 3 | PARKED: an unfinished writer whose owner is gone; pins nothing but its slot |
//! | 4 | OLAP: analytical; else OLTP |
//! | 5 | AUTO: may be promoted from OLTP to OLAP |
//! | 6 | WITHDRAWN: its snapshots do not count any more; its owner is told with the next operation |
//! | 7 | WRITER: it has drawn its stamp |
//! | 8..32 | low bits of the number of the transaction in this slot |
//! | 32.. | count of running operations (R10) |
//!
//! KEPT and PARKED together are CLOSED: nobody can lease the slot, and passes need not look at it (`slots` I1).
//!
//! States: CLOSED (a new slot) → `try_open` → BUSY, FREE → `try_close` → CLOSED, CLOSED → `try_keep_closed` → KEPT → `release_closed` → CLOSED; FREE (zero) → `try_begin` → BUSY → `publish_first` → RUNNING → `refresh` → RUNNING+BUSY
//! → RUNNING → `keep` → KEPT → `release` → FREE; RUNNING (not OLAP) → `release` → FREE; KEPT → `park` →
//! PARKED → `unpark` → KEPT → `park` or `release`; FREE → `try_keep` → KEPT; RUNNING OLTP AUTO, no operation → `promote`
//! (by a pass) → RUNNING OLAP; RUNNING, no operation → `withdraw` (by maintenance) → RUNNING WITHDRAWN.
//!
//! Invariants:
//! - I1 Only the owner leaves a state other than FREE; others change nothing but OLTP to OLAP, and set WITHDRAWN, both
//!   only while no operation runs and BUSY is not set.
//! - I2 While a snapshot is open, its word holds it: words are never moved, and a word that is not
//!   in use holds zero (word 0 only while RUNNING).
//! - I3 (R2) BUSY is visible before the clock is read for the snapshot. A pass reads the clock (C)
//!   first, the word second: if it does not see BUSY or the snapshot, the snapshot is at or
//!   above C.
//! - I4 Who withdraws names the transaction by its number: a word that is another transaction's by then does not match.
//!
//! Concurrency: the Dekker pair of I3 is four SeqCst accesses: begin's read-modify-write of the
//! word and its load of the clock; a pass's load of the clock and its load of the word. loom takes
//! SeqCst accesses for AcqRel, so its build adds fences (`dekker_fence`). A pass that reads a word
//! late sees newer snapshots, which are at or above C: garbage kept longer or clamped, never a
//! version lost.

use std::sync::OnceLock;
use vellum_base::Timestamp;
use vellum_base::planted::{self, Bug};
use vellum_sync::CachePadded;
use vellum_sync::atomic::{AtomicU64, Ordering};

pub(crate) const FREE: u64 = 0;
const BUSY: u64 = 1;
const RUNNING: u64 = 1 << 1;
const KEPT: u64 = 1 << 2;
const PARKED: u64 = 1 << 3;
const OLAP: u64 = 1 << 4;
const AUTO: u64 = 1 << 5;
const WITHDRAWN: u64 = 1 << 6;
const WRITER: u64 = 1 << 7;
const NUMBER_SHIFT: u32 = 8;
/// Bits of the number of a transaction that are in the word.
const NUMBER_MASK: u64 = (1 << 24) - 1;
const OPERATION: u64 = 1 << 32;
const CLOSED: u64 = KEPT | PARKED;

/// Snapshot words beside the state word, on its cache line.
const INLINE: usize = 6;
/// Snapshot words in each further block.
const BLOCK: usize = 64;

/// In a normal build nothing: the accesses around it are SeqCst. Under loom the fence that it needs
/// for the same guarantee.
#[inline(always)]
pub(crate) fn dekker_fence() {
    #[cfg(loom)]
    vellum_sync::atomic::fence(Ordering::SeqCst);
}

/// What a transaction does, as far as cleaning is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Starts as [`Class::Oltp`] and becomes [`Class::Olap`] when its snapshot is far behind the
    /// clock.
    #[default]
    Auto,
    /// Short; never looks into graveyards.
    Oltp,
    /// Long or analytical; looks into graveyards.
    Olap,
}

impl Class {
    const fn bits(self) -> u64 {
        match self {
            Self::Auto => AUTO,
            Self::Oltp => 0,
            Self::Olap => OLAP,
        }
    }
}

/// What ended with a transaction, for those who count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// An analytical transaction, withdrawn or not.
    pub(crate) analytical: bool,
    /// Analytical snapshots that counted until now.
    pub(crate) olap: bool,
    /// A writer whose snapshots had been withdrawn.
    pub(crate) withdrawn_writer: bool,
}

impl Ended {
    fn with(word: u64) -> Self {
        Self {
            analytical: word & OLAP != 0,
            olap: word & (OLAP | WITHDRAWN) == OLAP,
            withdrawn_writer: word & (WRITER | WITHDRAWN) == WRITER | WITHDRAWN,
        }
    }

    /// Nothing that anybody counts: the usual case.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        !(self.analytical || self.withdrawn_writer)
    }
}

/// What became of a withdrawal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// The snapshots do not count any more.
    Done,
    /// Not now: an operation runs, or the owner is at work on the word.
    Busy,
    /// The transaction has ended, or was withdrawn before.
    Gone,
}

/// What a pass learned from one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The slot pins nothing.
    Idle,
    /// The owner is between reading the clock and publishing: look again.
    Busy,
    /// A transaction; its snapshots were reported.
    Running {
        /// It counts as analytical.
        olap: bool,
    },
}

#[derive(Debug)]
struct Block {
    words: [AtomicU64; BLOCK],
    next: OnceLock<Box<Self>>,
}

impl Block {
    fn new() -> Box<Self> {
        Box::new(Self {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            next: OnceLock::new(),
        })
    }
}

/// The published words of one slot.
#[derive(Debug)]
pub(crate) struct SlotWords {
    hot: CachePadded<Hot>,
}

#[derive(Debug)]
struct Hot {
    state: AtomicU64,
    /// Transactions that the slot has run, this one included. Only the owner writes it.
    number: AtomicU64,
    snapshots: [AtomicU64; INLINE],
    more: OnceLock<Box<Block>>,
    /// The transaction that passes saw last, and when they first saw it. Only passes write these.
    seen_number: AtomicU64,
    seen_nanos: AtomicU64,
}

impl SlotWords {
    pub(crate) fn new() -> Self {
        Self {
            hot: CachePadded::new(Hot {
                state: AtomicU64::new(CLOSED),
                number: AtomicU64::new(0),
                snapshots: std::array::from_fn(|_| AtomicU64::new(0)),
                more: OnceLock::new(),
                seen_number: AtomicU64::new(0),
                seen_nanos: AtomicU64::new(0),
            }),
        }
    }

    /// Leases a free slot and announces a snapshot, in one step.
    #[inline]
    pub(crate) fn try_begin(&self, class: Class) -> bool {
        self.try_take(BUSY | class.bits())
    }

    /// Opens a closed slot and leases it, as `try_begin`. For who holds `opening` of `slots`, and has set the slot's bit.
    pub(crate) fn try_open(&self, class: Class) -> bool {
        self.try_leave(CLOSED, BUSY | class.bits())
    }

    /// Leases a closed slot without a snapshot: it stays closed to transactions.
    pub(crate) fn try_keep_closed(&self) -> bool {
        self.try_leave(CLOSED, KEPT)
    }

    /// Closes a slot, if nobody has leased it. For who holds `opening` of `slots`.
    pub(crate) fn try_close(&self) -> bool {
        self.try_take(CLOSED)
    }

    /// Leases a free slot without a snapshot.
    pub(crate) fn try_keep(&self) -> bool {
        self.try_take(KEPT)
    }

    #[inline]
    fn try_take(&self, word: u64) -> bool {
        self.try_leave(FREE, word)
    }

    #[inline]
    fn try_leave(&self, from: u64, word: u64) -> bool {
        // The relaxed look spares a taken slot's line the exclusive request. Acquire pairs with the
        // release in `release`: the next owner sees what the last one left in the slot. SeqCst is
        // I3.
        let taken = self.hot.state.load(Ordering::Relaxed) == from
            && self
                .hot
                .state
                .compare_exchange(from, word, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok();
        dekker_fence();
        taken
    }

    /// Publishes the first snapshot of the transaction that `try_begin` announced; `snapshot` was
    /// read from the clock after that.
    #[inline]
    pub(crate) fn publish_first(&self, class: Class, snapshot: Timestamp) {
        debug_assert_eq!(self.state() & (BUSY | RUNNING), BUSY);
        debug_assert!(!snapshot.is_zero());
        self.hot.snapshots[0].store(snapshot.get(), Ordering::Relaxed);
        let number = self.number() + 1;
        self.hot.number.store(number, Ordering::Relaxed);
        // Release pairs with the acquire in `look`: who sees RUNNING sees the snapshot.
        self.hot.state.store(
            RUNNING | class.bits() | (number & NUMBER_MASK) << NUMBER_SHIFT,
            Ordering::Release,
        );
    }

    /// Number of the transaction that the slot runs or ran last.
    pub(crate) fn number(&self) -> u64 {
        self.hot.number.load(Ordering::Relaxed)
    }

    /// Notes that the transaction writes; false if its snapshots were withdrawn.
    pub(crate) fn begin_writing(&self) -> bool {
        // Being one read-modify-write with a withdrawal: that knows whether it withdraws a writer's snapshots.
        let before = self.hot.state.fetch_or(WRITER, Ordering::Relaxed);
        debug_assert_ne!(before & RUNNING, 0);
        before & WITHDRAWN == 0
    }

    /// Announces another snapshot of a running transaction. `publish` ends it. True if the transaction is analytical: `quiet` (Q1) asks for more then, before
    /// the clock is read.
    #[inline]
    pub(crate) fn announce(&self) -> bool {
        // SeqCst is I3.
        let before = self.hot.state.fetch_or(BUSY, Ordering::SeqCst);
        debug_assert_eq!(before & (BUSY | RUNNING), RUNNING);
        dekker_fence();
        before & OLAP != 0
    }

    /// Puts `snapshot`, read from the clock after `announce`, into word `index`. True if the transaction is
    /// analytical.
    #[inline]
    pub(crate) fn publish(&self, index: usize, snapshot: Timestamp) -> bool {
        debug_assert!(!snapshot.is_zero());
        self.word(index).store(snapshot.get(), Ordering::Relaxed);
        // Release pairs with the acquire in `look`.
        let before = self.hot.state.fetch_and(!BUSY, Ordering::Release);
        debug_assert_eq!(before & (BUSY | RUNNING), BUSY | RUNNING);
        before & OLAP != 0
    }

    /// Takes back the snapshot in word `index`.
    #[inline]
    pub(crate) fn unpublish(&self, index: usize) {
        // Release pairs with the acquire in `look`: what was read under the snapshot was read
        // before a pass finds it gone.
        self.word(index).store(0, Ordering::Release);
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        if let Some(word) = self.hot.snapshots.get(index) {
            return word;
        }
        let mut rest = index - INLINE;
        let mut block = self.hot.more.get_or_init(Block::new);
        while rest >= BLOCK {
            block = block.next.get_or_init(Block::new);
            rest -= BLOCK;
        }
        &block.words[rest]
    }

    /// Ends the transaction (or the lease) and gives the slot back. Words above 0 are zero by now. `None`, and nothing is done, if the transaction is
    /// analytical: `keep` comes first then, and what `quiet` (Q2) asks for.
    #[inline]
    pub(crate) fn release(&self) -> Option<Ended> {
        let mut word = self.state();
        debug_assert_ne!(word, FREE);
        debug_assert_eq!(word & BUSY, 0);
        debug_assert_eq!(
            self.operations(),
            0,
            "an operation outlives its transaction"
        );
        loop {
            if word & OLAP != 0 {
                return None;
            }
            // Release pairs with the acquire of the next lease and of `look`. SeqCst is half of the
            // pair with `Waiters::register` (lease): a waiter that does not see the slot free is seen
            // by who looks for waiters after this.
            let freed =
                self.hot
                    .state
                    .compare_exchange(word, FREE, Ordering::SeqCst, Ordering::Relaxed);
            match freed {
                Ok(_) => break,
                // Promoted, or withdrawn.
                Err(now) => word = now,
            }
        }
        dekker_fence();
        Some(Ended::with(word))
    }

    /// Gives a slot back that `try_keep_closed` has leased.
    pub(crate) fn release_closed(&self) {
        debug_assert_eq!(self.state(), KEPT);
        // As in `release`.
        self.hot.state.swap(CLOSED, Ordering::SeqCst);
        dekker_fence();
    }

    /// Ends the transaction but not the lease.
    pub(crate) fn keep(&self) -> Ended {
        debug_assert_eq!(self.state() & (BUSY | RUNNING), RUNNING);
        Ended::with(self.hot.state.swap(KEPT, Ordering::Release))
    }

    /// Leaves a writer that nobody finished, and whose transaction was ended by `keep`, to whoever rolls it back.
    pub(crate) fn park(&self) {
        debug_assert_eq!(self.state(), KEPT);
        self.hot.state.swap(PARKED, Ordering::Release);
    }

    /// Takes over a parked writer.
    pub(crate) fn unpark(&self) -> bool {
        // Acquire pairs with the release in `park`.
        self.hot
            .state
            .compare_exchange(PARKED, KEPT, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Notes that an operation starts; true if the transaction is analytical by now. `None`, and nothing noted, if
    /// its snapshots were withdrawn.
    #[inline]
    pub(crate) fn raise(&self) -> Option<bool> {
        // Acquire pairs with the release of a promotion; being one read-modify-write with it makes
        // the class and the count one decision (R10).
        let before = self.hot.state.fetch_add(OPERATION, Ordering::Acquire);
        debug_assert_ne!(before & RUNNING, 0);
        if before & WITHDRAWN != 0 {
            self.lower();
            return None;
        }
        Some(before & OLAP != 0)
    }

    /// Notes that an operation ended.
    #[inline]
    pub(crate) fn lower(&self) {
        // Not a read-modify-write: while the count is above zero only the owner's thread changes the word (I1).
        let word = self.hot.state.load(Ordering::Relaxed);
        debug_assert!(word >= OPERATION);
        // Release pairs with the acquire of a promotion.
        self.hot.state.store(word - OPERATION, Ordering::Release);
    }

    /// Makes an OLTP transaction that declared nothing analytical, unless an operation runs.
    pub(crate) fn promote(&self) -> bool {
        let word = self.hot.state.load(Ordering::Relaxed);
        let flags = word & (RUNNING | AUTO | OLAP | BUSY | WITHDRAWN);
        let between = word < OPERATION || planted::has(Bug::PromotedMidway);
        let may = flags == RUNNING | AUTO && between;
        // Acquire and release pair with `lower` and `raise`.
        may && self
            .hot
            .state
            .compare_exchange(word, word | OLAP, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Makes the snapshots of transaction `number` count no more, unless an operation runs. `about_to` is called before,
    /// with true for a writer; `in_vain` if it does not come to it.
    pub(crate) fn withdraw(
        &self,
        number: u64,
        about_to: impl FnOnce(bool),
        in_vain: impl FnOnce(bool),
    ) -> Withdrawal {
        let word = self.hot.state.load(Ordering::Relaxed);
        let same = (word >> NUMBER_SHIFT ^ number) & NUMBER_MASK == 0;
        if !same || word & (RUNNING | WITHDRAWN) != RUNNING {
            return Withdrawal::Gone;
        }
        if word & BUSY != 0 || word >= OPERATION {
            return Withdrawal::Busy;
        }
        let writer = word & WRITER != 0;
        about_to(writer);
        // Acquire and release pair with `lower` and `raise`; release also with the acquire in `look`: who finds the
        // snapshots gone finds what `about_to` noted.
        let done = self.hot.state.compare_exchange(
            word,
            word | WITHDRAWN,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if done.is_err() {
            in_vain(writer);
            return Withdrawal::Busy;
        }
        Withdrawal::Done
    }

    /// True once the snapshots of the slot's transaction were withdrawn.
    #[inline]
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.state() & WITHDRAWN != 0
    }

    /// True while the slot runs a transaction that has drawn its stamp, or is about to.
    pub(crate) fn is_writer(&self) -> bool {
        // Acquire pairs with the releases of who ends or parks a writer: who finds that it is none any more finds what was noted before.
        self.hot.state.load(Ordering::Acquire) & WRITER != 0
    }

    /// Notes, for a pass, that the slot runs a transaction at `nanos`.
    pub(crate) fn note_seen(&self, nanos: u64) {
        let number = self.number();
        if self.hot.seen_number.load(Ordering::Relaxed) != number {
            self.hot.seen_nanos.store(nanos, Ordering::Relaxed);
            self.hot.seen_number.store(number, Ordering::Relaxed);
        }
    }

    /// When passes first saw transaction `number`, if they did.
    pub(crate) fn seen_at(&self, number: u64) -> Option<u64> {
        let seen = self.hot.seen_number.load(Ordering::Relaxed) == number;
        seen.then(|| self.hot.seen_nanos.load(Ordering::Relaxed))
    }

    /// True while the transaction is analytical.
    pub(crate) fn is_olap(&self) -> bool {
        self.state() & OLAP != 0
    }

    /// True while the slot is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.state() == CLOSED
    }

    /// True while somebody leases the slot, or it is parked.
    pub(crate) fn is_taken(&self) -> bool {
        !matches!(self.state(), FREE | CLOSED)
    }

    /// True for a writer whose owner is gone.
    pub(crate) fn is_parked(&self) -> bool {
        self.state() & CLOSED == PARKED
    }

    fn operations(&self) -> u64 {
        self.state() / OPERATION
    }

    fn state(&self) -> u64 {
        self.hot.state.load(Ordering::Relaxed)
    }

    /// Reports every published snapshot. The caller read the clock before (I3). Nothing that was
    /// reported counts when the answer is [`Seen::Busy`].
    #[inline]
    pub(crate) fn look(&self, mut report: impl FnMut(Timestamp)) -> Seen {
        // SeqCst is I3; acquire pairs with the releases of all who publish and unpublish.
        let state = self.hot.state.load(Ordering::SeqCst);
        if state & BUSY != 0 {
            return Seen::Busy;
        }
        if state & (RUNNING | WITHDRAWN) != RUNNING {
            return Seen::Idle;
        }
        let mut each = |word: &AtomicU64| {
            // Acquire pairs with the release in `unpublish`.
            let value = word.load(Ordering::Acquire);
            if value != 0 {
                report(Timestamp(value));
            }
        };
        self.hot.snapshots.iter().for_each(&mut each);
        let mut more = self.hot.more.get();
        while let Some(block) = more {
            block.words.iter().for_each(&mut each);
            more = block.next.get();
        }
        Seen::Running {
            olap: state & OLAP != 0,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn open() -> SlotWords {
        let slot = SlotWords::new();
        assert!(!slot.try_begin(Class::Auto) && !slot.try_keep());
        slot.hot.state.store(FREE, Ordering::Relaxed);
        slot
    }

    fn seen(slot: &SlotWords) -> (Seen, Vec<u64>) {
        let mut found = Vec::new();
        let seen = slot.look(|ts| found.push(ts.get()));
        (seen, found)
    }

    #[test]
    fn r3_every_open_snapshot_is_published_however_many() {
        let slot = open();
        assert!(slot.try_begin(Class::Oltp));
        assert_eq!(seen(&slot).0, Seen::Busy);
        slot.publish_first(Class::Oltp, Timestamp(1));
        for index in 1..200_usize {
            slot.announce();
            assert_eq!(seen(&slot).0, Seen::Busy);
            slot.publish(index, Timestamp(index as u64 + 1));
        }
        assert_eq!(seen(&slot).1, (1..=200).collect::<Vec<u64>>());
        for index in 1..200 {
            slot.unpublish(index);
        }
        assert_eq!(seen(&slot), (Seen::Running { olap: false }, vec![1]));
        slot.release();
        assert_eq!(seen(&slot), (Seen::Idle, vec![]));
    }

    #[test]
    fn kept_and_parked_slots_pin_nothing_and_cannot_be_leased() {
        let slot = open();
        assert!(slot.try_begin(Class::Auto));
        slot.publish_first(Class::Auto, Timestamp(5));
        slot.keep();
        slot.park();
        assert_eq!(seen(&slot), (Seen::Idle, vec![]));
        assert!(!slot.try_begin(Class::Auto) && !slot.try_keep() && slot.is_taken());
        assert!(slot.unpark() && !slot.unpark());
        assert_eq!(seen(&slot), (Seen::Idle, vec![]));
        assert!(!slot.try_keep());
        slot.release();
        assert!(slot.try_keep());
    }

    #[test]
    fn a_closed_slot_pins_nothing_and_can_be_leased_by_maintenance_alone() {
        let slot = open();
        assert!(slot.try_begin(Class::Auto));
        assert!(!slot.try_close(), "it is leased");
        slot.publish_first(Class::Auto, Timestamp(5));
        slot.release();
        assert!(slot.try_close() && !slot.try_close());
        assert!(slot.is_closed() && !slot.is_taken() && !slot.is_parked());
        assert!(!slot.unpark() && !slot.try_begin(Class::Auto) && !slot.try_keep());
        assert_eq!(seen(&slot), (Seen::Idle, vec![]));
        assert!(slot.try_keep_closed() && !slot.try_open(Class::Auto));
        assert!(slot.is_taken() && !slot.is_closed());
        slot.release_closed();
        assert!(slot.try_open(Class::Auto) && slot.is_taken());
        assert_eq!(seen(&slot).0, Seen::Busy);
    }

    #[test]
    fn r10_promotion_waits_for_running_operations_and_spares_declared_classes() {
        let slot = open();
        assert!(slot.try_begin(Class::Auto));
        assert!(!slot.promote(), "not while it begins");
        slot.publish_first(Class::Auto, Timestamp(1));
        assert_eq!(slot.raise(), Some(false));
        assert!(!slot.promote());
        slot.lower();
        slot.announce();
        assert!(!slot.promote(), "not while it refreshes");
        slot.publish(0, Timestamp(2));
        assert!(slot.promote() && !slot.promote());
        assert_eq!(slot.raise(), Some(true));
        slot.lower();
        assert_eq!(slot.release(), None, "passes may go by what it showed");
        assert!(slot.keep().olap && slot.release().is_some());
        assert!(slot.try_begin(Class::Oltp));
        slot.publish_first(Class::Oltp, Timestamp(2));
        assert!(!slot.promote() && !slot.is_olap());
    }

    #[test]
    fn r10_withdrawal_waits_for_running_operations_and_names_its_transaction() {
        let slot = open();
        let withdraw = |number| slot.withdraw(number, |_| (), |_| ());
        assert!(slot.try_begin(Class::Oltp));
        assert_eq!(withdraw(slot.number()), Withdrawal::Gone, "it only begins");
        slot.publish_first(Class::Oltp, Timestamp(1));
        let first = slot.number();
        assert_eq!(slot.raise(), Some(false));
        assert_eq!(withdraw(first), Withdrawal::Busy);
        slot.lower();
        slot.announce();
        assert_eq!(withdraw(first), Withdrawal::Busy);
        slot.publish(0, Timestamp(2));
        assert_eq!(seen(&slot).1, [2]);
        assert_eq!(withdraw(first), Withdrawal::Done);
        assert_eq!(withdraw(first), Withdrawal::Gone);
        assert_eq!(seen(&slot), (Seen::Idle, vec![]));
        assert_eq!((slot.raise(), slot.operations()), (None, 0));
        slot.release();
        assert!(slot.try_begin(Class::Oltp));
        slot.publish_first(Class::Oltp, Timestamp(2));
        assert_eq!(withdraw(first), Withdrawal::Gone, "the slot runs another");
        assert_eq!(seen(&slot).1, [2]);
    }

    #[test]
    fn withdrawal_knows_whether_it_meets_a_writer() {
        let slot = open();
        let told = std::cell::Cell::new(None);
        let withdraw = |number| slot.withdraw(number, |writer| told.set(Some(writer)), |_| ());
        let begin = || {
            assert!(slot.try_begin(Class::Auto));
            slot.publish_first(Class::Auto, Timestamp(1));
            slot.number()
        };
        let number = begin();
        assert!(slot.begin_writing() && slot.is_writer());
        assert_eq!(
            (withdraw(number), told.get()),
            (Withdrawal::Done, Some(true))
        );
        assert!(slot.release().is_some_and(|ended| ended.withdrawn_writer));
        let number = begin();
        assert_eq!(
            (withdraw(number), told.get()),
            (Withdrawal::Done, Some(false))
        );
        assert!(!slot.begin_writing(), "too late");
        slot.keep();
        slot.park();
    }
}
