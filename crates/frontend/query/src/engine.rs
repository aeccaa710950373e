//! Running a relation: the operators work in threads of their own, the host in its.
//!
//! Concurrency: the thread that runs a statement serves what the operators ask of it ([`Request`]) until they are done: rows of tables, questions
//! of functions, rows of the result to be told. So a transaction and a session are touched by one thread only. An operator never waits for
//! another statement's host. Parts of large tables are read by threads beside the host's ([`Reader`]), which end before [`Running::serve`] returns: they
//! are told when the statement is over ([`Line::is_over`]) or stands still ([`Line::stands`]), and ask no one anything.

use crate::Batch;
use crate::crews::{Crews, Taken};
use crate::error::{Error, Failure, Result};
use crate::keys::{Asked, TellKeys};
use crate::loops::{FitLoops, Within};
use crate::memory::{Merges, StatementMemory};
use crate::pushed::PushConditions;
use crate::relation::Relation;
use crate::running::{Running, Served, Told};
use crate::scan::{Answer, Part};
use crate::sorts::FitSorts;
use crate::stays::PushColumns;
use crate::temporary::Room;
use crate::types::Kind;
use crate::union::MixUnions;
use crate::watch::Watch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result as Planned;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool as _};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::SessionState;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::{ExecutionPlan, StatisticsArgs, StatisticsContext, displayable};
use datafusion::prelude::SessionConfig;
use std::any::Any;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use vellum_row::ValueRef;

/// How often a host looks whether it was cancelled, at least.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// What a statement may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of memory.
    pub memory_bytes: usize,
    /// What joins by equality keep in memory.
    pub joins: Joins,
}

/// How rows are found that are joined by equality.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Joins {
    /// By hash: one side is kept in memory.
    #[default]
    Hashed,
    /// By sorting both sides, which goes into files where it does not fit. A `NOT IN` of a subquery is hashed all the same.
    Sorted,
}

/// Whether more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Flow {
    More,
    Enough,
}

/// Who reads tables.
pub trait Tables {
    /// A scan begins: of a part of the table that is known by `source`, of these of its columns. No more than `limit` rows are wanted.
    ///
    /// # Errors
    /// What the query is to fail with; so for all of these.
    fn open(
        &mut self,
        scan: u64,
        source: usize,
        part: Part,
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
}

/// Who reads parts of tables in a thread beside the host's.
pub trait Reader: Send {
    /// Calls `serve` once, with what reads.
    fn read(&mut self, serve: &mut dyn FnMut(&mut dyn Tables));
}

/// Who reads tables that are not parted, and takes the result.
pub trait Host: Tables {
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
        part: Part,
        columns: Vec<usize>,
        kinds: Vec<Kind>,
        schema: SchemaRef,
        limit: Option<usize>,
        asked: Vec<Asked>,
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
    /// To a reader: nothing more is wanted.
    End,
    /// The steps with what they did, if that is asked for.
    Done(Planned<Vec<String>>),
}

/// Leads to a statement's host and its readers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Line {
    requests: Sender<Request>,
    pub(crate) shared: Arc<Shared>,
}

/// What all who work for a statement know.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    last: AtomicU64,
    pub over: AtomicBool,
    /// It stands still, and its readers stop.
    pub stands: AtomicBool,
    /// Parts of tables that are still to be read, or being read; above 0 for ever if some may be read again.
    pub unread: AtomicUsize,
    /// Nothing is asked of a reader but under this lock: who takes them out has heard all that they were asked.
    readers: Mutex<Vec<Sender<Request>>>,
}

impl Shared {
    pub fn readers(&self) -> MutexGuard<'_, Vec<Sender<Request>>> {
        // No invariant is broken halfway.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// A line, and where its requests come out.
    pub fn new() -> (Self, Requests) {
        let (requests, received) = channel();
        let shared = Arc::default();
        (Self { requests, shared }, Requests(received))
    }

