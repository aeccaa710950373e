//! Transactions of the embedded API.
//!
//! Invariants:
//! - A1 User code runs with no latch held, with no buffer borrowed and outside any counted operation (R10): callbacks may
//!   use the transaction again, and may take their time.
//! - A2 An operation that fails is undone, whatever the error and the isolation. After `Conflict` (but not under
//!   [`Isolation::Statement`]) and `SnapshotTooOld` only rollback is possible all the same, and after a storage error that kept a failed
//!   operation from being undone, or a panic in the middle of one; every other error leaves the transaction usable.
//! - A3 A transaction that is dropped unfinished is rolled back; if that fails for I/O, its slot stays parked and
//!   maintenance tries again.
//!
//! Concurrency: one thread at a time (`Send`, not `Sync`).

use crate::buffers::KeptBuffers;
use crate::database::SlotToken;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::load::{Load, Loading};
use crate::schema::Table;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;
use std::task::{Poll, Waker};
use vellum_base::Timestamp;
use vellum_btree::max_key;
use vellum_gc::Budget;
use vellum_table::{Mode, Rows, Shape, TableError, revert_to};
use vellum_txn::{
    CommitError, Durability, Isolation, Lease, Operation, Savepoint as InnerSavepoint,
    SnapshotHandle, Ticket, VersionStamp,
};

/// Work-list entries that a commit may do for its slot; more, if more rows were deleted since: what is made must go as fast.
const COLLECT_ITEMS: u32 = 256;
/// Bytes of rows that a commit may give back for its slot.
const COLLECT_BYTES: u64 = 1 << 20;
/// Bytes of pages of large values and dropped trees that it may give back at least.
const COLLECT_PAGES: u64 = 64 << 10;

/// A transaction. Begun by [`Database::begin`](crate::Database::begin); dropped unfinished, it is rolled back.
pub struct Transaction {
    pub(crate) token: Arc<SlotToken>,
    /// `None` only while ending.
    inner: Option<vellum_txn::Transaction>,
    /// It met a conflict, or an operation that failed half-way and could not be undone (A2).
    conflicted: Cell<bool>,
    /// What ended it that another try may not meet: the error that the operation reported.
    to_retry: Cell<Option<Again>>,
    /// Snapshots that it shares: as long as there are any it may only read.
    holding_still: Cell<u32>,
    pub(crate) loading: Cell<Loading>,
    /// The load that is under way, if it is not `Loading::No`.
    pub(crate) load: RefCell<Option<Box<Load>>>,
    /// Callbacks of updates that it runs, one in the other.
    updating: Cell<u32>,
    /// Taken while in use, so that callbacks find others (A1).
    buffers: KeptBuffers,
    /// Shapes that it made, with their commands.
    shapes: RefCell<Vec<(Arc<Shape>, u32)>>,
    /// Rollbacks to savepoints so far: cursors forget their copies.
    rollbacks: Cell<u64>,
    /// What tells it from other transactions whose savepoints could be mistaken for its own: its number in its slot. A
    /// snapshot is shared by those that begin while nobody commits.
    identity: u64,
    /// Savepoints at or above this command are gone.
    savepoints: RefCell<Vec<InnerSavepoint>>,
}

/// A point in a transaction to roll back to; see [`Transaction::savepoint`].
#[derive(Clone, Debug)]
pub struct Savepoint {
    pub(crate) at: InnerSavepoint,
    /// Position in the transaction's stack of savepoints.
    depth: usize,
    stamp: u64,
}

/// Errors of the family [`Family::Retry`](crate::Family::Retry) that end a transaction.
#[derive(Clone, Copy, Debug)]
enum Again {
    Conflict,
    SnapshotTooOld,
}

/// A callback of an update that is running.
struct Updating<'t>(&'t Cell<u32>);

impl<'t> Updating<'t> {
    #[inline]
    fn begin(depth: &'t Cell<u32>) -> Self {
        depth.set(depth.get() + 1);
        Self(depth)
    }
}

