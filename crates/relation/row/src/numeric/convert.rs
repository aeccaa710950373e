//! Between `numeric` and the machine's numbers.

use super::round::Rounding;
use super::{Numeric, POWERS_OF_TEN, Repr};
use crate::error::{Result, SqlError, SqlState};

/// Powers of ten that a double holds exactly.
const EXACT_POWERS: usize = 16;

impl Numeric {
    /// Rounded to a whole number of type `name` ("bigint", "integer", "smallint") in the range of `T`.
    fn to_whole<T: TryFrom<i64>>(&self, name: &str) -> Result<T> {
        let refuse = |what: &str| {
            let message = format!("cannot convert {what} to {name}");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        };
        let whole = match &self.0 {
            Repr::NaN => return refuse("NaN"),
            Repr::Infinity | Repr::NegInfinity => return refuse("infinity"),
            Repr::Small { .. } => match self.at_scale(0, Rounding::HalfAway).0 {
                Repr::Small { coefficient, .. } => Some(coefficient),
                _ => None,
            },
            Repr::Big(digits) => digits.rounded(0, Rounding::HalfAway).to_i64(),
        };
        whole
            .and_then(|whole| T::try_from(whole).ok())
            .ok_or_else(|| SqlError::out_of_range(name))
    }

    /// Rounded to a `bigint`.
    ///
    /// # Errors
    /// 22003 if it is out of range, 0A000 for `NaN` and infinities.
    pub fn to_i64(&self) -> Result<i64> {
        self.to_whole("bigint")
    }

    /// Rounded to an `integer`.
    ///
    /// # Errors
    /// As [`Self::to_i64`].
    pub fn to_i32(&self) -> Result<i32> {
        self.to_whole("integer")
    }

    /// Rounded to a `smallint`.
    ///
    /// # Errors
    /// As [`Self::to_i64`].
    pub fn to_i16(&self) -> Result<i16> {
        self.to_whole("smallint")
    }

    /// The nearest double, where one division of exact doubles finds it.
    pub(crate) fn small_f64(&self) -> Option<f64> {
        match &self.0 {
            Repr::NaN => Some(f64::NAN),
            Repr::Infinity => Some(f64::INFINITY),
            Repr::NegInfinity => Some(f64::NEG_INFINITY),
            // Both operands are exact, so the quotient is rounded once.
            Repr::Small { coefficient, scale }
                if coefficient.unsigned_abs() < 1 << 53 && usize::from(*scale) < EXACT_POWERS =>
            {
                Some(*coefficient as f64 / POWERS_OF_TEN[usize::from(*scale)] as f64)
            }
            _ => None,
        }
    }

    /// The nearest double; an infinity if the number is above all of them.
    pub fn to_f64(&self) -> f64 {
        self.small_f64()
            .unwrap_or_else(|| self.to_string().parse().unwrap_or(f64::NAN))
    }

    /// The nearest single; an infinity if the number is above all of them.
    pub fn to_f32(&self) -> f32 {
        match &self.0 {
            Repr::NaN => f32::NAN,
            Repr::Infinity => f32::INFINITY,
            Repr::NegInfinity => f32::NEG_INFINITY,
            _ => self.to_string().parse().unwrap_or(f32::NAN),
        }
    }

    /// The 15 significant digits that a double is sure to have.
    pub fn from_f64(value: f64) -> Result<Numeric> {
        Self::from_float(value, 14)
    }

    /// The 6 significant digits that a single is sure to have.
    pub fn from_f32(value: f32) -> Result<Numeric> {
        Self::from_float(f64::from(value), 5)
    }

    fn from_float(value: f64, digits_behind_first: usize) -> Result<Numeric> {
        if value.is_nan() {
            return Ok(Numeric::NAN);
        }
        if value.is_infinite() {
            return Ok(if value > 0.0 {
                Numeric::INFINITY
            } else {
                Numeric::NEG_INFINITY
            });
        }
        // As C's %g prints it, without the zeros at the end.
        let text = format!("{value:.digits_behind_first$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = if mantissa.contains('.') {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        Numeric::parse(&format!("{mantissa}e{exponent}"))
    }
}

impl super::Digits {
    /// The value of a whole number; `None` if it is none or does not fit.
    fn to_i64(&self) -> Option<i64> {
        if self.weight > 4 {
            return None;
        }
        let mut value = 0i128;
        for place in (0..=self.weight).rev() {
            value = value * 10_000 + i128::from(self.at(place));
        }
        i64::try_from(if self.negative { -value } else { value }).ok()
    }
}
