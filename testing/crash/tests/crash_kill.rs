//! Row "process killed at any instant, also during recovery, checkpoint, DDL, bulk load".

use std::path::Path;
use std::time::Duration;
use vellum::Database;
use vellum_base::random::Random;
use vellum_crash::kill::run_and_kill;
use vellum_crash::ledger::Ledger;
use vellum_crash::load::{config, found};
use vellum_model::run::{first_seed, rounds};

const CHILD: &str = env!("CARGO_BIN_EXE_vellum-crash-child");

/// Copies what a crash left, so that a failure can be looked into: recovery changes it.
fn keep(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory for the copy");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            keep(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

fn look(directory: &Path, ledger: &mut Ledger) {
    let mut config = config();
    config.background_threads = false;
    let database = Database::open(directory, config).expect("recovers");
    let state = found(&database).expect("is readable");
    if let Err(what) = ledger.check(&state) {
        panic!("{what}");
    }
    let report = database.verify().expect("can be verified");
    assert!(report.is_sound(), "{:?}", report.findings);
    database.close().expect("closes");
}

#[test]
fn crash_kill_at_any_instant_loses_nothing_that_was_acknowledged() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let mut random = Random::new(seed);
    // Kept where it says, if the test fails.
    let mut directory = tempfile::tempdir().expect("a directory");
    directory.disable_cleanup(true);
    eprintln!("directory {}", directory.path().display());
    let (database, left) = (
        directory.path().join("database"),
        directory.path().join("left"),
    );
    let mut ledger = Ledger::default();
    let rounds = rounds(10);
    for round in 0..rounds {
        // One in three is killed around its recovery, the others under load.
        let early = round % 3 == 2;
        let micros = if early {
            random.below(15_000)
        } else {
            random.between(10_000, 700_000)
        };
        let after = Duration::from_micros(micros);
        let life = run_and_kill(Path::new(CHILD), &database, after, !early, &mut ledger)
            .expect("the child runs");
        assert!(life.complaints.is_empty(), "round {round}: {life:?}");
        assert!(early || life.opened, "round {round}: {life:?}");
        eprintln!(
            "round {round}: killed after {micros} us, {} notices",
            life.notices
        );
        // Sometimes the next child recovers, not this process.
        if random.chance(2, 3) || round + 1 == rounds {
            keep(&database, &left);
            look(&database, &mut ledger);
        }
    }
    assert!(ledger.durable() > 0, "nothing was committed: {ledger:?}");
}
