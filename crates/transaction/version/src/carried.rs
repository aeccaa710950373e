//! Undo that was carried forward (R9): copies of log records whose segment is used again while their transaction
//! lives.
//!
//! A copy costs the log next to nothing: the records go into detached chains (`btree::detached`), whose pages are in the
//! file before a short record links them. So what a checkpoint writes to the log does not depend on how much it carries.
//!
//! Layout: a row of the `undo` tree is one chain. Key `stamp u64, low u64` big-endian; payload `root u64, length u64,
//! below u64` little-endian. The chain holds log records in their encoding, reduced to what undo needs (`for_undo`),
//! newest first; `low` is the GSN of the last; only those with a GSN under `below` count. A chain is listed in
//! `pending_free` as long as it exists, so a crash that leaves it without a row gives it back, and so does the end of
//! every recovery.
//!
//! Invariants:
//! - V62 The copies of a transaction that are not void, less those that a compensation above what is carried
//!   (`SlotGuard::carried`) names, are exactly its uncompensated undoable records below that; for each GSN that counts, the chain with the highest `low` at or below it has it.
//! - V63 A chain is given back after its row is gone, and nobody reads it by then: its row goes when all of it is
//!   void, or when the transaction has ended.
//!
//! Concurrency: one checkpoint (or recovery) changes rows at a time; rollbacks read meanwhile, each its own
//! transaction's. A reader that was handed the last record of a chain does not look at the chain again (V63).
//!
//! Crash: a row without its void records marked is completed by the compensation records, which the log keeps until
//! the row says so.

use crate::error::damaged;
use crate::pending::PendingKind;
use crate::store::VersionStore;
use crate::undo::for_undo;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum_base::codec::{Put, Reader as BytesReader};
use vellum_base::{Gsn, PageId, Result, Timestamp};
use vellum_btree::detached::{Detached, DetachedWriter};
use vellum_btree::overflow::{ChainRef, Reader};
use vellum_btree::{Entry, Journal, LeafCopy, Seek, Tree, TreeContext};
use vellum_buffer::PREFETCH_MAX;
use vellum_wal::{RECORD_HEADER_BYTES, Record};

/// Bytes of a row's key.
pub const KEY_BYTES: usize = 16;

/// A row of the `undo` tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CarriedRow {
    /// Whose records.
    pub stamp: Timestamp,
    /// GSN of the oldest.
    pub low: Gsn,
    /// Where they are.
    pub chain: ChainRef,
    /// Records at or above it are void.
    pub below: Gsn,
}

impl CarriedRow {
    /// Decodes a row; `None` if it is none.
    pub fn decode(key: &[u8], payload: &[u8]) -> Option<Self> {
        let key: &[u8; KEY_BYTES] = key.try_into().ok()?;
        let (stamp, low) = key.split_first_chunk::<8>()?;
        let (chain, below) = payload.split_at_checked(ChainRef::BYTES)?;
        let mut reader = BytesReader::new(below);
        let row = Self {
            stamp: Timestamp(u64::from_be_bytes(*stamp)),
            low: Gsn(u64::from_be_bytes(low.try_into().ok()?)),
            chain: ChainRef::decode(chain)?,
            below: Gsn(reader.u64()?),
        };
        (reader.rest().is_empty() && row.low < row.below).then_some(row)
    }

    fn key(&self) -> [u8; KEY_BYTES] {
        key(self.stamp, self.low)
    }

    fn put(&self, tree: &Tree, journal: Journal<'_>) -> Result<()> {
        debug_assert!(self.low < self.below);
        let mut payload = self.chain.encode().to_vec();
        payload.put_u64(self.below.get());
        tree.put(&self.key(), &payload, Some(journal))
    }
}

fn key(stamp: Timestamp, low: Gsn) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&stamp.get().to_be_bytes());
    key[8..].copy_from_slice(&low.get().to_be_bytes());
    key
}

/// All rows of the `undo` tree, or those of one transaction, ascending.
///
/// # Errors
/// I/O, `Corruption`.
pub fn rows(tree: &Tree, of: Option<Timestamp>) -> Result<Vec<CarriedRow>> {
    let mut found = Vec::new();
    let mut leaf = LeafCopy::new(tree.context().page_size());
    let mut name = Vec::new();
    let start = key(of.unwrap_or(Timestamp::ZERO), Gsn::ZERO);
    tree.read_leaf(Seek::AtOrAfter(&start), &mut leaf)?;
    loop {
        for index in leaf.position()..leaf.len() {
            leaf.key(index, &mut name);
            let row = CarriedRow::decode(&name, leaf.payload(index))
                .ok_or_else(|| damaged("row of carried undo", tree.root()))?;
            if of.is_some_and(|stamp| stamp != row.stamp) {
                return Ok(found);
            }
            found.push(row);
        }
        let Some(fence) = leaf.upper_fence().map(<[u8]>::to_vec) else {
            return Ok(found);
        };
        tree.read_leaf(Seek::AtOrAfter(&fence), &mut leaf)?;
    }
}

