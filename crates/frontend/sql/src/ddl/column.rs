//! ADD COLUMN and DROP COLUMN.

use super::Ddl;
use super::rewrite::contains_nulls;
use super::table::serial_type;
use crate::bind::{ScopeTable, folded};
use crate::catalog::{Collation, Default, Index, Kind, Oid, Relation, Table};
use crate::error::{Fields, Result, SqlError};
use crate::rows::Shape;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{Column, ColumnId, Type, Value};

impl Ddl<'_> {
    pub(super) fn add_column(
        &mut self,
        relation: &Arc<Relation>,
        definition: &ast::ColumnDef,
        if_not_exists: bool,
    ) -> Result<Arc<Relation>> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let name = folded(&definition.name);
        if table.schema.position(&name).is_some() {
            let message = format!(
                "column \"{name}\" of relation \"{}\" already exists",
                relation.name
            );
            let error = SqlError::new(sqlstate::DUPLICATE_COLUMN, message);
            if if_not_exists {
                self.notices.push(Fields::skipping(&error));
                return Ok(relation.clone());
            }
            return Err(error);
        }
        let last = table
            .schema
            .all_columns()
            .last()
            .map_or(0, |column| column.id.0);
        super::check_table_columns(last as usize + 1)?;
        let id = ColumnId(last + 1);
        let mut later = Vec::new();
        let place = (relation.oid, &*relation.name, relation.namespace);
        let (column, default) = self.column(definition, place, id, &mut later)?;
        let domain = self.column_domain(&definition.data_type)?;
        let collation = self.column_collation(definition, column.ty)?;
        let mut next = table.clone();
        next.set_domain(id, domain);
        next.set_collation(id, collation);
        let serial = serial_type(&definition.data_type).is_some();
        let sequence = self.sequence_behind(default.as_ref(), serial)?;
        let generated = matches!(default, Some(Default::Generated(_)));
        let mut computed = None;
        let missing = match &default {
            _ if sequence.is_some() => Value::Null,
            Some(Default::Generated(_)) => Value::Null,
            None | Some(Default::Expression(_)) => {
                let expr = match (&default, domain) {
                    (Some(Default::Expression(sql)), _) => Some(self.bound_default(sql, &column)?),
                    (_, Some(domain)) => self.binder().domain_default(domain)?,
                    _ => None,
                };
                match expr {
                    None => Value::Null,
                    Some(crate::expr::Expr::Const(value)) => value,
                    // Each row has a value of its own.
                    Some(expr) if expr.is_volatile() => {
                        computed = Some(expr);
                        Value::Null
                    }
                    Some(expr) => self.value_of(&expr)?,
                }
            }
            // Its sequence was found.
            Some(Default::Identity { .. }) => Value::Null,
        };
        let nullable = column.nullable;
        let numbered = sequence.is_some() || computed.is_some();
        let none = missing.is_null() && !numbered && !generated;
        if !nullable && none && self.has_rows(relation)? {
            return Err(contains_nulls(relation, &name, &self.open.catalog.1));
        }
        next.schema = Arc::new(next.schema.add_column(column.with_missing(missing))?);
        next.defaults.extend(default.map(|default| (id, default)));
        if let Some(sequence) = sequence {
            next = self.number_rows(relation, next, sequence)?;
        }
        if let Some(expr) = computed {
            next = self.compute_rows(relation, next, &expr)?;
        }
        if generated {
            let columns: Vec<Column> = next.schema.columns().cloned().collect();
            self.check_generated(&columns, &next.defaults, id)?;
            next = self.generate_rows(relation, next)?;
            if !nullable {
                let changed = Relation {
                    kind: Kind::Table(Box::new(next.clone())),
                    ..Relation::clone(relation)
                };
                self.check_rows(&changed)?;
            }
        }
        let mut changed = Relation::clone(relation);
        changed.kind = Kind::Table(Box::new(next));
        if domain.is_some() {
            self.check_domains(&changed)?;
        }
        for constraint in later {
            self.constrain(&mut changed, constraint)?;
        }
        let Kind::Table(table) = changed.kind else {
            return Err(SqlError::internal("no table"));
        };
        self.put_table(relation, *table)
    }

    /// The collation that a column of a type, or of a domain over it, is given, where that is another than the type's.
    ///
    /// # Errors
    /// `3F000`, `42704` for one that there is not, `42804` for a type whose values have none, `42601` for two.
    pub(super) fn column_collation(
        &mut self,
        definition: &ast::ColumnDef,
        ty: Type,
    ) -> Result<Option<Oid>> {
        let options = definition.options.iter();
        let mut said = options.filter_map(|option| match &option.option {
            ast::ColumnOption::Collation(collation) => Some(collation),
            _ => None,
        });
        let Some(collation) = said.next() else {
            let domain = self.column_domain(&definition.data_type)?;
            return Ok(self.domain_collation(domain));
        };
        let binder = self.binder();
        let named = match said.next() {
            None => binder.collation_named(collation, Some(ty)),
            Some(_) => Err(SqlError::syntax("multiple COLLATE clauses not allowed")),
        };
        let place = binder.place_before(collation, "collate");
        let named = named.map_err(|error| error.at(place))?;
        Ok(Collation::other_than_of(ty, named))
    }

    /// The collation of a domain's values, where that is another than their type's.
    pub(super) fn domain_collation(&self, domain: Option<Oid>) -> Option<Oid> {
        let found = domain.and_then(|domain| self.open.catalog.1.domain(domain));
        found.and_then(|(_, domain)| domain.collation)
    }

    pub(super) fn drop_column(
        &mut self,
        relation: &Relation,
        next: &mut Table,
        position: usize,
    ) -> Result<()> {
        let column = next.schema.column(position).clone();
        let in_key = |key: &Arc<Index>| key.columns_named().any(|part| part == column.id);
        if next.ordering_key().is_some_and(in_key) {
            let mut unordered = relation.clone();
            next.indexes.remove(0);
            self.order_anew(&mut unordered, next.clone())?;
            if let Kind::Table(table) = unordered.kind {
                *next = *table;
            }
        }
        next.foreign_keys
            .retain(|key| !key.columns.contains(&column.id));
        // Constraints and indexes on it go with it.
        let before = Arc::new(Relation {
            kind: Kind::Table(Box::new(next.clone())),
            ..relation.clone()
        });
        let mut kept = Vec::with_capacity(next.checks.len());
        for check in &next.checks {
            let mut binder = self.binder();
            binder.scope.add(ScopeTable::of(&before, None)?)?;
            let node = crate::parse::expression(&check.expression)?;
            let mut reads = false;
            binder.condition(&node, "CHECK")?.walk(&mut |expr| {
                reads |= matches!(expr, crate::expr::Expr::Column { position: at, .. }
                    if usize::from(*at) == position);
            });
            if !reads {
                kept.push(check.clone());
            }
        }
        next.checks = kept;
        let shape = Shape::of(&before)?;
        let own = next.indexes.iter().zip(&shape.keys);
        let reading = own.filter(|(index, keys)| {
            index.storage.is_some()
                && (keys.reads.contains(&position) || index.include.contains(&column.id))
        });
        let indexes: Vec<Oid> = reading.map(|(index, _)| index.oid).collect();
        for index in indexes {
            self.take_index(next, index)?;
        }
        next.defaults.retain(|(id, _)| *id != column.id);
        next.set_domain(column.id, None);
        next.set_collation(column.id, None);
        next.schema = Arc::new(next.schema.drop_column(position)?);
        Ok(())
    }
}
