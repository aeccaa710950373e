//! Reading the leaves of several keys at once.
//!
//! A hint: it changes no result, and what it finds out about pages is not believed by anybody. So it asks the inner pages
//! once, without a second attempt.

use crate::descend::Target;
use crate::node::layout::NodeRead;
use crate::tree::Tree;
use smallvec::SmallVec;
use vellum_base::{PageId, Result};
use vellum_buffer::PREFETCH_MAX;

impl Tree {
    /// Reads the leaves that `keys` belong to, as far as they are not in memory, many at a time. Does nothing while
    /// the data fits into memory. Returns how many were read.
    ///
    /// # Errors
    /// I/O, corruption of an inner page on the way. What is wrong with a leaf its next reader finds out.
    pub fn prefetch<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<usize> {
        let pool = self.context().pool();
        if !pool.is_outgrown() {
            return Ok(0);
        }
        let mut missing: SmallVec<[PageId; PREFETCH_MAX]> = SmallVec::new();
        let mut read = 0;
        for key in keys {
            let target = Target::Covering(key);
            let Some(path) = self.try_descend(target, 1)? else {
                continue;
            };
            let count = path.page.shape().count;
            let leaf = path
                .page
                .child(target.child_index(&path.page, count), count);
            if !path.page.validate() || pool.is_resident(leaf) || missing.contains(&leaf) {
                continue;
            }
            missing.push(leaf);
            if missing.len() == PREFETCH_MAX {
                read += pool.prefetch(&missing);
                missing.clear();
            }
        }
        // One alone is read by who needs it.
        if missing.len() > 1 {
            read += pool.prefetch(&missing);
        }
        Ok(read)
    }
}
