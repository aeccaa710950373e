//! Which leaves would have to be read, so that several are read at once.
//!
//! A hint: it changes no result, and what it finds out about pages is not believed by anybody. So it asks the inner pages
//! once, without a second attempt.

use crate::descend::Target;
use crate::node::layout::NodeRead;
use crate::tree::Tree;
use vellum_base::{PageId, Result};

impl Tree {
    /// The leaf that `key` belongs to, if it is not in memory: for who reads several of them together
    /// ([`vellum_buffer::Pool::prefetch`]).
    ///
    /// # Errors
    /// I/O, corruption of an inner page on the way. What is wrong with a leaf its next reader finds out.
    pub fn missing_leaf(&self, key: &[u8]) -> Result<Option<PageId>> {
        let target = Target::Covering(key);
        let Some(path) = self.try_descend(target, 1)? else {
            return Ok(None);
        };
        let count = path.page.shape().count;
        let leaf = path
            .page
            .child(target.child_index(&path.page, count), count);
        let missing = path.page.validate() && !self.context().pool().is_resident(leaf);
        Ok(missing.then_some(leaf))
    }
}
