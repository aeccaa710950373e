//! The state of one page: latch, dirty flag and version in one word.
//!
//! Paper: Leis et al., "Virtual-Memory Assisted Buffer Management", SIGMOD 2023, §3.
//! Differences: the version is raised at acquisition *and* at release, so it is odd exactly
//! while the page is latched exclusively and validation is one masked comparison; zero means evicted,
//! so that a fresh anonymous mapping is a table of evicted pages; dirty flag and checkpoint cycle live
//! here, so that one load answers whether a page needs writing.
//!
//! Layout: `0..8 latch` (0 evicted, 1 marked, 2 unlocked, 2+n held by n readers, 255 exclusive),
//! `8 dirty`, `9 owed`, `10..18 cycle` in which the page was last made dirty (0: never), `18..64 version`.
//! Owed says that the file has an older life of the page, which redo must not meet (double_write.rs, D5): the
//! page must be written like a durable one even if it is temporary.
//!
//! States, and who makes each transition:
//! ```text
//!   evicted  --try_exclusive (fault, create)--> exclusive     marked --unmark (any access)--> unlocked
//!   unlocked --mark (clock)--> marked                         marked --try_exclusive (eviction)--> exclusive
//!   unlocked, marked, shared n --try_shared--> shared         shared n --release_shared--> shared n-1 | unlocked
//!   unlocked, marked --try_exclusive--> exclusive             shared 1 --release_copied--> marked
//!   exclusive --release_exclusive--> unlocked                 exclusive --downgrade--> shared 1
//!   exclusive --release_evicted--> evicted
//! ```
//!
//! Invariants:
//! - I1 The version is odd iff the latch is exclusive.
//! - I2 Only the holder changes an exclusive word: every other transition is a compare-exchange
//!   from a word that is not exclusive. So the holder may load and store plainly.
//! - I3 While the version of a resident page stays the same no word of it changes. (A holder that wrote
//!   nothing puts the old version back; so does a fault, for nobody reads an evicted page.)
//! - I4 The version never goes back otherwise, also not by eviction: a page id that is evicted, read
//!   again or used for another purpose never shows a version that an old reader has seen. 46 bits:
//!   a reader would have to sleep through 2^45 writes of one page.
//!
//! Concurrency: the orderings are argued in [`crate::racy`].

use vellum_sync::atomic::{AtomicU64, Ordering, fence};

const LATCH: u64 = 0xff;
const EVICTED: u64 = 0;
const MARKED: u64 = 1;
const UNLOCKED: u64 = 2;
const SHARED_MAX: u64 = 254;
const EXCLUSIVE: u64 = 255;
const DIRTY: u64 = 1 << 8;
const OWED: u64 = 1 << 9;
const CYCLE_SHIFT: u32 = 10;
const CYCLE: u64 = 0xff << CYCLE_SHIFT;
const VERSION_SHIFT: u32 = 18;
/// One step of the version; everything below it is latch and flags.
const VERSION: u64 = 1 << VERSION_SHIFT;

/// A value that a page's state had.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    /// A word that no page has, of a version that none reaches (I4): what was read under it never counts.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    const fn latch(self) -> u64 {
        self.0 & LATCH
    }

    /// The latch field replaced.
    const fn with_latch(self, latch: u64) -> u64 {
        (self.0 & !LATCH) | latch
    }

    /// True if the page may be read right away, leaving the word as it is: unlocked or shared.
    #[inline]
    pub(crate) const fn is_readable(self) -> bool {
        self.latch().wrapping_sub(UNLOCKED) <= SHARED_MAX - UNLOCKED
    }

    pub(crate) const fn is_evicted(self) -> bool {
        self.latch() == EVICTED
    }

    pub(crate) const fn is_marked(self) -> bool {
        self.latch() == MARKED
    }

    pub(crate) const fn is_unlocked(self) -> bool {
        self.latch() == UNLOCKED
    }

    pub(crate) const fn is_exclusive(self) -> bool {
        self.latch() == EXCLUSIVE
    }

    pub(crate) const fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// True if the page must reach the file even if it is temporary.
    pub(crate) const fn is_owed(self) -> bool {
        self.0 & OWED != 0
    }

    /// The cycle in which the page was last made dirty.
    pub(crate) const fn cycle(self) -> u8 {
        ((self.0 & CYCLE) >> CYCLE_SHIFT) as u8
    }

    /// The version; what changes with every change of the page.
    #[inline(always)]
    pub(crate) const fn version(self) -> u64 {
        self.0 >> VERSION_SHIFT
    }

    /// True if no exclusive holder came between the two words (I3).
    #[inline]
    pub(crate) const fn same_version(self, other: Self) -> bool {
        (self.0 ^ other.0) < VERSION
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dirty = if self.is_dirty() { " dirty" } else { "" };
        write!(
            f,
            "latch {} version {}{dirty}",
            self.latch(),
            self.0 >> VERSION_SHIFT
        )
    }
}

