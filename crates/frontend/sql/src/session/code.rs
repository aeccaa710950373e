//! DO: code that is run once, its statements one after the other in the transaction of the DO.
//!
//! A block with EXCEPTION has a savepoint: what it has done until an error is taken back before that is handled. Cancelling, the end of the time that all of it has, and the end of the server are no errors that a block handles.
//!
//! What is not read, and what cannot stand in code, is refused before anything runs: a block cannot handle it.
//!
//! Its variables are those that it declares, FOUND, and in handlers SQLERRM and SQLSTATE. A statement that names one is compiled each time that it runs, with the value. They keep their values when a
//! block is taken back.
//!
//! Not here: what code says (`parse/code`).

mod choices;
mod executed;
mod loops;
mod variables;

pub(super) use variables::CodeVariable;

use super::blocks::stands_alone;
use super::run::{Given, Output, Prepared};
use super::simple::is_program;
use super::{Progress, Session};
use crate::bind::Variable;
use crate::error::{Fields, Result, SqlError};
use crate::parse::{self, state_of, states_named, with_stack};
use crate::parse::{CodeBlock, Command, Condition, Raise, Step, code, executed, names_in};
use crate::sqlstate::{self, SqlState};
use crate::wire::{CommandTag, CopyShape, Field, Format, OutputRow, Sink, Told};
use sqlparser::ast::{CreateTable, SetExpr, Statement};
use std::collections::BTreeSet;
use std::sync::Arc;
use vellum_row::{Type, Typmod, Value, output};

/// The savepoint of a block: a name that no text can have.
const POINT: &str = "the savepoint of a block of code, longer than any name in a text";

/// DOs inside each other.
const CODE_DEPTH: usize = 20;

/// Names of the variables.
const VARIABLES: [&str; 3] = ["found", "sqlerrm", "sqlstate"];

/// How a list of statements ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// The loop of that number, or the block, is at its end; the loop goes on.
    Exit(usize),
    Continue(usize),
    Return,
}

/// What hears the statements of code: notices go on, all else is passed over, but for how many rows the last one had.
struct Silent<'s> {
    sink: &'s mut dyn Sink,
    rows: u64,
}

impl Sink for Silent<'_> {
    fn row_description(&mut self, _: &[Field], _: &[Format]) -> Told {
        Ok(())
    }

    fn row(&mut self, _: OutputRow<'_>) -> Told {
        Ok(())
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        self.rows = tag.rows();
        Ok(())
    }

    fn empty_query(&mut self) -> Told {
        Ok(())
    }

    fn notice(&mut self, notice: &Fields) -> Told {
        self.sink.notice(notice)
    }

    fn copy_in(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }

    fn copy_out(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }

    fn copy_data(&mut self, _: &[u8]) -> Told {
        Ok(())
    }

    fn copy_done(&mut self) -> Told {
        Ok(())
    }
}

impl Session {
    /// Runs the code of a DO.
    ///
    /// # Errors
    /// `42601`, `0A000` for what is no code; its statements'. What it has done then is the transaction's to take back.
    pub(super) fn run_code(&mut self, text: &str, sink: &mut dyn Sink) -> Result<CommandTag> {
        if self.code_depth >= CODE_DEPTH {
            return Err(crate::parse::too_deep());
        }
        // Its places are those of its own text.
        let block = code(text, refuse).map_err(SqlError::of_other_text)?;
        self.start_statement()?;
        // Nothing in it has a transaction of its own.
        let several = std::mem::replace(&mut self.several, true);
        let found = std::mem::replace(&mut self.code_found, false);
        let rows = std::mem::replace(&mut self.code_rows, 0);
        let variables = std::mem::take(&mut self.code_variables);
        let scope = std::mem::take(&mut self.code_scope);
        self.code_depth += 1;
        let mut silent = Silent { sink, rows: 0 };
        let done = self.code_block(&block, None, &mut silent);
        self.code_depth -= 1;
        self.code_variables = variables;
        self.code_scope = scope;
        self.code_found = found;
        self.code_rows = rows;
        self.several = several;
        done.map_err(SqlError::of_other_text)?;
        Ok(CommandTag::plain("DO"))
    }

