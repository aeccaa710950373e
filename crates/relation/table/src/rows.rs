//! Rows of a table together with their index entries and overflow chains.
//!
//! Invariants:
//! - T4 One call is all or nothing: where it takes more than one step (index entries, chains), a failure reverts what
//!   was done since the call began.
//! - T5 An index entry is a versioned row of its own, written by the same transaction as the row: who sees
//!   one sees the other.
//! - T6 User code runs on private copies, never under a latch and never inside a counted operation (R10); it may run
//!   again.

use crate::error::{Result, TableError};
use crate::key_description::KeyDescription;
use crate::large::keep_only;
use crate::shape::{Index, Shape};
use std::borrow::Cow;
use std::ops::Range;
use vellum_base::planted::{self, Bug};
use vellum_base::{StorageError, Timestamp};
use vellum_btree::Tree;
use vellum_txn::{Isolation, Operation, Savepoint, Transaction, Undo};
use vellum_version::delta::{KEY_BYTES, RANGE_BYTES, are_apart};
use vellum_version::large::VALUE_BYTES_MAX;
use vellum_version::pending::PendingKind;
use vellum_version::read::Visible;
use vellum_version::row::Shape as RowShape;
use vellum_version::write::inline_body_max;
use vellum_version::{
    Change, Current, Newest, Reverter, Scratch, VersionError, VersionStore, View, Written,
    buried_key_max,
};

/// Buffers of row operations, kept from one to the next.
#[derive(Debug, Default)]
pub struct Buffers {
    pub(crate) scratch: Scratch,
    /// A row as it was read.
    pub(crate) row: Vec<u8>,
    pub(crate) delta: Vec<u8>,
    /// A private copy that user code changes.
    pub(crate) work: Vec<u8>,
    old_columns: Vec<u8>,
    new_columns: Vec<u8>,
}

/// What a buffer may keep from one transaction to the next: a page's worth. A slot that once read a value of a gigabyte would keep
/// that much otherwise.
const KEPT_BYTES: usize = 16 << 10;

impl Buffers {
    /// Gives back the memory of values that do not fit into a page.
    #[inline]
    pub fn trim(&mut self) {
        for buffer in [&mut self.work, &mut self.old_columns, &mut self.new_columns] {
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
    }

    /// Bytes of the buffer that holds whole values.
    pub fn value_bytes(&self) -> usize {
        self.work.capacity()
    }
}

/// What a put does with a row that exists or does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The key must not exist.
    Insert,
    /// Whether the key exists does not matter.
    Upsert,
    /// The key must exist.
    Replace,
}

/// Which newest version a row may replace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When<'w> {
    /// As the mode says.
    Mode(Mode),
    /// Only a large value with this reference.
    Chain(&'w [u8]),
}

/// Operations on the rows of one table, in one transaction.
#[derive(Debug)]
pub struct Rows<'a> {
    /// Old versions and the system trees.
    pub store: &'a VersionStore,
    /// Records that were carried forward, for reverting.
    pub carried: &'a Tree,
    /// Who does it.
    pub transaction: &'a Transaction,
    /// The operation of that transaction; not counted while user code runs (T6).
    pub operation: Operation<'a>,
    /// The table.
    pub shape: &'a Shape,
    /// Buffers.
    pub buffers: &'a mut Buffers,
}

