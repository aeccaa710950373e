//! The wire to a PostgreSQL server: prepared statements go out in batches, answers come back in order.
//!
//! Messages are made and taken apart by `postgres-protocol`. The crate `postgres` above it waits for every statement, through a
//! reactor; here one call of the system sends many and another waits for their answers, as libpq's pipelines do.
//!
//! Invariants:
//! - I1 A batch ends with a Sync, and its answers with the server's ReadyForQuery; `unanswered` of these are still to come.
//! - I2 What is written before anything is read fits the socket's buffers, or the server reads it without answering: nobody
//!   waits for the other for ever.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use vellum_workload::engine::{EngineError, Table};

/// Bytes asked of the socket at a time.
const CHUNK: usize = 64 << 10;

/// Why a statement was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// A row with the key is there. Which statement of the batch met it.
    Unique(usize),
    /// Another transaction was first.
    Conflict,
    /// Anything else.
    Other(EngineError),
}

impl Failure {
    /// For who waits for the statement at `position` of its batch, which writes to `table`. One before it that meets a row
    /// had looked: the row is not in the transaction's snapshot.
    pub(super) fn of(self, position: usize, table: Table) -> EngineError {
        match self {
            Self::Unique(met) if met == position => EngineError::KeyExists(table),
            Self::Unique(_) | Self::Conflict => EngineError::Conflict,
            Self::Other(error) => error,
        }
    }

    /// For who waits for statements that do not insert.
    pub(super) fn of_others(self) -> EngineError {
        self.of(usize::MAX, Table::at(0))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(EngineError::failed(error))
    }
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

/// How a batch ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answer {
    /// Rows that the last statement was about.
    pub rows: u64,
    /// It has more rows to give.
    pub suspended: bool,
    /// It was a COMMIT that committed.
    pub committed: bool,
}

/// A connection.
pub(super) struct Wire {
    stream: UnixStream,
    out: BytesMut,
    input: BytesMut,
    chunk: Box<[u8]>,
    /// Statements since the last Sync.
    statements: usize,
    unanswered: usize,
    version: String,
}

impl Wire {
    /// Connects as the superuser of the cluster.
    pub(super) fn connect(socket: &Path) -> Result<Self> {
        let mut wire = Self {
            stream: UnixStream::connect(socket)?,
            out: BytesMut::new(),
            input: BytesMut::new(),
            chunk: vec![0; CHUNK].into(),
            statements: 0,
            unanswered: 1,
            version: String::new(),
        };
        let user = [("user", "postgres"), ("database", "postgres")];
        frontend::startup_message(user, &mut wire.out)?;
        wire.send()?;
        wire.settle()?;
        Ok(wire)
    }

    /// The server's version.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Adds the preparation of a statement.
    pub(super) fn prepare(&mut self, name: &str, text: &str) -> Result<()> {
        Ok(frontend::parse(name, text, [], &mut self.out)?)
    }

    /// Adds a prepared statement, of whose rows at most `rows` are wanted now (0: all). Returns its position in the batch.
    pub(super) fn execute(&mut self, name: &str, values: &[&[u8]], rows: i32) -> Result<usize> {
        let bound = frontend::bind(
            "",
            name,
            [1],
            values,
            |value, out| {
                out.extend_from_slice(value);
                Ok(postgres_protocol::IsNull::No)
            },
            [1],
            &mut self.out,
        );
        bound.map_err(|error| match error {
            frontend::BindError::Conversion(error) => Failure::Other(EngineError::Failed(error)),
            frontend::BindError::Serialization(error) => error.into(),
        })?;
        self.go_on(rows)
    }

    /// Adds the wish for more rows of the statement that was executed last.
    pub(super) fn go_on(&mut self, rows: i32) -> Result<usize> {
        frontend::execute("", rows, &mut self.out)?;
        self.statements += 1;
        Ok(self.statements - 1)
    }

    /// Sends what was added, so that the server begins. It answers after [`Self::sync`].
    pub(super) fn send(&mut self) -> Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Ends the batch and sends it.
    pub(super) fn sync(&mut self) -> Result<()> {
        frontend::sync(&mut self.out);
        (self.statements, self.unanswered) = (0, self.unanswered + 1);
        self.send()
    }

    /// Ends the batch and waits for it and for those before it.
    pub(super) fn settle(&mut self) -> Result<Answer> {
        if self.statements > 0 {
            self.sync()?;
        }
        self.settle_with(|_, _| ())
    }

