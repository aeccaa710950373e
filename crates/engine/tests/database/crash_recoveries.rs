//! Recoveries that are themselves cut, again and again: by the power, by a kill, by calls that fail, by a full disk, and each
//! with other settings than the one before (pool, log, slots, background threads). Whoever opens gets the acknowledged commits and nothing else.
//!
//! Found: images of torn pages that were put in place before they were durable (regress_crash_during_repair_after_a_killed_process_… of
//! `vellum-buffer`).
//!
//! Not here: background threads make a schedule of their own, so a seed replays the work and the cuts, but not always the failure. Commits
//! are made by one thread.

use crate::support::{by_value, key, seed, tiny};
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum::{Config, Database, Error, Result, Table, Transaction};
use vellum_base::random::Random;
use vellum_io::{Call, Fault, PowerCut, SimulatedDirectory};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Who owns keys: no two transactions that are open at a time meet, so that each may write for as long as it likes.
const OWNERS: u32 = 8;
/// The owner whose transactions commit.
const COMMITTER: u32 = OWNERS - 1;

fn value(random: &mut Random) -> Vec<u8> {
    let length = match random.below(20) {
        0 => random.below(20_000),
        1..=3 => random.below(1200),
        _ => random.below(200),
    };
    let mut value = vec![0; length as usize];
    random.fill(&mut value);
    value
}

/// Changes a row of an owner, in the model of what commits as well.
fn change(
    tx: &Transaction,
    table: &Table,
    random: &mut Random,
    (owner, range): (u32, u32),
    model: Option<&mut Rows>,
) -> Result<()> {
    let number = random.below(u64::from(range)) as u32 * OWNERS + owner;
    let mut key = key(number).to_vec();
    if number.is_multiple_of(5) {
        key.resize(4 + number as usize % 200, b'x');
    }
    match random.below(6) {
        0 | 1 => {
            tx.delete(table, &key)?;
            model.map(|rows| rows.remove(&key));
        }
        2 => match tx.update(table, &key, &[0..4], |value| value[..4].fill(7)) {
            Ok(true) => {
                if let Some(rows) = model {
                    rows.get_mut(&key).unwrap()[..4].fill(7);
                }
            }
            // Not there, or too short.
            Ok(false) | Err(Error::RangeOutsideValue { .. }) => {}
            Err(other) => return Err(other),
        },
        _ => {
            let value = value(random);
            tx.upsert(table, &key, &value)?;
            model.map(|rows| rows.insert(key, value));
        }
    }
    Ok(())
}

/// A database and what it must hold.
struct Work {
    database: Database,
    table: Table,
    range: u32,
    committed: Rows,
}

impl Work {
    fn new(disk: &SimulatedDirectory, config: &Config, random: &mut Random) -> Self {
        let database = Database::open_directory(Arc::new(disk.clone()), config.clone()).unwrap();
        let table = database.retry(|tx| tx.create_table("t")).unwrap();
        if random.chance(1, 2) {
            let index = |tx: &Transaction| {
                tx.create_index(&tx.table("t")?, "i", by_value(0, Some(3), false))
                    .map(drop)
            };
            database.retry(index).unwrap();
        }
        Self {
            database,
            table,
            range: random.between(50, 900) as u32,
            committed: Rows::new(),
        }
    }

    /// A transaction that commits, unless the disk is full; of the committer's rows, or of everybody's.
    fn commit(&mut self, random: &mut Random, steps: u64, everybody: bool) {
        let tx = self.database.begin().unwrap();
        let mut rows = self.committed.clone();
        for _ in 0..random.between(1, steps) {
            let owner = match everybody {
                true => random.below(u64::from(OWNERS)) as u32,
                false => COMMITTER,
            };
            let of = (owner, self.range);
            match change(&tx, &self.table, random, of, Some(&mut rows)) {
                Ok(()) => {}
                Err(Error::OutOfSpace { .. }) => return tx.rollback().unwrap(),
                Err(other) => panic!("{other}"),
            }
        }
        tx.commit().unwrap();
        self.committed = rows;
    }

    /// A step of a transaction that never commits.
    fn lose(&self, tx: &Transaction, random: &mut Random, owner: u32, step: u64) -> Result<()> {
        let of = (owner, self.range);
        let result = match random.below(200) {
            0..=3 => tx.savepoint().and_then(|savepoint| {
                for _ in 0..random.below(60) {
                    match change(tx, &self.table, random, of, None) {
                        Ok(()) | Err(Error::OutOfSpace { .. }) => {}
                        Err(other) => return Err(other),
                    }
                }
                tx.rollback_to(&savepoint)
            }),
            4 => tx
                .create_table(&format!("of {owner}, {step}"))
                .and_then(|table| {
                    (0..50).try_for_each(|row| tx.insert(&table, &key(row), &value(random)))
                }),
            _ => change(tx, &self.table, random, of, None),
        };
        match result {
            Err(Error::OutOfSpace { .. }) => Ok(()),
            other => other,
        }
    }

