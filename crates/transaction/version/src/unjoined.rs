//! Leaves that a rollback has emptied and could not join with their neighbours, because joining takes log and memory, and one was short.
//!
//! A row that is reverted asks for no log but its own (R9), so a rollback that is longer than a small log finds none for joins most of the time. The
//! leaves are noted, as stretches of keys, and joined when everything is reverted: then nothing of the transaction pins the log, and who
//! waits for space gets it by a checkpoint.
//!
//! Invariants:
//! - V65 At most [`STRETCHES_MAX`] stretches are noted: where there would be more, neighbours of a tree are made one, and where those are of as many
//!   trees, one is left out. The leaves between are looked at in vain, at most [`LOOKS`] for each note.
//! - V66 Only while the transaction is open: no tree that it wrote to is freed before (its snapshot sees it, or V68; of one that is
//!   parked and has no snapshot any more, because trees wait for parked writers, `collect`).
//!
//! Crash: redo-only changes of structure; notes are forgotten.

use crate::error::concerns_one;
use std::collections::BTreeMap;
use vellum_base::{PageId, Result, StorageError};
use vellum_btree::{Journal, LeafCopy, Seek, Tree, TreeContext, TreeKind};
use vellum_wal::{Purpose, SlotLog};

/// Stretches of keys that are noted at most.
pub(crate) const STRETCHES_MAX: usize = 512;
/// Leaves that are looked at for each that was noted.
const LOOKS: usize = 8;

/// What one rollback has noted.
#[derive(Debug, Default)]
pub(crate) struct Unjoined {
    /// The last key of a stretch, by its tree and first key.
    stretches: BTreeMap<(PageId, Vec<u8>), Vec<u8>>,
    noted: usize,
}

impl Unjoined {
    /// Notes the leaf of a key.
    pub fn note(&mut self, tree: PageId, key: &[u8]) {
        self.noted += 1;
        let at = (tree, key.to_vec());
        let below = self.stretches.range(..=&at).next_back();
        if below.is_some_and(|((root, _), to)| *root == tree && to.as_slice() >= key) {
            // Stretches do not overlap.
            return;
        }
        self.stretches.insert(at, key.to_vec());
        if self.stretches.len() <= STRETCHES_MAX {
            return;
        }
        let mut all = std::mem::take(&mut self.stretches).into_iter().peekable();
        while let Some((from, mut to)) = all.next() {
            if let Some((_, last)) = all.next_if(|next| next.0.0 == from.0) {
                to = to.max(last);
            }
            self.stretches.insert(from, to);
        }
        // Of so many trees there is one stretch each: the last one goes, its leaves stay as they are.
        if self.stretches.len() > STRETCHES_MAX {
            self.stretches.pop_last();
        }
    }

    /// Joins what was noted, as long as there is log and memory. What cannot be read keeps nothing else.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn join(&mut self, context: &std::sync::Arc<TreeContext>, log: &SlotLog) -> Result<()> {
        let mut looks = std::mem::take(&mut self.noted).saturating_mul(LOOKS);
        for ((root, from), to) in std::mem::take(&mut self.stretches) {
            let tree = Tree::open(context, root, TreeKind::Rows);
            match join_between(&tree, from, &to, log, &mut looks) {
                Err(error @ StorageError::Poisoned) => return Err(error),
                // The next one would wait for them in vain, too.
                Err(error) if !concerns_one(&error) => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Joins the leaves from that of one key to that of another, up to one that cannot be read: where the next one begins stands in it.
fn join_between(
    tree: &Tree,
    mut from: Vec<u8>,
    to: &[u8],
    log: &SlotLog,
    looks: &mut usize,
) -> Result<()> {
    let mut leaf = LeafCopy::new(tree.context().page_size());
    while *looks > 0 {
        *looks -= 1;
        tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
        let before = leaf.upper_fence().map(<[u8]>::to_vec);
        // This waits for log: nothing is latched, and nobody's rollback pays.
        match tree.rebalance(&from, Some(Journal::new(log, Purpose::Forward))) {
            Err(error) if !concerns_one(&error) => return Err(error),
            // It stays beside what cannot be read.
            _ => {}
        }
        tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
        match leaf.upper_fence() {
            // It has taken its neighbour in, and may take the next.
            after if after != before.as_deref() => {}
            Some(fence) if fence < to => {
                from.clear();
                from.extend_from_slice(fence);
                // The first key behind the fence is the next leaf's.
                from.push(0);
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn notes_are_bounded_and_cover_what_was_noted() {
        let mut unjoined = Unjoined::default();
        for number in 0..10_000_u32 {
            let key = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
            unjoined.note(PageId(u64::from(1 + number % 3)), &key);
            assert!(unjoined.stretches.len() <= STRETCHES_MAX);
        }
        for number in 0..10_000_u32 {
            let (tree, key) = (
                PageId(u64::from(1 + number % 3)),
                number.wrapping_mul(0x9E37_79B9),
            );
            let key = key.to_be_bytes().to_vec();
            let below = unjoined.stretches.range(..=(tree, key.clone())).next_back();
            let ((root, _), to) = below.expect("a stretch begins at or below it");
            assert!(*root == tree && *to >= key, "{number}");
        }
    }

    #[test]
    fn notes_of_more_trees_than_stretches_are_bounded() {
        let mut unjoined = Unjoined::default();
        for number in 0..2_000_u64 {
            unjoined.note(PageId(1 + number), b"k");
            assert!(unjoined.stretches.len() <= STRETCHES_MAX);
        }
        assert_eq!(unjoined.stretches.len(), STRETCHES_MAX);
    }
}
