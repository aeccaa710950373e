//! Cycles, by the names that they have.
//!
//! Paper: Adya et al. for G0, G1c, G-single, G2-item; Cerone and Gotsman, Theorem 10, for what snapshot isolation forbids: a cycle in
//! `(ww ∪ wr) ; rw?`, which is one without two `rw` in a row.
//!
//! Differences: transactions of several levels may stand in one history. Each that was promised a snapshot becomes two nodes, its begin and
//! its commit; `ww` and `wr` go from commit to begin, `rw` from begin to commit. Serializable is one node. Read committed has two: `ww` and `wr`
//! come to its commit, `rw` leaves its begin, as what it read may be overwritten before it ends, but not before it began; nothing but real
//! time comes to its begin. Every edge then says "before" of two instants, so what the levels forbid together is exactly a cycle in this *order graph*.
//! Why: an `rw` that a serializable transaction is the reader of orders commits, because it must be true at its commit.
//!
//! Invariants:
//! - I1 A shortest cycle of the order graph visits a transaction once: between two visits it could take the edge from begin to commit. So it
//!   is a cycle of transactions.
//!   A shortest walk with two `rw` may visit one twice, where two smaller cycles touch: a longer one that does not is looked for then (`detour.rs`).
//! - I2 If the order graph has a cycle, an anomaly that is forbidden is reported, whatever the budgets of the searches by name.
//!
//! Cost: linear up to the components; the search for shortest witnesses inside them has a budget of edges, so in a component of many
//! thousands of transactions the witness is a short one, not surely the shortest.

use crate::anomaly::{Anomaly, Kind, Name};
use crate::detour::Detours;
use crate::event::Level;
use crate::graph::{ALL, Components, DEPENDENCIES, Edge, Graph, Walker, Why};
use crate::history::{History, Outcome};
use std::collections::{HashMap, HashSet};

/// Edges that the search for one name may look at.
const BUDGET: u64 = 20_000_000;
/// Witnesses of a name, each from a component of its own.
const WITNESSES: usize = 5;

/// Names of cycles in a history with these edges between its transactions; stories are not yet told.
pub fn cycles(history: &History, edges: &[Edge], real_time: bool) -> Vec<Anomaly> {
    let levels: Vec<Level> = history.transactions.iter().map(|t| t.level).collect();
    let graph = Graph::new(levels.len(), edges);
    let mut search = Search {
        levels: &levels,
        graph: &graph,
        found: Vec::new(),
    };
    let all = Components::of(&graph, ALL);
    if all.any() {
        search.writes();
        search.dependencies();
        // As if everyone had a snapshot: what is left in a component are cycles without two `rw` in a row.
        let snapshots = vec![Level::Snapshot; levels.len()];
        let split = order_graph(&snapshots, edges, &[]);
        let parts = Components::of(&split, u8::MAX);
        if parts.any() {
            search.single(&parts);
            search.nonadjacent(&split, &parts);
        }
        search.write_skew(&all);
        search.complete(edges, &[]);
    }
    if real_time && !search.found.iter().any(|anomaly| anomaly.forbidden) {
        search.complete(edges, &time_edges(history));
    }
    search.found
}

/// Node of a transaction's begin; that of its commit is the transaction's own number.
fn begin(levels: &[Level], transaction: u32) -> u32 {
    match levels[transaction as usize] {
        Level::Serializable => transaction,
        _ => transaction + levels.len() as u32,
    }
}

/// Node at which a transaction has seen what it depends on.
fn entry(levels: &[Level], transaction: u32) -> u32 {
    match levels[transaction as usize] {
        Level::Snapshot => begin(levels, transaction),
        _ => transaction,
    }
}

/// The instants that an edge is about.
pub(crate) fn instants(levels: &[Level], edge: &Edge) -> (u32, u32) {
    match edge.why {
        Why::Rw => (begin(levels, edge.from), edge.to),
        _ => (edge.from, entry(levels, edge.to)),
    }
}

