//! Appends that final reads do not show.
//!
//! What was acknowledged before a final read must be in it. A transaction of unknown end may have committed behind that read, unless something
//! says that it had committed before.
//!
//! Cost: linear in the history, but for sorting the transactions.

use crate::anomaly::{Anomaly, Name};
use crate::history::{History, Outcome, Step};
use crate::versions::{Orders, plain, reads, who};
use std::collections::{HashMap, HashSet};

/// Finds acknowledged appends that a final read does not show.
pub fn look_at_appends(orders: &mut Orders, history: &History, anomalies: &mut Vec<Anomaly>) {
    let finals = final_reads(history);
    let proven = proven(orders, history);
    for (versions, last) in orders.keys.iter_mut().zip(&finals) {
        versions.has_final_read = last.is_some();
    }
    let mut sights: HashMap<u32, Sight> = HashMap::new();
    let mut later = HashMap::new();
    for (at, transaction) in (0_u32..).zip(&history.transactions) {
        if !orders.there[at as usize] {
            continue;
        }
        let shown = shown_later(orders, &transaction.steps, &mut later);
        for (step, later) in transaction.steps.iter().zip(shown) {
            let Step::Append(key, value) = *step else {
                continue;
            };
            let place = place(orders, key, value);
            if place == u32::MAX
                && let Some(later) = later
            {
                let reader = orders.keys[key as usize].reader;
                let (name, reader_name) = (history.key(key), who(history, reader));
                let story = format!(
                    "{} appended {value} and then {later} to key {name}, of which {reader_name} read the second only",
                    who(history, at)
                );
                anomalies.push(plain(Name::LostAppend, &[at, reader], story));
                continue;
            }
            let Some((reader, length)) = finals[key as usize] else {
                if place == u32::MAX {
                    orders.keys[key as usize].unread.push((at, value));
                }
                continue;
            };
            if (place as usize) < length {
                continue;
            }
            let known = transaction.outcome == Outcome::Committed;
            if !known && history.transactions[reader as usize].invoked <= proven[at as usize] {
                let sight = sights
                    .entry(reader)
                    .or_insert_with(|| Sight::of(orders, history, reader));
                if !sight.saw_before(at, (key, value)) {
                    // It may have committed after that read.
                    if place == u32::MAX {
                        orders.keys[key as usize].unread.push((at, value));
                    }
                    continue;
                }
            }
            let (name, reader_name) = (history.key(key), who(history, reader));
            let why = match transaction.outcome {
                Outcome::Committed => "was acknowledged",
                _ => "is there by another of its appends",
            };
            let story = format!(
                "{} appended {value} to key {name} and {why}, but the final read by {reader_name} does not show it",
                who(history, at)
            );
            anomalies.push(plain(Name::LostAppend, &[at, reader], story));
        }
    }
}

/// Where a value stands in the order of its key; `u32::MAX` if nobody read it.
fn place(orders: &Orders, key: u32, value: u64) -> u32 {
    orders
        .writer(key, value)
        .map_or(u32::MAX, |writer| writer.place)
}

/// For each step of a transaction what the next append to the same key is, itself included, that somebody read. `next` is room for the work.
fn shown_later(orders: &Orders, steps: &[Step], next: &mut HashMap<u32, u64>) -> Vec<Option<u64>> {
    next.clear();
    let mut shown = vec![None; steps.len()];
    for (step, shown) in steps.iter().zip(&mut shown).rev() {
        if let Step::Append(key, value) = *step {
            if place(orders, key, value) < u32::MAX {
                next.insert(key, value);
            }
            *shown = next.get(&key).copied();
        }
    }
    shown
}

