//! Where the lines of a COPY end, and where its data do.
//!
//! The first line says how lines end: by a newline, a carriage return, or both; from there on the others are errors, as in PostgreSQL. In text a backslash takes what follows it out of that, line
//! ends too; `\.` ends the data. In csv quotes do, and `\.` ends the data where it stands alone.

use super::copy_text::{Lines, bad};
use crate::error::{Result, SqlError};

/// How lines end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Newline {
    /// No line has ended yet.
    Unknown,
    Feed,
    Return,
    Both,
}

/// How far data were looked at.
#[derive(Debug)]
pub(super) struct Ends {
    pub newline: Newline,
    /// All before is looked at.
    scanned: usize,
    /// There: inside a quoted field, and behind an escape.
    quoted: bool,
    escaped: bool,
}

/// A line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub end: usize,
    /// Where the next one begins.
    pub next: usize,
    /// The data are over behind it; then it may have nothing in it, and is none.
    pub last: bool,
}

/// What a mark of the end of data is.
enum Mark {
    Partial,
    /// What it looks like in csv, where it is not alone in its line.
    None,
    End(usize),
}

impl Ends {
    pub fn new() -> Self {
        Self {
            newline: Newline::Unknown,
            scanned: 0,
            quoted: false,
            escaped: false,
        }
    }

    /// So many bytes at the beginning are gone.
    pub fn taken(&mut self, bytes: usize) {
        self.scanned = self.scanned.saturating_sub(bytes);
    }

    /// The line that begins at `start`, if it has ended; `all`: no more bytes come.
    ///
    /// # Errors
    /// `22P04` for a line that ends otherwise than the first one did.
    pub fn line(
        &mut self,
        bytes: &[u8],
        start: usize,
        all: bool,
        lines: &Lines,
    ) -> Result<Option<Line>> {
        let mut at = self.scanned.max(start);
        while let Some(byte) = self.special(bytes, &mut at, lines) {
            let next = bytes.get(at + 1);
            // What comes next says what it is.
            let open = matches!(byte, b'\r' | b'\\') && next.is_none() && !all;
            if open {
                self.scanned = at;
                return Ok(None);
            }
            let line = match byte {
                b'\n' => Some(self.ended(Newline::Feed, at, lines)?),
                b'\r' => Some(match (self.newline, next) {
                    (Newline::Unknown | Newline::Both, Some(b'\n')) => {
                        self.ended(Newline::Both, at, lines)?
                    }
                    _ => self.ended(Newline::Return, at, lines)?,
                }),
                _ => match (next, self.mark(bytes, at, all, lines)?) {
                    (_, Mark::Partial) => {
                        self.scanned = at;
                        return Ok(None);
                    }
                    (_, Mark::End(next)) => Some(Line {
                        end: at,
                        next,
                        last: true,
                    }),
                    (_, Mark::None) if lines.csv => {
                        self.quotes(byte, lines);
                        at += 1;
                        None
                    }
                    (Some(_), Mark::None) => {
                        at += 2;
                        None
                    }
                    (None, Mark::None) => {
                        at += 1;
                        None
                    }
                },
            };
            if let Some(line) = line {
                self.scanned = line.next;
                return Ok(Some(line));
            }
        }
        self.scanned = at;
        let rest = all && start < bytes.len();
        Ok(rest.then_some(Line {
            end: bytes.len(),
            next: bytes.len(),
            last: false,
        }))
    }

    /// The next byte that may end a line, or the data, from `at` on, and its place.
    fn special(&mut self, bytes: &[u8], at: &mut usize, lines: &Lines) -> Option<u8> {
        if !lines.csv {
            let rest = bytes.get(*at..)?;
            let found = memchr::memchr3(b'\n', b'\r', b'\\', rest);
            *at = found.map_or(bytes.len(), |length| *at + length);
            return bytes.get(*at).copied();
        }
        while let Some(byte) = bytes.get(*at).copied() {
            let ends = matches!(byte, b'\n' | b'\r') && !self.quoted;
            // One that ends the data stands first in its line.
            let first = *at == 0 || matches!(bytes[*at - 1], b'\n' | b'\r');
            if ends || (byte == b'\\' && first && !self.quoted) {
                return Some(byte);
            }
            self.quotes(byte, lines);
            *at += 1;
        }
        None
    }

    fn quotes(&mut self, byte: u8, lines: &Lines) {
        let Lines { quote, escape, .. } = *lines;
        if std::mem::take(&mut self.escaped) {
            // Stands for itself.
        } else if self.quoted && byte == escape && escape != quote {
            self.escaped = true;
        } else if byte == quote {
            // A quote that escapes another turns twice.
            self.quoted = !self.quoted;
        }
    }

    fn ended(&mut self, by: Newline, at: usize, lines: &Lines) -> Result<Line> {
        if self.newline == Newline::Unknown {
            self.newline = by;
        }
        if self.newline != by {
            return Err(other_end(by, lines));
        }
        self.escaped = false;
        Ok(Line {
            end: at,
            next: at + 1 + usize::from(by == Newline::Both),
            last: false,
        })
    }

    /// What a backslash begins.
    fn mark(&self, bytes: &[u8], at: usize, all: bool, lines: &Lines) -> Result<Mark> {
        let corrupt = || match lines.csv {
            true => Ok(Mark::None),
            false => Err(bad("end-of-copy marker corrupt")),
        };
        let mismatch = || bad("end-of-copy marker does not match previous newline style");
        let mut behind = at + 2;
        if bytes.get(at + 1) != Some(&b'.') {
            return Ok(Mark::None);
        }
        if self.newline == Newline::Both {
            match bytes.get(behind) {
                None if !all => return Ok(Mark::Partial),
                Some(b'\n') if !lines.csv => return Err(mismatch()),
                Some(b'\r') => behind += 1,
                _ => return corrupt(),
            }
        }
        let byte = match bytes.get(behind) {
            None if !all => return Ok(Mark::Partial),
            Some(byte @ (b'\n' | b'\r')) => *byte,
            _ => return corrupt(),
        };
        let fits = match self.newline {
            Newline::Unknown => true,
            Newline::Feed | Newline::Both => byte == b'\n',
            Newline::Return => byte == b'\r',
        };
        match fits {
            true => Ok(Mark::End(behind + 1)),
            false => Err(mismatch()),
        }
    }
}

/// `22P04`.
#[cold]
fn other_end(by: Newline, lines: &Lines) -> SqlError {
    let (name, escape) = match by {
        Newline::Return => ("carriage return", "\\r"),
        _ => ("newline", "\\n"),
    };
    match lines.csv {
        true => bad(&format!("unquoted {name} found in data"))
            .with_hint(format!("Use quoted CSV field to represent {name}.")),
        false => bad(&format!("literal {name} found in data"))
            .with_hint(format!("Use \"{escape}\" to represent {name}.")),
    }
}
