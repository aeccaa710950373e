//! Statements that are run from their syntax trees: transactions, settings, EXPLAIN, DDL, COPY.

use super::begun::with_modes;
use super::blocks::{needs_block, stands_alone};
use super::cursor::is_move;
use super::encode::{encode, format_of};
use super::explain::Asked;
use super::extended::ends_transaction;
use super::known_settings::shown_name;
use super::maintenance::marked_constraints;
use super::run::{Given, Output, Prepared};
use super::setting_value;
use super::simple::is_program;
use super::transaction::Characteristics;
use super::{Progress, Session, TransactionStatus, gone};
use crate::bind::{cut, folded};
use crate::ddl::Ddl;
use crate::error::{Result, SqlError};
use crate::parse::Command;
use crate::plan::{Form, Program};
use crate::sqlstate;
use crate::wire::{CommandTag, Field, Format, OutputRow, Sink};
use sqlparser::ast::{self, Statement};
use std::sync::Arc;
use vellum_row::{CastContext, Type, Typmod, Value};

/// Oid of PostgreSQL's type of XML documents: what EXPLAIN says that it tells.
const XML: u32 = 142;

impl Session {
    /// Runs a command. `describe`: its rows are described first.
    pub(super) fn command(
        &mut self,
        prepared: &Arc<Prepared>,
        given: Given<'_>,
        formats: &[Format],
        describe: bool,
        sink: &mut dyn Sink,
    ) -> Result<Progress> {
        let statement = &prepared.statement;
        if !ends_transaction(statement) {
            self.refuse_in_failed_block()?;
        }
        let tag = match statement {
            Statement::StartTransaction { modes, begin, .. } => {
                let name = if *begin { "BEGIN" } else { "START TRANSACTION" };
                self.begin_block(modes, CommandTag::plain(name), sink)?
            }
            Statement::Commit { chain, .. } => self.end_block(*chain, sink)?,
            Statement::Rollback { chain, savepoint } => match savepoint {
                Some(name) => self.roll_back_to(&folded(name))?,
                None => self.abort_block(*chain, sink)?,
            },
            Statement::Savepoint { name } => {
                let beside = self.beside();
                self.in_block("SAVEPOINT")?
                    .savepoint(folded(name), beside)?;
                CommandTag::plain("SAVEPOINT")
            }
            Statement::ReleaseSavepoint { name } => {
                self.in_block("RELEASE SAVEPOINT")?.release(&folded(name))?;
                CommandTag::plain("RELEASE")
            }
            Statement::Set(set) => self.set(set, sink)?,
            Statement::Reset(reset) => {
                match &reset.reset {
                    ast::Reset::ALL => self.reset_settings()?,
                    ast::Reset::ConfigurationParameter(name) => {
                        let name = setting_name(name)?;
                        match name.as_str() {
                            "role" => self.set_role(None, false)?,
                            "session_authorization" => self.set_session_user(None, false)?,
                            _ => self.change_setting(&name, None, false, sink)?,
                        }
                    }
                }
                CommandTag::plain("RESET")
            }
            Statement::ShowVariable { variable } => {
                let rows = self.shown(variable)?;
                let fields = self.command_fields(statement)?;
                self.tell_texts(fields, rows, formats, describe, "SHOW", sink)?
            }
            Statement::Explain {
                statement,
                analyze,
                verbose,
                options,
                ..
            } => {
                let asked = Asked::of((*analyze, *verbose), options.as_deref(), &prepared.text)?;
                let rows = self.explained(prepared, statement, given, asked)?;
                let fields = self.command_fields(&prepared.statement)?;
                self.tell_texts(fields, rows, formats, describe, "EXPLAIN", sink)?
            }
            Statement::Declare { stmts } => match stmts.as_slice() {
                [declare] => self.declare(declare, prepared, given)?,
                _ => return Err(SqlError::syntax("one cursor at a time")),
            },
            Statement::Fetch { .. } => self.fetch_cursor(statement, formats, describe, sink)?,
            Statement::Close { cursor } => self.close_cursor(cursor)?,
            Statement::Lock(lock) => self.lock_tables(lock)?,
            Statement::Discard { object_type } => self.discard(*object_type)?,
            Statement::Deallocate { name, .. } => {
                let name = folded(name);
                if name == "all" {
                    self.statements.clear();
                    CommandTag::plain("DEALLOCATE ALL")
                } else {
                    let known = self.statements.remove(&name);
                    known.ok_or_else(|| super::no_statement(&name))?;
                    CommandTag::plain("DEALLOCATE")
                }
            }
            Statement::Prepare {
                name,
                data_types,
                statement,
            } => self.prepare(&folded(name), data_types, statement, &prepared.text)?,
            Statement::Execute {
                name: Some(name),
                parameters,
                ..
            } => return self.execute_named(name, parameters, formats, describe, sink),
            // Storage is cleaned as it goes; there is nothing to be done by hand.
            Statement::Vacuum(vacuum) => {
                self.refuse_in_block("VACUUM")?;
                if let Some(name) = &vacuum.table_name {
                    let search_path = self.search_path();
                    let binder = self.surroundings(&search_path, "").binder();
                    binder.relation(name).map_err(SqlError::without_place)?;
                }
                CommandTag::plain("VACUUM")
            }
            Statement::LISTEN { .. } | Statement::UNLISTEN { .. } | Statement::NOTIFY { .. } => {
                self.channel_statement(statement)?
            }
            Statement::Analyze(analyze) => self.analyze(analyze, sink)?,
            Statement::Update(update) => match marked_constraints(update) {
                Some(name) => self.mark_constraints(prepared, name, given)?,
                None => return Err(SqlError::internal("a program")),
            },
            Statement::Copy { .. } => {
                return self.copy(statement, &prepared.text, describe, sink);
            }
            Statement::CreateTable(create) if create.query.is_some() => {
                self.create_table_as(create, prepared, given, sink)?
            }
            other => match Command::of(other) {
                Some(Command::Code(code)) => self.run_code(&code, sink)?,
                Some(keep @ Command::Keep { .. }) => {
                    self.keep_setting(&keep, &prepared.text, sink)?
                }
                Some(command)
                    if !matches!(
                        command,
                        Command::DropAbsent(_) | Command::Said(_) | Command::Schema(_)
                    ) =>
                {
                    self.maintenance(command, sink)?
                }
                _ => {
                    if let Some(what) = stands_alone(other) {
                        self.refuse_in_block(what)?;
                    }
                    self.ddl(other, &prepared.text, sink)?
                }
            },
        };
        self.end_with_command(describe)?;
        sink.command_complete(&tag).map_err(gone)?;
        Ok(Progress::Complete)
    }

