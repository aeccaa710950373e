//! From the root to a page: optimistic lock coupling.
//!
//! Paper: Leis et al., "Optimistic Lock Coupling". Differences: pages are reached by page id, so
//! a child may be evicted or its page id used again between reading the pointer and reading the
//! child; both change the parent's or the child's version.
//!
//! Concurrency: the interleaving that coupling closes: a reader takes child C from parent P, C is
//! merged away (P changes, then C), the reader opens C. It opened C's version *before* it
//! validates P again, so if P is still valid, C was its child at that instant, and any later
//! change of C changes the version that the reader holds.
//!
//! A child that is latched or evicted is waited for only while its parent is unchanged ([`Optimistic::follow`]). Once
//! it is given back its id may name a fresh page, and the maker of that one holds it while it waits for leaves: for one,
//! perhaps, that the reader has latched, for a descent in a system tree happens under a leaf of a table.
//!
//! Whoever loses [`OPTIMISTIC_TRIES`] times (a pool of a few pages under load evicts a parent
//! while its child is read) goes down once with shared latches, parent held while the child is
//! fetched: at most two latches a thread, so a pool of `PoolConfig::FRAMES_MIN` frames serves.

use crate::node::layout::{KIND_INNER, KIND_LEAF, NodeRead};
use crate::tree::Tree;
use vellum_base::{PageId, Result};
use vellum_buffer::{Exclusive, Optimistic, PageRead, Shared};

/// Restarts before a descent takes shared latches.
pub(crate) const OPTIMISTIC_TRIES: u32 = 12;

/// Which page of a level is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'k> {
    /// The page with lower fence <= key < upper fence.
    Covering(&'k [u8]),
    /// The page with lower fence < key <= upper fence.
    Below(&'k [u8]),
    /// The leftmost page.
    First,
    /// The rightmost page.
    Last,
}

impl Target<'_> {
    /// Which child of an inner page leads there.
    #[inline]
    pub(crate) fn child_index<P: PageRead + ?Sized>(self, page: &P, count: usize) -> usize {
        match self {
            // A child holds keys below its slot's key, so an equal key lies one further.
            Self::Covering(key) => {
                let (index, found) = page.lower_bound(count, page.suffix_of(key));
                index + usize::from(found)
            }
            Self::Below(key) => page.lower_bound(count, page.suffix_of(key)).0,
            Self::First => 0,
            Self::Last => count,
        }
    }

    /// True if the page is the wanted one of its level.
    #[inline]
    pub(crate) fn is_in<P: PageRead + ?Sized>(self, page: &P) -> bool {
        use crate::node::layout::{OPEN_LOWER, OPEN_UPPER};
        match self {
            Self::Covering(key) => page.covers(key),
            Self::Below(key) => page.covers_below(key),
            Self::First => page.shape().open & OPEN_LOWER != 0,
            Self::Last => page.shape().open & OPEN_UPPER != 0,
        }
    }
}

/// A page and the one above it.
pub(crate) struct Path<'p> {
    /// `None` if the page is the root.
    pub parent: Option<Optimistic<'p>>,
    pub page: Optimistic<'p>,
}

impl Tree {
    /// Checks that a page can be what a descent expects.
    #[inline]
    pub(crate) fn is_node<P: PageRead + ?Sized>(&self, page: &P, level: Option<u8>) -> bool {
        let kind = page.kind_and_flags().0;
        let found = page.shape().level;
        kind == (if found == 0 { KIND_LEAF } else { KIND_INNER })
            && page.tree_id() == self.root()
            && level.is_none_or(|level| level == found)
    }

    /// The page at rest is not a page of this tree.
    #[cold]
    fn damaged<P: PageRead + ?Sized>(&self, page: &P, id: PageId) -> vellum_base::StorageError {
        let (kind, _) = page.kind_and_flags();
        if page.tree_id() == self.root() {
            self.context().corrupt(
                id,
                "kind or level of a tree page",
                u64::from(KIND_LEAF),
                kind.into(),
            )
        } else {
            let (expected, found) = (self.root().get(), page.tree_id().get());
            self.context()
                .corrupt(id, "tree of a page", expected, found)
        }
    }

