//! Reverting a transaction's changes, by key, from its log records: rollback, savepoint, recovery.
//!
//! Paper: LeanStore §3.4 (transaction abort). Differences: the stamp of an aborted transaction is never used again
//! (R1), and each step logs one compensation record (R8), so a crash in the middle of a rollback continues it.
//!
//! Invariants:
//! - V11 One call reverts one record and appends exactly one record that is marked as a compensation and names
//!   the reverted GSN; structure changes that it needs come before and are redo-only.
//! - V12 At run time the predecessor's header comes from the row, if it is fat, else from the own delta index, which
//!   holds the entry until the row is reverted. After a restart every row is frozen and no header is needed.
//! - V20 Work that a version left behind is forgotten before the version is reverted.
//!
//! Crash: a record is compensated or not; recovery goes on with the next older one.

use crate::carried::CarriedReader;
use crate::delta::{self, DeltaName, Home};
use crate::error::damaged;
use crate::fat::layout::{FatRow, encode_lengths};
use crate::pending::PendingKind;
use crate::row::{FAT, FROZEN_HEADER, HEADER_MAX, Header, Shape};
use crate::store::{SlotVersions, VersionStore};
use crate::undo_record::{self, Revert, UndoRecord};
use crate::unjoined::Unjoined;
use crate::work::{DISOWN_PART, work_key};
use crate::write::copy_newest;
use smallvec::SmallVec;
use vellum_base::codec::Reader;
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, PageId, Result, StorageError, Timestamp};
use vellum_btree::overflow::ChainRef;
use vellum_btree::record::{Operation, REMOVE};
use vellum_btree::{
    Journal, LeafHints, LeafWrite, Logging, RowRedo, Tree, TreeKind, row_log_bytes,
};
use vellum_sync::atomic::Ordering;
use vellum_txn::{Undo, VersionStamp};
use vellum_wal::{FLAG_COMPENSATION, Purpose, Record, SlotLog};

/// Reverts the changes of one transaction.
#[derive(Debug)]
pub struct Reverter<'s> {
    store: &'s VersionStore,
    /// Where compensation records go.
    log: &'s SlotLog,
    /// The own delta index is there: at run time.
    has_deltas: bool,
    /// Records that were carried forward.
    carried: &'s Tree,
    row: Vec<u8>,
    entry: Vec<u8>,
    copies: CarriedReader<'s>,
    /// Who wrote rows side by side reverts them side by side.
    hints: LeafHints,
    unjoined: Unjoined,
}

impl<'s> Reverter<'s> {
    /// For a transaction of this run; compensation records go to its own slot's log.
    pub fn running(store: &'s VersionStore, log: &'s SlotLog, carried: &'s Tree) -> Self {
        Self::new(store, log, carried, true)
    }

    /// For losers of an earlier incarnation; compensation records go to `log`.
    pub fn recovering(store: &'s VersionStore, log: &'s SlotLog, carried: &'s Tree) -> Self {
        Self::new(store, log, carried, false)
    }

    fn new(store: &'s VersionStore, log: &'s SlotLog, carried: &'s Tree, has_deltas: bool) -> Self {
        let (row, entry) = (Vec::new(), Vec::new());
        Self {
            store,
            log,
            has_deltas,
            carried,
            row,
            entry,
            copies: CarriedReader::default(),
            hints: LeafHints::default(),
            unjoined: Unjoined::default(),
        }
    }

    /// Joins the leaves that could not be joined for want of log or memory when rows were reverted: when all of a savepoint's or a transaction's are,
    /// and before the transaction ends. May wait for log space as any writer does.
    ///
    /// # Errors
    /// `Poisoned`. What cannot be joined stays as it is.
    pub fn join_leaves(&mut self) -> Result<()> {
        self.unjoined.join(self.store.context(), self.log)
    }

    /// Log space for the compensation of one record. What the record set aside covers it, also in a full log (R9), so
    /// it is not asked for more than is needed.
    fn reserve(&self, key: &[u8], undo: &UndoRecord<'_>) -> Result<()> {
        let redo = match undo.revert {
            Revert::Remove => 0,
            // Eight bytes a range here, four in the record.
            Revert::Ranges(image) => image.len(),
            Revert::Whole(_, body) => FROZEN_HEADER + body.len(),
        };
        let bytes = row_log_bytes(key.len(), redo) + undo_record::COMPENSATION_BYTES;
        self.log.reserve_for(bytes, Purpose::Undo)
    }

