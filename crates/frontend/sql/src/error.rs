//! Errors and notices of SQL, with the fields that PostgreSQL's protocol carries.
//!
//! Every error has a SQLSTATE. Texts are PostgreSQL's where it has the same error: people search for them.

use crate::catalog::{Catalog, Relation};
use crate::sqlstate::{self, SqlState};

/// Result of anything that a statement can make fail.
pub type Result<T> = std::result::Result<T, SqlError>;

/// An error of a statement.
#[derive(Clone, Debug)]
pub struct SqlError {
    inner: Box<Fields>,
}

/// What an error or a notice says.
#[derive(Clone, Debug)]
pub struct Fields {
    /// How bad it is.
    pub severity: Severity,
    /// What a program goes by.
    pub sqlstate: SqlState,
    /// What a person reads: one line.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// What could be done.
    pub hint: Option<String>,
    /// Place in the statement's text, in characters, from 1.
    pub position: Option<u32>,
    /// It is none of those that have a place.
    without_place: bool,
    /// Where it happened, e.g. the line of a COPY.
    pub context: Option<String>,
    /// Schema of the object that it is about.
    pub schema: Option<String>,
    /// Table that it is about.
    pub table: Option<String>,
    /// Column that it is about.
    pub column: Option<String>,
    /// Type that it is about.
    pub data_type: Option<String>,
    /// Constraint that it is about.
    pub constraint: Option<String>,
    /// PostgreSQL's routine that reports it, where programs go by it.
    pub routine: Option<&'static str>,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The statement failed.
    Error,
    /// The session is over.
    Fatal,
    /// Something that the user should look at.
    Warning,
    /// Something that the user may want to know.
    Notice,
    /// What was asked for.
    Info,
}

impl Severity {
    /// The word of the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
            Self::Info => "INFO",
        }
    }
}

impl Fields {
    fn new(severity: Severity, sqlstate: SqlState, message: String) -> Self {
        Self {
            severity,
            sqlstate,
            message,
            detail: None,
            hint: None,
            position: None,
            without_place: false,
            context: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
            routine: None,
        }
    }

    /// A notice.
    pub fn notice(message: impl Into<String>) -> Self {
        Self::new(
            Severity::Notice,
            sqlstate::SUCCESSFUL_COMPLETION,
            message.into(),
        )
    }

    /// What was asked for: it is told whatever the client wants to hear.
    pub(crate) fn info(message: impl Into<String>) -> Self {
        let state = sqlstate::SUCCESSFUL_COMPLETION;
        Self::new(Severity::Info, state, message.into())
    }

    /// A notice that something is there already, or is not, which would be this error.
    pub(crate) fn skipping(error: &SqlError) -> Self {
        let message = format!("{}, skipping", error.message());
        Self::new(Severity::Notice, error.sqlstate(), message)
    }

    /// A warning.
    pub fn warning(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, sqlstate, message.into())
    }

    /// Adds a second line.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

impl SqlError {
    /// Adds the routine of PostgreSQL's that reports it.
    #[must_use]
    pub(crate) fn with_routine(mut self, routine: &'static str) -> Self {
        self.inner.routine = Some(routine);
        self
    }

