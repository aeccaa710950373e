//! What a collector does about a part of its own lists, of a delta index, or of what it is to free, that it cannot read, and about a pool without a free page.

use super::given_up::large_row;
use super::world::{SLOTS, World};
use crate::VersionError;
use crate::delta::Home;
use crate::pending::PendingKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vellum_base::{PageId, SlotId, StorageError};
use vellum_btree::{Journal, Tree};
use vellum_gc::Budget;
use vellum_sync::test_point::TestPoints;
use vellum_wal::Purpose;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn fill(world: &World, tree: &Tree, numbers: std::ops::Range<u32>) {
    let tx = world.begin();
    for number in numbers {
        world.put(&tx, tree, &key(number), &[1; 50]).unwrap();
    }
    world.commit(tx);
}

/// Deletes rows; returns the slot that did.
fn delete(world: &World, tree: &Tree, numbers: std::ops::Range<u32>) -> SlotId {
    let tx = world.begin();
    let slot = tx.slot();
    for number in numbers {
        world.delete(&tx, tree, &key(number)).unwrap();
    }
    world.commit(tx);
    slot
}

/// Writes all pages out, and has others in memory.
fn evict(world: &World) {
    let other = world.table();
    for part in 0..20 {
        fill(world, &other, part * 100..part * 100 + 100);
    }
}

/// The leaf of a key, which is in memory.
fn leaf_of(tree: &Tree, key: &[u8]) -> PageId {
    let mut leaf = [PageId::ZERO];
    tree.find_leaves(&[key], &mut leaf);
    leaf[0]
}

fn flip(world: &World, page: PageId) {
    let page_size = world.store.context().page_size() as u64;
    let at = page.get() * page_size + page_size - 40;
    world.directory.flip_bit("data", at, 3).unwrap();
}

/// Symptom: a leaf of a delta index that could not be read kept the before-images of all rows that were dropped after that, as long as the oldest
/// snapshot was open; the list of what was to go grew, and each dropped row walked it. Cause: taking them out ended at the first error, and
/// everything was tried again from the start. Guard: names behind it are gone on with, and nothing is tried again.
#[test]
fn unreadable_leaf_of_a_delta_index_keeps_no_other_before_images() {
    let world = World::new(4096, 24);
    let tree = world.table();
    let old = world.begin_olap();
    fill(&world, &tree, 0..1000);
    let slot = delete(&world, &tree, 0..1000);
    let deltas = world.store.deltas(slot, Home::Lasting).unwrap();
    let mut names = Vec::new();
    world.each_row(deltas, |name, _| names.push(name.to_vec()));
    assert_eq!(names.len(), 1000);
    let leaf_of = |name: &[u8]| leaf_of(deltas, name);
    let damaged = leaf_of(&names[500]);
    assert!(damaged != leaf_of(&names[0]) && damaged != leaf_of(&names[999]));
    let in_damaged = names.iter().filter(|name| leaf_of(name) == damaged).count();
    evict(&world);
    flip(&world, damaged);
    world.log.flush_round().unwrap();
    let mut told = 0;
    for _ in 0..200 {
        let step = world.collect_slot(slot, &mut Budget::new(100, u64::MAX));
        told += usize::from(matches!(step, Err(VersionError::Storage(_))));
    }
    assert!(told > 0, "somebody hears of it");
    assert_eq!(world.heads(&tree), 0);
    assert_eq!(world.store.waiting_to_go(slot), 0);
    flip(&world, damaged);
    assert!(
        world.deltas() <= in_damaged,
        "{} of {in_damaged} that could not be read",
        world.deltas()
    );
    assert_eq!(world.rows(&old, &tree), []);
    world.rollback(old);
    world.collect();
    assert_eq!(world.deltas(), 0);
}

/// Puts other values over rows; returns the slot that did.
fn update(world: &World, tree: &Tree, numbers: std::ops::Range<u32>) -> SlotId {
    let tx = world.begin();
    let slot = tx.slot();
    for number in numbers {
        world.put(&tx, tree, &key(number), &[2; 50]).unwrap();
    }
    world.commit(tx);
    slot
}

