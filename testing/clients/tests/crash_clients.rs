//! Every workload, over power cuts of a simulated disk and over kills of a real process.

use std::path::Path;
use vellum_base::random::Random;
use vellum_clients::run::{over_kills, over_power_cuts};
use vellum_clients::{NAMES, Plan, workload};
use vellum_model::run::{first_seed, rounds};

const CHILD: &str = env!("CARGO_BIN_EXE_vellum-clients-child");

fn cut(name: &str) {
    let seed = first_seed();
    for round in 0..rounds(1) {
        let seed = seed.wrapping_add(round);
        let mut random = Random::new(seed);
        let plan = Plan {
            sessions: 4,
            steps: 1500,
            lives: random.between(3, 5),
            seed,
        };
        let workload = workload(name).expect("a workload");
        match over_power_cuts(&*workload, plan) {
            Ok(what) => eprintln!("{name}: VELLUM_SEED={seed}: {what}"),
            Err(what) => panic!("{name}: VELLUM_SEED={seed} VELLUM_ROUNDS=1: {what}"),
        }
    }
}

#[test]
fn crash_list_few_keeps_its_promise_over_power_cuts() {
    cut("list-few");
}

#[test]
fn crash_list_many_keeps_its_promise_over_power_cuts() {
    cut("list-many");
}

#[test]
fn crash_list_indexed_keeps_its_promise_over_power_cuts() {
    cut("list-indexed");
}

#[test]
fn crash_long_fork_keeps_its_promise_over_power_cuts() {
    cut("long-fork");
}

#[test]
fn crash_write_skew_keeps_its_promise_over_power_cuts() {
    cut("write-skew");
}

#[test]
fn crash_bank_keeps_its_promise_over_power_cuts() {
    cut("bank");
}

#[test]
fn crash_counter_keeps_its_promise_over_power_cuts() {
    cut("counter");
}

#[test]
fn crash_queue_keeps_its_promise_over_power_cuts() {
    cut("queue");
}

#[test]
fn crash_every_workload_keeps_its_promise_over_kills() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    for round in 0..rounds(1) {
        for name in NAMES {
            let directory = tempfile::tempdir().expect("a directory");
            let plan = Plan {
                sessions: 4,
                steps: u64::MAX,
                lives: 4,
                seed: seed.wrapping_add(round),
            };
            let workload = workload(name).expect("a workload");
            let path = directory.path().join("database");
            match over_kills(&*workload, name, Path::new(CHILD), &path, plan) {
                Ok(what) => eprintln!("{name}: {what}"),
                Err(what) => panic!("{name}: VELLUM_SEED={}: {what}", plan.seed),
            }
        }
    }
}
