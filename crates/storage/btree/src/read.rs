//! Lookups and the reading side of cursors. Nothing here writes shared memory unless an optimistic
//! read keeps losing.
//!
//! A cursor is a private copy of one leaf. Its fences say where to go on, so splits and merges
//! between two steps neither repeat nor skip a key: the next leaf is the one that covers the
//! upper fence *now*. The parent of the last leaf is remembered and believed if it still covers
//! the target (N5), which saves the way down from the root for each leaf.
//!
//! Who may want the first record only (a queue's head, `min`, `LIMIT 1`) begins with a glimpse: head, slots and fences of the leaf,
//! and then the records that he looks at, one at a time. Each is taken under the version that the first part had, as is
//! the rest once he goes on: a copy is never made of two states of its leaf.

use crate::context::TreeContext;
use crate::descend::{OPTIMISTIC_TRIES, Target};
use crate::node::build::{Entry, Records, entry, lower_fence, upper_fence};
use crate::node::layout::{
    FLAG_PLAIN, FLAG_TEMPORARY, HEADER_BYTES, KIND_LEAF, NodeRead, OPEN_LOWER, OPEN_UPPER,
    SLOT_BYTES,
};
use crate::tree::Tree;
use std::fmt;
use std::ops::Range;
use vellum_base::{PageId, Result};
use vellum_buffer::{Optimistic, PageBuf, PageRead, PageWrite};
use vellum_sync::Backoff;

/// Bytes of the leaf after the one at hand that are asked for: header, slots, and mostly the first records.
const WARM_BYTES: usize = 1024;

/// Records that a glimpse adds one at a time; who looks at more is given all of them.
const GLIMPSED: usize = 16;

/// Where a cursor wants to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek<'k> {
    /// At the first key >= this one.
    AtOrAfter(&'k [u8]),
    /// At the first key > this one.
    After(&'k [u8]),
    /// Behind the last key < this one.
    Before(&'k [u8]),
    /// Behind the last key <= this one.
    AtOrBefore(&'k [u8]),
    /// At the first key.
    First,
    /// Behind the last key.
    Last,
}

impl<'k> Seek<'k> {
    fn target(self) -> Target<'k> {
        match self {
            Self::AtOrAfter(key) | Self::After(key) | Self::AtOrBefore(key) => {
                Target::Covering(key)
            }
            Self::Before(key) => Target::Below(key),
            Self::First => Target::First,
            Self::Last => Target::Last,
        }
    }

    /// True if all keys from here to the fence of a leaf lie before `end`, that way.
    fn ends_before(self, page: &impl NodeRead, end: &[u8]) -> bool {
        let (open, fences) = (page.shape().open, page.fences());
        match self {
            Self::AtOrAfter(_) | Self::After(_) | Self::First => {
                open & OPEN_UPPER == 0
                    && page
                        .compare(page.upper_at(fences), fences.upper, end)
                        .is_le()
            }
            Self::Before(_) | Self::AtOrBefore(_) | Self::Last => {
                open & OPEN_LOWER == 0
                    && page
                        .compare(page.lower_at(fences), fences.lower, end)
                        .is_gt()
            }
        }
    }

    fn position(self, page: &impl NodeRead) -> usize {
        match self {
            Self::AtOrAfter(key) | Self::Before(key) => page.find(key).0,
            Self::After(key) | Self::AtOrBefore(key) => {
                let (index, found) = page.find(key);
                index + usize::from(found)
            }
            Self::First => 0,
            Self::Last => page.shape().count,
        }
    }
}

/// A private copy of one leaf, as it was at one instant, with a position in it.
///
/// A glimpse ([`Tree::glimpse_leaf`]) lacks records until they are asked for ([`LeafCopy::has`]); what names all of them is for
/// whole copies.
pub struct LeafCopy {
    page: PageBuf,
    id: PageId,
    version: u64,
    position: usize,
    count: usize,
    /// The records that are there.
    copied: Range<usize>,
    parent: PageId,
    tree: PageId,
}

impl fmt::Debug for LeafCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "LeafCopy(page {}, {} of {})",
            self.id, self.position, self.count
        )
    }
}

