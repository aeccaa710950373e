//! Cursors: DECLARE, FETCH, MOVE, CLOSE.
//!
//! A cursor's query is run in the snapshot of its DECLARE, as far as its rows are asked for if it can be run in pieces (`pieces`), else to its end. What was read is kept (`row_store`),
//! beyond `work_mem` in a file: so every cursor can go both ways, and one WITH HOLD, whose query is run to its end when its transaction commits, outlives that. Values are kept, not their
//! forms, so that each FETCH is answered in the formats that it asks for.
//!
//! Invariants:
//! - K1 A cursor without HOLD is gone when its transaction ends; one WITH HOLD when the transaction that declared it rolls back.
//! - K2 ROLLBACK TO a savepoint takes cursors along that were declared after it.
//! - K3 One that a FETCH has failed of is not read again, and keeps nothing; it is there until it is closed.

use super::encode::Stored;
use super::extended::cannot_be_run;
use super::pieces::Rest;
use super::row_store::RowStore;
use super::run::{Given, Output, Prepared};
use super::{Progress, Session, clock_time, gone, no_portal};
use crate::bind::folded;
use crate::error::{Result, SqlError};
use crate::parse::MOVE;
use crate::plan::{lock_of, writes_in_with};
use crate::sqlstate;
use crate::system::reg_text_in;
use crate::wire::{CommandTag, Field, Format, OutputRow, Sink};
use sqlparser::ast::{self, FetchDirection, Statement};
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_row::Type;
use vellum_row::datetime::Timestamp;

/// A cursor.
#[derive(Debug)]
struct Cursor {
    fields: Arc<[Field]>,
    stored: Stored,
    /// Those that were read.
    rows: RowStore,
    /// The others.
    rest: Option<Box<Rest>>,
    /// Where it stands: 0 before the first row, `n` on the n-th, one more than there are behind the last.
    at: u64,
    /// NO SCROLL: never back.
    forward_only: bool,
    /// BINARY: the format of FETCH in a text of the simple protocol, which asks for none.
    format: Format,
    hold: bool,
    /// Declared by the transaction that is open.
    new: bool,
    /// K3.
    failed: bool,
    number: u64,
    /// The text that it was declared in.
    text: Arc<str>,
    since: Timestamp,
}

/// What `pg_cursors` says of one.
pub(crate) struct ShownCursor<'c> {
    pub name: &'c str,
    pub statement: &'c str,
    pub hold: bool,
    pub binary: bool,
    pub scrolls: bool,
    pub since: Timestamp,
}

/// The cursors of a session.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    by_name: HashMap<String, Cursor>,
    declared: u64,
}

impl Cursors {
    /// The transaction ends (K1).
    pub fn end_transaction(&mut self, committed: bool) {
        if self.by_name.is_empty() {
            return;
        }
        self.by_name
            .retain(|_, cursor| cursor.hold && (!cursor.new || (committed && !cursor.failed)));
        for cursor in self.by_name.values_mut() {
            cursor.new = false;
        }
    }

    /// How many were declared so far: a point to go back to.
    pub fn declared(&self) -> u64 {
        self.declared
    }

    /// K2.
    pub fn forget_from(&mut self, declared: u64) {
        self.by_name.retain(|_, cursor| cursor.number < declared);
    }

