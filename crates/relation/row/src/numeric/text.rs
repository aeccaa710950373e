//! Numbers as text.

use super::digits::{BASE_DIGITS, WEIGHT_MAX};
use super::{Digits, Numeric, NumericRef, POWERS_OF_TEN, Repr, SCALE_MAX};
use crate::error::{Result, SqlError, SqlState};

/// A result that has more digits than a `numeric` may have (22003).
#[cold]
pub(super) fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// The text without the blanks around it, as C's `isspace` sees them.
pub(crate) fn trim_blanks(text: &str) -> &str {
    text.trim_matches(|c| u8::try_from(c).is_ok_and(|byte| is_blank(&byte)))
}

impl Numeric {
    /// Reads a number: `12.50`, `-1e-3`, `.5`, `NaN`, `-Infinity`, blanks around it.
    ///
    /// # Errors
    /// 22P02 for other text, 22003 for more digits than a number may have.
    pub fn parse(text: &str) -> Result<Self> {
        let body = trim_blanks(text);
        if let Some(small) = parse_small(body) {
            return Ok(small);
        }
        let special = |name: &str| body.eq_ignore_ascii_case(name);
        if special("nan") {
            return Ok(Self::NAN);
        }
        if ["infinity", "+infinity", "inf", "+inf"]
            .into_iter()
            .any(special)
        {
            return Ok(Self::INFINITY);
        }
        if ["-infinity", "-inf"].into_iter().any(special) {
            return Ok(Self::NEG_INFINITY);
        }
        match parse_digits(body) {
            Some(Ok(digits)) => Ok(Self::from_digits(digits)),
            Some(Err(error)) => Err(error),
            None => Err(SqlError::invalid_text("numeric", text)),
        }
    }
}

/// The common case: at most 18 digits, no exponent.
fn parse_small(text: &str) -> Option<Numeric> {
    let bytes = text.as_bytes();
    let (negative, rest) = match bytes.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, bytes),
    };
    if rest.len() > 19 {
        return None;
    }
    let (mut value, mut digits, mut scale) = (0i64, 0u32, None);
    for byte in rest {
        match byte {
            b'0'..=b'9' => {
                value = value.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
                digits += 1;
                if let Some(scale) = &mut scale {
                    *scale += 1;
                }
            }
            b'.' if scale.is_none() => scale = Some(0u8),
            _ => return None,
        }
    }
    if digits == 0 || digits > 18 {
        return None;
    }
    Some(Numeric(Repr::Small {
        coefficient: if negative { -value } else { value },
        scale: scale.unwrap_or(0),
    }))
}

