//! PostgreSQL over the wire: a server of our own, a connection a session, a table of two `bytea` for each table of a workload.
//!
//! What costs is the way to the server and back, so a transaction's BEGIN goes with its first statement, a reader's COMMIT is
//! not waited for, and neither is a write whose outcome the transaction's snapshot tells: of a row that was read or asked for
//! before. The server does it at once; it can then fail by a conflict only, which the next answer tells, that of COMMIT at last.

mod server;
mod wire;

use crate::{PeerSettings, no_transaction};
use server::Server;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Result, Session, Statistics, Table, TableSpec,
    Terms, TxOptions,
};
use wire::{Answer, Failure, Wire, columns};

pub(crate) use server::lacking;

/// Rows of a transaction that are remembered, at most.
const KNOWN_MAX: usize = 4096;
/// Writes that are sent before their answers are read, at most: they fit the socket's buffers.
const SENT_MAX: usize = 256;
/// Rows of a scan that are asked for first; four times as many each time, until the most.
const FIRST_ROWS: i32 = 32;
const MOST_ROWS: i32 = 4096;
/// From here on the next rows are asked for before these are handed on.
const AHEAD_ROWS: i32 = 512;
/// Bytes of a load that are sent at a time.
const LOAD_BYTES: usize = 64 << 10;

/// What is asked of a table: what its prepared statement is called beside the table, and its text without the table's name.
const STATEMENTS: [(&str, &str); 7] = [
    ("get", "SELECT v FROM $t WHERE k = $1"),
    ("insert", "INSERT INTO $t VALUES ($1, $2)"),
    (
        "upsert",
        "INSERT INTO $t VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v",
    ),
    ("update", "UPDATE $t SET v = $2 WHERE k = $1"),
    ("delete", "DELETE FROM $t WHERE k = $1"),
    ("forward", "SELECT k, v FROM $t WHERE k >= $1 ORDER BY k"),
    (
        "backward",
        "SELECT k, v FROM $t WHERE k <= $1 ORDER BY k DESC",
    ),
];
// Positions in the list.
const GET: usize = 0;
const INSERT: usize = 1;
const UPSERT: usize = 2;
const UPDATE: usize = 3;
const DELETE: usize = 4;
const FORWARD: usize = 5;
const BACKWARD: usize = 6;

/// Names of the prepared statements of a table, and what loads it.
#[derive(Debug)]
struct Statements {
    quoted: String,
    names: [String; STATEMENTS.len()],
    load: String,
}

impl Statements {
    fn of(name: &str) -> Self {
        let quoted = format!("\"{name}\"");
        Self {
            names: STATEMENTS.map(|(kind, _)| format!("{kind} {name}")),
            load: format!("COPY {quoted} (k, v) FROM STDIN (FORMAT binary)"),
            quoted,
        }
    }
}

/// A server, and its tables.
pub struct PostgresqlEngine {
    server: Server,
    tables: Vec<Statements>,
    version: String,
    settings: PeerSettings,
}

impl fmt::Debug for PostgresqlEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresqlEngine({} tables)", self.tables.len())
    }
}

impl PostgresqlEngine {
    /// Starts a server on the cluster in the directory, which is made where there is none.
    ///
    /// # Errors
    /// What is missing on the machine, and what PostgreSQL reports.
    pub fn open(settings: &PeerSettings) -> Result<Self> {
        let server = Server::start(settings)?;
        let version = server.connect().map_err(Failure::of_others)?;
        Ok(Self {
            version: version.version().to_owned(),
            server,
            tables: Vec::new(),
            settings: settings.clone(),
        })
    }

    fn run(&self, texts: &[String]) -> Result<()> {
        let mut wire = self.server.connect().map_err(Failure::of_others)?;
        for text in texts {
            wire.run(text).map_err(Failure::of_others)?;
        }
        Ok(())
    }
}

