//! In which order tables are joined: the one in which the least rows are in between, as far as statistics tell.
//!
//! Paper: Selinger et al., "Access path selection in a relational database management system", 1979, for what conditions leave; the order
//! is found greedily from every first table (there are few), which is cheaper than all orders and finds the same for chains and stars.
//!
//! Differences: equalities over several columns that are a unique key are one condition; of others that come together each counts for the root of
//! what the one before it did, since columns of one table seldom are independent.
//!
//! Not here: what is made of it (`translate`).

use crate::expr::{Comparison, Expr, RowsFrom};
use crate::plan::{Access, Source, SourceKind};
use crate::statistics::{ColumnStatistics, TableStatistics};
use std::sync::Arc;
use vellum_query::Expected;
use vellum_row::{Type, Value, ValueRef, compare};

/// Rows of what nothing is known of.
const UNKNOWN_ROWS: f64 = 1000.0;
/// What a condition leaves of which nothing is known.
const UNKNOWN: f64 = 1.0 / 3.0;
/// What a pattern leaves.
const PATTERN: f64 = 0.05;
/// Elements of an array of which nothing is known.
const SOME: f64 = 10.0;

/// What is known of a source.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    /// Rows that its own conditions leave.
    pub rows: f64,
    /// All rows.
    all: f64,
    statistics: Option<Arc<TableStatistics>>,
    /// Positions of the columns of unique keys.
    keys: Vec<Vec<u16>>,
}

/// An equality of what two sources have: number of the source, and position of the column if it is one and nothing computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equality {
    left: Side,
    right: Side,
}

type Side = (u16, Option<u16>);

impl Equality {
    /// The one that a condition is, if it is one.
    pub fn of(condition: &Expr) -> Option<Self> {
        let Expr::Compare {
            comparison: Comparison::Equal,
            left,
            right,
        } = condition
        else {
            return None;
        };
        let (left, right) = (Self::side(left)?, Self::side(right)?);
        (left.0 != right.0).then_some(Self { left, right })
    }

    fn side(expr: &Expr) -> Option<Side> {
        if let Expr::Column { table, position } = expr {
            return Some((*table, Some(*position)));
        }
        let (mut source, mut one) = (None, true);
        expr.walk(&mut |expr| match expr {
            Expr::Column { table, .. } => one &= *source.get_or_insert(*table) == *table,
            Expr::Subquery(_)
            | Expr::InSubquery { .. }
            | Expr::Rows {
                from: RowsFrom::Subquery(_),
                ..
            }
            | Expr::Outer { .. } => one = false,
            _ => {}
        });
        source.filter(|_| one).map(|source| (source, None))
    }

    /// Its column of a source, and the other, if it is of that source.
    fn seen_from(self, source: u16) -> Option<(Side, Side)> {
        if self.left.0 == source {
            return Some((self.left, self.right));
        }
        (self.right.0 == source).then_some((self.right, self.left))
    }
}

/// A step: the source that comes next, and about how many rows there are then.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Step {
    pub source: u16,
    pub rows: f64,
}

impl Estimate {
    /// Of a table behind conditions of its own.
    pub fn of_table(
        source: &Source,
        statistics: Option<Arc<TableStatistics>>,
        conditions: &[&Expr],
        constant: &dyn Fn(&Expr) -> Option<Value>,
    ) -> Self {
        let SourceKind::Table { shape, .. } = &source.kind else {
            return Self::unknown();
        };
        let table = shape.table();
        let all = statistics
            .as_ref()
            .map_or(UNKNOWN_ROWS, |known| known.rows as f64);
        let unique = table.indexes.iter();
        let unique = unique.filter(|index| index.keeps_apart() && index.is_plain());
        let keys = unique.map(|index| {
            let columns = index.key_columns();
            columns
                .map(|column| table.position(column) as u16)
                .collect()
        });
        let column = |position: u16| {
            let id = table.schema.column(position.into()).id;
            statistics.as_ref()?.column(id)
        };
        let left: f64 = conditions
            .iter()
            .map(|condition| selectivity(condition, &column, constant))
            .product();
        Self {
            rows: (all * left).max(1.0),
            all: all.max(1.0),
            keys: keys.collect(),
            statistics: statistics.clone(),
        }
    }

    /// Of anything else.
    pub fn unknown() -> Self {
        Self {
            rows: UNKNOWN_ROWS,
            all: UNKNOWN_ROWS,
            statistics: None,
            keys: Vec::new(),
        }
    }

    /// About how many rows a path finds.
    pub fn found(&self, access: &Access) -> f64 {
        match access.index {
            None => self.all,
            Some(_) => self.rows,
        }
    }

