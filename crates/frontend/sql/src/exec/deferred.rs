//! Deferrable constraints at work: what a statement leaves to be checked later, the checks at the end of a transaction or when SET CONSTRAINTS asks
//! for them, and keys that rows may share for a while.
//!
//! Deferred foreign keys: `docs/design/0023-deferred-constraints.md`. What is checked later is what `foreign` checks at the end of a statement, of the
//! rows that are there by then.
//!
//! Deferrable keys. Rows stand in the index under their keys and their own (`rows::entry`), so nothing keeps two of them apart but this: who puts a row there
//! *claims* the key, a lock that is held to the end of the transaction (or until it goes back to a savepoint from before), then looks for others in a
//! snapshot that is drawn behind the claim. Of two that put a row under one key the second claims when the first has ended, and sees what it left. Who takes
//! a row away claims nothing: its tombstone is met, and waited for. A statement looks at its end; what shares its key then is told at once, or
//! is owed if the constraint is deferred.

use super::Run;
use super::foreign::Due;
use super::owed::{Check, Owed};
use crate::catalog::{Action, Catalog, Oid, Timing};
use crate::error::Result;
use crate::expr::RowRef;
use crate::lock::{Obstacle, RowName, Strength};
use crate::plan::Foreign;
use crate::rows::{Duplicate, Shape, primary_key_of};
use std::collections::hash_map;
use std::ops::Bound;
use std::sync::Arc;
use vellum::{Newest, Transaction, TransactionOptions};
use vellum_base::maps::HashMap;
use vellum_row::{KeyRange, Value};

/// A row that has come under a key of a deferrable constraint.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    shape: Arc<Shape>,
    /// Number of the index.
    index: usize,
    key: Box<[u8]>,
    row: Vec<Value>,
}

impl Claim {
    fn constraint(&self) -> (Oid, Timing) {
        let index = &self.shape.table().indexes[self.index];
        (index.constraint.unwrap_or(index.oid), index.timing)
    }

    fn name(&self) -> RowName {
        RowName {
            oid: self.shape.table().indexes[self.index].oid,
            key: self.key.clone(),
        }
    }
}

/// An entry of an index whose rows may share keys for a while.
#[derive(PartialEq, Eq)]
struct Entry {
    key: Vec<u8>,
    row_key: Vec<u8>,
}

/// What stands under a key.
enum Standing {
    /// One row at most.
    Alone,
    /// Several.
    Shared,
    /// Another transaction is taking a row away, or may do so: it is to be waited for.
    Waits(Obstacle),
}

/// What an owed check is about, by the catalog as it is now.
enum About {
    Foreign(Arc<Foreign>),
    Key(Arc<Shape>, usize),
}

impl Run<'_, '_> {
    pub(super) fn is_deferred(&self, constraint: Oid, timing: Timing) -> bool {
        timing.is_deferrable() && self.deferred.borrow().is_deferred(constraint, timing)
    }

    /// A row is to have its target by the end of the transaction. `inserted`: PostgreSQL has a check pending even if it has a null there.
    pub(super) fn defer_target(
        &self,
        foreign: &Foreign,
        inserted: bool,
        row: &[Value],
    ) -> Result<()> {
        let mut key = Vec::new();
        let found = foreign.target_key(row, self.env.settings(), &mut key)?;
        if found.is_none() && !inserted {
            return Ok(());
        }
        let about = (foreign.oid, foreign.child.relation.oid);
        let known = (found != Some(false)).then_some(key.as_slice());
        let mut deferred = self.deferred.borrow_mut();
        deferred.owe(Check::Target, about, known, || {
            found.map(|_| foreign.columns.iter().map(|at| row[*at].clone()).collect())
        });
        Ok(())
    }

    /// Nothing is to refer to a key by the end of the transaction.
    pub(super) fn defer_children(&self, foreign: &Foreign, old: &[Value]) -> Result<()> {
        let mut key = Vec::new();
        foreign.parent.keys[foreign.index].encode(RowRef::Values(old), &mut key)?;
        let about = (foreign.oid, foreign.parent.relation.oid);
        let mut deferred = self.deferred.borrow_mut();
        deferred.owe(Check::Children, about, Some(&key), || {
            let columns = foreign.target_columns.iter();
            Some(columns.map(|at| old[*at].clone()).collect())
        });
        Ok(())
    }

