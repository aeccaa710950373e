//! Removing ranges from both edges, dropping trees.

use crate::testing::{Model, World, assert_is, seed};
use crate::{Tree, TreeKind};
use vellum_base::random::Random;

fn grown(world: &World, kind: TreeKind, rows: u64, random: &mut Random) -> (Tree, Model) {
    let tree = world.tree(kind);
    let mut model = Model::new();
    for _ in 0..rows {
        let mut key = random.below(rows * 3).to_be_bytes().to_vec();
        // Some keys are long, so that inner pages have few children and the tree has levels.
        if random.chance(1, 2) {
            key.extend_from_slice(&[b'z'; 300]);
        }
        let payload = vec![7; random.below(120) as usize];
        tree.put(&key, &payload, world.journal(1)).unwrap();
        model.insert(key, payload);
    }
    (tree, model)
}

#[test]
fn prop_removed_ranges_are_gone_and_the_rest_stays() {
    let seed = seed("prop_removed_ranges_are_gone_and_the_rest_stays");
    let mut random = Random::new(seed);
    for round in 0..12 {
        let kind = [TreeKind::Temporary, TreeKind::Plain][round % 2];
        let world = World::new([4096, 8192][round / 2 % 2], [16, 64][round / 4 % 2]);
        let (tree, mut model) = grown(&world, kind, 3000, &mut random);
        for _ in 0..6 {
            let key = random.below(9500).to_be_bytes();
            let budget = random.between(1, 40) as usize;
            if random.chance(1, 2) {
                let key = &key[..];
                while !tree.remove_below(key, budget, world.journal(1)).unwrap() {}
                model.retain(|found, _| found.as_slice() >= key);
            } else {
                let key = &key[..];
                while !tree.remove_from(key, budget, world.journal(1)).unwrap() {}
                model.retain(|found, _| found.as_slice() < key);
            }
            assert_is(&tree, &model);
            for _ in 0..200 {
                let key = random.below(9500).to_be_bytes().to_vec();
                tree.put(&key, b"again", world.journal(1)).unwrap();
                model.insert(key, b"again".to_vec());
            }
            assert_is(&tree, &model);
        }
        while !tree.remove_below(&[255; 9], 50, world.journal(1)).unwrap() {}
        assert_is(&tree, &Model::new());
        let statistics = crate::testing::assert_sound(&tree);
        assert!(
            statistics.pages_total() <= 6,
            "{statistics:?}: an empty edge is all that stays"
        );
        assert_eq!(world.pages_in_use(), statistics.pages_total());
    }
}

/// A tree whose keys are as long as keys can be and share prefixes as long as fences can: inner pages have few children, and many more between
/// fences that share a lot than between others.
fn towering(world: &World, page_size: usize, rows: u64, random: &mut Random) -> (Tree, Model) {
    let tree = world.tree(TreeKind::Plain);
    let mut model = Model::new();
    let longest = crate::max_key(page_size);
    let shared = random.between(0, longest as u64 - 20) as usize;
    let prefixes = random.between(1, 12);
    for _ in 0..rows {
        let mut key = vec![random.below(prefixes) as u8; shared];
        key.extend_from_slice(&random.below(rows * 3).to_be_bytes());
        let more = match random.below(3) {
            0 => 0,
            1 => random.below((longest - key.len()) as u64 + 1) as usize,
            _ => longest - key.len(),
        };
        key.resize(key.len() + more, b'z');
        tree.put(&key, &[7; 20], world.journal(1)).unwrap();
        model.insert(key, vec![7; 20]);
    }
    (tree, model)
}

/// Dropping a tree never ended, and wrote log for ever: a page with one child, whose neighbour was too full to take it and could not give it half of
/// its children either, had the page above halved; and the next step joined the halves again.
#[test]
fn regress_removal_of_long_keys_with_long_prefixes_ends() {
    let seed = seed("regress_removal_of_long_keys_with_long_prefixes_ends");
    let mut random = Random::new(seed);
    for round in 0..60 {
        let page_size = [4096, 8192][round % 2];
        let world = World::new(page_size, 64);
        let rows = random.between(50, 600);
        let (tree, mut model) = towering(&world, page_size, rows, &mut random);
        let pages = world.pages_in_use();
        let some: Vec<u8> = model
            .keys()
            .nth(random.below(model.len() as u64) as usize)
            .cloned()
            .unwrap();
        let way = random.below(3);
        let budget = random.between(1, 20) as usize;
        let mut steps = 0;
        loop {
            let done = match way {
                0 => tree.remove_below(&some, budget, world.journal(1)),
                1 => tree.remove_from(&some, budget, world.journal(1)),
                _ => tree.drop_pages(budget, world.journal(1), None),
            };
            if done.unwrap() {
                break;
            }
            steps += 1;
            assert!(
                steps < 2 * pages + 10,
                "round {round}, way {way}: {pages} pages"
            );
        }
        match way {
            0 => model.retain(|key, _| *key >= some),
            1 => model.retain(|key, _| *key < some),
            _ => continue,
        }
        assert_is(&tree, &model);
    }
}

