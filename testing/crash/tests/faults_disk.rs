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
    let mut refused = 0;
    let stride = (calls / samples).max(1);
    for n in (0..calls).step_by(stride as usize) {
        let fault = Fault::nth(call, n);
        let mut faults = vec![fault.clone(), fault.clone().forever()];
        if matches!(call, Call::Write | Call::Read) {
            faults.push(fault.clone().with(FaultError::Short));
        }
        if matches!(call, Call::Write | Call::Allocate | Call::SetLen) {
            faults.push(fault.with(FaultError::Enospc).forever());
        }
        for fault in faults {
            let disk = SimulatedDirectory::new();
            let felt = fault::run_with(history, KEY_LIMIT, &disk, Some(fault.clone()), &open);
            let felt = felt.unwrap_or_else(|what| panic!("{fault:?}: {what}"));
            let sync = matches!(call, Call::Sync | Call::SyncDir);
            assert!(
                felt.kept_shut || !felt.poisoned || sync,
                "{fault:?} poisoned"
            );
            refused += felt.refused;
        }
    }
    refused
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