/// Each of a slot's delta indexes is collected whatever becomes of the other (V59).
#[test]
fn unreadable_leaf_of_one_delta_index_keeps_nothing_of_the_other() {
    for home in [Home::Lasting, Home::Transient] {
        let world = World::new(4096, 24);
        let tree = world.table();
        fill(&world, &tree, 0..400);
        let old = world.begin_olap();
        world.manager.pass();
        fill(&world, &tree, 1_000..1_400);
        let slot = update(&world, &tree, 0..400);
        assert_eq!(update(&world, &tree, 1_000..1_400), slot);
        let index = |home| world.store.deltas(slot, home).unwrap();
        let (of, other) = match home {
            Home::Lasting => (index(Home::Lasting), index(Home::Transient)),
            Home::Transient => (index(Home::Transient), index(Home::Lasting)),
        };
        assert_eq!((world.heads(of), world.heads(other)), (400, 400));
        let damaged = leaf_of(of, &[0]);
        evict(&world);
        flip(&world, damaged);
        world.rollback(old);
        world.log.flush_round().unwrap();
        let mut told = 0;
        for _ in 0..50 {
            let mut budget = Budget::UNBOUNDED;
            let step = world.collect_slot(slot, &mut budget);
            told += usize::from(matches!(step, Err(VersionError::Storage(_))));
        }
        assert!(told > 0, "somebody hears of it");
        assert_eq!(world.heads(other), 0, "beside {home:?}");
        flip(&world, damaged);
        world.collect();
        assert_eq!(world.deltas(), 0);
    }
}

/// Which index the delta of a version is in says its header: nobody reads the other one for it (V76).
#[test]
fn rollback_reads_no_index_that_its_deltas_are_not_in() {
    let world = World::new(4096, 24);
    let tree = world.table();
    fill(&world, &tree, 0..1);
    let old = world.begin_olap();
    world.manager.pass();
    fill(&world, &tree, 1..2);
    let tx = world.begin();
    world.put(&tx, &tree, &key(1), &[3; 50]).unwrap();
    let savepoint = tx.savepoint();
    world.put(&tx, &tree, &key(0), &[3; 50]).unwrap();
    let index = |home| world.store.deltas(tx.slot(), home).unwrap();
    let transient = index(Home::Transient);
    assert_eq!(
        (world.heads(index(Home::Lasting)), world.heads(transient)),
        (1, 1)
    );
    let damaged = transient.root();
    evict(&world);
    flip(&world, damaged);
    world.rollback_to(&tx, &savepoint);
    assert_eq!(world.get(&tx, &tree, &key(0)), Some(vec![1; 50]));
    flip(&world, damaged);
    world.rollback(tx);
    let now = world.begin();
    assert_eq!(world.get(&now, &tree, &key(1)), Some(vec![1; 50]));
    world.rollback(now);
    world.rollback(old);
}

/// Symptom: rounds over held tombstones followed one another for as long as one of them could not be read. Cause: each step of a round asked whether patience
/// was over, as it was since before the round. Guard: it is asked between rounds.
#[test]
fn what_cannot_be_read_is_waited_for_after_rounds_of_many_steps() {
    let world = World::new(4096, 24);
    let (damaged, good) = (world.table(), world.table());
    fill(&world, &damaged, 0..1);
    fill(&world, &good, 0..300);
    let old = world.begin_olap();
    let slot = delete(&world, &damaged, 0..1);
    assert_eq!(delete(&world, &good, 0..300), slot);
    evict(&world);
    flip(&world, damaged.root());
    world.log.flush_round().unwrap();
    let mut told = 0;
    for _ in 0..14_000 {
        let step = world.collect_slot(slot, &mut Budget::new(1, u64::MAX));
        told += usize::from(matches!(step, Err(VersionError::Storage(_))));
    }
    assert_eq!(world.store.held(slot), 301);
    // 301 steps a round, and 1, 2, 4, … 256 between two of them: without these it were 46.
    assert!((20..38).contains(&told), "{told} looks");
    world.rollback(old);
}

