//! The workloads by name: what each loads, and its client.
//!
//! The clients are those of `vellum-bench`, with its defaults.

use crate::Run;
use crate::steps::{self, Client, Steps};
use vellum::{Config, Durability, Experiment};
use vellum_adapter::VellumEngine;
use vellum_workload::engine::{
    Direction, Engine, EngineError, Isolation, Result, Session, Table, TableSpec, TxOptions,
};
use vellum_workload::kv::{Mix, Order, ROWS};
use vellum_workload::zipf::Keys;
use vellum_workload::{hekaton, kv, queue, tatp, tpcc};

/// Everything random follows from it.
const SEED: u64 = 42;
/// The date of every transaction, in microseconds of the epoch.
const DATE: u64 = 1_764_547_200_000_000;
/// Rows of `kv`, of scans and of `hekaton`.
const KV_ROWS: u64 = 200_000;
/// Bytes of a value.
const SIZE: usize = 100;
/// Operations behind which a step of background work is done: as many as leave less in a slot's log buffer than it holds.
const EVERY: u64 = 256;
/// The same of transactions of some kilobytes of log.
const EVERY_LARGE: u64 = 32;

/// Loads and runs a workload.
///
/// # Errors
/// Whatever the engine reports, or that there is no such workload.
pub fn run(run: &Run) -> Result<()> {
    let name = run.workload.as_str();
    let (kind, held) = match name.strip_suffix("-held") {
        Some(kind) => (kind, true),
        None => (name, false),
    };
    let tables = match kind {
        "read" | "rmw" | "update" | "sync" | "load" | "scan" | "hot" => kv::TABLES,
        "queue" => queue::TABLES,
        "hekaton" => hekaton::TABLES,
        "tatp" => tatp::schema::TABLES,
        "tpcc" | "tpcc-osic" => tpcc::schema::TABLES,
        _ => {
            return Err(EngineError::Unusable("no such workload".to_owned()));
        }
    };
    let engine = &open(run, tables)?;
    let mut holder = engine.open_session()?;
    // What an old snapshot has seen of the table that is written most.
    let hold = |holder: &mut _| match held {
        true => look(
            holder,
            match kind {
                "queue" => queue::QUEUE,
                "hot" => ROWS,
                _ => tpcc::schema::WAREHOUSE,
            },
        ),
        false => Ok(()),
    };
    let (before, end) = (run.before, run.end);
    match kind {
        "load" => steps::run(engine, Loader { rows: before }, 1, 0, end),
        "read" | "rmw" | "update" | "sync" | "scan" | "hot" => {
            let rows = if kind == "hot" { 100 } else { KV_ROWS };
            let mut session = engine.open_session()?;
            kv::load(&mut session, rows, SIZE, Order::Sorted, |_| engine.step())?;
            engine.checkpoint()?;
            hold(&mut holder)?;
            let mix = match kind {
                "scan" => return steps::run(engine, Scanner { rows }, 1, before, end),
                "read" => Mix::Read,
                "rmw" => Mix::ReadModifyWrite,
                _ => Mix::Update,
            };
            let client = kv::Client::new(Keys::new(rows, 0.0), SIZE, mix, SEED, 0);
            steps::run(engine, client, EVERY, before, end)
        }
        "queue" => {
            let mut session = engine.open_session()?;
            queue::load(&mut session, 1_000, SIZE, || engine.step())?;
            engine.checkpoint()?;
            let tail = queue::Tail::new(queue::look(&mut session, SIZE)?.next);
            hold(&mut holder)?;
            let client = queue::Client::new(&tail, SIZE);
            steps::run(engine, client, EVERY, before, end)
        }
        "hekaton" => {
            let mut session = engine.open_session()?;
            hekaton::load(&mut session, KV_ROWS, |_| engine.step())?;
            engine.checkpoint()?;
            let mix = hekaton::Mix {
                reads: 10,
                writes: 2,
                read_only_share: 0.0,
                isolation: Isolation::Snapshot,
            };
            let client = hekaton::Client::new(KV_ROWS, 0.0, mix, SEED, 0);
            steps::run(engine, client, EVERY, before, end)
        }
        "tatp" => {
            let mut session = engine.open_session()?;
            let wanted = tatp::population::Population::new(20_000, SEED);
            let population = tatp::population::load(&mut session, wanted, |_| engine.step())?;
            engine.checkpoint()?;
            let choice = tatp::input::Choice::non_uniform(population.subscribers);
            let ledger = tatp::ledger::Ledger::default();
            let client = tatp::client::Client::new(&population, choice, SEED, 0, &ledger)?;
            steps::run(engine, client, EVERY, before, end)
        }
        _ => {
            let mut session = engine.open_session()?;
            let scale = tpcc::Scale::standard(1);
            let wanted = tpcc::population::Population::new(scale, SEED);
            let step = |_| engine.step();
            let population = tpcc::population::load(&mut session, wanted, DATE, step)?;
            engine.checkpoint()?;
            hold(&mut holder)?;
            let home = tpcc::input::Home::Any;
            let client = tpcc::terminal::Terminal::new(&mut session, &population, 1, SEED, home)?;
            steps::run(engine, client, EVERY_LARGE, before, end)
        }
    }
}

