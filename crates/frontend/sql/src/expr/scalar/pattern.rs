//! Functions of regular expressions, and SIMILAR TO.

use super::regular::{Flags, compiled, of_similar};
use super::{Arguments, Entry, invalid, strict};
use crate::error::{Result, SqlError};
use regex::{Captures, Match, Regex};
use std::ops::ControlFlow;
use std::rc::Rc;
use vellum_row::{Array, SqlState, Type, Value, check_length};

#[rustfmt::skip]
pub(super) static ENTRIES: &[Entry] = &[
    strict(2073, "substring", "text text", "text", substring),
    strict(2074, "substring", "text text text", "text", substring_similar),
    strict(0, "%similar", "text text", "bool", similar),
    strict(0, "%similar", "text text text", "bool", similar),
    strict(1986, "similar_to_escape", "text text", "text", similar_pattern),
    strict(1987, "similar_to_escape", "text", "text", similar_pattern),
    strict(1637, "like_escape", "text text", "text", like_pattern),
    strict(2284, "regexp_replace", "text text text", "text", replace),
    strict(2285, "regexp_replace", "text text text text", "text", replace),
    strict(6253, "regexp_replace", "text text text int4", "text", replace_at),
    strict(6252, "regexp_replace", "text text text int4 int4", "text", replace_at),
    strict(6251, "regexp_replace", "text text text int4 int4 text", "text", replace_at),
    strict(3396, "regexp_match", "text text", "_text", first_match),
    strict(3397, "regexp_match", "text text text", "_text", first_match),
    strict(6263, "regexp_like", "text text", "bool", like),
    strict(6264, "regexp_like", "text text text", "bool", like),
    strict(6254, "regexp_count", "text text", "int4", count),
    strict(6255, "regexp_count", "text text int4", "int4", count),
    strict(6256, "regexp_count", "text text int4 text", "int4", count),
    strict(6265, "regexp_substr", "text text", "text", substr),
    strict(6266, "regexp_substr", "text text int4", "text", substr),
    strict(6267, "regexp_substr", "text text int4 int4", "text", substr),
    strict(6268, "regexp_substr", "text text int4 int4 text", "text", substr),
    strict(6269, "regexp_substr", "text text int4 int4 text int4", "text", substr),
    strict(6257, "regexp_instr", "text text", "int4", instr),
    strict(6258, "regexp_instr", "text text int4", "int4", instr),
    strict(6259, "regexp_instr", "text text int4 int4", "int4", instr),
    strict(6260, "regexp_instr", "text text int4 int4 int4", "int4", instr),
    strict(6261, "regexp_instr", "text text int4 int4 int4 text", "int4", instr),
    strict(6262, "regexp_instr", "text text int4 int4 int4 text int4", "int4", instr),
    strict(2767, "regexp_split_to_array", "text text", "_text", split),
    strict(2768, "regexp_split_to_array", "text text text", "_text", split),
];

fn regex(a: &Arguments<'_>, flags: Flags) -> Result<Rc<Regex>> {
    compiled(a.text(1), flags)
}

fn flags(a: &Arguments<'_>, number: usize) -> Result<Flags> {
    if a.len() > number {
        Flags::of(a.text(number))
    } else {
        Ok(Flags::default())
    }
}

/// Flags of a function that says itself how often it looks.
fn single(a: &Arguments<'_>, number: usize, name: &str) -> Result<Flags> {
    let flags = flags(a, number)?;
    if flags.global {
        let message = format!("{name}() does not support the \"global\" option");
        return Err(invalid(message));
    }
    Ok(flags)
}

/// What the first group found, or all where there is none.
fn substring(a: &Arguments<'_>) -> Result<Value> {
    let regex = regex(a, Flags::default())?;
    let Some(found) = regex.captures(a.text(0)) else {
        return Ok(Value::Null);
    };
    let part = if regex.captures_len() > 1 {
        found.get(1)
    } else {
        found.get(0)
    };
    Ok(part.map_or(Value::Null, |part| Value::text(part.as_str())))
}

