//! Settling: tombstones leave the main index as soon as no OLTP transaction needs them, between transactions and by
//! maintenance.
//!
//! Paper: LeanStore §3.2. Differences: a row that no snapshot sees any version of is dropped, never buried (the paper's
//! dead zone, applied to whole rows); what was buried is looked at again when an analytical snapshot has ended.
//! Design and cases: docs/design/0013-old-snapshots.md.
//!
//! States of a tombstone whose delete every OLTP snapshot sees: in the list → *gone* (another head covers it for good), *dropped*
//! (no snapshot sees the row), *buried* (some does; `held`), *kept* in the main index (`held`: it cannot be buried, or an
//! unfinished insert covers it).
//!
//! Invariants:
//! - V16 A tombstone leaves only while it is the row's newest version, by name, or if everyone sees it.
//! - V27 Of a row that is dropped the tombstone goes first, from the main index or from the graveyard, then the deltas of its
//!   chain: before the step of collection ends, many of them together. A reader that stands in the chain misses a delta, begins
//!   again (V4), and finds no row; nobody puts anything under the names meanwhile, since only who has the row in a leaf does.
//! - V28 An entry that was settled may be settled again: a failure in between costs work, never a row.
//!
//! Crash: a tombstone leaves the main index by a redo-only record, which may be durable although the delete is not; undo of
//! the delete then inserts the row (0013). Graveyards and lists are gone with the snapshots that needed them.

use crate::collect::{Collected, Step};
use crate::delta::{self, DeltaName};
use crate::delta_index::Named;
use crate::error::{FirstError, Result, VersionError, damaged};
use crate::fate::{Fate, VERSIONS_MAX};
use crate::graveyard::{Graveyard, has_room};
use crate::held::{Held, Kind};
use crate::pair;
use crate::row::{FAT, HEADER_MAX, Header, Shape};
use crate::store::{Collecting, SlotVersions, VersionStore};
use crate::undo::REMOVE_STEP;
use crate::work::{Tombstone, decode_tombstone};
use std::sync::Arc;
use vellum_base::planted::Bug;
use vellum_base::{PageId, SlotId, Timestamp};
use vellum_btree::{
    Journal, LeafCopy, LeafHints, LeafWrite, Logging, RowRedo, Seek, Tree, TreeKind, row_log_bytes,
};
use vellum_gc::{Horizon, OpenSnapshots};
use vellum_metrics::Counter;
use vellum_sync::atomic::Ordering;
use vellum_txn::{Domain, VersionStamp, promotion_ticks};
use vellum_wal::{Purpose, SlotLog};

/// Settled entries that stay in the list before they are removed together.
const REMOVE_AT: u32 = 64;

/// Deltas of dropped rows that wait to be taken out together.
const DEAD_MAX: usize = 512;

/// Tombstones that a slot has in the main index because an old OLTP snapshot needs them, for each of which the urgency of a promotion grows by one: a
/// scan steps over all of them.
const HELD_UP: u64 = 256;

/// From how many on it asks.
const HELD_UP_FEW: u64 = 64;

/// As urgent as a few are at most: who is some 500 ticks old may be at work, where dozens are.
const URGENCY_OF_FEW: u64 = 12;

/// How urgent a promotion is where so many tombstones are held up; zero for not at all. A queue that adds one an operation has stepped over their square
/// by then, so that of few grows by the square.
fn urgency(held_up: u64) -> u64 {
    let few = held_up / HELD_UP_FEW;
    few.saturating_mul(few)
        .min(URGENCY_OF_FEW)
        .max(held_up / HELD_UP)
}

/// How far a list of tombstones was worked off.
#[derive(Debug)]
pub(crate) struct Settling {
    /// Entries up to this key are settled.
    through: Vec<u8>,
    /// How many of them are still in the list.
    settled: u32,
    leaf: LeafCopy,
    key: Vec<u8>,
}

impl Settling {
    /// The key of the last entry that was settled.
    pub fn through(&self) -> &[u8] {
        &self.through
    }

    pub fn new(page_size: usize) -> Self {
        Self {
            through: Vec::new(),
            settled: 0,
            leaf: LeafCopy::new(page_size),
            key: Vec::new(),
        }
    }
}

