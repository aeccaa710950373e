//! Lets a call of the disk fail in the middle of a workload, and sees that only who asked hears of it.
//!
//! After an error the transaction that got it is abandoned, and the workload goes on beside the
//! model, without that transaction. A commit that fails may have happened or not: everything visible
//! is looked at, then the workload goes on from what it is. In the end the disk is sound again:
//! the store must show, without a restart, exactly what the model shows (unless a sync failed: then writes
//! must be refused, and nothing may reach the disk), and again after its process is killed.
//!
//! [`recover_with`]: the same while a store is opened on what a crash left.
//!
//! Not checked: which of several errors is reported, and to how many.

use crate::power::{Allowed, Open, check, verify};
use crate::syncs::Wreck;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vellum_io::{Call, Counts, Directory, Fault, PowerCut, SimulatedDirectory, TraceEntry};
use vellum_model::model::Model;
use vellum_model::run;
use vellum_model::step::{Begin, Operation};
use vellum_model::{Answer, Refusal, Step, Subject};

/// What a fault did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Felt {
    /// Steps that were refused for it.
    pub refused: u64,
    /// A sync failed.
    pub poisoned: bool,
    /// The store could not be opened while the fault was there.
    pub kept_shut: bool,
}

/// How many calls of a kind the workload makes, the opening of the store left out and counted.
///
/// # Errors
/// If the workload fails without a fault.
pub fn count(
    history: &[Step],
    key_limit: usize,
    call: Call,
    open: Open<'_>,
) -> Result<u64, String> {
    let disk = SimulatedDirectory::new();
    run_with(history, key_limit, &disk, None, open)?;
    Ok(disk.counts().of(call))
}

