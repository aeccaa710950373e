//! CREATE, ALTER and DROP EXTENSION.

use super::dependency::Object;
use super::{Ddl, no_schema};
use crate::bind::folded;
use crate::catalog::{Change, Comment, Extension, Gated, Mode, Namespace, Oid, PG_CATALOG};
use crate::error::{Fields, Result, SqlError};
use crate::extension::{Available, PLPGSQL, available};
use crate::parse::Clause;
use crate::roles::Rights;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, CreateExtension, DropExtension, ReferentialAction};
use std::sync::Arc;

impl Ddl<'_> {
    pub(super) fn create_extension(&mut self, create: &CreateExtension) -> Result<CommandTag> {
        let tag = CommandTag::plain("CREATE EXTENSION");
        let name = folded(&create.name);
        check_name(&name, FileName::Extension)?;
        if let Some(there) = self.open.catalog.1.extension(&name) {
            let error = there.already_there();
            if !create.if_not_exists {
                return Err(error);
            }
            self.notices.push(Fields::skipping(&error));
            return Ok(tag);
        }
        let own = available(&name).ok_or_else(|| not_available(&name))?;
        if let Some(version) = create.version.as_ref().map(folded) {
            check_name(&version, FileName::Version)?;
            if version != own.version {
                let message = format!(
                    "extension \"{name}\" has no installation script nor update path for version \"{version}\""
                );
                return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
            }
        }
        let schema = create.schema.as_ref().map(folded);
        let namespace = self.place_of(own, schema.as_deref())?;
        if !self.roles().allows_in_database(self.role, Rights::CREATE) {
            let message = format!("permission denied to create extension \"{name}\"");
            return Err(
                SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message).with_hint(
                    "Must have CREATE privilege on current database to create this extension.",
                ),
            );
        }
        self.enter_gated(Gated::Schema, namespace, Mode::Write)?;
        let extension = Extension {
            oid: self.draw_oid()?,
            name: name.into(),
            owner: self.role,
            namespace,
            version: own.version.into(),
        };
        let comment = Comment {
            object: extension.oid,
            column: 0,
            text: Some(own.comment.into()),
        };
        let made = Change::PutExtension(Arc::new(extension));
        self.change(made)?;
        self.change(Change::PutComment(comment))?;
        Ok(tag)
    }

    /// The schema that a new extension is made in.
    ///
    /// # Errors
    /// `3F000`; `0A000` for one that an extension cannot be in.
    fn place_of(&self, own: &Available, schema: Option<&str>) -> Result<Oid> {
        let catalog = &self.open.catalog.1;
        if let Some(schema) = schema {
            let found = catalog.namespace(schema).ok_or_else(|| no_schema(schema))?;
            if let Some(only) = own.schema.filter(|only| *only != schema) {
                let message = format!(
                    "extension \"{}\" must be installed in schema \"{only}\"",
                    own.name
                );
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            self.check_lasts(found)?;
            return Ok(found.oid);
        }
        if let Some(only) = own.schema.and_then(|only| catalog.namespace(only)) {
            return Ok(only.oid);
        }
        let mut path = self.search_path.iter();
        let found = path.find(|oid| **oid != PG_CATALOG && !catalog.is_temporary(**oid));
        found.copied().ok_or_else(|| {
            let text = "no schema has been selected to create in";
            SqlError::new(sqlstate::INVALID_SCHEMA_NAME, text)
        })
    }

    /// # Errors
    /// `0A000` for a schema that goes when its session ends.
    fn check_lasts(&self, schema: &Namespace) -> Result<()> {
        match self.open.catalog.1.is_temporary(schema.oid) {
            true => Err(SqlError::unsupported("an extension in a temporary schema")),
            false => Ok(()),
        }
    }

    /// An extension that the role may change.
    ///
    /// # Errors
    /// `42704`; `42501` for who does not own it.
    pub(super) fn extension_named(&self, name: &str) -> Result<Arc<Extension>> {
        let catalog = &self.open.catalog.1;
        let found = catalog.extension(name).cloned();
        let found = found.ok_or_else(|| no_extension(name))?;
        if self.open.rights().1.owns(self.role, found.owner) {
            return Ok(found);
        }
        let message = format!("must be owner of extension {name}");
        Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message))
    }

    pub(super) fn drop_extension(&mut self, drop: &DropExtension) -> Result<CommandTag> {
        let mut dropped: Vec<Arc<Extension>> = Vec::with_capacity(drop.names.len());
        for name in drop.names.iter().map(folded) {
            if drop.if_exists && self.open.catalog.1.extension(&name).is_none() {
                let message = format!("{}, skipping", no_extension(&name).message());
                self.notices.push(Fields::notice(message));
                continue;
            }
            let found = self.extension_named(&name)?;
            if name == PLPGSQL {
                let message = format!(
                    "cannot drop extension {name} because it is required by the database system"
                );
                let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
                return Err(SqlError::new(state, message));
            }
            if !dropped.contains(&found) {
                dropped.push(found);
            }
        }
        for extension in &dropped {
            self.gated_alone_if(Gated::Extension, extension.oid, |ddl| {
                ddl.extension_named(&extension.name).map(|_| ())
            })?;
        }
        let objects = dropped.iter().cloned().map(Object::Extension);
        let objects: Vec<Object> = objects.collect();
        let cascade = drop.cascade_or_restrict == Some(ReferentialAction::Cascade);
        self.let_go(&objects, cascade, None)?;
        for extension in &dropped {
            self.discard_extension(extension)?;
        }
        Ok(CommandTag::plain("DROP EXTENSION"))
    }

    /// ALTER EXTENSION … SET SCHEMA, or UPDATE.
    ///
    /// # Errors
    /// `42704`, `42501`, `3F000`; `0A000` for one that stays where it is; `22023` for a version that there is not.
    pub(super) fn alter_extension(
        &mut self,
        alter: &ast::AlterTable,
        clauses: &[Clause],
    ) -> Result<CommandTag> {
        let (_, name) = crate::bind::object_name(&alter.name)?;
        let extension = self.extension_named(&name)?;
        match clauses {
            [Clause::Schema(schema)] => self.move_extension(&extension, &folded(schema))?,
            [Clause::Update(version)] => {
                let version = version.as_ref().map(folded);
                let version = version.unwrap_or_else(|| extension.version.to_string());
                check_name(&version, FileName::Version)?;
                if *version != *extension.version {
                    let message = format!(
                        "extension \"{name}\" has no update path from version \"{}\" to version \"{version}\"",
                        extension.version
                    );
                    return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
                }
                let message =
                    format!("version \"{version}\" of extension \"{name}\" is already installed");
                self.notices.push(Fields::notice(message));
            }
            _ => return Err(SqlError::internal("nothing to alter")),
        }
        Ok(CommandTag::plain("ALTER EXTENSION"))
    }

    fn move_extension(&mut self, extension: &Arc<Extension>, schema: &str) -> Result<()> {
        let catalog = &self.open.catalog.1;
        let to = catalog.namespace(schema).cloned();
        let to = to.ok_or_else(|| no_schema(schema))?;
        if !self.open.rights().1.allows_in_schema(self.role, &to, true) {
            let message = format!("permission denied for schema {schema}");
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
        }
        if to.oid == extension.namespace {
            return Ok(());
        }
        if extension.available().is_none_or(|own| !own.relocatable) {
            let message = format!(
                "extension \"{}\" does not support SET SCHEMA",
                extension.name
            );
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
        }
        self.check_lasts(&to)?;
        self.gated_alone_if(Gated::Extension, extension.oid, |ddl| {
            ddl.extension_named(&extension.name).map(|_| ())
        })?;
        self.enter_gated(Gated::Schema, to.oid, Mode::Write)?;
        let next = Extension {
            namespace: to.oid,
            ..Extension::clone(extension)
        };
        let moved = Change::PutExtension(Arc::new(next));
        self.change(moved)
    }
}

