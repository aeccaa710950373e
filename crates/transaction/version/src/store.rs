//! The version store of a database: delta indexes and lists of work for each slot, a graveyard for each index.
//!
//! Paper: LeanStore §3.2 (tombstone index, graveyard), §3.3 (delta index). Differences: a second list holds
//! overflow chains and trees, which wait for another horizon; a third the tombstones that were looked at and stay.
//!
//! What the lists hold: `work`.
//!
//! Invariants:
//! - V6 Only the slot's own transaction, or who rolls it back, adds to the slot's lists and takes from them what is not
//!   committed. The rest is taken by collectors, one at a time (V15), whoever runs in the slot meanwhile. Deltas of a
//!   row are put in and taken out by whoever has its leaf latched, when the row turns fat or back (`fat::decompose`), and
//!   taken out, by name, by who removed the row that nobody sees any version of.
//! - V7 A slot whose trees do not exist has never made a version.
//!
//! Crash: the trees are temporary; a crash gives their pages back (0001).

use crate::accounts::{Accounts, Tally, VersionSums};
use crate::census::Reached;
use crate::delta::{self, DeltaName, Home};
use crate::delta_index::{DeltaIndex, Named};
use crate::dropped::{Dropped, Made};
use crate::dropped_pages::DroppedPages;
use crate::early::Early;
use crate::error::FirstError;
use crate::given_up::GivenUp;
use crate::graveyard::Graveyards;
use crate::held::Held;
use crate::options::VersionOptions;
use crate::settle::{Settling, Tools};
use crate::sweep::Sweep;
use crate::work::{Done, Work};
use std::sync::{Arc, OnceLock};
use vellum_base::planted::{self, Bug};
use vellum_base::{PageId, Result, SlotId, Timestamp};
use vellum_btree::overflow::ChainRef;
use vellum_btree::{Appender, LeafHints, LeafWrite, Logging, Tree, TreeContext, TreeKind};
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::{Mutex, RwLock};
use vellum_txn::VersionStamp;

/// Old versions of the rows of one database, and what is to be done when nobody needs them.
#[derive(Debug)]
pub struct VersionStore {
    context: Arc<TreeContext>,
    options: VersionOptions,
    slots: Box<[OnceLock<SlotVersions>]>,
    /// A latch a slot: making the trees of one may wait for frames, and the others do not wait for that.
    creating: Box<[Mutex<()>]>,
    pending_free: Tree,
    dropped: RwLock<Dropped>,
    dropped_pages: DroppedPages,
    made: Mutex<Made>,
    /// Chains of dropped trees (these by their roots) whose rows are gone: they are listed, and to be freed next.
    ownerless: Mutex<Vec<(PageId, ChainRef)>>,
    graveyards: Graveyards,
    /// Chains and trees that transactions have made and do not keep.
    given_up: GivenUp,
    /// How often an insert over a tombstone was taken back.
    restored: AtomicU64,
    /// A mistake on purpose, for the tests that must notice it.
    #[cfg(test)]
    pub(crate) bug: Option<Bug>,
    /// Parts of leaves are swept, too: where a test has few deltas.
    #[cfg(test)]
    pub(crate) sweeps_parts: bool,
    /// No whole bodies stand in fat rows: where a test has short ones.
    #[cfg(test)]
    pub(crate) copies_all: bool,
}

