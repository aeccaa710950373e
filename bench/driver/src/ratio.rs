//! What the samples of a run say about an old snapshot.
//!
//! | figure | definition |
//! | --- | --- |
//! | `tx_per_s_before_hold` | mean rate between warm-up and the snapshot |
//! | `held_ratio` | mean rate of the last sixth of the run over the mean rate between warm-up and the snapshot |
//! | `release_min_ratio` | slowest second after the release over the median second without a snapshot: the larger of the medians before it (behind the warm-up) and after the release |
//! | growth | at the end of the last second, less at the end of the second in which the snapshot began |
//!
//! Warm-up is the first five seconds, or a quarter of the time before the snapshot if that is less, and two seconds at least where another
//! one follows them: the first ones are those of files that grow. Where snapshots
//! are released before the end, the run of `held_ratio` ends with the release: behind it nothing is held.
//!
//! `release_min_ratio` has the larger of the two medians below it, so that neither a run that is slow beside its snapshot nor one that stays
//! slow behind it makes the slowest second look good: seconds beside the snapshot are in neither, and a run that never recovers is
//! measured by what it was before.

use crate::measure::Sample;
use crate::median::median;

/// Seconds of warm-up, at least and at most.
const WARM_UP_S: [u64; 2] = [2, 5];

/// Seconds at the start of a run that count for nothing, if the first snapshot begins at `hold_at`.
pub(crate) fn warm_up_s(hold_at: u64) -> u64 {
    (hold_at / 4)
        .clamp(WARM_UP_S[0], WARM_UP_S[1])
        .min(hold_at.saturating_sub(1))
}

/// `held_ratio`; none if the run has no second on one of the two sides.
pub(crate) fn held(samples: &[Sample], hold_at: u64, release: Option<u64>) -> Option<f64> {
    let end = release.unwrap_or(u64::MAX).min(samples.last()?.s);
    let before = before(samples, hold_at)?;
    let sixth = (end / 6).max(1);
    let after = mean(samples, (end - sixth).max(hold_at), end)?;
    (before > 0.0).then(|| after / before)
}

/// Mean rate between warm-up and the snapshot; none if there is no second between them.
pub(crate) fn before(samples: &[Sample], hold_at: u64) -> Option<f64> {
    mean(samples, warm_up_s(hold_at), hold_at)
}

/// Transactions for each of what the engine counts as `counter`, between the first sample and the last; none where it counted none.
pub(crate) fn per_count(samples: &[Sample], counter: &str) -> Option<f64> {
    let (first, rest) = samples.split_first()?;
    let of = |sample: &Sample| sample.more.get(counter).copied();
    let counted = of(rest.last()?)?.checked_sub(of(first)?)?;
    let transactions: u64 = rest.iter().map(|sample| sample.tx).sum();
    (counted > 0).then(|| transactions as f64 / counted as f64)
}

/// `release_min_ratio` of a snapshot held from `hold_at` to `release`; none if no second follows the release.
pub(crate) fn after_release(samples: &[Sample], hold_at: u64, release: u64) -> Option<f64> {
    let slowest = between(samples, release, u64::MAX).min()?;
    let sides = [(warm_up_s(hold_at), hold_at), (release, u64::MAX)];
    let medians = sides.into_iter().filter_map(|(from, to)| {
        let rates = between(samples, from, to);
        median(rates.map(|tx| tx as f64))
    });
    let usual = medians.reduce(f64::max)?;
    (usual > 0.0).then(|| slowest as f64 / usual)
}

/// How much `of` has grown since the end of second `since` (0: the first second).
pub(crate) fn growth(
    samples: &[Sample],
    since: u64,
    of: impl Fn(&Sample) -> Option<u64>,
) -> Option<i64> {
    let first = samples.iter().find(|sample| sample.s >= since)?;
    let (from, to) = (of(first)?, of(samples.last()?)?);
    Some(to.cast_signed().wrapping_sub(from.cast_signed()))
}

/// Transactions of the seconds that began at or after `from` and ended at or before `to`.
fn between(samples: &[Sample], from: u64, to: u64) -> impl Iterator<Item = u64> + '_ {
    samples
        .iter()
        .filter(move |sample| sample.s > from && sample.s <= to)
        .map(|sample| sample.tx)
}

