//! The whole engine under chosen schedules: what its threads do, and what must hold whatever the schedule is.
//!
//! Invariants that are checked:
//! - C1 Every snapshot shows the same sum of all accounts, from its begin to its end, by scans both ways and by keys.
//! - C2 What is rolled back, to a savepoint or whole, leaves nothing.
//! - C3 The index shows the rows of the table, each once.
//! - C4 In the end the database is sound; after a power cut everything acknowledged is there, and the sum.
//!
//! Concurrency: threads come from `vellum_sync`, so that shuttle can drive them; nothing here waits by time.
//!
//! What is not checked: README.
#![forbid(unsafe_code)]

use std::sync::Arc;
use vellum::{
    Class, Config, Database, Durability, Error, KeyDescription, KeyPart, Result, Source,
    Transaction, TransactionOptions,
};
use vellum_io::{PowerCut, SimulatedDirectory};
use vellum_sync::thread;

const ACCOUNTS: u32 = 8;
const TABLE: &str = "accounts";
const INDEX: &str = "by owner";
/// What every account has at first.
const FIRST: u64 = 100;
/// Bytes of a row: balance, owner, and enough that a leaf holds only a few.
const ROW_BYTES: usize = 400;

/// Few frames, small segments, early promotion, no threads of its own.
fn config() -> Config {
    let mut config = Config::default().page_size(4096).pool_bytes(24 * 4096);
    config.slots_max = 8;
    config.slot_buffer_bytes = 64 << 10;
    config.log_segment_bytes = 256 << 10;
    config.log_bytes_max = 8 * config.log_segment_bytes;
    config.checkpoint_log_bytes = 2 * config.log_segment_bytes;
    config.data_bytes_max = 8 << 20;
    config.promote_after_ticks = 12;
    config.versions.fat_updates = Some(1);
    config.background_threads = false;
    config
}

fn row(number: u32, balance: u64) -> Vec<u8> {
    let mut row = vec![number as u8; ROW_BYTES];
    row[..8].copy_from_slice(&balance.to_be_bytes());
    row
}

