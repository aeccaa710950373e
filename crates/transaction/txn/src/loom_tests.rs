//! Every interleaving of the protocols between those who begin, commit, look and clean.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p vellum-txn --release --target-dir target-loom loom_`
//!
//! What they do NOT check: the log (its own tests do), more than two threads at a time.

use crate::active::ActiveSnapshots;
use crate::clock::Clock;
use crate::commit_log::{CommitLog, SlotLatch};
use crate::slot::{Class, Withdrawal};
use crate::slots::Slots;
use std::task::{Wake, Waker};
use vellum_base::{SlotId, Timestamp};
use vellum_sync::atomic::{AtomicBool, Ordering};
use vellum_sync::{Arc, Mutex, MutexGuard, model, thread};

impl SlotLatch for MutexGuard<'_, ()> {}

struct World {
    clock: Clock,
    slots: Slots,
    latch: Mutex<()>,
    log: CommitLog,
}

impl World {
    fn new(slots: u16) -> Arc<Self> {
        Arc::new(Self {
            clock: Clock::above(Timestamp(0)),
            slots: Slots::new(slots),
            latch: Mutex::new(()),
            log: CommitLog::new(),
        })
    }

    fn begin(&self) -> (SlotId, Timestamp) {
        let slot = self.slots.take(Class::Oltp, u16::MAX).expect("a free slot");
        let snapshot = self.clock.now();
        self.slots
            .get(slot)
            .unwrap()
            .words
            .publish_first(Class::Oltp, snapshot);
        (slot, snapshot)
    }

    fn commit(&self) -> Timestamp {
        let latch = self.latch.lock();
        let commit_ts = self.clock.draw();
        self.log.append(&latch, commit_ts);
        commit_ts
    }

    fn clean(&self) {
        let mut active = ActiveSnapshots::new();
        self.slots.collect(&self.clock, &mut active);
        let latch = self.latch.lock();
        self.log.clean(&latch, &active);
    }

    fn lcb(&self, ts: Timestamp) -> Timestamp {
        let latch = self.latch.lock();
        self.log.lcb(&latch, ts)
    }
}

#[test]
fn loom_r2_a_pass_sees_who_begins_or_is_clamped_below_it() {
    model(1, || {
        let world = World::new(1);
        let beginner = world.clone();
        let thread = thread::spawn(move || beginner.begin().1);
        world.clock.draw();
        let mut active = ActiveSnapshots::new();
        world.slots.collect(&world.clock, &mut active);
        let snapshot = thread.join().unwrap();
        assert!(snapshot >= active.clock() || active.snapshots().contains(&snapshot));
    });
}

#[test]
fn loom_r2_a_pass_sees_who_begins_in_a_slot_that_is_closed_meanwhile() {
    model(1, || {
        let world = World::new(1);
        let (slot, _) = world.begin();
        world.slots.release(slot);
        let beginner = world.clone();
        // Finds the slot free, or closed, and opens it again then.
        let thread = thread::spawn(move || beginner.begin().1);
        world.clock.draw();
        world.slots.close_all();
        let mut active = ActiveSnapshots::new();
        world.slots.collect(&world.clock, &mut active);
        let snapshot = thread.join().unwrap();
        assert!(snapshot >= active.clock() || active.snapshots().contains(&snapshot));
    });
}

#[test]
fn loom_a_slot_that_is_closed_beside_a_waiter_is_not_lost_to_him() {
    model(1, || {
        let world = World::new(1);
        let (slot, _) = world.begin();
        let closer = world.clone();
        let thread = thread::spawn(move || {
            closer.slots.release(slot);
            closer.slots.close_all();
        });
        let flag = std::sync::Arc::new(Flag(AtomicBool::new(false)));
        let id = world.slots.waiters.register(Waker::from(flag.clone()));
        let mut taken = world.slots.take(Class::Oltp, u16::MAX);
        thread.join().unwrap();
        if taken.is_none() {
            assert!(flag.0.load(Ordering::Relaxed), "nobody told the waiter");
            taken = world.slots.take(Class::Oltp, u16::MAX);
        }
        assert!(taken.is_some());
        world.slots.waiters.leave(id, true);
    });
}

#[test]
fn loom_r2_watermarks_are_at_or_below_who_begins() {
    model(1, || {
        let world = World::new(1);
        let beginner = world.clone();
        let thread = thread::spawn(move || beginner.begin().1);
        world.clock.draw();
        let marks = world
            .slots
            .watermarks(&world.clock, (u64::MAX, u64::MAX), 0);
        let snapshot = thread.join().unwrap();
        if let Some(marks) = marks {
            assert!(marks.oldest_tx <= snapshot && marks.oldest_oltp <= snapshot);
        }
    });
}

#[test]
fn loom_r3_a_pass_sees_who_refreshes_or_is_clamped_below_it() {
    model(1, || {
        let world = World::new(1);
        let (slot, first) = world.begin();
        let refresher = world.clone();
        let thread = thread::spawn(move || {
            let words = &refresher.slots.get(slot).unwrap().words;
            // A cursor keeps the first snapshot, so the second goes into another word; the third
            // replaces the second.
            words.announce();
            let second = refresher.clock.now();
            words.publish(1, second);
            words.announce();
            let third = refresher.clock.now();
            words.publish(1, third);
            third
        });
        world.clock.draw();
        let mut active = ActiveSnapshots::new();
        world.slots.collect(&world.clock, &mut active);
        let third = thread.join().unwrap();
        assert!(active.snapshots().contains(&first), "it is open throughout");
        assert!(third >= active.clock() || active.snapshots().contains(&third));
    });
}

