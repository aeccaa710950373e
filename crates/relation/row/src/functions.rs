//! Functions of strings and numbers that statements of the fast path use. Nulls are the caller's.
//!
//! Characters are those of Unicode; letters change case by their simple mappings, one character to
//! one.

use crate::error::{Result, SqlError, SqlState};
use crate::strings::trim_char;
use crate::value::{Value, ValueRef, check_length};

#[cold]
fn missing(name: &str, value: ValueRef<'_>) -> SqlError {
    let ty = value.ty().map_or("unknown", crate::types::Type::sql_name);
    let message = format!("function {name}({ty}) does not exist");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

/// `length`: characters of text (the blanks at the end of a `char(n)` do not count), bytes of `bytea`.
///
/// # Errors
/// 42883 for another type.
pub fn length(value: ValueRef<'_>) -> Result<i32> {
    let count = match value {
        ValueRef::Text(text) => text.chars().count(),
        ValueRef::Char(text) => trim_char(text).chars().count(),
        ValueRef::Bytea(bytes) => bytes.len(),
        _ => return Err(missing("length", value)),
    };
    // Values are shorter than 2^31 bytes.
    Ok(count as i32)
}

/// `octet_length`: bytes.
///
/// # Errors
/// 42883 for a type that is neither text nor bytes.
pub fn octet_length(value: ValueRef<'_>) -> Result<i32> {
    match value {
        ValueRef::Text(text) | ValueRef::Char(text) => Ok(text.len() as i32),
        ValueRef::Bytea(bytes) => Ok(bytes.len() as i32),
        _ => Err(missing("octet_length", value)),
    }
}

fn map_case<I: Iterator<Item = char>>(text: &str, map: impl Fn(char) -> I) -> String {
    text.chars()
        .map(|c| {
            let mut mapped = map(c);
            match (mapped.next(), mapped.next()) {
                (Some(one), None) => one,
                // A letter that becomes two stays as it is.
                _ => c,
            }
        })
        .collect()
}

/// `upper`
pub fn upper(text: &str) -> String {
    map_case(text, char::to_uppercase)
}

/// `lower`
pub fn lower(text: &str) -> String {
    map_case(text, char::to_lowercase)
}

/// `substr(text, from [, count])`: characters from the one with number `from`, counted from 1;
/// positions before the first are counted but are not there.
///
/// # Errors
/// 22011 if `count` is negative.
pub fn substring(text: &str, from: i32, count: Option<i32>) -> Result<&str> {
    let start = i64::from(from);
    let end = match count {
        Some(count) if count < 0 => {
            return Err(SqlError::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        Some(count) => start + i64::from(count),
        None => i64::MAX,
    };
    let position = |character: i64| -> usize {
        let skip = usize::try_from(character - 1).unwrap_or(0);
        text.char_indices()
            .nth(skip)
            .map_or(text.len(), |(at, _)| at)
    };
    let (start, end) = (start.max(1), end.max(1));
    if end <= start {
        return Ok("");
    }
    let first = position(start);
    let last = if end == i64::MAX {
        text.len()
    } else {
        position(end)
    };
    Ok(&text[first..last])
}

/// `left(text, count)`; all but the last `-count` characters if it is negative.
pub fn left(text: &str, count: i32) -> &str {
    let wanted = i64::from(count);
    let wanted = if wanted < 0 {
        text.chars().count() as i64 + wanted
    } else {
        wanted
    };
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let end = text
        .char_indices()
        .nth(wanted)
        .map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// `right(text, count)`; all but the first `-count` characters if it is negative.
pub fn right(text: &str, count: i32) -> &str {
    // The one number without a negative skips nothing, as in PostgreSQL.
    let skip = if count == i32::MIN {
        0
    } else if count < 0 {
        usize::try_from(-i64::from(count)).unwrap_or(usize::MAX)
    } else {
        let count = usize::try_from(count).unwrap_or(0);
        text.chars().count().saturating_sub(count)
    };
    let start = text
        .char_indices()
        .nth(skip)
        .map_or(text.len(), |(at, _)| at);
    &text[start..]
}

/// `btrim(text, characters)`: without any of the characters at both ends.
pub fn trim<'a>(text: &'a str, characters: &str) -> &'a str {
    text.trim_matches(|c| characters.contains(c))
}

/// `ltrim(text, characters)`
pub fn trim_left<'a>(text: &'a str, characters: &str) -> &'a str {
    text.trim_start_matches(|c| characters.contains(c))
}

