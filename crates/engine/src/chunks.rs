//! Reading a value without having it in memory.

use crate::error::Result;
use crate::schema::Table;
use crate::transaction::Transaction;
use std::ops::ControlFlow;

impl Transaction {
    /// Looks a key up and hands its value to `each`, one chunk after the other, until `each` breaks; returns what it broke with, and `None`
    /// if there is no such key. A value of whatever length is read with two pages of memory.
    ///
    /// A chunk is a page's worth (less the header) of a value outside its row, the whole of a short one, and never empty: an empty
    /// value has none. It is a private copy; between chunks no latch is held and no page.
    ///
    /// All chunks are of one version, the one that [`Transaction::get`] would have shown when the call began, whatever the isolation: it is not freed
    /// before the call ends, although others (or `each` itself, which may use this transaction for what it likes) replace or delete the
    /// row meanwhile. What is held for that is the snapshot: who takes its time in `each` keeps old versions as any open snapshot does.
    ///
    /// Blocks for pages that must be read from disk, one at a time: each names the next.
    ///
    /// # Errors
    /// As [`Transaction::get`], also behind the first chunks, but for `MemoryLimit`. `SnapshotTooOld` if the snapshot was withdrawn while `each`
    /// ran. `InvalidArgument` if `each` rolled back to a savepoint from before this transaction wrote the value, or made the table or
    /// an index that it has.
    pub fn get_chunks<B>(
        &self,
        table: &Table,
        key: &[u8],
        each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<Option<ControlFlow<B>>> {
        let inner = self.inner();
        // Held under read committed, too, where `each` may begin further statements.
        let (snapshot, command) = self.read_operation(|| {
            let _operation = self.operation()?;
            inner.statement();
            Ok((inner.open_snapshot(), inner.commands_seen()))
        })?;
        let rollbacks = || self.rollback_count();
        self.read_operation(|| {
            self.with_rows_as_of(table, &snapshot, command, |rows| {
                let as_of = (snapshot.snapshot(), command);
                rows.get_chunks(as_of, key, rollbacks, each)
            })
        })
    }
}
