//! Functions of numbers, and the operators that are no plain arithmetic.

use super::{Arguments, Entry, fault, other, strict};
use crate::error::Result;
use crate::expr::Builtin as B;
use std::cell::Cell;
use vellum_row::{GoOn, Numeric, Value, ValueRef};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(1345, "cbrt", "float8", "float8", |a| Ok(Value::Float8(a.float(0).cbrt()))),
    strict(0, "||/", "float8", "float8", |a| Ok(Value::Float8(a.float(0).cbrt()))),
    other(0, "|/", "float8", "float8", B::SquareRoot),
    other(0, "@", "int4", "int4", B::Abs),
    other(0, "@", "int2", "int2", B::Abs),
    other(0, "@", "int8", "int8", B::Abs),
    other(0, "@", "float4", "float4", B::Abs),
    other(0, "@", "float8", "float8", B::Abs),
    other(0, "@", "numeric", "numeric", B::Abs),
    strict(1608, "degrees", "float8", "float8", |a| turned(a.float(0), |x| x / (std::f64::consts::PI / 180.0))),
    strict(1609, "radians", "float8", "float8", |a| turned(a.float(0), |x| x * (std::f64::consts::PI / 180.0))),
    strict(1610, "pi", "", "float8", |_| Ok(Value::Float8(std::f64::consts::PI))),
    strict(1973, "div", "numeric numeric", "numeric", |a| Ok(Value::Numeric(a.numeric(0).divide_whole(&a.numeric(1))?))),
    strict(1376, "factorial", "int8", "numeric", factorial),
    strict(5044, "gcd", "int4 int4", "int4", |a| narrow(gcd(a.long(0), a.long(1))?)),
    strict(5045, "gcd", "int8 int8", "int8", |a| Ok(Value::Int8(gcd(a.long(0), a.long(1))?))),
    strict(5048, "gcd", "numeric numeric", "numeric", |a| Ok(Value::Numeric(gcd_numeric(a)?))),
    strict(5046, "lcm", "int4 int4", "int4", |a| narrow(lcm(a.long(0), a.long(1))?)),
    strict(5047, "lcm", "int8 int8", "int8", |a| Ok(Value::Int8(lcm(a.long(0), a.long(1))?))),
    strict(5049, "lcm", "numeric numeric", "numeric", lcm_numeric),
    strict(1347, "exp", "float8", "float8", exp),
    strict(1732, "exp", "numeric", "numeric", |a| numeric_of(a, &|go_on| a.numeric(0).exponential(go_on))),
    strict(1341, "ln", "float8", "float8", |a| logarithm(a.float(0), f64::ln)),
    strict(1734, "ln", "numeric", "numeric", |a| numeric_of(a, &|go_on| a.numeric(0).logarithm(go_on))),
    strict(1340, "log", "float8", "float8", |a| logarithm(a.float(0), f64::log10)),
    strict(1741, "log", "numeric", "numeric", log10),
    strict(1194, "log10", "float8", "float8", |a| logarithm(a.float(0), f64::log10)),
    strict(1481, "log10", "numeric", "numeric", log10),
    strict(1736, "log", "numeric numeric", "numeric", |a| numeric_of(a, &|go_on| a.numeric(1).logarithm_to(&a.numeric(0), go_on))),
    strict(1346, "pow", "float8 float8", "float8", power),
    strict(1368, "power", "float8 float8", "float8", power),
    strict(1738, "pow", "numeric numeric", "numeric", power_numeric),
    strict(2169, "power", "numeric numeric", "numeric", power_numeric),
    strict(0, "^", "float8 float8", "float8", power),
    strict(0, "^", "numeric numeric", "numeric", power_numeric),
    strict(3281, "scale", "numeric", "int4", |a| {
        let value = a.numeric(0);
        Ok(if value.is_finite() { Value::Int4(value.scale() as i32) } else { Value::Null })
    }),
    strict(5042, "min_scale", "numeric", "int4", |a| {
        let value = a.numeric(0);
        Ok(if value.is_finite() { Value::Int4(least_scale(&value)?) } else { Value::Null })
    }),
    strict(5043, "trim_scale", "numeric", "numeric", |a| {
        let value = a.numeric(0);
        let scale = least_scale(&value)?;
        Ok(Value::Numeric(if value.is_finite() { value.truncate(scale)? } else { value }))
    }),
    strict(320, "width_bucket", "float8 float8 float8 int4", "int4", bucket),
    strict(2170, "width_bucket", "numeric numeric numeric int4", "int4", bucket_numeric),
    strict(3218, "width_bucket", "anycompatible anycompatiblearray", "int4", bucket_between),
    strict(1600, "asin", "float8", "float8", |a| within(a.float(0), -1.0..=1.0, f64::asin)),
    strict(1601, "acos", "float8", "float8", |a| within(a.float(0), -1.0..=1.0, f64::acos)),
    strict(1602, "atan", "float8", "float8", |a| Ok(Value::Float8(a.float(0).atan()))),
    strict(1603, "atan2", "float8 float8", "float8", |a| Ok(Value::Float8(a.float(0).atan2(a.float(1))))),
    strict(1604, "sin", "float8", "float8", |a| finite(a.float(0), f64::sin)),
    strict(1605, "cos", "float8", "float8", |a| finite(a.float(0), f64::cos)),
    strict(1606, "tan", "float8", "float8", |a| finite(a.float(0), f64::tan)),
    strict(1607, "cot", "float8", "float8", |a| finite(a.float(0), |x| 1.0 / x.tan())),
    strict(2462, "sinh", "float8", "float8", |a| Ok(Value::Float8(a.float(0).sinh()))),
    strict(2463, "cosh", "float8", "float8", |a| Ok(Value::Float8(a.float(0).cosh()))),
    strict(2464, "tanh", "float8", "float8", |a| Ok(Value::Float8(a.float(0).tanh()))),
    strict(2465, "asinh", "float8", "float8", |a| Ok(Value::Float8(asinh(a.float(0))))),
    strict(2466, "acosh", "float8", "float8", |a| within(a.float(0), 1.0..=f64::INFINITY, acosh)),
    strict(2467, "atanh", "float8", "float8", |a| within(a.float(0), -1.0..=1.0, f64::atanh)),
    strict(2731, "asind", "float8", "float8", |a| within(a.float(0), -1.0..=1.0, asind)),
    strict(2732, "acosd", "float8", "float8", |a| within(a.float(0), -1.0..=1.0, acosd)),
    strict(2733, "atand", "float8", "float8", |a| Ok(Value::Float8(a.float(0).atan() / 1f64.atan() * 45.0))),
    strict(2734, "atan2d", "float8 float8", "float8", |a| Ok(Value::Float8(a.float(0).atan2(a.float(1)) / 1f64.atan() * 45.0))),
    strict(2735, "sind", "float8", "float8", |a| finite(a.float(0), sind)),
    strict(2736, "cosd", "float8", "float8", |a| finite(a.float(0), cosd)),
    strict(2737, "tand", "float8", "float8", |a| finite(a.float(0), tand)),
    strict(2738, "cotd", "float8", "float8", |a| finite(a.float(0), |x| 1.0 / tand(x))),
    strict(0, "&", "int2 int2", "int2", |a| Ok(of_width(a, a.long(0) & a.long(1)))),
    strict(0, "&", "int4 int4", "int4", |a| Ok(of_width(a, a.long(0) & a.long(1)))),
    strict(0, "&", "int8 int8", "int8", |a| Ok(of_width(a, a.long(0) & a.long(1)))),
    strict(0, "|", "int2 int2", "int2", |a| Ok(of_width(a, a.long(0) | a.long(1)))),
    strict(0, "|", "int4 int4", "int4", |a| Ok(of_width(a, a.long(0) | a.long(1)))),
    strict(0, "|", "int8 int8", "int8", |a| Ok(of_width(a, a.long(0) | a.long(1)))),
    strict(0, "#", "int2 int2", "int2", |a| Ok(of_width(a, a.long(0) ^ a.long(1)))),
    strict(0, "#", "int4 int4", "int4", |a| Ok(of_width(a, a.long(0) ^ a.long(1)))),
    strict(0, "#", "int8 int8", "int8", |a| Ok(of_width(a, a.long(0) ^ a.long(1)))),
    strict(0, "~", "int2", "int2", |a| Ok(of_width(a, !a.long(0)))),
    strict(0, "~", "int4", "int4", |a| Ok(of_width(a, !a.long(0)))),
    strict(0, "~", "int8", "int8", |a| Ok(of_width(a, !a.long(0)))),
    strict(0, "<<", "int2 int4", "int2", |a| Ok(of_width(a, i64::from((a.long(0) as i32).wrapping_shl(a.int(1) as u32))))),
    strict(0, "<<", "int4 int4", "int4", |a| Ok(of_width(a, i64::from((a.long(0) as i32).wrapping_shl(a.int(1) as u32))))),
    strict(0, "<<", "int8 int4", "int8", |a| Ok(of_width(a, a.long(0).wrapping_shl(a.int(1) as u32)))),
    strict(0, ">>", "int2 int4", "int2", |a| Ok(of_width(a, i64::from((a.long(0) as i32).wrapping_shr(a.int(1) as u32))))),
    strict(0, ">>", "int4 int4", "int4", |a| Ok(of_width(a, i64::from((a.long(0) as i32).wrapping_shr(a.int(1) as u32))))),
    strict(0, ">>", "int8 int4", "int8", |a| Ok(of_width(a, a.long(0).wrapping_shr(a.int(1) as u32)))),
];

