//! What functions do with arrays.

use super::{Array, ArrayRef};
use crate::compare::compare;
use crate::error::{Result, SqlError, SqlState};
use crate::settings::Settings;
use crate::text::output;
use crate::value::{Value, ValueRef};

/// `array_to_string`: the elements' texts with `separator` between; nulls are left out unless `null` stands for them.
pub fn to_text(
    array: ArrayRef<'_>,
    separator: &str,
    null: Option<&str>,
    settings: &Settings,
) -> String {
    let mut out = String::new();
    let mut first = true;
    for item in array.items() {
        if item.is_null() && null.is_none() {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push_str(separator);
        }
        match null {
            Some(null) if item.is_null() => out.push_str(null),
            _ => output(item.as_ref(), settings, &mut out),
        }
    }
    out
}

/// `array_position`: the subscript of the first element that equals `wanted`, nulls too.
pub fn position(array: ArrayRef<'_>, wanted: ValueRef<'_>) -> Option<i32> {
    let lower = array.dimensions().next()?.lower;
    let equals = |item: Value| match (item.is_null(), wanted.is_null()) {
        (false, false) => compare(item.as_ref(), wanted).is_eq(),
        (a, b) => a && b,
    };
    let at = array.items().position(equals)?;
    lower.checked_add(i32::try_from(at).ok()?)
}

/// `array_append` and `array_cat`: the elements of the one, then those of the other.
///
/// # Errors
/// `2202E` for arrays of several dimensions.
pub fn append(array: ArrayRef<'_>, more: impl IntoIterator<Item = Value>) -> Result<Array> {
    if array.dimensions().count() > 1 {
        let text = "argument must be empty or one-dimensional array";
        return Err(SqlError::new(SqlState::of("2202E"), text));
    }
    let items: Vec<Value> = array.items().chain(more).collect();
    Ok(Array::of(array.element(), &items))
}