fn mean(samples: &[Sample], from: u64, to: u64) -> Option<f64> {
    let (sum, count) =
        between(samples, from, to).fold((0, 0_u64), |(sum, count), tx| (sum + tx, count + 1));
    (count > 0).then(|| sum as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rates: impl IntoIterator<Item = u64>) -> Vec<Sample> {
        let second = |(index, tx)| Sample {
            s: index as u64 + 1,
            tx,
            disk_bytes: tx * 2,
            ..Sample::default()
        };
        rates.into_iter().enumerate().map(second).collect()
    }

    #[test]
    fn held_ratio_is_the_last_sixth_over_the_time_between_warm_up_and_snapshot() {
        // 120 seconds, the snapshot begins with second 20: 5 s of warm-up, 15 s before it, 20 s at the end.
        let mut rates = [1_000_000; 120];
        rates[5..20].fill(100);
        rates[100..120].fill(95);
        assert_eq!(held(&run(rates), 20, None), Some(0.95));
        rates[99] = 0;
        assert_eq!(held(&run(rates), 20, None), Some(0.95), "not in the sixth");
        rates[100] = 75;
        assert_eq!(held(&run(rates), 20, None), Some(0.94));
        rates[4] = 0;
        assert_eq!(held(&run(rates), 20, None), Some(0.94), "warm-up");
        rates[5] = 1600;
        assert_eq!(held(&run(rates), 20, None), Some(0.47));
    }

    #[test]
    fn held_ratio_ends_with_the_release_and_needs_both_sides() {
        let mut rates = [100; 60];
        rates[25..30].fill(50);
        assert_eq!(held(&run(rates), 4, Some(30)), Some(0.5));
        assert_eq!(held(&run([100, 50]), 1, None), Some(0.5));
        assert_eq!(held(&run([9, 100, 50]), 2, None), Some(0.5), "warm-up");
        assert_eq!(held(&run([100, 50]), 0, None), None, "nothing before");
        assert_eq!(held(&run([100, 50]), 2, None), None, "nothing held");
        assert_eq!(held(&run([]), 2, None), None);
        assert_eq!(held(&run([0, 5]), 1, None), None);
    }

    #[test]
    fn rate_before_the_snapshot_is_without_the_warm_up() {
        let mut rates = [1_000_000; 30];
        rates[5..20].fill(100);
        assert_eq!(before(&run(rates), 20), Some(100.0));
        assert_eq!(before(&run(rates), 0), None);
    }

    #[test]
    fn transactions_of_a_count_are_those_behind_the_first_sample() {
        let mut samples = run([1000, 30, 50]);
        let told = [500, 510, 520];
        for (sample, rounds) in samples.iter_mut().zip(told) {
            sample.more = [("log_rounds", rounds)].into_iter().collect();
        }
        assert_eq!(per_count(&samples, "log_rounds"), Some(4.0));
        assert_eq!(per_count(&samples, "other"), None);
        assert_eq!(per_count(&samples[..1], "log_rounds"), None);
        samples[2].more = samples[0].more.clone();
        assert_eq!(per_count(&samples, "log_rounds"), None, "none was counted");
    }

    #[test]
    fn warm_up_is_two_seconds_at_least_where_another_follows() {
        let found = [0, 1, 2, 3, 4, 8, 10, 12, 20, 100].map(warm_up_s);
        assert_eq!(found, [0, 0, 1, 2, 2, 2, 2, 3, 5, 5]);
    }

    #[test]
    fn the_slowest_second_after_the_release_is_set_against_those_without_a_snapshot() {
        // Two seconds of warm-up, three before the snapshot, three beside it, three after it.
        let rates = [900, 800, 100, 95, 110, 30, 20, 30, 100, 80, 105];
        let of = |rates: &[u64]| after_release(&run(rates.iter().copied()), 5, 8);
        assert_eq!(of(&rates), Some(0.8));
        // What is beside the snapshot changes nothing: the median of the whole run would be another one each time.
        let mut beside = rates;
        for held in [0, 5, 500] {
            beside[5..8].fill(held);
            assert_eq!(of(&beside), Some(0.8), "{held} a second beside it");
        }
        // A run that stays slow is no run whose slowest second is as the others.
        let mut slow = rates;
        slow[8..].fill(50);
        assert_eq!(of(&slow), Some(0.5));
        // And one that was slower before is set against its seconds after.
        slow[8..].copy_from_slice(&[200, 160, 300]);
        assert_eq!(of(&slow), Some(0.8));
    }

    #[test]
    fn a_release_without_seconds_before_the_snapshot_has_those_after_it() {
        let rates = run([10, 100, 100, 80, 120]);
        assert_eq!(after_release(&rates, 0, 2), Some(0.8));
        assert_eq!(after_release(&rates, 0, 5), None, "no second follows");
        assert_eq!(after_release(&run([1, 0, 0]), 0, 1), None);
    }

    #[test]
    fn growth_has_a_sign() {
        let of = |sample: &Sample| Some(sample.disk_bytes);
        assert_eq!(growth(&run([1, 10, 30]), 2, of), Some(40));
        assert_eq!(growth(&run([50, 10, 30]), 0, of), Some(-40));
        assert_eq!(growth(&run([1]), 2, of), None);
        assert_eq!(growth(&run([1, 2]), 1, |_| None), None);
    }
}
