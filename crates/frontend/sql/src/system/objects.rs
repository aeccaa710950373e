//! What functions tell of an object by its oid: properties of indexes, where a sequence stands, what it is in words.

use super::constraints;
use super::depend::{NAMESPACE, TYPE};
use super::describe;
use super::names::reg_text;
use crate::catalog::{Kind, Method, Oid};
use crate::error::{Result, SqlError};
use crate::roles::Rights;
use crate::session::Env;
use crate::sqlstate;
use vellum_row::{Array, Type, Value};

/// `pg_class`, `pg_constraint`.
const CLASS: Oid = 1259;
const CONSTRAINT: Oid = 2606;

fn known(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::Bool)
}

/// `pg_index_has_property`.
pub(super) fn index_property(env: &Env<'_>, oid: Oid, property: &str) -> Value {
    let Some((_, index)) = describe::index(env, oid) else {
        return Value::Null;
    };
    let method = index.method;
    known(Some(match property.to_ascii_lowercase().as_str() {
        "clusterable" => matches!(method, Method::BTree | Method::Gist),
        "index_scan" => !matches!(method, Method::Gin | Method::Brin),
        "bitmap_scan" => true,
        "backward_scan" => matches!(method, Method::BTree | Method::Hash),
        _ => return Value::Null,
    }))
}

/// `pg_index_column_has_property`.
pub(super) fn index_column_property(
    env: &Env<'_>,
    oid: Oid,
    number: Option<usize>,
    property: &str,
) -> Value {
    let found = describe::index(env, oid).zip(number.and_then(|number| number.checked_sub(1)));
    let Some(((_, index), at)) = found else {
        return Value::Null;
    };
    let property = property.to_ascii_lowercase();
    if let Some(column) = index.columns.get(at) {
        let ordered = index.method.is_ordered();
        return known(Some(match property.as_str() {
            "asc" => ordered && !column.descending,
            "desc" => ordered && column.descending,
            "nulls_first" => ordered && column.nulls_first,
            "nulls_last" => ordered && !column.nulls_first,
            "orderable" => ordered,
            "distance_orderable" => false,
            "returnable" => matches!(index.method, Method::BTree | Method::SpGist),
            "search_array" => ordered,
            "search_nulls" => !matches!(index.method, Method::Hash | Method::Gin),
            _ => return Value::Null,
        }));
    }
    if at >= index.columns.len() + index.include.len() {
        return Value::Null;
    }
    // One that is included.
    known(match property.as_str() {
        "orderable" | "distance_orderable" => Some(false),
        "returnable" => Some(true),
        _ => None,
    })
}

/// `pg_sequence_last_value`: null before the first value is drawn, and for who may not know.
///
/// # Errors
/// `42809`.
pub(super) fn sequence_last_value(env: &Env<'_>, oid: Oid) -> Result<Value> {
    let Some(relation) = env.catalog.relation(oid) else {
        return Ok(Value::Null);
    };
    let Kind::Sequence(sequence) = &relation.kind else {
        let message = format!("\"{}\" is not a sequence", relation.name);
        return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
    };
    let mut rights = [Rights::SELECT, Rights::USAGE].into_iter();
    if !rights.any(|right| env.rights.allows(env.acting.role, relation, right)) {
        return Ok(Value::Null);
    }
    let engine = &env.shared.engine;
    let state = crate::catalog::sequence_state(engine, sequence, &relation.runtime)?;
    Ok(match state.called {
        true => Value::Int8(state.last),
        false => Value::Null,
    })
}

/// The numbers of `pg_sequence_parameters`, in the order of its columns.
///
/// # Errors
/// `42P01`, `42809`; `42501` for who may do nothing with the sequence.
pub(super) fn sequence_parameters(env: &Env<'_>, oid: Oid) -> Result<Value> {
    let relation = env.catalog.relation(oid).ok_or_else(|| {
        let message = format!("relation with OID {oid} does not exist");
        SqlError::new(sqlstate::UNDEFINED_TABLE, message)
    })?;
    let Kind::Sequence(sequence) = &relation.kind else {
        let message = format!("\"{}\" is not a sequence", relation.name);
        return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
    };
    let mut rights = [Rights::SELECT, Rights::UPDATE, Rights::USAGE].into_iter();
    if !rights.any(|right| env.rights.allows(env.acting.role, relation, right)) {
        let message = format!("permission denied for sequence {}", relation.name);
        return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
    }
    let numbers = [
        sequence.start,
        sequence.minimum,
        sequence.maximum,
        sequence.increment,
        i64::from(sequence.cycle),
        sequence.cache,
        i64::from(sequence.type_oid),
    ];
    Ok(Value::Array(Array::of(
        Type::Int8,
        &numbers.map(Value::Int8),
    )))
}

/// `pg_describe_object`; null for what is not there.
pub(super) fn description(env: &Env<'_>, class: Oid, oid: Oid, column: i64) -> Value {
    let shown = match class {
        CLASS => relation(env, oid, column),
        NAMESPACE => {
            let found = env.catalog.namespace_by_oid(oid);
            found.map(|schema| format!("schema {}", schema.name))
        }
        TYPE => {
            let name = super::types::type_name(env.catalog, env.search_path, oid);
            name.map(|name| format!("type {name}"))
        }
        CONSTRAINT => constraint(env, oid),
        _ => describe::function_or_extension(env, class, oid),
    };
    shown.map_or(Value::Null, Value::text)
}

fn constraint(env: &Env<'_>, oid: Oid) -> Option<String> {
    let relations = env.catalog.relations();
    let mut all = relations.into_iter().flat_map(|own| constraints::of(own));
    let found = all.find(|constraint| constraint.oid == oid)?;
    let table = reg_text(env, Type::Regclass, found.relation.oid);
    Some(format!("constraint {} on table {table}", found.name))
}

fn relation(env: &Env<'_>, oid: Oid, column: i64) -> Option<String> {
    let name = reg_text(env, Type::Regclass, oid);
    if describe::index(env, oid).is_some() {
        return Some(format!("index {name}"));
    }
    let relation = env.catalog.relation(oid)?;
    let kind = match &relation.kind {
        Kind::Table(_) => "table",
        Kind::View(_) => "view",
        Kind::Sequence(_) => "sequence",
        Kind::System(definition) if definition.is_view => "view",
        Kind::System(_) => "table",
        Kind::Enum(_) | Kind::Domain(_) => return None,
    };
    if column == 0 {
        return Some(format!("{kind} {name}"));
    }
    let scan = super::Scan {
        catalog: env.catalog,
        env,
    };
    let columns = scan.columns(relation);
    let found = columns.iter().find(|own| i64::from(own.0) == column)?;
    Some(format!("column {} of {kind} {name}", found.1))
}
