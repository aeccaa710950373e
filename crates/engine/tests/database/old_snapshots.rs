//! Deleted rows and old snapshots through the embedded API: analytical transactions see what they saw on every path, and
//! nobody else steps over it.
#![cfg(not(any(loom, shuttle)))]

use crate::support::{by_value, key, rows, settle, small, tiny, value_of, with_table};
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use vellum::{
    Class, Database, Durability, Error, Index, Table, Transaction, TransactionOptions, VersionKind,
};

const ROWS: u32 = 400;

fn begin(database: &Database, class: Class) -> Transaction {
    let options = TransactionOptions::default()
        .class(class)
        .durability(Durability::Async);
    database.begin_with(options).unwrap()
}

fn value(number: u32) -> Vec<u8> {
    [&(number / 3).to_be_bytes()[..], &[7; 40]].concat()
}

/// A table with an index over the first four bytes of the value.
fn indexed() -> (Database, Table, Index) {
    let (_, database, table) = with_table(&small());
    let index = database
        .retry(|tx| tx.create_index(&table, "i", by_value(0, Some(4), false)))
        .unwrap();
    database
        .retry(|tx| (0..ROWS).try_for_each(|n| tx.insert(&table, &key(n), &value(n))))
        .unwrap();
    (database, table, index)
}

fn delete_all(database: &Database, table: &Table) {
    for number in 0..ROWS {
        let tx = begin(database, Class::Auto);
        assert!(tx.delete(table, &key(number)).unwrap());
        tx.commit().unwrap();
    }
    settle(database);
}

fn tombstones(database: &Database) -> u64 {
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let tables = report.tables.iter();
    tables
        .map(|table| {
            let indexes = table.indexes.iter().map(|index| index.tree.tombstones);
            table.tree.tombstones + indexes.sum::<u64>()
        })
        .sum()
}

#[test]
fn trap_every_read_of_an_old_analytical_transaction_looks_into_the_graveyards() {
    let (database, table, index) = indexed();
    let old = begin(&database, Class::Olap);
    let before = rows(&old, &table);
    delete_all(&database, &table);
    assert_eq!(tombstones(&database), 0);
    assert_eq!(database.statistics().rows_buried, 2 * u64::from(ROWS));
    assert_eq!(rows(&old, &table), before);
    assert_eq!(old.count(&table, ..).unwrap(), u64::from(ROWS));
    let mut cursor = old.cursor(&table, ..).unwrap();
    let mut backward = Vec::new();
    while let Some((key, value)) = cursor.prev().unwrap() {
        backward.push((key.to_vec(), value.to_vec()));
    }
    drop(cursor);
    backward.reverse();
    assert_eq!(backward, before);
    let mut batches = Vec::new();
    let mut cursor = old.cursor(&table, ..).unwrap();
    while cursor.batch(|key, _| batches.push(key.to_vec())).unwrap() > 0 {}
    drop(cursor);
    assert_eq!(batches.len(), ROWS as usize);
    let (mut cursor, mut back) = (old.cursor(&table, ..).unwrap(), Vec::new());
    while cursor.batch_back(|key, _| back.push(key.to_vec())).unwrap() > 0 {}
    drop(cursor);
    back.reverse();
    assert_eq!(back, batches);
    let (mut cursor, mut all) = (old.cursor(&table, ..).unwrap(), Vec::new());
    let ended = cursor.try_for_each(|key, value| {
        all.push((key.to_vec(), value.to_vec()));
        ControlFlow::<()>::Continue(())
    });
    assert!(ended.unwrap().is_continue());
    assert_eq!(all, before);
    assert_eq!(cursor.next().unwrap(), None);
    let ended = cursor.try_for_each_back(|key, value| {
        assert_eq!(all.pop().unwrap(), (key.to_vec(), value.to_vec()));
        ControlFlow::<()>::Continue(())
    });
    assert!(ended.unwrap().is_continue());
    assert!(all.is_empty());
    drop(cursor);
    let columns = |number: u32| number.to_be_bytes();
    let (low, high) = (columns(10), columns(12));
    let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
    let mut entries = old.index_cursor(&index, range).unwrap();
    let mut found = Vec::new();
    while let Some((_, key)) = entries.next().unwrap() {
        found.push(u32::from_be_bytes(key.try_into().unwrap()));
    }
    drop(entries);
    assert_eq!(found, [30, 31, 32, 33, 34, 35]);
    let mut entries = old.index_cursor(&index, range).unwrap();
    while let Some((_, key)) = entries.prev().unwrap() {
        assert_eq!(
            Some(u32::from_be_bytes(key.try_into().unwrap())),
            found.pop()
        );
    }
    drop(entries);
    assert!(found.is_empty());
    let keys: Vec<_> = (0..ROWS + 5).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 4]>::as_slice).collect();
    let mut live = 0;
    old.multi_get(&table, &keys, |_, value| live += u32::from(value.is_some()))
        .unwrap();
    assert_eq!(live, ROWS);
    for number in [0, 1, ROWS - 1] {
        assert_eq!(value_of(&old, &table, &key(number)), Some(value(number)));
    }
    // Who begins now sees nothing, whatever its class.
    for class in [Class::Auto, Class::Oltp, Class::Olap] {
        let now = begin(&database, class);
        assert_eq!(now.count(&table, ..).unwrap(), 0);
        assert_eq!(value_of(&now, &table, &key(1)), None);
    }
    old.rollback().unwrap();
    settle(&database);
    assert_eq!(database.statistics().rows_buried, 0);
}

