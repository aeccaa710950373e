//! CREATE TABLE, ALTER TABLE.

use super::Ddl;
use super::alter::validate;
use super::column_names::{agreed, check_column_name, renamed_position};
use super::computed::{check_no_subquery, over_own_columns};
use super::deferral::timing_of;
use super::dependency::Object;
use super::identity::not_integer;
use super::key::{NewKey, are_distinct, constraint_of, two_keys};
use super::like::Made;
use super::made_names::MadeName;
use super::marks::{Promoted, check_form_of_table};
use super::parameters::{self, Of};
use super::triggers::Switch;
use crate::bind::{NO_COLLATION, ScopeTable, folded, indeterminate};
use crate::catalog::{
    Change, Check, Default, Index, Kind, Named, Oid, Relation, ReplicaIdentity, Storage, Table,
};
use crate::error::{Fields, Result, SqlError};
use crate::expr::Expr;
use crate::parse::{Altered, Clause, Like, altered_constraint, collation_of};
use crate::plan::{OutputColumn, column_position};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, AlterTableOperation as Operation, ColumnOption};
use std::sync::Arc;
use vellum_row::{Column, ColumnId, Schema, Type, Typmod};

/// A key or constraint that CREATE TABLE makes after the columns.
pub(super) enum Later {
    Key(NewKey),
    Check {
        name: Option<String>,
        expr: Box<ast::Expr>,
        column: Option<String>,
    },
    /// As one of another table.
    Index {
        like: Arc<Index>,
        from: Box<Table>,
    },
    ForeignKey {
        key: Box<ast::ForeignKeyConstraint>,
        /// The column that it was written behind.
        column: Option<String>,
    },
}

