//! The one table. A line is a variant, its name, its unit and one sentence.

/// What a value is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
}

macro_rules! table {
    ($(#[$doc:meta])* $table:ident { $($variant:ident, $name:literal, $unit:ident, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $table {
            $(#[doc = $text] $variant,)*
        }

        impl $table {
            /// All lines, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// How many lines there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Name, words joined by underscores, unit not included.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Unit of the values.
            pub const fn unit(self) -> Unit {
                match self { $(Self::$variant => Unit::$unit,)* }
            }

            /// What is counted, one sentence.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

table! {
    /// What is counted.
    Counter {
        Begins, "begins", Count, "Transactions begun.";
        Commits, "commits", Count, "Transactions committed.";
        Rollbacks, "rollbacks", Count, "Transactions rolled back, for whatever reason.";
        Conflicts, "conflicts", Count, "Writes refused because another transaction wrote first.";
        LockWaits, "lock_waits", Count, "Waits for another transaction.";
        Deadlocks, "deadlocks", Count, "Transactions ended as the victim of a deadlock.";
        Promotions, "promotions", Count, "Transactions promoted from OLTP to OLAP while they ran.";

        RowReads, "row_reads", Count, "Rows returned by point reads and scans.";
        RowInserts, "row_inserts", Count, "Rows inserted.";
        RowUpdates, "row_updates", Count, "Rows updated.";
        RowDeletes, "row_deletes", Count, "Rows deleted.";

        LogRecords, "log_records", Count, "Log records appended.";
        LogBytes, "log", Bytes, "Bytes of log records appended.";
        LogBytesWritten, "log_written", Bytes, "Bytes written to log segments, padding included.";
        FlushRounds, "flush_rounds", Count, "Flush rounds that wrote something.";
        LogStalls, "log_stalls", Count, "Waits for space in the log.";
        UndoBytesCarried, "undo_carried", Bytes, "Undo carried forward for long transactions.";

        PageHits, "page_hits", Count, "Pages found in the pool by an access that had to look.";
        PageReads, "page_reads", Count, "Pages read from the data file.";
        PageWrites, "page_writes", Count, "Pages written to the data file.";
        PageEvictions, "page_evictions", Count, "Pages dropped from the pool.";
        DoubleWrites, "double_writes", Count, "Pages written to the double-write area.";
        FrameStalls, "frame_stalls", Count, "Waits for a free frame of the pool.";
        Checkpoints, "checkpoints", Count, "Checkpoint positions made durable.";

        TreeSearches, "tree_searches", Count, "Searches of trees, for a key or for a leaf; those that a remembered leaf answers included.";
        LeafSplits, "leaf_splits", Count, "Leaves of tables and indexes split.";
        LeafMerges, "leaf_merges", Count, "Leaves of tables and indexes merged away.";
        RowsLoaded, "rows_loaded", Count, "Rows of loads, which were never inserted singly.";
        TreeRestarts, "tree_restarts", Count, "Descents begun again after a failed validation.";

        VersionsMade, "versions_made", Count, "Before-images written.";
        VersionsRead, "versions_read", Count, "Steps down version chains.";
        VersionsReclaimed, "versions_reclaimed", Count, "Before-images removed.";
        TombstonesMoved, "tombstones_moved", Count, "Tombstones moved to a graveyard.";
        TombstonesReclaimed, "tombstones_reclaimed", Count, "Tombstones removed for good.";
        FatTuplesMade, "fat_tuples_made", Count, "Chains turned into fat tuples.";
        FatTuplesDecomposed, "fat_tuples_decomposed", Count, "Fat tuples turned back into plain rows, with a chain if somebody needs it.";
        VersionsDisplaced, "versions_displaced", Count, "Updates of fat tuples whose version took the place of one that nobody sees.";
        VersionsSwept, "versions_swept", Count, "Before-images taken out although an older snapshot is open, since nobody sees them.";
    }
}

table! {
    /// Whose distribution is kept.
    Histogram {
        CommitNanos, "commit_time", Nanoseconds, "From the call of commit to its acknowledgement.";
        FlushNanos, "flush_time", Nanoseconds, "Write and fsync of one flush round.";
        FlushTransactions, "flush_transactions", Count, "Commits that one flush round made durable.";
        PageReadNanos, "page_read_time", Nanoseconds, "Reading one page from the data file.";
        LockWaitNanos, "lock_wait_time", Nanoseconds, "Waiting for another transaction.";
    }
}
