//! Parts of the pool that stand on huge pages of the system.
//!
//! Where data is in memory, finding out where an address lies costs as much as the cache miss behind it: page tables are
//! walked, in a virtual machine two kinds of them. So a *region*, 2 MiB of addresses, is *joined* onto one huge page once all of
//! its pages are resident, or before the first of them is made where the file grows (memory_ahead.rs), and *split* again before the
//! first of them leaves.
//!
//! Invariants:
//! - H1 A region is joined only while all of its pages are resident, or got ahead within what M1 allows: it takes no more memory than
//!   they do, so the limit of resident bytes stays hard.
//! - H2 Memory of a page is given back only from a region that is not joined. Giving back a part of a huge page would unmap
//!   that part and keep its memory; a split divides the huge page itself.
//! - H3 Nothing is joined while pages are evicted, or soon will be: it would be split at once. Nor while many come (a load): the
//!   system lets nobody get memory while it exchanges what stands under a region.
//!
//! Concurrency: who joins marks the region, and looks at its pages then; who evicts holds its page exclusively, and looks
//! at the mark then. One of them sees the other (a fence between the steps of both). Joining is exclusive by a mutex, for which an
//! evictor that sees the mark waits, a few milliseconds at most: who joins takes no latch.
//! To readers and writers both are invisible: the system exchanges what stands under the addresses.
//!
//! Crash: memory only.
//!
//! Not here: the calls to the system (racy.rs).

use crate::pool::Pool;
use vellum_base::PageId;
use vellum_base::clock::monotonic_nanos;
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

/// Bytes of a region: of a huge page of the system.
pub(crate) const REGION_BYTES: usize = 2 << 20;
/// More pages than this that came since the last step are many.
const CAME_MAX: u64 = 256;
/// Regions that a step looks at, at most.
const LOOKS: usize = 64;
/// Steps that are left out after the system had no huge page.
const REST: usize = 200;

/// Which regions are joined.
pub(crate) struct Regions {
    joined: Box<[AtomicBool]>,
    /// Held while a region is joined or split.
    changing: Mutex<()>,
    /// The region that is looked at next.
    next: AtomicUsize,
    /// Steps to leave out.
    resting: AtomicUsize,
    /// Pages that had been evicted when the last step ran.
    evicted: AtomicU64,
    /// Pages that had come into memory by then.
    came: AtomicU64,
}

impl Regions {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            joined: (0..count).map(|_| AtomicBool::new(false)).collect(),
            changing: Mutex::new(()),
            next: AtomicUsize::new(0),
            resting: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            came: AtomicU64::new(0),
        }
    }

    /// Joins a region, if all its pages are `resident`; `join` asks the system. Returns what that said.
    pub(crate) fn join(
        &self,
        region: usize,
        resident: impl Fn() -> bool,
        join: impl FnOnce() -> bool,
    ) -> Option<bool> {
        // Relaxed: only this function makes it true, and the mutex orders its callers.
        if self.joined[region].load(Ordering::Relaxed) || !resident() {
            return None;
        }
        let _one = self.changing.lock();
        self.joined[region].store(true, Ordering::Relaxed);
        // SeqCst: the mark before the pages; pairs with the fence in before_discard.
        fence(Ordering::SeqCst);
        let done = resident().then(join);
        if done != Some(true) {
            self.joined[region].store(false, Ordering::Relaxed);
        }
        done
    }

    /// Splits the region of a page, which the caller holds exclusively and is about to give back, if it is joined.
    pub(crate) fn before_discard(&self, region: usize, split: impl FnOnce()) {
        // SeqCst: the latch of the page before the mark; pairs with the fence in join.
        fence(Ordering::SeqCst);
        if self.joined[region].load(Ordering::Relaxed) {
            let _one = self.changing.lock();
            // Somebody else may have split it.
            if self.joined[region].load(Ordering::Relaxed) {
                split();
                self.joined[region].store(false, Ordering::Relaxed);
            }
        }
    }
}

impl Pool {
    /// Puts a region of 2 MiB whose pages are all in memory on a huge page of the system, if there is one; returns whether it
    /// did. Does nothing while pages are evicted or are about to be, while many come, or where the system has no huge pages; and
    /// leaves out as many steps as the last one took milliseconds: a step every 50 ms spends a fiftieth of the time at most.
    ///
    /// The system copies the region, a millisecond's work or, where it has to make room first, several; who touches a page in it
    /// waits, and so does who needs memory for a page.
    pub fn join_step(&self) -> bool {
        let regions = self.range.regions();
        // Relaxed throughout: hints of one thread to itself.
        let evicted = self.counters.evicted.load(Ordering::Relaxed);
        let quiet = regions.evicted.swap(evicted, Ordering::Relaxed) == evicted;
        let counters = &self.counters;
        let came =
            counters.faults.load(Ordering::Relaxed) + counters.created.load(Ordering::Relaxed);
        let few = came.saturating_sub(regions.came.swap(came, Ordering::Relaxed)) < CAME_MAX;
        let resting = regions.resting.load(Ordering::Relaxed);
        if resting > 0 {
            regions.resting.store(resting - 1, Ordering::Relaxed);
            return false;
        }
        if !quiet || !few || self.free_frames() <= 2 * self.high_water() {
            return false;
        }
        let pages = self.region_pages();
        let count = (self.file_pages() / pages) as usize;
        for _ in 0..LOOKS.min(count) {
            let region = regions.next.fetch_add(1, Ordering::Relaxed) % count;
            let first = region as u64 * pages;
            let resident = || (first..first + pages).all(|page| self.stays(PageId(page)));
            let start = monotonic_nanos();
            if let Some(joined) = regions.join(region, resident, || self.range.join(region)) {
                let rest = if joined {
                    ((monotonic_nanos() - start) / 1_000_000) as usize
                } else {
                    REST
                };
                regions.resting.store(rest, Ordering::Relaxed);
                crate::config::count(&self.counters.joined, u64::from(joined));
                return joined;
            }
        }
        false
    }

    /// Pages of a region.
    pub(crate) fn region_pages(&self) -> u64 {
        (REGION_BYTES / self.page_size()) as u64
    }

    /// True if a page has a frame, and nobody is about to take it away.
    fn stays(&self, page: PageId) -> bool {
        self.place(page).is_ok_and(|(state, _)| {
            let now = state.load();
            !now.is_evicted() && !now.is_exclusive()
        })
    }
}
