//! Arithmetic of numbers, dates and times.

use super::cast::{cast, out_of_range};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum_row::datetime::{Date, Interval, MICROS_PER_DAY, Timestamp};
use vellum_row::{Settings, Type, Typmod, Value, ValueRef};

/// An arithmetic operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// The type of `left operator right`; `None` if there is no such operator.
pub(crate) fn result_type(operator: Operator, left: Type, right: Type) -> Option<Type> {
    use Operator as O;
    use Type as T;
    let rank = |ty: Type| match ty {
        T::Int2 => 1,
        T::Int4 => 2,
        T::Int8 => 3,
        T::Numeric => 4,
        T::Float4 => 5,
        T::Float8 => 6,
        _ => 0,
    };
    if rank(left) > 0 && rank(right) > 0 {
        let wider = if rank(left) > rank(right) {
            left
        } else {
            right
        };
        let result = match wider {
            T::Float4 if left != right => T::Float8,
            wider => wider,
        };
        let modulo = operator == O::Modulo && rank(result) > 4;
        return (!modulo).then_some(result);
    }
    Some(match (operator, left, right) {
        (O::Add | O::Subtract, T::Date, T::Int2 | T::Int4) => T::Date,
        (O::Add, T::Int2 | T::Int4, T::Date) => T::Date,
        (O::Subtract, T::Date, T::Date) => T::Int4,
        (O::Add | O::Subtract, T::Date | T::Timestamp, T::Interval) => T::Timestamp,
        (O::Add, T::Interval, T::Date | T::Timestamp) => T::Timestamp,
        (O::Add | O::Subtract, T::Timestamptz, T::Interval) => T::Timestamptz,
        (O::Add, T::Interval, T::Timestamptz) => T::Timestamptz,
        (O::Subtract, T::Timestamp, T::Timestamp) => T::Interval,
        (O::Subtract, T::Timestamptz, T::Timestamptz) => T::Interval,
        (O::Add | O::Subtract, T::Interval, T::Interval) => T::Interval,
        _ => return None,
    })
}

/// Computes.
///
/// # Errors
/// `22003`, `22012`, `22008`.
pub(crate) fn arithmetic(
    operator: Operator,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    settings: &Settings,
) -> Result<Value> {
    use ValueRef as V;
    match (left, right) {
        (V::Int2(a), V::Int2(b)) => {
            let (a, b) = (i64::from(a), i64::from(b));
            let result = integer(operator, a, b, Type::Int2)?;
            let result = i16::try_from(result).map_err(|_| out_of_range(Type::Int2))?;
            Ok(Value::Int2(result))
        }
        (V::Int2(_) | V::Int4(_), V::Int2(_) | V::Int4(_)) => {
            let (a, b) = (left.as_i64().unwrap_or(0), right.as_i64().unwrap_or(0));
            let result = integer(operator, a, b, Type::Int4)?;
            let result = i32::try_from(result).map_err(|_| out_of_range(Type::Int4))?;
            Ok(Value::Int4(result))
        }
        (V::Int2(_) | V::Int4(_) | V::Int8(_), V::Int2(_) | V::Int4(_) | V::Int8(_)) => {
            let (a, b) = (left.as_i64().unwrap_or(0), right.as_i64().unwrap_or(0));
            Ok(Value::Int8(integer(operator, a, b, Type::Int8)?))
        }
        (V::Date(_) | V::Timestamp(_) | V::Timestamptz(_) | V::Interval(_), _)
        | (_, V::Date(_) | V::Timestamp(_) | V::Timestamptz(_) | V::Interval(_)) => {
            moment(operator, left, right, settings)
        }
        _ => numbers(operator, left, right, settings),
    }
}

fn integer(operator: Operator, a: i64, b: i64, ty: Type) -> Result<i64> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Modulo if b == 0 => return Err(by_zero()),
        Operator::Divide => a.checked_div(b),
        // The smallest number modulo -1 is 0, which the machine cannot compute.
        Operator::Modulo => Some(a.checked_rem(b).unwrap_or(0)),
    };
    result.ok_or_else(|| out_of_range(ty))
}

