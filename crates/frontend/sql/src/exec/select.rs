//! Queries: what is done with the rows of their tables.

use super::distinct::DistinctRows;
use super::last::Last;
use super::scan::Tables;
use super::system::KeptRows;
use super::{Flow, Run};
use crate::error::{Result, SqlError};
use crate::expr::{Out, RowRef, Subresult};
use crate::general::is_unplanned;
use crate::plan::{Body, Select, SortBy, SortKey, SourceKind, columns_read};
use crate::sqlstate;
use smallvec::SmallVec;
use sqlparser::ast::SetOperator;
use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;
use vellum_row::{Value, ValueRef, compare};

/// Columns of a row that is made without an allocation.
const FEW_COLUMNS: usize = 8;

/// A row of a result that is to be sorted.
struct Kept {
    sort: Vec<Value>,
    row: Vec<Value>,
    /// Keys of the rows that it is made of, if they are to be locked.
    keys: Vec<Vec<u8>>,
}

impl Run<'_, '_> {
    /// Runs a query.
    ///
    /// # Errors
    /// The statement's.
    pub fn select(&self, select: &Select, each: &mut super::Each<'_>) -> Result<Flow> {
        // Inside another query's row a program is at hand, if there is one.
        if let Some(reason) = select.general
            && (self.outer.is_none() && self.place.is_none() || !reason.has_program())
        {
            let (told, room) = (Cell::new(false), self.room());
            let in_pieces = self.stands.get().is_some();
            let done = self.general(select, &mut |row| {
                told.set(true);
                each(row)
            });
            return match done {
                // Slower than operators would be, and the same rows.
                Err(none) if is_unplanned(&none) && reason.has_program() && !told.get() => {
                    self.set_room(room);
                    if !in_pieces {
                        return self.by_program(select, each, &told);
                    }
                    // It has no place to stand at.
                    self.by_program(select, &mut |row| each(row).map(|_| Flow::More), &told)
                }
                done => done,
            };
        }
        let (told, room) = (Cell::new(false), self.room());
        let done = self.by_program(select, each, &told);
        match done {
            // What operators keep goes into files where it has to, and the same query is theirs as well.
            Err(error)
                if error.sqlstate() == sqlstate::OUT_OF_MEMORY
                    && !told.get()
                    && self.may_be_general(select) =>
            {
                self.set_room(room);
                match self.general(select, each) {
                    Err(none) if none.sqlstate() == sqlstate::FEATURE_NOT_SUPPORTED => Err(error),
                    done => done,
                }
            }
            done => done,
        }
    }

    /// Whether a query that a program has begun may be begun anew by operators.
    #[cold]
    fn may_be_general(&self, select: &Select) -> bool {
        self.outer.is_none()
            && self.place.is_none()
            && self.queries.spills()
            && !select.has_lateral()
            && !select.is_volatile()
    }

    /// The rows of a query for which another one, that is no program's, has no step of its own.
    ///
    /// # Errors
    /// The query's; `0A000` if no program runs it either; `53200`.
    pub(crate) fn rows_by_program(&self, select: &Select) -> Result<Rc<KeptRows>> {
        let apart = matches!(&select.body, Body::From { windows, grouping, .. }
            if !windows.is_empty()
                || grouping.as_ref().is_some_and(|grouping| grouping.sets.is_some() || !grouping.asked.is_empty()));
        if apart || select.ties || !select.distinct_on.is_empty() {
            return Err(SqlError::unsupported("LATERAL in such a query"));
        }
        if self.plans_only() {
            return Ok(KeptRows::new(Vec::new()));
        }
        let mut rows = Vec::new();
        let mut keep = |row: &[Out<'_>]| {
            let row: Vec<Value> = row.iter().map(|out| out.as_ref().to_value()).collect();
            self.keep_row(&row)?;
            rows.push(row);
            Ok(Flow::More)
        };
        self.by_program(select, &mut keep, &Cell::new(false))?;
        Ok(KeptRows::new(rows))
    }

