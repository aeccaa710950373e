//! The pool: pages of one data file, by page id.
//!
//! Paper: Leis et al., "Virtual-Memory Assisted Buffer Management", SIGMOD 2023.
//! Differences: pages are read into a private buffer, checked and copied, because nothing that the
//! kernel writes while others look may be read by safe code; torn writes are repaired
//! (double_write.rs); no thread is started: eviction and checkpoints are steps.
//!
//! Concurrency: everything is `&self`. Waiting happens in three places: for a latch (spin, yield, short
//! sleeps), for a frame ([`crate::fault`]), for a batch that is being written (a mutex). None of
//! them waits while holding a page that the other needs: eviction and write-out only try latches.
//!
//! Crash: see double_write.rs and checkpoint.rs.

use crate::config::{Counters, PoolConfig, PoolStatistics, count};
use crate::evict::Evictor;
use crate::fat::FatPages;
use crate::frames::Frames;
use crate::geometry::Geometry;
use crate::guard::{Exclusive, Optimistic, Shared};
use crate::header;
use crate::memory_ahead::MemoryAhead;
use crate::page::{FLAG_TEMPORARY, PageCheck, PageHeader, PageHeaderMut};
use crate::racy::{PageRange, PageWords, StateTable};
use crate::state::{PageState, Word};
use crate::write_out::Writer;
use std::sync::{Arc, OnceLock};
use vellum_base::{Gsn, PageId, Result, StorageError};
use vellum_io::File;
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::{Backoff, Mutex};
use vellum_wal::DurableGsn;

/// A buffer pool over one data file.
pub struct Pool {
    pub(crate) file: Arc<dyn File>,
    pub(crate) log: Arc<dyn DurableGsn>,
    pub(crate) shape: Geometry,
    pub(crate) range: PageRange,
    pub(crate) states: StateTable,
    pub(crate) frames: Frames,
    pub(crate) evictor: Evictor,
    pub(crate) fat: FatPages,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) counters: Counters,
    pub(crate) ahead: MemoryAhead,
    pub(crate) wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(crate) check: OnceLock<PageCheck>,
    pages_max: u64,
    /// Pages of the file; only `Space` and redo change it.
    pub(crate) file_pages: AtomicU64,
    /// Held while the file grows or shrinks.
    pub(crate) growth: Mutex<()>,
    /// Number of the checkpoint cycle.
    pub(crate) cycle: AtomicU64,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Pool({:?}, {} of {} frames free)",
            self.file.name(),
            self.free_frames(),
            self.frames()
        )
    }
}

/// The address range of a pool, before there is one: what fails for want of addresses fails before a file is made.
pub struct Addresses {
    range: PageRange,
    states: StateTable,
    page_size: usize,
    pages: u64,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Addresses({} pages of {})", self.pages, self.page_size)
    }
}

impl Addresses {
    /// Reserves what a pool with these settings needs; takes no memory.
    ///
    /// # Errors
    /// `Io`, `MemoryLimit` if the process has no such range left.
    pub fn reserve(config: &PoolConfig) -> Result<Self> {
        Ok(Self {
            range: PageRange::reserve(config.page_size, config.pages_max)?,
            states: StateTable::reserve(config.pages_max)?,
            page_size: config.page_size,
            pages: config.pages_max,
        })
    }

    fn is_for(&self, config: &PoolConfig) -> bool {
        (self.page_size, self.pages) == (config.page_size, config.pages_max)
    }
}

impl Pool {
    /// Makes the data file: header, empty bitmap, double-write area. Durable with the first sync of the file, which the first batch
    /// that is written makes, and the first checkpoint.
    ///
    /// # Errors
    /// I/O errors; `MemoryLimit` if the pool is too small or addresses cannot be reserved.
    pub fn create_file(
        file: Arc<dyn File>,
        log: Arc<dyn DurableGsn>,
        config: &PoolConfig,
    ) -> Result<Self> {
        Self::create_file_at(None, file, log, config)
    }