    /// A row was inserted, or (with `old`) changed: the keys that it has come under.
    pub(super) fn owes_alone(
        &self,
        shape: &Arc<Shape>,
        old: Option<&[Value]>,
        new: &[Value],
    ) -> Result<()> {
        for (number, index) in shape.table().indexes.iter().enumerate() {
            if !index.unique || index.keeps_apart() {
                continue;
            }
            let keys = &shape.keys[number];
            let (mut key, mut before) = (Vec::new(), Vec::new());
            let null = keys.encode(RowRef::Values(new), &mut key)?;
            if null && index.nulls_distinct {
                continue;
            }
            if let Some(old) = old {
                keys.encode(RowRef::Values(old), &mut before)?;
                if before == key {
                    continue;
                }
            }
            self.dues.borrow_mut().push_back(Due::Alone(Claim {
                shape: shape.clone(),
                index: number,
                key: key.into(),
                row: new.to_vec(),
            }));
        }
        Ok(())
    }

    /// Claims the keys that the statement's rows have come under. A deferred constraint waits for nobody: its check is owed instead.
    ///
    /// # Errors
    /// A conflict if a claim is to be waited for.
    pub(super) fn claim_keys(&self) -> Result<()> {
        let mut failed = None;
        self.dues.borrow_mut().retain(|due| {
            let Due::Alone(claim) = due else {
                return true;
            };
            let runtime = &claim.shape.relation.runtime;
            if failed.is_some() || self.locks.take(runtime, &claim.name(), Strength::Update) {
                return true;
            }
            let (constraint, timing) = claim.constraint();
            if self.is_deferred(constraint, timing) {
                self.owe_alone(claim);
                return false;
            }
            failed = Some(Obstacle::Holders(claim.name(), Strength::Update));
            true
        });
        failed.map_or(Ok(()), |obstacle| Err(self.waits_for(obstacle)))
    }

    fn owe_alone(&self, claim: &Claim) {
        let parts = &claim.shape.keys[claim.index].parts;
        let columns = parts.iter().filter_map(|part| part.column());
        let about = (claim.constraint().0, claim.shape.relation.oid);
        let mut deferred = self.deferred.borrow_mut();
        deferred.owe(Check::Alone, about, Some(&claim.key), || {
            Some(columns.map(|at| claim.row[at].clone()).collect())
        });
    }

    /// Looks whether a row is alone under a key that the statement has claimed.
    ///
    /// # Errors
    /// `23505`; a conflict if it is to be waited for.
    pub(super) fn look_alone(&self, claim: &Claim) -> Result<()> {
        self.step()?;
        let (constraint, timing) = claim.constraint();
        let deferred = self.is_deferred(constraint, timing);
        match self.standing(claim)? {
            Standing::Alone => return Ok(()),
            _ if deferred => {}
            Standing::Shared => return Err(self.shared(claim)),
            Standing::Waits(obstacle) => return Err(self.waits_for(obstacle)),
        }
        self.owe_alone(claim);
        Ok(())
    }

    #[cold]
    fn shared(&self, claim: &Claim) -> crate::error::SqlError {
        let duplicate = Duplicate {
            index: claim.index,
            row_key: Vec::new(),
            unsettled: None,
            outdated: false,
        };
        duplicate.error(&claim.shape, &claim.row, self.env, self.catalog)
    }

    fn standing(&self, claim: &Claim) -> Result<Standing> {
        let mut all = self.entries(self.transaction, claim)?;
        if self.repeatable {
            let options = TransactionOptions::default().read_only(true);
            let now = self.engine.begin_with(options)?;
            for entry in self.entries(&now, claim)? {
                if !all.contains(&entry) {
                    all.push(entry);
                }
            }
        }
        let table = claim.shape.table();
        let Some(storage) = &table.indexes[claim.index].storage else {
            return Ok(Standing::Alone);
        };
        let storage = storage.table(self.transaction)?;
        let mut live = Vec::new();
        for entry in all {
            match self.transaction.newest(storage, &entry.key)? {
                // One that it has put there anew may go again, too.
                Newest::Running { by, .. } => {
                    return Ok(Standing::Waits(Obstacle::Writer(by)));
                }
                Newest::Seen { live: true } | Newest::Committed { live: true } => live.push(entry),
                Newest::Nothing | Newest::Seen { .. } | Newest::Committed { .. } => {}
            }
        }
        if live.len() < 2 {
            return Ok(Standing::Alone);
        }
        // Whoever changes other columns of such a row may yet take it away.
        let storage = table.storage.table(self.transaction)?;
        for entry in live {
            if let Newest::Running { by, .. } = self.transaction.newest(storage, &entry.row_key)? {
                return Ok(Standing::Waits(Obstacle::Writer(by)));
            }
        }
        Ok(Standing::Shared)
    }

