//! One snapshot a statement, and statements that are run again.

use crate::support::{by_value, fresh, key, rows, small};
use std::sync::Arc;
use vellum::{Config, Database, Error, Isolation, Newest, Table, Transaction, TransactionOptions};
use vellum_io::MemoryDirectory;
use vellum_sync::test_point::TestPoints;

fn database() -> Database {
    let config = Config::default()
        .pool_bytes(4 << 20)
        .background_threads(false);
    Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap()
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

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

/// Its writer rolls back while it is looked at. Symptom: the row passed for one that was committed.
#[test]
fn regress_what_is_being_taken_back_is_never_told_to_be_committed() {
    for delete in [false, true] {
        let database = database();
        let table = database
            .retry(|tx| {
                let table = tx.create_table("t")?;
                tx.insert(&table, b"deleted", b"")?;
                Ok(table)
            })
            .unwrap();
        let (key, live): (&[u8], bool) = match delete {
            true => (b"deleted", false),
            false => (b"new", true),
        };
        let writer = database.begin().unwrap();
        match delete {
            true => assert!(writer.delete(&table, key).unwrap()),
            false => writer.insert(&table, key, b"").unwrap(),
        }
        let id = writer.id();
        let tx = database.begin_with(options()).unwrap();
        let points = TestPoints::new();
        let pause = points.pause("newest: between row and writer");
        let found = std::thread::scope(|scope| {
            let pause = &pause;
            let ends = scope.spawn(move || {
                pause.wait_reached();
                let undoes = std::thread::spawn(move || writer.rollback());
                // It has ended by then, unless it waits for the look.
                std::thread::sleep(std::time::Duration::from_millis(100));
                pause.release();
                undoes.join().unwrap().unwrap();
            });
            let entered = points.enter();
            let found = tx.newest(&table, key).unwrap();
            drop(entered);
            ends.join().unwrap();
            found
        });
        match found {
            Newest::Running { live: told, by } if by.transaction() == id => {
                assert_eq!(told, live);
                assert!(!database.is_running(&by));
            }
            other => panic!("{other:?}"),
        }
        let after = match delete {
            true => Newest::Seen { live: true },
            false => Newest::Nothing,
        };
        assert_eq!(tx.newest(&table, key).unwrap(), after);
    }
}

#[test]
fn the_last_key_is_told_whoever_sees_its_row() {
    let database = database();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    let tx = database.begin_with(options()).unwrap();
    let last = || tx.last_key(&table).unwrap();
    assert_eq!(last(), None);
    let writer = database.begin().unwrap();
    for number in 0..2000u32 {
        writer.insert(&table, &key(number), &[7; 50]).unwrap();
    }
    assert_eq!(last(), Some(key(1999).to_vec()));
    writer.commit().unwrap();
    let writer = database.begin().unwrap();
    for number in 0..2000u32 {
        assert!(writer.delete(&table, &key(number)).unwrap());
    }
    assert_eq!(writer.last_key(&table).unwrap(), Some(key(1999).to_vec()));
    writer.rollback().unwrap();
    // Leaves on the right that are empty.
    let writer = database.begin().unwrap();
    writer.insert(&table, b"\xff", b"").unwrap();
    assert_eq!(last(), Some(b"\xff".to_vec()));
    writer.rollback().unwrap();
    assert_eq!(last(), Some(key(1999).to_vec()));
}

/// A table of rows `k0` to `k9`, with a unique and another index where `indexed`; and two that are empty.
fn tables(database: &Database, indexed: bool) -> [Table; 3] {
    database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            if indexed {
                tx.create_index(&table, "unique", by_value(0, Some(2), true))?;
                tx.create_index(&table, "index", by_value(2, None, false))?;
            }
            for n in 0..10u8 {
                tx.insert(&table, &[b'k', n], &[n, n, 1])?;
            }
            Ok([table, tx.create_table("other")?, tx.create_table("own")?])
        })
        .unwrap()
}

/// All that a transaction sees of the database.
fn all(tx: &Transaction) -> Vec<(String, Rows, Vec<(String, usize)>)> {
    let names = tx.tables().unwrap();
    let described = names.into_iter().map(|name| {
        let table = tx.table(&name).unwrap();
        let indexes = tx.indexes(&table).unwrap().into_iter();
        let entries = indexes.map(|name| {
            let index = tx.index(&table, &name).unwrap();
            let mut cursor = tx.index_cursor(&index, ..).unwrap();
            let mut count = 0;
            while cursor.next().unwrap().is_some() {
                count += 1;
            }
            (name, count)
        });
        let entries = entries.collect();
        (name, rows(tx, &table), entries)
    });
    described.collect()
}

/// One way to meet a conflict in the middle of an operation of many steps.
struct Meeting {
    what: &'static str,
    indexed: bool,
    /// What another transaction does first, and keeps open.
    theirs: fn(&Transaction, &Table, &Table) -> vellum::Result<()>,
    /// What then conflicts after its first step.
    ours: fn(&Transaction, &Table, &Table) -> vellum::Result<()>,
}