impl Engine for PostgresqlEngine {
    type Session<'e> = PostgresqlSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        self.tables = tables
            .iter()
            .map(|spec| Statements::of(spec.name))
            .collect();
        let make = |table: &Statements| {
            format!(
                "CREATE TABLE IF NOT EXISTS {} (k bytea PRIMARY KEY, v bytea NOT NULL)",
                table.quoted
            )
        };
        self.run(&self.tables.iter().map(make).collect::<Vec<_>>())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        let mut wire = self.server.connect().map_err(Failure::of_others)?;
        let mut names = Vec::new();
        let mut list = |wire: &mut Wire| -> wire::Result<()> {
            wire.prepare(
                "tables",
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
            )?;
            wire.execute("tables", &[], 0)?;
            wire.sync()?;
            wire.settle_with(|_, row| {
                let [name] = columns(row);
                names.push(String::from_utf8_lossy(name).into_owned());
            })
            .map(drop)
        };
        list(&mut wire).map_err(Failure::of_others)?;
        Ok(Some(names))
    }

    fn open_session(&self) -> Result<PostgresqlSession<'_>> {
        let mut wire = self.server.connect().map_err(Failure::of_others)?;
        prepare(&mut wire, &self.tables).map_err(Failure::of_others)?;
        Ok(PostgresqlSession {
            engine: self,
            wire,
            state: State::Nothing,
            known: self.tables.iter().map(|_| HashMap::new()).collect(),
            known_rows: 0,
        })
    }

    fn checkpoint(&self) -> Result<()> {
        let mut texts: Vec<String> = self
            .tables
            .iter()
            .map(|table| format!("VACUUM (ANALYZE) {}", table.quoted))
            .collect();
        texts.push("CHECKPOINT".to_owned());
        self.run(&texts)
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn describe(&self) -> Description {
        let commit = if self.settings.sync { "on" } else { "off" };
        let lost = match self.settings.sync {
            true => "nothing",
            false => "commits of up to the last 0.6 seconds (three times wal_writer_delay)",
        };
        Description::new(
            "postgresql",
            self.version.clone(),
            Terms {
                isolation:
                    "REPEATABLE READ: snapshot, first to write wins, others wait for his end"
                        .to_owned(),
                durability: format!("fsync=on, synchronous_commit={commit}"),
                lost_by_kill: lost.to_owned(),
                lost_by_power_loss: lost.to_owned(),
                memory: format!(
                    "shared_buffers of {} bytes, and the kernel's cache",
                    self.settings.memory_bytes
                ),
            },
            vec![
                ("log", "max_wal_size=4GB, wal_level=minimal".to_owned()),
                (
                    "way",
                    "another process, a Unix socket, prepared statements in batches".to_owned(),
                ),
            ],
        )
    }
}

/// Prepares all statements of a session.
fn prepare(wire: &mut Wire, tables: &[Statements]) -> wire::Result<()> {
    wire.prepare("begin", "BEGIN")?;
    wire.prepare("begin read only", "BEGIN READ ONLY")?;
    wire.prepare("commit", "COMMIT")?;
    wire.prepare("rollback", "ROLLBACK")?;
    for table in tables {
        for ((_, text), name) in STATEMENTS.iter().zip(&table.names) {
            wire.prepare(name, &text.replace("$t", &table.quoted))?;
        }
    }
    wire.sync()?;
    wire.settle().map(drop)
}

/// The transaction of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Nothing,
    /// Begun here, not yet at the server: it has no statement.
    Begun {
        read_only: bool,
    },
    /// At the server.
    Open {
        read_only: bool,
        wrote: bool,
    },
}

/// A client.
pub struct PostgresqlSession<'e> {
    engine: &'e PostgresqlEngine,
    wire: Wire,
    state: State,
    /// Rows as the transaction sees them, by table and key; none: there is no such row.
    known: Vec<HashMap<Vec<u8>, Option<Vec<u8>>>>,
    known_rows: usize,
}

impl fmt::Debug for PostgresqlSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresqlSession({:?})", self.engine)
    }
}

