//! What a version store does about versions that only old snapshots see.
//!
//! Both are on, unless an experiment asks what they are worth. They are chosen when a store is made and
//! never change: whoever makes a choice by one of them may remember it.

/// Parts of the store that can be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionOptions {
    /// Tombstones that no OLTP transaction needs leave the main index. Off: a tombstone stays until every snapshot
    /// sees the delete.
    pub graveyard: bool,
    /// Rows with long chains keep their versions in the leaf. Off: every before-image goes to a delta index.
    pub fat: bool,
}

impl Default for VersionOptions {
    fn default() -> Self {
        Self {
            graveyard: true,
            fat: true,
        }
    }
}
