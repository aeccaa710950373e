//! Chains of large values, and dropped trees, that no snapshot sees are freed although an older snapshot holds back what is on the list of work
//! before them.
//!
//! Paper: none; LeanStore's dead zones (§3.3), of values beyond a page.
//!
//! A chain belongs to one version H, and is listed when N replaces or deletes that. It goes when N's commit is hardened (a crash
//! brings it back before), every OLTP snapshot sees N, and no analytical one sees H. A tree goes when nobody sees it, from who made it to who dropped
//! it, and nobody is left who may have written to it (V22).
//!
//! Invariants:
//! - V54 A chain that was freed out of order is remembered until its entry is gone (V17: it is freed once).
//! - V68 Who wrote to a tree had a snapshot that sees it, and was a writer before that one went. Under read committed that may be long gone: a
//!   transaction writes to x; a tree is made; its next statement writes to that; the tree is dropped; its third statement sees neither. It keeps the
//!   snapshot of its first write, from before the tree, and the one of its last statement; its undo needs the tree. So trees wait for each writer whose
//!   oldest snapshot does not see the drop and whose newest is above who made the tree. (One that idles since before that has never seen it.) Asked
//!   after it was found that no snapshot sees the tree: who wrote to it counts as a writer by then.
//! - V52 What was passed by is looked at again when an analytical snapshot has ended.
//!
//! Concurrency: one collector of a slot at a time (V15). Crash: as of any chain: it stays in `pending_free` until it is free.

use crate::collect::{Collected, Step};
use crate::delta;
use crate::error::{Result, damaged};
use crate::store::{SlotVersions, VersionStore};
use crate::work::{Done, Work};
use std::collections::BTreeSet;
use vellum_base::{SlotId, Timestamp};
use vellum_btree::{LeafCopy, Seek};
use vellum_gc::{Horizon, OpenSnapshots, is_dead_between};
use vellum_txn::VersionStamp;
use vellum_wal::Purpose;

/// How far a list of work was looked through for what can go early.
#[derive(Debug, Default)]
pub(crate) struct Early {
    /// Entries up to this key were looked at.
    through: Vec<u8>,
    /// Of them some were passed by.
    passed: bool,
    snapshots: OpenSnapshots,
    /// Entries whose chain is free (V54).
    freed: BTreeSet<Vec<u8>>,
}

impl Early {
    /// Nothing was looked at yet.
    pub fn of(slot: SlotId) -> Self {
        Self {
            snapshots: OpenSnapshots::of(slot),
            ..Self::default()
        }
    }

    /// Whether the work of this entry was done out of order.
    pub fn is_freed(&self, key: &[u8]) -> bool {
        self.freed.contains(key)
    }

    /// The entries whose chain is free.
    pub fn freed(&self) -> &BTreeSet<Vec<u8>> {
        &self.freed
    }

    /// Forgets entries up to `through`: they are gone.
    pub fn forget(&mut self, through: &[u8]) {
        if !self.freed.is_empty() {
            self.freed.retain(|key| key.as_slice() > through);
        }
    }
}

