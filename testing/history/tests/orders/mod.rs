//! Brute force: tries every order of begins and commits.

use std::collections::BTreeMap;
use vellum_history::Level;
use vellum_history::history::{History, Outcome, Step};

type Lists = BTreeMap<u32, Vec<u64>>;

/// Whether some order explains what everyone saw, the last transaction being behind all of which the end is known.
pub fn explained(history: &History, level: Level) -> bool {
    let count = history.transactions.len();
    let unknown: Vec<usize> = (0..count)
        .filter(|at| history.transactions[*at].outcome == Outcome::Unknown)
        .collect();
    // Each that nobody knows happened or did not.
    (0..1_u32 << unknown.len()).any(|happened| {
        let there = |at: &usize| match history.transactions[*at].outcome {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => {
                let bit = unknown
                    .iter()
                    .position(|other| other == at)
                    .expect("it is one");
                happened >> bit & 1 == 1
            }
        };
        let all: Vec<usize> = (0..count).filter(there).collect();
        let mut state = State {
            history,
            level,
            waiting: all,
            begun: Vec::new(),
            states: vec![Lists::new()],
        };
        state.any_order()
    })
}

struct State<'h> {
    history: &'h History,
    level: Level,
    /// Not begun.
    waiting: Vec<usize>,
    /// Begun, with how many had committed then.
    begun: Vec<(usize, usize)>,
    /// What was committed, after each commit.
    states: Vec<Lists>,
}

impl State<'_> {
    fn any_order(&mut self) -> bool {
        if self.waiting.is_empty() && self.begun.is_empty() {
            return true;
        }
        for at in 0..self.waiting.len() {
            let transaction = self.waiting[at];
            let is_last = transaction + 1 == self.history.transactions.len();
            let is_known =
                |at: &usize| self.history.transactions[*at].outcome == Outcome::Committed;
            let others = self.waiting.iter().filter(|at| is_known(at)).count() > 1
                || self.begun.iter().any(|(at, _)| is_known(at));
            if is_last && others {
                continue;
            }
            let now = self.states.len() - 1;
            if self.level == Level::Snapshot && !self.sees(transaction, &self.states[now]) {
                continue;
            }
            self.waiting.remove(at);
            let found = if self.level == Level::Snapshot
                || (is_last && self.level == Level::ReadCommitted)
            {
                self.begun.push((transaction, now));
                let found = self.any_order();
                self.begun.pop();
                found
            } else {
                // One instant is enough: that of the commit.
                self.commit(transaction, now)
            };
            self.waiting.insert(at, transaction);
            if found {
                return true;
            }
        }
        for at in 0..self.begun.len() {
            let (transaction, snapshot) = self.begun.remove(at);
            let found = self.commit(transaction, snapshot);
            self.begun.insert(at, (transaction, snapshot));
            if found {
                return true;
            }
        }
        false
    }

    fn commit(&mut self, transaction: usize, snapshot: usize) -> bool {
        let now = &self.states[self.states.len() - 1];
        let right = match self.level {
            // The first writer wins: nobody else may have written in between.
            Level::Snapshot => self
                .appends(transaction)
                .all(|(key, _)| self.states[snapshot].get(&key) == now.get(&key)),
            Level::Serializable => self.sees(transaction, now),
            Level::ReadCommitted => self.saw_committed(transaction, snapshot),
        };
        if !right {
            return false;
        }
        let mut next = now.clone();
        for (key, value) in self.appends(transaction) {
            next.entry(key).or_default().push(value);
        }
        self.states.push(next);
        let found = self.any_order();
        self.states.pop();
        found
    }

    fn appends(&self, transaction: usize) -> impl Iterator<Item = (u32, u64)> {
        self.history.transactions[transaction]
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Append(key, value) => Some((*key, *value)),
                Step::Read(..) => None,
            })
    }

    /// Whether every read shows one state and the transaction's own appends.
    fn sees(&self, transaction: usize, lists: &Lists) -> bool {
        let mut lists = lists.clone();
        self.history.transactions[transaction]
            .steps
            .iter()
            .all(|step| match step {
                Step::Append(key, value) => {
                    lists.entry(*key).or_default().push(*value);
                    true
                }
                Step::Read(key, Some(values)) => {
                    lists.get(key).map_or(&[][..], Vec::as_slice) == values
                }
                Step::Read(_, None) => true,
            })
    }

    /// Whether every read shows some state that was committed, and behind it the transaction's own appends; of a list that it has appended
    /// to, the state now, since nobody else may write there. The last transaction began when there were `begun` states: it reads none before that, and
    /// none that is older than what it has read already.
    fn saw_committed(&self, transaction: usize, begun: usize) -> bool {
        let mut own = Lists::new();
        let is_last = transaction + 1 == self.history.transactions.len();
        let mut from = if is_last { begun } else { 0 };
        self.history.transactions[transaction]
            .steps
            .iter()
            .all(|step| match step {
                Step::Append(key, value) => {
                    own.entry(*key).or_default().push(*value);
                    true
                }
                Step::Read(key, Some(values)) => {
                    let own = own.get(key).map_or(&[][..], Vec::as_slice);
                    let now = self.states.len() - 1;
                    let first = if own.is_empty() { from } else { now };
                    let found = self.states[first..].iter().position(|lists| {
                        let before = lists.get(key).map_or(&[][..], Vec::as_slice);
                        values.len() == before.len() + own.len()
                            && values.starts_with(before)
                            && values.ends_with(own)
                    });
                    if is_last {
                        from = first + found.unwrap_or(0);
                    }
                    found.is_some()
                }
                Step::Read(_, None) => true,
            })
    }
}
