//! Sizes in bytes, read from texts with a unit, and written as such.

use super::{Arguments, Entry, invalid, strict};
use crate::error::Result;
use vellum_row::{Numeric, Value};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(3334, "pg_size_bytes", "text", "int8", size),
];

/// A number, which may be broken, and the unit behind it: bytes without one.
fn size(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    let wrong = || invalid(format!("invalid size: \"{text}\""));
    let is_space = |char: char| matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
    let text_inside = text.trim_start_matches(is_space);
    let digits_from = |from: usize| {
        let rest = text_inside[from..].bytes();
        from + rest.take_while(u8::is_ascii_digit).count()
    };
    let sign = usize::from(text_inside.starts_with(['+', '-']));
    let whole = digits_from(sign);
    let mut end = whole;
    let mut any = whole > sign;
    if text_inside[end..].starts_with('.') {
        let part = digits_from(end + 1);
        any |= part > end + 1;
        end = part;
    }
    if !any {
        return Err(wrong());
    }
    if text_inside[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text_inside[end + 1..].starts_with(['+', '-']));
        let exponent = digits_from(end + 1 + sign);
        // A letter without a number behind it is the unit's.
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    let number = Numeric::parse(&text_inside[..end])?;
    let unit = text_inside[end..].trim_matches(is_space);
    let shift = match &*unit.to_ascii_lowercase() {
        "" | "bytes" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        "tb" => 40,
        "pb" => 50,
        _ => {
            let detail = format!("Invalid size unit: \"{unit}\".");
            let hint = "Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".";
            return Err(wrong().with_detail(detail).with_hint(hint));
        }
    };
    let bytes = number.multiply(&Numeric::from(1i64 << shift))?;
    Ok(Value::Int8(bytes.to_i64()?))
}

/// `pg_size_pretty` of a number that may have digits behind the point: those of few bytes are shown.
pub(in crate::expr) fn pretty_numeric(size: &Numeric) -> Result<String> {
    let whole = size.truncate(0)?.to_string().parse::<i128>();
    Ok(match whole {
        Ok(bytes) if bytes.unsigned_abs() < 10 * 1024 => format!("{size} bytes"),
        Ok(bytes) if bytes != i128::MIN => pretty_size(bytes),
        _ if !size.is_finite() => format!("{size} PB"),
        // More than a number of bytes that anything has.
        _ => {
            let halves = size.divide_whole(&Numeric::from(1i64 << 49))?;
            let rounding: i64 = if halves.is_negative() { -1 } else { 1 };
            let rounded = halves.add(&Numeric::from(rounding))?;
            format!("{} PB", rounded.divide_whole(&Numeric::from(2i64))?)
        }
    })
}

/// `pg_size_pretty`: in units that leave fewer than five digits, rounded.
pub(in crate::expr) fn pretty_size(bytes: i128) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let (mut size, mut unit) = (bytes, 0);
    while size.abs() >= 10 * 1024 && unit + 1 < UNITS.len() {
        // Twice the number, so that halves are not lost before they are rounded.
        size = if unit == 0 { size / 512 } else { size / 1024 };
        unit += 1;
        if size.abs() < 2 * 10 * 1024 - 1 || unit + 1 == UNITS.len() {
            size = (size + size.signum()) / 2;
            break;
        }
    }
    format!("{size} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_as_postgresql_tells_them() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (10239, "10239 bytes"),
            (10240, "10 kB"),
            (10752, "11 kB"),
            (-10240, "-10 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (1 << 40, "1024 GB"),
        ] {
            assert_eq!(pretty_size(bytes), shown, "{bytes}");
        }
    }
}
