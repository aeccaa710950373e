//! What a transaction sees and what becomes of its names, on the real log.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod store;

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;
use store::{ASYNC, READ_COMMITTED, Refused, World, get, put, world};
use vellum_base::{SlotId, Timestamp};
use vellum_sync::test_point::TestPoints;
use vellum_txn::{ActiveSnapshots, Class, Options, TransactionError};

#[test]
fn r1_names_never_repeat_after_aborts_and_savepoint_rollbacks() {
    let world = world(4);
    let mut names = HashSet::new();
    for turn in 0..50_u64 {
        let transaction = world.begin(ASYNC);
        for step in 0..4 {
            let command = transaction.next_command().unwrap();
            let savepoint = transaction.savepoint();
            let name = world.write(&transaction, command, step, turn).unwrap();
            assert!(names.insert(name), "{name:?} was used before");
            if step % 2 == 1 {
                let mut undo = world.undo(transaction.slot());
                transaction.rollback_to(&savepoint, &mut undo).unwrap();
                assert_eq!(undo.undone.len(), 1);
            }
        }
        match turn % 3 {
            0 => {
                transaction.commit().unwrap();
            }
            _ => {
                let slot = transaction.slot();
                transaction.rollback(&mut world.undo(slot)).unwrap();
            }
        }
    }
    assert_eq!(
        world.newest().into_iter().collect::<Vec<_>>(),
        [(0, 48), (2, 48)]
    );
}

#[test]
fn r1_reading_draws_nothing_and_a_stamp_is_drawn_at_the_first_write() {
    let world = world(4);
    let before = world.manager.clock().now();
    let reader = world.begin(ASYNC);
    world.begin(ASYNC).commit().unwrap();
    reader.commit().unwrap();
    assert_eq!(world.manager.clock().now(), before);
    put(&world, 1, 1);
    assert_eq!(
        world.manager.clock().now().get(),
        before.get() + 2,
        "stamp and commit timestamp"
    );
}

#[test]
fn snapshot_is_strictly_below_and_does_not_change() {
    let world = world(4);
    put(&world, 1, 10);
    let reader = world.begin(ASYNC);
    put(&world, 1, 20);
    let seen = || world.read(&reader, reader.snapshot(), 0, 1);
    assert_eq!(seen(), Some(10));
    assert_eq!(reader.statement(), reader.snapshot());
    assert_eq!(seen(), Some(10), "asked again, from the cache");
    put(&world, 1, 30);
    assert_eq!((seen(), get(&world, 1)), (Some(10), Some(30)));
}

#[test]
fn own_versions_are_seen_by_later_commands_only() {
    let world = world(4);
    let transaction = world.begin(ASYNC);
    let first = transaction.next_command().unwrap();
    world.write(&transaction, first, 1, 5).unwrap();
    let read = |command| world.read(&transaction, transaction.snapshot(), command, 1);
    assert_eq!(read(first), None, "no Halloween");
    let second = transaction.next_command().unwrap();
    assert_eq!(read(second), Some(5));
    assert_eq!(get(&world, 1), None, "and by nobody else");
}

#[test]
fn first_writer_wins() {
    let world = world(4);
    put(&world, 1, 1);
    let (one, two) = (world.begin(ASYNC), world.begin(ASYNC));
    let (c1, c2) = (one.next_command().unwrap(), two.next_command().unwrap());
    world.write(&one, c1, 1, 2).unwrap();
    assert!(matches!(
        world.write(&two, c2, 1, 3),
        Err(Refused::Conflict)
    ));
    one.commit().unwrap();
    assert!(
        matches!(world.write(&two, c2, 1, 3), Err(Refused::Conflict)),
        "committed too late"
    );
    let slot = two.slot();
    two.rollback(&mut world.undo(slot)).unwrap();
    assert_eq!(get(&world, 1), Some(2));
}

#[test]
fn read_committed_statement_sees_what_was_committed_when_it_started() {
    let world = world(4);
    put(&world, 1, 10);
    let reader = world.begin(READ_COMMITTED);
    put(&world, 1, 20);
    assert_eq!(world.read(&reader, reader.snapshot(), 0, 1), Some(10));
    let second = reader.statement();
    assert_eq!(world.read(&reader, second, 0, 1), Some(20));
    put(&world, 1, 30);
    assert_eq!(world.read(&reader, second, 0, 1), Some(20));
}

