//! How many old versions there are, how many bytes, of which index and which kind: kept by each of a slot's delta indexes for what is in it.
//!
//! Paper: none; versions.md ("version space is accounted").
//!
//! Before-images are collected by ranges of stamps, whole leaves at a time, and nobody looks at them then. So they are counted in
//! *epochs*: runs of stamps with one sum for each index. A range that is collected takes the epochs below it along. There
//! are few epochs: neighbours are joined where there are many, so that old ones grow longer.
//!
//! Invariants:
//! - V40 Epochs lie in the order of stamps, and all before-images of one stamp are in one of them.
//! - V41 What is counted is at least what is there, and more by at most one epoch for each range that was collected up to its
//!   middle: an epoch goes as a whole, when its last stamp is collected; what is left of it, for a lazy collection leaves some, is counted nowhere. (A last stamp that was reverted is
//!   collected once no transaction runs in the slot: V61.) Where transient ones are collected apart from older ones (V78) epochs end there, and none is collected in part: what is
//!   left of one that is then swept by its names would count as long as an old snapshot is open.
//!
//! Concurrency: behind the mutex of the index's right edge, which each append takes anyway, and holds while it waits for a page. The sums of all
//! indexes ([`Totals`]) are read without it: they are changed under it, by plain loads and stores.

use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use vellum_base::{PageId, Timestamp};
use vellum_sync::atomic::{AtomicU64, Ordering};

/// What old versions are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum VersionKind {
    /// Byte ranges that an update replaced.
    Delta,
    /// A whole row that was replaced or deleted.
    FullCopy,
    /// The mark of a deleted row, in its index.
    Tombstone,
    /// The mark of a deleted row, in the graveyard of its index.
    Buried,
    /// An old version in its row.
    Fat,
    /// An overflow chain that no newest version refers to.
    Chain,
    /// Pages of a tree that was dropped, with those of its rows' overflow chains: each counts as one.
    Dropped,
}

impl VersionKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Delta,
        Self::FullCopy,
        Self::Tombstone,
        Self::Buried,
        Self::Fat,
        Self::Chain,
        Self::Dropped,
    ];

    /// Its name, words joined by underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::FullCopy => "full_copy",
            Self::Tombstone => "tombstone",
            Self::Buried => "buried",
            Self::Fat => "fat",
            Self::Chain => "chain",
            Self::Dropped => "dropped",
        }
    }
}

/// Versions and their bytes: headers and bodies, not keys and what pages need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl Tally {
    /// One version.
    pub const fn one(bytes: usize) -> Self {
        Self {
            count: 1,
            bytes: bytes as u64,
        }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }

    /// Takes another tally away, as far as there is that much; returns what it took.
    fn take(&mut self, other: Self) -> Self {
        let taken = Self {
            count: self.count.min(other.count),
            bytes: self.bytes.min(other.bytes),
        };
        self.count -= taken.count;
        self.bytes -= taken.bytes;
        taken
    }
}

/// A tally that one thread at a time changes, and everybody reads.
#[derive(Debug, Default)]
struct SharedTally {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl SharedTally {
    // Relaxed, here and below: the number counts, and it orders nothing.
    #[inline]
    fn get(&self) -> Tally {
        Tally {
            count: self.count.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    #[inline]
    fn set(&self, tally: Tally) {
        self.count.store(tally.count, Ordering::Relaxed);
        self.bytes.store(tally.bytes, Ordering::Relaxed);
    }

    #[inline]
    fn add(&self, other: Tally) {
        let mut tally = self.get();
        tally.add(other);
        self.set(tally);
    }

    fn take(&self, other: Tally) {
        let mut tally = self.get();
        tally.take(other);
        self.set(tally);
    }
}

/// Before-images in one delta index, of all indexes of rows. Alone on its cache lines: each write of the slot changes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Totals {
    deltas: SharedTally,
    copies: SharedTally,
}

impl Totals {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.deltas.get().count + self.copies.get().count
    }

    /// Adds what there is to `into`.
    pub fn report(&self, into: &mut VersionSums) {
        into.add(VersionKind::Delta, self.deltas.get());
        into.add(VersionKind::FullCopy, self.copies.get());
    }
}

/// Old versions by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VersionSums([Tally; VersionKind::ALL.len()]);

impl VersionSums {
    /// Those of one kind.
    pub fn of(&self, kind: VersionKind) -> Tally {
        self.0[kind as usize]
    }

