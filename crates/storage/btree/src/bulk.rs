//! Loading sorted rows behind the last key, bottom-up.
//!
//! Rows are gathered until they fill a leaf; the leaf is built once, with both fences known (so with
//! its final prefix), and linked *before* the rightmost leaf, whose lower fence moves up. One
//! structure change a leaf: image of the new leaf, new lower fence of the rightmost, separator, bit.
//!
//! Concurrency: nothing is latched between pages. Rows that others put into the rightmost leaf
//! meanwhile move along if they lie below the loaded ones; if they lie above or between, the pending
//! rows are inserted one by one.
//!
//! Crash: every leaf is linked in the change that allocates it: nothing leaks, and what is in the tree is
//! a prefix of the load. Undo of the load is the caller's: its rows are a key range.

use crate::change::{Change, Fresh};
use crate::context::{Journal, max_inline_payload, max_key, row_log_bytes};
use crate::descend::Target;
use crate::merge::copy;
use crate::node::build::{Builder, Frame, Incoming, entry, frame_of, lower_fence};
use crate::node::edit::parts_len;
use crate::node::layout::{
    CHILD_BYTES, HEADER_BYTES, KIND_INNER, KIND_LEAF, NodeRead, RECORD_OVERHEAD, SLOT_BYTES,
    common_prefix, record_bytes, separator,
};
use crate::record::KEEP_FROM;
use crate::split::separator_redo;
use crate::tree::Tree;
use crate::write::{Logging, RowRedo};
use vellum_base::{PageId, Result};
use vellum_buffer::{PageBuf, PageRead};
use vellum_sync::Backoff;

struct Row {
    at: usize,
    key: usize,
    payload: usize,
    /// Bytes of all rows up to this one, in slots and records without a prefix.
    sum: usize,
}

/// Takes sorted rows; see the module. What it logs goes to the journal that each call is given, always on the account of the same
/// transaction.
pub struct BulkLoader {
    tree: Tree,
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// Most bytes of a leaf, header included.
    limit: usize,
    lower: Option<Vec<u8>>,
    loaded: u64,
}

impl std::fmt::Debug for BulkLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BulkLoader({:?}, {} rows)", self.tree, self.loaded)
    }
}

