//! Redo: doing to pages again what the log says was done.
//!
//! Each record changes one page and is applied iff the page's GSN is below the record's, so any
//! record may be applied any number of times, and the pages' records may be spread over threads as
//! long as those of one page come in GSN order.
//!
//! **Reduced rows.** Log records hold rows without stamps; pages hold them with. Before the first record
//! is applied to a page in a recovery, all its rows are reduced; rows of images as well. Reduced rows
//! are never longer, and unlogged changes only shorten rows in ways that reducing undoes, so
//! what fitted then fits now. Reducing twice changes nothing: that a page was reduced is remembered
//! only to save the work.
//!
//! **Pages without ground.** A record may belong to a page that was freed later and whose content never
//! reached the disk, or was overwritten by version data that was torn. Its records are skipped, but
//! not forgotten: [`Redo::finish`] fails if such a page is in use after all.
//!
//! Invariants:
//! - D1 Decoding and applying are total: wrong bytes are an error, never a panic.
//! - D2 A page image replaces what is there unless that is as new, like any record; only a page that cannot be read is
//!   replaced unseen. What is newer may be all that is left of a later life whose content was never logged: pages of a
//!   detached chain are written to the file before the record that links them, and that record may be durable while redo
//!   still starts before the records of the pages' earlier lives.
//! - D3 No page in the file is newer than the log: one whose GSN is above that of the last record that exists is damage,
//!   of the log (its newest part is missing) or of the page. The WAL rule says so of every page that is written, version
//!   data too: a page starts with the GSN of a record that exists (`buffer::Space`, S2), and gets others from records.
//! - D4 Redo works on well-formed pages only, and leaves no others in memory: the pool checks what it reads from the first record on.
//!
//! Not here: which records exist (R8, `txn`), undo (`version`).

use crate::context::{RowFormat, corrupt_page};
use crate::merge::copy;
use crate::node::build::{Builder, Frame, entry, frame_of, rebuild};
use crate::node::check::{check_node, check_read_page};
use crate::node::edit::NodeWrite;
use crate::node::layout::{
    CHILD_BYTES, FLAG_FAT, FLAG_PLAIN, FLAG_TEMPORARY, KIND_INNER, KIND_LEAF, KIND_OVERFLOW,
    NodeRead, record_bytes,
};
use crate::record::{Operation, Side};
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum_base::maps::HashSet;
use vellum_base::planted::{self, Bug};
use vellum_base::{Gsn, PageId, Result, StorageError};
use vellum_buffer::{Exclusive, PageBuf, PageRead, PageWrite, Pool, RedoPage, bitmap};
use vellum_sync::Mutex;
use vellum_wal::RecordHeader;

/// Applies the records of kinds 16..=63. Threads may share it.
pub struct Redo {
    pool: Arc<Pool>,
    rows: Option<Arc<dyn RowFormat>>,
    /// GSN of the last record that exists.
    end: Gsn,
    reduced: Mutex<HashSet<PageId>>,
    groundless: Mutex<BTreeMap<PageId, StorageError>>,
}

impl std::fmt::Debug for Redo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redo({} pages reduced)", self.reduced.lock().len())
    }
}

impl Redo {
    /// A redo that has applied nothing. (`Space`, and so a `TreeContext`, exists only afterwards.) From here on pages of trees that the pool
    /// reads must be well formed (D4).
    pub fn new(pool: Arc<Pool>, rows: Option<Arc<dyn RowFormat>>) -> Self {
        pool.set_check(check_read_page);
        Self {
            pool,
            rows,
            end: Gsn::MAX,
            reduced: Mutex::new(HashSet::default()),
            groundless: Mutex::new(BTreeMap::new()),
        }
    }

    /// The same, for a log whose last record has this GSN (D3).
    #[must_use]
    pub fn until(self, end: Gsn) -> Self {
        Self { end, ..self }
    }

    /// True for the kinds that belong here.
    pub fn owns(kind: u8) -> bool {
        (16..64).contains(&kind)
    }

