//! What keeps a part of an expression, or of a condition, from being computed: an AND, an OR, a CASE or a COALESCE before it, and the conditions beside it.
//!
//! A subquery becomes a join, or an argument of the function that computes what stands around it: either way it is run for every row. So where something keeps it from that and it may
//! fail, the host is asked for the whole expression, as it stands.
//!
//! Invariants: G1, G3 (`term`).
//! - G7 A subquery that may fail is run only where the expression that it stands in asks for it.

use super::correlated::{is_row_of_none, joins};
use super::function::AskedOf;
use super::shape::{has_subquery, places_read};
use super::translate::{Subqueries, Translation};
use crate::bind::AggregateKind;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{
    Body, Grouping, Select, SortBy, Source, SourceKind, Subquery, SubqueryKind, columns_read,
    tables_read,
};
use vellum_query::Term;
use vellum_row::arithmetic::Operator;
use vellum_row::{Numeric, Type, Typmod, Value};

impl<'t> Translation<'t, '_, '_> {
    /// Conditions as terms that may be looked at in any order (G3): those that may fail are one, in their order, and guarded by the others, and by `around`, that read the same tables.
    pub(super) fn guarded(
        &mut self,
        conditions: &[&Expr],
        around: &[&Expr],
        subs: &'t [Subquery],
    ) -> Result<Vec<Term>> {
        let settled: Vec<Expr> = conditions
            .iter()
            .map(|expr| self.settled(expr, subs))
            .collect();
        let (apart, together): (Vec<&Expr>, Vec<&Expr>) = settled.iter().partition(|expr| {
            // A list is joined, whatever is looked for in it.
            let listed = match expr {
                Expr::Not(operand) => matches!(**operand, Expr::InSubquery { .. }),
                expr => matches!(expr, Expr::InSubquery { .. }),
            };
            let failing = |number: u16| {
                let subquery = &subs[usize::from(number)];
                self.is_asked(subquery) && !is_sure(subquery)
            };
            listed
                || self.is_key_of_join(expr)
                || self.is_total_beside(expr, subs)
                    && !any_subquery(expr, &mut |own, _| failing(own))
        });
        let mut terms = self.all_of(&apart, subs)?;
        if !together.is_empty() {
            let apart = apart.into_iter().chain(around.iter().copied());
            let mut read = Vec::new();
            for expr in &together {
                places_read(expr, &mut read);
                tables_read(expr, subs, &mut |table| read.push(Some((0, table))));
            }
            let guards = apart.filter(|expr| {
                let mut own = Vec::new();
                places_read(expr, &mut own);
                self.is_total(expr) && own.iter().all(|place| read.contains(place))
            });
            let list: Vec<Expr> = guards.chain(together).cloned().collect();
            let all = match <[Expr; 1]>::try_from(list) {
                Ok([one]) => one,
                Err(list) => Expr::And(list.into()),
            };
            terms.push(self.condition(&all, subs)?);
        }
        Ok(terms)
    }

    /// The condition with its subqueries that are the same for all rows run: what stands in their place may fail or not as any other. One that fails stays: it may never be asked for.
    fn settled(&self, expr: &Expr, subs: &'t [Subquery]) -> Expr {
        let mut expr = expr.clone();
        self.settle(&mut expr, subs);
        expr
    }

    fn settle(&self, expr: &mut Expr, subs: &'t [Subquery]) {
        if let Expr::Subquery(number) = expr {
            let subquery = &subs[usize::from(*number)];
            if !subquery.select.correlated
                && let Ok(value) = self.run_once(subquery)
            {
                *expr = Expr::Const(value);
            }
            return;
        }
        expr.children_mut(&mut |child| self.settle(child, subs));
    }

    /// G1, G7: whether the parts of an AND or an OR may be looked at in any order.
    pub(super) fn takes_apart(&self, list: &[Expr], subs: &[Subquery]) -> bool {
        list.iter().enumerate().all(|(number, expr)| {
            let unsure =
                &mut |own: u16, kept| (kept || number > 0) && !is_sure(&subs[usize::from(own)]);
            self.is_taken_apart(expr, subs) && !any_subquery(expr, unsure)
        })
    }

    /// Whether nothing in it may fail but subqueries, or what it is made of is taken apart in its turn.
    fn is_taken_apart(&self, expr: &Expr, subs: &[Subquery]) -> bool {
        match expr {
            Expr::And(list) | Expr::Or(list) if has_subquery(expr) => self.takes_apart(list, subs),
            Expr::Not(operand) if has_subquery(operand) => self.is_taken_apart(operand, subs),
            expr => self.is_total_beside(expr, subs),
        }
    }

