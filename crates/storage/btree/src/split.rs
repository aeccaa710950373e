//! Making room: a leaf is cleaned (`clean`), else split.
//!
//! A split touches the page, its parent and one new page; the records are the new page's image, where
//! the old page was cut, the separator in the parent, and the allocation bit. A root split touches the
//! root and two new pages, all logged as images.
//!
//! Concurrency: the new page is taken before any latch (it needs a frame); parent and page are
//! latched by upgrading what the descent read optimistically, which never waits; if that fails,
//! or the parent has no room for the separator (it is split first), everything starts over.
//! Readers that stand on the old page see its version change; those that come from the parent
//! see the parent's.

use crate::change::{Change, Fresh};
use crate::context::Journal;
use crate::descend::Target;
use crate::merge::copy;
use crate::node::build::{
    Builder, Frame, Incoming, SplitPlan, entry, frame_of, plan_inner_split, plan_leaf_split,
    rebuild,
};
use crate::node::layout::{CHILD_BYTES, KIND_INNER, KIND_LEAF, NodeRead, record_bytes, separator};
use crate::record::KEEP_BELOW;
use crate::tree::{Tree, TreeKind};
use std::ops::ControlFlow::{Break, Continue};
use vellum_base::{PageId, Result};
use vellum_buffer::{PageBuf, PageRead};
use vellum_metrics::Counter;
use vellum_sync::Backoff;
use vellum_wal::Purpose;

/// A leaf is split rather than cleaned where that would leave less than one part in so many free.
const SPARE: usize = 16;

/// Why an attempt did not split.
enum Obstacle {
    /// Something changed underneath.
    Changed,
    /// The parent has no room for the separator.
    ParentFull,
    /// The page is the root: it needs two new pages.
    IsRoot,
    /// The page is not the root (any more).
    NotRoot,
    /// There is room already.
    Fits,
}

impl Tree {
    /// Makes room for a payload of `payload_len` bytes under `key`: asks the cleaner,
    /// then splits. Then the caller reserves log space and calls [`Tree::write`] again; others may have
    /// used the room meanwhile.
    ///
    /// Reserves log space and takes pages; the caller holds no latch.
    ///
    /// # Errors
    /// Out of space, I/O. The tree is as it was, or split.
    ///
    /// # Panics
    /// If a durable tree comes without a journal.
    pub fn make_room(
        &self,
        key: &[u8],
        payload_len: usize,
        journal: Option<Journal<'_>>,
    ) -> Result<()> {
        let journal = self.journal(journal);
        let limit = crate::context::max_inline_payload(self.context().page_size(), key.len());
        assert!(
            payload_len <= limit,
            "payload of {payload_len} bytes, at most {limit}"
        );
        // A few bytes are no room: the next rows would have all others judged again. But a rollback takes what it gets:
        // no more log space is set aside for it than it needs.
        let undoes = journal.is_none_or(|journal| journal.purpose == Purpose::Undo);
        let spare = if self.kind() == TreeKind::Rows && !undoes {
            self.context().page_size() / SPARE
        } else {
            0
        };
        let incoming = Incoming {
            key,
            payload: payload_len,
            spare,
        };
        if self.kind() == TreeKind::Rows && self.clean(&incoming, journal)? {
            return Ok(());
        }
        self.split_until(key, 0, Some(incoming), journal)
    }

    /// Splits the page of `key` at `level` until `incoming` fits, or once for inner pages.
    pub(crate) fn split_until(
        &self,
        key: &[u8],
        level: u8,
        incoming: Option<Incoming<'_>>,
        journal: Option<Journal<'_>>,
    ) -> Result<()> {
        let mut backoff = Backoff::new();
        let mut root = false;
        loop {
            let attempt = if root {
                self.try_split_root(key, level, incoming, journal)?
            } else {
                self.try_split(key, level, incoming, journal)?
            };
            match attempt {
                Break(()) | Continue(Obstacle::Fits) => return Ok(()),
                Continue(Obstacle::IsRoot) => root = true,
                Continue(Obstacle::NotRoot) => root = false,
                Continue(Obstacle::ParentFull) => {
                    self.split_until(key, level + 1, None, journal)?
                }
                Continue(Obstacle::Changed) => backoff.wait(),
            }
        }
    }

