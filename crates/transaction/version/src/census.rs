//! What stands in rows and on lists, counted by looking: old versions in fat rows, tombstones in main indexes and in
//! graveyards. (Before-images are counted when they are made: `accounts`.)
//!
//! Nothing is kept for this on the way of a write. A look costs what there is, up to a bound, and is a view of no single
//! moment.

use crate::accounts::{Tally, VersionKind, VersionSums};
use crate::delta;
use crate::error::{Result, damaged};
use crate::fat::layout::{FatRow, Step};
use crate::held::{self, Kind};
use crate::row::{Header, STAMPED_HEADER};
use crate::store::VersionStore;
use crate::work::{Tombstone, decode_tombstone};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use vellum_base::{PageId, Timestamp};
use vellum_btree::{LeafCopy, Seek, Tree};

/// What was counted of each index, by its root page.
pub type Census = BTreeMap<PageId, VersionSums>;

/// Pages that a look may still take, and whether that was enough.
#[derive(Debug)]
struct Look {
    pages: usize,
    complete: bool,
}

impl Look {
    fn of(pages: usize) -> Self {
        Self {
            pages,
            complete: true,
        }
    }

    /// Takes one page; false if there are none, and something was not looked at.
    fn page(&mut self) -> bool {
        self.complete &= self.pages > 0;
        self.pages = self.pages.saturating_sub(1);
        self.complete
    }
}

/// Something old that was come by.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// The index whose row it is of.
    tree: PageId,
    kind: VersionKind,
    /// The stamp of what deleted or replaced it; zero if everyone sees that.
    replaced: Timestamp,
    tally: Tally,
}

impl VersionStore {
    /// Old versions by kind, by the root page of the index whose rows they belong to. Looks at `pages_max` pages at most: false
    /// if there are more, and tombstones or versions in rows beyond them are not counted.
    ///
    /// # Errors
    /// Storage errors.
    pub fn census(&self, pages_max: usize) -> Result<(Census, bool)> {
        let mut census = Census::new();
        for versions in self.slots().iter().filter_map(OnceLock::get) {
            versions.account(|accounts| accounts.report(&mut census));
        }
        let complete = self.look(pages_max, |found| {
            let sums = census.entry(found.tree).or_default();
            sums.add(found.kind, found.tally);
        })?;
        Ok((census, complete))
    }

    /// Old versions of all kinds, by which of the ascending `snapshots` keeps them: that which is the last at or below the stamp of what
    /// replaced or deleted them (no younger one needs them). Before-images within a two-hundredth part, the others by a look as in
    /// [`VersionStore::census`]; false if that ended early.
    ///
    /// # Errors
    /// Storage errors.
    pub fn pinned_by(
        &self,
        snapshots: &[Timestamp],
        pages_max: usize,
    ) -> Result<(Vec<Tally>, bool)> {
        debug_assert!(snapshots.is_sorted());
        let next = snapshots.iter().skip(1).copied();
        let next = next.chain([Timestamp::MAX]);
        let between = |(from, to): (&Timestamp, Timestamp)| self.versions_between(*from, to);
        let mut pinned: Vec<Tally> = snapshots.iter().zip(next).map(between).collect();
        let complete = self.look(pages_max, |found| {
            let above = snapshots.partition_point(|snapshot| *snapshot <= found.replaced);
            if let Some(holder) = above.checked_sub(1) {
                pinned[holder].add(found.tally);
            }
        })?;
        Ok((pinned, complete))
    }

    /// Calls `each` with what stands on lists and in rows; false if there were more pages than `pages_max`.
    fn look(&self, pages_max: usize, mut each: impl FnMut(Found)) -> Result<bool> {
        let mut look = Look::of(pages_max);
        let one = |tree, kind, replaced, key: &[u8]| Found {
            tree,
            kind,
            replaced,
            tally: Tally::one(STAMPED_HEADER + key.len()),
        };
        for versions in self.slots().iter().filter_map(OnceLock::get) {
            let (settled, held) = {
                let collecting = versions.collecting.lock();
                (
                    collecting.settling.through().to_vec(),
                    collecting.held.list(),
                )
            };
            let list = &versions.tombstones;
            // What was settled stays in the list for a while.
            self.walk_list(list, &settled, &mut look, |deleted, entry| {
                let Tombstone { root, key, .. } = decode_tombstone(entry, list)?;
                each(one(root, VersionKind::Tombstone, deleted, key));
                Ok(())
            })?;
            if let Some(list) = held {
                self.walk_list(&list, &[], &mut look, |deleted, entry| {
                    let (kind, root, key) = held::decode(entry, &list)?;
                    let kind = match kind {
                        Kind::Main => VersionKind::Tombstone,
                        Kind::Buried => VersionKind::Buried,
                    };
                    each(one(root, kind, deleted, key));
                    Ok(())
                })?;
            }
        }
        self.look_at_fat_rows(&mut look, &mut each);
        Ok(look.complete)
    }

    /// Calls `each` with the entries of a list above `done`, and the stamps of their deletes.
    fn walk_list(
        &self,
        list: &Tree,
        done: &[u8],
        look: &mut Look,
        mut each: impl FnMut(Timestamp, &[u8]) -> Result<()>,
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
                let name = delta::decode_key(&key);
                let (deleted, _) =
                    name.ok_or_else(|| damaged("key of a list of tombstones", list.root()))?;
                each(deleted, leaf.payload(index))?;
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

    /// Rows are fat in memory only, but for emergencies.
    fn look_at_fat_rows(&self, look: &mut Look, each: &mut impl FnMut(Found)) {
        for page in self.context().pool().fat_pages(look.pages + 1) {
            if !look.page() {
                return;
            }
            let Some(leaf) = LeafCopy::of_page(self.context(), page) else {
                continue;
            };
            for index in 0..leaf.len() {
                let row = leaf.payload(index);
                let is_fat = Header::decode(row).is_some_and(|header| header.fat);
                let Some(fat) = FatRow::decode(row).filter(|_| is_fat) else {
                    continue;
                };
                let stamp = |header: &Header| {
                    let writer = header.writer.map(|writer| writer.version.stamp);
                    writer.unwrap_or(Timestamp::ZERO)
                };
                let mut replaced = stamp(&fat.header);
                let mut versions = fat.old_versions();
                let mut left = versions.rest().len();
                while let Some(Ok(version)) = versions.next() {
                    each(Found {
                        tree: leaf.tree_root(),
                        kind: VersionKind::Fat,
                        replaced,
                        tally: Tally {
                            // A full copy is counted where it is: among the before-images.
                            count: u64::from(!matches!(version.step, Step::Copy(_))),
                            bytes: (left - versions.rest().len()) as u64,
                        },
                    });
                    left = versions.rest().len();
                    replaced = stamp(&version.header);
                }
            }
        }
    }

    /// Tombstones that wait in main indexes until every OLTP snapshot sees them, about.
    pub fn tombstones(&self) -> u64 {
        let slots = self.slots().iter().filter_map(OnceLock::get);
        slots.map(|versions| versions.unsettled()).sum()
    }
}
