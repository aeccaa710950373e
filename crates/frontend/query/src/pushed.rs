//! Conditions on their way down to the rows that they read, which stop above groups without keys.
//!
//! Such a step has one row, also of no rows. DataFusion 55 hands each condition that reads keys of groups only to what is grouped, and one that reads no column
//! at all (a constant that stands for a column, the null of a set of groups that has no such key) reads keys only: it would then leave no row to group where it
//! is to leave no group.

use datafusion::common::Result as Planned;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// DataFusion's rule of the same name, but for conditions on groups without keys.
#[derive(Debug)]
pub(crate) struct PushConditions(PushDownFilter);

impl PushConditions {
    /// The rule; it keeps nothing.
    pub(crate) fn new() -> Self {
        Self(PushDownFilter::new())
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
        match is_of_one_group(&plan) {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}
