//! MERGE.

use super::found::Of;
use super::{Flow, Run};
use crate::error::{Result, SqlError};
use crate::expr::{RowRef, Subresult};
use crate::lock::Strength;
use crate::plan::{Merge, MergeAction};
use crate::rows;
use crate::sqlstate;
use vellum_base::maps::HashSet;
use vellum_row::Value;

impl Run<'_, '_> {
    /// Returns how many rows it inserted, changed and deleted.
    pub(super) fn merge(&self, merge: &Merge, subqueries: &[Subresult]) -> Result<u64> {
        let mut touched = HashSet::default();
        let mut count = 0;
        let mut found = self.found_by(&merge.joined, Of::Merged)?;
        while let Some((key, others)) = found.next()? {
            self.step()?;
            let row = match &key {
                Some(key) => self.row_of(&merge.shape, key)?,
                None => None,
            };
            if key.is_some()
                && row.is_none()
                && !key.as_ref().is_some_and(|key| touched.contains(key))
            {
                continue;
            }
            let old = match &row {
                Some(row) => Some(self.values_of(&merge.shape, row)?),
                None => None,
            };
            let rows = sides(old.as_deref(), &others, &merge.joined.widths);
            let frame = self.frame(&rows, &[], subqueries);
            let matched = key.is_some();
            let mut action = None;
            for clause in merge
                .clauses
                .iter()
                .filter(|clause| clause.matched == matched)
            {
                let holds = match &clause.condition {
                    Some(condition) => condition.is_true(&frame)?,
                    None => true,
                };
                if holds {
                    action = Some(&clause.action);
                    break;
                }
            }
            if let (Some(key), Some(MergeAction::Update(_) | MergeAction::Delete)) = (&key, action)
                && !touched.insert(key.clone())
            {
                return Err(twice());
            }
            let oid = merge.shape.relation.oid;
            match (action, key, row, &old) {
                (Some(MergeAction::Insert(given, insert)), ..) => {
                    let mut source = Vec::with_capacity(given.len());
                    for expr in given {
                        source.push(expr.eval(&frame)?.into_value());
                    }
                    count += self
                        .insert_row((insert, None), source, subqueries, &mut |_| Ok(Flow::More))?;
                }
                (Some(MergeAction::Update(assignments)), Some(key), Some(row), Some(old)) => {
                    let mut changes = Vec::with_capacity(assignments.len());
                    for (position, expr) in assignments {
                        changes.push((*position, expr.eval(&frame)?.into_value()));
                    }
                    let rules = Some(&merge.rules);
                    let new =
                        self.change(&merge.shape, &key, &row, old, changes, rules, subqueries)?;
                    self.owes_targets(&merge.keys, oid, Some(old), &new)?;
                    self.owes_children(&merge.keys, oid, old, Some(&new))?;
                    count += 1;
                }
                (Some(MergeAction::Delete), Some(key), Some(_), Some(old)) => {
                    let deleted =
                        self.write(|| rows::delete(self.transaction, &merge.shape, &key, old))?;
                    if deleted {
                        self.honour_locks(&merge.shape, &key, old, Strength::Update)?;
                        self.owes_children(&merge.keys, oid, old, None)?;
                        count += 1;
                    }
                }
                _ => {}
            }
        }
        Ok(count)
    }
}

/// The rows that expressions are over: the target's, and those of the source's tables.
fn sides<'v>(own: Option<&'v [Value]>, others: &'v [Value], widths: &[usize]) -> Vec<RowRef<'v>> {
    let mut rows = vec![own.map_or(RowRef::Missing, RowRef::Values)];
    let mut rest = others;
    for width in widths {
        let (row, behind) = rest.split_at(*width);
        rows.push(RowRef::Values(row));
        rest = behind;
    }
    rows
}

#[cold]
fn twice() -> SqlError {
    let text = "MERGE command cannot affect row a second time";
    SqlError::new(sqlstate::CARDINALITY_VIOLATION, text)
        .with_hint("Ensure that not more than one source row matches any one target row.")
}
