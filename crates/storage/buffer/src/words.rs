//! Reading and writing the bytes of a page in words of one size.
//!
//! Everything that a racing reader may touch is an 8-byte word, so [`PageRead`] is built on one
//! primitive, [`PageRead::word`]. Three kinds of page implement it: a page in the pool read
//! optimistically, a page in the pool under a latch, and a private [`PageBuf`]. Code that
//! interprets pages is written once, over the trait.
//!
//! Invariants:
//! - W1 No method panics or reads outside the page, whatever the offsets: an optimistic reader
//!   computes offsets from torn words. Out-of-range reads give zero; the caller validates later.
//! - W2 Writers change a page only through [`PageWrite::set_word`], so that a racing reader sees
//!   each word old or new, never torn.

use std::cmp::Ordering;

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
        if shift == 0 { low } else { low | (self.word(index + 1) << (64 - shift)) }
    }

    /// Four bytes at any offset, little-endian.
    #[inline]
    fn u32_at(&self, offset: usize) -> u32 {
        let (index, shift) = (offset / 8, (offset % 8) * 8);
        let low = self.word(index) >> shift;
        let value = if shift <= 32 { low } else { low | (self.word(index + 1) << (64 - shift)) };
        value as u32
    }

    /// Two bytes at any offset, little-endian.
    #[inline]
    fn u16_at(&self, offset: usize) -> u16 {
        let (index, shift) = (offset / 8, (offset % 8) * 8);
        let low = self.word(index) >> shift;
        let value = if shift <= 48 { low } else { low | (self.word(index + 1) << (64 - shift)) };
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
            at += 8;
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
            let mine = self.u64_at(offset + done).swap_bytes();
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
            let mine = self.u64_at(offset + done).swap_bytes() & mask;
            let mut bytes = [0; 8];
            bytes[..count].copy_from_slice(&key[done..common]);
            let theirs = u64::from_be_bytes(bytes);
            if mine != theirs {
                return mine.cmp(&theirs);
            }
        }
        length.cmp(&key.len())
    }

    /// Copies the whole page into `to`, word by word.
    ///
    /// # Panics
    /// If the sizes differ.
    fn copy_to(&self, to: &mut PageBuf) {
        assert_eq!(self.size(), to.size(), "pages of one database have one size");
        for (index, word) in to.words.iter_mut().enumerate() {
            *word = self.word(index).to_le();
        }
    }
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

    /// Writes four bytes at any offset, little-endian.
    #[inline]
    fn set_u32(&mut self, offset: usize, value: u32) {
        self.write(offset, &value.to_le_bytes());
    }

    /// Writes two bytes at any offset, little-endian.
    #[inline]
    fn set_u16(&mut self, offset: usize, value: u16) {
        self.write(offset, &value.to_le_bytes());
    }

    /// Writes one byte.
    #[inline]
    fn set_u8(&mut self, offset: usize, value: u8) {
        self.write(offset, &[value]);
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Panics
    /// If they do not fit into the page.
    #[inline]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.size(), "write of a run outside the page");
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (index, skip) = (at / 8, at % 8);
            let count = rest.len().min(8 - skip);
            let (now, later) = rest.split_at(count);
            if count == 8 {
                let mut word = [0; 8];
                word.copy_from_slice(now);
                self.set_word(index, u64::from_le_bytes(word));
            } else {
                let mut word = self.word(index).to_le_bytes();
                word[skip..skip + count].copy_from_slice(now);
                self.set_word(index, u64::from_le_bytes(word));
            }
            at += count;
            rest = later;
        }
    }

    /// Replaces the whole page by `from`.
    ///
    /// # Panics
    /// If the sizes differ.
    fn copy_from(&mut self, from: &PageBuf) {
        assert_eq!(self.size(), from.size(), "pages of one database have one size");
        for (index, word) in from.words.iter().enumerate() {
            self.set_word(index, u64::from_le(*word));
        }
    }
}

/// A private copy of a page: nobody else can see it, so it also gives plain byte slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBuf {
    words: Box<[u64]>,
}

impl PageBuf {
    /// A page of zeroes.
    ///
    /// # Panics
    /// If `size` is not a multiple of 8.
    pub fn new(size: usize) -> Self {
        assert!(size.is_multiple_of(8), "a page is made of words");
        Self { words: vec![0; size / 8].into_boxed_slice() }
    }

    /// The bytes of the page.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the words are a private, initialized allocation that lives as long as the borrow;
        // bytes have no alignment and every bit pattern is a byte.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), self.words.len() * 8) }
    }

    /// Sets every byte to zero.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }
}

impl PageRead for PageBuf {
    #[inline]
    fn size(&self) -> usize {
        self.words.len() * 8
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.words.get(index).map_or(0, |word| u64::from_le(*word))
    }
}

impl PageWrite for PageBuf {
    #[inline]
    fn set_word(&mut self, index: usize, value: u64) {
        self.words[index] = value.to_le();
    }
}
