//! Window functions over frames that DataFusion has no bounds for: ranges whose ends are computed for each row, and frames that rows are left out of.
//!
//! Such a function is given all rows of a partition at once, in their order, with the keys of that order and, of ranges, with the values that lie a distance from each row's key: what
//! is a month before a day is no fixed count of days, so who makes the query says it.
//!
//! Invariants:
//! - FR1 Ends of ranges move forward from row to row, as keys do: each is looked for from that of the row before. A null is a key's value as any other, equal to nulls alone.
//!
//! What it costs: a frame that begins where that of the row before does is folded further; any other anew, as is each that rows are left out of.

use crate::aggregate::Fold;
use crate::batch::{ColumnReader, computed, readers};
use crate::engine::Line;
use crate::error::{Error, Failure, carried};
use crate::known::Known;
use crate::term::Term;
use crate::types::data_type;
use arrow::array::ArrayRef;
use arrow::datatypes::{Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, WindowUDFImpl};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use vellum_row::{Type, Value, ValueRef, compare};

/// An end of a frame.
#[derive(Clone, Debug)]
pub enum Edge {
    /// That of the partition.
    Unbounded,
    /// The row itself, or its equals.
    CurrentRow,
    /// Where keys are this far: a value of the type of the key, or null where that is null.
    Value(Term),
    /// So many rows, or groups of equals, behind the row; in front of it, if it is negative.
    Count(i64),
}

/// Rows of a frame that do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exclusion {
    /// All count.
    Nothing,
    /// The row itself does not.
    CurrentRow,
    /// Nor do its equals.
    Group,
    /// Its equals do not, but itself.
    Ties,
}

/// Which rows of a window count: those between two ends but what is left out.
#[derive(Clone, Debug)]
pub struct Framing {
    /// Whether the row itself and counts are of rows; of equals if not.
    pub of_rows: bool,
    /// Its first rows.
    pub start: Edge,
    /// Its last rows.
    pub end: Edge,
    /// Which of these do not count.
    pub exclusion: Exclusion,
    /// Tells whether the statement is over.
    pub line: Line,
}

/// What becomes of the rows of a frame.
#[derive(Clone, Debug)]
pub(crate) enum Framed {
    Fold(Arc<dyn Fold>),
    First,
    Last,
    /// The one of a number, which stands behind the argument.
    Nth,
}

/// How a function is computed whose arguments are: its own, a condition, the keys of the order, the values at both ends.
#[derive(Debug)]
pub(crate) struct Computed {
    pub framed: Framed,
    pub of_rows: bool,
    pub start: Side,
    pub end: Side,
    pub exclusion: Exclusion,
    /// Arguments of its own.
    pub own: usize,
    pub filtered: bool,
    /// Of each key, whether it descends, and whether nulls come first.
    pub keys: Vec<(bool, bool)>,
    pub line: Line,
}

/// An [`Edge`] whose value is an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Unbounded,
    CurrentRow,
    Value,
    Count(i64),
}

/// One as DataFusion calls it.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct FrameFunction(pub Known<Computed>);

impl WindowUDFImpl for FrameFunction {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn signature(&self) -> &Signature {
        &self.0.signature
    }

    fn partition_evaluator(
        &self,
        _: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator {
            computed: self.0.function.clone(),
            types: self.0.arguments.clone(),
            result: self.0.result,
        }))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let ty = data_type(self.0.result);
        Ok(Arc::new(Field::new(args.name(), ty, true)))
    }
}

#[derive(Debug)]
struct Evaluator {
    computed: Arc<Computed>,
    types: Vec<Type>,
    result: Type,
}

impl PartitionEvaluator for Evaluator {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let made = self.all(values, rows);
        made.map_err(carried)
    }
}

impl Evaluator {
    fn all(&self, values: &[ArrayRef], rows: usize) -> std::result::Result<ArrayRef, Failure> {
        let readers = readers(&self.types, values)?;
        let partition = Partition::new(&self.computed, &readers, rows)?;
        let mut frames = Frames {
            partition: &partition,
            start: 0,
            end: 0,
        };
        let mut rolled: Option<Rolled> = None;
        computed(self.result, rows, |row| {
            partition.look()?;
            let frame = frames.of(row)?;
            partition.value(row, frame, &mut rolled)
        })
    }
}

/// The rows of a partition.
struct Partition<'p> {
    computed: &'p Computed,
    own: &'p [ColumnReader<'p>],
    filter: Option<&'p ColumnReader<'p>>,
    keys: &'p [ColumnReader<'p>],
    start: Option<&'p ColumnReader<'p>>,
    end: Option<&'p ColumnReader<'p>>,
    rows: usize,
    /// Where groups of equals begin, and behind them how many rows there are; of each row the number of its group. Empty where no end is at equals.
    groups: Vec<usize>,
    group_of: Vec<usize>,
}

