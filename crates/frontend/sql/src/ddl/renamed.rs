//! ALTER VIEW, ALTER INDEX, and SET SCHEMA of tables and views.

use super::{Ddl, no_schema};
use crate::bind::folded;
use crate::catalog::{Change, Kind, Named, Oid, Relation, View};
use crate::error::{Result, SqlError};
use crate::parse::{Altered, Clause};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, AlterTableOperation as Operation, Ident};
use std::sync::Arc;

impl Ddl<'_> {
    /// Runs an ALTER VIEW, an ALTER INDEX, or an ALTER TABLE that says SET SCHEMA.
    ///
    /// # Errors
    /// `42P01`, `3F000`; `42809` for what is nothing of the kind; `42501`; `42P07`.
    pub(super) fn alter_named(
        &mut self,
        alter: &ast::AlterTable,
        what: Altered,
        clauses: &[Clause],
    ) -> Result<CommandTag> {
        let tag = CommandTag::plain(match what {
            Altered::View => "ALTER VIEW",
            Altered::Index => "ALTER INDEX",
            Altered::Sequence => "ALTER SEQUENCE",
            Altered::Table => "ALTER TABLE",
            Altered::Type => return self.alter_type_place(alter, clauses),
            Altered::Domain => return self.alter_domain(alter, clauses),
            Altered::Extension => return self.alter_extension(alter, clauses),
        });
        self.check_place(&alter.name)?;
        let Some(named) = self.binder().named(&alter.name)? else {
            if alter.if_exists {
                self.skip_missing(&alter.name)?;
                return Ok(tag);
            }
            self.check_schema(&alter.name)?;
            return Err(self.binder().no_relation(&alter.name).without_place());
        };
        let operation = alter.operations.get(1);
        if let (Named::Index { table, index }, Altered::Index) = (&named, what) {
            let operation = operation.ok_or_else(|| SqlError::internal("nothing to alter"))?;
            match operation {
                Operation::RenameTable { .. } => self.rename_index(*table, *index, operation)?,
                _ => self.alter_index((*table, *index), operation)?,
            }
            return Ok(tag);
        }
        let relation = self.table_alone(&alter.name, Self::check_owner)?;
        let renames = matches!(operation, Some(Operation::RenameTable { .. }));
        if what == Altered::Index && !renames {
            let message = format!("\"{}\" is not an index", relation.name);
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
        }
        if what == Altered::View && !matches!(relation.kind, Kind::View(_)) {
            let message = format!("\"{}\" is not a view", relation.name);
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
        }
        match (operation, clauses, &relation.kind) {
            (None, [Clause::Schema(schema)], Kind::Sequence(_)) => {
                self.move_sequence(&relation, schema)?;
            }
            (None, [Clause::Schema(schema)], _) => self.move_to(&relation, schema)?,
            // Of a table by the name of an index, as in PostgreSQL.
            (Some(operation), _, Kind::Table(_)) => {
                self.alter(&relation, operation)?;
            }
            (Some(operation), _, Kind::View(view)) => {
                self.alter_view(&relation, view, operation)?;
            }
            (Some(operation), ..) => self.rename_or_give(&relation, operation)?,
            (None, ..) => return Err(SqlError::internal("nothing to alter")),
        }
        Ok(tag)
    }

    /// What ALTER VIEW and ALTER TABLE change of a view.
    ///
    /// # Errors
    /// `42703`, `42701`, `22023`; those of [`Ddl::rename_or_give`].
    pub(super) fn alter_view(
        &mut self,
        relation: &Arc<Relation>,
        view: &View,
        operation: &Operation,
    ) -> Result<()> {
        let place = |name: &Ident| {
            let name = folded(name);
            let found = view.columns.iter().position(|column| **column == *name);
            found.ok_or_else(|| {
                let message = format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    relation.name
                );
                SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
            })
        };
        match operation {
            Operation::RenameColumn {
                old_column_name,
                new_column_name,
            } => {
                let at = place(old_column_name)?;
                let name = folded(new_column_name);
                if view.columns.iter().any(|column| **column == *name) {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" already exists",
                        relation.name
                    );
                    return Err(SqlError::new(sqlstate::DUPLICATE_COLUMN, message));
                }
                let mut next = view.clone();
                next.columns[at] = name.into();
                let views = self.views_with_columns(relation)?;
                let next = Arc::new(Relation {
                    generation: relation.generation + 1,
                    kind: Kind::View(next),
                    ..Relation::clone(relation)
                });
                self.change(Change::PutRelation(next.clone()))?;
                self.keep_views_of(relation, views, &next)
            }
            Operation::AlterColumn {
                column_name,
                op: ast::AlterColumnOperation::DropDefault,
            } => {
                let at = place(column_name)?;
                self.put_view_default(relation, view, at, None)
            }
            Operation::AlterColumn {
                column_name,
                op: ast::AlterColumnOperation::SetDefault { value },
            } => {
                let at = place(column_name)?;
                self.put_view_default(relation, view, at, Some(value))
            }
            Operation::SetOptionsParens { options } => {
                let said = super::parameters::Said::of_table(options)?;
                let of = super::parameters::Of::View;
                let options = super::parameters::changed(&view.options, said, of)?;
                let next = View {
                    options,
                    ..view.clone()
                };
                self.put_view(relation, next)
            }
            other => self.rename_or_give(relation, other),
        }
    }

    /// RENAME TO of a relation that is held alone; the relation as it is then.
    ///
    /// # Errors
    /// `42P07`; `42710` for the name of a type, which the rows of a table or view have.
    pub(super) fn rename_relation(
        &mut self,
        relation: &Arc<Relation>,
        to: &ast::RenameTableNameKind,
    ) -> Result<Arc<Relation>> {
        let (ast::RenameTableNameKind::To(name) | ast::RenameTableNameKind::As(name)) = to;
        let (_, name) = crate::bind::object_name(name)?;
        self.is_taken(relation.namespace, &name, false)?;
        if !matches!(relation.kind, Kind::Sequence(_)) {
            self.check_type_free(relation.namespace, &name, false)?;
        }
        self.put_named(relation, relation.namespace, &name)
    }

    /// Gives an index of a table another name.
    ///
    /// # Errors
    /// `42P07`; `0A000` for other operations.
    pub(super) fn rename_index(
        &mut self,
        table: Oid,
        index: Oid,
        operation: &Operation,
    ) -> Result<()> {
        let Operation::RenameTable { table_name } = operation else {
            return Err(SqlError::unsupported("this form of ALTER INDEX"));
        };
        let (ast::RenameTableNameKind::To(name) | ast::RenameTableNameKind::As(name)) = table_name;
        let (_, name) = crate::bind::object_name(name)?;
        let found = self.open.catalog.1.relation(table).cloned();
        let relation = found.ok_or_else(|| SqlError::internal("an index without table"))?;
        let relation = self.alone_if(&relation, Self::check_owner)?;
        let definition = relation.table();
        let mut next = definition
            .ok_or_else(|| SqlError::internal("no table"))?
            .clone();
        self.call_index(&relation, &mut next, index, &name)?;
        self.put_table(&relation, next).map(drop)
    }

    /// SET SCHEMA of a table, with its indexes and the sequences of its columns, or of a view.
    fn move_to(&mut self, relation: &Arc<Relation>, schema: &Ident) -> Result<()> {
        let Some(namespace) = self.new_schema(relation, schema)? else {
            return Ok(());
        };
        self.check_type_free(namespace, &relation.name, true)?;
        let table = relation.table();
        let indexes = table.into_iter().flat_map(|table| &table.indexes);
        for index in indexes {
            self.check_free(namespace, &index.name)?;
        }
        let owned = self.owned_sequences(relation.oid, None);
        self.put_named(relation, namespace, &relation.name)?;
        for sequence in owned {
            self.check_free(namespace, &sequence.name)?;
            let sequence = self.alone(&sequence)?;
            self.put_named(&sequence, namespace, &sequence.name)?;
        }
        Ok(())
    }

    /// The schema that a relation is to go to; `None` if it is there.
    ///
    /// # Errors
    /// `3F000`, `42501`; `0A000` to or from a temporary one; `42P07` where its name is taken.
    pub(super) fn new_schema(
        &mut self,
        relation: &Relation,
        schema: &Ident,
    ) -> Result<Option<Oid>> {
        let name = ast::ObjectName::from(vec![
            schema.clone(),
            Ident::with_quote('"', &*relation.name),
        ]);
        let (namespace, name) = self.new_name(&name, false)?;
        if namespace == relation.namespace {
            return Ok(None);
        }
        let catalog = &self.open.catalog.1;
        if catalog.is_temporary(namespace) || catalog.is_temporary(relation.namespace) {
            let text = "cannot move objects into or out of temporary schemas";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        self.check_free(namespace, &name)?;
        Ok(Some(namespace))
    }

    fn check_free(&self, namespace: Oid, name: &str) -> Result<()> {
        let catalog = &self.open.catalog.1;
        if catalog.named(namespace, name).is_none() {
            return Ok(());
        }
        let schema = catalog.namespace_name(namespace);
        let message = format!("relation \"{name}\" already exists in schema \"{schema}\"");
        Err(SqlError::new(sqlstate::DUPLICATE_TABLE, message))
    }

    /// Whoever changes the catalog is told first of a schema that is not there, or that it may not look into.
    ///
    /// # Errors
    /// `3F000`, `42501`.
    pub(super) fn check_schema(&self, name: &ast::ObjectName) -> Result<()> {
        let (Some(schema), _) = crate::bind::object_name(name)? else {
            return Ok(());
        };
        match self.open.catalog.1.schema_named(&schema, &self.search_path) {
            Some(_) => self.check_place(name),
            None => Err(no_schema(&schema)),
        }
    }

    /// Who says a schema has to have the right to look into it, whatever is its own there. What is not there is found out later.
    ///
    /// # Errors
    /// `42501`.
    pub(super) fn check_place(&self, name: &ast::ObjectName) -> Result<()> {
        let (Some(schema), _) = crate::bind::object_name(name)? else {
            return Ok(());
        };
        let place = (self.open.catalog.1).schema_named(&schema, &self.search_path);
        place.map_or(Ok(()), |place| self.check_look(place))
    }

    /// # Errors
    /// `42501` for who may not look into a schema.
    pub(super) fn check_look(&self, schema: Oid) -> Result<()> {
        let (image, rights) = (&self.open.catalog.1, &self.open.rights().1);
        rights.check_look(self.role, image, Some(schema))
    }
}
