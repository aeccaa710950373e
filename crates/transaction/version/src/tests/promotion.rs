//! Who asks for promotion, and for whose sake.

use super::world::World;
use vellum_gc::Budget;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Time enough that who is asked to be promoted is.
fn draw(world: &World) {
    for _ in 0..7_000 {
        world.manager.clock().draw();
    }
}

/// Symptom: a large write transaction became analytical by itself: it looked into graveyards from then on, and was refused inserts of keys that had
/// come and gone. Cause: maintenance counted the transaction's own before-images among those that an old snapshot keeps. Guard: those of
/// the slot's running transaction do not count.
#[test]
fn large_writer_does_not_have_itself_promoted() {
    let world = World::new(4096, 1024);
    let tree = world.table();
    let write = |value: u8| {
        let tx = world.begin();
        for number in 0..10_000 {
            world.put(&tx, &tree, &key(number), &[value; 20]).unwrap();
        }
        tx
    };
    world.commit(write(1));
    let tx = write(2);
    let slot = tx.slot();
    draw(&world);
    let pass = || {
        world
            .collect_slot(slot, &mut Budget::new(100, u64::MAX))
            .unwrap();
        world.manager.pass();
        world.manager.domain().promotions()
    };
    assert_eq!((pass(), tx.is_olap()), (0, false));
    // What it has replaced is what the next one keeps.
    let idle = world.begin();
    world.commit(tx);
    draw(&world);
    assert_eq!((pass(), idle.is_olap()), (1, true));
}

/// The same of deletes: the running transaction's own tombstones wait for its commit, and for nobody else.
#[test]
fn large_deleter_does_not_have_itself_promoted() {
    let world = World::new(4096, 1024);
    let tree = world.table();
    let tx = world.begin();
    for number in 0..10_000 {
        world.put(&tx, &tree, &key(number), b"value").unwrap();
    }
    world.commit(tx);
    let tx = world.begin();
    for number in 0..10_000 {
        world.delete(&tx, &tree, &key(number)).unwrap();
    }
    let slot = tx.slot();
    draw(&world);
    let pass = || {
        world
            .collect_slot(slot, &mut Budget::new(100, u64::MAX))
            .unwrap();
        world.manager.pass();
        world.manager.domain().promotions()
    };
    assert_eq!((pass(), tx.is_olap()), (0, false));
    // What it has deleted holds up the next one.
    let idle = world.begin();
    world.commit(tx);
    draw(&world);
    assert_eq!((pass(), idle.is_olap()), (1, true));
}

/// Symptom: after a batch of deletes transactions of a few ticks became analytical, though nothing was held up. Cause: what a collector had not come to
/// counted. Guard: only what is left where everything due was settled does.
#[test]
fn backlog_of_a_collector_is_no_reason_for_promotion() {
    let world = World::new(4096, 1024);
    let tree = world.table();
    let tx = world.begin();
    for number in 0..10_000 {
        world.put(&tx, &tree, &key(number), b"value").unwrap();
    }
    world.commit(tx);
    let tx = world.begin();
    let slot = tx.slot();
    for number in 0..10_000 {
        world.delete(&tx, &tree, &key(number)).unwrap();
    }
    world.commit(tx);
    // It sees the deletes, and keeps nothing of them.
    let young = world.begin();
    for _ in 0..500 {
        world.manager.clock().draw();
    }
    world.manager.pass();
    for _ in 0..5 {
        let collected = world.collect_slot(slot, &mut Budget::new(100, u64::MAX));
        assert!(collected.unwrap().more);
        world.manager.pass();
    }
    assert_eq!(world.manager.domain().promotions(), 0);
    world.rollback(young);
}
