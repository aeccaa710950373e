//! Joins by nested loops whose left side does not fit into memory.
//!
//! DataFusion 55 reads the left side once more then, into a file, and goes through it in pieces that fit; each part of the right side does so for itself. What one part has found of a left row
//! the others do not know: a join that hands on rows of its left side by what *all* rows of the right one are (LEFT, and SEMI, ANTI and MARK of the left) handed on each of them once for each part.
//! And what it is to say of rows of its right side when it knows all of the left one (RIGHT and FULL, SEMI, ANTI and MARK of the right) it does not say at all where the last piece of the left side ends with
//! the memory for pieces: it looks for another piece, finds none, and takes that for a left side without rows.
//!
//! So such joins have no files: they fail for want of memory, and the query is run again with more. In the last of these attempts ([`Joins::Sorted`]) those of the left have one part on the right, and those of
//! the right are turned round to be ones of the left. FULL is both, and has to fit.
//!
//! Invariants:
//! - NL1 A join by nested loops goes into files only if it is an inner one, or hands on rows of its left side and has one part on its right.
//! - NL2 What stands on the left of such a join may be read twice ([`reads_again`]): a scan that has come to its end there, or was dropped, may begin anew.
//! - NL3 What is read twice can be: an exchange panics when a part of it is asked for again, and a join by keys that hands on rows of its left side at its end would not do so a second time, nor would a sort with a limit, which keeps what it has learned. Where anything
//!   but scans, conditions, columns, sorts and groups stands there, the join has to fit.

use crate::engine::Joins;
use crate::keys::with_children;
use crate::scan::{ReadRows, scans_of};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result as Planned, Statistics};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, Partitioning,
    PlanProperties,
};
use std::fmt;
use std::sync::Arc;

/// Keeps NL1. It is to run last: what looks for joins would not see what stands around them.
#[derive(Debug)]
pub(crate) struct FitLoops {
    joins: Joins,
    /// Of the statement.
    with_files: Arc<RuntimeEnv>,
    without: Arc<RuntimeEnv>,
}

impl FitLoops {
    /// For the plans of a statement that has this environment.
    ///
    /// # Errors
    /// None that is known.
    pub fn new(joins: Joins, environment: &Arc<RuntimeEnv>) -> Planned<Self> {
        let none = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let without = RuntimeEnv {
            memory_pool: environment.memory_pool.clone(),
            disk_manager: Arc::new(none.build()?),
            cache_manager: environment.cache_manager.clone(),
            object_store_registry: environment.object_store_registry.clone(),
        };
        Ok(Self {
            joins,
            with_files: environment.clone(),
            without: Arc::new(without),
        })
    }

    fn fitted(&self, step: Arc<dyn ExecutionPlan>) -> Planned<Transformed<Arc<dyn ExecutionPlan>>> {
        let Some(join) = step.downcast_ref::<NestedLoopJoinExec>() else {
            return Ok(Transformed::no(step));
        };
        let (left, right) = (join.left().clone(), join.right().clone());
        let parts = right.output_partitioning().partition_count();
        let side = known_at_the_end(*join.join_type());
        // NL3, of the side that files would be of.
        let may = match side {
            End::None | End::Left => runs_again(&left),
            End::Right => runs_again(&right),
            End::Both => false,
        };
        match side {
            End::None if may => return Ok(Transformed::no(step)),
            End::Left if may && parts < 2 => return Ok(Transformed::no(step)),
            End::Left | End::Right if may && self.joins == Joins::Sorted => {
                let together = match parts < 2 {
                    true => step.clone(),
                    false => {
                        let right = Arc::new(CoalescePartitionsExec::new(right));
                        with_children(&step, vec![left, right])?
                    }
                };
                let turned = together.downcast_ref::<NestedLoopJoinExec>();
                let turned = match turned.filter(|_| side == End::Right) {
                    Some(join) => join.swap_inputs()?,
                    None => together,
                };
                return parted_as(&step, turned).map(Transformed::yes);
            }
            End::None | End::Left | End::Right | End::Both => {}
        }
        let files = |input| -> Arc<dyn ExecutionPlan> {
            let environment = self.with_files.clone();
            Arc::new(Within { input, environment })
        };
        let input = with_children(&step, vec![files(left), files(right)])?;
        let environment = self.without.clone();
        Ok(Transformed::yes(Arc::new(Within { input, environment })))
    }
}

