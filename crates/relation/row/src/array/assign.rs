//! Arrays with other elements in some places: what an assignment to subscripts makes.

use super::{Array, ArrayRef, DIMENSIONS_MAX, Dimension, ELEMENTS_MAX};
use crate::error::{Result, SqlError, SqlState};
use crate::value::{VALUE_BYTES_MAX, Value};

fn wrong(text: &'static str) -> SqlError {
    SqlError::new(SqlState::of("2202E"), text)
}

fn out_of_range() -> SqlError {
    wrong("array subscript out of range")
}

/// What an array may have at most.
fn checked(shape: &[Dimension]) -> Result<usize> {
    let mut lengths = shape.iter().map(|one| usize::try_from(one.length).ok());
    let count = lengths.try_fold(1usize, |all, one| all.checked_mul(one?));
    let fits = |count: &usize| *count <= VALUE_BYTES_MAX / size_of::<Value>();
    let count = count.filter(fits).ok_or_else(|| {
        let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
        SqlError::new(SqlState::of("54000"), message)
    })?;
    for one in shape {
        if one.lower.checked_add(one.length).is_none() {
            let message = format!("array lower bound is too large: {}", one.lower);
            return Err(SqlError::new(SqlState::of("54000"), message));
        }
    }
    Ok(count)
}

/// The dimension that holds these subscripts, too, and how many elements come in front.
fn stretched(one: Dimension, (lower, upper): (i32, i32)) -> Result<(Dimension, usize)> {
    let (low, high) = (
        i64::from(one.lower),
        i64::from(one.lower) + i64::from(one.length),
    );
    let first = low.min(i64::from(lower));
    let behind = high.max(i64::from(upper) + 1);
    let stretched = Dimension {
        // Too many are refused for their number.
        length: i32::try_from(behind - first).unwrap_or(i32::MAX),
        lower: one.lower.min(lower),
    };
    checked(&[stretched])?;
    Ok((stretched, usize::try_from(low - first).unwrap_or(0)))
}