impl LeafCopy {
    /// An empty copy, to be filled by [`Tree::read_leaf`].
    pub fn new(page_size: usize) -> Self {
        let mut page = PageBuf::to_overwrite(page_size);
        // No fences and no records.
        for index in 0..HEADER_BYTES / 8 {
            page.set_word(index, 0);
        }
        Self {
            page,
            id: PageId::ZERO,
            version: 0,
            position: 0,
            count: 0,
            copied: 0..0,
            parent: PageId::ZERO,
            tree: PageId::ZERO,
        }
    }

    /// A copy of page `page`, if it is in memory, holds still for a moment, and is a leaf of rows.
    pub fn of_page(context: &TreeContext, page: PageId) -> Option<Self> {
        let leaf = context.pool().try_optimistic(page)?;
        let mut copy = Self::new(context.page_size());
        if !copy.take(&leaf, PageId::ZERO) {
            return None;
        }
        let (kind, flags) = copy.page.kind_and_flags();
        if kind != KIND_LEAF || flags & (FLAG_PLAIN | FLAG_TEMPORARY) != 0 {
            return None;
        }
        copy.tree = copy.page.tree_id();
        copy.counted();
        Some(copy)
    }

    /// Root of the tree that the leaf belongs to; zero before the first read.
    pub fn tree_root(&self) -> PageId {
        self.tree
    }

    /// The leaf's page id; zero before the first read.
    pub fn page_id(&self) -> PageId {
        self.id
    }

    /// The copy itself.
    pub(crate) fn page(&self) -> &PageBuf {
        debug_assert!(self.is_whole());
        &self.page
    }

