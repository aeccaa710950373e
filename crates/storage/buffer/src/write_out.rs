//! Writing a batch of dirty pages: copy under shared latches, check the log, double-write, write in
//! place, declare clean.
//!
//! Invariants:
//! - O1 One batch at a time (the writer's mutex). So of two copies of a page the older is never
//!   written in place after the newer, and the halves of the double-write area alternate.
//! - O2 A copy reaches the file only if its GSN is at or below the durable GSN (the WAL rule).
//! - O3 A page becomes clean only if it still is what was copied when the copy is in place.
//!
//! Concurrency: pages are only tried, never waited for, so whoever holds latches may be here. Readers go on
//! while a page is copied; writers go on while the copy is written.
//!
//! Crash: double_write.rs.

use crate::config::count;
use crate::double_write;
use crate::fat;
use crate::frames::Frame;
use crate::geometry::Geometry;
use crate::page::{self, PageHeader};
use crate::pool::Pool;
use crate::state::Word;
use crate::words::PageRead;
use vellum_base::{Gsn, PageId, Result};
use vellum_io::{AlignedBuf, File};
use vellum_sync::Backoff;

/// Why pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To drop them. Pages that were used since they became candidates, and pages ahead of the
    /// log, are left out.
    Evict,
    /// To drop them, whatever it takes: the log is flushed first.
    EvictForced,
    /// To have them in the file. Version data is left out; the log is flushed first.
    Checkpoint,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Pages written.
    pub(crate) written: usize,
    /// Pages dropped from memory.
    pub(crate) dropped: usize,
    /// Pages that the log is not durable for ([`Mode::Evict`]).
    pub(crate) too_new: Vec<(Frame, PageId)>,
    /// Pages that somebody held.
    pub(crate) busy: Vec<(Frame, PageId)>,
}

/// A page whose copy stands in the buffer.
#[derive(Clone, Copy)]
struct Copied {
    page: PageId,
    frame: Frame,
    word: Word,
    gsn: Gsn,
    sum: u32,
    /// Written once: nothing durable names the page.
    once: bool,
}

/// What copying a page came to.
enum Attempt {
    Copied(Copied),
    TooNew,
    Busy,
    /// Clean, dropped, or not wanted any more.
    Gone,
}

/// The one who writes: buffer and position in the double-write area.
pub(crate) struct Writer {
    shape: Geometry,
    /// A header page and the images of a batch, durable pages first, in page order.
    buffer: AlignedBuf,
    /// Number of the next batch that goes through the double-write area; goes on where the file's
    /// last whole half ended, so D2 holds across processes.
    batch: u64,
    /// Images, at the start of the buffer, whose writes in place failed and must come first (D2).
    pub(crate) pending: Vec<PageId>,
}

impl Writer {
    pub(crate) fn new(file: &dyn File, shape: Geometry) -> Result<Self> {
        Ok(Self {
            shape,
            buffer: AlignedBuf::zeroed((1 + shape.batch_pages) * shape.page_size)?,
            batch: double_write::next_batch(file, shape)?,
            pending: Vec::new(),
        })
    }

    /// The image with number `index`.
    fn image(&mut self, index: usize) -> &mut [u8] {
        let start = (1 + index) * self.shape.page_size;
        &mut self.buffer[start..start + self.shape.page_size]
    }

    /// Writes the first images of the buffer to their places; neighbours in one run.
    fn write_in_place(&self, file: &dyn File, pages: &[PageId]) -> Result<()> {
        let size = self.shape.page_size;
        let mut runs: Vec<(u64, &[u8])> = Vec::with_capacity(pages.len());
        let mut start = 0;
        while start < pages.len() {
            let mut end = start + 1;
            while end < pages.len() && pages[end].get() == pages[end - 1].get() + 1 {
                end += 1;
            }
            let bytes = &self.buffer[(1 + start) * size..(1 + end) * size];
            runs.push((self.shape.offset(pages[start]), bytes));
            start = end;
        }
        file.write_batch(&runs)
    }

