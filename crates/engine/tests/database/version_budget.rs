//! The budget of old versions: spill, refuse the writer, withdraw the oldest snapshot.
#![cfg(not(any(loom, shuttle)))]

use crate::support::{key, rows, settle, small, value_of, with_table};
use std::thread;
use vellum::{
    Class, Config, Database, Durability, Error, Family, Table, Transaction, TransactionOptions,
    VersionKind, VersionPolicy,
};
use vellum_sync::test_point::TestPoints;

const BUDGET: u64 = 50 * 4096;
const KEYS: u32 = 50;

fn config(policy: VersionPolicy) -> Config {
    let mut config = small().version_bytes_max(BUDGET, policy);
    config.promote_after_ticks = 400;
    // Every update leaves something that takes space.
    config.versions.fat = false;
    config
}

fn begin(database: &Database) -> Transaction {
    let options = TransactionOptions::default().durability(Durability::Async);
    database.begin_with(options).unwrap()
}

fn setup(policy: VersionPolicy) -> (Database, Table) {
    let (_, database, table) = with_table(&config(policy));
    let tx = begin(&database);
    for number in 0..KEYS {
        tx.insert(&table, &key(number), &[0; 200]).unwrap();
    }
    tx.commit().unwrap();
    (database, table)
}

/// Overwrites each row once, each in a transaction of its own.
fn overwrite(database: &Database, table: &Table, value: u8) -> Result<(), Error> {
    for number in 0..KEYS {
        let tx = begin(database);
        tx.upsert(table, &key(number), &[value; 200])?;
        tx.commit()?;
    }
    Ok(())
}

fn over_budget(database: &Database) -> bool {
    database.statistics().version_bytes > BUDGET
}

#[test]
fn spill_goes_on_past_the_budget_and_past_memory() {
    let (database, table) = setup(VersionPolicy::Spill);
    let old = begin(&database);
    for round in 1..60 {
        overwrite(&database, &table, round).unwrap();
        database.step().unwrap();
    }
    let now = database.statistics();
    assert!(now.version_bytes > BUDGET && now.version_bytes > now.pages_resident_max * 4096);
    let seen = rows(&old, &table);
    assert!(seen.len() == KEYS as usize && seen.iter().all(|(_, value)| value == &[0; 200]));
    old.rollback().unwrap();
    settle(&database);
    assert!(!over_budget(&database), "garbage goes");
}

#[test]
fn refused_writer_is_told_why_stays_usable_and_goes_on_when_the_snapshot_has_ended() {
    let (database, table) = setup(VersionPolicy::RefuseWriter);
    let old = begin(&database);
    let error = (1..100)
        .find_map(|round| overwrite(&database, &table, round).err())
        .expect("the space is used up");
    assert_eq!(error.family(), Family::Resource);
    assert!(error.to_string().contains("older snapshot"), "{error}");
    let Error::VersionSpace { bytes, limit, own } = error else {
        panic!("{error}")
    };
    assert!(!own && bytes > limit && limit == BUDGET && over_budget(&database));
    let holder = database.holders().unwrap()[0];
    assert_eq!(holder.transaction, old.id());
    let tx = begin(&database);
    let refused = |result: Result<bool, Error>| {
        assert!(matches!(result, Err(Error::VersionSpace { .. })));
    };
    refused(tx.upsert(&table, &key(1), b"x"));
    refused(tx.update(&table, &key(1), &[0..1], |bytes| bytes[0] = 1));
    refused(tx.delete(&table, &key(1)));
    refused(tx.insert(&table, b"new", b"x").map(|()| true));
    assert_eq!(value_of(&tx, &table, b"new"), None);
    database.step().unwrap();
    refused(tx.delete(&table, &key(1)));
    assert_eq!(value_of(&old, &table, &key(7)), Some(vec![0; 200]));
    old.commit().unwrap();
    tx.commit().unwrap();
    settle(&database);
    overwrite(&database, &table, 1).unwrap();
}

/// Overwrites until a snapshot is withdrawn.
fn outgrow(database: &Database, table: &Table) {
    let before = database.statistics().snapshots_withdrawn;
    for round in 1..200 {
        overwrite(database, table, round).unwrap();
        database.step().unwrap();
        if database.statistics().snapshots_withdrawn > before {
            return;
        }
    }
    panic!("no snapshot was withdrawn");
}

