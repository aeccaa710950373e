//! Values that do not fit into a row: overflow chains, written before the row that refers to them.
//!
//! A chain is immutable. A new value is a new chain; the old one goes with the last version that refers to
//! it (`pending`, `collect`).

use crate::error::{Result, damaged};
use crate::pending::{FREE_STEP, PendingKind};
use crate::store::VersionStore;
use crate::work::Work;
use vellum_base::PageId;
use vellum_btree::overflow::{self, ChainRef};
use vellum_btree::{Entry, Journal};
use vellum_txn::{Transaction, VersionStamp};
use vellum_wal::{Purpose, SlotLog};

/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = overflow::MAX_LENGTH as usize;

impl VersionStore {
    /// Writes a value to a chain, which is listed in `pending_free` until [`VersionStore::adopt`].
    ///
    /// # Errors
    /// Out of space, I/O: what was written is freed again, or stays listed if that fails too.
    pub fn write_chain(&self, transaction: &Transaction, value: &[u8]) -> Result<ChainRef> {
        transaction.stamp()?;
        let log = transaction.domain().log().slot(transaction.slot());
        let entry = Entry {
            tree: self.pending_free(),
            payload: PendingKind::Chain.payload(),
        };
        let mut writer =
            overflow::Writer::new(self.context(), Some(Journal::forward(log)), Some(entry));
        if let Err(error) = writer.write(value) {
            let root = writer.root();
            if !root.is_zero() {
                self.give_up(transaction, root, PendingKind::Chain);
                self.free_given_up(transaction);
            }
            return Err(error.into());
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

    /// Reads a chain into `out`, replacing what is there. Takes as much memory as the value is long, once.
    ///
    /// # Errors
    /// As [`VersionStore::chain_reader`], and of the chain, I/O; `MemoryLimit` if the system has no memory for it (`out` is empty then).
    pub fn read_chain_into(&self, body: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.read_chain_start(body, VALUE_BYTES_MAX, out)
    }

    /// Reads the first bytes of a chain into `out`, replacing what is there: `most`, or a page's worth more, or all that there are.
    ///
    /// # Errors
    /// As [`VersionStore::read_chain_into`].
    pub fn read_chain_start(&self, body: &[u8], most: usize, out: &mut Vec<u8>) -> Result<()> {
        Ok(self.chain_reader(body)?.read_start(most, out)?)
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
