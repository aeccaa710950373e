//! Callbacks that use their own transaction, or its database: everything that they may do works, and what pulls the ground from under the
//! operation that runs them is a usage error, never a conflict with themselves.

use crate::support::{by_value, small, value_of, with_table};
use std::cell::Cell;
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;
use vellum::{Database, Error, Isolation, Table, Transaction, TransactionOptions};
use vellum_io::{Directory, MemoryDirectory};

const ISOLATIONS: [Isolation; 3] = [
    Isolation::Snapshot,
    Isolation::ReadCommitted,
    Isolation::Statement,
];

/// In a row, and outside of it.
const LENGTHS: [usize; 2] = [20, 20_000];

fn refused<T: std::fmt::Debug>(result: vellum::Result<T>, says: &str) {
    match result {
        Err(Error::InvalidArgument { what }) if what.contains(says) => {}
        other => panic!("{other:?}, not {says:?}"),
    }
}

fn begin(database: &Database, isolation: Isolation) -> Transaction {
    let options = TransactionOptions::default().isolation(isolation);
    database.begin_with(options).unwrap()
}

/// A table "t" with an index "i" and two rows, "k" and "other".
fn with_rows(length: usize) -> (Arc<dyn Directory>, Database, Table) {
    let (directory, database, table) = with_table(&small());
    database
        .retry(|tx| {
            tx.create_index(&table, "i", by_value(0, Some(1), false))?;
            tx.insert(&table, b"k", &vec![1; length])?;
            tx.insert(&table, b"other", &vec![2; length])
        })
        .unwrap();
    (directory, database, table)
}

/// Symptom: `Conflict` although nobody else is there, and `retry` ran a thousand times. Cause: the shape that the callback made was taken
/// for somebody's. Guard: a newer shape of one's own is a usage error.
#[test]
fn regress_an_update_whose_callback_changes_its_table_is_a_usage_error_at_once() {
    type Change = fn(&Transaction, &Table);
    let changes: [(&str, Change); 5] = [
        ("drop", |tx, _| tx.drop_table("t").unwrap()),
        ("drop and make", |tx, _| {
            tx.drop_table("t").unwrap();
            let again = tx.create_table("t").unwrap();
            tx.insert(&again, b"k", b"again").unwrap();
        }),
        ("make an index", |tx, table| {
            tx.create_index(table, "j", by_value(1, Some(2), false))
                .map(drop)
                .unwrap();
        }),
        ("drop an index", |tx, table| {
            tx.drop_index(table, "i").unwrap()
        }),
        ("drop, deep inside", |tx, table| {
            let inner = tx.update(table, b"other", &[0..1], |_| tx.drop_table("t").unwrap());
            refused(inner, "by the callback");
        }),
    ];
    for length in LENGTHS {
        for isolation in ISOLATIONS {
            for (name, change) in changes {
                let (_directory, database, table) = with_rows(length);
                let mut tries = 0;
                let options = TransactionOptions::default().isolation(isolation);
                let result = database.retry_with(options, |tx| {
                    tries += 1;
                    tx.update(&table, b"k", &[0..1], |bytes| {
                        change(tx, &table);
                        bytes[0] = 9;
                    })
                });
                refused(result, "by the callback");
                assert_eq!(tries, 1, "{name} {isolation:?}");
                // The transaction stays usable, and keeps what the callback did.
                let tx = begin(&database, isolation);
                let result = tx.update(&table, b"k", &[0..1], |_| change(&tx, &table));
                refused(result, "by the callback");
                let dropped = name.starts_with("drop") && name != "drop an index";
                assert_eq!(tx.get(&table, b"k", |_| ()).is_err(), dropped, "{name}");
                if !dropped {
                    assert_eq!(value_of(&tx, &table, b"k").unwrap(), vec![1; length]);
                    assert!(tx.update(&table, b"k", &[0..1], |b| b[0] = 8).unwrap());
                }
                tx.commit().unwrap();
                assert!(database.verify().unwrap().is_sound(), "{name}");
            }
        }
    }
}

