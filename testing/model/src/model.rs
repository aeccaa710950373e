//! The model: transactions over tables of versions, in one thread, with the answers that the
//! embedded API must give.
//!
//! Time is counted in commits that wrote something ([`crate::rows`]). The catalog is a table like
//! the others (name to table number), so that creating, dropping and listing tables follows the
//! same rules as rows do.
//!
//! Invariants:
//! - I1 A command number is drawn by every operation and never used again, also after a rollback to a
//!   savepoint.
//! - I2 After a conflict a transaction keeps what it wrote until it is rolled back, and can do
//!   nothing else.
//! - I3 `acknowledged <= commits`; a commit that waited makes everything before it acknowledged.
//!
//! Not here: time-outs, limits of space, errors of disks.

use crate::cursor::{Cursor, Place};
use crate::defect::Defect;
use crate::rows::{Rows, Version, View};
use crate::step::{Answer, Begin, Class, Contents, Key, KeyRange, Operation, Refusal, TxNumber};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Nobody's transaction number: a view with it sees commits only.
const NOBODY: TxNumber = TxNumber::MAX;
/// The catalog's number among the tables.
const CATALOG: u32 = 0;
const EVERYTHING: KeyRange = (Bound::Unbounded, Bound::Unbounded);

type Result<T> = std::result::Result<T, Refusal>;

/// An open transaction.
#[derive(Clone, Debug, Default)]
pub struct Open {
    how: Begin,
    snapshot: u64,
    command: u64,
    /// Savepoints in the order they were made, with the first command after each.
    savepoints: Vec<(u32, u64)>,
    cursors: BTreeMap<u32, Cursor>,
    /// What was written, with which command, in order.
    written: Vec<(u32, Key, u64)>,
    /// It conflicted.
    over: bool,
}

/// The store.
#[derive(Clone, Debug)]
pub struct Model {
    tables: BTreeMap<u32, Rows>,
    open: BTreeMap<TxNumber, Open>,
    commits: u64,
    acknowledged: u64,
    key_limit: usize,
    defect: Option<Defect>,
}

impl Model {
    /// An empty store with a limit for the length of keys, right or with a mistake.
    pub fn new(key_limit: usize, defect: Option<Defect>) -> Self {
        Self {
            tables: BTreeMap::from([(CATALOG, Rows::default())]),
            open: BTreeMap::new(),
            commits: 0,
            acknowledged: 0,
            key_limit,
            defect,
        }
    }

    /// A store that holds what one commit left, all of it durable.
    pub fn of_contents(key_limit: usize, contents: &Contents) -> Self {
        let mut model = Self::new(key_limit, None);
        if contents.is_empty() {
            return model;
        }
        let version = |value: &[u8]| Version {
            writer: NOBODY - 1,
            command: 0,
            commit: Some(0),
            value: Some(Arc::from(value)),
        };
        for (number, (name, content)) in (1_u32..).zip(contents) {
            let catalog = model.tables.entry(CATALOG).or_default();
            catalog.push(name_key(name), version(&number.to_le_bytes()));
            let rows = model.tables.entry(number).or_default();
            content
                .iter()
                .for_each(|(key, value)| rows.push(key.clone(), version(value)));
        }
        (model.commits, model.acknowledged) = (1, 1);
        model
    }

    /// How many transactions with writes have committed.
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// How many of them must survive anything.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Numbers of the open transactions, ascending.
    pub fn open_transactions(&self) -> impl Iterator<Item = TxNumber> {
        self.open.keys().copied()
    }

    /// An open transaction, for whoever generates the next step.
    pub fn transaction(&self, tx: TxNumber) -> Option<&Open> {
        self.open.get(&tx)
    }

    /// Whether a table of this name is committed.
    pub fn contains_table(&self, name: &str) -> bool {
        let view = View {
            reader: NOBODY,
            snapshot: self.commits,
            command: 0,
        };
        self.table_number(name, view).is_ok()
    }

    /// A row of the table of this name (in its newest state) at or above `from`.
    pub fn some_key_from(&self, table: &str, from: &Key) -> Option<Key> {
        let view = View {
            reader: NOBODY,
            snapshot: self.commits,
            command: 0,
        };
        let number = self.table_number(table, view).ok()?;
        self.tables.get(&number)?.some_key_from(from).cloned()
    }

