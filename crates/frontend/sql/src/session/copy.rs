//! COPY: rows from and to the client as text, csv (`copy_text`) or binary (`copy_binary`).
//!
//! Data from the client are cut anywhere; a row is worked off when its end has come. A quoted csv field may hold line ends. What has come of a row
//! stays where it is until then, so that a long one in many pieces costs no more than its bytes; one that is longer than
//! [`SessionOptions::copy_row_bytes_max`](super::SessionOptions) is refused.

use super::copy_binary::{self, Piece};
use super::copy_ends::Ends;
use super::copy_options::{Wanted, wanted};
use super::copy_text::{Header, Lines, bad, csv_fields, plain_line, text_fields};
use super::run::{Output, Prepared, Sets, only_reads};
use super::{Progress, Session, TransactionStatus, gone};
use crate::catalog::{Default, Kind, Mode, Oid, Table};
use crate::error::{Result, SqlError};
use crate::exec::Way;
use crate::parse::{copy_options, filtered, with_stack};
use crate::plan::Program;
use crate::sqlstate;
use crate::wire::{CommandTag, CopyShape, Format, Sink};
use sqlparser::ast::{self, CopySource, CopyTarget, Statement};
use std::sync::Arc;
use vellum_row::{Type, Typmod, Value};

/// A COPY from the client.
#[derive(Debug)]
pub(super) struct CopyIn {
    pub(super) insert: Arc<Prepared>,
    /// Its program as the COPY began: the types of its parameters stay those of the columns.
    bound: Arc<Program>,
    pub(super) types: Vec<(Type, Typmod)>,
    /// What is read is of these types and modifiers. (Elements of an array in binary form are taken as they come.)
    pub(super) ready: bool,
    pub(super) lines: Lines,
    /// What has come and is not worked off.
    pending: Vec<u8>,
    /// Where its lines end.
    pub(super) ends: Ends,
    pub(super) table: String,
    pub(super) line: u64,
    pub(super) rows: u64,
    /// What stands before the rows has come: of the binary form only.
    begun: bool,
    /// What is read of the row that `pending` begins with: of the binary form only.
    row: copy_binary::Begun,
    pub(super) ended: bool,
    /// No batch was inserted yet, and its rows may be loaded.
    first: bool,
    /// Rows are counted when they are inserted: some are left out.
    filters: bool,
    /// Statements of a pipeline may stand before it and behind it.
    pub(super) piped: bool,
    /// The names of what is copied.
    pub(super) columns: Box<[Box<str>]>,
    /// Rows that have come and are not inserted.
    batch: Batch,
}

/// Rows that are inserted together.
#[derive(Debug, Default)]
struct Batch {
    /// With the numbers of their lines, and where the texts of these end.
    rows: Vec<(u64, usize, Vec<Value>)>,
    /// The lines, one behind the other.
    texts: Vec<u8>,
    /// How long they, or the tuples that have come in their place, are together.
    bytes: usize,
}

impl Batch {
    /// The text of the line of a row.
    fn text(&self, at: usize) -> &[u8] {
        let end = |at: usize| self.rows.get(at).map_or(0, |(_, end, _)| *end);
        let start = at.checked_sub(1).map_or(0, end);
        &self.texts[start..end(at)]
    }
}

/// Rows that are inserted as one statement, unless their lines have more bytes than [`BATCH_BYTES`].
const BATCH_ROWS: usize = 128;
const BATCH_BYTES: usize = 256 << 10;

