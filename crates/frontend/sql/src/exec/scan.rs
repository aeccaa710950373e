//! Reading tables: nested loops over access paths.

use super::SetRows;
use super::system::KeptRows;
use super::{Flow, Run};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, RowRef, Subresult};
use crate::plan::{Access, Join, Several, Source, SourceKind};
use crate::rows::{KeyShape, Shape, primary_key_of};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;
use vellum::Transaction;
use vellum_row::{KeyRange, Type, Value, ValueRef};

/// Tables whose rows are at hand together without an allocation.
const FEW_TABLES: usize = 3;

/// What takes a row of a scan: its key and its bytes.
pub(super) type OnRow<'e> = dyn FnMut(&[u8], &[u8]) -> Result<Flow> + 'e;
/// What takes the rows of all tables of a query together.
pub(super) type OnRows<'e> = dyn FnMut(&[RowRef<'_>]) -> Result<Flow> + 'e;

/// The tables of a FROM, and what their rows are found with.
#[derive(Clone, Copy)]
pub(super) struct Tables<'t> {
    pub sources: &'t [Source],
    /// The rows of those that are kept, by their numbers, if there are any ([`SourceKind::is_kept`]).
    pub inner: &'t [Rc<KeptRows>],
    pub subqueries: &'t [Subresult<'t>],
}

impl Tables<'_> {
    /// The first so many of them.
    pub fn first(self, count: usize) -> Self {
        Self {
            sources: &self.sources[..count],
            ..self
        }
    }
}

/// The number behind the last table of a join that source number `level` begins.
pub(super) fn behind_join(source: &Source, level: usize) -> usize {
    level + 1 + usize::from(source.nested)
}

