//! Rows that carry the commit timestamps of their writers.

use super::world::{World, is_conflict};
use crate::row::Header;
use vellum_base::Timestamp;
use vellum_btree::Tree;
use vellum_txn::{Isolation, Protocol, Transaction};

fn world() -> World {
    World::with_protocol(4096, 64, Protocol::Stamping)
}

/// Ticks from stamp to commit that the row carries.
fn ticks(tree: &Tree, key: &[u8]) -> u64 {
    let mut row = Vec::new();
    assert!(tree.get(key, &mut row).unwrap());
    let header = Header::decode(&row).unwrap();
    u64::from(header.since) | u64::from(header.updates) << 16
}

/// Commits; the ticks from stamp to commit.
fn commit(transaction: Transaction) -> u64 {
    let stamp = transaction.stamp().unwrap();
    let ticket = transaction.commit_deferred().unwrap();
    ticket.commit_ts().get() - stamp.get()
}

#[test]
fn committed_rows_carry_their_commit_and_snapshots_judge_by_it() {
    let world = world();
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"a", b"one").unwrap();
    world.put(&tx, &tree, b"b", b"one").unwrap();
    world.put(&tx, &tree, b"a", b"two").unwrap();
    assert_eq!((ticks(&tree, b"a"), ticks(&tree, b"b")), (0, 0));
    let before = world.begin();
    assert_eq!(commit(tx), 1);
    assert_eq!((ticks(&tree, b"a"), ticks(&tree, b"b")), (1, 1));
    let after = world.begin();
    assert_eq!(world.get(&before, &tree, b"a"), None);
    assert_eq!(world.get(&after, &tree, b"a").unwrap(), b"two");
    assert!(is_conflict(world.put(&before, &tree, b"b", b"three")));
    world.put(&after, &tree, b"b", b"three").unwrap();
    world.rollback(before);
    assert_eq!(ticks(&tree, b"b"), 0, "by a transaction that runs");
    world.rollback(after);
    assert_eq!(ticks(&tree, b"b"), 1, "as it was before");

    let reader = world.begin();
    let tx = world.begin_at(Isolation::ReadCommitted);
    assert!(world.delete(&tx, &tree, b"a").unwrap().existed);
    commit(tx);
    assert_eq!(world.get(&reader, &tree, b"a").unwrap(), b"two");
    assert_eq!(world.rows(&world.begin(), &tree).len(), 1);
    world.rollback(reader);
    world.collect();
    assert_eq!(world.heads(&tree), 1);
}

#[test]
fn rows_that_were_reverted_to_a_savepoint_are_not_visited() {
    let world = world();
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"kept", b"one").unwrap();
    let savepoint = tx.savepoint();
    world.put(&tx, &tree, b"gone", b"one").unwrap();
    world.rollback_to(&tx, &savepoint);
    let other = world.begin();
    world.put(&other, &tree, b"gone", b"other").unwrap();
    let (took, others) = (commit(tx), commit(other));
    assert_eq!(ticks(&tree, b"kept"), took);
    assert_eq!(ticks(&tree, b"gone"), others);
}

#[test]
fn transaction_of_too_many_ticks_is_judged_by_the_commit_log() {
    let world = world();
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"a", b"one").unwrap();
    for _ in 0..1 << 24 {
        world.manager.clock().draw();
    }
    let before = world.begin();
    assert!(commit(tx) > 1 << 24);
    assert_eq!(ticks(&tree, b"a"), 0);
    assert_eq!(world.get(&before, &tree, b"a"), None);
    assert_eq!(world.get(&world.begin(), &tree, b"a").unwrap(), b"one");
}

#[test]
fn commit_timestamp_of_a_row_decides_and_not_the_commit_log() {
    let world = world();
    let tree = world.table();
    let tx = world.begin();
    world.put(&tx, &tree, b"a", b"one").unwrap();
    commit(tx);
    let reader = world.begin();
    assert!(world.get(&reader, &tree, b"a").is_some());
    // A row that says that it was committed later: nobody but this test writes such.
    let later = reader.snapshot().get() + 5;
    let mut row = Vec::new();
    assert!(tree.get(b"a", &mut row).unwrap());
    let stamp = Header::decode(&row).unwrap().writer.unwrap().version.stamp;
    let ticks = (later - stamp.get()) as u16;
    row[16..18].copy_from_slice(&ticks.to_le_bytes());
    tree.write(b"a").unwrap().shrink_unlogged(&row);
    assert!(stamp > Timestamp::ZERO);
    assert_eq!(world.get(&reader, &tree, b"a"), None);
}
