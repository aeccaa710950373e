//! Whose rights a session has: who logged in, who it is said to be, and whose role it has taken.
//!
//! Invariants: I1: a session belongs to the role that it was of, not to its name: when that is dropped it has the rights of everybody, and no more by another role that is called so; when it is
//! renamed it is the same role. Also where a role is gone back to, at the end of SET LOCAL or by a rollback, whatever was taken by its name meanwhile.
//!
//! Roles are compared by their oids ([`Acting`]); names are looked up where they are shown. `options.user` is what the one is called whose rights count, as of when the statement began: the role that
//! SET ROLE took, or else the session's user, which SET SESSION AUTHORIZATION changes. SHOW says of both what they were called when they were taken, as in PostgreSQL.

use super::changed::{Changed, Kept};
use super::{Session, SessionSettings};
use crate::catalog::{Catalog, Oid};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::sync::Arc;

/// The two others, and which role `options.user` stands for.
#[derive(Debug)]
pub(super) struct Identity {
    /// Who logged in.
    login: Who,
    /// Who the session is said to be.
    session: Who,
    /// The role that was taken; `None`: the session's user's own.
    role: Option<Who>,
    /// Whose rights count.
    own: Who,
    /// Number of the image in which that role was last looked for.
    looked: u64,
}

/// A role, which may be gone, and another one called so, or be called otherwise (I1).
#[derive(Clone, Debug)]
pub(super) struct Who {
    /// What it was called when it was taken.
    name: String,
    /// Zero if there was none.
    oid: Oid,
}

impl Who {
    fn of(image: &Catalog, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            oid: image.role(name).map_or(0, |role| role.oid),
        }
    }
}

/// As whom statements run, by the oids of the roles. Zero is none's, and so may be that of a role that is gone: neither may do anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Acting {
    /// Whose rights count: `current_user`.
    pub role: Oid,
    /// Who the session is said to be: `session_user`.
    pub session: Oid,
}

impl Identity {
    /// The role that logged in.
    pub fn login(&self) -> Oid {
        self.login.oid
    }

    pub fn of(image: &Catalog, user: &str) -> Self {
        let login = Who::of(image, user);
        Self {
            session: login.clone(),
            role: None,
            own: login.clone(),
            login,
            looked: u64::MAX,
        }
    }
}

/// The settings that say who the session is.
pub(super) const NAMES: [&str; 2] = ["role", "session_authorization"];

/// The name of no role.
const NONE: &str = "none";

impl Session {
    /// As whom its statements run.
    pub(super) fn acting(&self) -> Acting {
        Acting {
            role: self.identity.own.oid,
            session: self.identity.session.oid,
        }
    }

    /// SET ROLE; `None`: the session's user again.
    ///
    /// # Errors
    /// `22023` for a role that is not there, `42501` for one that the session's user does not belong to.
    pub(super) fn set_role(&mut self, role: Option<&str>, local: bool) -> Result<()> {
        let role = role.filter(|role| *role != NONE);
        if let Some(name) = role {
            self.check_role(name)?;
        }
        let before = Kept::Who(self.identity.role.clone());
        self.take_role(role);
        self.note_changed(Changed {
            name: "role".to_owned(),
            before,
            after: Kept::Who(self.identity.role.clone()),
            local,
        });
        Ok(())
    }

    pub(super) fn check_role(&self, name: &str) -> Result<()> {
        let image = self.newest_image();
        let found = image.role(name).ok_or_else(|| no_role(name))?;
        if !image.is_member(self.identity.session.oid, found.oid) {
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
            let session = self.session_called(role)?;
            self.is_session_of(session);
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
        let session = match user {
            Some(name) => self.session_called(name)?,
            None => self.identity.login.clone(),
        };
        let before = Kept::Who(Some(self.identity.session.clone()));
        self.is_session_of(session);
        self.note_changed(Changed {
            name: "session_authorization".to_owned(),
            before,
            after: Kept::Who(Some(self.identity.session.clone())),
            local,
        });
        Ok(())
    }

    /// The role of a name, if the session may be said to be of it.
    ///
    /// # Errors
    /// `22023`, `42501`.
    fn session_called(&self, name: &str) -> Result<Who> {
        let image = self.newest_image();
        let found = image.role(name).ok_or_else(|| no_role(name))?;
        let login = self.identity.login.oid;
        if found.oid != login && !image.is_superuser(login) {
            let text = "permission denied to set session authorization";
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, text));
        }
        Ok(Who {
            name: name.to_owned(),
            oid: found.oid,
        })
    }

    /// What roles are like now, whatever the snapshot: what this transaction has changed of the catalog, or what is committed.
    fn newest_image(&self) -> Arc<Catalog> {
        match &self.open {
            Some(open) if open.has_changes() => open.rights_now(&self.shared).1,
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
            image.is_superuser(self.acting().role)
        })
    }

    /// What SET LOCAL, or what a transaction that is rolled back, had changed is as before: one of [`NAMES`].
    pub(super) fn take_identity_back(&mut self, name: &str, before: Option<Who>) {
        if name == "role" {
            let image = self.newest_image();
            self.is_of_role(before, &image);
        } else if let Some(session) = before {
            self.is_session_of(session);
        }
    }

    fn is_session_of(&mut self, session: Who) {
        self.keep_told();
        self.settings.fix("session_authorization", &session.name);
        self.identity.session = session;
        self.take_role(None);
    }

    pub(super) fn take_role(&mut self, role: Option<&str>) {
        let image = self.newest_image();
        let own = role.map(|role| Who::of(&image, role));
        self.is_of_role(own, &image);
    }

    /// `None`: the session's user's own.
    fn is_of_role(&mut self, role: Option<Who>, image: &Catalog) {
        self.keep_told();
        let name = role.as_ref().map_or(NONE, |role| &role.name);
        self.settings.fix("role", name);
        let own = role.clone();
        self.identity.role = role;
        let own = own.unwrap_or_else(|| self.identity.session.clone());
        self.is_now(own, image);
    }

    /// Whose rights count from now on.
    fn is_now(&mut self, own: Who, image: &Catalog) {
        image.role_name(own.oid).clone_into(&mut self.options.user);
        self.settings.is_superuser(image.is_superuser(own.oid));
        self.identity.own = own;
        // The search path may name the user.
        self.plans.clear();
    }

    /// A statement begins: the session's role may be gone, or be called otherwise, which the search path may go by.
    pub(super) fn check_identity(&mut self) {
        let Some(open) = &self.open else {
            return;
        };
        let (number, image) = open.rights();
        if *number == self.identity.looked {
            return;
        }
        self.identity.looked = *number;
        let own = &self.identity.own;
        if image.role_name(own.oid) != self.options.user {
            let (own, image) = (own.clone(), image.clone());
            self.is_now(own, &image);
        }
    }

    /// RESET of everything: who logged in, in no role.
    pub(super) fn is_itself(&mut self) {
        let login = self.identity.login.clone();
        self.is_session_of(login);
    }
}

#[cold]
fn no_role(name: &str) -> SqlError {
    let message = format!("role \"{name}\" does not exist");
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}
