//! canopydb: a copy-on-write tree whose commits go to a log first. Any number of writers; who commits second after a conflict
//! runs again. Where a run has one client that writes, its transactions are exclusive, which cost less.
//!
//! A tree is looked up by its name once a transaction, which it borrows: both live in one cell. Rows are handed out of the
//! cached page, counted, not copied.

use crate::{PeerSettings, no_transaction};
use canopydb::{Database, DbOptions, EnvOptions, Error, ReadTransaction, Tree, WriteTransaction};
use self_cell::self_cell;
use std::fmt;
use std::ops::{Bound, Range};
use std::time::Duration;
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};

/// What becomes of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// They go to a log.
    Written,
    /// They stay in the process's memory until the next checkpoint: no system call a commit. In `async` only, since none can be waited for.
    Omitted,
}

/// How much of the last commits a crash of the machine may cost in `async`; without a log, of the process, too.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

type Trees<'t> = Vec<Option<Tree<'t>>>;

self_cell!(
    struct Reader {
        owner: ReadTransaction,
        #[not_covariant]
        dependent: Trees,
    }
);

self_cell!(
    struct Writer {
        owner: WriteTransaction,
        #[not_covariant]
        dependent: Trees,
    }
);

/// An open database.
pub struct CanopydbEngine {
    database: Database,
    tables: Vec<&'static str>,
    sync: bool,
    log: Log,
    /// Several clients write.
    concurrent: bool,
    memory_bytes: u64,
}

impl fmt::Debug for CanopydbEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CanopydbEngine({} tables)", self.tables.len())
    }
}

fn failed(error: Error) -> EngineError {
    match error {
        Error::WriteConflict => EngineError::Conflict,
        other => EngineError::failed(other),
    }
}

impl CanopydbEngine {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// What canopydb reports, which wants a log for commits that are waited for.
    pub fn open(settings: &PeerSettings, log: Log) -> Result<Self> {
        let mut environment = EnvOptions::new(&settings.data);
        environment.page_cache_size = settings.memory_bytes as usize;
        if !settings.sync {
            environment.wal_background_sync_interval = Some(SYNC_INTERVAL);
        }
        let mut options = DbOptions::new();
        options.default_commit_sync = settings.sync;
        if log == Log::Omitted {
            options.use_wal = false;
            options.checkpoint_interval = SYNC_INTERVAL;
            // Who closes the database loses nothing.
            options.checkpoint_db_on_drop = true;
        }
        Ok(Self {
            database: Database::with_options(environment, options).map_err(failed)?,
            tables: Vec::new(),
            sync: settings.sync,
            log,
            concurrent: settings.writers > 1,
            memory_bytes: settings.memory_bytes,
        })
    }
}

impl Engine for CanopydbEngine {
    type Session<'e> = CanopydbSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        let writer = self.database.begin_write().map_err(failed)?;
        for spec in tables {
            writer
                .get_or_create_tree(spec.name.as_bytes())
                .map_err(failed)?;
        }
        match self.log {
            Log::Written => writer.commit_with(true).map(drop).map_err(failed)?,
            // Nobody can wait for a commit, but for a checkpoint behind it.
            Log::Omitted => {
                writer.commit().map_err(failed)?;
                self.database.checkpoint().map_err(failed)?;
            }
        }
        self.tables = tables.iter().map(|spec| spec.name).collect();
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        let reader = self.database.begin_read().map_err(failed)?;
        let names = reader.list_trees().map_err(failed)?;
        let names = names
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned());
        Ok(Some(names.collect()))
    }

    fn open_session(&self) -> Result<CanopydbSession<'_>> {
        Ok(CanopydbSession {
            engine: self,
            open: Open::Nothing,
            value: Vec::new(),
        })
    }

    fn checkpoint(&self) -> Result<()> {
        self.database.checkpoint().map_err(failed)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn describe(&self) -> Description {
        let nothing = || "nothing".to_owned();
        let last = || format!("commits of the last {SYNC_INTERVAL:?}");
        let unwritten = || last() + ", and those that the checkpoint under way is writing";
        let (durability, killed, lost) = match (self.log, self.sync) {
            (Log::Omitted, _) => (
                format!(
                    "use_wal = false: commits are in the process's memory, a checkpoint every {SYNC_INTERVAL:?}"
                ),
                unwritten(),
                unwritten(),
            ),
            (Log::Written, true) => ("commits are synced".to_owned(), nothing(), nothing()),
            (Log::Written, false) => (
                format!(
                    "commits are in the kernel's memory, their log is synced every {SYNC_INTERVAL:?}"
                ),
                nothing(),
                last(),
            ),
        };
        let name = match self.log {
            Log::Written => "canopydb",
            Log::Omitted => "canopydb-nowal",
        };
        let isolation = if self.concurrent {
            "snapshot, first to commit wins"
        } else {
            "serializable, the one writer's transactions are exclusive"
        };
        Description::new(
            name,
            env!("VELLUM_VERSION_CANOPYDB"),
            Terms {
                isolation: isolation.to_owned(),
                durability,
                lost_by_kill: killed,
                lost_by_power_loss: lost,
                memory: format!(
                    "{} bytes of pages, and changed ones until the next checkpoint as it sets them",
                    self.memory_bytes
                ),
            },
            vec![("checksums", "of the log, not of pages".to_owned())],
        )
    }
}

