//! What transactions made and do not keep: freed in order, at once or later, and at nobody's cost.

use super::world::{SLOTS, World};
use crate::Change;
use crate::pending::PendingKind;
use crate::row::Shape;
use crate::undo::Reverter;
use std::sync::Arc;
use vellum_base::{PageId, SlotId, StorageError, Timestamp};
use vellum_btree::{Journal, Tree};
use vellum_txn::{Savepoint, Transaction};
use vellum_wal::{LogSpace, Purpose};

/// Recycles nothing.
struct Full;

impl LogSpace for Full {
    fn make_space(&self) -> vellum_base::Result<bool> {
        Ok(false)
    }
}

pub(super) fn large_row(
    world: &World,
    tx: &Transaction,
    tree: &Tree,
    key: &[u8],
    length: usize,
) -> PageId {
    let chain = world.write_chain(tx, &vec![7; length]);
    let body = chain.encode();
    world
        .change(tx, tree, key, |_| Change::Put(Shape::CHAINED, &body))
        .unwrap();
    world.store.adopt(tx, chain.root).unwrap();
    chain.root
}

/// Uses the log up to its last bytes, with what only rollbacks may use, or leaves those.
fn use_up_log(world: &World, purpose: Purpose) {
    world.log.set_log_space(Arc::new(Full));
    // What slots hold and do not need goes back first.
    world.log.flush_round().unwrap();
    let journal = Some(Journal::new(world.log.slot(SlotId(SLOTS)), purpose));
    for length in [1000, 100, 1] {
        for number in 0u32.. {
            let name = [number.to_be_bytes(), (length as u32).to_be_bytes()].concat();
            if let Err(error) = world.carried.put(&name, &vec![0; length], journal) {
                assert!(matches!(error, StorageError::OutOfSpace { .. }), "{error}");
                break;
            }
        }
    }
}

fn revert(world: &World, tx: &Transaction, to: &Savepoint) -> vellum_base::Result<()> {
    let log = world.log_of(tx);
    tx.rollback_to(
        to,
        &mut Reverter::running(&world.store, log, &world.carried),
    )
}

#[test]
fn freeing_takes_nothing_of_what_a_rollback_has_set_aside() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let key = |number: u8| [number];
    let tx = world.begin();
    for number in 0..40 {
        world
            .put(&tx, &tree, &key(number), &[number; 1000])
            .unwrap();
    }
    world.commit(tx);
    let tx = world.begin();
    for number in 0..40 {
        world.delete(&tx, &tree, &key(number)).unwrap();
    }
    let write = |_| world.write_chain(&tx, &[7; 50_000]);
    let chains: Vec<_> = (0..80).map(write).collect();
    for chain in chains {
        // What the slot was granted and was not promised goes back.
        world.log.flush_round().unwrap();
        world.store.give_up(&tx, chain.root, PendingKind::Chain);
        world.store.free_given_up(&tx);
    }
    assert_eq!(world.pending(), 0, "freed at once");
    use_up_log(&world, Purpose::Undo);
    revert(&world, &tx, &Savepoint::START).unwrap();
    let rows = world.rows(&tx, &tree);
    assert_eq!(rows.len(), 40);
}

#[test]
fn what_the_log_has_no_room_for_is_freed_later_while_its_transaction_goes_on() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"first", b"v").unwrap();
    let savepoint = tx.savepoint();
    let before = world.space.counts().durable;
    for number in 0..3 {
        large_row(&world, &tx, &tree, &[number], 30_000);
    }
    use_up_log(&world, Purpose::Optional);
    world.rollback_to(&tx, &savepoint);
    assert_eq!(world.pending(), 3);
    world.log.flush_round().unwrap();
    {
        // As a checkpoint that carried its undo forward would.
        let mut latch = world.log_of(&tx).lock();
        let end = latch.end();
        assert!(latch.set_carried(tx.stamp().unwrap(), end));
    }
    world.log.release_before(world.log.position()).unwrap();
    let log = world.log.slot(SlotId(SLOTS));
    let live = || -> Vec<Timestamp> { vec![tx.stamp().unwrap()] };
    assert!(world.store.free_ownerless_and(live, log).unwrap());
    assert_eq!(world.pending(), 0);
    // `carried` has grown.
    assert!(world.space.counts().durable < before + 24 + 3_000);
    assert!(!world.store.free_ownerless_and(live, log).unwrap());
    world.commit(tx);
    assert_eq!(world.rows(&world.begin(), &tree).len(), 1);
}

#[test]
fn one_that_cannot_be_freed_is_told_and_keeps_no_other() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    // Lists what there is not.
    world.store.give_up(&tx, PageId(9_999), PendingKind::Chain);
    let savepoint = tx.savepoint();
    for number in 0..3 {
        large_row(&world, &tx, &tree, &[number], 30_000);
    }
    world.rollback_to(&tx, &savepoint);
    assert_eq!(world.pending(), 0);
    let log = world.log.slot(SlotId(SLOTS));
    let told = world.store.free_ownerless_and(Vec::new, log);
    assert!(told.is_err(), "{told:?}");
    world.commit(tx);
}

#[test]
fn chains_wait_for_a_tree_of_their_transaction_and_those_of_others_do_not() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let savepoint = Savepoint::START;
    let (one, other) = (world.begin(), world.begin());
    world.store.give_up(&one, PageId(9_999), PendingKind::Tree);
    let waits = large_row(&world, &one, &tree, b"one", 30_000);
    large_row(&world, &other, &tree, b"other", 30_000);
    world.rollback_to(&one, &savepoint);
    world.rollback_to(&other, &savepoint);
    assert_eq!(world.pending(), 1);
    let mut payload = Vec::new();
    let listed = world.store.pending_free();
    assert!(
        listed
            .get(&waits.get().to_be_bytes(), &mut payload)
            .unwrap()
    );
}

#[test]
fn what_a_live_transaction_still_refers_to_is_not_freed() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    let chain = world.write_chain(&tx, &[7; 30_000]);
    let body = chain.encode();
    world
        .change(&tx, &tree, b"k", |_| Change::Put(Shape::CHAINED, &body))
        .unwrap();
    // As if adopting it had failed.
    world.store.give_up(&tx, chain.root, PendingKind::Chain);
    let log = world.log.slot(SlotId(SLOTS));
    let live = || vec![tx.stamp().unwrap()];
    assert!(!world.store.free_ownerless_and(live, log).unwrap());
    assert_eq!(world.pending(), 1);
    assert_eq!(world.rows(&tx, &tree).len(), 1);
    // Reverted and ended: it has no owner then.
    revert(&world, &tx, &Savepoint::START).unwrap();
    assert!(world.store.free_ownerless_and(Vec::new, log).unwrap());
    assert_eq!(world.pending(), 0);
}
