//! The rules of the transaction manager where they meet tables: R1 to R9, end to end.

use crate::support::{key, rows, seed, small, tiny, value_of, with_table};
use std::sync::Arc;
use vellum::{
    Config, Database, Durability, Error, Isolation, Table, Transaction, TransactionOptions,
};
use vellum_base::random::Random;
use vellum_io::{PowerCut, SimulatedDirectory};
use vellum_sync::test_point::TestPoints;
use vellum_sync::thread;

fn asynchronous() -> TransactionOptions {
    TransactionOptions::default().durability(Durability::Async)
}

#[test]
fn r1_names_of_reverted_versions_are_never_names_of_others() {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| tx.insert(&table, b"k", &[0; 20]))
        .unwrap();
    let reader = database.begin().unwrap();
    // Stamps after aborts, command ids after savepoints: each chain ends at the same row.
    for round in 1..50u8 {
        let tx = database.begin().unwrap();
        let savepoint = tx.savepoint().unwrap();
        for again in 0..3 {
            tx.update(&table, b"k", &[again..again + 4], |value| value.fill(round))
                .unwrap();
            assert_eq!(value_of(&reader, &table, b"k"), Some(vec![0; 20]));
            tx.rollback_to(&savepoint).unwrap();
            assert_eq!(value_of(&tx, &table, b"k"), Some(vec![0; 20]));
            assert_eq!(value_of(&reader, &table, b"k"), Some(vec![0; 20]));
        }
        tx.upsert(&table, b"k", &[round; 50]).unwrap();
        tx.rollback().unwrap();
    }
    assert_eq!(value_of(&reader, &table, b"k"), Some(vec![0; 20]));
}

#[test]
fn r2_and_r3_a_snapshot_that_begins_while_collectors_pass_reads_whole_rows_of_one_moment() {
    let (_directory, database, table) = with_table(&small());
    let write = |tx: &Transaction, table: &Table, round: u32| {
        (0..20).try_for_each(|n| tx.upsert(table, &key(n), &round.to_le_bytes()).map(|_| ()))
    };
    database.retry(|tx| write(tx, &table, 0)).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..300 {
                database
                    .retry_with(asynchronous(), |tx| write(tx, &table, round))
                    .unwrap();
            }
        });
        let stepper = scope.spawn(|| {
            while !writer_is_done(&database, &table) {
                database.step().unwrap();
            }
        });
        while !writer_is_done(&database, &table) {
            let tx = database.begin_with(asynchronous()).unwrap();
            let seen = rows(&tx, &table);
            assert_eq!(seen.len(), 20);
            assert!(
                seen.iter().all(|(_, value)| *value == seen[0].1),
                "one moment"
            );
        }
        writer.join().unwrap();
        stepper.join().unwrap();
    });
}

fn writer_is_done(database: &Database, table: &Table) -> bool {
    let tx = database.begin_with(asynchronous()).unwrap();
    value_of(&tx, table, &key(19)) == Some(299u32.to_le_bytes().to_vec())
}

#[test]
fn r5_a_commit_is_seen_whole_or_not_at_all_over_tables_indexes_and_large_values() {
    let (_directory, database, table) = with_table(&tiny(4096, 48));
    let other = database.retry(|tx| tx.create_table("other")).unwrap();
    let index = database
        .retry(|tx| tx.create_index(&other, "i", crate::support::by_value(0, Some(4), false)))
        .unwrap();
    let rounds = 150u32;
    let large = |round: u32| round.to_le_bytes().repeat(2000);
    let write = |tx: &Transaction, round: u32| {
        tx.upsert(&table, b"small", &round.to_le_bytes())?;
        tx.upsert(&table, b"large", &large(round))?;
        tx.upsert(&other, b"indexed", &round.to_be_bytes())
    };
    database.retry(|tx| write(tx, 0)).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..rounds {
                database
                    .retry_with(asynchronous(), |tx| write(tx, round))
                    .unwrap();
                database.step().unwrap();
            }
        });
        loop {
            let tx = database.begin_with(asynchronous()).unwrap();
            let bytes = value_of(&tx, &table, b"small").unwrap();
            let round = u32::from_le_bytes(bytes.try_into().unwrap());
            assert!(
                value_of(&tx, &table, b"large").unwrap() == large(round),
                "round {round}"
            );
            let expected = round.to_be_bytes();
            assert_eq!(value_of(&tx, &other, b"indexed").unwrap(), expected);
            let mut entries = tx.index_cursor(&index, ..).unwrap();
            let (entry, found) = entries.next().unwrap().unwrap();
            assert!(entry.starts_with(&expected) && found == b"indexed");
            assert_eq!(entries.next().unwrap(), None, "one entry a row");
            if round + 1 == rounds {
                break;
            }
        }
        writer.join().unwrap();
    });
}

