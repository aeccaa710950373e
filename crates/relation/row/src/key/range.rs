//! Conditions on the first columns of a key as ranges of bytes.

use super::{KeyCodec, KeyColumn, PRESENT, encode};
use crate::error::Result;
use crate::numeric::{Numeric, NumericRef, POWERS_OF_TEN, SMALL_MAX};
use crate::schema::fixed_scale;
use crate::types::Type;
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

/// A value that a column is compared with, as one that the column's keys can be made of.
enum Fitted<'a> {
    /// Equal to it.
    Value(ValueRef<'a>),
    /// No value of the column equals it; this one is the next below it.
    Behind(ValueRef<'a>),
    /// It is below all of the column's values, or above.
    Below,
    Above,
}

/// Integers are made ones of the column's width, numbers ones of its scale, addresses ones of its type, whose keys are the same; every other value is of its type.
fn fitted<'a>(value: ValueRef<'a>, column: &KeyColumn) -> Fitted<'a> {
    if let ValueRef::Numeric(number) = value
        && let Some(scale) = fixed_scale(column.typmod)
        && column.ty == Type::Numeric
    {
        return in_units(number, scale);
    }
    match (value, column.ty) {
        (ValueRef::Cidr(own), Type::Inet) => return Fitted::Value(ValueRef::Inet(own)),
        (ValueRef::Inet(own), Type::Cidr) => return Fitted::Value(ValueRef::Cidr(own)),
        _ => {}
    }
    let Some(number) = value.as_i64().filter(|_| !value.fits(column.ty)) else {
        return Fitted::Value(value);
    };
    let fits = match column.ty {
        Type::Int2 => i16::try_from(number).ok().map(ValueRef::Int2),
        Type::Int4 => i32::try_from(number).ok().map(ValueRef::Int4),
        Type::Int8 => Some(ValueRef::Int8(number)),
        ty if ty.is_oid() => u32::try_from(number).ok().map(ValueRef::Oid),
        _ => Some(value),
    };
    match fits {
        Some(value) => Fitted::Value(value),
        None if number < 0 => Fitted::Below,
        None => Fitted::Above,
    }
}

