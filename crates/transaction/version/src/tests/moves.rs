//! Threads that delete, bury, drop, insert and split, beside old snapshots that scan: random schedules under shuttle, and
//! whatever the machine does otherwise.

use super::world::{SLOTS, World};
use crate::VersionError;
use std::sync::Arc;
// The standard ones: they outlive a schedule.
use std::sync::atomic::{AtomicU64, Ordering};
use vellum_base::SlotId;
use vellum_btree::Tree;
use vellum_gc::Budget;
use vellum_metrics::Counter;
use vellum_sync::thread;
use vellum_txn::Transaction;

pub(super) fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Collects all slots, a little each, as commits do: mostly by watermarks that are not new (V58).
pub(super) fn collect_some(world: &World) {
    for slot in (0..SLOTS).map(SlotId) {
        let mut budget = Budget::new(5, u64::MAX);
        let collected = if slot.get() % 3 == 0 {
            world.collect_slot(slot, &mut budget)
        } else {
            world.collect_slot_by_last_pass(slot, &mut budget)
        };
        collected.unwrap();
    }
}

/// The rows as old snapshots see them. Where a schedule has few of them, they fill their leaf all the same.
fn first() -> Vec<u8> {
    vec![7; if cfg!(shuttle) { 700 } else { 100 }]
}

/// What replaces them: longer, so that leaves are split.
fn second() -> Vec<u8> {
    vec![9; if cfg!(shuttle) { 950 } else { 300 }]
}

/// What happened in all schedules together.
#[derive(Default)]
struct Events([AtomicU64; EVENTS.len()]);

const EVENTS: [&str; 5] = [
    "splits",
    "merges",
    "moves",
    "promotions",
    "promotions in the middle of a scan",
];

