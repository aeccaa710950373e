//! Lines of a COPY whose rows go from their text into its load, without becoming values in between.
//!
//! Most lines are plain, and right: nothing in them is escaped, each field is one of its column. Their rows are written field by field. Any other line is left to who
//! reads lines into values (`copy`), so what is wrong with a line is said in one place.
//!
//! Invariants:
//! - C3 A line is loaded or left, whole: what was written of the row of one that is left is nobody's.

use super::copy::CopyIn;
use super::copy_ends::Newline;
use super::copy_place::place;
use super::copy_text::plain_line;
use super::{Open, Session};
use crate::error::{Result, SqlError};
use crate::expr::Form;
use crate::plan::{Insert, Program, ProgramKind};
use crate::rows;
use std::sync::Arc;
use vellum_row::{Settings, Type, Typmod, ValueRef};

/// Rows between two looks whether the statement is to end.
const STEPS: u64 = 256;

/// What a COPY loads lines with.
#[derive(Debug)]
pub(super) struct PlainLines {
    program: Arc<Program>,
    row: Vec<u8>,
    key: Vec<u8>,
    /// A text that is padded.
    padded: String,
}

impl PlainLines {
    fn insert(&self) -> Result<&Insert> {
        match &self.program.kind {
            ProgramKind::Insert(insert) => Ok(insert),
            _ => Err(SqlError::internal("a COPY that is no INSERT")),
        }
    }
}

impl Session {
    /// What lines are loaded with, if this COPY loads and a row is nothing but its fields.
    ///
    /// # Errors
    /// The INSERT's.
    pub(super) fn plain_lines(&self, copy: &CopyIn) -> Result<Option<PlainLines>> {
        if !self.is_loading() || !copy.ready || copy.ended || copy.lines.csv {
            return Ok(None);
        }
        // The catalog says what a name stands for.
        if copy.types.iter().any(|(ty, _)| Form::of(*ty).has_names()) {
            return Ok(None);
        }
        let program = self.program(&copy.insert)?;
        let lines = PlainLines {
            program,
            row: Vec::new(),
            key: Vec::new(),
            padded: String::new(),
        };
        let insert = lines.insert()?;
        let plain = insert.as_given && insert.rules.allow_all();
        Ok(plain.then_some(lines))
    }

    /// Loads lines from `start` on, as long as they are whole, plain and right. Returns where the first one begins that is left.
    ///
    /// # Errors
    /// Storage; `57014`.
    pub(super) fn load_lines(
        &self,
        lines: &mut PlainLines,
        copy: &mut CopyIn,
        bytes: &[u8],
        start: usize,
    ) -> Result<usize> {
        let Some(open) = &self.open else {
            return Ok(start);
        };
        let waiting = self.waiting(&self.cancel);
        let (mut at, before) = (start, copy.rows);
        while let Some(length) = memchr::memchr(b'\n', &bytes[at..]) {
            let line = &bytes[at..at + length];
            let line = match copy.ends.newline {
                Newline::Unknown | Newline::Feed => Some(line),
                Newline::Both => line.strip_suffix(b"\r"),
                Newline::Return => None,
            };
            let Some(line) = line.and_then(|line| plain_line(line, &copy.lines)) else {
                break;
            };
            let loaded = load_line(open, lines, copy, line, &self.settings.forms);
            let loaded =
                loaded.map_err(|error| error.with_context(place(&copy.table, copy.line + 1)))?;
            if !loaded {
                break;
            }
            if copy.ends.newline == Newline::Unknown {
                copy.ends.newline = Newline::Feed;
            }
            copy.line += 1;
            copy.rows += 1;
            at += length + 1;
            if copy.rows.is_multiple_of(STEPS) {
                waiting.look_cancelled()?;
            }
        }
        let loaded = copy.rows - before;
        for target in &lines.program.targets {
            if let Some(relation) = open.catalog.1.relation(*target) {
                relation.runtime.statistics.note_changed(loaded);
            }
        }
        Ok(at)
    }
}

/// Loads the row of a line; false, and it is left, if it cannot be done here.
fn load_line(
    open: &Open,
    lines: &mut PlainLines,
    copy: &CopyIn,
    line: &str,
    forms: &Settings,
) -> Result<bool> {
    let PlainLines {
        program,
        row,
        key,
        padded,
    } = lines;
    let ProgramKind::Insert(insert) = &program.kind else {
        return Ok(false);
    };
    let shape = &insert.shape;
    let schema = &shape.table().schema;
    row.clear();
    let mut writer = schema.writer(row);
    let mut ends = memchr::memchr_iter(copy.lines.delimiter, line.as_bytes()).chain([line.len()]);
    let mut start = 0;
    for ((ty, typmod), column) in copy.types.iter().zip(schema.columns()) {
        let Some(end) = ends.next() else {
            return Ok(false);
        };
        let field = &line[start..end];
        start = end + 1;
        let pushed = if field == copy.lines.null {
            if !column.nullable {
                return Ok(false);
            }
            writer.push(ValueRef::Null)?
        } else if let Some(text) = text_of((*ty, *typmod), field, padded) {
            writer.push(text)?
        } else {
            let Ok(value) = vellum_row::input(*ty, *typmod, field, forms) else {
                return Ok(false);
            };
            writer.push(value.as_ref())?
        };
        if !pushed {
            return Ok(false);
        }
    }
    if ends.next().is_some() || copy.types.len() != schema.len() {
        return Ok(false);
    }
    let view = schema.view(row)?;
    rows::key_of(
        &open.transaction,
        shape,
        |position| Ok(view.get(position)?),
        key,
    )?;
    Ok(open.transaction.load_row(key, row)?)
}

/// A text as it stands in its column, where that costs no look at its characters.
fn text_of<'t>(
    (ty, typmod): (Type, Typmod),
    field: &'t str,
    padded: &'t mut String,
) -> Option<ValueRef<'t>> {
    let length = typmod.length();
    match ty {
        // No text has more characters than bytes.
        Type::Text | Type::Varchar if length.is_none_or(|length| field.len() <= length) => {
            Some(ValueRef::Text(field))
        }
        Type::Char if field.is_ascii() && length.is_some_and(|length| field.len() <= length) => {
            let missing = length? - field.len();
            if missing == 0 {
                return Some(ValueRef::Char(field));
            }
            padded.clear();
            padded.push_str(field);
            padded.extend(std::iter::repeat_n(' ', missing));
            Some(ValueRef::Char(padded))
        }
        _ => None,
    }
}
