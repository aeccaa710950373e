//! Sums, products, quotients, remainders and roots, with the scales that PostgreSQL gives them.
//!
//! Numbers of at most 18 digits are computed in 128-bit integers; a result that is longer, or an
//! operand that is, goes through base-10000 digits.

use super::digits::{BASE_DIGITS, WEIGHT_MAX};
use super::order::Parts;
use super::round::Rounding;
use super::text::overflow;
use super::{Digits, Numeric, POWERS_OF_TEN, Repr, SCALE_MAX, magnitude};
use crate::error::{Result, SqlError, SqlState};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Quotients have at least so many significant digits.
const QUOTIENT_DIGITS_MIN: i32 = 16;
/// The largest scale of a quotient that its operands do not demand.
const QUOTIENT_SCALE_MAX: i32 = 1000;

impl Numeric {
    /// -1, 0 or 1; 1 for `NaN`.
    fn signum(&self) -> i32 {
        match &self.0 {
            Repr::Small { coefficient, .. } => coefficient.signum() as i32,
            Repr::Big(digits) if digits.is_zero() => 0,
            Repr::Big(digits) if digits.negative => -1,
            Repr::NegInfinity => -1,
            Repr::Big(_) | Repr::Infinity | Repr::NaN => 1,
        }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.signum() < 0
    }

    /// Whether it is zero, of any scale.
    pub fn is_zero(&self) -> bool {
        self.signum() == 0
    }

