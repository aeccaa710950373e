//! Cuts the power at a call of a workload, reopens, and compares with the model.
//!
//! A workload is a list of steps of [`vellum_model`]. It is applied to the store and to the model side by
//! side until the disk stops; then the disk is what a machine might find, and the store is opened on
//! it. It must hold what the model held after some number of commits: at least the acknowledged ones, at
//! most all that were asked for. Then it must be consistent, and go on working.
//!
//! Invariants:
//! - I1 Every call that changes the disk is cut once ([`every_call`]), or a sample of them ([`some_calls`]).
//! - I2 A second cut hits the recovery from the first (or from a kill, after which the kernel has everything); what may be found is the same as before it, and
//!   once the store was open, exactly what it showed then.
//! - I3 A store that was recovered and went on keeps no version, page or slot that nobody needs.
//!
//! Not checked: threads (everything is one thread, so that a seed replays it), real disks.

use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vellum_base::random::Random;
use vellum_io::{Call, PowerCut, SimulatedDirectory};
use vellum_model::model::Model;
use vellum_model::run;
use vellum_model::step::{Begin, Contents, Key, Operation, Value};
use vellum_model::{Answer, Refusal, Step, Subject};

/// Opens a store on a directory, which may be empty, or what a crash left.
pub type Open<'a> = &'a dyn Fn(&SimulatedDirectory) -> Result<Box<dyn Subject>, String>;

/// How hard a workload is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Seeds a call and kind of cut that has something random about it.
    pub seeds: u64,
    /// How many calls of each recovery are cut a second time.
    pub second_cuts: u64,
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried {
    /// Calls of the workload that change the disk.
    pub calls: u64,
    /// Those of them that change the length of a file.
    pub lengths: u64,
    /// Cuts from which the store was opened and compared.
    pub cuts: u64,
    /// Second cuts, during the recovery from a first one.
    pub second_cuts: u64,
    /// Cuts that lost commits which were not acknowledged.
    pub lost_some: u64,
}

/// A cut after which the store was not what it must be.
pub struct CrashFailure {
    /// The call that was cut.
    pub call: u64,
    /// How the disk treated what was not synced; `None`: the process was killed, and the power stayed.
    pub cut: Option<PowerCut>,
    /// The seed of that.
    pub seed: u64,
    /// The call of the recovery that was cut as well.
    pub second: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// The last calls before the cut.
    pub trace: Vec<String>,
}

impl fmt::Debug for CrashFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            cut,
            seed,
            second,
            what,
            trace,
        } = self;
        match cut {
            Some(cut) => writeln!(f, "power cut at call {call} ({cut:?}, seed {seed})")?,
            None => writeln!(f, "killed at call {call}")?,
        }
        if let Some(second) = second {
            writeln!(f, "and again at call {second} of the recovery")?;
        }
        for line in trace {
            writeln!(f, "  {line}")?;
        }
        write!(f, "{what}")
    }
}

/// What may be found after a crash.
#[derive(Clone)]
pub(crate) struct Allowed {
    /// Holds every commit that was asked for.
    pub(crate) model: Model,
    /// How many of them may be there.
    pub(crate) commits: RangeInclusive<u64>,
}

/// The table that a store goes on with after a crash.
const AFTERWARDS: &str = "after the crash";
/// How many rows it gets.
const AFTERWARDS_ROWS: usize = 20;

/// Cuts every call that changes the disk, with every kind of cut.
///
/// # Errors
/// The first cut that leaves something wrong.
pub fn every_call(
    history: &[Step],
    key_limit: usize,
    effort: Effort,
    seed: u64,
    open: Open<'_>,
) -> Result<Tried, Box<CrashFailure>> {
    let mut tried = count_calls(history, key_limit, open)?;
    for call in 0..tried.calls {
        try_call(history, key_limit, effort, seed, call, open, &mut tried)?;
    }
    Ok(tried)
}

/// Cuts `samples` calls that the seed chooses.
///
/// # Errors
/// The first cut that leaves something wrong.
pub fn some_calls(
    history: &[Step],
    key_limit: usize,
    effort: Effort,
    samples: u64,
    seed: u64,
    open: Open<'_>,
) -> Result<Tried, Box<CrashFailure>> {
    let mut random = Random::new(seed);
    let mut tried = count_calls(history, key_limit, open)?;
    for _ in 0..samples {
        let call = random.below(tried.calls);
        try_call(
            history,
            key_limit,
            effort,
            random.next_u64(),
            call,
            open,
            &mut tried,
        )?;
    }
    Ok(tried)
}

