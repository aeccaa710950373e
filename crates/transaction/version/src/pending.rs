//! `pending_free`: the system tree that lists every chain and tree that no committed row refers to, so that nothing
//! leaks over an abort or a crash. How it is used: docs/design/0007-versions.md.
//!
//! Layout: key `root page id u64 big-endian`; payload `u8 kind: 1 tree, 2 overflow chain, 3 dropped tree`.
//!
//! Invariants:
//! - V18 A chain or tree is listed from before its first page is durable until the transaction that refers to
//!   it commits, and again from the commit that drops the reference until its pages are free.
//! - V19 The row of a root page changes only by the transaction that creates, adopts or drops that root, or by who
//!   frees it: no two at a time, so the rows need no versions.

use crate::error::{Result, concerns_one, damaged};
use crate::row::{self, Shape};
use crate::store::VersionStore;
use crate::undo_record::{self, Revert};
use crate::work::Work;
use std::sync::Arc;
use vellum_base::PageId;
use vellum_base::planted::{self, Bug};
use vellum_btree::overflow::{self, ChainRef};
use vellum_btree::{
    Entry, Journal, LeafCopy, Logging, RowRedo, Seek, Tree, TreeKind, row_log_bytes,
};
use vellum_txn::{Transaction, VersionStamp};
use vellum_wal::{FLAG_UNDOABLE, Purpose, SlotLog};

/// What a row of `pending_free` is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PendingKind {
    /// A tree that is being made. Chains that its rows refer to are listed themselves.
    Tree,
    /// An overflow chain.
    Chain,
    /// A tree that was dropped, with the chains that its rows refer to.
    Dropped,
}

impl PendingKind {
    /// The row's payload.
    pub const fn payload(self) -> &'static [u8] {
        match self {
            Self::Tree => &[1],
            Self::Chain => &[2],
            Self::Dropped => &[3],
        }
    }

    /// What a payload says; `None` if it says nothing.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        match payload {
            [1] => Some(Self::Tree),
            [2] => Some(Self::Chain),
            [3] => Some(Self::Dropped),
            _ => None,
        }
    }
}

/// Pages of a chain that are given back between two looks at the budget of a step.
const CHAIN_STEP: usize = 8;
/// Pages that one step of freeing gives back.
pub const FREE_STEP: usize = 64;

impl VersionStore {
    /// Makes a tree of rows that is listed until [`VersionStore::adopt`].
    ///
    /// # Errors
    /// Out of space, I/O: nothing is left behind.
    pub fn create_tree(&self, transaction: &Transaction) -> Result<Tree> {
        let stamp = transaction.stamp()?;
        let log = transaction.domain().log().slot(transaction.slot());
        let entry = Entry {
            tree: self.pending_free(),
            payload: PendingKind::Tree.payload(),
        };
        let journal = Some(Journal::forward(log));
        let tree = Tree::create(self.context(), journal, TreeKind::Rows, Some(entry))?;
        self.dropped().write().is_made(tree.root());
        self.forget_dropped_pages(tree.root());
        let by = VersionStamp::new(transaction.slot(), stamp, 0);
        self.made().lock().note(tree.root(), by);
        Ok(tree)
    }

    /// Takes a root off the list, as a write of the transaction: a rollback or crash lists it again.
    ///
    /// # Errors
    /// `Corruption` if it is not listed; log space, I/O.
    pub fn adopt(&self, transaction: &Transaction, root: PageId) -> Result<()> {
        let tree = self.pending_free();
        let key = root.get().to_be_bytes();
        let stamp = transaction.stamp()?;
        let slot = transaction.domain().log().slot(transaction.slot());
        slot.reserve(RECORD_BUDGET)?;
        let mut leaf = tree.write(&key)?;
        if !leaf.found() {
            return Err(damaged("pending_free row", root).into());
        }
        let command = transaction.next_command()?;
        let mut payload = Vec::new();
        leaf.copy_payload(&mut payload);
        let prefix = undo_record::prefix(stamp, command, &Revert::Whole(Shape::INLINE, &payload));
        let flags = [Shape::INLINE.reduced_flags()];
        let undo: [&[u8]; 3] = [&prefix, &flags, &payload];
        let undoable = !planted::has(Bug::AdoptedForGood);
        leaf.remove(Logging::Record {
            slot,
            flags: if undoable { FLAG_UNDOABLE } else { 0 },
            redo: RowRedo::Remove,
            undo: &undo,
        });
        Ok(())
    }

