//! What looks into `json` and `jsonb`: operators and functions.

use super::{Arguments, Entry, fault, invalid, lenient, strict};
use crate::error::Result;
use vellum_row::json::{JsonParts, JsonbKind, parts, plain_text, write_string};
use vellum_row::{Jsonb, JsonbRef, Value, ValueRef, check_length, json};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(0, "#>", "json _text", "json", |a| path_json(a.text(0), &a.texts(1), false)),
    strict(0, "#>>", "json _text", "text", |a| path_json(a.text(0), &a.texts(1), true)),
    strict(0, "#>", "jsonb _text", "jsonb", |a| path_jsonb(a.jsonb(0)?, &a.texts(1), false)),
    strict(0, "#>>", "jsonb _text", "text", |a| path_jsonb(a.jsonb(0)?, &a.texts(1), true)),
    strict(3951, "json_extract_path", "json text*", "json", |a| path_json(a.text(0), &names(a), false)),
    strict(3953, "json_extract_path_text", "json text*", "text", |a| path_json(a.text(0), &names(a), true)),
    strict(3217, "jsonb_extract_path", "jsonb text*", "jsonb", |a| path_jsonb(a.jsonb(0)?, &names(a), false)),
    strict(3940, "jsonb_extract_path_text", "jsonb text*", "text", |a| path_jsonb(a.jsonb(0)?, &names(a), true)),
    strict(0, "@>", "jsonb jsonb", "bool", |a| Ok(Value::Bool(contains(a.jsonb(0)?, a.jsonb(1)?, true)))),
    strict(0, "<@", "jsonb jsonb", "bool", |a| Ok(Value::Bool(contains(a.jsonb(1)?, a.jsonb(0)?, true)))),
    strict(0, "?", "jsonb text", "bool", |a| Ok(Value::Bool(exists(a.jsonb(0)?, a.text(1))))),
    strict(0, "?|", "jsonb _text", "bool", |a| {
        let value = a.jsonb(0)?;
        Ok(Value::Bool(a.texts(1).iter().flatten().any(|key| exists(value, key))))
    }),
    strict(0, "?&", "jsonb _text", "bool", |a| {
        let value = a.jsonb(0)?;
        Ok(Value::Bool(a.texts(1).iter().flatten().all(|key| exists(value, key))))
    }),
    strict(4046, "jsonb_contains", "jsonb jsonb", "bool", |a| Ok(Value::Bool(contains(a.jsonb(0)?, a.jsonb(1)?, true)))),
    strict(4047, "jsonb_exists", "jsonb text", "bool", |a| Ok(Value::Bool(exists(a.jsonb(0)?, a.text(1))))),
    strict(3956, "json_array_length", "json", "int4", |a| match parts(a.text(0), false)? {
        JsonParts::Array(items) => Ok(Value::Int4(items.len() as i32)),
        JsonParts::Object(_) => Err(invalid("cannot get array length of a non-array")),
        JsonParts::Scalar(_) => Err(invalid("cannot get array length of a scalar")),
    }),
    strict(3207, "jsonb_array_length", "jsonb", "int4", |a| match a.jsonb(0)?.kind() {
        Some(JsonbKind::Array(array)) => Ok(Value::Int4(array.len() as i32)),
        Some(JsonbKind::Object(_)) => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }),
    strict(3968, "json_typeof", "json", "text", |a| Ok(Value::text(match parts(a.text(0), false)? {
        JsonParts::Array(_) => "array",
        JsonParts::Object(_) => "object",
        JsonParts::Scalar(name) => name,
    }))),
    strict(3210, "jsonb_typeof", "jsonb", "text", |a| Ok(Value::text(match a.jsonb(0)?.kind() {
        None | Some(JsonbKind::Null) => "null",
        Some(JsonbKind::Bool(_)) => "boolean",
        Some(JsonbKind::Number(_)) => "number",
        Some(JsonbKind::String(_)) => "string",
        Some(JsonbKind::Array(_)) => "array",
        Some(JsonbKind::Object(_)) => "object",
    }))),
    strict(3306, "jsonb_pretty", "jsonb", "text", |a| {
        let mut out = String::new();
        pretty(a.jsonb(0)?, 0, &mut out)?;
        Ok(Value::text(out))
    }),
    strict(3153, "array_to_json", "anyarray", "json", |a| Ok(json::of(a.at(0), false, a.settings)?)),
    strict(3154, "array_to_json", "anyarray bool", "json", |a| {
        let plain = json::of(a.at(0), false, a.settings)?;
        Ok(by_lines(&plain, a.truth(1)))
    }),
    strict(0, "%json_lines", "json bool", "json", |a| Ok(by_lines(&a.at(0).to_value(), a.truth(1)))),
    lenient(0, "%row_to_json", "any*", "json", row),
    strict(3202, "json_object", "_text", "json", |a| object(a, false)),
    strict(3263, "jsonb_object", "_text", "jsonb", |a| object(a, true)),
    strict(3203, "json_object", "_text _text", "json", |a| object(a, false)),
    strict(3264, "jsonb_object", "_text _text", "jsonb", |a| object(a, true)),
];

