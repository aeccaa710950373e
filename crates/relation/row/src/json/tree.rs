//! `jsonb` in bytes.
//!
//! Layout (little-endian): a node is `u8 tag` and then
//!
//! ```text
//! 0 null, 1 false, 2 true   nothing
//! 3 number                  a stored number (numeric/stored)
//! 4 string                  its UTF-8
//! 5 array                   u32 count; for each element u32 end, counted from behind the ends; elements
//! 6 object                  u32 count; for each pair u32 end of the key, u32 end of the value, both counted
//!                           from behind the ends; for each pair its key's UTF-8, then for each its value
//! ```
//!
//! Keys are unique and ordered by length, then by bytes, as PostgreSQL keeps them; so a key is found by
//! halving. A node's length is its parent's knowledge.
//!
//! Bytes come from disk: whatever they are, looking into them ends in an answer or in `None`.

use super::parse::{Node, What, parse};
use super::{Jsonb, JsonbRef};
use crate::error::{Result, SqlError, SqlState};
use crate::numeric::{Numeric, NumericRef};
use std::cmp::Ordering;

pub(super) const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const STRING: u8 = 4;
pub(super) const ARRAY: u8 = 5;
pub(super) const OBJECT: u8 = 6;

/// What a `jsonb` value is.
#[derive(Clone, Copy, Debug)]
pub enum JsonbKind<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(NumericRef<'a>),
    /// A string.
    String(&'a str),
    /// An array.
    Array(JsonbArray<'a>),
    /// An object.
    Object(JsonbObject<'a>),
}

/// The elements of an array.
#[derive(Clone, Copy, Debug)]
pub struct JsonbArray<'a> {
    count: usize,
    ends: &'a [u8],
    data: &'a [u8],
}

/// The pairs of an object.
#[derive(Clone, Copy, Debug)]
pub struct JsonbObject<'a> {
    count: usize,
    ends: &'a [u8],
    data: &'a [u8],
}

fn u32_at(bytes: &[u8], index: usize) -> Option<usize> {
    let bytes = bytes.get(index * 4..index * 4 + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

/// The order of keys within an object.
pub(super) fn compare_keys(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cold]
fn too_big() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT, "jsonb value is too big")
}

impl Jsonb {
    /// Reads JSON text. Of equal keys the last one counts.
    ///
    /// # Errors
    /// 22P02 for other text, 22P05 for `\u0000`, 22003 for a number too long, 54001 for too deep
    /// nesting.
    pub fn parse(text: &str) -> Result<Self> {
        let node = parse(text, true)?;
        let mut out = Vec::with_capacity(text.len() + 16);
        write_node(node, &mut out)?;
        Ok(Self(out.into()))
    }

    /// The `jsonb` string of a text.
    pub fn from_text(text: &str) -> Self {
        let mut out = vec![STRING];
        out.extend_from_slice(text.as_bytes());
        Self(out.into())
    }
}

fn put_end(out: &mut [u8], at: usize, end: usize) -> Result<()> {
    let end = u32::try_from(end).map_err(|_| too_big())?;
    out[at..at + 4].copy_from_slice(&end.to_le_bytes());
    Ok(())
}

fn write_node(node: Node<'_>, out: &mut Vec<u8>) -> Result<()> {
    match node.what {
        What::Null => out.push(NULL),
        What::Bool(value) => out.push(if value { TRUE } else { FALSE }),
        What::Number(text) => {
            out.push(NUMBER);
            Numeric::parse(text)?.as_ref().store(out);
        }
        What::String(text) => {
            out.push(STRING);
            out.extend_from_slice(text.as_bytes());
        }
        What::Array(elements) => {
            out.push(ARRAY);
            let count = u32::try_from(elements.len()).map_err(|_| too_big())?;
            out.extend_from_slice(&count.to_le_bytes());
            let ends = out.len();
            out.resize(ends + elements.len() * 4, 0);
            let data = out.len();
            for (index, element) in elements.into_iter().enumerate() {
                write_node(element, out)?;
                let end = out.len() - data;
                put_end(out, ends + index * 4, end)?;
            }
        }
        What::Object(mut pairs) => {
            // A stable sort keeps equal keys in the order of the text: the last of them counts.
            pairs.sort_by(|(a, _), (b, _)| compare_keys(a, b));
            let mut kept = Vec::with_capacity(pairs.len());
            for pair in pairs {
                if kept.last().is_some_and(|(key, _)| *key == pair.0) {
                    kept.pop();
                }
                kept.push(pair);
            }
            out.push(OBJECT);
            let count = u32::try_from(kept.len()).map_err(|_| too_big())?;
            out.extend_from_slice(&count.to_le_bytes());
            let ends = out.len();
            out.resize(ends + kept.len() * 8, 0);
            let data = out.len();
            for (index, (key, _)) in kept.iter().enumerate() {
                out.extend_from_slice(key.as_bytes());
                let end = out.len() - data;
                put_end(out, ends + index * 8, end)?;
            }
            for (index, (_, value)) in kept.into_iter().enumerate() {
                write_node(value, out)?;
                let end = out.len() - data;
                put_end(out, ends + index * 8 + 4, end)?;
            }
        }
    }
    Ok(())
}

impl<'a> JsonbRef<'a> {
    /// What the value is; `None` if the bytes are damaged here.
    pub fn kind(self) -> Option<JsonbKind<'a>> {
        let (tag, body) = self.0.split_first()?;
        Some(match (*tag, body) {
            (NULL, []) => JsonbKind::Null,
            (FALSE, []) => JsonbKind::Bool(false),
            (TRUE, []) => JsonbKind::Bool(true),
            (NUMBER, bytes) => JsonbKind::Number(NumericRef::from_stored(bytes)?),
            (STRING, bytes) => JsonbKind::String(str::from_utf8(bytes).ok()?),
            (ARRAY, bytes) => {
                let count = u32_at(bytes, 0)?;
                let (ends, data) = bytes.get(4..)?.split_at_checked(count.checked_mul(4)?)?;
                JsonbKind::Array(JsonbArray { count, ends, data })
            }
            (OBJECT, bytes) => {
                let count = u32_at(bytes, 0)?;
                let (ends, data) = bytes.get(4..)?.split_at_checked(count.checked_mul(8)?)?;
                JsonbKind::Object(JsonbObject { count, ends, data })
            }
            _ => return None,
        })
    }
}

