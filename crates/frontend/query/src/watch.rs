//! Steps that look whether their statement is over.
//!
//! A task ends where it gives way, and it does so only where a step has nothing to hand on, or has handed on so many batches that its turn is over (tokio's budget). DataFusion has those
//! look at the budget that read rows. But a join makes of one batch as many as it has rows on its other side, and a sort, groups and windows hand on what they have gathered: whoever reads these
//! always finds a batch ready, and a count of the pairs of two tables never gives way. So all of them look at the budget with each batch that they hand on.
//!
//! A join gives way when it has a batch of pairs, or wants one of rows. One whose condition is true of next to no pair has neither for as long as it goes through the pairs of a
//! batch with all rows of its other side: minutes, for which it would hold a processor that nobody asks it for any more. So its condition looks, batch by batch, and fails.
//!
//! A join that hands on rows of one side as the other has any or none, and whose condition reads nothing of that other side, if it has one, goes through the pairs, too, and has nothing to hand on
//! before the last one. It is given one row of that other side (of each part of it): there are no more pairs then than rows, and the answers are the same.

use crate::engine::Line;
use crate::error::{Error, carried};
use crate::keys::with_children;
use crate::sorts::is_join;
use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, Result as Planned};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Puts [`Watched`] around the conditions of joins, and has steps that make many batches of one give way. It is to run last: what reads conditions, or looks for steps, would
/// not know them.
#[derive(Debug)]
pub(crate) struct Watch(pub Line);

/// Has a join read one row of a side of which it asks only whether there are any.
fn asks_for_one(step: Arc<dyn ExecutionPlan>) -> Planned<Arc<dyn ExecutionPlan>> {
    let Some(join) = step.downcast_ref::<NestedLoopJoinExec>() else {
        return Ok(step);
    };
    let (asked, own) = match join.join_type() {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (1, JoinSide::Left),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (0, JoinSide::Right),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => return Ok(step),
    };
    let mut columns = join
        .filter()
        .into_iter()
        .flat_map(JoinFilter::column_indices);
    if columns.any(|column| column.side != own) {
        return Ok(step);
    }
    let mut children: Vec<Arc<dyn ExecutionPlan>> = step.children().into_iter().cloned().collect();
    if let Some(side) = children.get_mut(asked) {
        *side = Arc::new(LocalLimitExec::new(side.clone(), 1));
    }
    with_children(&step, children)
}

impl PhysicalOptimizerRule for Watch {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let watched = |step: Arc<dyn ExecutionPlan>| {
            let step = self.watched(asks_for_one(step)?)?;
            Ok(match makes_many(&step.data) {
                true => {
                    let yields: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(step.data));
                    Transformed::yes(yields)
                }
                false => step,
            })
        };
        plan.transform_up(watched).data()
    }

    fn name(&self) -> &'static str {
        "watch"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a step hands on batches without having read any in between.
fn makes_many(step: &Arc<dyn ExecutionPlan>) -> bool {
    is_join(step)
        || step.is::<AggregateExec>()
        || step.is::<SortExec>()
        || step.is::<SortPreservingMergeExec>()
        || step.is::<WindowAggExec>()
        || step.is::<BoundedWindowAggExec>()
}

impl Watch {
    fn watched(
        &self,
        step: Arc<dyn ExecutionPlan>,
    ) -> Planned<Transformed<Arc<dyn ExecutionPlan>>> {
        if let Some(join) = step.downcast_ref::<NestedLoopJoinExec>()
            && let Some(filter) = join.filter()
        {
            let left = join.left().clone();
            let right = join.right().clone();
            let filter = Some(self.filter(filter));
            let projection = join.projection().as_ref().map(|columns| columns.to_vec());
            let join =
                NestedLoopJoinExec::try_new(left, right, filter, join.join_type(), projection)?;
            return Ok(Transformed::yes(Arc::new(join)));
        }
        if let Some(join) = step.downcast_ref::<HashJoinExec>()
            && let Some(filter) = join.filter()
        {
            let watched = join.builder().with_filter(Some(self.filter(filter)));
            return Ok(Transformed::yes(watched.build_exec()?));
        }
        if let Some(join) = step.downcast_ref::<SortMergeJoinExec>()
            && let Some(filter) = join.filter()
        {
            let join = SortMergeJoinExec::try_new(
                join.left().clone(),
                join.right().clone(),
                join.on().to_vec(),
                Some(self.filter(filter)),
                join.join_type(),
                join.sort_options().to_vec(),
                join.null_equality(),
            )?;
            return Ok(Transformed::yes(Arc::new(join)));
        }
        Ok(Transformed::no(step))
    }

    fn filter(&self, filter: &JoinFilter) -> JoinFilter {
        let watched = Watched {
            condition: filter.expression().clone(),
            line: self.0.clone(),
        };
        let columns = filter.column_indices().to_vec();
        debug_assert!(
            columns.iter().all(|column| column.side != JoinSide::None),
            "a column of neither side"
        );
        JoinFilter::new(Arc::new(watched), columns, filter.schema().clone())
    }
}