/// A database on a simulated disk with rows under keys 0..100.
fn filled(config: &Config) -> (Arc<SimulatedDirectory>, Database, Table) {
    let directory = Arc::new(SimulatedDirectory::new());
    let database = Database::open_directory(directory.clone(), config.clone()).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    database
        .retry(|tx| (0..100).try_for_each(|n| tx.insert(&table, &key(n), &[0; 50])))
        .unwrap();
    (directory, database, table)
}

fn check_after_cut(directory: &SimulatedDirectory, seed: u64, allowed: &[Vec<(Vec<u8>, Vec<u8>)>]) {
    let cut = if seed.is_multiple_of(2) {
        PowerCut::CLEAN
    } else {
        PowerCut::LUCKY
    };
    let crashed = Arc::new(directory.power_cut(seed, cut));
    let database = Database::open_directory(crashed, small()).unwrap();
    let tx = database.begin().unwrap();
    let table = tx.table("t").unwrap();
    let found = rows(&tx, &table);
    assert!(
        allowed.contains(&found),
        "cut with seed {seed}: {} rows",
        found.len()
    );
    tx.commit().unwrap();
    let report = database.verify().unwrap();
    assert!(
        report.is_sound(),
        "cut with seed {seed}: {:?}",
        report.findings
    );
}

#[test]
fn crash_r8_a_rollback_that_is_cut_off_anywhere_is_finished_by_recovery() {
    let seed = seed("crash_r8");
    let mut random = Random::new(seed);
    for _ in 0..12 {
        let (directory, database, _) = filled(&small());
        let table = database.begin().unwrap().table("t").unwrap();
        let before = rows(&database.begin().unwrap(), &table);
        let tx = database.begin().unwrap();
        for number in 0..100u32 {
            match random.below(4) {
                0 => drop(tx.delete(&table, &key(number)).unwrap()),
                1 => drop(tx.upsert(&table, &key(number), &vec![1; 3000]).unwrap()),
                2 => drop(
                    tx.update(&table, &key(number), &[3..9], |v| v.fill(7))
                        .unwrap(),
                ),
                _ => tx
                    .insert(&table, &[&key(number)[..], b"+"].concat(), &[2; 80])
                    .unwrap(),
            }
            if number == 60 {
                let savepoint = tx.savepoint().unwrap();
                tx.upsert(&table, &key(0), b"for a moment").unwrap();
                tx.delete(&table, &key(1)).unwrap();
                tx.rollback_to(&savepoint).unwrap();
            }
        }
        database.sync().unwrap();
        directory.cut_after(random.below(40));
        let _ = tx.rollback();
        for _ in 0..20 {
            // What goes on until the power is gone.
            let _ = database.sync();
            let _ = database.checkpoint();
        }
        check_after_cut(&directory, random.next_u64(), &[before]);
    }
}

#[test]
fn crash_r8_recoveries_that_are_cut_off_are_repeated_until_one_is_through() {
    let seed = seed("crash_r8_recoveries");
    let mut random = Random::new(seed);
    let (directory, database, table) = filled(&small());
    let before = rows(&database.begin().unwrap(), &table);
    let tx = database.begin().unwrap();
    for number in 0..100u32 {
        tx.upsert(&table, &key(number), &vec![1; 500 + number as usize * 20])
            .unwrap();
        tx.insert(&table, &[&key(number)[..], b"+"].concat(), &[2; 80])
            .unwrap();
    }
    database.sync().unwrap();
    let mut directory = Arc::new(directory.power_cut(random.next_u64(), PowerCut::CLEAN));
    drop(tx);
    drop(database);
    let mut cuts = 0;
    loop {
        directory.cut_after(random.below(60));
        let opened = Database::open_directory(directory.clone(), small());
        let through = opened.is_ok() && !directory.is_cut();
        drop(opened);
        directory = Arc::new(directory.power_cut(random.next_u64(), PowerCut::LUCKY));
        cuts += 1;
        if through || cuts > 40 {
            break;
        }
    }
    check_after_cut(&directory, random.next_u64(), &[before]);
}

