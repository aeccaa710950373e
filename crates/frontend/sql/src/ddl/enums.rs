//! CREATE TYPE … AS ENUM, ALTER TYPE.
//!
//! A label keeps its position for ever, so no row and no key is written anew whatever becomes of the type (`vellum_row::EnumType`).
//!
//! Interleaving: a type is dropped while a column of it is made. Whoever makes a column, or anything else that names the type, holds the type's gate
//! with others like it ([`Ddl::hold_types`]); DROP TYPE and ALTER TYPE need it alone.

use super::Ddl;
use super::dependency::Object;
use super::role::denied;
use crate::bind::{NamedType, TypeNames, folded, no_type};
use crate::catalog::{Change, Kind, Oid, Relation};
use crate::error::{Fields, Result, SqlError};
use crate::names::quoted;
use crate::parse::Clause;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, AlterTypeOperation, Ident};
use std::sync::Arc;
use vellum_row::{EnumLabel, EnumType, LABEL_BYTES_MAX, Neighbour, Type};

impl Ddl<'_> {
    /// CREATE TYPE.
    ///
    /// # Errors
    /// `42710` for a name that is taken, `42602` for a label that is too long, `23505` for one that is there twice; `0A000` for what is no enum.
    pub(super) fn create_type(
        &mut self,
        name: &ast::ObjectName,
        form: Option<&ast::UserDefinedTypeRepresentation>,
    ) -> Result<CommandTag> {
        let Some(ast::UserDefinedTypeRepresentation::Enum { labels }) = form else {
            return Err(SqlError::unsupported("CREATE TYPE of what is no enum"));
        };
        let (namespace, name) = self.new_name(name, false)?;
        self.check_type_free(namespace, &name, false)?;
        let oid = self.draw_pair()?;
        let mut made: Vec<EnumLabel> = Vec::with_capacity(labels.len());
        for label in labels {
            let text = &label.value;
            check_label(text)?;
            if made.iter().any(|other| *other.text == **text) {
                return Err(label_twice(oid, text));
            }
            made.push(EnumLabel {
                oid: self.draw_oid()?,
                position: EnumType::first_position(made.len()),
                text: text.as_str().into(),
                fresh: false,
            });
        }
        let own = self.new_relation(oid, namespace, &name, Kind::Enum(made.into()));
        self.change(Change::PutRelation(Arc::new(own)))?;
        Ok(CommandTag::plain("CREATE TYPE"))
    }

    /// # Errors
    /// `42710` for a name that a type has, or the rows of a table.
    pub(super) fn check_type_free(&self, namespace: Oid, name: &str, moves: bool) -> Result<()> {
        let catalog = &self.open.catalog.1;
        let rows = catalog.named(namespace, name);
        let rows = match rows {
            Some(crate::catalog::Named::Relation(oid)) => catalog.relation(oid),
            _ => None,
        };
        let has_type = |relation: &Arc<Relation>| !matches!(relation.kind, Kind::Sequence(_));
        if catalog.type_named(namespace, name).is_none() && !rows.is_some_and(has_type) {
            return Ok(());
        }
        let mut message = format!("type \"{name}\" already exists");
        if moves {
            let schema = catalog.namespace_name(namespace);
            message = format!("{message} in schema \"{schema}\"");
        }
        Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message))
    }

    /// The rows of a table have a type of its name.
    ///
    /// # Errors
    /// `42710` for the name of a type.
    pub(super) fn check_no_type(&self, namespace: Oid, name: &str) -> Result<()> {
        if self.open.catalog.1.type_named(namespace, name).is_none() {
            return Ok(());
        }
        let message = format!("type \"{name}\" already exists");
        Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message).with_hint(
            "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.",
        ))
    }

    /// The type of a name, if users can have made it.
    ///
    /// # Errors
    /// `3F000`.
    pub(super) fn find_type(&self, name: &ast::ObjectName) -> Result<Option<NamedType>> {
        self.check_place(name)?;
        let (schema, base) = crate::bind::object_name(name)?;
        let names = self.binder().type_names();
        let built_in = match schema.as_deref() {
            None | Some("pg_catalog") => Type::from_name(&base),
            Some(_) => None,
        };
        match built_in {
            None => names.find(schema.as_deref(), &base),
            found => Ok(found.map(NamedType::Own)),
        }
    }

    /// An enum that is to be changed, alone.
    ///
    /// # Errors
    /// `42704` if it is not there, `42809` for what is no enum, `42501` for who does not own it.
    fn enum_alone(&mut self, name: &ast::ObjectName) -> Result<Arc<Relation>> {
        let found = self.find_type(name)?;
        let Some(NamedType::Own(Type::Enum(id))) = found else {
            return Err(match found {
                // The rows of a table have a type of its name.
                None => match self.binder().relation(name) {
                    Ok(table) => {
                        let message = format!("{} is not an enum", quoted(&table.name));
                        SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
                    }
                    Err(_) => no_type(name),
                },
                Some(other) => {
                    let message = format!("{} is not an enum", self.name_of_named(&other));
                    SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
                }
            });
        };
        let relation = self.open.catalog.1.relation(id.oid()).cloned();
        let relation = relation.ok_or_else(|| no_type(name))?;
        self.alone_if(&relation, Self::check_type_owner)
    }

    /// The oid of a type that COMMENT tells of.
    ///
    /// # Errors
    /// `42704`; `42501` for who does not own it, or for a type that the program has.
    pub(super) fn type_to_tell(&self, name: &ast::ObjectName) -> Result<Oid> {
        let found = self.find_type(name)?.ok_or_else(|| no_type(name))?;
        let Some(own) = self.open.catalog.1.relation(found.oid()) else {
            let name = self.name_of_named(&found);
            return Err(denied(format!("must be owner of type {name}")));
        };
        self.check_type_owner(own)?;
        Ok(own.oid)
    }

    pub(super) fn check_type_owner(&self, relation: &Relation) -> Result<()> {
        if self.open.rights().1.owns(self.role, relation.owner) {
            return Ok(());
        }
        let name = self.type_shown(relation);
        Err(denied(format!("must be owner of type {name}")))
    }

    /// What a type is called in messages.
    pub(super) fn type_shown(&self, relation: &Relation) -> String {
        let types = self.open.catalog.1.types();
        let ty = relation.as_type();
        match ty {
            Some(ty) => types.name_of(ty, &self.search_path).into_owned(),
            None => self.binder().domain_shown(relation),
        }
    }

    fn name_of_named(&self, named: &NamedType) -> String {
        match named {
            NamedType::Own(ty) => self.forms.name_of(*ty).into_owned(),
            NamedType::Domain(oid) => self.forms.domain_name(*oid).unwrap_or_default(),
        }
    }

    /// A type that is to be given another name or place, alone: an enum or a domain.
    ///
    /// # Errors
    /// Those of [`Ddl::enum_alone`].
    fn type_alone(&mut self, name: &ast::ObjectName) -> Result<Arc<Relation>> {
        let Some(NamedType::Domain(oid)) = self.find_type(name)? else {
            return self.enum_alone(name);
        };
        let relation = self.open.catalog.1.relation(oid).cloned();
        let relation = relation.ok_or_else(|| no_type(name))?;
        self.alone_if(&relation, Self::check_type_owner)
    }

    /// Gives a type that is held alone another name.
    ///
    /// # Errors
    /// `42710`.
    pub(super) fn rename_type(&mut self, relation: &Arc<Relation>, name: &str) -> Result<()> {
        self.check_type_free(relation.namespace, name, false)?;
        let next = Relation {
            name: name.into(),
            generation: relation.generation + 1,
            ..Relation::clone(relation)
        };
        self.change(Change::PutRelation(Arc::new(next)))
    }

    /// ALTER TYPE … ADD VALUE, RENAME VALUE, RENAME TO.
    ///
    /// # Errors
    /// Those of [`Ddl::enum_alone`]; `42710` for a label or a name that is there, `22023` for a label that is not, `42602`, `54000`.
    pub(super) fn alter_type(&mut self, alter: &ast::AlterType) -> Result<CommandTag> {
        let tag = CommandTag::plain("ALTER TYPE");
        match &alter.operation {
            AlterTypeOperation::AddValue(add) => self.add_value(&alter.name, add)?,
            AlterTypeOperation::RenameValue(rename) => {
                let relation = self.enum_alone(&alter.name)?;
                self.rename_value(&relation, &rename.from.value, &rename.to.value)?;
            }
            AlterTypeOperation::Rename(rename) => {
                let relation = self.type_alone(&alter.name)?;
                self.rename_type(&relation, &folded(&rename.new_name))?;
            }
        }
        Ok(tag)
    }

    /// ALTER TYPE … OWNER TO, SET SCHEMA.
    ///
    /// # Errors
    /// Those of [`Ddl::enum_alone`] and of OWNER TO; `3F000`, `42710`.
    pub(super) fn alter_type_place(
        &mut self,
        alter: &ast::AlterTable,
        clauses: &[Clause],
    ) -> Result<CommandTag> {
        let relation = self.type_alone(&alter.name)?;
        match (alter.operations.get(1), clauses) {
            (Some(ast::AlterTableOperation::OwnerTo { new_owner }), _) => {
                self.give_to(&relation, new_owner)?;
            }
            (_, [Clause::Schema(schema)]) => self.move_type(&relation, schema)?,
            _ => return Err(SqlError::internal("nothing to alter")),
        }
        Ok(CommandTag::plain("ALTER TYPE"))
    }

    pub(super) fn move_type(&mut self, relation: &Arc<Relation>, schema: &Ident) -> Result<()> {
        let own = Ident::with_quote('"', &*relation.name);
        let name = ast::ObjectName::from(vec![schema.clone(), own]);
        let (namespace, name) = self.new_name(&name, false)?;
        if namespace == relation.namespace {
            return Ok(());
        }
        if self.open.catalog.1.is_temporary(namespace) {
            let text = "cannot move objects into or out of temporary schemas";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        self.check_type_free(namespace, &name, true)?;
        let next = Relation {
            namespace,
            generation: relation.generation + 1,
            ..Relation::clone(relation)
        };
        self.change(Change::PutRelation(Arc::new(next)))
    }

    fn add_value(&mut self, name: &ast::ObjectName, add: &ast::AlterTypeAddValue) -> Result<()> {
        let relation = self.enum_alone(name)?;
        let text = &add.value.value;
        check_label(text)?;
        let own = self.enum_of(&relation)?;
        if own.label(text).is_some() {
            let message = format!("enum label \"{text}\" already exists");
            let error = SqlError::new(sqlstate::DUPLICATE_OBJECT, message);
            if add.if_not_exists {
                self.notices.push(Fields::skipping(&error));
                return Ok(());
            }
            return Err(error);
        }
        let neighbour = match &add.position {
            None => Neighbour::Last,
            Some(ast::AlterTypeAddValuePosition::Before(label)) => Neighbour::Before(&label.value),
            Some(ast::AlterTypeAddValuePosition::After(label)) => Neighbour::After(&label.value),
        };
        let (at, position) = own.place(neighbour)?;
        let mut labels = own.labels.clone();
        let label = EnumLabel {
            oid: self.draw_oid()?,
            position,
            text: text.as_str().into(),
            fresh: true,
        };
        labels.insert(at, label);
        self.put_labels(&relation, labels)
    }

    /// The type as its values are read and written.
    pub(super) fn enum_of(&self, relation: &Relation) -> Result<Arc<EnumType>> {
        let found = match relation.as_type() {
            Some(Type::Enum(id)) => self.open.catalog.1.types().get(id).cloned(),
            _ => None,
        };
        found.ok_or_else(|| SqlError::internal("an enum without labels"))
    }

    pub(super) fn put_labels(
        &mut self,
        relation: &Arc<Relation>,
        labels: Vec<EnumLabel>,
    ) -> Result<()> {
        let next = Relation {
            generation: relation.generation + 1,
            kind: Kind::Enum(labels.into()),
            ..Relation::clone(relation)
        };
        self.change(Change::PutRelation(Arc::new(next)))
    }

    /// The type that is to be dropped, alone; none if it is not there and need not be.
    ///
    /// # Errors
    /// `42704`; `42501`; `2BP01` for a type that the program has, and for one that belongs to another.
    pub(super) fn type_to_drop(
        &mut self,
        name: &ast::ObjectName,
        if_exists: bool,
    ) -> Result<Option<Object>> {
        let found = match self.find_type(name) {
            Err(error) if if_exists && error.sqlstate() == sqlstate::INVALID_SCHEMA_NAME => {
                let message = format!("{}, skipping", error.message());
                self.notices.push(Fields::notice(message));
                return Ok(None);
            }
            found => found?,
        };
        let found = match found {
            Some(found) => found,
            None if if_exists => {
                let message = format!("{}, skipping", no_type(name).message());
                self.notices.push(Fields::notice(message));
                return Ok(None);
            }
            None => return Err(no_type(name)),
        };
        let shown = self.name_of_named(&found);
        let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
        if let NamedType::Own(ty) = found
            && !matches!(ty, Type::Enum(_))
        {
            return Err(match ty.enum_id() {
                None => {
                    let message = format!(
                        "cannot drop type {shown} because it is required by the database system"
                    );
                    SqlError::new(state, message)
                }
                Some(id) => {
                    let own = self.forms.name_of(Type::Enum(id));
                    let message =
                        format!("cannot drop type {shown} because type {own} requires it");
                    SqlError::new(state, message)
                        .with_hint(format!("You can drop type {own} instead."))
                }
            });
        }
        let relation = self.open.catalog.1.relation(found.oid()).cloned();
        let relation = relation.ok_or_else(|| no_type(name))?;
        let relation = self.alone_if(&relation, Self::check_type_owner)?;
        Ok(Some(Object::Relation(relation)))
    }

    /// Where types are looked up.
    pub(super) fn type_names(&self) -> TypeNames<'_> {
        self.binder().type_names()
    }
}

/// # Errors
/// `42602`.
pub(super) fn check_label(text: &str) -> Result<()> {
    if text.len() <= LABEL_BYTES_MAX {
        return Ok(());
    }
    let message = format!("invalid enum label \"{text}\"");
    let detail = format!("Labels must be {LABEL_BYTES_MAX} bytes or less.");
    Err(SqlError::new(sqlstate::INVALID_NAME, message).with_detail(detail))
}

#[cold]
fn label_twice(oid: Oid, text: &str) -> SqlError {
    let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
    let detail = format!("Key (enumtypid, enumlabel)=({oid}, {text}) already exists.");
    SqlError::new(sqlstate::UNIQUE_VIOLATION, message).with_detail(detail)
}
