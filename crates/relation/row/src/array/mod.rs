//! Arrays: values of one type in up to six dimensions.
//!
//! Layout (big-endian, PostgreSQL's binary form but for the flag of vectors): `i32 dimensions, i32 flags (1: holds nulls, 2: a vector),
//! u32 oid of the elements' type`, for each dimension `i32 length, i32 first subscript`, then the elements in row-major order: `i32 bytes`
//! (-1 for null) and the element in binary form. An empty array has no dimensions. The same bytes stand in rows.
//!
//! `int2vector` and `oidvector` are arrays of one dimension whose subscripts begin at 0 and whose text is numbers with blanks between.

mod access;
mod assign;
mod text;

pub use access::{Elements, append, concat, position, prepend, to_text};
pub(crate) use text::{parse, parse_vector, write};

use crate::binary::{put, receive};
use crate::compare::{compare, hash};
use crate::error::{Result, SqlError, SqlState};
use crate::types::{Type, Typmod};
use crate::value::{VALUE_BYTES_MAX, Value};
use std::cmp::Ordering;
use std::hash::Hasher;

/// The most dimensions.
pub const DIMENSIONS_MAX: usize = 6;
/// The most elements: their numbers are integers.
const ELEMENTS_MAX: usize = (i32::MAX / 8) as usize;

const HEADER: usize = 12;
const NULLS: i32 = 1;
const VECTOR: i32 = 2;

/// `54000`.
#[cold]
fn too_large() -> SqlError {
    let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
    SqlError::new(SqlState::of("54000"), message)
}

/// Refuses more elements than an array may have: for who collects them.
///
/// # Errors
/// `54000`.
pub fn check_count(count: usize) -> Result<()> {
    if count > ELEMENTS_MAX {
        return Err(too_large());
    }
    Ok(())
}

/// `54000`.
#[cold]
fn lower_too_large(lower: i32) -> SqlError {
    let message = format!("array lower bound is too large: {lower}");
    SqlError::new(SqlState::of("54000"), message)
}

/// An array that owns its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array(Box<[u8]>);

/// An array whose bytes lie elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a>(&'a [u8]);

/// A dimension: its length and its first subscript.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimension {
    /// Elements along it.
    pub length: i32,
    /// The subscript of the first.
    pub lower: i32,
}

impl Array {
    /// An array of one dimension whose subscripts begin at 1. The items are of type `element`, or null. They are few and short, as the engine's own are;
    /// of any others [`Self::list`] is one.
    pub fn of(element: Type, items: &[Value]) -> Self {
        let length = i32::try_from(items.len()).unwrap_or(i32::MAX);
        let dimensions = [Dimension { length, lower: 1 }];
        let dimensions = if items.is_empty() {
            &[][..]
        } else {
            &dimensions
        };
        Self::build(element, dimensions, items, 0)
    }

    /// An array of one dimension whose subscripts begin at 1, of any items of type `element` and nulls.
    ///
    /// # Errors
    /// `54000` for too many elements, or too many bytes.
    pub fn list(element: Type, items: &[Value]) -> Result<Self> {
        let length = i32::try_from(items.len()).map_err(|_| too_large())?;
        Self::shaped(element, &[Dimension { length, lower: 1 }], items)
    }

    /// An `int2vector` or `oidvector`.
    pub fn vector(element: Type, items: &[Value]) -> Self {
        let length = i32::try_from(items.len()).unwrap_or(i32::MAX);
        Self::build(element, &[Dimension { length, lower: 0 }], items, VECTOR)
    }

    /// An array of dimensions with these lengths and first subscripts, all elements the same.
    ///
    /// # Errors
    /// `54000` for too many of them or too many elements.
    pub fn filled(element: Type, lengths: &[i32], lowers: &[i32], item: &Value) -> Result<Self> {
        let dimensions: Vec<Dimension> = lengths
            .iter()
            .zip(lowers)
            .map(|(length, lower)| Dimension {
                length: (*length).max(0),
                lower: *lower,
            })
            .collect();
        let lengths = dimensions.iter().map(|one| one.length as usize);
        let count = lengths.fold(usize::from(!dimensions.is_empty()), usize::saturating_mul);
        if count.saturating_mul(size_of::<Value>() + item.heap_bytes()) > VALUE_BYTES_MAX {
            return Err(too_large());
        }
        let items = vec![item.clone(); count];
        Self::shaped(element, &dimensions, &items)
    }

