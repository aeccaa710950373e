//! Bringing a page into memory: a frame first, then the page's latch, then the file.
//!
//! Invariants:
//! - Frames F1: memory of a page is touched only with a frame in hand.
//! - A page that cannot be read stays evicted; its frame goes back; others notice nothing.
//! - F3 No page is resident beyond the end of the file. A fault looks at the file's length once more under the page's
//!   latch; truncation publishes the new length and then looks at the latches of the pages that it cuts. Each stores before
//!   it looks, so one of them sees the other.
//!
//! Concurrency: of several threads that miss the same page one latches it and reads, the others wait for its
//! latch. A thread that finds no free frame evicts by itself, or waits while a few others do (gate.rs). If every frame is held by threads that
//! wait for frames, nobody could go on: after [`ATTEMPTS`] fruitless rounds the fault fails with
//! `MemoryLimit`, which releases what its caller holds.

use crate::burst::store_most;
use crate::config::count;
use crate::frames::Frame;
use crate::gate::Entry;
use crate::guard::Exclusive;
use crate::page::{self, Check};
use crate::pool::Pool;
use crate::racy::PageWords;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use vellum_base::{Gsn, PageId, Result, StorageError};
use vellum_io::AlignedBuf;
use vellum_sync::Backoff;
use vellum_sync::atomic::{Ordering, fence};
use vellum_sync::rank::{Rank, assert_may_wait_below};

/// Rounds without a frame after which a fault gives up; all but the first few sleep up to a
/// millisecond.
const ATTEMPTS: u32 = 2000;

/// Most frames that a fault frees for those who come after it.
const EVICT_AT_FAULT: usize = 32;

thread_local! {
    /// Where pages are read into before they are checked. Taken out while in use.
    static BOUNCE: Cell<Option<AlignedBuf>> = const { Cell::new(None) };
}

/// Runs `body` with this thread's buffer of `size` bytes.
fn with_bounce<T>(size: usize, body: impl FnOnce(&mut AlignedBuf) -> Result<T>) -> Result<T> {
    let kept = BOUNCE.take().filter(|buffer| buffer.len() == size);
    let mut buffer = match kept {
        Some(buffer) => buffer,
        None => AlignedBuf::zeroed(size)?,
    };
    let result = body(&mut buffer);
    BOUNCE.set(Some(buffer));
    result
}

/// What is wrong with a page whose GSN no record has.
pub const NEWER_THAN_LOG: &str = "gsn of a page that is newer than the log";

/// A page as redo finds it.
#[derive(Debug)]
pub enum RedoPage<'p> {
    /// A page of which every change up to its GSN is there.
    Readable(Exclusive<'p>),
    /// Nothing that redo may build on: torn (version data is not protected), never written, or
    /// beyond the end of the file. Records are skipped until one that makes the page anew
    /// ([`Pool::redo_create`]); the error is what a read would report.
    Broken(StorageError),
}

