//! The global logical clock (GLC): the one order of snapshots, stamps and commits.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.1.
//! Differences: reading a snapshot does not advance the clock, so a read-only transaction writes no
//! shared memory here; stamp and commit timestamp are drawn separately (R1).
//!
//! Invariants:
//! - I1 The clock's value is above every timestamp that was drawn: a snapshot `now()` contains
//!   exactly the commits that were drawn before it was read, `commit_ts < snapshot`.
//! - I2 A drawn timestamp is never zero and never drawn again, also over restarts: a start is
//!   above everything that can be on disk.
//!
//! Concurrency: both operations are sequentially consistent. The clock is one half of the Dekker
//! pair between a transaction that begins and a pass (`slot`, `active`), and the release and
//! acquire halves carry a commit's latch to whoever reads a later snapshot (`commit_log`).

use vellum_base::Timestamp;
use vellum_sync::CachePadded;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// The logical clock of one database.
#[derive(Debug)]
pub struct Clock {
    next: CachePadded<AtomicU64>,
}

impl Clock {
    /// No clock has reached this: who finds it, or more, on disk, found damage.
    pub const LIMIT: Timestamp = Timestamp(u64::MAX - (1 << 32));

    /// A clock whose first value is above `timestamp`.
    ///
    /// # Panics
    /// If `timestamp` is at or above [`Clock::LIMIT`].
    pub fn above(timestamp: Timestamp) -> Self {
        assert!(
            timestamp < Self::LIMIT,
            "a timestamp that no clock has reached"
        );
        Self {
            next: CachePadded::new(AtomicU64::new(timestamp.get() + 1)),
        }
    }

    /// The current value: a snapshot that contains every commit drawn so far.
    #[inline]
    pub fn now(&self) -> Timestamp {
        // SeqCst pairs with the slot words (R2); its acquire half with the release half of `draw`.
        Timestamp(self.next.load(Ordering::SeqCst))
    }

    /// Draws a value that nobody else gets, and advances the clock past it.
    #[inline]
    pub fn draw(&self) -> Timestamp {
        // SeqCst pairs with `now` (R2, R7).
        Timestamp(self.next.fetch_add(1, Ordering::SeqCst))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn snapshot_is_above_every_drawn_timestamp_and_reading_does_not_advance() {
        let clock = Clock::above(Timestamp(41));
        assert_eq!(clock.now(), Timestamp(42));
        assert_eq!(clock.now(), Timestamp(42));
        assert_eq!(clock.draw(), Timestamp(42));
        assert!(clock.now() > Timestamp(42));
        assert_ne!(clock.draw(), Timestamp(42));
    }
}