/// Buffers, remembered leaves, and the snapshots that were open when last asked.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub hints: LeafHints,
    tree: Option<Tree>,
    graveyard: Option<(PageId, Arc<Graveyard>)>,
    pub entry: Vec<u8>,
    pub row: Vec<u8>,
    pub pair: Vec<u8>,
    /// The deltas of the row at hand.
    pub names: Vec<DeltaName>,
    /// Deltas of rows that were dropped in this step, in the slot's own index; they go at its end.
    dead: Vec<Named>,
    /// Of the row at hand, if it is thought dead since its chain ends at the bound of this version (V51).
    pub ends_at: Option<Header>,
    /// More versions are looked at than a collection of a commit likes to (V34).
    pub looks_far: bool,
    /// Versions of the row at hand that were looked at.
    pub looked: usize,
    /// The row at hand has more than that: it was not looked at to its end.
    pub is_long: bool,
    pub snapshots: OpenSnapshots,
}

impl Tools {
    /// For the collectors of a slot.
    pub fn of(slot: SlotId) -> Self {
        Self {
            snapshots: OpenSnapshots::of(slot),
            ..Self::default()
        }
    }

    /// How many deltas of dropped rows wait to be taken out.
    #[cfg(test)]
    pub fn dead(&self) -> usize {
        self.dead.len()
    }

    /// The graveyard of the index with this root page, made if need be.
    fn graveyard_of(&mut self, store: &VersionStore, index: PageId) -> Arc<Graveyard> {
        match &self.graveyard {
            // The caller keeps the index from being dropped; an earlier one of this root page may have been.
            Some((root, graveyard)) if *root == index && !graveyard.is_discarded() => {
                graveyard.clone()
            }
            _ => {
                let graveyard = store.graveyards().find_or_make(index);
                self.graveyard = Some((index, graveyard.clone()));
                graveyard
            }
        }
    }

    /// A handle of the tree with this root.
    pub fn open(&mut self, store: &VersionStore, root: PageId) -> Tree {
        match &self.tree {
            Some(tree) if tree.root() == root => tree.clone(),
            _ => {
                let tree = Tree::open(store.context(), root, TreeKind::Rows);
                self.tree = Some(tree.clone());
                tree
            }
        }
    }
}

/// What the leaf says about a tombstone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Head {
    /// It is the row's newest version (V16).
    Ours,
    /// It is covered by this version, an insert that may be reverted.
    Covered(VersionStamp),
    /// The row is a tombstone that everyone sees, whoever made it: it was frozen on the way (a fat row that was turned
    /// back, an insert that was reverted).
    Frozen,
    /// There is no such tombstone, and it will not come back.
    Gone,
}

/// A deleted row: which tree, which key, which delete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grave<'g> {
    pub tree: &'g Tree,
    pub key: &'g [u8],
    pub delete: VersionStamp,
}

