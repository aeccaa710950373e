//! The open snapshots, as a collector knows them from one step to the next: who of them needs a deleted row?
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.3 (dead zones). Difference: whole rows, from their insert to their
//! delete; they are dropped instead of buried.
//!
//! Invariants:
//! - I1 A "dead" holds for every snapshot that is open and every one that can still be drawn. A "no" may be too careful: the
//!   list may name snapshots that are gone. [`OpenSnapshots::has_lost_one`] says when to ask again.
//!
//! Concurrency: belongs to one collector. Collecting the list waits for slots that are just beginning, so the caller
//! holds no latch.

use crate::horizon::{Horizon, is_dead_between};
use vellum_base::Timestamp;
use vellum_txn::{ActiveSnapshots, Domain, VersionStamp};

/// A list of the open snapshots that is collected again when it is too old. Keep one a collector.
#[derive(Debug, Default)]
pub struct OpenSnapshots {
    list: ActiveSnapshots,
    /// The watermark of OLTP snapshots when the list was collected.
    oldest_oltp: Timestamp,
    /// What [`Domain::olap_ended`] was when somebody last asked.
    ended: u64,
}

impl OpenSnapshots {
    /// Knows nothing yet.
    pub const fn new() -> Self {
        Self {
            list: ActiveSnapshots::new(),
            oldest_oltp: Timestamp::ZERO,
            ended: 0,
        }
    }

    /// The open snapshots, no older than the pass of `horizon`.
    pub fn since(&mut self, horizon: &Horizon<'_>) -> &ActiveSnapshots {
        let marks = horizon.watermarks();
        // While no clock ticks an OLTP snapshot may end, and nobody counts these ends: a "no" for its sake would stay. Which of them matter
        // are below what is the oldest one's now, and were not below what was the oldest one's then.
        if self.list.clock() < marks.clock || self.oldest_oltp < marks.oldest_oltp {
            // Before the list, which may be newer.
            self.oldest_oltp = marks.oldest_oltp;
            horizon.domain().active_snapshots(&mut self.list);
        }
        &self.list
    }

    /// True if no snapshot sees any version of a row: `oldest` is its oldest version (`None` if that is frozen), `delete` its
    /// end, committed below `oldest_oltp`. Costs a comparison where every analytical snapshot is older than
    /// the row.
    pub fn is_row_dead(
        &mut self,
        horizon: &Horizon<'_>,
        oldest: Option<&VersionStamp>,
        delete: &VersionStamp,
    ) -> bool {
        let marks = horizon.watermarks();
        debug_assert!(
            delete.stamp < marks.oldest_oltp,
            "every OLTP snapshot sees the delete"
        );
        let is_after = oldest.map_or(marks.newest_olap.is_zero(), |version| {
            horizon.is_after_olap(version.stamp)
        });
        let domain = horizon.domain();
        let dead = is_after || {
            let list = self.since(horizon);
            match oldest {
                Some(version) => is_dead_between(domain, list, version, delete),
                // Who does not see the delete sees the row.
                None => domain.is_committed_before(delete, list.oldest()),
            }
        };
        if dead {
            domain.debug_check_unseen(oldest, delete, Timestamp::ZERO);
        }
        dead
    }

    /// True once after analytical snapshots have ended: rows that were kept for one of them are to be asked about
    /// again. The list is forgotten then.
    pub fn has_lost_one(&mut self, domain: &Domain) -> bool {
        // Before the list is collected again: who ends later is found by the next call.
        let ended = domain.olap_ended();
        let lost = ended != self.ended;
        if lost {
            self.ended = ended;
            self.list = ActiveSnapshots::new();
        }
        lost
    }
}
