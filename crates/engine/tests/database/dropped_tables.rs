//! Pages of dropped tables that a snapshot still sees: told, charged to who sees them, and in the budget.
#![cfg(not(any(loom, shuttle)))]

use crate::support::{by_value, key, open, rows, settle, small, value_of, with_table};
use std::sync::Arc;
use vellum::{
    Class, Config, Database, Error, Table, Tally, Transaction, TransactionOptions, VersionKind,
    VersionPolicy,
};
use vellum_sync::atomic::{AtomicUsize, Ordering};
use vellum_sync::test_point::TestPoints;

fn begin(database: &Database, class: Class) -> Transaction {
    let options = TransactionOptions::default().class(class);
    database.begin_with(options).unwrap()
}

/// Fills a table with `rows` rows of about 1,000 bytes.
fn fill(database: &Database, table: &Table, rows: u32) {
    let loaded = database.retry(|tx| {
        let mut number: u32 = 0;
        tx.bulk_load(table, |key, value| {
            key.extend_from_slice(&number.to_be_bytes());
            value.resize(1_000, 7);
            number += 1;
            number <= rows
        })
    });
    assert_eq!(loaded.unwrap(), u64::from(rows));
}

/// A table of about `rows` kilobytes.
fn filled(database: &Database, name: &str, rows: u32) -> Table {
    let table = database.retry(|tx| tx.create_table(name)).unwrap();
    fill(database, &table, rows);
    table
}

fn dropped(database: &Database, name: &str) {
    database.retry(|tx| tx.drop_table(name)).unwrap();
}

/// Pages of dropped trees of a table.
fn of(database: &Database, table: &str) -> Tally {
    let versions = database.versions().unwrap();
    assert!(versions.complete);
    let found = versions
        .tables
        .iter()
        .find(|it| it.table.as_deref() == Some(table));
    found.map_or(Tally::default(), |it| it.sums.of(VersionKind::Dropped))
}

fn total(database: &Database) -> u64 {
    database.statistics().dropped_pages
}

#[test]
fn pages_of_dropped_tables_and_indexes_are_told_by_table_and_charged_to_who_sees_them() {
    // Large values of dropped tables are counted where there is a limit.
    let config = small().version_bytes_max(1 << 40, VersionPolicy::RefuseWriter);
    let (directory, database, _) = with_table(&config);
    let first = filled(&database, "first", 300);
    let second = filled(&database, "second", 200);
    let pages = |name: &str| {
        let report = database.verify().unwrap();
        let table = report.tables.into_iter().find(|it| it.tree.name == name);
        let table = table.unwrap();
        let indexes = table.indexes.iter().map(|it| it.tree.pages);
        (table.tree.pages + table.chain_pages, indexes.sum::<u64>())
    };
    database
        .retry(|tx| {
            tx.create_index(&first, "i", by_value(0, Some(4), false))?;
            tx.insert(&first, b"large", &[9; 30_000])
        })
        .unwrap();
    let (of_first, of_second) = (pages("first"), pages("second"));
    assert!(of_first.0 > 75 + 8 && of_first.1 > 1);
    let old = begin(&database, Class::Olap);
    database.retry(|tx| tx.drop_index(&first, "i")).unwrap();
    settle(&database);
    assert_eq!(of(&database, "first").count, of_first.1);
    let middle = begin(&database, Class::Olap);
    dropped(&database, "first");
    dropped(&database, "second");
    settle(&database);
    let all = of_first.0 + of_first.1 + of_second.0;
    assert_eq!(of(&database, "first").count, of_first.0 + of_first.1);
    assert_eq!(of(&database, "second").count, of_second.0);
    assert_eq!(of(&database, "second").bytes, of_second.0 * 4096);
    let now = database.statistics();
    assert_eq!((now.dropped_pages, now.dropped_bytes), (all, all * 4096));
    assert!(now.version_bytes >= all * 4096);
    let holders = database.holders().unwrap();
    assert!(holders.iter().all(|holder| holder.complete));
    let charged = [0, 1].map(|holder: usize| holders[holder].version_bytes);
    assert!((of_first.1 * 4096..of_first.1 * 4096 + 9_000).contains(&charged[0]));
    let of_middle = (of_first.0 + of_second.0) * 4096;
    assert!((of_middle..of_middle + 9_000).contains(&charged[1]));
    assert_eq!(rows(&old, &first).len(), 301);
    drop(old);
    settle(&database);
    assert_eq!(total(&database), of_first.0 + of_second.0);
    assert_eq!(rows(&middle, &second).len(), 200);
    // After a restart nobody sees any of it.
    drop(middle);
    let old = begin(&database, Class::Olap);
    filled(&database, "third", 200);
    drop(old);
    let old = begin(&database, Class::Olap);
    assert!(old.table("third").is_ok());
    dropped(&database, "third");
    settle(&database);
    assert!(total(&database) > 50);
    drop(old);
    database.close().unwrap();
    let database = open(&directory, &small());
    settle(&database);
    assert_eq!(total(&database), 0);
    assert_eq!(database.verify().unwrap().pages.pending, 0);
}

