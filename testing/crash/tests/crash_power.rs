//! Rows "power loss" and "process killed … also during recovery, checkpoint, DDL, bulk load".

mod engine;

use engine::{KEY_LIMIT, open, profile};
use vellum_crash::power::{Effort, Tried, every_call, some_calls};
use vellum_crash::syncs::half_made;
use vellum_crash::workload;
use vellum_io::PowerCut;
use vellum_model::Step;
use vellum_model::run::{first_seed, thorough};

/// All calls if it is to be thorough; else a sample that differs from run to run.
fn cut(name: &str, history: &[Step]) -> Tried {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let result = match thorough() {
        false => some_calls(
            history,
            KEY_LIMIT,
            Effort {
                seeds: 1,
                second_cuts: 1,
            },
            12,
            seed,
            &open,
        ),
        true => every_call(
            history,
            KEY_LIMIT,
            Effort {
                seeds: 2,
                second_cuts: 2,
            },
            seed,
            &open,
        ),
    };
    let tried = result.unwrap_or_else(|failure| {
        panic!("VELLUM_SEED={seed} cargo test -p vellum-crash {name}\n{failure:?}")
    });
    eprintln!("{tried:?}");
    tried
}

#[test]
fn crash_power_during_commits_keeps_what_was_acknowledged() {
    cut("crash_power_during_commits", &workload::commits());
}

#[test]
fn crash_power_during_transactions_longer_than_their_buffer_keeps_what_was_acknowledged() {
    cut(
        "crash_power_during_transactions_longer",
        &workload::long_transactions(engine::INLINE_VALUE),
    );
}

#[test]
fn crash_power_during_rollbacks_and_checkpoints_keeps_what_was_acknowledged() {
    cut("crash_power_during_rollbacks", &workload::rollbacks());
}

#[test]
fn crash_power_during_ddl_keeps_what_was_acknowledged() {
    cut(
        "crash_power_during_ddl",
        &workload::tables(engine::INLINE_VALUE),
    );
}

#[test]
fn crash_power_during_updates_of_fat_rows_keeps_what_was_acknowledged() {
    cut(
        "crash_power_during_updates_of_fat_rows",
        &workload::hot_rows(),
    );
}

#[test]
fn crash_power_during_bulk_load_keeps_what_was_acknowledged() {
    cut("crash_power_during_bulk_load", &workload::bulk_load(300));
}

#[test]
fn crash_power_during_random_histories_keeps_what_was_acknowledged() {
    let seed = first_seed();
    cut(
        "crash_power_during_random",
        &workload::random(seed, 200, &profile()),
    );
}

#[test]
fn crash_power_at_every_call_of_a_short_workload_keeps_what_was_acknowledged() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let mut history: Vec<Step> = workload::commits().into_iter().take(24).collect();
    history.push(Step::Checkpoint);
    let effort = Effort {
        seeds: 1,
        second_cuts: 0,
    };
    let tried = every_call(&history, KEY_LIMIT, effort, seed, &open).unwrap_or_else(|failure| {
        panic!("VELLUM_SEED={seed} cargo test -p vellum-crash crash_power_at_every\n{failure:?}")
    });
    eprintln!("{tried:?}");
    // Each call with each kind of cut, and with a kill.
    let ways = PowerCut::KINDS.len() as u64 + 1;
    assert!(tried.calls > 50, "{} calls", tried.calls);
    assert_eq!(tried.cuts, tried.calls * ways);
}

/// A process was killed while it made a file of the log, and the power was cut while the next one opened: the database did not open any more, "length of
/// log segment". Opening took the file over as a free one; the cut kept the header that was written into it, and lost its length, which nobody had
/// synced. Now a file that is taken over is synced before it gets a header. No cut had met what a killed process leaves to the kernel; now every
/// call that is cut is also one at which the process is killed, and the recovery from that cut.
#[test]
fn regress_crash_a_log_file_whose_length_a_killed_process_left_unsynced_gets_no_header() {
    let history: Vec<Step> = workload::commits().into_iter().take(24).collect();
    let wreck = half_made(&history, KEY_LIMIT, &open).expect("the workload runs");
    let wreck = wreck.expect("a file is made");
    // The file is taken over in one of the first calls; what a cut keeps of it is drawn.
    for (calls, seeds) in [(0..8, 24), (8..u64::MAX, 1)] {
        let cut = wreck.cut_calls(calls, seeds, &open);
        let cuts = cut.unwrap_or_else(|what| panic!("{what}"));
        assert!(cuts > 100, "{cuts} cuts");
    }
}