    /// Everything that a snapshot after the first `commits` commits sees.
    pub fn contents_at(&self, commits: u64) -> Contents {
        let view = View {
            reader: NOBODY,
            snapshot: commits,
            command: 0,
        };
        let mut contents = Vec::new();
        for (name, number) in self.tables[&CATALOG].range(&EVERYTHING, view, self.defect) {
            let rows = self.tables[&table_number_of(&number)].range(&EVERYTHING, view, self.defect);
            let rows = rows
                .map(|(key, value)| (key.clone(), value.to_vec()))
                .collect();
            contents.push((String::from_utf8_lossy(&name.0).into_owned(), rows));
        }
        contents
    }

    /// The database is closed in good order and opened: open transactions are gone, everything
    /// committed is durable.
    pub fn reopen(&mut self) {
        self.acknowledged = self.commits;
        self.restart_at(self.commits);
    }

    /// The database is what it was after the first `commits` commits; nothing is open.
    pub fn restart_at(&mut self, commits: u64) {
        assert!(
            self.acknowledged <= commits && commits <= self.commits,
            "I3"
        );
        self.forget_after(commits);
    }

    /// [`Self::restart_at`] without a regard for what was acknowledged: what a wrong subject does.
    pub fn forget_after(&mut self, commits: u64) {
        self.open.clear();
        self.tables
            .values_mut()
            .for_each(|rows| rows.truncate(commits));
        self.commits = commits;
        self.acknowledged = commits;
    }

    /// Takes an acknowledgement back: the commit that would have given it failed.
    pub fn unacknowledge(&mut self, acknowledged: u64) {
        assert!(acknowledged <= self.acknowledged, "I3");
        self.acknowledged = acknowledged;
    }

    /// Forgets versions: what a wrong subject does.
    pub fn forget(&mut self, mut lost: impl FnMut(&Version) -> bool) {
        self.tables
            .values_mut()
            .for_each(|rows| rows.retain(|version| !lost(version)));
    }

    /// True if the answer depends on what was collected: a bulk load into a table with nothing but deleted
    /// rows. It closes the table to concurrent writers if their remains are gone, and does not if they are not. (Who does not see
    /// one of the deletes loads row by row, whether or not that row's remains are gone.)
    pub fn is_uncertain(&self, tx: TxNumber, operation: &Operation) -> bool {
        let (Operation::BulkLoad { table, .. }, Some(open)) = (operation, self.open.get(&tx))
        else {
            return false;
        };
        let snapshot = if open.how.read_committed {
            self.commits
        } else {
            open.snapshot
        };
        let view = View {
            reader: tx,
            snapshot,
            command: open.command + 1,
        };
        let rows = self.rows(table, view);
        rows.is_ok_and(|rows| {
            !rows.is_untouched() && !rows.holds_something() && rows.are_seen(view)
        })
    }

    /// True for a write that finds no row, of an analytical transaction, where the newest version is a committed delete that it
    /// does not see: once that row is dropped (its every version lies between two snapshots), the write changes nothing
    /// and need not conflict.
    pub fn may_find_dropped(&self, tx: TxNumber, operation: &Operation) -> bool {
        let (
            Operation::Delete { table, key }
            | Operation::Replace { table, key, .. }
            | Operation::Update { table, key, .. },
            Some(open),
        ) = (operation, self.open.get(&tx))
        else {
            return false;
        };
        let view = View {
            reader: tx,
            snapshot: open.snapshot,
            command: open.command + 1,
        };
        open.may_be_careful()
            && self.rows(table, view).is_ok_and(|rows| {
                rows.get(key, view, None).is_none() && rows.newest_is_deleted(key)
            })
    }

    /// The last operation was answered with a conflict here, but need not have been one.
    pub fn forgive(&mut self, tx: TxNumber) {
        if let Some(open) = self.open.get_mut(&tx) {
            open.over = false;
        }
    }

