//! LMDB: a copy-on-write tree in a mapped file. One writer at a time; readers wait for nobody.
//!
//! Reads hand out the page's own bytes. A range of a value cannot be overwritten in place: an update puts the whole value where a cursor
//! stands, so it searches once.
//!
//! Not here: read transactions that are reset and renewed, and cursors that outlive an operation: heed has neither, nor the pointers to do it
//! beside it. So a reader's begin allocates; what it clears is as small as the tables of the workload let it be.

use crate::{PeerSettings, no_transaction};
use heed::types::{Bytes, DecodeIgnore};
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, RwTxn, WithTls,
};
use std::fmt;
use std::ops::{Bound, Range};
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    TxOptions,
};

/// Addresses for the file: it never grows beyond.
const MAP_BYTES: usize = 1 << 40;

type Tree = Database<'static, Bytes, Bytes>;

/// An open environment.
pub struct LmdbEngine {
    env: Env<WithTls>,
    tables: Vec<Tree>,
    sync: bool,
}

impl fmt::Debug for LmdbEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LmdbEngine({} tables)", self.tables.len())
    }
}

fn failed(error: heed::Error) -> EngineError {
    EngineError::failed(error)
}

impl LmdbEngine {
    /// Opens or creates the database.
    ///
    /// # Errors
    /// What LMDB reports.
    pub fn open(settings: &PeerSettings) -> Result<Self> {
        let mut options = EnvOpenOptions::new();
        options
            .map_size(MAP_BYTES)
            .max_dbs(settings.tables as u32)
            .max_readers(settings.sessions as u32 + 8);
        if !settings.sync {
            // SAFETY: without syncs a crash of the machine may damage the file; it belongs to a measurement, and a process that
            // is killed damages nothing. The map is written by LMDB alone.
            unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP) };
        }
        // SAFETY: the directory belongs to this run: nobody else opens, shortens or writes the file meanwhile.
        let env = unsafe { options.open(&settings.data) }.map_err(failed)?;
        Ok(Self {
            env,
            tables: Vec::new(),
            sync: settings.sync,
        })
    }
}

impl Engine for LmdbEngine {
    type Session<'e> = LmdbSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        self.tables.clear();
        for spec in tables {
            let writer = self.env.write_txn().map_err(failed)?;
            let made = self
                .env
                .create_databases_and_commit(writer, |opener, writer| {
                    let table = opener.create_database::<Bytes, Bytes>(writer, Some(spec.name))?;
                    Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(table))
                });
            self.tables.push(made.map_err(failed)?.unwrap_commit());
        }
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        let reader = self.env.read_txn().map_err(failed)?;
        let listed = self
            .env
            .open_databases_and_commit(reader, |opener, reader| {
                // The keys of the unnamed table are the others' names.
                let names = opener.open_database::<Bytes, DecodeIgnore>(reader, None)?;
                let mut found = Vec::new();
                if let Some(names) = names {
                    for row in names.iter(reader)? {
                        let (name, ()) = row?;
                        found.push(String::from_utf8_lossy(name).into_owned());
                    }
                }
                Ok::<_, heed::Error>(CommitOrAbort::<(), _>::Abort(found))
            });
        Ok(listed.map_err(failed)?.abort())
    }

    fn open_session(&self) -> Result<LmdbSession<'_>> {
        Ok(LmdbSession {
            engine: self,
            open: Open::Nothing,
            value: Vec::new(),
        })
    }

    fn checkpoint(&self) -> Result<()> {
        self.env.force_sync().map_err(failed)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn describe(&self) -> Description {
        let durability = if self.sync {
            "commits are synced"
        } else {
            "no sync: a crash of the machine may damage the file"
        };
        Description {
            name: "lmdb".to_owned(),
            version: {
                let version = heed::lmdb_version();
                format!("{}.{}.{}", version.major, version.minor, version.patch)
            },
            settings: vec![
                (
                    "isolation".to_owned(),
                    "serializable, one writer at a time".to_owned(),
                ),
                ("durability".to_owned(), durability.to_owned()),
                (
                    "memory".to_owned(),
                    "the kernel's cache, unbounded".to_owned(),
                ),
            ],
        }
    }
}

