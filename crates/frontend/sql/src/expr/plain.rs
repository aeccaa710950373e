//! Expressions over a row alone: of constraints, generated columns and indexes.

use super::{Builtin, Environment, Frame, RowRef};
use crate::error::{Result, SqlError};
use vellum_row::{Settings, Value};

/// What such an expression may ask: nothing of the session.
pub(crate) struct Plain<'p>(pub &'p Settings);

impl Environment for Plain<'_> {
    fn settings(&self) -> &Settings {
        self.0
    }

    fn ask(&self, function: Builtin, _arguments: &[Value]) -> Result<Value> {
        Err(SqlError::unsupported(format!("{function:?} here")))
    }
}

impl<'a> Frame<'a> {
    /// Rows, and nothing beside them.
    pub fn over(rows: &'a [RowRef<'a>], env: &'a dyn Environment) -> Self {
        Self {
            params: &[],
            slots: &[],
            subqueries: &[],
            rows,
            env,
            held: None,
            outer: None,
            queries: None,
        }
    }
}
