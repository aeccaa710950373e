//! Fat rows, case by case.

use super::world::World;
use crate::VersionOptions;
use vellum_btree::Tree;

/// Rows turn fat with the third update under one oldest transaction.
fn world() -> World {
    let options = VersionOptions {
        fat_updates: 2,
        ..VersionOptions::default()
    };
    World::with_options(8192, 64, options)
}

fn put(world: &World, tree: &Tree, key: &[u8], value: &[u8]) {
    let tx = world.begin();
    world.put(&tx, tree, key, value).unwrap();
    world.commit(tx);
}

/// Enough updates of one row that it turns fat under an open snapshot, whatever slots there are.
fn update(world: &World, tree: &Tree, key: &[u8], times: u32) {
    for byte in 0..times {
        let tx = world.begin();
        world.patch(&tx, tree, key, 0..4, byte as u8).unwrap();
        world.commit(tx);
    }
}

#[test]
fn hot_row_under_an_old_snapshot_turns_fat_and_stays_short() {
    let world = world();
    let tree = world.table();
    put(&world, &tree, b"k", &[7; 100]);
    let old = world.begin();
    update(&world, &tree, b"k", 2000);
    let fat = world.fat_rows(&tree);
    assert_eq!(fat.len(), 1);
    assert!(fat[0].1 < 1000, "{} bytes", fat[0].1);
    assert!(world.deltas() < 20, "{} deltas", world.deltas());
    assert_eq!(world.get(&old, &tree, b"k"), Some(vec![7; 100]));
    world.rollback(old);
    update(&world, &tree, b"k", 100);
    assert_eq!(world.fat_rows(&tree), [], "nobody needs old versions");
}