/// The transaction of a session.
enum Open<'e> {
    Nothing,
    Reader(RoTxn<'e, WithTls>),
    Writer(RwTxn<'e>),
}

/// A client.
pub struct LmdbSession<'e> {
    engine: &'e LmdbEngine,
    open: Open<'e>,
    value: Vec<u8>,
}

impl fmt::Debug for LmdbSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LmdbSession({:?})", self.engine)
    }
}

/// Runs `$body` with the open transaction as `$txn`.
macro_rules! reading {
    ($session:expr, $txn:ident => $body:expr) => {
        match &$session.open {
            Open::Reader($txn) => $body,
            Open::Writer($txn) => $body,
            Open::Nothing => return Err(no_transaction()),
        }
    };
}

impl<'e> LmdbSession<'e> {
    #[inline]
    fn tree(&self, table: Table) -> &'e Tree {
        &self.engine.tables[table.position()]
    }

    #[inline]
    fn writer(&mut self) -> Result<&mut RwTxn<'e>> {
        match &mut self.open {
            Open::Writer(writer) => Ok(writer),
            Open::Reader(_) | Open::Nothing => Err(no_transaction()),
        }
    }
}

impl Session for LmdbSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        self.open = if options.read_only || options.analytical {
            Open::Reader(self.engine.env.read_txn().map_err(failed)?)
        } else {
            Open::Writer(self.engine.env.write_txn().map_err(failed)?)
        };
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Writer(writer) => writer.commit().map_err(failed),
            Open::Reader(_) | Open::Nothing => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        if let Open::Writer(writer) = std::mem::replace(&mut self.open, Open::Nothing) {
            writer.abort();
        }
        Ok(())
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let tree = self.tree(table);
        let found = reading!(self, txn => tree.get(txn, key).map_err(failed)?.map(&mut read));
        Ok(found)
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.tree(table);
        match tree.put_with_flags(self.writer()?, PutFlags::NO_OVERWRITE, key, value) {
            Err(heed::Error::Mdb(heed::MdbError::KeyExist)) => Err(EngineError::KeyExists(table)),
            other => other.map_err(failed),
        }
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let tree = self.tree(table);
        tree.put(self.writer()?, key, value).map_err(failed)
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let tree = self.tree(table);
        let mut value = std::mem::take(&mut self.value);
        let writer = self.writer()?;
        let range = (Bound::Included(key), Bound::Included(key));
        let mut cursor = tree.range_mut(writer, &range).map_err(failed)?;
        let Some(found) = cursor.next().transpose().map_err(failed)? else {
            return Ok(false);
        };
        value.clear();
        value.extend_from_slice(found.1);
        change(&mut value);
        // SAFETY: key and value are copies: nothing of the file's is borrowed while it is written.
        unsafe { cursor.put_current(key, &value) }.map_err(failed)?;
        drop(cursor);
        self.value = value;
        Ok(true)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let tree = self.tree(table);
        tree.delete(self.writer()?, key).map_err(failed)
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let tree = self.tree(table);
        match direction {
            Direction::Forward => {
                // LMDB has no empty key, nor takes one as a bound.
                let start = if from.is_empty() {
                    Bound::Unbounded
                } else {
                    Bound::Included(from)
                };
                let range = (start, Bound::Unbounded);
                for row in reading!(self, txn => tree.range(txn, &range).map_err(failed)?) {
                    let (key, value) = row.map_err(failed)?;
                    if !each(key, value) {
                        break;
                    }
                }
            }
            Direction::Backward if from.is_empty() => {}
            Direction::Backward => {
                let range = (Bound::Unbounded, Bound::Included(from));
                for row in reading!(self, txn => tree.rev_range(txn, &range).map_err(failed)?) {
                    let (key, value) = row.map_err(failed)?;
                    if !each(key, value) {
                        break;
                    }
                }
            }
        }
        Ok(())
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
            tree.put_with_flags(writer, PutFlags::APPEND, &key, &value)
                .map_err(failed)?;
            rows += 1;
        }
        Ok(rows)
    }
}
