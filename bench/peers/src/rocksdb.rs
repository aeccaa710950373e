//! RocksDB's `TransactionDB`: log-structured merge trees, a column family for each table of a workload. Any number of writers;
//! who writes a row that changed since his snapshot runs again.
//!
//! Rows are locked as they are written, and read where the block or the memtable has them: nothing is copied. A sorted load
//! goes past the transaction, in batches: inside it would be held in memory until the commit, sorted by a list, with the locks of
//! all its rows. A batch locks its rows, too, while it is written. Batches are in no log; what they have left in the write buffers is
//! written to the table's files at the load's end, before the transaction that asked for it can commit. They are there one batch after
//! the other, whatever becomes of the transaction: a load that was interrupted leaves rows, and may be done again over them.
//!
//! In `async` commits leave the log in the process's memory, and a thread writes and syncs it behind them.
//!
//! Not here: ingestion of finished files, which the crate does not have for databases with transactions. `prefetch`: what a transaction asks by
//! MultiGet is a Get for each key in RocksDB itself (its batched form is a database's without transactions), which copies the rows besides, and they are asked for
//! once more behind it. Ten rows in memory take 26 µs by Gets, 23 by MultiGet, and 40 by both, of a program of its own; a place to keep its copies in would take
//! what is between the first two.

use crate::background::{Background, INTERVAL};
use crate::{PeerSettings, no_transaction};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DBCompressionType,
    DBPinnableSlice, DBRawIteratorWithThreadMode, DataBlockIndexType, Error, ErrorKind, Options,
    ReadOptions, SingleThreaded, SnapshotWithThreadMode, Transaction, TransactionDB,
    TransactionDBOptions, TransactionOptions, WriteBatchWithTransaction, WriteOptions,
};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};

const FOLDER: &str = "rocksdb";
/// The column family that every database has.
const DEFAULT: &str = "default";
/// Bits of the filters for each key.
const FILTER_BITS: f64 = 10.0;
/// Share of a write buffer that is its filter: most rows that are read are not in it.
const BUFFER_FILTER: f64 = 0.02;
/// Bytes of a block of rows.
const BLOCK_BYTES: usize = 4096;
/// Bytes of a load that are written at a time.
const LOAD_BYTES: usize = 1 << 20;

/// Bytes of a write buffer of a queue, the smallest that RocksDB takes: who looks for the first row goes past all that was deleted since the
/// buffer was written and its file compacted.
const QUEUE_BUFFER_BYTES: usize = 1 << 16;
/// A file of a queue is compacted that has so many deletions among so many rows one after the other.
const QUEUE_DELETIONS: usize = 32;
const QUEUE_WINDOW: usize = 128;

type Database = TransactionDB<SingleThreaded>;

/// An open database.
pub struct RocksdbEngine {
    /// In `async` only, once there are tables; ends before the database does.
    background: Option<Background>,
    database: Arc<Database>,
    options: Options,
    /// Column families that were there, the default one not among them.
    found: Vec<String>,
    tables: Vec<&'static str>,
    sync: bool,
    memory_bytes: u64,
    version: String,
}

impl fmt::Debug for RocksdbEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RocksdbEngine({} tables)", self.tables.len())
    }
}

fn failed(error: Error) -> EngineError {
    match error.kind() {
        // Changed since the snapshot; locked for too long or in a circle; changed longer ago than memory tells.
        ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::TryAgain => EngineError::Conflict,
        _ => EngineError::failed(error),
    }
}

impl RocksdbEngine {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// What RocksDB reports.
    pub fn open(settings: &PeerSettings) -> Result<Self> {
        let path = settings.data.join(FOLDER);
        let options = options(settings);
        let existing: Vec<String> = if there(&path) {
            Database::list_cf(&options, &path).map_err(failed)?
        } else {
            vec![DEFAULT.to_owned()]
        };
        let families = existing
            .iter()
            .map(|name| ColumnFamilyDescriptor::new(name, options.clone()));
        let transactions = TransactionDBOptions::default();
        let opened = Database::open_cf_descriptors(&options, &transactions, &path, families);
        let database = opened.map_err(failed)?;
        Ok(Self {
            background: None,
            database: Arc::new(database),
            version: version(&path),
            options,
            found: existing
                .into_iter()
                .filter(|name| name != DEFAULT)
                .collect(),
            tables: Vec::new(),
            sync: settings.sync,
            memory_bytes: settings.memory_bytes,
        })
    }
}

/// Whether a database is there.
fn there(path: &Path) -> bool {
    path.join("CURRENT").exists()
}

/// The version of the library, which may be the system's (`ROCKSDB_LIB_DIR`): its interface for C has none, but an open database has it in the newest file of its options.
fn version(path: &Path) -> String {
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    let newest = files
        .map(|file| file.path())
        .filter(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("OPTIONS-") && !name.ends_with("tmp"))
        })
        .max();
    let text = newest.and_then(|file| std::fs::read_to_string(file).ok());
    let version = text.as_deref().and_then(|text| {
        let mut lines = text.lines();
        lines.find_map(|line| line.trim().strip_prefix("rocksdb_version="))
    });
    version.unwrap_or("unknown").to_owned()
}

