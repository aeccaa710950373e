//! What versions leave behind: when it goes, that it goes once, and what keeps it.

use super::world::{SLOTS, World};
use crate::Change;
use crate::row::Shape;
use std::sync::{Arc, OnceLock};
use vellum_base::SlotId;
use vellum_btree::Tree;
use vellum_gc::Budget;
use vellum_io::{Call, Fault};
use vellum_sync::test_point::TestPoints;
use vellum_txn::Transaction;
use vellum_wal::Purpose;

/// Puts a chain of `value` under `key`; gives the reference's bytes.
fn put_chain(world: &World, tx: &Transaction, tree: &Tree, key: &[u8], value: &[u8]) -> Vec<u8> {
    let chain = world.write_chain(tx, value);
    let body = chain.encode();
    world
        .change(tx, tree, key, |_| Change::Put(Shape::CHAINED, &body))
        .unwrap();
    world.store.adopt(tx, chain.root).unwrap();
    body.to_vec()
}

#[test]
fn tombstone_goes_when_the_delete_is_below_every_snapshot_and_does_not_wait_for_hardening() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", b"v").unwrap();
    world.commit(tx);
    let old = world.begin();
    let tx = world.begin();
    let slot = tx.slot();
    world.delete(&tx, &tree, b"k").unwrap();
    world.commit(tx);
    world.collect();
    assert_eq!(world.heads(&tree), 1, "the old snapshot sees the row");
    assert_eq!(world.get(&old, &tree, b"k"), Some(b"v".to_vec()));
    world.rollback(old);
    let hardened = world.log.horizon();
    let tx = world.begin();
    world.put(&tx, &tree, b"m", b"v").unwrap();
    world.commit(tx);
    let tx = world.begin();
    world.delete(&tx, &tree, b"m").unwrap();
    let second = tx.slot();
    world.commit(tx);
    for slot in [slot, second] {
        let mut budget = Budget::UNBOUNDED;
        world.collect_slot(slot, &mut budget).unwrap();
    }
    assert_eq!(world.heads(&tree), 0);
    assert_eq!(world.log.horizon(), hardened, "no round was since");
}

#[test]
fn trap_insert_over_a_tombstone_whose_entry_came_up_and_its_abort_leave_nothing_for_ever() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", b"v").unwrap();
    world.commit(tx);
    let tx = world.begin();
    world.delete(&tx, &tree, b"k").unwrap();
    world.commit(tx);
    // In another slot, so that the deleter's can be collected.
    let hold = world.begin();
    let over = world.begin();
    world.rollback(hold);
    world.put(&over, &tree, b"k", b"again").unwrap();
    // The entry finds another head, which may be reverted: it is kept for another look.
    world.collect();
    world.rollback(over);
    assert_eq!(world.get(&world.begin(), &tree, b"k"), None);
    assert_eq!(world.heads(&tree), 1, "the tombstone came back");
    world.collect();
    assert_eq!(world.heads(&tree), 0);
}

#[test]
fn tombstone_that_everyone_sees_makes_room_in_a_full_page() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", b"v").unwrap();
    world.commit(tx);
    let old = world.begin();
    let tx = world.begin();
    world.delete(&tx, &tree, b"k").unwrap();
    world.commit(tx);
    let fill = |last: &[u8]| {
        let tx = world.begin();
        for number in 0u32..60 {
            let key = [b"k".as_slice(), &number.to_be_bytes(), last].concat();
            world.put(&tx, &tree, &key, &[1; 100]).unwrap();
        }
        world.commit(tx);
    };
    fill(b"a");
    assert_eq!(world.heads(&tree), 61, "the old snapshot sees the row");
    world.rollback(old);
    world.manager.pass();
    fill(b"b");
    assert_eq!(world.heads(&tree), 120);
}

