//! The load that is killed: what its threads write, and how it is read back.
//!
//! The rules of it, and what must be found after a kill: [`crate::ledger`].
//!
//! Concurrency: each thread writes its own rows; the shared row makes conflicts, which are run again.

use crate::ledger::{Found, KEPT, LOADED_ROWS, LOADS_EVERY, Notice, THREADS};
use std::collections::BTreeSet;
use vellum::{Config, Database, Durability, Error, Result, Table, Transaction, TransactionOptions};
use vellum_base::random::Random;

const FIRST: &str = "first";
const SECOND: &str = "second";
const HISTORY: &str = "history";
const ORDERS: &str = "orders";
const LOADED: &str = "loaded ";
const TABLES: [&str; 4] = [FIRST, SECOND, HISTORY, ORDERS];
const SHARED: &[u8] = b"last";

/// Settings in which everything happens often: few frames, small segments, frequent checkpoints.
pub fn config() -> Config {
    let mut config = Config::default().page_size(4096).pool_bytes(96 * 4096);
    config.slots_max = 8;
    config.slot_buffer_bytes = 64 << 10;
    config.log_segment_bytes = 512 << 10;
    config.log_bytes_max = 8 << 20;
    config.checkpoint_log_bytes = 1 << 20;
    config.data_bytes_max = 1 << 30;
    config
}

/// Makes the tables that are not there.
///
/// # Errors
/// What the database says.
pub fn prepare(database: &Database) -> Result<()> {
    database.retry(|transaction| {
        for name in TABLES {
            match transaction.table(name) {
                Err(Error::NoSuchTable { .. }) => drop(transaction.create_table(name)?),
                other => drop(other?),
            }
        }
        Ok(())
    })
}

/// The value of a history row: its length and bytes follow from what it is of.
fn history_value(thread: u8, number: u64) -> Vec<u8> {
    let mut random = Random::new(number << 8 | u64::from(thread));
    let length = if number.is_multiple_of(37) {
        30_000
    } else {
        random.below(600)
    };
    let mut value = vec![0; length as usize];
    random.fill(&mut value);
    value
}

