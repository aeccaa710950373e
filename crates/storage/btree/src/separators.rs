//! Keys at which a tree can be read in parts: separators of its inner pages.
//!
//! Concurrency: pages are copied one after the other. What they say may be old by then: any key parts a tree, only less evenly. A page whose id was read
//! from a copy may be anything by now, also one behind the end of a file that was cut: that it cannot be read says nothing about the tree.

use crate::descend::OPTIMISTIC_TRIES;
use crate::merge::copy;
use crate::node::build::entry;
use crate::node::layout::NodeRead;
use crate::tree::Tree;
use vellum_base::{PageId, Result};
use vellum_buffer::PageBuf;
use vellum_sync::Backoff;

impl Tree {
    /// Keys in ascending order, between which lie about as many rows each: at least `wanted` of them, or as many as the tree has leaves
    /// beside the first. Reads inner pages from the root down, as few as possible; nothing that is waited for but pages from disk.
    ///
    /// # Errors
    /// I/O, corruption of the root. Where another inner page cannot be read the level above it serves: who reads the parts is told.
    pub fn separators(&self, wanted: usize) -> Result<Vec<Vec<u8>>> {
        let mut pages = vec![self.root()];
        let mut found: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut keys = Vec::new();
            let mut children = Vec::new();
            let mut bottom = true;
            for (number, id) in pages.iter().enumerate() {
                if let Some(between) = number.checked_sub(1).and_then(|left| found.get(left)) {
                    keys.push(between.clone());
                }
                let page = match self.inner_copy(*id) {
                    Ok(Some(page)) => page,
                    Err(error) if *id == self.root() => return Err(error),
                    // It changed, or is not there any more: the level above serves as well.
                    Ok(None) | Err(_) => return Ok(found),
                };
                let shape = page.shape();
                if shape.level == 0 {
                    return Ok(found);
                }
                bottom &= shape.level == 1;
                keys.extend((0..shape.count).map(|index| entry(&page, index).key()));
                children.extend((0..=shape.count).map(|index| page.child(index, shape.count)));
            }
            // Pages were read one after the other: one may have been split between.
            if !keys.is_sorted_by(|left, right| left < right) {
                return Ok(found);
            }
            (found, pages) = (keys, children);
            if bottom || found.len() >= wanted {
                return Ok(found);
            }
            vellum_sync::test_point!("separators: between two levels");
        }
    }

    /// A copy of a page of this tree; none if it is not one any more, or changes all the time.
    fn inner_copy(&self, id: PageId) -> Result<Option<PageBuf>> {
        let mut backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_TRIES {
            let page = self.context().pool().optimistic(id)?;
            if !self.is_node(&page, None) {
                return Ok(None);
            }
            let copied = copy(&page);
            if page.validate() {
                return Ok(Some(copied));
            }
            backoff.wait();
        }
        Ok(None)
    }
}
