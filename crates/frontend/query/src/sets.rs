//! Grouping sets, of which one has no keys, of rows that draw: these are made once.
//!
//! The set without keys has a row also of no rows, so it is a step of its own that makes the rows again (`relation`), which would be others. Here one row is added to the rows that is none of
//! them: no set is without a row then, and all are made in one pass. Aggregates leave that row out, and so does every set but the one without keys, if it has no other row.
//!
//! Invariants:
//! - GS1 What is computed of the rows is computed below the row that is added: nothing draws for it, and nothing fails with its nulls.

use crate::aggregate::Aggregate;
use crate::error::{Error, Result};
use crate::relation::{Relation, Symbols};
use crate::term::{Comparison, Term};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use vellum_row::{Type, ValueRef};

/// Keys whose bits a number says that is asked for.
const KEYS_MAX: usize = 31;

impl Relation {
    /// As [`Self::group_sets`], the rows made once.
    ///
    /// # Errors
    /// [`Error::Unplanned`] for sets of too many keys.
    pub(crate) fn group_sets_once(
        self,
        symbols: &Symbols,
        mut keys: Vec<Term>,
        mut aggregates: Vec<Aggregate>,
        sets: &[Vec<usize>],
        asked: &[Vec<usize>],
    ) -> Result<Self> {
        let width = keys.len();
        if width > KEYS_MAX {
            return Err(Error::Unplanned(
                "sets of so many keys, of rows that are not the same when they are read again"
                    .to_owned(),
            ));
        }
        let own = aggregates.iter_mut().flat_map(Aggregate::terms_mut);
        let terms = keys.iter_mut().chain(own).collect();
        let (rows, is_row) = self.marked(symbols, terms)?;
        for aggregate in &mut aggregates {
            aggregate.leave_out_but(&is_row);
        }
        let folded = aggregates.len();
        aggregates.push(Aggregate::count_rows().filtered(Some(is_row)));
        let mut asked = asked.to_vec();
        asked.push((0..width).collect());
        let sets: Vec<&Vec<usize>> = sets.iter().collect();
        let grouped = rows.grouped_by(symbols, keys, aggregates, &sets, &asked)?;
        let mut columns = grouped.columns.clone();
        // Behind the aggregates the number of rows, at the end whether there are no keys.
        let bits = columns.pop();
        let count = columns.remove(width + folded);
        let bits = bits.ok_or_else(|| Error::internal("sets that do not say their keys"))?;
        let none = Term::literal(Type::Int8, ValueRef::Int8(0))?;
        let every = i32::try_from((1i64 << width) - 1).unwrap_or(i32::MAX);
        let every = Term::literal(Type::Int4, ValueRef::Int4(every))?;
        let stays = Term::any([
            Term::compare(symbols, Comparison::Greater, count.term(), none),
            Term::compare(symbols, Comparison::Equal, bits.term(), every),
        ]);
        grouped.filter(stays)?.only(columns)
    }

    /// These terms of its rows, and one row more, of nulls; a term that is true of all but that. What is computed twice is computed once (V1).
    fn marked(self, symbols: &Symbols, mut terms: Vec<&mut Term>) -> Result<(Self, Term)> {
        let width = self.columns.len();
        let mut made: Vec<Term> = Vec::new();
        let mut places = Vec::with_capacity(terms.len());
        for term in &terms {
            let known = made.iter().position(|other| other.expr == term.expr);
            places.push(known.unwrap_or(made.len()));
            if known.is_none() {
                made.push(Term::clone(term));
            }
        }
        made.push(Term::literal(Type::Bool, ValueRef::Bool(true))?);
        let rows = self.extend(symbols, made)?;
        let columns = rows.columns[width..].to_vec();
        let rows = rows.only(columns.clone())?;
        for (term, place) in terms.iter_mut().zip(places) {
            **term = columns[place].term();
        }
        let last = columns.len() - 1;
        let mut added: Vec<Expr> = Vec::with_capacity(columns.len());
        for (number, column) in columns.iter().enumerate() {
            let value = match number == last {
                true => lit(false),
                false => {
                    let null = ScalarValue::try_from(&column.kind().data_type())?;
                    Expr::Literal(null, None)
                }
            };
            added.push(value.alias(column.name()));
        }
        let added = LogicalPlanBuilder::empty(true).project(added)?.build()?;
        let plan = LogicalPlanBuilder::new(rows.plan).union(added)?.build()?;
        let is_row = columns[last].term();
        Ok((Self { plan, columns }, is_row))
    }
}
