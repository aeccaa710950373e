//! Regular expressions of PostgreSQL's advanced form, by a library that takes linear time.
//!
//! Differences: no back references and no looking around, which take more than that (`2201B`); of alternatives the first that fits is taken, not the longest.

use super::translate::{refused, translated};
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
                letter if flags.set(letter) => {}
                other => {
                    return Err(invalid(format!(
                        "invalid regular expression option: \"{other}\""
                    )));
                }
            }
        }
        Ok(flags)
    }

    /// Sets what a letter stands for that may stand in a pattern, too; whether there is such a one.
    pub(super) fn set(&mut self, letter: char) -> bool {
        match letter {
            'i' => self.fold = true,
            'c' => self.fold = false,
            'n' | 'm' => (self.lines, self.anchors) = (true, true),
            'p' => (self.lines, self.anchors) = (true, false),
            'w' => (self.lines, self.anchors) = (false, true),
            's' => (self.lines, self.anchors) = (false, false),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'b' | 'e' => {}
            _ => return false,
        }
        true
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
        let (own, read) = translated(pattern, flags)?;
        let regex = RegexBuilder::new(&own)
            .case_insensitive(read.fold)
            .dot_matches_new_line(!read.lines)
            .multi_line(read.anchors)
            .build()
            .map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default();
                refused(reason.trim_start_matches("error: "))
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

/// A pattern of SIMILAR TO as a regular one, for the whole text. Between two `escape"` stands what `substring` takes; what is in front of it takes as
/// little as it can.
///
/// # Errors
/// `22019` for an escape that is none, `2200C` for more than two of these.
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
                Some(next) => {
                    out.push('\\');
                    out.push(next);
                }
                // Nothing is behind it.
                None => {}
            }
            continue;
        }
        match char {
            ']' if class => {
                class = false;
                out.push(char);
            }
            '\\' if class => out.push_str(r"\\"),
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
    Ok(out)
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
