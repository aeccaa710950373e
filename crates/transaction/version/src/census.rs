//! What stands in rows and on lists, counted by looking: old versions in fat rows, tombstones in main indexes and in
//! graveyards. (Before-images are counted when they are made: `accounts`.)
//!
//! Nothing is kept for this on the way of a write. A look costs what there is, up to a bound, and is a view of no single
//! moment.

use crate::accounts::{Tally, VersionKind, VersionSums};
use crate::error::Result;
use crate::fat::layout::FatRow;
use crate::held::{self, Kind};
use crate::row::{Header, STAMPED_HEADER};
use crate::store::VersionStore;
use crate::work::decode_tombstone;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use vellum_base::PageId;
use vellum_btree::{LeafCopy, Seek, Tree};

/// What was counted of each index, by its root page.
pub type Census = BTreeMap<PageId, VersionSums>;

impl VersionStore {
    /// Old versions by kind, by the root page of the index whose rows they belong to. Looks at `pages_max` pages at most: false
    /// if there are more, and tombstones or versions in rows beyond them are not counted.
    ///
    /// # Errors
    /// Storage errors.
    pub fn census(&self, pages_max: usize) -> Result<(Census, bool)> {
        let mut census = Census::new();
        let mut pages = pages_max;
        for versions in self.slots().iter().filter_map(OnceLock::get) {
            versions.account(|accounts| accounts.report(&mut census));
            let list = &versions.tombstones;
            self.walk_list(list, &mut pages, |entry| {
                let (root, key) = decode_tombstone(entry, list)?;
                count(&mut census, root, VersionKind::Tombstone, key);
                Ok(())
            })?;
            let held = versions.collecting.lock().held.list();
            if let Some(list) = held {
                self.walk_list(&list, &mut pages, |entry| {
                    let (kind, root, key) = held::decode(entry, &list)?;
                    let kind = match kind {
                        Kind::Main => VersionKind::Tombstone,
                        Kind::Buried => VersionKind::Buried,
                    };
                    count(&mut census, root, kind, key);
                    Ok(())
                })?;
            }
        }
        self.count_fat_rows(&mut census, &mut pages);
        Ok((census, pages > 0))
    }

    fn walk_list(
        &self,
        list: &Tree,
        pages: &mut usize,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut leaf = LeafCopy::new(self.context().page_size());
        let mut from = Vec::new();
        while *pages > 0 {
            *pages -= 1;
            list.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for index in 0..leaf.len() {
                each(leaf.payload(index))?;
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
    fn count_fat_rows(&self, census: &mut Census, pages: &mut usize) {
        for page in self.context().pool().fat_pages(*pages) {
            *pages = pages.saturating_sub(1);
            let Some(leaf) = LeafCopy::of_page(self.context(), page) else {
                continue;
            };
            for index in 0..leaf.len() {
                let row = leaf.payload(index);
                if Header::decode(row).is_some_and(|header| header.fat)
                    && let Some(fat) = FatRow::decode(row)
                {
                    let versions = Tally {
                        count: fat.old_versions().flatten().count() as u64,
                        bytes: fat.versions.len() as u64,
                    };
                    let sums = census.entry(leaf.tree_root()).or_default();
                    sums.add(VersionKind::Fat, versions);
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

fn count(census: &mut Census, tree: PageId, kind: VersionKind, key: &[u8]) {
    let sums = census.entry(tree).or_default();
    sums.add(kind, Tally::one(STAMPED_HEADER + key.len()));
}
