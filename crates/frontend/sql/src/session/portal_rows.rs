//! Rows of portals: up to as many as an Execute asks for, and the rest of them with the next one.
//!
//! What is asked for all at once is told as it comes. A query that can be run in pieces (`pieces`) is run as far as its rows are asked for. Else a statement is run to its end, and its rows
//! are kept (`row_store`): other queries, changes with RETURNING, and commands that return rows, as EXPLAIN, SHOW, FETCH and EXECUTE do. Cursors that DECLARE has made are portals too, and the other way round.

use super::cursor::is_move;
use super::encode::Stored;
use super::extended::{Portal, cannot_be_run};
use super::named::check_columns;
use super::pieces::Rest;
use super::row_store::RowStore;
use super::run::{Output, Prepared};
use super::simple::is_program;
use super::{Progress, Session, gone, no_portal};
use crate::error::{Fields, Result, SqlError};
use crate::plan::Program;
use crate::sqlstate;
use crate::system::reg_text_in;
use crate::wire::{CommandTag, CopyShape, Field, Format, Gone, OutputRow, Sink, Told};
use sqlparser::ast::Statement;
use std::sync::Arc;
use vellum_row::Type;

/// Rows that a portal has found.
#[derive(Debug)]
pub(crate) struct Found {
    /// `None` if all were told at once, as it mostly is: apart, so that a portal is small.
    rows: Option<Box<Kept>>,
    /// How many of them were fetched.
    fetched: u64,
    columns: u16,
    tag: CommandTag,
    /// What the query ended with behind these rows.
    failure: Option<SqlError>,
}

/// Rows, in the order in which they are told.
#[derive(Debug)]
struct Kept {
    rows: RowStore,
    /// What they are kept as; `None`: as they are told. Commands have texts only, which are the same in binary.
    stored: Option<Stored>,
    /// Those that were not read yet.
    rest: Option<Box<Rest>>,
}

impl Found {
    /// All were told.
    fn told(tag: CommandTag) -> Self {
        let tag = CommandTag {
            rows: tag.rows.map(|_| 0),
            ..tag
        };
        Self {
            rows: None,
            fetched: 0,
            columns: 0,
            tag,
            failure: None,
        }
    }

    /// Whether there are rows to be read in the session's transaction by a query in pieces of this number or a later one.
    pub fn reads_own_from(&self, number: u64) -> bool {
        let rest = self.rows.as_ref().and_then(|kept| kept.rest.as_ref());
        rest.is_some_and(|rest| rest.reads_own_from(number))
    }

    /// Hands over up to so many of the rows that are left; returns how many, and whether that was the end of them.
    ///
    /// # Errors
    /// What the query ended with; what `each` fails with.
    fn take(
        &mut self,
        count: Option<u64>,
        mut each: impl FnMut(Option<&Stored>, &[u8]) -> Result<()>,
    ) -> Result<(u64, bool)> {
        let mut taken = 0;
        while count.is_none_or(|count| taken < count) {
            let kept = self.rows.as_mut();
            let Some(kept) = kept.filter(|kept| self.fetched < kept.rows.len()) else {
                return match self.failure.take() {
                    Some(failure) => Err(failure),
                    None => Ok((taken, true)),
                };
            };
            each(kept.stored.as_ref(), kept.rows.row(self.fetched)?)?;
            self.fetched += 1;
            taken += 1;
        }
        Ok((taken, false))
    }
}

impl Session {
    /// Whether a command returns rows, which it may if it has not been run without.
    ///
    /// # Errors
    /// `25P02`; as [`Session::command_fields`].
    pub(super) fn returns_rows(&mut self, statement: &Statement, done: bool) -> Result<bool> {
        let may = match statement {
            Statement::ShowVariable { .. } | Statement::Explain { .. } => true,
            Statement::Execute { .. } => true,
            Statement::Fetch { into, .. } => !is_move(into.as_ref()),
            _ => false,
        };
        if !may || done {
            return Ok(false);
        }
        self.refuse_in_failed_block()?;
        Ok(self.command_fields(statement)?.is_some())
    }

