//! Changing one row: the leaf of a key, latched exclusively and positioned.
//!
//! Order of a logged change (the caller reserved log space before [`Tree::write`]): under the page
//! latch, take the slot latch, draw a GSN above the page's, append the record, release the slot
//! latch, change the page, set its GSN. Nothing in that can fail.
//!
//! What is logged may differ from what is put into the page: the page holds rows with their
//! version stamp, the record holds them reduced (0001). Patches in the record count from the
//! start of the reduced row.

use crate::context::{Journal, max_inline_payload, max_key};
use crate::descend::{OPTIMISTIC_TRIES, Target};
use crate::node::edit::{NodeWrite, parts_len};
use crate::node::layout::{FLAG_FAT, NodeRead, OPEN_UPPER, head_of, record_bytes};
use crate::record::{INSERT, PATCH, REMOVE, REPLACE};
use crate::tree::{Tree, TreeKind};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use vellum_base::{Gsn, Lsn, PageId, Result};
use vellum_buffer::{Exclusive, PageRead, PageWrite};
use vellum_sync::Backoff;
use vellum_wal::{FLAG_FIRST, RecordHeader, SlotGuard, SlotLog};

/// What redo shall do to the (reduced) row.
#[derive(Clone, Copy, Debug)]
pub enum RowRedo<'l> {
    /// The row becomes this, in parts. Not longer than what goes into the page.
    Row(&'l [&'l [u8]]),
    /// These bytes of the row are overwritten: offset in the reduced row, bytes.
    Patch(&'l [(u16, &'l [u8])]),
    /// The row goes.
    Remove,
}

/// How a change of a row is logged.
#[derive(Clone, Copy, Debug)]
pub enum Logging<'l> {
    /// Not at all: temporary trees.
    None,
    /// As one record.
    Record {
        /// The slot of the transaction.
        slot: &'l SlotLog,
        /// `FLAG_UNDOABLE` or `FLAG_COMPENSATION`, or none for redo-only changes.
        flags: u8,
        /// For redo.
        redo: RowRedo<'l>,
        /// For undo, in parts.
        undo: &'l [&'l [u8]],
    },
}

/// Where the record of a change is; zeroes for an unlogged one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// Its sequence number.
    pub gsn: Gsn,
    /// Its position in the slot's log.
    pub lsn: Lsn,
}

/// A leaf under its exclusive latch, positioned at a key. Hold it briefly, wait for nothing.
pub struct LeafWrite<'t, 'k> {
    tree: &'t Tree,
    page: Exclusive<'t>,
    key: &'k [u8],
    index: usize,
    found: bool,
}

impl fmt::Debug for LeafWrite<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "LeafWrite({:?}, page {})",
            self.tree,
            self.page.page_id()
        )
    }
}

impl Tree {
    /// Latches the leaf that `key` belongs to and looks for it. Log space for the change must be
    /// reserved before.
    ///
    /// # Errors
    /// I/O, corruption of a page on the way.
    ///
    /// # Panics
    /// If the key is longer than [`max_key`]: users' keys are checked above.
    #[inline]
    pub fn write<'t, 'k>(&'t self, key: &'k [u8]) -> Result<LeafWrite<'t, 'k>> {
        assert!(
            key.len() <= max_key(self.context().page_size()),
            "key of {} bytes",
            key.len()
        );
        self.context().count_search();
        let mut backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_TRIES {
            if let Some(path) = self.try_descend(Target::Covering(key), 0)?
                && let Some(page) = path.page.try_exclusive()
            {
                self.check_covers(&page, key)?;
                return Ok(LeafWrite::new(self, page, key));
            }
            backoff.wait();
        }
        loop {
            if let Some(page) = self.latch_leaf_exclusive(Target::Covering(key))? {
                self.check_covers(&page, key)?;
                return Ok(LeafWrite::new(self, page, key));
            }
        }
    }