/// For each transaction the first event by which it had committed, whether it said so or not: somebody had read what it appended by then, or had
/// committed who appended behind it.
fn proven(orders: &Orders, history: &History) -> Vec<u64> {
    let transactions = &history.transactions;
    let mut proven = vec![u64::MAX; transactions.len()];
    for (transaction, proven) in transactions.iter().zip(&mut proven) {
        if transaction.outcome == Outcome::Committed {
            *proven = transaction.ended;
        }
    }
    for (reader, key, values) in reads(history) {
        for value in values {
            if let Some(writer) = orders.writer(key, *value)
                && writer.transaction != reader
            {
                let proven = &mut proven[writer.transaction as usize];
                *proven = transactions[reader as usize].ended.min(*proven);
            }
        }
    }
    // What is proven of one proves it of those before it in another list, whose ends may be unknown, too.
    let mut before = vec![Vec::new(); transactions.len()];
    for (key, versions) in (0..).zip(&orders.keys) {
        for pair in versions.valid.windows(2) {
            let writer = |place| orders.writer_at(key, place);
            before[writer(pair[1]) as usize].push(writer(pair[0]));
        }
    }
    let mut by_proof: Vec<u32> = (0..).take(transactions.len()).collect();
    by_proof.sort_by_key(|transaction| proven[*transaction as usize]);
    spread(&mut proven, &mut before, &by_proof);
    proven
}

/// Gives each transaction the least proof of those that it is before, over any number of others. In the order of the proofs, the first one that comes to a
/// transaction is the least, so it is gone on from once, and its list is taken away.
fn spread(proven: &mut [u64], before: &mut [Vec<u32>], by_proof: &[u32]) {
    let mut waiting = Vec::new();
    for first in by_proof {
        let proof = proven[*first as usize];
        waiting.push(*first);
        while let Some(transaction) = waiting.pop() {
            for earlier in std::mem::take(&mut before[transaction as usize]) {
                if proof < proven[earlier as usize] {
                    proven[earlier as usize] = proof;
                    waiting.push(earlier);
                }
            }
        }
    }
}

/// What a reader saw, and in which of its steps.
struct Sight {
    /// Steps that read a key.
    reads: HashMap<u32, Vec<usize>>,
    /// What they read.
    values: HashSet<(usize, u64)>,
    /// Whose appends they read.
    writers: HashSet<(usize, u32)>,
    /// The first step that read something of a transaction.
    first: HashMap<u32, usize>,
    /// Whether it began when everybody else had ended.
    alone: bool,
}

impl Sight {
    fn of(orders: &Orders, history: &History, reader: u32) -> Self {
        let me = &history.transactions[reader as usize];
        let mut others = (0_u32..).zip(&history.transactions);
        let mut sight = Self {
            reads: HashMap::new(),
            values: HashSet::new(),
            writers: HashSet::new(),
            first: HashMap::new(),
            alone: others.all(|(at, other)| {
                at == reader || other.ended == u64::MAX || other.ended < me.invoked
            }),
        };
        for (number, step) in me.steps.iter().enumerate() {
            let Step::Read(key, Some(values)) = step else {
                continue;
            };
            sight.reads.entry(*key).or_default().push(number);
            for value in values {
                sight.values.insert((number, *value));
                if let Some(writer) = orders.writer(*key, *value) {
                    sight.writers.insert((number, writer.transaction));
                    sight.first.entry(writer.transaction).or_insert(number);
                }
            }
        }
        sight
    }

    /// Whether the reader saw something that a transaction appended to a key, and in the same list missed something else; or, if it began when everybody else
    /// had ended, saw it in another list and missed it later (read committed in general may look at each list as it was at any time).
    fn saw_before(&self, writer: u32, (key, value): (u32, u64)) -> bool {
        let Some(first) = self.first.get(&writer) else {
            return false;
        };
        let mut reads = self.reads.get(&key).into_iter().flatten();
        let missed = |step: &&usize| *step >= first && !self.values.contains(&(**step, value));
        reads
            .find(missed)
            .is_some_and(|step| self.alone || self.writers.contains(&(*step, writer)))
    }
}

