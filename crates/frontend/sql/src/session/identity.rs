//! Whose rights a session has: who logged in, who it is said to be, and whose role it has taken.
//!
//! `options.user` is the one whose rights count: the role that SET ROLE took, or else the session's user, which SET SESSION AUTHORIZATION changes.

use super::changed::Changed;
use super::{Session, SessionSettings};
use crate::catalog::Catalog;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::sync::Arc;

/// Names of the two others.
#[derive(Debug)]
pub(super) struct Identity {
    /// Who logged in.
    login: String,
    /// Who the session is said to be.
    session: String,
}

impl Identity {
    pub fn of(user: &str) -> Self {
        Self {
            login: user.to_owned(),
            session: user.to_owned(),
        }
    }
}

/// The settings that say who the session is.
pub(super) const NAMES: [&str; 2] = ["role", "session_authorization"];

/// The name of no role.
const NONE: &str = "none";

impl Session {
    /// SET ROLE; `None`: the session's user again.
    ///
    /// # Errors
    /// `22023` for a role that is not there, `42501` for one that the session's user does not belong to.
    pub(super) fn set_role(&mut self, role: Option<&str>, local: bool) -> Result<()> {
        let role = role.filter(|role| *role != NONE);
        if let Some(name) = role {
            self.check_role(name)?;
        }
        self.note_changed(Changed {
            name: "role".to_owned(),
            before: self.settings.get("role").ok(),
            after: role.map(str::to_owned),
            local,
        });
        self.take_role(role);
        Ok(())
    }

    fn check_role(&self, name: &str) -> Result<()> {
        let image = self.newest_image();
        let found = image.role(name).ok_or_else(|| no_role(name))?;
        if !image.is_member(&self.identity.session, found.oid) {
            let message = format!("permission denied to set role \"{name}\"");
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
        }
        Ok(())
    }

    /// What a client has asked for by one of [`NAMES`] when it logged in.
    ///
    /// # Errors
    /// As SET ROLE and SET SESSION AUTHORIZATION.
    pub(super) fn begins_as(&mut self, name: &str, role: &str) -> Result<()> {
        if name.eq_ignore_ascii_case("session_authorization") {
            self.check_session_user(role)?;
            self.take_session_user(role);
        } else if role != NONE {
            self.check_role(role)?;
            self.take_role(Some(role));
        }
        Ok(())
    }

    /// SET SESSION AUTHORIZATION; `None`: who logged in.
    ///
    /// # Errors
    /// `22023` for a role that is not there, `42501` for who may not.
    pub(super) fn set_session_user(&mut self, user: Option<&str>, local: bool) -> Result<()> {
        let name = user.unwrap_or(&self.identity.login).to_owned();
        if user.is_some() {
            self.check_session_user(&name)?;
        }
        self.note_changed(Changed {
            name: "session_authorization".to_owned(),
            before: Some(self.identity.session.clone()),
            after: Some(name.clone()),
            local,
        });
        self.take_session_user(&name);
        Ok(())
    }

    fn check_session_user(&self, name: &str) -> Result<()> {
        let image = self.newest_image();
        if image.role(name).is_none() {
            return Err(no_role(name));
        }
        let login = &self.identity.login;
        let superuser = image.role(login).is_some_and(|role| role.superuser);
        if name != login && !superuser {
            let text = "permission denied to set session authorization";
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, text));
        }
        Ok(())
    }

    /// What roles are like now, whatever the snapshot: what this transaction has changed of the catalog, or what is committed.
    fn newest_image(&self) -> Arc<Catalog> {
        match &self.open {
            Some(open) if open.has_changes() => open.catalog.1.clone(),
            _ => self.shared.catalog.now(),
        }
    }

    /// That the role may change a setting, as it is now: what the session was told of itself may be of before.
    ///
    /// # Errors
    /// `42501`.
    pub(super) fn check_setting(&self, name: &str) -> Result<()> {
        SessionSettings::check_right(name, || {
            let image = self.newest_image();
            let role = image.role(&self.options.user);
            role.is_some_and(|role| role.superuser)
        })
    }

    /// What SET LOCAL had changed is as before.
    pub(super) fn take_identity_back(&mut self, name: &str, before: &str) {
        if name == "role" {
            self.take_role(Some(before).filter(|role| !matches!(*role, NONE | "")));
        } else {
            self.take_session_user(before);
        }
    }

    fn take_session_user(&mut self, name: &str) {
        self.keep_told();
        name.clone_into(&mut self.identity.session);
        self.settings.fix("session_authorization", name);
        self.take_role(None);
    }

    pub(super) fn take_role(&mut self, role: Option<&str>) {
        self.keep_told();
        let user = role.unwrap_or(&self.identity.session).to_owned();
        let image = self.newest_image();
        let superuser = image.role(&user).is_some_and(|role| role.superuser);
        self.settings.fix("role", role.unwrap_or(NONE));
        self.settings.is_superuser(superuser);
        self.options.user = user;
        // The search path may name the user.
        self.plans.clear();
    }

    /// RESET of everything: who logged in, in no role.
    pub(super) fn is_itself(&mut self) {
        let login = self.identity.login.clone();
        self.take_session_user(&login);
    }
}

#[cold]
fn no_role(name: &str) -> SqlError {
    let message = format!("role \"{name}\" does not exist");
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}
