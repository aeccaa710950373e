//! The forms of rows in a COPY that are text: PostgreSQL's own, and csv.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use std::borrow::Cow;

/// How lines look.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// No lines: `copy_binary`.
    pub binary: bool,
    pub csv: bool,
    pub delimiter: u8,
    pub null: String,
    pub quote: u8,
    pub escape: u8,
    pub header: Header,
    /// The columns whose fields are quoted in any case, if there are such, one flag for each; so below.
    pub quoted: Vec<bool>,
    /// Those in which what stands for null is itself,
    pub not_null: Vec<bool>,
    /// and in which it is null in quotes, too.
    pub is_null: Vec<bool>,
    /// A line has one field: what would end the data is quoted then.
    pub single: bool,
}

/// What stands in front of the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Header {
    /// Nothing.
    None,
    /// A line of names.
    Line,
    /// One that has to be that of the columns.
    Match,
}

/// A flag of a column, where none may have any.
fn flag(flags: &[bool], column: usize) -> bool {
    flags.get(column).is_some_and(|flag| *flag)
}

/// Appends a column as text or csv has it; `number`: which it is, of one whose values may be quoted in any case.
pub(super) fn write_field(
    field: Option<&[u8]>,
    number: Option<usize>,
    lines: &Lines,
    out: &mut Vec<u8>,
) {
    let Some(field) = field else {
        out.extend_from_slice(lines.null.as_bytes());
        return;
    };
    if lines.csv {
        let special = |byte: &u8| {
            *byte == lines.delimiter || *byte == lines.quote || *byte == b'\n' || *byte == b'\r'
        };
        let forced = number.is_some_and(|number| flag(&lines.quoted, number));
        let ends = lines.single && field == b"\\.";
        if forced || ends || field.iter().any(special) || field == lines.null.as_bytes() {
            out.push(lines.quote);
            for byte in field {
                if *byte == lines.quote || *byte == lines.escape {
                    out.push(lines.escape);
                }
                out.push(*byte);
            }
            out.push(lines.quote);
        } else {
            out.extend_from_slice(field);
        }
        return;
    }
    for byte in field {
        let escaped = match *byte {
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            8 => b'b',
            12 => b'f',
            11 => b'v',
            byte if byte == lines.delimiter => byte,
            byte => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', escaped]);
    }
}

/// A line of text in which nothing is escaped and everything is valid: most are, and looking once at all of it is cheaper than at each field.
pub(super) fn plain_line<'l>(line: &'l [u8], lines: &Lines) -> Option<&'l str> {
    if lines.csv || !lines.delimiter.is_ascii() || memchr::memchr3(b'\\', b'\r', 0, line).is_some()
    {
        return None;
    }
    str::from_utf8(line).ok()
}

/// The columns of a line of text.
pub(super) fn text_fields<'l>(line: &'l [u8], lines: &Lines) -> Vec<Option<Cow<'l, [u8]>>> {
    let mut fields = Vec::new();
    let mut field = Vec::new();
    let mut start = 0;
    let mut at = 0;
    loop {
        let byte = line.get(at).copied();
        if byte.is_none() || byte == Some(lines.delimiter) {
            let null = &line[start..at] == lines.null.as_bytes();
            let whole = std::mem::take(&mut field);
            fields.push(if null { None } else { Some(Cow::Owned(whole)) });
            if byte.is_none() {
                return fields;
            }
            at += 1;
            start = at;
            continue;
        }
        if byte != Some(b'\\') {
            field.extend(byte);
            at += 1;
            continue;
        }
        at += 1;
        // With nothing behind it, it is nothing.
        let Some(escaped) = line.get(at).copied() else {
            continue;
        };
        at += 1;
        field.push(match escaped {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'x' | b'0'..=b'7' => {
                let (radix, most) = if escaped == b'x' { (16, 2) } else { (8, 3) };
                let from = if escaped == b'x' { at } else { at - 1 };
                let digits = line[from..]
                    .iter()
                    .take(most)
                    .take_while(|byte| char::from(**byte).is_digit(radix))
                    .count();
                let number = std::str::from_utf8(&line[from..from + digits])
                    .ok()
                    .and_then(|digits| u32::from_str_radix(digits, radix).ok());
                match number {
                    Some(number) => {
                        at = from + digits;
                        (number & 0xff) as u8
                    }
                    None => escaped,
                }
            }
            other => other,
        });
    }
}

/// The columns of a line of csv.
pub(super) fn csv_fields<'l>(line: &'l [u8], lines: &Lines) -> Result<Vec<Option<Cow<'l, [u8]>>>> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let mut field = Vec::new();
        let mut quoted = false;
        while at < line.len() && line[at] != lines.delimiter {
            if line[at] != lines.quote {
                field.push(line[at]);
                at += 1;
                continue;
            }
            quoted = true;
            at += 1;
            loop {
                let Some(byte) = line.get(at).copied() else {
                    return Err(bad("unterminated CSV quoted field"));
                };
                at += 1;
                let next = line.get(at).copied();
                let escapes = byte == lines.escape
                    && next.is_some_and(|next| next == lines.quote || next == lines.escape);
                if escapes {
                    field.extend(next);
                    at += 1;
                } else if byte == lines.quote {
                    break;
                } else {
                    field.push(byte);
                }
            }
        }
        let column = fields.len();
        let null = field == lines.null.as_bytes()
            && match quoted {
                true => flag(&lines.is_null, column),
                false => !flag(&lines.not_null, column),
            };
        fields.push(if null { None } else { Some(Cow::Owned(field)) });
        if at >= line.len() {
            return Ok(fields);
        }
        at += 1;
    }
}

#[cold]
pub(super) fn bad(what: &str) -> SqlError {
    SqlError::new(sqlstate::BAD_COPY_FILE_FORMAT, what)
}