    /// As [`Pool::create_file`], at addresses that were reserved for these settings.
    ///
    /// # Errors
    /// As [`Pool::create_file`].
    pub fn create_file_at(
        addresses: Option<Addresses>,
        file: Arc<dyn File>,
        log: Arc<dyn DurableGsn>,
        config: &PoolConfig,
    ) -> Result<Self> {
        config.check()?;
        let shape = Geometry {
            page_size: config.page_size,
            batch_pages: config.batch_pages,
        };
        file.allocate(0, shape.offset(shape.first_free()))?;
        header::write(&*file, shape)?;
        Self::over(addresses, file, log, shape, config)
    }

    /// Opens an existing data file. Page size and batch size are those of the file. Reads the
    /// header and writes nothing; after a crash [`Pool::repair_torn_pages`] comes next.
    ///
    /// # Errors
    /// As [`Pool::create_file`]; `ForeignFormat`, `Corruption` of the header.
    pub fn open(
        file: Arc<dyn File>,
        log: Arc<dyn DurableGsn>,
        config: &PoolConfig,
    ) -> Result<Self> {
        Self::open_at(None, file, log, config)
    }

    /// As [`Pool::open`], at addresses that were reserved, if they are for pages of the file's size.
    ///
    /// # Errors
    /// As [`Pool::open`].
    pub fn open_at(
        addresses: Option<Addresses>,
        file: Arc<dyn File>,
        log: Arc<dyn DurableGsn>,
        config: &PoolConfig,
    ) -> Result<Self> {
        let shape = header::read(&*file)?;
        let config = PoolConfig {
            page_size: shape.page_size,
            batch_pages: shape.batch_pages,
            ..config.clone()
        };
        config.check()?;
        Self::over(addresses, file, log, shape, &config)
    }

    fn over(
        addresses: Option<Addresses>,
        file: Arc<dyn File>,
        log: Arc<dyn DurableGsn>,
        shape: Geometry,
        config: &PoolConfig,
    ) -> Result<Self> {
        // A last page that is not whole was growing when the machine stopped: it holds nothing.
        let file_pages = file.len()? / shape.page_size as u64;
        if file_pages > config.pages_max {
            return Err(StorageError::MemoryLimit {
                what: "address range",
            });
        }
        let frames = u32::try_from(config.frames()).expect("checked by PoolConfig");
        let writer = Writer::new(&*file, shape)?;
        let addresses = match addresses.filter(|addresses| addresses.is_for(config)) {
            Some(addresses) => addresses,
            None => Addresses::reserve(config)?,
        };
        Ok(Self {
            range: addresses.range,
            states: addresses.states,
            frames: Frames::new(frames, config.evictors_max),
            evictor: Evictor::new(frames, shape.batch_pages),
            fat: FatPages::new(frames),
            writer: Mutex::new(writer),
            counters: Counters::default(),
            ahead: MemoryAhead::default(),
            wake: OnceLock::new(),
            check: OnceLock::new(),
            pages_max: config.pages_max,
            file_pages: AtomicU64::new(file_pages),
            growth: Mutex::new(()),
            cycle: AtomicU64::new(0),
            file,
            log,
            shape,
        })
    }

    /// Bytes of a page.
    #[inline]
    pub fn page_size(&self) -> usize {
        self.shape.page_size
    }

    /// Where things stand in the file.
    pub fn geometry(&self) -> Geometry {
        self.shape
    }

    /// Pages of the file.
    pub fn file_pages(&self) -> u64 {
        // Acquire: pairs with the release of whoever grew the file.
        self.file_pages.load(Ordering::Acquire)
    }

    /// Pages that the reserved addresses suffice for.
    pub fn pages_max(&self) -> u64 {
        self.pages_max
    }

    /// What was counted so far.
    pub fn statistics(&self) -> PoolStatistics {
        self.counters.snapshot()
    }