    /// Those of all kinds.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.0.iter().for_each(|tally| total.add(*tally));
        total
    }

    /// Adds versions of a kind.
    pub fn add(&mut self, kind: VersionKind, tally: Tally) {
        self.0[kind as usize].add(tally);
    }

    /// Adds another index's or slot's.
    pub fn add_all(&mut self, other: &Self) {
        for kind in VersionKind::ALL {
            self.add(kind, other.of(kind));
        }
    }
}

/// Before-images that open an epoch's successor.
pub(crate) const EPOCH_MIN: u64 = 64;
/// Epochs of a delta index.
const EPOCHS_MAX: usize = 256;

/// Before-images of consecutive stamps.
#[derive(Debug)]
struct Epoch {
    /// The first stamp in it, and the last.
    first: Timestamp,
    last: Timestamp,
    /// Those that were counted here and are there.
    count: u64,
    /// Those that were counted here.
    made: u64,
    sums: SmallVec<[Sum; 2]>,
}

/// Before-images of one index.
#[derive(Clone, Copy, Debug)]
struct Sum {
    tree: PageId,
    deltas: Tally,
    copies: Tally,
}

impl Epoch {
    #[inline]
    fn sum(&mut self, tree: PageId) -> &mut Sum {
        let found = self.sums.iter().position(|sum| sum.tree == tree);
        let index = found.unwrap_or_else(|| {
            self.sums.push(Sum {
                tree,
                deltas: Tally::default(),
                copies: Tally::default(),
            });
            self.sums.len() - 1
        });
        &mut self.sums[index]
    }

    fn absorb(&mut self, later: &Self) {
        debug_assert!(self.last < later.first);
        self.last = later.last;
        self.count += later.count;
        self.made += later.made;
        for other in &later.sums {
            let sum = self.sum(other.tree);
            sum.deltas.add(other.deltas);
            sum.copies.add(other.copies);
        }
    }
}

/// The accounts of one delta index.
#[derive(Debug)]
pub(crate) struct Accounts {
    epochs: VecDeque<Epoch>,
    epoch_length: u64,
    /// What is up to this stamp and what is above it are in no epoch together.
    closed: Timestamp,
    /// The epoch that was looked for last, if it is still there: a sweep asks for one stamp after the other.
    found: usize,
    /// The last stamp of the last epoch that was collected. Of stamps up to there nothing is counted, though it may be there (a lazy collection
    /// leaves some).
    collected: Timestamp,
    /// The newest stamp, and what it has: an epoch has earlier ones, too.
    newest: (Timestamp, Tally),
    totals: Arc<Totals>,
}

/// Before-images of one index and kind that go together.
struct Run {
    tree: PageId,
    full: bool,
    first: Timestamp,
    through: Timestamp,
    all: Tally,
}

impl Accounts {
    pub fn new() -> Self {
        Self {
            epochs: VecDeque::new(),
            epoch_length: EPOCH_MIN,
            closed: Timestamp::ZERO,
            found: 0,
            collected: Timestamp::ZERO,
            newest: (Timestamp::ZERO, Tally::default()),
            totals: Arc::default(),
        }
    }

    /// The sums, for who does not hold the mutex.
    pub fn totals(&self) -> Arc<Totals> {
        self.totals.clone()
    }

    /// Counts a new before-image.
    #[inline]
    pub fn add(&mut self, tree: PageId, stamp: Timestamp, full: bool, bytes: usize) {
        if stamp <= self.collected {
            return;
        }
        let one = Tally::one(bytes);
        if full {
            self.totals.copies.add(one);
        } else {
            self.totals.deltas.add(one);
        }
        if stamp > self.newest.0 {
            self.newest = (stamp, Tally::default());
        }
        if stamp == self.newest.0 {
            self.newest.1.add(one);
        }
        let epoch = match self.epochs.back_mut() {
            Some(epoch) if epoch.last == stamp => epoch,
            Some(epoch)
                if epoch.made < self.epoch_length
                    && epoch.last < stamp
                    && !(epoch.last <= self.closed && self.closed < stamp) =>
            {
                epoch.last = stamp;
                epoch
            }
            Some(epoch) if epoch.last > stamp => return self.add_before(tree, stamp, full, one),
            _ => self.open_epoch(stamp),
        };
        epoch.count += 1;
        epoch.made += 1;
        let sum = epoch.sum(tree);
        if full {
            sum.copies.add(one);
        } else {
            sum.deltas.add(one);
        }
    }

