//! CREATE, ALTER and DROP ROLE, GRANT and REVOKE.

use super::Ddl;
use crate::bind::folded;
use crate::catalog::{Change, Kind, Namespace, Relation};
use crate::error::{Fields, Result, SqlError};
use crate::roles::{Grant, Membership, Rights, Role};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, AlterRoleOperation, GrantObjects, RoleOption};
use std::sync::Arc;
use vellum_row::{Type, Typmod, Value, input};

pub(super) fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message.into())
}

impl Ddl<'_> {
    pub(super) fn own_role(&self) -> Result<Arc<Role>> {
        let found = self.open.catalog.1.role(self.owner).cloned();
        found.ok_or_else(|| no_role(self.owner))
    }

    pub(super) fn role_of(&self, name: &str) -> Result<Arc<Role>> {
        self.open
            .catalog
            .1
            .role(name)
            .cloned()
            .ok_or_else(|| no_role(name))
    }

    /// # Errors
    /// `42501` for who may not make or change this role: only superusers change superusers.
    pub(super) fn check_may_change(&self, role: &Role, what: &str) -> Result<()> {
        let own = self.own_role()?;
        if own.superuser {
            return Ok(());
        }
        if role.superuser {
            return Err(denied(format!("must be superuser to {what} superusers")));
        }
        if role.replication || role.bypass_rls {
            return Err(denied(format!("must be superuser to {what} such roles")));
        }
        if own.create_role {
            return Ok(());
        }
        Err(denied(match what {
            "create" => "permission denied to create role",
            "drop" => "permission denied to drop role",
            _ => "permission denied",
        }))
    }

    pub(super) fn create_role(&mut self, create: &ast::CreateRole) -> Result<CommandTag> {
        let tag = CommandTag::plain("CREATE ROLE");
        for name in &create.names {
            let (_, name) = crate::bind::object_name(name)?;
            if name.starts_with("pg_") || name == "public" || name == "none" {
                let message = format!("role name \"{name}\" is reserved");
                return Err(SqlError::new(sqlstate::SqlState::of("42939"), message));
            }
            if self.open.catalog.1.role(&name).is_some() {
                let message = format!("role \"{name}\" already exists");
                if create.if_not_exists {
                    self.notices
                        .push(Fields::notice(format!("{message}, skipping")));
                    continue;
                }
                return Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message));
            }
            let mut role = Role::new(&name, self.draw_oid()?);
            role.superuser = create.superuser.unwrap_or(false);
            role.create_database = create.create_db.unwrap_or(false);
            role.create_role = create.create_role.unwrap_or(false);
            role.inherit = create.inherit.unwrap_or(true);
            role.login = create.login.unwrap_or(false);
            role.replication = create.replication.unwrap_or(false);
            role.bypass_rls = create.bypassrls.unwrap_or(false);
            if let Some(limit) = &create.connection_limit {
                role.connections_max = limit_of(limit)?;
            }
            if let Some(password) = &create.password {
                self.set_password(&mut role, password)?;
            }
            if let Some(until) = &create.valid_until {
                role.valid_until = self.time_of(until)?;
            }
            self.check_may_change(&role, "create")?;
            for group in create.in_role.iter().chain(&create.in_group) {
                let group = self.role_of(&folded(group))?;
                self.join(&mut role, &group, false)?;
            }
            let oid = role.oid;
            self.put_role(role)?;
            let members = create
                .role
                .iter()
                .chain(&create.user)
                .map(|name| (name, false));
            let admins = create.admin.iter().map(|name| (name, true));
            let group = self.role_of(&name)?;
            debug_assert_eq!(group.oid, oid);
            for (member, admin) in members.chain(admins) {
                let mut member = Role::clone(&*self.role_of(&folded(member))?);
                self.join(&mut member, &group, admin)?;
                self.put_role(member)?;
            }
        }
        Ok(tag)
    }

    /// The role that a name stands for.
    pub(super) fn named_role<'n>(&'n self, name: &'n str) -> &'n str {
        match name {
            "current_user" | "current_role" => self.owner,
            name => name,
        }
    }

    pub(super) fn alter_role(
        &mut self,
        name: &ast::Ident,
        operation: &AlterRoleOperation,
    ) -> Result<CommandTag> {
        let name = folded(name);
        let name = self.named_role(&name);
        let before = self.role_of(name)?;
        let mut role = Role::clone(&before);
        let AlterRoleOperation::WithOptions { options } = operation else {
            return Err(SqlError::unsupported("this form of ALTER ROLE"));
        };
        let only_password = options
            .iter()
            .all(|option| matches!(option, RoleOption::Password(_)));
        // Everybody may change their own password.
        if !(only_password && name == self.owner) {
            self.check_may_change(&before, "alter")?;
        }
        for option in options {
            match option {
                RoleOption::SuperUser(yes) => role.superuser = *yes,
                RoleOption::CreateDB(yes) => role.create_database = *yes,
                RoleOption::CreateRole(yes) => role.create_role = *yes,
                RoleOption::Inherit(yes) => role.inherit = *yes,
                RoleOption::Login(yes) => role.login = *yes,
                RoleOption::Replication(yes) => role.replication = *yes,
                RoleOption::BypassRLS(yes) => role.bypass_rls = *yes,
                RoleOption::ConnectionLimit(limit) => role.connections_max = limit_of(limit)?,
                RoleOption::Password(password) => self.set_password(&mut role, password)?,
                RoleOption::ValidUntil(until) => role.valid_until = self.time_of(until)?,
            }
        }
        if !only_password {
            self.check_may_change(&role, "alter")?;
        }
        if before.oid == crate::database::FIRST_ROLE_OID && !role.superuser {
            return Err(SqlError::unsupported(
                "taking SUPERUSER from the first role",
            ));
        }
        self.put_role(role)?;
        Ok(CommandTag::plain("ALTER ROLE"))
    }

    pub(super) fn drop_role(&mut self, name: &ast::ObjectName, if_exists: bool) -> Result<()> {
        let (_, name) = crate::bind::object_name(name)?;
        let Some(role) = self.open.catalog.1.role(&name).cloned() else {
            if if_exists {
                let message = format!("role \"{name}\" does not exist, skipping");
                self.notices.push(Fields::notice(message));
                return Ok(());
            }
            return Err(no_role(&name));
        };
        self.check_may_change(&role, "drop")?;
        if name == self.owner {
            let text = "current user cannot be dropped";
            return Err(SqlError::new(sqlstate::OBJECT_IN_USE, text));
        }
        if role.oid == crate::database::FIRST_ROLE_OID {
            let message =
                format!("cannot drop role {name} because it is required by the database system");
            return Err(SqlError::new(
                sqlstate::DEPENDENT_OBJECTS_STILL_EXIST,
                message,
            ));
        }
        let catalog = self.open.catalog.1.clone();
        let granted = |acl: Option<&[Grant]>| {
            let grants = acl.unwrap_or_default().iter();
            grants
                .into_iter()
                .any(|one| one.grantee == role.oid || one.grantor == role.oid)
        };
        let needed = catalog
            .relations()
            .iter()
            .chain(&catalog.user_types())
            .any(|relation| *relation.owner == *name || granted(relation.acl.as_deref()))
            || catalog
                .namespaces()
                .iter()
                .any(|namespace| *namespace.owner == *name || granted(namespace.acl.as_deref()))
            || catalog
                .extensions()
                .iter()
                .any(|extension| *extension.owner == *name);
        if needed {
            let message =
                format!("role \"{name}\" cannot be dropped because some objects depend on it");
            return Err(SqlError::new(
                sqlstate::DEPENDENT_OBJECTS_STILL_EXIST,
                message,
            ));
        }
        for member in catalog
            .roles()
            .filter(|member| member.is_member_of(role.oid))
        {
            let mut next = Role::clone(member);
            next.member_of
                .retain(|membership| membership.role != role.oid);
            self.put_role(next)?;
        }
        self.forget_settings(role.oid)?;
        self.open.change(self.shared, Change::DropRole(role))
    }

    fn put_role(&mut self, role: Role) -> Result<()> {
        self.open
            .change(self.shared, Change::PutRole(Arc::new(role)))
    }

    fn set_password(&self, role: &mut Role, password: &ast::Password) -> Result<()> {
        role.verifier = match password {
            ast::Password::NullPassword => None,
            ast::Password::Password(expr) => {
                let text = literal_of(expr)
                    .ok_or_else(|| SqlError::syntax("the password has to be a literal"))?;
                // What is a verifier already is kept as it is.
                Some(if text.starts_with("SCRAM-SHA-256$") {
                    text
                } else {
                    self.shared.verifier_of(&text)?
                })
            }
        };
        Ok(())
    }

    fn time_of(&self, expr: &ast::Expr) -> Result<Option<vellum_row::datetime::Timestamp>> {
        let text = literal_of(expr).unwrap_or_default();
        match input(Type::Timestamptz, Typmod::NONE, &text, self.forms)? {
            Value::Timestamptz(time) if time.is_finite() => Ok(Some(time)),
            _ => Ok(None),
        }
    }

    /// Makes a role a member of another one.
    ///
    /// # Errors
    /// `0LP01` if the other is a member of it; `42501` for who may not.
    fn join(&mut self, member: &mut Role, group: &Role, admin: bool) -> Result<()> {
        let own = self.own_role()?;
        let is_admin = own
            .member_of
            .iter()
            .any(|one| one.role == group.oid && one.admin);
        if !own.superuser && !is_admin && (!own.create_role || group.superuser) {
            return Err(denied(format!(
                "must have admin option on role \"{}\"",
                group.name
            )));
        }
        let circle = member.oid == group.oid
            || !group.superuser && self.open.catalog.1.is_member(&group.name, member.oid);
        if circle {
            let message = format!(
                "role \"{}\" is a member of role \"{}\"",
                group.name, member.name
            );
            return Err(SqlError::new(sqlstate::SqlState::of("0LP01"), message));
        }
        match member
            .member_of
            .iter_mut()
            .find(|one| one.role == group.oid)
        {
            Some(known) => known.admin |= admin,
            None => member.member_of.push(Membership {
                role: group.oid,
                grantor: own.oid,
                admin,
            }),
        }
        Ok(())
    }

    pub(super) fn grant(&mut self, grant: &ast::Grant) -> Result<CommandTag> {
        let tag = CommandTag::plain("GRANT");
        let grantees = self.grantees(&grant.grantees)?;
        let Some(objects) = &grant.objects else {
            for group in groups_of(&grant.privileges)? {
                let group = self.role_of(&group)?;
                for grantee in &grantees {
                    let mut member = self.member(*grantee)?;
                    self.join(&mut member, &group, grant.with_grant_option)?;
                    self.put_role(member)?;
                }
            }
            return Ok(CommandTag::plain("GRANT ROLE"));
        };
        let option = grant.with_grant_option;
        self.each_object(objects, &grant.privileges, &mut |acl, rights, own| {
            for grantee in &grantees {
                if *grantee == 0 && option {
                    let text = "grant options can only be granted to roles";
                    return Err(SqlError::new(sqlstate::SqlState::of("0LP01"), text));
                }
                let known = acl.iter_mut();
                let known = known
                    .into_iter()
                    .find(|one| one.grantee == *grantee && one.grantor == own);
                let grantable = if option { rights } else { Rights::NONE };
                match known {
                    Some(one) => {
                        one.rights = one.rights.with(rights);
                        one.grantable = one.grantable.with(grantable);
                    }
                    None => acl.push(Grant {
                        grantee: *grantee,
                        grantor: own,
                        rights,
                        grantable,
                    }),
                }
            }
            Ok(())
        })?;
        Ok(tag)
    }

    pub(super) fn revoke(&mut self, revoke: &ast::Revoke) -> Result<CommandTag> {
        let tag = CommandTag::plain("REVOKE");
        let grantees = self.grantees(&revoke.grantees)?;
        let Some(objects) = &revoke.objects else {
            for group in groups_of(&revoke.privileges)? {
                let group = self.role_of(&group)?;
                self.check_may_change(&group, "alter")?;
                for grantee in &grantees {
                    let mut member = self.member(*grantee)?;
                    member.member_of.retain(|one| one.role != group.oid);
                    self.put_role(member)?;
                }
            }
            return Ok(CommandTag::plain("REVOKE ROLE"));
        };
        self.each_object(objects, &revoke.privileges, &mut |acl, rights, _| {
            for one in acl.iter_mut().filter(|one| grantees.contains(&one.grantee)) {
                one.rights = one.rights.without(rights);
                one.grantable = one.grantable.without(rights);
            }
            acl.retain(|one| !one.rights.is_none());
            Ok(())
        })?;
        Ok(tag)
    }

    fn member(&self, oid: u32) -> Result<Role> {
        let found = self.open.catalog.1.role_by_oid(oid);
        let found = found.ok_or_else(|| SqlError::syntax("PUBLIC is no member of a role"))?;
        Ok(Role::clone(found))
    }

    /// Oids of roles; 0: everybody.
    fn grantees(&self, grantees: &[ast::Grantee]) -> Result<Vec<u32>> {
        let one = |grantee: &ast::Grantee| {
            if grantee.grantee_type == ast::GranteesType::Public {
                return Ok(0);
            }
            let Some(ast::GranteeName::ObjectName(name)) = &grantee.name else {
                return Err(SqlError::unsupported("this grantee"));
            };
            let (_, name) = crate::bind::object_name(name)?;
            match name.as_str() {
                "public" => Ok(0),
                "current_user" | "current_role" | "session_user" => {
                    Ok(self.role_of(self.owner)?.oid)
                }
                name => Ok(self.role_of(name)?.oid),
            }
        };
        grantees.iter().map(one).collect()
    }

    /// Changes the rights on each object of a list. `change` gets those that there are, those that the statement names, and the
    /// oid of who gives them.
    fn each_object(
        &mut self,
        objects: &GrantObjects,
        privileges: &ast::Privileges,
        change: &mut dyn FnMut(&mut Vec<Grant>, Rights, u32) -> Result<()>,
    ) -> Result<()> {
        match objects {
            GrantObjects::Schemas(names) => {
                let rights = rights_of(privileges, Rights::SCHEMA)?;
                for name in names {
                    let (_, name) = crate::bind::object_name(name)?;
                    let found = self.open.catalog.1.namespace(&name).cloned();
                    let namespace = found.ok_or_else(|| super::no_schema(&name))?;
                    self.change_schema(&namespace, rights, change)?;
                }
                Ok(())
            }
            GrantObjects::Databases(_) => {
                // There is one database, and nothing in it goes by its rights.
                rights_of(privileges, Rights::SCHEMA.with(Rights::TABLE)).map(|_| ())
            }
            GrantObjects::Tables(names)
            | GrantObjects::Views(names)
            | GrantObjects::Sequences(names) => {
                for name in names {
                    let relation = self.binder().relation(name);
                    let relation = relation.map_err(SqlError::without_place)?;
                    self.change_relation(&relation, privileges, change)?;
                }
                Ok(())
            }
            GrantObjects::AllTablesInSchema { schemas }
            | GrantObjects::AllViewsInSchema { schemas }
            | GrantObjects::AllSequencesInSchema { schemas } => {
                let sequences = matches!(objects, GrantObjects::AllSequencesInSchema { .. });
                for schema in schemas {
                    let (_, name) = crate::bind::object_name(schema)?;
                    let found = self.open.catalog.1.namespace(&name).map(|found| found.oid);
                    let oid = found.ok_or_else(|| super::no_schema(&name))?;
                    let catalog = self.open.catalog.1.clone();
                    for relation in catalog.relations() {
                        let is_sequence = matches!(relation.kind, Kind::Sequence(_));
                        if relation.namespace == oid && is_sequence == sequences {
                            self.change_relation(relation, privileges, change)?;
                        }
                    }
                }
                Ok(())
            }
            _ => Err(SqlError::unsupported("rights on such objects")),
        }
    }

    fn change_relation(
        &mut self,
        relation: &Arc<Relation>,
        privileges: &ast::Privileges,
        change: &mut dyn FnMut(&mut Vec<Grant>, Rights, u32) -> Result<()>,
    ) -> Result<()> {
        if matches!(relation.kind, Kind::System(_)) {
            let message = format!("\"{}\" is a system catalog", relation.name);
            return Err(denied(message));
        }
        let all = match relation.kind {
            Kind::Sequence(_) => Rights::SEQUENCE,
            _ => Rights::TABLE,
        };
        let rights = rights_of(privileges, all)?;
        let catalog = &self.open.catalog.1;
        let mut acl = catalog.grants(relation);
        // Who is no owner gives what it may give.
        let own = self.own_role()?;
        let owner = catalog.role_oid(&relation.owner);
        let giver = if catalog.owns(self.owner, &relation.owner) {
            owner
        } else {
            own.oid
        };
        let mine = acl
            .iter()
            .filter(|one| catalog.is_member(self.owner, one.grantee));
        let grantable = mine.fold(Rights::NONE, |sum, one| sum.with(one.grantable));
        let may = if giver == owner {
            rights
        } else {
            grantable.both(rights)
        };
        if may.is_none() {
            return Err(denied(format!(
                "permission denied for {} {}",
                super::kind_word(&relation.kind),
                relation.name
            )));
        }
        change(&mut acl, may, giver)?;
        let next = Relation {
            acl: Some(acl),
            ..Relation::clone(relation)
        };
        self.open
            .change(self.shared, Change::PutRelation(Arc::new(next)))
    }

    fn change_schema(
        &mut self,
        namespace: &Arc<Namespace>,
        rights: Rights,
        change: &mut dyn FnMut(&mut Vec<Grant>, Rights, u32) -> Result<()>,
    ) -> Result<()> {
        let catalog = &self.open.catalog.1;
        if !catalog.owns(self.owner, &namespace.owner) {
            return Err(denied(format!(
                "permission denied for schema {}",
                namespace.name
            )));
        }
        let owner = catalog.role_oid(&namespace.owner);
        let mut acl = match &namespace.acl {
            Some(acl) => acl.clone(),
            None => {
                let grant = |grantee, rights| Grant {
                    grantee,
                    grantor: owner,
                    rights,
                    grantable: Rights::NONE,
                };
                let mut acl = vec![grant(owner, Rights::SCHEMA)];
                if namespace.oid < crate::catalog::FIRST_USER_OID {
                    acl.push(grant(0, Rights::USAGE));
                }
                acl
            }
        };
        change(&mut acl, rights, owner)?;
        let next = Namespace {
            acl: Some(acl),
            ..Namespace::clone(namespace)
        };
        self.open
            .change(self.shared, Change::PutNamespace(Arc::new(next)))
    }

    /// # Errors
    /// `42501` for who does not own it.
    pub(super) fn check_owner(&self, relation: &Relation) -> Result<()> {
        if self.open.catalog.1.owns(self.owner, &relation.owner) {
            return Ok(());
        }
        Err(denied(format!(
            "must be owner of {} {}",
            super::kind_word(&relation.kind),
            relation.name
        )))
    }

    /// # Errors
    /// `42501` for who has not this right.
    pub(super) fn check_right(&self, relation: &Relation, right: Rights) -> Result<()> {
        if self.open.catalog.1.allows(self.owner, relation, right) {
            return Ok(());
        }
        Err(denied(format!(
            "permission denied for {} {}",
            super::kind_word(&relation.kind),
            relation.name
        )))
    }
}

