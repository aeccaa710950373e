//! Whether a database is one that the transactions can have left.
//!
//! Checked, in one snapshot: every row and key has its length, keys ascend; subscribers, their numbers, access infos and special
//! facilities are exactly those that were loaded, with every byte that no transaction changes; what one changes is in its
//! range; every call forwarding belongs to a special facility that is there, starts and ends at an hour that it can, and
//! names a number; every access info and facility belongs to a subscriber that is there.
//!
//! Not checked here: whether acknowledged transactions are there. Which call forwardings are there is returned, for whoever knows
//! what was inserted and deleted ([`super::ledger`]).
//!
//! Keeps a byte a subscriber.

use super::ledger::Forwardings;
use super::population::{Person, Population, Set};
use super::schema::*;
use crate::engine::{Direction, EngineError, Result, Session, Table, TxOptions};

/// How many violations are told in full.
const VIOLATIONS_TOLD: usize = 100;
/// Of the numbers that are noted of a subscriber, the one that says that it is there; those below are types of facilities,
/// less one.
const THERE: u8 = TYPES;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The first hundred violations.
    pub violations: Vec<String>,
    /// How many there are.
    pub count: u64,
    /// Rows that were read.
    pub rows: u64,
    /// Call forwardings.
    pub forwardings: Forwardings,
}

impl Findings {
    fn add(&mut self, table: Table, detail: impl FnOnce() -> String) {
        self.count += 1;
        if self.violations.len() < VIOLATIONS_TOLD {
            let table = TABLES[table.position()].name.trim_start_matches("tatp_");
            self.violations.push(format!("{table}: {}", detail()));
        }
    }
}

/// Checks everything; `progress` gets numbers of rows.
///
/// # Errors
/// Whatever the engine reports; [`EngineError::Unusable`] if the load is not complete.
pub fn check<S: Session>(session: &mut S, mut progress: impl FnMut(u64)) -> Result<Findings> {
    let population = Population::read(session)?
        .ok_or_else(|| EngineError::Unusable("the data directory holds no TATP".to_owned()))?;
    if !population.is_complete() {
        return Err(EngineError::Unusable(format!(
            "only {} of {} subscribers are loaded",
            population.loaded, population.subscribers
        )));
    }
    session.begin(TxOptions::READ_ONLY)?;
    let mut checker = Checker {
        session,
        population,
        findings: Findings::default(),
        there: vec![Set::default(); population.subscribers as usize + 1],
    };
    let checked = checker.run(&mut progress);
    let findings = checker.findings;
    session.rollback()?;
    checked.map(|()| findings)
}

/// Which call forwardings are there.
///
/// # Errors
/// Whatever the engine reports; [`EngineError::WrongData`] for a key that is none.
pub fn forwardings<S: Session>(session: &mut S) -> Result<Forwardings> {
    let (mut there, mut wrong) = (Forwardings::default(), false);
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(CALL_FORWARDING, &[], Direction::Forward, |key, _| {
        match key.try_into() {
            Ok(key) => there.add(key),
            Err(_) => wrong = true,
        }
        true
    });
    session.rollback()?;
    scanned?;
    if wrong {
        return Err(EngineError::WrongData {
            table: CALL_FORWARDING,
            what: "a key is not of six bytes".to_owned(),
        });
    }
    Ok(there)
}

struct Checker<'s, S> {
    session: &'s mut S,
    population: Population,
    findings: Findings,
    /// What of each subscriber was found: itself ([`THERE`]), and its special facilities.
    there: Vec<Set>,
}

