//! Every interleaving (with a bound on preemptions) of slots, rounds and waiters.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p vellum-wal --release --target-dir target-loom loom_`
//!
//! Not checked: more than two threads beside each other; more preemptions than a model says (four or five).
#![cfg(loom)]
// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

mod harness;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness::{header, recover};
use vellum_base::{Gsn, SlotId, Timestamp};
use vellum_io::{Directory, MemoryDirectory};
use vellum_wal::*;

fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = count.clone();
    builder.check(move || {
        seen.fetch_add(1, Ordering::Relaxed);
        body();
    });
    // A protocol that nothing interleaves is not checked.
    let count = count.load(Ordering::Relaxed);
    println!("{count} executions");
    assert!(count > 20, "{count} executions");
}

struct Fixture {
    dir: Arc<dyn Directory>,
    log: Log,
    clock: Arc<AtomicU64>,
}

fn fixture() -> Arc<Fixture> {
    let dir: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let config = LogConfig {
        slots_max: 2,
        slot_buffer_bytes: 4096,
        segment_bytes: 32 << 10,
        log_bytes_max: 96 << 10,
    };
    // The clock is outside the model: it is read and advanced in one step.
    let clock = Arc::new(AtomicU64::new(1));
    let read = clock.clone();
    let now = move || Timestamp(read.load(Ordering::SeqCst));
    let log = Log::create(dir.clone(), config, Arc::new(now), LogStart::first()).unwrap();
    Arc::new(Fixture { dir, log, clock })
}

/// A commit: timestamp and GSN.
fn commit(fixture: &Fixture, slot: u16) -> (Timestamp, Gsn) {
    let slot = fixture.log.slot(SlotId(slot));
    slot.reserve(64).unwrap();
    let mut guard = slot.lock();
    let ts = Timestamp(fixture.clock.fetch_add(1, Ordering::SeqCst));
    let gsn = guard.draw(Gsn::ZERO);
    guard.append(&header(2, 0, 0, gsn), &[&ts.0.to_le_bytes()], &[]);
    (ts, gsn)
}

/// True if slot 0 has a record of that GSN on disk.
fn is_on_disk(fixture: &Fixture, gsn: Gsn) -> bool {
    let everything = LogPosition::default();
    let (found, _) = recover(&*fixture.dir, everything, Verdict::default()).unwrap();
    let slot = found.get(&1).and_then(|all| all.slots.get(&SlotId(0)));
    slot.is_some_and(|records| records.iter().any(|record| record.header.gsn == gsn))
}

#[test]
fn loom_idle_slot_is_in_the_round_or_above_its_m_and_c() {
    model(5, || {
        let fixture = fixture();
        for _ in 0..5 {
            commit(&fixture, 1);
        }
        let other = fixture.clone();
        let writer = loom::thread::spawn(move || commit(&other, 0));
        let round = fixture.log.flush_round().unwrap();
        let (ts, gsn) = writer.join().unwrap();
        if gsn <= round.m || ts < round.c {
            assert!(gsn <= round.m || ts >= round.c, "below C but above M");
            assert!(
                is_on_disk(&fixture, gsn),
                "{gsn} {ts} is missing, {round:?}"
            );
        }
    });
}

#[test]
fn loom_active_slot_is_in_the_round_or_above_its_m_and_c() {
    model(5, || {
        let fixture = fixture();
        for _ in 0..3 {
            commit(&fixture, 1);
        }
        commit(&fixture, 0);
        let other = fixture.clone();
        let writer = loom::thread::spawn(move || commit(&other, 0));
        let round = fixture.log.flush_round().unwrap();
        let (ts, gsn) = writer.join().unwrap();
        if gsn <= round.m || ts < round.c {
            assert!(gsn <= round.m || ts >= round.c, "below C but above M");
            assert!(
                is_on_disk(&fixture, gsn),
                "{gsn} {ts} is missing, {round:?}"
            );
        }
    });
}

#[test]
fn loom_everyone_who_hardens_returns() {
    model(4, || {
        let fixture = fixture();
        let other = fixture.clone();
        let writer = loom::thread::spawn(move || {
            let (ts, gsn) = commit(&other, 0);
            other.log.harden(ts).unwrap();
            assert!(other.log.horizon() > ts && other.log.durable_gsn() >= gsn);
        });
        let (ts, gsn) = commit(&fixture, 1);
        fixture.log.harden(ts).unwrap();
        assert!(fixture.log.horizon() > ts && fixture.log.durable_gsn() >= gsn);
        writer.join().unwrap();
    });
}

/// Commits wait for each other before a round; what is no commit does not, and takes the round from who has the timer.
#[test]
fn loom_round_that_waits_for_commits_is_led_by_whoever_does_not() {
    model(3, || {
        let fixture = fixture();
        let other = fixture.clone();
        let (ts, gsn) = commit(&fixture, 0);
        let writer = loom::thread::spawn(move || {
            other.log.harden(ts).unwrap();
            assert!(other.log.horizon() > ts && other.log.durable_gsn() >= gsn);
        });
        let (ts, gsn) = commit(&fixture, 1);
        fixture.log.make_durable(gsn).unwrap();
        fixture.log.harden(ts).unwrap();
        fixture.log.flush_round().unwrap();
        writer.join().unwrap();
    });
}

/// The same with a round that somebody asks for while another's is open, or begins, or ends.
#[test]
fn loom_open_round_is_taken_by_who_asks_for_one() {
    model(3, || {
        let fixture = fixture();
        // The slot is active before: the clock is outside the model, and orders nothing in it.
        commit(&fixture, 0);
        let other = fixture.clone();
        let writer = loom::thread::spawn(move || {
            let (ts, gsn) = commit(&other, 0);
            other.log.harden(ts).unwrap();
            assert!(other.log.horizon() > ts && other.log.durable_gsn() >= gsn);
        });
        fixture.log.flush_round().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn loom_waiter_held_back_by_a_pending_timestamp_is_woken_by_its_withdrawal() {
    model(4, || {
        let fixture = fixture();
        {
            let mut guard = fixture.log.slot(SlotId(0)).lock();
            guard.set_pending(Some(Timestamp(
                fixture.clock.fetch_add(1, Ordering::SeqCst),
            )));
        }
        let (ts, _) = commit(&fixture, 1);
        let other = fixture.clone();
        let waiter = loom::thread::spawn(move || {
            other.log.harden(ts).unwrap();
            assert!(other.log.horizon() > ts);
        });
        fixture.log.slot(SlotId(0)).lock().set_pending(None);
        waiter.join().unwrap();
    });
}

#[test]
fn loom_writer_with_a_full_ring_gets_room_from_whoever_leads() {
    let waits = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = waits.clone();
    model(2, move || {
        let fixture = fixture();
        let other = fixture.clone();
        let committer = loom::thread::spawn(move || {
            let (ts, _) = commit(&other, 0);
            other.log.harden(ts).unwrap();
        });
        let slot = fixture.log.slot(SlotId(1));
        let redo = vec![7; 6000];
        // The ring grows to 16 KiB: the third record waits, unless a round came before it.
        for _ in 0..3 {
            slot.reserve(redo.len() + RECORD_HEADER_BYTES).unwrap();
            let mut guard = slot.lock();
            let gsn = guard.draw(Gsn::ZERO);
            guard.append(&header(harness::CHANGE, 0, 1, gsn), &[&redo], &[]);
        }
        seen.fetch_add(fixture.log.statistics().ring_waits, Ordering::Relaxed);
        committer.join().unwrap();
    });
    assert!(waits.load(Ordering::Relaxed) > 0, "nobody waited");
}
