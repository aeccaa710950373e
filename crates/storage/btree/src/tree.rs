//! A tree: its root page, its kind, its environment.
//!
//! Layout: a tree **is** its root page id (0001). The root never moves: when it splits, its content
//! goes to two new children; when one child is left, its content comes back.
//!
//! Crash: creating a durable tree is one structure change: root image, allocation bit and, if asked
//! for, an entry in another tree that says who must free it. So a crash leaks nothing.

use crate::change::{Change, Fresh};
use crate::context::{Journal, TreeContext, change_log_bytes};
use crate::node::build::{Builder, Frame};
use crate::node::layout::{FLAG_PLAIN, FLAG_TEMPORARY, KIND_LEAF};
use std::fmt;
use std::sync::Arc;
use vellum_base::{PageId, Result};
use vellum_buffer::PageBuf;
use vellum_metrics::Counter;

/// What a tree holds and whether it outlives the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// Durable; payloads are rows that `RowFormat` and `Cleaner` know.
    Rows,
    /// Durable; payloads are plain bytes (system trees).
    Plain,
    /// Version data: not logged, gone after a restart; its pages give themselves back.
    Temporary,
}

impl TreeKind {
    pub(crate) fn flags(self) -> u8 {
        match self {
            Self::Rows => 0,
            Self::Plain => FLAG_PLAIN,
            Self::Temporary => FLAG_TEMPORARY | FLAG_PLAIN,
        }
    }
}

/// An entry of another (durable, plain) tree that appears or goes in the same structure change as
/// the page that it is about.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'e> {
    /// The tree that holds the entry; not the one that changes.
    pub tree: &'e Tree,
    /// Payload of an entry that is added. Its key is the page id, big-endian.
    pub payload: &'e [u8],
}

/// A handle of a tree; cheap to clone.
#[derive(Clone)]
pub struct Tree {
    context: Arc<TreeContext>,
    root: PageId,
    kind: TreeKind,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({}, {:?})", self.root, self.kind)
    }
}

impl Tree {
    /// Makes an empty tree. `journal` is needed for durable kinds; reserves log space. With `entry`,
    /// that tree holds the root's page id from the same instant on.
    ///
    /// # Errors
    /// Out of space, I/O. Nothing is left behind.
    ///
    /// # Panics
    /// If a durable tree comes without a journal.
    pub fn create(
        context: &Arc<TreeContext>,
        journal: Option<Journal<'_>>,
        kind: TreeKind,
        entry: Option<Entry<'_>>,
    ) -> Result<Self> {
        let journal = if kind == TreeKind::Temporary {
            None
        } else {
            journal
        };
        assert!(
            kind == TreeKind::Temporary || journal.is_some(),
            "durable trees are logged"
        );
        let mut image = PageBuf::new(context.page_size());
        loop {
            if let Some(journal) = journal {
                journal.reserve(change_log_bytes(context.page_size()))?;
            }
            let fresh = Fresh::make(context, None, (KIND_LEAF, kind.flags()), journal)?;
            let root = fresh.id();
            let frame = Frame {
                tree: root,
                flags: kind.flags(),
                level: 0,
                lower: None,
                upper: None,
                rightmost: PageId::ZERO,
            };
            Builder::new(&mut image, &frame).finish();
            let mut change = Change::new(context, root, journal);
            if let Some(entry) = entry {
                let key = root.get().to_be_bytes();
                let mut leaf = entry.tree.write(&key)?;
                if !leaf.fits(entry.payload.len()) {
                    drop(leaf);
                    drop(fresh);
                    entry.tree.make_room(&key, entry.payload.len(), journal)?;
                    continue;
                }
                change.add_fresh(fresh, &image);
                change.commit_with_entry(&mut leaf, Some(entry.payload))?;
            } else {
                change.add_fresh(fresh, &image);
                change.commit()?;
            }
            return Ok(Self {
                context: context.clone(),
                root,
                kind,
            });
        }
    }

    /// The tree with that root page. Reads nothing.
    pub fn open(context: &Arc<TreeContext>, root: PageId, kind: TreeKind) -> Self {
        Self {
            context: context.clone(),
            root,
            kind,
        }
    }

    /// The root page id, which is the name of the tree.
    #[inline]
    pub fn root(&self) -> PageId {
        self.root
    }

    /// What the tree holds.
    #[inline]
    pub fn kind(&self) -> TreeKind {
        self.kind
    }

    /// The environment.
    #[inline]
    pub fn context(&self) -> &Arc<TreeContext> {
        &self.context
    }

    /// The journal for structure changes of this tree: none for temporary ones.
    pub(crate) fn journal<'l>(&self, journal: Option<Journal<'l>>) -> Option<Journal<'l>> {
        if self.kind == TreeKind::Temporary {
            return None;
        }
        assert!(
            journal.is_some(),
            "a durable tree's structure changes are logged"
        );
        journal
    }

    /// Counts a structure change of a table's or an index's leaves; others are not looked at.
    pub(crate) fn count_leaves(&self, level: u8, counter: Counter) {
        if level == 0 && self.kind == TreeKind::Rows {
            self.context.metrics().increment(counter);
        }
    }

    /// Reserves the log space of one structure change.
    pub(crate) fn reserve_change(&self, journal: Option<Journal<'_>>) -> Result<()> {
        journal.map_or(Ok(()), |journal| {
            journal.reserve(change_log_bytes(self.context.page_size()))
        })
    }
}
