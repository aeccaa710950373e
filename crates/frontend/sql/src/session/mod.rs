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
//! - S3 Rows of a statement that writes are told when it is done: it may have been run again because of a conflict.
//!
//! Concurrency: `Send`, not `Sync`: one thread at a time. Only [`CancelHandle`] is for others. Every method may block for
//! pages, for the log (commit), for other transactions' ends and for the sink.

mod activity;
mod analyze;
mod begun;
mod blocks;
mod cancel;
mod catalog_access;
mod changed;
mod channels;
mod code;
mod command;
mod constraints;
mod copy;
mod copy_binary;
mod copy_ends;
mod copy_filter;
mod copy_load;
mod copy_options;
mod copy_out;
mod copy_place;
mod copy_plain;
mod copy_text;
mod cursor;
mod date_style;
mod direct;
mod encode;
mod encoding;
mod environment;
mod explain;
mod exports;
mod extended;
mod forgotten;
mod identity;
mod kept_settings;
mod known_settings;
mod lock_table;
mod maintenance;
mod named;
mod notices;
mod options;
mod parameters;
mod passive_settings;
mod pieces;
mod plans;
mod portal_rows;
mod portals;
mod randomness;
mod rights;
mod row_store;
mod run;
mod setting_value;
mod setting_zone;
mod settings;
mod simple;
mod table_as;
mod temporary;
mod transaction;
mod waiting;

pub(crate) use activity::Activities;
pub use cancel::CancelHandle;
pub(crate) use changed::Config;
pub use channels::Notification;
pub(crate) use channels::{Channels, Saying};
pub(crate) use environment::{Asked, Env};
pub(crate) use exports::Exports;
pub use options::SessionOptions;
pub(crate) use temporary::{AtCommit, Temporary, drop_left_behind};
use transaction::Beside;
pub(crate) use transaction::{Open, clock_time};
pub(crate) use waiting::{Waiting, begin_hearing};

use crate::catalog::{Catalog, Oid};
use crate::database::{Shared, database_called};
use crate::error::{Result, SqlError};
use crate::roles::Rights;
use crate::sqlstate;
use crate::wire::Field;
pub(crate) use named::NamedStatement;
use randomness::Randomness;
use run::Prepared;
pub(crate) use settings::SessionSettings;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use vellum::PendingCommit;
use vellum_base::maps::HashMap;

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
    pub formats: &'p [crate::wire::Format],
    /// `None` is NULL.
    pub values: &'p [Option<&'p [u8]>],
}