impl Rows<'_> {
    pub(crate) fn page_size(&self) -> usize {
        self.store.context().page_size()
    }

    /// Looks a key up and hands its value to `each` (private bytes, no latch held).
    ///
    /// # Errors
    /// Storage errors.
    #[inline]
    pub fn get<R>(&mut self, key: &[u8], each: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let transaction = self.transaction;
        let snapshot = transaction.statement();
        self.get_as_of(snapshot, transaction.commands_seen(), key, each)
    }

    /// The same as of `snapshot`, an open one of the transaction, and of what it had written itself before `command`.
    ///
    /// # Errors
    /// Storage errors.
    #[inline]
    pub fn get_as_of<R>(
        &mut self,
        snapshot: Timestamp,
        command: u32,
        key: &[u8],
        each: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let found = self.find((snapshot, command), key)?;
        let Buffers { row, work, .. } = &mut *self.buffers;
        match found {
            None => Ok(None),
            Some(visible) if !visible.overflow => {
                self.operation.pause();
                Ok(Some(each(&row[visible.start..])))
            }
            Some(visible) => {
                self.store
                    .read_chain_into(&mut self.operation, &row[visible.start..], work)?;
                self.operation.pause();
                Ok(Some(each(work)))
            }
        }
    }

    /// Looks the version of a key up that is seen as of a snapshot and a command ([`Rows::get_as_of`]): it is in the row
    /// buffer then. Remembers the leaf for the write that often follows.
    #[inline]
    pub(crate) fn find(
        &mut self,
        (snapshot, command): (Timestamp, u32),
        key: &[u8],
    ) -> Result<Option<Visible>> {
        let view = View::new(&self.operation, snapshot, command);
        let Buffers {
            row,
            delta,
            scratch,
            ..
        } = &mut *self.buffers;
        let (tree, hints) = (&self.shape.tree, &mut scratch.hints);
        Ok(self
            .store
            .read_near(&view, tree, key, row, delta, hints, false)?)
    }

    /// Looks a key up and replaces `value` by its value, a large one without a copy between; false, and `value` is empty, if there is
    /// none.
    ///
    /// # Errors
    /// Storage errors, `MemoryLimit`.
    #[inline]
    pub fn get_into(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let transaction = self.transaction;
        let as_of = (transaction.statement(), transaction.commands_seen());
        let Some(visible) = self.find(as_of, key)? else {
            return Ok(false);
        };
        let row = &self.buffers.row;
        if visible.overflow {
            let operation = &mut self.operation;
            let read = self
                .store
                .read_chain_into(operation, &row[visible.start..], value);
            if read.is_err() {
                // Not half of a value.
                value.clear();
            }
            read?;
        } else {
            value.extend_from_slice(&row[visible.start..]);
        }
        Ok(true)
    }

    /// Puts a value under a key. Returns whether the key existed.
    ///
    /// # Errors
    /// `KeyExists` (of the table, or of a unique index), `Conflict`, limits, storage errors. Nothing is
    /// changed then.
    pub fn put(&mut self, key: &[u8], value: &[u8], mode: Mode) -> Result<bool> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(TableError::ValueTooLong {
                length: value.len(),
                limit: VALUE_BYTES_MAX,
            });
        }
        let inline = value.len() <= inline_body_max(self.page_size(), key.len());
        if inline && self.shape.indexes.is_empty() && mode == Mode::Insert {
            // What is inserted replaces nothing: one step.
            return self
                .write_row(key, RowShape::INLINE, value, When::Mode(mode))
                .map(|w| w.existed);
        }
        self.atomically(|rows| rows.put_all(key, value, inline, When::Mode(mode)))
            .map(|w| w.existed)
    }

    pub(crate) fn put_all(
        &mut self,
        key: &[u8],
        value: &[u8],
        inline: bool,
        when: When<'_>,
    ) -> Result<Written> {
        let written = if inline {
            self.write_row(key, RowShape::INLINE, value, when)?
        } else {
            let chain = self.store.write_chain(&mut self.operation, value)?;
            let written = self.write_row(key, RowShape::CHAINED, &chain.encode(), when);
            let adopted = match &written {
                Ok(written) if written.changed => self.store.adopt(self.transaction, chain.root),
                _ => {
                    self.store
                        .give_up(self.transaction, chain.root, PendingKind::Chain);
                    Ok(())
                }
            };
            if let Err(error) = adopted {
                // The row refers to the chain until it is reverted.
                self.store
                    .give_up(self.transaction, chain.root, PendingKind::Chain);
                return Err(error.into());
            }
            if !matches!(&written, Ok(written) if written.changed) {
                self.store.free_given_up(self.transaction);
            }
            written?
        };
        if written.changed {
            self.after_write(key, &written, Some(value))?;
        }
        Ok(written)
    }

    #[inline]
    fn write_row(
        &mut self,
        key: &[u8],
        row_shape: RowShape,
        body: &[u8],
        when: When<'_>,
    ) -> Result<Written> {
        let view = View::of_statement(&self.operation);
        let shape = self.shape;
        let decide = |current: Option<Current<'_>>| {
            check_newest(shape)?;
            match (when, current) {
                (When::Mode(Mode::Insert), Some(_)) => Err(VersionError::KeyExists),
                (When::Mode(Mode::Replace) | When::Chain(_), None) => Ok(Change::Nothing),
                (When::Chain(chain), Some(now)) if !now.overflow || now.body != chain => {
                    Ok(Change::Nothing)
                }
                _ => Ok(Change::Put(row_shape, body)),
            }
        };
        let scratch = &mut self.buffers.scratch;
        let written = self.store.write(&view, &shape.tree, key, scratch, decide);
        written.map_err(|error| TableError::of(error, &shape.name))
    }

    /// What stands newest at a key, whoever wrote it.
    ///
    /// # Errors
    /// Storage errors.
    pub fn newest(&mut self, key: &[u8]) -> Result<Option<Newest>> {
        let view = View::of_statement(&self.operation);
        let scratch = &mut self.buffers.scratch;
        Ok(self.store.newest(&view, &self.shape.tree, key, scratch)?)
    }

    /// The last key that the table's tree has, whoever sees what stands there: tombstones count.
    ///
    /// # Errors
    /// Storage errors.
    pub fn last_key(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.shape.tree.last_key()?)
    }

    /// Deletes a key. Returns whether it existed.
    ///
    /// # Errors
    /// `Conflict`, storage errors. Nothing is changed then.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.atomically(|rows| {
            let view = View::of_statement(&rows.operation);
            let shape = rows.shape;
            let decide = |current: Option<Current<'_>>| {
                check_newest(shape)?;
                Ok(if current.is_some() {
                    Change::Delete
                } else {
                    Change::Nothing
                })
            };
            let scratch = &mut rows.buffers.scratch;
            let written = rows
                .store
                .write(&view, &shape.tree, key, scratch, decide)
                .map_err(|error| TableError::of(error, &shape.name))?;
            if written.changed {
                rows.after_write(key, &written, None)?;
            }
            Ok(written.existed)
        })
    }

    /// Changes byte ranges of a value in place. `change` gets a private copy of the whole value; only what it
    /// writes inside `ranges` counts. It may run more than once. Returns whether the key exists.
    ///
    /// # Errors
    /// `RangeOutsideValue`, `Conflict`, `ValueGone`, `ChangedBeneath`, storage errors. Nothing is changed then.
    pub fn update(
        &mut self,
        key: &[u8],
        ranges: &[Range<usize>],
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool> {
        loop {
            let view = View::of_statement(&self.operation);
            let Buffers {
                row,
                delta,
                scratch,
                ..
            } = &mut *self.buffers;
            let (tree, hints) = (&self.shape.tree, &mut scratch.hints);
            let Some(visible) = self
                .store
                .read_near(&view, tree, key, row, delta, hints, true)?
            else {
                if self.update_invisible(key)? {
                    // Committed since the statement's snapshot was drawn: the next one sees it.
                    continue;
                }
                return Ok(false);
            };
            if visible.overflow {
                row.drain(..visible.start);
                if self.update_large(key, ranges, change)? {
                    return Ok(true);
                }
                continue;
            }
            check_ranges(ranges, row.len() - visible.start)?;
            let Buffers { row, work, .. } = &mut *self.buffers;
            let mut copy = std::mem::take(work);
            copy.clear();
            copy.extend_from_slice(&row[visible.start..]);
            self.run_user_code(key, || change(&mut copy))?;
            let Buffers { row, work, .. } = &mut *self.buffers;
            *work = copy;
            keep_only(ranges, &row[visible.start..], work);
            let ranges = &*moved_apart(ranges);
            let touches = self
                .shape
                .indexes
                .iter()
                .any(|index| index.key.touched_by(ranges));
            let done = if touches {
                self.atomically(|rows| rows.patch(key, visible.start, ranges))?
            } else {
                self.patch_found(key, visible.start, ranges)?
                    || self.patch(key, visible.start, ranges)?
            };
            if done {
                return Ok(true);
            }
        }
    }

    /// Runs user code that changes a copy of a row's value (T6). It may do with its transaction what it likes, but for what the
    /// operation stands on.
    ///
    /// # Errors
    /// `ValueGone` if it rolled the table's shape back, `ChangedBeneath` if it made another one or wrote the row: judged as a write of
    /// somebody else, the first were a conflict that never ends, the second a change that is made anew without end.
    #[inline]
    pub(crate) fn run_user_code(&mut self, key: &[u8], code: impl FnOnce()) -> Result<()> {
        let transaction = self.transaction;
        let before = transaction.commands_drawn();
        self.operation.pause();
        code();
        self.operation.resume()?;
        if self.shape.is_void() {
            return Err(TableError::ValueGone);
        }
        // Commands are not drawn twice: nothing was written and stayed.
        if transaction.commands_drawn() == before {
            return Ok(());
        }
        self.check_beneath(key, before)
    }

    /// Refuses what user code did beneath the operation that had run it, with commands from `before` on.
    #[cold]
    fn check_beneath(&mut self, key: &[u8], before: u32) -> Result<()> {
        let transaction = self.transaction;
        if self.shape.is_followed(|by| transaction.is_own(by)) {
            return Err(TableError::ChangedBeneath {
                what: "the table or an index of it was made, dropped or loaded by the callback of an update of its row, in the same transaction",
            });
        }
        let newest = self.newest(key)?.and_then(|newest| newest.writer);
        if newest.is_some_and(|by| transaction.is_own(&by) && by.command >= before) {
            return Err(TableError::ChangedBeneath {
                what: "a row was written by the callback of its update, in the same transaction",
            });
        }
        Ok(())
    }

    /// Writes what `update` prepared, if the row's leaf is what it was; false, and nothing done, if it is not. No index
    /// is concerned.
    fn patch_found(
        &mut self,
        key: &[u8],
        body_start: usize,
        ranges: &[Range<usize>],
    ) -> Result<bool> {
        let view = View::of_statement(&self.operation);
        let shape = self.shape;
        let Buffers {
            scratch, row, work, ..
        } = &mut *self.buffers;
        let decide = || check_newest(shape).map(|()| Change::Patch(ranges, work));
        self.store
            .patch_found(&view, &shape.tree, key, scratch, (row, body_start), decide)
            .map_err(|error| TableError::of(error, &shape.name))
    }

    /// Writes what `update` prepared, if the row is still what it was; false if it is not. The row was read with its body
    /// from `body_start` on.
    fn patch(&mut self, key: &[u8], body_start: usize, ranges: &[Range<usize>]) -> Result<bool> {
        let view = View::of_statement(&self.operation);
        let shape = self.shape;
        let Buffers {
            scratch, row, work, ..
        } = &mut *self.buffers;
        row.drain(..body_start);
        let decide = |current: Option<Current<'_>>| {
            check_newest(shape)?;
            // Bytes, not names: see docs/design/0007-versions.md (ABA).
            let blind = planted::has(Bug::NoConflictCheck);
            let same = current.is_some_and(|now| {
                !now.overflow
                    && (now.body == row.as_slice() || blind && now.body.len() == row.len())
            });
            Ok(if same {
                Change::Patch(ranges, work)
            } else {
                Change::Nothing
            })
        };
        let written = self
            .store
            .write(&view, &shape.tree, key, scratch, decide)
            .map_err(|error| TableError::of(error, &shape.name))?;
        if written.changed
            && shape
                .indexes
                .iter()
                .any(|index| index.key.touched_by(ranges))
        {
            let (old, new) = (std::mem::take(row), std::mem::take(work));
            let moved = self.move_entries(key, Some(&old), Some(&new));
            (self.buffers.row, self.buffers.work) = (old, new);
            moved?;
        }
        Ok(written.changed)
    }

    /// The statement sees no row: nothing to update, or a conflict with who is inserting it. True if there is a row now
    /// that a statement of this transaction that starts now sees.
    fn update_invisible(&mut self, key: &[u8]) -> Result<bool> {
        let view = View::of_statement(&self.operation);
        let shape = self.shape;
        let decide = |_: Option<Current<'_>>| {
            check_newest(shape)?;
            Ok(Change::Nothing)
        };
        let written = self
            .store
            .write(&view, &shape.tree, key, &mut self.buffers.scratch, decide)
            .map_err(|error| TableError::of(error, &shape.name))?;
        Ok(written.existed && self.transaction.options().isolation == Isolation::ReadCommitted)
    }

    /// Indexes and chains after a row was written. `value` is the new one, `None` for a delete.
    fn after_write(&mut self, key: &[u8], written: &Written, value: Option<&[u8]>) -> Result<()> {
        let replaced = if written.existed {
            self.buffers.scratch.replaced()
        } else {
            None
        };
        let replaced = replaced.map(|(shape, body)| (shape.overflow, body));
        if self.shape.indexes.is_empty() && !replaced.is_some_and(|(overflow, _)| overflow) {
            return Ok(());
        }
        let mut old = Vec::new();
        let mut had = false;
        if let Some((overflow, body)) = replaced {
            had = true;
            if overflow {
                if !self.shape.indexes.is_empty() {
                    let most = self.shape.indexes.iter().map(|i| i.key.value_bytes());
                    let most = most.max().unwrap_or(0);
                    // Its row is replaced: what undo needs is not freed, whoever is withdrawn.
                    self.store
                        .read_chain_start(&mut self.operation, body, most, &mut old)?;
                }
                let version = self.buffers.scratch.replaced_version();
                let tree = self.shape.tree.root();
                self.store
                    .disown_chain(self.transaction, tree, body, version)?;
            } else {
                old.extend_from_slice(body);
            }
        }
        self.move_entries(key, had.then_some(old.as_slice()), value)
    }

    /// Brings the entries of a row in all indexes from the old value to the new one.
    fn move_entries(&mut self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<()> {
        for index in &self.shape.indexes {
            let Buffers {
                scratch,
                old_columns,
                new_columns,
                ..
            } = &mut *self.buffers;
            let view = View::of_statement(&self.operation);
            let writer = EntryWriter {
                store: self.store,
                view: &view,
                index,
            };
            let had = entry_key(&index.key, key, old, old_columns);
            if let Some(value) = new {
                writer.check_length(key, value)?;
            }
            let has = entry_key(&index.key, key, new, new_columns);
            if had && has && old_columns == new_columns {
                continue;
            }
            if had && !planted::has(Bug::IndexEntryKept) {
                writer.remove(old_columns, scratch)?;
            }
            if has {
                writer.insert(new_columns, key, scratch)?;
            }
        }
        Ok(())
    }

    /// T4.
    pub(crate) fn atomically<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let savepoint = self.transaction.savepoint();
        let result = work(self);
        if result.is_err() {
            revert_to(self.store, self.carried, self.transaction, &savepoint)
                .map_err(TableError::NotUndone)?;
        }
        result
    }
}

