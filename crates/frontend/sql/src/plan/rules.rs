//! What holds for every row of a table that is written: generated columns, CHECK constraints.

use crate::bind::Binder;
use crate::catalog::{Default, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use vellum_row::CastContext;

/// The rules of a table, over it as number 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Positions of the columns that are generated, and their expressions: none reads another one.
    pub generated: Vec<(usize, Expr)>,
    /// CHECK constraints, by their names.
    pub checks: Vec<(String, Expr)>,
}

impl Binder<'_> {
    /// Those of a table that is number 0 of the scope.
    ///
    /// # Errors
    /// None that is known: they were bound when they were made.
    pub(super) fn rules(&mut self, relation: &Relation) -> Result<Rules> {
        let Some(table) = relation.table() else {
            return Ok(Rules::default());
        };
        let mut checks = Vec::with_capacity(table.checks.len());
        // The first one that fails is told: in the order of their names, as in PostgreSQL.
        let mut sorted: Vec<_> = table.checks.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        for check in sorted {
            let node = crate::parse::expression(&check.expression)?;
            checks.push((check.name.to_string(), self.condition(&node, "CHECK")?));
        }
        let generated = self.generated(relation)?;
        Ok(Rules { generated, checks })
    }

    /// The generated columns of a table that is number 0 of the scope.
    ///
    /// # Errors
    /// As [`Binder::rules`].
    pub(crate) fn generated(&mut self, relation: &Relation) -> Result<Vec<(usize, Expr)>> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let mut generated = Vec::new();
        for (id, default) in &table.defaults {
            let (Default::Generated(sql), Some(position)) =
                (default, table.schema.position_of(*id))
            else {
                continue;
            };
            let column = table.schema.column(position);
            let bound = self.expr(&crate::parse::expression(sql)?)?;
            let context = CastContext::Assignment;
            let expr = self.coerce(bound, column.ty, column.typmod, context)?;
            generated.push((position, expr));
        }
        Ok(generated)
    }
}
