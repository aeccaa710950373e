//! The whole engine: transactions, trees, collectors and checkpoints, in schedules that a seed chooses.

use vellum_io::SimulatedDirectory;
use vellum_schedules::{Happened, reborn, run};

/// What old snapshots make happen did happen beside the clients: schedules without it would say nothing about it.
fn is_not_blind(all: &Happened) {
    eprintln!("{all:?}");
    assert!(
        all.promotions > 0 && all.moved > 0 && all.fat > 0,
        "{all:?}"
    );
}

#[cfg(shuttle)]
#[test]
fn shuttle_engine_keeps_its_promises_in_every_schedule() {
    use std::sync::{Arc, Mutex};
    let all = Arc::new(Mutex::new(Happened::default()));
    let noted = all.clone();
    vellum_sync::model(200, move || {
        let happened = run(&SimulatedDirectory::new(), 3);
        noted.lock().expect("one at a time").add(&happened);
    });
    let all = *all.lock().expect("the schedules are over");
    // A client's transactions conflict now and then, and one in three is rolled back.
    assert!(all.committed > 200, "{all:?} in 200 schedules");
    is_not_blind(&all);
}

#[cfg(shuttle)]
#[test]
fn shuttle_a_table_that_is_made_again_is_seen_as_it_was_in_every_schedule() {
    use std::sync::{Arc, Mutex};
    let all = Arc::new(Mutex::new(reborn::Happened::default()));
    let noted = all.clone();
    vellum_sync::model(300, move || {
        let happened = reborn::run(&SimulatedDirectory::new(), 6);
        noted.lock().expect("one at a time").add(&happened);
    });
    let all = *all.lock().expect("the schedules are over");
    eprintln!("{all:?}");
    all.is_all();
}

#[cfg(shuttle)]
#[test]
fn shuttle_the_same_seed_is_the_same_schedule() {
    use std::sync::{Arc, Mutex};
    let calls = |seed| {
        let disks = Arc::new(Mutex::new(Vec::new()));
        let noted = disks.clone();
        vellum_sync::model_from(seed, 1, move || {
            let disk = SimulatedDirectory::new();
            run(&disk, 8);
            let trace: Vec<String> = disk.trace().iter().map(ToString::to_string).collect();
            noted.lock().expect("one at a time").push(trace);
        });
        let mut disks = disks.lock().expect("one at a time");
        disks.pop().expect("one schedule")
    };
    let first = calls(1);
    assert!(!first.is_empty());
    assert_eq!(first, calls(1), "a seed replays");
    // Two schedules may make the same calls, and so may ten short ones; thirty do not.
    assert!(
        (2..32).any(|seed| calls(seed) != first),
        "another seed is another schedule"
    );
}

#[cfg(not(shuttle))]
#[test]
fn a_table_that_is_made_again_is_seen_as_it_was_under_the_threads_of_the_machine() {
    let mut all = reborn::Happened::default();
    for _ in 0..4 {
        all.add(&reborn::run(&SimulatedDirectory::new(), 20));
    }
    eprintln!("{all:?}");
    all.is_all();
}

#[cfg(not(shuttle))]
#[test]
fn engine_keeps_its_promises_under_the_threads_of_the_machine() {
    let mut all = Happened::default();
    for _ in 0..4 {
        let happened = run(&SimulatedDirectory::new(), 20);
        assert!(happened.committed > 10, "{happened:?}");
        all.add(&happened);
    }
    is_not_blind(&all);
}
