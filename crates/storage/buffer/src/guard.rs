//! The three ways into a page, as guards.
//!
//! | guard | excludes | writes to shared memory | sees |
//! | --- | --- | --- | --- |
//! | [`Optimistic`] | nobody | never | words that mean something only if [`Optimistic::validate`] says so |
//! | [`Shared`] | writers | twice | a page at rest |
//! | [`Exclusive`] | everybody | twice | a page of its own |
//!
//! Invariants:
//! - G1 A guard's page stays at its address and in its frame while a shared or exclusive guard lives.
//! - G2 An exclusive guard through which nothing was written leaves no trace (state.rs, I3); one
//!   through which something was written makes the page dirty when it ends.
//!
//! Concurrency: a page that is written through a guard is marked dirty at release, not at the first
//! write: nobody else reads the flag of an exclusively latched page without waiting for it.

use crate::burst::{load_all, load_most, move_most, store_all, store_most};
use crate::page::{PageHeader, PageHeaderMut};
use crate::pool::Pool;
use crate::private::PageBuf;
use crate::racy::{PageWord, PageWords};
use crate::state::{Outcome, PageState, Word};
use crate::warm::warm_words;
use crate::words::{PageRead, PageWrite};
use std::hint::select_unpredictable;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;
use vellum_base::{Gsn, PageId, Result};

/// How often taking a shared latch without waiting is tried while other readers change the word, or while
/// more of them are inside than can be counted.
pub(crate) const SHARED_ATTEMPTS: usize = 16;

/// One word of a page; zero outside (words.rs, W1).
#[inline(always)]
fn load(words: &PageWords, index: usize) -> u64 {
    match words.get(index) {
        Some(word) => u64::from_le(word.load(Ordering::Relaxed)),
        None => 0,
    }
}

/// Words that a step of [`uppers_below`] looks at; they divide what is left into one part more.
const PIVOTS: usize = 7;

/// [`PageRead::uppers_below`]: the loads of a step do not wait for each other, so one cache miss is waited for where halving
/// waits for three; a branch would let the processor go ahead, but half of the time the wrong way.
#[inline(always)]
fn uppers_below(words: &PageWords, from: usize, to: usize, limit: u64) -> usize {
    let below =
        |word: &PageWord| usize::from((u64::from_le(word.load(Ordering::Relaxed)) >> 32) < limit);
    let run = words.get(from..to.min(words.len())).unwrap_or(&[]);
    let (mut low, mut rest) = (0, run);
    while rest.len() > PIVOTS {
        let step = rest.len() / (PIVOTS + 1);
        let parts: usize = (1..=PIVOTS).map(|part| below(&rest[part * step - 1])).sum();
        low += parts * step;
        let length = select_unpredictable(parts == PIVOTS, rest.len() - PIVOTS * step, step - 1);
        rest = &rest[parts * step..][..length];
    }
    low + rest.iter().map(below).sum::<usize>()
}

/// [`PageRead::copy_out`]: nothing is checked again for each word. (Those at the seam of the wide part and the rest may be loaded twice.)
#[inline]
fn copy_out(words: &PageWords, offset: usize, out: &mut [u8]) {
    let (index, shift) = (offset / 8, (offset % 8) * 8);
    let needed = (offset % 8 + out.len()).div_ceil(8);
    let Some(run) = words.get(index..index.wrapping_add(needed)) else {
        return copy_past_end(words, offset, out);
    };
    let done = load_most(words, offset, out);
    let (run, out) = (&run[done / 8..], &mut out[done..]);
    let load = |word: &PageWord| u64::from_le(word.load(Ordering::Relaxed));
    let (chunks, tail) = out.as_chunks_mut::<8>();
    let whole = chunks.len();
    let mut rest = 0;
    if shift == 0 {
        for (chunk, word) in chunks.iter_mut().zip(run) {
            *chunk = load(word).to_le_bytes();
        }
        if let Some(last) = run.get(whole) {
            rest = load(last);
        }
    } else if let Some((first, behind)) = run.split_first() {
        let mut low = load(first);
        for (chunk, word) in chunks.iter_mut().zip(behind) {
            let high = load(word);
            *chunk = (low >> shift | high << (64 - shift)).to_le_bytes();
            low = high;
        }
        rest = low >> shift;
        if let Some(last) = behind.get(whole) {
            rest |= load(last) << (64 - shift);
        }
    }
    for byte in tail {
        *byte = rest as u8;
        rest >>= 8;
    }
}

/// The same for a run that ends behind the page: zeroes there.
#[cold]
fn copy_past_end(words: &PageWords, offset: usize, out: &mut [u8]) {
    let byte = |at: usize| load(words, at / 8) >> (8 * (at % 8));
    for (at, out) in out.iter_mut().enumerate() {
        *out = byte(offset.wrapping_add(at)) as u8;
    }
}

