//! `hekaton`: transactions of some reads and some writes, beside short readers and long ones.

use crate::cli::{Durability, Hekaton};
use crate::control::Control;
use crate::kv::IDLE_KEY;
use crate::measure::{Client, Plan, measure};
use crate::report::{Summary, rounded};
use crate::{Context, Failure, interrupt, progress};
use std::io::Write;
use std::time::Instant;
use vellum_base::random::Random;
use vellum_workload::engine::{Engine, Isolation, Result as EngineResult, Session};
use vellum_workload::hekaton::{
    self, Found, IDLE, Kind, Mix, Stripes, TABLES, expected_balance, load, long_read, look,
};

/// Rows of a database that is made without being told how many.
const ROWS: u64 = 2_000_000;
/// Classes of a run.
const CLASSES: [&str; 3] = ["update", "read", "long_read"];
const UPDATE: usize = 0;
const READ: usize = 1;
const LONG_READ: usize = 2;

pub(crate) fn run<E: Engine>(
    engine: &mut E,
    arguments: &Hekaton,
    context: &Context<'_>,
    summary: &mut Summary,
    lines: &mut dyn Write,
) -> Result<(), Failure> {
    engine
        .ensure_tables(TABLES)
        .map_err(Failure::engine("create the tables"))?;
    let engine = &*engine;
    let rows = populate(engine, arguments, context, summary)?;
    if u64::from(arguments.writes) > rows {
        return Err(Failure::Usage(format!(
            "--writes {}: there are {rows} rows",
            arguments.writes
        )));
    }
    let mix = Mix {
        reads: arguments.reads as usize,
        writes: arguments.writes as usize,
        read_only_share: arguments.read_only_share,
        isolation: Isolation::from(arguments.isolation),
    };
    let length = ((rows as f64 * arguments.long_share) as u64).clamp(1, rows);
    note(arguments, rows, length, summary);

    // How many writes the rows must show; nobody knows where they are only looked at.
    let mut writes = None;
    if !context.common.check {
        if !context.common.no_check {
            writes = Some(look_at(engine, rows)?.writes);
        }
        let (short, long) = (context.common.threads, arguments.long_readers);
        let plan = Plan {
            classes: &CLASSES[..if long > 0 { 3 } else { 2 }],
            threads: short + long,
            limit: context.limit(),
            // As the point operations of `kv`.
            timed_every: match context.settings.durability {
                Durability::Async => 8,
                Durability::Sync => 1,
            },
            idle_row: context.common.idle_writer.then_some((IDLE, IDLE_KEY)),
            hold: None,
            counted: None,
            directory: &context.settings.data,
        };
        let control = Control::new(plan.threads);
        let stripes = arguments.deterministic.then(|| Stripes::new(rows));
        let seed = context.common.seed;
        let make = |_: &mut E::Session<'_>, thread: u32, control| {
            Ok(match thread < short {
                true => Beside::Short(
                    hekaton::Client::new(rows, arguments.zipf, mix, seed, thread.into())
                        .with_stripes(stripes.as_ref()),
                ),
                false => Beside::Long(LongReader {
                    control,
                    random: Random::new(seed ^ u64::from(thread).rotate_right(16)),
                    rows,
                    length,
                }),
            })
        };
        let measured = measure(engine, &plan, &control, make, context.on_sample(lines))?;
        let committed = measured.classes[UPDATE].count;
        writes = writes.map(|before: u64| {
            before.wrapping_add(committed.wrapping_mul(arguments.writes.into()))
        });
        if let Some(class) = measured.classes.get(LONG_READ) {
            let read = class.succeeded() as f64 * length as f64;
            summary.long_rows_per_s = Some(rounded(read / measured.seconds.max(1e-9)));
        }
        summary.measured(measured);
        context.measure_reads(summary)?;
    }
    if !context.common.no_check && !summary.interrupted {
        context.check(summary, || {
            let found = look_at(engine, rows)?;
            Ok(violations(found, rows, writes.unwrap_or(found.writes)))
        })?;
    }
    Ok(())
}

