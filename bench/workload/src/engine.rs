//! What a workload asks of a database: ordered tables of byte keys and values, and transactions.
//!
//! Vellum and its peers each implement this pair of traits in a file of their own. Every method is
//! generic over its callback, so that a measured engine pays for no dynamic call and no allocation
//! that it does not make itself.
//!
//! Invariants that an implementation keeps:
//! - I1 A session runs one transaction after another. Reads and writes happen between
//!   [`Session::begin`] and [`Session::commit`] or [`Session::rollback`].
//! - I2 After an error of [`Session::commit`] or of an operation the caller calls
//!   [`Session::rollback`], which succeeds even where the engine has rolled back already.
//! - I3 Keys are ordered as byte strings. An empty value is a value.
//! - I4 Every transaction reads one snapshot of all tables, its own writes included; one that asks for
//!   [`Isolation::ReadCommitted`] reads one an operation, and changes rows as they are when it does.

use std::error::Error;
use std::ops::Range;

/// Result of what an engine was asked to do.
pub type Result<T> = std::result::Result<T, EngineError>;

/// A table, by its position in the list given to [`Engine::ensure_tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Table(u16);

impl Table {
    /// The table at `position` of the workload's list.
    pub const fn at(position: u16) -> Self {
        Self(position)
    }

    /// The position, for an adapter that keeps its handles in a vector.
    #[inline]
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}

/// Name of a table that a workload needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// How the workload speaks of it; equal to its position in the list.
    pub table: Table,
    /// What it is called inside the database.
    pub name: &'static str,
    /// Rows are added at its end and deleted at its begin, which who knows it may set an engine for.
    pub is_queue: bool,
}

/// Why an engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Another transaction was first; the same transaction may succeed when it is run again.
    #[error("conflict with a concurrent transaction")]
    Conflict,
    /// The engine has given the transaction's snapshot up, to keep fewer old versions; the same transaction may succeed when it is run again.
    #[error("the snapshot was given up")]
    SnapshotTooOld,
    /// An insert met a row.
    #[error("key exists already in table {}", .0.position())]
    KeyExists(Table),
    /// A row that the workload wrote earlier is not there, or not as it was written.
    #[error("wrong data in table {}: {what}", .table.position())]
    WrongData {
        /// Where it was looked for.
        table: Table,
        /// What was wrong.
        what: String,
    },
    /// The workload cannot run on this database: half a load, other parameters, wrong request.
    #[error("{0}")]
    Unusable(String),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Anything else: I/O, corruption, out of space, usage.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl EngineError {
    /// True if running the same transaction again may succeed.
    #[inline]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Conflict | Self::SnapshotTooOld)
    }

    /// Wraps an engine's own error.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }

    /// A row is missing that must be there.
    #[cold]
    pub fn missing(table: Table) -> Self {
        Self::WrongData {
            table,
            what: "a row that must exist is missing".to_owned(),
        }
    }
}

/// What a transaction sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// One snapshot.
    #[default]
    Snapshot,
    /// What was committed when an operation begins. Not every engine has it.
    ReadCommitted,
}

/// What a transaction promises before its first operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxOptions {
    /// What it sees.
    pub isolation: Isolation,
    /// It writes nothing.
    pub read_only: bool,
    /// It says itself that it is long or analytical. An engine that does not ask ignores this.
    pub analytical: bool,
}

impl TxOptions {
    /// A transaction that may write.
    pub const READ_WRITE: Self = Self {
        isolation: Isolation::Snapshot,
        read_only: false,
        analytical: false,
    };
    /// A transaction that only reads.
    pub const READ_ONLY: Self = Self {
        isolation: Isolation::Snapshot,
        read_only: true,
        analytical: false,
    };
    /// A transaction that declares itself analytical, and may write.
    pub const ANALYTICAL: Self = Self {
        isolation: Isolation::Snapshot,
        read_only: false,
        analytical: true,
    };

    /// The same at another level.
    #[must_use]
    pub const fn with_isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest key at or above the start, upwards.
    Forward,
    /// From the largest key at or below the start, downwards.
    Backward,
}

/// Totals since the engine was opened. A driver reports differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Pages read from the data file.
    pub pages_read: u64,
    /// Pages written to the data file.
    pub pages_written: u64,
    /// Whatever else the engine counts: name, value.
    pub more: Vec<(&'static str, u64)>,
}

/// Old versions of one table and one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldVersions {
    /// The table's name; what belongs to none has none.
    pub table: Option<String>,
    /// The engine's word for them.
    pub kind: &'static str,
    /// How many.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// An open transaction that keeps old versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// The engine's name for it.
    pub transaction: String,
    /// The engine's word for what it is taken for.
    pub class: &'static str,
    /// It has written.
    pub writer: bool,
    /// Ticks of the engine's clock since its snapshot.
    pub age_ticks: u64,
    /// Seconds that it has been open.
    pub age_s: f64,
    /// Old versions that would go if it and all older ones ended.
    pub versions: u64,
    /// Bytes of them.
    pub version_bytes: u64,
    /// These are all.
    pub complete: bool,
}

/// Who is measured, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Name of the engine.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Settings that it was opened with, as text: those of its [`Terms`] first; the size of its pages as "page_size".
    pub settings: Vec<(String, String)>,
}

