//! Rust source taken apart line by line: what is code, what is comment.
//!
//! Strings and character literals keep their quotes and lose their content, so that a rule about
//! code never fires on a message or on an example in a comment.
//!
//! Not here: macros are not expanded, and `use x as y` hides what is called later as `y`.

/// One line of a Rust file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Line {
    /// Code without comments, and without what stands between quotes.
    pub code: String,
    /// The text of the comments of this line, with their slashes.
    pub comment: String,
}

enum State {
    Code,
    LineComment,
    Block(usize),
    Text,
    RawText(usize),
}

/// Splits `text` into lines of code and comment.
pub fn split(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = Vec::new();
    let mut line = Line::default();
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let next = chars.get(at + 1).copied();
        if c == '\n' {
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            lines.push(std::mem::take(&mut line));
            at += 1;
            continue;
        }
        match state {
            State::Code => match (c, next) {
                ('/', Some('/')) => {
                    line.comment.push_str("//");
                    state = State::LineComment;
                    at += 2;
                }
                ('/', Some('*')) => {
                    line.comment.push_str("/*");
                    state = State::Block(1);
                    at += 2;
                }
                ('"', _) => {
                    line.code.push('"');
                    state = State::Text;
                    at += 1;
                }
                ('\'', _) => {
                    let width = char_literal(&chars[at..]);
                    line.code.push_str(if width > 1 { "' '" } else { "'" });
                    at += width;
                }
                _ => match raw_text(&chars, at) {
                    Some((hashes, width)) => {
                        line.code.push('"');
                        state = State::RawText(hashes);
                        at += width;
                    }
                    None => {
                        line.code.push(c);
                        at += 1;
                    }
                },
            },
            State::LineComment => {
                line.comment.push(c);
                at += 1;
            }
            State::Block(depth) => {
                line.comment.push(c);
                at += 1;
                let pair = (c, next);
                if pair == ('*', Some('/')) || pair == ('/', Some('*')) {
                    line.comment.extend(next);
                    at += 1;
                    state = match (c, depth) {
                        ('/', _) => State::Block(depth + 1),
                        (_, 1) => State::Code,
                        _ => State::Block(depth - 1),
                    };
                }
            }
            State::Text => match c {
                // A backslash hides the next character, but a line end still ends the line.
                '\\' if next != Some('\n') => at += 2,
                '"' => {
                    line.code.push('"');
                    state = State::Code;
                    at += 1;
                }
                _ => at += 1,
            },
            State::RawText(hashes) => {
                at += 1;
                let closing = chars[at..]
                    .iter()
                    .take(hashes)
                    .filter(|c| **c == '#')
                    .count();
                if c == '"' && closing == hashes {
                    line.code.push('"');
                    state = State::Code;
                    at += hashes;
                }
            }
        }
    }
    if !line.code.is_empty() || !line.comment.is_empty() {
        lines.push(line);
    }
    lines
}

/// Length of the character literal at the front of `chars`; 1 where the quote begins a lifetime.
fn char_literal(chars: &[char]) -> usize {
    match (chars.get(1), chars.get(2)) {
        (Some('\\'), _) => {
            let close = chars.iter().skip(3).position(|c| *c == '\'' || *c == '\n');
            close.map_or(1, |c| c + 4)
        }
        (Some(_), Some('\'')) => 3,
        _ => 1,
    }
}

/// Number of hashes and length of the opening of a raw string (`r"`, `br#"`, …) at `at`.
fn raw_text(chars: &[char], at: usize) -> Option<(usize, usize)> {
    if at > 0 && is_word(chars[at - 1]) {
        return None;
    }
    let r = match (chars[at], chars.get(at + 1)) {
        ('r', _) => at,
        ('b' | 'c', Some('r')) => at + 1,
        _ => return None,
    };
    let hashes = chars[r + 1..].iter().take_while(|c| **c == '#').count();
    (chars.get(r + 1 + hashes) == Some(&'"')).then_some((hashes, r + 2 + hashes - at))
}

/// True for what identifiers consist of.
pub fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// True if `word` stands in `text` with no letter, digit or underscore beside it.
pub fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        split(text)
            .iter()
            .map(|line| line.code.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn comments_and_the_content_of_strings_are_not_code() {
        assert_eq!(code("a // b\nc"), "a \nc");
        assert_eq!(code("a /* b /* c */ d */ e"), "a  e");
        assert_eq!(
            code(r#"f("std::fs \" x", 'a', '"', '\'', "y")"#),
            r#"f("", ' ', ' ', ' ', "")"#
        );
        assert_eq!(
            code("r#\"unsafe \" \"# + br\"unsafe\" + var\"\""),
            "\"\" + \"\" + var\"\""
        );
        assert_eq!(code("\"one\\\ntwo\" three"), "\"\n\" three");
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(split("x(); // why")[0].comment, "// why");
        assert_eq!(
            split("/* one\ntwo */ x")[1],
            Line {
                code: " x".into(),
                comment: "two */".into()
            }
        );
    }

    #[test]
    fn words_are_found_whole_only() {
        assert!(has_word("(a.unsafe)", "unsafe"));
        assert!(!has_word("unsafe_code unsafely", "unsafe"));
    }
}
