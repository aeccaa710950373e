//! What a load makes, whole or in parts.

use super::super::check::{check, forwardings};
use super::super::client::Client;
use super::super::input::Choice;
use super::super::ledger::Ledger;
use super::super::population::{Population, load, load_by};
use super::super::schema::*;
use super::{assert_share, dump, empty, loaded, rows, violations};
use crate::engine::{Engine, EngineError};

#[test]
fn population_has_the_distributions_of_the_description() {
    let count = 20_000;
    let (engine, population) = loaded(count);
    let all = count as usize;
    let subscribers = rows(&engine, SUBSCRIBER);
    assert_eq!(subscribers.len(), all);
    for (key, row) in &subscribers {
        let s = u32::from_be_bytes(key[..].try_into().unwrap());
        assert_eq!(subscriber::SUB_NBR.get(row), number(s));
        assert!(row[subscriber::BITS.range()].iter().all(|&bit| bit < 2));
        assert!(row[subscriber::HEXES.range()].iter().all(|&hex| hex < 16));
        assert!(subscriber::MSC_LOCATION.get(row) > 0 && subscriber::VLR_LOCATION.get(row) > 0);
    }
    let set = subscribers
        .iter()
        .filter(|(_, row)| subscriber::BIT_1.get(row) == 1);
    assert_share("flags", set.count(), all, 0.5);
    let fifteen = subscribers
        .iter()
        .flat_map(|(_, row)| &row[subscriber::HEXES.range()]);
    assert_share(
        "the largest hex",
        fifteen.filter(|&&hex| hex == 15).count(),
        10 * all,
        1.0 / 16.0,
    );
    assert_eq!(rows(&engine, SUBSCRIBER_BY_NUMBER).len(), all);

    // Access infos and facilities: one to four, a quarter of the subscribers each, each type as often as another.
    for table in [ACCESS_INFO, SPECIAL_FACILITY] {
        let found = rows(&engine, table);
        let mut each = vec![0_usize; all];
        for (key, _) in &found {
            each[u32::from_be_bytes(key[..4].try_into().unwrap()) as usize - 1] += 1;
        }
        for number in 1..=4 {
            let have = each.iter().filter(|&&have| have == number).count();
            assert_share("how many", have, all, 0.25);
        }
        for kind in 1..=TYPES {
            let of_type = found.iter().filter(|(key, _)| key[4] == kind).count();
            assert_share("of a type", of_type, all, 0.625);
        }
    }
    let letters =
        |text: &[u8], length| text.len() == length && text.iter().all(u8::is_ascii_uppercase);
    for (_, row) in rows(&engine, ACCESS_INFO) {
        assert!(
            letters(access_info::DATA3.get(&row), 3) && letters(access_info::DATA4.get(&row), 5)
        );
    }
    let facilities = rows(&engine, SPECIAL_FACILITY);
    assert!(
        facilities
            .iter()
            .all(|(_, row)| letters(special_facility::DATA_B.get(row), 5))
    );
    let active = facilities
        .iter()
        .filter(|(_, row)| special_facility::IS_ACTIVE.get(row) == 1);
    assert_share("active", active.count(), facilities.len(), 0.85);

    // Call forwardings: none to three of a facility, a quarter each, with start times of their own.
    let forwardings = rows(&engine, CALL_FORWARDING);
    let mut each = std::collections::BTreeMap::new();
    for (key, row) in &forwardings {
        *each.entry(&key[..5]).or_insert(0_usize) += 1;
        let lasts = call_forwarding::END_TIME.get(row) - key[5];
        assert!(START_TIMES.contains(&key[5]) && (1..=8).contains(&lasts));
        let to = call_forwarding::NUMBERX.get(row);
        assert!(to.len() == 15 && to.iter().all(u8::is_ascii_digit));
    }
    assert_share(
        "no forwarding",
        facilities.len() - each.len(),
        facilities.len(),
        0.25,
    );
    for number in 1..=3 {
        let have = each.values().filter(|&&have| have == number).count();
        assert_share("forwardings", have, facilities.len(), 0.25);
    }
    for start in START_TIMES {
        let starts = forwardings
            .iter()
            .filter(|(key, _)| key[5] == start)
            .count();
        assert_share("starts", starts, facilities.len(), 0.5);
    }
    let longest = |row: &(Vec<u8>, Vec<u8>)| call_forwarding::END_TIME.get(&row.1) - row.0[5] == 8;
    let long = forwardings.iter().filter(|row| longest(row)).count();
    assert_share("eight hours", long, forwardings.len(), 0.125);

    let all_rows: usize = dump(&engine).iter().map(Vec::len).sum();
    assert!((all_rows as f64 / population.rows() as f64 - 1.0).abs() < 0.02);
}

#[test]
fn fresh_population_is_consistent_and_follows_from_its_seed() {
    let (engine, population) = loaded(500);
    assert!(population.is_complete());
    assert_eq!(violations(&engine), [""; 0]);
    let mut session = engine.open_session().unwrap();
    let there = forwardings(&mut session).unwrap();
    assert_eq!(there.count, rows(&engine, CALL_FORWARDING).len() as u64);
    assert_eq!(check(&mut session, |_| {}).unwrap().forwardings, there);
    // Loading what is loaded changes nothing, and another size is refused.
    let before = dump(&engine);
    load(&mut session, Population::new(500, 7), |_| {
        panic!("nothing to load")
    })
    .unwrap();
    assert!(dump(&engine) == before && dump(&loaded(500).0) == before);
    let refused = load(&mut session, Population::new(501, 42), |_| Ok(())).unwrap_err();
    assert!(matches!(refused, EngineError::Unusable(_)), "{refused}");
}

#[test]
fn interrupted_load_goes_on_and_ends_as_an_uninterrupted_one() {
    let engine = empty();
    let mut session = engine.open_session().unwrap();
    let mut tables = 0;
    // Five tables a batch: ends inside the second batch.
    let ended = load_by(&mut session, Population::new(250, 42), 100, &mut |_| {
        tables += 1;
        match tables {
            8 => Err(EngineError::Interrupted),
            _ => Ok(()),
        }
    });
    assert!(matches!(ended, Err(EngineError::Interrupted)));
    let half = Population::read(&mut session).unwrap().unwrap();
    assert_eq!((half.loaded, half.is_complete()), (100, false));
    assert!(matches!(
        check(&mut session, |_| {}),
        Err(EngineError::Unusable(_))
    ));
    let refused = Client::new(&half, Choice::uniform(250), 1, 1, &Ledger::default()).unwrap_err();
    assert!(refused.to_string().contains("only 100 of 250"), "{refused}");
    load(&mut session, Population::new(250, 99), |_| Ok(())).unwrap();
    drop(session);
    assert!(dump(&engine) == dump(&loaded(250).0));
}
