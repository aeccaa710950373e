//! Loads whose rows are given: half of the histories' loads, which the model does not tell from the others.

use crate::step::{Key, Value};
use vellum::{Error, Table, Transaction};

/// Loads rows that are given one by one. False if the table is none for that; nothing has happened then.
pub(crate) fn given_load(
    transaction: &Transaction,
    table: &Table,
    rows: &[(Key, Value)],
) -> Result<bool, Error> {
    let before = transaction.savepoint()?;
    if !transaction.begin_load(table)? {
        return Ok(false);
    }
    for (key, value) in rows {
        if !transaction.load_row(&key.0, &value.bytes())? {
            transaction.rollback_to(&before)?;
            return Err(Error::InvalidArgument {
                what: "a key that does not ascend".into(),
            });
        }
    }
    transaction.end_load()?;
    Ok(true)
}