fn balance(row: &[u8]) -> u64 {
    row.first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn options(class: Class) -> TransactionOptions {
    TransactionOptions::default()
        .durability(Durability::Async)
        .class(class)
}

/// Makes the accounts.
fn prepare(database: &Database) -> Result<()> {
    database.retry(|transaction| {
        let table = transaction.create_table(TABLE)?;
        let owner = KeyPart {
            source: Source::Value,
            start: 8,
            end: Some(12),
        };
        let key = KeyDescription::new(vec![owner], false).expect("a key of one part");
        transaction.create_index(&table, INDEX, key)?;
        for number in 0..ACCOUNTS {
            transaction.insert(&table, &number.to_be_bytes(), &row(number, FIRST))?;
        }
        Ok(())
    })
}

/// Looks at everything in several ways.
///
/// # Panics
/// If C1 or C3 does not hold.
fn look(transaction: &Transaction) -> Result<()> {
    let table = transaction.table(TABLE)?;
    let mut cursor = transaction.cursor(&table, ..)?;
    let mut forward = Vec::new();
    while let Some((key, row)) = cursor.next()? {
        forward.push((key.to_vec(), balance(row)));
    }
    let sum: u64 = forward.iter().map(|(_, balance)| balance).sum();
    assert_eq!(sum, u64::from(ACCOUNTS) * FIRST, "C1: {forward:?}");
    let mut cursor = transaction.cursor(&table, ..)?;
    let mut backward = Vec::new();
    while let Some((key, row)) = cursor.prev()? {
        backward.push((key.to_vec(), balance(row)));
    }
    backward.reverse();
    assert_eq!(forward, backward, "C1: both ways");
    for (key, found) in &forward {
        let by_key = transaction.get(&table, key, balance)?;
        assert_eq!(by_key, Some(*found), "C1: by key {key:?}");
    }
    let index = transaction.index(&table, INDEX)?;
    let mut cursor = transaction.index_cursor(&index, ..)?;
    let mut entries = 0;
    while cursor.next()?.is_some() {
        entries += 1;
    }
    assert_eq!(entries, forward.len(), "C3");
    Ok(())
}

/// Moves an amount from one account to another; one account in three is emptied, and deleted, and made anew where it gets something.
fn transfer(transaction: &Transaction, from: u32, to: u32, amount: u64) -> Result<()> {
    let table = transaction.table(TABLE)?;
    let (from, to) = (from % ACCOUNTS, to % ACCOUNTS);
    let key = |number: u32| number.to_be_bytes();
    let there = transaction.get(&table, &key(from), balance)?;
    let Some(there) = there else { return Ok(()) };
    let amount = if from % 3 == 0 {
        there
    } else {
        amount.min(there)
    };
    if amount == there {
        assert!(transaction.delete(&table, &key(from))?, "it was there");
    } else {
        let less = |row: &mut [u8]| row[..8].copy_from_slice(&(there - amount).to_be_bytes());
        assert!(transaction.update(&table, &key(from), &[0..8], less)?);
    }
    // Read after the first write: the same account may give and take.
    match transaction.get(&table, &key(to), balance)? {
        Some(has) => drop(transaction.upsert(&table, &key(to), &row(to, has + amount))?),
        None => transaction.insert(&table, &key(to), &row(to, amount))?,
    }
    Ok(())
}

/// One client: transfers, some rolled back to a savepoint or whole; returns how many were committed.
fn client(database: &Database, number: u32, rounds: u32) -> u32 {
    let mut committed = 0;
    for round in 0..rounds {
        let work = || -> Result<bool> {
            let transaction = database.begin_with(options(Class::Auto))?;
            if (number + round) % 2 == 1 {
                // Long enough for others to begin and to commit before it writes.
                look(&transaction)?;
            }
            transfer(&transaction, number + round, number + 2 * round + 1, 7)?;
            let savepoint = transaction.savepoint()?;
            transfer(&transaction, round, number + 3, 5)?;
            if round % 2 == 1 {
                transaction.rollback_to(&savepoint)?;
            }
            look(&transaction)?;
            if (number + round) % 3 == 2 {
                transaction.rollback()?;
                return Ok(false);
            }
            transaction.commit()?;
            Ok(true)
        };
        match work() {
            Ok(done) => committed += u32::from(done),
            Err(error) if error.is_retryable() => thread::yield_now(),
            // Somebody else made the account that this one was about to make.
            Err(Error::KeyExists { .. }) => thread::yield_now(),
            Err(error) => panic!("client {number}: {error}"),
        }
    }
    committed
}

/// One schedule's work, on a disk that is empty.
///
/// # Panics
/// If something does not hold.
pub fn run(disk: &SimulatedDirectory, rounds: u32) {
    let open = |disk: &SimulatedDirectory| {
        Database::open_directory(Arc::new(disk.clone()), config()).expect("it opens")
    };
    let database = Arc::new(open(disk));
    prepare(&database).expect("an empty database");
    let begin = |class| database.begin_with(options(class)).expect("a slot is free");
    let (old, analytical) = (begin(Class::Auto), begin(Class::Olap));
    let clients: Vec<_> = (0..2)
        .map(|number| {
            let database = database.clone();
            thread::spawn(move || client(&database, number, rounds))
        })
        .collect();
    let keeper = {
        let database = database.clone();
        thread::spawn(move || {
            for _ in 0..rounds {
                for _ in 0..8 {
                    database.step().expect("background work");
                }
                database.checkpoint().expect("a checkpoint");
            }
        })
    };
    for snapshot in [&old, &analytical] {
        look(snapshot).expect("an old snapshot");
    }
    let middle = begin(Class::Olap);
    look(&middle).expect("a snapshot in the middle");
    for thread in clients {
        thread.join().expect("a client");
    }
    keeper.join().expect("the one that writes checkpoints");
    // What the old snapshots alone see is buried now.
    while database.step().expect("background work") {}
    for snapshot in [&old, &middle, &analytical] {
        look(snapshot).expect("an old snapshot, in the end");
    }
    drop((old, middle, analytical));
    while database.step().expect("background work") {}
    database.sync().expect("a sound disk");
    let report = database.verify().expect("it can be verified");
    assert!(report.is_sound(), "C4: {:?}", report.findings);
    let last = begin(Class::Oltp);
    look(&last).expect("the last snapshot");
    let found = disk.power_cut(1, PowerCut::CLEAN);
    let again = open(&found);
    let recovered = again.begin().expect("a slot is free");
    look(&recovered).expect("C4: after the cut");
    let rows = |transaction: &Transaction| -> Result<Vec<(Vec<u8>, u64)>> {
        let mut cursor = transaction.cursor(&transaction.table(TABLE)?, ..)?;
        let mut rows = Vec::new();
        while let Some((key, row)) = cursor.next()? {
            rows.push((key.to_vec(), balance(row)));
        }
        Ok(rows)
    };
    let (before, after) = (rows(&last), rows(&recovered));
    assert_eq!(before.expect("rows"), after.expect("rows"), "C4");
}
