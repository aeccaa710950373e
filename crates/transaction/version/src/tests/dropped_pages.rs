//! The accounts of dropped trees: exact when nothing is at work, by tree, by whose drop, and zero in the end.

use super::world::{SLOTS, World, view};
use crate::row::Shape;
use crate::{Change, Scratch, Tally, VersionKind, VersionOptions};
use std::sync::Arc;
use vellum_base::SlotId;
use vellum_btree::Tree;
use vellum_btree::overflow::ChainRef;
use vellum_gc::Budget;
use vellum_sync::atomic::{AtomicUsize, Ordering};
use vellum_sync::test_point::TestPoints;
use vellum_sync::thread;
use vellum_txn::{Holder, Transaction};

const PAGE: u64 = 4096;
const LARGE: usize = 9_000;

/// A table of `rows` rows, every 50th with a large value.
fn made(world: &World, rows: u32) -> Tree {
    let tx = world.begin();
    let tree = world.store.create_tree(&tx).unwrap();
    for number in 0..rows {
        match number % 50 {
            0 => put_large(world, &tx, &tree, number),
            _ => {
                let key = number.to_be_bytes();
                world.put(&tx, &tree, &key, &[1; 200]).unwrap();
            }
        }
    }
    world.store.adopt(&tx, tree.root()).unwrap();
    world.commit(tx);
    tree
}

fn put_large(world: &World, tx: &Transaction, tree: &Tree, number: u32) {
    let chain = world.write_chain(tx, &[7; LARGE]);
    let (body, mut scratch) = (chain.encode(), Scratch::default());
    let put = Change::Put(Shape::CHAINED, &body);
    let key = number.to_be_bytes();
    let written = world
        .store
        .write(&view(tx), tree, &key, &mut scratch, |_| Ok(put));
    written.unwrap();
    world.store.adopt(tx, chain.root).unwrap();
    if let Some((shape, old)) = scratch.replaced()
        && shape.overflow
    {
        let version = scratch.replaced_version();
        let disowned = world.store.disown_chain(tx, tree.root(), old, version);
        disowned.unwrap();
    }
}

fn dropped(world: &World, tree: &Tree) {
    let tx = world.begin();
    world.disown(&tx, tree);
    world.commit(tx);
}

/// Counts until nothing is left to be counted, `pages` at a time; returns in how many steps.
fn count(world: &World, pages: usize) -> usize {
    let mut steps = 1;
    while world
        .store
        .count_dropped(world.manager.domain(), pages)
        .unwrap()
    {
        steps += 1;
    }
    steps
}