impl<'a> JsonbArray<'a> {
    /// How many elements there are.
    pub fn len(self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The element at an index.
    pub fn get(self, index: usize) -> Option<JsonbRef<'a>> {
        if index >= self.count {
            return None;
        }
        let start = if index == 0 {
            0
        } else {
            u32_at(self.ends, index - 1)?
        };
        self.data
            .get(start..u32_at(self.ends, index)?)
            .map(JsonbRef)
    }
}

impl<'a> JsonbObject<'a> {
    /// How many pairs there are.
    pub fn len(self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The key at an index, in the order of keys.
    pub fn key(self, index: usize) -> Option<&'a str> {
        if index >= self.count {
            return None;
        }
        let start = if index == 0 {
            0
        } else {
            u32_at(self.ends, index * 2 - 2)?
        };
        let end = u32_at(self.ends, index * 2)?;
        str::from_utf8(self.data.get(start..end)?).ok()
    }

    /// The value at an index, in the order of keys.
    pub fn value(self, index: usize) -> Option<JsonbRef<'a>> {
        if index >= self.count {
            return None;
        }
        // The first value begins where the last key ends.
        let before = if index == 0 {
            self.count * 2 - 2
        } else {
            index * 2 - 1
        };
        let start = u32_at(self.ends, before)?;
        let end = u32_at(self.ends, index * 2 + 1)?;
        self.data.get(start..end).map(JsonbRef)
    }

    /// The value of a key. Halving; no allocation.
    pub fn get(self, key: &str) -> Option<JsonbRef<'a>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match compare_keys(self.key(middle)?, key) {
                Ordering::Equal => return self.value(middle),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}
