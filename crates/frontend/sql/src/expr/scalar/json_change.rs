//! What makes another `jsonb` of one: joining, setting, inserting, removing.

use super::json::index;
use super::{Arguments, Entry, fault, invalid, lenient, strict};
use crate::error::Result;
use vellum_row::json::{JsonbKind, JsonbObject};
use vellum_row::{Jsonb, JsonbRef, Value};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(0, "||", "jsonb jsonb", "jsonb", concat),
    strict(0, "-", "jsonb text", "jsonb", |a| {
        let key = a.text(1);
        without(a.jsonb(0)?, &[key])
    }),
    strict(0, "-", "jsonb _text", "jsonb", |a| {
        let keys = a.texts(1);
        let keys: Vec<&str> = keys.iter().flatten().map(String::as_str).collect();
        without(a.jsonb(0)?, &keys)
    }),
    strict(0, "-", "jsonb int4", "jsonb", without_element),
    strict(0, "#-", "jsonb _text", "jsonb", |a| changed(a.jsonb(0)?, &path(a, 1)?, &Change::Remove).map(Value::Jsonb)),
    strict(3304, "jsonb_delete_path", "jsonb _text", "jsonb", |a| changed(a.jsonb(0)?, &path(a, 1)?, &Change::Remove).map(Value::Jsonb)),
    strict(0, "jsonb_set", "jsonb _text jsonb", "jsonb", |a| set(a, true)),
    strict(3305, "jsonb_set", "jsonb _text jsonb bool", "jsonb", |a| set(a, a.truth(3))),
    lenient(0, "jsonb_set_lax", "jsonb _text jsonb", "jsonb", set_lax),
    lenient(0, "jsonb_set_lax", "jsonb _text jsonb bool", "jsonb", set_lax),
    lenient(5054, "jsonb_set_lax", "jsonb _text jsonb bool text", "jsonb", set_lax),
    strict(0, "jsonb_insert", "jsonb _text jsonb", "jsonb", |a| insert(a, false)),
    strict(3579, "jsonb_insert", "jsonb _text jsonb bool", "jsonb", |a| insert(a, a.truth(3))),
    strict(3262, "jsonb_strip_nulls", "jsonb", "jsonb", |a| Ok(Value::Jsonb(stripped(a.jsonb(0)?)?))),
    strict(3261, "json_strip_nulls", "json", "json", |a| {
        Ok(Value::Json(vellum_row::json::without_nulls(a.text(0))?.into()))
    }),
];

pub(super) fn items(value: JsonbRef<'_>) -> Vec<JsonbRef<'_>> {
    match value.kind() {
        Some(JsonbKind::Array(array)) => (0..array.len()).filter_map(|at| array.get(at)).collect(),
        _ => vec![value],
    }
}

pub(super) fn pairs<'a>(object: JsonbObject<'a>) -> Vec<(&'a str, JsonbRef<'a>)> {
    (0..object.len())
        .filter_map(|at| object.key(at).zip(object.value(at)))
        .collect()
}

fn concat(a: &Arguments<'_>) -> Result<Value> {
    let (left, right) = (a.jsonb(0)?, a.jsonb(1)?);
    if let (Some(JsonbKind::Object(one)), Some(JsonbKind::Object(other))) =
        (left.kind(), right.kind())
    {
        let mut all = pairs(one);
        all.extend(pairs(other));
        return Ok(Value::Jsonb(Jsonb::object(all)?));
    }
    let mut all = items(left);
    all.extend(items(right));
    Ok(Value::Jsonb(Jsonb::array(&all)?))
}

fn without(value: JsonbRef<'_>, keys: &[&str]) -> Result<Value> {
    Ok(Value::Jsonb(match value.kind() {
        Some(JsonbKind::Object(object)) => {
            let mut kept = pairs(object);
            kept.retain(|(key, _)| !keys.contains(key));
            Jsonb::object(kept)?
        }
        Some(JsonbKind::Array(_)) => {
            let mut kept = items(value);
            kept.retain(|item| !matches!(item.kind(), Some(JsonbKind::String(text)) if keys.contains(&text)));
            Jsonb::array(&kept)?
        }
        _ => return Err(invalid("cannot delete from scalar")),
    }))
}

/// The place of a number in so many; from the end if it is negative.
fn place(number: i32, count: usize) -> Option<usize> {
    let at = if number < 0 {
        i64::from(number) + count as i64
    } else {
        i64::from(number)
    };
    usize::try_from(at).ok().filter(|at| *at < count)
}

fn without_element(a: &Arguments<'_>) -> Result<Value> {
    let value = a.jsonb(0)?;
    match value.kind() {
        Some(JsonbKind::Array(_)) => {}
        Some(JsonbKind::Object(_)) => {
            return Err(invalid("cannot delete from object using integer index"));
        }
        _ => return Err(invalid("cannot delete from scalar")),
    }
    let mut kept = items(value);
    if let Some(at) = place(a.int(1), kept.len()) {
        kept.remove(at);
    }
    Ok(Value::Jsonb(Jsonb::array(&kept)?))
}

fn path(a: &Arguments<'_>, number: usize) -> Result<Vec<String>> {
    let steps = a.texts(number).into_iter().enumerate();
    steps
        .map(|(at, step)| {
            step.ok_or_else(|| {
                fault(
                    "22004",
                    format!("path element at position {} is null", at + 1),
                )
            })
        })
        .collect()
}