fn history_key(thread: u8, number: u64) -> [u8; 9] {
    let mut key = [thread; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

fn number_in(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

fn read_number(transaction: &Transaction, table: &Table, key: &[u8]) -> Result<u64> {
    let value = transaction.get(table, key, number_in)?;
    Ok(value.flatten().unwrap_or_default())
}

/// Commits as thread `thread` for ever, from where the database stands; returns on an error only.
/// `say` hands a notice to the other side.
///
/// # Errors
/// What the database says, conflicts excepted.
pub fn commit_for_ever(database: &Database, thread: u8, say: &dyn Fn(Notice)) -> Result<()> {
    let mut random = Random::new(Random::fresh_seed());
    let start = database.begin()?;
    let mut number = read_number(&start, &start.table(FIRST)?, &[thread])?;
    start.commit()?;
    loop {
        number += 1;
        let waits = random.chance(1, 4);
        if waits {
            say(Notice::Begins(thread, number));
        }
        if random.chance(1, 8) {
            roll_back_something(database, thread, &mut random)?;
        }
        loop {
            let durability = if waits {
                Durability::Sync
            } else {
                Durability::Async
            };
            let options = TransactionOptions::default().durability(durability);
            let transaction = database.begin_with(options)?;
            let orders = random.chance(1, 4);
            match write(&transaction, thread, number, orders) {
                Ok(()) => transaction.commit()?,
                Err(error) if error.is_retryable() => {
                    transaction.rollback()?;
                    continue;
                }
                Err(error) => return Err(error),
            }
            break;
        }
        say(if waits {
            Notice::Durable(thread, number)
        } else {
            Notice::Committed(thread, number)
        });
    }
}

fn write(transaction: &Transaction, thread: u8, number: u64, orders: bool) -> Result<()> {
    let key = [thread];
    transaction.upsert(&transaction.table(FIRST)?, &key, &number.to_be_bytes())?;
    let history = transaction.table(HISTORY)?;
    let value = history_value(thread, number);
    transaction.insert(&history, &history_key(thread, number), &value)?;
    if let Some(old) = number.checked_sub(KEPT).filter(|old| *old > 0) {
        transaction.delete(&history, &history_key(thread, old))?;
    }
    if orders {
        let table = transaction.table(ORDERS)?;
        let order = read_number(transaction, &table, SHARED)? + 1;
        transaction.upsert(&table, SHARED, &order.to_be_bytes())?;
        transaction.insert(&table, &order.to_be_bytes(), &history_key(thread, number))?;
    }
    if thread == 0 && number.is_multiple_of(LOADS_EVERY) {
        let name = |number: u64| format!("{LOADED}{number}");
        let table = transaction.create_table(&name(number))?;
        let row = |row: u64| (row.to_be_bytes(), (row ^ number).to_be_bytes());
        let mut rows = (0..LOADED_ROWS).map(row);
        transaction.bulk_load(&table, |key, value| {
            let Some(row) = rows.next() else { return false };
            key.extend_from_slice(&row.0);
            value.extend_from_slice(&row.1);
            true
        })?;
        if let Some(old) = number.checked_sub(LOADS_EVERY).filter(|old| *old > 0) {
            transaction.drop_table(&name(old))?;
        }
    }
    transaction.upsert(&transaction.table(SECOND)?, &key, &number.to_be_bytes())?;
    Ok(())
}

/// Writes what nobody may ever see.
fn roll_back_something(database: &Database, thread: u8, random: &mut Random) -> Result<()> {
    let transaction = database.begin()?;
    let history = transaction.table(HISTORY)?;
    let wrong = u64::MAX.to_be_bytes();
    transaction.upsert(&transaction.table(FIRST)?, &[thread], &wrong)?;
    for _ in 0..random.below(30) {
        let key = history_key(thread, u64::MAX - random.below(100));
        transaction.upsert(&history, &key, &vec![7; random.below(2000) as usize])?;
    }
    if random.chance(1, 2) {
        transaction.rollback()
    } else {
        Ok(())
    }
}

/// Reads everything back.
///
/// # Errors
/// What the database says.
pub fn found(database: &Database) -> Result<Found> {
    let mut found = Found::default();
    let transaction = database.begin_with(TransactionOptions::default().read_only(true))?;
    let names = transaction.tables()?;
    if !names.iter().any(|name| name == FIRST) {
        return Ok(found);
    }
    let (first, second) = (transaction.table(FIRST)?, transaction.table(SECOND)?);
    for thread in 0..THREADS {
        for (table, numbers) in [(&first, &mut found.first), (&second, &mut found.second)] {
            if let Some(number) = transaction.get(table, &[thread], number_in)? {
                numbers.insert(thread, number.unwrap_or(u64::MAX));
            }
        }
    }
    let mut cursor = transaction.cursor(&transaction.table(HISTORY)?, ..)?;
    while let Some((key, value)) = cursor.next()? {
        let number = number_in(&key[1..]).unwrap_or(u64::MAX);
        // A row that is not whole counts as one that should not be there.
        let whole = number < u64::MAX / 2 && value == history_value(key[0], number);
        let numbers: &mut BTreeSet<u64> = found.history.entry(key[0]).or_default();
        numbers.insert(if whole { number } else { u64::MAX });
    }
    let orders = transaction.table(ORDERS)?;
    found.last_order = read_number(&transaction, &orders, SHARED)?;
    let mut cursor = transaction.cursor(&orders, ..)?;
    while let Some((key, value)) = cursor.next()? {
        if key != SHARED {
            let number = number_in(&value[1..]).unwrap_or(u64::MAX);
            found
                .orders
                .push((number_in(key).unwrap_or(u64::MAX), value[0], number));
        }
    }
    for name in names {
        let Some(number) = name
            .strip_prefix(LOADED)
            .and_then(|text| text.parse::<u64>().ok())
        else {
            continue;
        };
        let mut cursor = transaction.cursor(&transaction.table(&name)?, ..)?;
        let (mut rows, mut right) = (0_u64, 0);
        while let Some((key, value)) = cursor.next()? {
            let whole = key == rows.to_be_bytes() && value == (rows ^ number).to_be_bytes();
            right += u64::from(whole);
            rows += 1;
        }
        found
            .loaded
            .push((number, if right == rows { right } else { u64::MAX }));
    }
    Ok(found)
}
