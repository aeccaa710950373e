//! The workload on the reference engine.

use super::*;
use crate::engine::{Engine, EngineError, Session, TxOptions};
use crate::reference::Reference;

fn loaded(rows: u64, size: usize) -> Reference {
    let mut engine = Reference::new();
    engine.ensure_tables(TABLES).unwrap();
    let mut session = engine.open_session().unwrap();
    assert_eq!(look(&mut session, size).unwrap(), Found::default());
    load(&mut session, rows, size, || Ok(())).unwrap();
    drop(session);
    engine
}

#[test]
fn queue_moves_and_keeps_its_length() {
    let engine = loaded(10, 40);
    let mut session = engine.open_session().unwrap();
    let before = look(&mut session, 40).unwrap();
    assert_eq!((before.rows, before.next, before.wrong), (10, 10, 0));
    let tail = Tail::new(before.next);
    let mut client = Client::new(&tail, 40);
    for _ in 0..25 {
        client.draw();
        client.attempt(&mut session).unwrap();
    }
    drop(client);
    let after = look(&mut session, 40).unwrap();
    assert_eq!((after.rows, after.next, after.wrong), (10, 35, 0));
    assert_eq!(after.sum, (25..35).sum::<u64>());
    assert_eq!(after.sum, before.sum.wrapping_add(tail.sum_growth()));
    assert_eq!(look(&mut session, 41).unwrap().wrong, 10);
}

#[test]
fn concurrent_clients_delete_every_row_once() {
    let engine = loaded(5, 16);
    let tail = Tail::new(5);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut session = engine.open_session().unwrap();
                let mut client = Client::new(&tail, 16);
                for _ in 0..200 {
                    client.draw();
                    while let Err(error) = client.attempt(&mut session) {
                        assert!(error.is_retryable(), "{error}");
                    }
                }
            });
        }
    });
    let mut session = engine.open_session().unwrap();
    let after = look(&mut session, 16).unwrap();
    assert_eq!((after.rows, after.wrong), (5, 0));
    assert_eq!(after.sum, 10_u64.wrapping_add(tail.sum_growth()));
}

#[test]
fn lost_deletion_and_empty_queue_are_found() {
    let engine = loaded(3, 8);
    let mut session = engine.open_session().unwrap();
    let tail = Tail::new(3);
    let mut client = Client::new(&tail, 8);
    client.draw();
    client.attempt(&mut session).unwrap();
    // Brings back the row that was deleted, and takes another in its place.
    session.begin(TxOptions::READ_WRITE).unwrap();
    let mut value = [0; 8];
    write_value(&mut value, 0, 0);
    session.insert(QUEUE, &key(0), &value).unwrap();
    assert!(session.delete(QUEUE, &key(2)).unwrap());
    session.commit().unwrap();
    drop(client);
    let after = look(&mut session, 8).unwrap();
    assert_eq!((after.rows, after.wrong), (3, 0));
    assert_ne!(after.sum, 3_u64.wrapping_add(tail.sum_growth()));

    session.begin(TxOptions::READ_WRITE).unwrap();
    session.insert(QUEUE, &[0], b"").unwrap();
    session.commit().unwrap();
    assert_eq!(look(&mut session, 8).unwrap().wrong, 1);
    let mut client = Client::new(&tail, 8);
    client.draw();
    let error = client.attempt(&mut session).unwrap_err();
    assert!(
        matches!(error, EngineError::WrongData { .. }),
        "the smallest key is no number"
    );
}
