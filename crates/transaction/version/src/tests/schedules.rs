//! Random schedules of readers, writers that abort, and collectors, on one chain.

use super::world::World;
use std::sync::Arc;
use vellum_sync::thread;

/// Schedules that a run tries.
const SCHEDULES: usize = 1500;

#[test]
fn shuttle_readers_of_a_chain_meet_aborts_commits_and_collection() {
    vellum_sync::model(SCHEDULES, run);
}

fn run() {
    let world = Arc::new(World::new(4096, 32));
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", &[0; 30]).unwrap();
    world.commit(tx);
    let old = world.begin();
    let writers: Vec<_> = [1u8, 2]
        .into_iter()
        .map(|byte| {
            let (world, tree) = (world.clone(), tree.clone());
            thread::spawn(move || {
                let tx = world.begin();
                let wrote = world
                    .put(&tx, &tree, b"k", &[byte; 30])
                    .and_then(|_| world.put(&tx, &tree, b"k", &[byte; 20]));
                if byte == 1 && wrote.is_ok() {
                    world.commit(tx);
                    world.log.flush_round().unwrap();
                    let slots: Vec<_> = world.manager.idle_slots().collect();
                    for slot in slots {
                        if let Some(lease) = world.manager.lease_idle(slot) {
                            let domain = world.manager.domain();
                            domain.pass();
                            let mut budget = vellum_gc::Budget::UNBOUNDED;
                            let log = world.log.slot(lease.slot());
                            world.store.collect(domain, slot, log, &mut budget).unwrap();
                        }
                    }
                } else {
                    world.rollback(tx);
                }
            })
        })
        .collect();
    let reader = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            let tx = world.begin();
            let first = world.get(&tx, &tree, b"k").unwrap();
            assert!(
                first == [0; 30] || first == [1; 20],
                "a committed version, whole"
            );
            assert_eq!(world.get(&tx, &tree, b"k").unwrap(), first, "one snapshot");
            world.rollback(tx);
        })
    };
    assert_eq!(world.get(&old, &tree, b"k").unwrap(), [0; 30]);
    for writer in writers {
        writer.join().unwrap();
    }
    reader.join().unwrap();
    assert_eq!(world.get(&old, &tree, b"k").unwrap(), [0; 30]);
    world.rollback(old);
}

/// Readers of several ages, writers that commit and abort (each update of the row may prune it), and maintenance that
/// turns it back, in random schedules.
#[test]
fn shuttle_fat_row_reads_the_same_while_it_is_written_pruned_turned_back_and_reverted() {
    vellum_sync::model(SCHEDULES / 3, fat_row);
}

fn fat_row() {
    let options = crate::VersionOptions {
        fat_updates: Some(0),
        ..crate::VersionOptions::default()
    };
    let world = Arc::new(World::with_options(8192, 64, options));
    let tree = world.table();
    let put = |value: &[u8]| {
        let tx = world.begin();
        world.put(&tx, &tree, b"k", value).unwrap();
        world.commit(tx);
    };
    put(&[0; 30]);
    let old = world.begin();
    put(&[100; 30]);
    put(&[101; 12]);
    let middle = world.begin();
    // Too long to stand in the row as an old version.
    put(&[102; 530]);
    put(&[103; 30]);
    assert_eq!(world.fat_rows(&tree).len(), 1);
    let writers: Vec<_> = (1..3u8)
        .map(|byte| {
            let (world, tree) = (world.clone(), tree.clone());
            thread::spawn(move || {
                for round in 0..3u8 {
                    let tx = world.begin();
                    let length = [30, 12, 530][usize::from(round)];
                    let wrote = world
                        .put(&tx, &tree, b"k", &vec![byte; length])
                        .and_then(|_| world.put(&tx, &tree, b"k", &vec![10 + byte; length]));
                    if wrote.is_ok() && (byte + round) % 3 > 0 {
                        world.commit(tx);
                    } else {
                        world.rollback(tx);
                    }
                }
            })
        })
        .collect();
    let maintenance = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            world.decompose(&tree, b"k");
            world.decompose(&tree, b"k");
        })
    };
    let reader = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            let tx = world.begin();
            let first = world.get(&tx, &tree, b"k").unwrap();
            let whole = first.iter().all(|byte| *byte == first[0]);
            assert!(whole && first[0] > 10, "a committed version, whole");
            assert_eq!(world.get(&tx, &tree, b"k").unwrap(), first, "one snapshot");
            world.rollback(tx);
        })
    };
    assert_eq!(world.get(&old, &tree, b"k").unwrap(), [0; 30]);
    assert_eq!(world.get(&middle, &tree, b"k").unwrap(), [101; 12]);
    for writer in writers {
        writer.join().unwrap();
    }
    maintenance.join().unwrap();
    reader.join().unwrap();
    assert_eq!(world.get(&old, &tree, b"k").unwrap(), [0; 30]);
    assert_eq!(world.get(&middle, &tree, b"k").unwrap(), [101; 12]);
    world.rollback(middle);
    world.rollback(old);
}

/// A writer whose deltas are transient, snapshots that it does not know of yet, one that may be promoted, and collectors, in random schedules.
#[test]
fn shuttle_transient_deltas_go_beside_snapshots_that_are_drawn() {
    vellum_sync::model(SCHEDULES / 2, transient);
}

fn transient() {
    let options = crate::VersionOptions {
        fat_updates: Some(250),
        ..crate::VersionOptions::default()
    };
    let mut world = World::with_options(4096, 64, options);
    world.store.sweeps_parts = true;
    let world = Arc::new(world);
    let tree = world.table();
    let put = |key: &[u8]| {
        let tx = world.begin();
        world.put(&tx, &tree, key, &[0; 30]).unwrap();
        world.commit(tx);
    };
    put(b"a");
    let old = world.begin_olap();
    world.manager.pass();
    put(b"b");
    let writer = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            for byte in 1..6u8 {
                let tx = world.begin();
                for key in [&b"a"[..], b"b"] {
                    world.put(&tx, &tree, key, &[byte; 30]).unwrap();
                }
                match byte {
                    3 => world.rollback(tx),
                    _ => world.commit(tx),
                }
            }
        })
    };
    let collector = {
        let world = world.clone();
        thread::spawn(move || {
            for round in 0..4 * super::world::SLOTS {
                let slot = vellum_base::SlotId(round % super::world::SLOTS);
                let mut budget = vellum_gc::Budget::UNBOUNDED;
                world.collect_slot(slot, &mut budget).unwrap();
            }
        })
    };
    let readers = [true, true, false].map(|is_olap| {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            let tx = match is_olap {
                true => world.begin_olap(),
                false => world.begin(),
            };
            let read = |key: &[u8]| world.get(&tx, &tree, key).unwrap();
            let first = read(b"a");
            assert!(first.iter().all(|byte| *byte == first[0] && *byte != 3));
            world.manager.pass();
            assert_eq!(
                (read(b"b"), read(b"a")),
                (first.clone(), first),
                "one snapshot"
            );
            world.rollback(tx);
        })
    });
    assert_eq!(world.get(&old, &tree, b"a").unwrap(), [0; 30]);
    writer.join().unwrap();
    collector.join().unwrap();
    for reader in readers {
        reader.join().unwrap();
    }
    assert_eq!(world.get(&old, &tree, b"a").unwrap(), [0; 30]);
    assert_eq!(world.get(&old, &tree, b"b"), None);
    world.rollback(old);
    world.collect();
    assert_eq!(world.deltas(), 0);
}
