//! Shortcuts and the sweep, case by case: what rows that are updated now and then keep for old snapshots.

use super::world::{SLOTS, World, is_conflict};
use crate::VersionOptions;
use crate::delta::{self, Home};
use crate::delta_index::Named;
use crate::read::Resolved;
use crate::shortcut::{EVERYTHING, Shortcut};
use vellum_base::{SlotId, Timestamp};
use vellum_btree::Tree;
use vellum_txn::{Isolation, Transaction, VersionStamp};

const PAGE: usize = 4096;
const ROWS: u8 = 40;
/// Deltas that a slot's rightmost leaf and its neighbour may hold: they are not swept.
const LEFT: usize = 120;

fn world() -> World {
    // Rows turn fat late: what is tested here would else be done there.
    let options = VersionOptions {
        fat_updates: Some(250),
        ..VersionOptions::default()
    };
    World::with_options(PAGE, 128, options)
}

fn put(world: &World, tree: &Tree, key: &[u8], value: &[u8]) {
    let tx = world.begin();
    world.put(&tx, tree, key, value).unwrap();
    world.commit(tx);
}

fn patch(world: &World, tree: &Tree, key: &[u8], range: std::ops::Range<usize>, byte: u8) {
    let tx = world.begin();
    world.patch(&tx, tree, key, range, byte).unwrap();
    world.commit(tx);
}

/// A table with rows of a hundred sevens, and a snapshot of an analytical transaction that passes know.
fn held(world: &World) -> (Tree, Transaction) {
    let tree = world.table();
    for key in 0..ROWS {
        put(world, &tree, &[key], &[7; 100]);
    }
    let old = world.begin_olap();
    world.manager.pass();
    (tree, old)
}

fn shortcut(world: &World, tree: &Tree, row: usize) -> Shortcut {
    world.headers(tree)[row].shortcut
}

#[test]
fn rows_updated_again_and_again_under_an_old_snapshot_keep_two_versions() {
    let world = world();
    let (tree, old) = held(&world);
    for round in 0..60 {
        for key in 0..ROWS {
            patch(&world, &tree, &[key], 0..9, round);
        }
        world.collect();
    }
    assert!(
        world.deltas() <= usize::from(ROWS) + LEFT,
        "{}",
        world.deltas()
    );
    assert_eq!(world.fat_rows(&tree), []);
    let rows = world.rows(&old, &tree);
    assert!(rows.len() == 40 && rows.iter().all(|row| row.1 == [7; 100]));
    let new = world.begin();
    let rows = world.rows(&new, &tree);
    assert!(
        rows.iter()
            .all(|row| row.1[..9] == [59; 9] && row.1[9..] == [7; 91])
    );
    world.rollback(new);
    world.rollback(old);
    world.collect();
    assert_eq!(world.deltas(), 0);
}

#[test]
fn rows_inserted_and_updated_under_an_old_snapshot_keep_nothing_for_it() {
    let world = world();
    let (tree, old) = held(&world);
    for number in 0..400_u16 {
        let key = [100, (number >> 8) as u8, number as u8];
        put(&world, &tree, &key, &[1; 60]);
        patch(&world, &tree, &key, 3..9, 2);
        patch(&world, &tree, &key, 30..39, 3);
        world.collect();
    }
    assert!(world.deltas() <= LEFT, "{}", world.deltas());
    assert_eq!(world.rows(&old, &tree).len(), usize::from(ROWS));
    let absent = world.headers(&tree);
    let absent = absent
        .iter()
        .filter(|header| matches!(header.shortcut, Shortcut::Absent(_)));
    assert_eq!(absent.count(), 400);
    world.rollback(old);
    world.collect();
    assert_eq!(world.deltas(), 0);
}

#[test]
fn deleted_rows_that_were_updated_under_an_old_snapshot_are_dropped_or_buried_as_others() {
    let world = world();
    let (tree, old) = held(&world);
    for number in 0..200_u16 {
        let key = [100, (number >> 8) as u8, number as u8];
        put(&world, &tree, &key, &[1; 60]);
        patch(&world, &tree, &key, 3..9, 2);
        patch(&world, &tree, &[(number % 40) as u8], 0..5, 9);
        patch(&world, &tree, &[(number % 40) as u8], 0..5, 8);
        world.collect();
    }
    let now = world.begin();
    let rows = world.rows(&now, &tree);
    world.rollback(now);
    for (key, _) in rows {
        let tx = world.begin();
        world.delete(&tx, &tree, &key).unwrap();
        world.commit(tx);
        world.collect();
    }
    assert_eq!(world.heads(&tree), 0, "no row is in anybody's way");
    assert_eq!(
        world.store.buried(),
        u64::from(ROWS),
        "the others are dropped"
    );
    assert!(world.rows(&old, &tree).iter().all(|row| row.1 == [7; 100]));
    world.rollback(old);
    world.collect();
    assert_eq!((world.store.buried(), world.deltas()), (0, 0));
}

