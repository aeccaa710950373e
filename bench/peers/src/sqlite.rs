//! SQLite in WAL mode: a table without row ids for each table of a workload. One writer at a time; readers wait for nobody.
//!
//! A session is a connection with a page cache of its own, a share of the memory. Statements are prepared once a session.

use crate::PeerSettings;
use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, params};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    TxOptions,
};

const FILE: &str = "sqlite";
/// How long a writer waits for the one before it.
const WAIT: Duration = Duration::from_secs(600);
/// Pages of log before a checkpoint.
const LOG_PAGES: u32 = 16_384;

/// What is asked of a table.
#[derive(Clone, Debug)]
struct Statements {
    get: String,
    insert: String,
    upsert: String,
    update: String,
    delete: String,
    forward: String,
    backward: String,
}

impl Statements {
    fn of(name: &str) -> Self {
        Self {
            get: format!("SELECT v FROM \"{name}\" WHERE k = ?1"),
            insert: format!("INSERT INTO \"{name}\" VALUES (?1, ?2)"),
            upsert: format!("INSERT OR REPLACE INTO \"{name}\" VALUES (?1, ?2)"),
            update: format!("UPDATE \"{name}\" SET v = ?2 WHERE k = ?1"),
            delete: format!("DELETE FROM \"{name}\" WHERE k = ?1"),
            forward: format!("SELECT k, v FROM \"{name}\" WHERE k >= ?1 ORDER BY k"),
            backward: format!("SELECT k, v FROM \"{name}\" WHERE k <= ?1 ORDER BY k DESC"),
        }
    }
}

/// An open database.
pub struct SqliteEngine {
    settings: PeerSettings,
    tables: Vec<Statements>,
    sessions: AtomicU64,
}

impl fmt::Debug for SqliteEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteEngine({} tables)", self.tables.len())
    }
}

fn failed(error: rusqlite::Error) -> EngineError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => EngineError::Conflict,
        _ => EngineError::failed(error),
    }
}

impl SqliteEngine {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn open(settings: &PeerSettings) -> Result<Self> {
        let engine = Self {
            settings: settings.clone(),
            tables: Vec::new(),
            sessions: AtomicU64::new(0),
        };
        engine.connect()?;
        Ok(engine)
    }

    fn path(&self) -> PathBuf {
        self.settings.data.join(FILE)
    }

    fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(self.path()).map_err(failed)?;
        connection.busy_timeout(WAIT).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(256);
        let kib = self.settings.memory_bytes / 1024 / (self.settings.sessions as u64).max(1);
        let synchronous = if self.settings.sync { "FULL" } else { "OFF" };
        let settings = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -{kib}; \
             PRAGMA wal_autocheckpoint = {LOG_PAGES};"
        );
        connection.execute_batch(&settings).map_err(failed)?;
        Ok(connection)
    }
}

impl Engine for SqliteEngine {
    type Session<'e> = SqliteSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        let connection = self.connect()?;
        for spec in tables {
            let make = format!(
                "CREATE TABLE IF NOT EXISTS \"{}\" (k BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID",
                spec.name
            );
            connection.execute_batch(&make).map_err(failed)?;
        }
        self.tables = tables
            .iter()
            .map(|spec| Statements::of(spec.name))
            .collect();
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        let connection = self.connect()?;
        let mut listed = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
            .map_err(failed)?;
        let names = listed.query_map([], |row| row.get(0)).map_err(failed)?;
        let names: rusqlite::Result<Vec<String>> = names.collect();
        names.map(Some).map_err(failed)
    }

    fn open_session(&self) -> Result<SqliteSession<'_>> {
        // Relaxed: a count.
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(SqliteSession {
            engine: self,
            connection: self.connect()?,
            is_open: false,
            value: Vec::new(),
        })
    }

    fn checkpoint(&self) -> Result<()> {
        let connection = self.connect()?;
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(failed)
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            more: vec![("connections", self.sessions.load(Ordering::Relaxed))],
            ..Statistics::default()
        }
    }

    fn describe(&self) -> Description {
        let synchronous = if self.settings.sync { "FULL" } else { "OFF" };
        Description {
            name: "sqlite".to_owned(),
            version: rusqlite::version().to_owned(),
            settings: vec![
                (
                    "isolation".to_owned(),
                    "serializable, one writer at a time".to_owned(),
                ),
                (
                    "durability".to_owned(),
                    format!("WAL, synchronous={synchronous}"),
                ),
                (
                    "memory".to_owned(),
                    format!(
                        "{} bytes, shared out to {} connections",
                        self.settings.memory_bytes, self.settings.sessions
                    ),
                ),
            ],
        }
    }
}

