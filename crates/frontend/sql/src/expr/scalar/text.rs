//! Functions of text.

use super::{Arguments, Entry, fault, invalid, lenient, other, strict};
use crate::error::Result;
use crate::expr::Builtin as B;
use vellum_row::{Array, Type, Value, check_length, functions};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(1811, "bit_length", "text", "int4", |a| bits(a.text(0).len())),
    strict(1810, "bit_length", "bytea", "int4", |a| bits(a.bytes(0).len())),
    strict(872, "initcap", "text", "text", |a| Ok(Value::text(initial_capitals(a.text(0))))),
    strict(2088, "split_part", "text text int4", "text", split_part),
    strict(3696, "starts_with", "text text", "bool", starts_with),
    strict(0, "^@", "text text", "bool", starts_with),
    strict(878, "translate", "text text text", "text", translate),
    strict(2089, "to_hex", "int4", "text", |a| Ok(Value::text(format!("{:x}", a.long(0) as i32)))),
    strict(2090, "to_hex", "int8", "text", |a| Ok(Value::text(format!("{:x}", a.long(0))))),
    lenient(3059, "concat_ws", "text any*", "text", concat_with),
    lenient(3539, "format", "text any*", "text", format),
    lenient(3540, "format", "text", "text", format),
    lenient(1289, "quote_nullable", "text", "text", quote_nullable),
    lenient(1290, "quote_nullable", "anyelement", "text", quote_nullable),
    strict(1283, "quote_literal", "text", "text", |a| Ok(Value::text(literal(a.text(0))))),
    strict(1285, "quote_literal", "anyelement", "text", |a| Ok(Value::text(literal(&a.cast_to_text(0)?)))),
    lenient(394, "string_to_array", "text text", "_text", string_to_array),
    lenient(376, "string_to_array", "text text text", "_text", string_to_array),
    strict(1404, "overlay", "text text int4 int4", "text", overlay),
    strict(1405, "overlay", "text text int4", "text", overlay),
    strict(0, "parse_ident", "text", "_text", parse_ident),
    strict(1268, "parse_ident", "text bool", "_text", parse_ident),
    strict(6198, "unistr", "text", "text", unistr),
    other(877, "substr", "text int4 int4", "text", B::Substring),
    other(883, "substr", "text int4", "text", B::Substring),
    other(936, "substring", "text int4 int4", "text", B::Substring),
    other(937, "substring", "text int4", "text", B::Substring),
    other(884, "btrim", "text text", "text", B::Trim),
    other(885, "btrim", "text", "text", B::Trim),
    other(868, "strpos", "text text", "int4", B::Position),
    other(849, "position", "text text", "int4", B::Position),
];

/// So many bytes in bits.
fn bits(bytes: usize) -> Result<Value> {
    let bits = i32::try_from(bytes)
        .ok()
        .and_then(|bytes| bytes.checked_mul(8));
    bits.map(Value::Int4)
        .ok_or_else(|| fault("22003", "integer out of range"))
}

/// # Errors
/// `54000` for a text that is too long.
fn concat_texts(parts: impl Iterator<Item = Result<String>>, between: &str) -> Result<String> {
    let mut text = String::new();
    for (number, part) in parts.enumerate() {
        let part = part?;
        check_length(text.len() + between.len() + part.len())?;
        if number > 0 {
            text.push_str(between);
        }
        text.push_str(&part);
    }
    Ok(text)
}

/// Every word's first letter large, the others small.
fn initial_capitals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for char in text.chars() {
        let one = char.to_string();
        out.push_str(&if inside {
            functions::lower(&one)
        } else {
            functions::upper(&one)
        });
        inside = char.is_alphanumeric();
    }
    out
}

fn split_part(a: &Arguments<'_>) -> Result<Value> {
    let (text, between, number) = (a.text(0), a.text(1), a.long(2));
    if number == 0 {
        return Err(invalid("field position must not be zero"));
    }
    let parts: Vec<&str> = if between.is_empty() {
        vec![text]
    } else {
        text.split(between).collect()
    };
    let at = if number > 0 {
        usize::try_from(number - 1).ok()
    } else {
        let back = usize::try_from(-number).unwrap_or(usize::MAX);
        parts.len().checked_sub(back)
    };
    let found = at.and_then(|at| parts.get(at));
    Ok(Value::text(found.copied().unwrap_or_default()))
}

fn starts_with(a: &Arguments<'_>) -> Result<Value> {
    Ok(Value::Bool(a.text(0).starts_with(a.text(1))))
}

fn translate(a: &Arguments<'_>) -> Result<Value> {
    let (from, to): (Vec<char>, Vec<char>) =
        (a.text(1).chars().collect(), a.text(2).chars().collect());
    let each = |char: char| match from.iter().position(|one| *one == char) {
        None => Some(char),
        Some(at) => to.get(at).copied(),
    };
    let text: String = a.text(0).chars().filter_map(each).collect();
    Ok(Value::text(text))
}

