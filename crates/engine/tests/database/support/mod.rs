//! What the tests of the embedded API share: small databases, seeds, keys.

#![allow(dead_code, reason = "the experiments use their part")]

use std::sync::Arc;
use vellum::{Config, Database, Experiment, KeyDescription, KeyPart, Source, Table, Transaction};
use vellum_io::{Directory, MemoryDirectory};

/// A database in which everything runs short: frames, log, slots.
pub fn tiny(page_size: usize, frames: u64) -> Config {
    let mut config = Config::default()
        .page_size(page_size)
        .pool_bytes(frames * page_size as u64)
        .background_threads(false);
    config.slots_max = 16;
    config.slot_buffer_bytes = 16 * page_size;
    config.log_segment_bytes = 64 * page_size as u64;
    config.log_bytes_max = 512 * page_size as u64;
    config.checkpoint_log_bytes = 128 * page_size as u64;
    config.data_bytes_max = 1 << 30;
    config.experiment(experiment())
}

/// What this binary tests: its name says so.
pub fn experiment() -> Experiment {
    match env!("CARGO_CRATE_NAME") {
        "read_view" => Experiment::BASIC,
        "stamping" => Experiment::STAMPING,
        _ => Experiment::FULL,
    }
}

/// The usual small database of these tests.
pub fn small() -> Config {
    tiny(4096, 64)
}

pub fn open(directory: &Arc<dyn Directory>, config: &Config) -> Database {
    Database::open_directory(directory.clone(), config.clone()).unwrap()
}

pub fn fresh(config: &Config) -> (Arc<dyn Directory>, Database) {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let database = open(&directory, config);
    (directory, database)
}

/// A fresh database with one table.
pub fn with_table(config: &Config) -> (Arc<dyn Directory>, Database, Table) {
    let (directory, database) = fresh(config);
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    (directory, database, table)
}

/// The seed of a random test: `VELLUM_SEED`, else a fresh one. Prints how to run `test` again.
pub fn seed(test: &str) -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum {test}");
    seed
}

pub fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

pub fn value_of(tx: &Transaction, table: &Table, key: &[u8]) -> Option<Vec<u8>> {
    tx.get(table, key, <[u8]>::to_vec).unwrap()
}

/// An index over bytes of the value.
pub fn by_value(start: u32, end: Option<u32>, unique: bool) -> KeyDescription {
    KeyDescription::new(
        vec![KeyPart {
            source: Source::Value,
            start,
            end,
        }],
        unique,
    )
    .unwrap()
}

/// Rows of a table in key order, as a transaction sees them.
pub fn rows(tx: &Transaction, table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = tx.cursor(table, ..).unwrap();
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    rows
}

/// Does background work until there is none.
pub fn settle(database: &Database) {
    for _ in 0..1000 {
        if !database.step().unwrap() {
            return;
        }
    }
    panic!("background work does not end");
}