/// Notes that the copies of a transaction at or above `from` are void. Roots of chains that nobody needs any more go
/// to `unowned`. True if anything changed.
///
/// # Errors
/// I/O, log space: call again.
pub fn void(
    tree: &Tree,
    (stamp, from): (Timestamp, Gsn),
    journal: Journal<'_>,
    unowned: &mut Vec<PageId>,
) -> Result<bool> {
    let mut any = false;
    for row in rows(tree, Some(stamp))? {
        if row.low >= from {
            tree.delete(&row.key(), Some(journal))?;
            unowned.push(row.chain.root);
            any = true;
        } else if row.below > from {
            CarriedRow { below: from, ..row }.put(tree, journal)?;
            any = true;
        }
    }
    Ok(any)
}

/// Drops the copies of transactions that are not live, as [`void`].
///
/// # Errors
/// As [`void`].
pub fn drop_ended(
    tree: &Tree,
    is_live: impl Fn(Timestamp) -> bool,
    journal: Journal<'_>,
    unowned: &mut Vec<PageId>,
) -> Result<bool> {
    let mut any = false;
    for row in rows(tree, None)? {
        if !is_live(row.stamp) {
            tree.delete(&row.key(), Some(journal))?;
            unowned.push(row.chain.root);
            any = true;
        }
    }
    Ok(any)
}

/// Copies of one transaction's records, in the making: detached chains.
#[derive(Debug)]
pub struct Copies {
    context: Arc<TreeContext>,
    stamp: Timestamp,
    writer: Option<DetachedWriter>,
    /// Chains that are complete, with the GSN of their oldest record; newest first.
    chains: Vec<(Gsn, Detached)>,
    /// GSN of the record that came last.
    low: Gsn,
    encoded: Vec<u8>,
}

impl Copies {
    /// No copies, of nothing.
    pub fn new(context: &Arc<TreeContext>, stamp: Timestamp) -> Self {
        Self {
            context: context.clone(),
            stamp,
            writer: None,
            chains: Vec::new(),
            low: Gsn::MAX,
            encoded: Vec::new(),
        }
    }

    /// Whose they are.
    pub fn stamp(&self) -> Timestamp {
        self.stamp
    }

