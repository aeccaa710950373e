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
