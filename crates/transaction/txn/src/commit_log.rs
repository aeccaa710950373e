//! The commit log of one slot: which of its transactions committed, and in which order.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.1 (OSIC, commit log, limiting its size).
//! Differences: the paper's array is as long as there are workers. A slot here may publish several
//! snapshots, so the bound is the number of published snapshots: the array is cleaned whenever it
//! holds twice what its last cleaning had to keep, and its memory grows in steps.
//!
//! Invariants:
//! - I1 Entries ascend strictly; each is the commit timestamp of a transaction of this slot.
//! - I2 (R4) A cleaning by a list of snapshots with clock C keeps every entry at or above C, the newest below
//!   C, and the last below each snapshot of the list.
//! - I3 For a snapshot `ts` that is published (or at or above every C so far), `lcb(ts)` is exact. For
//!   any other it is at most too small: what it calls garbage is garbage.
//! - I4 `ts` is at most the clock at the time of the question. A commit draws its timestamp under the
//!   latch, so under the latch no commit below `ts` can still be on its way.
//!
//! Concurrency: entries are atomics; they change only while the slot's latch is held, which the caller shows
//! with a [`SlotLatch`]. `lcb` needs the latch too. `proven_below` does not: whatever it reads,
//! current or left over from before a cleaning, is a commit timestamp of this slot, hence a proof
//! that everything the slot stamped before it is committed.

use crate::active::ActiveSnapshots;
use crate::watermarks::Watermarks;
use std::sync::OnceLock;
use vellum_base::Timestamp;
use vellum_sync::CachePadded;
use vellum_sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Shown by whoever holds the latch of the slot in question.
pub trait SlotLatch {}

impl SlotLatch for vellum_wal::SlotGuard<'_> {}

/// Entries of the first chunk; chunk k has `FIRST << k`.
const FIRST: usize = 32;
/// Enough chunks for more entries than there can be open snapshots.
const CHUNKS: usize = 26;

#[derive(Debug)]
struct Chunks([OnceLock<Box<[AtomicU64]>>; CHUNKS]);

impl Chunks {
    fn new() -> Box<Self> {
        Box::new(Self(std::array::from_fn(|_| OnceLock::new())))
    }

    /// Chunk and offset of entry `index`: chunk k starts at `FIRST * (2^k - 1)`.
    fn place(index: usize) -> (usize, usize) {
        let k = (index / FIRST + 1).ilog2() as usize;
        (k, index - FIRST * ((1 << k) - 1))
    }

    fn entry(&self, index: usize) -> &AtomicU64 {
        let (k, offset) = Self::place(index);
        let chunk = self.0[k].get_or_init(|| (0..FIRST << k).map(|_| AtomicU64::new(0)).collect());
        &chunk[offset]
    }
}

/// The commit timestamps of one slot, as many as somebody may still ask for.
#[derive(Debug)]
pub(crate) struct CommitLog {
    hot: CachePadded<Hot>,
    chunks: OnceLock<Box<Chunks>>,
    /// Every commit since the last trim, to check cleanings against.
    #[cfg(all(debug_assertions, not(loom)))]
    history: crate::history::History,
}

#[derive(Debug)]
struct Hot {
    /// The newest entry, zero for none; so that most questions need no second cache line.
    newest: AtomicU64,
    count: AtomicUsize,
    /// The count at which the log is cleaned before the next commit.
    clean_at: AtomicUsize,
    /// Some commit timestamp of this slot below a published oldest_tx (see `settle`).
    settled: AtomicU64,
    /// The same below a published oldest_oltp.
    settled_oltp: AtomicU64,
}

/// Whether what a slot has committed is settled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    /// Everybody sees all of it.
    pub(crate) for_all: bool,
    /// Every OLTP snapshot sees all of it.
    pub(crate) for_oltp: bool,
}

impl CommitLog {
    pub(crate) fn new() -> Self {
        Self {
            hot: CachePadded::new(Hot {
                newest: AtomicU64::new(0),
                count: AtomicUsize::new(0),
                clean_at: AtomicUsize::new(FIRST),
                settled: AtomicU64::new(0),
                settled_oltp: AtomicU64::new(0),
            }),
            chunks: OnceLock::new(),
            #[cfg(all(debug_assertions, not(loom)))]
            history: crate::history::History::new(),
        }
    }

    fn chunks(&self) -> &Chunks {
        self.chunks.get_or_init(Chunks::new)
    }

    /// Entries in the log.
    pub(crate) fn count(&self) -> usize {
        self.hot.count.load(Ordering::Relaxed)
    }

