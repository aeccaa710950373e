//! Steps that keep rows, and have them go into files where they do not fit into memory.
//!
//! Texts lie in buffers that many rows refer to, and a batch counts with all buffers that one of its rows refers to. Joins and sorts hand on rows from everywhere: each of their
//! batches refers to all that they keep, and would count with all of it, again and again, in whoever keeps batches next. So such rows get buffers of their own ([`Compact`]) before they are
//! kept. And the first rows of an order are looked for by keeping them all; many are found by sorting, which needs no memory for them.

use crate::kept::counted;
use crate::keys::with_children;
use arrow::array::{Array as _, ArrayRef, AsArray as _, GenericByteViewArray, RecordBatch};
use arrow::datatypes::{ByteViewType, DataType};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, Result as Planned, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt as _;
use std::fmt;
use std::sync::Arc;

/// Bytes of memory of a statement for each row of the first rows of an order that are kept, if there are texts in it.
const ROW_BYTES: usize = 4096;
/// The same for each column of a row without texts.
const COLUMN_BYTES: usize = 64;

/// Bytes of buffers that a column of a batch may refer to without being looked at.
const SMALL_BYTES: usize = 64 << 10;

/// Has long tops sorted, puts [`Compact`] below what keeps the rows of joins and sorts, and counts what windows keep (`kept`).
#[derive(Debug)]
pub(crate) struct FitSorts {
    /// Of the statement.
    pub memory_bytes: usize,
}

impl PhysicalOptimizerRule for FitSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let fitted = |step: Arc<dyn ExecutionPlan>| {
            let step = counted(self.sorted(compacted(step)?))?;
            Ok(Transformed::yes(step))
        };
        plan.transform_up(fitted).data()
    }

    fn name(&self) -> &'static str {
        "fit_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl FitSorts {
    fn sorted(&self, step: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let bytes = match has_views(&step) {
            true => ROW_BYTES,
            false => COLUMN_BYTES * step.schema().fields().len().max(1),
        };
        let long = |rows: &usize| *rows > self.memory_bytes / bytes;
        match step.downcast_ref::<SortExec>() {
            Some(sort) => match sort.fetch().filter(long) {
                Some(rows) => Arc::new(LocalLimitExec::new(Arc::new(sort.with_fetch(None)), rows)),
                None => step,
            },
            None => step,
        }
    }
}

/// The step with [`Compact`] below where it keeps batches.
fn compacted(step: Arc<dyn ExecutionPlan>) -> Planned<Arc<dyn ExecutionPlan>> {
    let keeps = if let Some(join) = step.downcast_ref::<SortMergeJoinExec>() {
        // The other side comes by.
        usize::from(SortMergeJoinExec::probe_side(&join.join_type()) == JoinSide::Left)
    } else if is_join(&step)
        || step.is::<SortExec>()
        || step.is::<SortPreservingMergeExec>()
        || step.is::<WindowAggExec>()
    {
        0
    } else {
        return Ok(step);
    };
    let mut children: Vec<Arc<dyn ExecutionPlan>> = step.children().into_iter().cloned().collect();
    let Some(kept) = children.get_mut(keeps) else {
        return Ok(step);
    };
    if !has_views(kept) || !shares(kept) {
        return Ok(step);
    }
    let input = kept.clone();
    *kept = Arc::new(Compact { input });
    with_children(&step, children)
}

/// Whether its rows have texts.
fn has_views(step: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = step.schema();
    let mut types = schema.fields().iter().map(|field| field.data_type());
    types.any(|ty| matches!(ty, DataType::Utf8View | DataType::BinaryView))
}

pub(crate) fn is_join(step: &Arc<dyn ExecutionPlan>) -> bool {
    step.is::<HashJoinExec>()
        || step.is::<NestedLoopJoinExec>()
        || step.is::<CrossJoinExec>()
        || step.is::<SortMergeJoinExec>()
}

/// Whether batches that come out refer to buffers of each other.
fn shares(step: &Arc<dyn ExecutionPlan>) -> bool {
    if is_join(step) || step.is::<SortExec>() {
        return true;
    }
    // Groups are written anew.
    if step.is::<AggregateExec>() || step.is::<Compact>() {
        return false;
    }
    step.children().into_iter().any(shares)
}

/// The rows of its input as they come; a batch refers to no buffers of which it uses less than half.
#[derive(Debug)]
struct Compact {
    input: Arc<dyn ExecutionPlan>,
}

fn compact(batch: RecordBatch) -> Planned<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Utf8View => compact_column(column, column.as_string_view()),
            DataType::BinaryView => compact_column(column, column.as_binary_view()),
            _ => column.clone(),
        });
    let columns: Vec<ArrayRef> = columns.collect();
    match columns.is_empty() {
        true => Ok(batch),
        false => Ok(RecordBatch::try_new(batch.schema(), columns)?),
    }
}

fn compact_column<T: ByteViewType>(column: &ArrayRef, views: &GenericByteViewArray<T>) -> ArrayRef {
    let held: usize = views
        .data_buffers()
        .iter()
        .map(|buffer| buffer.capacity())
        .sum();
    if held <= SMALL_BYTES || held / 2 <= views.total_buffer_bytes_used() {
        return column.clone();
    }
    Arc::new(views.gc())
}

impl DisplayAs for Compact {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compact")
    }
}

impl ExecutionPlan for Compact {
    fn name(&self) -> &'static str {
        "Compact"
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
            Some(input) => Arc::new(Self { input }),
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
        let batches = self.input.execute(partition, context)?;
        let schema = batches.schema();
        let batches = batches.map(|batch| batch.and_then(compact));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
