//! Variables of code: declared, assigned, shown to the statements that name them.

use super::{Prepared, Session, Silent, mentions};
use crate::bind::Variable;
use crate::error::{Result, SqlError};
use crate::parse::{self, Declared, Targets, with_stack};
use crate::session::run::Output;
use crate::session::simple::is_program;
use crate::sqlstate::{self, SqlState};
use std::sync::Arc;
use vellum_row::{Type, Value};

/// A variable of a block.
#[derive(Debug)]
pub(in crate::session) struct CodeVariable {
    name: String,
    held: Held,
}

/// What it holds.
#[derive(Debug)]
enum Held {
    Value {
        value: Value,
        ty: Type,
        /// Its type as it was declared.
        declared: String,
        not_null: bool,
    },
    /// A row, if it was given one.
    Record(Option<Row>),
}

/// The columns of a row.
type Row = Vec<(String, Value, Type)>;

/// What a value that is cast for a variable is called meanwhile.
const ASSIGNED: &str = "value_that_is_assigned";

impl CodeVariable {
    /// An integer that a loop counts with.
    pub(super) fn counter(name: &str, value: i32) -> Self {
        Self {
            name: name.to_owned(),
            held: Held::Value {
                value: Value::Int4(value),
                ty: Type::Int4,
                declared: "integer".to_owned(),
                not_null: false,
            },
        }
    }

    /// As statements name it: itself, or its fields.
    pub(super) fn show(&self, all: &mut Vec<Variable>) {
        let of_record = |record: Option<&String>, name: &str, value: &Value, ty: Type| Variable {
            record: record.cloned(),
            name: name.to_owned(),
            value: value.clone(),
            ty,
        };
        match &self.held {
            Held::Value { value, ty, .. } => all.push(of_record(None, &self.name, value, *ty)),
            Held::Record(None) => {
                all.push(of_record(Some(&self.name), "", &Value::Null, Type::Text));
            }
            Held::Record(Some(row)) => {
                let fields = row.iter();
                all.extend(
                    fields.map(|(name, value, ty)| of_record(Some(&self.name), name, value, *ty)),
                );
            }
        }
    }
}

impl Session {
    /// Whether a text may name a variable that was declared.
    pub(super) fn names_variables(&self, text: &str) -> bool {
        let mut scope = self.code_scope.iter();
        scope.any(|own| mentions(text, &[own.name.to_ascii_lowercase().as_str()]))
    }

