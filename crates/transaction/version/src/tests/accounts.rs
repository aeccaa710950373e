//! The accounts against what the delta indexes hold.

use super::world::{SLOTS, World, holding, seed};
use crate::accounts::EPOCH_MIN;
use crate::delta;
use crate::{Tally, VersionKind, VersionOptions};
use std::sync::mpsc;
use std::time::Duration;
use vellum_base::random::Random;
use vellum_base::{SlotId, Timestamp};
use vellum_btree::{LeafCopy, Seek, Tree};
use vellum_gc::Budget;
use vellum_sync::thread;
use vellum_txn::{Class, Isolation};

/// Counts the before-images of all slots by looking at each: ranges and full copies.
fn brute(world: &World) -> [Tally; 2] {
    let mut found = [Tally::default(); 2];
    let each = |tree: &Tree, found: &mut [Tally; 2]| {
        let mut leaf = LeafCopy::new(world.store.context().page_size());
        let mut from = Vec::new();
        loop {
            tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf).unwrap();
            for index in 0..leaf.len() {
                let entry = leaf.payload(index);
                found[usize::from(delta::is_full(entry))].add(Tally::one(entry.len()));
            }
            match leaf.upper_fence() {
                Some(fence) => from = fence.to_vec(),
                None => return,
            }
        }
    };
    for slot in (0..SLOTS).map(SlotId) {
        for tree in world.delta_trees(slot) {
            each(tree, &mut found);
        }
    }
    found
}

fn counted(world: &World) -> [Tally; 2] {
    let sums = world.store.versions();
    [VersionKind::Delta, VersionKind::FullCopy].map(|kind| sums.of(kind))
}

#[test]
fn prop_accounts_of_a_store_under_an_old_snapshot_are_exactly_what_is_there() {
    let seed = seed("prop_accounts_of_a_store");
    for round in 0..6 {
        let mut random = Random::new(seed + round);
        let options = VersionOptions {
            fat_updates: Some(random.below(4) as u8),
            fat: round % 2 == 0,
            ..VersionOptions::default()
        };
        let world = World::with_options(4096, 64, options);
        let trees = [world.table(), world.table()];
        let old = world.begin();
        for _ in 0..400 {
            let tx = world.begin();
            let mut clean = true;
            for _ in 0..=random.below(4) {
                let tree = &trees[random.below(2) as usize];
                let key = [random.below(12) as u8];
                let value = vec![random.below(256) as u8; 20 + 40 * random.below(2) as usize];
                clean &= match random.below(6) {
                    0 => world.delete(&tx, tree, &key),
                    1 if world.get(&tx, tree, &key).is_some() => {
                        world.patch(&tx, tree, &key, 3..9, 7)
                    }
                    2 if world.decompose(tree, &key) => continue,
                    _ => world.put(&tx, tree, &key, &value),
                }
                .is_ok();
            }
            if clean && !random.chance(1, 6) {
                world.commit(tx);
            } else {
                world.rollback(tx);
            }
        }
        assert_eq!(counted(&world), brute(&world));
        let by_tree = world.store.census(world.manager.domain(), 1000).unwrap().0;
        let mut sum = Tally::default();
        for tree in &trees {
            let sums = by_tree[&tree.root()];
            sum.add(sums.of(VersionKind::Delta));
            sum.add(sums.of(VersionKind::FullCopy));
        }
        assert_eq!(sum, world.store.versions().total(), "of two tables");
        assert!(
            options.fat || sum.count > 100,
            "the old snapshot keeps them"
        );
        let since = world.store.versions_between(old.snapshot(), Timestamp::MAX);
        assert_eq!(since, sum);
        drop(old);
        world.collect();
        assert_eq!(brute(&world), [Tally::default(); 2]);
        // V41: an epoch whose last stamp was reverted stays for a while.
        let left = world.store.versions().total().count;
        assert!(left <= EPOCH_MIN * u64::from(SLOTS));
    }
}