/// Turns edges between transactions into edges between instants.
pub(crate) fn order_graph(levels: &[Level], edges: &[Edge], time: &[Edge]) -> Graph {
    let transactions = levels.len() as u32;
    let mut order = Vec::with_capacity(edges.len() + time.len() + levels.len());
    for edge in edges {
        let (from, to) = instants(levels, edge);
        order.push(Edge { from, to, ..*edge });
    }
    let mut nodes = 2 * transactions;
    for edge in time {
        let to = if edge.to < transactions {
            begin(levels, edge.to)
        } else {
            edge.to
        };
        nodes = nodes.max(edge.from + 1).max(to + 1);
        order.push(Edge { to, ..*edge });
    }
    for transaction in 0..transactions {
        let from = begin(levels, transaction);
        if from != transaction {
            order.push(Edge {
                from,
                to: transaction,
                why: Why::Inner,
                key: 0,
                value: 0,
            });
        }
    }
    Graph::new(nodes as usize, &order)
}

/// Who had ended before another began, over a chain of instants behind all other nodes: as many edges as events.
fn time_edges(history: &History) -> Vec<Edge> {
    let transactions = history.transactions.len() as u32;
    let mut events: Vec<(u64, bool, u32)> = Vec::new();
    for (at, transaction) in (0..).zip(&history.transactions) {
        if transaction.outcome == Outcome::Committed {
            events.push((transaction.ended, true, at));
        }
        if transaction.outcome != Outcome::Aborted {
            events.push((transaction.invoked, false, at));
        }
    }
    events.sort_unstable();
    let edge = |from, to| Edge {
        from,
        to,
        why: Why::Time,
        key: 0,
        value: 0,
    };
    let (mut edges, mut ended) = (Vec::new(), Vec::new());
    let mut instant = None;
    let mut next = 2 * transactions;
    for (_, ends, at) in events {
        if ends {
            ended.push(at);
            continue;
        }
        if !ended.is_empty() {
            edges.extend(ended.drain(..).map(|from| edge(from, next)));
            edges.extend(instant.map(|before| edge(before, next)));
            instant = Some(next);
            next += 1;
        }
        edges.extend(instant.map(|instant| edge(instant, at)));
    }
    edges
}

/// What a cycle of transactions is called.
fn name_of(cycle: &[Edge]) -> (Name, Option<Kind>) {
    let reads = cycle.iter().filter(|edge| edge.why == Why::Rw).count();
    let next = |at: usize| &cycle[(at + 1) % cycle.len()];
    let in_a_row = (0..cycle.len()).any(|at| cycle[at].why == Why::Rw && next(at).why == Why::Rw);
    match reads {
        0 if cycle.iter().any(|edge| edge.why == Why::Wr) => (Name::G1c, None),
        0 => (Name::G0, None),
        1 => {
            let before = |at: &usize| next(*at).why == Why::Rw;
            let into = (0..cycle.len()).find(before).map(|at| cycle[at].why);
            let one_key = cycle.iter().all(|edge| edge.key == cycle[0].key);
            let overwrites = |edge: &Edge| edge.why != Why::Wr && edge.why != Why::Time;
            let kind = match into {
                // Over several keys it overwrote something else than what it did not see: that has no name of its own.
                Some(Why::Ww) if one_key && cycle.iter().all(overwrites) => Some(Kind::LostUpdate),
                Some(Why::Wr) => Some(Kind::ReadSkew),
                _ => None,
            };
            (Name::GSingle, kind)
        }
        _ if in_a_row => (Name::G2Item, Some(Kind::WriteSkew)),
        _ => (Name::GNonadjacent, Some(Kind::LongFork)),
    }
}

struct Search<'s> {
    levels: &'s [Level],
    graph: &'s Graph,
    found: Vec<Anomaly>,
}

