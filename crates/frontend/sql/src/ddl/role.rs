//! CREATE, ALTER and DROP ROLE.

use super::Ddl;
use crate::bind::folded;
use crate::catalog::{Catalog, Change, Gated, Mode, Oid, Relation, is_built_in};
use crate::database::Password;
use crate::error::{Fields, Result, SqlError};
use crate::expr::md5_text;
use crate::roles::{Membership, Rights, Role};
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, AlterRoleOperation, RoleOption};
use std::sync::Arc;
use vellum_row::{Type, Typmod, Value, input};

pub(super) fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message.into())
}

impl Ddl<'_> {
    pub(super) fn own_role(&self) -> Result<Arc<Role>> {
        let found = self.roles().role_by_oid(self.role).cloned();
        found.ok_or_else(|| no_role(crate::catalog::NOBODY))
    }

    /// The image that tells what roles there are and what they may: as of now with what the transaction has changed, whatever its snapshot, as in PostgreSQL.
    pub(super) fn roles(&self) -> &Catalog {
        &self.open.rights().1
    }

    pub(super) fn role_of(&self, name: &str) -> Result<Arc<Role>> {
        let found = self.roles().role(name).cloned();
        found.ok_or_else(|| no_role(name))
    }

    /// # Errors
    /// `42501` for who may not make or change this role: only superusers change superusers.
    pub(super) fn check_may_change(&self, role: &Role, what: &str) -> Result<()> {
        // One that is gone may do nothing.
        let own = self.roles().role_by_oid(self.role);
        if own.is_some_and(|own| own.superuser) {
            return Ok(());
        }
        if role.superuser {
            return Err(denied(format!("must be superuser to {what} superusers")));
        }
        if role.replication || role.bypass_rls {
            return Err(denied(format!("must be superuser to {what} such roles")));
        }
        if own.is_some_and(|own| own.create_role) {
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
            check_not_reserved(&name)?;
            if self.roles().role(&name).is_some() {
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
            let grantor = self.own_role()?.oid;
            for group in create.in_role.iter().chain(&create.in_group) {
                let group = self.role_of(&folded(group))?;
                self.join(&mut role, &group, (false, grantor))?;
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
                self.join(&mut member, &group, (admin, grantor))?;
                self.put_role(member)?;
            }
        }
        Ok(tag)
    }

    /// The role that ALTER ROLE names.
    ///
    /// # Errors
    /// `42704`.
    pub(super) fn altered_role(&self, name: &str) -> Result<Arc<Role>> {
        match name {
            "current_user" | "current_role" => self.own_role(),
            name => self.role_of(name),
        }
    }

    pub(super) fn alter_role(
        &mut self,
        name: &ast::Ident,
        operation: &AlterRoleOperation,
    ) -> Result<CommandTag> {
        let before = self.altered_role(&folded(name))?;
        if is_built_in(before.oid) {
            return Err(reserved(&before.name).with_detail("Cannot alter reserved roles."));
        }
        let mut role = Role::clone(&before);
        let AlterRoleOperation::WithOptions { options } = operation else {
            return Err(SqlError::unsupported("this form of ALTER ROLE"));
        };
        let only_password = options
            .iter()
            .all(|option| matches!(option, RoleOption::Password(_)));
        // Everybody may change their own password.
        if !(only_password && before.oid == self.role) {
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
        let Some(role) = self.roles().role(&name).cloned() else {
            if name == "public" {
                let message = "cannot use special role specifier in DROP ROLE";
                return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
            }
            if if_exists {
                let message = format!("role \"{name}\" does not exist, skipping");
                self.notices.push(Fields::notice(message));
                return Ok(());
            }
            return Err(no_role(&name));
        };
        self.check_may_change(&role, "drop")?;
        let session = self.asked.acting.session;
        for (own, whose) in [(self.role, "current"), (session, "session")] {
            if role.oid == own {
                let message = format!("{whose} user cannot be dropped");
                return Err(SqlError::new(sqlstate::OBJECT_IN_USE, message));
            }
        }
        if role.oid == crate::database::FIRST_ROLE_OID || is_built_in(role.oid) {
            let message =
                format!("cannot drop role {name} because it is required by the database system");
            return Err(SqlError::new(
                sqlstate::DEPENDENT_OBJECTS_STILL_EXIST,
                message,
            ));
        }
        self.enter_gated(Gated::Role, role.oid, Mode::Alone)?;
        let needed = self.needs_role(&role);
        if !needed.is_empty() {
            let message =
                format!("role \"{name}\" cannot be dropped because some objects depend on it");
            let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
            return Err(SqlError::new(state, message).with_detail(needed.join("\n")));
        }
        let catalog = self.open.rights().1.clone();
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
        self.change(Change::DropRole(role))
    }

    pub(super) fn put_role(&mut self, role: Role) -> Result<()> {
        self.change(Change::PutRole(Arc::new(role)))
    }

    fn set_password(&mut self, role: &mut Role, password: &ast::Password) -> Result<()> {
        let ast::Password::Password(expr) = password else {
            role.verifier = None;
            return Ok(());
        };
        let text =
            literal_of(expr).ok_or_else(|| SqlError::syntax("the password has to be a literal"))?;
        let kept = if is_md5(&text) {
            if text == md5_of_empty(&role.name) {
                Password::Empty
            } else {
                let message = format!("role \"{}\" cannot log in by an MD5 password", role.name);
                let mut warning = Fields::warning(sqlstate::WARNING, message);
                let hint =
                    "The hash is kept; set the password itself, or a SCRAM-SHA-256 verifier.";
                warning.hint = Some(hint.to_owned());
                self.notices.push(warning);
                Password::Verifier(text)
            }
        } else {
            self.shared.kept_of(&text)?
        };
        role.verifier = match kept {
            Password::Verifier(verifier) => Some(verifier),
            Password::Empty => {
                let text = "empty string is not a valid password, clearing password";
                self.notices.push(Fields::notice(text));
                None
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
    pub(super) fn join(
        &mut self,
        member: &mut Role,
        group: &Role,
        (admin, grantor): (bool, Oid),
    ) -> Result<()> {
        self.check_admin(group)?;
        let own = self.own_role()?;
        if grantor != own.oid && !own.superuser {
            return Err(denied("must be superuser to set grantor"));
        }
        let circle = member.oid == group.oid
            || !group.superuser && self.roles().is_member(group.oid, member.oid);
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
                grantor,
                admin,
            }),
        }
        Ok(())
    }

    /// # Errors
    /// `42501` for who does not own it.
    pub(super) fn check_owner(&self, relation: &Relation) -> Result<()> {
        if self.open.rights().1.owns(self.role, relation.owner) {
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
        if self.open.rights().1.allows(self.role, relation, right) {
            return Ok(());
        }
        Err(denied(format!(
            "permission denied for {} {}",
            super::kind_word(&relation.kind),
            relation.name
        )))
    }
}

/// Whether a password is an MD5 hash, as PostgreSQL keeps them.
pub(super) fn is_md5(text: &str) -> bool {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = text.strip_prefix("md5").map(str::as_bytes);
    digits.is_some_and(|digits| digits.len() == 32 && digits.iter().copied().all(digit))
}

/// The hash that PostgreSQL would keep of a role's empty password.
fn md5_of_empty(name: &str) -> String {
    format!("md5{}", md5_text(name.as_bytes()))
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

/// `42939`.
#[cold]
pub(super) fn reserved(name: &str) -> SqlError {
    let message = format!("role name \"{name}\" is reserved");
    SqlError::new(sqlstate::SqlState::of("42939"), message)
}

/// # Errors
/// `42939` for a name that a role of PostgreSQL's has or may have.
pub(super) fn check_not_reserved(name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        let detail = "Role names starting with \"pg_\" are reserved.";
        return Err(reserved(name).with_detail(detail));
    }
    match name {
        "public" | "none" => Err(reserved(name)),
        _ => Ok(()),
    }
}

#[cold]
pub(super) fn no_role(name: &str) -> SqlError {
    let message = format!("role \"{name}\" does not exist");
    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
}