    /// V20: first of all, so that no list says to free what the reverted row refers to again. `listed`: the root of the chain or tree whose row
    /// of `pending_free` this is.
    fn forget_work(&self, undo: &UndoRecord<'_>, listed: Option<PageId>) -> Result<()> {
        let Some(versions) = self.own_versions() else {
            return Ok(());
        };
        match undo.revert {
            Revert::Whole(..) => {
                let name = delta::key(undo.stamp, undo.command);
                if versions.tombstones.delete(&name, None)? {
                    // Relaxed: see `append_tombstone`.
                    versions.unsettled.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Revert::Remove => {
                let name = work_key(undo.stamp, undo.command, DISOWN_PART);
                versions.take_work(&name)?;
                // Also where no entry was: an undo that failed may have taken it.
                if let Some(root) = listed {
                    self.store.forget_dropped_pages(root);
                }
            }
            Revert::Ranges(_) => {}
        }
        Ok(())
    }

    /// After the leaf was reverted: nobody can be on the way from it to the delta and not notice. The compensation is logged by now, and this record
    /// is not undone again: what cannot be taken away goes with its range.
    fn forget_delta(&mut self, tree: PageId, undo: &UndoRecord<'_>, home: Home) {
        if matches!(undo.revert, Revert::Remove) || !self.has_deltas {
            return;
        }
        if let Some(versions) = self.store.slot(self.log.id()) {
            let version = VersionStamp::new(self.log.id(), undo.stamp, undo.command);
            let name = DeltaName { version, home };
            let _ = versions.take_delta(tree, &name, &mut self.hints);
        }
    }

    fn own_versions(&self) -> Option<&SlotVersions> {
        if self.has_deltas {
            self.store.slot(self.log.id())
        } else {
            None
        }
    }

    /// Returns in which index the reverted version's delta is.
    fn revert(&mut self, tree: &Tree, key: &[u8], undo: &UndoRecord<'_>, gsn: Gsn) -> Result<Home> {
        let compensation = undo_record::compensation(undo.stamp, gsn);
        let journal = Journal::undo(self.log);
        if tree.kind() == TreeKind::Plain {
            self.revert_plain(tree, key, undo, &compensation)?;
            return Ok(Home::Lasting);
        }
        let names: [&[u8]; 1] = [&compensation];
        loop {
            self.reserve(key, undo)?;
            let mut leaf = tree.write_near(key, &mut self.hints)?;
            let chain_before = self.chain_if_counted(&leaf, tree);
            let home = home_of(&leaf);
            let joins = match undo.revert {
                Revert::Remove => {
                    expect_row(&leaf, tree)?;
                    let before = leaf.fill();
                    leaf.remove(self.logging(RowRedo::Remove, &names));
                    leaf.should_join(before)
                }
                Revert::Ranges(_) | Revert::Whole(..) if self.is_fat(&leaf) => {
                    let row = self.revert_fat(&leaf, tree, undo)?;
                    if !leaf.fits(row.len()) {
                        drop(leaf);
                        self.hints.forget(tree.root());
                        tree.make_room(key, row.len(), Some(journal))?;
                        continue;
                    }
                    match undo.revert {
                        Revert::Whole(shape, body) => {
                            let reduced = [shape.reduced_flags()];
                            let redo: [&[u8]; 2] = [&reduced, body];
                            leaf.replace(&[&row], self.logging(RowRedo::Row(&redo), &names));
                        }
                        Revert::Ranges(image) => {
                            let edits = edits_of(image);
                            leaf.replace(&[&row], self.logging(RowRedo::Patch(&edits), &names));
                        }
                        Revert::Remove => {}
                    }
                    false
                }
                Revert::Ranges(image) => {
                    expect_row(&leaf, tree)?;
                    let header = self.read_body(&leaf, tree)?;
                    let before = self.predecessor(undo, home, header.shape, tree)?;
                    undo_record::apply_ranges(image, &mut self.row)
                        .ok_or_else(|| damaged("before-image", tree.root()))?;
                    let before = before.encode();
                    if !leaf.fits(before.len() + self.row.len()) {
                        drop(leaf);
                        self.hints.forget(tree.root());
                        tree.make_room(key, before.len() + self.row.len(), Some(journal))?;
                        continue;
                    }
                    let edits = edits_of(image);
                    let logging = self.logging(RowRedo::Patch(&edits), &names);
                    leaf.replace(&[&before, &self.row], logging);
                    false
                }
                Revert::Whole(shape, body) => {
                    let before = self.predecessor(undo, home, shape, tree)?.encode();
                    if !leaf.fits(before.len() + body.len()) {
                        drop(leaf);
                        self.hints.forget(tree.root());
                        tree.make_room(key, before.len() + body.len(), Some(journal))?;
                        continue;
                    }
                    let reduced = [shape.reduced_flags()];
                    let row: [&[u8]; 2] = [&reduced, body];
                    let logging = self.logging(RowRedo::Row(&row), &names);
                    if leaf.found() {
                        leaf.replace(&[&before, body], logging);
                    } else if self.has_deltas {
                        return Err(damaged("row to revert", tree.root()));
                    } else {
                        leaf.insert(&[&before, body], logging);
                    }
                    false
                }
            };
            if let Some(before) = chain_before {
                // V69: before the leaf is unlatched.
                let after = self.chain_of(&leaf);
                let accounts = self.store.dropped_pages();
                accounts.note_reverted(tree.root(), key, before, after);
            }
            drop(leaf);
            if joins {
                // Merging saves pages, and takes log and a neighbour. It can wait; rollback cannot: the row is reverted, and its compensation logged.
                let journal = Journal::new(self.log, Purpose::Optional);
                match tree.rebalance(key, Some(journal)) {
                    // Later, when nothing of the transaction is in the way of a checkpoint, or of who wants memory.
                    Err(StorageError::OutOfSpace { .. } | StorageError::MemoryLimit { .. })
                        if self.has_deltas =>
                    {
                        self.unjoined.note(tree.root(), key);
                    }
                    Err(error @ StorageError::Poisoned) => return Err(error),
                    // A neighbour that cannot be read now can hardly be read then.
                    _ => {}
                }
            }
            return Ok(home);
        }
    }

    /// A system tree's row: no header, no versions.
    fn revert_plain(
        &mut self,
        tree: &Tree,
        key: &[u8],
        undo: &UndoRecord<'_>,
        compensation: &[u8],
    ) -> Result<()> {
        let journal = Journal::undo(self.log);
        loop {
            self.reserve(key, undo)?;
            let mut leaf = tree.write(key)?;
            match undo.revert {
                Revert::Remove => {
                    expect_row(&leaf, tree)?;
                    leaf.remove(self.logging(RowRedo::Remove, &[compensation]));
                    return Ok(());
                }
                Revert::Whole(_, body) => {
                    if leaf.found() {
                        return Err(damaged("row to revert", tree.root()));
                    }
                    if leaf.fits(body.len()) {
                        let row: [&[u8]; 1] = [body];
                        leaf.insert(&row, self.logging(RowRedo::Row(&row), &[compensation]));
                        // After a restart recovery frees all that is listed.
                        if self.has_deltas
                            && let (Ok(root), Some(kind)) =
                                (<[u8; 8]>::try_from(key), PendingKind::decode(body))
                        {
                            let root = PageId(u64::from_be_bytes(root));
                            self.store.relisted(undo.stamp, root, kind);
                        }
                        return Ok(());
                    }
                    drop(leaf);
                    tree.make_room(key, body.len(), Some(journal))?;
                }
                Revert::Ranges(_) => return Err(damaged("undo of a system row", tree.root())),
            }
        }
    }

    fn logging<'l>(&self, redo: RowRedo<'l>, undo: &'l [&'l [u8]]) -> Logging<'l>
    where
        's: 'l,
    {
        Logging::Record {
            slot: self.log,
            flags: FLAG_COMPENSATION,
            redo,
            undo,
        }
    }