    /// Begins a transaction; its number must be new.
    pub fn begin(&mut self, tx: TxNumber, how: Begin) -> Answer {
        let open = Open {
            how,
            snapshot: self.commits,
            ..Open::default()
        };
        let old = self.open.insert(tx, open);
        assert!(
            old.is_none() && tx != NOBODY,
            "transaction number {tx} is used twice"
        );
        Answer::Done
    }

    /// Applies an operation of an open transaction.
    pub fn apply(&mut self, tx: TxNumber, operation: &Operation) -> Answer {
        if !self.open.contains_key(&tx) {
            return Answer::Skipped;
        }
        let answer = match operation {
            Operation::Commit { .. } => self.commit(tx),
            Operation::Rollback | Operation::Abandon => {
                self.revert(tx, 0);
                self.open.remove(&tx);
                Ok(Answer::Done)
            }
            _ => self.statement(tx, operation),
        };
        let answer = answer.unwrap_or_else(|refusal| {
            if let (Refusal::Conflict, Some(open)) = (&refusal, self.open.get_mut(&tx)) {
                open.over = true;
            }
            Answer::Refused(refusal)
        });
        if cfg!(debug_assertions) && operation.ends() {
            self.tables.values().for_each(Rows::check);
        }
        answer
    }

    /// The transaction conflicted, whatever its last operation was answered here.
    pub fn conflict(&mut self, tx: TxNumber) {
        if let Some(open) = self.open.get_mut(&tx) {
            open.over = true;
        }
    }

    fn commit(&mut self, tx: TxNumber) -> Result<Answer> {
        if self.open[&tx].over {
            self.revert(tx, 0);
            self.open.remove(&tx);
            return Err(Refusal::TransactionOver);
        }
        let open = self.open.remove(&tx).expect("the caller looked");
        let mut seen = open.snapshot;
        if !open.written.is_empty() {
            for (table, key, _) in &open.written {
                let rows = self.tables.get_mut(table).expect("it was written");
                rows.commit(key, tx, self.commits);
            }
            self.commits += 1;
            seen = self.commits;
        }
        if !open.how.no_wait {
            self.acknowledged = self.acknowledged.max(seen);
        }
        Ok(Answer::Done)
    }

    /// Takes back what a transaction wrote with this command or a later one.
    fn revert(&mut self, tx: TxNumber, command: u64) {
        let defect = self.defect;
        let open = self.open.get_mut(&tx).expect("the caller looked");
        let first = open
            .written
            .partition_point(|(_, _, written)| *written < command);
        let spared = usize::from(defect == Some(Defect::SavepointKeepsAWrite) && command > 0);
        let first = (first + spared).min(open.written.len());
        let first = first.saturating_sub(usize::from(
            defect == Some(Defect::SavepointLosesAWrite) && command > 0,
        ));
        for (table, key, written) in open.written.drain(first..) {
            let rows = self.tables.get_mut(&table).expect("it was written");
            rows.revert(&key, tx, written, defect);
        }
    }