impl Session {
    pub(super) fn copy(
        &mut self,
        statement: &Statement,
        text: &str,
        simple: bool,
        sink: &mut dyn Sink,
    ) -> Result<Progress> {
        let Statement::Copy {
            source,
            to,
            target,
            values,
            ..
        } = statement
        else {
            return Err(SqlError::internal("no COPY"));
        };
        let wanted = wanted(&copy_options(values), *to)?;
        match target {
            // Either word, whichever way.
            CopyTarget::Stdin | CopyTarget::Stdout => {}
            _ => {
                let text = "COPY of files of the server is not allowed";
                return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, text)
                    .with_hint("Use COPY FROM STDIN or TO STDOUT; psql's \\copy reads files of the client."));
            }
        }
        self.start_statement()?;
        match source {
            CopySource::Query(query) if *to => {
                let tag = self.copy_out(&query.to_string(), wanted, None, sink)?;
                self.end_with_command(simple)?;
                sink.command_complete(&tag).map_err(gone)?;
                Ok(Progress::Complete)
            }
            CopySource::Table {
                table_name,
                columns,
            } if *to => {
                let list = self.copied_columns(table_name, columns)?;
                let query = format!("SELECT {list} FROM {table_name}");
                let tag = self.copy_out(&query, wanted, Some(table_name), sink)?;
                self.end_with_command(simple)?;
                sink.command_complete(&tag).map_err(gone)?;
                Ok(Progress::Complete)
            }
            CopySource::Table {
                table_name,
                columns,
            } => self.copy_in((table_name, columns, None), wanted, text, sink),
            CopySource::Query(query) => {
                let (table, columns, condition) =
                    filtered(query).ok_or_else(|| SqlError::internal("a COPY FROM a query"))?;
                self.copy_in((table, &columns, Some(condition)), wanted, text, sink)
            }
        }
    }

    /// What is wrong with a column of an option that is not copied.
    pub(super) fn not_copied(
        &self,
        name: &str,
        table: Option<&ast::ObjectName>,
        option: &str,
    ) -> SqlError {
        let Some(table) = table else {
            let message = format!("column \"{name}\" does not exist");
            return SqlError::new(sqlstate::UNDEFINED_COLUMN, message);
        };
        let search_path = self.search_path();
        let relation = self.surroundings(&search_path, "").binder().relation(table);
        let known = relation.and_then(|relation| {
            let position = crate::plan::column_position(&relation, name)?;
            let table = relation.table();
            table.map_or(Ok(()), |table| check_not_generated(table, &[position]))
        });
        known.err().unwrap_or_else(|| {
            let message = format!("{option} column \"{name}\" not referenced by COPY");
            SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, message)
        })
    }

    /// # Errors
    /// `25006`.
    fn check_may_copy(&self) -> Result<()> {
        match &self.open {
            Some(open) if open.characteristics.read_only => Err(only_reads("COPY FROM")),
            _ => Ok(()),
        }
    }

    /// Takes the gate of a table that rows are copied into. False if the image was not right about it, and is now.
    ///
    /// # Errors
    /// `42501` for who has lost the right meanwhile; those of waiting.
    fn enter_copied(&mut self, oid: Oid, program: &Program) -> Result<bool> {
        let cancel = self.cancel.clone();
        let mut waiting = self.waiting(&cancel);
        let Some(open) = &mut self.open else {
            return Err(SqlError::internal("a COPY without transaction"));
        };
        let right = open.enter(&self.shared, oid, Mode::Write, Some(&mut waiting))?;
        if !right {
            self.refresh_image()?;
        } else if open.look_at_rights(&self.shared) {
            self.check_program(program)?;
        }
        Ok(right)
    }

    /// Begins a COPY from the client, of the rows that a condition is true of.
    fn copy_in(
        &mut self,
        (table, columns, condition): (&ast::ObjectName, &[ast::Ident], Option<&ast::Expr>),
        wanted: Wanted,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<Progress> {
        let search_path = self.search_path();
        let binder = self.surroundings(&search_path, "").binder();
        let relation = binder.relation(table);
        let relation = relation.map_err(SqlError::without_place)?;
        if matches!(relation.kind, Kind::View(_)) {
            let message = format!("cannot copy to view \"{}\"", relation.name);
            let hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger.";
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message).with_hint(hint));
        }
        let Some(definition) = relation.table() else {
            let message = format!("cannot copy to \"{}\": it is not a table", relation.name);
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
        };
        let again = wanted.clone();
        let mut positions = Vec::new();
        if columns.is_empty() {
            let given = |at: &usize| !is_generated(definition, *at);
            positions.extend((0..definition.schema.len()).filter(given));
        }
        for column in columns {
            let name = crate::bind::folded(column);
            positions.push(crate::plan::column_position(&relation, &name)?);
        }
        check_not_generated(definition, &positions)?;
        let types: Vec<(Type, Typmod)> = positions
            .iter()
            .map(|at| {
                let column = definition.schema.column(*at);
                (column.ty, column.typmod)
            })
            .collect();
        let column = |at: &usize| &*definition.schema.column(*at).name;
        let copied: Vec<&str> = positions.iter().map(column).collect();
        for (at, name) in copied.iter().enumerate() {
            if copied[..at].contains(name) {
                return Err(column_twice(name));
            }
        }
        let Wanted {
            freeze,
            mut lines,
            not_null,
            is_null,
            ..
        } = wanted;
        let refuse = |option| {
            let session = &*self;
            move |name: &str| session.not_copied(name, Some(table), option)
        };
        lines.not_null = not_null.among(&copied, refuse("FORCE_NOT_NULL"))?;
        lines.is_null = is_null.among(&copied, refuse("FORCE_NULL"))?;
        let insert = match condition {
            Some(condition) => {
                self.filtered_insert((table, &relation), &positions, condition, text)?
            }
            None => {
                let list = names(copied.iter().copied());
                let params: Vec<String> =
                    (1..=positions.len()).map(|at| format!("${at}")).collect();
                let text = format!(
                    "INSERT INTO {table} ({list}) OVERRIDING SYSTEM VALUE VALUES ({})",
                    params.join(", ")
                );
                let insert = self.prepare_text(&text)?.first().cloned();
                insert.ok_or_else(|| SqlError::internal("an empty text"))?
            }
        };
        if freeze {
            self.check_frozen(&relation)?;
        }
        let names = copied.iter().map(|name| (*name).into()).collect();
        let bound = self.program(&insert)?;
        // Before a gate, and before the client is asked for rows: who may not write the table keeps nobody out of it.
        self.check_program(&bound)?;
        self.check_may_copy()?;
        // Whoever would change its columns waits for the rows, which are read by their types, as behind any writer.
        if !self.enter_copied(relation.oid, &bound)? {
            return self.copy_in((table, columns, condition), again, text, sink);
        }
        let shape = CopyShape {
            format: format_of_copy(&lines),
            columns: u16::try_from(types.len()).unwrap_or(u16::MAX),
        };
        sink.copy_in(&shape).map_err(gone)?;
        let is_array = |(ty, _): &(Type, Typmod)| matches!(ty, Type::Array(_));
        self.copy = Some(CopyIn {
            insert,
            bound,
            ready: !(lines.binary && types.iter().any(is_array)),
            types,
            lines,
            pending: Vec::new(),
            ends: Ends::new(),
            table: relation.name.to_string(),
            line: 0,
            rows: 0,
            begun: false,
            row: copy_binary::Begun::default(),
            ended: false,
            first: condition.is_none(),
            filters: condition.is_some(),
            piped: false,
            columns: names,
            batch: Batch::default(),
        });
        Ok(Progress::CopyIn)
    }

    /// More data of a COPY from the client, cut anywhere.
    ///
    /// # Errors
    /// The statement's: it is over, and data that still come are to be thrown away.
    pub fn copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(mut copy) = self.copy.take() else {
            return Err(no_copy());
        };
        copy.pending.extend_from_slice(bytes);
        let most = self.options.copy_row_bytes_max;
        let done = with_stack(|| {
            self.look_copy_over()?;
            let done = match self.copy_rows(&mut copy, false) {
                Ok(()) if copy.pending.len() > most => Err(row_is_too_long(most, &copy)),
                done => done,
            };
            self.first_error(&mut copy, done)
        });
        match done {
            Ok(()) => {
                self.copy = Some(copy);
                Ok(())
            }
            Err(error) => {
                self.failed();
                self.rests();
                Err(error)
            }
        }
    }

    /// # Errors
    /// What a COPY ends with that somebody has cancelled, or whose time is over.
    fn look_copy_over(&self) -> Result<()> {
        self.waiting(&self.cancel).look_cancelled()
    }

    /// Whether a COPY waits for data that is to end before they come: [`Session::end_copy`] says why.
    pub fn is_copy_over(&self) -> bool {
        self.copy.is_some() && self.look_copy_over().is_err()
    }

    /// Ends a COPY that waits for data and was cancelled, or whose time is over, as an error in its data would: what the client still sends of it is to be
    /// thrown away. Returns the error that the client is owed; none if there is no such COPY.
    pub fn end_copy(&mut self) -> Option<SqlError> {
        self.copy.as_ref()?;
        let error = self.look_copy_over().err()?;
        self.failed();
        self.rests();
        Some(error)
    }

    /// The end of a COPY's data. A simple query goes on with its next statement.
    ///
    /// # Errors
    /// The statement's.
    pub fn copy_done(&mut self, sink: &mut dyn Sink) -> Result<Progress> {
        let Some(mut copy) = self.copy.take() else {
            return Err(no_copy());
        };
        let done = with_stack(|| self.copy_end(&mut copy, sink));
        match done {
            Ok(Progress::CopyIn) => {}
            Ok(_) => self.stop_clock(),
            Err(_) => self.failed(),
        }
        self.rests();
        done
    }

    fn copy_end(&mut self, copy: &mut CopyIn, sink: &mut dyn Sink) -> Result<Progress> {
        self.look_copy_over()?;
        let done = self.copy_rows(copy, true);
        self.first_error(copy, done)?;
        if copy.lines.header == Header::Match && copy.line == 0 {
            // A line that is not there is an empty one.
            let done = check_header(&copy.columns, b"", &copy.lines);
            done.map_err(|error| copy.at_line(error, 1, Some(b"")))?;
        }
        self.insert_batch(copy)?;
        self.end_copy_load()?;
        if !copy.piped && self.rest.is_empty() && self.status == TransactionStatus::Idle {
            self.end_implicit()?;
        }
        let tag = CommandTag::counted("COPY", copy.rows);
        sink.command_complete(&tag).map_err(gone)?;
        self.stop_clock();
        self.run_rest(sink)
    }

    /// The client gives a COPY up. Returns the error that it is owed.
    pub fn copy_fail(&mut self, message: &str) -> SqlError {
        let message = format!("COPY from stdin failed: {message}");
        self.copy_given_up(SqlError::new(sqlstate::QUERY_CANCELED, message))
    }

    /// The client says something else in the middle of a COPY. Returns the error that it is owed.
    pub fn copy_broken(&mut self, kind: u8) -> SqlError {
        let message = format!("unexpected message type 0x{kind:02X} during COPY from stdin");
        self.copy_given_up(SqlError::new(sqlstate::PROTOCOL_VIOLATION, message))
    }

    fn copy_given_up(&mut self, error: SqlError) -> SqlError {
        let Some(copy) = self.copy.take() else {
            return no_copy();
        };
        self.failed();
        self.rests();
        copy.at_line(error, copy.line + 1, None)
    }

    /// Works off the rows that are whole.
    fn copy_rows(&mut self, copy: &mut CopyIn, last: bool) -> Result<()> {
        if copy.lines.binary {
            self.copy_tuples(copy, last)
        } else {
            self.copy_lines(copy, last)
        }
    }

    /// The same of the binary form.
    fn copy_tuples(&mut self, copy: &mut CopyIn, last: bool) -> Result<()> {
        let mut pending = std::mem::take(&mut copy.pending);
        let mut at = 0;
        if !copy.begun
            && let Piece::Whole((), length) = copy_binary::header(&pending)?
        {
            copy.begun = true;
            at = length;
        }
        while copy.begun && at < pending.len() {
            if copy.ended {
                return Err(bad("received copy data after EOF marker"));
            }
            let types = (&*copy.types, &self.settings.forms);
            let row = copy_binary::row(&pending[at..], types, &mut copy.row);
            match row {
                Err(error) => {
                    return Err(copy.at_line(error, copy.line + 1, None));
                }
                Ok(Piece::Partial) => break,
                Ok(Piece::Whole(None, length)) => {
                    copy.ended = true;
                    at += length;
                }
                Ok(Piece::Whole(Some(values), length)) => {
                    at += length;
                    copy.line += 1;
                    self.copy_row(copy, values, &[], length)?;
                }
            }
        }
        if last && (at < pending.len() || !copy.begun) {
            return Err(bad("unexpected EOF in COPY data"));
        }
        pending.drain(..at);
        copy.pending = pending;
        Ok(())
    }

    /// Works off the lines that are whole.
    fn copy_lines(&mut self, copy: &mut CopyIn, last: bool) -> Result<()> {
        let mut pending = std::mem::take(&mut copy.pending);
        let mut start = 0;
        let mut plain = self.plain_lines(copy)?;
        loop {
            if copy.ended {
                start = pending.len();
                break;
            }
            if let Some(plain) = &mut plain
                && copy.batch.rows.is_empty()
                && self.is_loading()
            {
                start = self.load_lines(plain, copy, &pending, start)?;
            }
            let found = copy.ends.line(&pending, start, last, &copy.lines);
            let found = found.map_err(|error| copy.at_line(error, copy.line + 1, None))?;
            let Some(found) = found else {
                break;
            };
            let line = &pending[start..found.end];
            start = found.next;
            copy.ended = found.last;
            if found.last && line.is_empty() {
                continue;
            }
            copy.line += 1;
            if copy.lines.header != Header::None && copy.line == 1 {
                if copy.lines.header == Header::Match {
                    let done = check_header(&copy.columns, line, &copy.lines);
                    done.map_err(|error| copy.at_line(error, 1, Some(line)))?;
                }
                continue;
            }
            match self.values_of(copy, line) {
                Ok(values) => self.copy_row(copy, values, line, line.len())?,
                Err(error) => return Err(copy.at_line(error, copy.line, Some(line))),
            }
            // Those behind it need not become values.
            if plain.is_some() && self.is_loading() {
                self.insert_batch(copy)?;
            }
        }
        copy.ends.taken(start);
        pending.drain(..start);
        copy.pending = pending;
        Ok(())
    }

    /// The values of a line.
    fn values_of(&self, copy: &CopyIn, line: &[u8]) -> Result<Vec<Value>> {
        if let Some(plain) = plain_line(line, &copy.lines) {
            return self.plain_values(copy, plain);
        }
        let fields = if copy.lines.csv {
            csv_fields(line, &copy.lines)?
        } else {
            text_fields(line, &copy.lines)
        };
        no_more_fields(fields.len(), copy)?;
        let mut values = Vec::with_capacity(fields.len());
        for (number, (field, (ty, typmod))) in fields.iter().zip(&copy.types).enumerate() {
            values.push(match field {
                None => Value::Null,
                Some(bytes) => {
                    let text = vellum_row::text_of_bytes(bytes)?;
                    let read = self.of_text(*ty, *typmod, text);
                    read.map_err(|error| copy.at_field(error, number, text))?
                }
            });
        }
        no_fewer_fields(values.len(), copy)?;
        Ok(values)
    }

    /// The same of a line whose fields stand there as they are.
    fn plain_values(&self, copy: &CopyIn, line: &str) -> Result<Vec<Value>> {
        let delimiter = copy.lines.delimiter;
        let ends = memchr::memchr_iter(delimiter, line.as_bytes());
        no_more_fields(ends.clone().count() + 1, copy)?;
        let mut values = Vec::with_capacity(copy.types.len());
        let mut start = 0;
        let ends = ends.chain([line.len()]);
        for (number, ((ty, typmod), end)) in copy.types.iter().zip(ends).enumerate() {
            let field = &line[start..end];
            start = end + 1;
            values.push(if field == copy.lines.null {
                Value::Null
            } else {
                let read = self.of_text(*ty, *typmod, field);
                read.map_err(|error| copy.at_field(error, number, field))?
            });
        }
        no_fewer_fields(values.len(), copy)?;
        Ok(values)
    }

    /// A row of a line (or tuple) of so many bytes: it is inserted with others.
    fn copy_row(
        &mut self,
        copy: &mut CopyIn,
        values: Vec<Value>,
        line: &[u8],
        bytes: usize,
    ) -> Result<()> {
        copy.rows += u64::from(!copy.filters);
        let batch = &mut copy.batch;
        batch.texts.extend_from_slice(line);
        batch.rows.push((copy.line, batch.texts.len(), values));
        batch.bytes += bytes;
        if is_full(batch) {
            self.insert_batch(copy)?;
        }
        Ok(())
    }

    fn insert_batch(&mut self, copy: &mut CopyIn) -> Result<()> {
        let mut batch = std::mem::take(&mut copy.batch);
        if batch.rows.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut copy.first) && is_full(&batch) {
            self.begin_copy_load(&copy.insert)?;
        }
        let way = if self.is_loading() {
            Way::Load
        } else {
            Way::Insert
        };
        let lists: Vec<&[Value]> = (batch.rows.iter())
            .map(|(.., values)| values.as_slice())
            .collect();
        let mut sets = Sets {
            ready: copy.ready,
            way,
            ..Sets::of(&lists, Some(&copy.bound))
        };
        let done = self.run_each(&copy.insert, &mut sets, &[], Output::Drop);
        match done {
            Ok(done) => {
                if copy.filters {
                    copy.rows += done.rows();
                }
            }
            Err(error) => {
                let at = sets.at;
                return Err(copy.at_row(error, batch.rows[at].0, batch.text(at)));
            }
        }
        // Their room is used again.
        batch.rows.clear();
        batch.texts.clear();
        batch.bytes = 0;
        copy.batch = batch;
        Ok(())
    }

    /// What a COPY ends with when data cannot be read: a row before them that is wrong comes first.
    fn first_error(&mut self, copy: &mut CopyIn, done: Result<()>) -> Result<()> {
        match done {
            Ok(()) => Ok(()),
            Err(error) => self.insert_batch(copy).and(Err(error)),
        }
    }
}