#[test]
fn an_update_whose_callback_changes_its_table_and_takes_that_back_goes_on() {
    for length in LENGTHS {
        let (_directory, database, table) = with_rows(length);
        let tx = database.begin().unwrap();
        let updated = tx.update(&table, b"k", &[0..1], |bytes| {
            let savepoint = tx.savepoint().unwrap();
            tx.drop_table("t").unwrap();
            tx.rollback_to(&savepoint).unwrap();
            tx.delete(&table, b"k").unwrap();
            tx.rollback_to(&savepoint).unwrap();
            bytes[0] = 9;
        });
        assert!(updated.unwrap());
        assert_eq!(value_of(&tx, &table, b"k").unwrap()[0], 9);
        tx.commit().unwrap();
        assert!(database.verify().unwrap().is_sound());
    }
}

/// Symptom: the update never came back. Cause: it ran its callback again as long as the row was another one than it had read.
#[test]
fn regress_an_update_whose_callback_writes_the_row_is_a_usage_error_and_ends() {
    for length in LENGTHS {
        for isolation in ISOLATIONS {
            let (_directory, database, table) = with_rows(length);
            let tx = begin(&database, isolation);
            let mut runs = 0u8;
            let upserts = tx.update(&table, b"k", &[0..1], |_| {
                runs += 1;
                tx.upsert(&table, b"k", &vec![runs; length]).unwrap();
            });
            refused(upserts, "a row was written by the callback");
            assert_eq!(runs, 1);
            let updates = tx.update(&table, b"k", &[0..1], |_| {
                assert!(tx.update(&table, b"k", &[1..2], |b| b[1] += 1).unwrap());
            });
            refused(updates, "a row was written by the callback");
            let mut right = vec![1; length];
            right[1] = 2;
            assert!(value_of(&tx, &table, b"k").unwrap() == right);
            let deletes = tx.update(&table, b"k", &[0..1], |_| {
                assert!(tx.delete(&table, b"k").unwrap());
            });
            refused(deletes, "a row was written by the callback");
            assert!(value_of(&tx, &table, b"k").is_none());
            // Any other row is none of its business.
            let others = tx.update(&table, b"other", &[0..1], |bytes| {
                tx.upsert(&table, b"new", b"v").unwrap();
                tx.create_table("made").map(drop).unwrap();
                bytes[0] = 7;
            });
            assert!(others.unwrap());
            assert_eq!(value_of(&tx, &table, b"other").unwrap()[0], 7);
            tx.commit().unwrap();
            assert!(database.verify().unwrap().is_sound());
        }
    }
}

#[test]
fn a_conflict_with_somebody_else_in_a_callback_stays_a_conflict() {
    for length in LENGTHS {
        let (_directory, database, table) = with_rows(length);
        let tx = database.begin().unwrap();
        let lost = tx.update(&table, b"k", &[0..1], |_| {
            // It writes, too, so that the row is looked at.
            tx.upsert(&table, b"new", b"v").unwrap();
            database
                .retry(|other| other.upsert(&table, b"k", b"theirs"))
                .unwrap();
        });
        assert!(matches!(lost, Err(Error::Conflict)), "{lost:?}");
        drop(tx);
        // Read committed: it runs again on what they wrote.
        let tx = begin(&database, Isolation::ReadCommitted);
        let mut runs = 0;
        let updated = tx.update(&table, b"k", &[0..1], |bytes| {
            runs += 1;
            tx.upsert(&table, b"new", &[runs]).unwrap();
            if runs == 1 {
                database
                    .retry(|other| other.upsert(&table, b"k", b"again"))
                    .unwrap();
            }
            bytes[0] = b'A';
        });
        assert!(updated.unwrap());
        assert_eq!(
            (runs, value_of(&tx, &table, b"k").unwrap()),
            (2, b"Again".to_vec())
        );
    }
}

#[test]
fn a_statement_or_a_shared_snapshot_does_not_begin_in_the_callback_of_a_write() {
    let (_directory, database, table) = with_rows(20);
    let tx = begin(&database, Isolation::Statement);
    let savepoint = tx.savepoint().unwrap();
    let try_all = || {
        refused(tx.share().map(drop), "sharing a snapshot in the callback");
        refused(tx.begin_statement(), "the begin of a statement in the");
        refused(tx.restart_statement(&savepoint), "the begin of a statement");
    };
    let updated = tx.update(&table, b"k", &[0..1], |bytes| {
        try_all();
        bytes[0] = 5;
    });
    assert!(updated.unwrap());
    let empty = tx.create_table("empty").unwrap();
    let loaded = tx.bulk_load(&empty, |_, _| {
        try_all();
        false
    });
    assert_eq!(loaded.unwrap(), 0);
    // A callback that panics leaves neither behind.
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        tx.update(&table, b"k", &[0..1], |_| panic!("of the callback"))
    }));
    assert!(panics.is_err());
    tx.share().unwrap();
    tx.begin_statement().unwrap();
    tx.commit().unwrap();
}

