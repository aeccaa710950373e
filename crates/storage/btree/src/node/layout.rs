//! The bytes of a tree page, and reading them.
//!
//! One trait over [`PageRead`], so that a page under a latch, a page read optimistically and a
//! private copy are interpreted by the same code.
//!
//! Layout (little-endian; offsets 0..24 are the common page header of design note 0001):
//!
//! | offset | type | what |
//! | --- | --- | --- |
//! | 24 | u8 | level: 0 leaf, parents of leaves 1, … |
//! | 25 | u8 | open bounds: bit 0 no lower fence, bit 1 no upper fence |
//! | 26 | u16 | slots |
//! | 28 | u16 | heap start: lowest offset of a record |
//! | 30 | u16 | free bytes, were the heap compacted |
//! | 32 | u16 | length of the lower fence |
//! | 34 | u16 | length of the upper fence |
//! | 36 | u16 | length of the prefix that all keys between the fences share |
//! | 38 | u16 | slot of the last insert (a hint for splits) |
//! | 40 | u64 | inner pages: rightmost child; leaves: zero |
//! | 48 | u64 × slots | slots in key order: suffix length u16, record offset u16, key head u32 |
//! | heap start | | records: payload length u16, key suffix, payload |
//! | end | | lower fence, then upper fence, up to the last byte |
//!
//! The key head is the first four bytes after the prefix, zero padded, as a number that compares
//! like the bytes; it fills the upper half of the slot's word, so one load serves a probe.
//! An inner page's payload is the page id of the child that holds keys *below* the slot's key.
//!
//! Invariants:
//! - N1 lower fence <= every key < upper fence. A key equal to the lower fence belongs here.
//! - N2 the prefix is the longest common prefix of both fences; empty if a bound is open. Its
//!   bytes are the head of the lower fence.
//! - N3 slots ascend by key, no key twice.
//! - N4 free = page size - header - slots - records - fences, where a record's bytes are exactly
//!   `2 + suffix + payload`; what was given up by shrinking or removing counts as free.
//! - N5 (I_live) a page that nobody latches exclusively and whose kind is leaf or inner is linked
//!   in the tree that its header names; or it is a leaf of a load's tree, which nobody but the load
//!   knows (U1 in `bulk`). So a remembered page id may be believed once kind, tree, level and fences
//!   were checked.
//!
//! Concurrency: none here. Every read is bounded for any bytes (W1 of `words`): what a torn page
//! yields is garbage, never a panic or an endless loop.

use std::cmp::Ordering;
use std::hint::select_unpredictable;
use vellum_base::{Gsn, PageId};
use vellum_buffer::{PageRead, first_eight};

/// Bytes before the first slot.
pub const HEADER_BYTES: usize = 48;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 8;
/// Bytes of a record beyond its key suffix and payload.
pub const RECORD_OVERHEAD: usize = 2;
/// Bytes of a child's page id, the payload of inner pages.
pub const CHILD_BYTES: usize = 8;

/// Page kind of inner pages (0001).
pub const KIND_FREE: u8 = 0;
/// Page kind of inner pages (0001).
pub const KIND_INNER: u8 = 3;
/// Page kind of leaves (0001).
pub const KIND_LEAF: u8 = 4;
/// Page kind of overflow chains (0001).
pub const KIND_OVERFLOW: u8 = 5;

/// Page flag: version data, neither logged nor redone.
pub const FLAG_TEMPORARY: u8 = vellum_buffer::FLAG_TEMPORARY;
/// Page flag: payloads are plain bytes, not rows; a `RowFormat` is not asked about them.
pub const FLAG_PLAIN: u8 = vellum_buffer::FLAG_PLAIN;
/// Page flag: some row holds its old versions (0013). A hint for eviction.
pub const FLAG_FAT: u8 = vellum_buffer::FLAG_FAT;

/// No lower fence: the page takes every key below its upper fence.
pub const OPEN_LOWER: u8 = 1;
/// No upper fence: the page takes every key from its lower fence on.
pub const OPEN_UPPER: u8 = 2;

const _: () = assert!(HEADER_BYTES.is_multiple_of(8));

/// What word 3 of a page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Zero for leaves.
    pub level: u8,
    /// [`OPEN_LOWER`], [`OPEN_UPPER`].
    pub open: u8,
    /// Slots.
    pub count: usize,
    /// Lowest offset of a record.
    pub heap: usize,
    /// Free bytes after compaction.
    pub free: usize,
}

