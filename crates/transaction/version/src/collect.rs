//! Collection: what a slot's own versions left behind goes when nobody needs it, a bounded amount at a time.
//!
//! Paper: LeanStore §3.1 (cooperative GC), §3.5 (GC between transactions). Who can still see what is
//! answered by `gc::horizon` alone.
//!
//! Invariants:
//! - V15 One at a time collects a slot's garbage: its transaction's end, or maintenance, also while a transaction runs in
//!   the slot (which may do so for hours, and what ran before it left garbage). What a collector removes was committed before
//!   that transaction began.
//! - V58 Each collector of a slot goes by watermarks at least as new as those of the one before: what that one has kept was deleted
//!   below its `oldest_oltp`, and "every OLTP snapshot sees the delete" is what every later look starts from. Interleaving otherwise:
//!   maintenance takes its horizon and works on slot A; slot B buries a row by a newer one; maintenance comes to B and finds that
//!   no snapshot up to its own `newest_olap` sees the row. A younger analytical one does, and loses it.
//! - V17 An entry's work is done before the entry goes, and the store remembers in memory through which entry that
//!   is so: chains and trees are freed once, whatever fails in between. (Twice would free who owns the pages by then.)
//! - V22 The pages of a dropped tree go only when every transaction that may have written to it has ended, for good:
//!   the drop is below every snapshot, and a writer's snapshot is from before its first write (or it is as V68 of `early` says); no writer is parked or withdrawn; and a flush round began after that, so that no crash makes a writer a loser whose undo needs the tree.
//! - V61 Between transactions every stamp that the slot has drawn is committed, or was reverted. If all its commits are below `oldest_tx`, so is what
//!   it stamped below that, or nothing is left of it: the accounts of its before-images end there (V41), though no commit comes in the slot any more.
//! - V67 A step gives back a bounded number of pages of chains and trees: each is charged with its pages before the first of them is read. Interleaving otherwise: fifty rows of 20 KB are
//!   updated for a minute beside an idle snapshot, in a pool that holds a few of the old values; the snapshot ends; each commit frees the 256 chains that its items allow, reads some 770 pages
//!   from the disk for it, and a thousand transactions a second become five.
//! - V59 What cannot be read keeps nothing else: its entry is put aside, and tried again when others of its kind are, or by maintenance, after
//!   ever more of its steps (`Patience`). (A commit's own collection does not wait for a disk that fails.) A log without room is
//!   another matter: it ends the phase that meets it; and a pool all of whose pages are in use ends the step, for each page that it is asked for costs seconds.
//!
//! Crash: the lists are gone after a crash; tombstones are then removed by any cleaner, chains and trees by
//! recovery (`pending_free`).
//!
//! Not here: tombstones (`settle`, `held`); versions between two snapshots (`sweep`).

use crate::early::Early;
use crate::error::{FirstError, Result};
use crate::pending::FREE_STEP;
use crate::row::Header;
use crate::store::{SlotVersions, VersionStore};
use crate::undo::REMOVE_STEP;
use crate::work::{Done, Work, work_key};
use vellum_base::planted::Bug;
use vellum_base::{PageId, SlotId, Timestamp};
use vellum_btree::{Cleaner, LeafCopy, RowFormat, Seek};
use vellum_gc::{Budget, Horizon};
use vellum_txn::{Domain, promotion_ticks};
use vellum_wal::{Purpose, SlotLog};

/// What one step of collection found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Collected {
    /// Work-list entries that were done, and deltas that were swept.
    pub work: u64,
    /// Deltas that were swept.
    pub swept: u64,
    /// There is more that could be collected now.
    pub more: bool,
}

/// How many steps of maintenance what failed waits: twice as many, up to 256, after each round in which something failed again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    failed: bool,
    left: u32,
    next: u32,
}

/// Steps of maintenance that what failed waits at most.
const PATIENCE_MAX: u32 = 256;

