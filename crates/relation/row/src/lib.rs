//! What SQL's values are: types, values, their text and binary forms, casts, comparison,
//! arithmetic, and the bytes they have in rows and keys. Answers and errors are those of
//! PostgreSQL 15.
//!
//! Not here: expressions, names, nulls in operators (SQL); which columns make a key (catalog).
#![forbid(unsafe_code)]

pub mod datetime;
mod error;
pub mod json;
pub mod numeric;
pub mod schema;
mod types;
mod value;

pub use error::{Result, SqlError, SqlState};
pub use json::{Jsonb, JsonbRef};
pub use numeric::{Numeric, NumericRef};
pub use schema::{Assigned, Column, ColumnId, RowView, Schema};
pub use types::{IntervalFields, NUMERIC_PRECISION_MAX, STRING_LENGTH_MAX, TYPES, Type, Typmod};
pub use value::{Value, ValueRef};
