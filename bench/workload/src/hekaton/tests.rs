//! The workload on the reference engine.

use super::*;
use crate::engine::{Engine, Isolation, Session, TxOptions};
use crate::kv::key;
use crate::reference::{Reference, ReferenceSession};

const LEVELS: [Isolation; 2] = [Isolation::Snapshot, Isolation::ReadCommitted];

fn loaded(count: u64) -> Reference {
    let mut engine = Reference::new();
    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    assert_eq!(rows(&mut session).unwrap(), None);
    load(&mut session, count, |_| Ok(())).unwrap();
    assert_eq!(rows(&mut session).unwrap(), Some(count));
    drop(session);
    engine
}

fn mix(reads: usize, writes: usize, isolation: Isolation) -> Mix {
    Mix {
        reads,
        writes,
        read_only_share: 0.0,
        isolation,
    }
}

fn run(client: &mut Client<'_>, session: &mut ReferenceSession<'_>, steps: u64) -> u64 {
    let mut conflicts = 0;
    for _ in 0..steps {
        client.draw();
        while let Err(error) = client.attempt(session) {
            assert!(error.is_retryable(), "{error}");
            conflicts += 1;
            std::thread::yield_now();
        }
    }
    conflicts
}

/// Runs three clients at once; returns how often they lost a conflict.
fn together(engine: &Reference, count: u64, mix: Mix, stripes: Option<&Stripes>) -> u64 {
    std::thread::scope(|scope| {
        let client = |number| {
            move || {
                let mut session = engine.open_session().unwrap();
                let mut client = Client::new(count, 0.9, mix, 5, number).with_stripes(stripes);
                run(&mut client, &mut session, 300)
            }
        };
        let threads = [0, 1, 2].map(|number| scope.spawn(client(number)));
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    })
}

#[test]
fn sums_stay_at_every_level_whoever_meets_whom() {
    for isolation in LEVELS {
        for writes in [1, 2, 5] {
            let count = 40;
            let engine = loaded(count);
            together(&engine, count, mix(3, writes, isolation), None);
            let found = look(&mut engine.open_session().unwrap(), |_| {}).unwrap();
            let expected = Found {
                rows: count,
                balance: expected_balance(count),
                writes: 3 * 300 * writes as u64,
                wrong: 0,
            };
            assert_eq!(found, expected, "{isolation:?}, {writes} writes");
        }
    }
}

#[test]
fn who_takes_his_stripes_first_never_conflicts() {
    // A single stripe, and one for every hundred rows.
    for count in [40, 1_000] {
        let (engine, stripes) = (loaded(count), Stripes::new(count));
        let mix = mix(0, 8, Isolation::Snapshot);
        assert_eq!(together(&engine, count, mix, Some(&stripes)), 0);
        let found = look(&mut engine.open_session().unwrap(), |_| {}).unwrap();
        assert_eq!(found.writes, 3 * 300 * 8);
        assert_eq!(found.balance, expected_balance(count));
    }
}

#[test]
fn a_transaction_writes_as_many_rows_as_it_is_told_even_if_there_are_no_others() {
    let count = 6;
    let engine = loaded(count);
    let mut session = engine.open_session().unwrap();
    let mut client = Client::new(count, 3.0, mix(0, 6, Isolation::Snapshot), 1, 0);
    run(&mut client, &mut session, 50);
    let mut writes = Vec::new();
    session.begin(TxOptions::READ_ONLY).unwrap();
    for id in 0..count {
        let read = session.get_with(ROWS, &key(id), |row| account::WRITES.get(row));
        writes.push(read.unwrap().unwrap());
    }
    assert_eq!(writes, [50; 6]);
}

#[test]
fn share_of_readers_is_drawn_and_they_write_nothing() {
    let count = 50;
    for (share, least, most) in [(0.0, 0, 0), (0.25, 800, 1200), (1.0, 4000, 4000)] {
        let engine = loaded(count);
        let mut session = engine.open_session().unwrap();
        let mix = Mix {
            read_only_share: share,
            ..mix(2, 2, Isolation::Snapshot)
        };
        let mut client = Client::new(count, 0.0, mix, 7, 0);
        let mut readers = 0;
        for _ in 0..4000 {
            readers += u64::from(client.draw() == Kind::Read);
            client.attempt(&mut session).unwrap();
        }
        assert!((least..=most).contains(&readers), "{readers}");
        let found = look(&mut session, |_| {}).unwrap();
        assert_eq!(found.writes, 2 * (4000 - readers));
    }
    let mut client = Client::new(count, 0.0, mix(2, 0, Isolation::Snapshot), 7, 0);
    assert_eq!(client.draw(), Kind::Read, "who has nothing to write reads");
}

#[test]
fn long_readers_find_rows_that_are_gone_and_sums_that_are_wrong() {
    let count = 9_000;
    let engine = loaded(count);
    let mut session = engine.open_session().unwrap();
    for (first, length) in [(0, count), (0, 1), (count - 1, 1), (3_000, 5_000)] {
        assert!(long_read(&mut session, first, length, count, || true).unwrap());
    }
    let ended = long_read(&mut session, 0, count, count, || false);
    assert!(!ended.unwrap(), "who is stopped has not come to his end");
    assert!(long_read(&mut session, count - 1, 2, count, || true).is_err());

    session.begin(TxOptions::READ_WRITE).unwrap();
    let more = |row: &mut [u8]| account::BALANCE.change(row, |balance| balance + 1);
    assert!(session.update(ROWS, &key(7), &[0..8], more).unwrap());
    session.commit().unwrap();
    let error = long_read(&mut session, 0, count, count, || true).unwrap_err();
    assert!(error.to_string().contains("add up to"), "{error}");
    // A part of the table has no sum that is known.
    assert!(long_read(&mut session, 0, count - 1, count, || true).unwrap());

    session.begin(TxOptions::READ_WRITE).unwrap();
    session.delete(ROWS, &key(7)).unwrap();
    session.upsert(ROWS, &key(8), b"short").unwrap();
    session.commit().unwrap();
    assert!(long_read(&mut session, 0, 100, count, || true).is_err());
    assert!(long_read(&mut session, 8, 2, count, || true).is_err());
    let found = look(&mut session, |_| {}).unwrap();
    assert_eq!((found.rows, found.wrong), (count - 1, count - 8));
}
