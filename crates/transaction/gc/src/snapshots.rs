//! The open snapshots, as a collector knows them from one step to the next: who of them needs a deleted row?
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.3 (dead zones). Difference: whole rows, from their insert to their
//! delete; they are dropped instead of buried.
//!
//! Invariants:
//! - I1 A "dead" holds for every snapshot that is open and every one that can still be drawn. A "no" may be too careful: the
//!   list may name snapshots that are gone. [`OpenSnapshots::take_lost`] says when to ask again.
//! - I2 Whoever a "no" was for is among `relied` while it is open, and in `lost` behind that, until it is told that it has ended. That are analytical ones, whose
//!   ends are counted: a row is asked about when every OLTP snapshot sees its delete, so who does not is below the oldest of these. Who has nothing to look at
//!   again does not ask for a long time, so of those that have ended the least is kept, and no list.
//!
//! Concurrency: belongs to one collector. Collecting the list waits for slots that are just beginning, so the caller
//! holds no latch.

use crate::horizon::{Horizon, is_dead_between};
use vellum_base::{SlotId, Timestamp};
use vellum_txn::{ActiveSnapshots, Domain, VersionStamp};

/// A list of the open snapshots that is collected again when it is too old. Keep one a collector.
#[derive(Debug, Default)]
pub struct OpenSnapshots {
    list: ActiveSnapshots,
    /// The watermark of OLTP snapshots when the list was collected.
    oldest_oltp: Timestamp,
    /// What [`Domain::olap_ended`] was when somebody last asked.
    ended: u64,
    /// Analytical snapshots on the list (I2), ascending, each with a stamp below which it sees all that the slot has committed.
    relied: Vec<(Timestamp, Timestamp)>,
    /// The least of these stamps, of snapshots that are on the list no more and of whose end nobody was told.
    lost: Option<Timestamp>,
    /// Whose versions are asked about.
    slot: Option<SlotId>,
}

impl OpenSnapshots {
    /// Knows nothing yet.
    pub const fn new() -> Self {
        Self {
            list: ActiveSnapshots::new(),
            oldest_oltp: Timestamp::ZERO,
            ended: 0,
            relied: Vec::new(),
            lost: None,
            slot: None,
        }
    }

    /// The same, for who asks about versions of one slot.
    pub const fn of(slot: SlotId) -> Self {
        let mut new = Self::new();
        new.slot = Some(slot);
        new
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
            self.rely_on_list(horizon.domain());
        }
        &self.list
    }

    /// Keeps I2.
    fn rely_on_list(&mut self, domain: &Domain) {
        self.forget_ended();
        let list = self.list.snapshots();
        let count = list.partition_point(|snapshot| *snapshot < self.oldest_oltp);
        for snapshot in &list[..count] {
            if let Err(at) = self.relied.binary_search_by_key(snapshot, |it| it.0) {
                // Now: what the slot's log knows of a snapshot goes with it.
                let seen = self.slot.map(|slot| domain.proven_below(slot, *snapshot));
                let relied = (*snapshot, seen.unwrap_or(Timestamp::ZERO));
                self.relied.insert(at, relied);
            }
        }
    }

    /// Relies on nobody who is not on the list any more.
    fn forget_ended(&mut self) {
        let (open, lost) = (self.list.snapshots(), &mut self.lost);
        self.relied.retain(|(snapshot, seen)| {
            let is_open = open.binary_search(snapshot).is_ok();
            if !is_open {
                *lost = Some(lost.map_or(*seen, |lost| lost.min(*seen)));
            }
            is_open
        });
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

    /// After analytical snapshots have ended that a row may have been kept for (I2): a stamp of the slot. Rows that were deleted with that or a
    /// later one are to be asked about again; the deletes before it were committed below all that have ended, which saw them. (By the commit: a
    /// stamp below a snapshot may have been committed above it.) Zero if no slot is known. The list is forgotten if any has ended.
    ///
    /// Cost: a load, where none has ended. Else the open ones are collected, so the caller holds no latch.
    pub fn take_lost(&mut self, domain: &Domain) -> Option<Timestamp> {
        // Before the list is collected again: who ends later is found by the next call.
        let ended = domain.olap_ended();
        if ended == self.ended {
            return None;
        }
        self.ended = ended;
        if !self.relied.is_empty() {
            domain.active_snapshots(&mut self.list);
            self.forget_ended();
        }
        // Collected again by who asks, with what the oldest OLTP snapshot was then.
        self.list = ActiveSnapshots::new();
        self.lost.take()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;
    use vellum_txn::{Class, Clock, Config, Durability, Isolation, Manager, Options};
    use vellum_wal::{Log, LogConfig, LogStart};

    fn manager() -> Arc<Manager> {
        let clock = Arc::new(Clock::above(Timestamp::ZERO));
        let ticks = clock.clone();
        let config = LogConfig {
            slots_max: 4,
            slot_buffer_bytes: 4096,
            ..LogConfig::default()
        };
        let directory = Arc::new(vellum_io::MemoryDirectory::new());
        let now = Arc::new(move || ticks.now());
        let log = Log::create(directory, config, now, LogStart::first()).expect("a log");
        let config = Config {
            slots_max: 4,
            ..Config::default()
        };
        Arc::new(Manager::new(Arc::new(log), clock, config))
    }

    /// Symptom: sixteen bytes more for each analytical snapshot that ever was. Cause: who found all rows dead never asked who had ended. Guard: who is on
    /// the list no more is left in one stamp.
    #[test]
    fn regress_snapshots_that_have_ended_take_no_memory_though_nobody_asks() {
        let manager = manager();
        let options = |class| Options {
            isolation: Isolation::Snapshot,
            durability: Durability::Async,
            read_only: false,
            class,
        };
        let mut snapshots = OpenSnapshots::of(SlotId(0));
        for _ in 0..500 {
            let olap = manager.begin(options(Class::Olap), Duration::MAX).unwrap();
            let oltp = manager.begin(options(Class::Oltp), Duration::MAX).unwrap();
            let version = oltp.version(oltp.next_command().unwrap()).unwrap();
            oltp.commit().unwrap();
            let horizon = Horizon::refreshed(&manager);
            assert_eq!(
                snapshots.since(&horizon).snapshots().len(),
                1,
                "{version:?}"
            );
            assert!(snapshots.relied.len() <= 1);
            drop(olap);
        }
        // Whoever asks later is told.
        assert!(snapshots.take_lost(&manager).is_some());
        assert_eq!(snapshots.take_lost(&manager), None);
        assert!(snapshots.relied.is_empty());
    }
}
