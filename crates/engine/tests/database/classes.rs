//! Classes through the embedded API (R10): who is promoted, when, and what that leaves alone.
#![cfg(not(any(loom, shuttle)))]

use crate::support::{key, rows, small, value_of, with_table};
use std::sync::Arc;
use std::thread;
use vellum::{Class, Config, Database, Durability, Table, Transaction, TransactionOptions};
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::test_point::TestPoints;

const TICKS: u64 = 200;

fn promoting_after(ticks: u64) -> Config {
    let mut config = small();
    config.promote_after_ticks = ticks;
    config
}

fn config() -> Config {
    promoting_after(TICKS)
}

fn options() -> TransactionOptions {
    TransactionOptions::default().durability(Durability::Async)
}

/// Commits until whoever is open has fallen behind, and a pass has seen it: by commits alone, no background work.
fn outrun(database: &Database, table: &Table) {
    let end = database.statistics().clock + 2 * TICKS;
    while database.statistics().clock < end {
        let tx = database.begin_with(options()).unwrap();
        tx.upsert(table, b"busy", &end.to_be_bytes()).unwrap();
        tx.commit().unwrap();
    }
}

/// True if no OLTP transaction is behind: what there is in the way of the others is theirs alone.
fn nobody_is_in_the_way(database: &Database) -> bool {
    let now = database.statistics();
    now.clock - now.oldest_oltp_snapshot < TICKS
}

#[test]
fn r10_session_idle_in_a_transaction_is_promoted_by_the_commits_of_one_other() {
    let (_, database, table) = with_table(&config());
    let idle = database.begin_with(options()).unwrap();
    outrun(&database, &table);
    assert!(nobody_is_in_the_way(&database));
    let now = database.statistics();
    assert!(
        now.clock - now.oldest_snapshot >= TICKS,
        "its snapshot is open all the same"
    );
    assert_eq!(now.newest_olap_snapshot, now.oldest_snapshot);
    assert_eq!(value_of(&idle, &table, b"busy"), None);
}

/// Symptom: an idle session kept millions of tombstones where everybody looks. Cause: a pass that was asked to promote early waited for 6,250 ticks,
/// and a transaction that deletes a thousand rows takes two. Guard: the request says how much is held up.
#[test]
fn r10_idle_session_is_promoted_by_what_it_holds_up_not_by_ticks_alone() {
    let (_, database, table) = with_table(&small());
    let idle = database.begin_with(options()).unwrap();
    assert_eq!(value_of(&idle, &table, b"any"), None);
    for batch in 0..200u32 {
        let tx = database.begin_with(options()).unwrap();
        for number in batch * 200..(batch + 1) * 200 {
            tx.insert(&table, &key(number), &[7; 20]).unwrap();
            if let Some(first) = number.checked_sub(200) {
                tx.delete(&table, &key(first)).unwrap();
            }
        }
        tx.commit().unwrap();
        database.step().unwrap();
    }
    while database.step().unwrap() {}
    let now = database.statistics();
    assert_eq!(now.promotions, 1);
    assert!(now.tombstones < 10 * 200, "{}", now.tombstones);
    assert!(rows(&idle, &table).is_empty());
}

/// The same of before-images: without anybody analytical, nothing is a shortcut past those that the idle session keeps.
#[test]
fn r10_idle_session_is_promoted_by_the_before_images_that_it_keeps() {
    let (_, database, table) = with_table(&small());
    let idle = database.begin_with(options()).unwrap();
    assert_eq!(value_of(&idle, &table, &key(7)), None);
    for batch in 0..200u32 {
        // Rows that it does not see, each with a version that nobody sees.
        for byte in [1, 2] {
            let tx = database.begin_with(options()).unwrap();
            for number in batch * 500..(batch + 1) * 500 {
                tx.upsert(&table, &key(number), &[byte; 40]).unwrap();
            }
            tx.commit().unwrap();
        }
        database.step().unwrap();
    }
    assert_eq!(database.statistics().promotions, 1);
    assert_eq!(value_of(&idle, &table, &key(7)), None);
}

#[test]
fn r10_idle_writer_is_promoted_and_commits_what_it_wrote() {
    let (_, database, table) = with_table(&config());
    let writer = database.begin_with(options()).unwrap();
    writer.insert(&table, b"mine", b"1").unwrap();
    outrun(&database, &table);
    assert!(nobody_is_in_the_way(&database));
    assert_eq!(value_of(&writer, &table, b"mine"), Some(b"1".to_vec()));
    writer.insert(&table, b"more", b"2").unwrap();
    writer.commit().unwrap();
    let tx = database.begin().unwrap();
    assert_eq!(value_of(&tx, &table, b"more"), Some(b"2".to_vec()));
}

#[test]
fn r10_scan_is_promoted_between_two_rows_and_goes_on() {
    let (_, database, table) = with_table(&config());
    let load = database.begin_with(options()).unwrap();
    for number in 0..500 {
        load.insert(&table, &key(number), &[7; 100]).unwrap();
    }
    load.commit().unwrap();
    let scanner = database.begin_with(options()).unwrap();
    let mut cursor = scanner.cursor(&table, ..).unwrap();
    for number in 0..250 {
        assert_eq!(cursor.next().unwrap().unwrap().0, key(number));
    }
    let delete = database.begin_with(options()).unwrap();
    for number in 200..500 {
        delete.delete(&table, &key(number)).unwrap();
    }
    delete.commit().unwrap();
    outrun(&database, &table);
    assert!(nobody_is_in_the_way(&database), "with the cursor open");
    for number in 250..500 {
        let (found, value) = cursor.next().unwrap().unwrap();
        assert_eq!((found, value), (&key(number)[..], &[7; 100][..]));
    }
    assert!(cursor.next().unwrap().is_none());
    assert_eq!(rows(&scanner, &table).len(), 500);
}

