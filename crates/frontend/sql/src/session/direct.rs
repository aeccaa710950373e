//! Statements of the program that has the database open, with values for parameters and values for rows.

use super::plans::Known;
use super::run::{Given, Output};
use super::simple::is_program;
use super::{Session, TransactionStatus};
use crate::direct::{Rows, RowsColumn, check_complete, no_copy};
use crate::error::{Result, SqlError};
use crate::parse::with_stack;
use crate::plan::Program;
use crate::sqlstate;
use crate::system::reg_text_in;
use crate::wire::Sink;
use sqlparser::ast::Statement;
use vellum_base::maps::HashMap;
use vellum_row::{Type, Typmod, Value, cast, is_ready};

impl Session {
    /// Runs one statement. Its rows are returned if it reads or changes rows; what a command has to say is told to the sink.
    ///
    /// # Errors
    /// The statement's. The session goes on.
    pub(crate) fn direct(
        &mut self,
        text: &str,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Option<Rows>> {
        self.cancel.start();
        self.start_clock();
        let done = with_stack(|| self.direct_inner(text, parameters, sink));
        match done {
            Ok(_) => self.stop_clock(),
            Err(_) => self.failed(),
        }
        self.rests();
        done
    }

    fn direct_inner(
        &mut self,
        text: &str,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Option<Rows>> {
        // Types that the values have are those of the parameters.
        let types: Vec<u32> = parameters
            .iter()
            .map(|value| value.ty().map_or(0, |ty| ty.oid()))
            .collect();
        let known = match self.plans.typed(text, &types) {
            Some(Known::Ready(prepared)) if !types.is_empty() => Some(prepared.clone()),
            _ => None,
        };
        let prepared = match known {
            Some(known) => known,
            None => {
                let statements = self.prepare_text(text)?;
                match statements.as_slice() {
                    [] => return Ok(None),
                    [one] => one.clone(),
                    _ => return Err(SqlError::syntax("one statement at a time")),
                }
            }
        };
        self.activity.runs(&prepared.text);
        if !is_program(&prepared.statement) {
            if matches!(prepared.statement, Statement::Copy { .. }) {
                return Err(no_copy());
            }
            check_complete(self.command(&prepared, Given::NONE, &[], true, sink)?)?;
            if self.status == TransactionStatus::Idle {
                self.end_implicit()?;
            }
            return Ok(None);
        }
        self.refuse_in_failed_block()?;
        let prepared = if prepared.parameter_types == types {
            prepared
        } else {
            let typed = Session::prepare_one(text, prepared.statement.clone(), &types);
            let ready = Known::Ready(typed.clone());
            self.plans.note(text, &types, ready);
            typed
        };
        self.start_statement()?;
        let program = self.program(&prepared)?;
        if program.params.len() != parameters.len() {
            let message = format!(
                "the statement has {} parameters, {} were given",
                program.params.len(),
                parameters.len()
            );
            return Err(SqlError::new(sqlstate::PROTOCOL_VIOLATION, message));
        }
        let mut params = Vec::with_capacity(parameters.len());
        for (value, ty) in parameters.iter().zip(&program.params) {
            let lent = value.as_ref();
            params.push(if lent.is_null() || is_ready(lent, *ty, Typmod::NONE) {
                value.clone()
            } else {
                cast(lent, *ty, Typmod::NONE, false, &self.settings.forms)?
            });
        }
        let mut rows = Vec::new();
        let given = Given {
            values: &params,
            bound: Some(&program),
        };
        let tag = self.run_program(&prepared, given, &[], Output::Values(&mut rows))?;
        rows.iter_mut()
            .try_for_each(|row| self.rows_as_shown(&program.records, row))?;
        let names = self.names_in(&program, &rows);
        self.end_implicit()?;
        let columns = program.columns.iter().map(|column| RowsColumn {
            name: column.name.clone(),
            ty: column.ty,
            typmod: column.typmod,
        });
        Ok(Some(Rows {
            columns: columns.collect(),
            rows,
            affected: tag.rows.unwrap_or(0),
            forms: self.settings.forms.clone(),
            names,
        }))
    }

    /// The names of the oids in arrays of what is a name as text.
    fn names_in(&self, program: &Program, rows: &[Vec<Value>]) -> HashMap<(Type, u32), String> {
        let mut names = HashMap::default();
        for (number, column) in program.columns.iter().enumerate() {
            let element = match column.ty {
                Type::Array(element) if element.ty().is_reg() => element.ty(),
                _ => continue,
            };
            let search_path = self.search_path();
            let arrays = rows.iter().filter_map(|row| match row.get(number) {
                Some(Value::Array(array)) => Some(array),
                _ => None,
            });
            for value in arrays.flat_map(|array| array.as_ref().items()) {
                if let Value::Oid(oid) = value {
                    let image = match element {
                        Type::Regrole => self.rights(),
                        _ => self.image(),
                    };
                    let name = || reg_text_in(image, &search_path, element, oid);
                    names.entry((element, oid)).or_insert_with(name);
                }
            }
        }
        names
    }
}
