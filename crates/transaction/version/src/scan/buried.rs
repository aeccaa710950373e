//! The graveyard's share of a scan: rows that an OLAP view sees and that left the main index.
//!
//! Paper: LeanStore §3.2. Differences: the ranges of the two trees' leaves need not match: a graveyard may hold millions of
//! pairs between the fences of one leaf. So it is read a leaf at a time as well, after the copy of the main leaf, up to the
//! fence of that copy; with the next main copy it is read again from there.
//!
//! Invariants:
//! - V32 Everything here was read after the copy of the main leaf that covers it (V23), and lies between the scan's last
//!   bound and that copy's fence. A copy without a fence is open-ended, and an empty one covers as much as a full one.
//! - V33 At most one generation of a key is visible, so what the main leaf shows and what is found here are merged by key
//!   after visibility; if both show the key it is the same version.

use crate::error::{Result, damaged};
use crate::pair;
use crate::read::{RESTARTS_MAX, Resolved, View, Visible};
use crate::store::VersionStore;
use std::ops::Bound;
use vellum_btree::{LeafCopy, LeafHints, Seek, Tree};

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Forward,
    Backward,
}

/// Where a buried row belongs among the records of the main copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// Records below this index have smaller keys.
    pub below: usize,
    /// Records from this index on have larger keys. One more than `below` if the copy has a record of the same key.
    pub above: usize,
}

/// What is known of the next buried row.
#[derive(Clone, Copy, Debug)]
enum Ahead {
    /// It is to be looked for.
    Unknown,
    /// It is in the buffers.
    Row(Slot),
    /// There is none up to the limit.
    None,
}

/// The visible buried rows beside one copy of a main leaf, in one direction.
#[derive(Debug)]
pub(super) struct Buried {
    /// The graveyard's tree; `None` if there is nothing to look for beside the copy at hand.
    entries: Option<Tree>,
    way: Way,
    ahead: Ahead,
    /// A leaf of the graveyard; made at the first look.
    leaf: Option<LeafCopy>,
    /// The leaf is of this copy's time, and what comes next in it: the index of a pair, or the number of pairs left.
    at: Option<usize>,
    /// Bound of pairs where the next leaf begins (or, backward, ends).
    from: Vec<u8>,
    /// Pairs at or above it (or, backward, below it) belong to another main leaf, or to none.
    limit: Option<Vec<u8>>,
    pair: Vec<u8>,
    /// The row ahead, or the one that was taken last.
    key: Vec<u8>,
    row: Vec<u8>,
    visible: Visible,
    entry: Vec<u8>,
    /// Where the deltas were that were looked up last.
    /// Made when a row has to be looked for behind its head: most scans meet none.
    hints: Option<Box<LeafHints>>,
}

impl Buried {
    pub fn new() -> Self {
        Self {
            entries: None,
            way: Way::Forward,
            ahead: Ahead::None,
            leaf: None,
            at: None,
            from: Vec::new(),
            limit: None,
            pair: Vec::new(),
            key: Vec::new(),
            row: Vec::new(),
            visible: Visible {
                overflow: false,
                start: 0,
                end: 0,
            },
            entry: Vec::new(),
            hints: None,
        }
    }

