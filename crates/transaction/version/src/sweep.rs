//! The sweep of a slot's delta index: transient deltas (see `shortcut`) go when no snapshot is left that they are for,
//! although an older one holds back what else is in the index.
//!
//! Paper: none; LeanStore (§3.3) prunes versions between two snapshots in fat rows only.
//!
//! They are in an index of their own (`delta_index`), where those of transactions that commit one after another stand side by side. As long as no
//! new analytical snapshot is drawn all of them are needless once every OLTP snapshot sees them, and go whole leaves at a time, unread. Where
//! one was, a sweep looks at leaf after leaf, once: some ten nanoseconds a delta. What somebody needs stays where it is, and what comes
//! behind it goes beside it. The rightmost leaf is not touched.
//!
//! Invariants:
//! - V48 A transient delta of version N goes if N is committed and every open snapshot, and every one that can still be drawn,
//!   is at or below its bound, or sees N. So nobody who can come by N asks for it (V45).
//! - V49 It goes by a name of the transient index, where nothing comes back (V77). Interleaving in one index: the sweep
//!   copies the leaf; the row turns fat and back, and what is needed is put under N's name; the sweep takes that away.
//! - V78 Nobody looks at the bounds of what goes unread: writers go by the newest analytical snapshot that they know of, so bounds are at or
//!   above that. Who appends keeps the least bound; where a snapshot above it is open, all that is there by then is looked at one by one, and the least begins anew.
//!   (Whoever ends makes bounds that were right no less so.)
//! - V50 What was passed by because somebody needs it is passed by again when an analytical snapshot has ended.
//!
//! Concurrency: one collector of a slot at a time (V15); the slot's transaction appends at the right edge meanwhile.

use crate::collect::{Collected, Step};
use crate::delta::{self, Home};
use crate::delta_index::Named;
use crate::error::{Result, damaged};
use crate::store::{SlotVersions, VersionStore};
use crate::undo::REMOVE_STEP;
use vellum_base::planted::Bug;
use vellum_base::{SlotId, Timestamp};
use vellum_btree::{LeafCopy, Seek};
use vellum_gc::{Horizon, OpenSnapshots};
use vellum_metrics::Counter;
use vellum_txn::VersionStamp;

/// How far a slot's delta index was swept.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Deltas below this key were looked at; what is behind it goes unread, once it is above what has to be looked at.
    from: Vec<u8>,
    /// A key of the leaf that was swept last. It is joined with its right neighbour if it is small once that was swept, too:
    /// before, the neighbour is full.
    last: Option<Vec<u8>>,
    /// The first that was passed by because somebody needs it.
    passed: Option<Vec<u8>>,
    /// Below this stamp all went that is behind those that are looked at.
    unread: Timestamp,
    /// What [`OpenSnapshots`] said about ends when last asked.
    snapshots: OpenSnapshots,
    leaf: Option<LeafCopy>,
}

impl Sweep {
    /// Nothing was swept yet.
    pub fn of(slot: SlotId) -> Self {
        Self {
            snapshots: OpenSnapshots::of(slot),
            ..Self::default()
        }
    }

    /// True if it ever came to look at a leaf.
    #[cfg(test)]
    pub fn has_read(&self) -> bool {
        self.leaf.is_some()
    }
}

