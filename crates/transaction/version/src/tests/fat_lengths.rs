//! Fat rows whose bodies change their length: old versions stand in them whole, and what does not fit goes to delta indexes.

use super::world::World;
use crate::fat::layout::{BODY_AT, FatRow, Step, VERSION_OVERHEAD};
use crate::fat::prune::{Kept, KeptStep, Pruned, Rewrite};
use crate::row::{Header, STAMPED_HEADER, Shape};
use crate::{VersionKind, VersionOptions, delta};
use vellum_base::Timestamp;
use vellum_btree::Tree;
use vellum_metrics::Counter;
use vellum_txn::{Transaction, VersionStamp};

const PAGE: usize = 8192;

/// Rows turn fat with the fourth update, whatever snapshots are open.
fn world_of(page_size: usize) -> World {
    let options = VersionOptions {
        fat_updates: Some(3),
        shortcuts: false,
        ..VersionOptions::default()
    };
    World::with_options(page_size, 64, options)
}

/// Puts a value, and has every OLTP snapshot see it.
fn put(world: &World, tree: &Tree, value: &[u8]) {
    let tx = world.begin();
    world.put(&tx, tree, b"k", value).unwrap();
    world.commit(tx);
    world.manager.domain().pass();
}

/// Puts values of lengths from 60 to 100 by turns.
fn put_lengths(world: &World, tree: &Tree, times: usize) {
    for round in 0..times {
        put(world, tree, &vec![round as u8; 60 + round * 17 % 41]);
    }
}

/// The kinds of the old versions of the only row, from the newest to the oldest, and the row's length; `r`: ranges, `w`: whole, `c`: copy, `s`: same.
fn steps(world: &World, tree: &Tree) -> (String, usize) {
    let mut found = Vec::new();
    world.each_row(tree, |_, row| {
        let fat = FatRow::decode(row).expect("it is fat");
        assert!(fat.is_sound());
        let steps = fat
            .old_versions()
            .map(|version| match version.unwrap().step {
                Step::Ranges(_) => 'r',
                Step::Whole(_) => 'w',
                Step::Copy(_) => 'c',
                Step::Same => 's',
            });
        found.push((steps.collect(), row.len()));
    });
    assert_eq!(found.len(), 1, "rows");
    found.remove(0)
}

#[test]
fn row_that_changes_its_length_all_the_time_stays_as_long_as_it_is_and_needs_no_delta() {
    let world = world_of(PAGE);
    let tree = world.table();
    put(&world, &tree, &[7; 80]);
    let old = world.begin_olap();
    put_lengths(&world, &tree, 80);
    let (_, length) = steps(&world, &tree);
    let longest = BODY_AT + 100 + 4 * (VERSION_OVERHEAD + STAMPED_HEADER + 100);
    assert!(length <= longest, "{length} bytes");
    let metrics = world.store.context().metrics();
    let displaced = metrics.get(Counter::VersionsDisplaced);
    for _ in 0..5 {
        put_lengths(&world, &tree, 41);
        let (steps, now) = steps(&world, &tree);
        assert_eq!(now, length, "each update is written into the row as it is");
        assert!(["ww", "rw"].contains(&&steps[..]), "{steps}");
    }
    assert_eq!(metrics.get(Counter::VersionsDisplaced), displaced + 5 * 41);
    assert_eq!(world.deltas(), 0);
    assert_eq!(world.get(&old, &tree, b"k"), Some(vec![7; 80]));
    assert_eq!(world.rows(&old, &tree), [(b"k".to_vec(), vec![7; 80])]);
    let (census, _) = world.store.census(world.manager.domain(), 100).unwrap();
    assert_eq!(census[&tree.root()].of(VersionKind::Fat).count, 2);
    world.rollback(old);
    // What is not known to be dead fills the row, which is then looked at as a whole.
    let mut was_plain = false;
    for length in 0..60 {
        let tx = world.begin();
        world.put(&tx, &tree, b"k", &vec![9; 60 + length]).unwrap();
        world.commit(tx);
        was_plain |= world.fat_rows(&tree).is_empty();
    }
    assert!(was_plain, "nobody needs old versions");
}

