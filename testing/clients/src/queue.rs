//! Elements that go in behind the largest and are taken out at the smallest; none is lost, none comes twice.
//!
//! Every element leaves a tombstone where the next one is looked for: the store's worst case under an old snapshot.
//!
//! Recorded: `["a","in",element]`, `["a","out",element]`, `["r","queue",[…]]`; a transaction that wants to take one out announces
//! `["r","out"]`, since it does not know yet which.
//!
//! Invariants, judged:
//! - Q1 Nothing is taken out twice, nothing that did not go in, nothing that was rolled back.
//! - Q2 What is there in the end went in and was not taken out.
//! - Q3 What went in was taken out or is there, but for one element for each transaction that may have taken one and whose end nobody
//!   knows.
//! - Q4 A look is in order, and shows everything that was in before it began and was not taken out before it ended (with the exception of Q3),
//!   and nothing that was out before it began, or that came in after it ended.
//! - Q5 Looks of one snapshot agree.

use crate::client::{Client, Decision, Gone, How};
use crate::list::make_table;
use crate::run::Workload;
use std::collections::{HashMap, HashSet};
use vellum::{Database, Result, Transaction};
use vellum_base::random::Random;
use vellum_history::{Event, Key, Op, Phase};

/// Name of a look at the queue, in histories.
pub const TABLE: &str = "queue";
/// Name of what goes in, in histories.
pub const IN: &str = "in";
/// Name of what comes out, in histories.
pub const OUT: &str = "out";
/// Elements about which it stays.
const LENGTH: u64 = 30;

/// The workload.
#[derive(Clone, Copy, Debug)]
pub struct Queue;

fn name(text: &str) -> Key {
    Key::Text(text.into())
}

