//! What is around a query that is run for a row of another one: its columns have values, which are known before the query is.
//!
//! A query that is translated stands in others that are translated with it, and all of them in those that the run is for ([`Run::outer`](crate::exec::Run)). The first have no row yet when something
//! is computed before the query is run: VALUES, bounds of a series, LIMIT, what a program finds. So an expression's columns are counted from the run there, and one of a query in between is refused.

use super::translate::Translation;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::{Select, Subquery};
use std::borrow::Cow;
use vellum_row::Value;

impl Translation<'_, '_, '_> {
    /// Whether it is a column of a query around the one that is run, which stands at a row.
    pub(super) fn is_further_out(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Outer { level, .. } if usize::from(*level) >= self.levels.len())
    }

    /// Its value.
    pub(super) fn further_out(&self, expr: &Expr) -> Result<Value> {
        let mut expr = expr.clone();
        self.move_out(&mut expr)?;
        self.constant(&expr)
    }

    /// An expression that is computed before the query is run, with its columns as they stand around the run.
    ///
    /// # Errors
    /// `0A000` for one that reads a query which is run together with its own, and stands at no row yet.
    pub(super) fn before<'e>(&self, expr: &'e Expr, subs: &[Subquery]) -> Result<Cow<'e, Expr>> {
        if self.levels.len() < 2 {
            return Ok(Cow::Borrowed(expr));
        }
        let mut read = Ok(());
        expr.walk(&mut |part| {
            let subquery = part
                .subquery()
                .and_then(|number| subs.get(usize::from(number)));
            if let Some(subquery) = subquery.filter(|_| read.is_ok()) {
                read = self.check_before(&subquery.select, 1);
            }
        });
        read?;
        let mut expr = expr.clone();
        self.move_out(&mut expr)?;
        Ok(Cow::Owned(expr))
    }

    /// That a query which is run before its own reads nothing of those around that one; it stands so many queries inside of it.
    ///
    /// # Errors
    /// As for [`Self::before`].
    pub(super) fn check_before(&self, select: &Select, depth: u16) -> Result<()> {
        if self.levels.len() > 1 && select.reads_up_to() > depth {
            return Err(at_no_row());
        }
        Ok(())
    }

    /// Counts its columns from the run instead of from the query that is translated.
    fn move_out(&self, expr: &mut Expr) -> Result<()> {
        if let Expr::Outer { level, .. } = expr {
            let inside = self.levels.len().saturating_sub(1) as u16;
            let outside = level.checked_sub(inside).filter(|level| *level > 0);
            *level = outside.ok_or_else(at_no_row)?;
        }
        let mut moved = Ok(());
        expr.children_mut(&mut |child| {
            if moved.is_ok() {
                moved = self.move_out(child);
            }
        });
        moved
    }

    /// The value of one that reads no row of the query, and may read what stands around the run.
    ///
    /// # Errors
    /// Those of the functions in it; as for [`Self::before`].
    pub(super) fn constant_before(&self, expr: &Expr) -> Result<Value> {
        let expr = self.before(expr, &[])?;
        self.constant(&expr)
    }
}

#[cold]
fn at_no_row() -> SqlError {
    SqlError::unsupported("what is computed before the query around it stands at a row")
}
