//! Keys of a key-value workload: uniform, or Zipf-distributed with any skew.
//!
//! Ranks are drawn by rejection inversion (Hörmann and Derflinger 1996, "Rejection-inversion to
//! generate variates from monotone discrete distributions"): exact for every θ > 0, constant time and
//! memory, no table over the keys. Ranks are then spread over the key space by a stride near the
//! golden ratio that has no divisor in common with the number of keys, so that hot keys are
//! neighbours in rank but not on a page.

use vellum_base::random::Random;

/// Draws keys in `0..count`.
#[derive(Clone, Debug)]
pub enum Keys {
    /// All keys equally often.
    Uniform {
        /// Number of keys.
        count: u64,
    },
    /// Few keys most of the time.
    Zipf(Zipf),
}

impl Keys {
    /// A chooser among `count` keys; `theta` zero is uniform.
    ///
    /// # Panics
    /// If `count` is zero or above 2^32, or `theta` is negative or not a number.
    pub fn new(count: u64, theta: f64) -> Self {
        assert!(
            count > 0 && count <= 1 << 32,
            "between one key and 2^32 keys"
        );
        assert!(
            theta >= 0.0 && theta.is_finite(),
            "skew is a number of at least zero"
        );
        if theta == 0.0 {
            Self::Uniform { count }
        } else {
            Self::Zipf(Zipf::new(count, theta))
        }
    }

    /// The next key.
    #[inline]
    pub fn next(&self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { count } => random.below(*count),
            Self::Zipf(zipf) => zipf.next(random),
        }
    }
}

/// Zipf's law: the key of rank k (from 1) comes with a probability proportional to `k^-theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: u64,
    stride: u64,
    theta: f64,
    /// Integral at 1.5 less the probability of rank 1: the upper end of the range to invert.
    integral_first: f64,
    integral_last: f64,
    /// Distance below which a rounded rank is accepted without a second evaluation.
    shortcut: f64,
}

impl Zipf {
    fn new(count: u64, theta: f64) -> Self {
        let mut zipf = Self {
            count,
            stride: stride(count),
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            shortcut: 0.0,
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// The next rank, 1 the most frequent.
    pub fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let unit = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            let at = self.integral_last + unit * (self.integral_first - self.integral_last);
            let x = self.inverse(at);
            let rank = (x + 0.5).clamp(1.0, self.count as f64) as u64;
            let k = rank as f64;
            if k - x <= self.shortcut || at >= self.integral(k + 0.5) - self.weight(k) {
                return rank;
            }
        }
    }

    fn next(&self, random: &mut Random) -> u64 {
        let rank = self.rank(random);
        // No overflow: both factors are at most 2^32.
        (rank - 1) * self.stride % self.count
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Integral of `x^-theta` from 1 to `x`: `(x^(1-theta) - 1) / (1 - theta)`, `ln x` for one.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_m1_over((1.0 - self.theta) * log) * log
    }

    fn inverse(&self, at: f64) -> f64 {
        // Rounding may carry the argument of the logarithm below its domain.
        let t = (at * (1.0 - self.theta)).max(-1.0);
        (ln_1p_over(t) * at).exp()
    }
}

/// `(e^x - 1) / x`, continuous at zero.
fn exp_m1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// `ln(1 + x) / x`, continuous at zero.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}

/// The number nearest to the golden section of `count` that is coprime to it.
fn stride(count: u64) -> u64 {
    let golden = (count as f64 * 0.618_033_988_749_894_9) as u64;
    (golden.max(1)..)
        .find(|&s| gcd(s, count) == 1)
        .expect("count + 1 is coprime to count")
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_zipfs_law_for_skew_below_at_and_above_one() {
        for theta in [0.5, 0.99, 1.0, 1.3] {
            let (count, draws) = (1000_u64, 1_000_000);
            let zipf = Zipf::new(count, theta);
            let mut random = Random::new(42);
            let mut hits = vec![0_u32; count as usize + 1];
            for _ in 0..draws {
                hits[zipf.rank(&mut random) as usize] += 1;
            }
            let total: f64 = (1..=count).map(|k| (k as f64).powf(-theta)).sum();
            for rank in [1_usize, 2, 3, 10, 100] {
                let expected = draws as f64 * (rank as f64).powf(-theta) / total;
                let found = f64::from(hits[rank]);
                // Four standard deviations; accepting every candidate would be off by five.
                assert!(
                    (found - expected).abs() < 4.0 * expected.sqrt() + 1.0,
                    "theta {theta} rank {rank}: {found} for {expected}"
                );
            }
        }
    }

    #[test]
    fn every_key_is_drawn_for_exactly_one_rank() {
        for count in [1_u64, 2, 7, 1000, 1024, 30030] {
            let s = stride(count);
            let mut seen = vec![false; count as usize];
            for rank in 0..count {
                let key = (rank * s % count) as usize;
                assert!(
                    !std::mem::replace(&mut seen[key], true),
                    "{count} keys, rank {rank}"
                );
            }
        }
    }

    #[test]
    fn keys_stay_in_range() {
        let mut random = Random::new(3);
        for theta in [0.0, 0.6, 1.0, 2.5] {
            for count in [1, 2, 3, 1 << 32] {
                let keys = Keys::new(count, theta);
                assert!((0..1000).all(|_| keys.next(&mut random) < count));
            }
        }
    }
}
