//! Cursors over versioned rows: a leaf at a time, both ways.
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

use crate::error::Result;
use crate::read::{Resolved, View, Visible, visible_as_is};
use crate::store::VersionStore;
use std::ops::Bound;
use vellum_btree::{LeafCopy, Seek, Tree};

/// Bounds of a scan, owned.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

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
    row: Vec<u8>,
    entry: Vec<u8>,
    /// Where the body of the row that the last step returned stands.
    body: Body,
    overflow: bool,
}

/// A row that a scan returned: where its body stands.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// In the leaf copy: record, where in its payload.
    Leaf(usize, usize, usize),
    /// In the row buffer, from an offset.
    Buffer(usize),
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
            row: Vec::new(),
            entry: Vec::new(),
            body: Body::Buffer(0),
            overflow: false,
        }
    }

    /// Stands right below `key` from now on: `next` goes to the first visible row at or above it.
    pub fn seek(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.place = Place::BeforeKey;
    }

    /// Forgets the copy, keeps the place (V14).
    pub fn invalidate(&mut self) {
        if let Place::On(index) = self.place {
            self.leaf.key(index, &mut self.key);
            self.place = Place::OnKey;
        }
    }

    /// Stands right before the row that the last step returned, in the step's direction: the next step that way returns
    /// it again.
    pub fn unread(&mut self, forward: bool) {
        if let Place::On(_) = self.place {
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
        debug_assert!(matches!(self.place, Place::On(_)), "a row was returned");
        let body = match self.body {
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
        let Place::On(on) = self.place else {
            return Ok(None);
        };
        for index in on + 1..self.inside.end {
            if let Some((body, overflow)) = self.judge(index, store, view, tree)? {
                self.place = Place::On(index);
                return Ok(Some(self.scanned(index, body, overflow)));
            }
        }
        Ok(None)
    }

    /// The next visible row. `None` at the end of the range.
    ///
    /// # Errors
    /// Storage errors; the scan stands where it stood.
    #[inline]
    pub fn next(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<ScannedRow<'_>>> {
        let mut index = match self.place {
            Place::On(index) => index + 1,
            Place::End => return Ok(None),
            _ => match self.enter_forward(tree)? {
                Some(index) => index,
                None => return Ok(None),
            },
        };
        loop {
            while index < self.inside.end {
                if let Some((body, overflow)) = self.judge(index, store, view, tree)? {
                    self.place = Place::On(index);
                    return Ok(Some(self.scanned(index, body, overflow)));
                }
                index += 1;
            }
            // Past the range inside this leaf, or past the leaf.
            let fence = match self.leaf.upper_fence() {
                Some(fence) if self.inside.end == self.leaf.len() => fence,
                _ => {
                    self.place = Place::End;
                    return Ok(None);
                }
            };
            if beyond_end(&self.range.1, fence) {
                self.place = Place::End;
                return Ok(None);
            }
            self.fence.clear();
            self.fence.extend_from_slice(fence);
            self.invalidate();
            tree.read_leaf(Seek::AtOrAfter(&self.fence), &mut self.leaf)?;
            self.bound_copy();
            index = self.leaf.position().max(self.inside.start);
        }
    }

    /// The previous visible row. `None` at the start of the range.
    ///
    /// # Errors
    /// As [`Scan::next`].
    pub fn prev(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<ScannedRow<'_>>> {
        let mut above = match self.place {
            Place::On(index) => index,
            Place::Start => return Ok(None),
            _ => match self.enter_backward(tree)? {
                Some(index) => index,
                None => return Ok(None),
            },
        };
        loop {
            while above > self.inside.start {
                if let Some((body, overflow)) = self.judge(above - 1, store, view, tree)? {
                    self.place = Place::On(above - 1);
                    return Ok(Some(self.scanned(above - 1, body, overflow)));
                }
                above -= 1;
            }
            let fence = match self.leaf.lower_fence() {
                Some(fence) if self.inside.start == 0 => fence,
                _ => {
                    self.place = Place::Start;
                    return Ok(None);
                }
            };
            if beyond_start(&self.range.0, fence) {
                self.place = Place::Start;
                return Ok(None);
            }
            self.fence.clear();
            self.fence.extend_from_slice(fence);
            self.invalidate();
            tree.read_leaf(Seek::Before(&self.fence), &mut self.leaf)?;
            self.bound_copy();
            above = self.leaf.position().min(self.inside.end);
        }
    }

    /// Reads the leaf where a forward scan starts or goes on.
    fn enter_forward(&mut self, tree: &Tree) -> Result<Option<usize>> {
        let start = match &self.range.0 {
            Bound::Unbounded => Seek::First,
            Bound::Included(key) => Seek::AtOrAfter(key),
            Bound::Excluded(key) => Seek::After(key),
        };
        let seek = match self.place {
            Place::OnKey | Place::BehindKey if !below_start(&self.range.0, &self.key) => {
                Seek::After(&self.key)
            }
            Place::BeforeKey if !below_start(&self.range.0, &self.key) => {
                Seek::AtOrAfter(&self.key)
            }
            _ => start,
        };
        tree.read_leaf(seek, &mut self.leaf)?;
        self.bound_copy();
        Ok(Some(self.leaf.position().max(self.inside.start)))
    }

    /// Reads the leaf where a backward scan starts or goes on.
    fn enter_backward(&mut self, tree: &Tree) -> Result<Option<usize>> {
        let end = match &self.range.1 {
            Bound::Unbounded => Seek::Last,
            Bound::Included(key) => Seek::AtOrBefore(key),
            Bound::Excluded(key) => Seek::Before(key),
        };
        let seek = match self.place {
            Place::OnKey | Place::BeforeKey if !above_end(&self.range.1, &self.key) => {
                Seek::Before(&self.key)
            }
            Place::BehindKey if !above_end(&self.range.1, &self.key) => Seek::AtOrBefore(&self.key),
            _ => end,
        };
        tree.read_leaf(seek, &mut self.leaf)?;
        self.bound_copy();
        Ok(Some(self.leaf.position().min(self.inside.end)))
    }

    /// Computes which records of the copy lie in the range: two searches a leaf instead of two
    /// comparisons a row.
    fn bound_copy(&mut self) {
        let count = self.leaf.len();
        let start = match &self.range.0 {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => {
                if self.leaf.covers(key) {
                    let (index, found) = self.leaf.find(key);
                    let skip = found && matches!(self.range.0, Bound::Excluded(_));
                    index + usize::from(skip)
                } else if self
                    .leaf
                    .upper_fence()
                    .is_some_and(|fence| fence <= key.as_slice())
                {
                    count
                } else {
                    0
                }
            }
        };
        let end = match &self.range.1 {
            Bound::Unbounded => count,
            Bound::Included(key) | Bound::Excluded(key) => {
                if self.leaf.covers(key) {
                    let (index, found) = self.leaf.find(key);
                    let keep = found && matches!(self.range.1, Bound::Included(_));
                    index + usize::from(keep)
                } else if self
                    .leaf
                    .upper_fence()
                    .is_some_and(|fence| fence <= key.as_slice())
                {
                    count
                } else {
                    0
                }
            }
        };
        self.inside = start.min(end)..end;
    }

    /// Finds the visible version of record `index`.
    #[inline]
    fn judge(
        &mut self,
        index: usize,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
    ) -> Result<Option<(Body, bool)>> {
        match visible_as_is(view, self.leaf.payload(index)) {
            Some(Resolved::Visible(Visible {
                overflow,
                start,
                end,
            })) => Ok(Some((Body::Leaf(index, start, end), overflow))),
            Some(Resolved::Absent) => Ok(None),
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
    ) -> Result<Option<(Body, bool)>> {
        self.row.clear();
        self.row.extend_from_slice(self.leaf.payload(index));
        let visible = match store.resolve(view, tree, &mut self.row, &mut self.entry)? {
            Resolved::Visible(visible) => Some(visible),
            Resolved::Absent => None,
            Resolved::Changed => {
                let mut key = Vec::new();
                self.leaf.key(index, &mut key);
                store.read(view, tree, &key, &mut self.row, &mut self.entry)?
            }
        };
        Ok(visible.map(|visible| (Body::Buffer(visible.start), visible.overflow)))
    }

    #[inline]
    fn scanned(&mut self, index: usize, body: Body, overflow: bool) -> ScannedRow<'_> {
        self.leaf.key(index, &mut self.key);
        (self.body, self.overflow) = (body, overflow);
        self.current()
    }
}

/// True if no key at or above `fence` is inside the end of the range.
fn beyond_end(end: &Bound<Vec<u8>>, fence: &[u8]) -> bool {
    match end {
        Bound::Unbounded => false,
        Bound::Included(key) => key.as_slice() < fence,
        Bound::Excluded(key) => key.as_slice() <= fence,
    }
}

/// True if no key below `fence` is inside the start of the range.
fn beyond_start(start: &Bound<Vec<u8>>, fence: &[u8]) -> bool {
    match start {
        Bound::Unbounded => false,
        Bound::Included(key) | Bound::Excluded(key) => key.as_slice() >= fence,
    }
}

fn below_start(start: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match start {
        Bound::Unbounded => false,
        Bound::Included(start) | Bound::Excluded(start) => key < start.as_slice(),
    }
}

fn above_end(end: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match end {
        Bound::Unbounded => false,
        Bound::Included(end) | Bound::Excluded(end) => key > end.as_slice(),
    }
}
