//! `real` and `double precision` as text.
//!
//! A float is written with the fewest digits that lead back to it, the nearest to it among those.
//! Unlike the usual algorithms, PostgreSQL does not take a number that lies exactly in the middle
//! between two floats, although reading it would round to the even one: 1e23 is written
//! 9.999999999999999e+22.

use crate::error::{Result, SqlError, SqlState};
use crate::numeric::text::trim_blanks;

/// A result above all finite floats (22003).
#[cold]
pub(crate) fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        "value out of range: overflow",
    )
}

/// A result that is not zero but too near to it (22003).
#[cold]
pub(crate) fn underflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        "value out of range: underflow",
    )
}

/// What `real` and `double precision` differ in.
pub(crate) trait Float: Copy + PartialEq + std::fmt::LowerExp + std::str::FromStr {
    /// Name in messages.
    const NAME: &'static str;
    /// Digits that every decimal keeps through the type (`FLT_DIG`, `DBL_DIG`).
    const DIGITS: i32;
    /// Digits that are always enough to lead back.
    const DIGITS_ENOUGH: usize;
    fn widen(self) -> f64;
    /// Mantissa and power of two of the value, both exact.
    fn parts(self) -> (u64, i32);
    /// Whether the distance to the next smaller float is half of that to the next larger.
    fn is_binade_start(self) -> bool;
}

impl Float for f64 {
    const NAME: &'static str = "double precision";
    const DIGITS: i32 = 15;
    const DIGITS_ENOUGH: usize = 17;
    fn widen(self) -> f64 {
        self
    }
    fn parts(self) -> (u64, i32) {
        let bits = self.to_bits();
        let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        if exponent == 0 {
            (fraction, -1074)
        } else {
            (fraction | 1 << 52, exponent as i32 - 1075)
        }
    }
    fn is_binade_start(self) -> bool {
        let bits = self.to_bits();
        bits & ((1 << 52) - 1) == 0 && (bits >> 52) & 0x7ff > 1
    }
}

impl Float for f32 {
    const NAME: &'static str = "real";
    const DIGITS: i32 = 6;
    const DIGITS_ENOUGH: usize = 9;
    fn widen(self) -> f64 {
        f64::from(self)
    }
    fn parts(self) -> (u64, i32) {
        let bits = self.to_bits();
        let (exponent, fraction) = ((bits >> 23) & 0xff, bits & ((1 << 23) - 1));
        if exponent == 0 {
            (u64::from(fraction), -149)
        } else {
            (u64::from(fraction | 1 << 23), exponent as i32 - 150)
        }
    }
    fn is_binade_start(self) -> bool {
        let bits = self.to_bits();
        bits & ((1 << 23) - 1) == 0 && (bits >> 23) & 0xff > 1
    }
}

/// The digits of a float, on the stack.
#[derive(Clone, Copy)]
struct Decimal {
    digits: [u8; 40],
    count: usize,
    /// The power of ten of the first digit.
    exponent: i32,
}

impl Decimal {
    /// Takes the number that `{:e}` writes apart.
    fn of(arguments: std::fmt::Arguments<'_>) -> Self {
        let mut reader = Reader {
            decimal: Decimal {
                digits: [0; 40],
                count: 0,
                exponent: 0,
            },
            in_exponent: false,
            negative: false,
        };
        // The reader takes everything, and never more than 40 digits.
        let _ = std::fmt::Write::write_fmt(&mut reader, arguments);
        let Reader {
            mut decimal,
            negative,
            ..
        } = reader;
        if negative {
            decimal.exponent = -decimal.exponent;
        }
        while decimal.count > 1 && decimal.digits[decimal.count - 1] == b'0' {
            decimal.count -= 1;
        }
        decimal
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.digits[..self.count]).unwrap_or("0")
    }
}

struct Reader {
    decimal: Decimal,
    in_exponent: bool,
    negative: bool,
}

