//! What SQL's values are: types, values, their text and binary forms, casts, comparison,
//! arithmetic, and the bytes they have in rows and keys. Answers and errors are those of
//! PostgreSQL 15.
//!
//! Not here: expressions, names, nulls in operators (SQL); which columns make a key (catalog).
#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod array;
mod binary;
mod bytes;
mod cast;
mod compare;
pub mod datetime;
mod error;
mod float;
pub mod functions;
mod integer;
pub mod json;
pub mod key;
pub mod moments;
pub mod network;
pub mod numeric;
mod pattern;
pub mod schema;
#[cfg(test)]
mod seed;
mod settings;
mod snapshot;
mod strings;
mod text;
mod types;
mod typmod;
mod user;
mod value;

pub use array::{Array, ArrayRef};
pub use binary::{receive, send};
pub use cast::{CastContext, cast, cast_between, is_ready};
pub use compare::{compare, hash};
pub use error::{Result, SqlError, SqlState};
pub use json::{Jsonb, JsonbRef};
pub use key::{KeyCodec, KeyColumn, KeyRange};
pub use network::Inet;
pub use numeric::{GoOn, Numeric, NumericRef};
pub use pattern::Pattern;
pub use schema::{Assigned, Column, ColumnId, FixedPlace, RowView, RowWriter, Schema, Stored};
pub use settings::{ByteaOutput, DateOrder, DateStyle, IntervalStyle, Settings};
pub use snapshot::Snapshot;
pub use text::{input, output, show, text_of_bytes};
pub use types::{
    CATALOG_TYPES, IntervalFields, NUMERIC_PRECISION_MAX, STRING_LENGTH_MAX, TYPES, Type, Typmod,
};
pub use user::{
    DomainName, EnumId, EnumLabel, EnumType, EnumValue, FIRST_USER_OID, KEPT, LABEL_BYTES_MAX,
    Neighbour, UserTypes, receive_from_client, send_to_client,
};
pub use value::{VALUE_BYTES_MAX, Value, ValueRef, check_length};