impl VersionStore {
    /// Settles the tombstones of a slot that are due, oldest first.
    pub(crate) fn settle(
        &self,
        versions: &SlotVersions,
        collecting: &mut Collecting,
        horizon: &Horizon<'_>,
        over: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        let Collecting {
            settling,
            held,
            tools,
            ..
        } = collecting;
        if versions.unsettled.load(Ordering::Relaxed) == 0 {
            return self.forget_settled(versions, settling);
        }
        let due = if self.options().graveyard {
            horizon.tombstones_settled_below(step.slot)
        } else {
            over
        };
        let due = if self.has(Bug::SettledTooEarly) {
            let domain = horizon.domain();
            domain.proven_below(step.slot, horizon.watermarks().clock)
        } else {
            due
        };
        let result = if due.is_zero() {
            Ok((0, false))
        } else {
            self.settle_due(versions, settling, held, tools, (due, over), horizon, step)
        };
        if settling.settled >= REMOVE_AT {
            self.forget_settled(versions, settling)?;
        }
        // Also where nothing is due: the slot may never have committed before the snapshot that holds it up; and where a step has failed, as
        // without room in the log, which only promotion may give. Not where the budget has ended before what is due did: that holds nobody up.
        let more = matches!(result, Ok((_, true)));
        let marks = horizon.watermarks();
        let behind = marks.clock.get() - marks.oldest_oltp.get();
        let held_up = versions.unsettled.load(Ordering::Relaxed);
        let asked = |held_up: u64| {
            let urgency = urgency(held_up);
            (urgency > 0 && behind > promotion_ticks(urgency)).then_some(urgency)
        };
        if !more && asked(held_up).is_some() {
            // The running transaction's own stay whoever is promoted, and it may be itself who is old.
            let log = horizon.domain().log();
            let live = log.slot(step.slot).lock().live_transaction();
            let own = live.map_or(0, |(stamp, _)| versions.tombstones_of(stamp));
            if let Some(urgency) = asked(held_up.saturating_sub(own)) {
                horizon.domain().request_promotion(urgency);
            }
        }
        let (work, _) = result?;
        collected.work += work;
        collected.more |= more;
        Ok(())
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "what a collector knows, in parts"
    )]
    /// Returns how many were settled, and whether the budget ended it.
    fn settle_due(
        &self,
        versions: &SlotVersions,
        settling: &mut Settling,
        held: &mut Held,
        tools: &mut Tools,
        (due, over): (Timestamp, Timestamp),
        horizon: &Horizon<'_>,
        step: &mut Step<'_>,
    ) -> Result<(u64, bool)> {
        let Settling {
            through,
            settled,
            leaf,
            key,
        } = settling;
        let bound = delta::key(due, 0);
        let mut from = through.clone();
        let mut work = 0;
        loop {
            versions
                .tombstones
                .read_leaf(Seek::AtOrAfter(&from), leaf)?;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, key);
                if key.as_slice() >= bound.as_slice() {
                    return Ok((work, false));
                }
                if key <= through {
                    continue;
                }
                let entry = leaf.payload(index);
                if !step.budget.spend(entry.len() as u64) {
                    return Ok((work, true));
                }
                let tombstone = decode_tombstone(entry, &versions.tombstones)?;
                let (stamp, command) = delta::decode_key(key)
                    .ok_or_else(|| damaged("key of a list of tombstones", tombstone.root))?;
                let delete = VersionStamp::new(step.slot, stamp, command);
                let is_over = stamp < over;
                let looked =
                    self.settle_one(tombstone, delete, is_over, held, tools, horizon, step.log);
                match looked {
                    Err(error) if error.concerns_one() => {
                        // V59.
                        step.first.note::<()>(Err(error));
                        held.prepare(self.context())?;
                        let tree = &tools.open(self, tombstone.root);
                        let key = tombstone.key;
                        held.add_failed(&Grave { tree, key, delete })?;
                    }
                    other => other?,
                }
                through.clone_from(key);
                *settled += 1;
                work += 1;
                versions.unsettled.fetch_sub(1, Ordering::Relaxed);
            }
            match leaf.upper_fence() {
                Some(fence) => {
                    from.clear();
                    from.extend_from_slice(fence);
                }
                None => return Ok((work, false)),
            }
        }
    }

    fn forget_settled(&self, versions: &SlotVersions, settling: &mut Settling) -> Result<()> {
        if settling.settled == 0 {
            return Ok(());
        }
        let mut end = settling.through.clone();
        end.push(0);
        versions.tombstones.remove_below(&end, REMOVE_STEP, None)?;
        // What a busy tree left is skipped, and goes with the next.
        settling.settled = 0;
        Ok(())
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "what a collector knows, in parts"
    )]
    fn settle_one(
        &self,
        Tombstone { root, born, key }: Tombstone<'_>,
        delete: VersionStamp,
        is_over: bool,
        held: &mut Held,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        log: &SlotLog,
    ) -> Result<()> {
        // Shared until the tombstone was looked at: no page of the tree goes away under it.
        let dropped = self.dropped().read();
        if dropped.contains(root) {
            return Ok(());
        }
        let tree = &tools.open(self, root);
        let grave = Grave { tree, key, delete };
        let fate = if is_over {
            Fate::Over
        } else if born.is_some_and(|born| horizon.is_after_olap(born)) {
            // Most rows of a queue: known without a look at their versions. The delete's delta is the only one.
            tools.ends_at = None;
            tools.names.clear();
            tools.names.push(DeltaName::lasting(delete));
            Fate::Dead
        } else {
            self.fate_of(&grave, Kind::Main, tools, horizon)?
        };
        self.carry_out(&grave, fate, held, tools, horizon, log)
            .map(|_| ())
    }

    /// Does to a tombstone in the main index what its fate asks for. False if it is (or stays) among the held ones.
    pub(crate) fn carry_out(
        &self,
        grave: &Grave<'_>,
        fate: Fate,
        held: &mut Held,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        log: &SlotLog,
    ) -> Result<bool> {
        let Grave { tree, key, delete } = *grave;
        let oldest_oltp = horizon.watermarks().oldest_oltp;
        let graveyard = match fate {
            Fate::Over => None,
            Fate::Dead | Fate::Needed => Some(tools.graveyard_of(self, tree.root())),
        };
        if fate == Fate::Needed {
            // Before latching: it takes frames.
            if let Some(graveyard) = &graveyard {
                graveyard.tree(self.context())?;
            }
        }
        held.prepare(self.context())?;
        log.reserve_for(row_log_bytes(key.len(), 0), Purpose::Optional)?;
        let leaf = tree.write_near(key, &mut tools.hints)?;
        match head(&leaf, tree, &delete, horizon.domain())? {
            Head::Gone => return Ok(true),
            Head::Frozen => return take_out(leaf, tree, key, log).map(|()| true),
            Head::Covered(by) => {
                held.note_covering(by);
                return held.add_kept(grave).map(|()| false);
            }
            Head::Ours => {}
        }
        if fate == Fate::Dead && !self.still_ends(&leaf, &delete, tools)? {
            // What was judged is not what is there: once more, soon.
            held.ask_for_round(delta::key(delete.stamp, delete.command));
            return held.add_kept(grave).map(|()| false);
        }
        match (fate, &graveyard) {
            (Fate::Dead, Some(graveyard)) => graveyard.note_drop(key, horizon.watermarks()),
            (Fate::Needed, Some(graveyard)) => {
                if tools.is_long && !tools.looks_far {
                    // V34. Of one that is covered whoever covers it may be the end: then it is looked at again.
                    held.note_long(delta::key(delete.stamp, delete.command));
                }
                leaf.copy_payload(&mut tools.row);
                if !has_room(tree.context().page_size(), key.len(), tools.row.len()) {
                    return held.add_kept(grave).map(|()| false);
                }
                pair::encode(key, delete.stamp, &mut tools.pair);
                // V29. A pair that no entry tells of would stay for ever; its deltas would not.
                held.add_buried(tools.row.len(), grave)?;
                if let Err(error) = graveyard.put(&tools.pair, &tools.row) {
                    // In the place of the one that says otherwise: it takes no room. If it fails, too, `look_again` finds out.
                    held.add_kept(grave)?;
                    return Err(error.into());
                }
                vellum_sync::test_point!("settle: between graveyard and leaf");
                graveyard.note_burial(oldest_oltp);
            }
            _ => {}
        }
        // The row is out of the leaf, whatever becomes of the leaf.
        let joined = take_out(leaf, tree, key, log);
        if fate == Fate::Needed {
            self.context().metrics().increment(Counter::TombstonesMoved);
        }
        if fate == Fate::Dead {
            vellum_sync::test_point!("settle: between leaf and deltas");
            self.forget_versions(grave, tools)?;
        }
        joined.map(|()| fate != Fate::Needed)
    }

    /// V51, under the leaf's latch: the chain leads over the same deltas to the same end as when it was followed.
    fn still_ends(
        &self,
        leaf: &LeafWrite<'_, '_>,
        delete: &VersionStamp,
        tools: &mut Tools,
    ) -> Result<bool> {
        let ends_at = tools.ends_at.take();
        let Some(ends_at) = ends_at.filter(|_| !self.has(Bug::ChainNotFollowedAgain)) else {
            return Ok(true);
        };
        let mut flags = [0];
        leaf.payload_read(0, &mut flags);
        // Users wait for the latch: nor is a long chain called dead that ends so (`fate_of`).
        if flags[0] & FAT != 0 || tools.names.len() > VERSIONS_MAX {
            return Ok(false);
        }
        let Tools {
            entry,
            hints,
            names,
            ..
        } = tools;
        let mut newer = Header::stamped(Shape::DELETED, *delete, false);
        for name in names.iter() {
            if self.delta_behind(&newer, entry, hints, false)? != Some(*name) {
                return Ok(false);
            }
            match delta::predecessor(entry) {
                Some(older) => newer = older,
                None => return Ok(false),
            }
        }
        Ok(newer == ends_at && self.delta_behind(&newer, entry, hints, false)?.is_none())
    }

    /// The deltas of the row that `fate_of` called dead go (V27): those of other slots now, the slot's own by
    /// [`VersionStore::forget_dead`].
    pub(crate) fn forget_versions(&self, grave: &Grave<'_>, tools: &mut Tools) -> Result<()> {
        let (tree, own) = (grave.tree.root(), grave.delete.slot);
        let Tools {
            names, hints, dead, ..
        } = tools;
        // One that cannot be read keeps no other.
        let mut first = FirstError::default();
        for delta in names.drain(..) {
            let DeltaName { version, home } = delta;
            if version.slot == own {
                let name = delta::key(version.stamp, version.command);
                dead.push(Named { home, name, tree });
            } else if let Some(versions) = self.slot(version.slot) {
                let taken = versions.take_delta(tree, &delta, hints);
                first.note(taken.map_err(Into::into));
            }
        }
        if let Some(versions) = self.slot(own).filter(|_| dead.len() >= DEAD_MAX) {
            first.note(self.forget_dead(versions, tools));
        }
        first.into_result()
    }

    /// Removes the deltas of the rows that were dropped in this step. The caller holds no latch.
    pub(crate) fn forget_dead(&self, versions: &SlotVersions, tools: &mut Tools) -> Result<()> {
        let dead = &mut tools.dead;
        if dead.is_empty() {
            return Ok(());
        }
        // Mostly they are: deletes are settled in their order.
        dead.sort_unstable();
        let taken = versions.take_deltas(dead);
        // V59: those that cannot be read go with all that old, when nobody is open who is as old as they are.
        if taken.as_ref().err().is_none_or(VersionError::concerns_one) {
            dead.clear();
        }
        taken
    }
}

