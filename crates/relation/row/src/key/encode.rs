//! Values to bytes that compare as they do.
//!
//! Layout, by type, before inversion for descending columns:
//!
//! ```text
//! boolean                      0 or 1
//! integers, date, time,
//! timestamp, timestamptz       big-endian, the sign bit inverted
//! oid                          big-endian
//! real, double precision       the bits, big-endian: of a positive number the sign bit inverted, of a negative
//!                              one all; -0 as 0, every NaN as the greatest
//! numeric(p,s), p <= 18,
//! 0 <= s <= p                  units of 10^-s as a bigint; NaN as the greatest
//! numeric                      0 -Infinity, 1 negative, 2 zero, 3 positive, 4 Infinity, 5 NaN; 1 and 3 are followed by
//!                              the weight (u16, 0x8000 added), each base-10000 digit plus 1 (u16) and 0 (u16); behind
//!                              1 all of these are inverted
//! text, varchar, name          UTF-8 and a zero byte, which text cannot hold
//! char(n)                      the same, without the blanks at the end
//! bytea                        each zero byte as 0 0xff, and 0 0 at the end
//! interval                     microseconds with months of 30 days, 12 bytes as an integer
//! uuid                         its bytes
//! inet, cidr                   a byte (4 or 6), the address without the bits behind its prefix, the prefix's length (a byte), the
//!                              address
//! an enum                      the position, as a bigint
//! jsonb                        0x01 an empty array that is the whole value; 0x10 null; 0x20 string, as text;
//!                              0x30 number, as numeric; 0x40 false, 0x41 true; 0x50 array: count (u32), elements;
//!                              0x60 object: count (u32), for each pair key as text, value
//! an array                     its elements in order, each as a column that may be null, nulls last; 0; the number of dimensions
//!                              (a byte), and of each its length and first subscript as integers
//! ```

use super::{KeyColumn, PRESENT};
use crate::error::{Result, SqlError, SqlState};
use crate::json::{JsonbKind, JsonbRef};
use crate::numeric::NumericRef;
use crate::numeric::order::Parts;
use crate::schema::fixed_scale;
use crate::strings::trim_char;
use crate::types::Type;
use crate::value::ValueRef;

pub(super) const NEG_INFINITY: u8 = 0;
pub(super) const NEGATIVE: u8 = 1;
pub(super) const ZERO: u8 = 2;
pub(super) const POSITIVE: u8 = 3;
pub(super) const INFINITY: u8 = 4;
pub(super) const NAN: u8 = 5;
pub(super) const WEIGHT_BIAS: i32 = 0x8000;

/// `NaN` in a `numeric` of fixed width.
pub(super) const NAN_UNITS: i64 = i64::MAX;

/// Bytes of an interval.
pub(super) const SPAN_BYTES: usize = 12;
/// What makes the spans of all intervals positive.
pub(super) const SPAN_BIAS: i128 = 1 << (8 * SPAN_BYTES - 1);

pub(super) const JSON_EMPTY_ARRAY: u8 = 0x01;
pub(super) const JSON_NULL: u8 = 0x10;
pub(super) const JSON_STRING: u8 = 0x20;
pub(super) const JSON_NUMBER: u8 = 0x30;
pub(super) const JSON_FALSE: u8 = 0x40;
pub(super) const JSON_TRUE: u8 = 0x41;
pub(super) const JSON_ARRAY: u8 = 0x50;
pub(super) const JSON_OBJECT: u8 = 0x60;

/// Behind the elements of an array: below what each of them begins with.
pub(super) const ITEMS_END: u8 = 0;

/// Appends a column of a key.
pub(super) fn column(column: &KeyColumn, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        if !column.nullable {
            return Err(SqlError::new(
                SqlState::INTERNAL,
                "null in a key without nulls",
            ));
        }
        out.push(column.null_byte());
        return Ok(());
    }
    if column.nullable {
        out.push(PRESENT);
    }
    let start = out.len();
    body(column, value, out)?;
    if column.descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
    Ok(())
}

fn ordered_f64(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    // Adding zero makes -0 zero.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

fn ordered_f32(value: f32) -> u32 {
    if value.is_nan() {
        return u32::MAX;
    }
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    }
}

fn put_i32(value: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&((value as u32) ^ 1 << 31).to_be_bytes());
}

