//! `SET json['key'][2] = …`: what a path of a `jsonb` leads to is made, where it is not there.

use super::json::index;
use super::json_change::{items, pairs};
use super::{Arguments, Entry, fault, invalid, lenient};
use crate::error::Result;
use vellum_row::json::JsonbKind;
use vellum_row::{Jsonb, JsonbRef, Value};

/// The most elements of an array that is made longer: nulls that lie between take memory.
const ELEMENTS_MAX: usize = 1 << 24;

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    // The third says whether the first step is the number of an element.
    lenient(0, "%assigned", "jsonb jsonb bool _text", "jsonb", assigned),
];

fn assigned(a: &Arguments<'_>) -> Result<Value> {
    let path: Option<Vec<String>> = a.texts(3).into_iter().collect();
    let path = path.ok_or_else(|| {
        let text = "jsonb subscript in assignment must not be null";
        fault("22004", text)
    })?;
    let null = Jsonb::null();
    let new = if a.is_null(1) {
        null.as_ref()
    } else {
        a.jsonb(1)?
    };
    let empty;
    let value = if a.is_null(0) {
        empty = match a.truth(2) {
            true => Jsonb::array(&[])?,
            false => Jsonb::object(Vec::new())?,
        };
        empty.as_ref()
    } else {
        a.jsonb(0)?
    };
    assigned_at(value, &path, new, 1).map(Value::Jsonb)
}

/// `depth` steps lead to what is behind the first one of `path`.
fn assigned_at(
    value: JsonbRef<'_>,
    path: &[String],
    new: JsonbRef<'_>,
    depth: usize,
) -> Result<Jsonb> {
    let Some((step, rest)) = path.split_first() else {
        return Ok(new.to_jsonb());
    };
    match value.kind() {
        Some(JsonbKind::Object(object)) => {
            let mut all = pairs(object);
            let at = all.iter().position(|(key, _)| key == step);
            let inner = match at {
                Some(at) => assigned_at(all[at].1, rest, new, depth + 1)?,
                None => made(rest, new)?,
            };
            match at {
                Some(at) => all[at].1 = inner.as_ref(),
                None => all.push((step, inner.as_ref())),
            }
            Ok(Jsonb::object(all)?)
        }
        Some(JsonbKind::Array(_)) => {
            let mut all = items(value);
            let number = index(step).ok_or_else(|| {
                let text =
                    format!("path element at position {depth} is not an integer: \"{step}\"");
                fault("22P02", text)
            })?;
            let at = match usize::try_from(number) {
                Ok(at) => at,
                Err(_) => {
                    let back = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
                    all.len().checked_sub(back).ok_or_else(|| {
                        invalid(format!(
                            "path element at position {depth} is out of range: {number}"
                        ))
                    })?
                }
            };
            let inner = match all.get(at) {
                Some(own) => assigned_at(*own, rest, new, depth + 1)?,
                None => made(rest, new)?,
            };
            let null = Jsonb::null();
            filled(&mut all, at, null.as_ref())?;
            match all.get_mut(at) {
                Some(own) => *own = inner.as_ref(),
                None => all.push(inner.as_ref()),
            }
            Ok(Jsonb::array(&all)?)
        }
        _ => {
            let text = "The path assumes key is a composite object, but it is a scalar value.";
            Err(invalid("cannot replace existing key").with_detail(text))
        }
    }
}

/// Nulls up to a place.
fn filled<'j>(all: &mut Vec<JsonbRef<'j>>, at: usize, null: JsonbRef<'j>) -> Result<()> {
    if at >= ELEMENTS_MAX.max(all.len()) {
        let text =
            format!("number of jsonb array elements exceeds the maximum allowed ({ELEMENTS_MAX})");
        return Err(fault("54000", text));
    }
    all.resize(all.len().max(at), null);
    Ok(())
}

/// What is made where a path leads to nothing: a number is a place in an array, all else a key.
fn made(path: &[String], new: JsonbRef<'_>) -> Result<Jsonb> {
    let mut value = new.to_jsonb();
    for step in path.iter().rev() {
        let place = index(step).map(|at| usize::try_from(at).unwrap_or(0));
        value = match place {
            Some(at) => {
                let null = Jsonb::null();
                let mut all = Vec::new();
                filled(&mut all, at, null.as_ref())?;
                all.push(value.as_ref());
                Jsonb::array(&all)?
            }
            None => Jsonb::object(vec![(step, value.as_ref())])?,
        };
    }
    Ok(value)
}
