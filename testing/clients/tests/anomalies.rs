//! What a snapshot allows is met and named, and what is done to a history is noticed: the workloads are not blind.

use std::sync::Arc;
use vellum::{Config, Database};
use vellum_base::random::Random;
use vellum_clients::client::{Client, Gone, How, Life};
use vellum_clients::intent::Skew;
use vellum_clients::list::{Lists, Open};
use vellum_clients::run::over_power_cuts;
use vellum_clients::{Plan, Workload};
use vellum_history::{Event, History, Level, Name, Op, Options, Recorder, check};
use vellum_io::MemoryDirectory;

#[test]
fn write_skew_by_a_predicate_is_allowed_in_snapshots_and_named() {
    let database = Database::open_directory(Arc::new(MemoryDirectory::new()), Config::default());
    let database = database.expect("opens");
    Lists::skews().prepare(&database).expect("a table");
    let recorder = Recorder::new();
    let (mut first, mut second) = (recorder.session(), recorder.session());
    let (life, mut random) = (Life::new(0), Random::new(1));
    let ops = [(0, 1), (2, 2)];
    let announced = |at: usize| vec![Op::append(ops[at].0, ops[at].1)];
    let running = [
        first.invoke(Level::Snapshot, announced(0)),
        second.invoke(Level::Snapshot, announced(1)),
    ];
    let transactions = [(); 2].map(|()| database.begin().expect("begins"));
    let mut done = [Vec::new(), Vec::new()];
    for at in 0..2 {
        let (transaction, done) = (&transactions[at], &mut done[at]);
        let (key, value) = ops[at];
        let skew = Skew {
            base: 0,
            window: 4,
            key,
            value,
        };
        let lists = Open::new(transaction, false, How::SNAPSHOT, &life);
        skew.run(&mut lists.expect("a table"), &mut random, done)
            .expect("both see an empty group");
    }
    for ((transaction, running), done) in transactions.into_iter().zip(running).zip(done) {
        transaction.commit().expect("no row is written by both");
        running.committed(done);
    }
    let history = History::from_events(recorder.events()).expect("a history");
    let report = check(&history, Options::default());
    assert!(report.is_clean() && report.has(Name::G2Item), "{report}");
    let serializable = Options {
        level: Some(Level::Serializable),
        real_time: false,
    };
    assert!(!check(&history, serializable).is_clean());
}

#[test]
fn an_acknowledged_append_that_is_taken_away_is_missed() {
    let plan = Plan {
        sessions: 3,
        holders: 1,
        steps: 40,
        lives: 1,
        seed: 5,
        versions: None,
    };
    // The same lists without the power to read one element of them.
    struct Blind(Lists);
    impl Workload for Blind {
        fn prepare(&self, database: &Database) -> vellum::Result<()> {
            self.0.prepare(database)
        }
        fn step(&self, client: &mut Client<'_>) -> Result<(), Gone> {
            self.0.step(client)
        }
        fn read_all(&self, client: &mut Client<'_>, events: &[Event]) -> Result<(), Gone> {
            self.0.read_all(client, events)
        }
        fn judge(&self, mut events: Vec<Event>) -> Result<String, String> {
            let last = events.last_mut().expect("a final read");
            let read = last.ops.iter_mut().find_map(|op| match op {
                Op::Read(_, Some(values)) if !values.is_empty() => Some(values),
                _ => None,
            });
            read.expect("something was appended").pop();
            self.0.judge(events)
        }
    }
    let error = over_power_cuts(&Blind(Lists::few()), plan).unwrap_err();
    assert!(
        error.contains("lost-append") || error.contains("incompatible-order"),
        "{error}"
    );
    // Nobody looks into it.
    let file = error.rsplit(' ').next().expect("a file");
    std::fs::remove_file(file).expect("the history was kept");
}

#[test]
fn an_error_of_a_sound_disk_is_no_power_cut() {
    struct Failing;
    impl Workload for Failing {
        fn prepare(&self, _: &Database) -> vellum::Result<()> {
            Ok(())
        }
        fn step(&self, _: &mut Client<'_>) -> Result<(), Gone> {
            Err(Gone(vellum::Error::Poisoned))
        }
        fn read_all(&self, _: &mut Client<'_>, _: &[Event]) -> Result<(), Gone> {
            Ok(())
        }
        fn judge(&self, _: Vec<Event>) -> Result<String, String> {
            Ok(String::new())
        }
    }
    let plan = Plan {
        sessions: 2,
        holders: 1,
        steps: 1,
        lives: 1,
        seed: 3,
        versions: None,
    };
    let error = over_power_cuts(&Failing, plan).unwrap_err();
    assert!(error.contains("poisoned"), "{error}");
    // Nobody looks into it.
    let file = error.rsplit(' ').next().expect("a file");
    std::fs::remove_file(file).expect("the history was kept");
}
