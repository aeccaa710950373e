//! Appending at the right edge: the rightmost leaf is remembered.
//!
//! Invariant: what is remembered is a hint. It is believed only under the leaf's latch, if the page is
//! a leaf of this tree without an upper fence (N5).

use crate::context::Journal;
use crate::node::build::Incoming;
use crate::node::layout::{NodeRead, OPEN_UPPER};
use crate::tree::Tree;
use crate::write::{LeafWrite, Logged, Logging};
use vellum_base::{PageId, Result};
use vellum_buffer::Exclusive;

/// Appends to one tree, remembering its rightmost leaf. One user at a time; several on one tree are
/// fine.
#[derive(Debug)]
pub struct Appender {
    tree: Tree,
    leaf: PageId,
}

impl Tree {
    /// An appender for this tree.
    pub fn appender(&self) -> Appender {
        Appender {
            tree: self.clone(),
            leaf: PageId::ZERO,
        }
    }
}

impl Appender {
    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Inserts a key, best one that is above all others; any other key is inserted as well, only
    /// slower. For durable trees `logging` says how, with log space for the record reserved, and
    /// `journal` where a split is logged (after which log space is reserved again for `record_bytes`).
    ///
    /// # Errors
    /// Out of space, I/O.
    ///
    /// # Panics
    /// If the key is there, or as [`LeafWrite::insert`].
    pub fn append(
        &mut self,
        key: &[u8],
        payload: &[&[u8]],
        logging: Logging<'_>,
        journal: Option<(Journal<'_>, usize)>,
    ) -> Result<Logged> {
        let length = crate::node::edit::parts_len(payload);
        if !self.leaf.is_zero()
            && let Some(leaf) = self.tree.context().pool().try_exclusive(self.leaf)
            && let Some(mut leaf) = self.edge(leaf, key)
            && leaf.fits(length)
        {
            return Ok(leaf.insert(payload, logging));
        }
        self.append_slowly(key, payload, length, logging, journal)
    }

    /// The remembered leaf, positioned behind its last record, if it is still the rightmost and `key`
    /// belongs there.
    #[inline]
    fn edge<'t, 'k>(&'t self, leaf: Exclusive<'t>, key: &'k [u8]) -> Option<LeafWrite<'t, 'k>> {
        if !self.tree.is_leaf(&leaf) {
            return None;
        }
        let shape = leaf.shape();
        if shape.open & OPEN_UPPER == 0 || shape.count == 0 {
            return None;
        }
        // The rightmost leaf has no prefix; a key above its last one is above its lower fence.
        let last = leaf.slot(shape.count - 1);
        let head = crate::node::layout::head_of(key);
        if !leaf.compare_slot(last, key, head).is_lt() {
            return None;
        }
        Some(LeafWrite::at(&self.tree, leaf, key, (shape.count, false)))
    }

    #[cold]
    fn append_slowly(
        &mut self,
        key: &[u8],
        payload: &[&[u8]],
        length: usize,
        logging: Logging<'_>,
        journal: Option<(Journal<'_>, usize)>,
    ) -> Result<Logged> {
        loop {
            let mut leaf = self.tree.write(key)?;
            if leaf.fits(length) {
                let logged = leaf.insert(payload, logging);
                self.leaf = if leaf.is_rightmost() {
                    leaf.page_id()
                } else {
                    PageId::ZERO
                };
                return Ok(logged);
            }
            drop(leaf);
            let incoming = Incoming {
                key,
                payload: length,
                spare: 0,
            };
            let changes = self.tree.journal(journal.map(|(journal, _)| journal));
            self.tree.split_until(key, 0, Some(incoming), changes)?;
            if let Some((journal, bytes)) = journal {
                journal.reserve(bytes)?;
            }
        }
    }
}