    /// Bytes of the pages of the chain that the row refers to, zero if to none; `None` if nobody counts it. Leaves something in `self.row`.
    #[inline]
    fn chain_if_counted(&mut self, leaf: &LeafWrite<'_, '_>, tree: &Tree) -> Option<u64> {
        let is_counted = self.has_deltas && self.store.counts_chains_of(tree.root());
        is_counted.then(|| self.chain_of(leaf))
    }

    /// As [`Reverter::chain_if_counted`]. A reference that is damaged is none: who counts the leaf says so.
    #[cold]
    fn chain_of(&mut self, leaf: &LeafWrite<'_, '_>) -> u64 {
        let header = copy_newest(leaf, &mut self.row).filter(|header| header.shape.overflow);
        let body = header.and_then(|header| self.row.get(header.body_at()..));
        let chain = body.and_then(ChainRef::decode);
        chain.map_or(0, |chain| {
            chain.bytes_of_pages(self.store.context().page_size())
        })
    }

    /// Leaves the row's body in `self.row`.
    fn read_body(&mut self, leaf: &LeafWrite<'_, '_>, tree: &Tree) -> Result<Header> {
        let header = copy_newest(leaf, &mut self.row);
        let header = header.ok_or_else(|| damaged("row header", tree.root()))?;
        self.row.drain(..header.body_at());
        Ok(header)
    }

