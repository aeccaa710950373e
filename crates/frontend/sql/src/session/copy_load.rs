//! COPY into an empty table: its rows are loaded, not inserted.
//!
//! What a load saves of each row is the search for its place, its version, its undo and its own record of the log (0009, "Loads"). It is taken up
//! with the first batch that is full, and ends with the first key that is not above the one before: from there on rows are inserted.
//!
//! Invariants:
//! - C1 Who loads a table is alone at its gate, and stays it to the end of the transaction, which ends with the statement, or has the
//!   table for itself anyway. So nobody waits for a load who would not wait for a TRUNCATE there, and a session that rests in its block keeps
//!   no writer out that PostgreSQL would let in.
//! - C2 No statement sees a load that is under way: it begins and ends in one COPY, and whatever else ends that gives it up.

use super::run::Prepared;
use super::{Session, TransactionStatus};
use crate::catalog::{Mode, Relation, Table};
use crate::error::{Result, SqlError};
use crate::plan::{Insert, ProgramKind};
use crate::sqlstate;

impl Session {
    /// Begins a load into the table that a COPY inserts into, if its rows can be loaded. The INSERT checks everything else.
    ///
    /// # Errors
    /// `42501`, storage.
    pub(super) fn begin_copy_load(&mut self, insert: &Prepared) -> Result<bool> {
        let program = self.program(insert)?;
        let ProgramKind::Insert(insert) = &program.kind else {
            return Ok(false);
        };
        if !can_be_loaded(insert) {
            return Ok(false);
        }
        self.check_program(&program)?;
        let ends_with_it = self.status == TransactionStatus::Idle && self.rest.is_empty();
        let Some(open) = &mut self.open else {
            return Ok(false);
        };
        let oid = insert.shape.relation.oid;
        // C1. Of a table that nobody else knows there is nobody to wait.
        let alone =
            open.holds(oid, Mode::Alone) || self.shared.catalog.now().relation(oid).is_none();
        if open.characteristics.read_only || !(alone || ends_with_it) {
            return Ok(false);
        }
        match open.enter(&self.shared, oid, Mode::Alone, None) {
            Ok(true) => {}
            // The INSERT finds out what has become of the table.
            Ok(false) => return Ok(false),
            Err(error) if error.sqlstate() == sqlstate::LOCK_NOT_AVAILABLE => return Ok(false),
            Err(error) => return Err(error),
        }
        let table = insert.shape.table();
        let storage = table.storage.table(&open.transaction)?;
        match open.transaction.begin_load(storage) {
            // Of a snapshot that does not see what the table has become, or of who writes it without its gate.
            Err(vellum::Error::Conflict) => Ok(false),
            begun => Ok(begun?),
        }
    }

    /// Ends the load of a COPY, if it is one and has not ended yet.
    ///
    /// # Errors
    /// Storage.
    pub(super) fn end_copy_load(&mut self) -> Result<()> {
        if let Some(open) = &self.open
            && open.transaction.is_loading()
        {
            open.transaction.end_load()?;
        }
        Ok(())
    }

    /// Whether the rows of a COPY still go into its load.
    pub(super) fn is_loading(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.transaction.is_loading())
    }
}

impl Session {
    /// FREEZE says nothing here: no row has to be frozen. It is for tables that nobody else has seen yet.
    ///
    /// # Errors
    /// `55000` for another one.
    pub(super) fn check_frozen(&self, relation: &Relation) -> Result<()> {
        let published = self.shared.catalog.now();
        let before = published.relation(relation.oid);
        let before = before.and_then(|before| before.table());
        let same = |before: &Table| {
            let now = relation.table().map(|table| &table.storage);
            now.is_some_and(|now| now.name == before.storage.name)
        };
        if before.is_none_or(|before| !same(before)) {
            return Ok(());
        }
        let text = "cannot perform COPY FREEZE because the table was not created or truncated in the current subtransaction";
        let state = sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
        Err(SqlError::new(state, text))
    }
}

/// A table whose rows stand in one tree, and owe nothing to other rows.
fn can_be_loaded(insert: &Insert) -> bool {
    let table = insert.shape.table();
    table.foreign_keys.is_empty()
        && table.indexes.iter().all(|index| index.storage.is_none())
        && insert.conflict.is_none()
        && insert.returning.is_none()
}
