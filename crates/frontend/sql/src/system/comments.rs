//! What is said of objects: `pg_description`, `pg_shdescription`, `obj_description` and its like.

use super::roles::DATABASE_OID;
use super::{Scan, constraints, extensions, text};
use crate::catalog::{Catalog, Oid, PLPGSQL_OID};
use crate::error::Result;
use vellum_row::Value;

const CLASS: Oid = 1259;
const CONSTRAINT: Oid = 2606;
const NAMESPACE: Oid = 2615;
const TYPE: Oid = 1247;
pub(super) const ROLE: Oid = 1260;
const DATABASE: Oid = 1262;
const EXTENSION: Oid = 3079;

const LANGUAGE: Oid = 2612;
const METHOD: Oid = 2601;

/// What is said of parts of the program: the relation that has its row, its oid, the text.
const OF_PROGRAM: [(Oid, Oid, &str); 11] = [
    (LANGUAGE, 12, "built-in functions"),
    (LANGUAGE, 13, "dynamically-loaded C functions"),
    (LANGUAGE, 14, "SQL-language functions"),
    (LANGUAGE, 13_563, "PL/pgSQL procedural language"),
    (METHOD, 2, "heap table access method"),
    (METHOD, 403, "b-tree index access method"),
    (METHOD, 405, "hash index access method"),
    (METHOD, 783, "GiST index access method"),
    (METHOD, 2742, "GIN index access method"),
    (METHOD, 3580, "block range index (BRIN) access method"),
    (METHOD, 4000, "SP-GiST index access method"),
];

/// The relation that has the row of an object.
fn class_of(catalog: &Catalog, object: Oid) -> Oid {
    if object == DATABASE_OID {
        return DATABASE;
    }
    if catalog.extension_by_oid(object).is_some() {
        return EXTENSION;
    }
    if catalog.relation(object).is_some_and(|own| own.is_type()) {
        return TYPE;
    }
    if catalog.name_of(object).is_some() {
        return CLASS;
    }
    if catalog.namespace_by_oid(object).is_some() {
        return NAMESPACE;
    }
    if catalog.role_by_oid(object).is_some() {
        return ROLE;
    }
    let relations = catalog.relations().into_iter();
    let mut all = relations.flat_map(|relation| constraints::of(relation));
    match all.any(|constraint| constraint.oid == object) {
        true => CONSTRAINT,
        false => 0,
    }
}

fn is_of_all(class: Oid) -> bool {
    matches!(class, ROLE | DATABASE)
}

pub(super) fn described(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let extension = (PLPGSQL_OID, 0, extensions::said(scan.catalog));
    let all = scan.catalog.comments();
    let all = all.map(|(object, column, said)| (object, column, &**said));
    let others = all.filter(|(object, ..)| *object != PLPGSQL_OID);
    for (object, column, said) in others.chain([extension]) {
        let class = class_of(scan.catalog, object);
        if !is_of_all(class) {
            rows.push(vec![
                Value::Oid(object),
                Value::Oid(class),
                Value::Int4(column.into()),
                text(said),
            ]);
        }
    }
    rows.extend(OF_PROGRAM.map(|(class, object, said)| {
        vec![
            Value::Oid(object),
            Value::Oid(class),
            Value::Int4(0),
            text(said),
        ]
    }));
    Ok(())
}

pub(super) fn described_for_all(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for (object, _, said) in scan.catalog.comments() {
        let class = class_of(scan.catalog, object);
        if is_of_all(class) {
            rows.push(vec![Value::Oid(object), Value::Oid(class), text(&**said)]);
        }
    }
    Ok(())
}

/// What is said of an object of a catalog, or of whichever has this oid.
pub(super) fn of_object(catalog: &Catalog, object: Oid, of: Option<&str>) -> Value {
    let class = match of {
        None => None,
        Some("pg_class") => Some(CLASS),
        Some("pg_constraint") => Some(CONSTRAINT),
        Some("pg_namespace") => Some(NAMESPACE),
        Some("pg_type") => Some(TYPE),
        Some("pg_authid") => Some(ROLE),
        Some("pg_database") => Some(DATABASE),
        Some("pg_extension") => Some(EXTENSION),
        Some("pg_language") => Some(LANGUAGE),
        Some("pg_am") => Some(METHOD),
        Some(_) => return Value::Null,
    };
    if object == PLPGSQL_OID && class.is_none_or(|class| class == EXTENSION) {
        return text(extensions::said(catalog));
    }
    let mut program = OF_PROGRAM.iter();
    let found = program.find(|(own, oid, _)| class == Some(*own) && *oid == object);
    if let Some((.., said)) = found {
        return text(*said);
    }
    match catalog.comment(object, 0) {
        Some(said) if class.is_none_or(|class| class == class_of(catalog, object)) => text(&**said),
        _ => Value::Null,
    }
}

/// What is said of a column.
pub(super) fn of_column(catalog: &Catalog, object: Oid, column: i64) -> Value {
    let column = u16::try_from(column).ok().filter(|column| *column > 0);
    let said = column.and_then(|column| catalog.comment(object, column));
    said.map_or(Value::Null, |said| text(&**said))
}
