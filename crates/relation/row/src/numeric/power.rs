//! Powers, logarithms and the exponential function, with as many digits as PostgreSQL shows.
//!
//! They are computed with whole numbers in units of a small power of 10000 ([`Fixed`]), with more digits than the result has: the last digit shown is the
//! exact result's but where that lies within the last guard digits of a half.

use super::digits::{BASE_DIGITS, Digits};
use super::magnitude;
use super::round::Rounding;
use super::text::overflow;
use super::{Numeric, SCALE_MAX};
use crate::error::{Result, SqlError, SqlState};
use std::cmp::Ordering;
use std::f64::consts::{LN_10, LOG10_E};

/// Significant digits of a result, at least.
const DIGITS_MIN: i32 = 16;
/// Digits behind the point that a result is shown with, at most.
const DISPLAY_SCALE_MAX: i32 = 1000;
/// Digits before or behind the point of a result, at most.
const RESULT_SCALE_MAX: f64 = 2000.0;

/// A non-negative number in units of `10000^-places`.
#[derive(Clone)]
struct Fixed {
    run: Vec<u16>,
    places: usize,
}

impl Fixed {
    fn small(value: u16, places: usize) -> Self {
        let mut run = vec![value];
        run.resize(places + 1, 0);
        Self { run, places }
    }

    /// The magnitude of a number.
    fn of(digits: &Digits, places: usize) -> Self {
        let low = -i32::try_from(places).unwrap_or(i32::MAX);
        let run = digits.run(digits.weight.max(0), low);
        Self { run, places }
    }

    fn is_zero(&self) -> bool {
        self.run.iter().all(|digit| *digit == 0)
    }

    fn compare(&self, other: &Self) -> Ordering {
        magnitude::compare(&self.run, &other.run)
    }

    fn with(&self, run: &[u16]) -> Self {
        Self {
            run: magnitude::trim(run).to_vec(),
            places: self.places,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        self.with(&magnitude::add(&self.run, &other.run))
    }

    /// The difference; `other` is not larger.
    fn minus(&self, other: &Self) -> Self {
        self.with(&magnitude::subtract(&self.run, magnitude::trim(&other.run)))
    }

    fn times(&self, other: &Self, go_on: &GoOn<'_>) -> Result<Self> {
        let product = magnitude::multiply_while(&self.run, &other.run, go_on);
        let mut product = product.ok_or_else(stopped)?;
        product.truncate(product.len().saturating_sub(self.places));
        Ok(self.with(&product))
    }

    fn over(&self, other: &Self, go_on: &GoOn<'_>) -> Result<Self> {
        let mut dividend = self.run.clone();
        dividend.resize(dividend.len() + self.places, 0);
        let divided = magnitude::divide_while(&dividend, &other.run, go_on);
        Ok(self.with(&divided.ok_or_else(stopped)?.0))
    }

    fn over_small(&self, divisor: u32) -> Self {
        self.with(&magnitude::divide(&self.run, &run_of(divisor)).0)
    }

    fn root(&self) -> Self {
        let mut radicand = self.run.clone();
        radicand.resize(radicand.len() + self.places, 0);
        self.with(&magnitude::square_root(&radicand))
    }

    fn shown(&self, negative: bool, scale: i32) -> Result<Numeric> {
        let weight = self.run.len() as i32 - 1 - self.places as i32;
        let digits = Digits::normalized(negative, weight, SCALE_MAX as u16, self.run.clone());
        Numeric::checked(digits.rounded(scale, Rounding::HalfAway))
    }
}

/// What is asked, now and then, by what may take long: whether to go on.
pub type GoOn<'g> = dyn Fn() -> bool + 'g;

#[cold]
fn stopped() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement")
}

/// A number as a run of digits.
fn run_of(number: u32) -> Vec<u16> {
    let digits = [
        number / 100_000_000,
        number / 10_000 % 10_000,
        number % 10_000,
    ];
    magnitude::trim(&digits.map(|digit| digit as u16)).to_vec()
}

/// The decimal logarithm of the magnitude of a number that is not zero, whatever its size.
fn decimal_logarithm(digits: &Digits) -> f64 {
    let head = digits.digits.iter().take(5).rev();
    let head = head.fold(0.0, |rest, digit| rest / 10_000.0 + f64::from(*digit));
    head.log10() + f64::from(digits.weight) * f64::from(BASE_DIGITS)
}

