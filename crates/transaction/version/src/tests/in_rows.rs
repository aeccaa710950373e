//! What old versions in rows come to, found a part at a time.

use super::world::World;
use crate::{InRows, RowsLook, VersionKind, VersionOptions};
use std::collections::BTreeSet;
use vellum_base::PageId;
use vellum_btree::Tree;
use vellum_txn::Transaction;

const PAGE: usize = 4096;
const KEYS: u32 = 2_000;

fn world_of(frames: u64) -> World {
    let options = VersionOptions {
        fat_updates: Some(3),
        shortcuts: false,
        ..VersionOptions::default()
    };
    World::with_options(PAGE, frames, options)
}

/// Puts `byte` into each of these rows, in transactions of forty.
fn write(world: &World, tree: &Tree, numbers: std::ops::Range<u32>, byte: u8) {
    let numbers: Vec<u32> = numbers.collect();
    for part in numbers.chunks(40) {
        let tx = world.begin();
        for number in part {
            let key = number.to_be_bytes();
            world.put(&tx, tree, &key, &[byte; 100]).unwrap();
        }
        world.commit(tx);
    }
}

/// A table of fat rows, each with a version that the transaction sees.
fn fat_table(world: &World) -> (Tree, Transaction) {
    let tree = world.table();
    write(world, &tree, 0..KEYS, 7);
    let old = world.begin_olap();
    for byte in 0..8 {
        write(world, &tree, 0..KEYS, byte);
    }
    assert!(world.fat_rows(&tree).len() > KEYS as usize / 2);
    (tree, old)
}

/// Bytes of versions in rows, by a look at all of them.
fn counted(world: &World, tree: &Tree) -> (u64, bool) {
    let (census, complete) = world.store.census(world.manager.domain(), 10_000).unwrap();
    let bytes = census.get(&tree.root());
    (
        bytes.map_or(0, |sums| sums.of(VersionKind::Fat).bytes),
        complete,
    )
}

fn go_on(world: &World, look: &mut RowsLook, frames: usize, pages: usize) -> InRows {
    let holders = world.manager.holders();
    world.store.look_further(look, &holders, frames, pages);
    look.sum()
}

/// Goes on until everything was looked at.
fn round(world: &World, look: &mut RowsLook) -> InRows {
    let since = look.moment();
    while !look.is_whole_since(since) {
        go_on(world, look, 1, 1);
    }
    look.sum()
}

#[test]
fn look_that_goes_on_where_it_ended_comes_to_what_a_look_at_all_does() {
    let world = world_of(700);
    let (tree, old) = fat_table(&world);
    let (bytes, complete) = counted(&world, &tree);
    assert!(complete && bytes > u64::from(KEYS) * 50, "{bytes}");
    let mut look = RowsLook::default();
    // Eleven chunks: it grows with each that has some.
    let mut steps = vec![go_on(&world, &mut look, 64, 1_000).bytes];
    assert!(steps[0] < bytes, "one part is not all");
    while !look.is_whole_since(0) {
        steps.push(go_on(&world, &mut look, 64, 1_000).bytes);
    }
    assert!(steps.len() == 11 && steps.is_sorted(), "{steps:?}");
    assert_eq!(steps.last(), Some(&bytes));
    let pages = world.store.context().pool().fat_pages(10_000).len() as u64;
    assert_eq!(look.sum().pages, pages);
    // Another round finds the same, in one step as in eleven; and what was copied limits a step as well.
    assert_eq!(
        go_on(&world, &mut look, usize::MAX, usize::MAX).bytes,
        bytes
    );
    let before = look.moment();
    go_on(&world, &mut look, usize::MAX, 1);
    assert_eq!(look.moment(), before + 1);
    assert!(!look.is_whole_since(before));
    // The rows are written plain by and by: each chunk is told as it is when it is looked at again.
    drop(old);
    world.manager.domain().pass();
    for number in 0..KEYS {
        world.decompose(&tree, &number.to_be_bytes());
    }
    assert_eq!(look.sum().bytes, bytes, "what was not looked at again");
    let now = round(&world, &mut look);
    assert_eq!((now.bytes, counted(&world, &tree)), (0, (0, true)));
}