    /// The variables of a block, in their order: one may begin with what another holds.
    pub(super) fn declare_all(
        &mut self,
        declared: &[Declared],
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<()> {
        for own in declared {
            let held = match &own.ty {
                None => Held::Record(None),
                Some(declared) => {
                    let (value, ty) = match &own.initial {
                        Some(text) => self.code_value(text, handled, sink)?,
                        None => (Value::Null, Type::Text),
                    };
                    let (value, ty) = self.cast_for(value, ty, declared)?;
                    check_null(&own.name, own.not_null, &value)?;
                    Held::Value {
                        value,
                        ty,
                        declared: declared.clone(),
                        not_null: own.not_null,
                    }
                }
            };
            self.code_scope.push(CodeVariable {
                name: own.name.clone(),
                held,
            });
        }
        Ok(())
    }

    /// A value as one of the type of a variable.
    fn cast_for(&mut self, value: Value, ty: Type, declared: &str) -> Result<(Value, Type)> {
        let text = format!("SELECT CAST({ASSIGNED} AS {declared})");
        let statements = with_stack(|| parse::statements(&text))?.into_iter();
        let statements = statements.map(|statement| Self::prepare_one(&text, statement, &[]));
        let statements: Vec<Arc<Prepared>> = statements.collect();
        self.code_variables.clear();
        self.code_variables.push(Variable {
            record: None,
            name: ASSIGNED.to_owned(),
            value,
            ty,
        });
        let done = with_stack(|| self.only_value(&statements));
        self.code_variables.clear();
        done
    }

    fn variable(&mut self, name: &str) -> Result<&mut CodeVariable> {
        let mut scope = self.code_scope.iter_mut().rev();
        let found = scope.find(|own| own.name == name);
        found.ok_or_else(|| SqlError::internal("a variable that was not declared"))
    }

    /// Gives a variable a value.
    pub(super) fn assign(&mut self, name: &str, value: Value, ty: Type) -> Result<()> {
        let (declared, not_null) = match &self.variable(name)?.held {
            Held::Record(_) => return Err(SqlError::unsupported("a record that is assigned to")),
            Held::Value {
                declared, not_null, ..
            } => (declared.clone(), *not_null),
        };
        let (value, ty) = self.cast_for(value, ty, &declared)?;
        check_null(name, not_null, &value)?;
        self.variable(name)?.held = Held::Value {
            value,
            ty,
            declared,
            not_null,
        };
        Ok(())
    }

    /// Sets the variable that a loop counts with.
    pub(super) fn count(&mut self, name: &str, value: i32) -> Result<()> {
        *self.variable(name)? = CodeVariable::counter(name, value);
        Ok(())
    }

    /// Gives a row to its targets. What a list has more of than the row is null, as is all where there is no row.
    pub(super) fn assign_row(
        &mut self,
        targets: &Targets,
        columns: &[(String, Type)],
        row: Option<Vec<Value>>,
    ) -> Result<()> {
        let nulls = || vec![Value::Null; columns.len()];
        let mut values = row.unwrap_or_else(nulls).into_iter();
        if let [name] = targets.names.as_slice()
            && let Held::Record(held) = &mut self.variable(name)?.held
        {
            let named = columns.iter().zip(values);
            *held = Some(
                named
                    .map(|((name, ty), value)| (name.clone(), value, *ty))
                    .collect(),
            );
            return Ok(());
        }
        for (at, name) in targets.names.iter().enumerate() {
            let ty = columns.get(at).map_or(Type::Text, |(_, ty)| *ty);
            self.assign(name, values.next().unwrap_or(Value::Null), ty)?;
        }
        Ok(())
    }

    /// The columns and rows of the only statement of a text of code, which has its variables.
    ///
    /// # Errors
    /// The statement's; `none` for one that returns nothing.
    pub(super) fn code_rows(
        &mut self,
        statements: &[Arc<Prepared>],
        none: fn() -> SqlError,
        sink: &mut Silent<'_>,
    ) -> Result<(Vec<(String, Type)>, Vec<Vec<Value>>)> {
        let [prepared] = statements else {
            return Err(SqlError::syntax("a query of several statements"));
        };
        if !is_program(&prepared.statement) {
            return Err(none());
        }
        let done = with_stack(|| {
            self.start_statement()?;
            let program = self.program(prepared)?;
            if !program.returns {
                return Err(none());
            }
            let columns = program.columns.iter();
            let columns = columns.map(|column| (column.name.clone(), column.ty));
            let columns: Vec<(String, Type)> = columns.collect();
            let mut rows = Vec::new();
            self.run_program(prepared, &[], &[], Output::Values(&mut rows))?;
            Ok((columns, rows))
        });
        self.code_variables.clear();
        self.tell_kept(sink)?;
        done
    }

    /// Keeps the first row of a statement; how many it has.
    pub(super) fn code_into(
        &mut self,
        statements: &[Arc<Prepared>],
        targets: &Targets,
        sink: &mut Silent<'_>,
    ) -> Result<usize> {
        let none = || SqlError::syntax("INTO used with a command that cannot return data");
        let (columns, rows) = self.code_rows(statements, none, sink)?;
        let count = rows.len();
        if targets.strict && count != 1 {
            let (state, text) = match count {
                0 => ("P0002", "query returned no rows"),
                _ => ("P0003", "query returned more than one row"),
            };
            return Err(SqlError::new(SqlState::of(state), text));
        }
        self.assign_row(targets, &columns, rows.into_iter().next())?;
        Ok(count)
    }
}

/// # Errors
/// `22004`.
fn check_null(name: &str, not_null: bool, value: &Value) -> Result<()> {
    if !not_null || !value.is_null() {
        return Ok(());
    }
    let message = format!("null value cannot be assigned to variable \"{name}\" declared NOT NULL");
    Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, message))
}