    /// All of them, by name.
    pub fn shown(&self) -> Vec<ShownCursor<'_>> {
        let shown = self.by_name.iter().map(|(name, cursor)| ShownCursor {
            name,
            statement: &cursor.text,
            hold: cursor.hold,
            binary: cursor.format == Format::Binary,
            scrolls: !cursor.forward_only,
            since: cursor.since,
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort_by_key(|shown| shown.name);
        shown
    }

    /// Closes all.
    pub fn close_all(&mut self) {
        self.by_name.clear();
    }

    /// Whether there is one of this name.
    pub fn contains(&self, name: &str) -> bool {
        !self.by_name.is_empty() && self.by_name.contains_key(name)
    }

    /// Closes one, if there is one.
    pub fn remove(&mut self, name: &str) {
        if !self.by_name.is_empty() {
            self.by_name.remove(name);
        }
    }

    /// Columns of one and the formats that Execute tells them in: none, which is text, of a binary one too.
    pub fn told(&self, name: &str) -> Option<(Arc<[Field]>, Arc<[Format]>)> {
        let cursor = self.by_name.get(name)?;
        Some((cursor.fields.clone(), Arc::new([])))
    }

    /// One that is there.
    ///
    /// # Errors
    /// `34000`.
    fn found(&mut self, name: &str) -> Result<&mut Cursor> {
        self.by_name.get_mut(name).ok_or_else(|| no_cursor(name))
    }

    /// Columns of what FETCH of a cursor returns.
    ///
    /// # Errors
    /// `34000`.
    pub fn fields(&self, name: &str) -> Result<Arc<[Field]>> {
        let cursor = self.by_name.get(name).ok_or_else(|| no_cursor(name))?;
        Ok(cursor.fields.clone())
    }
}

impl Cursor {
    /// K3.
    fn fail(&mut self) {
        (self.failed, self.rest) = (true, None);
        self.rows.clear();
    }

    /// Moves it; calls `each` with the rows that are passed, and returns how many these are.
    fn go(&mut self, step: Step, each: impl FnMut(&Stored, &[u8]) -> Result<()>) -> Result<u64> {
        self.pass(step, each).inspect_err(|_| self.fail())
    }

