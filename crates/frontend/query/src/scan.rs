//! Tables whose rows the host reads: batch by batch, when an operator wants them.
//!
//! Concurrency: an operator asks through the statement's [`Line`] and is woken by the answer. The next batch is asked for when one
//! has come, so that the host reads while the operators work. A table that is read in parts has one operator a part, and parts have readers
//! beside the host.

use crate::batch::{Batch, schema};
use crate::engine::{Line, Request, Tables};
use crate::error::{Failure, Result, carried};
use crate::keys::Asked;
use crate::term::Column;
use crate::types::Kind;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as Planned, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;
use vellum_base::maps::HashMap;
use vellum_row::Type;

/// A table that is to be scanned.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// Where its rows are asked for.
    pub line: Line,
    /// What the host knows it by.
    pub source: usize,
    /// What people know it by.
    pub name: String,
    /// The types of its columns.
    pub kinds: Vec<Kind>,
    /// What it is expected to yield.
    pub expected: Option<Expected>,
    /// In how many parts it is read at a time.
    pub parts: usize,
}

/// One of several parts of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its number, from 0 on.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// About how many rows a scan yields.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Rows.
    pub rows: usize,
    /// Of each column how many different values, if that is known.
    pub distinct: Vec<Option<usize>>,
}

/// A table as DataFusion knows it.
#[derive(Debug)]
pub(crate) struct Rows {
    scanned: Scanned,
    schema: SchemaRef,
}

impl Rows {
    pub fn new(scanned: Scanned, columns: &[Column]) -> Self {
        let schema = schema(columns.iter().map(|column| (column.name(), column.kind())));
        Self { scanned, schema }
    }

    fn counted(&self, schema: &SchemaRef, columns: &[usize]) -> Option<Statistics> {
        let expected = self.scanned.expected.as_ref()?;
        let mut statistics = Statistics::new_unknown(schema);
        statistics.num_rows = Precision::Inexact(expected.rows);
        for (known, column) in statistics.column_statistics.iter_mut().zip(columns) {
            if let Some(Some(distinct)) = expected.distinct.get(*column) {
                known.distinct_count = Precision::Inexact(*distinct);
            }
        }
        Some(statistics)
    }
}