fn concat_with(a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) {
        return Ok(Value::Null);
    }
    let parts = (1..a.len()).filter(|number| !a.is_null(*number));
    let text = concat_texts(parts.map(|number| a.shown(number)), a.text(0))?;
    Ok(Value::text(text))
}

/// A literal that is read as this text.
fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

fn quote_nullable(a: &Arguments<'_>) -> Result<Value> {
    Ok(Value::text(if a.is_null(0) {
        "NULL".to_owned()
    } else {
        literal(&a.cast_to_text(0)?)
    }))
}

/// `format`: `%[position$][-][width]type`, of which width may be `*` or `*position$`.
fn format(a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) {
        return Ok(Value::Null);
    }
    let pattern: Vec<char> = a.text(0).chars().collect();
    let mut out = String::new();
    let (mut at, mut next) = (0, 1);
    let ended = || {
        invalid("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
    };
    while at < pattern.len() {
        let char = pattern[at];
        at += 1;
        if char != '%' {
            out.push(char);
            continue;
        }
        if *pattern.get(at).ok_or_else(ended)? == '%' {
            out.push('%');
            at += 1;
            continue;
        }
        let number = |at: &mut usize| -> Result<Option<i32>> {
            let from = *at;
            while pattern.get(*at).is_some_and(char::is_ascii_digit) {
                *at += 1;
            }
            let digits: String = pattern[from..*at].iter().collect();
            if digits.is_empty() {
                return Ok(None);
            }
            let number = digits.parse();
            number
                .map(Some)
                .map_err(|_| fault("22003", "number is out of range"))
        };
        let mut position = None;
        let mut width = None;
        let from = at;
        match number(&mut at)? {
            Some(found) if pattern.get(at) == Some(&'$') => {
                position = Some(found);
                at += 1;
            }
            _ => at = from,
        }
        let mut left = false;
        while pattern.get(at) == Some(&'-') {
            left = true;
            at += 1;
        }
        let chosen = |position: Option<i32>, next: &mut usize| -> Result<usize> {
            let number = match position {
                Some(0) => {
                    let text = "format specifies argument 0, but arguments are numbered from 1";
                    return Err(invalid(text));
                }
                Some(position) => {
                    *next = usize::try_from(position)
                        .unwrap_or(usize::MAX)
                        .saturating_add(1);
                    *next - 1
                }
                None => {
                    *next += 1;
                    *next - 1
                }
            };
            if number >= a.len() {
                return Err(invalid("too few arguments for format()"));
            }
            Ok(number)
        };
        if pattern.get(at) == Some(&'*') {
            at += 1;
            let from = at;
            let mut place = None;
            match number(&mut at)? {
                Some(found) if pattern.get(at) == Some(&'$') => {
                    place = Some(found);
                    at += 1;
                }
                _ => at = from,
            }
            let of = chosen(place, &mut next)?;
            width = Some(width_of(a, of)?);
        } else if let Some(found) = number(&mut at)? {
            width = Some(found);
        }
        let kind = *pattern.get(at).ok_or_else(ended)?;
        at += 1;
        if !matches!(kind, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{kind}\"");
            return Err(invalid(message).with_hint("For a single \"%\" use \"%%\"."));
        }
        let of = chosen(position, &mut next)?;
        let text = match kind {
            's' if a.is_null(of) => String::new(),
            's' => a.shown(of)?,
            'L' if a.is_null(of) => "NULL".to_owned(),
            'L' => literal(&a.shown(of)?),
            _ if a.is_null(of) => {
                return Err(fault(
                    "22004",
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            _ => crate::names::quoted(&a.shown(of)?),
        };
        let width = width.unwrap_or(0);
        let (left, width) = (left || width < 0, width.unsigned_abs() as usize);
        let pad = width.saturating_sub(text.chars().count());
        check_length(out.len() + text.len() + pad)?;
        let blanks = " ".repeat(pad);
        if left {
            out.push_str(&text);
            out.push_str(&blanks);
        } else {
            out.push_str(&blanks);
            out.push_str(&text);
        }
    }
    Ok(Value::text(out))
}

/// A width among the arguments: a number, or what reads as one; nothing for null.
fn width_of(a: &Arguments<'_>, number: usize) -> Result<i32> {
    if a.is_null(number) {
        return Ok(0);
    }
    let text = a.shown(number)?;
    let read = vellum_row::input(Type::Int4, vellum_row::Typmod::NONE, &text, a.settings)?;
    Ok(read
        .as_ref()
        .as_i64()
        .and_then(|width| i32::try_from(width).ok())
        .unwrap_or(0))
}

/// The parts of a text: one a character without a separator.
pub(super) fn parts_of(
    text: &str,
    between: Option<&str>,
    null: Option<&str>,
    each: &mut dyn FnMut(Value) -> Result<()>,
) -> Result<()> {
    let mut value = |part: &str| {
        each(if Some(part) == null {
            Value::Null
        } else {
            Value::text(part)
        })
    };
    match between {
        _ if text.is_empty() => Ok(()),
        None => {
            let mut bytes = [0; 4];
            let mut chars = text.chars();
            chars.try_for_each(|char| value(char.encode_utf8(&mut bytes)))
        }
        Some("") => value(text),
        Some(between) => text.split(between).try_for_each(value),
    }
}

fn string_to_array(a: &Arguments<'_>) -> Result<Value> {
    if a.is_null(0) {
        return Ok(Value::Null);
    }
    let between = (!a.is_null(1)).then(|| a.text(1));
    let mut parts = Vec::new();
    parts_of(a.text(0), between, a.at(2).as_str(), &mut |part| {
        parts.push(part);
        Ok(vellum_row::array::check_count(parts.len())?)
    })?;
    Ok(Value::Array(Array::list(Type::Text, &parts)?))
}

fn overlay(a: &Arguments<'_>) -> Result<Value> {
    let (text, new) = (a.text(0), a.text(1));
    let from = a.int(2);
    let count = if a.len() > 3 {
        a.int(3)
    } else {
        new.chars().count() as i32
    };
    if from <= 0 {
        return Err(fault("22011", "negative substring length not allowed"));
    }
    let behind = from
        .checked_add(count)
        .ok_or_else(|| fault("22003", "integer out of range"))?;
    let front = functions::substring(text, 1, Some(from - 1))?;
    let back = functions::substring(text, behind, None)?;
    Ok(Value::text(format!("{front}{new}{back}")))
}

fn parse_ident(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    let strict = a.len() < 2 || a.truth(1);
    let wrong = |detail: &str| {
        let error = invalid(format!("string is not a valid identifier: \"{text}\""));
        if detail.is_empty() {
            return error;
        }
        error.with_detail(detail)
    };
    let is_space = |char: char| matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
    let begins = |char: char| char == '_' || char.is_ascii_alphabetic() || !char.is_ascii();
    let goes_on = |char: char| begins(char) || char == '$' || char.is_ascii_digit();
    let mut parts: Vec<Value> = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    loop {
        if let Some(inside) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut chars = inside.char_indices().peekable();
            let end = loop {
                match chars.next() {
                    None => return Err(wrong("String has unclosed double quotes.")),
                    Some((_, '"')) if chars.next_if(|(_, next)| *next == '"').is_some() => {
                        name.push('"');
                    }
                    Some((at, '"')) => break at + 1,
                    Some((_, other)) => name.push(other),
                }
            };
            if name.is_empty() {
                return Err(wrong("Quoted identifier must not be empty."));
            }
            parts.push(Value::text(name));
            rest = &inside[end..];
        } else if rest.starts_with(begins) {
            let end = rest.find(|char| !goes_on(char)).unwrap_or(rest.len());
            parts.push(Value::text(rest[..end].to_ascii_lowercase()));
            rest = &rest[end..];
        } else if rest.starts_with('.') {
            return Err(wrong("No valid identifier before \".\"."));
        } else if parts.is_empty() {
            return Err(wrong(""));
        } else {
            return Err(wrong("No valid identifier after \".\"."));
        }
        rest = rest.trim_start_matches(is_space);
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind.trim_start_matches(is_space),
            None if rest.is_empty() || !strict => break,
            None => return Err(wrong("")),
        }
    }
    Ok(Value::Array(Array::list(Type::Text, &parts)?))
}

