//! The traps of old versions: mistakes that a design of this kind invites, each with the test that would see it.

use crate::support::{by_value, key, open, rows, settle, small, value_of, with_table};
use std::sync::Arc;
use vellum::{Database, Error, Isolation, Table, Transaction, TransactionOptions};
use vellum_io::{PowerCut, SimulatedDirectory};

fn simulated() -> (Arc<SimulatedDirectory>, Database, Table) {
    let directory = Arc::new(SimulatedDirectory::new());
    let database = Database::open_directory(directory.clone(), small()).unwrap();
    let table = database.retry(|tx| tx.create_table("t")).unwrap();
    (directory, database, table)
}

fn tombstones(database: &Database) -> u64 {
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    report
        .tables
        .iter()
        .map(|table| table.tree.tombstones)
        .sum()
}

#[test]
fn trap_a_deleted_row_is_found_on_no_path_by_who_sees_the_delete_and_on_every_one_by_who_does_not()
{
    let (_directory, database, table) = with_table(&small());
    let index = database
        .retry(|tx| {
            tx.insert(&table, b"k", b"value")?;
            tx.create_index(&table, "i", by_value(0, Some(3), true))
        })
        .unwrap();
    let old = database.begin().unwrap();
    assert!(database.retry(|tx| tx.delete(&table, b"k")).unwrap());
    let look = |tx: &Transaction, there: bool| {
        let count = u64::from(there);
        assert_eq!(value_of(tx, &table, b"k").is_some(), there);
        let mut found = 0;
        tx.multi_get(&table, &[b"k", b"k"], |_, value| {
            found += u64::from(value.is_some())
        })
        .unwrap();
        assert_eq!(found, 2 * count);
        assert_eq!(tx.count(&table, ..).unwrap(), count);
        let mut cursor = tx.cursor(&table, ..).unwrap();
        assert_eq!(cursor.next().unwrap().is_some(), there);
        let mut cursor = tx.cursor(&table, ..).unwrap();
        assert_eq!(cursor.prev().unwrap().is_some(), there);
        cursor.seek(b"k");
        assert_eq!(cursor.next().unwrap().is_some(), there);
        let mut entries = tx.index_cursor(&index, ..).unwrap();
        assert_eq!(entries.next().unwrap().is_some(), there);
    };
    look(&old, true);
    let new = database.begin().unwrap();
    look(&new, false);
    assert!(!new.delete(&table, b"k").unwrap());
    assert!(!new.replace(&table, b"k", b"x").unwrap());
    assert!(
        !new.update(&table, b"k", &[0..1], |_| panic!("nothing to change"))
            .unwrap()
    );
    // The unique index does not hold it against a new row; the old snapshot may not write.
    new.insert(&table, b"other", b"value").unwrap();
    new.commit().unwrap();
    assert!(matches!(
        old.upsert(&table, b"k", b"x"),
        Err(Error::Conflict)
    ));
}

#[test]
fn trap_an_empty_table_and_a_range_without_rows_have_no_rows_whatever_was_deleted_there() {
    let (_directory, database, table) = with_table(&small());
    for _ in 0..3 {
        for number in 0..200 {
            database
                .retry(|tx| tx.insert(&table, &key(number), &[1; 60]))
                .unwrap();
        }
        let old = database.begin().unwrap();
        database
            .retry(|tx| (0..200).try_for_each(|n| tx.delete(&table, &key(n)).map(|_| ())))
            .unwrap();
        let tx = database.begin().unwrap();
        assert_eq!(tx.count(&table, ..).unwrap(), 0);
        assert_eq!(tx.count(&table, &key(199)[..]..).unwrap(), 0);
        assert_eq!(tx.cursor(&table, ..).unwrap().prev().unwrap(), None);
        assert_eq!(old.count(&table, ..).unwrap(), 200);
        assert_eq!(old.count(&table, &key(199)[..]..).unwrap(), 1);
        assert_eq!(old.count(&table, &key(200)[..]..).unwrap(), 0);
    }
}

