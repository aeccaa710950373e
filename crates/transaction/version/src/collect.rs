//! Collection: what a slot's own versions left behind goes when nobody needs it, a bounded amount at a time.
//!
//! Paper: LeanStore §3.1 (cooperative GC), §3.5 (GC between transactions). Who can still see what is
//! answered by `gc::horizon` alone.
//!
//! Invariants:
//! - V15 Only who holds the slot (its transaction's end, or maintenance with a lease) collects its garbage.
//! - V16 A tombstone is removed only while it is still the row's newest version, by name.
//! - V17 Work is done before its entry goes: a failure in between does it again, which finds nothing to do.
//!
//! Crash: the work list is gone after a crash; tombstones are then removed by any cleaner, chains and trees by
//! recovery (`pending_free`).

use crate::delta;
use crate::error::{Result, damaged};
use crate::row::Header;
use crate::store::{SlotVersions, VersionStore, Work, work_key};
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
            let done = versions
                .deltas
                .remove_below(&delta::key(dead, 0), REMOVE_STEP, None)?;
            collected.more |= !done;
        }
        let due = horizon.tombstones_dead_below(slot);
        if !due.is_zero() {
            self.work_off(versions, slot, due, log, budget, &mut collected)?;
        }
        Ok(collected)
    }

    /// Does the work that is due, oldest first.
    fn work_off(
        &self,
        versions: &SlotVersions,
        slot: SlotId,
        due: Timestamp,
        log: &SlotLog,
        budget: &mut Budget,
        collected: &mut Collected,
    ) -> Result<()> {
        let bound = work_key(due, 0, 0);
        let mut leaf = LeafCopy::new(self.context().page_size());
        let mut key = Vec::new();
        versions.work.read_leaf(Seek::First, &mut leaf)?;
        loop {
            let mut done_below = None;
            for index in 0..leaf.len() {
                leaf.key(index, &mut key);
                if key.as_slice() >= bound.as_slice() {
                    break;
                }
                if !budget.spend(leaf.payload(index).len() as u64) {
                    collected.more = true;
                    break;
                }
                let name = key.get(..delta::KEY_BYTES).and_then(delta::decode_key);
                let (stamp, command) =
                    name.ok_or_else(|| damaged("work-list key", versions.work.root()))?;
                let work = Work::decode(leaf.payload(index), &versions.work)?;
                self.work_on(
                    &work,
                    VersionStamp {
                        slot,
                        stamp,
                        command,
                    },
                    log,
                )?;
                collected.work += 1;
                done_below = Some(index);
            }
            let Some(last) = done_below else {
                return Ok(());
            };
            leaf.key(last, &mut key);
            key.push(0);
            // V17.
            versions.work.remove_below(&key, REMOVE_STEP, None)?;
            if last + 1 < leaf.len() || leaf.upper_fence().is_none() || budget.is_spent() {
                return Ok(());
            }
            versions.work.read_leaf(Seek::First, &mut leaf)?;
        }
    }

    fn work_on(&self, work: &Work<'_>, version: VersionStamp, log: &SlotLog) -> Result<()> {
        match *work {
            Work::Tombstone { tree, key } => {
                let dropped = self.dropped().read();
                if dropped.contains(&tree) {
                    return Ok(());
                }
                let tree = Tree::open(self.context(), tree, TreeKind::Rows);
                self.remove_tombstone(&tree, key, version, log)
            }
            Work::Chain { root, .. } => Ok(self.free_chain(root, log, Purpose::Checkpoint)?),
            Work::Tree { root } => Ok(self.free_tree(root, log, Purpose::Checkpoint)?),
        }
    }

    /// V16.
    fn remove_tombstone(
        &self,
        tree: &Tree,
        key: &[u8],
        version: VersionStamp,
        log: &SlotLog,
    ) -> Result<()> {
        log.reserve_for(
            vellum_btree::row_log_bytes(key.len(), 0),
            Purpose::Checkpoint,
        )?;
        let mut leaf = tree.write(key)?;
        if !leaf.found() {
            return Ok(());
        }
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
                    purpose: Purpose::Checkpoint,
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
        let sound = Header::decode(payload).is_some();
        crate::row::reduce(payload, out);
        sound
    }
}

/// Judges the rows of a full leaf: rows that everyone sees are frozen, tombstones from before the last
/// restart go. Tombstones of this run belong to their slot's work list.
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
        let Some(header) = Header::decode(payload) else {
            return Verdict::Keep;
        };
        match header.writer {
            // No snapshot of this run is as old as the restart, and recovery left only winners.
            None if header.shape.tombstone => Verdict::Remove,
            Some(writer)
                if !header.shape.tombstone
                    && Horizon::published(&self.domain).is_frozen(&writer.version) =>
            {
                let mut row = Header::frozen(header.shape).encode().to_vec();
                row.extend_from_slice(&payload[header.length()..]);
                Verdict::Shrink(row)
            }
            _ => Verdict::Keep,
        }
    }
}