    /// Columns of a command's rows. Of EXECUTE they are those of the statement that it runs: the transaction and the statement in it are begun then.
    ///
    /// # Errors
    /// `26000`, `34000`, `0A000`.
    pub(super) fn command_fields(&mut self, statement: &Statement) -> Result<Option<Arc<[Field]>>> {
        let mut type_oid = Type::Text.oid();
        let names: Vec<String> = match statement {
            Statement::ShowVariable { variable } => {
                let name = joined(variable);
                if name == "all" {
                    ["name", "setting", "description"].map(str::to_owned).into()
                } else {
                    vec![shown_name(&name).to_owned()]
                }
            }
            Statement::Explain { options, .. } => {
                let asked = Asked::of((true, false), options.as_deref(), "");
                type_oid = match asked.map(|asked| asked.form) {
                    Ok(Form::Json) => Type::Json.oid(),
                    Ok(Form::Xml) => XML,
                    _ => type_oid,
                };
                vec!["QUERY PLAN".to_owned()]
            }
            Statement::Fetch { name, into, .. } if !is_move(into.as_ref()) => {
                return self.fetched_fields(&folded(name)).map(Some);
            }
            Statement::Execute {
                name: Some(name), ..
            } => {
                let named = self.named(&crate::bind::object_name(name)?.1)?;
                refuse_execute(&named.prepared.statement)?;
                if !is_program(&named.prepared.statement) {
                    return self.command_fields(&named.prepared.statement);
                }
                self.refuse_in_failed_block()?;
                self.start_statement()?;
                let program = self.program_of(&named)?;
                return Ok(program.returns.then(|| program.fields()));
            }
            _ => return Ok(None),
        };
        let fields = names.into_iter().map(|name| Field {
            name,
            table_oid: 0,
            column_number: 0,
            type_oid,
            type_length: -1,
            type_modifier: -1,
        });
        Ok(Some(fields.collect()))
    }

