//! What ends the compiling of a statement: a cancel, `statement_timeout`, and a limit of the work that its queries of WITH make.
//!
//! A statement of some kilobytes can ask for much: a query of WITH is bound wherever it is read.

use crate::bind::{Binder, Bound};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::session::CancelHandle;
use crate::sqlstate;
use vellum_base::clock::monotonic_nanos;

/// Expressions and queries between two looks.
const STEPS: u32 = 256;

/// Queries of WITH that are bound for one statement, at most, read or not.
const WITH_BOUND: usize = 20_000;

/// Parts of expressions that stand in more places of one statement than they are written in, at most: operands of BETWEEN in an operand of BETWEEN are doubled
/// each time.
const COPIED: usize = 1 << 18;

/// Bytes of expressions whose texts are compared in one statement, at most: those of one in another are told for each.
const TOLD: usize = 64 << 20;

/// What may end a compilation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends<'c> {
    pub cancel: &'c CancelHandle,
    /// By the monotonic clock; `None`: no limit.
    pub deadline: Option<u64>,
}

/// What a compilation has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    steps: u32,
    with_bound: usize,
    copied: usize,
    told: usize,
}

impl Binder<'_> {
    /// Something is being bound.
    ///
    /// # Errors
    /// `57014`, `57P01`.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.done.steps += 1;
        if self.done.steps < STEPS {
            return Ok(());
        }
        self.done.steps = 0;
        self.look()
    }

    fn look(&self) -> Result<()> {
        let Some(ends) = &self.ends else {
            return Ok(());
        };
        ends.cancel.check().map_err(SqlError::without_place)?;
        if ends.deadline.is_some_and(|end| monotonic_nanos() >= end) {
            let text = "canceling statement due to statement timeout";
            return Err(SqlError::new(sqlstate::QUERY_CANCELED, text).without_place());
        }
        Ok(())
    }

    /// A query of WITH is being bound, where it is read or to be looked at.
    ///
    /// # Errors
    /// `54001`; `57014`, `57P01`.
    pub(super) fn binds_with(&mut self) -> Result<()> {
        self.done.with_bound += 1;
        if self.done.with_bound > WITH_BOUND {
            return Err(read_too_often());
        }
        self.look()
    }

    /// An expression that is written once will stand in one more place.
    ///
    /// # Errors
    /// `54001`.
    pub(crate) fn copying(&mut self, expr: &Expr) -> Result<()> {
        // What has no parts takes no more than the word that asks for it.
        self.done.copied += expr.parts() - 1;
        if self.done.copied > COPIED {
            let text = "expressions that are read in several places are nested too deeply";
            return Err(SqlError::new(sqlstate::STATEMENT_TOO_COMPLEX, text));
        }
        Ok(())
    }

    /// So many bytes of an expression were told.
    ///
    /// # Errors
    /// `54001`; `57014`, `57P01`.
    pub(crate) fn tells(&mut self, bytes: usize) -> Result<()> {
        self.done.told += bytes;
        if self.done.told > TOLD {
            let text = "queries in expressions are nested too deeply";
            return Err(SqlError::new(sqlstate::STATEMENT_TOO_COMPLEX, text));
        }
        self.step()
    }

    /// An operand for one more place.
    ///
    /// # Errors
    /// As [`Binder::copying`].
    pub(crate) fn copied(&mut self, operand: &Bound) -> Result<Bound> {
        self.copying(&operand.expr)?;
        Ok(operand.clone())
    }
}

/// Queries of WITH are read too often.
#[cold]
pub(super) fn read_too_often() -> SqlError {
    let text = "queries of WITH are read too often";
    SqlError::new(sqlstate::STATEMENT_TOO_COMPLEX, text)
}
