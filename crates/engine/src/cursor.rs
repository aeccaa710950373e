//! Cursors of the embedded API: over a table's rows, or over an index's entries.

use crate::error::{Error, Result};
use crate::schema::{Index, Table};
use crate::transaction::Transaction;
use std::convert::Infallible;
use std::ops::{Bound, ControlFlow, RangeBounds};
use vellum_base::TableId;
use vellum_btree::Tree;
use vellum_txn::{Operation, SnapshotHandle, VersionStamp};
use vellum_version::{Scan, VersionStore, View};

/// A range of rows in key order, both ways. It stands on the row that it returned last; a new one stands before its
/// first row for [`Cursor::next`] and behind its last for [`Cursor::prev`].
///
/// It sees its transaction's writes from before it was opened, and a fixed snapshot; it survives splits, deletes
/// through the transaction, and rollbacks to savepoints (of which it no longer returns what was reverted).
#[derive(Debug)]
pub struct Cursor<'t> {
    transaction: &'t Transaction,
    table: Table,
    /// The index whose entries it returns; `None` for the table's rows.
    index: Option<TableId>,
    /// `None` once the table (or index) it stood in was rolled back.
    tree: Option<Tree>,
    scan: Scan,
    /// Keeps what it sees from being collected (read committed: longer than its statement).
    snapshot: SnapshotHandle<'t>,
    command: u32,
    rollbacks: u64,
    large: Vec<u8>,
}

impl Transaction {
    /// A cursor over the rows of a table whose keys lie in `range`, e.g. `..`, or
    /// `(Bound::Included(key), Bound::Unbounded)`.
    ///
    /// # Errors
    /// `NoSuchTable`, `TransactionOver`.
    pub fn cursor<'k>(
        &self,
        table: &Table,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<Cursor<'_>> {
        let range = owned(&range);
        self.read_operation(|| {
            let operation = self.operation()?;
            self.inner().statement();
            let command = self.inner().commands_seen();
            let tree = self.shape_in(&operation, table)?.tree.clone();
            Ok(self.open_cursor(table, None, tree, command, range))
        })
    }

    /// A cursor over the entries of an index whose keys lie in `range`: it returns entry keys (the columns,
    /// followed by the primary key unless the index is unique) and primary keys.
    ///
    /// Columns of fixed length stand in an entry as they are. A column to the end of the key or value is escaped where anything follows
    /// it (see [`KeyPart::end`](crate::KeyPart::end)): its bounds are made by [`KeyDescription::search`](crate::KeyDescription::search), and
    /// the range of all entries with the same columns by [`KeyDescription::range`](crate::KeyDescription::range).
    ///
    /// # Errors
    /// `NoSuchTable`, `TransactionOver`.
    pub fn index_cursor<'k>(
        &self,
        index: &Index,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<Cursor<'_>> {
        let range = owned(&range);
        self.read_operation(|| {
            let operation = self.operation()?;
            self.inner().statement();
            let command = self.inner().commands_seen();
            let shape = self.shape_in(&operation, &index.table)?;
            let found = shape.indexes.iter().find(|other| other.id == index.id);
            let missing = || crate::Error::NoSuchTable {
                name: index.name.to_string(),
            };
            let tree = found.ok_or_else(missing)?.tree.clone();
            let id = Some(index.id);
            Ok(self.open_cursor(&index.table, id, tree, command, range))
        })
    }

    /// Counts the rows of a range.
    ///
    /// # Errors
    /// As [`Transaction::cursor`], and storage errors.
    pub fn count<'k>(&self, table: &Table, range: impl RangeBounds<&'k [u8]>) -> Result<u64> {
        let mut cursor = self.cursor(table, range)?;
        cursor.scan.want_many();
        let mut count = 0;
        while cursor.advance()? {
            count += 1 + cursor.count_at_hand()?;
        }
        Ok(count)
    }

    fn open_cursor(
        &self,
        table: &Table,
        index: Option<TableId>,
        tree: Tree,
        command: u32,
        range: vellum_version::KeyRange,
    ) -> Cursor<'_> {
        Cursor {
            transaction: self,
            table: table.clone(),
            index,
            scan: Scan::new(tree.context().page_size(), range),
            tree: Some(tree),
            snapshot: self.inner().open_snapshot(),
            command,
            rollbacks: self.rollback_count(),
            large: Vec::new(),
        }
    }
}

fn owned<'k>(range: &impl RangeBounds<&'k [u8]>) -> vellum_version::KeyRange {
    let own = |bound: Bound<&&[u8]>| match bound {
        Bound::Included(key) => Bound::Included(key.to_vec()),
        Bound::Excluded(key) => Bound::Excluded(key.to_vec()),
        Bound::Unbounded => Bound::Unbounded,
    };
    (own(range.start_bound()), own(range.end_bound()))
}

