//! `scan`: each thread reads all rows again and again, each time in a snapshot.

use crate::cli::Scan;
use crate::control::{Control, Counters};
use crate::measure::{Client, Plan, measure};
use crate::report::Summary;
use crate::{Context, Failure, kv};
use std::io::Write;
use vellum_workload::engine::{Engine, Result as EngineResult, Session};
use vellum_workload::kv::{IDLE, TABLES, scan};

pub(crate) fn run<E: Engine>(
    engine: &mut E,
    arguments: &Scan,
    context: &Context<'_>,
    summary: &mut Summary,
    lines: &mut dyn Write,
) -> Result<(), Failure> {
    engine
        .ensure_tables(TABLES)
        .map_err(Failure::engine("create the tables"))?;
    let engine = &*engine;
    let (rows, size) = kv::populate(engine, &arguments.rows, context, summary)?;
    if !context.common.check {
        let plan = Plan {
            classes: &["scan"],
            threads: context.common.threads,
            limit: context.limit(),
            timed_every: 1,
            idle_row: context.common.idle_writer.then_some((IDLE, kv::IDLE_KEY)),
            hold: None,
            counted: None,
            directory: &context.settings.data,
        };
        let control = Control::new(plan.threads);
        let measured = measure(
            engine,
            &plan,
            &control,
            |_, thread, control| Ok(scanner(control, thread, rows)),
            context.on_sample(lines),
        )?;
        summary.measured(measured);
        context.measure_reads(summary)?;
    }
    if !context.common.no_check && !summary.interrupted {
        context.check(summary, || {
            let found = kv::verify(engine, size)?;
            Ok(kv::violations(found, rows, found.updates))
        })?;
    }
    Ok(())
}

fn scanner(control: &Control, thread: u32, rows: u64) -> Scanner<'_> {
    Scanner {
        control,
        counters: control.counters(thread),
        rows,
    }
}

struct Scanner<'c> {
    control: &'c Control,
    counters: &'c Counters,
    rows: u64,
}

impl Client for Scanner<'_> {
    fn draw(&mut self) -> usize {
        0
    }

    fn attempt<S: Session>(&mut self, session: &mut S, _now: u64) -> EngineResult<bool> {
        scan(session, self.rows, |more| {
            self.counters.add_rows(more);
            !self.control.stopped()
        })?;
        Ok(true)
    }
}
