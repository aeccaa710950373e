//! Horizons against brute force: histories of versions with known commit timestamps, and every snapshot that is
//! open.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;
use vellum_base::random::Random;
use vellum_base::{Gsn, Result, Timestamp};
use vellum_gc::{Horizon, OpenSnapshots, is_dead_between};
use vellum_io::MemoryDirectory;
use vellum_txn::{
    ActiveSnapshots, Class, Clock, Config, Durability, Manager, Options, Transaction, Undo,
    VersionStamp,
};
use vellum_wal::{Log, LogConfig, LogStart, Record};

const OPTIONS: Options = Options {
    isolation: vellum_txn::Isolation::Snapshot,
    durability: Durability::Async,
    read_only: false,
    class: Class::Oltp,
};
const OLAP: Options = Options {
    class: Class::Olap,
    ..OPTIONS
};

fn manager(slots_max: u16) -> Arc<Manager> {
    let clock = Arc::new(Clock::above(Timestamp::ZERO));
    let ticks = clock.clone();
    let config = LogConfig {
        slots_max,
        slot_buffer_bytes: 4096,
        ..LogConfig::default()
    };
    let directory = Arc::new(MemoryDirectory::new());
    let log = Log::create(
        directory,
        config,
        Arc::new(move || ticks.now()),
        LogStart::first(),
    );
    let config = Config {
        slots_max,
        ..Config::default()
    };
    Arc::new(Manager::new(
        Arc::new(log.expect("a new log")),
        clock,
        config,
    ))
}

fn begin(manager: &Manager, options: Options) -> Transaction {
    manager
        .begin(options, Duration::MAX)
        .expect("waits as long as it takes")
}

/// A version that stays uncommitted as long as the transaction is open.
fn write(transaction: &Transaction) -> VersionStamp {
    let command = transaction.next_command().unwrap();
    transaction.version(command).unwrap()
}

fn committed(manager: &Manager) -> (VersionStamp, Timestamp) {
    let transaction = begin(manager, OPTIONS);
    let version = write(&transaction);
    (version, transaction.commit().unwrap().commit_ts)
}

/// Nothing was logged, so nothing is reverted.
struct Nothing;

impl Undo for Nothing {
    fn undo(&mut self, _: &Record<'_>) -> Result<()> {
        unreachable!("no undoable record was logged")
    }

    fn carried(&mut self, _: Timestamp, _: Gsn, _: &mut Vec<u8>) -> Result<bool> {
        Ok(false)
    }
}

#[test]
fn deltas_die_when_every_snapshot_sees_a_later_commit_of_their_slot() {
    let manager = manager(8);
    let (first, _) = committed(&manager);
    let holder = begin(&manager, OPTIONS);
    let reader = begin(&manager, OPTIONS);
    drop(holder);
    let (second, commit_ts) = committed(&manager);
    assert_eq!(first.slot, second.slot);
    let dead_below = Horizon::refreshed(&manager).deltas_dead_below(first.slot);
    assert!(
        first.stamp < dead_below && dead_below <= second.stamp,
        "the reader needs the second's"
    );
    drop(reader);
    assert_eq!(
        Horizon::published(&manager).deltas_dead_below(first.slot),
        dead_below
    );
    assert_eq!(
        Horizon::refreshed(&manager).deltas_dead_below(first.slot),
        commit_ts
    );
}

#[test]
fn version_of_an_open_transaction_is_not_frozen_however_old_its_stamp() {
    let manager = manager(8);
    let rc = Options {
        isolation: vellum_txn::Isolation::ReadCommitted,
        ..OPTIONS
    };
    let writer = begin(&manager, rc);
    let version = write(&writer);
    for _ in 0..20 {
        committed(&manager);
    }
    writer.statement();
    let horizon = Horizon::refreshed(&manager);
    // A writer keeps the snapshot of its first write open, also under read committed.
    assert!(horizon.watermarks().oldest_tx <= version.stamp);
    assert!(!horizon.is_frozen(&version));
    assert!(horizon.deltas_dead_below(version.slot) <= version.stamp);
    writer.commit().unwrap();
    assert!(
        !horizon.is_frozen(&version),
        "the commit is above the watermark of that pass"
    );
    assert!(Horizon::refreshed(&manager).is_frozen(&version));
}

#[test]
fn chains_wait_until_the_delete_is_hardened_and_tombstones_do_not() {
    let manager = manager(8);
    let (delete, commit_ts) = committed(&manager);
    let horizon = Horizon::refreshed(&manager);
    assert!(horizon.is_frozen(&delete) && horizon.deltas_dead_below(delete.slot) == commit_ts);
    assert_eq!(horizon.tombstones_settled_below(delete.slot), commit_ts);
    assert!(horizon.chains_dead_below(delete.slot) <= delete.stamp);
    assert!(!horizon.is_hardened(&delete));
    manager.log().flush_round().unwrap();
    let horizon = Horizon::refreshed(&manager);
    assert_eq!(horizon.chains_dead_below(delete.slot), commit_ts);
    assert!(horizon.is_hardened(&delete));
}