#[test]
fn old_analytical_writers_conflict_with_what_left_the_index() {
    let (database, table, _) = indexed();
    let unique = database.retry(|tx| tx.create_table("unique")).unwrap();
    database
        .retry(|tx| {
            tx.create_index(&unique, "u", by_value(0, Some(4), true))?;
            tx.insert(&unique, b"owner", b"name")
        })
        .unwrap();
    let old: Vec<_> = (0..6).map(|_| begin(&database, Class::Olap)).collect();
    delete_all(&database, &table);
    database.retry(|tx| tx.delete(&unique, b"owner")).unwrap();
    settle(&database);
    assert_eq!(tombstones(&database), 0);
    let conflict = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Conflict)));
    conflict(old[0].insert(&table, &key(3), b"mine"));
    conflict(old[1].upsert(&table, &key(3), &value(3)).map(drop));
    conflict(old[2].delete(&table, &key(3)).map(drop));
    let ranges = [0..4];
    let change = |value: &mut [u8]| value[0] = 1;
    conflict(old[3].update(&table, &key(3), &ranges, change).map(drop));
    // Another key under the unique name, which is free, but was not when this one began.
    conflict(old[4].insert(&unique, b"other", b"name"));
    // An index made of what is there now would lack rows that its maker sees.
    conflict(
        old[5]
            .create_index(&table, "late", by_value(4, None, false))
            .map(drop),
    );
    for tx in old {
        tx.rollback().unwrap();
    }
    database
        .retry(|tx| tx.insert(&unique, b"other", b"name"))
        .unwrap();
}

/// A table of whose rows nothing is left in the index is not empty for who sees them in the graveyard, nor for who may not see that
/// some came and went: such a load goes row by row.
#[test]
fn regress_load_by_an_old_writer_meets_the_rows_that_left_the_index() {
    let (_, database, table) = with_table(&small());
    let load = |tx: &Transaction, from: u32| {
        let mut numbers = from..from + 3;
        tx.bulk_load(&table, |row, value| {
            let Some(number) = numbers.next() else {
                return false;
            };
            row.extend_from_slice(&key(number));
            value.push(9);
            true
        })
    };
    let begin = || begin(&database, Class::Olap);
    let before = begin();
    let insert = |tx: &Transaction| (0..20).try_for_each(|n| tx.insert(&table, &key(n), b"v"));
    database.retry(insert).unwrap();
    let [same, other] = [begin(), begin()];
    let seen = rows(&other, &table);
    assert_eq!(seen.len(), 20);
    let delete = |tx: &Transaction| (0..20).try_for_each(|n| tx.delete(&table, &key(n)).map(drop));
    database.retry(delete).unwrap();
    // Of the time of no snapshot.
    database
        .retry(|tx| tx.insert(&table, &key(50), b"v"))
        .unwrap();
    database
        .retry(|tx| tx.delete(&table, &key(50)).map(drop))
        .unwrap();
    settle(&database);
    assert_eq!(tombstones(&database), 0);
    assert_eq!(database.statistics().rows_buried, 20);
    let error = load(&same, 10).unwrap_err();
    assert!(
        matches!(error, Error::Conflict),
        "its row was deleted: {error}"
    );
    same.rollback().unwrap();
    let error = load(&before, 49).unwrap_err();
    assert!(
        matches!(error, Error::Conflict),
        "a row came and went: {error}"
    );
    before.rollback().unwrap();
    // Other keys may come, and what it saw stays.
    assert_eq!(load(&other, 100).unwrap(), 3);
    assert_eq!(rows(&other, &table).len(), 20 + 3);
    assert_eq!(rows(&other, &table)[..20], seen);
    other.commit().unwrap();
    assert_eq!(rows(&begin(), &table).len(), 3);
}

