//! Graveyards: where the tombstones are that no OLTP transaction needs, one graveyard for each index.
//!
//! Paper: LeanStore §3.2. Differences: entries are keyed by the pair (key, stamp of the delete), so that several
//! generations of a key lie side by side; a graveyard is made at the first burial.
//!
//! Layout of an entry: key: see `pair`; payload: the tombstone's row as it stood in the leaf. The versions before it are
//! reached through its chain, as from the leaf.
//!
//! Invariants:
//! - V23 A tombstone is put into the graveyard before it leaves the main index, both under the exclusive latch of its
//!   leaf: who finds neither a row nor a tombstone in the leaf finds the tombstone in the graveyard.
//! - V24 What is in a graveyard, or was dropped from one, is a delete that every OLTP snapshot sees; so they never look.
//! - V25 The notes of an index are raised before what they are about leaves the main index, under the latch of its leaf; that of
//!   drops also before a pair leaves the graveyard whose row nobody sees any more. A writer asks for pairs first and for the note
//!   second: it meets one of them.
//! - V26 A graveyard goes with its tree, before the tree's first page does.
//!
//! Concurrency: a reader copies the main leaf first and looks here second; what it needs and is not in its copy was put
//! here before the copy was made, so it finds the graveyard and a count above zero by the order of the leaf's latch. The note of
//! burials is relaxed for that reason, that of drops behind a short mutex (nothing is taken under it); where a pair goes no main leaf is
//! latched, and the order is that of the graveyard's leaf, or of the count.
//!
//! Crash: temporary trees; after a crash their pages are given back, and nobody is left who would look.

use crate::drops::Drops;
use crate::error::{Result, concerns_one, damaged};
use crate::pair;
use crate::read::{Resolved, View};
use crate::row::Header;
use crate::store::{VersionStore, remove_temporary};
use std::sync::{Arc, OnceLock};
use vellum_base::maps::HashMap;
use vellum_base::planted::{self, Bug};
use vellum_base::{PageId, Timestamp};
use vellum_btree::{
    LeafCopy, LeafHints, Logging, Seek, Tree, TreeContext, TreeKind, max_inline_payload, max_key,
};
use vellum_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use vellum_sync::{Mutex, RwLock};
use vellum_txn::Watermarks;

/// The graveyards of all indexes, by the root pages of these.
#[derive(Debug)]
pub(crate) struct Graveyards {
    of: RwLock<HashMap<PageId, Arc<Graveyard>>>,
    /// How many there are: most databases have none, and most readers need not ask.
    count: AtomicUsize,
    /// Trees of graveyards whose index is gone, to be given back.
    discarded: Mutex<Vec<Tree>>,
}

/// What an index knows about tombstones that left it early.
#[derive(Debug)]
pub(crate) struct Graveyard {
    tree: OnceLock<Tree>,
    making: Mutex<()>,
    /// Entries; at no time less than there are.
    buried: AtomicU64,
    /// Its index is gone; another one may have its root page by now.
    discarded: AtomicBool,
    /// Rows that were dropped whose delete some snapshot may not see. Made with the first drop.
    drops: Mutex<Option<Box<Drops>>>,
    /// Tombstones were buried whose delete a snapshot below this may not see.
    buried_below: AtomicU64,
}

impl Graveyards {
    pub fn new() -> Self {
        Self {
            of: RwLock::new(HashMap::default()),
            count: AtomicUsize::new(0),
            discarded: Mutex::new(Vec::new()),
        }
    }