#[test]
fn oldest_snapshot_is_withdrawn_and_named_and_only_that() {
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    for class in [Class::Auto, Class::Oltp, Class::Olap] {
        let options = TransactionOptions::default().class(class);
        let old = database.begin_with(options).unwrap();
        let mut cursor = old.cursor(&table, ..).unwrap();
        let before = cursor.next().unwrap().unwrap().1.to_vec();
        overwrite(&database, &table, 250).unwrap();
        let young = begin(&database);
        outgrow(&database, &table);
        let event = *database.withdrawn_snapshots().last().unwrap();
        assert_eq!(event.transaction, old.id());
        assert!(event.version_bytes > BUDGET && event.age_ticks > 100);
        let told = cursor.next().unwrap_err();
        assert!(matches!(told, Error::SnapshotTooOld), "{told}");
        assert!(told.is_retryable() && before.len() == 200);
        drop(cursor);
        let over = old.get(&table, &key(1), |_| ()).unwrap_err();
        assert!(matches!(over, Error::TransactionOver { .. }));
        assert!(matches!(old.commit(), Err(Error::TransactionOver { .. })));
        assert_eq!(value_of(&young, &table, &key(7)), Some(vec![250; 200]));
        drop(young);
        settle(&database);
        assert!(!over_budget(&database));
    }
    assert_eq!(database.withdrawn_snapshots().len(), 3);
}

#[test]
fn snapshots_that_are_not_to_blame_stay_while_what_another_held_is_collected() {
    const ROWS: u32 = 30_000;
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    let write_all = |value: u8| {
        let tx = begin(&database);
        for number in 0..ROWS {
            tx.upsert(&table, &key(number), &[value; 60]).unwrap();
        }
        tx.commit().unwrap();
    };
    write_all(1);
    settle(&database);
    let options = TransactionOptions::default().class(Class::Olap);
    let guilty = database.begin_with(options).unwrap();
    assert_eq!(value_of(&guilty, &table, &key(3)), Some(vec![1; 60]));
    // Several collections' worth.
    write_all(2);
    assert!(over_budget(&database));
    let mut innocent = Vec::new();
    for value in 0..6 {
        let young = database.begin_with(options).unwrap();
        let seen = value_of(&young, &table, &key(0));
        innocent.push((young, seen));
        // Older than what is too young to be withdrawn.
        for _ in 0..60 {
            let tx = begin(&database);
            tx.upsert(&table, &key(0), &[value; 60]).unwrap();
            tx.commit().unwrap();
        }
    }
    let mut steps = 0;
    while over_budget(&database) {
        database.step().unwrap();
        steps += 1;
        assert!(steps < 1000, "the space does not fall");
    }
    let withdrawn = database.withdrawn_snapshots();
    assert_eq!(withdrawn.len(), 1, "in {steps} steps: {withdrawn:?}");
    assert_eq!(withdrawn[0].transaction, guilty.id());
    for (young, seen) in &innocent {
        assert_eq!(value_of(young, &table, &key(0)), *seen);
    }
}

/// A look at all leaves of a table is no single operation.
#[test]
fn snapshot_is_withdrawn_while_the_leaves_of_a_table_are_counted() {
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    let points = TestPoints::new();
    let pause = points.pause("leaf pages: between two steps");
    let withdrawn = || database.statistics().snapshots_withdrawn > 0;
    thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let _scope = points.enter();
            begin(&database).leaf_pages(&table)
        });
        pause.wait_reached();
        // Nothing fails in here: the other one waits.
        let mut rounds = 1..200;
        while !withdrawn() && rounds.any(|round| overwrite(&database, &table, round).is_ok()) {
            let _ = database.step();
        }
        pause.release();
        let told = looker.join().unwrap();
        assert!(matches!(told, Err(Error::SnapshotTooOld)), "{told:?}");
    });
    let now = begin(&database);
    assert!(now.leaf_pages(&table).unwrap() >= u64::from(KEYS) * 200 / 4096);
}

