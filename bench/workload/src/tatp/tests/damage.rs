//! The checker finds each kind of damage.

use super::super::population::Population;
use super::super::schema::*;
use super::{loaded, violations};
use crate::engine::{Engine, Session, TxOptions};
use crate::reference::ReferenceSession;

/// Damages a fresh database and returns what the check tells.
fn damaged(damage: impl FnOnce(&mut ReferenceSession<'_>)) -> Vec<String> {
    let (engine, _) = loaded(40);
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    damage(&mut session);
    session.commit().unwrap();
    drop(session);
    violations(&engine)
}

#[test]
fn check_finds_each_kind_of_damage() {
    let person = Population::new(40, 42).person(7);
    let kind = person.special_facilities().next().unwrap().0[4];
    let absent = (1..=TYPES).find(|kind| !person.facilities.has(kind - 1));
    let no_access = (1..=TYPES).find(|kind| !person.accesses.has(kind - 1));
    let (absent, no_access) = (absent.unwrap(), no_access.unwrap());
    let flip = |session: &mut ReferenceSession<'_>, table, key: &[u8], at: usize| {
        let flipped = session.update(table, key, &[at..at + 1], |row| row[at] ^= 0x40);
        assert!(flipped.unwrap());
    };
    let forwarding = |kind, start, end: u8, to: &'static [u8; 15]| {
        move |session: &mut ReferenceSession<'_>| {
            let row = [&[end], &to[..]].concat();
            let key = forwarding_key(7, kind, start);
            session.upsert(CALL_FORWARDING, &key, &row).unwrap();
        }
    };
    type Damage<'d> = Box<dyn FnOnce(&mut ReferenceSession<'_>) + 'd>;
    let digits = b"000000000000001";
    let cases: Vec<(&[&str], Damage<'_>)> = vec![
        (
            &[
                "subscriber: 7 is missing",
                "subscriber_by_number: 000000000000007: there is no such subscriber",
                "access_info: 7/",
                "special_facility: 7/",
            ],
            Box::new(|session| assert!(session.delete(SUBSCRIBER, &subscriber_key(7)).unwrap())),
        ),
        (
            &["subscriber: 40 is missing"],
            Box::new(|session| assert!(session.delete(SUBSCRIBER, &subscriber_key(40)).unwrap())),
        ),
        (
            &["subscriber: 7 is not as it was loaded"],
            Box::new(|session| {
                flip(
                    session,
                    SUBSCRIBER,
                    &subscriber_key(7),
                    subscriber::LENGTH - 1,
                )
            }),
        ),
        (
            &["subscriber: 7: a flag above 1"],
            Box::new(|session| {
                flip(
                    session,
                    SUBSCRIBER,
                    &subscriber_key(7),
                    subscriber::BIT_1.range().start,
                )
            }),
        ),
        (
            &["subscriber: 7: a flag above 1, or no location"],
            Box::new(|session| {
                let set = |row: &mut [u8]| subscriber::VLR_LOCATION.set(row, 0);
                session
                    .update(SUBSCRIBER, &subscriber_key(7), &[0..4], set)
                    .unwrap();
            }),
        ),
        (
            &["subscriber: 41 was never loaded"],
            Box::new(|session| {
                session
                    .insert(SUBSCRIBER, &subscriber_key(41), &person.subscriber())
                    .unwrap()
            }),
        ),
        (
            &["subscriber: 4 byte key, 5 byte value"],
            Box::new(|session| {
                session
                    .upsert(SUBSCRIBER, &subscriber_key(9), b"short")
                    .unwrap()
            }),
        ),
        (
            &["subscriber_by_number: 000000000000007 is missing"],
            Box::new(|session| assert!(session.delete(SUBSCRIBER_BY_NUMBER, &number(7)).unwrap())),
        ),
        (
            &["subscriber_by_number: 000000000000007 is not as it was loaded"],
            Box::new(|session| {
                session
                    .upsert(SUBSCRIBER_BY_NUMBER, &number(7), &8_u32.to_le_bytes())
                    .unwrap()
            }),
        ),
        (
            &["subscriber_by_number: 000000000000041 was never loaded"],
            Box::new(|session| {
                session
                    .insert(SUBSCRIBER_BY_NUMBER, &number(41), &7_u32.to_le_bytes())
                    .unwrap()
            }),
        ),
        (
            &["access_info: 7/"],
            Box::new(|session| {
                let kind = person.access_infos().next().unwrap().0[4];
                assert!(session.delete(ACCESS_INFO, &typed_key(7, kind)).unwrap());
            }),
        ),
        (
            &["was never loaded"],
            Box::new(move |session| {
                session
                    .insert(
                        ACCESS_INFO,
                        &typed_key(7, no_access),
                        &[1; access_info::LENGTH],
                    )
                    .unwrap()
            }),
        ),
        (
            &["is not as it was loaded"],
            Box::new(|session| {
                flip(
                    session,
                    ACCESS_INFO,
                    &typed_key(7, person.access_infos().next().unwrap().0[4]),
                    0,
                )
            }),
        ),
        (
            &["special_facility: 7/", "is missing"],
            Box::new(move |session| {
                session
                    .upsert(
                        CALL_FORWARDING,
                        &forwarding_key(7, kind, 8),
                        b"\x09000000000000001",
                    )
                    .unwrap();
                assert!(
                    session
                        .delete(SPECIAL_FACILITY, &typed_key(7, kind))
                        .unwrap()
                );
            }),
        ),
        (
            &["is not as it was loaded"],
            Box::new(move |session| {
                flip(
                    session,
                    SPECIAL_FACILITY,
                    &typed_key(7, kind),
                    special_facility::IS_ACTIVE.range().start,
                )
            }),
        ),
        (
            &["there is no such special facility"],
            Box::new(forwarding(absent, 8, 9, digits)),
        ),
        (&["no type"], Box::new(forwarding(0, 8, 9, digits))),
        (
            &["hours 9 to 10"],
            Box::new(forwarding(kind, 9, 10, digits)),
        ),
        (
            &["hours 8 to 25"],
            Box::new(forwarding(kind, 8, 25, digits)),
        ),
        (&["hours 8 to 0"], Box::new(forwarding(kind, 8, 0, digits))),
        (
            &["is no number"],
            Box::new(forwarding(kind, 8, 9, b"00000000000000x")),
        ),
    ];
    for (number, (texts, damage)) in cases.into_iter().enumerate() {
        let found = damaged(damage);
        assert!(!found.is_empty(), "case {number}");
        assert!(
            texts
                .iter()
                .all(|text| found.iter().any(|line| line.contains(text))),
            "case {number}: {found:?}"
        );
    }
}
