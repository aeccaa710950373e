//! OWNER TO.

use super::Ddl;
use super::role::{denied, no_role};
use crate::bind::folded;
use crate::catalog::{Change, NOBODY, Namespace, Oid, Relation};
use crate::database::{DATABASE, FIRST_ROLE_OID};
use crate::error::{Result, SqlError};
use crate::roles::{Grant, Role};
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
        let role = self.new_owner(to)?;
        let catalog = self.roles();
        if let Some(schema) = catalog.namespace_by_oid(relation.namespace)
            && !catalog.is_superuser(self.role)
            && relation.owner != role
            && !catalog.allows_in_schema(role, schema, true)
        {
            return Err(denied(format!(
                "permission denied for schema {}",
                schema.name
            )));
        }
        for sequence in self.owned_sequences(relation.oid, None) {
            self.give(&sequence, role)?;
        }
        self.give(relation, role)
    }

    /// Who the session belongs to, whatever role it has taken.
    pub(super) fn session_role(&self) -> Result<Arc<Role>> {
        let found = self.roles().role_by_oid(self.asked.acting.session).cloned();
        found.ok_or_else(|| no_role(NOBODY))
    }

    /// A role that something is to be given to.
    fn new_owner(&self, to: &ast::Owner) -> Result<Oid> {
        let role = match to {
            ast::Owner::Ident(ident) => self.role_of(&folded(ident))?,
            ast::Owner::CurrentRole | ast::Owner::CurrentUser => self.own_role()?,
            ast::Owner::SessionUser => self.session_role()?,
        };
        if !self.roles().is_member(self.role, role.oid) {
            let message = format!("must be member of role \"{}\"", role.name);
            return Err(denied(message));
        }
        Ok(role.oid)
    }

    /// The role of AUTHORIZATION, which owns the schema that is made.
    ///
    /// # Errors
    /// `42704`, `42501`.
    pub(super) fn authorized(&self, role: &ast::Ident) -> Result<Oid> {
        let name = folded(role);
        let own = role.quote_style.is_none() && matches!(&*name, "current_user" | "current_role");
        let owner = match own {
            true => ast::Owner::CurrentUser,
            false => ast::Owner::Ident(role.clone()),
        };
        self.new_owner(&owner)
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
        match self.open.rights().1.owns(self.role, FIRST_ROLE_OID) {
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
        if !self.open.rights().1.owns(self.role, schema.owner) {
            return Err(denied(format!("must be owner of schema {name}")));
        }
        let owner = self.new_owner(owner)?;
        self.give_schema(&schema, owner)?;
        Ok(tag)
    }

    /// Gives a schema to another role.
    pub(super) fn give_schema(&mut self, schema: &Namespace, role: Oid) -> Result<()> {
        let before = schema.owner;
        let next = Namespace {
            owner: role,
            acl: schema
                .acl
                .as_ref()
                .map(|grants| handed_over(grants, before, role)),
            ..schema.clone()
        };
        self.change(Change::PutNamespace(Arc::new(next)))
    }

    pub(super) fn give(&mut self, relation: &Relation, role: Oid) -> Result<Arc<Relation>> {
        let before = relation.owner;
        let acl = relation.acl.as_ref();
        let columns = relation.column_acls.iter();
        let next = Arc::new(Relation {
            owner: role,
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
