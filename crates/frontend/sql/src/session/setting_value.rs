//! What a setting may be: numbers in their ranges with their units, words of a list; and PostgreSQL's words for what it may not.

use super::known_settings::{self, Kind, shown_name};
use super::settings::{BYTES, PAGES, SECONDS, SIZES, TIMES};
use crate::error::{Fields, Result, SqlError};
use crate::sqlstate;

/// The text that a setting's value is kept as.
///
/// # Errors
/// `22023`.
pub(super) fn checked(name: &str, kind: Kind, value: &str) -> Result<String> {
    match kind {
        Kind::Text if name == "application_name" => Ok(program_name(value)),
        Kind::Text | Kind::Fixed => Ok(value.to_owned()),
        Kind::Bool => boolean(name, value).map(|on| switch(on).to_owned()),
        Kind::Only(as_it_is) => match boolean(name, value)? == as_it_is {
            true => Ok(switch(as_it_is).to_owned()),
            false => Err(SqlError::unsupported(format!(
                "parameter \"{name}\" that is {}",
                switch(!as_it_is)
            ))),
        },
        Kind::OneOf(words) => {
            let lower = value.to_lowercase();
            if words.contains(&&*lower) {
                return Ok(lower);
            }
            if let Some(word) = same_as(name, words, &lower) {
                return Ok(word.to_owned());
            }
            let hint = format!("Available values: {}.", words.join(", "));
            Err(invalid(name, value).with_hint(hint))
        }
        Kind::Integer(least, most) => number(name, value, &[], (least, most)),
        Kind::Milliseconds(least, most) => number(name, value, &TIMES, (least, most)),
        Kind::Seconds(least, most) => number(name, value, &SECONDS, (least, most)),
        Kind::Bytes(least, most) => number(name, value, &BYTES, (least, most)),
        Kind::Kilobytes(least, most) => number(name, value, &SIZES, (least, most)),
        Kind::Pages(least, most) => number(name, value, &PAGES, (least, most)),
        Kind::Real(least, most) => real(name, value, &[], (least, most)),
        Kind::RealMilliseconds(least, most) => real(name, value, &TIMES, (least, most)),
    }
}

fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// # Errors
/// `22023`.
fn boolean(name: &str, value: &str) -> Result<bool> {
    match value.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Ok(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Ok(false),
        _ => {
            let message = format!("parameter \"{name}\" requires a Boolean value");
            Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message))
        }
    }
}

/// A number with a point, of which six digits are kept.
fn real(
    name: &str,
    value: &str,
    units: &[(u64, &'static str)],
    (least, most): (f64, f64),
) -> Result<String> {
    let (number, base) = measured(name, value, units)?;
    if number < least || number > most {
        let message = format!(
            "{}{} is outside the valid range for parameter \"{name}\" ({} .. {})",
            six_digits(number),
            behind(base),
            six_digits(least),
            six_digits(most)
        );
        return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
    }
    Ok(six_digits(number))
}

/// A number as C's `%g` writes it: six digits, and a power of ten where that is shorter.
pub(super) fn six_digits(number: f64) -> String {
    let exact = format!("{number:.5e}");
    let Some((digits, exponent)) = exact.split_once('e') else {
        return exact;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let rounded: f64 = exact.parse().unwrap_or(number);
        return format!("{rounded}");
    }
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// The same of a setting that there is.
///
/// # Errors
/// `22023`.
pub(super) fn known(name: &str, value: &str) -> Result<String> {
    let known = known_settings::named(name);
    checked(name, known.map_or(Kind::Text, |known| known.kind), value)
}

/// What is kept of the name of a program: as much as of any name, and a question mark for every byte that is no printable ASCII.
fn program_name(name: &str) -> String {
    let readable = |byte| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '?',
    };
    crate::bind::cut(name).bytes().map(readable).collect()
}

/// What the client is told of a setting that is a name, and too long for one.
pub(super) fn cut_notice(name: &str, value: &str) -> Option<Fields> {
    let kept = crate::bind::cut(value);
    if !name.eq_ignore_ascii_case("application_name") || kept.len() == value.len() {
        return None;
    }
    let message = format!("identifier \"{value}\" will be truncated to \"{kept}\"");
    let mut notice = Fields::notice(message);
    notice.sqlstate = sqlstate::NAME_TOO_LONG;
    Some(notice)
}

/// What words say that PostgreSQL takes and does not tell of.
fn same_as(name: &str, words: &[&str], value: &str) -> Option<&'static str> {
    Some(match (name, value) {
        (_, "true" | "yes" | "1") if words.contains(&"on") => "on",
        (_, "false" | "no" | "0") if words.contains(&"off") => "off",
        (_, "debug") if words.contains(&"debug2") => "debug2",
        ("client_min_messages", "info") => "info",
        _ => return None,
    })
}

/// A number with one of the units, in the last of them, which comes with it.
fn measured(
    name: &str,
    value: &str,
    units: &[(u64, &'static str)],
) -> Result<(f64, Option<&'static str>)> {
    let text = value.trim();
    let base = units.last().map(|(_, base)| *base);
    let is_number = |(at, char): (usize, char)| {
        let exponent = || {
            let rest = text[at + 1..].trim_start_matches(['+', '-']);
            rest.starts_with(|char: char| char.is_ascii_digit())
        };
        char.is_ascii_digit()
            || matches!(char, '.' | '+' | '-')
            || matches!(char, 'e' | 'E') && at > 0 && exponent()
    };
    let mut places = text.char_indices();
    let end = places.find(|place| !is_number(*place));
    let (digits, unit) = text.split_at(end.map_or(text.len(), |(at, _)| at));
    let number: f64 = digits.parse().map_err(|_| invalid(name, value))?;
    let number = match (unit.trim(), base) {
        ("", _) => number,
        ("us", Some("ms")) | ("ms", Some("s")) => number / 1000.0,
        ("us", Some("s")) => number / 1_000_000.0,
        ("B", Some("kB")) => number / 1024.0,
        ("kB", Some("8kB")) => number / 8.0,
        ("B", Some("8kB")) => number / 8192.0,
        (unit, _) => match units.iter().find(|(_, known)| *known == unit) {
            Some((factor, _)) => number * *factor as f64,
            None => return Err(invalid(name, value).with_unit_hint(base)),
        },
    };
    Ok((number, base))
}

/// A unit behind a number.
fn behind(unit: Option<&str>) -> String {
    unit.map_or_else(String::new, |unit| format!(" {unit}"))
}

/// A whole number with one of the units, in the last of them.
fn number(
    name: &str,
    value: &str,
    units: &[(u64, &'static str)],
    (least, most): (i32, i32),
) -> Result<String> {
    let (number, base) = measured(name, value, units)?;
    let number = number.round();
    if number > f64::from(i32::MAX) || number < f64::from(i32::MIN) {
        return Err(invalid(name, value).with_hint("Value exceeds integer range."));
    }
    if number < f64::from(least) || number > f64::from(most) {
        let unit = behind(base);
        let message = format!(
            "{number}{unit} is outside the valid range for parameter \"{name}\" ({least} .. {most})"
        );
        return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message));
    }
    Ok(format!("{number}"))
}

impl SqlError {
    /// Says which units there are where numbers are kept in this one.
    fn with_unit_hint(self, base: Option<&str>) -> Self {
        match base {
            None => self,
            Some("kB" | "8kB" | "B") => self.with_hint(
                "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".",
            ),
            Some(_) => self.with_hint(
                "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".",
            ),
        }
    }
}

/// `22023`.
#[cold]
pub(super) fn invalid(name: &str, value: &str) -> SqlError {
    let name = shown_name(name);
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}