#[test]
fn tables_take_their_graveyards_along() {
    let (database, table, index) = indexed();
    settle(&database);
    let old = begin(&database, Class::Olap);
    delete_all(&database, &table);
    assert_eq!(database.statistics().rows_buried, 2 * u64::from(ROWS));
    database.retry(|tx| tx.drop_index(&table, "i")).unwrap();
    database.retry(|tx| tx.drop_table("t")).unwrap();
    settle(&database);
    assert_eq!(old.count(&table, ..).unwrap(), u64::from(ROWS));
    let mut entries = old.index_cursor(&index, ..).unwrap();
    assert!(entries.next().unwrap().is_some());
    drop(entries);
    old.rollback().unwrap();
    settle(&database);
    let now = database.statistics();
    assert_eq!(now.rows_buried, 0);
    assert!(now.version_bytes < 64 * now.page_bytes, "{now:?}");
}

#[test]
fn queue_beside_a_session_that_is_idle_in_a_transaction_stays_small_in_index_and_versions() {
    for class in [Class::Auto, Class::Olap] {
        let mut config = small();
        config.promote_after_ticks = 2_000;
        let (_, database, table) = with_table(&config);
        let step = |number: u32| {
            let tx = begin(&database, Class::Auto);
            tx.insert(&table, &key(number), &[1; 100]).unwrap();
            if number >= 50 {
                let mut cursor = tx.cursor(&table, ..).unwrap();
                let first = cursor.next().unwrap().unwrap().0.to_vec();
                drop(cursor);
                assert_eq!(first, key(number - 50));
                tx.delete(&table, &first).unwrap();
            }
            tx.commit().unwrap();
        };
        (0..100).for_each(step);
        let idle = begin(&database, class);
        let seen = rows(&idle, &table);
        let (mut pages, mut version_bytes) = (0, 0);
        for number in 100..6_000 {
            step(number);
            if number == 3_000 {
                settle(&database);
                pages = database.statistics().pages_durable;
                version_bytes = database.statistics().version_bytes;
            }
        }
        assert!(tombstones(&database) < 100, "{class:?}");
        settle(&database);
        let now = database.statistics();
        assert_eq!(now.rows_buried, 50, "what it sees, and nothing else");
        assert!(
            now.pages_durable <= pages + 4,
            "{} pages",
            now.pages_durable
        );
        assert!(now.version_bytes <= version_bytes + 8 * now.page_bytes);
        assert_eq!(rows(&idle, &table), seen);
    }
}

/// What a queue's operations did, each; or what stood in their way at the end.
#[derive(Debug)]
struct Work {
    /// Leaves that the transactions looked into.
    pages: f64,
    /// Versions behind the newest that they read.
    versions: f64,
    /// Of tables, lists and versions alike, collection included.
    searches: f64,
    /// Slots that passes looked at.
    slots: f64,
    log_bytes: f64,
    tombstones: u64,
    /// Leaves that operations looked into before all snapshots were analytical, in all.
    pages_until_promoted: u64,
}