/// What is told of every engine, so that nobody compares it without knowing: each as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What a transaction sees of others.
    pub isolation: String,
    /// When a commit returns.
    pub durability: String,
    /// What a kill of the engine's processes loses of that.
    pub lost_by_kill: String,
    /// What a power loss loses of it.
    pub lost_by_power_loss: String,
    /// What of it is in memory, at most.
    pub memory: String,
}

/// Names of the settings that [`Terms`] become.
pub const TERMS: [&str; 5] = [
    "isolation",
    "durability",
    "lost_by_kill",
    "lost_by_power_loss",
    "memory",
];

impl Description {
    /// An engine that says what all say, and more.
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        terms: Terms,
        more: Vec<(&'static str, String)>,
    ) -> Self {
        let terms = [
            terms.isolation,
            terms.durability,
            terms.lost_by_kill,
            terms.lost_by_power_loss,
            terms.memory,
        ];
        let settings = TERMS.into_iter().zip(terms).chain(more);
        Self {
            name: name.into(),
            version: version.into(),
            settings: settings
                .map(|(name, told)| (name.to_owned(), told))
                .collect(),
        }
    }
}

/// An open database.
pub trait Engine: Sync {
    /// A client of it. Opened, used and closed by one thread.
    type Session<'e>: Session
    where
        Self: 'e;

    /// Creates the tables that do not exist yet, durably, and makes all of them known to later
    /// sessions under their positions.
    ///
    /// # Errors
    /// Whatever the engine reports. A second call replaces the list.
    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()>;

    /// Names of the tables that the database holds, in any order; `None` if the engine cannot list them.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn table_names(&self) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    /// A new client.
    ///
    /// # Errors
    /// Whatever the engine reports, exhaustion of clients included.
    fn open_session(&self) -> Result<Self::Session<'_>>;

    /// Writes out what is only in the log or in memory, so that a measurement starts from rest.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn checkpoint(&self) -> Result<()>;

    /// Totals so far. Cheap enough to be asked once a second beside a running workload.
    fn statistics(&self) -> Statistics;

    /// Old versions by table and kind, where the engine can tell, and whether these are all. May cost some milliseconds.
    fn old_versions(&self) -> (Vec<OldVersions>, bool) {
        (Vec::new(), true)
    }

    /// Who keeps old versions, the oldest snapshot first, where the engine can tell. May cost some milliseconds.
    fn holders(&self) -> Vec<Holder> {
        Vec::new()
    }

    /// Leaf pages of a table's main index, where the engine can tell. Asked of small tables: it may look at each.
    fn leaf_pages(&self, table: Table) -> Option<u64> {
        let _ = table;
        None
    }

    /// Who this is.
    fn describe(&self) -> Description;
}

/// A client's connection: one transaction after another.
pub trait Session {
    /// Starts a transaction.
    ///
    /// # Errors
    /// Whatever the engine reports; no transaction is open then.
    fn begin(&mut self, options: TxOptions) -> Result<()>;

    /// Commits. Returns when the commit is durable in `sync`, at once in `async`.
    ///
    /// # Errors
    /// [`EngineError::Conflict`], or whatever the engine reports; nothing is committed then.
    fn commit(&mut self) -> Result<()>;

    /// Undoes the open transaction; does nothing when none is open.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn rollback(&mut self) -> Result<()>;

    /// Hands the value under `key` to `read`, and returns what it made of it; none without a row.
    /// `read` may be called again with a fresh value; the last call counts.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>>;

    /// Replaces `out` by the value under `key`; false (and `out` as it was or empty) without a row.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn get(&mut self, table: Table, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let found = self.get_with(table, key, |value| {
            out.clear();
            out.extend_from_slice(value);
        })?;
        Ok(found.is_some())
    }

    /// Says that these rows will be asked for next, or put there, so that an engine may read them together. Changes
    /// no result.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn prefetch<'k>(&mut self, rows: impl IntoIterator<Item = (Table, &'k [u8])>) -> Result<()> {
        let _ = rows;
        Ok(())
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`EngineError::KeyExists`], [`EngineError::Conflict`], or whatever the engine reports.
    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()>;

    /// Adds a row or replaces its value.
    ///
    /// # Errors
    /// [`EngineError::Conflict`], or whatever the engine reports.
    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()>;

    /// Lets `change` modify a value in place, keeping its length; false without a row. `change`
    /// sees the whole value and modifies it inside `ranges` only (ascending, disjoint). It may be
    /// called again on a fresh value; the last call counts.
    ///
    /// # Errors
    /// [`EngineError::Conflict`], or whatever the engine reports.
    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        ranges: &[Range<usize>],
        change: impl FnMut(&mut [u8]),
    ) -> Result<bool>;

    /// Removes a row; false without one.
    ///
    /// # Errors
    /// [`EngineError::Conflict`], or whatever the engine reports.
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool>;

    /// Hands rows in key order, beginning at `from`, to `each`, until it returns false or the
    /// table ends.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()>;

    /// Adds many rows, by the engine's fastest way. `next` replaces both buffers by the next row
    /// and returns false at the end. Keys ascend strictly and lie above every key of the table, but for rows that the
    /// same load has left: an engine whose loads go past the transaction may leave them where that is rolled back or the process is
    /// killed, and they are loaded over then. Returns the number of rows.
    ///
    /// # Errors
    /// As [`Session::insert`].
    fn bulk_load(
        &mut self,
        table: Table,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0);
        while next(&mut key, &mut value) {
            self.insert(table, &key, &value)?;
            rows += 1;
        }
        Ok(rows)
    }
}