    /// Registers what is called when free frames fall below [`Pool::low_water`], or when memory should be got ahead
    /// ([`Pool::get_memory_ahead`]), on the thread that took the frame, possibly under page latches: it may only signal. The first one stays.
    pub fn set_wake(&self, wake: Box<dyn Fn() + Send + Sync>) {
        let _ = self.wake.set(wake);
    }

    /// Registers what every page must pass that is read from the file, beyond its checksum; the first one stays. A page that
    /// does not is `Corruption`, and stays out of memory.
    pub fn set_check(&self, check: PageCheck) {
        let _ = self.check.set(check);
    }

    /// State and words of a page.
    #[inline]
    pub(crate) fn place(&self, page: PageId) -> Result<(&PageState, &PageWords)> {
        match self.states.get(page) {
            Some(state) => Ok((state, self.range.page(page))),
            None => Err(self.outside(page)),
        }
    }

    #[cold]
    pub(crate) fn outside(&self, page: PageId) -> StorageError {
        self.corrupt(
            page,
            "page id beyond the file",
            self.file_pages(),
            page.get(),
        )
    }

    pub(crate) fn corrupt(
        &self,
        page: PageId,
        what: &'static str,
        expected: u64,
        found: u64,
    ) -> StorageError {
        StorageError::Corruption {
            file: self.file.name().clone(),
            page: Some(page),
            what,
            expected,
            found,
        }
    }