/// One without locks, which need not find out how large blocks are; before version 8 (a library of the system) there is none.
fn cache(bytes: usize) -> Cache {
    #[cfg(rocksdb_before_8)]
    return Cache::new_lru_cache(bytes);
    #[cfg(not(rocksdb_before_8))]
    Cache::new_hyper_clock_cache(bytes, BLOCK_BYTES)
}

fn options(settings: &PeerSettings) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_size(BLOCK_BYTES);
    blocks.set_block_cache(&cache(settings.memory_bytes as usize));
    blocks.set_bloom_filter(FILTER_BITS, false);
    blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_manual_wal_flush(!settings.sync);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_memtable_prefix_bloom_ratio(BUFFER_FILTER);
    options.set_memtable_whole_key_filtering(true);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    options.increase_parallelism(cores.max(2) as i32);
    options
}

/// Those of a table.
fn of_table(options: &Options, table: &TableSpec) -> Options {
    let mut options = options.clone();
    if table.is_queue {
        options.set_write_buffer_size(QUEUE_BUFFER_BYTES);
        options.add_compact_on_deletion_collector_factory(QUEUE_WINDOW, QUEUE_DELETIONS, 0.0);
    }
    options
}

impl Engine for RocksdbEngine {
    type Session<'e> = RocksdbSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        // Whoever makes column families is alone.
        self.background = None;
        let shared = || EngineError::Unusable("somebody else has the database".to_owned());
        let database = Arc::get_mut(&mut self.database).ok_or_else(shared)?;
        for spec in tables {
            if database.cf_handle(spec.name).is_none() {
                database
                    .create_cf(spec.name, &of_table(&self.options, spec))
                    .map_err(failed)?;
            }
        }
        if !self.sync {
            let behind = self.database.clone();
            let flush = move || behind.flush_wal(true).map_err(failed);
            self.background = Some(Background::new(flush));
        }
        self.tables = tables.iter().map(|spec| spec.name).collect();
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        Ok(Some(self.found.clone()))
    }

    fn open_session(&self) -> Result<RocksdbSession<'_>> {
        let family = |name: &&str| {
            let missing = || EngineError::Unusable(format!("there is no column family {name}"));
            self.database.cf_handle(name).ok_or_else(missing)
        };
        let mut write = WriteOptions::default();
        write.set_sync(self.sync);
        let mut transaction = TransactionOptions::default();
        // The snapshot is of the begin, and what is written is compared with it.
        transaction.set_snapshot(true);
        transaction.set_deadlock_detect(true);
        Ok(RocksdbSession {
            engine: self,
            families: self.tables.iter().map(family).collect::<Result<_>>()?,
            write,
            transaction,
            read: ReadOptions::default(),
            open: Open::Nothing,
            value: Vec::new(),
        })
    }

    fn checkpoint(&self) -> Result<()> {
        for name in &self.tables {
            if let Some(family) = self.database.cf_handle(name) {
                self.database.flush_cf(family).map_err(failed)?;
            }
        }
        self.database.flush_wal(true).map_err(failed)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn describe(&self) -> Description {
        let (durability, lost) = match self.sync {
            true => ("commits are synced".to_owned(), "nothing".to_owned()),
            false => (
                format!(
                    "commits are in the process's memory; the log is written and synced behind them, every {INTERVAL:?}"
                ),
                format!("commits of the last {INTERVAL:?}"),
            ),
        };
        Description::new(
            "rocksdb",
            self.version.clone(),
            Terms {
                isolation: "snapshot, first to write wins, others wait for his end".to_owned(),
                durability,
                lost_by_kill: lost.clone(),
                lost_by_power_loss: lost,
                memory: format!(
                    "{} bytes of blocks, and write buffers as it sets them (64 MiB a table, two at a time)",
                    self.memory_bytes
                ),
            },
            vec![
                (
                    "log",
                    "as it sets it, without a limit of its own".to_owned(),
                ),
                ("compression", "none".to_owned()),
                (
                    "filters",
                    format!("{FILTER_BITS} bits a key, {BUFFER_FILTER} of a write buffer"),
                ),
                (
                    "queues",
                    format!(
                        "write buffers of {QUEUE_BUFFER_BYTES} bytes, files compacted with {QUEUE_DELETIONS} deletions of {QUEUE_WINDOW} rows"
                    ),
                ),
                (
                    "loads",
                    "in batches beside the transaction and its log, on disk at their end"
                        .to_owned(),
                ),
            ],
        )
    }
}

impl Drop for RocksdbEngine {
    fn drop(&mut self) {
        self.background = None;
        // What nobody waits for is lost by a kill only. Nobody is to be told that it failed.
        let _ = self.database.flush_wal(true);
    }
}

/// The transaction of a session.
enum Open<'e> {
    Nothing,
    /// Its snapshot, which the options of reads name.
    Reader {
        _snapshot: SnapshotWithThreadMode<'e, Database>,
    },
    Writer(Transaction<'e, Database>),
}

