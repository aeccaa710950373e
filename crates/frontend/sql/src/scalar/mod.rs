//! Values' casts and operators, as the binder and expressions ask for them: over `row`'s types and forms.
//!
//! Not here: text and binary forms, comparison (`row`).

mod arithmetic;
mod cast;
pub(crate) mod key;

pub(crate) use arithmetic::{Operator, arithmetic, negate, result_type};
pub(crate) use cast::{CastContext, cast, cast_between};
pub(crate) use vellum_row::{Settings, compare, input, output, receive, send};

use crate::error::Result;
use vellum_row::{Numeric, Type, ValueRef};

/// A number with a point, or one too long for an integer.
///
/// # Errors
/// `22P02`, `22003`.
pub(crate) fn numeric(digits: &str) -> Result<Numeric> {
    Ok(Numeric::parse(digits)?)
}

/// Whether keys can be made of its values.
pub(crate) fn is_key_type(ty: Type) -> bool {
    !matches!(ty, Type::Json | Type::Jsonb)
}

/// An integer as one of another width, `None` if it does not fit; every other value as it is.
pub(crate) fn as_type(value: ValueRef<'_>, ty: Type) -> Option<ValueRef<'_>> {
    let Some(number) = value.as_i64() else {
        return Some(value);
    };
    match ty {
        Type::Int2 => i16::try_from(number).ok().map(ValueRef::Int2),
        Type::Int4 => i32::try_from(number).ok().map(ValueRef::Int4),
        Type::Int8 => Some(ValueRef::Int8(number)),
        Type::Oid => u32::try_from(number).ok().map(ValueRef::Oid),
        _ => Some(value),
    }
}