fn substring_similar(a: &Arguments<'_>) -> Result<Value> {
    let pattern = of_similar(a.text(1), Some(a.text(2)))?;
    let found = compiled(&pattern, Flags::default())?;
    let found = found.captures(a.text(0));
    let part = found.and_then(|found| found.get(1).or(found.get(0)));
    Ok(part.map_or(Value::Null, |part| Value::text(part.as_str())))
}

fn similar(a: &Arguments<'_>) -> Result<Value> {
    let escape = (a.len() > 2).then(|| a.text(2));
    let pattern = of_similar(a.text(1), escape)?;
    let regex = compiled(&pattern, Flags::default())?;
    Ok(Value::Bool(regex.is_match(a.text(0))))
}

/// What a pattern of SIMILAR TO is as a regular expression: definitions are shown with it.
fn similar_pattern(a: &Arguments<'_>) -> Result<Value> {
    let escape = (a.len() > 1).then(|| a.text(1));
    Ok(Value::text(of_similar(a.text(0), escape)?))
}

/// What a pattern of LIKE with an escape is with a backslash.
///
/// # Errors
/// `22025` for an escape that is longer than a letter.
fn like_pattern(a: &Arguments<'_>) -> Result<Value> {
    let mut letters = a.text(1).chars();
    let escape = letters.next();
    if letters.next().is_some() {
        let error = SqlError::new(SqlState::of("22025"), "invalid escape string");
        return Err(error.with_hint("Escape string must be empty or one character."));
    }
    let mut out = String::with_capacity(a.text(0).len());
    let mut escaped = false;
    for letter in a.text(0).chars() {
        match letter {
            _ if escaped => {
                out.push(letter);
                escaped = false;
            }
            // One backslash is an escape already.
            '\\' if escape == Some('\\') => {
                out.push(letter);
                escaped = true;
            }
            _ if Some(letter) == escape => {
                out.push('\\');
                escaped = true;
            }
            '\\' => out.push_str("\\\\"),
            _ => out.push(letter),
        }
    }
    Ok(Value::text(out))
}

/// Appends a replacement: `\1` … `\9` and `\&` are what was found.
///
/// # Errors
/// `54000` if that gets too long.
fn expand(found: &Captures<'_>, new: &str, out: &mut String) -> Result<()> {
    let push = |out: &mut String, part: &str| {
        out.push_str(part);
        check_length(out.len())
    };
    let mut chars = new.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('&') => push(out, &found[0])?,
            Some(digit) if digit.is_ascii_digit() && digit != '0' => {
                let number = digit.to_digit(10).unwrap_or(0) as usize;
                push(out, found.get(number).map_or("", |part| part.as_str()))?;
            }
            Some('\\') => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    Ok(check_length(out.len())?)
}

/// Calls `each` with what is found from a byte on, until it says that it has enough. What stands before is seen: `^` is the text's beginning, not the byte.
///
/// # Errors
/// Those of `each` and of `look`, which is asked at every place: a long text has many.
fn each_found<'t>(
    look: &dyn Fn() -> Result<()>,
    regex: &Regex,
    text: &'t str,
    from: usize,
    each: &mut dyn FnMut(&Captures<'t>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut next = Some(from);
    while let Some(from) = next {
        let Some(found) = regex.captures_at(text, from) else {
            break;
        };
        let end = found.get(0).map_or(text.len(), |all| all.end());
        next = if found.get_match().is_empty() {
            let behind = text[end..].chars().next();
            behind.map(|char| end + char.len_utf8())
        } else {
            Some(end)
        };
        look()?;
        if each(&found)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// What is found at place `number`, from 1, behind a byte.
fn found_at<'t>(
    a: &Arguments<'_>,
    regex: &Regex,
    text: &'t str,
    from: Option<usize>,
    number: usize,
    part: usize,
) -> Result<Option<Match<'t>>> {
    let (mut left, mut place) = (number, None);
    if let Some(from) = from {
        each_found(&|| a.env.look(), regex, text, from, &mut |found| {
            left -= 1;
            if left > 0 {
                return Ok(ControlFlow::Continue(()));
            }
            place = found.get(part);
            Ok(ControlFlow::Break(()))
        })?;
    }
    Ok(place)
}