#[test]
fn every_operation_of_a_withdrawn_transaction_says_so() {
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    let operations: [&dyn Fn(&Transaction) -> Result<(), Error>; 11] = [
        &|tx| tx.get(&table, &key(1), |_| ()).map(drop),
        &|tx| tx.multi_get(&table, &[&key(1)], |_, _| ()),
        &|tx| tx.insert(&table, b"n", b"v"),
        &|tx| tx.update(&table, &key(1), &[0..1], |_| ()).map(drop),
        &|tx| tx.delete(&table, &key(1)).map(drop),
        &|tx| tx.count(&table, ..).map(drop),
        &|tx| tx.table("t").map(drop),
        &|tx| tx.tables().map(drop),
        &|tx| tx.create_table("u").map(drop),
        &|tx| tx.drop_table("t"),
        &|tx| tx.bulk_load(&table, |_, _| false).map(drop),
    ];
    for operation in operations {
        let old = begin(&database);
        outgrow(&database, &table);
        assert!(matches!(operation(&old), Err(Error::SnapshotTooOld)));
        drop(old);
    }
    // What it has read and written until then was right: it may commit.
    let old = begin(&database);
    old.insert(&table, b"early", b"1").unwrap();
    outgrow(&database, &table);
    old.commit().unwrap();
    assert!(value_of(&begin(&database), &table, b"early").is_some());
}

#[test]
fn user_code_that_outlasts_its_snapshot_does_not_write() {
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    let old = begin(&database);
    let result = old.update(&table, b"\0\0\0\x01", &[0..1], |bytes| {
        outgrow(&database, &table);
        bytes[0] = 99;
    });
    assert!(matches!(result, Err(Error::SnapshotTooOld)));
    assert_ne!(value_of(&begin(&database), &table, &key(1)).unwrap()[0], 99);
}

#[test]
fn retry_runs_a_withdrawn_transaction_again() {
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    let mut tries = 0;
    let seen = database.retry(|tx| {
        tries += 1;
        if tries == 1 {
            outgrow(&database, &table);
        }
        tx.get(&table, &key(1), <[u8]>::to_vec)
    });
    assert_eq!(tries, 2);
    assert_ne!(seen.unwrap(), Some(vec![0; 200]));
}

#[test]
fn withdrawn_writer_is_rolled_back_in_a_table_that_was_dropped_meanwhile() {
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    let other = database.retry(|tx| {
        let other = tx.create_table("other")?;
        for number in 0..100 {
            tx.insert(&other, &key(number), &[5; 500])?;
        }
        Ok(other)
    });
    let other = other.unwrap();
    let writer = begin(&database);
    for number in 0..100 {
        writer.upsert(&other, &key(number), &[6; 500]).unwrap();
    }
    database.retry(|tx| tx.drop_table("other")).unwrap();
    let before = database.statistics().pages_durable;
    outgrow(&database, &table);
    settle(&database);
    assert!(
        database.statistics().pages_durable >= before,
        "its undo needs the tree"
    );
    writer.rollback().unwrap();
    overwrite(&database, &table, 1).unwrap();
    settle(&database);
    assert!(database.statistics().pages_durable < before);
    assert!(database.verify().unwrap().findings.is_empty());
}

#[test]
fn young_snapshots_are_left_alone_however_much_there_is() {
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    let big = begin(&database);
    for round in 0..40 {
        for number in 0..KEYS {
            big.upsert(&table, &key(number), &[round; 200]).unwrap();
        }
        database.step().unwrap();
    }
    assert!(over_budget(&database));
    big.commit().unwrap();
    assert_eq!(database.statistics().snapshots_withdrawn, 0);
}

/// Overwrites many rows in one transaction, which is left open.
fn overwrite_many(database: &Database, table: &Table, value: u8) -> Transaction {
    let tx = begin(database);
    for number in 0..2_000 {
        tx.upsert(table, &key(number), &[value; 200]).unwrap();
    }
    tx
}