/// Whether a batch is inserted before more rows come.
fn is_full(batch: &Batch) -> bool {
    batch.rows.len() >= BATCH_ROWS || batch.bytes >= BATCH_BYTES
}

/// Asked before the first field is read.
fn no_more_fields(fields: usize, copy: &CopyIn) -> Result<()> {
    if fields > copy.types.len() {
        return Err(bad("extra data after last expected column"));
    }
    Ok(())
}

/// Asked when those that are there have been read: what is wrong with one of them is told first, as by PostgreSQL.
fn no_fewer_fields(fields: usize, copy: &CopyIn) -> Result<()> {
    if fields < copy.types.len() {
        let column = copy.columns.get(fields).map_or("", |name| name);
        return Err(bad(&format!("missing data for column \"{column}\"")));
    }
    Ok(())
}

/// # Errors
/// `22P04` for a first line that does not have these names.
fn check_header(expected: &[Box<str>], line: &[u8], lines: &Lines) -> Result<()> {
    let lines = Lines {
        not_null: Vec::new(),
        is_null: Vec::new(),
        ..lines.clone()
    };
    let fields = if lines.csv {
        csv_fields(line, &lines)?
    } else {
        text_fields(line, &lines)
    };
    let (got, wanted) = (fields.len(), expected.len());
    if got != wanted {
        let message =
            format!("wrong number of fields in header line: got {got}, expected {wanted}");
        return Err(bad(&message));
    }
    for (number, (field, name)) in (1..).zip(fields.iter().zip(expected)) {
        let got = match field {
            Some(field) if **field == *name.as_bytes() => continue,
            Some(field) => format!("\"{}\"", String::from_utf8_lossy(field)),
            None => format!("null value (\"{}\")", lines.null),
        };
        let message = format!(
            "column name mismatch in header line field {number}: got {got}, expected \"{name}\""
        );
        return Err(bad(&message));
    }
    Ok(())
}