    /// Anything but the end of a transaction.
    fn statement(&mut self, tx: TxNumber, operation: &Operation) -> Result<Answer> {
        let (commits, defect) = (self.commits, self.defect);
        let open = self.open.get_mut(&tx).expect("the caller looked");
        if let Operation::CloseCursor { cursor } = operation {
            let closed = open.cursors.remove(cursor);
            return Ok(closed.map_or(Answer::Skipped, |_| Answer::Done));
        }
        let known = match operation {
            Operation::Next { cursor, .. }
            | Operation::Prev { cursor, .. }
            | Operation::Batch { cursor, .. }
            | Operation::Seek { cursor, .. } => open.cursors.contains_key(cursor),
            Operation::RollbackTo { savepoint } => open.savepoints().any(|one| one == *savepoint),
            _ => true,
        };
        if !known {
            return Ok(Answer::Skipped);
        }
        // Seeking reads nothing, so it has nothing to refuse.
        if open.over && !matches!(operation, Operation::Seek { .. }) {
            return Err(Refusal::TransactionOver);
        }
        let fresh = match defect {
            Some(Defect::ReadCommittedIsStale) => false,
            Some(Defect::SnapshotIsFresh) => true,
            _ => open.how.read_committed,
        };
        // What reads nothing needs no snapshot, and has seen no commit for which its end would have to wait.
        let reads = !matches!(
            operation,
            Operation::Savepoint { .. } | Operation::RollbackTo { .. } | Operation::Seek { .. }
        );
        if fresh && reads {
            open.snapshot = commits;
        }
        open.command += 1;
        let view = View {
            reader: tx,
            snapshot: open.snapshot,
            command: open.command,
        };
        match operation {
            Operation::CreateTable { table } => self.create_table(view, table),
            Operation::DropTable { table } => {
                self.table_number(table, view)?;
                self.may_write(tx)?;
                self.write(view, CATALOG, name_key(table), None)?;
                Ok(Answer::Done)
            }
            Operation::Tables => {
                let unfinished = defect == Some(Defect::ListsUncommittedTables);
                let defect = if unfinished {
                    Some(Defect::SeesUncommitted)
                } else {
                    defect
                };
                let names = self.tables[&CATALOG].range(&EVERYTHING, view, defect);
                let names = names.map(|(key, _)| String::from_utf8_lossy(&key.0).into_owned());
                Ok(Answer::Names(names.collect()))
            }
            Operation::Get { table, key, .. } => {
                let value = self.rows(table, view)?.get(key, view, defect);
                Ok(Answer::Row(value.map(|value| value.to_vec())))
            }
            Operation::MultiGet { table, keys } => {
                let rows = self.rows(table, view)?;
                let get = |key| rows.get(key, view, defect).map(|value| value.to_vec());
                Ok(Answer::ManyRows(keys.iter().map(get).collect()))
            }
            Operation::Count { table, range } => Ok(Answer::Count(
                self.rows(table, view)?.count(range, view, defect),
            )),
            Operation::Scan {
                table,
                range,
                backward,
                limit,
            } => {
                let rows = self.rows(table, view)?.range(range, view, defect);
                let own = |(key, value): (&Key, Arc<[u8]>)| (key.clone(), value.to_vec());
                let skip = usize::from(defect == Some(Defect::BackwardSkipsTheLast));
                Ok(Answer::Rows(if *backward {
                    rows.rev().skip(skip).map(own).take(*limit).collect()
                } else {
                    rows.map(own).take(*limit).collect()
                }))
            }
            Operation::OpenCursor {
                cursor,
                table,
                range,
            } => {
                let table = self.table_number(table, view)?;
                let cursors = &mut self.open.get_mut(&tx).expect("the caller looked").cursors;
                let place = Place::Fresh;
                let old = cursors.insert(
                    *cursor,
                    Cursor {
                        table,
                        range: range.clone(),
                        view,
                        place,
                    },
                );
                assert!(old.is_none(), "cursor number {cursor} is used twice");
                Ok(Answer::Done)
            }
            Operation::Next { cursor, count } => self.step_cursor(tx, *cursor, *count, false),
            Operation::Batch { cursor, backward } => self.step_cursor(tx, *cursor, 1, *backward),
            Operation::Prev { cursor, count } => self.step_cursor(tx, *cursor, *count, true),
            Operation::Seek { cursor, key } => {
                let open = self.open.get_mut(&tx).expect("the caller looked");
                let Some(cursor) = open.cursors.get_mut(cursor) else {
                    return Ok(Answer::Skipped);
                };
                cursor.place = Place::Before(key.clone());
                Ok(Answer::Done)
            }
            Operation::Savepoint { savepoint } => {
                let open = self.open.get_mut(&tx).expect("the caller looked");
                open.savepoints.push((*savepoint, view.command));
                Ok(Answer::Done)
            }
            Operation::RollbackTo { savepoint } => {
                let open = self.open.get_mut(&tx).expect("the caller looked");
                let known = open
                    .savepoints
                    .iter()
                    .position(|(number, _)| number == savepoint);
                let Some(index) = known else {
                    return Ok(Answer::Skipped);
                };
                let command = open.savepoints[index].1;
                open.savepoints.truncate(index + 1);
                self.revert(tx, command);
                Ok(Answer::Done)
            }
            _ => self.write_row(view, operation),
        }
    }

