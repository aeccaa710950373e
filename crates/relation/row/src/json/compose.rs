//! `jsonb` made of parts of other values, and what is in the text of `json`.

use super::parse::{DEPTH_MAX, Node, What, parse, too_deep};
use super::tree::compare_keys;
use super::write::write_string;
use super::{Jsonb, JsonbKind, JsonbRef};
use crate::error::{Result, SqlError, SqlState};

fn end(at: usize) -> Result<[u8; 4]> {
    let at = u32::try_from(at);
    let at = at.map_err(|_| SqlError::new(SqlState::PROGRAM_LIMIT, "jsonb value is too big"))?;
    Ok(at.to_le_bytes())
}

/// The least bytes that a level takes: tag, count, and the end of one element.
const LEVEL_BYTES: usize = 9;

/// Whether a value has more than `most` levels of arrays and objects. Looks into none that is too short for that.
fn is_deeper(value: JsonbRef<'_>, most: usize) -> bool {
    if value.0.len() / LEVEL_BYTES < most {
        return false;
    }
    let deeper = |part: Option<JsonbRef<'_>>| part.is_some_and(|part| is_deeper(part, most - 1));
    match value.kind() {
        Some(JsonbKind::Array(array)) => {
            most == 0 || (0..array.len()).any(|at| deeper(array.get(at)))
        }
        Some(JsonbKind::Object(object)) => {
            most == 0 || (0..object.len()).any(|at| deeper(object.value(at)))
        }
        _ => false,
    }
}

/// Refuses parts of a value that would be nested deeper than a text may be: who walks over values goes as deep.
fn check_parts<'a>(mut parts: impl Iterator<Item = JsonbRef<'a>>) -> Result<()> {
    if parts.any(|part| is_deeper(part, DEPTH_MAX - 1)) {
        return Err(too_deep());
    }
    Ok(())
}

impl Jsonb {
    /// `null`
    pub fn null() -> Self {
        Self([super::tree::NULL].into())
    }

    /// An array of values.
    ///
    /// # Errors
    /// 54000 if it is too big, 54001 if it is nested too deep.
    pub fn array(items: &[JsonbRef<'_>]) -> Result<Self> {
        check_parts(items.iter().copied())?;
        let mut out = vec![super::tree::ARRAY];
        out.extend_from_slice(&end(items.len())?);
        let mut at = 0;
        for item in items {
            at += item.0.len();
            out.extend_from_slice(&end(at)?);
        }
        items.iter().for_each(|item| out.extend_from_slice(item.0));
        Ok(Self(out.into()))
    }

    /// An object of pairs. Of equal keys the last one counts.
    ///
    /// # Errors
    /// 54000 if it is too big, 54001 if it is nested too deep.
    pub fn object(mut pairs: Vec<(&str, JsonbRef<'_>)>) -> Result<Self> {
        check_parts(pairs.iter().map(|(_, value)| *value))?;
        // A stable sort keeps equal keys in their order.
        pairs.sort_by(|(a, _), (b, _)| compare_keys(a, b));
        let mut kept: Vec<(&str, JsonbRef<'_>)> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            if kept.last().is_some_and(|(key, _)| *key == pair.0) {
                kept.pop();
            }
            kept.push(pair);
        }
        let mut out = vec![super::tree::OBJECT];
        out.extend_from_slice(&end(kept.len())?);
        let mut key_at = 0;
        let mut value_at: usize = kept.iter().map(|(key, _)| key.len()).sum();
        for (key, value) in &kept {
            key_at += key.len();
            value_at += value.0.len();
            out.extend_from_slice(&end(key_at)?);
            out.extend_from_slice(&end(value_at)?);
        }
        kept.iter()
            .for_each(|(key, _)| out.extend_from_slice(key.as_bytes()));
        kept.iter()
            .for_each(|(_, value)| out.extend_from_slice(value.0));
        Ok(Self(out.into()))
    }
}

/// What is in a JSON text, each part as it was written.
#[derive(Debug)]
pub enum JsonParts<'a> {
    /// Neither an array nor an object: the name of its type.
    Scalar(&'static str),
    /// Elements.
    Array(Vec<&'a str>),
    /// Keys and values, with all duplicates.
    Object(Vec<(String, &'a str)>),
}

/// Takes a JSON text apart.
///
/// # Errors
/// As [`Jsonb::parse`].
pub fn parts(text: &str) -> Result<JsonParts<'_>> {
    let node = parse(text, true)?;
    Ok(match node.what {
        What::Null => JsonParts::Scalar("null"),
        What::Bool(_) => JsonParts::Scalar("boolean"),
        What::Number(_) => JsonParts::Scalar("number"),
        What::String(_) => JsonParts::Scalar("string"),
        What::Array(items) => {
            JsonParts::Array(items.into_iter().map(|item| &text[item.span]).collect())
        }
        What::Object(pairs) => {
            let pairs = pairs.into_iter();
            JsonParts::Object(
                pairs
                    .map(|(key, value)| (key.into_owned(), &text[value.span]))
                    .collect(),
            )
        }
    })
}

/// What a path leads to, as it was written: names of members, numbers of elements (`index` reads these).
///
/// # Errors
/// As [`Jsonb::parse`].
pub fn at_path<'t>(
    text: &'t str,
    path: &[&str],
    index: impl Fn(&str) -> Option<i32>,
) -> Result<Option<&'t str>> {
    let mut node = parse(text, true)?;
    for step in path {
        let found = match node.what {
            What::Object(pairs) => {
                let found = pairs.into_iter().rev().find(|(key, _)| key == step);
                found.map(|(_, value)| value)
            }
            What::Array(mut items) => {
                let at = index(step).and_then(|index| super::access::element(index, items.len()));
                let at = at.filter(|at| *at < items.len());
                at.map(|at| items.swap_remove(at))
            }
            _ => None,
        };
        match found {
            Some(found) => node = found,
            None => return Ok(None),
        }
    }
    Ok(Some(&text[node.span]))
}

/// The same JSON without members that are null, and without blanks.
///
/// # Errors
/// As [`Jsonb::parse`].
pub fn without_nulls(text: &str) -> Result<String> {
    fn write(node: &Node<'_>, text: &str, out: &mut String) {
        match &node.what {
            What::Array(items) => {
                out.push('[');
                for (number, item) in items.iter().enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    write(item, text, out);
                }
                out.push(']');
            }
            What::Object(pairs) => {
                out.push('{');
                let kept = pairs
                    .iter()
                    .filter(|(_, value)| !matches!(value.what, What::Null));
                for (number, (key, value)) in kept.enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    write_string(key, out);
                    out.push(':');
                    write(value, text, out);
                }
                out.push('}');
            }
            What::String(string) => write_string(string, out),
            What::Null | What::Bool(_) | What::Number(_) => out.push_str(&text[node.span.clone()]),
        }
    }
    let mut out = String::with_capacity(text.len());
    write(&parse(text, true)?, text, &mut out);
    Ok(out)
}

/// A JSON text as `->>` shows it: a string without quotes; `None` for `null`.
///
/// # Errors
/// As [`Jsonb::parse`].
pub fn plain_text(text: &str) -> Result<Option<String>> {
    Ok(super::access::plain(parse(text, true)?, text))
}