impl Search<'_> {
    fn report(&mut self, cycle: Vec<Edge>) {
        debug_assert!(
            (0..cycle.len()).all(|at| cycle[at].to == cycle[(at + 1) % cycle.len()].from),
            "each edge of a cycle begins where the one before ends: {cycle:?}"
        );
        let cycle = self.over_one_key(cycle);
        let (name, kind) = name_of(&cycle);
        let allowed = (0..cycle.len()).any(|at| {
            let (into, out) = (&cycle[at], &cycle[(at + 1) % cycle.len()]);
            let level = self.levels[out.from as usize];
            let reads = into.why == Why::Rw && out.why == Why::Rw;
            // What it overlooked was there before it began.
            let stale = into.why == Why::Time;
            (level == Level::Snapshot && reads)
                || (level == Level::ReadCommitted && out.why == Why::Rw && !stale)
        });
        self.found.push(Anomaly {
            name,
            kind,
            real_time: cycle.iter().any(|edge| edge.why == Why::Time),
            forbidden: !allowed,
            transactions: cycle.iter().map(|edge| edge.from).collect(),
            cycle,
            story: String::new(),
        });
    }

    /// The same transactions by edges over one key, if the cycle has one `rw` and there are such: a lost update is one, whatever else its transactions wrote.
    fn over_one_key(&self, cycle: Vec<Edge>) -> Vec<Edge> {
        let is_rw = |edge: &&Edge| edge.why == Why::Rw;
        let others_write = |edge: &Edge| matches!(edge.why, Why::Rw | Why::Ww);
        if cycle.iter().filter(is_rw).count() != 1 || !cycle.iter().all(others_write) {
            return cycle;
        }
        let beside = |edge: &Edge, key: Option<u32>| -> Vec<Edge> {
            let out = self.graph.out(edge.from).iter();
            let same = |other: &&Edge| {
                other.to == edge.to
                    && other.why == edge.why
                    && key.is_none_or(|key| other.key == key)
            };
            out.filter(same).copied().collect()
        };
        let Some(read) = cycle.iter().find(is_rw) else {
            return cycle;
        };
        for read in beside(read, None) {
            let edges = cycle
                .iter()
                .map(|edge| beside(edge, Some(read.key)).first().copied());
            if let Some(edges) = edges.collect::<Option<Vec<Edge>>>() {
                return edges;
            }
        }
        cycle
    }

    /// The best cycle of each component, of the first few components.
    fn report_best(&mut self, best: HashMap<u32, Vec<Edge>>) {
        let mut best: Vec<_> = best.into_values().collect();
        best.sort_by_key(|cycle| (cycle.len(), cycle[0].from));
        best.truncate(WITNESSES);
        for cycle in best {
            self.report(cycle);
        }
    }

    /// G0.
    fn writes(&mut self) {
        let set = Why::Ww as u8;
        let parts = Components::of(self.graph, set);
        self.closed(&parts, set, set);
    }

    /// G1c.
    fn dependencies(&mut self) {
        let parts = Components::of(self.graph, DEPENDENCIES);
        self.closed(&parts, Why::Wr as u8, DEPENDENCIES);
    }

    /// For each component the shortest cycle that goes over an edge in `first`, and from there on over edges in `rest`.
    fn closed(&mut self, parts: &Components, first: u8, rest: u8) {
        let mut best = HashMap::new();
        let mut walker = Walker::new(self.graph, BUDGET);
        for edge in self.graph.edges() {
            if edge.is(first) && parts.holds(edge) {
                let inside = |other: &Edge| other.is(rest) && parts.holds(other);
                close(
                    &mut walker,
                    &mut best,
                    parts.number(edge.from),
                    edge,
                    inside,
                );
            }
        }
        self.report_best(best);
    }

    /// G-single.
    fn single(&mut self, parts: &Components) {
        let transactions = self.levels.len() as u32;
        let whole = |node: u32| parts.cyclic(node) || parts.cyclic(node + transactions);
        let mut best = HashMap::new();
        let mut walker = Walker::new(self.graph, BUDGET);
        for edge in self.graph.edges() {
            // From the reader's begin to the writer's commit.
            if edge.why == Why::Rw && parts.same(edge.from + transactions, edge.to) {
                let inside =
                    |other: &Edge| other.is(DEPENDENCIES) && whole(other.from) && whole(other.to);
                close(&mut walker, &mut best, parts.number(edge.to), edge, inside);
            }
        }
        self.report_best(best);
    }

    /// G-nonadjacent: in two copies of the order graph, from the first to the second over the second `rw`.
    fn nonadjacent(&mut self, split: &Graph, parts: &Components) {
        let nodes = split.nodes() as u32;
        let mut edges = Vec::new();
        for edge in split.edges().iter().filter(|edge| parts.holds(edge)) {
            let second = Edge {
                from: edge.from + nodes,
                to: edge.to + nodes,
                ..*edge
            };
            let first = if edge.why == Why::Rw {
                Edge {
                    to: second.to,
                    ..*edge
                }
            } else {
                *edge
            };
            edges.extend([first, second]);
        }
        let doubled = Graph::new(2 * nodes as usize, &edges);
        let transactions = self.levels.len() as u32;
        let mut best = HashMap::new();
        let mut walker = Walker::new(&doubled, BUDGET);
        let mut detours = Detours::new(&doubled, transactions, BUDGET);
        for edge in split.edges() {
            if edge.why != Why::Rw || !parts.holds(edge) {
                continue;
            }
            let goal = edge.from + nodes;
            let part = parts.number(edge.from);
            let below = best
                .get(&part)
                .map_or(usize::MAX, |cycle: &Vec<Edge>| 2 * cycle.len());
            let Some(way) = walker.way(&[edge.to], |node| node == goal, |_| true, below) else {
                continue;
            };
            let least = way.len();
            let close = |way: Vec<Edge>| {
                let cycle: Vec<Edge> = std::iter::once(*edge).chain(way).collect();
                transactions_of(&cycle, transactions, nodes)
            };
            let is_simple = |cycle: &Vec<Edge>| {
                let visited: HashSet<u32> = cycle.iter().map(|edge| edge.from).collect();
                visited.len() == cycle.len()
            };
            // Two smaller cycles that touch are not one: what is one may be longer.
            let cycle = Some(close(way)).filter(is_simple).or_else(|| {
                let way = detours.way(edge.to, goal, least, below);
                way.map(close).filter(is_simple)
            });
            if let Some(cycle) = cycle
                && best.get(&part).is_none_or(|best| cycle.len() < best.len())
            {
                best.insert(part, cycle);
            }
        }
        self.report_best(best);
    }

    /// G2-item: a cycle through two `rw` in a row, and what lies between them.
    fn write_skew(&mut self, all: &Components) {
        let mut into: HashMap<u32, Vec<&Edge>> = HashMap::new();
        for edge in self.graph.edges() {
            if edge.why == Why::Rw && all.holds(edge) {
                into.entry(edge.to).or_default().push(edge);
            }
        }
        let mut pivots: Vec<u32> = into.keys().copied().collect();
        pivots.sort_unstable();
        let mut best: HashMap<u32, Vec<Edge>> = HashMap::new();
        let mut walker = Walker::new(self.graph, BUDGET);
        for pivot in pivots {
            let part = all.number(pivot);
            let below = best.get(&part).map_or(usize::MAX, Vec::len);
            if below <= 2 {
                continue;
            }
            let before: HashMap<u32, &Edge> =
                into[&pivot].iter().map(|edge| (edge.from, *edge)).collect();
            let out = self.graph.out(pivot).iter();
            let after: HashMap<u32, &Edge> = out
                .filter(|edge| edge.why == Why::Rw && all.holds(edge))
                .map(|edge| (edge.to, edge))
                .collect();
            let direct = after
                .iter()
                .find_map(|(to, edge)| Some((*edge, *before.get(to)?)));
            let cycle = match direct {
                Some((out, into)) => Some(vec![*out, *into]),
                None => {
                    let mut starts: Vec<u32> = after.keys().copied().collect();
                    starts.sort_unstable();
                    let goal = |node: u32| before.contains_key(&node);
                    let inside = |edge: &Edge| {
                        edge.is(ALL) && all.holds(edge) && edge.to != pivot && edge.from != pivot
                    };
                    let way = walker.way(&starts, goal, inside, below.saturating_sub(2));
                    way.map(|way| {
                        let mut cycle = vec![*after[&way[0].from]];
                        let last = way[way.len() - 1].to;
                        cycle.extend(way);
                        cycle.push(*before[&last]);
                        cycle
                    })
                }
            };
            if let Some(cycle) = cycle {
                best.insert(part, cycle);
            }
        }
        self.report_best(best);
    }

    /// I2: the components of the order graph in which nothing forbidden was found yet.
    fn complete(&mut self, edges: &[Edge], time: &[Edge]) {
        let order = order_graph(self.levels, edges, time);
        let parts = Components::of(&order, u8::MAX);
        if !parts.any() {
            return;
        }
        let transactions = self.levels.len() as u32;
        let forbidden = self.found.iter().filter(|anomaly| anomaly.forbidden);
        let known: HashSet<u32> = forbidden
            .flat_map(|anomaly| &anomaly.transactions)
            .map(|transaction| parts.number(*transaction))
            .collect();
        let mut best = HashMap::new();
        let mut walker = Walker::new(&order, BUDGET);
        for edge in order.edges() {
            let part = parts.number(edge.from);
            if parts.holds(edge) && !known.contains(&part) {
                if !best.contains_key(&part) {
                    // The first cycle of a component is owed, however large it is.
                    walker.budget = walker.budget.max(order.edges().len() as u64);
                }
                close(&mut walker, &mut best, part, edge, |other| {
                    parts.holds(other)
                });
            }
        }
        let mut cycles: Vec<Vec<Edge>> = best
            .into_values()
            .map(|cycle| transactions_of(&cycle, transactions, u32::MAX))
            .collect();
        cycles.sort_by_key(|cycle| (cycle.len(), cycle[0].from));
        cycles.truncate(WITNESSES);
        for cycle in cycles {
            self.report(cycle);
        }
    }
}