/// A transaction of any size takes two ticks.
#[test]
fn a_young_snapshot_is_withdrawn_for_what_one_large_transaction_replaced() {
    let (database, table) = setup(VersionPolicy::SnapshotTooOld);
    overwrite_many(&database, &table, 1).commit().unwrap();
    let kinds = [
        (Class::Auto, false, 20),
        (Class::Olap, false, 0),
        (Class::Auto, true, 20),
    ];
    for (class, writes, steps_at_work) in kinds {
        settle(&database);
        assert!(!over_budget(&database));
        let before = database.statistics().snapshots_withdrawn;
        let options = TransactionOptions::default().class(class);
        let old = database.begin_with(options).unwrap();
        let seen = value_of(&old, &table, &key(7));
        if writes {
            old.insert(&table, b"of the old one", b"1").unwrap();
        }
        let large = overwrite_many(&database, &table, seen.unwrap()[0] + 1);
        assert!(over_budget(&database));
        for _ in 0..steps_at_work {
            database.step().unwrap();
        }
        let now = database.statistics().snapshots_withdrawn;
        assert_eq!(
            now, before,
            "what a writer that is at work replaced is its own"
        );
        large.commit().unwrap();
        let young = begin(&database);
        let seen = value_of(&young, &table, &key(7));
        if steps_at_work == 0 {
            database.step().unwrap();
            database.step().unwrap();
            let now = database.statistics().snapshots_withdrawn;
            assert_eq!(now, before, "who was met a moment ago may be about to end");
        }
        for _ in 0..4 {
            database.step().unwrap();
        }
        let event = *database.withdrawn_snapshots().last().unwrap();
        assert_eq!(event.transaction, old.id());
        assert!(event.age_ticks < 25, "{event:?}");
        let told = old.get(&table, &key(7), |_| ()).unwrap_err();
        assert!(matches!(told, Error::SnapshotTooOld), "{told}");
        drop(old);
        settle(&database);
        assert!(!over_budget(&database));
        assert_eq!(value_of(&young, &table, &key(7)), seen);
        let now = database.statistics().snapshots_withdrawn;
        assert_eq!(now, before + 1, "nothing is kept for who came after it");
    }
}

#[test]
fn old_versions_are_told_by_table_and_kind_and_by_who_keeps_them() {
    let config = config(VersionPolicy::Spill);
    let (_, database, table) = with_table(&config);
    let other = database.retry(|tx| tx.create_table("other")).unwrap();
    let tx = begin(&database);
    for number in 0..KEYS {
        tx.insert(&table, &key(number), &[0; 200]).unwrap();
        tx.insert(&other, &key(number), &[0; 200]).unwrap();
    }
    tx.commit().unwrap();
    let first = begin(&database);
    overwrite(&database, &table, 1).unwrap();
    let second = begin(&database);
    for number in 0..10 {
        let tx = begin(&database);
        tx.update(&other, &key(number), &[0..8], |bytes| bytes[0] = 9)
            .unwrap();
        tx.commit().unwrap();
    }
    let keys = u64::from(KEYS);
    let of = |table: &str| {
        let versions = database.versions().unwrap().tables;
        let found = versions.iter().find(|v| v.table.as_deref() == Some(table));
        found.unwrap().sums
    };
    let copies = of("t").of(VersionKind::FullCopy);
    assert!(copies.count >= keys && copies.bytes >= keys * 200);
    let deltas = of("other").of(VersionKind::Delta);
    assert!(deltas.count == 10 && (10 * 8..10 * 60).contains(&deltas.bytes));
    let now = database.statistics();
    assert_eq!(now.version_deltas, deltas.count);
    assert!(now.version_copies >= copies.count && now.version_copy_bytes >= copies.bytes);
    let holders = database.holders().unwrap();
    let pinned = |holder: usize| (holders[holder].versions, holders[holder].version_bytes);
    // The ends of epochs are not told exactly.
    assert!(pinned(0).0 + pinned(1).0 >= keys + 10);
    assert!(pinned(0).1 + pinned(1).1 >= keys * 200);
    first.rollback().unwrap();
    second.rollback().unwrap();
    for round in 0..4 {
        overwrite(&database, &table, round).unwrap();
        settle(&database);
    }
    assert!(database.statistics().version_copies < 3 * keys);
    assert_eq!(database.statistics().version_deltas, 0);
}

