//! EXECUTE, and GET DIAGNOSTICS.

use super::{Flow, Prepared, Session, Silent};
use crate::error::{Result, SqlError};
use crate::parse::{self, Executed, Targets, Told, selected_into, with_stack};
use crate::sqlstate::{self, SqlState};
use std::sync::Arc;
use vellum_row::{Type, Value};

/// Statements, and the values of their parameters.
pub(super) type WithValues = (Vec<Arc<Prepared>>, Vec<Value>);

impl Session {
    /// Runs a text, and keeps its first row where that is wanted.
    pub(super) fn code_execute(
        &mut self,
        executed: &Executed,
        targets: &Targets,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        let (statements, values) = self.executed(executed, handled, sink)?;
        let found = self.code_found;
        let done = match targets.names.is_empty() {
            true => with_stack(|| self.code_statements(&statements, &values, true, sink)),
            false => self
                .code_into(&statements, &values, targets, false, sink)
                .map(|_| Flow::Next),
        };
        // It tells of statements that stand in the code.
        self.code_found = found;
        done
    }

    /// What EXECUTE runs, with the values behind USING.
    ///
    /// # Errors
    /// `42601` for what is no text of SQL, and as [`Session::executed_text`].
    pub(super) fn executed(
        &mut self,
        executed: &Executed,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<WithValues> {
        let text = self.executed_text(&executed.text, handled, sink)?;
        if executed.using.is_empty() {
            return Ok((with_stack(|| self.prepare_text(&text))?, Vec::new()));
        }
        let (mut values, mut types) = (Vec::new(), Vec::new());
        for expression in &executed.using {
            let (value, ty) = self.code_value(expression, handled, sink)?;
            values.push(value);
            types.push(ty.oid());
        }
        crate::bind::refuse_kept(&text)?;
        let statements = with_stack(|| parse::statements(&text))?.into_iter();
        let statements = statements.map(|statement| Self::prepare_one(&text, statement, &types));
        Ok((statements.collect(), values))
    }

    /// The text that EXECUTE runs.
    ///
    /// # Errors
    /// `22004` for a null; `0A000`.
    fn executed_text(
        &mut self,
        text: &str,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<String> {
        let Some(text) = self.code_text(text, handled, sink)? else {
            let text = "query string argument of EXECUTE is null";
            return Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, text));
        };
        if selected_into(&text)?.is_some() {
            let text = "EXECUTE of SELECT ... INTO is not implemented";
            return Err(SqlError::unsupported(text));
        }
        Ok(text)
    }

    /// Gives variables what GET DIAGNOSTICS tells.
    ///
    /// # Errors
    /// `0Z002` of an error where none is handled.
    pub(super) fn code_get(
        &mut self,
        items: &[(String, Told)],
        handled: Option<&SqlError>,
    ) -> Result<()> {
        for (name, told) in items {
            if *told == Told::RowCount {
                let rows = i64::try_from(self.code_rows).unwrap_or(i64::MAX);
                self.assign(name, Value::Int8(rows), Type::Int8)?;
                continue;
            }
            let Some(error) = handled else {
                let text = "GET STACKED DIAGNOSTICS cannot be used outside an exception handler";
                return Err(SqlError::new(SqlState::of("0Z002"), text));
            };
            let fields = error.fields();
            let said = match told {
                Told::RowCount | Told::State => Some(fields.sqlstate.as_str()),
                Told::Message => Some(fields.message.as_str()),
                Told::Detail => fields.detail.as_deref(),
                Told::Hint => fields.hint.as_deref(),
                Told::Column => fields.column.as_deref(),
                Told::Constraint => fields.constraint.as_deref(),
                Told::DataType => fields.data_type.as_deref(),
                Told::Table => fields.table.as_deref(),
                Told::Schema => fields.schema.as_deref(),
            };
            self.assign(name, Value::text(said.unwrap_or_default()), Type::Text)?;
        }
        Ok(())
    }
}