const MEETINGS: &[Meeting] = &[
    Meeting {
        what: "the second entry of a row's two is taken",
        indexed: true,
        theirs: |tx, table, _| tx.insert(table, b"theirs", &[77, 77, 5]),
        ours: |tx, table, _| tx.insert(table, b"ours", &[77, 77, 6]),
    },
    Meeting {
        what: "a row changes its entry to one that is taken",
        indexed: true,
        theirs: |tx, table, _| tx.insert(table, b"theirs", &[77, 77, 5]),
        ours: |tx, table, _| tx.upsert(table, &[b'k', 3], &[77, 77, 6, 7]).map(drop),
    },
    Meeting {
        what: "the same in place",
        indexed: true,
        theirs: |tx, table, _| tx.insert(table, b"theirs", &[77, 77, 5]),
        ours: |tx, table, _| {
            tx.update(table, &[b'k', 3], &[0..2], |value| value[..2].fill(77))
                .map(drop)
        },
    },
    Meeting {
        what: "a large value whose entry is taken",
        indexed: true,
        theirs: |tx, table, _| tx.insert(table, b"theirs", &[77, 77, 5]),
        ours: |tx, table, _| {
            let mut value = vec![1; 300];
            value[..2].fill(77);
            value.resize(300, 2);
            tx.insert(table, b"ours", &value)
        },
    },
    Meeting {
        what: "a large value on a row that somebody holds",
        indexed: false,
        theirs: |tx, table, _| tx.replace(table, &[b'k', 3], b"theirs").map(drop),
        ours: |tx, table, _| tx.upsert(table, &[b'k', 3], &[9; 50_000]).map(drop),
    },
    Meeting {
        what: "rows are loaded, and one is somebody's",
        indexed: false,
        theirs: |tx, table, _| tx.insert(table, &[b'k', 50], b"theirs"),
        ours: |tx, table, _| {
            let mut next = 40u8;
            tx.bulk_load(table, |key, value| {
                key.extend_from_slice(&[b'k', next]);
                value.extend_from_slice(b"ours");
                next += 1;
                next <= 60
            })
            .map(drop)
        },
    },
    Meeting {
        what: "a tree is loaded into a table that somebody has written to",
        indexed: false,
        theirs: |tx, _, other| tx.insert(other, &[b'k', 50], b"theirs"),
        ours: |tx, _, other| {
            let mut next = 40u8;
            tx.bulk_load(other, |key, value| {
                key.extend_from_slice(&[b'k', next]);
                value.resize(if next.is_multiple_of(7) { 9000 } else { 5 }, next);
                next += 1;
                next <= 60
            })
            .map(drop)
        },
    },
    Meeting {
        what: "an index is made of rows of which one is somebody's",
        indexed: false,
        theirs: |tx, table, _| tx.replace(table, &[b'k', 7], b"theirs").map(drop),
        ours: |tx, table, _| {
            tx.create_index(table, "new", by_value(0, Some(2), false))
                .map(drop)
        },
    },
    Meeting {
        what: "an index goes from a table that somebody changes",
        indexed: true,
        theirs: |tx, table, _| {
            tx.create_index(table, "theirs", by_value(0, Some(1), false))
                .map(drop)
        },
        ours: |tx, table, _| tx.drop_index(table, "index"),
    },
    Meeting {
        what: "a table goes that somebody changes",
        indexed: true,
        theirs: |tx, table, _| tx.drop_index(table, "index"),
        ours: |tx, _, _| tx.drop_table("t"),
    },
    Meeting {
        what: "a table is made that somebody makes",
        indexed: false,
        theirs: |tx, _, _| tx.create_table("new").map(drop),
        ours: |tx, _, _| tx.create_table("new").map(drop),
    },
];

#[test]
fn an_operation_that_meets_a_conflict_in_its_middle_leaves_nothing() {
    for meeting in MEETINGS {
        for isolation in [
            Isolation::Statement,
            Isolation::ReadCommitted,
            Isolation::Snapshot,
        ] {
            for theirs_commits in [false, true] {
                meet(meeting, isolation, theirs_commits);
            }
        }
    }
}

