//! WiredTiger: B-trees in a cache, with a log, of MongoDB. Any number of writers; who writes a row that changed since his snapshot runs again,
//! nobody waits.
//!
//! It is the system's library, reached through a few functions of C. A session of the bench is one of WiredTiger's; its
//! cursors stay open. Rows are handed out of the page, not copied. A sorted load into a table that nobody has written is a
//! bulk load, which belongs to no transaction and is in no log: everybody sees its rows when it ends, and they are in the
//! table's file; the record that names them there is synced with the next commit that is, or a moment later.
//!
//! A transaction whose changes take too much of the cache is rolled back by WiredTiger, which tells it as a conflict: what is
//! loaded row by row has to be a fraction of the memory.
//!
//! Crash: a transaction that is rolled back, by its session's end too, makes the tables that it filled anew. A process that is killed behind
//! a bulk load and before its transaction's commit leaves the rows; the load may be done again over them.
//!
//! Not here: updates of parts of a value (`WT_CURSOR::modify`), which every reader puts together again.

mod client;

use crate::{PeerSettings, no_transaction};
use client::{Client, Connection, Failure, Way};
use std::ffi::CString;
use std::fmt;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};

/// What a table's name begins with.
const TABLE: &str = "table:";
/// Seconds between two checkpoints, as MongoDB has it.
const CHECKPOINT_S: u32 = 60;
/// Sessions beside those of the workload: WiredTiger's own threads have some, and a load has one.
const MORE_SESSIONS: usize = 64;

/// An open database.
pub struct WiredtigerEngine {
    connection: Connection,
    /// Names of tables with what they begin with.
    tables: Vec<CString>,
    /// By table: made here, and never written since.
    untouched: Vec<AtomicBool>,
    /// How many tables were filled beside transactions.
    filled: AtomicU64,
    sync: bool,
    memory_bytes: u64,
}

impl fmt::Debug for WiredtigerEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WiredtigerEngine({} tables)", self.tables.len())
    }
}

fn failed(failure: Failure) -> EngineError {
    if failure.is_conflict() {
        EngineError::Conflict
    } else {
        EngineError::failed(failure)
    }
}

/// A text for C.
fn text(bytes: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(bytes).map_err(EngineError::failed)
}

impl WiredtigerEngine {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// What WiredTiger reports.
    pub fn open(settings: &PeerSettings) -> Result<Self> {
        let config = format!(
            "create,config_base=false,cache_size={},session_max={},log=(enabled=true),\
             transaction_sync=(enabled={},method=fsync),checkpoint=(wait={CHECKPOINT_S})",
            settings.memory_bytes,
            settings.sessions + MORE_SESSIONS,
            settings.sync,
        );
        let home = text(settings.data.as_os_str().as_bytes())?;
        Ok(Self {
            connection: Connection::open(&home, &text(config)?).map_err(failed)?,
            tables: Vec::new(),
            untouched: Vec::new(),
            filled: AtomicU64::new(0),
            sync: settings.sync,
            memory_bytes: settings.memory_bytes,
        })
    }

    fn client(&self) -> Result<Client<'_>> {
        self.connection.client(&self.tables).map_err(failed)
    }

    fn names(&self) -> Result<Vec<String>> {
        let names = self.client()?.names().map_err(failed)?;
        let tables = names.iter().filter_map(|name| name.strip_prefix(TABLE));
        Ok(tables.map(str::to_owned).collect())
    }
}