/// A JSON value with its outermost elements in lines of their own, if that is wanted.
fn by_lines(json: &Value, wanted: bool) -> Value {
    let text = match json {
        Value::Json(text) if wanted => text,
        other => return other.clone(),
    };
    let (mut out, mut depth, mut quoted) = (String::with_capacity(text.len()), 0usize, false);
    let mut escaped = false;
    for char in text.chars() {
        out.push(char);
        match char {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 1 => out.push_str("\n "),
            _ => {}
        }
    }
    Value::Json(out.into())
}

fn names(a: &Arguments<'_>) -> Vec<Option<String>> {
    (1..a.len())
        .map(|number| Some(a.text(number).to_owned()))
        .collect()
}

fn shown(text: Option<String>) -> Value {
    text.map_or(Value::Null, Value::text)
}

/// The number that a step of a path is: blanks may be in front of it.
pub(super) fn index(step: &str) -> Option<i32> {
    step.trim_start().parse().ok()
}

fn path_json(text: &str, path: &[Option<String>], as_text: bool) -> Result<Value> {
    let path: Option<Vec<&str>> = path.iter().map(Option::as_deref).collect();
    let Some(path) = path else {
        return Ok(Value::Null);
    };
    Ok(match json::at_path(text, &path, index)? {
        None => Value::Null,
        Some(found) if as_text => shown(plain_text(found)?),
        Some(found) => Value::Json(found.into()),
    })
}

/// What a step leads to.
pub(super) fn step_into<'a>(value: JsonbRef<'a>, step: &str) -> Option<JsonbRef<'a>> {
    match value.kind()? {
        JsonbKind::Object(object) => object.get(step),
        JsonbKind::Array(_) => value.element(index(step)?),
        _ => None,
    }
}

fn path_jsonb(value: JsonbRef<'_>, path: &[Option<String>], as_text: bool) -> Result<Value> {
    let mut at = value;
    for step in path {
        let found = step.as_ref().and_then(|step| step_into(at, step));
        match found {
            Some(found) => at = found,
            None => return Ok(Value::Null),
        }
    }
    Ok(if as_text {
        shown(at.as_text()?)
    } else {
        ValueRef::Jsonb(at).to_value()
    })
}

