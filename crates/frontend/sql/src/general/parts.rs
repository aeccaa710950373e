//! Large tables, read in parts: each part in a thread of its own, all of one snapshot.
//!
//! A table is cut at separators of its tree into more ranges than there are parts; each part has every so manieth of them, so that parts take
//! about as long whatever is in them. Rows of a part come in the order of their keys, those of several parts in none.
//!
//! Concurrency: readers are followers of the statement's transaction (`vellum::SharedSnapshot`), which waits for them. They evaluate
//! conditions away from the session, as operators do, but ask it nothing: the session waits for them when the statement ends.

use super::function::Alone;
use super::host::SourceRows;
use super::shape::kind_of;
use super::sieve::Sieve;
use super::standing::{LeftOpen, Stood, StoodAt};
use super::translate::{Level, Translation, built};
use crate::error::{Result, SqlError};
use crate::exec::{Flow, TableScan};
use crate::expr::{Expr, Frame, RowRef};
use crate::plan::Access;
use crate::rows::Shape;
use std::collections::VecDeque;
use std::sync::Arc;
use vellum::{Database, Follower, SharedSnapshot, Transaction};
use vellum_base::maps::HashMap;
use vellum_query::{Batch, Expected, Failure, Kind, Line, Part, Reader, Relation, Tables, Term};
use vellum_row::{FixedPlace, KeyRange, Type};

/// Rows from which on a table is read in parts: a thread costs as much as some thousand of them.
const ROWS_MIN: f64 = 50_000.0;
/// Ranges for each part, about.
const RANGES: usize = 16;
/// Rows between two looks whether the statement is over.
const STEPS: u32 = 256;

/// A table that is read in parts.
#[derive(Debug)]
pub(super) struct Parted {
    pub shape: Arc<Shape>,
    /// In the order of the keys.
    pub ranges: Vec<KeyRange>,
    /// Conditions of the table alone; none asks ([`Expr::asks`]).
    pub sieve: Sieve,
    pub alone: Alone,
}

impl Translation<'_, '_, '_> {
    /// The ranges in which a table is read by this path, if it is large; `rows` are about those that the path finds.
    pub(super) fn ranges(
        &self,
        shape: &Shape,
        access: &Access,
        rows: f64,
    ) -> Result<Option<Vec<KeyRange>>> {
        let table = shape.table();
        let apart = access
            .index
            .is_some_and(|index| table.indexes[index].storage.is_some());
        let parts = self.run.queries.parts();
        if self.in_order || apart || access.any.is_some() || rows < ROWS_MIN || parts < 2 {
            return Ok(None);
        }
        let transaction = self.run.transaction;
        let storage = table.storage.table(transaction)?;
        let mut found = transaction.separators(storage, parts * RANGES)?;
        let every = found.len().div_ceil(parts * RANGES).max(1);
        let mut number = 0;
        found.retain(|_| {
            number += 1;
            number % every == 0
        });
        let mut ranges = Vec::new();
        for mut range in self.run.key_ranges(shape, access)? {
            for key in &found {
                let inside = *key > range.start && range.end.as_ref().is_none_or(|end| key < end);
                if inside {
                    ranges.push(KeyRange {
                        start: std::mem::replace(&mut range.start, key.clone()),
                        end: Some(key.clone()),
                    });
                }
            }
            ranges.push(range);
        }
        Ok((ranges.len() > 1).then_some(ranges))
    }
}

