//! Cursors over versioned rows: a leaf at a time, both ways. An OLAP view's cursor merges what is buried (`buried`).
//!
//! Invariants:
//! - V13 A cursor returns each key of its range that its view sees exactly once in a pass, whatever splits, merges,
//!   inserts and deletes happen meanwhile: it goes on at the fence of the validated copy it read.
//! - V14 A copy is not used after its transaction rolled back to a savepoint: it may hold rows of commands that
//!   no longer exist.
//!
//! A cursor stands on the row that it returned last. `next` goes to the first visible row above, `prev` to
//! the first below; a new cursor stands before its range for `next` and behind it for `prev`; at an
//! end it stays until it is asked the other way.

mod at_hand;
mod bounds;
mod buried;
mod enter;

use crate::error::Result;
use crate::fat;
use crate::read::{Resolved, View, Visible, visible_as_is};
use crate::store::VersionStore;
use bounds::{beyond_end, beyond_start};
use buried::{Buried, Peek, Slot, Way};
use enter::{limit, more};
use std::ops::Bound;
use vellum_btree::{LeafCopy, LeafHints, Tree};

pub use bounds::KeyRange;

/// Leaves without a visible row that a step goes through before it lets others in (R10), of the index and of the graveyard beside a leaf of it. Few where tests are run: they meet that often.
const LEAVES_AT_ONCE: u32 = if cfg!(debug_assertions) { 1 } else { 16 };

/// What a step came to.
enum Found {
    /// A row, there.
    Row(Place),
    /// The end of the range.
    Nothing,
    /// Neither yet: [`Scan::is_under_way`].
    Further,
}

/// Where a scan stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Not asked yet.
    Fresh,
    /// Below everything in the range.
    Start,
    /// Above everything in the range.
    End,
    /// On the record with this index of the leaf copy.
    On(usize),
    /// On a buried row, whose key is in `Scan::key`.
    Buried(Slot),
    /// In the middle of a step, in the copy at hand: of its records the way goes on from this index (backward: below it), and
    /// of what is buried beside them the rest is to be looked at. Where the step began is in `Scan::stood`.
    Within(usize),
    /// On the key in `Scan::key`; the copy is to be read again.
    OnKey,
    /// Right below the key in `Scan::key`; the copy is to be read again.
    BeforeKey,
    /// Right above the key in `Scan::key`; the copy is to be read again.
    BehindKey,
}

/// A scan of one tree's rows.
#[derive(Debug)]
pub struct Scan {
    leaf: LeafCopy,
    range: KeyRange,
    place: Place,
    /// The records of the copy that lie in the range.
    inside: std::ops::Range<usize>,
    key: Vec<u8>,
    /// Where the next leaf begins or ends.
    fence: Vec<u8>,
    /// Where the scan stood before a step that is under way.
    stood: Option<(Place, Vec<u8>)>,
    row: Vec<u8>,
    entry: Vec<u8>,
    /// Where the deltas were that were looked up last.
    /// Made when a row has to be looked for behind its head: most scans meet none.
    hints: Option<Box<LeafHints>>,
    /// Where the body of the row that the last step returned stands.
    body: Body,
    overflow: bool,
    /// More than the first row is wanted.
    many: bool,
    /// The buried rows beside the copy at hand.
    buried: Buried,
}

/// A row that a scan returned: where its body stands.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// In the leaf copy: record, where in its payload.
    Leaf(usize, usize, usize),
    /// In the row buffer, from an offset.
    Buffer(usize),
    /// With the buried row.
    Buried,
}

/// A visible row.
#[derive(Clone, Copy, Debug)]
pub struct ScannedRow<'s> {
    /// Its key.
    pub key: &'s [u8],
    /// Its body.
    pub body: &'s [u8],
    /// The body is a chain reference.
    pub overflow: bool,
}

impl Scan {
    /// A scan of the rows in `range`.
    pub fn new(page_size: usize, range: KeyRange) -> Self {
        Self {
            leaf: LeafCopy::new(page_size),
            range,
            place: Place::Fresh,
            inside: 0..0,
            key: Vec::new(),
            fence: Vec::new(),
            stood: None,
            row: Vec::new(),
            entry: Vec::new(),
            hints: None,
            body: Body::Buffer(0),
            overflow: false,
            many: false,
            buried: Buried::new(),
        }
    }

    /// Has the first leaf copied at once: for who goes through many rows.
    pub fn want_many(&mut self) {
        self.many = true;
    }

    /// Stands right below `key` from now on: `next` goes to the first visible row at or above it.
    pub fn seek(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.place = Place::BeforeKey;
        self.stood = None;
    }

    /// Forgets the copy, keeps the place (V14).
    pub fn invalidate(&mut self) {
        match self.place {
            // The key is that of the row.
            Place::On(_) | Place::Buried(_) => self.place = Place::OnKey,
            Place::Within(_) => self.stand_back(),
            _ => {}
        }
    }

