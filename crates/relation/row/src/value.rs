//! Values: owned, and borrowed from a row, a parameter or a constant.
//!
//! A value knows its type but for the kinds of text and of oids: `text`, `varchar` and `name` are all
//! [`Value::Text`], `oid` and `regclass` are [`Value::Oid`]; `char(n)` is a variant of its own because its trailing blanks do not count.
//! Modifiers (lengths, scales) are applied when a value enters a column and are
//! not kept with it.
//!
//! Not here: equality of SQL. The derived one is that of forms.

use crate::array::{Array, ArrayRef};
use crate::datetime::{Date, Interval, Time, Timestamp};
use crate::error::{Result, SqlError, SqlState};
use crate::json::{Jsonb, JsonbRef};
use crate::network::Inet;
use crate::numeric::{Numeric, NumericRef};
use crate::types::Type;
use crate::user::EnumValue;

/// The most bytes of a value and of its text: PostgreSQL's 1 GiB, of which it uses five itself.
pub const VALUE_BYTES_MAX: usize = (1 << 30) - 5;

/// Refuses to make what is longer than a value.
///
/// # Errors
/// 54000 for more than [`VALUE_BYTES_MAX`] bytes.
#[inline]
pub fn check_length(bytes: usize) -> Result<()> {
    if bytes > VALUE_BYTES_MAX {
        return Err(too_long());
    }
    Ok(())
}

#[cold]
fn too_long() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT, "requested length too large")
}

/// A value that owns its bytes. `==` is for who asks whether two are the same thing, as literals in expressions: `NaN` is the same as itself. What SQL takes
/// for equal [`compare`](crate::compare) tells.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value, of any type.
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// `text`, `varchar(n)`, `name`
    Text(Box<str>),
    /// `char(n)`, padded with blanks to its length
    Char(Box<str>),
    /// `bytea`
    Bytea(Box<[u8]>),
    /// `date`
    Date(Date),
    /// `time`
    Time(Time),
    /// `timestamp`
    Timestamp(Timestamp),
    /// `timestamptz`
    Timestamptz(Timestamp),
    /// `interval`
    Interval(Interval),
    /// `uuid`
    Uuid([u8; 16]),
    /// `inet`
    Inet(Inet),
    /// `cidr`, without bits behind its prefix
    Cidr(Inet),
    /// `json`, as it was written
    Json(Box<str>),
    /// `jsonb`
    Jsonb(Jsonb),
    /// `oid` and the types that are oids by other names
    Oid(u32),
    /// A value of an enum
    Enum(EnumValue),
    /// An array
    Array(Array),
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        use Value as V;
        match (self, other) {
            (V::Null, V::Null) => true,
            (V::Float4(a), V::Float4(b)) => a == b || (a.is_nan() && b.is_nan()),
            (V::Float8(a), V::Float8(b)) => a == b || (a.is_nan() && b.is_nan()),
            (V::Bool(a), V::Bool(b)) => a == b,
            (V::Int2(a), V::Int2(b)) => a == b,
            (V::Int4(a), V::Int4(b)) => a == b,
            (V::Int8(a), V::Int8(b)) => a == b,
            (V::Numeric(a), V::Numeric(b)) => a == b,
            (V::Text(a), V::Text(b)) => a == b,
            (V::Char(a), V::Char(b)) => a == b,
            (V::Bytea(a), V::Bytea(b)) => a == b,
            (V::Date(a), V::Date(b)) => a == b,
            (V::Time(a), V::Time(b)) => a == b,
            (V::Timestamp(a), V::Timestamp(b)) => a == b,
            (V::Timestamptz(a), V::Timestamptz(b)) => a == b,
            (V::Interval(a), V::Interval(b)) => a == b,
            (V::Uuid(a), V::Uuid(b)) => a == b,
            (V::Inet(a), V::Inet(b)) => a == b,
            (V::Cidr(a), V::Cidr(b)) => a == b,
            (V::Json(a), V::Json(b)) => a == b,
            (V::Jsonb(a), V::Jsonb(b)) => a == b,
            (V::Oid(a), V::Oid(b)) => a == b,
            (V::Enum(a), V::Enum(b)) => a == b,
            (V::Array(a), V::Array(b)) => a == b,
            // Of two kinds. All are named, so that a new one is not forgotten above.
            (
                V::Null
                | V::Bool(_)
                | V::Int2(_)
                | V::Int4(_)
                | V::Int8(_)
                | V::Float4(_)
                | V::Float8(_)
                | V::Numeric(_)
                | V::Text(_)
                | V::Char(_)
                | V::Bytea(_)
                | V::Date(_)
                | V::Time(_)
                | V::Timestamp(_)
                | V::Timestamptz(_)
                | V::Interval(_)
                | V::Uuid(_)
                | V::Inet(_)
                | V::Cidr(_)
                | V::Json(_)
                | V::Jsonb(_)
                | V::Oid(_)
                | V::Enum(_)
                | V::Array(_),
                _,
            ) => false,
        }
    }
}

