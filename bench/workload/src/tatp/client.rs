//! A client: draws a transaction, runs it on a session, as often as it takes.

use super::Kind;
use super::input::{Choice, Generator, Input};
use super::ledger::{Forwardings, Ledger};
use super::population::{Population, Set};
use super::schema::*;
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};
use crate::field::{exact, exact_mut};
use vellum_base::random::Random;

/// How a transaction ended that needs no other attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It found what it wanted, and is committed.
    Succeeded,
    /// It found no row, or one that it would insert, as the description lets it; it is rolled back.
    Failed,
}

/// One client of a database that is completely loaded.
#[derive(Debug)]
pub struct Client<'l> {
    generator: Generator,
    input: Input,
    /// What was read last: rows are handed over as a caller would get them.
    row: Vec<u8>,
    /// What it has inserted and deleted, committed.
    changed: Forwardings,
    ledger: &'l Ledger,
}

impl<'l> Client<'l> {
    /// Client `number` of a run with `seed`; what it inserts and deletes goes to `ledger`.
    ///
    /// # Errors
    /// [`EngineError::Unusable`] if the load is not complete.
    pub fn new(
        population: &Population,
        choice: Choice,
        seed: u64,
        number: u64,
        ledger: &'l Ledger,
    ) -> Result<Self> {
        if !population.is_complete() {
            return Err(EngineError::Unusable(format!(
                "only {} of {} subscribers are loaded",
                population.loaded, population.subscribers
            )));
        }
        let random = Random::new(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut generator = Generator::new(random, choice);
        Ok(Self {
            input: generator.draw(),
            generator,
            row: Vec::new(),
            changed: Forwardings::default(),
            ledger,
        })
    }

    /// Draws the next transaction of the mix.
    #[inline]
    pub fn draw(&mut self) -> Kind {
        self.input = self.generator.draw();
        self.input.kind()
    }

    /// Takes `input` for what was drawn.
    #[cfg(test)]
    pub(super) fn set(&mut self, input: Input) {
        self.input = input;
    }

    /// The row that was read last.
    #[cfg(test)]
    pub(super) fn row(&self) -> &[u8] {
        &self.row
    }

    /// Runs the transaction that was drawn, once. After an error it is rolled back; a retryable one may be attempted again.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::WrongData`] if a row is missing that no transaction deletes.
    #[inline]
    pub fn attempt<S: Session>(&mut self, session: &mut S) -> Result<Outcome> {
        let attempted = self.run(session);
        if !matches!(attempted, Ok(true)) {
            session.rollback()?;
        }
        attempted.map(|found| match found {
            true => Outcome::Succeeded,
            false => Outcome::Failed,
        })
    }

    /// Commits and returns true, or returns false and leaves the transaction open.
    fn run<S: Session>(&mut self, session: &mut S) -> Result<bool> {
        let row = &mut self.row;
        match self.input {
            Input::GetSubscriberData { s } => get_subscriber_data(session, s, row),
            Input::GetNewDestination {
                s,
                kind,
                start,
                end,
            } => get_new_destination(session, s, kind, start, end, row),
            Input::GetAccessData { s, kind } => get_access_data(session, s, kind, row),
            Input::UpdateSubscriberData { s, kind, bit, data } => {
                update_subscriber_data(session, s, kind, bit, data)
            }
            Input::UpdateLocation { number, location } => {
                update_location(session, &number, location)
            }
            Input::InsertCallForwarding {
                number,
                kind,
                start,
                end,
                to,
            } => {
                let mut forwarding = [0; call_forwarding::LENGTH];
                call_forwarding::END_TIME.set(&mut forwarding, end);
                call_forwarding::NUMBERX.set(&mut forwarding, &to);
                let inserted = insert_call_forwarding(session, &number, kind, start, &forwarding)?;
                if let Some(key) = inserted {
                    self.changed.add(&key);
                }
                Ok(inserted.is_some())
            }
            Input::DeleteCallForwarding {
                number,
                kind,
                start,
            } => {
                let deleted = delete_call_forwarding(session, &number, kind, start)?;
                if let Some(key) = deleted {
                    self.changed.remove(&key);
                }
                Ok(deleted.is_some())
            }
        }
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.ledger.enter(self.changed);
    }
}

/// Ends a transaction that found what it wanted.
fn succeed<S: Session>(session: &mut S) -> Result<bool> {
    session.commit().map(|()| true)
}

fn get_subscriber_data<S: Session>(session: &mut S, s: u32, row: &mut Vec<u8>) -> Result<bool> {
    session.begin(TxOptions::READ_ONLY)?;
    if !session.get(SUBSCRIBER, &subscriber_key(s), row)? {
        return Err(EngineError::missing(SUBSCRIBER));
    }
    let found = exact::<{ subscriber::LENGTH }>(row);
    if subscriber::SUB_NBR.padded(found) != number(s) {
        let what = format!("subscriber {s} holds another's row");
        return Err(EngineError::WrongData {
            table: SUBSCRIBER,
            what,
        });
    }
    succeed(session)
}

fn get_new_destination<S: Session>(
    session: &mut S,
    s: u32,
    kind: u8,
    start: u8,
    end: u8,
    numbers: &mut Vec<u8>,
) -> Result<bool> {
    session.begin(TxOptions::READ_ONLY)?;
    let active = session.get_with(SPECIAL_FACILITY, &typed_key(s, kind), |facility| {
        special_facility::IS_ACTIVE.get(exact::<{ special_facility::LENGTH }>(facility)) == 1
    })?;
    if active != Some(true) {
        return Ok(false);
    }
    numbers.clear();
    let (first, last) = (forwarding_key(s, kind, 0), forwarding_key(s, kind, start));
    session.scan(CALL_FORWARDING, &first, Direction::Forward, |key, value| {
        if key > &last[..] {
            return false;
        }
        let forwarding = exact::<{ call_forwarding::LENGTH }>(value);
        if end < call_forwarding::END_TIME.get(forwarding) {
            numbers.extend_from_slice(call_forwarding::NUMBERX.padded(forwarding));
        }
        true
    })?;
    if numbers.is_empty() {
        return Ok(false);
    }
    succeed(session)
}

fn get_access_data<S: Session>(
    session: &mut S,
    s: u32,
    kind: u8,
    row: &mut Vec<u8>,
) -> Result<bool> {
    session.begin(TxOptions::READ_ONLY)?;
    if !session.get(ACCESS_INFO, &typed_key(s, kind), row)? {
        return Ok(false);
    }
    succeed(session)
}

fn update_subscriber_data<S: Session>(
    session: &mut S,
    s: u32,
    kind: u8,
    bit: u8,
    data: u8,
) -> Result<bool> {
    session.begin(TxOptions::READ_WRITE)?;
    let ranges = [subscriber::BIT_1.range()];
    let found = session.update(SUBSCRIBER, &subscriber_key(s), &ranges, |row| {
        subscriber::BIT_1.set(exact_mut::<{ subscriber::LENGTH }>(row), bit);
    })?;
    if !found {
        return Err(EngineError::missing(SUBSCRIBER));
    }
    let ranges = [special_facility::DATA_A.range()];
    let found = session.update(SPECIAL_FACILITY, &typed_key(s, kind), &ranges, |row| {
        special_facility::DATA_A.set(exact_mut::<{ special_facility::LENGTH }>(row), data);
    })?;
    if !found {
        return Ok(false);
    }
    succeed(session)
}

fn update_location<S: Session>(
    session: &mut S,
    number: &[u8; NUMBER_LENGTH],
    location: u32,
) -> Result<bool> {
    session.begin(TxOptions::READ_WRITE)?;
    let s = find(session, number)?;
    let ranges = [subscriber::VLR_LOCATION.range()];
    let found = session.update(SUBSCRIBER, &subscriber_key(s), &ranges, |row| {
        subscriber::VLR_LOCATION.set(exact_mut::<{ subscriber::LENGTH }>(row), location);
    })?;
    if !found {
        return Err(EngineError::missing(SUBSCRIBER));
    }
    succeed(session)
}

/// Returns the key that was inserted.
fn insert_call_forwarding<S: Session>(
    session: &mut S,
    number: &[u8; NUMBER_LENGTH],
    kind: u8,
    start: u8,
    forwarding: &[u8; call_forwarding::LENGTH],
) -> Result<Option<[u8; 6]>> {
    session.begin(TxOptions::READ_WRITE)?;
    let s = find(session, number)?;
    // The description reads the types of all facilities that are there; the row must have its parent among them.
    let prefix = subscriber_key(s);
    let mut facilities = Set::default();
    session.scan(SPECIAL_FACILITY, &prefix, Direction::Forward, |key, _| {
        match key.strip_prefix(&prefix) {
            Some([kind @ 1..=TYPES]) => facilities.add(kind - 1),
            _ => return false,
        }
        true
    })?;
    if !facilities.has(kind - 1) {
        return Ok(None);
    }
    let key = forwarding_key(s, kind, start);
    match session.insert(CALL_FORWARDING, &key, forwarding) {
        Ok(()) => session.commit().map(|()| Some(key)),
        Err(EngineError::KeyExists(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the key that was deleted.
fn delete_call_forwarding<S: Session>(
    session: &mut S,
    number: &[u8; NUMBER_LENGTH],
    kind: u8,
    start: u8,
) -> Result<Option<[u8; 6]>> {
    session.begin(TxOptions::READ_WRITE)?;
    let s = find(session, number)?;
    let key = forwarding_key(s, kind, start);
    if !session.delete(CALL_FORWARDING, &key)? {
        return Ok(None);
    }
    session.commit().map(|()| Some(key))
}

/// The subscriber that has a number.
fn find<S: Session>(session: &mut S, number: &[u8; NUMBER_LENGTH]) -> Result<u32> {
    let found = session.get_with(SUBSCRIBER_BY_NUMBER, number, |entry| {
        by_number::S_ID.get(exact::<{ by_number::LENGTH }>(entry))
    })?;
    found.ok_or_else(|| EngineError::missing(SUBSCRIBER_BY_NUMBER))
}