/// What was asked for, among the settings.
fn note(arguments: &Hekaton, rows: u64, length: u64, summary: &mut Summary) {
    let settings = &mut summary.settings;
    let mut insert = |name: &str, value: String| settings.insert(name.to_owned(), value);
    insert("rows", rows.to_string());
    insert("reads", arguments.reads.to_string());
    insert("writes", arguments.writes.to_string());
    insert("isolation_asked", arguments.isolation.name().to_owned());
    insert("read_only_share", arguments.read_only_share.to_string());
    insert("zipf", arguments.zipf.to_string());
    insert("long_readers", arguments.long_readers.to_string());
    insert("long_rows", length.to_string());
    insert("deterministic", arguments.deterministic.to_string());
}

/// Loads the rows where there are none. Returns how many there are.
fn populate<E: Engine>(
    engine: &E,
    arguments: &Hekaton,
    context: &Context<'_>,
    summary: &mut Summary,
) -> Result<u64, Failure> {
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let found = hekaton::rows(&mut session).map_err(Failure::engine("look at the rows"))?;
    let data = context.settings.data.display();
    let rows = arguments.rows.or(found).unwrap_or(ROWS);
    match found {
        Some(found) if found == rows => Ok(rows),
        Some(found) => Err(Failure::Usage(format!(
            "{data} holds {found} rows: give no other --rows, or another --data"
        ))),
        None if context.common.check => Err(Failure::Usage(format!("{data} holds no rows"))),
        None => {
            let bar = progress::rows("loading", rows);
            let start = Instant::now();
            load(&mut session, rows, |so_far| {
                bar.set_position(so_far);
                interrupt::proceed()
            })
            .map_err(Failure::engine("load"))?;
            bar.finish_and_clear();
            summary.load_s = Some(rounded(start.elapsed().as_secs_f64()));
            engine
                .checkpoint()
                .map_err(Failure::engine("write a checkpoint"))?;
            Ok(rows)
        }
    }
}

fn look_at<E: Engine>(engine: &E, rows: u64) -> Result<Found, Failure> {
    let bar = progress::rows("checking", rows);
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let found = look(&mut session, |so_far| bar.set_position(so_far));
    bar.finish_and_clear();
    found.map_err(Failure::engine("check"))
}

/// What is wrong with what a check found.
fn violations(found: Found, rows: u64, writes: u64) -> Vec<String> {
    let mut violations = Vec::new();
    if found.rows != rows {
        violations.push(format!("{} rows, {rows} were loaded", found.rows));
    }
    if found.wrong > 0 {
        violations.push(format!("{} rows are not what was written", found.wrong));
    }
    if found.balance != expected_balance(rows) {
        violations.push(format!(
            "the balances add up to {}, not to {}: a write was lost, or half a transaction",
            found.balance,
            expected_balance(rows)
        ));
    }
    if found.writes != writes {
        violations.push(format!(
            "{} writes are in the rows, {writes} were committed",
            found.writes
        ));
    }
    violations
}

/// What a thread does.
enum Beside<'r> {
    Short(hekaton::Client<'r>),
    Long(LongReader<'r>),
}

struct LongReader<'c> {
    control: &'c Control,
    random: Random,
    rows: u64,
    /// Rows that it reads each time.
    length: u64,
}

impl Client for Beside<'_> {
    #[inline]
    fn draw(&mut self) -> usize {
        match self {
            Self::Short(client) => match client.draw() {
                Kind::Update => UPDATE,
                Kind::Read => READ,
            },
            Self::Long(_) => LONG_READ,
        }
    }

    #[inline]
    fn attempt<S: Session>(&mut self, session: &mut S, _now: u64) -> EngineResult<bool> {
        match self {
            Self::Short(client) => client.attempt(session).map(|()| true),
            Self::Long(reader) => {
                let first = reader.random.below(reader.rows - reader.length + 1);
                let proceed = || !reader.control.stopped();
                long_read(session, first, reader.length, reader.rows, proceed)
            }
        }
    }
}
