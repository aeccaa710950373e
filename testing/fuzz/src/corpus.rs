//! A database whose files hold every kind of page and most kinds of records, and what can be cut out of them. Of records it has no trims and no
//! notes ([`crate::kinds`] makes those up).
//!
//! The database was killed: its log has to be read. Its contents are known after every commit ([`right`]).

use std::sync::Arc;
use std::time::Duration;
use vellum::{Config, Database, KeyDescription, KeyPart, Result, Source, TransactionOptions};
use vellum_base::Lsn;
use vellum_io::{Directory, OpenOptions, SimulatedDirectory};
use vellum_wal::Record;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// The data file.
pub const DATA: &str = "data";
/// The control file.
pub const CONTROL: &str = "control";
/// Rows of the big table.
const ROWS: u32 = 300;
/// Commits after the checkpoint.
pub const COMMITS: u32 = 40;
/// Rows of a table that is loaded.
const LOADED: u32 = 100;
/// Rows of a table whose leaf is cleaned.
const NARROW: u32 = 100;
/// What a transaction without an end changes, and where.
const LOSER_ROW: u32 = 7;
const LOSER_RANGES: [std::ops::Range<usize>; 2] = [0..3, 20..24];
/// Bytes of a chunk's header, and where its length stands (layout: `vellum_wal`, frame.rs).
const CHUNK_HEADER: usize = 80;
const CHUNK_LENGTH_AT: usize = 48;
const CHUNK_MAGIC: &[u8; 4] = b"VLCK";

/// Few frames, a small log, no threads: what is read is on the disk.
pub fn config() -> Config {
    let mut config = Config::default()
        .page_size(PAGE)
        .pool_bytes(48 * PAGE as u64);
    config.slots_max = 4;
    // What cannot be rolled back keeps its slot: nobody in this thread is going to give one back.
    config.slot_timeout = Duration::from_millis(20);
    config.slot_buffer_bytes = 16 * PAGE;
    config.log_segment_bytes = 64 * PAGE as u64;
    config.log_bytes_max = 8 * config.log_segment_bytes;
    config.checkpoint_log_bytes = config.log_bytes_max;
    config.data_bytes_max = 1 << 28;
    config.background_threads = false;
    config
}

fn value(row: u32, commit: u32) -> Vec<u8> {
    let times = if row.is_multiple_of(60) { 900 } else { 7 };
    format!("row {row} of commit {commit} ")
        .into_bytes()
        .repeat(times)
}

/// What every commit after the checkpoint writes: the number of commits, and a row of its own.
fn commit(database: &Database, number: u32) -> Result<()> {
    database.retry(|transaction| {
        let (big, count) = (transaction.table("big")?, transaction.table("count")?);
        transaction.upsert(&big, &number.to_be_bytes(), &value(number, number))?;
        transaction.upsert(&count, b"commits", &number.to_be_bytes())?;
        Ok(())
    })
}

/// Makes the database.
///
/// # Errors
/// What it says.
pub fn make() -> Result<SimulatedDirectory> {
    make_on(&SimulatedDirectory::new())
}