/// Reverts what a transaction did after a savepoint, and frees what that had made.
///
/// # Errors
/// Storage errors: some of it is reverted. Call again, or roll the transaction back.
pub fn revert_to(
    store: &VersionStore,
    carried: &Tree,
    transaction: &Transaction,
    savepoint: &Savepoint,
) -> std::result::Result<(), StorageError> {
    if !transaction.has_written() {
        return Ok(());
    }
    let log = transaction.domain().log().slot(transaction.slot());
    let mut reverter = Reverter::running(store, log, carried);
    transaction.rollback_to(savepoint, &mut reverter as &mut dyn Undo)?;
    reverter.join_leaves()?;
    // Everything is reverted: no row refers to what that had made.
    store.free_given_up(transaction);
    Ok(())
}

/// T2.
#[inline]
fn check_newest(shape: &Shape) -> std::result::Result<(), VersionError> {
    if shape.is_newest() {
        Ok(())
    } else {
        Err(VersionError::Conflict)
    }
}

pub(crate) fn check_ranges(ranges: &[Range<usize>], length: usize) -> Result<()> {
    for range in ranges {
        if range.start > range.end || range.end > length {
            let (start, end) = (range.start, range.end);
            return Err(TableError::RangeOutsideValue { start, end, length });
        }
    }
    Ok(())
}

