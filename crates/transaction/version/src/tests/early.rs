//! Large values that no snapshot sees, under an older one that sees others.

use super::world::{SLOTS, World, holding, view};
use crate::row::Shape;
use crate::{Change, Scratch, Tally, VersionKind};
use vellum_base::{PageId, SlotId};
use vellum_btree::Tree;
use vellum_btree::overflow::ChainRef;
use vellum_gc::Budget;
use vellum_txn::{Class, Isolation, Transaction};

/// Few enough for the log to be flushed by nobody else than the test.
const BYTES: usize = 8_000;

/// Puts a large value of these bytes in the place of whatever is there.
fn replace(world: &World, tree: &Tree, byte: u8) {
    let tx = world.begin();
    replace_in(world, &tx, tree, b"k", byte);
    world.commit(tx);
}

fn replace_in(world: &World, tx: &Transaction, tree: &Tree, key: &[u8], byte: u8) {
    let chain = world.write_chain(tx, &vec![byte; BYTES]);
    let (body, mut scratch) = (chain.encode(), Scratch::default());
    let put = Change::Put(Shape::CHAINED, &body);
    world
        .store
        .write(&view(tx), tree, key, &mut scratch, |_| Ok(put))
        .unwrap();
    world.store.adopt(tx, chain.root).unwrap();
    if let Some((shape, old)) = scratch.replaced()
        && shape.overflow
    {
        let version = scratch.replaced_version();
        world
            .store
            .disown_chain(tx, tree.root(), old, version)
            .unwrap();
    }
}

fn value(world: &World, tree: &Tree, tx: &Transaction) -> Vec<u8> {
    let body = world.get(tx, tree, b"k").unwrap();
    let value = world.read_chain(tx, &body);
    assert_eq!(value.len(), BYTES);
    assert!(value.iter().all(|byte| *byte == value[0]));
    value
}

/// How many chains wait to be freed; the accounts say the same.
fn chains(world: &World) -> usize {
    let pending = world.pending();
    let (root, length) = (PageId(1), BYTES as u64);
    let each = ChainRef { root, length }.bytes_of_pages(4096);
    assert!(each > BYTES as u64 && each < BYTES as u64 + 2 * 4096);
    let (census, complete) = world.store.census(world.manager.domain(), 1_000).unwrap();
    let counted = census.values().map(|sums| sums.of(VersionKind::Chain));
    let counted = counted.fold(Tally::default(), |mut all, one| {
        all.add(one);
        all
    });
    assert!(complete);
    assert_eq!(counted.count, pending as u64);
    assert_eq!(counted.bytes, pending as u64 * each);
    assert_eq!(world.store.chain_bytes(), counted.bytes);
    pending
}

#[test]
fn large_values_that_only_oltp_saw_go_once_their_end_is_hardened() {
    let world = World::new(4096, 128);
    let tree = world.table();
    replace(&world, &tree, 0);
    let old = world.begin_olap();
    for byte in 1..=4 {
        replace(&world, &tree, byte);
    }
    for slot in (0..SLOTS).map(SlotId) {
        let mut budget = Budget::UNBOUNDED;
        world.collect_slot(slot, &mut budget).unwrap();
    }
    assert_eq!(chains(&world), 4, "a crash may bring them back");
    let pages = world.pages_in_use();
    world.collect();
    assert_eq!(chains(&world), 1, "what the old snapshot sees");
    assert!(world.pages_in_use() + 3 * 2 <= pages);
    assert_eq!(value(&world, &tree, &old)[0], 0);
    world.rollback(old);
    world.collect();
    assert_eq!(chains(&world), 0);
    let now = world.begin();
    assert_eq!(value(&world, &tree, &now)[0], 4);
}

#[test]
fn large_value_of_a_middle_snapshot_goes_when_that_ends() {
    let world = World::new(4096, 128);
    let tree = world.table();
    replace(&world, &tree, 0);
    let old = world.begin_olap();
    replace(&world, &tree, 1);
    let middle = world.begin_olap();
    replace(&world, &tree, 2);
    replace(&world, &tree, 3);
    let young = world.begin_olap();
    replace(&world, &tree, 4);
    world.collect();
    assert_eq!(chains(&world), 3);
    for (tx, byte) in [(&old, 0), (&middle, 1), (&young, 3)] {
        assert_eq!(value(&world, &tree, tx)[0], byte);
    }
    world.rollback(middle);
    world.collect();
    assert_eq!(chains(&world), 2);
    for (tx, byte) in [(&old, 0), (&young, 3)] {
        assert_eq!(value(&world, &tree, tx)[0], byte);
    }
    world.rollback(old);
    world.collect();
    assert_eq!(chains(&world), 1);
    assert_eq!(value(&world, &tree, &young)[0], 3);
    world.rollback(young);
    world.collect();
    assert_eq!(chains(&world), 0);
}

