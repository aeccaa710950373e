//! Snapshots that are withdrawn, and transactions that are promoted, in the middle of a long operation: it lets that happen, and goes by it.
#![cfg(not(any(loom, shuttle)))]

use crate::support::{by_value, key, open, rows, settle, small};
use std::sync::Arc;
use std::thread;
use vellum::{
    Class, Config, Database, Durability, Error, Table, Transaction, TransactionOptions,
    VersionPolicy,
};
use vellum_io::{Directory, PowerCut, SimulatedDirectory};
use vellum_sync::test_point::TestPoints;

const BUDGET: u64 = 40 * 4096;
const KEYS: u32 = 50;
const ROWS: u32 = 400;

fn config() -> Config {
    let mut config = small().version_bytes_max(BUDGET, VersionPolicy::SnapshotTooOld);
    config.promote_after_ticks = 400;
    // Every update leaves something that takes space.
    config.versions.fat = false;
    config
}

fn begin(database: &Database) -> Transaction {
    let options = TransactionOptions::default().durability(Durability::Async);
    database.begin_with(options).unwrap()
}

/// Overwrites rows, each in a transaction of its own, until the oldest snapshot is withdrawn. Fails nowhere: another thread waits for its end.
fn outgrow(database: &Database, table: &Table) {
    let withdrawn = || database.statistics().snapshots_withdrawn;
    let before = withdrawn();
    for round in 0..10_000 {
        let tx = begin(database);
        let _ = tx.upsert(table, &key(round % KEYS), &[round as u8; 200]);
        let _ = tx.commit();
        if round % KEYS == 0 {
            let _ = database.step();
            if withdrawn() > before {
                return;
            }
        }
    }
}

/// A database with a table to be outgrown, and one of many leaves with nothing in them but what deleted rows have left: a crash forgets who listed them.
fn with_emptied() -> (Database, Table, Table) {
    let disk = SimulatedDirectory::new();
    let database = Database::open_directory(Arc::new(disk.clone()), config()).unwrap();
    database.retry(|tx| tx.create_table("t")).unwrap();
    let emptied = database.retry(|tx| tx.create_table("emptied")).unwrap();
    let tx = begin(&database);
    for number in 0..ROWS {
        tx.insert(&emptied, &key(number), &[1; 60]).unwrap();
    }
    tx.commit().unwrap();
    database.checkpoint().unwrap();
    let options = TransactionOptions::default().class(Class::Oltp);
    let old = database.begin_with(options).unwrap();
    assert!(old.get(&emptied, &key(0), |_| ()).unwrap().is_some());
    let tx = begin(&database);
    for number in 0..ROWS {
        assert!(tx.delete(&emptied, &key(number)).unwrap());
    }
    tx.commit().unwrap();
    database.sync().unwrap();
    let found: Arc<dyn Directory> = Arc::new(disk.power_cut(1, PowerCut::CLEAN));
    let database = open(&found, &config());
    let table = |name| database.retry(|tx| tx.table(name)).unwrap();
    let (table, emptied) = (table("t"), table("emptied"));
    let leaves = begin(&database).leaf_pages(&emptied).unwrap();
    assert!(leaves > 5, "{leaves} leaves");
    (database, table, emptied)
}

/// Runs `work` in a thread of its own, and `beside` while it stands at a test point for the first time. Neither may panic.
fn beside<R: Send>(
    point: &'static str,
    work: impl FnOnce() -> R + Send,
    beside: impl FnOnce(),
) -> R {
    let points = TestPoints::new();
    let pause = points.pause(point);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _scope = points.enter();
            let done = work();
            // Who waits for it to be reached does not wait for ever.
            vellum_sync::test_point!(point);
            done
        });
        pause.wait_reached();
        beside();
        pause.release();
        worker.join().unwrap()
    })
}

/// Symptom: `Corruption` of a sound database, or a look at another table's pages. Cause: a load looked for rows in no counted operation, and who was
/// withdrawn meanwhile went on in a tree that had been freed. Guard: one operation a leaf.
#[test]
fn regress_load_that_is_withdrawn_between_two_leaves_does_not_read_a_freed_tree() {
    for begins in [false, true] {
        let (database, table, emptied) = with_emptied();
        let mut freed = false;
        let load = || {
            let tx = begin(&database);
            match begins {
                true => tx.begin_load(&emptied).map(|_| ()),
                false => tx.bulk_load(&emptied, |_, _| false).map(|_| ()),
            }
        };
        let told = beside("load: between two leaves", load, || {
            outgrow(&database, &table);
            let pages = || database.statistics().pages_durable;
            let before = pages();
            let dropped = database.retry(|tx| tx.drop_table("emptied"));
            for _ in 0..100 {
                let _ = database.step();
            }
            freed = dropped.is_ok() && pages() + 5 < before;
        });
        assert!(freed, "the tree is still there");
        assert!(matches!(told, Err(Error::SnapshotTooOld)), "{told:?}");
        settle(&database);
        assert!(database.verify().unwrap().is_sound());
    }
}

#[test]
fn index_maker_that_is_withdrawn_between_two_leaves_says_so() {
    let (database, table, emptied) = with_emptied();
    let make = || {
        let tx = begin(&database);
        let made = tx.create_index(&emptied, "i", by_value(0, Some(4), false));
        made.map(drop)
    };
    let point = "schema: between two leaves of an index that is filled";
    let told = beside(point, make, || outgrow(&database, &table));
    assert!(matches!(told, Err(Error::SnapshotTooOld)), "{told:?}");
    settle(&database);
    assert!(database.verify().unwrap().is_sound());
}

#[test]
fn load_that_was_withdrawn_takes_no_further_row() {
    let (database, table, emptied) = with_emptied();
    let tx = begin(&database);
    assert!(tx.begin_load(&emptied).unwrap());
    assert!(tx.load_row(&key(1), b"v").unwrap());
    outgrow(&database, &table);
    let told = tx.load_row(&key(2), b"v");
    assert!(matches!(told, Err(Error::SnapshotTooOld)), "{told:?}");
    assert!(!tx.is_loading());
    drop(tx);
    let (tx, mut asked) = (begin(&database), 0u32);
    let told = tx.bulk_load(&emptied, |key, value| {
        asked += 1;
        if asked == 5 {
            outgrow(&database, &table);
        }
        key.extend_from_slice(&asked.to_be_bytes());
        value.push(1);
        asked < 100
    });
    assert!(matches!(told, Err(Error::SnapshotTooOld)), "{told:?}");
    assert_eq!(asked, 5);
    drop(tx);
    settle(&database);
    assert_eq!(rows(&begin(&database), &emptied), []);
    assert!(database.verify().unwrap().is_sound());
}