#[test]
fn r3_cursor_keeps_its_snapshot_through_later_statements_and_cleanings() {
    let world = world(4);
    put(&world, 1, 0);
    let reader = world.begin(READ_COMMITTED);
    let mut cursors = Vec::new();
    let mut active = ActiveSnapshots::new();
    for value in 1..=100 {
        let snapshot = reader.statement();
        if value % 10 == 0 {
            cursors.push((reader.open_snapshot(), value - 1));
            cursors.push((reader.open_snapshot(), value - 1));
        }
        assert_eq!(world.read(&reader, snapshot, 0, 1), Some(value - 1));
        put(&world, 1, value);
    }
    world.manager.active_snapshots(&mut active);
    assert_eq!(
        active.snapshots().len(),
        10,
        "the last statement's is a cursor's: {active:?}"
    );
    for (cursor, value) in &cursors {
        assert_eq!(world.read(&reader, cursor.snapshot(), 0, 1), Some(*value));
    }
    assert_eq!(world.manager.pass().oldest_tx, cursors[0].0.snapshot());
    drop(cursors);
    world.manager.active_snapshots(&mut active);
    assert_eq!(active.snapshots(), [reader.snapshot()]);
    assert_eq!(world.manager.pass().oldest_tx, reader.snapshot());
}

#[test]
fn r4_commit_log_is_bounded_by_open_snapshots_and_answers_all_of_them() {
    let world = world(64);
    let mut readers = Vec::new();
    for value in 0..2000 {
        put(&world, 1, value);
        if value % 50 == 0 {
            readers.push((world.begin(ASYNC), value));
        }
    }
    // The debug build's history checks every cleaning; these check what readers get.
    for (reader, value) in &readers {
        assert_eq!(world.read(reader, reader.snapshot(), 0, 1), Some(*value));
    }
    let slots = world.manager.slots_in_use();
    assert!(world.manager.commit_log_entries() < 8 * (readers.len() + slots) + 64 * slots);
    drop(readers);
    for value in 0..200 {
        put(&world, 1, value);
    }
    assert!(world.manager.commit_log_entries() < 64 * slots);
}

#[test]
fn watermarks_separate_oltp_from_olap_and_idle_slots_pin_nothing() {
    let world = world(8);
    let old = world.begin(Options {
        class: Class::Olap,
        ..ASYNC
    });
    put(&world, 1, 1);
    let young = world.begin(Options {
        class: Class::Oltp,
        ..ASYNC
    });
    put(&world, 1, 2);
    let marks = world.manager.pass();
    assert_eq!(
        (marks.oldest_tx, marks.oldest_oltp, marks.newest_olap),
        (old.snapshot(), young.snapshot(), old.snapshot())
    );
    assert_eq!(world.manager.watermarks(), marks);
    drop((old, young));
    let marks = world.manager.pass();
    let now = world.manager.clock().now();
    assert_eq!(
        (marks.oldest_tx, marks.oldest_oltp, marks.clock),
        (now, now, now)
    );
    assert_eq!(marks.newest_olap, Timestamp::ZERO);
}

/// Q3 of `quiet`: the second pass that sees one snapshot in a slot has looked at it, and its owner takes another one before that becomes quiet.
#[test]
fn r2_slot_that_becomes_quiet_beside_a_new_snapshot_is_known_by_it() {
    let world = world(4);
    let analytical = world.begin(Options {
        class: Class::Olap,
        ..READ_COMMITTED
    });
    put(&world, 1, 1);
    let first = world.manager.pass().newest_olap;
    assert_eq!(first, analytical.snapshot());
    let points = TestPoints::new();
    let looked = points.pause("pass: looked at a slot");
    std::thread::scope(|scope| {
        let pass = scope.spawn(|| {
            let _entered = points.enter();
            world.manager.pass();
        });
        looked.wait_reached();
        assert!(analytical.statement() > first);
        looked.release();
        pass.join().unwrap();
    });
    put(&world, 1, 2);
    let (marks, open) = (world.manager.pass(), analytical.snapshot());
    assert_eq!((marks.oldest_tx, marks.newest_olap), (open, open));
}