    fn code_block(
        &mut self,
        block: &CodeBlock,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        let outer = self.code_scope.len();
        let done = match self.declare_all(&block.declared, handled, sink) {
            Ok(()) => self.declared_block(block, handled, sink),
            Err(error) => Err(error),
        };
        self.code_scope.truncate(outer);
        match done? {
            Flow::Exit(number) if number == block.number => Ok(Flow::Next),
            flow => Ok(flow),
        }
    }

    /// A block whose variables are there.
    fn declared_block(
        &mut self,
        block: &CodeBlock,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        if block.handlers.is_empty() {
            return self.code_steps(&block.steps, handled, sink);
        }
        let own = self.code_scope.len();
        self.start_statement()?;
        let beside = self.beside();
        match &mut self.open {
            Some(open) => open.savepoint(POINT.to_owned(), beside)?,
            None => return Err(SqlError::internal("code without a transaction")),
        }
        let error = match self.code_steps(&block.steps, handled, sink) {
            Ok(flow) => {
                if let Some(open) = &mut self.open {
                    open.release(POINT)?;
                }
                return Ok(flow);
            }
            Err(error) => error,
        };
        let Some(open) = &mut self.open else {
            return Err(error);
        };
        let beside = open.roll_back_to(&self.shared, POINT)?;
        open.release(POINT)?;
        self.code_scope.truncate(own);
        self.undo_beside(beside);
        let state = error.sqlstate().as_str().to_owned();
        let ended = ["57014", "57P01", "57P02", "57P03"].contains(&state.as_str());
        if ended && self.waiting(&self.cancel).look_cancelled().is_err() {
            return Err(error);
        }
        for handler in &block.handlers {
            let mut conditions = handler.conditions.iter();
            if conditions.any(|condition| handles(*condition, &state)) {
                return self.code_steps(&handler.steps, Some(&error), sink);
            }
        }
        Err(error)
    }

