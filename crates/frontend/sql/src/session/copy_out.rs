//! COPY to the client: the rows of a table or a query, written as they come.

use super::copy::{check_not_generated, column_twice, format_of_copy, is_generated, names};
use super::copy_binary;
use super::copy_options::Wanted;
use super::copy_text::{Header, Lines, write_field};
use super::run::{Given, Output};
use super::{Session, gone};
use crate::catalog::{Kind, Relation};
use crate::error::{Result, SqlError};
use crate::plan::ProgramKind;
use crate::sqlstate;
use crate::wire::{CommandTag, CopyShape, Format, Gone, OutputRow, Sink, Told};
use sqlparser::ast;

impl Session {
    /// The columns that are copied, as a list: without a list all that are not generated.
    pub(super) fn copied_columns(
        &self,
        name: &ast::ObjectName,
        columns: &[ast::Ident],
    ) -> Result<String> {
        let search_path = self.search_path();
        let binder = self.surroundings(&search_path, "").binder();
        let relation = binder.relation(name);
        let relation = relation.map_err(SqlError::without_place)?;
        let wrong = |what: &str| {
            let message = format!("cannot copy from {what} \"{}\"", relation.name);
            SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
        };
        match &relation.kind {
            Kind::View(_) => {
                let hint = "Try the COPY (SELECT ...) TO variant.";
                return Err(wrong("view").with_hint(hint));
            }
            Kind::Sequence(_) => return Err(wrong("sequence")),
            _ => {}
        }
        let folded: Vec<String> = columns.iter().map(crate::bind::folded).collect();
        for (at, name) in folded.iter().enumerate() {
            let known = match &relation.kind {
                Kind::System(definition) => definition.columns.iter().any(|own| own.name == name),
                _ => crate::plan::column_position(&relation, name).is_ok(),
            };
            if !known {
                return Err(no_column(&relation, name));
            }
            if folded[..at].contains(name) {
                return Err(column_twice(name));
            }
        }
        let listed = || names(folded.iter().map(String::as_str));
        let Some(table) = relation.table() else {
            return Ok(if columns.is_empty() {
                "*".to_owned()
            } else {
                listed()
            });
        };
        if !columns.is_empty() {
            let positions = folded.iter();
            let positions = positions.filter_map(|name| table.schema.position(name));
            check_not_generated(table, &positions.collect::<Vec<_>>())?;
            return Ok(listed());
        }
        let given = (0..table.schema.len()).filter(|at| !is_generated(table, *at));
        let given: Vec<usize> = given.collect();
        if given.len() == table.schema.len() {
            return Ok("*".to_owned());
        }
        let column = |at: &usize| &*table.schema.column(*at).name;
        Ok(names(given.iter().map(column)))
    }

    pub(super) fn copy_out(
        &mut self,
        query: &str,
        wanted: Wanted,
        table: Option<&ast::ObjectName>,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let prepared = self.prepare_text(query)?;
        let prepared = prepared.first().cloned();
        let prepared = prepared.ok_or_else(|| SqlError::internal("an empty query"))?;
        let program = self.program(&prepared)?;
        if !program.returns {
            let text = match program.kind {
                ProgramKind::Merge(_) => "MERGE not supported in COPY",
                _ => "COPY query must have a RETURNING clause",
            };
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        // The client is told of rows only if there may be some.
        if program.writes() {
            self.check_may_write(&program)?;
        }
        self.check_program(&program)?;
        let mut lines = wanted.lines;
        let names: Vec<&str> = program.columns.iter().map(|column| &*column.name).collect();
        lines.quoted = wanted
            .quoted
            .among(&names, |name| self.not_copied(name, table, "FORCE_QUOTE"))?;
        lines.single = program.columns.len() == 1;
        let lines = &lines;
        let columns = u16::try_from(program.columns.len()).unwrap_or(u16::MAX);
        let format = format_of_copy(lines);
        sink.copy_out(&CopyShape { format, columns })
            .map_err(gone)?;
        let mut first = Vec::new();
        if lines.binary {
            // In one piece with what follows, as drivers expect it.
            copy_binary::put_header(&mut first);
        } else if lines.header == Header::Line {
            let mut line = Vec::new();
            for (number, column) in program.columns.iter().enumerate() {
                if number > 0 {
                    line.push(lines.delimiter);
                }
                write_field(Some(column.name.as_bytes()), None, lines, &mut line);
            }
            line.push(b'\n');
            sink.copy_data(&line).map_err(gone)?;
        }
        let mut told = Copied {
            sink,
            lines,
            line: first,
            rows: 0,
        };
        let output = Output::Tell(&mut told, false);
        self.run_program(&prepared, Given::NONE, &[format], output)?;
        let (rows, mut last) = (told.rows, told.line);
        if lines.binary {
            last.extend_from_slice(&copy_binary::TRAILER);
            sink.copy_data(&last).map_err(gone)?;
        }
        sink.copy_done().map_err(gone)?;
        Ok(CommandTag::counted("COPY", rows))
    }
}

/// `42703`.
#[cold]
fn no_column(relation: &Relation, name: &str) -> SqlError {
    let message = format!(
        "column \"{name}\" of relation \"{}\" does not exist",
        relation.name
    );
    SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
}

/// A sink that rows are copied through.
struct Copied<'c> {
    sink: &'c mut dyn Sink,
    lines: &'c Lines,
    line: Vec<u8>,
    rows: u64,
}

impl Sink for Copied<'_> {
    fn row_description(&mut self, _: &[crate::wire::Field], _: &[Format]) -> Told {
        Ok(())
    }

    fn row(&mut self, row: OutputRow<'_>) -> Told {
        self.rows += 1;
        if self.lines.binary {
            // A row comes as its columns stand there.
            self.line.extend_from_slice(&row.columns().to_be_bytes());
            self.line.extend_from_slice(row.body());
            let done = self.sink.copy_data(&self.line);
            self.line.clear();
            return done;
        }
        for (number, column) in row.iter().enumerate() {
            if number > 0 {
                self.line.push(self.lines.delimiter);
            }
            write_field(column, Some(number), self.lines, &mut self.line);
        }
        self.line.push(b'\n');
        let done = self.sink.copy_data(&self.line);
        self.line.clear();
        done
    }

    fn command_complete(&mut self, _: &CommandTag) -> Told {
        Ok(())
    }

    fn empty_query(&mut self) -> Told {
        Ok(())
    }

    fn notice(&mut self, notice: &crate::error::Fields) -> Told {
        self.sink.notice(notice)
    }

    fn copy_in(&mut self, _: &CopyShape) -> Told {
        Err(Gone)
    }

    fn copy_out(&mut self, _: &CopyShape) -> Told {
        Err(Gone)
    }

    fn copy_data(&mut self, _: &[u8]) -> Told {
        Err(Gone)
    }

    fn copy_done(&mut self) -> Told {
        Err(Gone)
    }
}
