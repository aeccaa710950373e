//! How the transaction is begun, and what it is said to be: BEGIN, START TRANSACTION, SET TRANSACTION.
//!
//! A text of several statements, and a pipeline, are a transaction that nobody has begun: BEGIN among them makes a block of it, with what they have done
//! so far, and SET TRANSACTION says of it what it says of a block.

use super::setting_value;
use super::transaction::{Beginner, Characteristics, Open, no_serializable};
use super::{Session, TransactionStatus};
use crate::error::{Fields, Result, SqlError};
use crate::sqlstate;
use crate::wire::{CommandTag, Sink};
use sqlparser::ast;

impl Session {
    /// BEGIN. In a block it is warned of, and its modes count.
    ///
    /// # Errors
    /// As [`Session::set_modes`].
    pub(super) fn begin_block(
        &mut self,
        modes: &[ast::TransactionMode],
        tag: CommandTag,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        if self.status == TransactionStatus::InBlock {
            let state = sqlstate::ACTIVE_SQL_TRANSACTION;
            let text = "there is already a transaction in progress";
            self.tell_notice(&Fields::warning(state, text), sink)?;
        }
        self.set_modes(|own| with_modes(own, modes))?;
        self.status = TransactionStatus::InBlock;
        Ok(tag)
    }

    /// A transaction whose first statement is still to come.
    pub(super) fn begun(&mut self, characteristics: Characteristics) -> Result<Box<Open>> {
        let mut open = Open::begin(
            &self.shared,
            Some(Beginner {
                activity: &self.activity,
                waiting: self.waiting(&self.cancel),
                superuser: self.superuser,
            }),
            &mut self.known,
            characteristics,
        )?;
        open.begun_before = true;
        Ok(open)
    }

    /// Says what the transaction is; begins one if there is none.
    ///
    /// # Errors
    /// `25001` for what cannot be said any more; `0A000`.
    pub(super) fn set_modes(
        &mut self,
        wanted: impl FnOnce(Characteristics) -> Result<Characteristics>,
    ) -> Result<()> {
        let Some(open) = &mut self.open else {
            let wanted = wanted(self.settings.characteristics())?;
            self.open = Some(self.begun(wanted)?);
            return Ok(());
        };
        let own = open.characteristics;
        let wanted = wanted(own)?;
        if wanted == own {
            return Ok(());
        }
        // Another transaction would not hold what LOCK TABLE has taken, and would not know the savepoints.
        let (used, within) = (open.used || open.holds_any(), open.has_savepoints());
        let refused = |text| Err(SqlError::new(sqlstate::ACTIVE_SQL_TRANSACTION, text));
        if own.read_only && !wanted.read_only {
            if within {
                return refused(
                    "cannot set transaction read-write mode inside a read-only transaction",
                );
            }
            if used {
                return refused("transaction read-write mode must be set before any query");
            }
        }
        if wanted.level() != own.level() {
            if used {
                return refused("SET TRANSACTION ISOLATION LEVEL must be called before any query");
            }
            if within {
                return refused(
                    "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction",
                );
            }
        }
        if used || within {
            open.characteristics.read_only = wanted.read_only;
            return Ok(());
        }
        // Nothing has happened in it: another one instead.
        let saying = self.give_up_unused();
        let mut open = self.begun(wanted)?;
        open.saying = saying;
        self.open = Some(open);
        Ok(())
    }

    /// The same by the name of a setting; `None`: what transactions are that say nothing of it. Outside of a block it says nothing.
    ///
    /// # Errors
    /// `22023`; as [`Session::set_modes`].
    pub(super) fn set_mode(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let own = self.settings.characteristics();
        let text = value
            .map(|value| setting_value::known(name, value))
            .transpose()?;
        let said = match text.as_deref() {
            None => own,
            Some("serializable") => return Err(no_serializable()),
            Some(word) => Characteristics {
                repeatable: word == "repeatable read",
                uncommitted: word == "read uncommitted",
                read_only: word == "on",
                ..own
            },
        };
        let alone = self.status == TransactionStatus::Idle && !self.several;
        if alone && self.open.is_none() {
            return Ok(());
        }
        self.set_modes(|mut own| {
            if name == "transaction_read_only" {
                own.read_only = said.read_only;
            } else {
                own.repeatable = said.repeatable;
                own.uncommitted = said.uncommitted;
            }
            Ok(own)
        })
    }
}

/// What modes make of a transaction.
///
/// # Errors
/// `0A000`.
pub(super) fn with_modes(
    mut characteristics: Characteristics,
    modes: &[ast::TransactionMode],
) -> Result<Characteristics> {
    use ast::TransactionIsolationLevel as Level;
    for mode in modes {
        match mode {
            ast::TransactionMode::AccessMode(mode) => {
                characteristics.read_only = *mode == ast::TransactionAccessMode::ReadOnly;
            }
            ast::TransactionMode::IsolationLevel(level) => {
                characteristics.uncommitted = *level == Level::ReadUncommitted;
                characteristics.repeatable = match level {
                    Level::ReadUncommitted | Level::ReadCommitted => false,
                    Level::RepeatableRead | Level::Snapshot => true,
                    Level::Serializable => return Err(no_serializable()),
                };
            }
        }
    }
    Ok(characteristics)
}
