//! Checks a whole tree: every page well formed, levels, fences, order, every page reached once.
//!
//! The tree should be quiet. Pages are copied one at a time; nothing is written.
//!
//! Does NOT check: payloads and chains that rows point to ([`Tree::verify_rows`] hands the rows to
//! who knows them, [`crate::overflow::verify`] checks a chain), pages that no tree reaches (the caller
//! compares `reached` with the allocation bitmaps), and whether the content is what was committed.

use crate::node::build::{entry, lower_fence, upper_fence};
use crate::node::check::check_node;
use crate::node::layout::{FLAG_PLAIN, FLAG_TEMPORARY, NodeRead};
use crate::tree::Tree;
use vellum_base::{PageId, Result, StorageError};
use vellum_buffer::{PageBuf, PageRead};

/// Something wrong with a tree.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Root of the tree.
    pub tree: PageId,
    /// The page.
    pub page: PageId,
    /// What is wrong.
    pub error: StorageError,
}

/// What a tree consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeStatistics {
    /// Rows in leaves.
    pub rows: u64,
    /// Pages by level, leaves first.
    pub pages: Vec<u64>,
    /// Bytes of keys, payloads, slots and fences.
    pub used_bytes: u64,
    /// Bytes of keys and payloads of rows, keys in full.
    pub row_bytes: u64,
}

impl TreeStatistics {
    /// Pages of all levels.
    pub fn pages_total(&self) -> u64 {
        self.pages.iter().sum()
    }
}

/// Called with the page, key and payload of a row that verification meets.
pub type RowVisitor<'v> = dyn FnMut(PageId, &[u8], &[u8]) -> Result<()> + 'v;

struct Verifier<'v> {
    tree: &'v Tree,
    reached: &'v mut dyn FnMut(PageId) -> bool,
    report: &'v mut dyn FnMut(Finding),
    row: &'v mut RowVisitor<'v>,
    key: Vec<u8>,
    statistics: TreeStatistics,
}

impl Tree {
    /// Checks the tree. `reached` is told each page and returns false if it was reached before (by
    /// this or another tree). Findings go to `report`; what is below a broken page is not looked at.
    ///
    /// # Errors
    /// I/O other than corruption, which is a finding.
    pub fn verify(
        &self,
        reached: &mut dyn FnMut(PageId) -> bool,
        report: &mut dyn FnMut(Finding),
    ) -> Result<TreeStatistics> {
        self.verify_rows(reached, report, &mut |_, _, _| Ok(()))
    }

    /// As [`Tree::verify`]; hands page, key and payload of every row of the well-formed leaves to `row`, in key
    /// order. No latch is held during the calls.
    ///
    /// # Errors
    /// As [`Tree::verify`], and what `row` returns, which ends the walk.
    pub fn verify_rows(
        &self,
        reached: &mut dyn FnMut(PageId) -> bool,
        report: &mut dyn FnMut(Finding),
        row: &mut RowVisitor<'_>,
    ) -> Result<TreeStatistics> {
        let statistics = TreeStatistics::default();
        let mut verifier = Verifier {
            tree: self,
            reached,
            report,
            row,
            key: Vec::new(),
            statistics,
        };
        verifier.page(self.root(), None, (None, None))?;
        Ok(verifier.statistics)
    }

