//! What the views of `information_schema` are made with, of a type and its modifier. There are no domains, so that what a column's type is in truth is the type
//! of the column (`bind/call`).

use super::{Arguments, Entry, strict};
use crate::error::Result;
use vellum_row::{Type, Typmod, Value};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(13212, "_pg_char_max_length", "oid int4", "int4", char_max_length),
    strict(13213, "_pg_char_octet_length", "oid int4", "int4", char_octet_length),
    strict(13215, "_pg_numeric_precision", "oid int4", "int4", numeric_precision),
    strict(13216, "_pg_numeric_precision_radix", "oid int4", "int4", numeric_precision_radix),
    strict(13217, "_pg_numeric_scale", "oid int4", "int4", numeric_scale),
    strict(13218, "_pg_datetime_precision", "oid int4", "int4", datetime_precision),
    strict(13219, "_pg_interval_type", "oid int4", "text", interval_type),
];

/// What PostgreSQL adds to the modifiers of texts and numerics.
const HEADER: i32 = 4;
/// Bytes of a character at most.
const CHARACTER: i32 = 4;
/// Of an interval whose modifier says nothing of digits.
const ALL_DIGITS: i32 = 0xffff;

fn number(value: Option<i32>) -> Result<Value> {
    Ok(value.map_or(Value::Null, Value::Int4))
}

/// The type and the modifier.
fn given(a: &Arguments<'_>) -> (Option<Type>, i32) {
    let oid = a.at(0).as_i64().and_then(|oid| u32::try_from(oid).ok());
    (oid.and_then(Type::from_oid), a.int(1))
}

fn max_length(ty: Option<Type>, typmod: i32) -> Option<i32> {
    let has_length = matches!(ty, Some(Type::Char | Type::Varchar)) && typmod != -1;
    has_length.then(|| typmod.wrapping_sub(HEADER))
}

fn char_max_length(a: &Arguments<'_>) -> Result<Value> {
    let (ty, typmod) = given(a);
    number(max_length(ty, typmod))
}

fn char_octet_length(a: &Arguments<'_>) -> Result<Value> {
    let (ty, typmod) = given(a);
    number(match ty {
        Some(Type::Text | Type::Char | Type::Varchar) if typmod == -1 => Some(1 << 30),
        ty => max_length(ty, typmod).map(|length| length.saturating_mul(CHARACTER)),
    })
}

fn numeric_precision(a: &Arguments<'_>) -> Result<Value> {
    number(match given(a) {
        (Some(Type::Int2), _) => Some(16),
        (Some(Type::Int4), _) => Some(32),
        (Some(Type::Int8), _) => Some(64),
        (Some(Type::Float4), _) => Some(24),
        (Some(Type::Float8), _) => Some(53),
        (Some(Type::Numeric), typmod) if typmod != -1 => {
            Some(typmod.wrapping_sub(HEADER) >> 16 & 0xffff)
        }
        _ => None,
    })
}

fn numeric_precision_radix(a: &Arguments<'_>) -> Result<Value> {
    number(match given(a).0 {
        Some(Type::Int2 | Type::Int4 | Type::Int8 | Type::Float4 | Type::Float8) => Some(2),
        Some(Type::Numeric) => Some(10),
        _ => None,
    })
}

fn numeric_scale(a: &Arguments<'_>) -> Result<Value> {
    number(match given(a) {
        (Some(Type::Int2 | Type::Int4 | Type::Int8), _) => Some(0),
        (Some(Type::Numeric), typmod) if typmod != -1 => Some(typmod.wrapping_sub(HEADER) & 0xffff),
        _ => None,
    })
}

fn datetime_precision(a: &Arguments<'_>) -> Result<Value> {
    number(match given(a) {
        (Some(Type::Date), _) => Some(0),
        (Some(Type::Time | Type::Timestamp | Type::Timestamptz), typmod) => {
            Some(if typmod < 0 { 6 } else { typmod })
        }
        (Some(Type::Interval), typmod) => Some(match typmod & ALL_DIGITS {
            _ if typmod < 0 => 6,
            ALL_DIGITS => 6,
            digits => digits,
        }),
        _ => None,
    })
}

/// The fields that an interval is limited to.
fn interval_type(a: &Arguments<'_>) -> Result<Value> {
    let (Some(Type::Interval), typmod) = given(a) else {
        return Ok(Value::Null);
    };
    let shown = Type::Interval.format(Typmod(typmod));
    let fields = shown.trim_start_matches("interval");
    let fields = fields.trim_start_matches(|char: char| matches!(char, '(' | ')' | '0'..='9'));
    Ok(match fields.strip_prefix(' ') {
        Some(fields) => Value::text(fields.to_uppercase()),
        None => Value::Null,
    })
}
