//! Rows as values: which are the same, and which comes first.
//!
//! Two rows that are both written where they are compared are compared part by part (`row`). All others are, as in PostgreSQL, the same if all their parts are,
//! nulls too, and a null is greater than all else. A row of a table, and one that is written down, is taken apart; of one that a query in FROM returns the
//! fields are read. So nothing compares rows when a statement is run.

use super::row::{null, null_where, taken_apart};
use super::{Binder, Bound, COMPARED_MAX};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, CatalogFunction, Comparison, Expr, RowTest, RowsFrom};
use crate::plan::{SortBy, SortKey, check_equality};
use crate::sqlstate;
use std::cmp::Ordering;
use vellum_row::{Type, Typmod, Value};

/// What a row is made of.
struct Parts {
    /// When there is no row.
    missing: Option<Expr>,
    parts: Vec<Bound>,
}

/// What two rows are compared by.
#[derive(Default)]
struct Pairs {
    /// When there is no row on either side, if that can be.
    missing: [Option<Expr>; 2],
    pairs: Vec<(Expr, Expr)>,
}

/// Counts what is looked at: a row that has another twice, which has another twice, has more parts than its text has words.
fn count(visited: &mut usize) -> Result<()> {
    SqlError::check_room(*visited, COMPARED_MAX, "parts of rows that are compared")?;
    *visited += 1;
    Ok(())
}

