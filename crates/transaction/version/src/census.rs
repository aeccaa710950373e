//! What stands in rows and on lists, counted by looking: old versions in fat rows, tombstones in main indexes and in
//! graveyards, overflow chains, pages of dropped trees (`dropped_pages` knows how many). (Before-images are counted when they are made: `accounts`. What versions in
//! rows come to, of however many pages, is found a part at a time: `in_rows`.)
//!
//! Nothing is kept for this on the way of a write. A look costs what there is, up to a bound, and is a view of no single
//! moment. It does not wait for collectors, who may wait for a disk: where one is at work, what it has worked off in this step may count as it was before.

use crate::accounts::{Tally, VersionKind, VersionSums};
use crate::delta;
use crate::error::{Result, damaged};
use crate::fat::layout::{FatRow, Step};
use crate::held::{self, Kind};
use crate::row::{Header, STAMPED_HEADER};
use crate::store::{Collecting, VersionStore};
use crate::work::{Tombstone, Work, decode_tombstone};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use vellum_base::{PageId, SlotId, Timestamp};
use vellum_btree::{LeafCopy, Seek, Tree};
use vellum_txn::{Domain, Holder};

/// What was counted of each index, by its root page.
pub type Census = BTreeMap<PageId, VersionSums>;

/// How often a page is copied that was written to meanwhile.
const COPIES_TRIED: u32 = 8;

/// How far the lists of a slot were worked off: what is on them up to there is done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached {
    settled: Vec<u8>,
    held: Option<Tree>,
    done: Vec<u8>,
    freed: BTreeSet<Vec<u8>>,
}

impl Reached {
    /// Takes over what a collector knows.
    pub fn update(&mut self, collecting: &Collecting) {
        let Self {
            settled,
            held,
            done,
            freed,
        } = self;
        let Collecting {
            settling, early, ..
        } = collecting;
        settling.through().clone_into(settled);
        if held.is_none() {
            *held = collecting.held.list();
        }
        done.clone_from(&collecting.done.through);
        if !(freed.is_empty() && early.freed().is_empty()) {
            freed.clone_from(early.freed());
        }
    }
}

/// Pages that a look may still take, of lists and as many with versions in rows, and whether that was enough. (From one account: beside a snapshot that keeps a
/// million deleted rows their lists alone took it, and versions in rows were told as none.)
#[derive(Debug)]
struct Look {
    lists: usize,
    rows: usize,
    complete: bool,
}

impl Look {
    fn of(pages: usize) -> Self {
        Self {
            lists: pages,
            rows: pages,
            complete: true,
        }
    }

    /// Takes one page of a list; false if there are none, and something was not looked at.
    fn page(&mut self) -> bool {
        let has = self.lists > 0;
        self.complete &= has;
        self.lists = self.lists.saturating_sub(1);
        has
    }
}

/// Something old that was come by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// The index whose row it is of.
    tree: PageId,
    kind: VersionKind,
    /// The stamp of what deleted or replaced it; zero if everyone sees that. In a row what replaced it may be gone: then that of what is left next
    /// above it, and no snapshot that was open then lies between the two.
    pub replaced: Timestamp,
    /// Whose stamp that is.
    pub by: SlotId,
    /// The stamp of who made it, of a version in a row: no snapshot at or below sees it. Zero of what may have to stay for such a one, too.
    pub made: Timestamp,
    pub tally: Tally,
}

impl Found {
    /// Which of these keeps it, the oldest snapshot first, and no younger one does: who has a snapshot (of its first write, or of its last statement) that lies between
    /// who made it and who replaced it. What nobody sees is of the writer whose undo needs it, if that is at work; `None` if it is not.
    fn keeper(&self, holders: &[Holder]) -> Option<usize> {
        let sees = |snapshot| self.made < snapshot && snapshot <= self.replaced;
        let above = holders.partition_point(|it| it.oldest <= self.replaced);
        // A slot runs one transaction after the other, and draws a stamp after the snapshot that it writes by.
        let is_own = |it: &Holder| it.writer && it.id.slot == self.by;
        let mut older = holders[..above].iter();
        older
            .clone()
            .rposition(|it| sees(it.oldest) || sees(it.newest))
            .or_else(|| older.rposition(is_own))
    }
}

