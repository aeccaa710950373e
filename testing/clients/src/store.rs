//! How a list lies in a table. The store is exercised by all of them: bytes changed in place, values that change their length, rows that are
//! added, and read by keys and by scans both ways.

use crate::indexed::Indexed;
use std::ops::{Bound, Range};
use vellum::{Error, Result, Table, Transaction};
use vellum_base::random::Random;

/// Values that a list in place has room for.
const ROOM: usize = 100;
const PACKED_BYTES: usize = 8 + 8 * ROOM;

/// The ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// One row of fixed length: a count and places; changed in place.
    Packed,
    /// One row that gets longer.
    Grown,
    /// A row an element, found by scans.
    Rows,
}

impl Style {
    /// The style of a list follows from its key.
    pub fn of(key: u64) -> Self {
        match key % 3 {
            0 => Self::Packed,
            1 => Self::Grown,
            _ => Self::Rows,
        }
    }
}

/// The table that every list lies in.
pub const TABLE: &str = "lists";

fn bytes_of(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

fn element(key: u64, number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&bytes_of(key));
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    let length = bytes.len().min(8);
    eight[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(eight)
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(8).map(number).collect()
}

fn unpack(bytes: &[u8]) -> Vec<u64> {
    let count = number(bytes).min(ROOM as u64) as usize;
    numbers(bytes.get(8..8 + 8 * count).unwrap_or_default())
}

/// The tables that lists lie in, as one transaction sees them.
#[derive(Debug)]
pub enum Store {
    /// One table; the style of a list follows from its key.
    Plain(Table),
    /// Rows in a table with indexes.
    Indexed(Indexed),
}

impl Store {
    /// Finds the tables.
    ///
    /// # Errors
    /// What the database says.
    pub fn open(transaction: &Transaction, indexed: bool) -> Result<Self> {
        Ok(match indexed {
            true => Self::Indexed(Indexed::open(transaction)?),
            false => Self::Plain(transaction.table(TABLE)?),
        })
    }

    /// Appends a value; false if there is no room. `blind`: the transaction's snapshot may be older than the list (read committed), so only
    /// what is done in place counts.
    ///
    /// # Errors
    /// What the database says.
    pub fn append(
        &self,
        transaction: &Transaction,
        random: &mut Random,
        key: u64,
        value: u64,
        blind: bool,
    ) -> Result<bool> {
        match self {
            Self::Indexed(lists) => lists.append(transaction, random, key, value, blind),
            Self::Plain(table) => append(transaction, table, random, key, value, blind),
        }
    }

    /// Reads a list, in one of the ways that there are.
    ///
    /// # Errors
    /// What the database says; `InvalidArgument` if rows of a list are missing between others, or an index does not fit its rows.
    pub fn read(
        &self,
        transaction: &Transaction,
        random: &mut Random,
        key: u64,
        blind: bool,
    ) -> Result<Vec<u64>> {
        match self {
            Self::Indexed(lists) => lists.read(transaction, random, key, blind),
            Self::Plain(table) => read(transaction, table, random, key),
        }
    }

    /// Reads lists that stand behind each other: those of the plain table as one range of its rows, others one by one.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_range(
        &self,
        transaction: &Transaction,
        random: &mut Random,
        keys: Range<u64>,
        blind: bool,
    ) -> Result<Vec<Vec<u64>>> {
        match self {
            Self::Indexed(_) => keys
                .map(|key| self.read(transaction, random, key, blind))
                .collect(),
            Self::Plain(table) => read_range(transaction, table, random, keys),
        }
    }
}

fn append(
    transaction: &Transaction,
    table: &Table,
    random: &mut Random,
    key: u64,
    value: u64,
    blind: bool,
) -> Result<bool> {
    match Style::of(key) {
        Style::Packed => append_packed(transaction, table, random, key, value, blind),
        Style::Grown => {
            debug_assert!(!blind, "reading and writing are two statements");
            let mut bytes = Vec::new();
            transaction.get_into(table, &bytes_of(key), &mut bytes)?;
            bytes.extend_from_slice(&value.to_be_bytes());
            transaction.upsert(table, &bytes_of(key), &bytes)?;
            Ok(true)
        }
        Style::Rows => {
            debug_assert!(!blind, "reading and writing are two statements");
            let last = {
                let (low, high) = (element(key, 0), element(key, u64::MAX));
                let range = (Bound::Included(&low[..]), Bound::Included(&high[..]));
                let mut cursor = transaction.cursor(table, range)?;
                cursor.prev()?.map(|(key, _)| number(&key[8..]))
            };
            let next = last.map_or(0, |last| last + 1);
            transaction.insert(table, &element(key, next), &value.to_be_bytes())?;
            Ok(true)
        }
    }
}

