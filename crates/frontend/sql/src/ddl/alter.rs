//! Forms of ALTER TABLE that touch constraints and names.

use super::Ddl;
use crate::bind::ScopeTable;
use crate::catalog::{Check, Default, Index, IndexKey, Kind, Oid, Relation, Table};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::rows::Parts;
use crate::sqlstate;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::sync::Arc;

impl Ddl<'_> {
    /// Takes the primary key away: the rows are written anew in an order of their own. Their columns stay NOT NULL.
    ///
    /// # Errors
    /// Conflicts, storage.
    pub(super) fn drop_primary_key(
        &mut self,
        relation: &Arc<Relation>,
        mut next: Table,
    ) -> Result<Arc<Relation>> {
        if let Some(key) = next.primary_key().filter(|key| key.storage.is_some()) {
            // It orders nothing.
            let oid = key.oid;
            self.take_index(&mut next, oid)?;
            return self.put_table(relation, next);
        }
        let key = next.indexes.remove(0);
        debug_assert!(key.primary);
        let mut changed = Relation::clone(relation);
        self.order_anew(&mut changed, next)?;
        let Kind::Table(table) = changed.kind else {
            return Err(SqlError::internal("no table"));
        };
        self.put_table(relation, *table)
    }

    /// CHECK constraints keep their text: a column that is called otherwise is called so there, too.
    ///
    /// # Errors
    /// `0A000` where the text cannot be changed without changing what it says.
    pub(super) fn rename_in_checks(
        &self,
        relation: &Arc<Relation>,
        next: &mut Table,
        old: &str,
        new: &str,
    ) -> Result<()> {
        let after = Arc::new(Relation {
            kind: Kind::Table(Box::new(next.clone())),
            ..Relation::clone(relation)
        });
        let mut checks = Vec::with_capacity(next.checks.len());
        for check in &next.checks {
            let expression = renamed(&check.expression, old, new)?;
            let before = self.bound_check(relation, &check.expression)?;
            // The new text says the same of the same columns, or the old one called something else by that name.
            if !self
                .bound_check(&after, &expression)
                .is_ok_and(|after| after == before)
            {
                return Err(SqlError::unsupported(format!(
                    "renaming a column in the constraint \"{}\"",
                    check.name
                )));
            }
            checks.push(Check {
                expression: expression.into(),
                ..check.clone()
            });
        }
        next.checks = checks;
        for index in &mut next.indexes {
            if !index.is_plain() {
                *index = Arc::new(renamed_index(relation, &after, index, old, new)?);
            }
        }
        let generated = |relation: &Arc<Relation>| {
            let mut binder = self.binder();
            binder.scope.add(ScopeTable::of(relation, None)?)?;
            binder.generated(relation)
        };
        let before = generated(relation)?;
        if before.is_empty() {
            return Ok(());
        }
        for (_, default) in &mut next.defaults {
            if let Default::Generated(sql) = default {
                *sql = renamed(sql, old, new)?.into();
            }
        }
        let after = Arc::new(Relation {
            kind: Kind::Table(Box::new(next.clone())),
            ..Relation::clone(relation)
        });
        if !generated(&after).is_ok_and(|after| after == before) {
            return Err(SqlError::unsupported(
                "renaming a column in the expression of a generated column",
            ));
        }
        Ok(())
    }

    /// Positions of the columns that a CHECK reads.
    pub(super) fn columns_of_check(&self, relation: &Arc<Relation>, sql: &str) -> Vec<usize> {
        let mut reads = Vec::new();
        if let Ok(condition) = self.bound_check(relation, sql) {
            condition.walk(&mut |expr| {
                if let Expr::Column { position, .. } = expr {
                    reads.push(usize::from(*position));
                }
            });
        }
        reads
    }

    fn bound_check(&self, relation: &Arc<Relation>, expression: &str) -> Result<Expr> {
        let mut binder = self.binder();
        binder.scope.add(ScopeTable::of(relation, None)?)?;
        binder.condition(&crate::parse::expression(expression)?, "CHECK")
    }

    /// RENAME CONSTRAINT.
    pub(super) fn rename_constraint(
        &mut self,
        relation: &Relation,
        next: &mut Table,
        old: &str,
        new: &str,
    ) -> Result<()> {
        let checks = next.checks.iter().map(|check| &*check.name);
        let keys = next.foreign_keys.iter().map(|key| &*key.name);
        let indexes = next.indexes.iter();
        let indexes = indexes.filter(|index| index.constraint.is_some());
        let mut names = checks.chain(keys).chain(indexes.map(|index| &*index.name));
        if !names.clone().any(|name| name == old) {
            let message = format!(
                "constraint \"{old}\" for table \"{}\" does not exist",
                relation.name
            );
            return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
        }
        if names.any(|name| name == new) {
            let message = format!(
                "constraint \"{new}\" for relation \"{}\" already exists",
                relation.name
            );
            return Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message));
        }
        let is_old = |name: &str| name == old;
        if let Some(check) = next.checks.iter_mut().find(|check| is_old(&check.name)) {
            check.name = new.into();
            return Ok(());
        }
        if let Some(key) = next.foreign_keys.iter_mut().find(|key| is_old(&key.name)) {
            key.name = new.into();
            return Ok(());
        }
        let mut indexes = next.indexes.iter();
        let found = indexes.find(|index| is_old(&index.name) && index.constraint.is_some());
        let index = found.map(|index| index.oid);
        let index = index.ok_or_else(|| SqlError::internal("no such constraint"))?;
        self.call_index(relation, next, index, new)
    }

    /// Gives an index another name, and the constraint that it stands for.
    pub(super) fn call_index(
        &mut self,
        relation: &Relation,
        next: &mut Table,
        index: Oid,
        new: &str,
    ) -> Result<()> {
        self.is_taken(relation.namespace, new, false)?;
        for own in &mut next.indexes {
            if own.oid == index {
                *own = Arc::new(Index {
                    name: new.into(),
                    ..Index::clone(own)
                });
            }
        }
        Ok(())
    }
}