/// How many pages of dropped trees this thread looks at in `work`.
fn looks(work: impl FnOnce()) -> usize {
    let (points, looks) = (TestPoints::new(), Arc::new(AtomicUsize::new(0)));
    let seen = looks.clone();
    points.on(LOOKED, move || {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    let _entered = points.enter();
    work();
    looks.load(Ordering::Relaxed)
}

const LOOKED: &str = "dropped pages: between a page and its account";

/// What there is of a tree: its pages, and those that its rows refer to.
fn there(tree: &Tree) -> Tally {
    let [own, chains] = pages_of(tree);
    Tally {
        count: own + chains,
        bytes: (own + chains) * PAGE,
    }
}

/// Pages of a tree, and of the large values of its rows.
fn pages_of(tree: &Tree) -> [u64; 2] {
    let mut chains = 0;
    let mut reached = |_| true;
    let mut report = |finding| panic!("{finding:?}");
    let mut row = |_, _: &[u8], payload: &[u8]| {
        let (header, body) = crate::row::newest(payload).unwrap();
        if header.shape.overflow {
            chains += ChainRef::decode(body).unwrap().bytes_of_pages(4096);
        }
        Ok(())
    };
    let found = tree.verify_rows(&mut reached, &mut report, &mut row);
    [found.unwrap().pages_total(), chains / PAGE]
}

/// What the accounts say of a tree, and that all was counted.
fn told(world: &World, tree: &Tree) -> Tally {
    let (census, complete) = world.store.census(world.manager.domain(), 10_000).unwrap();
    assert!(complete);
    let sums = census.get(&tree.root());
    sums.map_or(Tally::default(), |sums| sums.of(VersionKind::Dropped))
}

/// What each holder pins, and whether all was counted.
fn pinned(world: &World) -> (Vec<Tally>, bool) {
    let now = world.manager.clock().now();
    let holders = || world.manager.holders();
    let pinned = world
        .store
        .pinned_by(world.manager.domain(), now, 1_000, holders);
    pinned.unwrap()
}

/// Bytes of dropped trees that are kept for this holder.
fn kept_for(world: &World, holder: &Holder) -> u64 {
    let holders = std::slice::from_ref(holder);
    let domain = world.manager.domain();
    world.store.dropped_bytes_kept_for(domain, holders)
}

#[test]
fn dropped_trees_that_snapshots_see_count_page_by_page_for_who_holds_them() {
    let world = World::new(4096, 512);
    let (first, second, small) = (made(&world, 3_000), made(&world, 800), made(&world, 1));
    let old = world.begin_olap();
    dropped(&world, &first);
    let middle = world.begin_olap();
    dropped(&world, &second);
    dropped(&world, &small);
    let young = world.begin_olap();
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default(),
        "not counted"
    );
    let sizes = [&first, &second, &small].map(there);
    assert!(sizes[0].count > 150 + 60 * 3 && sizes[2].count == 1 + 3);
    assert!(count(&world, 16) > 10, "a bounded number of pages a step");
    for (tree, size) in [&first, &second, &small].into_iter().zip(sizes) {
        assert_eq!(told(&world, tree), size);
    }
    let total = sizes.iter().map(|size| size.bytes).sum::<u64>();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()).bytes,
        total
    );
    assert_eq!(&*world.store.table_of_dropped(first.root()).unwrap(), "t");
    // Each is charged to the last who does not see its drop.
    let (pinned, complete) = pinned(&world);
    let charged = [sizes[0].bytes, sizes[1].bytes + sizes[2].bytes, 0];
    assert!(complete);
    assert_eq!([0, 1, 2].map(|holder| pinned[holder].bytes), charged);
    world.rollback(young);
    world.rollback(old);
    world.collect();
    assert_eq!(told(&world, &first), Tally::default());
    assert_eq!(told(&world, &second), sizes[1], "the middle one sees it");
    world.rollback(middle);
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
    assert_eq!(world.store.table_of_dropped(second.root()), None);
}

#[test]
fn account_of_a_dropped_tree_falls_with_each_step_of_freeing_to_zero() {
    let world = World::new(4096, 512);
    let tree = made(&world, 4_000);
    let old = world.begin_olap();
    dropped(&world, &tree);
    world.collect();
    count(&world, 100);
    let all = world.store.dropped_total(world.manager.domain()).count;
    world.rollback(old);
    let (mut steps, pages) = (0, world.space.counts().durable);
    while world.pending() > 0 {
        for slot in (0..SLOTS).map(SlotId) {
            world.collect_slot(slot, &mut Budget::new(1, 1)).unwrap();
        }
        let left = all - (pages - world.space.counts().durable);
        let now = world.store.dropped_total(world.manager.domain()).count;
        // A chain counts until its last page is gone.
        assert!((left..left + 3).contains(&now), "{now} of {left}");
        steps += 1;
    }
    assert!(steps > 4, "{steps} steps");
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
}

