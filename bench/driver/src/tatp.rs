//! `tatp`: load, run, check.

use crate::cli::Tatp;
use crate::control::Control;
use crate::measure::{Client, Measured, Plan, measure};
use crate::report::{Summary, rounded};
use crate::{Context, Failure, interrupt, progress};
use std::io::Write;
use std::time::Instant;
use vellum_workload::engine::{Engine, Result as EngineResult, Session};
use vellum_workload::tatp::check::{self, check};
use vellum_workload::tatp::client::{self, Outcome};
use vellum_workload::tatp::input::Choice;
use vellum_workload::tatp::ledger::{Forwardings, Ledger};
use vellum_workload::tatp::population::{Population, load};
use vellum_workload::tatp::schema::{META, TABLES};
use vellum_workload::tatp::{Kind, rates};

/// Subscribers of a database that is created without being told how many: the least that the description measures.
const SUBSCRIBERS: u32 = 100_000;
/// The row that the idle writer keeps to itself.
const IDLE_KEY: &[u8] = b"idle writer";

pub(crate) fn run<E: Engine>(
    engine: &mut E,
    arguments: &Tatp,
    context: &Context<'_>,
    summary: &mut Summary,
    lines: &mut dyn Write,
) -> Result<(), Failure> {
    engine
        .ensure_tables(TABLES)
        .map_err(Failure::engine("create the tables"))?;
    let engine = &*engine;
    let population = populate(engine, arguments, context, summary)?;
    let subscribers = population.subscribers;
    let choice = if arguments.uniform {
        Choice::uniform(subscribers)
    } else {
        Choice::non_uniform(subscribers)
    };
    let settings = &mut summary.settings;
    settings.insert("subscribers".to_owned(), subscribers.to_string());
    settings.insert("uniform".to_owned(), arguments.uniform.to_string());

    // Which call forwardings there must be; nobody knows where they are only looked at.
    let mut forwardings = None;
    if !context.common.check {
        if !context.common.no_check {
            forwardings = Some(forwardings_of(engine)?);
        }
        let plan = Plan {
            classes: &Kind::ALL.map(Kind::name),
            threads: context.common.threads,
            limit: context.limit(),
            // As the point operations of `kv`.
            timed_every: 8,
            idle_row: context.common.idle_writer.then_some((META, IDLE_KEY)),
            hold: None,
            counted: None,
            directory: &context.settings.data,
        };
        let (control, ledger) = (Control::new(plan.threads), Ledger::default());
        let seed = context.common.seed;
        let make = |_: &mut E::Session<'_>, thread: u32, _: &_| {
            client::Client::new(&population, choice, seed, thread.into(), &ledger).map(TatpClient)
        };
        let measured = measure(engine, &plan, &control, make, context.on_sample(lines))?;
        forwardings = forwardings.map(|before| ledger.after(before));
        let shares = unexpected(&measured, &choice);
        summary.succeeded(&measured);
        summary.measured(measured);
        context.measure_reads(summary)?;
        if !context.common.no_check && !summary.interrupted {
            summary.checked(shares);
        }
    }
    if !context.common.no_check && !summary.interrupted {
        context.check(summary, || violations(engine, &population, forwardings))?;
    }
    Ok(())
}

/// The kinds of which too many or too few succeeded.
fn unexpected(measured: &Measured, choice: &Choice) -> Vec<String> {
    let judge = |(kind, class): (Kind, &crate::measure::Class)| {
        rates::judge(kind, class.count, class.succeeded(), choice)
    };
    let classes = Kind::ALL.into_iter().zip(&measured.classes);
    classes.filter_map(judge).collect()
}

fn forwardings_of<E: Engine>(engine: &E) -> Result<Forwardings, Failure> {
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    check::forwardings(&mut session).map_err(Failure::engine("look at the call forwardings"))
}

/// What is wrong with the data, if there must be these call forwardings.
fn violations<E: Engine>(
    engine: &E,
    population: &Population,
    forwardings: Option<Forwardings>,
) -> Result<Vec<String>, Failure> {
    let bar = progress::rows("checking", population.rows());
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let findings = check(&mut session, |rows| bar.inc(rows)).map_err(Failure::engine("check"));
    bar.finish_and_clear();
    let findings = findings?;
    let mut violations = findings.violations;
    let more = findings.count - violations.len() as u64;
    if more > 0 {
        violations.push(format!("{more} more"));
    }
    if let Some(expected) = forwardings.filter(|expected| *expected != findings.forwardings) {
        violations.push(format!(
            "{} call forwardings are there, {} by those that were inserted and deleted; their keys add up to {:x}, not {:x}",
            findings.forwardings.count, expected.count, findings.forwardings.keys, expected.keys
        ));
    }
    Ok(violations)
}

/// Finds out what is there, and loads what is missing.
fn populate<E: Engine>(
    engine: &E,
    arguments: &Tatp,
    context: &Context<'_>,
    summary: &mut Summary,
) -> Result<Population, Failure> {
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let found = Population::read(&mut session).map_err(Failure::engine("read the population"))?;
    let asked = arguments.subscribers;
    let wanted = match found {
        None if context.common.check => {
            let data = context.settings.data.display();
            return Err(Failure::Usage(format!("{data} holds no TATP")));
        }
        None => Population::new(asked.unwrap_or(SUBSCRIBERS), context.common.seed),
        Some(found) if asked.is_some_and(|asked| asked != found.subscribers) => {
            return Err(Failure::Usage(another_size(&found, context)));
        }
        Some(found) if found.is_complete() => return Ok(found),
        // What an interrupted load left is not taken for what was wanted unless it is named.
        Some(found) if asked.is_none() || context.common.check => {
            return Err(Failure::Usage(another_size(&found, context)));
        }
        Some(found) => found,
    };
    let bar = progress::rows("loading", wanted.rows());
    let start = Instant::now();
    let loaded = load(&mut session, wanted, |rows| {
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
fn another_size(found: &Population, context: &Context<'_>) -> String {
    let (data, subscribers) = (context.settings.data.display(), found.subscribers);
    let holds = format!("{data} holds TATP of {subscribers} subscribers");
    let flag = format!("--subscribers {subscribers}");
    if found.is_complete() {
        return format!("{holds}: run it with {flag}, or load another one into an empty directory");
    }
    format!(
        "{holds}, {} of them loaded (the load was interrupted): {flag} loads the rest; for another number give an \
         empty directory, or remove this one",
        found.loaded
    )
}

struct TatpClient<'l>(client::Client<'l>);

impl Client for TatpClient<'_> {
    #[inline]
    fn draw(&mut self) -> usize {
        self.0.draw() as usize
    }

    #[inline]
    fn attempt<S: Session>(&mut self, session: &mut S, _now: u64) -> EngineResult<bool> {
        self.0
            .attempt(session)
            .map(|outcome| outcome == Outcome::Succeeded)
    }
}
