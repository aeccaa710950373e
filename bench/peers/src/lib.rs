//! Other engines, as the bench sees them: adapters of `vellum_workload::engine`, each behind the feature of its name, so that
//! nobody builds what he does not measure.
//!
//! What is equal: one snapshot a transaction, keys and values as bytes, memory as given, and when a commit returns (`sync`: on disk;
//! `async`: at once, and the database is whole after any kill). What each tells of itself (`vellum_workload::engine::Terms`: what a kill and what
//! a power loss take, isolation, memory), every report shows.
//!
//! Who declares himself analytical gets a reader's transaction: an engine with one writer at a time would stop for him.
//!
//! | engine | writers | `async`: a kill of the process loses | and a power loss | memory |
//! | --- | --- | --- | --- | --- |
//! | Vellum | any number, first to write wins (snapshot) | the last 50 ms | the last 50 ms | pool as given |
//! | RocksDB | any number, first to write wins, the others wait (snapshot); sorted loads go past transactions and the log | the last 50 ms: `manual_wal_flush`, and a thread that flushes and syncs | the last 50 ms | block cache as given, write buffers beside it; a transaction's writes until its end |
//! | fjall | any number, first to commit wins (serializable); where one client writes, one at a time; sorted loads go past transactions | the last 50 ms: `manual_journal_persist`, and a thread that syncs | the last 50 ms | block cache as given, write buffers beside it |
//! | redb | one at a time, the others wait | the last second: a commit a second is durable | the last second | cache as given |
//! | WiredTiger | any number, first to write wins (snapshot); sorted loads into untouched tables go past transactions | a moment: the log is written behind the commits | up to its checkpoint, a minute | cache as given, of which a transaction's changes may take a fraction; the kernel's beside it |
//! | PostgreSQL | any number, first to write wins, the others wait (snapshot) | `synchronous_commit=off`: 0.6 seconds, of its own processes | the same | `shared_buffers` as given, the kernel's cache beside it |
//! | canopydb | any number, first to commit wins (snapshot); one alone has an exclusive transaction | nothing: a system call a commit (as `canopydb-nowal`, without its log: the last second, and what a checkpoint is writing) | the last second (the same) | page cache as given, changed pages beside it |
//! | SQLite | one at a time, the others wait | nothing: a system call a commit | since its checkpoint (`synchronous=NORMAL`) | the file mapped as far as given (2 GiB at most), and of each session that uses them as many bytes of pages in the log or changed |
//! | LMDB | one at a time, the others wait | nothing: a system call a commit (as `lmdb-writemap`: none, the map is the kernel's) | since the kernel wrote, and may damage the file (`MDB_NOSYNC`) | the kernel's, unbounded |
//!
//! The last three pay system calls for what nobody asked: SQLite has no way to leave a commit in the process, LMDB writes in its map or by system calls,
//! canopydb's log is written at each commit. What leaves that out is an engine of its own.

// LMDB and WiredTiger are called as the C that they are.
#![cfg_attr(
    not(any(feature = "lmdb", feature = "wiredtiger")),
    forbid(unsafe_code)
)]

#[cfg(any(feature = "fjall", feature = "rocksdb"))]
mod background;
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