/// What a snapshot keeps in graveyards and in rows is its own, and what a younger one keeps is that one's.
#[test]
fn tombstones_buried_rows_and_versions_in_rows_count_for_the_snapshot_that_keeps_them() {
    let options = VersionOptions {
        fat_updates: Some(0),
        shortcuts: false,
        ..VersionOptions::default()
    };
    let world = World::with_options(4096, 64, options);
    let tree = world.table();
    let key = |number: u32| number.to_be_bytes();
    let tx = world.begin();
    for number in 0..30 {
        world.put(&tx, &tree, &key(number), &[1; 40]).unwrap();
    }
    world.commit(tx);
    let change = |numbers: std::ops::Range<u32>, hot: u8| {
        let tx = world.begin();
        for number in numbers {
            assert!(world.delete(&tx, &tree, &key(number)).unwrap().existed);
        }
        world.commit(tx);
        for byte in hot..hot + 4 {
            let tx = world.begin();
            world.patch(&tx, &tree, &key(29), 3..9, byte).unwrap();
            world.commit(tx);
        }
        world.collect();
    };
    let nobody = world
        .store
        .pinned_by(
            world.manager.domain(),
            world.manager.clock().now(),
            4096,
            Vec::new,
        )
        .unwrap();
    assert_eq!(nobody, (Vec::new(), true));
    let older = world.begin_olap();
    change(0..10, 2);
    let younger = world.begin_olap();
    change(10..25, 6);
    assert_eq!(world.store.buried(), 25);
    let snapshots = [older.statement(), younger.statement()];
    let images = [
        world.store.versions_between(snapshots[0], snapshots[1]),
        world.store.versions_between(snapshots[1], Timestamp::MAX),
    ];
    let (pinned, complete) = world
        .store
        .pinned_by(
            world.manager.domain(),
            world.manager.clock().now(),
            4096,
            || holding(&snapshots),
        )
        .unwrap();
    assert!(complete);
    let (census, _) = world.store.census(world.manager.domain(), 4096).unwrap();
    let in_rows = census[&tree.root()].of(VersionKind::Fat).count;
    let beside: Vec<u64> = (0..2)
        .map(|at| pinned[at].count - images[at].count)
        .collect();
    // Each sees a version of the hot row that is not the newest; what nobody sees is nobody's.
    assert_eq!(beside, [10 + 1, 15 + 1]);
    assert!(in_rows > 2, "{in_rows}");
    assert!((0..2).all(|at| pinned[at].bytes > images[at].bytes));
    // Who looks at too few pages says so.
    assert!(
        !world
            .store
            .pinned_by(
                world.manager.domain(),
                world.manager.clock().now(),
                1,
                || holding(&snapshots)
            )
            .unwrap()
            .1
    );
    assert!(!world.store.census(world.manager.domain(), 1).unwrap().1);
    drop(younger);
    world.collect();
    let (pinned, _) = world
        .store
        .pinned_by(
            world.manager.domain(),
            world.manager.clock().now(),
            4096,
            || holding(&snapshots[..1]),
        )
        .unwrap();
    let one_image = world.store.versions_between(snapshots[0], Timestamp::MAX);
    assert!(
        pinned[0].count >= one_image.count + 25,
        "all for the older one"
    );
}

/// Snapshots end and are drawn, and rows are overwritten and pruned, between the list of snapshots and the look at rows.
#[test]
fn versions_in_rows_count_for_who_is_open_once_they_have_been_looked_for() {
    let options = VersionOptions {
        fat_updates: Some(0),
        shortcuts: false,
        ..VersionOptions::default()
    };
    let world = World::with_options(4096, 64, options);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", &[1; 40]).unwrap();
    world.commit(tx);
    let overwrite = || {
        for byte in 0..100 {
            let tx = world.begin();
            world.patch(&tx, &tree, b"k", 3..9, byte).unwrap();
            world.commit(tx);
        }
    };
    let clock = || world.manager.clock().now();
    let pinned_in_rows = |lists: &mut dyn FnMut() -> Vec<Timestamp>| {
        let mut last = Vec::new();
        let (pinned, complete) = world
            .store
            .pinned_by(world.manager.domain(), clock(), 4096, || {
                last = lists();
                holding(&last)
            })
            .unwrap();
        assert!(complete);
        let next = last.iter().skip(1).copied().chain([Timestamp::MAX]);
        let images = last.iter().zip(next);
        let images = images.map(|(from, to)| world.store.versions_between(*from, to).count);
        let beside = pinned.iter().zip(images);
        beside.map(|(it, images)| it.count - images).collect()
    };
    let old = world.begin_olap();
    overwrite();
    let mut short = Some(world.begin_olap());
    overwrite();
    let pinned: Vec<u64> = pinned_in_rows(&mut || match short.take() {
        Some(ends) => {
            let both = vec![old.snapshot(), ends.snapshot()];
            drop(ends);
            overwrite();
            both
        }
        None => vec![old.snapshot()],
    });
    let in_rows = || {
        let (census, _) = world.store.census(world.manager.domain(), 4096).unwrap();
        census[&tree.root()].of(VersionKind::Fat).count
    };
    assert_eq!(pinned, [1], "what stands above who has ended is nobody's");
    assert!(in_rows() > 1);
    let mut young: Option<vellum_txn::Transaction> = None;
    let pinned: Vec<u64> = pinned_in_rows(&mut || {
        if let Some(begun) = &young {
            return vec![old.snapshot(), begun.snapshot()];
        }
        young = Some(world.begin_olap());
        overwrite();
        vec![old.snapshot()]
    });
    assert_eq!(pinned, [1, 1], "one row, one version that each sees");
    assert!(in_rows() > 2);
}