    /// Works beside transactions that are never committed, and returns those, so that there is something to undo.
    fn run(&mut self, random: &mut Random, steps: u64, threads: bool) -> Vec<Transaction> {
        for _ in 0..random.between(0, 20) {
            self.commit(random, 200, true);
        }
        let losers = random.between(1, 4) as u32;
        let mut open: Vec<Option<Transaction>> = (0..losers).map(|_| None).collect();
        for step in 0..steps {
            match open.get(random.below(u64::from(losers) + 1) as usize) {
                None if random.chance(1, 8) => self.commit(random, 10, false),
                None => {}
                Some(_) => {
                    let owner = random.below(u64::from(losers)) as u32;
                    let place = &mut open[owner as usize];
                    let tx = place.get_or_insert_with(|| self.database.begin().unwrap());
                    let rolled_back = random.chance(1, 200);
                    match self.lose(tx, random, owner, step) {
                        Ok(()) if rolled_back => place.take().unwrap().rollback().unwrap(),
                        Ok(()) => {}
                        // Of two that make tables, or of one whose snapshot is older than what was committed.
                        Err(Error::Conflict) => drop(place.take()),
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            if random.chance(1, 100) && !threads {
                self.database.step().unwrap();
            }
            if random.chance(1, 300) {
                self.database.checkpoint().unwrap();
            }
        }
        open.into_iter().flatten().collect()
    }
}

/// Another cut, or a kill, after which the kernel still has everything.
fn crash(disk: &SimulatedDirectory, random: &mut Random) -> SimulatedDirectory {
    if random.chance(1, 8) {
        return disk.process_kill();
    }
    let kind = PowerCut::KINDS[random.below(PowerCut::KINDS.len() as u64) as usize];
    disk.power_cut(random.next_u64(), kind)
}

/// Settings as another program might have them.
fn other_settings(config: &mut Config, random: &mut Random) {
    let page = config.page_size;
    if random.chance(1, 6) {
        config.background_threads = !config.background_threads;
    }
    config.pool_bytes = random.between(16, 100) * page as u64;
    config.log_segment_bytes = [64, 96, 128, 256][random.below(4) as usize] * page as u64;
    config.log_bytes_max = random.between(8, 14) * config.log_segment_bytes;
    config.slots_max = random.between(4, 20) as u16;
    config.checkpoint_log_bytes = random.between(1, 10) << 17;
}

fn found(database: &Database) -> Result<Rows> {
    let tx = database.begin()?;
    let table = tx.table("t")?;
    let mut cursor = tx.cursor(&table, ..)?;
    let mut found = Rows::new();
    while let Some((key, value)) = cursor.next()? {
        found.insert(key.to_vec(), value.to_vec());
    }
    Ok(found)
}

fn life(seed: u64) {
    let random = &mut Random::new(seed);
    let page = [4096, 4096, 8192][random.below(3) as usize];
    let frames = [16, 20, 24, 40, 100, 300][random.below(6) as usize];
    let mut config = tiny(page, frames).background_threads(random.chance(1, 2));
    config.log_bytes_max = random.between(8, 24) * config.log_segment_bytes;
    config.checkpoint_log_bytes = random.between(1, 6) * config.log_segment_bytes;
    if random.chance(1, 4) {
        config.promote_after_ticks = 20;
    }
    let disk = SimulatedDirectory::new();
    let mut work = Work::new(&disk, &config, random);
    let steps = random.between(100, 5000);
    let losers = work.run(random, steps, config.background_threads);
    // Before they are dropped, which would roll them back.
    let mut disk = crash(&disk, random);
    drop(losers);
    let Work {
        database,
        committed,
        ..
    } = work;
    drop(database);
    let last = config.clone();
    let (limited, calls) = (random.chance(1, 4), random.between(20, 400));
    for attempt in 1.. {
        let full = limited && random.chance(1, 2);
        let room = random.below(4 * config.log_segment_bytes);
        disk.set_space_limit(full.then(|| disk.used_space() + room));
        disk.cut_after(random.below(calls + 20 * attempt));
        let faulty = random.chance(1, 5);
        if faulty {
            let call = [Call::Read, Call::Write, Call::Sync][random.below(3) as usize];
            disk.fail(Fault::nth(call, random.below(60)));
        }
        other_settings(&mut config, random);
        let opened = Database::open_directory(Arc::new(disk.clone()), config.clone());
        let got = opened.and_then(|database| found(&database));
        let through = !disk.is_cut();
        match got {
            Ok(rows) => assert!(rows == committed, "seed {seed}, try {attempt}"),
            Err(error) => assert!(
                !through || faulty || full,
                "seed {seed}, try {attempt}: {error}"
            ),
        }
        disk = crash(&disk, random);
        if through && !faulty && !full {
            break;
        }
    }
    disk.set_space_limit(None);
    let database = Database::open_directory(Arc::new(disk.clone()), last.clone())
        .unwrap_or_else(|error| panic!("seed {seed}, at the end: {error}"));
    assert!(
        found(&database).unwrap() == committed,
        "seed {seed}, at the end"
    );
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "seed {seed}: {:?}", report.findings);
    assert_eq!(report.pages.pending, 0, "seed {seed}");
    let tables = database.begin().unwrap().tables().unwrap();
    assert_eq!(tables, ["t"], "seed {seed}: the losers' tables are gone");
    let log = database.statistics().log_bytes_in_use;
    assert!(log < 3 * last.log_segment_bytes, "seed {seed}: log {log}");
}

#[test]
fn crash_recoveries_that_are_cut_again_and_again_lose_nothing() {
    let seed = seed("crash_recoveries_that_are_cut");
    let lives = vellum_base::replay::rounds(60);
    for case in 0..lives {
        life(seed.wrapping_add(case));
    }
}