#[test]
fn slots_of_a_burst_are_taken_out_of_use_and_come_back() {
    let world = world(200);
    let burst: Vec<_> = (0..150).map(|_| world.begin(ASYNC)).collect();
    assert_eq!(world.manager.slots_in_use(), 150);
    let mut burst = burst.into_iter();
    let (first, last) = (burst.next().unwrap(), burst.next_back().unwrap());
    burst.for_each(drop);
    for _ in 0..100 {
        world.manager.close_unused_slots();
    }
    let (in_use, ever) = (world.manager.slots_in_use(), world.manager.slots_ever());
    assert!(in_use <= 8, "{in_use} slots in use");
    assert_eq!(ever, 150, "what ran there may have left garbage");
    // Those that are leased stay, wherever they are.
    put(&world, 1, 1);
    assert_eq!(world.manager.pass().oldest_tx, first.snapshot());
    drop(first);
    put(&world, 1, 2);
    assert_eq!(world.manager.pass().oldest_tx, last.snapshot());
    // Maintenance takes one that is out of use, and leaves it so.
    let closed = world.manager.lease_idle(SlotId(100)).unwrap();
    assert!(world.manager.lease_idle(SlotId(100)).is_none());
    let all: Vec<_> = (0..198).map(|_| world.begin(ASYNC)).collect();
    assert!(all.iter().all(|tx| tx.slot() != SlotId(100)));
    let full = world.manager.begin(ASYNC, Duration::ZERO);
    assert!(matches!(full, Err(TransactionError::SlotsExhausted { .. })));
    drop(closed);
    let one_more = world.begin(ASYNC);
    assert_eq!(one_more.slot(), SlotId(100));
    assert_eq!(world.manager.pass().oldest_tx, last.snapshot());
}

#[test]
fn r10_transaction_that_falls_behind_becomes_analytical_between_operations() {
    let world = world(4);
    let lagging = world.begin(ASYNC);
    let operation = lagging.operation().unwrap();
    assert!(!operation.is_olap());
    for _ in 0..50_100 {
        world.manager.clock().draw();
    }
    for _ in 0..50_100 {
        world.manager.clock().draw();
    }
    assert_eq!(
        world.manager.pass().oldest_oltp,
        lagging.snapshot(),
        "an operation runs"
    );
    drop(operation);
    let marks = world.manager.pass();
    assert_eq!(
        (marks.oldest_oltp, marks.newest_olap),
        (marks.clock, lagging.snapshot())
    );
    assert!(lagging.operation().unwrap().is_olap());
}

#[test]
fn request_makes_one_pass_promote_from_a_sixteenth_of_the_age_on() {
    let world = world(4);
    let old = world.begin(ASYNC);
    for _ in 0..6_000 {
        world.manager.clock().draw();
    }
    let young = world.begin(ASYNC);
    for _ in 0..300 {
        world.manager.clock().draw();
    }
    assert_eq!(world.manager.pass().oldest_oltp, old.snapshot());
    world.manager.request_promotion(1);
    assert_eq!(world.manager.pass().oldest_oltp, young.snapshot());
    assert!(old.is_olap() && !young.is_olap());
    for _ in 0..6_000 {
        world.manager.clock().draw();
    }
    assert_eq!(
        world.manager.pass().oldest_oltp,
        young.snapshot(),
        "one request, one pass"
    );
}

#[test]
fn r10_declared_classes_never_change() {
    let world = world(4);
    let begin = |class| world.begin(Options { class, ..ASYNC });
    let (clerk, analyst) = (begin(Class::Oltp), begin(Class::Olap));
    let (working, looking) = (clerk.operation().unwrap(), analyst.operation().unwrap());
    for _ in 0..100_100 {
        world.manager.clock().draw();
    }
    let marks = world.manager.pass();
    assert_eq!(
        (marks.oldest_oltp, marks.newest_olap),
        (clerk.snapshot(), analyst.snapshot())
    );
    assert!(!working.is_olap() && looking.is_olap());
}

