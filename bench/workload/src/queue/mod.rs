//! A queue of fixed length: every transaction adds a row at the tail and deletes the smallest one.
//!
//! The worst that can happen to an engine beside an old snapshot: each transaction leaves a deleted row exactly where
//! the next one looks for the smallest.
//!
//! Layout: keys are numbers, eight bytes, ascending from the first row to the last; the value of a number is that
//! of a `kv` row that was never updated, so whoever reads a row can tell whether it is the right one.
//!
//! What proves that nothing was lost: the number of rows stays, and the sum of their numbers is the sum before, plus what
//! was added, minus what was deleted. A deletion that is lost, or two transactions that delete the same row, change it.
//!
//! Several threads share one queue. They draw numbers from one counter, and conflict over the smallest row.

mod client;
#[cfg(test)]
mod tests;

pub use client::{Client, Tail};

use crate::engine::{Direction, Result, Session, Table, TableSpec, TxOptions};
use crate::kv::{is_value, key, write_value};

/// The queue.
pub const QUEUE: Table = Table::at(0);
/// Rows that somebody keeps to himself; no client touches them.
pub const IDLE: Table = Table::at(1);
/// All tables, in the order of their positions.
pub const TABLES: &[TableSpec] = &[
    TableSpec {
        table: QUEUE,
        name: "queue_rows",
        is_queue: true,
    },
    TableSpec {
        table: IDLE,
        name: "queue_idle",
        is_queue: false,
    },
];

/// What is in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows.
    pub rows: u64,
    /// The sum of their numbers, modulo 2^64.
    pub sum: u64,
    /// One above the largest number.
    pub next: u64,
    /// Rows that are not what was written: wrong bytes, another size, out of order.
    pub wrong: u64,
}

/// Fills an empty queue with `rows` rows of `size` bytes. `proceed` is asked now and then, and may end the load by an error.
///
/// # Errors
/// Whatever the engine reports, or `proceed`; the queue is empty then.
pub fn load<S: Session>(
    session: &mut S,
    rows: u64,
    size: usize,
    proceed: impl Fn() -> Result<()>,
) -> Result<()> {
    session.begin(TxOptions::READ_WRITE)?;
    let mut numbers = 0..rows;
    let mut proceeds = Ok(());
    let loaded = session.bulk_load(QUEUE, |next_key, value| {
        let Some(number) = numbers.next() else {
            return false;
        };
        if number % 4096 == 0 {
            proceeds = proceed();
            if proceeds.is_err() {
                return false;
            }
        }
        next_key.clear();
        next_key.extend_from_slice(&key(number));
        value.resize(size, 0);
        write_value(value, number, 0);
        true
    });
    match loaded.and(proceeds).and_then(|()| session.commit()) {
        Ok(()) => Ok(()),
        Err(error) => {
            session.rollback()?;
            Err(error)
        }
    }
}

/// Reads the queue in one snapshot and looks at every byte of it.
///
/// # Errors
/// Whatever the engine reports.
pub fn look<S: Session>(session: &mut S, size: usize) -> Result<Found> {
    let mut found = Found::default();
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(QUEUE, &[], Direction::Forward, |found_key, value| {
        let number = found_key.try_into().ok().map(u64::from_be_bytes);
        match number {
            Some(number) if number >= found.next && is_value(value, number, size) => {
                found.sum = found.sum.wrapping_add(number);
                found.next = number + 1;
            }
            _ => found.wrong += 1,
        }
        found.rows += 1;
        true
    });
    session.rollback()?;
    scanned.map(|()| found)
}
