//! Pages with fat rows ([`FLAG_FAT`]): where they are, which eviction came by, and which are in the file only.
//!
//! Invariants:
//! - E5 A page that leaves memory marked is in the set of those that are out from before its latch is given back until it is in memory again: the set
//!   changes under the page's exclusive latch. So it is exact for what left memory since the pool was opened. What an earlier process
//!   left in the file is not in it: no snapshot of this one sees the old versions there.
//!
//! Concurrency: the mark is read without a latch, so it is a hint, but for E5. The set has a lock of its own, which is taken for marked pages that go, and by
//! faults only while any are out.
//!
//! Cost: a bit a page that is out, in words of 64 neighbours.

use crate::config::count;
use crate::frames::Frame;
use crate::guard::Exclusive;
use crate::page::{FLAG_FAT, PageHeader, kind};
use crate::pool::Pool;
use std::collections::BTreeMap;
use std::ops::Range;
use vellum_base::PageId;
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// What is remembered of pages with fat rows.
pub(crate) struct FatPages {
    /// Those that would have been evicted: for whoever makes their rows plain.
    named: Mutex<Vec<PageId>>,
    named_max: usize,
    /// E5: a bit for each, by the page's number without its last six bits.
    out: Mutex<BTreeMap<u64, u64>>,
    out_count: AtomicU64,
}

/// Pages that are named at a time, at most.
const NAMED_MAX: usize = 256;

impl FatPages {
    pub(crate) fn new(frames: u32) -> Self {
        Self {
            named: Mutex::new(Vec::new()),
            named_max: (frames as usize / 8).clamp(1, NAMED_MAX),
            out: Mutex::new(BTreeMap::new()),
            out_count: AtomicU64::new(0),
        }
    }

    /// E5: the caller holds the page, which is about to leave memory.
    pub(crate) fn note_out(&self, page: PageId) {
        let (word, bit) = (page.get() >> 6, 1 << (page.get() & 63));
        let mut out = self.out.lock();
        let bits = out.entry(word).or_default();
        debug_assert!(*bits & bit == 0, "E5");
        *bits |= bit;
        // Relaxed: who has the page after this has it by its latch, which orders.
        self.out_count.fetch_add(1, Ordering::Relaxed);
    }

    /// E5: the caller holds the page, which is in memory now.
    #[inline]
    pub(crate) fn note_in(&self, page: PageId) {
        if self.out_count.load(Ordering::Relaxed) > 0 {
            self.take_in(page);
        }
    }

    #[cold]
    fn take_in(&self, page: PageId) {
        let (word, bit) = (page.get() >> 6, 1 << (page.get() & 63));
        let mut out = self.out.lock();
        let Some(bits) = out.get_mut(&word).filter(|bits| **bits & bit != 0) else {
            return;
        };
        *bits &= !bit;
        if *bits == 0 {
            out.remove(&word);
        }
        self.out_count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a page that begins with these bytes is marked as a leaf with fat rows. (One that is free has the flags of what it was.)
pub(crate) fn is_marked(bytes: &[u8]) -> bool {
    bytes[4] == kind::LEAF && bytes[5] & FLAG_FAT != 0
}

impl Pool {
    /// Pages with fat rows that eviction came by since the last call. Made plain, they can go.
    pub fn take_fat_pages(&self) -> Vec<PageId> {
        std::mem::take(&mut *self.fat.named.lock())
    }

    /// Pages in memory that are marked as ones with fat rows, at most `max`. Looks at every frame; a hint, like the mark.
    pub fn fat_pages(&self, max: usize) -> Vec<PageId> {
        let pages = self.marked_pages(0..self.frames());
        pages.take(max).collect()
    }

    /// The same, of the pages in these of the pool's frames.
    pub fn fat_pages_in(&self, frames: Range<usize>) -> Vec<PageId> {
        let frames = frames.start..frames.end.min(self.frames());
        self.marked_pages(frames).collect()
    }

    /// Pages that left memory marked as ones with fat rows, and have not come back: their old versions are in the file only.
    pub fn fat_pages_out(&self) -> u64 {
        self.fat.out_count.load(Ordering::Relaxed)
    }

    fn marked_pages(&self, frames: Range<usize>) -> impl Iterator<Item = PageId> {
        let pages = frames.filter_map(|frame| self.frames.page(frame as Frame));
        pages.filter(|page| self.is_fat(*page))
    }

    /// Names a page with fat rows to maintenance; false if too many are named (E4).
    pub(crate) fn name_fat(&self, page: PageId) -> bool {
        let mut named = self.fat.named.lock();
        if named.contains(&page) {
            return true;
        }
        let room = named.len() < self.fat.named_max;
        if room {
            named.push(page);
        }
        room
    }

    /// Whether a page is marked as one with fat rows. Unlatched, so a hint.
    pub(crate) fn is_fat(&self, page: PageId) -> bool {
        self.place(page).is_ok_and(|(_, words)| {
            let word = words[0].load(std::sync::atomic::Ordering::Relaxed);
            is_marked(&u64::from_le(word).to_le_bytes())
        })
    }

    /// Notes of pages that are about to be dropped which of them are marked (E5).
    pub(crate) fn note_fat_going(&self, held: &[(Frame, Exclusive<'_>)]) {
        let mut going = 0;
        for (_, guard) in held {
            if guard.kind() == kind::LEAF && guard.flags() & FLAG_FAT != 0 {
                self.fat.note_out(guard.page_id());
                going += 1;
            }
        }
        if going > 0 {
            count(&self.counters.fat_evicted, going);
        }
    }
}
