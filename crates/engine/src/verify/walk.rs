//! One walk over everything that is in use: trees, rows, chains, and what the bitmaps say about it.
//!
//! Invariants:
//! - F1 A page is entered in `reached` when something refers to it; a second reference is a finding.
//! - F2 What is below a damaged page is not reached. Its pages are then in use and not reached: such a leak is
//!   counted in one finding, beside the finding that explains it.
//! - F3 Memory: a bit a page of the file, and what one leaf or value takes.

use super::indexes::{self, EntrySums};
use super::{Finding, IndexReport, PagesReport, Report, TableReport, TreeReport};
use crate::error::Result;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum_base::maps::HashSet;
use vellum_base::{PageId, Result as StorageResult, StorageError, TableId};
use vellum_btree::overflow::{self, ChainRef, Reader};
use vellum_btree::{Tree, TreeContext, TreeKind, TreeStatistics};
use vellum_buffer::{BITMAP_BITS_AT, PageBuf, PageHeader, PageRead, check_header, kind};
use vellum_catalog::entry::{name_in_key, table_prefix};
use vellum_catalog::{IndexEntry, TableEntry};
use vellum_version::carried::CarriedRow;
use vellum_version::fat::layout::FatRow;
use vellum_version::pending::PendingKind;
use vellum_version::row::{Header, newest};

/// Name of what belongs to no tree.
const DATABASE: &str = "database";

/// Where the system trees are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roots {
    pub catalog: PageId,
    pub pending_free: PageId,
    pub undo: PageId,
}

/// A set of pages.
struct PageSet {
    bits: Vec<u64>,
    count: u64,
}

impl PageSet {
    fn new(pages: u64) -> Self {
        let words = usize::try_from(pages.div_ceil(64)).expect("the file is addressed by the pool");
        Self {
            bits: vec![0; words],
            count: 0,
        }
    }

    fn place(page: PageId) -> (usize, u64) {
        (
            usize::try_from(page.get() / 64).unwrap_or(usize::MAX),
            1 << (page.get() % 64),
        )
    }

    /// False if it was there. A page outside of the file never is: reading it tells.
    fn insert(&mut self, page: PageId) -> bool {
        let (word, mask) = Self::place(page);
        let Some(bits) = self.bits.get_mut(word) else {
            return true;
        };
        let new = *bits & mask == 0;
        *bits |= mask;
        self.count += u64::from(new);
        new
    }

    fn contains(&self, page: PageId) -> bool {
        let (word, mask) = Self::place(page);
        self.bits.get(word).is_some_and(|bits| bits & mask != 0)
    }
}

/// What a walk collects. Shared by the callbacks of one tree's walk.
struct Walk<'w> {
    context: &'w Arc<TreeContext>,
    reached: RefCell<PageSet>,
    /// While what is listed as unowned is walked over: chains that are listed themselves.
    listed_chains: RefCell<HashSet<PageId>>,
    report: RefCell<Report>,
}

/// What a catalog says.
#[derive(Default)]
struct Catalog {
    tables: BTreeMap<String, TableEntry>,
    indexes: BTreeMap<TableId, Vec<(String, IndexEntry)>>,
}

/// What a walk over rows has counted.
#[derive(Default)]
struct Rows {
    live: u64,
    tombstones: u64,
    chains: u64,
    chain_pages: u64,
    chain_bytes: u64,
}

/// Looks at everything. With `indexes`, tables and indexes are compared.
pub(super) fn report(context: &Arc<TreeContext>, roots: &Roots, indexes: bool) -> Result<Report> {
    let pages = context.pool().file_pages();
    let walk = Walk {
        context,
        reached: RefCell::new(PageSet::new(pages)),
        listed_chains: RefCell::default(),
        report: RefCell::new(Report::default()),
    };
    let catalog = walk.catalog(roots.catalog)?;
    let pending = walk.pending_list(roots.pending_free)?;
    // Their chains are listed as pending.
    walk.plain("undo", roots.undo, &mut |_, key, payload| {
        CarriedRow::decode(key, payload).is_some()
    })?;
    walk.tables(catalog, indexes)?;
    let before = walk.reached.borrow().count;
    walk.pending(&pending)?;
    let pending = walk.reached.borrow().count - before;
    walk.bitmaps()?;
    let mut report = walk.report.into_inner();
    report.page_bytes = context.page_size() as u64;
    report.pages.pending = pending;
    Ok(report)
}

