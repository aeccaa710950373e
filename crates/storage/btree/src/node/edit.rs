//! Changing a tree page in place: insert, replace, patch, remove, compact.
//!
//! The caller holds the page exclusively, has found the slot, and has asked whether it fits. The
//! format is in `layout`; every function here keeps N1-N4.
//!
//! Not here: fences and prefix never change in place; whoever moves a fence rebuilds the page
//! (`build`).

use super::layout::{
    Fences, HEADER_BYTES, NodeRead, RECORD_OVERHEAD, SLOT_BYTES, Shape, Slot, head_of, record_bytes,
};
use vellum_base::PageId;
use vellum_buffer::{PageBuf, PageWrite};

/// Records up to this length are put together before they are written.
const SHORT_RECORD: usize = 128;

/// Total length of a payload that is given in parts.
pub fn parts_len(parts: &[&[u8]]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// Changing the bytes of a tree page.
pub trait NodeWrite: PageWrite {
    /// Replaces word 3.
    #[inline]
    fn set_shape(&mut self, shape: Shape) {
        self.set_word(3, shape.encode());
    }

    /// Replaces word 4.
    #[inline]
    fn set_fences(&mut self, fences: Fences) {
        self.set_word(4, fences.encode());
    }

    /// Replaces slot `index`.
    #[inline]
    fn set_slot(&mut self, index: usize, slot: Slot) {
        self.set_word(HEADER_BYTES / 8 + index, slot.encode());
    }

    /// Inner pages: replaces the pointer to child `index`.
    fn set_child(&mut self, index: usize, count: usize, child: PageId) {
        if index >= count {
            self.set_word(5, child.get());
        } else {
            let at = self.slot(index).payload_at();
            self.set_u64(at, child.get());
        }
    }

    /// Inserts a record as slot `index`. It must fit: `record_bytes(..) <= shape().free`. Compacts the heap if only the gap is
    /// too small.
    #[inline]
    fn insert_at(&mut self, index: usize, suffix: &[u8], payload: &[&[u8]]) {
        let length = parts_len(payload);
        let need = record_bytes(suffix.len(), length);
        let mut shape = self.shape();
        assert!(
            index <= shape.count && need <= shape.free,
            "inserted only after asking for room"
        );
        if shape.gap() < need {
            self.compact();
            shape = self.shape();
            assert!(shape.gap() >= need, "N4");
        }
        shape.heap -= need - SLOT_BYTES;
        shape.free -= need;
        let offset = shape.heap;
        self.write_record(offset, suffix, payload, length);
        let at = HEADER_BYTES / 8 + index;
        if index < shape.count {
            self.move_words(at, at + 1, shape.count - index);
        }
        let slot = Slot {
            head: head_of(suffix),
            offset,
            suffix: suffix.len(),
        };
        self.set_slot(index, slot);
        shape.count += 1;
        self.set_shape(shape);
        let fences = self.fences();
        self.set_fences(Fences {
            last_insert: index,
            ..fences
        });
    }

    /// Writes a record's length, suffix and payload at `offset`. Short ones in one piece: each run that is written costs two words
    /// of which parts are kept.
    #[inline]
    fn write_record(&mut self, offset: usize, suffix: &[u8], payload: &[&[u8]], length: usize) {
        let prefix = u16::try_from(length).expect("a payload fits a page");
        let bytes = RECORD_OVERHEAD + suffix.len() + length;
        let mut short = [0; SHORT_RECORD];
        if bytes <= SHORT_RECORD {
            let (head, mut rest) = short.split_at_mut(RECORD_OVERHEAD);
            head.copy_from_slice(&prefix.to_le_bytes());
            for part in std::iter::once(&suffix).chain(payload) {
                let (here, behind) = rest.split_at_mut(part.len());
                here.copy_from_slice(part);
                rest = behind;
            }
            self.write(offset, &short[..bytes]);
            return;
        }
        self.set_u16(offset, prefix);
        self.write(offset + RECORD_OVERHEAD, suffix);
        let mut at = offset + RECORD_OVERHEAD + suffix.len();
        for part in payload {
            self.write(at, part);
            at += part.len();
        }
    }

    /// Removes slot `index` and its record.
    fn remove_at(&mut self, index: usize) {
        let mut shape = self.shape();
        assert!(index < shape.count, "removed only after it was found");
        let slot = self.slot(index);
        let need = record_bytes(slot.suffix, self.payload_len(slot));
        let at = HEADER_BYTES / 8 + index;
        self.move_words(at + 1, at, shape.count - index - 1);
        if slot.offset == shape.heap {
            shape.heap += need - SLOT_BYTES;
        }
        self.set_shape(Shape {
            count: shape.count - 1,
            free: shape.free + need,
            ..shape
        });
        let mut fences = self.fences();
        if fences.last_insert >= index {
            fences.last_insert = fences.last_insert.saturating_sub(1);
            self.set_fences(fences);
        }
    }

    /// Removes the slots of `indexes`, which ascend, and their records: one pass over what is behind the first.
    fn remove_all(&mut self, indexes: &[usize]) {
        let mut shape = self.shape();
        let (Some(first), base) = (indexes.first(), HEADER_BYTES / 8) else {
            return;
        };
        let mut to = *first;
        for (at, index) in indexes.iter().enumerate() {
            let next = indexes.get(at + 1).copied().unwrap_or(shape.count);
            assert!(*index < next && next <= shape.count, "ascending, and found");
            let slot = self.slot(*index);
            shape.free += record_bytes(slot.suffix, self.payload_len(slot));
            // Slots between this one and the next: what comes later is further right, and is not touched yet.
            self.move_words(base + index + 1, base + to, next - index - 1);
            to += next - index - 1;
        }
        let fences = self.fences();
        shape.count = to;
        if to == 0 {
            shape.heap = self.lower_at(fences);
        }
        self.set_shape(shape);
        let before = indexes.partition_point(|index| *index <= fences.last_insert);
        self.set_fences(Fences {
            last_insert: fences.last_insert.saturating_sub(before),
            ..fences
        });
    }

    /// True if slot `index` can take a payload of `length` bytes.
    fn replacement_fits(&self, index: usize, length: usize) -> bool {
        length <= self.shape().free + self.payload_len(self.slot(index))
    }

    /// Replaces the payload of slot `index`. It must fit: [`NodeWrite::replacement_fits`].
    fn replace_at(&mut self, index: usize, payload: &[&[u8]]) {
        let length = parts_len(payload);
        let slot = self.slot(index);
        let old = self.payload_len(slot);
        if length <= old {
            self.set_u16(
                slot.offset,
                u16::try_from(length).expect("a payload fits a page"),
            );
            let mut at = slot.payload_at();
            for part in payload {
                self.write(at, part);
                at += part.len();
            }
            let shape = self.shape();
            self.set_shape(Shape {
                free: shape.free + (old - length),
                ..shape
            });
            return;
        }
        assert!(
            self.replacement_fits(index, length),
            "replaced only after asking for room"
        );
        let extra = length - old;
        if self.shape().gap() < extra {
            self.compact();
        }
        self.grow_at(index, extra);
        let slot = self.slot(index);
        self.set_u16(
            slot.offset,
            u16::try_from(length).expect("a payload fits a page"),
        );
        let mut at = slot.payload_at();
        for part in payload {
            self.write(at, part);
            at += part.len();
        }
        let shape = self.shape();
        self.set_shape(Shape {
            free: shape.free - extra,
            ..shape
        });
    }

    /// Gives the record of slot `index` room for `extra` more bytes of payload; the caller writes the payload and its
    /// length and counts the bytes. The gap has at least `extra` bytes.
    ///
    /// Rows grow when they are written for the first time since they were frozen, one after the other in a leaf that
    /// is full but for a few bytes. Either the records below it move down by `extra` bytes, which leaves no hole. Or the record is copied into the gap: its hole
    /// costs its part of a compaction, which moves the whole page once as many of them as fit the free bytes have used the gap up. The shorter way is gone.
    fn grow_at(&mut self, index: usize, extra: usize) {
        let slot = self.slot(index);
        let mut shape = self.shape();
        debug_assert!(shape.gap() >= extra, "grown only after asking for room");
        let head = RECORD_OVERHEAD + slot.suffix;
        let bytes = head + self.payload_len(slot) + extra;
        let of_compaction = self.size() * bytes / shape.free.max(1);
        if shape.gap() >= bytes && slot.offset - shape.heap > bytes + of_compaction {
            shape.heap -= bytes;
            self.move_within(slot.offset, shape.heap, head);
            self.set_shape(shape);
            let offset = shape.heap;
            self.set_slot(index, Slot { offset, ..slot });
            return;
        }
        let (from, to) = (shape.heap, shape.heap - extra);
        self.move_within(from, to, slot.offset + head - from);
        shape.heap = to;
        self.set_shape(shape);
        let base = HEADER_BYTES / 8;
        self.change_words(base..base + shape.count, |word| {
            Slot::moved_down(word, slot.offset, extra)
        });
    }

    /// Overwrites bytes `offset..` of the payload of slot `index`; its length stays.
    #[inline]
    fn patch_at(&mut self, index: usize, offset: usize, bytes: &[u8]) {
        let slot = self.slot(index);
        assert!(
            offset + bytes.len() <= self.payload_len(slot),
            "a patch stays inside the payload"
        );
        self.write(slot.payload_at() + offset, bytes);
    }

    /// Moves all records to the end of the page, so that free bytes are in one piece: from one private copy into another, which leaves no record to be
    /// moved out of another's way, and back at once.
    fn compact(&mut self) {
        let shape = self.shape();
        let mut from = PageBuf::to_overwrite(self.size());
        self.copy_to(&mut from);
        let mut to = from.clone();
        let mut heap = self.lower_at(self.fences());
        for index in 0..shape.count {
            let (slot, length) = (from.slot(index), from.record_len(index));
            let record = &from.as_bytes()[slot.offset..slot.offset + length];
            heap -= length;
            to.as_bytes_mut()[heap..heap + length].copy_from_slice(record);
            to.set_slot(
                index,
                Slot {
                    offset: heap,
                    ..slot
                },
            );
        }
        to.set_shape(Shape { heap, ..shape });
        self.copy_from(&to);
        debug_assert_eq!(self.shape().gap(), shape.free, "N4");
    }
}

impl<P: PageWrite + ?Sized> NodeWrite for P {}