/// `\XXXX`, `\+XXXXXX`, `\uXXXX`, `\UXXXXXXXX` as characters.
fn unistr(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    let wrong = || {
        fault("42601", "invalid Unicode escape")
            .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    };
    let surrogate = || fault("42601", "invalid Unicode surrogate pair");
    let mut out = String::new();
    let mut rest = text;
    // The first half of a pair, until the other comes.
    let mut half: Option<u32> = None;
    while let Some(at) = rest.find('\\') {
        if at > 0 && half.is_some() {
            return Err(surrogate());
        }
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            if half.is_some() {
                return Err(surrogate());
            }
            out.push('\\');
            rest = after;
            continue;
        }
        let (skip, digits) = match rest.as_bytes().first() {
            Some(b'+') => (1, 6),
            Some(b'u') => (1, 4),
            Some(b'U') => (1, 8),
            _ => (0, 4),
        };
        let code = rest.get(skip..skip + digits).ok_or_else(wrong)?;
        // A sign is no digit.
        if !code.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let code = u32::from_str_radix(code, 16).map_err(|_| wrong())?;
        if code == 0 || code > 0x10_FFFF {
            return Err(invalid(format!("invalid Unicode code point: {code:04X}")));
        }
        let code = match (half.take(), code) {
            (None, 0xD800..=0xDBFF) => {
                half = Some(code);
                rest = &rest[skip + digits..];
                continue;
            }
            (Some(high), 0xDC00..=0xDFFF) => 0x1_0000 + ((high - 0xD800) << 10) + (code - 0xDC00),
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => return Err(surrogate()),
            (None, code) => code,
        };
        out.push(char::from_u32(code).ok_or_else(surrogate)?);
        rest = &rest[skip + digits..];
    }
    if half.is_some() {
        return Err(surrogate());
    }
    out.push_str(rest);
    Ok(Value::text(out))
}