/// How the holder of an exclusive latch leaves the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing was written: readers from before stay valid.
    Untouched,
    /// Words were written, in this checkpoint cycle; the page has to be written out.
    Written(u8),
    /// As `Written`, and the page is owed to the file.
    Owed(u8),
    /// Nobody will miss the content: not dirty any more, unless the page is owed to the file.
    Clean,
}

/// The state word.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct PageState(AtomicU64);

impl PageState {
    /// The state of an evicted page. The mapped table is born in this state by being zero.
    #[cfg(any(test, loom, shuttle))]
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(EVICTED))
    }

    /// The current word. Acquire: pairs with the release stores below, so that what the last
    /// exclusive holder wrote is seen by whoever starts an optimistic read from this word.
    #[inline]
    pub(crate) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// The current word, after everything that the caller read from the page: the second half of
    /// an optimistic read. The fence pairs with the release fence in `try_exclusive`.
    #[inline]
    pub(crate) fn load_after_reads(&self) -> Word {
        fence(Ordering::Acquire);
        Word(self.0.load(Ordering::Relaxed))
    }

    /// Latches exclusively if the word is still `seen` and nobody holds the page; evicted pages too.
    pub(crate) fn try_exclusive(&self, seen: Word) -> bool {
        if !(seen.is_evicted() || seen.is_marked() || seen.is_unlocked()) {
            return false;
        }
        let held = seen.with_latch(EXCLUSIVE).wrapping_add(VERSION);
        debug_assert!(held & VERSION != 0, "I1: an exclusive word is odd");
        // Acquire: pairs with the release of the last holder, shared or exclusive.
        let taken = self
            .0
            .compare_exchange(seen.0, held, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if taken {
            // Pairs with the acquire fence in load_after_reads: a reader that saw any word written
            // after this fence sees the odd version too. The acquire above does not do that: it lets
            // later stores become visible before the exchange itself.
            fence(Ordering::Release);
        }
        taken
    }

    /// Latches shared if the word is still `seen` and no writer holds the page.
    pub(crate) fn try_shared(&self, seen: Word) -> bool {
        let latch = match seen.latch() {
            MARKED | UNLOCKED => UNLOCKED + 1,
            latch if latch > UNLOCKED && latch < SHARED_MAX => latch + 1,
            _ => return false,
        };
        // Acquire: pairs with the release of the last exclusive holder.
        self.0
            .compare_exchange(
                seen.0,
                seen.with_latch(latch),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Gives a shared latch back.
    pub(crate) fn release_shared(&self) {
        self.release_shared_to(UNLOCKED);
    }

    /// Gives a shared latch back whose holder was no user of the page: if it was the last, the
    /// page is marked for eviction as it was before.
    pub(crate) fn release_copied(&self) {
        self.release_shared_to(MARKED);
    }

    fn release_shared_to(&self, last: u64) {
        let mut seen = Word(self.0.load(Ordering::Relaxed));
        loop {
            debug_assert!(
                seen.latch() > UNLOCKED && seen.latch() <= SHARED_MAX,
                "{seen:?}"
            );
            let latch = if seen.latch() == UNLOCKED + 1 {
                last
            } else {
                seen.latch() - 1
            };
            // Release: pairs with the acquire in try_exclusive, so that our reads come before the
            // next writer's stores.
            match self.0.compare_exchange_weak(
                seen.0,
                seen.with_latch(latch),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => seen = Word(now),
            }
        }
    }

    /// The word of a page that the caller holds exclusively (I2).
    #[inline]
    fn held(&self) -> Word {
        let word = Word(self.0.load(Ordering::Relaxed));
        debug_assert!(
            word.is_exclusive() && word.0 & VERSION != 0,
            "not held: {word:?}"
        );
        word
    }

    /// The state of a page that the caller holds exclusively, as its last holder left it but for
    /// latch and version.
    pub(crate) fn held_word(&self) -> Word {
        self.held()
    }

    fn settled(&self, outcome: Outcome) -> Word {
        let word = self.held().0;
        Word(match outcome {
            Outcome::Untouched => word.wrapping_sub(VERSION),
            Outcome::Clean if word & OWED != 0 => word.wrapping_add(VERSION),
            Outcome::Clean => word.wrapping_add(VERSION) & !DIRTY,
            Outcome::Written(cycle) => Self::dirtied(word, cycle),
            Outcome::Owed(cycle) => Self::dirtied(word, cycle) | OWED,
        })
    }

    const fn dirtied(word: u64, cycle: u8) -> u64 {
        (word.wrapping_add(VERSION) & !CYCLE) | ((cycle as u64) << CYCLE_SHIFT) | DIRTY
    }

    /// Gives an exclusive latch back.
    #[inline]
    pub(crate) fn release_exclusive(&self, outcome: Outcome) {
        // Release: pairs with the acquires in load, try_shared and try_exclusive.
        self.0.store(
            self.settled(outcome).with_latch(UNLOCKED),
            Ordering::Release,
        );
    }

    /// Turns an exclusive latch into a shared one, with no writer in between.
    pub(crate) fn downgrade(&self, outcome: Outcome) {
        // Release: as in release_exclusive.
        self.0.store(
            self.settled(outcome).with_latch(UNLOCKED + 1),
            Ordering::Release,
        );
    }

    /// Ends an exclusive latch of a page whose memory was given back. The version goes on (I4).
    pub(crate) fn release_evicted(&self) {
        let word = Word(self.held().0.wrapping_add(VERSION) & !(DIRTY | OWED));
        // Release: pairs with the acquire of the next fault, which reads the file after us.
        self.0.store(word.with_latch(EVICTED), Ordering::Release);
    }

    /// Clock: first sweep over an unlocked page.
    pub(crate) fn mark(&self, seen: Word) -> bool {
        debug_assert!(seen.is_unlocked());
        // Relaxed: a hint about use; the page's content is not concerned.
        self.0
            .compare_exchange(
                seen.0,
                seen.with_latch(MARKED),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Second chance: an access to a marked page.
    pub(crate) fn unmark(&self, seen: Word) -> Option<Word> {
        debug_assert!(seen.is_marked());
        let unmarked = seen.with_latch(UNLOCKED);
        // Acquire: the word that an optimistic read starts from, as in load.
        self.0
            .compare_exchange(seen.0, unmarked, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(Word(unmarked))
    }

    /// The page was written out as it was at `copied`: it is clean if it still is that. Returns
    /// whether it is.
    pub(crate) fn written_out(&self, copied: Word) -> bool {
        let mut seen = Word(self.0.load(Ordering::Relaxed));
        loop {
            // An exclusive holder has another version (I1), so its word is never touched (I2).
            if !seen.same_version(copied) {
                return false;
            }
            // Release: pairs with the acquire of the eviction that finds the page clean: its fault
            // must find our write in the file.
            match self.0.compare_exchange_weak(
                seen.0,
                seen.0 & !(DIRTY | OWED),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => seen = Word(now),
            }
        }
    }
}

// The tables of states that live in a mapping rely on these.
#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<PageState>() == 8 && EVICTED == 0);
