//! Functions and operators of arrays.

use super::{Arguments, Entry, fault, lenient, strict};
use crate::error::Result;
use vellum_row::{Array, ArrayRef, Type, Value, compare};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(0, "@>", "anyarray anyarray", "bool", |a| Ok(Value::Bool(contains(a.array(0), a.array(1))))),
    strict(0, "<@", "anyarray anyarray", "bool", |a| Ok(Value::Bool(contains(a.array(1), a.array(0))))),
    strict(0, "&&", "anyarray anyarray", "bool", |a| Ok(Value::Bool(overlaps(a.array(0), a.array(1))))),
    strict(747, "array_dims", "anyarray", "text", |a| {
        let shown = a.array(0).into_iter().flat_map(ArrayRef::dimensions);
        let shown: String = shown.map(|one| format!("[{}:{}]", one.lower, one.lower + (one.length - 1))).collect();
        Ok(if shown.is_empty() { Value::Null } else { Value::text(shown) })
    }),
    // What makes arrays of elements is called with an array of the elements' type in front, which nulls do not tell.
    lenient(0, "%array_prepend", "anycompatiblearray anycompatible anycompatiblearray", "anycompatiblearray", |a| {
        let item = a.at(1).to_value();
        Ok(Value::Array(match a.array(2) {
            Some(array) => vellum_row::array::prepend(array, item)?,
            None => Array::list(element_of(a, 0).unwrap_or(Type::Text), &[item])?,
        }))
    }),
    lenient(0, "%enum_range", "anyarray anyelement anyelement", "anyarray", enum_range),
    lenient(0, "%array_fill", "anyarray anyelement _int4", "anyarray", fill),
    lenient(0, "%array_fill", "anyarray anyelement _int4 _int4", "anyarray", fill),
    lenient(379, "array_prepend", "anycompatible anycompatiblearray", "anycompatiblearray", |_| Err(without_type())),
    lenient(3167, "array_remove", "anycompatiblearray anycompatible", "anycompatiblearray", |a| {
        if a.array(0).is_some_and(|array| array.dimensions().count() > 1) {
            return Err(fault("0A000", "removing elements from multidimensional arrays is not supported"));
        }
        each(a, |item| if equal(&item, a.at(1)) { None } else { Some(item) })
    }),
    lenient(3168, "array_replace", "anycompatiblearray anycompatible anycompatible", "anycompatiblearray", |a| {
        each(a, |item| Some(if equal(&item, a.at(1)) { a.at(2).to_value() } else { item }))
    }),
    lenient(3279, "array_positions", "anycompatiblearray anycompatible", "_int4", |a| {
        let Some(array) = a.array(0) else {
            return Ok(Value::Null);
        };
        let found = (i64::from(first_of(array)?)..).zip(array.items());
        let found = found.filter(|(_, item)| equal(item, a.at(1)));
        let found: Vec<Value> = found.map(|(number, _)| Value::Int4(number as i32)).collect();
        Ok(Value::Array(Array::list(Type::Int4, &found)?))
    }),
    lenient(3278, "array_position", "anycompatiblearray anycompatible int4", "int4", |a| {
        let Some(array) = a.array(0) else {
            return Ok(Value::Null);
        };
        if a.is_null(2) {
            return Err(fault("22004", "initial position must not be null"));
        }
        let found = (i64::from(first_of(array)?)..).zip(array.items());
        let mut found = found.skip_while(|(number, _)| *number < i64::from(a.int(2)));
        let found = found.find(|(_, item)| equal(item, a.at(1)));
        Ok(found.map_or(Value::Null, |(number, _)| Value::Int4(number as i32)))
    }),
    strict(6172, "trim_array", "anyarray int4", "anyarray", |a| {
        let Some(array) = a.array(0) else {
            return Ok(Value::Null);
        };
        let count = array.dimensions().next().map_or(0, |one| one.length);
        if !(0..=count).contains(&a.int(1)) {
            let message = format!("number of elements to trim must be between 0 and {count}");
            return Err(fault("2202E", message));
        }
        let kept = usize::try_from(count - a.int(1)).unwrap_or(0);
        let items: Vec<Value> = array.items().take(kept).collect();
        Ok(Value::Array(Array::list(array.element(), &items)?))
    }),
    lenient(1193, "array_fill", "anyelement _int4", "anyarray", |_| Err(without_type())),
    lenient(1286, "array_fill", "anyelement _int4 _int4", "anyarray", |_| Err(without_type())),
    lenient(438, "num_nulls", "any*", "int4", |a| {
        Ok(Value::Int4((0..a.len()).filter(|number| a.is_null(*number)).count() as i32))
    }),
    lenient(440, "num_nonnulls", "any*", "int4", |a| {
        Ok(Value::Int4((0..a.len()).filter(|number| !a.is_null(*number)).count() as i32))
    }),
    strict(0, "%slice", "anyarray int4 int4*", "anyarray", slice),
    // The array of no elements in front tells their type.
    lenient(0, "%assigned", "anyarray anyarray anyelement int4*", "anyarray", with_element),
    lenient(0, "%assigned_slice", "anyarray anyarray anyarray int4*", "anyarray", with_slice),
];

