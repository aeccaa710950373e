//! What needs what: `pg_depend`, by which `pg_dump` orders what it writes.
//!
//! Of a table: the types of its columns that users have made; of a view: the relations that it reads, not their columns, and the primary keys that it groups by; of a default: the sequences that it names, not the other columns of a generated one; of whatever calls a function of an extension: the function.

use super::constraints::{self, What};
use super::{Scan, Spec, derived_oid, text};
use crate::catalog::{Default, Kind, Oid, PG_CATALOG, Relation, Table, View};
use crate::error::Result;
use crate::expr::Scalar;
use crate::rows::Parts;
use std::sync::Arc;
use vellum_row::{ColumnId, Type, Value};

pub(super) const RELATIONS: &[Spec] = &[Spec {
    name: "pg_depend",
    oid: 2608,
    view: false,
    columns: "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4, deptype char",
    fill: pg_depend,
}];

/// Oids of the relations that the two sides of a dependency are rows of.
pub(super) const CLASS: Oid = 1259;
pub(super) const NAMESPACE: Oid = 2615;
pub(super) const TYPE: Oid = 1247;
const CONSTRAINT: Oid = 2606;
const DEFAULT: Oid = 2604;
const RULE: Oid = 2618;
pub(super) const FUNCTION: Oid = 1255;
pub(super) const EXTENSION: Oid = 3079;

/// How one needs the other.
#[derive(Clone, Copy)]
enum How {
    /// Keeps it.
    Normal,
    /// Goes with it.
    Auto,
    /// Is a part of it.
    Internal,
    /// Belongs to an extension.
    Extension,
}

struct Rows<'r>(&'r mut Vec<Vec<Value>>);

impl Rows<'_> {
    fn push(&mut self, own: (Oid, Oid), other: (Oid, Oid, u16), how: How) {
        self.0.push(vec![
            Value::Oid(own.0),
            Value::Oid(own.1),
            Value::Int4(0),
            Value::Oid(other.0),
            Value::Oid(other.1),
            Value::Int4(i32::from(other.2)),
            text(match how {
                How::Normal => "n",
                How::Auto => "a",
                How::Internal => "i",
                How::Extension => "e",
            }),
        ]);
    }

    fn functions(&mut self, own: (Oid, Oid), functions: impl IntoIterator<Item = Scalar>) {
        for function in functions {
            self.push(own, (FUNCTION, function.entry().oid, 0), How::Normal);
        }
    }

    fn columns(&mut self, own: (Oid, Oid), table: Oid, columns: &[ColumnId], how: How) {
        for column in columns {
            self.push(own, (CLASS, table, column.0), how);
        }
    }
}

fn pg_depend(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let mut rows = Rows(rows);
    for relation in scan.user_relations() {
        let own = (CLASS, relation.oid);
        rows.push(own, (NAMESPACE, relation.namespace, 0), How::Normal);
        match &relation.kind {
            Kind::Table(table) => of_table(scan, relation, table, &mut rows),
            Kind::View(view) => of_view(scan, relation, view, &mut rows),
            Kind::Sequence(sequence) => {
                let (table, column) = sequence.owner;
                let owner = scan.catalog.relation(table);
                if let Some(owner) = owner.and_then(|owner| owner.table()) {
                    let default = owner.default_of(ColumnId(column));
                    let how = match default {
                        Some(Default::Identity { .. }) => How::Internal,
                        _ => How::Auto,
                    };
                    rows.push(own, (CLASS, table, column), how);
                }
            }
            Kind::Enum(_) | Kind::Domain(_) | Kind::System(_) => {}
        }
    }
    for own in scan.catalog.extensions() {
        let extension = (EXTENSION, own.oid);
        // Nothing needs what is always there.
        let place = Some(own.namespace).filter(|place| *place != PG_CATALOG);
        let place = place.map(|place| (NAMESPACE, place, 0));
        if let Some(place) = place {
            rows.push(extension, place, How::Normal);
        }
        for function in own.functions() {
            let function = (FUNCTION, function.entry().oid);
            if let Some(place) = place {
                rows.push(function, place, How::Normal);
            }
            rows.push(function, (EXTENSION, own.oid, 0), How::Extension);
        }
    }
    for own in scan.catalog.user_types() {
        let ty = (TYPE, own.oid);
        rows.push(ty, (NAMESPACE, own.namespace, 0), How::Normal);
        if let Kind::Domain(domain) = &own.kind {
            let made_over = domain.ty.enum_id().map(|id| id.oid());
            let base = Some(domain.base).filter(|base| *base != 0).or(made_over);
            if let Some(base) = base {
                rows.push(ty, (TYPE, base, 0), How::Normal);
            }
            if let Some(sql) = &domain.default {
                rows.functions(ty, scan.env.functions_called(None, sql));
            }
            for check in &domain.checks {
                let constraint = (CONSTRAINT, check.oid);
                rows.push(constraint, (TYPE, own.oid, 0), How::Auto);
                let called = scan.env.functions_of_condition(domain, &check.expression);
                rows.functions(constraint, called);
            }
        }
        if let Some(array) = own.as_type().map(|ty| ty.array_oid()) {
            rows.push((TYPE, array), (TYPE, own.oid, 0), How::Internal);
        }
    }
    Ok(())
}

