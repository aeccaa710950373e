//! Whose an aggregate is: of the innermost query around whose columns it reads, wherever it stands.

use super::aggregate::{NESTED, not_here, noted};
use super::{Aggregate, Binder, Bound, OF_GROUPS};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::tables_read;
use crate::sqlstate;

/// SQL counts it as one of the query around.
const OF_OUTER: &str = "a subquery in an aggregate that reads only the query around it";

impl Binder<'_> {
    /// How many queries around the one it is an aggregate of stands: the innermost one that it reads columns of; its own, if it reads none.
    ///
    /// # Errors
    /// `0A000` for a subquery in one of a query around.
    pub(super) fn level_of(&self, aggregate: &Aggregate) -> Result<u16> {
        let mut own = false;
        let mut level: Option<u16> = None;
        let mut asks = false;
        for expr in aggregate.expressions() {
            asks |= expr.asks_a_query();
            let mut reads = |further: u16| {
                level = Some(level.map_or(further, |level| level.min(further)));
            };
            expr.walk(&mut |part| {
                if let Expr::Outer { level: further, .. } = part {
                    reads(*further);
                }
                // Of the queries around a subquery in it the first is this one.
                let asked = part.subquery().map(usize::from);
                if let Some(subquery) = asked.and_then(|number| self.subqueries.get(number)) {
                    let levels = subquery.select.levels_read();
                    levels
                        .into_iter()
                        .filter(|level| *level > 1)
                        .for_each(|level| reads(level - 1));
                }
            });
            tables_read(expr, &self.subqueries, &mut |_| own = true);
        }
        match level {
            Some(level) if !own => match asks {
                true => Err(SqlError::unsupported(OF_OUTER)),
                false => Ok(level),
            },
            _ => Ok(0),
        }
    }

    /// An aggregate of a query that stands so many around this one, for which that one's groups have a value.
    pub(super) fn aggregate_around(
        &mut self,
        mut aggregate: Aggregate,
        level: u16,
        place: Option<u32>,
    ) -> Result<Bound> {
        let at = self.outer.len().checked_sub(usize::from(level));
        let at = at.ok_or_else(|| SqlError::internal("a query around that is not there"))?;
        let Some(others) = &mut self.outer[at].aggregates else {
            return Err(not_here().at(place));
        };
        let mut nested = false;
        aggregate.expressions_mut(&mut |expr| inwards(expr, level, &mut nested));
        if nested {
            return Err(SqlError::new(sqlstate::GROUPING_ERROR, NESTED).at(place));
        }
        let result = aggregate.result;
        let position = noted(others, aggregate, true)?;
        let between = self.outer[at..].iter_mut();
        between.for_each(|outer| outer.read = true);
        let expr = Expr::Outer {
            level,
            table: OF_GROUPS,
            position,
        };
        Ok(Bound::new(expr, result))
    }
}

/// Makes what a query says of one so many around it what that one says of itself. `nested`: whether it reads its groups.
fn inwards(expr: &mut Expr, level: u16, nested: &mut bool) {
    match *expr {
        Expr::Outer {
            level: own,
            table,
            position,
        } if own == level => {
            *nested |= table == OF_GROUPS;
            *expr = Expr::Column { table, position };
        }
        Expr::Outer {
            level: ref mut own, ..
        } => *own -= level,
        _ => expr.children_mut(&mut |child| inwards(child, level, nested)),
    }
}
