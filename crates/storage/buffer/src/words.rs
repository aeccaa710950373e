//! Reading and writing the bytes of a page in words of one size.
//!
//! Everything that a racing reader may touch is an 8-byte word, so [`PageRead`] is built on one
//! primitive, [`PageRead::word`]. Four kinds of page implement it: a page in the pool read
//! optimistically, a page in the pool under a latch, a private [`PageBuf`], and bytes as they came from the file. Code that
//! interprets pages is written once, over the trait.
//!
//! Invariants:
//! - W1 No method panics or reads outside the page, whatever the offsets: an optimistic reader
//!   computes offsets from torn words. Out-of-range reads give zero; the caller validates later.
//! - W2 Writers change a page only by whole words ([`PageWrite::set_word`], or several with one store: burst.rs), so that a racing reader sees
//!   each word old or new, never torn.

use crate::private::PageBuf;
use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::ops::Range;

/// Read access to the words of one page.
pub trait PageRead {
    /// Bytes in the page; a multiple of 8.
    fn size(&self) -> usize;

    /// Word number `index` (byte offset `8 * index`) as a little-endian number; zero outside.
    fn word(&self, index: usize) -> u64;

    /// Eight bytes at any offset, little-endian.
    #[inline]
    fn u64_at(&self, offset: usize) -> u64 {
        let (index, shift) = (offset / 8, (offset % 8) * 8);
        let low = self.word(index) >> shift;
        if shift == 0 {
            low
        } else {
            low | (self.word(index + 1) << (64 - shift))
        }
    }

    /// Four bytes at any offset, little-endian.
    #[inline]
    fn u32_at(&self, offset: usize) -> u32 {
        let (index, shift) = (offset / 8, (offset % 8) * 8);
        let low = self.word(index) >> shift;
        let value = if shift <= 32 {
            low
        } else {
            low | (self.word(index + 1) << (64 - shift))
        };
        value as u32
    }

    /// Two bytes at any offset, little-endian.
    #[inline]
    fn u16_at(&self, offset: usize) -> u16 {
        let (index, shift) = (offset / 8, (offset % 8) * 8);
        let low = self.word(index) >> shift;
        let value = if shift <= 48 {
            low
        } else {
            low | (self.word(index + 1) << (64 - shift))
        };
        value as u16
    }

    /// One byte.
    #[inline]
    fn u8_at(&self, offset: usize) -> u8 {
        (self.word(offset / 8) >> ((offset % 8) * 8)) as u8
    }

    /// Copies `out.len()` bytes from `offset`. Bytes beyond the page read as zero.
    #[inline]
    fn copy_out(&self, offset: usize, out: &mut [u8]) {
        let mut chunks = out.chunks_exact_mut(8);
        let mut at = offset;
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.u64_at(at).to_le_bytes());
            at = at.wrapping_add(8);
        }
        let tail = chunks.into_remainder();
        if !tail.is_empty() {
            let bytes = self.u64_at(at).to_le_bytes();
            tail.copy_from_slice(&bytes[..tail.len()]);
        }
    }

    /// Compares `length` bytes at `offset` with `key`, as byte strings.
    #[inline]
    fn compare(&self, offset: usize, length: usize, key: &[u8]) -> Ordering {
        let common = length.min(key.len());
        let mut done = 0;
        while done + 8 <= common {
            let mine = self.u64_at(offset.wrapping_add(done)).swap_bytes();
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&key[done..done + 8]);
            let theirs = u64::from_be_bytes(bytes);
            if mine != theirs {
                return mine.cmp(&theirs);
            }
            done += 8;
        }
        if done < common {
            let count = common - done;
            let mask = u64::MAX << (64 - 8 * count);
            let mine = self.u64_at(offset.wrapping_add(done)).swap_bytes() & mask;
            let theirs = first_eight(&key[done..common]);
            if mine != theirs {
                return mine.cmp(&theirs);
            }
        }
        length.cmp(&key.len())
    }

    /// How many words of `from..to` have an upper half below `limit`, where the upper halves ascend. A binary search in which no
    /// step is a branch on what was read: half of those would be foretold wrongly. Words that ascend not (a torn page) give some number
    /// of at most `to - from`; those beyond the page count as not below.
    #[inline]
    fn uppers_below(&self, from: usize, to: usize, limit: u64) -> usize {
        let to = to.min(self.size() / 8);
        let (mut low, mut rest) = (from, to.saturating_sub(from));
        while rest > 1 {
            let half = rest / 2;
            let below = (self.word(low + half - 1) >> 32) < limit;
            low = select_unpredictable(below, low + half, low);
            rest -= half;
        }
        low - from + usize::from(rest == 1 && (self.word(low) >> 32) < limit)
    }

    /// Copies the whole page into `to`, word by word.
    ///
    /// # Panics
    /// If the sizes differ.
    fn copy_to(&self, to: &mut PageBuf) {
        assert_eq!(
            self.size(),
            to.size(),
            "pages of one database have one size"
        );
        for (index, word) in to.words_mut().iter_mut().enumerate() {
            *word = self.word(index).to_le();
        }
    }

    /// Copies these words, as far as there are any; the others are left as they are.
    ///
    /// # Panics
    /// If the sizes differ.
    fn copy_words_to(&self, words: Range<usize>, to: &mut PageBuf) {
        assert_eq!(
            self.size(),
            to.size(),
            "pages of one database have one size"
        );
        let end = words.end.min(self.size() / 8);
        for index in words.start..end {
            to.words_mut()[index] = self.word(index).to_le();
        }
    }
}

