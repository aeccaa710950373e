//! Full scans: to be measured, and to be checked.

use super::{ROWS, Sizes, counter, is_value, key};
use crate::engine::{Direction, EngineError, Result, Session, TxOptions};

/// What a full scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Rows.
    pub rows: u64,
    /// Sum of the counters.
    pub updates: u64,
    /// Rows that are out of order, or not what was written.
    pub wrong: u64,
}

/// Reads all rows in one snapshot and looks at every byte of them.
///
/// # Errors
/// Whatever the engine reports.
pub fn verify<S: Session>(session: &mut S, sizes: impl Into<Sizes>) -> Result<Scanned> {
    let sizes = sizes.into();
    let mut scanned = Scanned::default();
    whole_scan(session, |found_key, value| {
        let right = found_key == key(scanned.rows) && is_value(value, scanned.rows, sizes);
        scanned.wrong += u64::from(!right);
        scanned.rows += 1;
        scanned.updates = scanned.updates.wrapping_add(counter(value));
    })?;
    Ok(scanned)
}

/// Reads all rows in one snapshot; `progress` gets the number of rows since it was called last.
/// Returns the number of rows.
///
/// # Errors
/// Whatever the engine reports; [`EngineError::WrongData`] if the rows are not `expected` many.
pub fn scan<S: Session>(
    session: &mut S,
    expected: u64,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<u64> {
    const BATCH: u64 = 4096;
    let (mut rows, mut bytes, mut stopped) = (0_u64, 0_u64, false);
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &[], Direction::Forward, |found_key, value| {
        rows += 1;
        // Key and value are looked at, so that an engine cannot leave them out.
        bytes = bytes
            .wrapping_add((found_key.len() + value.len()) as u64)
            .wrapping_add(u64::from(
                found_key.last().copied().unwrap_or(0) ^ value.first().copied().unwrap_or(0),
            ));
        if rows % BATCH == 0 {
            stopped = !progress(BATCH);
        }
        !stopped
    });
    session.rollback()?;
    scanned?;
    std::hint::black_box(bytes);
    progress(rows % BATCH);
    if !stopped && rows != expected {
        let what = format!("a scan found {rows} of {expected} rows");
        return Err(EngineError::WrongData { table: ROWS, what });
    }
    Ok(rows)
}

/// Reads the `length` rows from row `first` on in one snapshot. Returns the number of rows.
///
/// # Errors
/// Whatever the engine reports; [`EngineError::WrongData`] if a row is missing or another's.
pub fn scan_range<S: Session>(session: &mut S, first: u64, length: u64) -> Result<u64> {
    let (mut next, mut wrong) = (first, None);
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &key(first), Direction::Forward, |found_key, value| {
        let named = value.len().min(8);
        if found_key != key(next) || value[..named] != next.to_le_bytes()[..named] {
            wrong = Some(next);
            return false;
        }
        next += 1;
        next - first < length
    });
    session.rollback()?;
    scanned?;
    if wrong.is_some() || next - first != length {
        let what = format!("a scan of {length} rows from row {first} on missed row {next}");
        return Err(EngineError::WrongData { table: ROWS, what });
    }
    Ok(length)
}

fn whole_scan<S: Session>(session: &mut S, mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &[], Direction::Forward, |key, value| {
        each(key, value);
        true
    });
    session.rollback()?;
    scanned
}

/// The number of rows and the size of a value, judged by the last row; none in an empty table.
/// Enough to tell whether a database was loaded with other parameters.
///
/// # Errors
/// Whatever the engine reports.
pub fn shape<S: Session>(session: &mut S) -> Result<Option<(u64, usize)>> {
    let (mut rows, mut size) = (None, 0);
    session.begin(TxOptions::READ_ONLY)?;
    let scanned = session.scan(ROWS, &[0xff; 9], Direction::Backward, |key, value| {
        rows = key
            .try_into()
            .ok()
            .map(|key| u64::from_be_bytes(key).wrapping_add(1));
        size = value.len();
        false
    });
    session.rollback()?;
    scanned.map(|()| rows.map(|rows| (rows, size)))
}
