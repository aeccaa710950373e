//! TATP on the reference engine: population, transactions, concurrency, and a checker that finds each kind of damage.

use super::Kind;
use super::check::{check, forwardings};
use super::client::{Client, Outcome};
use super::input::{Choice, Input};
use super::ledger::Ledger;
use super::population::{Population, load};
use super::rates::{expected, judge};
use super::schema::*;
use crate::engine::{Direction, Engine, EngineError, Session, Table, TxOptions};
use crate::reference::{Reference, ReferenceSession};
use vellum_base::random::Random;

mod damage;
mod loading;

fn empty() -> Reference {
    let mut engine = Reference::new();
    engine.ensure_tables(TABLES).unwrap();
    engine
}

fn loaded(subscribers: u32) -> (Reference, Population) {
    let engine = empty();
    let wanted = Population::new(subscribers, 42);
    let mut session = engine.open_session().unwrap();
    let population = load(&mut session, wanted, |_| Ok(())).unwrap();
    drop(session);
    (engine, population)
}

fn seed() -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-workload");
    seed
}

fn rows(engine: &Reference, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_ONLY).unwrap();
    let mut rows = Vec::new();
    session
        .scan(table, &[], Direction::Forward, |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
    rows
}

fn dump(engine: &Reference) -> Vec<Vec<(Vec<u8>, Vec<u8>)>> {
    TABLES.iter().map(|spec| rows(engine, spec.table)).collect()
}

fn violations(engine: &Reference) -> Vec<String> {
    let findings = check(&mut engine.open_session().unwrap(), |_| {}).unwrap();
    assert_eq!(findings.count, findings.violations.len() as u64);
    findings.violations
}

/// Asserts a share within five standard deviations.
fn assert_share(what: &str, found: usize, of: usize, share: f64) {
    let (found, of) = (found as f64, of as f64);
    let chance = 5.0 * (share * (1.0 - share) / of).sqrt();
    assert!(
        (found / of - share).abs() <= chance,
        "{what}: {found} of {of}, {share} expected"
    );
}

/// Sets, runs and ends transactions one by one.
struct Runner<'e> {
    client: Client<'e>,
    session: ReferenceSession<'e>,
}

impl<'e> Runner<'e> {
    fn new(engine: &'e Reference, population: &Population, ledger: &'e Ledger) -> Self {
        let choice = Choice::uniform(population.subscribers);
        Self {
            client: Client::new(population, choice, 3, 0, ledger).unwrap(),
            session: engine.open_session().unwrap(),
        }
    }

    fn run(&mut self, input: Input) -> Outcome {
        self.client.set(input);
        let outcome = self.client.attempt(&mut self.session).unwrap();
        // Nothing is left open.
        self.session.begin(TxOptions::READ_ONLY).unwrap();
        self.session.rollback().unwrap();
        outcome
    }

    fn get(&mut self, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        self.session.begin(TxOptions::READ_ONLY).unwrap();
        let found = self.session.get_with(table, key, <[u8]>::to_vec).unwrap();
        self.session.rollback().unwrap();
        found
    }
}

#[test]
fn reads_return_the_rows_that_are_there_and_fail_without_one() {
    let (engine, population) = loaded(200);
    let ledger = Ledger::default();
    let mut runner = Runner::new(&engine, &population, &ledger);
    for s in 1..=200 {
        let person = population.person(s);
        assert_eq!(
            runner.run(Input::GetSubscriberData { s }),
            Outcome::Succeeded
        );
        assert_eq!(runner.client.row(), person.subscriber());
        for kind in 1..=TYPES {
            let outcome = runner.run(Input::GetAccessData { s, kind });
            match person.accesses.has(kind - 1) {
                true => {
                    assert_eq!(outcome, Outcome::Succeeded);
                    assert_eq!(runner.client.row(), person.access(kind));
                }
                false => assert_eq!(outcome, Outcome::Failed),
            }
        }
    }
}

#[test]
fn new_destinations_are_those_of_active_facilities_at_that_time() {
    let (engine, population) = loaded(60);
    let ledger = Ledger::default();
    let mut runner = Runner::new(&engine, &population, &ledger);
    let mut inactive = 0;
    for s in 1..=60 {
        let person = population.person(s);
        for kind in 1..=TYPES {
            let there = person.facilities.has(kind - 1);
            let active = there && special_facility::IS_ACTIVE.get(&person.facility(kind)) == 1;
            inactive += u32::from(there && !active);
            for start in START_TIMES {
                for end in 1..=END_TIME_MAX {
                    let mut wanted = Vec::new();
                    for (_, from) in person.forwarding_times().filter(|time| time.0 == kind) {
                        let row = person.forwarding(kind, from);
                        if active && from <= start && end < call_forwarding::END_TIME.get(&row) {
                            wanted.extend_from_slice(call_forwarding::NUMBERX.get(&row));
                        }
                    }
                    let input = Input::GetNewDestination {
                        s,
                        kind,
                        start,
                        end,
                    };
                    match wanted.is_empty() {
                        true => assert_eq!(runner.run(input), Outcome::Failed),
                        false => {
                            assert_eq!(runner.run(input), Outcome::Succeeded);
                            assert_eq!(runner.client.row(), wanted);
                        }
                    }
                }
            }
        }
    }
    assert!(inactive > 0, "a facility that is not active was asked for");
}

