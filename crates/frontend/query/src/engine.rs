//! Running a relation: the operators work in threads of their own, the host in its.
//!
//! Concurrency: the thread that runs a statement serves what the operators ask of it ([`Request`]) until they are done: rows of tables, questions
//! of functions, rows of the result to be told. So a transaction and a session are touched by one thread only. An operator never waits for
//! another statement's host.

use crate::batch::{ColumnReader, readers};
use crate::error::{Error, Failure, Result};
use crate::memory::StatementMemory;
use crate::relation::Relation;
use crate::scan::{Answer, Reading};
use crate::types::Kind;
use crate::{Batch, Column};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result as Planned;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Optimizer;
use datafusion::physical_plan::{
    ExecutionPlan, StatisticsArgs, StatisticsContext, displayable, execute_stream,
};
use datafusion::prelude::SessionConfig;
use futures::StreamExt as _;
use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use vellum_row::{Type, ValueRef};

/// How often a host looks whether it was cancelled, at least.
const LOOK: Duration = Duration::from_millis(20);

/// Stack of a thread of the operators: plans and expressions recurse, and are as high as the parser lets them be. Only what is used
/// takes memory.
const STACK_BYTES: usize = 64 << 20;

/// What a statement may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of memory.
    pub memory_bytes: usize,
}

/// Whether more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Flow {
    More,
    Enough,
}

/// Who reads tables and takes the result.
pub trait Host {
    /// A scan begins: of the table that it knows by `source`, of these of its columns. No more than `limit` rows are wanted.
    ///
    /// # Errors
    /// What the query is to fail with; so for all of these.
    fn open(
        &mut self,
        scan: u64,
        source: usize,
        columns: &[usize],
        limit: Option<usize>,
    ) -> std::result::Result<(), Failure>;
    /// Fills a batch until it is full or there are no more rows.
    ///
    /// # Errors
    /// As above.
    fn fill(&mut self, scan: u64, batch: &mut Batch) -> std::result::Result<(), Failure>;
    /// A scan ends.
    fn close(&mut self, scan: u64);
    /// A function asks something, with [`Line::ask`].
    fn asked(&mut self, question: Box<dyn Any + Send>);
    /// A row of the result.
    ///
    /// # Errors
    /// As above.
    fn row(&mut self, row: &[ValueRef<'_>]) -> std::result::Result<Flow, Failure>;
    /// Is called again and again.
    ///
    /// # Errors
    /// If the query is to end.
    fn look(&mut self) -> std::result::Result<(), Failure>;
}

/// What operators ask of the host.
#[derive(Debug)]
pub(crate) enum Request {
    Open {
        scan: u64,
        source: usize,
        columns: Vec<usize>,
        kinds: Vec<Kind>,
        schema: SchemaRef,
        limit: Option<usize>,
    },
    Read {
        scan: u64,
        reply: oneshot::Sender<Answer>,
    },
    Close {
        scan: u64,
    },
    Ask(Box<dyn Any + Send>),
    Output(RecordBatch, oneshot::Sender<()>),
    /// The steps with what they did, if that is asked for.
    Done(Planned<Vec<String>>),
}

/// Leads to a statement's host. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Line {
    requests: Sender<Request>,
    last: Arc<AtomicU64>,
}

impl Line {
    /// A line, and where its requests come out.
    pub fn new() -> (Self, Requests) {
        let (requests, received) = channel();
        let last = Arc::default();
        (Self { requests, last }, Requests(received))
    }

    /// Asks the host something, and waits for the answer; none if the host is gone. `question` is told where the answer goes. The
    /// host may run other queries to find it: whoever waits lends its place among the operators' threads to these.
    pub fn ask<T>(&self, question: impl FnOnce(Sender<T>) -> Box<dyn Any + Send>) -> Option<T> {
        let (answer, answered) = channel();
        self.send(Request::Ask(question(answer)));
        tokio::task::block_in_place(|| answered.recv().ok())
    }

    pub(crate) fn send(&self, request: Request) {
        // A host that has gone answers nothing: who waits sees its channel closed.
        let _ = self.requests.send(request);
    }

    /// A number that no other scan has. Relaxed: it carries nothing but itself.
    pub(crate) fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }
}

/// What comes out of a [`Line`].
#[derive(Debug)]
pub struct Requests(Receiver<Request>);

/// Plans and runs relations. One for all statements of a database; its threads start with the first query.
#[derive(Debug)]
pub struct Engine {
    started: OnceLock<Started>,
    /// Held by who starts it.
    starting: Mutex<()>,
    memory_bytes: usize,
    /// Where operators write what does not fit into memory.
    spill: OnceLock<PathBuf>,
}

#[derive(Debug)]
struct Started {
    runtime: Option<Runtime>,
    environment: Arc<RuntimeEnv>,
    memory: Arc<GreedyMemoryPool>,
}

