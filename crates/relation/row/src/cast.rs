//! Casts: which there are, and what they do.
//!
//! Three contexts, as in `pg_cast`: an implicit cast happens anywhere, one in assignment when a value
//! enters a column, an explicit one where it is written. Every type can be assigned to text and
//! explicitly made from text, by its text form.
//!
//! A cast applies the modifier of its target. What is too long for a `varchar(n)` is an error in
//! assignment and is cut by an explicit cast.

use crate::array::ArrayRef;
use crate::datetime::{Date, Interval, MICROS_PER_DAY, Time, Timestamp};
use crate::error::{Result, SqlError, SqlState};
use crate::float;
use crate::json::{Jsonb, JsonbKind, JsonbRef};
use crate::numeric::{Numeric, NumericRef};
use crate::schema::fixed_scale;
use crate::settings::Settings;
use crate::strings;
use crate::text::{input, output};
use crate::types::{Type, Typmod};
use crate::value::{Value, ValueRef};

/// Where a cast may happen without being written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CastContext {
    /// Anywhere.
    Implicit,
    /// When a value enters a column.
    Assignment,
    /// Nowhere.
    Explicit,
}

fn is_string(ty: Type) -> bool {
    ty.category() == 'S'
}

/// The context from which on `from` can be cast to `to`; `None` if it cannot.
pub fn cast_between(from: Type, to: Type) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use Type as T;
    if from == to {
        return Some(Implicit);
    }
    if let (Some(a), Some(b)) = (from.element(), to.element()) {
        return match to {
            T::Array(_) => cast_between(a, b),
            _ => None,
        };
    }
    Some(match (from, to) {
        (T::Oid, to) if to.is_reg() => Implicit,
        (from, T::Oid) if from.is_reg() => Implicit,
        (T::Regproc, T::Regprocedure) | (T::Regprocedure, T::Regproc) => Implicit,
        (T::Int2 | T::Int4 | T::Int8, to) if to.is_reg() => Implicit,
        (from, T::Int4 | T::Int8) if from.is_reg() => Assignment,
        (T::Text | T::Varchar, T::Regclass) => Implicit,
        (T::SingleChar | T::NodeTree, T::Text) => Implicit,
        (T::Text | T::Varchar | T::Char, T::SingleChar) => Assignment,
        (T::Int2, T::Int4 | T::Int8 | T::Float4 | T::Float8 | T::Numeric | T::Oid) => Implicit,
        (T::Int4, T::Int8 | T::Float4 | T::Float8 | T::Numeric | T::Oid) => Implicit,
        (T::Int8, T::Float4 | T::Float8 | T::Numeric | T::Oid) => Implicit,
        (T::Float4, T::Float8) => Implicit,
        (T::Numeric, T::Float4 | T::Float8) => Implicit,
        (T::Int4, T::Int2) | (T::Int8, T::Int2 | T::Int4) => Assignment,
        (T::Float4 | T::Float8 | T::Numeric, T::Int2 | T::Int4 | T::Int8) => Assignment,
        (T::Float4 | T::Float8, T::Numeric) | (T::Float8, T::Float4) => Assignment,
        (T::Oid, T::Int4 | T::Int8) => Assignment,
        (T::Bool, T::Int4) | (T::Int4, T::Bool) => Explicit,
        (T::Date, T::Timestamp | T::Timestamptz) => Implicit,
        (T::Timestamp, T::Timestamptz) | (T::Time, T::Interval) => Implicit,
        (T::Timestamp, T::Date | T::Time) | (T::Interval, T::Time) => Assignment,
        (T::Timestamptz, T::Date | T::Time | T::Timestamp) => Assignment,
        (T::Json, T::Jsonb) | (T::Jsonb, T::Json) => Assignment,
        (T::Cidr, T::Inet) => Implicit,
        (T::Inet, T::Cidr) => Assignment,
        (T::Jsonb, T::Bool | T::Int2 | T::Int4 | T::Int8 | T::Float4 | T::Float8 | T::Numeric) => {
            Explicit
        }
        (T::Name, T::Varchar | T::Char) => Assignment,
        (T::Xid8, T::Xid) => Explicit,
        (from, to) if is_string(from) && is_string(to) => Implicit,
        (_, to) if is_string(to) => Assignment,
        (from, _) if is_string(from) => Explicit,
        _ => return None,
    })
}

