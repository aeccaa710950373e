//! The embedded API, one claim a test.

use std::sync::Arc;
use std::time::Duration;
use vellum::{Config, Database, Durability, Error, Isolation, TransactionOptions};
use vellum_io::{Directory, MemoryDirectory};

fn small() -> Config {
    let mut config = Config::default()
        .pool_bytes(64 * 8192)
        .background_threads(false);
    config.slots_max = 16;
    config.log_segment_bytes = 1 << 20;
    config.log_bytes_max = 8 << 20;
    config.slot_buffer_bytes = 256 << 10;
    config.data_bytes_max = 1 << 30;
    config.experiment(crate::support::experiment())
}

fn open(directory: &Arc<dyn Directory>) -> Database {
    Database::open_directory(directory.clone(), small()).unwrap()
}

fn fresh() -> (Arc<dyn Directory>, Database) {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let database = open(&directory);
    (directory, database)
}

#[test]
fn committed_rows_are_there_after_reopening() {
    let (directory, database) = fresh();
    database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            for number in 0u32..5000 {
                tx.insert(&table, &number.to_be_bytes(), &[7; 100])?;
            }
            Ok(())
        })
        .unwrap();
    drop(database);
    let database = open(&directory);
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    assert_eq!(tx.count(&table, ..).unwrap(), 5000);
    let value = tx
        .get(&table, &77u32.to_be_bytes(), <[u8]>::to_vec)
        .unwrap();
    assert_eq!(value, Some(vec![7; 100]));
}

#[test]
fn old_snapshot_reads_old_versions_after_updates_and_deletes() {
    let (_directory, database) = fresh();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    database
        .retry(|tx| {
            for number in 0u32..500 {
                tx.insert(&table, &number.to_be_bytes(), &number.to_le_bytes())?;
            }
            Ok(())
        })
        .unwrap();
    let old = database.begin().unwrap();
    for round in 1u32..4 {
        database
            .retry(|tx| {
                for number in 0u32..500 {
                    let key = number.to_be_bytes();
                    if number % 3 == 0 && round == 1 {
                        assert!(tx.delete(&table, &key)?);
                    } else if number % 3 == 1 {
                        let found = tx.update(&table, &key, &[0..4], |value| {
                            value.copy_from_slice(&(number + round * 1000).to_le_bytes());
                        })?;
                        assert!(found);
                    } else if number % 3 == 2 {
                        tx.upsert(&table, &key, &vec![round as u8; 50 * round as usize])?;
                    }
                }
                Ok(())
            })
            .unwrap();
    }
    assert_eq!(old.count(&table, ..).unwrap(), 500);
    for number in 0u32..500 {
        let value = old
            .get(&table, &number.to_be_bytes(), <[u8]>::to_vec)
            .unwrap();
        assert_eq!(value, Some(number.to_le_bytes().to_vec()), "key {number}");
    }
    let new = database.begin().unwrap();
    assert_eq!(new.count(&table, ..).unwrap(), 333);
    let mut cursor = old.cursor(&table, ..).unwrap();
    let mut keys = Vec::new();
    while let Some((key, _)) = cursor.prev().unwrap() {
        keys.push(u32::from_be_bytes(key.try_into().unwrap()));
    }
    assert_eq!(keys, (0..500).rev().collect::<Vec<_>>());
}

#[test]
fn first_writer_wins_and_the_second_can_only_roll_back() {
    let (_directory, database) = fresh();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    database.retry(|tx| tx.insert(&table, b"k", b"0")).unwrap();
    let first = database.begin().unwrap();
    let second = database.begin().unwrap();
    first.upsert(&table, b"k", b"1").unwrap();
    assert!(matches!(
        second.upsert(&table, b"k", b"2"),
        Err(Error::Conflict)
    ));
    let over = second.get(&table, b"k", |_| ());
    assert!(matches!(over, Err(Error::TransactionOver { .. })));
    second.rollback().unwrap();
    first.commit().unwrap();
    let value = database
        .retry(|tx| tx.get(&table, b"k", <[u8]>::to_vec))
        .unwrap();
    assert_eq!(value, Some(b"1".to_vec()));
}

#[test]
fn rollback_to_savepoint_takes_back_what_came_after_it_only() {
    let (_directory, database) = fresh();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let tx = database.begin().unwrap();
    tx.insert(&table, b"a", b"1").unwrap();
    let savepoint = tx.savepoint().unwrap();
    tx.upsert(&table, b"a", b"a longer value").unwrap();
    tx.insert(&table, b"b", b"2").unwrap();
    tx.delete(&table, b"a").unwrap();
    tx.rollback_to(&savepoint).unwrap();
    assert_eq!(
        tx.get(&table, b"a", <[u8]>::to_vec).unwrap(),
        Some(b"1".to_vec())
    );
    assert_eq!(tx.get(&table, b"b", <[u8]>::to_vec).unwrap(), None);
    tx.insert(&table, b"c", b"3").unwrap();
    tx.commit().unwrap();
    assert_eq!(database.retry(|tx| tx.count(&table, ..)).unwrap(), 2);
}