    /// Runs a portal whose statement returns rows, and tells up to `max_rows` of them (0: all).
    pub(super) fn fetch(
        &mut self,
        name: &str,
        portal: &mut Portal,
        prepared: &Arc<Prepared>,
        max_rows: u32,
        sink: &mut dyn Sink,
    ) -> Result<Progress> {
        self.refuse_in_failed_block()?;
        let has_run = portal.found.as_ref();
        let has_written = has_run.is_some_and(|found| found.tag.name != "SELECT");
        let returns = |program: &Arc<Program>| !program.columns.is_empty();
        if own(portal).is_some_and(|program| has_written && !returns(program)) {
            // There is nothing to fetch, and it is not to be done twice.
            return Err(cannot_be_run(name));
        }
        if portal.found.is_none() {
            if max_rows == 0 {
                let tag = self.tell_all(portal, prepared, sink)?;
                portal.found = Some(Found::told(tag));
                return Ok(Progress::Complete);
            }
            self.find(portal, prepared, sink)?;
        }
        let Some(found) = &mut portal.found else {
            return Ok(Progress::Complete);
        };
        let count = (max_rows > 0).then_some(u64::from(max_rows));
        self.read_on(found, count)?;
        let (told, all) = self.tell_found(found, count, &portal.formats, sink)?;
        if !all {
            return Ok(Progress::Suspended);
        }
        // The count is that of this Execute, unless nothing is returned.
        let counts = found.tag.name == "SELECT" || found.columns > 0;
        let tag = CommandTag {
            rows: match found.tag.rows {
                Some(_) if counts => Some(told),
                rows => rows,
            },
            ..found.tag
        };
        sink.command_complete(&tag).map_err(gone)?;
        Ok(Progress::Complete)
    }

    /// Runs a portal and tells its rows as they come.
    fn tell_all(
        &mut self,
        portal: &Portal,
        prepared: &Arc<Prepared>,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let formats = portal.formats.clone();
        if is_program(&prepared.statement) {
            self.start_statement()?;
            let output = Output::Tell(sink, false);
            let tag = self.run_program(prepared, portal.given(), &formats, output)?;
            sink.command_complete(&tag).map_err(gone)?;
            return Ok(tag);
        }
        let mut keeping = Keeping::new(sink, None);
        self.command(prepared, portal.given(), &formats, false, &mut keeping)?;
        Ok(keeping.tag)
    }

    /// Tells up to so many of the rows that a portal has found and that are left, in these formats; returns how many, and whether that was the end of them.
    ///
    /// # Errors
    /// As [`Found::take`].
    fn tell_found(
        &mut self,
        found: &mut Found,
        count: Option<u64>,
        formats: &[Format],
        sink: &mut dyn Sink,
    ) -> Result<(u64, bool)> {
        let (image, search_path) = (self.image().clone(), self.search_path());
        let rights = self.rights().clone();
        let name_of = |ty, oid| match ty {
            Type::Regrole => reg_text_in(&rights, &search_path, ty, oid),
            _ => reg_text_in(&image, &search_path, ty, oid),
        };
        let (forms, body, columns) = (&self.settings.forms, &mut self.body, found.columns);
        let mut text = String::new();
        found.take(count, |stored, row| {
            let told = match stored {
                None => row,
                Some(stored) => {
                    stored.encode(row, formats, (forms, &name_of), &mut text, body)?;
                    &**body
                }
            };
            sink.row(OutputRow::new(columns, told)).map_err(gone)
        })
    }

    /// Reads on until so many rows of a portal can be told, or all.
    ///
    /// # Errors
    /// The query's, where there is no row before it.
    fn read_on(&mut self, found: &mut Found, count: Option<u64>) -> Result<()> {
        let Some(kept) = &mut found.rows else {
            return Ok(());
        };
        let Some(stored) = kept.stored.as_ref().filter(|_| kept.rest.is_some()) else {
            return Ok(());
        };
        let left = kept.rows.len() - found.fetched;
        if count.is_some_and(|count| count <= left) {
            return Ok(());
        }
        // It goes forward only: what was told is not kept.
        let first = std::mem::take(&mut found.fetched);
        let mut unfetched = Vec::new();
        for number in first..first + left {
            unfetched.push(kept.rows.row(number)?.to_vec());
        }
        kept.rows.clear();
        for row in &unfetched {
            kept.rows.push(row)?;
        }
        match self.read_pieces(&mut kept.rest, count, (&mut kept.rows, stored)) {
            Err(error) if error.is_of_data() && kept.rows.len() > 0 => {
                kept.rest = None;
                found.failure = Some(error);
                Ok(())
            }
            done => done,
        }
    }