impl Ddl<'_> {
    pub(super) fn create_table(&mut self, create: &ast::CreateTable) -> Result<CommandTag> {
        let tag = CommandTag::plain("CREATE TABLE");
        if create.query.is_some() || create.like.is_some() || create.inherits.is_some() {
            return Err(SqlError::unsupported("this form of CREATE TABLE"));
        }
        if create.partition_by.is_some() || create.partition_of.is_some() {
            return Err(SqlError::unsupported("partitioning"));
        }
        let (namespace, name) = self.new_name(&create.name, create.temporary)?;
        if self.is_taken(namespace, &name, create.if_not_exists)? {
            return Ok(tag);
        }
        self.check_no_type(namespace, &name)?;
        super::check_table_columns(create.columns.len())?;
        let oid = self.draw_oid()?;
        self.note_at_commit(oid, namespace, create.on_commit.as_ref())?;
        let mut made = Made::default();
        for definition in &create.columns {
            let place = (oid, name.as_str(), namespace);
            if let Some(like) = Like::of(definition) {
                self.copy_definition(&like, place, &mut made)?;
                continue;
            }
            let id = made.next_id();
            let (column, default) = self.column(definition, place, id, &mut made.later)?;
            let collation = self.column_collation(definition, column.ty)?;
            made.collations
                .extend(collation.map(|collation| (id, collation)));
            made.columns.push(column);
            made.defaults.extend(default.map(|default| (id, default)));
            let domain = self.column_domain(&definition.data_type)?;
            made.domains.extend(domain.map(|domain| (id, domain)));
        }
        let Made {
            columns,
            defaults,
            mut later,
            comments,
            domains,
            collations,
        } = made;
        super::check_table_columns(columns.len())?;
        for constraint in &create.constraints {
            later.push(constraint_of(constraint)?);
        }
        let is_generated = |default: &Default| matches!(default, Default::Generated(_));
        if defaults.iter().any(|(_, default)| is_generated(default)) {
            // With their numbers.
            let schema = Schema::new(columns.clone())?;
            let all: Vec<Column> = schema.columns().cloned().collect();
            for (id, _) in defaults.iter().filter(|(_, default)| is_generated(default)) {
                self.check_generated(&all, &defaults, *id)?;
            }
        }
        let mut relation = self.bare_table((oid, &name, namespace), columns, defaults)?;
        if let Kind::Table(table) = &mut relation.kind {
            table.domains = domains;
            table.collations = collations;
        }
        if let (ast::CreateTableOptions::With(options), Kind::Table(table)) =
            (&create.table_options, &mut relation.kind)
        {
            let said = parameters::Said::of_table(options)?;
            table.options = parameters::changed(&[], said, Of::Table)?;
        }
        // The primary key first: it orders the table. Foreign keys last: they may refer to a key of the table itself.
        later.sort_by_key(|later| match later {
            Later::Key(NewKey { primary: true, .. }) => 0,
            Later::ForeignKey { .. } => 2,
            _ => 1,
        });
        let keys = later.iter();
        if keys
            .filter(|later| matches!(later, Later::Key(NewKey { primary: true, .. })))
            .count()
            > 1
        {
            return Err(two_keys(&relation.name));
        }
        for constraint in later {
            self.constrain(&mut relation, constraint)?;
        }
        self.hold_types(&relation)?;
        self.change(Change::PutRelation(Arc::new(relation)))?;
        self.copy_comments(oid, comments)?;
        Ok(tag)
    }

    /// A table without constraints and without rows, which is not in the catalog yet.
    fn bare_table(
        &mut self,
        (oid, name, namespace): (Oid, &str, Oid),
        columns: Vec<Column>,
        defaults: Vec<(ColumnId, Default)>,
    ) -> Result<Relation> {
        let transaction = &self.open.transaction;
        let storage = transaction.create_table(&format!("sql.table.{oid}"))?;
        let table = Table {
            schema: Arc::new(Schema::new(columns)?),
            storage: Storage::of(storage),
            defaults,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            options: Vec::new(),
            domains: Vec::new(),
            collations: Vec::new(),
            replica_identity: ReplicaIdentity::Default,
        };
        Ok(self.new_relation(oid, namespace, name, Kind::Table(Box::new(table))))
    }

    /// Makes a table of columns that may be null.
    ///
    /// # Errors
    /// As CREATE TABLE.
    pub(super) fn make_plain_table(
        &mut self,
        namespace: Oid,
        name: &str,
        columns: Vec<OutputColumn>,
        on_commit: Option<&ast::OnCommit>,
    ) -> Result<()> {
        super::check_table_columns(columns.len())?;
        let oid = self.draw_oid()?;
        self.note_at_commit(oid, namespace, on_commit)?;
        let mut made = Vec::with_capacity(columns.len());
        let (mut domains, mut collations) = (Vec::new(), Vec::new());
        for (id, column) in (1..).map(ColumnId).zip(columns) {
            check_column_name(&column.name)?;
            check_column_type(&column.name, column.ty)?;
            if column.collation == Some(NO_COLLATION) {
                let message = format!(
                    "no collation was derived for column \"{}\" with collatable type {}",
                    column.name,
                    self.forms.name_of(column.ty)
                );
                return Err(indeterminate(message));
            }
            domains.extend(column.domain.map(|domain| (id, domain)));
            collations.extend(column.collation.map(|collation| (id, collation)));
            made.push(Column::new(column.name, column.ty, column.typmod, true));
        }
        let mut relation = self.bare_table((oid, name, namespace), made, Vec::new())?;
        if let Kind::Table(table) = &mut relation.kind {
            table.domains = domains;
            table.collations = collations;
        }
        self.hold_types(&relation)?;
        self.change(Change::PutRelation(Arc::new(relation)))
    }

    /// A column, and where its values come from.
    pub(super) fn column(
        &mut self,
        definition: &ast::ColumnDef,
        table: (Oid, &str, Oid),
        id: ColumnId,
        later: &mut Vec<Later>,
    ) -> Result<(Column, Option<Default>)> {
        let name = folded(&definition.name);
        check_column_name(&name)?;
        let serial = serial_type(&definition.data_type);
        let (ty, typmod) = match serial {
            Some(ty) => (ty, Typmod::NONE),
            None => self.type_said(&definition.data_type)?,
        };
        check_column_type(&name, ty)?;
        self.hold_type(ty)?;
        let mut nullable = true;
        let mut said = serial.map(|_| false);
        let mut default = None;
        let mut generated = None;
        if serial.is_some() {
            let sequence = self.sequence_of((table, id), &name, ty, &[])?;
            default = Some(Default::Expression(format!("nextval({sequence})").into()));
            nullable = false;
        }
        for option in &definition.options {
            let given = option.name.as_ref().map(folded);
            match &option.option {
                ColumnOption::Null => said = agreed(said, true, &name, table.1)?,
                ColumnOption::NotNull => {
                    said = agreed(said, false, &name, table.1)?;
                    nullable = false;
                }
                ColumnOption::Default(expr) => {
                    let other = match default {
                        None => None,
                        Some(Default::Identity { .. }) => Some("both default and identity"),
                        Some(_) => Some("multiple default values"),
                    };
                    if let Some(other) = other {
                        let message = format!(
                            "{other} specified for column \"{name}\" of table \"{}\"",
                            table.1
                        );
                        return Err(SqlError::syntax(message));
                    }
                    default = Some(self.new_default(expr, ty, typmod)?);
                }
                ColumnOption::PrimaryKey(key) => {
                    nullable = false;
                    later.push(Later::Key(NewKey {
                        primary: true,
                        timing: timing_of(key.characteristics.as_ref())?,
                        ..NewKey::of_column(given, &name)
                    }));
                }
                ColumnOption::Unique(key) => later.push(Later::Key(NewKey {
                    nulls_distinct: are_distinct(key),
                    timing: timing_of(key.characteristics.as_ref())?,
                    ..NewKey::of_column(given, &name)
                })),
                ColumnOption::Check(check) => later.push(Later::Check {
                    name: given,
                    expr: check.expr.clone(),
                    column: Some(name.clone()),
                }),
                ColumnOption::Generated {
                    generated_as,
                    generation_expr: Some(expr),
                    ..
                } => {
                    if *generated_as == ast::GeneratedAs::ByDefault {
                        let text = "for a generated column, GENERATED ALWAYS must be specified";
                        return Err(SqlError::syntax(text));
                    }
                    let own = over_own_columns(expr, table.1);
                    if generated.replace(self.kept_text(&own)).is_some() {
                        let message = format!(
                            "multiple generation clauses specified for column \"{name}\" of table \"{}\"",
                            table.1
                        );
                        return Err(SqlError::syntax(message));
                    }
                }
                ColumnOption::Options(options) => {
                    let Some(clauses) = Clause::of_column(options) else {
                        return Err(SqlError::syntax("OPTIONS of a column"));
                    };
                    let other = match default {
                        None => None,
                        Some(Default::Identity { .. }) => Some("multiple identity specifications"),
                        Some(_) => Some("both default and identity specified"),
                    };
                    if let Some(other) = other {
                        let message =
                            format!("{other} for column \"{name}\" of table \"{}\"", table.1);
                        return Err(SqlError::syntax(message));
                    }
                    if self.binder().domain_named(&definition.data_type)?.is_some() {
                        return Err(not_integer());
                    }
                    default = Some(self.new_identity((table, id), &name, ty, &clauses)?);
                    said = agreed(said, false, &name, table.1)?;
                    nullable = false;
                }
                // What else is asked for of a column: its collation.
                ColumnOption::Collation(_) | ColumnOption::Comment(_) => {}
                ColumnOption::ForeignKey(key) => {
                    let mut key = key.clone();
                    key.name = option.name.clone().or(key.name);
                    later.push(Later::ForeignKey {
                        key: Box::new(key),
                        column: Some(name.clone()),
                    });
                }
                other => return Err(SqlError::unsupported(format!("{other} of a column"))),
            }
        }
        if let Some(sql) = generated {
            let other = match default {
                None => None,
                Some(Default::Identity { .. }) => Some("identity"),
                Some(_) => Some("default"),
            };
            if let Some(other) = other {
                let message = format!(
                    "both {other} and generation expression specified for column \"{name}\" of table \"{}\"",
                    table.1
                );
                return Err(SqlError::syntax(message));
            }
            default = Some(Default::Generated(sql.into()));
        }
        Ok((Column::new(name, ty, typmod, nullable), default))
    }

    /// Adds a constraint to the definition of a table without rows, or checks the rows that are there.
    pub(super) fn constrain(&mut self, relation: &mut Relation, constraint: Later) -> Result<()> {
        match constraint {
            Later::Key(key) => self.add_key(relation, key),
            Later::Check { name, expr, column } => {
                let scope = ScopeTable::of(&Arc::new(relation.clone()), None)?;
                let mut binder = self.binder();
                binder.scope.add(scope)?;
                let condition = binder.condition(&expr, "CHECK")?;
                check_no_subquery(&binder, "check constraint")?;
                let table = relation.table();
                let table = table.ok_or_else(|| SqlError::internal("no table"))?;
                let column = column.or_else(|| {
                    let only = only_column(&condition)?;
                    Some(table.schema.column(only).name.to_string())
                });
                let made = MadeName {
                    table: &relation.name,
                    columns: column.as_deref().unwrap_or_default(),
                    label: "check",
                };
                let free = made.free(|name| table.has_constraint(name));
                if let Some(name) = &name {
                    check_name(relation, name)?;
                }
                let check = Check {
                    oid: self.draw_oid()?,
                    name: name.unwrap_or(free).into(),
                    expression: self
                        .kept_text(&over_own_columns(&expr, &relation.name))
                        .into(),
                };
                if let Kind::Table(table) = &mut relation.kind {
                    table.checks.push(check);
                }
                self.check_rows(relation)
            }
            Later::Index { like, from } => self.add_index(relation, &like, &from),
            Later::ForeignKey { key, column } => {
                self.add_foreign_key(relation, &key, column.as_deref())
            }
        }
    }

    pub(super) fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<CommandTag> {
        let tag = CommandTag::plain("ALTER TABLE");
        match Clause::of_altered(&alter.operations) {
            Some((Altered::Sequence, clauses)) => return self.alter_sequence(alter, &clauses),
            Some((what, clauses))
                if !matches!(clauses[..], [Clause::Logged(_) | Clause::Form(..)]) =>
            {
                return self.alter_named(alter, what, &clauses);
            }
            _ => {}
        }
        self.check_place(&alter.name)?;
        if self.binder().named(&alter.name)?.is_none() && alter.if_exists {
            self.skip_missing(&alter.name)?;
            return Ok(tag);
        }
        if let [operation @ Operation::RenameTable { .. }] = alter.operations.as_slice()
            && let Some(Named::Index { table, index }) = self.binder().named(&alter.name)?
        {
            return self.rename_index(table, index, operation).map(|()| tag);
        }
        let mut relation = self.table_alone(&alter.name, Self::check_owner)?;
        if !alter.operations.iter().all(only_names) {
            self.check_not_pending(&relation, "ALTER TABLE")?;
            // Before rows are written (`gates`).
            self.hold_types(&relation)?;
        }
        if relation.table().is_none() {
            // What `pg_dump` says of views and sequences, too.
            for operation in &alter.operations {
                if let Some((_, clauses)) = Clause::of_altered(std::slice::from_ref(operation))
                    && let [Clause::Form(form, _)] = clauses[..]
                {
                    check_form_of_table(&relation, form)?;
                }
                match &relation.kind {
                    Kind::View(view) => self.alter_view(&relation, view, operation)?,
                    _ => self.rename_or_give(&relation, operation)?,
                }
                // As this one has left it.
                if let Some(now) = self.open.catalog.1.relation(relation.oid) {
                    relation = now.clone();
                }
            }
            return Ok(tag);
        }
        for operation in &alter.operations {
            relation = self.alter(&relation, operation)?;
        }
        Ok(tag)
    }

    pub(super) fn alter(
        &mut self,
        relation: &Arc<Relation>,
        operation: &Operation,
    ) -> Result<Arc<Relation>> {
        let table = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        let mut next = table.clone();
        if let Some((Altered::Table, clauses)) = Clause::of_altered(std::slice::from_ref(operation))
        {
            // All tables are logged.
            let [Clause::Form(form, name)] = &clauses[..] else {
                return Ok(relation.clone());
            };
            return self.alter_form(relation, next, *form, name.as_ref());
        }
        match operation {
            Operation::AddConstraint { constraint, .. } => {
                if let Some((name, said)) = altered_constraint(constraint) {
                    self.alter_constraint(relation, &mut next, &folded(name), said)?;
                    return self.put_table(relation, next);
                }
                let mut changed = Relation::clone(relation);
                match Promoted::of(constraint) {
                    Some(promoted) => self.promote_index(&mut changed, promoted)?,
                    None => self.constrain(&mut changed, constraint_of(constraint)?)?,
                }
                let Kind::Table(table) = changed.kind else {
                    return Err(SqlError::internal("no table"));
                };
                next = *table;
            }
            Operation::AddColumn {
                if_not_exists,
                column_def,
                ..
            } => return self.add_column(relation, column_def, *if_not_exists),
            Operation::DropColumn {
                column_names,
                if_exists,
                drop_behavior,
                ..
            } => {
                for name in column_names {
                    let name = folded(name);
                    let Some(position) = next.schema.position(&name) else {
                        if *if_exists {
                            let message = format!(
                                "column \"{name}\" of relation \"{}\" does not exist, skipping",
                                relation.name
                            );
                            self.notices.push(Fields::notice(message));
                            continue;
                        }
                        column_position(relation, &name)?;
                        continue;
                    };
                    let cascade = *drop_behavior == Some(ast::DropBehavior::Cascade);
                    let as_it_is = Arc::new(Relation {
                        kind: Kind::Table(Box::new(next.clone())),
                        ..Relation::clone(relation)
                    });
                    let id = next.schema.column(position).id;
                    let column = Object::Column(as_it_is, id);
                    self.let_go(&[column], cascade, Some(&mut next))?;
                    let position = next.schema.position(&name).unwrap_or(position);
                    // As it is by now: rows may be written anew.
                    let now = Relation {
                        kind: Kind::Table(Box::new(next.clone())),
                        ..Relation::clone(relation)
                    };
                    self.drop_column(&now, &mut next, position)?;
                }
            }
            Operation::RenameColumn {
                old_column_name,
                new_column_name,
            } => {
                let old = folded(old_column_name);
                let position = renamed_position(relation, &old)?;
                let name = folded(new_column_name);
                check_column_name(&name)?;
                let renamed = next.schema.rename_column(position, name.as_str());
                next.schema = Arc::new(renamed.map_err(|_| {
                    let message = format!(
                        "column \"{name}\" of relation \"{}\" already exists",
                        relation.name
                    );
                    SqlError::new(sqlstate::DUPLICATE_COLUMN, message)
                })?);
                self.rename_in_checks(relation, &mut next, &old, &name)?;
                let views = self.readers_with_columns(relation, position)?;
                let renamed = self.put_table(relation, next)?;
                self.keep_views_of(relation, views, &renamed)?;
                return Ok(renamed);
            }
            Operation::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(relation, &mut next, &folded(old_name), &folded(new_name))?;
            }
            Operation::RenameTable { table_name } => {
                return self.rename_relation(relation, table_name);
            }
            Operation::DropConstraint {
                if_exists,
                name,
                drop_behavior,
            } => {
                let name = folded(name);
                let constraints = |table: &Table| table.checks.len() + table.foreign_keys.len();
                let before = constraints(&next);
                next.checks.retain(|check| *check.name != *name);
                next.foreign_keys.retain(|key| *key.name != *name);
                if constraints(&next) == before {
                    let is_named =
                        |index: &&Arc<Index>| *index.name == *name && index.constraint.is_some();
                    let found = next.indexes.iter().find(is_named).cloned();
                    if let Some(index) = &found {
                        let cascade = *drop_behavior == Some(ast::DropBehavior::Cascade);
                        let constraint = Object::Constraint(relation.clone(), index.clone());
                        self.let_go(&[constraint], cascade, Some(&mut next))?;
                    }
                    match found.map(|index| (index.oid, index.primary)) {
                        Some((_, true)) => return self.drop_primary_key(relation, next),
                        Some((oid, false)) => self.take_index(&mut next, oid)?,
                        None if *if_exists => {
                            let message = format!(
                                "constraint \"{name}\" of relation \"{}\" does not exist, skipping",
                                relation.name
                            );
                            self.notices.push(Fields::notice(message));
                        }
                        None => {
                            let message = format!(
                                "constraint \"{name}\" of relation \"{}\" does not exist",
                                relation.name
                            );
                            return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
                        }
                    }
                }
            }
            Operation::AlterColumn { column_name, op } => {
                self.alter_column(relation, &mut next, column_name, op)?;
            }
            Operation::SetOptionsParens { options } => {
                if let Some((column, clauses)) = Clause::of_identity(options) {
                    return self.alter_identity(relation, column, &clauses);
                }
                let said = parameters::Said::of_table(options)?;
                next.options = parameters::changed(&next.options, said, Of::Table)?;
            }
            Operation::ValidateConstraint { name } => {
                let name = folded(name);
                validate(relation, &name)?;
                self.validate_references(relation, &name)?;
            }
            Operation::ReplicaIdentity { identity } => {
                self.set_replica_identity(relation, &mut next, identity)?;
            }
            Operation::OwnerTo { new_owner } => return self.give_to(relation, new_owner),
            other => match Switch::of(other) {
                Some(switch) => return self.switch_triggers(relation, next, &switch),
                None => return Err(SqlError::unsupported(format!("ALTER TABLE {other}"))),
            },
        }
        self.put_table(relation, next)
    }

    fn alter_column(
        &mut self,
        relation: &Relation,
        next: &mut Table,
        name: &ast::Ident,
        op: &ast::AlterColumnOperation,
    ) -> Result<()> {
        let position = column_position(relation, &folded(name))?;
        let column = next.schema.column(position).clone();
        match op {
            ast::AlterColumnOperation::SetNotNull => {
                next.schema = Arc::new(next.schema.set_nullable(position, false));
                let changed = Relation {
                    kind: Kind::Table(Box::new(next.clone())),
                    ..relation.clone()
                };
                self.check_rows(&changed)?;
            }
            ast::AlterColumnOperation::DropNotNull => {
                if let Some(Default::Identity { .. }) = next.default_of(column.id) {
                    self.check_default_of(relation, next, &column)?;
                }
                let key = next.primary_key();
                let in_key = |key: &Arc<Index>| key.key_columns().any(|part| part == column.id);
                if key.is_some_and(in_key) {
                    let message = format!("column \"{}\" is in a primary key", column.name);
                    return Err(SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, message));
                }
                super::marks::check_no_identity(next, &column)?;
                next.schema = Arc::new(next.schema.set_nullable(position, true));
            }
            ast::AlterColumnOperation::SetDefault { value } => {
                self.check_default_of(relation, next, &column)?;
                let default = self.new_default(value, column.ty, column.typmod)?;
                next.defaults.retain(|(id, _)| *id != column.id);
                next.defaults.push((column.id, default));
            }
            ast::AlterColumnOperation::DropDefault => {
                self.check_default_of(relation, next, &column)?;
                next.defaults.retain(|(id, _)| *id != column.id);
            }
            ast::AlterColumnOperation::SetDataType {
                data_type, using, ..
            } => {
                let collation = collation_of(self.text, name.span.start)?;
                self.retype(
                    relation,
                    next,
                    position,
                    (data_type, collation.as_ref()),
                    using.as_ref(),
                )?;
            }
            other => return Err(SqlError::unsupported(format!("ALTER COLUMN {other}"))),
        }
        Ok(())
    }
}

