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
//!   waits until everyone sees its delete, but for rows with very many versions: maintenance looks at some of these again, one a step (V34).
//!
//! Concurrency: one collector at a time (V15). Crash: temporary.

mod recheck;

use crate::collect::Patience;
use crate::delta;
use crate::error::{Result, damaged};
use crate::settle::Grave;
use crate::store::VersionStore;
use smallvec::SmallVec;
use std::sync::Arc;
use vellum_base::PageId;
use vellum_base::codec::Reader;
use vellum_btree::{Logging, Tree, TreeContext, TreeKind};
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

    /// True while an entry that could not be looked at (V59) waits to be tried again.
    pub fn has_failed(&self) -> bool {
        self.patience.has_failed()
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
}
