//! Statements that a session has prepared and named.
//!
//! Invariants:
//! - N1 The columns of a named statement are those that its client was told, or could have been: where the catalog has changed them since, it is
//!   refused (`0A000`), because a client may read its rows without asking again.
//! - N2 The types of its parameters stay those that its client was told, and what was read by them is run with no other: a portal, an EXECUTE, the rows of a
//!   COPY. PostgreSQL has all relations of a statement locked from Bind on; here only a writer's tables are, and only when it runs (G1). So whoever has
//!   changed a table since Bind, or while the statement waited, is found out by comparing programs. Where the parameters would have other types now, the statement is
//!   compiled with those that they had, and fails if that cannot be, with the error that the same statement has with parameters of declared types.

use super::Session;
use super::run::Prepared;
use super::simple::is_program;
use super::transaction::clock_time;
use crate::error::{Result, SqlError};
use crate::plan::Program;
use crate::sqlstate;
use std::sync::Arc;
use vellum_row::datetime::Timestamp;

/// A statement with a name; the empty one is a name, too.
#[derive(Clone, Debug)]
pub(crate) struct NamedStatement {
    pub prepared: Arc<Prepared>,
    /// The program that takes its parameters, when it was named; `None` for what can have none.
    first: Option<Arc<Program>>,
    /// When that was.
    pub since: Timestamp,
    /// Whether PREPARE has named it.
    pub by_statement: bool,
}

impl NamedStatement {
    /// Its program, if it is one, when it was named.
    pub fn own_program(&self) -> Option<&Arc<Program>> {
        let first = self.first.as_ref();
        first.filter(|_| is_program(&self.prepared.statement))
    }

    /// What is shown of it: its text, and the oids of its parameters' types.
    pub fn shown(&self) -> (Arc<str>, Vec<u32>) {
        let types = self.first.as_ref().map_or(&[][..], |first| &first.params);
        let oids = types.iter().map(|ty| ty.oid());
        (self.prepared.text.clone(), oids.collect())
    }
}

impl Session {
    /// Names a statement.
    pub(super) fn name_statement(
        &mut self,
        name: &str,
        prepared: Arc<Prepared>,
        first: Option<Arc<Program>>,
        by_statement: bool,
    ) {
        let named = NamedStatement {
            prepared,
            first,
            since: clock_time(),
            by_statement,
        };
        self.statements.insert(name.to_owned(), named);
    }

    /// The statement of a name.
    ///
    /// # Errors
    /// `26000`.
    pub(super) fn named(&self, name: &str) -> Result<NamedStatement> {
        let found = self.statements.get(name).cloned();
        found.ok_or_else(|| super::no_statement(name))
    }

    /// The program of a named statement (N1, N2): its own, or that of the statement that it is about. The transaction and the statement in it are begun.
    ///
    /// # Errors
    /// `0A000`, and those of compiling.
    pub(super) fn program_of(&self, named: &NamedStatement) -> Result<Arc<Program>> {
        let prepared = &named.prepared;
        let with_parameters = prepared.takes_parameters().unwrap_or(prepared);
        let program = self.program_for(with_parameters, named.first.as_ref())?;
        if let Some(first) = &named.first
            && Arc::ptr_eq(with_parameters, prepared)
        {
            check_columns(first, &program)?;
        }
        Ok(program)
    }
}

/// # Errors
/// `0A000` if a program returns other columns than the one that a client knows.
pub(super) fn check_columns(known: &Arc<Program>, program: &Arc<Program>) -> Result<()> {
    let same = || {
        let mut columns = known.columns.iter().zip(&program.columns);
        known.returns == program.returns
            && known.columns.len() == program.columns.len()
            && columns.all(|(a, b)| (&a.name, a.ty, a.typmod) == (&b.name, b.ty, b.typmod))
    };
    if Arc::ptr_eq(known, program) || same() {
        return Ok(());
    }
    let text = "cached plan must not change result type";
    // Drivers look at the routine, and prepare the statement anew.
    Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text).with_routine("RevalidateCachedQuery"))
}
