//! Readers of chains: against aborts, against collection, against a model.

use super::world::{World, is_conflict, seed};
use crate::VersionOptions;
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum_base::random::Random;
use vellum_btree::Tree;
use vellum_sync::test_point::TestPoints;
use vellum_sync::thread;
use vellum_txn::{Isolation, Transaction};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Where a reader has the newest version and looks for its delta.
const BEFORE_DELTA: &str = "read: between version and delta";

#[test]
fn trap_reader_between_version_and_delta_finds_the_row_when_the_writer_aborts() {
    let world = Arc::new(World::new(4096, 64));
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", b"old").unwrap();
    world.commit(tx);
    let writer = world.begin();
    world.put(&writer, &tree, b"k", b"new").unwrap();
    let next = std::cell::Cell::new(None);
    let found = world.read_around((&tree, b"k"), world.begin(), BEFORE_DELTA, || {
        world.rollback(writer);
        // And again: the name that the reader holds is not that of the next version.
        let writer = world.begin();
        world.put(&writer, &tree, b"k", b"newer").unwrap();
        next.set(Some(writer));
    });
    assert_eq!(found, Some(b"old".to_vec()));
    world.rollback(next.take().expect("it has begun"));
}

fn patch(world: &World, tree: &Tree, times: u8) {
    for byte in 0..times {
        let tx = world.begin();
        world.patch(&tx, tree, b"k", 0..4, byte).unwrap();
        world.commit(tx);
    }
}

/// A world with a row of a hundred sevens that turns fat with so many updates.
fn world_with_row(fat_updates: u8) -> (Arc<World>, Tree) {
    let options = VersionOptions {
        fat_updates: Some(fat_updates),
        ..VersionOptions::default()
    };
    let world = Arc::new(World::with_options(8192, 64, options));
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", &[7; 100]).unwrap();
    world.commit(tx);
    (world, tree)
}

#[test]
fn trap_reader_between_version_and_delta_finds_its_version_when_the_row_turns_fat() {
    let (world, tree) = world_with_row(3);
    let old = world.begin();
    patch(&world, &tree, 1);
    let found = world.read_around((&tree, b"k"), old, BEFORE_DELTA, || {
        patch(&world, &tree, 20);
        assert_eq!(world.fat_rows(&tree).len(), 1);
        assert_eq!(world.deltas(), 0, "they went into the row");
    });
    assert_eq!(found, Some(vec![7; 100]));
}

#[test]
fn trap_reader_between_version_and_delta_finds_its_version_when_deltas_are_collected() {
    let (world, tree) = world_with_row(250);
    let old = world.begin_olap();
    world.manager.pass();
    patch(&world, &tree, 4);
    let found = world.read_around((&tree, b"k"), old, BEFORE_DELTA, || {
        patch(&world, &tree, 200);
        world.collect();
        // That of the version at which the reader stands, too: only the rightmost leaves are not swept.
        assert!(world.deltas() < 150, "{}", world.deltas());
    });
    assert_eq!(found, Some(vec![7; 100]));
}

#[test]
fn reader_that_meets_a_half_reverted_writer_sees_the_state_before_it() {
    let world = Arc::new(World::new(4096, 64));
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", &[0; 40]).unwrap();
    world.commit(tx);
    let reader = world.begin();
    let points = TestPoints::new();
    let pause = points.pause("undo: between row and delta");
    let writer = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            let _entered = points.enter();
            let tx = world.begin();
            world.patch(&tx, &tree, b"k", 0..4, 1).unwrap();
            world.put(&tx, &tree, b"k", b"longer or shorter").unwrap();
            world.delete(&tx, &tree, b"k").unwrap();
            world.put(&tx, &tree, b"k", b"back").unwrap();
            world.rollback(tx);
        })
    };
    pause.wait_reached();
    assert_eq!(world.get(&reader, &tree, b"k"), Some(vec![0; 40]));
    assert_eq!(world.rows(&reader, &tree).len(), 1);
    assert!(
        is_conflict(world.put(&reader, &tree, b"k", b"mine")),
        "not reverted yet"
    );
    pause.release();
    writer.join().unwrap();
    assert_eq!(world.get(&reader, &tree, b"k"), Some(vec![0; 40]));
}

#[test]
fn version_is_not_named_before_its_delta_is_there() {
    let world = Arc::new(World::new(4096, 64));
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", b"old").unwrap();
    world.commit(tx);
    let points = TestPoints::new();
    let pause = points.pause("write: between delta and row");
    let writer = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            let _entered = points.enter();
            let tx = world.begin();
            world.put(&tx, &tree, b"k", b"new").unwrap();
            let slot = tx.slot();
            world.rollback(tx);
            slot
        })
    };
    pause.wait_reached();
    // The leaf is latched; its delta is in the index already.
    assert_eq!(world.deltas(), 1);
    pause.release();
    writer.join().unwrap();
    assert_eq!(world.deltas(), 0);
}

