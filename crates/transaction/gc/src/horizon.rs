//! Who can still see this? Every decision to freeze, bury, prune or delete an old version is made here.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.1 (watermarks), §3.3 (dead zones), §3.5 (garbage
//! collection).
//! Differences:
//! - Frozen means *committed* below oldest_tx; a stamp below oldest_tx is not enough.
//! - Pruning between two snapshots asks when versions were committed (LCB for each snapshot). The paper
//!   takes the successor's start minus one for the commit, which can lose a version.
//! - What undo would need (chains, trees) goes only when the commit that made it garbage is hardened. Tombstones are
//!   not of that kind: docs/design/0013-old-snapshots.md.
//!
//! Invariants:
//! - I1 A "yes" (dead, frozen, buried) holds for every snapshot that is open and every one that can still be
//!   drawn, from now on for ever. A "no" may be too careful.
//! - I2 Watermarks and lists of snapshots may be as old as one likes: snapshots that came since are at or above
//!   their clock C, and nothing whose life reaches C is called dead.
//! - I3 For `ts` that is not published any more, "was it committed before `ts`" may wrongly say no (its entry was cleaned
//!   away), but only if no open snapshot at or below `ts` sees the version: R4 keeps the entry of
//!   each of these. So a "no" may be believed where the question is whether any of them sees it.
//! - I4 What passes have settled for OLTP snapshots is asked before the watermarks whose `newest_olap` is to tell of the others, and passes publish first and settle second. So who was
//!   OLTP for what is settled, and does not see it, is known as analytical by the watermarks, or has ended: those are of that pass or a later one.
//!
//! Builds with debug assertions ask a model (every commit that ever was, every open snapshot) after each "dead".
//!
//! Concurrency: no state; may be asked by any thread. Lower bounds take no latch; questions about single versions
//! may take the writer's slot latch, so the caller holds none.

use std::cell::Cell;
use vellum_base::planted::{self, Bug};
use vellum_base::{SlotId, Timestamp};
use vellum_txn::{ActiveSnapshots, Domain, VersionStamp, Watermarks};

/// The watermarks of one pass and the hardened horizon, with the answers that follow.
#[derive(Clone, Copy, Debug)]
pub struct Horizon<'d> {
    domain: &'d Domain,
    marks: Watermarks,
    hardened: Timestamp,
}

impl<'d> Horizon<'d> {
    /// As of the last published pass: three cache lines that seldom change.
    #[inline]
    pub fn published(domain: &'d Domain) -> Self {
        // The order does not matter: both only fall behind.
        Self {
            domain,
            marks: planted_too_new(domain.watermarks()),
            hardened: domain.log().horizon(),
        }
    }

    /// The same, for who collects a slot and has its turn.
    #[inline]
    pub fn of_turn(domain: &'d Domain, slot: SlotId) -> Self {
        let mut horizon = Self::published(domain);
        if planted::has(Bug::WatermarksStale) {
            horizon.marks = planted_stale(horizon.marks, slot);
        }
        horizon
    }

    /// As of a pass made now (or by somebody else at this moment).
    pub fn refreshed(domain: &'d Domain) -> Self {
        Self {
            domain,
            marks: planted_too_new(domain.pass()),
            hardened: domain.log().horizon(),
        }
    }