    /// Applies one record if its page does not have it yet.
    ///
    /// # Errors
    /// Corruption of record or page, I/O.
    pub fn apply(&self, header: &RecordHeader, redo: &[u8]) -> Result<()> {
        let id = header.page;
        let Some(operation) = Operation::decode(header.kind, redo) else {
            return Err(self.corrupt(id, "redo bytes of a record", 0, header.kind.into()));
        };
        let shape = self.pool.geometry();
        let bitmap = matches!(operation, Operation::Bitmap(_));
        let fits = !id.is_zero() && bitmap == shape.is_bitmap(id);
        if !fits || (!bitmap && shape.is_reserved(id)) {
            return Err(self.corrupt(id, "page of a record", 0, header.kind.into()));
        }
        if let Operation::Image(image) = operation {
            let mut content = PageBuf::new(self.pool.page_size());
            if !image.restore(&mut content) {
                return Err(self.corrupt(id, "page image", 0, redo.len() as u64));
            }
            return self.apply_image(header, &content);
        }
        let mut page = match self.pool.redo(id)? {
            RedoPage::Readable(page) => page,
            RedoPage::Broken(error) => {
                self.groundless.lock().entry(id).or_insert(error);
                return Ok(());
            }
        };
        let found = self.gsn_of(&page, id)?;
        let skipped = planted::has(Bug::RedoSkipped) && header.gsn.get().is_multiple_of(8);
        if found >= header.gsn || skipped {
            return Ok(());
        }
        match operation {
            Operation::Bitmap(bits) => {
                let limit = self.pool.geometry().group_pages();
                for (bit, in_use) in bits {
                    if bit as u64 >= limit {
                        return Err(self.corrupt(id, "bit of a bitmap record", limit, bit as u64));
                    }
                    bitmap::set(&mut page, bit as u64, in_use);
                }
            }
            Operation::Link(next) => {
                if !self.belongs(&page, header, KIND_OVERFLOW) {
                    return Ok(());
                }
                page.set_u64(24, next.get());
            }
            operation => {
                let kind = page.kind_and_flags().0;
                if !self.belongs(
                    &page,
                    header,
                    if kind == KIND_INNER { kind } else { KIND_LEAF },
                ) {
                    return Ok(());
                }
                self.reduce_once(&mut page)?;
                self.apply_to_node(&mut page, &operation)?;
            }
        }
        page.set_gsn(header.gsn);
        Ok(())
    }

    /// The GSN of a page (D3).
    fn gsn_of(&self, page: &Exclusive<'_>, id: PageId) -> Result<Gsn> {
        let found = page.page_gsn();
        if found > self.end {
            let end = self.end.get();
            return Err(self.corrupt(id, vellum_buffer::NEWER_THAN_LOG, end, found.get()));
        }
        Ok(found)
    }

    /// True if the page is what the record says; if not, it is noted as groundless.
    fn belongs(&self, page: &Exclusive<'_>, header: &RecordHeader, kind: u8) -> bool {
        let found = page.kind_and_flags();
        if found.0 == kind && page.tree_id() == header.tree && found.1 & FLAG_TEMPORARY == 0 {
            return true;
        }
        let error = self.corrupt(
            header.page,
            "tree of a page that the log changes",
            header.tree.get(),
            page.tree_id().get(),
        );
        self.groundless.lock().entry(header.page).or_insert(error);
        false
    }

    #[cold]
    fn corrupt(&self, page: PageId, what: &'static str, expected: u64, found: u64) -> StorageError {
        corrupt_page(page, what, expected, found)
    }

    fn apply_image(&self, header: &RecordHeader, content: &PageBuf) -> Result<()> {
        let (kind, flags) = content.kind_and_flags();
        let is_node = kind == KIND_LEAF || kind == KIND_INNER;
        if !is_node && kind != KIND_OVERFLOW || flags & FLAG_TEMPORARY != 0 {
            return Err(self.corrupt(header.page, "kind in a page image", 0, kind.into()));
        }
        if is_node && let Err(defect) = check_node(content) {
            return Err(self.corrupt(header.page, defect.what, defect.expected, defect.found));
        }
        if content.tree_id() != header.tree {
            let found = content.tree_id().get();
            return Err(self.corrupt(
                header.page,
                "tree in a page image",
                header.tree.get(),
                found,
            ));
        }
        if let RedoPage::Readable(page) = self.pool.redo(header.page)?
            && self.gsn_of(&page, header.page)? >= header.gsn
        {
            return Ok(());
        }
        let made = self
            .pool
            .redo_create(header.page, kind, header.tree, Gsn::ZERO);
        let mut page = match made {
            // Beyond the end of a file that was cut, on a disk that is full: the page is free by now, or somebody will say so.
            Err(error @ StorageError::OutOfSpace { .. }) => {
                self.groundless.lock().entry(header.page).or_insert(error);
                return Ok(());
            }
            made => made?,
        };
        page.copy_from(content);
        page.set_word(1, header.gsn.get());
        self.groundless.lock().remove(&header.page);
        self.reduced.lock().remove(&header.page);
        if is_node {
            self.reduce_once(&mut page)?;
        }
        Ok(())
    }