/// For each key the last read and how much it showed, if everyone who appended to the key had ended before it began (or never said so).
fn final_reads(history: &History) -> Vec<Option<(u32, usize)>> {
    let mut ended = vec![0; history.keys.len()];
    for transaction in &history.transactions {
        for step in &transaction.steps {
            if let (Step::Append(key, _), true) = (step, transaction.ended < u64::MAX) {
                let ended = &mut ended[*key as usize];
                *ended = transaction.ended.max(*ended);
            }
        }
    }
    let mut finals = vec![None; history.keys.len()];
    for (reader, key, values) in reads(history) {
        if history.transactions[reader as usize].invoked > ended[key as usize] {
            finals[key as usize] = Some((reader, values.len()));
        }
    }
    finals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Level, Op, Options, Phase, check};
    use vellum_base::random::Random;

    #[test]
    fn prop_a_proof_is_the_least_of_all_behind() {
        for seed in 0..5000 {
            let mut random = Random::new(seed);
            let count = random.between(1, 12) as usize;
            let mut proven: Vec<u64> = (0..count).map(|_| random.below(8)).collect();
            let one = |random: &mut Random| random.below(count as u64) as u32;
            let mut before: Vec<Vec<u32>> = (0..count)
                .map(|_| (0..random.below(3)).map(|_| one(&mut random)).collect())
                .collect();
            let mut expected = proven.clone();
            for _ in 0..count {
                for (transaction, all) in before.iter().enumerate() {
                    for earlier in all {
                        expected[*earlier as usize] =
                            expected[transaction].min(expected[*earlier as usize]);
                    }
                }
            }
            let mut by_proof: Vec<u32> = (0..count as u32).collect();
            by_proof.sort_by_key(|transaction| proven[*transaction as usize]);
            spread(&mut proven, &mut before, &by_proof);
            assert_eq!(proven, expected, "seed {seed}");
        }
    }

    /// Transactions of unknown end, each of which appends to a list and behind the next one to the list before; one acknowledged append behind the last of them, so that all of them
    /// have committed; and one that reads all lists when everybody has ended. It reads `missed`, too, to which the first transaction appended, as empty.
    fn chain_of_unknown_ends(count: u64, missed: bool) -> History {
        let (first, last, other) = (0, count - 1, count);
        let mut number = 0;
        let mut events = Vec::new();
        let mut run = |t: u64, end: Phase, ops: &[Op]| {
            for (f, ops) in [(Phase::Invoke, &[][..]), (end, ops)] {
                number += 1;
                events.push(Event {
                    i: number,
                    p: t,
                    t,
                    f,
                    ts: number,
                    lvl: Some(Level::ReadCommitted),
                    ops: ops.to_vec(),
                });
            }
        };
        for t in first..count {
            let mut ops = vec![Op::append(t, 2 * t)];
            ops.extend((t > first).then(|| Op::append(t - 1, 2 * t + 1)));
            ops.extend((missed && t == first).then(|| Op::append(other, 0)));
            run(t, Phase::Info, &ops);
        }
        run(count, Phase::Ok, &[Op::append(last, 2 * count + 1)]);
        let missing = missed.then(|| Op::read(other, []));
        let reads = (first..count).map(|t| Op::read(t, [2 * t, 2 * t + 3]));
        run(
            count + 1,
            Phase::Ok,
            &missing.into_iter().chain(reads).collect::<Vec<_>>(),
        );
        History::from_events(events).unwrap()
    }

    /// Symptom: 20,000 such transactions took the checker a minute. Cause: all lists were gone over for each step of a proof from list to list. Guard: `spread`.
    #[test]
    fn regress_a_proof_that_goes_over_many_lists_is_found_and_costs_no_more_than_they_are() {
        const COUNT: u64 = 20_000;
        let report = check(&chain_of_unknown_ends(COUNT, false), Options::default());
        assert!(report.anomalies.is_empty(), "{report}");
        assert_eq!(report.committed as u64, COUNT + 2);
        // The append behind the last one is all that proves the first one's.
        let report = check(&chain_of_unknown_ends(COUNT, true), Options::default());
        let lost: Vec<_> = report.forbidden().collect();
        assert_eq!(lost.len(), 1, "{report}");
        assert_eq!(
            (lost[0].name, &lost[0].transactions[..]),
            (Name::LostAppend, &[0, COUNT as u32 + 1][..])
        );
    }
}
