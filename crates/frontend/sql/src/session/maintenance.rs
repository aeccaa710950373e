//! Commands for which there is little or nothing to be done: CHECKPOINT, CREATE DATABASE, REINDEX, two-phase commit, constraints that are marked as not validated.
//!
//! Indexes are trees that are cleaned and merged as they are used, and that a checksum stands behind: REINDEX finds out whether it could, and does nothing.
//! No transaction can be prepared.

use super::{Session, TransactionStatus};
use crate::bind::object_name;
use crate::catalog::{Kind, Named};
use crate::database::{DATABASE, database_called};
use crate::error::{Result, SqlError};
use crate::parse::{Command, Reindexed, with_stack};
use crate::sqlstate::{self, SqlState};
use crate::wire::{CommandTag, Sink};
use sqlparser::ast;

impl Session {
    /// Runs one of them.
    ///
    /// # Errors
    /// `42501`; `25001` in a block; `42P01`, `42809`, `42704`, `3F000`; `55000` for PREPARE TRANSACTION, whose transaction is rolled back.
    pub(super) fn maintenance(
        &mut self,
        command: Command,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        match command {
            Command::Checkpoint => self.checkpoint(),
            Command::Reindex {
                what,
                name,
                concurrently,
            } => self.reindex(what, &name, concurrently),
            Command::Constraints { names, deferred } => {
                self.set_constraints(&names, deferred, sink)
            }
            Command::Prepare => self.prepare_transaction(sink),
            Command::Database(name) => self.create_database(&name),
            Command::Keep { .. }
            | Command::DropAbsent(_)
            | Command::Said(_)
            | Command::Code(_)
            | Command::Schema(_) => Err(SqlError::internal("a definition")),
            Command::EndPrepared {
                commit,
                transaction,
            } => {
                let word = if commit { "COMMIT" } else { "ROLLBACK" };
                self.refuse_in_block(&format!("{word} PREPARED"))?;
                let message = format!(
                    "prepared transaction with identifier \"{transaction}\" does not exist"
                );
                Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message))
            }
        }
    }

    /// `UPDATE pg_constraint SET convalidated = …`: whatever it says, VALIDATE CONSTRAINT looks at the rows of a foreign key.
    ///
    /// # Errors
    /// `42501`; of its condition.
    pub(super) fn mark_constraints(&mut self, update: &ast::Update) -> Result<CommandTag> {
        self.start_statement()?;
        let role = self.image().role(&self.options.user);
        if role.is_none_or(|role| !role.superuser) {
            let text = "permission denied for table pg_constraint";
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, text));
        }
        let mut text = format!("SELECT count(*) FROM {}", update.table);
        if let Some(condition) = &update.selection {
            text = format!("{text} WHERE {condition}");
        }
        let statements = with_stack(|| self.prepare_text(&text))?;
        let (count, _) = with_stack(|| self.only_value(&statements))?;
        let count = count
            .as_ref()
            .as_i64()
            .and_then(|count| u64::try_from(count).ok());
        Ok(CommandTag::counted("UPDATE", count.unwrap_or(0)))
    }

    /// There is one database. Tools go on where they are told that it is there.
    fn create_database(&mut self, name: &str) -> Result<CommandTag> {
        self.refuse_in_block("CREATE DATABASE")?;
        self.start_statement()?;
        let role = self.image().role(&self.options.user);
        if role.is_none_or(|role| !role.superuser && !role.create_database) {
            let text = "permission denied to create database";
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, text));
        }
        if database_called(name).is_some() {
            let message = format!("database \"{name}\" already exists");
            return Err(SqlError::new(SqlState::of("42P04"), message));
        }
        let hint = format!(
            "There is one database, \"{DATABASE}\". Schemas keep data apart in it, or a server of their own."
        );
        Err(SqlError::unsupported("CREATE DATABASE").with_hint(hint))
    }

    fn checkpoint(&mut self) -> Result<CommandTag> {
        self.start_statement()?;
        let role = self.image().role(&self.options.user);
        if role.is_none_or(|role| !role.superuser) {
            let text = "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT";
            return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, text));
        }
        self.shared.engine.checkpoint()?;
        Ok(CommandTag::plain("CHECKPOINT"))
    }

    fn reindex(
        &mut self,
        what: Reindexed,
        name: &ast::ObjectName,
        concurrently: bool,
    ) -> Result<CommandTag> {
        if concurrently {
            self.refuse_in_block("REINDEX CONCURRENTLY")?;
        }
        if what.is_of_many() {
            self.refuse_in_block(&format!("REINDEX {}", what.word().to_uppercase()))?;
        }
        self.start_statement()?;
        let (catalog, search_path) = (self.image().clone(), self.search_path());
        let own = |owner: &str, what: &str, name: &str| {
            if catalog.owns(&self.options.user, owner) {
                return Ok(());
            }
            let message = format!("must be owner of {what} {name}");
            Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message))
        };
        let (schema, shown) = object_name(name)?;
        match what {
            Reindexed::Schema => {
                let found = catalog.namespace(&shown);
                let schema = found.ok_or_else(|| no_schema(&shown))?;
                own(&schema.owner, "schema", &shown)?;
            }
            Reindexed::Database | Reindexed::System => {
                if shown != DATABASE {
                    let text = "can only reindex the currently open database";
                    return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
                }
                let role = catalog.role(&self.options.user);
                if role.is_none_or(|role| !role.superuser) {
                    let message = format!("must be owner of database {shown}");
                    return Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
                }
            }
            Reindexed::Index | Reindexed::Table => {
                if let Some(schema) = schema
                    && catalog.schema_named(&schema, &search_path).is_none()
                {
                    return Err(no_schema(&schema));
                }
                let binder = self.surroundings(&search_path, "").binder();
                let named = binder.named(name)?;
                let named = named.ok_or_else(|| binder.no_relation(name).without_place())?;
                let wrong = |kind: &str| {
                    let message = format!("\"{shown}\" is not {kind}");
                    SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
                };
                let table = match (named, what) {
                    (Named::Index { table, .. }, Reindexed::Index) => table,
                    (Named::Relation(oid), Reindexed::Table) => oid,
                    (_, Reindexed::Index) => return Err(wrong("an index")),
                    _ => return Err(wrong("a table or materialized view")),
                };
                let found = catalog.relation(table);
                let relation = found.ok_or_else(|| SqlError::internal("a name without table"))?;
                let is_table = match &relation.kind {
                    Kind::Table(_) => true,
                    Kind::System(definition) => !definition.is_view,
                    _ => false,
                };
                if !is_table {
                    return Err(wrong("a table or materialized view"));
                }
                own(&relation.owner, what.word(), &shown)?;
            }
        }
        Ok(CommandTag::plain("REINDEX"))
    }

    fn prepare_transaction(&mut self, sink: &mut dyn Sink) -> Result<CommandTag> {
        let status = std::mem::replace(&mut self.status, TransactionStatus::Idle);
        if status == TransactionStatus::Idle {
            self.warn_no_block(sink)?;
        }
        self.failed_as = None;
        self.roll_back();
        if status == TransactionStatus::InBlock {
            let state = sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(SqlError::new(state, "prepared transactions are disabled")
                .with_hint("Set max_prepared_transactions to a nonzero value."));
        }
        Ok(CommandTag::plain("ROLLBACK"))
    }
}

#[cold]
pub(super) fn no_schema(name: &str) -> SqlError {
    let message = format!("schema \"{name}\" does not exist");
    SqlError::new(sqlstate::INVALID_SCHEMA_NAME, message)
}

/// Whether a statement marks constraints as validated or not, and does nothing else.
pub(super) fn marks_constraints(update: &ast::Update) -> bool {
    let is_named = |name: &ast::ObjectName, wanted: &str| {
        let last = name.0.last().and_then(ast::ObjectNamePart::as_ident);
        last.is_some_and(|last| last.value.eq_ignore_ascii_case(wanted))
    };
    let ast::TableFactor::Table { name, .. } = &update.table.relation else {
        return false;
    };
    let alone = update.from.is_none() && update.returning.is_none();
    if !alone || !is_named(name, "pg_constraint") {
        return false;
    }
    let own = object_name(name)
        .is_ok_and(|(schema, _)| schema.is_none_or(|schema| schema == "pg_catalog"));
    let [assignment] = update.assignments.as_slice() else {
        return false;
    };
    let marks = match &assignment.target {
        ast::AssignmentTarget::ColumnName(column) => is_named(column, "convalidated"),
        ast::AssignmentTarget::Tuple(_) => false,
    };
    own && marks
}