impl ArrayRef<'_> {
    /// The array with another element at a subscript of each dimension. One of one dimension grows to where that is, with nulls between; an empty one
    /// begins there.
    ///
    /// # Errors
    /// `2202E` for another number of subscripts than of dimensions, and for one outside of an array of several dimensions; `54000` for an array that is
    /// too large.
    pub fn with_element(self, subscripts: &[i32], item: Value) -> Result<Array> {
        let shape: Vec<Dimension> = self.dimensions().collect();
        if shape.is_empty() {
            let begun = subscripts.iter().map(|lower| Dimension {
                length: 1,
                lower: *lower,
            });
            let begun: Vec<Dimension> = begun.collect();
            if begun.len() <= DIMENSIONS_MAX {
                checked(&begun)?;
            }
            return Array::shaped(self.element(), &begun, &[item]);
        }
        if shape.len() != subscripts.len() {
            return Err(wrong("wrong number of array subscripts"));
        }
        if let ([one], [subscript]) = (shape.as_slice(), subscripts) {
            return self.stretched_with(*one, (*subscript, *subscript), vec![item]);
        }
        let mut at = 0usize;
        for (one, subscript) in shape.iter().zip(subscripts) {
            let offset = i64::from(*subscript) - i64::from(one.lower);
            if !(0..i64::from(one.length)).contains(&offset) {
                return Err(out_of_range());
            }
            at = at * one.length as usize + offset as usize;
        }
        let mut items: Vec<Value> = self.items().collect();
        if let Some(place) = items.get_mut(at) {
            *place = item;
        }
        Array::shaped(self.element(), &shape, &items)
    }

    /// The array of one dimension with these elements between two subscripts.
    fn stretched_with(self, one: Dimension, bounds: (i32, i32), new: Vec<Value>) -> Result<Array> {
        let (shape, front) = stretched(one, bounds)?;
        let mut items = vec![Value::Null; shape.length as usize];
        for (place, own) in items.iter_mut().skip(front).zip(self.items()) {
            *place = own;
        }
        let first = usize::try_from(i64::from(bounds.0) - i64::from(shape.lower)).unwrap_or(0);
        for (place, own) in items.iter_mut().skip(first).zip(new) {
            *place = own;
        }
        Array::shaped(self.element(), &[shape], &items)
    }

    /// The array with the elements of `source`, in their order, between bounds, a pair a dimension from the first on; `None` is the array's own end. One of one dimension
    /// grows to where they are, with nulls between; an empty one begins there.
    ///
    /// # Errors
    /// `2202E` for more pairs than dimensions, for a pair that holds nothing, for one outside of an array of several dimensions, for fewer elements than
    /// places, and for bounds that an empty array does not have; `54000` for an array that is too large.
    pub fn with_slice(
        self,
        bounds: &[(Option<i32>, Option<i32>)],
        source: ArrayRef<'_>,
    ) -> Result<Array> {
        let shape: Vec<Dimension> = self.dimensions().collect();
        let too_small = || wrong("source array too small");
        if shape.is_empty() {
            let mut begun = Vec::with_capacity(bounds.len());
            for bound in bounds {
                let (Some(lower), Some(upper)) = bound else {
                    let detail = "When assigning to a slice of an empty array value, slice boundaries must be fully specified.";
                    let text = "array slice subscript must provide both boundaries";
                    return Err(wrong(text).with_detail(detail));
                };
                let length = i64::from(*upper) - i64::from(*lower) + 1;
                begun.push(Dimension {
                    length: i32::try_from(length.max(0)).unwrap_or(i32::MAX),
                    lower: *lower,
                });
            }
            let count = checked(&begun)?;
            if source.len() < count {
                return Err(too_small());
            }
            let items: Vec<Value> = source.items().take(count).collect();
            return Array::shaped(self.element(), &begun, &items);
        }
        if shape.len() < bounds.len() {
            return Err(wrong("wrong number of array subscripts"));
        }
        let mut kept: Vec<(i32, i32)> = Vec::with_capacity(shape.len());
        for (number, one) in shape.iter().enumerate() {
            let last = one.lower + (one.length - 1);
            let (low, high) = bounds.get(number).copied().unwrap_or((None, None));
            let (low, high) = (low.unwrap_or(one.lower), high.unwrap_or(last));
            if low > high {
                return Err(wrong("upper bound cannot be less than lower bound"));
            }
            if shape.len() > 1 && (low < one.lower || high > last) {
                return Err(out_of_range());
            }
            kept.push((low, high));
        }
        let lengths = kept.iter().map(|(low, high)| {
            usize::try_from(i64::from(*high) - i64::from(*low) + 1).unwrap_or(usize::MAX)
        });
        let span = lengths.fold(1usize, usize::saturating_mul);
        if source.len() < span {
            return Err(too_small());
        }
        let new: Vec<Value> = source.items().take(span).collect();
        if let ([one], [kept]) = (shape.as_slice(), kept.as_slice()) {
            return self.stretched_with(*one, *kept, new);
        }
        let mut new = new.into_iter();
        let mut items = Vec::with_capacity(self.len());
        for (at, own) in self.items().enumerate() {
            let mut rest = at;
            let mut inside = true;
            for (one, (low, high)) in shape.iter().zip(&kept).rev() {
                let subscript = one.lower + (rest % one.length as usize) as i32;
                rest /= one.length as usize;
                inside &= (*low..=*high).contains(&subscript);
            }
            let given = if inside { new.next() } else { None };
            items.push(given.unwrap_or(own));
        }
        Array::shaped(self.element(), &shape, &items)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::types::Type;

    fn numbers(items: &[i32]) -> Array {
        let items: Vec<Value> = items.iter().map(|item| Value::Int4(*item)).collect();
        Array::of(Type::Int4, &items)
    }

    fn shape(array: &Array) -> Vec<(i32, i32)> {
        let dimensions = array.as_ref().dimensions();
        dimensions.map(|one| (one.lower, one.length)).collect()
    }

    fn values(array: &Array) -> Vec<Option<i32>> {
        let items = array.as_ref().items();
        items
            .map(|item| match item {
                Value::Int4(number) => Some(number),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn an_array_of_one_dimension_grows_to_its_new_element() {
        let array = numbers(&[1, 2]);
        let behind = array.as_ref().with_element(&[4], Value::Int4(9)).unwrap();
        assert_eq!(values(&behind), [Some(1), Some(2), None, Some(9)]);
        let front = behind.as_ref().with_element(&[-1], Value::Int4(8)).unwrap();
        assert_eq!(shape(&front), [(-1, 6)]);
        let wanted = [Some(8), None, Some(1), Some(2), None, Some(9)];
        assert_eq!(values(&front), wanted);
        let far = array.as_ref().with_element(&[i32::MAX], Value::Null);
        assert_eq!(far.unwrap_err().state(), SqlState::of("54000"));
        let far = front.as_ref().with_element(&[i32::MIN], Value::Null);
        assert_eq!(far.unwrap_err().state(), SqlState::of("54000"));
    }

    #[test]
    fn slices_take_as_many_elements_as_they_have_places() {
        let empty = numbers(&[]);
        let source = numbers(&[7, 8, 9]);
        let bounds = [(Some(3), Some(4))];
        let begun = empty.as_ref().with_slice(&bounds, source.as_ref()).unwrap();
        assert_eq!(
            (shape(&begun), values(&begun)),
            (vec![(3, 2)], vec![Some(7), Some(8)])
        );
        let wide = [(Some(0), Some(3))];
        let small = begun.as_ref().with_slice(&wide, source.as_ref());
        assert_eq!(small.unwrap_err().message(), "source array too small");
        let square = Array::filled(Type::Int4, &[2, 2], &[1, 1], &Value::Int4(0)).unwrap();
        let column = [(None, None), (Some(2), Some(2))];
        let changed = square
            .as_ref()
            .with_slice(&column, source.as_ref())
            .unwrap();
        assert_eq!(values(&changed), [Some(0), Some(7), Some(0), Some(8)]);
        let outside = [(Some(1), Some(3))];
        let outside = square.as_ref().with_slice(&outside, source.as_ref());
        assert_eq!(
            outside.unwrap_err().message(),
            "array subscript out of range"
        );
    }
}
