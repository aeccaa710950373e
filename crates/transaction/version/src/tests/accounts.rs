//! The accounts against what the delta indexes hold.

use super::world::{SLOTS, World, seed};
use crate::accounts::EPOCH_MIN;
use crate::delta;
use crate::{Tally, VersionKind, VersionOptions};
use vellum_base::random::Random;
use vellum_base::{SlotId, Timestamp};
use vellum_btree::{LeafCopy, Seek, Tree};

/// Counts the before-images of all slots by looking at each: ranges and full copies.
fn brute(world: &World) -> [Tally; 2] {
    let mut found = [Tally::default(); 2];
    let each = |tree: &Tree, found: &mut [Tally; 2]| {
        let mut leaf = LeafCopy::new(world.store.context().page_size());
        let mut from = Vec::new();
        loop {
            tree.read_leaf(Seek::AtOrAfter(&from), &mut leaf).unwrap();
            for index in 0..leaf.len() {
                let entry = leaf.payload(index);
                found[usize::from(delta::is_full(entry))].add(Tally::one(entry.len()));
            }
            match leaf.upper_fence() {
                Some(fence) => from = fence.to_vec(),
                None => return,
            }
        }
    };
    for slot in (0..SLOTS).map(SlotId) {
        if let Some(tree) = world.store.deltas(slot) {
            each(tree, &mut found);
        }
    }
    found
}

fn counted(world: &World) -> [Tally; 2] {
    let sums = world.store.versions();
    [VersionKind::Delta, VersionKind::FullCopy].map(|kind| sums.of(kind))
}

#[test]
fn prop_accounts_of_a_store_under_an_old_snapshot_are_exactly_what_is_there() {
    let seed = seed("prop_accounts_of_a_store");
    for round in 0..6 {
        let mut random = Random::new(seed + round);
        let options = VersionOptions {
            fat_updates: Some(random.below(4) as u8),
            fat: round % 2 == 0,
            ..VersionOptions::default()
        };
        let world = World::with_options(4096, 64, options);
        let trees = [world.table(), world.table()];
        let old = world.begin();
        for _ in 0..400 {
            let tx = world.begin();
            let mut clean = true;
            for _ in 0..=random.below(4) {
                let tree = &trees[random.below(2) as usize];
                let key = [random.below(12) as u8];
                let value = vec![random.below(256) as u8; 20 + 40 * random.below(2) as usize];
                clean &= match random.below(6) {
                    0 => world.delete(&tx, tree, &key),
                    1 if world.get(&tx, tree, &key).is_some() => {
                        world.patch(&tx, tree, &key, 3..9, 7)
                    }
                    2 if world.decompose(tree, &key) => continue,
                    _ => world.put(&tx, tree, &key, &value),
                }
                .is_ok();
            }
            if clean && !random.chance(1, 6) {
                world.commit(tx);
            } else {
                world.rollback(tx);
            }
        }
        assert_eq!(counted(&world), brute(&world));
        let by_tree = world.store.census(1000).unwrap().0;
        let mut sum = Tally::default();
        for tree in &trees {
            let sums = by_tree[&tree.root()];
            sum.add(sums.of(VersionKind::Delta));
            sum.add(sums.of(VersionKind::FullCopy));
        }
        assert_eq!(sum, world.store.versions().total(), "of two tables");
        assert!(
            options.fat || sum.count > 100,
            "the old snapshot keeps them"
        );
        let since = world.store.versions_between(old.snapshot(), Timestamp::MAX);
        assert_eq!(since, sum);
        drop(old);
        world.collect();
        assert_eq!(brute(&world), [Tally::default(); 2]);
        // V41: an epoch whose last stamp was reverted stays for a while.
        let left = world.store.versions().total().count;
        assert!(left <= EPOCH_MIN * u64::from(SLOTS));
    }
}