/// What PostgreSQL looks for a file by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileName {
    Extension,
    Version,
}

/// # Errors
/// `22023` for what can be no part of a file's name.
fn check_name(name: &str, of: FileName) -> Result<()> {
    let (what, whats) = match of {
        FileName::Extension => ("extension name", "Extension names"),
        FileName::Version => ("extension version name", "Version names"),
    };
    let why = if name.is_empty() {
        "be empty."
    } else if name.contains("--") {
        "contain \"--\"."
    } else if name.starts_with('-') || name.ends_with('-') {
        "begin or end with \"-\"."
    } else if name.contains(['/', '\\']) {
        "contain directory separator characters."
    } else {
        return Ok(());
    };
    let message = format!("invalid {what}: \"{name}\"");
    let error = SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message);
    Err(error.with_detail(format!("{whats} must not {why}")))
}

#[cold]
fn no_extension(name: &str) -> SqlError {
    let message = format!("extension \"{name}\" does not exist");
    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
}

#[cold]
fn not_available(name: &str) -> SqlError {
    let message = format!("extension \"{name}\" is not available");
    let all = crate::extension::AVAILABLE.iter().map(|own| own.name);
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).with_detail(format!(
        "Vellum has no extensions but {}.",
        all.collect::<Vec<_>>().join(", ")
    ))
}
