//! Memory for pages that are about to be made, got from the system before their maker needs it.
//!
//! The first touch of a page's memory is a trap into the system, which finds and clears what it lends: a microsecond for a page of
//! 8 KiB, and in a virtual machine whose host has to find that memory first, ten or twenty. Where data grows, new pages are mostly the next
//! ones of the file. So as they are made, another thread touches the memory behind them: it asks the system to do as if it
//! wrote there, which changes nothing that anybody reads. Where that is a whole region of 2 MiB, it asks for a huge page: one trap
//! and one entry in the tables of addresses instead of hundreds, and nothing to copy later (huge.rs).
//!
//! Invariants:
//! - M1 What is got ahead is at most [`AHEAD_BYTES`], and at most a 64th of the pool: memory beyond frames that the limit of resident
//!   bytes leaves room for. The same memory is not got twice.
//! - M2 Nothing is got while frames run short: what it would be for goes where something else left.
//! - M3 It is got behind the last page in use and nowhere else: that is where pages are free in one piece, and the window moves on only
//!   over pages that were taken. Pages that are made in holes are followed by pages in use; memory got for those would have
//!   no frame and nobody to give it back, and with holes everywhere it would be the whole file.
//!
//! Concurrency: positions are hints, each moves forward only but where the file is cut. That a page is read in, evicted or discarded while its memory is
//! got is harmless: content is never touched, and zeroes under an evicted page are written over by who reads it in.
//!
//! Crash: memory only.

use crate::config::count;
use crate::pool::Pool;
use vellum_base::PageId;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// Most bytes that are got ahead.
const AHEAD_BYTES: usize = 32 << 20;
/// The part of the pool that is got ahead at most.
const POOL_FRACTION: usize = 64;

/// So few pages are not worth a signal.
const AHEAD_PAGES_MIN: u64 = 16;

/// How far pages were taken and made, and memory was got.
#[derive(Debug, Default)]
pub(crate) struct MemoryAhead {
    /// Behind the last page in use; zero until somebody says so.
    tail: AtomicU64,
    /// Behind the last page that was made near the tail.
    made: AtomicU64,
    /// Behind the last page whose memory was got; the end of all pages once the system has refused.
    got: AtomicU64,
}

impl Pool {
    /// Notes that pages before `end` are in use.
    pub(crate) fn note_in_use(&self, end: u64) {
        // Relaxed throughout: hints.
        if self.ahead.tail.load(Ordering::Relaxed) < end {
            self.ahead.tail.fetch_max(end, Ordering::Relaxed);
        }
    }

    /// Notes that the file ends at `end` now: gives back what was got behind it. No page there is resident, nor can be read in (F3).
    pub(crate) fn note_end(&self, end: u64) {
        let ahead = &self.ahead;
        let tail = ahead.tail.swap(end, Ordering::Relaxed);
        ahead.made.store(0, Ordering::Relaxed);
        let got = ahead.got.load(Ordering::Relaxed);
        if got == u64::MAX {
            return;
        }
        ahead.got.store(got.min(end), Ordering::Relaxed);
        let pages: Vec<PageId> = (tail.max(end)..got).map(PageId).collect();
        self.range.discard(&pages);
    }

    /// Notes that a page was made which had no memory; signals when half of what was got ahead is used up.
    pub(crate) fn note_made(&self, page: PageId) {
        let (ahead, end) = (&self.ahead, page.get() + 1);
        let tail = ahead.tail.load(Ordering::Relaxed);
        let in_a_hole = end + self.ahead_pages() < tail;
        if in_a_hole || tail == 0 || end <= ahead.made.load(Ordering::Relaxed) {
            return;
        }
        let before = ahead.made.fetch_max(end, Ordering::Relaxed);
        let half = self.ahead_pages() / 2;
        if half == 0 {
            return;
        }
        if before / half < end / half && self.has_room_ahead() {
            self.wake();
        }
    }

    /// Gets memory for pages that will probably be made next; returns whether it got any. Does nothing where frames run short, or on
    /// systems that do not offer it.
    ///
    /// Who touches that memory meanwhile waits for the page that is being got.
    pub fn get_memory_ahead(&self) -> bool {
        let ahead = &self.ahead;
        if ahead.made.load(Ordering::Relaxed) == 0 || !self.has_room_ahead() {
            return false;
        }
        let tail = ahead.tail.load(Ordering::Relaxed);
        let from = ahead.got.load(Ordering::Relaxed).max(tail);
        let end = (tail + self.ahead_pages()).min(self.file_pages());
        // Whole regions, where so much is got ahead that waiting for one leaves enough.
        let pages = self.region_pages();
        let whole = self.ahead_pages() >= 2 * pages && end < self.file_pages();
        let end = if whole { end - end % pages } else { end };
        if from >= end || ahead.got.swap(end, Ordering::Relaxed) >= end {
            return false;
        }
        let got = self.populate(from, end);
        if got {
            count(&self.counters.got_ahead, end - from);
        } else {
            ahead.got.store(u64::MAX, Ordering::Relaxed);
        }
        got
    }

    /// Gets memory for pages, region by region; false where there is none.
    fn populate(&self, from: u64, end: u64) -> bool {
        let pages = self.region_pages();
        let mut at = from;
        while at < end {
            let next = (at - at % pages + pages).min(end);
            let region = (at / pages) as usize;
            // None: it is on a huge page already.
            let whole = next - at == pages
                && self.range.regions().join(
                    region,
                    || true,
                    || self.range.populate_region(region),
                ) == Some(true);
            count(&self.counters.joined, u64::from(whole));
            if !whole && !self.range.populate(PageId(at), next - at) {
                return false;
            }
            at = next;
        }
        true
    }

    fn ahead_pages(&self) -> u64 {
        let most = AHEAD_BYTES / self.page_size();
        let pages = most.min(self.frames() / POOL_FRACTION) as u64;
        if pages < AHEAD_PAGES_MIN { 0 } else { pages }
    }

    /// M2.
    fn has_room_ahead(&self) -> bool {
        self.free_frames() > 2 * self.high_water() + self.ahead_pages() as usize
    }
}
