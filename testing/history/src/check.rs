//! The whole check, with a verdict.

use crate::anomaly::{Anomaly, Name};
use crate::event::Level;
use crate::history::{History, Outcome};
use crate::versions::Orders;
use crate::{dependencies, internal, search, story, unread};
use std::collections::BTreeMap;
use std::fmt;

/// Anomalies of one name that are told; the others are counted.
const TOLD: usize = 5;

/// What is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Judge every transaction as if it had been promised this.
    pub level: Option<Level>,
    /// Whether a transaction must see everything that was acknowledged before it began.
    pub real_time: bool,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Transactions that committed, one with an unknown end included if somebody read what it appended.
    pub committed: usize,
    /// Transactions that were rolled back.
    pub aborted: usize,
    /// Transactions of which nobody knows, and nobody read anything.
    pub unknown: usize,
    /// Keys.
    pub keys: usize,
    /// Keys without a final read: lost appends are not looked for there.
    pub keys_without_final_read: usize,
    /// Dependencies between transactions.
    pub edges: usize,
    /// Everything that was found, what the levels allow included.
    pub anomalies: Vec<Anomaly>,
}

impl Report {
    /// Whether the history keeps the promise of its levels.
    pub fn is_clean(&self) -> bool {
        self.forbidden().next().is_none()
    }

    /// What the levels forbid.
    pub fn forbidden(&self) -> impl Iterator<Item = &Anomaly> {
        self.anomalies.iter().filter(|anomaly| anomaly.forbidden)
    }

    /// Whether an anomaly of this name was found, forbidden or not.
    pub fn has(&self, name: Name) -> bool {
        self.anomalies.iter().any(|anomaly| anomaly.name == name)
    }
}

/// Checks a history. Linear in its length, but for the search for the shortest witness of what is wrong, which has a budget. The length is that of all that was read, too:
/// a list that every transaction reads to its end makes a history that is quadratic in them.
pub fn check(history: &History, options: Options) -> Report {
    let promised;
    let history = match options.level {
        None => history,
        Some(level) => {
            promised = history.clone().at_level(level);
            &promised
        }
    };
    let mut anomalies = Vec::new();
    let orders = Orders::find(history, &mut anomalies);
    let externals = internal::externals(history, &orders, &mut anomalies);
    let mut edges = dependencies::edges(history, &orders, &externals);
    edges.extend(unread::edges(history, &orders, &edges));
    let mut cycles = search::cycles(history, &edges, options.real_time);
    for cycle in &mut cycles {
        cycle.story = story::tell(history, &orders, cycle);
    }
    anomalies.extend(cycles);
    anomalies.sort_by_key(|anomaly| (!anomaly.forbidden, anomaly.name));
    let committed = orders.there.iter().filter(|there| **there).count();
    let aborted = |outcome| outcome == Outcome::Aborted;
    let aborted = history
        .transactions
        .iter()
        .filter(|t| aborted(t.outcome))
        .count();
    Report {
        committed,
        aborted,
        unknown: history.transactions.len() - committed - aborted,
        keys: history.keys.len(),
        keys_without_final_read: orders.keys.iter().filter(|key| !key.has_final_read).count(),
        edges: edges.len(),
        anomalies,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            committed,
            aborted,
            unknown,
            keys,
            edges,
            ..
        } = self;
        writeln!(
            f,
            "{committed} transactions committed, {aborted} rolled back, {unknown} unknown; {keys} keys, {edges} dependencies"
        )?;
        if self.keys_without_final_read > 0 {
            let keys = self.keys_without_final_read;
            writeln!(
                f,
                "{keys} keys have no final read: lost appends were not looked for there"
            )?;
        }
        let mut told: BTreeMap<(bool, String), usize> = BTreeMap::new();
        for anomaly in &self.anomalies {
            let count = told
                .entry((!anomaly.forbidden, anomaly.title()))
                .or_default();
            *count += 1;
            if *count > TOLD {
                continue;
            }
            let allowed = if anomaly.forbidden {
                ""
            } else {
                ", which the level allows"
            };
            match anomaly.cycle.len() {
                0 => writeln!(f, "{}: {}", anomaly.title(), anomaly.story)?,
                length => writeln!(
                    f,
                    "{}{allowed}: a cycle of {length} transactions\n{}",
                    anomaly.title(),
                    anomaly.story
                )?,
            }
        }
        for ((_, title), count) in told.iter().filter(|(_, count)| **count > TOLD) {
            writeln!(f, "{title}: {} more", count - TOLD)?;
        }
        let forbidden = self.forbidden().count();
        match forbidden {
            0 => write!(f, "valid"),
            _ => write!(f, "INVALID: {forbidden} anomalies"),
        }
    }
}
