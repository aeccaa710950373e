//! The workload on the reference engine.

use super::*;
use crate::engine::{Engine, Session, TxOptions};
use crate::reference::Reference;
use crate::zipf::Keys;

fn loaded(rows: u64, size: usize, order: Order) -> Reference {
    let mut engine = Reference::new();
    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    assert_eq!(shape(&mut session).unwrap(), None);
    load(&mut session, rows, size, order, |_| Ok(())).unwrap();
    assert_eq!(shape(&mut session).unwrap(), Some((rows, size)));
    drop(session);
    engine
}

#[test]
fn every_order_loads_every_row_once() {
    for (rows, size) in [(1, 100), (2, 0), (1000, 3), (1023, 16), (5000, 100)] {
        for order in [Order::Sorted, Order::Shuffled, Order::Inserted] {
            let engine = loaded(rows, size, order);
            let mut session = engine.open_session().unwrap();
            let found = verify(&mut session, size).unwrap();
            assert_eq!(
                found,
                Scanned {
                    rows,
                    updates: 0,
                    wrong: 0
                },
                "{order:?}"
            );
            assert_eq!(scan(&mut session, rows, |_| true).unwrap(), rows);
            assert!(scan(&mut session, rows + 1, |_| true).is_err());
        }
    }
}

/// Has so many threads do so many steps of each mix.
fn update_together(engine: &Reference, rows: u64, sizes: Sizes, (threads, steps): (u64, u64)) {
    for mix in [Mix::Update, Mix::ReadModifyWrite, Mix::Read] {
        std::thread::scope(|scope| {
            for number in 0..threads {
                scope.spawn(move || {
                    let mut client = Client::new(Keys::new(rows, 0.9), sizes, mix, 1, number);
                    let mut session = engine.open_session().unwrap();
                    for _ in 0..steps {
                        client.draw();
                        while let Err(error) = client.attempt(&mut session) {
                            assert!(error.is_retryable(), "{error}");
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn concurrent_updates_are_all_counted() {
    let (rows, size) = (20, 32);
    let engine = loaded(rows, size, Order::Sorted);
    let (threads, steps) = (3, 300);
    update_together(&engine, rows, size.into(), (threads, steps));
    let found = verify(&mut engine.open_session().unwrap(), size).unwrap();
    assert_eq!(
        found,
        Scanned {
            rows,
            updates: 2 * threads * steps,
            wrong: 0
        }
    );
}

#[test]
fn values_whose_sizes_vary_are_counted_and_checked_as_others() {
    let (rows, threads, steps) = (20, 3_u64, 300);
    let sizes = Sizes::within(&(16..=48));
    let engine = loaded(rows, 48, Order::Sorted);
    update_together(&engine, rows, sizes, (threads, steps));
    let mut session = engine.open_session().unwrap();
    let found = verify(&mut session, sizes).unwrap();
    let updates = 2 * threads * steps;
    assert_eq!((found.updates, found.wrong), (updates, 0));
    let met: std::collections::BTreeSet<_> = (1..2000).map(|n| sizes.of(7, n)).collect();
    assert!(met.into_iter().eq(16..=48), "every size");
    let narrower = Sizes::within(&(16..=47));
    assert!(verify(&mut session, narrower).unwrap().wrong > 0);
}

#[test]
fn share_of_reads_leaves_the_rest_to_the_mix() {
    let (rows, size, steps) = (50, 32, 4000_u64);
    for (share, least, most) in [(0.0, 0, 0), (0.25, 800, 1200), (1.0, steps, steps)] {
        let engine = loaded(rows, size, Order::Sorted);
        let mut session = engine.open_session().unwrap();
        let mut client = Client::new(Keys::new(rows, 0.0), size, Mix::Update, 7, 0);
        client = client.with_read_share(share);
        let mut reads = 0;
        for _ in 0..steps {
            reads += u64::from(client.draw());
            client.attempt(&mut session).unwrap();
        }
        assert!((least..=most).contains(&reads), "{reads} of {steps}");
        let found = verify(&mut session, size).unwrap();
        assert_eq!((found.updates, found.wrong), (steps - reads, 0));
    }
}

#[test]
fn ranges_are_read_whole_and_checked() {
    let (rows, size) = (100, 20);
    let engine = loaded(rows, size, Order::Sorted);
    let mut session = engine.open_session().unwrap();
    for (first, length) in [(0, 1), (0, 100), (99, 1), (40, 20)] {
        assert_eq!(scan_range(&mut session, first, length).unwrap(), length);
    }
    // Behind the last row, over a gap, and where a row holds another's value.
    assert!(scan_range(&mut session, 99, 2).is_err());
    session.begin(TxOptions::READ_WRITE).unwrap();
    session.delete(ROWS, &key(50)).unwrap();
    let mut other = vec![0; size];
    write_value(&mut other, 4, 0);
    session.upsert(ROWS, &key(70), &other).unwrap();
    session.commit().unwrap();
    for (first, length) in [(45, 10), (50, 1), (65, 10)] {
        assert!(scan_range(&mut session, first, length).is_err(), "{first}");
    }
    assert_eq!(scan_range(&mut session, 51, 19).unwrap(), 19);
}

#[test]
fn foreign_missing_and_damaged_rows_are_found() {
    let (rows, size) = (10, 40);
    let engine = loaded(rows, size, Order::Sorted);
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    let damage = |value: &mut [u8]| value[39] ^= 1;
    assert!(session.update(ROWS, &key(3), &[39..40], damage).unwrap());
    session.delete(ROWS, &key(7)).unwrap();
    let mut other = vec![0; size];
    write_value(&mut other, 4, 0);
    session.upsert(ROWS, &key(5), &other).unwrap();
    session.commit().unwrap();
    let found = verify(&mut session, size).unwrap();
    // Row 3 is damaged, 5 another's, and 8 and 9 stand where 7 and 8 must.
    assert_eq!((found.rows, found.wrong), (9, 4));
    for (id, wrong) in [(5, "another row"), (7, "missing")] {
        let keys = Keys::new(rows, 0.0);
        let mut client = Client::new(keys, size, Mix::Read, 1, 1);
        client.id = id;
        let error = client.attempt(&mut session).unwrap_err();
        assert!(
            error.to_string().contains(wrong) && !error.is_retryable(),
            "{error}"
        );
    }
}