/// A value whose bytes lie elsewhere. Copying it is cheap, reading it from a row allocates nothing.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// No value, of any type.
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(NumericRef<'a>),
    /// `text`, `varchar(n)`, `name`
    Text(&'a str),
    /// `char(n)`, padded with blanks to its length
    Char(&'a str),
    /// `bytea`
    Bytea(&'a [u8]),
    /// `date`
    Date(Date),
    /// `time`
    Time(Time),
    /// `timestamp`
    Timestamp(Timestamp),
    /// `timestamptz`
    Timestamptz(Timestamp),
    /// `interval`
    Interval(Interval),
    /// `uuid`
    Uuid([u8; 16]),
    /// `inet`
    Inet(Inet),
    /// `cidr`, without bits behind its prefix
    Cidr(Inet),
    /// `json`, as it was written
    Json(&'a str),
    /// `jsonb`
    Jsonb(JsonbRef<'a>),
    /// `oid` and the types that are oids by other names
    Oid(u32),
    /// A value of an enum
    Enum(EnumValue),
    /// An array
    Array(ArrayRef<'a>),
}

const _: () = assert!(size_of::<Value>() <= 24);
const _: () = assert!(size_of::<ValueRef<'_>>() <= 32);

impl Value {
    /// Text of type `text`.
    pub fn text(text: impl Into<Box<str>>) -> Self {
        Value::Text(text.into())
    }

    /// Its borrowed form.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Bool(value) => ValueRef::Bool(*value),
            Value::Int2(value) => ValueRef::Int2(*value),
            Value::Int4(value) => ValueRef::Int4(*value),
            Value::Int8(value) => ValueRef::Int8(*value),
            Value::Float4(value) => ValueRef::Float4(*value),
            Value::Float8(value) => ValueRef::Float8(*value),
            Value::Numeric(value) => ValueRef::Numeric(value.as_ref()),
            Value::Text(value) => ValueRef::Text(value),
            Value::Char(value) => ValueRef::Char(value),
            Value::Bytea(value) => ValueRef::Bytea(value),
            Value::Date(value) => ValueRef::Date(*value),
            Value::Time(value) => ValueRef::Time(*value),
            Value::Timestamp(value) => ValueRef::Timestamp(*value),
            Value::Timestamptz(value) => ValueRef::Timestamptz(*value),
            Value::Interval(value) => ValueRef::Interval(*value),
            Value::Uuid(value) => ValueRef::Uuid(*value),
            Value::Inet(value) => ValueRef::Inet(*value),
            Value::Cidr(value) => ValueRef::Cidr(*value),
            Value::Json(value) => ValueRef::Json(value),
            Value::Jsonb(value) => ValueRef::Jsonb(value.as_ref()),
            Value::Oid(value) => ValueRef::Oid(*value),
            Value::Enum(value) => ValueRef::Enum(*value),
            Value::Array(value) => ValueRef::Array(value.as_ref()),
        }
    }

    /// Bytes that it takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.as_ref().heap_bytes()
    }

    /// Whether it is null.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Its type; `text` for every text but `char(n)`, `oid` for every oid, `bigint` for `xid8`; `None` for null, which is of any type.
    pub fn ty(&self) -> Option<Type> {
        self.as_ref().ty()
    }
}

impl<'a> ValueRef<'a> {
    /// A value of its own. Allocates for text, bytes, `jsonb` and long numbers.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Bool(value) => Value::Bool(value),
            ValueRef::Int2(value) => Value::Int2(value),
            ValueRef::Int4(value) => Value::Int4(value),
            ValueRef::Int8(value) => Value::Int8(value),
            ValueRef::Float4(value) => Value::Float4(value),
            ValueRef::Float8(value) => Value::Float8(value),
            ValueRef::Numeric(value) => Value::Numeric(value.to_numeric()),
            ValueRef::Text(value) => Value::Text(value.into()),
            ValueRef::Char(value) => Value::Char(value.into()),
            ValueRef::Bytea(value) => Value::Bytea(value.into()),
            ValueRef::Date(value) => Value::Date(value),
            ValueRef::Time(value) => Value::Time(value),
            ValueRef::Timestamp(value) => Value::Timestamp(value),
            ValueRef::Timestamptz(value) => Value::Timestamptz(value),
            ValueRef::Interval(value) => Value::Interval(value),
            ValueRef::Uuid(value) => Value::Uuid(value),
            ValueRef::Inet(value) => Value::Inet(value),
            ValueRef::Cidr(value) => Value::Cidr(value),
            ValueRef::Json(value) => Value::Json(value.into()),
            ValueRef::Jsonb(value) => Value::Jsonb(value.to_jsonb()),
            ValueRef::Oid(value) => Value::Oid(value),
            ValueRef::Enum(value) => Value::Enum(value),
            ValueRef::Array(value) => Value::Array(value.to_array()),
        }
    }

    /// Bytes that [`Self::to_value`] takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            ValueRef::Text(text) | ValueRef::Char(text) | ValueRef::Json(text) => text.len(),
            ValueRef::Bytea(bytes) => bytes.len(),
            ValueRef::Jsonb(value) => value.bytes().len(),
            ValueRef::Array(value) => value.bytes().len(),
            ValueRef::Numeric(value) => value.heap_bytes(),
            ValueRef::Null
            | ValueRef::Bool(_)
            | ValueRef::Int2(_)
            | ValueRef::Int4(_)
            | ValueRef::Int8(_)
            | ValueRef::Float4(_)
            | ValueRef::Float8(_)
            | ValueRef::Date(_)
            | ValueRef::Time(_)
            | ValueRef::Timestamp(_)
            | ValueRef::Timestamptz(_)
            | ValueRef::Interval(_)
            | ValueRef::Uuid(_)
            | ValueRef::Inet(_)
            | ValueRef::Cidr(_)
            | ValueRef::Oid(_)
            | ValueRef::Enum(_) => 0,
        }
    }

    /// Whether it is null.
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// Its type; `text` for every text but `char(n)`, `oid` for every oid; `None` for null, which is of any type.
    pub fn ty(self) -> Option<Type> {
        Some(match self {
            ValueRef::Null => return None,
            ValueRef::Bool(_) => Type::Bool,
            ValueRef::Int2(_) => Type::Int2,
            ValueRef::Int4(_) => Type::Int4,
            ValueRef::Int8(_) => Type::Int8,
            ValueRef::Float4(_) => Type::Float4,
            ValueRef::Float8(_) => Type::Float8,
            ValueRef::Numeric(_) => Type::Numeric,
            ValueRef::Text(_) => Type::Text,
            ValueRef::Char(_) => Type::Char,
            ValueRef::Bytea(_) => Type::Bytea,
            ValueRef::Date(_) => Type::Date,
            ValueRef::Time(_) => Type::Time,
            ValueRef::Timestamp(_) => Type::Timestamp,
            ValueRef::Timestamptz(_) => Type::Timestamptz,
            ValueRef::Interval(_) => Type::Interval,
            ValueRef::Uuid(_) => Type::Uuid,
            ValueRef::Inet(_) => Type::Inet,
            ValueRef::Cidr(_) => Type::Cidr,
            ValueRef::Json(_) => Type::Json,
            ValueRef::Jsonb(_) => Type::Jsonb,
            ValueRef::Oid(_) => Type::Oid,
            ValueRef::Enum(value) => Type::Enum(value.of),
            ValueRef::Array(value) => value.ty(),
        })
    }

    /// Whether a column of type `ty` holds values of this variant. Null fits everywhere.
    #[inline]
    pub fn fits(self, ty: Type) -> bool {
        match self.ty() {
            None => true,
            Some(Type::Text) => ty.is_plain_text(),
            Some(Type::Oid) => ty.is_oid(),
            Some(Type::Int8) => matches!(ty, Type::Int8 | Type::Xid8),
            Some(own) => own == ty,
        }
    }

    /// The text of `text`, `varchar`, `name`, `char(n)` and `json`.
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            ValueRef::Text(text) | ValueRef::Char(text) | ValueRef::Json(text) => Some(text),
            _ => None,
        }
    }

    /// The value of `smallint`, `integer`, `bigint` and `oid`.
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            ValueRef::Int2(value) => Some(i64::from(value)),
            ValueRef::Int4(value) => Some(i64::from(value)),
            ValueRef::Int8(value) => Some(value),
            ValueRef::Oid(value) => Some(i64::from(value)),
            _ => None,
        }
    }

    /// The value of `boolean`.
    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        match self {
            ValueRef::Bool(value) => Some(value),
            _ => None,
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}
