//! LMDB: a copy-on-write tree in a mapped file. One writer at a time; readers wait for nobody.
//!
//! Reads hand out the page's own bytes. A range of a value cannot be overwritten in place: an update puts the whole value where a cursor
//! stands, so it searches once. A session has one transaction that reads, which is reset and renewed with its cursors; where commits need not
//! be on disk, pages are written by system calls, or in the map: two engines of the bench, as neither is the faster one everywhere.

mod client;

use crate::{PeerSettings, no_transaction};
use client::{Environment, Failure, Options, Reader, Room, Tree, Way, Writer};
use std::fmt;
use std::ops::Range;
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};

/// Addresses for the file: it never grows beyond.
const MAP_BYTES: usize = 1 << 40;

/// How pages get into the file where commits need not be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// By system calls, when a transaction commits.
    BySystemCalls,
    /// In the map itself (`MDB_WRITEMAP`).
    InTheMap,
}

/// An open environment.
pub struct LmdbEngine {
    environment: Environment,
    tables: Vec<Tree>,
    writes: Writes,
    sync: bool,
}

impl fmt::Debug for LmdbEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LmdbEngine({} tables)", self.tables.len())
    }
}

fn failed(failure: Failure) -> EngineError {
    EngineError::failed(failure)
}

impl LmdbEngine {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// What LMDB reports.
    pub fn open(settings: &PeerSettings, writes: Writes) -> Result<Self> {
        let options = Options {
            map_bytes: MAP_BYTES,
            tables: settings.tables as u32,
            readers: settings.sessions as u32 + 8,
            sync: settings.sync,
            write_map: writes == Writes::InTheMap,
        };
        Ok(Self {
            environment: Environment::open(&settings.data, options).map_err(failed)?,
            tables: Vec::new(),
            writes,
            sync: settings.sync,
        })
    }
}

impl Engine for LmdbEngine {
    type Session<'e> = LmdbSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        self.tables.clear();
        for spec in tables {
            let tree = self.environment.create(spec.name).map_err(failed)?;
            self.tables.push(tree);
        }
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        self.environment.names().map(Some).map_err(failed)
    }

    fn open_session(&self) -> Result<LmdbSession<'_>> {
        Ok(LmdbSession {
            engine: self,
            reader: Reader::new(&self.environment, self.tables.len()).map_err(failed)?,
            open: Open::Nothing,
            room: Room::default(),
            value: Vec::new(),
        })
    }

    fn checkpoint(&self) -> Result<()> {
        self.environment.sync().map_err(failed)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn describe(&self) -> Description {
        let (name, writes) = match self.writes {
            Writes::BySystemCalls => ("lmdb", "MDB_NOMEMINIT"),
            Writes::InTheMap => ("lmdb-writemap", "MDB_WRITEMAP"),
        };
        let (durability, power_loss) = match self.sync {
            true => ("commits are synced", "nothing"),
            false => (
                "MDB_NOSYNC: commits are in the kernel's memory",
                "commits since the kernel wrote them, and may damage the file",
            ),
        };
        Description::new(
            name,
            client::version(),
            Terms {
                isolation: "serializable, one writer at a time".to_owned(),
                durability: durability.to_owned(),
                lost_by_kill: "nothing".to_owned(),
                lost_by_power_loss: power_loss.to_owned(),
                memory: "the kernel's cache, unbounded".to_owned(),
            },
            vec![
                ("flags", format!("MDB_NOTLS, {writes}")),
                ("log", "none: pages are never overwritten".to_owned()),
                ("checksums", "none".to_owned()),
            ],
        )
    }
}

/// The transaction of a session.
enum Open<'e> {
    Nothing,
    /// The session's reader is renewed.
    Reader,
    Writer(Writer<'e>),
}

/// A client.
pub struct LmdbSession<'e> {
    engine: &'e LmdbEngine,
    reader: Reader<'e>,
    open: Open<'e>,
    room: Room,
    value: Vec<u8>,
}

impl fmt::Debug for LmdbSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LmdbSession({:?})", self.engine)
    }
}

impl<'e> LmdbSession<'e> {
    #[inline]
    fn tree(&self, table: Table) -> Tree {
        self.engine.tables[table.position()]
    }

    #[inline]
    fn writer(&mut self) -> Result<&mut Writer<'e>> {
        match &mut self.open {
            Open::Writer(writer) => Ok(writer),
            Open::Reader | Open::Nothing => Err(no_transaction()),
        }
    }

    /// Ends the open transaction; hands out what has to be committed.
    fn end(&mut self) -> Option<Writer<'e>> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => Some(writer),
            Open::Reader => {
                self.reader.reset();
                None
            }
            Open::Nothing => None,
        }
    }
}