/// A queue of 100 rows, beside so many snapshots of which each sees another hundred.
fn work_of_a_queue_beside(snapshots: u32) -> Work {
    const APART: u32 = 1_500;
    const OPERATIONS: u32 = 4_000;
    let mut config = small();
    config.promote_after_ticks = 2_000;
    let (_, database, table) = with_table(&config);
    let (pages, versions) = (Cell::new(0), Cell::new(0));
    let step = |number: u32| {
        let tx = begin(&database, Class::Auto);
        tx.insert(&table, &key(number), &[1; 100]).unwrap();
        if number >= 100 {
            let mut cursor = tx.cursor(&table, ..).unwrap();
            let first = cursor.next().unwrap().unwrap().0.to_vec();
            drop(cursor);
            assert_eq!(first, key(number - 100));
            tx.delete(&table, &first).unwrap();
        }
        let touched = tx.touched();
        pages.set(pages.get() + touched.pages);
        versions.set(versions.get() + touched.versions);
        tx.commit().unwrap();
        if number.is_multiple_of(500) {
            database.step().unwrap();
        }
    };
    let mut held = Vec::new();
    let first = APART * (snapshots + 1);
    for number in 0..first {
        if number > 0 && number.is_multiple_of(APART) {
            held.push(begin(&database, Class::Auto));
        }
        step(number);
    }
    let before = database.statistics();
    assert_eq!(before.promotions, u64::from(snapshots));
    let touched = (pages.get(), versions.get());
    (0..OPERATIONS).for_each(|number| step(first + number));
    let after = database.statistics();
    let each = |count: u64| count as f64 / f64::from(OPERATIONS);
    Work {
        pages: each(pages.get() - touched.0),
        versions: each(versions.get() - touched.1),
        pages_until_promoted: touched.0,
        searches: each(after.tree_searches - before.tree_searches),
        slots: each(after.slots_looked_at - before.slots_looked_at),
        log_bytes: each(after.log_record_bytes - before.log_record_bytes),
        tombstones: after.tombstones,
    }
}

/// Work and not time.
#[test]
fn operation_of_a_queue_does_no_more_beside_ten_snapshots_of_different_ages() {
    let alone = work_of_a_queue_beside(0);
    for snapshots in [1, 10] {
        let beside = work_of_a_queue_beside(snapshots);
        println!("{snapshots}: {beside:?}, alone {alone:?}");
        // Rows that are not frozen are longer, so a leaf holds fewer of them. But nothing else goes by the number of snapshots.
        let is_bounded = |beside: f64, alone: f64| beside <= 1.25 * alone + 0.05;
        assert!(is_bounded(beside.pages, alone.pages));
        assert!(is_bounded(beside.versions, alone.versions));
        assert!(is_bounded(beside.searches, alone.searches));
        assert!(is_bounded(beside.slots, alone.slots));
        assert!(is_bounded(beside.log_bytes, alone.log_bytes));
        assert!(beside.tombstones <= alone.tombstones + 8);
        // Until a snapshot is promoted each operation steps over the tombstones of all before it: of some 70, with 25 rows a leaf or more, twice (its
        // collector looks, too). With 256 it would be 1,300 leaves a snapshot.
        let operations = f64::from(1_500 * (snapshots + 1));
        let ageing = beside.pages_until_promoted as f64 - alone.pages * operations;
        println!("{snapshots}: {ageing} leaves more until all were promoted");
        assert!(ageing <= 400.0 * f64::from(snapshots));
    }
}

/// Nothing else asks for it: no tombstone, no before-image, no large value, and no age.
#[test]
fn hot_row_beside_an_idle_session_has_it_promoted() {
    let (_, database, table) = with_table(&small());
    database
        .retry(|tx| tx.insert(&table, &key(0), &[1; 60]))
        .unwrap();
    let update = |_: u32| {
        let tx = begin(&database, Class::Auto);
        let changed = tx.update(&table, &key(0), &[0..4], |value| value[0] ^= 1);
        assert!(changed.unwrap());
        tx.commit().unwrap();
    };
    (0..100).for_each(update);
    let idle = begin(&database, Class::Auto);
    let seen = rows(&idle, &table);
    (0..600).for_each(update);
    assert_eq!(database.statistics().promotions, 0);
    (0..2_000).for_each(update);
    assert_eq!(database.statistics().promotions, 1);
    assert_eq!(rows(&idle, &table), seen);
}

/// The same of many rows, of which each is full as often as the others, in turns.
#[test]
fn hot_rows_beside_an_idle_session_have_it_promoted() {
    let (_, database, table) = with_table(&small());
    let insert = |tx: &Transaction| (0..20).try_for_each(|n| tx.insert(&table, &key(n), &[1; 60]));
    database.retry(insert).unwrap();
    let update = |number: u32| {
        let tx = begin(&database, Class::Auto);
        let changed = tx.update(&table, &key(number % 20), &[0..4], |value| value[0] ^= 1);
        assert!(changed.unwrap());
        tx.commit().unwrap();
    };
    (0..400).for_each(update);
    let idle = begin(&database, Class::Auto);
    let seen = rows(&idle, &table);
    (0..4_000).for_each(update);
    assert_eq!(database.statistics().promotions, 1);
    assert_eq!(rows(&idle, &table), seen);
}