    /// True if the log is to be cleaned before the next commit.
    #[inline]
    pub(crate) fn wants_cleaning(&self) -> bool {
        // Relaxed: only the owner of the slot changes both, and only it asks.
        self.count() >= self.hot.clean_at.load(Ordering::Relaxed)
    }

    /// Appends a commit.
    #[inline]
    pub(crate) fn append(&self, _latch: &impl SlotLatch, commit_ts: Timestamp) {
        let count = self.count();
        assert!(
            commit_ts.get() > self.hot.newest.load(Ordering::Relaxed),
            "commits of a slot are appended in the order of the clock"
        );
        // Release, here and below, pairs with the acquires in `proven_below`: who sees the entry sees
        // the commit's writes. Between latch holders the latch does that.
        self.chunks()
            .entry(count)
            .store(commit_ts.get(), Ordering::Release);
        self.hot.count.store(count + 1, Ordering::Release);
        self.hot.newest.store(commit_ts.get(), Ordering::Release);
        #[cfg(all(debug_assertions, not(loom)))]
        self.history.append(commit_ts);
    }

    /// LCB: the last commit of this slot below `ts`, zero for none. Exact for published
    /// snapshots (I3).
    #[inline]
    pub(crate) fn lcb(&self, _latch: &impl SlotLatch, ts: Timestamp) -> Timestamp {
        let newest = self.hot.newest.load(Ordering::Relaxed);
        if newest < ts.get() {
            return Timestamp(newest);
        }
        self.search(ts)
    }

    /// A commit of this slot below `ts`, without the latch; zero if none was found. Every version that
    /// the slot stamped below the answer was committed below `ts`. Says nothing about others.
    #[inline]
    pub(crate) fn proven_below(&self, ts: Timestamp) -> Timestamp {
        // Acquire pairs with the release in `append`.
        let newest = self.hot.newest.load(Ordering::Acquire);
        if newest < ts.get() {
            return Timestamp(newest);
        }
        self.search(ts)
    }

