//! Turning a fat row back: each old version becomes the delta of the version that replaced it.
//!
//! Invariants:
//! - F3 The deltas are in the indexes before the row changes (V9); their names are those of the versions in the row, in
//!   the indexes of the slots that made those. So they go as any deltas go: when everyone sees the version that replaced
//!   theirs.
//! - F4 Deltas of a row are put in and taken out under its leaf's latch. A name may come back (a row turns fat, and
//!   back), and a removal that came late would take the delta that is needed by then.
//!
//! Concurrency: writes to delta indexes of other slots (an exception to V6): those trees are latched page by page as
//! any; what is written lies below their right edges, where the slots append.

use crate::delta::{self, DeltaName};
use crate::error::{Result, damaged};
use crate::fat::layout::{FatRow, OldVersion};
use crate::fat::prune::{Kept, KeptStep, Pruned, Rewrite, prune};
use crate::row::{FAT, Header};
use crate::store::VersionStore;
use smallvec::SmallVec;
use vellum_base::PageId;
use vellum_base::planted::Bug;
use vellum_btree::{Journal, LeafCopy, LeafHints, Tree, TreeKind};
use vellum_gc::is_dead_between;
use vellum_metrics::Counter;
use vellum_txn::{ActiveSnapshots, Domain, VersionStamp};
use vellum_wal::{Purpose, SlotLog};

/// Deltas to be taken away once the row has changed.
pub(crate) type Gone = SmallVec<[DeltaName; 4]>;

/// Takes the old versions of a fat row apart, from the newest to the oldest; `None` if they are damaged.
pub(crate) fn old_versions<'r>(row: &FatRow<'r>) -> Option<SmallVec<[OldVersion<'r>; 16]>> {
    row.old_versions()
        .collect::<std::result::Result<_, _>>()
        .ok()
}