/// Whether all that is in one value is in the other, at its place.
fn contains(whole: JsonbRef<'_>, part: JsonbRef<'_>, top: bool) -> bool {
    match (whole.kind(), part.kind()) {
        (Some(JsonbKind::Object(whole)), Some(JsonbKind::Object(part))) => {
            (0..part.len()).all(|number| {
                let pair = part.key(number).zip(part.value(number));
                let own = pair.and_then(|(key, value)| Some((whole.get(key)?, value)));
                own.is_some_and(|(own, value)| contains(own, value, false))
            })
        }
        (Some(JsonbKind::Array(whole)), Some(JsonbKind::Array(part))) => (0..part.len())
            .filter_map(|number| part.get(number))
            .all(|value| {
                let mut own = (0..whole.len()).filter_map(|number| whole.get(number));
                own.any(|own| contains(own, value, false))
            }),
        // An array contains what is one of its elements, at the top alone.
        (Some(JsonbKind::Array(whole)), Some(_)) if top && !is_object(part) => {
            let mut own = (0..whole.len()).filter_map(|number| whole.get(number));
            own.any(|own| contains(own, part, false))
        }
        (Some(JsonbKind::Array(_) | JsonbKind::Object(_)), _)
        | (_, Some(JsonbKind::Array(_) | JsonbKind::Object(_))) => false,
        _ => whole.compare(part).is_eq(),
    }
}

fn is_object(value: JsonbRef<'_>) -> bool {
    matches!(value.kind(), Some(JsonbKind::Object(_)))
}

/// Whether a text is a key, or an element that is a string.
fn exists(value: JsonbRef<'_>, key: &str) -> bool {
    let is =
        |value: JsonbRef<'_>| matches!(value.kind(), Some(JsonbKind::String(text)) if text == key);
    match value.kind() {
        Some(JsonbKind::Object(object)) => object.get(key).is_some(),
        Some(JsonbKind::Array(array)) => (0..array.len())
            .filter_map(|number| array.get(number))
            .any(is),
        _ => is(value),
    }
}

fn pretty(value: JsonbRef<'_>, depth: usize, out: &mut String) -> Result<()> {
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
        check_length(out.len())
    };
    match value.kind() {
        Some(JsonbKind::Array(array)) => {
            out.push('[');
            for number in 0..array.len() {
                if number > 0 {
                    out.push(',');
                }
                line(depth + 1, out)?;
                if let Some(item) = array.get(number) {
                    pretty(item, depth + 1, out)?;
                }
            }
            line(depth, out)?;
            out.push(']');
        }
        Some(JsonbKind::Object(object)) => {
            out.push('{');
            for number in 0..object.len() {
                if number > 0 {
                    out.push(',');
                }
                line(depth + 1, out)?;
                write_string(object.key(number).unwrap_or_default(), out);
                out.push_str(": ");
                if let Some(item) = object.value(number) {
                    pretty(item, depth + 1, out)?;
                }
            }
            line(depth, out)?;
            out.push('}');
        }
        _ => value.write(out)?,
    }
    Ok(())
}

/// An object of names and values, one behind the other, without blanks.
fn row(a: &Arguments<'_>) -> Result<Value> {
    let mut out = String::from("{");
    for number in (0..a.len()).step_by(2) {
        if number > 0 {
            out.push(',');
        }
        write_string(a.text(number), &mut out);
        out.push(':');
        json::append(a.at(number + 1), a.settings, &mut out)?;
    }
    out.push('}');
    Ok(Value::Json(out.into()))
}