    /// Repeats writes in place that failed.
    pub(crate) fn finish_pending(&mut self, file: &dyn File) -> Result<()> {
        if !self.pending.is_empty() {
            self.write_in_place(file, &self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Writes the first images of the buffer into the next half and syncs (D1).
    fn write_half(&mut self, file: &dyn File, images: &[Copied]) -> Result<()> {
        let (header, _) = self.buffer.split_at_mut(self.shape.page_size);
        let entries = images.iter().map(|image| (image.page, image.sum));
        double_write::compose(self.shape, self.batch, entries, header);
        let half = self.shape.double_write_half(self.batch % 2);
        let bytes = (1 + images.len()) * self.shape.page_size;
        file.write_at(&self.buffer[..bytes], self.shape.offset(half))?;
        file.sync_data()?;
        self.batch += 1;
        Ok(())
    }
}

impl Pool {
    /// Writes those of `pages` that are dirty, at most a batch; drops them where that is the purpose.
    ///
    /// # Errors
    /// I/O errors, `Poisoned`, those of the log. The pages stay dirty.
    pub(crate) fn write_out(&self, pages: &mut Vec<(Frame, PageId)>, mode: Mode) -> Result<Report> {
        debug_assert!(pages.len() <= self.shape.batch_pages);
        let mut report = Report::default();
        let mut writer = self.writer.lock();
        writer.finish_pending(&*self.file)?;

        // Durable pages first, then by place. What is which may change until it is copied: then the
        // page is left out.
        let mut sorted: Vec<(bool, PageId, Frame)> = pages
            .drain(..)
            .map(|(frame, page)| (self.looks_temporary(page), page, frame))
            .filter(|&(temporary, ..)| !(temporary && mode == Mode::Checkpoint))
            .collect();
        sorted.sort_unstable();
        sorted.dedup_by_key(|entry| entry.1);

        let durable = self.log.durable_gsn();
        let mut copies: Vec<Copied> = Vec::with_capacity(sorted.len());
        for (temporary, page, frame) in sorted {
            let image = writer.image(copies.len());
            match self.copy_page(page, frame, temporary, mode, durable, image) {
                Attempt::Copied(copied) => copies.push(copied),
                Attempt::TooNew => report.too_new.push((frame, page)),
                Attempt::Busy => report.busy.push((frame, page)),
                Attempt::Gone => {}
            }
        }
        let Some(newest) = copies.iter().map(|copied| copied.gsn).max() else {
            return Ok(report);
        };
        if newest > durable {
            debug_assert!(mode != Mode::Evict);
            self.log.make_durable(newest)?;
        }
        debug_assert!(self.log.durable_gsn() >= newest, "O2");

        self.write_copies(&mut writer, &copies)?;
        report.written = copies.len();
        let mut cold = Vec::with_capacity(copies.len());
        for copied in &copies {
            let Some(state) = self.states.get(copied.page) else {
                continue;
            };
            if !state.written_out(copied.word) || mode == Mode::Checkpoint {
                continue;
            }
            let seen = state.load();
            if seen.is_marked() && !seen.is_dirty() {
                cold.push((copied.frame, copied.page, seen));
            }
        }
        // The next batch need not wait until these are dropped.
        drop(writer);
        report.dropped = self.drop_pages(&mut cold);
        Ok(report)
    }

    /// Brings pages into the file, durably, that nothing durable names yet: they are written once, without the double-write area, since who
    /// finds one torn after a crash has no use for it. But a page that is owed goes through that area (D5): of its last life a checkpoint
    /// may have claimed what the area's image lacks that repair would put in its place. (Who frees a page changes it, so one that is not
    /// owed was written through the area since.) What may not be lost may name them when this returns. The caller holds no page, and
    /// nobody else knows these. Blocks for the writes, one sync, and a flush of the log where that is behind their GSN.
    ///
    /// # Errors
    /// I/O errors, `Poisoned`, those of the log: any of the pages may be in the file, whole or in part.
    pub fn write_unnamed(&self, pages: &[PageId]) -> Result<()> {
        let mut backoff = Backoff::new();
        for batch in pages.chunks(self.shape.batch_pages) {
            let mut left = batch.to_vec();
            loop {
                self.write_once(&mut left)?;
                if left.is_empty() {
                    break;
                }
                backoff.wait();
            }
        }
        self.file.sync_data()
    }

    /// Writes a batch of [`Pool::write_unnamed`]; leaves in `pages` those that somebody holds.
    fn write_once(&self, pages: &mut Vec<PageId>) -> Result<()> {
        let mut writer = self.writer.lock();
        writer.finish_pending(&*self.file)?;
        // Nobody else makes them owed, or writes them while the writer is ours.
        let is_owed = |page: PageId| {
            let state = self.states.get(page);
            state.is_some_and(|state| state.load().is_owed())
        };
        let mut sorted: Vec<(bool, PageId)> =
            pages.drain(..).map(|page| (!is_owed(page), page)).collect();
        sorted.sort_unstable();
        let durable = self.log.durable_gsn();
        let mut copies: Vec<Copied> = Vec::with_capacity(sorted.len());
        for (once, page) in sorted {
            let image = writer.image(copies.len());
            // The frame is for who drops pages.
            match self.copy_page(page, 0, false, Mode::Checkpoint, durable, image) {
                Attempt::Copied(copied) => copies.push(Copied { once, ..copied }),
                Attempt::Busy => pages.push(page),
                // Eviction wrote it.
                Attempt::Gone | Attempt::TooNew => {}
            }
        }
        let Some(newest) = copies.iter().map(|copied| copied.gsn).max() else {
            return Ok(());
        };
        if newest > durable {
            self.log.make_durable(newest)?;
        }
        self.write_copies(&mut writer, &copies)?;
        for copied in &copies {
            if let Some(state) = self.states.get(copied.page) {
                state.written_out(copied.word);
            }
        }
        Ok(())
    }

    /// Writes the copies in the buffer to their places, the durable ones through the double-write area.
    fn write_copies(&self, writer: &mut Writer, copies: &[Copied]) -> Result<()> {
        let size = self.shape.page_size as u64;
        let durable = copies.iter().take_while(|copied| !copied.once).count();
        debug_assert!(copies[durable..].iter().all(|copied| copied.once));
        if durable > 0 {
            writer.write_half(&*self.file, &copies[..durable])?;
            count(&self.counters.batches, 1);
            count(
                &self.counters.double_write_bytes,
                (1 + durable as u64) * size,
            );
        }
        let places: Vec<PageId> = copies.iter().map(|copied| copied.page).collect();
        let (durable_places, once) = places.split_at(durable);
        // Both in one batch: version data need no order, and every batch waits for its slowest write.
        if let Err(error) = writer.write_in_place(&*self.file, &places) {
            writer.pending = durable_places.to_vec();
            return Err(error);
        }
        count(&self.counters.in_place_bytes, places.len() as u64 * size);
        count(&self.counters.written, places.len() as u64);
        let images = 0..copies.len();
        let fat = images.filter(|index| fat::is_marked(writer.image(*index)));
        count(&self.counters.fat_written, fat.count() as u64);
        count(&self.counters.written_once, once.len() as u64);
        Ok(())
    }

    /// Whether a page is version data that may be written without double write, without a latch. A
    /// yes was true at one instant; a no may be wrong.
    fn looks_temporary(&self, page: PageId) -> bool {
        let Ok((state, words)) = self.place(page) else {
            return false;
        };
        let seen = state.load();
        if seen.is_evicted() || seen.is_exclusive() || seen.is_owed() {
            return false;
        }
        let word = words[0].load(std::sync::atomic::Ordering::Relaxed);
        let temporary = (u64::from_le(word) >> 40) as u8 & page::FLAG_TEMPORARY != 0;
        // Validated, because a checkpoint believes a yes: a durable page that is just being made
        // temporary has the flag before its state says that it is owed.
        temporary && state.load_after_reads().same_version(seen)
    }

    fn copy_page(
        &self,
        page: PageId,
        frame: Frame,
        temporary: bool,
        mode: Mode,
        durable: Gsn,
        image: &mut [u8],
    ) -> Attempt {
        let Ok((state, words)) = self.place(page) else {
            return Attempt::Gone;
        };
        let seen = state.load();
        if seen.is_exclusive() {
            return Attempt::Busy;
        }
        let used = mode != Mode::Checkpoint && !seen.is_marked();
        if seen.is_evicted() || !seen.is_dirty() || used {
            return Attempt::Gone;
        }
        let Some(guard) = self.try_shared(page) else {
            return if state.load().is_evicted() {
                Attempt::Gone
            } else {
                Attempt::Busy
            };
        };
        // Version and flags stand still now; the count of readers does not matter.
        let word = state.load();
        let gsn = guard.gsn();
        let attempt = if !word.is_dirty() {
            Attempt::Gone
        } else if temporary != (guard.is_temporary() && !word.is_owed()) {
            Attempt::Busy
        } else if mode == Mode::Evict && gsn > durable {
            Attempt::TooNew
        } else {
            let (chunks, _) = image.as_chunks_mut::<8>();
            debug_assert_eq!(chunks.len() * 8, guard.size());
            for (chunk, word) in chunks.iter_mut().zip(words) {
                *chunk = word
                    .load(std::sync::atomic::Ordering::Relaxed)
                    .to_ne_bytes();
            }
            Attempt::Copied(Copied {
                page,
                frame,
                word,
                gsn,
                sum: 0,
                once: temporary,
            })
        };
        guard.release_copied(seen);
        match attempt {
            Attempt::Copied(copied) => Attempt::Copied(Copied {
                sum: page::seal(page, image),
                ..copied
            }),
            other => other,
        }
    }
}
