//! Snapshots that are withdrawn, and transactions that are promoted, in the middle of a long operation: it lets that happen, and goes by it.
#![cfg(not(any(loom, shuttle)))]

use crate::support::{by_value, key, open, rows, settle, small, with_table};
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

/// Something that reads or writes a large value: true if it read or did what it should.
type OnLarge = fn(&Transaction, &Table) -> Result<bool, Error>;

/// A value of five pages.
fn large_value(number: u32) -> Vec<u8> {
    vec![number as u8; 18_000]
}

const ON_LARGE: [(&str, OnLarge); 9] = [
    ("get", |tx, table| {
        let is_it = tx.get(table, &key(1), |value| value == large_value(1));
        Ok(is_it? == Some(true))
    }),
    ("get_into", |tx, table| {
        let mut value = Vec::new();
        Ok(tx.get_into(table, &key(1), &mut value)? && value == large_value(1))
    }),
    ("cursor", |tx, table| {
        let mut cursor = tx.cursor(table, ..)?;
        let row = cursor.next()?;
        Ok(row == Some((&key(0)[..], &large_value(0)[..])))
    }),
    ("insert", |tx, table| {
        tx.insert(table, &key(9), &large_value(9)).map(|()| true)
    }),
    ("upsert", |tx, table| {
        tx.upsert(table, &key(1), &large_value(9))
    }),
    ("update", |tx, table| {
        tx.update(table, &key(1), &[0..2], |value| value[1] = 9)
    }),
    ("delete", |tx, table| tx.delete(table, &key(1))),
    ("create_index", |tx, table| {
        let key = by_value(16_000, Some(16_004), false);
        tx.create_index(table, "more", key).map(|_| true)
    }),
    ("load_row", |tx, _| {
        let table = tx.create_table("loaded")?;
        Ok(tx.begin_load(&table)? && tx.load_row(&key(1), &large_value(1))? && tx.end_load()? == 1)
    }),
];

/// A database with a table to be written to, and one of three large values with an index behind their first pages.
fn with_large(config: &Config) -> (Database, Table, Table) {
    let (_, database, table) = with_table(config);
    let large = database.retry(|tx| {
        let large = tx.create_table("large")?;
        tx.create_index(&large, "i", by_value(12_000, Some(12_004), false))?;
        for number in 0..3 {
            tx.insert(&large, &key(number), &large_value(number))?;
        }
        Ok(large)
    });
    (database, table, large.unwrap())
}

const BETWEEN_STRETCHES: &str = "large value: between two stretches";

#[test]
fn reader_and_writer_of_a_large_value_are_withdrawn_in_the_middle_of_it() {
    for (name, operation) in ON_LARGE {
        let (database, table, large) = with_large(&config());
        let before = rows(&begin(&database), &large);
        let work = || {
            let tx = begin(&database);
            let told = operation(&tx, &large);
            let over = tx.get(&large, &key(1), |_| ());
            (told, matches!(over, Err(Error::TransactionOver { .. })))
        };
        let told = beside(BETWEEN_STRETCHES, work, || outgrow(&database, &table));
        let said_so = matches!(told, (Err(Error::SnapshotTooOld), true));
        assert!(said_so, "{name}: {told:?}");
        settle(&database);
        assert!(rows(&begin(&database), &large) == before, "{name}");
        let report = database.verify().unwrap();
        assert!(report.is_sound(), "{name}: {:#?}", report.findings);
        assert_eq!(report.pages.pending, 0, "{name}: all is given back");
    }
}

#[test]
fn reader_and_writer_of_a_large_value_are_promoted_in_the_middle_of_it() {
    let mut config = small();
    config.promote_after_ticks = 200;
    for (name, operation) in ON_LARGE {
        let (database, table, large) = with_large(&config);
        let before = rows(&begin(&database), &large);
        let work = || {
            let tx = begin(&database);
            let told = operation(&tx, &large)?;
            let seen = rows(&tx, &large);
            tx.commit().map(|()| (told, seen))
        };
        let mut promotions = 0;
        let told = beside(BETWEEN_STRETCHES, work, || {
            let end = database.statistics().clock + 400;
            while database.statistics().clock < end {
                let tx = begin(&database);
                // What is deleted, and what goes with it, is in the way of nobody.
                let _ = tx.upsert(&table, b"k", b"v");
                let _ = tx.delete(&table, b"k");
                let _ = tx.commit();
            }
            promotions = database.statistics().promotions;
        });
        assert_eq!(promotions, 1, "{name}");
        let (told, seen) = told.unwrap();
        assert!(told, "{name}");
        settle(&database);
        let after = rows(&begin(&database), &large);
        assert!(after == seen, "{name}: others see what it saw");
        let writes = matches!(name, "insert" | "upsert" | "update" | "delete");
        assert_eq!(after != before, writes, "{name}");
        let report = database.verify().unwrap();
        assert!(report.is_sound(), "{name}: {:#?}", report.findings);
    }
}

/// A database may have a hundred thousand tables.
#[test]
fn list_of_names_is_withdrawn_between_two_leaves_of_it() {
    let (_, database, table) = with_table(&config());
    let named = |number: u32| format!("a table with a name of some length, number {number:>40}");
    let made = database
        .retry(|tx| (0..200).try_for_each(|number| tx.create_table(&named(number)).map(drop)));
    made.unwrap();
    let list = || begin(&database).tables();
    let point = "schema: between two leaves of names";
    let told = beside(point, list, || outgrow(&database, &table));
    assert!(matches!(told, Err(Error::SnapshotTooOld)), "{told:?}");
    let names = begin(&database).tables().unwrap();
    let all = (0..200).map(named).chain(["t".to_owned()]);
    assert_eq!(names, all.collect::<Vec<_>>());
}
