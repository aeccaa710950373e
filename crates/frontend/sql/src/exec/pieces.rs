//! Queries that are run in pieces: as many rows as are asked for, and others when more are.
//!
//! A program pushes its rows and has no place where it could stand still. But in one snapshot the rows of its tables come in the same order each time. So a query whose rows come as they
//! are read is stopped by who takes them, and begun again at the row of its first table that it stood at; what that row has given before is passed over. A piece costs a search in that
//! table's tree, and the rows of the other tables that belong to that one row.
//!
//! Invariants:
//! - PC1 All pieces read one snapshot, and of the own writes of the transaction the same; the ranges of the first path are those of the first piece, whatever settings have become.
//! - PC2 What a row has given is passed over with that row: none of the next one is, though it gives less than it did.
//! - PC3 The place is the one of the result that was handed out last. A piece that fails leaves those before it handed out, and the next one fails for the same row.
//!
//! Not here: which snapshot that is, and who asks (`session/pieces`); queries that operators run, which stand still by themselves (`general/standing`).

use super::scan::{OnRow, drain, end_of};
use super::{Flow, Run};
use crate::error::Result;
use crate::plan::{Access, Body, General, Select, SourceKind};
use crate::rows::{Shape, primary_key_of};
use std::cell::RefCell;
use std::ops::Bound;
use vellum_row::KeyRange;

/// Where a query stands.
#[derive(Debug, Default)]
pub(crate) struct Place {
    at: RefCell<At>,
}

#[derive(Debug, Default)]
struct At {
    /// Of the path to the rows of the first table; `None` before the first piece.
    ranges: Option<Vec<KeyRange>>,
    /// Number of the range that it is in.
    range: usize,
    /// The key, in what that range is of, of the row that it is at; empty before the first.
    key: Vec<u8>,
    /// Results that this row has given.
    given: u64,
    /// Of these, those that it is yet to give once more, to be passed over.
    again: u64,
    /// Results of all rows.
    results: u64,
    ended: bool,
}

impl Place {
    /// Whether there are no more rows.
    pub fn has_ended(&self) -> bool {
        self.at.borrow().ended
    }

    /// Results that the row it stands at has given, which the next piece passes over.
    pub fn repeats(&self) -> u64 {
        let at = self.at.borrow();
        at.given + at.again
    }

    /// A piece begins. How many results there were before.
    pub(super) fn begin(&self) -> u64 {
        let mut at = self.at.borrow_mut();
        // A piece that has failed may not have come as far as the one before.
        at.again += at.given;
        at.given = 0;
        at.results
    }

    /// There are no more.
    pub(super) fn end(&self) {
        self.at.borrow_mut().ended = true;
    }

    /// The row that it stands at gives a result; whether that is a new one.
    pub(super) fn gives(&self) -> bool {
        let mut at = self.at.borrow_mut();
        at.given += 1;
        if at.again > 0 {
            at.again -= 1;
            return false;
        }
        at.results += 1;
        true
    }

    /// A result that was not handed out is none.
    pub(super) fn takes_back(&self) {
        let mut at = self.at.borrow_mut();
        at.given -= 1;
        at.results -= 1;
    }

    fn reaches(&self, range: usize, key: &[u8]) {
        let mut at = self.at.borrow_mut();
        if at.range != range || at.key != key {
            // The row before may have given less than it did: its condition reads a setting, which has become another.
            at.again = 0;
            at.range = range;
            key.clone_into(&mut at.key);
        }
        at.given = 0;
    }
}

impl Select {
    /// Whether its rows come as those of its first table are read, the same each time: then it can be run in pieces.
    pub(crate) fn has_pieces(&self) -> bool {
        let Body::From {
            sources,
            grouping: None,
            windows,
            ..
        } = &self.body
        else {
            return false;
        };
        let is_table = |kind: &SourceKind| matches!(kind, SourceKind::Table { .. });
        let mut sources = sources.iter().peekable();
        let in_order = self.order.is_empty() || self.ordered;
        let as_read = !self.distinct && self.distinct_on.is_empty() && !self.ties && in_order;
        sources.peek().is_some()
            && sources.all(|source| is_table(&source.kind) && !source.begins_late)
            && as_read
            && windows.is_empty()
            && self.subqueries.is_empty()
            && self.keyed.is_empty()
            && matches!(self.general, None | Some(General::LargeScan))
            && !self.correlated
            && !self.is_another_each_time()
    }

    /// Whether operators run it, and may stand still between its rows.
    pub(crate) fn may_stand(&self) -> bool {
        self.general.is_some() && self.locks.is_empty()
    }
}

impl Run<'_, '_> {
    /// Rows of the first table of a query from its place on.
    pub(super) fn scan_from(
        &self,
        place: &Place,
        (shape, access): (&Shape, &Access),
        each: &mut OnRow<'_>,
    ) -> Result<Flow> {
        let table = shape.table();
        let storage = table.storage.table(self.transaction)?;
        let index = access
            .index
            .and_then(|at| table.indexes[at].storage.as_ref());
        let entries = index
            .map(|index| index.table(self.transaction))
            .transpose()?;
        let known = place.at.borrow_mut().ranges.take();
        let ranges = match known {
            Some(ranges) => ranges,
            None => self.key_ranges(shape, access)?,
        };
        let (first, from) = {
            let at = place.at.borrow();
            (at.range, at.key.clone())
        };
        let mut flow = Ok(Flow::More);
        for (number, range) in ranges.iter().enumerate().skip(first) {
            let (mut start, mut end) = (Bound::Included(range.start.as_slice()), end_of(range));
            if number == first && !from.is_empty() {
                let bound = if access.reverse { &mut end } else { &mut start };
                *bound = Bound::Included(&from);
            }
            let mut cursor = self
                .transaction
                .cursor(entries.unwrap_or(storage), (start, end))?;
            flow = drain(&mut cursor, access.reverse, &mut |key, value| {
                place.reaches(number, key);
                match entries {
                    None => each(key, value),
                    Some(_) => self.point(storage, primary_key_of(key, value)?, each),
                }
            });
            if !matches!(flow, Ok(Flow::More)) {
                break;
            }
        }
        place.at.borrow_mut().ranges = Some(ranges);
        flow
    }
}
