//! What stands newest at a key, whoever wrote it: what a lock on the row is decided by.
//!
//! Concurrency: the writer is asked after under the leaf's latch. Who rolls back needs that latch to revert the version, so a writer that runs no more by then has
//! committed. Asked behind the latch, one that has rolled back meanwhile would pass for one that has committed.

use crate::error::Result;
use crate::fat::update::broken_row;
use crate::read::View;
use crate::store::VersionStore;
use crate::write::{Scratch, copy_newest, may_overwrite};
use vellum_btree::Tree;
use vellum_txn::{TransactionId, VersionStamp};

/// The newest version of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newest {
    /// It is no tombstone.
    pub live: bool,
    /// The looking transaction may write on it: it sees it, or wrote it.
    pub seen: bool,
    /// Who wrote it; `None` if everybody sees it.
    pub writer: Option<VersionStamp>,
    /// The transaction that wrote it, if it is not `seen` and has not ended.
    pub running: Option<TransactionId>,
}

impl VersionStore {
    /// The newest version at a key; `None` if the main index has none: nothing was ever there, or a delete that every short
    /// transaction sees. Waits for nobody's end.
    ///
    /// # Errors
    /// Storage errors.
    pub fn newest(
        &self,
        view: &View<'_>,
        tree: &Tree,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Option<Newest>> {
        let leaf = tree.write_near(key, &mut scratch.hints)?;
        if !leaf.found() {
            return Ok(None);
        }
        let mut row = Vec::new();
        let header = copy_newest(&leaf, &mut row).ok_or_else(|| broken_row(tree))?;
        let writer = header.writer.map(|writer| writer.version);
        let unseen = writer.filter(|version| !may_overwrite(view, &header, version));
        vellum_sync::test_point!("newest: between row and writer");
        let domain = view.transaction.domain();
        let running = unseen.and_then(|version| domain.running_writer(&version));
        drop(leaf);
        Ok(Some(Newest {
            live: !header.shape.tombstone,
            seen: unseen.is_none(),
            writer,
            running,
        }))
    }
}
