//! What is known of tables' rows: `pg_statistic` and `pg_stats`.
//!
//! Differences: of a column's values the least and the greatest are known, as a histogram of one part; there are no lists of common values.

use super::{Scan, Spec, text};
use crate::catalog::Relation;
use crate::error::Result;
use crate::statistics::{ColumnStatistics, TableStatistics};
use vellum_row::{Array, Type, Value, show};

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_statistic",
        oid: 2619,
        view: false,
        columns: "starelid oid, staattnum int2, stainherit bool, stanullfrac float4, stawidth int4, stadistinct float4, \
         stakind1 int2, stakind2 int2, stakind3 int2, stakind4 int2, stakind5 int2, staop1 oid, staop2 oid, staop3 oid, \
         staop4 oid, staop5 oid, stacoll1 oid, stacoll2 oid, stacoll3 oid, stacoll4 oid, stacoll5 oid, stanumbers1 _float4, \
         stanumbers2 _float4, stanumbers3 _float4, stanumbers4 _float4, stanumbers5 _float4, stavalues1 _text, stavalues2 \
         _text, stavalues3 _text, stavalues4 _text, stavalues5 _text",
        fill: pg_statistic,
    },
    Spec {
        name: "pg_stats",
        oid: 12075,
        view: true,
        columns: "schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4, n_distinct \
         float4, most_common_vals _text, most_common_freqs _float4, histogram_bounds _text, correlation float4, \
         most_common_elems _text, most_common_elem_freqs _float4, elem_count_histogram _float4",
        fill: pg_stats,
    },
];

/// Kind of a histogram in `pg_statistic`.
const HISTOGRAM: i16 = 2;

/// As a number of values, or, where they are many, as a negative part of the rows.
fn distinct(table: &TableStatistics, column: &ColumnStatistics) -> Value {
    let rows = table.rows as f64;
    Value::Float4(match column.distinct > rows * 0.1 && rows > 0.0 {
        true => -(column.distinct / rows) as f32,
        false => column.distinct as f32,
    })
}

fn width(column: &ColumnStatistics) -> Value {
    Value::Int4(column.width.round() as i32)
}

/// The least and the greatest value.
fn histogram(scan: &Scan<'_>, column: &ColumnStatistics) -> Value {
    let Some((least, greatest)) = &column.bounds else {
        return Value::Null;
    };
    let items = [least, greatest].map(|value| {
        let mut shown = String::new();
        show(value.as_ref(), scan.env.forms, &mut shown);
        text(shown)
    });
    Value::Array(Array::of(Type::Text, &items))
}

/// Calls `each` with every column that something is known of and that the asker may read.
fn columns(
    scan: &Scan<'_>,
    each: &mut dyn FnMut(&Relation, &TableStatistics, &ColumnStatistics, &vellum_row::Column),
) {
    for relation in scan.catalog.relations() {
        let user = scan.env.acting.role;
        let right = crate::roles::Rights::SELECT;
        let (Some(table), Some(known)) = (relation.table(), relation.runtime.statistics.get())
        else {
            continue;
        };
        if !scan.env.rights.allows(user, relation, right) {
            continue;
        }
        for column in table.schema.columns() {
            if let Some(found) = known.column(column.id) {
                each(relation, &known, found, column);
            }
        }
    }
}

fn pg_statistic(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    columns(scan, &mut |relation, known, found, column| {
        let histogram = histogram(scan, found);
        let kind = if histogram.is_null() { 0 } else { HISTOGRAM };
        let mut row = vec![
            Value::Oid(relation.oid),
            Value::Int2(column.id.0 as i16),
            Value::Bool(false),
            Value::Float4(found.nulls as f32),
            width(found),
            distinct(known, found),
            Value::Int2(kind),
        ];
        row.extend((0..4).map(|_| Value::Int2(0)));
        row.extend((0..10).map(|_| Value::Oid(0)));
        row.extend((0..5).map(|_| Value::Null));
        row.push(histogram);
        row.extend((0..4).map(|_| Value::Null));
        rows.push(row);
    });
    Ok(())
}

fn pg_stats(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    columns(scan, &mut |relation, known, found, column| {
        let schema = scan.catalog.namespace_by_oid(relation.namespace);
        let mut row = vec![
            text(schema.map_or("", |schema| &*schema.name)),
            text(&*relation.name),
            text(&*column.name),
            Value::Bool(false),
            Value::Float4(found.nulls as f32),
            width(found),
            distinct(known, found),
            Value::Null,
            Value::Null,
            histogram(scan, found),
        ];
        row.extend((0..4).map(|_| Value::Null));
        rows.push(row);
    });
    Ok(())
}