fn element_of(key: &[u8]) -> u64 {
    key.first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn look(transaction: &Transaction, random: &mut Random, done: &mut Vec<Op>) -> Result<()> {
    let table = transaction.table(TABLE)?;
    let mut cursor = transaction.cursor(&table, ..)?;
    let mut elements = Vec::new();
    match random.below(4) {
        0 => {
            while let Some((key, _)) = cursor.next()? {
                elements.push(element_of(key));
            }
        }
        1 => {
            while let Some((key, _)) = cursor.prev()? {
                elements.push(element_of(key));
            }
            elements.reverse();
        }
        2 => {
            while cursor.batch_back(|key, _| elements.push(element_of(key)))? > 0 {}
            elements.reverse();
        }
        _ => while cursor.batch(|key, _| elements.push(element_of(key)))? > 0 {},
    }
    done.push(Op::Read(name(TABLE), Some(elements)));
    Ok(())
}

impl Queue {
    fn put(client: &mut Client<'_>) -> std::result::Result<bool, Gone> {
        let element = client.life.value();
        let announced = vec![Op::Append(name(IN), element)];
        client.transact(
            How::SNAPSHOT,
            announced.clone(),
            |transaction, random, done| {
                let table = transaction.table(TABLE)?;
                let value = vec![1; random.below(200) as usize];
                transaction.insert(&table, &element.to_be_bytes(), &value)?;
                done.extend(announced);
                Ok(Decision::Commit)
            },
        )
    }

    fn take(client: &mut Client<'_>) -> std::result::Result<bool, Gone> {
        let announced = vec![Op::Read(name(OUT), None)];
        client.transact(How::SNAPSHOT, announced, |transaction, _, done| {
            let table = transaction.table(TABLE)?;
            let first = transaction
                .cursor(&table, ..)?
                .next()?
                .map(|(key, _)| element_of(key));
            if let Some(element) = first
                && transaction.delete(&table, &element.to_be_bytes())?
            {
                done.push(Op::Append(name(OUT), element));
            }
            Ok(Decision::Commit)
        })
    }
}

impl Workload for Queue {
    fn prepare(&self, database: &Database) -> Result<()> {
        make_table(database, TABLE)
    }

    fn step(&self, client: &mut Client<'_>) -> std::result::Result<(), Gone> {
        let looks = if client.holds() { 2 } else { 12 };
        if client.random.chance(1, looks) {
            return client.look(300, look);
        }
        // Fuller with the first elements of a life, then as much in as out.
        let fills = client.life.values_drawn() % (1 << 24) < LENGTH;
        if fills || client.random.chance(1, 2) {
            Self::put(client).map(drop)
        } else {
            Self::take(client).map(drop)
        }
    }

    fn read_all(&self, client: &mut Client<'_>, _: &[Event]) -> std::result::Result<(), Gone> {
        let read = client.transact(How::READ_ONLY, Vec::new(), |transaction, random, done| {
            look(transaction, random, done)?;
            Ok(Decision::Commit)
        });
        read.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        Seen::of(&events)?.judge(&events)
    }
}

/// Where things stand in the list of events.
#[derive(Debug, Default)]
struct Seen {
    /// When a transaction was invoked.
    invoked: HashMap<u64, u64>,
    /// Elements: when their way in was invoked, and when it was acknowledged, if ever.
    into: HashMap<u64, (u64, Option<u64>)>,
    /// Elements: when their way out was invoked and acknowledged.
    out: HashMap<u64, (u64, u64)>,
    rolled_back: HashSet<u64>,
    /// Transactions that may have taken something, with when they were invoked.
    unknown: Vec<u64>,
}

impl Seen {
    fn of(events: &[Event]) -> std::result::Result<Self, String> {
        let mut seen = Self::default();
        let mut takers: HashMap<u64, u64> = HashMap::new();
        let mut twice = None;
        for event in events {
            if event.f == Phase::Invoke {
                seen.invoked.insert(event.t, event.i);
                if event.ops.iter().any(|op| matches!(op, Op::Read(..))) {
                    takers.insert(event.t, event.i);
                }
            } else if matches!(event.f, Phase::Ok | Phase::Fail) {
                takers.remove(&event.t);
            }
            let invoked = seen.invoked.get(&event.t).copied().unwrap_or_default();
            for op in &event.ops {
                let Op::Append(Key::Text(way), element) = op else {
                    continue;
                };
                match (&**way, event.f) {
                    (IN, Phase::Invoke) => drop(seen.into.insert(*element, (event.i, None))),
                    (IN, Phase::Ok) => drop(seen.into.insert(*element, (invoked, Some(event.i)))),
                    (IN, Phase::Fail) => drop(seen.rolled_back.insert(*element)),
                    (OUT, Phase::Ok) => {
                        let before = seen.out.insert(*element, (invoked, event.i));
                        twice = twice.or(before.map(|_| *element));
                    }
                    _ => {}
                }
            }
        }
        if let Some(element) = twice {
            return Err(format!("Q1: {element} was taken out twice"));
        }
        seen.unknown = takers.into_values().collect();
        Ok(seen)
    }

    fn judge(&self, events: &[Event]) -> std::result::Result<String, String> {
        for element in self.out.keys() {
            if !self.into.contains_key(element) || self.rolled_back.contains(element) {
                return Err(format!("Q1: {element} was taken out and is not in"));
            }
        }
        let (mut looks, mut last) = (0, None);
        for event in events.iter().filter(|event| event.f == Phase::Ok) {
            let mut before: Option<&Vec<u64>> = None;
            for op in &event.ops {
                let Op::Read(_, Some(elements)) = op else {
                    continue;
                };
                looks += 1;
                if before.is_some_and(|before| before != elements) {
                    return Err(format!("Q5: {event:?}"));
                }
                before = Some(elements);
                self.judge_look(event, elements)?;
                last = Some(elements);
            }
        }
        let Some(last) = last else {
            return Err("nobody looked in the end".into());
        };
        let there: HashSet<u64> = last.iter().copied().collect();
        if let Some(element) = there.iter().find(|element| self.out.contains_key(element)) {
            return Err(format!("Q2: {element} is there and was taken out"));
        }
        let gone = |element: &&u64| !there.contains(element) && !self.out.contains_key(element);
        let acknowledged = self.into.iter().filter(|(_, (_, end))| end.is_some());
        let missing: Vec<&u64> = acknowledged
            .map(|(element, _)| element)
            .filter(gone)
            .collect();
        if missing.len() > self.unknown.len() {
            let unknown = self.unknown.len();
            return Err(format!(
                "Q3: {missing:?} are lost; {unknown} may have been taken"
            ));
        }
        Ok(format!(
            "{} in, {} out, {} there; {looks} looks",
            self.into.len(),
            self.out.len(),
            there.len()
        ))
    }

    /// Q4.
    fn judge_look(&self, event: &Event, elements: &[u64]) -> std::result::Result<(), String> {
        let wrong = |what: String| Err(format!("Q4: {what}: {event:?}"));
        let begin = self.invoked.get(&event.t).copied().unwrap_or_default();
        if !elements.is_sorted_by(|a, b| a < b) {
            return wrong("not in order".into());
        }
        for element in elements {
            match self.into.get(element) {
                Some((invoked, _)) if *invoked < event.i => {}
                _ => return wrong(format!("{element} is not in yet")),
            }
            if self.rolled_back.contains(element) {
                return wrong(format!("{element} was rolled back"));
            }
            if self
                .out
                .get(element)
                .is_some_and(|(_, ended)| *ended < begin)
            {
                return wrong(format!("{element} was out before"));
            }
        }
        let shown: HashSet<u64> = elements.iter().copied().collect();
        let mut missing = 0;
        for (element, (_, ended)) in &self.into {
            let was_in = ended.is_some_and(|ended| ended < begin);
            let may_be_out = self
                .out
                .get(element)
                .is_some_and(|(invoked, _)| *invoked < event.i);
            if was_in && !may_be_out && !shown.contains(element) {
                missing += 1;
            }
        }
        let excused = self
            .unknown
            .iter()
            .filter(|invoked| **invoked < event.i)
            .count();
        if missing > excused {
            return wrong(format!(
                "{missing} are missing, {excused} may have been taken"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(i: u64, t: u64, f: Phase, ops: Vec<Op>) -> Event {
        let lvl = None;
        Event {
            i,
            p: t,
            t,
            f,
            ts: 0,
            lvl,
            ops,
        }
    }

    fn into(element: u64) -> Vec<Op> {
        vec![Op::Append(name(IN), element)]
    }

    fn out(element: u64) -> Vec<Op> {
        vec![Op::Append(name(OUT), element)]
    }

    fn shows(elements: &[u64]) -> Op {
        Op::Read(name(TABLE), Some(elements.to_vec()))
    }

    /// 1 and 2 went in, 1 was taken out, 3 was rolled back, 2 is left.
    fn right() -> Vec<Event> {
        vec![
            event(0, 0, Phase::Invoke, into(1)),
            event(1, 0, Phase::Ok, into(1)),
            event(2, 1, Phase::Invoke, into(2)),
            event(3, 1, Phase::Ok, into(2)),
            event(4, 2, Phase::Invoke, into(3)),
            event(5, 2, Phase::Fail, into(3)),
            event(6, 3, Phase::Invoke, Vec::new()),
            event(7, 3, Phase::Ok, vec![shows(&[1, 2])]),
            event(8, 4, Phase::Invoke, vec![Op::Read(name(OUT), None)]),
            event(9, 4, Phase::Ok, out(1)),
            event(10, 5, Phase::Invoke, Vec::new()),
            event(11, 5, Phase::Ok, vec![shows(&[2])]),
        ]
    }

    #[test]
    fn each_broken_invariant_is_named() {
        assert!(Queue.judge(right()).is_ok(), "{:?}", Queue.judge(right()));
        type Break = (&'static str, fn(&mut Vec<Event>));
        let breaks: [Break; 9] = [
            ("Q1", |events| events[9].ops = out(3)),
            ("Q1", |events| {
                let [first, second] = [8, 9].map(|at| Event {
                    t: 9,
                    ..events[at].clone()
                });
                events.splice(10..10, [first, second]);
            }),
            ("Q4", |events| events[11].ops = vec![shows(&[1, 2])]),
            ("Q4", |events| events[7].ops = vec![shows(&[2, 1])]),
            ("Q4", |events| events[7].ops = vec![shows(&[1])]),
            ("Q4", |events| events[7].ops = vec![shows(&[1, 2, 3])]),
            ("Q4", |events| events[7].ops = vec![shows(&[1, 2, 9])]),
            ("Q4", |events| events[11].ops = vec![shows(&[])]),
            ("Q5", |events| events[7].ops.push(shows(&[1]))),
        ];
        for (name, spoil) in breaks {
            let mut events = right();
            spoil(&mut events);
            let error = Queue.judge(events).unwrap_err();
            assert!(error.starts_with(name), "{name}: {error}");
        }
    }

    #[test]
    fn what_nobody_knows_excuses_one_element() {
        let mut events = right();
        // Nobody knows the end of the one that took 1 out.
        events.remove(9);
        assert!(Queue.judge(events.clone()).is_ok());
        events[10].ops = vec![shows(&[])];
        assert!(
            Queue.judge(events).is_err(),
            "two are lost, one may have been taken"
        );
    }
}
