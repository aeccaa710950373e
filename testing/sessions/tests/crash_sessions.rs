//! Every workload by SQL, from processes at a server that is killed.

use std::path::Path;
use vellum_model::run::{first_seed, rounds};
use vellum_sessions::run::{Plan, over_kills};
use vellum_sessions::workload;

const CHILD: &str = env!("CARGO_BIN_EXE_vellum-sessions-child");

fn kill(name: &str) {
    let seed = first_seed();
    for round in 0..rounds(1) {
        let directory = tempfile::tempdir().expect("a directory");
        let plan = Plan {
            sessions: 4,
            lives: 3,
            seed: seed.wrapping_add(round),
        };
        let workload = workload(name).expect("a workload");
        let path = directory.path().join("database");
        match over_kills(&*workload, name, Path::new(CHILD), &path, plan) {
            Ok(what) => eprintln!("{name}: VELLUM_SEED={}: {what}", plan.seed),
            Err(what) => panic!("{name}: VELLUM_SEED={} VELLUM_ROUNDS=1: {what}", plan.seed),
        }
    }
}

#[test]
fn crash_list_few_keeps_its_promise_at_a_server_that_is_killed() {
    kill("list-few");
}

#[test]
fn crash_list_many_keeps_its_promise_at_a_server_that_is_killed() {
    kill("list-many");
}

#[test]
fn crash_long_fork_keeps_its_promise_at_a_server_that_is_killed() {
    kill("long-fork");
}

#[test]
fn crash_write_skew_keeps_its_promise_at_a_server_that_is_killed() {
    kill("write-skew");
}

#[test]
fn crash_bank_keeps_its_promise_at_a_server_that_is_killed() {
    kill("bank");
}

#[test]
fn crash_counter_keeps_its_promise_at_a_server_that_is_killed() {
    kill("counter");
}

#[test]
fn crash_queue_keeps_its_promise_at_a_server_that_is_killed() {
    kill("queue");
}
