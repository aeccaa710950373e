//! Transactions that begin at another one's snapshot, on the real log.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod store;

use store::{ASYNC, READ_COMMITTED, Refused, World, get, put, world};
use vellum_base::Timestamp;
use vellum_sync::test_point::TestPoints;
use vellum_txn::{ActiveSnapshots, TransactionError};

/// What `look` finds that has looked at the slot of a transaction before that begins at another one's snapshot, and at the other one's after that ended.
fn looks_while_a_snapshot_is_handed_on<T: Send>(
    look: impl Fn(&World) -> T + Send + Sync,
) -> (T, Timestamp) {
    let world = world(2);
    put(&world, 1, 1);
    let before = world.begin(ASYNC);
    let other = world.begin(ASYNC);
    let first = before.slot();
    assert!(first < other.slot());
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
        let heir = world.manager.begin_at(&other, ASYNC).unwrap().unwrap();
        assert_eq!((heir.slot(), heir.snapshot()), (first, other.snapshot()));
        drop(other);
        looked.release();
        let found = pass.join().unwrap();
        // What is not needed by the heir goes.
        world.manager.pass();
        put(&world, 1, 10);
        assert_eq!(world.read(&heir, heir.snapshot(), 0, 1), Some(1));
        (found, heir.snapshot())
    })
}

#[test]
fn r2_pass_does_not_miss_a_snapshot_that_is_handed_on_meanwhile() {
    if store::protocol() != vellum_txn::Protocol::Osic {
        // A read view is not handed on.
        return;
    }
    let (marks, open) = looks_while_a_snapshot_is_handed_on(|world| {
        world.manager.pass();
        world.manager.watermarks()
    });
    assert!(marks.oldest_tx <= open, "{marks:?} with {open:?} open");
    let (active, open) = looks_while_a_snapshot_is_handed_on(|world| {
        let mut active = ActiveSnapshots::new();
        world.manager.active_snapshots(&mut active);
        active
    });
    assert_eq!(active.snapshots(), [open]);
}

#[test]
fn who_begins_at_anothers_snapshot_sees_nothing_of_its_writes_and_meets_them_as_conflicts() {
    let world = world(4);
    put(&world, 1, 1);
    put(&world, 2, 1);
    let other = world.begin(ASYNC);
    let command = other.next_command().unwrap();
    world.write(&other, command, 1, 2).unwrap();
    put(&world, 2, 2);
    let Some(heir) = world.manager.begin_at(&other, ASYNC).unwrap() else {
        assert_ne!(store::protocol(), vellum_txn::Protocol::Osic);
        return;
    };
    assert!(heir.is_olap());
    let seen = |key| world.read(&heir, heir.snapshot(), heir.commands_drawn(), key);
    assert_eq!((seen(1), seen(2)), (Some(1), Some(1)));
    other.commit().unwrap();
    assert_eq!(seen(1), Some(1));
    let command = heir.next_command().unwrap();
    for key in [1, 2] {
        assert!(matches!(
            world.write(&heir, command, key, 3),
            Err(Refused::Conflict)
        ));
    }
    world.write(&heir, command, 3, 3).unwrap();
    assert_eq!(seen(3), Some(3));
    heir.commit().unwrap();
    assert_eq!((get(&world, 1), get(&world, 3)), (Some(2), Some(3)));
    // In whatever slot: in that of a writer, too, whose stamp is below the snapshot and whose commit is not.
    let writer = world.begin(READ_COMMITTED);
    let command = writer.next_command().unwrap();
    world.write(&writer, command, 1, 4).unwrap();
    writer.statement();
    let holder = world.manager.begin_at(&writer, ASYNC).unwrap().unwrap();
    let slot = writer.slot();
    writer.commit().unwrap();
    let heirs = [(); 3].map(|()| world.manager.begin_at(&holder, ASYNC).unwrap().unwrap());
    for heir in &heirs {
        assert_eq!(world.read(heir, heir.snapshot(), 0, 1), Some(2));
    }
    let its = heirs.into_iter().find(|heir| heir.slot() == slot).unwrap();
    let handle = its.open_snapshot();
    let follower = world.manager.follow(&handle, 0).unwrap().unwrap();
    assert_eq!(world.read(&follower, follower.snapshot(), 0, 1), Some(2));
    drop((follower, handle));
    drop((holder, its));
    // A withdrawn one hands nothing on.
    let other = world.begin(ASYNC);
    assert!(world.manager.withdraw(other.id()));
    let refused = world.manager.begin_at(&other, ASYNC).err();
    assert!(matches!(refused, Some(TransactionError::SnapshotTooOld)));
    // Nor does one if there is no slot.
    drop(other);
    let all: Vec<_> = (0..4).map(|_| world.begin(ASYNC)).collect();
    assert!(world.manager.begin_at(&all[0], ASYNC).unwrap().is_none());
}
