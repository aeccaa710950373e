//! What is computed of rows stays above the steps that decide which rows there are.
//!
//! DataFusion 55 moves a list of columns and terms below a condition, or below a sort, if it has fewer columns than these are given and those that they read are in it. Of `(b + c) / a` it would so compute
//! what `a <> 0` keeps from being computed, and of the first rows of an order all others, too; and what counts its calls would be called in another order. So while columns are pushed, steps that compute
//! what may fail are none that it knows ([`Computed`]).
//!
//! Invariants:
//! - G6 What may fail is computed of no row that a condition, or a limit, below it leaves out.

use crate::function::step_may_fail;
use crate::keys::with_children;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{
    Transformed, TransformedResult, TreeNode as _, TreeNodeRecursion,
};
use datafusion::common::{Result as Planned, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExpr, update_expr};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// DataFusion's rule of the same name, but for what stays.
#[derive(Debug)]
pub(crate) struct PushColumns(ProjectionPushdown);

impl PushColumns {
    /// The rule; it keeps nothing.
    pub(crate) fn new() -> Self {
        Self(ProjectionPushdown::new())
    }
}

impl PhysicalOptimizerRule for PushColumns {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let held = plan.transform_up(|step| {
            Ok(match held(&step)? {
                Some(held) => Transformed::yes(held),
                None => Transformed::no(step),
            })
        })?;
        let pushed = self.0.optimize(held.data, config)?;
        let let_go = pushed.transform_up(|step| {
            Ok(match step.downcast_ref::<Computed>() {
                Some(computed) => Transformed::yes(computed.step.clone()),
                None => Transformed::no(step),
            })
        });
        let_go.data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// The step, if it computes what may fail above such as decide about rows, as one that is not moved. Below it stands a choice of the columns that it reads, which is.
fn held(step: &Arc<dyn ExecutionPlan>) -> Planned<Option<Arc<dyn ExecutionPlan>>> {
    let Some(list) = step.downcast_ref::<ProjectionExec>() else {
        return Ok(None);
    };
    let computes = list.expr().iter().any(|term| step_may_fail(&term.expr));
    if !computes || !decides(list.input()) {
        return Ok(None);
    }
    let step = only_read(list)?.unwrap_or_else(|| step.clone());
    Ok(Some(Arc::new(Computed { step })))
}

/// Whether what is moved below such a step comes below one that decides which rows there are.
fn decides(step: &Arc<dyn ExecutionPlan>) -> bool {
    if step.is::<FilterExec>() || step.is::<SortExec>() || step.is::<SortPreservingMergeExec>() {
        return true;
    }
    let hands_on = step.is::<ProjectionExec>()
        || step.is::<CoalescePartitionsExec>()
        || step.is::<UnionExec>();
    hands_on && step.children().into_iter().any(decides)
}

/// The same list above the columns of its input that it reads; none if it reads all, or none.
fn only_read(list: &ProjectionExec) -> Planned<Option<Arc<dyn ExecutionPlan>>> {
    let schema = list.input().schema();
    let mut read: BTreeSet<usize> = BTreeSet::new();
    for term in list.expr() {
        read.extend(collect_columns(&term.expr).iter().map(Column::index));
    }
    if read.is_empty() || read.len() == schema.fields().len() {
        return Ok(None);
    }
    let columns = read.into_iter().map(|index| {
        let name = schema.field(index).name();
        ProjectionExpr {
            expr: Arc::new(Column::new(name, index)),
            alias: name.clone(),
        }
    });
    let columns: Vec<ProjectionExpr> = columns.collect();
    let mut terms = Vec::with_capacity(list.expr().len());
    for ProjectionExpr { expr, alias } in list.expr() {
        let Some(expr) = update_expr(expr, &columns, false)? else {
            return Ok(None);
        };
        let alias = alias.clone();
        terms.push(ProjectionExpr { expr, alias });
    }
    let input = Arc::new(ProjectionExec::try_new(columns, list.input().clone())?);
    Ok(Some(Arc::new(ProjectionExec::try_new(terms, input)?)))
}

/// A step that DataFusion does not know, while it moves others.
#[derive(Debug)]
struct Computed {
    step: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for Computed {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computed")
    }
}

impl ExecutionPlan for Computed {
    fn name(&self) -> &'static str {
        "Computed"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.step.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.step.children()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Planned<TreeNodeRecursion>,
    ) -> Planned<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let step = with_children(&self.step, children)?;
        Ok(Arc::new(Self { step }))
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Planned<Arc<Statistics>> {
        #[allow(deprecated, reason = "as for scans")]
        self.step.partition_statistics(partition)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Planned<SendableRecordBatchStream> {
        self.step.execute(partition, context)
    }
}