    fn try_split(
        &self,
        key: &[u8],
        level: u8,
        incoming: Option<Incoming<'_>>,
        journal: Option<Journal<'_>>,
    ) -> Result<std::ops::ControlFlow<(), Obstacle>> {
        self.reserve_change(journal)?;
        let context = &**self.context();
        let kind = if level == 0 { KIND_LEAF } else { KIND_INNER };
        let fresh = Fresh::take(context, self.root(), (kind, self.kind().flags()), journal)?;
        let Some(path) = self.try_descend(Target::Covering(key), level)? else {
            return Ok(Continue(Obstacle::Changed));
        };
        let Some(parent) = path.parent else {
            return Ok(Continue(Obstacle::IsRoot));
        };
        let Some(mut parent) = parent.try_exclusive() else {
            return Ok(Continue(Obstacle::Changed));
        };
        let Some(mut page) = path.page.try_exclusive() else {
            return Ok(Continue(Obstacle::Changed));
        };
        if incoming.is_some_and(|incoming| fits(&page, incoming)) {
            return Ok(Continue(Obstacle::Fits));
        }
        let (above, from) = (copy(&parent), copy(&page));
        let index = Target::Covering(key).child_index(&above, above.shape().count);
        self.check_child(&above, index, (page.page_id(), &from))?;
        let Some(Halves {
            left,
            right,
            separator,
        }) = halves(&from, key, incoming)
        else {
            // Nothing to separate: an inner page that others have split meanwhile.
            return Ok(Continue(Obstacle::Fits));
        };
        let (index, found) = parent.find(&separator);
        if found || parent.child(index, parent.shape().count) != page.page_id() {
            let (expected, id) = (page.page_id().get(), parent.page_id());
            let wrong = parent.child(index, parent.shape().count).get();
            return Err(context.corrupt(id, "child between separators", expected, wrong));
        }
        let suffix = parent.suffix_of(&separator);
        if record_bytes(suffix.len(), CHILD_BYTES) > parent.shape().free {
            return Ok(Continue(Obstacle::ParentFull));
        }
        let children = (page.page_id(), fresh.id());
        let redo = separator_redo(children, &separator);
        let mut change = Change::new(context, self.root(), journal);
        change.add_fresh(fresh, &right);
        change.add_rebuilt(&mut page, &left, KEEP_BELOW, &[&separator]);
        change.add_separator(&mut parent, index, suffix, children, &redo);
        change.commit()?;
        self.count_leaves(level, Counter::LeafSplits);
        Ok(Break(()))
    }

    fn try_split_root(
        &self,
        key: &[u8],
        level: u8,
        incoming: Option<Incoming<'_>>,
        journal: Option<Journal<'_>>,
    ) -> Result<std::ops::ControlFlow<(), Obstacle>> {
        self.reserve_change(journal)?;
        let context = &**self.context();
        let flags = self.kind().flags();
        let kind = if level == 0 { KIND_LEAF } else { KIND_INNER };
        let first = Fresh::take(context, self.root(), (kind, flags), journal)?;
        let second = Fresh::take(context, self.root(), (kind, flags), journal)?;
        let mut root = context.pool().exclusive(self.root())?;
        if root.shape().level != level {
            return Ok(Continue(Obstacle::NotRoot));
        }
        if incoming.is_some_and(|incoming| fits(&root, incoming)) {
            return Ok(Continue(Obstacle::Fits));
        }
        let Some(Halves {
            left,
            right,
            separator,
        }) = halves(&copy(&root), key, incoming)
        else {
            return Ok(Continue(Obstacle::Fits));
        };
        let mut content = PageBuf::to_overwrite(context.page_size());
        let frame = Frame {
            tree: self.root(),
            flags,
            level: level + 1,
            lower: None,
            upper: None,
            rightmost: second.id(),
        };
        let mut builder = Builder::new(&mut content, &frame);
        let fitted = builder.push((&separator, &[]), &[&first.id().get().to_le_bytes()]);
        assert!(fitted, "an empty page takes the longest separator");
        builder.finish();
        let mut change = Change::new(context, self.root(), journal);
        change.add_fresh(first, &left);
        change.add_fresh(second, &right);
        change.add_image(&mut root, &content);
        change.commit()?;
        self.count_leaves(level, Counter::LeafSplits);
        Ok(Break(()))
    }
}

