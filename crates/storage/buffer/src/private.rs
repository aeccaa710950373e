//! Private copies of pages.
//!
//! Structure changes, cursors and collection make and drop them all the time, mostly to overwrite every byte: buffers go
//! back to a list of their thread and come from there again, uncleared where that is asked for.
//!
//! Not here: bytes that others see (guard.rs).

use crate::words::{PageBytes, PageRead, PageWrite};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Buffers that a thread keeps: what a structure change takes at once.
const KEPT: usize = 8;
/// Buffers that many threads keep together, about: with more than a thirty-second of it each gets less than [`KEPT`], one at least.
const KEPT_BY_ALL: usize = 256;

/// Threads that keep buffers.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Buffers for the next copies of this thread.
    static SPARE: RefCell<Spare> = const {
        RefCell::new(Spare {
            buffers: Vec::new(),
            most: 0,
        })
    };
}

/// Buffers that a thread keeps.
struct Spare {
    buffers: Vec<Box<[u64]>>,
    /// How many it may keep; zero as long as it has had none.
    most: usize,
}

impl Spare {
    /// Keeps a buffer, or finds out whether it may.
    #[cold]
    fn keep_if_allowed(&mut self, words: Box<[u64]>) {
        // Relaxed: a number of threads, about.
        let threads = if self.most == 0 {
            THREADS.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            THREADS.load(Ordering::Relaxed).max(1)
        };
        self.most = (KEPT_BY_ALL / threads).clamp(1, KEPT);
        self.buffers.truncate(self.most);
        if self.buffers.len() < self.most {
            self.buffers.push(words);
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if self.most > 0 {
            THREADS.fetch_sub(1, Ordering::Relaxed);
        }
    }
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
        let spare = SPARE
            .try_with(|spare| spare.borrow_mut().buffers.pop())
            .ok();
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
            if spare.buffers.len() < spare.most {
                spare.buffers.push(words);
            } else {
                spare.keep_if_allowed(words);
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

    #[cfg(not(any(loom, shuttle)))]
    #[test]
    fn buffers_that_many_threads_keep_are_bounded() {
        use std::sync::Barrier;
        use vellum_sync::thread;
        let threads = 300;
        let (ready, over) = (Barrier::new(threads), Barrier::new(threads));
        let kept = thread::scope(|scope| {
            let work = || {
                ready.wait();
                drop(
                    (0..2 * KEPT)
                        .map(|_| PageBuf::new(4096))
                        .collect::<Vec<_>>(),
                );
                // Nobody ends before all have some.
                over.wait();
                SPARE.with(|spare| spare.borrow().buffers.len())
            };
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let kept = all
                .into_iter()
                .map(|thread| thread.join().expect("no panic"));
            kept.collect::<Vec<_>>()
        });
        assert!(kept.iter().all(|kept| (1..=KEPT).contains(kept)));
        let all: usize = kept.iter().sum();
        // Those that came first keep more.
        assert!(all <= 4 * KEPT_BY_ALL, "{all}");
    }
}
