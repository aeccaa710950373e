//! Variables of code: declared, assigned, shown to the statements that name them.

use super::{Prepared, Session, Silent};
use crate::bind::Variable;
use crate::error::{Result, SqlError};
use crate::exec::bytes_of;
use crate::expr::{Form, RowType};
use crate::parse::{self, Declared, DeclaredType, Targets, with_stack};
use crate::plan::Program;
use crate::session::run::{Given, Output};
use crate::session::simple::is_program;
use crate::sqlstate::{self, SqlState};
use crate::system::reg_text_in;
use sqlparser::ast::Statement;
use std::collections::BTreeSet;
use std::sync::Arc;
use vellum_row::{CastContext, Type, Typmod, Value, cast, cast_between, output};

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

/// What a value is called while a domain looks at it.
const ASSIGNED: &str = "value_that_is_assigned";

impl CodeVariable {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn is_record(&self) -> bool {
        matches!(self.held, Held::Record(_))
    }

    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        match &self.held {
            Held::Value { value, .. } => bytes_of(value),
            Held::Record(row) => {
                let row = row.iter().flatten();
                row.map(|(name, value, _)| name.len() + bytes_of(value))
                    .sum()
            }
        }
    }

    /// One that no code declares: what a loop counts with, and what CASE compares.
    pub(super) fn of(name: &str, value: Value, ty: Type) -> Self {
        Self {
            name: name.to_owned(),
            held: Held::Value {
                value,
                ty,
                declared: ty.sql_name().to_owned(),
                not_null: false,
            },
        }
    }

    /// As statements name it: itself, or its fields.
    fn show(&self, all: &mut Vec<Variable>) {
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
    /// Shows the statement that comes what it names: of each name that of the innermost block, and of its records the innermost, which is meant where a field is named.
    pub(super) fn show_variables(&mut self, words: &BTreeSet<String>) {
        let mut shown: Vec<&CodeVariable> = Vec::new();
        for own in self.code_scope.iter().rev() {
            let hides = |inner: &&CodeVariable| {
                inner.name == own.name && (inner.is_record() || !own.is_record())
            };
            if words.contains(&own.name) && !shown.iter().any(hides) {
                own.show(&mut self.code_variables);
                shown.push(own);
            }
        }
    }

    /// # Errors
    /// `53200` if the variables take more than a statement may keep.
    pub(super) fn check_size(&self) -> Result<()> {
        let bytes: usize = self.code_scope.iter().map(CodeVariable::bytes).sum();
        match bytes > self.work_memory() {
            true => Err(SqlError::new(sqlstate::OUT_OF_MEMORY, "out of memory")
                .with_detail("The variables of the code exceed their limit.")
                .with_hint("Raise work_mem.")),
            false => Ok(()),
        }
    }

    /// The variables of a block, in their order: one may begin with what another holds.
    pub(super) fn declare_all(
        &mut self,
        declared: &[Declared],
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<()> {
        for own in declared {
            let declared = match &own.ty {
                DeclaredType::Record => None,
                DeclaredType::Written(text) => Some(text.clone()),
                DeclaredType::OfColumn { relation, column } => {
                    Some(self.type_of_column(relation, column)?)
                }
            };
            let held = match declared {
                None => Held::Record(None),
                Some(declared) => {
                    let (value, ty) = match &own.initial {
                        Some(text) => self.code_value(text, handled, sink)?,
                        None => (Value::Null, Type::Text),
                    };
                    let (value, ty) = self.cast_for(value, ty, &declared)?;
                    check_null(&own.name, own.not_null, &value)?;
                    Held::Value {
                        value,
                        ty,
                        declared,
                        not_null: own.not_null,
                    }
                }
            };
            self.code_scope.push(CodeVariable {
                name: own.name.clone(),
                held,
            });
        }
        self.check_size()
    }

    /// The type of a column, as it is written.
    ///
    /// # Errors
    /// `42601` for none, as PostgreSQL has it.
    fn type_of_column(&mut self, relation: &str, column: &str) -> Result<String> {
        let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let text = format!(
            "SELECT pg_catalog.format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute
             WHERE attrelid = pg_catalog.to_regclass({}) AND attname = {} AND attnum > 0 AND NOT attisdropped",
            literal(relation),
            literal(column)
        );
        self.code_variables.clear();
        let statements = with_stack(|| self.prepare_text(&text))?;
        let (found, _) = with_stack(|| self.only_value(&statements))?;
        match found {
            Value::Text(text) => Ok(text.to_string()),
            _ => Err(SqlError::syntax("syntax error at or near \"%\"")),
        }
    }

    /// A value as one of the type of a variable: as a column takes it, or by its text where no column would.
    ///
    /// # Errors
    /// `22001`, `22003`, `22P02` and their like; `42704` for no type; those of a domain's conditions.
    pub(super) fn cast_for(
        &mut self,
        value: Value,
        from: Type,
        declared: &str,
    ) -> Result<(Value, Type)> {
        self.code_variables.clear();
        let text = format!("SELECT CAST(NULL AS {declared})");
        let statements = with_stack(|| self.prepare_text(&text))?;
        let [prepared] = statements.as_slice() else {
            return Err(SqlError::syntax("a type of several statements"));
        };
        self.start_statement()?;
        let program = with_stack(|| self.program(prepared))?;
        let [column] = program.columns.as_slice() else {
            return Err(SqlError::syntax("a type of several columns"));
        };
        let (ty, typmod) = (column.ty, column.typmod);
        let forms = &self.settings.forms;
        let least = cast_between(from, ty);
        let taken = from == ty || least.is_some_and(|least| least <= CastContext::Assignment);
        let is_text = |ty: Type| ty.element().unwrap_or(ty).category() == 'S';
        let named =
            ty.is_reg() && from.category() == 'S' || Form::of(from).has_names() && is_text(ty);
        let value = match value {
            Value::Null => Value::Null,
            value if taken && !named => cast(value.as_ref(), ty, typmod, false, forms)?,
            value => {
                let shown = self.text_in_code(&value, from)?;
                let read = self.of_text(ty, Typmod::NONE, &shown)?;
                cast(read.as_ref(), ty, typmod, false, forms)?
            }
        };
        match column.domain {
            Some(_) => self.cast_to_domain(value, ty, declared),
            None => Ok((value, ty)),
        }
    }

    /// The text of a value: of oids that are shown as names, the names.
    ///
    /// # Errors
    /// `54000`.
    pub(super) fn text_in_code(&self, value: &Value, ty: Type) -> Result<String> {
        let (forms, search_path) = (&self.settings.forms, self.search_path());
        let name_of = |ty, oid| Ok(reg_text_in(self.image(), &search_path, ty, oid));
        let shown = Form::of(ty).text(value.as_ref(), forms, &name_of)?;
        let mut text = String::new();
        output(shown.as_ref(), forms, &mut text)?;
        Ok(text)
    }

    /// Makes rows, of which the code does not know what is in them, the texts that they are shown as.
    ///
    /// # Errors
    /// `54000`.
    pub(in crate::session) fn rows_as_shown(
        &self,
        records: &[Option<RowType>],
        values: &mut [Value],
    ) -> Result<()> {
        let records = records.iter().cloned();
        let forms = values.iter_mut().zip(records.map(Form::Row));
        for (value, form) in forms.filter(|(_, form)| form.makes_text()) {
            let (forms, search_path) = (&self.settings.forms, self.search_path());
            let name_of = |ty, oid| Ok(reg_text_in(self.image(), &search_path, ty, oid));
            *value = form.text(value.as_ref(), forms, &name_of)?;
        }
        Ok(())
    }

    /// A value of a domain's type as one of the domain.
    fn cast_to_domain(&mut self, value: Value, ty: Type, declared: &str) -> Result<(Value, Type)> {
        let text = format!("SELECT CAST({ASSIGNED} AS {declared})");
        let statements = with_stack(|| parse::statements(&text))?.into_iter();
        let statements = statements.map(|statement| Self::prepare_one(&text, statement, &[]));
        let statements: Vec<Arc<Prepared>> = statements.collect();
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

    /// The type of a variable; `None` of a record.
    pub(super) fn type_of_variable(&mut self, name: &str) -> Result<Option<Type>> {
        Ok(match &self.variable(name)?.held {
            Held::Value { ty, .. } => Some(*ty),
            Held::Record(_) => None,
        })
    }

    /// Gives a variable a value.
    pub(super) fn assign(&mut self, name: &str, value: Value, ty: Type) -> Result<()> {
        let (declared, not_null) = match &self.variable(name)?.held {
            Held::Record(_) => return Err(SqlError::internal("a record without fields")),
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
        self.check_size()
    }

    /// Gives a field of a record a value, which stays of its type.
    ///
    /// # Errors
    /// `55000`, `42703`, and as [`Session::cast_for`].
    pub(super) fn assign_field(
        &mut self,
        record: &str,
        field: &str,
        (value, from): (Value, Type),
    ) -> Result<()> {
        let Held::Record(held) = &self.variable(record)?.held else {
            return Err(SqlError::internal("a field of no record"));
        };
        let Some(row) = held else {
            let message = format!("record \"{record}\" is not assigned yet");
            let state = sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
            let detail = "The tuple structure of a not-yet-assigned record is indeterminate.";
            return Err(SqlError::new(state, message).with_detail(detail));
        };
        let Some(at) = row.iter().position(|(name, _, _)| name == field) else {
            let message = format!("record \"{record}\" has no field \"{field}\"");
            return Err(SqlError::new(sqlstate::UNDEFINED_COLUMN, message));
        };
        let ty = row[at].2;
        let declared = match ty {
            // Of any length, where `character` is of one.
            Type::Char => "bpchar".to_owned(),
            ty => self.settings.forms.name_of(ty).into_owned(),
        };
        let (value, _) = self.cast_for(value, from, &declared)?;
        if let Held::Record(Some(row)) = &mut self.variable(record)?.held {
            row[at].1 = value;
        }
        self.check_size()
    }

    /// Gives a record the row of another, or none.
    pub(super) fn assign_record(&mut self, record: &str, from: Option<&str>) -> Result<()> {
        let row = match from {
            None => None,
            Some(from) => match &self.variable(from)?.held {
                Held::Record(row) => row.clone(),
                Held::Value { .. } => return Err(SqlError::internal("a row of no record")),
            },
        };
        self.variable(record)?.held = Held::Record(row);
        self.check_size()
    }

    /// Sets the variable that a loop counts with.
    pub(super) fn count(&mut self, name: &str, value: i32) -> Result<()> {
        *self.variable(name)? = CodeVariable::of(name, Value::Int4(value), Type::Int4);
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
            return self.check_size();
        }
        for (at, name) in targets.names.iter().enumerate() {
            let ty = columns.get(at).map_or(Type::Text, |(_, ty)| *ty);
            self.assign(name, values.next().unwrap_or(Value::Null), ty)?;
        }
        Ok(())
    }

    /// Runs the only statement of a text of code, which has its variables: `work` is told it and its columns, and when it is begun.
    ///
    /// # Errors
    /// The statement's; `none` for one that returns nothing.
    pub(super) fn query_of_code<R>(
        &mut self,
        statements: &[Arc<Prepared>],
        none: fn() -> SqlError,
        sink: &mut Silent<'_>,
        work: impl FnOnce(&mut Self, &Prepared, &Program) -> Result<R>,
    ) -> Result<(Vec<(String, Type)>, R)> {
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
            let columns = columns.collect();
            Ok((columns, work(self, prepared, &program)?))
        });
        self.code_variables.clear();
        self.tell_kept(sink)?;
        done
    }

    /// Keeps the first row of a statement; whether there is one. `stands`: it stands in the code, and is no text that EXECUTE runs.
    ///
    /// # Errors
    /// `P0002` and `P0003` of other numbers of rows than STRICT, or a change of rows, lets there be.
    pub(super) fn code_into(
        &mut self,
        statements: &[Arc<Prepared>],
        params: &[Value],
        targets: &Targets,
        stands: bool,
        sink: &mut Silent<'_>,
    ) -> Result<bool> {
        let none = || SqlError::syntax("INTO used with a command that cannot return data");
        let changes = statements
            .iter()
            .any(|own| !matches!(own.statement, Statement::Query(_)));
        let one = targets.strict || stands && changes;
        let keep = |session: &mut Self, prepared: &Prepared, program: &Program| {
            let mut rows = Vec::new();
            let output = Output::First {
                rows: &mut rows,
                most: 1 + usize::from(one),
                stops: stands,
            };
            session.run_program(prepared, Given::read(params), &[], output)?;
            rows.iter_mut()
                .try_for_each(|row| session.rows_as_shown(&program.records, row))?;
            Ok(rows)
        };
        let (columns, rows) = self.query_of_code(statements, none, sink, keep)?;
        if targets.strict && rows.is_empty() {
            let text = "query returned no rows";
            return Err(SqlError::new(SqlState::of("P0002"), text));
        }
        if one && rows.len() > 1 {
            let text = "query returned more than one row";
            let error = SqlError::new(SqlState::of("P0003"), text);
            return Err(match stands {
                true => {
                    error.with_hint("Make sure the query returns a single row, or use LIMIT 1.")
                }
                false => error,
            });
        }
        let found = !rows.is_empty();
        self.code_rows = rows.len() as u64;
        self.assign_row(targets, &columns, rows.into_iter().next())?;
        Ok(found)
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
