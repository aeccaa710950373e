//! Sums of values and of their squares: what variances, covariances and regressions are computed of.
//!
//! Paper: Youngs and Cramer, "Some results relevant to choice of sum and sum-of-product algorithms" (Technometrics 13, 1971), as PostgreSQL takes them:
//! sums of squares of differences from the mean, kept up to date value by value, so that no digits are lost where the mean is large.

use crate::error::{Result, SqlError};
use crate::float::overflow;
use crate::numeric::Numeric;

/// What a spread is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// The standard deviation, not the variance.
    pub root: bool,
    /// Of a sample, not of all there is.
    pub sample: bool,
}

impl Spread {
    /// How many values there must be more than.
    fn above(self) -> i64 {
        i64::from(self.sample)
    }

    /// Of exact numbers: their count, their sum and the sum of their squares; none if they are too few.
    ///
    /// # Errors
    /// `22003`.
    pub fn exact(self, count: i64, sum: &Numeric, squares: &Numeric) -> Result<Option<Numeric>> {
        if count <= self.above() {
            return Ok(None);
        }
        if !sum.is_finite() || !squares.is_finite() {
            return Ok(Some(Numeric::NAN));
        }
        let number = Numeric::from(count);
        let above = number.multiply(squares)?.subtract(&sum.multiply(sum)?)?;
        if above.is_zero() || above.is_negative() {
            return Ok(Some(Numeric::ZERO));
        }
        let below = number.multiply(&Numeric::from(count - self.above()))?;
        let variance = above.divide(&below)?;
        Ok(Some(if self.root {
            let scale = i32::try_from(variance.scale()).unwrap_or(i32::MAX);
            variance.square_root_at(scale)?
        } else {
            variance
        }))
    }

    /// Of floats; none if they are too few.
    pub fn floating(self, count: i64, moments: &Moments) -> Option<f64> {
        if count <= self.above() {
            return None;
        }
        let variance = moments.xx / (count - self.above()) as f64;
        Some(if self.root { variance.sqrt() } else { variance })
    }
}

/// What is asked of pairs of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "SQL's words")]
pub enum Pairing {
    Count,
    SumXX,
    SumYY,
    SumXY,
    MeanX,
    MeanY,
    CovariancePopulation,
    CovarianceSample,
    Correlation,
    Determination,
    Slope,
    Intercept,
}

/// The sums of floats, or of pairs of them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Moments {
    x: f64,
    /// Of squares of differences from the mean, as those below.
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl Moments {
    /// Another value, `before` having come before.
    ///
    /// # Errors
    /// `22003` if finite values come to an infinity.
    pub fn add(&mut self, before: i64, x: f64) -> Result<()> {
        let was_infinite = self.x.is_infinite() || x.is_infinite();
        self.x += x;
        if before == 0 {
            if !x.is_finite() {
                self.xx = f64::NAN;
            }
            return Ok(());
        }
        let count = before as f64 + 1.0;
        let far = x * count - self.x;
        self.xx += far * far / (count * before as f64);
        if self.x.is_infinite() || self.xx.is_infinite() {
            if !was_infinite {
                return Err(overflow());
            }
            self.xx = f64::NAN;
        }
        Ok(())
    }

    /// Another pair, `before` having come before.
    ///
    /// # Errors
    /// `22003` if finite values come to an infinity.
    pub fn add_pair(&mut self, before: i64, y: f64, x: f64) -> Result<()> {
        let was_x = self.x.is_infinite() || x.is_infinite();
        let was_y = self.y.is_infinite() || y.is_infinite();
        self.x += x;
        self.y += y;
        if before == 0 {
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let count = before as f64 + 1.0;
        let (far_x, far_y) = (x * count - self.x, y * count - self.y);
        // PostgreSQL multiplies here and divides above: the last digit depends on it.
        let scale = 1.0 / (count * before as f64);
        self.xx += far_x * far_x * scale;
        self.yy += far_y * far_y * scale;
        self.xy += far_x * far_y * scale;
        let over_x = (self.x.is_infinite() || self.xx.is_infinite()) && !was_x;
        let over_y = (self.y.is_infinite() || self.yy.is_infinite()) && !was_y;
        if over_x || over_y || self.xy.is_infinite() && !was_x && !was_y {
            return Err(overflow());
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    /// Takes what another part of the values has come to; each part with how many they are.
    ///
    /// # Errors
    /// `22003` if finite sums come to an infinity.
    pub fn merge(&mut self, own: i64, other: &Self, others: i64) -> Result<()> {
        if others == 0 {
            return Ok(());
        }
        if own == 0 {
            *self = *other;
            return Ok(());
        }
        let (n, m) = (own as f64, others as f64);
        let (far_x, far_y) = (self.x / n - other.x / m, self.y / n - other.y / m);
        let both = |own: f64, other: f64, rest: f64| {
            let sum = own + other + rest;
            let was = own.is_infinite() || other.is_infinite();
            if sum.is_infinite() && !was {
                return Err(overflow());
            }
            Ok::<f64, SqlError>(sum)
        };
        let part = |a: f64, b: f64| n * m * a * b / (n + m);
        *self = Self {
            x: both(self.x, other.x, 0.0)?,
            xx: both(self.xx, other.xx, part(far_x, far_x))?,
            y: both(self.y, other.y, 0.0)?,
            yy: both(self.yy, other.yy, part(far_y, far_y))?,
            xy: both(self.xy, other.xy, part(far_x, far_y))?,
        };
        Ok(())
    }

    /// The sums, to go on from elsewhere.
    pub fn saved(&self) -> [f64; 5] {
        [self.x, self.xx, self.y, self.yy, self.xy]
    }

    /// What [`Moments::saved`] returned.
    pub fn restored([x, xx, y, yy, xy]: [f64; 5]) -> Self {
        Self { x, xx, y, yy, xy }
    }

    /// What is asked of so many pairs; none if they are too few, or where it is undefined. Their count is not asked here.
    pub fn of_pairs(&self, count: i64, asked: Pairing) -> Option<f64> {
        use Pairing as P;
        let least = i64::from(asked == P::CovarianceSample);
        if count <= least {
            return None;
        }
        let Self { x, xx, y, yy, xy } = *self;
        let n = count as f64;
        Some(match asked {
            P::Count => n,
            P::SumXX => xx,
            P::SumYY => yy,
            P::SumXY => xy,
            P::MeanX => x / n,
            P::MeanY => y / n,
            P::CovariancePopulation => xy / n,
            P::CovarianceSample => xy / (n - 1.0),
            P::Correlation if xx == 0.0 || yy == 0.0 => return None,
            P::Correlation => xy / (xx * yy).sqrt(),
            P::Determination | P::Slope | P::Intercept if xx == 0.0 => return None,
            P::Determination if yy == 0.0 => 1.0,
            P::Determination => (xy * xy) / (xx * yy),
            P::Slope => xy / xx,
            P::Intercept => (y - x * xy / xx) / n,
        })
    }
}
