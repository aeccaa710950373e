//! ALTER SCHEMA … RENAME TO.
//!
//! Defaults and queries of views name relations with their schemas in their texts. So everything in the schema goes to another one of the new name, as by SET SCHEMA, which writes these texts
//! anew; then that one gives its name to the schema, and back what it got: oids, rights and comments stay what they were.

use super::Ddl;
use super::role::denied;
use crate::catalog::{Change, Gated, Namespace, Oid, Relation};
use crate::error::{Result, SqlError};
use crate::roles::Rights;
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;

impl Ddl<'_> {
    /// Gives a schema another name.
    ///
    /// # Errors
    /// `42P06`, `42501`, `42939`; `40001` for one that others have made something in since the snapshot; `0A000` for one in which an extension is, and where a view cannot be written anew.
    pub(super) fn rename_schema(
        &mut self,
        schema: &Arc<Namespace>,
        to: &ast::ObjectName,
    ) -> Result<()> {
        let (_, name) = crate::bind::object_name(to)?;
        let catalog = &self.open.catalog.1;
        if catalog.namespace(&name).is_some() {
            let message = format!("schema \"{name}\" already exists");
            return Err(SqlError::new(sqlstate::DUPLICATE_SCHEMA, message));
        }
        let may = |ddl: &Self| match ddl.open.rights().1.owns(ddl.role, schema.owner) {
            true => Ok(()),
            false => Err(denied(format!("must be owner of schema {}", schema.name))),
        };
        may(self)?;
        // A session knows its temporary schema by its name, and everybody the others.
        if schema.name.starts_with("pg_") || &*schema.name == "information_schema" {
            return Err(denied(format!("must be owner of schema {}", schema.name)));
        }
        self.check_may_make_schemas()?;
        check_schema_name(&name)?;
        self.gated_alone_if(Gated::Schema, schema.oid, may)?;
        self.check_inside_known(schema.oid)?;
        let mut extensions = self.open.catalog.1.extensions().into_iter();
        if extensions.any(|own| own.namespace == schema.oid) {
            let text = format!("renaming the schema \"{}\" of an extension", schema.name);
            return Err(SqlError::unsupported(text));
        }
        let within = self.in_namespace(schema.oid);
        for oid in &within {
            if let Some(relation) = self.open.catalog.1.relation(*oid).cloned() {
                self.alone(&relation)?;
            }
        }
        let between = Namespace {
            oid: self.draw_oid()?,
            name: name.as_str().into(),
            ..Namespace::clone(schema)
        };
        let between_oid = between.oid;
        let put = |namespace| Change::PutNamespace(Arc::new(namespace));
        self.change(put(between))?;
        for oid in &within {
            let Some(relation) = self.open.catalog.1.relation(*oid).cloned() else {
                continue;
            };
            match relation.is_type() {
                true => self.put_in(&relation, between_oid)?,
                false => drop(self.put_named(&relation, between_oid, &relation.name)?),
            }
        }
        self.change(Change::DropNamespace(between_oid))?;
        let renamed = Namespace {
            name: name.into(),
            ..Namespace::clone(schema)
        };
        self.change(put(renamed))?;
        for oid in &within {
            if let Some(relation) = self.open.catalog.1.relation(*oid).cloned() {
                self.put_in(&relation, schema.oid)?;
            }
        }
        Ok(())
    }

    /// Relations and types of a schema.
    fn in_namespace(&self, namespace: Oid) -> Vec<Oid> {
        let catalog = &self.open.catalog.1;
        let all = catalog.relations().into_iter().chain(catalog.user_types());
        all.filter(|relation| relation.namespace == namespace)
            .map(|relation| relation.oid)
            .collect()
    }

    fn put_in(&mut self, relation: &Relation, namespace: Oid) -> Result<()> {
        let next = Relation {
            namespace,
            generation: relation.generation + 1,
            ..relation.clone()
        };
        self.change(Change::PutRelation(Arc::new(next)))
    }

    /// Whether the role may make schemas.
    ///
    /// # Errors
    /// `42501`.
    pub(super) fn check_may_make_schemas(&self) -> Result<()> {
        let rights = &self.open.rights().1;
        if rights.allows_in_database(self.role, Rights::CREATE) {
            return Ok(());
        }
        Err(denied(format!(
            "permission denied for database {}",
            crate::database::DATABASE
        )))
    }
}

/// # Errors
/// `42939` for a name that is kept for schemas of the program.
pub(super) fn check_schema_name(name: &str) -> Result<()> {
    if !name.starts_with("pg_") {
        return Ok(());
    }
    let message = format!("unacceptable schema name \"{name}\"");
    Err(SqlError::new(sqlstate::SqlState::of("42939"), message)
        .with_detail("The prefix \"pg_\" is reserved for system schemas."))
}
