//! OWNER TO.

use super::Ddl;
use super::role::{denied, no_role};
use crate::bind::folded;
use crate::catalog::{Change, Namespace, Oid, Relation};
use crate::database::{DATABASE, FIRST_ROLE, FIRST_ROLE_OID};
use crate::error::{Result, SqlError};
use crate::roles::Grant;
use crate::sqlstate::{self, SqlState};
use crate::wire::CommandTag;
use sqlparser::ast;
use std::sync::Arc;

impl Ddl<'_> {
    /// Gives a relation that is held alone, and the sequences of its columns, to another role.
    ///
    /// # Errors
    /// `42704` for a role that is not there; `42501` for one that the session's is no member of, or that may make nothing in the schema.
    pub(super) fn give_to(
        &mut self,
        relation: &Arc<Relation>,
        to: &ast::Owner,
    ) -> Result<Arc<Relation>> {
        let (name, role) = self.new_owner(to)?;
        let catalog = &self.open.rights().1;
        let superuser = catalog.role(self.owner).is_some_and(|own| own.superuser);
        if let Some(schema) = catalog.namespace_by_oid(relation.namespace)
            && !superuser
            && *relation.owner != *name
            && !catalog.allows_in_schema(&name, schema, true)
        {
            return Err(denied(format!(
                "permission denied for schema {}",
                schema.name
            )));
        }
        for sequence in self.owned_sequences(relation.oid, None) {
            self.give(&sequence, &name, role)?;
        }
        self.give(relation, &name, role)
    }

    /// Who the session belongs to, whatever role it has taken.
    pub(super) fn session_user(&self) -> Result<String> {
        self.asked.settings.get("session_authorization")
    }

    /// Name and oid of a role that something is to be given to.
    fn new_owner(&self, to: &ast::Owner) -> Result<(String, Oid)> {
        let name = match to {
            ast::Owner::Ident(ident) => folded(ident),
            ast::Owner::CurrentRole | ast::Owner::CurrentUser => self.owner.to_owned(),
            ast::Owner::SessionUser => self.session_user()?,
        };
        let catalog = &self.open.rights().1;
        let role = catalog.role(&name).ok_or_else(|| no_role(&name))?.oid;
        if !catalog.is_member(self.owner, role) {
            return Err(denied(format!("must be member of role \"{name}\"")));
        }
        Ok((name, role))
    }

    /// The role of AUTHORIZATION, which owns the schema that is made.
    ///
    /// # Errors
    /// `42704`, `42501`.
    pub(super) fn authorized(&self, role: &ast::Ident) -> Result<String> {
        let name = folded(role);
        let own = role.quote_style.is_none() && matches!(&*name, "current_user" | "current_role");
        let owner = match own {
            true => ast::Owner::CurrentUser,
            false => ast::Owner::Ident(role.clone()),
        };
        Ok(self.new_owner(&owner)?.0)
    }

    /// ALTER DATABASE … OWNER TO: of the role that has it.
    ///
    /// # Errors
    /// `3D000`, `42704`, `42501`; `0A000` for another role.
    pub(super) fn give_database(
        &self,
        database: &ast::Ident,
        to: &ast::Ident,
    ) -> Result<CommandTag> {
        let to = self.role_named(to)?;
        check_database(&folded(database))?;
        if to != FIRST_ROLE_OID {
            self.check_owns_database()?;
            return Err(SqlError::unsupported("another owner of the database"));
        }
        Ok(CommandTag::plain("ALTER DATABASE"))
    }

    /// ALTER DATABASE … RENAME TO, which nobody can: there is no other that one could be connected to meanwhile.
    ///
    /// # Errors
    /// `3D000`, `42501`, `42P04`; `0A000`.
    pub(super) fn rename_database(
        &self,
        database: &ast::Ident,
        to: &ast::Ident,
    ) -> Result<CommandTag> {
        check_database(&folded(database))?;
        self.check_owns_database()?;
        if folded(to) == DATABASE {
            let message = format!("database \"{DATABASE}\" already exists");
            return Err(SqlError::new(SqlState::of("42P04"), message));
        }
        let text = "current database cannot be renamed";
        Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text))
    }

    pub(super) fn check_owns_database(&self) -> Result<()> {
        match self.open.rights().1.owns(self.owner, FIRST_ROLE) {
            true => Ok(()),
            false => Err(denied(format!("must be owner of database {DATABASE}"))),
        }
    }

    /// ALTER SCHEMA … OWNER TO and RENAME TO.
    ///
    /// # Errors
    /// `3F000`; `42501` for who does not own it; `42704`, `42P06`; `0A000` for what else may be altered.
    pub(super) fn alter_schema(&mut self, alter: &ast::AlterSchema) -> Result<CommandTag> {
        let (_, name) = crate::bind::object_name(&alter.name)?;
        let found = self.open.catalog.1.namespace(&name).cloned();
        let schema = found.ok_or_else(|| super::no_schema(&name))?;
        let tag = CommandTag::plain("ALTER SCHEMA");
        let owner = match alter.operations.as_slice() {
            [ast::AlterSchemaOperation::OwnerTo { owner }] => owner,
            [ast::AlterSchemaOperation::Rename { name }] => {
                self.rename_schema(&schema, name)?;
                return Ok(tag);
            }
            _ => return Err(SqlError::unsupported("this form of ALTER SCHEMA")),
        };
        if !self.open.rights().1.owns(self.owner, &schema.owner) {
            return Err(denied(format!("must be owner of schema {name}")));
        }
        let (owner, role) = self.new_owner(owner)?;
        self.give_schema(&schema, &owner, role)?;
        Ok(tag)
    }

    /// Gives a schema to another role.
    pub(super) fn give_schema(&mut self, schema: &Namespace, name: &str, role: Oid) -> Result<()> {
        let before = self.open.catalog.1.role_oid(&schema.owner);
        let next = Namespace {
            owner: name.into(),
            acl: schema
                .acl
                .as_ref()
                .map(|grants| handed_over(grants, before, role)),
            ..schema.clone()
        };
        self.change(Change::PutNamespace(Arc::new(next)))
    }

    pub(super) fn give(
        &mut self,
        relation: &Relation,
        name: &str,
        role: Oid,
    ) -> Result<Arc<Relation>> {
        let before = self.open.catalog.1.role_oid(&relation.owner);
        let acl = relation.acl.as_ref();
        let columns = relation.column_acls.iter();
        let next = Arc::new(Relation {
            owner: name.into(),
            generation: relation.generation + 1,
            acl: acl.map(|grants| handed_over(grants, before, role)),
            column_acls: columns
                .map(|(column, grants)| (*column, handed_over(grants, before, role)))
                .collect(),
            ..relation.clone()
        });
        self.change(Change::PutRelation(next.clone()))?;
        Ok(next)
    }
}

/// Rights with a new owner in the place of the old one; what both had becomes one.
fn handed_over(grants: &[Grant], before: Oid, after: Oid) -> Vec<Grant> {
    let mut kept: Vec<Grant> = Vec::with_capacity(grants.len());
    let instead = |role: Oid| if role == before { after } else { role };
    for grant in grants {
        let (grantee, grantor) = (instead(grant.grantee), instead(grant.grantor));
        let same = |other: &&mut Grant| (other.grantee, other.grantor) == (grantee, grantor);
        match kept.iter_mut().find(same) {
            Some(known) => {
                known.rights = known.rights.with(grant.rights);
                known.grantable = known.grantable.with(grant.grantable);
            }
            None => kept.push(Grant {
                grantee,
                grantor,
                ..*grant
            }),
        }
    }
    kept
}

/// # Errors
/// `3D000`.
pub(super) fn check_database(name: &str) -> Result<()> {
    if name == DATABASE {
        return Ok(());
    }
    let message = format!("database \"{name}\" does not exist");
    Err(SqlError::new(sqlstate::INVALID_CATALOG_NAME, message))
}
