//! Bytes as text and back.

use std::io::{self, Write};

/// Writes bytes as escaped text, in which there is no tab and no line end.
pub fn write_text(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    write!(out, "{}", bytes.escape_ascii())
}

/// Writes bytes in hexadecimal.
pub fn write_hex(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Reads escaped text; bytes that are not escaped stand for themselves.
pub fn parse_text(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let (kind, tail) = rest.split_first()?;
        rest = tail;
        bytes.push(match kind {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'0' => 0,
            b'\\' | b'\'' | b'"' => *kind,
            b'x' => {
                let (digits, tail) = rest.split_at_checked(2)?;
                rest = tail;
                parse_hex(std::str::from_utf8(digits).ok()?)?[0]
            }
            _ => return None,
        });
    }
    Some(bytes)
}

/// Reads hexadecimal.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() {
        pairs.collect()
    } else {
        None
    }
}

/// The first key behind all that start with `prefix`; `None` if there is none.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_back_as_it_was_written() {
        let all: Vec<u8> = (0..=255).collect();
        let (mut text, mut hex) = (Vec::new(), Vec::new());
        write_text(&mut text, &all).unwrap();
        write_hex(&mut hex, &all).unwrap();
        assert!(!text.contains(&b'\n') && !text.contains(&b'\t'));
        assert_eq!(
            parse_text(std::str::from_utf8(&text).unwrap()),
            Some(all.clone())
        );
        assert_eq!(parse_hex(std::str::from_utf8(&hex).unwrap()), Some(all));
    }

    #[test]
    fn what_is_no_escape_is_refused() {
        for text in ["\\", "\\q", "\\x1", "\\xzz", "\\x\u{e9}"] {
            assert_eq!(parse_text(text), None, "{text}");
        }
        for text in ["0", "0g", "\u{e9}\u{e9}"] {
            assert_eq!(parse_hex(text), None, "{text}");
        }
        assert_eq!(
            parse_text("gr\u{fc}n"),
            Some("gr\u{fc}n".as_bytes().to_vec())
        );
    }

    #[test]
    fn prefix_ends_where_no_key_has_it_any_more() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(&[1, 255]), Some(vec![2]));
        assert_eq!(prefix_end(&[255]), None);
        assert_eq!(prefix_end(b""), None);
    }
}