/// A number in units of 10^-scale. What is beyond the column's numbers is still below its `NaN`, so it becomes a number that no
/// column holds.
fn in_units(number: NumericRef<'_>, scale: u8) -> Fitted<'static> {
    let of = |units: i64| {
        ValueRef::Numeric(NumericRef::Small {
            coefficient: units,
            scale,
        })
    };
    let beyond = |negative: bool| Fitted::Behind(of(if negative { -BEYOND } else { BEYOND }));
    let (units, exact) = match number {
        NumericRef::NaN => return Fitted::Value(ValueRef::Numeric(NumericRef::NaN)),
        NumericRef::Infinity => return beyond(false),
        NumericRef::NegInfinity => return beyond(true),
        NumericRef::Small {
            coefficient,
            scale: own,
        } if own <= scale => {
            let factor = POWERS_OF_TEN[usize::from(scale - own)];
            let units = i128::from(coefficient) * i128::from(factor);
            (i64::try_from(units).ok(), true)
        }
        NumericRef::Small {
            coefficient,
            scale: own,
        } => {
            let factor = POWERS_OF_TEN[usize::from(own - scale)];
            let rest = coefficient.rem_euclid(factor);
            (Some(coefficient.div_euclid(factor)), rest == 0)
        }
        NumericRef::Long(_) => {
            let number = number.to_numeric();
            let factor = Numeric::from(POWERS_OF_TEN[usize::from(scale)]);
            // Too long to be multiplied is beyond everything.
            let Ok(shifted) = number.multiply(&factor) else {
                return beyond(number.is_negative());
            };
            let whole = shifted.floor();
            let exact = shifted.is_whole();
            (whole.and_then(|whole| whole.to_i64()).ok(), exact)
        }
    };
    match units {
        Some(units) if units.abs() < BEYOND && exact => Fitted::Value(of(units)),
        Some(units) if units.abs() < BEYOND => Fitted::Behind(of(units)),
        Some(units) => beyond(units < 0),
        None => beyond(number.to_numeric().is_negative()),
    }
}

/// Units that no column of fixed scale holds: it has at most 18 digits.
const BEYOND: i64 = SMALL_MAX + 1;

impl KeyCodec {
    /// The keys whose first columns have these values. Null stands for null here. An integer may be of
    /// another width than the column, a number of another scale.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn prefix(&self, values: &[ValueRef<'_>]) -> Result<KeyRange> {
        let mut start = Vec::new();
        for (at, value) in values.iter().enumerate() {
            if !self.encode_equal(at, *value, &mut start)? {
                return Ok(KeyRange::empty());
            }
        }
        Ok(KeyRange::of_prefix(start))
    }

    /// Appends the bytes that the column at `position` has where it equals a value, which may be an integer of another width
    /// or a number of another scale; null stands for null. False if no value of the column equals it (`out` is then of no use).
    ///
    /// # Errors
    /// As [`Self::encode`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn encode_equal(
        &self,
        position: usize,
        value: ValueRef<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        match fitted(value, &self.columns()[position]) {
            Fitted::Value(value) => self.encode_column(position, value, out)?,
            Fitted::Behind(_) | Fitted::Below | Fitted::Above => return Ok(false),
        }
        Ok(true)
    }

    /// The keys whose first columns have the values `equal`, and the next one a value between `lower`
    /// and `upper`. Nulls in the next column are not among them, and a bound of null lets nothing
    /// through, as SQL's comparisons have it. An integer may be of another width than the column, a
    /// number of another scale.
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
        let prefix = self.prefix(equal)?;
        if prefix.is_empty() && !equal.is_empty() {
            return Ok(prefix);
        }
        self.range_behind(&prefix.start, equal.len(), lower, upper)
    }

    /// The same, where `prefix` is the bytes of the columns before `position`.
    ///
    /// # Errors
    /// As [`Self::encode`].
    ///
    /// # Panics
    /// If there is no column at `position`.
    pub fn range_behind(
        &self,
        prefix: &[u8],
        position: usize,
        lower: Bound<ValueRef<'_>>,
        upper: Bound<ValueRef<'_>>,
    ) -> Result<KeyRange> {
        let column = &self.columns()[position];
        // `None` where the bound lets nothing through: null, or beyond all values of the column's type on
        // the wrong side. On the other side it bounds nothing.
        let keyed =
            |bound: Bound<ValueRef<'_>>, is_lower: bool| -> Result<Option<Bound<Vec<u8>>>> {
                let (value, included) = match bound {
                    Bound::Included(value) => (value, true),
                    Bound::Excluded(value) => (value, false),
                    Bound::Unbounded => return Ok(Some(Bound::Unbounded)),
                };
                let (value, included) = match (fitted(value, column), is_lower) {
                    (Fitted::Value(ValueRef::Null), _) => return Ok(None),
                    (Fitted::Value(value), _) => (value, included),
                    (Fitted::Behind(value), is_lower) => (value, !is_lower),
                    (Fitted::Below, true) | (Fitted::Above, false) => {
                        return Ok(Some(Bound::Unbounded));
                    }
                    (Fitted::Below, false) | (Fitted::Above, true) => return Ok(None),
                };
                let mut key = prefix.to_vec();
                encode::column(column, value, &mut key)?;
                Ok(Some(if included {
                    Bound::Included(key)
                } else {
                    Bound::Excluded(key)
                }))
            };
        let (Some(lower), Some(upper)) = (keyed(lower, true)?, keyed(upper, false)?) else {
            return Ok(KeyRange::empty());
        };
        let (first, last) = if column.descending {
            (upper, lower)
        } else {
            (lower, upper)
        };
        let start = match first {
            Bound::Included(key) => Some(key),
            Bound::Excluded(key) => behind(&key),
            Bound::Unbounded => Some(present(column, prefix)),
        };
        let end = match last {
            Bound::Included(key) => behind(&key),
            Bound::Excluded(key) => Some(key),
            Bound::Unbounded => behind(&present(column, prefix)),
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
        let is_char = column.ty == Type::Char;
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
