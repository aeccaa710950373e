//! The only place that makes references into the pool's memory, and the whole argument why pages
//! may be read while another thread writes, evicts or replaces them.
//!
//! Layout: one private anonymous mapping (no backing store is reserved) in which page `p` lives at
//! byte `p * page_size`, for ever; one mapping with a state word of eight bytes a page.
//!
//! # The argument
//!
//! **What is read.** The mapping is handed out as `&[AtomicU64]`: every access from Rust, read or write,
//! optimistic or latched, is a relaxed atomic access of exactly one aligned 8-byte word (many of them at once: burst.rs). So there is
//! no data race in the language's sense, whoever runs at the same time, and no `&[u8]` or
//! `&T` into a page exists anywhere. A word is old or new, never torn; a *page* may be torn.
//!
//! **How it is bounded.** A page is a slice of `page_size / 8` words; a word outside it reads as
//! zero ([`crate::PageRead::word`]). Whatever offset a reader computes from torn words, it stays
//! inside the page that it names, and the whole range is mapped as long as the pool lives: no
//! fault, no foreign memory. Page ids are checked against the range before a page is named.
//!
//! **Why a torn read cannot escape.** A reader (1) loads the state with acquire, finds an even version
//! V, (2) reads words, relaxed, (3) `fence(Acquire)`, (4) loads the state, relaxed, and believes
//! nothing of (2) unless the version is still V. A writer (a) makes the version V+1 by
//! compare-exchange, (b) `fence(Release)`, (c) stores words, relaxed, (d) stores V+2 with release.
//! - Something read in (2) was stored in (c) of a *later* writer: then fence (b) synchronizes with
//!   fence (3), because a store after (b) was read before (3). So (a) happens before (4), and by
//!   coherence (4) loads V+1 or something newer: the reader starts again.
//! - Something read in (2) is *older* than V's content: impossible. The load (1) read V from
//!   the release store (d) of the last writer (or from a compare-exchange that continues its
//!   release sequence: marks, shared counts and cleared dirty flags are such), so all its stores
//!   happen before (2).
//! - V cannot come back with other content (state.rs, I3 and I4), except after 2^45 writes of that
//!   page during one read.
//!
//! An upgrade from optimistic to a latch is (3) and then a compare-exchange that demands version V: the
//! same argument, and from there on nobody writes.
//!
//! **Shared and exclusive readers** are ordered by the latch itself: the acquire of taking it pairs
//! with the release of whoever gave it back.
//!
//! **Eviction.** The evictor holds the page exclusively (V+1), then `MADV_DONTNEED`, for this page or for several
//! that it holds, takes the memory away; the next touch finds a zeroed page of the system (for a mere read: the one
//! shared zero page, which costs no memory). A racing reader may see some words from before and some
//! zeroes. That is a write of zeroes between (b) and (d) like any other: the kernel unmaps the
//! page and flushes the translations of all processors (an interrupt that each of them takes)
//! after the odd version was stored, and a read that finds the zero page comes after that; its
//! validation sees V+1 or newer. Nobody else can hold the page, so nothing but such a reader
//! can notice.
//!
//! **Reading a page in.** The fault holds the page exclusively, reads the file into a private buffer,
//! checks it there, and only then stores it word by word: a writer as above. What does not pass the check
//! never reaches the range.
//!
//! **A page id used again** is a write under the exclusive latch like any other; old readers hold an
//! older version. What a page *means* may have changed for a reader that comes later: the layers
//! above validate the parent after they have a version of the child.
//!
//! Not here: latching (guard.rs), when to evict (evict.rs).

use crate::huge::{REGION_BYTES, Regions};
use crate::state::PageState;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::array::from_fn;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vellum_base::{PageId, Result, StorageError};

/// Most pages whose memory is given back by one call.
pub(crate) const DISCARD_MAX: usize = 64;

/// Bytes that a processor brings into its caches together.
pub(crate) const LINE_BYTES: usize = 64;

