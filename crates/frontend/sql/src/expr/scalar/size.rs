//! Sizes in bytes: read from texts with a unit and written as such, and those that values have in PostgreSQL's rows.

use super::{Arguments, Entry, invalid, strict};
use crate::error::Result;
use vellum_row::{ArrayRef, Numeric, Value, ValueRef};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(3334, "pg_size_bytes", "text", "int8", size),
    strict(1269, "pg_column_size", "any", "int4", column_size),
    // The binder says what it is: a column, or of a type whose values are held as texts.
    strict(0, "%column_size", "any text", "int4", column_size),
];

/// In front of what has no fixed length, and of that in a row, where it is short enough.
const HEADER: usize = 4;
const SHORT_HEADER: usize = 1;
const SHORT_MAX: usize = 127;

fn column_size(a: &Arguments<'_>) -> Result<Value> {
    let bytes = match (a.text(1), held(a.at(0))) {
        ("name", _) => 64,
        ("char", _) => 1,
        (_, Held::Fixed(bytes)) => bytes,
        ("column", Held::Varying(bytes)) if bytes + SHORT_HEADER <= SHORT_MAX => {
            bytes + SHORT_HEADER
        }
        (_, Held::Varying(bytes)) => bytes + HEADER,
    };
    Ok(Value::Int4(i32::try_from(bytes).unwrap_or(i32::MAX)))
}

/// The bytes that PostgreSQL holds a value in, but for the header.
enum Held {
    Fixed(usize),
    Varying(usize),
}

fn held(value: ValueRef<'_>) -> Held {
    use ValueRef as V;
    match value {
        V::Null => Held::Fixed(0),
        V::Bool(_) => Held::Fixed(1),
        V::Int2(_) => Held::Fixed(2),
        V::Int4(_) | V::Float4(_) | V::Date(_) | V::Oid(_) | V::Enum(_) => Held::Fixed(4),
        V::Int8(_) | V::Float8(_) | V::Time(_) | V::Timestamp(_) | V::Timestamptz(_) => {
            Held::Fixed(8)
        }
        V::Interval(_) | V::Uuid(_) => Held::Fixed(16),
        V::Text(text) | V::Char(text) | V::Json(text) => Held::Varying(text.len()),
        V::Bytea(bytes) => Held::Varying(bytes.len()),
        V::Inet(address) | V::Cidr(address) => Held::Varying(2 + address.bytes().len()),
        V::Jsonb(json) => Held::Varying(json.bytes().len()),
        V::Numeric(number) => {
            let mut sent = Vec::new();
            number.send(&mut sent);
            // Digits in groups of four; weight, sign and scale take two bytes, or four if they are large.
            let [_, _, high, low, ..] = sent.as_slice() else {
                return Held::Varying(2);
            };
            let weight = i16::from_be_bytes([*high, *low]);
            let scale = number.to_numeric().scale();
            let short = scale <= 63 && (-64..=63).contains(&weight);
            Held::Varying(sent.len() - 8 + if short { 2 } else { 4 })
        }
        V::Array(array) => Held::Varying(array_bytes(array)),
    }
}

/// Dimensions, a bitmap of the nulls if there are some, and the elements, each at a place that its type wants.
fn array_bytes(array: ArrayRef<'_>) -> usize {
    const FIXED: usize = 16;
    if array.is_empty() {
        return FIXED - HEADER;
    }
    let mut nulls = false;
    let mut elements = 0;
    for item in array.items() {
        let (bytes, align): (usize, usize) = match held(item.as_ref()) {
            _ if item.is_null() => {
                nulls = true;
                continue;
            }
            Held::Fixed(bytes) if matches!(item, Value::Uuid(_)) => (bytes, 1),
            Held::Fixed(bytes) => (bytes, bytes.min(8)),
            Held::Varying(bytes) => (bytes + HEADER, 4),
        };
        elements = (elements + bytes).next_multiple_of(align);
    }
    let bitmap = if nulls { array.len().div_ceil(8) } else { 0 };
    let dimensions = 8 * array.dimensions().count();
    (FIXED + dimensions + bitmap).next_multiple_of(8) + elements - HEADER
}

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
