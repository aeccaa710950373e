//! Subqueries that are run for each row of the query around them, and what is kept of that.
//!
//! A query that has to be planned each time is planned once for equal values of what it reads. An EXISTS that is correlated by equalities is run until as many rows were read for it as all keys
//! take to be found; then these are found, and each further row is looked up among them ([`ByKeys`]). So it takes at most about twice as long as the better of both ways would have.
//!
//! Invariants:
//! - BK1 Keys are found of rows that nobody may ever ask for. Where that fails with what a value is, or for want of memory, the EXISTS is run row by row as before.
//!
//! Not here: what a row is looked up by (`plan/by_keys`).

use super::{Account, DistinctRows, Flow, Run, bytes_of, bytes_of_row};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Frame, Out, Queries, Returned};
use crate::plan::{ByKeys, Select, Subquery};
use crate::sqlstate;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use vellum_row::{Type, Value, ValueRef, send};

/// Rows that a run of a subquery counts with beside those that it reads.
const RUN_ROWS: u64 = 16;

/// What is known of queries that are run for each row.
#[derive(Debug, Default)]
pub(super) struct Planned {
    /// Values of subqueries, by what they depend on.
    by_values: BTreeMap<Vec<u8>, Value>,
    bytes: usize,
    /// Addresses of queries that there is no plan for with their subqueries as joins. One that is mistaken for another takes longer, no more.
    unplanned: BTreeSet<usize>,
    /// Of EXISTS, by their numbers.
    keys: BTreeMap<u64, Keys>,
}

/// The keys of an EXISTS.
#[derive(Debug)]
enum Keys {
    /// They have not been found; so many rows were read for those who asked.
    Spent(u64),
    Found(Rc<DistinctRows>),
    /// They cannot be found.
    Failed,
}

impl Planned {
    /// Bytes that a statement keeps of them: beyond these they are planned again.
    const BYTES_MAX: usize = 1 << 20;

    fn keep(&mut self, key: Vec<u8>, value: &Value) {
        let bytes = key.len() + bytes_of(value);
        if self.bytes + bytes <= Self::BYTES_MAX {
            self.bytes += bytes;
            self.by_values.insert(key, value.clone());
        }
    }
}

impl Run<'_, '_> {
    /// Whether there was no plan for a query, earlier in this statement, with its subqueries as joins.
    pub(crate) fn is_known_unplanned(&self, select: &Select) -> bool {
        let at = std::ptr::from_ref(select).addr();
        self.planned.borrow().unplanned.contains(&at)
    }

    pub(crate) fn note_unplanned(&self, select: &Select) {
        let at = std::ptr::from_ref(select).addr();
        self.planned.borrow_mut().unplanned.insert(at);
    }

    /// A subquery's number and the values, in their binary form, of all that it depends on; `None` if it may return something else each time. Texts of floats tell fewer of them apart.
    fn values_read(&self, subquery: &Subquery, frame: &Frame<'_>) -> Result<Option<Vec<u8>>> {
        let Some(places) = subquery.select.depends_on() else {
            return Ok(None);
        };
        let mut key = subquery.number.to_be_bytes().to_vec();
        for (level, table, position) in places {
            let column = match level.checked_sub(1) {
                Some(0) | None => Expr::Column { table, position },
                Some(level) => Expr::Outer {
                    level,
                    table,
                    position,
                },
            };
            let value = column.eval(frame)?;
            let at = key.len();
            key.extend([0; 5]);
            if !value.as_ref().is_null() {
                send(value.as_ref(), &mut key)?;
                let length = u32::try_from(key.len() - at).unwrap_or(u32::MAX);
                key[at + 1..at + 5].copy_from_slice(&length.to_be_bytes());
                key[at] = 1;
            }
        }
        Ok(Some(key))
    }

