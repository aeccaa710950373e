//! Accesses near the last one: the leaf is remembered, and tried before the way down from the root.
//!
//! Invariant: what is remembered is a hint. It is believed only if the page is, at one validated instant, a leaf of
//! this tree that covers the key (N5); so a stale one costs a look at a page that is likely cached.

use crate::descend::{OPTIMISTIC_TRIES, Target};
use crate::read::look_up;
use crate::tree::Tree;
use crate::write::LeafWrite;
use vellum_base::{PageId, Result};
use vellum_sync::Backoff;

/// How many trees a [`LeafHints`] remembers a leaf of, at most.
const WAYS: usize = 8;

/// The leaves that were used last, one a tree. Belongs to one user at a time; worth keeping from one transaction
/// to the next.
#[derive(Clone, Debug, Default)]
pub struct LeafHints {
    ways: [(PageId, PageId); WAYS],
}

impl LeafHints {
    #[inline]
    fn of(&self, tree: PageId) -> Option<PageId> {
        let (owner, leaf) = self.ways[tree.get() as usize % WAYS];
        (owner == tree && !leaf.is_zero()).then_some(leaf)
    }

    /// Remembers a leaf of `tree` that somebody else found, if it is not zero.
    #[inline]
    pub fn expect(&mut self, tree: &Tree, leaf: PageId) {
        if !leaf.is_zero() {
            self.remember(tree.root(), leaf);
        }
    }

    #[inline]
    fn remember(&mut self, tree: PageId, leaf: PageId) {
        self.ways[tree.get() as usize % WAYS] = (tree, leaf);
    }
}

impl Tree {
    /// As [`Tree::get`], and remembers the leaf. Tries the remembered leaf first if `near`: for keys that are likely
    /// close to the last one.
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn get_near(
        &self,
        key: &[u8],
        out: &mut Vec<u8>,
        hints: &mut LeafHints,
        near: bool,
    ) -> Result<bool> {
        if near
            && let Some(leaf) = hints.of(self.root())
            && let Some(page) = self.try_remembered(leaf, Target::Covering(key), 0)
            && let Some(found) = look_up(&page, key, out)
        {
            self.context().count_search();
            return Ok(found);
        }
        let mut backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_TRIES {
            if let Some(path) = self.try_descend(Target::Covering(key), 0)?
                && let Some(found) = look_up(&path.page, key, out)
            {
                hints.remember(self.root(), path.page.page_id());
                self.context().count_search();
                return Ok(found);
            }
            backoff.wait();
        }
        self.get(key, out)
    }

    /// As [`Tree::write`], trying the remembered leaf first, and remembers the leaf.
    ///
    /// # Errors
    /// As [`Tree::write`].
    ///
    /// # Panics
    /// As [`Tree::write`].
    #[inline]
    pub fn write_near<'t, 'k>(
        &'t self,
        key: &'k [u8],
        hints: &mut LeafHints,
    ) -> Result<LeafWrite<'t, 'k>> {
        if let Some(leaf) = hints.of(self.root())
            && let Some(page) = self.try_remembered(leaf, Target::Covering(key), 0)
            && let Some(page) = page.try_exclusive()
        {
            self.context().count_search();
            return Ok(LeafWrite::new(self, page, key));
        }
        let write = self.write(key)?;
        hints.remember(self.root(), write.page_id());
        Ok(write)
    }
}
