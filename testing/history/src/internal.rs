//! Whether a transaction agrees with itself, and what it read from others.
//!
//! Rules (levels in brackets where it depends):
//! - a read ends with what the transaction appended to the key before, in that order;
//! - without that it is what the transaction read of the key before (snapshot, serializable); read committed may see more each time;
//! - nothing that it appends later is in it;
//! - what it appends to a key stands there in the order of the appends.
//!
//! What is left is what it read from others; whose last it is must be that transaction's last word on the key (G1b).

use crate::anomaly::{Anomaly, Name};
use crate::event::Level;
use crate::history::{History, Outcome, Step};
use crate::versions::{Orders, list, plain, who};
use std::collections::HashMap;

/// A read of what others appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct External {
    /// Who read.
    pub transaction: u32,
    /// What.
    pub key: u32,
    /// How many versions it saw.
    pub length: u32,
}

/// What a transaction knows of a key.
#[derive(Debug, Default)]
struct Known<'h> {
    /// What it appended so far.
    own: Vec<u64>,
    /// What it read last, and how much of its own was in it.
    read: Option<(&'h [u64], usize)>,
    /// How much of others' it has read at most.
    external: usize,
}

/// Goes through every acknowledged transaction; returns what they read from others.
pub fn externals(
    history: &History,
    orders: &Orders,
    anomalies: &mut Vec<Anomaly>,
) -> Vec<External> {
    look_at_own_order(history, orders, anomalies);
    let mut externals = Vec::new();
    let mut keys: HashMap<u32, Known<'_>> = HashMap::new();
    for (at, transaction) in (0_u32..).zip(&history.transactions) {
        if transaction.outcome != Outcome::Committed {
            continue;
        }
        keys.clear();
        for step in &transaction.steps {
            match step {
                Step::Append(key, value) => {
                    let known = keys.entry(*key).or_default();
                    if known.external > 0 && was_seen(orders, *key, *value, known) {
                        let (me, name) = (who(history, at), history.key(*key));
                        let story =
                            format!("{me} read {value} in key {name} before it appended it");
                        anomalies.push(plain(Name::Internal, &[at], story));
                    }
                    known.own.push(*value);
                }
                Step::Read(key, Some(values)) => {
                    let known = keys.entry(*key).or_default();
                    let read = read(history, orders, at, *key, values, known);
                    match read {
                        Read::Wrong(expected) => {
                            let (me, name) = (who(history, at), history.key(*key));
                            let values = list(values);
                            let story = format!(
                                "{me} read key {name} as {values}, where it must be {expected}"
                            );
                            anomalies.push(plain(Name::Internal, &[at], story));
                        }
                        Read::External(external, intermediate) => {
                            // In the middle of a transaction there is no place before or behind it.
                            match intermediate {
                                Some(intermediate) => anomalies.push(intermediate),
                                None => externals.push(external),
                            }
                        }
                        Read::Known => {}
                    }
                }
                Step::Read(_, None) => {}
            }
        }
    }
    externals
}

/// Also for those of which nobody knows the end, if they are there.
fn look_at_own_order(history: &History, orders: &Orders, anomalies: &mut Vec<Anomaly>) {
    let mut places: HashMap<u32, u32> = HashMap::new();
    for (at, transaction) in (0_u32..).zip(&history.transactions) {
        if !orders.there[at as usize] {
            continue;
        }
        places.clear();
        for step in &transaction.steps {
            let Step::Append(key, value) = *step else {
                continue;
            };
            let place = orders
                .writer(key, value)
                .map_or(u32::MAX, |writer| writer.place);
            if place == u32::MAX {
                continue;
            }
            if places
                .insert(key, place)
                .is_some_and(|before| before > place)
            {
                let (me, name) = (who(history, at), history.key(key));
                let story =
                    format!("{value} stands in key {name} before what {me} appended to it earlier");
                anomalies.push(plain(Name::Internal, &[at], story));
            }
        }
    }
}

enum Read {
    /// And what it should have been.
    Wrong(String),
    External(External, Option<Anomaly>),
    /// Nothing new, or nothing that has a place in the order.
    Known,
}

fn read<'h>(
    history: &'h History,
    orders: &Orders,
    at: u32,
    key: u32,
    values: &'h [u64],
    known: &mut Known<'h>,
) -> Read {
    let again = history.transactions[at as usize].level > Level::ReadCommitted;
    if let (Some((before, own)), true) = (known.read, again) {
        let new = &known.own[own..];
        let same = values.len() == before.len() + new.len()
            && values.starts_with(before)
            && values.ends_with(new);
        if !same {
            let expected: Vec<u64> = before.iter().chain(new).copied().collect();
            return Read::Wrong(list(&expected));
        }
        known.read = Some((values, known.own.len()));
        return Read::Known;
    }
    if !values.ends_with(&known.own) {
        return Read::Wrong(format!("something that ends with {}", list(&known.own)));
    }
    known.read = Some((values, known.own.len()));
    if !orders.keys[key as usize].order.starts_with(values) {
        // Told elsewhere; it has no place in the order.
        return Read::Known;
    }
    let length = values.len() - known.own.len();
    known.external = known.external.max(length);
    let external = External {
        transaction: at,
        key,
        length: length as u32,
    };
    let last = length.checked_sub(1).map(|last| values[last]);
    let Some((value, writer)) = last.and_then(|last| Some((last, orders.writer(key, last)?)))
    else {
        return Read::External(external, None);
    };
    let from = writer.transaction;
    let committed = !writer.dropped && orders.there[from as usize];
    let intermediate = (!writer.last && from != at && committed).then(|| {
        let (me, name, from_name) = (who(history, at), history.key(key), who(history, from));
        let story = format!(
            "{me} read key {name} up to {value}, after which {from_name} appended more to it in the same transaction"
        );
        plain(Name::G1b, &[from, at], story)
    });
    Read::External(external, intermediate)
}

/// Whether a value that is about to be appended stands in what was read from others.
fn was_seen(orders: &Orders, key: u32, value: u64, known: &Known<'_>) -> bool {
    let place = orders
        .writer(key, value)
        .map_or(u32::MAX, |writer| writer.place);
    (place as usize) < known.external
}
