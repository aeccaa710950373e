//! Accesses near the last one: the leaf is remembered, and tried before the way down from the root.
//!
//! Invariant: what is remembered is a hint. It is believed only if the page is, at one validated instant, a leaf of
//! this tree that covers the key (N5); so a stale one costs a look at a page that is likely cached.

use crate::descend::{OPTIMISTIC_TRIES, Target};
use crate::read::look_up;
use crate::tree::Tree;
use crate::write::LeafWrite;
use vellum_base::{PageId, Result};
use vellum_buffer::{Exclusive, Optimistic, first_eight};
use vellum_sync::Backoff;

/// How many places for trees a [`LeafHints`] has; each tree has one, by its number.
const PLACES: usize = 16;

/// How many trees of a place have their leaf remembered. With one, two tables whose numbers meet push each other out for as long as the
/// database lives: a transaction that inserts into both goes down from the root each time.
const WAYS: usize = 4;

/// How many places there are for leaves of keys that will be asked for.
const PLACES_AHEAD: usize = 512;

/// How many keys a [`LeafHints`] remembers the leaf of before they are asked for, at most: a quarter of the places stays free, so that what is not there is
/// soon found not to be.
const AHEAD_MAX: usize = PLACES_AHEAD / 4 * 3;

const _: () = assert!(
    PLACES_AHEAD.is_power_of_two(),
    "a place is some bits of a mark"
);

/// A place that is free.
const NOT_EXPECTED: (u64, PageId) = (0, PageId::ZERO);

/// The leaves that were used last, one a tree, and those of keys that will be used next ([`Tree::find_leaves`]). Belongs to
/// one user at a time; worth keeping from one transaction to the next.
#[derive(Clone, Debug, Default)]
pub struct LeafHints {
    /// Tree and leaf, by the tree's place; in a place the one that came last stands first.
    ways: [[(PageId, PageId); WAYS]; PLACES],
    /// Leaves of keys, by what [`mark_of`] makes of the key; empty before the first is expected. Page zero is no leaf: the place is free. Each
    /// stands at the place of its mark or behind it, with no free place between (from the last place it goes on with the first).
    ahead: Vec<(u64, PageId)>,
    /// How many places are taken.
    ahead_left: usize,
    /// Where the last [`Tree::get_near`] found its key.
    found: Option<Position>,
}

/// Where a key was found, and the page's version then: while that is the same, the record is there, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    tree: PageId,
    page: PageId,
    version: u64,
    index: usize,
}

impl LeafHints {
    #[inline]
    fn of(&self, tree: PageId) -> Option<PageId> {
        self.ways[place_of_tree(tree)]
            .iter()
            .find(|(owner, _)| *owner == tree)
            .map(|(_, leaf)| *leaf)
    }

    /// Forgets what is expected.
    #[inline]
    pub fn expect_nothing(&mut self) {
        if self.ahead_left > 0 {
            self.ahead.fill(NOT_EXPECTED);
            self.ahead_left = 0;
        }
    }

    /// Remembers the leaf of a key that is going to be looked up, if there is room.
    #[inline]
    pub fn expect(&mut self, tree: &Tree, key: &[u8], leaf: PageId) {
        if leaf.is_zero() {
            return;
        }
        if self.ahead.is_empty() {
            self.ahead.resize(PLACES_AHEAD, NOT_EXPECTED);
        }
        let mark = mark_of(tree.root(), key);
        let place = self.place_ahead(mark);
        if self.ahead[place] == NOT_EXPECTED {
            if self.ahead_left == AHEAD_MAX {
                return;
            }
            self.ahead_left += 1;
        }
        self.ahead[place] = (mark, leaf);
    }

    /// The leaf of a key, if it was expected; it is not any more.
    #[inline]
    pub(crate) fn take_expected(&mut self, tree: PageId, key: &[u8]) -> Option<PageId> {
        if self.ahead_left == 0 {
            return None;
        }
        let place = self.place_ahead(mark_of(tree, key));
        let (_, leaf) = self.ahead[place];
        if leaf.is_zero() {
            return None;
        }
        self.ahead_left -= 1;
        self.close_gap(place);
        Some(leaf)
    }

    /// Where a mark stands, or the free place where it would.
    #[inline]
    fn place_ahead(&self, mark: u64) -> usize {
        let mut place = place_of(mark);
        while self.ahead[place].0 != mark && self.ahead[place] != NOT_EXPECTED {
            place = (place + 1) % PLACES_AHEAD;
        }
        place
    }

    /// Frees a place, and moves those up that would not be found behind a free one.
    #[inline]
    fn close_gap(&mut self, mut gap: usize) {
        let distance = |from: usize, to: usize| to.wrapping_sub(from) % PLACES_AHEAD;
        let mut place = gap;
        loop {
            place = (place + 1) % PLACES_AHEAD;
            let (mark, leaf) = self.ahead[place];
            if leaf.is_zero() {
                break;
            }
            if distance(place_of(mark), place) >= distance(gap, place) {
                self.ahead[gap] = (mark, leaf);
                gap = place;
            }
        }
        self.ahead[gap] = NOT_EXPECTED;
    }

