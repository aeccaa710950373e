//! Where a statement ends, and where a command of the shell stands, as psql has it: a semicolon outside of quotes, comments and parentheses ends a statement; a
//! backslash outside of quotes and comments begins a command, to the end of its line or to another backslash.
//!
//! Not here: what commands do (meta.rs).

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A backslash command with its arguments.
    Command(String),
    /// A statement that is complete.
    Statement(String),
    /// One whose result is to be shown expanded: it ended with `\gx`.
    Expanded(String),
    /// What was said of a statement is forgotten (`\r`).
    Cleared,
}

/// Reads text line by line.
#[derive(Debug, Default)]
pub struct Splitter {
    text: String,
    /// Where it goes on reading.
    at: usize,
    /// Where the statement begins, behind blanks and the comments of lines.
    start: Option<usize>,
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
    pub fn line(&mut self, line: &str) -> Vec<Said> {
        self.push(line);
        self.push("\n");
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Adds text.
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Whether nothing has been said yet, in comments neither.
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
            State::Plain | State::Line if self.start.is_none() => '=',
            State::Plain | State::Line => '-',
        }
    }

    /// Takes the next thing that is complete.
    fn next(&mut self) -> Option<Said> {
        while let Some(char) = self.text[self.at..].chars().next() {
            let rest = &self.text[self.at..];
            let mut length = char.len_utf8();
            if self.state == State::Plain
                && self.start.is_none()
                && !char.is_whitespace()
                && char != '\\'
                && !rest.starts_with("--")
            {
                self.start = Some(self.at);
            }
            match &mut self.state {
                State::Plain => match char {
                    ';' if self.parentheses == 0 => {
                        self.at += 1;
                        return Some(Said::Statement(self.statement()));
                    }
                    '\\' if rest[1..].starts_with([';', ':']) => {
                        // The sign itself, which ends nothing.
                        self.start.get_or_insert(self.at);
                        self.text.remove(self.at);
                        length = 1;
                    }
                    '\\' => return Some(self.command()),
                    '(' => self.parentheses += 1,
                    ')' => self.parentheses = self.parentheses.saturating_sub(1),
                    '\'' => self.state = State::Text { escapes: false },
                    '"' => self.state = State::Name,
                    '-' if rest.starts_with("--") => self.state = State::Line,
                    '/' if rest.starts_with("/*") => {
                        self.state = State::Block(1);
                        length = 2;
                    }
                    '$' => {
                        if let Some(tag) = dollar_tag(rest) {
                            length = tag.len();
                            self.state = State::Dollar(tag.to_owned());
                        }
                    }
                    char if begins_word(char) => {
                        // To its end, since a `$` in it quotes nothing.
                        let end = rest.find(|char| !is_in_word(char));
                        length = end.unwrap_or(rest.len());
                        if matches!(&rest[..length], "e" | "E") && rest[length..].starts_with('\'')
                        {
                            length += 1;
                            self.state = State::Text { escapes: true };
                        }
                    }
                    _ => {}
                },
                State::Text { escapes: true } if char == '\\' => {
                    length += rest.chars().nth(1).map_or(0, char::len_utf8);
                }
                // One that is doubled is part of the text.
                State::Text { .. } if rest.starts_with("''") => length = 2,
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

    /// Takes the statement that ends where it reads.
    fn statement(&mut self) -> String {
        let rest = self.text.split_off(self.at);
        let text = std::mem::replace(&mut self.text, rest);
        let start = self.start.take().unwrap_or(text.len());
        self.at = 0;
        self.parentheses = 0;
        text[start..].to_owned()
    }

    /// Takes the command that begins where it reads.
    fn command(&mut self) -> Said {
        let rest = &self.text[self.at..];
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let (command, length) = command(line);
        let command = command.to_owned();
        self.text.drain(self.at..self.at + length);
        let (name, rest) = command
            .split_once(char::is_whitespace)
            .unwrap_or((&command, ""));
        match name {
            "\\r" | "\\reset" => {
                self.statement();
                Said::Cleared
            }
            "\\g" | "\\gx" if rest.is_empty() && self.start.is_some() => {
                let statement = self.statement();
                match name {
                    "\\g" => Said::Statement(statement),
                    _ => Said::Expanded(statement),
                }
            }
            _ => {
                // Comments in front of it are about it.
                if self.start.is_none() {
                    self.text.drain(..self.at);
                    self.at = 0;
                }
                Said::Command(command)
            }
        }
    }

    /// Takes what is left, at the end of the input; `None` if it is blank.
    pub fn rest(&mut self) -> Option<String> {
        let whole = std::mem::take(self);
        whole.start.map(|start| whole.text[start..].to_owned())
    }
}

/// A command at the beginning of a line, without blanks at its ends, and how many bytes it is there: to the end of the line, or to another backslash; two of them end
/// it and are no more.
fn command(line: &str) -> (&str, usize) {
    let inner = &line[1..];
    let end = inner.find(|char: char| char.is_whitespace() || char == '\\');
    let name = 1 + end.unwrap_or(inner.len());
    // COPY's words are COPY's.
    if &line[..name] == "\\copy" {
        return (line.trim_end(), line.len());
    }
    let mut quote = None;
    let mut chars = line[name..].char_indices();
    while let Some((at, char)) = chars.next() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (Some('\''), '\\') => {
                chars.next();
            }
            (None, '\'' | '"') => quote = Some(char),
            (None, '\\') => {
                let at = name + at;
                let own = if line[at..].starts_with("\\\\") { 2 } else { 0 };
                return (line[..at].trim_end(), at + own);
            }
            _ => {}
        }
    }
    (line.trim_end(), line.len())
}

