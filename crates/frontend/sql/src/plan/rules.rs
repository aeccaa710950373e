//! What holds for every row of a table that is written: generated columns, CHECK constraints.

use crate::bind::Binder;
use crate::catalog::{Default, Relation};
use crate::error::{Result, SqlError};
use crate::expr::{DomainRules, Expr};
use std::sync::Arc;
use vellum_row::CastContext;

/// The rules of a table, over it as number 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Positions of the columns that are generated, and their expressions: none reads another one.
    pub generated: Vec<(usize, Expr)>,
    /// CHECK constraints, by their names.
    pub checks: Vec<(String, Expr)>,
    /// Positions of the columns of domains, and what those ask of their values.
    pub domains: Vec<(usize, Arc<DomainRules>)>,
    /// What the views that it is written through want of a row, by their names: check options. They are looked at when it is written.
    pub options: Vec<(String, Vec<Expr>)>,
    /// Positions of the columns that the statement gives values: who may not read the table is told of these only. None for what no statement gives.
    pub given: Option<Vec<usize>>,
}

impl Rules {
    /// These columns are given values by the statement, too.
    pub fn give(&mut self, positions: impl Iterator<Item = usize>) {
        let given = self.given.get_or_insert_default();
        given.extend(positions);
        given.sort_unstable();
        given.dedup();
    }

    /// Whether any row fulfils them.
    pub fn allow_all(&self) -> bool {
        self.checks.is_empty() && self.domains.is_empty() && self.options.is_empty()
    }
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
        // What a table's own conditions read, nobody reads by them.
        let uses = self.column_uses.len();
        let mut checks = Vec::with_capacity(table.checks.len());
        // The first one that fails is told: in the order of their names, as in PostgreSQL.
        let mut sorted: Vec<_> = table.checks.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        for check in sorted {
            let node = crate::parse::expression(&check.expression)?;
            let bound = self.stored(|binder| binder.condition(&node, "CHECK"))?;
            checks.push((check.name.to_string(), bound));
        }
        let generated = self.generated(relation)?;
        let domains = self.domains_in(relation)?;
        self.column_uses.truncate(uses);
        Ok(Rules {
            generated,
            checks,
            domains,
            options: Vec::new(),
            given: None,
        })
    }

    /// The columns of a table that are of domains, by their positions.
    ///
    /// # Errors
    /// As [`Binder::domain_rules`].
    pub(crate) fn domains_in(&self, relation: &Relation) -> Result<Vec<(usize, Arc<DomainRules>)>> {
        let table = relation.table().into_iter();
        let mut all = Vec::new();
        for (table, (column, domain)) in
            table.flat_map(|table| table.domains.iter().map(move |own| (table, own)))
        {
            if let Some(position) = table.schema.position_of(*column) {
                all.push((position, self.domain_rules(*domain)?));
            }
        }
        all.sort_by_key(|(position, _)| *position);
        Ok(all)
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
            let node = crate::parse::expression(sql)?;
            let bound = self.stored(|binder| binder.expr(&node))?;
            let context = CastContext::Assignment;
            let expr = self.coerce(bound, column.ty, column.typmod, context)?;
            generated.push((position, expr));
        }
        Ok(generated)
    }
}