    /// Whether it is a number and no infinity.
    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small { .. } | Repr::Big(_))
    }

    /// The digits of a finite number.
    pub(super) fn digits(&self) -> Option<Cow<'_, Digits>> {
        match &self.0 {
            Repr::Small { coefficient, scale } => Some(Cow::Owned(Digits::from_scaled(
                i128::from(*coefficient),
                u16::from(*scale),
            ))),
            Repr::Big(digits) => Some(Cow::Borrowed(digits)),
            _ => None,
        }
    }

    /// The result of an operation, if it is not too long.
    pub(super) fn checked(digits: Digits) -> Result<Numeric> {
        if digits.weight > WEIGHT_MAX {
            return Err(overflow());
        }
        Ok(Numeric::from_digits(digits))
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negate(&self) -> Numeric {
        Numeric(match &self.0 {
            Repr::Small { coefficient, scale } => Repr::Small {
                coefficient: -coefficient,
                scale: *scale,
            },
            Repr::Big(digits) => {
                let mut digits = digits.clone();
                digits.negative = !digits.negative && !digits.is_zero();
                Repr::Big(digits)
            }
            Repr::Infinity => Repr::NegInfinity,
            Repr::NegInfinity => Repr::Infinity,
            Repr::NaN => Repr::NaN,
        })
    }

    /// Its distance from zero.
    #[must_use]
    pub fn abs(&self) -> Numeric {
        if self.is_negative() {
            self.negate()
        } else {
            self.clone()
        }
    }

    /// -1, 0 or 1 as a number; `NaN` for `NaN`.
    #[must_use]
    pub fn sign(&self) -> Numeric {
        if self.is_nan() {
            Numeric::NAN
        } else {
            Numeric::from(self.signum())
        }
    }

    /// The sum; its scale is the larger of the two.
    ///
    /// # Errors
    /// 22003 if it has too many digits.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        match (&self.0, &other.0) {
            (
                Repr::Small {
                    coefficient: a,
                    scale: s,
                },
                Repr::Small {
                    coefficient: b,
                    scale: t,
                },
            ) => {
                let scale = (*s).max(*t);
                Ok(Numeric::from_scaled(
                    aligned(*a, *s, scale) + aligned(*b, *t, scale),
                    u16::from(scale),
                ))
            }
            (Repr::NaN, _) | (_, Repr::NaN) => Ok(Numeric::NAN),
            (Repr::Infinity, Repr::NegInfinity) | (Repr::NegInfinity, Repr::Infinity) => {
                Ok(Numeric::NAN)
            }
            (Repr::Infinity | Repr::NegInfinity, _) => Ok(self.clone()),
            (_, Repr::Infinity | Repr::NegInfinity) => Ok(other.clone()),
            _ => match (self.digits(), other.digits()) {
                (Some(a), Some(b)) => Numeric::checked(add_digits(&a, &b)),
                _ => Ok(Numeric::NAN),
            },
        }
    }

    /// The difference; its scale is the larger of the two.
    ///
    /// # Errors
    /// 22003 if it has too many digits.
    pub fn subtract(&self, other: &Numeric) -> Result<Numeric> {
        self.add(&other.negate())
    }

    /// The product; its scale is the sum of the two.
    ///
    /// # Errors
    /// 22003 if it has too many digits.
    pub fn multiply(&self, other: &Numeric) -> Result<Numeric> {
        match (&self.0, &other.0) {
            (
                Repr::Small {
                    coefficient: a,
                    scale: s,
                },
                Repr::Small {
                    coefficient: b,
                    scale: t,
                },
            ) => Ok(Numeric::from_scaled(
                i128::from(*a) * i128::from(*b),
                u16::from(*s) + u16::from(*t),
            )),
            _ => match (self.digits(), other.digits()) {
                (Some(a), Some(b)) => {
                    let scale = u32::from(a.scale) + u32::from(b.scale);
                    let product = magnitude::multiply(&a.digits, &b.digits);
                    let product = Digits::normalized(
                        a.negative != b.negative,
                        a.weight + b.weight + 1,
                        scale as u16,
                        product,
                    );
                    // Two scales of at most 16383 add up to less than 65536.
                    if scale > SCALE_MAX {
                        return Numeric::checked(
                            product.rounded(SCALE_MAX as i32, Rounding::HalfAway),
                        );
                    }
                    Numeric::checked(product)
                }
                _ if self.is_nan() || other.is_nan() => Ok(Numeric::NAN),
                _ => Ok(match self.signum() * other.signum() {
                    0 => Numeric::NAN,
                    1.. => Numeric::INFINITY,
                    _ => Numeric::NEG_INFINITY,
                }),
            },
        }
    }

    /// What both division and remainder say of operands that are not finite.
    fn divide_special(&self, other: &Numeric) -> Option<Result<Numeric>> {
        if self.is_nan() || other.is_nan() {
            return Some(Ok(Numeric::NAN));
        }
        if other.is_zero() {
            return Some(Err(SqlError::division_by_zero()));
        }
        if !self.is_finite() {
            if !other.is_finite() {
                return Some(Ok(Numeric::NAN));
            }
            let same = self.signum() == other.signum();
            return Some(Ok(if same {
                Numeric::INFINITY
            } else {
                Numeric::NEG_INFINITY
            }));
        }
        (!other.is_finite()).then_some(Ok(Numeric::ZERO))
    }

    /// The quotient, rounded to a scale that gives at least 16 significant digits and no fewer
    /// after the point than either operand has.
    ///
    /// # Errors
    /// 22012 for division by zero, 22003 if the quotient has too many digits.
    pub fn divide(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.divide_special(other) {
            return special;
        }
        let scale = quotient_scale(self, other);
        if let (
            Repr::Small {
                coefficient: a,
                scale: s,
            },
            Repr::Small {
                coefficient: b,
                scale: t,
            },
        ) = (&self.0, &other.0)
            && let Some(quotient) = divide_small((*a, *s), (*b, *t), scale)
        {
            return Ok(Numeric::from_scaled(quotient, scale as u16));
        }
        let (Some(a), Some(b)) = (self.digits(), other.digits()) else {
            return Ok(Numeric::NAN);
        };
        Numeric::checked(divide_digits(&a, &b, scale, Rounding::HalfAway))
    }

    /// The whole part of the quotient. SQL's `div`.
    ///
    /// # Errors
    /// 22012 for division by zero, 22003 if the quotient has too many digits.
    pub fn divide_whole(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.divide_special(other) {
            return special;
        }
        match (self.digits(), other.digits()) {
            (Some(a), Some(b)) => Numeric::checked(divide_digits(&a, &b, 0, Rounding::Truncate)),
            _ => Ok(Numeric::NAN),
        }
    }

    /// The remainder, with the sign of the dividend; its scale is the larger of the two.
    ///
    /// # Errors
    /// 22012 for division by zero.
    pub fn modulo(&self, other: &Numeric) -> Result<Numeric> {
        match (&self.0, &other.0) {
            (
                Repr::Small {
                    coefficient: a,
                    scale: s,
                },
                Repr::Small {
                    coefficient: b,
                    scale: t,
                },
            ) => {
                let scale = (*s).max(*t);
                aligned(*a, *s, scale)
                    .checked_rem(aligned(*b, *t, scale))
                    .map(|rest| Numeric::from_scaled(rest, u16::from(scale)))
                    .ok_or_else(SqlError::division_by_zero)
            }
            (Repr::NaN, _) | (_, Repr::NaN) => Ok(Numeric::NAN),
            _ if other.is_zero() => Err(SqlError::division_by_zero()),
            (Repr::Infinity | Repr::NegInfinity, _) => Ok(Numeric::NAN),
            (_, Repr::Infinity | Repr::NegInfinity) => Ok(self.clone()),
            _ => {
                let (Some(a), Some(b)) = (self.digits(), other.digits()) else {
                    return Ok(Numeric::NAN);
                };
                let scale = a.scale.max(b.scale);
                let low = Digits::lowest_place(scale);
                let (_, rest) = magnitude::divide(
                    &a.run(a.weight.max(low), low),
                    &b.run(b.weight.max(low), low),
                );
                let weight = low + rest.len() as i32 - 1;
                Numeric::checked(Digits::normalized(a.negative, weight, scale, rest))
            }
        }
    }

    /// The square root, with at least 16 significant digits.
    ///
    /// # Errors
    /// 2201F for a negative number.
    pub fn square_root(&self) -> Result<Numeric> {
        if self.is_negative() {
            return Err(SqlError::new(
                SqlState::INVALID_POWER,
                "cannot take square root of a negative number",
            ));
        }
        let Some(a) = self.digits() else {
            return Ok(self.clone());
        };
        let root_digits = if a.weight >= 0 {
            a.weight * BASE_DIGITS / 2 + 1
        } else {
            1 - (-a.weight * BASE_DIGITS) / 2
        };
        let scale = (QUOTIENT_DIGITS_MIN - root_digits)
            .max(i32::from(a.scale))
            .clamp(0, QUOTIENT_SCALE_MAX.max(i32::from(a.scale)));
        self.square_root_at(scale)
    }

    /// The square root of a number that is not negative, with so many digits behind the point: not fewer than the number has.
    ///
    /// # Errors
    /// 22003 if it has too many digits.
    pub(crate) fn square_root_at(&self, scale: i32) -> Result<Numeric> {
        let Some(a) = self.digits() else {
            return Ok(self.clone());
        };
        // The root of a * 10000^(2k), a whole number of at least one digit more than is shown.
        let places = scale / BASE_DIGITS + 1;
        let radicand = a.run(a.weight.max(0), -2 * places);
        let exact_below = a.weight - (a.digits.len() as i32) + 1 >= -2 * places;
        debug_assert!(
            exact_below,
            "the scale of the root is not below the operand's"
        );
        let root = magnitude::square_root(&radicand);
        let weight = root.len() as i32 - 1 - places;
        let root = Digits::normalized(false, weight, SCALE_MAX as u16, root);
        Numeric::checked(root.rounded(scale, Rounding::HalfAway))
    }
}

