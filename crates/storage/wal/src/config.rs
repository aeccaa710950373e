//! What a log is opened with, and the positions and numbers that it reports.

use std::sync::Arc;
use vellum_base::{Gsn, Lsn, Result, StorageError, Timestamp};

/// Writes to the log are aligned to this many bytes, and so are segments.
pub const BLOCK_BYTES: u64 = 4096;

/// Sizes of the log.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Number of slots; slot ids are below it.
    pub slots_max: u16,
    /// Bytes of one slot's ring buffer, a power of two; allocated when the slot is first used. Up to four times that while
    /// the slot writes faster than rounds go to the disk; less where all take 128 times that together.
    pub slot_buffer_bytes: usize,
    /// Bytes of one segment file, a multiple of [`BLOCK_BYTES`].
    pub segment_bytes: u64,
    /// Upper bound of the log on disk; at least three segments.
    pub log_bytes_max: u64,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            slots_max: 1024,
            slot_buffer_bytes: 256 << 10,
            segment_bytes: 32 << 20,
            log_bytes_max: 1 << 30,
        }
    }
}

impl LogConfig {
    /// Checks the sizes against each other.
    ///
    /// # Errors
    /// [`StorageError::MemoryLimit`] naming the value that does not fit.
    pub fn validate(&self) -> Result<()> {
        let refuse = |what| Err(StorageError::MemoryLimit { what });
        if self.slots_max == 0 || self.slots_max == u16::MAX {
            return refuse("slots_max must be 1..=65534");
        }
        if !self.slot_buffer_bytes.is_power_of_two() || self.slot_buffer_bytes < 4096 {
            return refuse("slot_buffer_bytes must be a power of two of at least 4096");
        }
        if self.segment_bytes < 8 * BLOCK_BYTES
            || !self.segment_bytes.is_multiple_of(BLOCK_BYTES)
            || self.segment_bytes > 1 << 31
        {
            return refuse("segment_bytes must be a multiple of 4096 in 32 KiB..=2 GiB");
        }
        if self.segments_max() < 3 {
            return refuse("log_bytes_max must hold three segments");
        }
        Ok(())
    }

    /// How many segment files there may be.
    pub fn segments_max(&self) -> u64 {
        self.log_bytes_max / self.segment_bytes
    }
}

/// A place in the log where a round starts (or will start).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogPosition {
    /// Number of the segment; numbers only grow, files are used again.
    pub segment: u64,
    /// Byte offset of the round in its segment, a multiple of [`BLOCK_BYTES`].
    pub offset: u64,
    /// Number of the round that starts there.
    pub round: u64,
}

/// How an incarnation of the log ended: what recovery read, fixed for ever (R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Which incarnation; zero says "none".
    pub incarnation: u64,
    /// Its last complete round; rounds behind it do not exist.
    pub last_round: u64,
    /// Commit timestamps below it are committed.
    pub c: Timestamp,
    /// Records above it do not exist.
    pub m: Gsn,
}

/// What a new incarnation of the log starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// Number of this incarnation, above every earlier one; from 1.
    pub incarnation: u64,
    /// Every GSN of this incarnation is at or above it. It is above every GSN on disk.
    pub first_gsn: Gsn,
    /// Number of the first round, above every earlier one; from 1.
    pub next_round: u64,
    /// Number of the first segment, above every earlier one; from 1.
    pub next_segment: u64,
    /// The clock as it starts: the horizon before the first round.
    pub horizon: Timestamp,
    /// How the incarnation before this one ended; the default for a new database.
    pub previous: Verdict,
    /// Segments from this number on are still needed (by a recovery that may have to run again);
    /// others are overwritten. `u64::MAX` for a new database.
    pub keep_from_segment: u64,
}

impl LogStart {
    /// The start of a new database's log.
    pub fn first() -> Self {
        Self {
            incarnation: 1,
            first_gsn: Gsn(1),
            next_round: 1,
            next_segment: 1,
            horizon: Timestamp::ZERO,
            previous: Verdict::default(),
            keep_from_segment: u64::MAX,
        }
    }
}

/// What one flush round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Round {
    /// Number of the last round on disk.
    pub number: u64,
    /// The hardened horizon after it.
    pub c: Timestamp,
    /// The durable GSN after it.
    pub m: Gsn,
    /// Bytes written, padding included; zero if there was nothing to write.
    pub bytes: u64,
}

/// Where a chunk of one slot's log lies on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ChunkPosition {
    /// The segment's number; zero says "none".
    pub segment: u64,
    /// Offset of the chunk's header in the segment.
    pub offset: u32,
    /// Bytes of records in the chunk.
    pub length: u32,
    /// Where the first of them lies in the slot's log.
    pub start: Lsn,
}

impl ChunkPosition {
    /// True if this names a chunk.
    pub const fn is_some(&self) -> bool {
        self.segment != 0
    }

    /// Lsn after the chunk's last byte.
    pub const fn end(&self) -> Lsn {
        Lsn(self.start.0 + self.length as u64)
    }
}

/// Counters since the log was opened, and what its buffers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LogStatistics {
    /// Memory of the slots' buffers now.
    pub ring_bytes: u64,
    /// Rounds that wrote and flushed.
    pub rounds: u64,
    /// Rounds that found nothing to write.
    pub rounds_empty: u64,
    /// Bytes written, padding included.
    pub bytes_written: u64,
    /// Bytes of records among them.
    pub bytes_records: u64,
    /// Chunks written.
    pub chunks: u64,
    /// Calls of `harden` that had to wait for (or run) a round.
    pub commits_hardened: u64,
    /// Waits for space in a ring.
    pub ring_waits: u64,
    /// Waits for space in the log.
    pub space_waits: u64,
}

impl LogStatistics {
    /// Hardened commits a flushed round.
    pub fn commits_per_round(&self) -> f64 {
        self.commits_hardened as f64 / self.rounds.max(1) as f64
    }
}

/// What the log asks of the buffer pool's owner and the pool of the log.
pub trait DurableGsn: Send + Sync {
    /// Every record with a GSN at or below it is on disk. Never goes back.
    fn durable_gsn(&self) -> Gsn;

    /// Blocks until `durable_gsn() >= gsn`; runs a flush round if nobody does.
    ///
    /// # Errors
    /// The error of the failed flush, `Poisoned` afterwards.
    fn make_durable(&self, gsn: Gsn) -> Result<()>;
}

/// The hook that gives log space back: a step of a checkpoint, implemented by the engine.
pub trait LogSpace: Send + Sync {
    /// Does a step towards [`crate::Log::release_before`]. Called with no latch held. True if it
    /// got anywhere; false says that nothing can be given back, and that who waits gets
    /// [`StorageError::OutOfSpace`]. What it logs it reserves for [`Purpose::Checkpoint`]; a
    /// reservation of its own that does not fit is refused and never waits.
    ///
    /// # Errors
    /// Whatever kept the step from being done; reported to who waits for space.
    fn make_space(&self) -> Result<bool>;
}

/// What a reservation is for; decides how much of the log it may use (R9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A change by a running transaction: leaves room for everyone's rollback and for checkpoints.
    Forward,
    /// A checkpoint's own records, carrying included: leaves room for rollbacks.
    Checkpoint,
    /// Rolling a transaction back: first what the transaction's own records set aside, then all
    /// there is.
    Undo,
    /// What can wait: merging of pages, collection of garbage. Leaves as much as [`Purpose::Forward`] does, and is
    /// refused where that would have to wait for recycling.
    Optional,
}

pub(crate) fn segment_name(index: u64) -> Arc<str> {
    format!("log/{index:08}").into()
}
