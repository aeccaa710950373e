//! Settings of a pool, and what it counts.

use vellum_base::{Result, StorageError};
use vellum_sync::CachePadded;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// Settings of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Bytes of a page: 4096, 8192 or 16384. A file keeps the size that it was made with.
    pub page_size: usize,
    /// Hard limit of resident page bytes.
    pub pool_bytes: u64,
    /// Pages for which addresses are reserved; the file cannot outgrow it.
    pub pages_max: u64,
    /// Pages written out together. A file keeps the value that it was made with, which is also the
    /// size of half its double-write area.
    pub batch_pages: usize,
    /// How many threads that find no free frame evict for themselves at a time; the others wait for what they free.
    pub evictors_max: usize,
}

impl PoolConfig {
    /// Fewest frames of a pool: a structure change holds a handful of pages at once.
    pub const FRAMES_MIN: u64 = 8;
    /// Most pages of a batch: as many as one header page of the smallest size can list.
    pub const BATCH_MAX: usize = 256;
    /// Bytes of addresses that are reserved by default.
    const RESERVED_BYTES: u64 = 1 << 40;

    /// Settings for a pool of `pool_bytes` with pages of `page_size`.
    pub fn new(page_size: usize, pool_bytes: u64) -> Self {
        Self {
            page_size,
            pool_bytes,
            pages_max: Self::RESERVED_BYTES / page_size.max(1) as u64,
            batch_pages: 64,
            evictors_max: 8,
        }
    }

    /// Most resident pages.
    pub(crate) fn frames(&self) -> u64 {
        self.pool_bytes / self.page_size as u64
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// `MemoryLimit` if the pool is too small to work with.
    ///
    /// # Panics
    /// If the page size is none of the three, the batch is empty or too large, or the range is
    /// empty: mistakes of the program.
    pub(crate) fn check(&self) -> Result<()> {
        assert!(
            matches!(self.page_size, 4096 | 8192 | 16384),
            "page size {}",
            self.page_size
        );
        assert!(
            (1..=Self::BATCH_MAX).contains(&self.batch_pages),
            "batch of {}",
            self.batch_pages
        );
        assert!(self.evictors_max > 0, "somebody must evict");
        assert!(
            self.pages_max > 2 * self.batch_pages as u64 + 8,
            "range of {}",
            self.pages_max
        );
        if self.frames() < Self::FRAMES_MIN || self.frames() > u64::from(u32::MAX) {
            return Err(StorageError::MemoryLimit {
                what: "buffer pool size",
            });
        }
        Ok(())
    }
}

impl Default for PoolConfig {
    /// 8 KiB pages, 128 MiB.
    fn default() -> Self {
        Self::new(8192, 128 << 20)
    }
}

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a pool has counted since it was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct PoolStatistics {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counters themselves. None is touched by an access that finds its page in memory.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: CachePadded<AtomicU64>,)*
        }

        impl Counters {
            /// The values now; each is exact, together they are of no single instant.
            pub(crate) fn snapshot(&self) -> PoolStatistics {
                PoolStatistics { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

statistics! {
    /// Pages read from the file.
    faults,
    /// Pages made without reading.
    created,
    /// Pages that were read together with others, before they were needed; counted as faults too.
    prefetched,
    /// Pages dropped from memory.
    evicted,
    /// Regions of 2 MiB that were put on huge pages of the system.
    joined,
    /// Pages whose memory was got before they were made.
    got_ahead,
    /// Dirty pages that had to be written before they could be dropped, and checkpoint writes.
    written,
    /// Those of them that were written without double write: version data, and pages that nothing named yet.
    written_once,
    /// Those of them that were marked as leaves with fat rows.
    fat_written,
    /// Pages that were dropped from memory marked so.
    fat_evicted,
    /// Batches that went through the double-write area; each costs one fdatasync.
    batches,
    /// Bytes written into the double-write area, headers included.
    double_write_bytes,
    /// Bytes written in place.
    in_place_bytes,
    /// First modifications of a durable page in its checkpoint cycle: the full-page images that
    /// the log would have had to carry without the double-write area.
    full_page_images,
    /// Bytes of those.
    full_page_image_bytes,
    /// Times that a thread found no free frame, and evicted by itself or waited for who did.
    frame_waits,
    /// Times that eviction had to ask the log for a flush.
    log_waits,
    /// Torn or old pages put right from the double-write area.
    repaired,
}

/// Adds to a counter.
#[inline]
pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}