#[test]
fn own_version_of_a_later_command_is_stepped_over_by_its_delta() {
    let world = world();
    let (tree, old) = held(&world);
    let tx = world.begin();
    for key in [&[1][..], &[200]] {
        world.put(&tx, &tree, key, &[1; 60]).unwrap();
        let between = tx.commands_drawn();
        world.patch(&tx, &tree, key, 0..4, 2).unwrap();
        world.patch(&tx, &tree, key, 0..4, 3).unwrap();
        let seen = world.get_of_command(&tx, &tree, key, between);
        assert_eq!(seen, Some(vec![1; 60]), "V47");
    }
    world.commit(tx);
    assert_eq!(world.get(&old, &tree, &[1]), Some(vec![7; 100]));
    assert_eq!(world.get(&old, &tree, &[200]), None);
    world.rollback(old);
}

#[test]
fn snapshot_that_writers_did_not_know_keeps_its_versions_until_it_ends() {
    let world = world();
    let (tree, old) = held(&world);
    for key in 0..ROWS {
        patch(&world, &tree, &[key], 0..4, 1);
    }
    // No pass: writers go on taking shortcuts for the older snapshot.
    let unknown = world.begin_olap();
    for byte in 2..5 {
        let tx = world.begin();
        for key in 0..ROWS {
            world.patch(&tx, &tree, &[key], 0..4, byte).unwrap();
        }
        world.commit(tx);
    }
    let collect = || {
        // So that none of them is in the rightmost leaf.
        for byte in 0..100 {
            patch(&world, &tree, &[0], 0..4, byte);
        }
        world.collect();
    };
    collect();
    for (tx, byte) in [(&unknown, 1), (&old, 7)] {
        let rows = world.rows(tx, &tree);
        assert_eq!(rows.len(), usize::from(ROWS));
        assert!(rows.iter().all(|row| row.1[..4] == [byte; 4]), "{byte}");
    }
    let kept = world.deltas();
    world.rollback(unknown);
    collect();
    // V50.
    assert!(world.deltas() + 80 < kept, "{} of {kept}", world.deltas());
    assert!(world.rows(&old, &tree).iter().all(|row| row.1 == [7; 100]));
    world.rollback(old);
}

#[test]
fn delta_that_is_linked_to_covers_whatever_is_written_later() {
    let world = world();
    let (tree, old) = held(&world);
    let key = &[3];
    patch(&world, &tree, key, 0..4, 1);
    patch(&world, &tree, key, 2..6, 2);
    let Shortcut::Link(link) = shortcut(&world, &tree, 3) else {
        panic!("a link");
    };
    assert_eq!(link.cover, 1, "seven bytes are a sixteenth of it");
    patch(&world, &tree, key, 90..100, 3);
    let Shortcut::Link(wider) = shortcut(&world, &tree, 3) else {
        panic!("a link");
    };
    assert_eq!((wider.version, wider.cover), (link.version, EVERYTHING));
    assert_eq!(world.get(&old, &tree, key), Some(vec![7; 100]));
    put(&world, &tree, key, b"short");
    put(&world, &tree, key, &[9; 500]);
    let Shortcut::Link(same) = shortcut(&world, &tree, 3) else {
        panic!("a link");
    };
    assert_eq!(same, wider);
    assert_eq!(world.get(&old, &tree, key), Some(vec![7; 100]));
    world.rollback(old);
}

#[test]
fn reverted_versions_give_back_the_shortcut_of_the_one_before() {
    let world = world();
    let (tree, old) = held(&world);
    for key in [&[3][..], &[4]] {
        patch(&world, &tree, key, 0..4, 1);
        let before = world.headers(&tree);
        let tx = world.begin();
        world.patch(&tx, &tree, key, 0..4, 2).unwrap();
        let savepoint = tx.savepoint();
        world.patch(&tx, &tree, key, 50..54, 3).unwrap();
        world.put(&tx, &tree, key, b"other").unwrap();
        world.rollback_to(&tx, &savepoint);
        assert_eq!(world.get(&tx, &tree, key).unwrap()[..4], [2; 4]);
        world.rollback(tx);
        assert_eq!(world.headers(&tree), before);
        assert_eq!(world.get(&old, &tree, key), Some(vec![7; 100]));
    }
    world.rollback(old);
}

