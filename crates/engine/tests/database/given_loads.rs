//! Loads that are given their rows: visible as one, given up whole by whatever goes wrong, in the way of nobody after that.

use crate::support::{by_value, key, open, small, with_table};
use std::sync::Arc;
use vellum::{Database, Error, Isolation, Table, Transaction, TransactionOptions};
use vellum_io::{Directory, PowerCut, SimulatedDirectory};
use vellum_sync::test_point::TestPoints;
use vellum_sync::thread;

/// Pages that hold something durable.
fn used(database: &Database) -> u64 {
    while database.step().unwrap() {}
    database.checkpoint().unwrap();
    database.statistics().pages_durable
}

fn assert_sound(database: &Database, what: &str) {
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{what}: {:#?}", report.findings);
}

/// As many pages as before, but for a few of the lists.
fn assert_as_before(database: &Database, before: u64, what: &str) {
    let after = used(database);
    assert!(
        after <= before + 2,
        "{what}: {before} pages before, {after} after"
    );
    assert_sound(database, what);
}

/// The value of a row; every seventh has a chain.
fn value(row: u32) -> Vec<u8> {
    vec![row as u8; if row % 7 == 3 { 9000 } else { 100 }]
}

fn give(transaction: &Transaction, rows: std::ops::Range<u32>) -> vellum::Result<()> {
    for row in rows {
        assert!(transaction.load_row(&key(row), &value(row))?, "row {row}");
    }
    Ok(())
}

fn count(database: &Database, table: &Table) -> u64 {
    let transaction = database.begin().unwrap();
    transaction.count(table, ..).unwrap()
}

fn is_invalid<T>(result: vellum::Result<T>) -> bool {
    matches!(result, Err(Error::InvalidArgument { .. }))
}

#[test]
fn rows_of_a_load_are_there_when_it_has_ended_and_for_others_when_it_has_committed() {
    let (_directory, database, table) = with_table(&small());
    let old = database.begin().unwrap();
    assert_eq!(old.count(&table, ..).unwrap(), 0);
    let transaction = database.begin().unwrap();
    assert!(transaction.begin_load(&table).unwrap());
    for rows in [0..0, 0..1, 1..400, 400..2000] {
        give(&transaction, rows).unwrap();
        assert!(transaction.is_loading());
        // What is under way is nobody's yet.
        assert_eq!(transaction.count(&table, ..).unwrap(), 0);
        assert_eq!(count(&database, &table), 0);
    }
    // Such a row is not added, and nothing else is lost.
    for row in [1999, 1998, 0] {
        assert!(!transaction.load_row(&key(row), b"again").unwrap());
    }
    let before = database.statistics();
    assert_eq!(transaction.end_load().unwrap(), 2000);
    assert!(!transaction.is_loading());
    assert_eq!(transaction.count(&table, ..).unwrap(), 2000);
    assert_eq!(count(&database, &table), 0);
    // It writes on, and goes back to behind the load.
    let savepoint = transaction.savepoint().unwrap();
    transaction.insert(&table, &key(5000), b"v").unwrap();
    transaction.delete(&table, &key(7)).unwrap();
    transaction.rollback_to(&savepoint).unwrap();
    transaction.insert(&table, &key(2000), b"inserted").unwrap();
    transaction.commit().unwrap();
    assert_eq!(count(&database, &table), 2001);
    assert_eq!(old.count(&table, ..).unwrap(), 0);
    let after = database.statistics();
    assert_eq!(after.rows_loaded - before.rows_loaded, 2000);
    let versions = after.version_deltas + after.version_copies;
    assert!(versions < 10, "{versions} versions: the catalog's alone");
    let reader = database.begin().unwrap();
    for row in 0..2000 {
        let found = reader.get(&table, &key(row), <[u8]>::to_vec).unwrap();
        assert_eq!(found, Some(value(row)), "row {row}");
    }
    drop((old, reader));
    assert_sound(&database, "after the load");
    // It is as any other table then.
    database
        .retry(|tx| {
            tx.update(&table, &key(11), &[0..1], |bytes| bytes[0] = 1)
                .map(drop)
        })
        .unwrap();
    assert_sound(&database, "after an update");
}

#[test]
fn rows_that_come_nearly_in_order_are_loaded_and_what_comes_too_late_is_refused() {
    let (_directory, database, table) = with_table(&small());
    let before = used(&database);
    let transaction = database.begin().unwrap();
    assert!(transaction.begin_load(&table).unwrap());
    // As lines of orders come that have their numbers from elsewhere: each group in an order of its own.
    let rows = 12_000;
    let given = |row: u32| row / 40 * 40 + (row % 40) * 7 % 40;
    for row in (0..rows).map(given) {
        assert!(
            transaction.load_row(&key(row), &value(row)).unwrap(),
            "row {row}"
        );
        assert!(!transaction.load_row(&key(row), b"again").unwrap());
    }
    for late in [0, 5000] {
        assert!(!transaction.load_row(&key(late), b"again").unwrap());
    }
    // Too long to be kept: what comes before it goes into the tree first.
    let long = vec![9; 1 << 20];
    assert!(transaction.load_row(&key(rows + 10), &long).unwrap());
    assert!(!transaction.load_row(&key(rows + 9), b"v").unwrap());
    assert!(!transaction.load_row(&key(rows + 9), &long).unwrap());
    assert!(transaction.load_row(&key(rows + 11), b"v").unwrap());
    assert_eq!(transaction.end_load().unwrap(), u64::from(rows) + 2);
    transaction.insert(&table, &key(rows + 9), b"v").unwrap();
    let count = transaction.count(&table, ..).unwrap();
    assert_eq!(count, u64::from(rows) + 3);
    for row in 0..rows {
        let found = transaction.get(&table, &key(row), <[u8]>::to_vec).unwrap();
        assert_eq!(found, Some(value(row)), "row {row}");
    }
    let found = transaction.get(&table, &key(rows + 10), <[u8]>::to_vec);
    assert!(found.unwrap() == Some(long));
    transaction.rollback().unwrap();
    assert_as_before(&database, before, "rolled back");
}

#[test]
fn table_with_rows_or_indexes_takes_no_load_and_its_writers_go_on() {
    let (_directory, database, table) = with_table(&small());
    let indexed = database
        .retry(|tx| {
            let indexed = tx.create_table("indexed")?;
            tx.create_index(&indexed, "i", by_value(0, Some(4), false))?;
            Ok(indexed)
        })
        .unwrap();
    database.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
    let transaction = database.begin().unwrap();
    for table in [&table, &indexed] {
        assert!(!transaction.begin_load(table).unwrap());
        assert!(!transaction.is_loading());
        let other = database.begin().unwrap();
        other.insert(table, b"other", b"value").unwrap();
        other.commit().unwrap();
    }
    assert!(is_invalid(transaction.load_row(b"l", b"v")));
    assert!(is_invalid(transaction.end_load()));
    transaction.insert(&table, b"m", b"v").unwrap();
    transaction.commit().unwrap();
    assert_eq!(count(&database, &table), 3);
    // Rows that are deleted are there for whoever still sees them.
    let old = database.begin().unwrap();
    assert_eq!(old.count(&table, ..).unwrap(), 3);
    let delete = |tx: &Transaction| {
        [&b"k"[..], b"other", b"m"]
            .iter()
            .try_for_each(|key| tx.delete(&table, key).map(drop))
    };
    database.retry(delete).unwrap();
    while database.step().unwrap() {}
    assert!(!old.begin_load(&table).unwrap());
    drop(old);
}

#[test]
fn table_that_is_filled_while_it_is_closed_takes_no_load_and_is_open_again() {
    let (_directory, database, table) = with_table(&small());
    let points = TestPoints::new();
    let pause = points.pause("schema: before the catalog row");
    thread::scope(|scope| {
        let loader = scope.spawn(|| {
            let _scope = points.enter();
            let options = TransactionOptions::default().isolation(Isolation::ReadCommitted);
            let transaction = database.begin_with(options).unwrap();
            assert!(!transaction.begin_load(&table).unwrap());
            // Nobody is shut out for that.
            database
                .retry(|tx| tx.insert(&table, b"later", b"v"))
                .unwrap();
            transaction.insert(&table, b"own", b"v").unwrap();
            transaction.commit().unwrap();
        });
        pause.wait_reached();
        database.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
        pause.release();
        loader.join().unwrap();
    });
    assert_eq!(count(&database, &table), 3);
}

#[test]
fn load_that_fails_is_given_up_whole_and_its_transaction_goes_on() {
    let mut config = small();
    config.data_bytes_max = 4 << 20;
    let (_directory, database, table) = with_table(&config);
    let before = used(&database);
    type Wrong = fn(&Transaction) -> vellum::Error;
    let wrongs: [(&str, Wrong); 4] = [
        ("value too long", |tx| {
            tx.load_row(&key(1500), &vec![1; (1 << 30) + 1])
                .unwrap_err()
        }),
        ("key too long", |tx| {
            tx.load_row(&[255; 5000], b"v").unwrap_err()
        }),
        ("full", |tx| give(tx, 1500..u32::MAX).unwrap_err()),
        ("full of chains", |tx| {
            let rows = (1500..u32::MAX).map(|row| tx.load_row(&key(row), &[1; 9000]));
            rows.filter_map(Result::err).next().unwrap()
        }),
    ];
    for (what, wrong) in wrongs {
        let transaction = database.begin().unwrap();
        assert!(transaction.begin_load(&table).unwrap());
        give(&transaction, 0..1500).unwrap();
        let error = wrong(&transaction);
        let expected = match what {
            "value too long" => matches!(error, Error::ValueTooLong { .. }),
            "key too long" => matches!(error, Error::KeyTooLong { .. }),
            _ => matches!(error, Error::OutOfSpace { .. }),
        };
        assert!(expected, "{what}: {error}");
        assert!(!transaction.is_loading(), "{what}");
        assert!(is_invalid(transaction.load_row(&key(9999), b"v")), "{what}");
        assert_eq!(transaction.count(&table, ..).unwrap(), 0, "{what}");
        // Another one begins.
        assert!(transaction.begin_load(&table).unwrap(), "{what}");
        give(&transaction, 0..20).unwrap();
        assert_eq!(transaction.end_load().unwrap(), 20, "{what}");
        transaction.rollback().unwrap();
        assert_as_before(&database, before, what);
        database.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
        database
            .retry(|tx| tx.delete(&table, b"k").map(drop))
            .unwrap();
        // The table is empty when the deleted row is gone.
        while database.step().unwrap() {}
    }
}

#[test]
fn rollback_gives_a_load_up_and_a_commit_is_refused() {
    let (_directory, database, table) = with_table(&small());
    let before = used(&database);
    for (what, rows) in [("begun", 0), ("a row", 1), ("many rows", 3000)] {
        let begun = || {
            let transaction = database.begin().unwrap();
            let savepoint = transaction.savepoint().unwrap();
            assert!(transaction.begin_load(&table).unwrap());
            give(&transaction, 0..rows).unwrap();
            (transaction, savepoint)
        };
        let (transaction, savepoint) = begun();
        transaction.rollback_to(&savepoint).unwrap();
        assert!(!transaction.is_loading(), "{what}");
        transaction.insert(&table, &key(1), b"v").unwrap();
        transaction.rollback().unwrap();
        assert_as_before(&database, before, what);
        begun().0.rollback().unwrap();
        assert_as_before(&database, before, what);
        drop(begun());
        assert_as_before(&database, before, what);
        assert!(is_invalid(begun().0.commit()), "{what}");
        assert!(is_invalid(begun().0.commit_deferred()), "{what}");
        assert_as_before(&database, before, what);
        assert_eq!(count(&database, &table), 0, "{what}");
        // Ended, and rolled back.
        let (transaction, savepoint) = begun();
        assert_eq!(transaction.end_load().unwrap(), u64::from(rows), "{what}");
        transaction.rollback_to(&savepoint).unwrap();
        assert_eq!(transaction.count(&table, ..).unwrap(), 0, "{what}");
        transaction.commit().unwrap();
        assert_as_before(&database, before, what);
    }
}

#[test]
fn transaction_only_reads_while_a_load_is_under_way() {
    let (_directory, database, table) = with_table(&small());
    let other = database
        .retry(|tx| {
            let other = tx.create_table("other")?;
            tx.insert(&other, b"k", b"v")?;
            Ok(other)
        })
        .unwrap();
    let statement = TransactionOptions::default().isolation(Isolation::Statement);
    let transaction = database.begin_with(statement).unwrap();
    assert!(is_invalid(
        transaction
            .update(&other, b"k", &[0..1], |_| {
                assert!(is_invalid(transaction.begin_load(&table)));
                transaction.load_row(b"k", b"v").unwrap_err();
            })
            .and_then(|_| transaction.load_row(b"k", b"v"))
    ));
    assert!(transaction.begin_load(&table).unwrap());
    give(&transaction, 0..5).unwrap();
    assert!(is_invalid(transaction.insert(&other, b"l", b"v")));
    assert!(is_invalid(transaction.delete(&other, b"k")));
    assert!(is_invalid(transaction.savepoint()));
    assert!(is_invalid(transaction.begin_load(&table)));
    assert!(is_invalid(transaction.bulk_load(&other, |_, _| false)));
    assert!(is_invalid(transaction.create_table("new")));
    assert!(is_invalid(transaction.share()));
    assert!(is_invalid(transaction.begin_statement()));
    let read = transaction.get(&other, b"k", <[u8]>::to_vec).unwrap();
    assert_eq!(read.as_deref(), Some(&b"v"[..]));
    // None of that has cost the load anything.
    give(&transaction, 5..10).unwrap();
    assert_eq!(transaction.end_load().unwrap(), 10);
    transaction.insert(&other, b"l", b"v").unwrap();
    transaction.commit().unwrap();
    assert_eq!(count(&database, &table), 10);
    assert_eq!(count(&database, &other), 2);
}

#[test]
fn writers_of_a_table_that_is_loaded_conflict_until_the_load_is_given_up() {
    let (_directory, database, table) = with_table(&small());
    let loader = database.begin().unwrap();
    assert!(loader.begin_load(&table).unwrap());
    give(&loader, 0..100).unwrap();
    let write = || {
        let other = database.begin().unwrap();
        other.insert(&table, &key(1000), b"v").map(|()| other)
    };
    assert!(matches!(write(), Err(Error::Conflict)));
    let other = database.begin().unwrap();
    assert!(matches!(other.begin_load(&table), Err(Error::Conflict)));
    drop(other);
    loader.rollback().unwrap();
    write().unwrap().commit().unwrap();
    assert_eq!(count(&database, &table), 1);
}

#[test]
fn crash_while_a_load_is_under_way_leaves_an_empty_table_and_no_page() {
    for (rows, ended) in [(0, false), (900, false), (5000, false), (900, true)] {
        let what = format!("{rows} rows, ended: {ended}");
        let disk = SimulatedDirectory::new();
        let database = Database::open_directory(Arc::new(disk.clone()), small()).unwrap();
        let table = database.retry(|tx| tx.create_table("t")).unwrap();
        let before = used(&database);
        let transaction = database.begin().unwrap();
        assert!(transaction.begin_load(&table).unwrap(), "{what}");
        give(&transaction, 0..rows).unwrap();
        if ended {
            assert_eq!(transaction.end_load().unwrap(), u64::from(rows), "{what}");
        }
        database.sync().unwrap();
        for (seed, cut) in PowerCut::KINDS.into_iter().enumerate() {
            let found: Arc<dyn Directory> = Arc::new(disk.power_cut(seed as u64, cut));
            let again = open(&found, &small());
            let table = again.begin().unwrap().table("t").unwrap();
            assert_eq!(count(&again, &table), 0, "{what}, {cut:?}");
            assert_as_before(&again, before, &what);
            again.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
        }
    }
}
