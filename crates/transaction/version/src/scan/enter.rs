//! Coming into a leaf: where a scan starts, goes on, or has to look again.
//!
//! Where a scan starts it takes a glimpse: who asks for the first row of a range (a queue's head, `min`, `LIMIT 1`) asks mostly for no other,
//! and a whole leaf is a hundred lines of the cache. Once it goes on, the rest of the copy is added if the leaf is what it was;
//! else it is entered anew behind the row that was returned.

use super::bounds::{
    KeyRange, above_end, below_start, beyond_end, beyond_start, inside, key_of, seek_backward,
    seek_forward,
};
use super::buried::{Buried, Way};
use super::{Place, Scan};
use crate::error::Result;
use crate::read::View;
use crate::store::VersionStore;
use std::ops::Bound;
use vellum_base::planted::{self, Bug};
use vellum_btree::{LeafCopy, Tree};

impl Scan {
    /// Reads the leaf where a scan starts or goes on that way; the index of its first record there, or (backward) one more.
    /// Where it starts it takes a glimpse: who wants the first row wants mostly no other.
    pub(super) fn enter(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        way: Way,
    ) -> Result<usize> {
        // What is buried beside a copy is looked for beside all of it.
        let starts = matches!(self.place, Place::Fresh | Place::Start | Place::End);
        self.enter_by(store, view, tree, way, starts && !self.many && !view.olap)
    }

    /// As [`Scan::enter`], once a glimpse could not go on.
    #[cold]
    pub(super) fn enter_whole(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        way: Way,
    ) -> Result<usize> {
        self.enter_by(store, view, tree, way, false)
    }

    pub(super) fn enter_by(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        way: Way,
        glimpse: bool,
    ) -> Result<usize> {
        let key = self.key.as_slice();
        let (end, is_outside, before_key) = match way {
            Way::Forward => {
                let start = &self.range.0;
                (start, below_start(start, key), Place::BeforeKey)
            }
            Way::Backward => {
                let end = &self.range.1;
                (end, above_end(end, key), Place::BehindKey)
            }
        };
        let from = match self.place {
            Place::OnKey | Place::BeforeKey | Place::BehindKey if !is_outside => {
                if self.place == before_key {
                    Bound::Included(key)
                } else {
                    Bound::Excluded(key)
                }
            }
            _ => end.as_ref().map(Vec::as_slice),
        };
        let copy = (&mut self.leaf, &mut self.buried);
        let how = (way, glimpse);
        let (inside, at) = read_copy(copy, &self.range, from, how, (store, view, tree))?;
        self.inside = inside;
        Ok(at)
    }

    /// As [`Scan::enter`], for the leaf behind the fence at which the copy at hand ends.
    ///
    /// # Errors
    /// As [`Scan::next`].
    pub(super) fn enter_next(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        way: Way,
    ) -> Result<usize> {
        self.invalidate();
        let from = match way {
            Way::Forward => Bound::Included(self.fence.as_slice()),
            Way::Backward => Bound::Excluded(self.fence.as_slice()),
        };
        let copy = (&mut self.leaf, &mut self.buried);
        let how = (way, false);
        let (inside, at) = read_copy(copy, &self.range, from, how, (store, view, tree))?;
        self.inside = inside;
        Ok(at)
    }
}

/// Reads the leaf where a scan goes on that way from `from`, and after it what is buried beside it; a glimpse only at the edge of
/// the range, and if nothing is buried. Which of its records lie in the range, and where the scan begins among them.
fn read_copy(
    (leaf, buried): (&mut LeafCopy, &mut Buried),
    range: &KeyRange,
    from: Bound<&[u8]>,
    (way, glimpse): (Way, bool),
    (store, view, tree): (&VersionStore, &View<'_>, &Tree),
) -> Result<(std::ops::Range<usize>, usize)> {
    buried.stop();
    let seek = match way {
        Way::Forward => seek_forward(from),
        Way::Backward => seek_backward(from),
    };
    view.transaction.touch(1, 0);
    let reversed = planted::has(Bug::GraveyardFirst).then(|| buried_in(store, tree));
    vellum_sync::test_point!("scan: before the leaf");
    if glimpse {
        let end = match way {
            Way::Forward => &range.1,
            Way::Backward => &range.0,
        };
        tree.glimpse_leaf(seek, key_of(end), leaf)?;
    } else {
        tree.read_leaf(seek, leaf)?;
    }
    let inside = match way {
        _ if leaf.is_whole() => inside(range, leaf),
        // It begins at one edge of the range, and the other lies beyond it.
        Way::Forward => leaf.position()..leaf.len(),
        Way::Backward => 0..leaf.position(),
    };
    if view.olap
        && let Some(entries) = reversed.unwrap_or_else(|| buried_in(store, tree))
    {
        buried.start(entries, way, from, limit(way, range, leaf));
    }
    let at = match way {
        Way::Forward => leaf.position().max(inside.start),
        Way::Backward => leaf.position().min(inside.end),
    };
    Ok((inside, at))
}

/// Adds a record to a glimpse; false if the leaf has changed since.
#[inline]
pub(super) fn more(tree: &Tree, leaf: &mut LeafCopy, index: usize) -> bool {
    vellum_sync::test_point!("scan: between two records of a glimpse");
    tree.add_record(leaf, index)
}

/// The graveyard of a tree, if there is anything in it. Asked after the copy of the main leaf was made (V32).
#[inline]
fn buried_in(store: &VersionStore, tree: &Tree) -> Option<Tree> {
    if store.has(Bug::GraveyardSkipped) {
        return None;
    }
    let graveyard = store.graveyards().find(tree.root())?;
    graveyard.occupied().cloned()
}

/// How far buried rows belong beside a copy: to its fence that way, or to the end of the range.
pub(super) fn limit<'s>(way: Way, range: &'s KeyRange, leaf: &'s LeafCopy) -> Bound<&'s [u8]> {
    match way {
        Way::Forward => match leaf.upper_fence() {
            Some(fence) if !beyond_end(&range.1, fence) => Bound::Excluded(fence),
            _ => range.1.as_ref().map(Vec::as_slice),
        },
        Way::Backward => match leaf.lower_fence() {
            Some(fence) if !beyond_start(&range.0, fence) => Bound::Included(fence),
            _ => range.0.as_ref().map(Vec::as_slice),
        },
    }
}