    /// The entries under a key that a transaction sees.
    fn entries(&self, transaction: &Transaction, claim: &Claim) -> Result<Vec<Entry>> {
        let Some(storage) = &claim.shape.table().indexes[claim.index].storage else {
            return Ok(Vec::new());
        };
        let range = KeyRange::of_prefix(claim.key.to_vec());
        let end = range.end.as_deref();
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let bounds = (Bound::Included(range.start.as_slice()), end);
        let mut cursor = transaction.cursor(storage.table(transaction)?, bounds)?;
        let mut found = Vec::new();
        while let Some((key, value)) = cursor.next()? {
            self.step()?;
            found.push(Entry {
                key: key.to_vec(),
                row_key: primary_key_of(key, value)?.to_vec(),
            });
        }
        Ok(found)
    }

    /// Makes checks that are owed, as of now.
    ///
    /// # Errors
    /// `23503`, `23505`; a conflict if it is to be waited for.
    pub(crate) fn settle_owed(&self, owed: &[Owed], catalog: &Catalog) -> Result<()> {
        let mut known: HashMap<(Check, Oid), Option<About>> = HashMap::default();
        for one in owed {
            if let hash_map::Entry::Vacant(free) = known.entry((one.check, one.constraint)) {
                free.insert(about(one, catalog)?);
            }
        }
        let all = owed.iter().filter_map(|one| {
            let about = known.get(&(one.check, one.constraint))?.as_ref()?;
            Some((one, about, one.values.as_deref()?))
        });
        let mut claims = Vec::new();
        for (_, about, values) in all.clone() {
            if let About::Key(shape, index) = about {
                let claim = claim_of(shape, *index, values)?;
                let name = claim.name();
                let runtime = &shape.relation.runtime;
                if !self.locks.take(runtime, &name, Strength::Update) {
                    return Err(self.waits_for(Obstacle::Holders(name, Strength::Update)));
                }
                claims.push(claim);
            }
        }
        if !self.repeatable {
            // Behind the claims, as in `settle_keys`.
            self.transaction.begin_statement()?;
        }
        let mut claims = claims.iter();
        for (one, about, values) in all {
            self.step()?;
            match about {
                About::Key(..) => {
                    let Some(claim) = claims.next() else {
                        continue;
                    };
                    match self.standing(claim)? {
                        Standing::Alone => {}
                        Standing::Shared => return Err(self.shared(claim)),
                        Standing::Waits(obstacle) => return Err(self.waits_for(obstacle)),
                    }
                }
                About::Foreign(foreign) if one.check == Check::Target => {
                    let row = row_of(&foreign.child, &foreign.columns, values);
                    if let Err(error) = self.hold_target(foreign, &row)?
                        && self.has_child(foreign, &row)?
                    {
                        return Err(error);
                    }
                }
                About::Foreign(foreign) => {
                    let row = row_of(&foreign.parent, &foreign.target_columns, values);
                    self.nothing_refers(foreign, &row, Action::NoAction)?;
                }
            }
        }
        Ok(())
    }
}

/// What a check is about; `None` if the constraint is gone.
fn about(owed: &Owed, catalog: &Catalog) -> Result<Option<About>> {
    let Some(relation) = catalog.relation(owed.relation) else {
        return Ok(None);
    };
    let keys = || {
        relation
            .table()
            .map_or(&[][..], |table| &table.foreign_keys)
    };
    let found = match owed.check {
        Check::Target => {
            let key = keys().iter().find(|key| key.oid == owed.constraint);
            key.map(|key| (relation.clone(), key.clone()))
        }
        Check::Children => {
            let mut referring = catalog.referring(relation.oid).into_iter();
            referring.find(|(_, key)| key.oid == owed.constraint)
        }
        Check::Alone => {
            let shape = Shape::of(relation)?;
            let mut indexes = shape.table().indexes.iter();
            let at = indexes.position(|index| index.constraint == Some(owed.constraint));
            return Ok(at.map(|at| About::Key(Arc::new(shape), at)));
        }
    };
    let Some((child, key)) = found else {
        return Ok(None);
    };
    let Some(parent) = catalog.relation(key.target) else {
        return Ok(None);
    };
    let foreign = Foreign::new(&child, parent, &key, Vec::new())?;
    Ok(Some(About::Foreign(Arc::new(foreign))))
}

/// A row of which only some columns are known.
fn row_of(shape: &Shape, columns: &[usize], values: &[Value]) -> Vec<Value> {
    let mut row = vec![Value::Null; shape.table().schema.len()];
    for (at, value) in columns.iter().zip(values) {
        row[*at] = value.clone();
    }
    row
}

fn claim_of(shape: &Arc<Shape>, index: usize, values: &[Value]) -> Result<Claim> {
    let keys = &shape.keys[index];
    let columns = keys.parts.iter().filter_map(|part| part.column());
    let columns: Vec<usize> = columns.collect();
    let row = row_of(shape, &columns, values);
    let mut key = Vec::new();
    keys.encode(RowRef::Values(&row), &mut key)?;
    Ok(Claim {
        shape: shape.clone(),
        index,
        key: key.into(),
        row,
    })
}