/// Places for so many decimal digits behind the point, and some more.
fn places_for(digits: i32) -> usize {
    usize::try_from(digits.max(0) / BASE_DIGITS).unwrap_or(0) + 6
}

/// e to the power of a number that is not negative.
fn exponential(exponent: &Fixed, go_on: &GoOn<'_>) -> Result<Fixed> {
    let places = exponent.places;
    let one = Fixed::small(1, places);
    // Halved until the series ends soon, then squared as often.
    let mut halved = exponent.clone();
    let mut times = 0;
    let limit = Fixed::small(1, places).over_small(256);
    while halved.compare(&limit).is_gt() {
        halved = halved.over_small(2);
        times += 1;
    }
    let mut sum = one.plus(&halved);
    let mut term = halved.clone();
    for number in 2u32.. {
        if !go_on() {
            return Err(stopped());
        }
        term = term.times(&halved, go_on)?.over_small(number);
        if term.is_zero() {
            break;
        }
        sum = sum.plus(&term);
    }
    for _ in 0..times {
        sum = sum.times(&sum, go_on)?;
    }
    Ok(sum)
}

/// The natural logarithm of a number from 1 up.
fn logarithm_above(value: &Fixed, go_on: &GoOn<'_>) -> Result<Fixed> {
    let places = value.places;
    let one = Fixed::small(1, places);
    let limit = one.plus(&one.over_small(64));
    let mut value = value.clone();
    let mut times = 0;
    while value.compare(&limit).is_gt() {
        if !go_on() {
            return Err(stopped());
        }
        value = value.root();
        times += 1;
    }
    // 2 artanh((x - 1) / (x + 1))
    let part = value.minus(&one).over(&value.plus(&one), go_on)?;
    let square = part.times(&part, go_on)?;
    let mut sum = part.clone();
    let mut power = part;
    for number in (3u32..).step_by(2) {
        if !go_on() {
            return Err(stopped());
        }
        power = power.times(&square, go_on)?;
        let term = power.over_small(number);
        if term.is_zero() {
            break;
        }
        sum = sum.plus(&term);
    }
    for _ in 0..=times {
        sum = sum.plus(&sum);
    }
    Ok(sum)
}

/// Whether it is negative, and the magnitude of the natural logarithm of a positive number, good for so many digits behind the point.
fn logarithm(digits: &Digits, behind: i32, go_on: &GoOn<'_>) -> Result<(bool, Fixed)> {
    // x = m * 10000^w with m from 1 to 10000.
    let places = places_for(behind + digits.digits.len() as i32 * BASE_DIGITS + 8);
    let mantissa = Digits {
        weight: 0,
        negative: false,
        ..digits.clone()
    };
    let mantissa = logarithm_above(&Fixed::of(&mantissa, places), go_on)?;
    if digits.weight == 0 {
        return Ok((false, mantissa));
    }
    let base = Fixed {
        run: {
            let mut run = vec![1];
            run.resize(places + 2, 0);
            run
        },
        places,
    };
    let base = logarithm_above(&base, go_on)?;
    let count = run_of(digits.weight.unsigned_abs());
    let mut shift = base.clone();
    shift.run = magnitude::trim(&magnitude::multiply(&base.run, &count)).to_vec();
    Ok(if digits.weight > 0 {
        (false, mantissa.plus(&shift))
    } else {
        match shift.compare(&mantissa) {
            Ordering::Less => (false, mantissa.minus(&shift)),
            _ => (true, shift.minus(&mantissa)),
        }
    })
}

/// The place of the first decimal digit of a logarithm, as PostgreSQL estimates it.
fn logarithm_weight(number: &Numeric, digits: &Digits) -> i32 {
    let near = number.to_f64();
    if (0.9..=1.1).contains(&near) {
        let Ok(rest) = number.subtract(&Numeric::from(1)) else {
            return 0;
        };
        return rest
            .digits()
            .filter(|rest| !rest.is_zero())
            .map_or(0, |rest| {
                rest.weight * BASE_DIGITS + f64::from(rest.digits[0]).log10() as i32
            });
    }
    let Some(first) = digits.digits.first() else {
        return 0;
    };
    let mut head = f64::from(*first);
    let mut weight = digits.weight * BASE_DIGITS;
    if let Some(second) = digits.digits.get(1) {
        head = head * 10_000.0 + f64::from(*second);
        weight -= BASE_DIGITS;
    }
    let logarithm = head.ln() + f64::from(weight) * LN_10;
    logarithm.abs().log10() as i32
}