/// `54000`: the end of a row does not come.
fn row_is_too_long(most: usize, copy: &CopyIn) -> SqlError {
    let message = format!("row of COPY is longer than {most} bytes");
    let error = SqlError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message);
    copy.at_line(error, copy.line + 1, None)
}

/// The format that a client is told of.
pub(super) fn format_of_copy(lines: &Lines) -> Format {
    if lines.binary {
        Format::Binary
    } else {
        Format::Text
    }
}

pub(super) fn is_generated(table: &Table, position: usize) -> bool {
    let column = table.schema.column(position).id;
    matches!(table.default_of(column), Some(Default::Generated(_)))
}

/// # Errors
/// `42P10`.
pub(super) fn check_not_generated(table: &Table, positions: &[usize]) -> Result<()> {
    let Some(at) = positions.iter().find(|at| is_generated(table, **at)) else {
        return Ok(());
    };
    let message = format!(
        "column \"{}\" is a generated column",
        table.schema.column(*at).name
    );
    let state = sqlstate::INVALID_COLUMN_REFERENCE;
    let detail = "Generated columns cannot be used in COPY.";
    Err(SqlError::new(state, message).with_detail(detail))
}

/// Names as SQL, each in quotes.
pub(super) fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names
        .map(|name| format!("\"{}\"", name.replace('"', "\"\"")))
        .collect();
    quoted.join(", ")
}

/// `42701`.
#[cold]
pub(super) fn column_twice(name: &str) -> SqlError {
    let message = format!("column \"{name}\" specified more than once");
    SqlError::new(sqlstate::DUPLICATE_COLUMN, message)
}

#[cold]
fn no_copy() -> SqlError {
    SqlError::new(sqlstate::PROTOCOL_VIOLATION, "no COPY is in progress")
}
