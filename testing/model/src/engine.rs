//! Vellum's engine as a subject: the one place where this package meets the embedded API.
//!
//! Cursors borrow their transaction, and a history keeps many transactions with cursors open at once.
//! So each open transaction lives on the stack of a thread of its own, which takes one
//! operation at a time and answers before the next is sent: threads here change nothing about the order.
//!
//! Not here: real concurrency. Only one thread ever runs.

use crate::given::given_load;
use crate::step::{
    Answer, Begin, Class, Contents, CursorNumber, Key, KeyRange, Operation, Refusal, Step, TxNumber,
};
use crate::subject::Subject;
use std::any::Any;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use vellum::{
    Config, Cursor, Database, Durability, Error, Isolation, KeyDescription, KeyPart, PendingCommit,
    Savepoint, Source, Statistics, Table, Transaction, TransactionOptions, VersionKind,
};
use vellum_base::random::Random;
use vellum_io::{MemoryDirectory, PowerCut, SimulatedDirectory};

/// The engine on a simulated disk.
pub struct EngineSubject {
    config: Config,
    disk: SimulatedDirectory,
    /// `None` after an open that failed.
    database: Option<Database>,
    open: BTreeMap<TxNumber, Worker>,
    handles: Handles,
    /// Every table has an index, which is compared with it wherever all of it is read.
    index: Option<KeyDescription>,
    happened: Happened,
}

/// What a version store did in all lives of the databases that share this.
#[derive(Clone, Default)]
pub struct Happened(Arc<Mutex<Counts>>);

/// Counts of what a version store did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Transactions that were promoted.
    pub promotions: u64,
    /// Deleted rows that went to a graveyard.
    pub moved: u64,
    /// Rows that turned fat.
    pub fat: u64,
}

impl Happened {
    /// The sums so far.
    pub fn counts(&self) -> Counts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, database: &Database) {
        let statistics = database.statistics();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.promotions += statistics.promotions;
        counts.moved += statistics.rows_moved;
        counts.fat += statistics.fat_rows_made;
    }
}

/// Handles of tables that some transaction has found, by name: any other may use them that sees the table. So a table is worked on through
/// handles that were made before and after it was changed, dropped and made again, in turns.
#[derive(Clone, Default)]
struct Handles(Arc<Mutex<BTreeMap<String, (u32, Vec<Table>)>>>);

impl Handles {
    /// Most handles that are kept of one name.
    const KEPT: usize = 6;

    /// A handle of the table of this name that `transaction` sees: one that was kept, or the one that it finds.
    fn find(&self, transaction: &Transaction, name: &str) -> Result<Table, Error> {
        // The thread that holds this panics nowhere in between.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, kept) = all.entry(name.to_owned()).or_default();
        *asked += 1;
        let turn = *asked as usize % (Self::KEPT + 2);
        if let Some(handle) = kept.get(turn) {
            // Whether it is a handle of the table that this transaction sees.
            match transaction.indexes(handle) {
                Err(Error::NoSuchTable { .. }) => {}
                other => return other.map(|_| handle.clone()),
            }
        }
        let found = transaction.table(name)?;
        if kept.len() == Self::KEPT {
            kept.remove(turn % Self::KEPT);
        }
        kept.push(found.clone());
        Ok(found)
    }
}

/// Steps of background work after which there is something wrong if there is still more.
const UNITS_MAX: u32 = 2000;
/// Steps without work after which all that failed has been tried again (the version store's patience ends at 256).
const PATIENCE_STEPS: u32 = 600;

/// The index of every table.
const INDEX: &str = "by value";

fn index_key(end: Option<u32>) -> KeyDescription {
    let part = KeyPart {
        source: Source::Value,
        start: 0,
        end,
    };
    KeyDescription::new(vec![part], false).expect("a key of one part")
}

impl EngineSubject {
    /// Opens (or creates) a database on a simulated disk.
    ///
    /// # Errors
    /// What the engine says.
    pub fn open(disk: &SimulatedDirectory, config: &Config) -> Result<Self, Error> {
        let mut subject = Self {
            config: config.clone(),
            disk: disk.clone(),
            database: None,
            open: BTreeMap::new(),
            handles: Handles::default(),
            index: None,
            happened: Happened::default(),
        };
        subject.start()?;
        Ok(subject)
    }