impl Binder<'_> {
    /// `None` of a row of which it is not known what is in it.
    fn parts_of(&self, row: &Bound) -> Option<Parts> {
        let columns = self.record_columns(row.typmod)?;
        let field = |(number, (_, ty, _)): (u16, &(String, Type, Typmod))| Expr::Call {
            function: Builtin::Catalog(CatalogFunction::Field(number, *ty)),
            arguments: [row.expr.clone()].into(),
        };
        let (missing, exprs) = match (taken_apart(&row.expr), &row.expr) {
            (Some((missing, parts)), _) => (missing.cloned(), parts.to_vec()),
            (None, expr) if self.is_at_hand(expr) => {
                let fields = (0u16..).zip(columns).map(field);
                (Some(null(row.expr.clone())), fields.collect())
            }
            _ => return None,
        };
        let parts = exprs.into_iter().zip(columns);
        let parts = parts.map(|(expr, (_, ty, typmod))| Bound {
            typmod: *typmod,
            ..Bound::new(expr, *ty)
        });
        Some(Parts {
            missing,
            parts: parts.collect(),
        })
    }

    /// Whether a row can be read once for each of its parts.
    fn is_at_hand(&self, row: &Expr) -> bool {
        match row {
            Expr::Column { .. } | Expr::Outer { .. } => true,
            Expr::Subquery(number) => {
                let asked = self.subqueries.get(usize::from(*number));
                asked.is_some_and(|asked| !asked.select.correlated)
            }
            // A row in such a row.
            Expr::Call {
                function: Builtin::Catalog(CatalogFunction::Field(..)),
                arguments,
            } => arguments.iter().all(|row| self.is_at_hand(row)),
            _ => false,
        }
    }

    /// Adds what a row is told apart by; whether that is known.
    fn leaves(
        &self,
        row: &Bound,
        visited: &mut usize,
        out: &mut Vec<(Expr, Type)>,
    ) -> Result<bool> {
        count(visited)?;
        let Some(own) = self.parts_of(row) else {
            return Ok(false);
        };
        out.extend(own.missing.map(|missing| (missing, Type::Bool)));
        for part in own.parts {
            if part.ty == Some(Type::Record) {
                if !self.leaves(&part, visited, out)? {
                    return Ok(false);
                }
                continue;
            }
            count(visited)?;
            let ty = part.ty.unwrap_or(Type::Text);
            if !ty.is_orderable() {
                let ty = self.name_of(part.ty);
                let message = format!("could not identify a comparison function for type {ty}");
                return Err(SqlError::new(sqlstate::UNDEFINED_FUNCTION, message));
            }
            out.push((part.expr, ty));
        }
        Ok(true)
    }

    /// What rows are told apart by; `None` if it is not known what is in them.
    ///
    /// # Errors
    /// `42883` for a part without equality, `54000` for too many.
    pub(crate) fn told_apart(&self, row: &Bound) -> Result<Option<Vec<(Expr, Type)>>> {
        let mut out = Vec::new();
        let known = self.leaves(row, &mut 0, &mut out)?;
        if out.is_empty() {
            // All rows without columns are one.
            out.push((truth(true), Type::Bool));
        }
        Ok(known.then_some(out))
    }

    /// The same of one that was written down or is a table's: what is computed of a row is then computed of what tells it apart.
    pub(crate) fn told_apart_by(&self, row: &Bound) -> Option<Vec<(Expr, Type)>> {
        taken_apart(&row.expr)?;
        self.told_apart(row).ok().flatten()
    }

    /// The keys that rows are sorted by, in place of one that is a row; `None` if it is not known what is in it.
    ///
    /// # Errors
    /// As [`Binder::told_apart`].
    pub(crate) fn sorted_by_parts(
        &self,
        key: &SortKey,
        row: &Bound,
    ) -> Result<Option<Vec<SortKey>>> {
        let may_miss = self.parts_of(row).is_some_and(|own| own.missing.is_some());
        let Some(all) = self.told_apart(row)? else {
            return Ok(None);
        };
        let keys = all.into_iter().enumerate().map(|(at, (expr, ty))| {
            // A row that is missing is a null; in rows these are the greatest.
            let descending = match at == 0 && may_miss {
                true => key.nulls_first,
                false => key.descending,
            };
            SortKey {
                expr: SortBy::Expr(expr),
                ty,
                descending,
                nulls_first: descending,
            }
        });
        Ok(Some(keys.collect()))
    }

    fn pairs(
        &self,
        left: &Bound,
        right: &Bound,
        ordered: bool,
        visited: &mut usize,
        out: &mut Vec<(Expr, Expr)>,
    ) -> Result<Option<[Option<Expr>; 2]>> {
        count(visited)?;
        let (Some(left), Some(right)) = (self.parts_of(left), self.parts_of(right)) else {
            return Ok(None);
        };
        let mismatch = |text: String| SqlError::new(sqlstate::DATATYPE_MISMATCH, text);
        if left.parts.len() != right.parts.len() {
            let text = "cannot compare record types with different numbers of columns";
            return Err(mismatch(text.to_owned()));
        }
        for (number, (left, right)) in (1..).zip(left.parts.iter().zip(&right.parts)) {
            if left.ty != right.ty {
                let (left, right) = (self.name_of(left.ty), self.name_of(right.ty));
                return Err(mismatch(format!(
                    "cannot compare dissimilar column types {left} and {right} at record column {number}"
                )));
            }
            if left.ty == Some(Type::Record) {
                let at = out.len();
                let Some(missing) = self.pairs(left, right, ordered, visited, out)? else {
                    return Ok(None);
                };
                // Where neither can be missing nothing tells them apart by that.
                if missing.iter().any(Option::is_some) {
                    let [left, right] = missing.map(|one| one.unwrap_or(truth(false)));
                    out.insert(at, (left, right));
                }
                continue;
            }
            count(visited)?;
            let ty = left.ty.unwrap_or(Type::Text);
            match ordered {
                true => check_comparison(ty)?,
                false => check_equality(ty)?,
            }
            out.push((left.expr.clone(), right.expr.clone()));
        }
        Ok(Some([left.missing, right.missing]))
    }

    fn pairs_of(&self, left: &Bound, right: &Bound, ordered: bool) -> Result<Option<Pairs>> {
        if [left.ty, right.ty] != [Some(Type::Record); 2] {
            return Ok(None);
        }
        let mut pairs = Vec::new();
        let missing = self.pairs(left, right, ordered, &mut 0, &mut pairs)?;
        Ok(missing.map(|missing| Pairs { missing, pairs }))
    }

    /// A comparison of rows as values; `None` if one side is none, or it is not known what is in it.
    ///
    /// # Errors
    /// `42804` for rows of different columns, `42883` for a part that is not compared, `54000` for too many.
    pub(super) fn compared_records(
        &self,
        comparison: Comparison,
        left: &Bound,
        right: &Bound,
    ) -> Result<Option<Bound>> {
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let Some(Pairs { missing, pairs }) = self.pairs_of(left, right, ordered)? else {
            return Ok(None);
        };
        let expr = match comparison {
            Comparison::Equal => same(pairs),
            Comparison::NotEqual => Expr::Not(Box::new(same(pairs))),
            _ => in_order(comparison, pairs),
        };
        let missing: Vec<Expr> = missing.into_iter().flatten().collect();
        let expr = match missing.is_empty() {
            true => expr,
            false => null_where(Expr::Or(missing.into()), expr),
        };
        Ok(Some(Bound::new(expr, Type::Bool)))
    }

    /// IS NOT DISTINCT FROM of rows as values, or of one and NULL; `None` as of [`Binder::compared_records`].
    ///
    /// # Errors
    /// As of that.
    pub(super) fn same_records(&mut self, left: &Bound, right: &Bound) -> Result<Option<Expr>> {
        let is_null = |bound: &Bound| matches!(bound.expr, Expr::Const(Value::Null));
        for (row, other) in [(left, right), (right, left)] {
            if row.ty == Some(Type::Record) && other.ty.is_none() && is_null(other) {
                let own = self.parts_of(row);
                return Ok(own.map(|own| own.missing.unwrap_or(truth(false))));
            }
        }
        let Some(Pairs { missing, pairs }) = self.pairs_of(left, right, false)? else {
            return Ok(None);
        };
        let same = same(pairs);
        if missing.iter().all(Option::is_none) {
            return Ok(Some(same));
        }
        let missing = missing.map(|one| one.unwrap_or(truth(false)));
        for one in &missing {
            self.copying(one)?;
        }
        let either = Expr::Or(missing.clone().into());
        Ok(Some(Expr::Case {
            branches: Box::new([(either, Expr::And(missing.into()))]),
            otherwise: Box::new(same),
        }))
    }
}

