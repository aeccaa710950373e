//! The forms of rows in a COPY that are text: PostgreSQL's own, and csv; and the options that choose among all.

use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast::{self, CopyOption};
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
    pub header: bool,
}

/// Appends a column as text or csv has it.
pub(super) fn write_field(field: Option<&[u8]>, lines: &Lines, out: &mut Vec<u8>) {
    let Some(field) = field else {
        out.extend_from_slice(lines.null.as_bytes());
        return;
    };
    if lines.csv {
        let special = |byte: &u8| {
            *byte == lines.delimiter || *byte == lines.quote || *byte == b'\n' || *byte == b'\r'
        };
        if field.iter().any(special) || field == lines.null.as_bytes() || field == b"\\." {
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
    if lines.csv || !lines.delimiter.is_ascii() || memchr::memchr2(b'\\', 0, line).is_some() {
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
        let Some(escaped) = line.get(at).copied() else {
            field.push(b'\\');
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
        let null = !quoted && field == lines.null.as_bytes();
        fields.push(if null { None } else { Some(Cow::Owned(field)) });
        if at >= line.len() {
            return Ok(fields);
        }
        at += 1;
    }
}

/// What the options of a COPY ask for.
pub(super) fn lines_of(options: &[CopyOption], legacy: &[ast::CopyLegacyOption]) -> Result<Lines> {
    let mut format = "text".to_owned();
    let (mut delimiter, mut null, mut quote, mut escape) = (None, None, None, None);
    let mut header = false;
    let byte_of = |option: &str, char: char| {
        u8::try_from(char).ok().filter(u8::is_ascii).ok_or_else(|| {
            let message = format!("COPY {option} must be a single one-byte character");
            SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        })
    };
    for option in options {
        match option {
            CopyOption::Format(name) => format = name.value.to_lowercase(),
            CopyOption::Delimiter(char) => delimiter = Some(byte_of("delimiter", *char)?),
            CopyOption::Null(text) => null = Some(text.clone()),
            CopyOption::Header(wanted) => header = *wanted,
            CopyOption::Quote(char) => quote = Some(byte_of("quote", *char)?),
            CopyOption::Escape(char) => escape = Some(byte_of("escape", *char)?),
            CopyOption::Freeze(_) | CopyOption::Encoding(_) => {}
            other => return Err(SqlError::unsupported(format!("the option {other} of COPY"))),
        }
    }
    for option in legacy {
        match option {
            ast::CopyLegacyOption::Csv(inner) => {
                format = "csv".to_owned();
                for option in inner {
                    match option {
                        ast::CopyLegacyCsvOption::Header => header = true,
                        ast::CopyLegacyCsvOption::Quote(char) => {
                            quote = Some(byte_of("quote", *char)?)
                        }
                        ast::CopyLegacyCsvOption::Escape(char) => {
                            escape = Some(byte_of("escape", *char)?)
                        }
                        other => {
                            return Err(SqlError::unsupported(format!("{other} of COPY")));
                        }
                    }
                }
            }
            ast::CopyLegacyOption::Binary => format = "binary".to_owned(),
            ast::CopyLegacyOption::Delimiter(char) => {
                delimiter = Some(byte_of("delimiter", *char)?)
            }
            ast::CopyLegacyOption::Null(text) => null = Some(text.clone()),
            ast::CopyLegacyOption::Header => header = true,
            other => return Err(SqlError::unsupported(format!("the option {other} of COPY"))),
        }
    }
    let csv = match format.as_str() {
        "text" => false,
        "csv" => true,
        "binary" => {
            let given = [
                delimiter.map(|_| "DELIMITER"),
                null.as_ref().map(|_| "NULL"),
            ];
            if let Some(word) = given.into_iter().flatten().next() {
                return Err(SqlError::syntax(format!(
                    "cannot specify {word} in BINARY mode"
                )));
            }
            false
        }
        other => {
            let message = format!("COPY format \"{other}\" not recognized");
            return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
        }
    };
    let given = (quote.is_some(), escape.is_some());
    let quote = quote.unwrap_or(b'"');
    let lines = Lines {
        binary: format == "binary",
        csv,
        delimiter: delimiter.unwrap_or(if csv { b',' } else { b'\t' }),
        null: null.unwrap_or_else(|| if csv { String::new() } else { "\\N".to_owned() }),
        quote,
        escape: escape.unwrap_or(quote),
        header,
    };
    check_lines(&lines, given)?;
    Ok(lines)
}

/// What options may not say together, in the order in which PostgreSQL looks. `given`: QUOTE and ESCAPE.
fn check_lines(lines: &Lines, given: (bool, bool)) -> Result<()> {
    let invalid = |text: &str| Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text));
    let only_csv = |what: &str| {
        let message = format!("COPY {what} available only in CSV mode");
        Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
    };
    let delimiter = lines.delimiter;
    if matches!(delimiter, b'\n' | b'\r') {
        return invalid("COPY delimiter cannot be newline or carriage return");
    }
    if lines.null.contains(['\n', '\r']) {
        return invalid("COPY null representation cannot use newline or carriage return");
    }
    let letters = b"\\.abcdefghijklmnopqrstuvwxyz0123456789";
    if !lines.csv && !lines.binary && letters.contains(&delimiter) {
        let message = format!("COPY delimiter cannot be \"{}\"", char::from(delimiter));
        return invalid(&message);
    }
    if !lines.csv && given.0 {
        return only_csv("quote");
    }
    if lines.csv && delimiter == lines.quote {
        return invalid("COPY delimiter and quote must be different");
    }
    if !lines.csv && given.1 {
        return only_csv("escape");
    }
    if lines.null.as_bytes().contains(&delimiter) {
        let text = "COPY delimiter must not appear in the NULL specification";
        return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
    }
    if lines.csv && lines.null.as_bytes().contains(&lines.quote) {
        let text = "CSV quote character must not appear in the NULL specification";
        return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
    }
    Ok(())
}

#[cold]
pub(super) fn bad(what: &str) -> SqlError {
    SqlError::new(sqlstate::BAD_COPY_FILE_FORMAT, what)
}