impl Drop for Updating<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// An operation that is under way: dropped by a panic only, it leaves a transaction that met a conflict.
struct HalfDone<'t>(&'t Cell<bool>);

impl Drop for HalfDone<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

impl Transaction {
    pub(crate) fn new(token: Arc<SlotToken>, inner: vellum_txn::Transaction) -> Self {
        let buffers = token.take_buffers();
        let identity = token.count_begin() ^ (u64::from(inner.slot().get()) << 48);
        Self {
            token,
            identity,
            inner: Some(inner),
            conflicted: Cell::new(false),
            to_retry: Cell::new(None),
            holding_still: Cell::new(0),
            loading: Cell::new(Loading::No),
            load: RefCell::new(None),
            updating: Cell::new(0),
            buffers,
            shapes: RefCell::new(Vec::new()),
            rollbacks: Cell::new(0),
            savepoints: RefCell::new(Vec::new()),
        }
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Engine {
        &self.token.engine
    }

    #[inline]
    pub(crate) fn inner(&self) -> &vellum_txn::Transaction {
        self.inner
            .as_ref()
            .expect("a transaction that is not ending")
    }

    /// Starts an operation (R10). Held while rows or shapes are looked at or written, never while user code runs.
    #[inline]
    pub(crate) fn operation(&self) -> Result<Operation<'_>> {
        let started = self.inner().operation();
        if started.is_err() {
            self.conflicted.set(true);
        }
        Ok(started?)
    }

    pub(crate) fn rollback_count(&self) -> u64 {
        self.rollbacks.get()
    }

