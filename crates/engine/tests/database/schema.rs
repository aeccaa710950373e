//! Definitions that change under each other's hands.

use crate::support::{by_value, key, small, value_of, with_table};
use vellum::{Database, Error, Isolation, Table, Transaction, TransactionOptions};
use vellum_sync::test_point::TestPoints;
use vellum_sync::thread;

/// Runs `change` under read committed, and `meanwhile` in another transaction that commits after `change` has looked
/// the table up and before it writes the table's catalog row. Returns what becomes of `change`.
fn overtaken(
    database: &Database,
    change: impl FnOnce(&Transaction) -> vellum::Result<()> + Send,
    meanwhile: impl FnMut(&Transaction) -> vellum::Result<()>,
) -> vellum::Result<()> {
    let points = TestPoints::new();
    let pause = points.pause("schema: before the catalog row");
    thread::scope(|scope| {
        let changer = scope.spawn(|| {
            let _scope = points.enter();
            let options = TransactionOptions::default().isolation(Isolation::ReadCommitted);
            let tx = database.begin_with(options).unwrap();
            let result = change(&tx);
            match result {
                Ok(()) => tx.commit(),
                Err(error) => tx.rollback().and(Err(error)),
            }
        });
        pause.wait_reached();
        let changed = database.retry(meanwhile);
        pause.release();
        changed.unwrap();
        changer.join().unwrap()
    })
}

fn filled() -> (Database, Table) {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| {
            (0..50).try_for_each(|n| tx.insert(&table, &key(n), &[n as u8, 0, 0, 0, 1, 2, 3, 4]))
        })
        .unwrap();
    (database, table)
}

fn index(tx: &Transaction, table: &Table, name: &str) -> vellum::Result<()> {
    tx.create_index(table, name, by_value(0, Some(4), false))
        .map(drop)
}

fn conflicts(result: &vellum::Result<()>) -> bool {
    matches!(result, Err(Error::Conflict))
}

#[test]
fn regress_definitions_conflict_with_one_that_committed_since_they_looked_the_table_up() {
    type Change = fn(&Transaction, &Table) -> vellum::Result<()>;
    let changes: [Change; 3] = [
        |tx, table| index(tx, table, "second"),
        |tx, table| tx.drop_index(table, "old"),
        |tx, _| tx.drop_table("t"),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (database, table) = filled();
        database.retry(|tx| index(tx, &table, "old")).unwrap();
        let result = overtaken(
            &database,
            |tx| change(tx, &table),
            |tx| index(tx, &table, "first"),
        );
        assert!(conflicts(&result), "change {number}: {result:?}");
        // Both indexes are kept from here on: by a handle from before them as well.
        database
            .retry(|tx| tx.upsert(&table, &key(60), &[9; 8]).map(drop))
            .unwrap();
        let tx = database.begin().unwrap();
        assert_eq!(tx.indexes(&table).unwrap(), ["first", "old"]);
        for name in ["first", "old"] {
            let index = tx.index(&table, name).unwrap();
            let mut cursor = tx.index_cursor(&index, [9u8; 4].as_slice()..).unwrap();
            let found = cursor.next().unwrap().is_some();
            assert!(found, "change {number}, index {name}");
        }
        tx.commit().unwrap();
        let report = database.verify().unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
}

#[test]
fn regress_a_load_that_committed_meanwhile_keeps_its_tree() {
    let (_directory, database, table) = with_table(&small());
    let load = |tx: &Transaction| {
        let mut number = 0u32;
        tx.bulk_load(&table, |key, value| {
            number += 1;
            key.extend_from_slice(&number.to_be_bytes());
            value.resize(50, 3);
            number <= 100
        })
        .map(drop)
    };
    let result = overtaken(&database, |tx| index(tx, &table, "late"), load);
    assert!(conflicts(&result), "{result:?}");
    let tx = database.begin().unwrap();
    assert_eq!(tx.count(&tx.table("t").unwrap(), ..).unwrap(), 100);
    assert!(value_of(&tx, &table, &key(7)).is_some());
    tx.commit().unwrap();
    assert!(database.verify().unwrap().is_sound());
}

/// Symptom: a table whose drop was rolled back was gone (found by reading). Cause: `Tables::forget` asked first whether the drop was void
/// and then whether everyone sees it; between the two it was rolled back, and its slot committed again. Guard: the order of the two.
#[test]
fn table_whose_drop_is_rolled_back_while_it_is_looked_at_is_not_forgotten() {
    let (_directory, database, table) = with_table(&small());
    let other = database.retry(|tx| tx.create_table("other")).unwrap();
    let dropper = database.begin().unwrap();
    dropper.drop_table("t").unwrap();
    let points = TestPoints::new();
    let pause = points.pause("schema: between frozen and void");
    thread::scope(|scope| {
        let stepper = scope.spawn(|| {
            let _scope = points.enter();
            database.step().unwrap();
        });
        pause.wait_reached();
        dropper.rollback().unwrap();
        // In the slot of the drop, too: what was stamped there is below its last commit then.
        for number in 0..100 {
            database
                .retry(|tx| tx.insert(&other, &key(number), b"v"))
                .unwrap();
        }
        pause.release();
        stepper.join().unwrap();
    });
    let tx = database.begin().unwrap();
    assert_eq!(tx.table("t").map(drop).map_err(|e| e.to_string()), Ok(()));
    tx.insert(&table, b"k", b"v").unwrap();
    tx.commit().unwrap();
}
