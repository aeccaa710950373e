//! A tree against a `BTreeMap`: random operations, all page sizes, pools of a few pages.

use crate::testing::{Model, World, assert_is, seed};
use crate::{Seek, Tree, TreeKind, max_inline_payload, max_key};
use std::ops::Bound;
use vellum_base::random::Random;

struct Keys {
    page_size: usize,
    style: u64,
    space: u64,
}

impl Keys {
    fn draw(&self, random: &mut Random) -> Vec<u8> {
        let number = random.below(self.space);
        match self.style {
            // Integers, as most tables have them.
            0 => number.to_be_bytes().to_vec(),
            // Long common prefixes.
            1 => [
                &[b'p'; 40][..],
                &(number / 7).to_be_bytes(),
                &[number as u8 % 7],
            ]
            .concat(),
            // All lengths, the empty key too.
            2 => {
                let mut key = vec![b'k'; (number % 9) as usize];
                if number % 9 > 2 {
                    key.extend_from_slice(&number.to_le_bytes()[..2]);
                }
                key
            }
            // Up to the longest, different only at the end.
            _ => {
                let longest = max_key(self.page_size);
                let mut key = vec![b'x'; longest - (number % 3) as usize];
                let at = key.len() - 4;
                key[at..].copy_from_slice(&(number as u32).to_be_bytes());
                key
            }
        }
    }
}

fn payload(random: &mut Random, page_size: usize, key: &[u8]) -> Vec<u8> {
    let limit = max_inline_payload(page_size, key.len()) as u64;
    let length = match random.below(20) {
        0 => limit,
        1 => random.below(limit + 1),
        2..4 => 0,
        _ => random.below(90),
    };
    let mut payload = vec![0; length as usize];
    random.fill(&mut payload);
    payload
}

fn check_seeks(tree: &Tree, model: &Model, key: &[u8]) {
    let mut leaf = crate::LeafCopy::new(tree.context().page_size());
    let first = |range: Option<(&Vec<u8>, &Vec<u8>)>| range.map(|(key, _)| key.clone());
    let forward = |seek: Seek<'_>, leaf: &mut crate::LeafCopy| {
        tree.read_leaf(seek, leaf).unwrap();
        loop {
            if leaf.position() < leaf.len() {
                let mut key = Vec::new();
                leaf.key(leaf.position(), &mut key);
                return Some(key);
            }
            let fence = leaf.upper_fence()?.to_vec();
            tree.read_leaf(Seek::AtOrAfter(&fence), leaf).unwrap();
        }
    };
    let backward = |seek: Seek<'_>, leaf: &mut crate::LeafCopy| {
        tree.read_leaf(seek, leaf).unwrap();
        loop {
            if leaf.position() > 0 {
                let mut key = Vec::new();
                leaf.key(leaf.position() - 1, &mut key);
                return Some(key);
            }
            let fence = leaf.lower_fence()?.to_vec();
            tree.read_leaf(Seek::Before(&fence), leaf).unwrap();
        }
    };
    let above = |bound| model.range::<[u8], _>((bound, Bound::Unbounded)).next();
    let below = |bound| {
        model
            .range::<[u8], _>((Bound::Unbounded, bound))
            .next_back()
    };
    assert_eq!(
        forward(Seek::AtOrAfter(key), &mut leaf),
        first(above(Bound::Included(key)))
    );
    assert_eq!(
        forward(Seek::After(key), &mut leaf),
        first(above(Bound::Excluded(key)))
    );
    assert_eq!(
        backward(Seek::Before(key), &mut leaf),
        first(below(Bound::Excluded(key)))
    );
    assert_eq!(
        backward(Seek::AtOrBefore(key), &mut leaf),
        first(below(Bound::Included(key)))
    );
}

fn random_operations(seed: u64, page_size: usize, frames: u64, kind: TreeKind, style: u64) {
    let mut random = Random::new(seed ^ style);
    let world = World::new(page_size, frames);
    let tree = world.tree(kind);
    let journal = world.journal(1);
    let before = world.pages_in_use();
    let keys = Keys {
        page_size,
        style,
        space: if style == 3 { 200 } else { 1500 },
    };
    let mut model = Model::new();
    let mut out = Vec::new();
    for step in 0..6000 {
        // Phases that grow and phases that shrink.
        let grow = (step / 1500) % 2 == 0;
        let key = keys.draw(&mut random);
        assert_eq!(tree.get(&key, &mut out).unwrap(), model.contains_key(&key));
        if let Some(wanted) = model.get(&key) {
            assert_eq!(&out, wanted);
        }
        if random.chance(if grow { 8 } else { 2 }, 10) {
            let payload = payload(&mut random, page_size, &key);
            tree.put(&key, &payload, journal).unwrap();
            model.insert(key, payload);
        } else {
            assert_eq!(
                tree.delete(&key, journal).unwrap(),
                model.remove(&key).is_some()
            );
        }
        if step % 97 == 0 {
            check_seeks(&tree, &model, &keys.draw(&mut random));
        }
        if step % 1499 == 0 {
            assert_is(&tree, &model);
        }
    }
    assert_is(&tree, &model);
    let statistics = crate::testing::assert_sound(&tree);
    assert_eq!(
        world.pages_in_use(),
        before - 1 + statistics.pages_total(),
        "nothing leaks"
    );
    // Mass deletion gives the space back.
    for key in model.keys() {
        assert!(tree.delete(key, journal).unwrap());
    }
    assert_is(&tree, &Model::new());
    assert!(
        world.pages_in_use() <= before + 3,
        "{} pages left",
        world.pages_in_use()
    );
    while !tree.drop_pages(4, journal, None).unwrap() {}
    assert_eq!(world.pages_in_use(), before - 1);
}

#[test]
fn prop_durable_tree_equals_a_map_in_a_tiny_pool() {
    let seed = seed("prop_durable_tree_equals_a_map_in_a_tiny_pool");
    for (size, style) in [
        (4096, 0),
        (4096, 1),
        (4096, 2),
        (4096, 3),
        (8192, 2),
        (16384, 3),
    ] {
        random_operations(seed, size, 16, TreeKind::Plain, style);
    }
}

/// At the end a root stood over one inner page, and that over one, down to an empty leaf: five pages, since only the page right above one
/// that was alone was joined, and not who was alone above it.
#[test]
fn regress_pages_that_are_alone_on_several_levels_are_given_back() {
    random_operations(467_811_820, 4096, 16, TreeKind::Plain, 3);
}

#[test]
fn prop_temporary_tree_equals_a_map() {
    let seed = seed("prop_temporary_tree_equals_a_map");
    for (size, style) in [(4096, 3), (8192, 1), (16384, 0)] {
        random_operations(seed, size, 64, TreeKind::Temporary, style);
    }
}