    /// Adds what a glimpse lacks to the copy at hand. Where its leaf has changed since, the copy is void: false, and
    /// the scan stands on the key of its row.
    #[inline]
    fn is_whole(&mut self, tree: &Tree) -> bool {
        let is_whole = tree.complete(&mut self.leaf);
        if !is_whole {
            self.invalidate();
        }
        is_whole
    }

    /// Stands right before the row that the last step returned, in the step's direction: the next step that way returns
    /// it again.
    pub fn unread(&mut self, forward: bool) {
        if let Place::On(_) | Place::Buried(_) = self.place {
            // The key is that of the row.
            self.place = if forward {
                Place::BeforeKey
            } else {
                Place::BehindKey
            };
        }
    }

    /// The row that the last step returned.
    ///
    /// # Panics
    /// In a build with debug assertions, if the last call was not a step that returned one.
    #[inline]
    pub fn current(&self) -> ScannedRow<'_> {
        debug_assert!(
            matches!(self.place, Place::On(_) | Place::Buried(_)),
            "a row was returned"
        );
        let body = match self.body {
            Body::Buried => self.buried.body(),
            Body::Leaf(index, start, end) => &self.leaf.payload(index)[start..end],
            Body::Buffer(start) => &self.row[start..],
        };
        ScannedRow {
            key: &self.key,
            body,
            overflow: self.overflow,
        }
    }

    /// The next visible row of the copy at hand. `None`, and the scan stands where it stood, if that holds no
    /// more: a batch ends on the row that it returned last, whatever follows it in the leaf.
    ///
    /// # Errors
    /// As [`Scan::next`].
    #[inline]
    pub fn next_at_hand(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<ScannedRow<'_>>> {
        let place = self.place;
        let mut index = match place {
            Place::On(index) if self.is_whole(tree) => index + 1,
            Place::Buried(slot) => slot.above,
            _ => return Ok(None),
        };
        self.turn(Way::Forward);
        match self.next_of_copy(&mut index, store, view, tree, 0)? {
            Found::Row(place) => Ok(Some(self.stand(place))),
            Found::Nothing | Found::Further => Ok(None),
        }
    }

    /// As [`Scan::prev_within`], but stays in the copy at hand: `None` also where that begins, or where more must be read than it.
    ///
    /// # Errors
    /// As [`Scan::next`].
    pub fn prev_at_hand(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<ScannedRow<'_>>> {
        let place = self.place;
        let mut above = match place {
            Place::On(index) if self.is_whole(tree) => index,
            Place::Buried(slot) => slot.below,
            _ => return Ok(None),
        };
        self.turn(Way::Backward);
        match self.previous_of_copy(&mut above, store, view, tree, 0)? {
            Found::Row(place) => Ok(Some(self.stand(place))),
            Found::Nothing | Found::Further => Ok(None),
        }
    }

    /// The next visible row. `None` at the end of the range, whatever lies in between: for who may hold an operation for that long.
    ///
    /// # Errors
    /// Storage errors; the scan stands where it stood.
    pub fn next(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<ScannedRow<'_>>> {
        loop {
            if self.next_within(store, view, tree)?.is_some() {
                return Ok(Some(self.current()));
            }
            if !self.is_under_way() {
                return Ok(None);
            }
        }
    }

    /// The previous visible row. `None` at the start of the range.
    ///
    /// # Errors
    /// As [`Scan::next`].
    #[cfg(test)]
    pub fn prev(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<ScannedRow<'_>>> {
        loop {
            if self.prev_within(store, view, tree)?.is_some() {
                return Ok(Some(self.current()));
            }
            if !self.is_under_way() {
                return Ok(None);
            }
        }
    }

    /// True if the last step ended between two leaves, before it knew of a row: the same step goes on there.
    #[inline]
    pub fn is_under_way(&self) -> bool {
        self.stood.is_some()
    }

    /// Gives up a step that is under way: the scan stands where it stood.
    #[cold]
    pub fn stand_back(&mut self) {
        if let Some((place, key)) = self.stood.take() {
            (self.place, self.key) = (place, key);
        }
    }

    /// As [`Scan::next`], but `None` also after a few leaves without a visible row ([`Scan::is_under_way`]), so that the caller may lower its
    /// operation in between (R10): of millions of rows that came behind a snapshot it sees none.
    ///
    /// # Errors
    /// As [`Scan::next`].
    #[inline]
    pub fn next_within(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<ScannedRow<'_>>> {
        let found = self.find_next(store, view, tree);
        self.found(found)
    }

    /// As [`Scan::next_within`], against key order.
    ///
    /// # Errors
    /// As [`Scan::next`].
    #[inline]
    pub fn prev_within(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<ScannedRow<'_>>> {
        let found = self.find_previous(store, view, tree);
        self.found(found)
    }

    #[inline]
    fn found(&mut self, found: Result<Found>) -> Result<Option<ScannedRow<'_>>> {
        match found {
            Ok(Found::Row(place)) => {
                self.stood = None;
                Ok(Some(self.stand(place)))
            }
            Ok(Found::Nothing) => {
                self.stood = None;
                Ok(None)
            }
            Ok(Found::Further) => Ok(None),
            Err(error) => {
                self.stand_back();
                Err(error)
            }
        }
    }

    #[inline]
    fn find_next(&mut self, store: &VersionStore, view: &View<'_>, tree: &Tree) -> Result<Found> {
        let place = self.place_of_step(Way::Forward);
        let mut index = match place {
            Place::On(index) if self.is_whole(tree) => index + 1,
            Place::Buried(slot) => slot.above,
            Place::Within(index) => index,
            Place::End => return Ok(Found::Nothing),
            _ => self.enter(store, view, tree, Way::Forward)?,
        };
        self.turn(Way::Forward);
        let mut leaves = 0;
        loop {
            match self.next_of_copy(&mut index, store, view, tree, LEAVES_AT_ONCE)? {
                Found::Nothing => {}
                Found::Further => return Ok(self.pause_within(index)),
                found @ Found::Row(_) => return Ok(found),
            }
            // Past the range inside this leaf, or past the leaf.
            let fence = match self.leaf.upper_fence() {
                Some(fence) if self.inside.end == self.leaf.len() => fence,
                _ => {
                    self.place = Place::End;
                    return Ok(Found::Nothing);
                }
            };
            if beyond_end(&self.range.1, fence) {
                self.place = Place::End;
                return Ok(Found::Nothing);
            }
            self.fence.clear();
            self.fence.extend_from_slice(fence);
            leaves += 1;
            if leaves > LEAVES_AT_ONCE {
                self.pause();
                return Ok(Found::Further);
            }
            index = self.enter_next(store, view, tree, Way::Forward)?;
        }
    }

    #[inline]
    fn find_previous(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Found> {
        let place = self.place_of_step(Way::Backward);
        let mut above = match place {
            Place::On(index) if self.is_whole(tree) => index,
            Place::Buried(slot) => slot.below,
            Place::Within(above) => above,
            Place::Start => return Ok(Found::Nothing),
            _ => self.enter(store, view, tree, Way::Backward)?,
        };
        self.turn(Way::Backward);
        let mut leaves = 0;
        loop {
            match self.previous_of_copy(&mut above, store, view, tree, LEAVES_AT_ONCE)? {
                Found::Nothing => {}
                Found::Further => return Ok(self.pause_within(above)),
                found @ Found::Row(_) => return Ok(found),
            }
            let fence = match self.leaf.lower_fence() {
                Some(fence) if self.inside.start == 0 => fence,
                _ => {
                    self.place = Place::Start;
                    return Ok(Found::Nothing);
                }
            };
            if beyond_start(&self.range.0, fence) {
                self.place = Place::Start;
                return Ok(Found::Nothing);
            }
            self.fence.clear();
            self.fence.extend_from_slice(fence);
            leaves += 1;
            if leaves > LEAVES_AT_ONCE {
                self.pause();
                return Ok(Found::Further);
            }
            above = self.enter_next(store, view, tree, Way::Backward)?;
        }
    }

    /// Where a step that way begins. What is buried beside a copy is looked at one way only, so a step the other way begins where this one did.
    #[inline]
    fn place_of_step(&mut self, way: Way) -> Place {
        if matches!(self.place, Place::Within(_)) && self.buried.way() != way {
            self.stand_back();
        }
        self.place
    }

    /// Stands at the fence between two leaves, and remembers where it stood.
    #[cold]
    fn pause(&mut self) {
        self.remember();
        self.key.clone_from(&self.fence);
        // Right below the fence there is nothing left for either way that was not looked at.
        self.place = Place::BeforeKey;
    }

    /// Stays with the copy at hand, from record `index` on: what is buried beside it shows nothing so far, and is not at its end. It was read
    /// behind the copy and will be (V32), whatever becomes of the transaction's class in between: an analytical one stays that.
    #[cold]
    fn pause_within(&mut self, index: usize) -> Found {
        self.remember();
        self.place = Place::Within(index);
        Found::Further
    }

    /// Remembers where the scan stood before a step, once.
    fn remember(&mut self) {
        if self.stood.is_none() {
            self.invalidate();
            self.stood = Some((self.place, std::mem::take(&mut self.key)));
        }
    }

    /// The next visible row beside or in the copy at hand, from record `index` on: where the scan stands then. Of the graveyard so many leaves
    /// are read at most.
    #[inline]
    fn next_of_copy(
        &mut self,
        index: &mut usize,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        leaves: u32,
    ) -> Result<Found> {
        let ahead = self.buried.peek(store, view, tree, &self.leaf, leaves)?;
        let slot = match ahead {
            Peek::Row(slot) => Some(slot),
            Peek::None => None,
            Peek::Further => return Ok(Found::Further),
        };
        // A record of the same key comes first: if it shows a version, that is the one (V33).
        let mut end = slot.map_or(self.inside.end, |slot| slot.above);
        debug_assert!(end <= self.inside.end, "what is buried lies in the range");
        while *index < end {
            if !self.leaf.has(*index) && !more(tree, &mut self.leaf, *index) {
                // Only a leaf where the scan begins is glimpsed at: nothing of it was returned.
                *index = self.enter_whole(store, view, tree, Way::Forward)?;
                end = self.inside.end;
                continue;
            }
            if self.judge(*index, store, view, tree)? {
                if slot.is_some_and(|slot| *index == slot.below) {
                    self.buried.take();
                }
                return Ok(Found::Row(Place::On(*index)));
            }
            *index += 1;
        }
        Ok(slot.map_or(Found::Nothing, |slot| Found::Row(Place::Buried(slot))))
    }

    /// The previous visible row beside or in the copy at hand, below record `above`.
    fn previous_of_copy(
        &mut self,
        above: &mut usize,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        leaves: u32,
    ) -> Result<Found> {
        let ahead = self.buried.peek(store, view, tree, &self.leaf, leaves)?;
        let slot = match ahead {
            Peek::Row(slot) => Some(slot),
            Peek::None => None,
            Peek::Further => return Ok(Found::Further),
        };
        let mut start = slot.map_or(self.inside.start, |slot| slot.below);
        debug_assert!(
            start >= self.inside.start,
            "what is buried lies in the range"
        );
        while *above > start {
            if !self.leaf.has(*above - 1) && !more(tree, &mut self.leaf, *above - 1) {
                *above = self.enter_whole(store, view, tree, Way::Backward)?;
                start = self.inside.start;
                continue;
            }
            if self.judge(*above - 1, store, view, tree)? {
                if slot.is_some_and(|slot| *above == slot.above && slot.above > slot.below) {
                    self.buried.take();
                }
                return Ok(Found::Row(Place::On(*above - 1)));
            }
            *above -= 1;
        }
        Ok(slot.map_or(Found::Nothing, |slot| Found::Row(Place::Buried(slot))))
    }

    /// Stands on a row that was found.
    #[inline]
    fn stand(&mut self, place: Place) -> ScannedRow<'_> {
        match place {
            Place::On(index) => self.leaf.key(index, &mut self.key),
            _ => {
                self.buried.take();
                self.key.clear();
                self.key.extend_from_slice(self.buried.key());
                (self.body, self.overflow) = (Body::Buried, self.buried.overflow());
            }
        }
        self.place = place;
        self.current()
    }

    /// Makes the buried rows those of this direction, if the scan went the other way.
    #[inline]
    fn turn(&mut self, way: Way) {
        if self.buried.is_on() && self.buried.way() != way {
            let from = Bound::Excluded(self.key.as_slice());
            let limit = limit(way, &self.range, &self.leaf);
            self.buried.turn(way, from, limit);
        }
    }

    /// True if record `index` has a visible version, whose body and shape are noted.
    #[inline]
    fn judge(
        &mut self,
        index: usize,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<bool> {
        match visible_as_is(view, self.leaf.payload(index)) {
            Some(Resolved::Visible(Visible {
                overflow,
                start,
                end,
            })) => {
                (self.body, self.overflow) = (Body::Leaf(index, start, end), overflow);
                Ok(true)
            }
            Some(Resolved::Absent) => Ok(false),
            Some(Resolved::Changed) | None => self.judge_chain(index, store, view, tree),
        }
    }

    #[cold]
    fn judge_chain(
        &mut self,
        index: usize,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<bool> {
        let resolved = match fat::at_hand(view, self.leaf.payload(index), &mut self.row) {
            Some(resolved) => resolved,
            None => {
                self.row.clear();
                self.row.extend_from_slice(self.leaf.payload(index));
                let hints = Some(&mut **self.hints.get_or_insert_default());
                store.resolve(view, tree, &mut self.row, &mut self.entry, hints)?
            }
        };
        let visible = match resolved {
            Resolved::Visible(visible) => Some(visible),
            Resolved::Absent => None,
            Resolved::Changed => {
                let mut key = Vec::new();
                self.leaf.key(index, &mut key);
                store.read(view, tree, &key, &mut self.row, &mut self.entry)?
            }
        };
        if let Some(Visible {
            overflow, start, ..
        }) = visible
        {
            (self.body, self.overflow) = (Body::Buffer(start), overflow);
        }
        Ok(visible.is_some())
    }
}