#[test]
fn stamp_of_a_read_committed_writer_may_be_older_than_what_it_replaces() {
    let world = world();
    let (tree, old) = held(&world);
    let late = world.begin_at(Isolation::ReadCommitted);
    late.stamp().unwrap();
    put(&world, &tree, &[200], &[1; 60]);
    let between = world.begin();
    late.statement();
    world.patch(&late, &tree, &[200], 0..4, 2).unwrap();
    world.commit(late);
    world.collect();
    assert_eq!(world.get(&between, &tree, &[200]), Some(vec![1; 60]));
    assert_eq!(world.get(&old, &tree, &[200]), None);
    world.rollback(between);
    world.rollback(old);
}

#[test]
fn row_with_a_link_turns_fat_and_back_under_a_stream_of_analytical_snapshots() {
    let options = VersionOptions {
        fat_updates: Some(3),
        ..VersionOptions::default()
    };
    let world = World::with_options(PAGE, 128, options);
    let (tree, old) = held(&world);
    let mut fat = 0;
    for byte in 0..60 {
        let short = world.begin_olap();
        world.manager.pass();
        patch(&world, &tree, &[3], 0..4, byte);
        put(&world, &tree, &[200, byte], &[1; 300]);
        put(&world, &tree, &[200, byte], &[2; 500]);
        world.rollback(short);
        if byte % 16 == 9 {
            fat += world.fat_rows(&tree).len();
            world.decompose(&tree, &[3]);
        }
        assert_eq!(world.get(&old, &tree, &[3]), Some(vec![7; 100]));
        world.collect();
    }
    assert!(fat > 0, "the row was fat now and then");
    assert!(
        world.deltas() <= LEFT + usize::from(ROWS),
        "{}",
        world.deltas()
    );
    world.rollback(old);
    world.collect();
}

/// Symptom: of forty rows that every other transaction wrote to, twenty stayed as long as a snapshot was open what it had found, a newest version with a
/// link: scans in it took 2.7 times as long as in a new one, and writers left a delta with each update. Cause: updates that inherit a link
/// counted for nothing, so only those turned fat whose count was high when the first link was made. Guard: `fat::estimate`, heat.
#[test]
fn a_row_with_a_link_that_is_updated_all_the_time_turns_fat() {
    let world = World::new(PAGE, 128);
    let (tree, old) = held(&world);
    for byte in 0..40 {
        patch(&world, &tree, &[3], 0..4, byte);
        if byte == 0 {
            let headers = world.headers(&tree);
            assert!(matches!(headers[3].shortcut, Shortcut::Link(_)));
        }
    }
    let fat = |world: &World| -> Vec<u8> {
        let rows = world.fat_rows(&tree);
        rows.iter().map(|(key, _)| key[0]).collect()
    };
    assert_eq!(fat(&world), [3]);
    let deltas = world.deltas();
    patch(&world, &tree, &[3], 0..4, 99);
    assert_eq!(world.deltas(), deltas, "a fat row leaves none");
    assert_eq!(world.get(&old, &tree, &[3]), Some(vec![7; 100]));
    // Now and then: more than sixteen thousand ticks lie between two updates.
    for byte in 0..24 {
        patch(&world, &tree, &[5], 0..4, byte);
        for _ in 0..8_300 {
            let tx = world.begin();
            tx.stamp().unwrap();
            world.commit(tx);
        }
    }
    assert_eq!(fat(&world), [3]);
    assert_eq!(world.get(&old, &tree, &[5]), Some(vec![7; 100]));
    world.rollback(old);
    world.collect();
    assert_eq!(world.deltas(), 0);
}