/// As wide as the first argument.
fn of_width(a: &Arguments<'_>, value: i64) -> Value {
    match a.at(0) {
        ValueRef::Int2(_) => Value::Int2(value as i16),
        ValueRef::Int4(_) => Value::Int4(value as i32),
        _ => Value::Int8(value),
    }
}

fn narrow(value: i64) -> Result<Value> {
    let value = i32::try_from(value);
    Ok(Value::Int4(
        value.map_err(|_| fault("22003", "integer out of range"))?,
    ))
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn gcd(a: i64, b: i64) -> Result<i64> {
    let found = divisor(a.unsigned_abs(), b.unsigned_abs());
    i64::try_from(found).map_err(|_| fault("22003", "bigint out of range"))
}

fn lcm(a: i64, b: i64) -> Result<i64> {
    if a == 0 || b == 0 {
        return Ok(0);
    }
    let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
    let product = (a / divisor(a, b)).checked_mul(b);
    let product = product.and_then(|product| i64::try_from(product).ok());
    product.ok_or_else(|| fault("22003", "bigint out of range"))
}

fn gcd_numeric(a: &Arguments<'_>) -> Result<Numeric> {
    let (mut left, mut right) = (a.numeric(0), a.numeric(1));
    if !left.is_finite() || !right.is_finite() {
        return Ok(Numeric::NAN);
    }
    let scale = left.scale().max(right.scale());
    while !right.is_zero() {
        let rest = left.modulo(&right)?;
        (left, right) = (right, rest);
    }
    Ok(left.abs().round(scale as i32)?)
}

fn lcm_numeric(a: &Arguments<'_>) -> Result<Value> {
    let (left, right) = (a.numeric(0), a.numeric(1));
    if !left.is_finite() || !right.is_finite() {
        return Ok(Value::Numeric(Numeric::NAN));
    }
    let scale = left.scale().max(right.scale()) as i32;
    if left.is_zero() || right.is_zero() {
        return Ok(Value::Numeric(Numeric::ZERO.round(scale)?));
    }
    let times = left.divide_whole(&gcd_numeric(a)?)?;
    Ok(Value::Numeric(times.multiply(&right)?.abs().round(scale)?))
}

fn factorial(a: &Arguments<'_>) -> Result<Value> {
    let number = a.long(0);
    if number < 0 {
        return Err(fault(
            "22003",
            "factorial of a negative number is undefined",
        ));
    }
    if number > 32_177 {
        return Err(fault("22003", "value overflows numeric format"));
    }
    let mut product = Numeric::from(1);
    for factor in 2..=number {
        if factor % 256 == 0 {
            a.env.look()?;
        }
        product = product.multiply(&Numeric::from(factor))?;
    }
    Ok(Value::Numeric(product))
}

fn checked(value: f64, infinite: bool, zero: bool) -> Result<Value> {
    if value.is_infinite() && !infinite {
        return Err(fault("22003", "value out of range: overflow"));
    }
    if value == 0.0 && !zero {
        return Err(fault("22003", "value out of range: underflow"));
    }
    Ok(Value::Float8(value))
}

fn exp(a: &Arguments<'_>) -> Result<Value> {
    let value = a.float(0);
    checked(value.exp(), value.is_infinite(), value == f64::NEG_INFINITY)
}

fn logarithm(value: f64, of: fn(f64) -> f64) -> Result<Value> {
    if value == 0.0 {
        return Err(fault("2201E", "cannot take logarithm of zero"));
    }
    if value < 0.0 {
        return Err(fault("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(Value::Float8(of(value)))
}

/// A number that may take long to compute: the statement may end meanwhile.
fn numeric_of(
    a: &Arguments<'_>,
    compute: &dyn Fn(&GoOn<'_>) -> vellum_row::Result<Numeric>,
) -> Result<Value> {
    let ended = Cell::new(None);
    let go_on = || match a.env.look() {
        Ok(()) => true,
        Err(error) => {
            ended.set(Some(error));
            false
        }
    };
    let found = compute(&go_on);
    match ended.take() {
        Some(error) => Err(error),
        None => Ok(Value::Numeric(found?)),
    }
}

fn log10(a: &Arguments<'_>) -> Result<Value> {
    let ten = Numeric::from(10);
    numeric_of(a, &|go_on| a.numeric(0).logarithm_to(&ten, go_on))
}

fn power(a: &Arguments<'_>) -> Result<Value> {
    let (base, exponent) = (a.float(0), a.float(1));
    if base == 0.0 && exponent < 0.0 {
        return Err(fault(
            "2201F",
            "zero raised to a negative power is undefined",
        ));
    }
    if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 {
        let text = "a negative number raised to a non-integer power yields a complex result";
        return Err(fault("2201F", text));
    }
    let infinite = base.is_infinite() || exponent.is_infinite();
    checked(base.powf(exponent), infinite, infinite || base == 0.0)
}

fn power_numeric(a: &Arguments<'_>) -> Result<Value> {
    numeric_of(a, &|go_on| a.numeric(0).power(&a.numeric(1), go_on))
}

/// The least scale that shows all digits.
fn least_scale(value: &Numeric) -> Result<i32> {
    let mut scale = value.scale() as i32;
    while scale > 0 && value.truncate(scale - 1)?.compare(value).is_eq() {
        scale -= 1;
    }
    Ok(scale)
}

fn bucket(a: &Arguments<'_>) -> Result<Value> {
    let (value, low, high, count) = (a.float(0), a.float(1), a.float(2), a.int(3));
    let told = |text: &str| Err(fault("2201G", text));
    if count <= 0 {
        return told("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return told("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return told("lower and upper bounds must be finite");
    }
    let all = f64::from(count);
    let place = |value: f64, low: f64, high: f64| {
        if value < low {
            return 0.0;
        }
        if value >= high {
            return all + 1.0;
        }
        let (part, whole) = (all * (value - low), high - low);
        if part.is_finite() && whole.is_finite() {
            return (part / whole + 1.0).floor();
        }
        // Halves of what is finite are no further apart than what is. The quotient may be rounded to 1, which no value is that is below the bound.
        let quotient = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        (all * quotient).floor().min(all - 1.0) + 1.0
    };
    let found = if low < high {
        place(value, low, high)
    } else if low > high {
        place(-value, -low, -high)
    } else {
        return told("lower bound cannot equal upper bound");
    };
    if found > f64::from(i32::MAX) {
        return Err(fault("22003", "integer out of range"));
    }
    Ok(Value::Int4(found as i32))
}

fn bucket_numeric(a: &Arguments<'_>) -> Result<Value> {
    let (value, low, high, count) = (a.numeric(0), a.numeric(1), a.numeric(2), a.int(3));
    let told = |text: &str| Err(fault("2201G", text));
    if count <= 0 {
        return told("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return told("operand, lower bound, and upper bound cannot be NaN");
    }
    if !low.is_finite() || !high.is_finite() {
        return told("lower and upper bounds must be finite");
    }
    let order = low.compare(&high);
    if order.is_eq() {
        return told("lower bound cannot equal upper bound");
    }
    let (before, behind) = if order.is_lt() {
        (value.compare(&low).is_lt(), value.compare(&high).is_ge())
    } else {
        (value.compare(&low).is_gt(), value.compare(&high).is_le())
    };
    if before {
        return Ok(Value::Int4(0));
    }
    if behind {
        let above = count.checked_add(1);
        return Ok(Value::Int4(
            above.ok_or_else(|| fault("22003", "integer out of range"))?,
        ));
    }
    let part = value.subtract(&low)?.multiply(&Numeric::from(count))?;
    let number = part.divide_whole(&high.subtract(&low)?)?;
    Ok(Value::Int4(number.to_i32()? + 1))
}

/// How many of the sorted bounds are not above a value.
fn bucket_between(a: &Arguments<'_>) -> Result<Value> {
    let Some(bounds) = a.array(1) else {
        return Ok(Value::Null);
    };
    if bounds.dimensions().count() > 1 {
        return Err(fault("2202E", "thresholds must be one-dimensional array"));
    }
    let bounds: Vec<Value> = bounds.items().collect();
    if bounds.iter().any(Value::is_null) {
        return Err(fault("22004", "thresholds array must not contain NULLs"));
    }
    let found =
        bounds.partition_point(|bound| vellum_row::compare(bound.as_ref(), a.at(0)).is_le());
    Ok(Value::Int4(found as i32))
}

#[cold]
fn out_of_range() -> crate::error::SqlError {
    fault("22003", "input is out of range")
}

fn within(value: f64, range: std::ops::RangeInclusive<f64>, of: fn(f64) -> f64) -> Result<Value> {
    if !value.is_nan() && !range.contains(&value) {
        return Err(out_of_range());
    }
    Ok(Value::Float8(of(value)))
}

/// Above this the one in the root counts for nothing, and twice the value may be out of range.
const HYPERBOLIC_LARGE: f64 = (1u64 << 28) as f64;

fn asinh(value: f64) -> f64 {
    let size = value.abs();
    match size > HYPERBOLIC_LARGE && size.is_finite() {
        true => (size.ln() + std::f64::consts::LN_2).copysign(value),
        false => value.asinh(),
    }
}

fn acosh(value: f64) -> f64 {
    match value > HYPERBOLIC_LARGE && value.is_finite() {
        true => value.ln() + std::f64::consts::LN_2,
        false => value.acosh(),
    }
}

fn finite(value: f64, of: fn(f64) -> f64) -> Result<Value> {
    if value.is_infinite() {
        return Err(out_of_range());
    }
    Ok(Value::Float8(of(value)))
}

/// An angle in another unit.
///
/// # Errors
/// `22003` if that is too large or too small for a float.
fn turned(angle: f64, turn: impl Fn(f64) -> f64) -> Result<Value> {
    let turned = turn(angle);
    let wrong = |what: &str| Err(fault("22003", format!("value out of range: {what}")));
    match turned {
        _ if turned.is_infinite() && angle.is_finite() => wrong("overflow"),
        0.0 if angle != 0.0 => wrong("underflow"),
        turned => Ok(Value::Float8(turned)),
    }
}

// Of degrees: exact where the result is known to be.

fn sine_to_30(degrees: f64) -> f64 {
    degrees.to_radians().sin() / 30f64.to_radians().sin() / 2.0
}

fn cosine_to_60(degrees: f64) -> f64 {
    let rest = 1.0 - degrees.to_radians().cos();
    1.0 - rest / (1.0 - 60f64.to_radians().cos()) / 2.0
}

fn first_quadrant_sine(degrees: f64) -> f64 {
    if degrees <= 30.0 {
        sine_to_30(degrees)
    } else {
        cosine_to_60(90.0 - degrees)
    }
}

fn first_quadrant_cosine(degrees: f64) -> f64 {
    if degrees <= 60.0 {
        cosine_to_60(degrees)
    } else {
        sine_to_30(90.0 - degrees)
    }
}

fn sind(degrees: f64) -> f64 {
    let (mut degrees, mut sign) = (degrees % 360.0, 1.0);
    if degrees < 0.0 {
        (degrees, sign) = (-degrees, -sign);
    }
    if degrees > 180.0 {
        (degrees, sign) = (360.0 - degrees, -sign);
    }
    if degrees > 90.0 {
        degrees = 180.0 - degrees;
    }
    sign * first_quadrant_sine(degrees)
}

fn cosd(degrees: f64) -> f64 {
    let (mut degrees, mut sign) = ((degrees % 360.0).abs(), 1.0);
    if degrees > 180.0 {
        degrees = 360.0 - degrees;
    }
    if degrees > 90.0 {
        (degrees, sign) = (180.0 - degrees, -sign);
    }
    sign * first_quadrant_cosine(degrees)
}

fn tand(degrees: f64) -> f64 {
    let (mut degrees, mut sign) = (degrees % 360.0, 1.0);
    if degrees < 0.0 {
        (degrees, sign) = (-degrees, -sign);
    }
    if degrees > 180.0 {
        (degrees, sign) = (360.0 - degrees, -sign);
    }
    if degrees > 90.0 {
        (degrees, sign) = (180.0 - degrees, -sign);
    }
    let of_45 = first_quadrant_sine(45.0) / first_quadrant_cosine(45.0);
    sign * (first_quadrant_sine(degrees) / first_quadrant_cosine(degrees) / of_45)
}

fn asind(value: f64) -> f64 {
    let quadrant = |value: f64| {
        if value <= 0.5 {
            value.asin() / 0.5f64.asin() * 30.0
        } else {
            90.0 - value.acos() / 0.5f64.acos() * 60.0
        }
    };
    if value >= 0.0 {
        quadrant(value)
    } else {
        -quadrant(-value)
    }
}

fn acosd(value: f64) -> f64 {
    let quadrant = |value: f64| {
        if value <= 0.5 {
            90.0 - value.asin() / 0.5f64.asin() * 30.0
        } else {
            value.acos() / 0.5f64.acos() * 60.0
        }
    };
    if value >= 0.0 {
        quadrant(value)
    } else {
        90.0 + asind(-value)
    }
}
