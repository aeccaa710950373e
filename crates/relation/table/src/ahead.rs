//! Going ahead of operations whose keys are known.

use crate::error::Result;
use crate::rows::Rows;
use vellum_base::PageId;

/// Most keys that are gone ahead for together.
pub const AHEAD_MAX: usize = 32;

impl Rows<'_> {
    /// Goes ahead of operations on these keys, all of them together: their leaves are remembered for them. Calls `missing`
    /// with those that are not in memory.
    ///
    /// # Errors
    /// Storage errors.
    ///
    /// # Panics
    /// If there are more than [`AHEAD_MAX`] keys.
    pub fn look_ahead(&mut self, keys: &[&[u8]], mut missing: impl FnMut(PageId)) -> Result<()> {
        let tree = &self.shape.tree;
        let pool = self.store.context().pool();
        let outgrown = pool.is_outgrown();
        let mut leaves = [PageId::ZERO; AHEAD_MAX];
        let leaves = &mut leaves[..keys.len()];
        tree.find_leaves(keys, leaves);
        for (key, leaf) in keys.iter().zip(leaves) {
            if leaf.is_zero() && outgrown {
                *leaf = tree.missing_leaf(key)?.unwrap_or_default();
            }
            if leaf.is_zero() {
                continue;
            }
            self.buffers.scratch.hints.expect(tree, key, *leaf);
            if outgrown && !pool.is_resident(*leaf) {
                missing(*leaf);
            }
        }
        Ok(())
    }

    /// Forgets what [`Rows::look_ahead`] remembered.
    pub fn expect_nothing(&mut self) {
        self.buffers.scratch.hints.expect_nothing();
    }
}
