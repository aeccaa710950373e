//! What is looked at again when an analytical snapshot has ended, and what is not.

use super::world::{SLOTS, World};
use crate::VersionOptions;
use std::ops::Range;
use vellum_base::SlotId;
use vellum_btree::Tree;
use vellum_gc::Budget;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn fill(world: &World, tree: &Tree, numbers: Range<u32>) {
    let tx = world.begin();
    for number in numbers {
        world.put(&tx, tree, &key(number), b"value").unwrap();
    }
    world.commit(tx);
}

/// Deletes rows; the slot in which that was done.
fn empty(world: &World, tree: &Tree, numbers: Range<u32>) -> SlotId {
    let tx = world.begin();
    let slot = tx.slot();
    for number in numbers {
        assert!(world.delete(&tx, tree, &key(number)).unwrap().existed);
    }
    world.commit(tx);
    slot
}

/// V62.
#[test]
fn end_of_a_young_snapshot_does_not_look_again_at_what_an_old_one_keeps() {
    let world = World::new(4096, 256);
    let tree = world.table();
    fill(&world, &tree, 0..1000);
    let old = world.begin_olap();
    let slot = empty(&world, &tree, 0..1000);
    world.collect();
    assert_eq!((world.store.buried(), world.store.held(slot)), (1000, 1000));
    for number in 2000..2005 {
        fill(&world, &tree, number..number + 1);
        let young = world.begin_olap();
        let other = empty(&world, &tree, number..number + 1);
        world.collect();
        assert_eq!(world.store.buried(), 1001, "the young one sees it");
        world.rollback(young);
        world.manager.pass();
        let mut most = 0;
        for slot in [slot, other] {
            let mut budget = Budget::new(100, u64::MAX);
            let collected = world.collect_slot(slot, &mut budget).unwrap();
            assert!(!collected.more, "it is through");
            most = most.max(100 - budget.items());
        }
        assert_eq!(world.store.buried(), 1000, "nobody sees it any more");
        assert!(most <= 10, "{most} were looked at");
    }
    assert_eq!(world.rows(&old, &tree).len(), 1000);
    world.rollback(old);
    world.collect();
    assert_eq!((world.store.buried(), world.store.held(slot)), (0, 0));
}

/// V62: the delete's stamp is below the snapshot, its commit is not.
#[test]
fn row_whose_delete_began_before_a_snapshot_and_was_committed_above_it_goes_with_it() {
    let world = World::new(4096, 256);
    let tree = world.table();
    let old = world.begin_olap();
    fill(&world, &tree, 0..20);
    let deleter = world.begin();
    world.delete(&deleter, &tree, &key(3)).unwrap();
    let middle = world.begin_olap();
    world.delete(&deleter, &tree, &key(4)).unwrap();
    world.commit(deleter);
    world.collect();
    assert_eq!(world.store.buried(), 2);
    assert_eq!(world.rows(&middle, &tree).len(), 20);
    world.rollback(middle);
    world.collect();
    assert_eq!(world.store.buried(), 0);
    world.rollback(old);
}

/// V50, V52 and V30 over many ends: what each of them kept goes with it, whatever the order.
#[test]
fn everything_between_goes_as_snapshots_end_in_any_order() {
    let seed = super::world_seed("everything_between_goes_as_snapshots_end_in_any_order");
    let mut random = vellum_base::random::Random::new(seed);
    for _ in 0..10 {
        let world = World::new(4096, 512);
        let tree = world.table();
        let oldest = world.begin_olap();
        let mut open = Vec::new();
        for number in 0..30 {
            fill(&world, &tree, number..number + 1);
            let tx = world.begin();
            world.put(&tx, &tree, &key(number), b"second").unwrap();
            open.push(world.begin_olap());
            world.commit(tx);
            empty(&world, &tree, number..number + 1);
            if random.chance(1, 3) {
                world.collect();
            }
            // Each takes a slot.
            if open.len() == 4 || random.chance(1, 3) {
                let at = random.below(open.len() as u64) as usize;
                world.rollback(open.swap_remove(at));
            }
        }
        world.collect();
        let seen: usize = open.iter().map(|it| world.rows(it, &tree).len()).sum();
        assert_eq!(seen, open.len(), "each sees the row of its time");
        assert_eq!(world.store.buried(), open.len() as u64);
        while !open.is_empty() {
            let at = random.below(open.len() as u64) as usize;
            world.rollback(open.swap_remove(at));
            world.collect();
            assert_eq!(world.store.buried(), open.len() as u64);
        }
        world.rollback(oldest);
    }
}

/// Symptom: a buried row that nobody saw stayed until everyone saw its delete. Cause: it was looked at when the last snapshot that saw its
/// earlier generation had ended, by watermarks that still told of that one; what lies below the delete of that generation, which all others
/// saw, was gone (everyone saw it replaced), so that the row counted as needed, for nobody whose end was waited for. Guard: I2.
#[test]
fn regress_buried_row_whose_earlier_generation_nobody_sees_any_more_goes() {
    let world = World::new(4096, 64);
    let tree = world.table();
    fill(&world, &tree, 0..1);
    fill(&world, &tree, 0..1);
    world.collect();
    let sees_it = world.begin_olap();
    empty(&world, &tree, 0..1);
    let sees_none = world.begin_olap();
    fill(&world, &tree, 0..1);
    empty(&world, &tree, 0..1);
    world.collect();
    assert_eq!(world.store.buried(), 1);
    assert_eq!(world.get(&sees_it, &tree, &key(0)), Some(b"value".to_vec()));
    world.rollback(sees_it);
    for slot in (0..SLOTS).map(SlotId) {
        let mut budget = Budget::UNBOUNDED;
        world.collect_slot_by_last_pass(slot, &mut budget).unwrap();
    }
    assert_eq!(world.store.buried(), 0);
    assert!(world.rows(&sees_none, &tree).is_empty());
}

