//! The frames: which pages are resident, and how many may be.
//!
//! A frame is a right to have one page in memory, not a place: a page's memory is at the page's own
//! address. The table says for each frame which page uses it, so that the clock walks over resident pages
//! and not over the file.
//!
//! Invariants:
//! - F1 Resident pages <= frames: a page gets memory only under a frame that its faulting
//!   thread holds, and a frame is given back only after the page's memory was.
//! - F2 The entry of a frame changes only under the exclusive latch of the page that it names or
//!   will name. So whoever holds a page exclusively and finds it in entry `i` knows that `i` is
//!   the page's one frame.
//!
//! Concurrency: entries are read without latches by the clock and by checkpoints; a stale entry costs
//! a look at a page's state, and F2 is checked again under the latch before anything is done.

use crate::gate::Gate;
use vellum_base::PageId;
use vellum_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use vellum_sync::{CachePadded, Mutex};

/// Number of a frame.
pub(crate) type Frame = u32;

pub(crate) struct Frames {
    /// The page of each frame, zero where it is free (page 0 is never resident).
    pages: Box<[AtomicU64]>,
    free: Mutex<Vec<Frame>>,
    free_count: CachePadded<AtomicUsize>,
    /// The clock's hand; taken modulo the number of frames.
    hand: CachePadded<AtomicUsize>,
    /// Who waits for a free one.
    pub(crate) gate: Gate,
}

impl Frames {
    pub(crate) fn new(count: u32, evictors_max: usize) -> Self {
        Self {
            pages: (0..count).map(|_| AtomicU64::new(0)).collect(),
            // The lowest is given out first.
            free: Mutex::new((0..count).rev().collect()),
            free_count: CachePadded::new(AtomicUsize::new(count as usize)),
            hand: CachePadded::new(AtomicUsize::new(0)),
            gate: Gate::new(evictors_max),
        }
    }

    /// Number of frames.
    pub(crate) fn count(&self) -> usize {
        self.pages.len()
    }

    /// Frames that no page uses; may be stale.
    pub(crate) fn free_count(&self) -> usize {
        self.free_count.load(Ordering::Relaxed)
    }

    /// Takes a free frame, if there is one; also says how many remain.
    pub(crate) fn take(&self) -> Option<(Frame, usize)> {
        let mut free = self.free.lock();
        let frame = free.pop()?;
        let rest = free.len();
        // Relaxed: an estimate for readers; the mutex orders the writers.
        self.free_count.store(rest, Ordering::Relaxed);
        debug_assert!(self.page(frame).is_none(), "a free frame has no page");
        Some((frame, rest))
    }

    /// Gives a frame back that has no page any more.
    pub(crate) fn give(&self, frame: Frame) {
        self.give_all([frame]);
    }

    /// Gives frames back that have no page any more, and wakes who waits for them.
    pub(crate) fn give_all(&self, frames: impl IntoIterator<Item = Frame>) {
        let mut free = self.free.lock();
        let before = free.len();
        for frame in frames {
            debug_assert!(self.page(frame).is_none(), "a free frame has no page");
            free.push(frame);
        }
        debug_assert!(
            free.len() <= self.pages.len(),
            "a frame was given back twice"
        );
        let now = free.len();
        self.free_count.store(now, Ordering::Relaxed);
        drop(free);
        self.gate.freed(now - before);
    }

    /// The page of a frame.
    pub(crate) fn page(&self, frame: Frame) -> Option<PageId> {
        // Acquire: pairs with the release in assign, so that a checkpoint that meets the entry
        // sees the page's state at least as it was then.
        let page = self.pages[frame as usize].load(Ordering::Acquire);
        (page != 0).then_some(PageId(page))
    }

    /// Notes that a page, held exclusively by the caller, uses a frame.
    pub(crate) fn assign(&self, frame: Frame, page: PageId) {
        debug_assert!(!page.is_zero() && self.page(frame).is_none());
        // Release: pairs with the acquire in page.
        self.pages[frame as usize].store(page.get(), Ordering::Release);
    }

    /// Notes that the page of a frame, held exclusively by the caller, is no longer resident.
    pub(crate) fn vacate(&self, frame: Frame) {
        debug_assert!(self.page(frame).is_some());
        // Release: pairs with the acquire in page: a checkpoint that finds the frame empty comes
        // after the write that made its page droppable.
        self.pages[frame as usize].store(0, Ordering::Release);
    }

    /// The frame that the clock looks at next.
    pub(crate) fn advance(&self) -> Frame {
        let at = self.hand.fetch_add(1, Ordering::Relaxed) % self.pages.len();
        u32::try_from(at).expect("the number of frames fits")
    }
}