fn meet(meeting: &Meeting, isolation: Isolation, theirs_commits: bool) {
    let what = format!("{}, {isolation:?}, {theirs_commits}", meeting.what);
    let (_directory, database) = fresh(&small());
    let [table, other, own] = tables(&database, meeting.indexed);
    let tx = database
        .begin_with(TransactionOptions::default().isolation(isolation))
        .unwrap();
    tx.insert(&own, b"before", b"").unwrap();
    let theirs = database.begin().unwrap();
    (meeting.theirs)(&theirs, &table, &other).unwrap();
    let before = all(&tx);
    let theirs = if theirs_commits && isolation != Isolation::ReadCommitted {
        theirs.commit().unwrap();
        None
    } else {
        Some(theirs)
    };
    let conflict = (meeting.ours)(&tx, &table, &other).unwrap_err();
    assert!(matches!(conflict, Error::Conflict), "{what}: {conflict}");
    if isolation == Isolation::Statement {
        assert_eq!(all(&tx), before, "{what}");
        tx.insert(&own, b"after", b"").unwrap();
        tx.commit().unwrap();
    } else {
        let over = tx.commit().unwrap_err();
        assert!(
            matches!(over, Error::TransactionOver { .. }),
            "{what}: {over}"
        );
    }
    drop(theirs);
    while database.step().unwrap() {}
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{what}: {:#?}", report.findings);
    assert_eq!(report.pages.pending, 0, "{what}");
}

#[test]
fn looking_several_keys_up_is_one_statement_at_every_level() {
    // More than are gone ahead for together.
    const KEYS: u32 = 100;
    let levels = [
        Isolation::Snapshot,
        Isolation::ReadCommitted,
        Isolation::Statement,
    ];
    for level in levels {
        let (_directory, database) = fresh(&small());
        let table = database
            .retry(|tx| {
                let table = tx.create_table("t")?;
                for number in 0..KEYS {
                    tx.insert(&table, &key(number), b"old")?;
                }
                Ok(table)
            })
            .unwrap();
        let options = TransactionOptions::default().isolation(level);
        let tx = database.begin_with(options).unwrap();
        tx.replace(&table, &key(KEYS - 1), b"own").unwrap();
        let keys: Vec<[u8; 4]> = (0..KEYS).map(key).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let mut found = Vec::new();
        tx.multi_get(&table, &keys, |at, value| {
            if at == 0 {
                // Others commit, the transaction itself writes, the table goes: all of it after the statement began.
                database
                    .retry(|other| {
                        for number in 1..KEYS / 2 {
                            other.replace(&table, &key(number), b"new")?;
                        }
                        other.delete(&table, &key(KEYS / 2)).map(drop)
                    })
                    .unwrap();
                tx.replace(&table, &key(KEYS - 2), b"later").unwrap();
                // Reading anew is seeing anew, under read committed; the statement goes on with what it saw.
                let seen = tx.get(&table, &key(1), <[u8]>::to_vec).unwrap().unwrap();
                let newest = level == Isolation::ReadCommitted;
                assert_eq!(seen, if newest { b"new" } else { b"old" });
            }
            found.push((at, value.map(<[u8]>::to_vec)));
        })
        .unwrap();
        let expected: Vec<_> = (0..KEYS as usize)
            .map(|at| {
                let own = at == KEYS as usize - 1;
                (
                    at,
                    Some(if own {
                        b"own".to_vec()
                    } else {
                        b"old".to_vec()
                    }),
                )
            })
            .collect();
        assert_eq!(found, expected, "{level:?}");
    }
}

#[test]
fn looking_several_keys_up_goes_on_in_a_table_that_is_dropped_meanwhile() {
    let (_directory, database) = fresh(&small());
    let table = database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            for number in 0..50 {
                tx.insert(&table, &key(number), b"v")?;
            }
            Ok(table)
        })
        .unwrap();
    let options = TransactionOptions::default().isolation(Isolation::ReadCommitted);
    let tx = database.begin_with(options).unwrap();
    let keys: Vec<[u8; 4]> = (0..50).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut found = 0;
    tx.multi_get(&table, &keys, |at, value| {
        if at == 0 {
            database.retry(|other| other.drop_table("t")).unwrap();
            while database.step().unwrap() {}
        }
        found += u32::from(value == Some(b"v"));
    })
    .unwrap();
    assert_eq!(found, 50);
    assert!(matches!(
        tx.multi_get(&table, &keys, |_, _| ()),
        Err(Error::NoSuchTable { .. })
    ));
}

#[test]
fn what_is_read_leaves_out_own_writes_that_it_is_told_not_to_see() {
    let database = database();
    let transaction = database.begin_with(options()).unwrap();
    let table = transaction.create_table("t").unwrap();
    for key in [b"a", b"b", b"c"] {
        transaction.insert(&table, key, b"old").unwrap();
    }
    let before = transaction.own_writes();
    transaction.replace(&table, b"a", b"new").unwrap();
    transaction.delete(&table, b"b").unwrap();
    transaction.insert(&table, b"d", b"new").unwrap();
    let rows = |transaction: &vellum::Transaction| {
        let mut cursor = transaction.cursor(&table, ..).unwrap();
        let mut rows = String::new();
        while let Some((key, value)) = cursor.next().unwrap() {
            let found = transaction.get(&table, key, <[u8]>::to_vec).unwrap();
            assert_eq!(found.as_deref(), Some(value));
            rows += &format!("{}={} ", key[0] as char, String::from_utf8_lossy(value));
        }
        rows
    };
    assert_eq!(rows(&transaction), "a=new c=old d=new ");
    let all = transaction.see_own_writes(before);
    assert_eq!(all, vellum::OwnWrites::ALL);
    assert_eq!(rows(&transaction), "a=old b=old c=old ");
    assert_eq!(transaction.count(&table, ..).unwrap(), 3);
    assert_eq!(transaction.see_own_writes(all), before);
    assert_eq!(rows(&transaction), "a=new c=old d=new ");
}