#[test]
fn chain_that_goes_early_goes_once_however_small_the_steps_are() {
    let world = World::new(4096, 128);
    let tree = world.table();
    replace(&world, &tree, 0);
    let old = world.begin_olap();
    for byte in 1..=6 {
        replace(&world, &tree, byte);
    }
    world.log.flush_round().unwrap();
    for _ in 0..200 {
        for slot in (0..SLOTS).map(SlotId) {
            world.collect_slot(slot, &mut Budget::new(1, 1)).unwrap();
        }
        let pages = world.pages_in_use();
        // Their pages belong to somebody else by then.
        replace(&world, &tree, 9);
        assert!(world.pages_in_use() < pages + 60);
        world.log.flush_round().unwrap();
    }
    assert!(chains(&world) < 20, "{}", chains(&world));
    assert_eq!(value(&world, &tree, &old)[0], 0);
    world.rollback(old);
    world.collect();
    assert_eq!(chains(&world), 0);
    let now = world.begin();
    assert_eq!(value(&world, &tree, &now)[0], 9);
}

/// Symptom: large values stayed as long as an old snapshot did (found by reading). Cause: the search for what can go early counted all
/// entries of a stamp as looked at once it had looked at one; a budget that ended among them ended it for good. Guard:
/// `newest_work() < stamp_of(through)`.
#[test]
fn budget_that_ends_among_the_values_of_one_transaction_does_not_keep_the_others() {
    let world = World::new(4096, 128);
    let tree = world.table();
    let keys: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
    let put_all = |byte| {
        let tx = world.begin();
        for key in keys {
            replace_in(&world, &tx, &tree, key, byte);
        }
        world.commit(tx);
    };
    put_all(0);
    let old = world.begin_olap();
    put_all(1);
    put_all(2);
    world.log.flush_round().unwrap();
    assert_eq!(chains(&world), 2 * keys.len());
    for _ in 0..100 {
        for slot in (0..SLOTS).map(SlotId) {
            world.collect_slot(slot, &mut Budget::new(1, 1)).unwrap();
        }
    }
    assert_eq!(chains(&world), keys.len(), "what the old snapshot sees");
    world.rollback(old);
    world.collect();
    assert_eq!(chains(&world), 0);
}

#[test]
fn chains_are_counted_by_the_index_of_their_row_and_the_snapshot_that_keeps_them() {
    let world = World::new(4096, 128);
    let (tree, other) = (world.table(), world.table());
    let replace_both = |byte| {
        let tx = world.begin();
        replace_in(&world, &tx, &tree, b"k", byte);
        replace_in(&world, &tx, &tree, b"l", byte);
        replace_in(&world, &tx, &other, b"k", byte);
        world.commit(tx);
    };
    replace_both(0);
    let old = world.begin_olap();
    replace_both(1);
    let young = world.begin_olap();
    let tx = world.begin();
    replace_in(&world, &tx, &other, b"k", 2);
    assert_eq!(chains(&world), 4);
    // What is reverted is no old version.
    world.rollback(tx);
    assert_eq!(chains(&world), 3);
    let tx = world.begin();
    replace_in(&world, &tx, &other, b"k", 3);
    world.commit(tx);
    world.collect();
    assert_eq!(chains(&world), 4);
    let (census, _) = world.store.census(world.manager.domain(), 1_000).unwrap();
    for tree in [&tree, &other] {
        assert_eq!(census[&tree.root()].of(VersionKind::Chain).count, 2);
    }
    let snapshots = [&old, &young].map(|tx| tx.snapshot());
    let each = census[&tree.root()].of(VersionKind::Chain).bytes / 2;
    let (pinned, complete) = world
        .store
        .pinned_by(
            world.manager.domain(),
            world.manager.clock().now(),
            1_000,
            || holding(&snapshots),
        )
        .unwrap();
    assert!(complete && pinned[0].bytes >= 3 * each && pinned[0].bytes < 4 * each);
    assert!(pinned[1].bytes >= each && pinned[1].bytes < 2 * each);
    world.rollback(old);
    world.collect();
    assert_eq!(chains(&world), 1);
    world.rollback(young);
    world.collect();
    assert_eq!(chains(&world), 0);
}

