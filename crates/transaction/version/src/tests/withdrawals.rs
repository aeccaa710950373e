//! A snapshot that is withdrawn in the middle of its scans, while it may be promoted and its rows are deleted, rewritten and
//! collected: random schedules under shuttle, and whatever the machine does otherwise.

use super::moves::{collect_some, key, retry};
use super::world::World;
use std::sync::Arc;
use vellum_btree::Tree;
use vellum_sync::thread;
use vellum_txn::{Transaction, TransactionError};

/// All keys in one direction, each step an operation of its own. `None` once the snapshot is too old.
fn scan_in_steps(
    world: &World,
    tree: &Tree,
    tx: &Transaction,
    forward: bool,
) -> Option<Vec<Vec<u8>>> {
    let rows = match world.rows_in_steps(tx, tree, forward, |_| {}) {
        Ok((rows, _)) => rows,
        Err(TransactionError::SnapshotTooOld) => return None,
        Err(error) => panic!("{error}"),
    };
    let of_its_time = |(key, body): (Vec<u8>, Vec<u8>)| {
        assert_eq!(body, [7; 100], "a version of its time");
        key
    };
    Some(rows.into_iter().map(of_its_time).collect())
}

fn run(rows: u32, rounds: u32) {
    let world = Arc::new(World::withdrawing(4096, 48));
    let tree = world.table();
    let tx = world.begin();
    for number in 0..rows {
        world.put(&tx, &tree, &key(number), &[7; 100]).unwrap();
    }
    world.commit(tx);
    let all: Vec<Vec<u8>> = (0..rows).map(|number| key(number).to_vec()).collect();
    let (stays, goes) = (world.begin_olap(), world.begin());
    for _ in 0..if cfg!(shuttle) { 0 } else { 6_500 } {
        world.manager.clock().draw();
    }
    let mover = {
        let (world, tree) = (world.clone(), tree.clone());
        thread::spawn(move || {
            for round in 0..rounds {
                let mine = || (0..rows).filter(move |number| number % rounds == round);
                retry(&world, |tx| {
                    mine().try_for_each(|number| {
                        world.put(tx, &tree, &key(number), &[8; 60]).map(drop)
                    })
                });
                retry(&world, |tx| {
                    mine().try_for_each(|number| world.delete(tx, &tree, &key(number)).map(drop))
                });
                world.manager.request_promotion(1);
                collect_some(&world);
            }
        })
    };
    let withdrawer = {
        let (world, id) = (world.clone(), goes.id());
        thread::spawn(move || {
            for _ in 0..rounds {
                world.manager.request_promotion(1);
                world.manager.domain().pass();
                thread::yield_now();
            }
            // Busy with an operation: again.
            while !world.manager.domain().withdraw(id) {
                thread::yield_now();
            }
            collect_some(&world);
        })
    };
    let mut forward = true;
    // Whole and right, or told: never short of a row.
    while let Some(found) = scan_in_steps(&world, &tree, &goes, forward) {
        assert_eq!(found, all, "forward: {forward}");
        forward = !forward;
        thread::yield_now();
    }
    assert!(goes.is_withdrawn());
    assert_eq!(
        scan_in_steps(&world, &tree, &stays, true),
        Some(all.clone())
    );
    mover.join().unwrap();
    withdrawer.join().unwrap();
    world.collect();
    assert!(goes.operation().is_err(), "for ever");
    assert_eq!(scan_in_steps(&world, &tree, &stays, false), Some(all));
    drop((stays, goes));
    world.collect();
    assert_eq!((world.store.buried(), world.deltas()), (0, 0));
    assert_eq!(world.heads(&tree), 0, "everybody sees the deletes");
}

#[cfg(shuttle)]
#[test]
fn shuttle_withdrawal_meets_scans_promotion_moves_and_collection() {
    vellum_sync::model(300, || run(3, 2));
}

#[cfg(not(shuttle))]
#[test]
fn withdrawal_meets_scans_promotion_moves_and_collection() {
    for _ in 0..10 {
        run(100, 4);
    }
}
