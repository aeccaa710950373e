//! Which transaction comes before which, and why.
//!
//! For neighbours in a key's order the writer of the one is before the writer of the other (`ww`); who wrote the last version that was
//! read is before its reader (`wr`); the reader is before the writer of the next version (`rw`). Farther ones follow from these, so
//! there are as many edges as versions and reads.
//!
//! A key without a final read may have appends that nobody read. Each stands behind every version that was read; of two whose
//! transactions both read everything before, one did not see the other whichever came first, so any order of them is as good. Other pairs:
//! [`crate::unread`].

use crate::event::Level;
use crate::graph::{Edge, Why};
use crate::history::History;
use crate::internal::External;
use crate::versions::Orders;
use std::collections::{HashMap, HashSet};

/// Most edges from readers to appends that nobody read, over all keys: of a history without final reads there may be more than memory holds.
const UNREAD_EDGES: usize = 1_000_000;

/// The edges between transactions. None leads from a transaction to itself.
pub fn edges(history: &History, orders: &Orders, externals: &[External]) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(externals.len() * 2);
    let mut add = |from: u32, to: u32, why: Why, key: u32, value: u64| {
        if from != to {
            edges.push(Edge {
                from,
                to,
                why,
                key,
                value,
            });
        }
    };
    for (key, versions) in (0..).zip(&orders.keys) {
        for pair in versions.valid.windows(2) {
            let (from, to) = (
                orders.writer_at(key, pair[0]),
                orders.writer_at(key, pair[1]),
            );
            add(from, to, Why::Ww, key, versions.order[pair[1] as usize]);
        }
    }
    for External {
        transaction,
        key,
        length,
    } in externals.iter().copied()
    {
        let versions = &orders.keys[key as usize];
        let (before, next) = versions.around(length as usize);
        if let Some(before) = before {
            let value = versions.order[before as usize];
            add(
                orders.writer_at(key, before),
                transaction,
                Why::Wr,
                key,
                value,
            );
        }
        if let Some(next) = next {
            let value = versions.order[next as usize];
            add(
                transaction,
                orders.writer_at(key, next),
                Why::Rw,
                key,
                value,
            );
        }
    }
    let mut readers: HashMap<u32, Vec<u32>> = HashMap::new();
    for External {
        transaction,
        key,
        length,
    } in externals.iter().copied()
    {
        let versions = &orders.keys[key as usize];
        if !versions.unread.is_empty() && versions.around(length as usize).1.is_none() {
            readers.entry(key).or_default().push(transaction);
        }
    }
    let mut unread_edges = 0_usize;
    for (key, versions) in (0..).zip(&orders.keys) {
        // One entry a transaction.
        let mut unread = versions.unread.clone();
        unread.dedup_by_key(|(transaction, _)| *transaction);
        if let Some(last) = versions.valid.last() {
            let last = orders.writer_at(key, *last);
            for (to, value) in &unread {
                add(last, *to, Why::Ww, key, *value);
            }
        }
        let readers = readers.remove(&key).unwrap_or_default();
        let more = readers.len().saturating_mul(unread.len());
        let all = unread_edges.saturating_add(more) <= UNREAD_EDGES;
        if all {
            unread_edges += more;
            for (to, value) in &unread {
                for reader in &readers {
                    add(*reader, *to, Why::Rw, key, *value);
                }
            }
        }
        let readers: HashSet<u32> = readers.into_iter().collect();
        let both = |(transaction, _): &&(u32, u64)| {
            let level = history.transactions[*transaction as usize].level;
            readers.contains(transaction) && level > Level::ReadCommitted
        };
        let both: Vec<_> = unread.iter().filter(both).collect();
        for pair in both.windows(2) {
            if !all {
                // Enough for a lost update, which two of them are.
                add(pair[0].0, pair[1].0, Why::Rw, key, pair[1].1);
                add(pair[1].0, pair[0].0, Why::Rw, key, pair[0].1);
            }
            add(pair[0].0, pair[1].0, Why::Ww, key, pair[1].1);
        }
    }
    edges
}
