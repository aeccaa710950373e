//! Making statistics: the rows are counted, every so many is looked at.
//!
//! Paper: Haas and Stokes, "Estimating the number of classes in a finite population", 1998, estimator Duj1, as PostgreSQL has it.

use super::{ColumnStatistics, TableStatistics};
use crate::catalog::Table;
use crate::error::Result;
use vellum::Transaction;
use vellum_base::maps::HashMap;
use vellum_row::{Value, ValueRef, compare, send};

/// Rows that are looked at, about.
const SAMPLE_ROWS: u64 = 20_000;
/// Bytes of a value that bounds are kept of, at most.
const BOUND_BYTES: usize = 256;

/// What of a column was seen.
#[derive(Default)]
struct Seen {
    nulls: u64,
    bytes: u64,
    bounds: Option<(Value, Value)>,
    /// How often each value came, by its hash.
    values: HashMap<u64, u32>,
}

/// Reads a table twice: once to count.
///
/// # Errors
/// Storage errors.
pub(crate) fn measure(table: &Table, transaction: &Transaction) -> Result<TableStatistics> {
    let storage = table.storage.table(transaction)?;
    let rows = transaction.count(storage, ..)?;
    let step = (rows / SAMPLE_ROWS).max(1);
    let columns: Vec<_> = table.schema.columns().collect();
    let mut seen: Vec<Seen> = columns.iter().map(|_| Seen::default()).collect();
    let (mut at, mut sampled) = (0u64, 0u64);
    let mut failed = Ok(());
    let mut bytes = Vec::new();
    let mut cursor = transaction.cursor(storage, ..)?;
    while failed.is_ok()
        && cursor.batch(|_, row| {
            at += 1;
            if !at.is_multiple_of(step) || failed.is_err() {
                return;
            }
            sampled += 1;
            failed = (|| -> Result<()> {
                let row = table.schema.view(row)?;
                for (position, seen) in seen.iter_mut().enumerate() {
                    seen.add(row.get(position)?, &mut bytes);
                }
                Ok(())
            })();
        })? > 0
    {}
    failed?;
    let columns = columns.into_iter().zip(seen);
    let columns = columns.map(|(column, seen)| {
        let found = sampled - seen.nulls;
        let once = seen.values.values().filter(|count| **count == 1).count() as u64;
        let key = table.primary_key();
        let alone = key.is_some_and(|key| {
            key.columns.len() == 1 && key.columns[0].column() == Some(column.id)
        });
        let distinct = match alone {
            true => rows as f64,
            false => estimated(found, seen.values.len() as u64, once, rows),
        };
        ColumnStatistics {
            column: column.id,
            nulls: ratio(seen.nulls, sampled),
            distinct,
            width: ratio(seen.bytes, found),
            bounds: seen.bounds,
        }
    });
    Ok(TableStatistics {
        rows,
        columns: columns.collect(),
    })
}

fn ratio(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// How many different values a table of `rows` rows has if a sample has `distinct` and `once` of them only once.
fn estimated(sample: u64, distinct: u64, once: u64, rows: u64) -> f64 {
    if sample == 0 {
        return 0.0;
    }
    let (n, d, f1, all) = (sample as f64, distinct as f64, once as f64, rows as f64);
    let found = n * d / (n - f1 + f1 * n / all);
    found.clamp(d, all)
}

impl Seen {
    fn add(&mut self, value: ValueRef<'_>, bytes: &mut Vec<u8>) {
        if value.is_null() {
            self.nulls += 1;
            return;
        }
        bytes.clear();
        // What is too long to be told is counted as far as it goes.
        let _ = send(value, bytes);
        self.bytes += bytes.len() as u64;
        let mut hasher = std::hash::DefaultHasher::new();
        vellum_row::hash(value, &mut hasher);
        *self
            .values
            .entry(std::hash::Hasher::finish(&hasher))
            .or_default() += 1;
        if bytes.len() > BOUND_BYTES || !value.ty().is_some_and(vellum_row::Type::is_orderable) {
            return;
        }
        match &mut self.bounds {
            None => self.bounds = Some((value.to_value(), value.to_value())),
            Some((least, greatest)) => {
                if compare(value, least.as_ref()).is_lt() {
                    *least = value.to_value();
                } else if compare(value, greatest.as_ref()).is_gt() {
                    *greatest = value.to_value();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::estimated;

    #[test]
    fn different_values_are_estimated_from_those_that_came_once() {
        // All different: so are all others.
        assert!(estimated(1000, 1000, 1000, 50_000) > 49_000.0);
        // None came once: there are no others.
        assert!((estimated(1000, 7, 0, 50_000) - 7.0).abs() < 1e-9);
        // A whole table.
        assert!((estimated(100, 60, 30, 100) - 60.0).abs() < 1e-9);
        assert!(estimated(0, 0, 0, 0).abs() < 1e-9);
    }
}