#[test]
fn tree_that_goes_before_it_is_counted_counts_nothing() {
    let world = World::new(4096, 512);
    let tree = made(&world, 4_000);
    let old = world.begin_olap();
    dropped(&world, &tree);
    world.collect();
    let domain = world.manager.domain();
    // Through the inner pages, and some leaves.
    assert!(world.store.count_dropped(domain, 20).unwrap());
    assert!(world.store.dropped_total(world.manager.domain()).count > 100);
    assert!(
        !world
            .store
            .census(world.manager.domain(), 10_000)
            .unwrap()
            .1,
        "not all is counted"
    );
    world.rollback(old);
    while world.pending() > 0 {
        for slot in (0..SLOTS).map(SlotId) {
            world.collect_slot(slot, &mut Budget::new(1, 1)).unwrap();
        }
        assert!(!world.store.count_dropped(domain, 20).unwrap());
        assert!(
            world
                .store
                .census(world.manager.domain(), 10_000)
                .unwrap()
                .1
        );
    }
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
    // What comes to its root page is another tree.
    let others: Vec<_> = (0..8).map(|_| made(&world, 100)).collect();
    assert_eq!(count(&world, 100), 1);
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
    drop(others);
}

#[test]
fn drop_counts_from_its_commit_on_and_not_if_it_is_reverted() {
    let world = World::new(4096, 512);
    let tree = made(&world, 1_000);
    let old = world.begin_olap();
    let tx = world.begin();
    let savepoint = tx.savepoint();
    world.disown(&tx, &tree);
    world.collect();
    assert_eq!(count(&world, 100), 1);
    assert_eq!(told(&world, &tree), Tally::default(), "it may come back");
    world.rollback_to(&tx, &savepoint);
    world.commit(tx);
    world.collect();
    count(&world, 100);
    assert_eq!(told(&world, &tree), Tally::default());
    assert_eq!(world.store.table_of_dropped(tree.root()), None);
    let tx = world.begin();
    world.disown(&tx, &tree);
    world.rollback(tx);
    world.collect();
    count(&world, 100);
    assert_eq!(told(&world, &tree), Tally::default());
    // It lives, and grows.
    let tx = world.begin();
    for number in 5_000..5_500u32 {
        let key = number.to_be_bytes();
        world.put(&tx, &tree, &key, &[2; 200]).unwrap();
    }
    world.commit(tx);
    dropped(&world, &tree);
    world.collect();
    count(&world, 100);
    assert_eq!(told(&world, &tree), there(&tree));
    world.rollback(old);
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
}

/// Changes rows of `made(world, 2_000)`: large values come, go and are replaced, rows are deleted, and some come.
fn change(world: &World, writer: &Transaction, tree: &Tree) {
    for number in 500..1_500u32 {
        match number % 50 {
            // Instead of none, and instead of another, which is on a list until then.
            0 | 25 => put_large(world, writer, tree, number),
            _ => {
                world.delete(writer, tree, &number.to_be_bytes()).unwrap();
            }
        }
    }
    for number in 9_000..9_500u32 {
        let key = number.to_be_bytes();
        world.put(writer, tree, &key, &[3; 200]).unwrap();
    }
}

#[test]
fn what_a_rollback_changes_in_a_dropped_tree_is_in_its_account_at_once() {
    for is_counted in [false, true] {
        let world = World::new(4096, 512);
        let tree = made(&world, 2_000);
        let old = world.begin_olap();
        let writer = world.begin();
        change(&world, &writer, &tree);
        dropped(&world, &tree);
        world.collect();
        if is_counted {
            count(&world, 1_000);
            assert_eq!(told(&world, &tree), there(&tree));
        } else {
            // In the middle of the leaves.
            let domain = world.manager.domain();
            assert!(world.store.count_dropped(domain, 60).unwrap());
        }
        let before = there(&tree);
        world.rollback(writer);
        if is_counted {
            assert_eq!(told(&world, &tree), there(&tree));
        }
        let looks = looks(|| {
            count(&world, 7);
        });
        assert_eq!(looks == 0, is_counted, "{looks} looks");
        assert!(there(&tree).count < before.count, "leaves were joined");
        assert_eq!(told(&world, &tree), there(&tree));
        assert_eq!(world.rows(&old, &tree).len(), 2_000);
        world.rollback(old);
        world.collect();
        assert_eq!(
            world.store.dropped_total(world.manager.domain()),
            Tally::default()
        );
    }
}