    /// The last entry below `ts`: the first one, or gallops back from the newest end; there answers usually are.
    fn search(&self, ts: Timestamp) -> Timestamp {
        // Acquire, here and below, pairs with the releases in `append` and `clean`.
        let count = self.hot.count.load(Ordering::Acquire);
        let Some(chunks) = self.chunks.get() else {
            return Timestamp::ZERO;
        };
        let at = |index: usize| chunks.entry(index).load(Ordering::Acquire);
        // A cleaning leaves one entry below the oldest snapshot, which each pass and each collection asks about. (Beside a racing cleaning the
        // two may be of different states: what is found is a commit below `ts` all the same.)
        if count > 1 && at(1) >= ts.get() {
            let first = at(0);
            return Timestamp(if first < ts.get() { first } else { 0 });
        }
        let (mut low, mut high, mut step) = (0, count, 1);
        // Invariant: entries at or after `high` are not below `ts`.
        while high > low {
            let probe = high.saturating_sub(step).max(low);
            if at(probe) < ts.get() {
                low = probe;
                break;
            }
            high = probe;
            step *= 2;
        }
        // Entry `low` is below `ts`, or the range is empty.
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if at(middle) < ts.get() {
                low = middle;
            } else {
                high = middle;
            }
        }
        if low >= high {
            return Timestamp::ZERO;
        }
        // A racing cleaning may have changed the entry since it was compared.
        let found = at(low);
        if found < ts.get() {
            Timestamp(found)
        } else {
            Timestamp::ZERO
        }
    }

    /// Removes the entries that no snapshot of `active`, and none that can still be drawn, asks for
    /// (R4).
    pub(crate) fn clean(&self, latch: &impl SlotLatch, active: &ActiveSnapshots) {
        let count = self.count();
        let entry = |index: usize| self.chunks().entry(index);
        let value = |index: usize| entry(index).load(Ordering::Relaxed);
        let mut snapshots = active.snapshots().iter().copied().peekable();
        let mut kept = 0;
        for index in 0..count {
            let this = value(index);
            let next = if index + 1 < count {
                value(index + 1)
            } else {
                u64::MAX
            };
            // Snapshots at or below this entry do not see it, and so not ask for it.
            while snapshots
                .next_if(|snapshot| snapshot.get() <= this)
                .is_some()
            {}
            let asked = snapshots
                .peek()
                .is_some_and(|snapshot| snapshot.get() <= next);
            // The clock of the pass stands for all that can still be drawn: with `next` at or above
            // it, this is the newest below C, or at or above C.
            if asked || next >= active.clock().get() {
                if kept != index {
                    // Release pairs with the acquires in `search`.
                    entry(kept).store(this, Ordering::Release);
                }
                kept += 1;
            }
        }
        debug_assert!(kept > 0 || count == 0, "the newest entry always stays");
        // Release pairs with the acquire in `search`.
        self.hot.count.store(kept, Ordering::Release);
        self.hot
            .clean_at
            .store((2 * kept).max(FIRST), Ordering::Relaxed);
        #[cfg(all(debug_assertions, not(loom)))]
        self.history
            .check_cleaning(active, |ts| self.lcb(latch, ts));
        #[cfg(not(all(debug_assertions, not(loom))))]
        let _ = latch;
    }

    /// What every snapshot that is open or can still be drawn sees: stamps of this slot below the answer
    /// are visible without a question.
    #[inline]
    pub(crate) fn settled(&self) -> Timestamp {
        // Acquire pairs with the release in `settle`.
        Timestamp(self.hot.settled.load(Ordering::Acquire))
    }

    /// The same for every OLTP snapshot. Who goes by it and asks which analytical ones there are asks that second (`Domain::settled_for_oltp`).
    #[inline]
    pub(crate) fn settled_for_oltp(&self) -> Timestamp {
        // Acquire pairs with the release in `settle`.
        Timestamp(self.hot.settled_oltp.load(Ordering::Acquire))
    }

    /// Moves `settled` up to the last known commit below the `oldest_tx` of these published watermarks, which is at or below every
    /// snapshot that is open or can still be drawn, and `settled_oltp` to that below their `oldest_oltp`. Needs no latch (a commit that is missed now is
    /// found next time).
    pub(crate) fn settle(&self, marks: &Watermarks) -> Settled {
        let settle = |word: &AtomicU64, below: Timestamp| {
            let proven = self.proven_below(below).get();
            if proven > word.load(Ordering::Relaxed) {
                // Release carries the commit's writes on to the acquire in `settled`, and what the marks were published with.
                word.fetch_max(proven, Ordering::AcqRel);
            }
            proven == self.hot.newest.load(Ordering::Relaxed)
        };
        Settled {
            for_all: settle(&self.hot.settled, marks.oldest_tx),
            for_oltp: settle(&self.hot.settled_oltp, marks.oldest_oltp),
        }
    }

    /// LCB by the uncleaned history, for checks (exact for everything since the last trim).
    #[cfg(all(debug_assertions, not(loom)))]
    pub(crate) fn history(&self) -> &crate::history::History {
        &self.history
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    struct Held;

    impl SlotLatch for Held {}

    /// R4, I3, against all commits that there were.
    #[test]
    fn answers_are_exact_for_open_snapshots_and_too_small_at_most_for_others() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let (log, mut commits, mut open) = (CommitLog::new(), Vec::new(), Vec::new());
            let mut clock = 1 + random.below(5);
            let mut cleanings = 0;
            for _ in 0..400 {
                match random.below(12) {
                    0 => open.push(Timestamp(clock)),
                    1 if !open.is_empty() => {
                        open.swap_remove(random.below(open.len() as u64) as usize);
                    }
                    2 => clock += random.below(9),
                    _ => {
                        if log.wants_cleaning() || random.chance(1, 30) {
                            let open = open.iter().copied();
                            let active = ActiveSnapshots::from_parts(Timestamp(clock), open);
                            log.clean(&Held, &active);
                            cleanings += 1;
                        }
                        log.append(&Held, Timestamp(clock));
                        commits.push(clock);
                        clock += 1;
                    }
                }
                let last_below = |ts: Timestamp| {
                    let below = commits.partition_point(|commit| *commit < ts.get());
                    Timestamp(below.checked_sub(1).map_or(0, |index| commits[index]))
                };
                let others = [Timestamp(clock), Timestamp::MAX];
                for ts in open.iter().copied().chain(others) {
                    assert_eq!(log.lcb(&Held, ts), last_below(ts), "seed {seed}, {ts}");
                    assert_eq!(log.proven_below(ts), last_below(ts));
                }
                let any = Timestamp(random.below(clock + 2));
                let proven = log.proven_below(any);
                assert!(proven <= last_below(any), "seed {seed}, {any}");
                assert!(proven.is_zero() || commits.contains(&proven.get()));
            }
            assert!(cleanings > 5, "seed {seed}");
        }
    }
}
