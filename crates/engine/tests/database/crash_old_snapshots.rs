//! Power cuts at every I/O call while rows are buried, turn fat and back, lose versions to sweeps and are dropped under old
//! snapshots: what was acknowledged is there, and the database is sound.
#![cfg(not(any(loom, shuttle)))]

use crate::support::{by_value, key, rows, tiny};
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum::{
    Class, Config, Database, Durability, Error, Result, Statistics, Table, Transaction,
    TransactionOptions,
};
use vellum_base::random::Random;
use vellum_io::{PowerCut, SimulatedDirectory};

const ROWS: u32 = 60;

/// A row's value, `None` where it was deleted.
type State = BTreeMap<u32, Option<Vec<u8>>>;

fn begin(database: &Database, class: Class, durability: Durability) -> Result<Transaction> {
    let options = TransactionOptions::default()
        .class(class)
        .durability(durability);
    database.begin_with(options)
}

/// What was acknowledged, and what may be there beside: the transaction that was under way.
#[derive(Default)]
struct Known {
    state: State,
    maybe: State,
}

impl Known {
    /// Runs one transaction over `numbers`, durable when it returns.
    fn change(
        &mut self,
        database: &Database,
        table: &Table,
        numbers: impl Iterator<Item = u32>,
        value: impl Fn(u32) -> Option<Vec<u8>>,
    ) -> Result<()> {
        let tx = begin(database, Class::Auto, Durability::Sync)?;
        for number in numbers {
            let value = value(number);
            match &value {
                Some(value) => drop(tx.upsert(table, &key(number), value)?),
                None => drop(tx.delete(table, &key(number))?),
            }
            self.maybe.insert(number, value);
        }
        tx.commit()?;
        self.state.append(&mut self.maybe);
        Ok(())
    }
}

/// What happens under old snapshots, up to the cut. `hot`: many rows are updated until they are fat, where that takes two updates.
fn work(database: &Database, known: &mut Known, hot: bool) -> Result<()> {
    let table = database.retry(|tx| match tx.table("t") {
        Err(Error::NoSuchTable { .. }) => {
            let table = tx.create_table("t")?;
            tx.create_index(&table, "i", by_value(0, Some(2), false))?;
            Ok(table)
        }
        found => found,
    })?;
    // Every other row changes its length with each update.
    let small = |byte: u8| {
        move |number: u32| {
            let longer = number % 2 * u32::from(byte % 3) * 20;
            Some(vec![byte; 100 + longer as usize])
        }
    };
    known.change(database, &table, 0..ROWS, small(1))?;
    let hot = if hot { 600..1000 } else { 0..0 };
    known.change(database, &table, hot.clone(), small(1))?;
    // One has declared itself, the other is promoted in the middle.
    let old = begin(database, Class::Olap, Durability::Async)?;
    let session = begin(database, Class::Auto, Durability::Async)?;
    let seen = (rows_or(&old, &table)?, keys_by_index(&old, &table)?);
    assert_eq!(seen.0.len(), seen.1.len());
    database.step()?;
    for byte in 2..24 {
        // Hot rows turn fat, the others get links; new ones are updated once.
        known.change(database, &table, 0..3, small(byte))?;
        let first = u32::from(byte) * 3;
        known.change(database, &table, first..first + 3, small(byte))?;
        known.change(database, &table, first..first + 3, small(byte + 1))?;
        if byte % 4 == 0 {
            // Buried, and dropped: inserted and deleted after the snapshot.
            let buried = ROWS - u32::from(byte)..ROWS - u32::from(byte) + 4;
            known.change(database, &table, buried, |_| None)?;
            known.change(database, &table, 500..504, |_| Some(vec![byte; 5_000]))?;
            known.change(database, &table, 500..504, |_| Some(vec![byte; 6_000]))?;
            known.change(database, &table, 500..504, |_| None)?;
        }
        database.step()?;
        if byte == 12 {
            // Fat rows are written back as chains.
            database.checkpoint()?;
        }
    }
    for byte in 2..6 {
        known.change(database, &table, hot.clone(), small(byte))?;
    }
    // Frames run short: what is fat is turned back before its page goes.
    known.change(database, &table, 1000..1400, |_| Some(vec![9; 700]))?;
    while database.step()? {}
    for old in [old, session] {
        assert_eq!(rows_or(&old, &table)?, seen.0);
        assert_eq!(keys_by_index(&old, &table)?, seen.1);
        old.rollback()?;
    }
    while database.step()? {}
    known.change(database, &table, 0..3, small(99))
}

