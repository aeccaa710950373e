//! The session's side of a query: rows of tables, answers, and where the rows of the result go.

use super::function::{AskedFor, AskedOf, Question, Test};
use super::parts::{PartTables, Parted, placed};
use super::sieve::Sieve;
use super::standing::{Stood, StoodAt};
use crate::error::{Result, SqlError};
use crate::exec::{Each, Flow, Run, TableScan};
use crate::expr::{Out, Returned, RowRef, RowTest};
use crate::plan::Access;
use crate::rows::Shape;
use std::any::Any;
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_query::{Batch, Failure, Host, Part, Tables};
use vellum_row::{FixedPlace, Type, Value, ValueRef};

/// What is scanned.
#[derive(Debug)]
pub(super) enum SourceRows {
    Table {
        shape: Arc<Shape>,
        access: Access,
        /// Conditions of the table alone.
        sieve: Sieve,
    },
    /// A large table, in parts.
    Parted(Arc<Parted>),
    Kept(Arc<Vec<Vec<Value>>>),
    Series {
        from: i64,
        to: i64,
        step: i64,
        ty: Type,
    },
}

/// The sources of a query, and what is asked for each row.
#[derive(Debug, Default)]
pub(super) struct Sources<'t> {
    pub scans: Vec<SourceRows>,
    pub asked: Vec<AskedFor<'t>>,
    /// Whether a subquery that is none of EXISTS became a join, and may fail (G8).
    pub joins_unsure: bool,
}

/// An open scan.
struct Open<'s> {
    source: usize,
    columns: Vec<(usize, Option<FixedPlace>)>,
    left: usize,
    at: Position<'s>,
}

enum Position<'s> {
    Table(Box<TableScan<'s>>),
    Kept(usize),
    Series(Option<i64>),
}

/// Serves the operators of one query.
pub(super) struct StatementHost<'h, 'r, 'w, 'e> {
    run: &'h Run<'r, 'w>,
    scans: &'h [SourceRows],
    asked: &'h [AskedFor<'h>],
    open: HashMap<u64, Open<'h>>,
    /// Parts that no reader reads.
    parts: PartTables<'h>,
    each: &'h mut Each<'e>,
    flow: Flow,
    /// Enough is not enough: it cannot stand still.
    to_its_end: bool,
}

impl Sources<'_> {
    /// Those that are read in parts, by their numbers.
    pub fn parted(&self) -> Vec<Option<Arc<Parted>>> {
        let scans = self.scans.iter();
        let parted = scans.map(|rows| match rows {
            SourceRows::Parted(parted) => Some(parted.clone()),
            _ => None,
        });
        parted.collect()
    }
}