/// Asks the processor to bring the line of a word into its caches, and does not wait.
#[inline]
pub(crate) fn warm<T>(word: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address; it neither reads nor writes, and the address is that of a live word.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

/// What stands for the calling process where a descriptor of one is expected, since Linux 6.14.
const PIDFD_SELF: libc::c_long = -10_000;

/// Wraps an error of a memory call; there is no file to name.
fn memory_error(action: &'static str, error: rustix::io::Errno) -> StorageError {
    StorageError::Io {
        action,
        file: Arc::from("memory"),
        source: Arc::new(error.into()),
    }
}

/// Zeroed, private, unreserved memory, unmapped on drop.
struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; this type only hands out its address.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; there is no method that changes the fields.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn reserve(bytes: usize) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses the address, so no existing mapping is touched.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, protection, flags) };
        let start = start.map_err(|error| memory_error("reserve address range", error))?;
        let start = NonNull::new(start).expect("a successful mmap is not at address zero");
        let mapping = Self { start, bytes };
        // One touched page must not cost 2 MiB, and DONTNEED must not split huge pages. The call fails
        // where the kernel has no huge pages: then there is nothing to prevent.
        let _ = mapping.advise(0, bytes, Advice::LinuxNoHugepage);
        // A core dump of the whole pool helps nobody; failure costs disk space only.
        let _ = mapping.advise(0, bytes, Advice::LinuxDontDump);
        Ok(mapping)
    }

    fn advise(&self, offset: usize, bytes: usize, advice: Advice) -> rustix::io::Result<()> {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        // SAFETY: the offset lies inside the mapping (asserted).
        let start = unsafe { self.start.as_ptr().byte_add(offset) };
        // SAFETY: the range is inside our own mapping. The advices used change page sizes and dumps, get
        // memory under what is there, or replace the content by zeroes, which readers of atomic words survive (module header).
        unsafe { madvise(start, bytes, advice) }
    }

    /// Replaces the content of several ranges, each an offset, all of `bytes` bytes, by zeroes, in one call. How many bytes that
    /// was done for, from the first range on; `None` where the kernel does not do this.
    fn zero_together(&self, offsets: &[usize], bytes: usize) -> Option<usize> {
        assert!(offsets.len() <= DISCARD_MAX);
        let ranges: [libc::iovec; DISCARD_MAX] = from_fn(|index| {
            let offset = offsets.get(index).copied().unwrap_or(0);
            assert!(offset <= self.bytes && bytes <= self.bytes - offset);
            libc::iovec {
                // SAFETY: the offset lies inside the mapping (asserted).
                iov_base: unsafe { self.start.as_ptr().byte_add(offset) },
                iov_len: bytes,
            }
        });
        // SAFETY: the ranges are inside our own mapping, and there are as many as is said. That others read them meanwhile
        // is what the module header is about.
        let done = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                PIDFD_SELF,
                ranges.as_ptr(),
                offsets.len(),
                libc::MADV_DONTNEED,
                0,
            )
        };
        usize::try_from(done).ok()
    }

    /// Gets memory for a range, as if somebody wrote to it; what it holds stays.
    fn populate(&self, offset: usize, bytes: usize) -> rustix::io::Result<()> {
        self.advise(offset, bytes, Advice::LinuxPopulateWrite)
    }

    /// Puts a range, which lies inside a region, on huge pages; what it holds stays.
    fn collapse(&self, offset: usize, bytes: usize) -> rustix::io::Result<()> {
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        // SAFETY: the offset lies inside the mapping (asserted).
        let start = unsafe { self.start.as_ptr().byte_add(offset) };
        // SAFETY: the range is inside our own mapping. Its content stays, also for who writes to it meanwhile: the system copies
        // while nobody reaches it, and lets them go on then.
        let done = unsafe { libc::madvise(start, bytes, libc::MADV_COLLAPSE) };
        if done == 0 {
            Ok(())
        } else {
            Err(rustix::io::Errno::AGAIN)
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us; all references handed out borrow from the owner.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "an existing mapping can be unmapped");
    }
}

/// A word of a page in the pool.
pub(crate) type PageWord = AtomicU64;

/// The words of one page in the pool.
pub(crate) type PageWords = [PageWord];

/// The range in which all pages of the file have their place.
pub(crate) struct PageRange {
    mapping: Mapping,
    /// Where page 0 has its place in the mapping: where a region begins.
    first: usize,
    page_size: usize,
    /// Whether the kernel takes back several pages by one call; false once it refused.
    together: AtomicBool,
    regions: Regions,
}