impl Engine for WiredtigerEngine {
    type Session<'e> = WiredtigerSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        let there = self.names()?;
        let names: Result<Vec<CString>> = tables
            .iter()
            .map(|spec| text(format!("{TABLE}{}", spec.name)))
            .collect();
        let names = names?;
        let mut client = self.connection.client(&names).map_err(failed)?;
        for table in 0..names.len() {
            client.create(table).map_err(failed)?;
        }
        drop(client);
        self.tables = names;
        self.untouched = tables
            .iter()
            .map(|spec| AtomicBool::new(!there.iter().any(|name| name == spec.name)))
            .collect();
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        self.names().map(Some)
    }

    fn open_session(&self) -> Result<WiredtigerSession<'_>> {
        Ok(WiredtigerSession {
            engine: self,
            client: self.client()?,
            is_open: false,
            filled: Vec::new(),
            value: Vec::new(),
        })
    }

    fn checkpoint(&self) -> Result<()> {
        self.client()?.checkpoint().map_err(failed)
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            more: vec![("tables_filled", self.filled.load(Ordering::Relaxed))],
            ..Statistics::default()
        }
    }

    fn describe(&self) -> Description {
        let (durability, kill, power_loss) = match self.sync {
            true => ("commits are synced", "nothing", "nothing".to_owned()),
            false => (
                "commits are in the process's memory; the log is written after a moment, and synced with its files and checkpoints",
                "commits of that moment",
                format!(
                    "commits since the kernel wrote them or a checkpoint did, at most {CHECKPOINT_S} seconds"
                ),
            ),
        };
        Description::new(
            "wiredtiger",
            client::version(),
            Terms {
                isolation: "snapshot, first to write wins, nobody waits".to_owned(),
                durability: durability.to_owned(),
                lost_by_kill: kill.to_owned(),
                lost_by_power_loss: power_loss,
                memory: format!(
                    "cache of {} bytes, and the kernel's cache",
                    self.memory_bytes
                ),
            },
            vec![
                ("checkpoints", format!("every {CHECKPOINT_S} seconds")),
                (
                    "loads",
                    "into untouched tables beside the transaction and without the log, others row by row"
                        .to_owned(),
                ),
                (
                    "transactions",
                    "rolled back where their changes take too much of the cache".to_owned(),
                ),
            ],
        )
    }
}

/// A client.
pub struct WiredtigerSession<'e> {
    engine: &'e WiredtigerEngine,
    client: Client<'e>,
    is_open: bool,
    /// Tables that were filled beside the open transaction, or beside one that could not be committed.
    filled: Vec<usize>,
    value: Vec<u8>,
}

impl Drop for WiredtigerSession<'_> {
    fn drop(&mut self) {
        // What it had not committed is rolled back: nobody is to be told.
        let _ = self.rollback();
    }
}

impl fmt::Debug for WiredtigerSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WiredtigerSession({:?})", self.engine)
    }
}

