//! SQL over the engine: sessions that take statements' texts and answer with rows, as PostgreSQL would.
//!
//! [`Sql`] runs statements of the program that has the database open. [`SqlDatabase`] opens the catalog of an engine database; [`Session`] runs statements for one client. Whoever carries
//! bytes to the client implements [`Sink`]. The structure is told in `docs/design/0015-sql.md`.
//!
//! Not here: sockets, message framing, authentication (`server`); values and their codecs (`row`); pages and versions
//! (`engine`).
#![forbid(unsafe_code)]

mod bind;
mod catalog;
mod database;
mod ddl;
mod direct;
mod error;
mod exec;
mod expr;
mod extension;
mod general;
mod lock;
mod names;
mod numbers;
mod parse;
mod plan;
mod roles;
mod rows;
mod session;
mod sorted;
pub mod sqlstate;
mod statistics;
mod system;
mod verify;
mod wire;

pub use arrow;
pub use database::{DATABASE, FIRST_ROLE, Password, PasswordMaker, SqlDatabase, database_called};
pub use direct::{Connection, Rows, RowsColumn, Sql};
pub use error::{Fields, Result, Severity, SqlError};
pub use parse::{STACK_BYTES, without_passwords};
pub use roles::{Membership, Role};
pub use session::{
    CancelHandle, Notification, Parameters, Progress, Session, SessionOptions,
    StatementDescription, TransactionStatus,
};
pub use sqlstate::SqlState;
pub use vellum_row::{Type, Typmod, Value};
pub use verify::{StoredRelation, is_of_sql, stored_relations, verify};
pub use wire::{CommandTag, CopyShape, Field, Format, Gone, OutputRow, Sink, Told};