    /// An error.
    #[cold]
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Fields::new(Severity::Error, sqlstate, message.into())),
        }
    }

    /// `0A000`: what is not there.
    #[cold]
    pub fn unsupported(what: impl std::fmt::Display) -> Self {
        Self::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("{what} is not supported"),
        )
    }

    /// `40001` of a transaction that goes on with an older catalog than what it wants to use.
    #[cold]
    pub(crate) fn changed_meanwhile() -> Self {
        let text = "could not serialize access due to a concurrent change of the table";
        Self::new(sqlstate::SERIALIZATION_FAILURE, text)
    }

    /// `42601`.
    #[cold]
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new(sqlstate::SYNTAX_ERROR, message)
    }

    /// `54011` if there are more columns than may be; `message` says of what, and how many.
    pub(crate) fn check_columns(count: usize, most: usize, message: &str) -> Result<()> {
        match count <= most {
            true => Ok(()),
            false => Err(Self::new(sqlstate::TOO_MANY_COLUMNS, message)),
        }
    }

    /// `54000` if a query has as many of these as it may.
    pub(crate) fn check_room(count: usize, most: u16, of_what: &str) -> Result<()> {
        match count < usize::from(most) {
            true => Ok(()),
            false => {
                let message = format!("a query has at most {most} {of_what}");
                Err(Self::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message))
            }
        }
    }

    /// `XX000`: a state that should not be; the statement fails instead of the process.
    #[cold]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(sqlstate::INTERNAL_ERROR, message)
    }

    /// What went wrong with a file for what does not fit into memory: `53400` where all of them take what they may, `53100` for a full disk, else `58030`.
    #[cold]
    pub(crate) fn of_temporary_file(error: &std::io::Error) -> Self {
        // The system's quota has a number.
        if error.kind() == std::io::ErrorKind::QuotaExceeded && error.raw_os_error().is_none() {
            let text = "temporary files take as much as they may";
            let hint = "The server's setting spill_mib_max is the limit of all together.";
            return Self::new(sqlstate::CONFIGURATION_LIMIT_EXCEEDED, text).with_hint(hint);
        }
        let state = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                sqlstate::DISK_FULL
            }
            _ => sqlstate::IO_ERROR,
        };
        Self::new(state, format!("could not use a temporary file: {error}"))
    }

    /// Everything it says.
    pub fn fields(&self) -> &Fields {
        &self.inner
    }

    /// The SQLSTATE.
    pub fn sqlstate(&self) -> SqlState {
        self.inner.sqlstate
    }

    /// The first line.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Adds a second line.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.inner.detail = Some(detail.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }

    /// Says where in the text, unless it is known already, or is to stay unknown.
    #[must_use]
    pub fn at(mut self, position: Option<u32>) -> Self {
        if !self.inner.without_place {
            self.inner.position = self.inner.position.or(position);
        }
        self
    }

    /// It has no place, wherever it comes from: what PostgreSQL finds out when it runs the statement.
    #[must_use]
    pub(crate) fn without_place(mut self) -> Self {
        self.inner.without_place = true;
        self.inner.position = None;
        self
    }

    /// Has no place: what it was said of is no part of the statement's text.
    #[must_use]
    pub(crate) fn of_other_text(mut self) -> Self {
        self.inner.position = None;
        self.inner.without_place = true;
        self
    }

    /// Says of what is not allowed somewhere where that is, unless that is known.
    #[must_use]
    pub(crate) fn not_allowed_in(mut self, clause: &str) -> Self {
        if let Some(what) = self.inner.message.strip_suffix("are not allowed here") {
            self.inner.message = format!("{what}are not allowed in {clause}");
        }
        self
    }

    /// Says this text otherwise, if it is its own.
    #[must_use]
    pub(crate) fn worded(mut self, text: &str, other: &str) -> Self {
        if self.inner.message == text {
            other.clone_into(&mut self.inner.message);
        }
        self
    }

    /// Whether it is about the values that a query met: with others it would have gone on.
    pub(crate) fn is_of_data(&self) -> bool {
        let state = self.sqlstate();
        ["21", "22"]
            .iter()
            .any(|class| state.as_str().starts_with(class))
    }

    /// Whether there is nothing to be said about its place any more.
    pub(crate) fn is_placed(&self) -> bool {
        self.inner.without_place || self.inner.position.is_some()
    }

    /// Says where it happened.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<String>) -> Self {
        self.inner.context = Some(context.into());
        self
    }

    /// Says where it happened, unless that is known.
    #[must_use]
    pub(crate) fn or_context(mut self, context: impl FnOnce() -> String) -> Self {
        self.inner.context.get_or_insert_with(context);
        self
    }

    /// Names the table, and its schema as an image of the catalog calls it.
    #[must_use]
    pub(crate) fn on_table(mut self, table: &Relation, catalog: &Catalog) -> Self {
        self.inner.schema = Some(catalog.namespace_name(table.namespace).into());
        self.inner.table = Some(table.name.as_ref().into());
        self
    }

    /// Names the column.
    #[must_use]
    pub fn on_column(mut self, column: &str) -> Self {
        self.inner.column = Some(column.into());
        self
    }

    /// Names the type, by its schema and its name.
    #[must_use]
    pub(crate) fn on_type(mut self, (schema, name): &(Box<str>, Box<str>)) -> Self {
        self.inner.schema = Some(schema.to_string());
        self.inner.data_type = Some(name.to_string());
        self
    }

    /// Names the constraint.
    #[must_use]
    pub fn on_constraint(mut self, constraint: &str) -> Self {
        self.inner.constraint = Some(constraint.into());
        self
    }

    /// Makes it end the session.
    #[must_use]
    pub fn fatal(mut self) -> Self {
        self.inner.severity = Severity::Fatal;
        self
    }
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = &self.inner;
        write!(f, "{} ({})", fields.message, fields.sqlstate)?;
        if let Some(detail) = &fields.detail {
            write!(f, "; {detail}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SqlError {}

impl From<vellum::Error> for SqlError {
    #[cold]
    fn from(error: vellum::Error) -> Self {
        use vellum::Error as E;
        let (state, message) = match &error {
            E::Conflict => (
                sqlstate::SERIALIZATION_FAILURE,
                "could not serialize access due to concurrent update".to_owned(),
            ),
            E::SnapshotTooOld => (sqlstate::SNAPSHOT_TOO_OLD, "snapshot too old".to_owned()),
            E::Timeout { .. } => (sqlstate::TOO_MANY_CONNECTIONS, error.to_string()),
            E::KeyExists { .. } => (sqlstate::UNIQUE_VIOLATION, error.to_string()),
            E::KeyTooLong { length, limit } => (
                sqlstate::PROGRAM_LIMIT_EXCEEDED,
                format!("index row size {length} exceeds maximum {limit}"),
            ),
            E::ValueTooLong { .. } => (sqlstate::PROGRAM_LIMIT_EXCEEDED, error.to_string()),
            E::ReadOnly => (
                sqlstate::READ_ONLY_SQL_TRANSACTION,
                "cannot write in a read-only transaction".to_owned(),
            ),
            E::OutOfSpace { .. } => (sqlstate::DISK_FULL, error.to_string()),
            E::VersionSpace { .. } => (sqlstate::CONFIGURATION_LIMIT_EXCEEDED, error.to_string()),
            E::MemoryLimit { .. } => (sqlstate::OUT_OF_MEMORY, error.to_string()),
            E::Corruption { .. } | E::ForeignFormat { .. } => {
                (sqlstate::DATA_CORRUPTED, error.to_string())
            }
            // Tables of the engine are named by the catalog, which says of them what is not so.
            E::NoSuchTable { .. } | E::TableExists { .. } => {
                (sqlstate::DATA_CORRUPTED, error.to_string())
            }
            E::NotDurable { .. } => (sqlstate::TRANSACTION_RESOLUTION_UNKNOWN, error.to_string()),
            E::Io { .. } | E::Poisoned | E::Locked { .. } => {
                (sqlstate::IO_ERROR, error.to_string())
            }
            _ => (sqlstate::INTERNAL_ERROR, error.to_string()),
        };
        let own = Self::new(state, message);
        match error {
            // The system says of a disk that it is full, and the engine of a file that it may not be longer: the same to whoever needs room.
            E::OutOfSpace { file } if &*file == "data" => own.with_hint(
                "The disk is full, or the data file is as long as it may be (data_gib_max of the server).",
            ),
            // As if the connection had broken during COMMIT: whoever takes an ERROR for "rolled back" and runs it again would have it twice.
            E::NotDurable { .. } => own.fatal().with_hint(
                "Look whether the changes are there before the transaction is run again.",
            ),
            E::VersionSpace { own: true, .. } => {
                own.with_hint("End the transaction; change fewer rows in one.")
            }
            E::VersionSpace { own: false, .. } => {
                own.with_hint("End old transactions: vellum_snapshots tells who they are.")
            }
            _ => own,
        }
    }
}

impl From<vellum_row::SqlError> for SqlError {
    #[cold]
    fn from(error: vellum_row::SqlError) -> Self {
        let mut own = Self::new(error.state(), error.message());
        own.inner.detail = error.detail().map(str::to_owned);
        own.inner.hint = error.hint().map(str::to_owned);
        own
    }
}
