//! Tombstones of a slot that were looked at and stay: buried for the snapshots that see the row, or kept in the main
//! index. They are looked at again when such a snapshot has ended, and go for good when every snapshot sees the delete.
//!
//! Layout of an entry (key: `delta::key` of the delete; little-endian):
//! ```text
//! 0      u8   1 kept in the main index, 2 buried
//! 1..9   u64  root page of the row's tree
//! 9..13  u32  bytes of the buried row, header and old versions in it included; zero in the main index
//! 13..        the row's key
//! ```
//!
//! Invariants:
//! - V29 The entry of a tombstone is there before the tombstone is buried, and goes after it went. An entry may say that a tombstone is
//!   buried whose burial failed; it is in the main index then.
//! - V53 An entry that is covered by an unfinished insert is looked at again when an insert over a tombstone was taken back: the tombstone
//!   is in everybody's way again, and no end of a snapshot needs to come. And when one of the writers that cover has ended: it needs
//!   no entry any more. (Also one that was rolled back. Interleaving: T deletes a row and inserts it again; W updates it; the entry is
//!   found covered by W; W is rolled back. Nothing was taken back over a tombstone, and W's update is never committed.)
//! - V60 Each entry is looked at once because everyone sees its delete, and again in rounds only: what stays (it is covered, or cannot be
//!   read) does not keep what comes behind it, and costs nothing.
//! - V30 Ends of snapshots are asked for before the list of open ones by which is decided that an entry stays; so the end of
//!   any that it stays for is noticed, also of one between two others.
//! - V62 Who an entry is kept for does not see its delete. So a round after the end of a snapshot begins where the slot's commits do not all lie
//!   below it, and not at the first entry: what a forgotten snapshot keeps, a million of them, is not looked at again for each
//!   statement of a session that became analytical. By the *commit*: a stamp below the snapshot is not enough. (Interleaving: T deletes a row,
//!   the snapshot is drawn, T commits; the entry has T's stamp, which is below the snapshot, and stays for it.) What stays for another reason
//!   waits until everyone sees its delete, but for rows with very many versions that are buried: maintenance looks at some of these again, one a step (V34).
//!
//! Concurrency: one collector at a time (V15). Crash: temporary.

use crate::collect::{Collected, Patience, Step};
use crate::delta;
use crate::error::{Result, damaged};
use crate::fate::Fate;
use crate::pair;
use crate::settle::{Grave, Tools};
use crate::store::{Collecting, VersionStore, remove_temporary};
use smallvec::SmallVec;
use std::sync::Arc;
use vellum_base::codec::Reader;
use vellum_base::planted::Bug;
use vellum_base::{PageId, Timestamp};
use vellum_btree::{LeafCopy, Logging, Seek, Tree, TreeContext, TreeKind};
use vellum_gc::Horizon;
use vellum_txn::VersionStamp;

/// Where a held tombstone is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// In the main index: covered by an unfinished insert, or too long for a graveyard.
    Main = 1,
    /// In the graveyard.
    Buried = 2,
}

/// The held tombstones of a slot.
#[derive(Debug, Default)]
pub(crate) struct Held {
    tree: Option<Tree>,
    /// Entries; at no time less than there are.
    count: u64,
    /// Entries below this key were looked at because everyone sees their delete (V60): most collections need not look.
    purged: Vec<u8>,
    /// Where a round over all entries goes on.
    sweep: Option<Vec<u8>>,
    /// Another round is due over the entries from this name on: a snapshot has ended (V62), or what is in a row's way has changed.
    due: Option<[u8; delta::KEY_BYTES]>,
    /// An entry stays in the main index for an unfinished insert only.
    covered: bool,
    /// Of some of these inserts, what they wrote.
    covering: SmallVec<[VersionStamp; COVERING_MAX]>,
    /// Some of those that were not looked at to the end (V34).
    long: SmallVec<[[u8; delta::KEY_BYTES]; 1]>,
    /// What [`VersionStore::restored`] said when covered ones were looked at last.
    restored: u64,
    /// For entries that could not be looked at (V59).
    patience: Patience,
    /// One could not be, in this round.
    failed: bool,
}

/// Where a round over all entries begins.
const FIRST: [u8; delta::KEY_BYTES] = [0; delta::KEY_BYTES];

/// Rows with very many versions that are remembered for another look.
const LONG_MAX: usize = 64;
/// Unfinished writers of rows with held tombstones whose end is watched for.
const COVERING_MAX: usize = 4;

