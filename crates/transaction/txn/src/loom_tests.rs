//! Every interleaving of the protocols between those who begin, commit, look and clean.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p vellum-txn --release --target-dir target-loom loom_`
//!
//! What they do NOT check: the log (its own tests do), more than two threads at a time.

use crate::active::ActiveSnapshots;
use crate::clock::Clock;
use crate::commit_log::{CommitLog, SlotLatch};
use crate::quiet::Known;
use crate::slot::{Class, Withdrawal};
use crate::slots::Slots;
use crate::watermarks::{PublishedWatermarks, Watermarks};
use std::task::{Wake, Waker};
use vellum_base::{SlotId, Timestamp};
use vellum_sync::atomic::{AtomicBool, Ordering};
use vellum_sync::{Arc, Mutex, MutexGuard, model, thread};

impl SlotLatch for MutexGuard<'_, ()> {}

struct World {
    clock: Clock,
    slots: Slots,
    known: Mutex<Known>,
    latch: Mutex<()>,
    log: CommitLog,
}

impl World {
    fn new(slots: u16) -> Arc<Self> {
        Arc::new(Self {
            clock: Clock::above(Timestamp(0)),
            slots: Slots::new(slots),
            known: Mutex::new(Known::new()),
            latch: Mutex::new(()),
            log: CommitLog::new(),
        })
    }

    fn begin(&self) -> (SlotId, Timestamp) {
        self.begin_as(Class::Oltp)
    }

    fn begin_as(&self, class: Class) -> (SlotId, Timestamp) {
        let slot = self.slots.take(class, u16::MAX).expect("a free slot");
        let snapshot = self.clock.now();
        self.slots
            .get(slot)
            .unwrap()
            .words
            .publish_first(class, snapshot);
        (slot, snapshot)
    }

    /// A new snapshot in the place of the one in word `index`, as a statement takes one.
    fn refresh(&self, slot: SlotId, index: usize) -> Timestamp {
        let words = &self.slots.get(slot).unwrap().words;
        if words.announce() {
            self.slots.stir(slot);
        }
        let snapshot = self.clock.now();
        words.publish(index, snapshot);
        snapshot
    }

    /// A pass that promotes who is at least a tick behind; another time where somebody was just about to publish.
    fn pass(&self) -> Option<Watermarks> {
        let mut known = self.known.lock();
        self.slots
            .watermarks(&mut known, &self.clock, (0, u64::MAX), 0)
    }

    /// Passes until the slots that do not move are quiet.
    fn quieten(&self) {
        for _ in 0..3 {
            self.clock.draw();
            self.pass().expect("nobody is at work");
        }
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
        let mut known = Known::new();
        let never = (u64::MAX, u64::MAX);
        let marks = world.slots.watermarks(&mut known, &world.clock, never, 0);
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
            // A cursor keeps the first snapshot, so the second goes into another word; the third
            // replaces the second.
            refresher.refresh(slot, 1);
            refresher.refresh(slot, 1)
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
        let withdrawal = world.slots.withdraw(slot, number);
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
        assert_eq!(world.slots.withdraw(slot, number), Withdrawal::Done);
        thread.join().unwrap();
    });
}

/// What a pass says of an analytical snapshot that is open.
fn covers(marks: &Watermarks, snapshot: Timestamp) -> bool {
    snapshot >= marks.clock || marks.oldest_tx <= snapshot && snapshot <= marks.newest_olap
}

#[test]
fn loom_r2_a_pass_sees_who_refreshes_in_a_slot_that_is_quiet() {
    model(1, || {
        let world = World::new(1);
        let (slot, _) = world.begin_as(Class::Olap);
        world.quieten();
        let refresher = world.clone();
        let thread = thread::spawn(move || refresher.refresh(slot, 0));
        world.clock.draw();
        let marks = world.pass();
        let snapshot = thread.join().unwrap();
        assert!(marks.is_none_or(|marks| covers(&marks, snapshot)));
        // And what it replaced is not kept for ever.
        world.clock.draw();
        let marks = world.pass().unwrap();
        assert_eq!((marks.oldest_tx, marks.newest_olap), (snapshot, snapshot));
    });
}

#[test]
fn loom_r2_a_slot_becomes_quiet_beside_who_refreshes() {
    model(1, || {
        let world = World::new(1);
        let (slot, _) = world.begin_as(Class::Olap);
        world.clock.draw();
        world.pass().unwrap();
        let refresher = world.clone();
        let thread = thread::spawn(move || refresher.refresh(slot, 0));
        // The second pass that sees what the first one saw, or does not.
        let marks = world.pass();
        let snapshot = thread.join().unwrap();
        assert!(marks.is_none_or(|marks| covers(&marks, snapshot)));
        for _ in 0..2 {
            world.clock.draw();
            let marks = world.pass().unwrap();
            assert_eq!((marks.oldest_tx, marks.newest_olap), (snapshot, snapshot));
        }
    });
}