fn rights_of(privileges: &ast::Privileges, all: Rights) -> Result<Rights> {
    let actions = match privileges {
        ast::Privileges::All { .. } => return Ok(all),
        ast::Privileges::Actions(actions) => actions,
    };
    let mut rights = Rights::NONE;
    for action in actions {
        let words = action.to_string();
        if words.contains('(') {
            return Err(SqlError::unsupported("rights on columns"));
        }
        let right = match action {
            ast::Action::Connect | ast::Action::Temporary => continue,
            _ => Rights::named(&words),
        };
        let right = right.filter(|right| all.contains(*right)).ok_or_else(|| {
            let message = format!("invalid privilege type {words} for relation");
            SqlError::new(sqlstate::SqlState::of("0LP01"), message)
        })?;
        rights = rights.with(right);
    }
    Ok(rights)
}

/// Names of the roles that are given or taken.
fn groups_of(privileges: &ast::Privileges) -> Result<Vec<String>> {
    let ast::Privileges::Actions(actions) = privileges else {
        return Err(SqlError::syntax("syntax error at or near \"ALL\""));
    };
    let group = |action: &ast::Action| match action {
        ast::Action::Role { role } => Ok(crate::bind::object_name(role)?.1),
        other => Err(SqlError::syntax(format!(
            "syntax error at or near \"{other}\""
        ))),
    };
    actions.iter().map(group).collect()
}

fn literal_of(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => {
                Some(text.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

/// CONNECTION LIMIT: -1 is none.
fn limit_of(expr: &ast::Expr) -> Result<Option<u32>> {
    let number: i64 = expr.to_string().replace(' ', "").parse().unwrap_or(-2);
    match number {
        -1 => Ok(None),
        number => u32::try_from(number).map(Some).map_err(|_| {
            let message = format!("invalid connection limit: {number}");
            SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
        }),
    }
}

#[cold]
pub(super) fn no_role(name: &str) -> SqlError {
    let message = format!("role \"{name}\" does not exist");
    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
}
