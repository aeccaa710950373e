//! Settings that sessions of a role, or all sessions, begin with.

use super::Session;
use super::command::{setting_name, setting_text};
use crate::catalog::{Catalog, KeptFor, Oid};
use crate::ddl::Whose;
use crate::error::{Result, SqlError};
use crate::parse::Command;
use crate::sqlstate;
use crate::wire::{CommandTag, Sink};
use sqlparser::ast::{self, Statement};

/// What a session of a role begins with, before what the client says: of all roles, of the database, of the role, of the role in the database; the later
/// ones count.
pub(super) fn begun_with(catalog: &Catalog, own: Oid) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (role, in_database) in [(0, false), (0, true), (own, false), (own, true)] {
        for (name, value) in catalog.kept_settings(KeptFor { role, in_database }) {
            // A transaction begins as the settings for that say.
            if name.starts_with("transaction_") {
                continue;
            }
            found.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            found.push((name.to_string(), value.to_string()));
        }
    }
    found
}

impl Session {
    /// ALTER ROLE and ALTER DATABASE with SET or RESET.
    ///
    /// # Errors
    /// As SET; `42501`, `42704`, `3D000`.
    pub(super) fn keep_setting(
        &mut self,
        command: &Command,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let Command::Keep {
            of_role,
            role,
            database,
            said,
        } = command
        else {
            return Err(SqlError::internal("a setting that is not kept"));
        };
        let setting = match crate::parse::statements(said)?.first() {
            Some(Statement::Reset(reset)) => match &reset.reset {
                ast::Reset::ALL => None,
                ast::Reset::ConfigurationParameter(name) => Some((setting_name(name)?, None)),
            },
            // FROM CURRENT.
            Some(Statement::ShowVariable { variable }) => {
                let name: Vec<String> = variable.iter().map(|part| part.value.clone()).collect();
                let name = name.join(".").to_lowercase();
                let value = self.settings.shown(&name)?;
                Some((name, Some(value)))
            }
            Some(Statement::Set(ast::Set::SingleAssignment {
                scope: None,
                variable,
                values,
                ..
            })) => {
                let name = setting_name(variable)?;
                let value = setting_text(&name, values)?;
                Some((name, value))
            }
            Some(Statement::Set(ast::Set::SetTimeZone {
                local: false,
                value,
            })) => {
                let value = setting_text("timezone", std::slice::from_ref(value))?;
                Some(("timezone".to_owned(), value))
            }
            Some(Statement::Set(ast::Set::SetNames { charset_name, .. })) => {
                let value = charset_name.value.clone();
                Some(("client_encoding".to_owned(), Some(value)))
            }
            _ => {
                let text = "this form of SET cannot be kept";
                return Err(SqlError::new(sqlstate::SYNTAX_ERROR, text));
            }
        };
        if let Some((name, value)) = &setting {
            // Whether it can be: the session keeps what it has.
            self.check_setting(name)?;
            let mut tried = self.settings.clone();
            tried.set(name, value.as_deref())?;
        }
        let setting = setting
            .as_ref()
            .map(|(name, value)| (super::known_settings::shown_name(name), value.as_deref()));
        let whose = Whose {
            of_role: *of_role,
            role: role.as_deref(),
            database: database.as_deref(),
        };
        self.define(text, sink, |ddl| ddl.keep_setting(whose, setting))
    }
}
