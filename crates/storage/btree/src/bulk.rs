//! Loading sorted rows into a new tree, bottom-up.
//!
//! Rows are gathered until they fill a leaf; the leaf is built once, with both fences known (so with its final prefix). Many such
//! leaves are brought into the file together, and then linked before the rightmost leaf, as many as their parent takes in one structure change: bits of their
//! pages, image of the parent, new lower fence of the rightmost leaf. What is in the leaves is in no log record.
//!
//! States of a leaf: made (nobody knows it, its page counts as temporary) --[`BulkLoader::try_link`]--> a leaf as any other. Dropped
//! before that, its page goes back.
//!
//! Invariants:
//! - U1 Nobody but the loader knows the tree until the load has ended: no other rows are in it. So N5 holds for made leaves too, though they
//!   are not linked: nobody reads in this tree.
//! - U2 A leaf is linked with its image in the log, or all of it is in the file, durably: redo never makes it then. Few leaves, which a sync would cost more
//!   than their bytes, go into the log.
//! - U3 Whoever needs every page's content in the log ([`require_images`](crate::TreeContext::require_images): a backup) is asked, and kept from beginning, while leaves are linked.
//!
//! Concurrency: nothing is latched between pages, and nobody else is in the tree (U1).
//!
//! Crash: before the record of their link is durable the leaves' pages are free; after it they are in the file (U2). What the file holds at their places from
//! an earlier life is older than their GSN, so redo skips records of it (0001, GSN floor). What is in the tree is a prefix of the load; its undo is the
//! caller's.

use crate::change::{Change, Fresh};
use crate::context::{Journal, max_inline_payload, max_key, row_log_bytes};
use crate::descend::Target;
use crate::detached::mark_free;
use crate::merge::copy;
use crate::node::build::{Builder, Frame, Incoming, frame_of};
use crate::node::edit::parts_len;
use crate::node::layout::{
    HEADER_BYTES, KIND_INNER, KIND_LEAF, NodeRead, RECORD_OVERHEAD, SLOT_BYTES, common_prefix,
    record_bytes, separator,
};
use crate::record::KEEP_FROM;
use crate::split::separator_redo;
use crate::tree::{Tree, TreeKind};
use crate::write::{Logging, RowRedo};
use std::ops::Range;
use vellum_base::{PageId, Result};
use vellum_buffer::{PageBuf, PageRead, PageWrite};
use vellum_sync::Backoff;

/// Fewest leaves that are brought into the file at the end of a load; fewer are logged, but in a pool that has no room for so many.
const IN_FILE_MIN: usize = 64;
/// Most bytes of leaves that are made and not linked.
const MADE_BYTES_MAX: usize = 32 << 20;
/// Bitmap pages of the leaves that one change links.
const GROUPS_MAX: usize = 4;

struct Row {
    at: usize,
    key: usize,
    payload: usize,
    /// Bytes of all rows up to this one, in slots and records without a prefix.
    sum: usize,
}

/// A leaf that is not linked yet.
struct Made {
    page: PageId,
    upper: Vec<u8>,
}

/// Takes sorted rows; see the module. What it logs goes to the journal that each call is given, always on the account of the same
/// transaction.
pub struct BulkLoader {
    tree: Tree,
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// Most bytes of a leaf, header included.
    limit: usize,
    /// The upper fence of the leaf that was made last.
    lower: Option<Vec<u8>>,
    made: Vec<Made>,
    /// Most leaves that are made and not linked.
    made_max: usize,
    loaded: u64,
}

impl std::fmt::Debug for BulkLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BulkLoader({:?}, {} rows)", self.tree, self.loaded)
    }
}

impl Tree {
    /// A loader of sorted rows, for a durable tree without rows that nobody else knows (U1). Leaves are filled to `fill` percent (50..=100).
    pub fn bulk_loader(&self, fill: u8) -> BulkLoader {
        assert_ne!(
            self.kind(),
            TreeKind::Temporary,
            "loads are of durable trees"
        );
        let page_size = self.context().page_size();
        let limit = page_size * usize::from(fill.clamp(50, 100)) / 100;
        // An eighth of the pool, or leaves would be evicted before they are written together.
        let made_max = (self.context().pool().frames() / 8).clamp(1, MADE_BYTES_MAX / page_size);
        BulkLoader {
            tree: self.clone(),
            bytes: Vec::with_capacity(2 * limit),
            rows: Vec::new(),
            limit,
            lower: None,
            made: Vec::new(),
            made_max,
            loaded: 0,
        }
    }
}

