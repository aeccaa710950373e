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

use super::parse::{Listener, Scalar, parse};
use super::{Jsonb, JsonbRef};
use crate::error::{Result, SqlError, SqlState};
use crate::numeric::{Numeric, NumericRef};
use crate::value::VALUE_BYTES_MAX;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

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
    compare_key_bytes(a.as_bytes(), b.as_bytes())
}

fn compare_key_bytes(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cold]
fn too_big() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT, "jsonb value is too big")
}

impl Jsonb {
    /// Reads JSON text. Of equal keys the last one counts. Takes no more memory meanwhile than a few times the text and the value.
    ///
    /// # Errors
    /// 22P02 for other text, 22P05 for `\u0000`, 22003 for a number too long, 54000 for a value that would be, 54001 for too deep
    /// nesting.
    pub fn parse(text: &str) -> Result<Self> {
        let mut tape = Tape::default();
        parse(text, true, &mut tape)?;
        let mut out = Vec::with_capacity(tape.bytes.len());
        write_item(&mut tape.bytes.as_slice(), &mut out)?;
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

/// A text's values in its order, before keys are sorted and it is known where parts end.
///
/// Layout (little-endian): a scalar is `u32 length` and its node; an array or object is `u32` [`ARRAY_ITEM`] or [`OBJECT_ITEM`], `u32 count`, `u32 length` and what
/// is in it: values, each behind `u32 length` and its key in an object.
#[derive(Default)]
struct Tape {
    bytes: Vec<u8>,
    /// Arrays and objects that have not ended: where they begin, and how many values they have.
    open: Vec<(usize, usize)>,
}

/// Greater than every length: a tape has no more bytes than a value may have.
const ARRAY_ITEM: u32 = 1 << 30;
const OBJECT_ITEM: u32 = ARRAY_ITEM + 1;
const _: () = assert!(VALUE_BYTES_MAX < ARRAY_ITEM as usize);

/// Bytes in front of what is in an array or object of a tape.
const ITEM_HEADER: usize = 12;

impl Tape {
    /// Another value begins here.
    fn count(&mut self) -> Result<()> {
        if self.bytes.len() > VALUE_BYTES_MAX {
            return Err(too_big());
        }
        if let Some((_, count)) = self.open.last_mut() {
            *count += 1;
        }
        Ok(())
    }

    /// Writes the length of what stands behind a place for it.
    fn end(&mut self, at: usize) -> Result<()> {
        let length = self.bytes.len() - at - 4;
        put_end(&mut self.bytes, at, length)
    }
}

impl<'a> Listener<'a> for Tape {
    fn scalar(&mut self, value: Scalar<'a>, _: Range<usize>) -> Result<()> {
        self.count()?;
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        match value {
            Scalar::Null => self.bytes.push(NULL),
            Scalar::Bool(value) => self.bytes.push(if value { TRUE } else { FALSE }),
            Scalar::Number(text) => {
                self.bytes.push(NUMBER);
                Numeric::parse(text)?.as_ref().store(&mut self.bytes);
            }
            Scalar::String(text) => {
                self.bytes.push(STRING);
                self.bytes.extend_from_slice(text.as_bytes());
            }
        }
        self.end(at)
    }

    fn open(&mut self, is_object: bool, _: usize) -> Result<()> {
        self.count()?;
        self.open.push((self.bytes.len(), 0));
        let item = if is_object { OBJECT_ITEM } else { ARRAY_ITEM };
        self.bytes.extend_from_slice(&item.to_le_bytes());
        self.bytes.extend_from_slice(&[0; ITEM_HEADER - 4]);
        Ok(())
    }

    fn key(&mut self, key: Cow<'a, str>) -> Result<()> {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(key.as_bytes());
        self.end(at)
    }

    fn close(&mut self, _: usize) -> Result<()> {
        let (at, count) = self.open.pop().unwrap_or_default();
        let length = self.bytes.len() - at - ITEM_HEADER;
        put_end(&mut self.bytes, at + 4, count)?;
        put_end(&mut self.bytes, at + 8, length)
    }
}

fn take<'t>(tape: &mut &'t [u8], length: usize) -> &'t [u8] {
    let (taken, rest) = tape.split_at(length);
    *tape = rest;
    taken
}

fn take_word(tape: &mut &[u8]) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(take(tape, 4));
    u32::from_le_bytes(word)
}

/// Takes a value off the beginning of a tape, as it stands there.
fn take_item<'t>(tape: &mut &'t [u8]) -> &'t [u8] {
    let mut rest = *tape;
    let length = match take_word(&mut rest) {
        length if length < ARRAY_ITEM => 4 + length as usize,
        _ => {
            take(&mut rest, 4);
            ITEM_HEADER + take_word(&mut rest) as usize
        }
    };
    take(tape, length)
}

/// Takes a value off the beginning of a tape and writes it.
fn write_item(tape: &mut &[u8], out: &mut Vec<u8>) -> Result<()> {
    let item = take_word(tape);
    if item < ARRAY_ITEM {
        out.extend_from_slice(take(tape, item as usize));
        return Ok(());
    }
    let count = take_word(tape) as usize;
    let length = take_word(tape) as usize;
    let mut inside = take(tape, length);
    if item == ARRAY_ITEM {
        let (ends, data) = begin(ARRAY, count, 4, out)?;
        for index in 0..count {
            write_item(&mut inside, out)?;
            let end = out.len() - data;
            put_end(out, ends + index * 4, end)?;
        }
        return Ok(());
    }
    let mut pairs = Vec::with_capacity(count);
    for _ in 0..count {
        let length = take_word(&mut inside) as usize;
        pairs.push((take(&mut inside, length), take_item(&mut inside)));
    }
    // A stable sort keeps equal keys in the order of the text: the last of them counts.
    pairs.sort_by(|(a, _), (b, _)| compare_key_bytes(a, b));
    pairs.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = next.1;
        }
        same
    });
    let (ends, data) = begin(OBJECT, pairs.len(), 8, out)?;
    for (index, (key, _)) in pairs.iter().enumerate() {
        out.extend_from_slice(key);
        let end = out.len() - data;
        put_end(out, ends + index * 8, end)?;
    }
    for (index, (_, mut value)) in pairs.into_iter().enumerate() {
        write_item(&mut value, out)?;
        let end = out.len() - data;
        put_end(out, ends + index * 8 + 4, end)?;
    }
    Ok(())
}

/// Begins an array or object of so many values with `width` bytes of ends each: where the ends stand, and what is in it.
fn begin(tag: u8, count: usize, width: usize, out: &mut Vec<u8>) -> Result<(usize, usize)> {
    out.push(tag);
    let at = out.len();
    let ends = at + 4;
    let data = ends + count * width;
    out.resize(data, 0);
    put_end(out, at, count)?;
    Ok((ends, data))
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
