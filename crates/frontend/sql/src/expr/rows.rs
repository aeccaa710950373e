//! Rows that are compared with rows: `a IN (SELECT …)`, `(a, b) IN (SELECT …)`, `(a, b) < ALL (SELECT …)`, `(a, b) = (SELECT …)`.
//!
//! Not here: comparisons of rows that are written as such and read nothing twice, which are AND and OR of their parts (`bind/row`).

use super::{Comparison, Expr, Frame};
use crate::error::Result;
use crate::exec::{DistinctRows, bytes_of_row};
use std::cmp::Ordering;
use std::sync::Arc;
use vellum_row::{Value, ValueRef, compare};

/// What a row is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowsFrom {
    /// The rows of a subquery.
    Subquery(u16),
    /// Those that a subquery had.
    Known(Arc<RowSet>),
    /// One row.
    Row(Box<[Expr]>),
}

/// How.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowTest {
    /// With one of them at least.
    Any(Comparison),
    All(Comparison),
    /// With the one that there is; null if there is none.
    One(Comparison),
    /// The same of rows as values: a null is like another, and greater than all else.
    Values(Comparison),
}

impl RowTest {
    /// IN, or NOT IN.
    pub fn among(negated: bool) -> Self {
        match negated {
            false => Self::Any(Comparison::Equal),
            true => Self::All(Comparison::NotEqual),
        }
    }
}

/// Rows of a subquery, each once: neither ANY nor ALL sees how often one is there.
#[derive(Debug, Default)]
pub(crate) struct RowSet {
    /// Those without nulls.
    whole: DistinctRows,
    broken: Vec<Vec<Value>>,
}

impl PartialEq for RowSet {
    fn eq(&self, other: &Self) -> bool {
        self.whole.rows() == other.whole.rows() && self.broken == other.broken
    }
}

impl RowSet {
    /// Adds a row; returns whether it is kept.
    pub fn add(&mut self, row: &[ValueRef<'_>]) -> bool {
        let own = || row.iter().map(|value| value.to_value()).collect();
        if row.iter().any(|value| value.is_null()) {
            // One null is like another.
            if row.len() == 1 && !self.broken.is_empty() {
                return false;
            }
            self.broken.push(own());
        } else if self.whole.find(row).is_some() {
            return false;
        } else {
            self.whole.add(own());
        }
        true
    }

    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        let all = self.whole.rows().iter().chain(&self.broken);
        all.map(|row| size_of::<Vec<Value>>() + bytes_of_row(row))
            .sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.whole.rows().is_empty() && self.broken.is_empty()
    }

    /// Whether it is one of them, or (`negated`) none; `None` is null.
    pub fn among(&self, row: &[ValueRef<'_>], negated: bool) -> Option<bool> {
        self.test(row, RowTest::among(negated))
    }

    /// The result of a test; `None` is null.
    pub fn test(&self, row: &[ValueRef<'_>], test: RowTest) -> Option<bool> {
        let found = |comparison, decisive| {
            if let [value] = row
                && value.is_null()
                && !self.is_empty()
            {
                return None;
            }
            // Most rows are told by one look.
            if comparison == Comparison::Equal
                && decisive
                && row.iter().all(|value| !value.is_null())
            {
                if self.whole.find(row).is_some() {
                    return Some(true);
                }
                return fold(row, self.broken.iter(), comparison, decisive);
            }
            let all = self.whole.rows().iter().chain(&self.broken);
            fold(row, all, comparison, decisive)
        };
        match test {
            RowTest::Any(comparison) => found(comparison, true),
            // Equal to none is unlike all.
            RowTest::All(Comparison::NotEqual) => found(Comparison::Equal, true).map(|any| !any),
            RowTest::All(comparison) => found(comparison, false),
            // Values are compared with a row that is written down.
            RowTest::One(comparison) | RowTest::Values(comparison) => {
                let mut all = self.whole.rows().iter().chain(&self.broken);
                compared(row, all.next()?, comparison)
            }
        }
    }
}

/// ANY (`decisive` true) or ALL of the comparisons with rows.
fn fold<'r>(
    row: &[ValueRef<'_>],
    rows: impl Iterator<Item = &'r Vec<Value>>,
    comparison: Comparison,
    decisive: bool,
) -> Option<bool> {
    let mut null = false;
    for other in rows {
        match compared(row, other, comparison) {
            Some(found) if found == decisive => return Some(decisive),
            Some(_) => {}
            None => null = true,
        }
    }
    (!null).then_some(!decisive)
}

/// A comparison of two rows, pair by pair, as far as it has to be looked.
fn compared(row: &[ValueRef<'_>], other: &[Value], comparison: Comparison) -> Option<bool> {
    let mut so_far = SoFar::new(comparison);
    for (left, right) in row.iter().zip(other) {
        if let Some(decided) = so_far.decides(*left, right.as_ref()) {
            return decided;
        }
    }
    so_far.end()
}

/// A comparison of two rows that are written as such: parts behind the one that decides are not computed.
///
/// # Errors
/// Those of the functions in them.
pub(super) fn one_with_one<'a>(
    left: &'a [Expr],
    right: &'a [Expr],
    comparison: Comparison,
    frame: &Frame<'a>,
) -> Result<Option<bool>> {
    let mut so_far = SoFar::new(comparison);
    for (left, right) in left.iter().zip(right) {
        let (left, right) = (left.eval(frame)?, right.eval(frame)?);
        if let Some(decided) = so_far.decides(left.as_ref(), right.as_ref()) {
            return Ok(decided);
        }
    }
    Ok(so_far.end())
}

/// The same of rows as values.
///
/// # Errors
/// Those of the functions in them.
pub(super) fn values_in_order<'a>(
    left: &'a [Expr],
    right: &'a [Expr],
    comparison: Comparison,
    frame: &Frame<'a>,
) -> Result<bool> {
    for (left, right) in left.iter().zip(right) {
        let (left, right) = (left.eval(frame)?, right.eval(frame)?);
        let order = match (left.is_null(), right.is_null()) {
            (false, false) => compare(left.as_ref(), right.as_ref()),
            (left, right) => left.cmp(&right),
        };
        if order.is_ne() {
            return Ok(comparison.holds(order));
        }
    }
    Ok(comparison.holds(Ordering::Equal))
}

/// A comparison of rows whose parts were equal or unknown so far.
struct SoFar {
    comparison: Comparison,
    null: bool,
}

impl SoFar {
    fn new(comparison: Comparison) -> Self {
        Self {
            comparison,
            null: false,
        }
    }

    /// The result, if this pair decides.
    fn decides(&mut self, left: ValueRef<'_>, right: ValueRef<'_>) -> Option<Option<bool>> {
        if left.is_null() || right.is_null() {
            let by_order = !matches!(self.comparison, Comparison::Equal | Comparison::NotEqual);
            self.null = true;
            return by_order.then_some(None);
        }
        let order = compare(left, right);
        order.is_ne().then(|| Some(self.comparison.holds(order)))
    }

    fn end(self) -> Option<bool> {
        (!self.null).then(|| self.comparison.holds(Ordering::Equal))
    }
}
