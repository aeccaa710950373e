//! Rows of a union, of which nothing is said that holds for single parts only.
//!
//! Where the inputs of a union have a constant each, DataFusion notes that the column is constant within a part (`AcrossPartitions::Heterogeneous`). Others of its
//! steps take more from that than there is in it: sorts that leave the column out of their key, though the bound that they share with the sorts of other parts (a
//! top-k's filter) is then one of another key; orders that are held for given behind a merge. So what stands above a union is not told ([`Mixed`]), and sorts by the column.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as Planned, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::equivalence::AcrossPartitions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PlanProperties,
};
use std::fmt;
use std::sync::Arc;

/// Puts [`Mixed`] above unions with columns that are constant within a part only. It is to run before the rules that look at orders.
#[derive(Debug)]
pub(crate) struct MixUnions;

impl PhysicalOptimizerRule for MixUnions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let mixed = |plan: Arc<dyn ExecutionPlan>| {
            let constants = plan.equivalence_properties().constants();
            let mut constants = constants.iter();
            let differs = constants
                .any(|constant| constant.across_partitions == AcrossPartitions::Heterogeneous);
            Ok(match plan.is::<UnionExec>() && differs {
                true => Transformed::yes(Arc::new(Mixed::new(plan)) as Arc<dyn ExecutionPlan>),
                false => Transformed::no(plan),
            })
        };
        plan.transform_up(mixed).data()
    }

    fn name(&self) -> &'static str {
        "mix_unions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows of its input as they come, part by part.
#[derive(Debug)]
struct Mixed {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Mixed {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let mut known = input.equivalence_properties().clone();
        known.clear_per_partition_constants();
        known.clear_orderings();
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(known);
        Self {
            input,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for Mixed {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mixed")
    }
}

impl ExecutionPlan for Mixed {
    fn name(&self) -> &'static str {
        "Mixed"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        // A sort that was moved below would leave out there what it leaves in above.
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Planned<TreeNodeRecursion>,
    ) -> Planned<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        Ok(match children.pop() {
            Some(input) => Arc::new(Self::new(input)),
            None => self,
        })
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Planned<Arc<Statistics>> {
        #[allow(deprecated, reason = "as for scans")]
        self.input.partition_statistics(partition)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Planned<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
