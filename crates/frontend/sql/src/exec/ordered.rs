//! Ordered-set aggregates: what is asked of the values of a group when they stand in their order.
//!
//! Not here: sorting (`aggregate`, `vellum_query`); hypothetical sets (`rank(…) WITHIN GROUP`), which are `0A000`.

use crate::bind::AggregateKind;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum_row::arithmetic::{self, Operator};
use vellum_row::{Settings, Type, Value, ValueRef, compare};

/// The answer: `items` are the values in their order, `asked` is a fraction or an array of them, `ty` the answer's type.
///
/// # Errors
/// `22003` for what is no fraction.
pub(super) fn result(
    kind: AggregateKind,
    items: &[Value],
    asked: &Value,
    ty: Type,
    settings: &Settings,
) -> Result<Value> {
    match asked {
        _ if kind == AggregateKind::Mode => Ok(mode(items)),
        Value::Float8(fraction) => {
            check(*fraction)?;
            at(kind, items, *fraction, settings)
        }
        Value::Array(fractions) if !items.is_empty() => {
            let fractions = fractions.as_ref();
            let mut found = Vec::with_capacity(fractions.len());
            for fraction in fractions.items() {
                found.push(match fraction {
                    Value::Float8(fraction) => {
                        check(fraction)?;
                        at(kind, items, fraction, settings)?
                    }
                    _ => Value::Null,
                });
            }
            let element = ty.element().unwrap_or(ty);
            let mut found = found.into_iter();
            let next = |_| Ok(found.next().unwrap_or(Value::Null));
            Ok(Value::Array(fractions.map(element, next)?))
        }
        _ => Ok(Value::Null),
    }
}

fn check(fraction: f64) -> Result<()> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(());
    }
    let message = format!("percentile value {fraction} is not between 0 and 1");
    Err(SqlError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message))
}

/// The value at a fraction of the way through; null if there is none.
fn at(kind: AggregateKind, items: &[Value], fraction: f64, settings: &Settings) -> Result<Value> {
    let Some(last) = items.len().checked_sub(1) else {
        return Ok(Value::Null);
    };
    if kind == AggregateKind::Discrete {
        let number = (fraction * items.len() as f64).ceil() as usize;
        return Ok(items[number.saturating_sub(1).min(last)].clone());
    }
    let place = fraction * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (below, above) = (&items[below.min(last)], &items[above.min(last)]);
    let part = place - place.floor();
    if part == 0.0 {
        return Ok(below.clone());
    }
    if let (Value::Float8(low), Value::Float8(high)) = (below, above) {
        return Ok(Value::Float8(low + part * (high - low)));
    }
    let apply =
        |operator, a: &Value, b: ValueRef<'_>| arithmetic::apply(operator, a.as_ref(), b, settings);
    let whole = apply(Operator::Subtract, above, below.as_ref())?;
    let share = apply(Operator::Multiply, &whole, ValueRef::Float8(part))?;
    Ok(apply(Operator::Add, below, share.as_ref())?)
}

/// The first of those that are there most often.
fn mode(items: &[Value]) -> Value {
    let same = |a: &Value, b: &Value| compare(a.as_ref(), b.as_ref()).is_eq();
    let mut most: &[Value] = &[];
    for run in items.chunk_by(same) {
        if run.len() > most.len() {
            most = run;
        }
    }
    most.first().cloned().unwrap_or(Value::Null)
}
