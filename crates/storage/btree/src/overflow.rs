//! Overflow chains: payloads that do not fit into a leaf. Immutable once written.
//!
//! Layout of a chain page (after the common header, whose `tree` is the chain's root page):
//!
//! | offset | type | what |
//! | --- | --- | --- |
//! | 24 | u64 | next page, zero at the end |
//! | 32 | u64 | bytes of data in this page |
//! | 40 | | data |
//!
//! All pages but the last are full.
//!
//! Invariants:
//! - O1 A page is linked in the change that allocates it (the link in its predecessor is a record of
//!   that change), so a chain never names a page that is not its own.
//! - O2 With an [`Entry`], the entry appears in the change that allocates the root and goes in the
//!   change that frees it: a chain is always either adopted or listed, and an entry never names a
//!   page that was given back.
//!
//! Concurrency: a chain under construction is known to its writer alone; a finished one does not change
//! until nobody can reach it, when it is freed.
//!
//! Crash: whatever was written is a whole chain, and listed.

use crate::change::{Change, Fresh};
use crate::context::{Journal, TreeContext, change_log_bytes};
use crate::node::layout::{FLAG_PLAIN, FLAG_TEMPORARY, KIND_OVERFLOW, NodeRead};
use crate::record::LINK;
use crate::tree::{Entry, Tree};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use vellum_base::{PageId, Result, StorageError};
use vellum_buffer::{Exclusive, PREFETCH_MAX, PageBuf, PageRead, PageWrite, check_header};

/// Bytes before the data.
pub const CHAIN_HEADER_BYTES: usize = 40;
pub(crate) const NEXT_AT: usize = 24;
pub(crate) const LENGTH_AT: usize = 32;

/// Longest payload.
pub const MAX_LENGTH: u64 = 1 << 30;

/// Pages that one step of [`free`] latches, at most, besides the root.
const BATCH: usize = 3;

/// Where a chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainRef {
    /// Its first page.
    pub root: PageId,
    /// Bytes of data in all pages.
    pub length: u64,
}

impl ChainRef {
    /// Bytes of the encoded form.
    pub const BYTES: usize = 16;

    /// Root and length, little-endian.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&self.root.get().to_le_bytes());
        out[8..].copy_from_slice(&self.length.to_le_bytes());
        out
    }

    /// Bytes of the pages that it takes.
    pub fn bytes_of_pages(&self, page_size: usize) -> u64 {
        let capacity = (page_size - CHAIN_HEADER_BYTES) as u64;
        self.length.div_ceil(capacity).max(1) * page_size as u64
    }

    /// Decodes what [`ChainRef::encode`] made. `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (root, length) = bytes.split_first_chunk::<8>()?;
        let length = u64::from_le_bytes(length.try_into().ok()?);
        let root = PageId(u64::from_le_bytes(*root));
        (!root.is_zero() && length <= MAX_LENGTH).then_some(Self { root, length })
    }
}

/// The bounds of a chain page's unused middle, for its image.
pub(crate) fn used(page: &PageBuf) -> (usize, usize) {
    let length = usize::try_from(page.u64_at(LENGTH_AT)).unwrap_or(usize::MAX);
    (
        CHAIN_HEADER_BYTES.saturating_add(length).min(page.size()),
        page.size(),
    )
}

/// Writes a chain, a page at a time.
pub struct Writer<'w> {
    context: &'w TreeContext,
    journal: Option<Journal<'w>>,
    entry: Option<Entry<'w>>,
    page: PageBuf,
    filled: usize,
    root: PageId,
    last: PageId,
    length: u64,
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer(chain {}, {} bytes)", self.root, self.length)
    }
}

impl<'w> Writer<'w> {
    /// A writer that has allocated nothing yet. Without a journal the chain is temporary. `entry` is
    /// added for the chain together with its first page (O2).
    pub fn new(
        context: &'w Arc<TreeContext>,
        journal: Option<Journal<'w>>,
        entry: Option<Entry<'w>>,
    ) -> Self {
        Self {
            context,
            journal,
            entry,
            page: PageBuf::new(context.page_size()),
            filled: 0,
            root: PageId::ZERO,
            last: PageId::ZERO,
            length: 0,
        }
    }

