//! The extended query protocol: statements, portals, Sync.

use super::named::check_columns;
use super::parameters::of_parameter;
use super::plans::Known;
use super::portal_rows::Found;
use super::run::{Given, Prepared};
use super::simple::is_program;
use super::{
    NamedStatement, Parameters, Progress, Session, StatementDescription, TransactionStatus,
    clock_time, failed_block, gone, no_portal,
};
use crate::error::{Result, SqlError};
use crate::parse::{Command, with_stack};
use crate::plan::Program;
use crate::sqlstate;
use crate::wire::{Field, Format, Sink};
use sqlparser::ast::Statement;
use std::sync::Arc;
use vellum_row::Value;
use vellum_row::datetime::Timestamp;

/// A statement with parameters.
#[derive(Debug)]
pub(crate) struct Portal {
    /// `None`: the empty statement.
    pub prepared: Option<Arc<Prepared>>,
    pub params: Vec<Value>,
    /// The program by whose types these were read (N2); `None` for what can have none.
    pub bound: Option<Arc<Program>>,
    pub formats: Arc<[Format]>,
    /// What it has found, once it has run.
    pub found: Option<Found>,
    /// What returns no rows, and is no program, has been run.
    pub done: bool,
    /// When it was made.
    pub since: Timestamp,
    /// Its number among all of the session.
    pub number: u64,
    /// It has failed, and is not run again.
    pub failed: bool,
    /// The block has failed that it was bound in: it is there until that ends.
    pub aborted: bool,
}

impl Portal {
    /// Is not run again, and keeps nothing, if it has failed.
    pub(super) fn fail_if(&mut self, failed: bool) {
        if failed {
            (self.failed, self.found) = (true, None);
        }
    }

    /// Its parameters.
    pub(super) fn given(&self) -> Given<'_> {
        Given {
            values: &self.params,
            bound: self.bound.as_ref(),
        }
    }
}

impl Session {
    /// Parses a statement and names it; the empty name may be used again (the Parse message). `parameter_types` are oids, 0
    /// where the type is to be inferred.
    ///
    /// # Errors
    /// `42P05` for a name in use, syntax and name errors, `25P02` in a failed block.
    pub fn parse(&mut self, name: &str, text: &str, parameter_types: &[u32]) -> Result<()> {
        let begun = self.begin_message();
        let done =
            begun.and_then(|()| with_stack(|| self.parse_inner(name, text, parameter_types)));
        self.note(done)
    }

    fn parse_inner(&mut self, name: &str, text: &str, parameter_types: &[u32]) -> Result<()> {
        if name.is_empty() {
            self.statements.remove(name);
        }
        let untyped = parameter_types.iter().all(|oid| *oid == 0);
        let known = if untyped {
            self.plans.get(text).cloned()
        } else {
            match self.plans.typed(text, parameter_types) {
                Some(Known::Ready(prepared)) => Some(prepared.clone()),
                _ => None,
            }
        };
        let prepared = if let Some(known) = known {
            known
        } else {
            crate::bind::refuse_kept(text)?;
            let mut statements = crate::parse::statements(text)?;
            if statements.len() > 1 {
                let text = "cannot insert multiple commands into a prepared statement";
                return Err(SqlError::syntax(text));
            }
            let Some(statement) = statements.pop() else {
                // The empty statement has no tree.
                let empty = Session::prepare_one("", Statement::UnlockTables, &[]);
                self.check_new_name(name)?;
                self.name_statement(name, empty, None, false);
                return Ok(());
            };
            let prepared = Session::prepare_one(text, statement, parameter_types);
            if untyped {
                self.plans.keep(&prepared);
            } else {
                let ready = Known::Ready(prepared.clone());
                self.plans.note(text, parameter_types, ready);
            }
            prepared
        };
        if !ends_transaction(&prepared.statement) {
            self.refuse_in_failed_block()?;
        }
        let mut first = None;
        if let Some(with_parameters) = prepared.takes_parameters() {
            self.start_statement()?;
            first = Some(self.program(with_parameters)?);
        }
        // Behind all else that may be wrong with it, as in PostgreSQL.
        self.check_new_name(name)?;
        self.name_statement(name, prepared, first, false);
        Ok(())
    }

