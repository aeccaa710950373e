//! In which order the appends stand that nobody read.
//!
//! Where a key has no final read, of two such appends either may be first. What else is known may leave one order only, or none: a transaction that was
//! promised a snapshot and appends to a key has seen everybody who is before it there, so two of them that overlap cannot both append, in
//! whatever order. Here each pair is tried both ways until nothing follows any more, and then the pairs that are still open are tried together.
//!
//! What is found are edges: forced ones, and if there is no way at all, those of the last attempt, which close a cycle.
//!
//! Not checked: keys with more than `UNREAD_MAX` such appends, and what `BUDGET` does not reach: then a cycle may be missed. Real time.

use crate::event::Level;
use crate::graph::{Components, Edge, Graph, Why};
use crate::history::History;
use crate::search::{instants, order_graph};
use crate::versions::Orders;
use std::collections::{BTreeMap, HashMap};

/// Appends to a key, of which nobody read any, that are tried in every order.
const UNREAD_MAX: usize = 16;
/// Edges that may be looked at.
const BUDGET: u64 = 5_000_000;

/// Edges between transactions that appended to the same key without being read.
pub fn edges(history: &History, orders: &Orders, known: &[Edge]) -> Vec<Edge> {
    let mut pairs = BTreeMap::new();
    for (key, versions) in (0..).zip(&orders.keys) {
        let mut unread = versions.unread.clone();
        unread.dedup_by_key(|(transaction, _)| *transaction);
        if unread.len() > UNREAD_MAX {
            continue;
        }
        for (at, (first, first_value)) in unread.iter().enumerate() {
            for (second, second_value) in &unread[at + 1..] {
                let edge = |from: u32, to: u32, value: u64| Edge {
                    from,
                    to,
                    why: Why::Ww,
                    key,
                    value,
                };
                let ways = [
                    edge(*first, *second, *second_value),
                    edge(*second, *first, *first_value),
                ];
                pairs.entry((*first, *second)).or_insert(ways);
            }
        }
    }
    if pairs.is_empty() {
        return Vec::new();
    }
    let levels: Vec<Level> = history.transactions.iter().map(|t| t.level).collect();
    let graph = order_graph(&levels, known, &[]);
    if Components::of(&graph, u8::MAX).any() {
        // There is a cycle without them.
        return Vec::new();
    }
    let mut solver = Solver {
        levels: &levels,
        reached: vec![0; graph.nodes()],
        graph: &graph,
        added: HashMap::new(),
        edges: Vec::new(),
        round: 0,
        budget: BUDGET,
    };
    let open: Vec<[Edge; 2]> = pairs.into_values().collect();
    let (sound, open) = solver.follow(open);
    if sound && !open.is_empty() {
        let forced = solver.edges.len();
        if solver.try_all(open) != Tried::Impossible {
            // Some order is right, or nobody knows.
            solver.edges.truncate(forced);
        }
    }
    solver.edges
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    Possible,
    Impossible,
    Unknown,
}

struct Solver<'g> {
    levels: &'g [Level],
    graph: &'g Graph,
    /// What was added to the graph.
    added: HashMap<u32, Vec<u32>>,
    edges: Vec<Edge>,
    reached: Vec<u32>,
    round: u32,
    budget: u64,
}

impl Solver<'_> {
    /// Whether one instant is before another, as far as is known.
    fn leads(&mut self, from: u32, to: u32) -> bool {
        self.round += 1;
        let mut queue = vec![from];
        self.reached[from as usize] = self.round;
        while let Some(node) = queue.pop() {
            if node == to {
                return true;
            }
            let added = self.added.get(&node).into_iter().flatten().copied();
            for next in self.graph.out(node).iter().map(|edge| edge.to).chain(added) {
                self.budget = self.budget.saturating_sub(1);
                if self.reached[next as usize] != self.round {
                    self.reached[next as usize] = self.round;
                    queue.push(next);
                }
            }
        }
        false
    }

    fn contradicts(&mut self, edge: &Edge) -> bool {
        let (from, to) = instants(self.levels, edge);
        self.leads(to, from)
    }

    fn add(&mut self, edge: Edge) {
        let (from, to) = instants(self.levels, &edge);
        self.added.entry(from).or_default().push(to);
        self.edges.push(edge);
    }

    fn take_back(&mut self, to: usize) {
        while self.edges.len() > to {
            if let Some(edge) = self.edges.pop() {
                let (from, _) = instants(self.levels, &edge);
                self.added.get_mut(&from).and_then(Vec::pop);
            }
        }
    }

    /// Adds what follows, until nothing does: whether there is no contradiction, and the pairs that are still open.
    fn follow(&mut self, mut open: Vec<[Edge; 2]>) -> (bool, Vec<[Edge; 2]>) {
        loop {
            let before = open.len();
            let mut rest = Vec::new();
            for [one, other] in open {
                if self.budget == 0 {
                    return (true, Vec::new());
                }
                match (self.contradicts(&one), self.contradicts(&other)) {
                    (false, false) => rest.push([one, other]),
                    (false, true) => self.add(one),
                    (true, false) => self.add(other),
                    (true, true) => {
                        self.add(one);
                        return (false, Vec::new());
                    }
                }
            }
            if rest.len() == before {
                return (true, rest);
            }
            open = rest;
        }
    }

    /// Whether there is a way to order all of them; after `Impossible` the edges of one that closes a cycle are there.
    fn try_all(&mut self, open: Vec<[Edge; 2]>) -> Tried {
        let Some(([one, other], rest)) = open.split_first() else {
            return match self.budget {
                0 => Tried::Unknown,
                _ => Tried::Possible,
            };
        };
        for (edge, last) in [(*one, false), (*other, true)] {
            let before = self.edges.len();
            self.add(edge);
            let (sound, open) = self.follow(rest.to_vec());
            let tried = match sound {
                true => self.try_all(open),
                false => Tried::Impossible,
            };
            if tried != Tried::Impossible {
                return tried;
            }
            if !last {
                self.take_back(before);
            }
        }
        Tried::Impossible
    }
}
