//! Writers, cursors, merges and eviction at once: real threads normally, random schedules under
//! shuttle.

#[cfg(not(shuttle))]
use crate::testing::seed;
use crate::testing::{World, assert_sound, contents};
use crate::{LeafCopy, Seek, Tree, TreeKind};
use std::sync::Arc;
use vellum_base::random::Random;
use vellum_sync::atomic::{AtomicBool, Ordering};
use vellum_sync::thread;

const STABLE: u64 = 10;

fn key(number: u64) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    // A shuttle run has few steps: wide keys make the tree split early.
    key.resize(if cfg!(shuttle) { 500 } else { 60 }, b'k');
    key
}

/// Walks the tree and asserts that every key divisible by `STABLE` below `limit` is met exactly
/// once, in order, and no key twice.
fn walk(tree: &Tree, limit: u64, forward: bool) {
    let mut leaf = LeafCopy::new(tree.context().page_size());
    let mut met = Vec::new();
    tree.read_leaf(if forward { Seek::First } else { Seek::Last }, &mut leaf)
        .unwrap();
    loop {
        let mut bytes = Vec::new();
        let range: Vec<usize> = if forward {
            (leaf.position()..leaf.len()).collect()
        } else {
            (0..leaf.position()).rev().collect()
        };
        for index in range {
            leaf.key(index, &mut bytes);
            let number = u64::from_be_bytes(bytes[..8].try_into().unwrap());
            assert_eq!(leaf.payload(index)[..8], number.to_le_bytes(), "a torn row");
            met.push(number);
        }
        let fence = if forward {
            leaf.upper_fence()
        } else {
            leaf.lower_fence()
        };
        let Some(fence) = fence.map(<[u8]>::to_vec) else {
            break;
        };
        let seek = if forward {
            Seek::AtOrAfter(&fence)
        } else {
            Seek::Before(&fence)
        };
        tree.read_leaf(seek, &mut leaf).unwrap();
    }
    if !forward {
        met.reverse();
    }
    assert!(
        met.windows(2).all(|pair| pair[0] < pair[1]),
        "in order, none twice"
    );
    let stable = met.iter().filter(|number| *number % STABLE == 0).count() as u64;
    assert_eq!(stable, limit.div_ceil(STABLE), "each stable key once");
}

fn payload(number: u64, random: &mut Random) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(8 + random.below(200) as usize, 1);
    payload
}

fn churn(seed: u64, kind: TreeKind, frames: u64, limit: u64, steps: u64, writers: u16) {
    let world = Arc::new(World::new(4096, frames));
    let tree = world.tree(kind);
    let mut random = Random::new(seed);
    for number in (0..limit).step_by(STABLE as usize) {
        tree.put(
            &key(number),
            &payload(number, &mut random),
            world.journal(0),
        )
        .unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..writers)
        .map(|writer| {
            let (world, tree) = (world.clone(), tree.clone());
            let mut random = Random::new(seed + 1 + u64::from(writer));
            thread::spawn(move || {
                // Each writer has its own keys and so knows what must be there in the end.
                let mut mine = std::collections::BTreeMap::new();
                let journal = world.journal(writer + 1);
                let mut out = Vec::new();
                for step in 0..steps {
                    let grow = (step * 6 / steps).is_multiple_of(2);
                    let slots = limit / STABLE * u64::from(writers.max(1));
                    let number =
                        random.below(slots) / u64::from(writers) * STABLE + 1 + u64::from(writer);
                    if random.chance(if grow { 9 } else { 1 }, 10) {
                        let payload = payload(number, &mut random);
                        tree.put(&key(number), &payload, journal).unwrap();
                        mine.insert(number, payload);
                    } else {
                        let was = tree.delete(&key(number), journal).unwrap();
                        assert_eq!(was, mine.remove(&number).is_some());
                    }
                    let other = random.below(limit);
                    if tree.get(&key(other), &mut out).unwrap() {
                        assert_eq!(out[..8], other.to_le_bytes());
                    } else {
                        assert_ne!(other % STABLE, 0, "a stable key is always there");
                    }
                }
                mine
            })
        })
        .collect();
    let readers: Vec<_> = [true, false]
        .into_iter()
        .map(|forward| {
            let (tree, stop) = (tree.clone(), stop.clone());
            thread::spawn(move || {
                let mut rounds = 0;
                while !stop.load(Ordering::Relaxed)
                    && rounds < if cfg!(shuttle) { 2 } else { u32::MAX }
                {
                    walk(&tree, limit, forward);
                    rounds += 1;
                }
            })
        })
        .collect();
    let mut expected = std::collections::BTreeMap::new();
    for writer in threads {
        expected.extend(writer.join().unwrap());
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    let statistics = assert_sound(&tree);
    assert_eq!(
        world.pages_in_use(),
        statistics.pages_total(),
        "nothing leaks"
    );
    let found: Vec<_> = contents(&tree)
        .into_iter()
        .map(|(key, payload)| (u64::from_be_bytes(key[..8].try_into().unwrap()), payload))
        .filter(|(number, _)| number % STABLE != 0)
        .collect();
    assert!(
        found.into_iter().eq(expected),
        "what the writers left is there"
    );
}

#[cfg(not(shuttle))]
#[test]
fn prop_cursors_see_each_committed_key_once_under_splits_and_merges() {
    let seed = seed("prop_cursors_see_each_committed_key_once_under_splits_and_merges");
    churn(seed, TreeKind::Plain, 2000, 6000, 12_000, 3);
    churn(seed + 9, TreeKind::Temporary, 2000, 6000, 12_000, 3);
}

#[cfg(not(shuttle))]
#[test]
fn prop_tiny_pool_under_concurrent_churn_loses_nothing() {
    let seed = seed("prop_tiny_pool_under_concurrent_churn_loses_nothing");
    churn(seed, TreeKind::Plain, 32, 1500, 1500, 2);
    churn(seed + 9, TreeKind::Temporary, 32, 1500, 1500, 2);
}

#[cfg(shuttle)]
#[test]
fn shuttle_splits_merges_and_cursors_with_eviction() {
    vellum_sync::model(1500, || churn(7, TreeKind::Temporary, 12, 60, 30, 2));
    vellum_sync::model(600, || churn(7, TreeKind::Plain, 12, 40, 20, 2));
}

#[cfg(not(shuttle))]
#[test]
fn get_never_returns_a_torn_or_foreign_payload() {
    let world = Arc::new(World::new(4096, 32));
    let tree = world.tree(TreeKind::Temporary);
    for number in 0..8 {
        tree.put(&[number], &[number; 300], None).unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (tree, stop) = (tree.clone(), stop.clone());
        thread::spawn(move || {
            let mut random = Random::new(1);
            while !stop.load(Ordering::Relaxed) {
                let number = random.below(8) as u8;
                let payload = vec![number + 8 * random.below(30) as u8; random.below(301) as usize];
                if random.chance(1, 3) {
                    tree.delete(&[number], None).unwrap();
                }
                tree.put(&[number], &payload, None).unwrap();
            }
        })
    };
    let mut out = Vec::new();
    let (mut found, mut turn) = (0, 0_u8);
    while found < 1_000_000 {
        turn = (turn + 1) % 8;
        if tree.get(&[turn], &mut out).unwrap() {
            found += 1;
            let first = out.first().copied().unwrap_or(turn);
            assert!(
                first % 8 == turn && out.iter().all(|byte| *byte == first),
                "torn: {out:?}"
            );
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
}
