//! Keys of a join, told to the scan of its other side: rows that find no partner are left out where they are read.
//!
//! A hash join keeps its left side in memory before it asks its right side for a row. [`Collected`], above the left side, notes the keys that come by in a set of
//! bits ([`JoinKeys`]); when all of them have, the scans below the right side ask it about each row, before the row's columns go anywhere.
//!
//! Invariants:
//! - K1 A set says no only of keys that have not come: several keys may share a bit, and until all have come it says yes to everything. So a row
//!   that is left out has no partner.
//! - K2 Rows are left out only where the join gives nothing for them, and nothing between scan and join makes anything else of a missing row ([`below`]): it
//!   hands rows on by the one, or groups them by the key, and calls nothing that counts its calls.
//! - K3 What has sets is run once. They would be those of the run before where a plan runs parts of itself again: `WITH RECURSIVE`, and the left side of a join by nested loops that does not
//!   fit into memory (`loops`). A part that has ended there twice would stand for one that has not ended.
//!
//! Concurrency: the parts of a left side note keys at the same time, scans ask from threads of their own. Who has noted the last key publishes the
//! set ([`JoinKeys::part_ended`]).

use crate::scan::ReadRows;
use arrow::array::{Array as _, ArrayRef, PrimitiveArray};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Int16Type, Int32Type, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{JoinType, Result as Planned, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PlanProperties,
};
use futures::StreamExt as _;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Bits of a set, as a power of two: 1 MiB, which stays in a processor's caches.
const BITS: u32 = 23;
/// Rows after which a scan looks whether a set is worth its while.
const TRIAL: u32 = 4096;

/// The keys of a join's left side.
#[derive(Debug)]
pub(crate) struct JoinKeys {
    /// Made when the first key comes.
    bits: OnceLock<Box<[AtomicU64]>>,
    /// Parts of the left side that have not ended.
    parts: AtomicUsize,
}

impl JoinKeys {
    fn new(parts: usize) -> Self {
        Self {
            bits: OnceLock::new(),
            parts: AtomicUsize::new(parts),
        }
    }

    /// The word and the bit of a key. Neighbours have bits of their own: keys are mostly dense.
    #[inline]
    fn place(key: i64) -> (usize, u64) {
        let key = key as u64;
        let folded = (key ^ (key >> BITS) ^ (key >> (2 * BITS))) & ((1 << BITS) - 1);
        ((folded >> 6) as usize, 1 << (folded & 63))
    }

    /// False if they are not of a type that keys have.
    fn note_all(&self, keys: &ArrayRef) -> bool {
        self.note_array::<Int16Type>(keys)
            || self.note_array::<Int32Type>(keys)
            || self.note_array::<Int64Type>(keys)
    }