    /// Whether the statement has ended: whoever works for it stops. Relaxed: it carries nothing but itself.
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Relaxed)
    }

    /// Whether the statement stands still: who reads for it beside its host stops where it is. Relaxed, as above.
    pub fn stands(&self) -> bool {
        self.shared.stands.load(Ordering::Relaxed)
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

    /// To who reads this part of a table: a reader, or the host if there is none.
    pub(crate) fn send_reader(&self, part: Part, request: Request) {
        let readers = self.shared.readers();
        match readers.get(part.number % readers.len().max(1)) {
            Some(reader) if part.of > 1 => drop(reader.send(request)),
            _ => self.send(request),
        }
    }

    /// A number that no other scan has. Relaxed: it carries nothing but itself.
    pub(crate) fn number(&self) -> u64 {
        self.shared.last.fetch_add(1, Ordering::Relaxed)
    }
}

/// What comes out of a [`Line`].
#[derive(Debug)]
pub struct Requests(pub(crate) Receiver<Request>);

/// Plans and runs relations. One for all statements of a database; its threads start with queries (`crews`).
#[derive(Debug)]
pub struct Engine {
    started: OnceLock<Started>,
    /// Held by who starts it.
    starting: Mutex<()>,
    memory_bytes: usize,
    /// Bytes that are kept in memory for clients which fetch them later.
    kept: AtomicUsize,
    /// Where operators write what does not fit into memory.
    spill: OnceLock<PathBuf>,
    /// How much of that there may be.
    room: Arc<Room>,
}

#[derive(Debug)]
struct Started {
    crews: Arc<Crews>,
    environment: Arc<RuntimeEnv>,
    memory: Arc<GreedyMemoryPool>,
    /// How many relations have a place to stand still.
    standing: Arc<AtomicUsize>,
}

impl Engine {
    /// One whose statements together use no more than so much memory.
    pub fn new(memory_bytes: usize) -> Self {
        Self {
            started: OnceLock::new(),
            starting: Mutex::new(()),
            memory_bytes,
            kept: AtomicUsize::new(0),
            spill: OnceLock::new(),
            room: Arc::new(Room::without_end()),
        }
    }

    /// Whether so many bytes more may be kept in memory for clients which fetch them later: all of these together have as much as all operators
    /// together. They are kept until [`Self::keep_no_more`].
    pub fn may_keep(&self, bytes: usize) -> bool {
        // Relaxed: a count, which orders nothing.
        let more = |kept: usize| {
            kept.checked_add(bytes)
                .filter(|kept| *kept <= self.memory_bytes)
        };
        let kept = self
            .kept
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        kept.is_ok()
    }

