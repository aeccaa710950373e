//! Many threads on small databases: every snapshot keeps the invariants, whatever is evicted, stolen, collected and
//! checkpointed meanwhile.

use crate::support::{by_value, fresh, key, open, rows, seed, settle, tiny, value_of, with_table};
use std::collections::BTreeSet;
use vellum::{
    Config, Database, Durability, Error, Isolation, Table, Transaction, TransactionOptions,
};
use vellum_base::random::Random;
use vellum_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vellum_sync::thread;

const ACCOUNTS: u32 = 60;
const START: u64 = 1000;

fn asynchronous() -> TransactionOptions {
    TransactionOptions::default().durability(Durability::Async)
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// Values of changing length, some of them in chains.
fn account(balance: u64, random: &mut Random) -> Vec<u8> {
    let length = [8, 8, 8, 100, 900, 6000][random.below(6) as usize];
    let mut value = balance.to_le_bytes().to_vec();
    value.resize(length, 7);
    value
}

fn total(tx: &Transaction, table: &Table) -> (usize, u64) {
    let rows = rows(tx, table);
    (
        rows.len(),
        rows.iter().map(|(_, value)| number(value)).sum(),
    )
}

fn transfer(tx: &Transaction, table: &Table, random: &mut Random) -> vellum::Result<()> {
    let from = random.below(ACCOUNTS.into()) as u32;
    let to = (from + 1 + random.below(u64::from(ACCOUNTS) - 1) as u32) % ACCOUNTS;
    let amount = random.below(20);
    for (name, sign) in [(from, false), (to, true)] {
        let mut value = Vec::new();
        assert!(
            tx.get_into(table, &key(name), &mut value)?,
            "account {name}"
        );
        let now = number(&value);
        let then = if sign {
            now + amount
        } else {
            now.wrapping_sub(amount)
        };
        match random.below(3) {
            0 => drop(tx.update(table, &key(name), &[0..8], |value| {
                value[..8].copy_from_slice(&then.to_le_bytes());
            })?),
            1 => drop(tx.upsert(table, &key(name), &account(then, random))?),
            _ => {
                assert!(tx.delete(table, &key(name))?);
                tx.insert(table, &key(name), &account(then, random))?;
            }
        }
    }
    Ok(())
}

fn bank(config: &Config, seed: u64) {
    let (directory, database, table) = with_table(config);
    let mut random = Random::new(seed);
    database
        .retry(|tx| {
            tx.create_index(&table, "balance", by_value(0, Some(8), false))?;
            (0..ACCOUNTS).try_for_each(|n| tx.insert(&table, &key(n), &account(START, &mut random)))
        })
        .unwrap();
    let sum = u64::from(ACCOUNTS) * START;
    let (done, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|thread| {
                let (database, table, commits) = (&database, &table, &commits);
                scope.spawn(move || {
                    let mut random = Random::new(seed ^ (thread + 1));
                    for _ in 0..800 {
                        let tx = database.begin_with(asynchronous()).unwrap();
                        let savepoint = tx.savepoint().unwrap();
                        let mut result = transfer(&tx, table, &mut random);
                        if result.is_ok() && random.chance(1, 4) {
                            // And back, and again.
                            result = tx
                                .rollback_to(&savepoint)
                                .and_then(|()| transfer(&tx, table, &mut random));
                        }
                        match result {
                            Ok(()) if random.chance(5, 6) => {
                                tx.commit().unwrap();
                                commits.fetch_add(1, Ordering::Relaxed);
                            }
                            Ok(()) => tx.rollback().unwrap(),
                            Err(Error::Conflict) => drop(tx),
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (database, table, done) = (&database, &table, &done);
                scope.spawn(move || {
                    let mut old = database.begin_with(asynchronous()).unwrap();
                    while !done.load(Ordering::Relaxed) {
                        let tx = database.begin_with(asynchronous()).unwrap();
                        assert_eq!(total(&tx, table), (ACCOUNTS as usize, sum), "seed {seed}");
                        assert_eq!(
                            total(&old, table),
                            (ACCOUNTS as usize, sum),
                            "seed {seed}, old"
                        );
                        let index = tx.index(table, "balance").unwrap();
                        let mut entries = tx.index_cursor(&index, ..).unwrap();
                        let mut names = BTreeSet::new();
                        while let Some((_, name)) = entries.next().unwrap() {
                            assert!(names.insert(name.to_vec()), "one entry a row, seed {seed}");
                        }
                        assert_eq!(names.len(), ACCOUNTS as usize, "seed {seed}");
                        drop(entries);
                        if reader == 0 {
                            old = tx;
                        }
                        database.step().unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert!(commits.load(Ordering::Relaxed) > 0);
    database.checkpoint().unwrap();
    if !config.background_threads {
        settle(&database);
        let report = database.verify().unwrap();
        assert!(report.is_sound(), "seed {seed}: {:?}", report.findings);
    }
    drop(table);
    database.close().unwrap();
    let database = open(&directory, config);
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    assert_eq!(
        total(&tx, &table),
        (ACCOUNTS as usize, sum),
        "seed {seed}, reopened"
    );
}

#[test]
fn every_snapshot_of_a_bank_has_the_same_total_in_a_tiny_pool() {
    let seed = seed("every_snapshot_of_a_bank");
    bank(&tiny(4096, 32), seed);
}

#[test]
fn every_snapshot_of_a_bank_has_the_same_total_with_background_threads() {
    let seed = seed("every_snapshot_of_a_bank");
    bank(&tiny(4096, 64).background_threads(true), seed);
}

#[test]
fn counters_lose_no_update_under_snapshot_isolation() {
    let (_directory, database, table) = with_table(&tiny(4096, 32));
    database
        .retry(|tx| (0..4).try_for_each(|n| tx.insert(&table, &key(n), &[0; 8])))
        .unwrap();
    let (threads, rounds) = (4u64, 500u64);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (database, table) = (&database, &table);
            scope.spawn(move || {
                for round in 0..rounds {
                    let name = key(((thread + round) % 4) as u32);
                    let add = |tx: &Transaction| {
                        let now = number(&value_of(tx, table, &name).unwrap());
                        tx.upsert(table, &name, &(now + 1).to_le_bytes())
                    };
                    assert!(database.retry_with(asynchronous(), add).unwrap());
                }
            });
        }
    });
    assert_eq!(
        total(&database.begin().unwrap(), &table),
        (4, threads * rounds)
    );
}

#[test]
fn a_unique_index_holds_no_value_twice_however_inserts_race_and_abort() {
    let seed = seed("a_unique_index_holds");
    for isolation in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let (_directory, database, table) = with_table(&tiny(4096, 32));
        database
            .retry(|tx| tx.create_index(&table, "u", by_value(0, Some(4), true)))
            .unwrap();
        let options = asynchronous().isolation(isolation);
        let refused = AtomicU64::new(0);
        thread::scope(|scope| {
            for thread in 0..3u32 {
                let (database, table, refused) = (&database, &table, &refused);
                scope.spawn(move || {
                    let mut random = Random::new(seed ^ u64::from(thread));
                    for round in 0..500 {
                        let tx = database.begin_with(options).unwrap();
                        let name = key(thread * 1000 + random.below(20) as u32);
                        let unique = key(random.below(10) as u32);
                        let value = [&unique[..], &[round as u8; 20]].concat();
                        let result = match random.below(3) {
                            0 => tx.delete(table, &name).map(|_| ()),
                            1 => tx.upsert(table, &name, &value).map(|_| ()),
                            _ => tx
                                .update(table, &name, &[0..4], |v| {
                                    v.copy_from_slice(&value[..v.len()])
                                })
                                .map(|_| ()),
                        };
                        match result {
                            Ok(()) if random.chance(3, 4) => tx.commit().unwrap(),
                            Ok(()) => tx.rollback().unwrap(),
                            Err(Error::KeyExists { .. }) => {
                                refused.fetch_add(1, Ordering::Relaxed);
                                // The statement is undone, the transaction goes on.
                                tx.commit().unwrap();
                            }
                            Err(Error::Conflict) => tx.rollback().unwrap(),
                            Err(other) => panic!("{other}"),
                        }
                        let tx = database.begin_with(asynchronous()).unwrap();
                        let rows = rows(&tx, table);
                        let values: BTreeSet<_> =
                            rows.iter().map(|(_, v)| v[..4].to_vec()).collect();
                        assert_eq!(values.len(), rows.len(), "seed {seed}");
                    }
                });
            }
        });
        assert!(refused.load(Ordering::Relaxed) > 0, "seed {seed}");
        settle(&database);
        let report = database.verify().unwrap();
        assert!(report.is_sound(), "seed {seed}: {:?}", report.findings);
    }
}

#[test]
fn scans_both_ways_see_each_row_that_stays_exactly_once_while_others_come_and_go() {
    let seed = seed("scans_both_ways");
    let (_directory, database, table) = with_table(&tiny(4096, 32));
    let stays = |n: u32| n.is_multiple_of(5);
    database
        .retry(|tx| {
            (0..1000)
                .filter(|n| stays(*n))
                .try_for_each(|n| tx.insert(&table, &key(n), &[1; 60]))
        })
        .unwrap();
    let expected: Vec<_> = (0..1000).filter(|n| stays(*n)).collect();
    let done = AtomicBool::new(false);
    let check = |isolation: Isolation, forward: bool| {
        let tx = database
            .begin_with(asynchronous().isolation(isolation))
            .unwrap();
        let mut cursor = tx.cursor(&table, ..).unwrap();
        let mut seen = Vec::new();
        loop {
            let row = if forward {
                cursor.next()
            } else {
                cursor.prev()
            };
            let Some((name, _)) = row.unwrap() else { break };
            seen.push(u32::from_be_bytes(name.try_into().unwrap()));
        }
        if !forward {
            seen.reverse();
        }
        assert!(
            seen.windows(2).all(|pair| pair[0] < pair[1]),
            "in order, seed {seed}"
        );
        seen.retain(|n| stays(*n));
        assert!(seen == expected, "{} rows, seed {seed}", seen.len());
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|thread| {
                let (database, table) = (&database, &table);
                scope.spawn(move || {
                    let mut random = Random::new(seed ^ thread);
                    for _ in 0..500 {
                        let tx = database.begin_with(asynchronous()).unwrap();
                        for _ in 0..8 {
                            let n = random.below(1000) as u32;
                            let result = if stays(n) {
                                tx.upsert(table, &key(n), &vec![2; random.below(300) as usize])
                                    .map(|_| ())
                            } else if random.chance(1, 2) {
                                tx.upsert(table, &key(n), &[3; 200]).map(|_| ())
                            } else {
                                tx.delete(table, &key(n)).map(|_| ())
                            };
                            match result {
                                Ok(()) => {}
                                Err(Error::Conflict) => break,
                                Err(other) => panic!("{other}"),
                            }
                        }
                        let end = if random.chance(3, 4) {
                            tx.commit()
                        } else {
                            tx.rollback()
                        };
                        assert!(
                            matches!(end, Ok(()) | Err(Error::TransactionOver { .. })),
                            "{end:?}"
                        );
                        database.step().unwrap();
                    }
                })
            })
            .collect();
        let readers: Vec<_> = [Isolation::Snapshot, Isolation::ReadCommitted]
            .into_iter()
            .map(|isolation| {
                let (check, done) = (&check, &done);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        check(isolation, true);
                        check(isolation, false);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    check(Isolation::Snapshot, true);
}

/// Definitions that change under writers: whoever commits has its rows in table and index alike.
#[test]
fn tables_and_indexes_come_and_go_under_writers() {
    let seed = seed("tables_and_indexes_come_and_go");
    let (_directory, database) = fresh(&tiny(4096, 48));
    database.retry(|tx| tx.create_table("t")).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = [Isolation::Snapshot, Isolation::ReadCommitted]
            .into_iter()
            .enumerate()
            .map(|(thread, isolation)| {
                let (database, done) = (&database, &done);
                scope.spawn(move || {
                    write_while_definitions_change(database, done, isolation, seed ^ thread as u64)
                })
            })
            .collect();
        let mut random = Random::new(seed);
        for round in 0..300u32 {
            let result = change_definitions(&database, &mut random, round);
            match result {
                Ok(()) | Err(Error::Conflict) => {}
                Err(other) => panic!("round {round}, seed {seed}: {other}"),
            }
            database.step().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
    });
    settle(&database);
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "seed {seed}: {:?}", report.findings);
}

fn change_definitions(database: &Database, random: &mut Random, round: u32) -> vellum::Result<()> {
    let isolation = [Isolation::Snapshot, Isolation::ReadCommitted][random.below(2) as usize];
    let tx = database.begin_with(asynchronous().isolation(isolation))?;
    let table = tx.table("t")?;
    match random.below(4) {
        0 if tx.index(&table, "i").is_err() => {
            tx.create_index(&table, "i", by_value(0, Some(2), false))?;
        }
        1 if tx.index(&table, "i").is_ok() => tx.drop_index(&table, "i")?,
        2 => {
            tx.drop_table("t")?;
            let new = tx.create_table("t")?;
            tx.insert(&new, b"first", &round.to_be_bytes())?;
        }
        _ => {}
    }
    if random.chance(3, 4) {
        tx.commit()
    } else {
        tx.rollback()
    }
}

fn write_while_definitions_change(
    database: &Database,
    done: &AtomicBool,
    isolation: Isolation,
    seed: u64,
) {
    let mut random = Random::new(seed);
    while !done.load(Ordering::Relaxed) {
        let tx = database
            .begin_with(asynchronous().isolation(isolation))
            .unwrap();
        let result = (|| {
            let table = tx.table("t")?;
            for _ in 0..5 {
                let name = key(random.below(300) as u32);
                if random.chance(1, 3) {
                    tx.delete(&table, &name)?;
                } else {
                    tx.upsert(&table, &name, &random.next_u64().to_le_bytes())?;
                }
                tx.count(&table, ..)?;
            }
            let index = tx.index(&table, "i");
            if let Ok(index) = index {
                let mut entries = tx.index_cursor(&index, ..)?;
                let mut count = 0;
                while entries.next()?.is_some() {
                    count += 1;
                }
                if isolation == Isolation::Snapshot {
                    assert_eq!(count, tx.count(&table, ..)?, "seed {seed}");
                }
            }
            Ok(())
        })();
        match result {
            Ok(()) if random.chance(3, 4) => tx.commit().unwrap(),
            Ok(()) | Err(Error::Conflict | Error::NoSuchTable { .. }) => tx.rollback().unwrap(),
            Err(other) => panic!("seed {seed}: {other}"),
        }
    }
}