impl Held {
    /// Makes the tree. The caller holds no latch.
    pub fn prepare(&mut self, context: &Arc<TreeContext>) -> Result<()> {
        if self.tree.is_none() {
            self.tree = Some(Tree::create(context, None, TreeKind::Temporary, None)?);
        }
        Ok(())
    }

    /// The list, if there ever was an entry.
    pub fn list(&self) -> Option<Tree> {
        self.tree.clone()
    }

    /// An entry stays for an unfinished insert, which wrote this version.
    pub fn note_covering(&mut self, by: VersionStamp) {
        self.covered = true;
        let is_known = |known: &VersionStamp| known.slot == by.slot && known.stamp == by.stamp;
        if self.covering.len() < COVERING_MAX && !self.covering.iter().any(is_known) {
            self.covering.push(by);
        }
    }

    /// The row of this entry has more versions than were looked at (V34).
    pub fn note_long(&mut self, name: [u8; delta::KEY_BYTES]) {
        if self.long.len() < LONG_MAX && !self.long.contains(&name) {
            self.long.push(name);
        }
    }

    /// Asks for another round over the entries from `name` on.
    pub fn ask_for_round(&mut self, name: [u8; delta::KEY_BYTES]) {
        self.due = Some(self.due.map_or(name, |due| due.min(name)));
    }

    /// Notes that an entry could not be looked at (V59).
    fn note_failure(&mut self) {
        self.failed = true;
        self.patience.fail();
    }

    /// Adds an entry for what could not be looked at, unless it has one.
    pub fn add_failed(&mut self, grave: &Grave<'_>) -> Result<()> {
        self.note_failure();
        let tree = self.tree.as_ref().expect("prepared");
        let name = delta::key(grave.delete.stamp, grave.delete.command);
        if tree.get(&name, &mut Vec::new())? {
            return Ok(());
        }
        self.add_kept(grave)
    }

    /// Adds an entry of one that is in the main index, or changes what it says.
    pub fn add_kept(&mut self, grave: &Grave<'_>) -> Result<()> {
        self.put(Kind::Main, 0, grave)
    }

    /// Adds an entry of one whose row of `bytes` bytes is buried, or changes what it says.
    pub fn add_buried(&mut self, bytes: usize, grave: &Grave<'_>) -> Result<()> {
        self.put(Kind::Buried, bytes, grave)
    }

    fn put(&mut self, kind: Kind, bytes: usize, grave: &Grave<'_>) -> Result<()> {
        let tree = self.tree.as_ref().expect("prepared before latching");
        let name = delta::key(grave.delete.stamp, grave.delete.command);
        let root = grave.tree.root().get().to_le_bytes();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
        let entry: [&[u8]; 4] = [&[kind as u8], &root, &bytes, grave.key];
        let length = ENTRY_HEAD + grave.key.len();
        loop {
            let mut leaf = tree.write(&name)?;
            if leaf.fits(length) {
                if leaf.found() {
                    leaf.replace(&entry, Logging::None);
                } else {
                    leaf.insert(&entry, Logging::None);
                    self.count += 1;
                }
                return Ok(());
            }
            drop(leaf);
            tree.make_room(&name, length, None)?;
        }
    }
}

/// Bytes of an entry before the row's key.
const ENTRY_HEAD: usize = 13;

/// What an entry says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'e> {
    /// Where the tombstone is.
    pub kind: Kind,
    /// Root page of its tree.
    pub root: PageId,
    /// Bytes of the buried row; zero in the main index.
    pub bytes: u32,
    /// The row's key.
    pub key: &'e [u8],
}

/// Reads an entry.
pub(crate) fn decode<'e>(entry: &'e [u8], list: &Tree) -> Result<Entry<'e>> {
    let mut reader = Reader::new(entry);
    let mut read = || {
        let kind = match reader.u8()? {
            1 => Kind::Main,
            2 => Kind::Buried,
            _ => return None,
        };
        Some(Entry {
            kind,
            root: PageId(reader.u64()?),
            bytes: reader.u32()?,
            key: reader.rest(),
        })
    };
    Ok(read().ok_or_else(|| damaged("entry of held tombstones", list.root()))?)
}

impl VersionStore {
    /// Entries of a slot's list.
    #[cfg(test)]
    pub(crate) fn held(&self, slot: vellum_base::SlotId) -> u64 {
        self.slot(slot)
            .map_or(0, |versions| versions.collecting.lock().held.count)
    }