/// An object of texts: names and values in turn, or in an array each.
fn object(a: &Arguments<'_>, binary: bool) -> Result<Value> {
    let first = a.texts(0);
    let dimensions: Vec<i32> = a
        .array(0)
        .into_iter()
        .flat_map(|array| array.dimensions().map(|one| one.length).collect::<Vec<_>>())
        .collect();
    let pairs: Vec<(Option<String>, Option<String>)> = if a.len() > 1 {
        let second = a.texts(1);
        if first.len() != second.len() {
            return Err(fault("2202E", "mismatched array dimensions"));
        }
        first.into_iter().zip(second).collect()
    } else {
        match dimensions.as_slice() {
            [_, 2] | [] => {}
            [length] if length % 2 == 1 => {
                return Err(fault("2202E", "array must have even number of elements"));
            }
            [_] => {}
            [_, _] => return Err(fault("2202E", "array must have two columns")),
            _ => return Err(fault("2202E", "wrong number of array subscripts")),
        }
        first
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect()
    };
    let mut out = String::from("{");
    for (number, (key, value)) in pairs.into_iter().enumerate() {
        let key = key.ok_or_else(|| fault("22004", "null value not allowed for object key"))?;
        if number > 0 {
            out.push_str(", ");
        }
        write_string(&key, &mut out);
        out.push_str(" : ");
        match value {
            Some(value) => write_string(&value, &mut out),
            None => out.push_str("null"),
        }
        check_length(out.len())?;
    }
    out.push('}');
    Ok(if binary {
        Value::Jsonb(Jsonb::parse(&out)?)
    } else {
        Value::Json(out.into())
    })
}

// Rows of functions that return sets.

/// The elements of an array.
pub(super) fn elements(
    value: ValueRef<'_>,
    as_text: bool,
    each: &mut dyn FnMut(Value) -> Result<()>,
) -> Result<()> {
    match value {
        ValueRef::Json(text) => match parts(text, as_text)? {
            JsonParts::Array(items) => items.into_iter().try_for_each(|item| {
                each(if as_text {
                    shown(plain_text(item)?)
                } else {
                    Value::Json(item.into())
                })
            }),
            JsonParts::Object(_) => Err(invalid("cannot call json_array_elements on a non-array")),
            JsonParts::Scalar(_) => Err(invalid("cannot call json_array_elements on a scalar")),
        },
        ValueRef::Jsonb(value) => match value.kind() {
            Some(JsonbKind::Array(array)) => {
                let mut items = (0..array.len()).filter_map(|number| array.get(number));
                items.try_for_each(|item| each(part(item, as_text)?))
            }
            Some(JsonbKind::Object(_)) => Err(invalid("cannot extract elements from an object")),
            _ => Err(invalid("cannot extract elements from a scalar")),
        },
        _ => Ok(()),
    }
}

fn part(value: JsonbRef<'_>, as_text: bool) -> Result<Value> {
    Ok(if as_text {
        shown(value.as_text()?)
    } else {
        ValueRef::Jsonb(value).to_value()
    })
}

/// The keys of an object, and their values.
pub(super) fn pairs(
    value: ValueRef<'_>,
    as_text: bool,
    name: &str,
    each: &mut dyn FnMut(Vec<Value>) -> Result<()>,
) -> Result<()> {
    let wrong = |what: &str| invalid(format!("cannot call {name} on {what}"));
    match value {
        ValueRef::Json(text) => match parts(text, true)? {
            JsonParts::Object(pairs) => pairs.into_iter().try_for_each(|(key, value)| {
                let value = if as_text {
                    shown(plain_text(value)?)
                } else {
                    Value::Json(value.into())
                };
                each(vec![Value::text(key), value])
            }),
            JsonParts::Array(_) if name.ends_with("keys") => Err(wrong("an array")),
            JsonParts::Array(_) => Err(invalid("cannot deconstruct an array as an object")),
            JsonParts::Scalar(_) if name.ends_with("keys") => Err(wrong("a scalar")),
            JsonParts::Scalar(_) => Err(invalid("cannot deconstruct a scalar")),
        },
        ValueRef::Jsonb(value) => match value.kind() {
            Some(JsonbKind::Object(object)) => {
                let mut all =
                    (0..object.len()).filter_map(|at| object.key(at).zip(object.value(at)));
                all.try_for_each(|(key, value)| each(vec![Value::text(key), part(value, as_text)?]))
            }
            Some(JsonbKind::Array(_)) if name.ends_with("keys") => Err(wrong("an array")),
            _ if name.ends_with("keys") => Err(wrong("a scalar")),
            _ => Err(wrong("a non-object")),
        },
        _ => Ok(()),
    }
}