/// Runs the workload with a fault that is planned before the store is created.
///
/// # Errors
/// What is wrong.
pub fn run_with(
    history: &[Step],
    key_limit: usize,
    disk: &SimulatedDirectory,
    fault: Option<Fault>,
    open: Open<'_>,
) -> Result<Felt, String> {
    let mut felt = Felt::default();
    let mut model = Model::new(key_limit, None);
    if let Some(fault) = fault {
        disk.fail(fault);
    }
    let mut subject = match open(disk) {
        Ok(subject) => subject,
        Err(_) => {
            // Whatever is there now is no database yet, or an empty one.
            disk.clear_faults();
            felt.kept_shut = true;
            check(
                &disk.process_kill(),
                &Allowed {
                    model,
                    commits: 0..=0,
                },
                open,
            )?;
            return Ok(felt);
        }
    };
    // The model with one more commit, which failed, is not seen, and may be there after a restart
    // nevertheless; not once there is a commit after it, which is not there without it.
    let mut unknown = Vec::new();
    // What the disk had done when a sync failed.
    let mut ended: Option<Counts> = None;
    for step in history {
        let mut next = model.clone();
        let answer = run::compare(&mut next, &mut *subject, step);
        if let Some(ended) = &ended {
            if answer.is_ok() && next.commits() > model.commits() {
                return Err(format!("{step:?} went well after a failed sync"));
            }
            nothing_after(ended, disk)?;
        }
        if disk.poisoned() && ended.is_none() {
            let tried_again = syncs_after_a_failed_one(disk);
            if tried_again > 0 {
                return Err(format!("{step:?}: {tried_again} syncs after a failed one"));
            }
            ended = Some(disk.counts());
        }
        match answer {
            Ok(_) => {
                if next.commits() > model.commits() {
                    unknown.clear();
                }
                model = next;
            }
            // A rollback that failed is tried again later; until then its rows are in the way. One of a
            // transaction that was dropped fails without a word.
            Err((_, Answer::Refused(why)))
                if why.is_of_the_disk()
                    || (why == Refusal::Conflict && (felt.refused > 0 || has_failed(disk))) =>
            {
                felt.refused += 1;
                let commits = matches!(
                    step,
                    Step::Do {
                        operation: Operation::Commit { .. },
                        ..
                    }
                );
                if commits && next.commits() > model.commits() {
                    next.unacknowledge(model.acknowledged());
                    disk.clear_faults();
                    let visible = match subject.contents() {
                        Answer::Contents(visible) => visible,
                        // The pool is full of pages that cannot be written any more.
                        Answer::Refused(Refusal::Poisoned) => {
                            unknown.push(next);
                            break;
                        }
                        other => return Err(format!("cannot be read: {other:?}")),
                    };
                    if visible == next.contents_at(next.commits()) {
                        model = next;
                    } else if visible == model.contents_at(model.commits()) {
                        unknown.push(next);
                    } else {
                        return Err(format!("{step:?} was refused and is half there"));
                    }
                }
                if let Step::Do { tx, .. } = step {
                    let abandon = Step::Do {
                        tx: *tx,
                        operation: Operation::Abandon,
                    };
                    // Some errors have ended it already.
                    subject.apply(&abandon);
                    model.apply(*tx, &Operation::Abandon);
                }
                if matches!(step, Step::Reopen) {
                    break;
                }
            }
            // Rollbacks that failed have kept their slots, by now all of them: the workload ends here.
            Err((_, Answer::Refused(Refusal::Timeout)))
                if felt.refused > 0 && matches!(step, Step::Begin { .. }) =>
            {
                felt.refused += 1;
                break;
            }
            Err((expected, found)) => {
                return Err(format!("{step:?}\nexpected {expected:?}\nfound {found:?}"));
            }
        }
    }
    disk.clear_faults();
    let shut = matches!(subject.contents(), Answer::Refused(_)) && felt.refused > 0;
    felt.poisoned = disk.poisoned();
    if felt.poisoned {
        refuses_writes(disk, &mut *subject)?;
    }
    if !shut {
        let open_ones: Vec<_> = model.open_transactions().collect();
        for tx in open_ones {
            subject.apply(&Step::Do {
                tx,
                operation: Operation::Abandon,
            });
            model.apply(tx, &Operation::Abandon);
        }
        let expected = model.contents_at(model.commits());
        let found = match subject.contents() {
            Answer::Contents(found) => found,
            // The pool is full of pages that cannot be written any more.
            Answer::Refused(Refusal::Poisoned) if felt.poisoned => expected.clone(),
            other => return Err(format!("cannot be read: {other:?}")),
        };
        if expected != found {
            let (expected, found) = (Answer::Contents(expected), Answer::Contents(found));
            return Err(format!(
                "in the end\nexpected {expected:?}\nfound    {found:?}"
            ));
        }
        if !felt.poisoned {
            verify(&mut *subject)?;
        }
    }
    drop(subject);
    if let Some(ended) = &ended {
        nothing_after(ended, disk)?;
    }
    let sure = model.acknowledged();
    let check = |model: Model| {
        let commits = sure..=model.commits();
        let allowed = Allowed { model, commits };
        check(&disk.process_kill(), &allowed, open)?;
        check(&disk.power_cut(1, PowerCut::CLEAN), &allowed, open)
    };
    if let Err(what) = check(model)
        && !unknown.into_iter().any(|model| check(model).is_ok())
    {
        return Err(what);
    }
    Ok(felt)
}

/// How many calls of a kind the recovery of a wreck makes.
///
/// # Errors
/// If it does not recover.
pub fn recovery_calls(wreck: &Wreck, call: Call, open: Open<'_>) -> Result<u64, String> {
    let disk = wreck.disk.process_kill();
    open(&disk)?;
    Ok(disk.counts().of(call))
}

