//! How many pages a tree has, for who wants to know it of a few trees.
//!
//! No tree keeps that number. Who asks has the tree watched and walks through its inner pages, some at a time ([`Tree::count_pages`]): the lowest
//! ones name their leaves, which are not read. From then on each structure change of the tree says what it adds and frees.
//!
//! Invariants:
//! - W1 A walk counts what was there at one moment: if the tree's structure changes meanwhile, it begins again.
//!
//! Concurrency: structure changes read one word, which says that nothing is watched. It is relaxed: a change that was under way when its tree began to be
//! watched may be missed, which costs a page in an account. The map's mutex is innermost, and held for a look.

use crate::descend::Target;
use crate::merge::copy;
use crate::node::build::upper_fence;
use crate::node::layout::NodeRead;
use crate::tree::Tree;
use std::collections::BTreeMap;
use vellum_base::{PageId, Result};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicBool, Ordering};

/// The trees of a database that are watched, by root page.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    any: AtomicBool,
    trees: Mutex<BTreeMap<PageId, Watch>>,
}

/// What is known of one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    /// Its pages, once they were counted.
    pages: Option<u64>,
    /// Structure changes since it was watched.
    changes: u64,
}

impl Watched {
    /// Notes a structure change of a tree.
    #[inline]
    pub fn note(&self, tree: PageId, added: usize, freed: usize) {
        if self.any.load(Ordering::Relaxed) {
            self.note_watched(tree, added as u64, freed as u64);
        }
    }

    #[cold]
    fn note_watched(&self, tree: PageId, added: u64, freed: u64) {
        if let Some(watch) = self.trees.lock().get_mut(&tree) {
            watch.changes += 1;
            let pages = watch.pages.map(|pages| pages + added);
            watch.pages = pages.map(|pages| pages.saturating_sub(freed));
        }
    }

    fn get(&self, tree: PageId) -> Option<Watch> {
        self.trees.lock().get(&tree).copied()
    }

    /// W1: false if the structure has changed since there were so many changes, or nobody watches any more.
    fn set(&self, tree: PageId, changes: u64, pages: u64) -> bool {
        match self.trees.lock().get_mut(&tree) {
            Some(watch) if watch.changes == changes => {
                watch.pages = Some(pages);
                true
            }
            _ => false,
        }
    }
}

/// How far a walk has come ([`Tree::count_pages`]).
#[derive(Debug, Default)]
pub struct PageCount {
    /// Structure changes of the tree when it began; `None` before.
    changes: Option<u64>,
    /// The level that is gone through, the lowest inner one first.
    level: u8,
    /// Where the next page of it begins.
    from: Vec<u8>,
    pages: u64,
}

impl PageCount {
    fn begun(changes: u64) -> Self {
        Self {
            changes: Some(changes),
            level: 1,
            ..Self::default()
        }
    }
}

impl Tree {
    /// Has its pages counted by [`Tree::count_pages`]. To be ended by [`Tree::unwatch`], before its root is used again.
    pub fn watch(&self) {
        let watched = self.context().watched();
        let mut trees = watched.trees.lock();
        trees.entry(self.root()).or_default();
        watched.any.store(true, Ordering::Relaxed);
    }

    /// Ends [`Tree::watch`].
    pub fn unwatch(&self) {
        let watched = self.context().watched();
        let mut trees = watched.trees.lock();
        trees.remove(&self.root());
        watched.any.store(!trees.is_empty(), Ordering::Relaxed);
    }

    /// The pages of a tree that is watched, once they were counted: those of all levels, not of overflow chains.
    pub fn watched_pages(&self) -> Option<u64> {
        self.context().watched().get(self.root())?.pages
    }

    /// Goes on with the count of the pages of a tree that is watched: through `pages_max` inner pages at most. True once they are
    /// counted; also if nobody watches it (any more).
    ///
    /// # Errors
    /// I/O, corruption of an inner page.
    pub fn count_pages(&self, count: &mut PageCount, pages_max: usize) -> Result<bool> {
        let watched = self.context().watched();
        for _ in 0..pages_max {
            let Some(watch) = watched.get(self.root()) else {
                return Ok(true);
            };
            // W1.
            if count.changes != Some(watch.changes) {
                *count = PageCount::begun(watch.changes);
            }
            if self.count_next(count)? && watched.set(self.root(), watch.changes, count.pages) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts one inner page, and leaves that it names. True if there is none left. Where somebody else changes what it reads it gets no further.
    fn count_next(&self, count: &mut PageCount) -> Result<bool> {
        let root = self.context().pool().optimistic(self.root())?;
        let highest = root.shape().level;
        if !root.validate() {
            return Ok(false);
        }
        if highest < count.level {
            // A root that is a leaf is named by no inner page.
            count.pages = count.pages.max(1);
            return Ok(true);
        }
        let target = Target::Covering(&count.from);
        let Some(path) = self.try_descend(target, count.level)? else {
            return Ok(false);
        };
        let page = copy(&path.page);
        if !path.page.validate() {
            return Ok(false);
        }
        let leaves = match count.level {
            1 => page.shape().count as u64 + 1,
            _ => 0,
        };
        count.pages += 1 + leaves;
        count.from.clear();
        match upper_fence(&page) {
            Some(fence) => count.from.extend_from_slice(fence),
            None => count.level += 1,
        }
        Ok(false)
    }
}
