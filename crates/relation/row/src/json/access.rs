//! `->` and `->>` of `json` and `jsonb`.
//!
//! The outer `None` of what is looked for and not there is SQL's null.

use super::JsonbRef;
use super::compose::{JsonParts, parts, plain_text};
use super::parse::parse;
use super::tree::JsonbKind;
use crate::error::Result;

/// The index of an element, counted from the end if it is negative.
pub(super) fn element(index: i32, count: usize) -> Option<usize> {
    let index = i64::from(index);
    let count = i64::try_from(count).ok()?;
    usize::try_from(if index < 0 { count + index } else { index }).ok()
}

impl<'a> JsonbRef<'a> {
    /// `jsonb -> text`: the value of a key.
    pub fn field(self, key: &str) -> Option<JsonbRef<'a>> {
        match self.kind()? {
            JsonbKind::Object(object) => object.get(key),
            _ => None,
        }
    }

    /// `jsonb -> integer`: the element at an index, from the end if it is negative.
    pub fn element(self, index: i32) -> Option<JsonbRef<'a>> {
        match self.kind()? {
            JsonbKind::Array(array) => array.get(element(index, array.len())?),
            JsonbKind::Object(_) => None,
            // A scalar is an array of one for this operator alone.
            _ => (element(index, 1) == Some(0)).then_some(self),
        }
    }

    /// The value as text, as `->>` gives it: a string without quotes; `None` for `null`.
    ///
    /// # Errors
    /// 54000 for a text that is longer than a value may be.
    pub fn as_text(self) -> Result<Option<String>> {
        Ok(match self.kind() {
            None | Some(JsonbKind::Null) => None,
            Some(JsonbKind::String(text)) => Some(text.to_owned()),
            Some(_) => {
                let mut out = String::new();
                self.write(&mut out)?;
                Some(out)
            }
        })
    }
}

/// Whether the text is JSON.
///
/// # Errors
/// 22P02 if not, 54001 if it is nested too deeply.
pub fn check(text: &str) -> Result<()> {
    parse(text, false, &mut ())
}

/// `json -> text`: the text of a key's value as it was written; of equal keys the last one counts.
///
/// # Errors
/// As [`super::Jsonb::parse`].
pub fn field<'a>(text: &'a str, key: &str) -> Result<Option<&'a str>> {
    Ok(match parts(text, true)? {
        JsonParts::Object(pairs) => {
            let mut pairs = pairs.into_iter().rev();
            pairs.find(|(own, _)| own == key).map(|(_, value)| value)
        }
        _ => None,
    })
}

/// `json ->> text`: the value of a key as text.
///
/// # Errors
/// As [`super::Jsonb::parse`].
pub fn field_text(text: &str, key: &str) -> Result<Option<String>> {
    field(text, key)?.map_or(Ok(None), plain_text)
}

/// `json -> integer`: the text of the element at an index, from the end if it is negative.
///
/// # Errors
/// As [`super::Jsonb::parse`].
pub fn array_element(text: &str, index: i32) -> Result<Option<&str>> {
    Ok(match parts(text, true)? {
        JsonParts::Array(items) => {
            let at = element(index, items.len());
            at.and_then(|at| items.get(at).copied())
        }
        _ => None,
    })
}

/// `json ->> integer`: the element at an index as text.
///
/// # Errors
/// As [`super::Jsonb::parse`].
pub fn array_element_text(text: &str, index: i32) -> Result<Option<String>> {
    array_element(text, index)?.map_or(Ok(None), plain_text)
}
