//! `smallint`, `integer`, `bigint` and `oid` as text.

use crate::error::{Result, SqlError, SqlState};
use crate::numeric::text::trim_blanks;

/// Appends a number in decimal.
pub(crate) fn write_u64(value: u64, out: &mut String) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = value;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.push_str(str::from_utf8(&buffer[at..]).unwrap_or(""));
}

/// Appends a number in decimal.
pub(crate) fn write_i64(value: i64, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    write_u64(value.unsigned_abs(), out);
}

/// Reads a whole number of type `name` in the range of `T`: a sign, digits, blanks around.
pub(crate) fn parse<T: TryFrom<i64>>(text: &str, name: &str) -> Result<T> {
    let body = trim_blanks(text);
    let (negative, digits) = match body.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut value = Some(0i64);
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(SqlError::invalid_text(name, text));
        }
        let digit = i64::from(digit - b'0');
        // Counted downwards, because there is one more negative number.
        value = value.and_then(|value| value.checked_mul(10)?.checked_sub(digit));
    }
    if digits.is_empty() {
        return Err(SqlError::invalid_text(name, text));
    }
    let value = value.and_then(|value| {
        if negative {
            Some(value)
        } else {
            value.checked_neg()
        }
    });
    value
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| {
            let message = format!("value \"{text}\" is out of range for type {name}");
            SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
        })
}

/// Reads an unsigned number of type `name`, as [`unsigned`] does, that is held as a signed one.
///
/// # Errors
/// `22003` for one beyond those.
pub(crate) fn parse_unsigned(text: &str, name: &str) -> Result<i64> {
    signed(unsigned(text), name)
}

/// Reads an `xid`: the lower half of what is read.
pub(crate) fn parse_xid(text: &str) -> u32 {
    unsigned(text) as u32
}

/// Reads an unsigned number as C's `strtoull` does with base 0: as far as the text is one, in hexadecimal behind `0x`, in octal behind `0`; what is below zero wraps around, what is too
/// large is the largest. A text that does not begin with one is 0.
fn unsigned(text: &str) -> u64 {
    let body = text.trim_start_matches(|c: char| c == ' ' || ('\t'..='\r').contains(&c));
    let (negative, body) = match body.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, body.strip_prefix('+').unwrap_or(body)),
    };
    let hexadecimal = body
        .strip_prefix("0x")
        .or_else(|| body.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (digits, base) = match hexadecimal {
        Some(rest) => (rest, 16),
        None if body.starts_with('0') => (body, 8),
        None => (body, 10),
    };
    let digits = digits.chars().map_while(|digit| digit.to_digit(base));
    let mut value = Some(0u64);
    for digit in digits {
        let next = value.and_then(|value| value.checked_mul(u64::from(base)));
        value = next.and_then(|value| value.checked_add(u64::from(digit)));
    }
    match value {
        Some(value) if negative => value.wrapping_neg(),
        Some(value) => value,
        None => u64::MAX,
    }
}

/// An unsigned number as the signed one that it is held as.
pub(crate) fn signed(number: u64, name: &str) -> Result<i64> {
    i64::try_from(number).map_err(|_| {
        let message = format!("value \"{number}\" is out of range for type {name}");
        SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
    })
}

/// Reads an `oid`: negative numbers of four bytes wrap around, as C's `strtoul` has them.
pub(crate) fn parse_oid(text: &str) -> Result<u32> {
    let body = trim_blanks(text);
    let digits = body.strip_prefix(['-', '+']).unwrap_or(body);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SqlError::invalid_text("oid", text));
    }
    let value = parse::<i64>(body, "oid").ok();
    match value {
        Some(value) if (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) => {
            Ok(value as u32)
        }
        _ => {
            let message = format!("value \"{text}\" is out of range for type oid");
            Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message))
        }
    }
}