    fn create_table(&mut self, view: View, name: &str) -> Result<Answer> {
        self.may_write(view.reader)?;
        let key = name_key(name);
        if self.table_number(name, view).is_ok() {
            return Err(Refusal::TableExists);
        }
        self.tables[&CATALOG].check_writable(&key, view, self.defect)?;
        let mut number = self.tables.keys().next_back().map_or(1, |last| last + 1);
        if self.defect == Some(Defect::RecreatedTableKeepsRows) && number > 1 {
            number -= 1;
        }
        self.tables.entry(number).or_default();
        self.write(view, CATALOG, key, Some(&number.to_le_bytes()))?;
        Ok(Answer::Done)
    }

    /// The operations that write rows.
    fn write_row(&mut self, view: View, operation: &Operation) -> Result<Answer> {
        let (name, keys): (&String, &[&Key]) = match operation {
            Operation::Insert { table, key, .. }
            | Operation::Upsert { table, key, .. }
            | Operation::Replace { table, key, .. }
            | Operation::Update { table, key, .. }
            | Operation::Delete { table, key } => (table, &[key]),
            Operation::BulkLoad { table, rows } => {
                (table, &rows.iter().map(|(key, _)| key).collect::<Vec<_>>())
            }
            other => unreachable!("{other:?} writes no row"),
        };
        let table = self.table_number(name, view)?;
        self.may_write(view.reader)?;
        if keys.iter().any(|key| key.0.len() > self.key_limit) {
            // There is no such row: nothing to delete or to change in place, and nobody to conflict with.
            let puts = !matches!(
                operation,
                Operation::Delete { .. } | Operation::Update { .. }
            );
            return if puts {
                Err(Refusal::KeyTooLong)
            } else {
                Ok(Answer::Found(false))
            };
        }
        if !keys.is_sorted_by(|a, b| a < b) {
            return Err(Refusal::InvalidArgument);
        }
        let mut before = None;
        for key in keys {
            let rows = &self.tables[&table];
            if let Operation::Update { ranges, .. } = operation {
                // It begins by reading what the statement sees, before anybody else's write matters.
                let seen = rows.get(key, view, self.defect);
                let outside = |value: &Arc<[u8]>| {
                    ranges
                        .iter()
                        .any(|(start, end)| value.get(*start..*end).is_none())
                };
                if seen.as_ref().is_some_and(outside) {
                    return Err(Refusal::RangeOutsideValue);
                }
            }
            rows.check_writable(key, view, self.defect)?;
            // Who creates, drops or changes a table is a writer of it, too.
            self.tables[&CATALOG].check_writable(&name_key(name), view, self.defect)?;
            before = rows.get(key, view, self.defect);
            let insert = matches!(
                operation,
                Operation::Insert { .. } | Operation::BulkLoad { .. }
            );
            if insert && before.is_some() {
                return Err(Refusal::KeyExists);
            }
        }
        if matches!(operation, Operation::BulkLoad { .. }) && self.tables[&table].is_untouched() {
            // The rows go to a tree of their own, which changes the table: for concurrent writers it is as if
            // it was created now.
            self.write(view, CATALOG, name_key(name), Some(&table.to_le_bytes()))?;
        }
        let found = before.is_some();
        match operation {
            Operation::Insert { key, value, .. } => {
                self.write(view, table, key.clone(), Some(&value.bytes()))?;
                return Ok(Answer::Done);
            }
            Operation::BulkLoad { rows, .. } => {
                for (key, value) in rows {
                    self.write(view, table, key.clone(), Some(&value.bytes()))?;
                }
                return Ok(Answer::Done);
            }
            Operation::Upsert { key, value, .. } => {
                self.write(view, table, key.clone(), Some(&value.bytes()))?;
            }
            Operation::Replace { key, value, .. } if found => {
                self.write(view, table, key.clone(), Some(&value.bytes()))?;
            }
            Operation::Delete { key, .. } if found => {
                self.write(view, table, key.clone(), None)?;
            }
            Operation::Update {
                key, ranges, with, ..
            } => {
                let Some(before) = before else {
                    return Ok(Answer::Found(false));
                };
                let mut after = before.to_vec();
                for (start, end) in ranges {
                    let range = &mut after[*start..*end];
                    let short = usize::from(self.defect == Some(Defect::UpdateFallsShort));
                    let length = range.len().saturating_sub(short);
                    range[..length].iter_mut().for_each(|byte| *byte ^= with);
                }
                self.write(view, table, key.clone(), Some(&after))?;
            }
            _ => {}
        }
        Ok(Answer::Found(found))
    }