/// Whether an operation gives nothing but another name.
fn only_names(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::RenameTable { .. }
            | Operation::RenameColumn { .. }
            | Operation::RenameConstraint { .. }
    )
}

/// # Errors
/// `42710` if a constraint of a table is called so.
pub(super) fn check_name(relation: &Relation, name: &str) -> Result<()> {
    let taken = relation
        .table()
        .is_some_and(|table| table.has_constraint(name));
    match taken {
        false => Ok(()),
        true => {
            let message = format!(
                "constraint \"{name}\" for relation \"{}\" already exists",
                relation.name
            );
            Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message))
        }
    }
}

/// The column that a condition reads, if it reads one.
fn only_column(condition: &Expr) -> Option<usize> {
    let mut read = Vec::new();
    condition.walk(&mut |part| {
        if let Expr::Column { position, .. } = part {
            read.push(usize::from(*position));
        }
    });
    read.sort_unstable();
    read.dedup();
    match read[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// The type of a serial column.
pub(super) fn serial_type(data_type: &ast::DataType) -> Option<Type> {
    let ast::DataType::Custom(name, modifiers) = data_type else {
        return None;
    };
    if !modifiers.is_empty() {
        return None;
    }
    match name.to_string().to_lowercase().as_str() {
        "smallserial" | "serial2" => Some(Type::Int2),
        "serial" | "serial4" => Some(Type::Int4),
        "bigserial" | "serial8" => Some(Type::Int8),
        _ => None,
    }
}

/// # Errors
/// `42P16` for a type without values that a table could keep.
pub(super) fn check_column_type(name: &str, ty: Type) -> Result<()> {
    if !matches!(ty, Type::Record | Type::Void) {
        return Ok(());
    }
    let message = format!("column \"{name}\" has pseudo-type {}", ty.sql_name());
    Err(SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, message))
}
