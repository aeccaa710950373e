//! The simple query protocol.

use super::maintenance::{marked_constraints, rows_marked};
use super::plans::Known;
use super::run::{Given, Output, Prepared, Sets};
use super::{Progress, Session, TransactionStatus, gone};
use crate::error::{Fields, Result, SqlError};
use crate::parse::{self, Normalized, with_stack};
use crate::sqlstate;
use crate::wire::Sink;
use sqlparser::ast::Statement;
use std::sync::Arc;
use vellum_row::{Typmod, cast, is_ready};

impl Session {
    /// Runs the statements of a text, one after the other (the Query message). An error ends them; a transaction that
    /// spans them, not begun by BEGIN, is rolled back then.
    ///
    /// # Errors
    /// The statement's. The session goes on; the client is owed the error and ReadyForQuery.
    pub fn simple_query(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Progress> {
        self.cancel.start();
        self.start_clock();
        self.statements.remove("");
        self.portals.remove("");
        let done = with_stack(|| self.simple(text, sink));
        match done {
            Ok(Progress::CopyIn) => {}
            Ok(_) => self.stop_clock(),
            Err(_) => self.failed(),
        }
        self.rests();
        done
    }

    fn simple(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Progress> {
        self.cancel.check()?;
        if let Some(progress) = self.without_literals(text, sink)? {
            return Ok(progress);
        }
        let statements = self.prepare_text(text)?;
        for (name, kept) in parse::long_names(text) {
            let message = format!("identifier \"{name}\" will be truncated to \"{kept}\"");
            let mut notice = Fields::notice(message);
            notice.sqlstate = sqlstate::NAME_TOO_LONG;
            self.tell_notice(&notice, sink)?;
        }
        if statements.is_empty() {
            // It ends a pipeline that has not come to its Sync, as any text does.
            self.end_implicit()?;
            sink.empty_query().map_err(gone)?;
            return Ok(Progress::Complete);
        }
        (self.several, self.alone) = (statements.len() > 1, false);
        self.rest = statements.into();
        self.run_rest(sink)
    }

    /// Runs a text by the statement that it shares with others which differ in literals; `None` if it is to be read as it is.
    fn without_literals(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Option<Progress>> {
        if self.status == TransactionStatus::Failed || !self.rest.is_empty() {
            return Ok(None);
        }
        let mut normalized = std::mem::take(&mut self.normalized);
        let done = match normalized.read(text) {
            true => self.by_parameters(text, &mut normalized, sink),
            false => Ok(None),
        };
        self.normalized = normalized;
        done
    }

    fn by_parameters(
        &mut self,
        text: &str,
        normalized: &mut Normalized,
        sink: &mut dyn Sink,
    ) -> Result<Option<Progress>> {
        let Normalized {
            text: form,
            types,
            values,
        } = normalized;
        let prepared = match self.plans.typed(form, types) {
            Some(Known::Ready(prepared)) => prepared.clone(),
            Some(Known::Literal) => return Ok(None),
            Some(Known::Once) => {
                self.activity.runs(&text.into());
                let found = self.of_form(form, types)?;
                let known = found.clone().map_or(Known::Literal, Known::Ready);
                self.plans.note(form, types, known);
                match found {
                    Some(prepared) => prepared,
                    None => return Ok(None),
                }
            }
            None => {
                self.plans.note(form, types, Known::Once);
                return Ok(None);
            }
        };
        self.activity.runs(&text.into());
        self.start_statement()?;
        // N3: errors are those of the text as it is.
        let program = match self.program(&prepared) {
            Ok(program) => program,
            Err(error) if is_end(&error) => return Err(error),
            Err(_) => return Ok(None),
        };
        if program.params.len() != values.len() {
            return Ok(None);
        }
        for (value, ty) in values.iter_mut().zip(&program.params) {
            let lent = value.as_ref();
            if !is_ready(lent, *ty, Typmod::NONE) {
                let read = lent
                    .as_str()
                    .map(|text| self.of_text(*ty, Typmod::NONE, text));
                let Some(Ok(read)) = read else {
                    return Ok(None);
                };
                *value = read;
            }
        }
        let forms = &self.settings.forms;
        let fits = program.param_casts.iter().all(|to| {
            let value = values[usize::from(to.number)].as_ref();
            cast(value, to.ty, to.typmod, to.explicit, forms).is_ok()
        });
        if !fits {
            return Ok(None);
        }
        let lists = [values.as_slice()];
        let mut sets = Sets {
            again: Some(false),
            ..Sets::of(&lists, Some(&program))
        };
        let done = self.run_each(&prepared, &mut sets, &[], Output::Tell(sink, true));
        if sets.again == Some(true) {
            // Others have changed the table since; while this session waited for that, mostly.
            return Ok(None);
        }
        let tag = done?;
        self.end_implicit()?;
        sink.command_complete(&tag).map_err(gone)?;
        Ok(Some(Progress::Complete))
    }

    /// The statement of a text with parameters in place of literals, if it does as well with them.
    fn of_form(&mut self, form: &str, types: &[u32]) -> Result<Option<Arc<Prepared>>> {
        if crate::bind::refuse_kept(form).is_err() {
            return Ok(None);
        }
        let Ok(mut statements) = parse::statements(form) else {
            return Ok(None);
        };
        let (Some(statement), None) = (statements.pop(), statements.pop()) else {
            return Ok(None);
        };
        if !is_program(&statement) {
            return Ok(None);
        }
        let prepared = Session::prepare_one(form, statement, types);
        self.start_statement()?;
        let brief = match self.program(&prepared) {
            Ok(program) => program.is_brief(),
            // That says nothing of the form.
            Err(error) if is_end(&error) => return Err(error),
            Err(_) => false,
        };
        Ok(brief.then_some(prepared))
    }

    /// Runs what is left of a text.
    pub(super) fn run_rest(&mut self, sink: &mut dyn Sink) -> Result<Progress> {
        while let Some(prepared) = self.rest.pop_front() {
            self.start_clock();
            let progress = self.statement(&prepared, sink)?;
            if progress != Progress::Complete {
                return Ok(progress);
            }
            self.stop_clock();
        }
        Ok(Progress::Complete)
    }

    fn statement(&mut self, prepared: &Arc<Prepared>, sink: &mut dyn Sink) -> Result<Progress> {
        self.activity.runs(&prepared.text);
        if is_program(&prepared.statement) {
            self.refuse_in_failed_block()?;
            self.start_statement()?;
            let output = Output::Tell(sink, true);
            let tag = self.run_program(prepared, Given::NONE, &[], output)?;
            // Statements of one text outside a block are one transaction.
            if self.rest.is_empty() {
                self.end_implicit()?;
            }
            sink.command_complete(&tag).map_err(gone)?;
            return Ok(Progress::Complete);
        }
        let progress = self.command(prepared, Given::NONE, &[], true, sink)?;
        if progress == Progress::Complete
            && self.rest.is_empty()
            && self.status == TransactionStatus::Idle
        {
            self.end_implicit()?;
        }
        Ok(progress)
    }
}

/// Whether it reads or changes rows, by a program.
pub(super) fn is_program(statement: &Statement) -> bool {
    match statement {
        Statement::Update(update) => marked_constraints(update).is_none(),
        Statement::Query(_) | Statement::Insert(_) | Statement::Delete(_) | Statement::Merge(_) => {
            true
        }
        _ => false,
    }
}

/// The statement that another is about, if it reads or changes rows.
pub(super) fn statement_in(statement: &Statement) -> Option<Statement> {
    let inner = match statement {
        Statement::Declare { stmts } => match stmts.as_slice() {
            [declare] => Statement::Query(declare.for_query.clone()?),
            _ => return None,
        },
        Statement::Explain { statement, .. } => Statement::clone(statement),
        Statement::CreateTable(create) => {
            let query = create.query.as_ref()?;
            // The statement that EXECUTE names is known when it runs.
            let is_query = matches!(crate::parse::executed(query), Ok(None));
            Statement::Query(is_query.then(|| query.clone())?)
        }
        Statement::Update(update) => rows_marked(update)?,
        _ => return None,
    };
    is_program(&inner).then_some(inner)
}

/// Whether a statement was ended from outside, whatever it is.
pub(super) fn is_end(error: &SqlError) -> bool {
    [sqlstate::QUERY_CANCELED, sqlstate::ADMIN_SHUTDOWN].contains(&error.sqlstate())
}
