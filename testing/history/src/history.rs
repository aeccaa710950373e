//! Events put together to transactions.
//!
//! A history that its recorder cannot have meant (a session that does two things at once, a value appended twice) is refused: a verdict
//! on it would be worth nothing.
//!
//! Invariants:
//! - I1 Transactions stand in the order of their invocations; `invoked` and `ended` are positions of events.
//! - I2 A value is appended to a key by one operation at most. Appends that were announced and are not in the answer of a committed
//!   transaction did not happen; they are kept apart (`dropped`), so that a read of one is known for what it is.

use crate::event::{Event, Key, Level, Op, Phase};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::BufRead;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged.
    Committed,
    /// Rolled back.
    Aborted,
    /// Nobody knows.
    Unknown,
}

/// An operation with its key as a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appends a value.
    Append(u32, u64),
    /// Reads a list, if the answer is known.
    Read(u32, Option<Vec<u64>>),
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Its number in the history.
    pub id: u64,
    /// Who ran it.
    pub session: u64,
    /// What it was promised.
    pub level: Level,
    /// How it ended.
    pub outcome: Outcome,
    /// Number of its first event.
    pub invoked: u64,
    /// Number of its last event; `u64::MAX` if it may still go on.
    pub ended: u64,
    /// What it did, or may have done.
    pub steps: Vec<Step>,
    /// Appends that it announced and did not do.
    pub dropped: Vec<(u32, u64)>,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// I1.
    pub transactions: Vec<Transaction>,
    /// Names of the keys.
    pub keys: Vec<Key>,
}

/// A history that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Line, or position in the list of events, from one.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Malformed {}

/// What is known while events come.
#[derive(Debug, Default)]
struct Builder {
    history: History,
    keys: HashMap<Key, u32>,
    /// Position of a transaction by its number.
    places: HashMap<u64, usize>,
    /// What a session is doing; `None` between transactions.
    sessions: HashMap<u64, Option<u64>>,
    retired: HashSet<u64>,
    values: HashSet<(u32, u64)>,
    last: Option<u64>,
}

impl History {
    /// Reads a history, an event a line; empty lines are skipped.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn read(input: impl BufRead) -> Result<Self, Malformed> {
        let mut builder = Builder::default();
        for (line, text) in (1..).zip(input.lines()) {
            let wrong = |what: String| Malformed { line, what };
            let text = text.map_err(|error| wrong(error.to_string()))?;
            if text.trim().is_empty() {
                continue;
            }
            let event: Event =
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            builder.add(event).map_err(wrong)?;
        }
        Ok(builder.history)
    }

    /// Puts events together.
    ///
    /// # Errors
    /// The first event that is wrong.
    pub fn from_events(events: impl IntoIterator<Item = Event>) -> Result<Self, Malformed> {
        let mut builder = Builder::default();
        for (line, event) in (1..).zip(events) {
            builder
                .add(event)
                .map_err(|what| Malformed { line, what })?;
        }
        Ok(builder.history)
    }

    /// A key by its name.
    pub fn key(&self, key: u32) -> &Key {
        &self.keys[key as usize]
    }

    /// The same history, every transaction promised `level`.
    #[must_use]
    pub fn at_level(mut self, level: Level) -> Self {
        for transaction in &mut self.transactions {
            transaction.level = level;
        }
        self
    }
}

impl Builder {
    fn add(&mut self, event: Event) -> Result<(), String> {
        if self.last.is_some_and(|last| event.i <= last) {
            return Err(format!(
                "event {} does not come after the one before",
                event.i
            ));
        }
        self.last = Some(event.i);
        if self.retired.contains(&event.p) {
            return Err(format!(
                "session {} goes on after a transaction that nobody knows the end of",
                event.p
            ));
        }
        let session = self.sessions.entry(event.p).or_default();
        if event.f == Phase::Invoke {
            if let Some(open) = session {
                return Err(format!(
                    "session {} is still in transaction {open}",
                    event.p
                ));
            }
            if self.places.contains_key(&event.t) {
                return Err(format!("transaction {} is invoked twice", event.t));
            }
            *session = Some(event.t);
            return self.invoke(event);
        }
        if *session != Some(event.t) {
            return Err(format!(
                "session {} is not in transaction {}",
                event.p, event.t
            ));
        }
        *session = None;
        if event.f == Phase::Info {
            self.retired.insert(event.p);
        }
        self.end(event)
    }

    fn invoke(&mut self, event: Event) -> Result<(), String> {
        let mut steps = Vec::with_capacity(event.ops.len());
        for op in event.ops {
            let step = self.step(op);
            if let Step::Append(key, value) = step {
                self.claim(key, value)?;
            }
            steps.push(step);
        }
        self.places.insert(event.t, self.history.transactions.len());
        self.history.transactions.push(Transaction {
            id: event.t,
            session: event.p,
            level: event.lvl.unwrap_or(Level::Snapshot),
            outcome: Outcome::Unknown,
            invoked: event.i,
            ended: u64::MAX,
            steps,
            dropped: Vec::new(),
        });
        Ok(())
    }

