//! What a read, an update and a scan take from the heap once a session is warm: a read nothing, an update nothing but what the collection
//! of a leaf of old versions takes, a scan as much for any number of rows.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use allocation_counter::measure;
use std::ops::ControlFlow;
use std::sync::Arc;
use vellum::{Class, Config, Database, Durability, Table, TransactionOptions};
use vellum_io::MemoryDirectory;

const ROWS: u64 = 2_000;
/// Of which so many are updated between two steps of background work: less than fills the log's buffer, since what a flush takes is its own.
const UPDATED: u64 = 500;

/// Without threads beside it: the counter is of one thread, but what others do would change what this one finds.
fn database() -> (Database, Table) {
    let config = Config::default()
        .pool_bytes(16 << 20)
        .background_threads(false);
    let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config).unwrap();
    let table = database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            for row in 0..ROWS {
                tx.insert(&table, &row.to_be_bytes(), &[1; 100])?;
            }
            Ok(table)
        })
        .unwrap();
    (database, table)
}

fn read(database: &Database, table: &Table, row: u64, class: Class) {
    let options = TransactionOptions::default().class(class).read_only(true);
    let tx = database.begin_with(options).unwrap();
    let length = tx.get(table, &row.to_be_bytes(), <[u8]>::len).unwrap();
    assert_eq!(length, Some(100));
    tx.commit().unwrap();
}

#[test]
fn a_point_read_allocates_nothing() {
    let (database, table) = database();
    for class in [Class::Auto, Class::Oltp, Class::Olap] {
        read(&database, &table, 0, class);
        let taken = measure(|| {
            for row in 0..ROWS {
                read(&database, &table, row * 7 % ROWS, class);
            }
        });
        assert_eq!(taken.count_total, 0, "{class:?}: {taken:?}");
    }
    // The counter counts.
    assert_eq!(
        measure(|| drop(std::hint::black_box(Box::new(1)))).count_total,
        1
    );
}

/// Whose commit waits for nobody.
fn update(database: &Database, table: &Table, row: u64) {
    let options = TransactionOptions::default().durability(Durability::Async);
    let tx = database.begin_with(options).unwrap();
    let found = tx.update(table, &row.to_be_bytes(), &[0..8], |value| {
        value[0] = value[0].wrapping_add(1);
    });
    assert!(found.unwrap());
    tx.commit().unwrap();
}

#[test]
fn an_update_of_a_row_in_memory_allocates_less_than_once_in_twenty() {
    let (database, table) = database();
    let round = || {
        for row in 0..UPDATED {
            update(&database, &table, row * 7 % ROWS);
        }
    };
    let rest = || while database.step().unwrap() {};
    // Rows have their headers, and what is kept for the next transaction has been made.
    for _ in 0..8 {
        round();
        rest();
    }
    for _ in 0..8 {
        let taken = measure(round);
        // Commits collect what earlier ones have left, a leaf at a time: 21 at most when this was written.
        assert!(taken.count_total < UPDATED / 20, "{taken:?}");
        rest();
    }
}

fn scan(database: &Database, table: &Table, rows: u64) -> u64 {
    let options = TransactionOptions::default().read_only(true);
    let tx = database.begin_with(options).unwrap();
    let (mut seen, mut bytes) = (0, 0);
    let mut cursor = tx.cursor(table, ..).unwrap();
    let ended = cursor.try_for_each(|key, value| {
        seen += 1;
        bytes += key.len() + value.len();
        match seen == rows {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    assert!(ended.is_ok());
    drop(cursor);
    tx.commit().unwrap();
    assert_eq!(bytes, 108 * rows as usize);
    seen
}

#[test]
fn what_a_scan_allocates_does_not_grow_with_its_rows() {
    let (database, table) = database();
    let taken = |rows| {
        let taken = measure(|| assert_eq!(scan(&database, &table, rows), rows));
        taken.count_total
    };
    taken(ROWS);
    // Of several leaves, both.
    let (few, many) = (taken(ROWS / 20), taken(ROWS));
    assert_eq!(few, many, "a twentieth of the rows, and all of them");
    assert!(many <= 3, "{many}: copies of keys");
}