#[async_trait::async_trait]
impl TableProvider for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.scanned.kinds.len()).collect();
        let columns: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let schema = Arc::new(self.schema.project(&columns)?);
        let statistics = self.counted(&schema, &columns);
        let statistics = statistics.unwrap_or_else(|| Statistics::new_unknown(&schema));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(self.scanned.parts),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(ReadRows {
            scanned: self.scanned.clone(),
            columns,
            limit,
            schema,
            statistics: Arc::new(statistics),
            properties: Arc::new(properties),
            asked: Vec::new(),
            begun: begun(self.scanned.parts),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn statistics(&self) -> Option<Statistics> {
        let all: Vec<usize> = (0..self.scanned.kinds.len()).collect();
        self.counted(&self.schema, &all)
    }
}

/// A scan of a table.
#[derive(Debug)]
pub(crate) struct ReadRows {
    scanned: Scanned,
    columns: Vec<usize>,
    limit: Option<usize>,
    schema: SchemaRef,
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
    /// What is asked about each row before its columns are taken.
    asked: Vec<Asked>,
    /// Whether its parts have been begun.
    begun: Vec<AtomicBool>,
    metrics: ExecutionPlanMetricsSet,
}

/// Of so many parts, none of which has been begun.
fn begun(parts: usize) -> Vec<AtomicBool> {
    (0..parts).map(|_| AtomicBool::new(false)).collect()
}

impl ReadRows {
    /// The same scan, which asks about its rows, too; none if it is of a small table, or the column is none of whole numbers.
    pub fn asking(&self, more: Asked) -> Option<Self> {
        let kind = self.scanned.kinds.get(*self.columns.get(more.column)?)?;
        let whole = matches!(kind.ty, Type::Int2 | Type::Int4 | Type::Int8);
        if self.scanned.parts < 2 || self.limit.is_some() || !whole {
            return None;
        }
        let mut asked = self.asked.clone();
        asked.push(more);
        Some(Self {
            scanned: self.scanned.clone(),
            columns: self.columns.clone(),
            limit: None,
            schema: self.schema.clone(),
            statistics: self.statistics.clone(),
            properties: self.properties.clone(),
            asked,
            begun: begun(self.scanned.parts),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl DisplayAs for ReadRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scan: {}, columns={:?}", self.scanned.name, self.columns)?;
        if self.scanned.parts > 1 {
            write!(f, ", parts={}", self.scanned.parts)?;
        }
        for asked in &self.asked {
            let name = self.schema.field(asked.column).name();
            write!(f, ", {name} in keys")?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ReadRows {
    fn name(&self) -> &str {
        "Scan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Planned<TreeNodeRecursion>,
    ) -> Planned<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn partition_statistics(&self, _: Option<usize>) -> Planned<Arc<Statistics>> {
        Ok(self.statistics.clone())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Planned<SendableRecordBatchStream> {
        let line = self.scanned.line.clone();
        // Relaxed: whether it was counted before, which orders nothing.
        let again = |begun: &AtomicBool| begun.swap(true, Ordering::Relaxed);
        if self.begun.get(partition).is_some_and(again) {
            line.shared.unread.fetch_add(1, Ordering::Relaxed);
        }
        let scan = line.number();
        let kinds = self.columns.iter();
        let kinds = kinds.map(|column| self.scanned.kinds[*column]);
        let part = Part {
            number: partition,
            of: self.scanned.parts,
        };
        let open = Request::Open {
            scan,
            source: self.scanned.source,
            part,
            columns: self.columns.clone(),
            kinds: kinds.collect(),
            schema: self.schema.clone(),
            limit: self.limit,
            asked: self.asked.clone(),
        };
        line.send_reader(part, open);
        let scan = OpenScan { line, part, scan };
        let first = scan.ask();
        let counted = BaselineMetrics::new(&self.metrics, partition);
        let start = Some((scan, first, counted));
        let batches = futures::stream::unfold(start, async |state| {
            let (scan, answer, counted) = state?;
            match answer.await {
                Ok(Ok(Some(batch))) => {
                    counted.record_output(batch.num_rows());
                    let next = scan.ask();
                    Some((Ok(batch), Some((scan, next, counted))))
                }
                Ok(Ok(None)) => None,
                Ok(Err(failure)) => Some((Err(carried(failure)), None)),
                // Nobody listens any more: the statement has ended.
                Err(_) => None,
            }
        });
        let adapter = RecordBatchStreamAdapter::new(self.schema.clone(), batches);
        Ok(Box::pin(adapter))
    }
}

/// How many parts of tables a plan reads.
pub(crate) fn scans_of(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.downcast_ref::<ReadRows>();
    let below = plan.children().into_iter().map(scans_of).sum::<usize>();
    own.map_or(0, |scan| scan.scanned.parts) + below
}

/// What a host answers: a batch, or that there are no more.
pub(crate) type Answer = std::result::Result<Option<RecordBatch>, Failure>;

/// A scan that the host has open.
struct OpenScan {
    line: Line,
    part: Part,
    scan: u64,
}

impl OpenScan {
    fn ask(&self) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        let scan = self.scan;
        self.line
            .send_reader(self.part, Request::Read { scan, reply });
        answer
    }
}

impl Drop for OpenScan {
    fn drop(&mut self) {
        // Release: it is done with. A stream counts once, and each further one of its part has been added.
        let unread = &self.line.shared.unread;
        let _ = unread.fetch_update(Ordering::Release, Ordering::Relaxed, |parts| {
            parts.checked_sub(1)
        });
        let close = Request::Close { scan: self.scan };
        self.line.send_reader(self.part, close);
    }
}

/// The scans that who reads tables has open.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    open: HashMap<u64, Reading>,
}

#[derive(Debug)]
struct Reading {
    kinds: Vec<Kind>,
    schema: SchemaRef,
    asked: Vec<Asked>,
    /// Why it could not be opened.
    failure: Option<Failure>,
}

impl Scans {
    /// Opens, reads or closes. Who reads is told what failed.
    pub fn serve<T: Tables + ?Sized>(&mut self, tables: &mut T, request: Request) {
        match request {
            Request::Open {
                scan,
                source,
                part,
                columns,
                kinds,
                schema,
                limit,
                asked,
            } => {
                let opened = tables.open(scan, source, part, &columns, limit);
                let reading = Reading {
                    kinds,
                    schema,
                    asked,
                    failure: opened.err(),
                };
                self.open.insert(scan, reading);
            }
            Request::Read { scan, reply } => {
                // Who has enough hears nothing, also of what failed.
                let _ = reply.send(self.read(tables, scan));
            }
            Request::Close { scan } => {
                self.open.remove(&scan);
                tables.close(scan);
            }
            Request::Ask(_) | Request::Output(..) | Request::End | Request::Done(_) => {}
        }
    }

    /// The next batch of a scan.
    pub fn read<T: Tables + ?Sized>(&mut self, tables: &mut T, scan: u64) -> Answer {
        match self.open.get_mut(&scan) {
            Some(reading) => reading.next(|batch| tables.fill(scan, batch)),
            None => Err("a scan that is not open".into()),
        }
    }

    /// Those of somebody else who reads no more.
    pub fn take_over(&mut self, others: Self) {
        self.open.extend(others.open);
    }
}

impl Reading {
    /// The next batch, filled by `fill`; none if it stays empty.
    fn next(
        &mut self,
        fill: impl FnOnce(&mut Batch) -> std::result::Result<(), Failure>,
    ) -> Answer {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.asked.retain_mut(Asked::begin);
        let mut batch = Batch::asking(&self.kinds, std::mem::take(&mut self.asked));
        let filled = fill(&mut batch);
        self.asked = batch.take_asked();
        filled?;
        if batch.rows() == 0 {
            return Ok(None);
        }
        let finished: Result<RecordBatch> = batch.finish(&self.schema);
        Ok(Some(finished?))
    }
}