#[test]
fn versions_in_rows_are_needed_while_somebody_sees_them_whether_they_are_there_or_not() {
    let world = world_of(700);
    let (tree, old) = fat_table(&world);
    let mut look = RowsLook::default();
    let now = round(&world, &mut look);
    // One version of each row, beside others for which nobody has looked yet.
    let fat = world.fat_rows(&tree).len() as u64;
    assert!(now.needed >= fat * 4 && now.needed < now.bytes, "{now:?}");
    let young = world.begin_olap();
    assert_eq!(round(&world, &mut look), now, "it sees newest versions");
    write(&world, &tree, 0..KEYS, 99);
    let both = round(&world, &mut look);
    assert!(both.needed > now.needed, "{both:?}, {now:?}");
    // Their own undo needs what writers have replaced.
    drop(old);
    drop(young);
    world.manager.domain().pass();
    let left = round(&world, &mut look);
    assert_eq!(left.needed, 0, "no snapshot is open");
    assert!(left.bytes > 0, "{left:?}");
    let writer = world.begin();
    let write_own = |byte: u8| {
        for number in 0..10u32 {
            let key = number.to_be_bytes();
            world.put(&writer, &tree, &key, &[byte; 100]).unwrap();
        }
    };
    write_own(100);
    let fat: BTreeSet<_> = world.fat_rows(&tree).into_iter().map(|it| it.0).collect();
    let own = (0..10u32).filter(|it| fat.contains(&it.to_be_bytes()[..]));
    assert!(own.count() > 0);
    let once = round(&world, &mut look).needed;
    assert!(once > 0);
    // No snapshot sees what it wrote first.
    write_own(101);
    assert!(round(&world, &mut look).needed > once);
    world.rollback(writer);
    assert_eq!(round(&world, &mut look).needed, 0);
}

/// Rows that were evicted fat stood in no figure, and all was said to be counted.
#[test]
fn pages_that_were_evicted_with_fat_rows_are_told_until_they_are_read() {
    let world = world_of(64);
    let (tree, _old) = fat_table(&world);
    let pool = world.store.context().pool();
    let (bytes, complete) = counted(&world, &tree);
    let out = pool.fat_pages_out();
    assert!(out > 10 && !complete, "{out} pages");
    assert!(pool.statistics().fat_evicted >= out);
    // What is out and what is in memory is all there is: each leaf that is read is one or the other.
    let mut marked = BTreeSet::new();
    let mut found = 0;
    let mut leaf = vellum_btree::LeafCopy::new(PAGE);
    let mut from = Vec::new();
    loop {
        let before = pool.fat_pages_out();
        tree.read_leaf(vellum_btree::Seek::AtOrAfter(&from), &mut leaf)
            .unwrap();
        let here: BTreeSet<PageId> = pool.fat_pages(1_000).into_iter().collect();
        if here.contains(&leaf.page_id()) {
            marked.insert(leaf.page_id());
            world.store.look_at_page(leaf.page_id(), &mut |version| {
                found += version.tally.bytes;
            });
        }
        assert!(pool.fat_pages_out() <= before + 8, "one comes, others go");
        let Some(fence) = leaf.upper_fence() else {
            break;
        };
        from = fence.to_vec();
    }
    let here = pool.fat_pages(1_000).len() as u64;
    assert_eq!(pool.fat_pages_out() + here, marked.len() as u64);
    assert!(found > 2 * bytes, "{found} bytes, {bytes} in memory");
}

/// The lists of many deleted rows took all of a look, and versions in rows were told as none.
#[test]
fn versions_in_rows_are_told_beside_lists_that_are_longer_than_a_look() {
    let world = world_of(700);
    let (hot, cold) = (world.table(), world.table());
    write(&world, &cold, 0..KEYS, 1);
    write(&world, &hot, 0..1, 7);
    let old = world.begin_olap();
    for byte in 0..8 {
        write(&world, &hot, 0..1, byte);
    }
    let tx = world.begin();
    for number in 0..KEYS {
        let key = number.to_be_bytes();
        assert!(world.delete(&tx, &cold, &key).unwrap().existed);
    }
    world.commit(tx);
    let (census, complete) = world.store.census(world.manager.domain(), 4).unwrap();
    assert!(!complete, "the list has more pages");
    assert!(census[&hot.root()].of(VersionKind::Fat).bytes > 0);
    drop(old);
}