impl Shape {
    #[inline]
    pub(crate) fn decode(word: u64) -> Self {
        Self {
            level: word as u8,
            open: (word >> 8) as u8,
            count: usize::from((word >> 16) as u16),
            heap: usize::from((word >> 32) as u16),
            free: usize::from((word >> 48) as u16),
        }
    }

    #[inline]
    pub(crate) fn encode(self) -> u64 {
        debug_assert!(self.count <= 0xffff && self.heap <= 0xffff && self.free <= 0xffff);
        u64::from(self.level)
            | u64::from(self.open) << 8
            | (self.count as u64) << 16
            | (self.heap as u64) << 32
            | (self.free as u64) << 48
    }

    /// Bytes between the last slot and the first record.
    #[inline]
    pub fn gap(self) -> usize {
        self.heap
            .saturating_sub(HEADER_BYTES + self.count * SLOT_BYTES)
    }
}

/// What word 4 of a page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fences {
    /// Length of the lower fence.
    pub lower: usize,
    /// Length of the upper fence.
    pub upper: usize,
    /// Length of the shared prefix.
    pub prefix: usize,
    /// Slot of the last insert.
    pub last_insert: usize,
}

impl Fences {
    #[inline]
    pub(crate) fn decode(word: u64) -> Self {
        Self {
            lower: usize::from(word as u16),
            upper: usize::from((word >> 16) as u16),
            prefix: usize::from((word >> 32) as u16),
            last_insert: usize::from((word >> 48) as u16),
        }
    }

    #[inline]
    pub(crate) fn encode(self) -> u64 {
        debug_assert!(self.prefix <= self.lower && self.prefix <= self.upper);
        self.lower as u64
            | (self.upper as u64) << 16
            | (self.prefix as u64) << 32
            | (self.last_insert as u64) << 48
    }
}

/// One slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// First four bytes of the suffix, comparable as a number.
    pub head: u32,
    /// Where the record starts.
    pub offset: usize,
    /// Length of the key behind the prefix.
    pub suffix: usize,
}

impl Slot {
    #[inline]
    pub(crate) fn decode(word: u64) -> Self {
        Self {
            head: (word >> 32) as u32,
            offset: usize::from((word >> 16) as u16),
            suffix: usize::from(word as u16),
        }
    }

    #[inline]
    pub(crate) fn encode(self) -> u64 {
        debug_assert!(self.offset <= 0xffff && self.suffix <= 0xffff);
        u64::from(self.head) << 32 | (self.offset as u64) << 16 | self.suffix as u64
    }

    /// The word of a slot once all records at `offset` and below it have moved down by `bytes`. Compared in the place where the offset stands: who asks does so
    /// of all slots of a leaf.
    #[inline]
    pub(crate) fn moved_down(word: u64, offset: usize, bytes: usize) -> u64 {
        let last = (offset as u32) << 16 | 0xffff;
        let down = if word as u32 <= last { bytes } else { 0 };
        debug_assert!(Self::decode(word).offset >= down);
        word - ((down as u64) << 16)
    }

    /// Where the key suffix starts.
    #[inline]
    pub fn key_at(self) -> usize {
        self.offset + RECORD_OVERHEAD
    }

    /// Where the payload starts.
    #[inline]
    pub fn payload_at(self) -> usize {
        self.offset + RECORD_OVERHEAD + self.suffix
    }
}

/// The first four bytes of a key suffix as a number that compares like them.
#[inline]
pub fn head_of(suffix: &[u8]) -> u32 {
    (first_eight(suffix) >> 32) as u32
}

/// The eight bytes behind the head of a key suffix, zero padded, as a number that compares like them.
#[inline]
fn behind_head(suffix: &[u8]) -> u64 {
    first_eight(suffix.get(4..).unwrap_or(&[]))
}

/// Length of the longest common prefix.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The shortest key `s` with `left < s <= right` that is a prefix of `right`.
pub fn separator<'k>(left: &[u8], right: &'k [u8]) -> &'k [u8] {
    debug_assert!(
        left < right,
        "a separator stands between two different keys"
    );
    &right[..(common_prefix(left, right) + 1).min(right.len())]
}

/// Bytes that a record with its slot takes.
#[inline]
pub fn record_bytes(suffix: usize, payload: usize) -> usize {
    SLOT_BYTES + RECORD_OVERHEAD + suffix + payload
}

/// Interpreting the bytes of a tree page.
pub trait NodeRead: PageRead {
    /// Kind and flags of the page (0001).
    #[inline]
    fn kind_and_flags(&self) -> (u8, u8) {
        let word = self.word(0);
        ((word >> 32) as u8, (word >> 40) as u8)
    }

