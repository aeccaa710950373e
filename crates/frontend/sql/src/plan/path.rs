//! Access paths: how the rows of a table are found.
//!
//! A path is an index (the table's own order is its primary key) with values for its first columns, and bounds for the next. Of all
//! that fit, the one that pins the most columns is taken; a path that gives the order that is asked for wins a tie, and over
//! reading everything.
//!
//! Invariants:
//! - A1 A path may return too many rows, never too few: the conditions are looked at again, but for those that it fulfils by
//!   itself (`covered`).
//! - A2 What it compares with reads only tables before this one.

use super::Subquery;
use super::reads::reads_before;
use super::select::{SortBy, SortKey};
use crate::catalog::{Relation, Table};
use crate::expr::{Comparison, Expr};
use vellum_row::Type;
use vellum_row::key::is_exact;

/// How the rows of a table are found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Access {
    /// Number of the index in `Table::indexes`; `None`: all rows, in their order.
    pub index: Option<usize>,
    /// Values of its first columns.
    pub equal: Vec<Expr>,
    /// The last of `equal` takes each of these values instead.
    pub any: Option<Box<[Expr]>>,
    /// Bounds of the next column.
    pub bounds: Bounds,
    pub reverse: bool,
}

/// Bounds of a column: an expression, and whether its value is inside.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bounds {
    pub lower: Option<(Expr, bool)>,
    pub upper: Option<(Expr, bool)>,
}

impl Access {
    /// All rows.
    pub fn all() -> Self {
        Self {
            index: None,
            equal: Vec::new(),
            any: None,
            bounds: Bounds::default(),
            reverse: false,
        }
    }

    /// Whether it finds one row at most.
    pub fn is_point(&self, table: &Table) -> bool {
        self.index.is_some_and(|index| {
            let index = &table.indexes[index];
            index.unique && self.any.is_none() && self.equal.len() == index.columns.len()
        })
    }
}

/// A column that rows are wanted in the order of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub position: usize,
    pub descending: bool,
    pub nulls_first: bool,
}

/// The path to table number `table` of a query, the conjuncts that it fulfils by itself, and whether it gives the order.
pub(crate) fn choose(
    relation: &Relation,
    table: u16,
    conjuncts: &[Expr],
    subqueries: &[Subquery],
    wanted: Option<&[Wanted]>,
) -> (Access, Vec<usize>, bool) {
    let Some(definition) = relation.table() else {
        return (Access::all(), Vec::new(), false);
    };
    let mut best = (Access::all(), Vec::new(), false);
    let mut best_score = 0;
    for number in 0..definition.indexes.len() {
        let (mut access, covered) = with_index(definition, number, table, conjuncts, subqueries);
        let ordered = wanted.and_then(|wanted| order_of(definition, &access, wanted));
        let index = &definition.indexes[number];
        let point = access.is_point(definition);
        let mut score = access.equal.len() * 16;
        if access.bounds != Bounds::default() {
            score += 8;
        }
        if ordered.is_some() {
            score += 4;
        }
        if score > 0 && index.storage.is_none() {
            // No second look-up.
            score += 2;
        }
        if point {
            score += 1 << 20;
        }
        if score > best_score {
            best_score = score;
            access.reverse = ordered == Some(true);
            best = (access, covered, ordered.is_some());
        }
    }
    best
}

/// What an index can do for these conditions.
fn with_index(
    table: &Table,
    number: usize,
    source: u16,
    conjuncts: &[Expr],
    subqueries: &[Subquery],
) -> (Access, Vec<usize>) {
    let compared = |conjunct, position| compared(conjunct, source, position, subqueries);
    let index = &table.indexes[number];
    let mut access = Access {
        index: Some(number),
        ..Access::all()
    };
    let mut covered = Vec::new();
    for column in &index.columns {
        let position = table.position(column.column);
        let found = table.schema.column(position);
        let ty = found.ty;
        let mut pinned = None;
        for (at, conjunct) in conjuncts.iter().enumerate() {
            if let Some((Comparison::Equal, value)) = compared(conjunct, position)
                && let Some(value) = as_column(value, ty)
            {
                pinned = Some((at, value));
                break;
            }
        }
        if let Some((at, value)) = pinned {
            access.equal.push(value);
            // What looks different and is equal has one key: the row is looked at.
            if is_exact(ty, found.typmod) {
                covered.push(at);
            }
            continue;
        }
        for conjunct in conjuncts {
            if let Expr::In {
                operand,
                list,
                negated: false,
            } = conjunct
                && is_column(operand, source, position)
                && list
                    .iter()
                    .all(|item| reads_before(item, subqueries, source))
                && let Some(list) = list
                    .iter()
                    .map(|item| as_column(item, ty))
                    .collect::<Option<Box<[_]>>>()
            {
                access.equal.push(Expr::Const(vellum_row::Value::Null));
                access.any = Some(list);
                return (access, covered);
            }
        }
        for conjunct in conjuncts {
            let Some((comparison, value)) = compared(conjunct, position) else {
                continue;
            };
            let Some(value) = as_column(value, ty) else {
                continue;
            };
            match comparison {
                Comparison::Greater | Comparison::GreaterEqual => {
                    let inside = comparison == Comparison::GreaterEqual;
                    access.bounds.lower.get_or_insert((value, inside));
                }
                Comparison::Less | Comparison::LessEqual => {
                    let inside = comparison == Comparison::LessEqual;
                    access.bounds.upper.get_or_insert((value, inside));
                }
                Comparison::Equal | Comparison::NotEqual => {}
            }
        }
        break;
    }
    (access, covered)
}