impl<'t> Cursor<'t> {
    fn forget_after_rollback(&mut self) {
        let rollbacks = self.transaction.rollback_count();
        if self.rollbacks != rollbacks {
            self.rollbacks = rollbacks;
            self.scan.invalidate();
            // What was rolled back may have made the tree (a load, an index, the table): its pages are gone.
            self.tree = self.resolve_tree();
        }
    }

    /// The tree that holds what the cursor sees; `None` if there is none any more.
    fn resolve_tree(&self) -> Option<Tree> {
        let (inner, snapshot) = (self.transaction.inner(), self.snapshot.snapshot());
        let sees = |version: &VersionStamp| inner.visible(version, snapshot, self.command);
        let shape = self
            .table
            .base
            .resolve(sees)
            .filter(|shape| !shape.dropped)?;
        match self.index {
            None => Some(shape.tree.clone()),
            Some(id) => {
                let index = shape.indexes.iter().find(|index| index.id == id)?;
                Some(index.tree.clone())
            }
        }
    }

    /// The next row in key order: key and value. `None` at the end of the range.
    ///
    /// Blocks only for pages that must be read from disk.
    ///
    /// # Errors
    /// `TransactionOver` after a conflict; `MemoryLimit` where the system has no memory for a large value; storage errors. The
    /// cursor stands before the row that it could not return: the same call tries it again, the opposite one returns the row that
    /// was returned last.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "rows are lent, which an iterator cannot"
    )]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.step(Step::Next)
    }

    /// The next row against key order. `None` at the start of the range.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    #[inline]
    pub fn prev(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.step(Step::Prev)
    }

    #[inline]
    fn step(&mut self, step: Step) -> Result<Option<(&[u8], &[u8])>> {
        if self.step_at_hand(step)? {
            let row = self.scan.current();
            return Ok(Some((row.key, row.body)));
        }
        self.step_further(step)
    }

    /// A step inside the copy of a leaf, which counts no operation. Where snapshots may be withdrawn every step is
    /// counted: it is to say so.
    #[inline]
    fn step_at_hand(&mut self, step: Step) -> Result<bool> {
        let Some(view) = self.view_of_copy()? else {
            return Ok(false);
        };
        Ok(self.scan.step_at_hand(&view, step.is_forward()))
    }

    /// What the copy at hand is judged by; `None` if each step must be counted, or the copy is void.
    #[inline]
    fn view_of_copy(&self) -> Result<Option<View<'t>>> {
        let transaction: &'t Transaction = self.transaction;
        transaction.check_usable()?;
        let inner = transaction.inner();
        if self.rollbacks != self.transaction.rollback_count() || inner.domain().may_withdraw() {
            return Ok(None);
        }
        let snapshot = self.snapshot.snapshot();
        Ok(Some(View::of_copy(inner, snapshot, self.command)))
    }

    /// Moves over the rows at hand and counts them.
    fn count_at_hand(&mut self) -> Result<u64> {
        let view = self.view_of_copy()?;
        Ok(view.map_or(0, |view| self.scan.count_at_hand(&view)))
    }

    fn step_further(&mut self, step: Step) -> Result<Option<(&[u8], &[u8])>> {
        let Some((mut operation, store)) = self.go(step)? else {
            return Ok(None);
        };
        let row = self.scan.current();
        if row.overflow {
            let read = store.read_chain_into(&mut operation, row.body, &mut self.large);
            if let Err(error) = self.transaction.note_end(read.map_err(Error::from)) {
                self.scan.unread(step.is_forward());
                return Err(error);
            }
        }
        let row = self.scan.current();
        let value = if row.overflow { &self.large } else { row.body };
        Ok(Some((row.key, value)))
    }

    /// Makes a step; what it was counted as goes on if it found a row. Counted for one step, not between two, when user code runs; nor for all of one
    /// that goes through many leaves without finding a row (R10).
    fn go(&mut self, step: Step) -> Result<Option<(Operation<'t>, &'t VersionStore)>> {
        let transaction = self.transaction;
        loop {
            let operation = match transaction.operation() {
                Ok(operation) => operation,
                Err(error) => {
                    self.scan.stand_back();
                    return Err(error);
                }
            };
            self.forget_after_rollback();
            let view = View::new(&operation, self.snapshot.snapshot(), self.command);
            let store: &VersionStore = &transaction.engine().store;
            let Some(tree) = &self.tree else {
                return Ok(None);
            };
            let found = match step {
                Step::Next => self.scan.next_within(store, &view, tree)?,
                Step::NextAtHand => self.scan.next_at_hand(store, &view, tree)?,
                Step::Prev => self.scan.prev_within(store, &view, tree)?,
                Step::PrevAtHand => self.scan.prev_at_hand(store, &view, tree)?,
            };
            if found.is_some() {
                return Ok(Some((operation, store)));
            }
            if !self.scan.is_under_way() {
                return Ok(None);
            }
            drop(operation);
            vellum_sync::test_point!("cursor: between two operations of a step");
        }
    }

    /// Moves to the next row without reading a large value; false at the end.
    fn advance(&mut self) -> Result<bool> {
        if self.step_at_hand(Step::Next)? {
            return Ok(true);
        }
        Ok(self.go(Step::Next)?.is_some())
    }

    /// Stands right below `key` from now on: [`Cursor::next`] goes to the first row at or above it,
    /// [`Cursor::prev`] to the last below.
    pub fn seek(&mut self, key: &[u8]) {
        self.scan.seek(key);
    }

    /// Hands the rows that follow, in key order, to `each`, until that breaks (with what is returned then) or the range ends.
    /// The cursor stands on the row that was handed over last. The fastest way through many rows: most of them are
    /// handed over in one loop over a copy of their leaf.
    ///
    /// `each` may use the transaction: its writes are not seen by this cursor, and after a rollback to a savepoint the
    /// rows that follow are those that are left.
    ///
    /// # Errors
    /// As [`Cursor::next`]; rows already handed over are behind the cursor.
    #[inline]
    pub fn try_for_each<B>(
        &mut self,
        each: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.steps([Step::Next, Step::Next], each)
    }

    /// As [`Cursor::try_for_each`], against key order: the rows below where the cursor stands, from the largest key down.
    ///
    /// # Errors
    /// As [`Cursor::try_for_each`].
    #[inline]
    pub fn try_for_each_back<B>(
        &mut self,
        each: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        self.steps([Step::Prev, Step::Prev], each)
    }

    /// Hands the next rows, as many as are at hand (about a leaf), to `each`, and stands on the last of them.
    /// Returns how many; zero at the end.
    ///
    /// # Errors
    /// As [`Cursor::next`]; rows already handed over are behind the cursor.
    pub fn batch(&mut self, each: impl FnMut(&[u8], &[u8])) -> Result<usize> {
        self.counted([Step::Next, Step::NextAtHand], each)
    }

    /// As [`Cursor::batch`], against key order: the rows below where the cursor stands, from the largest key down. Zero at the
    /// start.
    ///
    /// # Errors
    /// As [`Cursor::batch`].
    pub fn batch_back(&mut self, each: impl FnMut(&[u8], &[u8])) -> Result<usize> {
        self.counted([Step::Prev, Step::PrevAtHand], each)
    }

    fn counted(&mut self, ways: [Step; 2], mut each: impl FnMut(&[u8], &[u8])) -> Result<usize> {
        self.scan.want_many();
        let mut rows = 0;
        let _: ControlFlow<Infallible> = self.steps(ways, |key, value| {
            each(key, value);
            rows += 1;
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// A step of the first kind, and then of the other as long as they find a row.
    #[inline]
    fn steps<B>(
        &mut self,
        [first, others]: [Step; 2],
        mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let mut step = first;
        while let Some((key, value)) = self.step(step)? {
            if let ControlFlow::Break(done) = each(key, value) {
                return Ok(ControlFlow::Break(done));
            }
            step = others;
            if let ControlFlow::Break(Some(done)) =
                self.all_at_hand(step.is_forward(), &mut each)?
            {
                return Ok(ControlFlow::Break(done));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Hands the rows at hand to `each`. Breaks with what `each` broke with, or with nothing once the copy is void.
    #[inline]
    fn all_at_hand<B>(
        &mut self,
        forward: bool,
        each: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<Option<B>>> {
        let Some(view) = self.view_of_copy()? else {
            return Ok(ControlFlow::Continue(()));
        };
        let (transaction, rollbacks) = (self.transaction, self.rollbacks);
        Ok(self.scan.each_at_hand(&view, forward, |key, value| {
            if let ControlFlow::Break(done) = each(key, value) {
                return ControlFlow::Break(Some(done));
            }
            // `each` may have used the transaction.
            if transaction.rollback_count() != rollbacks || transaction.check_usable().is_err() {
                return ControlFlow::Break(None);
            }
            ControlFlow::Continue(())
        }))
    }
}

/// How a cursor moves.
#[derive(Clone, Copy)]
enum Step {
    Next,
    /// Not beyond the leaf that was read last.
    NextAtHand,
    Prev,
    /// As [`Step::NextAtHand`].
    PrevAtHand,
}

impl Step {
    fn is_forward(self) -> bool {
        matches!(self, Self::Next | Self::NextAtHand)
    }
}
