//! Ways that come to no transaction twice, where the shortest walk does.
//!
//! Longer and longer ways are tried, each step only where the rest of the way can still be as short as that. There may be exponentially many, so a
//! search has a budget of edges, and looks for no way of more than [`LONGER`] edges above the shortest walk.

use crate::graph::{Edge, Graph, Why};
use std::collections::HashSet;

/// How many edges longer than the shortest walk a way may be.
const LONGER: usize = 24;

/// Looks for ways over a graph of instants, in which the begin and the commit of a transaction are nodes of their own.
pub struct Detours<'g> {
    graph: &'g Graph,
    /// The same edges the other way round, once they are asked for.
    back: Option<Graph>,
    transactions: u32,
    /// Edges that may still be looked at.
    budget: u64,
    /// How many edges it is from each node to the goal; `usize::MAX` where there is no way.
    left: Vec<usize>,
    /// The nodes from which there is one. Only these are put back for the next goal: a graph of many small parts has as many goals as nodes.
    near: Vec<u32>,
    /// Of the nodes of the way: their transactions.
    visited: HashSet<u32>,
    way: Vec<Edge>,
}

impl<'g> Detours<'g> {
    /// A search that looks at no more than `budget` edges. Nodes are instants of so many transactions, perhaps in several copies.
    pub fn new(graph: &'g Graph, transactions: u32, budget: u64) -> Self {
        Self {
            graph,
            back: None,
            transactions,
            budget,
            left: vec![usize::MAX; graph.nodes()],
            near: Vec::new(),
            visited: HashSet::new(),
            way: Vec::new(),
        }
    }

    fn owner(&self, node: u32) -> u32 {
        node % self.transactions
    }

    /// The shortest way from `start` to `goal` on which no transaction comes twice, of at least `least` edges and less than `below`.
    pub fn way(&mut self, start: u32, goal: u32, least: usize, below: usize) -> Option<Vec<Edge>> {
        if self.budget == 0 || self.owner(start) == self.owner(goal) {
            return None;
        }
        self.measure(goal);
        for length in least..below.min(least + LONGER) {
            self.visited = HashSet::from([self.owner(start), self.owner(goal)]);
            self.way.clear();
            if self.go(start, goal, length) {
                return Some(std::mem::take(&mut self.way));
            }
        }
        None
    }

    /// Fills in how far it is from each node to `goal`.
    fn measure(&mut self, goal: u32) {
        let turned = |edge: &Edge| Edge {
            from: edge.to,
            to: edge.from,
            ..*edge
        };
        let graph = self.graph;
        let back = self.back.get_or_insert_with(|| {
            let edges: Vec<Edge> = graph.edges().iter().map(turned).collect();
            Graph::new(graph.nodes(), &edges)
        });
        for node in self.near.drain(..) {
            self.left[node as usize] = usize::MAX;
        }
        self.left[goal as usize] = 0;
        self.near.push(goal);
        let mut at = 0;
        while at < self.near.len() {
            let node = self.near[at];
            at += 1;
            for edge in back.out(node) {
                self.budget = self.budget.saturating_sub(1);
                if self.left[edge.to as usize] == usize::MAX {
                    self.left[edge.to as usize] = self.left[node as usize] + 1;
                    self.near.push(edge.to);
                }
            }
        }
    }

    /// Goes on from `node` to `goal` in at most `most` edges.
    fn go(&mut self, node: u32, goal: u32, most: usize) -> bool {
        let graph = self.graph;
        for edge in graph.out(node) {
            if self.budget == 0 {
                return false;
            }
            self.budget -= 1;
            if self.left[edge.to as usize] >= most {
                continue;
            }
            self.way.push(*edge);
            if edge.to == goal {
                return true;
            }
            let owner = self.owner(edge.to);
            // From begin to commit it is the same visit.
            let again = edge.why == Why::Inner;
            if again || self.visited.insert(owner) {
                if self.go(edge.to, goal, most - 1) {
                    return true;
                }
                if !again {
                    self.visited.remove(&owner);
                }
            }
            self.way.pop();
        }
        false
    }
}