impl<'t> Translation<'t, '_, '_> {
    /// The rows of a large table, which is read in these ranges. What can be looked at where a row stands is looked at there; of the other conditions those that operators
    /// have for whole columns are theirs. None may ask.
    pub(super) fn parted(
        &mut self,
        shape: &'t Arc<Shape>,
        ranges: Vec<KeyRange>,
        conditions: Vec<Expr>,
        expected: Option<Expected>,
        keyed: bool,
    ) -> Result<Relation> {
        let columns = shape.table().schema.columns();
        let mut kinds: Vec<Kind> = columns.map(kind_of).collect();
        if keyed {
            kinds.push(Type::Bytea.into());
        }
        let place = self.sources.scans.len();
        let rows = Arc::new(Parted {
            shape: shape.clone(),
            ranges,
            sieve: Sieve::default(),
            alone: Alone(self.away()),
        });
        let name = shape.relation.name.to_string();
        let parts = self.run.queries.parts();
        let relation = self.scan(SourceRows::Parted(rows), name, kinds, expected, parts)?;
        self.levels.push(Level {
            tables: vec![relation.columns().to_vec()],
            ..Level::default()
        });
        let schema = &shape.table().schema;
        let away = self.away();
        let (sieve, whole) = Sieve::new(schema, &away.params, conditions, |condition| {
            !self.is_columnar(condition)
        });
        let whole: Vec<&Expr> = whole.iter().collect();
        let terms = self.all_of(&whole, &[]);
        self.levels.pop();
        if let Some(SourceRows::Parted(rows)) = self.sources.scans.get_mut(place)
            && let Some(rows) = Arc::get_mut(rows)
        {
            rows.sieve = sieve;
        }
        let terms = terms?;
        match terms.is_empty() {
            true => Ok(relation),
            false => built(relation.filter(Term::all(terms))),
        }
    }
}

/// An open scan of a part.
struct Open<'s> {
    source: usize,
    columns: Vec<(usize, Option<FixedPlace>)>,
    left: usize,
    scan: TableScan<'s>,
}

/// Reads parts for a transaction: a follower, or the statement's own.
pub(super) struct PartTables<'s> {
    transaction: &'s Transaction,
    sources: &'s [Option<Arc<Parted>>],
    open: HashMap<u64, Open<'s>>,
    /// Is called again and again while rows are read: fails when the statement is to end, and has enough when it stands still.
    step: Box<dyn Fn() -> Result<Flow> + 's>,
}

impl<'s> PartTables<'s> {
    pub fn new(
        transaction: &'s Transaction,
        sources: &'s [Option<Arc<Parted>>],
        step: Box<dyn Fn() -> Result<Flow> + 's>,
    ) -> Self {
        Self {
            transaction,
            sources,
            open: HashMap::default(),
            step,
        }
    }

    fn parted(&self, source: usize) -> Result<&'s Arc<Parted>> {
        let found = self.sources.get(source).and_then(Option::as_ref);
        found.ok_or_else(|| SqlError::internal("a part of a table that has none"))
    }

    /// Reads these columns of so many rows in these ranges.
    ///
    /// # Errors
    /// Storage errors.
    pub fn open_in(
        &mut self,
        scan: u64,
        source: usize,
        ranges: VecDeque<KeyRange>,
        (columns, left): (Vec<(usize, Option<FixedPlace>)>, usize),
    ) -> Result<()> {
        let parted = self.parted(source)?;
        let storage = parted.shape.table().storage.table(self.transaction)?;
        let open = Open {
            source,
            columns,
            left,
            scan: TableScan::of_ranges(self.transaction, storage, ranges),
        };
        self.open.insert(scan, open);
        Ok(())
    }

    /// Where its scans stand; it has none open then.
    pub fn leave(&mut self) -> HashMap<u64, Stood> {
        let stood = |(scan, open): (u64, Open<'_>)| {
            let stood = Stood {
                source: open.source,
                columns: open.columns,
                left: open.left,
                at: StoodAt::Part(open.scan.left()),
            };
            (scan, stood)
        };
        self.open.drain().map(stood).collect()
    }

    fn fill_from(
        parted: &Parted,
        open: &mut Open<'_>,
        batch: &mut Batch,
        step: &dyn Fn() -> Result<Flow>,
    ) -> Result<()> {
        let schema = &parted.shape.table().schema;
        let alone = &parted.alone;
        let Open {
            columns,
            left,
            scan,
            ..
        } = open;
        if *left == 0 || batch.is_full() {
            return Ok(());
        }
        let mut steps = 0;
        let flow = scan.each(|key, bytes| {
            steps += 1;
            // Behind this row, if it has enough: where it stands is behind the last one that it was handed.
            let enough = steps % STEPS == 0 && step()? == Flow::Enough;
            let row = schema.view(bytes)?;
            if !parted.sieve.is_empty() {
                let frame = Frame {
                    params: &alone.0.params,
                    slots: &[],
                    subqueries: &[],
                    rows: &[RowRef::Stored(row)],
                    env: alone,
                    held: None,
                    outer: None,
                    queries: None,
                };
                if !parted.sieve.passes(row, &frame)? {
                    return Ok(Flow::enough_if(enough));
                }
            }
            let pushed = batch.push_stored(row, columns, key);
            if pushed.map_err(super::carried)? {
                *left -= 1;
            }
            Ok(Flow::enough_if(enough || *left == 0 || batch.is_full()))
        })?;
        if flow == Flow::More {
            *left = 0;
        }
        Ok(())
    }
}