impl<'h, 'r, 'w, 'e> StatementHost<'h, 'r, 'w, 'e> {
    pub fn new(
        run: &'h Run<'r, 'w>,
        (scans, asked): (&'h [SourceRows], &'h [AskedFor<'h>]),
        parted: &'h [Option<Arc<Parted>>],
        each: &'h mut Each<'e>,
    ) -> Self {
        Self {
            run,
            scans,
            asked,
            open: HashMap::default(),
            parts: PartTables::new(
                run.transaction,
                parted,
                Box::new(|| run.step().map(|()| Flow::More)),
            ),
            each,
            flow: Flow::More,
            to_its_end: false,
        }
    }

    /// From now on it tells all rows, whether they are wanted or not.
    pub fn goes_to_its_end(&mut self) {
        self.to_its_end = true;
    }

    /// Goes on with scans where they stood.
    ///
    /// # Errors
    /// Storage errors.
    pub fn open_again(&mut self, stood: HashMap<u64, Stood>) -> Result<()> {
        let (run, scans) = (self.run, self.scans);
        for (scan, stood) in stood {
            let at = match (stood.at, scans.get(stood.source)) {
                (StoodAt::Part(ranges), _) => {
                    let columns = (stood.columns, stood.left);
                    self.parts.open_in(scan, stood.source, ranges, columns)?;
                    continue;
                }
                (StoodAt::Table(ranges), Some(SourceRows::Table { shape, access, .. })) => {
                    let scan = run.table_scan_in(shape, access, ranges)?;
                    Position::Table(Box::new(scan))
                }
                (StoodAt::Kept(at), _) => Position::Kept(at),
                (StoodAt::Series(next), _) => Position::Series(next),
                (StoodAt::Table(_), _) => return Err(SqlError::internal("a scan of nothing")),
            };
            let open = Open {
                source: stood.source,
                columns: stood.columns,
                left: stood.left,
                at,
            };
            self.open.insert(scan, open);
        }
        Ok(())
    }

    /// Where its scans stand; it has none open then.
    pub fn leave(&mut self) -> HashMap<u64, Stood> {
        let mut left = self.parts.leave();
        for (scan, open) in self.open.drain() {
            let at = match open.at {
                Position::Table(scan) => StoodAt::Table(scan.left()),
                Position::Kept(at) => StoodAt::Kept(at),
                Position::Series(next) => StoodAt::Series(next),
            };
            let stood = Stood {
                source: open.source,
                columns: open.columns,
                left: open.left,
                at,
            };
            left.insert(scan, stood);
        }
        left
    }

    /// Whether whoever takes the rows wants more.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Where a scan begins; none if it is of a part.
    fn begin(&self, source: usize) -> Result<Option<Position<'h>>> {
        let scan = self.scans.get(source);
        Ok(
            match scan.ok_or_else(|| SqlError::internal("a scan of nothing"))? {
                SourceRows::Table { shape, access, .. } => {
                    let scan = self.run.table_scan(shape, access)?;
                    Some(Position::Table(Box::new(scan)))
                }
                SourceRows::Parted(_) => None,
                SourceRows::Kept(_) => Some(Position::Kept(0)),
                SourceRows::Series { from, .. } => Some(Position::Series(Some(*from))),
            },
        )
    }

    fn fill_from(&self, open: &mut Open<'h>, batch: &mut Batch) -> Result<()> {
        match (&mut open.at, &self.scans[open.source]) {
            (Position::Table(scan), SourceRows::Table { shape, sieve, .. }) => {
                let schema = &shape.table().schema;
                if open.left == 0 || batch.is_full() {
                    return Ok(());
                }
                let flow = scan.each(|key, bytes| {
                    self.run.step()?;
                    let row = schema.view(bytes)?;
                    let rows = [RowRef::Stored(row)];
                    let frame = self.run.frame(&rows, &[], &[]);
                    if !sieve.passes(row, &frame)? {
                        return Ok(Flow::More);
                    }
                    // Behind the last column stands the key.
                    let pushed = batch.push_stored(row, &open.columns, key);
                    if pushed.map_err(super::carried)? {
                        open.left -= 1;
                    }
                    Ok(Flow::enough_if(open.left == 0 || batch.is_full()))
                })?;
                if flow == Flow::More {
                    open.left = 0;
                }
            }
            (Position::Kept(at), SourceRows::Kept(kept)) => {
                while open.left > 0 && !batch.is_full() {
                    let Some(row) = kept.get(*at) else {
                        break;
                    };
                    let columns = open.columns.iter();
                    let values = columns.map(|(column, _)| row[*column].as_ref());
                    batch.push(values).map_err(super::told)?;
                    *at += 1;
                    open.left -= 1;
                }
            }
            (Position::Series(next), SourceRows::Series { to, step, ty, .. }) => {
                while let Some(number) = *next
                    && open.left > 0
                    && !batch.is_full()
                {
                    if if *step > 0 {
                        number > *to
                    } else {
                        number < *to
                    } {
                        *next = None;
                        break;
                    }
                    let value = match ty {
                        Type::Int4 => ValueRef::Int4(i32::try_from(number).unwrap_or(i32::MAX)),
                        _ => ValueRef::Int8(number),
                    };
                    batch
                        .push(open.columns.iter().map(|_| value))
                        .map_err(super::told)?;
                    *next = number.checked_add(*step);
                    open.left -= 1;
                }
            }
            _ => return Err(SqlError::internal("a scan of something else")),
        }
        Ok(())
    }

    /// The value of what is asked for, for a row of the query around it.
    fn subquery(&self, number: usize, row: &[Value]) -> Result<Value> {
        let asked = self.asked.get(number);
        let asked = asked.ok_or_else(|| SqlError::internal("a subquery of nothing"))?;
        let (read, rest) = row.split_at(asked.places.len());
        // What it does not read it does not look at.
        let made = asked.widths.iter().map(|width| vec![Value::Null; *width]);
        let mut made: Vec<Vec<Value>> = made.collect();
        for ((table, position), value) in asked.places.iter().zip(read) {
            let place = made.get_mut(usize::from(*table));
            let place = place.and_then(|table| table.get_mut(usize::from(*position)));
            *place.ok_or_else(|| SqlError::internal("a column of no table"))? = value.clone();
        }
        let rows: Vec<RowRef<'_>> = made.iter().map(|row| RowRef::Values(row)).collect();
        let (subquery, test) = match &asked.of {
            AskedOf::Subquery(subquery, test) => (*subquery, *test),
            AskedOf::Expression(expr, subqueries) => {
                return self.run.value_at(expr, subqueries, &rows);
            }
        };
        let frame = self.run.frame(&rows, &[], &[]);
        match (self.run.subquery_within(subquery, &frame)?, test) {
            (Returned::Value(value), Test::Value) => Ok(value),
            (Returned::Rows(set), test) => {
                let test = match test {
                    Test::Value => return Err(SqlError::internal("rows for a value")),
                    Test::Among { negated } => RowTest::among(negated),
                    Test::Rows(test) => test,
                };
                let row: Vec<ValueRef<'_>> = rest.iter().map(Value::as_ref).collect();
                Ok(set.test(&row, test).map_or(Value::Null, Value::Bool))
            }
            _ => Err(SqlError::internal("a list for a value")),
        }
    }
}

impl Tables for StatementHost<'_, '_, '_, '_> {
    fn open(
        &mut self,
        scan: u64,
        source: usize,
        part: Part,
        columns: &[usize],
        limit: Option<usize>,
    ) -> std::result::Result<(), Failure> {
        let Some(at) = self.begin(source)? else {
            return self.parts.open(scan, source, part, columns, limit);
        };
        let open = Open {
            source,
            columns: match self.scans.get(source) {
                Some(SourceRows::Table { shape, .. }) => placed(shape, columns),
                _ => columns.iter().map(|column| (*column, None)).collect(),
            },
            left: limit.unwrap_or(usize::MAX),
            at,
        };
        self.open.insert(scan, open);
        Ok(())
    }