impl VersionStore {
    /// Old versions by kind, by the root page of the index whose rows they belong to. Looks at `pages_max` pages of lists at most, and at as many with versions in
    /// rows: false if there are more, or if pages with versions in rows are in the file only; what is there is not counted.
    ///
    /// # Errors
    /// Storage errors.
    pub fn census(&self, domain: &Domain, pages_max: usize) -> Result<(Census, bool)> {
        let mut census = Census::new();
        for versions in self.slots().iter().filter_map(OnceLock::get) {
            versions.account(|accounts| accounts.report(&mut census));
        }
        let complete = self.look(pages_max, |found| {
            let sums = census.entry(found.tree).or_default();
            sums.add(found.kind, found.tally);
        })?;
        let (trees, all_counted) = self.dropped_trees(domain);
        for tree in trees {
            let sums = census.entry(tree.root).or_default();
            sums.add(VersionKind::Dropped, tree.pages);
        }
        Ok((census, complete && all_counted))
    }

    /// Old versions of all kinds, by which of the holders keeps them: the last with a snapshot at or below the stamp of what
    /// replaced or deleted them (no younger one needs them). Before-images within a two-hundredth part, the others by a look as in
    /// [`VersionStore::census`]; false if that ended early.
    ///
    /// `holders` gives those that are open, the oldest first. It is asked before the look and behind it, and what comes back is by the second answer. `now` is
    /// the clock before all of that. Interleaving otherwise: a snapshot is in the list and ends; what it saw of a row is pruned; the look finds a version
    /// that an older one needs, below one that is above both, and charges the one that has ended.
    ///
    /// # Errors
    /// Storage errors.
    pub fn pinned_by(
        &self,
        domain: &Domain,
        now: Timestamp,
        pages_max: usize,
        mut holders: impl FnMut() -> Vec<Holder>,
    ) -> Result<(Vec<Tally>, bool)> {
        let is_sorted = |list: &[Holder]| list.is_sorted_by_key(|it| it.oldest);
        let before = holders();
        debug_assert!(is_sorted(&before));
        let mut found_for = vec![Tally::default(); before.len()];
        // Who begins from now on may keep what is replaced from now on only.
        let mut found_late = Vec::new();
        let complete = self.look(pages_max, |found| {
            if found.replaced > now {
                found_late.push(found);
            } else if let Some(holder) = found.keeper(&before) {
                found_for[holder].add(found.tally);
            }
        })?;
        let holders = holders();
        debug_assert!(is_sorted(&holders));
        let next = holders.iter().skip(1).map(|it| it.oldest);
        let next = next.chain([Timestamp::MAX]);
        let between = |(from, to): (&Holder, Timestamp)| self.versions_between(from.oldest, to);
        let mut pinned: Vec<Tally> = holders.iter().zip(next).map(between).collect();
        // What is kept for one that has ended is kept for the next older one.
        for (of, tally) in before.into_iter().zip(found_for) {
            // A statement's snapshot moves on under read committed: what the last one saw this one need not.
            let same = |it: &Holder| it.id == of.id && it.oldest == of.oldest;
            let still = holders.iter().position(same);
            let above = holders.partition_point(|it| it.oldest <= of.oldest);
            if let Some(holder) = still.or(above.checked_sub(1)) {
                pinned[holder].add(tally);
            }
        }
        for found in found_late {
            if let Some(holder) = found.keeper(&holders) {
                pinned[holder].add(found.tally);
            }
        }
        // By its commit: a drop that began below a snapshot may have been committed above.
        let (trees, all_counted) = self.dropped_trees(domain);
        for tree in trees {
            let of = holders.iter().rposition(|it| tree.is_kept_for(domain, it));
            if let Some(holder) = of {
                pinned[holder].add(tree.pages);
            }
        }
        Ok((pinned, complete && all_counted))
    }

