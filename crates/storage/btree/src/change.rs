//! Structure changes: several pages change as one.
//!
//! The maker latches every page that it touches, builds the new contents in private buffers, adds
//! them here, and commits: bitmap pages are latched (last rank), one GSN above all pages' is drawn,
//! all records are appended under one hold of the slot latch, the contents are copied in, the
//! latches go. Until the commit nothing was changed; after drawing the GSN nothing can fail.
//!
//! Invariants:
//! - C1 A page appears in a change once: its records share one GSN, and redo compares GSNs.
//! - C2 Log space was reserved before the first latch: `append` cannot fail.
//! - C3 A page that is freed is latched, its kind becomes free, and its bit is cleared, in the change
//!   that unlinks it. Whoever remembered it finds out by its kind (N5).
//! - C4 A fresh page is given back if its change is not committed.
//!
//! Crash: all records of the change become durable together or not at all (one GSN, R7).

use crate::context::{Journal, TreeContext};
use crate::node::edit::NodeWrite;
use crate::node::layout::{FLAG_TEMPORARY, KIND_FREE, KIND_INNER, KIND_LEAF, NodeRead};
use crate::record::{BIT_SET, BITMAP, IMAGE, ImageParts};
use crate::write::LeafWrite;
use smallvec::SmallVec;
use vellum_base::{Gsn, PageId, Result};
use vellum_buffer::{Claim, Exclusive, PageBuf, PageRead, PageWrite, bitmap};
use vellum_wal::{FLAG_FIRST, FLAG_MORE, RecordHeader, SlotGuard};

/// A page that was taken and is not linked yet. Dropped, it goes back.
pub(crate) struct Fresh<'c> {
    context: &'c TreeContext,
    page: Option<Exclusive<'c>>,
    id: PageId,
}

impl<'c> Fresh<'c> {
    /// Takes a page for tree `tree`. Takes a frame, so the caller holds no latch.
    ///
    /// # Errors
    /// Out of space, I/O.
    pub(crate) fn take(
        context: &'c TreeContext,
        tree: PageId,
        (kind, flags): (u8, u8),
        journal: Option<Journal<'_>>,
    ) -> Result<Self> {
        Self::make(context, Some(tree), (kind, flags), journal)
    }

    /// As [`Fresh::take`]; without a tree, the page belongs to itself.
    pub(crate) fn make(
        context: &'c TreeContext,
        tree: Option<PageId>,
        (kind, flags): (u8, u8),
        journal: Option<Journal<'_>>,
    ) -> Result<Self> {
        let temporary = flags & FLAG_TEMPORARY != 0;
        // Version data goes by itself.
        let claim = journal.map_or(Claim::Upkeep, |journal| journal.claim());
        let (id, floor) = context.space().take_for(claim, temporary)?;
        let page = context
            .pool()
            .create(id, kind, tree.unwrap_or(id), temporary, floor);
        match page {
            Ok(page) => Ok(Self {
                context,
                page: Some(page),
                id,
            }),
            Err(error) => {
                context.space().give(id, Gsn::ZERO);
                Err(error)
            }
        }
    }

    pub(crate) fn id(&self) -> PageId {
        self.id
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        if let Some(mut page) = self.page.take() {
            page.set_u8(4, KIND_FREE);
            drop(page);
            self.context.space().give(self.id, Gsn::ZERO);
        }
    }
}

type Parts<'a> = SmallVec<[&'a [u8]; 4]>;

enum Page<'a, 'c> {
    Latched(&'a mut Exclusive<'c>),
    Fresh(Fresh<'c>),
}

impl<'c> Page<'_, 'c> {
    fn guard(&mut self) -> &mut Exclusive<'c> {
        match self {
            Self::Latched(page) => page,
            Self::Fresh(fresh) => fresh.page.as_mut().expect("taken only after commit"),
        }
    }
}

/// How a touched page gets its new content.
enum Edit<'a> {
    /// Everything is replaced.
    Content(&'a PageBuf),
    /// The child pointers around a new separator (suffix): left, right.
    Separator {
        index: usize,
        suffix: &'a [u8],
        left: PageId,
        right: PageId,
    },
    /// Separator `index` goes, this child takes both ranges.
    Unlink { index: usize, child: PageId },
    /// Eight bytes at an offset.
    Word { offset: usize, value: u64 },
}