impl WiredtigerSession<'_> {
    #[inline]
    fn check_open(&self) -> Result<()> {
        match self.is_open {
            true => Ok(()),
            false => Err(no_transaction()),
        }
    }

    /// Before a table is written: it can be filled no more.
    #[inline]
    fn touch(&self, table: usize) -> Result<()> {
        self.check_open()?;
        let untouched = &self.engine.untouched[table];
        // Relaxed: who fills a table in a run is alone, as a load is; WiredTiger refuses whoever is not.
        if untouched.load(Ordering::Relaxed) {
            untouched.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Makes what was filled anew, as it was before.
    fn empty_filled(&mut self) -> Result<()> {
        if self.filled.is_empty() {
            return Ok(());
        }
        let mut maker = self.engine.client()?;
        while let Some(&table) = self.filled.last() {
            // It wants to be the only one who has the table open.
            self.client.close(table).map_err(failed)?;
            if !maker.make_anew(table).map_err(failed)? {
                let name = self.engine.tables[table].to_string_lossy();
                return Err(EngineError::Unusable(format!(
                    "{name} keeps rows of a load that was rolled back: somebody has it open"
                )));
            }
            // Relaxed: as in `touch`.
            self.engine.untouched[table].store(true, Ordering::Relaxed);
            self.filled.pop();
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, table: Table, way: Way, key: &[u8], value: &[u8]) -> Result<()> {
        self.touch(table.position())?;
        match self.client.insert(table.position(), way, key, value) {
            Err(failure) if failure.is_duplicate() => Err(EngineError::KeyExists(table)),
            other => other.map_err(failed),
        }
    }
}

impl Session for WiredtigerSession<'_> {
    fn begin(&mut self, _options: TxOptions) -> Result<()> {
        self.client.begin().map_err(failed)?;
        self.is_open = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_open) {
            self.client.commit().map_err(failed)?;
            self.filled.clear();
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        let rolled_back = match std::mem::take(&mut self.is_open) {
            true => self.client.rollback().map_err(failed),
            false => Ok(()),
        };
        rolled_back.and(self.empty_filled())
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.check_open()?;
        let table = table.position();
        let found = self.client.search(table, key).map_err(failed)?;
        let found = found.map(&mut read);
        self.client.leave(table).map_err(failed)?;
        Ok(found)
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(table, Way::Looks, key, value)
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(table, Way::Overwrites, key, value)
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let table = table.position();
        self.touch(table)?;
        let Some(found) = self.client.search(table, key).map_err(failed)? else {
            self.client.leave(table).map_err(failed)?;
            return Ok(false);
        };
        self.value.clear();
        self.value.extend_from_slice(found);
        change(&mut self.value);
        self.client
            .update_here(table, &self.value)
            .map_err(failed)?;
        self.client.leave(table).map_err(failed)?;
        Ok(true)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let table = table.position();
        self.touch(table)?;
        let removed = self.client.remove(table, key).map_err(failed)?;
        self.client.leave(table).map_err(failed)?;
        Ok(removed)
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        self.check_open()?;
        let (table, upwards) = (table.position(), direction == Direction::Forward);
        let scanned = self.client.scan(table, from, upwards, each);
        scanned.map_err(failed)?;
        self.client.leave(table).map_err(failed)
    }

    fn bulk_load(
        &mut self,
        table: Table,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        self.check_open()?;
        let at = table.position();
        if self.engine.untouched[at].load(Ordering::Relaxed) {
            self.touch(at)?;
            // It wants to be the only one who has the table open.
            self.client.close(at).map_err(failed)?;
            let mut loader = self.engine.client()?;
            if loader.make_anew(at).map_err(failed)? {
                self.filled.push(at);
                let rows = loader.fill(at, &mut next).map_err(failed)?;
                // Relaxed: a count.
                self.engine.filled.fetch_add(1, Ordering::Relaxed);
                return Ok(rows);
            }
        }
        let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0);
        while next(&mut key, &mut value) {
            // What is there was left by a load that was killed.
            self.upsert(table, &key, &value)?;
            rows += 1;
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use vellum_workload::conformance::TABLES;

    const LOADED: Table = Table::at(0);
    const NOTES: Table = Table::at(1);

    fn open(data: &Path) -> WiredtigerEngine {
        let settings = PeerSettings {
            data: data.to_owned(),
            memory_bytes: 32 << 20,
            sync: true,
            sessions: 2,
            tables: TABLES.len(),
            writers: 2,
        };
        let mut engine = WiredtigerEngine::open(&settings).expect("a database");
        engine.ensure_tables(TABLES).expect("tables");
        engine
    }

    /// Looks whether there is anything, and loads numbers from `first` on in a transaction that notes it.
    fn load(session: &mut WiredtigerSession<'_>, first: u32) {
        begin_load(session, first);
        session.commit().expect("a commit");
    }

    fn begin_load(session: &mut WiredtigerSession<'_>, first: u32) {
        session.begin(TxOptions::READ_WRITE).expect("a transaction");
        let found = session.get_with(LOADED, &first.to_be_bytes(), |_| ());
        found.expect("a look");
        let mut number = first;
        let next = |key: &mut Vec<u8>, value: &mut Vec<u8>| {
            key.clear();
            key.extend_from_slice(&number.to_be_bytes());
            value.clone_from(key);
            number += 1;
            number <= first + 100
        };
        assert_eq!(session.bulk_load(LOADED, next).expect("a load"), 100);
        session.upsert(NOTES, b"loaded", b"yes").expect("a note");
    }

    /// What a killed process leaves: the files as they are, beside one that has them open.
    fn killed(data: &Path) -> tempfile::TempDir {
        let left = tempfile::tempdir().expect("a directory");
        for file in fs::read_dir(data).expect("files") {
            let file = file.expect("a file");
            fs::copy(file.path(), left.path().join(file.file_name())).expect("a copy");
        }
        left
    }

    fn rows(session: &mut WiredtigerSession<'_>, table: Table) -> usize {
        session.begin(TxOptions::READ_ONLY).expect("a transaction");
        let mut rows = 0;
        let each = |_: &[u8], _: &[u8]| {
            rows += 1;
            true
        };
        session
            .scan(table, b"", Direction::Forward, each)
            .expect("a scan");
        session.commit().expect("a commit");
        rows
    }

    #[test]
    fn what_was_filled_is_there_with_its_transaction_where_the_process_is_killed() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = open(directory.path());
        let mut session = engine.open_session().expect("a session");
        load(&mut session, 0);
        load(&mut session, 100);
        assert_eq!(engine.statistics().more, [("tables_filled", 1)]);
        let left = killed(directory.path());
        let engine = open(left.path());
        let mut session = engine.open_session().expect("a session");
        assert_eq!(
            (rows(&mut session, NOTES), rows(&mut session, LOADED)),
            (1, 200)
        );
    }

    #[test]
    fn a_table_that_somebody_has_open_is_loaded_all_the_same() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = open(directory.path());
        let mut other = engine.open_session().expect("a session");
        assert_eq!(rows(&mut other, LOADED), 0);
        let mut session = engine.open_session().expect("a session");
        load(&mut session, 0);
        load(&mut session, 100);
        assert_eq!(engine.statistics().more, [("tables_filled", 0)]);
        assert_eq!(rows(&mut other, LOADED), 200);
    }

    #[test]
    fn what_was_filled_goes_with_its_transaction_and_can_be_filled_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = open(directory.path());
        let mut session = engine.open_session().expect("a session");
        begin_load(&mut session, 0);
        // It stands there where the transaction ends.
        let found = session.get_with(LOADED, &7_u32.to_be_bytes(), |_| ());
        assert_eq!(found.expect("a look"), Some(()));
        session.rollback().expect("a rollback");
        assert_eq!(rows(&mut session, LOADED), 0);
        begin_load(&mut session, 0);
        // A session that ends.
        drop(session);
        let mut session = engine.open_session().expect("a session");
        assert_eq!(rows(&mut session, LOADED), 0);
        load(&mut session, 0);
        session.rollback().expect("one without a transaction");
        assert_eq!(engine.statistics().more, [("tables_filled", 3)]);
        assert_eq!(
            (rows(&mut session, NOTES), rows(&mut session, LOADED)),
            (1, 100)
        );
    }

    #[test]
    fn a_load_that_was_killed_before_its_commit_is_done_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = open(directory.path());
        let mut session = engine.open_session().expect("a session");
        begin_load(&mut session, 0);
        // Only then is it certain that the record of the fill is in the log's file.
        let mut other = engine.open_session().expect("a session");
        other.begin(TxOptions::READ_WRITE).expect("a transaction");
        other.upsert(NOTES, b"other", b"yes").expect("a note");
        other.commit().expect("a commit");
        let left = killed(directory.path());
        let engine = open(left.path());
        let mut session = engine.open_session().expect("a session");
        assert_eq!(
            (rows(&mut session, NOTES), rows(&mut session, LOADED)),
            (1, 100),
            "the rows alone"
        );
        load(&mut session, 0);
        assert_eq!(
            (rows(&mut session, NOTES), rows(&mut session, LOADED)),
            (2, 100)
        );
    }
}
