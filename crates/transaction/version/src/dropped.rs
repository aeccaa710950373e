//! Trees that were dropped: who goes through lists of tombstones leaves theirs alone.
//!
//! States of a root: *going* (pages are being given back) --last page--> *gone* --[`VersionStore::forget_dropped`]--> gone
//! since some time --no list has an older entry--> forgotten. A tree that is made on that page ends it earlier.
//!
//! Invariants:
//! - V55 A root is known here as long as a list may name it. A tree goes when everyone sees the drop (or nobody sees the tree, V68) and nobody who wrote
//!   to it is left (V22), so no entry about it is made after its last page is gone, and all have older stamps.
//!
//! Concurrency: one lock, held shared while a tombstone or a page of a tree is looked at, so that no page of it goes meanwhile.

use crate::delta;
use crate::error::{Result, damaged};
use crate::store::VersionStore;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use vellum_base::{PageId, Timestamp};
use vellum_btree::{LeafCopy, Seek, Tree};
use vellum_txn::VersionStamp;

/// What is known about a dropped tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Going,
    Gone,
    GoneSince(Timestamp),
}

/// The dropped trees, by root page.
#[derive(Debug, Default)]
pub(crate) struct Dropped(BTreeMap<PageId, Stage>);

impl Dropped {
    pub fn contains(&self, root: PageId) -> bool {
        self.0.contains_key(&root)
    }

    /// Its pages are being given back.
    pub fn goes(&mut self, root: PageId) {
        self.0.insert(root, Stage::Going);
    }

    /// All of its pages are given back. Its root may be the root of another tree by now ([`Dropped::is_made`]): that one is not gone.
    pub fn is_gone(&mut self, root: PageId) {
        if let Some(stage) = self.0.get_mut(&root) {
            *stage = Stage::Gone;
        }
    }

    /// The page is the root of another tree.
    pub fn is_made(&mut self, root: PageId) {
        self.0.remove(&root);
    }
}

/// Who made the trees that were made since the database was opened, and are not dropped: every snapshot sees who made the others.
#[derive(Debug, Default)]
pub(crate) struct Made(BTreeMap<PageId, VersionStamp>);

impl Made {
    /// The tree of this root is made. One that was there before was given up.
    pub fn note(&mut self, root: PageId, by: VersionStamp) {
        self.0.insert(root, by);
    }

    /// Who made it. It may be asked about again: a drop may be reverted.
    pub fn by(&self, root: PageId) -> Option<VersionStamp> {
        self.0.get(&root).copied()
    }

    /// It goes.
    pub fn forget(&mut self, root: PageId) {
        self.0.remove(&root);
    }
}

/// Trees that are gone before lists are looked through for them.
const FORGET_FROM: usize = 64;

impl VersionStore {
    /// Forgets dropped trees that no list names any more, once there are many. `now`: the clock. Costs two pages a slot
    /// that has made versions.
    ///
    /// # Errors
    /// Storage errors.
    pub fn forget_dropped(&self, now: impl FnOnce() -> Timestamp) -> Result<()> {
        let is_gone = |stage: &Stage| *stage != Stage::Going;
        if self
            .dropped()
            .read()
            .0
            .values()
            .filter(|stage| is_gone(stage))
            .count()
            < FORGET_FROM
        {
            return Ok(());
        }
        let Some(oldest) = self.oldest_listed()? else {
            return Ok(());
        };
        vellum_sync::test_point!("dropped: lists were looked at");
        let mut dropped = self.dropped().write();
        dropped.0.retain(|_, stage| match *stage {
            Stage::GoneSince(time) => time > oldest,
            _ => true,
        });
        // Not before it is known what is gone: entries of what went meanwhile may be younger than an earlier look at the clock.
        let now = now();
        for stage in dropped.0.values_mut() {
            if *stage == Stage::Gone {
                // Entries that were there when it went have stamps below.
                *stage = Stage::GoneSince(now);
            }
        }
        Ok(())
    }

    /// The oldest stamp in any list of tombstones; `None` while somebody is at one: what it works on may be in no list.
    fn oldest_listed(&self) -> Result<Option<Timestamp>> {
        let mut oldest = Timestamp::MAX;
        for versions in self.slots().iter().filter_map(OnceLock::get) {
            let Some(collecting) = versions.collecting.try_lock() else {
                return Ok(None);
            };
            let lists = [Some(versions.tombstones.clone()), collecting.held.list()];
            for list in lists.into_iter().flatten() {
                if let Some(stamp) = first_stamp(&list)? {
                    oldest = oldest.min(stamp);
                }
            }
        }
        Ok(Some(oldest))
    }

    /// How many dropped trees are known.
    #[cfg(test)]
    pub(crate) fn dropped_known(&self) -> usize {
        self.dropped().read().0.len()
    }
}

/// The stamp of a list's first entry.
fn first_stamp(list: &Tree) -> Result<Option<Timestamp>> {
    let mut leaf = LeafCopy::new(list.context().page_size());
    let mut key = Vec::new();
    list.read_leaf(Seek::First, &mut leaf)?;
    loop {
        if !leaf.is_empty() {
            leaf.key(0, &mut key);
            let name = delta::decode_key(&key);
            let name = name.ok_or_else(|| damaged("key of a list of tombstones", list.root()))?;
            return Ok(Some(name.0));
        }
        let Some(fence) = leaf.upper_fence().map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        list.read_leaf(Seek::AtOrAfter(&fence), &mut leaf)?;
    }
}
