//! Building whole tree pages: everything that moves a fence.
//!
//! Structure changes copy the pages they touch, build the new ones here in private buffers, and
//! copy those back: prefix and suffixes change with the fences, and a page that does not fit is
//! found out before anything was changed.

use super::edit::{NodeWrite, parts_len};
use super::layout::{
    CHILD_BYTES, FLAG_TEMPORARY, Fences, HEADER_BYTES, KIND_INNER, KIND_LEAF, NodeRead, OPEN_LOWER,
    OPEN_UPPER, RECORD_OVERHEAD, SLOT_BYTES, Shape, Slot, common_prefix, head_of, record_bytes,
    separator,
};
use std::ops::Range;
use vellum_base::PageId;
use vellum_buffer::{PageBuf, PageBytes, PageRead, PageWrite};

/// What a page says about itself apart from its records.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'f> {
    /// Root of the tree.
    pub tree: PageId,
    /// `FLAG_TEMPORARY`, `FLAG_PLAIN`.
    pub flags: u8,
    /// Zero for leaves.
    pub level: u8,
    /// Lower fence, `None` for the leftmost page of its level.
    pub lower: Option<&'f [u8]>,
    /// Upper fence, `None` for the rightmost page of its level.
    pub upper: Option<&'f [u8]>,
    /// Rightmost child of an inner page.
    pub rightmost: PageId,
}

impl Frame<'_> {
    /// Length of the prefix that the fences share.
    pub fn prefix(&self) -> usize {
        match (self.lower, self.upper) {
            (Some(lower), Some(upper)) => common_prefix(lower, upper),
            _ => 0,
        }
    }

    /// Bytes for records and slots in a page with these fences.
    pub fn capacity(&self, page_size: usize) -> usize {
        let fences = self.lower.map_or(0, <[u8]>::len) + self.upper.map_or(0, <[u8]>::len);
        page_size - HEADER_BYTES - fences
    }

    /// True for temporary pages.
    pub fn temporary(&self) -> bool {
        self.flags & FLAG_TEMPORARY != 0
    }
}

/// Fills a private page with records in key order.
pub struct Builder<'b> {
    page: &'b mut PageBuf,
    prefix: usize,
    count: usize,
    heap: usize,
}

impl<'b> Builder<'b> {
    /// Gives `page`, whatever it holds, the frame and no record. Its bytes are all set when it is finished.
    pub fn new(page: &'b mut PageBuf, frame: &Frame<'_>) -> Self {
        let (lower, upper) = (frame.lower.unwrap_or(&[]), frame.upper.unwrap_or(&[]));
        debug_assert!(
            frame.lower.is_none() || frame.upper.is_none() || lower < upper,
            "N1"
        );
        let prefix = frame.prefix();
        let size = page.size();
        for index in 0..HEADER_BYTES / 8 {
            page.set_word(index, 0);
        }
        page.set_u8(
            4,
            if frame.level == 0 {
                KIND_LEAF
            } else {
                KIND_INNER
            },
        );
        page.set_u8(5, frame.flags);
        page.set_u64(16, frame.tree.get());
        page.write(size - lower.len() - upper.len(), lower);
        page.write(size - upper.len(), upper);
        let mut open = 0;
        if frame.lower.is_none() {
            open |= OPEN_LOWER;
        }
        if frame.upper.is_none() {
            open |= OPEN_UPPER;
        }
        let heap = size - lower.len() - upper.len();
        page.set_shape(Shape {
            level: frame.level,
            open,
            count: 0,
            heap,
            free: heap - HEADER_BYTES,
        });
        page.set_fences(Fences {
            lower: lower.len(),
            upper: upper.len(),
            prefix,
            last_insert: 0,
        });
        page.set_word(5, frame.rightmost.get());
        Self {
            page,
            prefix,
            count: 0,
            heap,
        }
    }

