//! Power cuts while tables, indexes, large values and savepoints come and go in several open transactions: the next
//! open succeeds, and what it finds is sound. (Which commits survive is checked by the ledger of `testing/crash`.)
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::sync::Arc;
use support::{by_value, key, rows, seed, tiny};
use vellum::{Config, Database, Durability, Isolation, Result, Transaction, TransactionOptions};
use vellum_base::random::Random;
use vellum_io::{PowerCut, SimulatedDirectory};

/// One step of a transaction.
fn step(tx: &Transaction, random: &mut Random) -> Result<()> {
    let name = ["a", "b"][random.below(2) as usize];
    let table = match tx.table(name) {
        Ok(table) => table,
        Err(vellum::Error::NoSuchTable { .. }) => tx.create_table(name)?,
        Err(other) => return Err(other),
    };
    let row = key(random.below(150) as u32);
    let length = [0, 8, 200, 1300, 9000][random.below(5) as usize];
    let mut value = vec![0; length];
    random.fill(&mut value);
    match random.below(40) {
        0 => tx.drop_table(name)?,
        1 => drop(tx.create_index(&table, "i", by_value(0, Some(3), false))?),
        2 => tx.drop_index(&table, "i")?,
        3 => {
            let mut number = 0;
            tx.bulk_load(&table, |key, value| {
                number += 1u32;
                key.extend_from_slice(&number.to_be_bytes());
                value.resize(100, 3);
                number < 200
            })
            .map(drop)?;
        }
        4..8 => {
            let savepoint = tx.savepoint()?;
            for _ in 0..5 {
                tx.upsert(&table, &key(random.below(150) as u32), &value)?;
            }
            tx.rollback_to(&savepoint)?;
        }
        8..18 => drop(tx.delete(&table, &row)?),
        18..24 if length >= 8 => {
            drop(tx.update(&table, &row, &[0..0, 0..4], |value| value[..4].fill(1)));
        }
        _ => drop(tx.upsert(&table, &row, &value)?),
    }
    Ok(())
}

/// Runs until the power is gone or the work is done.
fn work(database: &Database, random: &mut Random) {
    let mut open: Vec<Transaction> = Vec::new();
    for _ in 0..250 {
        if open.len() < 3 && random.chance(1, 3) {
            let isolation =
                [Isolation::Snapshot, Isolation::ReadCommitted][random.below(2) as usize];
            let durability = [Durability::Async, Durability::Sync][random.below(2) as usize];
            let options = TransactionOptions::default()
                .isolation(isolation)
                .durability(durability);
            match database.begin_with(options) {
                Ok(tx) => open.push(tx),
                Err(_) => return,
            }
        }
        if open.is_empty() {
            continue;
        }
        let at = random.below(open.len() as u64) as usize;
        match random.below(10) {
            0 => drop(open.swap_remove(at).commit()),
            1 => drop(open.swap_remove(at).rollback()),
            2 => drop(database.step()),
            3 if random.chance(1, 4) => drop(database.checkpoint()),
            _ => {
                if let Err(error) = step(&open[at], random)
                    && error.is_retryable()
                {
                    drop(open.swap_remove(at));
                }
            }
        }
    }
}

fn life(seed: u64, config: &Config) {
    let mut random = Random::new(seed);
    let mut directory = Arc::new(SimulatedDirectory::new());
    drop(Database::open_directory(directory.clone(), config.clone()).unwrap());
    for life in 0..4 {
        directory.cut_after(random.between(10, 600));
        if let Ok(database) = Database::open_directory(directory.clone(), config.clone()) {
            work(&database, &mut random);
        }
        let cut = if random.chance(1, 2) {
            PowerCut::CLEAN
        } else {
            PowerCut::LUCKY
        };
        directory = Arc::new(directory.power_cut(random.next_u64(), cut));
        let look = Arc::new(directory.power_cut(random.next_u64(), cut));
        let database = Database::open_directory(look, config.clone());
        let database = database.unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
        let tx = database.begin().unwrap();
        for name in tx.tables().unwrap() {
            rows(&tx, &tx.table(&name).unwrap());
        }
        tx.commit().unwrap();
        let report = database.verify().unwrap();
        assert!(
            report.is_sound(),
            "seed {seed}, life {life}: {:?}",
            report.findings
        );
    }
}

#[test]
fn crash_definitions_chains_and_savepoints_cut_off_anywhere_leave_a_sound_database() {
    let seed = seed("crash_definitions_chains_and_savepoints");
    for case in 0..15 {
        let config = [tiny(4096, 32), tiny(4096, 128), tiny(8192, 40)][case as usize % 3].clone();
        life(seed.wrapping_add(case), &config);
    }
}
