//! A reader that holds the id of a child, and the child is given back before he reads it: the id may be a fresh page of
//! somebody who waits for him, or a page beyond the end of the file.

use crate::testing::{World, assert_sound};
use crate::{LeafCopy, Seek, Tree, TreeKind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use vellum_base::{PageId, Result};
use vellum_buffer::Exclusive;
use vellum_sync::test_point::TestPoints;

/// Where a reader knows the child's id, and finds that he has to wait for the page.
const NAMED: &str = "pool: page is not readable";
const WAIT: &str = "pool: wait for a page";

/// Waits of a reader after which he counts as stuck.
const STUCK: usize = 200;
const ROWS: u64 = 200;

/// What the reader has to say.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Found(bool),
    Waits,
}

fn key(number: u64) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.resize(60, b'k');
    key
}

/// A temporary tree of one parent and its leaves, of which the last one is about to go.
struct Leaves {
    tree: Tree,
    /// The last leaf.
    gone: PageId,
    /// The first row of the last leaf.
    held: u64,
    /// The other rows of the last two leaves.
    others: Vec<u64>,
}

impl Leaves {
    fn new(world: &World) -> Self {
        let tree = world.tree(TreeKind::Temporary);
        for number in 0..ROWS {
            tree.put(&key(number), &[7; 100], None).unwrap();
        }
        let of: Vec<PageId> = (0..ROWS).map(|number| leaf_of(&tree, number)).collect();
        let mut leaves = of.clone();
        leaves.dedup();
        assert!(leaves.len() > 4, "{leaves:?}");
        let last_two = &leaves[leaves.len() - 2..];
        let first = |leaf: &PageId| of.iter().position(|of| of == leaf).unwrap() as u64;
        let held = first(&last_two[1]);
        Self {
            tree,
            gone: last_two[1],
            held,
            others: (first(&last_two[0])..ROWS)
                .filter(|number| *number != held)
                .collect(),
        }
    }

    /// Joins the last leaf with the one before: it is given back, its first row stays.
    fn join(&self) {
        for number in &self.others {
            self.tree.delete(&key(*number), None).unwrap();
        }
        assert_ne!(
            leaf_of(&self.tree, self.held),
            self.gone,
            "the leaf was joined with the one before"
        );
    }
}

fn leaf_of(tree: &Tree, number: u64) -> PageId {
    let mut leaf = [PageId::ZERO];
    tree.find_leaves(&[&key(number)], &mut leaf);
    leaf[0]
}

/// The page under an exclusive latch, as its next user makes it.
fn take_again<'w>(world: &'w World, page: PageId) -> Exclusive<'w> {
    loop {
        let (taken, floor) = world.space.take(true).unwrap();
        if taken == page {
            return world.pool.create(page, 4, PageId(1), true, floor).unwrap();
        }
    }
}

/// Reads with `read` up to where it has to wait for the leaf, has the leaf joined, and lets somebody take its page and hold it
/// until the reader is through.
fn read_a_child_that_somebody_else_holds(
    read: impl Fn(&Tree, &[u8]) -> Result<bool> + Send + Sync,
) {
    let world = World::new(4096, 64);
    let leaves = Leaves::new(&world);
    let points = TestPoints::new();
    let pause = points.pause(NAMED);
    let (says, heard) = channel();
    let waits = says.clone();
    let count = AtomicUsize::new(0);
    points.on(WAIT, move || {
        if count.fetch_add(1, Ordering::Relaxed) == STUCK {
            waits.send(Said::Waits).unwrap();
        }
    });
    let latched = world.pool.exclusive(leaves.gone).unwrap();
    std::thread::scope(|scope| {
        let (leaves, read) = (&leaves, &read);
        let entered = points.clone();
        scope.spawn(move || {
            let _entered = entered.enter();
            let found = read(&leaves.tree, &key(leaves.held)).unwrap();
            says.send(Said::Found(found)).unwrap();
        });
        pause.wait_reached();
        drop(latched);
        leaves.join();
        let fresh = take_again(&world, leaves.gone);
        pause.release();
        let said = heard.recv().unwrap();
        drop(fresh);
        assert_eq!(said, Said::Found(true), "waits for a page that is no child");
    });
    assert_sound(&leaves.tree);
}

#[test]
fn regress_descent_does_not_wait_for_the_next_user_of_a_page_that_was_its_child() {
    read_a_child_that_somebody_else_holds(|tree, key| tree.get(key, &mut Vec::new()));
}

#[test]
fn regress_cursor_does_not_wait_for_the_next_user_of_a_page_that_was_a_sibling() {
    read_a_child_that_somebody_else_holds(|tree, key| {
        let mut leaf = LeafCopy::new(4096);
        tree.read_leaf(Seek::First, &mut leaf)?;
        tree.read_leaf(Seek::AtOrAfter(key), &mut leaf)?;
        let mut found = Vec::new();
        leaf.key(leaf.position(), &mut found);
        Ok(found == key)
    });
}

#[test]
fn regress_reader_of_a_child_that_was_cut_off_the_file_finds_its_row() {
    let world = World::new(4096, 64);
    let leaves = Leaves::new(&world);
    let points = TestPoints::new();
    let pause = points.pause(NAMED);
    let latched = world.pool.exclusive(leaves.gone).unwrap();
    std::thread::scope(|scope| {
        let entered = points.clone();
        let leaves = &leaves;
        let reader = scope.spawn(move || {
            let _entered = entered.enter();
            leaves.tree.get(&key(leaves.held), &mut Vec::new())
        });
        pause.wait_reached();
        drop(latched);
        leaves.join();
        assert!(world.space.truncate_tail().unwrap() > 0);
        assert!(
            world.pool.file_pages() <= leaves.gone.get(),
            "its page is gone"
        );
        pause.release();
        assert!(reader.join().unwrap().unwrap());
    });
}

/// Symptom: a parallel query beside `Database::truncate` reported `Corruption` ("page id beyond the file"). Cause: an inner page that had been merged away, and
/// whose place in the file had been cut off, was read by an id from before. Guard: the level above serves.
#[test]
fn regress_separators_do_not_need_an_inner_page_that_was_cut_off_the_file() {
    let world = World::new(4096, 512);
    let tree = world.tree(TreeKind::Temporary);
    let rows = 6_000;
    for number in 0..rows {
        tree.put(&key(number), &[7; 100], None).unwrap();
    }
    let level = tree.separators(1).unwrap();
    assert!(
        level.len() < tree.separators(usize::MAX).unwrap().len(),
        "two levels of inner pages"
    );
    let points = TestPoints::new();
    let pause = points.pause("separators: between two levels");
    std::thread::scope(|scope| {
        let (entered, tree) = (points.clone(), &tree);
        let reader = scope.spawn(move || {
            let _entered = entered.enter();
            tree.separators(usize::MAX)
        });
        pause.wait_reached();
        for number in 10..rows {
            tree.delete(&key(number), None).unwrap();
        }
        assert!(world.space.truncate_tail().unwrap() > 0);
        assert!(world.pool.file_pages() < 100, "inner pages, too");
        pause.release();
        assert_eq!(reader.join().unwrap().unwrap(), level);
    });
    assert_sound(&tree);
}