#[test]
fn sweep_leaves_what_is_needed_again_under_a_name_that_was_transient() {
    // Copied by the sweep as transient; then the row turns fat and back (V76).
    let world = world();
    let (tree, old) = held(&world);
    for byte in 1..9 {
        for key in 0..ROWS {
            patch(&world, &tree, &[key], 0..4, byte);
        }
    }
    let mut looked_at = 0;
    for slot in (0..SLOTS).map(SlotId) {
        let Some(versions) = world.store.slot(slot) else {
            continue;
        };
        let (mut names, mut entries) = (Vec::new(), Vec::new());
        world.each_row(&versions.transient.tree, |key, entry| {
            assert!(delta::is_transient(entry));
            let name = *key.first_chunk().unwrap();
            let (home, tree) = (Home::Transient, tree.root());
            names.push(Named { home, name, tree });
            entries.push(entry.to_vec());
        });
        for (Named { name, .. }, entry) in names.iter().zip(&mut entries) {
            delta::make_lasting(entry);
            let (stamp, command) = delta::decode_key(name).unwrap();
            let name = VersionStamp::new(slot, stamp, command);
            versions.put_delta(tree.root(), &name, entry).unwrap();
        }
        let count = world.deltas();
        let swept = versions.transient.take_each(&names, false).unwrap();
        assert_eq!(swept, names.len() as u64);
        assert_eq!(world.deltas(), count - names.len());
        let left = versions
            .deltas_between(Timestamp::ZERO, Timestamp::MAX)
            .count;
        assert_eq!(left, world.deltas_of(slot) as u64);
        looked_at += names.len();
    }
    assert!(looked_at > 100);
    world.rollback(old);
}

#[test]
fn writer_that_does_not_see_a_version_with_a_shortcut_conflicts() {
    let world = world();
    let (tree, old) = held(&world);
    let writer = world.begin();
    patch(&world, &tree, &[3], 0..4, 1);
    patch(&world, &tree, &[3], 0..4, 2);
    assert!(is_conflict(world.put(&writer, &tree, &[3], b"late")));
    world.rollback(writer);
    world.rollback(old);
}

/// Symptom: a reader that had copied a row got an old version of the wrong length. Cause: it followed the row's link; the delta there was a full
/// copy when the link was made, and ranges of a row of another length when it was looked up, because the row had turned fat and back, or its
/// chain was pruned. Guard: V46, a full copy stays one; and by a link that covers everything only a full copy is taken.
#[test]
fn full_copy_that_a_link_leads_to_is_not_taken_for_ranges() {
    for turns_back in [true, false] {
        let options = VersionOptions {
            fat_updates: Some(1),
            ..VersionOptions::default()
        };
        let world = World::with_options(PAGE, 128, options);
        let (tree, old) = held(&world);
        let key = &[3];
        put(&world, &tree, key, &[1; 100]);
        // Writers do not know it: the next version links past what it sees.
        let middle = world.begin_olap();
        put(&world, &tree, key, &[2; 500]);
        let copied = world.headers(&tree)[3];
        assert!(matches!(copied.shortcut, Shortcut::Link(link) if link.cover == EVERYTHING));
        let (mut row, mut delta) = (Vec::new(), Vec::new());
        assert!(tree.get(key, &mut row).unwrap());
        // No room for what is seen where the row is too long.
        let long = crate::write::inline_body_max(PAGE, 1) - 40;
        let length = if turns_back { 500 } else { long };
        for byte in 3..9 {
            let tx = world.begin();
            world.delete(&tx, &tree, key).unwrap();
            world.put(&tx, &tree, key, &vec![byte; length]).unwrap();
            world.commit(tx);
        }
        assert_eq!(world.decompose(&tree, key), turns_back);
        let view = super::world::view(&old);
        let resolved = world
            .store
            .resolve(&view, &tree, &mut row, &mut delta, None)
            .unwrap();
        match resolved {
            Resolved::Visible(it) => assert_eq!(row[it.start..it.end], [7; 100]),
            other => assert_eq!(other, Resolved::Changed),
        }
        assert_eq!(world.get(&old, &tree, key), Some(vec![7; 100]));
        assert_eq!(world.get(&middle, &tree, key), Some(vec![1; 100]));
        world.rollback(old);
    }
}

/// A queue's deltas are of deletes, and no transient ones; its slot may have no commit from before the snapshot.
#[test]
fn slot_without_transient_deltas_is_not_swept() {
    let world = world();
    let tree = world.table();
    let old = world.begin_olap();
    let mut slot = None;
    for number in 0..500_u16 {
        let key = number.to_be_bytes();
        put(&world, &tree, &key, &[1; 60]);
        let tx = world.begin();
        slot = Some(tx.slot());
        assert!(world.delete(&tx, &tree, &key).unwrap().existed);
        world.commit(tx);
        if number % 20 == 0 {
            world.collect();
        }
    }
    world.collect();
    let has_read = || {
        let versions = world.store.slot(slot.unwrap()).unwrap();
        versions.collecting.lock().sweep.has_read()
    };
    assert!(!has_read());
    assert_eq!((world.heads(&tree), world.deltas()), (0, 0));
    // One that has some is, once a leaf is full.
    for round in 0..200 {
        put(&world, &tree, b"k", &[round; 60]);
    }
    world.collect();
    assert!(has_read());
    world.rollback(old);
}
