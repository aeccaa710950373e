//! What functions do with arrays.

use super::{Array, ArrayRef, Dimension, HEADER};
use crate::compare::compare;
use crate::error::{Result, SqlError, SqlState};
use crate::settings::Settings;
use crate::text::output;
use crate::value::{Value, ValueRef, check_length};

/// `array_to_string`: the elements' texts with `separator` between; nulls are left out unless `null` stands for them.
///
/// # Errors
/// 54000 for a text that is longer than a value may be.
pub fn to_text(
    array: ArrayRef<'_>,
    separator: &str,
    null: Option<&str>,
    settings: &Settings,
) -> Result<String> {
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
            _ => output(item.as_ref(), settings, &mut out)?,
        }
        check_length(out.len())?;
    }
    Ok(out)
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

/// `array_append`: the array with an element behind.
///
/// # Errors
/// `22000` for an array of several dimensions, `22003` for a subscript that there is not.
pub fn append(array: ArrayRef<'_>, item: Value) -> Result<Array> {
    let shape = [longer(array)?];
    let items: Vec<Value> = array.items().chain([item]).collect();
    Array::shaped(array.element(), &shape, &items)
}

/// `array_cat`: the elements of the one, then those of the other. One that has a dimension less is an element of the other.
///
/// # Errors
/// `2202E` for arrays of which neither is as wide as an element of the other, nor both are as wide; `54000` for one that is too large.
pub fn concat(left: ArrayRef<'_>, right: ArrayRef<'_>) -> Result<Array> {
    let (first, second): (Vec<Dimension>, Vec<Dimension>) =
        (left.dimensions().collect(), right.dimensions().collect());
    if second.is_empty() {
        return Ok(left.to_array());
    }
    if first.is_empty() {
        return Ok(right.to_array());
    }
    let refused = |detail: String| {
        let text = "cannot concatenate incompatible arrays";
        SqlError::new(SqlState::of("2202E"), text).with_detail(detail)
    };
    let (mut shape, more, same) = if first.len() == second.len() {
        (first.clone(), second[0].length, first[1..] == second[1..])
    } else if first.len() + 1 == second.len() {
        (second.clone(), 1, first == second[1..])
    } else if second.len() + 1 == first.len() {
        (first.clone(), 1, second == first[1..])
    } else {
        return Err(refused(format!(
            "Arrays of {} and {} dimensions are not compatible for concatenation.",
            first.len(),
            second.len()
        )));
    };
    if !same {
        let what = if first.len() == second.len() {
            "element dimensions"
        } else {
            "dimensions"
        };
        let detail = format!("Arrays with differing {what} are not compatible for concatenation.");
        return Err(refused(detail));
    }
    let length = shape[0].length.checked_add(more);
    let Some(length) = length.filter(|length| shape[0].lower.checked_add(*length).is_some()) else {
        let message = format!("array lower bound is too large: {}", shape[0].lower);
        return Err(SqlError::new(SqlState::of("54000"), message));
    };
    shape[0].length = length;
    let items: Vec<Value> = left.items().chain(right.items()).collect();
    Array::shaped(left.element(), &shape, &items)
}

/// The dimension of an array that has at most one, with one element more.
fn longer(array: ArrayRef<'_>) -> Result<Dimension> {
    let mut dimensions = array.dimensions();
    let one = match (dimensions.next(), dimensions.next()) {
        (None, _) => Dimension {
            length: 0,
            lower: 1,
        },
        (Some(one), None) => one,
        _ => {
            let text = "argument must be empty or one-dimensional array";
            return Err(SqlError::new(SqlState::of("22000"), text));
        }
    };
    let length = one.length + 1;
    if one.lower.checked_add(length - 1).is_none() {
        return Err(SqlError::new(SqlState::of("22003"), "integer out of range"));
    }
    Ok(Dimension { length, ..one })
}

impl ArrayRef<'_> {
    /// The elements between bounds, a pair a dimension from the first on; `None` is the array's own end. What lies outside is left out, the subscripts
    /// of the rest begin at 1.
    ///
    /// # Errors
    /// `54000` for an array that is too large.
    pub fn slice(self, bounds: &[(Option<i32>, Option<i32>)]) -> Result<Array> {
        let empty = || Array::of(self.element(), &[]);
        let dimensions: Vec<Dimension> = self.dimensions().collect();
        if dimensions.is_empty() || bounds.len() > dimensions.len() {
            return Ok(empty());
        }
        // Of each dimension the first wanted place, from 0, and how many.
        let mut kept = Vec::with_capacity(dimensions.len());
        for (number, one) in dimensions.iter().enumerate() {
            let (low, high) = bounds.get(number).copied().unwrap_or((None, None));
            let own = (
                i64::from(one.lower),
                i64::from(one.lower) + i64::from(one.length) - 1,
            );
            let low = low.map_or(own.0, |low| i64::from(low).max(own.0));
            let high = high.map_or(own.1, |high| i64::from(high).min(own.1));
            if low > high {
                return Ok(empty());
            }
            kept.push((low - own.0, high - low + 1));
        }
        let mut items = Vec::new();
        for (at, item) in self.items().enumerate() {
            let mut rest = i64::try_from(at).unwrap_or(i64::MAX);
            let mut inside = true;
            for (one, (first, count)) in dimensions.iter().zip(&kept).rev() {
                let place = rest % i64::from(one.length);
                rest /= i64::from(one.length);
                inside &= (*first..first + count).contains(&place);
            }
            if inside {
                items.push(item);
            }
        }
        let shape: Vec<Dimension> = kept
            .iter()
            .map(|(_, count)| Dimension {
                length: i32::try_from(*count).unwrap_or(i32::MAX),
                lower: 1,
            })
            .collect();
        Array::shaped(self.element(), &shape, &items)
    }
}

/// The array with an element in front, whose subscripts begin where they did.
///
/// # Errors
/// `22000` for an array of several dimensions, `22003` for a subscript that there is not.
pub fn prepend(array: ArrayRef<'_>, item: Value) -> Result<Array> {
    let shape = longer(array)?;
    // The element has the subscript below the first before the subscripts are put back.
    if shape.lower == i32::MIN {
        return Err(SqlError::new(SqlState::of("22003"), "integer out of range"));
    }
    let items: Vec<Value> = [item].into_iter().chain(array.items()).collect();
    Array::counted(array.element(), &[shape], &items)
}

/// The elements of an array that goes with them, made one by one.
#[derive(Debug)]
pub struct Elements {
    array: Array,
    /// Where the next one stands.
    at: usize,
}

impl Elements {
    /// Begins.
    pub fn of(array: Array) -> Self {
        let at = (HEADER + array.as_ref().dimension_count() * 8).min(array.0.len());
        Self { array, at }
    }
}

impl Iterator for Elements {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        let (found, rest) = self.array.as_ref().item_at(self.at)?;
        self.at = rest;
        Some(found)
    }
}
