//! Bulk loads and appends.

use crate::testing::{Model, World, assert_is, assert_sound, seed};
use crate::{BulkLoader, LeafCopy, LeafHints, Logging, RowRedo, Seek, TreeKind, row_log_bytes};
use vellum_base::PageId;
use vellum_base::random::Random;

fn key(number: u64, style: u64) -> Vec<u8> {
    match style {
        0 => number.to_be_bytes().to_vec(),
        1 => format!("district/{:04}/order/{:08}", number / 300, number).into_bytes(),
        _ => [
            &(number / 11).to_be_bytes()[..],
            &vec![(number % 11) as u8; (number % 11) as usize],
        ]
        .concat(),
    }
}

/// Gives a loader rows of 108 bytes.
fn fill(world: &World, loader: &mut BulkLoader, rows: u64) {
    let journal = world.journal(1).unwrap();
    for number in 0..rows {
        let key = number.to_be_bytes();
        loader.push(&key, &[&[5; 100]], journal).unwrap();
    }
}

#[test]
fn prop_bulk_load_equals_inserts() {
    let seed = seed("prop_bulk_load_equals_inserts");
    let mut random = Random::new(seed);
    for round in 0..36_u64 {
        let kind = [TreeKind::Plain, TreeKind::Rows][(round % 2) as usize];
        let page_size = [4096, 8192, 16384][(round / 3 % 3) as usize];
        // A small pool brings few leaves at a time into the file, a large one logs them.
        let world = World::new(page_size, [32, 2048][(round / 2 % 2) as usize]);
        let tree = world.tree(kind);
        let mut model = Model::new();
        let journal = world.journal(1).unwrap();
        let mut loader = tree.bulk_loader(random.between(70, 100) as u8);
        let rows = [0, 1, 70, 3000, 9000][random.below(5) as usize];
        for number in 0..rows {
            let longest = if random.chance(1, 50) { 1200 } else { 80 };
            let payload = vec![2; random.below(longest) as usize];
            loader
                .push(&key(number, round % 3), &[&payload, b"+"], journal)
                .unwrap();
            model.insert(key(number, round % 3), [&payload[..], b"+"].concat());
        }
        assert_eq!(loader.finish(journal).unwrap(), rows);
        assert_is(&tree, &model);
        assert_eq!(world.pages_in_use(), assert_sound(&tree).pages_total());
        // From now on it is a tree as any other.
        for number in (0..rows).step_by(7) {
            tree.put(&key(number, round % 3), b"new", Some(journal))
                .unwrap();
            model.insert(key(number, round % 3), b"new".to_vec());
        }
        assert_is(&tree, &model);
    }
}

#[test]
fn load_costs_the_log_a_fraction_of_its_bytes_unless_images_are_required() {
    for required in [false, true] {
        let world = World::make(8192, 1024, false, |context| context);
        let tree = world.tree(TreeKind::Rows);
        let images = required.then(|| world.context.require_images());
        world.log.flush_round().unwrap();
        let before = world.log.statistics().bytes_records;
        let mut loader = tree.bulk_loader(100);
        fill(&world, &mut loader, 60_000);
        loader.finish(world.journal(1).unwrap()).unwrap();
        drop(images);
        world.log.flush_round().unwrap();
        let logged = world.log.statistics().bytes_records - before;
        let rows = 60_000 * 108;
        assert_eq!(logged > rows, required, "{logged} bytes for {rows}");
        // The last ones go into the log.
        let most = 64 * 8192 + rows / 50;
        assert!(required || logged < most, "{logged} bytes for {rows}");
        assert_eq!(assert_sound(&tree).rows, 60_000);
    }
}

#[test]
fn load_that_is_given_up_leaves_its_pages_to_others() {
    for rows in [300, 20_000_u64] {
        let world = World::make(4096, 256, false, |context| context);
        let tree = world.tree(TreeKind::Plain);
        let mut loader = tree.bulk_loader(100);
        fill(&world, &mut loader, rows);
        assert!(world.space.counts().loading > 0);
        drop(loader);
        let counts = world.space.counts();
        assert_eq!((counts.temporary, counts.loading), (0, 0));
        assert_eq!(world.pages_in_use(), assert_sound(&tree).pages_total());
    }
}

#[test]
fn bulk_load_fills_pages() {
    let world = World::new(8192, 64);
    let tree = world.tree(TreeKind::Plain);
    let mut loader = tree.bulk_loader(100);
    fill(&world, &mut loader, 20_000);
    loader.finish(world.journal(1).unwrap()).unwrap();
    let statistics = assert_sound(&tree);
    let full = 20_000 * (100 + 2 + 2 + 8) / 8192;
    assert!(
        statistics.pages[0] <= full * 102 / 100,
        "{statistics:?}, {full} full pages"
    );
}

