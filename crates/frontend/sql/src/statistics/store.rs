//! The rows that statistics are kept in.
//!
//! Layout (little-endian): rows of the engine table [`TABLE`]; key: the relation's oid, big-endian; value: `u8 version = 1, u64 rows, u16 count`,
//! then a column each: `u16 number, f64 nulls, f64 distinct, f64 width, u8 bounds`, and if there are bounds the type's oid as `u32` and twice
//! `u32 length` and the value's binary form.

use super::{ColumnStatistics, TableStatistics};
use crate::catalog::{Catalog, Oid};
use crate::error::Result;
use vellum::{Database, Durability, Error, Transaction, TransactionOptions};
use vellum_base::codec::{Put, Reader};
use vellum_row::{ColumnId, Type, Typmod, Value, receive, send};

/// The engine table.
const TABLE: &str = "sql.statistics";
const VERSION: u8 = 1;

fn open(transaction: &Transaction) -> vellum::Result<Option<vellum::Table>> {
    match transaction.table(TABLE) {
        Ok(table) => Ok(Some(table)),
        Err(Error::NoSuchTable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes what a new or older database lacks.
///
/// # Errors
/// What the engine reports.
pub(crate) fn create(transaction: &Transaction) -> vellum::Result<()> {
    match open(transaction)? {
        Some(_) => Ok(()),
        None => transaction.create_table(TABLE).map(drop),
    }
}

/// Changes rows in a transaction of its own, which nobody waits for.
fn change(
    engine: &Database,
    work: impl Fn(&Transaction, &vellum::Table) -> vellum::Result<()>,
) -> vellum::Result<()> {
    let options = TransactionOptions::default().durability(Durability::Async);
    engine.retry_with(options, |transaction| match open(transaction)? {
        Some(table) => work(transaction, &table),
        None => Ok(()),
    })
}

/// Writes those of a table.
///
/// # Errors
/// What the engine reports.
pub(super) fn save(
    engine: &Database,
    oid: Oid,
    statistics: &TableStatistics,
) -> vellum::Result<()> {
    let value = encode(statistics);
    change(engine, |transaction, table| {
        transaction
            .upsert(table, &oid.to_be_bytes(), &value)
            .map(drop)
    })
}

/// Takes away those of tables that are gone, if there are any.
///
/// # Errors
/// What the engine reports; they go when the database is opened again.
pub(crate) fn remove(engine: &Database, gone: &[Oid]) -> vellum::Result<()> {
    if gone.is_empty() {
        return Ok(());
    }
    change(engine, |transaction, table| {
        let mut gone = gone.iter();
        gone.try_for_each(|oid| transaction.delete(table, &oid.to_be_bytes()).map(drop))
    })
}

/// Gives tables what was kept of them. What cannot be read is passed over: it will be made again. Returns the oids of rows that have no table.
///
/// # Errors
/// Storage errors.
pub(crate) fn load(transaction: &Transaction, catalog: &Catalog) -> Result<Vec<Oid>> {
    let mut gone = Vec::new();
    let Some(table) = open(transaction)? else {
        return Ok(gone);
    };
    let mut cursor = transaction.cursor(&table, ..)?;
    while let Some((key, value)) = cursor.next()? {
        let Ok(oid) = key.try_into().map(Oid::from_be_bytes) else {
            continue;
        };
        let relation = catalog.relation(oid);
        match relation.filter(|relation| relation.table().is_some()) {
            None => gone.push(oid),
            Some(relation) => {
                if let Some(found) = decode(value) {
                    relation.runtime.statistics.set(found);
                }
            }
        }
    }
    Ok(gone)
}

fn put_f64(out: &mut Vec<u8>, value: f64) {
    out.put_u64(value.to_bits());
}

fn encode(statistics: &TableStatistics) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.put_u64(statistics.rows);
    out.put_u16(statistics.columns.len() as u16);
    for column in &statistics.columns {
        out.put_u16(column.column.0);
        put_f64(&mut out, column.nulls);
        put_f64(&mut out, column.distinct);
        put_f64(&mut out, column.width);
        let bounds = column.bounds.as_ref();
        let Some((ty, (least, greatest))) = bounds.and_then(|pair| Some((pair.0.ty()?, pair)))
        else {
            out.push(0);
            continue;
        };
        let sent = [least, greatest].map(|value| {
            let mut bytes = Vec::new();
            send(value.as_ref(), &mut bytes).map(|()| bytes)
        });
        // What is too long to be told is not kept.
        let [Ok(least), Ok(greatest)] = sent else {
            out.push(0);
            continue;
        };
        out.push(1);
        out.put_u32(ty.oid());
        for bytes in [least, greatest] {
            out.put_u32(bytes.len() as u32);
            out.put(&bytes);
        }
    }
    out
}

fn decode(bytes: &[u8]) -> Option<TableStatistics> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != VERSION {
        return None;
    }
    let rows = reader.u64()?;
    let count = reader.u16()?;
    let mut columns = Vec::with_capacity(count.into());
    for _ in 0..count {
        let mut column = ColumnStatistics {
            column: ColumnId(reader.u16()?),
            nulls: f64::from_bits(reader.u64()?),
            distinct: f64::from_bits(reader.u64()?),
            width: f64::from_bits(reader.u64()?),
            bounds: None,
        };
        if reader.u8()? == 1 {
            let ty = Type::from_oid(reader.u32()?)?;
            let mut value = || -> Option<Value> {
                let length = reader.u32()? as usize;
                receive(ty, Typmod::NONE, reader.bytes(length)?).ok()
            };
            column.bounds = Some((value()?, value()?));
        }
        columns.push(column);
    }
    Some(TableStatistics { rows, columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_is_passed_over() {
        let column = |number, bounds| ColumnStatistics {
            column: ColumnId(number),
            nulls: 0.25,
            distinct: 17.0,
            width: 4.5,
            bounds,
        };
        let bounds = Some((Value::Int4(-3), Value::Int4(9)));
        let text = Some((Value::text("a"), Value::text("zz")));
        let statistics = TableStatistics {
            rows: 1 << 40,
            columns: vec![column(1, bounds), column(2, None), column(7, text)],
        };
        let bytes = encode(&statistics);
        assert_eq!(decode(&bytes), Some(statistics));
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None, "{length} bytes");
        }
    }
}
