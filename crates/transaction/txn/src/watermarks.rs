//! The watermarks of the last pass, published as one consistent set.
//!
//! Invariants:
//! - I1 A reader gets the four values of one pass, never a mix.
//! - I2 Passes publish one at a time, in the order of their clocks; no watermark ever goes back
//!   except `newest_olap`, which falls when an analytical transaction ends.
//! - I3 `oldest_tx <= oldest_oltp <= clock` and `newest_olap <= clock`.
//!
//! Concurrency: a sequence lock over atomics (Boehm, "Can seqlocks get along with programming language
//! memory models?"). The writer holds the pass's lock.

use vellum_base::Timestamp;
use vellum_sync::atomic::{AtomicU64, Ordering, fence};
use vellum_sync::{CachePadded, hint};

/// What every snapshot that is open or can still be drawn has in common, as of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// At or below every open snapshot and everyone still to come.
    pub oldest_tx: Timestamp,
    /// The same for snapshots of OLTP transactions.
    pub oldest_oltp: Timestamp,
    /// At or above every open OLAP snapshot below `clock`; zero without one.
    pub newest_olap: Timestamp,
    /// The clock value C that the pass read first: it knows nothing about snapshots at or above it.
    pub clock: Timestamp,
}

impl Watermarks {
    /// True if (I3) holds.
    pub fn is_consistent(&self) -> bool {
        self.oldest_tx <= self.oldest_oltp
            && self.oldest_oltp <= self.clock
            && self.newest_olap <= self.clock
    }
}

#[derive(Debug)]
struct Words {
    sequence: AtomicU64,
    values: [AtomicU64; 4],
}

/// Where the watermarks are published.
#[derive(Debug)]
pub(crate) struct PublishedWatermarks(CachePadded<Words>);

impl PublishedWatermarks {
    /// Starts with a set that calls nothing garbage but what is older than `floor`.
    pub(crate) fn new(floor: Timestamp) -> Self {
        let values = [floor, floor, Timestamp::ZERO, floor].map(|ts| AtomicU64::new(ts.get()));
        Self(CachePadded::new(Words {
            sequence: AtomicU64::new(0),
            values,
        }))
    }

    /// The last published set.
    #[inline]
    pub(crate) fn load(&self) -> Watermarks {
        loop {
            // Acquire pairs with the release store that ends `publish`.
            let before = self.0.sequence.load(Ordering::Acquire);
            let values = self
                .0
                .values
                .each_ref()
                .map(|value| value.load(Ordering::Relaxed));
            // Acquire fence pairs with the release fence in `publish`: who read a new value sees the
            // odd number.
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.0.sequence.load(Ordering::Relaxed) == before {
                let [oldest_tx, oldest_oltp, newest_olap, clock] = values.map(Timestamp);
                return Watermarks {
                    oldest_tx,
                    oldest_oltp,
                    newest_olap,
                    clock,
                };
            }
            hint::spin_loop();
        }
    }

    /// Publishes a newer set. The caller holds the pass's lock.
    pub(crate) fn publish(&self, marks: &Watermarks) {
        debug_assert!(marks.is_consistent());
        let sequence = self.0.sequence.load(Ordering::Relaxed);
        debug_assert!(sequence.is_multiple_of(2), "one pass at a time");
        self.0.sequence.store(sequence + 1, Ordering::Relaxed);
        // Pairs with the acquire fence in `load`.
        fence(Ordering::Release);
        let values = [
            marks.oldest_tx,
            marks.oldest_oltp,
            marks.newest_olap,
            marks.clock,
        ];
        for (word, value) in self.0.values.iter().zip(values) {
            word.store(value.get(), Ordering::Relaxed);
        }
        // Release pairs with the acquire in `load`.
        self.0.sequence.store(sequence + 2, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use vellum_sync::{Arc, model, thread};

    #[test]
    fn loom_r2_watermarks_are_read_as_one_set() {
        model(1, || {
            let marks = Arc::new(PublishedWatermarks::new(Timestamp(1)));
            let writer = marks.clone();
            let thread = thread::spawn(move || {
                let ts = Timestamp(2);
                writer.publish(&Watermarks {
                    oldest_tx: ts,
                    oldest_oltp: ts,
                    newest_olap: ts,
                    clock: ts,
                });
            });
            let seen = marks.load();
            assert!(seen.oldest_tx == seen.oldest_oltp && seen.oldest_tx == seen.clock);
            thread.join().unwrap();
        });
    }
}
