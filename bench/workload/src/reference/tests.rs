//! The engine that tests trust is tested itself.

use super::*;

const T: Table = Table::at(0);

fn engine() -> Reference {
    let mut engine = Reference::new();
    engine
        .ensure_tables(&[TableSpec {
            table: T,
            name: "t",
            is_queue: false,
        }])
        .unwrap();
    engine
}

fn value(session: &mut ReferenceSession<'_>, key: &[u8]) -> Option<Vec<u8>> {
    session.get_with(T, key, <[u8]>::to_vec).unwrap()
}

#[test]
fn reader_keeps_its_snapshot_and_second_writer_gets_a_conflict() {
    let engine = engine();
    let (mut a, mut b) = (
        engine.open_session().unwrap(),
        engine.open_session().unwrap(),
    );
    a.begin(TxOptions::READ_WRITE).unwrap();
    a.insert(T, b"k", b"1").unwrap();
    a.commit().unwrap();
    a.begin(TxOptions::READ_WRITE).unwrap();
    b.begin(TxOptions::READ_WRITE).unwrap();
    assert!(a.update(T, b"k", &[0..1], |v| v[0] = b'2').unwrap());
    assert_eq!(value(&mut a, b"k").unwrap(), b"2");
    assert_eq!(value(&mut b, b"k").unwrap(), b"1");
    assert!(b.delete(T, b"k").unwrap_err().is_retryable());
    a.commit().unwrap();
    assert_eq!(value(&mut b, b"k").unwrap(), b"1");
    assert!(b.upsert(T, b"k", b"3").unwrap_err().is_retryable());
    b.rollback().unwrap();
    b.begin(TxOptions::READ_ONLY).unwrap();
    assert_eq!(value(&mut b, b"k").unwrap(), b"2");
}

#[test]
fn rollback_leaves_nothing_and_commit_prunes() {
    let engine = engine();
    let mut a = engine.open_session().unwrap();
    for round in 0..10_u8 {
        a.begin(TxOptions::READ_WRITE).unwrap();
        a.upsert(T, b"kept", &[round]).unwrap();
        a.commit().unwrap();
        a.begin(TxOptions::READ_WRITE).unwrap();
        a.insert(T, b"gone", b"x").unwrap();
        assert!(a.delete(T, b"kept").unwrap());
        assert_eq!(value(&mut a, b"kept"), None);
        a.rollback().unwrap();
    }
    assert_eq!(engine.versions(), 1);
    a.begin(TxOptions::READ_WRITE).unwrap();
    assert!(matches!(
        a.insert(T, b"kept", b""),
        Err(EngineError::KeyExists(T))
    ));
    assert!(a.delete(T, b"kept").unwrap());
    a.commit().unwrap();
    assert_eq!(engine.versions(), 0);
}

#[test]
fn scans_go_both_ways_and_stop_when_told() {
    let engine = engine();
    let mut a = engine.open_session().unwrap();
    a.begin(TxOptions::READ_WRITE).unwrap();
    for key in [b"a", b"c", b"e"] {
        a.insert(T, key, key).unwrap();
    }
    let mut seen = Vec::new();
    let mut collect = |from: &[u8], direction, most: usize| {
        seen.clear();
        a.scan(T, from, direction, |key, _| {
            seen.push(key[0]);
            seen.len() < most
        })
        .unwrap();
        seen.clone()
    };
    assert_eq!(collect(b"b", Direction::Forward, 9), b"ce");
    assert_eq!(collect(b"d", Direction::Backward, 9), b"ca");
    assert_eq!(collect(b"c", Direction::Backward, 1), b"c");
    assert_eq!(collect(b"f", Direction::Forward, 9), b"");
}

#[test]
#[should_panic(expected = "outside its ranges")]
fn update_outside_its_ranges_is_caught() {
    let engine = engine();
    let mut a = engine.open_session().unwrap();
    a.begin(TxOptions::READ_WRITE).unwrap();
    a.insert(T, b"k", b"12").unwrap();
    let _ = a.update(T, b"k", &[1..2], |v| v[0] = 0);
}

#[test]
fn the_reference_does_what_every_engine_must_at_both_levels() {
    let kept = Reference::new();
    crate::conformance::check(|| kept.clone());
    crate::conformance::check_read_committed(Reference::new());
}