#[test]
fn deltas_are_kept_for_the_oldest_snapshot_and_go_with_it() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", &[0; 30]).unwrap();
    world.commit(tx);
    let old = world.begin();
    for byte in 1..200u8 {
        let tx = world.begin();
        if byte % 3 == 0 {
            world
                .put(&tx, &tree, b"k", &vec![byte; usize::from(byte) + 10])
                .unwrap();
        } else {
            world.patch(&tx, &tree, b"k", 1..5, byte).unwrap();
        }
        world.commit(tx);
        world.collect();
    }
    assert_eq!(world.get(&old, &tree, b"k"), Some(vec![0; 30]));
    world.rollback(old);
    world.collect();
    world.collect();
    let left = world.deltas();
    assert!(left <= 1, "{left} deltas that nobody needs");
}

/// An open transaction and what it should see.
struct Open {
    tx: Transaction,
    sees: Model,
    savepoint: Option<(vellum_txn::Savepoint, Model, usize)>,
    wrote: Vec<Vec<u8>>,
}

#[test]
fn prop_every_open_snapshot_sees_what_a_model_says_whatever_commits_aborts_and_is_collected() {
    let seed = seed("prop_every_open_snapshot");
    for case in 0..20 {
        run_model(seed.wrapping_add(case));
    }
}

fn run_model(seed: u64) {
    let mut random = Random::new(seed);
    let frames = [24, 32, 256][random.below(3) as usize];
    let world = World::new(4096, frames);
    let tree = world.table();
    let mut committed = Model::new();
    let mut open: Vec<Open> = Vec::new();
    for _ in 0..700 {
        let choice = random.below(100);
        if open.is_empty() || (choice < 10 && open.len() < 5) {
            let isolation = Isolation::Snapshot;
            open.push(Open {
                tx: world.begin_at(isolation),
                sees: committed.clone(),
                savepoint: None,
                wrote: Vec::new(),
            });
            continue;
        }
        let at = random.below(open.len() as u64) as usize;
        match choice {
            0..70 => write_one(&world, &tree, &mut random, &mut open, at),
            70..75 => {
                let one = &mut open[at];
                one.savepoint = Some((one.tx.savepoint(), one.sees.clone(), one.wrote.len()));
            }
            75..80 => {
                let one = &mut open[at];
                if let Some((savepoint, sees, wrote)) = &one.savepoint {
                    world.rollback_to(&one.tx, savepoint);
                    one.sees.clone_from(sees);
                    one.wrote.truncate(*wrote);
                }
            }
            80..86 => {
                let one = open.swap_remove(at);
                for key in &one.wrote {
                    match one.sees.get(key) {
                        Some(value) => committed.insert(key.clone(), value.clone()),
                        None => committed.remove(key),
                    };
                }
                world.commit(one.tx);
            }
            86..90 => world.rollback(open.swap_remove(at).tx),
            90..95 => {
                let expected: Vec<_> = open[at].sees.clone().into_iter().collect();
                assert!(world.rows(&open[at].tx, &tree) == expected, "seed {seed}");
            }
            _ => _ = world.collect(),
        }
    }
    for one in open {
        let expected: Vec<_> = one.sees.into_iter().collect();
        assert!(world.rows(&one.tx, &tree) == expected, "seed {seed}");
        world.rollback(one.tx);
    }
    let expected: Vec<_> = committed.into_iter().collect();
    assert!(world.rows(&world.begin(), &tree) == expected, "seed {seed}");
}

fn write_one(
    world: &World,
    tree: &vellum_btree::Tree,
    random: &mut Random,
    open: &mut [Open],
    at: usize,
) {
    let key = random.below(60).to_be_bytes().to_vec();
    let length = [0, 8, 30, 200, 900][random.below(5) as usize];
    let value = vec![random.below(256) as u8; length];
    let one = &mut open[at];
    let before = one.sees.get(&key).cloned();
    let result = match random.below(4) {
        0 => world.delete(&one.tx, tree, &key).inspect(|_| {
            one.sees.remove(&key);
        }),
        1 if before.as_ref().is_some_and(|body| body.len() > 8) => {
            let byte = random.below(256) as u8;
            let patched = world.patch(&one.tx, tree, &key, 3..7, byte);
            patched.inspect(|_| one.sees.get_mut(&key).unwrap()[3..7].fill(byte))
        }
        _ => world.put(&one.tx, tree, &key, &value).inspect(|_| {
            one.sees.insert(key.clone(), value.clone());
        }),
    };
    match result {
        Ok(written) => {
            assert_eq!(world.get(&one.tx, tree, &key), one.sees.get(&key).cloned());
            // A delete of nothing writes nothing, and so keeps nobody out.
            if written.changed {
                one.wrote.push(key);
            }
        }
        Err(error) => assert!(matches!(error, crate::VersionError::Conflict), "{error}"),
    }
}