    /// Checks that a leaf to which its parents lead for a key is the key's: a page of the past may have had other fences, and what is
    /// written there would be a record of another key.
    #[inline]
    pub(crate) fn check_covers(&self, leaf: &Exclusive<'_>, key: &[u8]) -> Result<()> {
        if leaf.covers(key) {
            return Ok(());
        }
        let what = "key between the fences of its leaf";
        Err(self.context().corrupt(leaf.page_id(), what, 1, 0))
    }

    /// Inserts or replaces, redo-only. For trees of plain bytes. `journal` is for durable trees;
    /// reserves log space.
    ///
    /// # Errors
    /// Out of space, I/O.
    pub fn put(&self, key: &[u8], payload: &[u8], journal: Option<Journal<'_>>) -> Result<()> {
        let journal = self.journal(journal);
        loop {
            if let Some(journal) = journal {
                journal.reserve(crate::context::row_log_bytes(key.len(), payload.len()))?;
            }
            let mut leaf = self.write(key)?;
            if leaf.fits(payload.len()) {
                let (parts, undo): ([&[u8]; 1], [&[u8]; 0]) = ([payload], []);
                let logging = journal.map_or(Logging::None, |journal| Logging::Record {
                    slot: journal.slot,
                    flags: 0,
                    redo: RowRedo::Row(&parts),
                    undo: &undo,
                });
                if leaf.found() {
                    leaf.replace(&parts, logging);
                } else {
                    leaf.insert(&parts, logging);
                }
                return Ok(());
            }
            drop(leaf);
            self.make_room(key, payload.len(), journal)?;
        }
    }

    /// Removes a key, redo-only, and gives back space if the leaf became small and can be joined with a neighbour. False if it was not
    /// there.
    ///
    /// # Errors
    /// I/O, out of log space: the key is still there.
    pub fn delete(&self, key: &[u8], journal: Option<Journal<'_>>) -> Result<bool> {
        let journal = self.journal(journal);
        if let Some(journal) = journal {
            journal.reserve(crate::context::row_log_bytes(key.len(), 0))?;
        }
        let mut leaf = self.write(key)?;
        if !leaf.found() {
            return Ok(false);
        }
        let logging = journal.map_or(Logging::None, |journal| Logging::Record {
            slot: journal.slot,
            flags: 0,
            redo: RowRedo::Remove,
            undo: &[],
        });
        let before = leaf.fill();
        leaf.remove(logging);
        let joins = leaf.should_join(before);
        drop(leaf);
        if joins {
            // An error would say that the key is there.
            let _ = self.rebalance(key, journal);
        }
        Ok(true)
    }
}

/// How full a leaf is ([`LeafWrite::fill`]).
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    underfull: bool,
    needs_prefix: bool,
}

impl<'t, 'k> LeafWrite<'t, 'k> {
    #[inline]
    pub(crate) fn new(tree: &'t Tree, page: Exclusive<'t>, key: &'k [u8]) -> Self {
        debug_assert!(
            tree.is_leaf(&page) && page.covers(key),
            "descended to the wrong leaf"
        );
        let (index, found) = page.find_next(key);
        debug_assert_eq!((index, found), page.find(key));
        Self {
            tree,
            page,
            key,
            index,
            found,
        }
    }

    pub(crate) fn at(
        tree: &'t Tree,
        page: Exclusive<'t>,
        key: &'k [u8],
        (index, found): (usize, bool),
    ) -> Self {
        debug_assert_eq!(page.find(key), (index, found));
        Self {
            tree,
            page,
            key,
            index,
            found,
        }
    }

    /// True if the key is there.
    #[inline]
    pub fn found(&self) -> bool {
        self.found
    }

    /// The leaf's page id.
    pub fn page_id(&self) -> PageId {
        self.page.page_id()
    }

