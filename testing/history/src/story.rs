//! An anomaly told to a person: who took part, and why each comes before the next.

use crate::anomaly::Anomaly;
use crate::graph::{Edge, Why};
use crate::history::{History, Outcome, Step, Transaction};
use crate::versions::{Orders, list, who};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Steps of a transaction that are shown.
const STEPS: usize = 12;

/// Tells a cycle.
pub fn tell(history: &History, orders: &Orders, anomaly: &Anomaly) -> String {
    let mut out = String::new();
    let keys: BTreeSet<u32> = anomaly.cycle.iter().map(|edge| edge.key).collect();
    for at in &anomaly.transactions {
        let text = transaction(history, &history.transactions[*at as usize], &keys);
        let _ = writeln!(out, "  {text}");
    }
    for edge in &anomaly.cycle {
        let (from, to) = (who(history, edge.from), who(history, edge.to));
        let _ = writeln!(
            out,
            "  {from} is before {to}: {}.",
            because(history, orders, edge)
        );
    }
    if let Some(first) = anomaly.transactions.first() {
        let _ = write!(out, "  So {} is before itself.", who(history, *first));
    }
    out
}

fn because(history: &History, orders: &Orders, edge: &Edge) -> String {
    let (from, to) = (who(history, edge.from), who(history, edge.to));
    let key = history.key(edge.key);
    let value = edge.value;
    match edge.why {
        Why::Ww => {
            let place = orders
                .writer(edge.key, value)
                .map_or(u32::MAX, |writer| writer.place);
            let versions = &orders.keys[edge.key as usize];
            let before = versions.valid.iter().rev().find(|valid| **valid < place);
            match before.filter(|_| place < u32::MAX) {
                Some(before) => {
                    let before = versions.order[*before as usize];
                    format!(
                        "{from} appended {before} to key {key}, {to} appended {value} behind it"
                    )
                }
                None => format!("{from} appended to key {key} first, then {to} appended {value}"),
            }
        }
        Why::Wr => format!("{from} appended {value} to key {key}, and {to} read it"),
        Why::Rw => format!("{from} read key {key} without {value}, which {to} appended"),
        Why::Time => format!("{from} had ended before {to} began"),
        Why::Inner => format!("{from} began before it committed"),
    }
}

/// A transaction in a line; of a long one the steps on these keys.
fn transaction(history: &History, transaction: &Transaction, keys: &BTreeSet<u32>) -> String {
    let Transaction {
        id, session, level, ..
    } = transaction;
    let mut out = format!("T{id} (session {session}, {level}");
    if transaction.outcome == Outcome::Unknown {
        out.push_str(", its end is not known");
    }
    out.push_str("):");
    let long = transaction.steps.len() > STEPS;
    for step in &transaction.steps {
        let (key, text) = match step {
            Step::Append(key, value) => (key, format!("a {} {value}", history.key(*key))),
            Step::Read(key, values) => {
                let values = values
                    .as_ref()
                    .map_or_else(|| "?".into(), |values| list(values));
                (key, format!("r {} {values}", history.key(*key)))
            }
        };
        if !long || keys.contains(key) {
            let _ = write!(out, " {text};");
        }
    }
    if long {
        out.push_str(" …");
    }
    out
}
