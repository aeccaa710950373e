//! Loads that are given their rows.
//!
//! What [`Transaction::bulk_load`] does with rows that it asks for, here with rows that come one call at a time, from whoever cannot be asked
//! for the next one: a client that sends them. B1 to B3 are told in `bulk`.
//!
//! Invariants:
//! - B4 A load that is under way is the transaction's and nobody else's: its tree is listed in `pending_free` and is in no shape. Whatever reverts
//!   anything of the transaction gives it up first (there is no savepoint between its rows, B2), and a transaction that has one under way
//!   does not commit.

mod window;

use crate::bulk::{FILL, NewTree};
use crate::error::{Error, Result};
use crate::schema::Table;
use crate::transaction::Transaction;
use std::cell::RefMut;
use vellum_btree::{BulkLoader, Journal, Tree};
use vellum_catalog::TableEntry;
use vellum_catalog::entry::table_key;
use vellum_metrics::Counter;
use vellum_table::{Shape, ShapeChange};
use vellum_txn::Savepoint;
use vellum_version::large::VALUE_BYTES_MAX;
use vellum_version::pending::PendingKind;
use vellum_version::row::Shape as RowShape;
use vellum_version::write::inline_body_max;
use window::Window;

/// A load that is under way (B4).
#[derive(Debug)]
pub(crate) struct Load {
    table: Table,
    tree: Tree,
    loader: BulkLoader,
    /// Where the transaction was before it.
    before: Savepoint,
    /// The key that went into the tree last, of a load whose rows are asked for.
    last: Vec<u8>,
    /// Rows of [`Transaction::load_row`] that are on their way there.
    window: Window,
}

/// Whether a transaction loads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loading {
    No,
    /// It is between two rows.
    Between,
    /// It runs the callback that brings the next row.
    Asking,
}

impl Transaction {
    /// Begins to load rows into an empty table without indexes, which [`Transaction::load_row`] is given in ascending order of their keys and
    /// [`Transaction::end_load`] makes visible to this transaction (to others, its commit does). False if the table is another one: nothing has
    /// happened then, and rows are inserted. Concurrent writers of the table conflict from now on.
    ///
    /// Until the load has ended the transaction can only read, and does not see what was loaded. A rollback, to whatever savepoint, gives the load up;
    /// a commit is refused.
    ///
    /// # Errors
    /// `InvalidArgument` in the callback of an update or while another load is under way, `Conflict`, `ReadOnly`, `OutOfSpace`, storage errors.
    pub fn begin_load(&self, table: &Table) -> Result<bool> {
        self.check_not_in_write("the begin of a load")?;
        self.write_operation(|| {
            let before = self.inner().savepoint();
            let begun = self.all_or_nothing(|| {
                let shape = self.shape_of(table)?;
                if !shape.indexes.is_empty() || !self.close_if_empty(table, shape)? {
                    return Ok(false);
                }
                self.begin_tree(table, before)?;
                Ok(true)
            })?;
            if !begun && self.inner().savepoint() != before {
                // Found empty, and then not: nobody is to be shut out for that.
                self.revert_to(&before)?;
            }
            Ok(begun)
        })
    }

    /// Adds a row to the load. Rows may come out of the order of their keys in short stretches (some 100 KiB of rows). False for a key that comes
    /// too late, or that a row has: the row is not added, and the load goes on.
    ///
    /// # Errors
    /// `InvalidArgument` without a load; `KeyTooLong`, `ValueTooLong`, `OutOfSpace`, storage errors: the load is given up, the table is as it
    /// was before it, and the transaction stays usable (but for `SnapshotTooOld`). What is wrong with the storage may come with a later row, or with the end.
    pub fn load_row(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check_load("a row")?;
        self.or_give_up(|| {
            self.check_loadable(key, value)?;
            let mut load = self.load_under_way();
            let load = load.as_deref_mut().ok_or_else(no_load)?;
            if value.len() >= window::WINDOW_BYTES {
                return self.load_long(load, key, value);
            }
            if !load.window.take(key, value) {
                return Ok(false);
            }
            let leaving = load.window.leaving();
            self.load_lowest(load, leaving)?;
            Ok(true)
        })
    }

    /// Ends the load: the table has its rows. Returns how many they are.
    ///
    /// # Errors
    /// `InvalidArgument` without a load; as [`Transaction::load_row`].
    pub fn end_load(&self) -> Result<u64> {
        self.check_load("the end")?;
        self.or_give_up(|| {
            if let Some(load) = self.load_under_way().as_deref_mut() {
                let all = load.window.all();
                self.load_lowest(load, all)?;
            }
            self.finish_load()
        })
    }

    /// A row too long to be kept: it goes into the tree, and all others before it.
    fn load_long(&self, load: &mut Load, key: &[u8], value: &[u8]) -> Result<bool> {
        if !load.window.is_behind_all(key) {
            return Ok(false);
        }
        let all = load.window.all();
        self.load_lowest(load, all)?;
        self.load_into(&mut load.loader, key, value)?;
        load.window.note_left(key);
        Ok(true)
    }

    /// The lowest rows of the window go into the tree.
    fn load_lowest(&self, load: &mut Load, rows: usize) -> Result<()> {
        let Load { window, loader, .. } = load;
        for row in 0..rows {
            let (key, value) = window.row(row);
            self.load_into(loader, key, value)?;
        }
        window.forget(rows);
        Ok(())
    }

