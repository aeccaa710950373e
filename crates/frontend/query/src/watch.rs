//! Joins that look whether their statement is over.
//!
//! A join gives way when it has a batch of pairs, or wants one of rows. One whose condition is true of next to no pair has neither for as long as it goes through the pairs of a
//! batch with all rows of its other side: minutes, for which it would hold a processor that nobody asks it for any more. So its condition looks, batch by batch, and fails.

use crate::engine::Line;
use crate::error::{Error, carried};
use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, Result as Planned};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Puts [`Watched`] around the conditions of joins. It is to run last: what reads conditions would not know it.
#[derive(Debug)]
pub(crate) struct Watch(pub Line);

impl PhysicalOptimizerRule for Watch {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|step| self.watched(step)).data()
    }

    fn name(&self) -> &'static str {
        "watch"
    }

    fn schema_check(&self) -> bool {
        true
    }
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
        Batch, Engine, Failure, Flow, Host, Joined, Joins, Limits, Part, Relation, RowFunction,
        Symbols, Tables, Term,
    };
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

    #[test]
    fn a_join_whose_statement_is_over_ends_before_it_has_seen_all_pairs() -> crate::Result<()> {
        let symbols = Symbols::default();
        let rows: Vec<Vec<Value>> = (0..ROWS as i32).map(|row| vec![Value::Int4(row)]).collect();
        let left = Relation::values(&symbols, &[Type::Int4], &rows)?;
        let right = Relation::values(&symbols, &[Type::Int4], &rows)?;
        let ((begun, has_begun), (go_on, may_go_on)) = (channel(), channel());
        let never = Arc::new(Never {
            calls: AtomicUsize::new(0),
            begun: Mutex::new(begun),
            may_go_on: Mutex::new(may_go_on),
        });
        let arguments = vec![left.columns()[0].term(), right.columns()[0].term()];
        let condition = Term::call(&symbols, never.clone(), arguments, Type::Bool, false);
        let joined = left.join(right, Joined::Inner, vec![condition])?;
        let engine = Engine::new(64 << 20);
        let limits = Limits {
            memory_bytes: 16 << 20,
            joins: Joins::Hashed,
        };
        let (line, requests) = Line::new();
        let mut host = Impatient(has_begun);
        let ran = engine.run(&joined, (requests, line), limits, &mut host, Vec::new());
        assert_eq!(
            ran.map_err(|error| error.to_string()),
            Err("enough".to_owned())
        );
        assert!(go_on.send(()).is_ok());
        while !engine.is_idle() {
            std::thread::yield_now();
        }
        let calls = never.calls.load(Ordering::Relaxed);
        assert!(calls < ROWS * ROWS / 4, "{calls} calls");
        Ok(())
    }
}
