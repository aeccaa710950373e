//! The types of tables' and views' rows in `pg_type`: clients ask for a relation that has one (`reltype`).
//!
//! Their oids are made of the relation's ([`derived_oid`]). No value is of such a type: rows are records.

use super::{Scan, derived_oid, names, text, types};
use crate::catalog::{Catalog, Kind, Oid, Relation};
use vellum_row::{Type, Value};

/// Numbers that no column has.
const ROW: u16 = 2046;
const ROWS: u16 = 2047;

/// The forms of records, and of arrays.
const RECORD_FORMS: [Oid; 4] = [2290, 2291, 2402, 2403];
const ARRAY_FORMS: [Oid; 4] = [750, 751, 2400, 2401];

/// The oids of the type of a relation's rows, and of arrays of it. What the database came with is shown without.
pub(super) fn of(relation: &Relation) -> Option<[Oid; 2]> {
    matches!(relation.kind, Kind::Table(_) | Kind::View(_))
        .then(|| [ROW, ROWS].map(|number| derived_oid(relation.oid, number)))
}

/// The name of the type of some relation's rows, or of arrays of it.
pub(super) fn name(catalog: &Catalog, search_path: &[Oid], oid: Oid) -> Option<String> {
    let relation = catalog.relation((oid & 0x7fff_ffff) / 2048)?;
    let [row, rows] = of(relation)?;
    let name = names::relation_name(catalog, search_path, relation.oid)?;
    match oid {
        _ if oid == row => Some(name),
        _ if oid == rows => Some(format!("{name}[]")),
        _ => None,
    }
}

/// Their rows in `pg_type`.
pub(super) fn rows(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) {
    for relation in scan.user_relations() {
        let Some([row, array]) = of(relation) else {
            continue;
        };
        let mut own = types::type_row(Type::Record);
        own[0] = Value::Oid(row);
        own[1] = text(relation.name.clone());
        (own[2], own[3]) = (Value::Oid(relation.namespace), Value::Oid(relation.owner));
        (own[4], own[5]) = (Value::Int2(-1), Value::Bool(false));
        (own[6], own[7], own[8]) = (text("c"), text("C"), Value::Bool(false));
        (own[11], own[12], own[13]) = (Value::Oid(relation.oid), Value::Oid(0), Value::Oid(0));
        own[14] = Value::Oid(array);
        for (at, oid) in (15..19).zip(RECORD_FORMS) {
            own[at] = Value::Oid(oid);
        }
        (own[22], own[23]) = (text("d"), text("x"));
        let mut all = own.clone();
        all[0] = Value::Oid(array);
        // As long as names are.
        let name = format!("_{}", relation.name);
        let end = name.floor_char_boundary(63);
        all[1] = text(&name[..end]);
        (all[6], all[7]) = (text("b"), text("A"));
        (all[11], all[12]) = (Value::Oid(0), Value::Oid(6179));
        (all[13], all[14]) = (Value::Oid(row), Value::Oid(0));
        for (at, oid) in (15..19).zip(ARRAY_FORMS) {
            all[at] = Value::Oid(oid);
        }
        rows.extend([own, all]);
    }
}
