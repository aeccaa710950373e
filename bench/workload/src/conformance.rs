//! What every engine must do before its figures mean anything: one suite for all of them.
//!
//! It panics where an engine does not keep what `engine` promises. Run it on an empty directory.

use crate::engine::{
    Direction, Engine, EngineError, Isolation, Session, Table, TableSpec, TxOptions,
};
use std::sync::Barrier;

const ROWS: Table = Table::at(0);
const OTHERS: Table = Table::at(1);
/// Nothing is written or read there before it is loaded.
const LOADED: Table = Table::at(2);
/// The same, and the load is rolled back and done again.
const AGAIN: Table = Table::at(3);

/// The tables of the suite.
pub const TABLES: &[TableSpec] = &[
    TableSpec {
        table: ROWS,
        name: "rows",
        is_queue: false,
    },
    TableSpec {
        table: OTHERS,
        name: "others",
        is_queue: false,
    },
    TableSpec {
        table: LOADED,
        name: "loaded",
        is_queue: false,
    },
    TableSpec {
        table: AGAIN,
        name: "again",
        is_queue: false,
    },
];

/// Runs the suite on engines that `open` opens: the second call finds what the first one's made durable.
///
/// # Panics
/// Where the engine does not do what it must.
pub fn check<E: Engine>(mut open: impl FnMut() -> E) {
    let mut engine = open();
    assert_eq!(
        names(&engine).unwrap_or_default(),
        [""; 0],
        "tables of nobody"
    );
    engine.ensure_tables(TABLES).expect("tables");
    {
        let mut session = engine.open_session().expect("a session");
        reads_and_writes(&mut session);
        order(&mut session);
        rolls_back(&mut session);
        // Where there are others, where there are none, and behind those.
        loads(&mut session, OTHERS, 0);
        loads(&mut session, LOADED, 0);
        loads(&mut session, LOADED, 1_000);
        // Where a load was begun and rolled back, in a table of nobody and behind others.
        loads_again(&mut session, AGAIN, 0);
        loads_again(&mut session, LOADED, 2_000);
    }
    snapshots_stay(&engine);
    no_update_is_lost(&engine, Isolation::Snapshot);
    engine.checkpoint().expect("a checkpoint");
    drop(engine);
    let mut engine = open();
    if let Some(names) = names(&engine) {
        let mut made: Vec<&str> = TABLES.iter().map(|spec| spec.name).collect();
        made.sort_unstable();
        assert_eq!(names, made, "what it says to hold");
    }
    engine.ensure_tables(TABLES).expect("tables that are there");
    let mut session = engine.open_session().expect("a session");
    begin(&mut session, TxOptions::READ_ONLY);
    assert_eq!(get(&mut session, ROWS, b"kept"), Some(b"for good".to_vec()));
    assert_eq!(loaded(&mut session, LOADED), 3_000, "what was loaded");
    assert_eq!(loaded(&mut session, AGAIN), 1_000, "and at the second try");
    session.commit().expect("the end of a reader");
}

/// The tables that an engine lists, in order, where it can.
fn names(engine: &impl Engine) -> Option<Vec<String>> {
    let mut names = engine.table_names().expect("the tables' names")?;
    names.sort_unstable();
    Some(names)
}

/// Runs what an engine must do besides that has [`Isolation::ReadCommitted`]. On an empty directory, too.
///
/// # Panics
/// Where the engine does not do what it must.
pub fn check_read_committed<E: Engine>(mut engine: E) {
    engine.ensure_tables(TABLES).expect("tables");
    let engine = &engine;
    let level = Isolation::ReadCommitted;
    let steps = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = engine.open_session().expect("a session");
            for options in [TxOptions::READ_ONLY, TxOptions::READ_WRITE] {
                begin(&mut reader, options.with_isolation(level));
                assert_eq!(get(&mut reader, ROWS, b"seen"), None);
                steps.wait();
                steps.wait();
                assert_eq!(get(&mut reader, ROWS, b"seen"), Some(b"1".to_vec()));
                let mut found = 0;
                let each = |_: &[u8], _: &[u8]| {
                    found += 1;
                    true
                };
                let scanned = reader.scan(ROWS, b"seen", Direction::Forward, each);
                scanned.expect("a scan");
                assert_eq!(found, 1, "a scan, too");
                if !options.read_only {
                    let change = |value: &mut [u8]| value[0] += 1;
                    let updated = reader.update(ROWS, b"seen", &[0..1], change);
                    assert!(updated.expect("no conflict with what is committed"));
                }
                reader.commit().expect("a commit");
                steps.wait();
                steps.wait();
            }
        });
        let mut writer = engine.open_session().expect("a session");
        let once = |writer: &mut E::Session<'_>, change: &dyn Fn(&mut E::Session<'_>)| {
            steps.wait();
            begin(writer, TxOptions::READ_WRITE);
            change(writer);
            writer.commit().expect("a commit");
            steps.wait();
        };
        let insert = |writer: &mut E::Session<'_>| {
            writer.insert(ROWS, b"seen", b"1").expect("an insert");
        };
        once(&mut writer, &insert);
        once(&mut writer, &|writer| {
            assert!(writer.delete(ROWS, b"seen").expect("a delete"));
        });
        once(&mut writer, &insert);
        once(&mut writer, &|writer| {
            assert_eq!(get(writer, ROWS, b"seen"), Some(b"2".to_vec()));
        });
    });
    no_update_is_lost(engine, level);
}

