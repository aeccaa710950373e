//! ON CONFLICT (…) WHERE …: which unique indexes it is about.
//!
//! As PostgreSQL has it: those of exactly these columns and expressions, whose predicate, if they have one, follows from the condition. There may be several,
//! and each of them decides.

use super::conjuncts;
use super::implied::is_implied;
use crate::bind::{Binder, ScopeTable};
use crate::catalog::{Catalog, Relation};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::ConflictTarget;
use crate::rows::{Part, Shape};
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;

/// # Errors
/// `55000` if one of these indexes of a table is of a constraint that is deferrable: rows may be in it twice.
pub(super) fn check_arbiters(
    relation: &Relation,
    numbers: &[usize],
    catalog: &Catalog,
) -> Result<()> {
    let indexes = relation.table().map_or(&[][..], |table| &table.indexes);
    let mut asked = numbers.iter().filter_map(|number| indexes.get(*number));
    match asked.find(|index| index.timing.is_deferrable()) {
        None => Ok(()),
        Some(index) => {
            let text = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
            Err(
                SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
                    .on_table(relation, catalog)
                    .on_constraint(&index.name),
            )
        }
    }
}

impl Binder<'_> {
    /// Numbers of the indexes that a target is about.
    ///
    /// # Errors
    /// `42P10` if there is none; of names and types.
    pub(super) fn arbiters(
        &mut self,
        relation: &Arc<Relation>,
        names: &[ast::Ident],
    ) -> Result<Box<[usize]>> {
        let (parts, given) = self.target_parts(relation, names)?;
        let shape = Shape::of(relation)?;
        let is_about = |keys: &crate::rows::KeyShape| {
            let asked = |own: &Part| parts.iter().any(|part| part == own);
            keys.parts.iter().all(asked) && parts.iter().all(|part| keys.parts.contains(part))
        };
        let numbered = shape.keys.iter().enumerate();
        let found = numbered.filter(|(number, keys)| {
            let predicate = keys.predicate.as_ref();
            shape.table().indexes[*number].unique
                && is_about(keys)
                && predicate.is_none_or(|predicate| is_implied(predicate, 0, &given))
        });
        let found: Box<[usize]> = found.map(|(number, _)| number).collect();
        if found.is_empty() {
            let text =
                "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new(sqlstate::INVALID_COLUMN_REFERENCE, text));
        }
        check_arbiters(relation, &found, self.catalog)?;
        Ok(found)
    }

    /// What a target is made of, and the conditions behind its WHERE.
    fn target_parts(
        &mut self,
        relation: &Arc<Relation>,
        names: &[ast::Ident],
    ) -> Result<(Vec<Part>, Vec<Expr>)> {
        let scope = std::mem::take(&mut self.scope);
        self.scope.add(ScopeTable::of(relation, None)?)?;
        let bound = self.bound_target(names);
        self.scope = scope;
        bound
    }

    fn bound_target(&mut self, names: &[ast::Ident]) -> Result<(Vec<Part>, Vec<Expr>)> {
        let mut parts = Vec::with_capacity(names.len());
        let mut given = Vec::new();
        let mut nodes = Vec::with_capacity(names.len());
        match ConflictTarget::of(names) {
            None => nodes.extend(names.iter().cloned().map(ast::Expr::Identifier)),
            Some(target) => {
                for sql in target.items {
                    nodes.push(crate::parse::expression(sql)?);
                }
                if let Some(sql) = target.predicate {
                    let condition = self.condition(&crate::parse::expression(sql)?, "WHERE")?;
                    conjuncts(condition, &mut given);
                }
            }
        }
        for node in nodes {
            let bound = self.expr(&node)?;
            let (expr, ty, _) = self.settle(bound)?;
            parts.push(match expr {
                Expr::Column { position, .. } => Part::Column(usize::from(position)),
                expr => Part::Computed { expr, ty },
            });
        }
        Ok((parts, given))
    }
}
