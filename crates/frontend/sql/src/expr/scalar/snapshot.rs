//! Functions of `pg_snapshot` and `txid_snapshot`.

use super::{Arguments, Entry, strict};
use crate::error::Result;
use vellum_row::{Snapshot, Value};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(5062, "pg_snapshot_xmin", "pg_snapshot", "xid8", |a| Ok(number(snapshot(a, 0)?.xmin()))),
    strict(5063, "pg_snapshot_xmax", "pg_snapshot", "xid8", |a| Ok(number(snapshot(a, 0)?.xmax()))),
    strict(5065, "pg_visible_in_snapshot", "xid8 pg_snapshot", "bool", is_seen),
    strict(2945, "txid_snapshot_xmin", "txid_snapshot", "int8", |a| Ok(number(snapshot(a, 0)?.xmin()))),
    strict(2946, "txid_snapshot_xmax", "txid_snapshot", "int8", |a| Ok(number(snapshot(a, 0)?.xmax()))),
    strict(2948, "txid_visible_in_snapshot", "int8 txid_snapshot", "bool", is_seen),
];

fn snapshot(a: &Arguments<'_>, at: usize) -> Result<Snapshot> {
    Ok(Snapshot::parse(a.text(at))?)
}

/// A number as it is held; none that a snapshot has is beyond.
pub(super) fn number(number: u64) -> Value {
    Value::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}

fn is_seen(a: &Arguments<'_>) -> Result<Value> {
    let own = u64::try_from(a.long(0)).unwrap_or(0);
    Ok(Value::Bool(snapshot(a, 1)?.sees(own)))
}