#[test]
fn bodies_of_a_sixteenth_of_a_page_stand_in_the_row_and_longer_ones_in_a_delta() {
    for (length, kind) in [(PAGE / 16, 'w'), (PAGE / 16 + 1, 'c')] {
        let world = world_of(PAGE);
        let tree = world.table();
        put(&world, &tree, &vec![7; length]);
        let old = world.begin_olap();
        for round in 0..50 {
            put(&world, &tree, &vec![round; length - usize::from(round % 2)]);
        }
        let (steps, _) = steps(&world, &tree);
        assert_eq!(steps.chars().last(), Some(kind));
        assert_eq!(world.deltas() > 0, kind == 'c');
        assert_eq!(world.get(&old, &tree, b"k"), Some(vec![7; length]));
    }
}

#[test]
fn update_that_changes_more_than_ranges_hold_keeps_the_body() {
    let world = world_of(PAGE);
    let tree = world.table();
    let length = PAGE / 16;
    put(&world, &tree, &vec![7; length]);
    let old = world.begin_olap();
    for round in 0..50 {
        let tx = world.begin();
        world.patch(&tx, &tree, b"k", 0..length, round).unwrap();
        world.commit(tx);
        world.manager.domain().pass();
    }
    let (steps, _) = steps(&world, &tree);
    assert!(steps.starts_with('w'), "{steps}");
    assert_eq!(world.deltas(), 0);
    assert_eq!(world.get(&old, &tree, b"k"), Some(vec![7; length]));
}

/// Symptom: "payload of 1499 bytes, at most 1494" where a leaf was split for a row. Cause: the row was planned with the header that its replaced version
/// has in a fat row, and measured with the one that it had as a plain row, whose link takes 14 bytes.
#[test]
fn regress_row_that_turns_fat_with_its_longest_body_is_planned_as_long_as_it_is_written() {
    let mut fat = 0;
    for key in [&b"k"[..], b"k-of-8-b", b"k-of-32-bytes-k-of-32-bytes-k-of"] {
        for updates in 0..10 {
            for longest in [1200, 1300, 1330, 1350, 1360] {
                let options = VersionOptions {
                    fat_updates: Some(3),
                    ..VersionOptions::default()
                };
                let world = World::with_options(4096, 64, options);
                let tree = world.table();
                let put = |key: &[u8], value: &[u8]| {
                    let tx = world.begin();
                    world.put(&tx, &tree, key, value).unwrap();
                    world.commit(tx);
                    world.manager.domain().pass();
                };
                // The leaf has no room for a long row.
                put(b"a", &[1; 1000]);
                put(b"b", &[1; 700]);
                put(b"z", &[1; 1000]);
                put(key, &[7; 200]);
                let old = world.begin_olap();
                for round in 0..updates {
                    put(key, &[round; 200]);
                }
                put(key, &vec![9; longest]);
                fat += world.fat_rows(&tree).len();
                assert_eq!(world.get(&old, &tree, key), Some(vec![7; 200]));
                assert_eq!(
                    world.get(&world.begin(), &tree, key),
                    Some(vec![9; longest])
                );
            }
        }
    }
    assert!(fat > 10, "{fat} rows are fat");
}

#[test]
fn row_whose_versions_would_not_fit_as_names_either_becomes_a_chain_of_what_they_are() {
    // Patches of 20 bytes: a name is nearly as long, and a copy 48 times.
    let world = world_of(4096);
    let tree = world.table();
    put(&world, &tree, &[7; 960]);
    let mut held = Held::new();
    for round in 0..200_u8 {
        if round % 20 == 19 && held.len() < 5 {
            held.push((world.begin_olap(), world.get(&world.begin(), &tree, b"k")));
        }
        let tx = world.begin();
        world.patch(&tx, &tree, b"k", 100..120, round).unwrap();
        world.commit(tx);
        world.manager.domain().pass();
        check(&world, &tree, &held);
    }
    assert!(world.fat_rows(&tree).is_empty(), "five do not fit");
    let (sums, _) = world.store.census(world.manager.domain(), 1000).unwrap();
    let kinds = [VersionKind::Delta, VersionKind::FullCopy];
    let counts = kinds.map(|kind| sums[&tree.root()].of(kind).count);
    assert!(counts[0] > 0 && counts[1] <= 1, "{counts:?}");
}

