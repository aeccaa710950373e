//! Long decimal numbers: sign, base-10000 digits, the place of the first, and the scale.
//!
//! Layout: the value is the sum of `digits[i] * 10000^(weight - i)`. As stored in a row
//! (little-endian): `u8 kind (1 positive, 2 negative), u16 scale, i16 weight, u16 digit ...`.
//!
//! Invariants: the first and the last digit are not zero; zero has no digits, weight 0, and is not
//! negative; no digit stands wholly behind the scale.

use super::{POWERS_OF_TEN, SMALL_MAX, SMALL_SCALE_MAX};

/// The base.
pub(crate) const BASE: u32 = 10_000;
/// Decimal digits of a digit.
pub(crate) const BASE_DIGITS: i32 = 4;
/// The largest weight of a number: 131072 decimal digits before the point.
pub(crate) const WEIGHT_MAX: i32 = 32767;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    pub negative: bool,
    /// Power of 10000 of the first digit.
    pub weight: i32,
    /// Decimal digits shown after the point.
    pub scale: u16,
    pub digits: Vec<u16>,
}

/// Bytes of a stored number before its digits.
pub(crate) const STORED_HEAD: usize = 5;
pub(crate) const STORED_POSITIVE: u8 = 1;
pub(crate) const STORED_NEGATIVE: u8 = 2;

impl Digits {
    pub fn zero(scale: u16) -> Self {
        Self {
            negative: false,
            weight: 0,
            scale,
            digits: Vec::new(),
        }
    }

    /// The number with these digits, in the one form that the invariants allow.
    pub fn normalized(negative: bool, weight: i32, scale: u16, mut digits: Vec<u16>) -> Self {
        debug_assert!(digits.iter().all(|digit| u32::from(*digit) < BASE));
        let leading = digits.iter().take_while(|digit| **digit == 0).count();
        if leading == digits.len() {
            return Self::zero(scale);
        }
        while digits.last() == Some(&0) {
            digits.pop();
        }
        digits.drain(..leading);
        Self {
            negative,
            weight: weight - leading as i32,
            scale,
            digits,
        }
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// `coefficient / 10^scale`.
    pub fn from_scaled(coefficient: i128, scale: u16) -> Self {
        let negative = coefficient < 0;
        let mut rest = coefficient.unsigned_abs();
        // Digits are groups of four counted from the point, so the coefficient is shifted until
        // its last group is whole.
        let groups = (i32::from(scale) + BASE_DIGITS - 1) / BASE_DIGITS;
        let shift = groups * BASE_DIGITS - i32::from(scale);
        let mut digits = Vec::with_capacity(11);
        if shift > 0 {
            let low = 10u128.pow((BASE_DIGITS - shift) as u32);
            digits.push(((rest % low) * 10u128.pow(shift as u32)) as u16);
            rest /= low;
        }
        while rest > 0 {
            digits.push((rest % u128::from(BASE)) as u16);
            rest /= u128::from(BASE);
        }
        digits.reverse();
        let weight = digits.len() as i32 - 1 - groups;
        Self::normalized(negative, weight, scale, digits)
    }

    /// Coefficient and scale if they are those of a small number.
    pub fn to_small(&self) -> Option<(i64, u8)> {
        let scale = u8::try_from(self.scale).ok()?;
        if scale > SMALL_SCALE_MAX || self.weight > 4 || self.digits.len() > 9 {
            return None;
        }
        let mut value: i128 = 0;
        let mut place = self.weight;
        for digit in &self.digits {
            value = value.checked_mul(i128::from(BASE))? + i128::from(*digit);
            place -= 1;
        }
        // `place` is now one below the last digit's: value is to be multiplied by 10000^(place + 1).
        let exponent = (place + 1) * BASE_DIGITS + i32::from(scale);
        if exponent >= 0 {
            value = value.checked_mul(10i128.checked_pow(exponent as u32)?)?;
        } else {
            let divisor = i128::from(*POWERS_OF_TEN.get((-exponent) as usize)?);
            debug_assert_eq!(value % divisor, 0, "no digits behind the scale");
            value /= divisor;
        }
        let value = if self.negative { -value } else { value };
        let value = i64::try_from(value).ok()?;
        (value.unsigned_abs() <= SMALL_MAX as u64).then_some((value, scale))
    }

    /// The digit at a power of 10000; zero outside of the run.
    pub fn at(&self, place: i32) -> u16 {
        usize::try_from(self.weight - place)
            .ok()
            .and_then(|index| self.digits.get(index).copied())
            .unwrap_or(0)
    }

    /// The digits from the place of `high` down to that of `low`, zeros where there are none.
    pub fn run(&self, high: i32, low: i32) -> Vec<u16> {
        (low..=high).rev().map(|place| self.at(place)).collect()
    }

    /// Power of 10000 of the last digit that can show at this scale.
    pub fn lowest_place(scale: u16) -> i32 {
        -((i32::from(scale) + BASE_DIGITS - 1) / BASE_DIGITS)
    }

    /// Appends the stored form.
    pub fn store(&self, out: &mut Vec<u8>) {
        out.push(if self.negative {
            STORED_NEGATIVE
        } else {
            STORED_POSITIVE
        });
        out.extend_from_slice(&self.scale.to_le_bytes());
        out.extend_from_slice(&(self.weight as i16).to_le_bytes());
        for digit in &self.digits {
            out.extend_from_slice(&digit.to_le_bytes());
        }
    }

    /// Whether these are the bytes of a stored number.
    pub fn is_stored(bytes: &[u8]) -> bool {
        let [kind, scale_low, scale_high, _, _, digits @ ..] = bytes else {
            return false;
        };
        let scale = u16::from_le_bytes([*scale_low, *scale_high]);
        matches!(*kind, STORED_POSITIVE | STORED_NEGATIVE)
            && u32::from(scale) <= super::SCALE_MAX
            && digits.len() % 2 == 0
            && digits
                .chunks_exact(2)
                .all(|pair| u32::from(u16::from_le_bytes([pair[0], pair[1]])) < BASE)
    }

    /// The number of a stored form for which [`Self::is_stored`] holds.
    pub fn from_stored(bytes: &[u8]) -> Self {
        debug_assert!(Self::is_stored(bytes));
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let digits = bytes[STORED_HEAD..]
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        let mut number = Self::normalized(
            bytes[0] == STORED_NEGATIVE,
            i32::from(word(3) as i16),
            word(1),
            digits,
        );
        // Damaged bytes may hold digits behind the scale; what follows relies on there being none.
        number.truncate_to_scale();
        number
    }

    /// Drops all that stands behind the scale.
    pub fn truncate_to_scale(&mut self) {
        let lowest = Self::lowest_place(self.scale);
        let keep = usize::try_from(self.weight - lowest + 1).unwrap_or(0);
        if keep < self.digits.len() {
            self.digits.truncate(keep);
        }
        let partial = i32::from(self.scale) % BASE_DIGITS;
        if partial != 0
            && keep == self.digits.len()
            && let Some(last) = self.digits.last_mut()
        {
            let unit = 10u16.pow((BASE_DIGITS - partial) as u32);
            *last -= *last % unit;
        }
        let digits = std::mem::take(&mut self.digits);
        *self = Self::normalized(self.negative, self.weight, self.scale, digits);
    }
}