#[test]
fn r9_a_long_writer_pins_no_log_and_can_be_rolled_back_and_recovered() {
    let config = small();
    let (directory, database, table) = filled(&config);
    let before = rows(&database.begin().unwrap(), &table);
    let long = database.begin().unwrap();
    for number in 0..40 {
        long.upsert(&table, &key(number), &[9; 700]).unwrap();
        long.insert(&table, &[&key(number)[..], b"+"].concat(), &[2; 80])
            .unwrap();
    }
    let savepoint = long.savepoint().unwrap();
    long.delete(&table, &key(45)).unwrap();
    let other = database.retry(|tx| tx.create_table("other")).unwrap();
    let busy = |rounds: u32| {
        let start = database.statistics().log_bytes_written;
        for round in 0..rounds {
            let fill = |tx: &Transaction| {
                (0..20).try_for_each(|n| {
                    tx.upsert(&other, &key(n), &vec![round as u8; 900])
                        .map(|_| ())
                })
            };
            database.retry_with(asynchronous(), fill).unwrap();
            database.step().unwrap();
        }
        (database.statistics().log_bytes_written - start) / config.log_bytes_max
    };
    assert!(busy(250) >= 2, "the log went round");
    long.rollback_to(&savepoint).unwrap();
    for number in 40..60 {
        long.delete(&table, &key(number)).unwrap();
    }
    assert!(busy(150) >= 1, "and round");
    database.sync().unwrap();
    check_after_cut(&directory, 2, std::slice::from_ref(&before));
    long.rollback().unwrap();
    assert!(rows(&database.begin().unwrap(), &table) == before);
    assert!(database.statistics().log_bytes_in_use <= config.log_bytes_max);
}

#[test]
fn r9_rollback_needs_no_space_in_a_log_that_is_full() {
    // Small rows: their compensation records are about as long as the records themselves.
    for value in [&b""[..], b"v", &[1; 300]] {
        let config = small();
        let (_directory, database, table) = filled(&config);
        let before = rows(&database.begin().unwrap(), &table);
        let options = asynchronous();
        let open: Vec<_> = (0..6)
            .map(|_| database.begin_with(options).unwrap())
            .collect();
        let mut number = 1000u32;
        'fill: loop {
            for tx in &open {
                number += 1;
                let wrote = tx
                    .insert(&table, &key(number), value)
                    .and_then(|()| tx.delete(&table, &key(number)))
                    .and_then(|_| tx.upsert(&table, &key(number), value));
                match wrote {
                    Ok(_) => {}
                    Err(vellum::Error::OutOfSpace { .. }) => break 'fill,
                    Err(other) => panic!("{other}"),
                }
            }
            if number > 60_000 {
                break;
            }
        }
        for tx in open {
            tx.rollback().unwrap();
        }
        assert!(rows(&database.begin().unwrap(), &table) == before);
        database
            .retry(|tx| tx.upsert(&table, b"and on", b"v"))
            .unwrap();
    }
}

#[test]
fn read_committed_statements_see_one_moment_each_and_lose_no_update() {
    for large in [false, true] {
        let (_directory, database, table) = with_table(&tiny(4096, 64));
        let length = if large { 9000 } else { 16 };
        let options = asynchronous().isolation(Isolation::ReadCommitted);
        database
            .retry(|tx| tx.insert(&table, b"counter", &vec![0; length]))
            .unwrap();
        let (threads, rounds) = (3u64, if large { 40 } else { 200 });
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let add = |tx: &Transaction| {
                            tx.update(&table, b"counter", &[0..8], |value| {
                                let now = u64::from_le_bytes(value[..8].try_into().unwrap());
                                value[..8].copy_from_slice(&(now + 1).to_le_bytes());
                            })
                        };
                        assert!(database.retry_with(options, add).unwrap());
                    }
                });
            }
        });
        let value = value_of(&database.begin().unwrap(), &table, b"counter").unwrap();
        let count = u64::from_le_bytes(value[..8].try_into().unwrap());
        assert_eq!(count, threads * rounds, "large: {large}");
    }
}

