//! Casts.

use super::{as_type, input, output};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum_row::datetime::{Date, MICROS_PER_DAY, Timestamp};
use vellum_row::{Numeric, Settings, Type, Typmod, Value, ValueRef};

/// Where a cast may be made without being asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CastContext {
    /// Everywhere.
    Implicit,
    /// Into columns.
    Assignment,
    /// Nowhere.
    Explicit,
}

/// The cast from one type to another; `None` if there is none.
pub(crate) fn cast_between(from: Type, to: Type) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use Type as T;
    if from == to {
        return Some(Implicit);
    }
    let is_text = |ty: Type| ty.category() == 'S';
    let rank = |ty: Type| match ty {
        T::Int2 => 1,
        T::Int4 => 2,
        T::Int8 => 3,
        T::Numeric => 4,
        T::Float4 => 5,
        T::Float8 => 6,
        _ => 0,
    };
    Some(match (from, to) {
        (from, to) if is_text(from) && is_text(to) => Implicit,
        (from, to) if rank(from) > 0 && rank(to) > 0 => {
            if rank(from) < rank(to) {
                Implicit
            } else {
                Assignment
            }
        }
        (T::Int2 | T::Int4 | T::Int8, T::Oid) => Implicit,
        (T::Oid, T::Int4 | T::Int8) => Assignment,
        (T::Date, T::Timestamp | T::Timestamptz) => Implicit,
        (T::Timestamp, T::Timestamptz) => Implicit,
        (T::Time, T::Interval) => Implicit,
        (T::Timestamptz, T::Timestamp | T::Date | T::Time) => Assignment,
        (T::Timestamp, T::Date | T::Time) => Assignment,
        (T::Interval, T::Time) => Assignment,
        (T::Json, T::Jsonb) | (T::Jsonb, T::Json) => Assignment,
        (T::Bool, T::Int4) | (T::Int4, T::Bool) => Explicit,
        (T::Jsonb, T::Bool | T::Int2 | T::Int4 | T::Int8 | T::Numeric | T::Float4 | T::Float8) => {
            Explicit
        }
        // By way of text.
        (_, to) if is_text(to) => Assignment,
        (from, _) if is_text(from) => Explicit,
        _ => return None,
    })
}