    /// Version of the page when it was copied.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Records in the leaf. May be zero.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if the leaf has no record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Where the seek led: forward, the first record to visit is this one; backward, it is the one
    /// before. `len()` and 0 mean: nothing here, go on at the fence.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// True if no record is missing.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.copied.len() == self.count
    }

    /// True if record `index` is there.
    #[inline]
    pub fn has(&self, index: usize) -> bool {
        self.copied.contains(&index)
    }

    /// Moves the position.
    #[inline]
    pub fn set_position(&mut self, position: usize) {
        debug_assert!(position <= self.count);
        self.position = position;
    }

    #[inline]
    fn entry(&self, index: usize) -> Entry<'_> {
        debug_assert!(self.has(index), "record {index} of {self:?}");
        entry(&self.page, index)
    }

    /// Key of record `index` in two parts.
    #[inline]
    pub fn key_parts(&self, index: usize) -> (&[u8], &[u8]) {
        let entry = self.entry(index);
        (entry.prefix, entry.suffix)
    }

    /// Replaces `out` by the key of record `index`.
    #[inline]
    pub fn key(&self, index: usize, out: &mut Vec<u8>) {
        let (prefix, suffix) = self.key_parts(index);
        out.clear();
        out.extend_from_slice(prefix);
        out.extend_from_slice(suffix);
    }

    /// Payload of record `index`.
    #[inline]
    pub fn payload(&self, index: usize) -> &[u8] {
        self.entry(index).payload
    }

    /// The records, for who goes through many of them.
    #[inline]
    pub fn records(&self) -> Records<'_> {
        debug_assert!(self.is_whole() && !self.id.is_zero(), "{self:?} is void");
        Records::new(&self.page)
    }

    /// First index whose key is >= `key`, and whether it is equal. `key` must lie between the fences.
    pub fn find(&self, key: &[u8]) -> (usize, bool) {
        debug_assert!(self.is_whole());
        self.page.find(key)
    }

    /// True if `key` lies between the fences.
    pub fn covers(&self, key: &[u8]) -> bool {
        !self.id.is_zero() && self.page.covers(key)
    }

    /// Keys here are at or above it; `None` if the leaf is the leftmost.
    pub fn lower_fence(&self) -> Option<&[u8]> {
        lower_fence(&self.page)
    }

    /// Keys here are below it; `None` if the leaf is the rightmost.
    pub fn upper_fence(&self) -> Option<&[u8]> {
        upper_fence(&self.page)
    }

    /// True if `page` holds the same records.
    pub(crate) fn same_rows(&self, page: &PageBuf) -> bool {
        self.count == page.shape().count
            && (0..self.count).all(|index| {
                let (mine, theirs) = (self.entry(index), entry(page, index));
                mine.suffix == theirs.suffix && mine.payload == theirs.payload
            })
            && self.lower_fence() == lower_fence(page)
            && self.upper_fence() == upper_fence(page)
    }

    fn take(&mut self, leaf: &Optimistic<'_>, parent: PageId) -> bool {
        // Not what is between slots and records: a leaf is on average less than three quarters full. A count and a heap that
        // were torn bound nothing, and are found out.
        let shape = leaf.shape();
        let slots_end = HEADER_BYTES + shape.count * SLOT_BYTES;
        self.take_words(leaf, slots_end / 8, shape.heap / 8);
        self.taken(leaf, parent)
    }

    /// As [`LeafCopy::take`], without records; positions in it.
    fn take_glimpse(&mut self, leaf: &Optimistic<'_>, parent: PageId, seek: Seek<'_>) -> bool {
        let slots_end = HEADER_BYTES + leaf.shape().count * SLOT_BYTES;
        let fences_at = leaf.lower_at(leaf.fences());
        self.take_words(leaf, slots_end / 8, fences_at / 8);
        let position = seek.position(leaf);
        if !self.taken(leaf, parent) {
            return false;
        }
        self.count = self.page.shape().count;
        self.position = position;
        self.copied = position..position;
        true
    }

    /// Copies the words before number `head` and those from number `tail` on.
    #[inline]
    fn take_words(&mut self, leaf: &Optimistic<'_>, head: usize, tail: usize) {
        leaf.copy_words_to(0..head, &mut self.page);
        leaf.copy_words_to(tail.max(head)..self.page.size() / 8, &mut self.page);
    }

    /// Notes what was copied, if that was the page at one instant.
    fn taken(&mut self, leaf: &Optimistic<'_>, parent: PageId) -> bool {
        if !leaf.validate() {
            self.void();
            return false;
        }
        self.id = leaf.page_id();
        self.version = leaf.version();
        self.parent = parent;
        true
    }

    /// Forgets what was copied: some of it may have been overwritten by what the leaf is by now.
    #[cold]
    fn void(&mut self) {
        (self.id, self.position, self.count, self.copied) = (PageId::ZERO, 0, 0, 0..0);
    }

    fn counted(&mut self) {
        self.count = self.page.shape().count;
        self.copied = 0..self.count;
    }

    fn settle(&mut self, tree: PageId, seek: Seek<'_>) {
        self.tree = tree;
        self.counted();
        self.position = seek.position(&self.page);
    }

    /// Adds record `index`, which lies beside those that are there, or all of them.
    fn add(&mut self, leaf: &Optimistic<'_>, index: usize) -> bool {
        if self.copied.len() >= GLIMPSED {
            return self.add_all(leaf);
        }
        let slot = self.page.slot(index);
        let record = slot.offset / 8..(slot.offset + leaf.record_len(index)).div_ceil(8);
        leaf.copy_words_to(record, &mut self.page);
        if !leaf.validate() {
            self.void();
            return false;
        }
        if index < self.copied.start {
            debug_assert_eq!(index + 1, self.copied.start);
            self.copied.start = index;
        } else {
            debug_assert_eq!(index, self.copied.end);
            self.copied.end = index + 1;
        }
        true
    }

    fn add_all(&mut self, leaf: &Optimistic<'_>) -> bool {
        let heap = self.page.shape().heap;
        leaf.copy_words_to(heap / 8..self.page.size() / 8, &mut self.page);
        if !leaf.validate() {
            self.void();
            return false;
        }
        self.copied = 0..self.count;
        true
    }
}