    /// # Errors
    /// `42P05` for a name in use.
    fn check_new_name(&self, name: &str) -> Result<()> {
        if name.is_empty() || !self.statements.contains_key(name) {
            return Ok(());
        }
        let message = format!("prepared statement \"{name}\" already exists");
        let state = sqlstate::DUPLICATE_PREPARED_STATEMENT;
        Err(SqlError::new(state, message))
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
        let begun = self.begin_message();
        let done = begun
            .and_then(|()| with_stack(|| self.bind_inner(portal, statement, parameters, formats)));
        self.note(done)
    }

    fn bind_inner(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: Parameters<'_>,
        formats: &[Format],
    ) -> Result<()> {
        let named = self.named(statement)?;
        let prepared = named.prepared.clone();
        if !ends_transaction(&prepared.statement) {
            self.refuse_in_failed_block()?;
        }
        let is_there = self.portals.contains(portal) || self.cursors.contains(portal);
        if !portal.is_empty() && is_there {
            let message = format!("cursor \"{portal}\" already exists");
            return Err(SqlError::new(sqlstate::DUPLICATE_CURSOR, message));
        }
        if is_empty(&prepared) {
            let portal_of = Portal {
                prepared: None,
                params: Vec::new(),
                bound: None,
                formats: Arc::new([]),
                found: None,
                done: false,
                since: clock_time(),
                number: self.portals.number(),
                failed: false,
                aborted: false,
            };
            self.portals.insert(portal, portal_of);
            return Ok(());
        }
        let mut params = Vec::new();
        let program = self.program_with_parameters(&named)?;
        let given = parameters.values.len();
        let required = program.as_ref().map_or(0, |program| program.params.len());
        if given != required {
            let message = format!(
                "bind message supplies {given} parameters, but prepared statement \"{statement}\" requires {required}"
            );
            return Err(SqlError::new(sqlstate::PROTOCOL_VIOLATION, message));
        }
        if let Some(program) = &program {
            if parameters.formats.len() > 1 && parameters.formats.len() != given {
                let message = format!(
                    "bind message has {} parameter formats but {given} parameters",
                    parameters.formats.len()
                );
                return Err(SqlError::new(sqlstate::PROTOCOL_VIOLATION, message));
            }
            let own = is_program(&prepared.statement);
            if own && formats.len() > 1 && formats.len() != program.columns.len() {
                let message = format!(
                    "bind message has {} result formats but query has {} columns",
                    formats.len(),
                    program.columns.len()
                );
                return Err(SqlError::new(sqlstate::PROTOCOL_VIOLATION, message));
            }
            for (number, (ty, bytes)) in program.params.iter().zip(parameters.values).enumerate() {
                let format = super::encode::format_of(parameters.formats, number);
                let read = self.parameter(*ty, *bytes, format);
                params.push(read.map_err(|error| of_parameter(error, number, portal, format))?);
            }
        }
        let portal_of = Portal {
            prepared: Some(prepared),
            params,
            bound: program,
            formats: formats.into(),
            found: None,
            done: false,
            since: self.open.as_ref().map_or_else(clock_time, |open| open.now),
            number: self.portals.number(),
            failed: false,
            aborted: false,
        };
        self.portals.insert(portal, portal_of);
        Ok(())
    }

    /// Describes a statement.
    ///
    /// # Errors
    /// `26000`.
    pub fn describe_statement(&mut self, name: &str) -> Result<StatementDescription> {
        let begun = self.begin_message();
        let done = begun.and_then(|()| with_stack(|| self.describe_inner(name)));
        self.note(done)
    }