/// Puts the low `count` bytes (at most eight) of `value` into a word from its byte number `at` on; they end inside it.
#[inline(always)]
fn merge(word: &PageWord, at: usize, count: usize, value: u64) {
    let mask = u64::MAX >> (64 - 8 * count) << (8 * at);
    let now = u64::from_le(word.load(Ordering::Relaxed));
    let new = (now & !mask) | (value << (8 * at)) & mask;
    word.store(new.to_le(), Ordering::Relaxed);
}

/// Less than eight bytes as the low bytes of a word.
#[inline(always)]
fn few(bytes: &[u8]) -> u64 {
    let low_first = bytes.iter().rev();
    low_first.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

macro_rules! page_read {
    ($guard:ident) => {
        impl PageRead for $guard<'_> {
            #[inline(always)]
            fn size(&self) -> usize {
                self.words.len() * 8
            }

            #[inline(always)]
            fn word(&self, index: usize) -> u64 {
                load(self.words, index)
            }

            #[inline(always)]
            fn uppers_below(&self, from: usize, to: usize, limit: u64) -> usize {
                uppers_below(self.words, from, to, limit)
            }

            #[inline]
            fn copy_out(&self, offset: usize, out: &mut [u8]) {
                copy_out(self.words, offset, out);
            }

            fn copy_to(&self, to: &mut PageBuf) {
                self.copy_words_to(0..self.words.len(), to);
            }

            fn copy_words_to(&self, words: std::ops::Range<usize>, to: &mut PageBuf) {
                assert_eq!(
                    self.size(),
                    to.size(),
                    "pages of one database have one size"
                );
                let end = words.end.min(self.words.len());
                let words = words.start.min(end)..end;
                load_all(&self.words[words.clone()], &mut to.words_mut()[words]);
            }
        }

        impl std::fmt::Debug for $guard<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($guard), "({})"), self.page)
            }
        }
    };
}

/// A page that is read without a latch. Everything read is provisional until
/// [`Optimistic::validate`] returned true *after* it. Copies are as good as the original.
#[derive(Clone, Copy)]
pub struct Optimistic<'p> {
    pool: &'p Pool,
    state: &'p PageState,
    words: &'p PageWords,
    page: PageId,
    seen: Word,
}

impl<'p> Optimistic<'p> {
    #[inline]
    pub(crate) fn new(
        pool: &'p Pool,
        state: &'p PageState,
        words: &'p PageWords,
        page: PageId,
        seen: Word,
    ) -> Self {
        debug_assert!(seen.is_readable() || seen == Word::NEVER);
        Self {
            pool,
            state,
            words,
            page,
            seen,
        }
    }

    /// Asks the processor to bring these bytes of the page into its caches, as far as there are any.
    #[inline]
    pub fn warm(&self, bytes: std::ops::Range<usize>) {
        warm_words(self.words, bytes);
    }

    /// The page's id.
    #[inline]
    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// Version of the page when this guard was made: the page has not changed since while a new
    /// guard shows the same one.
    #[inline]
    pub fn version(&self) -> u64 {
        self.seen.version()
    }

    /// True if everything that was read through this guard so far was the page's content at one
    /// instant.
    #[inline]
    pub fn validate(&self) -> bool {
        self.state.load_after_reads().same_version(self.seen)
    }

    /// A page whose id was read from this one, to be read without a latch; waits as [`Pool::optimistic`], but only while this page
    /// is what was read. Once it is not, the other may have been given back and be held, for as long as he likes, by somebody
    /// who waits for what the caller holds: then the view never validates, and neither does this one.
    ///
    /// # Errors
    /// As [`Pool::optimistic`], if this page is still what was read.
    #[inline]
    pub fn follow(&self, page: PageId) -> Result<Optimistic<'p>> {
        let (state, words) = self.pool.place(page)?;
        let mut seen = state.load();
        if !seen.is_readable() {
            let named_by = Some((self.state, self.seen));
            seen = self.pool.readable(page, state, named_by)?;
        }
        Ok(Optimistic::new(self.pool, state, words, page, seen))
    }

    /// The page under a shared latch, if it is still what was read; does not wait.
    pub fn try_shared(self) -> Option<Shared<'p>> {
        for _ in 0..SHARED_ATTEMPTS {
            let now = self.state.load_after_reads();
            if !now.same_version(self.seen) {
                return None;
            }
            if self.state.try_shared(now) {
                return Some(Shared::new(self.pool, self.state, self.words, self.page));
            }
        }
        None
    }

    /// The page under an exclusive latch, if it is still what was read and no reader is inside;
    /// does not wait.
    pub fn try_exclusive(self) -> Option<Exclusive<'p>> {
        loop {
            let now = self.state.load_after_reads();
            if !now.same_version(self.seen) || !(now.is_unlocked() || now.is_marked()) {
                return None;
            }
            if self.state.try_exclusive(now) {
                return Some(Exclusive::new(self.pool, self.state, self.words, self.page));
            }
        }
    }
}

