//! Power cuts while tables, indexes, large values and savepoints come and go in several open transactions: the next
//! open succeeds, and what it finds is sound. (Which commits survive is checked by the ledger of `testing/crash`.)

use crate::support::{by_value, key, rows, seed, tiny};
use std::sync::Arc;
use vellum::{
    Config, Database, Durability, Error, Isolation, Result, Table, Transaction, TransactionOptions,
};
use vellum_base::random::Random;
use vellum_io::{Call, Directory, Fault, PowerCut, SimulatedDirectory};

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

/// What is in use after recovery: pages of the whole file, and those that are only listed.
fn pages_after_recovery(disk: &SimulatedDirectory, config: &Config) -> (u64, u64, u64) {
    let directory: Arc<dyn Directory> = Arc::new(disk.clone());
    let database = Database::open_directory(directory, config.clone()).unwrap();
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let pages = report.pages;
    let free = database.statistics().pages_free;
    assert_eq!(pages.free, free, "the allocator knows of them");
    (pages.in_use, pages.pending, free)
}

#[test]
fn crash_chains_and_trees_of_losers_and_of_dropped_tables_are_free_pages_after_recovery() {
    let config = tiny(4096, 128);
    let disk = SimulatedDirectory::new();
    let database = Database::open_directory(Arc::new(disk.clone()), config.clone()).unwrap();
    database
        .retry(|tx| tx.create_table("kept").map(drop))
        .unwrap();
    let fill = |tx: &Transaction, name: &str| {
        let table = tx.create_table(name).unwrap();
        tx.create_index(&table, "i", by_value(0, Some(3), false))
            .unwrap();
        for n in 0..200 {
            let length = if n % 20 == 0 { 30_000 } else { 100 };
            tx.insert(&table, &key(n), &vec![n as u8; length]).unwrap();
        }
    };
    database.sync().unwrap();
    let (before, pending, free) =
        pages_after_recovery(&disk.power_cut(1, PowerCut::CLEAN), &config);
    assert_eq!(pending, 0);
    // A loser, with a tree, an index and chains.
    let loser = database.begin().unwrap();
    fill(&loser, "lost");
    database.sync().unwrap();
    let in_use = database.verify().unwrap().pages.in_use;
    assert!(
        in_use > before + 80,
        "{in_use} pages in use, {before} before"
    );
    let after = pages_after_recovery(&disk.power_cut(2, PowerCut::CLEAN), &config);
    assert_eq!((after.0, after.1), (before, 0), "of a loser");
    assert!(after.2 >= free, "{} pages free, {free} before", after.2);
    loser.rollback().unwrap();
    // A table whose drop is committed, while somebody still sees it.
    database
        .retry(|tx| {
            fill(tx, "dropped");
            Ok(())
        })
        .unwrap();
    let reader = database.begin().unwrap();
    reader.table("dropped").unwrap();
    database.retry(|tx| tx.drop_table("dropped")).unwrap();
    let pending = database.verify().unwrap().pages.pending;
    assert!(
        pending > 80,
        "{pending} pages are listed while they are seen"
    );
    let after = pages_after_recovery(&disk.power_cut(3, PowerCut::CLEAN), &config);
    assert_eq!((after.0, after.1), (before, 0), "of a dropped table");
    // Once more, cut off again and again: what a recovery has freed is not freed twice.
    let mut cut = disk.power_cut(4, PowerCut::CLEAN);
    for call in 1..60 {
        cut.cut_after(call);
        let opened = Database::open_directory(Arc::new(cut.clone()), config.clone());
        let done = opened.is_ok();
        drop(opened);
        cut = cut.power_cut(call, PowerCut::KINDS[call as usize % 8]);
        if done {
            break;
        }
    }
    let after = pages_after_recovery(&cut, &config);
    assert_eq!(
        (after.0, after.1),
        (before, 0),
        "after recoveries that were cut off"
    );
    reader.commit().unwrap();
}

/// A table that is larger than the pool, in a database with a small one.
fn larger_than_the_pool(disk: &SimulatedDirectory, config: &Config) -> (Database, Table) {
    let database = Database::open_directory(Arc::new(disk.clone()), config.clone()).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    database
        .retry(|tx| (0..500).try_for_each(|n| tx.insert(&table, &key(n), &[0; 300])))
        .unwrap();
    (database, table)
}

