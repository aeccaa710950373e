//! Other engines, as the bench sees them: adapters of `vellum_workload::engine`, each behind the feature of its name, so that
//! nobody builds what he does not measure.
//!
//! What is equal: one snapshot a transaction, keys and values as bytes, memory as given, and when a commit returns (`sync`: on disk;
//! `async`: at once, and what a crash of the machine loses is said here). What an engine cannot do otherwise is
//! in its `Description`, so that every report shows it.
//!
//! Who declares itself analytical gets a reader's transaction: an engine with one writer at a time would stop for it.
//!
//! | engine | writers | `async` | memory |
//! | --- | --- | --- | --- |
//! | LMDB | one at a time, the others wait | no sync at all: a crash of the machine may damage the file (Vellum loses the last commits) | the kernel's, unbounded |
//! | redb | one at a time, the others wait | a commit a second is durable, those behind the last such are lost | cache as given |
//! | SQLite | one at a time, the others wait | WAL, `synchronous=OFF`: a crash of the machine may damage the file | page cache as given, one a session |
//! | canopydb | any number, first to commit wins (snapshot); one alone has an exclusive transaction | log written, synced every second | page cache as given, changed pages beside it |
//! | RocksDB | any number, first to write wins, the others wait (snapshot); sorted loads go past transactions | log in the kernel's memory | block cache as given, write buffers beside it; a transaction's writes until its end |
//! | WiredTiger | any number, first to write wins (snapshot); sorted loads into untouched tables go past transactions | log written after a moment, synced with its files and checkpoints | cache as given, of which a transaction's changes may take a fraction; the kernel's beside it |
//! | PostgreSQL | any number, first to write wins, the others wait (snapshot) | `synchronous_commit=off` | `shared_buffers` as given, the kernel's cache beside it |
//! | fjall | any number, first to commit wins (serializable); sorted loads go past transactions | journal in the kernel's memory | block cache as given, write buffers beside it |

// LMDB's files are mapped: opening them is unsafe, and says why. WiredTiger is called as the C that it is.
#![cfg_attr(
    not(any(feature = "lmdb", feature = "wiredtiger")),
    forbid(unsafe_code)
)]

#[cfg(feature = "canopydb")]
pub mod canopydb;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "lmdb")]
pub mod lmdb;
#[cfg(feature = "postgresql")]
pub mod postgresql;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "wiredtiger")]
pub mod wiredtiger;

use std::path::PathBuf;
use vellum_workload::engine::EngineError;

/// What an engine is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// A directory that exists.
    pub data: PathBuf,
    /// Bytes that the engine may keep in memory.
    pub memory_bytes: u64,
    /// A commit returns when it is on disk.
    pub sync: bool,
    /// Clients at a time, at most.
    pub sessions: usize,
    /// Tables of the workload.
    pub tables: usize,
    /// Clients that may write at a time, at most.
    pub writers: usize,
}

/// Engines that this build has, by the names of their features.
pub const BUILT: &[&str] = &[
    #[cfg(feature = "canopydb")]
    "canopydb",
    #[cfg(feature = "fjall")]
    "fjall",
    #[cfg(feature = "lmdb")]
    "lmdb",
    #[cfg(feature = "postgresql")]
    "postgresql",
    #[cfg(feature = "redb")]
    "redb",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
    #[cfg(feature = "sqlite")]
    "sqlite",
    #[cfg(feature = "wiredtiger")]
    "wiredtiger",
];

/// A session was asked outside of a transaction.
#[cold]
#[allow(dead_code, reason = "a build without peers has no sessions")]
fn no_transaction() -> EngineError {
    EngineError::Unusable("an operation outside a transaction".to_owned())
}

/// What this machine lacks to run a peer of this name that is built in, if anything.
pub fn lacking(name: &str) -> Option<String> {
    match name {
        #[cfg(feature = "postgresql")]
        "postgresql" => postgresql::lacking(),
        _ => None,
    }
}