    /// Whether the row holds its old versions itself. After a restart they mean nothing.
    fn is_fat(&self, leaf: &LeafWrite<'_, '_>) -> bool {
        let mut flags = [0];
        if !self.has_deltas || leaf.payload_len() == 0 {
            return false;
        }
        leaf.payload_read(0, &mut flags);
        flags[0] & FAT != 0
    }

    /// The fat row without its newest version: the one before is the first of the old ones.
    fn revert_fat(
        &mut self,
        leaf: &LeafWrite<'_, '_>,
        tree: &Tree,
        undo: &UndoRecord<'_>,
    ) -> Result<Vec<u8>> {
        let broken = || damaged("fat row to revert", tree.root());
        leaf.copy_payload(&mut self.row);
        let row = FatRow::decode(&self.row).ok_or_else(broken)?;
        let newest = row.header.writer.ok_or_else(broken)?.version;
        if newest != VersionStamp::new(self.log.id(), undo.stamp, undo.command) {
            return Err(broken());
        }
        let mut old = row.old_versions();
        let before = old.next().ok_or_else(broken)?.map_err(|_| broken())?;
        let mut patched;
        let body = match undo.revert {
            Revert::Whole(_, body) => body,
            Revert::Ranges(image) => {
                patched = row.body.to_vec();
                undo_record::apply_ranges(image, &mut patched).ok_or_else(broken)?;
                &patched
            }
            Revert::Remove => return Err(broken()),
        };
        let versions = old.rest();
        let mut header = before.header;
        // Where nobody needs what was before it, it stands alone.
        header.fat = header.writer.is_some() && !versions.is_empty();
        let mut reverted = header.encode().to_vec();
        if header.fat {
            reverted.extend_from_slice(&encode_lengths(body.len(), versions.len()));
        }
        reverted.extend_from_slice(body);
        if header.fat {
            reverted.extend_from_slice(versions);
        }
        Ok(reverted)
    }

    /// V12.
    fn predecessor(
        &mut self,
        undo: &UndoRecord<'_>,
        home: Home,
        shape: Shape,
        tree: &Tree,
    ) -> Result<Header> {
        if !self.has_deltas {
            return Ok(Header::frozen(shape));
        }
        let missing = || damaged("own delta", tree.root());
        let version = VersionStamp::new(self.log.id(), undo.stamp, undo.command);
        let name = DeltaName { version, home };
        let (entry, hints) = (&mut self.entry, &mut self.hints);
        if !self.store.read_delta(&name, entry, hints, true)? {
            return Err(missing());
        }
        delta::predecessor(&self.entry).ok_or_else(missing)
    }
}