#[test]
fn versions_stop_growing_once_every_row_was_updated_under_an_idle_snapshot() {
    let (_, database, table) = with_table(&small());
    let row = |number: u32| [&number.to_be_bytes()[..], &[7; 90]].concat();
    database
        .retry(|tx| (0..ROWS).try_for_each(|n| tx.insert(&table, &key(n), &row(n))))
        .unwrap();
    let old = begin(&database, Class::Olap);
    let sees = rows(&old, &table);
    database.step().unwrap();
    let round = |byte: u8| {
        for number in 0..ROWS {
            let tx = begin(&database, Class::Auto);
            let changed = tx.update(&table, &key(number), &[4..12], |value| {
                value[4..12].fill(byte);
            });
            assert!(changed.unwrap());
            // And a row that comes after the snapshot, and is updated once.
            let late = key(ROWS + u32::from(byte) * ROWS + number);
            tx.insert(&table, &late, &row(number)).unwrap();
            tx.commit().unwrap();
            let tx = begin(&database, Class::Auto);
            let changed = tx.update(&table, &late, &[4..12], |value| value[4..12].fill(byte));
            assert!(changed.unwrap());
            tx.commit().unwrap();
        }
        settle(&database);
        database.statistics().version_deltas
    };
    let first = round(1);
    assert!(first < u64::from(ROWS) * 3 / 2, "{first}");
    for byte in 2..6 {
        let now = round(byte);
        assert!(
            now < u64::from(ROWS) * 3 / 2,
            "{now} after {byte} rounds, {first} after one"
        );
    }
    assert_eq!(rows(&old, &table), sees);
    let leaves = old.leaf_pages(&table).unwrap();
    assert!((60..300).contains(&leaves), "{leaves}");
    old.rollback().unwrap();
    settle(&database);
    assert_eq!(database.statistics().version_deltas, 0);
}

/// What [`vellum::Statistics`] counts of old snapshots.
fn counts(database: &Database) -> [u64; 6] {
    let now = database.statistics();
    [
        now.promotions,
        now.rows_moved,
        now.deltas_swept,
        now.fat_rows_made,
        now.versions_displaced,
        now.fat_rows_decomposed,
    ]
}

/// One transaction that updates eight bytes of a row.
fn touch(database: &Database, table: &Table, number: u32, byte: u8) {
    let tx = begin(database, Class::Oltp);
    let change = |value: &mut [u8]| value[4..12].fill(byte);
    assert!(tx.update(table, &key(number), &[4..12], change).unwrap());
    tx.commit().unwrap();
}

