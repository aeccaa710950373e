//! Values that are read by chunks while they are replaced, deleted, collected and rolled back.

use crate::support::*;
use std::ops::ControlFlow;
use vellum::{Error, Isolation, Table, Transaction, TransactionOptions};

const LENGTH: usize = 200_000;

fn value(of: u8) -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 241) as u8 ^ of).collect()
}

/// Reads by chunks and calls `between` behind the first three.
fn read(
    tx: &Transaction,
    table: &Table,
    key: &[u8],
    mut between: impl FnMut(usize),
) -> vellum::Result<Option<Vec<u8>>> {
    let (mut all, mut chunks) = (Vec::new(), 0);
    let found = tx.get_chunks(table, key, |chunk| {
        assert!(!chunk.is_empty() && chunk.len() <= 4096);
        all.extend_from_slice(chunk);
        chunks += 1;
        if chunks <= 3 {
            between(chunks);
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(found.map(|_| all))
}

#[test]
fn chunks_are_of_one_version_while_others_replace_and_delete_it_and_collect() {
    for isolation in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let (_directory, database, table) = with_table(&small());
        database
            .retry(|tx| tx.insert(&table, b"k", &value(0)))
            .unwrap();
        let options = TransactionOptions::default().isolation(isolation);
        let tx = database.begin_with(options).unwrap();
        let other = |chunk: usize| {
            match chunk {
                1 => database.retry(|tx| tx.replace(&table, b"k", &value(1))),
                2 => database.retry(|tx| tx.delete(&table, b"k")),
                _ => database.retry(|tx| tx.upsert(&table, b"other", &value(2))),
            }
            .unwrap();
            // A statement of its own, which under read committed sees the newest.
            let now = tx.get(&table, b"k", <[u8]>::len).unwrap();
            let committed = isolation == Isolation::ReadCommitted;
            assert_eq!(now.is_none(), committed && chunk > 1);
            for _ in 0..3 {
                while database.step().unwrap() {}
            }
            // Pages that were given back are in use again.
            for round in 0..3 {
                database
                    .retry(|tx| tx.upsert(&table, &[round], &value(7)).map(drop))
                    .unwrap();
            }
        };
        let all = read(&tx, &table, b"k", other).unwrap().unwrap();
        assert!(all == value(0), "{isolation:?}");
        tx.commit().unwrap();
        assert!(database.verify().unwrap().is_sound());
    }
}

#[test]
fn a_value_that_is_rolled_back_while_it_is_read_is_an_error_and_others_are_read_on() {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| tx.insert(&table, b"old", &value(0)))
        .unwrap();
    let tx = database.begin().unwrap();
    let savepoint = tx.savepoint().unwrap();
    tx.upsert(&table, b"k", &value(1)).unwrap();
    let replaced = |chunk: usize| {
        if chunk == 2 {
            tx.rollback_to(&savepoint).unwrap();
            // The same pages, with other bytes.
            tx.upsert(&table, b"k", &value(2)).unwrap();
        }
    };
    let gone = read(&tx, &table, b"k", replaced);
    assert!(
        matches!(gone, Err(Error::InvalidArgument { .. })),
        "{gone:?}"
    );
    let kept = read(&tx, &table, b"old", |_| tx.rollback_to(&savepoint).unwrap());
    assert!(kept.unwrap().unwrap() == value(0));
    tx.commit().unwrap();
    assert!(database.verify().unwrap().is_sound());
}

#[test]
fn an_update_whose_change_rolls_the_value_back_finds_what_is_there_then() {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| tx.insert(&table, b"k", &value(0)))
        .unwrap();
    let tx = database.begin().unwrap();
    let savepoint = tx.savepoint().unwrap();
    tx.upsert(&table, b"k", &value(1)).unwrap();
    let mut times = 0;
    let updated = tx.update(&table, b"k", &[0..1], |bytes| {
        times += 1;
        if times == 1 {
            tx.rollback_to(&savepoint).unwrap();
        }
        bytes.fill(99);
    });
    assert!(updated.unwrap());
    assert_eq!(times, 2);
    let mut right = value(0);
    right[0] = 99;
    assert!(read(&tx, &table, b"k", |_| ()).unwrap().unwrap() == right);
}

#[test]
fn chunks_end_where_the_reader_breaks_and_short_values_are_one() {
    let (_directory, database, table) = with_table(&small());
    let tx = database.begin().unwrap();
    tx.insert(&table, b"empty", b"").unwrap();
    tx.insert(&table, b"short", b"abc").unwrap();
    tx.insert(&table, b"large", &value(0)).unwrap();
    let mut chunks = Vec::new();
    let mut ask = |key: &[u8], most: usize| {
        chunks.clear();
        let found = tx.get_chunks(&table, key, |chunk| {
            chunks.push(chunk.len());
            if chunks.len() == most {
                ControlFlow::Break(chunk[0])
            } else {
                ControlFlow::Continue(())
            }
        });
        (found.unwrap(), chunks.clone())
    };
    let on = Some(ControlFlow::Continue(()));
    assert_eq!(ask(b"none", 9), (None, vec![]));
    assert_eq!(ask(b"empty", 9), (on, vec![]));
    assert_eq!(ask(b"short", 9), (on, vec![3]));
    assert_eq!(ask(b"short", 1), (Some(ControlFlow::Break(b'a')), vec![3]));
    let (found, chunks) = ask(b"large", 2);
    assert_eq!(
        (found, chunks.len()),
        (Some(ControlFlow::Break(value(0)[chunks[0]])), 2)
    );
}

/// Symptom: `Corruption` of a sound database. Cause: the pages of a tree that was rolled back are gone, and were looked at again.
/// Guard: a void shape.
#[test]
fn callback_that_rolls_back_the_table_itself_is_told_so() {
    let (_directory, database, _) = with_table(&small());
    for length in [LENGTH, 20] {
        let value = vec![3; length];
        for update in [false, true] {
            let tx = database.begin().unwrap();
            let savepoint = tx.savepoint().unwrap();
            let table = tx.create_table("made").unwrap();
            tx.insert(&table, b"k", &value).unwrap();
            let back = || tx.rollback_to(&savepoint).unwrap();
            let refused = if update {
                tx.update(&table, b"k", &[0..1], |_| back()).map(drop)
            } else {
                let each = |_: &[u8]| {
                    back();
                    ControlFlow::<()>::Continue(())
                };
                tx.get_chunks(&table, b"k", each).map(drop)
            };
            // A short value is one chunk: nothing is read behind it.
            if update || length == LENGTH {
                let refused = refused.unwrap_err();
                assert!(
                    matches!(refused, Error::InvalidArgument { .. }),
                    "{refused}"
                );
            }
            assert!(tx.table("made").is_err());
            tx.commit().unwrap();
        }
    }
    assert!(database.verify().unwrap().is_sound());
}