    /// Whether evaluating it cannot fail, but for the subqueries in it.
    fn is_total_beside(&self, expr: &Expr, subs: &[Subquery]) -> bool {
        if !has_subquery(expr) {
            return self.is_total(expr);
        }
        let mut bare = expr.clone();
        self.stand_in(&mut bare, subs);
        self.is_total(&bare)
    }

    /// Puts a value in the place of each subquery.
    fn stand_in(&self, expr: &mut Expr, subs: &[Subquery]) {
        match expr {
            Expr::Subquery(number) => {
                let subquery = subs.get(usize::from(*number));
                let ty = subquery.and_then(Subquery::ty);
                *expr = Expr::Const(match ty {
                    // A decimal as any other.
                    Some(Type::Numeric) => Value::Numeric(Numeric::from(0i64)),
                    _ => Value::Null,
                });
            }
            Expr::InSubquery { operand, .. } if self.is_total(operand) => {
                *expr = Expr::Const(Value::Null);
            }
            Expr::Rows { operands, .. } if operands.iter().all(|expr| self.is_total(expr)) => {
                *expr = Expr::Const(Value::Null);
            }
            expr => expr.children_mut(&mut |child| self.stand_in(child, subs)),
        }
    }

    /// Whether a subquery is run for each row.
    fn is_asked(&self, subquery: &Subquery) -> bool {
        subquery.select.correlated && (self.subqueries == Subqueries::Asked || !joins(subquery))
    }

    /// Whether something keeps a subquery of an expression from being run that reads the row, and may fail or is run for each row.
    pub(super) fn keeps_subqueries(&self, expr: &Expr, subs: &[Subquery]) -> bool {
        any_subquery(expr, &mut |number, kept| {
            let subquery = &subs[usize::from(number)];
            kept && subquery.select.correlated && (self.is_asked(subquery) || !is_sure(subquery))
        })
    }

    /// An expression that the host is asked for, as it stands; none where the host cannot know what it reads.
    pub(super) fn asked_whole(
        &mut self,
        expr: &Expr,
        ty: Type,
        subs: &'t [Subquery],
    ) -> Result<Option<Term>> {
        let mut further = false;
        let mut volatile = expr.is_volatile();
        expr.walk(&mut |part| {
            further |= matches!(part, Expr::Outer { .. });
            if let Some(number) = part.subquery() {
                let select = &subs[usize::from(number)].select;
                further |= select.reads_up_to() > 1;
                volatile |= select.is_volatile();
            }
        });
        if !self.level().slots.is_empty() || further && self.levels.len() > 1 {
            return Ok(None);
        }
        let mut places = Vec::new();
        columns_read(expr, subs, &mut |table, position| {
            if !places.contains(&(table, position)) {
                places.push((table, position));
            }
        });
        let of = AskedOf::Expression(expr.clone(), subs);
        self.asked_of(of, places, Vec::new(), ty, volatile)
            .map(Some)
    }
}

/// Whether `asked` holds of one of the subqueries that stand in an expression: of its number, and of whether something keeps it from being asked for.
pub(super) fn any_subquery(expr: &Expr, asked: &mut dyn FnMut(u16, bool) -> bool) -> bool {
    fn walk(expr: &Expr, kept: bool, asked: &mut dyn FnMut(u16, bool) -> bool) -> bool {
        let mut found = expr.subquery().is_some_and(|number| asked(number, kept));
        match expr {
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list) => {
                for (number, part) in list.iter().enumerate() {
                    found |= walk(part, kept || number > 0, asked);
                }
            }
            Expr::Case {
                branches,
                otherwise,
            } => {
                for (number, (condition, result)) in branches.iter().enumerate() {
                    found |= walk(condition, kept || number > 0, asked);
                    found |= walk(result, true, asked);
                }
                found |= walk(otherwise, true, asked);
            }
            expr => expr.children(&mut |child| found |= walk(child, kept, asked)),
        }
        found
    }
    walk(expr, false, asked)
}

/// Whether running a subquery cannot fail, as far as can be seen.
pub(super) fn is_sure(subquery: &Subquery) -> bool {
    let select = &subquery.select;
    let one_row = match &select.body {
        Body::From {
            grouping: Some(grouping),
            ..
        } => grouping.sets.is_none() && is_row_of_none(grouping),
        _ => false,
    };
    match subquery.kind {
        SubqueryKind::Scalar => one_row && is_sure_query(select),
        SubqueryKind::Exists | SubqueryKind::List => is_sure_query(select),
        SubqueryKind::Array(_) | SubqueryKind::Rows { .. } => false,
    }
}