fn display(scale: i32, least: &[i32]) -> i32 {
    let scale = least.iter().copied().fold(scale, i32::max);
    scale.clamp(0, DISPLAY_SCALE_MAX)
}

#[cold]
fn no_logarithm(what: &'static str) -> SqlError {
    SqlError::new(SqlState::INVALID_LOGARITHM, what)
}

impl Numeric {
    /// e to the power of it.
    ///
    /// # Errors
    /// 22003 if the result has too many digits, 57014 if it was not to go on.
    pub fn exponential(&self, go_on: &GoOn<'_>) -> Result<Numeric> {
        let Some(digits) = self.digits() else {
            return Ok(match self {
                number if *number == Numeric::NEG_INFINITY => Numeric::ZERO,
                number => number.clone(),
            });
        };
        let value = self.to_f64();
        let weight = (value * LOG10_E).clamp(-RESULT_SCALE_MAX, RESULT_SCALE_MAX) as i32;
        let scale = display(DIGITS_MIN - weight, &[self.scale() as i32]);
        exponential_shown((digits.negative, &digits), value, scale, go_on)
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// 2201E for zero and negative numbers, 57014 if it was not to go on.
    pub fn logarithm(&self, go_on: &GoOn<'_>) -> Result<Numeric> {
        self.check_logarithm()?;
        let Some(digits) = self.digits() else {
            return Ok(self.clone());
        };
        let weight = logarithm_weight(self, &digits);
        let scale = display(DIGITS_MIN - weight, &[self.scale() as i32]);
        let (negative, found) = logarithm(&digits, scale, go_on)?;
        found.shown(negative, scale)
    }

    /// The logarithm to a base.
    ///
    /// # Errors
    /// 2201E for zero and negative numbers, 22012 for base 1, 57014.
    pub fn logarithm_to(&self, base: &Numeric, go_on: &GoOn<'_>) -> Result<Numeric> {
        base.check_logarithm()?;
        self.check_logarithm()?;
        let (Some(digits), Some(of_base)) = (self.digits(), base.digits()) else {
            return match (self.is_nan() || base.is_nan(), base.is_finite()) {
                (true, _) => Ok(Numeric::NAN),
                (false, true) => Ok(Numeric::INFINITY),
                (false, false) if self.is_finite() => Ok(Numeric::ZERO),
                _ => Ok(Numeric::NAN),
            };
        };
        let weight = logarithm_weight(self, &digits) - logarithm_weight(base, &of_base);
        let least = [self.scale() as i32, base.scale() as i32];
        let scale = display(DIGITS_MIN - weight, &least);
        let (above_negative, mut above) = logarithm(&digits, scale + 8, go_on)?;
        let (below_negative, mut below) = logarithm(&of_base, scale + 8, go_on)?;
        if below.is_zero() {
            return Err(SqlError::division_by_zero());
        }
        let places = above.places.max(below.places);
        for one in [&mut above, &mut below] {
            one.run.resize(one.run.len() + places - one.places, 0);
            one.places = places;
        }
        above
            .over(&below, go_on)?
            .shown(above_negative != below_negative, scale)
    }

    fn check_logarithm(&self) -> Result<()> {
        if self.is_negative() {
            return Err(no_logarithm("cannot take logarithm of a negative number"));
        }
        if self.is_zero() {
            return Err(no_logarithm("cannot take logarithm of zero"));
        }
        Ok(())
    }

    /// It to the power of `exponent`.
    ///
    /// # Errors
    /// 2201F for zero to a negative power and a negative number to a broken one, 22003 if the result has too many digits, 57014.
    pub fn power(&self, exponent: &Numeric, go_on: &GoOn<'_>) -> Result<Numeric> {
        let (Some(base), Some(power)) = (self.digits(), exponent.digits()) else {
            return self.power_special(exponent);
        };
        let invalid = |what: &'static str| SqlError::new(SqlState::INVALID_POWER, what);
        if base.is_zero() && power.negative {
            return Err(invalid("zero raised to a negative power is undefined"));
        }
        let whole = exponent.is_whole();
        if base.negative && !whole {
            return Err(invalid(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        let least = [self.scale() as i32, exponent.scale() as i32];
        if whole && let Ok(number) = exponent.to_i32() {
            let scale = display(DIGITS_MIN, &least[..1]);
            return self.whole_power(&base, number, scale, go_on);
        }
        if base.is_zero() {
            return Numeric::ZERO.round(DIGITS_MIN);
        }
        let odd = whole && {
            let half = exponent.modulo(&Numeric::from(2))?;
            !half.is_zero()
        };
        let value = decimal_logarithm(&base) * LN_10 * exponent.to_f64();
        if value.abs() > RESULT_SCALE_MAX * 3.01 {
            return if value > 0.0 {
                Err(overflow())
            } else {
                Numeric::ZERO.round(DISPLAY_SCALE_MAX)
            };
        }
        let weight = (value * LOG10_E) as i32;
        let scale = display(DIGITS_MIN - weight, &least);
        let guard = scale + weight.max(0) + (exponent.to_f64().abs().log10().max(0.0) as i32) + 12;
        let (negative, found) = logarithm(&base, guard, go_on)?;
        let product = found.times(&Fixed::of(&power, found.places), go_on)?;
        let negative = negative != power.negative;
        let product = Digits::normalized(
            negative,
            product.run.len() as i32 - 1 - product.places as i32,
            SCALE_MAX as u16,
            product.run,
        );
        exponential_shown((negative, &product), value, scale, go_on).map(|found| {
            if base.negative && odd {
                found.negate()
            } else {
                found
            }
        })
    }

    fn whole_power(
        &self,
        base: &Digits,
        exponent: i32,
        scale: i32,
        go_on: &GoOn<'_>,
    ) -> Result<Numeric> {
        match exponent {
            0 => return Numeric::from(1).round(scale),
            1 => return self.round(scale),
            2 => return self.multiply(self)?.round(scale),
            _ if base.is_zero() => return Numeric::ZERO.round(scale),
            _ => {}
        }
        let logarithm = decimal_logarithm(base);
        let decimal = logarithm * f64::from(exponent);
        if decimal > f64::from(super::digits::WEIGHT_MAX + 1) * f64::from(BASE_DIGITS) {
            return Err(overflow());
        }
        if decimal + 1.0 < f64::from(-DISPLAY_SCALE_MAX) {
            return Numeric::ZERO.round(scale);
        }
        // Each factor's error counts as often as it is one.
        let exact = exponent > 0 && self.is_whole();
        let lost = if exact {
            0.0
        } else {
            f64::from(exponent).abs() * logarithm.abs()
        };
        let places = places_for(scale + lost.min(200_000.0) as i32 + 12)
            .max(base.digits.len() + 2)
            .max(usize::try_from(-base.weight).unwrap_or(0) + 8);
        let one = Fixed::small(1, places);
        let mut power = Fixed::of(base, places);
        let mut result = one.clone();
        let mut rest = exponent.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                result = result.times(&power, go_on)?;
            }
            rest >>= 1;
            if rest > 0 {
                power = power.times(&power, go_on)?;
            }
        }
        if exponent < 0 {
            if result.is_zero() {
                return Err(overflow());
            }
            result = one.over(&result, go_on)?;
        }
        result.shown(base.negative && exponent % 2 != 0, scale)
    }

    fn power_special(&self, exponent: &Numeric) -> Result<Numeric> {
        let one = Numeric::from(1);
        if self.is_nan() {
            return Ok(if exponent.is_zero() {
                one
            } else {
                Numeric::NAN
            });
        }
        if exponent.is_nan() {
            return Ok(if self.compare(&one).is_eq() {
                one
            } else {
                Numeric::NAN
            });
        }
        // An infinity is the one, the other or both.
        let found = self.to_f64().powf(exponent.to_f64());
        Numeric::from_f64(found)
    }
}

/// e to the power of a number whose magnitude `digits` are.
fn exponential_shown(
    (negative, digits): (bool, &Digits),
    value: f64,
    scale: i32,
    go_on: &GoOn<'_>,
) -> Result<Numeric> {
    if value.abs() >= RESULT_SCALE_MAX * 3.0 {
        return if value > 0.0 {
            Err(overflow())
        } else {
            Numeric::ZERO.round(scale)
        };
    }
    let weight = (value.abs() * LOG10_E) as i32;
    let places =
        places_for(scale + 2 * weight + 16).max(usize::from(digits.scale.min(1200)) / 4 + 4);
    let found = exponential(&Fixed::of(digits, places), go_on)?;
    if negative {
        let one = Fixed::small(1, places);
        one.over(&found, go_on)?.shown(false, scale)
    } else {
        found.shown(false, scale)
    }
}
