//! Undo: of everything that can be written, in any order, when disk and log make trouble.

use super::world::World;
use crate::row::Shape;
use crate::undo::Reverter;
use crate::{Change, Scratch};
use vellum_btree::Journal;
use vellum_io::{Call, Fault};
use vellum_txn::Savepoint;

#[test]
fn reverted_rows_fit_although_others_filled_the_room_that_they_left() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let long = vec![1; 1200];
    let tx = world.begin();
    for key in [b"b", b"d"] {
        world.put(&tx, &tree, key, &long).unwrap();
    }
    world.commit(tx);
    let writer = world.begin();
    world.put(&writer, &tree, b"b", b"short").unwrap();
    world.delete(&writer, &tree, b"d").unwrap();
    let tx = world.begin();
    for key in [b"a", b"c", b"e"] {
        world.put(&tx, &tree, key, &long).unwrap();
    }
    world.commit(tx);
    world.rollback(writer);
    let rows = world.rows(&world.begin(), &tree);
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|(_, value)| *value == long));
}

#[test]
fn chains_and_trees_of_a_reverted_part_are_given_back_at_once() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"first", b"v").unwrap();
    let before = world.space.counts().durable;
    let savepoint = tx.savepoint();
    let mut bodies: Vec<[u8; 16]> = Vec::new();
    for number in 0..3u8 {
        let chain = world.write_chain(&tx, &[number; 30_000]);
        let body = chain.encode();
        world
            .change(&tx, &tree, b"large", |_| Change::Put(Shape::CHAINED, &body))
            .unwrap();
        world.store.adopt(&tx, chain.root).unwrap();
        if let Some(old) = bodies.last() {
            world
                .store
                .disown_chain(&tx, tree.root(), old, None)
                .unwrap();
        }
        bodies.push(body);
    }
    let made = world.store.create_tree(&tx).unwrap();
    world.store.adopt(&tx, made.root()).unwrap();
    world.disown(&tx, &made);
    assert!(world.space.counts().durable > before + 20);
    world.rollback_to(&tx, &savepoint);
    assert_eq!(world.space.counts().durable, before);
    assert_eq!(world.pending(), 0);
    world.commit(tx);
    world.collect();
    assert_eq!(world.rows(&world.begin(), &tree).len(), 1);
    assert_eq!(world.space.counts().durable, before);
}

#[test]
fn rollback_that_meets_a_failing_disk_goes_on_where_it_stopped() {
    let world = World::new(4096, 24);
    let tree = world.table();
    let key = |number: u32| number.to_be_bytes();
    let tx = world.begin();
    for number in 0..600 {
        world.put(&tx, &tree, &key(number), &[1; 100]).unwrap();
    }
    world.commit(tx);
    let tx = world.begin();
    for number in 0..600 {
        match number % 3 {
            0 => world.delete(&tx, &tree, &key(number)).unwrap(),
            1 => world.patch(&tx, &tree, &key(number), 0..10, 2).unwrap(),
            _ => world.put(&tx, &tree, &key(number), &[3; 300]).unwrap(),
        };
        world.put(&tx, &tree, &key(1000 + number), b"new").unwrap();
    }
    let mut failures = 0;
    loop {
        // Now one that the undo needs, now one that a join would have liked.
        let read = failures % 8 * 3;
        world
            .directory
            .fail(Fault::nth(Call::Read, read).on("data"));
        assert!(failures < 1000, "it gets on");
        let log = world.log_of(&tx);
        let mut reverter = Reverter::running(&world.store, log, &world.carried);
        let reverted = tx.rollback_to(&Savepoint::START, &mut reverter);
        world.directory.clear_faults();
        match reverted {
            Ok(()) => break,
            Err(_) => failures += 1,
        }
    }
    assert!(failures > 0, "the disk failed in between");
    world.rollback(tx);
    let rows = world.rows(&world.begin(), &tree);
    assert_eq!(rows.len(), 600);
    assert!(rows.iter().all(|(_, value)| *value == [1; 100]));
}

#[test]
fn failed_write_leaves_the_row_and_the_transaction_as_they_were() {
    let world = World::new(4096, 24);
    let tree = world.table();
    let key = |number: u32| number.to_be_bytes();
    let tx = world.begin();
    for number in 0..600 {
        world.put(&tx, &tree, &key(number), &[1; 100]).unwrap();
    }
    world.commit(tx);
    let tx = world.begin();
    let mut failures = 0;
    for number in 0..600 {
        world
            .directory
            .fail(Fault::nth(Call::Read, number as u64 % 4));
        let mut scratch = Scratch::default();
        let view = super::world::view(&tx);
        let put = world
            .store
            .write(&view, &tree, &key(number), &mut scratch, |_| {
                Ok(Change::Put(Shape::INLINE, &[2; 120]))
            });
        world.directory.clear_faults();
        let expected: &[u8] = match put {
            Ok(_) => &[2; 120],
            Err(_) => &[1; 100],
        };
        failures += u32::from(put.is_err());
        assert_eq!(
            world.get(&tx, &tree, &key(number)).as_deref(),
            Some(expected)
        );
    }
    assert!(failures > 3, "{failures} failures");
    world.rollback(tx);
    let rows = world.rows(&world.begin(), &tree);
    assert!(rows.len() == 600 && rows.iter().all(|(_, value)| *value == [1; 100]));
}

#[test]
fn regress_savepoint_rollback_ignores_what_a_checkpoint_is_copying_at_the_moment() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"a", b"1").unwrap();
    let savepoint = tx.savepoint();
    world.put(&tx, &tree, b"b", b"2").unwrap();
    // Half of a copy of a record from before the savepoint.
    let journal = Some(Journal::forward(
        world.log.slot(vellum_base::SlotId(super::world::SLOTS)),
    ));
    let mut name = tx.stamp().unwrap().get().to_be_bytes().to_vec();
    name.extend_from_slice(&savepoint.gsn.get().to_be_bytes());
    world.carried.put(&name, &[1, 2, 3], journal).unwrap();
    world.rollback_to(&tx, &savepoint);
    assert_eq!(world.rows(&tx, &tree).len(), 1);
    assert!(world.carried.delete(&name, journal).unwrap());
    world.rollback(tx);
    assert_eq!(world.rows(&world.begin(), &tree).len(), 0);
}
