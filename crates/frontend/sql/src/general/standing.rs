//! Queries that stand still: whoever takes their rows has enough of them and asks for others later, with the same snapshot.
//!
//! What is kept meanwhile is what operators have gathered, and where each scan stands: the keys that it has not read. Nothing of the engine is held, no cursor, no page; the snapshot is who
//! asks' to keep, as long as [`Stands::reads`] says so. The next time the session's thread reads what is left, alone: readers beside it end when the query stands still.
//!
//! Not here: queries that ask a subquery for each row of theirs, which are run to their end; which snapshot is read, and who asks (`session/pieces`).

use super::host::SourceRows;
use super::parts::Parted;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_query::Running;
use vellum_row::{FixedPlace, KeyRange};
use vellum_sync::Mutex;

/// Where the operators of a query stand that is run as its rows are asked for.
#[derive(Debug, Default)]
pub(crate) struct Stands {
    standing: RefCell<Option<Box<Standing>>>,
    ended: Cell<bool>,
}

/// A query that stands still.
#[derive(Debug)]
pub(super) struct Standing {
    pub running: Running,
    pub scans: Vec<SourceRows>,
    pub parted: Vec<Option<Arc<Parted>>>,
    /// By their numbers.
    pub open: HashMap<u64, Stood>,
}

/// Where a scan stands.
#[derive(Debug)]
pub(super) struct Stood {
    pub source: usize,
    /// The columns that it reads.
    pub columns: Vec<(usize, Option<FixedPlace>)>,
    /// Rows that are wanted of it.
    pub left: usize,
    pub at: StoodAt,
}

/// The same, by what is read.
#[derive(Debug)]
pub(super) enum StoodAt {
    /// What is not read of a table, by its path.
    Table(VecDeque<KeyRange>),
    /// What is not read of a part of a table.
    Part(VecDeque<KeyRange>),
    Kept(usize),
    Series(Option<i64>),
}

/// Where readers leave what they have open: each is done with its own when the query stands still.
pub(super) type LeftOpen = Arc<Mutex<HashMap<u64, Stood>>>;

impl Stands {
    /// Whether there are no more rows, or it has failed.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Whether tables may still be read for it.
    pub fn reads(&self) -> bool {
        let standing = self.standing.borrow();
        let reads_no_more = |standing: &Standing| standing.running.reads_no_more();
        !self.ended.get() && !standing.as_deref().is_some_and(reads_no_more)
    }

    /// There are no more rows, or it is run to its end before it returns.
    pub(crate) fn end(&self) {
        self.ended.set(true);
    }

    pub(super) fn take(&self) -> Option<Box<Standing>> {
        self.standing.borrow_mut().take()
    }

    /// It stands still.
    pub(super) fn keep(&self, standing: Box<Standing>) {
        self.ended.set(false);
        *self.standing.borrow_mut() = Some(standing);
    }
}