#[test]
fn chains_are_freed_once_when_later_work_of_the_batch_fails() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let value = vec![7; 20_000];
    let tx = world.begin();
    let bodies: Vec<_> = (0..3u8)
        .map(|key| put_chain(&world, &tx, &tree, &[key], &value))
        .collect();
    world.commit(tx);
    let tx = world.begin();
    let slot = tx.slot();
    for (key, body) in (0..3u8).zip(&bodies) {
        world.delete(&tx, &tree, &[key]).unwrap();
        world
            .store
            .disown_chain(&tx, tree.root(), body, None)
            .unwrap();
    }
    world.commit(tx);
    world.log.flush_round().unwrap();
    assert_eq!(world.pending(), 3);
    // Something fails after the first chain is free: as if the log were full.
    let mut budget = Budget::new(4, u64::MAX);
    world.collect_slot(slot, &mut budget).unwrap();
    assert_eq!(world.pending(), 2);
    // Its entry is there again, as after a failed removal.
    let done = world
        .store
        .slot(slot)
        .unwrap()
        .collecting
        .lock()
        .done
        .through
        .clone();
    assert!(!done.is_empty());
    // Its pages belong to somebody else now: the same roots, all of them.
    let tx = world.begin();
    put_chain(&world, &tx, &tree, b"new", &value);
    world.commit(tx);
    world.collect();
    let reader = world.begin();
    let body = world.get(&reader, &tree, b"new").unwrap();
    let read = world.read_chain(&reader, &body);
    assert_eq!(read, value);
    assert_eq!(world.pending(), 0);
}

#[test]
fn regress_work_that_was_done_is_not_done_again_when_its_entry_could_not_go() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let value = vec![7; 20_000];
    let tx = world.begin();
    let body = put_chain(&world, &tx, &tree, b"k", &value);
    world.commit(tx);
    let tx = world.begin();
    let slot = tx.slot();
    world.delete(&tx, &tree, b"k").unwrap();
    world
        .store
        .disown_chain(&tx, tree.root(), &body, None)
        .unwrap();
    world.commit(tx);
    world.log.flush_round().unwrap();
    let versions = world.store.slot(slot).unwrap();
    let mut entries = Vec::new();
    let mut leaf = vellum_btree::LeafCopy::new(4096);
    versions
        .work
        .read_leaf(vellum_btree::Seek::First, &mut leaf)
        .unwrap();
    for index in 0..leaf.len() {
        let mut key = Vec::new();
        leaf.key(index, &mut key);
        entries.push((key, leaf.payload(index).to_vec()));
    }
    assert_eq!(entries.len(), 1, "a chain");
    world.collect();
    // The root is the root of another chain, and the old entries come back.
    let tx = world.begin();
    let new = put_chain(&world, &tx, &tree, b"new", &value);
    assert_eq!(new, body, "the pages are used again");
    world.commit(tx);
    for (key, payload) in &entries {
        versions.work.put(key, payload, None).unwrap();
    }
    // Not removed (a busy tree), and not even tried (a failure): the work is not done again.
    for is_removed in [true, false] {
        versions.collecting.lock().done.is_removed = is_removed;
        world.collect();
        let reader = world.begin();
        let body = world.get(&reader, &tree, b"new").unwrap();
        let read = world.read_chain(&reader, &body);
        assert_eq!(read, value);
        assert_eq!(world.heads(&versions.work) == 0, !is_removed);
    }
}

#[test]
fn freeing_of_a_long_chain_is_spread_over_steps() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    let body = put_chain(&world, &tx, &tree, b"k", &vec![1; 4096 * 400]);
    world.commit(tx);
    let full = world.pages_in_use();
    let tx = world.begin();
    let slot = tx.slot();
    world.delete(&tx, &tree, b"k").unwrap();
    world
        .store
        .disown_chain(&tx, tree.root(), &body, None)
        .unwrap();
    world.commit(tx);
    world.log.flush_round().unwrap();
    let mut steps = 0;
    loop {
        let before = world.pages_in_use();
        let mut budget = Budget::new(1000, 1000);
        let collected = world.collect_slot(slot, &mut budget).unwrap();
        assert!(before - world.pages_in_use() < 200, "a bounded step");
        steps += 1;
        if !collected.more {
            break;
        }
    }
    assert!(steps > 3, "{steps} steps");
    assert!(world.pages_in_use() < full - 390);
    assert_eq!(world.pending(), 0);
}

#[test]
fn rollback_forgets_the_work_of_what_it_reverts() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let value = vec![7; 20_000];
    let tx = world.begin();
    let body = put_chain(&world, &tx, &tree, b"k", &value);
    world.commit(tx);
    let tx = world.begin();
    let slot = tx.slot();
    let savepoint = tx.savepoint();
    world.delete(&tx, &tree, b"k").unwrap();
    world
        .store
        .disown_chain(&tx, tree.root(), &body, None)
        .unwrap();
    world.rollback_to(&tx, &savepoint);
    world.put(&tx, &tree, b"other", b"v").unwrap();
    world.commit(tx);
    let versions = world.store.slot(slot).unwrap();
    assert_eq!(world.heads(&versions.work), 0);
    assert_eq!(world.heads(&versions.tombstones), 0);
    world.collect();
    let reader = world.begin();
    let body = world.get(&reader, &tree, b"k").unwrap();
    let read = world.read_chain(&reader, &body);
    assert_eq!(read, value);
    assert_eq!(world.pending(), 0);
}

