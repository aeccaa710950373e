//! A disk that fails now and then: operations are done or undone, cursors go on, transactions end.

use crate::support::{by_value, key, rows, seed, settle, tiny, value_of};
use std::sync::Arc;
use vellum::{Database, Error, Family, Table, Transaction};
use vellum_base::random::Random;
use vellum_io::{Call, Directory, Fault, FaultError, SimulatedDirectory};

/// A table with two indexes, larger than the pool.
fn filled() -> (Arc<SimulatedDirectory>, Database, Table) {
    let directory = Arc::new(SimulatedDirectory::new());
    let database = Database::open_directory(directory.clone(), tiny(4096, 24)).unwrap();
    let table = database
        .retry(|tx| {
            let table = tx.create_table("t")?;
            tx.create_index(&table, "i", by_value(0, Some(4), false))?;
            tx.create_index(&table, "u", by_value(4, Some(8), true))?;
            for n in 0..400 {
                tx.insert(&table, &key(n), &value(n, n, 60))?;
            }
            Ok(table)
        })
        .unwrap();
    (directory, database, table)
}

fn value(i: u32, u: u32, length: usize) -> Vec<u8> {
    let mut value = [key(i), key(u)].concat();
    value.resize(8 + length, 5);
    value
}

fn change(tx: &Transaction, table: &Table, random: &mut Random) -> vellum::Result<()> {
    let n = random.below(400) as u32;
    let length = [10, 60, 300, 5000][random.below(4) as usize];
    match random.below(4) {
        0 => tx.delete(table, &key(n)).map(drop),
        1 => {
            let i = key(random.below(1000) as u32);
            tx.update(table, &key(n), &[0..4], |value| {
                value[..4].copy_from_slice(&i)
            })
            .map(drop)
        }
        // Sometimes a value that another row has.
        2 => tx
            .upsert(table, &key(n), &value(n, random.below(400) as u32, length))
            .map(drop),
        _ => tx
            .upsert(table, &key(n), &value(n + 7, n, length))
            .map(drop),
    }
}

/// Nothing is listed for freeing any more, and everything else is in order.
fn assert_all_given_back(database: &Database, what: &str) {
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.findings);
    assert_eq!(report.pages.pending, 0, "{what}");
}