/// A client.
pub struct RocksdbSession<'e> {
    engine: &'e RocksdbEngine,
    families: Vec<&'e ColumnFamily>,
    write: WriteOptions,
    transaction: TransactionOptions,
    /// Names the snapshot of the open transaction; used inside one only.
    read: ReadOptions,
    open: Open<'e>,
    value: Vec<u8>,
}

impl fmt::Debug for RocksdbSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RocksdbSession({:?})", self.engine)
    }
}

impl<'e> RocksdbSession<'e> {
    #[inline]
    fn writer(&self) -> Result<&Transaction<'e, Database>> {
        match &self.open {
            Open::Writer(writer) => Ok(writer),
            Open::Reader { .. } | Open::Nothing => Err(no_transaction()),
        }
    }

    #[inline]
    fn find(&self, table: Table, key: &[u8]) -> Result<Option<DBPinnableSlice<'_>>> {
        let family = self.families[table.position()];
        match &self.open {
            Open::Reader { .. } => {
                let database = &self.engine.database;
                database.get_pinned_cf_opt(family, key, &self.read)
            }
            Open::Writer(writer) => writer.get_pinned_cf_opt(family, key, &self.read),
            Open::Nothing => return Err(no_transaction()),
        }
        .map_err(failed)
    }
}

impl Session for RocksdbSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        let database = &self.engine.database;
        self.open = if options.read_only || options.analytical {
            let snapshot = database.snapshot();
            self.read.set_snapshot(&snapshot);
            Open::Reader {
                _snapshot: snapshot,
            }
        } else {
            let writer = database.transaction_opt(&self.write, &self.transaction);
            self.read.set_snapshot(&writer.snapshot());
            Open::Writer(writer)
        };
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => writer.commit().map_err(failed),
            Open::Reader { .. } | Open::Nothing => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => writer.rollback().map_err(failed),
            Open::Reader { .. } | Open::Nothing => Ok(()),
        }
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        Ok(self.find(table, key)?.map(|value| read(&value)))
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        if self.find(table, key)?.is_some() {
            return Err(EngineError::KeyExists(table));
        }
        self.upsert(table, key, value)
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let family = self.families[table.position()];
        self.writer()?.put_cf(family, key, value).map_err(failed)
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        match self.find(table, key)? {
            Some(found) => value.extend_from_slice(&found),
            None => return Ok(false),
        }
        change(&mut value);
        self.upsert(table, key, &value)?;
        self.value = value;
        Ok(true)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        if self.find(table, key)?.is_none() {
            return Ok(false);
        }
        let family = self.families[table.position()];
        self.writer()?.delete_cf(family, key).map_err(failed)?;
        Ok(true)
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let family = self.families[table.position()];
        let mut read = ReadOptions::default();
        match &self.open {
            Open::Reader { _snapshot } => {
                read.set_snapshot(_snapshot);
                let database = &self.engine.database;
                hand_on(
                    database.raw_iterator_cf_opt(family, read),
                    from,
                    direction,
                    each,
                )
            }
            Open::Writer(writer) => {
                read.set_snapshot(&writer.snapshot());
                hand_on(
                    writer.raw_iterator_cf_opt(family, read),
                    from,
                    direction,
                    each,
                )
            }
            Open::Nothing => Err(no_transaction()),
        }
    }

    fn bulk_load(
        &mut self,
        table: Table,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        self.writer()?;
        // The keys lie above all others: nothing is looked for.
        let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0);
        let (database, family) = (&self.engine.database, self.families[table.position()]);
        let mut batch = WriteBatchWithTransaction::<true>::new();
        let mut unlogged = WriteOptions::default();
        unlogged.disable_wal(true);
        while next(&mut key, &mut value) {
            batch.put_cf(family, &key, &value);
            rows += 1;
            if batch.size_in_bytes() >= LOAD_BYTES {
                database
                    .write_opt(std::mem::take(&mut batch), &unlogged)
                    .map_err(failed)?;
            }
        }
        database.write_opt(batch, &unlogged).map_err(failed)?;
        // Durable, in `async`, too: what is in no log is lost by a kill until it is in a file, and commits behind it are not.
        database.flush_cf(family).map_err(failed)?;
        Ok(rows)
    }
}

/// Hands rows on, in either direction.
fn hand_on<D: rocksdb::DBAccess>(
    mut rows: DBRawIteratorWithThreadMode<'_, D>,
    from: &[u8],
    direction: Direction,
    mut each: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<()> {
    match direction {
        Direction::Forward => rows.seek(from),
        Direction::Backward => rows.seek_for_prev(from),
    }
    while let Some((key, value)) = rows.item() {
        if !each(key, value) {
            return Ok(());
        }
        match direction {
            Direction::Forward => rows.next(),
            Direction::Backward => rows.prev(),
        }
    }
    // It ends at the last row, and where a read failed.
    rows.status().map_err(failed)
}
