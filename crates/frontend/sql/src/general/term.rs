//! Expressions as terms of relations.
//!
//! A comparison of columns and constants, AND, OR and NOT of such, and what stands around a subquery are operators' own; everything else is
//! evaluated as it is, by one function over the columns in it.
//!
//! Invariants:
//! - G1 What may fail is not taken apart: an AND that keeps a division from being by zero stays one function.
//! - G3 Terms of a filter or a join may be looked at in any order, and about rows of which others are false: operators do both. So a term that may fail has in it what keeps it from
//!   that ([`Translation::guarded`]).
//! - L1 A list that is the same for all rows is joined only where null counts as false: as a whole condition, or as a part of an AND, and of an OR if it is not negated. A join marks its
//!   rows with true and false, whatever is null; so everywhere else (below NOT, in a comparison) the list is found once, and each row is looked up in it.

use super::correlated::{columns_of, joins};
use super::function::{Asked, AskedFor, AskedOf, Evaluated, Test};
use super::guards::{any_subquery, is_sure};
use super::shape::{decimal, has_subquery, operation, places_read, type_of};
use super::translate::{Level, Subqueries, Translation};
use crate::error::{Result, SqlError};
use crate::expr::{Comparison, Expr, Returned, RowSet, RowTest, RowsFrom};
use crate::plan::{Subquery, SubqueryKind};
use std::sync::Arc;
use vellum_query::{Comparison as Compared, Relation, Term};
use vellum_row::arithmetic::Operator;
use vellum_row::{Type, Value};

/// An expression whose leaves were taken out: they are the columns of table 0.
struct Leaves {
    terms: Vec<Term>,
    exprs: Vec<Expr>,
}

impl<'t> Translation<'t, '_, '_> {
    /// A condition, or its parts.
    pub(super) fn condition(&mut self, expr: &Expr, subs: &'t [Subquery]) -> Result<Term> {
        self.term(expr, Type::Bool, subs)
    }

    /// An expression whose values are of type `ty`.
    pub(super) fn term(&mut self, expr: &Expr, ty: Type, subs: &'t [Subquery]) -> Result<Term> {
        // Of a condition it is enough to know where it is true, and of what that is an AND or an OR of.
        let conditional = match expr {
            Expr::Not(operand) => matches!(**operand, Expr::InSubquery { .. }),
            expr => matches!(
                expr,
                Expr::And(_) | Expr::Or(_) | Expr::InSubquery { .. } | Expr::Subquery(_)
            ),
        };
        self.exact += u32::from(!conditional);
        let term = self.whole_term(expr, ty, subs);
        self.exact -= u32::from(!conditional);
        term
    }

    fn whole_term(&mut self, expr: &Expr, ty: Type, subs: &'t [Subquery]) -> Result<Term> {
        if let Some(term) = self.own(expr, ty, subs)? {
            return Ok(term);
        }
        let mut leaves = Leaves {
            terms: Vec::new(),
            exprs: Vec::new(),
        };
        if self.keeps_subqueries(expr, subs)
            && let Some(term) = self.asked_whole(expr, ty, subs)?
        {
            return Ok(term);
        }
        let whole = expr;
        let mut expr = expr.clone();
        if let Err(error) = self.take_leaves(&mut expr, subs, &mut leaves) {
            // A subquery that is the same for all rows, and has failed, may never be asked for (G7).
            let asked = match any_subquery(whole, &mut |_, kept| kept) {
                true => self.asked_whole(whole, ty, subs)?,
                false => None,
            };
            return asked.ok_or(error);
        }
        let volatile = expr.is_volatile();
        let away = self.away();
        if leaves.terms.is_empty() && !volatile {
            // What cannot be computed may never be asked for.
            if let Ok(value) = self.constant(&expr) {
                return Term::literal(ty, value.as_ref()).map_err(super::told);
            }
        }
        let function = Arc::new(Evaluated { expr, away });
        let symbols = &self.symbols;
        Ok(Term::call(symbols, function, leaves.terms, ty, volatile))
    }