impl PageRange {
    /// Reserves addresses for `pages` pages; takes no memory.
    pub(crate) fn reserve(page_size: usize, pages: u64) -> Result<Self> {
        let bytes = usize::try_from(pages)
            .ok()
            .and_then(|pages| pages.checked_mul(page_size));
        let bytes = bytes.ok_or(StorageError::MemoryLimit {
            what: "address range",
        })?;
        let mapping = Mapping::reserve(bytes.saturating_add(REGION_BYTES))?;
        let start = mapping.start.as_ptr() as usize;
        Ok(Self {
            mapping,
            first: start.next_multiple_of(REGION_BYTES) - start,
            page_size,
            together: AtomicBool::new(true),
            regions: Regions::new(bytes.div_ceil(REGION_BYTES)),
        })
    }

    /// Which parts of the range stand on huge pages.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Puts a region on a huge page of the system. False if there is none.
    pub(crate) fn join(&self, region: usize) -> bool {
        let offset = self.first + region * REGION_BYTES;
        let allowed = self
            .mapping
            .advise(offset, REGION_BYTES, Advice::LinuxHugepage)
            .is_ok();
        let joined = allowed && self.mapping.collapse(offset, REGION_BYTES).is_ok();
        if !joined {
            let _ = self
                .mapping
                .advise(offset, REGION_BYTES, Advice::LinuxNoHugepage);
        }
        joined
    }

