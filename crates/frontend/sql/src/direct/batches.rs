//! Rows as Arrow batches, in the types that programs of Arrow expect.
//!
//! | SQL | Arrow |
//! | --- | --- |
//! | boolean, integers, floats | the same |
//! | `numeric(p,s)` with at most 38 digits, none of them before the point by force (`0 <= s <= p`) | `Decimal128(p, s)` |
//! | other `numeric` | `Utf8` |
//! | oid and its like | `UInt32` |
//! | date, time | `Date32`, `Time64` in microseconds |
//! | timestamp, timestamptz | `Timestamp` in microseconds, without a zone and with UTC |
//! | interval | `Interval(MonthDayNano)` |
//! | uuid | `FixedSizeBinary(16)` |
//! | bytea | `Binary` |
//! | text, json, arrays and all others | `Utf8`, as the session writes them: by its settings, enums as their labels, `regclass` and its like in arrays as names |
//!
//! Differences: Arrow's dates and times have no infinities: the largest and smallest values stand for them.

use super::{Rows, RowsColumn};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryBuilder,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray,
    StringArray, Time64MicrosecondArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::sync::Arc;
use vellum_row::{Settings, Type, Value, ValueRef, output};

/// Days and microseconds from 1970, where Arrow counts from, to 2000.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = 946_684_800_000_000;