    /// The root, once a page was written (zero before): what to free if the payload is given up.
    pub fn root(&self) -> PageId {
        self.root
    }

    /// Appends bytes to the payload. Reserves log space and takes pages; the caller holds no latch.
    ///
    /// # Errors
    /// Out of space, I/O. What was written so far is a chain of [`Writer::root`], to be freed.
    ///
    /// # Panics
    /// If the payload grows beyond [`MAX_LENGTH`].
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        let capacity = self.page.size() - CHAIN_HEADER_BYTES;
        assert!(
            self.length + bytes.len() as u64 <= MAX_LENGTH,
            "a payload of at most 1 GiB"
        );
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.filled == capacity {
                self.flush()?;
            }
            let count = bytes.len().min(capacity - self.filled);
            self.page
                .write(CHAIN_HEADER_BYTES + self.filled, &bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Writes the last page. The chain is complete; its entry is still there.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn finish(mut self) -> Result<ChainRef> {
        self.flush()?;
        Ok(ChainRef {
            root: self.root,
            length: self.length,
        })
    }

    fn flush(&mut self) -> Result<()> {
        let flags = if self.journal.is_some() {
            FLAG_PLAIN
        } else {
            FLAG_TEMPORARY | FLAG_PLAIN
        };
        self.page.set_u8(4, KIND_OVERFLOW);
        self.page.set_u8(5, flags);
        self.page.set_u64(NEXT_AT, 0);
        self.page.set_u64(LENGTH_AT, self.filled as u64);
        loop {
            if let Some(journal) = self.journal {
                journal.reserve(change_log_bytes(self.context.page_size()))?;
            }
            let root = (!self.root.is_zero()).then_some(self.root);
            let fresh = Fresh::make(self.context, root, (KIND_OVERFLOW, flags), self.journal)?;
            let id = fresh.id();
            self.page.set_u64(16, root.unwrap_or(id).get());
            let link = id.get().to_le_bytes();
            let mut last = match root {
                Some(_) => Some(self.context.pool().exclusive(self.last)?),
                None => None,
            };
            let mut change = Change::new(self.context, root.unwrap_or(id), self.journal);
            match (&mut last, self.entry) {
                (Some(last), _) => {
                    change.add_fresh(fresh, &self.page);
                    change.add_word(last, (NEXT_AT, id.get()), LINK, &link);
                    change.commit()?;
                }
                (None, None) => {
                    change.add_fresh(fresh, &self.page);
                    change.commit()?;
                }
                (None, Some(entry)) => {
                    let key = id.get().to_be_bytes();
                    let mut leaf = entry.tree.write(&key)?;
                    if !leaf.fits(entry.payload.len()) {
                        drop(leaf);
                        drop(fresh);
                        entry
                            .tree
                            .make_room(&key, entry.payload.len(), self.journal)?;
                        continue;
                    }
                    change.add_fresh(fresh, &self.page);
                    change.commit_with_entry(&mut leaf, Some(entry.payload))?;
                }
            }
            if self.root.is_zero() {
                self.root = id;
            }
            self.last = id;
            self.filled = 0;
            return Ok(());
        }
    }
}

/// Reads a chain, a page at a time.
pub struct Reader<'r> {
    context: &'r TreeContext,
    chain: ChainRef,
    page: PageBuf,
    next: PageId,
    read: u64,
    /// How many pages in a row had the number after the one before.
    run: usize,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({:?}, at {})", self.chain, self.read)
    }
}

impl<'r> Reader<'r> {
    /// A reader at the start.
    pub fn new(context: &'r Arc<TreeContext>, chain: ChainRef) -> Self {
        let page = PageBuf::new(context.page_size());
        Self {
            context,
            chain,
            page,
            next: chain.root,
            read: 0,
            run: 0,
        }
    }

    /// Bytes of the whole payload, as its reference says.
    pub fn length(&self) -> usize {
        // At most MAX_LENGTH.
        self.chain.length as usize
    }

