//! Loads and table makers that fail half-way: what they made goes at once, and nothing of theirs stays.
//!
//! Each was once seen otherwise: a load that failed kept its tree until the next start (a full database stayed full), chains that were
//! freed before the tree that named them made `verify` tell of damage, every creation of a table that met a conflict kept a page, and
//! what a load's callback wrote was lost without a word.

use crate::support::{fresh, small, with_table};
use std::panic::{AssertUnwindSafe, catch_unwind};
use vellum::{Database, Error, KeyDescription, KeyPart, Source, Table, Transaction};

/// Pages that hold something durable.
fn used(database: &Database) -> u64 {
    while database.step().unwrap() {}
    database.checkpoint().unwrap();
    let statistics = database.statistics();
    statistics.pages_durable
}

/// Loads rows until `wrong` is done with the key or value of row `rows`; every seventh row has a chain.
fn load(
    transaction: &Transaction,
    table: &Table,
    rows: u32,
    mut wrong: impl FnMut(&mut Vec<u8>, &mut Vec<u8>),
) -> vellum::Result<u64> {
    let mut row = 0u32;
    transaction.bulk_load(table, |key, value| {
        key.extend_from_slice(&row.to_be_bytes());
        value.resize(if row % 7 == 3 { 9000 } else { 100 }, row as u8);
        if row == rows {
            wrong(key, value);
        }
        row += 1;
        true
    })
}

fn assert_as_before(database: &Database, before: u64, what: &str) {
    let after = used(database);
    assert!(
        after <= before + 2,
        "{what}: {before} pages before, {after} after"
    );
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{what}: {:#?}", report.findings);
}

#[test]
fn load_that_fails_gives_its_pages_back_at_once() {
    let (_directory, database, table) = with_table(&small());
    let before = used(&database);
    type Wrong = fn(&mut Vec<u8>, &mut Vec<u8>);
    let wrongs: [(&str, Wrong); 3] = [
        ("does not ascend", |key, _| key.fill(0)),
        ("key too long", |key, _| key.resize(5000, 255)),
        ("panic", |_, _| panic!("of the callback")),
    ];
    for rows in [1, 3, 4, 60, 1500] {
        for (what, wrong) in wrongs {
            let what = format!("{what} at row {rows}");
            let transaction = database.begin().unwrap();
            let failed = catch_unwind(AssertUnwindSafe(|| {
                load(&transaction, &table, rows, wrong).unwrap_err()
            }));
            match failed {
                Ok(Error::InvalidArgument { .. } | Error::KeyTooLong { .. }) => {
                    assert_eq!(transaction.count(&table, ..).unwrap(), 0, "{what}");
                    transaction.insert(&table, b"k", b"v").unwrap();
                    transaction.rollback().unwrap();
                }
                Ok(error) => panic!("{what}: {error}"),
                Err(_) => {
                    let over = transaction.commit();
                    assert!(matches!(over, Err(Error::TransactionOver { .. })), "{what}");
                }
            }
            assert_as_before(&database, before, &what);
        }
    }
}

#[test]
fn load_that_fills_the_database_leaves_room_for_others() {
    let mut config = small();
    config.data_bytes_max = 4 << 20;
    let (_directory, database, table) = with_table(&config);
    let before = used(&database);
    for _ in 0..3 {
        let transaction = database.begin().unwrap();
        let full = load(&transaction, &table, u32::MAX, |_, _| {}).unwrap_err();
        assert!(matches!(full, Error::OutOfSpace { .. }), "{full}");
        transaction.rollback().unwrap();
        assert_as_before(&database, before, "full");
    }
    database
        .retry(|transaction| {
            for row in 0..100u32 {
                transaction.insert(&table, &row.to_be_bytes(), &[1; 100])?;
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn creations_that_meet_a_conflict_keep_no_page() {
    let (_directory, database) = fresh(&small());
    let holder = database.begin().unwrap();
    holder.create_table("x").unwrap();
    let before = used(&database);
    for _ in 0..50 {
        let transaction = database.begin().unwrap();
        let conflict = transaction.create_table("x").map(drop).unwrap_err();
        assert!(matches!(conflict, Error::Conflict), "{conflict}");
        transaction.rollback().unwrap();
    }
    assert_as_before(&database, before, "conflicts");
    holder.commit().unwrap();
}

#[test]
fn callback_of_a_load_reads_and_does_not_write() {
    let (_directory, database, table) = with_table(&small());
    let other = database
        .retry(|transaction| {
            let other = transaction.create_table("other")?;
            transaction.insert(&other, b"k", b"v")?;
            Ok(other)
        })
        .unwrap();
    let transaction = database.begin().unwrap();
    let before = transaction.savepoint().unwrap();
    let mut row = 0u32;
    let loaded = transaction.bulk_load(&table, |key, value| {
        let refused = |result: vellum::Result<()>| {
            assert!(
                matches!(result, Err(Error::InvalidArgument { .. })),
                "{result:?}"
            );
        };
        let description = KeyDescription::new(
            vec![KeyPart {
                source: Source::Value,
                start: 0,
                end: Some(1),
            }],
            true,
        );
        refused(transaction.insert(&table, b"lost", b"v"));
        refused(transaction.insert(&other, b"lost", b"v"));
        refused(transaction.create_table("new").map(drop));
        refused(
            transaction
                .create_index(&table, "index", description.unwrap())
                .map(drop),
        );
        refused(transaction.drop_table("t"));
        refused(transaction.bulk_load(&table, |_, _| false).map(drop));
        refused(transaction.savepoint().map(drop));
        refused(transaction.rollback_to(&before));
        let found = transaction.get(&other, b"k", <[u8]>::to_vec).unwrap();
        value.extend_from_slice(&found.unwrap());
        key.extend_from_slice(&row.to_be_bytes());
        row += 1;
        row <= 500
    });
    assert_eq!(loaded.unwrap(), 500);
    transaction.insert(&other, b"later", b"v").unwrap();
    transaction.commit().unwrap();
    let reader = database.begin().unwrap();
    assert_eq!(reader.count(&table, ..).unwrap(), 500);
    assert_eq!(reader.count(&other, ..).unwrap(), 2);
    drop(reader);
    assert!(database.verify().unwrap().is_sound());
}