    fn tell_texts(
        &mut self,
        fields: Option<Arc<[Field]>>,
        rows: Vec<Vec<String>>,
        formats: &[Format],
        describe: bool,
        name: &'static str,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let fields = fields.unwrap_or_default();
        if describe {
            sink.row_description(&fields, formats).map_err(gone)?;
        }
        let count = u16::try_from(fields.len()).unwrap_or(u16::MAX);
        let mut text = String::new();
        for row in rows {
            self.body.clear();
            for (number, column) in row.into_iter().enumerate() {
                let value = Value::text(column);
                let format = format_of(formats, number);
                let forms = &self.settings.forms;
                encode(value.as_ref(), format, forms, &mut text, &mut self.body)?;
            }
            sink.row(OutputRow::new(count, &self.body)).map_err(gone)?;
        }
        Ok(CommandTag::plain(name))
    }

    fn end_block(&mut self, chain: bool, sink: &mut dyn Sink) -> Result<CommandTag> {
        match self.status {
            TransactionStatus::Failed => {
                let failed_as = self.failed_as.take();
                let characteristics = self.open.as_ref().map(|open| open.characteristics);
                self.status = TransactionStatus::Idle;
                self.roll_back();
                self.chain(chain, characteristics.or(failed_as))?;
                return Ok(CommandTag::plain("ROLLBACK"));
            }
            TransactionStatus::Idle if chain => return Err(needs_block("COMMIT AND CHAIN")),
            TransactionStatus::Idle => self.warn_no_block(sink)?,
            TransactionStatus::InBlock => {}
        }
        let characteristics = self.open.as_ref().map(|open| open.characteristics);
        self.status = TransactionStatus::Idle;
        self.commit()?;
        self.chain(chain, characteristics)?;
        Ok(CommandTag::plain("COMMIT"))
    }

    fn abort_block(&mut self, chain: bool, sink: &mut dyn Sink) -> Result<CommandTag> {
        if self.status == TransactionStatus::Idle {
            if chain {
                return Err(needs_block("ROLLBACK AND CHAIN"));
            }
            self.warn_no_block(sink)?;
        }
        let failed_as = self.failed_as.take();
        let characteristics = self.open.as_ref().map(|open| open.characteristics);
        let characteristics = characteristics.or(failed_as);
        self.status = TransactionStatus::Idle;
        self.roll_back();
        self.chain(chain, characteristics)?;
        Ok(CommandTag::plain("ROLLBACK"))
    }

    fn chain(&mut self, chain: bool, characteristics: Option<Characteristics>) -> Result<()> {
        if let Some(characteristics) = characteristics.filter(|_| chain) {
            self.open = Some(self.begun(characteristics)?);
            self.status = TransactionStatus::InBlock;
        }
        Ok(())
    }

