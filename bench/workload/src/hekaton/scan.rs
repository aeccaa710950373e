//! All rows at once: loads, long readers, and the look that proves the sums.

use super::{INITIAL_BALANCE, ROWS, account};
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};
use crate::field::exact;
use crate::kv::key;

/// What is in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows.
    pub rows: u64,
    /// Sum of the balances, modulo 2^64.
    pub balance: i64,
    /// Sum of the numbers of writes, modulo 2^64.
    pub writes: u64,
    /// Rows that are out of order or of another length.
    pub wrong: u64,
}

/// What the balances of `rows` rows add up to, modulo 2^64.
pub const fn expected_balance(rows: u64) -> i64 {
    INITIAL_BALANCE.wrapping_mul(rows as i64)
}

/// Fills an empty table with `rows` rows in one transaction. `progress` gets the number of rows so far now and then, and may end the load
/// by an error.
///
/// # Errors
/// Whatever the engine reports, or `progress`; nothing is loaded then.
pub fn load<S: Session>(
    session: &mut S,
    rows: u64,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    session.begin(TxOptions::READ_WRITE)?;
    let (mut ids, mut proceed) = (0..rows, Ok(()));
    let loaded = session.bulk_load(ROWS, |next_key, value| {
        let Some(id) = ids.next() else { return false };
        if id % 4096 == 0 {
            proceed = progress(id);
            if proceed.is_err() {
                return false;
            }
        }
        next_key.clear();
        next_key.extend_from_slice(&key(id));
        value.clear();
        value.resize(account::LENGTH, 0);
        account::BALANCE.set(value, INITIAL_BALANCE);
        true
    });
    match loaded.and(proceed).and_then(|()| session.commit()) {
        Ok(()) => Ok(()),
        Err(error) => {
            session.rollback()?;
            Err(error)
        }
    }
}

/// The number of rows, judged by the last one; none in an empty table.
///
/// # Errors
/// Whatever the engine reports.
pub fn rows<S: Session>(session: &mut S) -> Result<Option<u64>> {
    let mut rows = None;
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &[0xff; 9], Direction::Backward, |key, _| {
        let last = key.try_into().ok().map(u64::from_be_bytes);
        rows = last.map(|last| last.wrapping_add(1));
        false
    });
    session.rollback()?;
    scanned.map(|()| rows)
}

/// Reads all rows in one snapshot; `each` gets the number of rows now and then.
///
/// # Errors
/// Whatever the engine reports.
pub fn look<S: Session>(session: &mut S, mut each: impl FnMut(u64)) -> Result<Found> {
    let mut found = Found::default();
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &[], Direction::Forward, |found_key, row| {
        if found_key == key(found.rows) && row.len() == account::LENGTH {
            found.add(row);
        } else {
            found.wrong += 1;
        }
        found.rows += 1;
        if found.rows % 4096 == 0 {
            each(found.rows);
        }
        true
    });
    session.rollback()?;
    scanned.map(|()| found)
}

impl Found {
    fn add(&mut self, row: &[u8]) {
        let row = exact::<{ account::LENGTH }>(row);
        self.balance = self.balance.wrapping_add(account::BALANCE.get(row));
        self.writes = self.writes.wrapping_add(account::WRITES.get(row));
    }
}

/// Reads `length` rows from row `first` on in one snapshot of a table of `rows` rows, as long as `proceed` says so. Returns whether it
/// came to its end.
///
/// # Errors
/// Whatever the engine reports; [`EngineError::WrongData`] if a row is missing, or if they are all and their sum is not the
/// load's.
pub fn long_read<S: Session>(
    session: &mut S,
    first: u64,
    length: u64,
    rows: u64,
    proceed: impl Fn() -> bool,
) -> Result<bool> {
    let (mut next, mut wrong, mut stopped) = (first, false, false);
    let mut found = Found::default();
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &key(first), Direction::Forward, |found_key, row| {
        wrong = found_key != key(next) || row.len() != account::LENGTH;
        if wrong {
            return false;
        }
        found.add(row);
        next += 1;
        stopped = next % 4096 == 0 && !proceed();
        !stopped && next - first < length
    });
    session.rollback()?;
    scanned?;
    if stopped {
        return Ok(false);
    }
    let what = if wrong || next - first != length {
        format!("a long reader of {length} rows from row {first} on missed row {next}")
    } else if length == rows && found.balance != expected_balance(rows) {
        format!(
            "the balances add up to {} in the snapshot of a long reader, not to {}",
            found.balance,
            expected_balance(rows)
        )
    } else {
        return Ok(true);
    };
    Err(EngineError::WrongData { table: ROWS, what })
}