#[test]
fn loom_r4_cleaning_keeps_what_a_beginning_snapshot_asks_for() {
    model(1, || {
        let world = World::new(1);
        let mut commits = vec![world.commit(), world.commit()];
        let reader = world.clone();
        let thread = thread::spawn(move || {
            let (_slot, snapshot) = reader.begin();
            (snapshot, reader.lcb(snapshot))
        });
        commits.push(world.commit());
        world.clean();
        let (snapshot, lcb) = thread.join().unwrap();
        let expected = commits.iter().rev().find(|commit| **commit < snapshot);
        assert_eq!(Some(&lcb), expected);
        assert_eq!(world.lcb(snapshot), lcb, "and still, after the cleaning");
    });
}

#[test]
fn loom_commit_below_a_snapshot_is_found_by_its_first_question() {
    model(1, || {
        let world = World::new(1);
        let committer = world.clone();
        let thread = thread::spawn(move || committer.commit());
        let snapshot = world.clock.now();
        let proven = world.log.proven_below(snapshot);
        let lcb = world.lcb(snapshot);
        let commit_ts = thread.join().unwrap();
        let expected = if commit_ts < snapshot {
            commit_ts
        } else {
            Timestamp::ZERO
        };
        assert_eq!(lcb, expected);
        assert!(proven <= lcb);
    });
}

#[test]
fn loom_proof_without_the_latch_is_a_commit_below_the_snapshot() {
    model(1, || {
        let world = World::new(1);
        let commits = [world.commit(), world.commit(), world.commit()];
        let snapshot = commits[2];
        let cleaner = world.clone();
        let thread = thread::spawn(move || cleaner.clean());
        let proven = world.log.proven_below(snapshot);
        assert!(proven < snapshot && (proven.is_zero() || commits.contains(&proven)));
        thread.join().unwrap();
    });
}

#[test]
fn loom_r10_promotion_and_operation_agree_on_the_class() {
    model(1, || {
        let world = World::new(1);
        let slot = world.slots.take(Class::Auto, u16::MAX).unwrap();
        let words = &world.slots.get(slot).unwrap().words;
        words.publish_first(Class::Auto, world.clock.now());
        let running = Arc::new(AtomicBool::new(false));
        let (owner, flag) = (world.clone(), running.clone());
        let thread = thread::spawn(move || {
            let words = &owner.slots.get(slot).unwrap().words;
            let olap = words.raise().expect("nobody withdraws it");
            flag.store(!olap, Ordering::Relaxed);
            thread::yield_now();
            flag.store(false, Ordering::Relaxed);
            words.lower();
        });
        if words.promote() {
            assert!(
                !running.load(Ordering::Relaxed),
                "an OLTP operation runs on"
            );
        }
        thread.join().unwrap();
    });
}

#[test]
fn loom_r10_withdrawal_and_operation_agree() {
    model(1, || {
        let world = World::new(1);
        let slot = world.slots.take(Class::Olap, u16::MAX).unwrap();
        let words = &world.slots.get(slot).unwrap().words;
        let snapshot = world.clock.now();
        words.publish_first(Class::Olap, snapshot);
        words.begin_writing();
        let number = words.number();
        let running = Arc::new(AtomicBool::new(false));
        let (owner, flag) = (world.clone(), running.clone());
        let thread = thread::spawn(move || {
            let words = &owner.slots.get(slot).unwrap().words;
            if words.raise().is_some() {
                flag.store(true, Ordering::Relaxed);
                thread::yield_now();
                flag.store(false, Ordering::Relaxed);
                words.lower();
            }
        });
        let withdrawal = world.slots.withdraw(world.slots.get(slot).unwrap(), number);
        if withdrawal == Withdrawal::Done {
            assert!(!running.load(Ordering::Relaxed), "an operation runs on");
            assert!(world.slots.has_withdrawn_writer());
        }
        thread.join().unwrap();
    });
}

#[test]
fn loom_r10_who_misses_a_withdrawn_snapshot_finds_its_writer_hidden() {
    model(1, || {
        let world = World::new(1);
        let slot = world.slots.take(Class::Olap, u16::MAX).unwrap();
        let words = &world.slots.get(slot).unwrap().words;
        words.publish_first(Class::Olap, world.clock.now());
        words.begin_writing();
        let number = words.number();
        world.clock.draw();
        let looking = world.clone();
        let thread = thread::spawn(move || {
            let mut active = ActiveSnapshots::new();
            looking.slots.collect(&looking.clock, &mut active);
            let missed = active.snapshots().is_empty();
            assert!(!missed || looking.slots.has_withdrawn_writer());
        });
        let slot = world.slots.get(slot).unwrap();
        assert_eq!(world.slots.withdraw(slot, number), Withdrawal::Done);
        thread.join().unwrap();
    });
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn loom_slot_that_is_given_back_is_found_or_wakes_the_waiter() {
    model(1, || {
        let world = World::new(1);
        let (slot, _) = world.begin();
        let owner = world.clone();
        let thread = thread::spawn(move || owner.slots.release(slot));
        let flag = std::sync::Arc::new(Flag(AtomicBool::new(false)));
        let id = world.slots.waiters.register(Waker::from(flag.clone()));
        let found = world.slots.take(Class::Oltp, u16::MAX).is_some();
        thread.join().unwrap();
        assert!(
            found || flag.0.load(Ordering::Relaxed),
            "nobody told the waiter"
        );
        world.slots.waiters.leave(id, found);
    });
}
