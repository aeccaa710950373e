//! What can be used in transaction blocks only, and what only outside of them.
//!
//! The statements of one text are one transaction, so they are in a block that nobody has begun: LOCK TABLE and DECLARE CURSOR may be among them, savepoints not.
//! What is done in a pipeline, up to its Sync, is one transaction, too, and no block; what has a transaction of its own may be its first statement, and
//! commits at once.

use super::transaction::Open;
use super::{Session, TransactionStatus};
use crate::error::{Result, SqlError};
use crate::parse::{Command, Definition};
use crate::sqlstate;
use sqlparser::ast::Statement;

impl Session {
    /// The transaction of the block.
    ///
    /// # Errors
    /// `25P01` outside of one.
    pub(super) fn in_block(&mut self, what: &str) -> Result<&mut Open> {
        match &mut self.open {
            Some(open) if self.status == TransactionStatus::InBlock => Ok(open),
            _ => Err(needs_block(what)),
        }
    }

    /// # Errors
    /// `25P01` where a transaction ends with the statement.
    pub(super) fn require_more_statements(&self, what: &str) -> Result<()> {
        match self.status == TransactionStatus::Idle && !self.several {
            true => Err(needs_block(what)),
            false => Ok(()),
        }
    }

    /// The statement has a transaction of its own, which ends with it.
    ///
    /// # Errors
    /// `25001` in a transaction block, a text of several statements, or behind others in a pipeline.
    pub(super) fn refuse_in_block(&mut self, what: &str) -> Result<()> {
        let how = if self.status == TransactionStatus::InBlock || self.several {
            "run inside a transaction block"
        } else if self.pipelined {
            "be executed within a pipeline"
        } else {
            self.alone = true;
            return Ok(());
        };
        let message = format!("{what} cannot {how}");
        Err(SqlError::new(sqlstate::ACTIVE_SQL_TRANSACTION, message))
    }
}

impl Session {
    /// Commits before the client is told that a command is done, if its transaction ends with it: the command of a simple query that is the last one of its text,
    /// and what has a transaction of its own.
    ///
    /// # Errors
    /// The commit's.
    pub(super) fn end_with_command(&mut self, simple: bool) -> Result<()> {
        match self.alone || (simple && self.rest.is_empty()) {
            true => self.end_implicit(),
            false => Ok(()),
        }
    }
}

/// A definition for which PostgreSQL needs transactions of its own: an index that is made beside those who write, CLUSTER of all tables.
pub(super) fn stands_alone(statement: &Statement) -> Option<&'static str> {
    if matches!(statement, Statement::CreateIndex(index) if index.concurrently) {
        return Some("CREATE INDEX CONCURRENTLY");
    }
    let Some(Command::Said(said)) = Command::of(statement) else {
        return None;
    };
    let all = matches!(
        crate::parse::definition(&said),
        Ok(Definition::Cluster { table: None, .. })
    );
    all.then_some("CLUSTER")
}

#[cold]
pub(super) fn needs_block(what: &str) -> SqlError {
    let message = format!("{what} can only be used in transaction blocks");
    SqlError::new(sqlstate::NO_ACTIVE_SQL_TRANSACTION, message)
}
