//! `+ - * / %` of all types that have them.
//!
//! [`resolve`] says, once a statement, what the operands are to be cast to and what comes out; the
//! operators themselves then take what they get. Nulls are the caller's.

use crate::datetime::{Interval, Timestamp};
use crate::error::{Result, SqlError, SqlState};
use crate::float;
use crate::settings::Settings;
use crate::types::Type;
use crate::value::{Value, ValueRef};

/// An operator of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// What the operands of an operator are cast to, and the type of its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// Of the left operand.
    pub left: Type,
    /// Of the right operand.
    pub right: Type,
    /// Of the result.
    pub result: Type,
}

/// How an operator takes operands of these types, as PostgreSQL's rules find it; `None` if there is no
/// such operator (42883).
pub fn resolve(operator: Operator, left: Type, right: Type) -> Option<Resolved> {
    use Operator as O;
    use Type as T;
    let all = |ty: Type| {
        Some(Resolved {
            left: ty,
            right: ty,
            result: ty,
        })
    };
    let as_is = |result: Type| {
        Some(Resolved {
            left,
            right,
            result,
        })
    };
    let to = |left: Type, right: Type, result: Type| {
        Some(Resolved {
            left,
            right,
            result,
        })
    };
    // Oids are numbers by category only.
    let is_number = |ty: Type| ty.category() == 'N' && !ty.is_oid();
    let is_float = |ty: Type| matches!(ty, T::Float4 | T::Float8);
    match (operator, left, right) {
        (O::Modulo, left, right) if is_float(left) || is_float(right) => None,
        (_, left, right) if is_number(left) && is_number(right) => {
            if left.is_integer() && right.is_integer() {
                let wider = left.max(right);
                return if operator == O::Modulo {
                    all(wider)
                } else {
                    as_is(wider)
                };
            }
            if is_float(left) && is_float(right) {
                return as_is(if left == right { left } else { T::Float8 });
            }
            all(if is_float(left) || is_float(right) {
                T::Float8
            } else {
                T::Numeric
            })
        }
        (O::Add, T::Date, T::Int2 | T::Int4) => to(T::Date, T::Int4, T::Date),
        (O::Add, T::Int2 | T::Int4, T::Date) => to(T::Int4, T::Date, T::Date),
        (O::Subtract, T::Date, T::Int2 | T::Int4) => to(T::Date, T::Int4, T::Date),
        (O::Subtract, T::Date, T::Date) => as_is(T::Int4),
        (O::Add, T::Date, T::Time) | (O::Add, T::Time, T::Date) => as_is(T::Timestamp),
        (O::Add | O::Subtract, T::Date, T::Interval) => as_is(T::Timestamp),
        (O::Add, T::Interval, T::Date) => as_is(T::Timestamp),
        (O::Add | O::Subtract, T::Timestamp | T::Timestamptz, T::Interval) => as_is(left),
        (O::Add, T::Interval, T::Timestamp | T::Timestamptz) => as_is(right),
        (O::Subtract, T::Timestamptz, T::Timestamp | T::Timestamptz | T::Date)
        | (O::Subtract, T::Timestamp | T::Date, T::Timestamptz) => {
            to(T::Timestamptz, T::Timestamptz, T::Interval)
        }
        (O::Subtract, T::Timestamp, T::Timestamp | T::Date)
        | (O::Subtract, T::Date, T::Timestamp) => to(T::Timestamp, T::Timestamp, T::Interval),
        (O::Add | O::Subtract, T::Time, T::Interval) => as_is(T::Time),
        (O::Add, T::Interval, T::Time) => as_is(T::Time),
        (O::Subtract, T::Time, T::Time) => as_is(T::Interval),
        (O::Add | O::Subtract, T::Interval, T::Interval) => as_is(T::Interval),
        (O::Multiply | O::Divide, T::Interval, right) if is_number(right) => {
            to(T::Interval, T::Float8, T::Interval)
        }
        (O::Add | O::Subtract, left, right) if left.is_network() && right.is_integer() => {
            to(T::Inet, T::Int8, T::Inet)
        }
        (O::Add, left, right) if left.is_integer() && right.is_network() => {
            to(T::Int8, T::Inet, T::Inet)
        }
        (O::Subtract, left, right) if left.is_network() && right.is_network() => {
            to(T::Inet, T::Inet, T::Int8)
        }
        (O::Multiply, left, T::Interval) if is_number(left) => {
            to(T::Float8, T::Interval, T::Interval)
        }
        _ => None,
    }
}