/// Replaces match `number` behind byte `from`; all of them if it is 0.
///
/// # Errors
/// `54000` if that gets too long.
fn replaced(a: &Arguments<'_>, regex: &Regex, from: usize, number: usize) -> Result<String> {
    let (text, new) = (a.text(0), a.text(2));
    let mut out = String::from(&text[..from]);
    let (mut done, mut count) = (from, 0);
    each_found(&|| a.env.look(), regex, text, from, &mut |found| {
        count += 1;
        if number > 0 && count < number {
            return Ok(ControlFlow::Continue(()));
        }
        let all = found.get_match();
        out.push_str(&text[done..all.start()]);
        expand(found, new, &mut out)?;
        done = all.end();
        Ok(match number {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        })
    })?;
    out.push_str(&text[done..]);
    check_length(out.len())?;
    Ok(out)
}

fn replace(a: &Arguments<'_>) -> Result<Value> {
    let options = a.text(3);
    if options.starts_with(|first: char| first.is_ascii_digit()) {
        let first = options.chars().next().unwrap_or_default();
        let message = format!("invalid regular expression option: \"{first}\"");
        let hint = "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.";
        return Err(invalid(message).with_hint(hint));
    }
    let flags = flags(a, 3)?;
    let regex = regex(a, flags)?;
    let text = replaced(a, &regex, 0, usize::from(!flags.global))?;
    Ok(Value::text(text))
}

/// A number that counts from 1, or from what is least.
fn counted(a: &Arguments<'_>, number: usize, name: &str, least: i32) -> Result<usize> {
    if a.len() <= number {
        return Ok(1);
    }
    let value = a.int(number);
    if value < least {
        return Err(invalid(format!(
            "invalid value for parameter \"{name}\": {value}"
        )));
    }
    Ok(usize::try_from(value).unwrap_or(0))
}

/// The byte at which a character stands, by its number from 1; the end of the text is behind the last, and behind that there is nothing.
fn byte_of(text: &str, character: usize) -> Option<usize> {
    let starts = text.char_indices().map(|(at, _)| at);
    starts.chain([text.len()]).nth(character - 1)
}

fn replace_at(a: &Arguments<'_>) -> Result<Value> {
    let from = byte_of(a.text(0), counted(a, 3, "start", 1)?);
    let number = counted(a, 4, "n", 0)?;
    let flags = flags(a, 5)?;
    // Without a number, as many as the options say.
    let number = if a.len() > 4 {
        number
    } else {
        usize::from(!flags.global)
    };
    let regex = regex(a, flags)?;
    let Some(from) = from else {
        return Ok(Value::text(a.text(0)));
    };
    let text = replaced(a, &regex, from, number)?;
    Ok(Value::text(text))
}

/// What groups found, or all where there are none.
///
/// # Errors
/// `54000` if that is too long: groups stand in groups.
pub(super) fn groups(regex: &Regex, found: &Captures<'_>) -> Result<Value> {
    let groups = match regex.captures_len() {
        1 => 0..1,
        count => 1..count,
    };
    let bytes = groups.clone().filter_map(|number| found.get(number));
    check_length(bytes.map(|part| part.len()).sum())?;
    let part = |number| {
        let part = found.get(number);
        part.map_or(Value::Null, |part| Value::text(part.as_str()))
    };
    let parts: Vec<Value> = groups.map(part).collect();
    Ok(Value::Array(Array::list(Type::Text, &parts)?))
}

fn first_match(a: &Arguments<'_>) -> Result<Value> {
    let flags = flags(a, 2)?;
    if flags.global {
        let text = "regexp_match() does not support the \"global\" option";
        return Err(invalid(text).with_hint("Use the regexp_matches function instead."));
    }
    let regex = regex(a, flags)?;
    let found = regex.captures(a.text(0));
    found.map_or(Ok(Value::Null), |found| groups(&regex, &found))
}

