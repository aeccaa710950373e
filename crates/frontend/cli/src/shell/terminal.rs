//! A terminal: lines that somebody types, with editing and what was typed before.
//!
//! Input is taken line by line, as a prompt tells what is open. Lines that are pasted at once, or stand in an entry of the history, are edited together and then taken one
//! after the other.
//!
//! Not here: which entries are kept (history.rs), and Ctrl-C while a statement runs (interrupt.rs).

use super::Options;
use super::history::{self, Kept};
use super::interrupt::Interrupts;
use rustyline::completion::Completer;
use rustyline::error::{ReadlineError, Signal};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Context, Editor, Helper};
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

/// Prompt for the data of a COPY.
const DATA_PROMPT: &str = ">> ";

/// What somebody did at a prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    Line(String),
    /// Ctrl-C: what was begun is nothing.
    Nothing,
    /// Ctrl-D at an empty line, or a terminal that is gone.
    End,
}

/// Somebody's terminal.
#[derive(Debug)]
pub struct Terminal {
    editor: Editor<Keys, FileHistory>,
    kept: Kept,
    interrupts: Arc<Interrupts>,
    /// Lines that came together with one that was taken.
    waiting: VecDeque<String>,
    /// Lines of a statement that has not ended.
    entry: String,
    /// Of a line of data, what was not taken yet.
    data: Vec<u8>,
    taken: usize,
}

impl Terminal {
    /// The terminal at standard input and output.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn open(options: &Options, interrupts: Arc<Interrupts>) -> io::Result<Self> {
        // List: the one completion there is, at once, without going round to none.
        let config = history::config()
            .map_err(failed)?
            .completion_type(CompletionType::List)
            .build();
        let mut history = FileHistory::with_config(&config);
        let kept = Kept::open(options, &mut history);
        let mut editor = Editor::with_history(config, history).map_err(failed)?;
        editor.set_helper(Some(Keys));
        Ok(Self {
            editor,
            kept,
            interrupts,
            waiting: VecDeque::new(),
            entry: String::new(),
            data: Vec::new(),
            taken: 0,
        })
    }

    /// The next line.
    ///
    /// # Errors
    /// If there are no more because the terminal has failed.
    pub fn next(&mut self, prompt: &str) -> io::Result<Typed> {
        // Those that came while a statement ran, which has ended with it, or before it.
        if self.interrupts.forget() {
            self.waiting.clear();
        }
        if let Some(line) = self.waiting.pop_front() {
            return Ok(Typed::Line(line));
        }
        let typed = match self.editor.readline(prompt) {
            Ok(text) => text,
            Err(ReadlineError::Eof) => return Ok(Typed::End),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(Signal::Interrupt)) => {
                return Ok(Typed::Nothing);
            }
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                crate::complain!("vellum: what was typed is no UTF-8");
                return Ok(Typed::Nothing);
            }
            Err(error) => return Err(failed(error)),
        };
        self.waiting.extend(
            typed
                .split('\n')
                .map(|line| line.trim_end_matches('\r').to_owned()),
        );
        // A terminal that cannot be edited at ends the line itself, and shows nothing of it here but the signal: what is typed behind it is another one.
        if self.interrupts.forget() {
            return Ok(Typed::Nothing);
        }
        Ok(self.waiting.pop_front().map_or(Typed::End, Typed::Line))
    }

    /// A line belongs to the history, as an entry, or the end of one, or as what goes on.
    pub fn keep(&mut self, line: &str, ends: bool) {
        if !self.entry.is_empty() {
            self.entry.push('\n');
        }
        self.entry.push_str(line);
        if ends {
            let entry = std::mem::take(&mut self.entry);
            self.kept.add(entry.trim_end(), self.editor.history_mut());
        }
    }

    /// What was begun is nothing.
    pub fn forget(&mut self) {
        self.entry.clear();
    }

    /// The entries of the history, the oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.editor.history().iter().map(String::as_str)
    }
}

/// Data of a COPY: lines, which are no entries of the history.
impl BufRead for Terminal {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.data.len() {
            self.taken = 0;
            self.data.clear();
            match self.next(DATA_PROMPT)? {
                Typed::Line(line) => {
                    self.data.extend_from_slice(line.as_bytes());
                    self.data.push(b'\n');
                }
                Typed::End => {}
                // Not `Interrupted`, which is read over.
                Typed::Nothing => return Err(io::Error::other("canceled by user")),
            }
        }
        Ok(&self.data[self.taken..])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
    }
}

impl Read for Terminal {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

fn failed(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        error => io::Error::other(error),
    }
}

/// What keys do beside editing: Tab is a tab, also in what is pasted into a terminal that does not tell so.
#[derive(Debug)]
struct Keys;

impl Completer for Keys {
    type Candidate = String;

    fn complete(
        &self,
        _: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((position, vec!["\t".to_owned()]))
    }
}

impl Helper for Keys {}
impl Highlighter for Keys {}
impl Validator for Keys {}
impl Hinter for Keys {
    type Hint = String;
}