#[test]
fn trap_insert_over_a_tombstone_its_abort_and_again_and_again() {
    let (_directory, database, table) = with_table(&small());
    let mut snapshots = vec![(database.begin().unwrap(), None)];
    for round in 0..12u8 {
        let value = vec![round; 10 + usize::from(round) * 40];
        let tx = database.begin().unwrap();
        tx.insert(&table, b"k", &value).unwrap();
        assert!(matches!(
            tx.insert(&table, b"k", &value),
            Err(Error::KeyExists { .. })
        ));
        tx.rollback().unwrap();
        assert_eq!(value_of(&database.begin().unwrap(), &table, b"k"), None);
        database
            .retry(|tx| tx.insert(&table, b"k", &value))
            .unwrap();
        snapshots.push((database.begin().unwrap(), Some(value)));
        // Deleted, and inserted and deleted once more by the same transaction.
        let tx = database.begin().unwrap();
        assert!(tx.delete(&table, b"k").unwrap());
        let savepoint = tx.savepoint().unwrap();
        tx.insert(&table, b"k", b"for a moment").unwrap();
        if round % 2 == 0 {
            assert!(tx.delete(&table, b"k").unwrap());
        } else {
            tx.rollback_to(&savepoint).unwrap();
        }
        assert_eq!(value_of(&tx, &table, b"k"), None);
        tx.commit().unwrap();
        snapshots.push((database.begin().unwrap(), None));
        if round % 3 == 0 {
            database.sync().unwrap();
            settle(&database);
        }
        while snapshots.len() > 8 {
            snapshots.remove(usize::from(round) % 5);
        }
        for (snapshot, expected) in &snapshots {
            assert_eq!(&value_of(snapshot, &table, b"k"), expected, "round {round}");
            assert_eq!(
                rows(snapshot, &table).len(),
                usize::from(expected.is_some())
            );
        }
    }
    drop(snapshots);
    settle(&database);
    assert_eq!(tombstones(&database), 0);
}

#[test]
fn trap_the_before_image_of_a_delete_is_the_row_byte_for_byte_whatever_its_length() {
    let (_directory, database, table) = with_table(&small());
    let lengths = [
        0usize, 1, 2, 17, 18, 19, 255, 256, 1000, 1400, 1500, 4096, 50_000,
    ];
    let value = |length: usize| (0..length).map(|i| (i * 7 % 256) as u8).collect::<Vec<_>>();
    let name = |length: usize| length.to_be_bytes();
    for length in lengths {
        database
            .retry(|tx| tx.insert(&table, &name(length), &value(length)))
            .unwrap();
    }
    let old = database.begin().unwrap();
    for length in lengths {
        assert!(
            database
                .retry(|tx| tx.delete(&table, &name(length)))
                .unwrap()
        );
    }
    for length in lengths {
        assert_eq!(value_of(&old, &table, &name(length)), Some(value(length)));
    }
    let expected: Vec<_> = lengths
        .map(|length| (name(length).to_vec(), value(length)))
        .into();
    assert!(rows(&old, &table) == expected);
}

#[test]
fn trap_an_idle_slot_pins_nothing_and_its_garbage_goes() {
    let (_directory, database, table) = with_table(&small());
    let in_use_before = database.statistics().pages_durable;
    // Slots that wrote and are idle now, and one that only reads and stays open for a while.
    let open: Vec<_> = (0..8).map(|_| database.begin().unwrap()).collect();
    for (number, tx) in open.into_iter().enumerate() {
        tx.upsert(&table, &key(number as u32), &[1; 100]).unwrap();
        tx.commit().unwrap();
    }
    for round in 0..200u32 {
        database
            .retry(|tx| tx.upsert(&table, &key(round % 8), &[2; 900]))
            .unwrap();
    }
    // Large values go once the commit that replaced them is hardened, whoever made it and is idle since.
    for number in 0..8 {
        for size in [40_000, 30_000] {
            database
                .retry(|tx| tx.upsert(&table, &key(number), &vec![3; size]))
                .unwrap();
        }
    }
    for number in 0..8 {
        database
            .retry(|tx| tx.delete(&table, &key(number)))
            .unwrap();
    }
    let written = database.statistics().log_bytes_written;
    assert!(written > 0);
    settle(&database);
    let statistics = database.statistics();
    assert_eq!(
        statistics.oldest_snapshot, statistics.clock,
        "nobody holds anything back"
    );
    assert_eq!(tombstones(&database), 0);
    let slots = 16;
    assert!(
        statistics.pages_of_versions <= 3 * slots,
        "{} pages of versions",
        statistics.pages_of_versions
    );
    assert_eq!(
        database.statistics().pages_durable,
        in_use_before,
        "chains wait for no idle slot"
    );
    database.checkpoint().unwrap();
    let in_use = database.statistics().log_bytes_in_use;
    assert!(
        in_use <= database.config().log_segment_bytes,
        "{in_use} bytes of log"
    );
    // Eviction: rows of twice the pool come through it.
    for number in 0..800u32 {
        database
            .retry(|tx| tx.insert(&table, &key(number), &[5; 600]))
            .unwrap();
    }
    assert!(database.statistics().pages_durable > 2 * database.statistics().pages_resident_max);
    assert_eq!(rows(&database.begin().unwrap(), &table).len(), 800);
}

