//! In which order things are looked at: the leaf and the graveyard (V23, V31, V32), the turn of a collector and its watermarks (V58).

use super::buried::{empty, fill};
use super::world::{World, view};
use crate::Scan;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vellum_base::SlotId;
use vellum_btree::Tree;
use vellum_gc::Budget;
use vellum_sync::test_point::TestPoints;
use vellum_sync::thread;
use vellum_txn::Transaction;

const ROWS: [&[u8]; 3] = [b"a", b"b", b"c"];

/// Analytical snapshots of three rows, and the second of them deleted since, but not buried yet.
fn deleted_under(snapshots: usize) -> (Arc<World>, Tree, Vec<Transaction>) {
    let world = Arc::new(World::new(4096, 64));
    let tree = world.table();
    let tx = world.begin();
    for row in ROWS {
        world.put(&tx, &tree, row, row).unwrap();
    }
    world.commit(tx);
    let old = (0..snapshots).map(|_| world.begin_olap()).collect();
    let tx = world.begin();
    assert!(world.delete(&tx, &tree, ROWS[1]).unwrap().existed);
    world.commit(tx);
    assert_eq!((world.heads(&tree), world.store.buried()), (3, 0));
    (world, tree, old)
}

/// The same under one snapshot.
fn deleted() -> (Arc<World>, Tree, Transaction) {
    let (world, tree, mut old) = deleted_under(1);
    (world, tree, old.remove(0))
}

/// The keys that a scan finds, ascending.
fn keys(world: &World, tx: &Transaction, tree: &Tree, forward: bool) -> Vec<Vec<u8>> {
    let range = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = Scan::new(world.store.context().page_size(), range);
    let _operation = tx.operation().unwrap();
    let view = view(tx);
    let mut found = Vec::new();
    loop {
        let row = if forward {
            scan.next(&world.store, &view, tree)
        } else {
            scan.prev(&world.store, &view, tree)
        };
        let Some(row) = row.unwrap() else { break };
        found.push(row.key.to_vec());
    }
    if !forward {
        found.reverse();
    }
    found
}

/// Has the row buried when this thread comes by a point.
fn buries_at(point: &'static str, world: &Arc<World>) -> (TestPoints, Arc<AtomicBool>) {
    let points = TestPoints::new();
    let buried = Arc::new(AtomicBool::new(false));
    let (world, done) = (world.clone(), buried.clone());
    points.on(point, move || {
        if !done.swap(true, Ordering::Relaxed) {
            world.collect();
            assert_eq!(world.store.buried(), 1);
        }
    });
    (points, buried)
}

#[test]
fn row_that_is_buried_right_before_the_leaf_is_read_is_found_by_its_key() {
    let (world, tree, old) = deleted();
    let (points, buried) = buries_at("read: before the leaf", &world);
    let _entered = points.enter();
    assert_eq!(world.get(&old, &tree, ROWS[1]), Some(ROWS[1].to_vec()));
    assert!(buried.load(Ordering::Relaxed));
    assert_eq!(world.heads(&tree), 2);
}

#[test]
fn row_that_is_buried_right_before_the_leaf_is_read_is_found_by_scans() {
    for forward in [true, false] {
        let (world, tree, old) = deleted();
        let (points, buried) = buries_at("scan: before the leaf", &world);
        let _entered = points.enter();
        assert_eq!(
            keys(&world, &old, &tree, forward),
            ROWS,
            "forward: {forward}"
        );
        assert!(buried.load(Ordering::Relaxed));
        assert_eq!(world.heads(&tree), 2);
    }
}

