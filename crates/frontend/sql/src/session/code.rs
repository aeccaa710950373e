//! DO: code that is run once, its statements one after the other in the transaction of the DO.
//!
//! A block with EXCEPTION has a savepoint: what it has done until an error is taken back before that is handled. Cancelling and the end of the server are no errors that a block handles.
//!
//! Not here: what code says (`parse/code`).

use super::blocks::stands_alone;
use super::run::Output;
use super::simple::is_program;
use super::{Progress, Session};
use crate::error::{Fields, Result, SqlError};
use crate::parse::{CodeBlock, Command, Condition, Raise, Step, code, with_values};
use crate::sqlstate::{self, SqlState};
use crate::wire::{CommandTag, CopyShape, Field, Format, OutputRow, Sink, Told};
use sqlparser::ast::Statement;
use vellum_row::{Value, output};

/// The savepoint of a block: a name that no text can have.
const POINT: &str = "the savepoint of a block of code, longer than any name in a text";

/// DOs inside each other.
const CODE_DEPTH: usize = 20;

/// Names of errors, as EXCEPTION has them.
const CONDITIONS: &[(&str, &str)] = &[
    ("cardinality_violation", "21000"),
    ("case_not_found", "20000"),
    ("check_violation", "23514"),
    ("connection_exception", "08000"),
    ("data_exception", "22000"),
    ("deadlock_detected", "40P01"),
    ("dependent_objects_still_exist", "2BP01"),
    ("division_by_zero", "22012"),
    ("duplicate_alias", "42712"),
    ("duplicate_column", "42701"),
    ("duplicate_cursor", "42P03"),
    ("duplicate_database", "42P04"),
    ("duplicate_function", "42723"),
    ("duplicate_object", "42710"),
    ("duplicate_prepared_statement", "42P05"),
    ("duplicate_schema", "42P06"),
    ("duplicate_table", "42P07"),
    ("exclusion_violation", "23P01"),
    ("feature_not_supported", "0A000"),
    ("foreign_key_violation", "23503"),
    ("insufficient_privilege", "42501"),
    ("integrity_constraint_violation", "23000"),
    ("internal_error", "XX000"),
    ("invalid_column_reference", "42P10"),
    ("invalid_foreign_key", "42830"),
    ("invalid_parameter_value", "22023"),
    ("invalid_schema_name", "3F000"),
    ("invalid_table_definition", "42P16"),
    ("invalid_text_representation", "22P02"),
    ("lock_not_available", "55P03"),
    ("no_data_found", "P0002"),
    ("not_null_violation", "23502"),
    ("numeric_value_out_of_range", "22003"),
    ("object_in_use", "55006"),
    ("object_not_in_prerequisite_state", "55000"),
    ("query_canceled", "57014"),
    ("raise_exception", "P0001"),
    ("serialization_failure", "40001"),
    ("string_data_right_truncation", "22001"),
    ("syntax_error", "42601"),
    ("undefined_column", "42703"),
    ("undefined_function", "42883"),
    ("undefined_object", "42704"),
    ("undefined_table", "42P01"),
    ("datatype_mismatch", "42804"),
    ("datetime_field_overflow", "22008"),
    ("invalid_datetime_format", "22007"),
    ("null_value_not_allowed", "22004"),
    ("unique_violation", "23505"),
    ("wrong_object_type", "42809"),
];

/// How a list of statements ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Return,
}

/// What hears the statements of code: notices go on, all else is passed over.
struct Silent<'s>(&'s mut dyn Sink);