impl Rows {
    /// The rows as Arrow batches of at most `rows_max` rows each; one empty batch if there are none.
    ///
    /// # Errors
    /// `22003` for a value that Arrow's type cannot hold: NaN as a decimal, an interval of more than 292 years of hours.
    ///
    /// # Panics
    /// If `rows_max` is 0.
    pub fn batches(&self, rows_max: usize) -> Result<Vec<RecordBatch>> {
        let fields = self.columns.iter().map(|column| {
            let data_type = kind(column).data_type();
            Field::new(&column.name, data_type, true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let pieces: Vec<&[Vec<Value>]> = if self.rows.is_empty() {
            vec![&[]]
        } else {
            self.rows.chunks(rows_max).collect()
        };
        let batch = |rows: &[Vec<Value>]| {
            let columns = self.columns.iter().enumerate();
            let columns = columns
                .map(|(number, column)| self.array(column, rows, number))
                .collect::<Result<Vec<ArrayRef>>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            RecordBatch::try_new_with_options(schema.clone(), columns, &options)
                .map_err(|error| SqlError::internal(error.to_string()))
        };
        pieces.into_iter().map(batch).collect()
    }

    /// A column of some rows.
    fn array(&self, column: &RowsColumn, rows: &[Vec<Value>], number: usize) -> Result<ArrayRef> {
        let kind = kind(column);
        let values = || rows.iter().map(|row| &row[number]);
        macro_rules! plain {
            ($array:ty, $pattern:pat => $value:expr) => {
                Arc::new(<$array>::from_iter(values().map(|value| match value {
                    $pattern => Some($value),
                    _ => None,
                })))
            };
        }
        Ok(match kind {
            Kind::Bool => plain!(BooleanArray, Value::Bool(value) => *value),
            Kind::Int2 => plain!(Int16Array, Value::Int2(value) => *value),
            Kind::Int4 => plain!(Int32Array, Value::Int4(value) => *value),
            Kind::Int8 => plain!(Int64Array, Value::Int8(value) => *value),
            Kind::Float4 => plain!(Float32Array, Value::Float4(value) => *value),
            Kind::Float8 => plain!(Float64Array, Value::Float8(value) => *value),
            Kind::Oid => plain!(UInt32Array, Value::Oid(value) => *value),
            Kind::Date => {
                plain!(Date32Array, Value::Date(date) => date.0.saturating_add(EPOCH_DAYS))
            }
            Kind::Time => plain!(Time64MicrosecondArray, Value::Time(time) => time.0),
            Kind::Timestamp { utc } => {
                let made =
                    TimestampMicrosecondArray::from_iter(values().map(|value| match value {
                        Value::Timestamp(at) | Value::Timestamptz(at) => {
                            Some(at.0.saturating_add(EPOCH_MICROS))
                        }
                        _ => None,
                    }));
                Arc::new(made.with_timezone_opt(utc.then_some("UTC")))
            }
            Kind::Decimal(precision, scale) => {
                let values = values().map(decimal).collect::<Result<Vec<_>>>()?;
                let made = Decimal128Array::from_iter(values);
                let made = made.with_precision_and_scale(precision, scale);
                Arc::new(made.map_err(|_| out_of_range("numeric"))?)
            }
            Kind::Interval => {
                let values = values().map(interval).collect::<Result<Vec<_>>>()?;
                Arc::new(IntervalMonthDayNanoArray::from_iter(values))
            }
            Kind::Uuid => {
                let mut made = FixedSizeBinaryBuilder::with_capacity(rows.len(), 16);
                for value in values() {
                    match value {
                        Value::Uuid(bytes) => made
                            .append_value(bytes)
                            .map_err(|error| SqlError::internal(error.to_string()))?,
                        _ => made.append_null(),
                    }
                }
                Arc::new(made.finish())
            }
            Kind::Bytes => {
                let mut made = BinaryBuilder::new();
                for value in values() {
                    match value {
                        Value::Bytea(bytes) => made.append_value(bytes),
                        _ => made.append_null(),
                    }
                }
                Arc::new(made.finish())
            }
            Kind::Text => {
                let texts = values().map(|value| self.text(column.ty, value));
                let texts = texts.collect::<Result<Vec<_>>>()?;
                Arc::new(StringArray::from_iter(texts))
            }
        })
    }

    /// A value as the session writes it.
    fn text(&self, ty: Type, value: &Value) -> Result<Option<String>> {
        let element = match ty {
            Type::Array(element) => Some(element.ty()).filter(|element| element.is_reg()),
            _ => None,
        };
        let named = match (element, value.as_ref()) {
            (_, ValueRef::Null) => return Ok(None),
            (Some(element), ValueRef::Array(oids)) => {
                Some(Value::Array(oids.map(Type::Text, |oid| {
                    Ok(match oid {
                        Value::Oid(oid) => {
                            let name = self.names.get(&(element, oid)).cloned();
                            Value::text(name.unwrap_or_else(|| oid.to_string()))
                        }
                        other => other,
                    })
                })?))
            }
            _ => None,
        };
        let mut text = String::new();
        output(
            named.as_ref().unwrap_or(value).as_ref(),
            &self.forms,
            &mut text,
        )?;
        Ok(Some(text))
    }
}

/// How a column is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Decimal(u8, i8),
    Oid,
    Date,
    Time,
    Timestamp { utc: bool },
    Interval,
    Uuid,
    Bytes,
    Text,
}

/// The most digits of a `Decimal128`.
const DIGITS_MAX: i32 = 38;

fn kind(column: &RowsColumn) -> Kind {
    match column.ty {
        Type::Bool => Kind::Bool,
        Type::Int2 => Kind::Int2,
        Type::Int4 => Kind::Int4,
        Type::Int8 => Kind::Int8,
        Type::Float4 => Kind::Float4,
        Type::Float8 => Kind::Float8,
        Type::Numeric => match column.typmod.precision_scale() {
            Some((precision, scale))
                if precision <= DIGITS_MAX && (0..=precision).contains(&scale) =>
            {
                Kind::Decimal(precision as u8, scale as i8)
            }
            _ => Kind::Text,
        },
        ty if ty.is_oid() => Kind::Oid,
        Type::Date => Kind::Date,
        Type::Time => Kind::Time,
        Type::Timestamp => Kind::Timestamp { utc: false },
        Type::Timestamptz => Kind::Timestamp { utc: true },
        Type::Interval => Kind::Interval,
        Type::Uuid => Kind::Uuid,
        Type::Bytea => Kind::Bytes,
        _ => Kind::Text,
    }
}

impl Kind {
    fn data_type(self) -> DataType {
        use arrow::datatypes::{IntervalUnit, TimeUnit::Microsecond};
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int2 => DataType::Int16,
            Self::Int4 => DataType::Int32,
            Self::Int8 => DataType::Int64,
            Self::Float4 => DataType::Float32,
            Self::Float8 => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(precision, scale),
            Self::Oid => DataType::UInt32,
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(Microsecond),
            Self::Timestamp { utc } => DataType::Timestamp(Microsecond, utc.then(|| "UTC".into())),
            Self::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Bytes => DataType::Binary,
            Self::Text => DataType::Utf8,
        }
    }
}

/// A number as an integer of its last digit. It has as many digits behind the point as its column.
fn decimal(value: &Value) -> Result<Option<i128>> {
    if value.as_ref().is_null() {
        return Ok(None);
    }
    let mut text = String::new();
    output(value.as_ref(), &Settings::default(), &mut text)?;
    text.retain(|char| char != '.');
    let number = text.parse();
    number.map(Some).map_err(|_| out_of_range("numeric"))
}

fn interval(value: &Value) -> Result<Option<IntervalMonthDayNano>> {
    let Value::Interval(interval) = value else {
        return Ok(None);
    };
    let nanos = interval.micros.checked_mul(1000);
    let nanos = nanos.ok_or_else(|| out_of_range("interval"))?;
    let months = interval.months;
    Ok(Some(IntervalMonthDayNano::new(
        months,
        interval.days,
        nanos,
    )))
}

#[cold]
fn out_of_range(what: &str) -> SqlError {
    let message = format!("{what} out of range of the batch's type");
    SqlError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message)
}
