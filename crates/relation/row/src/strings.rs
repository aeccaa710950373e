//! The lengths of `varchar(n)`, `char(n)`, `name` and `"char"`.

use crate::error::{Result, SqlError, SqlState};
use crate::types::Typmod;

/// What texts are filled up with, some of it.
const BLANKS: &str = "                                                                ";

/// Bytes of a `name`.
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// Byte position behind the first `count` characters; `None` if there are no more than these.
fn position_behind(text: &str, count: usize) -> Option<usize> {
    // A text of so many bytes has no more characters.
    if text.len() <= count {
        return None;
    }
    text.char_indices().nth(count).map(|(at, _)| at)
}

#[cold]
fn too_long(type_name: &str, length: usize) -> SqlError {
    SqlError::new(
        SqlState::STRING_TOO_LONG,
        format!("value too long for type {type_name}({length})"),
    )
}

/// The text as a `varchar(n)`. What is too long is cut if that was asked for explicitly, or if only
/// blanks go.
pub(crate) fn to_varchar(text: &str, typmod: Typmod, explicit: bool) -> Result<&str> {
    let Some(length) = typmod.length() else {
        return Ok(text);
    };
    match position_behind(text, length) {
        None => Ok(text),
        Some(end) if explicit || text[end..].bytes().all(|byte| byte == b' ') => Ok(&text[..end]),
        Some(_) => Err(too_long("character varying", length)),
    }
}

/// The text as a `char(n)`: cut as a `varchar`, or padded with blanks.
pub(crate) fn to_char(text: &str, typmod: Typmod, explicit: bool) -> Result<Box<str>> {
    let Some(length) = typmod.length() else {
        return Ok(text.into());
    };
    match position_behind(text, length) {
        Some(end) if explicit || text[end..].bytes().all(|byte| byte == b' ') => {
            Ok(text[..end].into())
        }
        Some(_) => Err(too_long("character", length)),
        None => {
            let missing = length - text.chars().count();
            let mut padded = String::with_capacity(text.len() + missing);
            padded.push_str(text);
            let mut left = missing;
            while left > 0 {
                let next = left.min(BLANKS.len());
                padded.push_str(&BLANKS[..next]);
                left -= next;
            }
            Ok(padded.into())
        }
    }
}

/// The text as a `"char"`: its first byte, or the whole first character, which PostgreSQL would cut in two.
pub(crate) fn to_single_char(text: &str) -> &str {
    text.chars()
        .next()
        .map_or("", |first| &text[..first.len_utf8()])
}

/// The text as a `name`: cut to 63 bytes, at a character.
pub(crate) fn to_name(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_BYTES_MAX)]
}

/// What of a `char(n)` counts: all but the blanks at its end.
pub(crate) fn trim_char(text: &str) -> &str {
    text.trim_end_matches(' ')
}