    /// As operators are told.
    pub fn expected(&self, source: &Source, width: usize) -> Option<Expected> {
        let known = self.statistics.as_ref()?;
        let SourceKind::Table { shape, .. } = &source.kind else {
            return None;
        };
        let schema = &shape.table().schema;
        let distinct = (0..width).map(|position| {
            let column = (position < schema.len()).then(|| schema.column(position).id)?;
            let found = known.column(column)?.distinct.min(self.rows);
            Some(found.max(1.0) as usize)
        });
        Some(Expected {
            rows: self.rows as usize,
            distinct: distinct.collect(),
        })
    }

    /// How many different values a column has in these rows.
    fn distinct(&self, source: &Source, position: Option<u16>) -> f64 {
        let known = match (&source.kind, position) {
            (SourceKind::Table { shape, .. }, Some(position)) => {
                let id = shape.table().schema.column(position.into()).id;
                let known = self.statistics.as_ref();
                known
                    .and_then(|known| known.column(id))
                    .map(|column| column.distinct)
            }
            _ => None,
        };
        known.unwrap_or(self.all).min(self.rows).max(1.0)
    }
}

/// What a condition on one table leaves of its rows.
fn selectivity<'s>(
    condition: &Expr,
    column: &dyn Fn(u16) -> Option<&'s ColumnStatistics>,
    constant: &dyn Fn(&Expr) -> Option<Value>,
) -> f64 {
    let distinct = |operand: &Expr| match operand {
        Expr::Column { position, .. } => column(*position).map(|known| known.distinct.max(1.0)),
        _ => None,
    };
    match condition {
        Expr::And(all) => all
            .iter()
            .map(|one| selectivity(one, column, constant))
            .product(),
        Expr::Or(any) => {
            let sum: f64 = any
                .iter()
                .map(|one| selectivity(one, column, constant))
                .sum();
            sum.min(1.0)
        }
        Expr::Not(one) => 1.0 - selectivity(one, column, constant),
        Expr::IsNull {
            operand, negated, ..
        } => {
            let nulls = match &**operand {
                Expr::Column { position, .. } => {
                    column(*position).map_or(0.01, |known| known.nulls)
                }
                _ => 0.01,
            };
            if *negated { 1.0 - nulls } else { nulls }
        }
        Expr::Like { negated, .. } => {
            if *negated {
                1.0 - PATTERN
            } else {
                PATTERN
            }
        }
        Expr::In {
            operand,
            list,
            negated,
        } => {
            let one = distinct(operand).map_or(0.05, |distinct| 1.0 / distinct);
            let found = (one * list.len() as f64).min(1.0);
            if *negated { 1.0 - found } else { found }
        }
        Expr::Among {
            operand,
            array,
            negated,
        } => {
            let one = distinct(operand).map_or(0.05, |distinct| 1.0 / distinct);
            let many = match &***array {
                Expr::Const(Value::Array(array)) => array.as_ref().len() as f64,
                _ => SOME,
            };
            let found = (one * many).min(1.0);
            if *negated { 1.0 - found } else { found }
        }
        Expr::InSubquery { .. } | Expr::Rows { .. } | Expr::Subquery(_) => 0.5,
        Expr::Compare {
            comparison,
            left,
            right,
        } => {
            let (operand, other, comparison) = match (&**left, &**right) {
                (Expr::Column { .. }, other) => (&**left, other, *comparison),
                (other, Expr::Column { .. }) => (&**right, other, comparison.swapped()),
                _ => (&**left, &**right, *comparison),
            };
            let equal = distinct(operand).map_or(0.05, |distinct| 1.0 / distinct);
            match comparison {
                Comparison::Equal => equal,
                Comparison::NotEqual => 1.0 - equal,
                comparison => {
                    let below = below(operand, other, column, constant);
                    match (below, comparison) {
                        (None, _) => UNKNOWN,
                        (Some(part), Comparison::Less | Comparison::LessEqual) => part,
                        (Some(part), _) => 1.0 - part,
                    }
                }
            }
        }
        _ => UNKNOWN,
    }
}

/// The part of a column's values that lies below a constant.
fn below<'s>(
    operand: &Expr,
    other: &Expr,
    column: &dyn Fn(u16) -> Option<&'s ColumnStatistics>,
    constant: &dyn Fn(&Expr) -> Option<Value>,
) -> Option<f64> {
    // A date is compared as the instant of its midnight.
    let operand = match operand {
        Expr::Cast { operand, .. } => operand,
        operand => operand,
    };
    let Expr::Column { position, .. } = operand else {
        return None;
    };
    let (least, greatest) = column(*position)?.bounds.as_ref()?;
    let value = constant(other)?;
    if value.is_null() {
        return None;
    }
    let part = match (place(least), place(greatest), place(&value)) {
        (Some(least), Some(greatest), Some(value)) if greatest > least => {
            (value - least) / (greatest - least)
        }
        _ if value.ty() != least.ty() => return None,
        _ if compare(value.as_ref(), least.as_ref()).is_le() => 0.0,
        _ if compare(value.as_ref(), greatest.as_ref()).is_ge() => 1.0,
        _ => 0.5,
    };
    Some(part.clamp(0.0005, 0.9995))
}