    /// Old versions of all kinds but pages of dropped trees that were replaced or deleted since the snapshot `oldest`, within what [`VersionStore::pinned_by`] says: what
    /// would go if no snapshot was older than now. What running transactions have replaced themselves is not among it: their undo needs that. `running` has
    /// the oldest snapshot of the one in each slot.
    ///
    /// # Errors
    /// Storage errors.
    pub fn replaced_since(
        &self,
        oldest: Timestamp,
        running: &BTreeMap<SlotId, Timestamp>,
        pages_max: usize,
    ) -> Result<Tally> {
        // A slot runs one transaction after the other, and draws a stamp after the snapshot that it writes by.
        let end = |slot| running.get(&slot).copied().unwrap_or(Timestamp::MAX);
        let mut sum = Tally::default();
        for (slot, versions) in self.slots().iter().enumerate() {
            if let Some(versions) = versions.get() {
                let end = end(SlotId(slot as u16));
                sum.add(versions.deltas_between(oldest, end));
            }
        }
        self.look(pages_max, |found| {
            if (oldest..end(found.by)).contains(&found.replaced) {
                sum.add(found.tally);
            }
        })?;
        Ok(sum)
    }

    /// Bytes of before-images and of large values that the transaction with this stamp, which runs in `slot`, has replaced or deleted itself. Its
    /// large values are looked for in `pages_max` pages.
    ///
    /// # Errors
    /// Storage errors.
    pub fn replaced_by(&self, slot: SlotId, stamp: Timestamp, pages_max: usize) -> Result<u64> {
        let Some(versions) = self.slot(slot) else {
            return Ok(0);
        };
        let mut own = 0;
        versions.account(|accounts| own += accounts.of_newest(stamp).bytes);
        let (list, page_size) = (&versions.work, self.context().page_size());
        let from = delta::key(stamp, 0);
        self.walk_list(list, &from, &mut Look::of(pages_max), |_, _, entry| {
            own += Work::decode(entry, list)?.chain_bytes(page_size);
            Ok(())
        })?;
        Ok(own)
    }

    /// Calls `each` with what stands on lists and in rows; false if there were more pages than `pages_max` of either, or some that are not in memory.
    fn look(&self, pages_max: usize, mut each: impl FnMut(Found)) -> Result<bool> {
        let mut look = Look::of(pages_max);
        let page_size = self.context().page_size();
        for (slot, versions) in self.slots().iter().enumerate() {
            let Some(versions) = versions.get() else {
                continue;
            };
            let one = |tree, kind, replaced, bytes: usize| Found {
                tree,
                kind,
                replaced,
                by: SlotId(slot as u16),
                made: Timestamp::ZERO,
                tally: Tally::one(bytes),
            };
            let Reached {
                settled,
                held,
                done,
                freed,
            } = versions.reached();
            let list = &versions.tombstones;
            // What was settled stays in the list for a while.
            self.walk_list(list, &settled, &mut look, |deleted, _, entry| {
                let Tombstone { root, key, .. } = decode_tombstone(entry, list)?;
                let bytes = STAMPED_HEADER + key.len();
                each(one(root, VersionKind::Tombstone, deleted, bytes));
                Ok(())
            })?;
            if let Some(list) = held {
                self.walk_list(&list, &[], &mut look, |deleted, _, entry| {
                    let held = held::decode(entry, &list)?;
                    let (kind, row) = match held.kind {
                        Kind::Main => (VersionKind::Tombstone, STAMPED_HEADER),
                        Kind::Buried => (VersionKind::Buried, held.bytes as usize),
                    };
                    each(one(held.root, kind, deleted, row + held.key.len()));
                    Ok(())
                })?;
            }
            let list = &versions.work;
            self.walk_list(list, &done, &mut look, |replaced, key, entry| {
                let work = Work::decode(entry, list)?;
                if let Work::Chain { tree, .. } = work
                    && !freed.contains(key)
                {
                    let bytes = work.chain_bytes(page_size) as usize;
                    each(one(tree, VersionKind::Chain, replaced, bytes));
                }
                Ok(())
            })?;
        }
        self.look_at_fat_rows(&mut look, &mut each);
        Ok(look.complete)
    }