    /// Reduces all rows of a page, once in this recovery.
    fn reduce_once(&self, page: &mut Exclusive<'_>) -> Result<()> {
        let id = page.page_id();
        if page.kind_and_flags().0 != KIND_LEAF || page.kind_and_flags().1 & FLAG_PLAIN != 0 {
            return Ok(());
        }
        let Some(rows) = &self.rows else {
            return Ok(());
        };
        if self.reduced.lock().contains(&id) {
            return Ok(());
        }
        let before = copy(page);
        let mut after = PageBuf::new(before.size());
        let frame = Frame {
            flags: before.kind_and_flags().1 & !FLAG_FAT,
            ..frame_of(&before)
        };
        let mut builder = Builder::new(&mut after, &frame);
        let mut row = Vec::new();
        for index in 0..before.shape().count {
            let entry = entry(&before, index);
            row.clear();
            if !rows.reduce(entry.payload, &mut row) || row.len() > entry.payload.len() {
                return Err(self.corrupt(id, "row", entry.payload.len() as u64, index as u64));
            }
            if !builder.push((entry.prefix, entry.suffix), &[&row]) {
                return Err(self.corrupt(id, "room for reduced rows", 0, index as u64));
            }
        }
        builder.finish();
        let gsn = page.page_gsn();
        page.copy_from(&after);
        page.set_word(1, gsn.get());
        self.reduced.lock().insert(id);
        Ok(())
    }

    fn apply_to_node(&self, page: &mut Exclusive<'_>, operation: &Operation<'_>) -> Result<()> {
        let id = page.page_id();
        let level = page.shape().level;
        let wanted_leaf = !matches!(
            operation,
            Operation::KeepBelow(_)
                | Operation::InsertSeparator { .. }
                | Operation::RemoveSeparator { .. }
        );
        let inner_only = matches!(
            operation,
            Operation::InsertSeparator { .. } | Operation::RemoveSeparator { .. }
        );
        if (wanted_leaf && level > 0) || (inner_only && level == 0) {
            return Err(self.corrupt(id, "level of a page that the log changes", 0, level.into()));
        }
        let no_room = || self.corrupt(id, "room for a logged row", 0, 0);
        match operation {
            Operation::Insert(key, row) => {
                let (index, suffix) = self.place(page, key, false)?;
                if record_bytes(suffix.len(), row.len()) > page.shape().free {
                    return Err(no_room());
                }
                page.insert_at(index, suffix, &[row]);
            }
            Operation::Replace(key, row) => {
                let (index, _) = self.place(page, key, true)?;
                if !page.replacement_fits(index, row.len()) {
                    return Err(no_room());
                }
                page.replace_at(index, &[row]);
            }
            Operation::Patch(key, edits) => {
                let (index, _) = self.place(page, key, true)?;
                let length = page.payload_len(page.slot(index));
                for (offset, bytes) in edits.clone() {
                    if offset + bytes.len() > length {
                        let found = (offset + bytes.len()) as u64;
                        return Err(self.corrupt(id, "patch inside the row", length as u64, found));
                    }
                    page.patch_at(index, offset, bytes);
                }
            }
            Operation::Remove(key) => {
                let (index, _) = self.place(page, key, true)?;
                page.remove_at(index);
            }
            Operation::Clean(suffixes) => {
                for suffix in suffixes.clone() {
                    let (index, found) = page.lower_bound(page.shape().count, suffix);
                    if !found {
                        return Err(self.corrupt(id, "row that a cleaner removed", 1, 0));
                    }
                    page.remove_at(index);
                }
            }
            Operation::KeepBelow(separator) => {
                let (index, found) = self.cut_at(page, separator)?;
                if level > 0 && !found {
                    return Err(self.corrupt(id, "separator that moved up", 1, 0));
                }
                let before = copy(page);
                let rightmost = if level == 0 {
                    PageId::ZERO
                } else {
                    before.child(index, before.shape().count)
                };
                let frame = Frame {
                    upper: Some(separator),
                    rightmost,
                    ..frame_of(&before)
                };
                self.recut(page, &before, 0..index, &frame)?;
            }
            Operation::KeepFrom(separator) => {
                let (index, _) = self.cut_at(page, separator)?;
                let before = copy(page);
                let frame = Frame {
                    lower: Some(separator),
                    ..frame_of(&before)
                };
                self.recut(page, &before, index..before.shape().count, &frame)?;
            }
            Operation::Trim(side, key) => {
                let before = copy(page);
                let count = before.shape().count;
                let full = |index: usize| entry(&before, index).key();
                let below = (0..count)
                    .take_while(|index| full(*index).as_slice() < *key)
                    .count();
                let stays = match side {
                    Side::Below => below..count,
                    Side::From => 0..below,
                };
                self.recut(page, &before, stays, &frame_of(&before))?;
            }
            Operation::InsertSeparator {
                left,
                right,
                separator,
            } => {
                let (index, suffix) = self.place(page, separator, false)?;
                let old = page.child(index, page.shape().count);
                if old != *left && old != *right {
                    return Err(self.corrupt(id, "child that was split", left.get(), old.get()));
                }
                if record_bytes(suffix.len(), CHILD_BYTES) > page.shape().free {
                    return Err(no_room());
                }
                page.insert_at(index, suffix, &[&left.get().to_le_bytes()]);
                let count = page.shape().count;
                page.set_child(index + 1, count, *right);
            }
            Operation::RemoveSeparator { child, separator } => {
                let (index, _) = self.place(page, separator, true)?;
                page.remove_at(index);
                let count = page.shape().count;
                page.set_child(index, count, *child);
            }
            Operation::Image(_) | Operation::Bitmap(_) | Operation::Link(_) => {
                return Err(self.corrupt(id, "record of a tree page", 0, 1));
            }
        }
        Ok(())
    }