impl VersionStore {
    /// Frees chains on the list of work behind what is due in order.
    pub(crate) fn free_early(
        &self,
        versions: &SlotVersions,
        (early, done): (&mut Early, &Done),
        horizon: &Horizon<'_>,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        // A database that keeps deleted rows for all is for comparison: it goes by the oldest snapshot alone.
        let is_on = self.options().graveyard && !horizon.watermarks().newest_olap.is_zero();
        if !is_on || !versions.has_work() {
            return Ok(());
        }
        let due = horizon.chains_settled_below(step.slot);
        if due.is_zero() {
            return Ok(());
        }
        if early.passed
            && let Some(seen) = early.snapshots.take_lost(horizon.domain())
        {
            // V52. Whoever needed one did not see the version that gave it up.
            let seen = delta::key(seen, 0);
            if early.through.as_slice() > seen.as_slice() {
                early.through = seen.to_vec();
            }
        }
        if early.through < done.through {
            early.through.clone_from(&done.through);
        }
        // Not of that stamp itself: the budget may have ended among its entries.
        if versions.newest_work() < stamp_of(&early.through) {
            return Ok(());
        }
        let bound = delta::key(due, 0);
        // Of a tree that waits for what nobody tells: the next look begins with it.
        let mut waits = false;
        let mut leaf = LeafCopy::new(self.context().page_size());
        let (mut key, mut from) = (Vec::new(), early.through.clone());
        loop {
            versions.work.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, &mut key);
                if key.as_slice() >= bound.as_slice() {
                    return Ok(());
                }
                if key <= early.through || early.freed.contains(&key) {
                    continue;
                }
                if !step.budget.spend(leaf.payload(index).len() as u64) {
                    collected.more = true;
                    return Ok(());
                }
                let work = Work::decode(leaf.payload(index), &versions.work)?;
                let (stamp, command) = key
                    .get(..delta::KEY_BYTES)
                    .and_then(delta::decode_key)
                    .ok_or_else(|| damaged("key of a work list", versions.work.root()))?;
                let by = VersionStamp::new(step.slot, stamp, command);
                let goes = self.is_needless(&mut early.snapshots, horizon, &work, &by);
                let page_size = self.context().page_size();
                // V67: before the log is asked for a round.
                if goes && !step.budget.spend_pages(work.first_step_bytes(page_size)) {
                    collected.more = true;
                    return Ok(());
                }
                let may = match work {
                    Work::Tree { root, .. } if goes => self.may_free_tree(root, horizon)?,
                    _ => goes,
                };
                if !may {
                    waits |= goes;
                    early.passed |= !goes;
                    if !waits {
                        early.through.clone_from(&key);
                    }
                    continue;
                }
                let is_free = step.repeat(page_size, collected, |log| match work {
                    Work::Chain { root, .. } => self.free_chain_step(root, log, Purpose::Optional),
                    Work::Tree { root, .. } => self.free_dropped_step(root, log, Purpose::Optional),
                });
                match is_free {
                    // Goes on with the same one.
                    Ok(false) => return Ok(()),
                    Ok(true) => {
                        early.freed.insert(key.clone());
                        versions.note_freed(&work);
                        collected.work += 1;
                        versions.work.delete(&key, None)?;
                        early.freed.remove(&key);
                    }
                    // V59: its turn comes again, in order at the latest.
                    Err(error) if error.concerns_one() => {
                        step.first.note::<()>(Err(error));
                        early.passed = true;
                    }
                    Err(error) => return Err(error),
                }
                if !waits {
                    early.through.clone_from(&key);
                }
            }
            match leaf.upper_fence() {
                Some(fence) => {
                    from.clear();
                    from.extend_from_slice(fence);
                }
                None => return Ok(()),
            }
        }
    }
}

impl VersionStore {
    /// Whether nobody sees what `by` gave up, as every OLTP snapshot knows, nor has a writer that is looked at seen it (V68).
    fn is_needless(
        &self,
        snapshots: &mut OpenSnapshots,
        horizon: &Horizon<'_>,
        work: &Work,
        by: &VersionStamp,
    ) -> bool {
        let (Work::Chain { made_by, .. } | Work::Tree { made_by, .. }) = work;
        let Some(version) = made_by else {
            return false;
        };
        if !is_unseen(snapshots, horizon, version, by) {
            return false;
        }
        let Work::Tree { root, .. } = work else {
            return true;
        };
        if self.dropped().read().contains(*root) {
            // Begun before.
            return true;
        }
        // V52: before the words of writers, so that the end of one that is found open is heard of. (It is analytical: the drop is below the oldest other one.)
        snapshots.since(horizon);
        let domain = horizon.domain();
        !domain.has_writer_spanning(version.stamp, |snapshot| {
            domain.is_committed_before(by, snapshot)
        })
    }
}

fn stamp_of(key: &[u8]) -> Timestamp {
    key.get(..delta::KEY_BYTES)
        .and_then(delta::decode_key)
        .map_or(Timestamp::ZERO, |(stamp, _)| stamp)
}

/// Whether no snapshot sees `version`, which `by` replaced, as every OLTP snapshot knows.
fn is_unseen(
    snapshots: &mut OpenSnapshots,
    horizon: &Horizon<'_>,
    version: &VersionStamp,
    by: &VersionStamp,
) -> bool {
    // A version is committed above its stamp.
    version.stamp >= horizon.watermarks().newest_olap || {
        let list = snapshots.since(horizon);
        is_dead_between(horizon.domain(), list, version, by)
    }
}
