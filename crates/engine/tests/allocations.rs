//! What the way of a read and of an update takes from the heap: nothing, once a session is warm.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use allocation_counter::measure;
use std::sync::Arc;
use vellum::{Class, Config, Database, Table, TransactionOptions};
use vellum_io::MemoryDirectory;

const ROWS: u64 = 2_000;

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