    /// Appends a record whose key is `key.0` followed by `key.1`. False, and nothing changed, if it
    /// does not fit.
    pub fn push(&mut self, key: (&[u8], &[u8]), payload: &[&[u8]]) -> bool {
        let skip = self.prefix;
        debug_assert!(key.0.len() + key.1.len() >= skip, "N2");
        let (first, second) = if skip <= key.0.len() {
            (&key.0[skip..], key.1)
        } else {
            (&[][..], &key.1[skip - key.0.len()..])
        };
        let (suffix, length) = (first.len() + second.len(), parts_len(payload));
        let bytes = RECORD_OVERHEAD + suffix + length;
        let low = HEADER_BYTES + (self.count + 1) * SLOT_BYTES;
        if self.heap < low + bytes {
            return false;
        }
        self.heap -= bytes;
        let at = self.heap;
        self.page
            .set_u16(at, u16::try_from(length).expect("a payload fits a page"));
        self.page.write(at + RECORD_OVERHEAD, first);
        self.page.write(at + RECORD_OVERHEAD + first.len(), second);
        let mut to = at + RECORD_OVERHEAD + suffix;
        for part in payload {
            self.page.write(to, part);
            to += part.len();
        }
        let head = if first.len() >= 4 || second.is_empty() {
            head_of(first)
        } else {
            let mut bytes = [0; 4];
            self.page
                .copy_out(at + RECORD_OVERHEAD, &mut bytes[..suffix.min(4)]);
            u32::from_be_bytes(bytes)
        };
        self.page.set_slot(
            self.count,
            Slot {
                head,
                offset: at,
                suffix,
            },
        );
        self.count += 1;
        true
    }

    /// Appends records `range` of another page of the same level. False if one does not fit.
    pub fn push_range(&mut self, from: &PageBuf, range: Range<usize>) -> bool {
        // A split makes prefixes longer, so suffixes lose their first bytes; joining gives some back.
        let cut = self.prefix.checked_sub(from.fences().prefix);
        range.into_iter().all(|index| {
            cut.and_then(|cut| self.push_cut(from, from.slot(index), cut))
                .unwrap_or_else(|| {
                    let entry = entry(from, index);
                    self.push((entry.prefix, entry.suffix), &[entry.payload])
                })
        })
    }

    /// As [`Builder::push`], for a record of another page whose suffix loses its first `cut` bytes: what is behind them is
    /// copied in one piece. `None` if the bytes make no sense.
    #[inline]
    fn push_cut(&mut self, from: &PageBuf, slot: Slot, cut: usize) -> Option<bool> {
        let length = from.payload_len(slot);
        let suffix = slot.suffix.checked_sub(cut)?;
        let (start, end) = (slot.key_at() + cut, slot.payload_at() + length);
        let record = from.as_bytes().get(start..end)?;
        let bytes = RECORD_OVERHEAD + record.len();
        let low = HEADER_BYTES + (self.count + 1) * SLOT_BYTES;
        if self.heap < low + bytes {
            return Some(false);
        }
        self.heap -= bytes;
        let offset = self.heap;
        let to = &mut self.page.as_bytes_mut()[offset..offset + bytes];
        let (head, body) = to.split_at_mut(RECORD_OVERHEAD);
        head.copy_from_slice(&(length as u16).to_le_bytes());
        body.copy_from_slice(record);
        let head = if cut == 0 {
            slot.head
        } else {
            head_of(&record[..suffix])
        };
        let slot = Slot {
            head,
            offset,
            suffix,
        };
        self.page.set_slot(self.count, slot);
        self.count += 1;
        Some(true)
    }

    /// Writes slot count and free bytes, and zeroes between slots and records.
    pub fn finish(self) {
        let slots_end = HEADER_BYTES + self.count * SLOT_BYTES;
        self.page.as_bytes_mut()[slots_end..self.heap].fill(0);
        let shape = self.page.shape();
        let free = self.heap - HEADER_BYTES - self.count * SLOT_BYTES;
        self.page.set_shape(Shape {
            count: self.count,
            heap: self.heap,
            free,
            ..shape
        });
        let fences = self.page.fences();
        self.page.set_fences(Fences {
            last_insert: self.count.saturating_sub(1),
            ..fences
        });
    }
}

/// One record of a private page.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'p> {
    /// First part of the key.
    pub prefix: &'p [u8],
    /// Second part of the key.
    pub suffix: &'p [u8],
    /// What is stored.
    pub payload: &'p [u8],
}

