//! The smallest log, and transactions of any size in it: nobody is refused, everybody can be rolled back, and a crash
//! anywhere is recovered from without a larger log (R9).

use crate::support::{key, rows, seed, settle, small};
use std::sync::Arc;
use vellum::{Database, Durability, Table, Transaction, TransactionOptions};
use vellum_base::random::Random;
use vellum_io::{Directory, PowerCut, SimulatedDirectory};
use vellum_sync::test_point::TestPoints;

/// Rows of a table of these tests: several times the log.
const ROWS: u32 = 6_000;

fn open(disk: &SimulatedDirectory) -> Database {
    Database::open_directory(Arc::new(disk.clone()), small()).unwrap()
}

/// A database with the smallest log, and `tables` tables with rows.
fn filled(tables: usize) -> (SimulatedDirectory, Database, Vec<Table>) {
    let disk = SimulatedDirectory::new();
    let database = open(&disk);
    let mut all = Vec::new();
    for number in 0..tables {
        let table = database
            .retry(|tx| tx.create_table(&format!("t{number}")))
            .unwrap();
        for from in (0..ROWS).step_by(100) {
            database
                .retry_with(asynchronous(), |tx| {
                    (from..from + 100).try_for_each(|n| tx.insert(&table, &key(n), &value(n)))
                })
                .unwrap();
        }
        all.push(table);
    }
    (disk, database, all)
}

fn asynchronous() -> TransactionOptions {
    TransactionOptions::default().durability(Durability::Async)
}

fn value(n: u32) -> Vec<u8> {
    let mut value = vec![n as u8; 200 + n as usize % 300];
    value[..4].copy_from_slice(&n.to_be_bytes());
    value
}

/// Every third row is deleted, one changes its length, one a few bytes.
fn change(tx: &Transaction, table: &Table, n: u32) {
    let done = match n % 3 {
        0 => tx.delete(table, &key(n)),
        1 => tx.replace(table, &key(n), b"short"),
        _ => tx.update(table, &key(n), &[8..60], |bytes| bytes.fill(0xee)),
    };
    assert!(done.unwrap(), "row {n}");
}