/// A client's session; see [`crate::SqlDatabase::session`].
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    options: SessionOptions,
    cancel: CancelHandle,
    /// Whether it was a superuser who logged in.
    superuser: bool,
    /// When the statement that is under way has to end, by the monotonic clock; `None`: never, or there is none.
    deadline: Option<u64>,
    settings: SessionSettings,
    /// The published image that was seen last.
    known: (u64, Arc<Catalog>),
    open: Option<Box<Open>>,
    /// BEGIN was given (or an error happened behind it).
    status: TransactionStatus,
    /// How the block was begun that has failed and is rolled back already.
    failed_as: Option<transaction::Characteristics>,
    statements: HashMap<String, NamedStatement>,
    portals: portals::Portals,
    cursors: cursor::Cursors,
    plans: plans::Plans,
    /// Where literals are taken out of texts.
    normalized: crate::parse::Normalized,
    /// Statements of a simple query that come after a COPY.
    rest: VecDeque<Arc<Prepared>>,
    /// The simple query that runs has several statements: they are one transaction.
    several: bool,
    /// How many DOs are run inside each other, each by the EXECUTE of another.
    code_depth: usize,
    /// Whether the last statement of the code that runs has met a row.
    code_found: bool,
    /// How many rows it had.
    code_rows: u64,
    /// What the statement of code that runs may name.
    code_variables: Vec<crate::bind::Variable>,
    /// The variables of the blocks that it stands in, the outermost first.
    code_scope: Vec<code::CodeVariable>,
    /// What programs of code have to tell.
    code_notices: Vec<crate::error::Fields>,
    /// The transaction, which is no block, has run a portal: what ends its own transaction may not follow in the same pipeline.
    pipelined: bool,
    /// The statement that runs has a transaction of its own.
    alone: bool,
    copy: Option<copy::CopyIn>,
    /// Where the steps of the queries of an EXPLAIN are told.
    explaining: Option<(RefCell<Vec<String>>, crate::expr::Explain)>,
    sequences: RefCell<environment::Drawn>,
    random: RefCell<Randomness>,
    /// Settings that the transaction has changed.
    changed: Vec<changed::Changed>,
    /// How many queries in pieces it has begun.
    pieces_begun: u64,
    /// What the client was told of settings, if some may have changed since.
    told: Option<Vec<(&'static str, String)>>,
    /// The row that is being told.
    body: Vec<u8>,
    /// The value that is being told.
    text: String,
    temporary: Temporary,
    identity: identity::Identity,
    /// As others see it.
    activity: Arc<activity::Activity>,
    /// What others told it.
    mailbox: Arc<channels::Mailbox>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, options: SessionOptions) -> Result<Self> {
        let database = if options.database.is_empty() {
            &options.user
        } else {
            &options.database
        };
        if database_called(database).is_none() {
            let message = format!("database \"{database}\" does not exist");
            return Err(SqlError::new(sqlstate::INVALID_CATALOG_NAME, message).fatal());
        }
        let mut settings = SessionSettings::new(&options.user, options.sessions_max);
        let image = shared.catalog.now();
        let identity = identity::Identity::of(&image, &options.user);
        let login = identity.login();
        let is_there = image.role_by_oid(login).is_some();
        if is_there && !image.allows_in_database(login, Rights::CONNECT) {
            let message = format!(
                "permission denied for database \"{}\"",
                crate::database::DATABASE
            );
            let error = SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message);
            let detail = "User does not have CONNECT privilege.";
            return Err(error.with_detail(detail).fatal());
        }
        let mut options = options;
        // What cannot be any more is passed over, as in PostgreSQL, where it is warned of.
        let mut begun = kept_settings::begun_with(&image, login);
        let superuser = image.is_superuser(login);
        settings.is_superuser(superuser);
        // Who had them kept had the right to.
        begun.retain(|(name, value)| settings.set(name, Some(value)).is_ok());
        let is_role =
            |(name, _): &(String, String)| identity::NAMES.contains(&&*name.to_lowercase());
        let (roles, plain): (Vec<_>, Vec<_>) = options.settings.into_iter().partition(is_role);
        options.settings = plain;
        for (name, value) in &options.settings {
            SessionSettings::check_right(name, || superuser).map_err(SqlError::fatal)?;
            settings.set(name, Some(value)).map_err(SqlError::fatal)?;
            begun.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        }
        options.settings.extend(begun);
        let (pid, client) = (options.process_id, options.client);
        let cancel = CancelHandle::default();
        let activity = shared.activities.enter(login, pid, client, cancel.clone());
        activity.is_called(&settings.get("application_name").unwrap_or_default());
        let mut session = Self {
            settings,
            known: (u64::MAX, image),
            shared,
            options,
            cancel,
            superuser,
            deadline: None,
            open: None,
            status: TransactionStatus::Idle,
            failed_as: None,
            statements: HashMap::default(),
            portals: portals::Portals::default(),
            cursors: cursor::Cursors::default(),
            plans: plans::Plans::default(),
            normalized: crate::parse::Normalized::default(),
            rest: VecDeque::new(),
            several: false,
            code_depth: 0,
            code_found: false,
            code_rows: 0,
            code_variables: Vec::new(),
            code_scope: Vec::new(),
            code_notices: Vec::new(),
            pipelined: false,
            alone: false,
            copy: None,
            explaining: None,
            sequences: RefCell::default(),
            random: RefCell::new(Randomness::new()),
            changed: Vec::new(),
            pieces_begun: 0,
            told: None,
            body: Vec::new(),
            text: String::new(),
            temporary: Temporary::default(),
            identity,
            activity,
            mailbox: Arc::default(),
        };
        for (name, role) in roles {
            session.begins_as(&name, &role).map_err(SqlError::fatal)?;
        }
        // Nobody was told anything yet.
        session.told = None;
        Ok(session)
    }

    /// For another thread, to cancel the statement that runs.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Whether somebody asked it to end (`57P01`).
    pub fn is_shut_down(&self) -> bool {
        self.cancel.is_shut_down()
    }

    /// Whether there is a portal, or a cursor, of this name.
    pub fn has_portal(&self, name: &str) -> bool {
        self.portals.contains(name) || self.cursors.contains(name)
    }

    /// The text of the statement that it ran last; [`crate::without_passwords`] is what may be shown of it.
    pub fn statement_text(&self) -> Arc<str> {
        self.activity.now().query
    }

    /// The text of a statement that Parse or PREPARE has named.
    pub fn prepared_text(&self, statement: &str) -> Option<Arc<str>> {
        let named = self.statements.get(statement)?;
        Some(named.prepared.text.clone())
    }

    /// What ReadyForQuery says.
    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    /// Whether a transaction is open: in a block, or in a pipeline.
    pub fn has_open_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// The settings that a client is told of when it connects: names and values.
    pub fn parameter_statuses(&self) -> Vec<(&'static str, String)> {
        self.settings.reported()
    }

    /// Those of them that have other values than the client was told last: what it is owed before ReadyForQuery, however they have changed.
    pub fn changed_statuses(&mut self) -> Vec<(&'static str, String)> {
        let Some(told) = self.told.take() else {
            return Vec::new();
        };
        let now = self.settings.reported().into_iter();
        now.filter(|status| !told.contains(status)).collect()
    }

    /// Some may change now.
    fn keep_told(&mut self) {
        self.told.get_or_insert_with(|| self.settings.reported());
    }

    /// A setting in milliseconds, such as `idle_session_timeout`; 0 for none.
    pub fn milliseconds(&self, name: &str) -> u64 {
        self.settings.number(name)
    }

    /// A message could not be read, so the session never saw it: a transaction that is open fails, as after a statement's
    /// error.
    pub fn fail_transaction(&mut self) {
        self.failed();
    }

    /// After an error (S2).
    fn failed(&mut self) {
        self.stop_clock();
        self.copy = None;
        self.rest.clear();
        match self.status {
            TransactionStatus::Idle => self.roll_back(),
            TransactionStatus::InBlock => {
                self.status = TransactionStatus::Failed;
                self.give_back();
            }
            TransactionStatus::Failed => {}
        }
    }

    /// A block has failed, and its end may be long in coming: what it holds that it can never use again is given back, all of it, or all behind the last
    /// savepoint.
    fn give_back(&mut self) {
        let Some(open) = &mut self.open else {
            return;
        };
        let Some((beside, defined)) = open.beside_at_last() else {
            // Portals are known until the block ends, and cannot be run.
            self.portals.fail_from(0);
            self.failed_as = Some(open.characteristics);
            let portals = std::mem::take(&mut self.portals);
            self.roll_back();
            self.portals = portals;
            return;
        };
        self.portals.fail_from(beside.portals);
        self.cursors.forget_from(beside.cursors);
        if defined {
            self.portals.fail_pieces(beside.pieces);
        }
        if open.undo_to_last_savepoint(&self.shared).is_err() {
            self.roll_back();
        }
    }

    /// A statement has ended, unless it is a COPY that waits for data: others see what the session waits in.
    fn rests(&self) {
        if self.copy.is_some() {
            self.activity.copies_in();
            return;
        }
        self.activity.rests(match self.status {
            TransactionStatus::Idle => "idle",
            TransactionStatus::InBlock => "idle in transaction",
            TransactionStatus::Failed => "idle in transaction (aborted)",
        });
    }

    /// What it has done so far beside its transaction.
    fn beside(&self) -> Beside {
        Beside {
            cursors: self.cursors.declared(),
            portals: self.portals.bound(),
            settings: self.changed.len(),
            pieces: self.pieces_begun,
        }
    }

    /// Undoes what it has done since.
    fn undo_beside(&mut self, to: Beside) {
        self.cursors.forget_from(to.cursors);
        self.portals.forget_from(to.portals);
        self.undo_settings(to.settings);
    }

    fn roll_back(&mut self) {
        (self.pipelined, self.alone) = (false, false);
        if let Some(open) = self.open.take() {
            open.roll_back(&self.shared);
            self.activity.has_ended_one(false);
        }
        self.undo_settings(0);
        self.portals.clear();
        self.cursors.end_transaction(false);
    }

    fn commit(&mut self) -> Result<()> {
        self.pipelined = false;
        let ready = self.settle_deferred();
        let ready = ready.and_then(|()| self.hold_cursors());
        if let Err(error) = ready.and_then(|()| self.act_at_commit()) {
            self.roll_back();
            return Err(error);
        }
        self.portals.clear();
        let done = match self.open.take() {
            Some(open) => {
                let waits = !open.characteristics.asynchronous;
                let done = self.commit_saying(open);
                let stored = self.sequences.get_mut().take_stored();
                let done = done.and_then(|()| match waits {
                    true => until_durable(&stored),
                    false => Ok(()),
                });
                self.activity.has_ended_one(done.is_ok());
                done
            }
            None => Ok(()),
        };
        self.cursors.end_transaction(done.is_ok());
        if done.is_ok() {
            self.settle_settings();
        } else {
            self.undo_settings(0);
        }
        done
    }

    fn refuse_in_failed_block(&self) -> Result<()> {
        match self.status {
            TransactionStatus::Failed => Err(failed_block()),
            _ => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.roll_back();
        self.leave_temporary();
        self.listens_to_nothing();
        self.shared.advisory.release_all(self.activity.number, true);
        self.shared.activities.leave(self.activity.number);
    }
}

/// Values of sequences that were given out are not given out again, whatever happens.
fn until_durable(stored: &[(Oid, PendingCommit)]) -> Result<()> {
    let mut late = stored.iter().filter(|(_, stored)| !stored.is_durable());
    Ok(late.try_for_each(|(_, stored)| stored.wait())?)
}

#[cold]
fn failed_block() -> SqlError {
    let text = "current transaction is aborted, commands ignored until end of transaction block";
    SqlError::new(sqlstate::IN_FAILED_SQL_TRANSACTION, text)
}

#[cold]
fn no_statement(name: &str) -> SqlError {
    let message = if name.is_empty() {
        "unnamed prepared statement does not exist".to_owned()
    } else {
        format!("prepared statement \"{name}\" does not exist")
    };
    SqlError::new(sqlstate::INVALID_SQL_STATEMENT_NAME, message)
}

#[cold]
fn no_portal(name: &str) -> SqlError {
    let message = format!("portal \"{name}\" does not exist");
    SqlError::new(sqlstate::INVALID_CURSOR_NAME, message)
}

#[cold]
fn gone(_: crate::wire::Gone) -> SqlError {
    let text = "connection to client lost";
    SqlError::new(sqlstate::CONNECTION_FAILURE, text).fatal()
}