impl PostgresqlSession<'_> {
    fn begin_at_server(&mut self) -> Result<()> {
        match self.state {
            State::Nothing => return Err(no_transaction()),
            State::Begun { read_only } => {
                let begin = if read_only {
                    "begin read only"
                } else {
                    "begin"
                };
                self.wire
                    .execute(begin, &[], 0)
                    .map_err(Failure::of_others)?;
                self.state = State::Open {
                    read_only,
                    wrote: false,
                };
            }
            State::Open { .. } => {}
        }
        Ok(())
    }

    /// Adds a statement to the batch. Returns its position.
    fn add(&mut self, table: Table, kind: usize, values: &[&[u8]], rows: i32) -> Result<usize> {
        self.begin_at_server()?;
        let name = &self.engine.tables[table.position()].names[kind];
        self.wire
            .execute(name, values, rows)
            .map_err(Failure::of_others)
    }

    /// Writes, and waits for it only if the outcome is wanted. Returns the number of rows then.
    fn write(&mut self, table: Table, kind: usize, values: &[&[u8]], wait: bool) -> Result<u64> {
        let position = self.add(table, kind, values, 0)?;
        if let State::Open { wrote, .. } = &mut self.state {
            *wrote = true;
        }
        let answer = if wait || position >= SENT_MAX {
            self.wire.settle()
        } else {
            self.wire.send().map(|()| Answer::default())
        };
        let expected = if wait { position } else { usize::MAX };
        Ok(answer.map_err(|failure| failure.of(expected, table))?.rows)
    }

    fn known(&self, table: Table, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.known[table.position()].get(key)
    }

    fn learn(&mut self, table: Table, key: &[u8], value: Option<&[u8]>) {
        if self.known_rows >= KNOWN_MAX {
            self.forget();
        }
        self.known_rows += 1;
        self.known[table.position()].insert(key.to_vec(), value.map(<[u8]>::to_vec));
    }

    fn forget(&mut self) {
        if std::mem::take(&mut self.known_rows) > 0 {
            self.known.iter_mut().for_each(HashMap::clear);
        }
    }

    /// Makes a row known.
    fn look(&mut self, table: Table, key: &[u8]) -> Result<()> {
        if self.known(table, key).is_none() {
            let mut value = None;
            self.add(table, GET, &[key], 0)?;
            self.wire.sync().map_err(Failure::of_others)?;
            let found = self
                .wire
                .settle_with(|_, row| value = Some(columns::<1>(row)[0].to_vec()));
            found.map_err(Failure::of_others)?;
            self.learn(table, key, value.as_deref());
        }
        Ok(())
    }
}