/// Makes the database on an empty disk, and returns what is there once its process was killed.
///
/// # Errors
/// What it says.
pub fn make_on(disk: &SimulatedDirectory) -> Result<SimulatedDirectory> {
    let database = Database::open_directory(Arc::new(disk.clone()), config())?;
    database.retry(|transaction| {
        let big = transaction.create_table("big")?;
        let count = transaction.create_table("count")?;
        let part = KeyPart {
            source: Source::Value,
            start: 0,
            end: Some(12),
        };
        let key = KeyDescription::new(vec![part], false).expect("a key of one part");
        transaction.create_index(&big, "by value", key)?;
        for row in 0..ROWS {
            transaction.insert(&big, &row.to_be_bytes(), &value(row, 0))?;
        }
        transaction.insert(&count, b"commits", &0_u32.to_be_bytes())
    })?;
    database.retry(|transaction| {
        let narrow = transaction.create_table("narrow")?;
        (0..NARROW).try_for_each(|row| transaction.insert(&narrow, &row.to_be_bytes(), &[1; 8]))
    })?;
    database.retry(|transaction| {
        let narrow = transaction.table("narrow")?;
        let mut rows = (0..NARROW).step_by(2);
        rows.try_for_each(|row| transaction.delete(&narrow, &row.to_be_bytes()).map(drop))
    })?;
    database.sync()?;
    // Killed once: what opens it next tells its own log who lost, and whoever fills a leaf cleans it of rows that were deleted before.
    let disk = &disk.process_kill();
    drop(database);
    let database = Database::open_directory(Arc::new(disk.clone()), config())?;
    for number in 1..=COMMITS {
        commit(&database, number)?;
    }
    // Rolled back and dropped, so that there are compensations and lists; and a loser.
    let other = database.begin()?;
    let table = other.create_table("other")?;
    other.insert(&table, b"a", &value(60, 1))?;
    other.rollback()?;
    database.retry(|transaction| {
        let gone = transaction.create_table("gone")?;
        transaction.insert(&gone, b"a", &value(60, 1))
    })?;
    database.retry(|transaction| transaction.drop_table("gone"))?;
    // Many sorted rows into an empty table: leaves that are filled one behind the other.
    database.retry(|transaction| {
        let loaded = transaction.create_table("loaded")?;
        let mut row = 0_u32;
        transaction.bulk_load(&loaded, |key, bytes| {
            row += 1;
            key.extend_from_slice(&row.to_be_bytes());
            bytes.extend_from_slice(&value(1, 0));
            row <= LOADED
        })
    })?;
    // Most of them go, and so do leaves that run empty.
    database.retry(|transaction| {
        let loaded = transaction.table("loaded")?;
        (1..LOADED).try_for_each(|row| transaction.delete(&loaded, &row.to_be_bytes()).map(drop))
    })?;
    database.sync()?;
    while database.step()? {}
    database.retry(|transaction| {
        let narrow = transaction.table("narrow")?;
        let rows = (0..NARROW).map(|row| [&row.to_be_bytes()[..], b"+"].concat());
        rows.into_iter()
            .try_for_each(|key| transaction.insert(&narrow, &key, &[1; 8]))
    })?;
    let loser = database.begin()?;
    let big = loser.table("big")?;
    loser.update(&big, &LOSER_ROW.to_be_bytes(), &LOSER_RANGES, |row| {
        row.fill(LOSER_ROW as u8)
    })?;
    loser.delete(&big, &(ROWS - 1).to_be_bytes())?;
    database.sync()?;
    let found = disk.process_kill();
    drop(loser);
    Ok(found)
}

/// A database of many tables and indexes with names, keys and values of many kinds: definitions and references to chains, of which the other one has few.
///
/// # Errors
/// What it says.
pub fn make_shapes() -> Result<SimulatedDirectory> {
    let disk = SimulatedDirectory::new();
    let database = Database::open_directory(Arc::new(disk.clone()), config())?;
    for number in 0..24_u32 {
        database.retry(|transaction| {
            let name = "name ".repeat(1 + number as usize / 3);
            let table = transaction.create_table(&format!("{name}{number}"))?;
            let part = |start: u32| {
                let of_key = (number + start).is_multiple_of(3);
                // All of a value is too long for a key.
                let whole = of_key && start > 0;
                KeyPart {
                    source: if of_key { Source::Key } else { Source::Value },
                    start,
                    end: (!whole).then_some(start + 4 + number),
                }
            };
            for index in 0..2 {
                let parts = (0..=(number + index) % 4).map(part).collect();
                // Unique where the first part is the row's key.
                let key = KeyDescription::new(parts, number.is_multiple_of(3));
                let key = key.expect("a key of a few parts");
                transaction.create_index(&table, &format!("{index} of {name}"), key)?;
            }
            for row in 0..4_u32 {
                let long = value(60, row).repeat(1 + number as usize % 3);
                transaction.insert(&table, &row.to_be_bytes(), &long)?;
            }
            Ok(())
        })?;
    }
    database.checkpoint()?;
    Ok(disk.process_kill())
}

/// Why a database does not show what some commit left.
#[derive(Debug)]
pub enum Wrong {
    /// It says so.
    Error(vellum::Error),
    /// It shows something else.
    Answer(String),
}

impl From<vellum::Error> for Wrong {
    fn from(error: vellum::Error) -> Self {
        Self::Error(error)
    }
}

/// Whether a database shows what some commit left: how many there were.
///
/// # Errors
/// Why it does not.
pub fn right(database: &Database) -> std::result::Result<u32, Wrong> {
    let wrong = |what: String| Err(Wrong::Answer(what));
    let transaction = database.begin_with(TransactionOptions::default().read_only(true))?;
    let (big, count) = (transaction.table("big")?, transaction.table("count")?);
    let commits = transaction.get(&count, b"commits", |bytes| {
        bytes.try_into().map(u32::from_be_bytes).ok()
    })?;
    let Some(commits) = commits.flatten().filter(|commits| *commits <= COMMITS) else {
        return wrong(format!("{commits:?} commits"));
    };
    let mut cursor = transaction.cursor(&big, ..)?;
    let mut row = 0_u32;
    while let Some((key, bytes)) = cursor.next()? {
        let of = if (1..=commits).contains(&row) { row } else { 0 };
        if key != row.to_be_bytes() || bytes != value(row, of) {
            return wrong(format!("row {row} after {commits} commits"));
        }
        row += 1;
    }
    if row != ROWS {
        return wrong(format!("{row} rows"));
    }
    Ok(commits)
}