    /// Whether an EXISTS has a row for those that it is asked for at, if its keys are known, or worth to be from now on.
    fn looked_up(
        &self,
        (subquery, by_keys): (&Subquery, &ByKeys),
        within: &Run<'_, '_>,
    ) -> Result<Option<bool>> {
        let keys = match self.planned.borrow().keys.get(&subquery.number) {
            Some(Keys::Found(keys)) => Some(keys.clone()),
            Some(Keys::Spent(rows)) if *rows >= by_keys.cost => None,
            _ => return Ok(None),
        };
        let keys = match keys {
            Some(keys) => keys,
            None => {
                let found = self.keys_of(by_keys)?.map(Rc::new);
                let known = found.clone().map_or(Keys::Failed, Keys::Found);
                let mut planned = self.planned.borrow_mut();
                planned.keys.insert(subquery.number, known);
                match found {
                    Some(keys) => keys,
                    None => return Ok(None),
                }
            }
        };
        // Of no rows nothing is asked.
        if keys.rows().is_empty() {
            return Ok(Some(false));
        }
        let frame = within.frame(&[], &[], &[]);
        let mut wanted = Vec::with_capacity(by_keys.wanted.len());
        for (expr, ty) in by_keys.wanted.iter().zip(&by_keys.rows.select.types) {
            let value = expr.eval(&frame)?;
            match value.as_ref().ty() {
                None => return Ok(Some(false)),
                Some(own) if is_hashed_as(own, *ty) => wanted.push(value),
                Some(_) => return Ok(None),
            }
        }
        let wanted: Vec<ValueRef<'_>> = wanted.iter().map(Out::as_ref).collect();
        Ok(Some(keys.find(&wanted).is_some()))
    }

    /// The keys of an EXISTS; none where they cannot be found (BK1).
    fn keys_of(&self, by_keys: &ByKeys) -> Result<Option<DistinctRows>> {
        let room = self.room();
        let mut keys = DistinctRows::default();
        let done = self.run_subquery(&by_keys.rows, &mut |row| {
            let row: Vec<ValueRef<'_>> = row.iter().map(Out::as_ref).collect();
            // A null is equal to nothing.
            if row.iter().all(|value| !value.is_null()) && keys.find(&row).is_none() {
                let row: Vec<Value> = row.iter().map(|value| value.to_value()).collect();
                self.keep_listed(bytes_of_row(&row))?;
                keys.add(row);
            }
            Ok(Flow::More)
        });
        match done {
            Ok(()) => Ok(Some(keys)),
            Err(error) if is_of_some_rows(&error) => {
                self.set_room(room);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A run of an EXISTS has read so many rows.
    fn spend(&self, subquery: &Subquery, rows: u64) {
        let mut planned = self.planned.borrow_mut();
        let keys = planned.keys.entry(subquery.number);
        if let Keys::Spent(spent) = keys.or_insert(Keys::Spent(0)) {
            *spent = spent.saturating_add(rows + RUN_ROWS);
        }
    }
}

/// Whether another way may come to an answer all the same.
fn is_of_some_rows(error: &SqlError) -> bool {
    let state = error.sqlstate();
    let others = [
        sqlstate::OUT_OF_MEMORY,
        sqlstate::FEATURE_NOT_SUPPORTED,
        sqlstate::CARDINALITY_VIOLATION,
    ];
    state.class() == "22" || others.contains(&state)
}

/// Whether values of these types that are equal have one hash.
fn is_hashed_as(left: Type, right: Type) -> bool {
    left == right
        || left.is_integer() && right.is_integer()
        || left.is_plain_text() && right.is_plain_text()
}

impl Queries for Run<'_, '_> {
    fn run_within(&self, subquery: &Subquery, frame: &Frame<'_>) -> Result<Returned> {
        self.step()?;
        let within = self.within(frame);
        let by_keys = subquery.by_keys();
        if let Some(by_keys) = by_keys
            && let Some(found) = self.looked_up((subquery, by_keys), &within)?
        {
            return Ok(Returned::Value(Value::Bool(found)));
        }
        // Programs are at hand, and run at once.
        let plans = subquery
            .select
            .general
            .is_some_and(|reason| !reason.has_program());
        let key = match plans {
            true => self.values_read(subquery, frame)?,
            false => None,
        };
        if let Some(key) = &key
            && let Some(known) = self.planned.borrow().by_values.get(key)
        {
            return Ok(Returned::Value(known.clone()));
        }
        let returned = within.answer(subquery)?;
        if by_keys.is_some() {
            self.spend(subquery, u64::from(within.steps.get()));
        }
        if let (Some(key), Returned::Value(value)) = (key, &returned) {
            self.planned.borrow_mut().keep(key, value);
        }
        Ok(returned)
    }

    fn run_once(&self, subquery: &Subquery) -> Result<Returned> {
        self.subquery(subquery)
    }

    fn keep_list(&self, bytes: usize) -> Result<Option<Account>> {
        let account = self.keep_listed(bytes)?;
        Ok(self.outer.is_none().then_some(account))
    }
}