fn put_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&((value as u64) ^ 1 << 63).to_be_bytes());
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    debug_assert!(!text.as_bytes().contains(&0), "text holds no zero byte");
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for run in bytes.split_inclusive(|byte| *byte == 0) {
        out.extend_from_slice(run);
        if run.ends_with(&[0]) {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cold]
fn misfit(column: &KeyColumn, value: ValueRef<'_>) -> SqlError {
    let own = value.ty().map_or("null", Type::sql_name);
    let wanted = column.ty.format(column.typmod);
    let message = format!("value of type {own} does not fit a key of type {wanted}");
    SqlError::new(SqlState::INTERNAL, message)
}

fn body(column: &KeyColumn, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
    if !value.fits(column.ty) {
        return Err(misfit(column, value));
    }
    match value {
        ValueRef::Int4(value) => put_i32(value, out),
        ValueRef::Int8(value) => put_i64(value, out),
        ValueRef::Text(text) => put_text(text, out),
        ValueRef::Bool(value) => out.push(u8::from(value)),
        ValueRef::Int2(value) => {
            out.extend_from_slice(&((value as u16) ^ 1 << 15).to_be_bytes());
        }
        ValueRef::Oid(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Float4(value) => out.extend_from_slice(&ordered_f32(value).to_be_bytes()),
        ValueRef::Float8(value) => out.extend_from_slice(&ordered_f64(value).to_be_bytes()),
        ValueRef::Char(text) => put_text(trim_char(text), out),
        ValueRef::Bytea(bytes) => put_bytes(bytes, out),
        ValueRef::Date(value) => put_i32(value.0, out),
        ValueRef::Time(value) => put_i64(value.0, out),
        ValueRef::Timestamp(value) | ValueRef::Timestamptz(value) => put_i64(value.0, out),
        ValueRef::Interval(value) => {
            let biased = (value.span() + SPAN_BIAS) as u128;
            out.extend_from_slice(&biased.to_be_bytes()[16 - SPAN_BYTES..]);
        }
        ValueRef::Uuid(value) => out.extend_from_slice(&value),
        ValueRef::Inet(value) | ValueRef::Cidr(value) => value.put_key(out),
        ValueRef::Enum(value) => put_i64(value.position, out),
        ValueRef::Numeric(number) => match fixed_scale(column.typmod) {
            None => put_number(number, out),
            Some(scale) => match number {
                NumericRef::Small {
                    coefficient,
                    scale: own,
                } if own == scale => {
                    put_i64(coefficient, out);
                }
                NumericRef::NaN => put_i64(NAN_UNITS, out),
                _ => return Err(misfit(column, value)),
            },
        },
        ValueRef::Jsonb(value) => {
            if matches!(value.kind(), Some(JsonbKind::Array(array)) if array.is_empty()) {
                out.push(JSON_EMPTY_ARRAY);
            } else {
                put_json(Some(value), out)?;
            }
        }
        ValueRef::Array(array) => {
            let element = column.ty.element();
            let element = KeyColumn::of_element(element.ok_or_else(|| misfit(column, value))?);
            for item in array.items() {
                self::column(&element, item.as_ref(), out)?;
            }
            out.push(ITEMS_END);
            out.push(array.dimension_count() as u8);
            for dimension in array.dimensions() {
                put_i32(dimension.length, out);
                put_i32(dimension.lower, out);
            }
        }
        ValueRef::Null | ValueRef::Json(_) => return Err(misfit(column, value)),
    }
    Ok(())
}

fn put_number(number: NumericRef<'_>, out: &mut Vec<u8>) {
    number.with_parts(|parts| match parts {
        Parts::NegInfinity => out.push(NEG_INFINITY),
        Parts::Infinity => out.push(INFINITY),
        Parts::NaN => out.push(NAN),
        Parts::Finite { digits: [], .. } => out.push(ZERO),
        Parts::Finite {
            negative,
            weight,
            digits,
        } => {
            out.push(if negative { NEGATIVE } else { POSITIVE });
            let start = out.len();
            out.extend_from_slice(&((weight + WEIGHT_BIAS) as u16).to_be_bytes());
            for digit in digits {
                out.extend_from_slice(&(digit + 1).to_be_bytes());
            }
            out.extend_from_slice(&[0, 0]);
            if negative {
                for byte in &mut out[start..] {
                    *byte = !*byte;
                }
            }
        }
    });
}

fn put_json(value: Option<JsonbRef<'_>>, out: &mut Vec<u8>) -> Result<()> {
    let damaged = || SqlError::damaged("jsonb value");
    match value.and_then(JsonbRef::kind).ok_or_else(damaged)? {
        JsonbKind::Null => out.push(JSON_NULL),
        JsonbKind::Bool(value) => out.push(if value { JSON_TRUE } else { JSON_FALSE }),
        JsonbKind::String(text) => {
            out.push(JSON_STRING);
            put_text(text, out);
        }
        JsonbKind::Number(number) => {
            out.push(JSON_NUMBER);
            put_number(number, out);
        }
        JsonbKind::Array(array) => {
            out.push(JSON_ARRAY);
            out.extend_from_slice(&(array.len() as u32).to_be_bytes());
            for index in 0..array.len() {
                put_json(array.get(index), out)?;
            }
        }
        JsonbKind::Object(object) => {
            out.push(JSON_OBJECT);
            out.extend_from_slice(&(object.len() as u32).to_be_bytes());
            for index in 0..object.len() {
                put_text(object.key(index).ok_or_else(damaged)?, out);
                put_json(object.value(index), out)?;
            }
        }
    }
    Ok(())
}
