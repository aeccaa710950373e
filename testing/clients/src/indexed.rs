//! Lists in rows whose table has indexes: two that are declared, one of them unique, and a table that the transactions keep beside it themselves,
//! as layers above the engine do. A list is found by its key, or by looking through any of the three; what is found there must be
//! what the row says, and there once.
//!
//! Layout of a row: `0 u16 bucket`, `2 u64 last value`, `10 u64 count`, `18 u64 …` values; big-endian. The bucket follows from the last value,
//! so an append moves the row in every index.
//!
//! Not checked: ranges of an index (`testing/model`), indexes that are made or dropped while others write (tests of the engine).

use crate::list::make_table;
use std::ops::Range;
use vellum::{Database, Error, Index, KeyDescription, KeyPart, Result, Source, Table, Transaction};
use vellum_base::random::Random;

/// Values that a list has room for.
const ROOM: usize = 60;
const COUNT_AT: usize = 10;
const HEAD: usize = 18;
const ROW_BYTES: usize = HEAD + 8 * ROOM;
const BUCKETS: u64 = 16;

const TABLE: &str = "lists with indexes";
const BY_BUCKET: &str = "by bucket";
const BY_LAST: &str = "by last value";
/// Rows `bucket, key` without a value.
const KEPT: &str = "lists by bucket";

/// The tables of such lists.
#[derive(Debug)]
pub struct Indexed {
    rows: Table,
    by_bucket: Index,
    by_last: Index,
    kept: Table,
}

fn wrong(what: String) -> Error {
    Error::InvalidArgument { what }
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..).and_then(|rest| rest.first_chunk());
    eight.map_or(0, |eight| u64::from_be_bytes(*eight))
}

fn values(row: &[u8]) -> Vec<u64> {
    let count = (number_at(row, COUNT_AT) as usize).min(ROOM);
    (0..count).map(|at| number_at(row, HEAD + 8 * at)).collect()
}

/// Appends to the bytes of a row; false, and nothing changed, if there is no room.
fn push(row: &mut [u8], value: u64) -> bool {
    let count = number_at(row, COUNT_AT) as usize;
    if count >= ROOM {
        return false;
    }
    row[..2].copy_from_slice(&((value % BUCKETS) as u16).to_be_bytes());
    row[2..10].copy_from_slice(&value.to_be_bytes());
    row[COUNT_AT..HEAD].copy_from_slice(&(count as u64 + 1).to_be_bytes());
    let at = HEAD + 8 * count;
    row[at..at + 8].copy_from_slice(&value.to_be_bytes());
    true
}

fn kept_key(row: &[u8], key: &[u8]) -> Vec<u8> {
    [&row[..2], key].concat()
}

impl Indexed {
    /// Makes what is not there.
    ///
    /// # Errors
    /// What the database says.
    pub fn prepare(database: &Database) -> Result<()> {
        make_table(database, TABLE)?;
        make_table(database, KEPT)?;
        database.retry(|transaction| {
            let table = transaction.table(TABLE)?;
            for (name, columns, unique) in [(BY_BUCKET, 0..2, false), (BY_LAST, 2..10, true)] {
                if !transaction
                    .indexes(&table)?
                    .iter()
                    .any(|there| there == name)
                {
                    let part = KeyPart {
                        source: Source::Value,
                        start: columns.start,
                        end: Some(columns.end),
                    };
                    let key = KeyDescription::new(vec![part], unique).expect("a key of one part");
                    transaction.create_index(&table, name, key)?;
                }
            }
            Ok(())
        })
    }

    /// Finds the tables.
    ///
    /// # Errors
    /// What the database says.
    pub fn open(transaction: &Transaction) -> Result<Self> {
        let rows = transaction.table(TABLE)?;
        Ok(Self {
            by_bucket: transaction.index(&rows, BY_BUCKET)?,
            by_last: transaction.index(&rows, BY_LAST)?,
            kept: transaction.table(KEPT)?,
            rows,
        })
    }

    /// Appends a value; false if there is no room. `blind`: as in [`store`](crate::store).
    ///
    /// # Errors
    /// What the database says; `InvalidArgument` if the entry that the transactions keep is not there.
    pub fn append(
        &self,
        transaction: &Transaction,
        random: &mut Random,
        key: u64,
        value: u64,
        blind: bool,
    ) -> Result<bool> {
        let bytes = &key.to_be_bytes();
        let mut row = vec![0; ROW_BYTES];
        // In a snapshot a row may also be read, and written as a whole, or taken away and put there again.
        let way = if blind { 0 } else { random.below(4) };
        let (mut room, mut old) = (true, None);
        let there = if way < 2 {
            let ranges = self.changes(transaction, bytes, way == 1)?;
            transaction.update(&self.rows, bytes, &ranges, |row| {
                old = Some(kept_key(row, bytes));
                room = push(row, value);
            })?
        } else if transaction.get_into(&self.rows, bytes, &mut row)? {
            old = Some(kept_key(&row, bytes));
            room = push(&mut row, value);
            match way {
                _ if !room => true,
                2 => transaction.replace(&self.rows, bytes, &row)?,
                _ => {
                    let there = transaction.delete(&self.rows, bytes)?;
                    transaction.insert(&self.rows, bytes, &row)?;
                    there
                }
            }
        } else {
            false
        };
        if !room {
            return Ok(false);
        }
        if !there {
            row = vec![0; ROW_BYTES];
            push(&mut row, value);
            transaction.insert(&self.rows, bytes, &row)?;
            old = None;
        }
        self.move_kept(transaction, bytes, old, value)?;
        Ok(true)
    }

