//! Overflow chains that are written without a log record for what is in them: their pages get into the file first, then
//! one short record makes them durable. For bulky data that is not needed unless that record is there.
//!
//! States of a chain: detached (nobody knows it, its pages count as temporary) --[`Detached::link`]--> a chain as any
//! other (`overflow`), listed by its entry. Dropped before that, its pages go back.
//!
//! Invariants:
//! - Z1 A chain is linked by one structure change: bits of all its pages and its entry. So a chain has few pages
//!   ([`DetachedWriter::is_full`]), and these lie under few bitmap pages.
//! - Z2 Who links a chain has seen to it that all of it is in the file, durably: redo never makes its pages.
//!
//! Concurrency: a detached chain is known to its maker alone.
//!
//! Crash: before the record of the link is durable the pages are free; after it they are in the file (Z2). What the file
//! holds at their places from an earlier life is older than their GSN, so redo skips records of it (0001, GSN floor).

use crate::change::Change;
use crate::context::{Journal, TreeContext};
use crate::node::layout::{FLAG_PLAIN, KIND_FREE, KIND_OVERFLOW};
use crate::overflow::{CHAIN_HEADER_BYTES, ChainRef, LENGTH_AT, NEXT_AT};
use crate::tree::Entry;
use std::fmt;
use std::sync::Arc;
use vellum_base::{Gsn, PageId, Result};
use vellum_buffer::{PageBuf, PageRead, PageWrite};

/// Bitmap pages that a chain lies under before it counts as full.
const GROUPS: usize = 4;

/// Pages of a detached chain before it counts as full: the record of their bits is half a page.
const fn pages_max(page_size: usize) -> usize {
    page_size / 8
}

/// A chain that nobody knows yet.
pub struct Detached {
    context: Arc<TreeContext>,
    pages: Vec<PageId>,
    /// How many of them have their content.
    made: usize,
    length: u64,
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pages, length) = (self.pages.len(), self.length);
        write!(f, "Detached({pages} pages, {length} bytes)")
    }
}

impl Detached {
    /// Makes the chain durable and adds its entry, as one structure change; the caller holds no latch. Reserves log
    /// space.
    ///
    /// # Errors
    /// Log space, I/O: the chain is given up.
    pub fn link(mut self, journal: Journal<'_>, entry: Entry<'_>) -> Result<ChainRef> {
        let context = self.context.clone();
        let root = self.pages[0];
        let key = root.get().to_be_bytes();
        loop {
            journal.reserve(crate::context::change_log_bytes(context.page_size()))?;
            let mut leaf = entry.tree.write(&key)?;
            if !leaf.fits(entry.payload.len()) {
                drop(leaf);
                entry
                    .tree
                    .make_room(&key, entry.payload.len(), Some(journal))?;
                continue;
            }
            let mut change = Change::new(&context, root, Some(journal));
            change.adopt(&self.pages);
            change.commit_with_entry(&mut leaf, Some(entry.payload))?;
            break;
        }
        // They are the tree's now.
        self.pages.clear();
        Ok(ChainRef {
            root,
            length: self.length,
        })
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        for (index, page) in self.pages.drain(..).enumerate() {
            if index < self.made {
                mark_free(&self.context, page);
            }
            self.context.space().give(page, Gsn::ZERO);
        }
    }
}

/// Marks a page that has its content and was never linked, before it is given back.
pub(crate) fn mark_free(context: &TreeContext, page: PageId) {
    // A page that cannot be read needs no mark: nobody remembers it.
    if let Ok(mut guard) = context.pool().exclusive(page) {
        guard.set_u8(4, KIND_FREE);
    }
}

/// Writes a detached chain, a page at a time.
pub struct DetachedWriter {
    chain: Detached,
    page: PageBuf,
    filled: usize,
    /// Id and first GSN of the page that is being filled, the last of `chain.pages`.
    floor: Gsn,
    bitmaps: Vec<PageId>,
}

impl fmt::Debug for DetachedWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DetachedWriter({:?})", self.chain)
    }
}

impl DetachedWriter {
    /// A writer of a chain that has its first page.
    ///
    /// # Errors
    /// Out of space, I/O.
    pub fn new(context: &Arc<TreeContext>) -> Result<Self> {
        let mut writer = Self {
            chain: Detached {
                context: context.clone(),
                pages: Vec::new(),
                made: 0,
                length: 0,
            },
            page: PageBuf::new(context.page_size()),
            filled: 0,
            floor: Gsn::ZERO,
            bitmaps: Vec::new(),
        };
        writer.take()?;
        Ok(writer)
    }

    /// True if the chain should not be made longer (Z1). A page more does no harm.
    pub fn is_full(&self) -> bool {
        self.chain.pages.len() >= pages_max(self.page.size()) || self.bitmaps.len() >= GROUPS
    }

    /// Appends bytes; the caller holds no latch. Takes pages.
    ///
    /// # Errors
    /// Out of space, I/O: give the writer up.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        let capacity = self.page.size() - CHAIN_HEADER_BYTES;
        self.chain.length += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.filled == capacity {
                let (id, floor) = (self.last(), self.floor);
                self.take()?;
                self.put(id, floor, self.last())?;
            }
            let count = bytes.len().min(capacity - self.filled);
            self.page
                .write(CHAIN_HEADER_BYTES + self.filled, &bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Writes the last page.
    ///
    /// # Errors
    /// As [`DetachedWriter::write`].
    pub fn finish(mut self) -> Result<Detached> {
        self.put(self.last(), self.floor, PageId::ZERO)?;
        Ok(self.chain)
    }

    fn last(&self) -> PageId {
        *self
            .chain
            .pages
            .last()
            .expect("the first page came with `new`")
    }

    fn take(&mut self) -> Result<()> {
        let space = self.chain.context.space();
        let (id, floor) = space.take(true)?;
        self.chain.pages.push(id);
        self.floor = floor;
        let bitmap = space.bitmap_of(id).0;
        if !self.bitmaps.contains(&bitmap) {
            self.bitmaps.push(bitmap);
        }
        Ok(())
    }

    /// Puts the buffer into a page.
    fn put(&mut self, id: PageId, floor: Gsn, next: PageId) -> Result<()> {
        let root = self.chain.pages[0];
        let pool = self.chain.context.pool();
        let mut guard = pool.create(id, KIND_OVERFLOW, root, false, floor)?;
        self.page.set_u8(4, KIND_OVERFLOW);
        self.page.set_u8(5, FLAG_PLAIN);
        self.page.set_u64(8, floor.get());
        self.page.set_u64(16, root.get());
        self.page.set_u64(NEXT_AT, next.get());
        self.page.set_u64(LENGTH_AT, self.filled as u64);
        guard.copy_from(&self.page);
        drop(guard);
        self.chain.made += 1;
        self.filled = 0;
        Ok(())
    }
}
