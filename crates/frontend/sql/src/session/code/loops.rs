//! Loops of code. The rows of a query are found before the first turn: what a turn changes is none of them.

use super::executed::WithValues;
use super::variables::CodeVariable;
use super::{Flow, Prepared, Session, Silent};
use crate::error::{Result, SqlError};
use crate::expr::RowType;
use crate::parse::{Step, Targets, Turns};
use crate::plan::Program;
use crate::session::encode::Stored;
use crate::session::row_store::RowStore;
use crate::session::run::{Given, Output};
use crate::sqlstate::{self, SqlState};
use vellum_row::{Type, Value};

/// The rows that a loop goes over.
struct Found {
    columns: Vec<(String, Type)>,
    /// What is in columns that are rows.
    records: Vec<Option<RowType>>,
    stored: Stored,
    rows: RowStore,
}

impl Found {
    fn row(&mut self, number: u64) -> Result<Vec<Value>> {
        let schema = &self.stored.schema;
        let row = schema.view(self.rows.row(number)?)?;
        let values = (0..schema.len()).map(|at| Ok(row.get(at)?.to_value()));
        values.collect()
    }
}

/// The number by which a loop is left, and its statements.
type Body<'s> = (usize, &'s [Step]);

impl Session {
    /// Runs the statements of a loop for each of its turns. FOUND tells then whether there was one, if it is a FOR.
    pub(super) fn code_loop(
        &mut self,
        turns: &Turns,
        body: Body<'_>,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        match turns {
            Turns::Forever => loop {
                if let Some(flow) = self.turn(body, handled, sink)? {
                    return Ok(flow);
                }
            },
            Turns::While(condition) => {
                while self.code_condition(condition, handled, sink)? {
                    if let Some(flow) = self.turn(body, handled, sink)? {
                        return Ok(flow);
                    }
                }
                Ok(Flow::Next)
            }
            Turns::Range {
                name,
                reverse,
                from,
                to,
                by,
            } => {
                let from = self.bound_of_loop(from, "lower bound", handled, sink)?;
                let to = self.bound_of_loop(to, "upper bound", handled, sink)?;
                let by = match by {
                    Some(by) => self.bound_of_loop(by, "BY value", handled, sink)?,
                    None => 1,
                };
                if by <= 0 {
                    let text = "BY value of FOR loop must be greater than zero";
                    return Err(SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, text));
                }
                let next = |at: i32| match reverse {
                    true => at.checked_sub(by).filter(|at| *at >= to),
                    false => at.checked_add(by).filter(|at| *at <= to),
                };
                let first = Some(from).filter(|from| match reverse {
                    true => *from >= to,
                    false => *from <= to,
                });
                let outer = self.code_scope.len();
                self.code_scope
                    .push(CodeVariable::of(name, Value::Int4(from), Type::Int4));
                let (mut at, mut left) = (first, Flow::Next);
                while let Some(number) = at {
                    self.count(name, number)?;
                    if let Some(flow) = self.turn(body, handled, sink)? {
                        left = flow;
                        break;
                    }
                    at = next(number);
                }
                self.code_scope.truncate(outer);
                self.code_found = first.is_some();
                Ok(left)
            }
            Turns::Rows { targets, query } => {
                let statements = self.prepare_code(query, handled)?;
                let rows = self.rows_of_loop(&(statements, Vec::new()), sink)?;
                self.each_row(targets, rows, body, handled, sink)
            }
            Turns::Executed { targets, executed } => {
                let executed = self.executed(executed, handled, sink)?;
                let rows = self.rows_of_loop(&executed, sink)?;
                self.each_row(targets, rows, body, handled, sink)
            }
            Turns::Elements { name, array } => {
                let (array, ty) = self.code_value(array, handled, sink)?;
                self.each_element(name, (array, ty), body, handled, sink)
            }
        }
    }

    /// The rows of a query, in memory or in a file.
    fn rows_of_loop(
        &mut self,
        (statements, values): &WithValues,
        sink: &mut Silent<'_>,
    ) -> Result<Found> {
        let keep = |session: &mut Self, prepared: &Prepared, program: &Program| {
            let stored = Stored::of(program)?;
            let memory = session.work_memory();
            let mut rows = RowStore::new(session.shared.queries.clone(), memory);
            let output = Output::Store(&mut rows, &stored.schema);
            session.run_program(prepared, Given::read(values), &[], output)?;
            Ok((program.records.clone(), stored, rows))
        };
        let found = self.query_of_code(statements, no_cursor, sink, keep)?;
        let (columns, (records, stored, rows)) = found;
        Ok(Found {
            columns,
            records,
            stored,
            rows,
        })
    }

    fn each_row(
        &mut self,
        targets: &Targets,
        mut found: Found,
        body: Body<'_>,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        let (count, mut left) = (found.rows.len(), Flow::Next);
        if count == 0 {
            self.assign_row(targets, &found.columns, None)?;
        }
        for number in 0..count {
            let mut row = found.row(number)?;
            self.rows_as_shown(&found.records, &mut row)?;
            self.assign_row(targets, &found.columns, Some(row))?;
            if let Some(flow) = self.turn(body, handled, sink)? {
                left = flow;
                break;
            }
        }
        self.code_found = count > 0;
        Ok(left)
    }

    /// The elements of an array, of however many dimensions, one after the other.
    ///
    /// # Errors
    /// `22004` for a null, `42804` for what is no array, and for a variable that can be no element.
    fn each_element(
        &mut self,
        name: &str,
        (array, ty): (Value, Type),
        body: Body<'_>,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        let wrong = |text: String| SqlError::new(sqlstate::DATATYPE_MISMATCH, text);
        let (array, element) = match (&array, ty.element()) {
            (Value::Null, _) => {
                let text = "FOREACH expression must not be null";
                return Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, text));
            }
            (Value::Array(array), Some(element)) => (array.as_ref(), element),
            _ => {
                let shown = ty.sql_name();
                return Err(wrong(format!(
                    "FOREACH expression must yield an array, not type {shown}"
                )));
            }
        };
        match self.type_of_variable(name)? {
            Some(Type::Array(_)) => {
                let text = "FOREACH loop variable must not be of an array type";
                return Err(wrong(text.to_owned()));
            }
            None if !array.is_empty() => {
                let text = "cannot assign non-composite value to a record variable";
                return Err(wrong(text.to_owned()));
            }
            _ => {}
        }
        let mut left = Flow::Next;
        for value in array.items() {
            self.assign(name, value, element)?;
            if let Some(flow) = self.turn(body, handled, sink)? {
                left = flow;
                break;
            }
        }
        self.code_found = !array.is_empty();
        Ok(left)
    }

    /// One turn; how the loop is left, if it is.
    fn turn(
        &mut self,
        (number, steps): Body<'_>,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Option<Flow>> {
        self.waiting(&self.cancel).look_cancelled()?;
        Ok(match self.code_steps(steps, handled, sink)? {
            Flow::Next => None,
            Flow::Continue(own) if own == number => None,
            Flow::Exit(own) if own == number => Some(Flow::Next),
            flow => Some(flow),
        })
    }

    /// A number of a loop.
    ///
    /// # Errors
    /// `22004` for a null.
    fn bound_of_loop(
        &mut self,
        text: &str,
        what: &str,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<i32> {
        let (value, ty) = self.code_value(text, handled, sink)?;
        match self.cast_for(value, ty, "integer")? {
            (Value::Int4(number), _) => Ok(number),
            _ => {
                let message = format!("{what} of FOR loop cannot be null");
                Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, message))
            }
        }
    }
}

/// `42P11`.
#[cold]
fn no_cursor() -> SqlError {
    let text = "cannot open a query that returns no rows as cursor";
    SqlError::new(SqlState::of("42P11"), text)
}
