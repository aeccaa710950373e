//! `hot`: a few rows that are updated nonstop, and what an old snapshot of them costs to read.

use crate::cli::{Hot, Rows};
use crate::control::Control;
use crate::hold::HoldPlan;
use crate::kv::{IDLE_KEY, KvClient, populate, verify, violations};
use crate::measure::{Plan, measure};
use crate::report::Summary;
use crate::{Context, Failure};
use std::io::Write;
use vellum_workload::engine::Engine;
use vellum_workload::kv::{self, IDLE, Mix, ROWS, Sizes, TABLES};
use vellum_workload::zipf::Keys;

pub(crate) fn run<E: Engine>(
    engine: &mut E,
    arguments: &Hot,
    context: &Context<'_>,
    summary: &mut Summary,
    lines: &mut dyn Write,
) -> Result<(), Failure> {
    engine
        .ensure_tables(TABLES)
        .map_err(Failure::engine("create the tables"))?;
    let engine = &*engine;
    let rows = Rows {
        rows: Some(arguments.keys),
        value_size: Some(arguments.value_size),
    };
    let least = arguments.value_size_min.unwrap_or(arguments.value_size) as usize;
    let (rows, size) = populate(engine, &rows, Some(least), context, summary)?;
    let sizes = Sizes::within(&(least..=size));
    if sizes.vary() {
        let settings = &mut summary.settings;
        settings.insert("value_size_min".to_owned(), least.to_string());
    }
    // How many updates the rows must show; nobody knows where they are only looked at.
    let mut updates = None;
    if !context.common.check {
        let before = verify(engine, sizes)?.updates;
        let plan = Plan {
            classes: &["update"],
            threads: context.common.threads,
            limit: context.limit(),
            timed_every: 8,
            idle_row: context.common.idle_writer.then_some((IDLE, IDLE_KEY)),
            hold: HoldPlan::new(
                &arguments.hold,
                context.common.seconds(),
                &[ROWS],
                IDLE,
                (ROWS, rows),
            ),
            counted: Some(ROWS),
            directory: &context.settings.data,
        };
        let keys = Keys::new(rows, 0.0);
        let seed = context.common.seed;
        let make = |_: &mut E::Session<'_>, thread: u32, _: &_| {
            let keys = keys.clone();
            Ok(KvClient(kv::Client::new(
                keys,
                sizes,
                Mix::Update,
                seed,
                u64::from(thread),
            )))
        };
        let control = Control::new(plan.threads);
        let measured = measure(engine, &plan, &control, make, context.on_sample(lines))?;
        updates = Some(before.wrapping_add(measured.transactions));
        summary.measured(measured);
    }
    if !context.common.no_check && !summary.interrupted {
        context.check(summary, || {
            let found = verify(engine, sizes)?;
            Ok(violations(found, rows, updates.unwrap_or(found.updates)))
        })?;
    }
    Ok(())
}