    /// Lists the root of a tree with its chains, as a write of the transaction, and puts it on the own work list: its pages go
    /// once everyone sees the transaction. `table`: what the tree belongs to, for reports of old versions.
    ///
    /// # Errors
    /// Log space, I/O.
    pub fn disown_tree(
        &self,
        transaction: &Transaction,
        root: PageId,
        table: &Arc<str>,
    ) -> Result<()> {
        let made_by = self.made().lock().by(root);
        let work = Work::Tree { root, made_by };
        self.list_and_work_on(transaction, root, PendingKind::Dropped, &work)?;
        let by = VersionStamp::new(transaction.slot(), transaction.stamp()?, 0);
        self.dropped_pages().add(root, by, made_by, table);
        Ok(())
    }

    /// Lists a root as `kind`, as a write of the transaction, and puts the work that frees it on the own work list.
    ///
    /// # Errors
    /// Log space, I/O.
    pub(crate) fn list_and_work_on(
        &self,
        transaction: &Transaction,
        root: PageId,
        kind: PendingKind,
        work: &Work,
    ) -> Result<()> {
        let tree = self.pending_free();
        let key = root.get().to_be_bytes();
        let stamp = transaction.stamp()?;
        let slot = transaction.domain().log().slot(transaction.slot());
        let command = transaction.next_command()?;
        loop {
            slot.reserve(RECORD_BUDGET)?;
            let mut leaf = tree.write(&key)?;
            if leaf.found() {
                return Err(damaged("pending_free row", root).into());
            }
            let payload = kind.payload();
            if !leaf.fits(payload.len()) {
                drop(leaf);
                tree.make_room(&key, payload.len(), Some(Journal::delete(slot)))?;
                continue;
            }
            let prefix = undo_record::prefix(stamp, command, &Revert::Remove);
            let row: [&[u8]; 1] = [payload];
            let undo: [&[u8]; 1] = [&prefix];
            let redo = RowRedo::Row(&row);
            leaf.insert(
                &row,
                Logging::Record {
                    slot,
                    flags: FLAG_UNDOABLE,
                    redo,
                    undo: &undo,
                },
            );
            break;
        }
        self.add_work(transaction, command, work)
    }

    /// What is listed, by root.
    ///
    /// # Errors
    /// I/O, `Corruption` of the list.
    pub(crate) fn listed(&self) -> vellum_base::Result<Vec<(PageId, PendingKind)>> {
        let list = self.pending_free();
        let (mut found, mut key) = (Vec::new(), Vec::new());
        let mut leaf = LeafCopy::new(self.context().page_size());
        list.read_leaf(Seek::First, &mut leaf)?;
        loop {
            for index in 0..leaf.len() {
                leaf.key(index, &mut key);
                // Another key is a finding of who verifies.
                let Ok(root) = <[u8; 8]>::try_from(&key[..]) else {
                    continue;
                };
                let root = PageId(u64::from_be_bytes(root));
                let kind = PendingKind::decode(leaf.payload(index));
                found.push((root, kind.ok_or_else(|| damaged("pending_free row", root))?));
            }
            let Some(fence) = leaf.upper_fence().map(<[u8]>::to_vec) else {
                return Ok(found);
            };
            list.read_leaf(Seek::AtOrAfter(&fence), &mut leaf)?;
        }
    }

    /// Frees what is listed, and takes it off the list. Nobody uses it any more.
    ///
    /// # Errors
    /// I/O, log space: it is still listed; call again.
    pub(crate) fn free_listed(
        &self,
        root: PageId,
        kind: PendingKind,
        log: &SlotLog,
        purpose: Purpose,
    ) -> vellum_base::Result<()> {
        match kind {
            PendingKind::Tree => self.free_tree(root, log, purpose),
            PendingKind::Chain => self.free_chain(root, log, purpose),
            PendingKind::Dropped => {
                while !self.free_dropped_step(root, log, purpose)? {}
                Ok(())
            }
        }
    }

    /// Before the first page of a tree goes: collectors of tombstones in it look here.
    fn goes(&self, root: PageId) {
        self.dropped().write().goes(root);
        self.dropped_pages().goes(root);
        self.made().lock().forget(root);
    }