/// What the binder calls with the type of the elements.
fn without_type() -> crate::error::SqlError {
    crate::error::SqlError::internal("an array without a type")
}

fn element_of(a: &Arguments<'_>, number: usize) -> Option<Type> {
    a.array(number).map(ArrayRef::element)
}

/// The subscript of the first element of an array that is looked through.
fn first_of(array: ArrayRef<'_>) -> Result<i32> {
    let mut dimensions = array.dimensions();
    let first = dimensions.next().map_or(1, |one| one.lower);
    match dimensions.next() {
        None => Ok(first),
        Some(_) => Err(fault(
            "0A000",
            "searching for elements in multidimensional arrays is not supported",
        )),
    }
}

/// Nulls are equal here.
fn equal(item: &Value, other: vellum_row::ValueRef<'_>) -> bool {
    match (item.is_null(), other.is_null()) {
        (true, true) => true,
        (false, false) => compare(item.as_ref(), other).is_eq(),
        _ => false,
    }
}

fn contains(whole: Option<ArrayRef<'_>>, part: Option<ArrayRef<'_>>) -> bool {
    let own: Vec<Value> = whole.into_iter().flat_map(ArrayRef::items).collect();
    let mut wanted = part.into_iter().flat_map(ArrayRef::items);
    // A null is in nothing.
    wanted.all(|item| !item.is_null() && own.iter().any(|own| equal(own, item.as_ref())))
}

fn overlaps(left: Option<ArrayRef<'_>>, right: Option<ArrayRef<'_>>) -> bool {
    let own: Vec<Value> = left.into_iter().flat_map(ArrayRef::items).collect();
    let mut other = right.into_iter().flat_map(ArrayRef::items);
    other.any(|item| !item.is_null() && own.iter().any(|own| equal(own, item.as_ref())))
}

/// The array of what becomes of each element.
fn each(a: &Arguments<'_>, of: impl Fn(Value) -> Option<Value>) -> Result<Value> {
    let Some(array) = a.array(0) else {
        return Ok(Value::Null);
    };
    let element = array.element();
    let items: Vec<Value> = array.items().filter_map(of).collect();
    let lower = array.dimensions().next().map_or(1, |one| one.lower);
    // Its dimensions stay, but for what was removed of the only one.
    let shorter = match items.len() == array.len() {
        true => None,
        false if items.is_empty() => return Ok(Value::Array(Array::of(element, &[]))),
        false => {
            let count = i32::try_from(items.len()).unwrap_or(i32::MAX);
            Some(Array::filled(element, &[count], &[lower], &Value::Null)?)
        }
    };
    let shape = shorter.as_ref().map_or(array, Array::as_ref);
    let mut items = items.into_iter();
    let made = shape.map(element, |_| Ok(items.next().unwrap_or(Value::Null)))?;
    Ok(Value::Array(made))
}

/// What of all values of an enum, in order, lies between two of them; null stands for an end.
fn enum_range(a: &Arguments<'_>) -> Result<Value> {
    let Some(all) = a.array(0) else {
        return Ok(Value::Null);
    };
    let inside = all.items().filter(|item| {
        let (item, from, to) = (item.as_ref(), a.at(1), a.at(2));
        (from.is_null() || compare(from, item).is_le())
            && (to.is_null() || compare(item, to).is_le())
    });
    let inside: Vec<Value> = inside.collect();
    Ok(Value::Array(Array::of(all.element(), &inside)))
}