#[test]
fn load_that_replaces_a_tree_and_a_drop_that_is_rolled_back_leave_no_pages() {
    let (_, database, table) = with_table(&small());
    let old = begin(&database, Class::Olap);
    assert!(value_of(&old, &table, b"k").is_none());
    fill(&database, &table, 200);
    settle(&database);
    assert_eq!(of(&database, "t").count, 1, "an empty leaf");
    let tx = begin(&database, Class::Auto);
    tx.drop_table("t").unwrap();
    settle(&database);
    assert_eq!(of(&database, "t").count, 1, "not dropped yet");
    tx.rollback().unwrap();
    settle(&database);
    assert_eq!(of(&database, "t").count, 1);
    drop(old);
    settle(&database);
    assert_eq!(total(&database), 0);
    let now = begin(&database, Class::Auto);
    assert_eq!(rows(&now, &table).len(), 200);
}

const BUDGET: u64 = 10 << 20;

fn limited(policy: VersionPolicy) -> Config {
    let mut config = small().version_bytes_max(BUDGET, policy);
    config.promote_after_ticks = 400;
    config
}

/// Draws as many ticks as make a snapshot old enough to be withdrawn whatever it keeps.
fn age(database: &Database, table: &Table) {
    for number in 0..60u8 {
        database
            .retry(|tx| tx.upsert(table, b"k", &[number]))
            .unwrap();
    }
}

fn steps(database: &Database, most: u32) {
    for _ in 0..most {
        database.step().unwrap();
    }
}

#[test]
fn snapshot_that_keeps_a_dropped_table_of_fifty_megabytes_is_withdrawn_and_no_other() {
    let (_, database, table) = with_table(&limited(VersionPolicy::SnapshotTooOld));
    filled(&database, "big", 50_000);
    let old = begin(&database, Class::Olap);
    assert!(old.table("big").is_ok());
    dropped(&database, "big");
    let young = begin(&database, Class::Olap);
    assert!(young.table("big").is_err());
    age(&database, &table);
    let in_use = database.statistics().pages_durable;
    settle(&database);
    let now = database.statistics();
    assert_eq!(now.snapshots_withdrawn, 1);
    let event = database.withdrawn_snapshots()[0];
    assert_eq!(event.transaction, old.id());
    assert!(event.version_bytes > 50 << 20);
    assert!(in_use - now.pages_durable > 12_500, "the pages are free");
    assert!(now.dropped_pages == 0 && now.version_bytes < BUDGET);
    let told = old.table("big").unwrap_err();
    assert!(matches!(told, Error::SnapshotTooOld), "{told}");
    assert!(value_of(&young, &table, b"k").is_none());
}

/// A young snapshot, too: what is charged to it is more than half of the budget.
#[test]
fn snapshot_of_a_few_ticks_is_withdrawn_for_a_large_table_that_was_dropped_since() {
    let (_, database, _) = with_table(&limited(VersionPolicy::SnapshotTooOld));
    filled(&database, "big", 20_000);
    let old = begin(&database, Class::Olap);
    assert!(old.table("big").is_ok());
    dropped(&database, "big");
    settle(&database);
    steps(&database, 10);
    settle(&database);
    assert_eq!(database.statistics().snapshots_withdrawn, 1);
    assert_eq!(total(&database), 0);
}

#[test]
fn nobody_is_withdrawn_for_a_dropped_table_that_waits_for_a_withdrawn_writer() {
    let (_, database, table) = with_table(&limited(VersionPolicy::SnapshotTooOld));
    filled(&database, "big", 20_000);
    let writer = begin(&database, Class::Olap);
    writer.insert(&table, b"w", b"v").unwrap();
    dropped(&database, "big");
    age(&database, &table);
    let young = begin(&database, Class::Olap);
    assert!(young.table("big").is_err());
    age(&database, &table);
    settle(&database);
    steps(&database, 200);
    let now = database.statistics();
    // Its undo may need the tree.
    assert!(now.snapshots_withdrawn == 1 && now.version_bytes > BUDGET);
    assert_eq!(database.withdrawn_snapshots()[0].transaction, writer.id());
    assert_eq!(value_of(&young, &table, b"k").unwrap().len(), 1);
    drop(writer);
    settle(&database);
    assert_eq!(total(&database), 0);
    assert_eq!(database.statistics().snapshots_withdrawn, 1);
}

#[test]
fn writers_are_refused_while_a_dropped_table_fills_the_budget_and_tables_are_dropped_all_the_same()
{
    let (_, database, table) = with_table(&limited(VersionPolicy::RefuseWriter));
    filled(&database, "big", 20_000);
    filled(&database, "other", 100);
    let old = begin(&database, Class::Olap);
    assert!(old.table("big").is_ok());
    dropped(&database, "big");
    settle(&database);
    let refused = database.retry(|tx| tx.upsert(&table, b"k", b"v"));
    assert!(matches!(refused, Err(Error::VersionSpace { .. })));
    dropped(&database, "other");
    drop(old);
    // Its pages are being given back: nobody is to blame.
    database.step().unwrap();
    assert!(database.statistics().version_bytes > BUDGET);
    database.retry(|tx| tx.upsert(&table, b"k", b"v")).unwrap();
    settle(&database);
    database.retry(|tx| tx.upsert(&table, b"k", b"v")).unwrap();
}

