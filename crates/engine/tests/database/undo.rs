//! Undo of transactions of any size: what it costs beside what they cost, and a power cut anywhere in it.

use crate::support::{key, rows, seed, small};
use std::sync::Arc;
use vellum::{Config, Database, Durability, Statistics, Table, Transaction, TransactionOptions};
use vellum_base::random::Random;
use vellum_io::{Call, Fault, PowerCut, SimulatedDirectory};

const ROWS: u32 = 4_000;

fn open(disk: &SimulatedDirectory, config: &Config) -> Database {
    Database::open_directory(Arc::new(disk.clone()), config.clone()).unwrap()
}

/// A table of rows that fill several times the pool.
fn filled(config: &Config) -> (SimulatedDirectory, Database, Table) {
    let disk = SimulatedDirectory::new();
    let database = open(&disk, config);
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let asynchronous = TransactionOptions::default().durability(Durability::Async);
    for from in (0..ROWS).step_by(100) {
        database
            .retry_with(asynchronous, |tx| {
                (from..from + 100).try_for_each(|n| tx.insert(&table, &key(2 * n), &[n as u8; 300]))
            })
            .unwrap();
    }
    (disk, database, table)
}

/// How a recovery's undo gets on: by the log alone, by what was carried forward before the crash, by both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Log,
    Carried,
    Both,
}

impl Way {
    /// Log and changes that lead to it.
    fn config(self) -> (Config, u32) {
        let mut config = small();
        let (log, changes) = match self {
            Self::Log => (16 << 20, 4_000),
            Self::Carried => (2 << 20, 7_000),
            Self::Both => (4 << 20, 3_800),
        };
        config.log_bytes_max = log;
        config.checkpoint_log_bytes = 256 << 10;
        (config, changes)
    }
}

/// What a power cut left of two losers, one of them large, with savepoints in between that were rolled back to.
struct Wreck {
    disk: SimulatedDirectory,
    config: Config,
    /// Rows before the two.
    before: Vec<(Vec<u8>, Vec<u8>)>,
    /// Pages of undo that was carried forward.
    pending: u64,
}

fn wreck(way: Way, random: &mut Random) -> Wreck {
    let (config, changes) = way.config();
    let (disk, database, table) = filled(&config);
    let before = rows(&database.begin().unwrap(), &table);
    let (large, small) = (database.begin().unwrap(), database.begin().unwrap());
    for number in 0..changes {
        let row = random.below(u64::from(2 * ROWS)) as u32;
        match random.below(4) {
            0 => drop(large.delete(&table, &key(row)).unwrap()),
            1 => drop(
                large
                    .upsert(&table, &key(row), &vec![1; random.below(500) as usize])
                    .unwrap(),
            ),
            _ => drop(
                large
                    .update(&table, &key(row), &[], |_| ())
                    .and_then(|found| {
                        if found {
                            large.replace(&table, &key(row), &[2; 200])
                        } else {
                            large.insert(&table, &key(row), &[3; 90]).map(|()| true)
                        }
                    })
                    .unwrap(),
            ),
        }
        if number % 500 == 250 {
            let savepoint = large.savepoint().unwrap();
            for moment in 0..20 {
                large
                    .upsert(&table, &key(row ^ moment), b"for a moment")
                    .unwrap();
            }
            large.rollback_to(&savepoint).unwrap();
            small
                .insert(&table, &key(2 * ROWS + number), b"small")
                .unwrap();
        }
    }
    database.sync().unwrap();
    let pending = database.verify().unwrap().pages.pending;
    let disk = disk.power_cut(random.next_u64(), PowerCut::CLEAN);
    std::mem::forget((large, small));
    Wreck {
        disk,
        config,
        before,
        pending,
    }
}

fn assert_undone(database: &Database, before: &[(Vec<u8>, Vec<u8>)], what: &str) {
    let found = rows(&database.begin().unwrap(), &table_of(database));
    assert!(
        found == before,
        "{what}: {} rows, {} before",
        found.len(),
        before.len()
    );
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.findings);
}