    /// Before-images of a slot's dropped rows that wait to be taken out.
    #[cfg(test)]
    pub(crate) fn waiting_to_go(&self, slot: vellum_base::SlotId) -> usize {
        self.slot(slot)
            .map_or(0, |versions| versions.collecting.lock().tools.dead())
    }

    /// Looks at the held tombstones of a slot again: those whose delete everyone sees by now (`over`) go; the others too
    /// if a snapshot has ended and no other needs them.
    pub(crate) fn recheck(
        &self,
        collecting: &mut Collecting,
        horizon: &Horizon<'_>,
        over: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        let Collecting { held, tools, .. } = collecting;
        let Some(tree) = held.tree.clone().filter(|_| held.count > 0) else {
            (held.sweep, held.patience) = (None, Patience::default());
            held.long.clear();
            return Ok(());
        };
        self.purge(&tree, held, tools, horizon, over, step, collected)?;
        if let Some(seen) = tools.snapshots.take_lost(horizon.domain()) {
            // V62.
            held.ask_for_round(delta::key(seen, 0));
        }
        // V53. Asked before what is covered is looked at: what is taken back later is noticed next time.
        let restored = self.restored();
        if held.covered {
            let ended = |by: &VersionStamp| {
                let live = horizon.domain().log().slot(by.slot).lock();
                live.live_transaction().is_none_or(|it| it.0 != by.stamp)
            };
            if held.restored != restored || held.covering.iter().any(ended) {
                held.ask_for_round(FIRST);
            }
        }
        held.restored = restored;
        if held.sweep.is_none() {
            // A round that is under way is the look that patience was for.
            if held.patience.is_over(step.budget.is_lazy()) {
                held.ask_for_round(FIRST);
            }
            if let Some(from) = held.due.take() {
                // What is noted of entries before would be forgotten.
                let is_whole = held.covered || held.patience.has_failed();
                let from = if is_whole { FIRST } else { from };
                (held.covered, held.failed) = (false, false);
                held.covering.clear();
                held.sweep = Some(from.to_vec());
            }
        }
        self.sweep(&tree, held, tools, horizon, over, step, collected)?;
        self.look_far(&tree, held, tools, horizon, over, step, collected)
    }

    /// Looks at one of those with very many versions, to the end if it can be (V34). For maintenance, once a step: a commit does not wait for that. Of buried ones only: of
    /// what is in the main index the chain is followed again under a leaf's latch (V51).
    #[allow(clippy::too_many_arguments, reason = "one step, cut in two")]
    fn look_far(
        &self,
        tree: &Tree,
        held: &mut Held,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        over: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        if held.long.is_empty() || !step.budget.take_far_look() {
            return Ok(());
        }
        let mut entry = Vec::new();
        let name = loop {
            let Some(name) = held.long.pop() else {
                return Ok(());
            };
            if tree.get(&name, &mut entry)? && decode(&entry, tree)?.kind == Kind::Buried {
                break name;
            }
        };
        collected.more |= !held.long.is_empty();
        tools.looked = 0;
        let is_over = delta::decode_key(&name).is_some_and(|(stamp, _)| stamp < over);
        tools.looks_far = true;
        let looked = self.end_or_keep(
            tree, &name, &entry, is_over, held, tools, horizon, step, collected,
        );
        tools.looks_far = false;
        step.budget.charge(tools.looked as u32);
        looked
    }