#[test]
fn large_values_come_back_whole_and_their_pages_are_given_back() {
    let (_directory, database) = fresh();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let value: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
    database
        .retry(|tx| tx.insert(&table, b"big", &value))
        .unwrap();
    let read = database
        .retry(|tx| tx.get(&table, b"big", <[u8]>::to_vec))
        .unwrap();
    assert_eq!(read.as_ref(), Some(&value));
    {
        let tx = database.begin().unwrap();
        tx.insert(&table, b"gone", &value).unwrap();
        tx.rollback().unwrap();
    }
    database
        .retry(|tx| tx.update(&table, b"big", &[10..20], |bytes| bytes[10..20].fill(255)))
        .unwrap();
    let read = database
        .retry(|tx| tx.get(&table, b"big", <[u8]>::to_vec))
        .unwrap()
        .unwrap();
    assert_eq!(&read[10..20], &[255; 10]);
    assert_eq!(&read[20..], &value[20..]);
    assert_eq!(
        database
            .retry(|tx| tx.get(&table, b"gone", |_| ()))
            .unwrap(),
        None
    );
}

#[test]
fn read_committed_sees_each_commit_and_conflicts_only_with_the_uncommitted() {
    let (_directory, database) = fresh();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    database.retry(|tx| tx.insert(&table, b"k", b"0")).unwrap();
    let options = TransactionOptions::default()
        .isolation(Isolation::ReadCommitted)
        .durability(Durability::Async);
    let reader = database.begin_with(options).unwrap();
    assert_eq!(
        reader.get(&table, b"k", <[u8]>::to_vec).unwrap(),
        Some(b"0".to_vec())
    );
    database.retry(|tx| tx.upsert(&table, b"k", b"1")).unwrap();
    assert_eq!(
        reader.get(&table, b"k", <[u8]>::to_vec).unwrap(),
        Some(b"1".to_vec())
    );
    assert!(reader.upsert(&table, b"k", b"2").unwrap());
    reader.commit().unwrap();
    let value = database
        .retry(|tx| tx.get(&table, b"k", <[u8]>::to_vec))
        .unwrap();
    assert_eq!(value, Some(b"2".to_vec()));
}

#[test]
fn transaction_larger_than_the_pool_commits_and_rolls_back() {
    let (directory, database) = fresh();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let fill = |tx: &vellum::Transaction| {
        for number in 0u32..20_000 {
            tx.insert(&table, &number.to_be_bytes(), &[3; 200])?;
        }
        Ok(())
    };
    let tx = database.begin().unwrap();
    fill(&tx).unwrap();
    tx.rollback().unwrap();
    assert_eq!(database.retry(|tx| tx.count(&table, ..)).unwrap(), 0);
    database.retry(fill).unwrap();
    drop(table);
    drop(database);
    let database = open(&directory);
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    assert_eq!(tx.count(&table, ..).unwrap(), 20_000);
}

#[test]
fn bulk_load_is_visible_as_a_whole_or_not_at_all() {
    let (directory, database) = fresh();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let load = |tx: &vellum::Transaction, rows: u32| {
        let mut number = 0u32;
        tx.bulk_load(&table, |key, value| {
            if number == rows {
                return false;
            }
            key.extend_from_slice(&number.to_be_bytes());
            value.resize(if number % 1000 == 7 { 20_000 } else { 100 }, number as u8);
            number += 1;
            true
        })
    };
    let tx = database.begin().unwrap();
    assert_eq!(load(&tx, 3000).unwrap(), 3000);
    assert_eq!(tx.count(&table, ..).unwrap(), 3000);
    let other = database.begin().unwrap();
    assert_eq!(other.count(&table, ..).unwrap(), 0);
    assert!(matches!(
        other.insert(&table, b"k", b"v"),
        Err(Error::Conflict)
    ));
    tx.rollback().unwrap();
    drop(other);
    assert_eq!(database.retry(|tx| tx.count(&table, ..)).unwrap(), 0);
    let old = database.begin().unwrap();
    assert_eq!(database.retry(|tx| load(tx, 5000)).unwrap(), 5000);
    assert_eq!(old.count(&table, ..).unwrap(), 0);
    drop(old);
    database
        .retry(|tx| tx.insert(&table, &9999u32.to_be_bytes(), b"more"))
        .unwrap();
    assert_eq!(database.retry(|tx| tx.count(&table, ..)).unwrap(), 5001);
    drop(table);
    drop(database);
    let database = open(&directory);
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    assert_eq!(tx.count(&table, ..).unwrap(), 5001);
    let big = tx.get(&table, &1007u32.to_be_bytes(), <[u8]>::len).unwrap();
    assert_eq!(big, Some(20_000));
}

#[test]
fn slots_that_are_kept_back_are_left_by_ordinary_transactions() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut config = small();
    (config.slots_max, config.slots_reserved) = (6, 2);
    let database = Database::open_directory(directory, config).unwrap();
    let now = TransactionOptions::default().slot_timeout(Duration::ZERO);
    let ordinary = || database.begin_with(now.leaves_reserved(true));
    // This thread has had all of them: its last one is one of those that are kept back.
    let all: Vec<_> = (0..6).map(|_| database.begin_with(now).unwrap()).collect();
    let is_full = |begun: Result<_, Error>| matches!(begun, Err(Error::Timeout { .. }));
    assert!(is_full(database.begin_with(now)));
    drop(all);
    let mut held: Vec<_> = (0..4).map(|_| ordinary().unwrap()).collect();
    assert!(is_full(ordinary()));
    let short = now.slot_timeout(Duration::from_millis(20));
    assert!(is_full(database.begin_with(short.leaves_reserved(true))));
    let kept = [database.begin().unwrap(), database.begin().unwrap()];
    assert!(is_full(ordinary()) && is_full(database.begin_with(now)));
    // Who waits gets the first that he may have.
    let waits = now
        .slot_timeout(Duration::from_secs(60))
        .leaves_reserved(true);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| database.begin_with(waits).map(drop));
        drop(kept);
        let own = database.begin_with(now).unwrap();
        drop((own, held.pop()));
        assert!(waiter.join().unwrap().is_ok());
    });
}