    /// Puts a version on top, if first writer wins allows it.
    fn write(&mut self, view: View, table: u32, key: Key, value: Option<&[u8]>) -> Result<()> {
        let rows = self.tables.get_mut(&table).expect("numbers of tables stay");
        rows.check_writable(&key, view, self.defect)?;
        let (writer, command) = (view.reader, view.command);
        rows.push(
            key.clone(),
            Version {
                writer,
                command,
                commit: None,
                value: value.map(Arc::from),
            },
        );
        let open = self.open.get_mut(&writer).expect("the caller looked");
        open.written.push((table, key, command));
        Ok(())
    }

    fn step_cursor(
        &mut self,
        tx: TxNumber,
        cursor: u32,
        count: usize,
        backward: bool,
    ) -> Result<Answer> {
        let open = self.open.get_mut(&tx).expect("the caller looked");
        let newest = (open.snapshot, open.command);
        let Some(cursor) = open.cursors.get_mut(&cursor) else {
            return Ok(Answer::Skipped);
        };
        let mut view = cursor.view;
        match self.defect {
            Some(Defect::CursorSeesLaterWrites) => view.command = newest.1,
            Some(Defect::CursorForgetsItsSnapshot) => view.snapshot = newest.0,
            _ => {}
        }
        let rows = &self.tables[&cursor.table];
        let own = |(key, value): (&Key, Arc<[u8]>)| (key.clone(), value.to_vec());
        let range = if backward {
            cursor.behind()
        } else {
            cursor.ahead()
        };
        let taken: Vec<_> = match range {
            None => Vec::new(),
            Some(range) if backward => rows
                .range(&range, view, self.defect)
                .rev()
                .take(count)
                .map(own)
                .collect(),
            Some(range) => rows
                .range(&range, view, self.defect)
                .take(count)
                .map(own)
                .collect(),
        };
        match taken.last() {
            Some((key, _)) if taken.len() == count => cursor.place = Place::On(key.clone()),
            _ if count == 0 => {}
            _ => cursor.place = if backward { Place::Start } else { Place::End },
        }
        Ok(Answer::Rows(taken))
    }

    fn may_write(&self, tx: TxNumber) -> Result<()> {
        if self.open[&tx].how.read_only {
            Err(Refusal::ReadOnly)
        } else {
            Ok(())
        }
    }

    fn table_number(&self, name: &str, view: View) -> Result<u32> {
        let number = self.tables[&CATALOG].get(&name_key(name), view, self.defect);
        number
            .map(|number| table_number_of(&number))
            .ok_or(Refusal::NoSuchTable)
    }

    fn rows(&self, name: &str, view: View) -> Result<&Rows> {
        Ok(&self.tables[&self.table_number(name, view)?])
    }
}

impl Open {
    /// Whether it may be told a conflict that is none: an analytical writer that finds no row for its key, or makes an
    /// index, cannot always know that there was none after its snapshot.
    pub fn may_be_careful(&self) -> bool {
        !self.how.read_committed && matches!(self.how.class, Class::Auto | Class::Olap)
    }

    /// Whether it conflicted and can only be rolled back.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether it was begun read-only.
    pub fn is_read_only(&self) -> bool {
        self.how.read_only
    }

    /// The numbers of its savepoints that can be rolled back to.
    pub fn savepoints(&self) -> impl ExactSizeIterator<Item = u32> {
        self.savepoints.iter().map(|(number, _)| *number)
    }

    /// The numbers of its open cursors.
    pub fn cursors(&self) -> impl ExactSizeIterator<Item = u32> {
        self.cursors.keys().copied()
    }

    /// How many writes it holds.
    pub fn writes(&self) -> usize {
        self.written.len()
    }
}

fn name_key(name: &str) -> Key {
    Key(name.as_bytes().to_vec())
}

fn table_number_of(value: &[u8]) -> u32 {
    // An empty value is what the defect that shows tombstones makes of one.
    value.try_into().map_or(CATALOG, u32::from_le_bytes)
}