    /// Whose horizon it is.
    pub fn domain(&self) -> &'d Domain {
        self.domain
    }

    /// The watermarks that it answers by.
    pub fn watermarks(&self) -> &Watermarks {
        &self.marks
    }

    /// Commits below it survive every crash.
    pub fn hardened(&self) -> Timestamp {
        self.hardened
    }

    /// Deltas of `slot` with a stamp below this are garbage: every snapshot sees the version that
    /// replaced them, or a later one. Not durable, so hardening does not matter.
    #[inline]
    pub fn deltas_dead_below(&self, slot: SlotId) -> Timestamp {
        self.checked(slot, self.marks.oldest_tx)
    }

    /// Overflow chains and trees that `slot` gave up with a stamp below this are freed: every snapshot sees that, and no
    /// crash undoes it. (Their pages are used again: undo would find somebody else's bytes.)
    #[inline]
    pub fn chains_dead_below(&self, slot: SlotId) -> Timestamp {
        self.checked(slot, self.marks.oldest_tx.min(self.hardened))
    }

    /// What `slot` gave up with a stamp below this every OLTP snapshot knows to be replaced, and no crash undoes that: an
    /// overflow chain is freed if no analytical snapshot sees it either.
    #[inline]
    pub fn chains_settled_below(&self, slot: SlotId) -> Timestamp {
        let below = self.marks.oldest_oltp.min(self.hardened);
        self.domain.proven_below(slot, below)
    }

    /// Tombstones made by `slot` with a stamp below this leave the main index: every OLTP transaction sees the
    /// delete. They do not wait for hardening: undo of a delete carries the whole row, and inserts it where it finds
    /// no tombstone.
    #[inline]
    pub fn tombstones_settled_below(&self, slot: SlotId) -> Timestamp {
        self.domain.proven_below(slot, self.marks.oldest_oltp)
    }

    /// `proven_below`, checked against the brute-force model in builds with debug assertions.
    #[inline]
    fn checked(&self, slot: SlotId, ts: Timestamp) -> Timestamp {
        let dead_below = self.domain.proven_below(slot, ts);
        self.domain.debug_check_dead_below(slot, dead_below);
        dead_below
    }

    /// True if every snapshot sees `version`: it needs no stamp any more.
    #[inline]
    pub fn is_frozen(&self, version: &VersionStamp) -> bool {
        self.domain.is_settled(version)
            || self
                .domain
                .is_committed_before(version, self.marks.oldest_tx)
    }

    /// True if no crash undoes `version`: what it replaced or deleted may go although undo would need it.
    #[inline]
    pub fn is_hardened(&self, version: &VersionStamp) -> bool {
        self.domain.is_committed_before(version, self.hardened)
    }

    /// True if `version`, replaced by `successor`, lies in the one dead zone that the watermarks know: committed
    /// after every open OLAP snapshot, replaced before every OLTP one.
    pub fn is_in_dead_zone(&self, version: &VersionStamp, successor: &VersionStamp) -> bool {
        // I3 makes the "no" of the second question trustworthy.
        self.domain
            .is_committed_before(successor, self.marks.oldest_oltp)
            && !self
                .domain
                .is_committed_before(version, self.marks.newest_olap)
    }

    /// True if no analytical snapshot of the pass, which are those below its clock, sees a version with this stamp: a version is committed
    /// above its stamp. So a row whose oldest version it is, and whose delete every OLTP snapshot sees, is dead.
    #[inline]
    pub fn is_after_olap(&self, stamp: Timestamp) -> bool {
        let after = match planted::has(Bug::AfterOldest) {
            true => self.marks.oldest_tx,
            false => self.marks.newest_olap,
        };
        stamp >= after
    }
}

/// As [`Horizon::is_in_dead_zone`], for who asks with every write: takes no latch and looks at no commit log, and a "no" may be still more careful. By what passes have
/// settled, and by the watermarks of the last one (I4).
#[inline]
pub fn is_plainly_dead(domain: &Domain, version: &VersionStamp, successor: &VersionStamp) -> bool {
    // A commit is later than its stamp.
    let dead = successor.stamp < domain.settled_for_oltp(successor.slot)
        && version.stamp >= domain.watermarks().newest_olap;
    if dead {
        domain.debug_check_unseen(Some(version), successor, Timestamp::ZERO);
    }
    dead
}

#[inline]
fn planted_too_new(mut marks: Watermarks) -> Watermarks {
    if planted::has(Bug::WatermarkTooNew) {
        for mark in [&mut marks.oldest_tx, &mut marks.oldest_oltp] {
            *mark = Timestamp(mark.get() + 1).min(marks.clock);
        }
    }
    marks
}

/// The watermarks that this thread went by at the first slot of its round: slots of a round ascend.
#[cold]
fn planted_stale(now: Watermarks, slot: SlotId) -> Watermarks {
    thread_local! {
        static ROUND: Cell<Option<(SlotId, Watermarks)>> = const { Cell::new(None) };
    }
    let marks = match ROUND.get() {
        Some((before, marks)) if before < slot && marks.clock <= now.clock => marks,
        _ => now,
    };
    ROUND.set(Some((slot, marks)));
    marks
}

/// True if no snapshot that is open or can still be drawn sees `version`, which `successor` replaced: each
/// of `active` sees both or neither, and every later one sees `successor`.
///
/// For a row that was inserted and deleted, `version` is the oldest version and `successor` the delete.
/// Asks two questions a snapshot; stops at the first that sees `version`.
pub fn is_dead_between(
    domain: &Domain,
    active: &ActiveSnapshots,
    version: &VersionStamp,
    successor: &VersionStamp,
) -> bool {
    // Snapshots at or above C see what C sees. (Also: a version of an unfinished transaction, or one that it
    // replaced, is never dead.)
    if !domain.is_committed_before(successor, active.clock()) {
        return false;
    }
    // Ascending: the first that sees the successor is followed only by those that do, too.
    for &snapshot in active.snapshots() {
        if domain.is_committed_before(successor, snapshot) {
            break;
        }
        // I3 makes this "no" trustworthy.
        if domain.is_committed_before(version, snapshot) {
            return false;
        }
    }
    domain.debug_check_unseen(Some(version), successor, Timestamp::ZERO);
    true
}

/// True if every snapshot that is open or can still be drawn is at or below `bound`, or sees `version`.
pub fn is_dead_above(
    domain: &Domain,
    active: &ActiveSnapshots,
    bound: Timestamp,
    version: &VersionStamp,
) -> bool {
    let first = active.snapshots().partition_point(|ts| *ts <= bound);
    // Ascending: who sees it is followed only by those that do, too. (The clock stands for who comes later.)
    let lowest = active.snapshots().get(first).copied();
    let dead = domain.is_committed_before(version, lowest.unwrap_or(active.clock()));
    if dead {
        domain.debug_check_unseen(None, version, bound);
    }
    dead
}