/// Whether a name or a keyword may begin with it.
fn begins_word(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_' || !char.is_ascii()
}

fn is_in_word(char: char) -> bool {
    begins_word(char) || char.is_ascii_digit() || char == '$'
}

/// `$tag$` at the beginning of a text.
fn dollar_tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('$')?;
    let tag = &inner[..inner.find('$')?];
    let mut chars = tag.chars();
    let well = chars.next().is_none_or(begins_word) && chars.all(is_in_word);
    well.then(|| &text[..tag.len() + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, Option<String>) {
        let mut splitter = Splitter::default();
        splitter.push(text);
        let said = std::iter::from_fn(|| splitter.next());
        let statements = said.map(|said| match said {
            Said::Statement(text) => text,
            other => format!("{other:?}"),
        });
        (statements.collect(), splitter.rest())
    }

    #[test]
    fn semicolons_in_quotes_comments_and_parentheses_end_nothing() {
        for (text, statements, rest) in [
            ("select 1; select 2", vec!["select 1;"], Some("select 2")),
            ("select ';''';", vec!["select ';''';"], None),
            (r"select e'\';' ;", vec![r"select e'\';' ;"], None),
            (r"select E'a''b\'; c';", vec![r"select E'a''b\'; c';"], None),
            (r"select 'a''b\'; c", vec![r"select 'a''b\';"], Some("c")),
            (
                r"select re'\'; select 1e'\';';",
                vec![r"select re'\';", r"select 1e'\';';"],
                None,
            ),
            (
                r"select 'a\'; select 'b';",
                vec![r"select 'a\';", "select 'b';"],
                None,
            ),
            ("select \"a;\" -- ;\n;", vec!["select \"a;\" -- ;\n;"], None),
            ("select \"a\"\";\";", vec!["select \"a\"\";\";"], None),
            ("/* ; /* ; */ ; */ x;", vec!["/* ; /* ; */ ; */ x;"], None),
            ("/*/ ; */ x; y", vec!["/*/ ; */ x;"], Some("y")),
            ("-- ;\n\n -- '\nx; -- y", vec!["x;"], None),
            (
                "do $a$ ; $$ ; $a$; x",
                vec!["do $a$ ; $$ ; $a$;"],
                Some("x"),
            ),
            ("$é1$;$$;$é1$;", vec!["$é1$;$$;$é1$;"], None),
            ("$1$;$$", vec!["$1$;"], Some("$$")),
            ("1$$;$$;", vec!["1$$;$$;"], None),
            ("rule (a; b); c", vec!["rule (a; b);"], Some("c")),
            ("a$b$;c", vec!["a$b$;"], Some("c")),
            (
                r"select 1\; select 2; x",
                vec!["select 1; select 2;"],
                Some("x"),
            ),
            (r"select 'a\;';", vec![r"select 'a\;';"], None),
            (" \n ", vec![], None),
            (";;", vec![";", ";"], None),
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
            found.extend(std::iter::from_fn(|| splitter.next()));
        }
        let whole: Vec<Said> = whole.into_iter().map(Said::Statement).collect();
        assert_eq!(found, whole);
    }

    #[test]
    fn a_backslash_outside_of_quotes_begins_a_command() {
        let statement = |text: &str| Said::Statement(text.to_owned());
        let command = |text: &str| Said::Command(text.to_owned());
        let mut splitter = Splitter::default();
        for (line, said) in [
            ("  ", vec![]),
            (r" \d t ", vec![command(r"\d t")]),
            (r"-- what \d says", vec![]),
            (r"\d t", vec![command(r"\d t")]),
            ("a; b; select '", vec![statement("a;"), statement("b;")]),
            (r"\d t", vec![]),
            ("';", vec![statement("select '\n\\d t\n';")]),
            (
                r"a; \d t \x \\ b; \d",
                vec![
                    statement("a;"),
                    command(r"\d t"),
                    command(r"\x"),
                    statement("b;"),
                    command(r"\d"),
                ],
            ),
            (
                r#"\i 'a\'b\\c' \d "x\y" \x"#,
                vec![
                    command(r"\i 'a\'b\\c'"),
                    command(r#"\d "x\y""#),
                    command(r"\x"),
                ],
            ),
            (
                r"\copy t to 'a\b' csv escape '\' ",
                vec![command(r"\copy t to 'a\b' csv escape '\'")],
            ),
            (r"/* /* \d */ \d */ \d", vec![command(r"\d")]),
            (r"select \d x", vec![command(r"\d x")]),
            (
                r" 1; -- \d",
                vec![statement("/* /* \\d */ \\d */ \nselect \n 1;")],
            ),
            (r"select 3 \g", vec![statement("select 3 ")]),
            (
                r"select 4 \gx \d",
                vec![Said::Expanded("select 4 ".to_owned()), command(r"\d")],
            ),
            (r"select ( \r \g", vec![Said::Cleared, command(r"\g")]),
            (r"\g file", vec![command(r"\g file")]),
        ] {
            assert_eq!(splitter.line(line), said, "{line}");
        }
        assert!(splitter.is_empty());
        splitter.line("-- a comment");
        assert!(!splitter.is_empty());
        assert_eq!(splitter.rest(), None);
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
            ("/* */ ", '-'),
            ("-- ' (", '='),
            ("$$ ", '$'),
            ("select 1;", '='),
        ] {
            let mut splitter = Splitter::default();
            splitter.push(text);
            while splitter.next().is_some() {}
            assert_eq!(splitter.mark(), mark, "{text}");
        }
    }
}