/// Keys by the first bytes of their values, as the index has them.
fn keys_by_index(tx: &Transaction, table: &Table) -> Result<Vec<Vec<u8>>> {
    let index = tx.index(table, "i")?;
    let mut entries = tx.index_cursor(&index, ..)?;
    let mut keys = Vec::new();
    while let Some((_, key)) = entries.next()? {
        keys.push(key.to_vec());
    }
    Ok(keys)
}

/// The rows that a transaction sees; the power may go meanwhile.
fn rows_or(tx: &Transaction, table: &Table) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut cursor = tx.cursor(table, ..)?;
    let mut rows = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        rows.push((key.to_vec(), value.to_vec()));
    }
    Ok(rows)
}

fn check(directory: SimulatedDirectory, config: &Config, known: &Known, context: &str) {
    let database = Database::open_directory(Arc::new(directory), config.clone())
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{context}: {:?}", report.findings);
    let tx = database.begin().unwrap();
    let found = match tx.table("t") {
        Ok(table) => rows(&tx, &table),
        Err(_) => Vec::new(),
    };
    let found: BTreeMap<Vec<u8>, Vec<u8>> = found.into_iter().collect();
    if let Ok(table) = tx.table("t") {
        let mut by_index = keys_by_index(&tx, &table).unwrap();
        by_index.sort();
        assert!(by_index.iter().eq(found.keys()), "{context}: other entries");
    }
    let is = |state: &State, number: u32| match state.get(&number) {
        Some(value) => found.get(&key(number)[..]) == value.as_ref(),
        None => !found.contains_key(&key(number)[..]),
    };
    // The transaction that was under way counts as a whole, or not at all.
    let both: State = known
        .state
        .iter()
        .chain(&known.maybe)
        .map(|(number, value)| (*number, value.clone()))
        .collect();
    let all = |state: &State| (0..1500).all(|number| is(state, number));
    assert!(all(&known.state) || all(&both), "{context}: other rows");
}

/// Cuts the power once in each run, after one call more each time, until a run comes to its end; returns what that counted.
/// What a cut keeps of what was not synced is drawn.
fn cut_everywhere(test: &str, config: &Config, hot: bool) -> Statistics {
    let mut random = Random::new(crate::support::seed(test));
    let mut call = 1;
    let mut cuts = 0;
    loop {
        let directory = Arc::new(SimulatedDirectory::new());
        let mut known = Known::default();
        drop(Database::open_directory(directory.clone(), config.clone()).unwrap());
        directory.cut_after(call);
        let ended = match Database::open_directory(directory.clone(), config.clone()) {
            Ok(database) => {
                let ended = work(&database, &mut known, hot);
                ended.map(|()| database.statistics())
            }
            Err(error) => Err(error),
        };
        let kind = PowerCut::KINDS[random.below(PowerCut::KINDS.len() as u64) as usize];
        let context = format!("cut after call {call}, {kind:?}");
        check(
            directory.power_cut(random.next_u64(), kind),
            config,
            &known,
            &context,
        );
        if let Ok(statistics) = ended {
            println!("{cuts} cuts");
            assert!(cuts > 200);
            return statistics;
        }
        cuts += 1;
        call += 1;
    }
}

#[test]
fn crash_power_cut_at_every_io_while_rows_are_buried_swept_and_dropped() {
    let mut config = tiny(4096, 96);
    config.promote_after_ticks = 100;
    let seen = cut_everywhere("crash_power_cut_at_every_io", &config, false);
    assert!(seen.rows_moved > 0);
    assert_eq!(seen.promotions, 1);
}

/// Symptom: none. Where rows have shortcuts hardly any is hot enough to turn fat; so here they have none, and two updates are enough.
#[test]
fn crash_power_cut_at_every_io_while_rows_turn_fat_and_back() {
    let mut config = tiny(4096, 96);
    config.promote_after_ticks = 100;
    config.versions.shortcuts = false;
    config.versions.fat_updates = Some(1);
    let seen = cut_everywhere("crash_power_cut_at_every_io", &config, true);
    assert!(seen.rows_moved > 0);
    assert!(seen.fat_rows_made > 400, "{}", seen.fat_rows_made);
    assert!(seen.fat_rows_decomposed > 0);
    assert_eq!(seen.promotions, 1);
}