    /// An array of arrays, which have equal dimensions; `None` if they have not.
    ///
    /// # Errors
    /// `54000` for too many dimensions or elements.
    pub fn nested(element: Type, parts: &[ArrayRef<'_>]) -> Result<Option<Self>> {
        let inner: Vec<Dimension> = parts
            .first()
            .into_iter()
            .flat_map(|one| one.dimensions())
            .collect();
        if parts
            .iter()
            .any(|part| part.dimensions().ne(inner.iter().copied()))
        {
            return Ok(None);
        }
        let mut dimensions = vec![Dimension {
            length: i32::try_from(parts.len()).unwrap_or(i32::MAX),
            lower: 1,
        }];
        dimensions.extend(inner);
        let items: Vec<Value> = parts.iter().flat_map(|part| part.items()).collect();
        Self::shaped(element, &dimensions, &items).map(Some)
    }

    /// An array of these dimensions.
    ///
    /// # Errors
    /// `54000` for too many of them or too many elements.
    pub(crate) fn shaped(element: Type, dimensions: &[Dimension], items: &[Value]) -> Result<Self> {
        // The subscript behind the last one is to be a number still.
        let ends = |one: &&Dimension| one.lower.checked_add(one.length).is_none();
        if let Some(one) = dimensions.iter().find(ends).filter(|_| !items.is_empty()) {
            return Err(lower_too_large(one.lower));
        }
        Self::counted(element, dimensions, items)
    }

    /// The same, whatever the last subscript is.
    ///
    /// # Errors
    /// As [`Self::shaped`].
    fn counted(element: Type, dimensions: &[Dimension], items: &[Value]) -> Result<Self> {
        if dimensions.len() > DIMENSIONS_MAX {
            let message = format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                dimensions.len()
            );
            return Err(SqlError::new(SqlState::of("54000"), message));
        }
        check_count(items.len())?;
        let dimensions = if items.is_empty() { &[] } else { dimensions };
        let made = Self::build(element, dimensions, items, 0);
        if made.0.len() > VALUE_BYTES_MAX {
            return Err(too_large());
        }
        Ok(made)
    }