    fn note_array<T>(&self, keys: &ArrayRef) -> bool
    where
        T: ArrowPrimitiveType<Native: Into<i64>>,
    {
        let keys: &dyn std::any::Any = keys.as_any();
        let Some(keys) = keys.downcast_ref::<PrimitiveArray<T>>() else {
            return false;
        };
        let words = || (0..1 << (BITS - 6)).map(|_| AtomicU64::new(0)).collect();
        let bits = self.bits.get_or_init(words);
        // A null finds no partner here, or is no key that a scan asks about.
        for key in keys.iter().flatten() {
            let (word, bit) = Self::place(key.into());
            // Relaxed, here and below: `part_ended` and `is_complete` order. Mostly the bit is there: many rows have a key.
            if bits[word].load(Ordering::Relaxed) & bit == 0 {
                bits[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
        true
    }

    /// A part of the left side has come to its end.
    fn part_ended(&self) {
        // Pairs with `is_complete`: with the count come the bits of all parts.
        self.parts.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether all keys have come.
    pub fn is_complete(&self) -> bool {
        self.parts.load(Ordering::Acquire) == 0
    }

    /// Whether a key may have come (K1); only once all have.
    #[inline]
    pub fn may_have(&self, key: i64) -> bool {
        let (word, bit) = Self::place(key);
        // Without any nothing is there.
        let bits = self.bits.get();
        bits.is_some_and(|bits| bits[word].load(Ordering::Relaxed) & bit != 0)
    }
}

/// What a scan asks about its rows.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Which of the scan's columns is the key.
    pub column: usize,
    keys: Arc<JoinKeys>,
    /// All keys had come when the batch at hand was begun.
    is_ready: bool,
    /// Rows that were asked about, and those that stay.
    asked: u32,
    stay: u32,
}

impl Asked {
    fn new(column: usize, keys: Arc<JoinKeys>) -> Self {
        Self {
            column,
            keys,
            is_ready: false,
            asked: 0,
            stay: 0,
        }
    }

    /// A batch is begun; false if asking costs more than it saves, since so many rows stay.
    pub fn begin(&mut self) -> bool {
        self.is_ready = self.keys.is_complete();
        self.asked < TRIAL || self.stay <= self.asked / 8 * 7
    }

    /// Whether a row with this key may have a partner.
    #[inline]
    pub fn may_have(&mut self, key: i64) -> bool {
        if !self.is_ready {
            return true;
        }
        let may = self.keys.may_have(key);
        self.asked = self.asked.saturating_add(1);
        self.stay = self.stay.saturating_add(may.into());
        may
    }
}

/// Puts [`Collected`] above the left sides of joins whose right sides have scans that may ask.
#[derive(Debug)]
pub(crate) struct TellKeys;

impl PhysicalOptimizerRule for TellKeys {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let recursive = plan.exists(|step| Ok(step.is::<RecursiveQueryExec>()))?;
        if recursive {
            return Ok(plan);
        }
        told_within(plan)
    }

    fn name(&self) -> &'static str {
        "tell_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with the keys of its joins told, where they may be (K3).
fn told_within(plan: Arc<dyn ExecutionPlan>) -> Planned<Arc<dyn ExecutionPlan>> {
    let looped = plan.is::<NestedLoopJoinExec>();
    let (mut children, mut any) = (Vec::new(), false);
    for (number, child) in plan.children().into_iter().enumerate() {
        let told = match looped && number == 0 {
            true => child.clone(),
            false => told_within(child.clone())?,
        };
        any |= !Arc::ptr_eq(child, &told);
        children.push(told);
    }
    told(match any {
        true => with_children(&plan, children)?,
        false => plan,
    })
}

/// A join with its keys told, if it can be.
fn told(plan: Arc<dyn ExecutionPlan>) -> Planned<Arc<dyn ExecutionPlan>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else {
        return Ok(plan);
    };
    // K2. Of the others each right row comes out, with a partner or without; a NOT IN asks whether there is any right row.
    let leaves_out = matches!(
        join.join_type(),
        JoinType::Inner
            | JoinType::Left
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
            | JoinType::RightSemi
    );
    if !leaves_out || join.null_aware {
        return Ok(plan);
    }
    let (mut left, mut right) = (join.left().clone(), join.right().clone());
    let mut any = false;
    for (own, other) in join.on() {
        let (Some(own), Some(other)) = (column_of(own), column_of(other)) else {
            continue;
        };
        let schema = left.schema();
        let whole = matches!(
            schema.field(own).data_type(),
            DataType::Int16 | DataType::Int32 | DataType::Int64
        );
        if !whole {
            continue;
        }
        let keys = Arc::new(JoinKeys::new(left.output_partitioning().partition_count()));
        if let Some(asking) = below(&right, other, &keys)? {
            right = asking;
            left = Arc::new(Collected {
                input: left,
                column: own,
                keys,
            });
            any = true;
        }
    }
    match any {
        true => with_children(&plan, vec![left, right]),
        false => Ok(plan),
    }
}

fn column_of(term: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    term.downcast_ref::<Column>().map(Column::index)
}

/// The step with other children.
pub(crate) fn with_children(
    plan: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Planned<Arc<dyn ExecutionPlan>> {
    #[allow(deprecated, reason = "its successor falls back on this one")]
    plan.clone().with_new_children(children)
}

/// The same plan, whose scan of this column asks about its rows; none if there is no such scan, or a step between does more with rows than
/// K2 allows.
fn below(
    plan: &Arc<dyn ExecutionPlan>,
    column: usize,
    keys: &Arc<JoinKeys>,
) -> Planned<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<ReadRows>() {
        let asked = Asked::new(column, keys.clone());
        let scan = scan.asking(asked);
        return Ok(scan.map(|scan| -> Arc<dyn ExecutionPlan> { Arc::new(scan) }));
    }
    // Which rows are the first ones depends on all.
    if plan.fetch().is_some() {
        return Ok(None);
    }
    // What counts how often it is called is called for each row.
    let mut calm = true;
    plan.apply_expressions(&mut |term| {
        calm &= !is_volatile(term);
        Ok(TreeNodeRecursion::Continue)
    })?;
    let Some((child, column)) = way_down(plan, column).filter(|_| calm) else {
        return Ok(None);
    };
    let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
    let Some(asking) = below(&children[child], column, keys)? else {
        return Ok(None);
    };
    children[child] = asking;
    Ok(Some(with_children(plan, children)?))
}

/// Which child of a step a column comes from, and which of its columns it is there.
fn way_down(plan: &Arc<dyn ExecutionPlan>, column: usize) -> Option<(usize, usize)> {
    let step = plan.as_ref();
    if step.is::<RepartitionExec>()
        || step.is::<CoalescePartitionsExec>()
        || step.is::<CooperativeExec>()
        || step.is::<Collected>()
    {
        return Some((0, column));
    }
    if let Some(filter) = step.downcast_ref::<FilterExec>() {
        let of_input = match filter.projection() {
            Some(projection) => *projection.get(column)?,
            None => column,
        };
        return Some((0, of_input));
    }
    if let Some(projection) = step.downcast_ref::<ProjectionExec>() {
        return Some((0, column_of(&projection.expr().get(column)?.expr)?));
    }
    if let Some(aggregate) = step.downcast_ref::<AggregateExec>() {
        // A group has all rows with its key or none. With several sets of groups a key is missing in some of them.
        let groups = aggregate.group_expr();
        if !groups.is_single() || aggregate.limit_options().is_some() {
            return None;
        }
        return Some((0, column_of(&groups.expr().get(column)?.0)?));
    }
    if let Some(join) = step.downcast_ref::<HashJoinExec>() {
        let of_both = match &join.projection {
            Some(projection) => *projection.get(column)?,
            None => column,
        };
        let left = join.left().schema().fields().len();
        return match join.join_type() {
            JoinType::Inner if of_both < left => Some((0, of_both)),
            JoinType::Inner => Some((1, of_both - left)),
            // Only rows of the left side come out, each by itself.
            JoinType::LeftSemi | JoinType::LeftAnti if !join.null_aware => Some((0, of_both)),
            JoinType::RightSemi => Some((1, of_both)),
            _ => None,
        };
    }
    None
}

/// Hands on what comes, and notes the keys in it.
#[derive(Debug)]
pub(crate) struct Collected {
    input: Arc<dyn ExecutionPlan>,
    column: usize,
    keys: Arc<JoinKeys>,
}

impl DisplayAs for Collected {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        write!(f, "Keys: {}", schema.field(self.column).name())
    }
}

impl ExecutionPlan for Collected {
    fn name(&self) -> &'static str {
        "Keys"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        Ok(Arc::new(Self {
            input: children.swap_remove(0),
            column: self.column,
            keys: self.keys.clone(),
        }))
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
        let (keys, column) = (self.keys.clone(), self.column);
        let state = Some(batches);
        let noted = futures::stream::unfold(state, move |batches| {
            let keys = keys.clone();
            async move {
                let mut batches = batches?;
                match batches.next().await {
                    Some(Ok(batch)) => {
                        // What cannot be noted is never complete.
                        let noted = keys.note_all(batch.column(column));
                        debug_assert!(noted, "of a type that was looked at");
                        Some((Ok(batch), Some(batches)))
                    }
                    Some(Err(error)) => Some((Err(error), None)),
                    None => {
                        keys.part_ended();
                        None
                    }
                }
            }
        });
        let schema = self.input.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, noted)))
    }
}