/// Whether a step gives the same rows when it is run once more (NL3).
fn runs_again(step: &Arc<dyn ExecutionPlan>) -> bool {
    let own = step.is::<ReadRows>()
        || step.is::<DataSourceExec>()
        || step.is::<FilterExec>()
        || step.is::<ProjectionExec>()
        || step.is::<CoalescePartitionsExec>()
        || step.is::<CooperativeExec>()
        // With a limit it would leave out what the first run knew to be too late.
        || (step.downcast_ref::<SortExec>()).is_some_and(|sort| sort.fetch().is_none())
        || step.is::<AggregateExec>();
    own && step.children().into_iter().all(runs_again)
}

/// What stands above may count on it that rows come in parts by their keys, as the join handed them on before (it hands on its right side's).
fn parted_as(
    before: &Arc<dyn ExecutionPlan>,
    step: Arc<dyn ExecutionPlan>,
) -> Planned<Arc<dyn ExecutionPlan>> {
    let parts = before.output_partitioning();
    let fits = parts.partition_count() == step.output_partitioning().partition_count();
    match parts {
        Partitioning::Hash(..) if !fits => {
            let parted = RepartitionExec::try_new(step, parts.clone())?;
            Ok(Arc::new(parted))
        }
        _ => Ok(step),
    }
}

/// The side of whose rows a join hands on some when it knows all of the other one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    None,
    Left,
    Right,
    Both,
}

fn known_at_the_end(join: JoinType) -> End {
    match join {
        JoinType::Inner => End::None,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => End::Left,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            End::Right
        }
        JoinType::Full => End::Both,
    }
}

/// Whether a scan of a plan may be read more than once (NL2).
pub(crate) fn reads_again(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let own = plan.downcast_ref::<NestedLoopJoinExec>();
    own.is_some_and(|join| scans_of(join.left()) > 0)
        || plan.children().into_iter().any(reads_again)
}

impl PhysicalOptimizerRule for FitLoops {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|step| self.fitted(step)).data()
    }

    fn name(&self) -> &'static str {
        "fit_loops"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A step that is run in an environment of its own.
#[derive(Debug)]
pub(crate) struct Within {
    pub input: Arc<dyn ExecutionPlan>,
    environment: Arc<RuntimeEnv>,
}

impl DisplayAs for Within {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Within")
    }
}