    /// Slot of a key that must, or must not, be there, and its suffix.
    fn place<'k>(
        &self,
        page: &Exclusive<'_>,
        key: &'k [u8],
        there: bool,
    ) -> Result<(usize, &'k [u8])> {
        if !page.covers(key) {
            return Err(self.corrupt(page.page_id(), "logged key between the fences", 1, 0));
        }
        let (index, found) = page.find(key);
        if found != there {
            let (expected, found) = (u64::from(there), u64::from(found));
            return Err(self.corrupt(page.page_id(), "logged key in the page", expected, found));
        }
        Ok((index, page.suffix_of(key)))
    }

    fn cut_at(&self, page: &Exclusive<'_>, separator: &[u8]) -> Result<(usize, bool)> {
        let longest = crate::context::max_key(page.size());
        if separator.len() > longest {
            let (longest, found) = (longest as u64, separator.len() as u64);
            return Err(self.corrupt(page.page_id(), "length of a separator", longest, found));
        }
        // A separator equal to a fence would leave nothing on one side.
        if !page.covers(separator) || !page.covers_below(separator) {
            return Err(self.corrupt(page.page_id(), "separator between the fences", 1, 0));
        }
        Ok(page.find(separator))
    }

    fn recut(
        &self,
        page: &mut Exclusive<'_>,
        before: &PageBuf,
        stays: std::ops::Range<usize>,
        frame: &Frame<'_>,
    ) -> Result<()> {
        let mut after = PageBuf::new(before.size());
        if !rebuild(before, stays, frame, &mut after) {
            return Err(self.corrupt(page.page_id(), "room after a cut", 1, 0));
        }
        let gsn = page.page_gsn();
        page.copy_from(&after);
        page.set_word(1, gsn.get());
        Ok(())
    }

    /// Ends redo: every page that records could not be applied to must be free.
    ///
    /// # Errors
    /// The first such page that is in use; I/O.
    pub fn finish(&self) -> Result<()> {
        for (page, error) in std::mem::take(&mut *self.groundless.lock()) {
            let (bitmap_page, bit) = self.pool.geometry().bitmap_of(page);
            match self.pool.redo(bitmap_page)? {
                RedoPage::Readable(bits) if !bitmap::is_set(&bits, bit) => {}
                RedoPage::Readable(_) => return Err(error),
                RedoPage::Broken(error) => return Err(error),
            }
        }
        Ok(())
    }
}