/// `None` if it is no number.
fn parse_digits(text: &str) -> Option<Result<Digits>> {
    let mut bytes = text.as_bytes();
    let mut negative = false;
    if let [sign @ (b'-' | b'+'), rest @ ..] = bytes {
        negative = *sign == b'-';
        bytes = rest;
    }
    let mut decimals = Vec::with_capacity(bytes.len());
    let mut point = None;
    while let [first, rest @ ..] = bytes {
        match first {
            b'0'..=b'9' => decimals.push(first - b'0'),
            b'.' if point.is_none() => point = Some(decimals.len()),
            _ => break,
        }
        bytes = rest;
    }
    if decimals.is_empty() {
        return None;
    }
    let whole = point.unwrap_or(decimals.len()) as i64;
    let mut scale = decimals.len() as i64 - whole;
    let mut exponent = 0i64;
    if let [b'e' | b'E', rest @ ..] = bytes {
        let (sign, rest) = match rest {
            [b'-', rest @ ..] => (-1, rest),
            [b'+', rest @ ..] => (1, rest),
            _ => (1, rest),
        };
        if rest.is_empty() || !rest.iter().all(u8::is_ascii_digit) {
            return None;
        }
        for digit in rest {
            exponent = (exponent * 10 + i64::from(digit - b'0')).min(i64::from(i32::MAX));
        }
        if exponent >= i64::from(i32::MAX / 2) {
            return Some(Err(overflow()));
        }
        exponent *= sign;
        bytes = &[];
    }
    if !bytes.is_empty() {
        return None;
    }
    scale = (scale - exponent).max(0);
    // Digits before the point.
    let whole = whole + exponent;
    let leading = decimals.iter().take_while(|digit| **digit == 0).count() as i64;
    let is_zero = leading as usize == decimals.len();
    if scale > i64::from(SCALE_MAX)
        || (!is_zero && whole - leading > (WEIGHT_MAX as i64 + 1) * BASE_DIGITS as i64)
    {
        return Some(Err(overflow()));
    }
    let Ok(scale) = u16::try_from(scale) else {
        return Some(Err(overflow()));
    };
    if is_zero {
        return Some(Ok(Digits::zero(scale)));
    }
    let decimals = &decimals[leading as usize..];
    let whole = whole - leading;
    // Groups of four are counted from the point.
    let weight = (whole + 3).div_euclid(4) - 1;
    let pad = (weight + 1) * 4 - whole;
    debug_assert!((0..4).contains(&pad));
    let mut digits = Vec::with_capacity(decimals.len() / 4 + 2);
    let (mut group, mut filled) = (0u16, pad);
    for decimal in decimals {
        group = group * 10 + u16::from(*decimal);
        filled += 1;
        if filled == 4 {
            digits.push(group);
            (group, filled) = (0, 0);
        }
    }
    if filled > 0 {
        digits.push(group * 10u16.pow(4 - filled as u32));
    }
    Some(Ok(Digits::normalized(
        negative,
        weight as i32,
        scale,
        digits,
    )))
}

impl NumericRef<'_> {
    /// Appends the number's text: all digits, never an exponent.
    pub fn write(self, out: &mut String) {
        match self {
            NumericRef::Small { coefficient, scale } => write_small(coefficient, scale, out),
            NumericRef::NaN => out.push_str("NaN"),
            NumericRef::Infinity => out.push_str("Infinity"),
            NumericRef::NegInfinity => out.push_str("-Infinity"),
            NumericRef::Long(_) => match self.to_numeric().0 {
                Repr::Big(digits) => digits.write(out),
                // Damaged bytes may hold a number that is not long.
                other => Numeric(other).as_ref().write(out),
            },
        }
    }
}

fn write_small(coefficient: i64, scale: u8, out: &mut String) {
    let unit = POWERS_OF_TEN[usize::from(scale)].unsigned_abs();
    let value = coefficient.unsigned_abs();
    if coefficient < 0 {
        out.push('-');
    }
    crate::integer::write_u64(value / unit, out);
    if scale > 0 {
        out.push('.');
        let mut buffer = [b'0'; 18];
        let mut rest = value % unit;
        for place in buffer[..usize::from(scale)].iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        for byte in &buffer[..usize::from(scale)] {
            out.push(char::from(*byte));
        }
    }
}

impl Digits {
    fn write(&self, out: &mut String) {
        if self.negative {
            out.push('-');
        }
        // The first digit of the whole part comes without leading zeros.
        let first = if self.weight < 0 {
            0
        } else {
            self.at(self.weight)
        };
        crate::integer::write_u64(u64::from(first), out);
        // Behind the last digit there may be many zeros.
        let zeros = (self.weight + 1 - self.digits.len() as i32).clamp(0, self.weight.max(0));
        for place in (zeros..self.weight).rev() {
            write_group(self.at(place), 4, out);
        }
        out.push_str(&"0".repeat(4 * zeros as usize));
        if self.scale > 0 {
            out.push('.');
            let mut left = usize::from(self.scale);
            let mut place = -1;
            while left > 0 {
                let count = left.min(4);
                write_group(self.at(place), count, out);
                left -= count;
                place -= 1;
            }
        }
    }
}

/// The first `count` of the four decimal digits of `digit`.
fn write_group(digit: u16, count: usize, out: &mut String) {
    for power in (4 - count..4).rev() {
        let decimal = digit / 10u16.pow(power as u32) % 10;
        out.push(char::from(b'0' + decimal as u8));
    }
}

impl std::fmt::Display for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        self.as_ref().write(&mut out);
        f.write_str(&out)
    }
}