#[test]
fn tombstones_buried_rows_and_versions_in_rows_are_told_by_table() {
    let mut config = config(VersionPolicy::Spill);
    config.versions.fat = true;
    // With them a row that is updated under an analytical snapshot has no chain that it could turn fat for.
    config.versions.shortcuts = false;
    let (_, database, table) = with_table(&config);
    let hot = database.retry(|tx| tx.create_table("hot")).unwrap();
    let tx = begin(&database);
    for number in 0..KEYS {
        tx.insert(&table, &key(number), &[0; 200]).unwrap();
    }
    tx.insert(&hot, b"h", &[0; 100]).unwrap();
    tx.commit().unwrap();
    let of = |table: &str, kind| {
        let versions = database.versions().unwrap().tables;
        let found = versions.iter().find(|v| v.table.as_deref() == Some(table));
        found.map_or(0, |found| found.sums.of(kind).count)
    };
    let clerk = database
        .begin_with(TransactionOptions::default().class(Class::Oltp))
        .unwrap();
    let delete = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            let tx = begin(&database);
            assert!(tx.delete(&table, &key(number)).unwrap());
            tx.commit().unwrap();
        }
    };
    delete(0..20);
    settle(&database);
    assert_eq!(of("t", VersionKind::Tombstone), 20, "in the clerk's way");
    assert_eq!(database.statistics().tombstones, 20);
    let analyst = database
        .begin_with(TransactionOptions::default().class(Class::Olap))
        .unwrap();
    drop(clerk);
    delete(20..30);
    settle(&database);
    assert_eq!(of("t", VersionKind::Tombstone), 0);
    assert_eq!(of("t", VersionKind::Buried), 10, "for the analyst");
    assert_eq!(database.statistics().rows_buried, 10);
    for round in 0..200 {
        let tx = begin(&database);
        tx.update(&hot, b"h", &[0..8], |bytes| bytes[0] = round)
            .unwrap();
        tx.commit().unwrap();
    }
    assert!(of("hot", VersionKind::Fat) > 0);
    assert_eq!(of("t", VersionKind::Fat), 0);
    // The analyst keeps all of that, and what it keeps is all there is.
    let (holders, all) = (database.holders().unwrap(), database.versions().unwrap());
    assert!(all.complete && holders[0].complete && holders[0].analytical);
    let kept = |kind| {
        all.tables
            .iter()
            .map(|table| table.sums.of(kind).count)
            .sum::<u64>()
    };
    assert!(holders[0].versions >= kept(VersionKind::Buried) + kept(VersionKind::Fat));
    let every = all.tables.iter().map(|table| table.sums.total().count);
    assert!(holders[0].versions <= every.sum::<u64>());
    drop(analyst);
    settle(&database);
    assert_eq!(of("t", VersionKind::Buried), 0);
}

#[test]
fn garbage_of_a_slot_goes_while_a_transaction_idles_in_it() {
    let (database, table) = setup(VersionPolicy::Spill);
    let old = begin(&database);
    for round in 0..10 {
        overwrite(&database, &table, round).unwrap();
    }
    // In the slot that made them all: the thread's last one.
    let idle = begin(&database);
    assert!(database.statistics().version_copies >= 10 * u64::from(KEYS));
    old.rollback().unwrap();
    settle(&database);
    let left = database.statistics().version_copies;
    assert!(left < 2 * u64::from(KEYS), "{left}");
    assert_eq!(value_of(&idle, &table, &key(1)), Some(vec![9; 200]));
}

#[test]
fn holders_are_named_oldest_first_with_class_and_age() {
    let (database, table) = setup(VersionPolicy::Spill);
    let olap = TransactionOptions::default().class(Class::Olap);
    let first = begin(&database);
    first.insert(&table, b"w", b"1").unwrap();
    let second = database.begin_with(olap).unwrap();
    database.step().unwrap();
    overwrite(&database, &table, 1).unwrap();
    let third = begin(&database);
    let ids = [first.id(), second.id(), third.id()];
    let holders = database.holders().unwrap();
    assert_eq!(
        ids[..],
        holders.iter().map(|h| h.transaction).collect::<Vec<_>>()
    );
    assert_eq!([true, false, false], [0, 1, 2].map(|i| holders[i].writer));
    assert_eq!(
        [false, true, false],
        [0, 1, 2].map(|i| holders[i].analytical)
    );
    assert!(holders[1].age_ticks >= 2 * u64::from(KEYS) && holders[2].age_ticks == 0);
    assert!(
        holders[0].age > std::time::Duration::ZERO,
        "a pass has seen it"
    );
    assert!(ids[0] != ids[1] && !ids[0].to_string().is_empty());
    drop((second, third));
    first.rollback().unwrap();
    assert!(database.holders().unwrap().is_empty());
}

