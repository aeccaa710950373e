//! Views of `pg_catalog` that list what other relations have, with names instead of oids.

use super::{Scan, Spec, describe, text};
use crate::catalog::{Kind, Relation, SequenceDefinition, Taken};
use crate::error::Result;
use crate::roles::Rights;
use vellum_row::Value;

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_tables",
        oid: 12033,
        view: true,
        columns: "schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules bool, \
         hastriggers bool, rowsecurity bool",
        fill: pg_tables,
    },
    Spec {
        name: "pg_indexes",
        oid: 12043,
        view: true,
        columns: "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
        fill: pg_indexes,
    },
    Spec {
        name: "pg_views",
        oid: 12028,
        view: true,
        columns: "schemaname name, viewname name, viewowner name, definition text",
        fill: pg_views,
    },
    Spec {
        name: "pg_sequences",
        oid: 12048,
        view: true,
        columns: "schemaname name, sequencename name, sequenceowner name, data_type regtype, start_value int8, min_value \
         int8, max_value int8, increment_by int8, cycle bool, cache_size int8, last_value int8",
        fill: pg_sequences,
    },
    // What `SELECT … FROM a_sequence` reads, of all of them.
    Spec {
        name: "vellum_sequences",
        oid: 12904,
        view: true,
        columns: "seqrelid oid, last_value int8, log_cnt int8, is_called bool",
        fill: vellum_sequences,
    },
];

fn pg_tables(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.catalog.relations() {
        let table = relation.table();
        let system = matches!(&relation.kind, Kind::System(definition) if !definition.is_view);
        if table.is_none() && !system {
            continue;
        }
        let has_keys = table.is_some_and(|table| {
            !table.foreign_keys.is_empty() || !scan.catalog.referring(relation.oid).is_empty()
        });
        rows.push(vec![
            scan.schema_of(relation),
            text(relation.name.clone()),
            scan.role_shown(relation.owner),
            Value::Null,
            Value::Bool(table.is_some_and(|table| !table.indexes.is_empty())),
            Value::Bool(false),
            Value::Bool(has_keys),
            Value::Bool(false),
        ]);
    }
    Ok(())
}

fn pg_indexes(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        for index in relation.table().map_or(&[][..], |table| &table.indexes) {
            let definition = describe::index_definition(scan.env, index.oid, 0, false);
            rows.push(vec![
                scan.schema_of(relation),
                text(relation.name.clone()),
                text(index.name.clone()),
                Value::Null,
                definition.map_or(Value::Null, text),
            ]);
        }
    }
    Ok(())
}

fn pg_views(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        if let Some(definition) = describe::view_definition(scan.env, relation.oid, false) {
            rows.push(vec![
                scan.schema_of(relation),
                text(relation.name.clone()),
                scan.role_shown(relation.owner),
                text(definition),
            ]);
        }
    }
    Ok(())
}

fn pg_sequences(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        let Kind::Sequence(sequence) = &relation.kind else {
            continue;
        };
        let state = sequence_state(scan, relation, sequence)?;
        let last = state.filter(|state| state.called).map(|state| state.last);
        rows.push(vec![
            scan.schema_of(relation),
            text(relation.name.clone()),
            scan.role_shown(relation.owner),
            Value::Oid(sequence.type_oid),
            Value::Int8(sequence.start),
            Value::Int8(sequence.minimum),
            Value::Int8(sequence.maximum),
            Value::Int8(sequence.increment),
            Value::Bool(sequence.cycle),
            Value::Int8(sequence.cache),
            last.map_or(Value::Null, Value::Int8),
        ]);
    }
    Ok(())
}

fn vellum_sequences(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        let Kind::Sequence(sequence) = &relation.kind else {
            continue;
        };
        if let Some(state) = sequence_state(scan, relation, sequence)? {
            rows.push(vec![
                Value::Oid(relation.oid),
                Value::Int8(state.last),
                Value::Int8(state.ahead as i64),
                Value::Bool(state.called),
            ]);
        }
    }
    Ok(())
}

/// Where a sequence stands, for who may know.
fn sequence_state(
    scan: &Scan<'_>,
    relation: &Relation,
    sequence: &SequenceDefinition,
) -> Result<Option<Taken>> {
    let user = scan.env.acting.role;
    let mut rights = [Rights::SELECT, Rights::USAGE].into_iter();
    if !rights.any(|right| scan.env.rights.allows(user, relation, right)) {
        return Ok(None);
    }
    let engine = &scan.env.shared.engine;
    crate::catalog::sequence_state(engine, sequence, &relation.runtime).map(Some)
}
