//! redb: a copy-on-write tree. One writer at a time; readers wait for nobody.
//!
//! In `async` one commit a second is durable: pages that others have freed come back with it only, so that without it a file that a
//! reader looks at grows with every commit.
//!
//! The tables of a write transaction borrow it, so they live in one cell with it: opening one for each operation would
//! cost more than the operation.

use crate::{PeerSettings, no_transaction};
use redb::{
    Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, TableHandle, WriteTransaction,
};
use self_cell::self_cell;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};

const FILE: &str = "redb";
/// How much of the last commits a crash may cost in `async`, as long as there are commits.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

type Bytes = &'static [u8];
type Written<'t> = redb::Table<'t, Bytes, Bytes>;
type WrittenTables<'t> = Vec<Option<Written<'t>>>;

self_cell!(
    struct Writer {
        owner: WriteTransaction,
        #[not_covariant]
        dependent: WrittenTables,
    }
);

/// An open database.
pub struct RedbEngine {
    database: Database,
    tables: Vec<&'static str>,
    sync: bool,
    /// When the next commit is to be durable in `async`.
    sync_at: Mutex<Instant>,
    memory_bytes: u64,
}

impl fmt::Debug for RedbEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedbEngine({:?})", self.tables)
    }
}

fn failed(error: impl Into<redb::Error>) -> EngineError {
    EngineError::failed(error.into())
}

const fn definition(name: &str) -> TableDefinition<'_, Bytes, Bytes> {
    TableDefinition::new(name)
}

impl RedbEngine {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// What redb reports.
    pub fn open(settings: &PeerSettings) -> Result<Self> {
        let cache = usize::try_from(settings.memory_bytes).unwrap_or(usize::MAX);
        let database = Database::builder()
            .set_cache_size(cache)
            .create(settings.data.join(FILE))
            .map_err(failed)?;
        Ok(Self {
            database,
            tables: Vec::new(),
            sync: settings.sync,
            sync_at: Mutex::new(Instant::now() + SYNC_INTERVAL),
            memory_bytes: settings.memory_bytes,
        })
    }

    fn begin_write(&self) -> Result<WriteTransaction> {
        self.database.begin_write().map_err(failed)
    }

    /// Commits, durably in `sync` and once an interval.
    fn commit(&self, mut writer: WriteTransaction) -> Result<()> {
        let durability = if self.sync || self.is_due(Instant::now()) {
            Durability::Immediate
        } else {
            Durability::None
        };
        writer
            .set_durability(durability)
            .map_err(EngineError::failed)?;
        writer.commit().map_err(failed)
    }

    /// Whether a commit at this time is the one of its interval that is durable.
    fn is_due(&self, now: Instant) -> bool {
        let mut sync_at = self.sync_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = now >= *sync_at;
        if is_due {
            *sync_at = now + SYNC_INTERVAL;
        }
        is_due
    }
}

impl Engine for RedbEngine {
    type Session<'e> = RedbSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        let writer = self.begin_write()?;
        for spec in tables {
            writer.open_table(definition(spec.name)).map_err(failed)?;
        }
        writer.commit().map_err(failed)?;
        self.tables = tables.iter().map(|spec| spec.name).collect();
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        let reader = self.database.begin_read().map_err(failed)?;
        let tables = reader.list_tables().map_err(failed)?;
        Ok(Some(tables.map(|table| table.name().to_owned()).collect()))
    }

    fn open_session(&self) -> Result<RedbSession<'_>> {
        Ok(RedbSession {
            engine: self,
            open: Open::Nothing,
            value: Vec::new(),
        })
    }

    /// An empty durable commit makes those before it durable.
    fn checkpoint(&self) -> Result<()> {
        self.begin_write()?.commit().map_err(failed)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn describe(&self) -> Description {
        let (durability, lost) = match self.sync {
            true => ("Durability::Immediate".to_owned(), "nothing".to_owned()),
            false => (
                format!(
                    "Durability::None, and one commit of every {SYNC_INTERVAL:?} Durability::Immediate"
                ),
                format!(
                    "commits since the last that was durable, of the last {SYNC_INTERVAL:?} while there are any"
                ),
            ),
        };
        Description::new(
            "redb",
            env!("VELLUM_VERSION_REDB"),
            Terms {
                isolation: "serializable, one writer at a time".to_owned(),
                durability,
                lost_by_kill: lost.clone(),
                lost_by_power_loss: lost,
                memory: format!("cache of {} bytes", self.memory_bytes),
            },
            vec![
                ("log", "none: pages are never overwritten".to_owned()),
                ("checksums", "of pages".to_owned()),
            ],
        )
    }
}

/// The transaction of a session.
enum Open {
    Nothing,
    Reader(ReadTransaction, Vec<Option<ReadOnlyTable<Bytes, Bytes>>>),
    Writer(Writer),
}

