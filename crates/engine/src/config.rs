//! Settings of a database. Each has a default that suits a machine with a few gigabytes of memory.

use crate::engine::SYSTEM_SLOTS;
use crate::error::{Error, Result};
use crate::version_budget::VersionPolicy;
use std::time::Duration;
pub use vellum_txn::Protocol;
pub use vellum_version::VersionOptions;

/// Most worker slots: ids are 16 bits wide, one of them names none, and the engine has slots of its own.
const SLOTS_MAX: u16 = u16::MAX - 1 - SYSTEM_SLOTS;
/// Largest segment of the log: offsets in one are 32 bits wide.
const SEGMENT_BYTES_MAX: u64 = 1 << 31;

/// Fewest pages of a data file: 131 of them are the header and the double-write area, and an eighth is set aside.
const DATA_PAGES_MIN: u64 = 256;
/// Largest data file: half of the addresses that a process has on the processors that are in use.
pub(crate) const DATA_BYTES_MAX: u64 = 1 << 46;
/// Largest pool. Each page of it costs twelve bytes when the database is opened.
const POOL_BYTES_MAX: u64 = 1 << 42;

/// How a database is opened. Build one with [`Config::default`] and the methods.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Bytes of a page (4096, 8192 or 16384). Fixed when a database is created; an existing
    /// database keeps its own.
    pub page_size: usize,
    /// Hard limit of resident page bytes: at least 16 pages, at most 4 TiB. What is beyond `data_bytes_max` is not used.
    pub pool_bytes: u64,
    /// Largest size of the data file in bytes (address space that is reserved, not memory): at least 256 pages, at most 64 TiB. A
    /// database that is larger already is not opened.
    ///
    /// Where the file can grow no more, by this limit or because the disk is full, what makes data larger is refused with
    /// `OutOfSpace`; reads, rollbacks and deletes go on. A thirty-second part of the file (in a small one an eighth, at
    /// most 128 pages; in a large one at most 64 MiB) is set aside for deletes and the before-images of any write. So one
    /// transaction can delete rows of about that many bytes, counting a hundred more for each; the rest goes in further
    /// transactions, or with its table. Their space comes back when no snapshot sees them any more.
    pub data_bytes_max: u64,
    /// Limit of the log's bytes on disk.
    pub log_bytes_max: u64,
    /// Bytes of a log segment, a multiple of 4096 of at most 2 GiB.
    pub log_segment_bytes: u64,
    /// Bytes of the log buffer of one worker slot, a power of two of at least 16 pages. A slot that writes faster than the log
    /// is flushed gets up to four times that until it rests. All buffers together take at most 128 times that; further slots
    /// that write at the same time get one of 16 KiB, or what one change needs, and wait for the log more often.
    pub slot_buffer_bytes: usize,
    /// How many transactions can be open at once, 4 to 65532.
    pub slots_max: u16,
    /// How many of them are kept back from transactions that leave them ([`TransactionOptions::leaves_reserved`](crate::TransactionOptions::leaves_reserved));
    /// fewer than there are. Default: none.
    pub slots_reserved: u16,
    /// How long `begin` waits for a slot.
    pub slot_timeout: Duration,
    /// Ticks of the logical clock (two for each transaction that writes) after which a transaction that declared no class
    /// counts as analytical: it looks where the versions are kept that only old snapshots need, and is in nobody's
    /// way. Where such versions pile up, a sixteenth of it is enough. `u64::MAX`: never.
    pub promote_after_ticks: u64,
    /// Bytes that old versions, large values included, may take on disk and in memory together, in whole pages; a goal rather than a wall, looked
    /// at some twenty times a second. Default: no limit.
    pub version_bytes_max: u64,
    /// What happens where they take more.
    pub version_policy: VersionPolicy,
    /// Log bytes between two checkpoints: what a recovery has to redo at most, about twice.
    pub checkpoint_log_bytes: u64,
    /// Whether the database runs its own background threads. Without them whoever embeds it calls
    /// [`Database::step`](crate::Database::step); nothing else changes.
    pub background_threads: bool,
    /// Which parts of the store of old versions are on.
    pub versions: VersionOptions,
    /// Whether `open` creates a database in an empty or missing directory.
    pub create: bool,
    /// How commits become visible; others than the default are for measurements (see [`Experiment`](crate::Experiment)).
    pub protocol: Protocol,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            page_size: 8192,
            pool_bytes: 1 << 30,
            data_bytes_max: 1 << 40,
            log_bytes_max: 1 << 30,
            log_segment_bytes: 32 << 20,
            slot_buffer_bytes: 256 << 10,
            slots_max: 1024,
            slots_reserved: 0,
            slot_timeout: Duration::from_secs(10),
            promote_after_ticks: 100_000,
            version_bytes_max: u64::MAX,
            version_policy: VersionPolicy::Spill,
            checkpoint_log_bytes: 256 << 20,
            background_threads: true,
            versions: VersionOptions::default(),
            create: true,
            protocol: Protocol::default(),
        }
    }
}

