//! `tpcc`: load, run, check.

use crate::cli::Tpcc;
use crate::control::Control;
use crate::hold::HoldPlan;
use crate::measure::{Client, Plan, epoch_micros, measure};
use crate::report::{Summary, rounded};
use crate::{Context, Failure, flags, interrupt, progress};
use std::io::Write;
use std::time::Instant;
use vellum_workload::engine::{Engine, Result as EngineResult, Session};
use vellum_workload::tpcc::check::check;
use vellum_workload::tpcc::input::Home;
use vellum_workload::tpcc::population::{Population, load};
use vellum_workload::tpcc::schema::{DISTRICT, META, STOCK, TABLES, WAREHOUSE};
use vellum_workload::tpcc::terminal::{Outcome, Terminal};
use vellum_workload::tpcc::{Kind, Scale};

/// Warehouses of a database that is created without being told how many.
const WAREHOUSES: u32 = 4;
/// The row that the idle writer keeps to itself.
const IDLE_KEY: &[u8] = b"idle writer";

pub(crate) fn run<E: Engine>(
    engine: &mut E,
    arguments: &Tpcc,
    context: &Context<'_>,
    summary: &mut Summary,
    lines: &mut dyn Write,
) -> Result<(), Failure> {
    engine
        .ensure_tables(TABLES)
        .map_err(Failure::engine("create the tables"))?;
    let engine = &*engine;
    let population = populate(engine, arguments, context, summary)?;
    let settings = &mut summary.settings;
    settings.insert(
        "warehouses".to_owned(),
        population.scale.warehouses.to_string(),
    );
    settings.insert("affinity".to_owned(), arguments.affinity.to_string());

    if !context.common.check {
        let plan = Plan {
            classes: &Kind::ALL.map(Kind::name),
            threads: context.common.threads,
            limit: context.limit(),
            timed_every: 1,
            idle_row: context.common.idle_writer.then_some((META, IDLE_KEY)),
            hold: HoldPlan::new(
                &arguments.hold,
                context.common.seconds(),
                // The two that everybody updates.
                &[WAREHOUSE, DISTRICT],
                META,
                (STOCK, population.scale.stock_rows()),
            ),
            counted: None,
            directory: &context.settings.data,
        };
        let control = Control::new(plan.threads);
        let seed = context.common.seed;
        let make = |session: &mut E::Session<'_>, thread: u32, _: &_| {
            let home = if arguments.affinity {
                Home::Share {
                    thread,
                    of: plan.threads,
                }
            } else {
                Home::Any
            };
            Terminal::new(session, &population, thread + 1, seed, home).map(TerminalClient)
        };
        let on_sample = context.on_sample(lines);
        summary.measured(measure(engine, &plan, &control, make, on_sample)?);
        summary.new_order_per_s = Some(summary.class_per_second(Kind::NewOrder.name()));
        context.measure_reads(summary)?;
    }
    if !context.common.no_check && !summary.interrupted {
        context.check(summary, || violations(engine, population.scale.rows()))?;
    }
    Ok(())
}

/// Which consistency conditions do not hold.
fn violations<E: Engine>(engine: &E, rows: u64) -> Result<Vec<String>, Failure> {
    let bar = progress::rows("checking", rows);
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let findings = check(&mut session, |rows| bar.inc(rows)).map_err(Failure::engine("check"));
    bar.finish_and_clear();
    let findings = findings?;
    let mut violations: Vec<_> = findings
        .violations
        .iter()
        .map(ToString::to_string)
        .collect();
    let more = findings.count - violations.len() as u64;
    if more > 0 {
        violations.push(format!("{more} more"));
    }
    Ok(violations)
}

/// Finds out what is there, and loads what is missing.
fn populate<E: Engine>(
    engine: &E,
    arguments: &Tpcc,
    context: &Context<'_>,
    summary: &mut Summary,
) -> Result<Population, Failure> {
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let found = Population::read(&mut session).map_err(Failure::engine("read the population"))?;
    if context.common.check {
        let found = found.ok_or_else(|| {
            Failure::Usage(format!(
                "{} holds no TPC-C",
                context.settings.data.display()
            ))
        })?;
        if !found.is_complete() {
            return Err(Failure::Usage(another_scale(&found, context)));
        }
        return Ok(found);
    }
    let there = found.map(|found| found.scale.warehouses);
    let warehouses = arguments.warehouses.or(there).unwrap_or(WAREHOUSES);
    let threads = context.common.threads;
    if arguments.affinity {
        flags::check_affinity(threads, warehouses).map_err(Failure::Usage)?;
    }
    let scale = if arguments.tiny {
        Scale::tiny(warehouses)
    } else {
        Scale::standard(warehouses)
    };
    if found.is_some_and(|found| found.is_complete() && found.scale == scale) {
        return Ok(found.expect("just seen"));
    }
    let wanted = match found {
        Some(begun) if begun.scale == scale => begun,
        Some(other) => return Err(Failure::Usage(another_scale(&other, context))),
        None => Population::new(scale, context.common.seed),
    };
    let bar = progress::rows("loading", scale.rows());
    let start = Instant::now();
    let loaded = load(&mut session, wanted, epoch_micros(), |rows| {
        bar.inc(rows);
        interrupt::proceed()
    })
    .map_err(Failure::engine("load"))?;
    bar.finish_and_clear();
    summary.load_s = Some(rounded(start.elapsed().as_secs_f64()));
    engine
        .checkpoint()
        .map_err(Failure::engine("write a checkpoint"))?;
    Ok(loaded)
}

/// What a directory holds that flags do not ask for, and what to do.
fn another_scale(found: &Population, context: &Context<'_>) -> String {
    let (directory, warehouses) = (context.settings.data.display(), found.scale.warehouses);
    let tiny = found.scale == Scale::tiny(warehouses);
    let (kind, flag) = if tiny {
        ("a tiny TPC-C", "--tiny ")
    } else {
        ("TPC-C", "")
    };
    let flags = format!("{flag}--warehouses {warehouses}");
    let holds = format!("{directory} holds {kind} of {warehouses} warehouses");
    if found.is_complete() {
        return format!(
            "{holds}: run it with {flags}, or load another one into an empty directory"
        );
    }
    format!(
        "{holds}, {} of them loaded (the load was interrupted): {flags} loads the rest; for another number give an empty directory, or \
         remove this one",
        found.loaded
    )
}

struct TerminalClient(Terminal);

impl Client for TerminalClient {
    #[inline]
    fn draw(&mut self) -> usize {
        self.0.draw() as usize
    }

    #[inline]
    fn attempt<S: Session>(&mut self, session: &mut S, now: u64) -> EngineResult<bool> {
        self.0
            .attempt(session, now)
            .map(|outcome| outcome == Outcome::Committed)
    }
}