fn like(a: &Arguments<'_>) -> Result<Value> {
    let flags = single(a, 2, "regexp_like")?;
    Ok(Value::Bool(regex(a, flags)?.is_match(a.text(0))))
}

fn count(a: &Arguments<'_>) -> Result<Value> {
    let from = byte_of(a.text(0), counted(a, 2, "start", 1)?);
    let flags = single(a, 3, "regexp_count")?;
    let regex = regex(a, flags)?;
    let mut count = 0i32;
    if let Some(from) = from {
        each_found(&|| a.env.look(), &regex, a.text(0), from, &mut |_| {
            count = count.saturating_add(1);
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(Value::Int4(count))
}

fn substr(a: &Arguments<'_>) -> Result<Value> {
    let from = byte_of(a.text(0), counted(a, 2, "start", 1)?);
    let number = counted(a, 3, "n", 1)?;
    let flags = single(a, 4, "regexp_substr")?;
    let part = if a.len() > 5 {
        counted(a, 5, "subexpr", 0)?
    } else {
        0
    };
    let regex = regex(a, flags)?;
    let part = found_at(a, &regex, a.text(0), from, number, part)?;
    Ok(part.map_or(Value::Null, |part| Value::text(part.as_str())))
}

fn instr(a: &Arguments<'_>) -> Result<Value> {
    let text = a.text(0);
    let from = byte_of(text, counted(a, 2, "start", 1)?);
    let number = counted(a, 3, "n", 1)?;
    let end = if a.len() > 4 { a.int(4) } else { 0 };
    if !(0..=1).contains(&end) {
        return Err(invalid(format!(
            "invalid value for parameter \"endoption\": {end}"
        )));
    }
    let flags = single(a, 5, "regexp_instr")?;
    let part = if a.len() > 6 {
        counted(a, 6, "subexpr", 0)?
    } else {
        0
    };
    let regex = regex(a, flags)?;
    let part = found_at(a, &regex, text, from, number, part)?;
    Ok(Value::Int4(part.map_or(0, |part| {
        let at = if end == 1 { part.end() } else { part.start() };
        text[..at].chars().count() as i32 + 1
    })))
}

/// The parts of a text between what a pattern finds; nothing that is empty splits at either end.
fn split_texts(text: &str, regex: &Regex, each: &mut dyn FnMut(Value) -> Result<()>) -> Result<()> {
    let mut done = 0;
    for found in regex.find_iter(text) {
        if found.is_empty() && (found.start() == done || found.end() == text.len()) {
            continue;
        }
        each(Value::text(&text[done..found.start()]))?;
        done = found.end();
    }
    each(Value::text(&text[done..]))
}

fn split(a: &Arguments<'_>) -> Result<Value> {
    let flags = single(a, 2, "regexp_split_to_array")?;
    let regex = regex(a, flags)?;
    let mut parts = Vec::new();
    split_texts(a.text(0), &regex, &mut |part| {
        parts.push(part);
        Ok(vellum_row::array::check_count(parts.len())?)
    })?;
    Ok(Value::Array(Array::list(Type::Text, &parts)?))
}

/// The rows of `regexp_matches`.
pub(in crate::expr) fn all_matches(
    text: &str,
    pattern: &str,
    flags: &str,
    each: &mut dyn FnMut(Value) -> Result<()>,
) -> Result<()> {
    let flags = Flags::of(flags)?;
    let regex = compiled(pattern, flags)?;
    // Every row is kept, which is asked for.
    each_found(&|| Ok(()), &regex, text, 0, &mut |found| {
        each(groups(&regex, found)?)?;
        Ok(match flags.global {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })
}

/// The rows of `regexp_split_to_table`.
pub(in crate::expr) fn split_rows(
    text: &str,
    pattern: &str,
    flags: &str,
    each: &mut dyn FnMut(Value) -> Result<()>,
) -> Result<()> {
    let regex = compiled(pattern, Flags::of(flags)?)?;
    split_texts(text, &regex, each)
}
