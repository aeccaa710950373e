//! Where a statement ends: at a semicolon outside of quotes, comments and parentheses.

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A backslash command.
    Command(String),
    /// Statements that it completes; it may begin another.
    Statements(Vec<String>),
}

/// Reads text piece by piece.
#[derive(Debug, Default)]
pub struct Splitter {
    text: String,
    /// Where it goes on reading.
    at: usize,
    state: State,
    parentheses: usize,
}

/// What the reader is in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Plain,
    /// `'…'`; with a backslash that escapes, if it is `E'…'`.
    Text { escapes: bool },
    /// `"…"`
    Name,
    /// `-- …`
    Line,
    /// `/* … */`, which nest.
    Block(usize),
    /// `$tag$ … $tag$`
    Dollar(String),
}

impl Splitter {
    /// Reads a line, which is given without its end.
    pub fn line(&mut self, line: &str) -> Said {
        // Between statements, so that a backslash in a text is one.
        if self.is_empty() && line.trim_start().starts_with('\\') {
            return Said::Command(line.trim().to_owned());
        }
        self.push(line);
        self.push("\n");
        Said::Statements(std::iter::from_fn(|| self.next_statement()).collect())
    }

    /// Adds text.
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Whether nothing has been said yet.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// What a prompt shows of where it is: `=` at the beginning of a statement, else what is open.
    pub fn mark(&self) -> char {
        match self.state {
            State::Text { .. } => '\'',
            State::Name => '"',
            State::Block(_) => '*',
            State::Dollar(_) => '$',
            State::Plain | State::Line if self.parentheses > 0 => '(',
            State::Plain | State::Line if self.is_empty() => '=',
            State::Plain | State::Line => '-',
        }
    }

    /// Takes the next statement that is complete, with its semicolon.
    fn next_statement(&mut self) -> Option<String> {
        while let Some(char) = self.text[self.at..].chars().next() {
            let rest = &self.text[self.at..];
            let mut length = char.len_utf8();
            match &mut self.state {
                State::Plain => match char {
                    ';' if self.parentheses == 0 => {
                        let rest = self.text.split_off(self.at + 1);
                        let statement = std::mem::replace(&mut self.text, rest);
                        self.at = 0;
                        return Some(statement);
                    }
                    '(' => self.parentheses += 1,
                    ')' => self.parentheses = self.parentheses.saturating_sub(1),
                    '\'' => {
                        let escapes = escapes(&self.text[..self.at]);
                        self.state = State::Text { escapes };
                    }
                    '"' => self.state = State::Name,
                    '-' if rest.starts_with("--") => self.state = State::Line,
                    '/' if rest.starts_with("/*") => {
                        self.state = State::Block(1);
                        length = 2;
                    }
                    '$' if !is_word(self.text[..self.at].chars().next_back()) => {
                        if let Some(tag) = dollar_tag(rest) {
                            length = tag.len();
                            self.state = State::Dollar(tag.to_owned());
                        }
                    }
                    _ => {}
                },
                State::Text { escapes: true } if char == '\\' => {
                    length += rest.chars().nth(1).map_or(0, char::len_utf8);
                }
                // A quote that is doubled ends one text and begins another.
                State::Text { .. } if char == '\'' => self.state = State::Plain,
                State::Name if char == '"' => self.state = State::Plain,
                State::Line if char == '\n' => self.state = State::Plain,
                State::Block(depth) => {
                    if rest.starts_with("/*") {
                        *depth += 1;
                        length = 2;
                    } else if rest.starts_with("*/") {
                        *depth -= 1;
                        length = 2;
                        if *depth == 0 {
                            self.state = State::Plain;
                        }
                    }
                }
                State::Dollar(tag) if rest.starts_with(tag.as_str()) => {
                    length = tag.len();
                    self.state = State::Plain;
                }
                _ => {}
            }
            self.at += length;
        }
        None
    }

