//! Which leaves several keys belong to: those that are not in memory are read at once, and the ways down to the others are
//! gone together, so that one key's cache misses are waited for while those of the next are under way.
//!
//! Hints: they change no result, and what they say about pages is not believed by anybody. So the inner pages are asked
//! once, without a second attempt.

use crate::descend::Target;
use crate::node::layout::{NodeRead, head_of};
use crate::tree::Tree;
use vellum_base::{PageId, Result};
use vellum_buffer::PageRead;

/// Which part of a page header and slots take, usually.
const SLOTS_PART: usize = 14;
/// Most bytes of a record that are asked for.
const RECORD_MAX: usize = 512;

impl Tree {
    /// The leaf that `key` belongs to, if it is not in memory: for who reads several of them together
    /// ([`vellum_buffer::Pool::prefetch`]).
    ///
    /// # Errors
    /// I/O, corruption of an inner page on the way. What is wrong with a leaf its next reader finds out.
    pub fn missing_leaf(&self, key: &[u8]) -> Result<Option<PageId>> {
        let target = Target::Covering(key);
        let Some(path) = self.try_descend(target, 1)? else {
            return Ok(None);
        };
        let count = path.page.shape().count;
        let leaf = path
            .page
            .child(target.child_index(&path.page, count), count);
        let missing = path.page.validate() && !self.context().pool().is_resident(leaf);
        Ok(missing.then_some(leaf))
    }

    /// The leaves of `keys`, or zero where that takes an inner page from disk or a second attempt. What a lookup reads of
    /// those that are in memory is on its way into the processor's caches. For [`LeafHints::expect`](crate::LeafHints::expect).
    ///
    /// # Panics
    /// If there are not as many places as keys.
    pub fn find_leaves(&self, keys: &[&[u8]], leaves: &mut [PageId]) {
        assert_eq!(keys.len(), leaves.len(), "a place a key");
        leaves.fill(PageId::ZERO);
        let root = self.context().pool().try_optimistic(self.root());
        let Some(level) = root.map(|root| root.shape().level) else {
            return;
        };
        leaves.fill(self.root());
        for level in (1..=level).rev() {
            for (key, page) in keys.iter().zip(&mut *leaves) {
                let child = (!page.is_zero()).then(|| self.child_towards(*page, key, level));
                *page = child.flatten().unwrap_or(PageId::ZERO);
            }
        }
        for (key, leaf) in keys.iter().zip(&*leaves) {
            self.warm_record(*leaf, key);
        }
    }

    /// The child of an inner page of this level that leads to a key; what a search in it reads first is asked for.
    #[inline]
    fn child_towards(&self, page: PageId, key: &[u8], level: u8) -> Option<PageId> {
        let pool = self.context().pool();
        let page = pool.try_optimistic(page)?;
        let shape = page.shape();
        if !self.is_node(&page, Some(level)) {
            return None;
        }
        let target = Target::Covering(key);
        let child = page.child(target.child_index(&page, shape.count), shape.count);
        // Before the id is used: garbage is no page id.
        if !page.validate() {
            return None;
        }
        let size = page.size();
        pool.warm(child, 0..size / SLOTS_PART);
        if level == 1 {
            // The fences, by which a remembered leaf is judged.
            pool.warm(child, size - 8..size);
        }
        Some(child)
    }

    /// Asks for the record that a key has in a leaf, if it has one. Nothing but slots is read: that would be waiting.
    #[inline]
    fn warm_record(&self, leaf: PageId, key: &[u8]) {
        let pool = self.context().pool();
        let Some(page) = (!leaf.is_zero())
            .then(|| pool.try_optimistic(leaf))
            .flatten()
        else {
            return;
        };
        let shape = page.shape();
        let head = head_of(page.suffix_of(key));
        let index = page.heads_below(0, shape.count, head.into());
        if index < shape.count {
            let usual = (page.size().saturating_sub(shape.heap) / shape.count).min(RECORD_MAX);
            let start = page.slot(index).offset;
            page.warm(start..start + usual);
        }
    }
}