impl VersionStore {
    /// Sweeps what is due of a slot's delta index.
    pub(crate) fn sweep_deltas(
        &self,
        versions: &SlotVersions,
        sweep: &mut Sweep,
        horizon: &Horizon<'_>,
        dead: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        if let Some(passed) = &sweep.passed
            && let Some(seen) = sweep.snapshots.take_lost(horizon.domain())
        {
            // V50. Whoever needed one did not see the version that it is named by.
            let seen = delta::key(seen, 0);
            if passed.as_slice() >= seen.as_slice() {
                sweep.from.clone_from(passed);
                sweep.passed = None;
            } else if sweep.from.as_slice() > seen.as_slice() {
                sweep.from = seen.to_vec();
            }
        }
        let due = horizon.tombstones_settled_below(step.slot);
        let newest = versions.last_transient();
        // None at all is asked for itself: a slot that has committed nothing below the oldest snapshot has no stamp below which all is dead.
        if newest.is_zero() || newest < stamp_of(&sweep.from).max(dead) || due.is_zero() {
            return Ok(());
        }
        let newest_olap = horizon.watermarks().newest_olap;
        let behind = match self.has(Bug::SweptTooEarly) {
            true => Timestamp::ZERO,
            false => versions.transient.transient_above(newest_olap),
        };
        let (dead, due_stamp, due) = (delta::key(dead, 0), due, delta::key(due, 0));
        if sweep.from.as_slice() < dead.as_slice() {
            sweep.from.clear();
            sweep.from.extend_from_slice(&dead);
        }
        let page_size = self.context().page_size();
        let mut leaf = match sweep.leaf.take() {
            Some(leaf) => leaf,
            None => LeafCopy::new(page_size),
        };
        let is_looked_at = |from: &[u8]| !behind.is_zero() && stamp_of(from) <= behind;
        while is_looked_at(&sweep.from) {
            versions
                .transient
                .tree
                .read_leaf(Seek::AtOrAfter(&sweep.from), &mut leaf)?;
            // Whole leaves below the bound only: each is looked at once.
            let whole = leaf.upper_fence().filter(|fence| *fence <= due.as_slice());
            #[cfg(test)]
            let whole = whole
                .or((self.sweeps_parts && sweep.from.as_slice() < &due[..]).then_some(&due[..]));
            let Some(fence) = whole else {
                break;
            };
            if !step.budget.spend((page_size / 4) as u64) {
                collected.more = true;
                break;
            }
            let fence = fence.to_vec();
            let swept = self.sweep_leaf(versions, sweep, horizon, &leaf, &fence, step)?;
            collected.swept += swept;
            collected.work += swept;
            if let Some(last) = sweep.last.take() {
                versions.transient.tree.join_if_possible(&last, None)?;
            }
            sweep.last = Some(std::mem::replace(&mut sweep.from, fence));
        }
        sweep.leaf = Some(leaf);
        if is_looked_at(&sweep.from) || sweep.unread >= due_stamp {
            return Ok(());
        }
        #[cfg(any(test, debug_assertions))]
        self.check_unread(versions, step.slot, &sweep.from, horizon, due_stamp)?;
        if sweep.from.as_slice() <= &dead[..] {
            // Nothing that somebody needs is to the left.
            sweep.from.clear();
        }
        let (done, swept) = self.sweep_unread(versions, sweep, behind, due_stamp)?;
        collected.swept += swept;
        collected.work += swept;
        match done {
            true => sweep.unread = due_stamp,
            false => collected.more = true,
        }
        Ok(())
    }

    /// Takes what is below `due` out, from where the sweep has come to, behind `behind` (V78). Returns whether that was all, and how many went.
    fn sweep_unread(
        &self,
        versions: &SlotVersions,
        sweep: &mut Sweep,
        behind: Timestamp,
        due: Timestamp,
    ) -> Result<(bool, u64)> {
        let transient = &versions.transient;
        if let Some(last) = sweep.last.take() {
            transient.tree.join_if_possible(&last, None)?;
        }
        let (done, swept) = transient.take_within(behind, &sweep.from, due, REMOVE_STEP)?;
        let metrics = self.context().metrics();
        metrics.add(Counter::VersionsSwept, swept);
        Ok((done, swept))
    }

