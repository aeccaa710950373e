//! Functions of bytes, and between bytes and text.

use super::{Arguments, Entry, fault, invalid, strict};
use crate::error::{Result, SqlError};
use std::borrow::Cow;
use vellum_row::{Settings, Type, Typmod, Value, ValueRef, input};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(0, "||", "bytea bytea", "bytea", |a| Ok(bytea([a.bytes(0), a.bytes(1)].concat()))),
    strict(2012, "substring", "bytea int4 int4", "bytea", part),
    strict(2013, "substring", "bytea int4", "bytea", part),
    strict(2085, "substr", "bytea int4 int4", "bytea", part),
    strict(2086, "substr", "bytea int4", "bytea", part),
    strict(2014, "position", "bytea bytea", "int4", position),
    strict(6163, "bit_count", "bytea", "int8", |a| {
        Ok(Value::Int8(a.bytes(0).iter().map(|byte| i64::from(byte.count_ones())).sum()))
    }),
    strict(2015, "btrim", "bytea bytea", "bytea", |a| Ok(bytea(trimmed(a, true, true)))),
    strict(6195, "ltrim", "bytea bytea", "bytea", |a| Ok(bytea(trimmed(a, true, false)))),
    strict(6196, "rtrim", "bytea bytea", "bytea", |a| Ok(bytea(trimmed(a, false, true)))),
    strict(875, "ltrim", "text text", "text", |a| Ok(Value::text(vellum_row::functions::trim_left(a.text(0), a.text(1))))),
    strict(881, "ltrim", "text", "text", |a| Ok(Value::text(a.text(0).trim_start_matches(' ')))),
    strict(876, "rtrim", "text text", "text", |a| Ok(Value::text(vellum_row::functions::trim_right(a.text(0), a.text(1))))),
    strict(882, "rtrim", "text", "text", |a| Ok(Value::text(a.text(0).trim_end_matches(' ')))),
    strict(749, "overlay", "bytea bytea int4 int4", "bytea", overlay),
    strict(752, "overlay", "bytea bytea int4", "bytea", overlay),
    strict(721, "get_byte", "bytea int4", "int4", |a| Ok(Value::Int4(i32::from(a.bytes(0)[index(a, 1)?])))),
    strict(722, "set_byte", "bytea int4 int4", "bytea", |a| {
        let at = index(a, 1)?;
        let mut bytes = a.bytes(0).to_vec();
        bytes[at] = a.int(2) as u8;
        Ok(bytea(bytes))
    }),
    strict(723, "get_bit", "bytea int8", "int4", |a| {
        let (at, bit) = bit_index(a)?;
        Ok(Value::Int4(i32::from(a.bytes(0)[at] >> bit & 1)))
    }),
    strict(724, "set_bit", "bytea int8 int4", "bytea", |a| {
        let (at, bit) = bit_index(a)?;
        let new = a.int(2);
        if !(0..=1).contains(&new) {
            return Err(invalid("new bit must be 0 or 1"));
        }
        let mut bytes = a.bytes(0).to_vec();
        bytes[at] = bytes[at] & !(1 << bit) | (new as u8) << bit;
        Ok(bytea(bytes))
    }),
    strict(1714, "convert_from", "bytea name", "text", |a| {
        check_encoding(a.text(1), "source")?;
        vellum_row::text_of_bytes(a.bytes(0)).map(Value::text).map_err(SqlError::from)
    }),
    strict(1717, "convert_to", "text name", "bytea", |a| {
        check_encoding(a.text(1), "destination")?;
        Ok(bytea(a.text(0).as_bytes().to_vec()))
    }),
    strict(1946, "encode", "bytea text", "text", encode),
    strict(1947, "decode", "text text", "bytea", decode),
];