#[test]
fn tombstones_leave_the_main_index_when_only_olap_needs_the_row() {
    let manager = manager(8);
    let analyst = begin(&manager, OLAP);
    let clerk = begin(&manager, OPTIONS);
    let (delete, commit_ts) = committed(&manager);
    manager.log().flush_round().unwrap();
    let horizon = Horizon::refreshed(&manager);
    assert!(horizon.tombstones_settled_below(delete.slot) <= delete.stamp);
    drop(clerk);
    let horizon = Horizon::refreshed(&manager);
    assert_eq!(horizon.tombstones_settled_below(delete.slot), commit_ts);
    assert!(horizon.deltas_dead_below(delete.slot) <= delete.stamp);
    assert!(horizon.chains_dead_below(delete.slot) <= delete.stamp);
    drop(analyst);
    let horizon = Horizon::refreshed(&manager);
    assert_eq!(horizon.deltas_dead_below(delete.slot), commit_ts);
    assert_eq!(horizon.chains_dead_below(delete.slot), commit_ts);
}

#[test]
fn r2_list_of_snapshots_prunes_nothing_whose_life_reaches_its_clock() {
    let manager = manager(8);
    let (old, _) = committed(&manager);
    let mut active = ActiveSnapshots::new();
    let (first, _) = committed(&manager);
    manager.active_snapshots(&mut active);
    let reader = begin(&manager, OPTIONS);
    let (second, _) = committed(&manager);
    assert!(is_dead_between(&manager, &active, &old, &first));
    assert!(
        !is_dead_between(&manager, &active, &first, &second),
        "{reader:?} came after the list"
    );
    let unfinished = begin(&manager, OPTIONS);
    let third = write(&unfinished);
    assert!(!is_dead_between(&manager, &active, &second, &third));
}

#[test]
fn row_that_only_a_middle_snapshot_needed_is_dead_once_that_has_ended() {
    let manager = manager(8);
    let oldest = begin(&manager, OLAP);
    let (insert, _) = committed(&manager);
    let middle = begin(&manager, OLAP);
    let (delete, _) = committed(&manager);
    let newest = begin(&manager, OLAP);
    let mut snapshots = OpenSnapshots::new();
    let horizon = Horizon::refreshed(&manager);
    assert!(!snapshots.is_row_dead(&horizon, Some(&insert), &delete));
    assert_eq!(snapshots.take_lost(&manager), None);
    drop(middle);
    assert!(
        !snapshots.is_row_dead(&horizon, Some(&insert), &delete),
        "a list may be old"
    );
    assert_eq!(snapshots.take_lost(&manager), Some(Timestamp::ZERO));
    assert_eq!(snapshots.take_lost(&manager), None);
    let horizon = Horizon::refreshed(&manager);
    assert!(snapshots.is_row_dead(&horizon, Some(&insert), &delete));
    assert!(
        !snapshots.is_row_dead(&horizon, None, &delete),
        "{oldest:?} sees what was there before"
    );
    drop((oldest, newest));
}

#[test]
fn every_way_in_which_an_analytical_snapshot_ends_is_told_and_no_other_end_is() {
    let manager = manager(8);
    let told = |end: &dyn Fn()| {
        let before = manager.olap_ended();
        end();
        manager.olap_ended() - before
    };
    assert_eq!(told(&|| drop(begin(&manager, OLAP))), 1);
    assert_eq!(told(&|| drop(begin(&manager, OPTIONS))), 0);
    assert_eq!(
        told(&|| assert!(committed(&manager).0.stamp < manager.clock().now())),
        0
    );
    let commit = |keep: bool| {
        let writer = begin(&manager, OLAP);
        write(&writer);
        if keep {
            drop(writer.commit_leased().unwrap());
        } else {
            writer.commit().unwrap();
        }
    };
    assert_eq!(told(&|| commit(false)), 1);
    assert_eq!(told(&|| commit(true)), 1, "once, not again with the lease");
    let parked = || {
        let writer = begin(&manager, OLAP);
        write(&writer);
        let slot = writer.slot();
        drop(writer);
        slot
    };
    let slot = std::cell::Cell::new(None);
    assert_eq!(told(&|| slot.set(Some(parked()))), 1);
    let slot = slot.get().unwrap();
    let rollback = || {
        let writer = manager.take_parked(slot).unwrap();
        writer.rollback(&mut Nothing).unwrap();
    };
    assert_eq!(told(&rollback), 0);
    let reader = begin(
        &manager,
        Options {
            isolation: vellum_txn::Isolation::ReadCommitted,
            ..OLAP
        },
    );
    let next = || assert!(reader.statement() > Timestamp::ZERO);
    let cursor = reader.open_snapshot();
    committed(&manager);
    assert_eq!(told(&next), 0, "the cursor holds the first");
    let cursor = std::cell::Cell::new(Some(cursor));
    assert_eq!(told(&|| drop(cursor.take())), 1);
    committed(&manager);
    assert_eq!(told(&next), 1, "nobody holds the second");
}