/// The row is in both places, and its leaf is latched: who looks for it meanwhile finds it once.
#[test]
fn row_that_is_on_its_way_is_found_once_by_its_key_and_by_scans() {
    let (world, tree, old) = deleted_under(3);
    let points = TestPoints::new();
    let pause = points.pause("settle: between graveyard and leaf");
    let collector = {
        let world = world.clone();
        thread::spawn(move || {
            let _entered = points.enter();
            world.collect();
        })
    };
    pause.wait_reached();
    let (begun, begins) = std::sync::mpsc::channel();
    let ways = old.into_iter().zip([None, Some(true), Some(false)]);
    let start = |(tx, way): (Transaction, Option<bool>)| {
        let (world, tree, begun) = (world.clone(), tree.clone(), begun.clone());
        thread::spawn(move || {
            begun.send(()).unwrap();
            let found = match way {
                None => world.get(&tx, &tree, ROWS[1]).into_iter().collect(),
                Some(forward) => keys(&world, &tx, &tree, forward),
            };
            // The snapshot ends with the test.
            (way, found, tx)
        })
    };
    let readers: Vec<_> = ways.map(start).collect();
    for _ in &readers {
        begins.recv().unwrap();
    }
    // They are at work, as far as they get.
    thread::yield_now();
    pause.release();
    collector.join().unwrap();
    let found: Vec<_> = readers.into_iter().map(|it| it.join().unwrap()).collect();
    for (way, found, _) in &found {
        let expected: &[&[u8]] = if way.is_none() { &ROWS[1..2] } else { &ROWS };
        assert_eq!(found.as_slice(), expected, "{way:?}");
    }
    assert_eq!((world.heads(&tree), world.store.buried()), (2, 1));
}

/// V27: who stands in the chain of a row that is dropped begins again, and finds no row.
#[test]
fn reader_that_stands_in_the_chain_of_a_dropped_row_finds_none() {
    let world = Arc::new(World::new(4096, 64));
    let tree = world.table();
    let old = world.begin_olap();
    let change = |delete: bool| {
        let tx = world.begin();
        match delete {
            true => drop(world.delete(&tx, &tree, ROWS[0]).unwrap()),
            false => drop(world.put(&tx, &tree, ROWS[0], b"between").unwrap()),
        }
        world.commit(tx);
    };
    change(false);
    change(false);
    change(true);
    let young = world.begin_olap();
    let row = (&tree, ROWS[0]);
    let found = world.read_around(row, old, "read: between version and delta", || {
        world.collect();
        let left = (world.heads(&tree), world.store.buried());
        assert_eq!(left, (0, 0), "dropped");
    });
    assert_eq!(found, None);
    assert_eq!(world.get(&young, &tree, ROWS[0]), None);
}

/// A transaction in that slot.
fn begin_in(world: &World, slot: SlotId) -> Transaction {
    let mut others = Vec::new();
    loop {
        let tx = world.begin();
        if tx.slot() == slot {
            return tx;
        }
        others.push(tx);
    }
}

/// A round of maintenance, in the middle of which somebody else buries a row by newer watermarks.
#[test]
fn collectors_in_turn_go_by_the_watermarks_of_their_turn() {
    let world = Arc::new(World::new(4096, 64));
    let tree = world.table();
    let older = world.begin_olap();
    let mut both = [world.begin(), world.begin()];
    both.sort_by_key(|tx| tx.slot().get());
    let [low, high] = both.each_ref().map(|tx| tx.slot());
    world.put(&both[0], &tree, ROWS[0], b"v").unwrap();
    world.put(&both[1], &tree, ROWS[1], b"v").unwrap();
    for tx in both {
        world.commit(tx);
    }
    // By these no analytical snapshot is younger than the rows.
    let mut budget = Budget::UNBOUNDED;
    world.collect_slot(low, &mut budget).unwrap();
    let tx = begin_in(&world, high);
    let [sees, ends] = [world.begin_olap(), world.begin_olap()];
    assert!(world.delete(&tx, &tree, ROWS[1]).unwrap().existed);
    world.commit(tx);
    let other = {
        let world = world.clone();
        thread::spawn(move || {
            let mut budget = Budget::UNBOUNDED;
            world.collect_slot(high, &mut budget).map(drop)
        })
    };
    other.join().unwrap().unwrap();
    assert_eq!((world.heads(&tree), world.store.buried()), (1, 1));
    // Then what was buried is looked at again.
    drop(ends);
    world.collect_slot_by_last_pass(high, &mut budget).unwrap();
    assert_eq!(world.get(&sees, &tree, ROWS[1]), Some(b"v".to_vec()));
    assert_eq!(world.rows(&sees, &tree).len(), 2);
    drop((older, sees));
    world.collect();
    assert_eq!((world.heads(&tree), world.store.buried()), (1, 0));
}