/// What LIKE looks at: a text, or bytes, each of which is taken for a character.
pub(crate) fn letters(value: ValueRef<'_>) -> Option<Cow<'_, str>> {
    match value {
        ValueRef::Bytea(bytes) => Some(bytes.iter().copied().map(char::from).collect()),
        other => other.as_str().map(Cow::Borrowed),
    }
}

pub(super) fn bytea(bytes: impl Into<Box<[u8]>>) -> Value {
    Value::Bytea(bytes.into())
}

fn check_encoding(name: &str, which: &str) -> Result<()> {
    let plain = name.to_lowercase().replace(['-', '_'], "");
    if matches!(&*plain, "utf8" | "unicode" | "sqlascii") {
        return Ok(());
    }
    Err(invalid(format!("invalid {which} encoding name \"{name}\"")))
}

fn part(a: &Arguments<'_>) -> Result<Value> {
    let bytes = a.bytes(0);
    let from = a.long(1);
    let end = if a.len() > 2 {
        if a.int(2) < 0 {
            return Err(fault("22011", "negative substring length not allowed"));
        }
        from + a.long(2)
    } else {
        i64::MAX
    };
    let place = |at: i64| usize::try_from(at - 1).unwrap_or(0).min(bytes.len());
    let (from, end) = (place(from.max(1)), place(end.max(1)));
    Ok(bytea(&bytes[from..end.max(from)]))
}

fn position(a: &Arguments<'_>) -> Result<Value> {
    let (whole, wanted) = (a.bytes(0), a.bytes(1));
    if wanted.is_empty() {
        return Ok(Value::Int4(1));
    }
    let at = whole
        .windows(wanted.len())
        .position(|window| window == wanted);
    Ok(Value::Int4(at.map_or(0, |at| at as i32 + 1)))
}

fn trimmed(a: &Arguments<'_>, front: bool, back: bool) -> Vec<u8> {
    let (mut bytes, set) = (a.bytes(0), a.bytes(1));
    while let (true, [first, rest @ ..]) = (front, bytes) {
        if !set.contains(first) {
            break;
        }
        bytes = rest;
    }
    while let (true, [rest @ .., last]) = (back, bytes) {
        if !set.contains(last) {
            break;
        }
        bytes = rest;
    }
    bytes.to_vec()
}

fn overlay(a: &Arguments<'_>) -> Result<Value> {
    let (bytes, new) = (a.bytes(0), a.bytes(1));
    let from = a.long(2);
    let count = if a.len() > 3 {
        a.long(3)
    } else {
        new.len() as i64
    };
    if from <= 0 {
        return Err(fault("22011", "negative substring length not allowed"));
    }
    let place = |at: i64| usize::try_from(at - 1).unwrap_or(0).min(bytes.len());
    let (front, back) = (&bytes[..place(from)], &bytes[place(from + count)..]);
    Ok(bytea([front, new, back].concat()))
}

fn index(a: &Arguments<'_>, number: usize) -> Result<usize> {
    let length = a.bytes(0).len();
    let at = usize::try_from(a.long(number))
        .ok()
        .filter(|at| *at < length);
    at.ok_or_else(|| {
        let last = length as i64 - 1;
        let message = format!("index {} out of valid range, 0..{last}", a.long(number));
        fault("2202E", message)
    })
}

/// The byte and the bit in it.
fn bit_index(a: &Arguments<'_>) -> Result<(usize, u8)> {
    let bits = a.bytes(0).len() as i64 * 8;
    let wanted = a.long(1);
    if !(0..bits).contains(&wanted) {
        let message = format!("index {wanted} out of valid range, 0..{}", bits - 1);
        return Err(fault("2202E", message));
    }
    Ok(((wanted / 8) as usize, (wanted % 8) as u8))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn unrecognized(name: &str) -> SqlError {
    invalid(format!("unrecognized encoding: \"{name}\""))
}

fn encode(a: &Arguments<'_>) -> Result<Value> {
    let bytes = a.bytes(0);
    let text = match &*a.text(1).to_lowercase() {
        "hex" => hex(bytes),
        "base64" => to_base64(bytes),
        "escape" => {
            let mut out = String::new();
            for byte in bytes {
                match byte {
                    b'\\' => out.push_str("\\\\"),
                    0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
                    byte => out.push(char::from(*byte)),
                }
            }
            out
        }
        _ => return Err(unrecognized(a.text(1))),
    };
    Ok(Value::text(text))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// In lines of 76 characters: what fills one ends it.
fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 4);
    let mut width = 0;
    for chunk in bytes.chunks(3) {
        let word = u32::from(chunk[0]) << 16
            | u32::from(chunk.get(1).copied().unwrap_or(0)) << 8
            | u32::from(chunk.get(2).copied().unwrap_or(0));
        for at in 0..4 {
            out.push(if at <= chunk.len() {
                char::from(BASE64[(word >> (18 - 6 * at) & 63) as usize])
            } else {
                '='
            });
        }
        width += 4;
        if width == 76 && chunk.len() == 3 {
            out.push('\n');
            width = 0;
        }
    }
    out
}

fn decode(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    match &*a.text(1).to_lowercase() {
        "hex" => from_hex(text),
        "base64" => from_base64(text),
        "escape" => {
            // Its own form of input; what begins like the other one is escaped.
            let text = match text.strip_prefix("\\x") {
                Some(_) => return Err(fault("22P02", "invalid input syntax for type bytea")),
                None => text,
            };
            Ok(input(
                Type::Bytea,
                Typmod::NONE,
                text,
                &Settings::default(),
            )?)
        }
        _ => Err(unrecognized(a.text(1))),
    }
}

/// Blanks may stand between bytes.
fn from_hex(text: &str) -> Result<Value> {
    let digit = |char: char| {
        let digit = char.to_digit(16);
        digit.ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{char}\"")))
    };
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut chars = text.chars();
    while let Some(high) = chars.next() {
        if matches!(high, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(high)?;
        let odd = || invalid("invalid hexadecimal data: odd number of digits");
        let low = digit(chars.next().ok_or_else(odd)?)?;
        bytes.push((high << 4 | low) as u8);
    }
    Ok(bytea(bytes))
}

fn from_base64(text: &str) -> Result<Value> {
    let (mut word, mut count, mut end) = (0u32, 0, 0);
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for char in text.chars() {
        if matches!(char, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let digit = if char == '=' {
            if end == 0 {
                end = match count {
                    2 => 1,
                    3 => 2,
                    _ => return Err(invalid("unexpected \"=\" while decoding base64 sequence")),
                };
            }
            0
        } else {
            let found = u8::try_from(char).ok();
            let found = found.and_then(|byte| BASE64.iter().position(|one| *one == byte));
            let digit = found.ok_or_else(|| {
                let message =
                    format!("invalid symbol \"{char}\" found while decoding base64 sequence");
                invalid(message)
            })?;
            digit as u32
        };
        word = word << 6 | digit;
        count += 1;
        if count == 4 {
            let bytes = [(word >> 16) as u8, (word >> 8) as u8, word as u8];
            out.extend_from_slice(&bytes[..if end == 0 { 3 } else { end }]);
            (word, count) = (0, 0);
        }
    }
    if count != 0 {
        return Err(invalid("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(bytea(out))
}