    fn end(&mut self, event: Event) -> Result<(), String> {
        let place = self.places[&event.t];
        let steps: Vec<Step> = event.ops.into_iter().map(|op| self.step(op)).collect();
        let announced = &self.history.transactions[place].steps;
        let appends = |steps: &[Step]| -> Vec<(u32, u64)> {
            let append = |step: &Step| match step {
                Step::Append(key, value) => Some((*key, *value)),
                Step::Read(..) => None,
            };
            steps.iter().filter_map(append).collect()
        };
        let (before, done) = (appends(announced), appends(&steps));
        let (was, is): (HashSet<_>, HashSet<_>) = (before.iter().collect(), done.iter().collect());
        if is.len() < done.len() {
            return Err("a value is appended twice to a key".into());
        }
        for (key, value) in done.iter().filter(|append| !was.contains(append)) {
            self.claim(*key, *value)?;
        }
        let missing: Vec<_> = before
            .into_iter()
            .filter(|append| !is.contains(append))
            .collect();
        let transaction = &mut self.history.transactions[place];
        if let Some(level) = event.lvl.filter(|level| *level != transaction.level) {
            return Err(format!(
                "transaction {} changes its level to {level}",
                event.t
            ));
        }
        transaction.ended = event.i;
        match event.f {
            Phase::Ok => {
                if let Some(Step::Read(..)) = steps
                    .iter()
                    .find(|step| matches!(step, Step::Read(_, None)))
                {
                    return Err(format!("transaction {} does not say what it read", event.t));
                }
                transaction.outcome = Outcome::Committed;
                transaction.steps = steps;
                transaction.dropped = missing;
            }
            _ => {
                transaction.outcome = Outcome::Aborted;
                if event.f == Phase::Info {
                    transaction.outcome = Outcome::Unknown;
                    transaction.ended = u64::MAX;
                }
                // What it announced and does not name may be done nevertheless.
                if !steps.is_empty() {
                    let rest = missing
                        .into_iter()
                        .map(|(key, value)| Step::Append(key, value));
                    transaction.steps = steps.into_iter().chain(rest).collect();
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, op: Op) -> Step {
        let (history, keys) = (&mut self.history, &mut self.keys);
        let mut number = |key: Key| {
            *keys.entry(key).or_insert_with_key(|key| {
                history.keys.push(key.clone());
                history.keys.len() as u32 - 1
            })
        };
        match op {
            Op::Append(key, value) => Step::Append(number(key), value),
            Op::Read(key, values) => Step::Read(number(key), values),
        }
    }

    /// I2.
    fn claim(&mut self, key: u32, value: u64) -> Result<(), String> {
        if self.values.insert((key, value)) {
            return Ok(());
        }
        let name = self.history.key(key);
        Err(format!("value {value} is appended twice to key {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(i: u64, p: u64, t: u64, f: Phase, ops: &[Op]) -> Event {
        let ops = ops.to_vec();
        Event {
            i,
            p,
            t,
            f,
            ts: 0,
            lvl: None,
            ops,
        }
    }

    fn refused(events: &[Event]) -> String {
        History::from_events(events.to_vec()).unwrap_err().what
    }

    #[test]
    fn announced_and_done_are_told_apart() {
        let announced = [Op::append(1, 1), Op::append(1, 2), Op::Read(2.into(), None)];
        let done = [Op::append(1, 1), Op::read(2, [])];
        let ends = [Phase::Ok, Phase::Info, Phase::Fail].map(|end| {
            let events = [
                event(1, 0, 0, Phase::Invoke, &announced),
                event(2, 0, 0, end, &done),
            ];
            History::from_events(events).unwrap().transactions.remove(0)
        });
        assert_eq!(ends[0].steps.len(), 2);
        assert_eq!(ends[0].dropped, [(0, 2)]);
        assert_eq!(ends[1].steps.last(), Some(&Step::Append(0, 2)));
        assert_eq!(
            (ends[1].outcome, ends[1].ended),
            (Outcome::Unknown, u64::MAX)
        );
        assert_eq!((ends[2].outcome, ends[2].ended), (Outcome::Aborted, 2));
    }

    #[test]
    fn a_transaction_without_an_end_is_one_that_nobody_knows_the_end_of() {
        let history = History::from_events([event(1, 0, 0, Phase::Invoke, &[Op::append(1, 1)])]);
        let history = history.unwrap();
        assert_eq!(history.transactions[0].outcome, Outcome::Unknown);
    }

    #[test]
    fn what_no_recorder_may_write_is_refused() {
        use Phase::{Info, Invoke, Ok};
        let append = [Op::append(1, 1)];
        let cases: [(&str, &[Event]); 8] = [
            (
                "come after",
                &[event(2, 0, 0, Invoke, &[]), event(2, 0, 0, Ok, &[])],
            ),
            (
                "still in",
                &[event(1, 0, 0, Invoke, &[]), event(2, 0, 1, Invoke, &[])],
            ),
            (
                "not in",
                &[event(1, 0, 0, Invoke, &[]), event(2, 1, 0, Ok, &[])],
            ),
            ("not in", &[event(1, 0, 0, Ok, &[])]),
            (
                "goes on",
                &[
                    event(1, 0, 0, Invoke, &[]),
                    event(2, 0, 0, Info, &[]),
                    event(3, 0, 1, Invoke, &[]),
                ],
            ),
            (
                "invoked twice",
                &[event(1, 0, 0, Invoke, &[]), event(2, 1, 0, Invoke, &[])],
            ),
            (
                "appended twice",
                &[
                    event(1, 0, 0, Invoke, &append),
                    event(2, 1, 1, Invoke, &append),
                ],
            ),
            (
                "what it read",
                &[
                    event(1, 0, 0, Invoke, &[]),
                    event(2, 0, 0, Ok, &[Op::Read(1.into(), None)]),
                ],
            ),
        ];
        for (what, events) in cases {
            let found = refused(events);
            assert!(found.contains(what), "{found} instead of {what}");
        }
    }

    #[test]
    fn a_broken_line_is_named() {
        let text = "{\"i\":1,\"p\":0,\"t\":0,\"f\":\"invoke\"}\n\n{\"i\":2,";
        let error = History::read(text.as_bytes()).unwrap_err();
        assert_eq!(error.line, 3);
    }
}
