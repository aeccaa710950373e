//! How tables, indexes and sequences are used: `pg_stat_*` and `pg_statio_*`. They say which there are; what Vellum does not count of each is NULL.

use super::{Scan, Spec, text};
use crate::catalog::{INFORMATION_SCHEMA, Kind, PG_CATALOG, Relation};
use crate::error::Result;
use std::sync::Arc;
use vellum_row::Value;

/// Columns of `pg_stat_xact_*_tables`; the first ones of `pg_stat_*_tables`.
const XACT: &str = "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch \
    int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8";

/// Columns of `pg_stat_*_tables`.
const TABLES: &str = "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch \
    int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup \
    int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum \
    timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count \
    int8, analyze_count int8, autoanalyze_count int8";

/// Columns of `pg_statio_*_tables`.
const TABLES_IO: &str = "relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8, \
    idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8";

/// Columns of `pg_stat_*_indexes`.
const INDEXES: &str = "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read \
    int8, idx_tup_fetch int8";

/// Columns of `pg_statio_*_indexes`.
const INDEXES_IO: &str = "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, idx_blks_hit int8";

/// Columns of `pg_statio_*_sequences`.
const SEQUENCES_IO: &str =
    "relid oid, schemaname name, relname name, blks_read int8, blks_hit int8";

/// Whose relations a view tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    All,
    System,
    Users,
}

type Fill = fn(&Scan<'_>, &mut Vec<Vec<Value>>) -> Result<()>;

const fn view(name: &'static str, oid: u32, columns: &'static str, fill: Fill) -> Spec {
    Spec {
        name,
        oid,
        view: true,
        columns,
        fill,
    }
}

/// Views of tables for all, the system's and users' own: their names, oids and columns.
macro_rules! views {
    ($rows:ident, $columns:expr, $all:expr, $system:expr, $users:expr) => {
        [
            view($all.0, $all.1, $columns, |scan, rows| {
                $rows(scan, Whose::All, $columns, rows)
            }),
            view($system.0, $system.1, $columns, |scan, rows| {
                $rows(scan, Whose::System, $columns, rows)
            }),
            view($users.0, $users.1, $columns, |scan, rows| {
                $rows(scan, Whose::Users, $columns, rows)
            }),
        ]
    };
}

pub(super) const RELATIONS: &[[Spec; 3]] = &[
    views!(
        tables,
        TABLES,
        ("pg_stat_all_tables", 12142),
        ("pg_stat_sys_tables", 12152),
        ("pg_stat_user_tables", 12161)
    ),
    views!(
        tables,
        XACT,
        ("pg_stat_xact_all_tables", 12147),
        ("pg_stat_xact_sys_tables", 12157),
        ("pg_stat_xact_user_tables", 12166)
    ),
    views!(
        tables,
        TABLES_IO,
        ("pg_statio_all_tables", 12170),
        ("pg_statio_sys_tables", 12175),
        ("pg_statio_user_tables", 12179)
    ),
    views!(
        indexes,
        INDEXES,
        ("pg_stat_all_indexes", 12183),
        ("pg_stat_sys_indexes", 12188),
        ("pg_stat_user_indexes", 12192)
    ),
    views!(
        indexes,
        INDEXES_IO,
        ("pg_statio_all_indexes", 12196),
        ("pg_statio_sys_indexes", 12201),
        ("pg_statio_user_indexes", 12205)
    ),
    views!(
        sequences,
        SEQUENCES_IO,
        ("pg_statio_all_sequences", 12209),
        ("pg_statio_sys_sequences", 12214),
        ("pg_statio_user_sequences", 12218)
    ),
];

/// The relations of this kind that a view tells of.
fn told<'s>(
    scan: &'s Scan<'_>,
    whose: Whose,
    is_kind: fn(&Kind) -> bool,
) -> impl Iterator<Item = &'s Arc<Relation>> {
    let all = scan.catalog.relations().into_iter();
    all.filter(move |relation| {
        let system = matches!(relation.namespace, PG_CATALOG | INFORMATION_SCHEMA);
        let wanted = match whose {
            Whose::All => true,
            Whose::System => system,
            Whose::Users => !system,
        };
        wanted && is_kind(&relation.kind)
    })
}

/// A row that begins with these values, and has NULL in its other columns.
fn row_of(columns: &str, mut known: Vec<Value>) -> Vec<Value> {
    known.resize(columns.split(',').count(), Value::Null);
    known
}

fn tables(scan: &Scan<'_>, whose: Whose, columns: &str, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let is_table = |kind: &Kind| match kind {
        Kind::Table(_) => true,
        Kind::System(definition) => !definition.is_view,
        _ => false,
    };
    for relation in told(scan, whose, is_table) {
        let known = vec![
            Value::Oid(relation.oid),
            scan.schema_of(relation),
            text(relation.name.clone()),
        ];
        rows.push(row_of(columns, known));
    }
    Ok(())
}

fn indexes(scan: &Scan<'_>, whose: Whose, columns: &str, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in told(scan, whose, |kind| matches!(kind, Kind::Table(_))) {
        for index in relation.table().map_or(&[][..], |table| &table.indexes) {
            let known = vec![
                Value::Oid(relation.oid),
                Value::Oid(index.oid),
                scan.schema_of(relation),
                text(relation.name.clone()),
                text(index.name.clone()),
            ];
            rows.push(row_of(columns, known));
        }
    }
    Ok(())
}

fn sequences(
    scan: &Scan<'_>,
    whose: Whose,
    columns: &str,
    rows: &mut Vec<Vec<Value>>,
) -> Result<()> {
    for relation in told(scan, whose, |kind| matches!(kind, Kind::Sequence(_))) {
        let known = vec![
            Value::Oid(relation.oid),
            scan.schema_of(relation),
            text(relation.name.clone()),
        ];
        rows.push(row_of(columns, known));
    }
    Ok(())
}