fn of_table(scan: &Scan<'_>, relation: &Arc<Relation>, table: &Table, rows: &mut Rows<'_>) {
    for column in table.schema.columns() {
        let made = column.ty.enum_id().map(|_| column.ty.oid());
        if let Some(ty) = table.domain_of(column.id).or(made) {
            let own = (CLASS, relation.oid);
            rows.push(own, (TYPE, ty, 0), How::Normal);
        }
    }
    for (column, default) in &table.defaults {
        let own = (DEFAULT, derived_oid(relation.oid, column.0));
        let (sql, how) = match default {
            Default::Expression(sql) => (sql, How::Auto),
            Default::Generated(sql) => (sql, How::Internal),
            Default::Identity { .. } => continue,
        };
        rows.push(own, (CLASS, relation.oid, column.0), how);
        rows.functions(own, scan.env.functions_called(Some(relation), sql));
        for name in crate::ddl::named_sequences(sql) {
            let found = super::names::parse_reg(scan.env, Type::Regclass, &name);
            if let Ok(Some(sequence)) = found {
                rows.push(own, (CLASS, sequence, 0), How::Normal);
            }
        }
    }
    for index in &table.indexes {
        let own = (CLASS, index.oid);
        match index.constraint {
            Some(constraint) => rows.push(own, (CONSTRAINT, constraint, 0), How::Internal),
            None => {
                // A definition that can no longer be read depends on nothing that could be said.
                let reads = Parts::of(relation, index).map_or(Vec::new(), |parts| parts.reads());
                let columns = reads.iter().map(|at| table.schema.column(*at).id);
                let columns: Vec<ColumnId> = columns.collect();
                rows.columns(own, relation.oid, &columns, How::Auto);
                for sql in index.expressions().chain(index.predicate.as_deref()) {
                    rows.functions(own, scan.env.functions_called(Some(relation), sql));
                }
            }
        }
    }
    for check in &table.checks {
        let called = scan.env.functions_called(Some(relation), &check.expression);
        rows.functions((CONSTRAINT, check.oid), called);
    }
    for constraint in constraints::of(relation) {
        let own = (CONSTRAINT, constraint.oid);
        let columns = constraint.columns(scan);
        if columns.is_empty() {
            rows.push(own, (CLASS, relation.oid, 0), How::Auto);
        }
        rows.columns(own, relation.oid, &columns, How::Auto);
        if let What::Foreign(key) = &constraint.what {
            rows.columns(own, key.target, &key.target_columns, How::Normal);
            if let Some((index, _)) = constraints::target_index(scan, key) {
                rows.push(own, (CLASS, index, 0), How::Normal);
            }
        }
    }
}

fn of_view(scan: &Scan<'_>, relation: &Relation, view: &View, rows: &mut Rows<'_>) {
    let own = (RULE, derived_oid(relation.oid, 0));
    rows.push(own, (CLASS, relation.oid, 0), How::Internal);
    rows.functions(own, scan.env.functions_of_view(relation, view));
    let groups = view.query.to_ascii_lowercase().contains("group by");
    for read in scan.env.view_reads(relation, view) {
        let catalog = scan.catalog;
        let lasting = catalog.relation(read);
        let lasting = lasting.filter(|read| !matches!(read.kind, Kind::System(_)));
        let Some(read) = lasting else {
            continue;
        };
        rows.push(own, (CLASS, read.oid, 0), How::Normal);
        let key = read.table().and_then(|table| table.indexes.first());
        if groups
            && let Some(key) = key.filter(|key| key.primary)
            && let Some(constraint) = key.constraint
            && scan.env.view_needs_key(relation, view, read)
        {
            rows.push(own, (CONSTRAINT, constraint, 0), How::Normal);
        }
    }
}