    fn pass(
        &mut self,
        step: Step,
        mut each: impl FnMut(&Stored, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let count = self.rows.len();
        let back = match step {
            Step::By(0) => (1..=count).contains(&self.at),
            Step::By(by) => by < 0,
            Step::To(to) => to <= self.at,
        };
        if back && self.forward_only {
            return Err(forward_only());
        }
        let mut told = 0;
        match step {
            Step::To(to) => {
                self.at = to.min(count + 1);
                if (1..=count).contains(&self.at) {
                    self.tell(&mut each)?;
                    told = 1;
                }
            }
            // The row that it stands on, again.
            Step::By(0) => {
                if (1..=count).contains(&self.at) {
                    self.tell(&mut each)?;
                    told = 1;
                }
            }
            Step::By(by) => {
                for _ in 0..by.unsigned_abs() {
                    self.at = if by > 0 {
                        (self.at + 1).min(count + 1)
                    } else {
                        self.at.saturating_sub(1)
                    };
                    if !(1..=count).contains(&self.at) {
                        break;
                    }
                    self.tell(&mut each)?;
                    told += 1;
                }
            }
        }
        Ok(told)
    }

    /// Hands over the row that it stands on.
    fn tell(&mut self, each: &mut impl FnMut(&Stored, &[u8]) -> Result<()>) -> Result<()> {
        each(&self.stored, self.rows.row(self.at - 1)?)
    }

    /// How many rows have to be read to go there; `None`: all.
    fn wanted(&self, direction: &FetchDirection) -> Result<Option<u64>> {
        use FetchDirection as D;
        let ahead = |by: i64| Some(self.at.saturating_add(u64::try_from(by).unwrap_or(0)));
        Ok(match direction {
            D::Next => ahead(1),
            D::First => Some(1),
            D::Prior | D::BackwardAll => Some(0),
            D::Last | D::All | D::ForwardAll => None,
            D::Count { limit } | D::Relative { limit } => ahead(number(limit)?),
            D::Forward { limit } => ahead(limit.as_ref().map_or(Ok(1), number)?),
            D::Backward { limit } => ahead(limit.as_ref().map_or(Ok(1), number)?.saturating_neg()),
            D::Absolute { limit } => u64::try_from(number(limit)?).ok(),
        })
    }

    /// Where a direction leads.
    fn step(&self, direction: &FetchDirection) -> Result<Step> {
        use FetchDirection as D;
        let count = self.rows.len();
        let absolute = |number: i64| {
            let distance = number.unsigned_abs();
            Step::To(if number >= 0 {
                distance
            } else {
                (count + 1).saturating_sub(distance)
            })
        };
        Ok(match direction {
            D::Next => Step::By(1),
            D::Prior => Step::By(-1),
            D::First => Step::To(1),
            D::Last => Step::To(count),
            D::All | D::ForwardAll => Step::By(i64::MAX),
            D::BackwardAll => Step::By(-i64::MAX),
            D::Count { limit } => Step::By(number(limit)?),
            D::Forward { limit } => Step::By(limit.as_ref().map_or(Ok(1), number)?),
            D::Backward { limit } => Step::By(-limit.as_ref().map_or(Ok(1), number)?),
            D::Absolute { limit } => absolute(number(limit)?),
            D::Relative { limit } => {
                let by = number(limit)?;
                let at = i64::try_from(self.at).unwrap_or(i64::MAX);
                match by {
                    0 => Step::By(0),
                    by => Step::To(u64::try_from(at.saturating_add(by)).unwrap_or(0)),
                }
            }
        })
    }
}

/// A move of a cursor.
#[derive(Clone, Copy)]
enum Step {
    /// Over so many rows, forward or back.
    By(i64),
    /// To the row of this number.
    To(u64),
}

/// How many rows a direction asks of what goes forward only; `None`: all that are left.
///
/// # Errors
/// `55000` for any other direction.
fn forward(direction: &FetchDirection) -> Result<Option<u64>> {
    use FetchDirection as D;
    let count = match direction {
        D::All | D::ForwardAll => return Ok(None),
        D::Next => 1,
        D::Count { limit } => number(limit)?,
        D::Forward { limit } => limit.as_ref().map_or(Ok(1), number)?,
        _ => -1,
    };
    u64::try_from(count).map(Some).map_err(|_| forward_only())
}

#[cold]
fn forward_only() -> SqlError {
    let text = "cursor can only scan forward";
    SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
        .with_hint("Declare it with SCROLL option to enable backward scan.")
}

fn number(limit: &ast::ValueWithSpan) -> Result<i64> {
    let ast::Value::Number(digits, _) = &limit.value else {
        return Err(SqlError::syntax(format!(
            "syntax error at or near \"{limit}\""
        )));
    };
    digits.parse().map_err(|_| {
        let message = format!("value \"{digits}\" is out of range for type integer");
        SqlError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message)
    })
}

/// That what a cursor is declared for is a query, and one whose rows stay where it can go back to them.
///
/// # Errors
/// `42601` for what writes, `0A000` and `42P11` for locks.
fn check_declared(declare: &ast::Declare, query: &ast::Query) -> Result<()> {
    let word = match query.body.as_ref() {
        ast::SetExpr::Insert(_) => "insert",
        ast::SetExpr::Update(_) => "update",
        ast::SetExpr::Delete(_) => "delete",
        ast::SetExpr::Merge(_) => "merge",
        _ => "",
    };
    if !word.is_empty() {
        let message = format!("syntax error at or near \"{word}\"");
        return Err(SqlError::syntax(message));
    }
    let Some(lock) = lock_of(query)? else {
        return Ok(());
    };
    let (state, message, what) = if declare.hold == Some(true) {
        let message = format!("DECLARE CURSOR WITH HOLD ... {lock} is not supported");
        (sqlstate::FEATURE_NOT_SUPPORTED, message, "Holdable")
    } else if declare.scroll == Some(true) {
        let message = format!("DECLARE SCROLL CURSOR ... {lock} is not supported");
        (sqlstate::FEATURE_NOT_SUPPORTED, message, "Scrollable")
    } else if declare.sensitive == Some(true) {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {lock} is not valid");
        (sqlstate::INVALID_CURSOR_DEFINITION, message, "Insensitive")
    } else {
        return Ok(());
    };
    let detail = format!("{what} cursors must be READ ONLY.");
    Err(SqlError::new(state, message).with_detail(detail))
}

impl Session {
    /// DECLARE.
    pub(super) fn declare(
        &mut self,
        declare: &ast::Declare,
        whole: &Prepared,
        given: Given<'_>,
    ) -> Result<CommandTag> {
        let (Some(name), Some(query), Some(inner)) =
            (declare.names.first(), &declare.for_query, &whole.inner)
        else {
            return Err(SqlError::syntax("a cursor needs a name and a query"));
        };
        check_declared(declare, query)?;
        if writes_in_with(query) {
            let text = "DECLARE CURSOR must not contain data-modifying statements in WITH";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        let name = folded(name);
        let hold = declare.hold == Some(true);
        if !hold {
            self.require_more_statements("DECLARE CURSOR")?;
        }
        if self.cursors.contains(&name) || self.portals.contains(&name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(sqlstate::DUPLICATE_CURSOR, message));
        }
        self.start_statement()?;
        let program = self.program_for(inner, given.bound)?;
        let (fields, stored) = (program.fields(), Stored::of(&program)?);
        let mut rows = RowStore::new(self.shared.queries.clone(), self.work_memory());
        let given = Given {
            bound: Some(&program),
            ..given
        };
        let rest = self.begin_pieces(&program, given.values)?;
        if rest.is_none() {
            self.run_program(inner, given, &[], Output::Store(&mut rows, &stored.schema))?;
        }
        let number = self.cursors.declared;
        self.cursors.declared += 1;
        let cursor = Cursor {
            fields,
            stored,
            rows,
            rest,
            at: 0,
            forward_only: declare.scroll == Some(false),
            format: match declare.binary {
                Some(true) => Format::Binary,
                _ => Format::Text,
            },
            hold,
            new: true,
            failed: false,
            number,
            text: whole.text.clone(),
            since: clock_time(),
        };
        self.cursors.by_name.insert(name, cursor);
        Ok(CommandTag::plain("DECLARE CURSOR"))
    }

