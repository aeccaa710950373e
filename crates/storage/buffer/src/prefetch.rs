//! Reading several missing pages at once.
//!
//! A fault keeps the device at a queue depth of one. Who knows which pages it will need asks for them together, and waits
//! about as long as for one.
//!
//! Invariants: those of a fault (fault.rs), for each page.
//!
//! Concurrency: the pages are latched together while they are read, all of them evicted before, and each latch only
//! tried; nothing else is waited for meanwhile. So two that ask for the same pages in different orders share them out.
//! Frames are only taken where there are plenty: a hint evicts nothing.
//!
//! Errors: a hint has none. A page that cannot be read stays evicted, and who needs it finds out.

use crate::config::count;
use crate::fault::{check_read, fill};
use crate::frames::Frame;
use crate::guard::Exclusive;
use crate::pool::Pool;
use std::cell::Cell;
use vellum_base::PageId;
use vellum_io::AlignedBuf;
use vellum_sync::rank::{Rank, assert_may_wait_below};

/// Most pages that are read together.
pub const PREFETCH_MAX: usize = 32;

thread_local! {
    /// Where pages are read into before they are checked. Taken out while in use.
    static BUFFER: Cell<Option<AlignedBuf>> = const { Cell::new(None) };
}

impl Pool {
    /// True if the file is larger than the pool: only then it is worth to ask which pages are missing.
    #[inline]
    pub fn is_outgrown(&self) -> bool {
        self.file_pages() > self.frames() as u64
    }

    /// True if the page was in memory at one instant.
    #[inline]
    pub fn is_resident(&self, page: PageId) -> bool {
        self.states
            .get(page)
            .is_some_and(|state| !state.load().is_evicted())
    }

    /// Reads those of `pages` that are not in memory, [`PREFETCH_MAX`] of them together at most; returns how many it
    /// read. Waits for the device, not for latches, and not for frames: what does not fit easily is left out.
    ///
    /// The caller holds no latch, and has the ids from pages that name them.
    pub fn prefetch(&self, pages: &[PageId]) -> usize {
        self.prefetch_if(pages, |_| true)
    }

    /// As [`Pool::prefetch`], of pages for which `is_wanted` says so while they are latched.
    pub fn prefetch_if(&self, pages: &[PageId], is_wanted: impl Fn(PageId) -> bool) -> usize {
        assert_may_wait_below(Rank::SlotLatch);
        // A small part of a small pool.
        let most = PREFETCH_MAX.min(self.frames() / 4);
        let mut taken: Vec<(Frame, Exclusive<'_>)> = Vec::with_capacity(most.min(pages.len()));
        for &page in pages {
            if taken.len() == most {
                break;
            }
            if self.is_resident(page) || self.check_id(page).is_err() {
                continue;
            }
            let Some(frame) = self.take_spare_frame() else {
                break;
            };
            vellum_sync::test_point!("prefetch: before the latch");
            match self.try_latch_evicted(page) {
                Some(guard) if self.check_latched(page).is_ok() && is_wanted(page) => {
                    taken.push((frame, guard));
                }
                Some(guard) => self.put_back([(frame, guard)]),
                None => self.frames.give(frame),
            }
        }
        if taken.is_empty() {
            return 0;
        }
        let size = self.page_size();
        let bytes = most * size;
        let kept = BUFFER.take().filter(|buffer| buffer.len() >= bytes);
        let buffer = kept.map_or_else(|| AlignedBuf::zeroed(bytes), Ok);
        let Ok(mut buffer) = buffer else {
            self.put_back(taken);
            return 0;
        };
        let mut runs: Vec<(u64, &mut [u8])> = taken
            .iter()
            .zip(buffer.chunks_exact_mut(size))
            .map(|((_, guard), out)| (self.shape.offset(guard.page_id()), out))
            .collect();
        if self.file.read_batch(&mut runs).is_err() {
            self.put_back(taken);
            return 0;
        }
        let mut done = 0;
        for ((frame, guard), bytes) in taken.into_iter().zip(buffer.chunks_exact(size)) {
            let page = guard.page_id();
            match self.place(page) {
                Ok((_, words)) if check_read(self, page, bytes, false).is_ok() => {
                    fill(words, bytes);
                    self.frames.assign(frame, page);
                    self.fat.note_in(page);
                    done += 1;
                }
                _ => self.put_back([(frame, guard)]),
            }
        }
        count(&self.counters.faults, done as u64);
        count(&self.counters.prefetched, done as u64);
        BUFFER.set(Some(buffer));
        done
    }

    /// A frame, unless few are left: those are for who needs a page now.
    fn take_spare_frame(&self) -> Option<Frame> {
        if self.free_frames() <= self.low_water() / 8 || self.frames.gate.waiting() > 0 {
            self.wake();
            return None;
        }
        let (frame, rest) = self.frames.take()?;
        if rest + 1 == self.low_water() || rest == 0 {
            self.wake();
        }
        Some(frame)
    }

    /// Latches a page that is not in memory; `None` if somebody was first.
    fn try_latch_evicted(&self, page: PageId) -> Option<Exclusive<'_>> {
        let (state, words) = self.place(page).ok()?;
        let seen = state.load();
        (seen.is_evicted() && state.try_exclusive(seen))
            .then(|| Exclusive::new(self, state, words, page))
    }

    /// Leaves pages as they were: nothing was stored into their words.
    fn put_back<'p>(&self, taken: impl IntoIterator<Item = (Frame, Exclusive<'p>)>) {
        for (frame, guard) in taken {
            guard.release_evicted();
            self.frames.give(frame);
        }
    }
}