    /// Ends the oldest ones, which everyone sees deleted.
    #[allow(clippy::too_many_arguments, reason = "one step, cut in two")]
    fn purge(
        &self,
        tree: &Tree,
        held: &mut Held,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        over: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        let bound = delta::key(over, 0);
        if over.is_zero() || bound.as_slice() <= held.purged.as_slice() {
            return Ok(());
        }
        let mut leaf = LeafCopy::new(self.context().page_size());
        let mut key = Vec::new();
        loop {
            tree.read_leaf(Seek::AtOrAfter(&held.purged), &mut leaf)?;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, &mut key);
                if key.as_slice() >= bound.as_slice() {
                    held.purged = bound.to_vec();
                    return Ok(());
                }
                let entry = leaf.payload(index);
                if !step.budget.spend(entry.len() as u64) {
                    collected.more = true;
                    return Ok(());
                }
                self.end_or_keep(
                    tree, &key, entry, true, held, tools, horizon, step, collected,
                )?;
                held.purged.clone_from(&key);
                held.purged.push(0);
            }
            held.purged.clear();
            match leaf.upper_fence() {
                Some(fence) if fence < bound.as_slice() => held.purged.extend_from_slice(fence),
                _ => {
                    held.purged.extend_from_slice(&bound);
                    return Ok(());
                }
            }
        }
    }

    /// Looks at an entry again, and removes it if nothing needs it any more. One that cannot be looked at stays (V59).
    #[allow(clippy::too_many_arguments, reason = "one step, cut in two")]
    fn end_or_keep(
        &self,
        tree: &Tree,
        name: &[u8],
        entry: &[u8],
        is_over: bool,
        held: &mut Held,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        let looked = self.look_again(tree, name, entry, is_over, held, tools, horizon, step);
        match looked {
            Ok(true) => {
                // V29. Looking twice at what a failure leaves is harmless.
                remove_temporary(tree, name, &mut tools.hints)?;
                held.count = held.count.saturating_sub(1);
                collected.work += 1;
            }
            Ok(false) => {}
            Err(error) if error.concerns_one() => {
                step.first.note::<()>(Err(error));
                held.note_failure();
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Goes on with the round over all entries.
    #[allow(clippy::too_many_arguments, reason = "one step, cut in two")]
    fn sweep(
        &self,
        tree: &Tree,
        held: &mut Held,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        over: Timestamp,
        step: &mut Step<'_>,
        collected: &mut Collected,
    ) -> Result<()> {
        let mut leaf = LeafCopy::new(self.context().page_size());
        let mut key = Vec::new();
        while let Some(from) = held.sweep.clone() {
            tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, &mut key);
                let entry = leaf.payload(index);
                if !step.budget.spend(entry.len() as u64) {
                    collected.more = true;
                    held.sweep = Some(key);
                    return Ok(());
                }
                // Of those that everyone sees deleted by now the chain may be gone, which would say that somebody needs it.
                let is_over = delta::decode_key(&key).is_some_and(|(stamp, _)| stamp < over);
                self.end_or_keep(
                    tree, &key, entry, is_over, held, tools, horizon, step, collected,
                )?;
            }
            held.sweep = leaf.upper_fence().map(<[u8]>::to_vec);
            if held.sweep.is_none() {
                held.patience.end_round(held.failed);
            }
        }
        Ok(())
    }

    /// Looks at one held tombstone; true if it needs no entry any more.
    #[allow(clippy::too_many_arguments, reason = "one step, cut in two")]
    fn look_again(
        &self,
        list: &Tree,
        name: &[u8],
        entry: &[u8],
        is_over: bool,
        held: &mut Held,
        tools: &mut Tools,
        horizon: &Horizon<'_>,
        step: &Step<'_>,
    ) -> Result<bool> {
        let Entry {
            kind, root, key, ..
        } = decode(entry, list)?;
        let (stamp, command) = delta::decode_key(name)
            .ok_or_else(|| damaged("key of held tombstones", list.root()))?;
        let delete = VersionStamp::new(step.slot, stamp, command);
        let dropped = self.dropped().read();
        if dropped.contains(root) {
            return Ok(true);
        }
        let tree = &tools.open(self, root);
        let grave = Grave { tree, key, delete };
        let fate = if is_over {
            Fate::Over
        } else if kind == Kind::Buried && self.has(Bug::PurgedTooEarly) {
            Fate::Dead
        } else {
            self.fate_of(&grave, kind, tools, horizon)?
        };
        if fate == Fate::Needed && tools.is_long && !tools.looks_far && kind == Kind::Buried {
            held.note_long(delta::key(stamp, command));
        }
        match kind {
            Kind::Main => self.carry_out(&grave, fate, held, tools, horizon, step.log),
            Kind::Buried if fate == Fate::Needed => Ok(false),
            Kind::Buried => {
                let graveyard = self.graveyards().find(root);
                let mut was_there = false;
                if let Some(graveyard) = graveyard {
                    if fate == Fate::Dead {
                        // V25: an older writer may not see the delete, and finds nothing from now on.
                        graveyard.note_drop(key, horizon.watermarks());
                    }
                    pair::encode(key, stamp, &mut tools.pair);
                    let Tools { pair, hints, .. } = &mut *tools;
                    was_there = graveyard.remove(pair, hints)?;
                }
                if !was_there {
                    // V29: the burial failed, and so did changing the entry back.
                    return self.carry_out(&grave, fate, held, tools, horizon, step.log);
                }
                if fate == Fate::Dead {
                    self.forget_versions(&grave, tools)?;
                }
                Ok(true)
            }
        }
    }
}