#[test]
fn updates_change_their_columns_only_and_a_failed_one_changes_nothing() {
    let (engine, population) = loaded(50);
    let ledger = Ledger::default();
    let mut runner = Runner::new(&engine, &population, &ledger);
    for s in 1..=50 {
        let person = population.person(s);
        let mut row = person.subscriber();
        for kind in 1..=TYPES {
            let bit = 1 - subscriber::BIT_1.get(&row);
            let data = special_facility::DATA_A
                .get(&person.facility(kind))
                .wrapping_add(1);
            let outcome = runner.run(Input::UpdateSubscriberData { s, kind, bit, data });
            let facility = runner.get(SPECIAL_FACILITY, &typed_key(s, kind));
            if person.facilities.has(kind - 1) {
                assert_eq!(outcome, Outcome::Succeeded);
                subscriber::BIT_1.set(&mut row, bit);
                let mut wanted = person.facility(kind);
                special_facility::DATA_A.set(&mut wanted, data);
                assert_eq!(facility.unwrap(), wanted);
            } else {
                assert_eq!((outcome, facility), (Outcome::Failed, None));
            }
            assert_eq!(runner.get(SUBSCRIBER, &subscriber_key(s)).unwrap(), row);
        }
        let location = s + 70_000;
        let moved = Input::UpdateLocation {
            number: number(s),
            location,
        };
        assert_eq!(runner.run(moved), Outcome::Succeeded);
        subscriber::VLR_LOCATION.set(&mut row, location);
        assert_eq!(runner.get(SUBSCRIBER, &subscriber_key(s)).unwrap(), row);
    }
    drop(runner);
    assert_eq!(violations(&engine), [""; 0]);
}

#[test]
fn call_forwardings_are_inserted_once_and_deleted_once_and_need_their_facility() {
    let (engine, population) = loaded(30);
    let ledger = Ledger::default();
    let mut runner = Runner::new(&engine, &population, &ledger);
    for s in 1..=30 {
        let person = population.person(s);
        for kind in 1..=TYPES {
            for start in START_TIMES {
                let key = forwarding_key(s, kind, start);
                let there = person.forwarding_times().any(|time| time == (kind, start));
                assert_eq!(runner.get(CALL_FORWARDING, &key).is_some(), there);
                let number = number(s);
                let (insert, delete) = (
                    Input::InsertCallForwarding {
                        number,
                        kind,
                        start,
                        end: 7,
                        to: *b"123456789012345",
                    },
                    Input::DeleteCallForwarding {
                        number,
                        kind,
                        start,
                    },
                );
                let of = |found| match found {
                    true => Outcome::Succeeded,
                    false => Outcome::Failed,
                };
                assert_eq!(runner.run(delete), of(there));
                assert_eq!(runner.run(delete), Outcome::Failed);
                assert_eq!(runner.get(CALL_FORWARDING, &key), None);
                let parent = person.facilities.has(kind - 1);
                assert_eq!(runner.run(insert), of(parent));
                assert_eq!(runner.run(insert), Outcome::Failed);
                let wanted = parent.then(|| b"\x07123456789012345".to_vec());
                assert_eq!(runner.get(CALL_FORWARDING, &key), wanted);
            }
        }
    }
    drop(runner);
    assert_eq!(violations(&engine), [""; 0]);
}

/// Runs `count` transactions; returns by kind how many there were and how many of them succeeded, and the conflicts.
fn run(
    client: &mut Client<'_>,
    session: &mut ReferenceSession<'_>,
    count: u32,
) -> ([[u64; 2]; 7], u64) {
    let (mut ended, mut conflicts) = ([[0; 2]; 7], 0);
    for _ in 0..count {
        let kind = client.draw() as usize;
        loop {
            match client.attempt(session) {
                Ok(outcome) => {
                    ended[kind][0] += 1;
                    ended[kind][1] += u64::from(outcome == Outcome::Succeeded);
                    break;
                }
                Err(error) if error.is_retryable() => conflicts += 1,
                Err(error) => panic!("{error}"),
            }
            std::thread::yield_now();
        }
    }
    (ended, conflicts)
}

#[test]
fn prop_shares_of_success_are_those_that_are_expected() {
    let (engine, population) = loaded(3_000);
    let mut session = engine.open_session().unwrap();
    for choice in [Choice::uniform(3_000), Choice::non_uniform(3_000)] {
        let ledger = Ledger::default();
        let mut client = Client::new(&population, choice, seed(), 0, &ledger).unwrap();
        let (ended, conflicts) = run(&mut client, &mut session, 60_000);
        assert_eq!(conflicts, 0);
        for (kind, [all, succeeded]) in Kind::ALL.into_iter().zip(ended) {
            println!(
                "{kind:?}: {succeeded} of {all}, {:?} expected",
                expected(kind)
            );
            assert_eq!(judge(kind, all, succeeded, &choice), None);
        }
    }
}