/// A transaction writes a row so many times, and deletes it. The slot in which that was done.
fn write_and_delete(world: &World, tree: &Tree, key: &[u8], versions: u32) -> SlotId {
    let tx = world.begin();
    let slot = tx.slot();
    for number in 0..versions {
        let value = [number as u8; 20];
        world.put(&tx, tree, key, &value).unwrap();
    }
    assert!(world.delete(&tx, tree, key).unwrap().existed);
    world.commit(tx);
    slot
}

const CHAINS: VersionOptions = VersionOptions {
    graveyard: true,
    fat: false,
    shortcuts: true,
    fat_updates: None,
    chains_of_dropped: true,
};

/// A transaction writes a row again and again, and deletes it: an older snapshot sees nothing of that.
#[test]
fn row_with_very_many_versions_that_nobody_sees_is_not_kept_for_an_old_snapshot() {
    for (versions, stays) in [(200, false), (1_000, false), (20_000, true)] {
        let world = World::with_options(4096, 512, CHAINS);
        let tree = world.table();
        let old = world.begin_olap();
        write_and_delete(&world, &tree, b"k", versions);
        // A commit's collection looks at so many; the row leaves the index all the same.
        let slots = || (0..SLOTS).map(SlotId);
        for slot in slots() {
            let mut budget = Budget::new(1_000, 1 << 20).lazy();
            world.collect_slot(slot, &mut budget).unwrap();
        }
        assert_eq!(world.heads(&tree), 0);
        assert_eq!(world.store.buried() > 0, versions > 256);
        for _ in 0..3 {
            world.collect();
        }
        assert_eq!(world.store.buried() > 0, stays, "{versions} versions");
        assert_eq!(world.deltas() > 1_000, stays, "{versions} versions");
        assert_eq!(world.rows(&old, &tree), []);
        world.rollback(old);
        world.collect();
        assert_eq!((world.store.buried(), world.deltas()), (0, 0));
    }
}

/// The same of one that was covered by an unfinished insert when it was looked at.
#[test]
fn row_with_very_many_versions_that_was_covered_goes_once_it_is_covered_no_more() {
    let world = World::with_options(4096, 512, CHAINS);
    let tree = world.table();
    let old = world.begin_olap();
    let slot = write_and_delete(&world, &tree, b"k", 1_000);
    let over = world.begin();
    world.put(&over, &tree, b"k", b"again").unwrap();
    world.collect();
    assert_eq!((world.heads(&tree), world.store.held(slot)), (1, 1));
    assert!(world.deltas() > 1_000, "nobody has come to its end");
    world.rollback(over);
    for _ in 0..3 {
        world.collect();
    }
    assert_eq!((world.heads(&tree), world.store.held(slot)), (0, 0));
    assert_eq!((world.store.buried(), world.deltas()), (0, 0));
    assert_eq!(world.rows(&old, &tree), []);
    world.rollback(old);
}

/// The same of one whose key is too long for a graveyard: in the main index it is in everybody's way.
#[test]
fn row_with_very_many_versions_and_too_long_a_key_is_not_kept_in_the_main_index() {
    for versions in [200, 1_000] {
        let world = World::with_options(4096, 512, CHAINS);
        let tree = world.table();
        let old = world.begin_olap();
        let slot = write_and_delete(&world, &tree, &[b'k'; 1_000], versions);
        let mut budget = Budget::new(1_000, 1 << 20).lazy();
        world.collect_slot(slot, &mut budget).unwrap();
        assert_eq!(world.heads(&tree) > 0, versions > 256);
        for _ in 0..3 {
            world.collect();
        }
        assert_eq!((world.heads(&tree), world.store.held(slot)), (0, 0));
        assert_eq!((world.store.buried(), world.deltas()), (0, 0));
        assert_eq!(world.rows(&old, &tree), []);
        world.rollback(old);
    }
}

/// V51: a chain that ends at a bound is followed again under the leaf's latch, where a long one is not. So it stays, and is not looked at for ever.
#[test]
fn long_chain_that_ends_at_a_bound_stays_in_the_main_index_and_costs_nothing_more() {
    let mut world = World::new(4096, 512);
    world.store.sweeps_parts = true;
    let (tree, key) = (world.table(), [b'k'; 1_000]);
    let old = world.begin_olap();
    world.manager.pass();
    for value in [b"first", b"other"] {
        let tx = world.begin();
        world.put(&tx, &tree, &key, value).unwrap();
        world.commit(tx);
    }
    let tx = world.begin();
    let slot = tx.slot();
    assert!(world.delete(&tx, &tree, &key).unwrap().existed);
    // Deletes, and inserts over them, have no bound.
    for _ in 0..150 {
        world.put(&tx, &tree, &key, b"again").unwrap();
        assert!(world.delete(&tx, &tree, &key).unwrap().existed);
    }
    world.commit(tx);
    for _ in 0..3 {
        world.collect();
    }
    assert_eq!((world.heads(&tree), world.store.held(slot)), (1, 1));
    assert_eq!(world.deltas(), 301, "that of the second version is swept");
    let mut budget = Budget::new(1_000, u64::MAX);
    let collected = world.collect_slot(slot, &mut budget).unwrap();
    assert!(!collected.more && budget.items() > 900, "{budget:?}");
    assert_eq!(world.rows(&old, &tree), []);
    world.rollback(old);
    world.collect();
    assert_eq!((world.heads(&tree), world.deltas()), (0, 0));
}
