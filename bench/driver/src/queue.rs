//! `queue`: a queue of fixed length, on which an old snapshot is hardest.

use crate::cli::Queue;
use crate::control::Control;
use crate::hold::HoldPlan;
use crate::measure::{Client, Plan, measure};
use crate::report::{Summary, rounded};
use crate::{Context, Failure, interrupt, kv};
use std::io::Write;
use std::time::Instant;
use vellum_workload::engine::{Engine, Result as EngineResult, Session};
use vellum_workload::queue::{self, Found, IDLE, QUEUE, TABLES, Tail, load, look};

pub(crate) fn run<E: Engine>(
    engine: &mut E,
    arguments: &Queue,
    context: &Context<'_>,
    summary: &mut Summary,
    lines: &mut dyn Write,
) -> Result<(), Failure> {
    engine
        .ensure_tables(TABLES)
        .map_err(Failure::engine("create the tables"))?;
    let engine = &*engine;
    let (rows, size) = (arguments.rows, arguments.value_size as usize);
    let settings = &mut summary.settings;
    settings.insert("rows".to_owned(), rows.to_string());
    settings.insert("value_size".to_owned(), size.to_string());
    let before = populate(engine, arguments, context, summary)?;
    let mut sum = before.sum;

    if !context.common.check {
        let tail = Tail::new(before.next);
        let plan = Plan {
            classes: &["advance"],
            threads: context.common.threads,
            limit: context.limit(),
            // As the point operations of `kv`.
            timed_every: 8,
            idle_row: context.common.idle_writer.then_some((IDLE, kv::IDLE_KEY)),
            hold: HoldPlan::new(
                &arguments.hold,
                context.common.seconds(),
                &[QUEUE],
                IDLE,
                (QUEUE, rows),
            ),
            counted: Some(QUEUE),
            directory: &context.settings.data,
        };
        let control = Control::new(plan.threads);
        let make =
            |_: &mut E::Session<'_>, _, _: &_| Ok(QueueClient(queue::Client::new(&tail, size)));
        let measured = measure(engine, &plan, &control, make, context.on_sample(lines))?;
        summary.measured(measured);
        sum = sum.wrapping_add(tail.sum_growth());
    }
    if !context.common.no_check && !summary.interrupted {
        context.check(summary, || {
            Ok(violations(look_at(engine, size)?, rows, sum))
        })?;
    }
    Ok(())
}

/// Fills the queue where it is empty, and looks at it.
fn populate<E: Engine>(
    engine: &E,
    arguments: &Queue,
    context: &Context<'_>,
    summary: &mut Summary,
) -> Result<Found, Failure> {
    let (rows, size) = (arguments.rows, arguments.value_size as usize);
    let data = context.settings.data.display();
    let found = look_at(engine, size)?;
    if found.rows == 0 && !context.common.check {
        let mut session = engine
            .open_session()
            .map_err(Failure::engine("open a session"))?;
        let start = Instant::now();
        load(&mut session, rows, size, interrupt::proceed).map_err(Failure::engine("load"))?;
        summary.load_s = Some(rounded(start.elapsed().as_secs_f64()));
        engine
            .checkpoint()
            .map_err(Failure::engine("write a checkpoint"))?;
        return look_at(engine, size);
    }
    if found.rows == 0 {
        return Err(Failure::Usage(format!("{data} holds no queue")));
    }
    if !context.common.check && (found.rows != rows || found.wrong > 0) {
        return Err(Failure::Usage(format!(
            "{data} holds a queue of {} rows, {} of them not with values of {size} bytes: give --rows and --value-size \
             to match, or another --data",
            found.rows, found.wrong
        )));
    }
    Ok(found)
}

fn look_at<E: Engine>(engine: &E, size: usize) -> Result<Found, Failure> {
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    look(&mut session, size).map_err(Failure::engine("check"))
}

/// What is wrong with what a check found.
fn violations(found: Found, rows: u64, sum: u64) -> Vec<String> {
    let mut violations = Vec::new();
    if found.rows != rows {
        violations.push(format!("{} rows are in the queue, not {rows}", found.rows));
    }
    if found.wrong > 0 {
        violations.push(format!("{} rows are not what was written", found.wrong));
    }
    if found.sum != sum {
        violations.push(format!(
            "the numbers of the rows add up to {}, not to {sum}: a row was deleted twice, or never",
            found.sum
        ));
    }
    violations
}

struct QueueClient<'q>(queue::Client<'q>);

impl Client for QueueClient<'_> {
    #[inline]
    fn draw(&mut self) -> usize {
        self.0.draw();
        0
    }

    #[inline]
    fn attempt<S: Session>(&mut self, session: &mut S, _now: u64) -> EngineResult<bool> {
        self.0.attempt(session).map(|()| true)
    }
}
