//! Snapshots that transactions have exported (`pg_export_snapshot`), and transactions that begin at them (SET TRANSACTION SNAPSHOT): sessions of one dump that see the
//! same.
//!
//! Invariants:
//! - E1 A snapshot can be begun at as long as the transaction that has exported it is open, whatever snapshots that has drawn since. Who has begun at it does not need that one any more.
//! - E2 The image of the catalog goes with the snapshot (C2), without what the exporting transaction has changed: nobody else sees that.
//!
//! Concurrency: who imports takes a handle of the engine's kept snapshot from the map, and begins at it without a lock. So the exporting transaction may end meanwhile: it takes the name
//! away, and the snapshot lasts as long as the handle (`vellum::KeptSnapshot`).

use super::transaction::{Beginner, Open};
use super::{Session, channels::Saying};
use crate::catalog::Catalog;
use crate::database::Shared;
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast;
use std::cell::RefCell;
use std::sync::Arc;
use vellum::{KeptSnapshot, Transaction};
use vellum_base::maps::HashMap;
use vellum_sync::Mutex;

/// A snapshot that others may begin at, with the image that belongs to it.
#[derive(Debug)]
pub(crate) struct Exported {
    pub kept: KeptSnapshot,
    pub catalog: (u64, Arc<Catalog>),
}

/// The snapshots of all sessions that are exported now, by their identifiers.
#[derive(Debug, Default)]
pub(crate) struct Exports(Mutex<HashMap<String, Arc<Exported>>>);

/// Those of one transaction, in their order. Dropped, they are exported no more.
#[derive(Debug, Default)]
pub(crate) struct OwnExports(RefCell<Vec<OwnExport>>);

#[derive(Debug)]
struct OwnExport {
    identifier: String,
    exported: Arc<Exported>,
    exports: Arc<Exports>,
}

impl Drop for OwnExport {
    fn drop(&mut self) {
        self.exports.0.lock().remove(&self.identifier);
    }
}

/// What a transaction exports.
#[derive(Clone, Copy)]
pub(crate) struct Exporting<'t> {
    pub transaction: &'t Transaction,
    pub own: &'t OwnExports,
    /// The image of its snapshot (E2).
    pub catalog: &'t (u64, Arc<Catalog>),
    /// It is behind a savepoint.
    pub within: bool,
}

impl Exporting<'_> {
    /// Exports the snapshot of the statement that runs, for the session of this number, and returns its identifier. Takes a slot of the engine for each snapshot, whatever the number of its
    /// identifiers.
    ///
    /// # Errors
    /// `25001` behind a savepoint; `53300` if no slot is free; `72000` for a snapshot that was withdrawn.
    pub fn export(&self, shared: &Shared, session: u64) -> Result<String> {
        if self.within {
            let text = "cannot export a snapshot from a subtransaction";
            return Err(SqlError::new(sqlstate::ACTIVE_SQL_TRANSACTION, text));
        }
        let mut own = self.own.0.borrow_mut();
        let time = self.transaction.snapshot_time();
        let known = own.last().map(|last| &last.exported);
        let exported = match known.filter(|known| known.kept.time() == time) {
            Some(known) => known.clone(),
            None => Arc::new(Exported {
                kept: shared.engine.keep_snapshot(self.transaction)?,
                catalog: self.catalog.clone(),
            }),
        };
        let transaction = self.transaction.id().number() as u32;
        let identifier = format!("{session:08X}-{transaction:08X}-{}", own.len() + 1);
        let exports = &shared.exports;
        exports
            .0
            .lock()
            .insert(identifier.clone(), exported.clone());
        own.push(OwnExport {
            identifier: identifier.clone(),
            exported,
            exports: exports.clone(),
        });
        Ok(identifier)
    }
}

impl Exports {
    /// The exported snapshot of an identifier.
    ///
    /// # Errors
    /// `22023`.
    fn find(&self, identifier: &str) -> Result<Arc<Exported>> {
        self.0.lock().get(identifier).cloned().ok_or_else(|| {
            let message = format!("invalid snapshot identifier: \"{identifier}\"");
            SqlError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
        })
    }
}

impl Session {
    /// SET TRANSACTION SNAPSHOT: the transaction sees what an exported snapshot does.
    ///
    /// # Errors
    /// `42601` for what is no text, `25001` behind a query or a savepoint, `0A000` under read committed, `22023` for what is not exported now; `53300`, `72000`.
    pub(super) fn import_snapshot(&mut self, identifier: &ast::ValueWithSpan) -> Result<()> {
        let Some(identifier) = identifier.value.clone().into_string() else {
            let message = format!("syntax error at or near \"{identifier}\"");
            return Err(SqlError::syntax(message));
        };
        let is_late = |open: &Open| open.used || open.holds_any() || open.has_savepoints();
        if self.open.as_deref().is_some_and(is_late) {
            let text = "SET TRANSACTION SNAPSHOT must be called before any query";
            return Err(SqlError::new(sqlstate::ACTIVE_SQL_TRANSACTION, text));
        }
        let own = self.open.as_ref().map(|open| open.characteristics);
        let own = own.unwrap_or_else(|| self.settings.characteristics());
        if !own.repeatable {
            let text = "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ";
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text));
        }
        let exported = self.shared.exports.find(&identifier)?;
        let saying = self.give_up_unused();
        let beginner = Beginner {
            activity: &self.activity,
            waiting: self.waiting(&self.cancel),
            superuser: self.superuser,
        };
        let mut open = Open::begin_at(&self.shared, beginner, &exported, own)?;
        open.saying = saying;
        // It has its snapshot.
        (open.used, open.begun_before) = (true, true);
        self.open = Some(open);
        Ok(())
    }

    /// Ends a transaction in which nothing has happened, for another one in its place, and returns what it has said: LISTEN and NOTIFY take no snapshot, and stay said.
    pub(super) fn give_up_unused(&mut self) -> Saying {
        let Some(mut open) = self.open.take() else {
            return Saying::default();
        };
        let saying = std::mem::take(&mut open.saying);
        open.roll_back(&self.shared);
        saying
    }
}