fn append_packed(
    transaction: &Transaction,
    table: &Table,
    random: &mut Random,
    key: u64,
    value: u64,
    blind: bool,
) -> Result<bool> {
    let bytes = bytes_of(key);
    let whole = 0..PACKED_BYTES;
    let mut room = true;
    // In a snapshot the count cannot change between the two statements, so that only the bytes that change are named.
    let narrow = !blind && random.chance(1, 2);
    let mut ranges = vec![whole];
    if narrow {
        let found = transaction.get(table, &bytes, |bytes| number(bytes) as usize)?;
        if let Some(count) = found.filter(|count| *count < ROOM) {
            let at = 8 + 8 * count;
            ranges = vec![0..8, at..at + 8];
        }
    }
    let there = transaction.update(table, &bytes, &ranges, |list| {
        let count = number(list) as usize;
        room = count < ROOM;
        if room {
            list[..8].copy_from_slice(&(count as u64 + 1).to_be_bytes());
            list[8 + 8 * count..16 + 8 * count].copy_from_slice(&value.to_be_bytes());
        }
    })?;
    if there {
        return Ok(room);
    }
    let mut list = vec![0; PACKED_BYTES];
    list[..8].copy_from_slice(&1_u64.to_be_bytes());
    list[8..16].copy_from_slice(&value.to_be_bytes());
    transaction.insert(table, &bytes, &list)?;
    Ok(true)
}

fn read(
    transaction: &Transaction,
    table: &Table,
    random: &mut Random,
    key: u64,
) -> Result<Vec<u64>> {
    match Style::of(key) {
        Style::Packed => {
            let list = transaction.get(table, &bytes_of(key), unpack)?;
            Ok(list.unwrap_or_default())
        }
        Style::Grown => {
            let list = transaction.get(table, &bytes_of(key), numbers)?;
            Ok(list.unwrap_or_default())
        }
        Style::Rows => read_rows(transaction, table, random, key),
    }
}

fn read_rows(
    transaction: &Transaction,
    table: &Table,
    random: &mut Random,
    key: u64,
) -> Result<Vec<u64>> {
    let (low, high) = (element(key, 0), element(key, u64::MAX));
    let range = (Bound::Included(&low[..]), Bound::Included(&high[..]));
    let pair = |key: &[u8], value: &[u8]| (number(&key[8..]), number(value));
    let rows = scan(transaction, table, random, range, pair)?;
    in_order(key, &rows)
}

/// Lists of every style that lie in a range of rows; one that has none is empty.
fn read_range(
    transaction: &Transaction,
    table: &Table,
    random: &mut Random,
    keys: Range<u64>,
) -> Result<Vec<Vec<u64>>> {
    let (low, high) = (bytes_of(keys.start), bytes_of(keys.end));
    let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
    let copy = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    let rows = scan(transaction, table, random, range, copy)?;
    keys.map(|key| {
        let mine = rows.iter().filter(|(bytes, _)| number(bytes) == key);
        if Style::of(key) == Style::Rows {
            let pair = |(key, value): &(Vec<u8>, Vec<u8>)| (number(&key[8..]), number(value));
            return in_order(key, &mine.map(pair).collect::<Vec<_>>());
        }
        let values = match Style::of(key) {
            Style::Packed => unpack,
            _ => numbers,
        };
        Ok(mine.flat_map(|(_, value)| values(value)).collect())
    })
    .collect()
}

/// What `of` makes of the rows of a range, in their order; read in either direction, row by row or in batches.
fn scan<T>(
    transaction: &Transaction,
    table: &Table,
    random: &mut Random,
    range: (Bound<&[u8]>, Bound<&[u8]>),
    of: impl Fn(&[u8], &[u8]) -> T,
) -> Result<Vec<T>> {
    let mut cursor = transaction.cursor(table, range)?;
    let mut rows = Vec::new();
    match random.below(4) {
        0 => {
            while let Some((key, value)) = cursor.next()? {
                rows.push(of(key, value));
            }
        }
        1 => {
            while let Some((key, value)) = cursor.prev()? {
                rows.push(of(key, value));
            }
            rows.reverse();
        }
        2 => {
            while cursor.batch_back(|key, value| rows.push(of(key, value)))? > 0 {}
            rows.reverse();
        }
        _ => while cursor.batch(|key, value| rows.push(of(key, value)))? > 0 {},
    }
    Ok(rows)
}

/// A list of places and values; a hole is no list, nothing that the history could hold.
fn in_order(key: u64, rows: &[(u64, u64)]) -> Result<Vec<u64>> {
    if let Some((at, row)) = (0_u64..).zip(rows).find(|(at, row)| *at != row.0) {
        return Err(Error::InvalidArgument {
            what: format!("list {key} has row {row:?} at place {at}"),
        });
    }
    Ok(rows.iter().map(|(_, value)| *value).collect())
}