/// R10: rows that came behind a snapshot fill many leaves. The step that goes through them lets promotion in; what is buried meanwhile is found.
#[test]
fn r10_step_through_leaves_without_a_visible_row_lets_promotion_in() {
    let key = |number: u32| number.to_be_bytes();
    for forward in [true, false] {
        let world = World::new(4096, 512);
        let tree = world.table();
        let put = |numbers: &[u32]| {
            let tx = world.begin();
            for number in numbers {
                world.put(&tx, &tree, &key(*number), &[7; 40]).unwrap();
            }
            world.commit(tx);
        };
        put(&[0, 1, 4998, 4999]);
        let old = world.begin();
        put(&(2..4998).collect::<Vec<_>>());
        let tx = world.begin();
        for number in [0, 4999] {
            assert!(world.delete(&tx, &tree, &key(number)).unwrap().existed);
        }
        world.commit(tx);
        let range = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = Scan::new(world.store.context().page_size(), range);
        let (mut found, mut pauses) = (Vec::new(), 0);
        let step = |scan: &mut Scan| {
            let _operation = old.operation().unwrap();
            let view = view(&old);
            let row = if forward {
                scan.next_within(&world.store, &view, &tree)
            } else {
                scan.prev_within(&world.store, &view, &tree)
            };
            row.unwrap()
                .map(|row| u32::from_be_bytes(row.key.try_into().unwrap()))
        };
        loop {
            match step(&mut scan) {
                Some(number) => found.push(number),
                None if !scan.is_under_way() => break,
                None => {
                    pauses += 1;
                    if pauses == 5 {
                        // It stands where it stood, and goes on from there.
                        scan.stand_back();
                        assert!(!scan.is_under_way() && !old.is_olap());
                        for _ in 0..120_000 {
                            world.manager.clock().draw();
                        }
                        world.manager.pass();
                        assert!(old.is_olap(), "promoted between two leaves");
                        world.collect();
                        assert_eq!(world.store.buried(), 2);
                    }
                }
            }
        }
        if !forward {
            found.reverse();
        }
        assert_eq!(found, [0, 1, 4998, 4999], "forward: {forward}");
        assert!(pauses > 20, "{pauses}");
    }
}

/// One leaf of the index, and beside it many of the graveyard: none of their rows is seen by who began later, each third one by who was there, and
/// the last one by both.
#[test]
fn a_step_past_buried_rows_that_are_not_seen_ends_in_between_and_goes_on_there() {
    let world = World::new(4096, 64);
    let tree = world.table();
    fill(&world, &tree, 0..3000, &[7; 40]);
    let (old, between) = (world.begin_olap(), world.begin_olap());
    empty(&world, &tree, (0..2999).filter(|number| number % 3 == 1));
    let young = world.begin_olap();
    empty(&world, &tree, std::iter::once(2999));
    drop(between);
    empty(&world, &tree, (0..2999).filter(|number| number % 3 != 1));
    let last = world.begin_olap();
    world.collect();
    assert_eq!((world.heads(&tree), world.store.buried()), (0, 3000));
    let everything = (Bound::Unbounded, Bound::Unbounded);
    for forward in [true, false] {
        for (tx, seen) in [(&old, 3000), (&young, 2000), (&last, 0)] {
            let mut scan = Scan::new(world.store.context().page_size(), everything.clone());
            let (mut found, mut pauses) = (Vec::new(), 0);
            loop {
                let _operation = tx.operation().unwrap();
                let view = view(tx);
                let row = match forward {
                    true => scan.next_within(&world.store, &view, &tree),
                    false => scan.prev_within(&world.store, &view, &tree),
                };
                let row = row.unwrap();
                match row.map(|row| (row.key.to_vec(), row.body.to_vec())) {
                    Some(row) => found.push(row),
                    None if !scan.is_under_way() => break,
                    None => {
                        pauses += 1;
                        match pauses {
                            // Begun anew, it finds the same.
                            3 => scan.stand_back(),
                            // Turned round, it finds what it stood on, and stands before its range: from there it finds all.
                            5 if forward => {
                                while scan.prev(&world.store, &view, &tree).unwrap().is_some() {}
                                found.clear();
                            }
                            _ => {}
                        }
                    }
                }
            }
            if !forward {
                found.reverse();
            }
            assert_eq!(found, world.rows(tx, &tree));
            assert_eq!(found.len(), seen, "forward: {forward}");
            if seen == 0 {
                assert!(
                    pauses > 10,
                    "{pauses}: a step went through all leaves at once"
                );
            }
        }
    }
}
