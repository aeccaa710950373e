//! What is kept for an old snapshot stays bounded, whatever is done to a row and by how many transactions.

use super::world::{World, is_conflict};
use crate::VersionOptions;
use vellum_base::random::Random;
use vellum_btree::Tree;
use vellum_txn::{Isolation, Transaction};

const PAGE: usize = 4096;
const ROWS: u8 = 40;
/// Deltas that a slot's rightmost leaf and its neighbour may hold, and what a row keeps until it is looked at again.
const LEFT: usize = 120;

/// A table with rows of so many sevens, and a snapshot of an analytical transaction that passes know.
fn held(world: &World, length: usize) -> (Tree, Transaction) {
    let tree = world.table();
    let tx = world.begin();
    for key in 0..ROWS {
        world.put(&tx, &tree, &[key], &vec![7; length]).unwrap();
    }
    world.commit(tx);
    let old = world.begin_olap();
    world.manager.pass();
    (tree, old)
}

fn assert_unchanged(world: &World, tree: &Tree, old: &Transaction, length: usize) {
    let rows = world.rows(old, tree);
    assert_eq!(rows.len(), usize::from(ROWS));
    assert!(rows.iter().all(|row| row.1 == vec![7; length]));
}

fn assert_nothing_left(world: &World, old: Transaction) {
    world.rollback(old);
    world.collect();
    assert_eq!((world.store.buried(), world.deltas()), (0, 0));
}

/// Symptom: a row that each transaction deletes and inserts again (what an update of a key does) left two before-images for each of
/// them, one a copy of the row, until the oldest snapshot ended. Cause: a row turned fat in an update only, and never where the newest
/// version was the writer's own. Guard: it turns fat where it is deleted, too.
#[test]
fn row_deleted_and_inserted_by_each_transaction_keeps_what_is_seen() {
    for (length, shortcuts, generations) in [
        (100, true, 1),
        (100, false, 1),
        (100, true, 5),
        (1200, true, 1),
        (900, false, 3),
    ] {
        let options = VersionOptions {
            shortcuts,
            ..VersionOptions::default()
        };
        let world = World::with_options(PAGE, 256, options);
        let (tree, old) = held(&world, length);
        for round in 0..500u32 {
            let tx = world.begin();
            for _ in 0..generations {
                world.delete(&tx, &tree, &[3]).unwrap();
                let body = vec![round as u8; length];
                world.put(&tx, &tree, &[3], &body).unwrap();
            }
            world.commit(tx);
            world.collect();
            let kept = world.deltas();
            assert!(kept <= LEFT + 2 * 17 * generations, "{kept} after {round}");
        }
        let new = world.begin();
        assert_eq!(world.get(&new, &tree, &[3]), Some(vec![243; length]));
        world.rollback(new);
        assert_unchanged(&world, &tree, &old, length);
        assert_nothing_left(&world, old);
    }
}

#[test]
fn entry_handed_to_and_fro_keeps_what_is_seen() {
    for (apart, isolation) in [
        (false, Isolation::Snapshot),
        (true, Isolation::Snapshot),
        (true, Isolation::ReadCommitted),
    ] {
        let world = World::new(PAGE, 256);
        let (tree, old) = held(&world, 100);
        for round in 0..400u32 {
            let (from, to) = ([3, round as u8 % 2], [3, 1 - round as u8 % 2]);
            let mut tx = world.begin_at(isolation);
            world.delete(&tx, &tree, &from).unwrap();
            if apart {
                world.commit(tx);
                tx = world.begin_at(isolation);
            }
            world.put(&tx, &tree, &to, &[round as u8; 30]).unwrap();
            world.commit(tx);
            if round % 3 == 0 {
                world.collect();
            }
            let kept = world.deltas();
            assert!(kept <= LEFT, "{kept} after {round}");
        }
        assert_unchanged(&world, &tree, &old, 100);
        assert_nothing_left(&world, old);
    }
}

