//! Extensions: the one that is there from the start, as in PostgreSQL. Functions in its language cannot be made.

use super::{Scan, Spec, text};
use crate::catalog::{Catalog, Oid, PG_CATALOG};
use crate::error::Result;
use vellum_row::Value;

/// Its name, and that of its language.
pub(crate) const PLPGSQL: &str = "plpgsql";
/// Oid of the extension.
pub(crate) const PLPGSQL_OID: Oid = 13_559;

const VERSION: &str = "1.0";
const ABOUT: &str = "PL/pgSQL procedural language";

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_available_extension_versions",
        oid: 12085,
        view: true,
        columns: "name name, version text, installed bool, superuser bool, trusted bool, relocatable bool, schema name, \
         requires _name, comment text",
        fill: versions,
    },
    Spec {
        name: "pg_available_extensions",
        oid: 12081,
        view: true,
        columns: "name name, default_version text, installed_version text, comment text",
        fill: available,
    },
    Spec {
        name: "pg_extension",
        oid: 3079,
        view: false,
        columns: "oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool, extversion text, extconfig \
         _oid, extcondition _text",
        fill: installed,
    },
];

fn versions(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let mut row = vec![text(PLPGSQL), text(VERSION)];
    row.extend([true, true, true, false].map(Value::Bool));
    row.extend([text("pg_catalog"), Value::Null, text(ABOUT)]);
    rows.push(row);
    Ok(())
}

fn available(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    rows.push([PLPGSQL, VERSION, VERSION, ABOUT].map(text).to_vec());
    Ok(())
}

fn installed(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    rows.push(vec![
        Value::Oid(PLPGSQL_OID),
        text(PLPGSQL),
        Value::Oid(super::types::OWNER),
        Value::Oid(PG_CATALOG),
        Value::Bool(false),
        text(VERSION),
        Value::Null,
        Value::Null,
    ]);
    Ok(())
}

/// What is said of the extension: what it is about, unless something else was said.
pub(super) fn said(catalog: &Catalog) -> &str {
    let said = catalog.comment(PLPGSQL_OID, 0);
    said.map_or(ABOUT, |said| said)
}
