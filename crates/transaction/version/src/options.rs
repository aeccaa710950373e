//! What a version store does about versions that only old snapshots see.
//!
//! All is on, unless an experiment asks what they are worth. They are chosen when a store is made and
//! never change: whoever makes a choice by one of them may remember it.

/// Parts of the store that can be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionOptions {
    /// Tombstones that no OLTP transaction needs leave the main index. Off: a tombstone stays until every snapshot
    /// sees the delete.
    pub graveyard: bool,
    /// Rows with long chains keep their versions in the leaf. Off: every before-image goes to a delta index.
    pub fat: bool,
    /// Old snapshots have shortcuts past versions that only OLTP snapshots see, and these versions go when those ended.
    /// Off, and where `fat` is off: a before-image stays until every snapshot sees what replaced it.
    pub shortcuts: bool,
    /// A row turns fat with the next update after this many while the oldest transaction stayed the same. By default 16,
    /// or as many as there are slots in use: twice the commits between two passes, so that a row that is updated by
    /// every transaction stays as it is where nobody holds a snapshot.
    pub fat_updates: Option<u8>,
    /// Of dropped tables that somebody sees the leaves are read once, too, for the large values of their rows: they are counted. Off: their pages alone.
    pub chains_of_dropped: bool,
}

impl Default for VersionOptions {
    fn default() -> Self {
        Self {
            graveyard: true,
            fat: true,
            shortcuts: true,
            fat_updates: None,
            chains_of_dropped: true,
        }
    }
}