    /// The table's shape that this transaction works with.
    pub(crate) fn shape_of<'s>(&self, table: &'s Table) -> Result<&'s Shape> {
        self.shape_in(&self.operation()?, table)
    }

    /// The same, inside an operation.
    #[inline]
    pub(crate) fn shape_in<'s>(
        &self,
        operation: &Operation<'_>,
        table: &'s Table,
    ) -> Result<&'s Shape> {
        let inner = operation.transaction();
        self.shape_as_of(table, inner.snapshot(), inner.commands_drawn())
    }

    /// The table's shape as of an open snapshot of this transaction and of what it had written before `command`.
    #[inline]
    fn shape_as_of<'s>(
        &self,
        table: &'s Table,
        snapshot: Timestamp,
        command: u32,
    ) -> Result<&'s Shape> {
        // Its versions and pages are named by that database's slots, clock and log.
        if !Arc::ptr_eq(table.base.tree.context(), &self.engine().context) {
            return Err(foreign_table(table));
        }
        let inner = self.inner();
        let sees = |version: &VersionStamp| inner.visible(version, snapshot, command);
        match table.base.resolve(sees) {
            Some(shape) if !shape.dropped => {
                if !shape.is_settled() {
                    self.settle(shape);
                }
                Ok(shape)
            }
            _ => Err(Error::NoSuchTable {
                name: table.name().to_owned(),
            }),
        }
    }

    /// Notes that a shape need not be judged any more, if that is so.
    #[cold]
    fn settle(&self, shape: &Shape) {
        let made_by = shape.made_by();
        if made_by.is_none_or(|version| self.inner().domain().is_settled(version)) {
            shape.settle();
        }
    }

    /// The error of the family [`Family::Retry`](crate::Family::Retry) that ended this transaction, whether or not its user saw it.
    pub(crate) fn ended_by(&self) -> Option<Error> {
        self.to_retry.get().map(|again| match again {
            Again::Conflict => Error::Conflict,
            Again::SnapshotTooOld => Error::SnapshotTooOld,
        })
    }

    /// Remembers a shape that this transaction made, to make it void on rollback.
    pub(crate) fn note_shape(&self, shape: &Arc<Shape>) {
        let command = shape.made_by().map_or(0, |version| version.command);
        self.shapes.borrow_mut().push((shape.clone(), command));
    }

    #[inline]
    pub(crate) fn check_usable(&self) -> Result<()> {
        if self.conflicted.get() {
            return Err(Error::TransactionOver {
                what: "it met a conflict, a withdrawal or an error that could not be undone; roll it back",
            });
        }
        Ok(())
    }

    /// It only reads until [`Transaction::move_on`] was called as often.
    pub(crate) fn hold_still(&self) {
        self.holding_still.set(self.holding_still.get() + 1);
    }

    pub(crate) fn move_on(&self) {
        self.holding_still.set(self.holding_still.get() - 1);
    }

    /// Refuses what a callback may not do that the operation around it has yet to write after: it would write under other conditions than
    /// it began with.
    pub(crate) fn check_not_in_write(&self, what: &'static str) -> Result<()> {
        if self.updating.get() > 0 || self.loading() != Loading::No {
            return Err(Error::InvalidArgument {
                what: format!("{what} in the callback of an update, or while a load is under way"),
            });
        }
        Ok(())
    }

    #[inline]
    fn check_may_change(&self) -> Result<()> {
        if self.holding_still.get() > 0 || self.loading() != Loading::No {
            return Err(only_reads());
        }
        Ok(())
    }

    /// The same for what goes back: that gives up a load which is under way, but not the one whose callback it stands in.
    fn check_may_revert(&self) -> Result<()> {
        if self.holding_still.get() > 0 || self.loading() == Loading::Asking {
            return Err(only_reads());
        }
        Ok(())
    }

    /// Runs a read.
    #[inline]
    pub(crate) fn read_operation<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        self.check_usable()?;
        self.note_end(work())
    }

    /// Runs a write; a conflict ends the transaction (A2).
    #[inline]
    pub(crate) fn write_operation<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        self.check_usable()?;
        if self.inner().options().read_only {
            return Err(Error::ReadOnly);
        }
        self.check_may_change()?;
        if self.engine().is_poisoned() {
            // None of it could become durable any more.
            return Err(Error::Poisoned);
        }
        self.note_end(work())
    }

    /// A2.
    #[inline]
    pub(crate) fn note_end<R>(&self, result: Result<R>) -> Result<R> {
        let ends = match result {
            // The statement can be run again, as of later: `restart`.
            Err(Error::Conflict) => (self.inner().options().isolation != Isolation::Statement)
                .then_some(Again::Conflict),
            Err(Error::SnapshotTooOld) => Some(Again::SnapshotTooOld),
            _ => None,
        };
        if ends.is_some() {
            self.conflicted.set(true);
            self.to_retry.set(ends);
        }
        result
    }

    /// Reverts what `work` did if it fails, whatever the error: under [`Isolation::Statement`] a transaction goes on after a
    /// conflict. If it panics, the transaction can only be rolled back (A2).
    pub(crate) fn all_or_nothing<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let savepoint = self.inner().savepoint();
        let half = HalfDone(&self.conflicted);
        let result = work();
        std::mem::forget(half);
        if result.is_err() {
            self.revert_to(&savepoint)?;
        }
        result
    }

    pub(crate) fn revert_to(&self, savepoint: &InnerSavepoint) -> Result<()> {
        let engine = self.engine();
        self.give_load_up();
        // Before the rows: nobody may find a tree whose rows are going.
        self.shapes.borrow_mut().retain(|(shape, command)| {
            let stays = u64::from(*command) < savepoint.command;
            if !stays {
                shape.make_void();
                engine.tables.forget_void(shape);
            }
            stays
        });
        self.rollbacks.set(self.rollbacks.get() + 1);
        let reverted = revert_to(&engine.store, &engine.carried, self.inner(), savepoint);
        if reverted.is_err() {
            // Half of it may be there: nobody shall commit that (A2).
            self.conflicted.set(true);
        }
        Ok(reverted?)
    }

    #[inline]
    pub(crate) fn with_rows<R>(
        &self,
        table: &Table,
        work: impl FnOnce(&mut Rows<'_>) -> vellum_table::Result<R>,
    ) -> Result<R> {
        // Under read committed the statement's snapshot is drawn before the shape is judged by it, and held while
        // the shape's trees are used: finer steps draw newer ones, and with a table's last snapshot go its pages.
        let inner = self.inner();
        let operation = self.operation()?;
        let _held = (inner.options().isolation == Isolation::ReadCommitted).then(|| {
            inner.statement();
            inner.open_snapshot()
        });
        let shape = self.shape_in(&operation, table)?;
        self.on_rows(operation, shape, work)
    }

    /// [`Transaction::with_rows`] for who reads by a snapshot that it holds open, and by what the transaction had written before
    /// `command`: the table as it was then, and its rows.
    pub(crate) fn with_rows_as_of<R>(
        &self,
        table: &Table,
        snapshot: &SnapshotHandle<'_>,
        command: u32,
        work: impl FnOnce(&mut Rows<'_>) -> vellum_table::Result<R>,
    ) -> Result<R> {
        let operation = self.operation()?;
        let shape = self.shape_as_of(table, snapshot.snapshot(), command)?;
        self.on_rows(operation, shape, work)
    }

    #[inline]
    fn on_rows<R>(
        &self,
        operation: Operation<'_>,
        shape: &Shape,
        work: impl FnOnce(&mut Rows<'_>) -> vellum_table::Result<R>,
    ) -> Result<R> {
        let inner = self.inner();
        let engine = self.engine();
        let mut buffers = self.buffers.take();
        let mut rows = Rows {
            store: &engine.store,
            carried: &engine.carried,
            transaction: inner,
            operation,
            shape,
            buffers: &mut buffers,
        };
        let result = work(&mut rows);
        // Its operation ends here.
        drop(rows);
        self.buffers.give(buffers);
        if matches!(result, Err(TableError::NotUndone(_))) {
            self.conflicted.set(true);
        }
        Ok(result?)
    }

    #[inline]
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        // Internal keys may be twice that: an index entry is columns and key.
        let limit = max_key(self.engine().context.page_size()) / 2;
        if key.len() > limit {
            return Err(Error::KeyTooLong {
                length: key.len(),
                limit,
            });
        }
        Ok(())
    }

    /// Looks a key up and hands the value to `each`. The bytes are the private copy that every read makes of its row, in a buffer
    /// that the transaction reuses: nothing is copied or allocated beyond that. A row that others may overwrite is never lent out,
    /// and `each` may do what it likes, other operations of this transaction included. What the copy costs:
    /// docs/design/0009-engine.md, "Reads by callback".
    ///
    /// A value outside its row (more than about a quarter of a page) is gathered in memory first;
    /// [`Transaction::get_chunks`] reads it without.
    ///
    /// Blocks only for pages that must be read from disk.
    ///
    /// # Errors
    /// `NoSuchTable`, `TransactionOver`, `MemoryLimit` where the system has no memory for the value, storage errors. The transaction
    /// stays usable.
    #[inline]
    pub fn get<R>(
        &self,
        table: &Table,
        key: &[u8],
        each: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.read_operation(|| self.with_rows(table, |rows| rows.get(key, each)))
    }

    /// Looks a key up and replaces `value` by its value; false (and an empty `value`) if there is none. A large value is read into
    /// it without a further copy.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    #[inline]
    pub fn get_into(&self, table: &Table, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        self.read_operation(|| self.with_rows(table, |rows| rows.get_into(key, value)))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// `NoSuchTable`, `KeyExists`, `KeyTooLong` (an eighth of a page), `ValueTooLong` (1 GiB), `ReadOnly`, `OutOfSpace`, `MemoryLimit`
    /// (only of an indexed table whose large value is replaced): the transaction stays usable. `Conflict`: it can only be rolled back.
    #[inline]
    pub fn insert(&self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(table, key, value, Mode::Insert).map(|_| ())
    }

    /// Adds or replaces a row. Returns whether the key existed.
    ///
    /// # Errors
    /// As [`Transaction::insert`]; `KeyExists` only for a unique index.
    #[inline]
    pub fn upsert(&self, table: &Table, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put(table, key, value, Mode::Upsert)
    }

    /// Replaces the value of a row, whatever its length. Returns whether the key existed; if not, nothing
    /// happens.
    ///
    /// # Errors
    /// As [`Transaction::upsert`].
    #[inline]
    pub fn replace(&self, table: &Table, key: &[u8], value: &[u8]) -> Result<bool> {
        self.put(table, key, value, Mode::Replace)
    }

    #[inline]
    fn put(&self, table: &Table, key: &[u8], value: &[u8], mode: Mode) -> Result<bool> {
        self.write_operation(|| {
            self.check_key(key)?;
            self.check_version_space()?;
            self.with_rows(table, |rows| rows.put(key, value, mode))
        })
    }

    /// Changes bytes of a value in place: `change` gets a private copy of the whole value, and what it writes inside
    /// `ranges` (byte offsets in the value) becomes the new version. Bytes outside stay. Only the old bytes of
    /// the ranges are kept as the old version.
    ///
    /// `change` may run more than once, when the row changes between reading and writing. Returns whether the key
    /// exists. A value outside its row is in memory once meanwhile, and is read twice.
    ///
    /// `change` may use this transaction, but for what the update stands on: see [Callbacks](crate#callbacks).
    ///
    /// # Errors
    /// `RangeOutsideValue`, `KeyExists` of a unique index, `ReadOnly`, `OutOfSpace`, `MemoryLimit` where the system has no memory for the
    /// value, `InvalidArgument` if `change` itself wrote the row, or made, dropped, loaded or rolled back the table or one of its
    /// indexes: the update changes nothing, what `change` did stays, the transaction stays usable.
    /// `Conflict`: it can only be rolled back.
    #[inline]
    pub fn update(
        &self,
        table: &Table,
        key: &[u8],
        ranges: &[Range<usize>],
        mut change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        self.write_operation(|| {
            if self.check_key(key).is_err() {
                return self.has_no_row(table);
            }
            self.check_version_space()?;
            let mut change = |bytes: &mut [u8]| {
                let _updating = Updating::begin(&self.updating);
                change(bytes);
            };
            self.with_rows(table, |rows| rows.update(key, ranges, &mut change))
        })
    }

    /// Deletes a row. Returns whether the key existed.
    ///
    /// # Errors
    /// `NoSuchTable`, `ReadOnly`, `OutOfSpace`, `MemoryLimit` (only of an indexed table's large value): the transaction stays usable.
    /// `Conflict`: it can only be rolled back.
    #[inline]
    pub fn delete(&self, table: &Table, key: &[u8]) -> Result<bool> {
        self.write_operation(|| {
            if self.check_key(key).is_err() {
                return self.has_no_row(table);
            }
            self.check_version_space()?;
            self.with_rows(table, |rows| rows.delete(key))
        })
    }

    /// What a change of a row answers whose key is too long for any row.
    #[cold]
    fn has_no_row(&self, table: &Table) -> Result<bool> {
        self.shape_of(table).map(|_| false)
    }

    /// Marks this point of the transaction.
    ///
    /// # Errors
    /// `TransactionOver` after a conflict, `InvalidArgument` while a load is under way.
    pub fn savepoint(&self) -> Result<Savepoint> {
        self.check_usable()?;
        self.check_may_change()?;
        let at = self.inner().savepoint();
        let mut savepoints = self.savepoints.borrow_mut();
        savepoints.push(at);
        Ok(Savepoint {
            at,
            depth: savepoints.len(),
            stamp: self.identity,
        })
    }

    /// Reverts everything that was done after `savepoint`, which stays; later savepoints are gone, and so is a load that is under way. Open
    /// cursors go on, without what was reverted.
    ///
    /// # Errors
    /// `TransactionOver` if the savepoint is gone or belongs to another transaction, or after a conflict;
    /// `InvalidArgument` in the callback of a load. Storage
    /// errors: it can only be rolled back then.
    pub fn rollback_to(&self, savepoint: &Savepoint) -> Result<()> {
        self.check_usable()?;
        self.check_may_revert()?;
        {
            let mut savepoints = self.savepoints.borrow_mut();
            let known = savepoint.stamp == self.identity
                && savepoints.get(savepoint.depth - 1) == Some(&savepoint.at);
            if !known {
                return Err(Error::TransactionOver {
                    what: "the savepoint is gone",
                });
            }
            savepoints.truncate(savepoint.depth);
        }
        self.revert_to(&savepoint.at)
    }

    /// Commits. Under [`Durability::Sync`] returns once a crash cannot undo it; a read-only transaction waits
    /// likewise until what it read is durable. Under [`Durability::Async`] returns at once.
    ///
    /// # Errors
    /// `TransactionOver` after a conflict, `InvalidArgument` while a load is under way, `OutOfSpace`, `Io`, `Poisoned`: not committed, and rolled back. `NotDurable`:
    /// committed, but whether that outlives a crash is not known.
    pub fn commit(mut self) -> Result<()> {
        let durability = self.inner().options().durability;
        let wrote = self.inner().has_written();
        match self.commit_inner()? {
            Some(ticket) if durability == Durability::Sync && (wrote || !ticket.is_hardened()) => {
                ticket.wait().map(|_| ()).map_err(commit_error)
            }
            _ => Ok(()),
        }
    }

    /// Commits without waiting, whatever the durability. The result is for waiting, or for polling with a
    /// waker.
    ///
    /// # Errors
    /// As [`Transaction::commit`], but for what the flush would report.
    pub fn commit_deferred(mut self) -> Result<PendingCommit> {
        Ok(PendingCommit {
            ticket: self.commit_inner()?,
        })
    }

    fn commit_inner(&mut self) -> Result<Option<Ticket>> {
        if self.conflicted.get() {
            // Dropping it rolls it back.
            return Err(Error::TransactionOver {
                what: "it met a conflict, a withdrawal or an error that could not be undone, and is rolled back",
            });
        }
        if self.is_loading() {
            // B4. Dropping it rolls it back.
            return Err(Error::InvalidArgument {
                what: "a commit while a load is under way: it is rolled back".into(),
            });
        }
        if self.inner().has_written() && self.engine().is_poisoned() {
            // It could never become durable; nobody shall see it. Dropping it rolls it back.
            return Err(Error::Poisoned);
        }
        let Some(inner) = self.inner.take() else {
            return Ok(None);
        };
        self.token.give_buffers(std::mem::take(&mut self.buffers));
        let deletes = self.engine().store.has_fresh_tombstones(inner.slot());
        let collect = inner.has_written() && self.token.is_collection_due(deletes);
        let committed = if collect {
            inner.commit_leased().map(|(ticket, lease)| {
                self.collect(&lease);
                ticket
            })
        } else {
            inner.commit_deferred()
        };
        match committed {
            Ok(ticket) => Ok(Some(ticket)),
            Err(CommitError::NotCommitted { transaction, error }) => {
                // Dropping `self` rolls it back.
                self.inner = Some(*transaction);
                Err(error.into())
            }
            Err(error) => Err(commit_error(error)),
        }
    }

    /// Collects the slot's garbage, a bounded amount (LeanStore §3.5, "between transactions").
    fn collect(&self, lease: &Lease) {
        let engine = self.engine();
        let fresh = engine.store.take_fresh_tombstones(lease.slot());
        // Twice: a backlog becomes less. The bytes are the bound of a large one's.
        let items = u32::try_from(2 * fresh).map_or(u32::MAX - 1, |items| items.max(COLLECT_ITEMS));
        // So it is with pages; the rest is maintenance's: they may have to be read first, and somebody waits here.
        let pages = COLLECT_PAGES.max(2 * engine.store.take_fresh_chain_bytes(lease.slot()));
        let mut budget = Budget::new(items, COLLECT_BYTES).with_pages(pages).lazy();
        let log = engine.log.slot(lease.slot());
        // An error here is not the transaction's: what is left is collected later, or reported by the next
        // operation that meets the same disk.
        if let Ok(collected) = engine
            .store
            .collect(lease.domain(), lease.slot(), log, &mut budget)
            && collected.more
        {
            self.token.collect_soon();
        }
        engine.note_version_space();
    }

    /// Reverts everything.
    ///
    /// # Errors
    /// Storage errors: maintenance tries again; nobody sees anything of it meanwhile.
    pub fn rollback(mut self) -> Result<()> {
        self.rollback_inner()
    }

    fn rollback_inner(&mut self) -> Result<()> {
        let Some(inner) = &self.inner else {
            return Ok(());
        };
        if inner.has_written() {
            self.revert_to(&InnerSavepoint::START)?;
        }
        self.token.give_buffers(std::mem::take(&mut self.buffers));
        let inner = self.inner.take().expect("checked above");
        let (slot, engine) = (inner.slot(), &self.token.engine);
        let mut nothing = vellum_version::Reverter::running(
            &engine.store,
            engine.log.slot(slot),
            &engine.carried,
        );
        // Everything is compensated: this logs the end and gives the slot back.
        Ok(inner.rollback(&mut nothing)?)
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("inner", &self.inner)
            .field("conflicted", &self.conflicted.get())
            .finish_non_exhaustive()
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // A3: on failure the inner transaction parks its slot as it is dropped.
        let _ = self.rollback_inner();
    }
}

/// A commit that happened and may not be durable yet. Dropping it waits for nothing.
#[derive(Clone, Debug)]
pub struct PendingCommit {
    ticket: Option<Ticket>,
}

impl PendingCommit {
    /// Blocks until the commit is durable.
    ///
    /// # Errors
    /// `NotDurable`: the flush failed; whether the commit outlives a crash is not known.
    pub fn wait(&self) -> Result<()> {
        match &self.ticket {
            Some(ticket) => ticket.wait().map(|_| ()).map_err(commit_error),
            None => Ok(()),
        }
    }

    /// Ready once the commit is durable; until then `waker` is woken when it is worth asking again. It is woken under a latch of the
    /// log: it schedules whoever polls next, and calls nothing of the database itself.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<()>> {
        match &self.ticket {
            Some(ticket) => ticket
                .poll(waker)
                .map(|r| r.map(|_| ()).map_err(commit_error)),
            None => Poll::Ready(Ok(())),
        }
    }

    /// True once the commit is durable.
    pub fn is_durable(&self) -> bool {
        self.ticket.as_ref().is_none_or(Ticket::is_hardened)
    }
}

#[cold]
fn only_reads() -> Error {
    let what = "a write or a savepoint during a load, or while the snapshot is shared: only reads are possible";
    Error::InvalidArgument { what: what.into() }
}

#[cold]
fn foreign_table(table: &Table) -> Error {
    let name = table.name();
    Error::InvalidArgument {
        what: format!(
            "the handle of table {name:?} belongs to another database, or to an earlier opening of this one"
        ),
    }
}

fn commit_error(error: CommitError) -> Error {
    match error {
        CommitError::NotCommitted { error, .. } => error.into(),
        CommitError::NotHardened { error, .. } => Error::not_durable(error.into()),
    }
}

impl From<TableError> for Error {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Conflict { .. } => Self::Conflict,
            TableError::KeyExists { table } => Self::KeyExists { table },
            TableError::KeyTooLong { length, limit } => Self::KeyTooLong { length, limit },
            TableError::ValueTooLong { length, limit } => Self::ValueTooLong { length, limit },
            TableError::RangeOutsideValue { start, end, length } => {
                Self::RangeOutsideValue { start, end, length }
            }
            TableError::ValueGone => Self::InvalidArgument {
                what: "a rollback to before the value, its table or an index was made, by the callback that reads or changes it".into(),
            },
            TableError::ChangedBeneath { what } => Self::InvalidArgument { what: what.into() },
            TableError::NotUndone(error) => error.into(),
            TableError::Version(error) => error.into(),
        }
    }
}