    /// The same, with an index for every table that is made, by the first bytes of its values: its entries are compared with the rows
    /// wherever all of them are read.
    #[must_use]
    pub fn with_indexes(mut self) -> Self {
        self.index = Some(index_key(Some(2)));
        self
    }

    /// The same by all of the value, whatever its length. Values must be short enough for an entry.
    #[must_use]
    pub fn with_indexes_to_the_end(mut self) -> Self {
        self.index = Some(index_key(None));
        self
    }

    /// The same; what its version store did is added to `happened` when a life of the database ends.
    #[must_use]
    pub fn counting(mut self, happened: &Happened) -> Self {
        self.happened = happened.clone();
        self
    }

    /// What the database says of itself; `None` after an open that failed.
    pub fn statistics(&self) -> Option<Statistics> {
        self.database.as_ref().map(Database::statistics)
    }

    fn count(&self) {
        if let Some(database) = &self.database {
            self.happened.add(database);
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        self.handles = Handles::default();
        let directory = Arc::new(self.disk.clone());
        self.database = Some(Database::open_directory(directory, self.config.clone())?);
        Ok(())
    }

    fn database(&self) -> Result<&Database, Error> {
        self.database.as_ref().ok_or(Error::Poisoned)
    }

    fn begin(&mut self, tx: TxNumber, how: Begin) -> Result<Answer, Error> {
        let isolation = if how.read_committed {
            Isolation::ReadCommitted
        } else {
            Isolation::Snapshot
        };
        let durability = if how.no_wait {
            Durability::Async
        } else {
            Durability::Sync
        };
        let options = TransactionOptions::default()
            .isolation(isolation)
            .durability(durability)
            .read_only(how.read_only)
            .class(match how.class {
                Class::Short | Class::Auto => vellum::Class::Auto,
                Class::Oltp => vellum::Class::Oltp,
                Class::Olap => vellum::Class::Olap,
            })
            .slot_timeout(Duration::ZERO);
        let transaction = self.database()?.begin_with(options)?;
        self.open.insert(
            tx,
            Worker::start(transaction, self.handles.clone(), self.index.clone()),
        );
        Ok(Answer::Done)
    }

    fn outside(&mut self, step: &Step) -> Result<Answer, Error> {
        match step {
            Step::Background { units } => {
                let database = self.database()?;
                for _ in 0..*units {
                    if !database.step()? {
                        break;
                    }
                }
            }
            Step::Checkpoint => self.database()?.checkpoint()?,
            Step::Backup => return self.copied(),
            Step::Truncate => drop(self.database()?.truncate()?),
            Step::Verify => {
                let report = self.database()?.verify()?;
                if !report.is_sound() {
                    return Ok(Refusal::Other(format!("{:?}", report.findings)).into());
                }
            }
            Step::Reopen => {
                self.open.clear();
                self.count();
                if let Some(database) = self.database.take() {
                    database.close()?;
                }
                self.start()?;
            }
            Step::PowerCut { seed } => {
                let kinds = PowerCut::KINDS;
                let kind = kinds[Random::new(*seed).below(kinds.len() as u64) as usize];
                // What the old process does from here on is not on the new disk.
                self.disk = self.disk.power_cut(*seed, kind);
                self.count();
                self.open.clear();
                self.database = None;
                self.start()?;
                return self.all();
            }
            Step::Begin { .. } | Step::Do { .. } => unreachable!("the caller has sorted them out"),
        }
        Ok(Answer::Done)
    }

    /// Copies the database, opens the copy, and says what it shows.
    fn copied(&self) -> Result<Answer, Error> {
        let target = Arc::new(MemoryDirectory::new());
        self.database()?.backup_to(target.clone())?;
        let copy = Database::open_directory(target, self.config.clone())?;
        let report = copy.verify()?;
        if !report.is_sound() {
            return Ok(Refusal::Other(format!("the copy: {:?}", report.findings)).into());
        }
        self.all_of(&copy)
    }

    /// Does all background work, and names what is kept although nobody can see it.
    ///
    /// Work that failed, as for want of a frame, waits for a number of steps that have nothing to do: what is left is asked for again behind them.
    fn left_behind(&self) -> Result<Answer, Error> {
        let database = self.database()?;
        // Copies of the undo of transactions that have ended since go with a checkpoint.
        database.checkpoint()?;
        let mut units = 0..UNITS_MAX;
        let mut left = None;
        for _ in 0..=PATIENCE_STEPS {
            while database.step()? {
                if units.next().is_none() {
                    return Ok(Refusal::Other("background work does not end".into()).into());
                }
            }
            left = self.first_left(database)?;
            if left.is_none() {
                break;
            }
        }
        Ok(match left {
            None => Answer::Done,
            Some((what, count)) => Refusal::Other(format!("left: {what}: {count}")).into(),
        })
    }

    fn first_left(&self, database: &Database) -> Result<Option<(&'static str, u64)>, Error> {
        let now = database.statistics();
        let old = database.versions()?;
        let of = |kind| -> u64 { old.tables.iter().map(|it| it.sums.of(kind).count).sum() };
        let above = |count: u64, most: u64| count.saturating_sub(most);
        // A row that is fat keeps a version until it is full, or its page goes.
        let fat = if self.config.versions.fat {
            0
        } else {
            of(VersionKind::Fat)
        };
        // Trees that were made stay, with few pages: four of each slot, and a graveyard of each index.
        let pages = above(
            now.pages_of_versions,
            4 * u64::from(self.config.slots_max) + 32,
        );
        let left = [
            ("transactions", now.transactions_open),
            ("buried rows", now.rows_buried),
            ("buried rows that are listed", of(VersionKind::Buried)),
            ("tombstones", now.tombstones),
            ("tombstones that are listed", of(VersionKind::Tombstone)),
            ("chains", of(VersionKind::Chain)),
            ("deltas", now.version_deltas),
            ("bytes of deltas", now.version_delta_bytes),
            ("full copies", now.version_copies),
            ("bytes of full copies", now.version_copy_bytes),
            ("pages of dropped trees", now.dropped_pages),
            (
                "pages of dropped trees that are listed",
                of(VersionKind::Dropped),
            ),
            ("uncounted lists", u64::from(!old.complete)),
            ("fat rows", fat),
            (
                "pages of chains and trees",
                database.verify()?.pages.pending,
            ),
            ("pages of versions", pages),
        ];
        Ok(left.into_iter().find(|(_, count)| *count > 0))
    }

    fn all(&self) -> Result<Answer, Error> {
        self.all_of(self.database()?)
    }

    fn all_of(&self, database: &Database) -> Result<Answer, Error> {
        let options = TransactionOptions::default()
            .read_only(true)
            .durability(Durability::Async);
        let transaction = database.begin_with(options)?;
        let mut contents: Contents = Vec::new();
        for name in transaction.tables()? {
            let table = transaction.table(&name)?;
            let mut cursor = transaction.cursor(&table, ..)?;
            let mut rows = Vec::new();
            while let Some((key, value)) = cursor.next()? {
                rows.push((Key(key.to_vec()), value.to_vec()));
            }
            if let Some(index) = &self.index
                && let Some(wrong) = compare_index(&transaction, &table, index)?
            {
                return Ok(Refusal::Other(wrong).into());
            }
            contents.push((name, rows));
        }
        transaction.commit()?;
        Ok(Answer::Contents(contents))
    }
}

impl Drop for EngineSubject {
    fn drop(&mut self) {
        self.count();
    }
}

impl Subject for EngineSubject {
    fn has_indexes(&self) -> bool {
        self.index.is_some()
    }