    fn code_steps(
        &mut self,
        steps: &[Step],
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        for step in steps {
            self.waiting(&self.cancel).look_cancelled()?;
            let flow = match step {
                Step::Nothing => Flow::Next,
                Step::Return => Flow::Return,
                Step::Sql(text) => self.static_statement(text, false, handled, sink)?,
                Step::Perform(text) => {
                    let text = format!("SELECT {text}");
                    self.static_statement(&text, true, handled, sink)?
                }
                Step::Into { text, targets } => {
                    let statements = self.prepare_code(text, handled)?;
                    let found = self.code_into(&statements, &[], targets, true, sink)?;
                    self.code_found = found;
                    Flow::Next
                }
                Step::Execute { executed, targets } => {
                    self.code_execute(executed, targets, handled, sink)?
                }
                Step::Get(items) => {
                    self.code_get(items, handled)?;
                    Flow::Next
                }
                Step::Assign { name, value } => {
                    let (value, ty) = self.code_value(value, handled, sink)?;
                    self.assign(name, value, ty)?;
                    Flow::Next
                }
                Step::AssignField {
                    record,
                    field,
                    value,
                } => {
                    let given = self.code_value(value, handled, sink)?;
                    self.assign_field(record, field, given)?;
                    Flow::Next
                }
                Step::AssignRecord { record, from } => {
                    self.assign_record(record, from.as_deref())?;
                    Flow::Next
                }
                Step::Loop {
                    number,
                    turns,
                    steps,
                } => self.code_loop(turns, (*number, steps), handled, sink)?,
                Step::Leave {
                    number,
                    goes_on,
                    condition,
                } => {
                    let leaves = match condition {
                        Some(condition) => self.code_condition(condition, handled, sink)?,
                        None => true,
                    };
                    match (leaves, goes_on) {
                        (false, _) => Flow::Next,
                        (true, true) => Flow::Continue(*number),
                        (true, false) => Flow::Exit(*number),
                    }
                }
                Step::Raise(raise) => {
                    self.raised(raise, handled, sink)?;
                    Flow::Next
                }
                Step::RaiseAgain => match handled {
                    Some(error) => return Err(error.clone()),
                    None => {
                        let state = SqlState::of("0Z002");
                        let text =
                            "RAISE without parameters cannot be used outside an exception handler";
                        return Err(SqlError::new(state, text));
                    }
                },
                Step::If {
                    branches,
                    otherwise,
                } => {
                    let chosen = self.chosen(branches, handled, sink)?;
                    self.code_steps(chosen.unwrap_or(otherwise), handled, sink)?
                }
                Step::Case {
                    value,
                    branches,
                    otherwise,
                } => {
                    let value = value.as_ref();
                    let chosen = self.case_chosen(value, branches, handled, sink)?;
                    let chosen = chosen.or(otherwise.as_deref()).ok_or_else(no_case)?;
                    self.code_steps(chosen, handled, sink)?
                }
                Step::Block(block) => self.code_block(block, handled, sink)?,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// A statement of SQL that stands in the code. `queries`: one that returns rows may stand here.
    fn static_statement(
        &mut self,
        text: &str,
        queries: bool,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        let statements = self.prepare_code(text, handled)?;
        let done = with_stack(|| self.code_statements(&statements, &[], queries, sink));
        self.code_variables.clear();
        done
    }

    /// A text of the code. Its variables have their values until they are cleared.
    fn prepare_code(
        &mut self,
        text: &str,
        handled: Option<&SqlError>,
    ) -> Result<Vec<Arc<Prepared>>> {
        self.code_variables.clear();
        let Some(words) = self.words_of_variables(text)? else {
            return with_stack(|| self.prepare_text(text));
        };
        let statements = with_stack(|| parse::statements(text))?.into_iter();
        let statements = statements.map(|statement| Self::prepare_one(text, statement, &[]));
        let statements = statements.collect();
        self.show_variables(&words);
        let mut show = |name: &str, value: Value, ty: Type| {
            if !self.code_scope.iter().any(|own| own.name() == name) {
                self.code_variables.push(Variable {
                    record: None,
                    name: name.to_owned(),
                    value,
                    ty,
                });
            }
        };
        show("found", Value::Bool(self.code_found), Type::Bool);
        if let Some(error) = handled {
            show("sqlerrm", Value::text(error.message()), Type::Text);
            let state = error.sqlstate();
            show("sqlstate", Value::text(state.as_str()), Type::Text);
        }
        Ok(statements)
    }

    /// The words of a text, if one of them may be that of a variable.
    ///
    /// # Errors
    /// `42601` for what is no text of SQL.
    fn words_of_variables(&self, text: &str) -> Result<Option<BTreeSet<String>>> {
        let own = self.code_scope.iter().map(|own| own.name());
        let names = || own.clone().chain(VARIABLES);
        // Most texts name none, and need not be taken apart to see that.
        let lower = text.to_ascii_lowercase();
        let stands =
            |name: &str| name.contains('"') || lower.contains(name.to_ascii_lowercase().as_str());
        if !names().any(stands) {
            return Ok(None);
        }
        let words = names_in(text)?;
        let named = names().any(|name| words.contains(name));
        Ok(named.then_some(words))
    }

    /// Statements of SQL.
    fn code_statements(
        &mut self,
        statements: &[Arc<Prepared>],
        params: &[Value],
        queries: bool,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        for prepared in statements {
            let statement = &prepared.statement;
            if is_program(statement) {
                self.start_statement()?;
                if !queries && (selects(statement) || self.program(prepared)?.returns) {
                    return Err(no_destination());
                }
                let done = self.run_program(prepared, Given::read(params), &[], Output::Drop);
                self.tell_kept(sink)?;
                self.code_rows = done?.rows();
                self.code_found = self.code_rows > 0;
                continue;
            }
            refuse(statement)?;
            let shows = matches!(
                statement,
                Statement::ShowVariable { .. } | Statement::Explain { .. }
            );
            if shows && !queries {
                return Err(no_destination());
            }
            // Where a statement is kept, nothing of the code can be named in it.
            let is_run = match statement {
                Statement::Explain { .. } | Statement::Update(_) => true,
                Statement::CreateTable(create) => create.query.is_some(),
                _ => false,
            };
            if !is_run {
                self.code_variables.clear();
            }
            sink.rows = 0;
            match self.command(prepared, Given::read(params), &[], false, sink)? {
                Progress::Complete => self.code_rows = sink.rows,
                _ => return Err(SqlError::internal("a statement of code that waits")),
            }
        }
        Ok(Flow::Next)
    }

    /// Tells the notices of programs.
    fn tell_kept(&mut self, sink: &mut Silent<'_>) -> Result<()> {
        for notice in std::mem::take(&mut self.code_notices) {
            self.tell_notice(&notice, sink)?;
        }
        Ok(())
    }

    /// The value of an expression: of the only column of the only row, NULL if there is no row.
    fn code_value(
        &mut self,
        text: &str,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<(Value, Type)> {
        let statements = self.prepare_code(&format!("SELECT {text}"), handled)?;
        let done = with_stack(|| self.only_value(&statements));
        self.code_variables.clear();
        self.tell_kept(sink)?;
        let (value, ty) = done?;
        // A query in it is one that GET DIAGNOSTICS tells of.
        if text.to_ascii_lowercase().contains("select") && names_in(text)?.contains("select") {
            self.code_rows = 1;
        }
        Ok((value, ty))
    }

    pub(super) fn only_value(&mut self, statements: &[Arc<Prepared>]) -> Result<(Value, Type)> {
        let [prepared] = statements else {
            return Err(SqlError::syntax("an expression of several statements"));
        };
        self.start_statement()?;
        let program = self.program(prepared)?;
        let [column] = program.columns.as_slice() else {
            let columns = program.columns.len();
            return Err(SqlError::syntax(format!(
                "query returned {columns} columns"
            )));
        };
        let mut rows = Vec::new();
        let output = Output::First {
            rows: &mut rows,
            most: 2,
            stops: true,
        };
        self.run_program(prepared, Given::NONE, &[], output)?;
        if rows.len() > 1 {
            let text = "query returned more than one row";
            return Err(SqlError::new(sqlstate::CARDINALITY_VIOLATION, text));
        }
        let mut row = rows.pop().unwrap_or_default();
        self.rows_as_shown(&program.records, &mut row)?;
        Ok((row.pop().unwrap_or(Value::Null), column.ty))
    }

    /// Whether a condition is true. What is no boolean is read as one.
    fn code_condition(
        &mut self,
        text: &str,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<bool> {
        match self.code_value(text, handled, sink)?.0 {
            Value::Null => Ok(false),
            Value::Bool(value) => Ok(value),
            other => {
                let mut shown = String::new();
                output(other.as_ref(), &self.settings.forms, &mut shown)?;
                Ok(self.of_text(Type::Bool, Typmod::NONE, &shown)? == Value::Bool(true))
            }
        }
    }

    /// The same as a text; `None` for NULL.
    fn code_text(
        &mut self,
        text: &str,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Option<String>> {
        let (value, ty) = self.code_value(text, handled, sink)?;
        match value.as_ref().is_null() {
            true => Ok(None),
            false => self.text_in_code(&value, ty).map(Some),
        }
    }

    fn raised(
        &mut self,
        raise: &Raise,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<()> {
        let mut message = String::new();
        let mut arguments = raise.arguments.iter();
        let mut rest = raise.format.as_deref().unwrap_or_default();
        while let Some(at) = rest.find('%') {
            message.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('%') {
                message.push('%');
                rest = behind;
                continue;
            }
            let argument = match arguments.next() {
                Some(text) => self.code_text(text, handled, sink)?,
                None => None,
            };
            message.push_str(argument.as_deref().unwrap_or("<NULL>"));
        }
        message.push_str(rest);
        let mut said = raise.format.is_some();
        let (mut state, mut detail, mut hint) = (None, None, None);
        for (name, text) in &raise.options {
            let Some(value) = self.code_text(text, handled, sink)? else {
                let text = "RAISE statement option cannot be null";
                return Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, text));
            };
            match name.as_str() {
                "errcode" => state = Some(value),
                "detail" => detail = Some(value),
                "hint" => hint = Some(value),
                _ => {
                    message = value;
                    said = true;
                }
            }
        }
        let mut state = match state {
            None => None,
            Some(state) => match state_of(&state) {
                Some(state) => Some(state),
                None => states_named(&state)?.first().copied(),
            },
        };
        if let Some((name, own)) = &raise.condition {
            state = Some(*own);
            if !said {
                message = name.clone();
            }
        } else if !said {
            let plain = match raise.level.as_str() {
                "exception" => SqlState::of("P0001"),
                _ => sqlstate::SUCCESSFUL_COMPLETION,
            };
            message = state.unwrap_or(plain).as_str().to_owned();
        }
        if raise.level == "exception" {
            let state = state.unwrap_or(SqlState::of("P0001"));
            let mut error = SqlError::new(state, message);
            if let Some(detail) = detail {
                error = error.with_detail(detail);
            }
            if let Some(hint) = hint {
                error = error.with_hint(hint);
            }
            return Err(error);
        }
        let mut fields = match raise.level.as_str() {
            "warning" => Fields::warning(state.unwrap_or(sqlstate::WARNING), message),
            // Nobody has asked to hear these.
            "debug" | "log" => return Ok(()),
            "info" => Fields::info(message),
            _ => Fields::notice(message),
        };
        if let Some(state) = state {
            fields.sqlstate = state;
        }
        if let Some(detail) = detail {
            fields = fields.with_detail(detail);
        }
        fields.hint = hint;
        self.tell_notice(&fields, sink)
    }
}

/// Whether a statement is a query. WITH may stand in front of one that writes.
fn selects(statement: &Statement) -> bool {
    let Statement::Query(query) = statement else {
        return false;
    };
    !matches!(
        *query.body,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}

/// `20000`
#[cold]
fn no_case() -> SqlError {
    SqlError::new(SqlState::of("20000"), "case not found")
        .with_hint("CASE statement is missing ELSE part.")
}

/// `42601`
#[cold]
fn no_destination() -> SqlError {
    let hint = "If you want to discard the results of a SELECT, use PERFORM instead.";
    SqlError::syntax("query has no destination for result data").with_hint(hint)
}

/// # Errors
/// `0A000` for a statement that cannot stand in code.
fn refuse(statement: &Statement) -> Result<()> {
    match refused(statement) {
        None => Ok(()),
        Some(_) if is_program(statement) => Ok(()),
        Some(what) => Err(SqlError::unsupported(format!("{what} in DO"))),
    }
}

/// What cannot stand in code.
fn refused(statement: &Statement) -> Option<&'static str> {
    match statement {
        Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. }
        | Statement::Savepoint { .. }
        | Statement::ReleaseSavepoint { .. } => Some("a transaction command"),
        Statement::Copy { .. } => Some("COPY"),
        Statement::Declare { .. } | Statement::Fetch { .. } | Statement::Close { .. } => {
            Some("a cursor")
        }
        Statement::Execute { .. } => Some("EXECUTE of a prepared statement"),
        Statement::CreateTable(create) if executes(create) => {
            Some("EXECUTE of a prepared statement")
        }
        other if stands_alone(other).is_some() => Some("a statement with a transaction of its own"),
        other => match Command::of(other) {
            Some(Command::Prepare | Command::EndPrepared { .. }) => Some("a transaction command"),
            _ => None,
        },
    }
}

/// Whether a table is filled by EXECUTE of a prepared statement.
fn executes(create: &CreateTable) -> bool {
    let query = create.query.as_deref();
    query.is_some_and(|query| !matches!(executed(query), Ok(None)))
}

fn handles(condition: Condition, state: &str) -> bool {
    match condition {
        Condition::Others => !["57014", "P0004"].contains(&state),
        Condition::State(own) => {
            let own = own.as_str();
            // A whole class ends in zeros.
            own == state || own.ends_with("000") && own[..2] == state[..2]
        }
    }
}
