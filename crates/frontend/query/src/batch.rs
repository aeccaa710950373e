//! Rows as columns of Arrow, and back.

use crate::error::{Error, Failure, Result};
use crate::keys::Asked;
use crate::types::{Extent, Form, Kind, NOT_A_NUMBER, SMALL_DIGITS};
use arrow::array::{
    Array as _, ArrayRef, BinaryViewArray, BinaryViewBuilder, BooleanArray, BooleanBuilder,
    Decimal128Array, Decimal128Builder, Float32Array, Float32Builder, Float64Array, Float64Builder,
    Int16Array, Int16Builder, Int32Array, Int32Builder, Int64Array, Int64Builder, RecordBatch,
    RecordBatchOptions, StringViewArray, StringViewBuilder, UInt32Array, UInt32Builder,
};
use arrow::datatypes::{Field, Schema, SchemaRef};
use std::any::Any;
use std::sync::Arc;
use vellum_row::datetime::{Date, Interval, Time, Timestamp};
use vellum_row::{
    ArrayRef as Items, EnumValue, FixedPlace, Inet, JsonbRef, NumericRef, RowView, Stored, Type,
    Value, ValueRef,
};

/// Rows in a batch, at most.
pub const BATCH_ROWS: usize = 8192;

/// Rows that a host hands over.
#[derive(Debug)]
pub struct Batch {
    columns: Vec<ColumnBuilder>,
    rows: usize,
    /// Of text and bytes.
    bytes: usize,
    /// Asked about stored rows before they are added.
    asked: Vec<Asked>,
}

/// Text and bytes in a batch, about.
const BATCH_BYTES: usize = 256 << 10;

impl Batch {
    /// Without rows, of columns of these types.
    pub(crate) fn new(kinds: &[Kind]) -> Self {
        Self::asking(kinds, Vec::new())
    }

    /// The same, of rows that have partners in joins.
    pub(crate) fn asking(kinds: &[Kind], asked: Vec<Asked>) -> Self {
        Self {
            columns: kinds.iter().map(|kind| ColumnBuilder::new(*kind)).collect(),
            rows: 0,
            bytes: 0,
            asked,
        }
    }

    /// What was asked, with what came of it.
    pub(crate) fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// Adds a row: the values of the columns that were asked for, in that order.
    ///
    /// # Errors
    /// A value that is not of its column's type.
    pub fn push<'v>(&mut self, row: impl IntoIterator<Item = ValueRef<'v>>) -> Result<()> {
        self.try_push(row.into_iter().map(Ok))
    }

    /// The same of values that may fail to be read.
    ///
    /// # Errors
    /// The first of theirs; a value that is not of its column's type.
    pub fn try_push<'v>(
        &mut self,
        row: impl IntoIterator<Item = std::result::Result<ValueRef<'v>, Failure>>,
    ) -> Result<()> {
        let mut values = row.into_iter();
        for column in &mut self.columns {
            let value = values.next();
            let value = value.ok_or_else(|| Error::internal("a row is too short"))?;
            let value = value.map_err(Error::Failed)?;
            self.bytes += match value {
                ValueRef::Bytea(bytes) => bytes.len(),
                value => value.as_str().map_or(0, str::len),
            };
            column.push(value)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Adds a row as it is stored: these of its columns, in the order that was asked for; the number behind the last column is the key. Values of
    /// fixed width go from bytes to arrays; with the columns stand their places, as far as they are known. False, and nothing was added, for a row
    /// that a join finds no partner for.
    ///
    /// # Errors
    /// A row that is damaged; a value that is not of its column's type.
    #[inline]
    pub fn push_stored(
        &mut self,
        row: RowView<'_>,
        columns: &[(usize, Option<FixedPlace>)],
        key: &[u8],
    ) -> std::result::Result<bool, Failure> {
        let width = row.columns();
        debug_assert_eq!(columns.len(), self.columns.len());
        for asked in &mut self.asked {
            let (position, place) = columns[asked.column];
            let stored = place.and_then(|place| row.stored_at(place));
            let stored = stored.unwrap_or_else(|| row.stored(position));
            let key = self.columns[asked.column].whole_number(stored);
            if key.is_some_and(|key| !asked.may_have(key)) {
                return Ok(false);
            }
        }
        for (column, (position, place)) in self.columns.iter_mut().zip(columns) {
            let stored = place.and_then(|place| row.stored_at(place));
            if let Some(stored) = stored
                && column.push_stored(stored)
            {
                continue;
            }
            if *position >= width {
                self.bytes += key.len();
                column.push(ValueRef::Bytea(key))?;
                continue;
            }
            if column.push_stored(row.stored(*position)) {
                continue;
            }
            let value = row.get(*position)?;
            self.bytes += match value {
                ValueRef::Bytea(bytes) => bytes.len(),
                value => value.as_str().map_or(0, str::len),
            };
            column.push(value)?;
        }
        self.rows += 1;
        Ok(true)
    }

    /// Rows that it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether it takes no more.
    pub fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    pub(crate) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch> {
        let columns = self.columns.into_iter().map(ColumnBuilder::finish);
        let columns: Vec<ArrayRef> = columns.collect();
        // A scan of no columns has rows all the same.
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options)
            .map_err(Error::internal)
    }
}

