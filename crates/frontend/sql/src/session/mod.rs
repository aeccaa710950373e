//! A session: one client's statements, one after the other, and what lives between them.
//!
//! States: idle → in a transaction (a statement outside a block begins one of its own, which ends with it in a simple
//! query, with Sync in the extended protocol; BEGIN starts a block) → failed (after an error in a block: everything but its end
//! is refused) → idle. [`Session::status`] names the state as ReadyForQuery does.
//!
//! Invariants:
//! - S1 A slot of the engine is leased only while a transaction is open.
//! - S2 After an error the statement has left nothing behind: outside a block its transaction is rolled back, inside the
//!   block can only be rolled back, to a savepoint or as a whole.
//! - S3 No row goes to a client from a transaction that could not commit what the row shows: rows of writing statements
//!   outside a block are told before their commit as in PostgreSQL, their command tag after it.
//!
//! Concurrency: `Send`, not `Sync`: one thread at a time. Only [`CancelHandle`] is for others. Every method may block for
//! pages, for the log (commit) and for the sink.

mod cancel;
mod options;

pub use cancel::CancelHandle;
pub use options::SessionOptions;

use crate::database::Shared;
use crate::error::{Result, SqlError};
use crate::wire::{Field, Format, Sink};
use std::sync::Arc;

/// What ReadyForQuery says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionStatus {
    /// No transaction block: `I`.
    Idle,
    /// In a block: `T`.
    InBlock,
    /// In a block that failed: `E`.
    Failed,
}

impl TransactionStatus {
    /// The byte of the protocol.
    pub fn byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::InBlock => b'T',
            Self::Failed => b'E',
        }
    }
}

/// How far a query or portal has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// To its end.
    Complete,
    /// The row limit was reached: PortalSuspended.
    Suspended,
    /// It waits for data: call `copy_data`, then `copy_done` or `copy_fail`.
    CopyIn,
}

/// What Describe of a statement says.
#[derive(Clone, Debug)]
pub struct StatementDescription {
    /// Types of the parameters.
    pub parameters: Arc<[u32]>,
    /// Columns of its rows; `None` if it returns none.
    pub fields: Option<Arc<[Field]>>,
}

/// The parameters of a Bind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parameters<'p> {
    /// None: all text; one: for all; else one each.
    pub formats: &'p [Format],
    /// `None` is NULL.
    pub values: &'p [Option<&'p [u8]>],
}

/// A client's session; see [`crate::SqlDatabase::session`].
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    cancel: CancelHandle,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, options: SessionOptions) -> Result<Self> {
        let _ = options;
        Ok(Self {
            shared,
            cancel: CancelHandle::default(),
        })
    }

    /// For another thread, to cancel the statement that runs.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// What ReadyForQuery says.
    pub fn status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// The settings that a client is told of when it connects: names and values.
    pub fn parameter_statuses(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Runs the statements of a text, one after the other (the Query message). An error ends them; a transaction that
    /// spans them, not begun by BEGIN, is rolled back then.
    ///
    /// # Errors
    /// The statement's. The session goes on; the client is owed the error and ReadyForQuery.
    pub fn simple_query(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Progress> {
        let _ = (&self.shared, sink);
        self.cancel.start();
        crate::parse::with_stack(|| {
            self.cancel.check()?;
            match crate::parse::statements(text)?.first() {
                None => Ok(Progress::Complete),
                Some(statement) => Err(SqlError::unsupported(statement)),
            }
        })
    }

    /// Parses a statement and names it; the empty name may be used again (the Parse message). `parameter_types` are oids, 0
    /// where the type is to be inferred.
    ///
    /// # Errors
    /// `42P05` for a name in use, syntax and name errors, `25P02` in a failed block.
    pub fn parse(&mut self, name: &str, text: &str, parameter_types: &[u32]) -> Result<()> {
        let _ = (name, parameter_types);
        crate::parse::statements(text).map(drop)
    }

    /// Makes a portal: a statement with parameters (the Bind message). `formats` are of the results: none: all text; one:
    /// for all; else one each.
    ///
    /// # Errors
    /// `26000` for an unknown statement, `08P01` for a wrong number of parameters or formats, `22P02` and `22P03` for bytes that are
    /// no values, `25P02` in a failed block.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: Parameters<'_>,
        formats: &[Format],
    ) -> Result<()> {
        let _ = (portal, parameters, formats);
        Err(no_statement(statement))
    }

    /// Describes a statement.
    ///
    /// # Errors
    /// `26000`.
    pub fn describe_statement(&mut self, name: &str) -> Result<StatementDescription> {
        Err(no_statement(name))
    }

    /// Describes a portal: its columns and their formats; `None` if it returns no rows.
    ///
    /// # Errors
    /// `34000`.
    pub fn describe_portal(&mut self, name: &str) -> Result<Option<(Arc<[Field]>, Arc<[Format]>)>> {
        Err(no_portal(name))
    }

    /// Runs a portal, up to `max_rows` rows (0: all).
    ///
    /// # Errors
    /// `34000`, and the statement's.
    pub fn execute(&mut self, name: &str, max_rows: u32, sink: &mut dyn Sink) -> Result<Progress> {
        let _ = (max_rows, sink);
        Err(no_portal(name))
    }

    /// Forgets a statement; no error if there is none.
    pub fn close_statement(&mut self, name: &str) {
        let _ = name;
    }

    /// Forgets a portal; no error if there is none.
    pub fn close_portal(&mut self, name: &str) {
        let _ = name;
    }

    /// The Sync message: ends a transaction that is no block. To be called after errors, too.
    ///
    /// # Errors
    /// What the commit reports: the client is owed it before ReadyForQuery.
    pub fn sync(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let _ = sink;
        Ok(())
    }

    /// A message could not be read, so the session never saw it: a transaction that is open fails, as after a statement's
    /// error.
    pub fn fail_transaction(&mut self) {}

    /// More data of a COPY from the client, cut anywhere.
    ///
    /// # Errors
    /// The statement's: it is over, and data that still come are to be thrown away.
    pub fn copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        let _ = bytes;
        Err(no_copy())
    }

    /// The end of a COPY's data. A simple query goes on with its next statement.
    ///
    /// # Errors
    /// The statement's.
    pub fn copy_done(&mut self, sink: &mut dyn Sink) -> Result<Progress> {
        let _ = sink;
        Err(no_copy())
    }

    /// The client gives a COPY up. Returns the error that it is owed.
    pub fn copy_fail(&mut self, message: &str) -> SqlError {
        let _ = message;
        no_copy()
    }
}

#[cold]
fn no_statement(name: &str) -> SqlError {
    let message = if name.is_empty() {
        "unnamed prepared statement does not exist".to_owned()
    } else {
        format!("prepared statement \"{name}\" does not exist")
    };
    SqlError::new(crate::sqlstate::INVALID_SQL_STATEMENT_NAME, message)
}

#[cold]
fn no_portal(name: &str) -> SqlError {
    let message = format!("portal \"{name}\" does not exist");
    SqlError::new(crate::sqlstate::INVALID_CURSOR_NAME, message)
}

#[cold]
fn no_copy() -> SqlError {
    SqlError::new(
        crate::sqlstate::PROTOCOL_VIOLATION,
        "no COPY is in progress",
    )
}