/// Where a value lies on a line.
fn place(value: &Value) -> Option<f64> {
    const DAY: f64 = vellum_row::datetime::MICROS_PER_DAY as f64;
    Some(match value.as_ref() {
        ValueRef::Date(date) => f64::from(date.0) * DAY,
        ValueRef::Timestamp(at) | ValueRef::Timestamptz(at) => at.0 as f64,
        ValueRef::Time(time) => time.0 as f64,
        ValueRef::Float4(value) => f64::from(value),
        ValueRef::Float8(value) => value,
        ValueRef::Numeric(value) => value.to_numeric().to_f64(),
        value if value.ty().is_some_and(Type::is_integer) => value.as_i64()? as f64,
        _ => return None,
    })
}

/// The order of all sources; the first step is a source alone.
pub(super) fn order(
    sources: &[Source],
    estimates: &[Estimate],
    equalities: &[Equality],
) -> Vec<Step> {
    let mut best: Option<(f64, Vec<Step>)> = None;
    for first in 0..sources.len() {
        let (cost, steps) = greedy(first as u16, sources, estimates, equalities);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, steps));
        }
    }
    best.map_or_else(Vec::new, |(_, steps)| steps)
}

/// Beginning with one, the next is always the one that leaves the least rows; what is joined to nothing comes last.
fn greedy(
    first: u16,
    sources: &[Source],
    estimates: &[Estimate],
    equalities: &[Equality],
) -> (f64, Vec<Step>) {
    let mut rows = estimates[usize::from(first)].rows;
    let mut steps = vec![Step {
        source: first,
        rows,
    }];
    let mut cost = rows;
    let mut left: Vec<u16> = (0..sources.len() as u16)
        .filter(|other| *other != first)
        .collect();
    while !left.is_empty() {
        let candidates = left.iter().enumerate().map(|(at, next)| {
            let (joined, connected) = joined(&steps, rows, *next, sources, estimates, equalities);
            (at, joined, connected)
        });
        let next = candidates.min_by(|a, b| b.2.cmp(&a.2).then(a.1.total_cmp(&b.1)));
        let Some((at, joined, _)) = next else {
            break;
        };
        let source = left.remove(at);
        // The smaller side is kept, both are read.
        let own = estimates[usize::from(source)].rows;
        cost += joined + rows.min(own) * 2.0 + own;
        rows = joined;
        steps.push(Step { source, rows });
    }
    (cost, steps)
}

/// About how many rows there are when a source is joined to those before, and whether anything joins them.
fn joined(
    before: &[Step],
    rows: f64,
    next: u16,
    sources: &[Source],
    estimates: &[Estimate],
    equalities: &[Equality],
) -> (f64, bool) {
    let own = &estimates[usize::from(next)];
    let known = |source: u16| before.iter().any(|step| step.source == source);
    let pairs: Vec<_> = equalities
        .iter()
        .filter_map(|equality| equality.seen_from(next))
        .filter(|(_, other)| known(other.0))
        .collect();
    if pairs.is_empty() {
        return (rows * own.rows, false);
    }
    // A whole unique key of either side: one row at most for each of the other.
    let covers = |source: u16, columns: &dyn Fn(u16) -> bool| {
        let keys = &estimates[usize::from(source)].keys;
        keys.iter()
            .any(|key| key.iter().all(|column| columns(*column)))
    };
    let mut least = f64::INFINITY;
    if covers(next, &|column| {
        pairs.iter().any(|(own, _)| own.1 == Some(column))
    }) {
        least = rows * (own.rows / own.all);
    }
    for step in before {
        let source = step.source;
        let of_it = |column: u16| {
            pairs
                .iter()
                .any(|(_, other)| *other == (source, Some(column)))
        };
        if covers(source, &of_it) {
            let whole = &estimates[usize::from(source)];
            // As many rows before for each of its keys.
            least = least.min(own.rows * rows / whole.all);
        }
    }
    if least.is_finite() {
        return (least.max(1.0), true);
    }
    let mut parts: Vec<f64> = pairs
        .iter()
        .map(|(mine, other)| {
            let a = own.distinct(&sources[usize::from(next)], mine.1);
            let b =
                estimates[usize::from(other.0)].distinct(&sources[usize::from(other.0)], other.1);
            1.0 / a.max(b)
        })
        .collect();
    parts.sort_by(f64::total_cmp);
    let mut found = rows * own.rows;
    for (number, part) in parts.into_iter().enumerate() {
        found *= part.powf(0.5f64.powi(number as i32));
    }
    (found.max(1.0), true)
}