impl Config {
    /// Limits the resident page bytes.
    #[must_use]
    pub fn pool_bytes(mut self, bytes: u64) -> Self {
        self.pool_bytes = bytes;
        self
    }

    /// Sets the page size of a database that is created.
    #[must_use]
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.page_size = bytes;
        self
    }

    /// Switches parts of the store of old versions off, or chooses when they are used: for experiments.
    #[must_use]
    pub fn versions(mut self, versions: VersionOptions) -> Self {
        self.versions = versions;
        self
    }

    /// Switches the background threads on or off.
    #[must_use]
    pub fn background_threads(mut self, on: bool) -> Self {
        self.background_threads = on;
        self
    }

    /// Limits the space of old versions.
    #[must_use]
    pub fn version_bytes_max(mut self, bytes: u64, policy: VersionPolicy) -> Self {
        (self.version_bytes_max, self.version_policy) = (bytes, policy);
        self
    }

    /// Checks that the settings fit together.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the first that does not.
    pub fn check(&self) -> Result<()> {
        let invalid = |what: String| Err(Error::InvalidArgument { what });
        if ![4096, 8192, 16384].contains(&self.page_size) {
            return invalid(format!(
                "page_size {} is not 4096, 8192 or 16384",
                self.page_size
            ));
        }
        let pages = self.pool_bytes / self.page_size as u64;
        if pages < 16 {
            return invalid(format!(
                "pool_bytes {} holds only {pages} pages of {} bytes",
                self.pool_bytes, self.page_size
            ));
        }
        if self.pool_bytes > POOL_BYTES_MAX {
            return invalid(format!(
                "pool_bytes {} is above {POOL_BYTES_MAX}",
                self.pool_bytes
            ));
        }
        if !(4..=SLOTS_MAX).contains(&self.slots_max) {
            return invalid(format!(
                "slots_max {} is not in 4..={SLOTS_MAX}",
                self.slots_max
            ));
        }
        if self.slots_reserved >= self.slots_max {
            return invalid(format!(
                "slots_reserved {} is not below slots_max {}",
                self.slots_reserved, self.slots_max
            ));
        }
        if self.log_segment_bytes > SEGMENT_BYTES_MAX
            || !self.log_segment_bytes.is_multiple_of(4096)
        {
            return invalid(format!(
                "log_segment_bytes {} is not a multiple of 4096 of at most {SEGMENT_BYTES_MAX}",
                self.log_segment_bytes
            ));
        }
        if !self.slot_buffer_bytes.is_power_of_two() || self.slot_buffer_bytes < 16 * self.page_size
        {
            return invalid(format!(
                "slot_buffer_bytes {} is not a power of two of at least 16 pages of {} bytes",
                self.slot_buffer_bytes, self.page_size
            ));
        }
        // A quarter of the one and not four of the other: nothing here may overflow.
        if self.log_segment_bytes / 4 < self.slot_buffer_bytes as u64 {
            return invalid(format!(
                "log_segment_bytes {} is below four slot buffers",
                self.log_segment_bytes
            ));
        }
        if self.log_bytes_max / 8 < self.log_segment_bytes {
            return invalid(format!(
                "log_bytes_max {} is below 8 segments",
                self.log_bytes_max
            ));
        }
        if self.data_bytes_max / (self.page_size as u64) < DATA_PAGES_MIN {
            return invalid(format!(
                "data_bytes_max {} is below {DATA_PAGES_MIN} pages",
                self.data_bytes_max
            ));
        }
        if self.data_bytes_max > DATA_BYTES_MAX {
            return invalid(format!(
                "data_bytes_max {} is above {DATA_BYTES_MAX}",
                self.data_bytes_max
            ));
        }
        if self.protocol == Protocol::Stamping && self.versions.fat {
            // Commit timestamps stand where fat rows are estimated by.
            return invalid("commit timestamps in rows and fat rows exclude each other".into());
        }
        Ok(())
    }
}