    /// What operators have of their own.
    fn own(&mut self, expr: &Expr, ty: Type, subs: &'t [Subquery]) -> Result<Option<Term>> {
        if let Some(term) = self.leaf(expr, ty)? {
            return Ok(Some(term));
        }
        if let Expr::Not(listed) = expr
            && let Expr::InSubquery {
                operand,
                subquery,
                negated,
            } = &**listed
        {
            return self.in_subquery(operand, *subquery, !*negated, subs);
        }
        Ok(Some(match expr {
            Expr::Subquery(number) => return self.subquery(*number, ty, subs),
            Expr::InSubquery {
                operand,
                subquery,
                negated,
            } => return self.in_subquery(operand, *subquery, *negated, subs),
            Expr::And(list) if self.takes_apart(list, subs) => {
                let terms: Vec<Term> = self.conditions(list, subs)?;
                Term::all(terms)
            }
            Expr::Or(list) if self.takes_apart(list, subs) => {
                self.below_or += 1;
                let terms = self.conditions(list, subs);
                self.below_or -= 1;
                Term::any(terms?)
            }
            Expr::Not(operand) if has_subquery(operand) || self.is_leaf(operand) => {
                self.condition(operand, subs)?.negated()
            }
            Expr::IsNull { operand, negated } if self.is_leaf(operand) => {
                match type_of(operand, self.level()) {
                    Some(ty) => self.term(operand, ty, subs)?.is_null(*negated),
                    None => return Ok(None),
                }
            }
            Expr::Cast { .. } | Expr::Arithmetic { .. }
                if decimal(expr, self.level()).is_some() =>
            {
                return self.decimal(expr, subs);
            }
            Expr::Case {
                branches,
                otherwise,
            } if self.is_total(expr) => {
                let mut made = Vec::with_capacity(branches.len());
                for (condition, result) in branches {
                    let condition = self.condition(condition, subs)?;
                    made.push((condition, self.term(result, ty, subs)?));
                }
                Term::case(made, self.term(otherwise, ty, subs)?)
            }
            Expr::In {
                operand,
                list,
                negated,
            } if self.is_total(expr) => {
                let equal = list.iter().map(|item| Expr::Compare {
                    comparison: Comparison::Equal,
                    left: operand.clone(),
                    right: Box::new(item.clone()),
                });
                let equal: Vec<Expr> = equal.collect();
                let any = Term::any(self.conditions(&equal, subs)?);
                if *negated { any.negated() } else { any }
            }
            Expr::Compare {
                comparison,
                left,
                right,
            } => return self.compare(*comparison, left, right, subs),
            Expr::Distinct {
                left,
                right,
                negated,
            } => {
                let Some((left, right)) = self.sides(left, right, subs)? else {
                    return Ok(None);
                };
                Term::distinct(&self.symbols, left, right, *negated)
            }
            _ => return Ok(None),
        }))
    }

    fn conditions(&mut self, list: &[Expr], subs: &'t [Subquery]) -> Result<Vec<Term>> {
        let terms = list.iter().map(|expr| self.condition(expr, subs));
        terms.collect()
    }

