//! Positions of what was found: good while the leaf is as it was, void after any change of it.

use crate::testing::World;
use crate::{LeafHints, Logging, Tree, TreeKind};

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn tree_of(world: &World, rows: u64) -> Tree {
    let tree = world.tree(TreeKind::Temporary);
    for number in 0..rows {
        tree.put(&key(number), &[number as u8; 16], None).unwrap();
    }
    tree
}

#[test]
fn what_was_found_is_written_without_a_search() {
    let world = World::new(4096, 64);
    let tree = tree_of(&world, 500);
    let (mut hints, mut row) = (LeafHints::default(), Vec::new());
    for number in [0, 7, 8, 250, 499] {
        assert!(
            tree.get_near(&key(number), &mut row, &mut hints, true)
                .unwrap()
        );
        let found = key(number);
        let mut leaf = tree.write_found(&found, hints.found().unwrap()).unwrap();
        assert!(leaf.found());
        let mut now = Vec::new();
        leaf.copy_payload(&mut now);
        assert_eq!(now, row);
        leaf.replace(&[&[9; 16]], Logging::None);
        drop(leaf);
        assert!(tree.get(&key(number), &mut row).unwrap());
        assert_eq!(row, [9; 16]);
    }
}

#[test]
fn position_is_void_after_any_change_of_its_leaf_and_after_a_failed_lookup() {
    let world = World::new(4096, 64);
    let tree = tree_of(&world, 20);
    let (mut hints, mut row) = (LeafHints::default(), Vec::new());
    let changes: [&dyn Fn(); 4] = [
        &|| tree.put(&key(3), &[1; 16], None).unwrap(),
        &|| tree.put(&key(1000), &[1; 16], None).unwrap(),
        &|| assert!(tree.delete(&key(19), None).unwrap()),
        // The leaf is split, and another holds the key.
        &|| (2000..2400).for_each(|number| tree.put(&key(number), &[1; 16], None).unwrap()),
    ];
    for change in changes {
        assert!(tree.get_near(&key(7), &mut row, &mut hints, true).unwrap());
        let position = hints.found().unwrap();
        drop(tree.write_found(&key(7), position).unwrap());
        // Nothing was written: it is as it was.
        drop(tree.write_found(&key(7), position).unwrap());
        change();
        assert!(tree.write_found(&key(7), position).is_none());
    }
    assert!(
        !tree
            .get_near(&key(900), &mut row, &mut hints, true)
            .unwrap()
    );
    assert!(hints.found().is_none());
}

#[test]
fn position_in_a_latched_leaf_waits_for_nobody() {
    let world = World::new(4096, 64);
    let tree = tree_of(&world, 20);
    let (mut hints, mut row) = (LeafHints::default(), Vec::new());
    assert!(tree.get_near(&key(7), &mut row, &mut hints, true).unwrap());
    let position = hints.found().unwrap();
    let other = key(9);
    let held = tree.write(&other).unwrap();
    assert!(tree.write_found(&key(7), position).is_none());
    drop(held);
    assert!(tree.write_found(&key(7), position).is_some());
}