/// A table of some hundred leaves.
fn load(database: &Database, table: &Table) {
    let load = database.begin_with(options()).unwrap();
    for number in 0..3_000 {
        load.insert(table, &key(number), &[7; 100]).unwrap();
    }
    load.commit().unwrap();
}

/// What `counts` says, and how often it lowered its operation at `point` in between. It is promoted where it does so first.
fn promoted_at(
    (database, table): (&Database, &Table),
    point: &'static str,
    counter: Transaction,
    counts: impl Fn(&Transaction) -> u64 + Send,
) -> (u64, u64) {
    let points = TestPoints::new();
    let pause = points.pause(point);
    let lowered = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        let theirs = points.clone();
        let looker = scope.spawn(move || {
            let _entered = theirs.enter();
            counts(&counter)
        });
        pause.wait_reached();
        outrun(database, table);
        assert!(nobody_is_in_the_way(database), "it is promoted in between");
        let seen = lowered.clone();
        points.on(point, move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        pause.release();
        let counted = looker.join().unwrap();
        (counted, 1 + lowered.load(Ordering::Relaxed))
    })
}

/// Leaves that are gone through before an operation is lowered.
const LEAVES_AT_ONCE: u64 = if cfg!(debug_assertions) { 1 } else { 16 };

#[test]
fn r10_count_of_leaves_is_promoted_in_between_and_lowered_every_few_of_them() {
    let (_, database, table) = with_table(&config());
    load(&database, &table);
    let leaves = |tx: &Transaction| tx.leaf_pages(&table).unwrap();
    let all = || leaves(&database.begin_with(options()).unwrap());
    let before = all();
    assert!(before > 64, "{before} leaves");
    let point = "leaf pages: between two steps";
    let counter = database.begin_with(options()).unwrap();
    let (counted, lowered) = promoted_at((&database, &table), point, counter, leaves);
    // Who outruns it writes to the table, too.
    assert!((before..=all()).contains(&counted), "{before}, {counted}");
    assert_eq!(lowered, (counted - 1) / LEAVES_AT_ONCE);
}

/// Rows that came behind the snapshot: it finds none of them, and does not go through all of them in one operation.
#[test]
fn r10_count_of_rows_that_are_not_seen_is_promoted_in_between_and_lowered_every_few_leaves() {
    let (_, database, table) = with_table(&config());
    let counter = database.begin_with(options()).unwrap();
    load(&database, &table);
    let now = database.begin_with(options()).unwrap();
    let leaves = now.leaf_pages(&table).unwrap();
    drop(now);
    let rows = |tx: &Transaction| tx.count(&table, ..).unwrap();
    let point = "cursor: between two operations of a step";
    let (counted, lowered) = promoted_at((&database, &table), point, counter, rows);
    assert_eq!(counted, 0);
    // One leaf more than are gone through before a step pauses.
    let least = leaves / (LEAVES_AT_ONCE + 1);
    assert!(lowered + 2 >= least, "{lowered} times for {leaves} leaves");
}

#[test]
fn r10_user_code_runs_outside_the_count_whatever_calls_it() {
    let (_, database, table) = with_table(&config());
    let setup = database.begin_with(options()).unwrap();
    setup.insert(&table, b"k", b"v").unwrap();
    setup.insert(&table, b"large", &vec![3; 30_000]).unwrap();
    setup.commit().unwrap();
    let check = || {
        outrun(&database, &table);
        assert!(nobody_is_in_the_way(&database));
    };
    let fresh = || database.begin_with(options()).unwrap();
    fresh().get(&table, b"k", |_| check()).unwrap().unwrap();
    fresh().get(&table, b"large", |_| check()).unwrap().unwrap();
    let keys: [&[u8]; 2] = [b"k", b"none"];
    fresh().multi_get(&table, &keys, |_, _| check()).unwrap();
    fresh().update(&table, b"k", &[0..1], |_| check()).unwrap();
    fresh()
        .update(&table, b"large", &[0..1], |_| check())
        .unwrap();
    let scanner = fresh();
    let mut cursor = scanner.cursor(&table, ..).unwrap();
    cursor.batch(|_, _| check()).unwrap();
    let mut left = 3;
    fresh()
        .bulk_load(&table, |key, value| {
            check();
            key.extend_from_slice(&[b'z', 3 - left]);
            value.push(1);
            left -= 1;
            left > 0
        })
        .unwrap();
}

#[test]
fn r10_declared_classes_stay_what_they_are() {
    let (_, database, table) = with_table(&config());
    let clerk = database.begin_with(options().class(Class::Oltp)).unwrap();
    outrun(&database, &table);
    let now = database.statistics();
    assert_eq!(now.oldest_oltp_snapshot, now.oldest_snapshot);
    assert!(!nobody_is_in_the_way(&database));
    assert_eq!(value_of(&clerk, &table, b"busy"), None);
    drop(clerk);
    let analyst = database.begin_with(options().class(Class::Olap)).unwrap();
    let seen = value_of(&analyst, &table, b"busy");
    assert!(seen.is_some());
    let begun = database.statistics().clock;
    database.step().unwrap();
    assert_eq!(database.statistics().newest_olap_snapshot, begun, "at once");
    outrun(&database, &table);
    assert_eq!(value_of(&analyst, &table, b"busy"), seen);
}

#[test]
fn r10_promotion_can_be_switched_off() {
    let config = promoting_after(u64::MAX);
    let (_, database, table) = with_table(&config);
    let idle = database.begin_with(options()).unwrap();
    outrun(&database, &table);
    database.step().unwrap();
    let now = database.statistics();
    assert_eq!(now.oldest_oltp_snapshot, now.oldest_snapshot);
    drop(idle);
}
