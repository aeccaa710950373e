//! Which leaves several keys belong to: those that are not in memory are read at once, and the ways down to the others are
//! gone together, so that one key's cache misses are waited for while those of the next are under way.
//!
//! Hints: they change no result, and what they say about pages is not believed by anybody. So the inner pages are asked
//! once, without a second attempt.

use crate::descend::Target;
use crate::node::layout::NodeRead;
use crate::tree::Tree;
use vellum_base::{PageId, Result};

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
    /// The leaves of `keys`, or zero where that takes a page from disk or a second attempt; each has been touched if it is
    /// in memory. For [`LeafHints::expect`](crate::LeafHints::expect).
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
    }

    /// The child of an inner page of this level that leads to a key, touched: the next look at it finds it in the caches.
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
        if let Some(child) = pool.try_optimistic(child) {
            child.touch_slots();
        }
        Some(child)
    }
}