fn fill(a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(2) || a.len() > 3 && a.is_null(3) {
        return Err(fault(
            "22004",
            "dimension array or low bound array cannot be null",
        ));
    }
    let numbers = |number: usize| -> Result<Vec<i32>> {
        let items = a.array(number).into_iter().flat_map(ArrayRef::items);
        let number = |item: Value| {
            let number = item.as_ref().as_i64();
            let number = number.and_then(|number| i32::try_from(number).ok());
            number.ok_or_else(|| fault("22004", "dimension values cannot be null"))
        };
        items.map(number).collect()
    };
    for (number, what) in [(2, "Dimension"), (3, "Low bound")] {
        let dimensions = a
            .array(number)
            .map_or(0, |array| array.dimensions().count());
        if dimensions > 1 {
            return Err(fault("2202E", "wrong number of array subscripts")
                .with_detail(format!("{what} array must be one dimensional.")));
        }
    }
    let lengths = numbers(2)?;
    let lowers = if a.len() > 3 {
        numbers(3)?
    } else {
        vec![1; lengths.len()]
    };
    if lowers.len() != lengths.len() {
        return Err(fault("2202E", "wrong number of array subscripts")
            .with_detail("Low bound array has different size than dimensions array."));
    }
    if lengths.iter().any(|length| *length < 0) {
        let text = "array size exceeds the maximum allowed (134217727)";
        return Err(fault("54000", text));
    }
    for (length, lower) in lengths.iter().zip(&lowers) {
        if lower.checked_add(*length).is_none() {
            let message = format!("array lower bound is too large: {lower}");
            return Err(fault("54000", message));
        }
    }
    let element = element_of(a, 0).unwrap_or(Type::Text);
    let filled = Array::filled(element, &lengths, &lowers, &a.at(1).to_value())?;
    Ok(Value::Array(filled))
}

/// The elements between subscripts. Behind the array stand bits that say which bounds were left out, then two bounds a dimension.
fn slice(a: &Arguments<'_>) -> Result<Value> {
    let Some(array) = a.array(0) else {
        return Ok(Value::Null);
    };
    Ok(Value::Array(array.slice(&bounds(a, 1))?))
}

/// Pairs of bounds behind the argument that tells by its bits which of them were left out.
fn bounds(a: &Arguments<'_>, first: usize) -> Vec<(Option<i32>, Option<i32>)> {
    let left_out = |bit: usize| a.int(first) >> bit & 1 == 1;
    let bounds = (0..(a.len() - first - 1) / 2).map(|dimension| {
        let bound = |at: usize| {
            let at = 2 * dimension + at;
            (!left_out(at)).then(|| a.int(first + 1 + at))
        };
        (bound(0), bound(1))
    });
    bounds.collect()
}

/// # Errors
/// `22004` for a null among the subscripts from an argument on.
fn subscripts_known(a: &Arguments<'_>, first: usize) -> Result<()> {
    if (first..a.len()).any(|number| a.is_null(number)) {
        let text = "array subscript in assignment must not be null";
        return Err(fault("22004", text));
    }
    Ok(())
}

/// `SET a[i] = …`: a null is an empty array.
fn with_element(a: &Arguments<'_>) -> Result<Value> {
    subscripts_known(a, 3)?;
    let subscripts: Vec<i32> = (3..a.len()).map(|number| a.int(number)).collect();
    let array = a.array(1).or_else(|| a.array(0));
    let array = array.ok_or_else(without_type)?;
    Ok(Value::Array(
        array.with_element(&subscripts, a.at(2).to_value())?,
    ))
}

/// `SET a[i:j] = …`: a null is an empty array, and changes none.
fn with_slice(a: &Arguments<'_>) -> Result<Value> {
    subscripts_known(a, 3)?;
    let array = a.array(1).or_else(|| a.array(0));
    let array = array.ok_or_else(without_type)?;
    Ok(Value::Array(match a.array(2) {
        Some(source) => array.with_slice(&bounds(a, 3), source)?,
        None => array.to_array(),
    }))
}