    /// Ends early once it has more bytes than a value may have; then it is none.
    fn build(element: Type, dimensions: &[Dimension], items: &[Value], flags: i32) -> Self {
        debug_assert!(
            dimensions.is_empty()
                || dimensions
                    .iter()
                    .map(|one| one.length as usize)
                    .product::<usize>()
                    == items.len()
        );
        let nulls = items.iter().any(Value::is_null);
        let flags = flags | if nulls { NULLS } else { 0 };
        let mut bytes = Vec::with_capacity(HEADER + 8 + items.len() * 8);
        bytes.extend_from_slice(&(dimensions.len() as i32).to_be_bytes());
        bytes.extend_from_slice(&flags.to_be_bytes());
        bytes.extend_from_slice(&element.oid().to_be_bytes());
        for dimension in dimensions {
            bytes.extend_from_slice(&dimension.length.to_be_bytes());
            bytes.extend_from_slice(&dimension.lower.to_be_bytes());
        }
        for item in items {
            debug_assert!(
                item.as_ref().fits(element),
                "{item:?} in an array of {element:?}"
            );
            if item.is_null() {
                bytes.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            if bytes.len() > VALUE_BYTES_MAX {
                break;
            }
            let at = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            put(item.as_ref(), &mut bytes);
            let length = i32::try_from(bytes.len() - at - 4).unwrap_or(i32::MAX);
            bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        Self(bytes.into())
    }

    /// Its borrowed form.
    #[inline]
    pub fn as_ref(&self) -> ArrayRef<'_> {
        ArrayRef(&self.0)
    }

    /// Reads an array of `ty` from the binary form of the protocol.
    ///
    /// # Errors
    /// `08P01`, `22P03`, `42804` for another type of elements, those of the elements.
    pub(crate) fn receive(ty: Type, bytes: &[u8]) -> Result<Self> {
        let element = ty.element().ok_or_else(|| SqlError::damaged("array"))?;
        Self::receive_with(ty, bytes, |bytes| receive(element, Typmod::NONE, bytes))
    }

    /// The same, of elements that `item` reads.
    ///
    /// # Errors
    /// As [`Self::receive`]; those of `item`.
    pub(crate) fn receive_with(
        ty: Type,
        bytes: &[u8],
        item_of: impl Fn(&[u8]) -> Result<Value>,
    ) -> Result<Self> {
        let bad = |message: &'static str| SqlError::new(SqlState::INVALID_BINARY, message);
        let element = ty.element().ok_or_else(|| SqlError::damaged("array"))?;
        let mut reader = Reader(bytes);
        let count = reader.i32().ok_or_else(crate::binary::short)?;
        let count = usize::try_from(count).map_err(|_| bad("invalid number of dimensions: -1"))?;
        if count > DIMENSIONS_MAX {
            return Err(bad("invalid number of dimensions"));
        }
        let flags = reader.i32().ok_or_else(crate::binary::short)?;
        if flags & !NULLS != 0 {
            return Err(bad("invalid array flags"));
        }
        let oid = reader.i32().ok_or_else(crate::binary::short)? as u32;
        if oid != element.oid() {
            let message = format!(
                "binary data has array element type {oid} ({}) instead of expected {} ({})",
                Type::from_oid(oid).map_or("unknown", Type::sql_name),
                element.oid(),
                element.sql_name()
            );
            return Err(SqlError::new(SqlState::of("42804"), message));
        }
        let mut dimensions = Vec::with_capacity(count);
        let mut total = 1usize;
        for _ in 0..count {
            let length = reader.i32().ok_or_else(crate::binary::short)?;
            let lower = reader.i32().ok_or_else(crate::binary::short)?;
            let wide = usize::try_from(length).map_err(|_| bad("invalid array length"))?;
            total = total.saturating_mul(wide);
            // Every element has four bytes at least: a wrong length allocates nothing.
            if total > bytes.len() {
                return Err(crate::binary::short());
            }
            dimensions.push(Dimension { length, lower });
        }
        let total = if count == 0 { 0 } else { total };
        let mut items = Vec::with_capacity(total);
        for _ in 0..total {
            let item = reader.item().ok_or_else(crate::binary::short)?;
            items.push(match item {
                None => Value::Null,
                Some(bytes) => item_of(bytes)?,
            });
        }
        if !reader.0.is_empty() {
            return Err(crate::binary::long(""));
        }
        if matches!(ty, Type::Int2Vector | Type::OidVector) {
            return Ok(Self::vector(element, &items));
        }
        Self::shaped(element, &dimensions, &items)
    }
}

impl<'a> ArrayRef<'a> {
    /// The array whose stored bytes these are; `None` if they cannot be.
    pub fn from_stored(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let count = usize::try_from(reader.i32()?).ok()?;
        let flags = reader.i32()?;
        Type::from_oid(reader.i32()? as u32)?;
        if count > DIMENSIONS_MAX || flags & !(NULLS | VECTOR) != 0 {
            return None;
        }
        let mut total = usize::from(count > 0);
        for _ in 0..count {
            total = total.checked_mul(usize::try_from(reader.i32()?).ok()?)?;
            reader.i32()?;
        }
        for _ in 0..total {
            reader.item()?;
        }
        reader.0.is_empty().then_some(Self(bytes))
    }

    /// The bytes that stand in a row.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    fn word(self, at: usize) -> i32 {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(0, |bytes| i32::from_be_bytes(*bytes))
    }

    /// A copy that owns its bytes.
    pub fn to_array(self) -> Array {
        Array(self.0.into())
    }

    /// The type of its elements.
    pub fn element(self) -> Type {
        Type::from_oid(self.word(8) as u32).unwrap_or(Type::Text)
    }

    /// Whether it is an `int2vector` or `oidvector`.
    pub fn is_vector(self) -> bool {
        self.word(4) & VECTOR != 0
    }

    /// Its type.
    pub fn ty(self) -> Type {
        match (self.is_vector(), self.element()) {
            (true, Type::Int2) => Type::Int2Vector,
            (true, _) => Type::OidVector,
            (false, element) => element.array(),
        }
    }

