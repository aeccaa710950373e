//! What was found once: symptom, cause, guard.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use vellum::{Config, Database};
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