impl Tree {
    /// A loader of sorted rows behind the last key. Leaves are filled to `fill` percent (50..=100).
    pub fn bulk_loader(&self, fill: u8) -> BulkLoader {
        let limit = self.context().page_size() * usize::from(fill.clamp(50, 100)) / 100;
        BulkLoader {
            tree: self.clone(),
            bytes: Vec::with_capacity(2 * limit),
            rows: Vec::new(),
            limit,
            lower: None,
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

    /// Takes one more row, above the one before. Logs and links a leaf when one is full.
    ///
    /// # Errors
    /// Out of space, I/O. Rows of earlier leaves stay in the tree.
    ///
    /// # Panics
    /// If keys do not ascend, key or payload are too long, or a durable tree comes without a journal.
    pub fn push(
        &mut self,
        key: &[u8],
        payload: &[&[u8]],
        journal: Option<Journal<'_>>,
    ) -> Result<()> {
        let journal = self.tree.journal(journal);
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
            self.link_leaf(journal)?;
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
    pub fn finish(mut self, journal: Option<Journal<'_>>) -> Result<u64> {
        let journal = self.tree.journal(journal);
        self.insert_singly(journal)?;
        if journal.is_some() {
            self.tree.reserve_change(journal)?;
        }
        // The rightmost leaf may be empty or small: join it with the one before if that is worth it.
        let _ = self.tree.try_rebalance(Target::Last, 0, journal)?;
        Ok(self.loaded)
    }

    /// Inserts all pending rows as ordinary rows.
    fn insert_singly(&mut self, journal: Option<Journal<'_>>) -> Result<()> {
        for row in 0..self.rows.len() {
            let (key, payload) = (self.key(row), self.payload(row));
            let parts = [payload];
            loop {
                if let Some(journal) = journal {
                    journal.reserve(row_log_bytes(key.len(), payload.len()))?;
                }
                let mut leaf = self.tree.write(key)?;
                assert!(!leaf.found(), "bulk rows are new");
                if leaf.fits(payload.len()) {
                    let logging = journal.map_or(Logging::None, |journal| Logging::Record {
                        slot: journal.slot,
                        flags: 0,
                        redo: RowRedo::Row(&parts),
                        undo: &[],
                    });
                    leaf.insert(&parts, logging);
                    break;
                }
                drop(leaf);
                let incoming = Incoming {
                    key,
                    payload: payload.len(),
                    spare: 0,
                };
                self.tree.split_until(key, 0, Some(incoming), journal)?;
            }
        }
        self.rows.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Builds one leaf from the front of the pending rows and links it before the rightmost one.
    fn link_leaf(&mut self, journal: Option<Journal<'_>>) -> Result<()> {
        let mut backoff = Backoff::new();
        while !self.try_link_leaf(journal)? {
            backoff.wait();
        }
        Ok(())
    }

    fn try_link_leaf(&mut self, journal: Option<Journal<'_>>) -> Result<bool> {
        let tree = self.tree.clone();
        let context = &**tree.context();
        let size = context.page_size();
        tree.reserve_change(journal)?;
        let fresh = Fresh::take(
            context,
            tree.root(),
            (KIND_LEAF, tree.kind().flags()),
            journal,
        )?;
        let Some(path) = tree.try_descend(Target::Last, 0)? else {
            return Ok(false);
        };
        let Some(parent) = path.parent else {
            drop(fresh);
            tree.push_down(journal)?;
            return Ok(false);
        };
        let Some(mut parent) = parent.try_exclusive() else {
            return Ok(false);
        };
        let Some(mut edge) = path.page.try_exclusive() else {
            return Ok(false);
        };
        let old = copy(&edge);
        let count = old.shape().count;
        self.lower = lower_fence(&old).map(<[u8]>::to_vec);
        let foreign = count > 0 && entry(&old, count - 1).key().as_slice() >= self.key(0);
        if foreign
            || self
                .lower
                .as_deref()
                .is_some_and(|lower| self.key(0) < lower)
        {
            drop((fresh, parent, edge));
            self.insert_singly(journal)?;
            return Ok(true);
        }
        let mut image = PageBuf::new(size);
        let Some((taken, separator)) = self.fill(&old, &mut image) else {
            // What others left in the rightmost leaf fills it: split it as usual.
            drop((fresh, parent, edge));
            let incoming = Incoming {
                key: self.key(0),
                payload: self.rows[0].payload,
                spare: 0,
            };
            tree.split_until(self.key(0), 0, Some(incoming), journal)?;
            self.insert_first(journal)?;
            return Ok(true);
        };
        let (index, _) = parent.find(&separator);
        let suffix = parent.suffix_of(&separator);
        if record_bytes(suffix.len(), CHILD_BYTES) > parent.shape().free {
            drop((fresh, parent, edge));
            tree.split_until(&separator, 1, None, journal)?;
            return Ok(false);
        }
        debug_assert_eq!(
            index,
            parent.shape().count,
            "the rightmost leaf is the last child"
        );
        let mut rest = PageBuf::new(size);
        Builder::new(
            &mut rest,
            &Frame {
                lower: Some(&separator),
                ..frame_of(&old)
            },
        )
        .finish();
        let children = (fresh.id(), edge.page_id());
        let redo = separator_redo(children, &separator);
        let mut change = Change::new(context, tree.root(), journal);
        change.add_fresh(fresh, &image);
        change.add_rebuilt(&mut edge, &rest, KEEP_FROM, &[&separator]);
        change.add_separator(&mut parent, index, suffix, children, &redo);
        change.commit()?;
        self.forget(taken);
        self.lower = Some(separator);
        Ok(true)
    }

    fn insert_first(&mut self, journal: Option<Journal<'_>>) -> Result<()> {
        let later = self.rows.split_off(1);
        let bytes = self.bytes.clone();
        self.insert_singly(journal)?;
        self.bytes = bytes;
        self.rows = later;
        self.resum();
        Ok(())
    }

    /// Fills `image` with the old rows and as many pending ones as fit. Returns how many pending ones
    /// and the upper fence; `None` if not even one fits behind the old rows.
    fn fill(&self, old: &PageBuf, image: &mut PageBuf) -> Option<(usize, Vec<u8>)> {
        let frame = frame_of(old);
        let (shape, fences) = (old.shape(), old.fences());
        let records = old.size() - HEADER_BYTES - fences.lower - fences.upper - shape.free;
        debug_assert_eq!(fences.prefix, 0, "the rightmost leaf has no prefix");
        let mut taken = self.rows.len() - 1;
        while taken > 0 {
            let fence = separator(self.key(taken - 1), self.key(taken));
            let prefix = frame.lower.map_or(0, |lower| common_prefix(lower, fence));
            let total =
                HEADER_BYTES + fences.lower + fence.len() + records + self.rows[taken - 1].sum
                    - prefix * (shape.count + taken);
            // One row always goes in if it can: a leaf over the limit is better than none.
            if total <= self.limit || (taken == 1 && total <= old.size()) {
                let mut builder = Builder::new(
                    image,
                    &Frame {
                        upper: Some(fence),
                        ..frame
                    },
                );
                let mut fits = builder.push_range(old, 0..shape.count);
                for row in 0..taken {
                    fits = fits && builder.push((self.key(row), &[]), &[self.payload(row)]);
                }
                builder.finish();
                if fits {
                    return Some((taken, fence.to_vec()));
                }
                debug_assert!(false, "the sum of bytes says that it fits");
            }
            taken -= 1;
        }
        None
    }

    /// Drops the first rows, which are in the tree.
    fn forget(&mut self, taken: usize) {
        self.rows.drain(..taken);
        let from = self.rows.first().map_or(self.bytes.len(), |row| row.at);
        self.bytes.drain(..from);
        for row in &mut self.rows {
            row.at -= from;
        }
        self.resum();
    }

    fn resum(&mut self) {
        let mut sum = 0;
        for row in &mut self.rows {
            sum += SLOT_BYTES + RECORD_OVERHEAD + row.key + row.payload;
            row.sum = sum;
        }
    }
}

impl Tree {
    /// Gives a root that is a leaf one child with its content, so that it has a parent.
    fn push_down(&self, journal: Option<Journal<'_>>) -> Result<()> {
        let context = &**self.context();
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