/// The coefficient of `a / 10^s` at a larger scale.
fn aligned(a: i64, s: u8, scale: u8) -> i128 {
    i128::from(a) * i128::from(POWERS_OF_TEN[usize::from(scale - s)])
}

fn add_digits(a: &Digits, b: &Digits) -> Digits {
    let scale = a.scale.max(b.scale);
    let high = a.weight.max(b.weight);
    let low = Digits::lowest_place(scale).min(high);
    let (x, y) = (a.run(high, low), b.run(high, low));
    if a.negative == b.negative {
        let sum = magnitude::add(&x, &y);
        return Digits::normalized(a.negative, high + 1, scale, sum);
    }
    match magnitude::compare(&x, &y) {
        Ordering::Equal => Digits::zero(scale),
        Ordering::Greater => {
            Digits::normalized(a.negative, high, scale, magnitude::subtract(&x, &y))
        }
        Ordering::Less => Digits::normalized(b.negative, high, scale, magnitude::subtract(&y, &x)),
    }
}

fn quotient_scale(a: &Numeric, b: &Numeric) -> i32 {
    // Weight and first digit of a finite number.
    let head = |number: &Numeric| {
        number.as_ref().with_parts(|parts| match parts {
            Parts::Finite { weight, digits, .. } => (weight, digits.first().copied().unwrap_or(0)),
            _ => (0, 0),
        })
    };
    let ((weight_a, first_a), (weight_b, first_b)) = (head(a), head(b));
    let weight = weight_a - weight_b - i32::from(first_a <= first_b);
    (QUOTIENT_DIGITS_MIN - weight * BASE_DIGITS)
        .max(a.scale() as i32)
        .max(b.scale() as i32)
        .clamp(0, QUOTIENT_SCALE_MAX)
}

/// `(a / 10^s) / (b / 10^t)` in units of 10^-scale, rounded; `None` if it does not fit.
fn divide_small((a, s): (i64, u8), (b, t): (i64, u8), scale: i32) -> Option<i128> {
    let power = scale + i32::from(t) - i32::from(s);
    let power = u32::try_from(power).ok()?;
    let dividend = i128::from(a).checked_mul(10i128.checked_pow(power)?)?;
    let divisor = i128::from(b);
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    if rest.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2) {
        return Some(quotient + dividend.signum() * divisor.signum());
    }
    Some(quotient)
}

fn divide_digits(a: &Digits, b: &Digits, scale: i32, how: Rounding) -> Digits {
    if a.is_zero() {
        return Digits::zero(scale as u16);
    }
    // The dividend is extended until the quotient has one digit behind the scale, which decides the
    // rounding: a remainder behind it cannot make a half.
    let places = scale / BASE_DIGITS + 2;
    let low_b = b.weight - b.digits.len() as i32 + 1;
    let low_a = (low_b - places).min(a.weight);
    let dividend = a.run(a.weight, low_a);
    let (quotient, _) = magnitude::divide(&dividend, &b.digits);
    let weight = quotient.len() as i32 - 1 + low_a - low_b;
    let quotient = Digits::normalized(a.negative != b.negative, weight, SCALE_MAX as u16, quotient);
    quotient.rounded(scale, how)
}