#[test]
fn r10_operation_that_was_paused_reads_its_class_anew() {
    let world = world(4);
    let lagging = world.begin(ASYNC);
    let mut operation = lagging.operation().unwrap();
    operation.pause();
    for _ in 0..100_100 {
        world.manager.clock().draw();
    }
    let marks = world.manager.pass();
    assert_eq!(marks.newest_olap, lagging.snapshot());
    operation.resume().unwrap();
    assert!(operation.is_olap());
}

#[test]
fn r10_withdrawn_snapshot_pins_nothing_and_its_owner_is_told_with_the_next_operation() {
    let world = world(4);
    put(&world, 1, 1);
    for class in [Class::Auto, Class::Oltp, Class::Olap] {
        let old = world.begin(Options { class, ..ASYNC });
        let cursor = old.open_snapshot();
        let holder = world.manager.holders()[0];
        assert_eq!((holder.id, holder.oldest), (old.id(), old.snapshot()));
        assert!(!holder.writer && holder.olap == (class == Class::Olap));
        put(&world, 1, 2);
        let operation = old.operation().unwrap();
        assert!(!world.manager.withdraw(old.id()), "an operation runs");
        drop(operation);
        assert!(world.manager.withdraw(old.id()) && !world.manager.withdraw(old.id()));
        let marks = world.manager.pass();
        assert_eq!(marks.oldest_tx, marks.clock);
        let mut active = ActiveSnapshots::new();
        world.manager.active_snapshots(&mut active);
        assert!(active.snapshots().is_empty() && world.manager.holders().is_empty());
        let told = old.operation().err();
        assert!(matches!(told, Some(TransactionError::SnapshotTooOld)));
        assert!(matches!(old.stamp(), Err(TransactionError::SnapshotTooOld)));
        drop(cursor);
        let id = old.id();
        drop(old);
        let next: Vec<_> = (0..4).map(|_| world.begin(ASYNC)).collect();
        let successor = next.iter().find(|next| next.id().slot == id.slot).unwrap();
        assert_eq!(successor.id().number, id.number + 1);
        assert!(!world.manager.withdraw(id), "it names one transaction only");
        assert!(next.iter().all(|next| next.operation().is_ok()));
    }
}

/// What `look` finds that has looked at the slot of a follower before that begins, and at its leader's after that was withdrawn.
fn looks_while_a_follower_takes_over<T: Send>(
    look: impl Fn(&World) -> T + Send + Sync,
) -> (T, Timestamp) {
    let world = world(2);
    put(&world, 1, 1);
    let before = world.begin(ASYNC);
    let leader = world.begin(ASYNC);
    let (first, behind) = (before.slot(), leader.slot());
    assert!(first < behind);
    drop(before);
    for value in 2..10 {
        put(&world, 1, value);
    }
    let points = TestPoints::new();
    let looked = points.pause("pass: looked at a slot");
    std::thread::scope(|scope| {
        let pass = scope.spawn(|| {
            let _entered = points.enter();
            look(&world)
        });
        looked.wait_reached();
        let handle = leader.open_snapshot();
        let follower = world.manager.follow(&handle, 0).unwrap().unwrap();
        assert_eq!(
            (follower.slot(), follower.snapshot()),
            (first, leader.snapshot())
        );
        assert!(world.manager.withdraw(leader.id()));
        looked.release();
        let found = pass.join().unwrap();
        assert_eq!(world.read(&follower, follower.snapshot(), 0, 1), Some(1));
        (found, follower.snapshot())
    })
}

#[test]
fn r2_pass_does_not_miss_a_follower_whose_leader_is_withdrawn_meanwhile() {
    if store::protocol() != vellum_txn::Protocol::Osic {
        // A read view has no followers.
        return;
    }
    let (marks, open) = looks_while_a_follower_takes_over(|world| {
        world.manager.pass();
        world.manager.watermarks()
    });
    assert!(marks.oldest_tx <= open, "{marks:?} with {open:?} open");
    let (active, open) = looks_while_a_follower_takes_over(|world| {
        let mut active = ActiveSnapshots::new();
        world.manager.active_snapshots(&mut active);
        active
    });
    assert_eq!(active.snapshots(), [open]);
}