impl Tree {
    /// Looks `key` up; if found, replaces `out` by its payload. Latches nothing and writes nothing
    /// shared; may wait for a page from disk.
    ///
    /// # Errors
    /// I/O, corruption of a page on the way.
    #[inline]
    pub fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        self.context().count_search();
        let mut backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_TRIES {
            if let Some(path) = self.try_descend(Target::Covering(key), 0)?
                && let Some(found) = look_up(&path.page, key, out)
            {
                return Ok(found.is_some());
            }
            backoff.wait();
        }
        let (leaf, _) = self.latch_leaf(Target::Covering(key))?;
        Ok(copy_payload(&leaf, key, out).is_some())
    }

    /// Copies the leaf that `seek` leads to, and positions in it. The copy is the leaf as it was at
    /// one instant between call and return.
    ///
    /// # Errors
    /// I/O, corruption of a page on the way; corruption if the leaf does not lead beyond what was sought.
    pub fn read_leaf(&self, seek: Seek<'_>, into: &mut LeafCopy) -> Result<()> {
        self.context().count_search();
        let target = seek.target();
        if into.tree == self.root() && !into.parent.is_zero() && self.read_sibling(target, into)? {
            into.settle(self.root(), seek);
            return self.check_fences(into, seek);
        }
        let mut backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_TRIES {
            if let Some(path) = self.try_descend(target, 0)? {
                let parent = path.parent.map_or(PageId::ZERO, |parent| parent.page_id());
                if into.take(&path.page, parent) {
                    into.settle(self.root(), seek);
                    return self.check_fences(into, seek);
                }
            }
            backoff.wait();
        }
        let (leaf, parent) = self.latch_leaf(target)?;
        let copied = into.take(&leaf.optimistic(), parent);
        debug_assert!(copied, "a latched page does not change");
        into.settle(self.root(), seek);
        self.check_fences(into, seek)
    }

    /// The last key of the tree, whatever stands at it.
    ///
    /// # Errors
    /// As [`Tree::read_leaf`].
    pub fn last_key(&self) -> Result<Option<Vec<u8>>> {
        let mut leaf = LeafCopy::new(self.context().page_size());
        let mut beyond: Option<Vec<u8>> = None;
        loop {
            let seek = beyond.as_deref().map_or(Seek::Last, Seek::Before);
            self.read_leaf(seek, &mut leaf)?;
            if let Some(last) = leaf.position().checked_sub(1) {
                let mut key = Vec::new();
                leaf.key(last, &mut key);
                return Ok(Some(key));
            }
            match leaf.lower_fence() {
                Some(fence) => beyond = Some(fence.to_vec()),
                None => return Ok(None),
            }
        }
    }

    /// Whoever walks over leaves seeks each at a fence of the one before: one that does not lead further, which a damaged one may not, would be come back to for
    /// ever.
    #[inline]
    fn check_fences(&self, copy: &LeafCopy, seek: Seek<'_>) -> Result<()> {
        let leads_on = match seek {
            Seek::AtOrAfter(key) | Seek::After(key) => {
                copy.upper_fence().is_none_or(|fence| fence > key)
            }
            Seek::Before(key) => copy.lower_fence().is_none_or(|fence| fence < key),
            Seek::AtOrBefore(key) => copy.lower_fence().is_none_or(|fence| fence <= key),
            Seek::First | Seek::Last => true,
        };
        match leads_on {
            true => Ok(()),
            false => Err(self.not_sought(copy.id)),
        }
    }

    #[cold]
    fn not_sought(&self, id: PageId) -> vellum_base::StorageError {
        let what = "fences around what a leaf was sought for";
        self.context().corrupt(id, what, 1, 0)
    }

    /// As [`Tree::read_leaf`], for who may want one record only: records are not there before [`Tree::add_record`] or
    /// [`Tree::complete`] adds them. The copy is whole all the same unless all that way to the leaf's fence lies before `end`, where
    /// he stops at the latest: who goes through a part of one leaf goes mostly through all of that.
    ///
    /// # Errors
    /// As [`Tree::read_leaf`].
    pub fn glimpse_leaf(
        &self,
        seek: Seek<'_>,
        end: Option<&[u8]>,
        into: &mut LeafCopy,
    ) -> Result<()> {
        if let Some(path) = self.try_descend(seek.target(), 0)? {
            let parent = path.parent.map_or(PageId::ZERO, |parent| parent.page_id());
            if end.is_none_or(|end| seek.ends_before(&path.page, end)) {
                if into.take_glimpse(&path.page, parent, seek) {
                    self.context().count_search();
                    into.tree = self.root();
                    return self.check_fences(into, seek);
                }
            } else if into.take(&path.page, parent) {
                self.context().count_search();
                into.settle(self.root(), seek);
                return self.check_fences(into, seek);
            }
        }
        self.read_leaf(seek, into)
    }

    /// Adds record `index`, next to those that are there, to a glimpse. False if the leaf is no longer what it was, or not in
    /// memory: then the copy is void, and empty. Waits for nothing.
    #[inline]
    pub fn add_record(&self, copy: &mut LeafCopy, index: usize) -> bool {
        debug_assert!(index < copy.count);
        self.page_or_void(copy)
            .is_some_and(|leaf| copy.add(&leaf, index))
    }

    /// Makes a glimpse a whole copy; false as [`Tree::add_record`].
    #[inline]
    pub fn complete(&self, copy: &mut LeafCopy) -> bool {
        copy.is_whole()
            || self
                .page_or_void(copy)
                .is_some_and(|leaf| copy.add_all(&leaf))
    }

    /// The page of a copy, if it is what it was then; if not, the copy is void.
    #[inline]
    fn page_or_void(&self, copy: &mut LeafCopy) -> Option<Optimistic<'_>> {
        let page = self.page_of(copy);
        if page.is_none() {
            copy.void();
        }
        page
    }

    /// The page of a copy, if it is what it was then.
    fn page_of(&self, copy: &LeafCopy) -> Option<Optimistic<'_>> {
        let leaf = self.context().pool().try_optimistic(copy.id)?;
        (leaf.version() == copy.version).then_some(leaf)
    }

    /// Copies the wanted leaf by way of the remembered parent. Who comes this way goes through many leaves: the next one is on its way into the
    /// processor's caches while the rows of this one are looked at. Its first lines are enough: the processor goes on from there by
    /// itself, but not from one page into the next.
    fn read_sibling(&self, target: Target<'_>, into: &mut LeafCopy) -> Result<bool> {
        let Some(parent) = self.try_remembered(into.parent, target, 1) else {
            return Ok(false);
        };
        let count = parent.shape().count;
        let index = target.child_index(&parent, count);
        let child = parent.child(index, count);
        let next = match target {
            Target::Covering(_) | Target::First => Some(index + 1).filter(|next| *next <= count),
            Target::Below(_) | Target::Last => index.checked_sub(1),
        };
        let next = next.map(|next| parent.child(next, count));
        if !parent.validate() {
            return Ok(false);
        }
        let leaf = parent.follow(child)?;
        if !parent.validate() || !self.is_leaf(&leaf) {
            return Ok(false);
        }
        let id = into.parent;
        let taken = into.take(&leaf, id);
        // After the copy, which the memory has enough to do with.
        if let Some(next) = next {
            self.context().pool().warm(next, 0..WARM_BYTES);
        }
        Ok(taken)
    }

    /// True if the leaf has not changed since it was copied. Never waits for a page; an evicted one
    /// counts as changed.
    pub fn still_current(&self, copy: &LeafCopy) -> bool {
        !copy.id.is_zero() && self.page_of(copy).is_some()
    }
}

/// Copies the payload of `key`, and says in which slot it is, if it is there. `None` if the page changed meanwhile.
#[inline]
pub(crate) fn look_up(
    leaf: &Optimistic<'_>,
    key: &[u8],
    out: &mut Vec<u8>,
) -> Option<Option<usize>> {
    let found = copy_payload(leaf, key, out);
    leaf.validate().then_some(found)
}

#[inline]
fn copy_payload<P: PageRead + ?Sized>(leaf: &P, key: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let (index, found) = leaf.find(key);
    if found {
        let slot = leaf.slot(index);
        // No clearing: what is there is overwritten, only growth is filled.
        out.resize(leaf.payload_len(slot), 0);
        leaf.copy_out(slot.payload_at(), out);
    } else {
        out.clear();
    }
    found.then_some(index)
}