/// What a latched leaf says about the tombstone of `delete`.
fn head(
    leaf: &LeafWrite<'_, '_>,
    tree: &Tree,
    delete: &VersionStamp,
    domain: &Domain,
) -> Result<Head> {
    if !leaf.found() {
        return Ok(Head::Gone);
    }
    let mut bytes = [0; HEADER_MAX];
    let bytes = &mut bytes[..leaf.payload_len().min(HEADER_MAX)];
    leaf.payload_read(0, bytes);
    let header = Header::decode(bytes).ok_or_else(|| damaged("row header", tree.root()))?;
    Ok(match header.writer {
        Some(writer) if writer.version == *delete => {
            debug_assert!(header.shape.tombstone, "the name of a delete");
            Head::Ours
        }
        // The leaf is latched, so the version stays the newest while this asks.
        Some(writer) if !domain.is_committed(&writer.version) => Head::Covered(writer.version),
        None if header.shape.tombstone => Head::Frozen,
        _ => Head::Gone,
    })
}

/// Removes the row that the leaf is positioned at, redo-only, and joins the leaf with a neighbour when it has just become
/// small, or empty, if that is possible. The row is gone in any case.
fn take_out(mut leaf: LeafWrite<'_, '_>, tree: &Tree, key: &[u8], log: &SlotLog) -> Result<()> {
    let before = leaf.fill();
    leaf.remove(Logging::Record {
        slot: log,
        flags: 0,
        redo: RowRedo::Remove,
        undo: &[],
    });
    let joins = leaf.should_join(before);
    drop(leaf);
    if joins {
        tree.join_if_possible(key, Some(Journal::new(log, Purpose::Optional)))?;
    }
    Ok(())
}
