//! `jsonb` made of parts of other values, and what is in the text of `json`.

use super::parse::{DEPTH_MAX, Listener, Scalar, parse, too_deep};
use super::tree::compare_keys;
use super::write::write_string;
use super::{Jsonb, JsonbKind, JsonbRef};
use crate::error::{Result, SqlError, SqlState};
use std::borrow::Cow;
use std::ops::Range;

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
    Object(Vec<(Cow<'a, str>, &'a str)>),
}

/// What stands outermost in a text.
struct Outermost<'a> {
    text: &'a str,
    depth: usize,
    /// Where the value begins that is being told.
    start: usize,
    scalar: Option<Scalar<'a>>,
    is_object: bool,
    /// The value itself, at first; then those that are in it, and in an object their names.
    whole: &'a str,
    names: Vec<Cow<'a, str>>,
    values: Vec<&'a str>,
}

impl<'a> Outermost<'a> {
    /// # Errors
    /// As [`parse`].
    fn of(text: &'a str, decode: bool) -> Result<Self> {
        let mut found = Self {
            text,
            depth: 0,
            start: 0,
            scalar: None,
            is_object: false,
            whole: text,
            names: Vec::new(),
            values: Vec::new(),
        };
        parse(text, decode, &mut found)?;
        Ok(found)
    }
}

impl<'a> Listener<'a> for Outermost<'a> {
    fn scalar(&mut self, value: Scalar<'a>, span: Range<usize>) -> Result<()> {
        match self.depth {
            0 => (self.scalar, self.whole) = (Some(value), &self.text[span]),
            1 => self.values.push(&self.text[span]),
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, is_object: bool, start: usize) -> Result<()> {
        match self.depth {
            0 => (self.is_object, self.whole) = (is_object, &self.text[start..]),
            1 => self.start = start,
            _ => {}
        }
        self.depth += 1;
        Ok(())
    }

    fn key(&mut self, key: Cow<'a, str>) -> Result<()> {
        if self.depth == 1 {
            self.names.push(key);
        }
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<()> {
        self.depth -= 1;
        if self.depth == 1 {
            self.values.push(&self.text[self.start..end]);
        }
        Ok(())
    }
}

/// Takes a JSON text apart. With `decode` its strings must be text, wherever they stand: names are not read without.
///
/// # Errors
/// 22P02 for other text, 54001 if it is nested too deeply; with `decode` as [`Jsonb::parse`].
pub fn parts(text: &str, decode: bool) -> Result<JsonParts<'_>> {
    let found = Outermost::of(text, decode)?;
    Ok(match found.scalar {
        Some(Scalar::Null) => JsonParts::Scalar("null"),
        Some(Scalar::Bool(_)) => JsonParts::Scalar("boolean"),
        Some(Scalar::Number(_)) => JsonParts::Scalar("number"),
        Some(Scalar::String(_)) => JsonParts::Scalar("string"),
        None if found.is_object => {
            JsonParts::Object(found.names.into_iter().zip(found.values).collect())
        }
        None => JsonParts::Array(found.values),
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
    let mut found = Outermost::of(text, true)?;
    for step in path {
        let at = match (&found.scalar, found.is_object) {
            (Some(_), _) => None,
            (None, true) => found.names.iter().rposition(|name| name == step),
            (None, false) => {
                index(step).and_then(|index| super::access::element(index, found.values.len()))
            }
        };
        let Some(value) = at.and_then(|at| found.values.get(at)) else {
            return Ok(None);
        };
        found = Outermost::of(value, true)?;
    }
    Ok(Some(found.whole.trim_end()))
}

/// Writes a JSON text without blanks and null members.
struct WithoutNulls<'a> {
    text: &'a str,
    out: String,
    /// Whether what comes is the first in its array or object.
    first: bool,
    /// Of the value that comes.
    key: Option<Cow<'a, str>>,
}

impl WithoutNulls<'_> {
    /// Writes what stands in front of a value.
    fn begin(&mut self) {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        if let Some(key) = self.key.take() {
            write_string(&key, &mut self.out);
            self.out.push(':');
        }
    }
}

impl<'a> Listener<'a> for WithoutNulls<'a> {
    fn scalar(&mut self, value: Scalar<'a>, span: Range<usize>) -> Result<()> {
        if matches!(value, Scalar::Null) && self.key.take().is_some() {
            return Ok(());
        }
        self.begin();
        match value {
            Scalar::String(string) => write_string(&string, &mut self.out),
            _ => self.out.push_str(&self.text[span]),
        }
        Ok(())
    }

    fn open(&mut self, is_object: bool, _: usize) -> Result<()> {
        self.begin();
        self.out.push(if is_object { '{' } else { '[' });
        self.first = true;
        Ok(())
    }

    fn key(&mut self, key: Cow<'a, str>) -> Result<()> {
        self.key = Some(key);
        Ok(())
    }

    fn close(&mut self, end: usize) -> Result<()> {
        self.out.push_str(&self.text[end - 1..end]);
        self.first = false;
        Ok(())
    }
}

/// The same JSON without members that are null, and without blanks.
///
/// # Errors
/// As [`Jsonb::parse`].
pub fn without_nulls(text: &str) -> Result<String> {
    let mut written = WithoutNulls {
        text,
        out: String::with_capacity(text.len()),
        first: true,
        key: None,
    };
    parse(text, true, &mut written)?;
    Ok(written.out)
}

/// A JSON text as `->>` shows it: a string without quotes; `None` for `null`.
///
/// # Errors
/// As [`Jsonb::parse`].
pub fn plain_text(text: &str) -> Result<Option<String>> {
    let found = Outermost::of(text, true)?;
    Ok(match found.scalar {
        Some(Scalar::Null) => None,
        Some(Scalar::String(string)) => Some(string.into_owned()),
        _ => Some(found.whole.trim_end().to_owned()),
    })
}
