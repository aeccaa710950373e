//! Statements that change the catalog.
//!
//! A statement takes the gates of what it changes alone (`catalog::gate`), makes or drops tables of the engine, and writes
//! the catalog's rows, all in its transaction: rolled back, nothing of it is left.
//!
//! Interleaving: a writer holds the gate of a table until it commits, so CREATE INDEX waits for it; but its own snapshot
//! may be older than that commit. Under read committed the statement's snapshot is drawn anew after the gate was taken (`gates`); under
//! repeatable read a row that it does not see is a conflict (`Ddl::newest_rows`).

mod absent;
mod acl;
mod alter;
mod alter_sequence;
mod column;
mod column_names;
mod comment;
mod computed;
mod deferral;
mod dependency;
mod dependents;
mod domains;
mod enums;
mod extension;
mod extension_callers;
mod fill;
mod foreign;
mod gates;
mod generated;
mod identity;
mod immutable;
mod index;
mod kept_settings;
mod key;
mod like;
mod made_names;
mod marks;
mod numbered;
mod owned;
mod owner;
mod parameters;
mod readers;
mod renamed;
mod retype;
mod rewrite;
mod rights;
mod role;
mod role_renamed;
mod schema;
mod schema_renamed;
mod sequence;
mod table;
mod temporary;
mod triggers;
mod truncate;
mod type_texts;
mod view;

pub(crate) use extension_callers::each_function;
pub(crate) use index::{check_form, named_class, without_collate};
pub(crate) use kept_settings::Whose;
pub(crate) use marks::check_table_method;
pub(crate) use readers::named_sequences;
pub(crate) use type_texts::{each_type, types_in};

use self::dependency::Object;
use crate::bind::Binder;
use crate::catalog::{
    Catalog, Change, DefaultKind, Gated, Kind, Mode, Named, Oid, PG_CATALOG, Relation, Table,
};
use crate::database::Shared;
use crate::error::{Fields, Result, SqlError};
use crate::parse::Command;
use crate::session::{Asked, Open, Temporary, Waiting};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, ObjectType, Statement};
use std::sync::Arc;
use vellum_row::{ColumnId, Settings};

/// Columns of a table at most, dropped ones included, and of an index: PostgreSQL's numbers.
const COLUMNS_MAX: usize = 1600;
const INDEX_COLUMNS_MAX: usize = 32;

/// # Errors
/// `54011`.
fn check_table_columns(count: usize) -> Result<()> {
    let text = "tables can have at most 1600 columns";
    SqlError::check_columns(count, COLUMNS_MAX, text)
}

/// # Errors
/// `54011`.
fn check_index_columns(count: usize) -> Result<()> {
    let text = "cannot use more than 32 columns in an index";
    SqlError::check_columns(count, INDEX_COLUMNS_MAX, text)
}

/// A DDL statement at work.
pub(crate) struct Ddl<'d> {
    pub shared: &'d Shared,
    pub open: &'d mut Open,
    pub search_path: Vec<Oid>,
    pub forms: &'d Settings,
    pub text: &'d str,
    /// The role whose rights count, and that owns what is made.
    pub role: Oid,
    pub waiting: Waiting<'d>,
    /// Bytes that a definition may keep of the rows that it reads.
    pub memory: usize,
    pub notices: Vec<Fields>,
    pub temporary: &'d mut Temporary,
    /// What expressions ask of the session.
    pub asked: Asked<'d>,
    /// Whether it has failed only because it is to be run from its beginning (`gates`).
    pub again: bool,
}

