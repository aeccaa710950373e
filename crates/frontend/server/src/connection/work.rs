//! What clients' statements cost: counted, and logged with their texts where they are slow.
//!
//! Invariants: K1: a statement is counted once, when it is over: with what its client sent for its COPY and took to read; the statements of one Query together.
//!
//! Cost: the clock is read twice a message; a text is copied only where it may be logged.

use super::Limits;
use crate::sessions::{Seat, Tally};
use std::borrow::Cow;
use std::sync::Arc;
use vellum_base::clock::monotonic_nanos;
use vellum_sql::without_passwords;

/// Longest part of a statement's text in the log, in bytes.
const LOGGED_BYTES_MAX: usize = 4096;

/// What is done for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is parsed: the message Parse.
    Parse,
    /// It is given parameters: the message Bind.
    Bind,
    /// It is run.
    Run,
}

impl Step {
    /// The message of the event.
    fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Bind => "bind",
            Self::Run => "statement",
        }
    }
}

/// A moment at which something was begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun(u64);

/// A statement that waits for the data of its COPY.
#[derive(Debug)]
pub struct Unfinished {
    begun: Begun,
    /// As it is shown; none if nothing is logged.
    text: Option<Box<str>>,
}

impl Begun {
    /// Now.
    pub fn now() -> Self {
        Self(monotonic_nanos())
    }

    /// It is over: it is counted, and logged with its text if it was slow.
    pub fn ended(self, step: Step, seat: &Seat, limits: &Limits, text: impl FnOnce() -> Arc<str>) {
        self.counted(step, seat, limits, || shown(&text()).into());
    }

    /// It goes on when its client sends data.
    pub fn goes_on(self, limits: &Limits, text: impl FnOnce() -> Arc<str>) -> Unfinished {
        let logged = limits.log_statement_nanos.is_some();
        Unfinished {
            begun: self,
            text: logged.then(|| shown(&text()).into()),
        }
    }

    fn counted(self, step: Step, seat: &Seat, limits: &Limits, text: impl FnOnce() -> Box<str>) {
        let nanos = monotonic_nanos().saturating_sub(self.0);
        Tally::count(&seat.tally.statements, u64::from(step == Step::Run));
        Tally::count(&seat.tally.statement_nanos, nanos);
        if limits
            .log_statement_nanos
            .is_some_and(|limit| nanos >= limit)
        {
            let milliseconds = nanos / 1_000_000;
            let (process, text) = (seat.process, text());
            tracing::info!(process, milliseconds, statement = &*text, "{}", step.name());
        }
    }
}

impl Unfinished {
    /// It is over.
    pub fn ended(self, seat: &Seat, limits: &Limits) {
        let text = self.text.unwrap_or_default();
        self.begun.counted(Step::Run, seat, limits, || text);
    }
}

/// What is logged of a text.
fn shown(text: &str) -> Cow<'_, str> {
    // What stands behind the cut may tell that a password stands before it.
    match without_passwords(text) {
        Cow::Borrowed(text) => text[..text.floor_char_boundary(LOGGED_BYTES_MAX)].into(),
        Cow::Owned(mut text) => {
            text.truncate(text.floor_char_boundary(LOGGED_BYTES_MAX));
            text.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters_and_behind_passwords() {
        let text = format!("{}é", "x".repeat(LOGGED_BYTES_MAX - 1));
        assert_eq!(shown(&text), text[..LOGGED_BYTES_MAX - 1]);
        let text = format!("{} password '{}'", "x".repeat(4000), "s".repeat(5000));
        assert!(shown(&text).ends_with(" password '********'"));
        let text = format!(
            "do $$ declare p text := 's3cret'; {} begin execute format('alter role a password %L', p); end $$",
            "p".repeat(LOGGED_BYTES_MAX)
        );
        assert_eq!(shown(&text), "do '********'");
    }
}