    fn describe_inner(&mut self, name: &str) -> Result<StatementDescription> {
        let named = self.named(name)?;
        let prepared = named.prepared.clone();
        if self.status == TransactionStatus::Failed {
            self.refuse_rows(&prepared.statement, named.own_program())?;
            return Ok(StatementDescription {
                parameters: named.shown().1.into(),
                fields: None,
            });
        }
        let program = self.program_with_parameters(&named)?;
        let fields = match &program {
            Some(program) if is_program(&prepared.statement) => {
                program.returns.then(|| program.fields())
            }
            _ => self.command_fields(&prepared.statement)?,
        };
        let parameters = program.iter().flat_map(|program| &program.params);
        Ok(StatementDescription {
            parameters: parameters.map(|ty| ty.oid()).collect(),
            fields,
        })
    }

    /// In a failed block nothing is described that returns rows.
    ///
    /// # Errors
    /// `25P02`.
    fn refuse_rows(&mut self, statement: &Statement, program: Option<&Arc<Program>>) -> Result<()> {
        let returns = match program {
            Some(program) => program.returns,
            None => self.command_fields(statement)?.is_some(),
        };
        match returns {
            true => self.refuse_in_failed_block(),
            false => Ok(()),
        }
    }

    /// The program that takes a statement's parameters, if it can have some. The transaction and the statement in it are begun then.
    fn program_with_parameters(&mut self, named: &NamedStatement) -> Result<Option<Arc<Program>>> {
        if named.prepared.takes_parameters().is_none() {
            return Ok(None);
        }
        self.start_statement()?;
        self.program_of(named).map(Some)
    }

    /// Describes a portal: its columns and their formats; `None` if it returns no rows.
    ///
    /// # Errors
    /// `34000`.
    pub fn describe_portal(&mut self, name: &str) -> Result<Option<(Arc<[Field]>, Arc<[Format]>)>> {
        let begun = self.begin_message();
        let done = begun.and_then(|()| with_stack(|| self.describe_portal_inner(name)));
        self.note(done)
    }

    fn describe_portal_inner(
        &mut self,
        name: &str,
    ) -> Result<Option<(Arc<[Field]>, Arc<[Format]>)>> {
        let Some(portal) = self.portals.get(name) else {
            // A cursor that DECLARE has made is a portal.
            let told = self.cursors.told(name);
            return told.map(Some).ok_or_else(|| no_portal(name));
        };
        let (formats, bound) = (portal.formats.clone(), portal.bound.clone());
        let Some(prepared) = portal.prepared.clone() else {
            return Ok(None);
        };
        if self.status == TransactionStatus::Failed {
            let program = bound.as_ref().filter(|_| is_program(&prepared.statement));
            self.refuse_rows(&prepared.statement, program)?;
            return Ok(None);
        }
        if !is_program(&prepared.statement) {
            let fields = self.command_fields(&prepared.statement)?;
            return Ok(fields.map(|fields| (fields, formats)));
        }
        self.start_statement()?;
        let program = self.program_for(&prepared, bound.as_ref())?;
        bound.map_or(Ok(()), |bound| check_columns(&bound, &program))?;
        Ok(program.returns.then(|| (program.fields(), formats)))
    }

    /// Runs a portal, up to `max_rows` rows (0: all).
    ///
    /// # Errors
    /// `34000`, and the statement's.
    pub fn execute(&mut self, name: &str, max_rows: u32, sink: &mut dyn Sink) -> Result<Progress> {
        let begun = self.begin_message();
        let done = begun.and_then(|()| with_stack(|| self.execute_inner(name, max_rows, sink)));
        if let Ok(Progress::Complete) = done {
            self.stop_clock();
        }
        self.note(done)
    }

