//! What operations take beside idle snapshots of different ages, for who counts instructions: no background threads, so two runs do the same.
//!
//! ```text
//! cargo build --release -p vellum --example beside
//! valgrind --tool=callgrind target/release/examples/beside queue 10 40000
//! ```
//! Two runs that differ in the last number differ in that many operations. `queue`: a row is added at the tail, and the smallest is deleted; `hot`: one of
//! a hundred rows is updated.

use std::process::ExitCode;
use std::sync::Arc;
use vellum::{Config, Database, Durability, Result, Table, TransactionOptions};
use vellum_io::MemoryDirectory;

/// Rows of the queue.
const LENGTH: u64 = 1_000;
/// Rows that are updated.
const HOT: u64 = 100;
/// Operations between the begins of two snapshots, and before the ones that are counted: more than the queue has rows.
const APART: u64 = 6_000;
/// Operations between two steps of what background threads do.
const STEP: u64 = 5_000;
const VALUE: [u8; 100] = [7; 100];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Workload {
    Queue,
    Hot,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    let workload = match words.first().map(String::as_str) {
        Some("queue") => Workload::Queue,
        Some("hot") => Workload::Hot,
        _ => return usage(),
    };
    let (Some(snapshots), Some(operations)) = (numbers(1), numbers(2)) else {
        return usage();
    };
    match run(workload, snapshots, operations) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("beside: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: beside queue|hot SNAPSHOTS OPERATIONS");
    ExitCode::FAILURE
}

fn run(workload: Workload, snapshots: u64, operations: u64) -> Result<()> {
    let mut config = Config::default()
        .pool_bytes(64 << 20)
        .background_threads(false);
    config.data_bytes_max = 1 << 30;
    let database = Database::open_directory(Arc::new(MemoryDirectory::new()), config)?;
    let table = database.retry(|tx| tx.create_table("t"))?;
    let rows = match workload {
        Workload::Queue => LENGTH,
        Workload::Hot => HOT,
    };
    database
        .retry(|tx| (0..rows).try_for_each(|row| tx.insert(&table, &row.to_be_bytes(), &VALUE)))?;
    let mut held = Vec::new();
    let first = (snapshots + 1) * APART;
    for number in 0..first + operations {
        if number < first && number % APART == 0 && number > 0 {
            held.push(database.begin()?);
        }
        if number % STEP == 0 {
            database.step()?;
        }
        match workload {
            Workload::Queue => advance(&database, &table, number + LENGTH)?,
            Workload::Hot => update(&database, &table, number)?,
        }
    }
    let statistics = database.statistics();
    println!(
        "{} snapshots, {} rows buried, {} promoted, {} bytes of versions",
        held.len(),
        statistics.rows_buried,
        statistics.promotions,
        statistics.version_bytes
    );
    held.into_iter().try_for_each(vellum::Transaction::rollback)
}

fn begin(database: &Database) -> Result<vellum::Transaction> {
    database.begin_with(TransactionOptions::default().durability(Durability::Async))
}

fn advance(database: &Database, table: &Table, tail: u64) -> Result<()> {
    let tx = begin(database)?;
    tx.insert(table, &tail.to_be_bytes(), &VALUE)?;
    let mut smallest = [0; 8];
    let mut cursor = tx.cursor(table, ..)?;
    if let Some((key, _)) = cursor.next()? {
        smallest.copy_from_slice(key);
    }
    drop(cursor);
    assert!(tx.delete(table, &smallest)?, "it was just found");
    tx.commit()
}

fn update(database: &Database, table: &Table, number: u64) -> Result<()> {
    let tx = begin(database)?;
    // Each as often as any other, in no order.
    let row = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let key = (row % HOT).to_be_bytes();
    let changed = tx.update(table, &key, &[8..16], |value| {
        value[8..16].copy_from_slice(&number.to_be_bytes());
    })?;
    assert!(changed, "it is there");
    tx.commit()
}