impl Drop for Started {
    fn drop(&mut self) {
        // Whoever drops the last handle may be a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Engine {
    /// One whose statements together use no more than so much memory.
    pub fn new(memory_bytes: usize) -> Self {
        Self {
            started: OnceLock::new(),
            starting: Mutex::new(()),
            memory_bytes,
            spill: OnceLock::new(),
        }
    }

    /// What does not fit into memory goes into files in this directory, which is made by the first query; the files go with their queries.
    /// Says nothing to queries that run already. Without, they fail.
    pub fn spill_into(&self, directory: PathBuf) {
        let _ = self.spill.set(directory);
    }

    fn started(&self) -> Result<&Started> {
        if let Some(started) = self.started.get() {
            return Ok(started);
        }
        // One at a time: the directory is looked for and then made, which fails if another has made it between.
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = self.started.get() {
            return Ok(started);
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("vellum-query")
            .thread_stack_size(STACK_BYTES)
            .build()
            .map_err(Error::internal)?;
        let mode = match self.spill.get() {
            None => DiskManagerMode::Disabled,
            Some(path) => DiskManagerMode::Directories(vec![path.clone()]),
        };
        let disk = DiskManagerBuilder::default().with_mode(mode);
        let environment = RuntimeEnvBuilder::new()
            .with_disk_manager_builder(disk)
            .build_arc()?;
        let started = Started {
            runtime: Some(runtime),
            environment,
            memory: Arc::new(GreedyMemoryPool::new(self.memory_bytes)),
        };
        Ok(self.started.get_or_init(|| started))
    }

    fn state(&self, limits: Limits) -> Result<(&Runtime, SessionState)> {
        let started = self.started()?;
        let environment = RuntimeEnv {
            memory_pool: Arc::new(StatementMemory::new(
                limits.memory_bytes,
                started.memory.clone(),
            )),
            disk_manager: started.environment.disk_manager.clone(),
            cache_manager: started.environment.cache_manager.clone(),
            object_store_registry: started.environment.object_store_registry.clone(),
        };
        // Operators keep several batches, whatever is in their rows.
        let batch_rows = (limits.memory_bytes >> 12).clamp(256, crate::BATCH_ROWS);
        // One thread a statement beside its host's.
        let config = SessionConfig::new()
            .with_target_partitions(1)
            .with_batch_size(batch_rows)
            .with_sort_spill_reservation_bytes(limits.memory_bytes / 8)
            .with_create_default_catalog_and_schema(false);
        // Tables are joined in the order in which they were put.
        let rules = Optimizer::new().rules.into_iter();
        let rules = rules.filter(|rule| rule.name() != "eliminate_cross_join");
        let state = SessionStateBuilder::new()
            .with_optimizer_rules(rules.collect())
            .with_config(config)
            .with_runtime_env(Arc::new(environment))
            .build();
        let runtime = started.runtime.as_ref();
        Ok((
            runtime.ok_or_else(|| Error::internal("threads that ended"))?,
            state,
        ))
    }

    /// Runs a relation: its rows are told the host, whose thread this is. Blocks until they are, or the host or an operator fails.
    ///
    /// # Errors
    /// What the host or a function failed with; [`Error::Memory`]; [`Error::Unplanned`], before any row was told.
    pub fn run(
        &self,
        relation: &Relation,
        requests: Requests,
        line: Line,
        limits: Limits,
        host: &mut dyn Host,
    ) -> Result<()> {
        let served = self.serve(relation, (requests, line), limits, host, false);
        served.map(drop)
    }

    /// The same; returns the steps, a line each, with the rows that were expected and those that came, and the time that was spent in each.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn analyze(
        &self,
        relation: &Relation,
        requests: Requests,
        line: Line,
        limits: Limits,
        host: &mut dyn Host,
    ) -> Result<Vec<String>> {
        self.serve(relation, (requests, line), limits, host, true)
    }

    fn serve(
        &self,
        relation: &Relation,
        (requests, line): (Requests, Line),
        limits: Limits,
        host: &mut dyn Host,
        tell: bool,
    ) -> Result<Vec<String>> {
        let (runtime, state) = self.state(limits)?;
        let plan = relation.plan.clone();
        let task = runtime.spawn(async move {
            let done = work(&state, plan, &line, tell).await;
            line.send(Request::Done(done));
        });
        let mut serving = Serving {
            columns: &relation.columns,
            open: HashMap::new(),
            host,
        };
        let served = loop {
            let request = match requests.0.recv_timeout(LOOK) {
                Ok(request) => Some(request),
                // Its last words may have come since.
                Err(RecvTimeoutError::Timeout) if task.is_finished() => {
                    match requests.0.try_recv() {
                        Ok(request) => Some(request),
                        Err(_) => break Err(Error::internal("an operator stopped")),
                    }
                }
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(Error::internal("an operator stopped"));
                }
            };
            match request.map(|request| serving.serve(request)) {
                None | Some(Ok(None)) => {}
                Some(Ok(Some(steps))) => break Ok(steps),
                Some(Err(error)) => break Err(error),
            }
            if let Err(failure) = serving.host.look() {
                break Err(Error::Failed(failure));
            }
        };
        task.abort();
        served
    }