/// The same bytes, and maybe a few between them, as ranges that are apart: many small ones, or ones that
/// overlap, would make before-images longer than the row.
pub(crate) fn moved_apart(ranges: &[Range<usize>]) -> Cow<'_, [Range<usize>]> {
    if are_apart(ranges) {
        return Cow::Borrowed(ranges);
    }
    let mut sorted: Vec<_> = ranges
        .iter()
        .filter(|range| !range.is_empty())
        .cloned()
        .collect();
    sorted.sort_unstable_by_key(|range| range.start);
    sorted.dedup_by(|next, last| {
        let joins = next.start <= last.end + RANGE_BYTES;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    debug_assert!(are_apart(&sorted));
    Cow::Owned(sorted)
}

/// Puts the key of a row's entry in an index into `out`; false if it has none there.
fn entry_key(
    description: &KeyDescription,
    key: &[u8],
    value: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> bool {
    value.is_some_and(|value| description.entry(key, value, out))
}

/// Writes entries of one index.
pub(crate) struct EntryWriter<'e> {
    pub store: &'e VersionStore,
    pub view: &'e View<'e>,
    pub index: &'e Index,
}

impl EntryWriter<'_> {
    fn remove(&self, entry: &[u8], scratch: &mut Scratch) -> Result<()> {
        let decide = |current: Option<Current<'_>>| {
            Ok(if current.is_some() {
                Change::Delete
            } else {
                Change::Nothing
            })
        };
        let written = self
            .store
            .write(self.view, &self.index.tree, entry, scratch, decide)
            .map_err(|error| TableError::of(error, &self.index.name))?;
        if !written.existed {
            // T5 does not hold: bytes that nobody wrote.
            return Err(StorageError::Corruption {
                file: "data".into(),
                page: Some(self.index.tree.root()),
                what: "entries of an index for a row",
                expected: 1,
                found: 0,
            }
            .into());
        }
        Ok(())
    }

    /// The longest key of an entry whose body is a primary key of `body` bytes: both share a row.
    fn key_max(&self, body: usize) -> usize {
        let page_size = self.store.context().page_size();
        // What a short key leaves for the body, and that short key.
        let room = inline_body_max(page_size, 0) + KEY_BYTES;
        buried_key_max(page_size).min(room.saturating_sub(body))
    }

    /// Refuses the entry of a large value that is too long before it is made: it would be as long as the value.
    fn check_length(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if value.len() <= self.store.context().page_size() {
            return Ok(());
        }
        let (length, limit) = (
            self.index.key.entry_bytes_min(key, value),
            self.key_max(key.len()),
        );
        if length > limit && self.index.key.has_entry(key, value) {
            return Err(TableError::KeyTooLong { length, limit });
        }
        Ok(())
    }

    pub(crate) fn insert(&self, entry: &[u8], key: &[u8], scratch: &mut Scratch) -> Result<()> {
        let limit = self.key_max(key.len());
        if entry.len() > limit {
            return Err(TableError::KeyTooLong {
                length: entry.len(),
                limit,
            });
        }
        let decide = |current: Option<Current<'_>>| {
            if current.is_some() {
                return Err(VersionError::KeyExists);
            }
            Ok(Change::Put(RowShape::INLINE, key))
        };
        self.store
            .write(self.view, &self.index.tree, entry, scratch, decide)
            .map_err(|error| TableError::of(error, &self.index.name))?;
        Ok(())
    }

    /// Adds the entry of an existing row: for an index that is being built.
    ///
    /// # Errors
    /// `KeyExists` where a unique index would hold two rows, limits, storage errors.
    pub(crate) fn add(
        &self,
        key: &[u8],
        value: &[u8],
        columns: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.check_length(key, value)?;
        if entry_key(&self.index.key, key, Some(value), columns) {
            self.insert(columns, key, scratch)?;
        }
        Ok(())
    }
}

/// Enters existing rows into an index that is being built.
#[derive(Debug)]
pub struct IndexFiller<'f> {
    store: &'f VersionStore,
    index: &'f Index,
    scratch: Scratch,
    columns: Vec<u8>,
}

impl<'f> IndexFiller<'f> {
    /// A filler of `index`.
    pub fn new(store: &'f VersionStore, index: &'f Index) -> Self {
        let (scratch, columns) = (Scratch::default(), Vec::new());
        Self {
            store,
            index,
            scratch,
            columns,
        }
    }

    /// Adds the entry of one row, which was found in the same operation.
    ///
    /// # Errors
    /// `KeyExists` where a unique index would hold two rows, `KeyTooLong`, storage errors.
    pub fn add(&mut self, operation: &Operation<'_>, key: &[u8], value: &[u8]) -> Result<()> {
        let view = View::of_statement(operation);
        let writer = EntryWriter {
            store: self.store,
            view: &view,
            index: self.index,
        };
        writer.add(key, value, &mut self.columns, &mut self.scratch)
    }
}