#[test]
fn prop_pruning_between_snapshots_equals_brute_force() {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-gc prop_pruning");
    let mut random = Random::new(seed);
    let (mut pruned, mut dropped) = (0, 0);
    for _ in 0..20 {
        let manager = manager(16);
        let mut chain: Vec<(VersionStamp, Timestamp)> = Vec::new();
        let mut readers: Vec<Transaction> = Vec::new();
        let mut writers: Vec<Transaction> = Vec::new();
        for _ in 0..300 {
            match random.below(10) {
                0 if readers.len() < 6 => {
                    let options = if random.chance(1, 3) { OLAP } else { OPTIONS };
                    readers.push(begin(&manager, options));
                }
                1 if !readers.is_empty() => {
                    drop(readers.swap_remove(random.below(readers.len() as u64) as usize));
                }
                2 if writers.len() < 4 => {
                    let writer = begin(&manager, OPTIONS);
                    writer.stamp().unwrap();
                    writers.push(writer);
                }
                3 if !writers.is_empty() => {
                    let writer = writers.swap_remove(random.below(writers.len() as u64) as usize);
                    writer.rollback(&mut Nothing).unwrap();
                }
                4..=6 if !writers.is_empty() => {
                    // Stamps of a chain are not ordered: who began early commits late.
                    let writer = writers.swap_remove(random.below(writers.len() as u64) as usize);
                    let version = write(&writer);
                    chain.push((version, writer.commit().unwrap().commit_ts));
                }
                _ => chain.push(committed(&manager)),
            }
        }
        let mut active = ActiveSnapshots::new();
        manager.active_snapshots(&mut active);
        let open = readers.iter().chain(&writers).map(Transaction::snapshot);
        let open: Vec<Timestamp> = open.chain([manager.clock().now()]).collect();
        let horizon = Horizon::refreshed(&manager);
        for pair in chain.windows(2) {
            let [(version, from), (successor, to)] = pair else {
                unreachable!()
            };
            let needed = open
                .iter()
                .any(|snapshot| from < snapshot && snapshot <= to);
            assert_eq!(
                is_dead_between(&manager, &active, version, successor),
                !needed
            );
            assert!(!(needed && horizon.is_in_dead_zone(version, successor)));
            let frozen = open.iter().all(|snapshot| from < snapshot);
            assert_eq!(horizon.is_frozen(version), frozen);
            pruned += usize::from(!needed);
        }
        // Rows from any version to any later delete that every OLTP transaction sees.
        let mut snapshots = OpenSnapshots::new();
        for (first, (oldest, from)) in chain.iter().enumerate() {
            for (delete, to) in &chain[first + 1..] {
                if *to >= horizon.watermarks().oldest_oltp {
                    continue;
                }
                let needed = |from: Timestamp| open.iter().any(|s| from < *s && s <= to);
                let dead = snapshots.is_row_dead(&horizon, Some(oldest), delete);
                assert_eq!(dead, !needed(*from));
                let frozen = snapshots.is_row_dead(&horizon, None, delete);
                assert_eq!(frozen, !needed(Timestamp::ZERO));
                dropped += usize::from(dead);
            }
        }
        readers.drain(..).for_each(drop);
        writers
            .drain(..)
            .for_each(|writer| writer.rollback(&mut Nothing).unwrap());
    }
    assert!(pruned > 100, "the histories leave nothing to prune");
    assert!(dropped > 100, "the histories leave no row to drop");
}

#[test]
fn prop_garbage_of_racing_slots_is_never_what_an_open_snapshot_needs() {
    let manager = manager(8);
    let threads: Vec<_> = (0..4_u64)
        .map(|seed| {
            let manager = manager.clone();
            std::thread::spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..400 {
                    let held = random.chance(1, 4).then(|| begin(&manager, OLAP));
                    let (version, _) = committed(&manager);
                    let horizon = Horizon::refreshed(&manager);
                    // In builds with debug assertions these compare with every commit and every
                    // open snapshot.
                    horizon.deltas_dead_below(version.slot);
                    horizon.chains_dead_below(version.slot);
                    if let Some(held) = &held {
                        assert!(!horizon.is_frozen(&version), "{held:?} does not see it");
                        assert!(horizon.deltas_dead_below(version.slot) <= version.stamp);
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

/// Symptom: ten idle snapshots cost a queue a tenth. Cause: a pass was made once as many writers of a slot had ended as there were slots, idle ones too; so
/// collections went by old watermarks, and the head of the queue was tombstones. Guard: with the fourth writer, up to sixteen slots.
#[test]
fn sessions_that_idle_do_not_delay_passes() {
    let manager = manager(16);
    let idle: Vec<_> = (0..12).map(|_| begin(&manager, OLAP)).collect();
    let clock = || Horizon::published(&manager).watermarks().clock;
    for round in 0..10 {
        let before = clock();
        for _ in 0..4 {
            let tx = begin(&manager, OPTIONS);
            write(&tx);
            drop(tx.commit_leased().unwrap());
        }
        assert!(clock() > before, "{round}");
    }
    drop(idle);
}