    /// Copies what undo needs of a record, the next older one. Takes pages.
    ///
    /// # Errors
    /// Out of space, I/O, `Corruption`: give the copies up.
    pub fn push(&mut self, record: &Record<'_>) -> Result<()> {
        debug_assert!(record.header.gsn < self.low, "newest first");
        debug_assert_eq!(record.stamp(), Some(self.stamp));
        if self.writer.as_ref().is_some_and(DetachedWriter::is_full) {
            self.end_chain()?;
        }
        self.encoded.clear();
        for_undo(record)?.encode_to(&mut self.encoded);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(DetachedWriter::new(&self.context)?),
        };
        writer.write(&self.encoded)?;
        self.low = record.header.gsn;
        Ok(())
    }

    /// Puts the last bytes into pages: then these are to be brought into the file, before [`Copies::link`].
    ///
    /// # Errors
    /// As [`Copies::push`].
    pub fn finish(&mut self) -> Result<()> {
        self.end_chain()
    }

    fn end_chain(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.chains.push((self.low, writer.finish()?));
        }
        Ok(())
    }

    /// Makes the copies count, all of them: what was compensated since is voided later ([`void`]). All pages are in the
    /// file. Copies that an earlier call left half-way are replaced. `linked` gets the root of each chain that is linked.
    ///
    /// # Errors
    /// Log space, I/O: some chains count, which does no harm; copy again.
    pub fn link(
        self,
        store: &VersionStore,
        tree: &Tree,
        journal: Journal<'_>,
        unowned: &mut Vec<PageId>,
        linked: &mut dyn FnMut(PageId),
    ) -> Result<()> {
        debug_assert!(self.writer.is_none(), "finished");
        let Some((lowest, _)) = self.chains.last() else {
            return Ok(());
        };
        void(tree, (self.stamp, *lowest), journal, unowned)?;
        for (low, chain) in self.chains {
            let entry = Entry {
                tree: store.pending_free(),
                payload: PendingKind::Chain.payload(),
            };
            let chain = chain.link(journal, entry)?;
            linked(chain.root);
            let stamp = self.stamp;
            let row = CarriedRow {
                stamp,
                low,
                chain,
                below: Gsn::MAX,
            };
            if let Err(error) = row.put(tree, journal) {
                unowned.push(chain.root);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Hands out copies, newest first, of several transactions in turn.
#[derive(Debug, Default)]
pub(crate) struct CarriedReader<'s> {
    open: BTreeMap<Timestamp, OpenChain<'s>>,
}

/// A chain that is being read.
#[derive(Debug)]
struct OpenChain<'s> {
    row: CarriedRow,
    reader: Reader<'s>,
    /// What was read; records from `at` on are still to come.
    bytes: Vec<u8>,
    at: usize,
    /// GSN of the record handed out last.
    last: Gsn,
    /// What was read last has not been looked at.
    fresh: bool,
}

impl<'s> CarriedReader<'s> {
    /// Puts the newest copy of `stamp` with a GSN below `below` into `out`; false if there is none.
    pub fn next(
        &mut self,
        tree: &'s Tree,
        stamp: Timestamp,
        below: Gsn,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let goes_on = |open: &OpenChain<'_>| open.row.low < below && below <= open.last;
        if !self.open.get(&stamp).is_some_and(goes_on) {
            self.open.remove(&stamp);
            let Some(row) = newest_below(tree, stamp, below)? else {
                return Ok(false);
            };
            let opened = OpenChain {
                row,
                reader: Reader::new(tree.context(), row.chain),
                bytes: Vec::new(),
                at: 0,
                last: Gsn::MAX,
                fresh: false,
            };
            self.open.insert(stamp, opened);
        }
        let broken = || damaged("chain of carried undo", tree.root());
        let open = self.open.get_mut(&stamp).ok_or_else(broken)?;
        let below = below.min(open.row.below);
        // The oldest one is below.
        while open.next_record(out, tree)? {
            if open.last < below {
                return Ok(true);
            }
        }
        Err(broken())
    }
}

impl OpenChain<'_> {
    /// Puts the next record into `out`; false at the end.
    fn next_record(&mut self, out: &mut Vec<u8>, tree: &Tree) -> Result<bool> {
        let broken = || damaged("chain of carried undo", tree.root());
        if !self.fill(4)? {
            return Ok(false);
        }
        if std::mem::take(&mut self.fresh) {
            self.ask_ahead(tree.context());
        }
        let head = self.bytes[self.at..]
            .first_chunk::<4>()
            .ok_or_else(broken)?;
        let length = u32::from_le_bytes(*head) as usize;
        // Key and before-image are parts of a page.
        if !(RECORD_HEADER_BYTES..=2 * tree.context().page_size()).contains(&length)
            || !self.fill(length)?
        {
            return Err(broken());
        }
        out.clear();
        out.extend_from_slice(&self.bytes[self.at..self.at + length]);
        self.at += length;
        let gsn = Record::decode(out, vellum_base::Lsn::ZERO).ok_or_else(broken)?;
        let gsn = gsn.header.gsn;
        if gsn >= self.last || gsn < self.row.low {
            return Err(broken());
        }
        self.last = gsn;
        Ok(true)
    }

    /// Has the pages that records to come were about read together, those that are not in memory.
    fn ask_ahead(&self, context: &TreeContext) {
        let mut pages: SmallVec<[PageId; 128]> = SmallVec::new();
        let mut rest = &self.bytes[self.at..];
        while let Some(record) = Record::decode(rest, vellum_base::Lsn::ZERO) {
            if pages.last() != Some(&record.header.page) {
                pages.push(record.header.page);
            }
            rest = &rest[record.length()..];
        }
        for together in pages.chunks(PREFETCH_MAX) {
            context.prefetch_used(together);
        }
    }

    /// Sees to it that `length` bytes are there; false if the chain ends before.
    fn fill(&mut self, length: usize) -> Result<bool> {
        while self.bytes.len() - self.at < length {
            self.bytes.drain(..self.at);
            self.at = 0;
            self.fresh = true;
            match self.reader.next_chunk()? {
                Some(chunk) => self.bytes.extend_from_slice(chunk),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The row with the highest `low` below `below`.
fn newest_below(tree: &Tree, stamp: Timestamp, below: Gsn) -> Result<Option<CarriedRow>> {
    let bound = key(stamp, below);
    let mut leaf = LeafCopy::new(tree.context().page_size());
    tree.read_leaf(Seek::Before(&bound), &mut leaf)?;
    while leaf.position() == 0 {
        let Some(fence) = leaf.lower_fence().map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        tree.read_leaf(Seek::Before(&fence), &mut leaf)?;
    }
    let (mut name, at) = (Vec::new(), leaf.position() - 1);
    leaf.key(at, &mut name);
    let row = CarriedRow::decode(&name, leaf.payload(at))
        .ok_or_else(|| damaged("row of carried undo", tree.root()))?;
    Ok((row.stamp == stamp).then_some(row))
}