fn begin(session: &mut impl Session, options: TxOptions) {
    session.begin(options).expect("a transaction");
}

fn get(session: &mut impl Session, table: Table, key: &[u8]) -> Option<Vec<u8>> {
    session
        .get_with(table, key, <[u8]>::to_vec)
        .expect("a read")
}

fn reads_and_writes(session: &mut impl Session) {
    begin(session, TxOptions::READ_WRITE);
    assert_eq!(get(session, ROWS, b"a"), None);
    session.insert(ROWS, b"a", b"one").expect("an insert");
    assert_eq!(
        get(session, ROWS, b"a"),
        Some(b"one".to_vec()),
        "its own write"
    );
    assert_eq!(get(session, OTHERS, b"a"), None, "tables are apart");
    session.upsert(ROWS, b"empty", b"").expect("an empty value");
    session
        .upsert(ROWS, b"kept", b"for good")
        .expect("an upsert");
    session.commit().expect("a commit");

    begin(session, TxOptions::READ_WRITE);
    assert_eq!(get(session, ROWS, b"empty"), Some(Vec::new()));
    let mut out = b"before".to_vec();
    assert!(session.get(ROWS, b"a", &mut out).expect("a read"));
    assert_eq!(out, b"one");
    let change = |value: &mut [u8]| value[..2].copy_from_slice(b"TW");
    assert!(
        session
            .update(ROWS, b"a", &[0..2], change)
            .expect("an update")
    );
    assert_eq!(get(session, ROWS, b"a"), Some(b"TWe".to_vec()));
    assert!(
        !session
            .update(ROWS, b"nobody", &[0..1], |_| ())
            .expect("no row")
    );
    session
        .upsert(ROWS, b"a", b"longer than before")
        .expect("an upsert");
    assert_eq!(
        get(session, ROWS, b"a"),
        Some(b"longer than before".to_vec())
    );
    assert!(session.delete(ROWS, b"empty").expect("a delete"));
    assert!(!session.delete(ROWS, b"empty").expect("no row"));
    session.commit().expect("a commit");

    begin(session, TxOptions::READ_WRITE);
    let twice = session.insert(ROWS, b"a", b"again");
    assert!(
        matches!(twice, Err(EngineError::KeyExists(ROWS))),
        "{twice:?}"
    );
    session.rollback().expect("a rollback");
    begin(session, TxOptions::READ_ONLY);
    assert_eq!(
        get(session, ROWS, b"a"),
        Some(b"longer than before".to_vec())
    );
    session.commit().expect("a commit");
}

fn order(session: &mut impl Session) {
    let keys: [&[u8]; 6] = [b"", b"\0", b"a", b"a\0", b"b", b"\xff\xff"];
    begin(session, TxOptions::READ_WRITE);
    for key in keys.iter().rev().filter(|key| !key.is_empty()) {
        session.insert(OTHERS, key, key).expect("an insert");
    }
    session.commit().expect("a commit");
    for options in [
        TxOptions::READ_ONLY,
        TxOptions::READ_WRITE,
        TxOptions::ANALYTICAL,
    ] {
        begin(session, options);
        let mut found = |from: &[u8], direction, most: usize| {
            let mut rows: Vec<Vec<u8>> = Vec::new();
            let each = |key: &[u8], value: &[u8]| {
                assert_eq!(key, value);
                rows.push(key.to_vec());
                rows.len() < most
            };
            session.scan(OTHERS, from, direction, each).expect("a scan");
            rows
        };
        assert_eq!(
            found(b"", Direction::Forward, 99),
            keys[1..],
            "all, as byte strings"
        );
        assert_eq!(found(b"a\0", Direction::Forward, 99), keys[3..]);
        assert_eq!(found(b"aa", Direction::Forward, 1), [b"b"]);
        let backward: Vec<&[u8]> = vec![b"a\0", b"a", b"\0"];
        assert_eq!(found(b"aa", Direction::Backward, 99), backward);
        assert_eq!(
            found(b"b", Direction::Backward, 1),
            [b"b"],
            "the start is in"
        );
        assert!(found(b"\xff\xff\xff", Direction::Forward, 99).is_empty());
        session.rollback().expect("a rollback");
    }
}

fn rolls_back(session: &mut impl Session) {
    begin(session, TxOptions::READ_WRITE);
    session.upsert(ROWS, b"a", b"never").expect("an upsert");
    session.insert(ROWS, b"new", b"never").expect("an insert");
    assert!(session.delete(ROWS, b"kept").expect("a delete"));
    session.rollback().expect("a rollback");
    session.rollback().expect("one without a transaction");
    begin(session, TxOptions::READ_ONLY);
    assert_eq!(
        get(session, ROWS, b"a"),
        Some(b"longer than before".to_vec())
    );
    assert_eq!(get(session, ROWS, b"new"), None);
    assert_eq!(get(session, ROWS, b"kept"), Some(b"for good".to_vec()));
    session.commit().expect("a commit");
}