impl Sink for Silent<'_> {
    fn row_description(&mut self, _: &[Field], _: &[Format]) -> Told {
        Ok(())
    }

    fn row(&mut self, _: OutputRow<'_>) -> Told {
        Ok(())
    }

    fn command_complete(&mut self, _: &CommandTag) -> Told {
        Ok(())
    }

    fn empty_query(&mut self) -> Told {
        Ok(())
    }

    fn notice(&mut self, notice: &Fields) -> Told {
        self.0.notice(notice)
    }

    fn parameter_status(&mut self, name: &str, value: &str) -> Told {
        self.0.parameter_status(name, value)
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
        let block = code(text)?;
        self.start_statement()?;
        // Nothing in it has a transaction of its own.
        let several = std::mem::replace(&mut self.several, true);
        self.code_depth += 1;
        let done = self.code_block(&block, None, &mut Silent(sink));
        self.code_depth -= 1;
        self.several = several;
        // Its places are those of its own text.
        done.map_err(SqlError::of_other_text)?;
        Ok(CommandTag::plain("DO"))
    }

    fn code_block(
        &mut self,
        block: &CodeBlock,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Flow> {
        if block.handlers.is_empty() {
            return self.code_steps(&block.steps, handled, sink);
        }
        let conditions = block.handlers.iter().flat_map(|one| &one.conditions);
        for condition in conditions {
            states_of(condition)?;
        }
        self.start_statement()?;
        let beside = (self.cursors.declared(), self.changed.len());
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
        let (declared, changed) = open.roll_back_to(&self.shared, POINT)?;
        open.release(POINT)?;
        self.cursors.forget_from(declared);
        self.undo_settings(changed);
        let state = error.sqlstate().as_str().to_owned();
        for handler in &block.handlers {
            let mut conditions = handler.conditions.iter();
            if conditions.any(|condition| handles(condition, &state)) {
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
            self.cancel.check()?;
            let flow = match step {
                Step::Nothing => Flow::Next,
                Step::Return => Flow::Return,
                Step::Sql(text) => self.code_statement(text, false, sink)?,
                Step::Perform(text) => {
                    let text = with_error(text, handled)?;
                    self.code_statement(&format!("SELECT {text}"), true, sink)?
                }
                Step::Execute(text) => match self.code_text(text, handled)? {
                    Some(text) => self.code_statement(&text, true, sink)?,
                    None => {
                        let text = "query string argument of EXECUTE is null";
                        return Err(SqlError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, text));
                    }
                },
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
                    let mut chosen = otherwise;
                    for (condition, steps) in branches {
                        let condition = format!("({condition})::boolean");
                        if self.code_value(&condition, handled)? == Value::Bool(true) {
                            chosen = steps;
                            break;
                        }
                    }
                    self.code_steps(chosen, handled, sink)?
                }
                Step::Block(block) => self.code_block(block, handled, sink)?,
            };
            if flow == Flow::Return {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// One statement of SQL. `queries`: one that returns rows may stand here.
    fn code_statement(&mut self, text: &str, queries: bool, sink: &mut Silent<'_>) -> Result<Flow> {
        let statements = self.prepare_text(text)?;
        for prepared in &statements {
            let statement = &prepared.statement;
            if is_program(statement) {
                if matches!(statement, Statement::Query(_)) && !queries {
                    let text = "query has no destination for result data";
                    let hint =
                        "If you want to discard the results of a SELECT, use PERFORM instead.";
                    return Err(SqlError::syntax(text).with_hint(hint));
                }
                self.start_statement()?;
                self.run_program(prepared, &[], &[], Output::Drop)?;
                continue;
            }
            if let Some(what) = refused(statement) {
                return Err(SqlError::unsupported(format!("{what} in DO")));
            }
            match self.command(prepared, &[], &[], false, sink)? {
                Progress::Complete => {}
                _ => return Err(SqlError::internal("a statement of code that waits")),
            }
        }
        Ok(Flow::Next)
    }

    /// The value of an expression.
    fn code_value(&mut self, text: &str, handled: Option<&SqlError>) -> Result<Value> {
        let text = format!("SELECT {}", with_error(text, handled)?);
        let statements = self.prepare_text(&text)?;
        let ([prepared], mut rows) = (statements.as_slice(), Vec::new()) else {
            return Err(SqlError::syntax("an expression of several statements"));
        };
        self.start_statement()?;
        self.run_program(prepared, &[], &[], Output::Values(&mut rows))?;
        let first = rows.into_iter().next();
        let value = first.and_then(|row| row.into_iter().next());
        Ok(value.unwrap_or(Value::Null))
    }

    /// The same as a text; `None` for NULL.
    fn code_text(&mut self, text: &str, handled: Option<&SqlError>) -> Result<Option<String>> {
        let value = self.code_value(text, handled)?;
        if value.as_ref().is_null() {
            return Ok(None);
        }
        let mut shown = String::new();
        output(value.as_ref(), &self.settings.forms, &mut shown);
        Ok(Some(shown))
    }

    fn raised(
        &mut self,
        raise: &Raise,
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<()> {
        let mut message = String::new();
        let mut arguments = raise.arguments.iter();
        let mut rest = raise.format.as_str();
        while let Some(at) = rest.find('%') {
            message.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('%') {
                message.push('%');
                rest = behind;
                continue;
            }
            let argument = arguments.next().map(|text| self.code_text(text, handled));
            let argument = argument.transpose()?.flatten();
            message.push_str(argument.as_deref().unwrap_or("<NULL>"));
        }
        message.push_str(rest);
        let (mut state, mut detail, mut hint) = (None, None, None);
        for (name, text) in &raise.options {
            let value = self.code_text(text, handled)?;
            let place = match name.as_str() {
                "errcode" => &mut state,
                "detail" => &mut detail,
                "hint" => &mut hint,
                "message" => {
                    message = value.unwrap_or_default();
                    continue;
                }
                other => return Err(SqlError::unsupported(format!("{other} of RAISE"))),
            };
            *place = value;
        }
        let state = match state {
            None => None,
            Some(state) => Some(state_named(&state).ok_or_else(|| unknown(&state))?),
        };
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

/// An expression with the message and the SQLSTATE of the error that is handled.
fn with_error(text: &str, handled: Option<&SqlError>) -> Result<String> {
    match handled {
        None => Ok(text.to_owned()),
        Some(error) => with_values(
            text,
            &[
                ("sqlerrm", error.message().to_owned()),
                ("sqlstate", error.sqlstate().as_str().to_owned()),
            ],
        ),
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
        other if stands_alone(other).is_some() => Some("a statement with a transaction of its own"),
        other => match Command::of(other) {
            Some(Command::Prepare | Command::EndPrepared { .. }) => Some("a transaction command"),
            _ => None,
        },
    }
}

/// The SQLSTATE of a name or of itself.
fn state_named(name: &str) -> Option<SqlState> {
    let mut known = CONDITIONS.iter();
    if let Some((_, state)) = known.find(|(own, _)| *own == name) {
        return Some(SqlState::of(state));
    }
    let mut bytes = name.bytes();
    let valid =
        name.len() == 5 && bytes.all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    valid.then(|| SqlState::of(name))
}

/// `42704`
#[cold]
fn unknown(name: &str) -> SqlError {
    let message = format!("unrecognized exception condition \"{name}\"");
    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
}

/// The SQLSTATE that a condition names; `None` for all of them.
fn states_of(condition: &Condition) -> Result<Option<SqlState>> {
    match condition {
        Condition::Named(name) if name == "others" => Ok(None),
        Condition::Named(name) | Condition::State(name) => match state_named(name) {
            Some(state) => Ok(Some(state)),
            None => Err(unknown(name)),
        },
    }
}

fn handles(condition: &Condition, state: &str) -> bool {
    let ended = ["57014", "57P01", "57P02", "57P03"].contains(&state);
    match states_of(condition) {
        Ok(None) => !ended,
        Ok(Some(own)) => {
            let own = own.as_str();
            // A whole class ends in zeros.
            own == state || own.ends_with("000") && own[..2] == state[..2]
        }
        Err(_) => false,
    }
}