#[test]
fn dropped_tree_goes_after_a_flush_round_that_begins_when_its_writers_have_ended() {
    let world = World::new(4096, 64);
    let before = world.pages_in_use();
    let tx = world.begin();
    let tree = world.store.create_tree(&tx).unwrap();
    for number in 0u32..500 {
        world
            .put(&tx, &tree, &number.to_be_bytes(), &[1; 50])
            .unwrap();
    }
    world.store.adopt(&tx, tree.root()).unwrap();
    world.commit(tx);
    // A writer in the tree; its drop; the end of the writer.
    let writer = world.begin();
    world.put(&writer, &tree, b"late", b"v").unwrap();
    let tx = world.begin();
    let slot = tx.slot();
    world.disown(&tx, &tree);
    world.commit(tx);
    world.collect();
    assert_eq!(
        world.pending(),
        1,
        "the writer may still have to revert rows there"
    );
    world.commit(writer);
    // The writer's commit is not hardened: after a crash it would be undone, in this tree.
    let end = world.manager.clock().now();
    let mut budget = Budget::UNBOUNDED;
    world.collect_slot(slot, &mut budget).unwrap();
    assert_eq!(world.pending(), 0);
    assert!(world.log.horizon() >= end, "a round came first");
    world.collect();
    assert!(world.pages_in_use() < before + 16);
}

#[test]
fn dropped_tree_waits_for_parked_writers() {
    let world = World::new(4096, 64);
    let tx = world.begin();
    let tree = world.store.create_tree(&tx).unwrap();
    world.put(&tx, &tree, b"k", b"v").unwrap();
    world.store.adopt(&tx, tree.root()).unwrap();
    world.commit(tx);
    let parked = world.begin();
    let parked_slot = parked.slot();
    world.put(&parked, &tree, b"k", b"w").unwrap();
    let tx = world.begin();
    world.disown(&tx, &tree);
    world.commit(tx);
    drop(parked);
    world.collect();
    assert_eq!(world.pending(), 1);
    let writer = world.manager.take_parked(parked_slot).unwrap();
    world.collect();
    assert_eq!(world.pending(), 1, "who reverts it is at work");
    let log = world.log.slot(parked_slot);
    let mut reverter = crate::Reverter::running(&world.store, log, &world.carried);
    writer.rollback(&mut reverter).unwrap();
    assert_eq!(world.get(&world.begin(), &tree, b"k"), Some(b"v".to_vec()));
    world.collect();
    assert_eq!(world.pending(), 0);
}

#[test]
fn collection_that_meets_a_failing_disk_goes_on_where_it_stopped() {
    let world = World::new(4096, 32);
    let tree = world.table();
    let tx = world.begin();
    for number in 0u32..2000 {
        world
            .put(&tx, &tree, &number.to_be_bytes(), &[1; 50])
            .unwrap();
    }
    world.commit(tx);
    let tx = world.begin();
    for number in 0u32..2000 {
        world.delete(&tx, &tree, &number.to_be_bytes()).unwrap();
    }
    world.commit(tx);
    world.log.flush_round().unwrap();
    let mut failures = 0;
    loop {
        world.directory.fail(Fault::nth(Call::Read, 5));
        let slots: Vec<_> = (0..SLOTS).map(SlotId).collect();
        let mut more = false;
        for slot in slots {
            match world.collect_slot(slot, &mut Budget::new(100, u64::MAX)) {
                Ok(collected) => more |= collected.more,
                Err(_) => {
                    failures += 1;
                    more = true;
                }
            }
        }
        world.directory.clear_faults();
        if !more {
            break;
        }
    }
    assert!(failures > 0, "the disk failed in between");
    world.collect();
    assert_eq!(world.heads(&tree), 0);
}