impl Ddl<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// The statement's; what it did is to be rolled back.
    pub fn run(&mut self, statement: &Statement) -> Result<CommandTag> {
        match statement {
            Statement::CreateTable(create) => self.create_table(create),
            Statement::CreateIndex(create) => self.create_index(create),
            Statement::AlterTable(alter) => self.alter_table(alter),
            Statement::CreateSequence {
                if_not_exists,
                name,
                data_type,
                sequence_options,
                temporary,
                owned_by,
            } => self.create_sequence(&sequence::Made {
                if_not_exists: *if_not_exists,
                temporary: *temporary,
                name,
                data_type: data_type.as_ref(),
                options: sequence_options,
                owned_by: owned_by.as_ref(),
            }),
            Statement::CreateSchema {
                schema_name,
                if_not_exists,
                ..
            } => self.create_schema(schema_name, *if_not_exists),
            Statement::AlterSchema(alter) => self.alter_schema(alter),
            Statement::CreateView(create) => self.create_view(create),
            Statement::CreateType {
                name,
                representation,
            } => self.create_type(name, representation.as_ref()),
            Statement::AlterType(alter) => self.alter_type(alter),
            Statement::CreateDomain(create) => self.create_domain(create),
            Statement::CreateExtension(create) => self.create_extension(create),
            Statement::DropExtension(drop) => self.drop_extension(drop),
            Statement::Comment {
                object_type,
                object_name,
                comment,
                ..
            } => self.comment(object_type, object_name, comment.as_deref()),
            Statement::Truncate(truncate) => self.truncate(truncate),
            Statement::CreateRole(create) => self.create_role(create),
            Statement::AlterRole {
                name,
                operation: ast::AlterRoleOperation::RenameRole { role_name },
            } => {
                let name = crate::bind::folded(name);
                self.rename_role(&name, role_name)
            }
            Statement::AlterRole { name, operation } => self.alter_role(name, operation),
            Statement::Drop {
                object_type,
                if_exists,
                names,
                cascade,
                table,
                ..
            } => {
                let domains = crate::parse::drops_domains(table.as_ref());
                self.drop((*object_type, domains), *if_exists, names, *cascade)
            }
            other => {
                match Command::of(other) {
                    Some(Command::DropAbsent(drop)) => return self.drop_absent(&drop),
                    Some(Command::Said(said)) => return self.run_said(&said),
                    Some(Command::Schema(said)) => return self.create_schema_with(&said),
                    _ => {}
                }
                let words = other.to_string();
                let words: Vec<&str> = words.split(' ').take(2).collect();
                Err(SqlError::unsupported(words.join(" ")))
            }
        }
    }

    /// A binder for the image as it is now, of what is kept: there are no parameters in it.
    fn binder(&self) -> Binder<'_> {
        self.binder_in(&self.open.catalog.1)
    }

    /// The same for another image.
    fn binder_in<'b>(&'b self, catalog: &'b Catalog) -> Binder<'b> {
        let mut binder = Binder::new(catalog, &self.search_path, self.forms, self.text);
        binder.takes_params = false;
        binder
    }

    fn draw_oid(&self) -> Result<Oid> {
        let look = || self.waiting.look_cancelled();
        self.shared.oids.draw((&self.shared.engine, &look))
    }

    /// Of two oids that follow each other the first.
    fn draw_pair(&self) -> Result<Oid> {
        let look = || self.waiting.look_cancelled();
        self.shared.oids.draw_pair((&self.shared.engine, &look))
    }

    /// Schema and name of what is made.
    fn new_name(&mut self, name: &ast::ObjectName, temporary: bool) -> Result<(Oid, String)> {
        let (schema, name) = crate::bind::object_name(name)?;
        if let Some(own) = self.temporary_for(schema.as_deref(), temporary)? {
            return Ok((own, name));
        }
        let catalog = &self.open.catalog.1;
        let namespace = match schema {
            Some(schema) => match catalog.namespace(&schema) {
                Some(namespace) => namespace.oid,
                None => return Err(no_schema(&schema)),
            },
            None => *self
                .search_path
                .iter()
                .find(|oid| **oid != PG_CATALOG && !catalog.is_temporary(**oid))
                .ok_or_else(|| {
                    let text = "no schema has been selected to create in";
                    SqlError::new(sqlstate::INVALID_SCHEMA_NAME, text)
                })?,
        };
        if namespace == PG_CATALOG {
            let message = format!("permission denied to create \"pg_catalog.{name}\"");
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
        }
        let catalog = &self.open.catalog.1;
        let schema = catalog.namespace_by_oid(namespace);
        if let Some(schema) = schema
            && !self
                .open
                .rights()
                .1
                .allows_in_schema(self.role, schema, true)
        {
            let message = format!("permission denied for schema {}", schema.name);
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
        }
        self.enter_gated(Gated::Schema, namespace, Mode::Write)?;
        Ok((namespace, name))
    }

    /// Whether the name is taken; a notice if that is to be no error.
    ///
    /// # Errors
    /// `42P07`.
    fn is_taken(&mut self, namespace: Oid, name: &str, may_be: bool) -> Result<bool> {
        if self.open.catalog.1.named(namespace, name).is_none() {
            return Ok(false);
        }
        if may_be {
            self.notices.push(Fields::skipping(&taken(name)));
            return Ok(true);
        }
        Err(taken(name))
    }

    /// Tells that a relation is not there, where it need not be.
    fn skip_missing(&mut self, name: &ast::ObjectName) -> Result<()> {
        let (_, shown) = crate::bind::object_name(name)?;
        let message = format!("relation \"{shown}\" does not exist, skipping");
        self.notices.push(Fields::notice(message));
        Ok(())
    }

    /// A relation that is made by this statement.
    fn new_relation(&self, oid: Oid, namespace: Oid, name: &str, kind: Kind) -> Relation {
        Relation {
            oid,
            namespace,
            name: name.into(),
            owner: self.role,
            generation: 1,
            runtime: Arc::default(),
            // Default privileges of now: those of the snapshot may name roles that are gone.
            acl: self
                .roles()
                .acl_of_new(self.role, namespace, DefaultKind::of(&kind)),
            column_acls: Vec::new(),
            kind,
        }
    }

    /// Puts a relation that has another definition.
    fn put_table(&mut self, relation: &Relation, table: Table) -> Result<Arc<Relation>> {
        // With a column go the rights on it.
        let mut column_acls = relation.column_acls.clone();
        column_acls.retain(|(column, _)| table.schema.position_of(ColumnId(*column)).is_some());
        let next = Arc::new(Relation {
            generation: relation.generation + 1,
            column_acls,
            kind: Kind::Table(Box::new(table)),
            ..relation.clone()
        });
        self.hold_types(&next)?;
        self.change(Change::PutRelation(next.clone()))?;
        Ok(next)
    }

    fn drop(
        &mut self,
        (object, domains): (ObjectType, bool),
        if_exists: bool,
        names: &[ast::ObjectName],
        cascade: bool,
    ) -> Result<CommandTag> {
        let (word, tag) = match object {
            ObjectType::Type if domains => ("type", "DROP DOMAIN"),
            ObjectType::Table => ("table", "DROP TABLE"),
            ObjectType::View => ("view", "DROP VIEW"),
            ObjectType::Index => ("index", "DROP INDEX"),
            ObjectType::Sequence => ("sequence", "DROP SEQUENCE"),
            ObjectType::Schema => ("schema", "DROP SCHEMA"),
            ObjectType::Role | ObjectType::User => ("role", "DROP ROLE"),
            ObjectType::Type => ("type", "DROP TYPE"),
            other => return Err(SqlError::unsupported(format!("DROP {other}"))),
        };
        let mut objects = Vec::with_capacity(names.len());
        for name in names {
            match object {
                ObjectType::Schema => objects.extend(self.schema_to_drop(name, if_exists)?),
                ObjectType::Role | ObjectType::User => self.drop_role(name, if_exists)?,
                ObjectType::Type => {
                    if domains {
                        self.check_names_domain(name)?;
                    }
                    objects.extend(self.type_to_drop(name, if_exists)?);
                }
                _ => objects.extend(self.object_to_drop(name, object, word, if_exists)?),
            }
        }
        self.let_go(&objects, cascade, None)?;
        for object in objects {
            match object {
                Object::Schema(namespace) => self.change(Change::DropNamespace(namespace.oid))?,
                Object::Relation(relation) => self.discard(&relation)?,
                Object::Index(relation, index) => self.discard_index(&relation, index.oid)?,
                Object::Column(..)
                | Object::Arrays(_)
                | Object::Constraint(..)
                | Object::Key(..)
                | Object::Check(..)
                | Object::Asked(..)
                | Object::Default(..)
                | Object::Extension(_)
                | Object::Function(_) => {}
            }
        }
        Ok(CommandTag::plain(tag))
    }

    /// The relation or index that is to be dropped, alone; none if it is not there and need not be.
    fn object_to_drop(
        &mut self,
        name: &ast::ObjectName,
        object: ObjectType,
        word: &str,
        if_exists: bool,
    ) -> Result<Option<Object>> {
        self.check_place(name)?;
        let Some(named) = self.binder().named(name)? else {
            let (schema, shown) = crate::bind::object_name(name)?;
            if if_exists {
                let found = |schema: &String| {
                    let catalog = &self.open.catalog.1;
                    catalog.schema_named(schema, &self.search_path).is_some()
                };
                if let Some(schema) = schema.filter(|schema| !found(schema)) {
                    let message = format!("{}, skipping", no_schema(&schema).message());
                    self.notices.push(Fields::notice(message));
                    return Ok(None);
                }
                let message = format!("{word} \"{shown}\" does not exist, skipping");
                self.notices.push(Fields::notice(message));
                return Ok(None);
            }
            self.check_schema(name)?;
            let message = format!("{word} \"{shown}\" does not exist");
            let state = if object == ObjectType::Index {
                sqlstate::UNDEFINED_OBJECT
            } else {
                sqlstate::UNDEFINED_TABLE
            };
            return Err(SqlError::new(state, message));
        };
        let (oid, index) = match named {
            Named::Relation(oid) => (oid, None),
            Named::Index { table, index } => (table, Some(index)),
        };
        let found = self.open.catalog.1.relation(oid).cloned();
        let relation = found.ok_or_else(|| SqlError::internal("a name without relation"))?;
        check_no_system(&relation)?;
        let own = match index {
            Some(_) => "index",
            None => kind_word(&relation.kind),
        };
        if own != word {
            let (_, shown) = crate::bind::object_name(name)?;
            let message = format!("\"{shown}\" is not a{} {word}", article(word));
            let hint = format!(
                "Use DROP {} to remove a{} {own}.",
                own.to_uppercase(),
                article(own)
            );
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message).with_hint(hint));
        }
        let relation = self.alone_if(&relation, Self::check_owner)?;
        if let Some(index) = index {
            return self.index_to_drop(&relation, index).map(Some);
        }
        if let Kind::Sequence(_) = &relation.kind {
            self.check_no_identity(&relation)?;
        }
        Ok(Some(Object::Relation(relation)))
    }

    /// Drops the engine's tables of a table.
    fn drop_storage(&mut self, table: &Table) -> Result<()> {
        let transaction = &self.open.transaction;
        for storage in table.storages() {
            transaction.drop_table(&storage.name)?;
        }
        Ok(())
    }

    /// The sequences that go with a table, or with one of its columns.
    fn owned_sequences(&self, table: Oid, column: Option<ColumnId>) -> Vec<Arc<Relation>> {
        let relations = self.open.catalog.1.relations();
        let owned = relations.into_iter().filter(|relation| {
            matches!(&relation.kind, Kind::Sequence(sequence) if sequence.owner.0 == table
                && column.is_none_or(|column| sequence.owner.1 == column.0))
        });
        owned.cloned().collect()
    }

    /// The schema that is to be dropped; none if it is not there and need not be.
    fn schema_to_drop(
        &mut self,
        name: &ast::ObjectName,
        if_exists: bool,
    ) -> Result<Option<Object>> {
        let (_, name) = crate::bind::object_name(name)?;
        let Some(namespace) = self.open.catalog.1.namespace(&name).cloned() else {
            if if_exists {
                let message = format!("schema \"{name}\" does not exist, skipping");
                self.notices.push(Fields::notice(message));
                return Ok(None);
            }
            return Err(no_schema(&name));
        };
        let may = |own: &Self| match own.open.rights().1.owns(own.role, namespace.owner) {
            true => Ok(()),
            false => {
                let message = format!("must be owner of schema {name}");
                Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message))
            }
        };
        self.gated_alone_if(Gated::Schema, namespace.oid, may)?;
        Ok(Some(Object::Schema(namespace)))
    }
}

