//! Entries of indexes.
//!
//! Rows for which the index's predicate is not true have none.
//!
//! Layout: the key is that of the columns; where rows may share it (the index is not unique, or a column is null and nulls are distinct) the row's key
//! follows. The value is `0, u16 big-endian length of the columns' part` then, else `1, the row's key`.

use super::KeyShape;
use crate::error::{Result, SqlError};
use crate::expr::RowRef;
use crate::sqlstate;

const SHARED: u8 = 0;
const ALONE: u8 = 1;

/// Makes key and value of the entry of a row; false if it has none.
///
/// # Errors
/// `54000` for values that make no key; those of what the index computes.
pub(crate) fn entry(
    shape: &KeyShape,
    row: RowRef<'_>,
    row_key: &[u8],
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
) -> Result<bool> {
    key.clear();
    value.clear();
    if !shape.has_entry(row)? {
        return Ok(false);
    }
    let null = shape.encode(row, key)?;
    if shape.is_alone(null) {
        value.push(ALONE);
        value.extend_from_slice(row_key);
        return Ok(true);
    }
    let length = u16::try_from(key.len()).map_err(|_| too_long(key.len()))?;
    value.push(SHARED);
    value.extend_from_slice(&length.to_be_bytes());
    key.extend_from_slice(row_key);
    Ok(true)
}

/// The key of the row that an entry is about.
///
/// # Errors
/// `XX001` for an entry that cannot be.
pub(crate) fn primary_key_of<'e>(key: &'e [u8], value: &'e [u8]) -> Result<&'e [u8]> {
    let found = match value {
        [ALONE, row_key @ ..] => Some(row_key),
        [SHARED, high, low] => key.get(usize::from(u16::from_be_bytes([*high, *low]))..),
        _ => None,
    };
    found.ok_or_else(|| {
        SqlError::new(
            sqlstate::DATA_CORRUPTED,
            "an entry of an index cannot be read",
        )
    })
}

#[cold]
fn too_long(length: usize) -> SqlError {
    let message = format!("index row size {length} exceeds maximum {}", u16::MAX);
    SqlError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
}