/// The same for a mix of everything, by several transactions side by side, some of which end otherwise, under snapshots that come and go.
#[test]
fn prop_rows_keep_what_is_seen_whatever_is_done_to_them() {
    let seed = super::world_seed("prop_rows_keep_what_is_seen");
    let mut random = Random::new(seed);
    for shortcuts in [true, false] {
        let options = VersionOptions {
            shortcuts,
            ..VersionOptions::default()
        };
        let world = World::with_options(PAGE, 256, options);
        let (tree, old) = held(&world, 100);
        let mut middle: Option<(Transaction, Vec<(Vec<u8>, Vec<u8>)>)> = None;
        for round in 0..1500u32 {
            let tx = world.begin();
            let mut ok = true;
            for _ in 0..1 + random.below(5) {
                let key = [random.below(3) as u8];
                let length = 1 + random.below(300) as usize;
                ok &= match random.below(6) {
                    0 | 1 => world.delete(&tx, &tree, &key).map(drop),
                    2..=4 => world
                        .put(&tx, &tree, &key, &vec![round as u8; length])
                        .map(drop),
                    _ if world.get(&tx, &tree, &key).is_some_and(|b| b.len() > 4) => {
                        world.patch(&tx, &tree, &key, 0..4, 1).map(drop)
                    }
                    _ => Ok(()),
                }
                .is_ok();
            }
            assert!(ok, "nobody is in the way");
            if random.below(5) == 0 {
                world.rollback(tx);
            } else {
                world.commit(tx);
            }
            match &middle {
                None if random.below(40) == 0 => {
                    let reader = world.begin_olap();
                    let rows = world.rows(&reader, &tree);
                    middle = Some((reader, rows));
                }
                Some(_) if random.below(40) == 0 => {
                    let (reader, rows) = middle.take().unwrap();
                    assert_eq!(world.rows(&reader, &tree), rows);
                    world.rollback(reader);
                }
                _ => {}
            }
            if random.below(4) == 0 {
                world.collect();
                let kept = world.deltas();
                assert!(kept <= 2 * LEFT, "{kept} after {round}");
            }
        }
        drop(middle);
        assert_unchanged(&world, &tree, &old, 100);
        assert_nothing_left(&world, old);
    }
}

/// Symptom: no update turned a row fat any more whose chain had become longer than one follows at once. Guard: such a chain is cut down
/// piece by piece.
#[test]
fn chain_that_one_transaction_made_too_long_is_cut_down_by_those_after_it() {
    for shortcuts in [true, false] {
        let options = VersionOptions {
            shortcuts,
            ..VersionOptions::default()
        };
        let world = World::with_options(PAGE, 1024, options);
        let (tree, old) = held(&world, 100);
        let tx = world.begin();
        for round in 0..1500u32 {
            world.delete(&tx, &tree, &[3]).unwrap();
            world.put(&tx, &tree, &[3], &[round as u8; 50]).unwrap();
            if round == 700 {
                world.patch(&tx, &tree, &[3], 3..9, 1).unwrap();
            }
        }
        world.commit(tx);
        let middle = world.begin_olap();
        world.collect();
        assert!(world.deltas() > 2000, "its own versions were needed");
        for round in 0..60u8 {
            let tx = world.begin();
            world.put(&tx, &tree, &[3], &[round; 120]).unwrap();
            world.commit(tx);
            world.collect();
            assert_eq!(world.get(&old, &tree, &[3]), Some(vec![7; 100]));
            assert_eq!(world.get(&middle, &tree, &[3]), Some(vec![219; 50]));
        }
        assert!(world.deltas() <= LEFT, "{}", world.deltas());
        assert_unchanged(&world, &tree, &old, 100);
        let late = world.put(&old, &tree, &[3], b"late");
        assert!(is_conflict(late));
        world.rollback(middle);
        assert_nothing_left(&world, old);
    }
}

/// Symptom: a row that nobody saw was buried, and stayed until some analytical snapshot ended. Cause: the list of open snapshots named an
/// OLTP one that had ended since; no clock had ticked, so the list was taken for new. Guard: it is collected again when the oldest OLTP snapshot is another.
#[test]
fn snapshot_that_ended_while_no_clock_ticked_keeps_no_row() {
    let world = World::new(PAGE, 256);
    let tree = world.table();
    let old = world.begin_olap();
    let put = |keys: &[u8]| {
        let tx = world.begin();
        for key in keys {
            world.put(&tx, &tree, &[*key], &[7; 40]).unwrap();
        }
        world.commit(tx);
    };
    put(&[1, 2]);
    let delete = |key: u8| {
        let tx = world.begin();
        world.delete(&tx, &tree, &[key]).unwrap();
        let slot = tx.slot();
        world.commit(tx);
        slot
    };
    let slot = delete(1);
    let tx = world.begin();
    assert_eq!(tx.slot(), slot, "one list has both");
    let reader = world.begin();
    world.delete(&tx, &tree, &[2]).unwrap();
    world.commit(tx);
    let young = world.begin_olap();
    world.collect();
    assert_eq!((world.heads(&tree), world.store.buried()), (1, 0));
    world.rollback(reader);
    world.collect();
    assert_eq!((world.heads(&tree), world.store.buried()), (0, 0));
    world.rollback(young);
    assert_nothing_left(&world, old);
}
