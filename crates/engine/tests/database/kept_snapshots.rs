//! Snapshots that transactions of other threads begin at.

use crate::support::{fresh, key, seed, small};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vellum::{Database, Error, Isolation, Table, Transaction, TransactionOptions};
use vellum_base::random::Random;
use vellum_sync::Mutex;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn all(tx: &Transaction, table: &Table) -> Model {
    let mut cursor = tx.cursor(table, ..).unwrap();
    let mut found = Model::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        found.insert(key.to_vec(), value.to_vec());
    }
    found
}

fn filled(database: &Database, rows: u32) -> Table {
    let fill = |tx: &Transaction| {
        let table = tx.create_table("t")?;
        for number in 0..rows {
            tx.insert(&table, &key(number), &number.to_le_bytes().repeat(6))?;
        }
        Ok(table)
    };
    database.retry(fill).unwrap()
}

/// Changes rows and collects old versions until it is over.
fn write_until(over: &AtomicBool, database: &Database, table: &Table, seed: u64) {
    let mut random = Random::new(seed);
    while !over.load(Ordering::Relaxed) {
        let at = key(random.below(300) as u32).to_vec();
        let change = |tx: &Transaction| match random.chance(1, 2) {
            true => tx.delete(table, &at).map(drop),
            false => tx.upsert(table, &at, b"of another").map(drop),
        };
        database.retry(change).unwrap();
        let _ = database.step();
    }
}

#[test]
fn prop_a_snapshot_that_goes_from_hand_to_hand_stays_what_it_is() {
    let seed = seed("prop_a_snapshot_that_goes_from_hand_to_hand_stays_what_it_is");
    let mut random = Random::new(seed);
    for _ in 0..6 {
        let (_directory, database) = fresh(&small());
        let table = filled(&database, 200);
        let first = database.begin().unwrap();
        let expected = all(&first, &table);
        // Of no account to who begins at it.
        first.upsert(&table, b"own", b"of the first").unwrap();
        let kept = Mutex::new(Arc::new(database.keep_snapshot(&first).unwrap()));
        match random.chance(1, 2) {
            true => first.commit().unwrap(),
            false => first.rollback().unwrap(),
        }
        let over = AtomicBool::new(false);
        let writer_seed = random.next_u64();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_until(&over, &database, &table, writer_seed));
            let takers = [(); 2].map(|()| {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let own = kept.lock().clone();
                        let options = TransactionOptions::default();
                        let tx = database.begin_at(&own, options).unwrap();
                        // The one that it is from goes while this one reads.
                        *kept.lock() = Arc::new(database.keep_snapshot(&tx).unwrap());
                        drop(own);
                        assert_eq!(all(&tx, &table), expected);
                        drop(tx);
                    }
                })
            });
            for taker in takers {
                taker.join().unwrap();
            }
            over.store(true, Ordering::Relaxed);
            writer.join().unwrap();
        });
    }
}

#[test]
fn who_begins_at_a_kept_snapshot_writes_and_meets_what_came_later_as_conflicts() {
    let (_directory, database) = fresh(&small());
    let table = filled(&database, 3);
    let first = database.begin().unwrap();
    first.upsert(&table, &key(0), b"own").unwrap();
    let kept = database.keep_snapshot(&first).unwrap();
    assert_eq!(kept.time(), first.snapshot_time());
    let other = |tx: &Transaction| tx.upsert(&table, &key(1), b"later").map(drop);
    database.retry(other).unwrap();
    first.commit().unwrap();
    let begin = |isolation| {
        let options = TransactionOptions::default().isolation(isolation);
        database.begin_at(&kept, options).unwrap()
    };
    for number in [0, 1] {
        let tx = begin(Isolation::Snapshot);
        let read = tx.get(&table, &key(number), <[u8]>::to_vec).unwrap();
        assert_eq!(read.unwrap(), number.to_le_bytes().repeat(6));
        let done = tx.upsert(&table, &key(number), b"mine");
        assert!(matches!(done, Err(Error::Conflict)), "{done:?}");
    }
    let tx = begin(Isolation::Snapshot);
    tx.upsert(&table, &key(2), b"mine").unwrap();
    drop(kept);
    assert_eq!(tx.count(&table, ..).unwrap(), 3);
    tx.commit().unwrap();
    let now = database.begin().unwrap();
    let values = all(&now, &table).into_values().collect::<Vec<_>>();
    assert_eq!(
        values,
        [b"own".to_vec(), b"later".to_vec(), b"mine".to_vec()]
    );
}

#[test]
fn a_statement_behind_the_first_has_a_snapshot_of_its_own() {
    let (_directory, database) = fresh(&small());
    let table = filled(&database, 3);
    let kept = database.keep_snapshot(&database.begin().unwrap()).unwrap();
    let other = |tx: &Transaction| tx.insert(&table, b"later", b"").map(drop);
    database.retry(other).unwrap();
    let options = TransactionOptions::default().isolation(Isolation::Statement);
    let tx = database.begin_at(&kept, options).unwrap();
    assert_eq!(tx.count(&table, ..).unwrap(), 3);
    tx.begin_statement().unwrap();
    assert_eq!(tx.count(&table, ..).unwrap(), 4);
}

#[test]
fn a_snapshot_is_not_kept_without_a_slot_or_in_another_database() {
    let (_directory, database) = fresh(&small());
    let (_other_directory, other) = fresh(&small());
    let tx = database.begin().unwrap();
    let refused = other.keep_snapshot(&tx).err().unwrap();
    assert!(matches!(refused, Error::InvalidArgument { .. }));
    let mut kept = vec![database.keep_snapshot(&tx).unwrap()];
    let refused = other
        .begin_at(&kept[0], TransactionOptions::default())
        .err();
    assert!(matches!(refused, Some(Error::InvalidArgument { .. })));
    let refused = loop {
        match database.keep_snapshot(&tx) {
            Ok(another) => kept.push(another),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, Error::Timeout { .. }), "{refused:?}");
    assert_eq!(kept.len(), 15);
    let refused = database.begin_at(&kept[0], TransactionOptions::default());
    assert!(matches!(refused.err(), Some(Error::Timeout { .. })));
    kept.pop();
    database
        .begin_at(&kept[0], TransactionOptions::default())
        .unwrap();
}
