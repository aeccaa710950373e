//! Keys: columns as bytes whose order (`memcmp`) is the order of SQL.
//!
//! Layout: the columns one behind the other. A column that may be null begins with a byte: 1 for a value;
//! for null 0 where nulls come first and 2 where they come last. Then the value's bytes (see
//! `encode`); of a descending column every one of them is inverted (the byte in front is not, so
//! that first and last stay what they say).
//!
//! Invariants:
//! - I1: the bytes of two rows compare as their columns do, one after the other.
//! - I2: no column's bytes are the beginning of another value's of the same column. So the bytes of the
//!   first columns are a prefix of exactly the keys that agree on them.
//! - I3: equal values have equal bytes, even where they look different (`1.0` and `1.00`, `1 mon` and
//!   `30 days`): a unique index is unique in SQL's sense. What looks different is not kept in the key:
//!   [`is_exact`] says where a value comes back as it was.
//!
//! Bytes come from disk: decoding never panics.

mod decode;
mod encode;
mod range;
#[cfg(test)]
mod tests;

pub use range::KeyRange;

use crate::error::{Result, SqlError, SqlState};
use crate::schema::fixed_scale;
use crate::types::{Type, Typmod};
use crate::value::{Value, ValueRef};

/// A column of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// Its type.
    pub ty: Type,
    /// Its type's modifier.
    pub typmod: Typmod,
    /// Whether large values come first.
    pub descending: bool,
    /// Whether nulls come before all values.
    pub nulls_first: bool,
    /// Whether there can be nulls; if not, a byte is saved.
    pub nullable: bool,
}

impl KeyColumn {
    /// An ascending column, nulls last.
    pub fn new(ty: Type, typmod: Typmod, nullable: bool) -> Self {
        Self {
            ty,
            typmod,
            descending: false,
            nulls_first: false,
            nullable,
        }
    }

    /// The same, descending; then nulls come first unless that is changed, as in SQL.
    #[must_use]
    pub fn descending(mut self) -> Self {
        (self.descending, self.nulls_first) = (true, true);
        self
    }

    /// The same with nulls first or last.
    #[must_use]
    pub fn nulls_first(mut self, first: bool) -> Self {
        self.nulls_first = first;
        self
    }

    /// The column that an element of an array is written as: nulls come last, as in the order of arrays, and numbers have no fixed scale, as those that they
    /// are compared with have none.
    fn of_element(element: Type) -> Self {
        Self::new(element, Typmod::NONE, true)
    }

    fn mask(&self) -> u8 {
        if self.descending { 0xff } else { 0 }
    }

    fn null_byte(&self) -> u8 {
        if self.nulls_first {
            NULL_FIRST
        } else {
            NULL_LAST
        }
    }
}

const NULL_FIRST: u8 = 0;
const PRESENT: u8 = 1;
const NULL_LAST: u8 = 2;

/// Whether a value of this type comes back from a key as it was, scale and blanks included, so that it
/// need not stand in the row too.
pub fn is_exact(ty: Type, typmod: Typmod) -> bool {
    match ty {
        // -0 comes back as 0.
        Type::Float4 | Type::Float8 => false,
        Type::Numeric => fixed_scale(typmod).is_some(),
        // Blanks at the end are gone; a length says how many there were.
        Type::Char => !typmod.is_none(),
        Type::Interval | Type::Jsonb | Type::Json => false,
        ty if ty.element().is_some() => false,
        _ => true,
    }
}

/// Makes and reads the keys of a table or an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyCodec {
    columns: Vec<KeyColumn>,
}

impl KeyCodec {
    /// Keys of these columns.
    ///
    /// # Errors
    /// 42704 for a column whose type has no order (`json`).
    pub fn new(columns: Vec<KeyColumn>) -> Result<Self> {
        if let Some(column) = columns.iter().find(|column| !column.ty.is_orderable()) {
            let message = format!(
                "data type {} has no default operator class for access method \"btree\"",
                column.ty.sql_name()
            );
            let error = SqlError::new(SqlState::UNDEFINED_OBJECT, message);
            return Err(error.with_hint(
                "You must specify an operator class for the index or define a default operator class for the data type.",
            ));
        }
        Ok(Self { columns })
    }

    /// The columns in order.
    pub fn columns(&self) -> &[KeyColumn] {
        &self.columns
    }

    /// Appends the key of these values, or the first part of it if they are fewer than the columns.
    ///
    /// # Errors
    /// XX000 if a value is not of its column's type, or null where none can be (`out` is then of no
    /// use).
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<()> {
        debug_assert!(values.len() <= self.columns.len());
        for (column, value) in self.columns.iter().zip(values) {
            encode::column(column, *value, out)?;
        }
        Ok(())
    }

    /// Appends the bytes of the column at `position`; a key is those of all columns in order.
    ///
    /// # Errors
    /// As [`Self::encode`].
    ///
    /// # Panics
    /// If there is no such column.
    #[inline]
    pub fn encode_column(
        &self,
        position: usize,
        value: ValueRef<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        encode::column(&self.columns[position], value, out)
    }

    /// Reads the values of a key. Bytes behind the last column are left alone and their position is
    /// given back with the values.
    ///
    /// # Errors
    /// XX001 if these are not the bytes of a key.
    pub fn decode(&self, key: &[u8], out: &mut Vec<Value>) -> Result<usize> {
        let mut rest = key;
        for column in &self.columns {
            out.push(decode::column(column, &mut rest).ok_or_else(|| SqlError::damaged("key"))?);
        }
        Ok(key.len() - rest.len())
    }

    /// Where the bytes of each column end.
    ///
    /// # Errors
    /// XX001 if these are not the bytes of a key.
    pub fn ends(&self, key: &[u8], out: &mut Vec<usize>) -> Result<()> {
        let mut rest = key;
        for column in &self.columns {
            decode::column(column, &mut rest).ok_or_else(|| SqlError::damaged("key"))?;
            out.push(key.len() - rest.len());
        }
        Ok(())
    }
}
