//! Extensions: those that can be made, and those that are there.
//!
//! Not here: their functions (`types`).

use super::{Scan, Spec, text};
use crate::catalog::{Catalog, PLPGSQL_OID};
use crate::error::Result;
use crate::extension::{AVAILABLE, PLPGSQL, available as available_named};
use vellum_row::Value;

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

fn versions(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for own in &AVAILABLE {
        let there = scan.catalog.extension(own.name).is_some();
        let mut row = vec![text(own.name), text(own.version)];
        // Only a superuser could make it, were it not trusted.
        row.extend([there, true, true, own.relocatable].map(Value::Bool));
        row.push(own.schema.map_or(Value::Null, text));
        row.extend([Value::Null, text(own.comment)]);
        rows.push(row);
    }
    Ok(())
}

fn available(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for own in &AVAILABLE {
        let there = scan.catalog.extension(own.name);
        rows.push(vec![
            text(own.name),
            text(own.version),
            there.map_or(Value::Null, |there| text(&*there.version)),
            text(own.comment),
        ]);
    }
    Ok(())
}

fn installed(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for own in scan.catalog.extensions() {
        rows.push(vec![
            Value::Oid(own.oid),
            text(&*own.name),
            Value::Oid(own.owner),
            Value::Oid(own.namespace),
            Value::Bool(own.available().is_some_and(|own| own.relocatable)),
            text(&*own.version),
            Value::Null,
            Value::Null,
        ]);
    }
    Ok(())
}

/// What is said of the extension that is there from the start: what it is about, unless something else was said.
pub(super) fn said(catalog: &Catalog) -> &str {
    let about = available_named(PLPGSQL).map_or("", |own| own.comment);
    catalog.comment(PLPGSQL_OID, 0).map_or(about, |said| said)
}
