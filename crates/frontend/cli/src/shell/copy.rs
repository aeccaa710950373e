//! `\copy`: COPY, with data of this machine: a file's, or those that stand behind the command.
//!
//! What it says is read as psql 15 does: up to the file in words, with what is behind it left to COPY.

use super::standard::Standard;
use super::{Go, Listener, Shell};
use crate::exit::Failure;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use vellum_sql::{Progress, Session};

/// Pieces of data that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Where data come from, or go.
#[derive(PartialEq, Eq, Debug)]
enum End {
    File(String),
    /// Where the command stands; where results go.
    Here,
    /// The process's standard input or output.
    Process,
}

/// What `\copy` is to do.
#[derive(PartialEq, Eq, Debug)]
struct Copy {
    /// With the client in the place of the file.
    statement: String,
    end: End,
    /// Into the table.
    into: bool,
}

/// Gives a session the data of a COPY: to a line `\.` or the end; those in binary have no lines. Of a COPY that has failed the rest is read, too, so that it
/// is taken for nothing else.
///
/// # Errors
/// The statement's.
pub(super) fn feed(
    session: &mut Session,
    listener: &mut Listener<'_>,
    data: &mut dyn BufRead,
) -> vellum_sql::Result<Progress> {
    let mut piece = Vec::new();
    let mut done = Ok(());
    loop {
        piece.clear();
        match data.read_until(b'\n', &mut piece) {
            Ok(0) => break,
            Ok(_) if !listener.is_binary() && is_end(&piece) => break,
            Ok(_) if done.is_ok() => done = session.copy_data(&piece),
            Ok(_) => {}
            Err(error) => {
                return Err(match done {
                    Ok(()) => session.copy_fail(&error.to_string()),
                    Err(first) => first,
                });
            }
        }
    }
    done.and_then(|()| session.copy_done(listener))
}

impl Shell<'_> {
    /// Runs one. `data`: what stands behind it.
    pub(super) fn copy(&mut self, rest: &str, data: &mut dyn BufRead) -> Result<Go, Failure> {
        let done = match Copy::parse(rest) {
            Ok(copy) if copy.into => self.copy_into(&copy, data)?,
            Ok(copy) => self.copy_from(&copy)?,
            Err(what) => {
                self.complain(&format!("\\copy: {what}"));
                false
            }
        };
        Ok(if done || !self.stop { Go::On } else { Go::Quit })
    }

    fn copy_into(&mut self, copy: &Copy, data: &mut dyn BufRead) -> Result<bool, Failure> {
        let name = match &copy.end {
            End::File(name) => self.path(name),
            // At a terminal its lines are edited.
            End::Process if self.interrupts.is_none() => {
                let mut standard = Standard::default();
                return self.run(&copy.statement, &mut |session, listener| {
                    feed(session, listener, &mut standard)
                });
            }
            End::Here | End::Process => {
                return self.run(&copy.statement, &mut |session, listener| {
                    feed(session, listener, data)
                });
            }
        };
        // A directory can be opened, and not read.
        let file = match File::open(&name) {
            Ok(file) => file,
            Err(error) => return Ok(self.no_file(&name.display().to_string(), &error)),
        };
        let mut file = BufReader::with_capacity(PIECE_BYTES, file);
        self.run(&copy.statement, &mut |session, listener| {
            loop {
                let piece = match file.fill_buf() {
                    Ok(piece) => piece,
                    Err(error) => return Err(session.copy_fail(&error.to_string())),
                };
                if piece.is_empty() {
                    return session.copy_done(listener);
                }
                let length = piece.len();
                session.copy_data(piece)?;
                file.consume(length);
            }
        })
    }

    fn copy_from(&mut self, copy: &Copy) -> Result<bool, Failure> {
        let nothing = &mut |session: &mut Session, _: &mut Listener<'_>| {
            Err(session.copy_fail("there are no data for it"))
        };
        let End::File(name) = &copy.end else {
            return self.run(&copy.statement, nothing);
        };
        let name = self.path(name);
        let shown = name.display().to_string();
        let mut file = match File::create(&name) {
            Ok(file) => BufWriter::new(file),
            Err(error) => return Ok(self.no_file(&shown, &error)),
        };
        let done = self.run_into(&copy.statement, nothing, Some(&mut file))?;
        match file.flush() {
            Ok(()) => Ok(done),
            Err(error) => Ok(self.no_file(&shown, &error)),
        }
    }

    fn no_file(&mut self, name: &str, error: &io::Error) -> bool {
        self.complain(&format!("{name}: {error}"));
        false
    }
}