/// The trees of a slot.
#[derive(Debug)]
pub(crate) struct SlotVersions {
    /// Before-images, but those that are transient.
    pub deltas: DeltaIndex,
    /// Before-images that are transient (V76).
    pub transient: DeltaIndex,
    /// Tombstones that were not looked at yet, by `delta::key` of the delete.
    pub tombstones: Tree,
    /// Chains and trees to be freed when a version is seen by everyone, by [`work_key`](crate::work::work_key).
    pub work: Tree,
    /// The right edges, where the slot's transaction appends (V6: nobody waits for these).
    tombstone_edge: Mutex<Appender>,
    work_edge: Mutex<Appender>,
    /// Entries of `tombstones` that were not looked at.
    pub unsettled: AtomicU64,
    /// Entries that have come since somebody last asked.
    fresh: AtomicU64,
    /// The stamp of the transaction whose entries are the newest, and how many those are (at least: what it reverted counts).
    newest_tombstones: (AtomicU64, AtomicU64),
    /// The stamp of the newest transient delta: without one there is nothing to sweep.
    newest_transient: AtomicU64,
    /// The oldest OLTP snapshot, and how many full fat rows the slot's writers have pruned since it was that.
    pruned: (AtomicU64, AtomicU64),
    /// The stamp of the newest entry of `work`.
    newest_work: AtomicU64,
    /// Bytes of the pages of the chains on `work` that are not free yet.
    chain_bytes: AtomicU64,
    /// Dropped trees on the list of work, and the stamp of the newest of them.
    trees: AtomicU64,
    newest_tree: AtomicU64,
    /// Of the bytes, since somebody asked ([`VersionStore::take_fresh_chain_bytes`]).
    fresh_chain_bytes: AtomicU64,
    /// What collectors know, one at a time (V15).
    pub collecting: Mutex<Box<Collecting>>,
    /// Of that, for who counts: as it was when the collector that is at work began. Held for no I/O.
    reached: Mutex<Reached>,
}

/// What the collectors of a slot know from one step to the next.
#[derive(Debug)]
pub(crate) struct Collecting {
    /// How far the list of tombstones was worked off.
    pub settling: Settling,
    /// Tombstones that were looked at and have to be looked at again.
    pub held: Held,
    /// How far transient deltas were swept.
    pub sweep: Sweep,
    /// How far the list of chains and trees was worked off.
    pub done: Done,
    /// What of it was done out of order.
    pub early: Early,
    pub tools: Tools,
    /// The clock of the watermarks that the last collector went by (V58).
    pub clock: Timestamp,
}

impl SlotVersions {
    fn create(slot: SlotId, context: &Arc<TreeContext>) -> Result<Self> {
        let create = || Tree::create(context, None, TreeKind::Temporary, None);
        let (tombstones, work) = (create()?, create()?);
        let edge = |tree: &Tree| Mutex::new(tree.appender());
        Ok(Self {
            deltas: DeltaIndex::new(create()?),
            transient: DeltaIndex::new(create()?),
            tombstone_edge: edge(&tombstones),
            work_edge: edge(&work),
            tombstones,
            work,
            unsettled: AtomicU64::new(0),
            fresh: AtomicU64::new(0),
            newest_tombstones: (AtomicU64::new(0), AtomicU64::new(0)),
            newest_transient: AtomicU64::new(0),
            pruned: (AtomicU64::new(0), AtomicU64::new(0)),
            newest_work: AtomicU64::new(0),
            chain_bytes: AtomicU64::new(0),
            trees: AtomicU64::new(0),
            newest_tree: AtomicU64::new(0),
            fresh_chain_bytes: AtomicU64::new(0),
            collecting: Mutex::new(Box::new(Collecting {
                settling: Settling::new(context.page_size()),
                held: Held::default(),
                sweep: Sweep::of(slot),
                done: Done::default(),
                early: Early::of(slot),
                tools: Tools::of(slot),
                clock: Timestamp::ZERO,
            })),
            reached: Mutex::default(),
        })
    }

    /// A collector begins.
    pub fn note_reached(&self, collecting: &Collecting) {
        self.reached.lock().update(collecting);
    }

    /// How far the lists were worked off: by now, or, where a collector is at work, which may wait for a disk, before it began.
    pub fn reached(&self) -> Reached {
        let collecting = self.collecting.try_lock();
        let mut reached = self.reached.lock();
        if let Some(collecting) = &collecting {
            reached.update(collecting);
        }
        reached.clone()
    }

    /// Where before-images are that are so needed.
    #[inline]
    pub fn index(&self, home: Home) -> &DeltaIndex {
        match home {
            Home::Lasting => &self.deltas,
            Home::Transient => &self.transient,
        }
    }

    /// Adds the before-image of a new version of a row of `tree`.
    #[inline]
    pub fn append_delta(&self, tree: PageId, name: &VersionStamp, entry: &[u8]) -> Result<()> {
        if !delta::is_transient(entry) {
            return self.deltas.append(tree, name, entry);
        }
        self.transient.append_transient(name, entry)?;
        // Relaxed: a collector that does not see it comes again.
        self.newest_transient
            .store(name.stamp.get(), Ordering::Relaxed);
        Ok(())
    }

