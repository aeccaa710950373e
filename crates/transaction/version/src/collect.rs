//! Collection: what a slot's own versions left behind goes when nobody needs it, a bounded amount at a time.
//!
//! Paper: LeanStore §3.1 (cooperative GC), §3.5 (GC between transactions). Who can still see what is
//! answered by `gc::horizon` alone.
//!
//! Invariants:
//! - V15 Only who holds the slot (its transaction's end, or maintenance with a lease) collects its garbage; but
//!   before-images below everyone, which are a range of a tree, are anybody's.
//! - V16 A tombstone is removed only while it is still the row's newest version, by name.
//! - V17 An entry's work is done before the entry goes, and the store remembers in memory through which entry that
//!   is so: chains and trees are freed once, whatever fails in between. (Twice would free who owns the pages by then.)
//! - V22 The pages of a dropped tree go only when every transaction that may have written to it has ended, for good:
//!   the drop is below every snapshot, and a writer's snapshot is from before its first write; no writer is
//!   parked or withdrawn; and a flush round began after that, so that no crash makes a writer a loser whose undo needs the tree.
//!
//! Crash: the work list is gone after a crash; tombstones are then removed by any cleaner, chains and trees by
//! recovery (`pending_free`).

use crate::delta;
use crate::error::{Result, damaged};
use crate::pending::FREE_STEP;
use crate::row::Header;
use crate::store::{Done, SlotVersions, VersionStore, Work, work_key};
use crate::undo::REMOVE_STEP;
use vellum_base::{PageId, SlotId, Timestamp};
use vellum_btree::{Cleaner, Journal, LeafCopy, Logging, RowFormat, RowRedo, Seek, Tree, TreeKind};
use vellum_gc::{Budget, Horizon};
use vellum_txn::{Domain, VersionStamp};
use vellum_wal::{Purpose, SlotLog};

/// What one step of collection found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Collected {
    /// Work-list entries that were done.
    pub work: u64,
    /// There is more that could be collected now.
    pub more: bool,
}

/// Who collects, and how much.
struct Step<'s> {
    slot: SlotId,
    log: &'s SlotLog,
    budget: &'s mut Budget,
}

