//! fjall: log-structured merge trees. Any number of writers; who commits second after a conflict runs again. Where a run has one client
//! that writes, its transactions are those of a database with one writer at a time, which need not remember what they have read.
//!
//! Its optimistic transactions watch reads, too: they are serializable, more than the workloads ask for. Blocks are not compressed, as those
//! of the others are not, and have hashes, as fjall's documentation recommends for rows in memory. The last level keeps its filters: its
//! documentation would do without where each point read finds a row, but who inserts looks for rows that are not there. A sorted load is an
//! ingestion, which belongs to no transaction: its rows are there, and on disk, when it ends, whatever becomes of the transaction: one
//! that was interrupted leaves rows, and may be done again over them. (A keyspace that was cleared would be cleared once more, with what
//! was ingested since, when the database is opened again: clearing is played back from the journal.)
//!
//! In `async` commits leave the journal in the process's memory, and a thread syncs it behind them.

use crate::background::{Background, INTERVAL};
use crate::{PeerSettings, no_transaction};
use fjall::compaction::Leveled;
use fjall::config::{CompressionPolicy, HashRatioPolicy};
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace,
    OptimisticWriteTx, PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace,
    SingleWriterWriteTx, Snapshot,
};
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::Arc;
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};

/// Buckets of a block's hash for each row of it: as many as RocksDB's blocks have (4 of 3).
const HASHES: f32 = 1.33;

/// Bytes of a write buffer of a queue, and tables of its first level that are compacted: who looks for the first row goes past all that was deleted
/// since.
const QUEUE_BUFFER_BYTES: u64 = 1 << 16;
const QUEUE_TABLES: u8 = 1;

/// Who may write, and the tables as he has them.
enum Writers {
    /// One at a time.
    One(SingleWriterTxDatabase, Vec<SingleWriterTxKeyspace>),
    /// Any number.
    Many(OptimisticTxDatabase, Vec<OptimisticTxKeyspace>),
}

impl Writers {
    fn database(&self) -> &Database {
        match self {
            Self::One(database, _) => database.inner(),
            Self::Many(database, _) => database.inner(),
        }
    }

    #[inline]
    fn table(&self, table: Table) -> &Keyspace {
        match self {
            Self::One(_, tables) => tables[table.position()].inner(),
            Self::Many(_, tables) => tables[table.position()].inner(),
        }
    }
}

/// An open database.
pub struct FjallEngine {
    /// In `async` only; ends before the database does.
    _background: Option<Background>,
    writers: Writers,
    sync: bool,
    memory_bytes: u64,
}

impl fmt::Debug for FjallEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FjallEngine({} keyspaces)",
            self.writers.database().keyspace_count()
        )
    }
}

fn failed(error: fjall::Error) -> EngineError {
    EngineError::failed(error)
}

impl FjallEngine {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// What fjall reports.
    pub fn open(settings: &PeerSettings) -> Result<Self> {
        macro_rules! opened {
            ($database:ident) => {
                $database::builder(&settings.data)
                    .cache_size(settings.memory_bytes)
                    .manual_journal_persist(!settings.sync)
                    .open()
                    .map_err(failed)?
            };
        }
        let writers = if settings.writers > 1 {
            Writers::Many(opened!(OptimisticTxDatabase), Vec::new())
        } else {
            Writers::One(opened!(SingleWriterTxDatabase), Vec::new())
        };
        let behind = writers.database().clone();
        let persist = move || behind.persist(PersistMode::SyncData).map_err(failed);
        Ok(Self {
            _background: (!settings.sync).then(|| Background::new(persist)),
            writers,
            sync: settings.sync,
            memory_bytes: settings.memory_bytes,
        })
    }
}

/// How a table is made.
fn options(table: &TableSpec) -> KeyspaceCreateOptions {
    let options = KeyspaceCreateOptions::default()
        .data_block_compression_policy(CompressionPolicy::disabled())
        .data_block_hash_ratio_policy(HashRatioPolicy::all(HASHES));
    if !table.is_queue {
        return options;
    }
    let compaction = Leveled::default().with_l0_threshold(QUEUE_TABLES);
    options
        .max_memtable_size(QUEUE_BUFFER_BYTES)
        .compaction_strategy(Arc::new(compaction))
}

impl Engine for FjallEngine {
    type Session<'e> = FjallSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        macro_rules! opened {
            ($database:ident) => {
                tables
                    .iter()
                    .map(|spec| $database.keyspace(spec.name, || options(spec)))
                    .collect::<std::result::Result<_, _>>()
                    .map_err(failed)?
            };
        }
        match &mut self.writers {
            Writers::One(database, tables) => *tables = opened!(database),
            Writers::Many(database, tables) => *tables = opened!(database),
        }
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        let names = self.writers.database().list_keyspace_names();
        Ok(Some(names.iter().map(|name| name.to_string()).collect()))
    }

    fn open_session(&self) -> Result<FjallSession<'_>> {
        Ok(FjallSession {
            engine: self,
            open: Open::Nothing,
            value: Vec::new(),
        })
    }

    fn checkpoint(&self) -> Result<()> {
        let database = self.writers.database();
        database.persist(PersistMode::SyncAll).map_err(failed)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn describe(&self) -> Description {
        let (durability, lost) = match self.sync {
            true => ("commits are synced".to_owned(), "nothing".to_owned()),
            false => (
                format!(
                    "commits are in the process's memory; the journal is synced behind them, every {INTERVAL:?}"
                ),
                format!("commits of the last {INTERVAL:?}"),
            ),
        };
        let isolation = match &self.writers {
            Writers::One(..) => "serializable, one writer at a time",
            Writers::Many(..) => "serializable, first to commit wins",
        };
        Description::new(
            "fjall",
            env!("VELLUM_VERSION_FJALL"),
            Terms {
                isolation: isolation.to_owned(),
                durability,
                lost_by_kill: lost.clone(),
                lost_by_power_loss: lost,
                memory: format!(
                    "{} bytes of blocks, and write buffers as it sets them",
                    self.memory_bytes
                ),
            },
            vec![
                ("log", "as it sets it (512 MiB of journals)".to_owned()),
                ("compression", "none".to_owned()),
                ("hashes", format!("of blocks, {HASHES} buckets a row")),
                (
                    "queues",
                    format!(
                        "write buffers of {QUEUE_BUFFER_BYTES} bytes, compacted from {QUEUE_TABLES} table on"
                    ),
                ),
                (
                    "loads",
                    "ingested beside the transaction, on disk at their end".to_owned(),
                ),
            ],
        )
    }
}