/// A column of rows in memory that has to equal something which is known before them, and that.
pub(super) fn lookup(
    source: u16,
    conjuncts: &[Expr],
    subqueries: &[Subquery],
) -> Option<(u16, Expr)> {
    conjuncts.iter().find_map(|conjunct| {
        let Expr::Compare { left, right, .. } = conjunct else {
            return None;
        };
        [left, right].into_iter().find_map(|side| match &**side {
            Expr::Column { table, position } if *table == source => {
                match compared(conjunct, source, usize::from(*position), subqueries)? {
                    (Comparison::Equal, value) => Some((*position, value.clone())),
                    _ => None,
                }
            }
            _ => None,
        })
    })
}

/// The comparison of a column with something that is known before its table is read (A2).
fn compared<'e>(
    conjunct: &'e Expr,
    source: u16,
    position: usize,
    subqueries: &[Subquery],
) -> Option<(Comparison, &'e Expr)> {
    let Expr::Compare {
        comparison,
        left,
        right,
    } = conjunct
    else {
        return None;
    };
    let usable = |expr: &Expr| reads_before(expr, subqueries, source) && !expr.is_volatile();
    if is_column(left, source, position) && usable(right) {
        return Some((*comparison, right));
    }
    if is_column(right, source, position) && usable(left) {
        return Some((comparison.swapped(), left));
    }
    None
}

fn is_column(expr: &Expr, source: u16, at: usize) -> bool {
    matches!(expr, Expr::Column { table, position }
        if *table == source && usize::from(*position) == at)
}

/// What a column of type `ty` is compared with, if keys of that type can stand for it. Integers of another width are made
/// ones of the column's when the path is run.
fn as_column(value: &Expr, ty: Type) -> Option<Expr> {
    // Both sides of a comparison have one type but for integers and kinds of text (E1).
    ty.is_orderable().then(|| value.clone())
}

/// Whether reading the path forwards (false) or backwards (true) gives the order; `None` if neither does.
fn order_of(table: &Table, access: &Access, wanted: &[Wanted]) -> Option<bool> {
    let index = &table.indexes[access.index?];
    if access.any.is_some() || wanted.is_empty() {
        return None;
    }
    let pinned: Vec<usize> = index.columns[..access.equal.len()]
        .iter()
        .map(|column| table.position(column.column))
        .collect();
    let mut rest = index.columns[access.equal.len()..].iter();
    let mut reverse = None;
    for key in wanted {
        if pinned.contains(&key.position) {
            continue;
        }
        // Beyond the last column of a unique index there are no ties, but for nulls.
        let column = rest.next()?;
        if table.position(column.column) != key.position {
            return None;
        }
        let against = column.descending != key.descending;
        let nullable = table.schema.column(key.position).nullable;
        if nullable && (column.nulls_first != key.nulls_first) != against {
            return None;
        }
        if *reverse.get_or_insert(against) != against {
            return None;
        }
    }
    Some(reverse.unwrap_or(false))
}

/// The order that is asked for, if it is by columns of the first table.
pub(super) fn wanted_order(sort: &[SortKey], output: &[Expr]) -> Option<Vec<Wanted>> {
    if sort.is_empty() {
        return None;
    }
    sort.iter()
        .map(|key| {
            let expr = match &key.expr {
                SortBy::Output(at) => &output[*at],
                SortBy::Expr(expr) => expr,
            };
            match expr {
                Expr::Column { table: 0, position } => Some(Wanted {
                    position: usize::from(*position),
                    descending: key.descending,
                    nulls_first: key.nulls_first,
                }),
                _ => None,
            }
        })
        .collect()
}