    /// True while a load is under way.
    pub fn is_loading(&self) -> bool {
        self.loading() != Loading::No
    }

    /// Refuses a part of a load when there is none, or in the callback that brings the rows of one.
    fn check_load(&self, part: &str) -> Result<()> {
        self.check_usable()?;
        if self.loading() != Loading::Between {
            let what = format!("{part} of a load that was not begun, or is asking for a row");
            return Err(Error::InvalidArgument { what });
        }
        if self.engine().is_poisoned() {
            return Err(Error::Poisoned);
        }
        Ok(())
    }

    /// Makes the tree that rows are loaded into; the table is closed (B1).
    pub(crate) fn begin_tree(&self, table: &Table, before: Savepoint) -> Result<()> {
        let tree = self.engine().store.create_tree(self.inner())?;
        self.set_load(Load {
            table: table.clone(),
            loader: tree.bulk_loader(FILL),
            tree,
            before,
            last: Vec::new(),
            window: Window::default(),
        });
        Ok(())
    }

    /// Adds a row of the strict kind of load, without giving up: false for a key that is not above the one before.
    pub(crate) fn add_to_load(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.check_loadable(key, value)?;
        let mut load = self.load_under_way();
        let Some(Load { loader, last, .. }) = load.as_deref_mut() else {
            return Err(no_load());
        };
        if loader.loaded() > 0 && key <= last.as_slice() {
            return Ok(false);
        }
        self.load_into(loader, key, value)?;
        last.clear();
        last.extend_from_slice(key);
        Ok(true)
    }

    fn check_loadable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.inner().domain().may_withdraw() {
            // Nothing is looked at for a row, but who was withdrawn is told before gigabytes more are written in vain.
            drop(self.operation()?);
        }
        self.check_key(key)?;
        if value.len() > VALUE_BYTES_MAX {
            let (length, limit) = (value.len(), VALUE_BYTES_MAX);
            return Err(Error::ValueTooLong { length, limit });
        }
        Ok(())
    }

    /// Adds a row behind all others of the tree.
    fn load_into(&self, loader: &mut BulkLoader, key: &[u8], value: &[u8]) -> Result<()> {
        let engine = self.engine();
        let journal = self.journal();
        if value.len() <= inline_body_max(engine.context.page_size(), key.len()) {
            loader.push(key, &[&[RowShape::INLINE.reduced_flags()], value], journal)?;
        } else {
            let chain = engine.store.write_chain(&mut self.operation()?, value)?;
            if let Err(error) = engine.store.adopt(self.inner(), chain.root) {
                let kind = PendingKind::Chain;
                engine.store.give_up(self.inner(), chain.root, kind);
                return Err(error.into());
            }
            let flags = [RowShape::CHAINED.reduced_flags()];
            loader.push(key, &[&flags, &chain.encode()], journal)?;
        }
        Ok(())
    }

    pub(crate) fn finish_load(&self) -> Result<u64> {
        let Load {
            table,
            tree,
            loader,
            ..
        } = self.take_load().ok_or_else(no_load)?;
        let tree = NewTree::of(self, tree);
        let rows = loader.finish(self.journal())?;
        let shape = self.shape_of(&table)?;
        let tree = tree.adopt()?;
        self.disown_tree(shape.tree.root(), &shape.name)?;
        let entry = TableEntry {
            id: shape.id,
            root: tree.root(),
        };
        let by = self.overwrite_catalog(&table_key(&shape.name), &entry.encode(), &shape.name)?;
        self.note_shape(&Shape::append(shape, ShapeChange::Tree(tree), by));
        let metrics = self.engine().context.metrics();
        metrics.add(Counter::RowsLoaded, rows);
        Ok(rows)
    }

    /// Runs the callback of a load: it only reads meanwhile. (What panics leaves a transaction that is over.)
    pub(crate) fn run_of_load<R>(&self, code: impl FnOnce() -> R) -> R {
        let before = self.loading.replace(Loading::Asking);
        let result = code();
        self.loading.set(before);
        result
    }

    pub(crate) fn loading(&self) -> Loading {
        self.loading.get()
    }

    fn set_load(&self, load: Load) {
        self.loading.set(Loading::Between);
        *self.load.borrow_mut() = Some(Box::new(load));
    }

    fn load_under_way(&self) -> RefMut<'_, Option<Box<Load>>> {
        self.load.borrow_mut()
    }

    fn take_load(&self) -> Option<Load> {
        self.loading.set(Loading::No);
        self.load.borrow_mut().take().map(|load| *load)
    }

    /// B4. What it wrote is reverted behind this: its chains are listed again by that.
    pub(crate) fn give_load_up(&self) {
        if let Some(Load { tree, loader, .. }) = self.take_load() {
            // Leaves that are in no tree go first: while they look like leaves of this one, nobody may get its root (N5).
            drop(loader);
            drop(NewTree::of(self, tree));
        }
    }

    /// Goes back to before the load if that fails.
    fn or_give_up<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let before = self.load_under_way().as_ref().map(|load| load.before);
        let result = self.note_end(work());
        if let (Err(_), Some(before)) = (&result, before) {
            self.revert_to(&before)?;
        }
        result
    }

    fn journal(&self) -> Journal<'_> {
        Journal::forward(self.engine().log.slot(self.inner().slot()))
    }
}

#[cold]
fn no_load() -> Error {
    let what = "no load is under way".into();
    Error::InvalidArgument { what }
}
