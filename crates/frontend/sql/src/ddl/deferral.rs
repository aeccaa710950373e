//! When constraints are checked: [NOT] DEFERRABLE and INITIALLY where one is made, ALTER CONSTRAINT; and what the checks that are still to be made
//! keep from being changed.

use super::Ddl;
use crate::catalog::{Relation, Table, Timing};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast::{ConstraintCharacteristics, DeferrableInitial};
use std::sync::Arc;

/// What the definition of a constraint says.
///
/// # Errors
/// `42601` for one that is deferred and not deferrable; `0A000` for one that is not enforced.
pub(super) fn timing_of(said: Option<&ConstraintCharacteristics>) -> Result<Timing> {
    let Some(said) = said else {
        return Ok(Timing::Fixed);
    };
    if said.enforced == Some(false) {
        return Err(SqlError::unsupported("a constraint that is not enforced"));
    }
    match (said.deferrable, said.initially) {
        (Some(false), Some(DeferrableInitial::Deferred)) => {
            let text = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            Err(SqlError::syntax(text))
        }
        (_, Some(DeferrableInitial::Deferred)) => Ok(Timing::Deferred),
        (Some(true), _) => Ok(Timing::Immediate),
        _ => Ok(Timing::Fixed),
    }
}

impl Ddl<'_> {
    /// ALTER CONSTRAINT, of a table that is held alone: what is not said is as where a constraint is made. The target is written anew, too, so that
    /// who writes it with an older image starts again (G1).
    ///
    /// # Errors
    /// `42704`; `42809` for what is no foreign key; those of [`timing_of`].
    pub(super) fn alter_constraint(
        &mut self,
        relation: &Relation,
        next: &mut Table,
        name: &str,
        said: Option<&ConstraintCharacteristics>,
    ) -> Result<()> {
        let timing = timing_of(said)?;
        let mut keys = next.foreign_keys.iter_mut();
        let Some(key) = keys.find(|key| *key.name == *name) else {
            let checks = next.checks.iter().map(|check| &*check.name);
            let indexes = next.indexes.iter();
            let indexes = indexes.filter(|index| index.constraint.is_some());
            let mut others = checks.chain(indexes.map(|index| &*index.name));
            let (state, what) = if others.any(|other| other == name) {
                let what = "is not a foreign key constraint";
                (sqlstate::WRONG_OBJECT_TYPE, what)
            } else {
                (sqlstate::UNDEFINED_OBJECT, "does not exist")
            };
            let message = format!(
                "constraint \"{name}\" of relation \"{}\" {what}",
                relation.name
            );
            return Err(SqlError::new(state, message));
        };
        key.timing = timing;
        let target = key.target;
        if target != relation.oid
            && let Some(target) = self.open.catalog.1.relation(target).cloned()
        {
            let target = self.alone(&target)?;
            if let Some(table) = target.table() {
                self.put_table(&target, table.clone())?;
            }
        }
        Ok(())
    }

    /// What is yet to be checked of rows of a table is known by their values: the table stays as it is until then.
    ///
    /// # Errors
    /// `55006`.
    pub(super) fn check_not_pending(&self, relation: &Arc<Relation>, what: &str) -> Result<()> {
        if !self.open.deferred.borrow().is_about(relation.oid) {
            return Ok(());
        }
        let message = format!(
            "cannot {what} \"{}\" because it has pending trigger events",
            relation.name
        );
        Err(SqlError::new(sqlstate::OBJECT_IN_USE, message))
    }
}
