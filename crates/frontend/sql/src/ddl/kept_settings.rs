//! ALTER ROLE and ALTER DATABASE with SET and RESET: what sessions begin with.

use super::Ddl;
use super::owner::check_database;
use super::role::denied;
use crate::catalog::{Change, KeptFor};
use crate::error::{Result, SqlError};
use crate::session::SessionSettings;
use crate::sqlstate;
use crate::wire::CommandTag;

/// Whose settings are changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose<'n> {
    /// ALTER ROLE, not ALTER DATABASE.
    pub of_role: bool,
    /// `None`: of every role.
    pub role: Option<&'n str>,
    /// `None`: in all.
    pub database: Option<&'n str>,
}

/// What of them one may have at most, and how long names and values may be: every session reads them.
const KEPT_MAX: usize = 1000;
const NAME_BYTES_MAX: usize = 255;
const VALUE_BYTES_MAX: usize = 64 << 10;

impl Ddl<'_> {
    /// Gives a setting a value, or none; `None`: all of them none. Sessions that are there already keep what they have.
    ///
    /// # Errors
    /// `42704`, `3D000`; `42501` for who may not; `42602` and `54000` for what is too long, or too much.
    pub fn keep_setting(
        &mut self,
        whose: Whose<'_>,
        setting: Option<(&str, Option<&str>)>,
    ) -> Result<CommandTag> {
        whose.database.map_or(Ok(()), check_database)?;
        let role = match whose.role {
            Some(name) => {
                let role = self.altered_role(name)?;
                // Everybody may change their own.
                if role.oid != self.role {
                    self.check_may_change(&role, "alter")?;
                }
                role.oid
            }
            None => {
                if !self.own_role()?.superuser {
                    return Err(denied(match whose.database {
                        Some(database) => format!("must be owner of database {database}"),
                        None => "must be superuser to alter settings globally".to_owned(),
                    }));
                }
                0
            }
        };
        let of = KeptFor {
            role,
            in_database: whose.database.is_some(),
        };
        let mut pairs = self.open.catalog.1.kept_settings(of).to_vec();
        match setting {
            // What its role may not change stays.
            None => {
                let superuser = self.own_role()?.superuser;
                let stays = |name: &str| SessionSettings::check_right(name, || superuser).is_err();
                pairs.retain(|(name, _)| stays(name));
            }
            Some((name, value)) => {
                let known = pairs
                    .iter()
                    .position(|(own, _)| own.eq_ignore_ascii_case(name));
                match (known, value) {
                    (Some(at), Some(value)) => pairs[at].1 = value.into(),
                    (None, Some(_)) if name.len() > NAME_BYTES_MAX => {
                        let message = format!("invalid configuration parameter name \"{name}\"");
                        return Err(SqlError::new(sqlstate::INVALID_NAME, message));
                    }
                    (None, Some(value)) => pairs.push((name.into(), value.into())),
                    (Some(at), None) => drop(pairs.remove(at)),
                    (None, None) => {}
                }
            }
        }
        let too_long = |(_, value): &(_, Box<str>)| value.len() > VALUE_BYTES_MAX;
        if pairs.len() > KEPT_MAX || pairs.iter().any(too_long) {
            let text = "too many settings are kept, or one of them is too long";
            return Err(SqlError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, text));
        }
        self.change(Change::PutSettings(of, pairs.into()))?;
        Ok(CommandTag::plain(match whose.of_role {
            true => "ALTER ROLE",
            false => "ALTER DATABASE",
        }))
    }

    /// A role that is dropped has none.
    pub(super) fn forget_settings(&mut self, role: u32) -> Result<()> {
        for in_database in [false, true] {
            let of = KeptFor { role, in_database };
            // Whatever was kept since the snapshot, too.
            if !self.open.rights().1.kept_settings(of).is_empty() {
                let none = Change::PutSettings(of, [].into());
                self.change(none)?;
            }
        }
        Ok(())
    }
}