/// # Errors
/// `42883` for a type whose values in rows have no order.
fn check_comparison(ty: Type) -> Result<()> {
    let element = match ty {
        Type::Array(element) => element.ty(),
        ty => ty,
    };
    if element.is_sortable() {
        return Ok(());
    }
    let message = format!(
        "could not identify a comparison function for type {}",
        ty.sql_name()
    );
    Err(SqlError::new(sqlstate::UNDEFINED_FUNCTION, message))
}

fn truth(value: bool) -> Expr {
    Expr::Const(Value::Bool(value))
}

fn distinct(left: Expr, right: Expr, negated: bool) -> Expr {
    Expr::Distinct {
        left: Box::new(left),
        right: Box::new(right),
        negated,
    }
}

fn same(pairs: Vec<(Expr, Expr)>) -> Expr {
    match pairs.is_empty() {
        true => truth(true),
        false => {
            let all = pairs.into_iter();
            Expr::And(
                all.map(|(left, right)| distinct(left, right, true))
                    .collect(),
            )
        }
    }
}

/// The first pair that is not the same decides. Each part is computed once.
fn in_order(comparison: Comparison, pairs: Vec<(Expr, Expr)>) -> Expr {
    let (operands, others): (Vec<Expr>, Vec<Expr>) = pairs.into_iter().unzip();
    match operands.is_empty() {
        true => truth(comparison.holds(Ordering::Equal)),
        false => Expr::Rows {
            operands: operands.into(),
            from: RowsFrom::Row(others.into()),
            test: RowTest::Values(comparison),
        },
    }
}
