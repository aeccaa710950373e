//! Checkpoints: everything that was changed before a moment gets into the file, in small steps.
//!
//! A scan walks over the frames once and writes every dirty durable page that it meets. What it does
//! not meet needs no writing: a page that left memory was written by eviction.
//!
//! Invariants:
//! - C1 A page that was changed before [`Pool::checkpoint_begin`] is, when the scan is done, in the file
//!   with that change, or its id is no longer in use by a durable record, or the file has a later
//!   life of it (double_write.rs, D5). The final sync makes all of that durable.
//! - C2 A page that is held exclusively is not judged by its dirty flag (guard.rs: the flag comes with
//!   the release) but looked at again.
//! - C3 Pages made dirty behind the scan's back are the next scan's: it ends.
//!
//! Concurrency: steps of one scan come from one thread at a time, which holds no page. Others read, write, evict
//! and create meanwhile. A page stays in its frame as long as it is resident, so the walk cannot miss one
//! that was resident at the beginning.
//!
//! Crash: nothing of a scan that was not done counts; the caller notes the new redo position after it.

use crate::frames::Frame;
use crate::pool::Pool;
use crate::write_out::Mode;
use std::sync::atomic::Ordering;
use vellum_base::{PageId, Result};
use vellum_sync::Backoff;

/// Frames looked at for every page that a step may write: bounds a step over clean pages.
const LOOKS_PER_PAGE: usize = 64;

/// A checkpoint under way.
#[derive(Debug)]
#[must_use = "a checkpoint is done when checkpoint_step says so"]
pub struct CheckpointScan {
    /// The next frame to look at.
    next: usize,
    /// Pages that were held when the scan met them.
    held: Vec<(Frame, PageId)>,
    written: u64,
    backoff: Backoff,
}

impl CheckpointScan {
    /// Pages that the scan has written so far.
    pub fn written(&self) -> u64 {
        self.written
    }
}

impl Pool {
    /// Starts a checkpoint, and a new cycle of the count of full-page images.
    pub fn checkpoint_begin(&self) -> CheckpointScan {
        // Relaxed: a tag for statistics. What was changed "before" is ordered by how the caller
        // knows it (the log position that it took).
        self.cycle.fetch_add(1, Ordering::Relaxed);
        CheckpointScan {
            next: 0,
            held: Vec::new(),
            written: 0,
            backoff: Backoff::new(),
        }
    }

    /// Goes on with a checkpoint, writing at most `pages` pages (and at most a batch). True when it is
    /// done: then every change from before the beginning is durable in the file, and the cost was
    /// one sync more. The caller holds no page.
    ///
    /// # Errors
    /// I/O errors, `Poisoned`, those of the log. The scan may be continued after an error of
    /// space or I/O: nothing was skipped.
    pub fn checkpoint_step(&self, scan: &mut CheckpointScan, pages: usize) -> Result<bool> {
        let pages = pages.clamp(1, self.shape.batch_pages);
        let walked = scan.next == self.frames.count();
        let start = scan.next;
        let mut batch: Vec<(Frame, PageId)> = Vec::with_capacity(pages);
        let mut held = Vec::new();
        if walked {
            let rest = scan.held.split_off(scan.held.len().min(pages));
            batch = std::mem::replace(&mut scan.held, rest);
            batch.retain(|&entry| self.needs_writing(entry, &mut held));
        } else {
            let looks = pages.saturating_mul(LOOKS_PER_PAGE);
            let end = self.frames.count().min(start.saturating_add(looks));
            while scan.next < end && batch.len() < pages {
                let frame = u32::try_from(scan.next).expect("the number of frames fits");
                scan.next += 1;
                if let Some(page) = self.frames.page(frame)
                    && self.needs_writing((frame, page), &mut held)
                {
                    batch.push((frame, page));
                }
            }
        }
        let result = self.write_out(&mut batch.clone(), Mode::Checkpoint);
        scan.held.append(&mut held);
        match result {
            Ok(mut report) => {
                scan.written += report.written as u64;
                if report.written > 0 {
                    scan.backoff.reset();
                }
                scan.held.append(&mut report.busy);
            }
            Err(error) => {
                scan.held.append(&mut batch);
                return Err(error);
            }
        }
        if scan.next < self.frames.count() || !scan.held.is_empty() {
            if walked {
                // Only pages that somebody holds are left.
                scan.backoff.wait();
            }
            return Ok(false);
        }
        self.file.sync_data()?;
        Ok(true)
    }

    /// True if the page of a frame has to be written; notes pages that are held.
    fn needs_writing(&self, entry: (Frame, PageId), held: &mut Vec<(Frame, PageId)>) -> bool {
        let Some(state) = self.states.get(entry.1) else {
            return false;
        };
        let seen = state.load();
        if seen.is_exclusive() {
            held.push(entry);
            return false;
        }
        !seen.is_evicted() && seen.is_dirty()
    }
}
