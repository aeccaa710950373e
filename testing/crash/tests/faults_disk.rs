//! Rows "EIO or short read/write" and "fsync fails" of the table of faults.

mod engine;

use engine::{KEY_LIMIT, open, profile};
use vellum_crash::{fault, workload};
use vellum_io::{Call, Fault, FaultError, SimulatedDirectory};
use vellum_model::Step;
use vellum_model::run::{first_seed, rounds};

/// Tries errors of calls of one kind: of every `stride`th call.
fn try_calls(history: &[Step], call: Call, samples: u64) -> u64 {
    let calls = fault::count(history, KEY_LIMIT, call, &open).expect("runs without a fault");
    let stride = (calls / samples).max(1);
    let numbers = (0..calls).step_by(stride as usize);
    numbers.map(|n| try_call(history, call, n).0).sum()
}

/// Every way in which the `n`th call of a kind can fail, once and for good: how many steps were refused, and whether there was such a call.
fn try_call(history: &[Step], call: Call, n: u64) -> (u64, bool) {
    let fault = Fault::nth(call, n);
    let mut errors = vec![fault.clone()];
    if matches!(call, Call::Write | Call::Read) {
        errors.push(fault.clone().with(FaultError::Short));
    }
    if matches!(call, Call::Write | Call::Allocate | Call::SetLen) {
        errors.push(fault.with(FaultError::Enospc));
    }
    let (mut refused, mut met) = (0, false);
    for fault in errors
        .iter()
        .flat_map(|once| [once.clone(), once.clone().forever()])
    {
        let disk = SimulatedDirectory::new();
        let felt = fault::run_with(history, KEY_LIMIT, &disk, Some(fault.clone()), &open);
        let felt = felt.unwrap_or_else(|what| panic!("{fault:?}: {what}"));
        let sync = matches!(call, Call::Sync | Call::SyncDir);
        assert!(
            felt.kept_shut || !felt.poisoned || sync,
            "{fault:?} poisoned"
        );
        refused += felt.refused;
        // A run that met no fault made all its calls of this kind, and they were not more.
        met |= disk.counts().of(call) > n;
    }
    (refused, met)
}

#[test]
fn faults_each_call_of_a_short_workload_fails_until_a_run_has_no_failure() {
    let history: Vec<Step> = workload::commits().into_iter().take(24).collect();
    let calls = [
        Call::Open,
        Call::Read,
        Call::Write,
        Call::Sync,
        Call::SetLen,
        Call::Allocate,
        Call::CreateDir,
        Call::Remove,
        Call::Rename,
        Call::SyncDir,
    ];
    for call in calls {
        let tried = (0..).take_while(|n| try_call(&history, call, *n).1).count();
        eprintln!("{call:?}: {tried} calls");
        assert!(tried < 10_000, "a run without a failure comes");
    }
}

#[test]
fn faults_eio_or_short_write_is_an_error_to_the_caller_and_nothing_is_half_done() {
    let mut refused = 0;
    for history in [
        workload::commits(),
        workload::rollbacks(),
        workload::tables(engine::INLINE_VALUE),
    ] {
        for call in [Call::Write, Call::Allocate, Call::SetLen] {
            refused += try_calls(&history, call, 25);
        }
    }
    assert!(refused > 0, "no fault was felt");
}

#[test]
fn faults_eio_or_short_read_is_an_error_to_the_caller_and_nothing_is_half_done() {
    // More rows than frames, so that reads come in the middle.
    let refused = try_calls(&workload::bulk_load(1500), Call::Read, 40);
    assert!(refused > 0, "no fault was felt");
}

#[test]
fn faults_a_name_that_cannot_be_made_or_changed_is_an_error() {
    for history in [workload::commits(), workload::tables(engine::INLINE_VALUE)] {
        for call in [Call::Open, Call::Rename, Call::CreateDir, Call::Remove] {
            try_calls(&history, call, 20);
        }
    }
}

#[test]
fn faults_fsync_fails_once_and_the_database_is_poisoned_and_never_tries_again() {
    let mut refused = 0;
    for history in [
        workload::commits(),
        workload::rollbacks(),
        workload::tables(engine::INLINE_VALUE),
    ] {
        for call in [Call::Sync, Call::SyncDir] {
            refused += try_calls(&history, call, 40);
        }
    }
    assert!(refused > 0, "no fault was felt");
}

#[test]
fn prop_faults_in_random_histories_are_felt_by_who_asked_only() {
    let first = first_seed();
    eprintln!("VELLUM_SEED={first}");
    for seed in (0..rounds(6)).map(|round| first.wrapping_add(round)) {
        let history = workload::random(seed, 150, &profile());
        for call in [Call::Write, Call::Read, Call::Sync] {
            try_calls(&history, call, 4);
        }
    }
}