/// A fold that has come as far as a row.
struct Rolled {
    folding: Box<dyn crate::aggregate::Folding>,
    rows: Range<usize>,
}

impl<'p> Partition<'p> {
    fn new(
        computed: &'p Computed,
        readers: &'p [ColumnReader<'p>],
        rows: usize,
    ) -> std::result::Result<Self, Failure> {
        let (own, mut rest) = readers.split_at(computed.own);
        let mut taken = |take: bool| -> Option<&'p ColumnReader<'p>> {
            let (first, others) = rest.split_first().filter(|_| take)?;
            rest = others;
            Some(first)
        };
        let filter = taken(computed.filtered);
        let mut keys: Vec<&ColumnReader<'_>> = Vec::new();
        keys.extend((0..computed.keys.len()).filter_map(|_| taken(true)));
        let start = taken(computed.start == Side::Value);
        let end = taken(computed.end == Side::Value);
        let first = computed.own + usize::from(computed.filtered);
        let mut partition = Self {
            computed,
            own,
            filter,
            keys: &readers[first..first + keys.len()],
            start,
            end,
            rows,
            groups: Vec::new(),
            group_of: Vec::new(),
        };
        let mut sides = [computed.start, computed.end].into_iter();
        let by_equals = |side| matches!(side, Side::CurrentRow | Side::Count(_));
        let left_out = matches!(computed.exclusion, Exclusion::Group | Exclusion::Ties);
        if left_out || !computed.of_rows && sides.any(by_equals) {
            partition.find_groups()?;
        }
        Ok(partition)
    }

    fn look(&self) -> std::result::Result<(), Failure> {
        match self.computed.line.is_over() {
            true => Err(Box::new(Error::internal("the statement has ended"))),
            false => Ok(()),
        }
    }

    fn find_groups(&mut self) -> std::result::Result<(), Failure> {
        self.group_of.reserve(self.rows);
        for row in 0..self.rows {
            let new = match row.checked_sub(1) {
                None => true,
                Some(before) => !self.are_equal(before, row)?,
            };
            if new {
                self.groups.push(row);
            }
            self.group_of.push(self.groups.len() - 1);
        }
        self.groups.push(self.rows);
        Ok(())
    }

    fn are_equal(&self, a: usize, b: usize) -> std::result::Result<bool, Failure> {
        for key in self.keys {
            let (a, b) = (key.get(a)?, key.get(b)?);
            let equal = match (a.is_null(), b.is_null()) {
                (false, false) => compare(a, b).is_eq(),
                (a, b) => a && b,
            };
            if !equal {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The rows that are equal to one.
    fn equals(&self, row: usize) -> Range<usize> {
        let group = self.group_of[row];
        self.groups[group]..self.groups[group + 1]
    }

    /// Where a count of rows or groups from a row leads: the first row there, and the one behind the last. Beyond the ends of the partition there are none.
    fn counted(&self, row: usize, count: i64) -> Range<usize> {
        let (own, all) = match self.computed.of_rows {
            true => (row, self.rows),
            false => (self.group_of[row], self.groups.len().saturating_sub(1)),
        };
        let count = isize::try_from(count).unwrap_or(match count < 0 {
            true => isize::MIN,
            false => isize::MAX,
        });
        match own.checked_add_signed(count) {
            None if count < 0 => 0..0,
            Some(place) if place < all => match self.computed.of_rows {
                true => place..place + 1,
                false => self.groups[place]..self.groups[place + 1],
            },
            _ => self.rows..self.rows,
        }
    }

    /// The rows of a row's frame that count, in their order.
    fn parts(&self, row: usize, frame: Range<usize>) -> [Range<usize>; 3] {
        let none = frame.end..frame.end;
        let (out, kept) = match self.computed.exclusion {
            Exclusion::Nothing => return [frame, none.clone(), none],
            Exclusion::CurrentRow => (row..row + 1, none),
            Exclusion::Group => (self.equals(row), none),
            Exclusion::Ties => (self.equals(row), row..row + 1),
        };
        let within = |place: usize| place.clamp(frame.start, frame.end);
        let kept = within(kept.start)..within(kept.end);
        [
            frame.start..within(out.start),
            kept,
            within(out.end)..frame.end,
        ]
    }

    /// How a row's key stands to a value, in the order of the rows.
    fn order(&self, row: usize, value: ValueRef<'_>) -> std::result::Result<Ordering, Failure> {
        let (descends, nulls_first) = self.computed.keys.first().copied().unwrap_or_default();
        let key = match self.keys.first() {
            Some(key) => key.get(row)?,
            None => return Err(Box::new(Error::internal("a range without a key"))),
        };
        let null = match nulls_first {
            true => Ordering::Less,
            false => Ordering::Greater,
        };
        Ok(match (key.is_null(), value.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => null,
            (false, true) => null.reverse(),
            (false, false) if descends => compare(value, key),
            (false, false) => compare(key, value),
        })
    }

    /// Whether a row counts, where it is in the frame.
    fn counts(&self, row: usize) -> std::result::Result<bool, Failure> {
        match self.filter {
            None => Ok(true),
            Some(filter) => Ok(filter.get(row)?.as_bool() == Some(true)),
        }
    }

    /// The function's value for a row with this frame.
    fn value(
        &self,
        row: usize,
        frame: Range<usize>,
        rolled: &mut Option<Rolled>,
    ) -> std::result::Result<Value, Failure> {
        let fold = match &self.computed.framed {
            Framed::Fold(fold) => fold,
            other => return self.one(other, row, frame),
        };
        if self.computed.exclusion != Exclusion::Nothing {
            let mut folding = fold.start();
            for part in self.parts(row, frame) {
                self.fold(&mut *folding, part)?;
            }
            return folding.finish();
        }
        let goes_on =
            |rolled: &Rolled| rolled.rows.start == frame.start && rolled.rows.end <= frame.end;
        let mut state = match rolled.take().filter(goes_on) {
            Some(rolled) => rolled,
            None => Rolled {
                folding: fold.start(),
                rows: frame.start..frame.start,
            },
        };
        self.fold(&mut *state.folding, state.rows.end..frame.end)?;
        state.rows.end = frame.end;
        let value = state.folding.finish()?;
        *rolled = Some(state);
        Ok(value)
    }

    fn fold(
        &self,
        folding: &mut dyn crate::aggregate::Folding,
        rows: Range<usize>,
    ) -> std::result::Result<(), Failure> {
        let mut values = Vec::with_capacity(self.own.len());
        for (count, at) in rows.enumerate() {
            if count % 1024 == 1023 {
                self.look()?;
            }
            if !self.counts(at)? {
                continue;
            }
            values.clear();
            for reader in self.own {
                values.push(reader.get(at)?);
            }
            folding.add(&values)?;
        }
        Ok(())
    }

    /// One of the rows of a frame.
    fn one(
        &self,
        framed: &Framed,
        row: usize,
        frame: Range<usize>,
    ) -> std::result::Result<Value, Failure> {
        let mut parts = self.parts(row, frame).into_iter();
        let found = match framed {
            Framed::First | Framed::Fold(_) => parts.find_map(|mut part| part.next()),
            Framed::Last => parts.rev().find_map(|part| part.last()),
            Framed::Nth => {
                let number = self.own.get(1).map(|number| number.get(row)).transpose()?;
                let number = number.and_then(|number| number.as_i64());
                let mut before = number.and_then(|number| usize::try_from(number - 1).ok());
                parts.find_map(|part| {
                    let behind = before?;
                    before = Some(behind.saturating_sub(part.len()));
                    (behind < part.len()).then(|| part.start + behind)
                })
            }
        };
        match (found, self.own.first()) {
            (Some(at), Some(argument)) => Ok(argument.get(at)?.to_value()),
            _ => Ok(Value::Null),
        }
    }
}

/// Frames of rows, one after the other.
struct Frames<'p> {
    partition: &'p Partition<'p>,
    /// Where the ends of the last range were.
    start: usize,
    end: usize,
}

impl Frames<'_> {
    fn of(&mut self, row: usize) -> std::result::Result<Range<usize>, Failure> {
        let partition = self.partition;
        let (rows, computed) = (partition.rows, partition.computed);
        let start = match computed.start {
            Side::Unbounded => 0,
            Side::CurrentRow if computed.of_rows => row,
            Side::CurrentRow => partition.equals(row).start,
            Side::Count(count) => partition.counted(row, count).start,
            Side::Value => {
                let value = end_of(partition.start, row)?;
                while self.start < rows && partition.order(self.start, value)?.is_lt() {
                    self.start += 1;
                }
                self.start
            }
        };
        // The first row behind it.
        let end = match computed.end {
            Side::Unbounded => rows,
            Side::CurrentRow if computed.of_rows => row + 1,
            Side::CurrentRow => partition.equals(row).end,
            Side::Count(count) => partition.counted(row, count).end,
            Side::Value => {
                let value = end_of(partition.end, row)?;
                while self.end < rows && partition.order(self.end, value)?.is_le() {
                    self.end += 1;
                }
                self.end
            }
        };
        Ok(start..end.max(start))
    }
}

fn end_of<'a>(
    values: Option<&ColumnReader<'a>>,
    row: usize,
) -> std::result::Result<ValueRef<'a>, Failure> {
    match values {
        Some(values) => Ok(values.get(row)?),
        None => Err(Box::new(Error::internal("a range without an end"))),
    }
}
