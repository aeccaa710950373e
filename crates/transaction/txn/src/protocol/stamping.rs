//! Commit timestamps in rows: a commit goes back to every row that it wrote.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §3.1 "Write Set Stamping", the variant NoSteal of §4.
//! Differences: the commit log stays the commit point (R5), timestamps in rows are a cache of it. A row whose writer has
//! committed and not come back yet, or never will (it was overwritten meanwhile, or could not be read), is judged by the commit
//! log. Without that a reader between the commit and its last row would see half a transaction.
//!
//! Rows that are not one by one written (bulk loads) are not visited.
//!
//! Concurrency: rows are visited after the commit, under no latch of this crate, and before the transaction's
//! snapshots go: they keep the trees that it wrote to from being given back (V22 of `version`).

use vellum_base::{PageId, SlotId, Timestamp};

/// Writes commit timestamps into rows. Implemented where pages are known.
pub trait CommitStamper: std::fmt::Debug + Send + Sync {
    /// Writes `commit_ts` into the rows of `writes` whose newest version is by `(slot, stamp)`. A row that cannot be
    /// visited is left as it is: the commit has happened, whatever fails here.
    fn stamp(&self, slot: SlotId, stamp: Timestamp, commit_ts: Timestamp, writes: &WriteSet);
}

/// The rows that a transaction wrote, in the order of its commands.
#[derive(Debug, Default)]
pub struct WriteSet {
    keys: Vec<u8>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    tree: PageId,
    command: u32,
    /// Where the key ends in `keys`; it starts where the one before ends.
    end: usize,
}

impl WriteSet {
    pub(crate) fn add(&mut self, tree: PageId, key: &[u8], command: u32) {
        self.keys.extend_from_slice(key);
        let end = self.keys.len();
        debug_assert!(
            self.rows.last().is_none_or(|last| last.command <= command),
            "commands ascend"
        );
        self.rows.push(Row { tree, command, end });
    }

    pub(crate) fn forget_from(&mut self, command: u64) {
        let kept = self
            .rows
            .partition_point(|row| u64::from(row.command) < command);
        self.rows.truncate(kept);
        self.keys
            .truncate(self.rows.last().map_or(0, |row| row.end));
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Root pages of trees, and keys in them. A row that was written twice comes twice.
    pub fn rows(&self) -> impl Iterator<Item = (PageId, &[u8])> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let key = &self.keys[start..row.end];
            start = row.end;
            (row.tree, key)
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn write_set_forgets_what_was_reverted() {
        let mut set = WriteSet::default();
        for (command, key) in [(0, "one"), (1, ""), (3, "three"), (4, "four")] {
            set.add(PageId(u64::from(command)), key.as_bytes(), command);
        }
        set.forget_from(3);
        set.add(PageId(9), b"nine", 9);
        let rows: Vec<_> = set.rows().collect();
        let expected: [(PageId, &[u8]); 3] =
            [(PageId(0), b"one"), (PageId(1), b""), (PageId(9), b"nine")];
        assert_eq!(rows, expected);
        set.forget_from(0);
        assert!(set.is_empty() && set.rows().next().is_none());
    }
}
