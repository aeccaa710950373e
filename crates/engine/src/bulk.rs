//! Loading many sorted rows in one transaction.
//!
//! An empty table without indexes gets a new tree, built bottom-up with frozen rows: no stamp, no version, no undo a
//! row. The transaction's own writes are the catalog row with the new root and the lists of `pending_free`; so
//! rollback and recovery free a tree, and commit makes all rows visible at once, to whoever sees the new
//! shape. Any other table gets ordinary inserts.
//!
//! Invariants:
//! - B1 The table's shape is locked (D1) and closed before its tree is looked at: a concurrent writer either is seen
//!   there, or conflicts (T2).
//! - B2 Between its rows a load's transaction only reads, and marks no savepoint.
//! - B3 A tree is replaced only if every row that ever was in it is gone for the load's own snapshot, too. Interleaving otherwise: T sees
//!   rows; all are deleted, and leave the index for its graveyard; T is promoted and loads: the rows that it sees are not in the new tree, and
//!   a key of theirs is no conflict.

use crate::error::{Error, Result};
use crate::schema::Table;
use crate::transaction::Transaction;
use std::ops::Deref;
use vellum_btree::{LeafCopy, Seek, Tree};
use vellum_table::{Mode, Shape, ShapeChange};
use vellum_txn::Savepoint;
use vellum_version::pending::PendingKind;
use vellum_version::row::Header;

/// How full leaves are made, in per cent. Rows grow by their stamp when they are next written: in full leaves the first
/// updates would split every leaf in halves, and twice as many pages cost more than a tenth more do.
pub(crate) const FILL: u8 = 90;

impl Transaction {
    /// Adds rows in ascending key order; returns how many. `next` puts the next key and value into the two (empty)
    /// vectors, or returns false at the end; it may read in this transaction, but writes and savepoints are refused while it
    /// runs. Fastest into an empty table without indexes.
    ///
    /// All or nothing: after an error none of the rows is there, and the transaction stays usable but for
    /// `Conflict`. Concurrent writers of an empty table conflict while it is loaded.
    ///
    /// # Errors
    /// `InvalidArgument` for keys that do not ascend, `KeyExists`, `KeyTooLong`, `ValueTooLong`, `Conflict`, `ReadOnly`,
    /// `OutOfSpace`, storage errors.
    pub fn bulk_load(
        &self,
        table: &Table,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        self.write_operation(|| {
            let before = self.inner().savepoint();
            self.all_or_nothing(|| {
                let shape = self.shape_of(table)?;
                if shape.indexes.is_empty() && self.close_if_empty(table, shape)? {
                    self.load_tree(table, before, &mut next)
                } else {
                    self.load_rows(table, &mut next)
                }
            })
        })
    }

    /// Makes a tree, listed until it is adopted.
    pub(crate) fn new_tree(&self) -> Result<NewTree<'_>> {
        let tree = self.engine().store.create_tree(self.inner())?;
        Ok(NewTree::of(self, tree))
    }

    /// Asks for the next row. The rows so far are in no table yet: who wrote to it meanwhile would write to what the load is going to replace, and a
    /// rollback to a savepoint between them would take half of a tree back (B2).
    fn take(
        &self,
        next: &mut impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> bool {
        key.clear();
        value.clear();
        self.run_of_load(|| next(key, value))
    }

    /// B1. False if the table has rows.
    pub(crate) fn close_if_empty(&self, table: &Table, shape: &Shape) -> Result<bool> {
        // A look without closing first: who appends to a full table should not shut out others.
        if !self.is_empty(table)? {
            return Ok(false);
        }
        let closed_by = self.lock_shape(shape)?;
        self.note_shape(&Shape::append(shape, ShapeChange::Close, closed_by));
        self.is_empty(table)
    }

    /// Whether a table's tree has no row, live or deleted, of whatever transaction, nor had one that this one may still see.
    fn is_empty(&self, table: &Table) -> Result<bool> {
        let mut leaf = LeafCopy::new(self.engine().context.page_size());
        let mut from = Vec::new();
        loop {
            // Counted leaf by leaf (R10), and the tree found anew: whoever was withdrawn between two of them is told so, before he looks at pages that may
            // have been given back.
            let operation = self.operation()?;
            let tree = &self.shape_in(&operation, table)?.tree;
            // T2: latched, then read.
            drop(tree.write(&from)?);
            tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf)?;
            for at in 0..leaf.len() {
                let seen = Header::decode(leaf.payload(at))
                    .is_some_and(|row| row.writer.is_none() && row.shape.tombstone);
                if !seen {
                    return Ok(false);
                }
            }
            let Some(fence) = leaf.upper_fence() else {
                // B3. Asked after the last leaf was read: what left it before has left a note.
                let (store, snapshot) = (&self.engine().store, self.inner().statement());
                return Ok(!store.may_miss_gone(snapshot, tree));
            };
            from.clear();
            from.extend_from_slice(fence);
            drop(operation);
            vellum_sync::test_point!("load: between two leaves");
        }
    }

    fn load_tree(
        &self,
        table: &Table,
        before: Savepoint,
        next: &mut impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        self.begin_tree(table, before)?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut rows = 0u64;
        while self.take(next, &mut key, &mut value) {
            if !self.add_to_load(&key, &value)? {
                return Err(does_not_ascend(rows));
            }
            rows += 1;
        }
        self.finish_load()
    }

    fn load_rows(
        &self,
        table: &Table,
        next: &mut impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        let (mut key, mut value, mut last) = (Vec::new(), Vec::new(), Vec::new());
        let mut rows = 0u64;
        while self.take(next, &mut key, &mut value) {
            self.check_key(&key)?;
            if rows > 0 && key <= last {
                return Err(does_not_ascend(rows));
            }
            self.check_version_space()?;
            self.with_rows(table, |rows| rows.put(&key, &value, Mode::Insert))?;
            rows += 1;
            std::mem::swap(&mut last, &mut key);
        }
        Ok(rows)
    }
}

/// A tree of rows that is being made. Dropped before it was adopted, whatever the reason, it gives its pages back (V18); the
/// chains of its rows come after it, with the rollback that lists them again.
pub(crate) struct NewTree<'t> {
    transaction: &'t Transaction,
    tree: Option<Tree>,
}

impl<'t> NewTree<'t> {
    /// One that `transaction` has made.
    pub fn of(transaction: &'t Transaction, tree: Tree) -> Self {
        Self {
            transaction,
            tree: Some(tree),
        }
    }

    /// Makes it the transaction's: rollback frees it from now on.
    pub fn adopt(mut self) -> Result<Tree> {
        let store = &self.transaction.engine().store;
        store.adopt(self.transaction.inner(), self.root())?;
        Ok(self.tree.take().expect("not adopted yet"))
    }
}

impl Deref for NewTree<'_> {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        self.tree.as_ref().expect("not adopted yet")
    }
}

impl Drop for NewTree<'_> {
    fn drop(&mut self) {
        if let Some(tree) = &self.tree {
            let (store, inner) = (&self.transaction.engine().store, self.transaction.inner());
            store.give_up(inner, tree.root(), PendingKind::Tree);
            store.free_given_up(inner);
        }
    }
}

/// Of the row behind so many.
#[cold]
fn does_not_ascend(rows: u64) -> Error {
    let what = format!("row {} of a load has a key that does not ascend", rows + 1);
    Error::InvalidArgument { what }
}