    /// Gets memory for `count` pages from `first` on. False where the system does not do that, or has none.
    pub(crate) fn populate(&self, first: PageId, count: u64) -> bool {
        let offset = self.offset(first);
        let Some(bytes) = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(self.page_size))
        else {
            return false;
        };
        bytes <= self.mapping.bytes - offset && self.mapping.populate(offset, bytes).is_ok()
    }

    /// Gets memory for a whole region, of which no page has any: a huge page, if the system has one. False where it does not do that, or
    /// has no memory.
    pub(crate) fn populate_region(&self, region: usize) -> bool {
        let offset = self.first + region * REGION_BYTES;
        let _ = self
            .mapping
            .advise(offset, REGION_BYTES, Advice::LinuxHugepage);
        let got = self.mapping.populate(offset, REGION_BYTES).is_ok();
        if !got {
            let _ = self
                .mapping
                .advise(offset, REGION_BYTES, Advice::LinuxNoHugepage);
        }
        got
    }

    /// Divides the huge page under the region of a page.
    fn split(&self, page: PageId) {
        let offset = self.offset(page);
        let start = offset - (offset - self.first) % REGION_BYTES;
        let _ = self
            .mapping
            .advise(start, REGION_BYTES, Advice::LinuxNoHugepage);
        // Of a part of a huge page this asks too little to be a hint only: the system divides the page. The part leaves anyhow.
        let _ = self
            .mapping
            .advise(offset, self.page_size, Advice::LinuxCold);
    }

    /// The place of a page.
    ///
    /// # Panics
    /// If the page is outside the range; callers have looked up its state before.
    #[inline]
    pub(crate) fn page(&self, page: PageId) -> &PageWords {
        let offset = self.offset(page);
        let start = self.mapping.start.cast::<AtomicU64>();
        // SAFETY: the offset, asserted to leave room for a page, lies inside the mapping.
        let start = unsafe { start.byte_add(offset) };
        // SAFETY: page_size bytes from here on are mapped for the life of self, are aligned to a
        // page, hold initialized (zeroed) memory, and are accessed by atomics only.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.page_size / 8) }
    }

    #[inline]
    fn offset(&self, page: PageId) -> usize {
        // Within usize: reserve() computed the product for a larger page id.
        let offset = (page.get() as usize).wrapping_mul(self.page_size) + self.first;
        assert!(
            offset <= self.mapping.bytes - self.page_size,
            "page outside the range"
        );
        offset
    }

    /// Gives the memory of pages back to the system. The caller holds all of them exclusively.
    ///
    /// A call interrupts every processor that runs the process and waits for its answer, however many pages it is
    /// for: so as many as there are are given to one.
    pub(crate) fn discard(&self, pages: &[PageId]) {
        for &page in pages {
            let region = (self.offset(page) - self.first) / REGION_BYTES;
            self.regions.before_discard(region, || self.split(page));
        }
        for pages in pages.chunks(DISCARD_MAX) {
            let done = if pages.len() > 1 && self.together.load(Ordering::Relaxed) {
                self.discard_together(pages)
            } else {
                0
            };
            for &page in &pages[done..] {
                self.discard_one(page);
            }
        }
    }

    /// How many of the pages, from the first on, are given back now.
    fn discard_together(&self, pages: &[PageId]) -> usize {
        let offsets: [usize; DISCARD_MAX] =
            from_fn(|index| pages.get(index).map_or(0, |page| self.offset(*page)));
        let done = self
            .mapping
            .zero_together(&offsets[..pages.len()], self.page_size);
        if done.is_none() {
            // Whatever the reason is (no such call, not for this, forbidden): one page after the other needs none of it.
            self.together.store(false, Ordering::Relaxed);
        }
        let done = done.unwrap_or(0) / self.page_size;
        debug_assert!(done <= pages.len());
        done.min(pages.len())
    }

    fn discard_one(&self, page: PageId) {
        let offset = self.offset(page);
        if self
            .mapping
            .advise(offset, self.page_size, Advice::LinuxDontNeed)
            .is_err()
        {
            // Cannot happen on our own unlocked mapping, but an evicted page must read as zeroes
            // (create relies on it) even if its memory stays.
            for word in self.page(page) {
                word.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// The state words of all pages.
#[cfg(not(any(loom, shuttle)))]
pub(crate) struct StateTable {
    mapping: Mapping,
    pages: usize,
}

#[cfg(not(any(loom, shuttle)))]
impl StateTable {
    /// A table of evicted pages; takes memory as entries are used.
    pub(crate) fn reserve(pages: u64) -> Result<Self> {
        let pages = usize::try_from(pages)
            .ok()
            .filter(|pages| pages.checked_mul(8).is_some());
        let pages = pages.ok_or(StorageError::MemoryLimit {
            what: "address range",
        })?;
        Ok(Self {
            mapping: Mapping::reserve(pages * 8)?,
            pages,
        })
    }

    /// The state of a page, if it is inside the range.
    #[inline]
    pub(crate) fn get(&self, page: PageId) -> Option<&PageState> {
        let index = usize::try_from(page.get()).ok()?;
        if index >= self.pages {
            return None;
        }
        let start = self.mapping.start.cast::<PageState>();
        // SAFETY: the index was compared with the number of entries mapped.
        let entry = unsafe { start.add(index) };
        // SAFETY: the entry is mapped for the life of self, aligned, initialized (zero is the
        // evicted state), and changed through its atomic only.
        Some(unsafe { entry.as_ref() })
    }
}

/// The state words of all pages: under the model checkers atomics are not plain words.
#[cfg(any(loom, shuttle))]
pub(crate) struct StateTable(Box<[PageState]>);

#[cfg(any(loom, shuttle))]
impl StateTable {
    /// A table of evicted pages, for small models.
    pub(crate) fn reserve(pages: u64) -> Result<Self> {
        Ok(Self((0..pages).map(|_| PageState::new()).collect()))
    }

    /// The state of a page, if it is inside the range.
    pub(crate) fn get(&self, page: PageId) -> Option<&PageState> {
        self.0.get(usize::try_from(page.get()).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that are zero, of those from 0 on.
    fn zeroes(range: &PageRange, pages: u64) -> Vec<u64> {
        let is_zero = |page: &u64| {
            let mut words = range.page(PageId(*page)).iter();
            words.all(|word| word.load(Ordering::Relaxed) == 0)
        };
        (0..pages).filter(is_zero).collect()
    }

    #[test]
    fn discarded_pages_are_zero_and_their_neighbours_are_not_with_and_without_the_call_for_many() {
        const PAGES: u64 = 300;
        for together in [true, false] {
            let range = PageRange::reserve(8192, PAGES).unwrap();
            range.together.store(together, Ordering::Relaxed);
            for page in 0..PAGES {
                for word in range.page(PageId(page)) {
                    word.store(page + 1, Ordering::Relaxed);
                }
            }
            // More than one call takes, out of order, the last page of the range among them.
            let gone: Vec<u64> = (0..PAGES).filter(|page| page % 2 == 1).collect();
            let order: Vec<PageId> = gone.iter().rev().map(|page| PageId(*page)).collect();
            assert!(order.len() > 2 * DISCARD_MAX && order[0] == PageId(PAGES - 1));
            range.discard(&order);
            assert_eq!(zeroes(&range, PAGES), gone);
            range.discard(&[PageId(0)]);
            assert_eq!(zeroes(&range, 2), [0, 1]);
            range.discard(&[]);
        }
    }
}