    /// The rows of a query, in memory.
    ///
    /// # Errors
    /// The query's; `53200`.
    pub(crate) fn kept(&self, select: &Select) -> Result<Rc<KeptRows>> {
        let mut rows = Vec::new();
        self.select(select, &mut |row| {
            let row: Vec<Value> = row.iter().map(|out| out.as_ref().to_value()).collect();
            self.keep_row(&row)?;
            rows.push(row);
            Ok(Flow::More)
        })?;
        Ok(KeptRows::new(rows))
    }

    /// Sets `told` before the first row.
    fn by_program(
        &self,
        select: &Select,
        each: &mut super::Each<'_>,
        told: &Cell<bool>,
    ) -> Result<Flow> {
        let subqueries = self.subqueries(&select.subqueries);
        let limit = self.count(select.limit.as_ref(), &subqueries, "LIMIT")?;
        let offset = self.count(select.offset.as_ref(), &subqueries, "OFFSET")?;
        if limit == Some(0) {
            self.place.inspect(|place| place.end());
            return Ok(Flow::More);
        }
        self.ask_first(select, &subqueries)?;
        let (mut skip, mut left) = (offset.unwrap_or(0), limit.unwrap_or(u64::MAX));
        if let Some(place) = self.place {
            let before = place.begin();
            left = left.saturating_sub(before.saturating_sub(skip));
            skip = skip.saturating_sub(before);
            if left == 0 {
                place.end();
                return Ok(Flow::More);
            }
        }
        let mut stopped = Flow::More;
        let mut deliver = |row: &[Out<'_>]| -> Result<Flow> {
            if skip > 0 {
                skip -= 1;
                return Ok(Flow::More);
            }
            told.set(true);
            if each(row)? == Flow::Enough {
                stopped = Flow::Enough;
                return Ok(Flow::Enough);
            }
            left -= 1;
            Ok(if left == 0 { Flow::Enough } else { Flow::More })
        };
        let mut seen = DistinctRows::default();
        let mut distinct = |row: &[Out<'_>]| -> Result<bool> {
            Ok(!select.distinct || self.number(&mut seen, row)?.1)
        };
        if select.order.is_empty() || select.ordered {
            self.with_keys(select, || {
                let last = Last::default();
                self.body(&select.body, &[], &last, &subqueries, &mut |row, _| {
                    if self.place.is_some_and(|place| !place.gives()) {
                        return Ok(Flow::More);
                    }
                    if distinct(row)? && self.lock_rows(select, &self.keys_here())? {
                        return deliver(row).inspect_err(|_| {
                            if let Some(place) = self.place {
                                place.takes_back();
                            }
                        });
                    }
                    Ok(Flow::More)
                })
            })?;
            if let Some(place) = self.place.filter(|_| stopped == Flow::More) {
                place.end();
            }
            return Ok(stopped);
        }
        let mut kept: Vec<Kept> = Vec::new();
        let last = Last::of(select);
        self.with_keys(select, || {
            let (body, order) = (&select.body, &select.order);
            self.body(body, order, &last, &subqueries, &mut |row, sort| {
                if distinct(row)? {
                    let row: Vec<Value> = row.iter().map(|out| out.as_ref().to_value()).collect();
                    self.keep_row(&row)?;
                    self.keep_row(&sort)?;
                    let keys = self.keys_here();
                    kept.push(Kept { sort, row, keys });
                }
                Ok(Flow::More)
            })
        })?;
        kept.sort_by(|a, b| compare_keys(&select.order, &a.sort, &b.sort));
        for Kept { sort, row, keys } in kept {
            // Behind the sort and before the limit, as in PostgreSQL: what is not returned is not locked.
            if !self.lock_rows(select, &keys)? {
                continue;
            }
            let mut row: Vec<Out<'_>> = row.iter().map(|value| Out::Lent(value.as_ref())).collect();
            last.compute(self, &sort[select.order.len()..], &mut row)?;
            if deliver(&row)? == Flow::Enough {
                break;
            }
        }
        Ok(stopped)
    }