    fn roll_back_to(&mut self, name: &str) -> Result<CommandTag> {
        if self.status == TransactionStatus::Idle {
            return Err(needs_block("ROLLBACK TO SAVEPOINT"));
        }
        let Some(open) = &self.open else {
            // It has failed without any, and is rolled back already.
            let message = format!("savepoint \"{name}\" does not exist");
            let state = sqlstate::INVALID_SAVEPOINT_SPECIFICATION;
            return Err(SqlError::new(state, message));
        };
        let (beside, defined) = open.beside_at(name)?;
        self.cursors.forget_from(beside.cursors);
        self.portals.forget_from(beside.portals);
        match self.status {
            _ if !defined => {}
            TransactionStatus::Failed => self.portals.fail_pieces(beside.pieces),
            _ => self.end_pieces(beside.pieces)?,
        }
        let Some(open) = &mut self.open else {
            return Err(SqlError::internal("a savepoint without transaction"));
        };
        let beside = open.roll_back_to(&self.shared, name)?;
        self.undo_beside(beside);
        self.status = TransactionStatus::InBlock;
        Ok(CommandTag::plain("ROLLBACK"))
    }

    fn set(&mut self, set: &ast::Set, sink: &mut dyn Sink) -> Result<CommandTag> {
        match set {
            ast::Set::SingleAssignment {
                scope,
                variable,
                values,
                ..
            } => {
                let name = variable.to_string().to_lowercase();
                let value = setting_text(&name, values)?;
                let local = *scope == Some(ast::ContextModifier::Local);
                self.warn_of_local(local, sink)?;
                match name.as_str() {
                    "role" => self.set_role(value.as_deref(), local)?,
                    "session_authorization" => {
                        self.set_session_user(value.as_deref(), local)?;
                    }
                    _ => self.change_setting(&name, value.as_deref(), local, sink)?,
                }
            }
            ast::Set::SetRole {
                context_modifier,
                role_name,
            } => {
                let local = *context_modifier == Some(ast::ContextModifier::Local);
                let role = role_name.as_ref().map(folded);
                self.warn_of_local(local, sink)?;
                self.set_role(role.as_deref(), local)?;
            }
            ast::Set::SetSessionAuthorization(said) => {
                let local = said.scope == ast::ContextModifier::Local;
                let user = match &said.kind {
                    ast::SetSessionAuthorizationParamKind::Default => None,
                    ast::SetSessionAuthorizationParamKind::User(user) => Some(folded(user)),
                };
                self.warn_of_local(local, sink)?;
                self.set_session_user(user.as_deref(), local)?;
            }
            ast::Set::SetTimeZone { local, value } => {
                self.warn_of_local(*local, sink)?;
                let value = setting_text("timezone", std::slice::from_ref(value))?;
                // That of the server.
                let value = value.filter(|value| !value.eq_ignore_ascii_case("local"));
                self.change_setting("timezone", value.as_deref(), *local, sink)?;
            }
            ast::Set::SetNames { charset_name, .. } => {
                let value = Some(charset_name.value.as_str());
                self.change_setting("client_encoding", value, false, sink)?;
            }
            ast::Set::SetTransaction {
                modes,
                snapshot,
                session,
            } => match snapshot {
                None if *session => self.set_defaults(modes)?,
                Some(_) if *session => return Err(local_snapshot()),
                None => {
                    self.warn_outside_block("SET TRANSACTION", sink)?;
                    self.set_modes(|own| with_modes(own, modes))?;
                }
                Some(identifier) => {
                    self.warn_outside_block("SET TRANSACTION", sink)?;
                    self.import_snapshot(identifier)?;
                }
            },
            other => return Err(SqlError::unsupported(format!("SET {other}"))),
        }
        Ok(CommandTag::plain("SET"))
    }

    /// SET SESSION CHARACTERISTICS: SET of the settings by which transactions begin.
    fn set_defaults(&mut self, modes: &[ast::TransactionMode]) -> Result<()> {
        let wanted = with_modes(self.settings.characteristics(), modes)?;
        for mode in modes {
            let (name, value) = match mode {
                ast::TransactionMode::IsolationLevel(_) => {
                    ("default_transaction_isolation", wanted.level())
                }
                ast::TransactionMode::AccessMode(_) => (
                    "default_transaction_read_only",
                    if wanted.read_only { "on" } else { "off" },
                ),
            };
            self.set_noted(name, Some(value), false)?;
        }
        Ok(())
    }

