//! What a database has counted since it was opened.

use crate::database::Database;
use vellum_metrics::Counter;
use vellum_version::VersionKind;

/// Counters and sizes at one moment. Each is exact unless it says otherwise, together they are of no single instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes written to the log, padding included.
    pub log_bytes_written: u64,
    /// Bytes of records among them.
    pub log_record_bytes: u64,
    /// Flush rounds of the log: each is one write and one fdatasync.
    pub log_rounds: u64,
    /// Commits (and read-only ends) that waited for a round.
    pub commits_hardened: u64,
    /// Memory of the worker slots' log buffers ([`Config::slot_buffer_bytes`](crate::Config::slot_buffer_bytes)): beside the pool.
    pub log_buffer_bytes: u64,
    /// Bytes of the log that a recovery or a rollback may still need.
    pub log_bytes_in_use: u64,
    /// Pages read from the data file.
    pub pages_read: u64,
    /// Those among them that were read several at a time, before they were needed.
    pub pages_read_ahead: u64,
    /// Pages written to the data file, in place (double writes not counted).
    pub pages_written: u64,
    /// Bytes of double writes.
    pub double_write_bytes: u64,
    /// Full-page images that a log without double writes would have had to carry.
    pub full_page_images: u64,
    /// Pages in memory.
    pub pages_resident: u64,
    /// Pages that memory may hold.
    pub pages_resident_max: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of the data file.
    pub file_pages: u64,
    /// Of these, in use for tables, indexes and system trees, those included that are dropped and that a snapshot sees.
    pub pages_durable: u64,
    /// Of these, in use for old versions.
    pub pages_of_versions: u64,
    /// Of these, free.
    pub pages_free: u64,
    /// Bytes of old versions: their pages, overflow chains that no newest version refers to, pages of dropped tables and indexes, and those in rows, as
    /// [`version_bytes_in_rows`](Self::version_bytes_in_rows) tells them. What [`Config::version_bytes_max`](crate::Config::version_bytes_max) limits, but that of versions in rows, and of
    /// dropped tables, only what a transaction needs counts there.
    pub version_bytes: u64,
    /// Bytes of old versions in rows, needed or not, about. Of each page in memory as it was when maintenance looked at it last, which is a part of them each step: seconds ago, minutes in a pool of many
    /// gigabytes. A page that is not in memory counts as the mean of those that are, or that were last.
    pub version_bytes_in_rows: u64,
    /// Pages that are not in memory and left it with old versions in rows, since the database was opened.
    pub fat_pages_out: u64,
    /// How often such a page left memory: where nothing else could go. Else their rows are turned back before.
    pub fat_pages_evicted: u64,
    /// How often a page was written with old versions in rows, by checkpoints or to be evicted.
    pub fat_pages_written: u64,
    /// Deleted rows that are still in the way of everybody, because an OLTP snapshot may see them; about.
    pub tombstones: u64,
    /// Deleted rows in graveyards: only analytical snapshots see them.
    pub rows_buried: u64,
    /// Searches of trees, of tables, indexes and old versions alike.
    pub tree_searches: u64,
    /// Rows that came with loads into empty tables ([`Transaction::bulk_load`](crate::Transaction::bulk_load),
    /// [`Transaction::begin_load`](crate::Transaction::begin_load)).
    pub rows_loaded: u64,
    /// Transactions that declared no class, and became analytical ones because they fell behind.
    pub promotions: u64,
    /// Slots that passes over the open snapshots looked at, those of idle analytical transactions not included: what other sessions cost each commit.
    pub slots_looked_at: u64,
    /// Deleted rows that were moved to graveyards since the database was opened, entries of indexes included.
    pub rows_moved: u64,
    /// How often a row began to hold its own old versions.
    pub fat_rows_made: u64,
    /// How often a fat row was turned back, with the old versions that somebody needs in a chain: for its page to be evicted, or by an update that
    /// found that nobody needs them, or that they are too many for the row.
    pub fat_rows_decomposed: u64,
    /// Updates of fat rows whose old version took the place of one that nobody sees.
    pub versions_displaced: u64,
    /// Old versions of other rows that went although an older snapshot is open, because nobody sees them.
    pub deltas_swept: u64,
    /// Snapshots that were withdrawn.
    pub snapshots_withdrawn: u64,
    /// Old versions that are byte ranges of rows that were updated.
    pub version_deltas: u64,
    /// Bytes of these.
    pub version_delta_bytes: u64,
    /// Old versions that are copies of rows that were replaced or deleted.
    pub version_copies: u64,
    /// Bytes of these.
    pub version_copy_bytes: u64,
    /// Pages of dropped tables and indexes that wait for a snapshot, or to be given back, with those of their large values: as far as maintenance has counted them.
    pub dropped_pages: u64,
    /// Bytes of these.
    pub dropped_bytes: u64,
    /// Checkpoints since the database was opened.
    pub checkpoints: u64,
    /// Transactions that are open now.
    pub transactions_open: u64,
    /// The logical clock: how many snapshots back a transaction is, is told in its ticks.
    pub clock: u64,
    /// The oldest snapshot that is open, as of the last pass; versions that it needs are kept.
    pub oldest_snapshot: u64,
    /// The same for OLTP transactions: what is deleted or replaced below it is in no OLTP transaction's way.
    pub oldest_oltp_snapshot: u64,
    /// The newest snapshot of an analytical transaction, as of the last pass; zero without one.
    pub newest_olap_snapshot: u64,
}