    /// FETCH, and MOVE, which the parser reads as a FETCH into a place that no text can name.
    pub(super) fn fetch_cursor(
        &mut self,
        statement: &Statement,
        formats: &[Format],
        describe: bool,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let Statement::Fetch {
            name,
            direction,
            into,
            ..
        } = statement
        else {
            return Err(SqlError::internal("no FETCH"));
        };
        let name = folded(name);
        let moves = is_move(into.as_ref());
        if !self.cursors.contains(&name) && self.portals.contains(&name) {
            let count = forward(direction).inspect_err(|_| self.portals.fail(&name))?;
            return self.fetch_portal(&name, count, (moves, describe), formats, sink);
        }
        if into.is_some() && !moves {
            return Err(SqlError::syntax("syntax error at or near \"into\""));
        }
        let cursor = self.cursors.found(&name)?;
        let wanted = cursor.wanted(direction)?;
        let (fields, own) = (cursor.fields.clone(), [cursor.format]);
        let formats = if describe { &own } else { formats };
        self.read_cursor(&name, wanted)?;
        let cursor = self.cursors.found(&name)?;
        let step = cursor.step(direction)?;
        if moves {
            let moved = cursor.go(step, |_, _| Ok(()))?;
            return Ok(CommandTag::counted("MOVE", moved));
        }
        if describe {
            sink.row_description(&fields, formats).map_err(gone)?;
        }
        let told = self.tell_cursor(&name, step, formats, sink)?;
        Ok(CommandTag::counted("FETCH", told))
    }

    /// Reads on until so many rows of a cursor were read, or all.
    ///
    /// # Errors
    /// The query's.
    fn read_cursor(&mut self, name: &str, wanted: Option<u64>) -> Result<()> {
        let cursor = self.cursors.found(name)?;
        if cursor.failed {
            return Err(cannot_be_run(name));
        }
        let enough = wanted.is_some_and(|wanted| cursor.rows.len() >= wanted);
        if cursor.rest.is_none() || enough {
            return Ok(());
        }
        // Nothing that is run in pieces asks for cursors.
        let Some(mut cursor) = self.cursors.by_name.remove(name) else {
            return Ok(());
        };
        let done = self.read_pieces(&mut cursor.rest, wanted, (&mut cursor.rows, &cursor.stored));
        if done.is_err() {
            cursor.fail();
        }
        self.cursors.by_name.insert(name.to_owned(), cursor);
        done
    }

    /// Runs those WITH HOLD to their end that the transaction has declared, which is about to commit.
    ///
    /// # Errors
    /// Their queries'.
    pub(super) fn hold_cursors(&mut self) -> Result<()> {
        if self.cursors.by_name.is_empty() {
            return Ok(());
        }
        let held = self.cursors.by_name.iter();
        let held = held.filter(|(_, cursor)| cursor.hold && cursor.new && !cursor.failed);
        let mut held: Vec<_> = held
            .map(|(name, cursor)| (cursor.number, name.clone()))
            .collect();
        held.sort_unstable();
        held.iter()
            .try_for_each(|(_, name)| self.read_cursor(name, None))
    }

