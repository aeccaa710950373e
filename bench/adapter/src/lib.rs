//! Vellum itself, as the bench sees it.
//!
//! A session keeps at most one transaction; every operation is one call of the public interface.
//!
//! Not here: what a run opens it with, and what is measured.
#![forbid(unsafe_code)]

use std::ops::{ControlFlow, Range};
use std::path::Path;
use vellum::{
    Class, Config, Database, Durability, Error, TransactionOptions, VersionKind, VersionPolicy,
};
use vellum_workload::engine::{
    Description, Direction, Engine, EngineError, Holder, Isolation, OldVersions, Result, Session,
    Statistics, Table, TableSpec, Terms, TxOptions,
};

/// An open database and the handles of the workload's tables.
#[derive(Debug)]
pub struct VellumEngine {
    database: Database,
    tables: Vec<vellum::Table>,
    /// Whether tables that are missing are made.
    create: bool,
    durability: Durability,
    description: Description,
}

impl VellumEngine {
    /// Opens the database in `data`, or creates it where `config` says so, for transactions that commit like this.
    ///
    /// # Errors
    /// Whatever [`Database::open`] reports.
    pub fn open(data: &Path, config: Config, durability: Durability) -> Result<Self> {
        let create = config.create;
        let database = Database::open(data, config).map_err(EngineError::failed)?;
        // An existing database keeps its own page size.
        let config = database.config();
        let (told, lost) = match durability {
            Durability::Sync => ("commits are synced", "nothing"),
            Durability::Async => (
                "commits are in the process's memory; the log is written and synced behind them, within 50 ms",
                "commits of the last 50 ms",
            ),
        };
        let mut description = Description::new(
            "vellum",
            env!("CARGO_PKG_VERSION"),
            Terms {
                isolation: "snapshot, first to write wins".to_owned(),
                durability: told.to_owned(),
                lost_by_kill: lost.to_owned(),
                lost_by_power_loss: lost.to_owned(),
                memory: format!(
                    "a pool of {} bytes, old versions in it, log buffers beside it",
                    config.pool_bytes
                ),
            },
            vec![
                ("checksums", "of pages and of the log".to_owned()),
                ("page_size", config.page_size.to_string()),
                ("pool_bytes", config.pool_bytes.to_string()),
                ("log_bytes_max", config.log_bytes_max.to_string()),
                (
                    "checkpoint_log_bytes",
                    config.checkpoint_log_bytes.to_string(),
                ),
            ],
        );
        if config.version_bytes_max < u64::MAX {
            let policy = match config.version_policy {
                VersionPolicy::Spill => "spill",
                VersionPolicy::SnapshotTooOld => "too-old",
                VersionPolicy::RefuseWriter => "refuse-writer",
            };
            let limit = ("version_bytes_max", config.version_bytes_max.to_string());
            let told = [limit, ("version_policy", policy.to_owned())];
            let told = told.map(|(name, value)| (name.to_owned(), value));
            description.settings.extend(told);
        }
        Ok(Self {
            database,
            tables: Vec::new(),
            create,
            durability,
            description,
        })
    }

    /// One unit of background work, of a database that was opened without threads for it.
    ///
    /// # Errors
    /// Whatever [`Database::step`] reports.
    pub fn step(&self) -> Result<()> {
        self.database.step().map(drop).map_err(EngineError::failed)
    }
}

impl Engine for VellumEngine {
    type Session<'e> = VellumSession<'e>;

