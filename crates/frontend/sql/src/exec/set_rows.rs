//! Rows of functions that return sets, one after the other as they are asked for.

use super::no_step;
use crate::error::{Result, SqlError};
use crate::expr::{Environment, Frame};
use crate::plan::{SetCall, SetFunction};
use crate::sqlstate;
use vellum_row::arithmetic::{self, Operator};
use vellum_row::datetime::Interval;
use vellum_row::{Numeric, Settings, Type, Value, ValueRef, compare, output};

/// Calls side by side.
pub(crate) struct SetRows {
    sets: Vec<(usize, Set)>,
    /// The number of the next row, if rows have one.
    number: Option<i64>,
}

/// What is left of one.
enum Set {
    Rows(std::vec::IntoIter<Vec<Value>>),
    Series(Series),
}

/// A series of values.
struct Series {
    /// `None` behind the last one that its type has.
    next: Option<Value>,
    to: Value,
    step: Value,
    up: bool,
}

impl SetRows {
    /// Begins.
    ///
    /// # Errors
    /// What the arguments report; `22023` for series that cannot be.
    pub fn new(calls: &[SetCall], ordinality: bool, frame: &Frame<'_>) -> Result<Self> {
        let mut sets = Vec::with_capacity(calls.len());
        for call in calls {
            sets.push((call.types.len(), begun(call, frame)?));
        }
        Ok(Self {
            sets,
            number: ordinality.then_some(1),
        })
    }

    /// The next row; none if all of them have ended.
    ///
    /// # Errors
    /// `22003`, `22008` for a value outside its type.
    pub fn next(&mut self, env: &dyn Environment) -> Result<Option<Vec<Value>>> {
        let mut row = Vec::new();
        let mut any = false;
        for (width, set) in &mut self.sets {
            let found = match set {
                Set::Rows(rows) => rows.next(),
                Set::Series(series) => series.next(env.settings())?.map(|value| vec![value]),
            };
            any |= found.is_some();
            match found {
                Some(found) => row.extend(found),
                None => row.resize(row.len() + *width, Value::Null),
            }
        }
        if !any {
            return Ok(None);
        }
        if let Some(number) = &mut self.number {
            row.push(Value::Int8(*number));
            *number += 1;
        }
        Ok(Some(row))
    }
}

fn begun(call: &SetCall, frame: &Frame<'_>) -> Result<Set> {
    if let SetFunction::Series(ty) = call.function {
        return series(ty, call, frame);
    }
    if call.function == SetFunction::Keywords {
        return Ok(Set::Rows(crate::system::keywords().into_iter()));
    }
    if let SetFunction::Made(made) = call.function {
        let mut values = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            values.push(argument.eval(frame)?.into_value());
        }
        return Ok(Set::Rows(made.rows(&values)?.into_iter()));
    }
    let first = call.arguments[0].eval(frame)?.into_value();
    if call.function == SetFunction::One {
        return Ok(Set::Rows(vec![vec![first]].into_iter()));
    }
    let int4 = |number: usize| Value::Int4(i32::try_from(number).unwrap_or(i32::MAX));
    let rows: Vec<Vec<Value>> = match (call.function, &first) {
        (SetFunction::Unnest, Value::Array(array)) => {
            array.as_ref().items().map(|item| vec![item]).collect()
        }
        (SetFunction::Expand, Value::Array(array)) => {
            let items = (1..).zip(array.as_ref().items());
            items
                .map(|(number, item)| vec![item, int4(number)])
                .collect()
        }
        (SetFunction::Subscripts, Value::Array(array)) => {
            let dimension = call.arguments[1].eval(frame)?.as_ref().as_i64();
            let number = usize::try_from(dimension.unwrap_or(0) - 1).ok();
            let one = number.and_then(|number| array.as_ref().dimensions().nth(number));
            // The last subscript may be the largest integer.
            let range = one.map(|one| one.lower..=one.lower + (one.length - 1));
            let subscripts = range.into_iter().flatten();
            subscripts
                .map(|subscript| vec![Value::Int4(subscript)])
                .collect()
        }
        _ => Vec::new(),
    };
    Ok(Set::Rows(rows.into_iter()))
}

fn series(ty: Type, call: &SetCall, frame: &Frame<'_>) -> Result<Set> {
    let mut values = Vec::with_capacity(3);
    for argument in &call.arguments {
        values.push(argument.eval(frame)?.into_value());
    }
    let [from, to, step]: [Value; 3] = values
        .try_into()
        .map_err(|_| SqlError::internal("three bounds"))?;
    if from.is_null() || to.is_null() || step.is_null() {
        return Ok(Set::Rows(Vec::new().into_iter()));
    }
    if ty == Type::Numeric {
        let bounds = [
            ("start value", &from),
            ("stop value", &to),
            ("step size", &step),
        ];
        for (what, value) in bounds {
            let mut text = String::new();
            output(value.as_ref(), frame.env.settings(), &mut text);
            let odd = match text.as_str() {
                "NaN" => "NaN",
                "Infinity" | "-Infinity" => "infinity",
                _ => continue,
            };
            let message = format!("{what} cannot be {odd}");
            return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
        }
    }
    let zero = match ty {
        Type::Numeric => Value::Numeric(Numeric::parse("0")?),
        Type::Timestamp | Type::Timestamptz => Value::Interval(Interval::default()),
        Type::Int8 => Value::Int8(0),
        _ => Value::Int4(0),
    };
    let sign = compare(step.as_ref(), zero.as_ref());
    if sign.is_eq() {
        return Err(no_step());
    }
    Ok(Set::Series(Series {
        next: Some(from),
        to,
        step,
        up: sign.is_gt(),
    }))
}

impl Series {
    fn next(&mut self, settings: &Settings) -> Result<Option<Value>> {
        let Some(value) = self.next.take() else {
            return Ok(None);
        };
        let order = compare(value.as_ref(), self.to.as_ref());
        if if self.up {
            order.is_gt()
        } else {
            order.is_lt()
        } {
            return Ok(None);
        }
        let next = arithmetic::apply(Operator::Add, value.as_ref(), self.step.as_ref(), settings);
        self.next = match (next, value.as_ref()) {
            (Ok(next), _) => Some(next),
            // Behind the last integer there is no other.
            (Err(_), ValueRef::Int4(_) | ValueRef::Int8(_)) => None,
            (Err(error), _) => return Err(error.into()),
        };
        Ok(Some(value))
    }
}
