//! Tables that are read row by row below steps that no program has.
//!
//! A subquery that reads the tables before it (LATERAL), or a function of their columns, is run again for each of their rows, which programs do; windows, grouping
//! sets and DISTINCT ON are for operators, which have no such step. A query with both becomes two: the tables with their conditions are a query in FROM, whose rows
//! a program finds and keeps, and all else reads these.

use super::reads::tables_read;
use super::select::{Body, Grouping, Select, SortBy, SortKey, Source, SourceKind, plain};
use super::{SetCall, Subquery};
use crate::bind::{Binder, Window};
use crate::expr::{Expr, RowsFrom};
use vellum_row::Type;

/// What reads the tables of a FROM.
pub(super) struct Readers<'r> {
    pub output: &'r mut [Expr],
    pub grouping: Option<&'r mut Grouping>,
    pub windows: &'r mut [Window],
    pub sort: &'r mut [SortKey],
    pub apart: &'r mut [(Expr, Type)],
}

impl Readers<'_> {
    fn each(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        self.output.iter_mut().for_each(&mut *each);
        if let Some(grouping) = &mut self.grouping {
            grouping.keys.iter_mut().for_each(&mut *each);
            grouping.having.iter_mut().for_each(&mut *each);
            for aggregate in &mut grouping.aggregates {
                aggregate.expressions_mut(each);
            }
        }
        for window in &mut *self.windows {
            window.expressions_mut(each);
        }
        sorted(self.sort, each);
        for (expr, _) in &mut *self.apart {
            each(expr);
        }
    }
}

fn sorted(keys: &mut [SortKey], each: &mut dyn FnMut(&mut Expr)) {
    for key in keys {
        if let SortBy::Expr(expr) = &mut key.expr {
            each(expr);
        }
    }
}

/// Whether functions in FROM read columns of the tables before them, or subqueries in their arguments do.
fn reads_columns(calls: &[SetCall], subqueries: &[Subquery]) -> bool {
    let mut reads = false;
    for argument in calls.iter().flat_map(|call| &call.arguments) {
        tables_read(argument, subqueries, &mut |_| reads = true);
    }
    reads
}

impl SourceKind {
    /// Whether it is read again for each row of the tables before it.
    pub fn is_row_by_row(&self, subqueries: &[Subquery]) -> bool {
        match self {
            Self::Lateral(_) => true,
            Self::Function { calls, .. } => reads_columns(calls, subqueries),
            _ => false,
        }
    }
}

impl Select {
    /// Whether a table of it is read again for each row of those before it.
    pub(crate) fn is_row_by_row(&self) -> bool {
        match &self.body {
            Body::Values(_) => false,
            Body::Set { left, right, .. } => left.is_row_by_row() || right.is_row_by_row(),
            Body::From { sources, .. } => {
                let mut kinds = sources.iter().map(|source| &source.kind);
                kinds.any(|kind| kind.is_row_by_row(&self.subqueries))
            }
        }
    }
}

impl Binder<'_> {
    /// Makes the tables of a query that is no program's a query of their own, if a program has to read them and can.
    pub(super) fn read_apart(&mut self, sources: &mut Vec<Source>, mut readers: Readers<'_>) {
        let sets = readers.grouping.as_ref();
        let sets =
            sets.is_some_and(|grouping| grouping.sets.is_some() || !grouping.asked.is_empty());
        let steps = sets || !readers.windows.is_empty() || !readers.apart.is_empty();
        let mut kinds = sources.iter().map(|source| &source.kind);
        let row_by_row = kinds.any(|kind| kind.is_row_by_row(&self.subqueries));
        if !steps || !row_by_row || sources.len() != self.scope.tables.len() {
            return;
        }
        // Of the queries around it the tables' own would be one further away.
        if self.outer.iter().any(|outer| outer.read) {
            return;
        }
        let (mut output, mut types, mut begins) = (Vec::new(), Vec::new(), Vec::new());
        for (table, known) in self.scope.tables.iter().enumerate() {
            begins.push(output.len());
            for (position, column) in known.columns.iter().enumerate() {
                output.push(Expr::Column {
                    table: table as u16,
                    position: position as u16,
                });
                types.push(column.ty);
            }
        }
        let (mut found, mut asks) = (true, Vec::new());
        let tables = &self.scope.tables;
        readers.each(&mut |expr| {
            expr.walk(&mut |part| match part {
                Expr::Column { table, position } => {
                    let table = tables.get(usize::from(*table));
                    let columns = table.map_or(0, |table| table.columns.len());
                    found &= usize::from(*position) < columns;
                }
                part => asks.extend(asked(part)),
            });
        });
        // Subqueries belong to one of the two, and those of limits are none of the tables'.
        let mut inside: Vec<u16> = Vec::new();
        for source in sources.iter() {
            let conditions = source.filter.iter().chain(&source.on);
            for condition in conditions.chain(&source.covered) {
                condition.walk(&mut |part| inside.extend(asked(part)));
            }
            let arguments: Vec<&Expr> = match &source.kind {
                SourceKind::Function { calls, .. } => {
                    calls.iter().flat_map(|call| &call.arguments).collect()
                }
                SourceKind::Series { from, to, step, .. } => vec![from, to, step],
                _ => Vec::new(),
            };
            for argument in arguments {
                argument.walk(&mut |part| inside.extend(asked(part)));
            }
        }
        inside.sort_unstable();
        inside.dedup();
        let apart = asks.is_empty() && inside.len() == self.subqueries.len()
            || inside.is_empty() && self.subqueries.iter().all(|one| !one.select.correlated);
        if !found || !apart || output.len() > usize::from(u16::MAX) {
            return;
        }
        readers.each(&mut |expr| moved(expr, &begins));
        let body = Body::From {
            sources: std::mem::take(sources),
            grouping: None,
            windows: Vec::new(),
            output,
        };
        let mut inner = plain(body, Vec::new());
        inner.types = types;
        if !inside.is_empty() {
            inner.subqueries = std::mem::take(&mut self.subqueries);
        }
        sources.push(Source::inner(SourceKind::Query(Box::new(inner))));
    }
}

/// The number of the subquery that an expression is.
fn asked(expr: &Expr) -> Option<u16> {
    match expr {
        Expr::Subquery(number)
        | Expr::InSubquery {
            subquery: number, ..
        }
        | Expr::Rows {
            from: RowsFrom::Subquery(number),
            ..
        } => Some(*number),
        _ => None,
    }
}

/// Columns of tables become those of the one table that has them all.
fn moved(expr: &mut Expr, begins: &[usize]) {
    if let Expr::Column { table, position } = expr {
        *position += begins[usize::from(*table)] as u16;
        *table = 0;
        return;
    }
    expr.children_mut(&mut |child| moved(child, begins));
}