#[test]
fn loom_r2_a_slot_becomes_quiet_beside_who_gives_a_snapshot_back() {
    model(1, || {
        let world = World::new(1);
        let (slot, first) = world.begin_as(Class::Olap);
        world.clock.draw();
        let second = world.refresh(slot, 1);
        world.clock.draw();
        world.pass().unwrap();
        let owner = world.clone();
        let thread = thread::spawn(move || {
            owner.slots.get(slot).unwrap().words.unpublish(1);
            owner.slots.stir(slot);
        });
        let marks = world.pass().unwrap();
        assert!(marks.oldest_tx == first && marks.newest_olap <= second);
        thread.join().unwrap();
        for _ in 0..2 {
            let marks = world.pass().unwrap();
            assert_eq!((marks.oldest_tx, marks.newest_olap), (first, first));
        }
    });
}

/// The next transaction of a slot whose analytical one ends, while passes go by what that one showed.
fn ends_and_begins_again(passes: usize) {
    model(1, move || {
        let world = World::new(1);
        let (slot, _) = world.begin_as(Class::Auto);
        for _ in 0..passes {
            world.clock.draw();
            world.pass().unwrap();
        }
        let owner = world.clone();
        let thread = thread::spawn(move || {
            owner.slots.release(slot);
            owner.begin().1
        });
        world.clock.draw();
        let marks = world.pass();
        let snapshot = thread.join().unwrap();
        if let Some(marks) = marks {
            assert!(marks.oldest_tx <= snapshot && marks.oldest_oltp <= snapshot);
        }
        let mut known = world.known.lock();
        let never = (u64::MAX, u64::MAX);
        for _ in 0..2 {
            let marks = world.slots.watermarks(&mut known, &world.clock, never, 0);
            let marks = marks.unwrap();
            assert_eq!((marks.oldest_tx, marks.oldest_oltp), (snapshot, snapshot));
            assert_eq!(marks.newest_olap, Timestamp::ZERO);
        }
    });
}

#[test]
fn loom_r2_a_pass_sees_who_begins_where_a_quiet_transaction_ends() {
    // Promoted, seen, quiet.
    ends_and_begins_again(3);
}

#[test]
fn loom_r2_a_pass_sees_who_begins_where_one_ends_that_is_about_to_be_quiet() {
    ends_and_begins_again(2);
}

#[test]
fn loom_r2_a_transaction_that_is_promoted_as_it_ends_leaves_a_slot_that_passes_look_at() {
    ends_and_begins_again(0);
}

#[test]
fn loom_r3_who_was_oltp_for_what_is_settled_is_known_as_analytical() {
    model(1, || {
        let world = World::new(2);
        let (idle, snapshot) = world.begin_as(Class::Auto);
        let (writer, _) = world.begin();
        let stamp = world.clock.draw();
        let commit_ts = {
            let log = &world.slots.get(writer).unwrap().commit_log;
            let latch = world.latch.lock();
            let commit_ts = world.clock.draw();
            log.append(&latch, commit_ts);
            commit_ts
        };
        world.slots.release(writer);
        let published = Arc::new(PublishedWatermarks::new(Timestamp(1)));
        let (passing, marks) = (world.clone(), published.clone());
        let thread = thread::spawn(move || {
            // It promotes who idles, and nobody is OLTP any more.
            let mut known = passing.known.lock();
            let after = (0, u64::MAX);
            let pass = passing
                .slots
                .watermarks(&mut known, &passing.clock, after, 0);
            let pass = pass.expect("nobody is about to publish");
            marks.publish(&pass);
            passing.slots.settle(&mut known, &pass);
        });
        // As `Domain::settled_for_oltp` and `Domain::watermarks`, in that order.
        let log = &world.slots.get(writer).unwrap().commit_log;
        let settled = log.settled_for_oltp();
        let marks = published.load();
        if stamp < settled {
            assert_eq!(settled, commit_ts);
            assert!(snapshot <= marks.newest_olap, "it does not see that commit");
        }
        thread.join().unwrap();
        assert_eq!(log.settled_for_oltp(), commit_ts);
        assert!(log.settled() < commit_ts);
        world.slots.release(idle);
    });
}

#[test]
fn loom_r10_a_withdrawn_snapshot_of_a_quiet_slot_counts_no_more() {
    model(1, || {
        let world = World::new(1);
        let (slot, _) = world.begin_as(Class::Olap);
        world.quieten();
        let number = world.slots.get(slot).unwrap().words.number();
        let owner = world.clone();
        let thread = thread::spawn(move || owner.slots.withdraw(slot, number));
        // Whatever it says: it counts for nothing, or is from before.
        world.pass();
        assert_eq!(thread.join().unwrap(), Withdrawal::Done);
        let marks = world.pass().unwrap();
        assert_eq!(marks.newest_olap, Timestamp::ZERO);
        assert_eq!(marks.oldest_tx, marks.clock);
        world.slots.release(slot);
        let (_, snapshot) = world.begin();
        world.clock.draw();
        assert_eq!(world.pass().unwrap().oldest_tx, snapshot);
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
