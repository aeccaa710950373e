//! Old versions that stand in rows: how much they are, what the budget makes of them, and where pages leave memory with them.
#![cfg(not(any(loom, shuttle)))]

use crate::support::{key, settle, tiny, value_of, with_table};
use std::ops::Range;
use vellum::{
    Class, Config, Database, Durability, Error, Table, Transaction, TransactionOptions,
    VersionKind, VersionPolicy,
};

/// Hot rows. A page has room for one and a half, so they are in twice as many pages as one look goes through.
const ROWS: u32 = 12_000;
/// More than the versions in the first 4,096 of these pages come to, less than those that a snapshot needs in all of them.
const BUDGET: u64 = 1_250_000;

fn config(frames: u64, policy: VersionPolicy) -> Config {
    let mut config = tiny(4096, frames).version_bytes_max(BUDGET, policy);
    config.promote_after_ticks = 400;
    config.versions.fat_updates = Some(2);
    // With them a row that is updated under an analytical snapshot has no chain that it could turn fat for.
    config.versions.shortcuts = false;
    // What waits for its turn in delta indexes is small beside the rows.
    config.log_segment_bytes = 4 << 20;
    config.log_bytes_max = 64 << 20;
    config.checkpoint_log_bytes = 16 << 20;
    config
}

fn begin(database: &Database, class: Class) -> Transaction {
    let options = TransactionOptions::default()
        .durability(Durability::Async)
        .class(class);
    database.begin_with(options).unwrap()
}

/// The row that is written to, of the first three quarters of a page's worth of rows, the second, and so on.
fn hot(number: u32) -> [u8; 4] {
    key(4 * number)
}

/// As many hot rows, and three that stay for each.
fn fill(database: &Database, table: &Table, rows: u32) {
    for from in (0..rows).step_by(100) {
        let tx = begin(database, Class::Auto);
        for number in from..(from + 100).min(rows) {
            tx.insert(table, &hot(number), &[0; 100]).unwrap();
            for beside in 1..4 {
                let beside = key(4 * number + beside);
                tx.insert(table, &beside, &[1; 900]).unwrap();
            }
        }
        tx.commit().unwrap();
    }
}

/// Writes these values to the hot rows, to a hundred at a time: then no deltas pile up before the rows turn fat.
fn overwrite(
    database: &Database,
    table: &Table,
    rows: u32,
    values: Range<u8>,
) -> Result<(), Error> {
    for from in (0..rows).step_by(100) {
        for value in values.clone() {
            let tx = begin(database, Class::Auto);
            for number in from..(from + 100).min(rows) {
                tx.update(table, &hot(number), &[0..100], |bytes| {
                    bytes.fill(value);
                })?;
            }
            tx.commit()?;
        }
        database.step()?;
    }
    Ok(())
}

/// What a look at no more than 4,096 pages finds, and whether it says that this is all.
fn looked_at(database: &Database) -> (u64, bool) {
    let found = database.versions().unwrap();
    let tables = found.tables.iter();
    let bytes = tables.map(|it| it.sums.of(VersionKind::Fat).bytes).sum();
    (bytes, found.complete)
}

/// A table of [`ROWS`] hot rows with old versions in them, and the snapshot that needs one of each.
fn many(policy: VersionPolicy) -> (Database, Table, Transaction) {
    let (_, database, table) = with_table(&config(24_000, policy));
    fill(&database, &table, ROWS);
    settle(&database);
    let old = begin(&database, Class::Olap);
    assert_eq!(value_of(&old, &table, &hot(0)), Some(vec![0; 100]));
    overwrite(&database, &table, ROWS, 1..6).unwrap();
    (database, table, old)
}

#[test]
fn versions_in_rows_of_any_number_of_pages_are_told_where_there_is_no_limit() {
    let (database, table, old) = many(VersionPolicy::Spill);
    // A round of the look at rows.
    for _ in 0..ROWS / 100 {
        database.step().unwrap();
    }
    let (looked, complete) = looked_at(&database);
    let now = database.statistics();
    assert!(!complete && looked > 0, "{looked}");
    assert!(now.version_bytes_in_rows > looked * 3 / 2, "{now:?}");
    assert!(now.version_bytes > now.version_bytes_in_rows);
    assert_eq!((now.fat_pages_out, now.fat_pages_evicted), (0, 0));
    assert_eq!(value_of(&old, &table, &hot(0)), Some(vec![0; 100]));
    drop(old);
}

