//! Buckets of a histogram: exact below 16, then eight a doubling, so that a value is known to an
//! eighth. Fixed for all of u64: no range to be configured, nothing to be resized.

/// Bits of a value, behind its leading one, that choose the bucket.
const FINE_BITS: u32 = 3;
const FINE: usize = 1 << FINE_BITS;
/// Values below this have a bucket each.
const EXACT: u64 = 2 * FINE as u64;
pub(crate) const BUCKETS: usize = EXACT as usize + (64 - FINE_BITS as usize - 1) * FINE;

/// How far a quantile may lie above the true value, as a fraction of it.
pub const RELATIVE_ERROR: f64 = 1.0 / FINE as f64;

/// Which bucket counts `value`.
#[inline]
pub(crate) const fn bucket_of(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let doubling = value.ilog2();
    let fine = (value >> (doubling - FINE_BITS)) as usize % FINE;
    EXACT as usize + (doubling - FINE_BITS - 1) as usize * FINE + fine
}

/// The largest value that a bucket counts.
const fn bucket_end(bucket: usize) -> u64 {
    if bucket < EXACT as usize {
        return bucket as u64;
    }
    let behind = bucket - EXACT as usize;
    let shift = (behind / FINE) as u32 + 1;
    let start = ((FINE + behind % FINE) as u64) << shift;
    start + ((1 << shift) - 1)
}

const _: () = assert!(bucket_of(u64::MAX) == BUCKETS - 1 && bucket_end(BUCKETS - 1) == u64::MAX);

/// The values that a histogram counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    counts: Box<[u64]>,
}

impl Distribution {
    pub(crate) fn new(counts: Box<[u64]>) -> Self {
        debug_assert_eq!(counts.len(), BUCKETS);
        Self { counts }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A value that `fraction` (0 to 1) of all values do not exceed: at least the true quantile, and by
    /// less than [`RELATIVE_ERROR`] above it. Zero if nothing was counted.
    pub fn quantile(&self, fraction: f64) -> u64 {
        let count = self.count();
        // Float to integer saturates; NaN gives zero.
        let wanted = ((fraction * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return bucket_end(bucket);
            }
        }
        0
    }

    /// The largest value, rounded up as in [`Distribution::quantile`].
    pub fn max(&self) -> u64 {
        self.counts
            .iter()
            .rposition(|&count| count > 0)
            .map_or(0, bucket_end)
    }

    /// Non-empty buckets: the largest value of each, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self
            .counts
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0);
        buckets.map(|(bucket, &count)| (bucket_end(bucket), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_values_in_order_without_gap() {
        for bucket in 0..BUCKETS {
            let end = bucket_end(bucket);
            assert_eq!(bucket_of(end), bucket);
            if let Some(next) = end.checked_add(1) {
                assert_eq!(bucket_of(next), bucket + 1);
            }
        }
    }

    #[test]
    fn quantiles_lie_at_or_closely_above_the_true_ones() {
        let mut counts = vec![0; BUCKETS].into_boxed_slice();
        for value in 1..=10_000_u64 {
            counts[bucket_of(value)] += 1;
        }
        let distribution = Distribution::new(counts);
        for percent in [1_u32, 10, 50, 90, 99, 100] {
            let exact = f64::from(percent) * 100.0;
            let found = distribution.quantile(f64::from(percent) / 100.0) as f64;
            assert!(
                found >= exact && found <= exact * (1.0 + RELATIVE_ERROR),
                "{percent}: {found}"
            );
        }
        assert_eq!(distribution.max(), distribution.quantile(1.0));
        assert_eq!(distribution.count(), 10_000);
        assert_eq!(
            distribution.buckets().map(|(_, count)| count).sum::<u64>(),
            10_000
        );
    }

    #[test]
    fn empty_distribution_and_odd_fractions_give_numbers() {
        let empty = Distribution::new(vec![0; BUCKETS].into_boxed_slice());
        assert_eq!((empty.quantile(0.5), empty.max(), empty.count()), (0, 0, 0));
        let mut counts = vec![0; BUCKETS].into_boxed_slice();
        counts[7] = 2;
        let sevens = Distribution::new(counts);
        for fraction in [-1.0, 0.0, 2.0, f64::NAN] {
            assert_eq!(sevens.quantile(fraction), 7);
        }
    }
}
