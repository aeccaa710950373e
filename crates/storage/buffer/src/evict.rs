//! Second-chance eviction.
//!
//! The clock walks over the frames. An unlocked page is marked; a page that is still marked when the
//! hand comes back was not used for a whole turn: if it is clean it is dropped, together with a few others that the hand meets
//! next, if it is dirty it becomes a candidate. Candidates are written in full batches ([`crate::write_out`]), in partial
//! ones only where clean pages do not suffice, and dropped if they were not used meanwhile.
//!
//! Invariants:
//! - E1 A page is dropped only under its exclusive latch, clean, and from the frame that names it
//!   (frames.rs, F2).
//! - E2 Nothing here waits for a page: whoever evicts may hold latches. Pages that are dropped together are
//!   latched together, each only tried; what is waited for meanwhile are calls to the system (huge.rs included).
//! - E3 A step looks at each frame at most three times, whatever the others do.
//! - E4 A page with fat rows (fat.rs) that is named to maintenance is spared until it was looked at, or the last of these
//!   turns has come. At most an eighth of the frames is spared: who needs a few pages at once (a split) must find
//!   frames for them, or he would evict one for the other for ever. Rows are not made plain on the way of a write-out: that takes pages.
//!
//! Concurrency: any number of threads may run a step; the hand is shared, so they look at different frames.
//!
//! Errors: a batch that cannot be written leaves its pages dirty and resident; clean pages are still
//! dropped, so readers go on while the disk is full or writes fail.

use crate::config::count;
use crate::frames::Frame;
use crate::guard::Exclusive;
use crate::pool::Pool;
use crate::racy::DISCARD_MAX;
use crate::state::Word;
use crate::write_out::Mode;
use vellum_base::{PageId, Result};
use vellum_sync::Mutex;

/// What eviction remembers between steps.
pub(crate) struct Evictor {
    low_water: usize,
    high_water: usize,
    batch_pages: usize,
    /// Dirty pages that were found marked; hints, checked again when they are written.
    candidates: Mutex<Vec<(Frame, PageId)>>,
}

impl Evictor {
    pub(crate) fn new(frames: u32, batch_pages: usize) -> Self {
        let low_water = (frames as usize / 32).max(1);
        // A batch must be able to come together in the pool.
        let batch_pages = batch_pages.min(frames as usize / 2).max(1);
        let candidates = Mutex::new(Vec::with_capacity(batch_pages));
        Self {
            low_water,
            high_water: 2 * low_water,
            batch_pages,
            candidates,
        }
    }
}

/// A page that can go if its state is still this one.
pub(crate) type Cold = (Frame, PageId, Word);

/// What one look of the clock came to.
enum Look {
    Nothing,
    /// A clean page that nobody used for a turn, and its state.
    Clean(Cold),
    /// A dirty page was put on the list, and the list is full: here it is.
    Batch(Vec<(Frame, PageId)>),
}

impl Pool {
    /// Number of frames: the most pages that can be resident.
    pub fn frames(&self) -> usize {
        self.frames.count()
    }

    /// Frames that no page uses.
    pub fn free_frames(&self) -> usize {
        self.frames.free_count()
    }

    /// Below this many free frames somebody should run [`Pool::evict_step`].
    pub fn low_water(&self) -> usize {
        self.evictor.low_water
    }

    /// What to give [`Pool::evict_step`] as its target.
    pub fn high_water(&self) -> usize {
        self.evictor.high_water
    }

    /// Evicts until `target_free` frames are free, or until a turn of the clock gave no more. Returns how
    /// many pages this call dropped. May write, sync, and ask the log for a flush.
    ///
    /// # Errors
    /// Those of writing, if nothing could be dropped.
    pub fn evict_step(&self, target_free: usize) -> Result<usize> {
        self.evict(target_free, true)
    }

    /// As [`Pool::evict_step`], of clean pages only: waits for no write.
    ///
    /// # Errors
    /// None; as [`Pool::evict_step`].
    pub(crate) fn evict_clean(&self, target_free: usize) -> Result<usize> {
        self.evict(target_free, false)
    }

