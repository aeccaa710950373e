//! Operations on many keys: what they will read is asked for before the first of them needs it.
//!
//! Past the pool that saves reads of the device one after the other, in memory the cache misses of lookups one after the other.
//! Ways down that were gone ahead are not gone again: the leaves are remembered, and believed only after a look (N5).

use crate::error::Result;
use crate::schema::Table;
use crate::transaction::Transaction;
use smallvec::SmallVec;
use vellum_base::PageId;
use vellum_buffer::PREFETCH_MAX;
use vellum_table::AHEAD_MAX;

impl Transaction {
    /// Gets ready what operations on these rows will read, or on rows beside them: pages that are not in memory are read together, which takes
    /// about as long as reading one of them; of those that are, what a lookup touches is brought into the processor's
    /// caches, and the ways to them are remembered. A hint to give before operations on several keys, one by one; it changes
    /// no result. Best with the rows of one table after each other, and at most a few dozen.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn prefetch<'k>(
        &self,
        rows: impl IntoIterator<Item = (&'k Table, &'k [u8])>,
    ) -> Result<()> {
        let pool = &self.engine().pool;
        let mut missing: SmallVec<[PageId; PREFETCH_MAX]> = SmallVec::new();
        let mut rows = rows.into_iter().peekable();
        let mut first = true;
        while let Some((table, key)) = rows.next() {
            let mut keys: SmallVec<[&[u8]; AHEAD_MAX]> = SmallVec::new();
            keys.push(key);
            while keys.len() < AHEAD_MAX
                && let Some((_, key)) = rows.next_if(|(other, _)| std::ptr::eq(*other, table))
            {
                keys.push(key);
            }
            self.read_operation(|| {
                self.with_rows(table, |rows| {
                    if first {
                        rows.expect_nothing();
                    }
                    rows.look_ahead(&keys, |leaf| {
                        if !missing.contains(&leaf) {
                            missing.push(leaf);
                        }
                    })
                })
            })?;
            first = false;
        }
        // Also one alone: who asks before it updates rows that others want holds them for a shorter time.
        for together in missing.chunks(PREFETCH_MAX) {
            pool.prefetch(together);
        }
        Ok(())
    }

    /// Looks several keys up, best in ascending order; calls `each` with the position of each key and its value. Goes ahead
    /// of the lookups, as [`Transaction::prefetch`].
    ///
    /// One statement: all values are of one snapshot, also under read committed, and of before whatever `each` writes.
    ///
    /// # Errors
    /// As [`Transaction::get`]; `each` may have been called for some keys.
    pub fn multi_get(
        &self,
        table: &Table,
        keys: &[&[u8]],
        mut each: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let inner = self.inner();
        let (snapshot, command) = self.read_operation(|| {
            let _operation = self.operation()?;
            inner.statement();
            Ok((inner.open_snapshot(), inner.commands_seen()))
        })?;
        let mut missing: SmallVec<[PageId; PREFETCH_MAX]> = SmallVec::new();
        for (number, batch) in keys.chunks(AHEAD_MAX).enumerate() {
            missing.clear();
            self.read_operation(|| {
                self.with_rows_as_of(table, &snapshot, command, |rows| {
                    rows.expect_nothing();
                    rows.look_ahead(batch, |leaf| {
                        if !missing.contains(&leaf) {
                            missing.push(leaf);
                        }
                    })
                })
            })?;
            self.engine().pool.prefetch(&missing);
            for (position, key) in (number * AHEAD_MAX..).zip(batch) {
                let found = self.read_operation(|| {
                    self.with_rows_as_of(table, &snapshot, command, |rows| {
                        rows.get_as_of(snapshot.snapshot(), command, key, |value| {
                            each(position, Some(value));
                        })
                    })
                })?;
                if found.is_none() {
                    each(position, None);
                }
            }
        }
        Ok(())
    }
}