/// A table of its own, adopted by the transaction that makes it.
fn made(world: &World, rows: u32) -> Tree {
    let tx = world.begin();
    let tree = world.store.create_tree(&tx).unwrap();
    for number in 0..rows {
        world
            .put(&tx, &tree, &number.to_be_bytes(), &[1; 50])
            .unwrap();
    }
    world.store.adopt(&tx, tree.root()).unwrap();
    world.commit(tx);
    tree
}

fn dropped(world: &World, tree: &Tree) {
    let tx = world.begin();
    world.disown(&tx, tree);
    world.commit(tx);
}

#[test]
fn trees_that_no_snapshot_sees_go_beneath_an_old_one() {
    let world = World::new(4096, 256);
    let before = made(&world, 500);
    let old = world.begin_olap();
    let pages = world.pages_in_use();
    for _ in 0..20 {
        dropped(&world, &made(&world, 500));
        world.collect();
        assert_eq!(world.pending(), 0);
    }
    assert!(world.pages_in_use() < pages + 16, "no tree is left");
    // Of two one is seen by who comes between.
    let (seen, unseen) = (made(&world, 500), made(&world, 500));
    dropped(&world, &unseen);
    let middle = world.begin_olap();
    dropped(&world, &seen);
    dropped(&world, &before);
    world.collect();
    assert_eq!(world.pending(), 2, "the old one sees the other");
    assert_eq!(world.rows(&middle, &seen).len(), 500);
    assert_eq!(world.rows(&old, &before).len(), 500);
    world.rollback(middle);
    world.collect();
    assert_eq!(world.pending(), 1);
    assert_eq!(world.rows(&old, &before).len(), 500);
    world.rollback(old);
    world.collect();
    assert_eq!(world.pending(), 0);
}

#[test]
fn v68_a_tree_waits_for_a_writer_that_has_given_up_the_snapshot_it_wrote_by() {
    let world = World::new(4096, 256);
    let other = world.table();
    let writer = world.begin_with(Isolation::ReadCommitted, Class::Olap);
    world.put(&writer, &other, b"first", b"v").unwrap();
    // Those that have taken no snapshot since cannot have written to it.
    let plain = world.begin_olap();
    world.put(&plain, &other, b"plain", b"v").unwrap();
    let idle = world.begin_with(Isolation::ReadCommitted, Class::Olap);
    world.put(&idle, &other, b"idle", b"v").unwrap();
    let tree = made(&world, 300);
    writer.statement();
    world
        .put(&writer, &tree, &7u32.to_be_bytes(), b"w")
        .unwrap();
    dropped(&world, &tree);
    writer.statement();
    world.collect();
    assert_eq!(world.pending(), 1, "its undo needs the tree");
    world.rollback(writer);
    let now = world.begin();
    let found = world.get(&now, &tree, &7u32.to_be_bytes());
    assert_eq!(found, Some(vec![1; 50]), "it was reverted there");
    world.rollback(now);
    world.collect();
    assert_eq!(world.pending(), 0, "though writers are open");
    world.rollback(plain);
    world.rollback(idle);
}

#[test]
fn a_drop_that_is_reverted_leaves_its_tree_to_the_next() {
    let world = World::new(4096, 256);
    let old = world.begin_olap();
    let tree = made(&world, 300);
    let tx = world.begin();
    world.disown(&tx, &tree);
    world.rollback(tx);
    world.collect();
    let now = world.begin();
    assert_eq!(world.rows(&now, &tree).len(), 300);
    world.rollback(now);
    dropped(&world, &tree);
    world.collect();
    assert_eq!(world.pending(), 0);
    world.rollback(old);
}

/// A session that declared nothing holds nothing back for long: it is asked to become analytical.
#[test]
fn dropped_trees_have_an_idle_session_promoted() {
    let world = World::new(4096, 256);
    let idle = world.begin();
    for _ in 0..40 {
        dropped(&world, &made(&world, 10));
        world.collect();
    }
    assert!(world.manager.promotions() > 0);
    assert!(world.pending() < 10, "{} trees", world.pending());
    world.rollback(idle);
}
