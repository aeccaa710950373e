//! JSON of other values: `to_json` and what is built of it.

use super::Jsonb;
use super::write::write_string;
use crate::error::Result;
use crate::settings::{DateStyle, Settings};
use crate::text::show;
use crate::value::{VALUE_BYTES_MAX, Value, ValueRef, check_length};

/// Appends a value as JSON: numbers and truth values as they are, JSON itself unchanged, arrays as arrays, anything else as the string of its text; dates
/// and instants in the form of ISO 8601, whatever the settings.
///
/// # Errors
/// 54000 if `out` gets longer than a value may be.
pub fn append(value: ValueRef<'_>, settings: &Settings, out: &mut String) -> Result<()> {
    write(value, settings, out);
    check_length(out.len())
}

/// The same, which ends early once `out` is longer than a value may be.
fn write(value: ValueRef<'_>, settings: &Settings, out: &mut String) {
    match value {
        ValueRef::Null => out.push_str("null"),
        ValueRef::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        ValueRef::Int2(_) | ValueRef::Int4(_) | ValueRef::Int8(_) | ValueRef::Jsonb(_) => {
            show(value, settings, out);
        }
        ValueRef::Float4(_) | ValueRef::Float8(_) | ValueRef::Numeric(_) => {
            let mut text = String::new();
            show(value, settings, &mut text);
            // What is no number in JSON: NaN, Infinity.
            if text.ends_with(|last: char| last.is_ascii_digit()) {
                out.push_str(&text);
            } else {
                write_string(&text, out);
            }
        }
        ValueRef::Json(text) => out.push_str(text),
        ValueRef::Date(_) | ValueRef::Timestamp(_) | ValueRef::Timestamptz(_) => {
            let mut text = String::new();
            let iso = Settings {
                date_style: DateStyle::Iso,
                ..settings.clone()
            };
            show(value, &iso, &mut text);
            // Behind a date alone only BC may stand.
            if !matches!(value, ValueRef::Date(_)) {
                text = text.replacen(' ', "T", 1);
            }
            write_string(&with_zone_minutes(text, value), out);
        }
        ValueRef::Array(array) => {
            let lengths: Vec<usize> = array
                .dimensions()
                .map(|one| usize::try_from(one.length).unwrap_or(0))
                .collect();
            nested(&lengths, &mut array.items(), settings, out);
        }
        other => {
            let mut text = String::new();
            show(other, settings, &mut text);
            write_string(&text, out);
        }
    }
}

/// Minutes belong to the offset of a zone in ISO 8601.
fn with_zone_minutes(mut text: String, value: ValueRef<'_>) -> String {
    let sign = text.len().checked_sub(3).map(|at| text.as_bytes()[at]);
    if matches!(value, ValueRef::Timestamptz(_)) && matches!(sign, Some(b'+' | b'-')) {
        text.push_str(":00");
    }
    text
}

fn nested(
    lengths: &[usize],
    items: &mut dyn Iterator<Item = Value>,
    settings: &Settings,
    out: &mut String,
) {
    out.push('[');
    if let Some((first, rest)) = lengths.split_first() {
        for number in 0..*first {
            if out.len() > VALUE_BYTES_MAX {
                return;
            }
            if number > 0 {
                out.push(',');
            }
            if rest.is_empty() {
                let item = items.next().unwrap_or(Value::Null);
                write(item.as_ref(), settings, out);
            } else {
                nested(rest, items, settings, out);
            }
        }
    }
    out.push(']');
}

/// A text that is JSON, as one of the two types.
///
/// # Errors
/// As [`Jsonb::parse`], where that is to be made.
pub fn of_text(text: String, binary: bool) -> Result<Value> {
    Ok(if binary {
        Value::Jsonb(Jsonb::parse(&text)?)
    } else {
        Value::Json(text.into())
    })
}

/// `to_json`, or `to_jsonb`.
///
/// # Errors
/// `22003`, `22P05`, `54001` for what no `jsonb` can hold; `54000` for what is longer than a value may be.
pub fn of(value: ValueRef<'_>, binary: bool, settings: &Settings) -> Result<Value> {
    let mut text = String::new();
    append(value, settings, &mut text)?;
    of_text(text, binary)
}

/// A JSON array of values.
///
/// # Errors
/// `22003`, `22P05`, `54001` for what no `jsonb` can hold; `54000` for what is longer than a value may be.
pub fn array_of(
    items: &[Value],
    between: &str,
    binary: bool,
    settings: &Settings,
) -> Result<Value> {
    let mut text = String::from("[");
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            text.push_str(between);
        }
        append(item.as_ref(), settings, &mut text)?;
    }
    text.push(']');
    of_text(text, binary)
}

/// A JSON object of names and values, one behind the other. Of a `jsonb` the last of equal names counts.
///
/// # Errors
/// `22003`, `22P05`, `54001` for what no `jsonb` can hold; `54000` for what is longer than a value may be.
pub fn object_of(pairs: &[Value], binary: bool, settings: &Settings) -> Result<Value> {
    let mut text = String::from("{");
    members(pairs, settings, &mut text)?;
    text.push('}');
    of_text(text, binary)
}

fn members(pairs: &[Value], settings: &Settings, text: &mut String) -> Result<()> {
    for (number, pair) in pairs.chunks(2).enumerate() {
        if number > 0 {
            text.push_str(", ");
        }
        let value = pair.get(1).map_or(ValueRef::Null, Value::as_ref);
        append_member(pair[0].as_ref(), value, settings, text)?;
    }
    Ok(())
}

/// Appends a name and its value.
///
/// # Errors
/// 54000 if `text` gets longer than a value may be.
pub fn append_member(
    name: ValueRef<'_>,
    value: ValueRef<'_>,
    settings: &Settings,
    text: &mut String,
) -> Result<()> {
    let mut shown = String::new();
    append(name, settings, &mut shown)?;
    if shown.starts_with('"') {
        text.push_str(&shown);
    } else {
        write_string(&shown, text);
    }
    text.push_str(" : ");
    append(value, settings, text)
}