impl Copy {
    /// What stands behind `\copy`.
    ///
    /// # Errors
    /// Why it is none.
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = Words { text, at: 0 };
        if words.peek().is_none() {
            return Err("arguments required".to_owned());
        }
        let mut word = words.expect()?;
        if word.eq_ignore_ascii_case("binary") {
            word = words.expect()?;
        }
        if word == "(" {
            let mut depth = 1;
            while depth > 0 {
                match words.expect()? {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
            }
            word = words.expect()?;
        } else {
            word = words.expect()?;
            while word == "." {
                words.expect()?;
                word = words.expect()?;
            }
            if word == "(" {
                while words.expect()? != ")" {}
                word = words.expect()?;
            }
        }
        let into = word.eq_ignore_ascii_case("from");
        if !into && !word.eq_ignore_ascii_case("to") {
            return Err(parse_error(word));
        }
        let what = text[..words.at - word.len()].trim();
        let rest = text[words.at..].trim_start();
        let (end, options) = end(rest)?;
        let client = if into { "from stdin" } else { "to stdout" };
        let statement = format!("copy {what} {client} {}", options.trim());
        Ok(Self {
            statement: statement.trim_end().to_owned(),
            end,
            into,
        })
    }
}

/// The end that a text begins with, and what stands behind it.
fn end(text: &str) -> Result<(End, &str), String> {
    if let Some(quoted) = text.strip_prefix('\'') {
        // Doubled quotes stand for one.
        let mut from = 0;
        let close = loop {
            let at = from + quoted[from..].find('\'').ok_or_else(ended)?;
            if !quoted[at + 1..].starts_with('\'') {
                break at;
            }
            from = at + 2;
        };
        let name = quoted[..close].replace("''", "'");
        return Ok((End::File(name), &quoted[close + 1..]));
    }
    let length = text.find(|char: char| char.is_whitespace() || char == ';');
    let (word, rest) = text.split_at(length.unwrap_or(text.len()));
    let end = match &*word.to_ascii_lowercase() {
        "" => return Err(ended()),
        "program" => {
            let command = rest.trim_start();
            return Err(match command.split_whitespace().next() {
                None => ended(),
                Some(word) if !word.starts_with('\'') => parse_error(word),
                Some(_) => "PROGRAM is not supported: write to a file, or to stdout".to_owned(),
            });
        }
        "stdin" | "stdout" => End::Here,
        "pstdin" | "pstdout" => End::Process,
        _ => End::File(word.to_owned()),
    };
    Ok((end, rest))
}

fn parse_error(word: &str) -> String {
    format!("parse error at \"{word}\"")
}

fn ended() -> String {
    "parse error at end of line".to_owned()
}

/// Words of a text: signs, texts and names in quotes, and what stands between blanks.
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Words<'t> {
    /// What is left of it, from the next word on.
    fn peek(&self) -> Option<&'t str> {
        Some(self.text[self.at..].trim_start()).filter(|rest| !rest.is_empty())
    }

    /// # Errors
    /// If there are no more, or quotes stay open.
    fn expect(&mut self) -> Result<&'t str, String> {
        let rest = self.peek().ok_or_else(ended)?;
        let begin = self.text.len() - rest.len();
        let is_sign = |char: char| matches!(char, '.' | ',' | '(' | ')');
        let mut chars = rest.char_indices();
        let (_, first) = chars.next().ok_or_else(ended)?;
        let escapes = matches!(first, 'e' | 'E') && rest[1..].starts_with('\'');
        let quote = match first {
            _ if escapes => chars.next().map(|(_, quote)| quote),
            '\'' | '"' => Some(first),
            _ => None,
        };
        let length = match quote {
            Some(quote) => loop {
                match chars.next().ok_or_else(ended)? {
                    (_, '\\') if escapes => {
                        chars.next();
                    }
                    (at, char) if char == quote => {
                        if !rest[at + 1..].starts_with(quote) {
                            break at + 1;
                        }
                        chars.next();
                    }
                    _ => {}
                }
            },
            None if is_sign(first) => 1,
            None => {
                let ends = |char: char| {
                    char.is_whitespace() || is_sign(char) || matches!(char, '\'' | '"')
                };
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        self.at = begin + length;
        Ok(&rest[..length])
    }
}

