//! SQLite in WAL mode: a table without row ids for each table of a workload. One writer at a time; readers wait for nobody.
//!
//! A session is a connection. It reads the file in a map, which is the kernel's memory and that of all sessions; a page cache of its own holds what
//! stands in the log, and what it changes. Nothing is shared out: a session that does nothing has no pages. Statements are prepared once a session.
//!
//! `async` is `synchronous=NORMAL`: its log is synced by checkpoints only, which keep the database whole after a power loss, as all that is
//! compared with it is; `OFF` would not.

use crate::PeerSettings;
use rusqlite::{Connection, ErrorCode, Statement, params};
use self_cell::self_cell;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};

const FILE: &str = "sqlite";
/// How long a writer waits for the one before it.
const WAIT: Duration = Duration::from_secs(600);
/// Pages of log before a checkpoint.
const LOG_PAGES: u32 = 16_384;

/// What is asked of a table.
#[derive(Debug)]
struct OfTable<'c> {
    get: Statement<'c>,
    insert: Statement<'c>,
    upsert: Statement<'c>,
    update: Statement<'c>,
    delete: Statement<'c>,
    forward: Statement<'c>,
    backward: Statement<'c>,
}

/// All that a session asks for.
#[derive(Debug)]
struct Prepared<'c> {
    begin: Statement<'c>,
    begin_writing: Statement<'c>,
    commit: Statement<'c>,
    rollback: Statement<'c>,
    tables: Vec<OfTable<'c>>,
}

impl<'c> Prepared<'c> {
    fn new(connection: &'c Connection, tables: &[&str]) -> Result<Self> {
        let of = |text: &str| connection.prepare(text).map_err(failed);
        let of_table = |name: &&str| {
            Ok(OfTable {
                get: of(&format!("SELECT v FROM \"{name}\" WHERE k = ?1"))?,
                insert: of(&format!("INSERT INTO \"{name}\" VALUES (?1, ?2)"))?,
                upsert: of(&format!(
                    "INSERT OR REPLACE INTO \"{name}\" VALUES (?1, ?2)"
                ))?,
                update: of(&format!("UPDATE \"{name}\" SET v = ?2 WHERE k = ?1"))?,
                delete: of(&format!("DELETE FROM \"{name}\" WHERE k = ?1"))?,
                forward: of(&format!(
                    "SELECT k, v FROM \"{name}\" WHERE k >= ?1 ORDER BY k"
                ))?,
                backward: of(&format!(
                    "SELECT k, v FROM \"{name}\" WHERE k <= ?1 ORDER BY k DESC"
                ))?,
            })
        };
        Ok(Self {
            begin: of("BEGIN")?,
            // Who writes later would fail where somebody wrote in between: SQLite has no such conflict but at the first write.
            begin_writing: of("BEGIN IMMEDIATE")?,
            commit: of("COMMIT")?,
            rollback: of("ROLLBACK")?,
            tables: tables.iter().map(of_table).collect::<Result<_>>()?,
        })
    }
}

self_cell!(
    struct Client {
        owner: Connection,
        #[not_covariant]
        dependent: Prepared,
    }
);

/// An open database.
pub struct SqliteEngine {
    settings: PeerSettings,
    tables: Vec<&'static str>,
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

    const fn synchronous(&self) -> &'static str {
        if self.settings.sync { "FULL" } else { "NORMAL" }
    }

    fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(self.path()).map_err(failed)?;
        connection.busy_timeout(WAIT).map_err(failed)?;
        let bytes = self.settings.memory_bytes;
        let kib = bytes / 1024;
        let synchronous = self.synchronous();
        let settings = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -{kib}; PRAGMA mmap_size = {bytes}; \
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
        self.tables = tables.iter().map(|spec| spec.name).collect();
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
            client: Client::try_new(self.connect()?, |connection| {
                Prepared::new(connection, &self.tables)
            })?,
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
        let (synchronous, lost) = (
            self.synchronous(),
            match self.settings.sync {
                true => "nothing",
                false => "commits since the kernel wrote them or a checkpoint synced them",
            },
        );
        Description::new(
            "sqlite",
            rusqlite::version(),
            Terms {
                isolation: "serializable, one writer at a time".to_owned(),
                durability: format!("WAL, synchronous={synchronous}"),
                lost_by_kill: "nothing".to_owned(),
                lost_by_power_loss: lost.to_owned(),
                memory: format!(
                    "{0} bytes of the file mapped (SQLite maps 2 GiB at most), and of each connection that uses them {0} bytes of pages in the log or changed",
                    self.settings.memory_bytes
                ),
            },
            vec![
                ("log", format!("{LOG_PAGES} pages before a checkpoint")),
                ("checksums", "of the log, not of pages".to_owned()),
            ],
        )
    }
}

