//! A value as a cell of a table shows it: lines, in which characters that move a cursor are spelled out, as psql does.
//!
//! Not here: where the cells stand (tables.rs). How wide a character is is Unicode's answer (UAX #11), in which joined ones are the sum of their parts.

use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

/// Columns of a tab.
const TAB: usize = 8;

/// A line of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line<'t> {
    pub text: Cow<'t, str>,
    /// In columns of a terminal.
    pub width: usize,
}

/// The lines of a value; one, at least.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.split('\n').map(Line::of)
}

/// Columns of the widest line.
pub fn width(text: &str) -> usize {
    lines(text).map(|line| line.width).max().unwrap_or(0)
}

impl<'t> Line<'t> {
    /// What is shown of a text without ends of lines.
    fn of(text: &'t str) -> Self {
        let mut width = 0;
        let mut made: Option<String> = None;
        for (at, char) in text.char_indices() {
            let spelled = match char {
                '\r' => "\\r".to_owned(),
                '\t' => " ".repeat(TAB - width % TAB),
                char if char.is_ascii_control() => format!("\\x{:02X}", u32::from(char)),
                char if char.is_control() => format!("\\u{:04X}", u32::from(char)),
                char => {
                    width += char.width().unwrap_or(0);
                    if let Some(made) = &mut made {
                        made.push(char);
                    }
                    continue;
                }
            };
            width += spelled.len();
            made.get_or_insert_with(|| text[..at].to_owned())
                .push_str(&spelled);
        }
        Self {
            text: made.map_or(Cow::Borrowed(text), Cow::Owned),
            width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_is_spelled_out() {
        for (text, shown, columns) in [
            ("", "", 0),
            ("abc", "abc", 3),
            ("a\tb", "a       b", 9),
            ("12345678\t", "12345678        ", 16),
            ("日\t|", "日      |", 9),
            ("a\rb", "a\\rb", 4),
            ("\u{1}\u{1b}[2J\u{7f}", "\\x01\\x1B[2J\\x7F", 15),
            ("\u{85}", "\\u0085", 6),
            ("e\u{301}", "e\u{301}", 1),
            ("\u{1f600}", "\u{1f600}", 2),
        ] {
            let line = Line {
                text: Cow::Borrowed(shown),
                width: columns,
            };
            assert_eq!(lines(text).collect::<Vec<_>>(), [line], "{text:?}");
        }
    }

    #[test]
    fn a_value_has_a_line_more_than_it_has_ends_of_lines() {
        let of = |text| lines(text).map(|line| line.text).collect::<Vec<_>>();
        assert_eq!(of("a\n\nbc\n"), ["a", "", "bc", ""]);
        assert_eq!(width("a\n\nbc\n"), 2);
    }
}