impl VersionStore {
    /// Prunes by a list of all open snapshots; `None` if the versions are damaged.
    pub(crate) fn prune_by_list<'r>(
        &self,
        domain: &Domain,
        active: &ActiveSnapshots,
        newest: VersionStamp,
        old: &[OldVersion<'r>],
    ) -> Option<Pruned<'r>> {
        let oldest = active.oldest();
        let mut spare = self.has(Bug::PrunedTooMuch);
        prune(newest, old, |version, newer| {
            if std::mem::take(&mut spare) {
                return true;
            }
            match version {
                Some(version) => is_dead_between(domain, active, version, newer),
                // Committed before everything: whoever does not see what replaced it sees it.
                None => domain.is_committed_before(newer, oldest),
            }
        })
    }

    /// Rewrites full copies. Before the row changes; may be done again.
    pub(crate) fn rewrite_copies(&self, tree: PageId, rewrites: &[Rewrite<'_>]) -> Result<()> {
        let mut entry = Vec::new();
        let mut body = Vec::new();
        for Rewrite {
            name,
            header,
            image,
        } in rewrites
        {
            // One that is not there has been collected: everyone sees the version that it belongs to, and so nobody asks
            // for an older one.
            if self.full_copy(name, tree, &mut body)? {
                delta::apply_image(image, &mut body).ok_or_else(|| damaged("fat row", tree))?;
                entry.clear();
                delta::encode_full(header, &body, &mut entry);
                self.put_delta(tree, name, &entry)?;
            }
        }
        Ok(())
    }

    /// Puts a delta into the index of the slot that it is named after.
    pub(crate) fn put_delta(&self, tree: PageId, name: &VersionStamp, entry: &[u8]) -> Result<()> {
        let versions = self.slot(name.slot);
        let versions = versions.ok_or_else(|| damaged("slot of a version", PageId::ZERO))?;
        Ok(versions.put_delta(tree, name, entry)?)
    }

    /// Takes deltas away that nothing names any more, after the row has changed and under its latch (F4). What cannot
    /// be taken away now goes with its range.
    pub(crate) fn remove_deltas(&self, tree: PageId, names: &[DeltaName]) {
        let mut hints = LeafHints::default();
        for name in names {
            if let Some(versions) = self.slot(name.version.slot) {
                let _ = versions.take_delta(tree, name, &mut hints);
            }
        }
    }

    /// Puts old versions into delta indexes (F3): the chain behind `newest`. What is in them under other names is added
    /// to `gone`; what has a place in the chain now is taken off it. (Interleaving without that: the version before H goes
    /// and leaves its copy, which is named H, to be taken away; the one before it becomes H's delta.)
    pub(crate) fn put_chain(
        &self,
        tree: PageId,
        newest: VersionStamp,
        kept: &[Kept<'_>],
        gone: &mut Gone,
    ) -> Result<()> {
        let (mut entry, mut body) = (Vec::new(), Vec::new());
        let mut newer = newest;
        for Kept { header, step } in kept {
            entry.clear();
            match step {
                KeptStep::Same if header.shape.tombstone => {
                    delta::encode_full(header, &[], &mut entry);
                }
                KeptStep::Same => delta::encode_ranges(header, &[], &[], &mut entry),
                KeptStep::Ranges(image) => {
                    // V46: versions of other lengths may link to what is a full copy.
                    let copy = self.copy_if_full(&newer, &mut body)?;
                    if copy && delta::apply_image(image, &mut body).is_some() {
                        delta::encode_full(header, &body, &mut entry);
                    } else {
                        delta::encode_ranges_of(header, image, &mut entry);
                    }
                }
                KeptStep::Whole(body) => delta::encode_full(header, body, &mut entry),
                KeptStep::Copy(name) => {
                    if !self.full_copy(name, tree, &mut body)? {
                        // Collected: nobody asks for what is this old.
                        return Ok(());
                    }
                    delta::encode_full(header, &body, &mut entry);
                    if *name != newer {
                        gone.push(DeltaName::lasting(*name));
                    }
                }
            }
            self.put_delta(tree, &newer, &entry)?;
            gone.retain(|name| *name != DeltaName::lasting(newer));
            match header.writer {
                Some(writer) => newer = writer.version,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Turns the row of `key` into a plain one, if it is fat: versions that nobody in `active` needs go, the others
    /// become deltas. Not logged: a row's past never is. True if the row was fat.
    ///
    /// `log`: where merging a leaf that became small is logged, if it is to be.
    ///
    /// # Errors
    /// Storage errors; the row is as it was.
    pub(crate) fn decompose(
        &self,
        domain: &Domain,
        active: &ActiveSnapshots,
        tree: &Tree,
        key: &[u8],
        log: Option<&SlotLog>,
    ) -> Result<bool> {
        let broken = || damaged("fat row", tree.root());
        let mut row = Vec::new();
        let mut leaf = tree.write(key)?;
        if !leaf.found() {
            return Ok(false);
        }
        leaf.copy_payload(&mut row);
        let header = Header::decode(&row).ok_or_else(broken)?;
        let Some(writer) = header.writer.filter(|_| header.fat) else {
            return Ok(false);
        };
        let fat = FatRow::decode(&row).ok_or_else(broken)?;
        let old = old_versions(&fat).ok_or_else(broken)?;
        let mut header = Header {
            fat: false,
            ..header
        };
        let mut gone = Gone::new();
        vellum_sync::test_point!("decompose: latched");
        if domain.is_committed_before(&writer.version, active.oldest()) {
            header = Header::frozen(header.shape);
        } else {
            let pruned = self.prune_by_list(domain, active, writer.version, &old);
            let pruned = pruned.ok_or_else(broken)?;
            self.rewrite_copies(tree.root(), &pruned.rewrites)?;
            gone.extend(pruned.gone.iter().copied().map(DeltaName::lasting));
            let kept = match &pruned.kept[..] {
                [others @ .., _] if self.has(Bug::DecomposedShort) => others,
                all => all,
            };
            self.put_chain(tree.root(), writer.version, kept, &mut gone)?;
            if let Some(writer) = &mut header.writer {
                writer.first |= pruned.newest_is_first;
            }
        }
        vellum_sync::test_point!("decompose: between deltas and row");
        let plain = [&header.encode()[..], fat.body].concat();
        let before = leaf.fill();
        leaf.shrink_unlogged(&plain);
        leaf.unmark_fat(|flags| flags & FAT != 0);
        self.remove_deltas(tree.root(), &gone);
        let metrics = self.context().metrics();
        metrics.increment(Counter::FatTuplesDecomposed);
        let joins = leaf.should_join(before);
        drop(leaf);
        if let Some(log) = log
            && joins
        {
            tree.join_if_possible(key, Some(Journal::new(log, Purpose::Optional)))?;
        }
        Ok(true)
    }

    /// Turns the fat rows of a page into plain ones: for a page that is to be evicted, or that was written to long ago.
    /// Does nothing if the page is no leaf of rows. Returns how many it turned.
    ///
    /// # Errors
    /// Storage errors. What was turned stays turned.
    pub fn decompose_page(
        &self,
        domain: &Domain,
        active: &ActiveSnapshots,
        page: PageId,
        log: &SlotLog,
    ) -> Result<u64> {
        // No tree is freed while this looks into it: what the page says now stays true.
        let dropped = self.dropped().read();
        let Some(leaf) = LeafCopy::of_page(self.context(), page) else {
            return Ok(0);
        };
        if dropped.contains(leaf.tree_root()) {
            return Ok(0);
        }
        let tree = Tree::open(self.context(), leaf.tree_root(), TreeKind::Rows);
        let (mut key, mut turned) = (Vec::new(), 0);
        for index in 0..leaf.len() {
            if Header::decode(leaf.payload(index)).is_some_and(|header| header.fat) {
                leaf.key(index, &mut key);
                turned += u64::from(self.decompose(domain, active, &tree, &key, Some(log))?);
            }
        }
        if turned == 0 {
            // Marked for nothing: another way than this one made its rows plain, or took them out.
            match leaf.is_empty() {
                false => leaf.key(0, &mut key),
                true => key.extend_from_slice(leaf.lower_fence().unwrap_or_default()),
            }
            let mut leaf = tree.write(&key)?;
            leaf.unmark_fat(|flags| flags & FAT != 0);
        }
        Ok(turned)
    }
}