/// Whether the value stands in a column of this type and modifier as it is, so that no cast is due.
/// May say no where a cast would change nothing.
#[inline]
pub fn is_ready(value: ValueRef<'_>, ty: Type, typmod: Typmod) -> bool {
    if !value.fits(ty) {
        return false;
    }
    if typmod.is_none() && !matches!(ty, Type::Name | Type::SingleChar) {
        return true;
    }
    match value {
        ValueRef::Null => true,
        ValueRef::Numeric(NumericRef::Small { coefficient, scale }) => {
            let limit = typmod
                .precision_scale()
                .map_or(0, |(precision, _)| precision);
            let digits = coefficient
                .unsigned_abs()
                .checked_ilog10()
                .map_or(0, |log| log as i32 + 1);
            fixed_scale(typmod) == Some(scale) && digits <= limit
        }
        ValueRef::Text(text) if ty == Type::Varchar => {
            // So many bytes have no more characters.
            typmod
                .length()
                .is_none_or(|length| text.len() <= length || text.chars().nth(length).is_none())
        }
        ValueRef::Char(text) => typmod
            .length()
            .is_none_or(|length| text.chars().count() == length),
        _ => false,
    }
}

/// The value as one of another type, or of its own with a modifier. Null stays null.
///
/// `from` is told by the value, save that it does not matter among texts.
///
/// # Errors
/// Those of PostgreSQL: 22003, 22008, 22001 for what is out of the target's range, 22P02 and 22007 for
/// text that is not of the target type; 42846 if there is no such cast.
pub fn cast(
    value: ValueRef<'_>,
    to: Type,
    typmod: Typmod,
    explicit: bool,
    settings: &Settings,
) -> Result<Value> {
    if is_ready(value, to, typmod) {
        return Ok(value.to_value());
    }
    use ValueRef as V;
    Ok(match (value, to) {
        (V::Null, _) => Value::Null,
        (V::Array(array), Type::Array(element)) => {
            Value::Array(to_array(array, element.ty(), typmod, explicit, settings)?)
        }
        (_, Type::Text | Type::Varchar | Type::Char | Type::Name | Type::SingleChar) => {
            to_string(value, to, typmod, explicit, settings)?
        }
        // The text of a char(n) is read with its blanks.
        (V::Text(text) | V::Char(text), _) => {
            let read = input(to, Typmod::NONE, text, settings)?;
            apply(read, typmod)?
        }
        (_, Type::Int2 | Type::Int4 | Type::Int8) => to_integer(value, to)?,
        // Of an `xid8`, its lower half.
        (V::Int8(number), Type::Xid) => Value::Oid(number as u32),
        (_, to) if to.is_oid() => to_integer(value, Type::Oid)?,
        (_, Type::Float4 | Type::Float8) => to_float(value, to)?,
        (_, Type::Numeric) => Value::Numeric(to_numeric(value)?.coerce(typmod)?),
        (V::Int4(value), Type::Bool) => Value::Bool(value != 0),
        (V::Jsonb(json), Type::Bool) => match json.kind() {
            Some(JsonbKind::Bool(value)) => Value::Bool(value),
            _ => return Err(no_json_cast(json, to)),
        },
        (V::Json(text), Type::Jsonb) => Value::Jsonb(Jsonb::parse(text)?),
        (V::Jsonb(json), Type::Json) => {
            let mut out = String::new();
            json.write(&mut out)?;
            Value::Json(out.into())
        }
        (V::Cidr(own), Type::Inet) => Value::Inet(own),
        (V::Inet(own), Type::Cidr) => Value::Cidr(own.network()),
        _ => match to_datetime(value, to, settings) {
            Some(result) => apply(result?, typmod)?,
            None => return Err(no_cast(value, to)),
        },
    })
}

#[cold]
fn no_cast(value: ValueRef<'_>, to: Type) -> SqlError {
    let from = value.ty().map_or("unknown", Type::sql_name);
    let message = format!("cannot cast type {from} to {}", to.sql_name());
    SqlError::new(SqlState::CANNOT_COERCE, message)
}

/// A value of its type with the modifier of a column.
fn apply(value: Value, typmod: Typmod) -> Result<Value> {
    Ok(match value {
        Value::Numeric(value) => Value::Numeric(value.coerce(typmod)?),
        Value::Time(value) => Value::Time(value.coerce(typmod)),
        Value::Timestamp(value) => Value::Timestamp(value.coerce(typmod)?),
        Value::Timestamptz(value) => Value::Timestamptz(value.coerce(typmod)?),
        Value::Interval(value) => Value::Interval(value.coerce(typmod)),
        other => other,
    })
}

fn to_array(
    array: ArrayRef<'_>,
    element: Type,
    typmod: Typmod,
    explicit: bool,
    settings: &Settings,
) -> Result<crate::array::Array> {
    array.map(element, |item| {
        cast(item.as_ref(), element, typmod, explicit, settings)
    })
}

