//! `scan`: each thread reads all rows, or a range of them, again and again, each time in a snapshot; other threads may
//! update rows all the while.

use crate::cli::Scan;
use crate::control::{Control, Counters};
use crate::kv::KvClient;
use crate::measure::{Client, Plan, measure};
use crate::report::Summary;
use crate::{Context, Failure, kv};
use std::io::Write;
use vellum_base::random::Random;
use vellum_workload::engine::{Engine, Result as EngineResult, Session};
use vellum_workload::kv::{self as workload, IDLE, Mix, TABLES};
use vellum_workload::zipf::Keys;

/// Classes of a run; the second only where rows are updated.
const SCAN: usize = 0;
const UPDATE: usize = 1;

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
    let (rows, size) = kv::populate(engine, &arguments.rows, None, context, summary)?;
    let range = arguments.range.unwrap_or(rows);
    if range > rows {
        return Err(Failure::Usage(format!(
            "--range {range}: there are {rows} rows"
        )));
    }
    let (scanners, updaters) = (context.common.threads, arguments.update_threads);
    let settings = &mut summary.settings;
    settings.insert("range".to_owned(), range.to_string());
    settings.insert("update_threads".to_owned(), updaters.to_string());
    // How many updates the rows must show; nobody knows where they are only looked at.
    let mut updates = None;
    if !context.common.check {
        let counted = updaters > 0 && !context.common.no_check;
        if counted {
            updates = Some(kv::verify(engine, size)?.updates);
        }
        let classes = ["scan", Mix::Update.name()];
        let plan = Plan {
            classes: if updaters > 0 {
                &classes
            } else {
                &classes[..=SCAN]
            },
            threads: scanners + updaters,
            limit: context.limit(),
            timed_every: 1,
            idle_row: context.common.idle_writer.then_some((IDLE, kv::IDLE_KEY)),
            hold: None,
            counted: None,
            directory: &context.settings.data,
        };
        let control = Control::new(plan.threads);
        let keys = Keys::new(rows, 0.0);
        let seed = context.common.seed;
        let measured = measure(
            engine,
            &plan,
            &control,
            |_, thread, control| {
                if thread >= scanners {
                    let number = u64::from(thread);
                    let client =
                        workload::Client::new(keys.clone(), size, Mix::Update, seed, number);
                    return Ok(Beside::Updater(KvClient(client)));
                }
                Ok(Beside::Scanner(Scanner {
                    control,
                    counters: control.counters(thread),
                    random: Random::new(seed ^ u64::from(thread).rotate_right(16)),
                    rows,
                    range,
                }))
            },
            context.on_sample(lines),
        )?;
        let committed = measured.classes.get(UPDATE).map_or(0, |class| class.count);
        // Values too short for a counter tell nothing about updates.
        updates = updates
            .filter(|_| size >= 16)
            .map(|before| before.wrapping_add(committed));
        summary.measured(measured);
        summary.updates_per_s =
            (updaters > 0).then(|| summary.class_per_second(Mix::Update.name()));
        context.measure_reads(summary)?;
    }
    if !context.common.no_check && !summary.interrupted {
        context.check(summary, || {
            let found = kv::verify(engine, size)?;
            Ok(kv::violations(
                found,
                rows,
                updates.unwrap_or(found.updates),
            ))
        })?;
    }
    Ok(())
}

/// What a thread does.
enum Beside<'c> {
    Scanner(Scanner<'c>),
    Updater(KvClient),
}

struct Scanner<'c> {
    control: &'c Control,
    counters: &'c Counters,
    random: Random,
    rows: u64,
    /// Rows of a scan.
    range: u64,
}

impl Client for Beside<'_> {
    fn draw(&mut self) -> usize {
        match self {
            Self::Scanner(_) => SCAN,
            Self::Updater(client) => {
                client.draw();
                UPDATE
            }
        }
    }

    fn attempt<S: Session>(&mut self, session: &mut S, now: u64) -> EngineResult<bool> {
        match self {
            Self::Scanner(scanner) => scanner.attempt(session).map(|()| true),
            Self::Updater(client) => client.attempt(session, now),
        }
    }
}

impl Scanner<'_> {
    fn attempt<S: Session>(&mut self, session: &mut S) -> EngineResult<()> {
        if self.range == self.rows {
            workload::scan(session, self.rows, |more| {
                self.counters.add_rows(more);
                !self.control.stopped()
            })?;
        } else {
            let first = self.random.below(self.rows - self.range + 1);
            self.counters
                .add_rows(workload::scan_range(session, first, self.range)?);
        }
        Ok(())
    }
}