impl BulkLoader {
    /// Rows taken so far.
    pub fn loaded(&self) -> u64 {
        self.loaded
    }

    fn key(&self, row: usize) -> &[u8] {
        let row = &self.rows[row];
        &self.bytes[row.at..row.at + row.key]
    }

    fn payload(&self, row: usize) -> &[u8] {
        let row = &self.rows[row];
        &self.bytes[row.at + row.key..row.at + row.key + row.payload]
    }

    /// Takes one more row, above the one before. Now and then brings leaves into the file and links them: blocks for these writes and a sync.
    ///
    /// # Errors
    /// Out of space, I/O: give the loader up. Rows of earlier leaves stay in the tree.
    ///
    /// # Panics
    /// If keys do not ascend, or key or payload are too long; if the tree is not new.
    pub fn push(&mut self, key: &[u8], payload: &[&[u8]], journal: Journal<'_>) -> Result<()> {
        let page_size = self.tree.context().page_size();
        let length = parts_len(payload);
        assert!(
            key.len() <= max_key(page_size),
            "key of {} bytes",
            key.len()
        );
        assert!(
            length <= max_inline_payload(page_size, key.len()),
            "payload of {length} bytes"
        );
        let before = self.rows.len().checked_sub(1);
        assert!(
            before.is_none_or(|last| self.key(last) < key),
            "bulk rows ascend"
        );
        let sum = before.map_or(0, |last| self.rows[last].sum);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        for part in payload {
            self.bytes.extend_from_slice(part);
        }
        let sum = sum + record_bytes(key.len(), length);
        self.rows.push(Row {
            at,
            key: key.len(),
            payload: length,
            sum,
        });
        self.loaded += 1;
        while self.surplus() {
            self.make_leaf(journal)?;
            if self.made.len() == self.made_max {
                self.link_made(journal)?;
            }
        }
        Ok(())
    }

    /// True if there are more rows than a leaf takes.
    fn surplus(&self) -> bool {
        let count = self.rows.len();
        if count < 2 {
            return false;
        }
        let prefix = match &self.lower {
            Some(lower) => common_prefix(lower, self.key(count - 1)),
            None => 0,
        };
        let fence = self.lower.as_ref().map_or(0, Vec::len);
        HEADER_BYTES + fence + self.rows[count - 1].sum - prefix * count > self.limit
    }

    /// Links what is left. The rows are in the tree when this returns.
    ///
    /// # Errors
    /// As [`BulkLoader::push`].
    pub fn finish(mut self, journal: Journal<'_>) -> Result<u64> {
        self.link_made(journal)?;
        self.insert_singly(journal)?;
        self.tree.reserve_change(Some(journal))?;
        // The rightmost leaf may be empty or small: join it with the one before if that is worth it.
        let _ = self.tree.try_rebalance(Target::Last, 0, Some(journal))?;
        Ok(self.loaded)
    }