    /// The next bytes of the payload, `None` behind the last. No latch is held when this returns.
    ///
    /// # Errors
    /// I/O; corruption if the chain is not as long as its reference says.
    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>> {
        if self.next.is_zero() {
            if self.read != self.chain.length {
                let what = "length of an overflow chain";
                return Err(self.context.corrupt(
                    self.chain.root,
                    what,
                    self.chain.length,
                    self.read,
                ));
            }
            return Ok(None);
        }
        let id = self.next;
        self.ask_ahead(id);
        {
            let page = self.context.pool().shared(id)?;
            page.copy_to(&mut self.page);
        }
        let (next, length) = check(self.context, &self.page, id, self.chain.root)?;
        self.run = if next.get() == id.get() + 1 {
            self.run + 1
        } else {
            0
        };
        self.next = next;
        self.read += length as u64;
        if self.read > self.chain.length || (length == 0 && !next.is_zero()) {
            let what = "length of an overflow chain";
            return Err(self.context.corrupt(id, what, self.chain.length, self.read));
        }
        if length == 0 {
            return if self.chain.length == 0 {
                Ok(None)
            } else {
                self.next_chunk()
            };
        }
        Ok(Some(
            &self.page.as_bytes()[CHAIN_HEADER_BYTES..CHAIN_HEADER_BYTES + length],
        ))
    }

    /// Has the pages from `id` on read together, if it is not in memory, as many as came side by side before: a chain is mostly written at
    /// one go, and its pages lie side by side then.
    fn ask_ahead(&self, id: PageId) {
        let left = (self.chain.length - self.read).div_ceil(self.page.size() as u64);
        let count = PREFETCH_MAX.min(self.run).min(left as usize);
        if count > 1 && !self.context.pool().is_resident(id) {
            let pages: SmallVec<[PageId; PREFETCH_MAX]> =
                (id.get()..).map(PageId).take(count).collect();
            self.context.prefetch_used(&pages);
        }
    }

    /// Calls `each` with all remaining chunks.
    ///
    /// # Errors
    /// As [`Reader::next_chunk`].
    pub fn for_each(mut self, mut each: impl FnMut(&[u8])) -> Result<()> {
        while let Some(chunk) = self.next_chunk()? {
            each(chunk);
        }
        Ok(())
    }

    /// Reads the next bytes into `out`, replacing what is there: `most`, or up to a page's worth more, or all that there are.
    /// Takes as much memory as they are long, once.
    ///
    /// # Errors
    /// As [`Reader::next_chunk`]; `MemoryLimit` if the system has no memory for them (`out` is empty then).
    pub fn read_start(&mut self, most: usize, out: &mut Vec<u8>) -> Result<()> {
        self.read_start_between(most, out, || Ok(()))
    }

    /// The same; calls `between` before each page but the first. No latch is held then.
    ///
    /// # Errors
    /// As [`Reader::read_start`], and those of `between`.
    pub fn read_start_between<E: From<StorageError>>(
        &mut self,
        most: usize,
        out: &mut Vec<u8>,
        mut between: impl FnMut() -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        // Whole pages: nothing is copied beyond what is reserved.
        let asked = most.saturating_add(self.context.page_size());
        make_room(out, self.length().min(asked))?;
        while out.len() < most {
            if !out.is_empty() {
                between()?;
            }
            let Some(chunk) = self.next_chunk()? else {
                break;
            };
            out.extend_from_slice(chunk);
        }
        Ok(())
    }

    /// Page ids of the whole chain, for checks.
    ///
    /// # Errors
    /// As [`Reader::next_chunk`].
    pub fn pages(mut self, mut each: impl FnMut(PageId)) -> Result<()> {
        loop {
            let id = self.next;
            if id.is_zero() {
                return self.next_chunk().map(|_| ());
            }
            each(id);
            self.next_chunk()?;
        }
    }
}

/// Empties `out` and gives it room for `length` bytes: not for more, as growing by doubling would, and not beside what it had.
///
/// # Errors
/// `MemoryLimit`: it is empty, and has no room.
fn make_room(out: &mut Vec<u8>, length: usize) -> Result<()> {
    out.clear();
    if out.capacity() < length {
        *out = Vec::new();
        let full = |_| StorageError::MemoryLimit {
            what: "large value",
        };
        out.try_reserve_exact(length).map_err(full)?;
    }
    Ok(())
}