/// A page that nobody else can see: it gives plain byte slices.
pub trait PageBytes: PageRead {
    /// The bytes of the page.
    fn as_bytes(&self) -> &[u8];
}

/// Write access to the words of one page, for whoever holds it exclusively.
pub trait PageWrite: PageRead {
    /// Replaces word number `index`.
    ///
    /// # Panics
    /// If `index` is outside the page: a writer has validated what it computes with.
    fn set_word(&mut self, index: usize, value: u64);

    /// Writes eight bytes at any offset, little-endian.
    #[inline]
    fn set_u64(&mut self, offset: usize, value: u64) {
        if offset.is_multiple_of(8) {
            self.set_word(offset / 8, value);
        } else {
            self.write(offset, &value.to_le_bytes());
        }
    }

    /// Writes the low `count` bytes of `value` at `offset`, inside one word.
    ///
    /// # Panics
    /// If they are outside the page; with debug assertions, if they cross a word or are all eight.
    #[inline]
    fn set_part(&mut self, offset: usize, count: usize, value: u64) {
        let (index, shift) = (offset / 8, (offset % 8) * 8);
        debug_assert!(
            count < 8 && shift + 8 * count <= 64,
            "a part lies in one word"
        );
        let mask = ((1_u64 << (8 * count)) - 1) << shift;
        let kept = self.word(index) & !mask;
        self.set_word(index, kept | ((value << shift) & mask));
    }

    /// Writes four bytes at any offset, little-endian.
    ///
    /// # Panics
    /// If they are outside the page.
    #[inline]
    fn set_u32(&mut self, offset: usize, value: u32) {
        if offset % 8 <= 4 {
            self.set_part(offset, 4, u64::from(value));
        } else {
            self.write(offset, &value.to_le_bytes());
        }
    }

    /// Writes two bytes at any offset, little-endian.
    ///
    /// # Panics
    /// If they are outside the page.
    #[inline]
    fn set_u16(&mut self, offset: usize, value: u16) {
        if offset % 8 <= 6 {
            self.set_part(offset, 2, u64::from(value));
        } else {
            self.write(offset, &value.to_le_bytes());
        }
    }

    /// Writes one byte.
    ///
    /// # Panics
    /// If it is outside the page.
    #[inline]
    fn set_u8(&mut self, offset: usize, value: u8) {
        self.set_part(offset, 1, u64::from(value));
    }

    /// Replaces the words from number `index` on.
    ///
    /// # Panics
    /// If they do not fit into the page.
    #[inline]
    fn set_words(&mut self, index: usize, words: &[u64]) {
        for (at, word) in words.iter().enumerate() {
            self.set_word(index + at, *word);
        }
    }

    /// Replaces each of `words` by what `change` makes of it.
    ///
    /// # Panics
    /// If they are not inside the page.
    #[inline]
    fn change_words(&mut self, words: Range<usize>, mut change: impl FnMut(u64) -> u64) {
        for at in words {
            let word = self.word(at);
            self.set_word(at, change(word));
        }
    }

    /// Moves `count` words from number `from` to number `to`; the ranges may overlap.
    ///
    /// # Panics
    /// If a range is outside the page.
    #[inline]
    fn move_words(&mut self, from: usize, to: usize, count: usize) {
        if to < from {
            for at in 0..count {
                let word = self.word(from + at);
                self.set_word(to + at, word);
            }
        } else {
            for at in (0..count).rev() {
                let word = self.word(from + at);
                self.set_word(to + at, word);
            }
        }
    }

    /// Moves the bytes from `from` on into `count` words from number `to` on; the ranges may overlap. A word of which two
    /// words take bytes is read once.
    ///
    /// # Panics
    /// If a range is outside the page.
    #[inline]
    fn move_shifted(&mut self, from: usize, to: usize, count: usize) {
        let (base, shift) = (from / 8, (from % 8) * 8);
        if shift == 0 || count == 0 {
            return self.move_words(base, to, count);
        }
        if to <= base {
            let mut low = self.word(base);
            for at in 0..count {
                let high = self.word(base + at + 1);
                self.set_word(to + at, low >> shift | high << (64 - shift));
                low = high;
            }
        } else {
            let mut high = self.word(base + count);
            for at in (0..count).rev() {
                let low = self.word(base + at);
                self.set_word(to + at, low >> shift | high << (64 - shift));
                high = low;
            }
        }
    }