#[test]
fn trap_garbage_of_a_long_snapshot_goes_in_bounded_steps() {
    let (_directory, database, table) = with_table(&small());
    let old = database.begin().unwrap();
    for batch in 0..40u32 {
        database
            .retry(|tx| {
                for number in 0..100 {
                    tx.insert(&table, &key(batch * 100 + number), &[1; 50])?;
                }
                Ok(())
            })
            .unwrap();
        database
            .retry(|tx| {
                for number in 0..100 {
                    tx.delete(&table, &key(batch * 100 + number))?;
                }
                Ok(())
            })
            .unwrap();
    }
    assert_eq!(old.count(&table, ..).unwrap(), 0);
    assert_eq!(tombstones(&database), 4000);
    old.commit().unwrap();
    database.sync().unwrap();
    // Whoever commits next pays for some of it only: what is removed is logged.
    let mut worst = 0;
    for number in 0..100u32 {
        let before = database.statistics().log_record_bytes;
        database
            .retry(|tx| tx.upsert(&table, &key(1_000_000 + number), b"v"))
            .unwrap();
        worst = worst.max(database.statistics().log_record_bytes - before);
    }
    // 256 removals of 46 bytes each, and merges of the leaves that ran empty: all at once would be twice that.
    assert!(
        worst < 256 * 100 + 64 * 1024,
        "a commit that logged {worst} bytes"
    );
    // Nobody else has collected: it was the commits that did.
    let left = tombstones(&database);
    assert!(left < 4000, "{left} tombstones after 100 commits");
    settle(&database);
    assert_eq!(tombstones(&database), 0);
}

/// A commit that collects for many keeps its client waiting.
#[test]
fn who_deletes_row_by_row_takes_four_out_at_a_time() {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| (0..64).try_for_each(|number| tx.insert(&table, &key(number), b"v")))
        .unwrap();
    settle(&database);
    let waiting = |number| {
        assert!(
            database
                .retry(|tx| tx.delete(&table, &key(number)))
                .unwrap()
        );
        database.statistics().tombstones
    };
    let most = (0..64).map(waiting).max();
    assert!(most.is_some_and(|most| most <= 4), "{most:?}");
}

/// V67. Rows of five pages each, whose old values were written out long ago.
#[test]
fn trap_large_values_of_a_long_snapshot_go_in_bounded_steps() {
    let (_directory, database, table) = with_table(&small());
    let put = |number: u32, byte: u8| {
        let value = vec![byte; 20_000];
        database
            .retry(|tx| tx.upsert(&table, &key(number % 20), &value))
            .unwrap();
    };
    (0..20).for_each(|number| put(number, 0));
    let old = database.begin().unwrap();
    (0..200).for_each(|number| put(number, number as u8));
    let before = database.statistics();
    assert!(before.version_bytes > 200 * 20_000);
    old.commit().unwrap();
    database.sync().unwrap();
    // Whoever commits next pays for some of it only: each page is read before it is free. Twice what eight writers have made is the
    // most, and eight small ones have made nothing.
    let mut worst = 0;
    for number in 0..100u32 {
        let before = database.statistics().pages_read;
        database
            .retry(|tx| tx.upsert(&table, &key(1000 + number), b"v"))
            .unwrap();
        worst = worst.max(database.statistics().pages_read - before);
    }
    assert!((1..64).contains(&worst), "a commit that read {worst} pages");
    let left = database.statistics().version_bytes;
    assert!(
        left < before.version_bytes,
        "it was the commits that collected"
    );
    // What is made goes as fast: two megabytes are replaced.
    (0..100).for_each(|number| put(number, 7));
    let left = database.statistics().version_bytes;
    assert!(left < 1 << 20, "{left} bytes");
    settle(&database);
    let left = database.statistics().version_bytes;
    assert!(left < 200_000, "{left} bytes");
}