/// A client.
pub struct RedbSession<'e> {
    engine: &'e RedbEngine,
    open: Open,
    value: Vec<u8>,
}

impl fmt::Debug for RedbSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedbSession({:?})", self.engine)
    }
}

impl RedbSession<'_> {
    /// Hands the table of a write transaction to `work`.
    fn write<R>(
        &mut self,
        table: Table,
        work: impl FnOnce(&mut Written<'_>) -> Result<R>,
    ) -> Result<R> {
        let Open::Writer(writer) = &mut self.open else {
            return Err(no_transaction());
        };
        let name = self.engine.tables[table.position()];
        writer.with_dependent_mut(|writer, tables| {
            let place = &mut tables[table.position()];
            let table = match place {
                Some(table) => table,
                None => place.insert(writer.open_table(definition(name)).map_err(failed)?),
            };
            work(table)
        })
    }
}

/// Hands rows on, in either direction.
fn hand_on(
    table: &impl ReadableTable<Bytes, Bytes>,
    from: &[u8],
    direction: Direction,
    each: &mut impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<()> {
    match direction {
        Direction::Forward => {
            for row in table.range(from..).map_err(failed)? {
                let (key, value) = row.map_err(failed)?;
                if !each(key.value(), value.value()) {
                    break;
                }
            }
        }
        Direction::Backward => {
            for row in table.range(..=from).map_err(failed)?.rev() {
                let (key, value) = row.map_err(failed)?;
                if !each(key.value(), value.value()) {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The table of a read transaction, opened once.
fn opened<'t>(
    reader: &ReadTransaction,
    place: &'t mut Option<ReadOnlyTable<Bytes, Bytes>>,
    name: &str,
) -> Result<&'t ReadOnlyTable<Bytes, Bytes>> {
    match place {
        Some(table) => Ok(table),
        None => Ok(place.insert(reader.open_table(definition(name)).map_err(failed)?)),
    }
}

impl Session for RedbSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        let tables = self.engine.tables.len();
        self.open = if options.read_only || options.analytical {
            let reader = self.engine.database.begin_read().map_err(failed)?;
            Open::Reader(reader, (0..tables).map(|_| None).collect())
        } else {
            let writer = self.engine.begin_write()?;
            Open::Writer(Writer::new(writer, |_| (0..tables).map(|_| None).collect()))
        };
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => self.engine.commit(writer.into_owner()),
            Open::Reader(..) | Open::Nothing => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => writer.into_owner().abort().map_err(failed),
            Open::Reader(..) | Open::Nothing => Ok(()),
        }
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if let Open::Reader(reader, tables) = &mut self.open {
            let name = self.engine.tables[table.position()];
            let table = opened(reader, &mut tables[table.position()], name)?;
            let found = table.get(key).map_err(failed)?;
            return Ok(found.map(|value| read(value.value())));
        }
        self.write(table, |table| {
            let found = table.get(key).map_err(failed)?;
            Ok(found.map(|value| read(value.value())))
        })
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, |rows| {
            let old = rows.insert(key, value).map_err(failed)?;
            match old {
                Some(_) => Err(EngineError::KeyExists(table)),
                None => Ok(()),
            }
        })
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, |rows| {
            rows.insert(key, value).map(drop).map_err(failed)
        })
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let mut value = std::mem::take(&mut self.value);
        let found = self.write(table, |rows| {
            // One search: the value is replaced where it was found.
            let Some(mut found) = rows.get_mut(key).map_err(failed)? else {
                return Ok(false);
            };
            value.clear();
            value.extend_from_slice(found.value());
            change(&mut value);
            found.insert(value.as_slice()).map_err(failed)?;
            Ok(true)
        });
        self.value = value;
        found
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.write(table, |rows| {
            Ok(rows.remove(key).map_err(failed)?.is_some())
        })
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        if let Open::Reader(reader, tables) = &mut self.open {
            let name = self.engine.tables[table.position()];
            let table = opened(reader, &mut tables[table.position()], name)?;
            return hand_on(table, from, direction, &mut each);
        }
        self.write(table, |table| hand_on(table, from, direction, &mut each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_commit_of_an_interval_is_durable() {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = PeerSettings {
            data: directory.path().to_owned(),
            memory_bytes: 1 << 20,
            sync: false,
            sessions: 1,
            tables: 1,
            writers: 1,
        };
        let engine = RedbEngine::open(&settings).expect("a database");
        let at = *engine.sync_at.lock().expect("nobody panicked");
        let due = |seconds: f64| engine.is_due(at + SYNC_INTERVAL.mul_f64(seconds));
        assert!(!engine.is_due(at - SYNC_INTERVAL / 2));
        assert_eq!(
            [due(0.0), due(0.5), due(1.2), due(2.1)],
            [true, false, true, false]
        );
    }
}