fn numbers(
    operator: Operator,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    settings: &Settings,
) -> Result<Value> {
    let types = left.ty().zip(right.ty());
    let ty = types.and_then(|(left, right)| result_type(operator, left, right));
    let ty = ty.ok_or_else(|| SqlError::internal("an operator without type"))?;
    let side = |value: ValueRef<'_>| cast(value, ty, Typmod::NONE, true, settings);
    match (side(left)?, side(right)?) {
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(match operator {
            Operator::Add => a.add(&b)?,
            Operator::Subtract => a.subtract(&b)?,
            Operator::Multiply => a.multiply(&b)?,
            Operator::Divide => a.divide(&b)?,
            Operator::Modulo => a.modulo(&b)?,
        })),
        (Value::Float8(a), Value::Float8(b)) => Ok(Value::Float8(float(operator, a, b)?)),
        (Value::Float4(a), Value::Float4(b)) => {
            let (a, b) = (f64::from(a), f64::from(b));
            let result = float(operator, a, b)? as f32;
            if result.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(overflow("overflow"));
            }
            Ok(Value::Float4(result))
        }
        _ => Err(SqlError::internal("an operator of other types")),
    }
}

fn float(operator: Operator, a: f64, b: f64) -> Result<f64> {
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide if b == 0.0 && !a.is_nan() => return Err(by_zero()),
        Operator::Divide => a / b,
        Operator::Modulo => return Err(SqlError::internal("modulo of floats")),
    };
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(overflow("overflow"));
    }
    let product = matches!(operator, Operator::Multiply | Operator::Divide);
    if product && result == 0.0 && a != 0.0 && b.is_finite() && b != 0.0 {
        return Err(overflow("underflow"));
    }
    Ok(result)
}

fn moment(
    operator: Operator,
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    settings: &Settings,
) -> Result<Value> {
    use ValueRef as V;
    let overflow = || {
        let state = sqlstate::DATETIME_FIELD_OVERFLOW;
        SqlError::new(state, "timestamp out of range")
    };
    let signed = |interval: Interval| match operator {
        Operator::Subtract => opposite(interval),
        _ => Some(interval),
    };
    Ok(match (left, right) {
        (V::Date(date), days @ (V::Int2(_) | V::Int4(_)))
        | (days @ (V::Int2(_) | V::Int4(_)), V::Date(date)) => {
            let days = days.as_i64().unwrap_or(0);
            let days = if operator == Operator::Subtract {
                -days
            } else {
                days
            };
            let moved = i64::from(date.0) + days;
            let moved = i32::try_from(moved).ok().filter(|_| date.is_finite());
            Value::Date(moved.map(Date).ok_or_else(|| {
                SqlError::new(sqlstate::DATETIME_FIELD_OVERFLOW, "date out of range")
            })?)
        }
        (V::Date(a), V::Date(b)) => {
            let days = i64::from(a.0) - i64::from(b.0);
            Value::Int4(i32::try_from(days).map_err(|_| out_of_range(Type::Int4))?)
        }
        (V::Timestamp(a), V::Timestamp(b)) | (V::Timestamptz(a), V::Timestamptz(b)) => {
            let micros = a.0.checked_sub(b.0).ok_or_else(overflow)?;
            Value::Interval(Interval {
                months: 0,
                days: i32::try_from(micros / MICROS_PER_DAY).map_err(|_| overflow())?,
                micros: micros % MICROS_PER_DAY,
            })
        }
        (V::Interval(a), V::Interval(b)) => {
            let b = signed(b).ok_or_else(overflow)?;
            let sum = || {
                Some(Interval {
                    months: a.months.checked_add(b.months)?,
                    days: a.days.checked_add(b.days)?,
                    micros: a.micros.checked_add(b.micros)?,
                })
            };
            Value::Interval(sum().ok_or_else(|| {
                SqlError::new(sqlstate::DATETIME_FIELD_OVERFLOW, "interval out of range")
            })?)
        }
        (V::Date(_), V::Interval(interval)) | (V::Interval(interval), V::Date(_)) => {
            let date = if matches!(left, V::Date(_)) {
                left
            } else {
                right
            };
            let start = cast(date, Type::Timestamp, Typmod::NONE, true, settings)?;
            let Value::Timestamp(start) = start else {
                return Err(overflow());
            };
            let interval = signed(interval).ok_or_else(overflow)?;
            Value::Timestamp(shifted(start, interval).ok_or_else(overflow)?)
        }
        (V::Timestamp(start), V::Interval(interval))
        | (V::Interval(interval), V::Timestamp(start)) => {
            let interval = signed(interval).ok_or_else(overflow)?;
            Value::Timestamp(shifted(start, interval).ok_or_else(overflow)?)
        }
        (V::Timestamptz(start), V::Interval(interval))
        | (V::Interval(interval), V::Timestamptz(start)) => {
            // Months and days are those of the session's zone; hours are hours.
            let interval = signed(interval).ok_or_else(overflow)?;
            let calendar = Interval {
                micros: 0,
                ..interval
            };
            let start = if calendar == Interval::default() || !start.is_finite() {
                start
            } else {
                let wall = Timestamp(settings.time_zone.wall(start));
                let moved = shifted(wall, calendar).ok_or_else(overflow)?;
                let instant = settings.time_zone.instant(moved.0);
                Timestamp(instant.ok_or_else(overflow)?)
            };
            let hours = Interval {
                months: 0,
                days: 0,
                micros: interval.micros,
            };
            Value::Timestamptz(shifted(start, hours).ok_or_else(overflow)?)
        }
        _ => return Err(SqlError::internal("an operator of other moments")),
    })
}

