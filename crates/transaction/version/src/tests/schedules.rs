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
                            let horizon = vellum_gc::Horizon::refreshed(world.manager.domain());
                            let mut budget = vellum_gc::Budget::UNBOUNDED;
                            let log = world.log.slot(lease.slot());
                            world
                                .store
                                .collect(&horizon, slot, log, &mut budget)
                                .unwrap();
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
