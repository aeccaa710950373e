//! How values lie in Arrow's arrays.
//!
//! Layout: numbers, dates and times as integers and floats of their width; text as text; `numeric` in its stored form, `interval` as
//! months, days, microseconds (little-endian), `inet` and `cidr` as in keys, everything else as its bytes.
//!
//! Invariants:
//! - T1 Of a *plain* type, Arrow's equality and order are those of SQL. Of the others a [`key`](crate::term::Term::key) has to be made.
//! - T2 Values of a decimal extent lie below 10^[`DIGITS_MAX`] in amount; `NaN` is [`NOT_A_NUMBER`], which is above them all, as SQL has it.
//!   So Arrow's equality and order are SQL's where the scale is the same.

use arrow::datatypes::DataType;
use vellum_row::Type;

/// What is known of values beside their type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Extent {
    /// Nothing.
    #[default]
    Any,
    /// Numbers of so many digits at most, with one scale for all: they lie as integers that count units of 10^-scale.
    Decimal {
        /// [`DIGITS_MAX`] at most.
        digits: u8,
        /// Of these behind the point.
        scale: u8,
    },
    /// Text of so many characters, blanks at its end included: equal values look the same.
    Padded(usize),
}

/// Digits of a decimal, at most: sums and differences of two have room in 128 bits.
pub const DIGITS_MAX: u8 = 36;
/// Digits that a `numeric` in one word has.
pub(crate) const SMALL_DIGITS: u8 = 18;
/// T2.
pub(crate) const NOT_A_NUMBER: i128 = i128::MAX;
/// What Arrow is told of decimals; only the scale says something.
const PRECISION: u8 = 38;

/// A type, and what else is known of its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kind {
    /// The type.
    pub ty: Type,
    /// What else is known.
    pub extent: Extent,
}

impl From<Type> for Kind {
    fn from(ty: Type) -> Self {
        let extent = Extent::Any;
        Self { ty, extent }
    }
}

impl Kind {
    /// Numbers of so many digits, `scale` of them behind the point; none if there are too many.
    pub fn decimal(digits: u32, scale: u32) -> Option<Self> {
        let (digits, scale) = (u8::try_from(digits).ok()?, u8::try_from(scale).ok()?);
        (digits <= DIGITS_MAX && scale <= digits).then_some(Self {
            ty: Type::Numeric,
            extent: Extent::Decimal { digits, scale },
        })
    }

    /// How its values lie.
    pub(crate) fn data_type(self) -> DataType {
        match self.extent {
            Extent::Decimal { scale, .. } => DataType::Decimal128(PRECISION, scale as i8),
            Extent::Any | Extent::Padded(_) => data_type(self.ty),
        }
    }

    /// T1.
    pub(crate) fn is_plain(self) -> bool {
        is_plain(self.ty) || matches!(self.extent, Extent::Decimal { .. })
    }

    /// Whether equal values are the same for Arrow.
    pub(crate) fn is_exact(self) -> bool {
        self.is_plain() || matches!(self.extent, Extent::Padded(_))
    }
}

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
            Type::Int8 | Type::Xid8 | Type::Time | Type::Timestamp | Type::Timestamptz => {
                Self::Int8
            }
            // The position, which has the order of the labels.
            Type::Enum(_) => Self::Int8,
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