/// Applies an operator to operands of the types that [`resolve`] gave.
///
/// # Errors
/// 22003 and 22008 for a result out of range, 22012 for division by zero, 42883 for operands that
/// are not of such types.
#[inline]
pub fn apply(
    operator: Operator,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    settings: &Settings,
) -> Result<Value> {
    use ValueRef as V;
    match (left, right) {
        (V::Int4(a), V::Int4(b)) => int4(operator, a, b).map(Value::Int4),
        (V::Int8(a), V::Int8(b)) => int8(operator, a, b).map(Value::Int8),
        (V::Int2(a), V::Int2(b)) => {
            let result = int4(operator, i32::from(a), i32::from(b))?;
            let result = i16::try_from(result).map_err(|_| SqlError::out_of_range("smallint"))?;
            Ok(Value::Int2(result))
        }
        (V::Int2(a), V::Int4(b)) => int4(operator, i32::from(a), b).map(Value::Int4),
        (V::Int4(a), V::Int2(b)) => int4(operator, a, i32::from(b)).map(Value::Int4),
        (V::Int2(_) | V::Int4(_), V::Int8(b)) => {
            let a = left.as_i64().ok_or_else(|| missing(left, right))?;
            int8(operator, a, b).map(Value::Int8)
        }
        (V::Int8(a), V::Int2(_) | V::Int4(_)) => {
            let b = right.as_i64().ok_or_else(|| missing(left, right))?;
            int8(operator, a, b).map(Value::Int8)
        }
        (V::Numeric(a), V::Numeric(b)) => {
            let (a, b) = (a.to_numeric(), b.to_numeric());
            Ok(Value::Numeric(match operator {
                Operator::Add => a.add(&b)?,
                Operator::Subtract => a.subtract(&b)?,
                Operator::Multiply => a.multiply(&b)?,
                Operator::Divide => a.divide(&b)?,
                Operator::Modulo => a.modulo(&b)?,
            }))
        }
        (V::Float8(a), V::Float8(b)) => float8(operator, a, b).map(Value::Float8),
        (V::Float4(a), V::Float8(b)) => float8(operator, f64::from(a), b).map(Value::Float8),
        (V::Float8(a), V::Float4(b)) => float8(operator, a, f64::from(b)).map(Value::Float8),
        (V::Float4(a), V::Float4(b)) => float4(operator, a, b).map(Value::Float4),
        (V::Inet(a), V::Int8(b)) if operator == Operator::Add => a.plus(b).map(Value::Inet),
        (V::Int8(a), V::Inet(b)) if operator == Operator::Add => b.plus(a).map(Value::Inet),
        (V::Inet(a), V::Int8(b)) if operator == Operator::Subtract => a.minus(b).map(Value::Inet),
        (V::Inet(a), V::Inet(b)) if operator == Operator::Subtract => {
            a.distance(b).map(Value::Int8)
        }
        _ => datetime(operator, left, right, settings),
    }
}

#[cold]
fn missing(left: ValueRef<'_>, right: ValueRef<'_>) -> SqlError {
    let name = |value: ValueRef<'_>| value.ty().map_or("unknown", Type::sql_name);
    let message = format!(
        "operator does not exist: {} and {}",
        name(left),
        name(right)
    );
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
}

fn int4(operator: Operator, a: i32, b: i32) -> Result<i32> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Modulo if b == 0 => return Err(SqlError::division_by_zero()),
        Operator::Divide => a.checked_div(b),
        Operator::Modulo => Some(a.wrapping_rem(b)),
    };
    result.ok_or_else(|| SqlError::out_of_range("integer"))
}

fn int8(operator: Operator, a: i64, b: i64) -> Result<i64> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Modulo if b == 0 => return Err(SqlError::division_by_zero()),
        Operator::Divide => a.checked_div(b),
        Operator::Modulo => Some(a.wrapping_rem(b)),
    };
    result.ok_or_else(|| SqlError::out_of_range("bigint"))
}

macro_rules! float_operators {
    ($name:ident, $float:ty) => {
        fn $name(operator: Operator, a: $float, b: $float) -> Result<$float> {
            let finite = !a.is_infinite() && !b.is_infinite();
            let result = match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                Operator::Divide if b == 0.0 && !a.is_nan() => {
                    return Err(SqlError::division_by_zero());
                }
                Operator::Divide => a / b,
                Operator::Modulo => {
                    let name = if size_of::<$float>() == 4 {
                        "real"
                    } else {
                        "double precision"
                    };
                    let message = format!("operator does not exist: {name} % {name}");
                    return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
                }
            };
            if result.is_infinite() && finite {
                return Err(float::overflow());
            }
            let vanished = match operator {
                Operator::Multiply => a != 0.0 && b != 0.0,
                Operator::Divide => a != 0.0 && !b.is_infinite(),
                _ => false,
            };
            if result == 0.0 && vanished {
                return Err(float::underflow());
            }
            Ok(result)
        }
    };
}

