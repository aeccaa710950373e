//! `vellum_backup`: a copy of the database, made by the process that has it open.

use crate::error::{Result, SqlError};
use crate::session::Env;
use crate::sqlstate;
use std::path::Path;
use vellum::Error;
use vellum_row::{Value, ValueRef};

/// Copies the database into a directory of the server's machine that is empty, or not there. It holds what was committed before the call, whatever
/// transaction that is in. Blocks until the copy is durable, and is not cancelled.
///
/// # Errors
/// `42501` for who is no superuser, `42602` for a path that is not absolute, `55000` for a directory with something in it, `22023` for the
/// database's own; what the engine reports.
pub(super) fn backup(env: &Env<'_>, target: ValueRef<'_>) -> Result<Value> {
    env.check_superuser("function vellum_backup")?;
    let Some(target) = target.as_str() else {
        return Ok(Value::Null);
    };
    if !Path::new(target).is_absolute() {
        let message = "relative path not allowed for vellum_backup";
        return Err(SqlError::new(sqlstate::INVALID_NAME, message));
    }
    let done = env.shared.engine.backup(target);
    done.map_err(|error| match error {
        Error::ForeignFormat { file, what } => {
            let message = format!("directory \"{target}\" is not empty");
            SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                .with_detail(format!("{file}: {what}"))
        }
        Error::InvalidArgument { what } => SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, what),
        other => other.into(),
    })?;
    Ok(Value::text(""))
}