    /// Where the last [`Tree::get_near`] found its key; `None` if it did not, or nobody can tell.
    #[inline]
    pub fn found(&self) -> Option<Position> {
        self.found
    }

    #[inline]
    fn remember(&mut self, tree: PageId, leaf: PageId) {
        let ways = &mut self.ways[place_of_tree(tree)];
        if let Some((_, remembered)) = ways.iter_mut().find(|(owner, _)| *owner == tree) {
            *remembered = leaf;
        } else {
            ways.rotate_right(1);
            ways[0] = (tree, leaf);
        }
    }

    /// Forgets the leaf of a tree. After [`Tree::make_room`], which goes down from the root: where the tree is damaged, two leaves may cover
    /// a key, and who went to the remembered one again would find no room for ever.
    pub fn forget(&mut self, tree: PageId) {
        let ways = &mut self.ways[place_of_tree(tree)];
        if let Some(way) = ways.iter_mut().find(|(owner, _)| *owner == tree) {
            *way = (PageId::ZERO, PageId::ZERO);
        }
    }
}

/// Where the leaf of a tree is remembered. Trees that were made together have numbers that lie regularly: their low bits alone would meet.
#[inline]
pub(crate) fn place_of_tree(tree: PageId) -> usize {
    (tree.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES.ilog2())) as usize
}

/// What a key of a tree is remembered by: others may have the same, which costs a look. Numbers stand in keys with their most significant byte first, so
/// that is how they are read: a product's upper bits, which say the place, know of all lower bits of its factors, but its lower bits nothing of the upper ones.
#[inline]
fn mark_of(tree: PageId, key: &[u8]) -> u64 {
    let (head, last) = match key.split_last_chunk::<8>() {
        Some((head, last)) => (head, u64::from_be_bytes(*last)),
        None => (&[][..], first_eight(key)),
    };
    let head = head
        .iter()
        .rev()
        .take(8)
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    (last ^ head.rotate_left(29) ^ tree.get().rotate_left(47)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Where it is.
#[inline]
fn place_of(mark: u64) -> usize {
    (mark >> (64 - PLACES_AHEAD.ilog2())) as usize
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
        hints.found = None;
        if let Some(leaf) = hints.take_expected(self.root(), key)
            && let Some(page) = self.try_remembered(leaf, Target::Covering(key), 0)
            && let Some(found) = look_up(&page, key, out)
        {
            hints.remember(self.root(), leaf);
            self.context().count_search();
            hints.found = found.map(|index| self.position(&page, index));
            return Ok(found.is_some());
        }
        if near
            && let Some(leaf) = hints.of(self.root())
            && let Some(page) = self.try_remembered(leaf, Target::Covering(key), 0)
            && let Some(found) = look_up(&page, key, out)
        {
            self.context().count_search();
            hints.found = found.map(|index| self.position(&page, index));
            return Ok(found.is_some());
        }
        let mut backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_TRIES {
            if let Some(path) = self.try_descend(Target::Covering(key), 0)?
                && let Some(found) = look_up(&path.page, key, out)
            {
                hints.remember(self.root(), path.page.page_id());
                self.context().count_search();
                hints.found = found.map(|index| self.position(&path.page, index));
                return Ok(found.is_some());
            }
            backoff.wait();
        }
        self.get(key, out)
    }

    #[inline]
    fn position(&self, page: &Optimistic<'_>, index: usize) -> Position {
        Position {
            tree: self.root(),
            page: page.page_id(),
            version: page.version(),
            index,
        }
    }

    /// The record of `key` where it was found, latched for writing, if its leaf has not changed since: no way down, no
    /// search, and what was read is what is there. `None` if it has, or somebody holds the page: then [`Tree::write_near`].
    ///
    /// `key` is the one that was looked up; with debug assertions a panic tells of another.
    #[inline]
    pub fn write_found<'t, 'k>(
        &'t self,
        key: &'k [u8],
        position: Position,
    ) -> Option<LeafWrite<'t, 'k>> {
        debug_assert_eq!(position.tree, self.root(), "found in this tree");
        let page = self.try_unchanged(position.page, position.version)?;
        self.context().count_search();
        Some(LeafWrite::at(self, page, key, (position.index, true)))
    }

    /// A page under its exclusive latch, if it is as it was at that version; neither waits nor reads from the file.
    #[inline]
    pub(crate) fn try_unchanged(&self, page: PageId, version: u64) -> Option<Exclusive<'_>> {
        let page = self.context().pool().try_optimistic(page)?;
        (page.version() == version).then_some(page)?.try_exclusive()
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
