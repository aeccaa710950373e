//! Lookups and the reading side of cursors. Nothing here writes shared memory unless an optimistic
//! read keeps losing.
//!
//! A cursor is a private copy of one leaf. Its fences say where to go on, so splits and merges
//! between two steps neither repeat nor skip a key: the next leaf is the one that covers the
//! upper fence *now*. The parent of the last leaf is remembered and believed if it still covers
//! the target (N5), which saves the way down from the root for each leaf.

use crate::context::TreeContext;
use crate::descend::{OPTIMISTIC_TRIES, Target};
use crate::node::build::{Entry, Records, entry, lower_fence, upper_fence};
use crate::node::layout::{
    FLAG_PLAIN, FLAG_TEMPORARY, HEADER_BYTES, KIND_LEAF, NodeRead, SLOT_BYTES,
};
use crate::tree::Tree;
use std::fmt;
use vellum_base::{PageId, Result};
use vellum_buffer::{Optimistic, PageBuf, PageRead, PageWrite};
use vellum_sync::Backoff;

/// Bytes of the leaf after the one at hand that are asked for: header, slots, and mostly the first records.
const WARM_BYTES: usize = 1024;

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

    fn position(self, page: &PageBuf) -> usize {
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
pub struct LeafCopy {
    page: PageBuf,
    id: PageId,
    version: u64,
    position: usize,
    count: usize,
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
        copy.count = copy.page.shape().count;
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

    /// Moves the position.
    #[inline]
    pub fn set_position(&mut self, position: usize) {
        debug_assert!(position <= self.count);
        self.position = position;
    }

    #[inline]
    fn entry(&self, index: usize) -> Entry<'_> {
        debug_assert!(index < self.count);
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
        Records::new(&self.page)
    }

    /// First index whose key is >= `key`, and whether it is equal. `key` must lie between the fences.
    pub fn find(&self, key: &[u8]) -> (usize, bool) {
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
        leaf.copy_ends_to(slots_end / 8, shape.heap / 8, &mut self.page);
        if !leaf.validate() {
            self.id = PageId::ZERO;
            return false;
        }
        self.id = leaf.page_id();
        self.version = leaf.version();
        self.parent = parent;
        true
    }

    fn settle(&mut self, tree: PageId, seek: Seek<'_>) {
        self.tree = tree;
        self.count = self.page.shape().count;
        self.position = seek.position(&self.page);
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
    /// I/O, corruption of a page on the way.
    pub fn read_leaf(&self, seek: Seek<'_>, into: &mut LeafCopy) -> Result<()> {
        self.context().count_search();
        let target = seek.target();
        if into.tree == self.root() && !into.parent.is_zero() && self.read_sibling(target, into)? {
            into.settle(self.root(), seek);
            return Ok(());
        }
        let mut backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_TRIES {
            if let Some(path) = self.try_descend(target, 0)? {
                let parent = path.parent.map_or(PageId::ZERO, |parent| parent.page_id());
                if into.take(&path.page, parent) {
                    into.settle(self.root(), seek);
                    return Ok(());
                }
            }
            backoff.wait();
        }
        let (leaf, parent) = self.latch_leaf(target)?;
        let copied = into.take(&leaf.optimistic(), parent);
        debug_assert!(copied, "a latched page does not change");
        into.settle(self.root(), seek);
        Ok(())
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
        !copy.id.is_zero()
            && self
                .context()
                .pool()
                .try_optimistic(copy.id)
                .is_some_and(|page| page.version() == copy.version)
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
