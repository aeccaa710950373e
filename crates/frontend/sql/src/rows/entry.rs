//! Entries of indexes.
//!
//! Layout: the key is that of the columns; where rows may share it (the index is not unique, or a column is null) the row's key
//! follows. The value is `0, u16 big-endian length of the columns' part` then, else `1, the row's key`.

use super::KeyShape;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use vellum_row::ValueRef;

const SHARED: u8 = 0;
const ALONE: u8 = 1;

/// Makes key and value of an entry.
///
/// # Errors
/// `54000` for values that make no key.
pub(crate) fn entry<'v>(
    shape: &KeyShape,
    unique: bool,
    column: impl Fn(usize) -> Result<ValueRef<'v>>,
    row_key: &[u8],
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
) -> Result<()> {
    key.clear();
    value.clear();
    let null = shape.encode_with(column, key)?;
    if unique && !null {
        value.push(ALONE);
        value.extend_from_slice(row_key);
        return Ok(());
    }
    let length = u16::try_from(key.len()).map_err(|_| too_long(key.len()))?;
    value.push(SHARED);
    value.extend_from_slice(&length.to_be_bytes());
    key.extend_from_slice(row_key);
    Ok(())
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