impl Step<'_> {
    /// Calls `free` until it is through, or the budget is spent (false). Gets on in any case.
    fn repeat(
        &mut self,
        page_size: usize,
        collected: &mut Collected,
        mut free: impl FnMut(&SlotLog) -> vellum_base::Result<bool>,
    ) -> Result<bool> {
        while !free(self.log)? {
            if !self.budget.spend((FREE_STEP * page_size) as u64) {
                collected.more = true;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl VersionStore {
    /// Collects garbage of `slot`, which the caller holds (V15).
    ///
    /// # Errors
    /// I/O, log space. What was collected stays collected.
    pub fn collect(
        &self,
        horizon: &Horizon<'_>,
        slot: SlotId,
        log: &SlotLog,
        budget: &mut Budget,
    ) -> Result<Collected> {
        let Some(versions) = self.slot(slot) else {
            return Ok(Collected::default());
        };
        let mut collected = Collected::default();
        let dead = horizon.deltas_dead_below(slot);
        if !dead.is_zero() {
            let done = versions.take_deltas_below(dead, REMOVE_STEP)?;
            collected.more |= !done;
        }
        let due = horizon.tombstones_dead_below(slot);
        if !due.is_zero() {
            let mut step = Step { slot, log, budget };
            self.work_off(versions, horizon, due, &mut step, &mut collected)?;
        }
        Ok(collected)
    }

    /// Collects the before-images of `slot` alone, whoever holds it: a transaction that idles there for hours has no use
    /// for what the slot made before it. True if there is more.
    ///
    /// # Errors
    /// I/O. What was collected stays collected.
    pub fn collect_before_images(&self, horizon: &Horizon<'_>, slot: SlotId) -> Result<bool> {
        let Some(versions) = self.slot(slot) else {
            return Ok(false);
        };
        let dead = horizon.deltas_dead_below(slot);
        if !versions.account(|accounts| accounts.reaches_below(dead)) {
            return Ok(false);
        }
        Ok(!versions.take_deltas_below(dead, REMOVE_STEP)?)
    }

    /// Does the work that is due, oldest first.
    fn work_off(
        &self,
        versions: &SlotVersions,
        horizon: &Horizon<'_>,
        due: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        let bound = work_key(due, 0, 0);
        let mut leaf = LeafCopy::new(self.context().page_size());
        let mut key = Vec::new();
        // V15: nobody waits for it.
        let mut done = versions.done.lock();
        let mut from = done.through.clone();
        if !done.is_removed {
            self.forget_done(versions, &mut done)?;
        }
        loop {
            versions.work.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            let mut stopped = false;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, &mut key);
                if key.as_slice() >= bound.as_slice() {
                    stopped = true;
                    break;
                }
                if key <= done.through {
                    continue;
                }
                let work = Work::decode(leaf.payload(index), &versions.work)?;
                let enough = step.budget.spend(leaf.payload(index).len() as u64);
                if !enough || !self.work_on(&work, &key, horizon, step, collected)? {
                    collected.more |= !enough;
                    stopped = true;
                    break;
                }
                collected.work += 1;
                done.through.clone_from(&key);
                done.is_removed = false;
            }
            if !done.is_removed {
                self.forget_done(versions, &mut done)?;
            }
            match leaf.upper_fence() {
                Some(fence) if !stopped => {
                    from.clear();
                    from.extend_from_slice(fence);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Removes the entries whose work is done.
    fn forget_done(&self, versions: &SlotVersions, done: &mut Done) -> Result<()> {
        let mut end = done.through.clone();
        end.push(0);
        versions.work.remove_below(&end, REMOVE_STEP, None)?;
        // What a busy tree left is skipped, and goes with the next.
        done.is_removed = true;
        Ok(())
    }

    /// Does the work of the entry `key`. False if it, and what comes after it, must wait.
    fn work_on(
        &self,
        work: &Work<'_>,
        key: &[u8],
        horizon: &Horizon<'_>,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<bool> {
        match *work {
            Work::Tombstone { tree, key: row } => {
                let name = key.get(..delta::KEY_BYTES).and_then(delta::decode_key);
                let (stamp, command) = name.ok_or_else(|| damaged("work-list key", tree))?;
                let version = VersionStamp {
                    slot: step.slot,
                    stamp,
                    command,
                };
                let dropped = self.dropped().read();
                if dropped.contains(&tree) {
                    return Ok(true);
                }
                let tree = Tree::open(self.context(), tree, TreeKind::Rows);
                self.remove_tombstone(&tree, row, version, step.log)?;
                Ok(true)
            }
            Work::Chain { root, .. } => step.repeat(self.context().page_size(), collected, |log| {
                self.free_chain_step(root, log, Purpose::Optional)
            }),
            Work::Tree { root } => {
                if !self.may_free_tree(root, horizon)? {
                    return Ok(false);
                }
                step.repeat(self.context().page_size(), collected, |log| {
                    self.free_dropped_step(root, log, Purpose::Optional)
                })
            }
        }
    }

    /// V22.
    fn may_free_tree(&self, root: PageId, horizon: &Horizon<'_>) -> Result<bool> {
        if self.dropped().read().contains(&root) {
            // Begun before.
            return Ok(true);
        }
        let domain = horizon.domain();
        if domain.has_hidden_writer() {
            return Ok(false);
        }
        domain.log().flush_round()?;
        Ok(true)
    }

    /// V16.
    fn remove_tombstone(
        &self,
        tree: &Tree,
        key: &[u8],
        version: VersionStamp,
        log: &SlotLog,
    ) -> Result<()> {
        log.reserve_for(vellum_btree::row_log_bytes(key.len(), 0), Purpose::Optional)?;
        let mut leaf = tree.write(key)?;
        if !leaf.found() {
            return Ok(());
        }
        // Of a fat row as of any: the header says whose tombstone it is.
        let mut head = [0; crate::row::STAMPED_HEADER];
        let head = &mut head[..leaf.payload_len().min(crate::row::STAMPED_HEADER)];
        leaf.payload_read(0, head);
        let header = Header::decode(head).ok_or_else(|| damaged("row header", tree.root()))?;
        let ours = header
            .writer
            .is_some_and(|writer| writer.version == version);
        if !ours || !header.shape.tombstone {
            return Ok(());
        }
        leaf.remove(Logging::Record {
            slot: log,
            flags: 0,
            redo: RowRedo::Remove,
            undo: &[],
        });
        let underfull = leaf.is_underfull();
        drop(leaf);
        if underfull {
            tree.rebalance(
                key,
                Some(Journal {
                    slot: log,
                    purpose: Purpose::Optional,
                }),
            )?;
        }
        Ok(())
    }
}

/// The row format that redo works by.
#[derive(Debug)]
pub struct Reducer;

impl RowFormat for Reducer {
    fn reduce(&self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        crate::row::reduce(payload, out)
    }
}

/// Judges the rows of a full leaf: rows that everyone sees are frozen, fat rows are trimmed, tombstones go that everyone sees and that
/// no crash takes back. Most tombstones go by their slot's work list before; what is left is from before the last
/// restart, or was covered by an insert when its entry came up, and came back with the insert's rollback.
#[derive(Debug)]
pub struct Freezer {
    domain: std::sync::Arc<Domain>,
}

impl Freezer {
    /// A judge by the published horizon of `domain`.
    pub fn new(domain: std::sync::Arc<Domain>) -> Self {
        Self { domain }
    }
}

impl Cleaner for Freezer {
    fn judge(&self, _tree: PageId, _key: &[u8], payload: &[u8]) -> vellum_btree::Verdict {
        use vellum_btree::Verdict;
        let Some((header, body)) = crate::row::newest(payload) else {
            return Verdict::Keep;
        };
        match header.writer {
            // No snapshot of this run is as old as the restart, and recovery left only winners.
            None if header.shape.tombstone => Verdict::Remove,
            Some(writer) if header.shape.tombstone => {
                if Horizon::published(&self.domain).is_frozen_for_good(&writer.version) {
                    Verdict::Remove
                } else {
                    Verdict::Keep
                }
            }
            Some(writer) if Horizon::published(&self.domain).is_frozen(&writer.version) => {
                let mut row = Header::frozen(header.shape).encode().to_vec();
                row.extend_from_slice(body);
                Verdict::Shrink(row)
            }
            Some(_) if header.fat => match crate::fat::trim(&self.domain, payload) {
                Some(row) => Verdict::Shrink(row),
                None => Verdict::Keep,
            },
            _ => Verdict::Keep,
        }
    }
}
