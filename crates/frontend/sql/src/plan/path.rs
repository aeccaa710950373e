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
//! - A3 An index with a predicate is a path only where the conditions imply that ([`super::implied`]).

use super::Subquery;
use super::implied::{is_implied, is_same};
use super::reads::reads_before;
use super::select::{SortBy, SortKey};
use crate::catalog::Table;
use crate::expr::{Comparison, Expr};
use crate::rows::{Part, Shape};
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
    pub any: Option<Box<Several>>,
    /// Bounds of the next column.
    pub bounds: Bounds,
    pub reverse: bool,
}

/// Values that a column takes one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Several {
    List(Box<[Expr]>),
    /// The elements of an array.
    Array(Box<Expr>),
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
            index.keeps_apart() && self.any.is_none() && self.equal.len() == index.columns.len()
        })
    }
}

/// What rows of the first table are wanted in the order of.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Wanted {
    pub by: Expr,
    pub descending: bool,
    pub nulls_first: bool,
}

/// The path to table number `table` of a query, the conjuncts that it fulfils by itself, and whether it gives the order.
pub(crate) fn choose(
    shape: &Shape,
    table: u16,
    conjuncts: &[Expr],
    subqueries: &[Subquery],
    wanted: Option<&[Wanted]>,
) -> (Access, Vec<usize>, bool) {
    let definition = shape.table();
    let mut best = (Access::all(), Vec::new(), false);
    let mut best_score = 0;
    for number in 0..definition.indexes.len() {
        let predicate = shape.keys[number].predicate.as_ref();
        if predicate.is_some_and(|predicate| !is_implied(predicate, table, conjuncts)) {
            continue;
        }
        let (mut access, covered) = with_index(shape, number, table, conjuncts, subqueries);
        let ordered = wanted.and_then(|wanted| order_of(shape, &access, wanted));
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
        if score > 0 && predicate.is_some() {
            // Fewer entries.
            score += 1;
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
    shape: &Shape,
    number: usize,
    source: u16,
    conjuncts: &[Expr],
    subqueries: &[Subquery],
) -> (Access, Vec<usize>) {
    let compared = |conjunct, part| compared(conjunct, source, part, subqueries);
    let keys = &shape.keys[number];
    let mut access = Access {
        index: Some(number),
        ..Access::all()
    };
    let mut covered = Vec::new();
    for (part, column) in keys.parts.iter().zip(keys.codec.columns()) {
        let ty = column.ty;
        let mut pinned = None;
        for (at, conjunct) in conjuncts.iter().enumerate() {
            if let Some((Comparison::Equal, value)) = compared(conjunct, part)
                && let Some(value) = as_column(value, ty)
            {
                pinned = Some((at, value));
                break;
            }
        }
        if let Some((at, value)) = pinned {
            access.equal.push(value);
            // What looks different and is equal has one key: the row is looked at. A column may be there twice.
            if is_exact(ty, column.typmod) && !covered.contains(&at) {
                covered.push(at);
            }
            continue;
        }
        let several =
            (conjuncts.iter()).find_map(|conjunct| several(conjunct, source, part, ty, subqueries));
        if let Some(several) = several {
            access.equal.push(Expr::Const(vellum_row::Value::Null));
            access.any = Some(Box::new(several));
            return (access, covered);
        }
        for conjunct in conjuncts {
            let Some((comparison, value)) = compared(conjunct, part) else {
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

/// The values, known before the table is read, of which a part of a key has to be one.
fn several(
    conjunct: &Expr,
    source: u16,
    part: &Part,
    ty: Type,
    subqueries: &[Subquery],
) -> Option<Several> {
    let usable = |expr: &Expr| reads_before(expr, subqueries, source) && !expr.is_volatile();
    match conjunct {
        Expr::In {
            operand,
            list,
            negated: false,
        } if is_part(operand, source, part) && list.iter().all(usable) => {
            let list = list.iter().map(|item| as_column(item, ty));
            list.collect::<Option<_>>().map(Several::List)
        }
        Expr::Among {
            operand,
            array,
            negated: false,
        } if is_part(operand, source, part) && usable(array) => {
            as_column(array, ty).map(|array| Several::Array(Box::new(array)))
        }
        _ => None,
    }
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
                let part = Part::Column(usize::from(*position));
                match compared(conjunct, source, &part, subqueries)? {
                    (Comparison::Equal, value) => Some((*position, value.clone())),
                    _ => None,
                }
            }
            _ => None,
        })
    })
}

/// The comparison of a part of a key with something that is known before its table is read (A2).
fn compared<'e>(
    conjunct: &'e Expr,
    source: u16,
    part: &Part,
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
    if is_part(left, source, part) && usable(right) {
        return Some((*comparison, right));
    }
    if is_part(right, source, part) && usable(left) {
        return Some((comparison.swapped(), left));
    }
    None
}

fn is_part(expr: &Expr, source: u16, part: &Part) -> bool {
    match part {
        Part::Column(at) => matches!(expr, Expr::Column { table, position }
            if *table == source && usize::from(*position) == *at),
        Part::Computed { expr: own, .. } => is_same(expr, source, own),
    }
}

/// What a column of type `ty` is compared with, if keys of that type can stand for it. Integers of another width are made
/// ones of the column's when the path is run.
fn as_column(value: &Expr, ty: Type) -> Option<Expr> {
    // Both sides of a comparison have one type but for integers and kinds of text (E1).
    ty.is_orderable().then(|| value.clone())
}

/// Whether reading the path forwards (false) or backwards (true) gives the order; `None` if neither does.
fn order_of(shape: &Shape, access: &Access, wanted: &[Wanted]) -> Option<bool> {
    let keys = &shape.keys[access.index?];
    if access.any.is_some() || wanted.is_empty() {
        return None;
    }
    let (pinned, rest) = keys.parts.split_at(access.equal.len());
    let columns = &keys.codec.columns()[access.equal.len()..];
    let mut rest = rest.iter().zip(columns);
    let mut reverse = None;
    for key in wanted {
        if pinned.iter().any(|part| is_part(&key.by, 0, part)) {
            continue;
        }
        // Beyond the last column of a unique index there are no ties, but for nulls.
        let (part, column) = rest.next()?;
        if !is_part(&key.by, 0, part) {
            return None;
        }
        let against = column.descending != key.descending;
        let own = part.column();
        let nullable = own.is_none_or(|at| shape.table().schema.column(at).nullable);
        if nullable && (column.nulls_first != key.nulls_first) != against {
            return None;
        }
        if *reverse.get_or_insert(against) != against {
            return None;
        }
    }
    Some(reverse.unwrap_or(false))
}

/// The order that is asked for, if it is by what the first table has.
pub(super) fn wanted_order(sort: &[SortKey], output: &[Expr]) -> Option<Vec<Wanted>> {
    if sort.is_empty() {
        return None;
    }
    let wanted = sort.iter().map(|key| {
        let expr = match &key.expr {
            SortBy::Output(at) => &output[*at],
            SortBy::Expr(expr) => expr,
        };
        Wanted {
            by: expr.clone(),
            descending: key.descending,
            nulls_first: key.nulls_first,
        }
    });
    Some(wanted.collect())
}
