//! Tests of the crate, and what they share.
//!
//! Not checked here: that log records and pages agree (the tree's tests), speed.

#[cfg(not(any(loom, shuttle)))]
mod access;
#[cfg(not(any(loom, shuttle)))]
mod checkpoint;
#[cfg(not(any(loom, shuttle)))]
mod crash;
#[cfg(not(any(loom, shuttle)))]
mod eviction;
#[cfg(not(any(loom, shuttle)))]
mod memory_ahead;
#[cfg(not(any(loom, shuttle)))]
mod prefetch;
#[cfg(not(any(loom, shuttle)))]
mod space;
#[cfg(not(loom))]
mod stress;
#[cfg(not(any(loom, shuttle)))]
mod words;

mod huge;
mod state;

#[cfg(not(loom))]
pub(crate) use support::*;

#[cfg(not(loom))]
#[cfg_attr(shuttle, allow(dead_code))]
mod support {
    use crate::{Exclusive, PageBuf, PageRead, PageWrite, Pool, PoolConfig, kind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use vellum_base::random::Random;
    use vellum_base::{Gsn, PageId, Result};
    use vellum_io::{Directory, File, MemoryDirectory, OpenOptions, SimulatedDirectory};
    use vellum_wal::DurableGsn;

    pub(crate) const PAGE_SIZES: [usize; 3] = [4096, 8192, 16384];

    /// A log of which only the durable GSN exists.
    #[derive(Debug, Default)]
    pub(crate) struct TestLog {
        pub(crate) durable: AtomicU64,
        pub(crate) asked: AtomicU64,
    }

    impl TestLog {
        pub(crate) fn at(gsn: u64) -> Arc<Self> {
            Arc::new(Self {
                durable: AtomicU64::new(gsn),
                asked: AtomicU64::new(0),
            })
        }
    }

    impl DurableGsn for TestLog {
        fn durable_gsn(&self) -> Gsn {
            Gsn(self.durable.load(Ordering::SeqCst))
        }

        fn make_durable(&self, gsn: Gsn) -> Result<()> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.durable.fetch_max(gsn.get(), Ordering::SeqCst);
            Ok(())
        }
    }

    pub(crate) fn config(page_size: usize, frames: u64) -> PoolConfig {
        PoolConfig {
            page_size,
            pool_bytes: frames * page_size as u64,
            pages_max: if cfg!(shuttle) { 64 } else { 1 << 20 },
            batch_pages: 4,
            // Of several threads that find no frame, all but one wait.
            evictors_max: 1,
        }
    }

    pub(crate) fn data_file(directory: &dyn Directory) -> Arc<dyn File> {
        directory.open("data", OpenOptions::create()).unwrap()
    }

    /// A pool over a new file of `pages` pages after the reserved ones.
    pub(crate) fn pool_in(
        directory: &dyn Directory,
        log: &Arc<TestLog>,
        page_size: usize,
        frames: u64,
        pages: u64,
    ) -> Pool {
        let file = data_file(directory);
        let pool = Pool::create_file(file, log.clone(), &config(page_size, frames)).unwrap();
        directory.sync_dir("").unwrap();
        pool.extend_file(pool.geometry().first_free().get() + pages)
            .unwrap();
        pool.file.sync_data().unwrap();
        pool
    }

    pub(crate) fn memory_pool(page_size: usize, frames: u64, pages: u64) -> (Pool, Arc<TestLog>) {
        let log = TestLog::at(u64::MAX);
        (
            pool_in(&MemoryDirectory::new(), &log, page_size, frames, pages),
            log,
        )
    }

    pub(crate) fn reopen(directory: &SimulatedDirectory, frames: u64) -> Pool {
        let log = TestLog::at(u64::MAX);
        Pool::open(data_file(directory), log, &config(4096, frames)).unwrap()
    }

    /// Page number `index` of those that may be used.
    pub(crate) fn nth(pool: &Pool, index: u64) -> PageId {
        PageId(pool.geometry().first_free().get() + index)
    }

    /// Makes a durable leaf and fills it with the pattern of `value`.
    pub(crate) fn make(pool: &Pool, page: PageId, value: u64, gsn: u64) {
        let mut guard = pool
            .create(page, kind::LEAF, page, false, Gsn(gsn))
            .unwrap();
        stamp(&mut guard, value);
    }

    /// Makes a temporary leaf and fills it.
    pub(crate) fn make_temporary(pool: &Pool, page: PageId, value: u64, gsn: u64) {
        let mut guard = pool.create(page, kind::LEAF, page, true, Gsn(gsn)).unwrap();
        stamp(&mut guard, value);
    }

    /// The pattern: word `i` depends on page, value and `i`, so that words of two versions, of two
    /// pages or of two places are told apart. Words 4, the middle and the last say the value.
    fn pattern(page: PageId, value: u64, index: usize) -> u64 {
        value << 32 ^ page.get() << 16 ^ index as u64
    }

    const SAMPLES: usize = 16;

    fn places(size: usize) -> impl Iterator<Item = usize> {
        let words = size / 8;
        (0..SAMPLES).map(move |i| 4 + i * (words - 5) / (SAMPLES - 1))
    }

    /// Fills a page with the pattern of a value.
    pub(crate) fn stamp(guard: &mut Exclusive<'_>, value: u64) {
        for index in places(guard.size()) {
            guard.set_word(index, pattern(guard.page_id(), value, index));
        }
    }

    /// The value of a page, `None` if it is not one value's pattern.
    pub(crate) fn value_of(page: PageId, words: &impl PageRead) -> Option<u64> {
        let value = (words.word(4) ^ pattern(page, 0, 4)) >> 32;
        places(words.size())
            .all(|index| words.word(index) == pattern(page, value, index))
            .then_some(value)
    }

    pub(crate) fn read(pool: &Pool, page: PageId) -> Option<u64> {
        value_of(page, &pool.shared(page).unwrap())
    }

    /// The bytes of a page in the file.
    pub(crate) fn in_file(pool: &Pool, page: PageId) -> PageBuf {
        let mut buffer = vellum_io::AlignedBuf::zeroed(pool.page_size()).unwrap();
        pool.file
            .read_at(&mut buffer, pool.geometry().offset(page))
            .unwrap();
        let mut copy = PageBuf::new(pool.page_size());
        copy.as_bytes_mut().copy_from_slice(&buffer);
        copy
    }

    pub(crate) fn evict_all(pool: &Pool) {
        for _ in 0..100 {
            if pool.free_frames() == pool.frames() {
                return;
            }
            pool.evict_step(pool.frames()).unwrap();
        }
        panic!("pages stay: {pool:?}");
    }

    pub(crate) fn checkpoint(pool: &Pool) -> u64 {
        let mut scan = pool.checkpoint_begin();
        while !pool.checkpoint_step(&mut scan, 3).unwrap() {}
        scan.written()
    }

    pub(crate) fn random() -> Random {
        let seed = vellum_base::replay::seed();
        println!("to replay: VELLUM_SEED={seed} cargo test -p vellum-buffer <name of the test>");
        Random::new(seed)
    }
}