    /// Whether evaluating it cannot fail.
    pub(super) fn is_total(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Compare { left, right, .. } | Expr::Distinct { left, right, .. } => {
                let total =
                    |side: &Expr| self.is_leaf(side) || decimal(side, self.level()).is_some();
                total(left) && total(right)
            }
            Expr::And(list) | Expr::Or(list) => list.iter().all(|expr| {
                // Not those in each other: their height is not ours.
                !matches!(expr, Expr::And(_) | Expr::Or(_)) && self.is_total(expr)
            }),
            Expr::Not(operand) => self.is_leaf(operand),
            Expr::IsNull { operand, .. } => self.is_leaf(operand),
            Expr::Case {
                branches,
                otherwise,
            } => {
                // One type for all: what looks the same is the same.
                let ty = type_of(otherwise, self.level());
                let total = |expr: &Expr| {
                    self.is_leaf(expr) && type_of(expr, self.level()) == ty && ty.is_some()
                };
                let mut parts = branches.iter();
                total(otherwise)
                    && parts.all(|(condition, result)| self.is_total(condition) && total(result))
            }
            Expr::In { operand, list, .. } => {
                // Many items are looked for by the expression itself.
                list.len() <= 16
                    && self.is_leaf(operand)
                    && list.iter().all(|item| matches!(item, Expr::Const(_)))
            }
            leaf => self.is_leaf(leaf) || decimal(leaf, self.level()).is_some(),
        }
    }

    /// Whether operators look at it for many rows at once, and it cannot fail.
    pub(super) fn is_columnar(&self, expr: &Expr) -> bool {
        let plain = |left: &Expr, right: &Expr| {
            let (a, b) = (type_of(left, self.level()), type_of(right, self.level()));
            let decimals =
                [left, right].map(|side| decimal(side, self.level()).is_some()) == [true; 2];
            let both = a.or(b).zip(b.or(a));
            decimals || both.is_some_and(|(a, b)| Term::compares(a, b))
        };
        match expr {
            Expr::Compare { left, right, .. } => self.is_total(expr) && plain(left, right),
            Expr::And(list) | Expr::Or(list) => {
                self.is_total(expr) && list.iter().all(|expr| self.is_columnar(expr))
            }
            Expr::In { operand, list, .. } => {
                self.is_total(expr) && list.iter().all(|item| plain(operand, item))
            }
            Expr::IsNull { operand, .. } => self.is_leaf(operand),
            _ => false,
        }
    }

    fn is_leaf(&self, expr: &Expr) -> bool {
        matches!(
            expr,
            Expr::Const(_)
                | Expr::Param(_)
                | Expr::Column { .. }
                | Expr::Slot(_)
                | Expr::Outer { .. }
        )
    }

    /// A column, a constant or a parameter.
    fn leaf(&mut self, expr: &Expr, ty: Type) -> Result<Option<Term>> {
        let value = match expr {
            Expr::Const(value) => value,
            Expr::Param(number) => &self.run.params[usize::from(*number)],
            Expr::Outer { .. } if self.is_further_out(expr) => &self.further_out(expr)?,
            _ => return self.column(expr).map(Some).or_else(no_column),
        };
        if !value.as_ref().fits(ty) {
            return Ok(None);
        }
        let term = Term::literal(ty, value.as_ref()).map_err(super::told)?;
        Ok(Some(term))
    }

    /// A column of this query or of the one around it.
    fn column(&self, expr: &Expr) -> Result<Term> {
        let missing = || SqlError::internal("a column of no query");
        let of = |level: &Level, table: u16, position: u16| {
            let table = level.tables.get(usize::from(table));
            let column = table.and_then(|table| table.get(usize::from(position)));
            column.copied().ok_or_else(missing)
        };
        match expr {
            Expr::Column { table, position } => Ok(of(self.level(), *table, *position)?.term()),
            Expr::Slot(number) => {
                let column = self.level().slot(*number);
                Ok(column.ok_or_else(missing)?.term())
            }
            Expr::Outer {
                level: 1,
                table,
                position,
            } => {
                let around = self.levels.len().checked_sub(2);
                let around = around.map(|at| &self.levels[at]).ok_or_else(missing)?;
                Ok(of(around, *table, *position)?.outer())
            }
            Expr::Outer { .. } => Err(SqlError::unsupported(
                "a column of a query two levels around a subquery",
            )),
            _ => Err(not_a_column()),
        }
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &Expr,
        right: &Expr,
        subs: &'t [Subquery],
    ) -> Result<Option<Term>> {
        let (a, b) = (self.type_known(left, subs), self.type_known(right, subs));
        let both = a.or(b).zip(b.or(a));
        let (decimal, padded) = (
            |side: &Expr| decimal(side, self.level()).is_some(),
            both == Some((Type::Char, Type::Char)),
        );
        let decimals = decimal(left) && decimal(right);
        let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let plain = decimals || both.is_some_and(|(a, b)| Term::compares(a, b));
        let total = decimals || (self.is_leaf(left) && self.is_leaf(right));
        // Keys are worth it where they join; other comparisons are evaluated as they are.
        let joins = comparison == Comparison::Equal && self.joins(left, right);
        let own = plain || joins || (padded && total && equality);
        if !own {
            return Ok(None);
        }
        if !total && comparison != Comparison::Equal && !has_subquery(left) && !has_subquery(right)
        {
            return Ok(None);
        }
        let Some((left, right)) = self.sides(left, right, subs)? else {
            return Ok(None);
        };
        if padded && !joins && !Term::is_equal_plainly(&left, &right) {
            return Ok(None);
        }
        let comparison = match comparison {
            Comparison::Equal => Compared::Equal,
            Comparison::NotEqual => Compared::NotEqual,
            Comparison::Less => Compared::Less,
            Comparison::LessEqual => Compared::LessEqual,
            Comparison::Greater => Compared::Greater,
            Comparison::GreaterEqual => Compared::GreaterEqual,
        };
        Ok(Some(Term::compare(&self.symbols, comparison, left, right)))
    }

    /// Whether it is an equality whose sides read columns of different tables: a key to join by, each side of which is made of the rows of its own.
    pub(super) fn is_key_of_join(&self, expr: &Expr) -> bool {
        let Expr::Compare {
            comparison: Comparison::Equal,
            left,
            right,
        } = expr
        else {
            return false;
        };
        let (mut own, mut others) = (Vec::new(), Vec::new());
        places_read(left, &mut own);
        places_read(right, &mut others);
        let apart = |place: &Option<(u16, u16)>| place.is_some() && !others.contains(place);
        !own.is_empty() && !others.is_empty() && own.iter().all(apart)
    }

    /// Whether both sides read columns.
    fn joins(&self, left: &Expr, right: &Expr) -> bool {
        [left, right].into_iter().all(|side| {
            let mut reads = false;
            side.walk(&mut |expr| {
                reads |= matches!(
                    expr,
                    Expr::Column { .. } | Expr::Outer { .. } | Expr::Slot(_) | Expr::Subquery(_)
                );
            });
            reads
        })
    }

    /// The type of an expression's values, if it is known here.
    fn type_known(&self, expr: &Expr, subs: &[Subquery]) -> Option<Type> {
        match expr {
            Expr::Subquery(number) => subs.get(usize::from(*number))?.ty(),
            Expr::Outer { .. } if self.is_further_out(expr) => self.further_out(expr).ok()?.ty(),
            Expr::Outer { .. } => self.column(expr).ok().map(|term| term.ty()),
            Expr::Param(number) => self.run.params[usize::from(*number)].ty(),
            expr => type_of(expr, self.level()),
        }
    }

    /// Both sides of a comparison, which are of one type or integers; none if nothing says of which.
    fn sides(
        &mut self,
        left: &Expr,
        right: &Expr,
        subs: &'t [Subquery],
    ) -> Result<Option<(Term, Term)>> {
        let (a, b) = (self.type_known(left, subs), self.type_known(right, subs));
        let beside = |own: Option<Type>, other: Option<Type>| own.or(other.map(wide));
        let (Some(a), Some(b)) = (beside(a, b), beside(b, a)) else {
            return Ok(None);
        };
        let (left, right) = (self.term(left, a, subs)?, self.term(right, b, subs)?);
        let fits = left.ty() == right.ty()
            || Term::compares(left.ty(), right.ty())
            || (left.ty().is_plain_text() && right.ty().is_plain_text());
        Ok(fits.then_some((left, right)))
    }

    /// A decimal that is computed of decimals.
    fn decimal(&mut self, expr: &Expr, subs: &'t [Subquery]) -> Result<Option<Term>> {
        match expr {
            Expr::Arithmetic {
                operator,
                left,
                right,
            } => {
                let left = self.term(left, Type::Numeric, subs)?;
                let right = self.term(right, Type::Numeric, subs)?;
                let operation = operation(*operator);
                Ok(operation.and_then(|operation| Term::arithmetic(operation, left, right)))
            }
            Expr::Cast { operand, .. } => match &**operand {
                Expr::Const(_) => {
                    let value = self.constant(expr)?;
                    let term = Term::literal(Type::Numeric, value.as_ref());
                    term.map(Some).map_err(super::told)
                }
                operand if decimal(operand, self.level()).is_some() => {
                    self.term(operand, Type::Numeric, subs).map(Some)
                }
                operand => match type_of(operand, self.level()) {
                    Some(ty) => Ok(self.term(operand, ty, subs)?.whole()),
                    None => Ok(None),
                },
            },
            _ => Ok(None),
        }
    }

    /// The factors of a product of decimals that has too many digits to be one.
    pub(super) fn long_product(
        &mut self,
        expr: &Expr,
        subs: &'t [Subquery],
    ) -> Result<Option<(Term, Term)>> {
        let Expr::Arithmetic {
            operator: Operator::Multiply,
            left,
            right,
        } = expr
        else {
            return Ok(None);
        };
        let level = self.level();
        let both = decimal(left, level).is_some() && decimal(right, level).is_some();
        if !both || decimal(expr, level).is_some() {
            return Ok(None);
        }
        let left = self.term(left, Type::Numeric, subs)?;
        Ok(Some((left, self.term(right, Type::Numeric, subs)?)))
    }

    /// Takes columns and subqueries out of an expression.
    fn take_leaves(
        &mut self,
        expr: &mut Expr,
        subs: &'t [Subquery],
        leaves: &mut Leaves,
    ) -> Result<()> {
        let term = match expr {
            Expr::Outer { .. } if self.is_further_out(expr) => {
                *expr = Expr::Const(self.further_out(expr)?);
                return Ok(());
            }
            Expr::Column { .. } | Expr::Slot(_) | Expr::Outer { .. } => Some(self.column(expr)?),
            Expr::Subquery(number) => {
                let subquery = &subs[usize::from(*number)];
                if !subquery.select.correlated {
                    *expr = Expr::Const(self.run_once(subquery)?);
                    return Ok(());
                }
                // Of rows it is whether there are any.
                let ty = subquery.ty().unwrap_or(Type::Bool);
                self.subquery(*number, ty, subs)?
            }
            Expr::InSubquery {
                operand,
                subquery,
                negated,
            } => {
                let inner = &subs[usize::from(*subquery)];
                if inner.select.correlated {
                    let (operand, number, negated) = (operand.clone(), *subquery, *negated);
                    self.in_subquery(&operand, number, negated, subs)?
                } else {
                    let set = self.set_once(inner)?;
                    self.take_leaves(operand, subs, leaves)?;
                    let operand = std::mem::replace(&mut **operand, Expr::Const(Value::Null));
                    *expr = Expr::Rows {
                        operands: Box::new([operand]),
                        from: RowsFrom::Known(set),
                        test: RowTest::among(*negated),
                    };
                    return Ok(());
                }
            }
            Expr::Rows {
                operands,
                from: from @ RowsFrom::Subquery(_),
                test,
            } => {
                let RowsFrom::Subquery(number) = *from else {
                    return Err(SqlError::internal("rows of no subquery"));
                };
                let inner = &subs[usize::from(number)];
                if inner.select.correlated {
                    let mut terms = Vec::with_capacity(operands.len());
                    for (operand, ty) in operands.iter().zip(&inner.select.types) {
                        let ty = self.type_beside(operand, *ty);
                        terms.push(self.term(operand, ty, subs)?);
                    }
                    Some(self.asked_with(inner, Type::Bool, terms, Test::Rows(*test))?)
                } else {
                    // One set for all rows.
                    *from = RowsFrom::Known(self.set_once(inner)?);
                    None
                }
            }
            _ => None,
        };
        if let Some(term) = term {
            let known = leaves.exprs.iter().position(|known| known == expr);
            let position = known.unwrap_or(leaves.exprs.len());
            if known.is_none() {
                leaves.exprs.push(expr.clone());
                leaves.terms.push(term);
            }
            *expr = Expr::Column {
                table: 0,
                position: position as u16,
            };
            return Ok(());
        }
        // Anything else tells false and null apart.
        let exact = !matches!(expr, Expr::And(_) | Expr::Or(_));
        self.exact += u32::from(exact);
        let mut result = Ok(());
        expr.children_mut(&mut |child| {
            if result.is_ok() {
                result = self.take_leaves(child, subs, leaves);
            }
        });
        self.exact -= u32::from(exact);
        result
    }

    /// The value of an expression without columns.
    pub(super) fn constant(&self, expr: &Expr) -> Result<Value> {
        Ok(expr.eval(&self.run.frame(&[], &[], &[]))?.into_value())
    }

    /// The same condition of a table's columns with what is the same for all rows computed, the session's answers among it. What cannot be computed
    /// stays: it may never be asked for.
    pub(super) fn computed(&self, mut expr: Expr) -> Expr {
        if !expr.is_volatile() {
            self.compute(&mut expr);
        }
        expr
    }

    /// Returns whether it reads no row.
    fn compute(&self, expr: &mut Expr) -> bool {
        match expr {
            Expr::Const(_) | Expr::Param(_) => return true,
            Expr::Column { .. }
            | Expr::Outer { .. }
            | Expr::Slot(_)
            | Expr::Subquery(_)
            | Expr::Held
            | Expr::InSubquery { .. }
            | Expr::Rows {
                from: RowsFrom::Subquery(_),
                ..
            } => return false,
            _ => {}
        }
        let mut same = true;
        expr.children_mut(&mut |child| same &= self.compute(child));
        if same && let Ok(value) = self.constant(expr) {
            *expr = Expr::Const(value);
        }
        same
    }

    /// A subquery that reads nothing of what surrounds it is run before the query.
    pub(super) fn run_once(&self, subquery: &'t Subquery) -> Result<Value> {
        match self.run.subquery(subquery)? {
            Returned::Value(value) => Ok(value),
            Returned::Rows(_) => Err(SqlError::internal("a list for a value")),
        }
    }

    fn set_once(&self, subquery: &'t Subquery) -> Result<Arc<RowSet>> {
        match self.run.subquery(subquery)? {
            Returned::Rows(set) => Ok(set),
            Returned::Value(_) => Err(SqlError::internal("a value for rows")),
        }
    }

    fn subquery(&mut self, number: u16, ty: Type, subs: &'t [Subquery]) -> Result<Option<Term>> {
        let subquery = &subs[usize::from(number)];
        if !subquery.select.correlated {
            let value = self.run_once(subquery)?;
            let term = Term::literal(ty, value.as_ref()).map_err(super::told)?;
            return Ok(Some(term));
        }
        let joined = self.subqueries == Subqueries::Joined;
        match subquery.kind {
            // A join knows whether there is a row, not how many.
            SubqueryKind::Exists if joined && joins(subquery) && subquery.select.has_some() => {
                // PostgreSQL has a join or a set of keys there, too, which fail alike: not tried row by row (G8).
                let relation = self.inner(&subquery.select)?;
                Ok(Some(Term::exists(relation, false)))
            }
            SubqueryKind::Scalar if joined && joins(subquery) => {
                let relation = self.joined(subquery)?;
                Ok(Some(Term::scalar(relation).map_err(super::told)?))
            }
            _ => self.asked(subquery, ty).map(Some),
        }
    }

    /// The rows of a subquery that becomes a join.
    fn joined(&mut self, subquery: &'t Subquery) -> Result<Relation> {
        self.sources.joins_unsure |= subquery.select.correlated && !is_sure(subquery);
        self.inner(&subquery.select)
    }

    fn in_subquery(
        &mut self,
        operand: &Expr,
        number: u16,
        negated: bool,
        subs: &'t [Subquery],
    ) -> Result<Option<Term>> {
        let subquery = &subs[usize::from(number)];
        let ty = self.type_beside(operand, subquery.select.types[0]);
        let asked = self.subqueries == Subqueries::Asked;
        if !subquery.select.correlated {
            // L1. A join heeds the nulls of an operand only where that is one of a row.
            let below = self.exact > 0 || negated && self.below_or > 0;
            if asked || below || negated && !reads_columns(operand) {
                return Ok(None);
            }
        } else {
            // An anti join that heeds nulls heeds those of all rows, not of those only that belong to the row at hand.
            let apart = (negated || self.exact > 0) && self.level().slots.is_empty();
            if asked || apart || !joins(subquery) {
                let operand = self.term(operand, ty, subs)?;
                let test = Test::Among { negated };
                let found = self.asked_with(subquery, Type::Bool, vec![operand], test)?;
                return Ok(Some(found));
            }
        }
        let operand = self.term(operand, ty, subs)?;
        let relation = self.joined(subquery)?;
        let found = Term::is_in(&self.symbols, operand, relation, negated);
        found.map(Some).map_err(super::told)
    }

    /// The type of what is compared with values of another. Integers are compared as they are, however wide.
    fn type_beside(&self, operand: &Expr, other: Type) -> Type {
        type_of(operand, self.level()).unwrap_or(wide(other))
    }

    /// A subquery that is run for each row.
    fn asked(&mut self, subquery: &'t Subquery, ty: Type) -> Result<Term> {
        self.asked_with(subquery, ty, Vec::new(), Test::Value)
    }

    /// The same; or what is asked of its rows and of these operands.
    fn asked_with(
        &mut self,
        subquery: &'t Subquery,
        ty: Type,
        operands: Vec<Term>,
        test: Test,
    ) -> Result<Term> {
        // Who is asked knows the rows of one query only, not those of the one around it.
        let levels = self.levels.len();
        let further = usize::from(subquery.select.reads_up_to().saturating_sub(1));
        if levels > 1 && (matches!(test, Test::Rows(_)) || further > 0) {
            return Err(SqlError::unsupported("rows of a subquery in a subquery"));
        }
        if !self.level().slots.is_empty() {
            return Err(SqlError::unsupported("this subquery of a group"));
        }
        // Only these: a join in parentheses has no columns of the tables before it.
        let mut places = Vec::new();
        columns_of(subquery, &mut |place| {
            if !places.contains(&place) {
                places.push(place);
            }
        });
        let of = AskedOf::Subquery(subquery, test);
        let volatile = subquery.select.is_volatile();
        self.asked_of(of, places, operands, ty, volatile)
    }

    /// What the host is asked for, with these columns of the row, and the operands behind them.
    pub(super) fn asked_of(
        &mut self,
        of: AskedOf<'t>,
        places: Vec<(u16, u16)>,
        operands: Vec<Term>,
        ty: Type,
        volatile: bool,
    ) -> Result<Term> {
        let mut arguments = Vec::with_capacity(places.len() + operands.len());
        for &(table, position) in &places {
            arguments.push(self.column(&Expr::Column { table, position })?);
        }
        arguments.extend(operands);
        let widths = self.level().tables.iter().map(Vec::len).collect();
        self.sources.asked.push(AskedFor { of, widths, places });
        let number = self.sources.asked.len() - 1;
        let away = self.away();
        let function = Arc::new(Asked { number, away });
        let symbols = &self.symbols;
        Ok(Term::call(symbols, function, arguments, ty, volatile))
    }
}

/// A type that has room for all that is compared with values of this one as it is: integers of any width are.
fn wide(ty: Type) -> Type {
    match ty {
        Type::Int2 | Type::Int4 => Type::Int8,
        other => other,
    }
}

/// What [`Translation::column`] says of what is no column.
fn not_a_column() -> SqlError {
    SqlError::internal("no column")
}

fn no_column(error: SqlError) -> Result<Option<Term>> {
    if error.message() == not_a_column().message() {
        return Ok(None);
    }
    Err(error)
}

fn reads_columns(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Column { .. } | Expr::Slot(_)));
    found
}
