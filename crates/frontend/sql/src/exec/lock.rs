//! Locks on rows: taken for FOR UPDATE and its like, and honoured by what changes rows.
//!
//! Whoever finds somebody in the way tells the statement's [`Waiting`](crate::session::Waiting) and fails with a conflict: the statement is undone,
//! waits, and runs again. Interleavings: `docs/design/0018-row-locks.md`.

use super::Run;
use crate::error::{Result, SqlError};
use crate::expr::RowRef;
use crate::lock::{HeldLocks, Obstacle, RowName, Strength};
use crate::plan::{LockWait, RowLock};
use crate::rows::{self, Shape};
use crate::sqlstate;
use vellum::{Newest, TransactionOptions};
use vellum_row::Value;

/// What a row that another transaction writes, and has not deleted, stands on.
enum Beneath {
    /// The row that the statement sees, with all keys that the writer's has.
    Kept,
    /// That row, and the writer changes a key of it.
    Touched,
    /// A row that was committed since.
    Other,
    /// None.
    Gone,
}

impl Run<'_, '_> {
    /// Locks a row that the statement has found. False if it is not to be returned: it is skipped, or it is gone.
    ///
    /// # Errors
    /// A conflict if it is to be waited for, or to be looked at again; `55P03` if it is not to be waited for.
    pub(super) fn lock_row(&self, shape: &Shape, key: &[u8], lock: &RowLock) -> Result<bool> {
        let relation = &shape.relation;
        if self.together.get() {
            // What a statement of the same WITH has changed is no row of this one's, as in PostgreSQL.
            match self.row_of(shape, key)? {
                Some(row) if !self.is_changed(shape, key, &row)? => {}
                _ => return Ok(false),
            }
        }
        let name = RowName {
            oid: relation.oid,
            key: key.into(),
        };
        let before = self.locks.count();
        if !self.locks.take(&relation.runtime, &name, lock.strength) {
            let obstacle = Obstacle::Holders(name, lock.strength);
            return self.obstructed(obstacle, lock.wait, shape);
        }
        let storage = shape.table().storage.table(self.transaction)?;
        match self.transaction.newest(storage, key)? {
            Newest::Seen { live } => Ok(live),
            Newest::Running { live: true, by } if lock.strength == Strength::KeyShare => {
                match self.beneath(shape, storage, key)? {
                    Beneath::Kept => Ok(true),
                    Beneath::Touched => {
                        self.locks.release_to(before);
                        self.obstructed(Obstacle::Writer(by), lock.wait, shape)
                    }
                    Beneath::Gone if !self.repeatable => {
                        self.locks.release_to(before);
                        Ok(false)
                    }
                    Beneath::Gone | Beneath::Other => Err(vellum::Error::Conflict.into()),
                }
            }
            // Changed since the snapshot: it is held for the key that the statement sees in it.
            Newest::Committed { live: true }
                if self.repeatable && lock.strength == Strength::KeyShare =>
            {
                let now = self.committed(storage, key, <[u8]>::to_vec)?;
                match (self.row_of(shape, key)?, now) {
                    (Some(seen), Some(now)) if have_same_keys(shape, key, &seen, &now)? => Ok(true),
                    _ => Err(vellum::Error::Conflict.into()),
                }
            }
            Newest::Running { by, .. } => {
                vellum_sync::test_point!("row locks: a writer was met");
                self.locks.release_to(before);
                self.obstructed(Obstacle::Writer(by), lock.wait, shape)
            }
            Newest::Nothing | Newest::Committed { live: false } if !self.repeatable => {
                self.locks.release_to(before);
                Ok(false)
            }
            Newest::Nothing | Newest::Committed { .. } => Err(vellum::Error::Conflict.into()),
        }
    }

