//! Columns of a result that are computed when its rows are sorted ([`Select::computed_last`]).

use super::Run;
use crate::error::Result;
use crate::expr::{Expr, Frame, Out, RowRef};
use crate::plan::Select;
use vellum_row::Value;

/// What is computed last of each row, and what is kept of it for that.
#[derive(Debug, Default)]
pub(super) struct Last {
    /// Numbers of the columns, and their expressions over the kept values.
    columns: Vec<(usize, Expr)>,
    /// What these read.
    reads: Vec<Expr>,
}

impl Last {
    pub fn of(select: &Select) -> Self {
        let mut last = Self::default();
        for (at, expr) in select.computed_last() {
            let mut expr = expr.clone();
            keep(&mut expr, &mut last.reads);
            last.columns.push((at, expr));
        }
        last
    }

    /// Whether a column is one of these.
    pub fn has(&self, at: usize) -> bool {
        self.columns.iter().any(|(own, _)| *own == at)
    }

    /// Keeps behind the keys of a row what is read.
    ///
    /// # Errors
    /// Those of reading the row.
    pub fn keep(&self, frame: &Frame<'_>, keys: &mut Vec<Value>) -> Result<()> {
        for read in &self.reads {
            keys.push(read.eval(frame)?.into_value());
        }
        Ok(())
    }

    /// Computes the columns of a row of which these values were kept.
    ///
    /// # Errors
    /// Those of the functions in them.
    pub fn compute(&self, run: &Run<'_, '_>, kept: &[Value], row: &mut [Out<'_>]) -> Result<()> {
        let rows = [RowRef::Values(kept)];
        let frame = run.frame(&rows, &[], &[]);
        for (at, expr) in &self.columns {
            row[*at] = Out::Own(expr.eval(&frame)?.into_value());
        }
        Ok(())
    }
}

/// Makes what is read of rows and groups columns of table 0.
fn keep(expr: &mut Expr, reads: &mut Vec<Expr>) {
    if matches!(expr, Expr::Column { .. } | Expr::Slot(_)) {
        let known = reads.iter().position(|read| read == expr);
        let position = known.unwrap_or(reads.len()) as u16;
        let read = std::mem::replace(expr, Expr::Column { table: 0, position });
        if known.is_none() {
            reads.push(read);
        }
        return;
    }
    expr.children_mut(&mut |child| keep(child, reads));
}