#[test]
fn an_operation_that_meets_a_failing_disk_is_undone_or_ends_its_transaction() {
    let seed = seed("an_operation_that_meets_a_failing_disk");
    let mut random = Random::new(seed);
    let (directory, database, table) = filled();
    let (mut undone, mut over, mut before) = (0, 0, rows(&database.begin().unwrap(), &table));
    for _ in 0..400 {
        let tx = database.begin().unwrap();
        let mut kept = before.clone();
        let mut usable = true;
        for _ in 0..3 {
            let fault = Fault::nth(Call::Read, random.below(12)).on("data");
            directory.fail(if random.chance(1, 3) {
                fault.forever()
            } else {
                fault
            });
            let result = change(&tx, &table, &mut random);
            directory.clear_faults();
            match result {
                Ok(()) => kept = rows(&tx, &table),
                Err(Error::KeyExists { .. }) => assert!(rows(&tx, &table) == kept, "seed {seed}"),
                Err(Error::Io { .. }) => match tx.savepoint() {
                    Ok(_) => {
                        undone += 1;
                        assert!(rows(&tx, &table) == kept, "undone, seed {seed}");
                    }
                    Err(Error::TransactionOver { .. }) => {
                        over += 1;
                        usable = false;
                        break;
                    }
                    Err(other) => panic!("seed {seed}: {other}"),
                },
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        if usable && random.chance(2, 3) {
            tx.commit().unwrap();
            before = kept;
        } else if usable || random.chance(1, 2) {
            tx.rollback().unwrap();
        } else {
            assert!(matches!(tx.commit(), Err(Error::TransactionOver { .. })));
        }
        assert!(
            rows(&database.begin().unwrap(), &table) == before,
            "seed {seed}"
        );
    }
    assert!(
        undone > 0 && over > 0,
        "{undone} undone, {over} over, seed {seed}"
    );
    settle(&database);
    assert_all_given_back(&database, &format!("seed {seed}"));
}

#[test]
fn a_writer_whose_rollback_fails_is_rolled_back_by_maintenance_and_seen_by_nobody() {
    let (directory, database, table) = filled();
    let before = rows(&database.begin().unwrap(), &table);
    let tx = database.begin().unwrap();
    for n in 0..400 {
        tx.upsert(&table, &key(n), &value(n + 1, n + 1000, 100))
            .unwrap();
    }
    directory.fail(Fault::nth(Call::Read, 30).on("data").forever());
    assert!(matches!(tx.rollback(), Err(Error::Io { .. })));
    directory.clear_faults();
    assert!(rows(&database.begin().unwrap(), &table) == before);
    let other = database.begin().unwrap();
    let conflict = other.upsert(&table, &key(0), b"other").is_err();
    assert!(conflict, "its rows are still its own");
    drop(other);
    settle(&database);
    assert!(rows(&database.begin().unwrap(), &table) == before);
    database
        .retry(|tx| tx.upsert(&table, &key(0), &value(1, 5000, 0)))
        .unwrap();
}

/// Loads rows with chains into an empty table up to one that is refused, when the disk fails from its `nth` read on.
fn load_until_it_fails(
    directory: &SimulatedDirectory,
    tx: &Transaction,
    table: &Table,
    nth: u64,
) -> Error {
    let mut row = 0u32;
    let failed = tx.bulk_load(table, |bytes, value| {
        if row == 300 {
            directory.fail(Fault::nth(Call::Read, nth).on("data").forever());
            return true;
        }
        bytes.extend_from_slice(&key(row));
        value.resize(if row.is_multiple_of(5) { 9000 } else { 200 }, 1);
        row += 1;
        true
    });
    failed.unwrap_err()
}

#[test]
fn what_a_failed_load_could_not_give_back_goes_later_and_with_the_close_at_the_latest() {
    for nth in [0, 3, 10, 40] {
        for end in ["rolled back", "parked", "close"] {
            let what = format!("read {nth}, {end}");
            let (directory, database, full) = filled();
            let empty = database.retry(|tx| tx.create_table("empty")).unwrap();
            settle(&database);
            let used = database.statistics().pages_durable;
            let tx = database.begin().unwrap();
            tx.update(&full, &key(1), &[10..12], |value| value[10] = 6)
                .unwrap();
            let failed = load_until_it_fails(&directory, &tx, &empty, nth);
            let known = matches!(failed, Error::Io { .. } | Error::InvalidArgument { .. });
            assert!(known, "{what}: {failed}");
            if end != "parked" {
                directory.clear_faults();
            }
            drop(tx);
            directory.clear_faults();
            if end == "close" {
                drop(full);
                database.close().unwrap();
                let report = vellum::verify_directory(directory.clone()).unwrap();
                assert!(report.is_sound(), "{what}: {:?}", report.findings);
                assert_eq!(report.pages.pending, 0, "{what}");
                continue;
            }
            settle(&database);
            assert_all_given_back(&database, &what);
            let after = database.statistics().pages_durable;
            assert!(after <= used + 2, "{what}: {used} pages, then {after}");
        }
    }
}

#[test]
fn a_writer_that_stays_parked_keeps_no_other_parked() {
    let (directory, database, table) = filled();
    let before = rows(&database.begin().unwrap(), &table);
    let parked: Vec<_> = [0..200u32, 200..400]
        .into_iter()
        .map(|range| {
            let tx = database.begin().unwrap();
            for n in range {
                tx.upsert(&table, &key(n), &value(n + 1, n + 1000, 5000))
                    .unwrap();
            }
            tx
        })
        .collect();
    directory.fail(Fault::nth(Call::Read, 0).on("data").forever());
    drop(parked);
    let open = database.statistics().transactions_open;
    assert_eq!(open, 2, "both are parked");
    directory.clear_faults();
    // One of the two meets it.
    directory.fail(Fault::nth(Call::Read, 5).on("data"));
    assert!(database.step().is_err());
    assert_eq!(database.statistics().transactions_open, 1);
    directory.clear_faults();
    settle(&database);
    assert!(rows(&database.begin().unwrap(), &table) == before);
    assert_all_given_back(&database, "both");
}

#[test]
fn a_cursor_that_meets_a_failing_disk_goes_on_where_it_stood() {
    let (directory, database, table) = filled();
    database
        .retry(|tx| {
            (0..400)
                .step_by(9)
                .try_for_each(|n| tx.upsert(&table, &key(n), &value(n, n, 6000)).map(drop))
        })
        .unwrap();
    let tx = database.begin().unwrap();
    let expected = rows(&tx, &table);
    database
        .retry(|tx| {
            (0..400)
                .step_by(2)
                .try_for_each(|n| tx.delete(&table, &key(n)).map(drop))
        })
        .unwrap();
    for forward in [true, false] {
        let mut cursor = tx.cursor(&table, ..).unwrap();
        let (mut seen, mut failures, mut failed) = (Vec::new(), 0, 0);
        loop {
            // A step that reads several pages fails at each of them.
            directory.fail(Fault::nth(Call::Read, failed).on("data"));
            let row = if forward {
                cursor.next()
            } else {
                cursor.prev()
            };
            let row = row.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
            directory.clear_faults();
            match row {
                Ok(Some(row)) => {
                    seen.push(row);
                    failed = 0;
                }
                Ok(None) => break,
                Err(Error::Io { .. }) => {
                    failures += 1;
                    failed += 1;
                }
                Err(other) => panic!("{other}"),
            }
            assert!(failures < 10_000, "it gets on");
        }
        if !forward {
            seen.reverse();
        }
        assert!(failures > 10, "{failures} failures");
        assert_eq!(seen.len(), expected.len(), "forward: {forward}");
        assert!(seen == expected, "forward: {forward}");
    }
    assert_eq!(value_of(&tx, &table, &key(9)).unwrap().len(), 6008);
}

#[test]
fn values_with_pages_of_their_own_that_a_failing_operation_made_are_given_back() {
    let directory = Arc::new(SimulatedDirectory::new());
    let database = Database::open_directory(directory.clone(), tiny(4096, 24)).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    // A list of chains and a table that do not fit into memory, so that every step may have to read.
    let held = database.begin().unwrap();
    for n in 0..600 {
        database
            .retry(|tx| tx.upsert(&table, &key(n), &vec![n as u8; 3000]))
            .unwrap();
        database
            .retry(|tx| tx.upsert(&table, &key(n), &[n as u8; 700]))
            .unwrap();
    }
    held.commit().unwrap();
    let mut failed = 0;
    for nth in 0..60 {
        for call in [Call::Read, Call::Write] {
            let tx = database.begin().unwrap();
            // Pages of the table leave memory.
            tx.count(&table, ..).unwrap();
            directory.fail(Fault::nth(call, nth).forever());
            let put = tx.upsert(&table, &key(1000), &vec![7; 120_000]);
            directory.clear_faults();
            failed += u32::from(put.is_err());
            // One that could not be undone is rolled back.
            let _ = tx.commit();
        }
    }
    assert!(failed > 10, "{failed} operations failed");
    settle(&database);
    database.checkpoint().unwrap();
    settle(&database);
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.pages.pending, 0, "after {failed} failures");
}

#[test]
fn every_write_after_a_failed_sync_is_refused_as_poisoned_at_once() {
    let (directory, database, table) = filled();
    let before = rows(&database.begin().unwrap(), &table);
    let open = database.begin().unwrap();
    open.insert(&table, &key(1000), &value(1000, 1000, 10))
        .unwrap();
    directory.fail(Fault::nth(Call::Sync, 0));
    assert!(matches!(database.sync(), Err(Error::Io { .. })));
    assert!(directory.poisoned());
    let fresh = database.begin().unwrap();
    for tx in [&fresh, &open] {
        let name = value(2000, 2000, 10);
        let writes = [
            tx.insert(&table, &key(2000), &name),
            tx.upsert(&table, &key(1), &name).map(drop),
            tx.update(&table, &key(1), &[8..9], |_| ()).map(drop),
            tx.delete(&table, &key(1)).map(drop),
            tx.create_table("u").map(drop),
            tx.drop_table("t"),
        ];
        for (number, result) in writes.into_iter().enumerate() {
            assert!(
                matches!(result, Err(Error::Poisoned)),
                "write {number}: {result:?}"
            );
        }
        assert!(
            tx.get(&table, &key(1), |_| ()).unwrap().is_some(),
            "reads go on"
        );
    }
    fresh.rollback().unwrap();
    assert!(matches!(open.commit(), Err(Error::Poisoned)));
    assert!(rows(&database.begin().unwrap(), &table) == before);
}

/// Symptom: COMMIT was answered with an I/O error, or with a full disk, and its rows were there all the same once the disk took writes again: who ran it again had it twice.
/// Cause: the error of the flush was told as if the transaction had failed. Guard: an error of its own.
#[test]
fn regress_commit_whose_log_cannot_be_written_says_that_it_has_happened() {
    let (directory, database, table) = filled();
    for (number, error) in [(5_000, FaultError::Eio), (5_001, FaultError::Enospc)] {
        for waits in [true, false] {
            let row = number + 10 * u32::from(waits);
            let tx = database.begin().unwrap();
            tx.insert(&table, &key(row), &value(row, row, 10)).unwrap();
            directory.fail(Fault::nth(Call::Write, 0).on("log").with(error).forever());
            directory.fail(
                Fault::nth(Call::Allocate, 0)
                    .on("log")
                    .with(error)
                    .forever(),
            );
            let committed = match waits {
                true => tx.commit(),
                false => tx.commit_deferred().unwrap().wait(),
            };
            directory.clear_faults();
            let told = committed.unwrap_err();
            assert!(
                !told.is_retryable() && told.family() == Family::Io,
                "{told}"
            );
            let Error::NotDurable { cause } = told else {
                panic!("{told}");
            };
            let is_it = match error {
                FaultError::Enospc => matches!(*cause, Error::OutOfSpace { .. }),
                _ => matches!(*cause, Error::Io { .. }),
            };
            assert!(is_it, "{cause}");
            let seen = database.begin().unwrap().get(&table, &key(row), |_| ());
            assert!(seen.unwrap().is_some(), "it has happened");
        }
    }
    database.sync().unwrap();
    let left = Arc::new(directory.process_kill());
    drop(database);
    let database = Database::open_directory(left, tiny(4096, 24)).unwrap();
    let table = database.begin().unwrap().table("t").unwrap();
    for row in [5_000, 5_001, 5_010, 5_011] {
        let seen = database.begin().unwrap().get(&table, &key(row), |_| ());
        assert!(seen.unwrap().is_some(), "durable by now");
    }
}

#[test]
fn close_reports_what_failed_in_the_background_and_was_not_made_good_since() {
    for comes_back in [true, false] {
        let directory = Arc::new(SimulatedDirectory::new());
        let mut config = tiny(4096, 64).background_threads(true);
        config.checkpoint_log_bytes = 1;
        let database = Database::open_directory(directory.clone(), config).unwrap();
        directory.fail(Fault::nth(Call::Write, 0).on("data").forever());
        let table = database.retry(|tx| tx.create_table("t")).unwrap();
        database
            .retry(|tx| tx.insert(&table, &key(1), &[1; 10]))
            .unwrap();
        // A thread's checkpoint meets the fault: nobody else writes to that file here.
        while directory.trace().iter().all(|call| call.fault.is_none()) {
            vellum_sync::thread::yield_now();
        }
        if comes_back {
            directory.clear_faults();
            database.close().unwrap();
        } else {
            assert!(matches!(database.close(), Err(Error::Io { .. })));
        }
    }
}
