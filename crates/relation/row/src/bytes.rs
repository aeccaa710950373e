//! `bytea` and `uuid` as text.

use crate::error::{Result, SqlError, SqlState};
use crate::settings::ByteaOutput;
use crate::value::VALUE_BYTES_MAX;

const HEX: &[u8; 16] = b"0123456789abcdef";

fn hex_value(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Reads `\x6162`, or bytes with `\\` and `\ooo` (octal) among them.
pub(crate) fn parse_bytea(text: &str) -> Result<Box<[u8]>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        return parse_hex(hex);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        if *first != b'\\' {
            out.push(*first);
            rest = more;
            continue;
        }
        match more {
            [b'\\', more @ ..] => {
                out.push(b'\\');
                rest = more;
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', more @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = more;
            }
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_TEXT,
                    "invalid input syntax for type bytea",
                ));
            }
        }
    }
    Ok(out.into())
}

fn parse_hex(hex: &str) -> Result<Box<[u8]>> {
    let mut out = Vec::with_capacity(hex.len() / 2);
    let mut rest = hex;
    loop {
        // Blanks may stand between pairs of digits, not within one.
        rest = rest.trim_start_matches([' ', '\n', '\t', '\r']);
        let mut chars = rest.chars();
        let Some(high) = chars.next() else {
            return Ok(out.into());
        };
        let digit = |c: char| {
            u8::try_from(c).ok().and_then(hex_value).ok_or_else(|| {
                let message = format!("invalid hexadecimal digit: \"{c}\"");
                SqlError::new(SqlState::INVALID_PARAMETER, message)
            })
        };
        let high = digit(high)?;
        let Some(low) = chars.next() else {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER,
                "invalid hexadecimal data: odd number of digits",
            ));
        };
        out.push(high << 4 | digit(low)?);
        rest = chars.as_str();
    }
}

/// Appends bytes in the session's form.
pub(crate) fn write_bytea(bytes: &[u8], how: ByteaOutput, out: &mut String) {
    match how {
        ByteaOutput::Hex => {
            out.reserve(2 + 2 * bytes.len());
            out.push_str("\\x");
            write_hex(bytes, out);
        }
        ByteaOutput::Escape => {
            for byte in bytes {
                if out.len() > VALUE_BYTES_MAX {
                    break;
                }
                match byte {
                    b'\\' => out.push_str("\\\\"),
                    0x20..=0x7e => out.push(char::from(*byte)),
                    _ => {
                        out.push('\\');
                        for shift in [6, 3, 0] {
                            out.push(char::from(b'0' + (byte >> shift & 7)));
                        }
                    }
                }
            }
        }
    }
}

fn write_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 15)]));
    }
}

/// Reads 32 hexadecimal digits, a dash behind any four of them, braces around them.
pub(crate) fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    parse_uuid_bytes(text.as_bytes()).ok_or_else(|| SqlError::invalid_text("uuid", text))
}

fn parse_uuid_bytes(text: &[u8]) -> Option<[u8; 16]> {
    let mut rest = text;
    let braces = rest.first() == Some(&b'{');
    if braces {
        rest = &rest[1..];
    }
    let mut out = [0; 16];
    for (at, byte) in out.iter_mut().enumerate() {
        let [high, low, more @ ..] = rest else {
            return None;
        };
        *byte = hex_value(*high)? << 4 | hex_value(*low)?;
        rest = more;
        if at % 2 == 1
            && at < 15
            && let [b'-', more @ ..] = rest
        {
            rest = more;
        }
    }
    if braces {
        let [b'}', more @ ..] = rest else {
            return None;
        };
        rest = more;
    }
    rest.is_empty().then_some(out)
}

/// Appends the 36 characters of a uuid.
pub(crate) fn write_uuid(uuid: [u8; 16], out: &mut String) {
    for (at, pair) in uuid.chunks_exact(2).enumerate() {
        if (2..=5).contains(&at) {
            out.push('-');
        }
        write_hex(pair, out);
    }
}
