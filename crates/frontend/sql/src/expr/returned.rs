//! What subqueries return to the expressions that they stand in.

use super::{Frame, RowSet};
use crate::error::{Result, SqlError};
use crate::exec::Account;
use crate::plan::Subquery;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;
use vellum_row::Value;

/// What a subquery has returned.
#[derive(Clone, Debug)]
pub(crate) enum Returned {
    Value(Value),
    Rows(Arc<RowSet>),
}

/// A subquery while what it is in is run.
#[derive(Clone, Debug)]
pub(crate) enum Subresult<'p> {
    /// It reads nothing of what surrounds it: it is run when it is first asked for, and what it has returned stays.
    Once {
        subquery: &'p Subquery,
        known: OnceCell<Returned>,
    },
    /// It has to be run for each row.
    Correlated(&'p Subquery),
}

/// Who runs subqueries.
pub(crate) trait Queries {
    /// Runs one that reads columns of what it is in, for the rows of a frame.
    ///
    /// # Errors
    /// The query's.
    fn run_within(&self, subquery: &Subquery, frame: &Frame<'_>) -> Result<Returned>;

    /// What one returns that reads nothing of what it is in.
    ///
    /// # Errors
    /// The query's.
    fn run_once(&self, subquery: &Subquery) -> Result<Returned>;

    /// Bytes are kept in a list that values are looked for in. Returns which account was charged, if it is there until lists are forgotten.
    ///
    /// # Errors
    /// `53200`.
    fn keep_list(&self, bytes: usize) -> Result<Option<Account>>;
}

impl<'p> Subresult<'p> {
    /// One that has not been asked for.
    pub fn of(subquery: &'p Subquery) -> Self {
        match subquery.select.correlated {
            true => Self::Correlated(subquery),
            false => Self::Once {
                subquery,
                known: OnceCell::new(),
            },
        }
    }

    /// What it returns for the rows of a frame.
    ///
    /// # Errors
    /// The query's; `0A000` where nobody runs it.
    pub(super) fn returned(&self, frame: &Frame<'_>) -> Result<Cow<'_, Returned>> {
        let queries = || {
            let missing = || SqlError::unsupported("a correlated subquery here");
            frame.queries.ok_or_else(missing)
        };
        match self {
            Self::Correlated(subquery) => {
                let made = queries()?.run_within(subquery, frame)?;
                Ok(Cow::Owned(made))
            }
            Self::Once { subquery, known } => {
                if known.get().is_none() {
                    // Who is asked meanwhile for the same has returned the same.
                    let _ = known.set(queries()?.run_once(subquery)?);
                }
                let known = known.get();
                let missing = || SqlError::internal("a subquery that returned nothing");
                known.map(Cow::Borrowed).ok_or_else(missing)
            }
        }
    }
}