    fn warn_of_local(&self, local: bool, sink: &mut dyn Sink) -> Result<()> {
        match local {
            true => self.warn_outside_block("SET LOCAL", sink),
            false => Ok(()),
        }
    }

    fn change_setting(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if matches!(name, "transaction_isolation" | "transaction_read_only") {
            return self.set_mode(name, value);
        }
        if let Some(notice) = value.and_then(|value| setting_value::cut_notice(name, value)) {
            self.tell_notice(&notice, sink)?;
        }
        self.set_noted(name, value, local)
    }

    fn discard(&mut self, what: ast::DiscardObject) -> Result<CommandTag> {
        match what {
            ast::DiscardObject::ALL => {
                self.refuse_in_block("DISCARD ALL")?;
                self.cursors.close_all();
                self.listens_to_nothing();
                self.shared
                    .advisory
                    .release_all(self.activity.number, false);
                self.statements.clear();
                self.portals.clear();
                self.reset_all()?;
                self.sequences.get_mut().discard();
                self.plans.clear();
                self.discard_temporary()?;
                Ok(CommandTag::plain("DISCARD ALL"))
            }
            ast::DiscardObject::PLANS => {
                self.plans.clear();
                Ok(CommandTag::plain("DISCARD PLANS"))
            }
            ast::DiscardObject::SEQUENCES => {
                self.sequences.get_mut().discard();
                Ok(CommandTag::plain("DISCARD SEQUENCES"))
            }
            ast::DiscardObject::TEMP => {
                self.discard_temporary()?;
                Ok(CommandTag::plain("DISCARD TEMP"))
            }
        }
    }

    fn reset_all(&mut self) -> Result<()> {
        self.keep_told();
        let (user, sessions_max) = (&self.options.user, self.options.sessions_max);
        self.settings = super::settings::SessionSettings::new(user, sessions_max);
        self.is_itself();
        for (name, value) in &self.options.settings {
            self.settings.set(name, Some(value))?;
        }
        self.activity
            .is_called(&self.settings.get("application_name")?);
        self.plans.clear();
        Ok(())
    }

    fn shown(&self, variable: &[ast::Ident]) -> Result<Vec<Vec<String>>> {
        let name = joined(variable);
        match name.as_str() {
            "all" => {
                let all = self.settings.all().into_iter();
                Ok(all.map(Vec::from).collect())
            }
            "transaction_isolation" | "transaction_read_only" => {
                let open = self.open.as_ref().map(|open| open.characteristics);
                let own = open.unwrap_or_else(|| self.settings.characteristics());
                let shown = match (name.as_str(), own.read_only) {
                    ("transaction_isolation", _) => own.level(),
                    (_, true) => "on",
                    (_, false) => "off",
                };
                Ok(vec![vec![shown.to_owned()]])
            }
            _ => Ok(vec![vec![self.settings.shown(&name)?]]),
        }
    }

