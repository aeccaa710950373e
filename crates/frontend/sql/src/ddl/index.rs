//! CREATE INDEX, DROP INDEX.

use super::Ddl;
use super::alter::numbered;
use crate::bind::folded;
use crate::catalog::{Index, IndexColumn, Kind, Oid, Relation, Table};
use crate::error::{Result, SqlError};
use crate::plan::column_position;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast;
use std::sync::Arc;

impl Ddl<'_> {
    pub(super) fn create_index(&mut self, create: &ast::CreateIndex) -> Result<CommandTag> {
        let tag = CommandTag::plain("CREATE INDEX");
        if create.predicate.is_some() {
            return Err(SqlError::unsupported("a partial index"));
        }
        if !create.include.is_empty() {
            return Err(SqlError::unsupported("INCLUDE"));
        }
        if create.nulls_distinct == Some(false) {
            return Err(SqlError::unsupported("NULLS NOT DISTINCT"));
        }
        let relation = self.table_alone(&create.table_name)?;
        self.check_owner(&relation)?;
        let table = relation.table().ok_or_else(|| {
            let message = format!("\"{}\" is not a table", relation.name);
            SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
        })?;
        super::check_index_columns(create.columns.len())?;
        let mut columns = Vec::with_capacity(create.columns.len());
        let mut names = Vec::new();
        for column in &create.columns {
            let ast::Expr::Identifier(ident) = &column.column.expr else {
                return Err(SqlError::unsupported("an index on an expression"));
            };
            let name = folded(ident);
            let position = column_position(&relation, &name)?;
            let definition = table.schema.column(position);
            if !definition.ty.is_orderable() {
                let message = format!(
                    "data type {} has no default operator class for access method \"btree\"",
                    definition.ty.sql_name()
                );
                return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
            }
            let options = column.column.options;
            let descending = options.asc == Some(false);
            columns.push(IndexColumn {
                column: definition.id,
                descending,
                nulls_first: options.nulls_first.unwrap_or(descending),
            });
            names.push(name);
        }
        let name = match &create.name {
            Some(name) => crate::bind::object_name(name)?.1,
            None => {
                let base = format!("{}_{}_idx", relation.name, names.join("_"));
                self.free_name(relation.namespace, &base)
            }
        };
        if self.is_taken(relation.namespace, &name, create.if_not_exists)? {
            return Ok(tag);
        }
        let oid = self.draw_oid()?;
        let index = Arc::new(Index {
            oid,
            name: name.into(),
            storage: Some(self.index_storage(oid)?),
            columns,
            unique: create.unique,
            constraint: None,
            primary: false,
        });
        self.fill(&relation, &index)?;
        let mut next = table.clone();
        next.indexes.push(index);
        self.put_table(&relation, next)?;
        Ok(tag)
    }

    /// Adds an index to the definition of a table without rows.
    ///
    /// # Errors
    /// What the engine reports.
    pub(super) fn add_index(
        &mut self,
        relation: &mut Relation,
        columns: &[(String, bool, bool)],
        unique: bool,
    ) -> Result<()> {
        let names: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
        let base = format!("{}_{}_idx", relation.name, names.join("_"));
        let mut parts = Vec::with_capacity(columns.len());
        for (name, descending, nulls_first) in columns {
            let position = column_position(relation, name)?;
            let table = relation.table();
            let table = table.ok_or_else(|| SqlError::internal("no table"))?;
            parts.push(IndexColumn {
                column: table.schema.column(position).id,
                descending: *descending,
                nulls_first: *nulls_first,
            });
        }
        let catalog = &self.open.catalog.1;
        let name = numbered(&base, |name| {
            let table = relation.table();
            let mut own = table.into_iter().flat_map(|table| &table.indexes);
            catalog.named(relation.namespace, name).is_some()
                || own.any(|index| *index.name == *name)
        });
        let oid = self.draw_oid()?;
        let index = Index {
            oid,
            name: name.into(),
            storage: Some(self.index_storage(oid)?),
            columns: parts,
            unique,
            constraint: None,
            primary: false,
        };
        if let Kind::Table(table) = &mut relation.kind {
            table.indexes.push(Arc::new(index));
        }
        Ok(())
    }

    pub(super) fn drop_index(&mut self, table: Oid, index: Oid) -> Result<()> {
        let found = self.open.catalog.1.relation(table).cloned();
        let relation = found.ok_or_else(|| SqlError::internal("an index without table"))?;
        self.check_owner(&relation)?;
        let relation = self.alone(&relation)?;
        let definition = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let found = definition.indexes.iter().find(|other| other.oid == index);
        if let Some(index) = found.filter(|index| index.constraint.is_some()) {
            let message = format!(
                "cannot drop index {} because constraint {} on table {} requires it",
                index.name, index.name, relation.name
            );
            let hint = format!(
                "You can drop constraint {} on table {} instead.",
                index.name, relation.name
            );
            let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
            return Err(SqlError::new(state, message).with_hint(hint));
        }
        let mut next = definition.clone();
        self.take_index(&mut next, index)?;
        self.put_table(&relation, next).map(|_| ())
    }

    /// Takes an index out of a definition, and drops its rows.
    pub(super) fn take_index(&mut self, table: &mut Table, index: Oid) -> Result<()> {
        let at = table.indexes.iter().position(|other| other.oid == index);
        let Some(at) = at else {
            return Ok(());
        };
        let taken = table.indexes.remove(at);
        if let Some(storage) = &taken.storage {
            self.open.transaction.drop_table(&storage.name)?;
        }
        Ok(())
    }
}