    /// The stamp of the newest transient delta, zero if there never was one.
    #[inline]
    pub fn last_transient(&self) -> Timestamp {
        Timestamp(self.newest_transient.load(Ordering::Relaxed))
    }

    /// Puts a before-image of a row that turns fat or back where it belongs, or in the place of the one of that name.
    pub fn put_delta(&self, tree: PageId, name: &VersionStamp, entry: &[u8]) -> Result<()> {
        debug_assert!(!delta::is_transient(entry), "what is put back is needed");
        self.deltas.put(tree, name, entry)
    }

    /// Takes a before-image out by its name; false if it is not there. It is out of the accounts, too, then.
    pub fn take_delta(
        &self,
        tree: PageId,
        name: &DeltaName,
        hints: &mut LeafHints,
    ) -> Result<bool> {
        self.index(name.home).take(tree, &name.version, hints)
    }

    /// Takes before-images out, which ascend; some may not be there. Leaves that become small are joined with a neighbour.
    ///
    /// # Errors
    /// As [`DeltaIndex::take_each`].
    pub fn take_deltas(&self, names: &[Named]) -> crate::Result<()> {
        debug_assert!(names.is_sorted());
        let lasting = names.partition_point(|it| it.home == Home::Lasting);
        let (lasting, transient) = names.split_at(lasting);
        // V59: of one index whatever becomes of the other.
        let mut first = FirstError::default();
        first.note_of_one(self.deltas.take_each(lasting, true))?;
        first.note_of_one(self.transient.take_each(transient, true))?;
        first.into_result()
    }

    /// Takes the before-images of stamps below `dead` out, as [`DeltaIndex::take_below`].
    pub fn take_deltas_below(&self, dead: Timestamp, pages: usize, lazy: bool) -> Result<bool> {
        let done = self.deltas.take_below(dead, pages, lazy);
        // None at all: most slots never had one.
        if self.last_transient().is_zero() {
            return done;
        }
        // V59: of one index whatever becomes of the other.
        let others = self.transient.take_below(dead, pages, lazy);
        Ok(done? & others?)
    }

    /// How many before-images there are.
    pub fn delta_count(&self) -> u64 {
        self.deltas.totals().count() + self.transient.totals().count()
    }

    /// Looks at the accounts of both indexes.
    pub fn account(&self, mut look: impl FnMut(&Accounts)) {
        self.deltas.account(&mut look);
        self.transient.account(look);
    }

    /// Before-images with stamps at or above `from` and below `to`, within an epoch of each index at each end.
    pub fn deltas_between(&self, from: Timestamp, to: Timestamp) -> Tally {
        let mut sum = Tally::default();
        self.account(|accounts| sum.add(accounts.between(from, to)));
        sum
    }

    /// Notes that a full fat row was pruned, while this was the oldest OLTP one; how many were, since that is it. For the slot's writer.
    pub fn note_pruned(&self, oldest_oltp: Timestamp) -> u64 {
        // One transaction of the slot at a time: relaxed suffices.
        let (oldest, count) = &self.pruned;
        let before = match oldest.swap(oldest_oltp.get(), Ordering::Relaxed) {
            same if same == oldest_oltp.get() => count.load(Ordering::Relaxed),
            _ => 0,
        };
        count.store(before + 1, Ordering::Relaxed);
        before + 1
    }

    /// Tombstones that were not looked at yet, about.
    pub fn unsettled(&self) -> u64 {
        self.unsettled.load(Ordering::Relaxed)
    }

