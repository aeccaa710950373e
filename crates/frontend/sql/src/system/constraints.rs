//! Constraints.

use super::{Scan, Spec, text};
use crate::catalog::{Action, ForeignKey, Relation, Table, Timing};
use crate::error::Result;
use vellum_row::{Array, ColumnId, Type, Value};

pub(super) const RELATIONS: &[Spec] = &[Spec {
    name: "pg_constraint",
    oid: 2606,
    view: false,
    columns: "oid oid, conname name, connamespace oid, contype char, condeferrable bool, condeferred bool, \
         convalidated bool, conrelid oid, contypid oid, conindid oid, conparentid oid, confrelid oid, confupdtype \
         char, confdeltype char, confmatchtype char, conislocal bool, coninhcount int4, connoinherit bool, conkey \
         _int2, confkey _int2, conpfeqop _oid, conppeqop _oid, conffeqop _oid, confdelsetcols _int2, conexclop \
         _oid, conbin pg_node_tree",
    fill: pg_constraint,
}];

/// A constraint, whatever its kind.
pub(super) struct Constraint<'c> {
    pub oid: u32,
    pub name: &'c str,
    pub relation: &'c Relation,
    pub table: &'c Table,
    pub what: What<'c>,
}

/// What it is.
pub(super) enum What<'c> {
    /// PRIMARY KEY or UNIQUE.
    Index(&'c crate::catalog::Index),
    Check(&'c str),
    Foreign(&'c ForeignKey),
}

impl Constraint<'_> {
    /// `contype`.
    pub fn kind(&self) -> &'static str {
        match &self.what {
            What::Index(index) if index.primary => "p",
            What::Index(_) => "u",
            What::Check(_) => "c",
            What::Foreign(_) => "f",
        }
    }

    /// When it is checked.
    pub fn timing(&self) -> Timing {
        match &self.what {
            What::Index(index) => index.timing,
            What::Foreign(key) => key.timing,
            What::Check(_) => Timing::Fixed,
        }
    }

    /// Its columns: of a check those that it reads.
    pub fn columns(&self, scan: &Scan<'_>) -> Vec<ColumnId> {
        match &self.what {
            What::Index(index) => index.key_columns().collect(),
            What::Foreign(key) => key.columns.clone(),
            What::Check(sql) => scan.env.columns_read(self.relation, sql),
        }
    }

    /// The index that it stands on: its own, or that of the columns that it refers to.
    pub fn index(&self, scan: &Scan<'_>) -> u32 {
        match &self.what {
            What::Index(index) => index.oid,
            What::Check(_) => 0,
            What::Foreign(key) => target_index(scan, key).map_or(0, |(oid, _)| oid),
        }
    }
}

/// Oid and name of the unique index that a foreign key refers to.
pub(super) fn target_index(scan: &Scan<'_>, key: &ForeignKey) -> Option<(u32, Box<str>)> {
    let target = scan.catalog.relation(key.target)?.table()?;
    let found = target.referred_index(&key.target_columns)?;
    Some((found.oid, found.name.clone()))
}

/// Constraints of a relation.
pub(super) fn of(relation: &Relation) -> Vec<Constraint<'_>> {
    let Some(table) = relation.table() else {
        return Vec::new();
    };
    let constraint = |oid: u32, name, what| Constraint {
        oid,
        name,
        relation,
        table,
        what,
    };
    let mut all = Vec::new();
    for index in &table.indexes {
        if let Some(oid) = index.constraint {
            all.push(constraint(oid, &*index.name, What::Index(index)));
        }
    }
    for check in &table.checks {
        all.push(constraint(
            check.oid,
            &*check.name,
            What::Check(&check.expression),
        ));
    }
    for key in &table.foreign_keys {
        all.push(constraint(key.oid, &*key.name, What::Foreign(key)));
    }
    all
}

/// `confupdtype` and `confdeltype`.
fn action(action: Action) -> Value {
    text(match action {
        Action::NoAction => "a",
        Action::Restrict => "r",
        Action::Cascade => "c",
        Action::SetNull => "n",
        Action::SetDefault => "d",
    })
}

fn numbers(columns: &[ColumnId]) -> Value {
    let numbers: Vec<Value> = columns
        .iter()
        .map(|column| Value::Int2(column.0 as i16))
        .collect();
    Value::Array(Array::of(Type::Int2, &numbers))
}

fn pg_constraint(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for relation in scan.user_relations() {
        for constraint in of(relation) {
            let foreign = match &constraint.what {
                What::Foreign(key) => Some(*key),
                _ => None,
            };
            let check = match &constraint.what {
                What::Check(sql) => text(super::describe::node(0, sql)),
                _ => Value::Null,
            };
            rows.push(vec![
                Value::Oid(constraint.oid),
                text(constraint.name),
                Value::Oid(relation.namespace),
                text(constraint.kind()),
                Value::Bool(constraint.timing().is_deferrable()),
                Value::Bool(constraint.timing() == Timing::Deferred),
                Value::Bool(true),
                Value::Oid(relation.oid),
                Value::Oid(0),
                Value::Oid(constraint.index(scan)),
                Value::Oid(0),
                Value::Oid(foreign.map_or(0, |key| key.target)),
                foreign.map_or(text(" "), |key| action(key.on_update)),
                foreign.map_or(text(" "), |key| action(key.on_delete)),
                text(match foreign {
                    Some(key) if key.full => "f",
                    Some(_) => "s",
                    None => " ",
                }),
                Value::Bool(true),
                Value::Int4(0),
                Value::Bool(!matches!(constraint.what, What::Check(_))),
                numbers(&constraint.columns(scan)),
                foreign.map_or(Value::Null, |key| numbers(&key.target_columns)),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                check,
            ]);
        }
    }
    super::domains::constraints(scan, rows);
    Ok(())
}
