//! System relations: `pg_catalog` and `information_schema` as relations that any query reads. Each is columns and a function that
//! yields its rows, from the image of the catalog that belongs to the transaction's snapshot and from what the database counts.
//!
//! Oids: those of PostgreSQL 15 for its own relations, types and functions. What has no oid in the catalog (defaults, rules) gets one made of
//! its relation's ([`derived_oid`]): the same as long as the relation lives.
//!
//! Differences: a relation whose objects Vellum does not have is there and empty (`empty`). Columns of types that it does not have (as
//! `anyarray`) are `text`.
//!
//! Not here: joining and filtering them (`exec`), the functions that queries of them call (`describe`, `expr::catalog_function`).

mod activity;
mod backup;
mod built_in;
mod casts;
mod collations;
mod comments;
mod constraints;
mod deparse;
mod deparse_over;
mod depend;
mod describe;
mod domains;
mod empty;
mod extensions;
mod forms;
mod functions;
mod has_rights;
mod information;
mod keywords;
mod listings;
mod locks;
mod names;
mod objects;
mod operators;
mod privileges;
mod relations;
mod roles;
mod row_types;
mod signals;
mod statistics;
mod triggers;
mod types;
mod usage;
mod uses;
mod view_text;
mod zones;

pub(crate) use deparse::Writer;
pub(crate) use deparse_over::{exact_expression_over, part_text};
pub(crate) use functions::ask;
pub(crate) use keywords::keywords;
pub(crate) use names::{
    check_place, no_such, number_in, parse_reg, parse_reg_in, reg_text, reg_text_in,
};
pub(crate) use roles::DATABASE_OID;
pub(crate) use triggers::trigger_oid;
pub(crate) use types::{function_of, functions_named};

use crate::catalog::{Catalog, Kind, Oid, PG_CATALOG, Relation};
use crate::error::Result;
use crate::session::Env;
use std::sync::{Arc, LazyLock};
use vellum_row::{Type, Typmod, Value};

/// A system relation.
#[derive(Debug)]
pub(crate) struct Definition {
    pub oid: Oid,
    pub namespace: Oid,
    pub name: &'static str,
    pub is_view: bool,
    pub columns: Box<[Column]>,
    fill: Fill,
}

/// A column of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub name: &'static str,
    pub ty: Type,
}

/// What yields the rows.
type Fill = fn(&Scan<'_>, &mut Vec<Vec<Value>>) -> Result<()>;

/// A system relation as it is written down.
struct Spec {
    name: &'static str,
    oid: Oid,
    view: bool,
    /// Name and `typname` of each.
    columns: &'static str,
    fill: Fill,
}

/// What rows are made from.
pub(crate) struct Scan<'s> {
    pub catalog: &'s Catalog,
    pub env: &'s Env<'s>,
}

/// All of them, by oid.
pub(crate) static RELATIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let in_pg_catalog = [
        relations::RELATIONS,
        constraints::RELATIONS,
        depend::RELATIONS,
        types::RELATIONS,
        roles::RELATIONS,
        listings::RELATIONS,
        activity::RELATIONS,
        locks::RELATIONS,
        statistics::RELATIONS,
        zones::RELATIONS,
        empty::RELATIONS,
        extensions::RELATIONS,
        triggers::RELATIONS,
        privileges::CATALOG,
    ];
    let information = [
        information::RELATIONS,
        domains::INFORMATION,
        information::EMPTY,
        privileges::INFORMATION,
        uses::INFORMATION,
    ];
    let pg = in_pg_catalog.into_iter().flatten();
    let pg = pg.chain(usage::RELATIONS.as_flattened());
    let pg = pg.map(|spec| define(spec, PG_CATALOG));
    let information = information.into_iter().flatten();
    let information = information.map(|spec| define(spec, crate::catalog::INFORMATION_SCHEMA));
    let mut all: Vec<Definition> = pg.chain(information).collect();
    all.sort_by_key(|definition| definition.oid);
    all
});

fn define(spec: &Spec, namespace: Oid) -> Definition {
    let columns = spec.columns.split(',').map(|column| {
        let (name, ty) = column.trim().split_once(' ').unwrap_or((column, ""));
        // Both are in this crate: the first query of any of them looks at all.
        let ty = Type::from_name(ty.trim());
        debug_assert!(ty.is_some(), "{}: {column}", spec.name);
        Column {
            name,
            ty: ty.unwrap_or(Type::Text),
        }
    });
    Definition {
        oid: spec.oid,
        namespace,
        name: spec.name,
        is_view: spec.view,
        columns: columns.collect(),
        fill: spec.fill,
    }
}

impl Definition {
    /// Its rows.
    ///
    /// # Errors
    /// Storage errors; `XX001` for damaged catalog rows.
    pub fn rows(&self, scan: &Scan<'_>) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        (self.fill)(scan, &mut rows)?;
        debug_assert!(
            rows.iter().all(|row| row.len() == self.columns.len()
                && row
                    .iter()
                    .zip(&self.columns)
                    .all(|(value, column)| value.as_ref().fits(column.ty))),
            "rows of {}",
            self.name
        );
        Ok(rows)
    }
}

impl Scan<'_> {
    /// The name of a role, as it is now.
    fn role_shown(&self, role: Oid) -> Value {
        Value::text(self.env.rights.role_name(role))
    }

    /// Columns of anything that has some: name, type, modifier, whether null may be in it.
    pub fn columns(&self, relation: &Relation) -> Vec<(i16, Box<str>, Type, Typmod, bool)> {
        match &relation.kind {
            Kind::Table(table) => {
                let columns = table.schema.columns();
                columns
                    .map(|column| {
                        let number = column.id.0 as i16;
                        (
                            number,
                            column.name.clone(),
                            column.ty,
                            column.typmod,
                            column.nullable,
                        )
                    })
                    .collect()
            }
            Kind::View(view) => {
                let types = self.env.view_types(view);
                let typed = view.columns.iter().zip(types);
                (1..)
                    .zip(typed)
                    .map(|(number, (name, (ty, typmod)))| (number, name.clone(), ty, typmod, true))
                    .collect()
            }
            Kind::Sequence(_) => {
                let columns = [
                    ("last_value", Type::Int8),
                    ("log_cnt", Type::Int8),
                    ("is_called", Type::Bool),
                ];
                (1..)
                    .zip(columns)
                    .map(|(number, (name, ty))| (number, name.into(), ty, Typmod::NONE, false))
                    .collect()
            }
            Kind::Enum(_) | Kind::Domain(_) => Vec::new(),
            Kind::System(definition) => (1..)
                .zip(&definition.columns)
                .map(|(number, column)| (number, column.name.into(), column.ty, Typmod::NONE, true))
                .collect(),
        }
    }

    /// Relations of users, by oid.
    fn user_relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        let all = self.catalog.relations().into_iter();
        all.filter(|relation| !matches!(relation.kind, Kind::System(_)))
    }

    /// The name of the schema that a relation is in.
    fn schema_of(&self, relation: &Relation) -> Value {
        text(self.catalog.namespace_name(relation.namespace))
    }
}

/// An oid for what the catalog gives none: made of its relation's oid and its number there.
pub(crate) fn derived_oid(relation: Oid, number: u16) -> Oid {
    0x8000_0000 | (relation.wrapping_mul(2048).wrapping_add(u32::from(number)) & 0x7fff_ffff)
}

fn text(text: impl Into<Box<str>>) -> Value {
    Value::Text(text.into())
}

/// No rows.
fn nothing(_: &Scan<'_>, _: &mut Vec<Vec<Value>>) -> Result<()> {
    Ok(())
}