/// Loads a thousand rows behind as many as there are of them.
fn loads(session: &mut impl Session, table: Table, rows: u64) {
    begin_load(session, table, rows, 1_000);
    session.commit().expect("a commit");
    begin(session, TxOptions::READ_ONLY);
    assert_eq!(loaded(session, table), rows + 1_000);
    session.commit().expect("a commit");
}

/// Does so behind the same load that was rolled back half-way. It may have left its rows; the next one goes over them.
fn loads_again(session: &mut impl Session, table: Table, rows: u64) {
    begin_load(session, table, rows, 500);
    session.rollback().expect("a rollback");
    loads(session, table, rows);
}

fn begin_load(session: &mut impl Session, table: Table, rows: u64, more: u64) {
    begin(session, TxOptions::READ_WRITE);
    let mut number = rows;
    let next = |key: &mut Vec<u8>, value: &mut Vec<u8>| {
        key.clear();
        key.extend_from_slice(b"\xff\xff\xff");
        key.extend_from_slice(&number.to_be_bytes());
        value.clear();
        value.resize(100, number as u8);
        number += 1;
        number <= rows + more
    };
    assert_eq!(session.bulk_load(table, next).expect("a load"), more);
}

/// How many rows were loaded, each as it should be.
fn loaded(session: &mut impl Session, table: Table) -> u64 {
    let mut count = 0;
    let each = |_: &[u8], value: &[u8]| {
        assert_eq!(value, [count as u8; 100]);
        count += 1;
        true
    };
    session
        .scan(table, b"\xff\xff\xff", Direction::Forward, each)
        .expect("a scan");
    count
}

/// I4: a reader's snapshot, beside a writer that commits. Each in a thread of its own, as sessions are used.
fn snapshots_stay<E: Engine>(engine: &E) {
    let steps = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = engine.open_session().expect("a session");
            begin(&mut reader, TxOptions::READ_ONLY);
            assert_eq!(get(&mut reader, ROWS, b"shared"), None);
            steps.wait();
            steps.wait();
            assert_eq!(get(&mut reader, ROWS, b"shared"), None, "a snapshot stays");
            reader.commit().expect("the end of a reader");
            begin(&mut reader, TxOptions::READ_ONLY);
            assert_eq!(get(&mut reader, ROWS, b"shared"), Some(b"seen".to_vec()));
            reader.commit().expect("the end of a reader");
        });
        let mut writer = engine.open_session().expect("a session");
        steps.wait();
        begin(&mut writer, TxOptions::READ_WRITE);
        writer.insert(ROWS, b"shared", b"seen").expect("an insert");
        writer.commit().expect("a commit");
        steps.wait();
    });
}

/// Whatever an engine does about two that change one row, none of their changes is lost.
fn no_update_is_lost<E: Engine>(engine: &E, isolation: Isolation) {
    const ADDITIONS: u64 = 200;
    let mut session = engine.open_session().expect("a session");
    begin(&mut session, TxOptions::READ_WRITE);
    session
        .upsert(ROWS, b"sum", &0_u64.to_be_bytes())
        .expect("an upsert");
    session.commit().expect("a commit");
    drop(session);
    let add = || {
        let mut session = engine.open_session().expect("a session");
        for _ in 0..ADDITIONS {
            while let Err(error) = add_one(&mut session, isolation) {
                assert!(error.is_retryable(), "{error}");
                session.rollback().expect("a rollback");
                std::thread::yield_now();
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(add);
        scope.spawn(add);
    });
    let mut session = engine.open_session().expect("a session");
    begin(&mut session, TxOptions::READ_ONLY);
    let sum = get(&mut session, ROWS, b"sum");
    assert_eq!(
        sum,
        Some((2 * ADDITIONS).to_be_bytes().to_vec()),
        "additions were lost"
    );
    session.commit().expect("the end of a reader");
}

fn add_one(session: &mut impl Session, isolation: Isolation) -> crate::engine::Result<()> {
    let number = |sum: &[u8]| u64::from_be_bytes(sum.try_into().expect("eight bytes"));
    session.begin(TxOptions::READ_WRITE.with_isolation(isolation))?;
    if isolation == Isolation::ReadCommitted {
        // What was read by an operation before may have changed since; what an update sees has not.
        session.update(ROWS, b"sum", &[0..8], |sum| {
            let next = number(sum) + 1;
            sum.copy_from_slice(&next.to_be_bytes());
        })?;
    } else {
        let sum = session.get_with(ROWS, b"sum", number)?;
        let next = (sum.expect("a row") + 1).to_be_bytes();
        session.update(ROWS, b"sum", &[0..8], |sum| sum.copy_from_slice(&next))?;
    }
    session.commit()
}