/// Whether a line ends the data: nothing stands beside the two signs, not even a blank, which would be a row's.
fn is_end(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line) == b"\\."
}

#[cfg(test)]
mod tests {
    use super::super::meta::unquoted;
    use super::*;

    #[test]
    fn copy_finds_its_end_and_asks_for_the_client_instead() {
        let file = |name: &str| End::File(name.to_owned());
        for (text, statement, end, into) in [
            (
                "t from 'a file.csv' (format csv)",
                "copy t from stdin (format csv)",
                file("a file.csv"),
                true,
            ),
            (
                "t(a, \"b)\")FROM x.txt",
                "copy t(a, \"b)\") from stdin",
                file("x.txt"),
                true,
            ),
            (
                "(select 'to', \"from\" from t where (a) = ')') to 'it''s' with csv header",
                "copy (select 'to', \"from\" from t where (a) = ')') to stdout with csv header",
                file("it's"),
                false,
            ),
            (
                r"(select e'\') to ', 'it''s') to stdout csv",
                r"copy (select e'\') to ', 'it''s') to stdout csv",
                End::Here,
                false,
            ),
            (
                "\"from\" to out",
                "copy \"from\" to stdout",
                file("out"),
                false,
            ),
            (
                "\"a\"\"b\" . \"to\" to 'stdout'",
                "copy \"a\"\"b\" . \"to\" to stdout",
                file("stdout"),
                false,
            ),
            ("t to out;", "copy t to stdout ;", file("out"), false),
            (
                "binary a.t from PSTDIN",
                "copy binary a.t from stdin",
                End::Process,
                true,
            ),
            ("t to pstdout", "copy t to stdout", End::Process, false),
            (
                "t from stdin with delimiter ',' null ''",
                "copy t from stdin with delimiter ',' null ''",
                End::Here,
                true,
            ),
            (
                "t from f where a > 5",
                "copy t from stdin where a > 5",
                file("f"),
                true,
            ),
        ] {
            let expected = Copy {
                statement: statement.to_owned(),
                end,
                into,
            };
            assert_eq!(Copy::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_copy_is_told_with_its_word() {
        for (text, what) in [
            (" ", "arguments required"),
            ("t", "parse error at end of line"),
            ("t from", "parse error at end of line"),
            ("t from ;", "parse error at end of line"),
            ("t from 'open", "parse error at end of line"),
            ("(select 1 to x", "parse error at end of line"),
            ("(select ') to x", "parse error at end of line"),
            ("t into x", "parse error at \"into\""),
            ("t to program", "parse error at end of line"),
            ("t to program cat", "parse error at \"cat\""),
            (
                "t to PROGRAM 'cat'",
                "PROGRAM is not supported: write to a file, or to stdout",
            ),
        ] {
            assert_eq!(Copy::parse(text), Err(what.to_owned()), "{text}");
        }
    }

    #[test]
    fn data_end_at_two_signs_alone() {
        for line in [&b"\\."[..], b"\\.\n", b"\\.\r\n"] {
            assert!(is_end(line));
        }
        for line in [&b"\\. \n"[..], b"\\.\t\n", b" \\.\n", b"\\.x\n", b"\n"] {
            assert!(!is_end(line));
        }
    }

    #[test]
    fn arguments_lose_their_quotes() {
        assert_eq!(unquoted(r"'it''s \'a\'\n\\'"), "it's 'a'\n\\");
        assert_eq!(unquoted("plain"), "plain");
    }
}