    /// The graveyard of the index with this root page, if anything ever left it early.
    #[inline]
    pub fn find(&self, index: PageId) -> Option<Arc<Graveyard>> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.of.read().get(&index).cloned()
    }

    /// As [`Graveyards::find`], made if need be.
    pub fn find_or_make(&self, index: PageId) -> Arc<Graveyard> {
        if let Some(graveyard) = self.find(index) {
            return graveyard;
        }
        let mut of = self.of.write();
        let graveyard = of.entry(index).or_insert_with(|| {
            Arc::new(Graveyard {
                tree: OnceLock::new(),
                making: Mutex::new(()),
                buried: AtomicU64::new(0),
                discarded: AtomicBool::new(false),
                drops: Mutex::new(None),
                buried_below: AtomicU64::new(0),
            })
        });
        let graveyard = graveyard.clone();
        self.count.store(of.len(), Ordering::Relaxed);
        graveyard
    }

    /// Forgets the graveyard of an index whose pages are about to be given back (V26).
    pub fn discard(&self, index: PageId) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut of = self.of.write();
        let graveyard = of.remove(&index);
        self.count.store(of.len(), Ordering::Relaxed);
        if let Some(graveyard) = &graveyard {
            // Relaxed: who remembers it asks while the index cannot be dropped, which orders both.
            graveyard.discarded.store(true, Ordering::Relaxed);
        }
        if let Some(tree) = graveyard.and_then(|graveyard| graveyard.tree.get().cloned()) {
            self.discarded.lock().push(tree);
        }
    }

    /// Gives back pages of discarded graveyards, about `budget`; true once nothing is left. What is left of one that cannot be read is forgotten (V59): the
    /// next start gives it back.
    ///
    /// # Errors
    /// I/O, corruption.
    pub fn free_discarded(&self, budget: usize) -> vellum_base::Result<bool> {
        let mut discarded = self.discarded.lock();
        if let Some(tree) = discarded.last() {
            match tree.drop_pages(budget, None, None) {
                Ok(false) => {}
                Ok(true) => drop(discarded.pop()),
                Err(error) => {
                    if concerns_one(&error) {
                        discarded.pop();
                    }
                    return Err(error);
                }
            }
        }
        Ok(discarded.is_empty())
    }

    /// Tombstones that are buried, in all indexes.
    pub fn buried(&self) -> u64 {
        let of = self.of.read();
        of.values().map(|graveyard| graveyard.count()).sum()
    }
}

impl Graveyard {
    /// The entries, if there are any.
    #[inline]
    pub fn occupied(&self) -> Option<&Tree> {
        if self.count() == 0 {
            return None;
        }
        self.tree.get()
    }

    /// True once its index is gone.
    pub fn is_discarded(&self) -> bool {
        self.discarded.load(Ordering::Relaxed)
    }

    /// Acquires what was noted before the last pair went ([`Graveyard::remove`]).
    fn count(&self) -> u64 {
        self.buried.load(Ordering::Acquire)
    }

    /// The tree, made if need be. The caller holds no latch.
    pub fn tree(&self, context: &Arc<TreeContext>) -> vellum_base::Result<&Tree> {
        if let Some(tree) = self.tree.get() {
            return Ok(tree);
        }
        let _making = self.making.lock();
        if let Some(tree) = self.tree.get() {
            return Ok(tree);
        }
        let tree = Tree::create(context, None, TreeKind::Temporary, None)?;
        Ok(self.tree.get_or_init(|| tree))
    }

    /// Notes that the row of `key` is dropped (V25), by these watermarks.
    pub fn note_drop(&self, key: &[u8], marks: &Watermarks) {
        if planted::has(Bug::DropsUnnoted) {
            return;
        }
        let mut drops = self.drops.lock();
        let drops = drops.get_or_insert_with(|| Box::new(Drops::new()));
        drops.note(key, marks.oldest_oltp, marks.oldest_tx);
    }

    /// Raises the note about buried tombstones to `oldest_oltp` (V25).
    pub fn note_burial(&self, oldest_oltp: Timestamp) {
        self.buried_below
            .fetch_max(oldest_oltp.get(), Ordering::Relaxed);
    }