    fn evict(&self, target_free: usize, writes: bool) -> Result<usize> {
        let target = target_free.min(self.frames());
        let mut freed = 0;
        let mut too_new = Vec::new();
        let mut failed = None;
        let mut looks = 3 * self.frames();
        let mut cold: Vec<Cold> = Vec::with_capacity(DISCARD_MAX);
        while looks > 0 {
            if cold.len() == DISCARD_MAX || self.free_frames() + cold.len() >= target {
                if cold.is_empty() {
                    break;
                }
                freed += self.drop_pages(&mut cold);
                continue;
            }
            looks -= 1;
            // E4.
            let spare_fat = looks >= self.frames();
            match self.look(spare_fat) {
                Look::Nothing => {}
                Look::Clean(page) => cold.push(page),
                // Pages of a batch that is not written stay marked: the next hand that comes by lists them again.
                Look::Batch(batch) if writes && failed.is_none() => {
                    // Others need not wait for these until the batch is written.
                    freed += self.drop_pages(&mut cold);
                    match self.write_batch(batch) {
                        Ok((dropped, mut newer)) => {
                            freed += dropped;
                            too_new.append(&mut newer);
                            // Everything cold is ahead of the log: one flush now is cheaper than a walk
                            // over all frames in search of something that is not.
                            if dropped == 0 && too_new.len() >= 2 * self.evictor.batch_pages {
                                break;
                            }
                        }
                        Err(error) => failed = Some(error),
                    }
                }
                Look::Batch(_) => {}
            }
        }
        freed += self.drop_pages(&mut cold);
        if writes && self.free_frames() < target && failed.is_none() {
            let batch = std::mem::take(&mut *self.evictor.candidates.lock());
            match self.write_batch(batch) {
                Ok((dropped, mut newer)) => {
                    freed += dropped;
                    too_new.append(&mut newer);
                }
                Err(error) => failed = Some(error),
            }
        }
        if self.free_frames() < target && failed.is_none() && !too_new.is_empty() {
            count(&self.counters.log_waits, 1);
            too_new.truncate(self.shape.batch_pages);
            match self.write_out(&mut too_new, Mode::EvictForced) {
                Ok(report) => freed += report.dropped,
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if freed == 0 && self.free_frames() == 0 => Err(error),
            _ => Ok(freed),
        }
    }

    /// Writes candidates; returns how many were dropped and which are ahead of the log.
    fn write_batch(
        &self,
        mut batch: Vec<(Frame, PageId)>,
    ) -> Result<(usize, Vec<(Frame, PageId)>)> {
        if batch.is_empty() {
            return Ok((0, batch));
        }
        let report = self.write_out(&mut batch, Mode::Evict)?;
        Ok((report.dropped, report.too_new))
    }

    /// Moves the hand by one frame.
    fn look(&self, spare_fat: bool) -> Look {
        let frame = self.frames.advance();
        let Some(page) = self.frames.page(frame) else {
            return Look::Nothing;
        };
        let Some(state) = self.states.get(page) else {
            return Look::Nothing;
        };
        let seen = state.load();
        if seen.is_unlocked() {
            state.mark(seen);
            return Look::Nothing;
        }
        if !seen.is_marked() {
            return Look::Nothing;
        }
        if spare_fat && self.is_fat(page) && self.name_fat(page) {
            return Look::Nothing;
        }
        if !seen.is_dirty() {
            return Look::Clean((frame, page, seen));
        }
        let mut candidates = self.evictor.candidates.lock();
        if candidates.contains(&(frame, page)) {
            return Look::Nothing;
        }
        candidates.push((frame, page));
        if candidates.len() < self.evictor.batch_pages {
            return Look::Nothing;
        }
        Look::Batch(std::mem::replace(
            &mut *candidates,
            Vec::with_capacity(self.evictor.batch_pages),
        ))
    }

    /// Drops those of the pages, which were seen marked and clean, that still are that; returns how many.
    pub(crate) fn drop_pages(&self, pages: &mut Vec<Cold>) -> usize {
        let mut dropped = 0;
        for pages in pages.chunks(DISCARD_MAX) {
            let held: Vec<_> = pages
                .iter()
                .filter_map(|cold| Some((cold.0, self.hold_cold(*cold)?)))
                .collect();
            dropped += held.len();
            self.note_fat_going(&held);
            self.forget_pages(held);
        }
        pages.clear();
        count(&self.counters.evicted, dropped as u64);
        dropped
    }

    /// Latches a page that can go.
    fn hold_cold(&self, (frame, page, seen): Cold) -> Option<Exclusive<'_>> {
        debug_assert!(seen.is_marked() && !seen.is_dirty());
        let (state, words) = self.place(page).ok()?;
        if !state.try_exclusive(seen) {
            return None;
        }
        let guard = Exclusive::new(self, state, words, page);
        // Otherwise it was dropped and came back in another frame between our two looks.
        (self.frames.page(frame) == Some(page)).then_some(guard)
    }

    /// Takes memory and frames of pages away, dirty or not.
    pub(crate) fn forget_pages(&self, held: Vec<(Frame, Exclusive<'_>)>) {
        let pages: Vec<PageId> = held.iter().map(|(_, guard)| guard.page_id()).collect();
        self.range.discard(&pages);
        let frames = held.into_iter().map(|(frame, guard)| {
            debug_assert_eq!(self.frames.page(frame), Some(guard.page_id()), "F2");
            self.frames.vacate(frame);
            guard.release_evicted();
            frame
        });
        let frames: Vec<Frame> = frames.collect();
        self.frames.give_all(frames);
    }
}