/// A dropped tree is counted once its page can be read again; it keeps no other out of the accounts, and nobody answers for it when it is to go.
#[test]
fn dropped_tree_that_cannot_be_read_is_counted_later_and_keeps_no_other() {
    let world = World::new(4096, 24);
    let (mut trees, domain) = ([world.table(), world.table()], world.manager.domain());
    trees.sort_by_key(Tree::root);
    trees.iter().for_each(|tree| fill(&world, tree, 0..5));
    let old = world.begin_olap();
    for tree in &trees {
        let tx = world.begin();
        world.disown(&tx, tree);
        world.commit(tx);
    }
    evict(&world);
    flip(&world, trees[0].root());
    let count = || world.store.count_dropped(domain, 100);
    let total = || world.store.dropped_total(domain).count;
    let is_complete = || world.store.census(domain, 1_000).unwrap().1;
    assert!(matches!(count(), Err(VersionError::Storage(_))));
    assert_eq!((total(), is_complete()), (1, false), "the other one");
    let told = (0..100).filter(|_| count().is_err()).count();
    assert!((4..10).contains(&told), "{told} looks");
    flip(&world, trees[0].root());
    for _ in 0..256 {
        count().unwrap();
    }
    assert_eq!((total(), is_complete()), (2, true));
    let kept = || {
        let holders = world.manager.holders();
        world.store.dropped_bytes_kept_for(domain, &holders)
    };
    assert_eq!(kept(), 2 * 4096);
    let younger = world.begin_olap();
    evict(&world);
    flip(&world, trees[0].root());
    world.rollback(old);
    for slot in (0..SLOTS).map(SlotId) {
        let mut budget = Budget::UNBOUNDED;
        let _ = world.collect_slot(slot, &mut budget);
    }
    assert_eq!((total(), kept()), (1, 0), "it cannot be given back");
    flip(&world, trees[0].root());
    world.rollback(younger);
}

/// Symptom: no dropped table gave its pages back any more. Cause: the chain that could not be read was the next one to be freed, of whatever table. Guard: it is
/// given up, and tried again for itself.
#[test]
fn chain_of_a_dropped_tree_that_cannot_be_read_keeps_no_other_tree() {
    let world = World::new(4096, 24);
    let durable = || world.space.counts().durable;
    let before = durable();
    let trees = [world.table(), world.table()];
    trees.iter().for_each(|tree| fill(&world, tree, 1..300));
    let mut chains = Vec::new();
    for tree in &trees {
        let tx = world.begin();
        chains.push(large_row(&world, &tx, tree, &key(0), 30_000));
        world.commit(tx);
    }
    let both = durable() - before;
    for tree in &trees {
        let tx = world.begin();
        world.disown(&tx, tree);
        world.commit(tx);
    }
    evict(&world);
    flip(&world, chains[0]);
    world.log.flush_round().unwrap();
    let dropped = durable();
    for _ in 0..20 {
        for slot in (0..SLOTS).map(SlotId) {
            let mut budget = Budget::UNBOUNDED;
            let _ = world.collect_slot(slot, &mut budget);
        }
    }
    assert_eq!(world.pending(), 1, "the chain");
    let chain = 30_000_u64.div_ceil(4096 - 40);
    assert_eq!(dropped - durable(), both - chain);
    // Told, and tried again ever more seldom.
    let log = world.log.slot(SlotId(SLOTS));
    let again = || world.store.free_ownerless_and(Vec::new, log);
    let told = (0..100).filter(|_| again().is_err()).count();
    assert!((4..10).contains(&told), "{told} looks");
    flip(&world, chains[0]);
    for _ in 0..=256 {
        again().unwrap();
    }
    assert_eq!((world.pending(), dropped - durable()), (0, both));
}

/// Symptom: no dropped table gave its pages back any more. Cause: each step frees graveyards of dropped indexes first, and one that could not be read was the next.
/// Guard: what is left of it is the next start's.
#[test]
fn graveyard_that_cannot_be_read_keeps_no_dropped_tree() {
    let world = World::new(4096, 24);
    let tree = world.table();
    fill(&world, &tree, 0..300);
    let old = world.begin_olap();
    let slot = delete(&world, &tree, 0..300);
    world.log.flush_round().unwrap();
    let mut budget = Budget::UNBOUNDED;
    world.collect_slot(slot, &mut budget).unwrap();
    assert_eq!(world.store.buried(), 300);
    let graveyard = world.store.graveyards().find(tree.root()).unwrap();
    let damaged = graveyard.occupied().unwrap().root();
    let tx = world.begin();
    world.disown(&tx, &tree);
    world.commit(tx);
    evict(&world);
    flip(&world, damaged);
    let log = world.log.slot(SlotId(SLOTS));
    let step = || {
        let store = &world.store;
        store.free_dropped_step(tree.root(), log, Purpose::Optional)
    };
    assert!(step().is_err(), "somebody hears of it");
    for _ in 0..20 {
        if step().unwrap() {
            break;
        }
    }
    assert_eq!(world.pending(), 0);
    flip(&world, damaged);
    world.rollback(old);
}