#[test]
fn crash_tombstone_that_went_before_its_delete_was_hardened_is_not_missed_by_undo() {
    // In a round that has read its clock: a delete commits, its tombstone goes, another transaction inserts the key anew
    // and commits. All of that is durable; both commits are above the round's clock, and lost.
    for seed in 0..4 {
        let (directory, database, table) = filled(&small());
        let before = rows(&database.begin().unwrap(), &table);
        let database = Arc::new(database);
        let once = std::sync::atomic::AtomicBool::new(true);
        let points = TestPoints::new();
        let (theirs, others) = (database.clone(), table.clone());
        points.on("round: clock read", move || {
            if !once.swap(false, std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let run = |work: &dyn Fn(&Transaction) -> vellum::Result<()>| {
                        theirs.retry_with(asynchronous(), |tx| work(tx)).unwrap();
                    };
                    run(&|tx| tx.delete(&others, &key(7)).map(drop));
                    // Passes and collections come with commits.
                    for number in 0..40 {
                        run(&|tx| tx.upsert(&others, &key(50), &[number; 50]).map(drop));
                    }
                    run(&|tx| tx.insert(&others, &key(7), b"anew"));
                    run(&|tx| tx.delete(&others, &key(8)).map(drop));
                    for number in 0..40 {
                        run(&|tx| tx.upsert(&others, &key(50), &[number; 50]).map(drop));
                    }
                });
            });
        });
        let entered = points.enter();
        database.step().unwrap();
        drop(entered);
        points.off("round: clock read");
        let cut = [PowerCut::CLEAN, PowerCut::LUCKY][seed as usize % 2];
        let crashed = Arc::new(directory.power_cut(seed, cut));
        // What the crash interrupted was as it is told above.
        let report = database.verify().unwrap();
        assert!(report.is_sound());
        let tombstones: u64 = report
            .tables
            .iter()
            .map(|table| table.tree.tombstones)
            .sum();
        assert_eq!(tombstones, 0, "both tombstones were gone");
        let recovered = Database::open_directory(crashed, small()).unwrap();
        let tx = recovered.begin().unwrap();
        assert_eq!(rows(&tx, &tx.table("t").unwrap()), before, "seed {seed}");
        drop(tx);
        assert!(recovered.verify().unwrap().is_sound());
    }
}

#[test]
fn read_committed_writes_to_a_row_that_is_being_inserted_conflict_in_every_form() {
    let (_directory, database, table) = with_table(&small());
    let options = TransactionOptions::default().isolation(Isolation::ReadCommitted);
    let forms: [&dyn Fn(&Transaction) -> vellum::Result<bool>; 3] = [
        &|tx| tx.update(&table, b"k", &[0..1], |bytes| bytes[0] = 9),
        &|tx| tx.replace(&table, b"k", b"other"),
        &|tx| tx.delete(&table, b"k"),
    ];
    for (number, form) in forms.iter().enumerate() {
        let inserting = database.begin().unwrap();
        inserting.insert(&table, b"k", b"new").unwrap();
        let tx = database.begin_with(options).unwrap();
        let refused = form(&tx);
        assert!(
            matches!(refused, Err(Error::Conflict)),
            "form {number}: {refused:?}"
        );
        tx.rollback().unwrap();
        // Committed since: the next statement sees it.
        let tx = database.begin_with(options).unwrap();
        inserting.commit().unwrap();
        assert!(form(&tx).unwrap(), "form {number}");
        tx.rollback().unwrap();
        // Rolled back: there is nothing, and no conflict.
        database.retry(|tx| tx.delete(&table, b"k")).unwrap();
        let inserting = database.begin().unwrap();
        inserting.insert(&table, b"k", b"new").unwrap();
        inserting.rollback().unwrap();
        let tx = database.begin_with(options).unwrap();
        assert!(!form(&tx).unwrap(), "form {number}");
        tx.commit().unwrap();
    }
}

/// Symptom: after a panic in a flush round commits that do not wait were acknowledged, and lost. Cause: only who waits for a round heard that the log had
/// ended. Guard: writers ask for it.
#[test]
fn log_that_has_ended_takes_no_commit_that_does_not_wait() {
    let (_directory, database, table) = with_table(&small());
    let before = database.begin_with(asynchronous()).unwrap();
    before.insert(&table, b"before", b"").unwrap();
    let points = TestPoints::new();
    points.on("round: clock read", || panic!("as planned"));
    let committed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _entered = points.enter();
        database.retry(|tx| tx.insert(&table, b"k", b"v"))
    }));
    assert!(committed.is_err());
    assert!(matches!(before.commit(), Err(Error::Poisoned)));
    let behind = database.begin_with(asynchronous()).unwrap();
    let written = behind.insert(&table, b"behind", b"");
    assert!(matches!(written, Err(Error::Poisoned)), "{written:?}");
}