impl Session for PostgresqlSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        self.forget();
        self.state = State::Begun {
            read_only: options.read_only,
        };
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if let State::Open { wrote, .. } = self.state {
            let end = |wire: &mut Wire| {
                wire.execute("commit", &[], 0)?;
                wire.sync()?;
                if wrote {
                    return wire.settle().map(|answer| answer.committed);
                }
                Ok(true)
            };
            if !end(&mut self.wire).map_err(Failure::of_others)? {
                let what = "a transaction that had failed was committed".to_owned();
                return Err(EngineError::Unusable(what));
            }
        }
        self.state = State::Nothing;
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        if let State::Open { .. } = std::mem::replace(&mut self.state, State::Nothing) {
            // What has failed is known, or does not matter any more.
            let _ = self.wire.settle();
            let end = |wire: &mut Wire| {
                wire.execute("rollback", &[], 0)?;
                wire.settle()
            };
            end(&mut self.wire).map_err(Failure::of_others)?;
        }
        Ok(())
    }

    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if self.state == State::Nothing {
            return Err(no_transaction());
        }
        self.look(table, key)?;
        let found = self.known(table, key).and_then(Option::as_ref);
        Ok(found.map(|value| read(value)))
    }

    fn prefetch<'k>(&mut self, rows: impl IntoIterator<Item = (Table, &'k [u8])>) -> Result<()> {
        let mut asked: Vec<(Table, &[u8], Option<Vec<u8>>)> = Vec::new();
        let mut first = None;
        for (table, key) in rows {
            if self.known(table, key).is_none() && asked.len() < SENT_MAX {
                let position = self.add(table, GET, &[key], 0)?;
                first.get_or_insert(position);
                asked.push((table, key, None));
            }
        }
        let Some(first) = first else { return Ok(()) };
        self.wire.sync().map_err(Failure::of_others)?;
        let mut place = |position: usize, row: &[u8]| {
            if let Some(asked) = position.checked_sub(first).and_then(|at| asked.get_mut(at)) {
                asked.2 = Some(columns::<1>(row)[0].to_vec());
            }
        };
        let found = self.wire.settle_with(&mut place);
        found.map_err(Failure::of_others)?;
        for (table, key, value) in asked {
            self.learn(table, key, value.as_deref());
        }
        Ok(())
    }

    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let wait = match self.known(table, key) {
            Some(Some(_)) => return Err(EngineError::KeyExists(table)),
            Some(None) => false,
            None => true,
        };
        self.write(table, INSERT, &[key, value], wait)?;
        self.learn(table, key, Some(value));
        Ok(())
    }

    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(table, UPSERT, &[key, value], false)?;
        self.learn(table, key, Some(value));
        Ok(())
    }

    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        _ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        self.look(table, key)?;
        let known = self.known[table.position()].get_mut(key);
        let Some(mut value) = known.and_then(Option::take) else {
            return Ok(false);
        };
        change(&mut value);
        self.write(table, UPDATE, &[key, &value], false)?;
        // The row was taken out of its place, and may have been forgotten since.
        match self.known[table.position()].get_mut(key) {
            Some(place) => *place = Some(value),
            None => self.learn(table, key, Some(&value)),
        }
        Ok(true)
    }

    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let known = self.known(table, key).map(Option::is_some);
        if known == Some(false) {
            return Ok(false);
        }
        let rows = self.write(table, DELETE, &[key], known.is_none())?;
        self.learn(table, key, None);
        Ok(known.unwrap_or(rows > 0))
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let kind = match direction {
            Direction::Forward => FORWARD,
            Direction::Backward => BACKWARD,
        };
        let mut rows = FIRST_ROWS;
        self.add(table, kind, &[from], rows)?;
        let wire = &mut self.wire;
        let mut going = true;
        let mut hand_on = |_: usize, row: &[u8]| {
            let [key, value] = columns(row);
            going = going && each(key, value);
            going
        };
        let mut scan = || -> wire::Result<()> {
            wire.sync()?;
            loop {
                let more = (rows * 4).min(MOST_ROWS);
                let ahead = rows >= AHEAD_ROWS;
                if ahead {
                    wire.go_on(more)?;
                    wire.sync()?;
                }
                let mut wanted = true;
                let answer = wire.answers_until(usize::from(ahead), |position, row| {
                    wanted = hand_on(position, row);
                })?;
                if !answer.suspended || !wanted {
                    return wire.settle().map(drop);
                }
                if !ahead {
                    wire.go_on(more)?;
                    wire.sync()?;
                }
                rows = more;
            }
        };
        scan().map_err(Failure::of_others)
    }

    fn bulk_load(
        &mut self,
        table: Table,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        self.begin_at_server()?;
        if let State::Open { wrote, .. } = &mut self.state {
            *wrote = true;
        }
        let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0);
        // Signature, flags, no extension.
        let mut data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
        let wire = &mut self.wire;
        let load = &self.engine.tables[table.position()].load;
        let mut copy = || -> wire::Result<u64> {
            wire.copy(load)?;
            while next(&mut key, &mut value) {
                data.extend_from_slice(&2_i16.to_be_bytes());
                for bytes in [&key, &value] {
                    data.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                    data.extend_from_slice(bytes);
                }
                rows += 1;
                if data.len() >= LOAD_BYTES {
                    wire.copy_data(&data)?;
                    data.clear();
                }
            }
            data.extend_from_slice(&(-1_i16).to_be_bytes());
            wire.copy_data(&data)?;
            wire.copy_done()?;
            Ok(rows)
        };
        copy().map_err(|failure| failure.of(0, table))
    }
}