impl Entry<'_> {
    /// The whole key.
    pub fn key(&self) -> Vec<u8> {
        [self.prefix, self.suffix].concat()
    }
}

#[inline]
fn slice<P: PageBytes + ?Sized>(page: &P, at: usize, length: usize) -> &[u8] {
    page.as_bytes().get(at..at + length).unwrap_or(&[])
}

/// Record `index` of a private page; empty parts where the bytes make no sense.
#[inline]
pub fn entry<P: PageBytes + ?Sized>(page: &P, index: usize) -> Entry<'_> {
    let slot = page.slot(index);
    let fences = page.fences();
    Entry {
        prefix: slice(page, page.lower_at(fences), fences.prefix),
        suffix: slice(page, slot.key_at(), slot.suffix),
        payload: slice(page, slot.payload_at(), page.payload_len(slot)),
    }
}

/// The records of a private page: what they share is looked up once.
#[derive(Clone, Copy, Debug)]
pub struct Records<'p> {
    bytes: &'p [u8],
    prefix: &'p [u8],
}

impl<'p> Records<'p> {
    /// The records of a page.
    #[inline]
    pub(crate) fn new<P: PageBytes + ?Sized>(page: &'p P) -> Self {
        let fences = page.fences();
        Self {
            bytes: page.as_bytes(),
            prefix: slice(page, page.lower_at(fences), fences.prefix),
        }
    }

    /// What all keys begin with.
    #[inline]
    pub fn prefix(&self) -> &'p [u8] {
        self.prefix
    }

    /// Key (behind the prefix) and payload of record `index`, as [`entry`] has them: empty where the bytes make no sense.
    #[inline]
    pub fn get(&self, index: usize) -> (&'p [u8], &'p [u8]) {
        self.find(index).unwrap_or((&[], &[]))
    }

    #[inline]
    fn find(&self, index: usize) -> Option<(&'p [u8], &'p [u8])> {
        let word = self.bytes.get(HEADER_BYTES + index * SLOT_BYTES..)?;
        let slot = Slot::decode(u64::from_le_bytes(*word.first_chunk()?));
        let record = self.bytes.get(slot.offset..)?;
        let (length, record) = record.split_first_chunk::<RECORD_OVERHEAD>()?;
        let (suffix, record) = record.split_at_checked(slot.suffix)?;
        let payload = record.get(..usize::from(u16::from_le_bytes(*length)))?;
        Some((suffix, payload))
    }
}

/// Lower fence of a private page; `None` if open.
pub fn lower_fence<P: PageBytes + ?Sized>(page: &P) -> Option<&[u8]> {
    let fences = page.fences();
    (page.shape().open & OPEN_LOWER == 0).then(|| slice(page, page.lower_at(fences), fences.lower))
}

/// Upper fence of a private page; `None` if open.
pub fn upper_fence<P: PageBytes + ?Sized>(page: &P) -> Option<&[u8]> {
    let fences = page.fences();
    (page.shape().open & OPEN_UPPER == 0).then(|| slice(page, page.upper_at(fences), fences.upper))
}

/// The frame of an existing page.
pub fn frame_of(page: &PageBuf) -> Frame<'_> {
    Frame {
        tree: page.tree_id(),
        flags: page.kind_and_flags().1,
        level: page.shape().level,
        lower: lower_fence(page),
        upper: upper_fence(page),
        rightmost: page.rightmost(),
    }
}

/// Builds `to` from `range` of `from` under a new frame. False if it does not fit.
pub fn rebuild(from: &PageBuf, range: Range<usize>, frame: &Frame<'_>, to: &mut PageBuf) -> bool {
    let mut builder = Builder::new(to, frame);
    let fits = builder.push_range(from, range);
    builder.finish();
    fits
}

/// The two pages that a leaf becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPlan {
    /// Slots that stay in the left page.
    pub left: usize,
    /// Upper fence of the left page, lower fence of the right one.
    pub separator: Vec<u8>,
}