    /// Calls `each` with the stamps, keys and payloads of the entries of a list above `done`.
    fn walk_list(
        &self,
        list: &Tree,
        done: &[u8],
        look: &mut Look,
        mut each: impl FnMut(Timestamp, &[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut leaf = LeafCopy::new(self.context().page_size());
        let (mut from, mut key) = (done.to_vec(), Vec::new());
        while look.page() {
            list.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for index in 0..leaf.len() {
                leaf.key(index, &mut key);
                if key.as_slice() <= done {
                    continue;
                }
                // A list of work has a byte behind the name.
                let name = key.get(..delta::KEY_BYTES).and_then(delta::decode_key);
                let (stamp, _) =
                    name.ok_or_else(|| damaged("key of a list of versions", list.root()))?;
                each(stamp, &key, leaf.payload(index))?;
            }
            match leaf.upper_fence() {
                Some(fence) => {
                    from.clear();
                    from.extend_from_slice(fence);
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Versions in rows of pages that are in memory. Those of pages that were evicted as they were are not looked for: that would read them.
    fn look_at_fat_rows(&self, look: &mut Look, each: &mut impl FnMut(Found)) {
        let pool = self.context().pool();
        look.complete &= pool.fat_pages_out() == 0;
        let pages = pool.fat_pages(look.rows + 1);
        look.complete &= pages.len() <= look.rows;
        for page in pages.into_iter().take(look.rows) {
            look.complete &= self.look_at_page(page, each);
        }
    }

    /// Calls `each` with the old versions in the rows of a page; false if it is not in memory, or somebody writes to it all the time.
    pub(crate) fn look_at_page(&self, page: PageId, each: &mut impl FnMut(Found)) -> bool {
        let mut tries = 0..COPIES_TRIED;
        let Some(leaf) = tries.find_map(|_| LeafCopy::of_page(self.context(), page)) else {
            return false;
        };
        for index in 0..leaf.len() {
            let row = leaf.payload(index);
            let is_fat = Header::decode(row).is_some_and(|header| header.fat);
            let Some(fat) = FatRow::decode(row).filter(|_| is_fat) else {
                continue;
            };
            let stamp = |header: &Header| {
                let writer = header.writer.map(|writer| writer.version);
                writer.map_or((Timestamp::ZERO, SlotId(0)), |it| (it.stamp, it.slot))
            };
            let (mut replaced, mut by) = stamp(&fat.header);
            let mut versions = fat.old_versions();
            let mut left = versions.rest().len();
            while let Some(Ok(version)) = versions.next() {
                let (made, maker) = stamp(&version.header);
                each(Found {
                    tree: leaf.tree_root(),
                    kind: VersionKind::Fat,
                    replaced,
                    by,
                    made,
                    tally: Tally {
                        // A full copy is counted where it is: among the before-images.
                        count: u64::from(!matches!(version.step, Step::Copy(_))),
                        bytes: (left - versions.rest().len()) as u64,
                    },
                });
                left = versions.rest().len();
                (replaced, by) = (made, maker);
            }
        }
        true
    }

    /// Bytes of the pages of overflow chains that no newest version refers to, and that are not free yet.
    pub fn chain_bytes(&self) -> u64 {
        let slots = self.slots().iter().filter_map(OnceLock::get);
        slots.map(|versions| versions.chain_bytes()).sum()
    }

    /// Tombstones that wait in main indexes until every OLTP snapshot sees them, about.
    pub fn tombstones(&self) -> u64 {
        let slots = self.slots().iter().filter_map(OnceLock::get);
        slots.map(|versions| versions.unsettled()).sum()
    }
}
