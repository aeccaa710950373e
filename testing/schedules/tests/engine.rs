//! The whole engine: transactions, trees, collectors and checkpoints, in schedules that a seed chooses.

use vellum_io::SimulatedDirectory;
use vellum_schedules::run;

#[cfg(shuttle)]
#[test]
fn shuttle_engine_keeps_its_promises_in_every_schedule() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COMMITTED: AtomicU32 = AtomicU32::new(0);
    vellum_sync::model(200, || {
        COMMITTED.fetch_add(run(&SimulatedDirectory::new(), 3), Ordering::Relaxed);
    });
    // A client's transactions conflict now and then, and one in three is rolled back.
    let committed = COMMITTED.load(Ordering::Relaxed);
    assert!(
        committed > 200,
        "{committed} were committed in 200 schedules"
    );
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
            run(&disk, 2);
            let trace: Vec<String> = disk.trace().iter().map(ToString::to_string).collect();
            noted.lock().expect("one at a time").push(trace);
        });
        let mut disks = disks.lock().expect("one at a time");
        disks.pop().expect("one schedule")
    };
    let first = calls(1);
    assert!(!first.is_empty());
    assert_eq!(first, calls(1), "a seed replays");
    // Two schedules may make the same calls; ten do not.
    assert!(
        (2..12).any(|seed| calls(seed) != first),
        "another seed is another schedule"
    );
}

#[cfg(not(shuttle))]
#[test]
fn engine_keeps_its_promises_under_the_threads_of_the_machine() {
    for _ in 0..4 {
        let committed = run(&SimulatedDirectory::new(), 20);
        assert!(committed > 10, "{committed} were committed");
    }
}