/// The record that a leaf is split for.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'k> {
    /// Its key, between the fences.
    pub key: &'k [u8],
    /// Its payload's length.
    pub payload: usize,
    /// Bytes that the leaf shall have free beside it, if it can.
    pub spare: usize,
}

/// Chooses where to split a leaf so that `incoming` comes nearer to fitting: by bytes in the
/// middle, at the incoming record where inserts ascend, behind everything at the right edge.
/// `None` if there is nothing to separate.
///
/// Every split takes at least one record away from the page that the incoming one belongs to, so
/// repeating it ends with a page that has room.
pub fn plan_leaf_split(page: &PageBuf, incoming: Incoming<'_>) -> Option<SplitPlan> {
    let shape = page.shape();
    let (index, found) = page.find(incoming.key);
    // The page as it would be with the incoming record: `total` records, number `index` is it.
    let total = shape.count + usize::from(!found);
    if total < 2 {
        return None;
    }
    let existing = |number: usize| {
        if found || number < index {
            number
        } else {
            number - 1
        }
    };
    let record = |index: usize| {
        let slot = page.slot(index);
        record_bytes(slot.suffix, page.payload_len(slot))
    };
    let bytes = |number: usize| {
        if number == index {
            return record_bytes(page.suffix_of(incoming.key).len(), incoming.payload);
        }
        record(existing(number))
    };
    let ascending = !found && index > 0 && index == page.fences().last_insert + 1;
    let at_edge = !found && index == shape.count && shape.open & OPEN_UPPER != 0;
    let boundary = if at_edge || (ascending && shape.count >= 4) {
        index
    } else {
        let half = (0..total).map(bytes).sum::<usize>() / 2;
        let (mut sum, mut number) = (0, 0);
        while number < total && sum + bytes(number) / 2 < half {
            sum += bytes(number);
            number += 1;
        }
        number.clamp(1, total - 1)
    };
    debug_assert!((1..total).contains(&boundary));
    let key = |number: usize| {
        if number == index {
            incoming.key.to_vec()
        } else {
            entry(page, existing(number)).key()
        }
    };
    let separator = separator(&key(boundary - 1), &key(boundary)).to_vec();
    let left = if found || index >= boundary {
        boundary
    } else {
        boundary - 1
    };
    Some(SplitPlan { left, separator })
}

/// Number of the separator that moves up when an inner page is split for `key`; `None` without
/// separators.
pub fn plan_inner_split(page: &PageBuf, key: &[u8]) -> Option<usize> {
    let shape = page.shape();
    if shape.count == 0 {
        return None;
    }
    let (index, _) = page.find(key);
    if shape.open & OPEN_UPPER != 0 && index == shape.count {
        return Some(shape.count - 1);
    }
    let bytes = |number: usize| record_bytes(page.slot(number).suffix, CHILD_BYTES);
    let half = (0..shape.count).map(bytes).sum::<usize>() / 2;
    let (mut sum, mut number) = (0, 0);
    while number + 1 < shape.count && sum + bytes(number) / 2 < half {
        sum += bytes(number);
        number += 1;
    }
    // A page with one child is of no use, and joined again with its neighbour if it is at the edge of a range that goes.
    if shape.count >= 3 {
        number = number.clamp(1, shape.count - 2);
    }
    Some(number)
}

/// Joins two neighbouring pages into `to`. False if they do not fit into one.
pub fn join(left: &PageBuf, right: &PageBuf, to: &mut PageBuf) -> bool {
    let level = left.shape().level;
    let frame = Frame {
        lower: lower_fence(left),
        upper: upper_fence(right),
        rightmost: right.rightmost(),
        flags: left.kind_and_flags().1 | right.kind_and_flags().1,
        ..frame_of(left)
    };
    let mut builder = Builder::new(to, &frame);
    let mut fits = builder.push_range(left, 0..left.shape().count);
    if fits && level > 0 {
        let between = upper_fence(left).unwrap_or(&[]);
        fits = builder.push((between, &[]), &[&left.rightmost().get().to_le_bytes()]);
    }
    fits = fits && builder.push_range(right, 0..right.shape().count);
    builder.finish();
    fits
}
