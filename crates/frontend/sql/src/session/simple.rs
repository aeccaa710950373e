//! The simple query protocol.

use super::run::{Output, Prepared};
use super::{Progress, Session, TransactionStatus, gone};
use crate::error::Result;
use crate::parse::with_stack;
use crate::wire::Sink;
use sqlparser::ast::Statement;
use std::sync::Arc;

impl Session {
    /// Runs the statements of a text, one after the other (the Query message). An error ends them; a transaction that
    /// spans them, not begun by BEGIN, is rolled back then.
    ///
    /// # Errors
    /// The statement's. The session goes on; the client is owed the error and ReadyForQuery.
    pub fn simple_query(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Progress> {
        self.cancel.start();
        self.statements.remove("");
        self.portals.remove("");
        let done = with_stack(|| self.simple(text, sink));
        if done.is_err() {
            self.failed();
        }
        self.tell_changed(sink);
        self.rests();
        done
    }

    fn simple(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Progress> {
        self.cancel.check()?;
        let statements = self.prepare_text(text)?;
        if statements.is_empty() {
            sink.empty_query().map_err(gone)?;
            return Ok(Progress::Complete);
        }
        self.rest = statements.into();
        self.run_rest(sink)
    }

    /// Runs what is left of a text.
    pub(super) fn run_rest(&mut self, sink: &mut dyn Sink) -> Result<Progress> {
        while let Some(prepared) = self.rest.pop_front() {
            let progress = self.statement(&prepared, sink)?;
            if progress != Progress::Complete {
                return Ok(progress);
            }
        }
        Ok(Progress::Complete)
    }

    fn statement(&mut self, prepared: &Arc<Prepared>, sink: &mut dyn Sink) -> Result<Progress> {
        self.activity.runs(&prepared.text);
        if is_program(&prepared.statement) {
            self.refuse_in_failed_block()?;
            self.start_statement()?;
            let output = Output::Tell(sink, true);
            let tag = self.run_program(prepared, &[], &[], output)?;
            // Statements of one text outside a block are one transaction.
            if self.rest.is_empty() {
                self.end_implicit()?;
            }
            sink.command_complete(&tag).map_err(gone)?;
            return Ok(Progress::Complete);
        }
        let progress = self.command(prepared, &[], &[], true, sink)?;
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
    matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
    )
}