/// Checks a chain whose length nobody tells. `reached` is told each page and returns false if it was
/// reached before, which ends the walk. Returns pages and bytes of data up to there.
///
/// # Errors
/// Corruption, which names the page; I/O.
pub fn verify(
    context: &TreeContext,
    root: PageId,
    reached: &mut dyn FnMut(PageId) -> bool,
) -> Result<(u64, u64)> {
    let (mut pages, mut bytes, mut id) = (0, 0, root);
    while !id.is_zero() {
        if !reached(id) {
            return Err(context.corrupt(id, "page reached once", 1, 2));
        }
        let page = context.pool().shared(id)?;
        let (next, length) = check(context, &page, id, root)?;
        let capacity = page.size() - CHAIN_HEADER_BYTES;
        if !next.is_zero() && length != capacity {
            let what = "full pages before the last of a chain";
            return Err(context.corrupt(id, what, capacity as u64, length as u64));
        }
        pages += 1;
        bytes += length as u64;
        id = next;
    }
    Ok((pages, bytes))
}

/// Next page and length of a chain page.
fn check<P: PageRead + ?Sized>(
    context: &TreeContext,
    page: &P,
    id: PageId,
    root: PageId,
) -> Result<(PageId, usize)> {
    let kind = page.kind_and_flags().0;
    if kind != KIND_OVERFLOW {
        let what = "kind of an overflow page";
        return Err(context.corrupt(id, what, KIND_OVERFLOW.into(), kind.into()));
    }
    if let Err(defect) = check_header(page) {
        return Err(context.corrupt(id, defect.what, defect.expected, defect.found));
    }
    if page.tree_id() != root {
        let found = page.tree_id().get();
        return Err(context.corrupt(id, "root of an overflow page", root.get(), found));
    }
    let length = page.u64_at(LENGTH_AT);
    let capacity = (page.size() - CHAIN_HEADER_BYTES) as u64;
    if length > capacity {
        return Err(context.corrupt(id, "bytes in an overflow page", capacity, length));
    }
    Ok((PageId(page.u64_at(NEXT_AT)), length as usize))
}

/// Gives back the pages of a chain, about `budget` in this call; true once the root is gone too.
/// Nobody else uses the chain. After a crash, call it again.
///
/// `entry`: the tree with an entry for the chain (key: root page id, big-endian), removed together
/// with the root (O2).
///
/// # Errors
/// I/O, out of log space, corruption. What was given back stays so.
pub fn free(
    context: &Arc<TreeContext>,
    root: PageId,
    budget: usize,
    journal: Option<Journal<'_>>,
    entry: Option<&Tree>,
) -> Result<bool> {
    let pool = context.pool();
    let mut freed = 0;
    loop {
        if let Some(journal) = journal {
            journal.reserve(change_log_bytes(context.page_size()))?;
        }
        let mut first = pool.exclusive(root)?;
        let (mut next, _) = check(context, &first, root, root)?;
        let mut change = Change::new(context, root, journal);
        if next.is_zero() {
            change.free(first);
            let key = root.get().to_be_bytes();
            let leaf = entry.map(|tree| tree.write(&key)).transpose()?;
            match leaf.filter(|leaf| leaf.found()) {
                Some(mut leaf) => change.commit_with_entry(&mut leaf, None)?,
                None => change.commit()?,
            };
            return Ok(true);
        }
        if freed >= budget.max(1) {
            return Ok(false);
        }
        // From the front: the root keeps leading to all that is left.
        let mut pages: Vec<Exclusive<'_>> = Vec::with_capacity(BATCH);
        while pages.len() < BATCH && !next.is_zero() {
            if next == root || pages.iter().any(|page| page.page_id() == next) {
                return Err(cycle(context, root, next));
            }
            let page = pool.exclusive(next)?;
            next = check(context, &page, next, root)?.0;
            pages.push(page);
        }
        freed += pages.len();
        let link = next.get().to_le_bytes();
        change.add_word(&mut first, (NEXT_AT, next.get()), LINK, &link);
        for page in pages {
            change.free(page);
        }
        change.commit()?;
    }
}

#[cold]
fn cycle(context: &TreeContext, root: PageId, page: PageId) -> StorageError {
    context.corrupt(root, "an overflow chain without cycles", 0, page.get())
}
