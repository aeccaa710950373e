//! SQLite, by statements that are prepared once.

use super::{Client, MEMORY_BYTES, Result, Runs, change, rows};
use rusqlite::{Connection, Statement, params};
use std::path::Path;

struct Bare<'c> {
    begin: Statement<'c>,
    begin_writing: Statement<'c>,
    commit: Statement<'c>,
    get: Statement<'c>,
    put: Statement<'c>,
}

impl Bare<'_> {
    fn find(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let mut rows = self.get.query([key])?;
        let row = rows.next()?.ok_or("a row is missing")?;
        value.clear();
        value.extend_from_slice(row.get_ref(0)?.as_blob()?);
        Ok(())
    }
}

impl Client for Bare<'_> {
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        self.begin.execute([])?;
        self.find(key, value)?;
        self.commit.execute([])?;
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        self.begin_writing.execute([])?;
        self.find(key, value)?;
        change(value);
        self.put.execute(params![key, &*value])?;
        self.commit.execute([])?;
        Ok(())
    }
}

pub fn bare(path: &Path, run: &mut dyn FnMut(&mut dyn Runs) -> Result<()>) -> Result<()> {
    let connection = Connection::open(path.join("sqlite"))?;
    let kib = MEMORY_BYTES / 1024;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{kib}; PRAGMA mmap_size = {MEMORY_BYTES}; \
         PRAGMA wal_autocheckpoint = 16384; CREATE TABLE t (k BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID; BEGIN"
    ))?;
    let mut insert = connection.prepare("INSERT INTO t VALUES (?1, ?2)")?;
    for (key, value) in rows() {
        insert.execute(params![key, value])?;
    }
    connection.execute_batch("COMMIT")?;
    // By another one, as the adapter's is: the cache is empty behind it.
    let other = Connection::open(path.join("sqlite"))?;
    other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(other);
    run(&mut Bare {
        begin: connection.prepare("BEGIN")?,
        begin_writing: connection.prepare("BEGIN IMMEDIATE")?,
        commit: connection.prepare("COMMIT")?,
        get: connection.prepare("SELECT v FROM t WHERE k = ?1")?,
        put: connection.prepare("UPDATE t SET v = ?2 WHERE k = ?1")?,
    })
}