/// A client.
pub struct SqliteSession<'e> {
    engine: &'e SqliteEngine,
    connection: Connection,
    is_open: bool,
    value: Vec<u8>,
}

impl fmt::Debug for SqliteSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteSession({:?})", self.engine)
    }
}

impl<'e> SqliteSession<'e> {
    #[inline]
    fn statements(&self, table: Table) -> &'e Statements {
        &self.engine.tables[table.position()]
    }

    #[inline]
    fn prepared(&self, text: &str) -> Result<CachedStatement<'_>> {
        self.connection.prepare_cached(text).map_err(failed)
    }

    fn run(&self, text: &str) -> Result<()> {
        self.prepared(text)?.execute([]).map(drop).map_err(failed)
    }
}

impl Session for SqliteSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        // Who writes later would fail where somebody wrote in between: SQLite has no such conflict but at the first write.
        self.run(if options.read_only || options.analytical {
            "BEGIN"
        } else {
            "BEGIN IMMEDIATE"
        })?;
        self.is_open = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.run("COMMIT")?;
        self.is_open = false;
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        // A full disk, and some other errors, have rolled back already.
        if std::mem::take(&mut self.is_open) && !self.connection.is_autocommit() {
            self.run("ROLLBACK")?;
        }
        Ok(())
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let mut get = self.prepared(&self.statements(table).get)?;
        get.query_row([key], |row| Ok(read(row.get_ref(0)?.as_blob()?)))
            .optional()
            .map_err(failed)
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let mut insert = self.prepared(&self.statements(table).insert)?;
        match insert.execute(params![key, value]) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Err(EngineError::KeyExists(table))
            }
            other => other.map(drop).map_err(failed),
        }
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let mut upsert = self.prepared(&self.statements(table).upsert)?;
        upsert
            .execute(params![key, value])
            .map(drop)
            .map_err(failed)
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let mut value = std::mem::take(&mut self.value);
        if !self.get(table, key, &mut value)? {
            return Ok(false);
        }
        change(&mut value);
        let mut update = self.prepared(&self.statements(table).update)?;
        update.execute(params![key, value]).map_err(failed)?;
        drop(update);
        self.value = value;
        Ok(true)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let mut delete = self.prepared(&self.statements(table).delete)?;
        Ok(delete.execute([key]).map_err(failed)? > 0)
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let statements = self.statements(table);
        let text = match direction {
            Direction::Forward => &statements.forward,
            Direction::Backward => &statements.backward,
        };
        let mut scan = self.prepared(text)?;
        let mut rows = scan.query([from]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let blob = |column| row.get_ref(column).and_then(|value| Ok(value.as_blob()?));
            let (key, value) = (blob(0).map_err(failed)?, blob(1).map_err(failed)?);
            if !each(key, value) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_workload::conformance::TABLES;

    #[test]
    fn a_transaction_that_an_error_has_rolled_back_is_rolled_back_without_another() {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = PeerSettings {
            data: directory.path().to_owned(),
            memory_bytes: 1 << 20,
            sync: false,
            sessions: 1,
            tables: TABLES.len(),
            writers: 1,
        };
        let mut engine = SqliteEngine::open(&settings).expect("a database");
        engine.ensure_tables(TABLES).expect("tables");
        let mut session = engine.open_session().expect("a session");
        // As full as a disk can be.
        let full = "PRAGMA max_page_count = 8";
        session
            .connection
            .query_row(full, [], |_| Ok(()))
            .expect("a limit");
        session.begin(TxOptions::READ_WRITE).expect("a transaction");
        let row = vec![0_u8; 1 << 20];
        let error = session.insert(Table::at(0), b"a", &row);
        let error = error.expect_err("there is no room");
        assert!(error.to_string().contains("full"), "{error}");
        assert!(session.connection.is_autocommit(), "{error}");
        session.rollback().expect("nothing is left to do");
        session.begin(TxOptions::READ_WRITE).expect("a transaction");
        session.commit().expect("a commit");
    }
}