fn opposite(interval: Interval) -> Option<Interval> {
    Some(Interval {
        months: interval.months.checked_neg()?,
        days: interval.days.checked_neg()?,
        micros: interval.micros.checked_neg()?,
    })
}

/// A wall time moved: by months (to the month's last day if it is shorter), by days, by microseconds.
fn shifted(start: Timestamp, by: Interval) -> Option<Timestamp> {
    if !start.is_finite() {
        return Some(start);
    }
    let mut days = start.0.div_euclid(MICROS_PER_DAY);
    let rest = start.0.rem_euclid(MICROS_PER_DAY);
    if by.months != 0 {
        let (year, month, day) = civil(days);
        let months = year * 12 + (month - 1) + i64::from(by.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        days = day_number(year, month, day.min(days_of(year, month)));
    }
    let days = days.checked_add(i64::from(by.days))?;
    let micros = days.checked_mul(MICROS_PER_DAY)?.checked_add(rest)?;
    let micros = micros.checked_add(by.micros)?;
    Timestamp::checked(micros)
}

/// Days from 0000-03-01 to 2000-01-01.
const EPOCH: i64 = 730_425;

/// Year, month and day of a day counted from 2000-01-01 (proleptic Gregorian).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + EPOCH;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH
}

fn days_of(year: i64, month: i64) -> i64 {
    let next = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    day_number(next.0, next.1, 1) - day_number(year, month, 1)
}

/// `-value`.
///
/// # Errors
/// `22003`.
pub(crate) fn negate(value: ValueRef<'_>) -> Result<Value> {
    let beyond = |ty| out_of_range(ty);
    Ok(match value {
        ValueRef::Int2(value) => {
            Value::Int2(value.checked_neg().ok_or_else(|| beyond(Type::Int2))?)
        }
        ValueRef::Int4(value) => {
            Value::Int4(value.checked_neg().ok_or_else(|| beyond(Type::Int4))?)
        }
        ValueRef::Int8(value) => {
            Value::Int8(value.checked_neg().ok_or_else(|| beyond(Type::Int8))?)
        }
        ValueRef::Float4(value) => Value::Float4(-value),
        ValueRef::Float8(value) => Value::Float8(-value),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().negate()),
        ValueRef::Interval(value) => {
            Value::Interval(opposite(value).ok_or_else(|| beyond(Type::Interval))?)
        }
        _ => return Err(SqlError::internal("a sign of another type")),
    })
}

#[cold]
fn by_zero() -> SqlError {
    SqlError::new(sqlstate::DIVISION_BY_ZERO, "division by zero")
}

#[cold]
fn overflow(what: &str) -> SqlError {
    let message = format!("value out of range: {what}");
    SqlError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn days_and_dates_agree_over_eight_centuries() {
        for days in -150_000..150_000 {
            let (year, month, day) = civil(days);
            assert!((1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day));
            assert_eq!(day_number(year, month, day), days);
        }
        assert_eq!(civil(0), (2000, 1, 1));
        assert_eq!(days_of(1900, 2), 28);
        assert_eq!(days_of(2000, 2), 29);
    }

    #[test]
    fn integers_overflow_as_their_type_does() {
        let settings = Settings::default();
        let run = |operator, a, b| arithmetic(operator, a, b, &settings);
        let four = |value| ValueRef::Int4(value);
        assert!(run(Operator::Add, four(i32::MAX), four(1)).is_err());
        assert!(run(Operator::Divide, four(1), four(0)).is_err());
        assert!(run(Operator::Divide, four(i32::MIN), four(-1)).is_err());
        let small = run(
            Operator::Modulo,
            ValueRef::Int8(i64::MIN),
            ValueRef::Int8(-1),
        );
        assert_eq!(small.unwrap(), Value::Int8(0));
        assert_eq!(
            run(Operator::Divide, four(-7), four(2)).unwrap(),
            Value::Int4(-3)
        );
    }
}