    /// The bytes that an append changes: those of the whole row, or, in a snapshot, no others than these.
    fn changes(
        &self,
        transaction: &Transaction,
        key: &[u8],
        narrow: bool,
    ) -> Result<Vec<Range<usize>>> {
        let count = |row: &[u8]| number_at(row, COUNT_AT) as usize;
        let found = match narrow {
            true => transaction.get(&self.rows, key, count)?,
            false => None,
        };
        Ok(match found.filter(|count| *count < ROOM) {
            Some(count) => vec![0..HEAD, HEAD + 8 * count..HEAD + 8 * count + 8],
            None => vec![0..ROW_BYTES],
        })
    }

    fn move_kept(
        &self,
        transaction: &Transaction,
        key: &[u8],
        old: Option<Vec<u8>>,
        value: u64,
    ) -> Result<()> {
        let bucket = ((value % BUCKETS) as u16).to_be_bytes();
        let new = kept_key(&bucket, key);
        if old.as_ref() == Some(&new) {
            return Ok(());
        }
        if let Some(old) = old
            && !transaction.delete(&self.kept, &old)?
        {
            return Err(wrong(format!("list {key:?} has no entry {old:?}")));
        }
        transaction.insert(&self.kept, &new, b"")
    }

    /// Reads a list by its key, or by one of the indexes. `blind`: by its key, as others are other statements.
    ///
    /// # Errors
    /// What the database says; `InvalidArgument` if an index shows something else than the rows.
    pub fn read(
        &self,
        transaction: &Transaction,
        random: &mut Random,
        key: u64,
        blind: bool,
    ) -> Result<Vec<u64>> {
        let bytes = key.to_be_bytes();
        let mut row = Vec::new();
        let there = transaction.get_into(&self.rows, &bytes, &mut row)?;
        let way = if blind { 0 } else { random.below(4) };
        let columns = match way {
            0 => return Ok(values(&row)),
            2 => 2..10,
            _ => 0..2,
        };
        let found = match way {
            1 => Self::look_through(transaction, &self.by_bucket, random, &bytes)?,
            2 => Self::look_through(transaction, &self.by_last, random, &bytes)?,
            _ => self.look_through_kept(transaction, &bytes)?,
        };
        let expected: Vec<&[u8]> = match there {
            true => vec![row.get(columns.clone()).unwrap_or_default()],
            false => Vec::new(),
        };
        let found: Vec<&[u8]> = found
            .iter()
            .map(|entry| entry.get(..columns.len()).unwrap_or_default())
            .collect();
        if found != expected {
            return Err(wrong(format!(
                "list {key} is at {expected:?}, index {way} says {found:?}"
            )));
        }
        Ok(values(&row))
    }

    /// The entries of a list in a declared index.
    fn look_through(
        transaction: &Transaction,
        index: &Index,
        random: &mut Random,
        key: &[u8],
    ) -> Result<Vec<Vec<u8>>> {
        let mut cursor = transaction.index_cursor(index, ..)?;
        let mut found = Vec::new();
        let forward = random.chance(1, 2);
        let mut last: Option<Vec<u8>> = None;
        while let Some((entry, of)) = if forward {
            cursor.next()
        } else {
            cursor.prev()
        }? {
            let in_order = last.is_none_or(|last| (*last < *entry) == forward && *last != *entry);
            if !in_order {
                return Err(wrong(format!("entry {entry:?} is out of order")));
            }
            if of == key {
                found.push(entry.to_vec());
            }
            last = Some(entry.to_vec());
        }
        Ok(found)
    }

    fn look_through_kept(&self, transaction: &Transaction, key: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut cursor = transaction.cursor(&self.kept, ..)?;
        let mut found = Vec::new();
        while let Some((entry, _)) = cursor.next()? {
            if entry.get(2..) == Some(key) {
                found.push(entry.to_vec());
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use vellum::Config;
    use vellum_io::MemoryDirectory;

    /// Somebody changes the row of a list behind the back of one index.
    #[test]
    fn an_index_that_does_not_fit_its_rows_is_noticed() {
        let database =
            Database::open_directory(Arc::new(MemoryDirectory::new()), Config::default()).unwrap();
        Indexed::prepare(&database).unwrap();
        let transaction = database.begin().unwrap();
        let lists = Indexed::open(&transaction).unwrap();
        let mut random = Random::new(3);
        for value in 0..40 {
            assert!(
                lists
                    .append(&transaction, &mut random, value % 2, value, false)
                    .unwrap()
            );
        }
        let mut read = || -> Result<()> {
            for _ in 0..20 {
                let found = lists.read(&transaction, &mut random, 1, false)?;
                assert_eq!(found, (0..20).map(|at| 2 * at + 1).collect::<Vec<_>>());
            }
            Ok(())
        };
        read().unwrap();
        let entry = kept_key(&(39 % BUCKETS as u16).to_be_bytes(), &1_u64.to_be_bytes());
        assert!(transaction.delete(&lists.kept, &entry).unwrap());
        assert!(read().is_err());
    }
}
