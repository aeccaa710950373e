//! What a database counts: one table of counters ([`Counter`]) and one of histograms ([`Histogram`]), with
//! names, units and texts, and one [`Metrics`] a database that holds their values.
//!
//! Layout: a shard is one run of words, all counters and then all histograms' buckets, on cache lines
//! of its own. A thread adds to the shard of its number modulo the number of shards; a reader sums
//! over all shards.
//!
//! Concurrency: relaxed adds, relaxed loads. A snapshot taken while others count is not a point in
//! time, and one counter may be ahead of another; each is exact once its writers have stopped (or
//! synchronized with the reader), and none ever goes back.
//!
//! Cost: one uncontended atomic add, some 5 ns, as long as no more threads than shards count at
//! once; then two threads share lines now and then.
//!
//! Not here: levels such as resident pages (their owner is asked), and what is exported how.
#![forbid(unsafe_code)]

mod buckets;
mod table;

pub use buckets::{Distribution, RELATIVE_ERROR};
pub use table::{Counter, Histogram, Unit};

use buckets::{BUCKETS, bucket_of};
use std::fmt;
// The standard ones, also under the model checkers: nothing may depend on a count, so there is
// nothing to explore, and thousands of checked words would be slow.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use vellum_sync::CachePadded;

const WORDS: usize = Counter::COUNT + Histogram::COUNT * BUCKETS;
/// Words in a padded group.
const GROUP: usize = 16;

/// 128 bytes of words that no other shard shares.
type Group = CachePadded<[AtomicU64; GROUP]>;

/// The values of one database. Shared by reference; all methods take `&self`.
pub struct Metrics {
    /// A power of two.
    shards: Box<[Box<[Group]>]>,
}

/// One value of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Name, words joined by underscores, unit not included.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// What it counts, one sentence.
    pub text: &'static str,
    /// The sum over all shards.
    pub value: u64,
}

impl Metrics {
    /// All values zero, with as many shards as the machine runs threads at once (at most 64).
    pub fn new() -> Self {
        let parallel = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_shards(parallel)
    }

    /// The same with at least `shards` shards.
    pub fn with_shards(shards: usize) -> Self {
        let shards = shards.clamp(1, 64).next_power_of_two();
        let group = || CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let shard = || (0..WORDS.div_ceil(GROUP)).map(|_| group()).collect();
        Self {
            shards: (0..shards).map(|_| shard()).collect(),
        }
    }

    /// Adds to a counter.
    #[inline]
    pub fn add(&self, counter: Counter, count: u64) {
        self.word(thread_number(), counter as usize)
            .fetch_add(count, Ordering::Relaxed);
    }

    /// Adds one to a counter.
    #[inline]
    pub fn increment(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Notes one value in a histogram.
    #[inline]
    pub fn record(&self, histogram: Histogram, value: u64) {
        let word = histogram_start(histogram) + bucket_of(value);
        self.word(thread_number(), word)
            .fetch_add(1, Ordering::Relaxed);
    }

    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.sum(counter as usize)
    }

    /// All values of a histogram so far.
    pub fn distribution(&self, histogram: Histogram) -> Distribution {
        let start = histogram_start(histogram);
        Distribution::new(
            (start..start + BUCKETS)
                .map(|word| self.sum(word))
                .collect(),
        )
    }

    /// All counters, in the order of the table.
    pub fn snapshot(&self) -> Vec<Sample> {
        let sample = |&counter: &Counter| Sample {
            name: counter.name(),
            unit: counter.unit(),
            text: counter.text(),
            value: self.get(counter),
        };
        Counter::ALL.iter().map(sample).collect()
    }

    #[inline]
    fn word(&self, shard: usize, word: usize) -> &AtomicU64 {
        let shard = &self.shards[shard & (self.shards.len() - 1)];
        &shard[word / GROUP][word % GROUP]
    }

    fn sum(&self, word: usize) -> u64 {
        (0..self.shards.len())
            .map(|shard| self.word(shard, word).load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = self.snapshot();
        let counted = samples.iter().filter(|sample| sample.value != 0);
        f.debug_map()
            .entries(counted.map(|sample| (sample.name, sample.value)))
            .finish()
    }
}

const fn histogram_start(histogram: Histogram) -> usize {
    Counter::COUNT + histogram as usize * BUCKETS
}

/// A small number of the calling thread, given out in order of first use.
#[inline]
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // A thread that is being torn down counts in the first shard.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_in_the_house_style() {
        let names = Counter::ALL.iter().map(|counter| counter.name());
        let names = names.chain(Histogram::ALL.iter().map(|histogram| histogram.name()));
        let mut seen = BTreeSet::new();
        for name in names {
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
            assert!(seen.insert(name), "{name} twice");
        }
        assert!(
            Counter::ALL
                .iter()
                .all(|counter| !counter.text().is_empty())
        );
    }

    #[test]
    fn counts_of_all_threads_add_up_whatever_the_number_of_shards() {
        for shards in [1, 2, 5] {
            let metrics = Metrics::with_shards(shards);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for value in 0..1000 {
                            metrics.increment(Counter::Commits);
                            metrics.add(Counter::LogBytes, 3);
                            metrics.record(Histogram::CommitNanos, value);
                        }
                    });
                }
            });
            assert_eq!(metrics.get(Counter::Commits), 4000);
            assert_eq!(metrics.get(Counter::LogBytes), 12000);
            assert_eq!(metrics.get(Counter::Rollbacks), 0);
            assert_eq!(metrics.distribution(Histogram::CommitNanos).count(), 4000);
            assert_eq!(metrics.distribution(Histogram::FlushNanos).count(), 0);
        }
    }

    #[test]
    fn instances_do_not_share_values() {
        let (one, two) = (Metrics::new(), Metrics::new());
        one.increment(Counter::Commits);
        assert_eq!(
            (one.get(Counter::Commits), two.get(Counter::Commits)),
            (1, 0)
        );
        assert_eq!(format!("{one:?}"), r#"{"commits": 1}"#);
    }

    #[test]
    fn snapshot_holds_every_counter_once_in_order() {
        let metrics = Metrics::with_shards(2);
        for (count, &counter) in (1_u64..).zip(Counter::ALL) {
            metrics.add(counter, count);
        }
        let snapshot = metrics.snapshot();
        assert_eq!(snapshot.len(), Counter::COUNT);
        for ((count, counter), sample) in (1_u64..).zip(Counter::ALL).zip(&snapshot) {
            assert_eq!((sample.name, sample.value), (counter.name(), count));
        }
    }
}