    /// Runs portals to their end that read the session's transaction, as [`Session::end_pieces`] says.
    pub(super) fn end_portals(&mut self, from: u64) -> Result<()> {
        // Nothing that is run in pieces asks for portals.
        let mut portals = std::mem::take(&mut self.portals);
        let mut done = Ok(());
        for portal in portals.all() {
            let found = portal.found.as_mut().and_then(|found| found.rows.as_mut());
            if let Some(kept) = found
                && let Some(stored) = &kept.stored
                && done.is_ok()
            {
                done = self.end_rest(&mut kept.rest, from, (&mut kept.rows, stored));
            }
        }
        self.portals = portals;
        done
    }

    /// Runs a portal and keeps its rows: to its end, unless it is run in pieces.
    ///
    /// # Errors
    /// The statement's.
    fn find(
        &mut self,
        portal: &mut Portal,
        prepared: &Arc<Prepared>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let mut rows = RowStore::new(self.shared.queries.clone(), self.work_memory());
        let (mut stored, mut rest) = (None, None);
        let (columns, tag, failure) = match own(portal) {
            Some(program) => {
                self.start_statement()?;
                let stored = stored.insert(Stored::of(program)?);
                let now = self.program_for(prepared, Some(program))?;
                check_columns(program, &now)?;
                rest = self.begin_pieces(&now, &portal.params)?;
                match &rest {
                    Some(_) => (now.columns.len(), CommandTag::counted("SELECT", 0), None),
                    None => {
                        let program = (&**prepared, &**program);
                        self.find_by_program(portal, program, (&mut rows, stored))?
                    }
                }
            }
            None => {
                let fields = self.command_fields(&prepared.statement)?;
                let formats = portal.formats.clone();
                let mut keeping = Keeping::new(sink, Some(&mut rows));
                let done = self.command(prepared, portal.given(), &formats, false, &mut keeping);
                let (tag, failed) = (keeping.tag, keeping.failed.take());
                failed.map_or(Ok(()), Err)?;
                done?;
                (fields.map_or(0, |fields| fields.len()), tag, None)
            }
        };
        portal.found = Some(Found {
            rows: Some(Box::new(Kept { rows, stored, rest })),
            fetched: 0,
            columns: u16::try_from(columns).unwrap_or(u16::MAX),
            tag,
            failure,
        });
        Ok(())
    }

    /// The same of a program. What a query fails with behind some rows is told when these are fetched, as if it had not been run further; what ends a
    /// statement from outside is told at once.
    fn find_by_program(
        &mut self,
        portal: &Portal,
        (prepared, program): (&Prepared, &Program),
        (rows, stored): (&mut RowStore, &Stored),
    ) -> Result<(usize, CommandTag, Option<SqlError>)> {
        let output = Output::Store(rows, &stored.schema);
        let done = self.run_program(prepared, portal.given(), &[], output);
        let (tag, failure) = match done {
            Ok(tag) => (tag, None),
            Err(error) if rows.len() == 0 || !error.is_of_data() => return Err(error),
            Err(error) if program.writes() => return Err(error),
            Err(error) => (CommandTag::counted("SELECT", 0), Some(error)),
        };
        Ok((program.columns.len(), tag, failure))
    }

    /// Columns of what FETCH of a cursor returns, or of a portal that Bind has made.
    ///
    /// # Errors
    /// `34000`; those of the portal's statement.
    pub(super) fn fetched_fields(&mut self, name: &str) -> Result<Arc<[Field]>> {
        let portal = self.portals.get(name);
        let known = portal.and_then(|portal| {
            let program = own(portal).cloned();
            portal.prepared.clone().zip(Some(program))
        });
        let (None, Some((prepared, program))) = (self.cursors.told(name), known) else {
            return self.cursors.fields(name);
        };
        self.portal_fields(&prepared, program.as_ref())
    }