    /// `source` is the text that PREPARE stands in: it is shown as it was sent, and places in it are those of the statement.
    fn prepare(
        &mut self,
        name: &str,
        types: &[ast::DataType],
        statement: &Statement,
        source: &str,
    ) -> Result<CommandTag> {
        if self.statements.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(
                sqlstate::DUPLICATE_PREPARED_STATEMENT,
                message,
            ));
        }
        if !super::simple::is_program(statement) {
            let text = statement.to_string();
            let first = text.split_whitespace().next().unwrap_or_default();
            let message = format!("syntax error at or near \"{first}\"");
            return Err(SqlError::syntax(message));
        }
        let search_path = self.search_path();
        let binder = self.surroundings(&search_path, "").binder();
        let types = types.iter().map(|ty| Ok(binder.type_of(ty)?.0.oid()));
        let types = types.collect::<Result<Vec<u32>>>()?;
        let prepared = Session::prepare_one(source, statement.clone(), &types);
        self.start_statement()?;
        let first = Some(self.program(&prepared)?);
        self.name_statement(name, prepared, first, true);
        Ok(CommandTag::plain("PREPARE"))
    }

    fn execute_named(
        &mut self,
        object: &ast::ObjectName,
        arguments: &[ast::Expr],
        formats: &[Format],
        describe: bool,
        sink: &mut dyn Sink,
    ) -> Result<Progress> {
        let (_, name) = crate::bind::object_name(object)?;
        let prepared = self.named(&name)?.prepared;
        refuse_execute(&prepared.statement)?;
        if !super::simple::is_program(&prepared.statement) {
            return self.command(&prepared, Given::NONE, formats, describe, sink);
        }
        let (prepared, program, values) = self.called(object, arguments)?;
        let given = Given {
            values: &values,
            bound: Some(&program),
        };
        let output = Output::Tell(sink, describe);
        let tag = self.run_program(&prepared, given, formats, output)?;
        self.end_with_command(describe)?;
        sink.command_complete(&tag).map_err(gone)?;
        Ok(Progress::Complete)
    }

    /// The statement that EXECUTE names, its program, and the values of its parameters. The transaction, and the statement in it, are begun then.
    ///
    /// # Errors
    /// `26000`; `42601`, `42804` for arguments that do not fit.
    pub(super) fn called(
        &mut self,
        name: &ast::ObjectName,
        arguments: &[ast::Expr],
    ) -> Result<(Arc<Prepared>, Arc<Program>, Vec<Value>)> {
        let (_, name) = crate::bind::object_name(name)?;
        let named = self.named(&name)?;
        self.start_statement()?;
        let program = self.program_of(&named)?;
        if program.params.len() != arguments.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!(
                "Expected {} parameters but got {}.",
                program.params.len(),
                arguments.len()
            );
            return Err(SqlError::syntax(message).with_detail(detail));
        }
        let mut params = Vec::with_capacity(arguments.len());
        for (number, (argument, ty)) in (1..).zip(arguments.iter().zip(&program.params)) {
            params.push(self.argument(argument, *ty, number)?);
        }
        Ok((named.prepared, program, params))
    }

    /// The value of an argument of EXECUTE.
    fn argument(&mut self, node: &ast::Expr, ty: Type, number: usize) -> Result<Value> {
        let context = CastContext::Assignment;
        let search_path = self.search_path();
        let mut binder = self.surroundings(&search_path, "").binder();
        let bound = binder.expr(node)?;
        if !binder.subqueries.is_empty() {
            let text = "cannot use subquery in EXECUTE parameter";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        let from = bound.ty;
        let bound = binder.coerce(bound, ty, Typmod::NONE, context);
        let expr = bound.map_err(|error| match from {
            Some(from) if error.sqlstate() == sqlstate::CANNOT_COERCE => {
                let message = format!(
                    "parameter ${number} of type {} cannot be coerced to the expected type {}",
                    self.settings.forms.name_of(from),
                    self.settings.forms.name_of(ty)
                );
                SqlError::new(sqlstate::DATATYPE_MISMATCH, message)
                    .with_hint("You will need to rewrite or cast the expression.")
            }
            _ => error,
        })?;
        if let crate::expr::Expr::Const(value) = expr {
            return Ok(value);
        }
        // What is to be computed is a query's row.
        let text = format!("VALUES ({node})");
        let statement = crate::parse::statements(&text)?.pop();
        let statement = statement.ok_or_else(|| SqlError::internal("no query"))?;
        let prepared = Session::prepare_one(&text, statement, &[]);
        let mut rows = Vec::new();
        self.run_program(&prepared, Given::NONE, &[], Output::Values(&mut rows))?;
        let value = rows.pop().and_then(|mut row| row.pop());
        let value = value.ok_or_else(|| SqlError::internal("no row"))?;
        if let Some(name) = value.as_ref().as_str().filter(|_| ty.is_reg()) {
            return self.oid_named(ty, name).map(Value::Oid);
        }
        let forms = &self.settings.forms;
        Ok(vellum_row::cast(
            value.as_ref(),
            ty,
            Typmod::NONE,
            false,
            forms,
        )?)
    }

    fn ddl(
        &mut self,
        statement: &Statement,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        let only_adds = matches!(
            statement,
            Statement::CreateTable(_)
                | Statement::CreateIndex(_)
                | Statement::CreateView(_)
                | Statement::CreateSchema { .. }
                | Statement::CreateSequence { .. }
                | Statement::Comment { .. }
                | Statement::Grant { .. }
                | Statement::Revoke { .. }
        );
        if !only_adds {
            self.end_pieces(0)?;
        }
        self.define(text, sink, |ddl| ddl.run(statement))
    }

    /// Runs a definition.
    ///
    /// # Errors
    /// `25006`; the definition's.
    pub(super) fn define(
        &mut self,
        text: &str,
        sink: &mut dyn Sink,
        work: impl FnMut(&mut Ddl<'_>) -> Result<CommandTag>,
    ) -> Result<CommandTag> {
        self.start_statement()?;
        if let Some(open) = &self.open
            && open.characteristics.read_only
        {
            let text = "cannot execute DDL in a read-only transaction";
            return Err(SqlError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, text));
        }
        let (tag, notices) = self.with_ddl(text, work)?;
        for notice in &notices {
            self.tell_notice(notice, sink)?;
        }
        Ok(tag)
    }
}