/// Beside a snapshot that keeps little of it.
#[test]
fn writer_whose_own_updates_use_the_budget_up_is_told_so() {
    let (database, table) = setup(VersionPolicy::RefuseWriter);
    let old = begin(&database);
    overwrite(&database, &table, 1).unwrap();
    let tx = begin(&database);
    let error = (0..100_000u32).find_map(|round| {
        if round % 50 == 0 {
            database.step().unwrap();
        }
        tx.upsert(&table, &key(round % KEYS), &[2; 200]).err()
    });
    let error = error.expect("the space is used up");
    assert!(
        matches!(error, Error::VersionSpace { own: true, .. }),
        "{error}"
    );
    tx.rollback().unwrap();
    settle(&database);
    overwrite(&database, &table, 3).unwrap();
    drop(old);
}

/// Puts a value of several pages in the place of whatever is there.
fn put_large(database: &Database, table: &Table, byte: u8) -> Result<(), Error> {
    let tx = begin(database);
    tx.upsert(table, b"large", &[byte; 20_000])?;
    tx.commit()
}

#[test]
fn large_values_that_a_snapshot_keeps_count_for_the_budget() {
    let (_, database, table) = with_table(&config(VersionPolicy::SnapshotTooOld));
    put_large(&database, &table, 0).unwrap();
    // What goes early, goes between analytical snapshots: here everything stays.
    let oltp = TransactionOptions::default().class(Class::Oltp);
    let old = database.begin_with(oltp).unwrap();
    assert!(value_of(&old, &table, b"large").is_some());
    let mut peak = 0;
    for round in 1..200 {
        put_large(&database, &table, round).unwrap();
        database.step().unwrap();
        let chains = database.versions().unwrap().tables;
        let chains = chains.iter().map(|it| it.sums.of(VersionKind::Chain).bytes);
        peak = peak.max(chains.sum());
        if database.statistics().snapshots_withdrawn > 0 {
            break;
        }
    }
    assert_eq!(database.statistics().snapshots_withdrawn, 1);
    // They, and not their lists.
    assert!(peak > BUDGET * 3 / 4, "{peak}");
    let error = old.get(&table, b"large", |_| ()).unwrap_err();
    assert!(matches!(error, Error::SnapshotTooOld), "{error}");
    drop(old);
    settle(&database);
    assert!(database.statistics().version_bytes < BUDGET / 2);
}

#[test]
fn writers_are_refused_where_large_values_use_the_budget_up() {
    let (_, database, table) = with_table(&config(VersionPolicy::RefuseWriter));
    put_large(&database, &table, 0).unwrap();
    assert!(!over_budget(&database));
    // The values of one transaction: nobody may forget those that come in between.
    let tx = begin(&database);
    let error = (0..200u8).find_map(|round| {
        database.step().unwrap();
        tx.upsert(&table, b"large", &[round; 20_000]).err()
    });
    let error = error.expect("a writer that replaces its own values, too, takes space");
    assert!(
        matches!(error, Error::VersionSpace { own: true, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("own changes"), "{error}");
    assert!(over_budget(&database));
    // Who has replaced little, or nothing, is told that it is another.
    let other = begin(&database);
    let error = other.upsert(&table, b"other", b"v").unwrap_err();
    assert!(
        matches!(error, Error::VersionSpace { own: false, .. }),
        "{error}"
    );
    drop(other);
    tx.rollback().unwrap();
    // What is reverted takes no space: nobody is refused any more.
    assert!(!over_budget(&database));
    put_large(&database, &table, 1).unwrap();
    let tx = begin(&database);
    assert_eq!(value_of(&tx, &table, b"large"), Some(vec![1; 20_000]));
}
