//! The binary form of rows in a COPY.
//!
//! Layout (big-endian): [`SIGNATURE`], u32 flags, u32 length of an extension, the extension; for each row i16 count of columns, for each column i32 length
//! (-1 for NULL) and as many bytes as the type's send function writes; at the end i16 -1.

use super::copy_text::bad;
use crate::error::Result;
use vellum_base::codec::Put;
use vellum_row::{Settings, Type, Typmod, Value, receive_from_client};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Flags from this bit on change what follows.
const CRITICAL: u32 = 0xffff_0000;
/// What ends the rows.
pub(super) const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// Appends what stands before the rows.
pub(super) fn put_header(out: &mut Vec<u8>) {
    out.put(SIGNATURE);
    out.put(&[0; 8]);
}

/// What stands at the beginning of some bytes.
#[derive(Debug)]
pub(super) enum Piece<T> {
    /// It is whole, and so long.
    Whole(T, usize),
    /// More bytes must come.
    Partial,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Reads what stands before the rows.
///
/// # Errors
/// `22P04`.
pub(super) fn header(bytes: &[u8]) -> Result<Piece<()>> {
    let known = bytes.len().min(SIGNATURE.len());
    if bytes[..known] != SIGNATURE[..known] {
        return Err(bad("COPY file signature not recognized"));
    }
    let Some(flags) = number(bytes, SIGNATURE.len()) else {
        return Ok(Piece::Partial);
    };
    if u32::from_be_bytes(flags) & CRITICAL != 0 {
        return Err(bad("unrecognized critical flags in COPY file header"));
    }
    let Some(extension) = number(bytes, SIGNATURE.len() + 4) else {
        return Ok(Piece::Partial);
    };
    let Ok(extension) = usize::try_from(i32::from_be_bytes(extension)) else {
        return Err(bad("invalid COPY file header (wrong length)"));
    };
    let end = SIGNATURE.len() + 8 + extension;
    Ok(if bytes.len() < end {
        Piece::Partial
    } else {
        Piece::Whole((), end)
    })
}

/// What is read of a row whose end has not come.
#[derive(Debug, Default)]
pub(super) struct Begun {
    values: Vec<Value>,
    /// Where the next column stands, from the row's beginning.
    at: usize,
}

/// Reads a row; `None` for the end of the rows. `begun` is what earlier calls have read of the same row, when less of it had come, so that each column is
/// read once; it is empty where another row begins.
///
/// # Errors
/// `22P04`; the type's for bytes that are none of its values.
pub(super) fn row(
    bytes: &[u8],
    (types, forms): (&[(Type, Typmod)], &Settings),
    begun: &mut Begun,
) -> Result<Piece<Option<Vec<Value>>>> {
    if begun.at == 0 {
        let Some(count) = number(bytes, 0) else {
            return Ok(Piece::Partial);
        };
        let count = i16::from_be_bytes(count);
        if count == -1 {
            return Ok(Piece::Whole(None, 2));
        }
        if usize::try_from(count) != Ok(types.len()) {
            let message = format!("row field count is {count}, expected {}", types.len());
            return Err(bad(&message));
        }
        begun.at = 2;
        begun.values.reserve(types.len());
    }
    for (ty, typmod) in &types[begun.values.len()..] {
        let Some(length) = number(bytes, begun.at) else {
            return Ok(Piece::Partial);
        };
        let at = begun.at + 4;
        let length = i32::from_be_bytes(length);
        if length == -1 {
            begun.values.push(Value::Null);
            begun.at = at;
            continue;
        }
        let Ok(length) = usize::try_from(length) else {
            return Err(bad("invalid field size"));
        };
        let Some(field) = bytes.get(at..at + length) else {
            return Ok(Piece::Partial);
        };
        begun
            .values
            .push(receive_from_client(*ty, *typmod, field, forms)?);
        begun.at = at + length;
    }
    let Begun { values, at } = std::mem::take(begun);
    Ok(Piece::Whole(Some(values), at))
}