#[test]
fn trap_a_chain_of_any_length_is_read_and_only_memory_bounds_it() {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| tx.insert(&table, b"k", &0u32.to_le_bytes()))
        .unwrap();
    let old = database.begin().unwrap();
    for batch in 0..20u32 {
        let tx = database.begin().unwrap();
        for number in 0..300 {
            let value = batch * 300 + number + 1;
            // Lengths change from time to time.
            let mut bytes = value.to_le_bytes().to_vec();
            bytes.resize(4 + (value as usize % 7) * 20, 9);
            tx.upsert(&table, b"k", &bytes).unwrap();
        }
        tx.commit().unwrap();
    }
    assert_eq!(
        value_of(&old, &table, b"k"),
        Some(0u32.to_le_bytes().to_vec())
    );
    old.commit().unwrap();
    let new = value_of(&database.begin().unwrap(), &table, b"k").unwrap();
    assert_eq!(new[..4], 6000u32.to_le_bytes());
    settle(&database);
    assert!(database.statistics().pages_of_versions < 40);
}

#[test]
fn trap_tombstones_from_before_a_restart_go_with_the_pages_that_run_full() {
    let (directory, database, table) = simulated();
    database
        .retry(|tx| (0..300).try_for_each(|n| tx.insert(&table, &key(n), &[1; 40])))
        .unwrap();
    database.checkpoint().unwrap();
    database
        .retry(|tx| (0..300).try_for_each(|n| tx.delete(&table, &key(n)).map(|_| ())))
        .unwrap();
    // Once as the data file has them, stamped, and once as redo makes them.
    for checkpoint in [true, false] {
        if checkpoint {
            database.checkpoint().unwrap();
        }
        let directory = Arc::new(directory.process_kill());
        let database = Database::open_directory(directory, small()).unwrap();
        let before = tombstones(&database);
        assert_eq!(before, 300, "checkpoint {checkpoint}");
        database
            .retry(|tx| {
                let table = tx.table("t")?;
                (0..300)
                    .try_for_each(|n| tx.insert(&table, &[&key(n)[..], b"+"].concat(), &[1; 40]))
            })
            .unwrap();
        let after = tombstones(&database);
        assert!(
            after < 60,
            "{after} tombstones left, checkpoint {checkpoint}"
        );
    }
}

#[test]
fn trap_rollback_of_more_than_the_log_buffer_and_of_a_part_with_others_writes_then_a_crash() {
    let (directory, database, table) = simulated();
    database
        .retry(|tx| (0..200).try_for_each(|n| tx.insert(&table, &key(n), &[0; 100])))
        .unwrap();
    let expected = rows(&database.begin().unwrap(), &table);
    let tx = database.begin().unwrap();
    tx.upsert(&table, &key(0), b"before the savepoint").unwrap();
    let savepoint = tx.savepoint().unwrap();
    let buffer = database.config().slot_buffer_bytes;
    for number in 1..200u32 {
        for _ in 0..10 {
            tx.upsert(&table, &key(number), &vec![1; 400]).unwrap();
        }
        tx.delete(&table, &key(number)).unwrap();
    }
    assert!(200 * 10 * 400 > 4 * buffer, "larger than the log buffer");
    tx.rollback_to(&savepoint).unwrap();
    // Others write where it had written; then it goes on elsewhere.
    database
        .retry(|tx| (100..150).try_for_each(|n| tx.upsert(&table, &key(n), b"other").map(|_| ())))
        .unwrap();
    for number in 150..200 {
        tx.delete(&table, &key(number)).unwrap();
    }
    database.sync().unwrap();
    let crashed = Arc::new(directory.power_cut(1, PowerCut::CLEAN));
    drop(tx);
    let check = |database: &Database| {
        let tx = database.begin().unwrap();
        let table = tx.table("t").unwrap();
        for (number, (row_key, value)) in expected.iter().enumerate() {
            let other = (100..150).contains(&number);
            let wanted = if other {
                b"other".to_vec()
            } else {
                value.clone()
            };
            assert_eq!(value_of(&tx, &table, row_key), Some(wanted), "row {number}");
        }
        assert_eq!(tx.count(&table, ..).unwrap(), 200);
    };
    check(&database);
    check(&Database::open_directory(crashed, small()).unwrap());
}