    /// Takes what is left, at the end of the input; `None` if it is blank.
    pub fn rest(&mut self) -> Option<String> {
        let text = std::mem::take(self).text;
        Some(text).filter(|text| !text.trim().is_empty())
    }
}

/// Whether a quote behind this text begins `E'…'`.
fn escapes(before: &str) -> bool {
    let mut chars = before.chars().rev();
    matches!(chars.next(), Some('e' | 'E')) && !is_word(chars.next())
}

fn is_word(char: Option<char>) -> bool {
    char.is_some_and(|char| char.is_alphanumeric() || matches!(char, '_' | '$'))
}

/// `$tag$` at the beginning of a text.
fn dollar_tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('$')?;
    let end = inner.find('$')?;
    let tag = &inner[..end];
    let first = tag.chars().next();
    let well = tag
        .chars()
        .all(|char| char.is_alphanumeric() || char == '_')
        && !first.is_some_and(char::is_numeric);
    well.then(|| &text[..end + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, Option<String>) {
        let mut splitter = Splitter::default();
        splitter.push(text);
        let statements = std::iter::from_fn(|| splitter.next_statement()).collect();
        (statements, splitter.rest())
    }

    #[test]
    fn semicolons_in_quotes_comments_and_parentheses_end_nothing() {
        for (text, statements, rest) in [
            ("select 1; select 2", vec!["select 1;"], Some(" select 2")),
            ("select ';''';", vec!["select ';''';"], None),
            (r"select e'\';' ;", vec![r"select e'\';' ;"], None),
            (
                r"select 'a\'; select 'b';",
                vec![r"select 'a\';", " select 'b';"],
                None,
            ),
            ("select \"a;\" -- ;\n;", vec!["select \"a;\" -- ;\n;"], None),
            ("/* ; /* ; */ ; */ x;", vec!["/* ; /* ; */ ; */ x;"], None),
            (
                "do $a$ ; $$ ; $a$; x",
                vec!["do $a$ ; $$ ; $a$;"],
                Some(" x"),
            ),
            ("rule (a; b); c", vec!["rule (a; b);"], Some(" c")),
            ("a$b$;c", vec!["a$b$;"], Some("c")),
            (" \n ", vec![], None),
        ] {
            let found = split(text);
            assert_eq!(found.0, statements, "{text}");
            assert_eq!(found.1.as_deref(), rest, "{text}");
        }
    }

    #[test]
    fn a_statement_may_come_in_any_pieces() {
        let text = "select $x$;$x$, 'é;', e'\\'' /* ; */; select 2;";
        let whole = split(text).0;
        let mut splitter = Splitter::default();
        let mut found = Vec::new();
        for line in text.split_inclusive(' ') {
            splitter.push(line);
            found.extend(std::iter::from_fn(|| splitter.next_statement()));
        }
        assert_eq!(found, whole);
    }

    #[test]
    fn a_line_is_a_command_where_no_statement_has_begun() {
        let mut splitter = Splitter::default();
        let statements =
            |list: &[&str]| Said::Statements(list.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(splitter.line("  "), statements(&[]));
        assert_eq!(splitter.line(" \\d t "), Said::Command("\\d t".to_owned()));
        assert_eq!(
            splitter.line("a; b; select '"),
            statements(&["  \na;", " b;"])
        );
        assert_eq!(splitter.line("\\d t"), statements(&[]));
        assert_eq!(splitter.line("';"), statements(&[" select '\n\\d t\n';"]));
        assert!(splitter.is_empty());
    }

    #[test]
    fn the_prompt_tells_what_is_open() {
        for (text, mark) in [
            ("", '='),
            ("select", '-'),
            ("select 'a", '\''),
            ("select \"a", '"'),
            ("select (", '('),
            ("/* ", '*'),
            ("$$ ", '$'),
            ("select 1;", '='),
        ] {
            let mut splitter = Splitter::default();
            splitter.push(text);
            while splitter.next_statement().is_some() {}
            assert_eq!(splitter.mark(), mark, "{text}");
        }
    }
}
