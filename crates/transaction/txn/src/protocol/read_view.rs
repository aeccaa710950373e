//! Snapshots as lists: who was writing when it was taken is not seen, whoever wrote before is.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §2.4 "Out-of-Memory SI Commit Protocols" (PostgreSQL, InnoDB,
//! WiredTiger), the variant Basic of §4.
//! Differences: writers only are listed, by the stamps that they draw at their first write (as WiredTiger does):
//! readers write nothing that others look at.
//!
//! Invariants:
//! - I1 A writer is in the list from the draw of its stamp to the draw of its commit timestamp, or until everything it
//!   wrote is reverted. Each of these is one step with the change of the list, under its mutex, as is reading the
//!   clock for a snapshot with the copy of the list. So a view of snapshot `s` sees a writer exactly if that committed below `s`.
//! - I2 The list ascends: stamps are drawn under its mutex.
//!
//! Why the commit leaves the list before its record is in the log: whoever sees it from then on may overwrite its rows and
//! commit, with a later timestamp. The writer holds its slot's latch from before it leaves until its record is
//! appended. A flush round that has visited the slot before read its clock C before the draw, so both commits are at or above C
//! and both are lost with a crash; one that comes later finds the record.
//!
//! Why not after: a snapshot drawn in between would lie above the commit timestamp and yet not see the commit; the
//! collector, which asks commit logs, would take from it what it still reads.
//!
//! Concurrency: the mutex is innermost. It is taken with the slot's latch held (stamp, commit) or with none (begin).

use vellum_base::Timestamp;
use vellum_sync::{CachePadded, Mutex};

use crate::clock::Clock;

/// The writers that have not ended.
#[derive(Debug)]
pub(crate) struct ActiveWriters {
    stamps: CachePadded<Mutex<Vec<Timestamp>>>,
}

impl ActiveWriters {
    pub(crate) fn new() -> Self {
        Self {
            stamps: CachePadded::new(Mutex::new(Vec::new())),
        }
    }

    /// Draws the stamp of a writer.
    pub(crate) fn draw_stamp(&self, clock: &Clock) -> Timestamp {
        let mut stamps = self.stamps.lock();
        let stamp = clock.draw();
        debug_assert!(stamps.last().is_none_or(|last| *last < stamp), "I2");
        stamps.push(stamp);
        stamp
    }

    /// Draws the commit timestamp of the writer `stamp`: everybody who begins from now on sees it.
    pub(crate) fn draw_commit(&self, clock: &Clock, stamp: Timestamp) -> Timestamp {
        let mut stamps = self.stamps.lock();
        remove(&mut stamps, stamp);
        clock.draw()
    }

    /// Takes out the writer `stamp`, of which nothing is left.
    pub(crate) fn aborted(&self, stamp: Timestamp) {
        remove(&mut self.stamps.lock(), stamp);
    }

    /// True if `stamp` has not ended.
    pub(crate) fn contains(&self, stamp: Timestamp) -> bool {
        self.stamps.lock().binary_search(&stamp).is_ok()
    }

    /// A snapshot and what it must not see.
    fn view(&self, clock: &Clock, mut active: Vec<Timestamp>) -> View {
        active.clear();
        let stamps = self.stamps.lock();
        active.extend_from_slice(&stamps);
        let snapshot = clock.now();
        View { snapshot, active }
    }
}

fn remove(stamps: &mut Vec<Timestamp>, stamp: Timestamp) {
    let found = stamps.binary_search(&stamp);
    debug_assert!(found.is_ok(), "I1: writer {stamp} is in the list");
    if let Ok(index) = found {
        stamps.remove(index);
    }
}

/// What a snapshot must not see.
#[derive(Debug, Default)]
struct View {
    snapshot: Timestamp,
    /// Ascending.
    active: Vec<Timestamp>,
}

impl View {
    #[inline]
    fn sees(&self, stamp: Timestamp) -> bool {
        // Before the oldest writer, or after the snapshot, two comparisons decide.
        match self.active.first() {
            Some(oldest) if stamp >= *oldest => {
                stamp < self.snapshot && self.active.binary_search(&stamp).is_err()
            }
            _ => stamp < self.snapshot,
        }
    }
}

/// The views of a transaction's open snapshots.
#[derive(Debug, Default)]
pub(crate) struct Views {
    current: View,
    /// Of snapshots that cursors still hold.
    earlier: Vec<View>,
}

impl Views {
    /// Takes a new snapshot, which is the current one from now on. The slot has announced it (R2).
    pub(crate) fn take(&mut self, active: &ActiveWriters, clock: &Clock, keep: bool) -> Timestamp {
        let last = std::mem::take(&mut self.current);
        let memory = if keep {
            self.earlier.push(last);
            Vec::new()
        } else {
            last.active
        };
        self.current = active.view(clock, memory);
        self.current.snapshot
    }

    /// Whether `snapshot`, an open one, sees what `stamp` wrote.
    #[inline]
    pub(crate) fn sees(&self, stamp: Timestamp, snapshot: Timestamp) -> bool {
        if snapshot == self.current.snapshot {
            return self.current.sees(stamp);
        }
        let view = self.earlier.iter().find(|view| view.snapshot == snapshot);
        debug_assert!(
            view.is_some(),
            "snapshot {snapshot} is open, so it has a view"
        );
        // Nothing is visible to a snapshot that is not open.
        view.is_some_and(|view| view.sees(stamp))
    }

    /// Forgets an earlier snapshot.
    pub(crate) fn close(&mut self, snapshot: Timestamp) {
        self.earlier.retain(|view| view.snapshot != snapshot);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn view_sees_who_ended_before_it_and_nobody_else() {
        let (clock, active) = (Clock::above(Timestamp::ZERO), ActiveWriters::new());
        let first = active.draw_stamp(&clock);
        let second = active.draw_stamp(&clock);
        let mut views = Views::default();
        let old = views.take(&active, &clock, false);
        assert!(!views.sees(first, old) && !views.sees(second, old));
        let commit = active.draw_commit(&clock, first);
        let third = active.draw_stamp(&clock);
        active.aborted(third);
        assert!(
            !views.sees(first, old),
            "what a snapshot sees does not change"
        );
        let new = views.take(&active, &clock, true);
        assert!(commit < new);
        assert!(views.sees(first, new) && !views.sees(second, new));
        assert!(views.sees(third, new), "nothing of it is left to be seen");
        assert!(!views.sees(first, old), "a cursor holds the old one");
        assert!(active.contains(second) && !active.contains(first));
        views.close(old);
        assert!(views.earlier.is_empty());
        let later = active.draw_stamp(&clock);
        assert!(!views.sees(later, new));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use vellum_sync::{Arc, model, thread};

    /// I1: with a list that a writer leaves before or after it draws its commit timestamp, outside the mutex, this fails.
    #[test]
    fn loom_view_and_commit_timestamp_agree() {
        model(2, || {
            let parts = Arc::new((Clock::above(Timestamp(1)), ActiveWriters::new()));
            let stamp = parts.1.draw_stamp(&parts.0);
            let writer = parts.clone();
            let thread = thread::spawn(move || writer.1.draw_commit(&writer.0, stamp));
            let mut views = Views::default();
            let snapshot = views.take(&parts.1, &parts.0, false);
            let seen = views.sees(stamp, snapshot);
            let commit = thread.join().unwrap();
            assert_eq!(seen, commit < snapshot);
        });
    }
}
