//! The whole engine under chosen schedules: what its threads do, and what must hold whatever the schedule is.
//!
//! Invariants that are checked:
//! - C1 Every snapshot shows the same sum of all accounts, from its begin to its end, by scans both ways and by keys.
//! - C2 What is rolled back, to a savepoint or whole, leaves nothing.
//! - C3 The index shows the rows of the table, each once.
//! - C4 In the end the database is sound; after a power cut everything acknowledged is there, and nothing else.
//! - C5 Every account is what the last change in its list made it, in every snapshot.
//! - C6 The lists are a history in which the checker of histories finds nothing, with the order of real time: no change is lost, none that was taken
//!   back is there, no two saw them in two orders.
//!
//! Concurrency: threads come from `vellum_sync`, so that shuttle can drive them; nothing here waits by time.
//!
//! What is not checked: README.
#![forbid(unsafe_code)]

mod accounts;
pub mod reborn;

use accounts::{Written, look, prepare, transfer};
use std::sync::Arc;
use vellum::{Class, Config, Database, Durability, Error, Result, Transaction, TransactionOptions};
use vellum_history::recorder::{Running, Session};
use vellum_history::{Event, History, Level, Op, Options, Recorder, check};
use vellum_io::{PowerCut, SimulatedDirectory};
use vellum_sync::thread;

/// Few frames, small segments, early promotion, no threads of its own.
fn config() -> Config {
    let mut config = Config::default().page_size(4096).pool_bytes(24 * 4096);
    config.slots_max = 8;
    config.slot_buffer_bytes = 64 << 10;
    config.log_segment_bytes = 256 << 10;
    config.log_bytes_max = 8 * config.log_segment_bytes;
    config.checkpoint_log_bytes = 2 * config.log_segment_bytes;
    config.data_bytes_max = 8 << 20;
    // A schedule of a few rounds takes some ten ticks; a snapshot is to fall behind in the middle of it.
    config.promote_after_ticks = 3;
    config.versions.fat_updates = Some(1);
    config.background_threads = false;
    config
}

fn options(class: Class) -> TransactionOptions {
    TransactionOptions::default()
        .durability(Durability::Async)
        .class(class)
}

/// What a schedule's threads share.
struct Shared {
    database: Database,
    written: Written,
    recorder: Recorder,
}

impl Shared {
    fn look(&self, transaction: &Transaction) -> Result<Vec<Op>> {
        look(transaction, &self.written)
    }

    /// One transaction of a session: transfers, one of which may be taken back to a savepoint. True if it was committed.
    fn transact(&self, session: &mut Session<'_>, number: u32, round: u32) -> Result<bool> {
        let running = session.invoke(Level::Snapshot, Vec::new());
        let mut done = Vec::new();
        let mut work = || -> Result<bool> {
            let transaction = self.database.begin_with(options(Class::Auto))?;
            if (number + round) % 2 == 1 {
                // Long enough for others to begin and to commit before it writes.
                done.extend(self.look(&transaction)?);
            }
            let accounts = (number + round, number + 2 * round + 1);
            transfer(&transaction, &self.written, accounts, 7, &mut done)?;
            let savepoint = transaction.savepoint()?;
            let kept = done.len();
            transfer(
                &transaction,
                &self.written,
                (round, number + 3),
                5,
                &mut done,
            )?;
            if round % 2 == 1 {
                transaction.rollback_to(&savepoint)?;
                done.truncate(kept);
            }
            done.extend(self.look(&transaction)?);
            if (number + round) % 3 == 2 {
                transaction.rollback()?;
                return Ok(false);
            }
            transaction.commit()?;
            Ok(true)
        };
        let ended = work();
        match ended {
            Ok(true) => running.committed(done),
            // Also after an error: what failed is rolled back.
            Ok(false) | Err(_) => running.rolled_back(),
        }
        ended
    }

    /// One client; returns how many of its transactions were committed.
    fn client(&self, number: u32, rounds: u32) -> u32 {
        let mut session = self.recorder.session();
        let mut committed = 0;
        for round in 0..rounds {
            match self.transact(&mut session, number, round) {
                Ok(done) => committed += u32::from(done),
                Err(error) if error.is_retryable() => thread::yield_now(),
                // Somebody else made the account that this one was about to make.
                Err(Error::KeyExists { .. }) => thread::yield_now(),
                Err(error) => panic!("client {number}: {error}"),
            }
        }
        committed
    }
}