    fn apply(&mut self, step: &Step) -> Answer {
        match step {
            Step::Begin { tx, how } => answer(self.begin(*tx, *how)),
            Step::Do { tx, operation } => {
                let Some(worker) = self.open.get_mut(tx) else {
                    return Answer::Skipped;
                };
                let result = worker.ask(operation);
                if operation.ends() {
                    self.open.remove(tx);
                }
                result
            }
            _ => answer(self.outside(step)),
        }
    }

    fn contents(&mut self) -> Answer {
        answer(self.all())
    }

    fn end_all(&mut self) -> Answer {
        self.open.clear();
        answer(self.left_behind())
    }
}

/// A thread that holds one open transaction.
struct Worker {
    requests: Option<Sender<Operation>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(transaction: Transaction, handles: Handles, index: Option<KeyDescription>) -> Self {
        let (requests, incoming) = channel();
        let (outgoing, answers) = channel();
        let thread = std::thread::spawn(move || {
            serve(transaction, &handles, index, &incoming, &outgoing);
        });
        Self {
            requests: Some(requests),
            answers,
            thread: Some(thread),
        }
    }

    fn ask(&self, operation: &Operation) -> Answer {
        let requests = self
            .requests
            .as_ref()
            .expect("it is taken when this is dropped");
        // A thread that has ended sends no answer either.
        let _ = requests.send(operation.clone());
        let gone = || Refusal::Other("the transaction's thread has ended".into()).into();
        self.answers.recv().unwrap_or_else(|_| gone())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Without requests the thread drops its transaction and ends.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Holds a transaction until it ends or nobody asks any more.
fn serve(
    transaction: Transaction,
    handles: &Handles,
    index: Option<KeyDescription>,
    requests: &Receiver<Operation>,
    answers: &Sender<Answer>,
) {
    let mut open = Open {
        transaction: &transaction,
        handles,
        index,
        cursors: BTreeMap::new(),
        savepoints: BTreeMap::new(),
    };
    let end = loop {
        let Ok(operation) = requests.recv() else {
            return;
        };
        if operation.ends() {
            break operation;
        }
        let result = catch_unwind(AssertUnwindSafe(|| answer(open.apply(&operation))));
        if answers.send(result.unwrap_or_else(panicked)).is_err() {
            return;
        }
    };
    drop(open);
    let result = catch_unwind(AssertUnwindSafe(|| {
        answer(
            match end {
                Operation::Commit { deferred: true } => transaction
                    .commit_deferred()
                    .and_then(|pending| wait_by_polling(&pending)),
                Operation::Commit { deferred: false } => transaction.commit(),
                Operation::Rollback => transaction.rollback(),
                _ => {
                    drop(transaction);
                    Ok(())
                }
            }
            .map(|()| Answer::Done),
        )
    }));
    // Nobody waits for it only if the subject is gone.
    let _ = answers.send(result.unwrap_or_else(panicked));
}

/// Waits for a commit as a task does: it is polled, and polled again when its waker was called.
///
/// # Errors
/// As [`PendingCommit::poll`].
pub fn wait_by_polling(pending: &PendingCommit) -> Result<(), Error> {
    struct Woken(Thread);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Woken(std::thread::current())));
    loop {
        match pending.poll(&waker) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Open<'t> {
    transaction: &'t Transaction,
    handles: &'t Handles,
    index: Option<KeyDescription>,
    cursors: BTreeMap<CursorNumber, Cursor<'t>>,
    savepoints: BTreeMap<u32, Savepoint>,
}

impl Open<'_> {
    fn apply(&mut self, operation: &Operation) -> Result<Answer, Error> {
        let transaction = self.transaction;
        Ok(match operation {
            Operation::CreateTable { table } => {
                let made = transaction.create_table(table)?;
                if let Some(index) = &self.index {
                    transaction.create_index(&made, INDEX, index.clone())?;
                }
                Answer::Done
            }
            Operation::DropTable { table } => {
                transaction.drop_table(table)?;
                Answer::Done
            }
            Operation::Tables => Answer::Names(transaction.tables()?),
            Operation::Get { table, key, into } => {
                let table = self.handles.find(transaction, table)?;
                if *into {
                    let mut value = b"left over".to_vec();
                    let found = transaction.get_into(&table, &key.0, &mut value)?;
                    Answer::Row(found.then_some(value))
                } else {
                    Answer::Row(transaction.get(&table, &key.0, <[u8]>::to_vec)?)
                }
            }
            Operation::MultiGet { table, keys } => {
                let table = self.handles.find(transaction, table)?;
                let keys: Vec<&[u8]> = keys.iter().map(|key| key.0.as_slice()).collect();
                let mut found = vec![None; keys.len()];
                let mut calls = 0;
                transaction.multi_get(&table, &keys, |index, value| {
                    calls += 1;
                    found[index] = value.map(<[u8]>::to_vec);
                })?;
                if calls != keys.len() {
                    return Ok(Refusal::Other(format!("{calls} calls")).into());
                }
                Answer::ManyRows(found)
            }
            Operation::Insert { table, key, value } => {
                let table = self.handles.find(transaction, table)?;
                transaction.insert(&table, &key.0, &value.bytes())?;
                Answer::Done
            }
            Operation::Upsert { table, key, value } => {
                let table = self.handles.find(transaction, table)?;
                Answer::Found(transaction.upsert(&table, &key.0, &value.bytes())?)
            }
            Operation::Replace { table, key, value } => {
                let table = self.handles.find(transaction, table)?;
                Answer::Found(transaction.replace(&table, &key.0, &value.bytes())?)
            }
            Operation::Update {
                table,
                key,
                ranges,
                with,
            } => {
                let table = self.handles.find(transaction, table)?;
                let ranges: Vec<Range<usize>> = ranges.iter().map(|(a, b)| *a..*b).collect();
                Answer::Found(transaction.update(&table, &key.0, &ranges, |bytes| {
                    for range in &ranges {
                        bytes[range.clone()]
                            .iter_mut()
                            .for_each(|byte| *byte ^= with);
                    }
                })?)
            }
            Operation::Delete { table, key } => {
                let table = self.handles.find(transaction, table)?;
                Answer::Found(transaction.delete(&table, &key.0)?)
            }
            Operation::Count { table, range } => {
                let table = self.handles.find(transaction, table)?;
                Answer::Count(transaction.count(&table, bounds(range))?)
            }
            Operation::Scan {
                table,
                range,
                backward,
                limit,
            } => {
                let table = self.handles.find(transaction, table)?;
                let mut cursor = transaction.cursor(&table, bounds(range))?;
                let rows = take(&mut cursor, *limit, *backward)?;
                if let Some(index) = &self.index
                    && let Some(wrong) = compare_index(transaction, &table, index)?
                {
                    return Ok(Refusal::Other(wrong).into());
                }
                Answer::Rows(rows)
            }
            Operation::BulkLoad { table, rows } => {
                let table = self.handles.find(transaction, table)?;
                if rows.len() % 2 == 1 && given_load(transaction, &table, rows)? {
                    return Ok(Answer::Done);
                }
                let mut rows = rows.iter();
                transaction.bulk_load(&table, |key, value| {
                    let Some(row) = rows.next() else { return false };
                    key.extend_from_slice(&row.0.0);
                    value.extend_from_slice(&row.1.bytes());
                    true
                })?;
                Answer::Done
            }
            Operation::OpenCursor {
                cursor,
                table,
                range,
            } => {
                let table = self.handles.find(transaction, table)?;
                let opened = transaction.cursor(&table, bounds(range))?;
                self.cursors.insert(*cursor, opened);
                Answer::Done
            }
            Operation::Next { cursor, count } | Operation::Prev { cursor, count } => {
                let Some(cursor) = self.cursors.get_mut(cursor) else {
                    return Ok(Answer::Skipped);
                };
                let backward = matches!(operation, Operation::Prev { .. });
                Answer::Rows(take(cursor, *count, backward)?)
            }
            Operation::Seek { cursor, key } => {
                let Some(cursor) = self.cursors.get_mut(cursor) else {
                    return Ok(Answer::Skipped);
                };
                cursor.seek(&key.0);
                Answer::Done
            }
            Operation::Batch { cursor, backward } => {
                let Some(cursor) = self.cursors.get_mut(cursor) else {
                    return Ok(Answer::Skipped);
                };
                let mut rows = Vec::new();
                let each = |key: &[u8], value: &[u8]| {
                    rows.push((Key(key.to_vec()), value.to_vec()));
                };
                match backward {
                    true => cursor.batch_back(each)?,
                    false => cursor.batch(each)?,
                };
                Answer::Rows(rows)
            }
            Operation::CloseCursor { cursor } => self
                .cursors
                .remove(cursor)
                .map_or(Answer::Skipped, |_| Answer::Done),
            Operation::Savepoint { savepoint } => {
                self.savepoints.insert(*savepoint, transaction.savepoint()?);
                Answer::Done
            }
            Operation::RollbackTo { savepoint } => {
                let Some(mark) = self.savepoints.get(savepoint) else {
                    return Ok(Answer::Skipped);
                };
                transaction.rollback_to(mark)?;
                // The later ones are gone: numbers ascend.
                self.savepoints.retain(|number, _| number <= savepoint);
                Answer::Done
            }
            Operation::Commit { .. } | Operation::Rollback | Operation::Abandon => {
                unreachable!("the caller ends transactions")
            }
        })
    }
}

/// The next rows: an even number of them by one call.
fn take(cursor: &mut Cursor<'_>, count: usize, back: bool) -> Result<Vec<(Key, Vec<u8>)>, Error> {
    let mut rows = Vec::new();
    if count > 0 && count.is_multiple_of(2) {
        let each = |key: &[u8], value: &[u8]| {
            rows.push((Key(key.to_vec()), value.to_vec()));
            match rows.len() < count {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let _ = match back {
            true => cursor.try_for_each_back(each)?,
            false => cursor.try_for_each(each)?,
        };
        return Ok(rows);
    }
    while rows.len() < count {
        let row = if back { cursor.prev()? } else { cursor.next()? };
        let Some((key, value)) = row else { break };
        rows.push((Key(key.to_vec()), value.to_vec()));
    }
    Ok(rows)
}

/// Whether the index shows each row that the table shows, under the columns that the row has now, in order and once, and nothing else; what
/// is wrong, if something is.
fn compare_index(
    transaction: &Transaction,
    table: &Table,
    index: &KeyDescription,
) -> Result<Option<String>, Error> {
    let part = index.parts()[0];
    let mut cursor = transaction.cursor(table, ..)?;
    let mut expected = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        let end = part.end.map_or(value.len(), |end| end as usize);
        let mut entry = Vec::new();
        // A value that is too short for the columns has no entry.
        if let Some(bytes) = value.get(part.start as usize..end) {
            index.entry(key, value, &mut entry);
            expected.push((bytes.to_vec(), key.to_vec(), entry));
        }
    }
    // The order of the columns, whatever entries look like.
    expected.sort_unstable();
    let expected: Vec<_> = expected.into_iter().map(|row| (row.2, row.1)).collect();
    let opened = transaction.index(table, INDEX)?;
    let mut cursor = transaction.index_cursor(&opened, ..)?;
    let mut found = Vec::new();
    while let Some((entry, key)) = cursor.next()? {
        found.push((entry.to_vec(), key.to_vec()));
    }
    let missing = expected.iter().find(|row| !found.contains(row));
    let odd = found.iter().find(|entry| !expected.contains(entry));
    let same = expected == found;
    Ok((!same).then(|| {
        format!("the index lacks {missing:?}, has {odd:?} beside the rows, or is out of order")
    }))
}

fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    fn bound(bound: &Bound<Key>) -> Bound<&[u8]> {
        bound.as_ref().map(|key| key.0.as_slice())
    }
    (bound(&range.0), bound(&range.1))
}

fn answer(result: Result<Answer, Error>) -> Answer {
    result.unwrap_or_else(|error| refusal(&error).into())
}

/// The kind of an error.
pub fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Conflict => Refusal::Conflict,
        Error::KeyExists { .. } => Refusal::KeyExists,
        Error::KeyTooLong { .. } => Refusal::KeyTooLong,
        Error::RangeOutsideValue { .. } => Refusal::RangeOutsideValue,
        Error::ReadOnly => Refusal::ReadOnly,
        Error::NoSuchTable { .. } => Refusal::NoSuchTable,
        Error::TableExists { .. } => Refusal::TableExists,
        Error::InvalidArgument { .. } => Refusal::InvalidArgument,
        Error::TransactionOver { .. } => Refusal::TransactionOver,
        Error::OutOfSpace { .. } | Error::MemoryLimit { .. } => Refusal::NoRoom(error.to_string()),
        // The model knows what became of a commit that was refused so.
        Error::NotDurable { cause } => refusal(cause),
        Error::Io { .. } => Refusal::Io(error.to_string()),
        Error::Poisoned => Refusal::Poisoned,
        Error::Corruption { .. } => Refusal::Corruption(error.to_string()),
        Error::Timeout { .. } => Refusal::Timeout,
        other => Refusal::Other(format!("{other:?}")),
    }
}

fn panicked(payload: Box<dyn Any + Send>) -> Answer {
    let text = payload.downcast_ref::<String>().cloned();
    let text = text.or_else(|| {
        payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
    });
    Refusal::Other(format!("panicked: {}", text.unwrap_or_default())).into()
}
