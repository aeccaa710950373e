//! Statistics of tables: how many rows, and what their columns hold, about. Plans are chosen by them; no answer depends on them.
//!
//! States: a table has none until ANALYZE, or until the first query that wants them looks ([`of`]); they are made anew by ANALYZE, and by
//! such a query once a tenth of the rows has changed. Rows are counted; columns are known from a sample.
//!
//! They are no part of the transaction that finds them, nor of the one that drops their table: one that lasts would be in the way of whoever else makes or drops them, and
//! a row that is newer than a snapshot in that of its transaction. They are written in a small one of their own, and removed behind the commit of the DROP.
//! Kept are those of tables that all sessions have and that last.
//!
//! Crash: whose row is lost, they are made again. A row that stays behind its table goes when the database is opened.
//!
//! Concurrency: readers take what stands in the relation's [`Runtime`](crate::catalog::Runtime), whatever their snapshot: an estimate may be newer
//! than what it estimates.
//!
//! Not here: what is made of them (`general::order`).

mod sample;
mod store;

pub(crate) use sample::measure;
pub(crate) use store::{create, load, remove};

use crate::catalog::{Published, Relation};
use crate::error::Result;
use std::sync::Arc;
use vellum::{Database, Transaction};
use vellum_row::{ColumnId, Value};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// Of a table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TableStatistics {
    pub rows: u64,
    pub columns: Vec<ColumnStatistics>,
}

/// Of a column.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ColumnStatistics {
    pub column: ColumnId,
    /// Part of the rows in which it is null, 0 to 1.
    pub nulls: f64,
    /// How many different values there are.
    pub distinct: f64,
    /// Bytes of a value in the mean.
    pub width: f64,
    /// The least and the greatest value that was seen.
    pub bounds: Option<(Value, Value)>,
}

impl TableStatistics {
    /// Those of a column.
    pub fn column(&self, column: ColumnId) -> Option<&ColumnStatistics> {
        self.columns.iter().find(|known| known.column == column)
    }
}

/// What a relation's runtime keeps.
#[derive(Debug, Default)]
pub(crate) struct Known {
    statistics: Mutex<Option<Arc<TableStatistics>>>,
    /// Rows that were changed since.
    changed: AtomicU64,
}

impl Known {
    /// As they are.
    pub fn get(&self) -> Option<Arc<TableStatistics>> {
        self.statistics.lock().clone()
    }

    /// New ones.
    pub fn set(&self, statistics: TableStatistics) {
        *self.statistics.lock() = Some(Arc::new(statistics));
        self.changed.store(0, Ordering::Relaxed);
    }

    /// Rows were changed. Relaxed: it is an estimate.
    pub fn note_changed(&self, rows: u64) {
        self.changed.fetch_add(rows, Ordering::Relaxed);
    }

    /// Rows that were changed since they were made.
    pub fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }

    /// Good ones; none if too much has changed, as PostgreSQL counts it.
    fn fresh(&self) -> Option<Arc<TableStatistics>> {
        let found = self.get()?;
        (self.changed() <= 50 + found.rows / 10).then_some(found)
    }
}

/// Statistics of a table, made if there are none that are good. Reads the table once then.
///
/// # Errors
/// Storage errors.
pub(crate) fn of(
    relation: &Relation,
    kept_in: (&Database, &Published),
    transaction: &Transaction,
) -> Result<Option<Arc<TableStatistics>>> {
    let known = &relation.runtime.statistics;
    if let Some(found) = known.fresh() {
        return Ok(Some(found));
    }
    let Some(table) = relation.table() else {
        return Ok(None);
    };
    keep(relation, kept_in, measure(table, transaction)?);
    Ok(known.get())
}

/// Gives a table new ones, which are there when the database is opened again if the table is.
pub(crate) fn keep(
    relation: &Relation,
    (engine, published): (&Database, &Published),
    made: TableStatistics,
) {
    let now = published.now();
    if now.relation(relation.oid).is_some() && !now.is_temporary(relation.namespace) {
        // A loss of them costs nothing but making them: so does a disk that is full.
        let _ = store::save(engine, relation.oid, &made);
    }
    relation.runtime.statistics.set(made);
}