    /// V78, one by one. Where parts of leaves are swept, they are swept here.
    #[cfg(any(test, debug_assertions))]
    fn check_unread(
        &self,
        versions: &SlotVersions,
        slot: SlotId,
        from: &[u8],
        horizon: &Horizon<'_>,
        due: Timestamp,
    ) -> Result<()> {
        let mut leaf = LeafCopy::new(self.context().page_size());
        let (mut from, due) = (from.to_vec(), delta::key(due, 0));
        let (mut key, mut names) = (Vec::new(), Vec::new());
        while from.as_slice() < &due[..] {
            let transient = &versions.transient.tree;
            transient.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, &mut key);
                let named = delta::transient(leaf.payload(index)).zip(delta::decode_key(&key));
                let ((tree, bound), (stamp, command)) =
                    named.ok_or_else(|| damaged("transient delta", transient.root()))?;
                if key.as_slice() >= &due[..] {
                    break;
                }
                let version = VersionStamp::new(slot, stamp, command);
                if !self.has(Bug::SweptTooEarly) {
                    assert!(bound >= horizon.watermarks().newest_olap, "V78");
                    let domain = horizon.domain();
                    domain.debug_check_unseen(None, &version, bound);
                }
                let name = delta::key(stamp, command);
                let home = Home::Transient;
                names.push(Named { home, name, tree });
            }
            match leaf.upper_fence() {
                Some(fence) => from = fence.to_vec(),
                None => break,
            }
        }
        #[cfg(test)]
        if self.sweeps_parts {
            versions.transient.take_each(&names, false)?;
        }
        Ok(())
    }

    /// Sweeps what is below `end` in a leaf. Returns how many deltas went.
    #[allow(clippy::too_many_arguments, reason = "what a sweep knows, in parts")]
    fn sweep_leaf(
        &self,
        versions: &SlotVersions,
        sweep: &mut Sweep,
        horizon: &Horizon<'_>,
        leaf: &LeafCopy,
        end: &[u8],
        step: &Step<'_>,
    ) -> Result<u64> {
        let (mut key, mut names) = (Vec::new(), Vec::new());
        for index in leaf.position()..leaf.len() {
            let entry = leaf.payload(index);
            let Some((tree, bound)) = delta::transient(entry) else {
                continue;
            };
            leaf.key(index, &mut key);
            if key.as_slice() >= end {
                break;
            }
            let (stamp, command) = delta::decode_key(&key)
                .ok_or_else(|| damaged("key of a delta", versions.transient.tree.root()))?;
            let version = VersionStamp::new(step.slot, stamp, command);
            let bound = if self.has(Bug::SweptTooEarly) {
                Timestamp::MAX
            } else {
                bound
            };
            if !is_needless(&mut sweep.snapshots, horizon, &version, bound) {
                if sweep.passed.is_none() {
                    sweep.passed = Some(key.clone());
                }
                continue;
            }
            names.push(Named {
                home: Home::Transient,
                name: delta::key(stamp, command),
                tree,
            });
        }
        if names.is_empty() {
            return Ok(0);
        }
        // Leaves that become small are joined once the next one was swept.
        let taken = versions.transient.take_each(&names, false)?;
        let metrics = self.context().metrics();
        metrics.add(Counter::VersionsSwept, taken);
        Ok(taken)
    }
}

/// The lowest stamp of keys at or above this one, which may be a fence, and cut short.
fn stamp_of(key: &[u8]) -> Timestamp {
    let mut stamp = [0; 8];
    let known = key.len().min(stamp.len());
    stamp[..known].copy_from_slice(&key[..known]);
    Timestamp(u64::from_be_bytes(stamp))
}

/// V48, of a version that every OLTP snapshot sees.
fn is_needless(
    snapshots: &mut OpenSnapshots,
    horizon: &Horizon<'_>,
    version: &VersionStamp,
    bound: Timestamp,
) -> bool {
    // All others are OLTP, or see what was committed below the clock of the pass.
    bound >= horizon.watermarks().newest_olap || {
        let list = snapshots.since(horizon);
        vellum_gc::is_dead_above(horizon.domain(), list, bound, version)
    }
}