/// Runs the whole workload once, without a cut, and counts what can be cut.
fn count_calls(
    history: &[Step],
    key_limit: usize,
    open: Open<'_>,
) -> Result<Tried, Box<CrashFailure>> {
    let disk = SimulatedDirectory::new();
    run_until_cut(history, key_limit, &disk, open).map_err(|what| {
        let (call, cut, seed, second) = (u64::MAX, None, 0, None);
        Box::new(CrashFailure {
            call,
            cut,
            seed,
            second,
            what,
            trace: Vec::new(),
        })
    })?;
    let counts = disk.counts();
    Ok(Tried {
        calls: disk.mutating_calls(),
        lengths: counts.of(Call::SetLen) + counts.of(Call::Allocate),
        ..Tried::default()
    })
}

/// Runs the workload up to the call, then tries every kind of cut there.
fn try_call(
    history: &[Step],
    key_limit: usize,
    effort: Effort,
    seed: u64,
    call: u64,
    open: Open<'_>,
    tried: &mut Tried,
) -> Result<(), Box<CrashFailure>> {
    let disk = SimulatedDirectory::new();
    disk.cut_after(call);
    let fail = |cut, seed, second, what| {
        let trace = disk.trace();
        let last = trace.iter().skip(trace.len().saturating_sub(12));
        let trace = last.map(ToString::to_string).collect();
        Box::new(CrashFailure {
            call,
            cut,
            seed,
            second,
            what,
            trace,
        })
    };
    let allowed =
        run_until_cut(history, key_limit, &disk, open).map_err(|what| fail(None, 0, None, what))?;
    // A killed process leaves everything to the kernel, and a cut of the recovery may still lose it.
    for cut in PowerCut::KINDS.map(Some).into_iter().chain([None]) {
        let seeds = if matches!(cut, None | Some(PowerCut::CLEAN | PowerCut::LUCKY)) {
            1
        } else {
            effort.seeds
        };
        for seed in (0..seeds).map(|n| seed.wrapping_mul(31).wrapping_add(n)) {
            let found = match cut {
                Some(cut) => disk.power_cut(seed, cut),
                None => disk.process_kill(),
            };
            let before = found.process_kill();
            tried.cuts += 1;
            let kept = check(&found, &allowed, open).map_err(|what| fail(cut, seed, None, what))?;
            tried.lost_some += u64::from(kept < *allowed.commits.end());
            // The disk decides, so the verdict of a second recovery is that of the first; but for what the kernel of a killed process has, which is
            // nobody's yet.
            let allowed = Allowed {
                model: allowed.model.clone(),
                commits: match cut {
                    Some(_) => kept..=kept,
                    None => allowed.commits.clone(),
                },
            };
            let recovery_calls = found.mutating_calls();
            let mut random = Random::new(seed ^ call);
            for _ in 0..effort.second_cuts.min(recovery_calls) {
                let second = random.below(recovery_calls);
                let found = before.process_kill();
                found.cut_after(second);
                if let Err(what) = check(&found, &allowed, open)
                    && !found.is_cut()
                {
                    return Err(fail(cut, seed, Some(second), what));
                }
                tried.second_cuts += 1;
                let kinds = PowerCut::KINDS;
                let kind = kinds[random.below(kinds.len() as u64) as usize];
                let again = found.power_cut(seed, kind);
                check(&again, &allowed, open)
                    .map_err(|what| fail(cut, seed, Some(second), format!("{kind:?}: {what}")))?;
            }
        }
    }
    Ok(())
}

/// Applies the workload until the disk stops.
pub(crate) fn run_until_cut(
    history: &[Step],
    key_limit: usize,
    disk: &SimulatedDirectory,
    open: Open<'_>,
) -> Result<Allowed, String> {
    let mut model = Model::new(key_limit, None);
    let mut subject = match open(disk) {
        Ok(subject) => subject,
        Err(_) if disk.is_cut() => {
            return Ok(Allowed {
                model,
                commits: 0..=0,
            });
        }
        Err(what) => return Err(format!("cannot be created: {what}")),
    };
    for step in history {
        let before = (model.acknowledged(), model.commits());
        let mut next = model.clone();
        match run::compare(&mut next, &mut *subject, step) {
            Ok(_) => model = next,
            Err(_) if disk.is_cut() => {
                // The step under way may be there or not, but nobody was told that it is.
                let commits = before.0..=next.commits();
                return Ok(Allowed {
                    model: next,
                    commits,
                });
            }
            Err((expected, found)) => {
                return Err(format!("{step:?}\nexpected {expected:?}\nfound {found:?}"));
            }
        }
        if disk.is_cut() {
            // The store hid the failure (background work may); nothing after it counts.
            let commits = before.0..=model.commits();
            return Ok(Allowed { model, commits });
        }
    }
    let commits = model.acknowledged()..=model.commits();
    Ok(Allowed { model, commits })
}

