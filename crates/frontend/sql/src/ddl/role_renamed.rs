//! ALTER ROLE … RENAME TO.
//!
//! What a role owns, its rights, memberships and settings are kept by the role's oid, so that nothing but its own row is written, and nobody is waited for but who changes the role itself. Sessions of
//! the role go on as the same one (`session/identity`).

use super::Ddl;
use super::role::{check_not_reserved, denied, is_md5, reserved};
use crate::bind::folded;
use crate::catalog::{Change, is_built_in};
use crate::error::{Fields, Result, SqlError};
use crate::roles::Role;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast;
use std::sync::Arc;

impl Ddl<'_> {
    /// Gives a role another name. A password that is kept as an MD5 hash goes, since the name is part of that.
    ///
    /// # Errors
    /// `42704`, `42710`, `42939`, `42501`; `0A000` for a role that the session is of, and for the first one.
    pub(super) fn rename_role(&mut self, name: &str, to: &ast::Ident) -> Result<CommandTag> {
        let before = self.role_of(name)?;
        let to = folded(to);
        self.check_renames(&before, &to)?;
        let mut role = Role {
            name: to,
            ..Role::clone(&before)
        };
        if role.verifier.as_deref().is_some_and(is_md5) {
            role.verifier = None;
            let text = "MD5 password cleared because of role rename";
            self.notices.push(Fields::notice(text));
        }
        self.change(Change::RenameRole(before, Arc::new(role)))?;
        Ok(CommandTag::plain("ALTER ROLE"))
    }

    /// That the session's role may give another one this name.
    fn check_renames(&self, role: &Role, to: &str) -> Result<()> {
        let (session, current) = (self.asked.acting.session, self.role);
        for (own, whose) in [(session, "session"), (current, "current")] {
            if role.oid == own {
                let message = format!("{whose} user cannot be renamed");
                return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
        }
        if is_built_in(role.oid) {
            let detail = "Role names starting with \"pg_\" are reserved.";
            return Err(reserved(&role.name).with_detail(detail));
        }
        check_not_reserved(to)?;
        if self.roles().role(to).is_some() {
            let message = format!("role \"{to}\" already exists");
            return Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message));
        }
        let own = self.own_role()?;
        match own.superuser || own.create_role && !role.superuser {
            true if role.oid == crate::database::FIRST_ROLE_OID => {
                Err(SqlError::unsupported("another name of the first role"))
            }
            true => Ok(()),
            false if role.superuser => Err(denied("must be superuser to rename superusers")),
            false => Err(denied("permission denied to rename role")),
        }
    }
}