    #[cold]
    fn open_epoch(&mut self, stamp: Timestamp) -> &mut Epoch {
        if self.epochs.len() >= EPOCHS_MAX {
            // What was there is gone: removed by name.
            self.epochs.retain(|epoch| epoch.count > 0);
        }
        if self.epochs.len() >= EPOCHS_MAX {
            let closed = self.closed;
            let mut old = std::mem::take(&mut self.epochs).into_iter();
            while let Some(mut epoch) = old.next() {
                if let Some(later) = old.next() {
                    // Two that what is closed lies between stay apart.
                    if epoch.last <= closed && closed < later.first {
                        self.epochs.push_back(epoch);
                        epoch = later;
                    } else {
                        epoch.absorb(&later);
                    }
                }
                self.epochs.push_back(epoch);
            }
            self.epoch_length *= 2;
        }
        self.epochs.push_back(Epoch {
            first: stamp,
            last: stamp,
            count: 0,
            made: 0,
            sums: SmallVec::new(),
        });
        self.epochs.back_mut().expect("pushed above")
    }

    /// Counts a before-image that is put where older ones are.
    #[cold]
    fn add_before(&mut self, tree: PageId, stamp: Timestamp, full: bool, one: Tally) {
        if let Some(epoch) = self.epoch_of(stamp) {
            epoch.first = epoch.first.min(stamp);
            epoch.count += 1;
            epoch.made += 1;
            let sum = epoch.sum(tree);
            if full {
                sum.copies.add(one);
            } else {
                sum.deltas.add(one);
            }
        }
    }

    fn epoch_of(&mut self, stamp: Timestamp) -> Option<&mut Epoch> {
        let ends_before = |index: usize| self.epochs[index].last < stamp;
        let is_it = |index: usize| !ends_before(index) && (index == 0 || ends_before(index - 1));
        let index = match self.epochs.back() {
            // The usual case: what was just made.
            Some(newest) if newest.last == stamp => self.epochs.len() - 1,
            _ if self.found < self.epochs.len() && is_it(self.found) => self.found,
            _ => self.epochs.partition_point(|epoch| epoch.last < stamp),
        };
        self.found = index;
        self.epochs.get_mut(index)
    }

    /// Takes a before-image out that was removed by name.
    pub fn forget(&mut self, tree: PageId, stamp: Timestamp, full: bool, bytes: usize) {
        self.forget_run(tree, stamp, full, Tally::one(bytes));
    }

    /// As [`Accounts::forget`], many whose stamps ascend: those of one index and kind go by epochs.
    pub fn forget_each(&mut self, gone: impl Iterator<Item = (PageId, Timestamp, bool, usize)>) {
        let mut run: Option<Run> = None;
        for (tree, stamp, full, bytes) in gone {
            let one = Tally::one(bytes);
            match &mut run {
                Some(run) if (run.tree, run.full) == (tree, full) && stamp <= run.through => {
                    run.all.add(one);
                }
                _ => {
                    let through = self.counted_through(stamp);
                    let new = Run {
                        tree,
                        full,
                        first: stamp,
                        through,
                        all: one,
                    };
                    if let Some(run) = run.replace(new) {
                        self.forget_run(run.tree, run.first, run.full, run.all);
                    }
                }
            }
        }
        if let Some(run) = run {
            self.forget_run(run.tree, run.first, run.full, run.all);
        }
    }

    /// The last stamp up to which what is forgotten may be taken out together with what has this one.
    fn counted_through(&mut self, stamp: Timestamp) -> Timestamp {
        let newest = self.newest.0;
        if stamp <= self.collected || stamp >= newest {
            return stamp;
        }
        let epoch = self.epoch_of(stamp);
        let last = epoch.filter(|epoch| epoch.first <= stamp);
        let last = last.map_or(stamp, |epoch| epoch.last);
        // What the newest has is counted once more.
        last.min(Timestamp(newest.get() - 1))
    }