#[test]
fn what_old_snapshots_make_happen_is_counted_where_it_happens_and_nowhere_else() {
    const HOT: u32 = 3;
    let mut config = tiny(4096, 256);
    config.promote_after_ticks = 500;
    let (_, database, table) = with_table(&config);
    let index = by_value(0, Some(4), false);
    let other = database
        .retry(|tx| {
            tx.create_index(&table, "i", index.clone())?;
            tx.create_table("other")
        })
        .unwrap();
    database
        .retry(|tx| (0..4 * ROWS).try_for_each(|n| tx.insert(&table, &key(n), &value(n))))
        .unwrap();
    settle(&database);
    let work = |round: u8| {
        for number in 0..ROWS {
            touch(&database, &table, HOT, number as u8);
            touch(&database, &table, ROWS + number, round);
        }
        let deleted = u32::from(round) * 10;
        for number in 2 * ROWS + deleted..2 * ROWS + deleted + 10 {
            let tx = begin(&database, Class::Oltp);
            assert!(tx.delete(&table, &key(number)).unwrap());
            tx.commit().unwrap();
        }
        settle(&database);
    };
    // Nobody looks at the past.
    work(0);
    assert_eq!(counts(&database), [0; 6]);
    // A declared class is kept, however old; a row that is updated all the time under it turns fat.
    let declared = begin(&database, Class::Oltp);
    work(1);
    let [promotions, moved, swept, made, displaced, decomposed] = counts(&database);
    assert_eq!([promotions, moved, swept, displaced], [0; 4]);
    assert_eq!((made, decomposed), (1, 0));
    // An analytical one: rows and their entries go to graveyards, and of the hot row one old version gives its place to the next.
    let analytical = begin(&database, Class::Olap);
    declared.commit().unwrap();
    work(2);
    let [promotions, moved, _, _, displaced, _] = counts(&database);
    assert_eq!(promotions, 0, "it was declared");
    assert_eq!(moved, 20, "ten rows and ten entries");
    assert!(displaced > 50, "{:?}", counts(&database));
    // What is updated again under it leaves a version that nobody sees.
    let before = counts(&database)[2];
    work(3);
    let [_, moved, swept, _, _, _] = counts(&database);
    assert_eq!(moved, 40);
    assert!(swept > before + u64::from(ROWS) / 2, "{before}, {swept}");
    // One that declares nothing is promoted, once.
    let idle = begin(&database, Class::Auto);
    assert_eq!(counts(&database)[0], 0);
    work(4);
    work(5);
    assert_eq!(counts(&database)[0], 1);
    drop(idle);
    // The hot row's page is wanted for others.
    let declared = begin(&database, Class::Oltp);
    (0..200).for_each(|byte| touch(&database, &table, HOT, byte));
    let [_, _, _, made, _, decomposed] = counts(&database);
    assert!(made > decomposed, "{made}, {decomposed}");
    let large = vec![7; 3000];
    for number in 0..500 {
        database
            .retry(|tx| tx.insert(&other, &key(number), &large))
            .unwrap();
        if number % 32 == 0 {
            settle(&database);
        }
    }
    assert_eq!(counts(&database)[5], made);
    drop((analytical, declared));
    settle(&database);
    assert_eq!(database.statistics().version_deltas, 0);
}

/// The slot's thread is gone, and its lists of work were written out: maintenance reads them again.
#[test]
fn garbage_of_an_idle_slot_whose_pages_were_evicted_goes_with_maintenance() {
    let (_, database, table) = with_table(&tiny(4096, 24));
    let other = database.retry(|tx| tx.create_table("other")).unwrap();
    let large = vec![7; 1000];
    for number in 0..ROWS {
        database
            .retry(|tx| tx.insert(&table, &key(number), &large))
            .unwrap();
    }
    settle(&database);
    for class in [Class::Oltp, Class::Olap] {
        let seen = begin(&database, class);
        let before = rows(&seen, &table);
        // All in one slot, which nobody uses from here on: `holder` and `reader` have others.
        let writer = begin(&database, Class::Oltp);
        for number in 0..ROWS / 2 {
            writer.delete(&table, &key(number)).unwrap();
            writer
                .upsert(&table, &key(ROWS / 2 + number), &[1; 900])
                .unwrap();
        }
        let reader = begin(&database, Class::Oltp);
        writer.commit().unwrap();
        let copies = database.statistics().version_copies;
        assert!(copies >= u64::from(ROWS), "{copies}");
        // Everything else is read, again and again: no page of the slot's trees stays in memory.
        let read = database.statistics().pages_read;
        for _ in 0..3 {
            assert_eq!(rows(&seen, &table), before);
            assert_eq!(rows(&reader, &other).len(), 0);
        }
        assert!(database.statistics().pages_read > read + 300);
        drop((seen, reader));
        settle(&database);
        let now = database.statistics();
        let left = (now.version_copies, now.version_deltas, now.rows_buried);
        assert_eq!(left, (0, 0, 0), "{class:?}");
        assert_eq!(tombstones(&database), 0);
        assert!(now.pages_of_versions < 40, "{}", now.pages_of_versions);
        database
            .retry(|tx| (0..ROWS).try_for_each(|n| tx.upsert(&table, &key(n), &large).map(drop)))
            .unwrap();
        settle(&database);
    }
}

/// A row with a large value that is updated all the time turns fat, and leaves no before-images: it is the values that pile up.
#[test]
fn trap_large_values_that_pile_up_have_an_idle_session_promoted() {
    let (_directory, database, table) = with_table(&small());
    let put = |number: u32, byte: u8| {
        let value = vec![byte; 20_000];
        database
            .retry(|tx| tx.upsert(&table, &key(number % 5), &value))
            .unwrap();
    };
    (0..5).for_each(|number| put(number, 1));
    let idle = database.begin().unwrap();
    let sees = value_of(&idle, &table, &key(0));
    (0..2000).for_each(|number| put(number, 2));
    let now = database.statistics();
    assert_eq!(now.promotions, 1);
    // 40 MB were replaced.
    assert!(now.version_bytes < 20 << 20, "{}", now.version_bytes);
    settle(&database);
    let left = database.statistics().version_bytes;
    assert!(left < 1 << 20, "{left} bytes for five rows");
    assert_eq!(value_of(&idle, &table, &key(0)), sees);
}