#[test]
fn trap_a_reader_of_a_dropped_table_keeps_it_whole_and_then_its_pages_go() {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| (0..500).try_for_each(|n| tx.insert(&table, &key(n), &[3; 200])))
        .unwrap();
    settle(&database);
    let before = database.statistics().pages_durable;
    let old = database.begin().unwrap();
    let options = TransactionOptions::default().isolation(Isolation::ReadCommitted);
    let committed = database.begin_with(options).unwrap();
    let mut cursor = committed.cursor(&table, ..).unwrap();
    assert!(cursor.next().unwrap().is_some());
    // A writer whose rows must be reverted in the tree.
    let writer = database.begin_with(options).unwrap();
    writer.upsert(&table, &key(7), b"unfinished").unwrap();
    database.retry(|tx| tx.drop_table("t")).unwrap();
    let other = database.retry(|tx| tx.create_table("other")).unwrap();
    settle(&database);
    assert!(matches!(
        value_of_result(&committed, &table),
        Err(Error::NoSuchTable { .. })
    ));
    assert_eq!(old.count(&table, ..).unwrap(), 500);
    let mut seen = 1;
    while cursor.next().unwrap().is_some() {
        seen += 1;
    }
    assert_eq!(seen, 500);
    drop(cursor);
    // New statements of the writer, on another table, do not free what it has still to revert.
    old.commit().unwrap();
    committed.commit().unwrap();
    writer.upsert(&other, b"k", b"v").unwrap();
    settle(&database);
    writer.rollback().unwrap();
    settle(&database);
    let after = database.statistics().pages_durable;
    assert!(after + 25 < before, "{before} pages before, {after} after");
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

fn value_of_result(tx: &Transaction, table: &Table) -> vellum::Result<Option<Vec<u8>>> {
    tx.get(table, &key(1), <[u8]>::to_vec)
}

#[test]
fn trap_cursors_survive_rollbacks_to_savepoints_and_deletes_under_them() {
    let (directory, database, table) = with_table(&small());
    database
        .retry(|tx| (0..100).try_for_each(|n| tx.insert(&table, &key(n * 2), b"old")))
        .unwrap();
    let tx = database.begin().unwrap();
    tx.upsert(&table, &key(4), b"mine").unwrap();
    let savepoint = tx.savepoint().unwrap();
    for number in 0..100 {
        tx.upsert(&table, &key(number * 2 + 1), b"new").unwrap();
        tx.delete(&table, &key(number * 2)).unwrap();
    }
    let mut cursor = tx.cursor(&table, ..).unwrap();
    assert_eq!(cursor.next().unwrap(), Some((&key(1)[..], &b"new"[..])));
    tx.rollback_to(&savepoint).unwrap();
    assert_eq!(cursor.next().unwrap(), Some((&key(2)[..], &b"old"[..])));
    assert_eq!(cursor.next().unwrap(), Some((&key(4)[..], &b"mine"[..])));
    assert_eq!(cursor.prev().unwrap(), Some((&key(2)[..], &b"old"[..])));
    // What it deletes now came after the cursor was opened.
    tx.delete(&table, &key(4)).unwrap();
    assert_eq!(cursor.next().unwrap(), Some((&key(4)[..], &b"mine"[..])));
    drop(cursor);
    tx.commit().unwrap();
    drop(database);
    let database = open(&directory, &small());
    assert_eq!(
        database.retry(|tx| tx.count(&tx.table("t")?, ..)).unwrap(),
        99
    );
}

#[test]
fn trap_a_writer_that_does_not_see_an_index_writes_no_row_past_it() {
    let (_directory, database, table) = with_table(&small());
    database
        .retry(|tx| tx.insert(&table, b"k", b"value"))
        .unwrap();
    let late = database.begin().unwrap();
    let options = TransactionOptions::default().isolation(Isolation::ReadCommitted);
    let unfinished = database.begin_with(options).unwrap();
    unfinished.upsert(&table, b"u", b"unfinished").unwrap();
    let create = |tx: &Transaction| tx.create_index(&table, "i", by_value(0, Some(3), false));
    let tx = database.begin().unwrap();
    assert!(
        matches!(create(&tx), Err(Error::Conflict)),
        "a row that it cannot judge"
    );
    drop(tx);
    unfinished.rollback().unwrap();
    let tx = database.begin().unwrap();
    create(&tx).unwrap();
    assert!(
        matches!(late.upsert(&table, b"k", b"other"), Err(Error::Conflict)),
        "uncommitted"
    );
    drop(late);
    let late = database.begin().unwrap();
    tx.commit().unwrap();
    for write in [
        late.upsert(&table, b"k", b"other").map(drop),
        late.insert(&table, b"new", b"row"),
    ] {
        assert!(matches!(
            write,
            Err(Error::Conflict | Error::TransactionOver { .. })
        ));
    }
    drop(late);
    // A definition that was rolled back keeps nobody out.
    let tx = database.begin().unwrap();
    tx.drop_index(&table, "i").unwrap();
    tx.rollback().unwrap();
    database
        .retry(|tx| tx.upsert(&table, b"k", b"other"))
        .unwrap();
    let report = database.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}
