//! Regular expressions of PostgreSQL's advanced form, by a library that takes linear time.
//!
//! Differences: no back references and no looking around, which take more than that (`2201B`); of alternatives the first that fits is taken, not the longest.

use super::{fault, invalid};
use crate::error::Result;
use regex::{Regex, RegexBuilder};
use std::cell::RefCell;
use std::rc::Rc;

/// How a pattern is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::expr) struct Flags {
    /// Letters in either case.
    pub fold: bool,
    /// `.` and `[^…]` stop at the end of a line.
    pub lines: bool,
    /// `^` and `$` are the ends of lines.
    pub anchors: bool,
    /// Blanks and comments in the pattern count for nothing.
    pub expanded: bool,
    /// The pattern is text.
    pub literal: bool,
    /// All places, not the first only.
    pub global: bool,
}

impl Flags {
    /// By their letters.
    ///
    /// # Errors
    /// `22023` for one that is none.
    pub fn of(text: &str) -> Result<Self> {
        let mut flags = Self::default();
        for letter in text.chars() {
            match letter {
                'g' => flags.global = true,
                'i' => flags.fold = true,
                'c' => flags.fold = false,
                'n' | 'm' => (flags.lines, flags.anchors) = (true, true),
                'p' => (flags.lines, flags.anchors) = (true, false),
                'w' => (flags.lines, flags.anchors) = (false, true),
                's' => (flags.lines, flags.anchors) = (false, false),
                'x' => flags.expanded = true,
                't' => flags.expanded = false,
                'q' => flags.literal = true,
                'b' | 'e' => {}
                other => {
                    return Err(invalid(format!(
                        "invalid regular expression option: \"{other}\""
                    )));
                }
            }
        }
        Ok(flags)
    }
}

thread_local! {
    /// The patterns that were used last: a query looks at many rows with one.
    static PATTERNS: RefCell<Vec<(String, Flags, Rc<Regex>)>> = const { RefCell::new(Vec::new()) };
}

const PATTERNS_MAX: usize = 8;

/// The pattern as the library reads it.
///
/// # Errors
/// `2201B` for what it does not.
pub(in crate::expr) fn compiled(pattern: &str, flags: Flags) -> Result<Rc<Regex>> {
    let flags = Flags {
        global: false,
        ..flags
    };
    PATTERNS.with_borrow_mut(|known| {
        let at = known
            .iter()
            .position(|(own, own_flags, _)| own == pattern && *own_flags == flags);
        if let Some(at) = at {
            return Ok(known[at].2.clone());
        }
        let own = if flags.literal {
            regex::escape(pattern)
        } else {
            translated(pattern)
        };
        let regex = RegexBuilder::new(&own)
            .case_insensitive(flags.fold)
            .dot_matches_new_line(!flags.lines)
            .multi_line(flags.anchors)
            .ignore_whitespace(flags.expanded)
            .build()
            .map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default();
                let reason = as_said(reason.trim_start_matches("error: "));
                fault("2201B", format!("invalid regular expression: {reason}"))
            })?;
        // A copy of its own would have caches of its own, which take longer to make than a row to be looked at.
        let regex = Rc::new(regex);
        if known.len() >= PATTERNS_MAX {
            known.remove(0);
        }
        known.push((pattern.to_owned(), flags, regex.clone()));
        Ok(regex)
    })
}