    /// GSN of the last logged change.
    #[inline]
    fn page_gsn(&self) -> Gsn {
        Gsn(self.word(1))
    }

    /// Root of the tree that the page says it belongs to.
    #[inline]
    fn tree_id(&self) -> PageId {
        PageId(self.word(2))
    }

    /// Level, bounds, slots, heap, free bytes.
    #[inline]
    fn shape(&self) -> Shape {
        Shape::decode(self.word(3))
    }

    /// Lengths of fences and prefix.
    #[inline]
    fn fences(&self) -> Fences {
        Fences::decode(self.word(4))
    }

    /// Inner pages: the child with the largest keys.
    #[inline]
    fn rightmost(&self) -> PageId {
        PageId(self.word(5))
    }

    /// Slot `index`.
    #[inline]
    fn slot(&self, index: usize) -> Slot {
        Slot::decode(self.word(HEADER_BYTES / 8 + index))
    }

    /// Payload length of a slot's record, never more than a page.
    #[inline]
    fn payload_len(&self, slot: Slot) -> usize {
        usize::from(self.u16_at(slot.offset)).min(self.size())
    }

    /// Bytes of the record of slot `index`.
    #[inline]
    fn record_len(&self, index: usize) -> usize {
        let slot = self.slot(index);
        RECORD_OVERHEAD + slot.suffix + self.payload_len(slot)
    }

    /// Where the lower fence starts.
    #[inline]
    fn lower_at(&self, fences: Fences) -> usize {
        self.size().saturating_sub(fences.lower + fences.upper)
    }

    /// Where the upper fence starts.
    #[inline]
    fn upper_at(&self, fences: Fences) -> usize {
        self.size().saturating_sub(fences.upper)
    }

    /// Orders the key of a slot against a suffix with the given head.
    #[inline]
    fn compare_slot(&self, slot: Slot, suffix: &[u8], head: u32) -> Ordering {
        match slot.head.cmp(&head) {
            Ordering::Equal => self.compare_behind_head(slot, suffix, behind_head(suffix)),
            other => other,
        }
    }

    /// Number of slots of `from..to` whose heads are below `limit`, plus `from`.
    #[inline]
    fn heads_below(&self, from: usize, to: usize, limit: u64) -> usize {
        let base = HEADER_BYTES / 8;
        from + self.uppers_below(base + from, base + to, limit)
    }

    /// Orders the key of a slot against a suffix whose head it has; `behind` are the eight bytes behind the suffix's head.
    ///
    /// Zero-padded bytes that differ order as the strings do. Where they are equal and one of the strings ends in them,
    /// that one is the head of the other, or both are the same: their lengths decide.
    #[inline]
    fn compare_behind_head(&self, slot: Slot, suffix: &[u8], behind: u64) -> Ordering {
        if slot.suffix > 4 && suffix.len() > 4 {
            let mine = self.u64_at(slot.key_at() + 4).swap_bytes();
            let mine = mine
                & !u64::MAX
                    .checked_shr(8 * (slot.suffix as u32 - 4))
                    .unwrap_or(0);
            if mine != behind {
                return mine.cmp(&behind);
            }
            if slot.suffix > 12 && suffix.len() > 12 {
                let rest = slot.suffix.min(self.size()).saturating_sub(12);
                return self.compare(slot.key_at() + 12, rest, &suffix[12..]);
            }
        }
        slot.suffix.cmp(&suffix.len())
    }

    /// Number of slots whose key is below `suffix`, and whether the next one equals it.
    #[inline]
    fn lower_bound(&self, count: usize, suffix: &[u8]) -> (usize, bool) {
        let head = u64::from(head_of(suffix));
        let head_at = |at: usize| self.word(HEADER_BYTES / 8 + at) >> 32;
        // All heads are alike where a page without a fence has no prefix and all keys begin alike: in the root and along the edges, so on
        // most ways down.
        let alike = count > 1 && head_at(0) == head && head_at(count - 1) == head;
        let (mut low, mut high) = (0, count);
        if !alike {
            low = self.heads_below(0, count, head);
            // Then the run of equal heads: mostly none or one slot.
            if low >= count || head_at(low) != head {
                return (low, false);
            }
            high = low + 1;
            if high < count && head_at(high) == head {
                high = self.heads_below(high, count, head + 1);
            }
        }
        // As for the heads: no step is a branch on what was read.
        let behind = behind_head(suffix);
        let mut rest = high - low;
        while rest > 1 {
            let half = rest / 2;
            let slot = self.slot(low + half - 1);
            let below = self.compare_behind_head(slot, suffix, behind).is_lt();
            low = select_unpredictable(below, low + half, low);
            rest -= half;
        }
        match self.compare_behind_head(self.slot(low), suffix, behind) {
            Ordering::Less => (low + 1, false),
            order => (low, order.is_eq()),
        }
    }

