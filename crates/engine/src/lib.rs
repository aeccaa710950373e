//! Vellum: an embedded multi-version database.
//!
//! Ordered tables of byte keys and values in one directory, larger than memory, durable, for many threads.
//! Readers see a snapshot and never wait; writers never wait for each other (the first one wins, the
//! second gets [`Error::Conflict`] and runs again); old versions go as soon as no snapshot needs them.
//!
//! ```
//! use vellum::{Config, Database};
//!
//! # fn main() -> vellum::Result<()> {
//! # let directory = tempfile::tempdir().expect("a temporary directory");
//! # let path = directory.path();
//! let database = Database::open(path, Config::default())?;
//! database.retry(|transaction| {
//!     let cities = transaction.create_table("cities")?;
//!     transaction.insert(&cities, b"Erlangen", b"112528")?;
//!     transaction.insert(&cities, b"Garching", b"17711")
//! })?;
//! let reader = database.begin()?;
//! let cities = reader.table("cities")?;
//! let mut cursor = reader.cursor(&cities, ..)?;
//! while let Some((name, people)) = cursor.next()? {
//!     println!("{} {}", String::from_utf8_lossy(name), String::from_utf8_lossy(people));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Callbacks
//! Values are lent to callbacks ([`Transaction::get`], [`Transaction::update`], [`Cursor::batch`] …). They run with no latch held, on private
//! copies, and may take their time. They may call the database, and begin, commit and roll back other transactions; a row or table that
//! their own, open transaction wrote is a conflict to those as to anybody's. They may use their own transaction, too:
//!
//! - Callbacks that read ([`Transaction::get`], [`Transaction::get_chunks`], [`Transaction::multi_get`], [`Cursor::batch`]) may do anything. The
//!   operation goes on with what it saw when it began, without what was rolled back; [`Transaction::get_chunks`] ends with
//!   [`Error::InvalidArgument`] if that is the value that it reads.
//! - The callback of [`Transaction::update`] may do anything but write the same row, make, drop, load or roll back its table or an index of it
//!   (the update is [`Error::InvalidArgument`] then and writes nothing, what the callback did stays), begin a statement, or share the snapshot (which
//!   are refused themselves).
//! - The callback of [`Transaction::bulk_load`] may read, and open cursors, as the transaction may between the rows of
//!   [`Transaction::load_row`]. Writes, savepoints and all that changes tables are refused with [`Error::InvalidArgument`].
//! - The closure of [`Database::retry`] runs with its transaction open: another one that it begins and that writes the same rows conflicts as
//!   long, so such a loop inside the loop ends in [`Error::Conflict`] after its last try.
//!
//! A panic in a callback goes through to whoever called the operation. If that goes on, the transaction is usable, unless it was a load's
//! callback: then it can only be rolled back.
//!
//! None of these is a conflict that another try could not meet: those are with other transactions alone.
#![forbid(unsafe_code)]

mod ahead;
mod background;
mod backup;
mod buffers;
mod bulk;
mod carry;
mod checkpoint;
mod chunks;
mod config;
mod contention;
mod control;
mod convert;
mod cursor;
mod database;
mod engine;
mod error;
mod experiment;
mod health;
mod holders;
mod kept_snapshot;
mod known_tables;
mod load;
mod newer;
mod open;
mod options;
mod recovery;
mod reserve;
mod schema;
mod share;
mod statement;
mod statistics;
mod transaction;
mod verify;
mod version_budget;
mod versions;

pub use background::Work as BackgroundWork;
pub use config::{Config, Protocol, VersionOptions};
pub use contention::{Blocker, Newest};
pub use cursor::Cursor;
pub use database::{Database, PendingBegin};
pub use error::{Error, Family, Result};
pub use experiment::Experiment;
pub use health::Health;
pub use holders::{Holder, TransactionId};
pub use kept_snapshot::KeptSnapshot;
pub use options::{Class, Durability, Isolation, TransactionOptions};
pub use schema::{Index, Table};
pub use share::{Follower, SharedSnapshot};
pub use statement::OwnWrites;
pub use statistics::Statistics;
pub use transaction::{PendingCommit, Savepoint, Transaction};
pub use vellum_io::outlive_file_limits;
pub use vellum_table::{KeyDescription, KeyPart, Source};
pub use vellum_txn::Touched;
pub use verify::{
    EntrySums, Finding, IndexReport, Inspection, LogReport, PagesReport, Recovery, Report,
    TableReport, TreeReport, inspect_directory, verify_directory, verify_path,
};
pub use version_budget::{VersionPolicy, Withdrawn};
pub use versions::{OldVersions, TableVersions, Tally, VersionKind, VersionSums};

/// The example of the README runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
