//! Increments of one row; none is lost.
//!
//! Recorded: `["a","counter",number]` for an increment, `["r","counter",[count]]` for a look.
//!
//! Invariants, judged (an event happened before another if its number is smaller):
//! - C1 A look shows at least the increments that were acknowledged before it began.
//! - C2 It shows at most those that began before it ended and were not rolled back.
//! - C3 Looks of one snapshot agree.

use crate::client::{Client, Decision, Gone, How};
use crate::list::make_table;
use crate::run::Workload;
use std::collections::{HashMap, HashSet};
use vellum::{Database, Result, Transaction};
use vellum_history::{Event, Key, Op, Phase};

/// Name of the number, in histories too.
pub const TABLE: &str = "counter";
const ROW: &[u8] = b"count";

/// The workload.
#[derive(Clone, Copy, Debug)]
pub struct Counter;

fn count_of(row: &[u8]) -> u64 {
    row.first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn look(transaction: &Transaction, done: &mut Vec<Op>) -> Result<()> {
    let table = transaction.table(TABLE)?;
    let count = transaction.get(&table, ROW, count_of)?.unwrap_or_default();
    done.push(Op::Read(Key::Text(TABLE.into()), Some(vec![count])));
    Ok(())
}

impl Workload for Counter {
    fn prepare(&self, database: &Database) -> Result<()> {
        make_table(database, TABLE)?;
        database.retry(|transaction| {
            let table = transaction.table(TABLE)?;
            if transaction.get(&table, ROW, |_| ())?.is_none() {
                transaction.insert(&table, ROW, &[0; 16])?;
            }
            Ok(())
        })
    }

    fn step(&self, client: &mut Client<'_>) -> std::result::Result<(), Gone> {
        let looks = if client.holds() { 2 } else { 6 };
        if client.random.chance(1, looks) {
            return client.look(300, |transaction, _, done| look(transaction, done));
        }
        let announced = vec![Op::Append(Key::Text(TABLE.into()), client.life.value())];
        let op = announced[0].clone();
        // In place it is right under read committed, too.
        let way = client.random.below(3);
        let how = if way == 0 {
            How::READ_COMMITTED
        } else {
            How::SNAPSHOT
        };
        let added = client.transact(how, announced, |transaction, random, done| {
            let table = transaction.table(TABLE)?;
            if way == 2 {
                let count = transaction.get(&table, ROW, count_of)?.unwrap_or_default() + 1;
                // Its length changes, so that the version before is kept whole.
                let mut row = vec![0; random.between(16, 64) as usize];
                row[..8].copy_from_slice(&count.to_le_bytes());
                transaction.replace(&table, ROW, &row)?;
            } else {
                transaction.update(&table, ROW, &[0..8], |row| {
                    let count = count_of(row) + 1;
                    row[..8].copy_from_slice(&count.to_le_bytes());
                })?;
            }
            done.push(op);
            Ok(Decision::Commit)
        });
        added.map(drop)
    }

    fn read_all(&self, client: &mut Client<'_>, _: &[Event]) -> std::result::Result<(), Gone> {
        let look = |transaction: &Transaction, done: &mut Vec<Op>| look(transaction, done);
        let read = client.transact(How::READ_ONLY, Vec::new(), |transaction, _, done| {
            look(transaction, done)?;
            Ok(Decision::Commit)
        });
        read.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        let adds = |event: &Event| event.ops.iter().any(|op| matches!(op, Op::Append(..)));
        let failed = |event: &&Event| event.f == Phase::Fail;
        let rolled_back: HashSet<u64> = events.iter().filter(failed).map(|event| event.t).collect();
        // So far: acknowledged, and begun without having been rolled back later.
        let (mut sure, mut most, mut looks) = (0, 0, 0);
        let mut at_begin: HashMap<u64, u64> = HashMap::new();
        for event in &events {
            match event.f {
                Phase::Invoke => {
                    at_begin.insert(event.t, sure);
                    most += u64::from(adds(event) && !rolled_back.contains(&event.t));
                }
                Phase::Ok => {
                    let mut before = None;
                    for op in &event.ops {
                        let Op::Read(_, Some(values)) = op else {
                            continue;
                        };
                        looks += 1;
                        let count = values.first().copied().unwrap_or_default();
                        let least = at_begin[&event.t];
                        if count < least {
                            return Err(format!("C1: {event:?}: {least} were acknowledged before"));
                        }
                        if count > most {
                            return Err(format!("C2: {event:?}: at most {most} are possible"));
                        }
                        if before.is_some_and(|before| before != count) {
                            return Err(format!("C3: {event:?}"));
                        }
                        before = Some(count);
                    }
                    sure += u64::from(adds(event));
                }
                Phase::Fail | Phase::Info => {}
            }
        }
        Ok(format!(
            "{sure} increments acknowledged, {} rolled back; {looks} looks",
            rolled_back.len()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(t: u64, f: Phase, ops: Vec<Op>) -> Event {
        let lvl = None;
        Event {
            i: 0,
            p: t,
            t,
            f,
            ts: 0,
            lvl,
            ops,
        }
    }

    fn judged(looks: &[u64]) -> std::result::Result<String, String> {
        let name = || Key::Text(TABLE.into());
        let add = |number| vec![Op::Append(name(), number)];
        let looks = looks
            .iter()
            .map(|count| Op::Read(name(), Some(vec![*count])))
            .collect();
        // One acknowledged, one rolled back, one that nobody knows.
        Counter.judge(vec![
            event(0, Phase::Invoke, add(1)),
            event(0, Phase::Ok, add(1)),
            event(1, Phase::Invoke, add(2)),
            event(1, Phase::Fail, add(2)),
            event(2, Phase::Invoke, add(3)),
            event(3, Phase::Invoke, Vec::new()),
            event(3, Phase::Ok, looks),
        ])
    }

    #[test]
    fn each_broken_invariant_is_named() {
        for right in [[1], [2]] {
            assert!(judged(&right).is_ok(), "{:?}", judged(&right));
        }
        for (name, looks) in [("C1", vec![0]), ("C2", vec![3]), ("C3", vec![1, 2])] {
            let error = judged(&looks).unwrap_err();
            assert!(error.starts_with(name), "{name}: {error}");
        }
    }
}