/// Symptom: none was seen (found by reading). Cause: each row that was reverted had all leaves read again, so a table that was dropped under a long rollback
/// was read once for each step of maintenance meanwhile. Guard: V69.
#[test]
fn leaves_of_a_dropped_tree_are_read_once_whatever_is_reverted_meanwhile() {
    let world = World::new(4096, 512);
    let tree = made(&world, 2_000);
    let old = world.begin_olap();
    let writer = world.begin();
    let mut savepoints = Vec::new();
    for number in (0..2_000u32).step_by(10) {
        savepoints.push(writer.savepoint());
        match number % 20 {
            0 => put_large(&world, &writer, &tree, number),
            _ => {
                world.delete(&writer, &tree, &number.to_be_bytes()).unwrap();
            }
        }
    }
    dropped(&world, &tree);
    world.collect();
    // Rows from the last to the first: behind what is counted, there, and before it.
    let looks = looks(|| {
        loop {
            let domain = world.manager.domain();
            let more = world.store.count_dropped(domain, 0).unwrap();
            match savepoints.pop() {
                Some(savepoint) => world.rollback_to(&writer, &savepoint),
                None if more => {}
                None => return,
            }
        }
    });
    let pages = tree.watched_pages().unwrap();
    assert!(looks as u64 <= pages + 20, "{looks} looks at {pages} pages");
    assert_eq!(told(&world, &tree), there(&tree));
    world.rollback(writer);
    world.rollback(old);
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
}

/// V69, between the copy of a leaf and its account.
#[test]
fn row_that_is_reverted_while_its_leaf_is_looked_at_counts_as_it_is_afterwards() {
    let world = Arc::new(World::new(4096, 512));
    let tree = made(&world, 200);
    let old = world.begin_olap();
    let writer = world.begin();
    // Two large values that go, and one that comes back.
    put_large(&world, &writer, &tree, 1);
    put_large(&world, &writer, &tree, 2);
    world.delete(&writer, &tree, &0u32.to_be_bytes()).unwrap();
    dropped(&world, &tree);
    world.collect();
    let points = TestPoints::new();
    let mut pause = points.pause(LOOKED);
    let counter = {
        let (world, points) = (world.clone(), points.clone());
        thread::spawn(move || {
            let _entered = points.enter();
            let domain = world.manager.domain();
            world.store.count_dropped(domain, 1_000).unwrap()
        })
    };
    // Past the one inner page, and the end of that.
    for _ in 0..2 {
        pause.wait_reached();
        let next = points.pause(LOOKED);
        pause.release();
        pause = next;
    }
    pause.wait_reached();
    let counted = world.store.dropped_total(world.manager.domain()).count;
    assert_eq!(counted, pages_of(&tree)[0], "at the first leaf");
    world.rollback(writer);
    pause.release();
    assert!(!counter.join().unwrap());
    assert_eq!(told(&world, &tree), there(&tree));
    world.rollback(old);
}

#[test]
fn rollback_in_a_dropped_tree_changes_its_pages_alone_where_large_values_are_not_counted() {
    let options = VersionOptions {
        chains_of_dropped: false,
        ..VersionOptions::default()
    };
    let world = World::with_options(4096, 512, options);
    let tree = made(&world, 2_000);
    let old = world.begin_olap();
    let writer = world.begin();
    change(&world, &writer, &tree);
    dropped(&world, &tree);
    world.collect();
    count(&world, 7);
    let [before, _] = pages_of(&tree);
    assert_eq!(told(&world, &tree).count, before);
    world.rollback(writer);
    // Nothing is left to be counted, though rows were reverted.
    let [after, chains] = pages_of(&tree);
    assert_eq!(told(&world, &tree).count, after);
    assert!(after < before && chains > 0, "{after} of {before} pages");
    assert_eq!(looks(|| assert_eq!(count(&world, 1), 1)), 0);
    assert_eq!(told(&world, &tree).count, after);
    world.rollback(old);
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
}