    /// Inserts all pending rows as ordinary rows.
    fn insert_singly(&mut self, journal: Journal<'_>) -> Result<()> {
        for row in 0..self.rows.len() {
            let (key, payload) = (self.key(row), self.payload(row));
            let parts = [payload];
            loop {
                journal.reserve(row_log_bytes(key.len(), payload.len()))?;
                let mut leaf = self.tree.write(key)?;
                assert!(!leaf.found(), "bulk rows are new");
                if leaf.fits(payload.len()) {
                    let logging = Logging::Record {
                        slot: journal.slot,
                        flags: 0,
                        redo: RowRedo::Row(&parts),
                        undo: &[],
                    };
                    leaf.insert(&parts, logging);
                    break;
                }
                drop(leaf);
                let incoming = Incoming {
                    key,
                    payload: payload.len(),
                    spare: 0,
                };
                self.tree
                    .split_until(key, 0, Some(incoming), Some(journal))?;
            }
        }
        self.rows.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Makes a leaf of the first pending rows, in a page of its own.
    fn make_leaf(&mut self, journal: Journal<'_>) -> Result<()> {
        let tree = self.tree.clone();
        let context = &**tree.context();
        let mut image = PageBuf::to_overwrite(context.page_size());
        let (taken, upper) = self.fill(&mut image);
        let (page, floor) = context.space().take_loading(journal.claim())?;
        let made = context
            .pool()
            .create(page, KIND_LEAF, tree.root(), false, floor);
        let mut leaf = match made {
            Ok(leaf) => leaf,
            Err(error) => {
                context.space().give_loading(page);
                return Err(error);
            }
        };
        leaf.copy_from(&image);
        leaf.set_gsn(floor);
        drop(leaf);
        self.forget(taken);
        self.lower = Some(upper.clone());
        self.made.push(Made { page, upper });
        Ok(())
    }

    /// Links all leaves that are made.
    fn link_made(&mut self, journal: Journal<'_>) -> Result<()> {
        let tree = self.tree.clone();
        let context = &**tree.context();
        let many = self.made.len() >= self.made_max.min(IN_FILE_MIN);
        let in_file = many && !context.links().need_images();
        if in_file {
            let pages: Vec<PageId> = self.made.iter().map(|leaf| leaf.page).collect();
            context.pool().write_unnamed(&pages)?;
        }
        let mut backoff = Backoff::new();
        while !self.made.is_empty() {
            match self.try_link(in_file, journal)? {
                0 => backoff.wait(),
                linked => {
                    self.made.drain(..linked);
                    backoff.reset();
                }
            }
        }
        Ok(())
    }

    /// Links the first leaves that are made, one at least; returns how many. Zero if something else had to be done first.
    fn try_link(&mut self, in_file: bool, journal: Journal<'_>) -> Result<usize> {
        let tree = self.tree.clone();
        let context = &**tree.context();
        tree.reserve_change(Some(journal))?;
        // U3.
        let links = context.links();
        let logged = !in_file || links.need_images();
        let first = &self.made[0];
        let mut leaf = match logged {
            true => Some(context.pool().exclusive(first.page)?),
            false => None,
        };
        let Some(path) = tree.try_descend(Target::Last, 0)? else {
            return Ok(0);
        };
        let Some(parent) = path.parent else {
            drop((leaf, links));
            tree.push_down(journal)?;
            return Ok(0);
        };
        let Some(mut parent) = parent.try_exclusive() else {
            return Ok(0);
        };
        let Some(mut edge) = path.page.try_exclusive() else {
            return Ok(0);
        };
        let (above, right) = (copy(&parent), copy(&edge));
        assert_eq!(
            right.shape().count,
            0,
            "U1: a load's tree has no other rows"
        );
        let mut image = PageBuf::to_overwrite(above.size());
        let mut builder = Builder::new(&mut image, &frame_of(&above));
        let mut fits = builder.push_range(&above, 0..above.shape().count);
        let most = if logged { 1 } else { self.of_one_change() };
        let mut linked = 0;
        while linked < most {
            let Made { page, upper } = &self.made[linked];
            fits = fits && builder.push((upper, &[]), &[&page.get().to_le_bytes()]);
            if !fits {
                break;
            }
            linked += 1;
        }
        builder.finish();
        let Some(last) = linked.checked_sub(1) else {
            drop((leaf, parent, edge, links));
            tree.split_until(&self.made[0].upper, 1, None, Some(journal))?;
            return Ok(0);
        };
        let lower = self.made[last].upper.as_slice();
        let mut rest = PageBuf::to_overwrite(right.size());
        let frame = Frame {
            lower: Some(lower),
            ..frame_of(&right)
        };
        Builder::new(&mut rest, &frame).finish();
        let pages: Vec<PageId> = self.made[..linked].iter().map(|leaf| leaf.page).collect();
        let content = leaf.as_ref().map(copy);
        let children = (pages[last], edge.page_id());
        let redo = separator_redo(children, lower);
        let mut change = Change::new(context, tree.root(), Some(journal));
        change.adopt_loaded(&pages);
        change.add_rebuilt(&mut edge, &rest, KEEP_FROM, &[lower]);
        if let (Some(leaf), Some(content)) = (&mut leaf, &content) {
            change.add_image(leaf, content);
            let (index, suffix) = (above.shape().count, above.suffix_of(lower));
            change.add_separator(&mut parent, index, suffix, children, &redo);
        } else {
            change.add_image(&mut parent, &image);
        }
        change.commit()?;
        Ok(linked)
    }

    /// How many of the leaves one change takes: the record of their bits is half a page.
    fn of_one_change(&self) -> usize {
        let space = self.tree.context().space();
        let mut groups = Vec::new();
        let most = self.tree.context().page_size() / 8;
        let fits = self.made.iter().take(most).take_while(|leaf| {
            let group = space.bitmap_of(leaf.page).0;
            if !groups.contains(&group) {
                groups.push(group);
            }
            groups.len() <= GROUPS_MAX
        });
        fits.count()
    }

    /// Fills `image` with as many pending rows as a leaf takes, all but the last at most. Returns how many, and the leaf's upper fence.
    fn fill(&self, image: &mut PageBuf) -> (usize, Vec<u8>) {
        let size = image.size();
        let lower = self.lower.as_deref();
        for taken in (1..self.rows.len()).rev() {
            let fence = separator(self.key(taken - 1), self.key(taken));
            let prefix = lower.map_or(0, |lower| common_prefix(lower, fence));
            let total = HEADER_BYTES
                + lower.map_or(0, <[u8]>::len)
                + fence.len()
                + self.rows[taken - 1].sum
                - prefix * taken;
            // One row goes in whatever the limit: a leaf over the limit is better than none.
            if total > self.limit && taken > 1 {
                continue;
            }
            let frame = Frame {
                tree: self.tree.root(),
                flags: self.tree.kind().flags(),
                level: 0,
                lower,
                upper: Some(fence),
                rightmost: PageId::ZERO,
            };
            let mut builder = Builder::new(image, &frame);
            let fits = self.push_rows(&mut builder, 0..taken);
            builder.finish();
            assert!(fits && total <= size, "a row fits between any two fences");
            return (taken, fence.to_vec());
        }
        unreachable!("a leaf is made where there are two rows");
    }

    fn push_rows(&self, builder: &mut Builder<'_>, mut rows: Range<usize>) -> bool {
        rows.all(|row| builder.push((self.key(row), &[]), &[self.payload(row)]))
    }

    /// Drops the first rows, which are in a leaf.
    fn forget(&mut self, taken: usize) {
        self.rows.drain(..taken);
        let from = self.rows.first().map_or(self.bytes.len(), |row| row.at);
        self.bytes.drain(..from);
        let mut sum = 0;
        for row in &mut self.rows {
            row.at -= from;
            sum += SLOT_BYTES + RECORD_OVERHEAD + row.key + row.payload;
            row.sum = sum;
        }
    }
}

impl Drop for BulkLoader {
    fn drop(&mut self) {
        let context = self.tree.context();
        for Made { page, .. } in self.made.drain(..) {
            mark_free(context, page);
            context.space().give_loading(page);
        }
    }
}

impl Tree {
    /// Gives a root that is a leaf one child with its content, so that it has a parent.
    fn push_down(&self, journal: Journal<'_>) -> Result<()> {
        let context = &**self.context();
        let journal = Some(journal);
        self.reserve_change(journal)?;
        let flags = self.kind().flags();
        let fresh = Fresh::take(context, self.root(), (KIND_LEAF, flags), journal)?;
        let mut root = context.pool().exclusive(self.root())?;
        if root.kind_and_flags().0 == KIND_INNER {
            return Ok(());
        }
        let content = copy(&root);
        let mut above = PageBuf::new(root.size());
        let frame = Frame {
            level: 1,
            rightmost: fresh.id(),
            ..frame_of(&content)
        };
        Builder::new(&mut above, &frame).finish();
        debug_assert_ne!(fresh.id(), PageId::ZERO);
        let mut change = Change::new(context, self.root(), journal);
        change.add_fresh(fresh, &content);
        change.add_image(&mut root, &above);
        change.commit()?;
        Ok(())
    }
}
