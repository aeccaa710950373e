//! Statements that a session has prepared and named.
//!
//! Invariants:
//! - N1 The columns of a named statement are those that its client was told, or could have been: where the catalog has changed them since, it is
//!   refused (`0A000`), because a client may read its rows without asking again.

use super::Session;
use super::run::Prepared;
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
    /// Its program when it was named; `None` for what has none.
    first: Option<Arc<Program>>,
    /// When that was.
    pub since: Timestamp,
    /// Whether PREPARE has named it.
    pub by_statement: bool,
}

impl NamedStatement {
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

    /// The program of a named statement (N1). The transaction and the statement in it are begun.
    ///
    /// # Errors
    /// `0A000`, and those of compiling.
    pub(super) fn program_of(&self, named: &NamedStatement) -> Result<Arc<Program>> {
        let program = self.program(&named.prepared)?;
        if let Some(first) = &named.first
            && !Arc::ptr_eq(first, &program)
        {
            let shape = |program: &Program| {
                let columns = program.columns.iter();
                let columns = columns.map(|column| (column.name.clone(), column.ty, column.typmod));
                (program.returns, columns.collect::<Vec<_>>())
            };
            if shape(first) != shape(&program) {
                let text = "cached plan must not change result type";
                // Drivers look at the routine, and prepare the statement anew.
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text)
                    .with_routine("RevalidateCachedQuery"));
            }
        }
        Ok(program)
    }
}