    /// The page itself; the position is lost if records move.
    pub(crate) fn page_mut(&mut self) -> &mut Exclusive<'t> {
        &mut self.page
    }

    /// Finds the position again, after records moved.
    pub(crate) fn find_again(&mut self) {
        (self.index, self.found) = self.page.find(self.key);
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.page.shape().free
    }

    pub(crate) fn page_gsn(&self) -> Gsn {
        self.page.page_gsn()
    }

    /// True if the leaf is the rightmost of the tree.
    pub fn is_rightmost(&self) -> bool {
        self.page.shape().open & OPEN_UPPER != 0
    }

    /// True if the leaf holds no record.
    pub fn is_empty(&self) -> bool {
        self.page.shape().count == 0
    }

    /// Length of the payload; zero if the key is not there.
    #[inline]
    pub fn payload_len(&self) -> usize {
        if self.found {
            self.page.payload_len(self.page.slot(self.index))
        } else {
            0
        }
    }

    /// Replaces `out` by the payload.
    pub fn copy_payload(&self, out: &mut Vec<u8>) {
        out.resize(self.payload_len(), 0);
        self.payload_read(0, out);
    }

    /// Copies bytes of the payload from `offset`.
    ///
    /// # Panics
    /// If they are not inside the payload.
    #[inline]
    pub fn payload_read(&self, offset: usize, out: &mut [u8]) {
        assert!(
            offset + out.len() <= self.payload_len(),
            "read inside the payload"
        );
        if self.found {
            self.page
                .copy_out(self.page.slot(self.index).payload_at() + offset, out);
        }
    }

    /// True if a payload of that length can be put here (as an insert or a replacement) without
    /// [`Tree::make_room`].
    #[inline]
    pub fn fits(&self, payload_len: usize) -> bool {
        if self.found {
            return self.page.replacement_fits(self.index, payload_len);
        }
        let suffix = self.key.len() - self.page.fences().prefix;
        record_bytes(suffix, payload_len) <= self.page.shape().free
    }

    /// True if the leaf is so empty that it should be joined with a neighbour (see [`LeafWrite::should_join`]).
    #[inline]
    pub fn is_underfull(&self) -> bool {
        self.page.page_id() != self.tree.root() && crate::merge::is_underfull(&self.page)
    }

    /// How full the leaf is, to be told to [`LeafWrite::should_join`] behind a removal.
    #[inline]
    pub fn fill(&self) -> Fill {
        Fill {
            underfull: self.is_underfull(),
            needs_prefix: crate::merge::needs_prefix(&self.page),
        }
    }

    /// True if the leaf has just become small, or is empty, or has just become one that an empty neighbour can be joined with that it was
    /// too full for: then [`Tree::rebalance`] should be called once it is released. `before` is what [`LeafWrite::fill`] said before the
    /// removal. Not after each removal between the two: its neighbours are as full as they were when it was asked first, and to find that
    /// out again costs a hundred removals.
    #[inline]
    pub fn should_join(&self, before: Fill) -> bool {
        if self.is_underfull() {
            return !before.underfull || self.is_empty();
        }
        before.needs_prefix && !crate::merge::needs_prefix(&self.page)
    }

    fn check_logging(&self, logging: &Logging<'_>) {
        debug_assert_eq!(
            matches!(logging, Logging::None),
            self.tree.kind() == TreeKind::Temporary,
            "durable trees log, temporary ones do not"
        );
    }

    /// Inserts the key, which is not there.
    ///
    /// # Panics
    /// If the key is there, the payload is longer than [`max_inline_payload`], does not fit
    /// ([`LeafWrite::fits`]), or too little log space was reserved.
    pub fn insert(&mut self, payload: &[&[u8]], logging: Logging<'_>) -> Logged {
        assert!(!self.found, "inserted once");
        self.check_length(payload);
        let logged = self.log(&logging, INSERT);
        let suffix = &self.key[self.page.fences().prefix..];
        self.page.insert_at(self.index, suffix, payload);
        self.stamp(logged);
        self.found = true;
        logged
    }

    /// Replaces the payload of the key, which is there.
    ///
    /// # Panics
    /// As [`LeafWrite::insert`].
    pub fn replace(&mut self, payload: &[&[u8]], logging: Logging<'_>) -> Logged {
        assert!(self.found, "replaced only what was found");
        self.check_length(payload);
        let logged = self.log(&logging, REPLACE);
        self.page.replace_at(self.index, payload);
        self.stamp(logged);
        logged
    }

    /// Overwrites bytes of the payload, each at an offset in it; the length stays.
    ///
    /// # Panics
    /// If the key is not there, a run ends behind the payload, or too little log space was reserved.
    pub fn patch(&mut self, edits: &[(usize, &[u8])], logging: Logging<'_>) -> Logged {
        assert!(self.found, "patched only what was found");
        let logged = self.log(&logging, REPLACE);
        for (offset, bytes) in edits {
            self.page.patch_at(self.index, *offset, bytes);
        }
        self.stamp(logged);
        logged
    }

    /// Removes the key, which is there.
    ///
    /// # Panics
    /// If the key is not there, or too little log space was reserved.
    pub fn remove(&mut self, logging: Logging<'_>) -> Logged {
        assert!(self.found, "removed only what was found");
        let logged = self.log(&logging, REMOVE);
        self.page.remove_at(self.index);
        self.stamp(logged);
        self.found = false;
        logged
    }

    /// Removes those of `keys` (ascending, the first one is in this leaf's range) that are here and that `goes` says yes to:
    /// it gets their index in `keys`, the first byte of the payload and its length. For temporary trees: nothing is logged. Returns how
    /// many of `keys` belong to this leaf. The position is lost.
    ///
    /// # Panics
    /// If the tree is not temporary.
    pub fn remove_each<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        mut goes: impl FnMut(usize, u8, usize) -> bool,
    ) -> usize {
        assert_eq!(self.tree.kind(), TreeKind::Temporary, "nothing is logged");
        let here = match keys.last() {
            Some(last) if self.page.covers(last.as_ref()) => keys.len(),
            _ => keys.partition_point(|key| self.page.covers(key.as_ref())),
        };
        let Some(first) = keys[..here].first() else {
            return 0;
        };
        let (count, prefix) = (self.page.shape().count, self.page.fences().prefix);
        let mut at = self.page.find(first.as_ref()).0;
        let mut gone: SmallVec<[usize; 128]> = SmallVec::new();
        for (index, key) in keys[..here].iter().map(AsRef::as_ref).enumerate() {
            let suffix = key.get(prefix..).unwrap_or(&[]);
            let head = head_of(suffix);
            // Keys and slots ascend, and what goes mostly lies side by side: a search for each would cost more than all of this.
            let order = loop {
                if at == count {
                    break Ordering::Greater;
                }
                match self.page.compare_slot(self.page.slot(at), suffix, head) {
                    Ordering::Less => at += 1,
                    order => break order,
                }
            };
            if order.is_gt() {
                continue;
            }
            let slot = self.page.slot(at);
            let length = self.page.payload_len(slot);
            if length > 0 && goes(index, self.page.u8_at(slot.payload_at()), length) {
                gone.push(at);
            }
            at += 1;
        }
        self.page.remove_all(&gone);
        self.find_again();
        here
    }

    /// Replaces the payload by one that is not longer and has the same reduced form. Not logged:
    /// redo reduces every row before it redoes anything.
    ///
    /// # Panics
    /// If the key is not there or the payload is longer.
    pub fn shrink_unlogged(&mut self, payload: &[u8]) {
        assert!(
            self.found && payload.len() <= self.payload_len(),
            "shrinks what is there"
        );
        self.page.replace_at(self.index, &[payload]);
    }

    /// Marks the leaf as one with rows that hold old versions.
    #[inline]
    pub fn mark_fat(&mut self) {
        let flags = self.page.kind_and_flags().1;
        if flags & FLAG_FAT == 0 {
            self.page.set_u8(5, flags | FLAG_FAT);
        }
    }

    /// Takes the mark away if `is_fat` says no to the first byte of every payload.
    pub fn unmark_fat(&mut self, is_fat: impl Fn(u8) -> bool) {
        let flags = self.page.kind_and_flags().1;
        let any = (0..self.page.shape().count).any(|index| {
            let slot = self.page.slot(index);
            self.page.payload_len(slot) > 0 && is_fat(self.page.u8_at(slot.payload_at()))
        });
        if flags & FLAG_FAT != 0 && !any {
            self.page.set_u8(5, flags & !FLAG_FAT);
        }
    }

    fn check_length(&self, payload: &[&[u8]]) {
        let limit = max_inline_payload(self.page.size(), self.key.len());
        let length = parts_len(payload);
        assert!(
            length <= limit,
            "payload of {length} bytes, at most {limit}"
        );
    }

    #[inline]
    fn stamp(&mut self, logged: Logged) {
        if !logged.gsn.is_zero() {
            self.page.set_gsn(logged.gsn);
        }
    }

    /// Appends the record of a change; `kind` is what it is if redo gets the whole row.
    #[inline]
    fn log(&mut self, logging: &Logging<'_>, kind: u8) -> Logged {
        self.check_logging(logging);
        let Logging::Record {
            slot,
            flags,
            redo,
            undo,
        } = logging
        else {
            return Logged::default();
        };
        let length = (self.key.len() as u16).to_le_bytes();
        let mut heads: SmallVec<[[u8; 4]; 8]> = SmallVec::new();
        let mut parts: SmallVec<[&[u8]; 12]> = SmallVec::new();
        parts.extend_from_slice(&[&length, self.key]);
        let kind = match redo {
            RowRedo::Row(row) => {
                debug_assert_ne!(kind, REMOVE, "a row that goes has no bytes");
                parts.extend_from_slice(row);
                kind
            }
            RowRedo::Patch(edits) => {
                debug_assert_eq!(kind, REPLACE, "only what is there is patched");
                for (offset, bytes) in *edits {
                    let mut head = [0; 4];
                    head[..2].copy_from_slice(&offset.to_le_bytes());
                    head[2..].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
                    heads.push(head);
                }
                for ((_, bytes), head) in edits.iter().zip(&heads) {
                    parts.push(head);
                    parts.push(bytes);
                }
                PATCH
            }
            RowRedo::Remove => {
                debug_assert_eq!(kind, REMOVE, "redo does what was done");
                kind
            }
        };
        let mut slot = slot.lock();
        let gsn = slot.draw(self.page.page_gsn());
        let header = RecordHeader {
            kind,
            flags: flags | FLAG_FIRST,
            page: self.page.page_id(),
            tree: self.tree.root(),
            gsn,
        };
        let lsn = slot.append(&header, &parts, undo);
        Logged { gsn, lsn }
    }

    /// The record of an entry that another tree's structure change adds or removes.
    pub(crate) fn append_entry(
        &self,
        slot: &mut SlotGuard<'_>,
        flags: u8,
        gsn: Gsn,
        payload: Option<&[u8]>,
    ) {
        let kind = match (payload, self.found) {
            (None, _) => REMOVE,
            (Some(_), false) => INSERT,
            (Some(_), true) => REPLACE,
        };
        let length = (self.key.len() as u16).to_le_bytes();
        let (page, tree) = (self.page.page_id(), self.tree.root());
        let header = RecordHeader {
            kind,
            flags,
            page,
            tree,
            gsn,
        };
        slot.append(&header, &[&length, self.key, payload.unwrap_or(&[])], &[]);
    }

    /// Makes the change that [`LeafWrite::append_entry`] logged.
    pub(crate) fn apply_entry(&mut self, payload: Option<&[u8]>, gsn: Gsn) {
        match (payload, self.found) {
            (None, true) => self.page.remove_at(self.index),
            (None, false) => debug_assert!(false, "removes an entry that was found"),
            (Some(payload), true) => self.page.replace_at(self.index, &[payload]),
            (Some(payload), false) => {
                let suffix = &self.key[self.page.fences().prefix..];
                self.page.insert_at(self.index, suffix, &[payload]);
            }
        }
        self.found = payload.is_some();
        self.page.set_word(1, gsn.max(self.page.page_gsn()).get());
    }
}