struct Touch<'a, 'c> {
    page: Page<'a, 'c>,
    kind: u8,
    redo: Parts<'a>,
    image: Option<ImageParts<'a>>,
    edit: Edit<'a>,
}

/// A structure change in the making.
pub(crate) struct Change<'a, 'c> {
    context: &'c TreeContext,
    tree: PageId,
    journal: Option<Journal<'a>>,
    touches: SmallVec<[Touch<'a, 'c>; 4]>,
    freed: SmallVec<[Exclusive<'c>; 2]>,
    adopted: &'a [PageId],
    loaded: &'a [PageId],
}

/// Bits of one bitmap page.
struct Bits<'c> {
    page: Exclusive<'c>,
    words: Vec<u8>,
    changes: SmallVec<[(u64, bool); 4]>,
}

impl<'a, 'c> Change<'a, 'c> {
    /// An empty change of tree `tree`. Without a journal nothing is logged: temporary trees.
    pub(crate) fn new(
        context: &'c TreeContext,
        tree: PageId,
        journal: Option<Journal<'a>>,
    ) -> Self {
        Self {
            context,
            tree,
            journal,
            touches: SmallVec::new(),
            freed: SmallVec::new(),
            adopted: &[],
            loaded: &[],
        }
    }

    /// Pages that were taken as temporary ones, and whose content is in the file: they become durable.
    pub(crate) fn adopt(&mut self, pages: &'a [PageId]) {
        self.adopted = pages;
    }

    /// As [`Change::adopt`], of pages that count as a load's: their content is in the file, or in this change.
    pub(crate) fn adopt_loaded(&mut self, pages: &'a [PageId]) {
        self.loaded = pages;
    }

    /// A page that did not exist before.
    pub(crate) fn add_fresh(&mut self, page: Fresh<'c>, content: &'a PageBuf) {
        self.touch(
            Page::Fresh(page),
            IMAGE,
            SmallVec::new(),
            Edit::Content(content),
        );
    }

    /// A page that is replaced as a whole, logged as an image.
    pub(crate) fn add_image(&mut self, page: &'a mut Exclusive<'c>, content: &'a PageBuf) {
        self.touch(
            Page::Latched(page),
            IMAGE,
            SmallVec::new(),
            Edit::Content(content),
        );
    }

