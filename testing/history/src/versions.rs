//! The order of each key's versions, and what single reads and appends tell without any graph.
//!
//! The versions of a key stand in the order of the longest read that was acknowledged; every other read must be its beginning. Appends
//! of transactions that nobody knows the end of happened if anybody read one of them.
//!
//! Invariants:
//! - I1 `order` holds a value once; `valid` are the places of those that count: appended by a transaction that committed.
//! - I2 Whoever is not `there` has no edge.

use crate::anomaly::{Anomaly, Name};
use crate::finals;
use crate::history::{History, Outcome, Step};
use std::collections::{HashMap, HashSet};

/// Who appended a value.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// Position of the transaction.
    pub transaction: u32,
    /// Whether it is what the transaction appended last to the key.
    pub last: bool,
    /// The transaction ended without having done it.
    pub dropped: bool,
    /// Where it stands in the order; `u32::MAX` if nobody read it.
    pub place: u32,
}

/// The versions of one key.
#[derive(Clone, Debug, Default)]
pub struct Versions {
    /// The longest read.
    pub order: Vec<u64>,
    /// Who read it.
    pub reader: u32,
    /// I1.
    pub valid: Vec<u32>,
    /// How many valid ones stand before each place.
    rank: Vec<u32>,
    /// Transactions that are there and whose appends nobody read, though nobody can say that they are lost.
    pub unread: Vec<(u32, u64)>,
    /// Whether somebody read it after everyone had ended who appended to it.
    pub has_final_read: bool,
}

impl Versions {
    /// The places of the versions right before and right behind the beginning of a length.
    pub fn around(&self, length: usize) -> (Option<u32>, Option<u32>) {
        let rank = self.rank[length] as usize;
        let before = rank.checked_sub(1).map(|rank| self.valid[rank]);
        (before, self.valid.get(rank).copied())
    }
}

/// The versions of all keys.
#[derive(Debug)]
pub struct Orders {
    /// By key.
    pub keys: Vec<Versions>,
    /// I2, by transaction.
    pub there: Vec<bool>,
    writers: HashMap<(u32, u64), Writer>,
}

/// What acknowledged transactions read: their positions, the keys, the lists.
pub fn reads(history: &History) -> impl Iterator<Item = (u32, u32, &[u64])> {
    let acknowledged = (0..)
        .zip(&history.transactions)
        .filter(|(_, transaction)| transaction.outcome == Outcome::Committed);
    acknowledged.flat_map(|(at, transaction)| {
        transaction.steps.iter().filter_map(move |step| match step {
            Step::Read(key, Some(values)) => Some((at, *key, values.as_slice())),
            _ => None,
        })
    })
}

impl Orders {
    /// Finds the orders; adds what is wrong with single reads and appends to `anomalies`.
    pub fn find(history: &History, anomalies: &mut Vec<Anomaly>) -> Self {
        let there = |outcome| outcome == Outcome::Committed;
        let mut orders = Self {
            keys: vec![Versions::default(); history.keys.len()],
            there: history
                .transactions
                .iter()
                .map(|t| there(t.outcome))
                .collect(),
            writers: writers(history),
        };
        for (reader, key, values) in reads(history) {
            let versions = &mut orders.keys[key as usize];
            if values.len() > versions.order.len() || versions.order.is_empty() {
                versions.reader = reader;
                if values.len() > versions.order.len() {
                    versions.order = values.to_vec();
                }
            }
        }
        // What is told of a value is told once.
        let mut told = HashSet::new();
        for key in 0..history.keys.len() as u32 {
            orders.look_at_longest(history, key, &mut told, anomalies);
        }
        for (reader, key, values) in reads(history) {
            if !orders.keys[key as usize].order.starts_with(values) {
                orders.look_at_other(history, reader, key, values, &mut told, anomalies);
            }
        }
        orders.count_valid();
        finals::look_at_appends(&mut orders, history, anomalies);
        orders
    }

    /// Who appended a value.
    pub fn writer(&self, key: u32, value: u64) -> Option<&Writer> {
        self.writers.get(&(key, value))
    }

    /// The transaction that appended a version.
    pub fn writer_at(&self, key: u32, place: u32) -> u32 {
        let value = self.keys[key as usize].order[place as usize];
        self.writers[&(key, value)].transaction
    }

    /// Gives the values of the longest read their places.
    fn look_at_longest(
        &mut self,
        history: &History,
        key: u32,
        told: &mut HashSet<(u32, u64)>,
        anomalies: &mut Vec<Anomaly>,
    ) {
        let reader = self.keys[key as usize].reader;
        let values = std::mem::take(&mut self.keys[key as usize].order);
        let (mut order, mut seen) = (Vec::with_capacity(values.len()), HashSet::new());
        for value in values {
            if !seen.insert(value) {
                if told.insert((key, value)) {
                    anomalies.push(duplicate(history, reader, key, value));
                }
                continue;
            }
            if let Some(found) = self.judge(history, reader, key, value) {
                told.insert((key, value));
                anomalies.push(found);
            }
            if let Some(writer) = self.writers.get_mut(&(key, value)) {
                writer.place = order.len() as u32;
            }
            order.push(value);
        }
        self.keys[key as usize].order = order;
    }