impl Database {
    /// Counters and sizes now. Blocks nobody, and waits for nobody's page or log. Looks at every slot that was ever leased: some hundred
    /// nanoseconds where they are few.
    pub fn statistics(&self) -> Statistics {
        let engine = self.engine();
        let (log, pool, space) = (
            engine.log.statistics(),
            engine.pool.statistics(),
            engine.space.counts(),
        );
        let marks = engine.manager.watermarks();
        let versions = engine.store.versions();
        let deltas = versions.of(VersionKind::Delta);
        let copies = versions.of(VersionKind::FullCopy);
        let dropped = engine.store.dropped_total(engine.manager.domain());
        let count = |counter| engine.context.metrics().get(counter);
        let frames = engine.pool.frames() as u64;
        Statistics {
            log_bytes_written: log.bytes_written,
            log_record_bytes: log.bytes_records,
            log_rounds: log.rounds,
            commits_hardened: log.commits_hardened,
            log_buffer_bytes: log.ring_bytes,
            log_bytes_in_use: engine.log.bytes_in_use(),
            pages_read: pool.faults,
            pages_read_ahead: pool.prefetched,
            pages_written: pool.written,
            double_write_bytes: pool.double_write_bytes,
            full_page_images: pool.full_page_images,
            pages_resident: frames.saturating_sub(engine.pool.free_frames() as u64),
            pages_resident_max: frames,
            page_bytes: engine.pool.page_size() as u64,
            file_pages: engine.pool.file_pages(),
            pages_durable: space.durable,
            pages_of_versions: space.temporary,
            version_bytes: engine.version_bytes(),
            version_bytes_in_rows: engine.bytes_in_rows(),
            fat_pages_out: engine.pool.fat_pages_out(),
            fat_pages_evicted: pool.fat_evicted,
            fat_pages_written: pool.fat_written,
            tombstones: engine.store.tombstones(),
            rows_buried: engine.store.buried(),
            tree_searches: count(Counter::TreeSearches),
            rows_loaded: count(Counter::RowsLoaded),
            promotions: engine.manager.domain().promotions(),
            slots_looked_at: engine.manager.domain().slots_looked_at(),
            rows_moved: count(Counter::TombstonesMoved),
            fat_rows_made: count(Counter::FatTuplesMade),
            fat_rows_decomposed: count(Counter::FatTuplesDecomposed),
            versions_displaced: count(Counter::VersionsDisplaced),
            deltas_swept: count(Counter::VersionsSwept),
            snapshots_withdrawn: engine.version_budget.withdrawn(),
            version_deltas: deltas.count,
            version_delta_bytes: deltas.bytes,
            version_copies: copies.count,
            version_copy_bytes: copies.bytes,
            dropped_pages: dropped.count,
            dropped_bytes: dropped.bytes,
            pages_free: space.free,
            checkpoints: engine.checkpointer.done(),
            transactions_open: engine.manager.slots_taken() as u64,
            clock: engine.clock.now().get(),
            oldest_snapshot: marks.oldest_tx.get(),
            oldest_oltp_snapshot: marks.oldest_oltp.get(),
            newest_olap_snapshot: marks.newest_olap.get(),
        }
    }
}