/// A transaction that deletes any number of rows takes two ticks: nobody falls behind by it.
#[test]
fn deletes_of_one_transaction_have_an_idle_session_promoted_though_nobody_writes_after_them() {
    const MANY: u32 = 140_000;
    let mut config = tiny(4096, 16_384);
    config.log_bytes_max = 256 << 20;
    config.checkpoint_log_bytes = 128 << 20;
    let (_, database, table) = with_table(&config);
    let all = |tx: &Transaction| (0..MANY).try_for_each(|n| tx.insert(&table, &key(n), b"v"));
    database.retry(all).unwrap();
    let idle = begin(&database, Class::Auto);
    assert_eq!(idle.count(&table, ..).unwrap(), u64::from(MANY));
    let tx = begin(&database, Class::Auto);
    (0..MANY).for_each(|n| assert!(tx.delete(&table, &key(n)).unwrap()));
    tx.commit().unwrap();
    settle(&database);
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let left: u64 = report.tables.iter().map(|t| t.tree.tombstones).sum();
    assert_eq!(left, 0, "tombstones that everybody steps over");
    assert_eq!(idle.count(&table, ..).unwrap(), u64::from(MANY));
}

/// A look at very many versions takes some milliseconds, so a step of maintenance takes one, not one a slot; and slots have it in turn.
#[test]
fn rows_with_very_many_versions_go_one_a_step_and_by_turns_of_their_slots() {
    const EACH: u64 = 3;
    let (_, database, first) = with_table(&tiny(4096, 512));
    let second = database.retry(|tx| tx.create_table("second")).unwrap();
    let old = begin(&database, Class::Olap);
    let tables = [("t", &first), ("second", &second)];
    // Of two slots, with a table each.
    let writers = tables.map(|(_, table)| (table, begin(&database, Class::Auto)));
    for (table, writer) in &writers {
        for number in 0..EACH as u32 {
            for version in 0..400_u32 {
                let value = version.to_be_bytes();
                writer.upsert(table, &key(number), &value).unwrap();
            }
            assert!(writer.delete(table, &key(number)).unwrap());
        }
    }
    for (_, writer) in writers {
        writer.commit().unwrap();
    }
    let buried = || {
        let versions = database.versions().unwrap();
        tables.map(|(name, _)| {
            let found = versions.tables.iter();
            let mut found = found.filter(|it| it.table.as_deref() == Some(name));
            let table = found.next();
            table.map_or(0, |it| it.sums.of(VersionKind::Buried).count)
        })
    };
    for round in 1..=EACH {
        database.step().unwrap();
        assert_eq!(buried(), [EACH - round, EACH + 1 - round]);
        database.step().unwrap();
        assert_eq!(buried(), [EACH - round; 2]);
    }
    settle(&database);
    assert_eq!(tombstones(&database), 0);
    for (_, table) in tables {
        assert_eq!(rows(&old, table), []);
    }
}

#[test]
fn tables_that_come_and_go_under_an_idle_session_leave_nothing() {
    let (_, database, table) = with_table(&small());
    database.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
    let idle = begin(&database, Class::Auto);
    assert_eq!(value_of(&idle, &table, b"k"), Some(b"v".to_vec()));
    let mut used = Vec::new();
    for round in 0..30u32 {
        let name = format!("t{round}");
        database
            .retry(|tx| {
                let table = tx.create_table(&name)?;
                tx.create_index(&table, "i", by_value(0, Some(4), false))?;
                (0..ROWS).try_for_each(|n| tx.insert(&table, &key(n), &value(n)))
            })
            .unwrap();
        database.retry(|tx| tx.drop_table(&name)).unwrap();
        settle(&database);
        used.push(database.verify().unwrap().pages.in_use);
    }
    assert!(used[29] < used[9] + 8, "pages in use: {used:?}");
    assert_eq!(value_of(&idle, &table, b"k"), Some(b"v".to_vec()));
}
