//! Columns of queries in FROM that nobody reads: they are not computed, as in PostgreSQL, and what would fail in them does not.
//!
//! A view has columns for whoever may want them. A subquery for each row among these would cost every `count(*)`, and a cast that fails for one row every query of the view.
//!
//! Invariants:
//! - UR1 A column that draws, or asks something of the session that shows (`nextval`, a lock), is computed whether it is read or not; so is one by which rows are sorted or told apart.
//! - UR2 Columns keep their places and types: what is not computed is null.

use super::reads::columns_of_own;
use super::{Body, InsertSource, ProgramKind, Select, SortBy, SourceKind, Subquery, draws};
use crate::bind::{Aggregate, AggregateKind};
use crate::expr::Expr;
use sqlparser::ast::SetOperator;
use std::collections::BTreeSet;
use vellum_row::Value;

/// Does so in all queries of a statement.
pub(super) fn drop_unread(kind: &mut ProgramKind, subqueries: &mut [Subquery]) {
    for subquery in subqueries {
        subquery.select.drop_unread();
    }
    match kind {
        ProgramKind::Select(select) => select.drop_unread(),
        ProgramKind::Insert(insert) => {
            if let InsertSource::Select(select) = &mut insert.source {
                select.drop_unread();
            }
        }
        ProgramKind::Update(update) => {
            let joined = update.joined.iter_mut();
            joined.for_each(|joined| joined.select.drop_unread());
        }
        ProgramKind::Delete(delete) => {
            let joined = delete.joined.iter_mut();
            joined.for_each(|joined| joined.select.drop_unread());
        }
        ProgramKind::Merge(merge) => merge.joined.select.drop_unread(),
    }
}

impl Select {
    /// In it, and in all queries that stand in it. All of its own columns are read.
    fn drop_unread(&mut self) {
        for subquery in &mut self.subqueries {
            subquery.select.drop_unread();
        }
        let has_queries = match &mut self.body {
            Body::Values(_) => false,
            Body::Set { left, right, .. } => {
                left.drop_unread();
                right.drop_unread();
                false
            }
            Body::From { sources, .. } => sources.iter().any(|source| {
                matches!(
                    source.kind,
                    SourceKind::Query(_) | SourceKind::Lateral(_) | SourceKind::Recursive(_)
                )
            }),
        };
        if !has_queries {
            return;
        }
        let mut read = BTreeSet::new();
        columns_of_own(self, &mut |table, position| {
            read.insert((usize::from(table), usize::from(position)));
        });
        for lock in &self.locks {
            let keys = lock.column.map(|column| (lock.source, usize::from(column)));
            read.extend(keys);
        }
        let Body::From { sources, .. } = &mut self.body else {
            return;
        };
        for (number, source) in sources.iter_mut().enumerate() {
            match &mut source.kind {
                SourceKind::Query(select) | SourceKind::Lateral(select) => {
                    select.leave_out(&|at| read.contains(&(number, at)));
                    select.drop_unread();
                }
                SourceKind::Recursive(recursive) => {
                    recursive.base.drop_unread();
                    recursive.step.drop_unread();
                }
                _ => {}
            }
        }
    }

    /// Computes no columns but those that are read (UR1).
    fn leave_out(&mut self, reads: &dyn Fn(usize) -> bool) {
        if self.distinct || !self.locks.is_empty() || !self.keyed.is_empty() {
            return;
        }
        let order = &self.order;
        let reads = |at: usize| {
            reads(at)
                || order
                    .iter()
                    .any(|key| matches!(key.expr, SortBy::Output(by) if by == at))
        };
        match &mut self.body {
            Body::Set {
                operator: SetOperator::Union,
                all: true,
                left,
                right,
            } => {
                left.leave_out(&reads);
                right.leave_out(&reads);
            }
            Body::From { output, .. } => {
                let mut any = false;
                for (at, expr) in output.iter_mut().enumerate() {
                    if !reads(at) && !draws(expr, &self.subqueries) {
                        *expr = Expr::Const(Value::Null);
                        any = true;
                    }
                }
                if any {
                    self.leave_out_aggregates();
                }
            }
            Body::Set { .. } | Body::Values(_) => {}
        }
    }

    /// Folds nothing for aggregates that nobody reads any more; they keep their places, too.
    fn leave_out_aggregates(&mut self) {
        let Body::From {
            grouping: Some(grouping),
            windows,
            output,
            ..
        } = &mut self.body
        else {
            return;
        };
        let mut read = BTreeSet::new();
        let mut note = |expr: &Expr| {
            expr.walk(&mut |part| {
                if let Expr::Slot(number) = part {
                    read.insert(usize::from(*number));
                }
            });
        };
        let sorted = self.order.iter().filter_map(|key| match &key.expr {
            SortBy::Expr(expr) => Some(expr),
            SortBy::Output(_) => None,
        });
        let apart = self.distinct_on.iter().map(|(expr, _)| expr);
        let all = output.iter().chain(&grouping.having).chain(sorted);
        all.chain(apart).for_each(&mut note);
        for window in windows {
            window.expressions_mut(&mut |expr| note(expr));
        }
        let first = grouping.keys.len();
        for (number, aggregate) in grouping.aggregates.iter_mut().enumerate() {
            if !read.contains(&(first + number)) && may_fold_nothing(aggregate, &self.subqueries) {
                for (argument, _) in &mut aggregate.arguments {
                    *argument = Expr::Const(Value::Null);
                }
                aggregate.filter = None;
            }
        }
    }
}

/// Whether an aggregate takes nulls in the place of all values.
fn may_fold_nothing(aggregate: &Aggregate, subqueries: &[Subquery]) -> bool {
    use AggregateKind as K;
    let plain = matches!(
        aggregate.kind,
        K::Count | K::Sum | K::Average | K::Minimum | K::Maximum | K::BoolAnd | K::BoolOr
    );
    plain
        && aggregate.order.is_empty()
        && !aggregate.expressions().any(|expr| draws(expr, subqueries))
}