    /// Checks that the child that a latched inner page names at `index` lies where it says. A change of the tree's shape relies on
    /// it: a page of the past (its last write was lost) is whole and of this tree, but may have had other neighbours, and what is
    /// made of it would be a tree that says nothing of its damage.
    ///
    /// # Errors
    /// Corruption of the child.
    pub(crate) fn check_child(
        &self,
        above: &PageBuf,
        index: usize,
        (id, child): (PageId, &PageBuf),
    ) -> Result<()> {
        let corrupt = |what, expected: u64, found: u64| {
            Err(self.context().corrupt(id, what, expected, found))
        };
        let key = |index| entry(above, index).key();
        let last = above.shape().count;
        let lower = match index {
            0 => lower_fence(above).map(<[u8]>::to_vec),
            index => Some(key(index - 1)),
        };
        let upper = if index < last {
            Some(key(index))
        } else {
            upper_fence(above).map(<[u8]>::to_vec)
        };
        let (expected, found) = (above.shape().level, child.shape().level + 1);
        if expected != found {
            return corrupt("level of a page, less one", expected.into(), found.into());
        }
        if lower_fence(child) != lower.as_deref() {
            return corrupt("lower fence as in the parent", 1, 0);
        }
        if upper_fence(child) != upper.as_deref() {
            return corrupt("upper fence as in the parent", 1, 0);
        }
        Ok(())
    }
}

impl Verifier<'_> {
    fn find(&mut self, page: PageId, what: &'static str, expected: u64, found: u64) {
        let error = self.tree.context().corrupt(page, what, expected, found);
        (self.report)(Finding {
            tree: self.tree.root(),
            page,
            error,
        });
    }

    fn page(
        &mut self,
        id: PageId,
        level: Option<u8>,
        (lower, upper): (Option<&[u8]>, Option<&[u8]>),
    ) -> Result<()> {
        if !(self.reached)(id) {
            self.find(id, "page reached once", 1, 2);
            return Ok(());
        }
        let mut page = PageBuf::new(self.tree.context().page_size());
        match self.tree.context().pool().shared(id) {
            Ok(guard) => guard.copy_to(&mut page),
            Err(error @ StorageError::Corruption { .. }) => {
                (self.report)(Finding {
                    tree: self.tree.root(),
                    page: id,
                    error,
                });
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        if let Err(defect) = check_node(&page) {
            self.find(id, defect.what, defect.expected, defect.found);
            return Ok(());
        }
        let shape = page.shape();
        if page.tree_id() != self.tree.root() {
            self.find(
                id,
                "tree of a page",
                self.tree.root().get(),
                page.tree_id().get(),
            );
        }
        let flags = page.kind_and_flags().1 & (FLAG_PLAIN | FLAG_TEMPORARY);
        if flags != self.tree.kind().flags() {
            self.find(
                id,
                "flags of a page",
                self.tree.kind().flags().into(),
                flags.into(),
            );
        }
        if let Some(level) = level
            && level != shape.level
        {
            self.find(id, "level of a page", level.into(), shape.level.into());
            return Ok(());
        }
        if lower_fence(&page) != lower {
            self.find(id, "lower fence as in the parent", 1, 0);
        }
        if upper_fence(&page) != upper {
            self.find(id, "upper fence as in the parent", 1, 0);
        }
        let statistics = &mut self.statistics;
        let height = usize::from(shape.level) + 1;
        if statistics.pages.len() < height {
            statistics.pages.resize(height, 0);
        }
        statistics.pages[height - 1] += 1;
        statistics.used_bytes += page.used_bytes() as u64;
        if shape.level == 0 {
            statistics.rows += shape.count as u64;
            for index in 0..shape.count {
                let row = entry(&page, index);
                let bytes = row.prefix.len() + row.suffix.len() + row.payload.len();
                statistics.row_bytes += bytes as u64;
                self.key.clear();
                self.key.extend_from_slice(row.prefix);
                self.key.extend_from_slice(row.suffix);
                (self.row)(id, &self.key, row.payload)?;
            }
            return Ok(());
        }
        let mut left = lower.map(<[u8]>::to_vec);
        for index in 0..=shape.count {
            let right = if index < shape.count {
                Some(entry(&page, index).key())
            } else {
                upper.map(<[u8]>::to_vec)
            };
            let child = page.child(index, shape.count);
            self.page(
                child,
                Some(shape.level - 1),
                (left.as_deref(), right.as_deref()),
            )?;
            left = right;
        }
        Ok(())
    }
}