#[test]
fn snapshot_that_needs_versions_in_more_rows_than_one_look_sees_is_withdrawn_and_only_that() {
    let (database, table, old) = many(VersionPolicy::SnapshotTooOld);
    // Younger ones, which need few; they are old enough by the time that the first one is gone.
    let innocent: Vec<_> = (0..3u8)
        .map(|value| {
            let young = begin(&database, Class::Olap);
            assert_eq!(
                value_of(&young, &table, &hot(0)),
                Some(vec![5 + value; 100])
            );
            for _ in 0..60 {
                let tx = begin(&database, Class::Auto);
                let set = |bytes: &mut [u8]| bytes.fill(6 + value);
                tx.update(&table, &hot(0), &[0..100], set).unwrap();
                tx.commit().unwrap();
            }
            young
        })
        .collect();
    let withdrawn = || database.statistics().snapshots_withdrawn;
    let mut steps = 0;
    while withdrawn() == 0 {
        database.step().unwrap();
        steps += 1;
        assert!(steps < 500, "{:?}", database.statistics());
    }
    // What it needed is told as needed until all was looked at again: nobody else goes for that.
    for _ in 0..200 {
        database.step().unwrap();
    }
    let events = database.withdrawn_snapshots();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].transaction, old.id());
    assert!(events[0].version_bytes > BUDGET);
    let told = old.get(&table, &hot(0), |_| ()).unwrap_err();
    assert!(matches!(told, Error::SnapshotTooOld), "{told}");
    for (value, young) in innocent.iter().enumerate() {
        let seen = value_of(young, &table, &hot(0));
        assert_eq!(seen, Some(vec![5 + value as u8; 100]));
    }
    // They still stand in their rows, and nobody needs them.
    let now = database.statistics();
    assert!(now.version_bytes_in_rows > BUDGET, "{now:?}");
}

#[test]
fn writers_are_refused_for_versions_in_rows_while_somebody_needs_them_and_no_longer() {
    let (_, database, table) = with_table(&config(24_000, VersionPolicy::RefuseWriter));
    fill(&database, &table, ROWS);
    settle(&database);
    let old = begin(&database, Class::Olap);
    assert_eq!(value_of(&old, &table, &hot(0)), Some(vec![0; 100]));
    // Each time the look at rows goes on a hundred and twenty times.
    let mut rounds = [1..6, 6..7, 7..8, 8..9].into_iter();
    let told = rounds.find_map(|values| overwrite(&database, &table, ROWS, values).err());
    let told = told.expect("the budget is used up");
    assert!(matches!(told, Error::VersionSpace { .. }), "{told}");
    let in_rows = database.statistics().version_bytes_in_rows;
    assert!(in_rows > BUDGET, "{in_rows}");
    drop(old);
    for _ in 0..60 {
        database.step().unwrap();
    }
    overwrite(&database, &table, 100, 77..78).unwrap();
}

/// Where nothing else can go, pages go with the versions in their rows. They stood in no figure, and `complete` said that all was counted.
#[test]
fn pages_that_are_evicted_with_versions_in_their_rows_are_counted_and_told() {
    const FEW: u32 = 300;
    let (_, database, table) = with_table(&config(40, VersionPolicy::Spill));
    fill(&database, &table, FEW);
    let old = begin(&database, Class::Olap);
    assert_eq!(value_of(&old, &table, &hot(0)), Some(vec![0; 100]));
    let write = |times: std::ops::Range<u8>| {
        for value in times {
            for number in (0..FEW).rev() {
                let tx = begin(&database, Class::Auto);
                let row = hot(number);
                // All updates of a row while its page is there.
                for part in 0..2 {
                    let wrote = tx.update(&table, &row, &[0..100], |bytes| {
                        bytes.fill(value + part);
                    });
                    assert!(wrote.unwrap());
                }
                tx.commit().unwrap();
            }
        }
    };
    write(1..8);
    let now = database.statistics();
    assert!(now.fat_pages_evicted > 0, "{now:?}");
    assert!(now.fat_pages_written >= now.fat_pages_out, "{now:?}");
    assert!(now.fat_pages_out > now.pages_resident_max, "{now:?}");
    let found = database.versions().unwrap();
    assert!(!found.complete && found.pages_out > 0);
    assert!(!database.holders().unwrap()[0].complete);
    // One step: what is out counts as the mean of what is there.
    database.step().unwrap();
    let (looked, now) = (looked_at(&database).0, database.statistics());
    assert!(looked > 0 && now.fat_pages_out > 0, "{now:?}");
    let expected = looked * (now.fat_pages_out + 1) / now.pages_resident_max;
    assert!(now.version_bytes_in_rows > expected, "{looked}: {now:?}");
    assert_eq!(value_of(&old, &table, &hot(0)), Some(vec![0; 100]));
    drop(old);
    assert!(database.verify().unwrap().findings.is_empty());
}
