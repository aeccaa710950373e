//! Columns of a result that are computed last, behind its order.
//!
//! What may be another value each time it is computed shows in which order, and how often, it was. PostgreSQL computes such columns of the rows that are returned, in their order, unless it tells rows apart
//! or sorts by them. One that asks a subquery is computed before the sort there, too.

use super::{Body, Select, SortBy};
use crate::expr::Expr;

impl Select {
    /// The numbers of the columns that are computed behind the sort, and their expressions.
    pub(crate) fn computed_last(&self) -> Vec<(usize, &Expr)> {
        let Body::From { output, .. } = &self.body else {
            return Vec::new();
        };
        if self.order.is_empty() || self.distinct {
            return Vec::new();
        }
        let last = |(at, expr): &(usize, &Expr)| {
            let sorts = |by: &SortBy| *by == SortBy::Output(*at);
            expr.is_volatile()
                && !expr.asks_a_query()
                && !self.order.iter().any(|key| sorts(&key.expr))
                && !self.distinct_on.iter().any(|(key, _)| key == *expr)
        };
        output.iter().enumerate().filter(last).collect()
    }
}