    /// True if there may be buried rows beside the copy at hand.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.entries.is_some()
    }

    /// The direction of what is ahead.
    pub fn way(&self) -> Way {
        self.way
    }

    /// The copy at hand has none.
    #[inline]
    pub fn stop(&mut self) {
        self.entries = None;
        self.ahead = Ahead::None;
    }

    /// Starts beside a new copy of a main leaf (V32): from `from` to `limit`, both bounds of keys.
    pub fn start(&mut self, entries: Tree, way: Way, from: Bound<&[u8]>, limit: Bound<&[u8]>) {
        self.entries = Some(entries);
        self.turn(way, from, limit);
    }

    /// Starts again in another direction, beside the same copy.
    pub fn turn(&mut self, way: Way, from: Bound<&[u8]>, limit: Bound<&[u8]>) {
        self.way = way;
        self.ahead = Ahead::Unknown;
        self.at = None;
        // A bound lies below the pairs of its key, or above them, whichever of the two keeps them in or out.
        let is_above = |bound: &Bound<&[u8]>, included_is_above: bool| match bound {
            Bound::Included(_) => included_is_above,
            Bound::Excluded(_) => !included_is_above,
            Bound::Unbounded => false,
        };
        let encode = |bound: Bound<&[u8]>, above: bool, out: &mut Vec<u8>| match bound {
            Bound::Included(key) | Bound::Excluded(key) if above => pair::highest(key, out),
            Bound::Included(key) | Bound::Excluded(key) => pair::lowest(key, out),
            Bound::Unbounded => out.clear(),
        };
        let backward = way == Way::Backward;
        encode(from, is_above(&from, backward), &mut self.from);
        let mut end = self.limit.take().unwrap_or_default();
        encode(limit, is_above(&limit, !backward), &mut end);
        self.limit = (!matches!(limit, Bound::Unbounded)).then_some(end);
        if backward && matches!(from, Bound::Unbounded) {
            // Above every pair: groups of a key never begin like that.
            self.from.clear();
            self.from.extend_from_slice(&OPEN_END);
        }
    }

    /// Where the next visible row belongs; reads at most `leaves` leaves of the graveyard, none where it is 0, and goes on there at the next call
    /// if they show nothing: a million pairs that the view does not see may lie beside one leaf (R10).
    ///
    /// # Errors
    /// Storage errors; the next call tries again.
    #[inline]
    pub fn peek(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        main: &LeafCopy,
        leaves: u32,
    ) -> Result<Peek> {
        match self.ahead {
            Ahead::None => Ok(Peek::None),
            Ahead::Row(slot) => Ok(Peek::Row(slot)),
            Ahead::Unknown => self.look(store, view, tree, main, leaves),
        }
    }

    /// Takes the row ahead: it stays in the buffers until the next look.
    pub fn take(&mut self) {
        debug_assert!(matches!(self.ahead, Ahead::Row(_)));
        self.ahead = Ahead::Unknown;
    }

    /// Key of the row that was taken last.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Its body.
    pub fn body(&self) -> &[u8] {
        &self.row[self.visible.start..self.visible.end]
    }

    /// Its body is a chain reference.
    pub fn overflow(&self) -> bool {
        self.visible.overflow
    }

    #[cold]
    fn look(
        &mut self,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        main: &LeafCopy,
        mut leaves: u32,
    ) -> Result<Peek> {
        let Some(entries) = self.entries.clone() else {
            self.ahead = Ahead::None;
            return Ok(Peek::None);
        };
        loop {
            if self.at.is_none() {
                if leaves == 0 {
                    return Ok(Peek::Further);
                }
                leaves -= 1;
                self.read_leaf(&entries)?;
            }
            while let Some(index) = self.step() {
                let leaf = self.leaf.as_ref().expect("read before");
                leaf.key(index, &mut self.pair);
                if self.is_beyond(&self.pair) {
                    self.ahead = Ahead::None;
                    return Ok(Peek::None);
                }
                if let Some(visible) = self.judge(index, store, view, tree, &entries)? {
                    self.visible = visible;
                    pair::decode_key(&self.pair, &mut self.key)
                        .ok_or_else(|| damaged("key of a graveyard", entries.root()))?;
                    debug_assert!(main.covers(&self.key), "V32");
                    let (below, found) = main.find(&self.key);
                    let slot = Slot {
                        below,
                        above: below + usize::from(found),
                    };
                    self.pass(index);
                    self.ahead = Ahead::Row(slot);
                    return Ok(Peek::Row(slot));
                }
                self.pass(index);
            }
            // The leaf is over: on to the next, unless that one belongs to another main leaf.
            let leaf = self.leaf.as_ref().expect("read before");
            let fence = match self.way {
                Way::Forward => leaf.upper_fence(),
                Way::Backward => leaf.lower_fence(),
            };
            let Some(fence) = fence else {
                self.ahead = Ahead::None;
                return Ok(Peek::None);
            };
            let over = match (&self.limit, self.way) {
                (None, _) => false,
                (Some(limit), Way::Forward) => fence >= limit.as_slice(),
                (Some(limit), Way::Backward) => fence <= limit.as_slice(),
            };
            if over {
                self.ahead = Ahead::None;
                return Ok(Peek::None);
            }
            self.from.clear();
            self.from.extend_from_slice(fence);
            self.at = None;
        }
    }

    fn read_leaf(&mut self, entries: &Tree) -> Result<()> {
        let page_size = entries.context().page_size();
        let leaf = self.leaf.get_or_insert_with(|| LeafCopy::new(page_size));
        let seek = match self.way {
            Way::Forward => Seek::AtOrAfter(&self.from),
            Way::Backward => Seek::Before(&self.from),
        };
        entries.read_leaf(seek, leaf)?;
        self.at = Some(leaf.position());
        Ok(())
    }

    /// The index of the next pair of the leaf.
    fn step(&self) -> Option<usize> {
        let (at, leaf) = (self.at?, self.leaf.as_ref()?);
        match self.way {
            Way::Forward => (at < leaf.len()).then_some(at),
            Way::Backward => at.checked_sub(1),
        }
    }

    /// Pair `index` is done with.
    fn pass(&mut self, index: usize) {
        self.at = Some(match self.way {
            Way::Forward => index + 1,
            Way::Backward => index,
        });
    }

    fn is_beyond(&self, pair: &[u8]) -> bool {
        match (&self.limit, self.way) {
            (None, _) => false,
            (Some(limit), Way::Forward) => pair >= limit.as_slice(),
            (Some(limit), Way::Backward) => pair < limit.as_slice(),
        }
    }

    /// The visible version of pair `index`, its body in `row`.
    fn judge(
        &mut self,
        index: usize,
        store: &VersionStore,
        view: &View<'_>,
        tree: &Tree,
        entries: &Tree,
    ) -> Result<Option<Visible>> {
        let leaf = self.leaf.as_ref().expect("read before");
        self.row.clear();
        self.row.extend_from_slice(leaf.payload(index));
        for _ in 0..RESTARTS_MAX {
            let hints = &mut **self.hints.get_or_insert_default();
            match store.resolve(view, tree, &mut self.row, &mut self.entry, Some(hints))? {
                Resolved::Visible(visible) => return Ok(Some(visible)),
                Resolved::Absent => return Ok(None),
                Resolved::Changed => {}
            }
            // Versions of this generation have gone since the leaf was copied, so the pair goes or is gone: nobody sees them. The key
            // is not looked up: another generation of it may be visible, and has a turn of its own (V13).
            if !entries.get(&self.pair, &mut self.row)? {
                return Ok(None);
            }
        }
        Err(damaged("version chain of a buried row", tree.root()).into())
    }
}

/// What [`Buried::peek`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Peek {
    /// A row, and where it belongs.
    Row(Slot),
    /// Nothing up to the end of the main copy.
    None,
    /// Whatever is in a leaf that was not read yet.
    Further,
}

/// A bound above every pair: eight bytes of `FF` and a marker that no group has.
const OPEN_END: [u8; 9] = [0xFF; 9];
