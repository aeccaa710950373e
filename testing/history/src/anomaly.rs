//! What can be wrong with a history, by name.

use crate::graph::Edge;
use std::fmt;

/// The names of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A transaction contradicts itself.
    Internal,
    /// An acknowledged append is not in the final read, or a transaction is there by half.
    LostAppend,
    /// A value stands twice in a list.
    DuplicateAppend,
    /// A value that nobody appended.
    GarbageRead,
    /// Two reads of a key of which neither is the beginning of the other.
    IncompatibleOrder,
    /// A read of what was rolled back.
    G1a,
    /// A read of what was not a transaction's last word.
    G1b,
    /// A cycle of writes.
    G0,
    /// A cycle of writes and reads of what was written.
    G1c,
    /// A cycle with one read of what was overwritten: lost update, read skew.
    GSingle,
    /// A cycle with several such reads, never two in a row: long fork.
    GNonadjacent,
    /// A cycle with two such reads in a row: write skew.
    G2Item,
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Internal,
        Self::LostAppend,
        Self::DuplicateAppend,
        Self::GarbageRead,
        Self::IncompatibleOrder,
        Self::G1a,
        Self::G1b,
        Self::G0,
        Self::G1c,
        Self::GSingle,
        Self::GNonadjacent,
        Self::G2Item,
    ];

    /// How the field writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::LostAppend => "lost-append",
            Self::DuplicateAppend => "duplicate-append",
            Self::GarbageRead => "garbage-read",
            Self::IncompatibleOrder => "incompatible-order",
            Self::G1a => "G1a",
            Self::G1b => "G1b",
            Self::G0 => "G0",
            Self::G1c => "G1c",
            Self::GSingle => "G-single",
            Self::GNonadjacent => "G-nonadjacent",
            Self::G2Item => "G2-item",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The common name of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Overwrote what it did not see.
    LostUpdate,
    /// Saw a part of what another did.
    ReadSkew,
    /// Two saw the world in two orders.
    LongFork,
    /// Each wrote what the other did not see.
    WriteSkew,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LostUpdate => "lost update",
            Self::ReadSkew => "read skew",
            Self::LongFork => "long fork",
            Self::WriteSkew => "write skew",
        })
    }
}

/// Something that was found.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// Its name.
    pub name: Name,
    /// Its common name, for the cycles that have one.
    pub kind: Option<Kind>,
    /// Whether it takes the order of real time to see it: the cycle has an edge from the end of a transaction to the begin of a later one.
    pub real_time: bool,
    /// Whether the levels of the transactions in it forbid it.
    pub forbidden: bool,
    /// Positions of the transactions in the history.
    pub transactions: Vec<u32>,
    /// The cycle, for those that are one: each edge begins where the one before ends.
    pub cycle: Vec<Edge>,
    /// What happened, in words.
    pub story: String,
}

impl Anomaly {
    /// `G-single (lost update)`, `G1c-realtime`.
    pub fn title(&self) -> String {
        let time = if self.real_time { "-realtime" } else { "" };
        match self.kind {
            Some(kind) => format!("{}{time} ({kind})", self.name),
            None => format!("{}{time}", self.name),
        }
    }
}