#[test]
fn every_callback_may_use_the_whole_database() {
    let (_directory, database, table) = with_rows(20_000);
    let free = database.retry(|tx| tx.create_table("free")).unwrap();
    let calls = Cell::new(0u8);
    let use_all = || {
        calls.set(calls.get() + 1);
        database.sync().unwrap();
        database.checkpoint().unwrap();
        while database.step().unwrap() {}
        database.truncate().unwrap();
        assert!(database.verify().unwrap().is_sound());
        database
            .backup_to(Arc::new(MemoryDirectory::new()))
            .unwrap();
        assert!(!database.holders().unwrap().is_empty());
        database.versions().unwrap();
        assert!(database.statistics().commits_hardened > 0);
        // Another transaction, with DDL of its own.
        database
            .retry(|tx| {
                tx.upsert(&free, &[calls.get()], &vec![3; 20_000])?;
                tx.create_table("gone")?;
                tx.drop_table("gone")
            })
            .unwrap();
    };
    for isolation in ISOLATIONS {
        let tx = begin(&database, isolation);
        let before = calls.get();
        tx.get(&table, b"k", |_| use_all()).unwrap().unwrap();
        let chunks = tx.get_chunks(&table, b"k", |_| {
            use_all();
            ControlFlow::Break(())
        });
        assert_eq!(chunks.unwrap(), Some(ControlFlow::Break(())));
        let keys: [&[u8]; 2] = [b"k", b"none"];
        tx.multi_get(&table, &keys, |_, _| use_all()).unwrap();
        let mut cursor = tx.cursor(&table, ..).unwrap();
        assert_eq!(cursor.batch(|_, _| use_all()).unwrap(), 2);
        drop(cursor);
        assert!(
            tx.update(&table, b"k", &[0..1], |bytes| {
                use_all();
                bytes[0] += 1;
            })
            .unwrap()
        );
        let name = format!("loaded {isolation:?}");
        let loaded = tx.create_table(&name).unwrap();
        let mut row = 0;
        let rows = tx.bulk_load(&loaded, |key, value| {
            row += 1;
            if row % 100 == 2 {
                use_all();
            }
            key.extend_from_slice(&u32::to_be_bytes(row));
            value.extend_from_slice(&[1; 300]);
            row <= 300
        });
        assert_eq!(rows.unwrap(), 300);
        assert_eq!(calls.get() - before, 1 + 1 + 2 + 2 + 1 + 3);
        tx.commit().unwrap();
    }
    assert!(database.verify().unwrap().is_sound());
}

/// Callbacks that read may take away what they read: the operation goes on with what it saw.
#[test]
fn a_reading_callback_may_drop_the_table_and_roll_it_back() {
    for length in LENGTHS {
        for isolation in ISOLATIONS {
            let (_directory, database, table) = with_rows(length);
            let keys: [&[u8]; 2] = [b"k", b"other"];
            let tx = begin(&database, isolation);
            let mut seen = Vec::new();
            tx.multi_get(&table, &keys, |at, value| {
                if at == 0 {
                    tx.drop_table("t").unwrap();
                    while database.step().unwrap() {}
                }
                seen.push(value.unwrap()[0]);
            })
            .unwrap();
            assert_eq!(seen, [1, 2]);
            assert!(matches!(
                tx.get(&table, b"k", |_| ()),
                Err(Error::NoSuchTable { .. })
            ));
            drop(tx);
            let tx = begin(&database, isolation);
            let mut cursor = tx.cursor(&table, ..).unwrap();
            let mut rows = 0;
            while cursor
                .batch(|_, _| {
                    rows += 1;
                    if rows == 1 {
                        tx.drop_table("t").unwrap();
                    }
                })
                .unwrap()
                > 0
            {}
            assert_eq!(rows, 2);
            drop(cursor);
            drop(tx);
            // Made by the transaction itself, and rolled back while it is read.
            let tx = begin(&database, isolation);
            let savepoint = tx.savepoint().unwrap();
            let made = tx.create_table("made").unwrap();
            tx.insert(&made, b"k", &vec![1; length]).unwrap();
            tx.insert(&made, b"other", &vec![2; length]).unwrap();
            let gone = tx.multi_get(&made, &keys, |_, _| tx.rollback_to(&savepoint).unwrap());
            assert!(matches!(gone, Err(Error::NoSuchTable { .. })), "{gone:?}");
            tx.commit().unwrap();
            assert!(database.verify().unwrap().is_sound());
        }
    }
}

