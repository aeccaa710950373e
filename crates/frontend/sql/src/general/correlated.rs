//! Subqueries that read the query around them: which of them DataFusion's rules make joins of that return the same, and what they read.
//!
//! An aggregate without keys has a row also of no rows. As a join it is grouped by what the subquery is compared with, and where nothing is found there is no group. DataFusion 55 makes
//! up for that in the value of a subquery: with what its expression is of no rows, if it has an aggregate in it when that is looked for. That is not so of one that was made simpler (`count(*) IS NULL`), not in
//! EXISTS and IN, not below HAVING, and not where the aggregate stands in a query that the subquery reads.
//!
//! Window functions are computed over the rows that the query around has decided on, but a join decides behind them. And what is another value each time would be computed once for all rows with
//! equal keys.
//!
//! Invariants:
//! - S1 What [`joins`] refuses is asked for each row.

use crate::bind::{Aggregate, AggregateKind};
use crate::expr::Expr;
use crate::plan::{Body, Grouping, Select, SourceKind, Subquery, SubqueryKind, columns_read};
use vellum_row::arithmetic::Operator;
use vellum_row::moments::Pairing;

/// Whether a join finds what the subquery returns (S1).
pub(super) fn joins(subquery: &Subquery) -> bool {
    let select = &subquery.select;
    if has_windows(select) || select.is_volatile() {
        return false;
    }
    let Body::From {
        grouping, output, ..
    } = &select.body
    else {
        return !has_row_of_none(select);
    };
    let told = match grouping {
        Some(grouping) if is_row_of_none(grouping) => {
            subquery.kind == SubqueryKind::Scalar
                && grouping.sets.is_none()
                && grouping.having.is_none()
                && output
                    .iter()
                    .all(|expr| is_told(expr, &grouping.aggregates))
        }
        _ => true,
    };
    told && !reads_row_of_none(select)
}

/// Whether functions of it, or of what it reads, go over windows of rows that the query around decides: a join would decide behind them.
fn has_windows(select: &Select) -> bool {
    select.reads_up_to() > 0
        && match &select.body {
            Body::Values(_) => false,
            Body::Set { left, right, .. } => has_windows(left) || has_windows(right),
            Body::From {
                sources, windows, ..
            } => {
                !windows.is_empty()
                    || sources.iter().any(|source| match &source.kind {
                        SourceKind::Query(query) => has_windows(query),
                        _ => false,
                    })
            }
        }
}

/// Whether DataFusion finds what an expression is where there are no rows.
fn is_told(expr: &Expr, aggregates: &[Aggregate]) -> bool {
    let is_slot = |expr: &Expr| match expr {
        Expr::Cast { operand, .. } => matches!(**operand, Expr::Slot(_)),
        expr => matches!(expr, Expr::Slot(_)),
    };
    let kinds = || aggregates.iter().map(|aggregate| aggregate.kind);
    if kinds().any(|kind| kind == AggregateKind::Pair(Pairing::Count)) {
        return false;
    }
    if is_slot(expr) {
        return true;
    }
    if kinds().any(|kind| kind == AggregateKind::Count) {
        // Nothing that could be made simpler for what is never null.
        return match expr {
            Expr::Arithmetic {
                operator: Operator::Add | Operator::Subtract,
                left,
                right,
            }
            | Expr::Compare { left, right, .. } => {
                let constant = |expr: &Expr| matches!(expr, Expr::Const(_) | Expr::Param(_));
                is_slot(left) && constant(right) || constant(left) && is_slot(right)
            }
            _ => false,
        };
    }
    let (mut slots, mut plain) = (false, true);
    expr.walk(&mut |part| match part {
        Expr::Slot(_) => slots = true,
        Expr::Const(_)
        | Expr::Param(_)
        | Expr::Cast { .. }
        | Expr::Arithmetic { .. }
        | Expr::Negate(_)
        | Expr::Coalesce(_)
        | Expr::Concat(..)
        | Expr::Call { .. } => {}
        _ => plain = false,
    });
    slots && plain
}

/// Calls `each` with the columns, table and position, that a subquery reads of the query that it stands in.
pub(super) fn columns_of(subquery: &Subquery, each: &mut dyn FnMut((u16, u16))) {
    let subqueries = std::slice::from_ref(subquery);
    columns_read(&Expr::Subquery(0), subqueries, &mut |table, position| {
        each((table, position));
    });
}

/// Whether there is a group without keys, which has a row of no rows.
pub(super) fn is_row_of_none(grouping: &Grouping) -> bool {
    match &grouping.sets {
        None => grouping.keys.is_empty(),
        Some(sets) => sets.iter().any(Vec::is_empty),
    }
}

/// Whether such a group of it, or of what it reads, is one of rows that the query around decides.
fn has_row_of_none(select: &Select) -> bool {
    select.reads_up_to() > 0
        && match &select.body {
            Body::Values(_) => false,
            Body::Set { left, right, .. } => has_row_of_none(left) || has_row_of_none(right),
            Body::From { grouping, .. } => {
                grouping.as_deref().is_some_and(is_row_of_none) || reads_row_of_none(select)
            }
        }
}

fn reads_row_of_none(select: &Select) -> bool {
    match &select.body {
        Body::From { sources, .. } => sources.iter().any(|source| match &source.kind {
            SourceKind::Query(query) => has_row_of_none(query),
            _ => false,
        }),
        Body::Values(_) | Body::Set { .. } => false,
    }
}
