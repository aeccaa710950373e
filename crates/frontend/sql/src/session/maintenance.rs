//! Commands for which there is little or nothing to be done: CHECKPOINT, REINDEX, two-phase commit.
//!
//! Indexes are trees that are cleaned and merged as they are used, and that a checksum stands behind: REINDEX finds out whether it could, and does nothing.
//! No transaction can be prepared.

use super::{Session, TransactionStatus};
use crate::bind::object_name;
use crate::catalog::{Kind, Named};
use crate::database::DATABASE;
use crate::error::{Result, SqlError};
use crate::parse::{Command, Reindexed};
use crate::sqlstate;
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