/// The power is cut again and again while recovery undoes the losers.
fn recovers_from_cuts_in_recovery(way: Way, random: &mut Random) -> u64 {
    let Wreck {
        mut disk,
        config,
        before,
        pending,
    } = wreck(way, random);
    for round in 0.. {
        // Later and later, so that it comes to an end.
        disk.cut_after(random.below(40 + 40 * round));
        let opened = Database::open_directory(Arc::new(disk.clone()), config.clone());
        let through = !disk.is_cut();
        if through {
            drop(opened.expect("nothing but a power cut keeps a recovery from its end"));
        } else {
            drop(opened);
        }
        disk = disk.power_cut(random.next_u64(), PowerCut::LUCKY);
        if through {
            break;
        }
    }
    assert_undone(&open(&disk, &config), &before, &format!("{way:?}"));
    pending
}

fn table_of(database: &Database) -> Table {
    database.begin().unwrap().table("t").unwrap()
}

#[test]
fn crash_recovery_whose_undo_is_cut_off_anywhere_goes_on_where_it_stopped() {
    let mut random = Random::new(seed("crash_recovery_whose_undo"));
    for way in [Way::Log, Way::Carried, Way::Both] {
        for _ in 0..3 {
            let pending = recovers_from_cuts_in_recovery(way, &mut random);
            assert_eq!(pending == 0, way == Way::Log, "undo was carried forward");
        }
    }
}

/// A full disk has no room for more log than there are files, nor for copies.
#[test]
fn recovery_undoes_on_a_full_disk() {
    let mut random = Random::new(seed("recovery_undoes_on_a_full_disk"));
    for way in [Way::Log, Way::Carried, Way::Both] {
        let wreck = wreck(way, &mut random);
        let segment = wreck.config.log_segment_bytes;
        for room in [segment - 4096, segment + (64 << 10), 8 * segment] {
            let disk = wreck.disk.power_cut(random.next_u64(), PowerCut::CLEAN);
            disk.set_space_limit(Some(disk.used_space() + room));
            let database = open(&disk, &wreck.config);
            assert_undone(
                &database,
                &wreck.before,
                &format!("{way:?}, {room} bytes free"),
            );
        }
    }
}

/// Undo by the log bounds what the next recovery has to redo (Y4), and copies nothing.
#[test]
fn crash_recovery_undoes_by_the_log_where_that_has_room_and_makes_checkpoints_meanwhile() {
    let (config, changes) = Way::Log.config();
    let (disk, database, table) = filled(&config);
    let tx = database.begin().unwrap();
    for number in 0..changes {
        tx.replace(&table, &key(2 * number), &[7; 310]).unwrap();
    }
    database.sync().unwrap();
    std::mem::forget(tx);
    let crashed = disk.power_cut(1, PowerCut::CLEAN);
    let recovered = open(&crashed.power_cut(2, PowerCut::CLEAN), &config);
    let statistics = recovered.statistics();
    // One ends each recovery.
    assert!(statistics.checkpoints >= 3, "{}", statistics.checkpoints);
    let pages = statistics.file_pages;
    assert_eq!(pages, database.statistics().file_pages, "pages for copies");
    // A cut behind one of them: analysis finds the loser all the same.
    let before: Vec<_> = (0..ROWS)
        .map(|n| (key(2 * n).to_vec(), vec![n as u8; 300]))
        .collect();
    let mut cuts = 0;
    loop {
        let cut = crashed.power_cut(2, PowerCut::CLEAN);
        cut.cut_after(7 * cuts);
        let opened = Database::open_directory(Arc::new(cut.clone()), config.clone());
        if !cut.is_cut() {
            drop(opened.expect("nothing but a power cut keeps a recovery from its end"));
            break;
        }
        drop(opened);
        let again = open(&cut.power_cut(cuts, PowerCut::LUCKY), &config);
        let found = rows(&again.begin().unwrap(), &table_of(&again));
        assert_eq!(found.len(), before.len());
        assert!(found == before, "cut after {} calls", 7 * cuts);
        cuts += 1;
    }
    assert!(cuts > 50, "{cuts} cuts");
}