    /// Runs cursors to their end that read the session's transaction, as [`Session::end_pieces`] says.
    pub(super) fn end_cursors(&mut self, from: u64) -> Result<()> {
        // Nothing that is run in pieces asks for cursors.
        let mut cursors = std::mem::take(&mut self.cursors);
        let mut all = cursors.by_name.values_mut();
        let done = all.try_for_each(|cursor| {
            self.end_rest(&mut cursor.rest, from, (&mut cursor.rows, &cursor.stored))
        });
        self.cursors = cursors;
        done
    }

    /// Moves a cursor and tells the rows that are passed; returns how many these are.
    fn tell_cursor(
        &mut self,
        name: &str,
        step: Step,
        formats: &[Format],
        sink: &mut dyn Sink,
    ) -> Result<u64> {
        let (image, search_path) = (self.image().clone(), self.search_path());
        let rights = self.rights().clone();
        let cursor = self.cursors.found(name)?;
        let columns = u16::try_from(cursor.fields.len()).unwrap_or(u16::MAX);
        let (forms, body) = (&self.settings.forms, &mut self.body);
        let name_of = |ty, oid| match ty {
            Type::Regrole => reg_text_in(&rights, &search_path, ty, oid),
            _ => reg_text_in(&image, &search_path, ty, oid),
        };
        let mut text = String::new();
        cursor.go(step, |stored, row| {
            stored.encode(row, formats, (forms, &name_of), &mut text, body)?;
            sink.row(OutputRow::new(columns, body)).map_err(gone)
        })
    }

    /// Execute of a cursor that DECLARE has made: up to `max_rows` rows from where it stands (0: all).
    ///
    /// # Errors
    /// `34000`; `25P02`.
    pub(super) fn execute_cursor(
        &mut self,
        name: &str,
        max_rows: u32,
        sink: &mut dyn Sink,
    ) -> Result<Progress> {
        let found = self.cursors.by_name.get(name);
        let (text, at) = found
            .map(|cursor| (cursor.text.clone(), cursor.at))
            .ok_or_else(|| no_portal(name))?;
        self.refuse_in_failed_block()?;
        self.activity.runs(&text);
        self.start_statement()?;
        let by = if max_rows == 0 {
            i64::MAX
        } else {
            i64::from(max_rows)
        };
        let wanted = (max_rows > 0).then(|| at.saturating_add(u64::from(max_rows)));
        self.read_cursor(name, wanted)?;
        let told = self.tell_cursor(name, Step::By(by), &[], sink)?;
        self.pipelined = true;
        if max_rows > 0 && told == u64::from(max_rows) {
            return Ok(Progress::Suspended);
        }
        let tag = CommandTag::counted("SELECT", told);
        sink.command_complete(&tag).map_err(gone)?;
        Ok(Progress::Complete)
    }

    /// CLOSE.
    pub(super) fn close_cursor(&mut self, cursor: &ast::CloseCursor) -> Result<CommandTag> {
        match cursor {
            ast::CloseCursor::All => {
                self.cursors.close_all();
                return Ok(CommandTag::plain("CLOSE CURSOR ALL"));
            }
            ast::CloseCursor::Specific { name } => {
                let name = folded(name);
                let known = self.cursors.by_name.remove(&name).is_some();
                if !known && self.portals.remove(&name).is_none() {
                    return Err(no_cursor(&name));
                }
            }
        }
        Ok(CommandTag::plain("CLOSE CURSOR"))
    }
}

/// Whether a FETCH is a MOVE.
pub(super) fn is_move(into: Option<&ast::ObjectName>) -> bool {
    let first = into.and_then(|into| into.0.first());
    let ident = first.and_then(|part| part.as_ident());
    ident.is_some_and(|ident| ident.value == MOVE)
}

#[cold]
fn no_cursor(name: &str) -> SqlError {
    let message = format!("cursor \"{name}\" does not exist");
    SqlError::new(sqlstate::INVALID_CURSOR_NAME, message)
}