    /// As [`Self::settle`], of batches that have ended already. Rows go to `each`, with the position of their statement.
    pub(super) fn settle_with(&mut self, each: impl FnMut(usize, &[u8])) -> Result<Answer> {
        self.answers_until(0, each)
    }

    /// Waits for batches, oldest first, until `left` are unanswered.
    pub(super) fn answers_until(
        &mut self,
        left: usize,
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<Answer> {
        let mut answer = Ok(Answer::default());
        while self.unanswered > left {
            let next = self.answer(&mut each);
            // The first failure is the reason of those behind it.
            answer = answer.and(next);
        }
        answer
    }

    /// Waits for the oldest batch.
    fn answer(&mut self, each: &mut impl FnMut(usize, &[u8])) -> Result<Answer> {
        let (mut answer, mut failure, mut position) = (Answer::default(), None, 0);
        loop {
            match self.message()? {
                Message::DataRow(row) => each(position, row.buffer()),
                Message::CommandComplete(done) => {
                    let tag = done.tag()?;
                    let rows = tag.rsplit(' ').next().and_then(|rows| rows.parse().ok());
                    answer = Answer {
                        rows: rows.unwrap_or(0),
                        suspended: false,
                        committed: tag == "COMMIT",
                    };
                    position += 1;
                }
                Message::PortalSuspended => {
                    answer.suspended = true;
                    position += 1;
                }
                Message::ErrorResponse(error) => {
                    failure.get_or_insert(refused(&error, position)?);
                }
                Message::ReadyForQuery(_) => break,
                Message::ParameterStatus(parameter) if parameter.name()? == "server_version" => {
                    parameter.value()?.clone_into(&mut self.version);
                }
                // Binds and parses that went well, notices, what the server tells of itself at the start.
                _ => {}
            }
        }
        self.unanswered -= 1;
        failure.map_or(Ok(answer), Err)
    }

    /// The next message, waited for.
    fn message(&mut self) -> Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.input)? {
                return Ok(message);
            }
            let read = self.stream.read(&mut self.chunk)?;
            if read == 0 {
                // Nobody answers any more, and nobody may wait for it.
                self.unanswered = 0;
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.input.extend_from_slice(&self.chunk[..read]);
        }
    }

    /// Runs statements as text, outside of batches, and waits for them.
    pub(super) fn run(&mut self, text: &str) -> Result<Answer> {
        self.settle()?;
        frontend::query(text, &mut self.out)?;
        self.unanswered += 1;
        self.send()?;
        self.settle()
    }

    /// Begins a COPY into a table. Its data follow by [`Self::copy_data`], and [`Self::copy_done`] ends it.
    pub(super) fn copy(&mut self, text: &str) -> Result<()> {
        self.settle()?;
        frontend::query(text, &mut self.out)?;
        self.unanswered += 1;
        Ok(())
    }

    pub(super) fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        frontend::CopyData::new(data)?.write(&mut self.out);
        // The server takes data without answering, also where it has refused them: I2.
        self.send()
    }

    pub(super) fn copy_done(&mut self) -> Result<Answer> {
        frontend::copy_done(&mut self.out);
        self.send()?;
        self.settle()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.out.clear();
        frontend::terminate(&mut self.out);
        // A server that is gone needs no goodbye.
        let _ = self.send();
    }
}

/// What the server says of statement `position`.
fn refused(error: &ErrorResponseBody, position: usize) -> io::Result<Failure> {
    let (mut state, mut text, mut fields) = (String::new(), String::new(), error.fields());
    while let Some(field) = fields.next()? {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => state = value,
            b'M' => text = value,
            _ => {}
        }
    }
    Ok(match state.as_str() {
        "23505" => Failure::Unique(position),
        "40001" | "40P01" => Failure::Conflict,
        _ => Failure::Other(EngineError::failed(format!("{text} (SQLSTATE {state})"))),
    })
}

/// The first `N` values of a row.
pub(super) fn columns<const N: usize>(mut row: &[u8]) -> [&[u8]; N] {
    std::array::from_fn(|_| {
        // A null would have a negative length; no column of ours has one.
        let length = row
            .split_off(..4)
            .and_then(|length| length.try_into().ok())
            .map_or(0, u32::from_be_bytes);
        row.split_off(..length as usize).unwrap_or_default()
    })
}
