//! THE visibility rule: does this snapshot see that version? There is no other place that decides it.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.1, Listing 1.
//! Differences:
//! - A transaction sees its own version only from an earlier command than the one that reads (no
//!   Halloween); the paper shows it all its own.
//! - The paper caches one (snapshot, LCB) pair a writer, for a transaction with one snapshot. Here
//!   several snapshots may be open, so an answer is cached with the interval for which it is exact.
//! - A version whose writer is proven committed below the snapshot by any entry at all needs no
//!   latch; only "not committed below it" needs an exact answer.
//!
//! Invariants:
//! - I1 A cached pair `(lcb, up_to)` says: for every `ts` in `(lcb, up_to]`, `LCB(slot, ts) = lcb`. It is true for
//!   ever: no commit below a snapshot that was drawn can still come.
//! - I2 The snapshot that is asked for is published, or what it asks may be gone from commit logs (R4).
//!
//! Concurrency: the cache belongs to one transaction at a time; commit logs are asked under the
//! writer's slot latch. No other latch of a slot may be held by the caller.

use crate::domain::Domain;
use crate::stamp::VersionStamp;
use vellum_base::planted::{self, Bug};
use vellum_base::{SlotId, Timestamp};

/// Answers to LCB questions of one slot's transactions, by writer slot (the paper's snapshot cache). As long as the highest of the
/// writers' slots that it was asked about: slots are leased from the lowest on, and a database may have thousands that it never uses.
#[derive(Debug, Default)]
pub(crate) struct SnapshotCache {
    answers: Box<[Answer]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Answer {
    lcb: Timestamp,
    up_to: Timestamp,
}

/// Answers that a cache has at least.
const ANSWERS_MIN: usize = 16;

impl SnapshotCache {
    /// The place of a writer's answer, which the cache is too short for; `None` if there is no such slot.
    #[cold]
    fn grow_to(&mut self, index: usize, slots_max: usize) -> Option<&mut Answer> {
        if index >= slots_max {
            return None;
        }
        let length = (index + 1).next_power_of_two().max(ANSWERS_MIN);
        let mut answers = std::mem::take(&mut self.answers).into_vec();
        answers.resize(length.min(slots_max), Answer::default());
        self.answers = answers.into_boxed_slice();
        self.answers.get_mut(index)
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// The reader's slot.
    pub(crate) slot: SlotId,
    /// Its stamp, zero if it has not written.
    pub(crate) stamp: Timestamp,
    /// The snapshot that it reads in, one of its published ones.
    pub(crate) snapshot: Timestamp,
    /// The statement that reads.
    pub(crate) command: u32,
    /// Its slot may have run others since its snapshot was drawn (`begin` I3).
    pub(crate) inherits: bool,
}

/// The part of the rule that needs no look at the writer: `None` where that is needed.
#[inline]
pub(crate) fn decide_alone(
    version: &VersionStamp,
    reader: &Reader,
    restart_floor: Timestamp,
) -> Option<bool> {
    if version.stamp < restart_floor {
        // From before the restart: losers were undone, so it is committed.
        return Some(true);
    }
    if version.slot == reader.slot {
        // A slot runs one transaction after another and gives itself back only after commit or
        // undo: what is not the reader's own was committed before the reader began.
        // So its stamp is below the snapshot; one that is not stands in bytes that nobody wrote, and nobody committed it.
        if version.stamp != reader.stamp {
            let is_older = version.stamp < reader.snapshot;
            // Of a snapshot that was another's before, it may have been committed since: as of any other slot's.
            return (!is_older || !reader.inherits).then_some(is_older);
        }
        return Some(version.command < reader.command || planted::has(Bug::OwnCommandSeen));
    }
    if version.stamp >= reader.snapshot {
        // A commit is later than its stamp.
        return Some(false);
    }
    None
}

/// The rest of the rule: `LCB(version.slot, snapshot) > version.stamp`, from the cheapest source
/// that knows.
#[inline]
pub(crate) fn decide_by_writer(
    domain: &Domain,
    version: &VersionStamp,
    snapshot: Timestamp,
    cache: &mut SnapshotCache,
) -> bool {
    let index = usize::from(version.slot.get());
    let answer = match cache.answers.get_mut(index) {
        Some(answer) => answer,
        None => match cache.grow_to(index, domain.slots_max()) {
            Some(answer) => answer,
            // A slot id from bytes that nobody wrote: nobody committed it.
            None => return false,
        },
    };
    if answer.lcb < snapshot {
        if version.stamp < answer.lcb {
            return true;
        }
        if snapshot <= answer.up_to || planted::has(Bug::LcbCacheStale) {
            return false;
        }
    }
    let proven = domain.proven_below(version.slot, snapshot);
    if version.stamp < proven {
        // Proves this version, and says exactly what a snapshot just above it sees.
        if answer.up_to <= proven {
            *answer = Answer {
                lcb: proven,
                up_to: Timestamp(proven.get() + 1),
            };
        }
        return true;
    }
    let lcb = domain.lcb(version.slot, snapshot);
    if answer.up_to < snapshot {
        *answer = Answer {
            lcb,
            up_to: snapshot,
        };
    }
    version.stamp < lcb
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn cache_is_as_long_as_the_slots_that_were_asked_about() {
        let mut cache = SnapshotCache::default();
        assert_eq!(cache.answers.len(), 0);
        for (index, length) in [(3, 16), (40, 64), (20, 64), (999, 1000)] {
            if cache.answers.len() <= index {
                let answer = cache.grow_to(index, 1000).expect("there is such a slot");
                answer.lcb = Timestamp(index as u64);
            }
            assert_eq!(cache.answers.len(), length);
        }
        assert_eq!(cache.answers[3].lcb, Timestamp(3), "what it knew stays");
        assert!(cache.grow_to(1000, 1000).is_none());
    }
}
