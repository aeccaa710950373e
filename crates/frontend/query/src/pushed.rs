//! Conditions on their way down to the rows that they read: which of them stop, and where.
//!
//! A group without keys is a step of one row, also of no rows. DataFusion 55 hands each condition that reads keys of groups only to what is grouped, and one that reads no column
//! at all (a constant that stands for a column, the null of a set of groups that has no such key) reads keys only: it would then leave no row to group where it
//! is to leave no group. So all conditions stop above such a step (G4).
//!
//! Conditions of a query inside of another keep the other's from failing, as PostgreSQL looks at them first; DataFusion makes one condition of both, and takes that apart. So one that may fail
//! goes no further than to the next condition below it, and through a join only as it is: not for the other side's column of an equality as well, which has rows without a partner (G5).

use crate::function::term_may_fail;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, JoinType, Result as Planned};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, Join, LogicalPlan, Operator};
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// DataFusion's rule of the same name, but for conditions that stop.
#[derive(Debug)]
pub(crate) struct PushConditions(PushDownFilter);

impl PushConditions {
    /// The rule; it keeps nothing.
    pub(crate) fn new() -> Self {
        Self(PushDownFilter::new())
    }

    /// A condition above another one: what cannot fail becomes a part of that.
    fn merged(
        &self,
        above: Vec<Expr>,
        mut below: Filter,
        config: &dyn OptimizerConfig,
    ) -> Planned<Transformed<LogicalPlan>> {
        let (stay, go) = apart(above);
        if go.is_empty() {
            return filtered(stay, LogicalPlan::Filter(below)).map(Transformed::no);
        }
        let mut all = split_conjunction_owned(below.predicate);
        for expr in go {
            if !all.contains(&expr) {
                all.push(expr);
            }
        }
        let Some(predicate) = conjunction(all) else {
            return datafusion::common::internal_err!("a condition of nothing");
        };
        below.predicate = predicate;
        let below = self.rewrite(LogicalPlan::Filter(below), config)?.data;
        filtered(stay, below).map(Transformed::yes)
    }

    /// A join, its own conditions and those above it.
    fn joined(
        &self,
        above: Vec<Expr>,
        mut join: Join,
        config: &dyn OptimizerConfig,
    ) -> Planned<Transformed<LogicalPlan>> {
        let own = join.filter.take();
        let (own, mut go_own) = apart(own.map_or_else(Vec::new, split_conjunction_owned));
        let (above, mut go) = apart(above);
        let alone = own.is_empty() && go_own.is_empty();
        let inner = join.join_type == JoinType::Inner;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut stay = Vec::new();
        for expr in above {
            match side_of(&expr, &join) {
                Some(Side::Left) if keeps_conditions(join.join_type).0 => left.push(expr),
                Some(Side::Right) if keeps_conditions(join.join_type).1 => right.push(expr),
                // A key is made of each side's own rows; and there is nothing else that the join asks of its rows.
                _ if inner && (is_key(&expr, &join) || alone) => go.push(expr),
                _ => stay.push(expr),
            }
        }
        let (keeps_left, keeps_right) = join.join_type.on_lr_is_preserved();
        let mut back = Vec::new();
        for expr in own {
            match side_of(&expr, &join) {
                Some(Side::Left) if keeps_left && !join.null_aware => left.push(expr),
                Some(Side::Right) if keeps_right && !join.null_aware => right.push(expr),
                _ if is_key(&expr, &join) => go_own.push(expr),
                _ => back.push(expr),
            }
        }
        join.filter = conjunction(go_own);
        let moved = !left.is_empty() || !right.is_empty();
        let done = self
            .0
            .rewrite(filtered(go, LogicalPlan::Join(join))?, config)?;
        let transformed = done.transformed || moved;
        let plan = in_join(done.data, &mut |mut join| {
            let sides = [
                (&mut join.left, std::mem::take(&mut left)),
                (&mut join.right, std::mem::take(&mut right)),
            ];
            for (side, conditions) in sides {
                let input = Arc::unwrap_or_clone(std::mem::take(side));
                *side = Arc::new(filtered(conditions, input)?);
            }
            join.filter = conjunction(join.filter.take().into_iter().chain(back.drain(..)));
            Ok(join)
        })?;
        let plan = filtered(stay, plan)?;
        Ok(Transformed::new_transformed(plan, transformed))
    }
}