    /// Takes before-images of one index and kind out whose stamps are `stamp`, or up to what [`Accounts::counted_through`] says of it.
    fn forget_run(&mut self, tree: PageId, stamp: Timestamp, full: bool, all: Tally) {
        if stamp <= self.collected {
            return;
        }
        // One that was collected is not taken from the next.
        let epoch = self.epoch_of(stamp);
        let Some(epoch) = epoch.filter(|epoch| epoch.first <= stamp) else {
            return;
        };
        // An index's sum may be gone with an epoch that was collected, and its before-image with it.
        let Some(sum) = epoch.sums.iter_mut().find(|sum| sum.tree == tree) else {
            return;
        };
        let taken = if full {
            sum.copies.take(all)
        } else {
            sum.deltas.take(all)
        };
        epoch.count = epoch.count.saturating_sub(taken.count);
        if stamp == self.newest.0 {
            self.newest.1.take(taken);
        }
        if full {
            self.totals.copies.take(taken);
        } else {
            self.totals.deltas.take(taken);
        }
    }

    /// Takes the before-images out whose stamps are below `dead`: they were collected.
    pub fn forget_below(&mut self, dead: Timestamp) {
        while let Some(epoch) = self.epochs.front().filter(|epoch| epoch.last < dead) {
            for sum in &epoch.sums {
                self.totals.deltas.take(sum.deltas);
                self.totals.copies.take(sum.copies);
            }
            self.collected = epoch.last;
            self.epochs.pop_front();
        }
        if self.epochs.is_empty() {
            debug_assert_eq!(self.totals.count(), 0);
            self.epoch_length = EPOCH_MIN;
        }
    }

    /// What comes with stamps above this one, which is the newest that there is, counts apart from what is there ([`Accounts::forget_within`]).
    pub fn close(&mut self, newest: Timestamp) {
        debug_assert!(self.epochs.back().is_none_or(|epoch| epoch.last <= newest));
        self.closed = newest;
    }

    /// The highest stamp, not above `dead`, below which epochs lie whole.
    pub fn whole_below(&self, dead: Timestamp) -> Timestamp {
        let epoch = self.epochs.partition_point(|epoch| epoch.last < dead);
        let epoch = self.epochs.get(epoch);
        epoch.map_or(dead, |epoch| epoch.first.min(dead))
    }

    /// Takes the before-images out whose stamps are above `above`, which was [closed](Accounts::close), and below `dead`, [below which epochs lie
    /// whole](Accounts::whole_below): they were collected, and older ones were not. Returns how many those were.
    pub fn forget_within(&mut self, above: Timestamp, dead: Timestamp) -> u64 {
        let start = self.epochs.partition_point(|epoch| epoch.first <= above);
        let end = self.epochs.partition_point(|epoch| epoch.last < dead);
        let mut count = 0;
        if start < end {
            for epoch in self.epochs.drain(start..end) {
                count += epoch.count;
                for sum in &epoch.sums {
                    self.totals.deltas.take(sum.deltas);
                    self.totals.copies.take(sum.copies);
                }
            }
            if self.epochs.len() < EPOCHS_MAX / 4 {
                self.epoch_length = (self.epoch_length / 2).max(EPOCH_MIN);
            }
        }
        count
    }

    /// Adds what there is of each index to `into`.
    pub fn report(&self, into: &mut BTreeMap<PageId, VersionSums>) {
        for sum in self.epochs.iter().flat_map(|epoch| &epoch.sums) {
            let sums = into.entry(sum.tree).or_default();
            sums.add(VersionKind::Delta, sum.deltas);
            sums.add(VersionKind::FullCopy, sum.copies);
        }
    }

    /// Before-images with this stamp; none where a newer one has some.
    pub fn of_newest(&self, stamp: Timestamp) -> Tally {
        match self.newest.0 == stamp {
            true => self.newest.1,
            false => Tally::default(),
        }
    }

    /// Before-images with stamps at or above `from` and below `to`, within an epoch at each end.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> Tally {
        let mut total = Tally::default();
        let start = self.epochs.partition_point(|epoch| epoch.last < from);
        for epoch in self.epochs.range(start..) {
            // Its first stamps may be below `from`, its last at or above `to`: it is counted where it ends.
            if epoch.last >= to {
                break;
            }
            for sum in &epoch.sums {
                total.add(sum.deltas);
                total.add(sum.copies);
            }
        }
        total
    }
}

#[cfg(test)]
mod tests;
