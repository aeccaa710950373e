//! What a column cannot be called, and what is said of it twice.

use crate::catalog::Relation;
use crate::error::{Result, SqlError};
use crate::sqlstate;

/// Columns that every table of PostgreSQL has.
const SYSTEM: [&str; 6] = ["tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"];

/// A column of a table is not called like one that they all have.
///
/// # Errors
/// `42701`.
pub(super) fn check_column_name(name: &str) -> Result<()> {
    if !SYSTEM.contains(&name) {
        return Ok(());
    }
    let message = format!("column name \"{name}\" conflicts with a system column name");
    Err(SqlError::new(sqlstate::DUPLICATE_COLUMN, message))
}

/// Whether nulls are allowed, after it is said once more.
///
/// # Errors
/// `42601` if the opposite was said.
pub(super) fn agreed(
    said: Option<bool>,
    now: bool,
    column: &str,
    table: &str,
) -> Result<Option<bool>> {
    if said == Some(!now) {
        return Err(SqlError::syntax(format!(
            "conflicting NULL/NOT NULL declarations for column \"{column}\" of table \"{table}\""
        )));
    }
    Ok(Some(now))
}

/// The position of a column that is to be called otherwise.
///
/// # Errors
/// `42703`, told otherwise than for other changes.
pub(super) fn renamed_position(relation: &Relation, name: &str) -> Result<usize> {
    let table = relation.table();
    let found = table.and_then(|table| table.schema.position(name));
    found.ok_or_else(|| {
        let message = format!("column \"{name}\" does not exist");
        SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
    })
}