    /// Looks at a read that is not the beginning of the longest.
    fn look_at_other(
        &mut self,
        history: &History,
        reader: u32,
        key: u32,
        values: &[u64],
        told: &mut HashSet<(u32, u64)>,
        anomalies: &mut Vec<Anomaly>,
    ) {
        let mut explained = false;
        let mut seen = HashSet::new();
        for value in values {
            if !seen.insert(*value) {
                explained = true;
                if told.insert((key, *value)) {
                    anomalies.push(duplicate(history, reader, key, *value));
                }
            } else if let Some(found) = self.judge(history, reader, key, *value) {
                explained = true;
                if told.insert((key, *value)) {
                    anomalies.push(found);
                }
            }
        }
        let versions = &self.keys[key as usize];
        // The longest read may itself have a value twice, which the order has once.
        if !explained && !versions.order.starts_with(values) {
            let (name, longest) = (history.key(key), versions.reader);
            let story = format!(
                "{} read key {name} as {}, {} as {}: neither is the beginning of the other",
                who(history, reader),
                list(values),
                who(history, longest),
                list(&versions.order)
            );
            anomalies.push(plain(Name::IncompatibleOrder, &[longest, reader], story));
        }
    }

    /// What is wrong with reading a value, if anything; who appended it is there from now on.
    fn judge(&mut self, history: &History, reader: u32, key: u32, value: u64) -> Option<Anomaly> {
        let (name, reader_name) = (history.key(key), who(history, reader));
        let Some(writer) = self.writers.get(&(key, value)) else {
            let story = format!("{reader_name} read {value} in key {name}, which nobody appended");
            return Some(plain(Name::GarbageRead, &[reader], story));
        };
        let transaction = writer.transaction;
        let outcome = history.transactions[transaction as usize].outcome;
        if writer.dropped || outcome == Outcome::Aborted {
            let writer = who(history, transaction);
            let story = format!(
                "{reader_name} read {value} in key {name}, which {writer} appended and rolled back"
            );
            return Some(plain(Name::G1a, &[transaction, reader], story));
        }
        self.there[transaction as usize] = true;
        None
    }

    fn count_valid(&mut self) {
        for (key, versions) in (0..).zip(&mut self.keys) {
            versions.rank = Vec::with_capacity(versions.order.len() + 1);
            for (place, value) in (0..).zip(&versions.order) {
                versions.rank.push(versions.valid.len() as u32);
                let writer = self.writers.get(&(key, *value));
                if writer.is_some_and(|w| !w.dropped && self.there[w.transaction as usize]) {
                    versions.valid.push(place);
                }
            }
            versions.rank.push(versions.valid.len() as u32);
        }
    }
}

fn writers(history: &History) -> HashMap<(u32, u64), Writer> {
    let mut writers = HashMap::new();
    let mut later = HashSet::new();
    for (transaction, t) in (0..).zip(&history.transactions) {
        let place = u32::MAX;
        later.clear();
        for step in t.steps.iter().rev() {
            if let Step::Append(key, value) = *step {
                let last = later.insert(key);
                let dropped = false;
                writers.insert(
                    (key, value),
                    Writer {
                        transaction,
                        last,
                        dropped,
                        place,
                    },
                );
            }
        }
        for append in &t.dropped {
            let (last, dropped) = (false, true);
            writers.insert(
                *append,
                Writer {
                    transaction,
                    last,
                    dropped,
                    place,
                },
            );
        }
    }
    writers
}

/// An anomaly that is no cycle: no level allows it.
pub fn plain(name: Name, transactions: &[u32], story: String) -> Anomaly {
    Anomaly {
        name,
        kind: None,
        real_time: false,
        forbidden: true,
        transactions: transactions.to_vec(),
        cycle: Vec::new(),
        story,
    }
}

fn duplicate(history: &History, reader: u32, key: u32, value: u64) -> Anomaly {
    let (name, reader_name) = (history.key(key), who(history, reader));
    let story = format!("{reader_name} read {value} twice in key {name}");
    plain(Name::DuplicateAppend, &[reader], story)
}

/// How a transaction is called in stories.
pub fn who(history: &History, transaction: u32) -> String {
    format!("T{}", history.transactions[transaction as usize].id)
}

/// A list as it is told: its end, if it is long.
pub fn list(values: &[u64]) -> String {
    const SHOWN: usize = 8;
    let shown = &values[values.len().saturating_sub(SHOWN)..];
    let text: Vec<String> = shown.iter().map(ToString::to_string).collect();
    let before = values.len() - shown.len();
    if before > 0 {
        return format!("[… {before} more, {}]", text.join(" "));
    }
    format!("[{}]", text.join(" "))
}
