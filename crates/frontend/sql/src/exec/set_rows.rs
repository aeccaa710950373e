//! Rows of functions that return sets, one after the other as they are asked for.

use super::{bytes_of_row, no_step};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Environment, Frame, Keep};
use crate::plan::{SetCall, SetFunction};
use crate::sqlstate;
use vellum_row::arithmetic::{self, Operator};
use vellum_row::array::Elements;
use vellum_row::datetime::Interval;
use vellum_row::{Array, Numeric, Settings, Type, Value, ValueRef, compare, output};

/// Calls side by side.
pub(crate) struct SetRows {
    sets: Vec<(usize, Set)>,
    /// Of rows that are made at once.
    bytes: usize,
    /// The number of the next row, if rows have one.
    number: Option<i64>,
}

/// What is left of one.
enum Set {
    Rows(std::vec::IntoIter<Vec<Value>>),
    /// The elements of an array; with the number of the next one if they have numbers.
    Elements(Elements, Option<i32>),
    Subscripts(std::ops::RangeInclusive<i32>),
    Series(Series),
}

impl Set {
    fn next(&mut self, settings: &Settings) -> Result<Option<Vec<Value>>> {
        Ok(match self {
            Self::Rows(rows) => rows.next(),
            Self::Elements(elements, None) => elements.next().map(|item| vec![item]),
            Self::Elements(elements, Some(number)) => elements.next().map(|item| {
                let row = vec![item, Value::Int4(*number)];
                *number = number.saturating_add(1);
                row
            }),
            Self::Subscripts(range) => range.next().map(|number| vec![Value::Int4(number)]),
            Self::Series(series) => series.next(settings)?.map(|value| vec![value]),
        })
    }
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
    /// Begins. Rows that are made at once are told to `keep`, one by one.
    ///
    /// # Errors
    /// What the arguments and `keep` report; `22023` for series that cannot be.
    pub fn new(
        calls: &[SetCall],
        ordinality: bool,
        frame: &Frame<'_>,
        keep: &Keep<'_>,
    ) -> Result<Self> {
        let mut sets = Vec::with_capacity(calls.len());
        let mut bytes = 0usize;
        for call in calls {
            let set = begun(call, frame, keep)?;
            if let Set::Rows(rows) = &set {
                let rows = rows.as_slice().iter();
                bytes += rows.map(|row| bytes_of_row(row)).sum::<usize>();
            }
            sets.push((call.types.len(), set));
        }
        Ok(Self {
            sets,
            bytes,
            number: ordinality.then_some(1),
        })
    }

    /// The memory of rows that were made at once: most sets are made row by row.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next row; none if all of them have ended.
    ///
    /// # Errors
    /// `22003`, `22008` for a value outside its type.
    pub fn next(&mut self, env: &dyn Environment) -> Result<Option<Vec<Value>>> {
        let mut row = Vec::new();
        let mut any = false;
        for (width, set) in &mut self.sets {
            let found = set.next(env.settings())?;
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

/// The row of `pg_sequence_parameters`, of its numbers.
fn sequence_row(numbers: &Array) -> Vec<Value> {
    let numbers = numbers
        .as_ref()
        .items()
        .map(|number| number.as_ref().as_i64().unwrap_or(0));
    let row = numbers.enumerate().map(|(at, number)| match at {
        4 => Value::Bool(number != 0),
        6 => Value::Oid(u32::try_from(number).unwrap_or(0)),
        _ => Value::Int8(number),
    });
    row.collect()
}

fn begun(call: &SetCall, frame: &Frame<'_>, keep: &Keep<'_>) -> Result<Set> {
    if let SetFunction::Series(ty) = call.function {
        return series(ty, call, frame);
    }
    if call.function == SetFunction::Channels {
        let asked = Builtin::Catalog(CatalogFunction::ListeningChannels);
        return Ok(match frame.env.ask(asked, &[])? {
            Value::Array(array) => Set::Elements(Elements::of(array), None),
            _ => Set::Rows(Vec::new().into_iter()),
        });
    }
    if call.function == SetFunction::Keywords {
        let rows = crate::system::keywords();
        rows.iter().try_for_each(|row| keep(row))?;
        return Ok(Set::Rows(rows.into_iter()));
    }
    if let SetFunction::JsonRows(kind) = call.function {
        let mut values = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            values.push(argument.eval(frame)?.into_value());
        }
        let rows = super::json_rows::rows(kind, &values, &call.types, frame.env, keep)?;
        return Ok(Set::Rows(rows.into_iter()));
    }
    if let SetFunction::Made(made) = call.function {
        let mut values = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            values.push(argument.eval(frame)?.into_value());
        }
        return Ok(Set::Rows(made.rows(&values, keep)?.into_iter()));
    }
    let first = call.arguments[0].eval(frame)?.into_value();
    if call.function == SetFunction::Sequence {
        let asked = Builtin::Catalog(CatalogFunction::SequenceParameters);
        let row = match frame.env.ask(asked, &[first])? {
            Value::Array(numbers) => sequence_row(&numbers),
            _ => vec![Value::Null; call.types.len()],
        };
        keep(&row)?;
        return Ok(Set::Rows(vec![row].into_iter()));
    }
    if call.function == SetFunction::One {
        let row = vec![first];
        keep(&row)?;
        return Ok(Set::Rows(vec![row].into_iter()));
    }
    Ok(match (call.function, first) {
        (SetFunction::Unnest, Value::Array(array)) => Set::Elements(Elements::of(array), None),
        (SetFunction::Acl, Value::Array(array)) => {
            let mut rows = Vec::new();
            for item in Elements::of(array) {
                rows.extend(super::acl_rows::of_item(&item, frame.env)?);
            }
            rows.iter().try_for_each(|row| keep(row))?;
            Set::Rows(rows.into_iter())
        }
        (SetFunction::Expand, Value::Array(array)) => Set::Elements(Elements::of(array), Some(1)),
        (SetFunction::Subscripts, Value::Array(array)) => {
            let dimension = call.arguments[1].eval(frame)?.as_ref().as_i64();
            let number = usize::try_from(dimension.unwrap_or(0) - 1).ok();
            let one = number.and_then(|number| array.as_ref().dimensions().nth(number));
            // The last subscript may be the largest integer.
            match one.filter(|one| one.length > 0) {
                Some(one) => Set::Subscripts(one.lower..=one.lower + (one.length - 1)),
                None => Set::Rows(Vec::new().into_iter()),
            }
        }
        _ => Set::Rows(Vec::new().into_iter()),
    })
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
            output(value.as_ref(), frame.env.settings(), &mut text)?;
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