fn joined(variable: &[ast::Ident]) -> String {
    let words: Vec<String> = variable
        .iter()
        .map(|ident| ident.value.to_lowercase())
        .collect();
    match words.join(" ").as_str() {
        "transaction isolation level" => "transaction_isolation".to_owned(),
        "time zone" => "timezone".to_owned(),
        "session authorization" => "session_authorization".to_owned(),
        _ => words.join("."),
    }
}

/// The name of a setting, which may have a point in it.
///
/// # Errors
/// `42601`.
pub(super) fn setting_name(name: &ast::ObjectName) -> Result<String> {
    let parts = name.0.iter().map(|part| match part {
        ast::ObjectNamePart::Identifier(ident) => Ok(ident.value.to_lowercase()),
        ast::ObjectNamePart::Function(_) => Err(SqlError::syntax("improper qualified name")),
    });
    Ok(parts.collect::<Result<Vec<_>>>()?.join("."))
}

/// The text of a setting's value; `None` for DEFAULT. In a list of names each is written so that it can be read again.
pub(super) fn setting_text(name: &str, values: &[ast::Expr]) -> Result<Option<String>> {
    let of_names = name.eq_ignore_ascii_case("search_path");
    let own = |text: &str| match of_names {
        true => crate::names::quoted(text),
        false => text.to_owned(),
    };
    let mut texts = Vec::with_capacity(values.len());
    for value in values {
        texts.push(match value {
            ast::Expr::Identifier(ident) if ident.quote_style.is_none() => {
                if ident.value.eq_ignore_ascii_case("default") && values.len() == 1 {
                    return Ok(None);
                }
                match of_names {
                    true => own(&folded(ident)),
                    false => cut(&ident.value).to_owned(),
                }
            }
            ast::Expr::Identifier(ident) => own(&ident.value),
            ast::Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(text)
                | ast::Value::EscapedStringLiteral(text)
                | ast::Value::UnicodeStringLiteral(text) => own(text),
                ast::Value::DollarQuotedString(text) => own(&text.value),
                other => other.to_string(),
            },
            other => other.to_string(),
        });
    }
    Ok(Some(texts.join(", ")))
}

/// `0A000`.
#[cold]
fn local_snapshot() -> SqlError {
    let text = "SET LOCAL TRANSACTION SNAPSHOT is not implemented";
    SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text)
}

/// A statement that is named and is EXECUTE might name itself.
fn refuse_execute(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Execute { .. } => Err(SqlError::unsupported("EXECUTE of an EXECUTE")),
        _ => Ok(()),
    }
}