/// What dropped trees take is summed up by maintenance: with a thousand of them each commit would go through a thousand accounts.
#[test]
fn commits_and_writers_read_one_word_for_all_dropped_tables() {
    let (_, database, table) = with_table(&limited(VersionPolicy::RefuseWriter));
    filled(&database, "big", 20_000);
    let old = begin(&database, Class::Olap);
    assert!(old.table("big").is_ok());
    dropped(&database, "big");
    settle(&database);
    let (points, looks) = (TestPoints::new(), Arc::new(AtomicUsize::new(0)));
    let seen = looks.clone();
    points.on("dropped pages: all accounts are gone through", move || {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    let _entered = points.enter();
    let write = || database.retry(|tx| tx.upsert(&table, b"k", b"v"));
    // Enough commits in one slot for some to collect.
    for number in 0..40 {
        assert!(matches!(write(), Err(Error::VersionSpace { .. })));
        let name = format!("t{number}");
        let made = database.retry(|tx| tx.create_table(&name).map(drop));
        assert!(made.is_ok());
        dropped(&database, &name);
    }
    // It is told with the next step that nobody keeps them any more.
    drop(old);
    assert!(matches!(write(), Err(Error::VersionSpace { .. })));
    assert_eq!(looks.load(Ordering::Relaxed), 0);
    database.step().unwrap();
    assert!(looks.load(Ordering::Relaxed) > 0, "the point is passed");
    write().unwrap();
}

#[test]
fn snapshot_from_before_a_table_was_made_is_not_withdrawn_for_it_and_the_one_that_sees_it_is() {
    let (_, database, table) = with_table(&limited(VersionPolicy::SnapshotTooOld));
    let old = begin(&database, Class::Olap);
    filled(&database, "big", 20_000);
    let young = begin(&database, Class::Olap);
    assert!(young.table("big").is_ok());
    dropped(&database, "big");
    age(&database, &table);
    settle(&database);
    steps(&database, 200);
    let now = database.statistics();
    assert!(now.snapshots_withdrawn == 1 && now.version_bytes < BUDGET);
    assert!(young.table("big").is_err());
    assert!(old.table("t").is_ok(), "it had nothing of it");
}

#[test]
fn snapshot_from_before_a_table_was_made_is_not_charged_with_it() {
    let (_, database, _) = with_table(&small());
    let old = begin(&database, Class::Olap);
    filled(&database, "big", 4_000);
    let young = begin(&database, Class::Olap);
    dropped(&database, "big");
    settle(&database);
    let kept = of(&database, "big").bytes;
    assert!(kept > 1 << 20);
    let holders = database.holders().unwrap();
    let held = [0, 1].map(|at: usize| (holders[at].transaction, holders[at].version_bytes));
    assert!(held[0].0 == old.id() && held[0].1 < kept / 4, "{held:?}");
    assert!(held[1].0 == young.id() && held[1].1 >= kept, "{held:?}");
}

/// One that never counts as analytical keeps what it does not see (V68), and is charged with it.
#[test]
fn transaction_that_keeps_a_dropped_table_that_it_never_saw_is_charged_with_it() {
    let (_, database, _) = with_table(&small());
    let oltp = begin(&database, Class::Oltp);
    filled(&database, "big", 4_000);
    dropped(&database, "big");
    settle(&database);
    let kept = of(&database, "big").bytes;
    assert!(kept > 1 << 20);
    let holders = database.holders().unwrap();
    assert!(holders[0].transaction == oltp.id() && holders[0].version_bytes >= kept);
    drop(oltp);
    settle(&database);
    assert_eq!(database.statistics().dropped_pages, 0);
}

/// What a dropped table counts while it is counted, under a writer and with pages read from disk, is never more than it has.
#[test]
fn table_that_is_counted_while_others_work_is_told_right_in_the_end() {
    let (_, database, table) = with_table(&small());
    filled(&database, "big", 4_000);
    let pages = database.verify().unwrap();
    let pages = pages.tables.iter().find(|it| it.tree.name == "big");
    let pages = pages.unwrap().tree.pages;
    let old = begin(&database, Class::Olap);
    assert!(old.table("big").is_ok());
    dropped(&database, "big");
    for number in 0..2_000 {
        database
            .retry(|tx| tx.upsert(&table, &key(number), &[1; 300]))
            .unwrap();
        if number % 10 == 0 {
            database.step().unwrap();
            assert!(total(&database) <= pages);
        }
    }
    settle(&database);
    assert_eq!(of(&database, "big").count, pages);
}