impl std::fmt::Write for Reader {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            match byte {
                b'e' => self.in_exponent = true,
                b'-' if self.in_exponent => self.negative = true,
                b'0'..=b'9' if self.in_exponent => {
                    self.decimal.exponent = self.decimal.exponent * 10 + i32::from(byte - b'0');
                }
                b'0'..=b'9' if self.decimal.count < self.decimal.digits.len() => {
                    self.decimal.digits[self.decimal.count] = byte;
                    self.decimal.count += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether `digits * 10^(exponent - len + 1)` lies in the middle between `value` and a neighbour.
fn is_tie<F: Float>(value: F, digits: &str, exponent: i32) -> bool {
    let (mantissa, power) = value.parts();
    let power_of_ten = exponent + 1 - digits.len() as i32;
    let Ok(decimal) = digits.parse::<u128>() else {
        return false;
    };
    // In quarters of the last binary digit, so that the middle to either neighbour is whole.
    let middles = [
        u128::from(mantissa) * 4 + 2,
        u128::from(mantissa) * 4 - if value.is_binade_start() { 1 } else { 2 },
    ];
    // decimal * 10^p == middle * 2^(power - 2). Powers of five beyond these have more digits than
    // either side.
    let (five, two) = (power_of_ten.unsigned_abs(), power_of_ten - (power - 2));
    if five > 27 {
        return false;
    }
    let fives = 5u128.pow(five);
    middles.into_iter().any(|middle| {
        let (left, right) = if power_of_ten >= 0 {
            (decimal.checked_mul(fives), Some(middle))
        } else {
            (Some(decimal), middle.checked_mul(fives))
        };
        let (Some(left), Some(right)) = (left, right) else {
            return false;
        };
        // left * 2^two == right
        let shift = two.unsigned_abs();
        if shift >= 128 {
            return false;
        }
        if two >= 0 {
            left.leading_zeros() >= shift && left << shift == right
        } else {
            right.leading_zeros() >= shift && right << shift == left
        }
    })
}

fn shortest<F: Float>(value: F) -> Decimal {
    let decimal = Decimal::of(format_args!("{value:e}"));
    let (mantissa, power) = value.parts();
    // Only a value with few binary places can be, or lie in, the middle of anything: each place costs
    // a decimal digit.
    if power + (mantissa.trailing_zeros() as i32) < -27 {
        return decimal;
    }
    // Of two nearest decimals the one with the even last digit is taken, if it leads back; else the
    // shortest; else, where that is a middle, the nearest with more digits.
    let fits = |behind: usize| {
        let text = format!("{value:.behind$e}");
        let rounded = Decimal::of(format_args!("{text}"));
        let leads_back = text.parse::<F>().is_ok_and(|back| back == value);
        (leads_back && !is_tie(value, rounded.text(), rounded.exponent)).then_some(rounded)
    };
    if let Some(even) = fits(decimal.count - 1) {
        return even;
    }
    if is_tie(value, decimal.text(), decimal.exponent)
        && let Some(longer) = (decimal.count..F::DIGITS_ENOUGH).find_map(fits)
    {
        return longer;
    }
    decimal
}

/// Appends a float.
pub(crate) fn write<F: Float>(value: F, extra_digits: i32, out: &mut String) {
    let wide = value.widen();
    if wide.is_nan() {
        out.push_str("NaN");
        return;
    }
    if wide.is_sign_negative() {
        out.push('-');
    }
    if wide.is_infinite() {
        out.push_str("Infinity");
        return;
    }
    if wide == 0.0 {
        out.push('0');
        return;
    }
    let (decimal, limit) = if extra_digits > 0 {
        (shortest(value), F::DIGITS)
    } else {
        let count = (F::DIGITS + extra_digits).max(1);
        let behind = count as usize - 1;
        (Decimal::of(format_args!("{wide:.behind$e}")), count)
    };
    let (digits, exponent) = (decimal.text(), decimal.exponent);
    if exponent < -4 || exponent >= limit {
        out.push_str(&digits[..1]);
        if digits.len() > 1 {
            out.push('.');
            out.push_str(&digits[1..]);
        }
        out.push('e');
        out.push(if exponent < 0 { '-' } else { '+' });
        if exponent.abs() < 10 {
            out.push('0');
        }
        crate::integer::write_u64(u64::from(exponent.unsigned_abs()), out);
    } else if exponent < 0 {
        out.push_str("0.");
        for _ in 1..-exponent {
            out.push('0');
        }
        out.push_str(digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.push_str(digits);
            for _ in digits.len()..whole {
                out.push('0');
            }
        } else {
            out.push_str(&digits[..whole]);
            out.push('.');
            out.push_str(&digits[whole..]);
        }
    }
}

/// Reads a float: decimal, with or without exponent, `NaN`, `Infinity`, blanks around.
pub(crate) fn parse<F: Float>(text: &str) -> Result<F> {
    let body = trim_blanks(text);
    let invalid = || SqlError::invalid_text(F::NAME, text);
    let unsigned = body.strip_prefix(['-', '+']).unwrap_or(body);
    let is_word = ["nan", "infinity", "inf"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word));
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if !is_word && !is_number {
        return Err(invalid());
    }
    let value: F = body.parse().map_err(|_| invalid())?;
    let wide = value.widen();
    let has_digit = || {
        let mantissa = unsigned.split(['e', 'E']).next().unwrap_or("");
        mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
    };
    if !is_word && (wide.is_infinite() || (wide == 0.0 && has_digit())) {
        let message = format!("\"{body}\" is out of range for type {}", F::NAME);
        return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    }
    Ok(value)
}