#[test]
fn chains_of_a_dropped_table_go_with_it_whatever_fails_in_between() {
    let world = World::new(4096, 32);
    let before = world.space.counts().durable;
    let tx = world.begin();
    let tree = world.store.create_tree(&tx).unwrap();
    for number in 0u32..300 {
        let key = number.to_be_bytes();
        if number % 9 == 0 {
            put_chain(&world, &tx, &tree, &key, &[7; 9000]);
        } else {
            world.put(&tx, &tree, &key, &[1; 200]).unwrap();
        }
    }
    world.store.adopt(&tx, tree.root()).unwrap();
    world.commit(tx);
    assert!(world.space.counts().durable > before + 100);
    let tx = world.begin();
    let slot = tx.slot();
    world.disown(&tx, &tree);
    world.commit(tx);
    world.log.flush_round().unwrap();
    let (mut failures, mut rounds) = (0, 0);
    let log = world.log.slot(SlotId(SLOTS));
    loop {
        world.directory.fail(Fault::nth(Call::Read, 12).on("data"));
        let collected = world.collect_slot(slot, &mut Budget::new(100, 1 << 16));
        failures += u32::from(collected.is_err());
        world.directory.clear_faults();
        // What failed is tried again some steps later; of a chain maintenance does that.
        world.directory.fail(Fault::nth(Call::Read, 12).on("data"));
        let again = world.store.free_ownerless_and(Vec::new, log);
        failures += u32::from(again.is_err());
        world.directory.clear_faults();
        if collected.is_ok_and(|collected| !collected.more) && world.pending() == 0 {
            break;
        }
        rounds += 1;
        assert!(rounds < 100_000, "it gets on");
    }
    assert!(failures > 0, "the disk failed in between");
    assert_eq!(world.space.counts().durable, before);
}

#[test]
fn a_dropped_table_goes_in_bounded_steps_whatever_the_length_of_a_value() {
    let world = World::new(4096, 64);
    let before = world.pages_in_use();
    let tx = world.begin();
    let tree = world.store.create_tree(&tx).unwrap();
    put_chain(&world, &tx, &tree, b"k", &vec![3; 4_000_000]);
    world.store.adopt(&tx, tree.root()).unwrap();
    world.commit(tx);
    let full = world.pages_in_use();
    assert!(full > before + 900);
    let tx = world.begin();
    let log = world.log_of(&tx);
    let (mut steps, mut left) = (0, full);
    while !world
        .store
        .free_dropped_step(tree.root(), log, Purpose::Optional)
        .unwrap()
    {
        let now = world.pages_in_use();
        assert!(left - now < 100, "{} pages in one step", left - now);
        left = now;
        steps += 1;
    }
    assert!(steps > 10, "{steps} steps");
    world.rollback(tx);
}

#[test]
fn a_dropped_table_is_forgotten_when_no_list_names_it_any_more_and_not_before() {
    let world = World::new(4096, 64);
    // A tombstone that nobody has looked at yet names the first.
    let first = world.table();
    let tx = world.begin();
    world.put(&tx, &first, b"k", b"v").unwrap();
    world.commit(tx);
    let hold = world.begin();
    let tx = world.begin();
    let of_delete = tx.slot();
    world.delete(&tx, &first, b"k").unwrap();
    world.commit(tx);
    let mut trees = vec![first];
    trees.extend((0..100).map(|_| world.table()));
    let keep = world.begin();
    let tx = world.begin();
    let of_drop = tx.slot();
    assert_ne!(of_drop, of_delete, "a slot of its own");
    for tree in &trees {
        world.disown(&tx, tree);
    }
    world.commit(tx);
    world.rollback(hold);
    world.rollback(keep);
    world.log.flush_round().unwrap();
    let collect = |slot: SlotId| {
        while world
            .collect_slot(slot, &mut { Budget::UNBOUNDED })
            .unwrap()
            .more
        {}
    };
    let forget = || {
        for _ in 0..2 {
            let tx = world.begin();
            let now = tx.stamp().unwrap();
            world.rollback(tx);
            world.store.forget_dropped(|| now).unwrap();
        }
        world.store.dropped_known()
    };
    collect(of_drop);
    assert_eq!(world.pending(), 0, "their pages are free");
    assert_eq!(forget(), trees.len(), "a list names one of them");
    collect(of_delete);
    // What was looked at leaves the list when nothing is left to look at.
    collect(of_delete);
    assert_eq!(forget(), 0);
    // A tree on a page that was such a root is a tree as any other.
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", b"v").unwrap();
    world.delete(&tx, &tree, b"k").unwrap();
    world.commit(tx);
    world.collect();
    assert_eq!(world.heads(&tree), 0);
}

