//! Whether a transaction sees the newest state of a table: who writes rows anew from what it sees must.

use crate::error::{Error, Result};
use crate::schema::Table;
use crate::transaction::Transaction;
use vellum_btree::{LeafCopy, Seek};
use vellum_version::row::Header;

impl Transaction {
    /// Fails with `Conflict` if another transaction has changed a row of the table, or is about to, which this one does not see: what
    /// it reads is not what is there, and a copy of it would undo that change. Looks at every row; the caller sees to it that nobody
    /// writes meanwhile.
    ///
    /// # Errors
    /// `Conflict`; as [`Transaction::get`].
    pub fn check_newest(&self, table: &Table) -> Result<()> {
        let mut leaf = LeafCopy::new(self.engine().context.page_size());
        let mut from = Some(Vec::new());
        while let Some(bound) = &from {
            from = self.read_operation(|| {
                let operation = self.operation()?;
                let tree = &self.shape_in(&operation, table)?.tree;
                let (store, inner) = (&self.engine().store, self.inner());
                let (snapshot, commands) = (inner.statement(), inner.commands_drawn());
                tree.read_leaf(Seek::AtOrAfter(bound), &mut leaf)?;
                for at in leaf.position()..leaf.len() {
                    let writer = Header::decode(leaf.payload(at)).and_then(|row| row.writer);
                    if writer.is_some_and(|by| !inner.visible(&by.version, snapshot, commands)) {
                        return Err(Error::Conflict);
                    }
                }
                // A row that left the leaf before it was read has left a note.
                if store.may_miss_gone(snapshot, tree) {
                    return Err(Error::Conflict);
                }
                Ok(leaf.upper_fence().map(<[u8]>::to_vec))
            })?;
        }
        Ok(())
    }
}
