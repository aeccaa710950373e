//! Conditions on the first columns of a key as ranges of bytes.

use super::{KeyCodec, KeyColumn, PRESENT, encode};
use crate::error::Result;
use crate::value::ValueRef;
use std::ops::Bound;

/// The keys from `start` on, below `end`; to the last key of all if there is no end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    /// The first key that may be in it.
    pub start: Vec<u8>,
    /// The first key behind it.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// A range without keys.
    pub fn empty() -> Self {
        Self {
            start: Vec::new(),
            end: Some(Vec::new()),
        }
    }

    /// The keys that begin with these bytes.
    pub fn of_prefix(prefix: Vec<u8>) -> Self {
        Self {
            end: behind(&prefix),
            start: prefix,
        }
    }

    /// Whether no key can be in it.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }
}

/// The first key behind all that begin with `prefix`; `None` if there is none.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.len()
        - prefix
            .iter()
            .rev()
            .take_while(|byte| **byte == 0xff)
            .count();
    let mut end = prefix[..kept].to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

impl KeyCodec {
    /// The keys whose first columns have these values. Null stands for null here.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn prefix(&self, values: &[ValueRef<'_>]) -> Result<KeyRange> {
        let mut start = Vec::new();
        self.encode(values, &mut start)?;
        Ok(KeyRange::of_prefix(start))
    }

    /// The keys whose first columns have the values `equal`, and the next one a value between `lower`
    /// and `upper`. Nulls in the next column are not among them, and a bound of null lets nothing
    /// through, as SQL's comparisons have it.
    ///
    /// # Errors
    /// As [`Self::encode`].
    ///
    /// # Panics
    /// If there is no next column.
    pub fn range(
        &self,
        equal: &[ValueRef<'_>],
        lower: Bound<ValueRef<'_>>,
        upper: Bound<ValueRef<'_>>,
    ) -> Result<KeyRange> {
        let column = &self.columns()[equal.len()];
        let mut prefix = Vec::new();
        self.encode(equal, &mut prefix)?;
        let is_null = |bound: &Bound<ValueRef<'_>>| matches!(bound, Bound::Included(value) | Bound::Excluded(value) if value.is_null());
        if is_null(&lower) || is_null(&upper) {
            return Ok(KeyRange::empty());
        }
        let (first, last) = if column.descending {
            (upper, lower)
        } else {
            (lower, upper)
        };
        let with = |value: ValueRef<'_>| -> Result<Vec<u8>> {
            let mut key = prefix.clone();
            encode::column(column, value, &mut key)?;
            Ok(key)
        };
        let start = match first {
            Bound::Included(value) => Some(with(value)?),
            Bound::Excluded(value) => behind(&with(value)?),
            Bound::Unbounded => Some(present(column, &prefix)),
        };
        let end = match last {
            Bound::Included(value) => behind(&with(value)?),
            Bound::Excluded(value) => Some(with(value)?),
            Bound::Unbounded => behind(&present(column, &prefix)),
        };
        // Nothing lies behind a bound of nothing but 0xff.
        Ok(start.map_or_else(KeyRange::empty, |start| KeyRange { start, end }))
    }

    /// The keys whose first columns have the values `equal`, and the next one, of a type of text, a
    /// value that begins with `beginning`. For `char(n)` there may be more: blanks at the end of
    /// `beginning` do not count.
    ///
    /// # Errors
    /// As [`Self::encode`].
    ///
    /// # Panics
    /// If there is no next column.
    pub fn text_prefix(&self, equal: &[ValueRef<'_>], beginning: &str) -> Result<KeyRange> {
        let column = &self.columns()[equal.len()];
        let mut prefix = Vec::new();
        self.encode(equal, &mut prefix)?;
        let mut start = present(column, &prefix);
        let is_char = column.ty == crate::types::Type::Char;
        let beginning = if is_char {
            crate::strings::trim_char(beginning)
        } else {
            beginning
        };
        start.extend(beginning.bytes().map(|byte| byte ^ column.mask()));
        Ok(KeyRange::of_prefix(start))
    }
}

/// What the keys begin with in which the column behind `prefix` is not null.
fn present(column: &KeyColumn, prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    if column.nullable {
        key.push(PRESENT);
    }
    key
}
