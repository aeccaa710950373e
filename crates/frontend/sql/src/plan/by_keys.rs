//! EXISTS whose query reads what is around it in equalities only: a row has one if its values are among the keys of that query's rows, which are the same for all rows.
//!
//! `EXISTS (SELECT … FROM c WHERE c.k = p.k AND c.n > 5)` is `p.k` among `SELECT c.k FROM c WHERE c.n > 5`, but that it is false where a side is null.
//! Where such a query is no join, and is asked for each row, one look at a set takes the place of a run; PostgreSQL's hashed subplan is the same.
//!
//! Not here: when the keys are worth it, and what becomes of an error of rows that nobody asks for (`exec/within`).

use super::path::choose;
use super::select::{Body, Join, Select, Source, SourceKind};
use super::{Access, Subquery, SubqueryKind};
use crate::expr::{Comparison, Expr};
use crate::rows::Shape;
use vellum_row::Type;

/// Rows that finding the keys is taken to read at least.
const ROWS_LEAST: u64 = 256;

/// What is looked up instead of running an EXISTS.
#[derive(Debug)]
pub(crate) struct ByKeys {
    /// What is looked for: made of columns of the queries around alone.
    pub wanted: Vec<Expr>,
    /// The keys, which read nothing of what is around.
    pub rows: Subquery,
    /// Rows that are read to find them, about.
    pub cost: u64,
}

impl Subquery {
    /// The keys that it may be looked up by, if it is such an EXISTS.
    pub(crate) fn by_keys(&self) -> Option<&ByKeys> {
        if self.kind != SubqueryKind::Exists || !self.select.correlated {
            return None;
        }
        let made = || by_keys(&self.select).map(Box::new);
        self.by_keys.get_or_init(made).as_deref()
    }
}

impl Select {
    /// Whether it has a row with its limits if it has one without them.
    pub(crate) fn has_some(&self) -> bool {
        let limit = match &self.limit {
            None => true,
            Some(Expr::Const(value)) => value.is_null() || value.as_ref().as_i64() > Some(0),
            Some(_) => false,
        };
        limit && self.offset.is_none()
    }
}

fn by_keys(select: &Select) -> Option<ByKeys> {
    if !select.has_some() || !select.keyed.is_empty() || select.is_another_each_time() {
        return None;
    }
    let mut select = select.clone();
    let Body::From {
        sources,
        grouping: None,
        windows,
        output,
    } = &mut select.body
    else {
        return None;
    };
    // In an outer join a condition decides more than whether a row is there.
    let apart = |source: &Source| source.is_late() || source.nested > 0;
    if !windows.is_empty() || sources.iter().any(apart) {
        return None;
    }
    let (mut wanted, mut keys, mut types, mut cost) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for at in 0..sources.len() {
        cost += rows_of(&sources[at].kind);
        if sources[at].join != Join::Inner {
            continue;
        }
        let source = &mut sources[at];
        let covered = std::mem::take(&mut source.covered);
        let conditions: Vec<Expr> = covered.into_iter().chain(source.filter.drain(..)).collect();
        let mut rest = Vec::new();
        for condition in conditions {
            match sides(&condition) {
                Some((key, outer)) => {
                    types.push(type_of(key, sources)?);
                    keys.push(key.clone());
                    wanted.push(outer.clone());
                }
                None => rest.push(condition),
            }
        }
        let source = &mut sources[at];
        source.lookup = None;
        if let SourceKind::Table { shape, access } = &mut source.kind {
            (*access, source.covered) = path(shape, at as u16, &mut rest, &select.subqueries);
        }
        source.filter = rest;
    }
    *output = keys;
    select.types = types;
    select.distinct = false;
    select.distinct_on.clear();
    select.order.clear();
    select.ordered = false;
    (select.limit, select.ties) = (None, false);
    select.correlated = false;
    let alone = !wanted.is_empty() && select.reads_up_to() == 0;
    alone.then(|| ByKeys {
        wanted,
        rows: Subquery::new(SubqueryKind::Rows { single: false }, select),
        cost: cost.max(ROWS_LEAST),
    })
}

/// The path to a table for these conditions; those that it fulfils are taken from them.
fn path(
    shape: &Shape,
    at: u16,
    conditions: &mut Vec<Expr>,
    subqueries: &[Subquery],
) -> (Access, Vec<Expr>) {
    let (access, mut fulfilled, _) = choose(shape, at, conditions, subqueries, None);
    let mut covered = Vec::new();
    if access.any.is_none() {
        fulfilled.sort_unstable();
        for number in fulfilled.into_iter().rev() {
            covered.push(conditions.remove(number));
        }
    }
    (access, covered)
}

/// The sides of an equality of which one is made of the query's own columns and the other of columns around it.
fn sides(condition: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::Compare {
        comparison: Comparison::Equal,
        left,
        right,
    } = condition
    else {
        return None;
    };
    match [left, right].map(|side| side_of(side)) {
        [Some(Side::Own), Some(Side::Around)] => Some((left, right)),
        [Some(Side::Around), Some(Side::Own)] => Some((right, left)),
        _ => None,
    }
}

/// Whose columns an expression is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Own,
    Around,
}

/// None if it reads columns of neither, of both, or something else.
fn side_of(expr: &Expr) -> Option<Side> {
    let (mut own, mut around, mut else_ways) = (false, false, false);
    expr.walk(&mut |part| match part {
        Expr::Column { .. } => own = true,
        Expr::Outer { .. } => around = true,
        Expr::Slot(_) | Expr::Held | Expr::Once { .. } => else_ways = true,
        part => else_ways |= part.subquery().is_some(),
    });
    match (own, around, else_ways) {
        (true, false, false) => Some(Side::Own),
        (false, true, false) => Some(Side::Around),
        _ => None,
    }
}

/// The type of a key, where it is seen at once.
fn type_of(key: &Expr, sources: &[Source]) -> Option<Type> {
    match key {
        Expr::Column { table, position } => {
            let position = usize::from(*position);
            match &sources.get(usize::from(*table))?.kind {
                SourceKind::Table { shape, .. } => {
                    let schema = &shape.table().schema;
                    (position < schema.len()).then(|| schema.column(position).ty)
                }
                SourceKind::Query(select) => select.types.get(position).copied(),
                _ => None,
            }
        }
        Expr::Cast { ty, .. } => Some(*ty),
        _ => None,
    }
}

/// Rows that a table is known to have.
fn rows_of(kind: &SourceKind) -> u64 {
    match kind {
        SourceKind::Table { shape, .. } => {
            let known = &shape.relation.runtime.statistics;
            let rows = known.get().map_or(0, |known| known.rows);
            rows.max(known.changed())
        }
        _ => 0,
    }
}