    /// A page that is replaced as a whole, logged by what makes redo do the same.
    pub(crate) fn add_rebuilt(
        &mut self,
        page: &'a mut Exclusive<'c>,
        content: &'a PageBuf,
        kind: u8,
        redo: &[&'a [u8]],
    ) {
        let redo = redo.iter().copied().collect();
        self.touch(Page::Latched(page), kind, redo, Edit::Content(content));
    }

    /// An inner page that gets a separator as slot `index`; `redo` is the record's bytes.
    pub(crate) fn add_separator(
        &mut self,
        page: &'a mut Exclusive<'c>,
        index: usize,
        suffix: &'a [u8],
        (left, right): (PageId, PageId),
        redo: &'a [u8],
    ) {
        let edit = Edit::Separator {
            index,
            suffix,
            left,
            right,
        };
        let redo = SmallVec::from_slice(&[redo]);
        self.touch(
            Page::Latched(page),
            crate::record::INSERT_SEPARATOR,
            redo,
            edit,
        );
    }

    /// An inner page that loses separator `index`; `child` takes the ranges on both sides.
    pub(crate) fn remove_separator(
        &mut self,
        page: &'a mut Exclusive<'c>,
        index: usize,
        child: PageId,
        redo: &'a [u8],
    ) {
        let edit = Edit::Unlink { index, child };
        let redo = SmallVec::from_slice(&[redo]);
        self.touch(
            Page::Latched(page),
            crate::record::REMOVE_SEPARATOR,
            redo,
            edit,
        );
    }

    /// A page in which eight bytes change.
    pub(crate) fn add_word(
        &mut self,
        page: &'a mut Exclusive<'c>,
        (offset, value): (usize, u64),
        kind: u8,
        redo: &'a [u8],
    ) {
        let redo = SmallVec::from_slice(&[redo]);
        self.touch(
            Page::Latched(page),
            kind,
            redo,
            Edit::Word { offset, value },
        );
    }

    /// A page that is unlinked and given back.
    pub(crate) fn free(&mut self, page: Exclusive<'c>) {
        self.freed.push(page);
    }

    fn touch(&mut self, mut page: Page<'a, 'c>, kind: u8, redo: Parts<'a>, edit: Edit<'a>) {
        let id = page.guard().page_id();
        debug_assert!(
            self.touches
                .iter_mut()
                .all(|touch| touch.page.guard().page_id() != id),
            "C1"
        );
        let image = match &edit {
            Edit::Content(content) if kind == IMAGE => {
                let (low, high) = used(content);
                Some(ImageParts::new(content, low, high))
            }
            _ => None,
        };
        self.touches.push(Touch {
            page,
            kind,
            redo,
            image,
            edit,
        });
    }

    /// Makes the change. Returns its GSN, zero if nothing is logged.
    ///
    /// # Errors
    /// A bitmap page cannot be read, or says that a page of the change is taken (or free) already; nothing was changed.
    pub(crate) fn commit(self) -> Result<Gsn> {
        self.commit_inner(None)
    }

    /// As [`Change::commit`], and adds (with a payload) or removes an entry of another tree: the
    /// leaf is positioned at its key, and the entry fits.
    pub(crate) fn commit_with_entry(
        self,
        entry: &mut LeafWrite<'_, '_>,
        payload: Option<&[u8]>,
    ) -> Result<Gsn> {
        self.commit_inner(Some((entry, payload)))
    }

    fn commit_inner(
        mut self,
        mut entry: Option<(&mut LeafWrite<'_, '_>, Option<&[u8]>)>,
    ) -> Result<Gsn> {
        let gsn = match self.journal {
            None => Gsn::ZERO,
            Some(journal) => {
                let mut bits = self.latch_bitmaps()?;
                // Before anything changes: damaged references could name a page that is free, or somebody else's.
                for bits in &bits {
                    for (bit, in_use) in &bits.changes {
                        if bitmap::is_set(&bits.page, *bit) == *in_use {
                            let (id, expected) = (bits.page.page_id(), u64::from(!in_use));
                            let what = "a page is taken or freed once";
                            return Err(self.context.corrupt(id, what, expected, 1 - expected));
                        }
                    }
                }
                let mut highest = Gsn::ZERO;
                for touch in &mut self.touches {
                    highest = highest.max(touch.page.guard().page_gsn());
                }
                for page in &self.freed {
                    highest = highest.max(page.page_gsn());
                }
                for bits in &bits {
                    highest = highest.max(bits.page.page_gsn());
                }
                if let Some((leaf, _)) = &entry {
                    highest = highest.max(leaf.page_gsn());
                }
                let mut slot = journal.slot.lock();
                let gsn = slot.draw(highest);
                self.append(&mut slot, gsn, &mut bits, &mut entry);
                drop(slot);
                for bits in &mut bits {
                    for (bit, in_use) in &bits.changes {
                        let was = bitmap::set(&mut bits.page, *bit, *in_use);
                        debug_assert_ne!(was, *in_use, "a page is taken or freed once");
                    }
                    bits.page.set_gsn(gsn);
                }
                gsn
            }
        };
        if let Some((leaf, payload)) = entry {
            leaf.apply_entry(payload, gsn);
        }
        for touch in &mut self.touches {
            let page = touch.page.guard();
            let before = page.page_gsn();
            match touch.edit {
                Edit::Content(content) => page.copy_from(content),
                Edit::Separator {
                    index,
                    suffix,
                    left,
                    right,
                } => {
                    page.insert_at(index, suffix, &[&left.get().to_le_bytes()]);
                    let count = page.shape().count;
                    page.set_child(index + 1, count, right);
                }
                Edit::Unlink { index, child } => {
                    page.remove_at(index);
                    let count = page.shape().count;
                    page.set_child(index, count, child);
                }
                Edit::Word { offset, value } => page.set_u64(offset, value),
            }
            // A temporary page keeps the floor that it was created with.
            page.set_word(1, gsn.max(before).get());
        }
        let mut given: SmallVec<[PageId; 2]> = SmallVec::new();
        for mut page in self.freed.drain(..) {
            page.set_u8(4, KIND_FREE);
            if self.journal.is_some() {
                page.set_gsn(gsn);
            }
            given.push(page.page_id());
        }
        let mut added = self.adopted.len() + self.loaded.len();
        for touch in &mut self.touches {
            if let Page::Fresh(fresh) = &mut touch.page {
                // Linked now: dropping the guard alone gives back the latch, not the page.
                drop(fresh.page.take());
                added += 1;
            }
        }
        self.context.watched().note(self.tree, added, given.len());
        let space = self.context.space();
        for page in self.adopted {
            space.settle(*page);
        }
        for page in self.loaded {
            space.settle_loaded(*page);
        }
        for page in given {
            space.give(page, gsn);
        }
        Ok(gsn)
    }

    /// Latches the bitmap pages of all fresh and freed pages, in page order.
    fn latch_bitmaps(&mut self) -> Result<SmallVec<[Bits<'c>; 2]>> {
        let geometry = self.context.pool().geometry();
        let mut places: SmallVec<[(PageId, u64, bool); 4]> = SmallVec::new();
        for touch in &self.touches {
            if let Page::Fresh(fresh) = &touch.page {
                let (page, bit) = geometry.bitmap_of(fresh.id);
                places.push((page, bit, true));
            }
        }
        for page in &self.freed {
            let (page, bit) = geometry.bitmap_of(page.page_id());
            places.push((page, bit, false));
        }
        for page in self.adopted.iter().chain(self.loaded) {
            let (page, bit) = geometry.bitmap_of(*page);
            places.push((page, bit, true));
        }
        places.sort_unstable();
        let mut bits: SmallVec<[Bits<'c>; 2]> = SmallVec::new();
        for (page, bit, in_use) in places {
            if bits.last().is_none_or(|last| last.page.page_id() != page) {
                let page = self.context.pool().exclusive(page)?;
                bits.push(Bits {
                    page,
                    words: Vec::new(),
                    changes: SmallVec::new(),
                });
            }
            let last = bits.last_mut().expect("pushed above");
            let word = bit as u32 | if in_use { BIT_SET } else { 0 };
            last.words.extend_from_slice(&word.to_le_bytes());
            last.changes.push((bit, in_use));
        }
        Ok(bits)
    }

    fn append(
        &mut self,
        slot: &mut SlotGuard<'_>,
        gsn: Gsn,
        bits: &mut [Bits<'c>],
        entry: &mut Option<(&mut LeafWrite<'_, '_>, Option<&[u8]>)>,
    ) {
        let total = self.touches.len() + bits.len() + usize::from(entry.is_some());
        let mut number = 0;
        let mut flags = || {
            let first = if number == 0 { FLAG_FIRST } else { 0 };
            number += 1;
            first | if number < total { FLAG_MORE } else { 0 }
        };
        for touch in &mut self.touches {
            let page = touch.page.guard().page_id();
            let header = RecordHeader {
                kind: touch.kind,
                flags: flags(),
                page,
                tree: self.tree,
                gsn,
            };
            match &touch.image {
                Some(image) => slot.append(&header, &image.parts(), &[]),
                None => slot.append(&header, &touch.redo, &[]),
            };
        }
        for bits in bits {
            let page = bits.page.page_id();
            let header = RecordHeader {
                kind: BITMAP,
                flags: flags(),
                page,
                tree: PageId::ZERO,
                gsn,
            };
            slot.append(&header, &[&bits.words], &[]);
        }
        if let Some((leaf, payload)) = entry {
            leaf.append_entry(slot, flags(), gsn, *payload);
        }
    }
}

/// The bounds of a page's free middle: nothing but zeroes or rubbish lies between.
fn used(page: &PageBuf) -> (usize, usize) {
    let kind = page.kind_and_flags().0;
    if kind != KIND_LEAF && kind != KIND_INNER {
        return crate::overflow::used(page);
    }
    let shape = page.shape();
    (shape.heap - shape.gap(), shape.heap.min(page.size()))
}