/// Opens the store on what a cut left, and looks; returns how many commits it kept.
pub(crate) fn check(
    disk: &SimulatedDirectory,
    allowed: &Allowed,
    open: Open<'_>,
) -> Result<u64, String> {
    look(disk, open, &|subject| {
        let kept = kept(subject, allowed)?;
        verify(subject)?;
        goes_on(subject)?;
        match subject.end_all() {
            Answer::Done => Ok(kept),
            other => Err(format!("keeps what nobody needs: {other:?}")),
        }
    })
}

/// The same, but nothing is written: for disks without room.
pub(crate) fn check_unchanged(
    disk: &SimulatedDirectory,
    allowed: &Allowed,
    open: Open<'_>,
) -> Result<u64, String> {
    look(disk, open, &|subject| {
        let kept = kept(subject, allowed)?;
        verify(subject).map(|()| kept)
    })
}

/// Opens the store, and looks.
fn look(
    disk: &SimulatedDirectory,
    open: Open<'_>,
    judge: &dyn Fn(&mut dyn Subject) -> Result<u64, String>,
) -> Result<u64, String> {
    let run = || -> Result<u64, String> {
        let mut subject = open(disk).map_err(|what| format!("does not open: {what}"))?;
        judge(&mut *subject)
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| {
            payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
        });
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

/// How many commits are there, if what is there was there after one.
fn kept(subject: &mut dyn Subject, allowed: &Allowed) -> Result<u64, String> {
    let mut contents = contents_of(subject)?;
    // An earlier recovery may have come as far as to go on, in one transaction.
    if let Some(index) = contents.iter().position(|(name, _)| name == AFTERWARDS) {
        let (_, rows) = contents.remove(index);
        if rows.len() != AFTERWARDS_ROWS {
            return Err(format!(
                "holds half of what was written later: {}",
                rows.len()
            ));
        }
    }
    let kept = allowed
        .commits
        .clone()
        .rev()
        .find(|commits| allowed.model.contents_at(*commits) == contents);
    kept.ok_or_else(|| {
        let (sure, most) = (*allowed.commits.start(), *allowed.commits.end());
        format!(
            "holds what was never there (commits {sure} to {most})\n\
             at least {:?}\nat most {:?}\nfound    {:?}",
            Answer::Contents(allowed.model.contents_at(sure)),
            Answer::Contents(allowed.model.contents_at(most)),
            Answer::Contents(contents)
        )
    })
}

fn contents_of(subject: &mut dyn Subject) -> Result<Contents, String> {
    match subject.contents() {
        Answer::Contents(contents) => Ok(contents),
        other => Err(format!("cannot be read: {other:?}")),
    }
}

pub(crate) fn verify(subject: &mut dyn Subject) -> Result<(), String> {
    match subject.apply(&Step::Verify) {
        Answer::Done => Ok(()),
        other => Err(format!("is not consistent: {other:?}")),
    }
}

/// Writes something, in a table of its own, and finds it after a restart.
fn goes_on(subject: &mut dyn Subject) -> Result<(), String> {
    let tx = u32::MAX / 2;
    let table = AFTERWARDS.to_owned();
    let step = |operation| Step::Do { tx, operation };
    let mut steps = vec![Step::Begin {
        tx,
        how: Begin::default(),
    }];
    steps.push(step(Operation::CreateTable {
        table: table.clone(),
    }));
    for n in 0..AFTERWARDS_ROWS as u8 {
        let value = Value {
            length: 10 * u32::from(n),
            seed: 7,
            few: false,
        };
        let (table, key) = (table.clone(), Key(vec![n]));
        steps.push(step(Operation::Insert { table, key, value }));
    }
    steps.push(step(Operation::Commit { deferred: false }));
    steps.push(Step::Checkpoint);
    steps.push(Step::Reopen);
    for step in steps {
        match subject.apply(&step) {
            Answer::Done => {}
            // A crash during an earlier one of these left it behind, whole.
            Answer::Refused(Refusal::TableExists) => return verify(subject),
            other => return Err(format!("does not go on: {step:?}: {other:?}")),
        }
    }
    let contents = contents_of(subject)?;
    let found = contents
        .iter()
        .find(|(name, _)| *name == table)
        .map(|(_, rows)| rows.len());
    if found != Some(AFTERWARDS_ROWS) {
        return Err(format!("lost what was written after the crash: {found:?}"));
    }
    verify(subject)
}