impl ExecutionPlan for Within {
    fn name(&self) -> &'static str {
        "Within"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
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
            Some(input) => Arc::new(Self {
                input,
                environment: self.environment.clone(),
            }),
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
        let context = TaskContext::new(
            context.task_id(),
            context.session_id(),
            context.session_config().clone(),
            context.scalar_functions().clone(),
            context.higher_order_functions().clone(),
            context.aggregate_functions().clone(),
            context.window_functions().clone(),
            self.environment.clone(),
        );
        self.input.execute(partition, Arc::new(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int32Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::JoinSide;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, Column};
    use datafusion::physical_plan::collect;
    use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
    use datafusion::prelude::SessionConfig;

    const LEFT_ROWS: i32 = 40_000;
    const RIGHT_ROWS: i32 = 8;
    const PARTS: i32 = 4;

    /// The numbers from 0 on in so many parts.
    fn side(name: &str, rows: i32, parts: i32) -> Planned<Arc<dyn ExecutionPlan>> {
        let schema = Arc::new(Schema::new(vec![Field::new(name, DataType::Int32, false)]));
        let mut made = Vec::new();
        for part in 0..parts {
            // As those that scans make: some of them fit into memory.
            let numbers: Vec<i32> = (0..rows).filter(|n| n % parts == part).collect();
            let batches = numbers.chunks(1000).map(|chunk| {
                let column: ArrayRef = Arc::new(Int32Array::from(chunk.to_vec()));
                Ok(RecordBatch::try_new(schema.clone(), vec![column])?)
            });
            made.push(batches.collect::<Planned<Vec<_>>>()?);
        }
        Ok(MemorySourceConfig::try_new_exec(&made, schema, None)?)
    }

    /// Left rows that have a smaller row on the right, and others.
    fn join(kind: JoinType) -> Planned<Arc<dyn ExecutionPlan>> {
        let (left, right) = (side("l", LEFT_ROWS, 1)?, side("r", RIGHT_ROWS, PARTS)?);
        let field = |name: &str| Field::new(name, DataType::Int32, false);
        let schema = Schema::new(vec![field("l"), field("r")]);
        let (l, r) = (Arc::new(Column::new("l", 0)), Arc::new(Column::new("r", 1)));
        let condition = BinaryExpr::new(l, Operator::Lt, r);
        let index = |side| ColumnIndex { index: 0, side };
        let columns = vec![index(JoinSide::Left), index(JoinSide::Right)];
        let filter = JoinFilter::new(Arc::new(condition), columns, Arc::new(schema));
        let join = NestedLoopJoinExec::try_new(left, right, Some(filter), &kind, None)?;
        Ok(Arc::new(join))
    }

    fn rows(kind: JoinType) -> usize {
        let (left, right) = (LEFT_ROWS as usize, RIGHT_ROWS as usize);
        // Of the rows that have a partner.
        let (matched, pairs) = (right - 1, right * (right - 1) / 2);
        match kind {
            JoinType::LeftSemi => matched,
            JoinType::LeftAnti => left - matched,
            JoinType::LeftMark => left,
            JoinType::Left => left - matched + pairs,
            // The least of the right one has none.
            JoinType::Right => pairs + 1,
            JoinType::RightSemi => right - 1,
            JoinType::RightAnti => 1,
            JoinType::RightMark => right,
            _ => left - matched + pairs + 1,
        }
    }

    #[test]
    fn regress_a_join_in_files_hands_on_each_row_once() -> Planned<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let directory = tempfile::tempdir()?;
        for kind in [
            JoinType::Left,
            JoinType::LeftSemi,
            JoinType::LeftAnti,
            JoinType::LeftMark,
            JoinType::Right,
            JoinType::RightSemi,
            JoinType::RightAnti,
            JoinType::RightMark,
            JoinType::Full,
        ] {
            let in_files = kind != JoinType::Full;
            for (joins, memory, fits) in [
                (Joins::Hashed, 100_000, false),
                (Joins::Hashed, 10 << 20, true),
                (Joins::Sorted, 100_000, in_files),
            ] {
                let mode = DiskManagerMode::Directories(vec![directory.path().to_path_buf()]);
                let environment = RuntimeEnvBuilder::new()
                    .with_memory_pool(Arc::new(GreedyMemoryPool::new(memory)))
                    .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
                    .build_arc()?;
                let rule = FitLoops::new(joins, &environment)?;
                let plan = rule.optimize(join(kind)?, &ConfigOptions::default())?;
                let config = SessionConfig::new().with_batch_size(1000);
                let context = TaskContext::default()
                    .with_session_config(config)
                    .with_runtime(environment);
                match runtime.block_on(collect(plan, Arc::new(context))) {
                    Ok(done) => {
                        let found: usize = done.iter().map(RecordBatch::num_rows).sum();
                        assert_eq!((found, fits), (rows(kind), true), "{kind}, {joins:?}");
                    }
                    Err(error) => {
                        let error = crate::Error::from(error);
                        let memory = matches!(error, crate::Error::Memory(_));
                        assert!(memory && !fits, "{kind}, {joins:?}: {error}");
                    }
                }
            }
        }
        Ok(())
    }
}
