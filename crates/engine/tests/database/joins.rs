//! Joins of leaves are optional: a page beside those that a rollback changes, which cannot be read, keeps no database shut and ends no transaction.

use crate::support::{key, rows, tiny, value_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum::{Config, Database, Durability, Error, Table, TransactionOptions};
use vellum_io::{OpenOptions, SimulatedDirectory};

const PAGE: usize = 4096;

/// A row's value: a mark by which it is found in the file, its number, and more.
fn value(number: u32) -> Vec<u8> {
    let mut value = b"<row>".to_vec();
    value.extend_from_slice(&number.to_be_bytes());
    value.resize(60, 7);
    value
}

/// The rows in the pages of the file, by page: of a table that was written by a checkpoint.
fn leaves(directory: &SimulatedDirectory) -> Vec<(u64, Vec<u32>)> {
    use vellum_io::Directory;
    let file = directory.open("data", OpenOptions::read_only()).unwrap();
    let mut leaves: BTreeMap<u32, (u64, Vec<u32>)> = BTreeMap::new();
    let mut page = vec![0; PAGE];
    file.read_at(&mut page, 0).unwrap();
    // Not what is in the double-write area, two halves of a page and a batch.
    let batch = u32::from_le_bytes(page[40..44].try_into().unwrap());
    let places = 2 + 2 * (1 + u64::from(batch))..file.len().unwrap() / PAGE as u64;
    for number in places {
        file.read_at(&mut page, number * PAGE as u64).unwrap();
        let mut found: Vec<u32> = page
            .windows(9)
            .filter_map(|bytes| bytes.strip_prefix(b"<row>"))
            .map(|row| u32::from_be_bytes(row.try_into().unwrap()))
            .collect();
        found.sort_unstable();
        if let Some(first) = found.first() {
            let before = leaves.insert(*first, (number, found));
            assert!(before.is_none(), "a row is in one page");
        }
    }
    leaves.into_values().collect()
}

/// A table whose last leaf has few rows, another one with one row, and everything on disk; how many rows the first one has.
struct Filled {
    directory: Arc<SimulatedDirectory>,
    database: Database,
    table: Table,
    other: Table,
    rows: u32,
    /// The last leaf but one: its page, and one of its rows.
    neighbour: (u64, u32),
}

fn insert(database: &Database, table: &Table, numbers: std::ops::Range<u32>) {
    database
        .retry(|tx| {
            numbers
                .clone()
                .try_for_each(|number| tx.insert(table, &key(number), &value(number)))
        })
        .unwrap();
}

fn filled(config: &Config) -> Filled {
    let directory = Arc::new(SimulatedDirectory::new());
    let database = Database::open_directory(directory.clone(), config.clone()).unwrap();
    let (table, other) = database
        .retry(|tx| Ok((tx.create_table("t")?, tx.create_table("other")?)))
        .unwrap();
    insert(&database, &table, 0..2_000);
    database.checkpoint().unwrap();
    let found = leaves(&directory);
    let [.., full, last] = &found[..] else {
        panic!("many leaves");
    };
    let rows = 2_003 + (full.1.len() - last.1.len()) as u32;
    insert(&database, &table, 2_000..rows);
    database
        .retry(|tx| tx.insert(&other, b"one", b"row"))
        .unwrap();
    database.checkpoint().unwrap();
    let found = leaves(&directory);
    let [.., full, last] = &found[..] else {
        panic!("many leaves");
    };
    assert!(last.1.len() < 8, "{last:?}");
    // What is damaged from here on is nowhere else: no batch of the last two has it.
    for key in [b"two", b"six"] {
        database.retry(|tx| tx.insert(&other, key, b"row")).unwrap();
        database.checkpoint().unwrap();
    }
    Filled {
        neighbour: (full.0, full.1[0]),
        directory,
        database,
        table,
        other,
        rows,
    }
}

fn flip(directory: &SimulatedDirectory, page: u64) {
    directory
        .flip_bit("data", page * PAGE as u64 + 2_000, 3)
        .unwrap();
}

/// Has other pages in memory.
fn evict(database: &Database) {
    let large = database.retry(|tx| tx.create_table("large")).unwrap();
    for from in (0..2_000).step_by(100) {
        database
            .retry(|tx| (from..from + 100).try_for_each(|n| tx.insert(&large, &key(n), &[1; 300])))
            .unwrap();
    }
}

/// Symptom: a database could not be opened, for a page of one table that nobody needed. Cause: what recovery reverted made the leaf beside it small, and the
/// error of the join was the undo's. Guard: the leaves stay apart.
#[test]
fn regress_recovery_opens_a_database_one_leaf_of_which_cannot_be_read_beside_what_it_reverts() {
    let config = tiny(PAGE, 64);
    let filled = filled(&config);
    let tx = filled.database.begin().unwrap();
    for number in filled.rows..filled.rows + 200 {
        tx.insert(&filled.table, &key(number), &value(number))
            .unwrap();
    }
    let sync = TransactionOptions::default().durability(Durability::Sync);
    let (database, other) = (&filled.database, &filled.other);
    database
        .retry_with(sync, |tx| tx.insert(other, b"ten", b"row"))
        .unwrap();
    let killed = Arc::new(filled.directory.process_kill());
    drop(tx);
    let (page, row) = filled.neighbour;
    flip(&killed, page);
    let database = Database::open_directory(killed.clone(), config.clone()).unwrap();
    let reader = database.begin().unwrap();
    let other = reader.table("other").unwrap();
    assert_eq!(rows(&reader, &other).len(), 4);
    let table = reader.table("t").unwrap();
    let damaged = reader.get(&table, &key(row), <[u8]>::to_vec);
    assert!(
        matches!(damaged, Err(Error::Corruption { .. })),
        "{damaged:?}"
    );
    assert!(value_of(&reader, &table, &key(filled.rows - 1)).is_some());
    for number in filled.rows..filled.rows + 200 {
        assert_eq!(value_of(&reader, &table, &key(number)), None);
    }
    drop(reader);
    drop(database);
    // What the medium gives back is all there.
    flip(&killed, page);
    let database = Database::open_directory(killed, config).unwrap();
    let reader = database.begin().unwrap();
    let table = reader.table("t").unwrap();
    assert_eq!(rows(&reader, &table).len(), filled.rows as usize);
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn regress_rollback_to_a_savepoint_beside_a_leaf_that_cannot_be_read_leaves_its_transaction_usable()
{
    let filled = filled(&tiny(PAGE, 24));
    let Filled {
        database, table, ..
    } = &filled;
    let tx = database.begin().unwrap();
    let savepoint = tx.savepoint().unwrap();
    for number in filled.rows..filled.rows + 200 {
        tx.insert(table, &key(number), &value(number)).unwrap();
    }
    evict(database);
    let (page, row) = filled.neighbour;
    flip(&filled.directory, page);
    tx.rollback_to(&savepoint).unwrap();
    let damaged = tx.get(table, &key(row), <[u8]>::to_vec);
    assert!(
        matches!(damaged, Err(Error::Corruption { .. })),
        "{damaged:?}"
    );
    tx.insert(table, &key(filled.rows), b"more").unwrap();
    tx.commit().unwrap();
    flip(&filled.directory, page);
    let reader = database.begin().unwrap();
    assert_eq!(rows(&reader, table).len(), filled.rows as usize + 1);
}

/// A user's delete, and what maintenance does behind it.
#[test]
fn delete_beside_a_leaf_that_cannot_be_read_is_done_and_its_row_goes() {
    let filled = filled(&tiny(PAGE, 24));
    let Filled {
        database, table, ..
    } = &filled;
    evict(database);
    let (page, _) = filled.neighbour;
    flip(&filled.directory, page);
    let last = filled.rows - 3..filled.rows;
    for number in last.clone() {
        database
            .retry(|tx| tx.delete(table, &key(number)).map(|was| assert!(was)))
            .unwrap();
    }
    crate::support::settle(database);
    assert_eq!(database.statistics().tombstones, 0);
    flip(&filled.directory, page);
    let reader = database.begin().unwrap();
    assert_eq!(rows(&reader, table).len(), last.start as usize);
}
