//! Positions of what was found: good while the leaf is as it was, void after any change of it.

use crate::near::place_of_tree;
use crate::testing::World;
use crate::{LeafHints, Logging, Tree, TreeKind};
use vellum_base::PageId;

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

/// The way down is gone once: ahead. Whatever bytes of the keys differ.
#[test]
fn leaves_of_keys_that_were_gone_ahead_for_are_found_by_their_own_keys() {
    let world = World::new(4096, 64);
    let tree = tree_of(&world, 4000);
    type Kind = fn(u64) -> Vec<u8>;
    let kinds: [(&str, Kind); 4] = [
        ("eight bytes", |number| key(number).to_vec()),
        ("in the middle", |number| key(number << 24).to_vec()),
        ("four bytes", |number| {
            (number as u32).to_be_bytes().to_vec()
        }),
        ("behind others", |number| {
            [&[7; 9], &key(number)[..]].concat()
        }),
    ];
    for (kind, make) in kinds {
        // As many as a stock level asks for.
        let keys: Vec<_> = (0..200).map(|number| make(31 * number)).collect();
        let mut hints = LeafHints::default();
        let leaf = |number: usize| PageId(1 + number as u64);
        for round in 0..3 {
            for (number, key) in keys.iter().enumerate() {
                hints.expect(&tree, key, leaf(number));
            }
            // In another order, and each once.
            for number in (0..keys.len()).map(|number| number * 77 % keys.len()) {
                let found = hints.take_expected(tree.root(), &keys[number]);
                assert_eq!(found, Some(leaf(number)), "{kind}, {round}: {number}");
                if number % 3 == 0 {
                    let again = hints.take_expected(tree.root(), &keys[number]);
                    assert_eq!(again, None, "{kind}, {round}: {number}");
                }
            }
        }
    }
}

#[test]
fn more_keys_than_there_are_places_for_are_not_expected() {
    let world = World::new(4096, 64);
    let tree = tree_of(&world, 20);
    let mut hints = LeafHints::default();
    let keys: Vec<_> = (0..2000).map(key).collect();
    for _ in 0..2 {
        for key in &keys {
            hints.expect(&tree, key, PageId(7));
        }
        let found = keys
            .iter()
            .filter(|key| hints.take_expected(tree.root(), &key[..]).is_some());
        assert_eq!(found.count(), 384);
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

#[test]
fn expected_leaves_are_used_once_and_stale_ones_do_no_harm() {
    let world = World::new(4096, 256);
    let trees = [tree_of(&world, 3000), tree_of(&world, 3000)];
    let (mut hints, mut row) = (LeafHints::default(), Vec::new());
    // More than are remembered, so that some push others out; the same keys in two trees.
    for stride in [1_u64, 3, 7] {
        for tree in &trees {
            let keys: Vec<_> = (0..400).map(|number| key(number * stride)).collect();
            for keys in keys.chunks(32) {
                let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                let mut leaves = vec![vellum_base::PageId::ZERO; keys.len()];
                tree.find_leaves(&keys, &mut leaves);
                for (key, leaf) in keys.iter().zip(leaves) {
                    hints.expect(tree, key, leaf);
                }
            }
        }
        // The first tree's leaves are split, and those of the second are merged.
        for number in 0..400 {
            trees[0]
                .put(&[&key(number)[..], b"beside"].concat(), &[7; 16], None)
                .unwrap();
            if number % 5 != 0 {
                let _ = trees[1].delete(&key(number * stride), None).unwrap();
            }
        }
        for number in 0..400 {
            let name = key(number * stride);
            assert!(
                trees[0]
                    .get_near(&name, &mut row, &mut hints, false)
                    .unwrap()
            );
            assert_eq!(row, [(number * stride) as u8; 16]);
            let found = trees[1]
                .get_near(&name, &mut row, &mut hints, true)
                .unwrap();
            assert_eq!(found, trees[1].get(&name, &mut row).unwrap(), "{number}");
        }
        for number in 0..3000 {
            trees[1]
                .put(&key(number), &[number as u8; 16], None)
                .unwrap();
        }
    }
    hints.expect_nothing();
    assert!(
        !trees[0]
            .get_near(b"none", &mut row, &mut hints, true)
            .unwrap()
    );
}

#[test]
fn an_expected_leaf_saves_the_way_down() {
    let world = World::new(4096, 256);
    let tree = tree_of(&world, 3000);
    let (mut hints, mut row) = (LeafHints::default(), Vec::new());
    let name = key(1500);
    let mut leaf = [vellum_base::PageId::ZERO];
    tree.find_leaves(&[&name], &mut leaf);
    assert!(!leaf[0].is_zero());
    hints.expect(&tree, &name, leaf[0]);
    // Nobody can go down: the root is held.
    let root = world.pool.exclusive(tree.root()).unwrap();
    assert!(tree.get_near(&name, &mut row, &mut hints, false).unwrap());
    drop(root);
    assert_eq!(row, [1500_u64 as u8; 16]);
}

#[test]
fn trees_whose_numbers_meet_have_a_leaf_remembered_each() {
    let world = World::new(4096, 512);
    let (mut hints, mut row) = (LeafHints::default(), Vec::new());
    let mut trees: Vec<Tree> = Vec::new();
    while trees.len() < 3 {
        let tree = tree_of(&world, 200);
        if trees
            .first()
            .is_none_or(|first| place_of_tree(first.root()) == place_of_tree(tree.root()))
        {
            trees.push(tree);
        }
    }
    for tree in &trees {
        assert!(
            tree.get_near(&key(150), &mut row, &mut hints, true)
                .unwrap()
        );
    }
    // Nobody can go down: the roots are held.
    let roots: Vec<_> = trees
        .iter()
        .map(|tree| world.pool.exclusive(tree.root()).unwrap())
        .collect();
    for tree in trees.iter().chain(trees.iter().rev()) {
        assert!(
            tree.get_near(&key(151), &mut row, &mut hints, true)
                .unwrap()
        );
        assert_eq!(row, [151; 16]);
    }
    drop(roots);
    hints.forget(trees[1].root());
    for tree in &trees {
        assert!(tree.get_near(&key(3), &mut row, &mut hints, true).unwrap());
    }
}
