//! Rows "disk full at any write", "transaction larger than memory; rollback of it", "slot exhaustion".
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod engine;

use engine::config;
use std::sync::Arc;
use std::time::Duration;
use vellum::{Database, Error, Family, Result, Transaction, TransactionOptions};
use vellum_io::SimulatedDirectory;

fn database(disk: &SimulatedDirectory) -> Database {
    Database::open_directory(Arc::new(disk.clone()), config()).expect("opens")
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn value(n: u32) -> Vec<u8> {
    let mut value = vec![n as u8; 300];
    value[..4].copy_from_slice(&n.to_be_bytes());
    value
}

/// Reads all rows; fails the test if one is wrong.
fn rows(database: &Database, table: &str) -> u32 {
    let transaction = database
        .begin_with(TransactionOptions::default().read_only(true))
        .unwrap();
    let table = transaction.table(table).unwrap();
    let mut cursor = transaction.cursor(&table, ..).unwrap();
    let mut count = 0;
    while let Some((key, bytes)) = cursor.next().unwrap() {
        let n = u32::from_be_bytes(key.try_into().unwrap());
        assert_eq!((n, bytes), (count, value(n).as_slice()));
        count += 1;
    }
    count
}

/// Inserts rows in transactions of ten until something fails; how many were committed, and what failed.
fn fill(database: &Database, from: u32, most: u32) -> (u32, Option<Error>) {
    let mut committed = from;
    while committed < most {
        let insert = || -> Result<()> {
            let transaction = database.begin()?;
            let table = transaction.table("t")?;
            for n in committed..committed + 10 {
                if let Err(error) = transaction.insert(&table, &key(n), &value(n)) {
                    // The statement is undone, the transaction lives: it can read and be rolled back.
                    assert_eq!(error.family(), Family::Resource, "{error:?}");
                    assert!(!transaction.get_into(&table, &key(n), &mut Vec::new())?);
                    transaction.rollback()?;
                    return Err(error);
                }
            }
            transaction.commit()
        };
        match insert() {
            Ok(()) => committed += 10,
            Err(error) => return (committed, Some(error)),
        }
    }
    (committed, None)
}

#[test]
fn faults_disk_full_refuses_writers_keeps_readers_and_ends_without_a_restart() {
    let disk = SimulatedDirectory::new();
    let database = database(&disk);
    database
        .retry(|transaction| transaction.create_table("t").map(drop))
        .unwrap();
    disk.set_space_limit(Some(disk.used_space() + (600 << 10)));
    let (committed, error) = fill(&database, 0, 100_000);
    assert!(
        matches!(error, Some(Error::OutOfSpace { .. })),
        "{error:?} after {committed}"
    );
    assert!(committed > 100, "{committed}");
    // Readers go on, and no writer's failure takes anything away.
    assert_eq!(rows(&database, "t"), committed);
    for _ in 0..5 {
        let (now, error) = fill(&database, committed, committed + 10_000);
        assert!(error.is_some());
        assert_eq!(rows(&database, "t"), now);
    }
    let full = rows(&database, "t");
    // Space comes back: writers go on.
    disk.set_space_limit(None);
    let (now, error) = fill(&database, full, full + 500);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(rows(&database, "t"), now);
    assert!(database.verify().unwrap().is_sound());
    database.close().unwrap();
}

#[test]
fn faults_disk_full_does_not_keep_a_large_transaction_from_rolling_back() {
    let disk = SimulatedDirectory::new();
    let database = database(&disk);
    database
        .retry(|transaction| transaction.create_table("t").map(drop))
        .unwrap();
    let (committed, error) = fill(&database, 0, 500);
    assert!(error.is_none());
    disk.set_space_limit(Some(disk.used_space() + (400 << 10)));
    let transaction = database.begin().unwrap();
    let table = transaction.table("t").unwrap();
    let mut n = committed;
    let error = loop {
        let old = key(n % committed);
        let written = transaction
            .insert(&table, &key(n), &value(n))
            .and_then(|()| transaction.upsert(&table, &old, &[1; 900]));
        match written {
            Ok(_) => n += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.family(), Family::Resource, "{error:?}");
    transaction.rollback().unwrap();
    assert_eq!(rows(&database, "t"), committed);
    disk.set_space_limit(None);
    let (now, error) = fill(&database, committed, committed + 200);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(rows(&database, "t"), now);
    assert!(database.verify().unwrap().is_sound());
}

/// 24 frames of 4 KiB hold 300 of these rows; the small log holds eight segments of 256 KiB.
const MANY: u32 = 12_000;

fn with_log(disk: &SimulatedDirectory, segments: u64) -> Database {
    let mut config = config();
    config.log_bytes_max = segments * config.log_segment_bytes;
    Database::open_directory(Arc::new(disk.clone()), config).expect("opens")
}

#[test]
fn faults_inserts_larger_than_memory_and_log_and_their_rollback_work() {
    let disk = SimulatedDirectory::new();
    let database = with_log(&disk, 8);
    database
        .retry(|transaction| transaction.create_table("t").map(drop))
        .unwrap();
    for commits in [false, true] {
        let transaction = database.begin().unwrap();
        let table = transaction.table("t").unwrap();
        for n in 0..MANY {
            transaction.insert(&table, &key(n), &value(n)).unwrap();
        }
        assert_eq!(transaction.count(&table, ..).unwrap(), u64::from(MANY));
        if commits {
            transaction.commit().unwrap();
        } else {
            transaction.rollback().unwrap();
        }
        assert_eq!(rows(&database, "t"), if commits { MANY } else { 0 });
    }
    assert!(database.verify().unwrap().is_sound());
}

/// Updates and deletes of more than memory: rolled back, and undone after the process was killed.
fn change_everything(segments: u64) {
    let disk = SimulatedDirectory::new();
    let database = with_log(&disk, segments);
    database
        .retry(|transaction| transaction.create_table("t").map(drop))
        .unwrap();
    let (_, error) = fill(&database, 0, MANY);
    assert!(error.is_none(), "{error:?}");
    let change = |transaction: &Transaction| {
        let table = transaction.table("t").unwrap();
        for n in 0..MANY {
            if n % 2 == 0 {
                assert!(transaction.delete(&table, &key(n)).unwrap());
            } else {
                assert!(transaction.replace(&table, &key(n), b"short").unwrap());
            }
        }
    };
    let transaction = database.begin().unwrap();
    change(&transaction);
    transaction.rollback().unwrap();
    assert_eq!(rows(&database, "t"), MANY);
    assert!(database.verify().unwrap().is_sound());
    let transaction = database.begin().unwrap();
    change(&transaction);
    let after = disk.process_kill();
    drop(transaction);
    drop(database);
    let database = with_log(&after, segments);
    assert_eq!(rows(&database, "t"), MANY);
    assert!(database.verify().unwrap().is_sound());
}

#[test]
fn faults_updates_and_deletes_larger_than_memory_and_their_rollback_work() {
    change_everything(128);
}

#[test]
fn faults_updates_and_deletes_larger_than_the_log_and_their_rollback_work() {
    change_everything(8);
}

#[test]
fn faults_slot_exhaustion_waits_with_a_timeout_and_a_clear_error() {
    let disk = SimulatedDirectory::new();
    let database = database(&disk);
    let mut open = Vec::new();
    let options = TransactionOptions::default().slot_timeout(Duration::ZERO);
    let error = loop {
        match database.begin_with(options) {
            Ok(transaction) => open.push(transaction),
            Err(error) => break error,
        }
        assert!(open.len() <= 8, "more than slots_max are open");
    };
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert!(error.is_retryable());
    assert!(open.len() >= 4, "only {} of 8 slots", open.len());
    // Who waits gets the slot that comes free.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let options = TransactionOptions::default().slot_timeout(Duration::from_secs(60));
            database
                .begin_with(options)
                .map(|transaction| transaction.commit())
        });
        drop(open.pop());
        waiting.join().unwrap().unwrap().unwrap();
    });
}
