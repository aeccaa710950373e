//! One snapshot a statement, and statements that are run again.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use vellum::{Config, Database, Error, Isolation, TransactionOptions};
use vellum_io::MemoryDirectory;

fn database() -> Database {
    let config = Config::default()
        .pool_bytes(4 << 20)
        .background_threads(false);
    Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap()
}

fn options() -> TransactionOptions {
    TransactionOptions::default().isolation(Isolation::Statement)
}

#[test]
fn all_steps_of_a_statement_see_one_snapshot() {
    let database = database();
    let table = database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            tx.insert(&table, b"k", b"1")?;
            Ok(table)
        })
        .unwrap();
    let reader = database.begin_with(options()).unwrap();
    let read = || reader.get(&table, b"k", <[u8]>::to_vec).unwrap().unwrap();
    assert_eq!(read(), b"1");
    database
        .retry(|tx| tx.upsert(&table, b"k", b"2").map(drop))
        .unwrap();
    assert_eq!(read(), b"1", "the statement goes on");
    reader.begin_statement().unwrap();
    assert_eq!(read(), b"2");
}

#[test]
fn no_update_is_lost_and_the_statement_runs_again() {
    let database = database();
    let table = database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            tx.insert(&table, b"a", b"1")?;
            tx.insert(&table, b"b", b"1")?;
            Ok(table)
        })
        .unwrap();
    let tx = database.begin_with(options()).unwrap();
    tx.replace(&table, b"a", b"own").unwrap();
    tx.begin_statement().unwrap();
    let savepoint = tx.savepoint().unwrap();
    tx.insert(&table, b"c", b"half").unwrap();
    database
        .retry(|other| other.replace(&table, b"b", b"theirs").map(drop))
        .unwrap();
    let conflict = tx.replace(&table, b"b", b"mine").unwrap_err();
    assert!(matches!(conflict, Error::Conflict), "{conflict}");
    tx.restart_statement(&savepoint).unwrap();
    assert!(tx.get(&table, b"c", |_| ()).unwrap().is_none(), "reverted");
    let seen = tx.get(&table, b"b", <[u8]>::to_vec).unwrap().unwrap();
    assert_eq!(seen, b"theirs");
    tx.replace(&table, b"b", b"mine").unwrap();
    tx.commit().unwrap();
    let reader = database.begin().unwrap();
    let read = |key: &[u8]| reader.get(&table, key, <[u8]>::to_vec).unwrap().unwrap();
    assert_eq!(
        (read(b"a"), read(b"b")),
        (b"own".to_vec(), b"mine".to_vec())
    );
}