float_operators!(float4, f32);
float_operators!(float8, f64);

fn datetime(
    operator: Operator,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    settings: &Settings,
) -> Result<Value> {
    use Operator as O;
    use ValueRef as V;
    let zone = Some(&settings.time_zone);
    let signed = |interval: Interval| {
        if operator == O::Subtract {
            interval.negate()
        } else {
            Ok(interval)
        }
    };
    Ok(match (operator, left, right) {
        (O::Add, V::Date(date), V::Int4(days)) | (O::Add, V::Int4(days), V::Date(date)) => {
            Value::Date(date.add_days(i64::from(days))?)
        }
        (O::Subtract, V::Date(date), V::Int4(days)) => {
            Value::Date(date.add_days(-i64::from(days))?)
        }
        (O::Subtract, V::Date(a), V::Date(b)) => Value::Int4(a.days_since(b)?),
        (O::Add, V::Date(date), V::Time(time)) | (O::Add, V::Time(time), V::Date(date)) => {
            let midnight = date.to_timestamp()?;
            let micros = midnight
                .0
                .checked_add(time.0)
                .filter(|_| midnight.is_finite());
            Value::Timestamp(match micros {
                Some(micros) => Timestamp::checked(micros).ok_or_else(Timestamp::out_of_range)?,
                None => midnight,
            })
        }
        (O::Add | O::Subtract, V::Date(date), V::Interval(interval))
        | (O::Add, V::Interval(interval), V::Date(date)) => {
            Value::Timestamp(date.to_timestamp()?.plus(signed(interval)?, None)?)
        }
        (O::Add | O::Subtract, V::Timestamp(instant), V::Interval(interval))
        | (O::Add, V::Interval(interval), V::Timestamp(instant)) => {
            Value::Timestamp(instant.plus(signed(interval)?, None)?)
        }
        (O::Add | O::Subtract, V::Timestamptz(instant), V::Interval(interval))
        | (O::Add, V::Interval(interval), V::Timestamptz(instant)) => {
            Value::Timestamptz(instant.plus(signed(interval)?, zone)?)
        }
        (O::Subtract, V::Timestamp(a), V::Timestamp(b))
        | (O::Subtract, V::Timestamptz(a), V::Timestamptz(b)) => Value::Interval(a.since(b)?),
        (O::Add, V::Time(time), V::Interval(interval))
        | (O::Add, V::Interval(interval), V::Time(time)) => Value::Time(time.plus(interval)),
        (O::Subtract, V::Time(time), V::Interval(interval)) => {
            let micros = -(interval.micros % crate::datetime::MICROS_PER_DAY);
            Value::Time(time.plus(Interval {
                micros,
                ..Interval::default()
            }))
        }
        (O::Subtract, V::Time(a), V::Time(b)) => Value::Interval(Interval {
            micros: a.0 - b.0,
            ..Interval::default()
        }),
        (O::Add, V::Interval(a), V::Interval(b)) => Value::Interval(a.plus(b)?),
        (O::Subtract, V::Interval(a), V::Interval(b)) => Value::Interval(a.minus(b)?),
        (O::Multiply, V::Interval(interval), V::Float8(factor))
        | (O::Multiply, V::Float8(factor), V::Interval(interval)) => {
            Value::Interval(interval.multiply(factor)?)
        }
        (O::Divide, V::Interval(interval), V::Float8(divisor)) => {
            Value::Interval(interval.divide(divisor)?)
        }
        _ => return Err(missing(left, right)),
    })
}

/// `- value`.
///
/// # Errors
/// 22003 and 22008 for a result out of range, 42883 for a type that has no negative.
pub fn negate(value: ValueRef<'_>) -> Result<Value> {
    let range = |name: &str| SqlError::out_of_range(name);
    Ok(match value {
        ValueRef::Int2(value) => Value::Int2(value.checked_neg().ok_or_else(|| range("smallint"))?),
        ValueRef::Int4(value) => Value::Int4(value.checked_neg().ok_or_else(|| range("integer"))?),
        ValueRef::Int8(value) => Value::Int8(value.checked_neg().ok_or_else(|| range("bigint"))?),
        ValueRef::Float4(value) => Value::Float4(-value),
        ValueRef::Float8(value) => Value::Float8(-value),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().negate()),
        ValueRef::Interval(value) => Value::Interval(value.negate()?),
        _ => {
            let name = value.ty().map_or("unknown", Type::sql_name);
            let message = format!("operator does not exist: - {name}");
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
        }
    })
}