/// A condition; it fails once the statement is over, which nobody is told then.
#[derive(Debug)]
struct Watched {
    condition: Arc<dyn PhysicalExpr>,
    line: Line,
}

// Two are the same if their conditions are: they are of one statement.
impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.condition, f)
    }
}

impl PhysicalExpr for Watched {
    fn return_field(&self, schema: &Schema) -> Planned<FieldRef> {
        self.condition.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Planned<ColumnarValue> {
        if self.line.is_over() {
            return Err(carried(Box::new(Error::internal(
                "the statement has ended",
            ))));
        }
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Planned<Arc<dyn PhysicalExpr>> {
        let condition = children.into_iter().next();
        Ok(Arc::new(Self {
            condition: condition.unwrap_or_else(|| self.condition.clone()),
            line: self.line.clone(),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Aggregate, Batch, Engine, Failure, Flow, Host, Joined, Joins, Limits, Part, Relation,
        RowFunction, SortKey, Symbols, Tables, Term,
    };
    use arrow::array::{ArrayRef, Int32Array};
    use arrow::datatypes::{DataType, Field, SchemaRef};
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_expr::expressions::IsNotNullExpr;
    use datafusion::physical_plan::joins::utils::ColumnIndex;
    use datafusion::physical_plan::{collect, displayable};
    use std::any::Any;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Mutex, PoisonError};
    use vellum_row::{Type, Value, ValueRef};

    const ROWS: usize = 3000;

    /// Is true of no pair, tells of the first one, and goes on when it may.
    #[derive(Debug)]
    struct Never {
        calls: AtomicUsize,
        begun: Mutex<Sender<()>>,
        may_go_on: Mutex<Receiver<()>>,
    }

    impl RowFunction for Never {
        fn call(&self, _: &[ValueRef<'_>]) -> std::result::Result<Value, Failure> {
            if self.calls.fetch_add(1, Ordering::Relaxed) == 0 {
                let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = begun.send(());
                let waits = self.may_go_on.lock();
                let _ = waits.unwrap_or_else(PoisonError::into_inner).recv();
            }
            Ok(Value::Bool(false))
        }
    }

    /// Has enough once a function has begun.
    struct Impatient(Receiver<()>);

    fn none<T>() -> std::result::Result<T, Failure> {
        Err("nothing is asked of it".into())
    }

    impl Tables for Impatient {
        fn open(
            &mut self,
            _: u64,
            _: usize,
            _: Part,
            _: &[usize],
            _: Option<usize>,
        ) -> std::result::Result<(), Failure> {
            none()
        }

        fn fill(&mut self, _: u64, _: &mut Batch) -> std::result::Result<(), Failure> {
            none()
        }

        fn close(&mut self, _: u64) {}
    }

    impl Host for Impatient {
        fn asked(&mut self, _: Box<dyn Any + Send>) {}

        fn row(&mut self, _: &[ValueRef<'_>]) -> std::result::Result<Flow, Failure> {
            none()
        }

        fn look(&mut self) -> std::result::Result<(), Failure> {
            match self.0.try_recv() {
                Ok(()) => Err("enough".into()),
                Err(_) => Ok(()),
            }
        }
    }

    const LIMITS: Limits = Limits {
        memory_bytes: 16 << 20,
        joins: Joins::Hashed,
    };

    fn numbers(symbols: &Symbols, rows: usize) -> crate::Result<Relation> {
        let rows: Vec<Vec<Value>> = (0..rows as i32).map(|row| vec![Value::Int4(row)]).collect();
        Relation::values(symbols, &[Type::Int4], &rows)
    }

    /// Runs what `made` makes with a function of [`Never`], whose statement is over once that has begun; how often it was called until nobody worked any more.
    fn calls_of(
        made: impl FnOnce(&Symbols, Arc<Never>) -> crate::Result<Relation>,
    ) -> crate::Result<usize> {
        let symbols = Symbols::default();
        let ((begun, has_begun), (go_on, may_go_on)) = (channel(), channel());
        let never = Arc::new(Never {
            calls: AtomicUsize::new(0),
            begun: Mutex::new(begun),
            may_go_on: Mutex::new(may_go_on),
        });
        let relation = made(&symbols, never.clone())?;
        let engine = Engine::new(64 << 20);
        let (line, requests) = Line::new();
        let mut host = Impatient(has_begun);
        let ran = engine.run(&relation, (requests, line), LIMITS, &mut host, Vec::new());
        assert_eq!(
            ran.map_err(|error| error.to_string()),
            Err("enough".to_owned())
        );
        assert!(go_on.send(()).is_ok());
        while !engine.is_idle() {
            std::thread::yield_now();
        }
        Ok(never.calls.load(Ordering::Relaxed))
    }

    #[test]
    fn a_join_whose_statement_is_over_ends_before_it_has_seen_all_pairs() -> crate::Result<()> {
        let calls = calls_of(|symbols, never| {
            let (left, right) = (numbers(symbols, ROWS)?, numbers(symbols, ROWS)?);
            let arguments = vec![left.columns()[0].term(), right.columns()[0].term()];
            let condition = Term::call(symbols, never, arguments, Type::Bool, false);
            left.join(right, Joined::Inner, vec![condition])
        })?;
        assert!(calls < ROWS * ROWS / 4, "{calls} calls");
        Ok(())
    }

    #[test]
    fn a_count_of_all_pairs_whose_statement_is_over_ends_before_it_has_counted_them()
    -> crate::Result<()> {
        let calls = calls_of(|symbols, never| {
            let (left, right) = (numbers(symbols, ROWS)?, numbers(symbols, ROWS)?);
            let arguments = vec![left.columns()[0].term(), right.columns()[0].term()];
            let pairs = left.join(right, Joined::Inner, Vec::new())?;
            let asked = Term::call(symbols, never, arguments, Type::Bool, false);
            pairs.group(symbols, Vec::new(), vec![Aggregate::count(asked)])
        })?;
        assert!(calls < ROWS * ROWS / 4, "{calls} calls");
        Ok(())
    }

    #[test]
    fn a_sort_whose_statement_is_over_ends_before_it_has_handed_on_its_rows() -> crate::Result<()> {
        let rows = 1_000_000;
        let calls = calls_of(|symbols, never| {
            let all = numbers(symbols, rows)?;
            let key = SortKey {
                term: all.columns()[0].term(),
                descending: true,
                nulls_first: false,
            };
            let arguments = vec![all.columns()[0].term()];
            let sorted = all.sort(symbols, vec![key])?.limit(0, Some(rows as u64))?;
            let asked = Term::call(symbols, never, arguments, Type::Bool, false);
            sorted.group(symbols, Vec::new(), vec![Aggregate::count(asked)])
        })?;
        assert!(calls < rows, "{calls} calls");
        Ok(())
    }

    /// So many rows of one column, whose name tells them from the other side's.
    fn side(name: &str, rows: i32) -> Planned<Arc<dyn ExecutionPlan>> {
        let schema = Arc::new(Schema::new(vec![Field::new(name, DataType::Int32, false)]));
        let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
        let batch = RecordBatch::try_new(schema.clone(), vec![column])?;
        let source = MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None)?;
        Ok(source)
    }

    #[test]
    fn a_join_that_asks_whether_there_are_rows_reads_one() -> crate::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(Error::internal)?;
        let (left_rows, right_rows) = (20_000, 30_000);
        for (kind, answers, without) in [
            (JoinType::LeftSemi, left_rows, 0),
            (JoinType::LeftAnti, 0, left_rows),
            (JoinType::LeftMark, left_rows, left_rows),
            (JoinType::RightSemi, right_rows, 0),
            (JoinType::RightAnti, 0, right_rows),
            (JoinType::RightMark, right_rows, right_rows),
        ] {
            let of_left = matches!(
                kind,
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
            );
            // None; of the own side, which is true of all; of the other side, too.
            for condition in 0..3 {
                for (none, expected) in [(false, answers), (true, without)] {
                    let rows = |own, other: bool| if none && other { 0 } else { own };
                    let left = side("l", rows(left_rows, !of_left))?;
                    let right = side("r", rows(right_rows, of_left))?;
                    let own = match of_left {
                        true => (JoinSide::Left, left.schema()),
                        false => (JoinSide::Right, right.schema()),
                    };
                    let other = match of_left {
                        true => (JoinSide::Right, right.schema()),
                        false => (JoinSide::Left, left.schema()),
                    };
                    let filter = match condition {
                        0 => None,
                        1 => Some(filter_of(own)),
                        _ => Some(filter_of(other)),
                    };
                    let join = NestedLoopJoinExec::try_new(left, right, filter, &kind, None)?;
                    let rule = Watch(Line::new().0);
                    let plan = rule.optimize(Arc::new(join), &ConfigOptions::default())?;
                    let shown = displayable(&*plan).indent(false).to_string();
                    let limits = shown.matches("LocalLimitExec").count();
                    assert_eq!(limits, usize::from(condition < 2), "{shown}");
                    if condition == 2 {
                        continue;
                    }
                    let done = runtime.block_on(collect(plan, Arc::default()))?;
                    let found: usize = done.iter().map(RecordBatch::num_rows).sum();
                    assert_eq!(found, expected as usize, "{kind}, {condition}, {none}");
                }
            }
        }
        Ok(())
    }

    /// The only column of a side is not null.
    fn filter_of((side, schema): (JoinSide, SchemaRef)) -> JoinFilter {
        let column = Arc::new(datafusion::physical_expr::expressions::Column::new("c", 0));
        let condition = Arc::new(IsNotNullExpr::new(column));
        let field = schema.field(0).clone().with_name("c");
        let index = ColumnIndex { index: 0, side };
        JoinFilter::new(condition, vec![index], Arc::new(Schema::new(vec![field])))
    }
}
