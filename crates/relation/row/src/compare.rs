//! The order of values of one type, and a hash that agrees with its equality.
//!
//! - Text is ordered by its bytes (the collation `C`), which for UTF-8 is the order of code points.
//! - `NaN` equals itself and is above all numbers; -0 equals 0.
//! - The blanks at the end of a `char(n)` do not count.
//! - Intervals are compared with months of 30 days of 24 hours: `1 mon` = `30 days`.
//!
//! Null has no order in SQL; here it is above everything, as `NULLS LAST` sorts it.

use crate::strings::trim_char;
use crate::value::ValueRef;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

fn compare_floats(a: f64, b: f64) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) => order,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}

/// A float whose bits are the same for equal ones.
fn canonical(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else if value == 0.0 {
        0
    } else {
        value.to_bits()
    }
}

/// The order of two values of one type. Integers of different width, and `real` with `double
/// precision`, and `inet` with `cidr`, may be mixed; other mixtures, and `json`, have no order that means anything.
#[inline]
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    use ValueRef as V;
    match (a, b) {
        (V::Int4(a), V::Int4(b)) => a.cmp(&b),
        (V::Int8(a), V::Int8(b)) => a.cmp(&b),
        (V::Text(a), V::Text(b)) => a.cmp(b),
        (V::Null, V::Null) => Ordering::Equal,
        (V::Null, _) => Ordering::Greater,
        (_, V::Null) => Ordering::Less,
        (V::Bool(a), V::Bool(b)) => a.cmp(&b),
        (V::Float4(a), V::Float4(b)) => compare_floats(f64::from(a), f64::from(b)),
        (V::Float8(a), V::Float8(b)) => compare_floats(a, b),
        (V::Float4(a), V::Float8(b)) => compare_floats(f64::from(a), b),
        (V::Float8(a), V::Float4(b)) => compare_floats(a, f64::from(b)),
        (V::Numeric(a), V::Numeric(b)) => a.compare(b),
        (V::Char(a), V::Char(b)) => trim_char(a).cmp(trim_char(b)),
        (V::Bytea(a), V::Bytea(b)) => a.cmp(b),
        (V::Date(a), V::Date(b)) => a.cmp(&b),
        (V::Time(a), V::Time(b)) => a.cmp(&b),
        (V::Timestamp(a), V::Timestamp(b)) | (V::Timestamptz(a), V::Timestamptz(b)) => a.cmp(&b),
        (V::Interval(a), V::Interval(b)) => a.span().cmp(&b.span()),
        (V::Uuid(a), V::Uuid(b)) => a.cmp(&b),
        // A network is compared with an address as one.
        (V::Inet(a) | V::Cidr(a), V::Inet(b) | V::Cidr(b)) => a.cmp(&b),
        // Of one enum.
        (V::Enum(a), V::Enum(b)) => a.position.cmp(&b.position),
        (V::Jsonb(a), V::Jsonb(b)) => a.compare(b),
        // For nobody who asks for an order: rows of one group have the same text.
        (V::Json(a), V::Json(b)) => a.cmp(b),
        (V::Array(a), V::Array(b)) => a.compare(b),
        _ => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => {
                debug_assert!(false, "values of different types: {a:?} and {b:?}");
                a.ty().cmp(&b.ty())
            }
        },
    }
}

/// Feeds a value to a hasher: equal values of one type (integers of any width, floats of any) feed
/// the same.
pub fn hash<H: Hasher>(value: ValueRef<'_>, state: &mut H) {
    match value {
        ValueRef::Null => state.write_u8(0),
        ValueRef::Bool(value) => state.write_u8(u8::from(value)),
        ValueRef::Int2(value) => state.write_i64(i64::from(value)),
        ValueRef::Int4(value) => state.write_i64(i64::from(value)),
        ValueRef::Int8(value) => state.write_i64(value),
        ValueRef::Oid(value) => state.write_i64(i64::from(value)),
        ValueRef::Float4(value) => state.write_u64(canonical(f64::from(value))),
        ValueRef::Float8(value) => state.write_u64(canonical(value)),
        ValueRef::Numeric(value) => value.feed(state),
        ValueRef::Text(value) | ValueRef::Json(value) => value.hash(state),
        ValueRef::Char(value) => trim_char(value).hash(state),
        ValueRef::Bytea(value) => value.hash(state),
        ValueRef::Date(value) => value.hash(state),
        ValueRef::Time(value) => value.hash(state),
        ValueRef::Timestamp(value) | ValueRef::Timestamptz(value) => value.hash(state),
        ValueRef::Interval(value) => state.write_i128(value.span()),
        ValueRef::Uuid(value) => state.write(&value),
        ValueRef::Inet(value) | ValueRef::Cidr(value) => value.hash(state),
        ValueRef::Enum(value) => state.write_i64(value.position),
        ValueRef::Jsonb(value) => value.feed(state),
        ValueRef::Array(value) => value.feed(state),
    }
}