fn to_string(
    value: ValueRef<'_>,
    to: Type,
    typmod: Typmod,
    explicit: bool,
    settings: &Settings,
) -> Result<Value> {
    let mut written = String::new();
    let text = match value {
        ValueRef::Text(text) => text,
        ValueRef::Char(text) if to == Type::Char => text,
        // The blanks at the end are no part of the value.
        ValueRef::Char(text) => strings::trim_char(text),
        ValueRef::Bool(value) if to != Type::Name => {
            if value {
                "true"
            } else {
                "false"
            }
        }
        // There is a function for that, which never leaves the prefix out.
        ValueRef::Inet(own) | ValueRef::Cidr(own)
            if matches!(to, Type::Text | Type::Varchar | Type::Char) =>
        {
            written = own.shown();
            &written
        }
        _ => {
            output(value, settings, &mut written)?;
            &written
        }
    };
    Ok(match to {
        Type::Char => Value::Char(strings::to_char(text, typmod, explicit)?),
        Type::Varchar => Value::Text(strings::to_varchar(text, typmod, explicit)?.into()),
        Type::Name => Value::Text(strings::to_name(text).into()),
        Type::SingleChar => Value::Text(strings::to_single_char(text).into()),
        _ => Value::Text(text.into()),
    })
}

#[cold]
fn no_json_cast(json: JsonbRef<'_>, to: Type) -> SqlError {
    let kind = match json.kind() {
        None | Some(JsonbKind::Null) => "null",
        Some(JsonbKind::Bool(_)) => "boolean",
        Some(JsonbKind::Number(_)) => "numeric",
        Some(JsonbKind::String(_)) => "string",
        Some(JsonbKind::Array(_)) => "array",
        Some(JsonbKind::Object(_)) => "object",
    };
    let message = format!("cannot cast jsonb {kind} to type {}", to.sql_name());
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

fn json_number(json: JsonbRef<'_>, to: Type) -> Result<Numeric> {
    match json.kind() {
        Some(JsonbKind::Number(number)) => Ok(number.to_numeric()),
        _ => Err(no_json_cast(json, to)),
    }
}

/// Rounded to a whole number, halves to the even one; `None` if it is beyond 64 bits or `NaN`.
fn whole(value: f64) -> Option<i64> {
    let rounded = value.round_ties_even();
    let limit = 9_223_372_036_854_775_808.0;
    (rounded >= -limit && rounded < limit).then_some(rounded as i64)
}

fn to_integer(value: ValueRef<'_>, to: Type) -> Result<Value> {
    use ValueRef as V;
    let out_of_range = || {
        let name = if to == Type::Oid {
            "OID"
        } else {
            to.sql_name()
        };
        SqlError::out_of_range(name)
    };
    let number = match value {
        V::Bool(value) if to == Type::Int4 => i64::from(value),
        // An integer and an oid are the same four bytes.
        V::Int4(value) if to == Type::Oid => return Ok(Value::Oid(value as u32)),
        V::Int2(value) if to == Type::Oid => return Ok(Value::Oid(i32::from(value) as u32)),
        V::Oid(value) if to == Type::Int4 => return Ok(Value::Int4(value as i32)),
        V::Int2(_) | V::Int4(_) | V::Int8(_) | V::Oid(_) => {
            value.as_i64().ok_or_else(out_of_range)?
        }
        V::Float4(value) => whole(f64::from(value)).ok_or_else(out_of_range)?,
        V::Float8(value) => whole(value).ok_or_else(out_of_range)?,
        V::Numeric(_) | V::Jsonb(_) => {
            let number = match value {
                V::Jsonb(json) => json_number(json, to)?,
                V::Numeric(number) => number.to_numeric(),
                _ => return Err(no_cast(value, to)),
            };
            return Ok(match to {
                Type::Int2 => Value::Int2(number.to_i16()?),
                Type::Int4 => Value::Int4(number.to_i32()?),
                Type::Int8 => Value::Int8(number.to_i64()?),
                _ => return Err(no_cast(value, to)),
            });
        }
        _ => return Err(no_cast(value, to)),
    };
    Ok(match to {
        Type::Int2 => Value::Int2(number.try_into().map_err(|_| out_of_range())?),
        Type::Int4 => Value::Int4(number.try_into().map_err(|_| out_of_range())?),
        Type::Int8 => Value::Int8(number),
        _ => Value::Oid(number.try_into().map_err(|_| out_of_range())?),
    })
}

fn to_float(value: ValueRef<'_>, to: Type) -> Result<Value> {
    use ValueRef as V;
    let single = to == Type::Float4;
    let from_number = |number: Numeric| -> Result<Value> {
        // By way of its text, as PostgreSQL goes, so that what is too large or too small is told.
        let text = number.to_string();
        Ok(if single {
            Value::Float4(float::parse(&text)?)
        } else {
            match number.small_f64() {
                Some(value) => Value::Float8(value),
                None => Value::Float8(float::parse(&text)?),
            }
        })
    };
    match value {
        V::Numeric(number) => from_number(number.to_numeric()),
        V::Jsonb(json) => from_number(json_number(json, to)?),
        V::Float4(value) => Ok(Value::Float8(f64::from(value))),
        V::Float8(value) => {
            let narrow = value as f32;
            if narrow.is_infinite() && !value.is_infinite() {
                return Err(float::overflow());
            }
            if narrow == 0.0 && value != 0.0 {
                return Err(float::underflow());
            }
            Ok(Value::Float4(narrow))
        }
        V::Int2(_) | V::Int4(_) | V::Int8(_) => {
            let number = value.as_i64().ok_or_else(|| no_cast(value, to))?;
            Ok(if single {
                Value::Float4(number as f32)
            } else {
                Value::Float8(number as f64)
            })
        }
        _ => Err(no_cast(value, to)),
    }
}

fn to_numeric(value: ValueRef<'_>) -> Result<Numeric> {
    use ValueRef as V;
    match value {
        V::Numeric(number) => Ok(number.to_numeric()),
        V::Int2(_) | V::Int4(_) | V::Int8(_) => {
            let number = value
                .as_i64()
                .ok_or_else(|| no_cast(value, Type::Numeric))?;
            Ok(Numeric::from(number))
        }
        V::Float4(value) => Numeric::from_f32(value),
        V::Float8(value) => Numeric::from_f64(value),
        V::Jsonb(json) => json_number(json, Type::Numeric),
        _ => Err(no_cast(value, Type::Numeric)),
    }
}

/// `None` if there is no such cast.
fn to_datetime(value: ValueRef<'_>, to: Type, settings: &Settings) -> Option<Result<Value>> {
    use ValueRef as V;
    let zone = &settings.time_zone;
    let day_of = |wall: i64| Value::Date(Date(wall.div_euclid(MICROS_PER_DAY) as i32));
    let time_of = |wall: i64| Value::Time(Time(wall.rem_euclid(MICROS_PER_DAY)));
    let date_infinity = |value: Timestamp| {
        Value::Date(if value == Timestamp::INFINITY {
            Date::INFINITY
        } else {
            Date::NEG_INFINITY
        })
    };
    Some(Ok(match (value, to) {
        (V::Date(value), Type::Timestamp) => match value.to_timestamp() {
            Ok(value) => Value::Timestamp(value),
            Err(error) => return Some(Err(error)),
        },
        (V::Date(value), Type::Timestamptz) => match value.to_instant(zone) {
            Ok(value) => Value::Timestamptz(value),
            Err(error) => return Some(Err(error)),
        },
        (V::Timestamp(value), Type::Timestamptz) => match value.to_instant(zone) {
            Ok(value) => Value::Timestamptz(value),
            Err(error) => return Some(Err(error)),
        },
        (V::Timestamptz(value), Type::Timestamp) if value.is_finite() => {
            match Timestamp::checked(zone.wall(value)) {
                Some(value) => Value::Timestamp(value),
                None => return Some(Err(Timestamp::out_of_range())),
            }
        }
        (V::Timestamptz(value), Type::Timestamp) => Value::Timestamp(value),
        (V::Timestamp(value) | V::Timestamptz(value), Type::Date) if !value.is_finite() => {
            date_infinity(value)
        }
        (V::Timestamp(value), Type::Date) => day_of(value.0),
        (V::Timestamptz(value), Type::Date) => day_of(zone.wall(value)),
        // An infinity has no time of day.
        (V::Timestamp(value) | V::Timestamptz(value), Type::Time) if !value.is_finite() => {
            Value::Null
        }
        (V::Timestamp(value), Type::Time) => time_of(value.0),
        (V::Timestamptz(value), Type::Time) => time_of(zone.wall(value)),
        (V::Interval(value), Type::Time) => time_of(value.micros),
        (V::Time(value), Type::Interval) => Value::Interval(Interval {
            months: 0,
            days: 0,
            micros: value.0,
        }),
        (V::Time(value), Type::Time) => Value::Time(value),
        (V::Timestamp(value), Type::Timestamp) => Value::Timestamp(value),
        (V::Timestamptz(value), Type::Timestamptz) => Value::Timestamptz(value),
        (V::Interval(value), Type::Interval) => Value::Interval(value),
        _ => return None,
    }))
}
