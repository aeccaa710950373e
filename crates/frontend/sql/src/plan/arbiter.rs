//! ON CONFLICT (…) WHERE …: which unique indexes it is about.
//!
//! As PostgreSQL has it: those of exactly these columns and expressions, whose predicate, if they have one, follows from the condition. There may be several,
//! and each of them decides.

use super::conjuncts;
use super::implied::is_implied;
use crate::bind::{Binder, ScopeTable};
use crate::catalog::{Catalog, Relation, Table};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::ConflictTarget;
use crate::rows::{Part, Shape};
use crate::sqlstate;
use sqlparser::ast;
use std::sync::Arc;

/// The first index, of those that are asked, whose constraint is deferrable: rows may be in it twice. As in PostgreSQL a row is refused that comes to it, and not
/// one that is found to be there in an index before it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub index: usize,
    /// Those that are asked before it.
    pub before: Box<[usize]>,
}

impl Refused {
    /// Of the indexes with these numbers, or of all that are unique; in the order in which they were made.
    pub(super) fn among(table: &Table, asked: Option<&[usize]>) -> Option<Self> {
        let is_asked = |number: &usize| match asked {
            None => table.indexes[*number].unique,
            Some(asked) => asked.contains(number),
        };
        let mut numbers: Vec<usize> = (0..table.indexes.len()).filter(is_asked).collect();
        numbers.sort_by_key(|number| table.indexes[*number].oid);
        let deferrable = |number: &usize| table.indexes[*number].timing.is_deferrable();
        let at = numbers.iter().position(deferrable)?;
        Some(Self {
            index: numbers[at],
            before: numbers[..at].into(),
        })
    }

    /// `55000`.
    #[cold]
    pub fn error(&self, relation: &Relation, catalog: &Catalog) -> SqlError {
        let text = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
        let indexes = relation.table().map_or(&[][..], |table| &table.indexes);
        let name = indexes.get(self.index).map(|index| &*index.name);
        SqlError::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
            .on_table(relation, catalog)
            .on_constraint(name.unwrap_or_default())
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
