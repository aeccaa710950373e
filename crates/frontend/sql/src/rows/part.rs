//! What an index is made of, bound: columns, expressions among them, and its predicate.
//!
//! Invariants:
//! - P1 What an index computes is the same whoever computes it, and whenever: it is immutable, and bound and evaluated without the settings of a
//!   session. So every session finds the entries that another one has made.

use crate::bind::{Binder, ScopeTable};
use crate::catalog::{Catalog, Index, IndexKey, Relation};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Frame, Plain, RowRef};
use std::sync::{Arc, LazyLock};
use vellum_row::{Settings, Type, Typmod, Value};

/// Where the value of a key's column comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Position of a column of the table.
    Column(usize),
    /// An expression over the table as number 0.
    Computed { expr: Expr, ty: Type },
}

/// An index, bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parts {
    pub columns: Vec<Part>,
    /// Rows for which it is not true have no entry.
    pub predicate: Option<Expr>,
}

/// What stands for a session's settings and its catalog (P1): an immutable expression names nothing of them.
static NOBODY: LazyLock<(Catalog, Settings)> = LazyLock::new(Default::default);

/// A binder of what an index of a table computes. Its columns stand for themselves: the table may be called otherwise tomorrow.
fn binder(relation: &Arc<Relation>, shows: bool) -> Result<Binder<'static>> {
    let (catalog, settings) = &*NOBODY;
    let mut binder = Binder::new(catalog, &[], settings, "");
    binder.shows = shows;
    binder
        .scope
        .add(ScopeTable::of(relation, Some(String::new()))?)?;
    Ok(binder)
}

/// The settings that indexes are computed with.
pub(crate) fn settings() -> &'static Settings {
    &NOBODY.1
}

/// An expression over the columns of a table, and its type.
///
/// # Errors
/// Of names and types.
pub(crate) fn bound_expression(relation: &Arc<Relation>, sql: &str) -> Result<(Expr, Type)> {
    expression_of(binder(relation, false)?, sql)
}

fn expression_of(mut binder: Binder<'_>, sql: &str) -> Result<(Expr, Type)> {
    let bound = binder.expr(&crate::parse::expression(sql)?)?;
    let (expr, ty, _) = binder.settle(bound)?;
    Ok((expr, ty))
}

/// A condition on the columns of a table.
///
/// # Errors
/// Of names and types.
pub(crate) fn bound_condition(relation: &Arc<Relation>, sql: &str) -> Result<Expr> {
    condition_of(binder(relation, false)?, sql)
}

fn condition_of(mut binder: Binder<'_>, sql: &str) -> Result<Expr> {
    binder.condition(&crate::parse::expression(sql)?, "WHERE")
}

impl Parts {
    /// Those of an index of a table.
    ///
    /// # Errors
    /// Of names and types: what an index reads may have become another type.
    pub fn of(relation: &Arc<Relation>, index: &Index) -> Result<Self> {
        Self::bound(relation, index, false)
    }

    /// The same, to be shown: names stay names.
    ///
    /// # Errors
    /// As [`Parts::of`].
    pub fn shown(relation: &Arc<Relation>, index: &Index) -> Result<Self> {
        Self::bound(relation, index, true)
    }

    fn bound(relation: &Arc<Relation>, index: &Index, shows: bool) -> Result<Self> {
        let table = relation.table();
        let table = table.ok_or_else(|| SqlError::internal("no table"))?;
        let columns = index.columns.iter().map(|part| match &part.key {
            IndexKey::Column(column) => Ok(Part::Column(table.position(*column))),
            IndexKey::Expression(sql) => {
                let (expr, ty) = expression_of(binder(relation, shows)?, sql)?;
                Ok(Part::Computed { expr, ty })
            }
        });
        let predicate = index.predicate.as_ref();
        let predicate = predicate.map(|sql| condition_of(binder(relation, shows)?, sql));
        Ok(Self {
            columns: columns.collect::<Result<_>>()?,
            predicate: predicate.transpose()?,
        })
    }

    /// Positions of the columns that are read, each once.
    pub fn reads(&self) -> Vec<usize> {
        let mut reads = Vec::with_capacity(self.columns.len());
        let mut note = |expr: &Expr| {
            expr.walk(&mut |expr| {
                if let Expr::Column { position, .. } = expr {
                    reads.push(usize::from(*position));
                }
            });
        };
        for part in &self.columns {
            match part {
                Part::Column(at) => note(&Expr::Column {
                    table: 0,
                    position: *at as u16,
                }),
                Part::Computed { expr, .. } => note(expr),
            }
        }
        self.predicate.iter().for_each(note);
        reads.sort_unstable();
        reads.dedup();
        reads
    }
}

impl Part {
    /// The column of the table that it is.
    pub fn column(&self) -> Option<usize> {
        match self {
            Self::Column(at) => Some(*at),
            Self::Computed { .. } => None,
        }
    }
}

/// The value of an expression over a row (P1).
pub(super) fn computed(expr: &Expr, row: RowRef<'_>) -> Result<Value> {
    let plain = Plain(settings());
    Ok(expr.eval(&Frame::over(&[row], &plain))?.into_value())
}

/// Whether a condition is true for a row (P1).
pub(super) fn holds(condition: &Expr, row: RowRef<'_>) -> Result<bool> {
    let plain = Plain(settings());
    condition.is_true(&Frame::over(&[row], &plain))
}

/// The type of a part, and its modifier: what is computed has none that its key could rely on.
pub(super) fn type_of(part: &Part, relation: &Relation) -> (Type, Typmod) {
    match (part, relation.table()) {
        (Part::Column(at), Some(table)) => {
            let column = table.schema.column(*at);
            (column.ty, column.typmod)
        }
        (Part::Computed { ty, .. }, _) => (*ty, Typmod::NONE),
        (Part::Column(_), None) => unreachable!("the parts of a table's index"),
    }
}
