//! Statements of the program that has the database open: rows as values or as Arrow batches, without a server.
//!
//! ```
//! use vellum_sql::{Sql, Value};
//!
//! # let directory = tempfile::tempdir()?;
//! let database = vellum::Database::open(directory.path(), vellum::Config::default())?;
//! database.sql("create table people (id int primary key, name text)", &[])?;
//! database.sql("insert into people values ($1, $2)", &[Value::Int4(1), Value::text("Ann")])?;
//! let rows = database.sql("select name from people where id = $1", &[Value::Int4(1)])?;
//! assert_eq!(rows.get(0, 0), &Value::text("Ann"));
//!
//! let mut connection = database.connect()?;
//! connection.sql("begin", &[])?;
//! connection.sql("delete from people", &[])?;
//! connection.sql("rollback", &[])?;
//! assert_eq!(connection.sql("select * from people", &[])?.batches(1024)?[0].num_rows(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: rows that are read while they are found: all rows of a statement are kept, within `work_mem`.

mod batches;

use crate::database::{DATABASE, FIRST_ROLE, SqlDatabase};
use crate::error::{Fields, Result, SqlError};
use crate::session::{Progress, Session, SessionOptions};
use crate::wire::{CommandTag, CopyShape, Field, Format, OutputRow, Sink, Told};
use vellum_base::maps::HashMap;
use vellum_row::{Settings, Type, Typmod, Value};

/// What a database can be asked in SQL; for [`vellum::Database`] and [`SqlDatabase`].
pub trait Sql {
    /// A session as the superuser. Takes no slot of the engine before its first statement.
    ///
    /// # Errors
    /// What opening the catalog reports, the first time.
    fn connect(&self) -> Result<Connection>;

    /// Runs one statement in a transaction of its own, with the values of `$1`, `$2` …; durable on return unless `synchronous_commit` is off.
    /// Blocks for pages, the log, and others' locks.
    ///
    /// # Errors
    /// The statement's; it has left nothing behind then.
    fn sql(&self, text: &str, parameters: &[Value]) -> Result<Rows> {
        self.connect()?.sql(text, parameters)
    }
}

impl Sql for vellum::Database {
    fn connect(&self) -> Result<Connection> {
        SqlDatabase::open(self.clone())?.connect()
    }
}

impl Sql for SqlDatabase {
    fn connect(&self) -> Result<Connection> {
        let session = self.session(SessionOptions {
            user: FIRST_ROLE.to_owned(),
            database: DATABASE.to_owned(),
            ..SessionOptions::default()
        })?;
        Ok(Connection { session })
    }
}

/// A session of the program's own. Dropped, it rolls back what it has not committed.
#[derive(Debug)]
pub struct Connection {
    session: Session,
}

impl Connection {
    /// Runs one statement, in the transaction that BEGIN has begun or in one of its own; see [`Sql::sql`].
    ///
    /// # Errors
    /// The statement's: a transaction that BEGIN has begun can only be rolled back then. `0A000` for COPY with the client.
    pub fn sql(&mut self, text: &str, parameters: &[Value]) -> Result<Rows> {
        let mut heard = Heard::default();
        let found = self.session.direct(text, parameters, &mut heard)?;
        Ok(match found {
            Some(rows) => rows,
            None => Rows {
                columns: heard.columns,
                rows: heard.rows,
                affected: heard.affected,
                ..Rows::default()
            },
        })
    }

    /// For another thread, to cancel the statement that runs.
    pub fn cancel_handle(&self) -> crate::CancelHandle {
        self.session.cancel_handle()
    }

    /// Whether a transaction is open, and whether it has failed.
    pub fn status(&self) -> crate::TransactionStatus {
        self.session.status()
    }
}

/// A column of [`Rows`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowsColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The modifier of its type.
    pub typmod: Typmod,
}

/// What a statement has returned.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub(crate) columns: Vec<RowsColumn>,
    pub(crate) rows: Vec<Vec<Value>>,
    pub(crate) affected: u64,
    /// How values were written as text in the session when they were found.
    pub(crate) forms: Settings,
    /// The names of the oids in arrays whose elements are names as text.
    pub(crate) names: HashMap<(Type, u32), String>,
}

// How its values are written is none of them.
impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns && self.rows == other.rows && self.affected == other.affected
    }
}

impl Rows {
    /// Its columns.
    pub fn columns(&self) -> &[RowsColumn] {
        &self.columns
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[Value]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// A value by the numbers of its row and its column, from 0.
    ///
    /// # Panics
    /// If there is no such row or column.
    pub fn get(&self, row: usize, column: usize) -> &Value {
        &self.rows[row][column]
    }

    /// How many rows the statement returned or changed; 0 for a command.
    pub fn affected(&self) -> u64 {
        self.affected
    }
}

/// What a command tells.
#[derive(Default)]
struct Heard {
    columns: Vec<RowsColumn>,
    rows: Vec<Vec<Value>>,
    affected: u64,
}

impl Sink for Heard {
    fn row_description(&mut self, fields: &[Field], _: &[Format]) -> Told {
        // Rows of commands are read as the texts that they are told as.
        let column = |field: &Field| RowsColumn {
            name: field.name.clone(),
            ty: Type::Text,
            typmod: Typmod::NONE,
        };
        self.columns = fields.iter().map(column).collect();
        Ok(())
    }

    fn row(&mut self, row: OutputRow<'_>) -> Told {
        let value = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => Value::text(String::from_utf8_lossy(bytes)),
            None => Value::Null,
        };
        self.rows.push(row.iter().map(value).collect());
        Ok(())
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        self.affected = tag.rows.unwrap_or(0);
        Ok(())
    }

    fn empty_query(&mut self) -> Told {
        Ok(())
    }

    fn notice(&mut self, _: &Fields) -> Told {
        Ok(())
    }

    fn copy_in(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }

    fn copy_out(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }

    fn copy_data(&mut self, _: &[u8]) -> Told {
        Ok(())
    }

    fn copy_done(&mut self) -> Told {
        Ok(())
    }
}

/// # Errors
/// `0A000` for what has to be told to a client in pieces.
pub(crate) fn check_complete(progress: Progress) -> Result<()> {
    match progress {
        Progress::Complete => Ok(()),
        _ => Err(no_copy()),
    }
}

/// `0A000`.
#[cold]
pub(crate) fn no_copy() -> SqlError {
    SqlError::unsupported("COPY with a client that there is not")
}