/// Symptom: none was seen (found by reading). Cause: the clock for trees that are gone was read before it was known which are gone; of one
/// that went meanwhile a list had a younger entry, so the tree was forgotten while that named it. Guard: V55, the clock is read last.
#[test]
fn a_table_that_goes_while_lists_are_looked_at_is_not_forgotten_before_its_entries() {
    let world = Arc::new(World::new(4096, 64));
    let drop_all = |world: &World, trees: &[Tree]| {
        let tx = world.begin();
        let slot = tx.slot();
        for tree in trees {
            world.disown(&tx, tree);
        }
        world.commit(tx);
        slot
    };
    let collect = |world: &World, slot: SlotId| {
        world.log.flush_round().unwrap();
        world.manager.domain().pass();
        while world
            .collect_slot(slot, &mut { Budget::UNBOUNDED })
            .unwrap()
            .more
        {}
    };
    let forget = |world: &World| {
        let now = || {
            let tx = world.begin();
            let now = tx.stamp().unwrap();
            world.rollback(tx);
            now
        };
        world.store.forget_dropped(now).unwrap();
    };
    // Enough for lists to be looked through.
    let many: Vec<Tree> = (0..100).map(|_| world.table()).collect();
    let slot = drop_all(&world, &many);
    collect(&world, slot);
    assert_eq!(world.pending(), 0, "their pages are free");
    let went = Arc::new(OnceLock::new());
    let points = TestPoints::new();
    {
        let (world, went, points) = (world.clone(), went.clone(), points.clone());
        points.clone().on("dropped: lists were looked at", move || {
            points.off("dropped: lists were looked at");
            let tree = world.table();
            let tx = world.begin();
            world.put(&tx, &tree, b"k", b"v").unwrap();
            world.commit(tx);
            let (hold, tx) = (world.begin(), world.begin());
            let of_delete = tx.slot();
            world.delete(&tx, &tree, b"k").unwrap();
            world.commit(tx);
            let keep = world.begin();
            let of_drop = drop_all(&world, std::slice::from_ref(&tree));
            assert_ne!(of_drop, of_delete, "a slot of its own");
            world.rollback(hold);
            world.rollback(keep);
            collect(&world, of_drop);
            assert_eq!(world.pending(), 0, "its pages are free");
            went.set((tree.root(), of_delete)).unwrap();
        });
    }
    {
        let _entered = points.enter();
        forget(&world);
    }
    let (root, of_delete) = *went.get().expect("a tree went meanwhile");
    forget(&world);
    assert!(
        world.store.dropped().read().contains(root),
        "a list names it"
    );
    collect(&world, of_delete);
    collect(&world, of_delete);
    for _ in 0..2 {
        forget(&world);
    }
    assert_eq!(world.store.dropped_known(), 0);
}

/// Leaves that are emptied together are joined once all are, and none stays.
#[test]
fn deltas_of_dropped_rows_go_with_the_pages_that_they_filled() {
    let world = World::new(4096, 512);
    let tree = world.table();
    let write = |key: u64, value: Option<&[u8]>| {
        let tx = world.begin();
        match value {
            Some(value) => world.put(&tx, &tree, &key.to_be_bytes(), value).unwrap(),
            None => world.delete(&tx, &tree, &key.to_be_bytes()).unwrap(),
        };
        world.commit(tx);
    };
    write(0, Some(&[7; 100]));
    let old = world.begin_olap();
    assert_eq!(world.rows(&old, &tree).len(), 1);
    // What the old snapshot sees stays at the left edge of the deltas.
    write(0, None);
    world.collect();
    let before = world.pages_in_use();
    for round in 0..4 {
        let keys = 1 + 600 * round..=600 * (round + 1);
        for key in keys.clone() {
            write(key, Some(&[7; 100]));
        }
        for key in keys {
            write(key, None);
        }
        world.collect();
        assert!(world.deltas() <= 2, "{} deltas", world.deltas());
        let pages = world.pages_in_use();
        assert!(pages <= before + 4, "{before} pages, {pages} after {round}");
    }
    assert_eq!(world.rows(&old, &tree), [(vec![0; 8], vec![7; 100])]);
}