    /// Where nothing is to be made, a table that is missing is an error.
    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        let transaction = self.database.begin().map_err(EngineError::failed)?;
        let mut handles = Vec::with_capacity(tables.len());
        for spec in tables {
            let handle = match transaction.table(spec.name) {
                Err(Error::NoSuchTable { .. }) if self.create => {
                    transaction.create_table(spec.name)
                }
                found => found,
            };
            handles.push(handle.map_err(EngineError::failed)?);
        }
        transaction.commit().map_err(EngineError::failed)?;
        self.tables = handles;
        Ok(())
    }

    fn table_names(&self) -> Result<Option<Vec<String>>> {
        let transaction = self.database.begin().map_err(EngineError::failed)?;
        transaction.tables().map(Some).map_err(EngineError::failed)
    }

    fn open_session(&self) -> Result<VellumSession<'_>> {
        Ok(VellumSession {
            engine: self,
            transaction: None,
        })
    }

    fn checkpoint(&self) -> Result<()> {
        self.database.checkpoint().map_err(EngineError::failed)
    }

    fn statistics(&self) -> Statistics {
        let statistics = self.database.statistics();
        Statistics {
            log_bytes: statistics.log_bytes_written,
            pages_read: statistics.pages_read,
            pages_written: statistics.pages_written,
            more: vec![
                ("log_rounds", statistics.log_rounds),
                ("checkpoints", statistics.checkpoints),
                ("double_write_bytes", statistics.double_write_bytes),
                ("full_page_images", statistics.full_page_images),
                ("pages_durable", statistics.pages_durable),
                ("pages_of_versions", statistics.pages_of_versions),
                ("pages_resident", statistics.pages_resident),
                ("pages_free", statistics.pages_free),
                ("version_bytes", statistics.version_bytes),
                ("version_bytes_in_rows", statistics.version_bytes_in_rows),
                ("fat_pages_out", statistics.fat_pages_out),
                ("fat_pages_evicted", statistics.fat_pages_evicted),
                ("fat_pages_written", statistics.fat_pages_written),
                ("version_deltas", statistics.version_deltas),
                ("version_delta_bytes", statistics.version_delta_bytes),
                ("version_copies", statistics.version_copies),
                ("version_copy_bytes", statistics.version_copy_bytes),
                ("dropped_pages", statistics.dropped_pages),
                ("snapshots_withdrawn", statistics.snapshots_withdrawn),
                (
                    "snapshot_lag",
                    statistics.clock.saturating_sub(statistics.oldest_snapshot),
                ),
                ("log_bytes_in_use", statistics.log_bytes_in_use),
                ("tombstones", statistics.tombstones),
                ("rows_buried", statistics.rows_buried),
                ("index_operations", statistics.tree_searches),
            ],
        }
    }

    fn holders(&self) -> Vec<Holder> {
        // A sample without them is better than none.
        let holders = self.database.holders().unwrap_or_default();
        holders
            .into_iter()
            .map(|holder| Holder {
                transaction: holder.transaction.to_string(),
                class: if holder.analytical { "olap" } else { "oltp" },
                writer: holder.writer,
                age_ticks: holder.age_ticks,
                age_s: holder.age.as_secs_f64(),
                versions: holder.versions,
                version_bytes: holder.version_bytes,
                complete: holder.complete,
            })
            .collect()
    }

    fn old_versions(&self) -> (Vec<OldVersions>, bool) {
        let mut lines = Vec::new();
        // A sample without them is better than none.
        let Ok(found) = self.database.versions() else {
            return (lines, false);
        };
        for table in found.tables {
            for kind in VersionKind::ALL {
                let tally = table.sums.of(kind);
                if tally.count > 0 {
                    lines.push(OldVersions {
                        table: table.table.clone(),
                        kind: kind.name(),
                        count: tally.count,
                        bytes: tally.bytes,
                    });
                }
            }
        }
        (lines, found.complete)
    }

    fn leaf_pages(&self, table: Table) -> Option<u64> {
        let transaction = self.database.begin().ok()?;
        let pages = transaction.leaf_pages(&self.tables[table.position()]);
        transaction.rollback().ok()?;
        pages.ok()
    }

    fn describe(&self) -> Description {
        self.description.clone()
    }
}

/// A client: one transaction after another.
#[derive(Debug)]
pub struct VellumSession<'e> {
    engine: &'e VellumEngine,
    transaction: Option<vellum::Transaction>,
}

impl<'e> VellumSession<'e> {
    #[inline]
    fn parts(&self, table: Table) -> (&vellum::Transaction, &'e vellum::Table) {
        let transaction = self
            .transaction
            .as_ref()
            .expect("an operation inside a transaction");
        (transaction, &self.engine.tables[table.position()])
    }
}