/// Reverting one row after the other would wait for the device once a row.
#[test]
fn undo_past_the_pool_reads_several_pages_at_a_time() {
    let mut config = small();
    config.log_bytes_max = 16 << 20;
    config.pool_bytes = 192 * config.page_size as u64;
    let (disk, database, table) = filled(&config);
    let mut random = Random::new(7);
    let tx = database.begin().unwrap();
    for _ in 0..2_000 {
        let row = random.below(u64::from(ROWS)) as u32;
        tx.update(&table, &key(2 * row), &[0..8], |bytes| bytes.fill(9))
            .unwrap();
    }
    let crashed = {
        database.sync().unwrap();
        disk.power_cut(1, PowerCut::CLEAN)
    };
    let mostly_ahead = |before: Option<&Statistics>, after: &Statistics| {
        let of = |count: fn(&Statistics) -> u64| count(after) - before.map_or(0, count);
        let (read, ahead) = (of(|it| it.pages_read), of(|it| it.pages_read_ahead));
        assert!(read > 500, "{read} pages read");
        assert!(ahead > read / 3, "{ahead} of {read} pages read ahead");
    };
    let before = database.statistics();
    tx.rollback().unwrap();
    mostly_ahead(Some(&before), &database.statistics());
    mostly_ahead(None, &open(&crashed, &config).statistics());
}

/// Leaves that rows were taken from one after the other, from either end or anywhere, are given back, although they are not
/// joined after each row.
#[test]
fn undo_of_inserts_gives_their_pages_back() {
    let mut config = small();
    config.log_bytes_max = 64 << 20;
    for order in ["ascending", "descending", "shuffled"] {
        let (_, database, tx, before) = inserts(order, &config);
        let full = database.statistics().pages_durable;
        tx.rollback().unwrap();
        let after = database.statistics().pages_durable;
        assert!(full > before + 300, "{order}: {before}, {full} pages");
        assert!(
            after < before + 30,
            "{order}: {before}, {full}, {after} pages"
        );
    }
}

/// Inserts behind the rows that were there, in some order, by a transaction that is open, and the pages before it.
fn inserts(order: &str, config: &Config) -> (SimulatedDirectory, Database, Transaction, u64) {
    let (disk, database, table) = filled(config);
    let before = database.statistics().pages_durable;
    let mut numbers: Vec<u32> = (0..20_000).map(|number| 2 * ROWS + number).collect();
    match order {
        "descending" => numbers.reverse(),
        "shuffled" => numbers.sort_by_key(|number| number.wrapping_mul(0x9E37_79B9)),
        _ => {}
    }
    let tx = database.begin().unwrap();
    for number in &numbers {
        tx.insert(&table, &key(*number), &[1; 60]).unwrap();
    }
    (disk, database, tx, before)
}

/// A log that is much shorter than what [`inserts`] makes.
fn short_log() -> Config {
    let mut config = small();
    config.pool_bytes = 1024 * config.page_size as u64;
    config.log_bytes_max = 2 << 20;
    config.checkpoint_log_bytes = 256 << 10;
    config
}

fn assert_given_back(database: &Database, before: u64, what: &str) {
    crate::support::settle(database);
    let after = database.statistics().pages_durable;
    assert!(after < before + 40, "{what}: {before}, {after} pages");
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.findings);
}

/// A log that is much shorter than the transaction has no room for joins while rows are reverted.
#[test]
fn rollback_of_more_than_a_small_log_gives_pages_back() {
    for order in ["ascending", "descending", "shuffled"] {
        let (_, database, tx, before) = inserts(order, &short_log());
        tx.rollback().unwrap();
        assert_given_back(&database, before, order);
    }
}

#[test]
fn rollback_that_maintenance_makes_of_more_than_a_small_log_gives_pages_back() {
    for order in ["ascending", "descending", "shuffled"] {
        let (disk, database, tx, before) = inserts(order, &short_log());
        disk.fail(Fault::nth(Call::Read, 0).forever());
        drop(tx);
        disk.clear_faults();
        let open = database.statistics().transactions_open;
        assert_eq!(open, 1, "{order}: it is parked");
        assert_given_back(&database, before, order);
    }
}
