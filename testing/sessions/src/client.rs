//! A session: one transaction after another by SQL, each recorded.
//!
//! What is recorded of a transaction:
//! - `ok`: the server acknowledged its commit;
//! - `fail`: it was rolled back, by its own will, for a conflict, or because the connection broke before its commit was sent;
//! - `info`: its commit was sent and not answered, or the session was killed inside it.

use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client as Connection, Error, Row};
use vellum_base::random::Random;
use vellum_clients::client::Decision;
use vellum_history::recorder::Session;
use vellum_history::{Level, Op};

/// What ends a session.
#[derive(Debug)]
pub enum Gone {
    /// The server does not answer any more.
    Closed,
    /// It answered what it must not.
    Wrong(String),
}

impl From<Error> for Gone {
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            // The server says good-bye.
            Some(told) if told.code().code().starts_with("57P") => Self::Closed,
            Some(told) => Self::Wrong(format!("{}: {}", told.code().code(), told.message())),
            None => Self::Closed,
        }
    }
}

/// One session.
pub struct Client<'r> {
    /// What it talks through.
    pub connection: Connection,
    /// Where what it does is written down.
    pub session: Session<'r>,
    /// What it does follows from this, and from what it sees.
    pub random: Random,
    /// Its place among the sessions of its life.
    pub number: u64,
    /// Values that nobody else appends begin here.
    first: u64,
    values: u64,
}

/// Values of a session do not come again in another, nor in another life.
const VALUES: u64 = 1 << 20;
const SESSIONS_MAX: u64 = 1 << 8;

/// What an operation of a transaction came to.
pub type Result<T> = std::result::Result<T, Gone>;

/// A transaction that is open.
pub struct Statements<'c> {
    connection: &'c mut Connection,
    /// Whether all of it sees one snapshot.
    pub snapshot: bool,
}

impl Statements<'_> {
    /// Runs a query.
    ///
    /// # Errors
    /// What the server says.
    pub fn query(
        &mut self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, Error> {
        self.connection.query(sql, parameters)
    }

    /// Runs a statement; how many rows it was about.
    ///
    /// # Errors
    /// What the server says.
    pub fn execute(
        &mut self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<u64, Error> {
        self.connection.execute(sql, parameters)
    }
}

impl<'r> Client<'r> {
    /// Session `number` of a life.
    pub fn new(
        connection: Connection,
        session: Session<'r>,
        life: u64,
        number: u64,
        seed: u64,
    ) -> Self {
        debug_assert!(number < SESSIONS_MAX);
        Self {
            connection,
            session,
            random: Random::new(seed),
            number,
            first: (life * SESSIONS_MAX + number) * VALUES,
            values: 0,
        }
    }

    /// A value that nobody else gets.
    pub fn value(&mut self) -> u64 {
        self.values += 1;
        self.first + self.values
    }

    /// Draws what follows from randomness, the session's number, and values that nobody else gets.
    pub fn draw<R>(
        &mut self,
        draw: impl FnOnce(&mut Random, u64, &mut dyn FnMut() -> u64) -> R,
    ) -> R {
        let (first, values) = (self.first, &mut self.values);
        let mut value = || {
            *values += 1;
            first + *values
        };
        draw(&mut self.random, self.number, &mut value)
    }

    /// How many values it has drawn.
    pub fn values_drawn(&self) -> u64 {
        self.values
    }

    /// Its life.
    pub fn life(&self) -> u64 {
        self.first / VALUES / SESSIONS_MAX
    }

    /// Runs one transaction and records it. `announced` is every append that it may do; `work` notes what it did. True if it
    /// committed.
    ///
    /// # Errors
    /// What ends the session: everything but conflicts.
    pub fn transact(
        &mut self,
        level: Level,
        reads: bool,
        announced: Vec<Op>,
        work: impl FnOnce(&mut Statements<'_>, &mut Random, &mut Vec<Op>) -> Result<Decision>,
    ) -> Result<bool> {
        let running = self.session.invoke(level, announced);
        let snapshot = level != Level::ReadCommitted;
        let begin = match (snapshot, reads) {
            (true, true) => "begin isolation level repeatable read read only",
            (true, false) => "begin isolation level repeatable read",
            (false, _) => "begin isolation level read committed",
        };
        if let Err(error) = self.connection.batch_execute(begin) {
            running.rolled_back();
            return Err(error.into());
        }
        let mut done = Vec::new();
        let mut open = Statements {
            connection: &mut self.connection,
            snapshot,
        };
        let decision = work(&mut open, &mut self.random, &mut done);
        if !matches!(decision, Ok(Decision::Commit)) {
            running.rolled_back();
            let rolled_back = self.connection.batch_execute("rollback");
            return match decision {
                Err(Gone::Wrong(what)) if !is_conflict(&what) => Err(Gone::Wrong(what)),
                Err(Gone::Closed) => Err(Gone::Closed),
                _ => Ok(rolled_back.map(|()| false)?),
            };
        }
        match self.connection.batch_execute("commit") {
            Ok(()) => {
                running.committed(done);
                Ok(true)
            }
            Err(error) => {
                let conflict = error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE);
                if conflict {
                    running.rolled_back();
                    return Ok(false);
                }
                // Without an end: nobody knows.
                drop(running);
                Err(error.into())
            }
        }
    }
}

/// Whether an error is one that a client tries again after; two that add the same row: the second may hear of the row.
fn is_conflict(what: &str) -> bool {
    ["40001", "40P01", "23505"]
        .iter()
        .any(|state| what.starts_with(state))
}
