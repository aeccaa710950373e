//! What every tree of a database shares, and what `version` registers.

use crate::node::check::check_read_page;
use crate::node::layout::{HEADER_BYTES, RECORD_OVERHEAD, SLOT_BYTES};
use crate::watch::Watched;
use std::fmt;
use std::sync::Arc;
use vellum_base::{PageId, StorageError};
use vellum_buffer::{Claim, PageUse, Pool, Space};
use vellum_metrics::{Counter, Metrics};
use vellum_sync::{Mutex, MutexGuard};
use vellum_wal::{Purpose, RECORD_HEADER_BYTES, SlotLog};

/// How redo brings rows into the one form that log records have (0001, "Redo writes rows reduced").
pub trait RowFormat: Send + Sync + fmt::Debug {
    /// Appends the reduced form of `payload` to `out` (which is empty): never longer, and reducing
    /// it again changes nothing. False if the bytes are no row.
    fn reduce(&self, payload: &[u8], out: &mut Vec<u8>) -> bool;
}

/// What shall become of a row when its leaf runs out of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays as it is.
    Keep,
    /// It is replaced by the shorter payload that was appended, which has the same reduced form: nothing is logged.
    Shrink,
    /// It goes, which is logged.
    Remove,
}

/// Judges rows before a leaf is split. Called without any latch.
pub trait Cleaner: Send + Sync + fmt::Debug {
    /// What shall become of a row of tree `tree`. The verdict must stay right however much time
    /// passes until it is carried out, as long as the row does not change. What it is to be replaced by
    /// is appended to `shorter`, no longer than it is; nothing is where it stays or goes.
    fn judge(&self, tree: PageId, payload: &[u8], shorter: &mut Vec<u8>) -> Verdict;
}

/// The environment of the trees of one database.
pub struct TreeContext {
    pool: Arc<Pool>,
    space: Arc<Space>,
    rows: Option<Arc<dyn RowFormat>>,
    cleaner: Option<Arc<dyn Cleaner>>,
    metrics: Metrics,
    /// How many need the content of every page in the log.
    image_needs: Mutex<usize>,
    watched: Watched,
}

impl fmt::Debug for TreeContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeContext")
            .field("page_size", &self.page_size())
            .field("rows", &self.rows)
            .field("cleaner", &self.cleaner)
            .finish_non_exhaustive()
    }
}

impl TreeContext {
    /// An environment without row format and cleaner. From here on pages of trees that the pool reads must be well formed.
    pub fn new(pool: Arc<Pool>, space: Arc<Space>) -> Self {
        pool.set_check(check_read_page);
        Self {
            pool,
            space,
            rows: None,
            cleaner: None,
            metrics: Metrics::new(),
            image_needs: Mutex::new(0),
            watched: Watched::default(),
        }
    }

    /// Registers the format of rows.
    #[must_use]
    pub fn with_rows(mut self, rows: Arc<dyn RowFormat>) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Registers the cleaner of leaves with rows.
    #[must_use]
    pub fn with_cleaner(mut self, cleaner: Arc<dyn Cleaner>) -> Self {
        self.cleaner = Some(cleaner);
        self
    }

    /// What is counted of its trees.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The trees whose pages are counted.
    #[inline]
    pub(crate) fn watched(&self) -> &Watched {
        &self.watched
    }

    #[inline]
    pub(crate) fn count_search(&self) {
        self.metrics.increment(Counter::TreeSearches);
    }

    /// The buffer pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Page allocation.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Has those of `pages` read together that are in use ([`Pool::prefetch`]): for who guesses them, or knows them from long ago. Of a page that was given
    /// back the file may have what it was before, and in memory it would be taken for that (N5). Nobody gives one back that is latched.
    ///
    /// The caller holds no latch.
    pub fn prefetch_used(&self, pages: &[PageId]) -> usize {
        let is_used = |page| {
            let found = self.space.page_use(page);
            matches!(found, PageUse::Durable | PageUse::Temporary)
        };
        self.pool.prefetch_if(pages, is_used)
    }

    /// The format of rows, if registered.
    pub fn rows(&self) -> Option<&dyn RowFormat> {
        self.rows.as_deref()
    }

    pub(crate) fn cleaner(&self) -> Option<&dyn Cleaner> {
        self.cleaner.as_deref()
    }

    /// From here until what is returned is dropped, pages that are linked have their content in the log; those that were linked without it have
    /// their bits by now. For whoever copies pages while the log goes on. Waits for a structure change that is being made.
    pub fn require_images(&self) -> ImagesRequired<'_> {
        *self.image_needs.lock() += 1;
        ImagesRequired(self)
    }

    /// For who links pages whose content is in no log record (U3 in `bulk`): taken before any latch; with it latches are waited for, and pages that are not in memory.
    pub(crate) fn links(&self) -> Links<'_> {
        Links(self.image_needs.lock())
    }

    /// Bytes of a page.
    #[inline]
    pub fn page_size(&self) -> usize {
        self.pool.page_size()
    }

    /// An error about the content of a page.
    #[cold]
    pub(crate) fn corrupt(
        &self,
        page: PageId,
        what: &'static str,
        expected: u64,
        found: u64,
    ) -> StorageError {
        corrupt_page(page, what, expected, found)
    }
}

