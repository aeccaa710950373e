//! Commands for which there is little or nothing to be done: CHECKPOINT, CREATE DATABASE, REINDEX, two-phase commit, constraints that are marked as not validated.
//!
//! Indexes are trees that are cleaned and merged as they are used, and that a checksum stands behind: REINDEX finds out whether it could, and does nothing.
//! No transaction can be prepared.

use super::run::{Given, Output, Prepared};
use super::{Session, TransactionStatus};
use crate::bind::object_name;
use crate::catalog::{Kind, Named, Oid};
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

    /// `UPDATE pg_constraint SET convalidated = …`: whatever it says, VALIDATE CONSTRAINT looks at the rows of a foreign key. What it reads is read; a table of that name
    /// that is no system relation is updated.
    ///
    /// # Errors
    /// `42501`, `25006`; of its condition and of what it assigns.
    pub(super) fn mark_constraints(
        &mut self,
        prepared: &Prepared,
        name: &ast::ObjectName,
        given: Given<'_>,
    ) -> Result<CommandTag> {
        self.start_statement()?;
        let search_path = self.search_path();
        let named = self.surroundings(&search_path, "").binder().named(name)?;
        let own = match named {
            Some(Named::Relation(oid)) => {
                let found = self.image().relation(oid);
                found.is_some_and(|found| !matches!(found.kind, Kind::System(_)))
            }
            _ => false,
        };
        let read = match &prepared.inner {
            _ if own => prepared,
            Some(inner) => &**inner,
            None => return Err(SqlError::internal("an update without its rows")),
        };
        if !own {
            self.require_superuser("permission denied for table pg_constraint")?;
            let open = self.open.as_ref();
            if open.is_some_and(|open| open.characteristics.read_only) {
                let text = "cannot execute UPDATE in a read-only transaction";
                return Err(SqlError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, text));
            }
        }
        let done = with_stack(|| self.run_program(read, given, &[], Output::Drop))?;
        self.code_found = done.rows() > 0;
        Ok(CommandTag::counted("UPDATE", done.rows()))
    }

    /// # Errors
    /// `42501` with that text.
    fn require_superuser(&self, text: &str) -> Result<()> {
        match self.rights().is_superuser(self.acting().role) {
            true => Ok(()),
            false => Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, text)),
        }
    }

    /// There is one database. Tools go on where they are told that it is there.
    fn create_database(&mut self, name: &str) -> Result<CommandTag> {
        self.refuse_in_block("CREATE DATABASE")?;
        self.start_statement()?;
        let role = self.rights().role_by_oid(self.acting().role);
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
        self.require_superuser(
            "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT",
        )?;
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
        let own = |owner: Oid, what: &str, name: &str| {
            if self.rights().owns(self.acting().role, owner) {
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
                own(schema.owner, "schema", &shown)?;
            }
            Reindexed::Database | Reindexed::System => {
                if shown != DATABASE {
                    let text = "can only reindex the currently open database";
                    return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
                }
                self.require_superuser(&format!("must be owner of database {shown}"))?;
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
                own(relation.owner, what.word(), &shown)?;
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

/// The relation of a statement that marks constraints as validated or not, and does nothing else, by its name.
pub(super) fn marked_constraints(update: &ast::Update) -> Option<&ast::ObjectName> {
    let ast::TableFactor::Table { name, .. } = &update.table.relation else {
        return None;
    };
    let (schema, relation) = object_name(name).ok()?;
    let own = relation == "pg_constraint" && schema.is_none_or(|schema| schema == "pg_catalog");
    let alone = update.from.is_none() && update.returning.is_none();
    let [assignment] = update.assignments.as_slice() else {
        return None;
    };
    let marks = match &assignment.target {
        ast::AssignmentTarget::ColumnName(column) => {
            object_name(column).is_ok_and(|(_, column)| column == "convalidated")
        }
        ast::AssignmentTarget::Tuple(_) => false,
    };
    (own && alone && marks).then_some(name)
}

/// The query of what such a statement assigns, of the rows that it changes.
pub(super) fn rows_marked(update: &ast::Update) -> Option<ast::Statement> {
    marked_constraints(update)?;
    let template = crate::parse::statements("SELECT CAST(NULL AS boolean)").ok()?;
    let mut query = match template.into_iter().next()? {
        ast::Statement::Query(query) => query,
        _ => return None,
    };
    let ast::SetExpr::Select(select) = &mut *query.body else {
        return None;
    };
    select.from = vec![update.table.clone()];
    select.selection.clone_from(&update.selection);
    let (Some(ast::SelectItem::UnnamedExpr(ast::Expr::Cast { expr, .. })), Some(assignment)) =
        (select.projection.first_mut(), update.assignments.first())
    else {
        return None;
    };
    **expr = assignment.value.clone();
    Some(ast::Statement::Query(query))
}