    /// A page to read without a latch. Waits while somebody writes to it; reads it from the file
    /// where needed. `page` may only come from memory that was validated.
    ///
    /// # Errors
    /// I/O errors; `Corruption` if the page's checksum is wrong or there is no such page;
    /// `MemoryLimit` if every frame is latched.
    #[inline]
    pub fn optimistic(&self, page: PageId) -> Result<Optimistic<'_>> {
        let (state, words) = self.place(page)?;
        let seen = state.load();
        if seen.is_readable() {
            return Ok(Optimistic::new(self, state, words, page, seen));
        }
        let seen = self.readable(page, state, None)?;
        Ok(Optimistic::new(self, state, words, page, seen))
    }

    /// Waits for a readable state: the slow part of [`Pool::optimistic`]. [`Word::NEVER`] if the page that named this one, given
    /// by its state and the word under which it was read, changes meanwhile.
    #[cold]
    pub(crate) fn readable(
        &self,
        page: PageId,
        state: &PageState,
        named_by: Option<(&PageState, Word)>,
    ) -> Result<Word> {
        let still_named =
            || named_by.is_none_or(|(state, seen)| state.load_after_reads().same_version(seen));
        vellum_sync::test_point!("pool: page is not readable");
        let mut backoff = Backoff::new();
        loop {
            let seen = state.load();
            if seen.is_readable() {
                return Ok(seen);
            }
            if seen.is_marked() {
                if let Some(seen) = state.unmark(seen) {
                    return Ok(seen);
                }
            } else if seen.is_evicted() {
                match self.fault(page) {
                    // Its guard, if we got one, ends here: the next look finds the page readable.
                    Ok(guard) => drop(guard),
                    Err(error) if still_named() => return Err(error),
                    // Given back, and perhaps cut off the file: nobody looks for it there.
                    Err(_) => return Ok(Word::NEVER),
                }
            } else if still_named() {
                vellum_sync::test_point!("pool: wait for a page");
                backoff.wait();
            } else {
                return Ok(Word::NEVER);
            }
        }
    }

    /// As [`Pool::optimistic`], but neither waits nor reads from the file.
    #[inline]
    pub fn try_optimistic(&self, page: PageId) -> Option<Optimistic<'_>> {
        let (state, words) = self.place(page).ok()?;
        let mut seen = state.load();
        if seen.is_marked() {
            seen = state.unmark(seen)?;
        }
        seen.is_readable()
            .then(|| Optimistic::new(self, state, words, page, seen))
    }

    /// A page under a shared latch. Waits for a writer; reads it from the file where needed.
    ///
    /// # Errors
    /// As [`Pool::optimistic`].
    pub fn shared(&self, page: PageId) -> Result<Shared<'_>> {
        let (state, words) = self.place(page)?;
        let mut backoff = Backoff::new();
        loop {
            let seen = state.load();
            if state.try_shared(seen) {
                return Ok(Shared::new(self, state, words, page));
            }
            if seen.is_evicted() {
                if let Some(guard) = self.fault(page)? {
                    return Ok(guard.downgrade());
                }
            } else {
                backoff.wait();
            }
        }
    }

    /// As [`Pool::shared`], but neither waits nor reads from the file.
    pub fn try_shared(&self, page: PageId) -> Option<Shared<'_>> {
        let (state, words) = self.place(page).ok()?;
        // A few attempts: other readers change the word too.
        for _ in 0..crate::guard::SHARED_ATTEMPTS {
            let seen = state.load();
            if state.try_shared(seen) {
                return Some(Shared::new(self, state, words, page));
            }
            if !seen.is_readable() && !seen.is_marked() {
                return None;
            }
        }
        None
    }

    /// A page under an exclusive latch. Waits for readers and writers; reads it from the file
    /// where needed.
    ///
    /// # Errors
    /// As [`Pool::optimistic`].
    pub fn exclusive(&self, page: PageId) -> Result<Exclusive<'_>> {
        let (state, words) = self.place(page)?;
        let mut backoff = Backoff::new();
        loop {
            let seen = state.load();
            if seen.is_evicted() {
                if let Some(guard) = self.fault(page)? {
                    return Ok(guard);
                }
            } else if state.try_exclusive(seen) {
                return Ok(Exclusive::new(self, state, words, page));
            } else {
                backoff.wait();
            }
        }
    }

    /// As [`Pool::exclusive`], but neither waits nor reads from the file.
    pub fn try_exclusive(&self, page: PageId) -> Option<Exclusive<'_>> {
        let (state, words) = self.place(page).ok()?;
        let seen = state.load();
        (!seen.is_evicted() && state.try_exclusive(seen))
            .then(|| Exclusive::new(self, state, words, page))
    }

    /// A page as it is when it was just taken from [`crate::Space`]: zeroed, header set, GSN
    /// `gsn_floor`. Nothing is read; what was in memory under this id is forgotten. Waits for whoever
    /// still holds the page.
    ///
    /// # Errors
    /// `MemoryLimit` if every frame is latched; I/O errors of eviction; `Corruption` if there
    /// is no such page.
    pub fn create(
        &self,
        page: PageId,
        kind: u8,
        tree: PageId,
        temporary: bool,
        gsn_floor: Gsn,
    ) -> Result<Exclusive<'_>> {
        let (state, words) = self.place(page)?;
        let mut backoff = Backoff::new();
        let (mut guard, fresh) = loop {
            let seen = state.load();
            if seen.is_evicted() {
                if let Some(guard) = self.fault_empty(page)? {
                    break (guard, true);
                }
            } else if state.try_exclusive(seen) {
                let mut guard = Exclusive::new(self, state, words, page);
                // What the file has of an earlier life lacks changes that no log may have any more,
                // so redo must find the new life there (double_write.rs, D5).
                if seen.is_owed() || (seen.is_dirty() && !guard.is_temporary()) {
                    guard.set_owed();
                }
                break (guard, false);
            } else {
                backoff.wait();
            }
        };
        if fresh {
            self.note_made(page);
        } else {
            guard.clear();
        }
        guard.set_header(kind, if temporary { FLAG_TEMPORARY } else { 0 }, tree);
        guard.set_gsn(gsn_floor);
        count(&self.counters.created, 1);
        Ok(guard)
    }

    /// What a page is marked with when it is made dirty now; never zero.
    #[inline]
    pub(crate) fn cycle_tag(&self) -> u8 {
        (self.cycle.load(Ordering::Relaxed) % 255) as u8 + 1
    }

    #[cold]
    pub(crate) fn count_full_page_image(&self) {
        count(&self.counters.full_page_images, 1);
        count(
            &self.counters.full_page_image_bytes,
            self.shape.page_size as u64,
        );
    }
}