/// A read-committed writer has the snapshots of its first write and of its last statement, and a writer at work needs what it has replaced itself.
#[test]
fn versions_in_rows_count_for_each_snapshot_of_a_writer_and_for_its_undo() {
    let options = VersionOptions {
        fat_updates: Some(0),
        shortcuts: false,
        ..VersionOptions::default()
    };
    let world = World::with_options(4096, 64, options);
    let (tree, other) = (world.table(), world.table());
    let tx = world.begin();
    world.put(&tx, &tree, b"k", &[1; 40]).unwrap();
    world.commit(tx);
    let overwrite = || {
        for byte in 0..20 {
            let tx = world.begin();
            world.patch(&tx, &tree, b"k", 3..9, byte).unwrap();
            world.commit(tx);
        }
    };
    let in_rows = || -> Vec<u64> {
        let holders = world.manager.holders();
        let now = world.manager.clock().now();
        let pinned = world
            .store
            .pinned_by(world.manager.domain(), now, 4096, || holders.clone());
        let next = holders.iter().skip(1).map(|it| it.oldest);
        let ends = next.chain([Timestamp::MAX]);
        let images = holders.iter().zip(ends);
        let images = images.map(|(it, end)| world.store.versions_between(it.oldest, end).count);
        let beside = pinned.unwrap().0.into_iter().zip(images);
        beside.map(|(it, images)| it.count - images).collect()
    };
    let reader = world.begin_with(Isolation::ReadCommitted, Class::Olap);
    reader.statement();
    world.put(&reader, &other, b"own", b"v").unwrap();
    overwrite();
    reader.statement();
    overwrite();
    assert_eq!(in_rows(), [2], "one for each of its snapshots");
    world.rollback(reader);
    world.collect();
    let old = world.begin_olap();
    overwrite();
    let writer = world.begin_olap();
    for byte in 0..5 {
        world.patch(&writer, &tree, b"k", 3..9, byte).unwrap();
    }
    assert_eq!(in_rows(), [1, 1 + 4], "what it replaced of its own");
    world.rollback(writer);
    world.rollback(old);
}

#[test]
fn sums_are_read_while_a_slot_appends() {
    let world = World::new(4096, 64);
    let tree = world.table();
    for value in 0..3 {
        let tx = world.begin();
        world.put(&tx, &tree, b"k", &[value; 20]).unwrap();
        world.commit(tx);
    }
    let slot = (0..SLOTS)
        .map(SlotId)
        .find_map(|slot| world.store.slot(slot));
    let sums = |store: &crate::VersionStore| store.versions().total();
    let expected = sums(&world.store);
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        // An append holds this while it waits for a page: for a long time, here.
        slot.expect("a slot has made versions").deltas.account(|_| {
            let store = &world.store;
            scope.spawn(move || send.send(sums(store)));
            let answer = receive.recv_timeout(Duration::from_secs(600));
            assert_eq!(answer.ok(), Some(expected));
        });
    });
}

/// Symptom: who asked for the holders of old versions waited for a collector, and that for a disk. Guard: what was worked off before it began is known without it.
#[test]
fn regress_census_waits_for_no_collector() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    for number in 0..200u8 {
        world.put(&tx, &tree, &[number], &[1; 50]).unwrap();
    }
    world.commit(tx);
    let old = world.begin_olap();
    let tx = world.begin();
    let slot = tx.slot();
    for number in 0..200 {
        world.delete(&tx, &tree, &[number]).unwrap();
    }
    world.commit(tx);
    // Some are settled, and still on the list; nobody has counted them.
    for items in [40, 10, 0] {
        let mut budget = Budget::new(items, u64::MAX);
        world.collect_slot(slot, &mut budget).unwrap();
    }
    let census = || world.store.census(world.manager.domain(), 1_000).unwrap();
    let counted = thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        // A collector waits for a disk, or for a round of the log.
        let _collecting = world.store.slot(slot).unwrap().collecting.lock();
        scope.spawn(move || send.send(census()));
        receive.recv_timeout(Duration::from_secs(600)).ok()
    });
    assert_eq!(counted, Some(census()));
    let sums = counted.unwrap().0[&tree.root()];
    let kinds = [VersionKind::Tombstone, VersionKind::Buried];
    let [marks, buried] = kinds.map(|kind| sums.of(kind).count);
    assert!(buried > 20 && marks + buried == 200, "{marks} and {buried}");
    world.rollback(old);
}