    /// Asks conditions that read no row, and subqueries, before there is a row: PostgreSQL does, whether it finds one or not.
    fn ask_first(&self, select: &Select, subqueries: &[Subresult]) -> Result<()> {
        let Body::From { sources, .. } = &select.body else {
            return Ok(());
        };
        if subqueries.is_empty() {
            return Ok(());
        }
        for condition in sources.iter().flat_map(|source| &source.filter) {
            if condition.asks_a_query() && !condition.is_volatile() {
                let mut reads = false;
                columns_read(condition, &select.subqueries, &mut |_, _| reads = true);
                if !reads {
                    let told = condition.eval(&self.frame(&[], &[], subqueries))?;
                    if !matches!(told.as_ref(), ValueRef::Bool(true)) {
                        // No row comes as far as the next one.
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs `work`, which reads the tables of a query, and has the keys of their rows noted if the query locks rows.
    fn with_keys(&self, select: &Select, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let noted = (!select.locks.is_empty()).then(Vec::new);
        let outer = self.keys.replace(noted);
        let done = work();
        self.keys.replace(outer);
        done
    }

    /// Keys of the rows that the query stands at; none if it locks no rows.
    fn keys_here(&self) -> Vec<Vec<u8>> {
        self.keys.borrow().clone().unwrap_or_default()
    }

    /// Takes the locks of a row of the result; false if it is not returned. `keys` are those of its tables' rows.
    fn lock_rows(&self, select: &Select, keys: &[Vec<u8>]) -> Result<bool> {
        self.lock_keys(select, |number| {
            keys.get(select.locks[number].source).map(Vec::as_slice)
        })
    }

    /// The same; `key` is that of the row which a lock, by its number, is for.
    pub(crate) fn lock_keys<'k>(
        &self,
        select: &Select,
        key: impl Fn(usize) -> Option<&'k [u8]>,
    ) -> Result<bool> {
        for (number, lock) in select.locks.iter().enumerate() {
            let Some(key) = key(number) else {
                continue;
            };
            if !self.lock_row(&lock.shape, key, lock)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Rows of a body with their sort keys, and behind these what is kept for `last`.
    fn body(
        &self,
        body: &Body,
        order: &[SortKey],
        last: &Last,
        subqueries: &[Subresult],
        each: &mut dyn FnMut(&[Out<'_>], Vec<Value>) -> Result<Flow>,
    ) -> Result<()> {
        match body {
            Body::Values(rows) => {
                let frame = self.frame(&[], &[], subqueries);
                for row in rows {
                    let mut out = Vec::with_capacity(row.len());
                    for expr in row {
                        out.push(expr.eval(&frame)?);
                    }
                    let keys = output_keys(order, &out);
                    if each(&out, keys)? == Flow::Enough {
                        break;
                    }
                }
                Ok(())
            }
            Body::Set {
                operator,
                all,
                left,
                right,
            } => self.set(*operator, *all, left, right, &mut |row| {
                let keys = output_keys(order, row);
                each(row, keys)
            }),
            Body::From {
                sources,
                grouping,
                output,
                ..
            } => {
                // Subqueries in FROM are run once.
                let keeps = sources.iter().any(|source| source.kind.is_kept());
                let kept = if keeps { sources.as_slice() } else { &[] };
                let mut inner = Vec::with_capacity(kept.len());
                for (level, source) in kept.iter().enumerate() {
                    if let SourceKind::Recursive(recursive) = &source.kind
                        && (level > 0 || source.lookup.is_some())
                    {
                        inner.push(self.recursive_rows(recursive)?);
                        continue;
                    }
                    if let SourceKind::Work { number, .. } = &source.kind {
                        inner.push(self.work(*number)?);
                        continue;
                    }
                    if let SourceKind::System(definition) = &source.kind {
                        inner.push(self.system_rows(definition)?);
                        continue;
                    }
                    inner.push(match &source.kind {
                        SourceKind::Query(query) => self.kept(query)?,
                        _ => KeptRows::new(Vec::new()),
                    });
                }
                let mut finish = |rows: &[RowRef<'_>], slots: &[Value]| -> Result<Flow> {
                    let frame = self.frame(rows, slots, subqueries);
                    let mut out: SmallVec<[Out<'_>; FEW_COLUMNS]> = SmallVec::new();
                    for (at, expr) in output.iter().enumerate() {
                        out.push(match last.has(at) {
                            true => Out::NULL,
                            false => expr.eval(&frame)?,
                        });
                    }
                    let mut keys = Vec::with_capacity(order.len());
                    for key in order {
                        keys.push(match &key.expr {
                            SortBy::Output(at) => out[*at].as_ref().to_value(),
                            SortBy::Expr(expr) => expr.eval(&frame)?.into_value(),
                        });
                    }
                    last.keep(&frame, &mut keys)?;
                    each(&out, keys)
                };
                let tables = Tables {
                    sources,
                    inner: &inner,
                    subqueries,
                };
                match grouping {
                    None => {
                        self.join(tables, &[], &mut |rows| finish(rows, &[]))?;
                    }
                    Some(grouping) => self.group(grouping, tables, &mut finish)?,
                }
                Ok(())
            }
        }
    }

    fn set(
        &self,
        operator: SetOperator,
        all: bool,
        left: &Select,
        right: &Select,
        each: &mut super::Each<'_>,
    ) -> Result<()> {
        if operator == SetOperator::Union {
            let mut seen = DistinctRows::default();
            let mut both = |row: &[Out<'_>]| -> Result<Flow> {
                if !all && !self.number(&mut seen, row)?.1 {
                    return Ok(Flow::More);
                }
                each(row)
            };
            if self.select(left, &mut both)? == Flow::More {
                self.select(right, &mut both)?;
            }
            return Ok(());
        }
        let mut known = DistinctRows::default();
        let mut counts: Vec<usize> = Vec::new();
        self.select(right, &mut |row| {
            let (number, new) = self.number(&mut known, row)?;
            if new {
                counts.push(0);
            }
            counts[number] += 1;
            Ok(Flow::More)
        })?;
        let mut seen = DistinctRows::default();
        self.select(left, &mut |row| {
            let values: Vec<ValueRef<'_>> = row.iter().map(Out::as_ref).collect();
            let number = known.find(&values);
            let count = number.map(|number| &mut counts[number]);
            let wanted = match (operator, count) {
                (SetOperator::Intersect, None) => false,
                (SetOperator::Intersect, Some(count)) => {
                    let there = *count > 0;
                    if all && there {
                        *count -= 1;
                    }
                    there
                }
                (_, None) => true,
                (_, Some(count)) => {
                    let there = *count > 0;
                    if all && there {
                        *count -= 1;
                    }
                    !there
                }
            };
            if wanted && (all || self.number(&mut seen, row)?.1) {
                return each(row);
            }
            Ok(Flow::More)
        })?;
        Ok(())
    }

    /// The number of a row among distinct ones, and whether it is new.
    pub(super) fn number(&self, rows: &mut DistinctRows, row: &[Out<'_>]) -> Result<(usize, bool)> {
        let values: Vec<ValueRef<'_>> = row.iter().map(Out::as_ref).collect();
        self.number_of(rows, &values)
    }

    /// The same of values.
    pub(super) fn number_of(
        &self,
        rows: &mut DistinctRows,
        values: &[ValueRef<'_>],
    ) -> Result<(usize, bool)> {
        if let Some(number) = rows.find(values) {
            return Ok((number, false));
        }
        let row: Vec<Value> = values.iter().map(|value| value.to_value()).collect();
        self.keep_row(&row)?;
        Ok((rows.add(row), true))
    }
}

fn output_keys(order: &[SortKey], row: &[Out<'_>]) -> Vec<Value> {
    let keys = order.iter().map(|key| match &key.expr {
        SortBy::Output(at) => row[*at].as_ref().to_value(),
        SortBy::Expr(_) => Value::Null,
    });
    keys.collect()
}

pub(super) fn compare_keys(order: &[SortKey], a: &[Value], b: &[Value]) -> Ordering {
    for ((key, a), b) in order.iter().zip(a).zip(b) {
        let (a, b) = (a.as_ref(), b.as_ref());
        let found = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if key.descending => compare(b, a),
            (false, false) => compare(a, b),
        };
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}
