//! How values lie in Arrow's arrays.
//!
//! Layout: numbers, dates and times as integers and floats of their width; text as text; `numeric` in its stored form, `interval` as
//! months, days, microseconds (little-endian), everything else as its bytes.
//!
//! Invariants:
//! - T1 Of a *plain* type, Arrow's equality and order are those of SQL. Of the others a [`key`](crate::term::Term::key) has to be made.

use arrow::datatypes::DataType;
use vellum_row::Type;

/// How the values of a type lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Text,
    Bytes,
}

impl Form {
    pub fn of(ty: Type) -> Self {
        match ty {
            Type::Bool => Self::Bool,
            Type::Int2 => Self::Int2,
            Type::Int4 | Type::Date => Self::Int4,
            Type::Int8 | Type::Time | Type::Timestamp | Type::Timestamptz => Self::Int8,
            Type::Float4 => Self::Float4,
            Type::Float8 => Self::Float8,
            Type::Char | Type::Json => Self::Text,
            ty if ty.is_plain_text() => Self::Text,
            ty if ty.is_oid() => Self::Oid,
            _ => Self::Bytes,
        }
    }

    pub fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int2 => DataType::Int16,
            Self::Int4 => DataType::Int32,
            Self::Int8 => DataType::Int64,
            Self::Oid => DataType::UInt32,
            Self::Float4 => DataType::Float32,
            Self::Float8 => DataType::Float64,
            Self::Text => DataType::Utf8View,
            Self::Bytes => DataType::BinaryView,
        }
    }
}

/// The type of a column of such values.
pub(crate) fn data_type(ty: Type) -> DataType {
    Form::of(ty).data_type()
}

/// T1.
pub(crate) fn is_plain(ty: Type) -> bool {
    match ty {
        // -0 and 0, and the values that are no numbers, are many for Arrow.
        Type::Float4 | Type::Float8 => false,
        Type::Char | Type::Json | Type::Numeric | Type::Interval | Type::Jsonb => false,
        ty => ty.element().is_none() && !matches!(ty, Type::Int2Vector | Type::OidVector),
    }
}
