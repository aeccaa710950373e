//! Values that do not fit into a row: overflow chains, written before the row that refers to them.
//!
//! A chain is immutable. A new value is a new chain; the old one goes with the last version that refers to
//! it (`pending`, `collect`).
//!
//! Invariants:
//! - V72 An operation that reads or writes a value is lowered between two stretches of its pages (R10): a value of a gigabyte takes ten seconds of a disk, in
//!   which its transaction could be neither promoted nor withdrawn. Nothing that was judged before is judged by afterwards, but for the value itself: what is read is
//!   immutable, and stays as long as the snapshot that sees it counts (who was withdrawn is told before the next page); what is written is known to
//!   its writer alone.

use crate::error::{Result, damaged};
use crate::pending::{FREE_STEP, PendingKind};
use crate::store::VersionStore;
use crate::work::Work;
use vellum_base::PageId;
use vellum_btree::overflow::{self, ChainRef};
use vellum_btree::{Entry, Journal};
use vellum_txn::{Operation, Transaction, VersionStamp};
use vellum_wal::{Purpose, SlotLog};

/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = overflow::MAX_LENGTH as usize;

/// Pages of a value that are read or written before others are let in (V72). Few where tests are run: they meet that often.
const PAGES_AT_ONCE: usize = if cfg!(debug_assertions) { 1 } else { 64 };

/// Lowers an operation after each `PAGES_AT_ONCE` pages of a value.
#[derive(Debug)]
pub struct Stretch<'o, 't> {
    operation: &'o mut Operation<'t>,
    pages_left: usize,
}

impl<'o, 't> Stretch<'o, 't> {
    /// Before the first page.
    pub fn begin(operation: &'o mut Operation<'t>) -> Self {
        Self {
            operation,
            pages_left: PAGES_AT_ONCE - 1,
        }
    }

    /// Before a further page. No latch is held.
    ///
    /// # Errors
    /// `SnapshotTooOld`.
    pub fn further(&mut self) -> Result<()> {
        if let Some(left) = self.pages_left.checked_sub(1) {
            self.pages_left = left;
            return Ok(());
        }
        self.pages_left = PAGES_AT_ONCE - 1;
        self.operation.pause();
        vellum_sync::test_point!("large value: between two stretches");
        Ok(self.operation.resume()?)
    }
}

impl VersionStore {
    /// Writes a value to a chain, which is listed in `pending_free` until [`VersionStore::adopt`]. V72: views of the operation from before are void.
    ///
    /// # Errors
    /// Out of space, I/O, `SnapshotTooOld`: what was written is freed again, or stays listed if that fails too.
    pub fn write_chain(&self, operation: &mut Operation<'_>, value: &[u8]) -> Result<ChainRef> {
        let transaction = operation.transaction();
        transaction.stamp()?;
        let log = transaction.domain().log().slot(transaction.slot());
        let entry = Entry {
            tree: self.pending_free(),
            payload: PendingKind::Chain.payload(),
        };
        let mut writer =
            overflow::Writer::new(self.context(), Some(Journal::forward(log)), Some(entry));
        let mut stretch = Stretch::begin(operation);
        let mut pieces = value.chunks(self.context().page_size());
        let written = pieces.try_for_each(|piece| {
            if !writer.root().is_zero() {
                stretch.further()?;
            }
            Ok(writer.write(piece)?)
        });
        if let Err(error) = written {
            let root = writer.root();
            if !root.is_zero() {
                self.give_up(transaction, root, PendingKind::Chain);
                self.free_given_up(transaction);
            }
            return Err(error);
        }
        let root = writer.root();
        writer.finish().map_err(|error| {
            // Its last page is missing; without a page before that there is no chain.
            if !root.is_zero() {
                self.give_up(transaction, root, PendingKind::Chain);
                self.free_given_up(transaction);
            }
            error.into()
        })
    }

    /// Reads a chain into `out`, replacing what is there. Takes as much memory as the value is long, once. V72: views of the operation from before are void. The
    /// chain must stay reachable as for [`VersionStore::chain_reader`].
    ///
    /// # Errors
    /// As [`VersionStore::chain_reader`], and of the chain, I/O, `SnapshotTooOld`; `MemoryLimit` if the system has no memory for it (`out` is empty then).
    pub fn read_chain_into(
        &self,
        operation: &mut Operation<'_>,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.read_chain_start(operation, body, VALUE_BYTES_MAX, out)
    }

    /// Reads the first bytes of a chain into `out`, replacing what is there: `most`, or a page's worth more, or all that there are.
    ///
    /// # Errors
    /// As [`VersionStore::read_chain_into`].
    pub fn read_chain_start(
        &self,
        operation: &mut Operation<'_>,
        body: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut stretch = Stretch::begin(operation);
        self.chain_reader(body)?
            .read_start_between(most, out, || stretch.further())
    }

    /// A reader of a chain, for who does other things between its chunks. The chain must stay reachable meanwhile: its version
    /// is seen by an open snapshot, or is the transaction's own and not rolled back.
    ///
    /// # Errors
    /// Corruption of the reference.
    pub fn chain_reader(&self, body: &[u8]) -> Result<overflow::Reader<'_>> {
        Ok(overflow::Reader::new(self.context(), decode_chain(body)?))
    }

    /// Lists the chain of a version of a row of `tree` that was replaced; `made_by`: its name, `None` if it is frozen.
    ///
    /// # Errors
    /// As [`VersionStore::disown_tree`].
    pub fn disown_chain(
        &self,
        transaction: &Transaction,
        tree: PageId,
        body: &[u8],
        made_by: Option<VersionStamp>,
    ) -> Result<()> {
        let ChainRef { root, length } = decode_chain(body)?;
        let work = Work::Chain {
            root,
            length,
            tree,
            made_by,
        };
        self.list_and_work_on(transaction, root, PendingKind::Chain, &work)
    }

    /// Gives the pages of a listed chain back and takes it off the list.
    ///
    /// # Errors
    /// I/O, log space: it is still listed; call again.
    pub fn free_chain(
        &self,
        root: PageId,
        log: &SlotLog,
        purpose: Purpose,
    ) -> vellum_base::Result<()> {
        while !self.free_chain_step(root, log, purpose)? {}
        Ok(())
    }

    /// A bounded step of [`VersionStore::free_chain`], of [`FREE_STEP`] pages; true once nothing is left. Not to be called
    /// again then.
    ///
    /// # Errors
    /// As [`VersionStore::free_chain`].
    pub fn free_chain_step(
        &self,
        root: PageId,
        log: &SlotLog,
        purpose: Purpose,
    ) -> vellum_base::Result<bool> {
        let journal = Some(Journal::new(log, purpose));
        let list = self.pending_free();
        let done = overflow::free(self.context(), root, FREE_STEP, journal, Some(list))?;
        if done {
            // A list that was long for a while gives its leaves back, too. The chain is gone whatever becomes of that.
            let _ = list.rebalance(&root.get().to_be_bytes(), journal);
        }
        Ok(done)
    }
}

/// The reference in the body of a row with a chain.
///
/// # Errors
/// `Corruption` if it is none.
pub fn decode_chain(body: &[u8]) -> Result<ChainRef> {
    ChainRef::decode(body).ok_or_else(|| damaged("chain reference", PageId::ZERO).into())
}