impl Walk<'_> {
    fn find(&self, object: &str, page: PageId, what: &str, values: (u64, u64)) {
        let page = (!page.is_zero()).then_some(page);
        self.report
            .borrow_mut()
            .find(Finding::new(object, page, what, values));
    }

    fn found(&self) -> u64 {
        let report = self.report.borrow();
        report.findings.len() as u64 + report.findings_left_out
    }

    /// Turns corruption into a finding.
    fn tolerate<T>(&self, object: &str, result: StorageResult<T>) -> StorageResult<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let finding = Finding::of(object, error)?;
                self.report.borrow_mut().find(finding);
                Ok(None)
            }
        }
    }

    /// Walks over one tree.
    fn tree(
        &self,
        object: &str,
        tree: &Tree,
        row: &mut dyn FnMut(PageId, &[u8], &[u8]) -> StorageResult<()>,
    ) -> StorageResult<TreeStatistics> {
        tree.verify_rows(
            &mut |page| self.reached.borrow_mut().insert(page),
            &mut |finding| {
                // A tree reports nothing but corruption.
                if let Ok(finding) = Finding::of(object, finding.error) {
                    self.report.borrow_mut().find(finding);
                }
            },
            row,
        )
    }

    /// Walks over a tree of plain rows; `sound` judges page, key and payload.
    fn plain(
        &self,
        name: &str,
        root: PageId,
        sound: &mut dyn FnMut(PageId, &[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let tree = Tree::open(self.context, root, TreeKind::Plain);
        let statistics = self.tree(name, &tree, &mut |page, key, payload| {
            if !sound(page, key, payload) {
                self.find(name, page, &format!("row {}", shown(key)), (1, 0));
            }
            Ok(())
        })?;
        let rows = Rows {
            live: statistics.rows,
            ..Rows::default()
        };
        let report = tree_report(name, root, &statistics, &rows);
        self.report.borrow_mut().system.push(report);
        Ok(())
    }

    /// Walks over a tree of versioned rows; hands page, key, header and body of the live ones to `each`.
    fn rows(
        &self,
        object: &str,
        tree: &Tree,
        each: &mut dyn FnMut(PageId, &[u8], &Header, &[u8]) -> StorageResult<()>,
    ) -> StorageResult<(TreeStatistics, Rows)> {
        let mut rows = Rows::default();
        let statistics = self.tree(object, tree, &mut |page, key, payload| {
            let Some((header, body)) = newest(payload) else {
                let found = payload.first().copied().unwrap_or(0).into();
                self.find(
                    object,
                    page,
                    &format!("header of row {}", shown(key)),
                    (0, found),
                );
                return Ok(());
            };
            if FatRow::decode(payload).is_some_and(|row| !row.is_sound()) {
                let what = format!("old versions of row {}", shown(key));
                self.find(object, page, &what, (1, 0));
            }
            if header.shape.tombstone {
                rows.tombstones += 1;
                if !body.is_empty() {
                    let what = format!("bytes of deleted row {}", shown(key));
                    self.find(object, page, &what, (0, body.len() as u64));
                }
                return Ok(());
            }
            rows.live += 1;
            if header.shape.overflow && !self.chain(object, page, key, body, &mut rows)? {
                return Ok(());
            }
            each(page, key, &header, body)
        })?;
        Ok((statistics, rows))
    }

    /// Checks the chain of a row; false if it is damaged.
    fn chain(
        &self,
        object: &str,
        page: PageId,
        key: &[u8],
        body: &[u8],
        rows: &mut Rows,
    ) -> StorageResult<bool> {
        let Some(chain) = ChainRef::decode(body) else {
            self.find(
                object,
                page,
                &format!("chain reference of row {}", shown(key)),
                (1, 0),
            );
            return Ok(false);
        };
        if self.listed_chains.borrow().contains(&chain.root) {
            return Ok(true);
        }
        let mut reached = |page| self.reached.borrow_mut().insert(page);
        let checked = overflow::verify(self.context, chain.root, &mut reached);
        let Some((pages, bytes)) = self.tolerate(object, checked)? else {
            return Ok(false);
        };
        rows.chains += 1;
        rows.chain_pages += pages;
        rows.chain_bytes += bytes;
        if bytes != chain.length {
            let what = format!("length of the chain of row {}", shown(key));
            self.find(object, chain.root, &what, (chain.length, bytes));
        }
        Ok(bytes == chain.length)
    }

    fn catalog(&self, root: PageId) -> Result<Catalog> {
        const NAME: &str = "catalog";
        let mut catalog = Catalog::default();
        let tree = Tree::open(self.context, root, TreeKind::Rows);
        let (statistics, rows) = self.rows(NAME, &tree, &mut |page, key, _, body| {
            if catalog.enter(key, body).is_none() {
                self.find(NAME, page, &format!("row {}", shown(key)), (1, 0));
            }
            Ok(())
        })?;
        let report = tree_report(NAME, root, &statistics, &rows);
        self.report.borrow_mut().system.push(report);
        Ok(catalog)
    }

    /// Reads what is listed as unowned.
    fn pending_list(&self, root: PageId) -> Result<Vec<(PageId, PendingKind)>> {
        let mut listed = Vec::new();
        self.plain("pending_free", root, &mut |_, key, payload| {
            let root = key.try_into().map(u64::from_be_bytes).ok();
            let entry = root.zip(PendingKind::decode(payload));
            listed.extend(entry.map(|(root, kind)| (PageId(root), kind)));
            entry.is_some()
        })?;
        Ok(listed)
    }

    /// Walks over what is listed as unowned.
    fn pending(&self, listed: &[(PageId, PendingKind)]) -> Result<()> {
        // A tree on the list may have rows that still refer to them: a load that was rolled back, a dropped tree
        // that is being freed. The list counts.
        let chains = listed
            .iter()
            .filter(|(_, kind)| *kind == PendingKind::Chain);
        *self.listed_chains.borrow_mut() = chains.map(|(root, _)| *root).collect();
        for (root, kind) in listed {
            let object = format!("pending {root}");
            match kind {
                PendingKind::Tree | PendingKind::Dropped => {
                    let tree = Tree::open(self.context, *root, TreeKind::Rows);
                    self.rows(&object, &tree, &mut |_, _, _, _| Ok(()))?;
                }
                PendingKind::Chain => {
                    let mut reached = |page| self.reached.borrow_mut().insert(page);
                    let checked = overflow::verify(self.context, *root, &mut reached);
                    self.tolerate(&object, checked)?;
                }
            }
        }
        Ok(())
    }

    fn tables(&self, mut catalog: Catalog, compare: bool) -> Result<()> {
        for (name, entry) in &catalog.tables {
            let mut indexes = catalog.indexes.remove(&entry.id).unwrap_or_default();
            indexes.sort_by_key(|(_, entry)| entry.id);
            self.table(name, entry, &indexes, compare)?;
        }
        for (table, indexes) in &catalog.indexes {
            for (name, entry) in indexes {
                let object = format!("index {name:?}");
                self.find(
                    &object,
                    entry.root,
                    &format!("table {table} of the index"),
                    (1, 0),
                );
            }
        }
        Ok(())
    }

    fn table(
        &self,
        name: &str,
        entry: &TableEntry,
        indexes: &[(String, IndexEntry)],
        compare: bool,
    ) -> Result<()> {
        let object = format!("table {name:?}");
        let found = self.found();
        let tree = Tree::open(self.context, entry.root, TreeKind::Rows);
        let mut expected = vec![EntrySums::default(); indexes.len()];
        let (mut value, mut columns) = (Vec::new(), Vec::new());
        // A large value is not gathered whole for entries that its first bytes make.
        let ends = indexes.iter().map(|(_, index)| index.key.value_bytes());
        let most = ends.max().unwrap_or(0);
        let (statistics, rows) = self.rows(&object, &tree, &mut |_, key, header, body| {
            if !compare || indexes.is_empty() {
                return Ok(());
            }
            let body = match ChainRef::decode(body).filter(|_| header.shape.overflow) {
                None => body,
                Some(chain) => {
                    let read = Reader::new(self.context, chain).read_start(most, &mut value);
                    if self.tolerate(&object, read)?.is_none() {
                        return Ok(());
                    }
                    &value
                }
            };
            for ((_, index), sums) in indexes.iter().zip(&mut expected) {
                if index.key.entry(key, body, &mut columns) {
                    sums.add(&columns, key);
                }
            }
            Ok(())
        })?;
        let mut report = TableReport {
            tree: tree_report(name, entry.root, &statistics, &rows),
            chains: rows.chains,
            chain_pages: rows.chain_pages,
            chain_bytes: rows.chain_bytes,
            indexes: Vec::new(),
        };
        for ((index_name, index), expected) in indexes.iter().zip(&expected) {
            let of = format!("index {index_name:?} of {object}");
            let index_tree = Tree::open(self.context, index.root, TreeKind::Rows);
            let mut sums = EntrySums::default();
            let (statistics, rows) = self.rows(&of, &index_tree, &mut |_, key, _, body| {
                sums.add(key, body);
                Ok(())
            })?;
            report.indexes.push(IndexReport {
                tree: tree_report(index_name, index.root, &statistics, &rows),
                unique: index.key.unique(),
            });
            if compare && sums != *expected {
                let values = (expected.count, sums.count);
                self.find(&of, index.root, "entries that agree with the table", values);
                // Damage elsewhere in the trees explains it; looking keys up in them explains nothing.
                if self.found() == found + 1 {
                    indexes::explain(&tree, &index_tree, &index.key, &mut |page, what, values| {
                        self.find(&of, page, what, values);
                    })?;
                }
            }
        }
        self.report.borrow_mut().tables.push(report);
        Ok(())
    }

    /// Compares what was reached with the bitmaps, and reads what was not.
    fn bitmaps(&self) -> Result<()> {
        let pool = self.context.pool();
        let shape = pool.geometry();
        let mut bits = PageBuf::new(shape.page_size);
        let mut pages = PagesReport {
            file: pool.file_pages(),
            ..PagesReport::default()
        };
        let mut leaked = (0, PageId::ZERO);
        pages.reserved = (0..shape.first_free().get().min(pages.file)).count() as u64;
        pages.reserved += shape.groups(pages.file).saturating_sub(1);
        for group in 0..shape.groups(pages.file) {
            let at = shape.bitmap_page(group);
            let read = pool.shared(at).map(|page| page.copy_to(&mut bits));
            if self.tolerate(DATABASE, read)?.is_none() {
                continue;
            }
            pages.checked += 1;
            if !matches!(bits.kind(), kind::BITMAP | kind::FREE) {
                let values = (kind::BITMAP.into(), bits.kind().into());
                self.find(DATABASE, at, "kind of an allocation bitmap", values);
                continue;
            }
            if let Err(defect) = check_header(&bits) {
                let values = (defect.expected, defect.found);
                self.find(DATABASE, at, defect.what, values);
            }
            for (index, byte) in bits.as_bytes()[BITMAP_BITS_AT..].iter().enumerate() {
                for bit in 0..8 {
                    let page = PageId(at.get() + index as u64 * 8 + bit);
                    let in_use = byte & (1 << bit) != 0;
                    self.judge(page, in_use, &mut pages, &mut leaked)?;
                }
            }
        }
        if leaked.0 > 0 {
            self.find(
                DATABASE,
                leaked.1,
                "pages in use that nothing refers to",
                (0, leaked.0),
            );
        }
        let reached = self.reached.borrow().count;
        pages.checked += reached;
        pages.free = pages.file.saturating_sub(pages.in_use + pages.reserved);
        self.report.borrow_mut().pages = pages;
        Ok(())
    }

    fn judge(
        &self,
        page: PageId,
        in_use: bool,
        pages: &mut PagesReport,
        leaked: &mut (u64, PageId),
    ) -> Result<()> {
        let pool = self.context.pool();
        let reached = self.reached.borrow().contains(page);
        match (in_use, reached) {
            (false, false) => {}
            (true, true) => pages.in_use += 1,
            (false, true) => {
                self.find(DATABASE, page, "page is referred to and free", (1, 0));
            }
            (true, false) => {
                if page.get() >= pages.file || pool.geometry().is_reserved(page) {
                    self.find(DATABASE, page, "a page in use that cannot be", (0, 1));
                    return Ok(());
                }
                pages.in_use += 1;
                leaked.0 += 1;
                if leaked.1.is_zero() {
                    leaked.1 = page;
                }
                // Its checksum, at least.
                let read = pool.shared(page).map(drop);
                if self.tolerate(DATABASE, read)?.is_some() {
                    pages.checked += 1;
                }
            }
        }
        Ok(())
    }
}

impl Catalog {
    /// Takes a row in; `None` if it cannot be one.
    fn enter(&mut self, key: &[u8], body: &[u8]) -> Option<()> {
        let name = name_in_key(key)?.to_owned();
        if key.starts_with(&table_prefix()) {
            self.tables.insert(name, TableEntry::decode(body)?);
        } else {
            let owner = TableId(u32::from_be_bytes(*key.get(1..)?.first_chunk()?));
            let entry = IndexEntry::decode(body)?;
            self.indexes.entry(owner).or_default().push((name, entry));
        }
        Some(())
    }
}

fn tree_report(name: &str, root: PageId, statistics: &TreeStatistics, rows: &Rows) -> TreeReport {
    TreeReport {
        name: name.to_owned(),
        root: root.get(),
        rows: rows.live,
        tombstones: rows.tombstones,
        height: statistics.pages.len() as u64,
        pages: statistics.pages_total(),
        bytes_used: statistics.used_bytes,
        row_bytes: statistics.row_bytes,
    }
}

/// A key as text, for a message.
pub(super) fn shown(key: &[u8]) -> String {
    const SHOWN: usize = 48;
    let end = if key.len() > SHOWN { "…" } else { "" };
    format!("\"{}\"{end}", key[..key.len().min(SHOWN)].escape_ascii())
}

/// Storage errors that say something about content are findings; others end the walk.
pub(super) fn is_damage(error: &StorageError) -> bool {
    matches!(error, StorageError::Corruption { .. })
}