/// That VALIDATE CONSTRAINT names one that can be validated. Rows are checked when a constraint is made, NOT VALID or not.
///
/// # Errors
/// `42704`; `42809` for a key.
pub(super) fn validate(relation: &Relation, name: &str) -> Result<()> {
    let (checks, keys, indexes) = relation.table().map_or((false, false, false), |table| {
        let indexes = table.indexes.iter();
        let indexes = indexes.filter(|index| index.constraint.is_some());
        let checks = table.checks.iter().any(|check| *check.name == *name);
        let keys = table.foreign_keys.iter().any(|key| *key.name == *name);
        (
            checks,
            keys,
            indexes.map(|index| &index.name).any(|own| **own == *name),
        )
    });
    if checks || keys {
        return Ok(());
    }
    let (state, what) = if indexes {
        let what = "is not a foreign key or check constraint";
        (sqlstate::WRONG_OBJECT_TYPE, what)
    } else {
        (sqlstate::UNDEFINED_OBJECT, "does not exist")
    };
    let message = format!(
        "constraint \"{name}\" of relation \"{}\" {what}",
        relation.name
    );
    Err(SqlError::new(state, message))
}

/// An index whose table has another name for a column.
fn renamed_index(
    before: &Arc<Relation>,
    after: &Arc<Relation>,
    index: &Index,
    old: &str,
    new: &str,
) -> Result<Index> {
    let mut next = index.clone();
    for part in &mut next.columns {
        if let IndexKey::Expression(sql) = &mut part.key {
            *sql = renamed(sql, old, new)?.into();
        }
    }
    if let Some(sql) = &mut next.predicate {
        *sql = renamed(sql, old, new)?.into();
    }
    let parts = Parts::of(before, index)?;
    if !Parts::of(after, &next).is_ok_and(|after| after == parts) {
        return Err(SqlError::unsupported(format!(
            "renaming a column in the index \"{}\"",
            index.name
        )));
    }
    Ok(next)
}

/// The text of an expression with another name for a column.
fn renamed(expression: &str, old: &str, new: &str) -> Result<String> {
    let dialect = PostgreSqlDialect {};
    // Literals stay as they were written.
    let tokens = Tokenizer::new(&dialect, expression)
        .with_unescape(false)
        .tokenize();
    let mut tokens = tokens.map_err(|error| SqlError::internal(error.message))?;
    for token in &mut tokens {
        let is_old = match token {
            Token::Word(word) if word.quote_style.is_some() => word.value == old,
            Token::Word(word) => word.value.to_ascii_lowercase() == old,
            _ => false,
        };
        if is_old {
            *token = Token::make_word(new, Some('"'));
        }
    }
    Ok(tokens.iter().map(ToString::to_string).collect())
}