/// Recovers a wreck with a fault that is planned before; true if it was met. The store is kept shut, or it shows what is there; and without the
/// fault it recovers, whatever the first attempt has left, also if the power fails behind that.
///
/// # Errors
/// What is wrong.
pub fn recover_with(
    wreck: &Wreck,
    (call, fault): (Call, Fault),
    open: Open<'_>,
) -> Result<bool, String> {
    let disk = wreck.disk.process_kill();
    disk.fail(fault);
    let allowed = &wreck.allowed;
    let attempt = || -> Result<(), String> {
        let mut subject = match open(&disk) {
            Ok(subject) => subject,
            Err(_) if disk.counts().failed(call) > 0 => return Ok(()),
            Err(what) => return Err(format!("does not open, though nothing failed: {what}")),
        };
        match subject.contents() {
            Answer::Contents(found) => {
                let mut commits = allowed.commits.clone();
                match commits.any(|commits| allowed.model.contents_at(commits) == found) {
                    true => Ok(()),
                    false => Err("shows what was never there".into()),
                }
            }
            Answer::Refused(why) if why.is_of_the_disk() && disk.counts().failed(call) > 0 => {
                Ok(())
            }
            other => Err(format!("cannot be read: {other:?}")),
        }
    };
    let attempted = catch_unwind(AssertUnwindSafe(attempt));
    attempted.unwrap_or_else(|_| Err("panicked".into()))?;
    let met = disk.counts().failed(call) > 0;
    disk.clear_faults();
    let ends = [
        ("its process was killed", disk.process_kill()),
        ("the power was cut", disk.power_cut(1, PowerCut::CLEAN)),
    ];
    for (end, found) in ends {
        check(&found, allowed, open).map_err(|what| {
            let trace: Vec<String> = disk.trace().iter().map(ToString::to_string).collect();
            format!("after {end}: {what}\n{}", trace.join("\n"))
        })?;
    }
    Ok(met)
}

/// Whether the fault has come, as far back as the disk remembers.
fn has_failed(disk: &SimulatedDirectory) -> bool {
    disk.trace().iter().any(|call| call.fault.is_some())
}

/// How many syncs and writes reached the disk after a sync that failed, as far back as the disk remembers.
fn syncs_after_a_failed_one(disk: &SimulatedDirectory) -> usize {
    let trace = disk.trace();
    let is_sync = |call: &TraceEntry| matches!(call.call, Call::Sync | Call::SyncDir);
    let mut calls = trace.iter();
    let failed = calls
        .by_ref()
        .find(|call| is_sync(call) && call.fault.is_some());
    let writes = |call: &&TraceEntry| is_sync(call) || call.call == Call::Write;
    failed.map_or(0, |_| calls.filter(writes).count())
}

/// Nothing reached the disk since, not even a sync that might be believed.
fn nothing_after(ended: &Counts, disk: &SimulatedDirectory) -> Result<(), String> {
    let now = disk.counts();
    let same = |call| ended.of(call) == now.of(call);
    let changes = [
        Call::Write,
        Call::Sync,
        Call::SyncDir,
        Call::SetLen,
        Call::Allocate,
        Call::CreateDir,
        Call::Remove,
        Call::Rename,
    ];
    match changes.into_iter().find(|call| !same(*call)) {
        None => Ok(()),
        Some(call) => Err(format!("after a failed sync came a {call:?}")),
    }
}

/// After a failed sync: writes are refused, no sync is tried again, nothing reaches the disk.
fn refuses_writes(disk: &SimulatedDirectory, subject: &mut dyn Subject) -> Result<(), String> {
    let (syncs, written) = (disk.counts().of(Call::Sync), disk.counts().bytes_written);
    let tx = u32::MAX / 2;
    let operations = [
        Operation::CreateTable {
            table: "too late".into(),
        },
        Operation::Commit { deferred: false },
    ];
    let began = subject.apply(&Step::Begin {
        tx,
        how: Begin::default(),
    });
    let mut refused = matches!(began, Answer::Refused(Refusal::Poisoned));
    for operation in operations {
        let answer = subject.apply(&Step::Do { tx, operation });
        refused |= matches!(answer, Answer::Refused(Refusal::Poisoned));
    }
    subject.apply(&Step::Do {
        tx,
        operation: Operation::Abandon,
    });
    if !refused {
        return Err("a write after a failed sync was not refused as poisoned".into());
    }
    let counts = disk.counts();
    if counts.of(Call::Sync) != syncs || counts.bytes_written != written {
        return Err("a failed sync was tried again, or something written after it".into());
    }
    Ok(())
}