    /// What another transaction's uncommitted row stands on. Its writer may have put it where the row that the statement sees was deleted since, or
    /// was changed since.
    fn beneath(&self, shape: &Shape, storage: &vellum::Table, key: &[u8]) -> Result<Beneath> {
        let Some(row) = self.committed(storage, key, <[u8]>::to_vec)? else {
            return Ok(Beneath::Gone);
        };
        match self.row_of(shape, key)? {
            Some(seen) if seen == row => {}
            // The snapshot stays, and so does the row where its keys do.
            Some(seen) if self.repeatable && have_same_keys(shape, key, &seen, &row)? => {}
            _ => return Ok(Beneath::Other),
        }
        let row = RowRef::Stored(shape.table().schema.view(&row)?);
        let (mut entry, mut value) = (Vec::new(), Vec::new());
        for (keys, index) in shape.keys.iter().zip(&shape.table().indexes) {
            if let Some(storage) = index.storage.as_ref().filter(|_| index.keeps_apart())
                && keys.is_plain()
                && rows::entry(keys, row, key, &mut entry, &mut value)?
            {
                // Who changes a key has taken the entry away, or will find the lock.
                let storage = storage.table(self.transaction)?;
                let newest = self.transaction.newest(storage, &entry)?;
                if matches!(newest, Newest::Running { live: false, .. }) {
                    return Ok(Beneath::Touched);
                }
            }
        }
        Ok(Beneath::Kept)
    }

    /// What is committed at a key by now, where another transaction's version stands above it. The caller holds its lock: who deletes the row behind
    /// this look waits for that.
    pub(super) fn committed<R>(
        &self,
        storage: &vellum::Table,
        key: &[u8],
        each: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let options = TransactionOptions::default().read_only(true);
        let now = self.waiting.borrow().begin(self.engine, options)?;
        Ok(now.get(storage, key, each)?)
    }

    fn obstructed(&self, obstacle: Obstacle, wait: LockWait, shape: &Shape) -> Result<bool> {
        match wait {
            LockWait::Skip => Ok(false),
            LockWait::Never => {
                let message = format!(
                    "could not obtain lock on row in relation \"{}\"",
                    shape.relation.name
                );
                Err(SqlError::new(sqlstate::LOCK_NOT_AVAILABLE, message))
            }
            LockWait::Block => Err(self.waits_for(obstacle)),
        }
    }

    /// The conflict that has the statement wait.
    pub(super) fn waits_for(&self, obstacle: Obstacle) -> SqlError {
        self.waiting.borrow_mut().set_obstacle(obstacle);
        vellum::Error::Conflict.into()
    }

    /// A row has been changed, or is gone: nobody's lock on it forbids that (L2 of `lock::rows`). `old` are its values before.
    ///
    /// # Errors
    /// A conflict, after which the statement is undone and waits.
    pub(super) fn honour_locks(
        &self,
        shape: &Shape,
        key: &[u8],
        old: &[Value],
        strength: Strength,
    ) -> Result<()> {
        vellum_sync::test_point!("row locks: a version was placed");
        let relation = &shape.relation;
        if !HeldLocks::must_look(&relation.runtime) {
            return Ok(());
        }
        let look = |oid, key: &[u8]| {
            let key = key.into();
            let name = RowName { oid, key };
            let (locks, own) = (self.locks.locks(), self.locks.own());
            if locks.blockers(&name, own, strength).is_empty() {
                return Ok(());
            }
            Err(self.waits_for(Obstacle::Holders(name, strength)))
        };
        look(relation.oid, key)?;
        if strength == Strength::Update {
            // Foreign keys that are no primary key hold the entry.
            for (keys, index) in shape.keys.iter().zip(&shape.table().indexes) {
                let mut entry = Vec::new();
                let may = index.keeps_apart() && index.storage.is_some() && keys.is_plain();
                if may && !keys.encode(RowRef::Values(old), &mut entry)? {
                    look(index.oid, &entry)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether two versions of a row have the same plain unique keys: those that rows of other tables may refer to.
fn have_same_keys(shape: &Shape, key: &[u8], one: &[u8], other: &[u8]) -> Result<bool> {
    let table = shape.table();
    let versions = [table.schema.view(one)?, table.schema.view(other)?].map(RowRef::Stored);
    let mut value = Vec::new();
    for (keys, index) in shape.keys.iter().zip(&table.indexes) {
        // Both stand under the table's own key.
        if index.storage.is_none() || !index.keeps_apart() || !keys.is_plain() {
            continue;
        }
        let mut entries = [Vec::new(), Vec::new()];
        let mut has = [false; 2];
        for ((row, entry), has) in versions.iter().zip(&mut entries).zip(&mut has) {
            *has = rows::entry(keys, *row, key, entry, &mut value)?;
        }
        if has[0] != has[1] || entries[0] != entries[1] {
            return Ok(false);
        }
    }
    Ok(true)
}
