//! Rows that windows keep, counted as memory of the statement.
//!
//! A function whose frame ends behind its row is computed when all rows have come: DataFusion 55 keeps them (`WindowAggExec`), makes one batch of them, and counts neither. So a step below it counts each batch
//! twice ([`Counted`]), and one above it keeps what was counted until the rows have gone ([`Holding`]): the step itself drops what stands below before it computes.
//!
//! Not here: files. What does not fit fails.

use crate::keys::with_children;
use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as Planned, Statistics};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PlanProperties,
};
use futures::StreamExt as _;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How many times rows are there while functions are computed: as they came, and as one batch.
const TIMES: usize = 2;

/// What the parts of a step keep.
type Parts = Arc<[Mutex<Option<Arc<MemoryReservation>>>]>;

/// The step with its rows counted, if it keeps rows that nobody counts.
pub(crate) fn counted(step: Arc<dyn ExecutionPlan>) -> Planned<Arc<dyn ExecutionPlan>> {
    if !step.is::<WindowAggExec>() {
        return Ok(step);
    }
    let children: Vec<Arc<dyn ExecutionPlan>> = step.children().into_iter().cloned().collect();
    let Ok([input]) = <[_; 1]>::try_from(children) else {
        return datafusion::common::internal_err!("windows over several steps");
    };
    let count = input.output_partitioning().partition_count();
    let parts: Parts = (0..count).map(|_| Mutex::default()).collect();
    let counted = Arc::new(Counted {
        input,
        parts: parts.clone(),
    });
    let input = with_children(&step, vec![counted])?;
    Ok(Arc::new(Holding { input, parts }))
}

/// Bytes that the rows of a batch take, without what else lies in its buffers.
fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter().map(|column| {
        let texts = match column.data_type() {
            DataType::Utf8View => column.as_string_view().total_buffer_bytes_used(),
            DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used(),
            _ => return column.to_data().get_slice_memory_size().unwrap_or(0),
        };
        texts + column.len() * size_of::<u128>()
    });
    columns.sum()
}

/// The rows of its input as they come, counted.
#[derive(Debug)]
struct Counted {
    input: Arc<dyn ExecutionPlan>,
    parts: Parts,
}

/// The rows of its input as they come; what was counted below it goes with the last of them.
#[derive(Debug)]
struct Holding {
    input: Arc<dyn ExecutionPlan>,
    parts: Parts,
}

impl Counted {
    fn rows(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Planned<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(format!("WindowAggExec[{partition}]"));
        let kept = Arc::new(consumer.register(context.memory_pool()));
        if let Some(part) = self.parts.get(partition) {
            *part.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept.clone());
        }
        let batches = self.input.execute(partition, context)?;
        let schema = batches.schema();
        let batches = batches.map(move |batch| {
            let batch = batch?;
            kept.try_grow(TIMES * bytes_of(&batch))?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

impl Holding {
    fn rows(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Planned<SendableRecordBatchStream> {
        let batches = self.input.execute(partition, context)?;
        let schema = batches.schema();
        let part = self.parts.get(partition);
        let kept = part.and_then(|part| part.lock().unwrap_or_else(PoisonError::into_inner).take());
        let batches = batches.map(move |batch| {
            let _held = &kept;
            batch
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

macro_rules! handing_on {
    ($step:ident, $name:literal) => {
        impl DisplayAs for $step {
            fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }
        }

        impl ExecutionPlan for $step {
            fn name(&self) -> &'static str {
                $name
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
                        parts: self.parts.clone(),
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
                self.rows(partition, context)
            }
        }
    };
}

handing_on!(Counted, "Counted");
handing_on!(Holding, "Kept");