#[test]
fn withdrawn_writer_counts_as_hidden_until_it_is_rolled_back() {
    let world = world(4);
    put(&world, 1, 1);
    let write = || {
        let writer = world.begin(ASYNC);
        let command = writer.next_command().unwrap();
        world.write(&writer, command, 1, 2).unwrap();
        assert!(world.manager.withdraw(writer.id()));
        assert!(world.manager.has_hidden_writer());
        writer
    };
    let writer = write();
    let slot = writer.slot();
    writer.rollback(&mut world.undo(slot)).unwrap();
    assert!(!world.manager.has_hidden_writer());
    let writer = write();
    drop(writer);
    assert!(world.manager.has_hidden_writer(), "parked");
    let parked = world.manager.take_parked(slot).unwrap();
    parked.rollback(&mut world.undo(slot)).unwrap();
    assert!(!world.manager.has_hidden_writer());
    assert_eq!(get(&world, 1), Some(1));
    // What it wrote was right: it may commit.
    write().commit().unwrap();
    assert!(!world.manager.has_hidden_writer());
    assert_eq!(get(&world, 1), Some(2));
}

#[test]
fn withdrawal_counts_as_the_end_of_an_analytical_snapshot_once() {
    let world = world(4);
    let analyst = world.begin(Options {
        class: Class::Olap,
        ..ASYNC
    });
    let before = world.manager.olap_ended();
    assert!(world.manager.withdraw(analyst.id()));
    assert_eq!(world.manager.olap_ended(), before + 1);
    drop(analyst);
    assert_eq!(world.manager.olap_ended(), before + 1);
}

#[test]
fn dropped_reader_frees_its_slot_and_dropped_writer_is_parked_until_it_is_rolled_back() {
    let world = world(2);
    put(&world, 1, 1);
    drop(world.begin(ASYNC));
    assert_eq!(world.manager.slots_taken(), 0);
    let writer = world.begin(ASYNC);
    let (slot, command) = (writer.slot(), writer.next_command().unwrap());
    world.write(&writer, command, 1, 2).unwrap();
    drop(writer);
    assert_eq!(world.manager.parked_slots().collect::<Vec<_>>(), [slot]);
    assert_eq!((get(&world, 1), world.manager.slots_taken()), (Some(1), 1));
    let marks = world.manager.pass();
    assert_eq!(marks.oldest_tx, marks.clock, "it pins nothing but its slot");
    assert!(world.manager.lease_idle(slot).is_none());
    drop(world.manager.take_parked(slot).unwrap());
    let parked = world.manager.take_parked(slot).expect("parked again");
    assert!(world.manager.take_parked(slot).is_none(), "once at a time");
    parked.rollback(&mut world.undo(slot)).unwrap();
    assert_eq!((get(&world, 1), world.manager.slots_taken()), (Some(1), 0));
    assert_eq!(world.versions(1).len(), 1);
}

#[test]
fn read_only_transaction_refuses_to_write_and_stays_usable() {
    let world = world(2);
    put(&world, 1, 1);
    let reader = world.begin(Options {
        read_only: true,
        ..ASYNC
    });
    let command = reader.next_command().unwrap();
    let refused = world.write(&reader, command, 1, 2);
    assert!(matches!(
        refused,
        Err(Refused::Transaction(TransactionError::ReadOnly))
    ));
    assert_eq!(world.read(&reader, reader.snapshot(), command, 1), Some(1));
    reader.commit().unwrap();
}

#[test]
fn slot_that_is_kept_after_commit_pins_nothing_and_is_free_after_that() {
    let world = world(2);
    let transaction = world.begin(ASYNC);
    let command = transaction.next_command().unwrap();
    world.write(&transaction, command, 1, 1).unwrap();
    let (ticket, lease) = transaction.commit_leased().unwrap();
    assert_eq!((world.manager.slots_taken(), get(&world, 1)), (1, Some(1)));
    assert_eq!(world.manager.pass().oldest_tx, world.manager.clock().now());
    assert!(!ticket.is_hardened());
    ticket.wait().unwrap();
    assert!(ticket.is_hardened());
    let slot = lease.slot();
    drop(lease);
    assert!(world.manager.idle_slots().any(|idle| idle == slot));
    assert_eq!(world.manager.lease_idle(slot).unwrap().slot(), slot);
    assert!(world.manager.lease_idle(SlotId(99)).is_none());
}

