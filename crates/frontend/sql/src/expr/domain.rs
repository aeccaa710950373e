//! What a domain asks of its values, at work.

use super::{Expr, Frame, RowRef};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum_row::ValueRef;

/// What a domain asks of its values, with what those ask that it was made over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DomainRules {
    pub oid: u32,
    /// As messages call it.
    pub shown: String,
    /// Its schema and its name.
    pub name: (Box<str>, Box<str>),
    pub not_null: bool,
    /// CHECK constraints by their names, over a row of the value alone: those of the domain that all others are made over first, and of one domain in the order of
    /// their names, as in PostgreSQL.
    pub checks: Vec<(Box<str>, Expr)>,
}

impl DomainRules {
    /// # Errors
    /// `23502` for a null that may not be, `23514`; those of the conditions.
    pub fn check(&self, value: ValueRef<'_>, frame: &Frame<'_>) -> Result<()> {
        if self.not_null && value.is_null() {
            let message = format!("domain {} does not allow null values", self.shown);
            let error = SqlError::new(sqlstate::NOT_NULL_VIOLATION, message);
            return Err(error.on_type(&self.name));
        }
        let value = [value];
        let rows = [RowRef::Lent(&value)];
        let frame = Frame {
            rows: &rows,
            outer: None,
            ..*frame
        };
        for (name, check) in &self.checks {
            if check.eval(&frame)?.as_ref().as_bool() == Some(false) {
                let message = format!(
                    "value for domain {} violates check constraint \"{name}\"",
                    self.shown
                );
                let error = SqlError::new(sqlstate::CHECK_VIOLATION, message);
                return Err(error.on_type(&self.name).on_constraint(name));
            }
        }
        Ok(())
    }

    /// Whether something is so of one of the conditions.
    pub fn any(&self, is_so: impl Fn(&Expr) -> bool) -> bool {
        self.checks.iter().any(|(_, check)| is_so(check))
    }
}
