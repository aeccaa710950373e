//! Keys: bytes whose order is that of the columns' values.
//!
//! Layout, for each column: a byte, 1 for a value, 0 or 2 for null (first or last); then the value. Integers and times are
//! big-endian with the sign turned; floats likewise by their order (`NaN` last, both zeros one); text and bytes end with `0 0`, a zero
//! byte inside is `0 255`; blanks at the end of char(n) are left out. A numeric is its sign, its weight and its digits. The bytes
//! of a descending column's value are inverted.
//!
//! Invariants:
//! - K1 No value's bytes are the beginning of another's of the same column: a key with a prefix has those values.

use super::as_type;
use crate::error::{Result, SqlError};
use std::ops::Range;
use vellum_row::{NumericRef, Settings, Type, Value, ValueRef};

/// A column of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub ty: Type,
    pub descending: bool,
    pub nulls_first: bool,
}

/// Makes keys.
#[derive(Clone, Debug)]
pub(crate) struct Codec {
    parts: Vec<Part>,
}

const VALUE: u8 = 1;
const NULL_FIRST: u8 = 0;
const NULL_LAST: u8 = 2;

impl Codec {
    pub fn new(parts: Vec<Part>) -> Self {
        Self { parts }
    }

    /// Appends the value of a column.
    ///
    /// # Errors
    /// `XX000` for a value of another type.
    pub fn put(&self, column: usize, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        let part = self.parts[column];
        if value.is_null() {
            out.push(if part.nulls_first {
                NULL_FIRST
            } else {
                NULL_LAST
            });
            return Ok(());
        }
        let value = as_type(value, part.ty).filter(|value| value.fits(part.ty));
        let value = value.ok_or_else(|| SqlError::internal("a key of another type"))?;
        out.push(VALUE);
        let start = out.len();
        put_value(value, out);
        if part.descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(())
    }

    /// The keys that begin with `prefix` and have column `column` inside the bounds (each a value, and whether it is inside itself):
    /// from the first to before the second (`None`: to the end). `None` if there are none.
    pub fn range(
        &self,
        column: usize,
        prefix: &[u8],
        lower: Option<&(Value, bool)>,
        upper: Option<&(Value, bool)>,
        ty: Type,
    ) -> Result<Option<(Vec<u8>, Option<Vec<u8>>)>> {
        let part = self.parts[column];
        let at = |byte: u8| {
            let mut key = prefix.to_vec();
            key.push(byte);
            key
        };
        let (mut start, mut end) = (at(VALUE), Some(at(VALUE + 1)));
        for (bound, is_lower) in [(lower, true), (upper, false)] {
            let Some((value, inside)) = bound else {
                continue;
            };
            if value.is_null() {
                return Ok(None);
            }
            let Some(value) = as_type(value.as_ref(), ty) else {
                // Beyond every value of the column.
                let above = value.as_ref().as_i64().is_some_and(|number| number > 0);
                if above == is_lower {
                    return Ok(None);
                }
                continue;
            };
            let mut key = prefix.to_vec();
            self.put(column, value, &mut key)?;
            let starts = is_lower != part.descending;
            match (starts, *inside) {
                (true, true) => start = key,
                (true, false) => match prefix_end(&key) {
                    Some(behind) => start = behind,
                    None => return Ok(None),
                },
                (false, true) => end = prefix_end(&key),
                (false, false) => end = Some(key),
            }
        }
        if end.as_ref().is_some_and(|end| *end <= start) {
            return Ok(None);
        }
        Ok(Some((start, end)))
    }
}

/// The first key behind all that begin with `prefix`.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

/// Bytes that are the same for rows that are not distinct.
pub(crate) fn group<'v>(values: impl Iterator<Item = ValueRef<'v>>, out: &mut Vec<u8>) {
    for value in values {
        if value.is_null() {
            out.push(NULL_LAST);
        } else {
            out.push(VALUE);
            put_value(value, out);
        }
    }
}

fn put_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => {}
        ValueRef::Bool(value) => out.push(u8::from(value)),
        ValueRef::Int2(value) => out.extend_from_slice(&((value as u16) ^ (1 << 15)).to_be_bytes()),
        ValueRef::Int4(value) => put_i32(value, out),
        ValueRef::Int8(value) => put_i64(value, out),
        ValueRef::Oid(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Float4(value) => put_float(f64::from(value), out),
        ValueRef::Float8(value) => put_float(value, out),
        ValueRef::Numeric(value) => put_numeric(value, out),
        ValueRef::Text(text) => put_bytes(text.as_bytes(), out),
        ValueRef::Char(text) => put_bytes(text.trim_end_matches(' ').as_bytes(), out),
        ValueRef::Bytea(bytes) => put_bytes(bytes, out),
        ValueRef::Date(date) => put_i32(date.0, out),
        ValueRef::Time(time) => put_i64(time.0, out),
        ValueRef::Timestamp(moment) | ValueRef::Timestamptz(moment) => put_i64(moment.0, out),
        ValueRef::Interval(interval) => {
            let turned = (interval.span() as u128) ^ (1 << 127);
            out.extend_from_slice(&turned.to_be_bytes());
        }
        ValueRef::Uuid(bytes) => out.extend_from_slice(&bytes),
        ValueRef::Json(text) => put_bytes(text.as_bytes(), out),
        // Grouped only, and equal ones are written alike.
        ValueRef::Jsonb(_) => {
            let mut text = String::new();
            vellum_row::output(value, &Settings::default(), &mut text);
            put_bytes(text.as_bytes(), out);
        }
    }
}