impl Run<'_, '_> {
    /// Rows of the tables behind those that are in `rows`.
    pub(super) fn join(
        &self,
        tables: Tables<'_>,
        rows: &[RowRef<'_>],
        each: &mut OnRows<'_>,
    ) -> Result<Flow> {
        let level = rows.len();
        let Some(source) = tables.sources.get(level) else {
            return each(rows);
        };
        if source.begins_late {
            return self.join_late(tables, rows, each);
        }
        let mut matched = false;
        let on_row = |row: RowRef<'_>| -> Result<Flow> {
            self.step()?;
            let mut next: SmallVec<[RowRef<'_>; FEW_TABLES]> = SmallVec::from_slice(rows);
            next.push(row);
            if source.join == Join::Left {
                if !self.holds(&source.on, &next, tables)? {
                    return Ok(Flow::More);
                }
                if source.nested > 0 {
                    // What is nested is done with when its own filters are: then the whole matches, and its rows are rows of this join.
                    let nested = tables.first(behind_join(source, level));
                    return self.join(nested, &next, &mut |rows| {
                        matched = true;
                        self.behind(tables, level, rows, each)
                    });
                }
                matched = true;
            }
            self.behind(tables, level, &next, each)
        };
        let flow = self.read(tables, rows, on_row)?;
        self.without_partner(tables, rows, (flow, matched), each)
    }

    /// Whether rows fulfil all of these conditions.
    #[inline]
    pub(super) fn holds(
        &self,
        conditions: &[Expr],
        rows: &[RowRef<'_>],
        tables: Tables<'_>,
    ) -> Result<bool> {
        let frame = self.frame(rows, &[], tables.subqueries);
        for condition in conditions {
            if !condition.is_true(&frame)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What comes of a LEFT JOIN when all rows of its right side, which begins behind `rows`, have been looked at, and whether one matched: without one they stand
    /// alone.
    #[inline]
    pub(super) fn without_partner(
        &self,
        tables: Tables<'_>,
        rows: &[RowRef<'_>],
        (flow, matched): (Flow, bool),
        each: &mut OnRows<'_>,
    ) -> Result<Flow> {
        let level = rows.len();
        let source = &tables.sources[level];
        if flow == Flow::Enough || source.join != Join::Left || matched {
            return Ok(flow);
        }
        let mut next = rows.to_vec();
        next.resize(behind_join(source, level), RowRef::Missing);
        self.behind(tables, level, &next, each)
    }

    /// Rows of the source behind those before, which `rows` has.
    #[inline]
    pub(super) fn read(
        &self,
        tables: Tables<'_>,
        rows: &[RowRef<'_>],
        mut on_row: impl FnMut(RowRef<'_>) -> Result<Flow>,
    ) -> Result<Flow> {
        let Tables {
            sources,
            inner,
            subqueries,
        } = tables;
        let level = rows.len();
        let source = &sources[level];
        Ok(match &source.kind {
            SourceKind::Nothing => on_row(RowRef::Values(&[]))?,
            SourceKind::Table { shape, access } => {
                let schema = &shape.table().schema;
                self.scan(shape, access, rows, subqueries, &mut |key, bytes| {
                    if let Some(keys) = &mut *self.keys.borrow_mut() {
                        if keys.len() < sources.len() {
                            keys.resize_with(sources.len(), Vec::new);
                        }
                        key.clone_into(&mut keys[level]);
                    }
                    on_row(RowRef::Stored(schema.view(bytes)?))
                })?
            }
            // Row by row as they are made: who has enough of them stops it, and it may have no end.
            SourceKind::Recursive(recursive) if level == 0 && source.lookup.is_none() => {
                self.recursion(recursive, &mut |row| on_row(RowRef::Values(row)))?
            }
            SourceKind::Query(_)
            | SourceKind::System(_)
            | SourceKind::Recursive(_)
            | SourceKind::Work { .. } => {
                let kept = &inner[level];
                let mut flow = Flow::More;
                match &source.lookup {
                    Some((column, value)) => {
                        let value = value.eval(&self.frame(rows, &[], subqueries))?;
                        for number in kept.with(usize::from(*column), value.as_ref()) {
                            flow = on_row(RowRef::Values(&kept.rows[number]))?;
                            if flow == Flow::Enough {
                                break;
                            }
                        }
                    }
                    None => {
                        for row in kept.rows.iter() {
                            flow = on_row(RowRef::Values(row))?;
                            if flow == Flow::Enough {
                                break;
                            }
                        }
                    }
                }
                flow
            }
            SourceKind::Lateral(select) => {
                let frame = self.frame(rows, &[], subqueries);
                self.within(&frame).select(select, &mut |row| {
                    let row: Vec<Value> = row.iter().map(|out| out.as_ref().to_value()).collect();
                    on_row(RowRef::Values(&row))
                })?
            }
            SourceKind::Function { calls, ordinality } => {
                let frame = self.frame(rows, &[], subqueries);
                let keep = |row: &[Value]| self.keep_made(row);
                let mut made = SetRows::new(calls, *ordinality, &frame, &keep)?;
                let mut flow = Flow::More;
                while let Some(row) = made.next(self.env)? {
                    flow = on_row(RowRef::Values(&row))?;
                    if flow == Flow::Enough {
                        break;
                    }
                }
                self.give_back(made.bytes());
                flow
            }
            SourceKind::Series { from, to, step, ty } => {
                self.series([from, to, step], *ty, subqueries, &mut on_row)?
            }
        })
    }

    /// Goes on behind the join of source number `level`, for rows of the sources up to its last one.
    pub(super) fn behind(
        &self,
        tables: Tables<'_>,
        level: usize,
        rows: &[RowRef<'_>],
        each: &mut OnRows<'_>,
    ) -> Result<Flow> {
        match self.holds(&tables.sources[level].filter, rows, tables)? {
            true => self.join(tables, rows, each),
            false => Ok(Flow::More),
        }
    }

    fn series(
        &self,
        bounds: [&Expr; 3],
        ty: Type,
        subqueries: &[Subresult],
        each: &mut dyn FnMut(RowRef<'_>) -> Result<Flow>,
    ) -> Result<Flow> {
        let frame = self.frame(&[], &[], subqueries);
        let mut numbers = [0i64; 3];
        for (number, bound) in numbers.iter_mut().zip(bounds) {
            match bound.eval(&frame)?.as_ref().as_i64() {
                Some(value) => *number = value,
                None => return Ok(Flow::More),
            }
        }
        let [mut at, to, step] = numbers;
        if step == 0 {
            return Err(no_step());
        }
        while if step > 0 { at <= to } else { at >= to } {
            let value = match ty {
                Type::Int4 => Value::Int4(i32::try_from(at).unwrap_or(i32::MAX)),
                _ => Value::Int8(at),
            };
            if each(RowRef::Values(&[value]))? == Flow::Enough {
                return Ok(Flow::Enough);
            }
            match at.checked_add(step) {
                Some(next) => at = next,
                None => break,
            }
        }
        Ok(Flow::More)
    }

    /// Rows that a path finds: keys and bytes.
    pub(super) fn scan(
        &self,
        shape: &Shape,
        access: &Access,
        rows: &[RowRef<'_>],
        subqueries: &[Subresult],
        each: &mut OnRow<'_>,
    ) -> Result<Flow> {
        if let Some(place) = self.place.filter(|_| rows.is_empty()) {
            return self.scan_from(place, (shape, access), each);
        }
        let table = shape.table();
        let storage = table.storage.table(self.transaction)?;
        let Some(number) = access.index else {
            let mut cursor = self.transaction.cursor(storage, ..)?;
            return drain(&mut cursor, access.reverse, each);
        };
        if access.any.is_none() {
            let Some(prefix) = self.prefix(shape, number, access, rows, subqueries)? else {
                return Ok(Flow::More);
            };
            let bounds = frame_bounds(self, access, rows, subqueries)?;
            return self.range(shape, access, prefix, &bounds, each);
        }
        let open = (Bound::Unbounded, Bound::Unbounded);
        for key in self.prefixes(shape, number, access, rows, subqueries)? {
            if self.range(shape, access, key, &open, each)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::More)
    }

    /// What the keys of a path begin with that takes one value of each column; none if no key fits.
    fn prefix(
        &self,
        shape: &Shape,
        number: usize,
        access: &Access,
        rows: &[RowRef<'_>],
        subqueries: &[Subresult],
    ) -> Result<Option<Vec<u8>>> {
        let frame = self.frame(rows, &[], subqueries);
        let codec = &shape.keys[number].codec;
        let mut prefix = Vec::with_capacity(32);
        let pinned = access.equal.len() - usize::from(access.any.is_some());
        for (column, expr) in access.equal[..pinned].iter().enumerate() {
            let value = expr.eval(&frame)?;
            let value = value.as_ref();
            if value.is_null() || !codec.encode_equal(column, value, &mut prefix)? {
                return Ok(None);
            }
        }
        Ok(Some(prefix))
    }

    /// The same of any path, in the order of the keys, each once.
    fn prefixes(
        &self,
        shape: &Shape,
        number: usize,
        access: &Access,
        rows: &[RowRef<'_>],
        subqueries: &[Subresult],
    ) -> Result<Vec<Vec<u8>>> {
        let Some(prefix) = self.prefix(shape, number, access, rows, subqueries)? else {
            return Ok(Vec::new());
        };
        let Some(any) = &access.any else {
            return Ok(vec![prefix]);
        };
        let frame = self.frame(rows, &[], subqueries);
        let codec = &shape.keys[number].codec;
        let pinned = access.equal.len() - 1;
        let mut points = Vec::new();
        let mut add = |value: ValueRef<'_>| -> Result<()> {
            let mut key = prefix.clone();
            if !value.is_null() && codec.encode_equal(pinned, value, &mut key)? {
                points.push(key);
            }
            Ok(())
        };
        match &**any {
            Several::List(list) => {
                for item in list {
                    add(item.eval(&frame)?.as_ref())?;
                }
            }
            Several::Array(array) => {
                if let ValueRef::Array(array) = array.eval(&frame)?.as_ref() {
                    for item in array.items() {
                        add(item.as_ref())?;
                    }
                }
            }
        }
        points.sort_unstable();
        points.dedup();
        debug_assert!(codec.columns().len() > pinned);
        Ok(points)
    }

    /// Rows of one range of an index: those that start with `prefix`, with the next column inside the bounds.
    fn range(
        &self,
        shape: &Shape,
        access: &Access,
        prefix: Vec<u8>,
        bounds: &(Bound<Value>, Bound<Value>),
        each: &mut OnRow<'_>,
    ) -> Result<Flow> {
        let Some(number) = access.index else {
            return Ok(Flow::More);
        };
        let table = shape.table();
        let index = &table.indexes[number];
        let keys = &shape.keys[number];
        let storage = table.storage.table(self.transaction)?;
        let whole = index.keeps_apart() && access.equal.len() == index.columns.len();
        if whole {
            return match &index.storage {
                None => self.point(storage, &prefix, each),
                Some(entries) => {
                    let entries = entries.table(self.transaction)?;
                    let found = self.transaction.get(entries, &prefix, <[u8]>::to_vec)?;
                    match found {
                        None => Ok(Flow::More),
                        Some(value) => self.point(storage, primary_key_of(&prefix, &value)?, each),
                    }
                }
            };
        }
        let found = key_range(keys, prefix, access.equal.len(), bounds)?;
        if found.is_empty() {
            return Ok(Flow::More);
        }
        let range = (Bound::Included(found.start.as_slice()), end_of(&found));
        match &index.storage {
            None => {
                let mut cursor = self.transaction.cursor(storage, range)?;
                drain(&mut cursor, access.reverse, each)
            }
            Some(entries) => {
                let entries = entries.table(self.transaction)?;
                let mut cursor = self.transaction.cursor(entries, range)?;
                drain(&mut cursor, access.reverse, &mut |key, value| {
                    self.point(storage, primary_key_of(key, value)?, each)
                })
            }
        }
    }

    pub(super) fn point(
        &self,
        storage: &vellum::Table,
        key: &[u8],
        each: &mut OnRow<'_>,
    ) -> Result<Flow> {
        let found = self
            .transaction
            .get(storage, key, |bytes| each(key, bytes))?;
        found.unwrap_or(Ok(Flow::More))
    }
}

/// `22023`.
#[cold]
pub(crate) fn no_step() -> SqlError {
    let text = "step size cannot equal zero";
    SqlError::new(crate::sqlstate::INVALID_PARAMETER_VALUE, text)
}

/// The rows of a table that a path finds, one after the other: the path compares with nothing but constants and parameters.
pub(crate) struct TableScan<'s> {
    transaction: &'s Transaction,
    storage: &'s vellum::Table,
    /// Entries of an index with rows of its own.
    entries: Option<&'s vellum::Table>,
    ranges: VecDeque<KeyRange>,
    /// The range that it is in.
    within: Option<Within<'s>>,
}

/// A range of keys that is being read.
struct Within<'s> {
    cursor: vellum::Cursor<'s>,
    end: Option<Vec<u8>>,
    /// Where it stands: what it begins with, or behind the key of the row that was handed over last.
    start: Vec<u8>,
}

impl<'r> Run<'r, '_> {
    /// Begins to read a table.
    ///
    /// # Errors
    /// Storage errors; those of what the path compares with.
    pub(crate) fn table_scan<'s>(
        &'s self,
        shape: &'s Shape,
        access: &Access,
    ) -> Result<TableScan<'s>>
    where
        'r: 's,
    {
        let ranges = self.key_ranges(shape, access)?.into();
        self.table_scan_in(shape, access, ranges)
    }

    /// The same in these ranges of the path.
    ///
    /// # Errors
    /// Storage errors.
    pub(crate) fn table_scan_in<'s>(
        &'s self,
        shape: &'s Shape,
        access: &Access,
        ranges: VecDeque<KeyRange>,
    ) -> Result<TableScan<'s>>
    where
        'r: 's,
    {
        let table = shape.table();
        let storage = table.storage.table(self.transaction)?;
        let mut scan = TableScan::of_ranges(self.transaction, storage, ranges);
        if let Some(number) = access.index
            && let Some(entries) = &table.indexes[number].storage
        {
            scan.entries = Some(entries.table(self.transaction)?);
        }
        Ok(scan)
    }

    /// Where the keys lie that a path finds, which compares with nothing but constants and parameters.
    ///
    /// # Errors
    /// Those of what it compares with.
    pub(crate) fn key_ranges(&self, shape: &Shape, access: &Access) -> Result<Vec<KeyRange>> {
        let Some(number) = access.index else {
            return Ok(vec![KeyRange::of_prefix(Vec::new())]);
        };
        let prefixes = self.prefixes(shape, number, access, &[], &[])?;
        let bounds = frame_bounds(self, access, &[], &[])?;
        let mut ranges = Vec::with_capacity(prefixes.len());
        for prefix in prefixes {
            let column = access.equal.len();
            let range = key_range(&shape.keys[number], prefix, column, &bounds)?;
            if !range.is_empty() {
                ranges.push(range);
            }
        }
        Ok(ranges)
    }
}

impl<'s> TableScan<'s> {
    /// The rows with keys in these ranges.
    pub fn of_ranges(
        transaction: &'s Transaction,
        storage: &'s vellum::Table,
        ranges: VecDeque<KeyRange>,
    ) -> Self {
        Self {
            transaction,
            storage,
            entries: None,
            ranges,
            within: None,
        }
    }

    /// What has not been read of its ranges.
    pub fn left(self) -> VecDeque<KeyRange> {
        let mut left = self.ranges;
        if let Some(Within { start, end, .. }) = self.within {
            left.push_front(KeyRange { start, end });
        }
        left
    }
}

impl TableScan<'_> {
    /// Calls `work` with the keys and the bytes of the next rows until it has enough: the next call goes on behind that row. `Flow::More` if
    /// there are no more rows.
    ///
    /// # Errors
    /// Storage errors; what `work` returns.
    pub fn each(&mut self, mut work: impl FnMut(&[u8], &[u8]) -> Result<Flow>) -> Result<Flow> {
        loop {
            let Some(within) = &mut self.within else {
                let Some(range) = self.ranges.pop_front() else {
                    return Ok(Flow::More);
                };
                let bounds = (Bound::Included(range.start.as_slice()), end_of(&range));
                let table = self.entries.unwrap_or(self.storage);
                let cursor = self.transaction.cursor(table, bounds)?;
                let KeyRange { start, end } = range;
                self.within = Some(Within { cursor, end, start });
                continue;
            };
            let (transaction, storage) = (self.transaction, self.storage);
            let by_index = self.entries.is_some();
            let Within { cursor, start, .. } = within;
            let ended = cursor.try_for_each(|key, value| {
                let done = if by_index {
                    row_of_entry(transaction, storage, key, value, &mut work)
                } else {
                    work(key, value)
                };
                match done {
                    Ok(Flow::More) => ControlFlow::Continue(()),
                    done => {
                        key.clone_into(start);
                        start.push(0);
                        ControlFlow::Break(done)
                    }
                }
            })?;
            match ended {
                ControlFlow::Break(done) => return done,
                ControlFlow::Continue(()) => self.within = None,
            }
        }
    }
}

/// Calls `work` with the row that an entry of an index leads to.
fn row_of_entry(
    transaction: &Transaction,
    storage: &vellum::Table,
    key: &[u8],
    value: &[u8],
    work: &mut impl FnMut(&[u8], &[u8]) -> Result<Flow>,
) -> Result<Flow> {
    let key = primary_key_of(key, value)?;
    let found = transaction.get(storage, key, |row| work(key, row))?;
    found.unwrap_or(Ok(Flow::More))
}

pub(super) fn end_of(range: &KeyRange) -> Bound<&[u8]> {
    let end = range.end.as_deref();
    end.map_or(Bound::Unbounded, Bound::Excluded)
}

/// The keys that start with `prefix`, with column number `column` inside the bounds.
fn key_range(
    keys: &KeyShape,
    prefix: Vec<u8>,
    column: usize,
    bounds: &(Bound<Value>, Bound<Value>),
) -> Result<KeyRange> {
    Ok(match bounds {
        (Bound::Unbounded, Bound::Unbounded) => KeyRange::of_prefix(prefix),
        (lower, upper) => {
            let (lower, upper) = (lower.as_ref(), upper.as_ref());
            let (lower, upper) = (lower.map(Value::as_ref), upper.map(Value::as_ref));
            keys.codec.range_behind(&prefix, column, lower, upper)?
        }
    })
}

/// Values of a path's bounds.
fn frame_bounds(
    run: &Run<'_, '_>,
    access: &Access,
    rows: &[RowRef<'_>],
    subqueries: &[Subresult],
) -> Result<(Bound<Value>, Bound<Value>)> {
    let frame = run.frame(rows, &[], subqueries);
    let value = |bound: &Option<(Expr, bool)>| -> Result<Bound<Value>> {
        let Some((expr, inside)) = bound else {
            return Ok(Bound::Unbounded);
        };
        let value = expr.eval(&frame)?.into_value();
        Ok(if *inside {
            Bound::Included(value)
        } else {
            Bound::Excluded(value)
        })
    };
    Ok((value(&access.bounds.lower)?, value(&access.bounds.upper)?))
}

pub(super) fn drain(
    cursor: &mut vellum::Cursor<'_>,
    reverse: bool,
    each: &mut OnRow<'_>,
) -> Result<Flow> {
    let each = |key: &[u8], bytes: &[u8]| match each(key, bytes) {
        Ok(Flow::More) => ControlFlow::Continue(()),
        other => ControlFlow::Break(other),
    };
    let ended = if reverse {
        cursor.try_for_each_back(each)?
    } else {
        cursor.try_for_each(each)?
    };
    ended.break_value().unwrap_or(Ok(Flow::More))
}