#[test]
fn appends_fill_pages_and_other_keys_go_in_too() {
    for kind in [TreeKind::Plain, TreeKind::Temporary] {
        let world = World::new(4096, 64);
        let tree = world.tree(kind);
        let mut appender = tree.appender();
        let mut model = Model::new();
        let slot = world.log.slot(vellum_base::SlotId(1));
        let mut append = |key: Vec<u8>| {
            let payload = vec![9; 40];
            let parts = [&payload[..]];
            let bytes = row_log_bytes(key.len(), payload.len());
            let journal = world.journal(1).unwrap();
            if kind == TreeKind::Plain {
                slot.reserve(bytes).unwrap();
            }
            let logging = match kind {
                TreeKind::Temporary => Logging::None,
                _ => Logging::Record {
                    slot,
                    flags: 0,
                    redo: RowRedo::Row(&parts),
                    undo: &[],
                },
            };
            appender
                .append(&key, &parts, logging, Some((journal, bytes)))
                .unwrap();
            model.insert(key, payload);
        };
        for number in 0..3000_u64 {
            append((number * 2).to_be_bytes().to_vec());
        }
        assert_eq!(assert_sound(&tree).rows, 3000);
        let full = 3000 * (40 + 8 + 2 + 8) / 4096;
        assert!(assert_sound(&tree).pages[0] <= full * 110 / 100 + 1);
        for number in [1, 1001, 5999, 7000, 6500] {
            append(u64::to_be_bytes(number).to_vec());
        }
        assert_is(&tree, &model);
    }
}

#[test]
fn leaves_of_a_batch_are_those_of_its_keys_and_lookups_there_equal_single_ones() {
    let world = World::new(4096, 64);
    let tree = world.tree(TreeKind::Plain);
    for number in 0..3000_u64 {
        tree.put(
            &(number * 3).to_be_bytes(),
            &number.to_le_bytes(),
            world.journal(1),
        )
        .unwrap();
    }
    let keys: Vec<[u8; 8]> = (0..9000_u64).step_by(7).map(u64::to_be_bytes).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let (mut payload, mut known) = (Vec::new(), 0);
    let mut copy = LeafCopy::new(4096);
    for batch in keys.chunks(16) {
        let mut leaves = vec![PageId::ZERO; batch.len()];
        tree.find_leaves(batch, &mut leaves);
        for (key, leaf) in batch.iter().zip(leaves) {
            if !leaf.is_zero() {
                tree.read_leaf(Seek::AtOrAfter(key), &mut copy).unwrap();
                assert_eq!(copy.page_id(), leaf, "nothing has changed since");
                known += 1;
            }
            let mut hints = LeafHints::default();
            hints.expect(&tree, key, leaf);
            let number = u64::from_be_bytes((*key).try_into().unwrap());
            let wanted = number.is_multiple_of(3).then(|| (number / 3).to_le_bytes());
            let found = tree.get_near(key, &mut payload, &mut hints, true).unwrap();
            assert_eq!(
                found.then_some(&payload[..]),
                wanted.as_ref().map(|bytes| &bytes[..])
            );
        }
    }
    assert!(known > keys.len() / 2, "{known} of {}", keys.len());
}

#[test]
fn regress_appender_does_not_write_into_a_leaf_that_was_given_back() {
    let world = World::new(4096, 64);
    let tree = world.tree(TreeKind::Temporary);
    let mut appender = tree.appender();
    let key = |number: u64| number.to_be_bytes();
    for number in 0..3000 {
        appender
            .append(&key(number), &[&[1; 40]], Logging::None, None)
            .unwrap();
    }
    // The remembered leaf is joined with the one before it; its page is free, or somebody else's.
    while !tree.remove_from(&key(10), 100, None).unwrap() {}
    for number in 2..10 {
        assert!(tree.delete(&key(number), None).unwrap());
    }
    let other = world.tree(TreeKind::Temporary);
    other.put(b"k", b"other", None).unwrap();
    for number in 5000..5010 {
        appender
            .append(&key(number), &[&[2; 40]], Logging::None, None)
            .unwrap();
    }
    assert_eq!(assert_sound(&other).rows, 1);
    let found = crate::testing::contents(&tree);
    assert_eq!(found.len(), 12, "what was appended is in the tree");
}