/// Those that may fail, and the others.
fn apart(conditions: Vec<Expr>) -> (Vec<Expr>, Vec<Expr>) {
    conditions.into_iter().partition(term_may_fail)
}

/// The rows for which all conditions are true.
fn filtered(conditions: Vec<Expr>, input: LogicalPlan) -> Planned<LogicalPlan> {
    match conjunction(conditions) {
        Some(all) => Filter::try_new(all, Arc::new(input)).map(LogicalPlan::Filter),
        None => Ok(input),
    }
}

/// Changes the join that stands below conditions.
fn in_join(
    plan: LogicalPlan,
    change: &mut dyn FnMut(Join) -> Planned<Join>,
) -> Planned<LogicalPlan> {
    match plan {
        LogicalPlan::Join(join) => Ok(LogicalPlan::Join(change(join)?)),
        LogicalPlan::Filter(mut filter) => {
            let input = Arc::unwrap_or_clone(filter.input);
            filter.input = Arc::new(in_join(input, change)?);
            Ok(LogicalPlan::Filter(filter))
        }
        _ => datafusion::common::internal_err!("a join that is none any more"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Left,
    Right,
}

/// The side of a join whose columns a condition reads, if it reads one's only.
fn side_of(expr: &Expr, join: &Join) -> Option<Side> {
    match (
        reads(expr, join.left.schema()),
        reads(expr, join.right.schema()),
    ) {
        (true, false) => Some(Side::Left),
        (false, true) => Some(Side::Right),
        _ => None,
    }
}

/// Whether a term reads columns, and all are of these.
fn reads(expr: &Expr, schema: &DFSchema) -> bool {
    let columns = expr.column_refs();
    !columns.is_empty() && columns.iter().all(|column| schema.has_column(column))
}

/// Whether a condition is an equality of both sides of a join.
fn is_key(expr: &Expr, join: &Join) -> bool {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = expr
    else {
        return false;
    };
    let sides = [left, right].map(|side| side_of(side, join));
    matches!(
        sides,
        [Some(Side::Left), Some(Side::Right)] | [Some(Side::Right), Some(Side::Left)]
    )
}

/// Whether a row of each side comes out of a join as it is, if it comes out: conditions may be asked of it before.
fn keeps_conditions(join: JoinType) -> (bool, bool) {
    match join {
        JoinType::Inner => (true, true),
        JoinType::Full => (false, false),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            (true, false)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            (false, true)
        }
    }
}

/// Whether it is a condition, or several, on groups without keys.
fn is_of_one_group(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else {
        return false;
    };
    match filter.input.as_ref() {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        input => is_of_one_group(input),
    }
}

impl OptimizerRule for PushConditions {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Planned<Transformed<LogicalPlan>> {
        if is_of_one_group(&plan) {
            return Ok(Transformed::no(plan));
        }
        match plan {
            LogicalPlan::Join(join) => self.joined(Vec::new(), join, config),
            LogicalPlan::Filter(mut filter) => match Arc::unwrap_or_clone(filter.input) {
                LogicalPlan::Filter(below) => {
                    self.merged(split_conjunction_owned(filter.predicate), below, config)
                }
                LogicalPlan::Join(join) => {
                    self.joined(split_conjunction_owned(filter.predicate), join, config)
                }
                input => {
                    filter.input = Arc::new(input);
                    self.0.rewrite(LogicalPlan::Filter(filter), config)
                }
            },
            plan => self.0.rewrite(plan, config),
        }
    }
}
