//! `kv`: one operation a transaction on rows of eight-byte keys; and the rows that `scan` shares.

use crate::cli::{Durability, Kv, Rows};
use crate::control::Control;
use crate::measure::{Client, Plan, measure};
use crate::report::{Summary, rounded};
use crate::{Context, Failure, device, interrupt, progress};
use std::io::Write;
use std::time::{Duration, Instant};
use vellum_workload::engine::{Engine, Result as EngineResult, Session};
use vellum_workload::kv::{self, IDLE, Mix, Order, Scanned, Sizes, TABLES};
use vellum_workload::zipf::Keys;

/// The row that the idle writer keeps to itself.
pub(crate) const IDLE_KEY: &[u8] = b"idle writer";
/// How long the device is tried before the run and again behind it.
const DEVICE_TIME: Duration = Duration::from_millis(1500);

pub(crate) fn run<E: Engine>(
    engine: &mut E,
    arguments: &Kv,
    context: &Context<'_>,
    summary: &mut Summary,
    lines: &mut dyn Write,
) -> Result<(), Failure> {
    engine
        .ensure_tables(TABLES)
        .map_err(Failure::engine("create the tables"))?;
    let engine = &*engine;
    let mix = Mix::from(arguments.mix);
    let settings = &mut summary.settings;
    settings.insert("mix".to_owned(), mix.name().to_owned());
    settings.insert("zipf".to_owned(), arguments.zipf.to_string());
    let share = arguments.read_share;
    settings.insert("read_share".to_owned(), share.to_string());
    let (rows, size) = populate(engine, &arguments.rows, None, context, summary)?;
    if context.common.check {
        return context.check(summary, || {
            let found = verify(engine, size)?;
            Ok(violations(found, rows, found.updates))
        });
    }

    let checks = !context.common.no_check;
    let updates_before = if checks && mix != Mix::Read && summary.load_s.is_none() {
        verify(engine, size)?.updates
    } else {
        0
    };
    let timed_every = match context.settings.durability {
        Durability::Async => 8,
        Durability::Sync => 1,
    };
    summary
        .settings
        .insert("timed_every".to_owned(), timed_every.to_string());
    let classes = [mix.name(), Mix::Read.name()];
    let plan = Plan {
        classes: if share > 0.0 { &classes } else { &classes[..1] },
        threads: context.common.threads,
        limit: context.limit(),
        timed_every,
        idle_row: context.common.idle_writer.then_some((IDLE, IDLE_KEY)),
        hold: None,
        counted: None,
        directory: &context.settings.data,
    };
    let keys = Keys::new(rows, arguments.zipf);
    let seed = context.common.seed;
    let make = |_: &mut E::Session<'_>, thread: u32, _: &_| {
        let client = kv::Client::new(keys.clone(), size, mix, seed, u64::from(thread));
        Ok(KvClient(client.with_read_share(share)))
    };
    let sync = context.settings.durability == Durability::Sync && mix != Mix::Read;
    let probe = || device::syncs_per_second(&context.settings.data, DEVICE_TIME);
    let before = if sync { Some(probe()?) } else { None };
    let control = Control::new(plan.threads);
    let measured = measure(engine, &plan, &control, make, context.on_sample(lines))?;
    if let Some(before) = before {
        summary.device_sync_per_s = Some(rounded((before + probe()?) / 2.0));
    }
    // Of the mix itself: the share of reads is a class of its own.
    let committed = measured.classes.first().map_or(0, |class| class.count);
    summary.measured(measured);
    context.measure_reads(summary)?;
    if checks && !summary.interrupted {
        context.check(summary, || {
            let found = verify(engine, size)?;
            // Values too short for a counter tell nothing about updates, and reads make none.
            let expected = if size < 16 || mix == Mix::Read {
                found.updates
            } else {
                updates_before.wrapping_add(committed)
            };
            Ok(violations(found, rows, expected))
        })?;
    }
    Ok(())
}

/// Loads the rows where there are none. Returns how many there are, and the bytes of a value; `least`: what those may have that were
/// updated, if not the same.
pub(crate) fn populate<E: Engine>(
    engine: &E,
    rows: &Rows,
    least: Option<usize>,
    context: &Context<'_>,
    summary: &mut Summary,
) -> Result<(u64, usize), Failure> {
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let found = kv::shape(&mut session).map_err(Failure::engine("look at the rows"))?;
    let wanted = rows.shape(found);
    let (rows, size) = wanted;
    summary.settings.insert("rows".to_owned(), rows.to_string());
    summary
        .settings
        .insert("value_size".to_owned(), size.to_string());
    match found {
        Some((found, one)) if found == rows && (least.unwrap_or(size)..=size).contains(&one) => {
            Ok(wanted)
        }
        Some((found, size)) => Err(Failure::Usage(format!(
            "{} holds {found} rows with values of {size} bytes: give no other --rows and \
             --value-size, or another --data",
            context.settings.data.display()
        ))),
        None if context.common.check => Err(Failure::Usage(format!(
            "{} holds no rows",
            context.settings.data.display()
        ))),
        None => {
            let bar = progress::rows("loading", rows);
            let start = Instant::now();
            kv::load(&mut session, rows, size, Order::Sorted, |so_far| {
                bar.set_position(so_far);
                interrupt::proceed()
            })
            .map_err(Failure::engine("load"))?;
            bar.finish_and_clear();
            summary.load_s = Some(rounded(start.elapsed().as_secs_f64()));
            engine
                .checkpoint()
                .map_err(Failure::engine("write a checkpoint"))?;
            Ok(wanted)
        }
    }
}

/// Reads and checks all rows.
pub(crate) fn verify<E: Engine>(engine: &E, sizes: impl Into<Sizes>) -> Result<Scanned, Failure> {
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    kv::verify(&mut session, sizes).map_err(Failure::engine("check"))
}

/// What is wrong with what a check found.
pub(crate) fn violations(found: Scanned, rows: u64, updates: u64) -> Vec<String> {
    let mut violations = Vec::new();
    if found.rows != rows {
        violations.push(format!("{} rows, {rows} were loaded", found.rows));
    }
    if found.wrong > 0 {
        violations.push(format!("{} rows are not what was written", found.wrong));
    }
    if found.updates != updates {
        violations.push(format!(
            "{} updates are in the rows, {updates} were committed",
            found.updates
        ));
    }
    violations
}

pub(crate) struct KvClient(pub(crate) kv::Client);

impl Client for KvClient {
    #[inline]
    fn draw(&mut self) -> usize {
        usize::from(self.0.draw())
    }

    #[inline]
    fn attempt<S: Session>(&mut self, session: &mut S, _now: u64) -> EngineResult<bool> {
        self.0.attempt(session).map(|()| true)
    }
}