    /// Adds a new tombstone, by the delete's `delta::key`, its [`tombstone_head`](crate::work::tombstone_head) and the row's key.
    #[inline]
    pub fn append_tombstone(&self, version: &[u8], head: &[u8], key: &[u8]) -> Result<()> {
        self.tombstone_edge
            .lock()
            .append(version, &[head, key], Logging::None, None)?;
        // Relaxed: a collector that does not see it comes again. One transaction of the slot at a time: nobody else writes the last two.
        self.unsettled.fetch_add(1, Ordering::Relaxed);
        self.fresh.fetch_add(1, Ordering::Relaxed);
        let stamp = delta::decode_key(version).map_or(0, |(stamp, _)| stamp.get());
        let (of, count) = &self.newest_tombstones;
        let before = if of.swap(stamp, Ordering::Relaxed) == stamp {
            count.load(Ordering::Relaxed)
        } else {
            0
        };
        count.store(before + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Tombstones that the transaction with this stamp has made, if it is the slot's last that made any; with those that it has reverted.
    pub fn tombstones_of(&self, stamp: Timestamp) -> u64 {
        let (of, count) = &self.newest_tombstones;
        if of.load(Ordering::Relaxed) == stamp.get() {
            count.load(Ordering::Relaxed)
        } else {
            0
        }
    }

    /// Adds work that a new version leaves behind. `key`: see [`work_key`](crate::work::work_key).
    pub fn append_work(&self, stamp: Timestamp, key: &[u8], work: &Work) -> Result<()> {
        let mut entry = Vec::new();
        work.encode(&mut entry);
        let mut edge = self.work_edge.lock();
        edge.append(key, &[&entry], Logging::None, None)?;
        // Before anybody can take it away: no collector looks past its owner's snapshot. Relaxed, as all of it: the number counts, and orders
        // nothing.
        let bytes = work.chain_bytes(self.work.context().page_size());
        self.chain_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.fresh_chain_bytes.fetch_add(bytes, Ordering::Relaxed);
        if matches!(work, Work::Tree { .. }) {
            self.trees.fetch_add(1, Ordering::Relaxed);
            self.newest_tree.store(stamp.get(), Ordering::Relaxed);
        }
        drop(edge);
        // Relaxed: a collector that does not see it comes again.
        self.newest_work.store(stamp.get(), Ordering::Relaxed);
        Ok(())
    }

    /// Takes the work of a version off the list, if it is there: its writer is reverted.
    pub fn take_work(&self, key: &[u8]) -> Result<()> {
        let mut entry = Vec::new();
        if self.work.get(key, &mut entry)? {
            let work = Work::decode(&entry, &self.work)?;
            if self.work.delete(key, None)? {
                self.note_freed(&work);
                if matches!(work, Work::Tree { .. }) {
                    // Nothing is known of the others.
                    self.newest_tree.store(0, Ordering::Relaxed);
                }
                // It is not to be collected.
                let bytes = work.chain_bytes(self.work.context().page_size());
                let less = |fresh: u64| Some(fresh.saturating_sub(bytes));
                let fresh = &self.fresh_chain_bytes;
                let _ = fresh.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        }
        Ok(())
    }

    /// Whether there is a chain or tree on the list that is not free yet.
    pub fn has_work(&self) -> bool {
        // Relaxed: a collector that does not see it comes again.
        self.chain_bytes.load(Ordering::Relaxed) > 0 || self.trees.load(Ordering::Relaxed) > 0
    }

    /// Counts a chain or tree no more.
    pub fn note_freed(&self, work: &Work) {
        let bytes = work.chain_bytes(self.work.context().page_size());
        let before = self.chain_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "each chain goes once");
        if matches!(work, Work::Tree { .. }) {
            let before = self.trees.fetch_sub(1, Ordering::Relaxed);
            debug_assert!(before > 0, "each tree goes once");
        }
    }

    /// True if a dropped tree is on the list whose drop has a stamp at or above `settled`; about.
    pub fn has_tree_since(&self, settled: Timestamp) -> bool {
        self.newest_tree.load(Ordering::Relaxed) >= settled.get()
            && self.trees.load(Ordering::Relaxed) > 0
    }

    /// Bytes of the pages of chains that are on the list and not free yet.
    pub fn chain_bytes(&self) -> u64 {
        self.chain_bytes.load(Ordering::Relaxed)
    }

    /// The stamp of the newest entry of the work list, zero if there never was one.
    #[inline]
    pub fn newest_work(&self) -> Timestamp {
        Timestamp(self.newest_work.load(Ordering::Relaxed))
    }
}

/// Removes a key of a temporary tree, as [`take_temporary`]. False if it was not there.
pub(crate) fn remove_temporary(tree: &Tree, key: &[u8], hints: &mut LeafHints) -> Result<bool> {
    Ok(take_temporary(tree, key, hints, |_| ())?.is_some())
}

/// Removes a key of a temporary tree, and joins its leaf with a neighbour when it has just become small, or empty:
/// not at each removal between the two, which would seldom find room. `look` is shown it before; `None` if it was not there. Where the neighbour
/// cannot be read they stay apart: an error would say that the key is there.
pub(crate) fn take_temporary<R>(
    tree: &Tree,
    key: &[u8],
    hints: &mut LeafHints,
    look: impl FnOnce(&LeafWrite<'_, '_>) -> R,
) -> Result<Option<R>> {
    debug_assert_eq!(tree.kind(), TreeKind::Temporary);
    let mut leaf = tree.write_near(key, hints)?;
    if !leaf.found() {
        return Ok(None);
    }
    let looked = look(&leaf);
    let before = leaf.fill();
    leaf.remove(Logging::None);
    let joins = leaf.should_join(before);
    drop(leaf);
    if joins {
        let _ = tree.rebalance(key, None);
    }
    Ok(Some(looked))
}

impl VersionStore {
    /// A store without versions for `slots_max` slots.
    pub fn new(context: Arc<TreeContext>, slots_max: u16, pending_free: Tree) -> Self {
        Self::with_options(context, slots_max, pending_free, VersionOptions::default())
    }

    /// As [`VersionStore::new`], with parts switched off.
    pub fn with_options(
        context: Arc<TreeContext>,
        slots_max: u16,
        pending_free: Tree,
        options: VersionOptions,
    ) -> Self {
        Self {
            context,
            options,
            slots: (0..slots_max).map(|_| OnceLock::new()).collect(),
            creating: (0..slots_max).map(|_| Mutex::default()).collect(),
            pending_free,
            dropped: RwLock::new(Dropped::default()),
            dropped_pages: DroppedPages::default(),
            made: Mutex::new(Made::default()),
            ownerless: Mutex::new(Vec::new()),
            graveyards: Graveyards::new(),
            given_up: GivenUp::default(),
            restored: AtomicU64::new(0),
            #[cfg(test)]
            bug: None,
            #[cfg(test)]
            sweeps_parts: false,
            #[cfg(test)]
            copies_all: false,
        }
    }

    /// How often an insert over a tombstone was taken back (V53).
    pub(crate) fn restored(&self) -> u64 {
        self.restored.load(Ordering::Acquire)
    }

    /// A row is a tombstone again. Said after its leaf was written.
    pub(crate) fn note_restored(&self) {
        self.restored.fetch_add(1, Ordering::Release);
    }

    /// Whether it makes a mistake on purpose: a test's store, or every store of a build with planted bugs.
    #[inline(always)]
    pub(crate) fn has(&self, bug: Bug) -> bool {
        #[cfg(test)]
        if self.bug == Some(bug) {
            return true;
        }
        planted::has(bug)
    }

    /// Which parts are on.
    #[inline]
    pub fn options(&self) -> VersionOptions {
        self.options
    }

    /// The environment of the trees.
    pub fn context(&self) -> &Arc<TreeContext> {
        &self.context
    }

    /// The system tree of chains and trees that no committed row refers to.
    pub fn pending_free(&self) -> &Tree {
        &self.pending_free
    }

    /// Dropped trees.
    pub(crate) fn dropped(&self) -> &RwLock<Dropped> {
        &self.dropped
    }

    /// How many pages they have.
    pub(crate) fn dropped_pages(&self) -> &DroppedPages {
        &self.dropped_pages
    }

    /// Who made trees.
    pub(crate) fn made(&self) -> &Mutex<Made> {
        &self.made
    }

    /// Chains and trees that transactions have made and do not keep.
    pub(crate) fn given_up(&self) -> &GivenUp {
        &self.given_up
    }

    /// Chains of dropped trees whose rows are gone.
    pub(crate) fn ownerless(&self) -> &Mutex<Vec<(PageId, ChainRef)>> {
        &self.ownerless
    }

    /// The slots' trees, of those slots that have made versions.
    pub(crate) fn slots(&self) -> &[OnceLock<SlotVersions>] {
        &self.slots
    }

    /// Old versions by kind. Some ten nanoseconds for each slot that has made any.
    pub fn versions(&self) -> VersionSums {
        let mut sums = VersionSums::default();
        for versions in self.slots.iter().filter_map(OnceLock::get) {
            versions.deltas.totals().report(&mut sums);
            versions.transient.totals().report(&mut sums);
        }
        sums
    }

    /// Before-images that writers with stamps at or above `from` and below `to` have made, within a
    /// two-hundredth part.
    pub fn versions_between(&self, from: Timestamp, to: Timestamp) -> Tally {
        let mut sum = Tally::default();
        for versions in self.slots.iter().filter_map(OnceLock::get) {
            sum.add(versions.deltas_between(from, to));
        }
        sum
    }

    /// The graveyards of all indexes.
    #[inline]
    pub(crate) fn graveyards(&self) -> &Graveyards {
        &self.graveyards
    }

    /// A delta index of a slot, if the slot has made versions (V7).
    #[inline]
    pub(crate) fn deltas(&self, slot: SlotId, home: Home) -> Option<&Tree> {
        self.slot(slot).map(|versions| &versions.index(home).tree)
    }

    /// Reads a delta by its name; false if it is not there (any more).
    pub(crate) fn find_delta(&self, name: &DeltaName, entry: &mut Vec<u8>) -> Result<bool> {
        let key = delta::key(name.version.stamp, name.version.command);
        match self.deltas(name.version.slot, name.home) {
            Some(deltas) => deltas.get(&key, entry),
            None => Ok(false),
        }
    }

    /// As [`VersionStore::find_delta`], for who reads many. `near`: it was likely made with the one that was read last.
    pub(crate) fn read_delta(
        &self,
        name: &DeltaName,
        entry: &mut Vec<u8>,
        hints: &mut LeafHints,
        near: bool,
    ) -> Result<bool> {
        let key = delta::key(name.version.stamp, name.version.command);
        match self.deltas(name.version.slot, name.home) {
            Some(deltas) => deltas.get_near(&key, entry, hints, near),
            None => Ok(false),
        }
    }

    /// True if tombstones were made in a slot since the last [`VersionStore::take_fresh_tombstones`].
    #[inline]
    pub fn has_fresh_tombstones(&self, slot: SlotId) -> bool {
        self.slot(slot)
            .is_some_and(|versions| versions.fresh.load(Ordering::Relaxed) > 0)
    }

    /// Tombstones that were made in a slot since the last call: who collects often enough looks at as many, at least.
    pub fn take_fresh_tombstones(&self, slot: SlotId) -> u64 {
        self.slot(slot)
            .map_or(0, |versions| versions.fresh.swap(0, Ordering::Relaxed))
    }

    /// Bytes of pages of large values that were replaced or deleted in a slot since the last call: who collects often enough frees as many, at least.
    pub fn take_fresh_chain_bytes(&self, slot: SlotId) -> u64 {
        self.slot(slot).map_or(0, |versions| {
            versions.fresh_chain_bytes.swap(0, Ordering::Relaxed)
        })
    }

    /// The trees of a slot, if the slot has made versions (V7).
    #[inline]
    pub(crate) fn slot(&self, slot: SlotId) -> Option<&SlotVersions> {
        self.slots.get(usize::from(slot.get()))?.get()
    }

    /// The trees of a slot, made if need be. The caller holds no latch the first time.
    #[inline]
    pub(crate) fn slot_or_create(&self, slot: SlotId) -> Result<&SlotVersions> {
        let cell = &self.slots[usize::from(slot.get())];
        match cell.get() {
            Some(versions) => Ok(versions),
            None => self.create_slot(slot, cell),
        }
    }

    #[cold]
    fn create_slot<'s>(
        &'s self,
        slot: SlotId,
        cell: &'s OnceLock<SlotVersions>,
    ) -> Result<&'s SlotVersions> {
        let _creating = self.creating[usize::from(slot.get())].lock();
        if let Some(versions) = cell.get() {
            return Ok(versions);
        }
        let versions = SlotVersions::create(slot, &self.context)?;
        Ok(cell.get_or_init(|| versions))
    }
}
