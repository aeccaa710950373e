//! Graphs of transactions: edges in one array, components, shortest ways.
//!
//! Cost: everything is linear in nodes and edges but [`Walker`], which takes a budget.

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Why {
    /// It wrote the version before.
    Ww = 1,
    /// It wrote the version that was read.
    Wr = 2,
    /// It read the version before.
    Rw = 4,
    /// It had ended before the other began.
    Time = 8,
    /// Its own begin and commit.
    Inner = 16,
}

/// What `ww ∪ wr` is as a set of [`Why`].
pub const DEPENDENCIES: u8 = Why::Ww as u8 | Why::Wr as u8;
/// Every reason between transactions but time.
pub const ALL: u8 = DEPENDENCIES | Why::Rw as u8;

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Comes first.
    pub from: u32,
    /// Comes later.
    pub to: u32,
    /// Why.
    pub why: Why,
    /// About which key.
    pub key: u32,
    /// `ww`, `rw`: the value that `to` appended; `wr`: the value that `to` read.
    pub value: u64,
}

impl Edge {
    /// Whether the reason is in a set.
    #[inline]
    pub fn is(&self, set: u8) -> bool {
        self.why as u8 & set != 0
    }
}

/// Edges by the node that they begin at.
#[derive(Debug)]
pub struct Graph {
    starts: Vec<u32>,
    edges: Vec<Edge>,
}

