//! Bringing what will be read soon into the processor's caches.
//!
//! A lookup in a page that no cache has waits for memory several times, one wait after the other: for the page's state, its
//! slots, the record. Who knows several keys asks for each of these of all keys before it needs the first.
//!
//! Hints: nothing is read or latched, and a page that is not in memory is not brought there.

use crate::pool::Pool;
use crate::racy::{LINE_BYTES, PageWords, warm};
use std::ops::Range;
use vellum_base::PageId;

impl Pool {
    /// Asks for the state of a page and for these of its bytes, as far as there are any.
    #[inline]
    pub fn warm(&self, page: PageId, bytes: Range<usize>) {
        if let Ok((state, words)) = self.place(page) {
            warm(state);
            warm_words(words, bytes);
        }
    }
}

#[inline]
pub(crate) fn warm_words(words: &PageWords, bytes: Range<usize>) {
    let words = words.get(bytes.start / 8..bytes.end.div_ceil(8).min(words.len()));
    let (lines, rest) = words.unwrap_or_default().as_chunks::<{ LINE_BYTES / 8 }>();
    lines.iter().for_each(warm);
    if let Some(word) = rest.first() {
        warm(word);
    }
}