    pub(crate) fn dimension_count(self) -> usize {
        usize::try_from(self.word(0)).unwrap_or(0)
    }

    /// Its dimensions; none if it is empty.
    pub fn dimensions(self) -> impl Iterator<Item = Dimension> + use<'a> {
        (0..self.dimension_count()).map(move |number| Dimension {
            length: self.word(HEADER + number * 8),
            lower: self.word(HEADER + number * 8 + 4),
        })
    }

    /// Number of its elements.
    pub fn len(self) -> usize {
        let lengths = self.dimensions().map(|one| one.length as usize);
        if self.dimension_count() == 0 {
            0
        } else {
            lengths.product()
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Its elements in row-major order. What is damaged is null.
    pub fn items(self) -> impl Iterator<Item = Value> + use<'a> {
        let mut at = (HEADER + self.dimension_count() * 8).min(self.0.len());
        std::iter::from_fn(move || {
            let (item, next) = self.item_at(at)?;
            at = next;
            Some(item)
        })
    }

    /// The element that stands at a byte, and where the next one does.
    fn item_at(self, at: usize) -> Option<(Value, usize)> {
        let mut reader = Reader(self.0.get(at..).filter(|rest| !rest.is_empty())?);
        let item = reader.item()?;
        let value = item.map(|bytes| receive(self.element(), Typmod::NONE, bytes));
        let value = value.and_then(Result::ok).unwrap_or(Value::Null);
        Some((value, self.0.len() - reader.0.len()))
    }

    /// The element at a subscript of each dimension; `None` if there is none there.
    pub fn get(self, subscripts: &[i32]) -> Option<Value> {
        if subscripts.len() != self.dimension_count() {
            return None;
        }
        let mut at = 0usize;
        for (dimension, subscript) in self.dimensions().zip(subscripts) {
            let offset = subscript.checked_sub(dimension.lower)?;
            if !(0..dimension.length).contains(&offset) {
                return None;
            }
            at = at * dimension.length as usize + offset as usize;
        }
        self.items().nth(at)
    }

    /// Appends the binary form of the protocol.
    pub(crate) fn send(self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(self.0);
        let flags = self.word(4) & NULLS;
        if let Some(place) = out.get_mut(at + 4..at + 8) {
            place.copy_from_slice(&flags.to_be_bytes());
        }
    }

    /// The same of elements whose bytes `each` appends.
    pub(crate) fn send_with(self, out: &mut Vec<u8>, each: impl Fn(Value, &mut Vec<u8>)) {
        let head = HEADER + self.dimension_count() * 8;
        out.extend_from_slice(self.0.get(..head).unwrap_or_default());
        for item in self.items() {
            let at = out.len();
            out.extend_from_slice(&(-1i32).to_be_bytes());
            if !item.is_null() {
                each(item, out);
                let length = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// The order of two arrays: that of their elements, then of their dimensions.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        let (mut left, mut right) = (self.items(), other.items());
        loop {
            let order = match (left.next(), right.next()) {
                (None, None) => break,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                (Some(a), Some(b)) => compare(a.as_ref(), b.as_ref()),
            };
            if order.is_ne() {
                return order;
            }
        }
        let shape = |array: Self| -> Vec<(i32, i32)> {
            let dimensions = array.dimensions();
            dimensions.map(|one| (one.length, one.lower)).collect()
        };
        let count = self.dimension_count().cmp(&other.dimension_count());
        count.then_with(|| shape(self).cmp(&shape(other)))
    }

    pub(crate) fn feed<H: Hasher>(self, state: &mut H) {
        for item in self.items() {
            hash(item.as_ref(), state);
        }
    }

    /// The array with each element made another, of type `element`.
    ///
    /// # Errors
    /// Those of `each`; `54000` for too many bytes.
    pub fn map(self, element: Type, mut each: impl FnMut(Value) -> Result<Value>) -> Result<Array> {
        let items = self.items().map(&mut each).collect::<Result<Vec<_>>>()?;
        let dimensions: Vec<Dimension> = self.dimensions().collect();
        Array::counted(element, &dimensions, &items)
    }
}

/// Takes words and elements off the front of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn i32(&mut self) -> Option<i32> {
        let (bytes, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(i32::from_be_bytes(*bytes))
    }

    /// An element; `Some(None)` for null.
    fn item(&mut self) -> Option<Option<&'a [u8]>> {
        let length = self.i32()?;
        if length == -1 {
            return Some(None);
        }
        let (item, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(Some(item))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::settings::Settings;
    use crate::text::{input, output};

    fn read(ty: Type, text: &str) -> Result<Value> {
        input(ty, Typmod::NONE, text, &Settings::default())
    }

    fn shown(value: &Value) -> String {
        let mut out = String::new();
        output(value.as_ref(), &Settings::default(), &mut out).unwrap();
        out
    }

    #[test]
    fn text_of_arrays_is_postgresqls() {
        let cases = [
            (Type::Int4, "{1,2,NULL}", "{1,2,NULL}"),
            (Type::Int4, " { 1 , 2 } ", "{1,2}"),
            (Type::Int4, "{}", "{}"),
            (Type::Int4, "{{1,2},{3,4}}", "{{1,2},{3,4}}"),
            (Type::Int4, "[0:1]={5,6}", "[0:1]={5,6}"),
            (Type::Text, r#"{a,"b c","NULL",null,"",q"}"#, ""),
            (
                Type::Text,
                r#"{a,"b c","NULL",null,"","a\"b\\c",it's}"#,
                r#"{a,"b c","NULL",NULL,"","a\"b\\c",it's}"#,
            ),
            (Type::Text, "{a b , c}", r#"{"a b",c}"#),
        ];
        for (element, text, expected) in cases {
            match read(element.array(), text) {
                Ok(value) => assert_eq!(shown(&value), expected, "{text}"),
                Err(error) => {
                    assert_eq!(expected, "", "{text}: {error:?}");
                    assert_eq!(error.state(), SqlState::of("22P02"));
                }
            }
        }
        for bad in [
            "",
            "1,2",
            "{1",
            "{1}}",
            "{1,}",
            "{{1},{2,3}}",
            "{1,{2}}",
            "[1:3]={1}",
        ] {
            let error = read(Type::Int4.array(), bad).unwrap_err();
            assert_eq!(error.state(), SqlState::of("22P02"), "{bad}");
        }
    }

    #[test]
    fn arrays_come_back_from_the_wire_and_from_rows() {
        for text in ["{}", "{1,NULL,3}", "{{1,2},{3,4}}", "[-1:0]={7,8}"] {
            let value = read(Type::Int8.array(), text).unwrap();
            let mut bytes = Vec::new();
            put(value.as_ref(), &mut bytes);
            let back = receive(Type::Int8.array(), Typmod::NONE, &bytes).unwrap();
            assert_eq!(back, value);
            for end in 0..bytes.len() {
                assert!(receive(Type::Int8.array(), Typmod::NONE, &bytes[..end]).is_err());
                assert!(ArrayRef::from_stored(&bytes[..end]).is_none());
            }
            assert!(receive(Type::Int4.array(), Typmod::NONE, &bytes).is_err());
        }
    }

    #[test]
    fn vectors_count_from_zero() {
        let value = read(Type::Int2Vector, "3 1 2").unwrap();
        let Value::Array(array) = &value else {
            panic!("no array");
        };
        assert_eq!(array.as_ref().get(&[0]), Some(Value::Int2(3)));
        assert_eq!(array.as_ref().get(&[3]), None);
        assert_eq!(shown(&value), "3 1 2");
        assert_eq!(array.as_ref().ty(), Type::Int2Vector);
    }

    #[test]
    fn arrays_are_ordered_by_their_elements_first() {
        let texts = ["{}", "{1}", "{1,2}", "{{1,2}}", "{1,3}", "{2}", "{NULL}"];
        let values = texts.map(|text| read(Type::Int4.array(), text).unwrap());
        for (at, a) in values.iter().enumerate() {
            for (other, b) in values.iter().enumerate() {
                assert_eq!(
                    compare(a.as_ref(), b.as_ref()),
                    at.cmp(&other),
                    "{at} {other}"
                );
            }
        }
    }
}
