//! Syncs that are taken for granted but do not happen: how tests of crash safety are tested.
//!
//! If a sync (or the order of two writes that it enforces) can be taken away and no test of power cuts fails, then
//! either the sync is not needed or the tests miss it. The caller of a sync notices nothing, so a run
//! with lies makes the same calls as one without.

use super::disk::{Disk, InodeId};
use std::collections::BTreeSet;
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
    late: Option<(Synced, u64)>,
}

impl fmt::Debug for Lies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lies")
            .field("calls", &self.calls)
            .field("how", &self.how)
            .field("late", &self.late)
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
