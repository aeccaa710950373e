//! Old writers beside dropped rows: whoever is refused without need is counted.

use super::world::{World, is_conflict};
use vellum_base::random::Random;
use vellum_btree::Tree;
use vellum_txn::Transaction;

/// Keys that a transaction is refused to insert, of so many.
fn refused(world: &World, tx: &Transaction, tree: &Tree, keys: impl Iterator<Item = u64>) -> u64 {
    let put = |key: u64| world.put(tx, tree, &key.to_be_bytes(), b"mine");
    keys.filter(|key| is_conflict(put(*key))).count() as u64
}

/// Inserts and deletes a row, in two transactions.
fn pass_through(world: &World, tree: &Tree, key: u64) {
    for delete in [false, true] {
        let tx = world.begin();
        let key = key.to_be_bytes();
        let done = match delete {
            false => world.put(&tx, tree, &key, b"short"),
            true => world.delete(&tx, tree, &key),
        };
        done.unwrap();
        world.commit(tx);
    }
}

/// A busy queue beside a writer that is promoted: it appends as if nothing were there, and whatever it is refused was dropped.
#[test]
fn old_writer_appends_to_a_queue_and_uses_keys_that_it_kept_back_without_a_conflict() {
    let world = World::new(4096, 256);
    let tree = world.table();
    let writer = world.begin_olap();
    // Two queues in one table; every hundredth key the writer has drawn for itself.
    let queues = [0, 7 << 40];
    let kept_back = |number: &u64| number % 100 == 50;
    let numbers = || (0..6000_u64).filter(|number| !kept_back(number));
    for number in numbers() {
        for start in queues {
            pass_through(&world, &tree, start + number);
        }
        if number % 64 == 0 {
            world.collect();
        }
    }
    world.collect();
    assert_eq!(
        (world.heads(&tree), world.store.buried()),
        (0, 0),
        "dropped"
    );
    for start in queues {
        let tail = start + 6000..start + 7000;
        assert_eq!(refused(&world, &writer, &tree, tail), 0, "at the tail");
        let own = (0..6000).filter(kept_back).map(|number| start + number);
        assert_eq!(refused(&world, &writer, &tree, own), 0, "in the gaps");
        let gone = numbers().map(|number| start + number);
        let (count, all) = (numbers().count() as u64, "every row that was dropped");
        assert_eq!(refused(&world, &writer, &tree, gone), count, "{all}");
    }
    world.rollback(writer);
}

/// The same with keys in no order: their number counts, not how long the transaction is open.
#[test]
fn prop_old_writer_is_seldom_refused_a_key_beside_dropped_ones_in_no_order() {
    let seed = super::world_seed("prop_old_writer_is_seldom_refused");
    let mut random = Random::new(seed);
    let world = World::new(4096, 256);
    let tree = world.table();
    let writer = world.begin_olap();
    let dropped: Vec<u64> = (0..3000).map(|_| random.next_u64()).collect();
    for (number, key) in dropped.iter().enumerate() {
        pass_through(&world, &tree, *key);
        if number % 64 == 0 {
            world.collect();
        }
    }
    world.collect();
    assert_eq!(world.heads(&tree), 0);
    let others: Vec<u64> = (0..1000).map(|_| random.next_u64()).collect();
    let without_need = refused(&world, &writer, &tree, others.into_iter());
    println!("{without_need} of 1000 were refused without need");
    assert!(without_need <= 100);
    assert_eq!(refused(&world, &writer, &tree, dropped.into_iter()), 3000);
    world.rollback(writer);
}