impl Session for LmdbSession<'_> {
    #[inline]
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        drop(self.end());
        self.open = if options.read_only || options.analytical {
            self.reader.renew().map_err(failed)?;
            Open::Reader
        } else {
            Open::Writer(Writer::begin(&self.engine.environment, &mut self.room).map_err(failed)?)
        };
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<()> {
        match self.end() {
            Some(writer) => writer.commit(&mut self.room).map_err(failed),
            None => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        drop(self.end());
        Ok(())
    }

    #[inline]
    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let tree = self.tree(table);
        let found = match &self.open {
            Open::Reader => self.reader.get(tree, key),
            Open::Writer(writer) => writer.get(tree, key),
            Open::Nothing => return Err(no_transaction()),
        };
        Ok(found.map_err(failed)?.map(read))
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.tree(table);
        match self.writer()?.put(tree, Way::New, key, value) {
            Ok(false) => Err(EngineError::KeyExists(table)),
            put => put.map(drop).map_err(failed),
        }
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.tree(table);
        let put = self.writer()?.put(tree, Way::Over, key, value);
        put.map(drop).map_err(failed)
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let tree = self.tree(table);
        let mut value = std::mem::take(&mut self.value);
        let writer = self.writer()?;
        let updated = writer.update(tree, table.position(), key, &mut value, change);
        self.value = value;
        updated.map_err(failed)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let tree = self.tree(table);
        self.writer()?.delete(tree, key).map_err(failed)
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let (tree, at) = (self.tree(table), table.position());
        match &mut self.open {
            Open::Reader => self.reader.scan(tree, at, from, direction, &mut each),
            Open::Writer(writer) => writer.scan(tree, at, from, direction, &mut each),
            Open::Nothing => return Err(no_transaction()),
        }
        .map_err(failed)
    }

    fn bulk_load(
        &mut self,
        table: Table,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        let tree = self.tree(table);
        let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0);
        let writer = self.writer()?;
        while next(&mut key, &mut value) {
            writer
                .put(tree, Way::Behind, &key, &value)
                .map_err(failed)?;
            rows += 1;
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_workload::conformance::TABLES;

    fn engine(directory: &std::path::Path) -> LmdbEngine {
        let settings = PeerSettings {
            data: directory.to_owned(),
            memory_bytes: 1 << 20,
            sync: false,
            sessions: 4,
            tables: TABLES.len(),
            writers: 1,
        };
        let mut engine = LmdbEngine::open(&settings, Writes::BySystemCalls).expect("a database");
        engine.ensure_tables(TABLES).expect("tables");
        engine
    }

    fn rows(session: &mut LmdbSession<'_>) -> Vec<Vec<u8>> {
        let mut rows = Vec::new();
        let each = |key: &[u8], _: &[u8]| {
            rows.push(key.to_owned());
            true
        };
        let scanned = session.scan(Table::at(0), b"", Direction::Forward, each);
        scanned.expect("a scan");
        rows
    }

    #[test]
    fn a_reader_that_is_renewed_sees_what_was_committed_since_by_its_cursors_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = engine(directory.path());
        let mut reader = engine.open_session().expect("a session");
        let mut writer = engine.open_session().expect("a session of the same thread");
        for number in 0..3_u8 {
            reader.begin(TxOptions::READ_ONLY).expect("a snapshot");
            writer.begin(TxOptions::READ_WRITE).expect("a transaction");
            writer
                .insert(Table::at(0), &[number], b"value")
                .expect("a row");
            writer.commit().expect("a commit");
            let before = usize::from(number);
            assert_eq!(rows(&mut reader).len(), before, "its snapshot is older");
            let got = reader.get_with(Table::at(0), &[number], <[u8]>::to_vec);
            assert_eq!(got.expect("a look"), None);
            reader.commit().expect("its end");
            reader.begin(TxOptions::READ_ONLY).expect("a snapshot");
            assert_eq!(rows(&mut reader).len(), before + 1);
            let got = reader.get_with(Table::at(0), &[number], <[u8]>::to_vec);
            assert_eq!(got.expect("a look").as_deref(), Some(&b"value"[..]));
            reader.commit().expect("its end");
        }
    }

    #[test]
    fn a_reader_outside_of_a_snapshot_holds_no_page_and_reads_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = engine(directory.path());
        let mut idle = engine.open_session().expect("a session");
        let mut writer = engine.open_session().expect("a session");
        idle.begin(TxOptions::READ_ONLY).expect("a snapshot");
        idle.commit().expect("its end");
        assert!(idle.get_with(Table::at(0), b"a", |_| ()).is_err());
        let size = |engine: &LmdbEngine| {
            engine.checkpoint().expect("a sync");
            let file = std::fs::metadata(directory.path().join("data.mdb"));
            file.expect("a file").len()
        };
        let mut write = |times: u32| {
            for _ in 0..times {
                writer.begin(TxOptions::READ_WRITE).expect("a transaction");
                writer.upsert(Table::at(0), b"a", &[1; 100]).expect("a row");
                writer.commit().expect("a commit");
            }
        };
        write(20);
        let before = size(&engine);
        write(500);
        assert_eq!(size(&engine), before, "pages come back");
    }
}
