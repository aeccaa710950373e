//! Addresses as text.
//!
//! Source: PostgreSQL's `inet_net_pton` and `inet_net_ntop`, and their forms for `cidr`, with what they take beside the plain forms: `10` and
//! `0x0a` for a network of IPv4, parts of an address before a prefix, an address of IPv4 at the end of one of IPv6.

use super::Inet;
use crate::error::{Result, SqlError, SqlState};
use std::fmt::Write;

/// Reads an `inet`.
///
/// # Errors
/// 22P02.
pub(crate) fn parse_inet(text: &str) -> Result<Inet> {
    let bytes = text.as_bytes();
    let read = if text.contains(':') {
        address_v6(bytes)
    } else {
        host_v4(bytes)
    };
    read.ok_or_else(|| SqlError::invalid_text("inet", text))
}

/// Reads a `cidr`.
///
/// # Errors
/// 22P02, also for bits behind the prefix.
pub(crate) fn parse_cidr(text: &str) -> Result<Inet> {
    let bytes = text.as_bytes();
    let read = if text.contains(':') {
        address_v6(bytes)
    } else {
        network_v4(bytes)
    };
    let read = read.ok_or_else(|| SqlError::invalid_text("cidr", text))?;
    if !read.is_network() {
        let message = format!("invalid cidr value: \"{text}\"");
        return Err(SqlError::new(SqlState::INVALID_TEXT, message)
            .with_detail("Value has bits set to right of mask."));
    }
    Ok(read)
}

/// Takes the decimal number at the front, of at least one digit; none if it is above `limit`.
fn decimal(rest: &mut &[u8], limit: u32) -> Option<u8> {
    let (first, _) = rest.split_first()?;
    if !first.is_ascii_digit() {
        return None;
    }
    let mut value = 0;
    while let [digit @ b'0'..=b'9', more @ ..] = rest {
        value = value * 10 + u32::from(digit - b'0');
        if value > limit {
            return None;
        }
        *rest = more;
    }
    u8::try_from(value).ok()
}

/// The length of a prefix behind a slash, if one stands there; nothing else may.
fn prefix_v4(rest: &[u8]) -> Option<Option<u8>> {
    match rest {
        [] => Some(None),
        [b'/', rest @ ..] => {
            let mut rest = rest;
            let bits = decimal(&mut rest, 32)?;
            rest.is_empty().then_some(Some(bits))
        }
        _ => None,
    }
}

/// An address of IPv4: four numbers, or as many as the prefix is long.
fn host_v4(text: &[u8]) -> Option<Inet> {
    let mut rest = text;
    let mut octets = Vec::with_capacity(4);
    // A dot behind the last number is none too many.
    while rest.first().is_some_and(u8::is_ascii_digit) {
        octets.push(decimal(&mut rest, 255)?);
        match rest {
            [b'.', more @ ..] => rest = more,
            _ => break,
        }
    }
    let bits = match prefix_v4(rest)? {
        Some(bits) => bits,
        None if octets.len() == 4 => 32,
        None => return None,
    };
    if octets.is_empty() || octets.len() > 4 || usize::from(bits / 8) > octets.len() {
        return None;
    }
    octets.resize(4, 0);
    Inet::new(&octets, bits)
}

/// A network of IPv4: numbers of octets, or hexadecimal digits; what is left out is zero, and the prefix without one is that of
/// the network's class or as long as what was written.
fn network_v4(text: &[u8]) -> Option<Inet> {
    let mut rest = text;
    let mut octets = Vec::with_capacity(4);
    if let [b'0', b'x' | b'X', digit, ..] = rest
        && digit.is_ascii_hexdigit()
    {
        rest = &rest[2..];
        let count = rest.iter().take_while(|c| c.is_ascii_hexdigit()).count();
        let (digits, behind) = rest.split_at(count);
        for pair in digits.chunks(2) {
            let digit = |at: usize| pair.get(at).and_then(|c| char::from(*c).to_digit(16));
            octets.push((digit(0)? << 4 | digit(1).unwrap_or(0)) as u8);
        }
        rest = behind;
    } else {
        loop {
            octets.push(decimal(&mut rest, 255)?);
            match rest {
                [b'.', more @ ..] => rest = more,
                _ => break,
            }
        }
    }
    let written = octets.len();
    if written > 4 {
        return None;
    }
    let bits = prefix_v4(rest)?.unwrap_or_else(|| {
        let class = match octets[0] {
            240.. => 32,
            224.. => 8,
            192.. => 24,
            128.. => 16,
            _ => 8,
        };
        match class.max(written as u8 * 8) {
            8 if octets[0] == 224 => 4,
            bits => bits,
        }
    });
    octets.resize(4, 0);
    Inet::new(&octets, bits)
}

/// The length of a prefix of IPv6, which is all the text: no zeros in front.
fn prefix_v6(text: &[u8]) -> Option<u8> {
    if let [b'0', _, ..] = text {
        return None;
    }
    let mut rest = text;
    let bits = decimal(&mut rest, 128)?;
    rest.is_empty().then_some(bits)
}