#[test]
fn queue_that_is_appended_and_trimmed_keeps_its_size() {
    let world = World::new(4096, 64);
    let tree = world.tree(TreeKind::Temporary);
    let mut appender = tree.appender();
    for number in 0..60_000_u64 {
        let key = number.to_be_bytes();
        appender
            .append(&key, &[&[1; 40]], crate::Logging::None, None)
            .unwrap();
        if number % 500 == 499 {
            let below = (number - 400).to_be_bytes();
            while !tree.remove_below(&below, 8, None).unwrap() {}
            assert!(world.pages_in_use() < 30, "{} pages", world.pages_in_use());
        }
    }
    let statistics = crate::testing::assert_sound(&tree);
    assert_eq!(statistics.rows, 401);
}

#[test]
fn most_of_a_range_goes_in_few_changes_and_nothing_beyond_it() {
    for kept in [0, 3, 400] {
        let world = World::new(4096, 64);
        let tree = world.tree(TreeKind::Temporary);
        let mut appender = tree.appender();
        for number in 0..6_000_u64 {
            let key = number.to_be_bytes();
            appender
                .append(&key, &[&[1; 40]], crate::Logging::None, None)
                .unwrap();
            if number % 8 == 7 && number > kept {
                let below = (number - kept).to_be_bytes();
                while !tree.remove_most_below(&below, 8, None).unwrap() {}
                let rows = crate::testing::assert_sound(&tree).rows;
                // A leaf holds about 70 of them; what stays is in two, and in the one that is left empty.
                assert!(
                    rows > kept && rows <= kept + 160,
                    "{rows} rows, {kept} needed"
                );
                assert!(world.pages_in_use() <= 5 + kept / 30);
            }
        }
        let below = 5_990_u64.to_be_bytes();
        while !tree.remove_below(&below, 8, None).unwrap() {}
        let rows = crate::testing::assert_sound(&tree).rows;
        assert!(rows <= 10 && rows > kept.min(9), "{rows} rows");
    }
}

#[test]
fn what_is_appended_is_trimmed_beside_what_stays_at_the_left() {
    // With four rows a leaf, 2,000 that come at once fill several pages above the leaves.
    for (payload, kept, every, all) in [
        (40, 3, 8, 4_000),
        (40, 400, 8, 4_000),
        (900, 200, 1_000, 40_000),
        (900, 3, 2_000, 60_000),
    ] {
        let world = World::new(4096, 64);
        let tree = world.tree(TreeKind::Temporary);
        let mut appender = tree.appender();
        let (key, row) = (u64::to_be_bytes, vec![1; payload]);
        let left = 500;
        let from = key(left);
        let (mut most, mut early, mut late) = (0, 0, 0);
        for number in 0..all {
            appender
                .append(&key(number), &[&row], crate::Logging::None, None)
                .unwrap();
            if number % every == every - 1 && number > left + kept {
                let below = key(number - kept);
                while !tree.remove_most_between(&from, &below, 8, None).unwrap() {}
                let statistics = crate::testing::assert_sound(&tree);
                assert!(statistics.rows > left + kept);
                most = most.max(statistics.rows - left - kept);
                let pages = match number < all / 2 {
                    true => &mut early,
                    false => &mut late,
                };
                *pages = statistics.pages_total().max(*pages);
            }
        }
        // Some leaves at the ends of the range, and one under each of the pages above that are joined.
        assert!(most <= 8 * 4096 / (payload as u64 + 10), "{most} rows");
        assert!(late <= early + 2, "{early} pages, {late} later");
        let mut out = Vec::new();
        for number in (0..left).chain(all - kept - 1..all) {
            assert!(tree.get(&key(number), &mut out).unwrap(), "{number}");
        }
        while !tree.remove_below(&key(all), 8, None).unwrap() {}
        assert_eq!(crate::testing::assert_sound(&tree).rows, 0);
    }
}