/// A snapshot that is held, and what it has read.
struct Held<'s> {
    transaction: Transaction,
    running: Running<'s, 's>,
    read: Vec<Op>,
}

impl<'s> Held<'s> {
    fn begin(shared: &'s Shared, session: &'s mut Session<'s>, class: Class) -> Self {
        let running = session.invoke(Level::Snapshot, Vec::new());
        let transaction = shared.database.begin_with(options(class));
        Self {
            transaction: transaction.expect("a slot is free"),
            running,
            read: Vec::new(),
        }
    }

    fn look(&mut self, shared: &Shared, when: &str) {
        let read = shared.look(&self.transaction);
        self.read
            .extend(read.unwrap_or_else(|error| panic!("{when}: {error}")));
    }

    fn end(self) {
        self.running.committed(self.read);
    }
}

/// What happened in a schedule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Happened {
    /// Transactions that were committed.
    pub committed: u64,
    /// Transactions that were promoted.
    pub promotions: u64,
    /// Deleted rows that went to a graveyard.
    pub moved: u64,
    /// Rows that turned fat.
    pub fat: u64,
    /// Old versions that went although an older snapshot was open.
    pub swept: u64,
}

impl Happened {
    /// Adds what happened in another.
    pub fn add(&mut self, other: &Self) {
        self.committed += other.committed;
        self.promotions += other.promotions;
        self.moved += other.moved;
        self.fat += other.fat;
        self.swept += other.swept;
    }
}

/// One schedule's work, on a disk that is empty.
///
/// # Panics
/// If something does not hold.
pub fn run(disk: &SimulatedDirectory, rounds: u32) -> Happened {
    let open = |disk: &SimulatedDirectory| {
        Database::open_directory(Arc::new(disk.clone()), config()).expect("it opens")
    };
    let shared = Arc::new(Shared {
        database: open(disk),
        written: Written::default(),
        recorder: Recorder::new(),
    });
    let database = &shared.database;
    prepare(database).expect("an empty database");
    let mut sessions: [Session<'_>; 4] = std::array::from_fn(|_| shared.recorder.session());
    let [first, second, third, fourth] = &mut sessions;
    let mut old = Held::begin(&shared, first, Class::Auto);
    let mut analytical = Held::begin(&shared, second, Class::Olap);
    let clients: Vec<_> = (0..2)
        .map(|number| {
            let shared = shared.clone();
            thread::spawn(move || shared.client(number, rounds))
        })
        .collect();
    let keeper = {
        let shared = shared.clone();
        thread::spawn(move || {
            for _ in 0..rounds {
                for _ in 0..8 {
                    shared.database.step().expect("background work");
                }
                shared.database.checkpoint().expect("a checkpoint");
            }
        })
    };
    old.look(&shared, "an old snapshot");
    analytical.look(&shared, "an old snapshot");
    let mut middle = Held::begin(&shared, third, Class::Olap);
    middle.look(&shared, "a snapshot in the middle");
    let mut committed = 0;
    for thread in clients {
        committed += thread.join().expect("a client");
    }
    keeper.join().expect("the one that writes checkpoints");
    // What the old snapshots alone see is buried now.
    while database.step().expect("background work") {}
    for mut snapshot in [old, middle, analytical] {
        snapshot.look(&shared, "an old snapshot, in the end");
        snapshot.end();
    }
    while database.step().expect("background work") {}
    database.sync().expect("a sound disk");
    let report = database.verify().expect("it can be verified");
    assert!(report.is_sound(), "C4: {:?}", report.findings);
    let mut last = Held::begin(&shared, fourth, Class::Oltp);
    last.look(&shared, "the last snapshot");
    let read = last.read.clone();
    last.end();
    let found = disk.power_cut(1, PowerCut::CLEAN);
    let again = open(&found);
    let recovered = again.begin().expect("a slot is free");
    let after = shared.look(&recovered).expect("C4: after the cut");
    assert_eq!(read, after, "C4");
    judge(shared.recorder.events());
    let seen = database.statistics();
    Happened {
        committed: committed.into(),
        promotions: seen.promotions,
        moved: seen.rows_moved,
        fat: seen.fat_rows_made,
        swept: seen.deltas_swept,
    }
}

/// C6.
fn judge(events: Vec<Event>) {
    let history = History::from_events(events).expect("a history");
    let asked = Options {
        level: None,
        real_time: true,
    };
    let report = check(&history, asked);
    assert!(report.is_clean(), "C6: {report}");
    assert_eq!(
        report.keys_without_final_read, 0,
        "C6: all are read in the end"
    );
}