#[test]
fn regress_crash_recovery_builds_on_no_log_that_a_killed_process_left_unsynced() {
    let config = tiny(4096, 24);
    let disk = SimulatedDirectory::new();
    let (database, table) = larger_than_the_pool(&disk, &config);
    database.checkpoint().unwrap();
    let change = |fill: u8, rows: std::ops::Range<u32>| {
        let options = TransactionOptions::default().durability(Durability::Async);
        let tx = database.begin_with(options).unwrap();
        for n in rows {
            let write = |value: &mut [u8]| value.fill(fill);
            assert!(tx.update(&table, &key(n), &[0..300], write).unwrap());
        }
        tx
    };
    // Before the flush, so that it writes all of it: who evicts would flush, too.
    change(1, 0..20).commit().unwrap();
    let loser = change(2, 20..30);
    disk.fail(Fault::nth(Call::Sync, 0).on("log/"));
    assert!(database.sync().is_err());
    let killed = disk.process_kill();
    drop(loser);
    let calls = {
        let whole = killed.process_kill();
        drop(Database::open_directory(Arc::new(whole.clone()), config.clone()).unwrap());
        whole.mutating_calls()
    };
    let (mut lost, mut kept) = (0, 0);
    for call in 0..=calls {
        let cut = killed.process_kill();
        cut.cut_after(call);
        drop(Database::open_directory(
            Arc::new(cut.clone()),
            config.clone(),
        ));
        let after = cut.power_cut(call, PowerCut::CLEAN);
        let database = Database::open_directory(Arc::new(after), config.clone())
            .unwrap_or_else(|error| panic!("call {call} of {calls}: {error}"));
        let tx = database.begin().unwrap();
        let found = rows(&tx, &tx.table("t").unwrap());
        let ones = found.iter().filter(|(_, value)| value[0] == 1).count();
        assert!(
            ones == 0 || ones == 20,
            "call {call}: {ones} rows of a commit"
        );
        assert!(found.iter().all(|(_, value)| value[0] != 2), "call {call}");
        lost += u32::from(ones == 0);
        kept += u32::from(ones == 20);
    }
    assert!(lost > 0 && kept > 0, "{lost} times lost, {kept} times kept");
}

/// A process was killed while it made a file of the log; the next one went on and acknowledged commits; then the power was cut, and the database did not
/// open any more: "log segment is missing". Opening took the file over as a free one, and wrote the new incarnation into it, but nobody had synced
/// its name: the maker died before it, and who takes over did so only if it removed a file. Now the folder of the log is always synced.
#[test]
fn regress_crash_a_log_file_whose_name_a_killed_process_left_unsynced_stays() {
    let config = tiny(4096, 24);
    let disk = SimulatedDirectory::new();
    let (database, table) = larger_than_the_pool(&disk, &config);
    disk.fail(Fault::nth(Call::SyncDir, 0).on("log"));
    let tx = database.begin().unwrap();
    let written = (0..5000).try_for_each(|n| tx.upsert(&table, &key(n % 500), &[1; 300]).map(drop));
    assert!(written.is_err(), "no file was made");
    let killed = disk.process_kill();
    drop(tx);
    let again = Database::open_directory(Arc::new(killed.clone()), config.clone()).unwrap();
    again
        .retry(|tx| tx.upsert(&tx.table("t")?, &key(7), &[7; 300]).map(drop))
        .unwrap();
    let found = killed.power_cut(1, PowerCut::CLEAN);
    let database = Database::open_directory(Arc::new(found), config).unwrap();
    let tx = database.begin().unwrap();
    let value = tx
        .get(&tx.table("t").unwrap(), &key(7), |value| value[0])
        .unwrap();
    assert_eq!(value, Some(7), "an acknowledged commit");
}

#[test]
fn regress_a_newest_log_file_that_is_missing_is_corruption() {
    let config = tiny(4096, 24);
    let disk = SimulatedDirectory::new();
    let (database, table) = larger_than_the_pool(&disk, &config);
    let segments = |disk: &SimulatedDirectory| {
        let names = disk.list("log").unwrap();
        let number = |name: &str| {
            let bytes = disk.read_all(&format!("log/{name}")).unwrap();
            u64::from_le_bytes(bytes[16..24].try_into().unwrap())
        };
        let mut found: Vec<_> = names
            .iter()
            .map(|name| (number(name), name.clone()))
            .collect();
        found.sort();
        found
    };
    // Redo makes pages anew that were split since the checkpoint, and asks nothing of what was there.
    database.checkpoint().unwrap();
    let mut random = Random::new(1);
    let mut update = || {
        let n = random.below(500) as u32;
        let write = |value: &mut [u8]| value.fill(7);
        database
            .retry(|tx| tx.update(&table, &key(n), &[0..300], write))
            .unwrap();
    };
    let newest = || segments(&disk).pop().unwrap().0;
    let first = newest();
    while newest() < first + 2 {
        update();
    }
    // Each in a round, a block: the newest segment has some, and others have pushed these pages out since.
    (0..50).for_each(|_| update());
    assert_eq!(newest(), first + 2);
    let after = disk.power_cut(1, PowerCut::CLEAN);
    drop(Database::open_directory(Arc::new(after), config.clone()).unwrap());
    let after = disk.power_cut(1, PowerCut::CLEAN);
    let (_, newest) = segments(&after).pop().unwrap();
    after.remove(&format!("log/{newest}")).unwrap();
    let opened = Database::open_directory(Arc::new(after), config);
    assert!(
        matches!(&opened, Err(Error::Corruption { what, .. }) if what.contains("newer than the log")),
        "{opened:?}"
    );
}