/// An address of IPv4 behind one of IPv6, and the prefix behind it: numbers without zeros in front, which may be left out before a dot or a slash.
fn tail_v4(text: &[u8]) -> Option<([u8; 4], Option<u8>)> {
    let mut rest = text;
    let mut octets = [0; 4];
    let mut count = 0;
    loop {
        if let [b'0', b'0'..=b'9', ..] = rest {
            return None;
        }
        let value = match rest.first() {
            None => return None,
            Some(b'0'..=b'9') => decimal(&mut rest, 255)?,
            Some(_) => 0,
        };
        *octets.get_mut(count)? = value;
        count += 1;
        match rest {
            [] => return Some((octets, None)),
            [b'.', more @ ..] => rest = more,
            [b'/', more @ ..] => return Some((octets, Some(prefix_v6(more)?))),
            _ => return None,
        }
    }
}

fn address_v6(text: &[u8]) -> Option<Inet> {
    let mut rest = match text {
        [b':', rest @ ..] if rest.first() == Some(&b':') => rest,
        [b':', ..] => return None,
        text => text,
    };
    let mut made: Vec<u8> = Vec::with_capacity(16);
    // Where `::` stands, and the part that is being read.
    let mut gap = None;
    let mut part = rest;
    let (mut value, mut digits) = (0u32, 0);
    let mut bits = None;
    while let [c, more @ ..] = rest {
        rest = more;
        if let Some(digit) = char::from(*c).to_digit(16) {
            value = value << 4 | digit;
            digits += 1;
            if digits > 4 {
                return None;
            }
            continue;
        }
        match c {
            b':' => {
                part = rest;
                if digits == 0 {
                    if gap.replace(made.len()).is_some() {
                        return None;
                    }
                    continue;
                }
                if rest.is_empty() || made.len() > 14 {
                    return None;
                }
                made.extend_from_slice(&(value as u16).to_be_bytes());
                (value, digits) = (0, 0);
            }
            b'.' if made.len() <= 12 => {
                let (octets, prefix) = tail_v4(part)?;
                made.extend_from_slice(&octets);
                (digits, bits) = (0, prefix);
                break;
            }
            b'/' => {
                bits = Some(prefix_v6(rest)?);
                break;
            }
            _ => return None,
        }
    }
    if digits > 0 {
        if made.len() > 14 {
            return None;
        }
        made.extend_from_slice(&(value as u16).to_be_bytes());
    }
    if let Some(gap) = gap {
        let missing = 16 - made.len();
        if missing == 0 {
            return None;
        }
        made.splice(gap..gap, std::iter::repeat_n(0, missing));
    }
    Inet::new(&made, bits.unwrap_or(128)).filter(|made| made.is_v6())
}

/// Appends the address, without its prefix.
pub(super) fn write_host(value: Inet, out: &mut String) {
    let bytes = value.bytes();
    if !value.is_v6() {
        write_octets(bytes, out);
        return;
    }
    let words: Vec<u16> = bytes
        .chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    let (base, length) = longest_zeros(&words);
    for (at, word) in words.iter().enumerate() {
        if length > 1 && (base..base + length).contains(&at) {
            if at == base {
                out.push(':');
            }
            continue;
        }
        if at > 0 {
            out.push(':');
        }
        let mapped = length == 6 || length == 5 && words[5] == 0xffff;
        if at == 6 && base == 0 && mapped {
            write_octets(&bytes[12..], out);
            return;
        }
        // Writing to a string does not fail.
        let _ = write!(out, "{word:x}");
    }
    if length > 1 && base + length == words.len() {
        out.push(':');
    }
}

/// The first of the longest runs of zeros: where it begins, and how long it is.
fn longest_zeros(words: &[u16]) -> (usize, usize) {
    let (mut best, mut own) = ((0, 0), (0, 0));
    for (at, word) in words.iter().enumerate() {
        own = match word {
            0 if own.1 > 0 => (own.0, own.1 + 1),
            0 => (at, 1),
            _ => (0, 0),
        };
        if own.1 > best.1 {
            best = own;
        }
    }
    best
}

pub(super) fn write_octets(octets: &[u8], out: &mut String) {
    for (at, octet) in octets.iter().enumerate() {
        if at > 0 {
            out.push('.');
        }
        let _ = write!(out, "{octet}");
    }
}

/// Appends an `inet`: the prefix where it is not the whole address.
pub(crate) fn write_inet(value: Inet, out: &mut String) {
    write_host(value, out);
    if value.bits() < value.bits_max() {
        write_prefix(value, out);
    }
}

/// Appends a `cidr`, or any address as a cast to text writes it: always with its prefix.
pub(crate) fn write_whole(value: Inet, out: &mut String) {
    write_host(value, out);
    write_prefix(value, out);
}

pub(super) fn write_prefix(value: Inet, out: &mut String) {
    let _ = write!(out, "/{}", value.bits());
}