/// `rtrim(text, characters)`
pub fn trim_right<'a>(text: &'a str, characters: &str) -> &'a str {
    text.trim_end_matches(|c| characters.contains(c))
}

/// `strpos(text, part)`: number of the character where `part` begins, 0 if it is not there.
pub fn position(text: &str, part: &str) -> i32 {
    text.find(part)
        .map_or(0, |at| text[..at].chars().count() as i32 + 1)
}

/// `replace(text, from, to)`; an empty `from` is nowhere.
///
/// # Errors
/// 54000 for a text that is longer than a value may be.
pub fn replace(text: &str, from: &str, to: &str) -> Result<String> {
    if from.is_empty() {
        return Ok(text.to_owned());
    }
    // What gets longer is counted before it is made.
    if to.len() > from.len() {
        let more = text
            .matches(from)
            .count()
            .saturating_mul(to.len() - from.len());
        check_length(text.len().saturating_add(more))?;
    }
    Ok(text.replace(from, to))
}

/// `text || text`
pub fn concat(left: &str, right: &str) -> String {
    let mut out = String::with_capacity(left.len() + right.len());
    out.push_str(left);
    out.push_str(right);
    out
}

/// `abs`
///
/// # Errors
/// 22003 if the result is out of range, 42883 for a type that is no number.
pub fn abs(value: ValueRef<'_>) -> Result<Value> {
    let range = |name: &str| SqlError::out_of_range(name);
    Ok(match value {
        ValueRef::Int2(value) => Value::Int2(value.checked_abs().ok_or_else(|| range("smallint"))?),
        ValueRef::Int4(value) => Value::Int4(value.checked_abs().ok_or_else(|| range("integer"))?),
        ValueRef::Int8(value) => Value::Int8(value.checked_abs().ok_or_else(|| range("bigint"))?),
        ValueRef::Float4(value) => Value::Float4(value.abs()),
        ValueRef::Float8(value) => Value::Float8(value.abs()),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().abs()),
        _ => return Err(missing("abs", value)),
    })
}

/// `sign` of `double precision` and `numeric`
///
/// # Errors
/// 42883 for another type.
pub fn sign(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Float8(value) => Value::Float8(if value > 0.0 {
            1.0
        } else if value < 0.0 {
            -1.0
        } else {
            0.0
        }),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().sign()),
        _ => return Err(missing("sign", value)),
    })
}

/// `round` to a whole number: of a `double precision` halves to the even one, of a `numeric` away
/// from zero.
///
/// # Errors
/// 42883 for another type.
pub fn round(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Float8(value) => Value::Float8(value.round_ties_even()),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().round(0)?),
        _ => return Err(missing("round", value)),
    })
}

/// `trunc`
///
/// # Errors
/// 22003 if the result has too many digits, 42883 for another type than `double precision` and
/// `numeric`.
pub fn truncate(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Float8(value) => Value::Float8(value.trunc()),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().truncate(0)?),
        _ => return Err(missing("trunc", value)),
    })
}

/// `ceil`
///
/// # Errors
/// 22003 if the result has too many digits, 42883 for another type than `double precision` and
/// `numeric`.
pub fn ceiling(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Float8(value) => Value::Float8(value.ceil()),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().ceiling()?),
        _ => return Err(missing("ceil", value)),
    })
}

/// `floor`
///
/// # Errors
/// 22003 if the result has too many digits, 42883 for another type than `double precision` and
/// `numeric`.
pub fn floor(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Float8(value) => Value::Float8(value.floor()),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().floor()?),
        _ => return Err(missing("floor", value)),
    })
}

/// `sqrt`
///
/// # Errors
/// 2201F for a negative number, 42883 for another type than `double precision` and `numeric`.
pub fn square_root(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Float8(value) if value < 0.0 => {
            return Err(SqlError::new(
                SqlState::INVALID_POWER,
                "cannot take square root of a negative number",
            ));
        }
        ValueRef::Float8(value) => Value::Float8(value.sqrt()),
        ValueRef::Numeric(value) => Value::Numeric(value.to_numeric().square_root()?),
        _ => return Err(missing("sqrt", value)),
    })
}