#[test]
fn prop_only_what_is_in_the_range_goes_and_most_of_it_does() {
    let seed = seed("prop_only_what_is_in_the_range_goes");
    let mut random = Random::new(seed);
    for round in 0..40 {
        let kind = [TreeKind::Temporary, TreeKind::Plain][round % 2];
        let world = World::new([4096, 8192][round / 2 % 2], [16, 64][round / 4 % 2]);
        let (tree, mut model) = grown(&world, kind, 2000, &mut random);
        let before = crate::testing::assert_sound(&tree);
        let from = random.below(6000).to_be_bytes();
        let to = random.below(6500).to_be_bytes();
        let budget = random.between(1, 40) as usize;
        while !tree
            .remove_most_between(&from, &to, budget, world.journal(1))
            .unwrap()
        {}
        let (mut left, mut out) = (0_u64, Vec::new());
        model.retain(|key, _| {
            let is_there = tree.get(key, &mut out).unwrap();
            let is_inside = key.as_slice() >= &from[..] && key.as_slice() < &to[..];
            assert!(is_there || is_inside, "{key:?}");
            left += u64::from(is_there && is_inside);
            is_there
        });
        assert_is(&tree, &model);
        // At each end, and one under each of the parents.
        let leaf = before.rows / before.pages_total() * 4;
        let parents = before.pages_total() / 4;
        assert!(left <= leaf * (2 + parents), "{left} of {before:?}");
    }
}

#[test]
fn dropping_is_done_in_bounded_steps_and_takes_its_entry_along() {
    let world = World::new(4096, 64);
    let mut random = Random::new(5);
    let pending = world.tree(TreeKind::Plain);
    let before = world.pages_in_use();
    let (tree, _) = grown(&world, TreeKind::Rows, 3000, &mut random);
    let key = tree.root().get().to_be_bytes();
    pending.put(&key, b"dropped", world.journal(1)).unwrap();
    let mut steps = 0;
    let mut last = world.pages_in_use();
    let mut out = Vec::new();
    while !tree
        .drop_pages(10, world.journal(2), Some(&pending))
        .unwrap()
    {
        steps += 1;
        let now = world.pages_in_use();
        assert!(last - now <= 30, "{} pages in one step", last - now);
        assert!(
            pending.get(&key, &mut out).unwrap(),
            "listed until the last page is gone"
        );
        last = now;
    }
    assert!(steps > 10);
    assert_eq!(world.pages_in_use(), before);
    assert!(!pending.get(&key, &mut out).unwrap());
}

#[test]
fn created_tree_is_listed_from_its_first_instant() {
    let world = World::new(4096, 64);
    let pending = world.tree(TreeKind::Plain);
    let entry = crate::Entry {
        tree: &pending,
        payload: b"new",
    };
    for _ in 0..300 {
        let tree = Tree::create(
            &world.context,
            world.journal(1),
            TreeKind::Rows,
            Some(entry),
        )
        .unwrap();
        let mut out = Vec::new();
        assert!(
            pending
                .get(&tree.root().get().to_be_bytes(), &mut out)
                .unwrap()
        );
        assert_eq!(out, b"new");
    }
    assert_eq!(crate::testing::assert_sound(&pending).rows, 300);
}

#[test]
fn prop_remove_each_takes_what_is_here_and_asked_for() {
    let mut random = Random::new(seed("prop_remove_each_takes_what_is_here_and_asked_for"));
    for _ in 0..60 {
        let world = World::new(4096, 64);
        let tree = world.tree(TreeKind::Temporary);
        let step = random.between(1, 3);
        let mut model = Model::new();
        for number in 0..random.between(1, 500) {
            // The first byte says whether it may go; none at all is never asked about.
            let payload = vec![random.below(2) as u8; random.below(12) as usize];
            tree.put(&(number * step).to_be_bytes(), &payload, None)
                .unwrap();
            model.insert((number * step).to_be_bytes().to_vec(), payload);
        }
        // Keys that are there and others, beyond the end too, over several leaves.
        let share = random.below(9);
        let names: Vec<[u8; 8]> = (0..step * 520)
            .filter(|_| random.below(8) < share)
            .map(u64::to_be_bytes)
            .collect();
        let mut done = 0;
        while done < names.len() {
            let mut leaf = tree.write(&names[done]).unwrap();
            let here = leaf.remove_each(&names[done..], |index, kind, length| {
                let payload = &model[&names[done + index][..]];
                assert_eq!((payload[0], payload.len()), (kind, length));
                kind == 1
            });
            assert!(here > 0, "the first one belongs to the leaf");
            done += here;
        }
        for name in &names {
            if model
                .get(&name[..])
                .is_some_and(|payload| payload.first() == Some(&1))
            {
                model.remove(&name[..]);
            }
        }
        assert_is(&tree, &model);
        crate::testing::assert_sound(&tree);
    }
}