enum Change<'c> {
    Remove,
    /// Also what is not there yet, if the second is so.
    Set(JsonbRef<'c>, bool),
    /// Behind it, if the second is so.
    Insert(JsonbRef<'c>, bool),
}

/// The value with a change at the end of a path.
fn changed(value: JsonbRef<'_>, path: &[String], change: &Change<'_>) -> Result<Jsonb> {
    let scalar = |kind: &Option<JsonbKind<'_>>| {
        !matches!(kind, Some(JsonbKind::Array(_) | JsonbKind::Object(_)))
    };
    if scalar(&value.kind()) {
        return Err(invalid(match change {
            Change::Remove => "cannot delete path in scalar",
            _ => "cannot set path in scalar",
        }));
    }
    changed_at(value, path, change, 1)
}

fn changed_at(
    value: JsonbRef<'_>,
    path: &[String],
    change: &Change<'_>,
    depth: usize,
) -> Result<Jsonb> {
    let Some((step, rest)) = path.split_first() else {
        return Ok(value.to_jsonb());
    };
    match value.kind() {
        Some(JsonbKind::Object(object)) => {
            let mut all = pairs(object);
            let at = all.iter().position(|(key, _)| key == step);
            let inner;
            match (at, rest.is_empty(), change) {
                (Some(at), false, _) => {
                    inner = changed_at(all[at].1, rest, change, depth + 1)?;
                    all[at].1 = inner.as_ref();
                }
                (Some(at), true, Change::Remove) => {
                    all.remove(at);
                }
                (Some(at), true, Change::Set(new, _)) => all[at].1 = *new,
                (Some(_), true, Change::Insert(..)) => {
                    return Err(invalid("cannot replace existing key")
                        .with_hint("Try using the function jsonb_set to replace key value."));
                }
                (None, true, Change::Set(new, true) | Change::Insert(new, _)) => {
                    all.push((step, *new));
                }
                (None, ..) => {}
            }
            Ok(Jsonb::object(all)?)
        }
        Some(JsonbKind::Array(_)) => {
            let mut all = items(value);
            let number = index(step).ok_or_else(|| {
                fault(
                    "22P02",
                    format!("path element at position {depth} is not an integer: \"{step}\""),
                )
            })?;
            let at = place(number, all.len());
            let inner;
            match (at, rest.is_empty(), change) {
                (Some(at), false, _) => {
                    inner = changed_at(all[at], rest, change, depth + 1)?;
                    all[at] = inner.as_ref();
                }
                (Some(at), true, Change::Remove) => {
                    all.remove(at);
                }
                (Some(at), true, Change::Set(new, _)) => all[at] = *new,
                (Some(at), true, Change::Insert(new, behind)) => {
                    all.insert(at + usize::from(*behind), *new);
                }
                (None, true, Change::Set(new, true) | Change::Insert(new, _)) => {
                    // Before the first, or behind the last.
                    let at = if number < 0 { 0 } else { all.len() };
                    all.insert(at, *new);
                }
                (None, ..) => {}
            }
            Ok(Jsonb::array(&all)?)
        }
        _ => Ok(value.to_jsonb()),
    }
}

fn set(a: &Arguments<'_>, create: bool) -> Result<Value> {
    let change = Change::Set(a.jsonb(2)?, create);
    changed(a.jsonb(0)?, &path(a, 1)?, &change).map(Value::Jsonb)
}

fn insert(a: &Arguments<'_>, behind: bool) -> Result<Value> {
    let change = Change::Insert(a.jsonb(2)?, behind);
    changed(a.jsonb(0)?, &path(a, 1)?, &change).map(Value::Jsonb)
}

fn set_lax(a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) || a.is_null(1) || a.len() > 3 && a.is_null(3) {
        return Ok(Value::Null);
    }
    let create = a.len() <= 3 || a.truth(3);
    if !a.is_null(2) {
        return set(a, create);
    }
    let treatment = if a.len() > 4 {
        a.text(4)
    } else {
        "use_json_null"
    };
    let value = a.jsonb(0)?;
    match treatment {
        "raise_exception" => Err(fault("22004", "JSON value must not be null")),
        "use_json_null" => {
            let null = Jsonb::null();
            let change = Change::Set(null.as_ref(), create);
            changed(value, &path(a, 1)?, &change).map(Value::Jsonb)
        }
        "delete_key" => changed(value, &path(a, 1)?, &Change::Remove).map(Value::Jsonb),
        "return_target" => Ok(Value::Jsonb(value.to_jsonb())),
        _ => Err(invalid(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

fn stripped(value: JsonbRef<'_>) -> Result<Jsonb> {
    match value.kind() {
        Some(JsonbKind::Object(object)) => {
            let mut made = Vec::new();
            for (key, value) in pairs(object) {
                if !matches!(value.kind(), Some(JsonbKind::Null)) {
                    made.push((key, stripped(value)?));
                }
            }
            Ok(Jsonb::object(
                made.iter()
                    .map(|(key, value)| (*key, value.as_ref()))
                    .collect(),
            )?)
        }
        Some(JsonbKind::Array(_)) => {
            let made = items(value)
                .into_iter()
                .map(stripped)
                .collect::<Result<Vec<_>>>()?;
            let made: Vec<JsonbRef<'_>> = made.iter().map(Jsonb::as_ref).collect();
            Ok(Jsonb::array(&made)?)
        }
        _ => Ok(value.to_jsonb()),
    }
}
