//! fjall: log-structured merge trees. Any number of writers; who commits second after a conflict runs again.
//!
//! Its optimistic transactions watch reads, too: they are serializable, more than the workloads ask for. A sorted load is an
//! ingestion, which belongs to no transaction: its rows are there, and on disk, when it ends, whatever becomes of the transaction: one
//! that was interrupted leaves rows, and may be done again over them. (A keyspace that was cleared would be cleared once more, with what
//! was ingested since, when the database is opened again: clearing is played back from the journal.)
//!
//! In `async` commits leave the journal in the process's memory, and a thread syncs it behind them.

use crate::background::{Background, INTERVAL};
use crate::{PeerSettings, no_transaction};
use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx,
    PersistMode, Readable, Snapshot,
};
use std::fmt;
use std::ops::Range;
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};

/// An open database.
pub struct FjallEngine {
    /// In `async` only; ends before the database does.
    _background: Option<Background>,
    database: OptimisticTxDatabase,
    tables: Vec<OptimisticTxKeyspace>,
    sync: bool,
    memory_bytes: u64,
}

impl fmt::Debug for FjallEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FjallEngine({} tables)", self.tables.len())
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
        let database = OptimisticTxDatabase::builder(&settings.data)
            .cache_size(settings.memory_bytes)
            .manual_journal_persist(!settings.sync)
            .open()
            .map_err(failed)?;
        let behind = database.clone();
        let persist = move || behind.persist(PersistMode::SyncData).map_err(failed);
        Ok(Self {
            _background: (!settings.sync).then(|| Background::new(persist)),
            database,
            tables: Vec::new(),
            sync: settings.sync,
            memory_bytes: settings.memory_bytes,
        })
    }
}

impl Engine for FjallEngine {
    type Session<'e> = FjallSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        let opened = tables.iter().map(|spec| {
            self.database
                .keyspace(spec.name, KeyspaceCreateOptions::default)
        });
        self.tables = opened
            .collect::<std::result::Result<_, _>>()
            .map_err(failed)?;
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        let names = self.database.list_keyspace_names();
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
        self.database.persist(PersistMode::SyncAll).map_err(failed)
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
        Description::new(
            "fjall",
            "3.1",
            Terms {
                isolation: "serializable, first to commit wins".to_owned(),
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
                (
                    "loads",
                    "ingested beside the transaction, on disk at their end".to_owned(),
                ),
            ],
        )
    }
}

/// The transaction of a session.
enum Open {
    Nothing,
    Reader(Snapshot),
    Writer(OptimisticWriteTx),
}

/// A client.
pub struct FjallSession<'e> {
    engine: &'e FjallEngine,
    open: Open,
    value: Vec<u8>,
}

impl fmt::Debug for FjallSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FjallSession({:?})", self.engine)
    }
}

impl<'e> FjallSession<'e> {
    #[inline]
    fn rows(&self, table: Table) -> &'e OptimisticTxKeyspace {
        &self.engine.tables[table.position()]
    }

    #[inline]
    fn writer(&mut self) -> Result<&mut OptimisticWriteTx> {
        match &mut self.open {
            Open::Writer(writer) => Ok(writer),
            Open::Reader(_) | Open::Nothing => Err(no_transaction()),
        }
    }

    fn find(&self, table: Table, key: &[u8]) -> Result<Option<fjall::Slice>> {
        let rows = self.rows(table);
        match &self.open {
            Open::Reader(reader) => reader.get(rows, key),
            Open::Writer(writer) => writer.get(rows, key),
            Open::Nothing => return Err(no_transaction()),
        }
        .map_err(failed)
    }
}

impl Session for FjallSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        self.open = if options.read_only || options.analytical {
            Open::Reader(self.engine.database.read_tx())
        } else {
            let writer = self.engine.database.write_tx().map_err(failed)?;
            let mode = self.engine.sync.then_some(PersistMode::SyncData);
            Open::Writer(writer.durability(mode))
        };
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => match writer.commit().map_err(failed)? {
                Ok(()) => Ok(()),
                Err(_) => Err(EngineError::Conflict),
            },
            Open::Reader(_) | Open::Nothing => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        if let Open::Writer(writer) = std::mem::replace(&mut self.open, Open::Nothing) {
            writer.rollback();
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
        let rows = self.rows(table);
        self.writer()?.insert(rows, key, value);
        Ok(())
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
        let rows = self.rows(table);
        self.writer()?.insert(rows, key, value.as_slice());
        self.value = value;
        Ok(true)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        if self.find(table, key)?.is_none() {
            return Ok(false);
        }
        let rows = self.rows(table);
        self.writer()?.remove(rows, key);
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
        let mut found = match (&self.open, forward) {
            (Open::Reader(reader), true) => reader.range(rows, from..),
            (Open::Writer(writer), true) => writer.range(rows, from..),
            (Open::Reader(reader), false) => reader.range(rows, ..=from),
            (Open::Writer(writer), false) => writer.range(rows, ..=from),
            (Open::Nothing, _) => return Err(no_transaction()),
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
        self.writer()?;
        let mut ingestion = self.rows(table).inner().start_ingestion().map_err(failed)?;
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