/// A column while it is made.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    ty: Type,
    made: Made,
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum Made {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Oid(UInt32Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    Decimal(Decimal128Builder, u8),
}

impl ColumnBuilder {
    pub fn new(kind: impl Into<Kind>) -> Self {
        let kind = kind.into();
        let ty = kind.ty;
        if let Extent::Decimal { scale, .. } = kind.extent {
            let builder = Decimal128Builder::new().with_data_type(kind.data_type());
            return Self {
                ty,
                made: Made::Decimal(builder, scale),
                scratch: Vec::new(),
            };
        }
        let made = match Form::of(ty) {
            Form::Bool => Made::Bool(BooleanBuilder::new()),
            Form::Int2 => Made::Int2(Int16Builder::new()),
            Form::Int4 => Made::Int4(Int32Builder::new()),
            Form::Int8 => Made::Int8(Int64Builder::new()),
            Form::Oid => Made::Oid(UInt32Builder::new()),
            Form::Float4 => Made::Float4(Float32Builder::new()),
            Form::Float8 => Made::Float8(Float64Builder::new()),
            Form::Text => Made::Text(StringViewBuilder::new()),
            Form::Bytes => Made::Bytes(BinaryViewBuilder::new()),
        };
        let scratch = Vec::new();
        Self { ty, made, scratch }
    }

    /// The number that stands in a row; none if that has to be looked at, or is no whole number.
    #[inline]
    fn whole_number(&self, stored: Stored<'_>) -> Option<i64> {
        let Stored::Fixed(bytes) = stored else {
            return None;
        };
        match &self.made {
            Made::Int2(_) => bytes.first_chunk().map(|it| i16::from_le_bytes(*it).into()),
            Made::Int4(_) => bytes.first_chunk().map(|it| i32::from_le_bytes(*it).into()),
            Made::Int8(_) => bytes.first_chunk().map(|it| i64::from_le_bytes(*it)),
            _ => None,
        }
    }

    /// Adds what stands in a row, if its bytes say it as they are; false, and nothing was added, if they have to be looked at.
    #[inline]
    pub fn push_stored(&mut self, stored: Stored<'_>) -> bool {
        let bytes = match stored {
            Stored::Fixed(bytes) => bytes,
            Stored::Null | Stored::Other => return false,
        };
        match &mut self.made {
            Made::Int2(made) => match bytes.first_chunk() {
                Some(bytes) => made.append_value(i16::from_le_bytes(*bytes)),
                None => return false,
            },
            Made::Int4(made) => match bytes.first_chunk() {
                Some(bytes) => made.append_value(i32::from_le_bytes(*bytes)),
                None => return false,
            },
            // Not every number is a time of day.
            Made::Int8(made) if self.ty != Type::Time => match bytes.first_chunk() {
                Some(bytes) => made.append_value(i64::from_le_bytes(*bytes)),
                None => return false,
            },
            Made::Float4(made) => match bytes.first_chunk() {
                Some(bytes) => made.append_value(f32::from_le_bytes(*bytes)),
                None => return false,
            },
            Made::Float8(made) => match bytes.first_chunk() {
                Some(bytes) => made.append_value(f64::from_le_bytes(*bytes)),
                None => return false,
            },
            Made::Decimal(made, _) => match bytes.first_chunk() {
                // A column's own scale is that of its kind.
                Some(bytes) if Stored::is_coefficient(i64::from_le_bytes(*bytes)) => {
                    made.append_value(i64::from_le_bytes(*bytes).into());
                }
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// # Errors
    /// A value of another type.
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        use ValueRef as V;
        let scratch = &mut self.scratch;
        match (&mut self.made, value) {
            (Made::Bool(made), V::Null) => made.append_null(),
            (Made::Int2(made), V::Null) => made.append_null(),
            (Made::Int4(made), V::Null) => made.append_null(),
            (Made::Int8(made), V::Null) => made.append_null(),
            (Made::Oid(made), V::Null) => made.append_null(),
            (Made::Float4(made), V::Null) => made.append_null(),
            (Made::Float8(made), V::Null) => made.append_null(),
            (Made::Text(made), V::Null) => made.append_null(),
            (Made::Bytes(made), V::Null) => made.append_null(),
            (Made::Decimal(made, _), V::Null) => made.append_null(),
            (Made::Decimal(made, _), V::Numeric(NumericRef::NaN)) => {
                made.append_value(NOT_A_NUMBER);
            }
            (
                Made::Decimal(made, scale),
                V::Numeric(NumericRef::Small {
                    coefficient,
                    scale: own,
                }),
            ) if own <= *scale => {
                let unit = 10i128.pow(u32::from(*scale - own));
                made.append_value(i128::from(coefficient) * unit);
            }
            (Made::Bool(made), V::Bool(value)) => made.append_value(value),
            (Made::Int2(made), V::Int2(value)) => made.append_value(value),
            (Made::Int4(made), V::Int4(value) | V::Date(Date(value))) => made.append_value(value),
            (
                Made::Int8(made),
                V::Int8(value)
                | V::Time(Time(value))
                | V::Timestamp(Timestamp(value))
                | V::Timestamptz(Timestamp(value)),
            ) => made.append_value(value),
            (Made::Int8(made), V::Enum(value)) => made.append_value(value.position),
            (Made::Oid(made), V::Oid(value)) => made.append_value(value),
            (Made::Float4(made), V::Float4(value)) => made.append_value(value),
            (Made::Float8(made), V::Float8(value)) => made.append_value(value),
            (Made::Text(made), V::Text(text) | V::Char(text) | V::Json(text)) => {
                made.append_value(text);
            }
            (Made::Bytes(made), V::Bytea(bytes)) => made.append_value(bytes),
            (Made::Bytes(made), V::Uuid(bytes)) => made.append_value(bytes),
            (Made::Bytes(made), V::Inet(value) | V::Cidr(value)) => {
                scratch.clear();
                value.put_key(scratch);
                made.append_value(scratch);
            }
            (Made::Bytes(made), V::Jsonb(value)) => made.append_value(value.bytes()),
            (Made::Bytes(made), V::Array(value)) => made.append_value(value.bytes()),
            (Made::Bytes(made), V::Numeric(value)) => {
                scratch.clear();
                value.store(scratch);
                made.append_value(scratch);
            }
            (Made::Bytes(made), V::Interval(value)) => {
                scratch.clear();
                scratch.extend_from_slice(&value.months.to_le_bytes());
                scratch.extend_from_slice(&value.days.to_le_bytes());
                scratch.extend_from_slice(&value.micros.to_le_bytes());
                made.append_value(scratch);
            }
            // What compares integers does not ask how wide they are.
            (Made::Int8(made), V::Int2(value)) if self.ty == Type::Int8 => {
                made.append_value(value.into());
            }
            (Made::Int8(made), V::Int4(value)) if self.ty == Type::Int8 => {
                made.append_value(value.into());
            }
            (Made::Int4(made), V::Int2(value)) if self.ty == Type::Int4 => {
                made.append_value(value.into());
            }
            (_, value) => {
                let (own, ty) = (value.ty(), self.ty);
                return Err(Error::internal(format!("{own:?} in a column of {ty:?}")));
            }
        }
        Ok(())
    }

    pub fn finish(self) -> ArrayRef {
        match self.made {
            Made::Bool(mut made) => Arc::new(made.finish()),
            Made::Int2(mut made) => Arc::new(made.finish()),
            Made::Int4(mut made) => Arc::new(made.finish()),
            Made::Int8(mut made) => Arc::new(made.finish()),
            Made::Oid(mut made) => Arc::new(made.finish()),
            Made::Float4(mut made) => Arc::new(made.finish()),
            Made::Float8(mut made) => Arc::new(made.finish()),
            Made::Text(mut made) => Arc::new(made.finish()),
            Made::Bytes(mut made) => Arc::new(made.finish()),
            Made::Decimal(mut made, _) => Arc::new(made.finish()),
        }
    }
}

/// A column that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnReader<'a> {
    ty: Type,
    read: Read<'a>,
    /// One value stands for all rows.
    constant: bool,
}

#[derive(Clone, Copy, Debug)]
enum Read<'a> {
    Bool(&'a BooleanArray),
    Int2(&'a Int16Array),
    Int4(&'a Int32Array),
    Int8(&'a Int64Array),
    Oid(&'a UInt32Array),
    Float4(&'a Float32Array),
    Float8(&'a Float64Array),
    Text(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
    /// Of [`SMALL_DIGITS`] at most.
    Decimal(&'a Decimal128Array),
}

impl<'a> ColumnReader<'a> {
    /// # Errors
    /// An array that is not of the type's form.
    pub fn new(ty: Type, array: &'a ArrayRef, constant: bool) -> Result<Self> {
        fn own<A: 'static>(array: &ArrayRef) -> Option<&A> {
            let array: &dyn Any = array.as_any();
            array.downcast_ref::<A>()
        }
        let read = match Form::of(ty) {
            Form::Bytes if ty == Type::Numeric && own::<Decimal128Array>(array).is_some() => {
                own(array).map(Read::Decimal)
            }
            Form::Bool => own(array).map(Read::Bool),
            Form::Int2 => own(array).map(Read::Int2),
            Form::Int4 => own(array).map(Read::Int4),
            Form::Int8 => own(array).map(Read::Int8),
            Form::Oid => own(array).map(Read::Oid),
            Form::Float4 => own(array).map(Read::Float4),
            Form::Float8 => own(array).map(Read::Float8),
            Form::Text => own(array).map(Read::Text),
            Form::Bytes => own(array).map(Read::Bytes),
        };
        let read = read.ok_or_else(|| {
            let found = array.data_type();
            Error::internal(format!("{found} in a column of {ty:?}"))
        })?;
        Ok(Self { ty, read, constant })
    }

    /// The value of a row.
    ///
    /// # Errors
    /// Bytes that are no value.
    pub fn get(&self, row: usize) -> Result<ValueRef<'a>> {
        let row = if self.constant { 0 } else { row };
        Ok(match self.read {
            Read::Bool(array) if array.is_valid(row) => ValueRef::Bool(array.value(row)),
            Read::Int2(array) if array.is_valid(row) => ValueRef::Int2(array.value(row)),
            Read::Int4(array) if array.is_valid(row) => match self.ty {
                Type::Date => ValueRef::Date(Date(array.value(row))),
                _ => ValueRef::Int4(array.value(row)),
            },
            Read::Int8(array) if array.is_valid(row) => match (self.ty, array.value(row)) {
                (Type::Time, value) => ValueRef::Time(Time(value)),
                (Type::Enum(of), position) => ValueRef::Enum(EnumValue { of, position }),
                (Type::Timestamp, value) => ValueRef::Timestamp(Timestamp(value)),
                (Type::Timestamptz, value) => ValueRef::Timestamptz(Timestamp(value)),
                (_, value) => ValueRef::Int8(value),
            },
            Read::Oid(array) if array.is_valid(row) => ValueRef::Oid(array.value(row)),
            Read::Float4(array) if array.is_valid(row) => ValueRef::Float4(array.value(row)),
            Read::Float8(array) if array.is_valid(row) => ValueRef::Float8(array.value(row)),
            Read::Text(array) if array.is_valid(row) => match (self.ty, array.value(row)) {
                (Type::Char, text) => ValueRef::Char(text),
                (Type::Json, text) => ValueRef::Json(text),
                (_, text) => ValueRef::Text(text),
            },
            Read::Bytes(array) if array.is_valid(row) => {
                let found = bytes_as(self.ty, array.value(row));
                found.ok_or_else(|| Error::internal(format!("bytes that are no {:?}", self.ty)))?
            }
            Read::Decimal(array) if array.is_valid(row) => {
                let found = small(array.value(row), array.scale());
                ValueRef::Numeric(found.ok_or_else(|| Error::internal("a decimal that is long"))?)
            }
            _ => ValueRef::Null,
        })
    }
}

fn small(value: i128, scale: i8) -> Option<NumericRef<'static>> {
    if value == NOT_A_NUMBER {
        return Some(NumericRef::NaN);
    }
    let coefficient = i64::try_from(value).ok()?;
    let fits = coefficient.unsigned_abs() < 10u64.pow(u32::from(SMALL_DIGITS));
    let scale = u8::try_from(scale).ok()?;
    fits.then_some(NumericRef::Small { coefficient, scale })
}

fn bytes_as(ty: Type, bytes: &[u8]) -> Option<ValueRef<'_>> {
    Some(match ty {
        Type::Bytea => ValueRef::Bytea(bytes),
        Type::Uuid => ValueRef::Uuid(bytes.try_into().ok()?),
        Type::Numeric => ValueRef::Numeric(NumericRef::from_stored(bytes)?),
        Type::Inet => ValueRef::Inet(Inet::from_key(bytes)?),
        Type::Cidr => ValueRef::Cidr(Inet::from_key(bytes)?),
        Type::Jsonb => ValueRef::Jsonb(JsonbRef::from_stored(bytes)),
        Type::Interval => {
            let (months, rest) = bytes.split_first_chunk()?;
            let (days, rest) = rest.split_first_chunk()?;
            ValueRef::Interval(Interval {
                months: i32::from_le_bytes(*months),
                days: i32::from_le_bytes(*days),
                micros: i64::from_le_bytes(rest.try_into().ok()?),
            })
        }
        _ => ValueRef::Array(Items::from_stored(bytes)?),
    })
}

/// The readers of all columns.
pub(crate) fn readers<'a>(types: &[Type], arrays: &'a [ArrayRef]) -> Result<Vec<ColumnReader<'a>>> {
    debug_assert_eq!(types.len(), arrays.len());
    let pairs = types.iter().zip(arrays);
    pairs
        .map(|(ty, array)| ColumnReader::new(*ty, array, false))
        .collect()
}

/// The schema of columns with these names.
pub(crate) fn schema(columns: impl IntoIterator<Item = (String, Kind)>) -> SchemaRef {
    let fields = columns.into_iter();
    let fields = fields.map(|(name, kind)| Field::new(name, kind.data_type(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// One value as an array.
pub(crate) fn single(kind: impl Into<Kind>, value: ValueRef<'_>) -> Result<ArrayRef> {
    let mut column = ColumnBuilder::new(kind);
    column.push(value)?;
    Ok(column.finish())
}

/// Values that a function made, one a row.
pub(crate) fn computed(
    ty: Type,
    rows: usize,
    mut value: impl FnMut(usize) -> std::result::Result<Value, Failure>,
) -> std::result::Result<ArrayRef, Failure> {
    let mut column = ColumnBuilder::new(ty);
    for row in 0..rows {
        column.push(value(row)?.as_ref())?;
    }
    Ok(column.finish())
}