/// PostgreSQL's escapes for the borders of words, as the library writes them.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern
        .strip_prefix("***:")
        .unwrap_or(pattern)
        .chars()
        .peekable();
    // Inside brackets: nothing but `[` after the first member stands for itself.
    let mut class = false;
    // Between braces that say how often.
    let mut counts = false;
    while let Some(char) = chars.next() {
        match char {
            '[' if !class => {
                class = true;
                out.push('[');
                for first in ['^', ']'] {
                    if chars.next_if_eq(&first).is_some() {
                        out.push_str(if first == ']' { r"\]" } else { "^" });
                    }
                }
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str(r"\["),
            ']' => {
                out.push_str(if class { "]" } else { r"\]" });
                class = false;
            }
            // No number of times: it stands for itself.
            '{' if !class && !chars.peek().is_some_and(char::is_ascii_digit) => {
                out.push_str(r"\{");
            }
            '}' if !class && !counts => out.push_str(r"\}"),
            '}' if !class => {
                counts = false;
                out.push('}');
            }
            '{' if !class => {
                counts = true;
                out.push('{');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(char);
            }
            '\\' => match chars.next() {
                Some('y') if !class => out.push_str(r"\b"),
                Some('Y') if !class => out.push_str(r"\B"),
                Some('m') if !class => out.push_str(r"\b{start}"),
                Some('M') if !class => out.push_str(r"\b{end}"),
                Some('Z') if !class => out.push_str(r"\z"),
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

/// Whether a pattern is somewhere in a text.
///
/// # Errors
/// As [`compiled`].
pub(in crate::expr) fn matches(text: &str, pattern: &str, fold: bool) -> Result<bool> {
    let flags = Flags {
        fold,
        ..Flags::default()
    };
    Ok(compiled(pattern, flags)?.is_match(text))
}

/// A pattern of SIMILAR TO as a regular one, for the whole text. Between two `escape"` stands what `substring` takes.
///
/// # Errors
/// `22025` for an escape that is none.
pub(super) fn of_similar(pattern: &str, escape: Option<&str>) -> Result<String> {
    let mut letters = escape.unwrap_or("\\").chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err(fault("22019", "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut out = String::from("^(?:");
    let mut quotes = 0;
    let mut chars = pattern.chars();
    let mut class = false;
    while let Some(char) = chars.next() {
        if Some(char) == escape {
            match chars.next() {
                Some('"') if !class => {
                    quotes += 1;
                    match quotes {
                        1 => out.push_str("){1,1}?("),
                        2 => out.push_str("){1,1}(?:"),
                        _ => {
                            let text = "SQL regular expression may not contain more than two escape-double-quote separators";
                            return Err(fault("2200C", text));
                        }
                    }
                }
                // A sign behind a backslash is itself, but for those of the beginnings and ends of words.
                Some(next)
                    if next.is_alphanumeric()
                        || next.is_ascii_punctuation() && !matches!(next, '<' | '>') =>
                {
                    out.push('\\');
                    out.push(next);
                }
                Some(next) => {
                    out.push_str(&regex::escape(&next.to_string()));
                }
                None => return Err(fault("22025", "invalid escape sequence")),
            }
            continue;
        }
        match char {
            ']' if class => {
                class = false;
                out.push(char);
            }
            char if class => out.push(char),
            '[' => {
                class = true;
                out.push(char);
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                out.push('\\');
                out.push(char);
            }
            char => out.push(char),
        }
    }
    out.push_str(")$");
    Ok(out.replace("){1,1}?(", ")(").replace("){1,1}(?:", ")(?:"))
}

/// What PostgreSQL says of the same.
fn as_said(reason: &str) -> &str {
    match reason {
        "unclosed group" | "unopened group" => "parentheses () not balanced",
        "unclosed character class" => "brackets [] not balanced",
        "repetition operator missing expression" => "quantifier operand invalid",
        "unclosed counted repetition" => "braces {} not balanced",
        "invalid repetition count range, the start must be <= the end" => {
            "invalid repetition count(s)"
        }
        "invalid character class range, the start must be <= the end" => "invalid character range",
        "incomplete escape sequence, reached end of pattern prematurely" => {
            "invalid escape \\ sequence"
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_postgresql() {
        for (text, pattern, fold, found) in [
            ("pg_class", "^(pg_class)$", false, true),
            ("pg_class", "^pg_toast", false, false),
            ("a\nb", "a.b", false, true),
            ("ABC", "b", true, true),
            ("a word", r"\mword\M", false, true),
            ("swords", r"\yword\y", false, false),
            ("a]", "[]]", false, true),
            ("[", "[[]", false, true),
            ("a&&b", "[&&]", false, true),
            ("a1", "^[[:alpha:]][[:digit:]]$", false, true),
        ] {
            assert_eq!(matches(text, pattern, fold).unwrap(), found, "{pattern}");
        }
        assert_eq!(
            matches("", "(", false).unwrap_err().sqlstate().as_str(),
            "2201B"
        );
    }
}