#[test]
fn regress_slots_given_back_after_cleaning_keep_no_log_space() {
    let world = world(8);
    let open: Vec<_> = (0..8).map(|_| world.begin(ASYNC)).collect();
    let slots: Vec<SlotId> = open.iter().map(|transaction| transaction.slot()).collect();
    drop(open);
    let lease = |slot: &SlotId| world.manager.lease_idle(*slot).unwrap();
    let leases: Vec<_> = slots.iter().map(lease).collect();
    let log = leases[0].domain().log().clone();
    let at_rest = || {
        log.flush_round().unwrap();
        log.flush_round().unwrap();
        log.pressure()
    };
    let before = at_rest();
    // Whoever cleans reserves for the worst, and there may be nothing to do.
    for slot in &slots {
        let optional = vellum_wal::Purpose::Optional;
        log.slot(*slot).reserve_for(16 << 10, optional).unwrap();
    }
    assert!(at_rest() > before);
    drop(leases);
    assert_eq!(at_rest(), before);
}

#[test]
fn exhausted_slots_name_how_many_are_taken() {
    let world = world(3);
    let open: Vec<_> = (0..3).map(|_| world.begin(ASYNC)).collect();
    for timeout in [Duration::ZERO, Duration::from_millis(2)] {
        let error = world.manager.begin(ASYNC, timeout).unwrap_err();
        assert!(
            matches!(
                error,
                TransactionError::SlotsExhausted {
                    taken: 3,
                    slots_max: 3,
                    ..
                }
            ),
            "{error}"
        );
    }
    drop(open);
    world.manager.begin(ASYNC, Duration::ZERO).unwrap();
}

#[test]
fn begin_that_waits_gets_the_slot_that_is_given_back() {
    let world = world(1);
    let open = world.begin(ASYNC);
    let waiting = world.clone();
    let thread = std::thread::spawn(move || waiting.begin(ASYNC).slot());
    let slot = open.slot();
    drop(open);
    assert_eq!(thread.join().unwrap(), slot);
}

#[derive(Default)]
struct Woken(std::sync::atomic::AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn polled_begin_is_woken_and_a_dropped_one_passes_its_turn_on() {
    let world = world(1);
    let open = world.begin(ASYNC);
    let woken: Vec<Arc<Woken>> = (0..2).map(|_| Arc::default()).collect();
    let wakers: Vec<Waker> = woken.iter().map(|w| Waker::from(w.clone())).collect();
    let count = |index: usize| woken[index].0.load(std::sync::atomic::Ordering::SeqCst);
    let mut first = world.manager.begin_pending(ASYNC);
    let mut second = world.manager.begin_pending(ASYNC);
    assert!(first.poll(&wakers[0]).is_pending() && second.poll(&wakers[1]).is_pending());
    drop(open);
    assert_eq!((count(0), count(1)), (1, 0));
    drop(first);
    assert_eq!((count(0), count(1)), (1, 1));
    let Poll::Ready(transaction) = second.poll(&wakers[1]) else {
        panic!("a slot is free")
    };
    transaction.commit().unwrap();
}

#[test]
fn rollback_of_more_than_the_ring_holds_reverts_everything() {
    let world = world(2);
    put(&world, 7, 1);
    let transaction = world.begin(ASYNC);
    let savepoint = transaction.savepoint();
    for value in 0..500 {
        let command = transaction.next_command().unwrap();
        world
            .write(&transaction, command, value % 10, value)
            .unwrap();
    }
    let middle = transaction.savepoint();
    let command = transaction.next_command().unwrap();
    world.write(&transaction, command, 3, 9999).unwrap();
    let mut undo = world.undo(transaction.slot());
    transaction.rollback_to(&middle, &mut undo).unwrap();
    assert_eq!(undo.undone.len(), 1);
    transaction.rollback_to(&savepoint, &mut undo).unwrap();
    assert_eq!(
        undo.undone.len(),
        501,
        "what was compensated is not undone again"
    );
    assert!(undo.undone.windows(2).all(|pair| pair[0] > pair[1]));
    transaction.rollback(&mut undo).unwrap();
    assert_eq!(undo.undone.len(), 501);
    assert_eq!(world.newest().into_iter().collect::<Vec<_>>(), [(7, 1)]);
}