    fn fill(&mut self, scan: u64, batch: &mut Batch) -> std::result::Result<(), Failure> {
        let Some(mut open) = self.open.remove(&scan) else {
            return self.parts.fill(scan, batch);
        };
        let filled = self.fill_from(&mut open, batch);
        self.open.insert(scan, open);
        Ok(filled?)
    }

    fn close(&mut self, scan: u64) {
        if self.open.remove(&scan).is_none() {
            self.parts.close(scan);
        }
    }
}

impl Host for StatementHost<'_, '_, '_, '_> {
    fn asked(&mut self, question: Box<dyn Any + Send>) {
        let Ok(question) = question.downcast::<Question>() else {
            return;
        };
        // Who asked may have ended meanwhile.
        match *question {
            Question::Call {
                function,
                arguments,
                answer,
            } => {
                let _ = answer.send(self.run.env.ask(function, &arguments));
            }
            Question::Subquery {
                number,
                row,
                answer,
            } => {
                let _ = answer.send(self.subquery(number, &row));
            }
        }
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> std::result::Result<vellum_query::Flow, Failure> {
        let row: Vec<Out<'_>> = row.iter().map(|value| Out::Lent(*value)).collect();
        self.flow = (self.each)(&row)?;
        if self.to_its_end {
            self.flow = Flow::More;
        }
        Ok(match self.flow {
            Flow::More => vellum_query::Flow::More,
            Flow::Enough => vellum_query::Flow::Enough,
        })
    }

    fn look(&mut self) -> std::result::Result<(), Failure> {
        Ok(self.run.waiting.borrow_mut().look_cancelled()?)
    }
}
