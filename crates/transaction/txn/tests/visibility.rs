//! The visibility rule against brute force: threads run random transactions and note every answer; when
//! all commit timestamps are known, each answer is compared with `commit_ts < snapshot`.
//!
//! Normal build: real threads. `--cfg shuttle`: random schedules of few transactions.
//!
//! What it does NOT check: orderings weaker than sequential consistency (the loom tests do).
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod store;

use std::collections::HashMap;
use std::sync::Arc;
use store::World;
use vellum_base::Timestamp;
use vellum_base::random::Random;
use vellum_io::MemoryDirectory;
use vellum_sync::{Mutex, thread};
use vellum_txn::{Class, Durability, Isolation, Options, VersionStamp};

const KEYS: u64 = 4;

/// One answer of the rule.
struct Answer {
    version: VersionStamp,
    snapshot: Timestamp,
    own_stamp: Timestamp,
    command: u32,
    visible: bool,
}

#[derive(Default)]
struct Notes {
    answers: Vec<Answer>,
    commits: HashMap<Timestamp, Timestamp>,
}

fn options(random: &mut Random) -> Options {
    let classes = [Class::Auto, Class::Oltp, Class::Olap];
    Options {
        isolation: if random.chance(1, 2) {
            Isolation::ReadCommitted
        } else {
            Isolation::Snapshot
        },
        durability: Durability::Async,
        read_only: false,
        class: classes[random.below(3) as usize],
    }
}

/// One random transaction; what it learned goes into `notes`.
fn run(world: &World, random: &mut Random, notes: &mut Notes) {
    let transaction = world.begin(options(random));
    let mut cursors = Vec::new();
    for _ in 0..random.between(1, 5) {
        let command = transaction.next_command().unwrap();
        let snapshot = transaction.statement();
        if random.chance(1, 3) {
            cursors.push(transaction.open_snapshot());
        }
        let key = random.below(KEYS);
        if random.chance(1, 2) {
            // A conflict is an answer of the rule, too; the transaction goes on.
            let _ = world.write(&transaction, command, key, random.below(100));
        }
        let own_stamp = if transaction.has_written() {
            transaction.stamp().unwrap()
        } else {
            Timestamp::ZERO
        };
        let open = cursors
            .iter()
            .map(|cursor| cursor.snapshot())
            .chain([snapshot]);
        for snapshot in open.collect::<Vec<_>>() {
            for (version, _) in world.versions(key) {
                let visible = transaction.visible(&version, snapshot, command);
                notes.answers.push(Answer {
                    version,
                    snapshot,
                    own_stamp,
                    command,
                    visible,
                });
            }
        }
        if random.chance(1, 4) {
            drop(cursors.pop());
        }
    }
    drop(cursors);
    if random.chance(1, 8) {
        world.manager.pass();
    }
    let slot = transaction.slot();
    let stamp = transaction
        .has_written()
        .then(|| transaction.stamp().unwrap());
    if random.chance(1, 3) {
        transaction.rollback(&mut world.undo(slot)).unwrap();
    } else {
        let commit_ts = transaction.commit_deferred().unwrap().commit_ts();
        notes.commits.extend(stamp.map(|stamp| (stamp, commit_ts)));
    }
}

fn check(notes: &Notes) {
    for answer in &notes.answers {
        let Answer {
            version,
            snapshot,
            own_stamp,
            command,
            visible,
        } = answer;
        let expected = if version.stamp == *own_stamp {
            version.command < *command
        } else {
            notes
                .commits
                .get(&version.stamp)
                .is_some_and(|commit_ts| commit_ts < snapshot)
        };
        assert_eq!(
            *visible, expected,
            "{version:?} in snapshot {snapshot} of {own_stamp}"
        );
    }
}

fn race(seed: u64, threads: u64, transactions: u64, slots: u16) -> usize {
    let world = World::new(Arc::new(MemoryDirectory::new()), slots);
    let all = Arc::new(Mutex::new(Notes::default()));
    let handles: Vec<_> = (0..threads)
        .map(|index| {
            let (world, all) = (world.clone(), all.clone());
            thread::spawn(move || {
                let mut random = Random::new(seed.wrapping_add(index));
                let mut notes = Notes::default();
                (0..transactions).for_each(|_| run(&world, &mut random, &mut notes));
                let mut all = all.lock();
                all.answers.append(&mut notes.answers);
                all.commits.extend(notes.commits);
            })
        })
        .collect();
    handles
        .into_iter()
        .for_each(|handle| handle.join().unwrap());
    let notes = all.lock();
    check(&notes);
    assert_eq!(world.manager.slots_taken(), 0);
    // What is left are the versions of committed transactions, each seen by everyone now.
    let marks = world.manager.pass();
    for (version, _) in (0..KEYS).flat_map(|key| world.versions(key)) {
        assert!(notes.commits.contains_key(&version.stamp));
        assert!(world.manager.is_committed_before(&version, marks.oldest_tx));
        assert!(
            world.manager.is_settled(&version),
            "the pass settled what all see"
        );
    }
    notes.answers.len()
}

#[cfg(not(shuttle))]
#[test]
fn prop_visibility_equals_commit_before_snapshot() {
    let seed = store::seed("prop_visibility");
    for turn in 0..store::rounds(20) {
        let slots = [2, 3, 8, 64][turn as usize % 4];
        let answers = race(seed.wrapping_add(turn << 8), 4, 40, slots);
        assert!(answers > 100, "the test asks too little");
    }
}

#[cfg(shuttle)]
#[test]
fn shuttle_visibility_equals_commit_before_snapshot() {
    let seed = store::seed("shuttle_visibility");
    let turn = std::sync::atomic::AtomicU64::new(seed);
    vellum_sync::model(300, move || {
        let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        race(turn, 3, 2, 2);
    });
}