    /// A bounded step of freeing a dropped tree with its chains, leaves from the left; true once nothing is left. Not
    /// to be called again then.
    ///
    /// Each chain is listed itself, then its row goes, then the chain: whatever a crash leaves of that, no chain is
    /// freed twice (who frees the list takes dropped trees first), and none is forgotten.
    pub(crate) fn free_dropped_step(
        &self,
        root: PageId,
        log: &SlotLog,
        purpose: Purpose,
    ) -> vellum_base::Result<bool> {
        self.goes(root);
        // V26.
        self.graveyards().discard(root);
        if !self.graveyards().free_discarded(FREE_STEP)? {
            return Ok(false);
        }
        let tree = Tree::open(self.context(), root, TreeKind::Rows);
        let journal = Some(Journal::new(log, purpose));
        let mut pages = FREE_STEP;
        if !self.free_ownerless(&mut pages, log, purpose)? {
            return Ok(false);
        }
        let mut leaf = LeafCopy::new(self.context().page_size());
        let (mut from, mut key) = (Vec::new(), Vec::new());
        for _ in 0..FREE_STEP {
            tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for index in leaf.position()..leaf.len() {
                let row = leaf.payload(index);
                let (header, body) = row::newest(row).ok_or_else(|| damaged("row header", root))?;
                if header.shape.overflow {
                    let chain = ChainRef::decode(body);
                    let chain = chain.ok_or_else(|| damaged("chain reference", root))?;
                    let listed = PendingKind::Chain.payload();
                    let name = chain.root.get().to_be_bytes();
                    self.pending_free().put(&name, listed, journal)?;
                    leaf.key(index, &mut key);
                    log.reserve_for(row_log_bytes(key.len(), 0), purpose)?;
                    let mut row = tree.write(&key)?;
                    if row.found() {
                        row.remove(Logging::Record {
                            slot: log,
                            flags: 0,
                            redo: RowRedo::Remove,
                            undo: &[],
                        });
                    }
                    drop(row);
                    // V71.
                    self.given_up().forget_chain(chain.root);
                    self.ownerless().lock().push((root, chain));
                    if !self.free_ownerless(&mut pages, log, purpose)? {
                        return Ok(false);
                    }
                }
            }
            match leaf.upper_fence() {
                Some(fence) => {
                    from.clear();
                    from.extend_from_slice(fence);
                }
                None => return self.free_tree_step(root, log, purpose),
            }
        }
        tree.remove_below(&from, FREE_STEP, journal)?;
        Ok(false)
    }

    /// Frees chains whose rows are gone, about `pages` of their pages; false if there is more. One that cannot be read keeps no other, nor the tree (V59): it
    /// is given up, and told by who tries it again. What else fails is tried again by the next step.
    fn free_ownerless(
        &self,
        pages: &mut usize,
        log: &SlotLog,
        purpose: Purpose,
    ) -> vellum_base::Result<bool> {
        let mut chains = self.ownerless().lock();
        while let Some(&(tree, chain)) = chains.last() {
            if *pages == 0 {
                return Ok(false);
            }
            let journal = Some(Journal::new(log, purpose));
            let (context, list) = (self.context(), self.pending_free());
            *pages = pages.saturating_sub(CHAIN_STEP);
            match overflow::free(context, chain.root, CHAIN_STEP, journal, Some(list)) {
                Ok(false) => {}
                Ok(true) => {
                    let bytes = chain.bytes_of_pages(context.page_size());
                    self.dropped_pages().chain_is_gone(tree, bytes);
                    chains.pop();
                }
                Err(error) if concerns_one(&error) => {
                    self.given_up().add_chain(chain.root);
                    chains.pop();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Frees a tree that is listed, and takes it off the list. Nobody uses it any more.
    ///
    /// # Errors
    /// I/O, log space: it is still listed; call again.
    pub fn free_tree(
        &self,
        root: PageId,
        log: &SlotLog,
        purpose: Purpose,
    ) -> vellum_base::Result<()> {
        while !self.free_tree_step(root, log, purpose)? {}
        Ok(())
    }

    /// A bounded step of [`VersionStore::free_tree`]; true once nothing is left. Not to be called again then.
    pub(crate) fn free_tree_step(
        &self,
        root: PageId,
        log: &SlotLog,
        purpose: Purpose,
    ) -> vellum_base::Result<bool> {
        self.goes(root);
        // V26.
        self.graveyards().discard(root);
        if !self.graveyards().free_discarded(FREE_STEP)? {
            return Ok(false);
        }
        let tree = Tree::open(self.context(), root, TreeKind::Rows);
        let journal = Some(Journal::new(log, purpose));
        let done = tree.drop_pages(FREE_STEP, journal, Some(self.pending_free()))?;
        if done {
            self.dropped().write().is_gone(root);
            self.forget_gone_pages(root);
        }
        Ok(done)
    }
}

const RECORD_BUDGET: usize = 256;