fn assert_untouched(database: &Database, tables: &[Table]) {
    let tx = database.begin().unwrap();
    for table in tables {
        let found = rows(&tx, &tx.table(table.name()).unwrap());
        assert_eq!(found.len(), ROWS as usize);
        for (n, (at, bytes)) in (0..).zip(found) {
            assert_eq!((at.as_slice(), bytes), (&key(n)[..], value(n)));
        }
    }
    tx.commit().unwrap();
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

/// Files of the log.
fn log_files(disk: &SimulatedDirectory) -> u64 {
    disk.list("log").unwrap().len() as u64
}

/// How many files the log has ever had: their numbers only grow.
fn log_files_ever(disk: &SimulatedDirectory) -> u64 {
    let names = disk.list("log").unwrap();
    let numbers = names.iter().map(|name| name.parse::<u64>().unwrap());
    numbers.max().unwrap() + 1
}

fn segments_max() -> u64 {
    let config = small();
    config.log_bytes_max / config.log_segment_bytes
}

#[test]
fn several_transactions_that_are_each_larger_than_the_log_run_and_roll_back_side_by_side() {
    let (disk, database, tables) = filled(3);
    for rolls_back in [true, false] {
        let open: Vec<Transaction> = tables.iter().map(|_| database.begin().unwrap()).collect();
        for n in 0..ROWS {
            for (tx, table) in open.iter().zip(&tables) {
                change(tx, table, n);
            }
        }
        assert!(log_files(&disk) <= segments_max());
        if rolls_back {
            for tx in open {
                tx.rollback().unwrap();
                assert!(log_files(&disk) <= segments_max());
            }
            assert_untouched(&database, &tables);
        } else {
            for tx in open {
                tx.commit().unwrap();
            }
            let tx = database.begin().unwrap();
            for table in &tables {
                assert_eq!(rows(&tx, table).len() as u32, ROWS - ROWS.div_ceil(3));
            }
        }
    }
    assert!(database.verify().unwrap().is_sound());
    // Nothing of what was carried is left, once a checkpoint has seen the ends.
    database.checkpoint().unwrap();
    settle(&database);
    let report = database.verify().unwrap();
    assert_eq!(report.pages.pending, 0, "{:?}", report.pages);
}

#[test]
fn savepoints_in_a_transaction_larger_than_the_log_revert_what_came_after_them_and_no_more() {
    let (_disk, database, tables) = filled(1);
    let table = &tables[0];
    let tx = database.begin().unwrap();
    let quarter = ROWS / 4;
    (0..quarter).for_each(|n| change(&tx, table, n));
    let one = tx.savepoint().unwrap();
    for round in 0..3 {
        (quarter..3 * quarter).for_each(|n| change(&tx, table, n));
        let two = tx.savepoint().unwrap();
        (3 * quarter..ROWS).for_each(|n| change(&tx, table, n));
        tx.rollback_to(&two).unwrap();
        let kept = |n: u32| tx.get(table, &key(n), |bytes| bytes == value(n)).unwrap();
        assert_eq!(kept(3 * quarter), Some(true), "round {round}");
        assert_eq!(kept(ROWS - 1), Some(true));
        assert_ne!(kept(3 * quarter - 1), Some(true));
        tx.rollback_to(&one).unwrap();
        assert_eq!(kept(3 * quarter - 1), Some(true));
        assert_eq!(kept(quarter), Some(true));
        assert_ne!(kept(quarter - 1), Some(true));
    }
    tx.rollback().unwrap();
    assert_untouched(&database, &tables);
}

#[test]
fn crash_of_transactions_larger_than_the_log_is_undone_within_the_log() {
    let seed = seed("crash_of_transactions_larger_than_the_log_is_undone_within_the_log");
    let mut random = Random::new(seed);
    let (disk, database, tables) = filled(2);
    let open_at_crash: Vec<Transaction> =
        tables.iter().map(|_| database.begin().unwrap()).collect();
    for n in 0..ROWS {
        for (tx, table) in open_at_crash.iter().zip(&tables) {
            change(tx, table, n);
        }
    }
    // Rows that are still there, again and again: undo of three logs.
    for again in 0..random.between(7_000, 9_000) as u32 {
        let n = again * 3 % ROWS + 2;
        for (tx, table) in open_at_crash.iter().zip(&tables) {
            let fill = |bytes: &mut [u8]| bytes.fill(again as u8);
            assert!(tx.update(table, &key(n), &[0..200], fill).unwrap());
        }
    }
    let mut after = disk.power_cut(seed, PowerCut::KINDS[0]);
    drop((open_at_crash, database));
    // Recoveries that are cut off, each a little later. Each may make two files: it begins in a new one.
    let mut most = log_files_ever(&after) + 2;
    for round in 0..4 {
        most += 2;
        let calls = random.between(1, 4000 << round);
        after.cut_after(calls);
        let opened = Database::open_directory(Arc::new(after.clone()), small());
        let done = opened.is_ok();
        drop(opened);
        let kind = PowerCut::KINDS[random.below(PowerCut::KINDS.len() as u64) as usize];
        after = after.power_cut(seed + round, kind);
        if done {
            break;
        }
    }
    let database = open(&after);
    let ever = log_files_ever(&after);
    println!("{ever} files, at most {most}");
    assert!(ever <= most, "{ever} files, at most {most} expected");
    assert!(log_files(&after) <= segments_max(), "{}", log_files(&after));
    assert_untouched(&database, &tables);
}

/// What one writer does: transactions of up to a fifth of the log, on rows that are its own.
fn keep_writing(database: &Database, table: &Table, rows: std::ops::Range<u32>, seed: u64) {
    let mut random = Random::new(seed);
    for _ in 0..60 {
        let tx = database.begin_with(asynchronous()).unwrap();
        for _ in 0..random.between(1, 400) {
            let n = random.between(u64::from(rows.start), u64::from(rows.end) - 1) as u32;
            let long = vec![7; random.below(700) as usize];
            let done = match random.below(3) {
                0 => tx.delete(table, &key(n)),
                _ => tx.upsert(table, &key(n), &long),
            };
            done.unwrap();
        }
        if random.chance(1, 4) {
            tx.rollback().unwrap();
        } else {
            tx.commit().unwrap();
        }
    }
}

#[test]
fn regress_writers_beside_an_idle_transaction_are_never_refused_for_log_space() {
    let seed = seed("regress_writers_beside_an_idle_transaction_are_never_refused_for_log_space");
    for threads in [false, true] {
        let disk = SimulatedDirectory::new();
        let config = small().background_threads(threads);
        let database = Database::open_directory(Arc::new(disk.clone()), config).unwrap();
        let table = database.retry(|tx| tx.create_table("t")).unwrap();
        let idle = database.begin().unwrap();
        idle.insert(&table, b"idle", b"since the beginning")
            .unwrap();
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let (database, table) = (&database, &table);
                let rows = writer * 1000..writer * 1000 + 1000;
                scope.spawn(move || keep_writing(database, table, rows, seed + u64::from(writer)));
            }
        });
        let written = database.statistics().log_bytes_written;
        assert!(
            written > 4 * small().log_bytes_max,
            "{written} bytes of log"
        );
        assert!(log_files(&disk) <= segments_max());
        idle.rollback().unwrap();
        let tx = database.begin().unwrap();
        assert!(tx.get(&table, b"idle", |_| ()).unwrap().is_none());
        tx.commit().unwrap();
        assert!(database.verify().unwrap().is_sound());
    }
}