/// What ends the article in front of a word.
fn article(word: &str) -> &'static str {
    if word == "index" { "n" } else { "" }
}

/// # Errors
/// `42501` for a relation that the program has.
fn check_no_system(relation: &Relation) -> Result<()> {
    if matches!(relation.kind, Kind::System(_)) {
        let message = format!(
            "permission denied: \"{}\" is a system catalog",
            relation.name
        );
        return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
    }
    Ok(())
}

/// What a relation is called in messages.
fn kind_word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Table(_) | Kind::System(_) => "table",
        Kind::View(_) => "view",
        Kind::Sequence(_) => "sequence",
        Kind::Enum(_) | Kind::Domain(_) => "type",
    }
}

/// `42809` for what cannot be done with a relation of a kind.
#[cold]
fn not_for(message: String, kind: &Kind) -> SqlError {
    let detail = format!("This operation is not supported for {}s.", kind_word(kind));
    SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message).with_detail(detail)
}

#[cold]
fn no_schema(name: &str) -> SqlError {
    let message = format!("schema \"{name}\" does not exist");
    SqlError::new(sqlstate::INVALID_SCHEMA_NAME, message)
}

#[cold]
fn taken(name: &str) -> SqlError {
    let message = format!("relation \"{name}\" already exists");
    SqlError::new(sqlstate::DUPLICATE_TABLE, message)
}