/// The kinds of errors that a workload tells apart.
#[cold]
fn failed(table: Table) -> impl FnOnce(Error) -> EngineError {
    move |error| match error {
        Error::KeyExists { .. } => EngineError::KeyExists(table),
        error => failed_transaction(error),
    }
}

#[cold]
fn failed_transaction(error: Error) -> EngineError {
    match error {
        Error::Conflict => EngineError::Conflict,
        Error::SnapshotTooOld => EngineError::SnapshotTooOld,
        error => EngineError::failed(error),
    }
}

impl Session for VellumSession<'_> {
    #[inline]
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        debug_assert!(self.transaction.is_none(), "one transaction at a time");
        let class = match options.analytical {
            true => Class::Olap,
            false => Class::Auto,
        };
        let options = TransactionOptions::default()
            .isolation(match options.isolation {
                Isolation::Snapshot => vellum::Isolation::Snapshot,
                Isolation::ReadCommitted => vellum::Isolation::ReadCommitted,
            })
            .durability(self.engine.durability)
            .class(class)
            .read_only(options.read_only);
        let begun = self.engine.database.begin_with(options);
        self.transaction = Some(begun.map_err(failed_transaction)?);
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<()> {
        let transaction = self.transaction.take().expect("a transaction to commit");
        transaction.commit().map_err(failed_transaction)
    }

    fn rollback(&mut self) -> Result<()> {
        match self.transaction.take() {
            // A transaction that lost a conflict is rolled back already, or is so now.
            Some(transaction) => match transaction.rollback() {
                Ok(()) | Err(Error::TransactionOver { .. }) => Ok(()),
                Err(error) => Err(EngineError::failed(error)),
            },
            None => Ok(()),
        }
    }

    #[inline]
    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (transaction, handle) = self.parts(table);
        transaction.get(handle, key, read).map_err(failed(table))
    }

    #[inline]
    fn prefetch<'k>(&mut self, rows: impl IntoIterator<Item = (Table, &'k [u8])>) -> Result<()> {
        let transaction = self
            .transaction
            .as_ref()
            .expect("an operation inside a transaction");
        let tables = &self.engine.tables;
        let rows = rows.into_iter();
        transaction
            .prefetch(rows.map(|(table, key)| (&tables[table.position()], key)))
            .map_err(failed_transaction)
    }

    #[inline]
    fn get(&mut self, table: Table, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let (transaction, handle) = self.parts(table);
        transaction
            .get_into(handle, key, out)
            .map_err(failed(table))
    }

    #[inline]
    fn insert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let (transaction, handle) = self.parts(table);
        transaction
            .insert(handle, key, value)
            .map_err(failed(table))
    }

    #[inline]
    fn upsert(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let (transaction, handle) = self.parts(table);
        transaction
            .upsert(handle, key, value)
            .map(|_| ())
            .map_err(failed(table))
    }

    #[inline]
    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        ranges: &[Range<usize>],
        change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        let (transaction, handle) = self.parts(table);
        transaction
            .update(handle, key, ranges, change)
            .map_err(failed(table))
    }

    #[inline]
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        let (transaction, handle) = self.parts(table);
        transaction.delete(handle, key).map_err(failed(table))
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let (transaction, handle) = self.parts(table);
        let each = |key: &[u8], value: &[u8]| {
            if each(key, value) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let cursor = match direction {
            Direction::Forward => transaction.cursor(handle, from..),
            Direction::Backward => transaction.cursor(handle, ..=from),
        };
        let mut cursor = cursor.map_err(failed(table))?;
        let scanned = match direction {
            Direction::Forward => cursor.try_for_each(each),
            Direction::Backward => cursor.try_for_each_back(each),
        };
        scanned.map(drop).map_err(failed(table))
    }

    fn bulk_load(
        &mut self,
        table: Table,
        next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        let (transaction, handle) = self.parts(table);
        transaction.bulk_load(handle, next).map_err(failed(table))
    }
}