/// A value as one of another type, with its modifier applied.
///
/// # Errors
/// `22003`, `22P02`, `22001` and their like.
pub(crate) fn cast(
    value: ValueRef<'_>,
    ty: Type,
    typmod: Typmod,
    explicit: bool,
    settings: &Settings,
) -> Result<Value> {
    use ValueRef as V;
    if value.is_null() {
        return Ok(Value::Null);
    }
    if value.fits(ty) && typmod.is_none() {
        return Ok(value.to_value());
    }
    match (value, ty) {
        (
            V::Int2(_) | V::Int4(_) | V::Int8(_) | V::Oid(_),
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid,
        ) => {
            let fitting = as_type(value, ty).ok_or_else(|| out_of_range(ty))?;
            Ok(fitting.to_value())
        }
        (V::Int2(_) | V::Int4(_) | V::Int8(_), Type::Numeric) => {
            let number = value.as_i64().unwrap_or(0);
            Ok(Value::Numeric(Numeric::from(number).coerce(typmod)?))
        }
        (V::Int2(_) | V::Int4(_) | V::Int8(_), Type::Float8) => {
            Ok(Value::Float8(value.as_i64().unwrap_or(0) as f64))
        }
        (V::Int2(_) | V::Int4(_) | V::Int8(_), Type::Float4) => {
            Ok(Value::Float4(value.as_i64().unwrap_or(0) as f32))
        }
        (V::Float4(number), Type::Float8) => Ok(Value::Float8(f64::from(number))),
        (V::Float8(number), Type::Float4) => {
            let narrow = number as f32;
            if narrow.is_infinite() && !number.is_infinite() {
                return Err(out_of_range(ty));
            }
            Ok(Value::Float4(narrow))
        }
        (V::Float4(_) | V::Float8(_), Type::Int2 | Type::Int4 | Type::Int8) => {
            let number = match value {
                V::Float4(number) => f64::from(number),
                V::Float8(number) => number,
                _ => 0.0,
            };
            whole(number.round_ties_even(), ty)
        }
        (V::Float4(number), Type::Numeric) => {
            Ok(Value::Numeric(Numeric::from_f32(number)?.coerce(typmod)?))
        }
        (V::Float8(number), Type::Numeric) => {
            Ok(Value::Numeric(Numeric::from_f64(number)?.coerce(typmod)?))
        }
        (V::Numeric(number), Type::Numeric) => {
            Ok(Value::Numeric(number.to_numeric().coerce(typmod)?))
        }
        (V::Numeric(number), _) if ty.category() == 'N' && ty != Type::Oid => {
            let number = number.to_numeric();
            Ok(match ty {
                Type::Int2 => Value::Int2(number.to_i16()?),
                Type::Int4 => Value::Int4(number.to_i32()?),
                Type::Int8 => Value::Int8(number.to_i64()?),
                Type::Float4 => Value::Float4(number.to_f32()),
                _ => Value::Float8(number.to_f64()),
            })
        }
        (V::Bool(value), Type::Int4) => Ok(Value::Int4(i32::from(value))),
        (V::Int4(value), Type::Bool) => Ok(Value::Bool(value != 0)),
        (V::Date(date), Type::Timestamp) => Ok(Value::Timestamp(midnight(date)?)),
        (V::Timestamp(timestamp), Type::Date) if timestamp.is_finite() => {
            let days = timestamp.0.div_euclid(MICROS_PER_DAY);
            let days = i32::try_from(days).map_err(|_| out_of_range(ty))?;
            Ok(Value::Date(Date(days)))
        }
        (V::Timestamptz(timestamp), Type::Timestamp) if timestamp.is_finite() => {
            let wall = settings.time_zone.wall(timestamp);
            Ok(Value::Timestamp(Timestamp(wall).coerce(typmod)?))
        }
        (V::Timestamp(timestamp), Type::Timestamptz) if timestamp.is_finite() => {
            let instant = settings.time_zone.instant(timestamp.0);
            let instant = instant.ok_or_else(|| out_of_range(ty))?;
            Ok(Value::Timestamptz(Timestamp(instant).coerce(typmod)?))
        }
        _ => {
            let mut text = String::new();
            output(value, settings, &mut text);
            if explicit
                && let Some(length) = typmod.length()
                && matches!(ty, Type::Varchar | Type::Char)
                && let Some((end, _)) = text.char_indices().nth(length)
            {
                text.truncate(end);
            }
            if let ValueRef::Char(_) = value
                && ty.is_plain_text()
            {
                // Blanks of char(n) do not count.
                text.truncate(text.trim_end_matches(' ').len());
            }
            Ok(input(ty, typmod, &text, settings)?)
        }
    }
}

fn midnight(date: Date) -> Result<Timestamp> {
    Ok(match date {
        Date::INFINITY => Timestamp::INFINITY,
        Date::NEG_INFINITY => Timestamp::NEG_INFINITY,
        Date(days) => {
            let micros = i64::from(days).checked_mul(MICROS_PER_DAY);
            Timestamp(micros.ok_or_else(|| {
                let text = "date out of range for timestamp";
                SqlError::new(sqlstate::DATETIME_FIELD_OVERFLOW, text)
            })?)
        }
    })
}

/// A float without fraction as an integer.
fn whole(number: f64, ty: Type) -> Result<Value> {
    // The bounds are exact as floats; i64::MAX is not, but its successor is.
    let fits = |low: f64, beyond: f64| number >= low && number < beyond;
    Ok(match ty {
        Type::Int2 if fits(-32_768.0, 32_768.0) => Value::Int2(number as i16),
        Type::Int4 if fits(-2_147_483_648.0, 2_147_483_648.0) => Value::Int4(number as i32),
        Type::Int8 if fits(-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0) => {
            Value::Int8(number as i64)
        }
        _ => return Err(out_of_range(ty)),
    })
}

#[cold]
pub(super) fn out_of_range(ty: Type) -> SqlError {
    vellum_row::SqlError::out_of_range(ty.sql_name()).into()
}