/// The transaction of a session.
enum Open {
    Nothing,
    Reader(Reader),
    Writer(Writer),
}

/// A client.
pub struct CanopydbSession<'e> {
    engine: &'e CanopydbEngine,
    open: Open,
    value: Vec<u8>,
}

impl fmt::Debug for CanopydbSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CanopydbSession({:?})", self.engine)
    }
}

/// The tree in its place, opened once.
fn opened<'o, 't>(
    transaction: &'t canopydb::Transaction,
    place: &'o mut Option<Tree<'t>>,
    name: &str,
) -> Result<&'o mut Tree<'t>> {
    match place {
        Some(tree) => Ok(tree),
        None => {
            let tree = transaction.get_tree(name.as_bytes()).map_err(failed)?;
            let missing = || EngineError::Unusable(format!("there is no tree {name}"));
            Ok(place.insert(tree.ok_or_else(missing)?))
        }
    }
}

impl CanopydbSession<'_> {
    /// Runs `work` on a tree of the open transaction.
    fn read<R>(&mut self, table: Table, work: impl FnOnce(&Tree<'_>) -> Result<R>) -> Result<R> {
        let (name, at) = (self.engine.tables[table.position()], table.position());
        match &mut self.open {
            Open::Reader(reader) => reader
                .with_dependent_mut(|reader, trees| work(opened(reader, &mut trees[at], name)?)),
            Open::Writer(writer) => writer
                .with_dependent_mut(|writer, trees| work(opened(writer, &mut trees[at], name)?)),
            Open::Nothing => Err(no_transaction()),
        }
    }

    /// Runs `work` on a tree of the open transaction, which may write.
    fn write<R>(
        &mut self,
        table: Table,
        work: impl FnOnce(&mut Tree<'_>) -> Result<R>,
    ) -> Result<R> {
        let (name, at) = (self.engine.tables[table.position()], table.position());
        match &mut self.open {
            Open::Writer(writer) => writer
                .with_dependent_mut(|writer, trees| work(opened(writer, &mut trees[at], name)?)),
            Open::Reader(_) | Open::Nothing => Err(no_transaction()),
        }
    }
}

/// Adds a row. A row that is there is seen by the number of rows, which does not grow: no search of its own is needed, and the
/// caller has to roll back.
fn add(tree: &mut Tree<'_>, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
    let rows = tree.len();
    tree.insert(key, value).map_err(failed)?;
    if tree.len() == rows {
        return Err(EngineError::KeyExists(table));
    }
    Ok(())
}

/// Places for the trees of a transaction.
fn places<'t>(engine: &CanopydbEngine) -> Trees<'t> {
    engine.tables.iter().map(|_| None).collect()
}

impl Session for CanopydbSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        let engine = self.engine;
        self.open = if options.read_only || options.analytical {
            let reader = engine.database.begin_read().map_err(failed)?;
            Open::Reader(Reader::new(reader, |_| places(engine)))
        } else {
            let writer = engine.database.begin_write_with(engine.concurrent);
            let writer = writer.map_err(failed)?;
            Open::Writer(Writer::new(writer, |_| places(engine)))
        };
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => writer.into_owner().commit().map(drop).map_err(failed),
            Open::Reader(_) | Open::Nothing => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => writer.into_owner().rollback().map_err(failed),
            Open::Reader(_) | Open::Nothing => Ok(()),
        }
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.read(table, |tree| {
            let found = tree.get(key).map_err(failed)?;
            Ok(found.map(|value| read(&value)))
        })
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, |tree| add(tree, table, key, value))
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, |tree| tree.insert(key, value).map_err(failed))
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let mut value = std::mem::take(&mut self.value);
        let found = self.write(table, |tree| {
            // The page's bytes are let go before it is written: who still counts them makes it copy the page.
            match tree.get(key).map_err(failed)? {
                Some(found) => {
                    value.clear();
                    value.extend_from_slice(&found);
                }
                None => return Ok(false),
            }
            change(&mut value);
            tree.insert(key, &value).map_err(failed)?;
            Ok(true)
        });
        self.value = value;
        found
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.write(table, |tree| tree.delete(key).map_err(failed))
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        self.read(table, |tree| {
            let forward = direction == Direction::Forward;
            let bounds = if forward {
                (Bound::Included(from), Bound::Unbounded)
            } else {
                (Bound::Unbounded, Bound::Included(from))
            };
            let mut rows = tree.range::<&[u8]>(bounds).map_err(failed)?;
            while let Some(row) = if forward {
                rows.next()
            } else {
                rows.next_back()
            } {
                let (key, value) = row.map_err(failed)?;
                if !each(&key, &value) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn bulk_load(
        &mut self,
        table: Table,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        self.write(table, |tree| {
            let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0);
            while next(&mut key, &mut value) {
                add(tree, table, &key, &value)?;
                rows += 1;
            }
            Ok(rows)
        })
    }
}
