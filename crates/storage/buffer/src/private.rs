//! Private copies of pages.
//!
//! Structure changes, cursors and collection make and drop them all the time, mostly to overwrite every byte: buffers go
//! back to a list of their thread and come from there again, uncleared where that is asked for.
//!
//! Not here: bytes that others see (guard.rs).

use crate::words::{PageBytes, PageRead, PageWrite};
use std::cell::RefCell;

/// Buffers that a thread keeps: what a structure change takes at once.
const KEPT: usize = 8;

thread_local! {
    /// Buffers for the next copies of this thread.
    static SPARE: RefCell<Vec<Box<[u64]>>> = const { RefCell::new(Vec::new()) };
}

/// A private copy of a page: nobody else can see it, so it also gives plain byte slices.
#[derive(Debug, PartialEq, Eq)]
pub struct PageBuf {
    words: Box<[u64]>,
}

impl PageBuf {
    /// A page of zeroes.
    ///
    /// # Panics
    /// If `size` is not a multiple of 8.
    pub fn new(size: usize) -> Self {
        let mut page = Self::to_overwrite(size);
        page.clear();
        page
    }

    /// A page of unspecified bytes, of earlier copies perhaps: for who overwrites all that will be looked at.
    ///
    /// # Panics
    /// If `size` is not a multiple of 8.
    pub fn to_overwrite(size: usize) -> Self {
        assert!(size.is_multiple_of(8), "a page is made of words");
        // The list is gone where the thread is ending.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok();
        let words = match spare.flatten() {
            Some(words) if words.len() == size / 8 => words,
            _ => vec![0; size / 8].into_boxed_slice(),
        };
        Self { words }
    }

    /// Sets every byte to zero.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The words in the order of the page, each little-endian.
    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// The bytes of the page.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        let start: *const u8 = self.words.as_ptr().cast();
        // SAFETY: the words are initialized, live as long as the borrow of self, and hold the
        // page's bytes in order (they are kept little-endian); any address is aligned for bytes.
        unsafe { std::slice::from_raw_parts(start, self.words.len() * 8) }
    }

    /// The bytes of the page, for writing.
    #[inline]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        let length = self.words.len() * 8;
        let start: *mut u8 = self.words.as_mut_ptr().cast();
        // SAFETY: as in as_bytes, and the borrow of self is exclusive; every byte is valid in a word.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }
}

impl Clone for PageBuf {
    fn clone(&self) -> Self {
        let mut page = Self::to_overwrite(self.size());
        self.copy_to(&mut page);
        page
    }
}

impl Drop for PageBuf {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        // An ending thread keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(words);
            }
        });
    }
}

impl PageBytes for PageBuf {
    #[inline]
    fn as_bytes(&self) -> &[u8] {
        Self::as_bytes(self)
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

    #[inline]
    fn copy_out(&self, offset: usize, out: &mut [u8]) {
        let bytes = self.as_bytes();
        let rest = &bytes[offset.min(bytes.len())..];
        let count = rest.len().min(out.len());
        let (head, tail) = out.split_at_mut(count);
        head.copy_from_slice(&rest[..count]);
        tail.fill(0);
    }

    fn copy_to(&self, to: &mut PageBuf) {
        to.words.copy_from_slice(&self.words);
    }
}

impl PageWrite for PageBuf {
    #[inline]
    fn set_word(&mut self, index: usize, value: u64) {
        self.words[index] = value.to_le();
    }

    #[inline]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.as_bytes_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    #[inline]
    fn move_within(&mut self, from: usize, to: usize, length: usize) {
        let bytes = self.as_bytes_mut();
        assert!(to <= bytes.len() - length, "move of a run outside the page");
        bytes.copy_within(from..from + length, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_pages_are_zero_whatever_buffer_they_get() {
        let mut page = PageBuf::new(4096);
        page.as_bytes_mut().fill(7);
        drop(page);
        assert!(PageBuf::new(4096).as_bytes().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn buffers_of_another_size_are_not_taken() {
        drop(PageBuf::new(4096));
        assert_eq!(PageBuf::to_overwrite(8192).size(), 8192);
        drop(PageBuf::new(8192));
        assert_eq!(PageBuf::to_overwrite(4096).size(), 4096);
    }
}