/// The redo bytes of a separator that is inserted.
pub(crate) fn separator_redo((left, right): (PageId, PageId), separator: &[u8]) -> Vec<u8> {
    let mut redo = Vec::with_capacity(16 + separator.len());
    redo.extend_from_slice(&left.get().to_le_bytes());
    redo.extend_from_slice(&right.get().to_le_bytes());
    redo.extend_from_slice(separator);
    redo
}

/// True if the record fits into its leaf as it is, and leaves what shall stay free.
fn fits<P: PageRead + ?Sized>(page: &P, incoming: Incoming<'_>) -> bool {
    let (index, found) = page.find(incoming.key);
    let free = page.shape().free;
    let (need, have) = if found {
        (incoming.payload, free + page.payload_len(page.slot(index)))
    } else {
        (
            record_bytes(page.suffix_of(incoming.key).len(), incoming.payload),
            free,
        )
    };
    need + incoming.spare <= have
}

/// What a page becomes.
struct Halves {
    left: PageBuf,
    right: PageBuf,
    separator: Vec<u8>,
}

/// Splits a page into two private ones. `None` if it has nothing to separate.
fn halves(from: &PageBuf, key: &[u8], incoming: Option<Incoming<'_>>) -> Option<Halves> {
    let size = from.size();
    let mut halves = Halves {
        left: PageBuf::to_overwrite(size),
        right: PageBuf::to_overwrite(size),
        separator: Vec::new(),
    };
    match incoming {
        Some(incoming) => {
            let plan = plan_leaf_split(from, incoming)?;
            halves.cut_leaf(from, plan);
        }
        None => {
            let number = plan_inner_split(from, key)?;
            halves.cut_inner(from, number);
        }
    }
    Some(halves)
}

impl Halves {
    fn try_cut(&mut self, from: &PageBuf, left: usize) -> bool {
        let frame = frame_of(from);
        let low = Frame {
            upper: Some(&self.separator),
            ..frame
        };
        let high = Frame {
            lower: Some(&self.separator),
            ..frame
        };
        rebuild(from, 0..left, &low, &mut self.left)
            && rebuild(from, left..from.shape().count, &high, &mut self.right)
    }

    /// Cuts as planned; if a fence that has become longer does not fit, between two records nearby.
    /// Between two records it always fits: what the fence adds, the record behind it took.
    fn cut_leaf(&mut self, from: &PageBuf, plan: SplitPlan) {
        let count = from.shape().count;
        self.separator = plan.separator;
        if self.try_cut(from, plan.left) {
            return;
        }
        let mut places: Vec<usize> = (1..count).collect();
        places.sort_by_key(|place| place.abs_diff(plan.left));
        for place in places {
            let (below, above) = (entry(from, place - 1).key(), entry(from, place).key());
            self.separator = separator(&below, &above).to_vec();
            if self.try_cut(from, place) {
                return;
            }
        }
        unreachable!("a leaf can be cut between any two records");
    }

    fn cut_inner(&mut self, from: &PageBuf, number: usize) {
        let count = from.shape().count;
        self.separator = entry(from, number).key();
        let frame = frame_of(from);
        let low = Frame {
            upper: Some(&self.separator),
            rightmost: from.child(number, count),
            ..frame
        };
        let high = Frame {
            lower: Some(&self.separator),
            ..frame
        };
        let fitted = rebuild(from, 0..number, &low, &mut self.left)
            && rebuild(from, number + 1..count, &high, &mut self.right);
        assert!(
            fitted,
            "the separator that moves up makes room for the fence"
        );
    }
}