/// Where the delta of the row's newest version is (V76), which is the one that is reverted. Of a fat row, or where there is none, nobody asks.
fn home_of(leaf: &LeafWrite<'_, '_>) -> Home {
    let mut bytes = [0; HEADER_MAX];
    let known = match leaf.found() {
        true => leaf.payload_len().min(HEADER_MAX),
        false => 0,
    };
    leaf.payload_read(0, &mut bytes[..known]);
    let header = Header::decode(&bytes[..known]);
    let name = header.and_then(|header| header.delta());
    name.map_or(Home::Lasting, |name| name.home)
}

fn expect_row(leaf: &LeafWrite<'_, '_>, tree: &Tree) -> Result<()> {
    if leaf.found() {
        Ok(())
    } else {
        Err(damaged("row to revert", tree.root()))
    }
}

/// The before-image as edits of the reduced row.
fn edits_of(image: &[u8]) -> SmallVec<[(u16, &[u8]); 8]> {
    let mut edits = SmallVec::new();
    let mut reader = Reader::new(image);
    while let (Some(offset), Some(bytes)) = (reader.u32(), reader.prefixed()) {
        edits.push(((offset + 1) as u16, bytes));
    }
    edits
}

/// What undo needs of a row's record: the key, without what redo would write, and the undo bytes. It names the
/// same change, as a removal.
///
/// # Errors
/// `Corruption` if the record is not about a row.
pub fn for_undo<'r>(record: &Record<'r>) -> Result<Record<'r>> {
    let key = key_of(record).ok_or_else(|| wrong_undo(record))?;
    let mut small = *record;
    small.header.kind = REMOVE;
    small.redo = record
        .redo
        .get(..2 + key.len())
        .ok_or_else(|| wrong_undo(record))?;
    Ok(small)
}

fn wrong_undo(record: &Record<'_>) -> StorageError {
    StorageError::Corruption {
        file: "log".into(),
        page: Some(record.header.page),
        what: "undo bytes of a record",
        expected: 0,
        found: record.header.gsn.get(),
    }
}

/// The key that a row's record is about.
fn key_of<'r>(record: &Record<'r>) -> Option<&'r [u8]> {
    match Operation::decode(record.header.kind, record.redo)? {
        Operation::Insert(key, _)
        | Operation::Replace(key, _)
        | Operation::Patch(key, _)
        | Operation::Remove(key) => Some(key),
        _ => None,
    }
}

impl Undo for Reverter<'_> {
    fn undo(&mut self, record: &Record<'_>) -> Result<()> {
        if planted::has(Bug::UndoSkipped) && record.header.gsn.get().is_multiple_of(4) {
            return Ok(());
        }
        let wrong = || wrong_undo(record);
        let undo = undo_record::decode(record.undo).ok_or_else(wrong)?;
        let key = key_of(record).ok_or_else(wrong)?;
        let plain = record.header.tree == self.store.pending_free().root();
        let root = <[u8; 8]>::try_from(key).ok().filter(|_| plain);
        let root = root.map(|root| PageId(u64::from_be_bytes(root)));
        self.forget_work(&undo, root)?;
        let kind = if plain {
            TreeKind::Plain
        } else {
            TreeKind::Rows
        };
        let tree = Tree::open(self.store.context(), record.header.tree, kind);
        let home = self.revert(&tree, key, &undo, record.header.gsn)?;
        if self.has_deltas && matches!(undo.revert, Revert::Whole(shape, _) if shape.tombstone) {
            self.store.note_restored();
        }
        vellum_sync::test_point!("undo: between row and delta");
        self.forget_delta(record.header.tree, &undo, home);
        Ok(())
    }

    fn all_is_reverted(&mut self) -> Result<()> {
        self.join_leaves()
    }

    fn ahead(&mut self, pages: &[PageId]) {
        self.store.context().prefetch_used(pages);
    }

    fn carried(&mut self, stamp: Timestamp, below: Gsn, out: &mut Vec<u8>) -> Result<bool> {
        self.copies.next(self.carried, stamp, below, out)
    }
}

/// Pages that one step of a range removal may give back.
pub(crate) const REMOVE_STEP: usize = 64;

/// Bytes of a stamped header, for who computes room.
pub const HEADER_BYTES_MAX: usize = HEADER_MAX;
