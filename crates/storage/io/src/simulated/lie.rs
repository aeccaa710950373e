//! Calls that report success and do something else.
//!
//! Syncs that are taken for granted but do not happen: how tests of crash safety are tested.
//!
//! If a sync (or the order of two writes that it enforces) can be taken away and no test of power cuts fails, then
//! either the sync is not needed or the tests miss it. The caller of a sync notices nothing, so a run
//! with lies makes the same calls as one without.
//!
//! Writes that land elsewhere, or nowhere, as a drive may do it without a word: what was there before stays, with a checksum
//! that is right (docs/media.md says what finds it).

use super::disk::{Disk, InodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// What a sync does that lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Nothing: as if the program did not call it.
    Omitted,
    /// It comes so many changes (of any file or name) late, and the last of them is durable before it: as if the program had swapped
    /// that with what came before the sync. If the same file or folder is synced in between, nothing is swapped.
    Late {
        /// How many changes come first, from 1.
        changes: u32,
        /// Of the last of them, if it is a write, only the first sector is durable before.
        torn: bool,
    },
}

impl Lie {
    /// It lets the next change pass.
    pub const LATE: Self = Self::Late {
        changes: 1,
        torn: false,
    };
}

/// What a write that reports success does instead. Reads see what is on the medium, at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteLie {
    /// Nothing: what stood there stays.
    Lost,
    /// It goes to another offset of the same file, and what should have been replaced stays.
    Misdirected(u64),
}

/// Called for each sync with the number of changing calls before it and the name that is synced.
pub type SyncObserver = Arc<dyn Fn(u64, &str) + Send + Sync>;

/// What a sync is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    File(InodeId),
    Names(String),
}

impl Synced {
    pub(super) fn apply(&self, disk: &mut Disk) {
        match self {
            Self::File(inode) => disk.sync(*inode),
            Self::Names(subdir) => disk.sync_names(subdir),
        }
    }
}

/// A late sync that is still to come.
#[derive(Debug)]
struct Waiting {
    synced: Synced,
    /// The change that passes it.
    passing: u64,
    torn: bool,
}

/// Which syncs lie, and the late ones that are still to come.
#[derive(Default)]
pub(super) struct Lies {
    /// By the number of changing calls before them.
    pub(super) calls: BTreeSet<u64>,
    pub(super) how: Option<Lie>,
    pub(super) observer: Option<SyncObserver>,
    /// By the number of changing calls before them.
    pub(super) writes: BTreeMap<u64, WriteLie>,
    late: Vec<Waiting>,
}

impl fmt::Debug for Lies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lies")
            .field("calls", &self.calls)
            .field("how", &self.how)
            .field("late", &self.late)
            .field("writes", &self.writes)
            .finish_non_exhaustive()
    }
}

impl Lies {
    /// Before a change: late syncs that let enough changes pass happen now.
    pub(super) fn before_change(&mut self, disk: &mut Disk) {
        let last = disk.last_sequence();
        self.late.retain(|waiting| {
            let passed = last >= waiting.passing;
            if passed {
                disk.force(waiting.passing, waiting.torn);
                waiting.synced.apply(disk);
            }
            !passed
        });
    }

    /// When the power goes: a change that passed a late sync is durable, what it passed is not.
    pub(super) fn at_cut(&self, disk: &mut Disk) {
        for waiting in &self.late {
            disk.force(waiting.passing, waiting.torn);
        }
    }

    /// Where the write that is call number `call` goes; `None` if it goes nowhere.
    pub(super) fn write(&self, call: u64, offset: u64) -> Option<u64> {
        match self.writes.get(&call) {
            None => Some(offset),
            Some(WriteLie::Lost) => None,
            Some(WriteLie::Misdirected(elsewhere)) => Some(*elsewhere),
        }
    }

    /// Does the sync that is call number `call`, or not.
    pub(super) fn sync(&mut self, disk: &mut Disk, call: u64, name: &str, synced: Synced) {
        if let Some(observer) = &self.observer {
            observer(call, name);
        }
        let lie = self.how.filter(|_| self.calls.contains(&call));
        match lie {
            None => {
                self.late.retain(|waiting| waiting.synced != synced);
                synced.apply(disk);
            }
            Some(Lie::Omitted) => {}
            Some(Lie::Late { changes, torn }) => {
                let passing = disk.last_sequence() + u64::from(changes);
                self.late.push(Waiting {
                    synced,
                    passing,
                    torn,
                });
            }
        }
    }
}