    fn portal_fields(
        &mut self,
        prepared: &Prepared,
        program: Option<&Arc<Program>>,
    ) -> Result<Arc<[Field]>> {
        // It may be of itself, or of one that is of it: that would be asked for ever.
        if matches!(
            prepared.statement,
            Statement::Fetch { .. } | Statement::Execute { .. }
        ) {
            let text = "FETCH of a portal of FETCH or EXECUTE";
            return Err(SqlError::unsupported(text));
        }
        let fields = match program {
            Some(program) => program.returns.then(|| program.fields()),
            None => self.command_fields(&prepared.statement)?,
        };
        fields.ok_or_else(|| {
            let text = "FETCH of a portal that returns no rows";
            SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text)
        })
    }

    /// FETCH and MOVE of a portal that Bind has made. `count`: rows, `None` for all that are left.
    ///
    /// # Errors
    /// `0A000` for what returns no rows.
    pub(super) fn fetch_portal(
        &mut self,
        name: &str,
        count: Option<u64>,
        (moves, describe): (bool, bool),
        formats: &[Format],
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let mut portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        let done = self.fetch_of(name, &mut portal, count, (moves, describe), formats, sink);
        portal.fail_if(done.is_err());
        self.portals.insert(name, portal);
        done
    }

    fn fetch_of(
        &mut self,
        name: &str,
        portal: &mut Portal,
        count: Option<u64>,
        (moves, describe): (bool, bool),
        formats: &[Format],
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let prepared = portal.prepared.clone().ok_or_else(|| no_portal(name))?;
        if portal.failed {
            return Err(cannot_be_run(name));
        }
        self.start_statement()?;
        let fields = self.portal_fields(&prepared, own(portal))?;
        if !moves && describe {
            sink.row_description(&fields, formats).map_err(gone)?;
        }
        if portal.found.is_none() {
            self.find(portal, &prepared, sink)?;
        }
        let mut told = 0;
        if let Some(found) = &mut portal.found {
            self.read_on(found, count)?;
            (told, _) = match moves {
                true => found.take(count, |_, _| Ok(()))?,
                false => self.tell_found(found, count, formats, sink)?,
            };
        }
        let name = if moves { "MOVE" } else { "FETCH" };
        Ok(CommandTag::counted(name, told))
    }
}

/// The program of a portal's statement, if that is one.
fn own(portal: &Portal) -> Option<&Arc<Program>> {
    let prepared = portal.prepared.as_ref();
    let is_own = prepared.is_some_and(|prepared| is_program(&prepared.statement));
    portal.bound.as_ref().filter(|_| is_own)
}

/// A sink that keeps rows, or tells them, and remembers what the command has done.
struct Keeping<'k> {
    sink: &'k mut dyn Sink,
    rows: Option<&'k mut RowStore>,
    tag: CommandTag,
    failed: Option<SqlError>,
}

impl<'k> Keeping<'k> {
    fn new(sink: &'k mut dyn Sink, rows: Option<&'k mut RowStore>) -> Self {
        Self {
            sink,
            rows,
            tag: CommandTag::plain("SELECT"),
            failed: None,
        }
    }
}

impl Sink for Keeping<'_> {
    fn row_description(&mut self, fields: &[Field], formats: &[Format]) -> Told {
        match self.rows {
            Some(_) => Ok(()),
            None => self.sink.row_description(fields, formats),
        }
    }

    fn row(&mut self, row: OutputRow<'_>) -> Told {
        let Some(rows) = &mut self.rows else {
            return self.sink.row(row);
        };
        rows.push(row.body()).map_err(|error| {
            self.failed = Some(error);
            Gone
        })
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        self.tag = *tag;
        match self.rows {
            Some(_) => Ok(()),
            None => self.sink.command_complete(tag),
        }
    }

    fn empty_query(&mut self) -> Told {
        self.sink.empty_query()
    }

    fn notice(&mut self, notice: &Fields) -> Told {
        self.sink.notice(notice)
    }

    fn copy_in(&mut self, shape: &CopyShape) -> Told {
        self.sink.copy_in(shape)
    }

    fn copy_out(&mut self, shape: &CopyShape) -> Told {
        self.sink.copy_out(shape)
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Told {
        self.sink.copy_data(bytes)
    }

    fn copy_done(&mut self) -> Told {
        self.sink.copy_done()
    }
}