#[test]
fn pages_held_by_a_withdrawn_writer_are_kept_for_no_snapshot() {
    let world = World::withdrawing(4096, 512);
    let tree = made(&world, 500);
    let other = world.table();
    let writer = world.begin_olap();
    world.put(&writer, &other, b"k", b"v").unwrap();
    dropped(&world, &tree);
    let young = world.begin_olap();
    world.collect();
    count(&world, 100);
    let (domain, all) = (world.manager.domain(), there(&tree).bytes);
    let holders = world.manager.holders();
    assert_eq!(
        holders
            .iter()
            .map(|it| kept_for(&world, it))
            .collect::<Vec<_>>(),
        [all, 0]
    );
    assert_eq!(world.store.dropped_bytes_kept_for(domain, &holders), all);
    assert!(world.manager.withdraw(holders[0].id));
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()).bytes,
        all,
        "V22"
    );
    assert_eq!(world.store.dropped_bytes_kept_for(domain, &holders), 0);
    world.rollback(writer);
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
    world.rollback(young);
}

/// The oldest snapshot is drawn before a table is made that a younger one sees, and the drop is committed above a snapshot that is above its stamp.
#[test]
fn dropped_tree_is_kept_for_who_sees_its_table_by_commits_and_for_nobody_else() {
    let world = World::new(4096, 512);
    let first = world.begin_olap();
    let tree = made(&world, 500);
    let second = world.begin_olap();
    let dropper = world.begin();
    world.disown(&dropper, &tree);
    let third = world.begin_olap();
    world.commit(dropper);
    let fourth = world.begin_olap();
    world.collect();
    assert!(
        !world.store.census(world.manager.domain(), 1_000).unwrap().1,
        "nothing is counted"
    );
    count(&world, 100);
    let all = there(&tree).bytes;
    let holders = world.manager.holders();
    let kept = |_: ()| -> Vec<u64> { holders.iter().map(|it| kept_for(&world, it)).collect() };
    assert_eq!(kept(()), [0, all, all, 0]);
    let (charged, complete) = pinned(&world);
    assert!(complete);
    let charged: Vec<u64> = charged.iter().map(|it| it.bytes).collect();
    assert_eq!(charged, [0, 0, all, 0]);
    world.rollback(third);
    world.rollback(second);
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
    world.rollback(first);
    world.rollback(fourth);
}

/// The inner pages of one are counted before the leaves of another.
#[test]
fn large_dropped_tree_keeps_no_later_one_out_of_the_accounts() {
    let world = World::new(4096, 512);
    let trees = [made(&world, 3_000), made(&world, 3_000)];
    let old = world.begin_olap();
    for tree in &trees {
        dropped(&world, tree);
    }
    world.collect();
    let domain = world.manager.domain();
    assert!(world.store.count_dropped(domain, 20).unwrap());
    let (census, complete) = world.store.census(domain, 1_000).unwrap();
    assert!(!complete);
    for tree in &trees {
        let pages = census[&tree.root()].of(VersionKind::Dropped).count;
        assert!(pages > 150, "{pages} pages");
    }
    world.rollback(old);
    world.collect();
}

/// Where nobody asks for large values no leaf is read.
#[test]
fn leaves_of_a_dropped_tree_are_left_alone_where_large_values_are_not_counted() {
    let options = VersionOptions {
        chains_of_dropped: false,
        ..VersionOptions::default()
    };
    let world = World::with_options(4096, 512, options);
    let tree = made(&world, 1_000);
    let old = world.begin_olap();
    dropped(&world, &tree);
    world.collect();
    assert!(count(&world, 1) < 10);
    assert_eq!(told(&world, &tree).count, there(&tree).count - 20 * 3);
    world.rollback(old);
    world.collect();
    assert_eq!(
        world.store.dropped_total(world.manager.domain()),
        Tally::default()
    );
}