    /// Part of `key` behind this page's prefix. A key outside the fences gives garbage.
    #[inline]
    fn suffix_of<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.get(self.fences().prefix..).unwrap_or(&[])
    }

    /// Finds `key`, which must lie between the fences.
    #[inline]
    fn find(&self, key: &[u8]) -> (usize, bool) {
        self.lower_bound(self.shape().count, self.suffix_of(key))
    }

    /// As [`NodeRead::find`], for a key that likely follows the last one that was inserted here: rows that come in order.
    #[inline]
    fn find_next(&self, key: &[u8]) -> (usize, bool) {
        let (count, last) = (self.shape().count, self.fences().last_insert);
        let suffix = self.suffix_of(key);
        let head = head_of(suffix);
        let next = last + 1;
        if last < count
            && self.compare_slot(self.slot(last), suffix, head).is_lt()
            && (next == count || self.compare_slot(self.slot(next), suffix, head).is_gt())
        {
            return (next, false);
        }
        self.lower_bound(count, suffix)
    }

    /// True if `key` lies between the fences: lower <= key < upper.
    #[inline]
    fn covers(&self, key: &[u8]) -> bool {
        let (open, fences) = (self.shape().open, self.fences());
        (open & OPEN_LOWER != 0
            || self.compare(self.lower_at(fences), fences.lower, key) != Ordering::Greater)
            && (open & OPEN_UPPER != 0
                || self.compare(self.upper_at(fences), fences.upper, key) == Ordering::Greater)
    }

    /// True if the keys directly below `key` are here: lower < key <= upper.
    #[inline]
    fn covers_below(&self, key: &[u8]) -> bool {
        let (open, fences) = (self.shape().open, self.fences());
        (open & OPEN_LOWER != 0
            || self.compare(self.lower_at(fences), fences.lower, key) == Ordering::Less)
            && (open & OPEN_UPPER != 0
                || self.compare(self.upper_at(fences), fences.upper, key) != Ordering::Less)
    }

    /// Child number `index` of an inner page; the rightmost is number `count`.
    #[inline]
    fn child(&self, index: usize, count: usize) -> PageId {
        if index >= count {
            return self.rightmost();
        }
        PageId(self.u64_at(self.slot(index).payload_at()))
    }

    /// Loads the cache lines of header and slots of a typical leaf, all at once: a search through
    /// cold ones would wait for them one after the other.
    #[inline]
    fn touch_slots(&self) {
        let mut word = 0;
        let mut index = 0;
        while index < self.size() / 112 {
            word |= self.word(index);
            index += 8;
        }
        std::hint::black_box(word);
    }

    /// Bytes of fences, slots and records together.
    #[inline]
    fn used_bytes(&self) -> usize {
        (self.size() - HEADER_BYTES).saturating_sub(self.shape().free)
    }
}

impl<P: PageRead + ?Sized> NodeRead for P {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_is_the_shortest_prefix_above_the_left_key() {
        assert_eq!(separator(b"abc", b"abe"), b"abe");
        assert_eq!(separator(b"abc", b"axyz"), b"ax");
        assert_eq!(separator(b"ab", b"abcd"), b"abc");
        assert_eq!(separator(b"", b"\0\0"), b"\0");
    }

    #[test]
    fn heads_compare_like_the_bytes() {
        let keys: [&[u8]; 7] = [b"", b"\0", b"a", b"ab", b"abc", b"abcd", b"b"];
        for pair in keys.windows(2) {
            assert!(head_of(pair[0]) <= head_of(pair[1]));
        }
        assert_eq!(head_of(b"abcdef"), head_of(b"abcd"));
    }

    #[test]
    fn words_decode_to_what_was_encoded() {
        let shape = Shape {
            level: 3,
            open: 2,
            count: 513,
            heap: 16384,
            free: 777,
        };
        assert_eq!(Shape::decode(shape.encode()), shape);
        let fences = Fences {
            lower: 4096,
            upper: 17,
            prefix: 16,
            last_insert: 900,
        };
        assert_eq!(Fences::decode(fences.encode()), fences);
        let slot = Slot {
            head: 0xdead_beef,
            offset: 16383,
            suffix: 4096,
        };
        assert_eq!(Slot::decode(slot.encode()), slot);
    }
}