impl Pool {
    /// The page for redo: exclusively latched, or the reason why there is nothing to build on. A bitmap
    /// page that was never written is readable: all its bits are zero.
    ///
    /// Why torn pages are no error here: a page of version data may be torn by the crash, and the log may
    /// still have records from its earlier, durable life. A durable page is torn at most in a
    /// way that [`Pool::repair_torn_pages`] has put right.
    ///
    /// # Errors
    /// As [`Pool::optimistic`], without `Corruption` by checksum.
    pub fn redo(&self, page: PageId) -> Result<RedoPage<'_>> {
        let (state, words) = self.place(page)?;
        let mut backoff = Backoff::new();
        loop {
            let seen = state.load();
            if seen.is_evicted() {
                let bitmap = self.shape.is_bitmap(page);
                if bitmap {
                    self.extend_file(page.get() + 1)?;
                }
                if page.get() >= self.file_pages() || (self.shape.is_reserved(page) && !bitmap) {
                    return Ok(RedoPage::Broken(self.outside(page)));
                }
                match self.fault_with(page, |words| self.read_in(page, words, !bitmap)) {
                    Ok(Some(guard)) => return Ok(RedoPage::Readable(guard)),
                    Ok(None) => {}
                    Err(error @ StorageError::Corruption { .. }) => {
                        return Ok(RedoPage::Broken(error));
                    }
                    Err(error) => return Err(error),
                }
            } else if state.try_exclusive(seen) {
                return Ok(RedoPage::Readable(Exclusive::new(self, state, words, page)));
            } else {
                backoff.wait();
            }
        }
    }

    /// As [`Pool::create`], for redo: the file is extended where it was not yet long enough.
    ///
    /// # Errors
    /// As [`Pool::create`]; `OutOfSpace`.
    pub fn redo_create(
        &self,
        page: PageId,
        kind: u8,
        tree: PageId,
        gsn: Gsn,
    ) -> Result<Exclusive<'_>> {
        if page.get() >= self.pages_max() {
            return Err(self.outside(page));
        }
        self.extend_file(page.get() + 1)?;
        self.create(page, kind, tree, false, gsn)
    }

    /// Makes the file at least `pages` pages long, with space for them.
    pub(crate) fn extend_file(&self, pages: u64) -> Result<()> {
        if pages <= self.file_pages() {
            return Ok(());
        }
        let _growth = self.growth.lock();
        let now = self.file_pages();
        if pages > now {
            let offset = self.shape.offset(PageId(now));
            self.file
                .allocate(offset, self.shape.offset(PageId(pages)) - offset)?;
            // Release: pairs with the acquire in file_pages.
            self.file_pages.store(pages, Ordering::Release);
        }
        Ok(())
    }

    /// Reads an evicted page in. `None` if somebody else did something with it meanwhile: look again.
    #[cold]
    pub(crate) fn fault(&self, page: PageId) -> Result<Option<Exclusive<'_>>> {
        self.check_id(page)?;
        vellum_sync::test_point!("fault: before the latch");
        self.fault_with(page, |words| {
            // The id may be one that was remembered, of a page that was given back.
            self.check_latched(page)?;
            vellum_sync::test_point!("fault: before the file is read");
            self.read_in(page, words, false)
        })
    }

    /// As [`Pool::fault`], leaving the page zero.
    pub(crate) fn fault_empty(&self, page: PageId) -> Result<Option<Exclusive<'_>>> {
        self.check_id(page)?;
        self.fault_with(page, |_| Ok(()))
    }

    /// Refuses what is not a page of trees or bitmaps.
    pub(crate) fn check_id(&self, page: PageId) -> Result<()> {
        let inside = page.get() < self.file_pages();
        if inside && (!self.shape.is_reserved(page) || self.shape.is_bitmap(page)) {
            Ok(())
        } else {
            Err(self.outside(page))
        }
    }

    /// As [`Pool::check_id`], for who holds the latch of an evicted page that no frame names yet, and is about to read it:
    /// what was looked at before the latch counts for nothing, truncation may have been between (F3).
    pub(crate) fn check_latched(&self, page: PageId) -> Result<()> {
        // Our latch before our look at the file's length; pairs with the fence in `Space::forget`.
        fence(Ordering::SeqCst);
        self.check_id(page)
    }

    fn fault_with(
        &self,
        page: PageId,
        fill: impl FnOnce(&PageWords) -> Result<()>,
    ) -> Result<Option<Exclusive<'_>>> {
        assert_may_wait_below(Rank::SlotLatch);
        let (state, words) = self.place(page)?;
        let Some(frame) = self.take_frame(|| state.load().is_evicted())? else {
            return Ok(None);
        };
        let seen = state.load();
        if !seen.is_evicted() || !state.try_exclusive(seen) {
            self.frames.give(frame);
            return Ok(None);
        }
        let guard = Exclusive::new(self, state, words, page);
        match fill(words) {
            Ok(()) => {
                self.frames.assign(frame, page);
                self.fat.note_in(page);
                Ok(Some(guard))
            }
            Err(error) => {
                // Nothing was stored into the page's words: it has no memory.
                guard.release_evicted();
                self.frames.give(frame);
                Err(error)
            }
        }
    }

    /// Fills the words of a page, held exclusively, from the file. A page that was never written is
    /// an error if `written` demands it.
    fn read_in(&self, page: PageId, words: &PageWords, written: bool) -> Result<()> {
        count(&self.counters.faults, 1);
        with_bounce(self.shape.page_size, |buffer| {
            self.file.read_at(buffer, self.shape.offset(page))?;
            check_read(self, page, buffer, written)?;
            fill(words, buffer);
            Ok(())
        })
    }

    /// A free frame; evicts where there is none. `None` if it is not wanted any more after a wait: of many threads that miss one page the
    /// first brings it in for all.
    fn take_frame(&self, is_wanted: impl Fn() -> bool) -> Result<Option<Frame>> {
        let gate = &self.frames.gate;
        let target = self.low_water().min(EVICT_AT_FAULT);
        let mut backoff = Backoff::new();
        let mut attempts = 0;
        // Whether it is this thread's turn (Q2).
        let mut queued = false;
        loop {
            let waiting = gate.waiting();
            if (queued || waiting == 0 || waiting < self.free_frames())
                && let Some((frame, rest)) = self.frames.take()
            {
                // Once as the mark is crossed, and at every frame while there are none left.
                if rest + 1 == self.low_water() || rest == 0 {
                    self.wake();
                }
                if queued {
                    gate.pass_on();
                }
                return Ok(Some(frame));
            }
            count(&self.counters.frame_waits, 1);
            let freed = match gate.enter() {
                Entry::Inside(_inside) => self.evict_step(target)?,
                waited => {
                    queued = true;
                    if !is_wanted() {
                        gate.pass_on();
                        return Ok(None);
                    }
                    if matches!(waited, Entry::InVain) && self.free_frames() == 0 {
                        self.evict_clean(target)?;
                    }
                    continue;
                }
            };
            queued = true;
            if freed == 0 && self.free_frames() == 0 {
                attempts += 1;
                if attempts == ATTEMPTS {
                    vellum_sync::test_point!("fault: every page in use");
                    return Err(StorageError::MemoryLimit {
                        what: "buffer pool: every page in use",
                    });
                }
                backoff.wait();
            }
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }
}

