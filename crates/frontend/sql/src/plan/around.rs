//! What a query reads of those around it, to be changed.
//!
//! Not here: what it reads, to be looked at (`reads`).

use super::path::{Access, Several};
use super::{Body, Grouping, Select, SortBy, SortKey, Source, SourceKind};
use crate::expr::Expr;

/// What takes a column of a query around: its table and its position.
type Each<'e> = dyn FnMut(&mut u16, &mut u16) + 'e;

impl Select {
    /// Calls `each` with every column that it reads of the query so many queries around it, wherever it does: in its tables' paths, in its subqueries.
    pub(super) fn around_mut(&mut self, level: u16, each: &mut Each<'_>) {
        for expr in self.limit.iter_mut().chain(&mut self.offset) {
            columns(expr, level, each);
        }
        sorted(&mut self.order, level, each);
        for (expr, _) in &mut self.distinct_on {
            columns(expr, level, each);
        }
        for subquery in &mut self.subqueries {
            subquery.select.around_mut(level + 1, each);
        }
        match &mut self.body {
            Body::Values(rows) => {
                for expr in rows.iter_mut().flatten() {
                    columns(expr, level, each);
                }
            }
            Body::Set { left, right, .. } => {
                left.around_mut(level, each);
                right.around_mut(level, each);
            }
            Body::From {
                sources,
                grouping,
                windows,
                output,
            } => {
                for source in sources {
                    of_source(source, level, each);
                }
                for expr in output {
                    columns(expr, level, each);
                }
                if let Some(grouping) = grouping {
                    grouped(grouping, level, each);
                }
                for window in windows {
                    window.expressions_mut(&mut |expr| columns(expr, level, each));
                }
            }
        }
    }
}

fn columns(expr: &mut Expr, level: u16, each: &mut Each<'_>) {
    match expr {
        Expr::Outer {
            level: own,
            table,
            position,
        } if *own == level => each(table, position),
        other => other.children_mut(&mut |child| columns(child, level, each)),
    }
}

fn sorted(keys: &mut [SortKey], level: u16, each: &mut Each<'_>) {
    for key in keys {
        if let SortBy::Expr(expr) = &mut key.expr {
            columns(expr, level, each);
        }
    }
}

fn grouped(grouping: &mut Grouping, level: u16, each: &mut Each<'_>) {
    for expr in grouping.keys.iter_mut().chain(&mut grouping.having) {
        columns(expr, level, each);
    }
    for aggregate in &mut grouping.aggregates {
        aggregate.expressions_mut(&mut |expr| columns(expr, level, each));
    }
}

fn of_source(source: &mut Source, level: u16, each: &mut Each<'_>) {
    let conditions = source.filter.iter_mut().chain(&mut source.on);
    for expr in conditions.chain(&mut source.covered) {
        columns(expr, level, each);
    }
    if let Some((_, expr)) = &mut source.lookup {
        columns(expr, level, each);
    }
    match &mut source.kind {
        SourceKind::System(_) | SourceKind::Nothing | SourceKind::Work { .. } => {}
        SourceKind::Table { access, .. } => of_path(access, level, each),
        SourceKind::Query(select) => select.around_mut(level, each),
        SourceKind::Lateral(select) => select.around_mut(level + 1, each),
        SourceKind::Recursive(recursive) => {
            recursive.base.around_mut(level, each);
            recursive.step.around_mut(level, each);
        }
        SourceKind::Function { calls, .. } => {
            for expr in calls.iter_mut().flat_map(|call| &mut call.arguments) {
                columns(expr, level, each);
            }
        }
        SourceKind::Series { from, to, step, .. } => {
            for expr in [from, to, step] {
                columns(expr, level, each);
            }
        }
    }
}

fn of_path(access: &mut Access, level: u16, each: &mut Each<'_>) {
    for expr in &mut access.equal {
        columns(expr, level, each);
    }
    match access.any.as_deref_mut() {
        None => {}
        Some(Several::List(list)) => {
            for expr in list {
                columns(expr, level, each);
            }
        }
        Some(Several::Array(expr)) => columns(expr, level, each),
    }
    let bounds = &mut access.bounds;
    for (expr, _) in bounds.lower.iter_mut().chain(&mut bounds.upper) {
        columns(expr, level, each);
    }
}
