//! The tools tested on themselves: a store that is right survives every cut, and each mistake is
//! caught.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use vellum_crash::fault;
use vellum_crash::power::{Effort, every_call};
use vellum_crash::reference::{Mistake, Reference};
use vellum_crash::workload;
use vellum_io::{Call, Fault, FaultError, SimulatedDirectory};
use vellum_model::{Profile, Step, Subject};

const KEY_LIMIT: usize = 512;
const EFFORT: Effort = Effort {
    seeds: 3,
    second_cuts: 2,
};

fn open(
    mistake: Option<Mistake>,
) -> impl Fn(&SimulatedDirectory) -> Result<Box<dyn Subject>, String> {
    move |disk| Reference::open(disk, KEY_LIMIT, mistake)
}

fn workloads() -> Vec<(&'static str, Vec<Step>)> {
    let profile = Profile {
        page_size: 4096,
        key_limit: KEY_LIMIT,
        open_max: 4,
        power_cuts: false,
        reopens: true,
        ddl: true,
        drops_large_values: true,
        classes: false,
        hot: false,
        words: false,
        burst_max: 10,
    };
    vec![
        ("commits", workload::commits()),
        ("rollbacks", workload::rollbacks()),
        ("tables", workload::tables(20_000)),
        ("bulk load", workload::bulk_load(60)),
        ("random", workload::random(5, 80, &profile)),
    ]
}

#[test]
fn crash_power_a_store_that_is_right_survives_every_cut() {
    for (name, history) in workloads() {
        let tried = every_call(&history, KEY_LIMIT, EFFORT, 1, &open(None));
        let tried = tried.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        eprintln!("{name}: {tried:?}");
        assert!(tried.cuts >= 8 * tried.calls && tried.second_cuts > 0);
    }
}

#[test]
fn crash_power_every_mistake_of_a_store_is_caught() {
    let mistakes = [
        Mistake::AnswersBeforeSync,
        Mistake::ForgetsDirectorySync,
        Mistake::BelievesTornRecords,
        Mistake::WritesUncommitted,
        Mistake::RewritesInPlace,
    ];
    for mistake in mistakes {
        let caught = workloads().into_iter().find_map(|(_, history)| {
            every_call(&history, KEY_LIMIT, EFFORT, 1, &open(Some(mistake))).err()
        });
        let failure = caught.unwrap_or_else(|| panic!("{mistake:?} is never caught"));
        eprintln!(
            "{mistake:?}: {}",
            failure.what.lines().next().unwrap_or_default()
        );
        if mistake == Mistake::RewritesInPlace {
            assert!(
                failure.second.is_some(),
                "only a second cut can show it: {failure:?}"
            );
        }
    }
}

#[test]
fn faults_a_store_that_is_right_passes_every_error_of_every_call() {
    for (name, history) in workloads() {
        let mut refused = 0;
        for call in [Call::Write, Call::Sync, Call::Open, Call::Read] {
            let calls = fault::count(&history, KEY_LIMIT, call, &open(None)).unwrap();
            for n in 0..calls {
                for fault in kinds_of_fault(call, n) {
                    let disk = SimulatedDirectory::new();
                    let felt = fault::run_with(
                        &history,
                        KEY_LIMIT,
                        &disk,
                        Some(fault.clone()),
                        &open(None),
                    );
                    let felt = felt.unwrap_or_else(|what| panic!("{name}, {fault:?}: {what}"));
                    refused += felt.refused;
                    assert!(
                        felt.kept_shut || felt.poisoned == (call == Call::Sync),
                        "{fault:?}"
                    );
                }
            }
        }
        assert!(refused > 10, "{name}: the faults are not felt");
    }
}

fn kinds_of_fault(call: Call, n: u64) -> Vec<Fault> {
    let fault = Fault::nth(call, n);
    let mut faults = vec![fault.clone(), fault.clone().forever()];
    if matches!(call, Call::Write | Call::Read) {
        faults.push(fault.clone().with(FaultError::Short));
    }
    if call == Call::Write {
        faults.push(fault.with(FaultError::Enospc).forever());
    }
    faults
}

#[test]
fn faults_every_mistake_with_errors_is_caught() {
    for mistake in [Mistake::HidesErrors, Mistake::CountsFailedWrites] {
        let caught = workloads().into_iter().find_map(|(_, history)| {
            (0..20).find_map(|n| {
                let disk = SimulatedDirectory::new();
                let fault = Fault::nth(Call::Write, n);
                fault::run_with(
                    &history,
                    KEY_LIMIT,
                    &disk,
                    Some(fault),
                    &open(Some(mistake)),
                )
                .err()
            })
        });
        eprintln!(
            "{mistake:?}: {}",
            caught.unwrap_or_else(|| panic!("{mistake:?} is not caught"))
        );
    }
}