page_read!(Optimistic);

/// A page under a shared latch, which the guard gives back when it is dropped.
#[must_use = "the latch is given back when the guard is dropped"]
pub struct Shared<'p> {
    pool: &'p Pool,
    state: &'p PageState,
    words: &'p PageWords,
    page: PageId,
}

impl<'p> Shared<'p> {
    pub(crate) fn new(
        pool: &'p Pool,
        state: &'p PageState,
        words: &'p PageWords,
        page: PageId,
    ) -> Self {
        Self {
            pool,
            state,
            words,
            page,
        }
    }

    /// The page's id.
    #[inline]
    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// An optimistic view of the page as it is now: it stays valid after this guard is gone, until
    /// somebody writes.
    pub fn optimistic(&self) -> Optimistic<'p> {
        let seen = self.state.load();
        Optimistic::new(self.pool, self.state, self.words, self.page, seen)
    }

    /// Ends the guard of somebody who only copied the page in order to write it out, which is no use
    /// of the page: it stays marked for eviction if it was.
    pub(crate) fn release_copied(self, was: Word) {
        let guard = ManuallyDrop::new(self);
        if was.is_marked() {
            guard.state.release_copied();
        } else {
            guard.state.release_shared();
        }
    }
}

page_read!(Shared);

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.state.release_shared();
    }
}

/// A page under an exclusive latch, which the guard gives back when it is dropped.
#[must_use = "the latch is given back when the guard is dropped"]
pub struct Exclusive<'p> {
    pool: &'p Pool,
    state: &'p PageState,
    words: &'p PageWords,
    page: PageId,
    written: bool,
    owed: bool,
}

impl<'p> Exclusive<'p> {
    pub(crate) fn new(
        pool: &'p Pool,
        state: &'p PageState,
        words: &'p PageWords,
        page: PageId,
    ) -> Self {
        Self {
            pool,
            state,
            words,
            page,
            written: false,
            owed: false,
        }
    }

    /// The page's id.
    #[inline]
    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// GSN of the last log record that changed the page.
    #[inline]
    pub fn gsn(&self) -> Gsn {
        PageHeader::gsn(self)
    }

    /// Notes the log record that changed the page; never goes back in the life of a page.
    #[inline]
    pub fn set_gsn(&mut self, gsn: Gsn) {
        debug_assert!(
            gsn >= self.gsn(),
            "page {}: {} after {}",
            self.page,
            gsn,
            self.gsn()
        );
        PageHeaderMut::set_gsn(self, gsn);
    }

    /// True if something was written through this guard.
    pub fn is_written(&self) -> bool {
        self.written
    }

    /// True if the file lacks changes of the page that it must have.
    pub(crate) fn is_to_be_written(&self) -> bool {
        let word = self.state.held_word();
        word.is_dirty() && (word.is_owed() || !self.is_temporary())
    }

    /// Sets every byte to zero.
    pub fn clear(&mut self) {
        self.written = true;
        for word in self.words {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Turns the latch into a shared one, with no other writer in between.
    pub fn downgrade(self) -> Shared<'p> {
        let outcome = self.outcome();
        let guard = ManuallyDrop::new(self);
        guard.state.downgrade(outcome);
        Shared::new(guard.pool, guard.state, guard.words, guard.page)
    }

    /// Gives the latch back and goes on as an optimistic reader of what is there now: the view is
    /// valid until somebody else writes.
    pub fn into_optimistic(self) -> Optimistic<'p> {
        // Through a shared latch: between a release and a load another writer could come in, and
        // the view would silently be of what that one wrote.
        self.downgrade().optimistic()
    }

    /// Ends the life of a page of version data whose content nobody will read again: it is not
    /// written out any more.
    ///
    /// # Panics
    /// With debug assertions, if the page is durable: its content may be needed until the record
    /// that freed it is durable.
    pub fn discard(self) {
        debug_assert!(self.is_temporary(), "page {} is durable", self.page);
        if self.owed {
            // Made under this guard over an older life that the file has: it is to be written (D5).
            return;
        }
        let guard = ManuallyDrop::new(self);
        guard.state.release_exclusive(Outcome::Clean);
    }

    /// Notes that the file has an older life of the page (state.rs).
    pub(crate) fn set_owed(&mut self) {
        self.owed = true;
    }

