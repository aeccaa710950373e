//! RIGHT and FULL JOIN in a program: both sides are found and kept, then each row of one is compared with each of the other.
//!
//! Programs read the tables of a query in turn, and such a join is known to have no row for one of its right side only behind all of its left side. Operators run it as a rule;
//! a query in which a table is read again for each row before it (LATERAL) is a program's.
//!
//! Invariants:
//! - L1 What stands right of such a join reads nothing of its left side: it is found with that side missing.

use super::scan::{OnRows, Tables, behind_join};
use super::{Flow, Run, bytes_of};
use crate::error::Result;
use crate::expr::RowRef;
use crate::plan::{Join, Source, SourceKind};
use vellum_row::Value;

/// The rows that some tables have together.
struct Side {
    rows: Vec<Beside>,
    /// What they take in memory.
    bytes: usize,
}

/// Rows of tables beside each other.
struct Beside {
    /// Of each table; `None`: missing.
    tables: Vec<Option<Vec<Value>>>,
    /// Their keys, if they are noted.
    keys: Vec<Vec<u8>>,
}

impl Run<'_, '_> {
    /// [`Run::join`] from a table on that begins the left side of such a join.
    pub(super) fn join_late(
        &self,
        tables: Tables<'_>,
        rows: &[RowRef<'_>],
        each: &mut OnRows<'_>,
    ) -> Result<Flow> {
        let level = rows.len();
        let source = &tables.sources[level];
        if source.nested == 0 {
            // An item of FROM, whose own conditions stand behind it.
            return self.chain(tables, rows, each);
        }
        let mut matched = false;
        let own = tables.first(behind_join(source, level));
        let flow = self.chain(own, rows, &mut |all| {
            if source.join == Join::Left {
                if !self.holds(&source.on, all, tables)? {
                    return Ok(Flow::More);
                }
                matched = true;
            }
            self.behind(tables, level, all, each)
        })?;
        self.without_partner(tables, rows, (flow, matched), each)
    }

    /// Rows of all `tables`, for those before that are in `rows`, of which the next begins a chain of joins: what joins that chain to those before is not looked at.
    fn chain(
        &self,
        tables: Tables<'_>,
        rows: &[RowRef<'_>],
        each: &mut OnRows<'_>,
    ) -> Result<Flow> {
        let level = rows.len();
        let sources = tables.sources;
        let of_chain = |at: &usize| {
            let source = &sources[*at];
            source.is_late() && usize::from(source.item) == level
        };
        let Some(late) = (level + 1..sources.len()).rev().find(of_chain) else {
            return self.read(tables, rows, |row| {
                self.step()?;
                let mut next = rows.to_vec();
                next.push(row);
                self.join(tables, &next, each)
            });
        };
        let end = behind_join(&sources[late], late);
        let left = self.side(tables.first(late), rows)?;
        let mut missing = rows.to_vec();
        missing.resize(late, RowRef::Missing);
        // L1.
        let right = self.side(tables.first(end), &missing)?;
        let bytes = left.bytes + right.bytes;
        let flow = self.matched(
            (tables, late),
            (&left, late - level),
            (&right, end - late),
            rows,
            each,
        );
        self.give_back(bytes);
        flow
    }

    /// The rows of both sides, each with how many tables it has, that the late join of a source, by its number, has beside each other: goes on behind it with them.
    fn matched(
        &self,
        (tables, late): (Tables<'_>, usize),
        (left, left_width): (&Side, usize),
        (right, right_width): (&Side, usize),
        rows: &[RowRef<'_>],
        each: &mut OnRows<'_>,
    ) -> Result<Flow> {
        let join = &tables.sources[late];
        let mut found = vec![false; right.rows.len()];
        let level = rows.len();
        for own in &left.rows {
            let mut all = rows.to_vec();
            own.show(&mut all);
            let mut matched = false;
            for (other, found) in right.rows.iter().zip(&mut found) {
                self.step()?;
                all.truncate(level + left_width);
                other.show(&mut all);
                if !self.holds(&join.on, &all, tables)? {
                    continue;
                }
                (matched, *found) = (true, true);
                self.note_keys(own, level);
                self.note_keys(other, level + left_width);
                if self.behind(tables, late, &all, each)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
            }
            if !matched && join.join == Join::Full {
                all.truncate(level + left_width);
                all.resize(level + left_width + right_width, RowRef::Missing);
                self.note_keys(own, level);
                if self.behind(tables, late, &all, each)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
            }
        }
        let alone = right.rows.iter().zip(found).filter(|(_, found)| !found);
        for (other, _) in alone {
            let mut all = rows.to_vec();
            all.resize(level + left_width, RowRef::Missing);
            other.show(&mut all);
            self.note_keys(other, level + left_width);
            if self.behind(tables, late, &all, each)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::More)
    }

    /// The rows of the sources behind those that `rows` has.
    ///
    /// # Errors
    /// The query's; `53200`.
    fn side(&self, tables: Tables<'_>, rows: &[RowRef<'_>]) -> Result<Side> {
        let level = rows.len();
        let mut side = Side {
            rows: Vec::new(),
            bytes: 0,
        };
        self.chain(tables, rows, &mut |all| {
            let mut kept = Vec::with_capacity(all.len() - level);
            for (row, source) in all.iter().zip(tables.sources).skip(level) {
                let values = values_of(row, source)?;
                if let Some(values) = &values {
                    self.keep_row(values)?;
                    side.bytes += values.iter().map(bytes_of).sum::<usize>();
                }
                kept.push(values);
            }
            let noted = self.keys.borrow();
            let keys = noted.as_ref().and_then(|keys| keys.get(level..));
            side.rows.push(Beside {
                tables: kept,
                keys: keys.map_or_else(Vec::new, <[_]>::to_vec),
            });
            Ok(Flow::More)
        })?;
        Ok(side)
    }

    /// Says again which rows these are, from table number `level` on, if keys are noted.
    fn note_keys(&self, rows: &Beside, level: usize) {
        if let Some(keys) = &mut *self.keys.borrow_mut() {
            let end = level + rows.tables.len();
            if keys.len() < end {
                keys.resize_with(end, Vec::new);
            }
            for (key, own) in keys[level..end].iter_mut().zip(&rows.keys) {
                key.clone_from(own);
            }
        }
    }
}

impl Beside {
    /// Adds its rows to others.
    fn show<'a>(&'a self, all: &mut Vec<RowRef<'a>>) {
        let tables = self.tables.iter().map(Option::as_deref);
        all.extend(tables.map(|row| row.map_or(RowRef::Missing, RowRef::Values)));
    }
}

/// A row of a source to be kept; `None`: missing.
fn values_of(row: &RowRef<'_>, source: &Source) -> Result<Option<Vec<Value>>> {
    Ok(match (row, &source.kind) {
        (RowRef::Missing, _) => None,
        (RowRef::Values(values), _) => Some(values.to_vec()),
        (RowRef::Lent(values), _) => Some(values.iter().map(|value| value.to_value()).collect()),
        (RowRef::Stored(row), SourceKind::Table { shape, .. }) => {
            let columns = 0..shape.table().schema.len();
            let values = columns.map(|at| Ok(row.get(at)?.to_value()));
            Some(values.collect::<Result<_>>()?)
        }
        (RowRef::Stored(_), _) => {
            let text = "a stored row of what is no table";
            return Err(crate::error::SqlError::internal(text));
        }
    })
}