    /// Puts a tombstone in. The caller holds its leaf (V23); again after a failure is fine.
    pub fn put(&self, pair: &[u8], row: &[u8]) -> vellum_base::Result<()> {
        let tree = self.tree.get().expect("made before the leaf was latched");
        // Before it is there: never less than there are.
        self.buried.fetch_add(1, Ordering::Relaxed);
        loop {
            let room = match tree.write(pair) {
                Ok(mut leaf) if leaf.fits(row.len()) => {
                    if leaf.found() {
                        leaf.replace(&[row], Logging::None);
                        self.buried.fetch_sub(1, Ordering::Relaxed);
                    } else {
                        leaf.insert(&[row], Logging::None);
                    }
                    return Ok(());
                }
                Ok(leaf) => {
                    drop(leaf);
                    tree.make_room(pair, row.len(), None)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = room {
                self.buried.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        }
    }

    /// Reads a tombstone's row; false if it is not there.
    pub fn get(&self, pair: &[u8], row: &mut Vec<u8>) -> vellum_base::Result<bool> {
        match self.occupied() {
            Some(tree) => tree.get(pair, row),
            None => Ok(false),
        }
    }

    /// Takes a tombstone out; false if it is not there.
    pub fn remove(&self, pair: &[u8], hints: &mut LeafHints) -> vellum_base::Result<bool> {
        let Some(tree) = self.tree.get() else {
            return Ok(false);
        };
        let removed = remove_temporary(tree, pair, hints)?;
        if removed {
            self.buried.fetch_sub(1, Ordering::Release);
        }
        Ok(removed)
    }
}

/// Longest key of a row that can be buried: what an index takes, so that none of its entries is in everybody's way.
pub const fn buried_key_max(page_size: usize) -> usize {
    pair::key_max(max_key(page_size))
}

/// True if the tombstone of a row can be buried: its pair is a key that a tree takes, and leaves room for the row.
pub(crate) fn has_room(page_size: usize, key_len: usize, row_len: usize) -> bool {
    let pair = pair::length(key_len);
    pair <= max_key(page_size) && row_len <= max_inline_payload(page_size, pair)
}

impl VersionStore {
    /// Tombstones in all graveyards.
    pub fn buried(&self) -> u64 {
        self.graveyards().buried()
    }

    /// The version of `key` that an OLAP view sees in the graveyard of `tree`; its body is left in `row`. Asked after
    /// the main index, which shows none.
    #[cold]
    pub(crate) fn read_buried(
        &self,
        view: &View<'_>,
        tree: &Tree,
        key: &[u8],
        row: &mut Vec<u8>,
        delta: &mut Vec<u8>,
    ) -> Result<Resolved> {
        let mut answer = Resolved::Absent;
        self.each_buried(tree, key, |payload| {
            row.clear();
            row.extend_from_slice(payload);
            answer = self.resolve(view, tree, row, delta, None)?;
            Ok(answer == Resolved::Absent)
        })?;
        Ok(answer)
    }

    /// True if a writer that finds no row for `key` in the latched main leaf comes too late: a delete that its snapshot
    /// does not see is buried.
    #[cold]
    pub(crate) fn conflicts_with_buried(
        &self,
        view: &View<'_>,
        tree: &Tree,
        key: &[u8],
    ) -> Result<bool> {
        let mut conflict = false;
        self.each_buried(tree, key, |payload| {
            let header =
                Header::decode(payload).ok_or_else(|| damaged("buried row", tree.root()))?;
            conflict = header
                .writer
                .is_some_and(|writer| !view.sees(&writer.version));
            Ok(!conflict)
        })?;
        Ok(conflict)
    }

    /// True if a row of this key may have been dropped whose delete the view does not see: an insert that finds no row may
    /// come too late.
    pub(crate) fn may_miss_dropped(&self, view: &View<'_>, tree: &Tree, key: &[u8]) -> bool {
        let graveyard = self.graveyards().find(tree.root());
        graveyard.is_some_and(|graveyard| {
            let drops = graveyard.drops.lock();
            drops
                .as_ref()
                .is_some_and(|drops| drops.may_concern(key, view.snapshot))
        })
    }

    /// True if the main index of `tree` may lack a row that `snapshot` sees: who builds on the newest rows alone (an
    /// index that is being made) comes too late. Ask after the leaf in question was read.
    pub fn may_miss_buried(&self, snapshot: Timestamp, tree: &Tree) -> bool {
        let graveyard = self.graveyards().find(tree.root());
        graveyard.is_some_and(|graveyard| {
            snapshot.get() < graveyard.buried_below.load(Ordering::Relaxed)
        })
    }

    /// True if rows may have left the main index of `tree`, buried or dropped, whose delete `snapshot` does not see: its leaves do not
    /// tell whether there ever was anything. Ask after they were read.
    pub fn may_miss_gone(&self, snapshot: Timestamp, tree: &Tree) -> bool {
        let graveyard = self.graveyards().find(tree.root());
        graveyard.is_some_and(|graveyard| {
            let drops = graveyard.drops.lock();
            drops
                .as_ref()
                .is_some_and(|drops| drops.may_concern_any(snapshot))
        }) || self.may_miss_buried(snapshot, tree)
    }

    /// Calls `each` with the generations of `key` in the graveyard of `tree`, while it says true.
    fn each_buried(
        &self,
        tree: &Tree,
        key: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<bool>,
    ) -> Result<()> {
        if self.has(Bug::GraveyardSkipped) {
            return Ok(());
        }
        let Some(graveyard) = self.graveyards().find(tree.root()) else {
            return Ok(());
        };
        let Some(entries) = graveyard.occupied() else {
            return Ok(());
        };
        let (mut from, mut end, mut pair) = (Vec::new(), Vec::new(), Vec::new());
        pair::lowest(key, &mut from);
        pair::highest(key, &mut end);
        let mut leaf = LeafCopy::new(self.context().page_size());
        loop {
            entries.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for index in leaf.position()..leaf.len() {
                leaf.key(index, &mut pair);
                if pair >= end || !each(leaf.payload(index))? {
                    return Ok(());
                }
            }
            match leaf.upper_fence() {
                Some(fence) if fence < end.as_slice() => {
                    from.clear();
                    from.extend_from_slice(fence);
                }
                _ => return Ok(()),
            }
        }
    }
}
