//! Copies of leaves that lack records at first: each record is that of the whole copy, or it is not given.

use crate::testing::{World, seed};
use crate::{LeafCopy, Seek, Tree, TreeKind};
use vellum_base::random::Random;

/// Keys of different lengths, many of which begin alike.
fn key(random: &mut Random) -> Vec<u8> {
    let mut key = vec![7; random.below(12) as usize];
    key.extend_from_slice(&(random.below(3000) as u16).to_be_bytes());
    key
}

fn tree_of(world: &World, random: &mut Random, rows: u64) -> Tree {
    let tree = world.tree(TreeKind::Temporary);
    for _ in 0..rows {
        let payload = vec![random.below(200) as u8; random.below(120) as usize];
        tree.put(&key(random), &payload, None).unwrap();
    }
    tree
}

fn record(leaf: &LeafCopy, index: usize) -> (Vec<u8>, Vec<u8>) {
    let mut key = Vec::new();
    leaf.key(index, &mut key);
    (key, leaf.payload(index).to_vec())
}

/// True if the records that are left that way, to the leaf's fence, all lie before `end`; from the whole copy.
fn all_before(whole: &LeafCopy, forward: bool, end: &[u8]) -> bool {
    let fence = if forward {
        whole.upper_fence().map(|fence| fence <= end)
    } else {
        whole.lower_fence().map(|fence| fence > end)
    };
    fence.unwrap_or(false)
}

#[test]
fn prop_glimpse_is_the_leaf_record_by_record() {
    let seed = seed("prop_glimpse_is_the_leaf_record_by_record");
    let mut random = Random::new(seed);
    let (mut glimpses, mut filled) = (0, 0);
    for rows in [0, 1, 30, 900] {
        let world = World::new(4096, 128);
        let tree = tree_of(&world, &mut random, rows);
        let [mut leaf, mut whole] = [(); 2].map(|()| LeafCopy::new(4096));
        for _ in 0..400 {
            let (from, end) = (key(&mut random), key(&mut random));
            let (seek, forward) = match random.below(6) {
                0 => (Seek::AtOrAfter(&from), true),
                1 => (Seek::After(&from), true),
                2 => (Seek::First, true),
                3 => (Seek::Before(&from), false),
                4 => (Seek::AtOrBefore(&from), false),
                _ => (Seek::Last, false),
            };
            let end = (random.below(2) == 0).then_some(end.as_slice());
            tree.glimpse_leaf(seek, end, &mut leaf).unwrap();
            tree.read_leaf(seek, &mut whole).unwrap();
            assert_eq!(
                (leaf.len(), leaf.position(), leaf.page_id()),
                (whole.len(), whole.position(), whole.page_id())
            );
            assert_eq!(leaf.upper_fence(), whole.upper_fence());
            assert_eq!(leaf.lower_fence(), whole.lower_fence());
            let is_glimpse = end.is_none_or(|end| all_before(&whole, forward, end));
            assert_eq!(leaf.is_whole(), !is_glimpse || whole.is_empty());
            glimpses += u32::from(is_glimpse);
            let mut wanted: Vec<usize> = if forward {
                (leaf.position()..leaf.len()).collect()
            } else {
                (0..leaf.position()).rev().collect()
            };
            wanted.truncate(random.below(40) as usize);
            for index in wanted {
                assert!(leaf.has(index) || tree.add_record(&mut leaf, index));
                assert_eq!(record(&leaf, index), record(&whole, index));
            }
            filled += u32::from(is_glimpse && leaf.is_whole());
            assert!(tree.complete(&mut leaf) && leaf.is_whole());
            assert!((0..whole.len()).all(|at| record(&leaf, at) == record(&whole, at)));
        }
    }
    assert!(glimpses > 200 && filled > 50, "{glimpses} {filled}");
}

/// Nothing is added to what was read before the leaf changed, whatever changed in it and wherever it is; nor is that left to who might
/// take it for the leaf: where both happen at once, what was read may be overwritten.
#[test]
fn glimpse_of_a_leaf_that_has_changed_is_void() {
    let world = World::new(4096, 64);
    let tree = world.tree(TreeKind::Temporary);
    let key = |number: u64| number.to_be_bytes();
    for number in 0..20 {
        tree.put(&key(number), &[number as u8; 16], None).unwrap();
    }
    let changes: [&dyn Fn(); 3] = [
        &|| tree.put(&key(3), &[1; 16], None).unwrap(),
        &|| {
            tree.delete(&key(19), None).unwrap();
            tree.put(&key(18), &[2; 16], None).unwrap();
        },
        &|| (100..400).for_each(|number| tree.put(&key(number), &[1; 16], None).unwrap()),
    ];
    for change in changes {
        let mut leaf = LeafCopy::new(4096);
        tree.glimpse_leaf(Seek::First, None, &mut leaf).unwrap();
        assert!(tree.add_record(&mut leaf, 0));
        change();
        assert!(!tree.add_record(&mut leaf, 1));
        assert!(leaf.is_empty() && !leaf.covers(&key(0)));
        tree.glimpse_leaf(Seek::First, None, &mut leaf).unwrap();
        change();
        assert!(!tree.complete(&mut leaf));
        assert!(leaf.is_empty() && !leaf.covers(&key(0)));
        // Another copy is what the leaf is now.
        tree.glimpse_leaf(Seek::First, None, &mut leaf).unwrap();
        assert!(tree.complete(&mut leaf));
    }
}

/// One that was found is in the tree then, whoever writes meanwhile.
#[test]
fn glimpses_beside_a_writer_are_of_one_state_of_their_leaf() {
    let world = World::new(4096, 64);
    let tree = world.tree(TreeKind::Temporary);
    let key = |number: u64| number.to_be_bytes();
    for number in 0..60 {
        tree.put(&key(number), &[0; 24], None).unwrap();
    }
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..4000_u32 {
                // All rows bear the number of a round, or of that before.
                for number in 0..60 {
                    tree.put(&key(number), &[round as u8; 24], None).unwrap();
                }
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let (mut leaf, mut pairs) = (LeafCopy::new(4096), 0_u64);
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            tree.glimpse_leaf(Seek::AtOrAfter(&key(7)), None, &mut leaf)
                .unwrap();
            let at = leaf.position();
            if !tree.add_record(&mut leaf, at) || !tree.add_record(&mut leaf, at + 1) {
                continue;
            }
            let [first, second] = [at, at + 1].map(|index| record(&leaf, index));
            assert_eq!((&first.0[..], &second.0[..]), (&key(7)[..], &key(8)[..]));
            for payload in [&first.1, &second.1] {
                assert!(payload.iter().all(|byte| *byte == payload[0]), "torn");
            }
            let ahead = first.1[0].wrapping_sub(second.1[0]);
            assert!(ahead <= 1, "the second row is of an older round: {ahead}");
            pairs += 1;
        }
        writer.join().unwrap();
        pairs
    });
    println!("{seen} pairs");
}

#[test]
fn bounds_that_exclude_each_other_leave_nothing_to_glimpse_at() {
    let world = World::new(4096, 64);
    let tree = tree_of(&world, &mut Random::new(3), 600);
    let mut leaf = LeafCopy::new(4096);
    let (from, end) = ([7, 200], [7, 0]);
    tree.glimpse_leaf(Seek::AtOrAfter(&from), Some(&end), &mut leaf)
        .unwrap();
    assert!(leaf.is_whole(), "its end lies in front of it");
}