/// As a database is opened. A crash has left a dropped tree with a row whose chain is listed itself: whoever frees that chain first frees it twice.
#[test]
fn chain_that_a_row_of_an_unreadable_dropped_tree_may_refer_to_waits_for_the_tree() {
    // The leaf with that row; the last one.
    for first in [true, false] {
        let world = World::new(4096, 24);
        let durable = || world.space.counts().durable;
        let before = durable();
        let tree = world.table();
        fill(&world, &tree, 1..1000);
        let tx = world.begin();
        let chain = large_row(&world, &tx, &tree, &key(0), 30_000);
        world.commit(tx);
        let tx = world.begin();
        world.disown(&tx, &tree);
        world.commit(tx);
        let all = durable() - before;
        let log = world.log.slot(SlotId(SLOTS));
        let journal = Some(Journal::new(log, Purpose::Checkpoint));
        let list = world.store.pending_free();
        let (name, listed) = (chain.get().to_be_bytes(), PendingKind::Chain.payload());
        list.put(&name, listed, journal).unwrap();
        let damaged = leaf_of(&tree, &key(if first { 0 } else { 999 }));
        assert_ne!(damaged, tree.root());
        evict(&world);
        flip(&world, damaged);
        let dropped = durable();
        world.store.free_all_listed(log, Purpose::Undo).unwrap();
        let chain = 30_000_u64.div_ceil(4096 - 40);
        let freed = if first { (2, 0) } else { (1, chain) };
        assert_eq!((world.pending(), dropped - durable()), freed);
        // Somebody else has its pages by now, if anybody can, and lists the same root.
        let tx = world.begin();
        let written = world.write_chain(&tx, &[5; 30_000]);
        let again = || {
            world
                .store
                .free_ownerless_and(|| vec![tx.stamp().unwrap()], log)
        };
        let told = (0..100).filter(|_| again().is_err()).count();
        assert!((4..10).contains(&told), "{told} looks");
        flip(&world, damaged);
        for _ in 0..=256 {
            again().unwrap();
        }
        assert_eq!((world.pending(), dropped + chain - durable()), (1, all));
        let value = world.read_chain(&tx, &written.encode());
        assert!(value == [5; 30_000]);
        world.rollback(tx);
    }
}

/// Symptom: a commit took minutes where the pool had no page to give: its collection looked at one deleted row after another, and each look waited two seconds
/// for a page. Cause: that was taken for an error of the row. Guard: it ends the step.
#[test]
fn pool_without_a_free_page_ends_a_step_of_collection_at_once() {
    let world = World::new(4096, 24);
    let tables: Vec<Tree> = (0..4).map(|_| world.table()).collect();
    tables.iter().for_each(|table| fill(&world, table, 0..1));
    let slot = delete(&world, &tables[0], 0..1);
    for table in &tables[1..] {
        assert_eq!(delete(&world, table, 0..1), slot);
    }
    evict(&world);
    world.log.flush_round().unwrap();
    let pool = world.store.context().pool();

    let mut latched = Vec::new();
    let other = world.table();
    fill(&world, &other, 0..1500);
    let mut leaves: Vec<PageId> = Vec::new();
    for number in 0..1500 {
        let mut leaf = [PageId::ZERO];
        other.find_leaves(&[&key(number)], &mut leaf);
        leaves.extend(leaf);
    }
    leaves.dedup();
    leaves.sort_unstable();
    leaves.dedup();
    for page in leaves {
        match pool.exclusive(page) {
            Ok(guard) => latched.push(guard),
            Err(error) => {
                assert!(matches!(error, StorageError::MemoryLimit { .. }));
                break;
            }
        }
    }

    let (points, met) = (TestPoints::new(), Arc::new(AtomicUsize::new(0)));
    let counted = met.clone();
    points.on("fault: every page in use", move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let domain = world.manager.domain();
    domain.pass();
    let step = {
        let _entered = points.enter();
        let mut budget = Budget::UNBOUNDED;
        let log = world.log.slot(SlotId(SLOTS));
        world.store.collect(domain, slot, log, &mut budget)
    };
    assert!(
        matches!(
            step,
            Err(VersionError::Storage(StorageError::MemoryLimit { .. }))
        ),
        "{step:?}"
    );
    assert_eq!(met.load(Ordering::Relaxed), 1);
    drop(latched);
    world.collect();
    assert!(tables.iter().all(|table| world.heads(table) == 0));
}

#[test]
fn lack_of_memory_is_no_fault_of_what_was_looked_at() {
    let of = |error| VersionError::from(error).concerns_one();
    assert!(!of(StorageError::MemoryLimit { what: "pool" }));
    assert!(!of(StorageError::Poisoned));
    assert!(of(crate::error::damaged("row", PageId(9))));
}