/// Checks the bytes of a page that were read: checksum, form, then that the log knows of all its changes: by the WAL rule nothing
/// newer was ever written. (Believed, such a page would swallow records of redo, and draw GSNs up to where they end.) A page that was
/// never written is an error if `written` demands it.
pub(crate) fn check_read(pool: &Pool, page: PageId, bytes: &[u8], written: bool) -> Result<()> {
    match page::check(page, bytes) {
        Check::Good => {
            let registered = pool.check.get();
            let form = page::check_header(bytes)
                .and_then(|()| registered.map_or(Ok(()), |check| check(bytes)));
            if let Err(misfit) = form {
                return Err(pool.corrupt(page, misfit.what, misfit.expected, misfit.found));
            }
            let (newest, found) = (pool.log.durable_gsn(), page::stored_gsn(bytes));
            if found > newest {
                return Err(pool.corrupt(page, NEWER_THAN_LOG, newest.get(), found.get()));
            }
            Ok(())
        }
        Check::Zero if !written => Ok(()),
        Check::Zero => Err(pool.corrupt(page, "page was never written", 1, 0)),
        Check::Bad(expected, found) => {
            Err(pool.corrupt(page, "checksum", expected.into(), found.into()))
        }
    }
}

/// Stores the bytes of a page, which the caller holds exclusively.
pub(crate) fn fill(words: &PageWords, bytes: &[u8]) {
    debug_assert_eq!(bytes.len(), 8 * words.len(), "a page's bytes");
    let done = store_most(bytes, words);
    let (chunks, _) = bytes[8 * done..].as_chunks::<8>();
    for (word, bytes) in words[done..].iter().zip(chunks) {
        // Native order: the words in memory are the bytes of the file.
        word.store(u64::from_ne_bytes(*bytes), Relaxed);
    }
}