impl Events {
    fn add(&self, world: &World) {
        let metrics = world.store.context().metrics();
        let seen = [
            metrics.get(Counter::LeafSplits),
            metrics.get(Counter::LeafMerges),
            metrics.get(Counter::TombstonesMoved),
            world.manager.domain().promotions(),
            0,
        ];
        for (sum, count) in self.0.iter().zip(seen) {
            sum.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn add_promoted_midway(&self) {
        self.0[EVENTS.len() - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// A test in which what it is about never happens shows nothing.
    fn all_happened(&self) {
        for (name, sum) in EVENTS.iter().zip(&self.0) {
            let count = sum.load(Ordering::Relaxed);
            println!("{name}: {count}");
            assert!(count > 0, "no {name} in any schedule");
        }
    }
}

/// Whatever the others do: these rows, on every path: in one operation, whose class stays, and by steps, between which it may change.
fn check(world: &World, tree: &Tree, tx: &Transaction, rows: u32, events: &Events) {
    let in_steps = |forward| {
        // A scan is shorter than what the others do: it rests where it has some rows, until it is promoted or has waited for long enough.
        let rest = |rows: usize| {
            let mut turns = if cfg!(shuttle) { 30 } else { 1_000_000 };
            while rows == 3 && turns > 0 && !tx.is_olap() {
                turns -= 1;
                thread::yield_now();
            }
        };
        let (rows, promoted) = world.rows_in_steps(tx, tree, forward, rest).unwrap();
        if promoted {
            events.add_promoted_midway();
        }
        rows
    };
    for found in [in_steps(true), world.rows(tx, tree), in_steps(false)] {
        assert!(
            found.iter().all(|(_, value)| *value == first()),
            "versions of its time"
        );
        let numbers = found.iter().map(|(key, _)| key.clone());
        assert!(numbers.eq((0..rows).map(|number| key(number).to_vec())));
    }
    for number in [0, rows / 2, rows - 1] {
        assert_eq!(world.get(tx, tree, &key(number)), Some(first()));
    }
}

/// Runs a transaction again until nobody is in its way: two want the same rows, and a writer that was promoted
/// meanwhile may not insert where rows were dropped.
pub(super) fn retry<R>(world: &World, mut work: impl FnMut(&Transaction) -> crate::Result<R>) -> R {
    loop {
        let tx = world.begin();
        match work(&tx) {
            Ok(done) => {
                world.commit(tx);
                return done;
            }
            Err(VersionError::Conflict) => {
                world.rollback(tx);
                thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn run(rows: u32, rounds: u32, events: &Events) {
    let world = Arc::new(World::new(4096, 48));
    let tree = world.table();
    let tx = world.begin();
    for number in 0..rows {
        world.put(&tx, &tree, &key(number), &first()).unwrap();
    }
    world.commit(tx);
    let (declared, idle) = (world.begin_olap(), world.begin());
    // Far enough behind that who asks for it has the idle one promoted, in the middle of its scans.
    for _ in 0..if cfg!(shuttle) { 0 } else { 6_500 } {
        world.manager.clock().draw();
    }
    let mover = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            for round in 0..rounds {
                retry(&world, |tx| {
                    for number in (0..rows).filter(|number| number % rounds == round) {
                        assert!(world.delete(tx, &tree, &key(number))?.existed);
                    }
                    Ok(())
                });
                world.manager.request_promotion(1);
                collect_some(&world);
            }
            // Whole leaves run empty, and are merged under the scans.
            retry(&world, |tx| {
                (0..rows).try_for_each(|number| world.delete(tx, &tree, &key(number)).map(drop))
            });
            for _ in 0..rows / 2 {
                world.manager.request_promotion(1);
                collect_some(&world);
            }
        })
    };
    let inserter = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            for round in 0..rounds {
                // A row that nobody else sees comes and goes; rows that were deleted come back, larger; leaves split.
                retry(&world, |tx| world.put(tx, &tree, &key(rows + 9), &[1; 50]));
                let tx = world.begin();
                let reborn = (0..rows).filter(|number| number % rounds == round);
                let puts = reborn.map(|number| world.put(&tx, &tree, &key(number), &second()));
                let wrote = puts.collect::<crate::Result<Vec<_>>>();
                if wrote.is_ok() && round % 2 == 0 {
                    world.commit(tx);
                } else {
                    world.rollback(tx);
                }
                retry(&world, |tx| world.delete(tx, &tree, &key(rows + 9)));
                collect_some(&world);
            }
        })
    };
    let comer = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            // What is kept for these goes when they end, whoever looked at it meanwhile (V30, V50).
            for round in 0..rounds {
                let own = key(rows + 20 + round);
                retry(&world, |tx| world.put(tx, &tree, &own, &[1; 50]));
                let snapshots = [world.begin_olap(), world.begin()];
                retry(&world, |tx| world.delete(tx, &tree, &own));
                collect_some(&world);
                for tx in &snapshots {
                    let rows = world.rows(tx, &tree);
                    thread::yield_now();
                    assert_eq!(world.rows(tx, &tree), rows);
                }
            }
        })
    };
    for _ in 0..rounds {
        check(&world, &tree, &idle, rows, events);
        check(&world, &tree, &declared, rows, events);
    }
    mover.join().unwrap();
    inserter.join().unwrap();
    comer.join().unwrap();
    world.collect();
    check(&world, &tree, &declared, rows, events);
    check(&world, &tree, &idle, rows, events);
    // With the idle one promoted and everything deleted, the rows of the two old snapshots are kept, once each, and no others.
    retry(&world, |tx| {
        (0..rows).try_for_each(|number| world.delete(tx, &tree, &key(number)).map(drop))
    });
    for _ in 0..if cfg!(shuttle) { 16 } else { 6_500 } {
        world.manager.clock().draw();
    }
    world.manager.request_promotion(1);
    world.collect();
    world.collect();
    assert_eq!(
        (world.heads(&tree), world.store.buried()),
        (0, u64::from(rows))
    );
    check(&world, &tree, &declared, rows, events);
    drop((declared, idle));
    world.collect();
    assert_eq!((world.store.buried(), world.deltas()), (0, 0));
    events.add(&world);
}

#[cfg(shuttle)]
#[test]
fn shuttle_moves_meet_scans_inserts_splits_and_promotion() {
    let events = Arc::new(Events::default());
    let counted = events.clone();
    vellum_sync::model(400, move || run(5, 2, &counted));
    events.all_happened();
}

#[cfg(not(shuttle))]
#[test]
fn moves_meet_scans_inserts_splits_and_promotion() {
    let events = Events::default();
    for _ in 0..10 {
        run(200, 5, &events);
    }
    events.all_happened();
}
