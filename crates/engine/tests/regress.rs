//! What was found once: symptom, cause, guard.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use vellum::{
    Config, Database, Error, Isolation, KeyDescription, KeyPart, Source, TransactionOptions,
};
use vellum_io::MemoryDirectory;

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