impl Tables for PartTables<'_> {
    fn open(
        &mut self,
        scan: u64,
        source: usize,
        part: Part,
        columns: &[usize],
        limit: Option<usize>,
    ) -> std::result::Result<(), Failure> {
        let parted = self.parted(source)?;
        let ranges = parted.ranges.iter().skip(part.number).step_by(part.of);
        let columns = placed(&parted.shape, columns);
        let left = limit.unwrap_or(usize::MAX);
        Ok(self.open_in(scan, source, ranges.cloned().collect(), (columns, left))?)
    }

    fn fill(&mut self, scan: u64, batch: &mut Batch) -> std::result::Result<(), Failure> {
        let open = self.open.get_mut(&scan).ok_or("a scan that is not open")?;
        let parted = self.sources.get(open.source).and_then(Option::as_ref);
        let parted = parted.ok_or("a scan of nothing")?;
        Ok(Self::fill_from(parted, open, batch, &*self.step)?)
    }

    fn close(&mut self, scan: u64) {
        self.open.remove(&scan);
    }
}

/// Columns with their places in rows of the schema as it is now. Behind the last stands the key.
pub(super) fn placed(shape: &Shape, columns: &[usize]) -> Vec<(usize, Option<FixedPlace>)> {
    let schema = &shape.table().schema;
    let place = |column: usize| {
        let known = column < schema.len();
        known.then(|| schema.fixed_place(column)).flatten()
    };
    let columns = columns.iter();
    columns.map(|column| (*column, place(*column))).collect()
}

/// A follower in a thread of its own.
pub(super) struct PartReader<'s> {
    follower: Follower<'s>,
    sources: &'s [Option<Arc<Parted>>],
    left: LeftOpen,
}

impl Reader for PartReader<'_> {
    fn read(&mut self, serve: &mut dyn FnMut(&mut dyn Tables)) {
        let line = self.sources.iter().flatten().next();
        let line = line.map(|parted| parted.alone.0.line.clone());
        let step = move || match line.as_ref().is_some_and(Line::is_over) {
            true => Err(SqlError::internal("the statement has ended")),
            false => Ok(Flow::enough_if(line.as_ref().is_some_and(Line::stands))),
        };
        let mut tables = PartTables::new(&self.follower, self.sources, Box::new(step));
        serve(&mut tables);
        self.left.lock().extend(tables.leave());
    }
}

/// Who reads the parts, as many as there are slots for; without any the statement's own thread does. They leave in `left` what they have open when they end.
pub(super) fn readers<'s>(
    database: &Database,
    shared: Option<&'s SharedSnapshot<'_>>,
    sources: &'s [Option<Arc<Parted>>],
    parts: usize,
    left: &LeftOpen,
) -> Result<Vec<Box<dyn Reader + 's>>> {
    let mut readers: Vec<Box<dyn Reader + 's>> = Vec::new();
    if let Some(shared) = shared {
        while readers.len() < parts
            && let Some(follower) = database.follow(shared)?
        {
            readers.push(Box::new(PartReader {
                follower,
                sources,
                left: left.clone(),
            }));
        }
    }
    Ok(readers)
}