/// While it lives, the log has the content of all pages that are linked.
#[derive(Debug)]
#[must_use = "images are required as long as it lives"]
pub struct ImagesRequired<'c>(&'c TreeContext);

impl Drop for ImagesRequired<'_> {
    fn drop(&mut self) {
        *self.0.image_needs.lock() -= 1;
    }
}

/// The right to link pages.
pub(crate) struct Links<'c>(MutexGuard<'c, usize>);

impl Links<'_> {
    /// Whether the content of pages that are linked has to be in the log.
    pub(crate) fn need_images(&self) -> bool {
        *self.0 > 0
    }
}

/// An error about the content of a page of the data file.
#[cold]
pub(crate) fn corrupt_page(
    page: PageId,
    what: &'static str,
    expected: u64,
    found: u64,
) -> StorageError {
    StorageError::Corruption {
        file: "data".into(),
        page: Some(page),
        what,
        expected,
        found,
    }
}

/// Longest key that a tree takes; users get half of it.
pub const fn max_key(page_size: usize) -> usize {
    page_size / 4
}

/// Longest payload that a leaf takes with a key of `key_len` bytes; longer ones go to an overflow
/// chain.
///
/// Two such records fit into a leaf between fences of an eighth of a page, and one between the
/// longest fences: that is what makes every split possible.
pub const fn max_inline_payload(page_size: usize, key_len: usize) -> usize {
    (page_size * 3 / 8 - FIXED_BYTES).saturating_sub(key_len)
}

/// Longest payload with which four records fit into a leaf: what to choose where there is a choice.
pub const fn good_inline_payload(page_size: usize, key_len: usize) -> usize {
    let good = (page_size * 3 / 16 - FIXED_BYTES).saturating_sub(key_len);
    if good < page_size / 16 {
        max_inline_payload(page_size, key_len)
    } else {
        good
    }
}

const FIXED_BYTES: usize = HEADER_BYTES / 2 + SLOT_BYTES + RECORD_OVERHEAD;

// One record with the longest key between the longest fences, in the smallest page.
const _: () = assert!(
    HEADER_BYTES
        + 2 * max_key(4096)
        + SLOT_BYTES
        + RECORD_OVERHEAD
        + max_key(4096)
        + max_inline_payload(4096, max_key(4096))
        <= 4096
);

/// Log bytes of one change of a row, beyond its undo bytes: what to reserve before `Tree::write`.
/// `redo` is the length of the row, or of the patches with four bytes each.
pub const fn row_log_bytes(key_len: usize, redo: usize) -> usize {
    RECORD_HEADER_BYTES + 2 + key_len + redo
}

/// Log bytes of the largest structure change: what functions that change the structure reserve.
pub const fn change_log_bytes(page_size: usize) -> usize {
    // Three images, and the headers and small parts of all records.
    3 * page_size + 1024
}

/// Where a durable tree's structure changes are logged: a leased slot, and on whose account.
#[derive(Clone, Copy, Debug)]
pub struct Journal<'l> {
    /// The slot of the running transaction, or of maintenance.
    pub slot: &'l SlotLog,
    /// Which part of the log's space may be used.
    pub purpose: Purpose,
    /// Which part of the file's.
    claim: Claim,
}

impl<'l> Journal<'l> {
    /// For `purpose`. What runs on behalf of no transaction gives space back in the end, and may use the pages that are
    /// set aside for that.
    pub fn new(slot: &'l SlotLog, purpose: Purpose) -> Self {
        let claim = match purpose {
            Purpose::Forward => Claim::Growth,
            Purpose::Optional | Purpose::Checkpoint => Claim::Upkeep,
            Purpose::Undo => Claim::Critical,
        };
        Self {
            slot,
            purpose,
            claim,
        }
    }

    /// For a running transaction.
    pub fn forward(slot: &'l SlotLog) -> Self {
        Self::new(slot, Purpose::Forward)
    }

    /// For a running transaction that deletes: it may use the pages that are set aside for that.
    pub fn delete(slot: &'l SlotLog) -> Self {
        Self {
            claim: Claim::Upkeep,
            ..Self::forward(slot)
        }
    }

    /// For a rollback.
    pub fn undo(slot: &'l SlotLog) -> Self {
        Self::new(slot, Purpose::Undo)
    }

    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }

    pub(crate) fn reserve(&self, bytes: usize) -> vellum_base::Result<()> {
        self.slot.reserve_for(bytes, self.purpose)
    }
}
