//! CREATE EXTENSION and DROP EXTENSION. There is one extension, which every database has from the start.

use super::Ddl;
use crate::bind::folded;
use crate::error::{Fields, Result, SqlError};
use crate::sqlstate;
use crate::system::PLPGSQL;
use crate::wire::CommandTag;
use sqlparser::ast::{CreateExtension, DropExtension};

impl Ddl<'_> {
    pub(super) fn create_extension(&mut self, create: &CreateExtension) -> Result<CommandTag> {
        let name = folded(&create.name);
        check_name(&name)?;
        if name != PLPGSQL {
            return Err(not_available(&name));
        }
        let message = format!("extension \"{name}\" already exists");
        if !create.if_not_exists {
            return Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message));
        }
        let mut notice = Fields::notice(format!("{message}, skipping"));
        notice.sqlstate = sqlstate::DUPLICATE_OBJECT;
        self.notices.push(notice);
        Ok(CommandTag::plain("CREATE EXTENSION"))
    }

    pub(super) fn drop_extension(&mut self, drop: &DropExtension) -> Result<CommandTag> {
        for name in drop.names.iter().map(folded) {
            if name == PLPGSQL {
                let message = format!(
                    "cannot drop extension {name} because it is required by the database system"
                );
                let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
                return Err(SqlError::new(state, message));
            }
            let message = format!("extension \"{name}\" does not exist");
            if !drop.if_exists {
                return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
            }
            self.notices
                .push(Fields::notice(format!("{message}, skipping")));
        }
        Ok(CommandTag::plain("DROP EXTENSION"))
    }
}

/// # Errors
/// `22023` for what can be no file's name: PostgreSQL looks for one.
fn check_name(name: &str) -> Result<()> {
    let why = if name.is_empty() {
        "Extension names must not be empty."
    } else if name.contains("--") {
        "Extension names must not contain \"--\"."
    } else if name.starts_with('-') || name.ends_with('-') {
        "Extension names must not begin or end with \"-\"."
    } else if name.contains(['/', '\\']) {
        "Extension names must not contain directory separator characters."
    } else {
        return Ok(());
    };
    let message = format!("invalid extension name: \"{name}\"");
    Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message).with_detail(why))
}

#[cold]
fn not_available(name: &str) -> SqlError {
    let message = format!("extension \"{name}\" is not available");
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        .with_detail("Vellum has no extensions but plpgsql.")
        .with_hint(
            "What most of them are asked for is there without: gen_random_uuid() and sha256().",
        )
}