#[test]
fn the_share_of_new_destinations_grows_as_inserted_forwardings_replace_the_loaded() {
    let (engine, population) = loaded(4_000);
    let ledger = Ledger::default();
    let mut runner = Runner::new(&engine, &population, &ledger);
    let mut random = Random::new(8);
    let mut share = |runner: &mut Runner<'_>| {
        let mut found = 0;
        for _ in 0..40_000 {
            let input = Input::GetNewDestination {
                s: random.between(1, 4_000) as u32,
                kind: random.between(1, 4) as u8,
                start: START_TIMES[random.below(3) as usize],
                end: random.between(1, 24) as u8,
            };
            found += usize::from(runner.run(input) == Outcome::Succeeded);
        }
        found
    };
    let (fresh, replaced) = expected(Kind::GetNewDestination);
    assert_share("fresh", share(&mut runner), 40_000, fresh);
    let mut random = Random::new(9);
    for s in 1..=4_000 {
        for kind in 1..=TYPES {
            for start in START_TIMES {
                let number = number(s);
                runner.run(Input::DeleteCallForwarding {
                    number,
                    kind,
                    start,
                });
                if random.chance(1, 2) {
                    runner.run(Input::InsertCallForwarding {
                        number,
                        kind,
                        start,
                        end: random.between(1, 24) as u8,
                        to: [b'1'; 15],
                    });
                }
            }
        }
    }
    assert_share("replaced", share(&mut runner), 40_000, replaced);
}

#[test]
fn prop_concurrent_clients_leave_a_consistent_database_and_count_right() {
    let seed = seed();
    // Few subscribers: their transactions meet.
    let (engine, population) = loaded(20);
    let ledger = Ledger::default();
    let before = forwardings(&mut engine.open_session().unwrap()).unwrap();
    let ended = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (engine, ledger) = (&engine, &ledger);
                scope.spawn(move || {
                    let mut session = engine.open_session().unwrap();
                    let choice = Choice::non_uniform(20);
                    let mut client =
                        Client::new(&population, choice, seed, number, ledger).unwrap();
                    run(&mut client, &mut session, 4_000)
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.fold([0_u64; 7], |mut sums, (ended, conflicts)| {
            println!("{conflicts} conflicts");
            for (sum, [_, succeeded]) in sums.iter_mut().zip(ended) {
                *sum += succeeded;
            }
            sums
        })
    });
    let findings = check(&mut engine.open_session().unwrap(), |_| {}).unwrap();
    assert_eq!(findings.violations, [""; 0]);
    let inserted = ended[Kind::InsertCallForwarding as usize];
    let deleted = ended[Kind::DeleteCallForwarding as usize];
    assert!(inserted > 0 && deleted > 0);
    assert_eq!(
        findings.forwardings.count,
        before.count + inserted - deleted
    );
    assert_eq!(findings.forwardings, ledger.after(before));
}

#[test]
fn same_seed_same_database() {
    let run_once = || {
        let ledger = Ledger::default();
        let (engine, population) = loaded(100);
        let mut session = engine.open_session().unwrap();
        let mut client = Client::new(&population, Choice::non_uniform(100), 5, 1, &ledger).unwrap();
        run(&mut client, &mut session, 500);
        drop(session);
        dump(&engine)
    };
    assert!(run_once() == run_once());
}

#[test]
fn a_missing_subscriber_or_number_ends_the_client() {
    let (engine, population) = loaded(5);
    let mut session = engine.open_session().unwrap();
    session.begin(TxOptions::READ_WRITE).unwrap();
    session.delete(SUBSCRIBER, &subscriber_key(2)).unwrap();
    session.delete(SUBSCRIBER_BY_NUMBER, &number(3)).unwrap();
    let other = population.person(1).subscriber();
    session
        .upsert(SUBSCRIBER, &subscriber_key(4), &other)
        .unwrap();
    session.commit().unwrap();
    let ledger = Ledger::default();
    let mut client = Client::new(&population, Choice::uniform(5), 1, 0, &ledger).unwrap();
    let number = number(3);
    for input in [
        Input::GetSubscriberData { s: 2 },
        Input::GetSubscriberData { s: 4 },
        Input::UpdateSubscriberData {
            s: 2,
            kind: 1,
            bit: 0,
            data: 0,
        },
        Input::UpdateLocation {
            number,
            location: 1,
        },
        Input::InsertCallForwarding {
            number,
            kind: 1,
            start: 0,
            end: 1,
            to: number,
        },
        Input::DeleteCallForwarding {
            number,
            kind: 1,
            start: 0,
        },
    ] {
        client.set(input);
        let error = client.attempt(&mut session).unwrap_err();
        assert!(
            matches!(error, EngineError::WrongData { .. }),
            "{input:?}: {error}"
        );
    }
}
