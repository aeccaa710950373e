//! What was found once: symptom, cause, guard.

use crate::support::{fresh, key, settle, small};
use std::sync::{Arc, Barrier};
use vellum::{
    Class, Config, Database, Error, Isolation, KeyDescription, KeyPart, Source, TransactionOptions,
};
use vellum_io::MemoryDirectory;
use vellum_sync::test_point::TestPoints;

/// Symptom: a cursor reported a corrupt page. Cause: a bulk load gives the table a new tree; rolling the load back frees
/// it, under a cursor that was opened in between. Guard: after a rollback a cursor looks up its tree again.
#[test]
fn regress_cursor_outlives_the_rollback_of_the_load_that_it_was_opened_on() {
    let mut config = Config::default().background_threads(false);
    config.pool_bytes = 64 * 8192;
    let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let tx = database.begin().unwrap();
    let savepoint = tx.savepoint().unwrap();
    let mut number = 0u8;
    tx.bulk_load(&table, |key, value| {
        number += 1;
        key.push(number);
        value.resize(1000, number);
        number < 100
    })
    .unwrap();
    let mut cursor = tx.cursor(&table, ..).unwrap();
    assert!(cursor.next().unwrap().is_some());
    tx.rollback_to(&savepoint).unwrap();
    assert!(cursor.next().unwrap().is_none());
    assert!(cursor.prev().unwrap().is_none());
}

/// Symptom: found by the model once it worked through handles of other transactions: under read committed a handle of a table that somebody
/// had dropped still had indexes, and a new index was not found, until another operation had run. Cause: `indexes` and `index` looked at the
/// table in the snapshot of the operation before. Guard: they begin a statement, like every other operation.
#[test]
fn regress_indexes_under_read_committed_are_those_of_now() {
    let config = Config::default()
        .pool_bytes(64 * 8192)
        .background_threads(false);
    let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let options = TransactionOptions::default().isolation(Isolation::ReadCommitted);
    let tx = database.begin_with(options).unwrap();
    assert_eq!(tx.indexes(&table).unwrap(), Vec::<String>::new());
    let part = KeyPart {
        source: Source::Value,
        start: 0,
        end: None,
    };
    let key = KeyDescription::new(vec![part], false).unwrap();
    database
        .retry(|tx| tx.create_index(&table, "i", key.clone()).map(drop))
        .unwrap();
    assert!(tx.index(&table, "i").is_ok());
    assert_eq!(tx.indexes(&table).unwrap(), ["i"]);
    database.retry(|tx| tx.drop_table("t")).unwrap();
    let missing = tx.indexes(&table);
    assert!(
        matches!(missing, Err(Error::NoSuchTable { .. })),
        "{missing:?}"
    );
}

/// Symptom: an open analytical snapshot lost rows, and index entries. Cause: maintenance collected all slots by one set of watermarks; where a
/// slot's own commit had buried a row by newer ones meanwhile, the old `newest_olap` said that no snapshot sees it. Guard: V58,
/// watermarks are taken once it is the collector's turn.
#[test]
fn regress_rows_that_were_buried_while_maintenance_was_under_way_stay_for_who_sees_them() {
    let (_directory, database) = fresh(&small());
    let (first, second) = database
        .retry(|tx| Ok((tx.create_table("first")?, tx.create_table("second")?)))
        .unwrap();
    let analytical = || {
        let options = TransactionOptions::default().class(Class::Olap);
        database.begin_with(options.read_only(true)).unwrap()
    };
    drop(
        (0..8)
            .map(|_| database.begin().unwrap())
            .collect::<Vec<_>>(),
    );
    settle(&database);
    // Something that maintenance stops at in the first slot.
    let older = analytical();
    database.retry(|tx| tx.insert(&first, b"a", b"1")).unwrap();
    database
        .retry(|tx| tx.delete(&first, b"a").map(drop))
        .unwrap();
    let blocker = database.begin().unwrap();
    assert!(blocker.get(&first, b"a", |_| ()).unwrap().is_none());
    let points = TestPoints::new();
    let pause = points.pause("settle: between leaf and deltas");
    std::thread::scope(|scope| {
        let maintenance = {
            let (database, points) = (&database, points.clone());
            scope.spawn(move || {
                let _inside = points.enter();
                database.step()
            })
        };
        pause.wait_reached();
        // Another thread, hence another slot.
        let turns = Arc::new(Barrier::new(2));
        let writer = {
            let (database, second, turns) = (&database, &second, turns.clone());
            scope.spawn(move || {
                database
                    .retry(|tx| tx.insert(second, b"row", b"value"))
                    .unwrap();
                turns.wait();
                turns.wait();
                database
                    .retry(|tx| tx.delete(second, b"row").map(drop))
                    .unwrap();
                database.step().unwrap();
                for number in 0..24 {
                    database
                        .retry(|tx| tx.upsert(second, &key(number), b"x").map(drop))
                        .unwrap();
                }
            })
        };
        turns.wait();
        blocker.commit().unwrap();
        let sees = analytical();
        let read = || sees.get(&second, b"row", <[u8]>::to_vec).unwrap();
        assert_eq!(read().as_deref(), Some(&b"value"[..]));
        let ends = analytical();
        assert!(ends.get(&second, b"row", |_| ()).unwrap().is_some());
        turns.wait();
        writer.join().unwrap();
        assert_eq!(database.statistics().rows_buried, 1);
        assert!(read().is_some());
        ends.commit().unwrap();
        pause.release();
        maintenance.join().unwrap().unwrap();
        assert_eq!(read().as_deref(), Some(&b"value"[..]));
        assert_eq!(sees.count(&second, ..).unwrap(), 1);
    });
    drop(older);
}

/// Regression: the commit was refused as one of an ended transaction, and that was returned.
#[test]
fn regress_a_conflict_that_the_closure_keeps_to_itself_is_tried_again() {
    let config = Config::default()
        .pool_bytes(64 * 8192)
        .background_threads(false);
    let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    database.retry(|tx| tx.insert(&table, b"k", b"v")).unwrap();
    let mut tries = 0;
    let done = database.retry(|tx| {
        tries += 1;
        tx.get(&table, b"k", |_| ())?;
        if tries == 1 {
            database.retry(|other| other.upsert(&table, b"k", b"w").map(drop))?;
        }
        Ok(tx.upsert(&table, b"k", b"x").is_ok())
    });
    assert_eq!((done.unwrap(), tries), (true, 2));
    // Again and again: the last error is that of the operation.
    let rival = database.begin().unwrap();
    rival.upsert(&table, b"k", b"y").unwrap();
    let never = database.retry(|tx| {
        let _ = tx.upsert(&table, b"k", b"z");
        Ok(())
    });
    assert!(matches!(never, Err(Error::Conflict)), "{never:?}");
}