#[test]
fn rollback_puts_back_bodies_of_every_length_into_a_full_leaf() {
    let world = world_of(PAGE);
    let tree = world.table();
    put(&world, &tree, &[7; 80]);
    let old = world.begin_olap();
    put_lengths(&world, &tree, 40);
    put(&world, &tree, &[8; 300]);
    let tx = world.begin();
    world.put(&tx, &tree, b"k", &[1; 5]).unwrap();
    let savepoint = tx.savepoint();
    for length in [0, 90, 700, 10, 200, 3] {
        world.put(&tx, &tree, b"k", &vec![2; length]).unwrap();
    }
    world.delete(&tx, &tree, b"k").unwrap();
    world.put(&tx, &tree, b"k", &[3; 20]).unwrap();
    // What the row does not take others do.
    let others = world.begin();
    for number in 0..200u8 {
        world
            .put(&others, &tree, &[b'k', number], &[1; 50])
            .unwrap();
    }
    world.commit(others);
    world.rollback_to(&tx, &savepoint);
    assert_eq!(world.get(&tx, &tree, b"k"), Some(vec![1; 5]));
    assert_eq!(world.get(&old, &tree, b"k"), Some(vec![7; 80]));
    world.rollback(tx);
    assert_eq!(world.get(&world.begin(), &tree, b"k"), Some(vec![8; 300]));
    assert_eq!(world.get(&old, &tree, b"k"), Some(vec![7; 80]));
}

#[test]
fn deleted_row_keeps_its_body_and_is_buried_with_it() {
    let world = world_of(PAGE);
    let tree = world.table();
    put(&world, &tree, &[7; 80]);
    let old = world.begin_olap();
    put_lengths(&world, &tree, 40);
    let young = world.begin_olap();
    let seen = world.get(&young, &tree, b"k");
    let tx = world.begin();
    world.delete(&tx, &tree, b"k").unwrap();
    world.commit(tx);
    assert!(
        steps(&world, &tree).0.starts_with('w'),
        "behind a tombstone"
    );
    world.collect();
    assert_eq!((world.heads(&tree), world.store.buried()), (0, 1));
    assert_eq!(world.deltas(), 0);
    assert_eq!(world.get(&old, &tree, b"k"), Some(vec![7; 80]));
    assert_eq!(world.get(&young, &tree, b"k"), seen);
    world.rollback(old);
    world.rollback(young);
    world.collect();
    assert_eq!(world.store.buried(), 0);
}

/// Snapshots, and what each sees.
type Held = Vec<(Transaction, Option<Vec<u8>>)>;

fn check(world: &World, tree: &Tree, held: &Held) {
    for (tx, value) in held {
        assert_eq!(world.get(tx, tree, b"k"), *value);
    }
}