impl Graph {
    /// Sorts the edges of a graph with so many nodes by where they begin.
    pub fn new(nodes: usize, edges: &[Edge]) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        for edge in edges {
            starts[edge.from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut sorted = vec![0_u32; edges.len()];
        for (edge, number) in edges.iter().zip(0_u32..) {
            let place = &mut next[edge.from as usize];
            sorted[*place as usize] = number;
            *place += 1;
        }
        let edges = sorted.into_iter().map(|number| edges[number as usize]);
        Self {
            starts,
            edges: edges.collect(),
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// All edges.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    #[inline]
    fn range(&self, node: u32) -> std::ops::Range<usize> {
        let node = node as usize;
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    /// The edges that begin at a node.
    #[inline]
    pub fn out(&self, node: u32) -> &[Edge] {
        &self.edges[self.range(node)]
    }
}

/// Which nodes can be reached from each other.
#[derive(Debug)]
pub struct Components {
    of: Vec<u32>,
    sizes: Vec<u32>,
}

impl Components {
    /// Strongly connected components by the edges whose reason is in `set` (Tarjan, without recursion).
    pub fn of(graph: &Graph, set: u8) -> Self {
        const NEW: u32 = u32::MAX;
        let nodes = graph.nodes();
        let (mut found, mut low) = (vec![NEW; nodes], vec![0_u32; nodes]);
        let mut of = vec![NEW; nodes];
        let mut sizes = Vec::new();
        let (mut stack, mut calls) = (Vec::new(), Vec::<(u32, usize)>::new());
        let mut count = 0_u32;
        for root in 0..nodes as u32 {
            if found[root as usize] != NEW {
                continue;
            }
            calls.push((root, graph.range(root).start));
            while let Some((node, at)) = calls.pop() {
                let n = node as usize;
                if found[n] == NEW {
                    (found[n], low[n]) = (count, count);
                    count += 1;
                    stack.push(node);
                }
                let end = graph.range(node).end;
                let next = (at..end).find(|at| {
                    let edge = &graph.edges[*at];
                    if !edge.is(set) {
                        return false;
                    }
                    let to = edge.to as usize;
                    if found[to] == NEW {
                        return true;
                    }
                    if of[to] == NEW {
                        low[n] = low[n].min(found[to]);
                    }
                    false
                });
                if let Some(at) = next {
                    calls.push((node, at + 1));
                    let to = graph.edges[at].to;
                    calls.push((to, graph.range(to).start));
                    continue;
                }
                if low[n] == found[n] {
                    let component = sizes.len() as u32;
                    let mut size = 0;
                    while let Some(member) = stack.pop() {
                        of[member as usize] = component;
                        size += 1;
                        if member == node {
                            break;
                        }
                    }
                    sizes.push(size);
                }
                // A member that was not the first of its component hands on how far back it reaches.
                if let Some((parent, _)) = calls.last() {
                    let parent = *parent as usize;
                    low[parent] = low[parent].min(low[n]);
                }
            }
        }
        Self { of, sizes }
    }

    /// Whether an edge lies on a cycle.
    #[inline]
    pub fn holds(&self, edge: &Edge) -> bool {
        self.same(edge.from, edge.to)
    }

    /// Whether two nodes lie on a cycle.
    #[inline]
    pub fn same(&self, a: u32, b: u32) -> bool {
        self.of[a as usize] == self.of[b as usize] && a != b
    }

    /// The component of a node.
    #[inline]
    pub fn number(&self, node: u32) -> u32 {
        self.of[node as usize]
    }

    /// Whether a node lies on a cycle.
    pub fn cyclic(&self, node: u32) -> bool {
        self.sizes[self.of[node as usize] as usize] > 1
    }

    /// Whether there is a cycle.
    pub fn any(&self) -> bool {
        self.sizes.iter().any(|size| *size > 1)
    }
}

/// Looks for shortest ways, with what it needs allocated once.
#[derive(Debug)]
pub struct Walker<'g> {
    graph: &'g Graph,
    /// The round in which a node was reached.
    reached: Vec<u32>,
    round: u32,
    via: Vec<u32>,
    queue: Vec<u32>,
    /// Edges that may still be looked at.
    pub budget: u64,
}

impl<'g> Walker<'g> {
    /// A walker that looks at no more than `budget` edges.
    pub fn new(graph: &'g Graph, budget: u64) -> Self {
        let nodes = graph.nodes();
        Self {
            graph,
            reached: vec![0; nodes],
            round: 0,
            via: vec![0; nodes],
            queue: Vec::new(),
            budget,
        }
    }

    /// The shortest way of at least one edge from any of `starts` to where `goal` says so, over edges that are allowed; `None` if there
    /// is none of less than `below` edges, or the budget is used up.
    pub fn way(
        &mut self,
        starts: &[u32],
        goal: impl Fn(u32) -> bool,
        allowed: impl Fn(&Edge) -> bool,
        below: usize,
    ) -> Option<Vec<Edge>> {
        self.round += 1;
        self.queue.clear();
        self.queue.extend_from_slice(starts);
        for start in starts {
            self.reached[*start as usize] = self.round;
            self.via[*start as usize] = u32::MAX;
        }
        let (mut at, mut depth, mut level_end) = (0, 1, self.queue.len());
        while at < self.queue.len() {
            if at == level_end {
                depth += 1;
                level_end = self.queue.len();
            }
            if depth >= below || self.budget == 0 {
                return None;
            }
            let node = self.queue[at];
            at += 1;
            for number in self.graph.range(node) {
                let edge = &self.graph.edges[number];
                self.budget = self.budget.saturating_sub(1);
                if !allowed(edge) {
                    continue;
                }
                if goal(edge.to) {
                    return Some(self.trace(number));
                }
                let to = edge.to as usize;
                if self.reached[to] != self.round {
                    self.reached[to] = self.round;
                    self.via[to] = number as u32;
                    self.queue.push(edge.to);
                }
            }
        }
        None
    }

    fn trace(&self, last: usize) -> Vec<Edge> {
        let mut way = vec![self.graph.edges[last]];
        loop {
            let node = way[way.len() - 1].from;
            let via = self.via[node as usize];
            if via == u32::MAX {
                way.reverse();
                return way;
            }
            way.push(self.graph.edges[via as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u32, to: u32, why: Why) -> Edge {
        Edge {
            from,
            to,
            why,
            key: 0,
            value: 0,
        }
    }

    #[test]
    fn components_are_those_of_the_edges_asked_for() {
        use Why::{Rw, Ww};
        let edges = [
            edge(0, 1, Ww),
            edge(1, 2, Ww),
            edge(2, 0, Rw),
            edge(3, 4, Ww),
            edge(4, 3, Ww),
            edge(2, 3, Ww),
        ];
        let graph = Graph::new(6, &edges);
        let all = Components::of(&graph, ALL);
        assert!(all.same(0, 2) && all.same(3, 4) && !all.same(2, 3) && !all.cyclic(5));
        let writes = Components::of(&graph, Why::Ww as u8);
        assert!(!writes.cyclic(0) && writes.cyclic(3));
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let nodes = 300_000;
        let mut edges: Vec<Edge> = (1..nodes).map(|to| edge(to - 1, to, Why::Ww)).collect();
        assert!(!Components::of(&Graph::new(nodes as usize, &edges), ALL).any());
        edges.push(edge(nodes - 1, 0, Why::Wr));
        let graph = Graph::new(nodes as usize, &edges);
        assert!(Components::of(&graph, ALL).same(0, nodes / 2));
    }

    #[test]
    fn the_shortest_way_round_is_found_and_a_budget_ends_the_search() {
        let edges =
            [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)].map(|(from, to)| edge(from, to, Why::Ww));
        let graph = Graph::new(4, &edges);
        let mut walker = Walker::new(&graph, 100);
        let way = walker.way(&[0], |node| node == 0, |_| true, 9).unwrap();
        assert_eq!(
            way.iter().map(|edge| edge.to).collect::<Vec<_>>(),
            [1, 3, 0]
        );
        assert!(walker.way(&[0], |node| node == 0, |_| true, 3).is_none());
        assert!(
            Walker::new(&graph, 1)
                .way(&[0], |node| node == 0, |_| true, 9)
                .is_none()
        );
    }
}