/// What a callback of a cursor does to the transaction holds from the next row on: rows of a savepoint that it rolled back are
/// not handed over, writes of its own are not seen, a transaction that is over says so.
#[test]
fn a_cursors_callback_may_roll_back_what_the_cursor_is_about_to_return() {
    for isolation in ISOLATIONS {
        for back in [false, true] {
            let (_directory, database, table) = with_rows(20);
            let tx = begin(&database, isolation);
            let savepoint = tx.savepoint().unwrap();
            for number in 0..20_u8 {
                tx.insert(&table, &[b'm', number], &[3; 20]).unwrap();
            }
            let mut cursor = tx.cursor(&table, ..).unwrap();
            let mut seen = Vec::new();
            let each = |key: &[u8], _: &[u8]| {
                seen.push(key.to_vec());
                tx.upsert(&table, &[b'n', seen.len() as u8], &[4; 20])
                    .unwrap();
                if seen.len() == 5 {
                    tx.rollback_to(&savepoint).unwrap();
                }
                ControlFlow::<()>::Continue(())
            };
            let ended = match back {
                false => cursor.try_for_each(each),
                true => cursor.try_for_each_back(each),
            };
            assert!(ended.unwrap().is_continue());
            // "k", four of the savepoint, "other"; or "other", four, "k".
            let mut ends = [seen[0].clone(), seen[5].clone()];
            ends.sort();
            assert_eq!(ends, [b"k".to_vec(), b"other".to_vec()]);
            assert_eq!(seen.len(), 6);
            drop(cursor);
            let mut cursor = tx.cursor(&table, ..).unwrap();
            let mut rows = 0;
            let broken = cursor.try_for_each(|key, _| {
                rows += 1;
                match key {
                    b"k" => ControlFlow::Break("found"),
                    _ => ControlFlow::Continue(()),
                }
            });
            assert_eq!((broken.unwrap().break_value(), rows), (Some("found"), 1));
            assert_eq!(cursor.prev().unwrap(), None);
            assert!(cursor.next().unwrap().is_some());
            drop(cursor);
            // A conflict in the middle: it ends a transaction, but with `Statement` the statement only.
            let other = database.begin().unwrap();
            other.upsert(&table, b"taken", &[5; 20]).unwrap();
            let mut cursor = tx.cursor(&table, ..).unwrap();
            let mut rows = 0;
            let ended = cursor.try_for_each(|_, _| {
                rows += 1;
                let taken = tx.upsert(&table, b"taken", &[6; 20]);
                assert!(matches!(taken, Err(Error::Conflict)), "{taken:?}");
                ControlFlow::<()>::Continue(())
            });
            match isolation {
                Isolation::Statement => {
                    assert_eq!((ended.unwrap().is_continue(), rows), (true, 3))
                }
                _ => {
                    let over = matches!(ended, Err(Error::TransactionOver { .. }));
                    assert_eq!((over, rows), (true, 1), "{ended:?}");
                }
            }
            drop(cursor);
            drop((tx, other));
            assert!(database.verify().unwrap().is_sound());
        }
    }
}

/// A range that uses the transaction when it is asked for its ends.
struct Curious<'t>(&'t Transaction, &'t Table);

impl RangeBounds<&'static [u8]> for Curious<'_> {
    fn start_bound(&self) -> Bound<&&'static [u8]> {
        self.0.upsert(self.1, b"asked", b"v").unwrap();
        Bound::Unbounded
    }

    fn end_bound(&self) -> Bound<&&'static [u8]> {
        self.0.upsert(self.1, b"asked", b"w").unwrap();
        Bound::Unbounded
    }
}

#[test]
fn a_range_that_writes_when_it_is_asked_is_read_with_what_it_wrote() {
    let (_directory, database, table) = with_rows(20);
    let tx = database.begin().unwrap();
    assert_eq!(tx.count(&table, Curious(&tx, &table)).unwrap(), 3);
    tx.commit().unwrap();
}