    /// One optimistic attempt to reach `target` at `level`. `None`: something changed underneath,
    /// or the tree is not that high.
    ///
    /// # Errors
    /// I/O, or a page at rest that cannot be part of the tree.
    #[inline]
    pub(crate) fn try_descend(&self, target: Target<'_>, level: u8) -> Result<Option<Path<'_>>> {
        let pool = self.context().pool();
        let mut path = Path {
            parent: None,
            page: pool.optimistic(self.root())?,
        };
        if !self.is_node(&path.page, None) {
            let error = self.damaged(&path.page, self.root());
            return if path.page.validate() {
                Err(error)
            } else {
                Ok(None)
            };
        }
        loop {
            let shape = path.page.shape();
            if shape.level <= level {
                return Ok((shape.level == level).then_some(path));
            }
            let child = path
                .page
                .child(target.child_index(&path.page, shape.count), shape.count);
            // Before the id is used: garbage is no page id.
            if !path.page.validate() {
                return Ok(None);
            }
            let page = path.page.follow(child)?;
            if shape.level == 1 {
                page.touch_slots();
            }
            if !path.page.validate() {
                return Ok(None);
            }
            if !self.is_node(&page, Some(shape.level - 1)) {
                let error = self.damaged(&page, child);
                return if page.validate() {
                    Err(error)
                } else {
                    Ok(None)
                };
            }
            path = Path {
                parent: Some(path.page),
                page,
            };
        }
    }

    /// Goes down to the parent of the wanted leaf (or the root leaf) with shared latches.
    fn latch_above(&self, target: Target<'_>) -> Result<(Shared<'_>, PageId)> {
        let pool = self.context().pool();
        let mut page = pool.shared(self.root())?;
        let mut id = self.root();
        loop {
            if !self.is_node(&page, None) {
                return Err(self.damaged(&page, id));
            }
            let shape = page.shape();
            if shape.level == 0 {
                return Ok((page, PageId::ZERO));
            }
            let child = page.child(target.child_index(&page, shape.count), shape.count);
            if shape.level == 1 {
                return Ok((page, child));
            }
            page = pool.shared(child)?;
            id = child;
        }
    }

    /// The wanted leaf under a shared latch, by latch coupling: waits, but always arrives. The second
    /// is its parent, or zero.
    #[cold]
    pub(crate) fn latch_leaf(&self, target: Target<'_>) -> Result<(Shared<'_>, PageId)> {
        let (above, child) = self.latch_above(target)?;
        if child.is_zero() {
            return Ok((above, PageId::ZERO));
        }
        let leaf = self.context().pool().shared(child)?;
        if !self.is_node(&leaf, Some(0)) {
            return Err(self.damaged(&leaf, child));
        }
        Ok((leaf, above.page_id()))
    }

    /// As [`Tree::latch_leaf`], exclusively. `None` if the tree grew a level meanwhile.
    #[cold]
    pub(crate) fn latch_leaf_exclusive(&self, target: Target<'_>) -> Result<Option<Exclusive<'_>>> {
        let pool = self.context().pool();
        let (above, child) = self.latch_above(target)?;
        let (leaf, id) = if child.is_zero() {
            drop(above);
            (pool.exclusive(self.root())?, self.root())
        } else {
            (pool.exclusive(child)?, child)
        };
        if child.is_zero() && leaf.shape().level > 0 {
            return Ok(None);
        }
        if !self.is_node(&leaf, Some(0)) {
            return Err(self.damaged(&leaf, id));
        }
        Ok(Some(leaf))
    }

    /// Opens a page that was remembered, if it is in memory. `None` if it no longer is a page of this
    /// tree and level that holds `target` (N5). Nothing is read from disk: the page may have been
    /// given back, and the file cut.
    pub(crate) fn try_remembered(
        &self,
        id: PageId,
        target: Target<'_>,
        level: u8,
    ) -> Option<Optimistic<'_>> {
        let page = self.context().pool().try_optimistic(id)?;
        (self.is_node(&page, Some(level)) && target.is_in(&page) && page.validate()).then_some(page)
    }

    /// True if an exclusively latched page is a leaf of this tree.
    #[inline]
    pub(crate) fn is_leaf<P: PageRead + ?Sized>(&self, page: &P) -> bool {
        self.is_node(page, Some(0))
    }
}