#[test]
fn row_of_more_versions_than_it_holds_gives_the_longest_to_delta_indexes_and_stays_fat() {
    // Of ranges, of whole bodies, and of both.
    for lengths in [[120, 120, 120], [131, 132, 133], [120, 240, 240]] {
        let world = world_of(4096);
        let tree = world.table();
        let mut now = vec![7; 120];
        put(&world, &tree, &now);
        let mut held = Held::new();
        for round in 0..300_usize {
            if round % 20 == 19 {
                if held.len() == 5 {
                    let (tx, _) = held.remove(round / 20 % 5);
                    world.rollback(tx);
                }
                held.push((world.begin_olap(), Some(now)));
            }
            now = vec![round as u8; lengths[round % 3]];
            put(&world, &tree, &now);
            if round % 20 == 10 {
                check(&world, &tree, &held);
                let fat = world.fat_rows(&tree).len();
                assert!(held.len() < 5 || fat == 1, "{lengths:?}, round {round}");
            }
        }
        world.collect();
        let (steps, length) = steps(&world, &tree);
        let copies = steps.chars().filter(|step| *step == 'c').count();
        println!(
            "{lengths:?}: {steps}, {length} bytes, {} deltas",
            world.deltas()
        );
        check(&world, &tree, &held);
        assert!(copies > 0 && steps.len() > copies, "{steps}");
        assert!(length <= 4096 / 4, "{length} bytes");
        assert_eq!(world.deltas(), copies);
        assert!(world.decompose(&tree, b"k"));
        check(&world, &tree, &held);
        put_lengths(&world, &tree, 30);
        check(&world, &tree, &held);
        for (tx, _) in held.drain(..) {
            world.rollback(tx);
        }
        put_lengths(&world, &tree, 30);
        world.collect();
        assert_eq!(world.deltas(), 0);
    }
}

#[test]
fn bodies_that_go_to_delta_indexes_meet_copies_that_are_rewritten_or_were_to_go() {
    let world = world_of(PAGE);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"k", &[1; 100]).unwrap();
    let name = |stamp| VersionStamp::new(tx.slot(), Timestamp(stamp), 0);
    let image = |byte: u8, range: std::ops::Range<usize>| {
        let mut image = Vec::new();
        delta::encode_image(&[byte; 100], std::slice::from_ref(&range), &mut image);
        image
    };
    let kept = |stamp, step| Kept {
        header: Header::stamped(Shape::INLINE, name(stamp), false),
        step,
    };
    for stamp in [4, 5] {
        let mut entry = Vec::new();
        let header = Header::stamped(Shape::INLINE, name(2), false);
        delta::encode_full(&header, &[9; 100], &mut entry);
        world
            .store
            .put_delta(tree.root(), &name(stamp), &entry)
            .unwrap();
    }
    let mut pruned = Pruned {
        kept: vec![
            kept(6, KeptStep::Ranges(image(3, 0..60).into())),
            // Of a version that went, and is to become that of this one.
            kept(4, KeptStep::Copy(name(5))),
            // The copy of a version that went had the name that its body gets.
            kept(3, KeptStep::Ranges(image(6, 0..70).into())),
            kept(1, KeptStep::Ranges(image(7, 0..4).into())),
        ],
        rewrites: vec![Rewrite {
            name: name(5),
            header: Header::stamped(Shape::INLINE, name(4), false),
            image: image(8, 20..100).into(),
        }],
        gone: [name(4)].into_iter().collect(),
        ..Pruned::default()
    };
    let spilled = (world.store).spill(tree.root(), name(7), &[1; 100], &mut pruned, (0, 400));
    spilled.unwrap();
    let steps = pruned.kept.iter().map(|kept| kept.step.clone());
    let expected = [
        KeptStep::Copy(name(7)),
        KeptStep::Copy(name(5)),
        KeptStep::Copy(name(4)),
        // A name is longer than what it says.
        KeptStep::Ranges(image(7, 0..4).into()),
    ];
    assert!(steps.eq(expected), "{:?}", pruned.kept);
    assert!(pruned.gone.is_empty() && pruned.rewrites.is_empty());
    let parts = |parts: [(u8, usize); 2]| {
        let parts = parts.map(|(byte, length)| vec![byte; length]);
        parts.concat()
    };
    for (stamp, body) in [
        (7, parts([(3, 60), (1, 40)])),
        (5, parts([(9, 20), (8, 80)])),
        (4, parts([(6, 70), (8, 30)])),
    ] {
        let mut found = Vec::new();
        assert!(
            world
                .store
                .full_copy(&name(stamp), tree.root(), &mut found)
                .unwrap()
        );
        assert_eq!(found, body, "{stamp}");
    }
}