fn is_sure_query(select: &Select) -> bool {
    let Body::From {
        sources,
        grouping,
        windows,
        output,
    } = &select.body
    else {
        return false;
    };
    let known = Known {
        sources,
        grouping: grouping.as_deref(),
    };
    let mut counts = select.limit.iter().chain(&select.offset);
    let mut order = select.order.iter();
    windows.is_empty()
        && select.subqueries.is_empty()
        && counts.all(|count| matches!(count, Expr::Const(_)))
        && order.all(|key| match &key.expr {
            SortBy::Output(_) => true,
            SortBy::Expr(expr) => known.is_sure(expr),
        })
        && select
            .distinct_on
            .iter()
            .all(|(expr, _)| known.is_sure(expr))
        && output.iter().all(|expr| known.is_sure(expr))
        && sources.iter().all(|source| known.is_sure_source(source))
        && known
            .grouping
            .is_none_or(|grouping| known.is_sure_group(grouping))
}

/// What is known of the columns and slots of a query.
#[derive(Clone, Copy)]
struct Known<'k> {
    sources: &'k [Source],
    grouping: Option<&'k Grouping>,
}

impl Known<'_> {
    fn is_sure_source(self, source: &Source) -> bool {
        let mut conditions = source
            .filter
            .iter()
            .chain(&source.on)
            .chain(&source.covered);
        conditions.all(|expr| self.is_sure(expr))
            && match &source.kind {
                SourceKind::Table { .. } | SourceKind::Nothing | SourceKind::Work { .. } => true,
                SourceKind::Query(select) => is_sure_query(select),
                _ => false,
            }
    }

    fn is_sure_group(self, grouping: &Grouping) -> bool {
        use AggregateKind as K;
        let mut conditions = grouping.keys.iter().chain(&grouping.having);
        conditions.all(|expr| self.is_sure(expr))
            && grouping.aggregates.iter().all(|aggregate| {
                let adds = matches!(aggregate.ty(), Type::Int8 | Type::Numeric);
                let kind = match aggregate.kind {
                    K::Count | K::Minimum | K::Maximum | K::BoolAnd | K::BoolOr => true,
                    K::Sum | K::Average => adds,
                    _ => false,
                };
                kind && aggregate.expressions().all(|expr| self.is_sure(expr))
            })
    }

    /// Whether an expression cannot fail.
    fn is_sure(self, expr: &Expr) -> bool {
        let own = match expr {
            Expr::Const(_)
            | Expr::Param(_)
            | Expr::Column { .. }
            | Expr::Outer { .. }
            | Expr::Slot(_)
            | Expr::Compare { .. }
            | Expr::Distinct { .. }
            | Expr::IsNull { .. }
            | Expr::Is { .. }
            | Expr::Not(_)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Coalesce(_)
            | Expr::Case { .. }
            | Expr::In { .. } => true,
            Expr::Cast {
                operand,
                ty,
                typmod: Typmod::NONE,
                ..
            } => self.ty(operand).is_some_and(|from| match ty {
                Type::Numeric => from.is_integer() || from == Type::Numeric,
                Type::Int8 => from.is_integer(),
                ty => from == *ty || from.is_plain_text() && ty.is_plain_text(),
            }),
            // Of no fixed length.
            Expr::Arithmetic {
                operator: Operator::Add | Operator::Subtract | Operator::Multiply,
                left,
                right,
            } => [left, right]
                .into_iter()
                .all(|side| self.ty(side) == Some(Type::Numeric)),
            _ => false,
        };
        let mut sure = own;
        expr.children(&mut |child| sure = sure && self.is_sure(child));
        sure
    }

    /// The type of an expression, where it is seen at once.
    fn ty(self, expr: &Expr) -> Option<Type> {
        match expr {
            Expr::Const(value) => value.ty(),
            Expr::Column { table, position } => {
                let position = usize::from(*position);
                match &self.sources.get(usize::from(*table))?.kind {
                    SourceKind::Table { shape, .. } => {
                        let schema = &shape.table().schema;
                        (position < schema.len()).then(|| schema.column(position).ty)
                    }
                    SourceKind::Query(select) => select.types.get(position).copied(),
                    _ => None,
                }
            }
            Expr::Slot(number) => {
                let (grouping, number) = (self.grouping?, usize::from(*number));
                match number.checked_sub(grouping.types.len()) {
                    None => grouping.types.get(number).copied(),
                    Some(at) => Some(grouping.aggregates.get(at)?.result),
                }
            }
            Expr::Cast { ty, .. } => Some(*ty),
            // Asked of numbers only.
            Expr::Arithmetic { left, .. } => self.ty(left),
            _ => None,
        }
    }
}