    /// Ends the guard of a page whose memory was given back.
    pub(crate) fn release_evicted(self) {
        let guard = ManuallyDrop::new(self);
        guard.state.release_evicted();
    }

    fn outcome(&self) -> Outcome {
        if !self.written {
            return Outcome::Untouched;
        }
        let cycle = self.pool.cycle_tag();
        if self.state.held_word().cycle() != cycle && !self.is_temporary() {
            self.pool.count_full_page_image();
        }
        if self.owed {
            Outcome::Owed(cycle)
        } else {
            Outcome::Written(cycle)
        }
    }
}

page_read!(Exclusive);

impl PageWrite for Exclusive<'_> {
    #[inline(always)]
    fn set_word(&mut self, index: usize, value: u64) {
        self.written = true;
        self.words[index].store(value.to_le(), Ordering::Relaxed);
    }

    /// The words in question are looked up once.
    #[inline]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let (size, length) = (self.size(), bytes.len());
        assert!(
            length <= size && offset <= size - length,
            "write of a run outside the page"
        );
        if length == 0 {
            return;
        }
        self.written = true;
        let words = &self.words[offset / 8..(offset + length).div_ceil(8)];
        let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) else {
            // Less than a word, in one or two.
            let (at, value) = (offset % 8, few(bytes));
            let here = length.min(8 - at);
            merge(&words[0], at, here, value);
            if here < length {
                merge(&words[1], 0, length - here, value >> (8 * here));
            }
            return;
        };
        let head = offset.wrapping_neg() % 8;
        let tail = (offset + length) % 8;
        let (mut whole, mut chunks) = (words, &bytes[head..length - tail]);
        if head != 0 {
            merge(&words[0], 8 - head, head, u64::from_le_bytes(*first));
            whole = &whole[1..];
        }
        if tail != 0 {
            let value = u64::from_le_bytes(*last) >> (64 - 8 * tail);
            merge(&words[words.len() - 1], 0, tail, value);
        }
        let done = store_most(chunks, whole);
        (whole, chunks) = (&whole[done..], &chunks[8 * done..]);
        for word in whole {
            let Some((chunk, rest)) = chunks.split_first_chunk::<8>() else {
                break;
            };
            word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
            chunks = rest;
        }
    }

    fn copy_from(&mut self, from: &PageBuf) {
        assert_eq!(
            self.size(),
            from.size(),
            "pages of one database have one size"
        );
        self.written = true;
        store_all(from.words(), self.words);
    }

    #[inline]
    fn change_words(&mut self, words: std::ops::Range<usize>, mut change: impl FnMut(u64) -> u64) {
        self.written = true;
        for word in &self.words[words] {
            let changed = change(u64::from_le(word.load(Ordering::Relaxed)));
            word.store(changed.to_le(), Ordering::Relaxed);
        }
    }

    #[inline]
    fn move_words(&mut self, from: usize, to: usize, count: usize) {
        self.written = true;
        let done = move_most(self.words, 8 * from, to, count);
        let rest = count - done;
        if to < from {
            let (from, to) = (from + done, to + done);
            let (from, to) = (&self.words[from..from + rest], &self.words[to..to + rest]);
            // The slices may overlap: they are of atomics.
            let pairs = from.iter().zip(to);
            pairs.for_each(|(from, to)| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed));
        } else {
            let (from, to) = (&self.words[from..from + rest], &self.words[to..to + rest]);
            let pairs = from.iter().zip(to).rev();
            pairs.for_each(|(from, to)| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed));
        }
    }

    fn move_shifted(&mut self, from: usize, to: usize, count: usize) {
        let (base, shift) = (from / 8, (from % 8) * 8);
        if shift == 0 || count == 0 {
            return self.move_words(base, to, count);
        }
        self.written = true;
        let done = move_most(self.words, from, to, count);
        let rest = count - done;
        let both = |low: u64, high: u64| (low >> shift | high << (64 - shift)).to_le();
        if to <= base {
            let (base, to) = (base + done, to + done);
            let into = &self.words[to..to + rest];
            let mut low = load(self.words, base);
            for (from, to) in self.words[base + 1..=base + rest].iter().zip(into) {
                let high = u64::from_le(from.load(Ordering::Relaxed));
                to.store(both(low, high), Ordering::Relaxed);
                low = high;
            }
        } else {
            let into = &self.words[to..to + rest];
            let mut high = load(self.words, base + rest);
            for (from, to) in self.words[base..base + rest].iter().zip(into).rev() {
                let low = u64::from_le(from.load(Ordering::Relaxed));
                to.store(both(low, high), Ordering::Relaxed);
                high = low;
            }
        }
    }
}

impl Drop for Exclusive<'_> {
    #[inline]
    fn drop(&mut self) {
        self.state.release_exclusive(self.outcome());
    }
}