    /// So many bytes are kept no more.
    pub fn keep_no_more(&self, bytes: usize) {
        let before = self.kept.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "they were kept");
    }

    /// What does not fit into memory goes into files in this directory, which is made by the first query; the files go with their queries.
    /// Says nothing to queries that run already. Without, they fail.
    pub fn spill_into(&self, directory: PathBuf) {
        let _ = self.spill.set(directory);
    }

    /// All files of queries together take no more than so many bytes; said before the first query. What would take more fails
    /// ([`std::io::ErrorKind::QuotaExceeded`]).
    pub fn spill_at_most(&self, bytes: u64) {
        self.room.limit(bytes);
    }

    /// What temporary files count with.
    pub(crate) fn room(&self) -> Result<(Arc<Room>, Arc<DiskManager>)> {
        let disks = self.started()?.environment.disk_manager.clone();
        Ok((self.room.clone(), disks))
    }

    /// How many parts of a large table are read at a time.
    pub fn parts(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Whether what does not fit into memory may go into files.
    pub fn spills(&self) -> bool {
        self.spill.get().is_some()
    }

    /// The directory that files of this process go into; `None` where nothing may be spilled.
    pub(crate) fn spill_directory(&self) -> Result<Option<PathBuf>> {
        if !self.spills() {
            return Ok(None);
        }
        let disks = self.started()?.environment.disk_manager.temp_dir_paths();
        Ok(disks.into_iter().next())
    }

    /// Whether nobody works for a query.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        let started = self.started.get();
        started.is_none_or(|started| started.crews.are_idle())
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
        let mode = match self.spill.get() {
            None => DiskManagerMode::Disabled,
            Some(path) => DiskManagerMode::Directories(vec![path.clone()]),
        };
        let disk = DiskManagerBuilder::default()
            .with_mode(mode)
            .with_max_temp_directory_size(self.room.left());
        let environment = RuntimeEnvBuilder::new()
            .with_disk_manager_builder(disk)
            .build_arc()?;
        let started = Started {
            crews: Arc::default(),
            environment,
            memory: Arc::new(GreedyMemoryPool::new(self.memory_bytes)),
            standing: Arc::default(),
        };
        Ok(self.started.get_or_init(|| started))
    }

    /// A crew for a statement that is read by so many readers, and what its plan is made with.
    fn state(&self, limits: Limits, parts: usize, line: &Line) -> Result<(Taken, SessionState)> {
        let started = self.started()?;
        // Operators keep several batches, whatever is in their rows. A join by sorting has six sorters beside each other, and each run that one merges takes four batches.
        let (batch, least, aside) = match limits.joins {
            Joins::Hashed => (limits.memory_bytes >> 12, 256, limits.memory_bytes / 4),
            Joins::Sorted => (limits.memory_bytes >> 19, 64, limits.memory_bytes / 64),
        };
        // Of all sorters of a step together: each part has one.
        let aside = aside / parts.max(2);
        let batch_rows = batch.clamp(least, crate::BATCH_ROWS);
        let merges = match limits.joins {
            Joins::Hashed => Merges::All,
            Joins::Sorted => Merges::Share(aside),
        };
        let all = started.memory.clone();
        let environment = Arc::new(RuntimeEnv {
            memory_pool: Arc::new(StatementMemory::new(limits.memory_bytes, all, merges)),
            disk_manager: started.environment.disk_manager.clone(),
            cache_manager: started.environment.cache_manager.clone(),
            object_store_registry: started.environment.object_store_registry.clone(),
        });
        // One thread a statement beside its host's, but where tables are read in parts.
        let crew = started.crews.take(parts.max(1))?;
        let parts = match limits.joins {
            Joins::Hashed => parts.max(1),
            // DataFusion sorts for joins only where these have parts.
            Joins::Sorted => parts.max(2),
        };
        let prefers_hash = limits.joins == Joins::Hashed;
        let config = SessionConfig::new()
            .set_bool("datafusion.optimizer.prefer_hash_join", prefers_hash)
            .with_target_partitions(parts)
            .with_batch_size(batch_rows)
            .with_sort_spill_reservation_bytes(aside)
            .with_create_default_catalog_and_schema(false);
        // Tables are joined in the order in which they were put.
        let rules = Optimizer::new().rules.into_iter();
        let rules = rules.filter(|rule| rule.name() != "eliminate_cross_join");
        let rules = rules.map(|rule| match rule.name() {
            "push_down_filter" => {
                Arc::new(PushConditions::new()) as Arc<dyn OptimizerRule + Send + Sync>
            }
            _ => rule,
        });
        let mut steps: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> =
            vec![Arc::new(MixUnions)];
        // Conditions have come as far down as they may (G5): here they would become one with others below, and no scan takes any.
        let further = PhysicalOptimizer::new().rules.into_iter();
        let further = further.filter(|rule| rule.name() != "FilterPushdown");
        steps.extend(further.map(|rule| match rule.name() {
            "ProjectionPushdown" => {
                Arc::new(PushColumns::new()) as Arc<dyn PhysicalOptimizerRule + Send + Sync>
            }
            _ => rule,
        }));
        steps.push(Arc::new(TellKeys));
        steps.push(Arc::new(FitSorts {
            memory_bytes: limits.memory_bytes,
        }));
        steps.push(Arc::new(Watch(line.clone())));
        steps.push(Arc::new(FitLoops::new(limits.joins, &environment)?));
        let state = SessionStateBuilder::new()
            .with_optimizer_rules(rules.collect())
            .with_physical_optimizer_rules(steps)
            .with_config(config)
            .with_runtime_env(environment)
            .build();
        Ok((crew, state))
    }

    /// Runs a relation: its rows are told the host, whose thread this is. Blocks until they are, or the host or an operator fails.
    ///
    /// # Errors
    /// What the host, a reader or a function failed with; [`Error::Memory`]; [`Error::Unplanned`], before any row was told.
    pub fn run(
        &self,
        relation: &Relation,
        line: (Requests, Line),
        limits: Limits,
        host: &mut dyn Host,
        readers: Vec<Box<dyn Reader + '_>>,
    ) -> Result<()> {
        self.serve(relation, line, limits, (host, readers), false)
            .map(drop)
    }

    /// The same; returns the steps, a line each, with the rows that were expected and those that came, and the time that was spent in each.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn analyze(
        &self,
        relation: &Relation,
        line: (Requests, Line),
        limits: Limits,
        host: &mut dyn Host,
        readers: Vec<Box<dyn Reader + '_>>,
    ) -> Result<Vec<String>> {
        self.serve(relation, line, limits, (host, readers), true)
    }

    fn serve(
        &self,
        relation: &Relation,
        line: (Requests, Line),
        limits: Limits,
        (host, readers): (&mut dyn Host, Vec<Box<dyn Reader + '_>>),
        steps: bool,
    ) -> Result<Vec<String>> {
        let told = Told { ahead: true, steps };
        let mut running = self.running(relation, line, limits, readers.len(), told)?;
        match running.serve(host, readers)? {
            Served::Done(steps) => Ok(steps),
            Served::Stands => Ok(Vec::new()),
        }
    }

    /// Begins a relation that so many readers will read for, and that may stand still: nobody is told a row before it is served.
    ///
    /// # Errors
    /// The system gives no threads; [`Error::File`].
    pub fn start(
        &self,
        relation: &Relation,
        line: (Requests, Line),
        limits: Limits,
        readers: usize,
    ) -> Result<Running> {
        let told = Told {
            ahead: false,
            steps: false,
        };
        self.running(relation, line, limits, readers, told)
    }

    fn running(
        &self,
        relation: &Relation,
        line: (Requests, Line),
        limits: Limits,
        readers: usize,
        told: Told,
    ) -> Result<Running> {
        let state = self.state(limits, readers, &line.1)?;
        let types = relation.columns.iter().map(|column| column.ty).collect();
        Ok(Running::start(
            state,
            (relation.plan.clone(), types),
            line,
            readers,
            told,
        ))
    }

    /// Whether a relation that stands still may do so: it keeps its crew, and the memory of its operators, from others. So there are few of them, and none where half of all memory is
    /// taken.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn may_stand(&self, running: &mut Running) -> Result<bool> {
        let started = self.started()?;
        let has_memory = started.memory.reserved() <= self.memory_bytes / 2;
        Ok(has_memory && running.takes_place(&started.standing))
    }

    /// The steps in which a relation would be run with so many readers, a line each.
    ///
    /// # Errors
    /// [`Error::Unplanned`].
    pub fn explain(
        &self,
        relation: &Relation,
        limits: Limits,
        parts: usize,
    ) -> Result<Vec<String>> {
        let (line, _requests) = Line::new();
        let (crew, state) = self.state(limits, parts, &line)?;
        let plan = relation.plan.clone();
        let (tell, told) = channel();
        crew.spawn(async move {
            let _ = tell.send(state.create_physical_plan(&plan).await);
        });
        let planned = told.recv();
        let planned = planned.map_err(|_| Error::internal("the planner stopped"))??;
        let mut lines = Vec::new();
        steps(planned.as_ref(), 0, false, &mut lines);
        Ok(lines)
    }
}

/// The steps of a plan, a line each: what is expected of them, and what they did.
pub(crate) fn steps(plan: &dyn ExecutionPlan, depth: usize, done: bool, lines: &mut Vec<String>) {
    // It does nothing with rows.
    if let Some(wrapped) = plan.downcast_ref::<CooperativeExec>() {
        return steps(wrapped.input().as_ref(), depth, done, lines);
    }
    if let Some(wrapped) = plan.downcast_ref::<Within>() {
        return steps(wrapped.input.as_ref(), depth, done, lines);
    }
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
