//! One snapshot a statement, and statements that are run again.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use vellum::{Config, Database, Error, Isolation, Newest, TransactionOptions};
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

#[test]
fn a_conflict_names_its_writer_until_that_has_ended() {
    for end in ["commit", "rollback", "savepoint"] {
        let database = database();
        let table = database
            .retry(|tx| {
                let table = tx.create_table("t")?;
                tx.insert(&table, b"k", b"1")?;
                Ok(table)
            })
            .unwrap();
        let writer = database.begin().unwrap();
        let savepoint = writer.savepoint().unwrap();
        writer.replace(&table, b"k", b"2").unwrap();
        let tx = database.begin_with(options()).unwrap();
        assert!(tx.take_blocker().is_none(), "no conflict yet");
        tx.replace(&table, b"k", b"3").unwrap_err();
        let blocker = tx.take_blocker().unwrap();
        assert_eq!(blocker.transaction(), writer.id());
        assert!(tx.take_blocker().is_none(), "once");
        assert!(database.is_running(&blocker));
        match end {
            "commit" => writer.commit().unwrap(),
            "rollback" => writer.rollback().unwrap(),
            _ => {
                // The version is gone; the transaction goes on.
                writer.rollback_to(&savepoint).unwrap();
                assert!(database.is_running(&blocker));
                assert!(tx.replace(&table, b"k", b"3").unwrap());
                writer.commit().unwrap();
            }
        }
        assert!(!database.is_running(&blocker));
        // Another transaction in the same slot is another one.
        let next = database.begin().unwrap();
        next.insert(&table, b"other", b"").unwrap();
        assert!(!database.is_running(&blocker));
        drop(next);
        if end == "commit" {
            tx.replace(&table, b"k", b"3").unwrap_err();
            assert!(tx.take_blocker().is_none(), "it has committed");
        }
    }
}

#[test]
fn what_stands_newest_is_told_whoever_wrote_it() {
    let database = database();
    let table = database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            tx.insert(&table, b"k", b"1")?;
            Ok(table)
        })
        .unwrap();
    let tx = database.begin_with(options()).unwrap();
    let newest = |key: &[u8]| tx.newest(&table, key).unwrap();
    assert_eq!(newest(b"k"), Newest::Seen { live: true });
    assert_eq!(newest(b"none"), Newest::Nothing);
    let writer = database.begin().unwrap();
    writer.delete(&table, b"k").unwrap();
    writer.insert(&table, b"new", b"").unwrap();
    let running = |key: &[u8]| match newest(key) {
        Newest::Running { live, by } if by.transaction() == writer.id() => live,
        other => panic!("{other:?}"),
    };
    assert!(!running(b"k"));
    assert!(running(b"new"));
    writer.commit().unwrap();
    assert_eq!(newest(b"k"), Newest::Committed { live: false });
    assert_eq!(newest(b"new"), Newest::Committed { live: true });
    tx.begin_statement().unwrap();
    assert_eq!(newest(b"new"), Newest::Seen { live: true });
    tx.delete(&table, b"new").unwrap();
    assert_eq!(newest(b"new"), Newest::Seen { live: false });
}