#[test]
fn crash_undo_that_was_carried_is_durable_before_its_segments_go() {
    let (disk, database, tables) = filled(1);
    let tx = database.begin().unwrap();
    let (mut carried, mut released) = (0, 0);
    for n in 0..ROWS {
        change(&tx, &tables[0], n);
        if n % 250 != 0 {
            continue;
        }
        let in_use = database.statistics().log_bytes_in_use;
        database.checkpoint().unwrap();
        // What this checkpoint did is all that the power cut finds: nothing was flushed after it.
        let after = disk.power_cut(u64::from(n), PowerCut::CLEAN);
        let recovered = open(&after);
        assert_untouched(&recovered, &tables);
        carried += u32::from(database.verify().unwrap().pages.pending > 0);
        released += u32::from(database.statistics().log_bytes_in_use < in_use);
    }
    assert!(
        carried > 3 && released > 3,
        "{carried} carried, {released} released"
    );
    tx.rollback().unwrap();
    assert_untouched(&database, &tables);
}

/// Symptom: half of a transaction that had not committed was there after a power cut. Cause: a checkpoint dropped the carried undo of a transaction whose
/// commit was above the clock of the round that made the drop durable. Guard: K9, the end is hardened first.
#[test]
fn crash_carried_undo_stays_until_the_commit_is_hardened() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    let (disk, database, tables) = filled(1);
    let database = Arc::new(database);
    let tx = database.begin_with(asynchronous()).unwrap();
    for fill in [0xee, 0xdd] {
        for n in 0..ROWS {
            let update = tx.update(&tables[0], &key(n), &[8..190], |bytes| bytes.fill(fill));
            assert!(update.unwrap());
        }
    }
    database.checkpoint().unwrap();
    let pending = database.verify().unwrap().pages.pending;
    assert!(pending > 0, "undo is carried");
    // No page is ahead of the log now: the checkpoint below waits for no round before it drops copies.
    database.sync().unwrap();
    let points = TestPoints::new();
    let (tx, calls) = (Mutex::new(Some(tx)), AtomicU32::new(0));
    let (image, checkpoint) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let (theirs, hooks, taken, started) = (
        database.clone(),
        points.clone(),
        image.clone(),
        checkpoint.clone(),
    );
    points.on("round: clock read", move || {
        match calls.fetch_add(1, Ordering::SeqCst) {
            // A round has read its clock.
            0 => {
                let tx = tx.lock().unwrap().take().unwrap();
                std::thread::spawn(move || tx.commit().unwrap())
                    .join()
                    .unwrap();
                let (database, hooks) = (theirs.clone(), hooks.clone());
                *started.lock().unwrap() = Some(std::thread::spawn(move || {
                    let _inside = hooks.enter();
                    database.checkpoint().unwrap();
                }));
                // Long enough for it to come to where it waits for this round. If it is not, nothing is seen, and nothing fails.
                std::thread::sleep(std::time::Duration::from_millis(500));
            }
            // The next round, which the checkpoint leads: the one before is all there is.
            1 => *taken.lock().unwrap() = Some(disk.power_cut(1, PowerCut::CLEAN)),
            _ => {}
        }
    });
    let inside = points.enter();
    database.sync().unwrap();
    drop(inside);
    let started = checkpoint.lock().unwrap().take().unwrap();
    started.join().unwrap();
    let image = image.lock().unwrap().take().unwrap();
    assert_untouched(&open(&image), &tables);
}