    /// The steps in which a relation would be run, a line each.
    ///
    /// # Errors
    /// [`Error::Unplanned`].
    pub fn explain(&self, relation: &Relation, limits: Limits) -> Result<Vec<String>> {
        let (runtime, state) = self.state(limits)?;
        let plan = relation.plan.clone();
        let (tell, told) = channel();
        runtime.spawn(async move {
            let _ = tell.send(state.create_physical_plan(&plan).await);
        });
        let planned = told.recv();
        let planned = planned.map_err(|_| Error::internal("the planner stopped"))??;
        let mut lines = Vec::new();
        steps(planned.as_ref(), 0, false, &mut lines);
        Ok(lines)
    }
}

/// The operators' side.
async fn work(
    state: &SessionState,
    plan: LogicalPlan,
    line: &Line,
    tell: bool,
) -> Planned<Vec<String>> {
    let physical = state.create_physical_plan(&plan).await?;
    let mut stream = execute_stream(physical.clone(), state.task_ctx())?;
    let mut taken: Option<oneshot::Receiver<()>> = None;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        // One batch is on its way while the next is made.
        if let Some(taken) = taken.take()
            && taken.await.is_err()
        {
            return Ok(Vec::new());
        }
        let (take, taking) = oneshot::channel();
        line.send(Request::Output(batch, take));
        taken = Some(taking);
    }
    let mut lines = Vec::new();
    if tell {
        steps(physical.as_ref(), 0, true, &mut lines);
    }
    Ok(lines)
}

/// The steps of a plan, a line each: what is expected of them, and what they did.
fn steps(plan: &dyn ExecutionPlan, depth: usize, done: bool, lines: &mut Vec<String>) {
    let mut line = "  ".repeat(depth);
    line.push_str(displayable(plan).one_line().to_string().trim_end());
    let expected = StatisticsContext::new().compute(plan, &StatisticsArgs::new());
    if let Ok(statistics) = expected
        && let Some(rows) = statistics.num_rows.get_value()
    {
        line.push_str(&format!(" (rows={rows})"));
    }
    if done && let Some(metrics) = plan.metrics() {
        let rows = metrics.output_rows().unwrap_or(0);
        let spent = metrics.elapsed_compute().unwrap_or(0) as f64 / 1e6;
        line.push_str(&format!(" (actual rows={rows} time={spent:.3} ms)"));
    }
    lines.push(line);
    for child in plan.children() {
        steps(child.as_ref(), depth + 1, done, lines);
    }
}

/// The host's side.
struct Serving<'h> {
    columns: &'h [Column],
    open: HashMap<u64, Reading>,
    host: &'h mut dyn Host,
}

impl Serving<'_> {
    /// Serves a request; if it was the last, the steps are returned that are to be told.
    fn serve(&mut self, request: Request) -> Result<Option<Vec<String>>> {
        match request {
            Request::Open {
                scan,
                source,
                columns,
                kinds,
                schema,
                limit,
            } => {
                self.open.insert(scan, Reading { kinds, schema });
                let opened = self.host.open(scan, source, &columns, limit);
                opened.map_err(Error::Failed)?;
            }
            Request::Read { scan, reply } => {
                let reading = self.open.get(&scan);
                let reading = reading.ok_or_else(|| Error::internal("a scan that is not open"))?;
                let batch = reading.next(|batch| self.host.fill(scan, batch));
                // A failure is the statement's, whoever reads.
                let batch = batch.map_err(Error::Failed)?;
                let _ = reply.send(Ok(batch));
            }
            Request::Close { scan } => {
                self.open.remove(&scan);
                self.host.close(scan);
            }
            Request::Ask(question) => self.host.asked(question),
            Request::Output(batch, take) => {
                let flow = self.tell(&batch)?;
                if flow == Flow::Enough {
                    return Ok(Some(Vec::new()));
                }
                let _ = take.send(());
            }
            Request::Done(done) => {
                return Ok(Some(done?));
            }
        }
        Ok(None)
    }

    fn tell(&mut self, batch: &RecordBatch) -> Result<Flow> {
        let types: Vec<Type> = self.columns.iter().map(|column| column.ty).collect();
        let readers: Vec<ColumnReader<'_>> = readers(&types, batch.columns())?;
        let mut row: Vec<ValueRef<'_>> = Vec::with_capacity(readers.len());
        for number in 0..batch.num_rows() {
            row.clear();
            for reader in &readers {
                row.push(reader.get(number)?);
            }
            if self.host.row(&row).map_err(Error::Failed)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::More)
    }
}