/// Changes rows everywhere, so that leaves are split, merged, cleaned and written; whatever the answers are, there are answers.
pub fn work_on(database: &Database) {
    let change = |number: u32| -> Result<()> {
        let transaction = database.begin()?;
        let (big, count) = (transaction.table("big")?, transaction.table("count")?);
        transaction.upsert(
            &big,
            &(2 * number).to_be_bytes(),
            &value(number, 9).repeat(3),
        )?;
        transaction.delete(&big, &(2 * number + 1).to_be_bytes())?;
        transaction.update(&count, b"commits", &[0..4], |bytes| bytes.fill(0))?;
        match number % 3 {
            0 => transaction.rollback(),
            _ => transaction.commit(),
        }
    };
    let mut last = Ok(());
    for number in 0..ROWS / 2 {
        last = last.and(change(number));
    }
    // Errors are answers too; what there is to do in the background has an end, but not here.
    let _ = last.and_then(|()| database.checkpoint());
    for _ in 0..1000 {
        if !matches!(database.step(), Ok(true)) {
            break;
        }
    }
    let _ = database.verify();
}

/// Whether all that a database shows was once written there: under each key a value that this key had, committed or not,
/// and the keys in order. Where a write was lost the past is shown, and nothing can tell.
///
/// # Errors
/// Why it does not.
pub fn of_the_past(database: &Database) -> std::result::Result<(), Wrong> {
    let transaction = database.begin_with(TransactionOptions::default().read_only(true))?;
    let big = transaction.table("big")?;
    let mut cursor = transaction.cursor(&big, ..)?;
    let mut least = 0;
    while let Some((key, bytes)) = cursor.next()? {
        let row = key.try_into().map(u32::from_be_bytes);
        let known = row.is_ok_and(|row| {
            let mut changed = value(row, 0);
            for range in LOSER_RANGES {
                changed[range].fill(LOSER_ROW as u8);
            }
            let by_loser = row == LOSER_ROW && bytes == changed;
            let in_order = row >= least && row < ROWS;
            least = row + 1;
            in_order && (by_loser || bytes == value(row, 0) || bytes == value(row, row))
        });
        if !known {
            return Err(Wrong::Answer(format!("key {key:?} never had this value")));
        }
    }
    Ok(())
}

/// Bytes of a file.
///
/// # Errors
/// I/O.
pub fn bytes_of(disk: &SimulatedDirectory, file: &str) -> vellum_base::Result<Vec<u8>> {
    disk.read_all(file)
}

/// Names of the segments of the log.
///
/// # Errors
/// I/O.
pub fn segments(disk: &SimulatedDirectory) -> vellum_base::Result<Vec<String>> {
    let names = disk.list("log")?;
    Ok(names
        .into_iter()
        .map(|name| format!("log/{name}"))
        .collect())
}

/// Replaces bytes of a file.
///
/// # Errors
/// I/O.
pub fn replace(
    disk: &SimulatedDirectory,
    file: &str,
    at: u64,
    bytes: &[u8],
) -> vellum_base::Result<()> {
    disk.open(file, OpenOptions::existing())?
        .write_at(bytes, at)
}

/// Where the chunks of a segment lie: of each its header's place and the length of its records.
pub fn chunks(segment: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + CHUNK_HEADER <= segment.len() {
        if &segment[at..at + 4] == CHUNK_MAGIC {
            let length = u32::from_le_bytes(
                *segment[at + CHUNK_LENGTH_AT..]
                    .first_chunk()
                    .expect("four bytes"),
            ) as usize;
            if at + CHUNK_HEADER + length <= segment.len() {
                found.push((at, length));
                at += (CHUNK_HEADER + length).next_multiple_of(8);
                continue;
            }
        }
        at += 8;
    }
    found
}

/// The records of a segment, as they lie there.
pub fn records(segment: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    for (at, length) in chunks(segment) {
        let mut rest = &segment[at + CHUNK_HEADER..at + CHUNK_HEADER + length];
        while let Some(record) = Record::decode(rest, Lsn(0)) {
            let (head, tail) = rest.split_at(record.length());
            records.push(head);
            rest = tail;
        }
    }
    records
}