/// The transaction of a session.
enum Open<'e> {
    Nothing,
    Reader(Snapshot),
    /// The one.
    Exclusive(SingleWriterWriteTx<'e>, &'e [SingleWriterTxKeyspace]),
    /// One of many.
    Optimistic(OptimisticWriteTx, &'e [OptimisticTxKeyspace]),
}

/// A client.
pub struct FjallSession<'e> {
    engine: &'e FjallEngine,
    open: Open<'e>,
    value: Vec<u8>,
}

impl fmt::Debug for FjallSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FjallSession({:?})", self.engine)
    }
}

impl<'e> FjallSession<'e> {
    #[inline]
    fn rows(&self, table: Table) -> &'e Keyspace {
        self.engine.writers.table(table)
    }

    fn find(&self, table: Table, key: &[u8]) -> Result<Option<fjall::Slice>> {
        let rows = self.rows(table);
        match &self.open {
            Open::Reader(reader) => reader.get(rows, key),
            Open::Exclusive(writer, _) => writer.get(rows, key),
            Open::Optimistic(writer, _) => writer.get(rows, key),
            Open::Nothing => return Err(no_transaction()),
        }
        .map_err(failed)
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        match &mut self.open {
            Open::Exclusive(writer, tables) => writer.insert(&tables[table.position()], key, value),
            Open::Optimistic(writer, tables) => {
                writer.insert(&tables[table.position()], key, value)
            }
            Open::Reader(_) | Open::Nothing => return Err(no_transaction()),
        }
        Ok(())
    }
}

impl Session for FjallSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        let engine = self.engine;
        if options.read_only || options.analytical {
            self.open = Open::Reader(engine.writers.database().snapshot());
            return Ok(());
        }
        let mode = engine.sync.then_some(PersistMode::SyncData);
        self.open = match &engine.writers {
            Writers::One(database, tables) => {
                Open::Exclusive(database.write_tx().durability(mode), tables)
            }
            Writers::Many(database, tables) => {
                let writer = database.write_tx().map_err(failed)?;
                Open::Optimistic(writer.durability(mode), tables)
            }
        };
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Exclusive(writer, _) => writer.commit().map_err(failed),
            Open::Optimistic(writer, _) => match writer.commit().map_err(failed)? {
                Ok(()) => Ok(()),
                Err(_) => Err(EngineError::Conflict),
            },
            Open::Reader(_) | Open::Nothing => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Exclusive(writer, _) => writer.rollback(),
            Open::Optimistic(writer, _) => writer.rollback(),
            Open::Reader(_) | Open::Nothing => {}
        }
        Ok(())
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
        self.put(table, key, value)
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let Some(found) = self.find(table, key)? else {
            return Ok(false);
        };
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        value.extend_from_slice(&found);
        change(&mut value);
        let put = self.put(table, key, &value);
        self.value = value;
        put.map(|()| true)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        if self.find(table, key)?.is_none() {
            return Ok(false);
        }
        match &mut self.open {
            Open::Exclusive(writer, tables) => writer.remove(&tables[table.position()], key),
            Open::Optimistic(writer, tables) => writer.remove(&tables[table.position()], key),
            Open::Reader(_) | Open::Nothing => return Err(no_transaction()),
        }
        Ok(true)
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let rows = self.rows(table);
        let forward = direction == Direction::Forward;
        let bounds = if forward {
            (Bound::Included(from), Bound::Unbounded)
        } else {
            (Bound::Unbounded, Bound::Included(from))
        };
        let mut found = match &self.open {
            Open::Reader(reader) => reader.range::<&[u8], _>(rows, bounds),
            Open::Exclusive(writer, _) => writer.range::<&[u8], _>(rows, bounds),
            Open::Optimistic(writer, _) => writer.range::<&[u8], _>(rows, bounds),
            Open::Nothing => return Err(no_transaction()),
        };
        while let Some(row) = if forward {
            found.next()
        } else {
            found.next_back()
        } {
            let (key, value) = row.into_inner().map_err(failed)?;
            if !each(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn bulk_load(
        &mut self,
        table: Table,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        if matches!(self.open, Open::Reader(_) | Open::Nothing) {
            return Err(no_transaction());
        }
        let mut ingestion = self.rows(table).start_ingestion().map_err(failed)?;
        let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0);
        while next(&mut key, &mut value) {
            ingestion
                .write(key.as_slice(), value.as_slice())
                .map_err(failed)?;
            rows += 1;
        }
        ingestion.finish().map_err(failed)?;
        Ok(rows)
    }
}