    /// Moves `length` bytes from `from` to `to` inside the page; the ranges may overlap. Cost: a read and a write a
    /// word.
    ///
    /// # Panics
    /// If a range is outside the page.
    fn move_within(&mut self, from: usize, to: usize, length: usize) {
        let size = self.size();
        assert!(
            length <= size && from <= size - length && to <= size - length,
            "move of a run outside the page"
        );
        if length == 0 || from == to {
            return;
        }
        // Whole words of the destination in the middle, parts at both ends.
        let head = (to.wrapping_neg() % 8).min(length);
        let words = (length - head) / 8;
        let tail = length - head - 8 * words;
        if to < from {
            move_part(self, from, to, head);
            self.move_shifted(from + head, (to + head) / 8, words);
            move_part(self, from + length - tail, to + length - tail, tail);
        } else {
            // From the end, so that nothing is overwritten before it was read.
            move_part(self, from + length - tail, to + length - tail, tail);
            self.move_shifted(from + head, (to + head) / 8, words);
            move_part(self, from, to, head);
        }
    }

    /// Sets `length` bytes from `offset` on to `byte`.
    ///
    /// # Panics
    /// If they are outside the page.
    fn fill(&mut self, offset: usize, length: usize, byte: u8) {
        let size = self.size();
        assert!(
            length <= size && offset <= size - length,
            "fill of a run outside the page"
        );
        let pattern = u64::from_le_bytes([byte; 8]);
        let mut done = 0;
        while done < length {
            let count = (8 - (offset + done) % 8).min(length - done);
            put(self, offset + done, count, pattern);
            done += count;
        }
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Panics
    /// If they do not fit into the page.
    #[inline]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(
            offset + bytes.len() <= self.size(),
            "write of a run outside the page"
        );
        // Parts of words at both ends, whole ones between.
        let (head, rest) = bytes.split_at((offset.wrapping_neg() % 8).min(bytes.len()));
        if !head.is_empty() {
            self.set_part(offset, head.len(), part_of_word(head));
        }
        let mut index = (offset + head.len()) / 8;
        let (chunks, tail) = rest.as_chunks::<8>();
        for chunk in chunks {
            self.set_word(index, u64::from_le_bytes(*chunk));
            index += 1;
        }
        if !tail.is_empty() {
            self.set_part(8 * index, tail.len(), part_of_word(tail));
        }
    }

    /// Replaces the whole page by `from`.
    ///
    /// # Panics
    /// If the sizes differ.
    fn copy_from(&mut self, from: &PageBuf) {
        assert_eq!(
            self.size(),
            from.size(),
            "pages of one database have one size"
        );
        for (index, word) in from.words().iter().enumerate() {
            self.set_word(index, u64::from_le(*word));
        }
    }
}

/// The first eight bytes of a string, zero padded, as a number that compares like them. No call, no loop: a copy of a length that is
/// not known costs more than the comparison it is for.
#[inline]
pub fn first_eight(bytes: &[u8]) -> u64 {
    if let Some(bytes) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let length = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // What both hold stands twice at the same place.
        let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
        return u64::from(first) << 32 | u64::from(last) << (64 - 8 * length);
    }
    let at = |index: usize| {
        bytes
            .get(index)
            .map_or(0, |byte| u64::from(*byte) << (56 - 8 * index))
    };
    at(0) | at(1) | at(2)
}

/// Less than eight bytes as the low bytes of a word.
#[inline]
fn part_of_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Writes the low `count` (1 to 8) bytes of `value`; they do not cross a word.
#[inline]
fn put<P: PageWrite + ?Sized>(page: &mut P, offset: usize, count: usize, value: u64) {
    if count == 8 {
        page.set_word(offset / 8, value);
    } else {
        page.set_part(offset, count, value);
    }
}

/// The end of a [`PageWrite::move_within`]: less than a word, which does not cross one of the destination.
#[inline]
fn move_part<P: PageWrite + ?Sized>(page: &mut P, from: usize, to: usize, count: usize) {
    if count > 0 {
        let value = page.u64_at(from);
        page.set_part(to, count, value);
    }
}

impl PageRead for [u8] {
    #[inline]
    fn size(&self) -> usize {
        self.len()
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        let chunk = index
            .checked_mul(8)
            .and_then(|at| self.get(at..)?.first_chunk());
        chunk.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl PageBytes for [u8] {
    #[inline]
    fn as_bytes(&self) -> &[u8] {
        self
    }
}
