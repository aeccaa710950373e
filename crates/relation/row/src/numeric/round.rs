//! Rounding: to a scale, to a column's precision, to whole numbers. Halves go away from zero.

use super::digits::{BASE, BASE_DIGITS, WEIGHT_MAX};
use super::text::overflow;
use super::{Digits, Numeric, POWERS_OF_TEN, Repr, SCALE_MAX};
use crate::error::{Result, SqlError, SqlState};
use crate::types::Typmod;

/// How digits that are cut off count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rounding {
    HalfAway,
    Truncate,
    /// Away from zero if anything is cut off.
    Away,
}

/// Rounding to this scale leaves nothing of any number.
const ROUND_SCALE_MIN: i32 = -(WEIGHT_MAX + 1) * BASE_DIGITS - 1;

impl Digits {
    /// The number with no digit behind 10^-scale; a negative scale makes zeros before the point. The
    /// scale that shows is `scale`, or zero if that is negative.
    pub(super) fn rounded(&self, scale: i32, how: Rounding) -> Digits {
        let shown = scale.max(0) as u16;
        // The place of the last decimal that stays, and where it lies in its digit.
        let lowest = -((scale + BASE_DIGITS - 1).div_euclid(BASE_DIGITS));
        let dropped = scale.rem_euclid(BASE_DIGITS);
        let unit = if dropped == 0 {
            1
        } else {
            10u32.pow((BASE_DIGITS - dropped) as u32)
        };
        let top = self.weight.max(lowest);
        let mut run = vec![0];
        run.extend((lowest..=top).rev().map(|place| self.at(place)));
        let last = run.len() - 1;
        let rest = u32::from(run[last]) % unit;
        run[last] -= rest as u16;
        let below = self.digits.len() as i32 > self.weight - lowest + 1;
        let up = match how {
            Rounding::Truncate => false,
            Rounding::Away => rest > 0 || below || self.weight < lowest && !self.is_zero(),
            Rounding::HalfAway if unit > 1 => rest >= unit / 2,
            Rounding::HalfAway => u32::from(self.at(lowest - 1)) >= BASE / 2,
        };
        if up {
            let mut carry = unit;
            for digit in run.iter_mut().rev() {
                let sum = u32::from(*digit) + carry;
                *digit = (sum % BASE) as u16;
                carry = sum / BASE;
                if carry == 0 {
                    break;
                }
            }
            debug_assert_eq!(carry, 0);
        }
        Digits::normalized(self.negative, top + 1, shown, run)
    }
}

/// `value / unit`, rounded.
fn divide_rounded(value: i64, unit: i64, how: Rounding) -> i64 {
    let (quotient, rest) = (value / unit, value % unit);
    let up = match how {
        Rounding::Truncate => false,
        Rounding::Away => rest != 0,
        Rounding::HalfAway => rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2),
    };
    if up {
        quotient + value.signum()
    } else {
        quotient
    }
}

impl Numeric {
    /// With exactly this scale, cut or filled up with zeros. `scale` may be negative.
    pub(super) fn at_scale(&self, scale: i32, how: Rounding) -> Numeric {
        match &self.0 {
            Repr::Small {
                coefficient,
                scale: own,
            } => {
                let own = i32::from(*own);
                if (0..=own).contains(&scale) {
                    let unit = POWERS_OF_TEN[(own - scale) as usize];
                    let units = divide_rounded(*coefficient, unit, how);
                    return Numeric::from_scaled(i128::from(units), scale as u16);
                }
                if (own..=18).contains(&scale) {
                    let unit = POWERS_OF_TEN[(scale - own) as usize];
                    let units = i128::from(*coefficient) * i128::from(unit);
                    return Numeric::from_scaled(units, scale as u16);
                }
                let digits = Digits::from_scaled(i128::from(*coefficient), own as u16);
                Numeric::from_digits(digits.rounded(scale, how))
            }
            Repr::Big(digits) => Numeric::from_digits(digits.rounded(scale, how)),
            _ => self.clone(),
        }
    }

    /// The same, if the result is not too long.
    fn at_scale_checked(&self, scale: i32, how: Rounding) -> Result<Numeric> {
        let result = self.at_scale(scale.clamp(ROUND_SCALE_MIN, SCALE_MAX as i32), how);
        match &result.0 {
            Repr::Big(digits) if digits.weight > WEIGHT_MAX => Err(overflow()),
            _ => Ok(result),
        }
    }

    /// Rounded to `scale` digits after the point (before it, if negative). SQL's `round`.
    ///
    /// # Errors
    /// 22003 if the result has too many digits.
    pub fn round(&self, scale: i32) -> Result<Numeric> {
        self.at_scale_checked(scale, Rounding::HalfAway)
    }

    /// Cut to `scale` digits after the point. SQL's `trunc`.
    ///
    /// # Errors
    /// 22003 if the result has too many digits.
    pub fn truncate(&self, scale: i32) -> Result<Numeric> {
        self.at_scale_checked(scale, Rounding::Truncate)
    }

    /// The smallest whole number not below it.
    ///
    /// # Errors
    /// 22003 if it has too many digits.
    pub fn ceiling(&self) -> Result<Numeric> {
        let how = if self.is_negative() {
            Rounding::Truncate
        } else {
            Rounding::Away
        };
        self.at_scale_checked(0, how)
    }

    /// The largest whole number not above it.
    ///
    /// # Errors
    /// 22003 if it has too many digits.
    pub fn floor(&self) -> Result<Numeric> {
        let how = if self.is_negative() {
            Rounding::Away
        } else {
            Rounding::Truncate
        };
        self.at_scale_checked(0, how)
    }

    /// As a column of type `numeric(p,s)` holds it.
    ///
    /// # Errors
    /// 22003 if it has too many digits before the point, or is an infinity.
    pub fn coerce(&self, typmod: Typmod) -> Result<Numeric> {
        let Some((precision, scale)) = typmod.precision_scale() else {
            return Ok(self.clone());
        };
        let field_overflow = |detail: String| {
            let state = SqlState::NUMERIC_OUT_OF_RANGE;
            SqlError::new(state, "numeric field overflow").with_detail(detail)
        };
        match &self.0 {
            Repr::NaN => return Ok(self.clone()),
            Repr::Infinity | Repr::NegInfinity => {
                return Err(field_overflow(format!(
                    "A field with precision {precision}, scale {scale} cannot hold an infinite value."
                )));
            }
            Repr::Small { .. } | Repr::Big(_) => {}
        }
        let rounded = self.at_scale(scale, Rounding::HalfAway);
        // Decimal digits before the point; negative for zeros behind it.
        let whole_max = precision - scale;
        let fits = match &rounded.0 {
            Repr::Small { coefficient, scale } => {
                let power = whole_max + i32::from(*scale);
                match usize::try_from(power)
                    .ok()
                    .map(|power| POWERS_OF_TEN.get(power))
                {
                    // 10^power is above every small coefficient, or below all but zero.
                    Some(None) => true,
                    Some(Some(limit)) => coefficient.abs() < *limit,
                    None => *coefficient == 0,
                }
            }
            Repr::Big(digits) => {
                let first = digits.digits.first().copied().unwrap_or(0);
                let decimals = first.checked_ilog10().map_or(0, |log| log as i32 + 1);
                digits.is_zero() || digits.weight * BASE_DIGITS + decimals <= whole_max
            }
            _ => true,
        };
        if fits {
            return Ok(rounded);
        }
        let (ten, power) = if whole_max == 0 {
            ("", 1)
        } else {
            ("10^", whole_max)
        };
        Err(field_overflow(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than {ten}{power}."
        )))
    }
}
