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
    /// It comes one change late, and that change is durable before: as if the program had swapped the two. Where
    /// another sync comes next, nothing is swapped.
    Late,
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
#[derive(Clone, Debug)]
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

/// Which syncs lie, and the late one that is still to come.
#[derive(Default)]
pub(super) struct Lies {
    /// By the number of changing calls before them.
    pub(super) calls: BTreeSet<u64>,
    pub(super) how: Option<Lie>,
    pub(super) observer: Option<SyncObserver>,
    /// By the number of changing calls before them.
    pub(super) writes: BTreeMap<u64, WriteLie>,
    late: Option<(Synced, u64)>,
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
    /// Before a changing call: a late sync that let one change pass happens now. `is_sync`: the call is a sync itself.
    pub(super) fn before_change(&mut self, disk: &mut Disk, is_sync: bool) {
        if let Some((synced, upto)) = &self.late {
            let passed = disk.last_sequence() > *upto;
            if passed || is_sync {
                if passed {
                    disk.force_last();
                }
                let synced = synced.clone();
                self.late = None;
                synced.apply(disk);
            }
        }
    }

    /// When the power goes: a change that passed a late sync is durable, what it passed is not.
    pub(super) fn at_cut(&self, disk: &mut Disk) {
        if let Some((_, upto)) = &self.late
            && disk.last_sequence() > *upto
        {
            disk.force_last();
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
        match self.how.filter(|_| self.calls.contains(&call)) {
            None => synced.apply(disk),
            Some(Lie::Omitted) => {}
            Some(Lie::Late) => self.late = Some((synced, disk.last_sequence())),
        }
    }
}