    fn execute_inner(
        &mut self,
        name: &str,
        max_rows: u32,
        sink: &mut dyn Sink,
    ) -> Result<Progress> {
        (self.several, self.alone) = (false, false);
        self.cancel.check()?;
        let Some(mut portal) = self.portals.remove(name) else {
            return self.execute_cursor(name, max_rows, sink);
        };
        let Some(prepared) = portal.prepared.clone() else {
            sink.empty_query().map_err(gone)?;
            self.portals.insert(name, portal);
            return Ok(Progress::Complete);
        };
        let refused = match portal.aborted {
            true => Err(failed_block()),
            false if !ends_transaction(&prepared.statement) => self.refuse_in_failed_block(),
            false => Ok(()),
        };
        if portal.failed || refused.is_err() {
            self.portals.insert(name, portal);
            return Err(refused.err().unwrap_or_else(|| cannot_be_run(name)));
        }
        self.activity.runs(&prepared.text);
        self.portals.run(name, &prepared.text, portal.since);
        let returns = match is_program(&prepared.statement) || portal.found.is_some() {
            true => Ok(true),
            false => self.returns_rows(&prepared.statement, portal.done),
        };
        let returns = match returns {
            Ok(returns) => returns,
            Err(error) => {
                self.portals.insert(name, portal);
                return Err(error);
            }
        };
        if returns {
            let done = self.fetch(name, &mut portal, &prepared, max_rows, sink);
            portal.fail_if(done.is_err());
            self.portals.insert(name, portal);
            self.pipelined = true;
            return done;
        }
        let (params, formats) = (portal.params.clone(), portal.formats.clone());
        let bound = portal.bound.clone();
        let again = std::mem::replace(&mut portal.done, true);
        self.portals.insert(name, portal);
        if again {
            return Err(cannot_be_run(name));
        }
        let given = Given {
            values: &params,
            bound: bound.as_ref(),
        };
        let done = self.command(&prepared, given, &formats, false, sink);
        let progress = done.inspect_err(|_| self.portals.fail(name))?;
        // What has a transaction of its own has ended it.
        let alone = std::mem::take(&mut self.alone);
        self.pipelined = !alone && !moves_transaction(&prepared.statement);
        if let (Progress::CopyIn, Some(copy)) = (&progress, &mut self.copy) {
            // Its transaction is the pipeline's, which Sync ends.
            copy.piped = true;
        }
        Ok(progress)
    }

    /// Forgets a statement; no error if there is none.
    pub fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Forgets a portal, or a cursor; no error if there is none.
    pub fn close_portal(&mut self, name: &str) {
        if self.portals.remove(name).is_none() {
            self.cursors.remove(name);
        }
    }

    /// The Sync message: ends a transaction that is no block. To be called after errors, too.
    ///
    /// # Errors
    /// What the commit reports: the client is owed it before ReadyForQuery.
    pub fn sync(&mut self) -> Result<()> {
        let begun = self.begin_message();
        let done = match self.status {
            _ if begun.is_err() => begun,
            TransactionStatus::Idle => self.commit(),
            _ => Ok(()),
        };
        match done {
            Ok(()) => self.stop_clock(),
            Err(_) => self.failed(),
        }
        self.rests();
        done
    }

    /// A message was answered. What the session does is told when Sync ends the group that it belongs to, as in PostgreSQL.
    fn note<R>(&mut self, done: Result<R>) -> Result<R> {
        if done.is_err() {
            self.failed();
        }
        if self.copy.is_some() {
            self.activity.copies_in();
        }
        done
    }
}

/// What begins or ends a transaction, or a part of it: nothing of a pipeline stands behind it.
fn moves_transaction(statement: &Statement) -> bool {
    ends_transaction(statement)
        || matches!(
            statement,
            Statement::StartTransaction { .. }
                | Statement::Savepoint { .. }
                | Statement::ReleaseSavepoint { .. }
        )
}

/// What a failed block still takes.
pub(super) fn ends_transaction(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Commit { .. } | Statement::Rollback { .. }
    ) || Command::of(statement) == Some(Command::Prepare)
}

fn is_empty(prepared: &Prepared) -> bool {
    matches!(prepared.statement, Statement::UnlockTables)
}

#[cold]
pub(super) fn cannot_be_run(name: &str) -> SqlError {
    let message = format!("portal \"{name}\" cannot be run");
    SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}