fn put_i32(value: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&((value as u32) ^ (1 << 31)).to_be_bytes());
}

fn put_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&((value as u64) ^ (1 << 63)).to_be_bytes());
}

fn put_float(value: f64, out: &mut Vec<u8>) {
    let value = if value == 0.0 { 0.0 } else { value };
    let bits = if value.is_nan() {
        f64::NAN.to_bits() & !(1 << 63)
    } else {
        value.to_bits()
    };
    let turned = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    out.extend_from_slice(&turned.to_be_bytes());
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(u8::MAX);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn put_numeric(value: NumericRef<'_>, out: &mut Vec<u8>) {
    match value {
        NumericRef::NegInfinity => return out.push(0),
        NumericRef::Infinity => return out.push(4),
        NumericRef::NaN => return out.push(5),
        _ => {}
    }
    let mut text = String::new();
    value.write(&mut text);
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let (weight, digits) = if whole.is_empty() {
        let zeros = fraction.len() - fraction.trim_start_matches('0').len();
        (-(zeros as i32), fraction[zeros..].to_owned())
    } else {
        (whole.len() as i32, format!("{whole}{fraction}"))
    };
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return out.push(2);
    }
    out.push(if negative { 1 } else { 3 });
    let magnitude: Range<usize> = out.len()..{
        put_i32(weight, out);
        out.extend_from_slice(digits.as_bytes());
        out.push(0);
        out.len()
    };
    if negative {
        out[magnitude].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use std::cmp::Ordering;
    use vellum_row::{Typmod, compare, input};

    fn values(ty: Type, texts: &[&str]) -> Vec<Value> {
        let settings = Settings::default();
        texts
            .iter()
            .map(|text| input(ty, Typmod::NONE, text, &settings).unwrap())
            .collect()
    }

    #[test]
    fn order_of_bytes_is_order_of_values() {
        let sets: [(Type, &[&str]); 7] = [
            (Type::Int4, &["-2147483648", "-1", "0", "1", "2147483647"]),
            (Type::Int8, &["-9223372036854775808", "-1", "0", "300"]),
            (
                Type::Numeric,
                &[
                    "-Infinity",
                    "-100.5",
                    "-100",
                    "-99",
                    "-0.001",
                    "0",
                    "0.0001",
                    "0.001",
                    "0.1",
                    "0.11",
                    "1",
                    "1.00",
                    "9",
                    "10",
                    "99",
                    "100",
                    "12345678901234567890123",
                    "NaN",
                ],
            ),
            (
                Type::Float8,
                &[
                    "-Infinity",
                    "-1.5",
                    "-0",
                    "0",
                    "1e-300",
                    "2",
                    "Infinity",
                    "NaN",
                ],
            ),
            (Type::Text, &["", "a", "a b", "ab", "b", "ä"]),
            (
                Type::Date,
                &["-infinity", "1999-12-31", "2000-01-01", "infinity"],
            ),
            (
                Type::Interval,
                &["-1 day", "0", "23:59:59", "1 day", "1 mon", "1 year"],
            ),
        ];
        for (ty, texts) in sets {
            let all = values(ty, texts);
            for descending in [false, true] {
                let part = Part {
                    ty,
                    descending,
                    nulls_first: false,
                };
                let codec = Codec::new(vec![part]);
                for a in &all {
                    for b in &all {
                        let key = |value: &Value| {
                            let mut key = Vec::new();
                            codec.put(0, value.as_ref(), &mut key).unwrap();
                            key
                        };
                        let expected = compare(a.as_ref(), b.as_ref());
                        let expected = if descending {
                            expected.reverse()
                        } else {
                            expected
                        };
                        assert_eq!(key(a).cmp(&key(b)), expected, "{a:?} {b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn bounds_are_ranges_of_keys_both_ways() {
        for descending in [false, true] {
            let part = Part {
                ty: Type::Int4,
                descending,
                nulls_first: descending,
            };
            let codec = Codec::new(vec![part]);
            for lower in 0..6i64 {
                for upper in 0..6i64 {
                    for (low_in, high_in) in [(true, true), (false, true), (true, false)] {
                        let low = (Value::Int8(lower), low_in);
                        let high = (Value::Int8(upper), high_in);
                        let range = codec
                            .range(0, b"p", Some(&low), Some(&high), Type::Int4)
                            .unwrap();
                        for number in 0..6i64 {
                            let mut key = b"p".to_vec();
                            codec.put(0, ValueRef::Int8(number), &mut key).unwrap();
                            key.extend_from_slice(b"the row's key");
                            let inside = range.as_ref().is_some_and(|(start, end)| {
                                *start <= key && end.as_ref().is_none_or(|end| key < *end)
                            });
                            let above = number.cmp(&lower);
                            let below = number.cmp(&upper);
                            let expected = (above == Ordering::Greater || low_in && above.is_eq())
                                && (below == Ordering::Less || high_in && below.is_eq());
                            assert_eq!(inside, expected, "{number} in {lower}..{upper}");
                        }
                    }
                }
            }
            let beyond = (Value::Int8(i64::MAX), true);
            let none = codec
                .range(0, b"", Some(&beyond), None, Type::Int4)
                .unwrap();
            assert!(none.is_none());
            let all = codec
                .range(0, b"", None, Some(&beyond), Type::Int4)
                .unwrap();
            assert!(all.is_some());
        }
    }
}