fn open(run: &Run, tables: &[TableSpec]) -> Result<VellumEngine> {
    let mut config = Config::default()
        .pool_bytes(512 << 20)
        .background_threads(false);
    // An instrumented process has fewer addresses.
    config.data_bytes_max = 8 << 30;
    if run.workload.ends_with("-osic") {
        config = config.experiment(Experiment::OSIC);
    }
    let durability = match run.workload.as_str() {
        "sync" => Durability::Sync,
        _ => Durability::Async,
    };
    let mut engine = VellumEngine::open(&run.directory, config, durability)?;
    engine.ensure_tables(tables)?;
    Ok(engine)
}

/// Begins a transaction and reads a row of a table, so that it has its snapshot; it stays open.
fn look<S: Session>(session: &mut S, table: Table) -> Result<()> {
    session.begin(TxOptions::READ_WRITE)?;
    session.scan(table, &[], Direction::Forward, |_, _| false)
}

impl Client for kv::Client {
    #[inline]
    fn once<S: Session>(&mut self, session: &mut S, _: &Steps<'_>) -> Result<()> {
        self.draw();
        self.attempt(session)
    }
}

impl Client for queue::Client<'_> {
    #[inline]
    fn once<S: Session>(&mut self, session: &mut S, _: &Steps<'_>) -> Result<()> {
        self.draw();
        self.attempt(session)
    }
}

impl Client for hekaton::Client<'_> {
    #[inline]
    fn once<S: Session>(&mut self, session: &mut S, _: &Steps<'_>) -> Result<()> {
        self.draw();
        self.attempt(session)
    }
}

impl Client for tatp::client::Client<'_> {
    #[inline]
    fn once<S: Session>(&mut self, session: &mut S, _: &Steps<'_>) -> Result<()> {
        self.draw();
        self.attempt(session).map(drop)
    }
}

impl Client for tpcc::terminal::Terminal {
    #[inline]
    fn once<S: Session>(&mut self, session: &mut S, _: &Steps<'_>) -> Result<()> {
        self.draw();
        self.attempt(session, DATE).map(drop)
    }
}

/// Reads all rows.
struct Scanner {
    rows: u64,
}

impl Client for Scanner {
    #[inline]
    fn once<S: Session>(&mut self, session: &mut S, _: &Steps<'_>) -> Result<()> {
        kv::scan(session, self.rows, |_| true).map(drop)
    }
}

/// Loads rows in one transaction.
struct Loader {
    rows: u64,
}

impl Client for Loader {
    #[inline]
    fn once<S: Session>(&mut self, session: &mut S, steps: &Steps<'_>) -> Result<()> {
        kv::load(session, self.rows, SIZE, Order::Sorted, |_| steps.take())
    }
}