impl<S: Session> Checker<'_, S> {
    fn run(&mut self, progress: &mut impl FnMut(u64)) -> Result<()> {
        let parts = [
            Self::subscribers,
            Self::numbers,
            Self::access_infos,
            Self::special_facilities,
            Self::call_forwardings,
        ];
        for part in parts {
            let before = self.findings.rows;
            part(self)?;
            progress(self.findings.rows - before);
        }
        Ok(())
    }

    fn subscribers(&mut self) -> Result<()> {
        let population = self.population;
        let loaded = (1..=population.subscribers)
            .map(|s| (subscriber_key(s), population.person(s).subscriber()));
        // Where it is and its first flag.
        let changing = subscriber::BIT_1.end();
        let there = &mut self.there;
        compare(
            self.session,
            &mut self.findings,
            SUBSCRIBER,
            loaded,
            changing,
            |findings, key, row| {
                let s = u32::from_be_bytes(*key);
                note(there, s, THERE);
                if subscriber::BIT_1.get(row) > 1 || subscriber::VLR_LOCATION.get(row) == 0 {
                    findings.add(SUBSCRIBER, || {
                        format!("{}: a flag above 1, or no location", place(key))
                    });
                }
            },
        )
    }

    fn numbers(&mut self) -> Result<()> {
        let loaded = (1..=self.population.subscribers).map(|s| (number(s), s.to_le_bytes()));
        let there = &self.there;
        compare(
            self.session,
            &mut self.findings,
            SUBSCRIBER_BY_NUMBER,
            loaded,
            0,
            |findings, key, row| {
                let s = u32::from_le_bytes(*row);
                has_parent(findings, there, SUBSCRIBER_BY_NUMBER, key, s, THERE);
            },
        )
    }

    fn access_infos(&mut self) -> Result<()> {
        let population = self.population;
        let persons = (1..=population.subscribers).map(|s| population.person(s));
        let loaded = persons.flat_map(Person::access_infos);
        let there = &self.there;
        compare(
            self.session,
            &mut self.findings,
            ACCESS_INFO,
            loaded,
            0,
            |findings, key, _| {
                let s = subscriber_of(key);
                has_parent(findings, there, ACCESS_INFO, key, s, THERE);
            },
        )
    }

    fn special_facilities(&mut self) -> Result<()> {
        let population = self.population;
        let persons = (1..=population.subscribers).map(|s| population.person(s));
        let loaded = persons.flat_map(Person::special_facilities);
        let there = &mut self.there;
        compare(
            self.session,
            &mut self.findings,
            SPECIAL_FACILITY,
            loaded,
            special_facility::DATA_A.end(),
            |findings, key, _| {
                let s = subscriber_of(key);
                has_parent(findings, there, SPECIAL_FACILITY, key, s, THERE);
                if let kind @ 1..=TYPES = key[4] {
                    note(there, s, kind - 1);
                }
            },
        )
    }

    fn call_forwardings(&mut self) -> Result<()> {
        let there = &self.there;
        rows(
            self.session,
            &mut self.findings,
            CALL_FORWARDING,
            |findings, key: &[u8; 6], row: &[u8; call_forwarding::LENGTH]| {
                findings.forwardings.add(key);
                let (s, start) = (subscriber_of(key), key[5]);
                match key[4] {
                    kind @ 1..=TYPES => {
                        has_parent(findings, there, CALL_FORWARDING, key, s, kind - 1);
                    }
                    _ => findings.add(CALL_FORWARDING, || format!("{}: no type", place(key))),
                }
                let end = call_forwarding::END_TIME.get(row);
                if !START_TIMES.contains(&start) || !(1..=END_TIME_MAX).contains(&end) {
                    findings.add(CALL_FORWARDING, || {
                        format!("{}: hours {start} to {end}", place(key))
                    });
                }
                let to = call_forwarding::NUMBERX.padded(row);
                if !to.iter().all(u8::is_ascii_digit) {
                    findings.add(CALL_FORWARDING, || {
                        format!("{}: {to:?} is no number", place(key))
                    });
                }
            },
        )?;
        Ok(())
    }
}

/// Notes that something of subscriber `s` was found.
fn note(there: &mut [Set], s: u32, what: u8) {
    // One that was never loaded is a violation already.
    if let Some(found) = there.get_mut(s as usize) {
        found.add(what);
    }
}

/// A row is there only with the one that it belongs to.
fn has_parent(
    findings: &mut Findings,
    there: &[Set],
    table: Table,
    key: &[u8],
    s: u32,
    parent: u8,
) {
    if !there.get(s as usize).is_some_and(|found| found.has(parent)) {
        findings.add(table, || {
            let parent = match parent {
                THERE => "subscriber",
                _ => "special facility",
            };
            format!("{}: there is no such {parent}", place(key))
        });
    }
}

/// Hands every row of `table` to `each`, and checks lengths and order. Returns how many there are.
fn rows<S: Session, const K: usize, const V: usize>(
    session: &mut S,
    findings: &mut Findings,
    table: Table,
    mut each: impl FnMut(&mut Findings, &[u8; K], &[u8; V]),
) -> Result<u64> {
    let (mut count, mut last) = (0, None);
    session.scan(table, &[], Direction::Forward, |key, value| {
        count += 1;
        match (<&[u8; K]>::try_from(key), <&[u8; V]>::try_from(value)) {
            (Ok(key), Ok(value)) => {
                if last.is_some_and(|last| last >= *key) {
                    findings.add(table, || format!("{} is out of order", place(key)));
                }
                last = Some(*key);
                each(findings, key, value);
            }
            _ => findings.add(table, || {
                format!("{} byte key, {} byte value", key.len(), value.len())
            }),
        }
        true
    })?;
    findings.rows += count;
    Ok(count)
}

/// Checks that a table holds the rows of `loaded`, which ascend, and no others; their first `changing` bytes may differ. Hands
/// every row to `each`.
fn compare<S: Session, const K: usize, const V: usize>(
    session: &mut S,
    findings: &mut Findings,
    table: Table,
    loaded: impl Iterator<Item = ([u8; K], [u8; V])>,
    changing: usize,
    mut each: impl FnMut(&mut Findings, &[u8; K], &[u8; V]),
) -> Result<()> {
    let missing = |findings: &mut Findings, key: &[u8]| {
        findings.add(table, || format!("{} is missing", place(key)));
    };
    let mut loaded = loaded.peekable();
    rows(session, findings, table, |findings, key, row: &[u8; V]| {
        while let Some((gone, _)) = loaded.next_if(|(next, _)| next < key) {
            missing(findings, &gone);
        }
        match loaded.next_if(|(next, _)| next == key) {
            Some((_, was)) if was[changing..] == row[changing..] => {}
            Some(_) => findings.add(table, || format!("{} is not as it was loaded", place(key))),
            None => findings.add(table, || format!("{} was never loaded", place(key))),
        }
        each(findings, key, row);
    })?;
    for (gone, _) in loaded {
        missing(findings, &gone);
    }
    Ok(())
}

/// A key for people: a number, or a subscriber and what follows.
fn place(key: &[u8]) -> String {
    if let (Some((s, rest)), true) = (key.split_first_chunk::<4>(), key.len() < NUMBER_LENGTH) {
        let mut text = u32::from_be_bytes(*s).to_string();
        for part in rest {
            text.push_str(&format!("/{part}"));
        }
        return text;
    }
    String::from_utf8_lossy(key).into_owned()
}