impl Patience {
    /// Something could not be looked at.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// True if something could not be looked at.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// True if what failed is to be looked at again. `lazy`: not now.
    pub fn is_over(&mut self, lazy: bool) -> bool {
        if !self.failed || lazy {
            return false;
        }
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Everything that failed was looked at again.
    pub fn end_round(&mut self, failed: bool) {
        self.failed = failed;
        self.next = if failed {
            (2 * self.next).clamp(1, PATIENCE_MAX)
        } else {
            0
        };
        self.left = self.next;
    }
}

/// Who collects, and how much.
pub(crate) struct Step<'s> {
    pub slot: SlotId,
    pub log: &'s SlotLog,
    pub budget: &'s mut Budget,
    /// The first error of the step (V59).
    pub first: FirstError,
}

impl Step<'_> {
    /// Calls `free` until it is through, or the budget for pages is spent (false). Gets on in any case; the first call is charged by who calls.
    pub fn repeat(
        &mut self,
        page_size: usize,
        collected: &mut Collected,
        mut free: impl FnMut(&SlotLog) -> vellum_base::Result<bool>,
    ) -> Result<bool> {
        while !free(self.log)? {
            if !self.budget.spend_pages((FREE_STEP * page_size) as u64) {
                collected.more = true;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl VersionStore {
    /// Collects garbage of `slot`, unless somebody else does (V15), by the watermarks published last (V58). `log`: of a slot that the
    /// caller holds, this one or another.
    ///
    /// # Errors
    /// I/O, log space: the first error. What was collected stays collected; what cannot be read has held up nothing else, and is tried again
    /// by maintenance, ever more seldom.
    pub fn collect(
        &self,
        domain: &Domain,
        slot: SlotId,
        log: &SlotLog,
        budget: &mut Budget,
    ) -> Result<Collected> {
        let Some(versions) = self.slot(slot) else {
            return Ok(Collected::default());
        };
        let Some(mut collecting) = versions.collecting.try_lock() else {
            return Ok(Collected::default());
        };
        let collecting = &mut **collecting;
        // V58: not before it is our turn.
        let horizon = &Horizon::of_turn(domain, slot);
        let clock = horizon.watermarks().clock;
        debug_assert!(collecting.clock <= clock, "V58");
        collecting.clock = clock;
        versions.note_reached(collecting);
        let mut collected = Collected::default();
        let dead = horizon.deltas_dead_below(slot);
        let dead = if self.has(Bug::DeltasTooEarly) {
            let domain = horizon.domain();
            domain.proven_below(slot, horizon.watermarks().clock)
        } else {
            dead
        };
        request_promotion(versions, slot, dead, horizon);
        // V59.
        let mut first = FirstError::default();
        let without = self.dead_without_transaction(slot, log, dead, horizon);
        if !without.is_zero() {
            let done = versions.take_deltas_below(without, REMOVE_STEP, budget.is_lazy());
            collected.more |= first.note(done.map_err(Into::into)) == Some(false);
        }
        first.go_on()?;
        let mut step = Step {
            slot,
            log,
            budget,
            first,
        };
        let (step, out) = (&mut step, &mut collected);
        let sweep = &mut collecting.sweep;
        let swept = self.sweep_deltas(versions, sweep, horizon, dead, step, out);
        step.first.note(swept);
        step.first.go_on()?;
        let settled = self.settle(versions, collecting, horizon, dead, step, out);
        step.first.note(settled);
        step.first.go_on()?;
        // Rounds may follow one another; chains and trees have their turn.
        let behind = step.budget.set_aside();
        let looked = self.recheck(collecting, horizon, dead, step, out);
        step.first.note(looked);
        step.budget.give_back(behind);
        step.first.go_on()?;
        // Also of those rows that went before an error. Between transactions many together: a few cost a search, and leaves that are joined when they
        // are half taken out.
        if !step.budget.is_lazy() {
            let forgotten = self.forget_dead(versions, &mut collecting.tools);
            step.first.note(forgotten);
        }
        if versions.has_work() || !collecting.done.is_removed {
            let due = horizon.chains_dead_below(slot);
            let list = (&mut collecting.done, &mut collecting.early);
            let done = if due.is_zero() {
                Ok(())
            } else {
                self.work_off(versions, list, horizon, due, step, out)
            };
            step.first.note(done);
            step.first.go_on()?;
        }
        let list = (&mut collecting.early, &collecting.done);
        let freed = self.free_early(versions, list, horizon, step, out);
        step.first.note(freed);
        std::mem::take(&mut step.first).into_result()?;
        if !collected.more && !collecting.done.patience.has_failed() {
            request_promotion_for_work(versions, slot, horizon);
        }
        Ok(collected)
    }

    /// Stamps of `slot` below which there is no before-image that anybody needs: above `dead` (V61) where no transaction runs in the slot, which who
    /// collects on the slot's own log says.
    fn dead_without_transaction(
        &self,
        slot: SlotId,
        log: &SlotLog,
        dead: Timestamp,
        horizon: &Horizon<'_>,
    ) -> Timestamp {
        let oldest = horizon.watermarks().oldest_tx;
        let newest = horizon.domain().proven_below(slot, Timestamp::MAX);
        if log.id() == slot && newest <= dead && !self.has(Bug::DeltasTooEarly) {
            oldest.max(dead)
        } else {
            dead
        }
    }

    /// Does the work that is due, oldest first.
    fn work_off(
        &self,
        versions: &SlotVersions,
        (done, early): (&mut Done, &mut Early),
        horizon: &Horizon<'_>,
        due: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        let bound = work_key(due, 0, 0);
        let mut leaf = LeafCopy::new(self.context().page_size());
        let mut key = Vec::new();
        let mut from = done.through.clone();
        if !done.aside.is_empty() && done.patience.is_over(step.budget.is_lazy()) {
            self.work_off_aside(versions, done, horizon, step, collected);
        }
        if !done.is_removed {
            self.forget_done(versions, done)?;
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
                let is_freed = early.is_freed(&key);
                // What has to wait costs nothing.
                let first = match work {
                    Work::Tree { .. } if horizon.domain().has_hidden_writer() => 0,
                    _ => work.first_step_bytes(self.context().page_size()),
                };
                let enough = step.budget.spend(leaf.payload(index).len() as u64)
                    && (is_freed || step.budget.spend_pages(first));
                if !enough {
                    (collected.more, stopped) = (true, true);
                    break;
                }
                if !is_freed {
                    match self.work_on(&work, horizon, step, collected) {
                        Ok(true) => versions.note_freed(&work),
                        Ok(false) => {
                            stopped = true;
                            break;
                        }
                        // V59. It is listed in `pending_free`, whatever happens.
                        Err(error) if error.concerns_one() => {
                            step.first.note::<()>(Err(error));
                            done.aside.push(work);
                            done.patience.fail();
                        }
                        Err(error) => return Err(error),
                    }
                }
                collected.work += 1;
                done.through.clone_from(&key);
                done.is_removed = false;
            }
            if !done.is_removed {
                self.forget_done(versions, done)?;
                early.forget(&done.through);
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

    /// Tries again what could not be read.
    #[cold]
    fn work_off_aside(
        &self,
        versions: &SlotVersions,
        done: &mut Done,
        horizon: &Horizon<'_>,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) {
        let mut failed = false;
        let page_size = self.context().page_size();
        done.aside.retain(|work| {
            let is_charged = (step.budget).spend_pages(work.first_step_bytes(page_size));
            let is_free = is_charged && {
                let worked = self.work_on(work, horizon, step, collected);
                step.first.note(worked) == Some(true)
            };
            // Also what must wait, or has not been freed whole: nobody else comes back to it.
            failed |= !is_free;
            if is_free {
                versions.note_freed(work);
            }
            !is_free
        });
        done.patience.end_round(failed);
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

    /// Does the work of an entry. False if it, and what comes after it, must wait.
    fn work_on(
        &self,
        work: &Work,
        horizon: &Horizon<'_>,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<bool> {
        match *work {
            Work::Chain { root, .. } => step.repeat(self.context().page_size(), collected, |log| {
                self.free_chain_step(root, log, Purpose::Optional)
            }),
            Work::Tree { root, .. } => {
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
    pub(crate) fn may_free_tree(&self, root: PageId, horizon: &Horizon<'_>) -> Result<bool> {
        if self.dropped().read().contains(root) {
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
}

/// Before-images that a slot keeps for want of an analytical snapshot, before it asks for promotion: nothing is a shortcut past them.
const KEPT: u64 = 4096;
/// Bytes of pages of large values that a slot keeps for want of one.
const CHAINS_KEPT: u64 = 16 << 20;
/// How urgent dropped trees are: nobody knows how many pages they have.
const TREES_KEPT: u64 = 64;

/// Asks for promotion where a slot keeps many before-images for an OLTP snapshot, and nobody analytical is open: what is written then has no
/// shortcuts (`shortcut`), and stays until that snapshot ends.
#[inline]
fn request_promotion(
    versions: &SlotVersions,
    slot: SlotId,
    dead: Timestamp,
    horizon: &Horizon<'_>,
) {
    let marks = horizon.watermarks();
    let behind = marks.clock.get() - marks.oldest_oltp.get();
    let is_asked = |kept: u64| kept >= KEPT && behind > promotion_ticks(kept / KEPT);
    if marks.newest_olap.is_zero() && is_asked(versions.delta_count()) {
        let domain = horizon.domain();
        // What is committed: the before-images of the slot's running transaction stay whoever is promoted, and it may be itself who is old.
        let live = domain.log().slot(slot).lock().live_transaction();
        let end = live.map_or(Timestamp::MAX, |(stamp, _)| stamp);
        let kept = versions.deltas_between(dead, end).count;
        if is_asked(kept) {
            domain.request_promotion(kept / KEPT);
        }
    }
}

/// The same for large values, as rows that are fat have no before-images, and for dropped trees that an OLTP snapshot holds back. For who has freed all that was
/// due: what is left waits for a snapshot, not for its turn.
fn request_promotion_for_work(versions: &SlotVersions, slot: SlotId, horizon: &Horizon<'_>) {
    let marks = horizon.watermarks();
    let behind = marks.clock.get() - marks.oldest_oltp.get();
    let chains = if marks.newest_olap.is_zero() {
        versions.chain_bytes() / CHAINS_KEPT
    } else {
        0
    };
    let trees = match versions.has_tree_since(horizon.tombstones_settled_below(slot)) {
        true => TREES_KEPT,
        false => 0,
    };
    let urgency = chains + trees;
    if urgency == 0 || behind <= promotion_ticks(urgency) {
        return;
    }
    let domain = horizon.domain();
    // They are not told apart by transaction: only where none runs in the slot.
    let live = domain.log().slot(slot).lock().live_transaction();
    if live.is_none() {
        domain.request_promotion(urgency);
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

/// Judges the rows of a full leaf: rows that everyone sees are frozen, fat rows that nobody needs the past of become plain,
/// tombstones that everyone sees go. Most tombstones are settled before; what is left is from before the last restart.
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
    fn judge(&self, _tree: PageId, payload: &[u8], shorter: &mut Vec<u8>) -> vellum_btree::Verdict {
        use vellum_btree::Verdict;
        if Header::is_of_cold(payload) {
            return Verdict::Keep;
        }
        let Some((header, body)) = crate::row::newest(payload) else {
            return Verdict::Keep;
        };
        match header.writer {
            // No snapshot of this run is as old as the restart, and recovery left only winners.
            None if header.shape.tombstone => Verdict::Remove,
            Some(writer) if header.shape.tombstone => {
                if Horizon::published(&self.domain).is_frozen(&writer.version) {
                    Verdict::Remove
                } else {
                    Verdict::Keep
                }
            }
            Some(writer) if Horizon::published(&self.domain).is_frozen(&writer.version) => {
                shorter.extend_from_slice(&Header::frozen(header.shape).encode());
                shorter.extend_from_slice(body);
                Verdict::Shrink
            }
            Some(_) if header.fat => match crate::fat::trim(&self.domain, payload, shorter) {
                Some(()) => Verdict::Shrink,
                None => Verdict::Keep,
            },
            _ => Verdict::Keep,
        }
    }
}