/// A client.
pub struct SqliteSession<'e> {
    engine: &'e SqliteEngine,
    client: Client,
    is_open: bool,
    value: Vec<u8>,
}

impl fmt::Debug for SqliteSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteSession({:?})", self.engine)
    }
}

impl SqliteSession<'_> {
    /// Runs `work` on the statements.
    #[inline]
    fn with<R>(
        &mut self,
        work: impl FnOnce(&mut Prepared<'_>) -> rusqlite::Result<R>,
    ) -> Result<R> {
        let work = |_: &Connection, prepared: &mut Prepared<'_>| work(prepared);
        self.client.with_dependent_mut(work).map_err(failed)
    }

    /// Runs `work` on those of a table.
    #[inline]
    fn of<R>(
        &mut self,
        table: Table,
        work: impl FnOnce(&mut OfTable<'_>) -> rusqlite::Result<R>,
    ) -> Result<R> {
        self.with(|prepared| work(&mut prepared.tables[table.position()]))
    }
}

impl Session for SqliteSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        let reads = options.read_only || options.analytical;
        self.with(|prepared| match reads {
            true => prepared.begin.execute([]),
            false => prepared.begin_writing.execute([]),
        })?;
        self.is_open = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.with(|prepared| prepared.commit.execute([]))?;
        self.is_open = false;
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        // A full disk, and some other errors, have rolled back already.
        if std::mem::take(&mut self.is_open) && !self.client.borrow_owner().is_autocommit() {
            self.with(|prepared| prepared.rollback.execute([]))?;
        }
        Ok(())
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.of(table, |of| {
            let mut rows = of.get.query([key])?;
            let row = rows.next()?;
            row.map(|row| Ok(read(row.get_ref(0)?.as_blob()?)))
                .transpose()
        })
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let there = self.of(table, |of| match of.insert.execute(params![key, value]) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Ok(true)
            }
            other => other.map(|_| false),
        })?;
        match there {
            true => Err(EngineError::KeyExists(table)),
            false => Ok(()),
        }
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.of(table, |of| of.upsert.execute(params![key, value]).map(drop))
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let mut value = std::mem::take(&mut self.value);
        let updated = self.of(table, |of| {
            let mut rows = of.get.query([key])?;
            let Some(row) = rows.next()? else {
                return Ok(false);
            };
            value.clear();
            value.extend_from_slice(row.get_ref(0)?.as_blob()?);
            drop(rows);
            change(&mut value);
            of.update.execute(params![key, value])?;
            Ok(true)
        });
        self.value = value;
        updated
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.of(table, |of| Ok(of.delete.execute([key])? > 0))
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        self.of(table, |of| {
            let scan = match direction {
                Direction::Forward => &mut of.forward,
                Direction::Backward => &mut of.backward,
            };
            let mut rows = scan.query([from])?;
            while let Some(row) = rows.next()? {
                let (key, value) = (row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
                if !each(key, value) {
                    break;
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_workload::conformance::TABLES;

    #[test]
    fn every_session_has_the_map_and_the_cache_whatever_the_others_do() {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = PeerSettings {
            data: directory.path().to_owned(),
            memory_bytes: 1 << 20,
            sync: false,
            sessions: 8,
            tables: TABLES.len(),
            writers: 1,
        };
        let mut engine = SqliteEngine::open(&settings).expect("a database");
        engine.ensure_tables(TABLES).expect("tables");
        let sessions = [(); 2].map(|()| engine.open_session().expect("a session"));
        for session in &sessions {
            let connection = session.client.borrow_owner();
            let told = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            assert_eq!(told("mmap_size").expect("its size"), 1 << 20);
            assert_eq!(told("cache_size").expect("its size"), -1024);
        }
    }

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
            .client
            .borrow_owner()
            .query_row(full, [], |_| Ok(()))
            .expect("a limit");
        session.begin(TxOptions::READ_WRITE).expect("a transaction");
        let row = vec![0_u8; 1 << 20];
        let error = session.insert(Table::at(0), b"a", &row);
        let error = error.expect_err("there is no room");
        assert!(error.to_string().contains("full"), "{error}");
        assert!(session.client.borrow_owner().is_autocommit(), "{error}");
        session.rollback().expect("nothing is left to do");
        session.begin(TxOptions::READ_WRITE).expect("a transaction");
        session.commit().expect("a commit");
    }
}