/// Closes the cycle that begins with `edge`, if that is shorter than the best one of the component.
fn close(
    walker: &mut Walker<'_>,
    best: &mut HashMap<u32, Vec<Edge>>,
    part: u32,
    edge: &Edge,
    inside: impl Fn(&Edge) -> bool,
) {
    let below = best.get(&part).map_or(usize::MAX, Vec::len);
    if below <= 2 {
        return;
    }
    let way = walker.way(&[edge.to], |node| node == edge.from, inside, below - 1);
    if let Some(way) = way {
        best.insert(part, std::iter::once(*edge).chain(way).collect());
    }
}

/// A cycle of instants as one of transactions. `copies`: how many nodes a copy of the graph has.
fn transactions_of(cycle: &[Edge], transactions: u32, copies: u32) -> Vec<Edge> {
    let instant = |node: u32| {
        if copies == u32::MAX {
            node
        } else {
            node % copies
        }
    };
    let owner = |node: u32| {
        let node = instant(node);
        (node < 2 * transactions).then(|| node % transactions)
    };
    // Begins at a transaction, not at an instant between two.
    let start = cycle
        .iter()
        .position(|edge| owner(edge.from).is_some())
        .unwrap_or(0);
    let mut out: Vec<Edge> = Vec::with_capacity(cycle.len());
    let mut waiting = None;
    for edge in cycle[start..].iter().chain(&cycle[..start]) {
        if edge.why == Why::Inner {
            continue;
        }
        let from = waiting.take().or(owner(edge.from)).unwrap_or(0);
        match owner(edge.to) {
            Some(to) => out.push(Edge { from, to, ..*edge }),
            None => waiting = Some(from),
        }
    }
    out
}

#[cfg(test)]
mod tests;
