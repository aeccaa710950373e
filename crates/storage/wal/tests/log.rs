//! What the log does while nothing fails.
#![cfg(not(any(loom, shuttle)))]
// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

mod harness;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};

use harness::*;
use vellum_base::random::Random;
use vellum_base::{Gsn, Lsn, SlotId, StorageError, Timestamp};
use vellum_io::{Directory, MemoryDirectory};
use vellum_sync::test_point::TestPoints;
use vellum_wal::*;

const A: SlotId = SlotId(0);
const B: SlotId = SlotId(5);

fn memory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

fn everything(dir: &dyn Directory) -> (std::collections::BTreeMap<u64, Recovered>, LogReader) {
    recover(dir, LogPosition::default(), Verdict::default()).unwrap()
}

#[test]
fn hardened_commits_are_read_back_with_all_their_records() {
    let dir = memory();
    let mut engine = open(dir.clone(), small(), LogStart::first()).unwrap();
    for i in 0..20 {
        let slot = if i % 3 == 0 { A } else { B };
        let stamp = engine.begin(slot);
        engine.change(slot, stamp, 10 * i).unwrap();
        engine.change(slot, stamp, 300).unwrap();
        let ts = engine.commit(slot).unwrap();
        engine.harden(ts).unwrap();
    }
    let (found, reader) = everything(&*dir);
    engine.model.check(&found[&1], reader.ends()[0]);
    let count: usize = found[&1].slots.values().map(Vec::len).sum();
    assert_eq!(count, 60);
    assert_eq!(reader.ends()[0].m, engine.log.durable_gsn());
}

#[test]
fn what_was_not_flushed_is_not_there_and_position_is_where_it_will_be() {
    let dir = memory();
    let mut engine = open(dir.clone(), small(), LogStart::first()).unwrap();
    let stamp = engine.begin(A);
    let first = engine.change(A, stamp, 100).unwrap();
    engine.log.flush_round().unwrap();
    let (position, known) = engine.log.known_position();
    let second = engine.change(A, stamp, 100).unwrap();
    assert!(engine.log.durable_gsn() >= first && engine.log.durable_gsn() < second);
    let (found, reader) = recover(&*dir, position, known).unwrap();
    assert!(found.is_empty());
    assert_eq!(reader.ends()[0].m, known.m);
    engine.log.flush_round().unwrap();
    let (found, _) = recover(&*dir, position, known).unwrap();
    assert_eq!(found[&1].slots[&A].len(), 1);
    assert_eq!(found[&1].slots[&A][0].header.gsn, second);
}

#[test]
fn idle_rounds_write_nothing_and_still_move_the_horizon() {
    let mut engine = open(memory(), small(), LogStart::first()).unwrap();
    let stamp = engine.begin(A);
    engine.change(A, stamp, 100).unwrap();
    let ts = engine.commit(A).unwrap();
    engine.harden(ts).unwrap();
    engine.log.flush_round().unwrap();
    let before = engine.log.statistics().bytes_written;
    for _ in 0..5 {
        let read = engine.tick();
        engine.log.harden(read).unwrap();
        assert!(engine.log.horizon() > read);
    }
    assert_eq!(engine.log.statistics().bytes_written, before);
    assert_eq!(engine.log.statistics().rounds_empty, 6);
}

#[test]
fn regress_commit_between_clock_and_visit_is_not_hardened_by_an_empty_round() {
    use std::sync::{Mutex, OnceLock};
    static LOG: OnceLock<Log> = OnceLock::new();
    let ticks = Arc::new(std::sync::atomic::AtomicU64::new(1));
    let late = Arc::new(Mutex::new(None));
    let inject = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (clock, slipped, switch) = (ticks.clone(), late.clone(), inject.clone());
    let now = move || {
        let c = clock.load(Ordering::SeqCst);
        if switch.swap(false, Ordering::SeqCst) {
            // The clock was read; now a commit slips in before the slots are visited.
            let mut guard = LOG.get().unwrap().slot(A).lock();
            let ts = Timestamp(clock.fetch_add(1, Ordering::SeqCst));
            let gsn = guard.draw(Gsn::ZERO);
            guard.append(&header(COMMIT, 0, 0, gsn), &[&ts.0.to_le_bytes()], &[]);
            *slipped.lock().unwrap() = Some((ts, gsn));
        }
        Timestamp(c)
    };
    let dir = memory();
    let log = Log::create(dir.clone(), small(), Arc::new(now), LogStart::first()).unwrap();
    let log = LOG.get_or_init(|| log);
    log.slot(A).reserve(100).unwrap();
    inject.store(true, Ordering::SeqCst);
    log.flush_round().unwrap();
    let (ts, gsn) = late.lock().unwrap().expect("a commit slipped in");
    assert!(
        log.durable_gsn() >= gsn && log.horizon() <= ts,
        "on disk, and not counted yet"
    );
    log.harden(ts).unwrap();
    let (_, reader) = everything(&*dir);
    assert!(reader.ends()[0].c > ts, "acknowledged, and lost by a crash");
}

#[test]
fn slot_that_slept_appends_above_the_published_m() {
    let mut engine = open(memory(), small(), LogStart::first()).unwrap();
    let stamp = engine.begin(A);
    for _ in 0..50 {
        engine.change(A, stamp, 20).unwrap();
    }
    engine.log.flush_round().unwrap();
    let m = engine.log.durable_gsn();
    let other = engine.begin(B);
    assert!(engine.change(B, other, 10).unwrap() > m);
    // An active slot that appended nothing is raised as well.
    for _ in 0..50 {
        engine.change(A, stamp, 20).unwrap();
    }
    engine.log.flush_round().unwrap();
    let m = engine.log.durable_gsn();
    assert!(engine.change(B, other, 10).unwrap() > m);
}

#[test]
fn page_above_every_slot_can_be_made_durable() {
    let engine = open(memory(), small(), LogStart::first()).unwrap();
    engine.log.make_durable(Gsn(1000)).unwrap();
    assert!(engine.log.durable_gsn() >= Gsn(1000));
    assert!(engine.log.slot(A).lock().draw(Gsn::ZERO) > Gsn(1000));
}

#[test]
fn backward_stream_gives_all_records_newest_first_from_ring_and_segments() {
    let dir = memory();
    let config = LogConfig {
        log_bytes_max: 1 << 20,
        ..small()
    };
    let mut engine = open(dir.clone(), config, LogStart::first()).unwrap();
    let mut random = Random::new(seed());
    let stamp = engine.begin(A);
    let (_, first) = engine.log.slot(A).lock().live_transaction().unwrap();
    for i in 0..120 {
        engine.change(A, stamp, random.below(700) as usize).unwrap();
        if i % 7 == 0 && i < 100 {
            engine.log.flush_round().unwrap();
        }
    }
    let records = engine.model.slots[&A].clone();
    let end = engine.log.slot(A).lock().end();
    let mut stream = engine.log.slot(A).backward(end, first);
    for expected in records.iter().rev() {
        let record = stream
            .next_record()
            .unwrap()
            .expect("as many as were appended");
        assert_eq!(
            (record.lsn, record.redo),
            (expected.lsn, &expected.redo[..])
        );
    }
    assert!(stream.next_record().unwrap().is_none());
    // From the middle to the middle.
    let (low, high) = (records[10].lsn, records[60].lsn);
    let mut stream = engine.log.slot(A).backward(high, low);
    let mut count = 0;
    while let Some(record) = stream.next_record().unwrap() {
        assert!(low <= record.lsn && record.lsn < high);
        count += 1;
    }
    assert_eq!(count, 50);
    // The same from the files alone.
    engine.log.flush_round().unwrap();
    let mut reader = LogReader::open(&*dir, LogPosition::default(), Verdict::default()).unwrap();
    let mut last = ChunkPosition::default();
    while let Some(round) = reader.next_round().unwrap() {
        last = round.chunks.last().unwrap().position;
    }
    let mut stream =
        BackwardRecords::from_chunk(reader.files().clone(), A, last, last.end(), Lsn(0));
    for expected in records.iter().rev() {
        assert_eq!(stream.next_record().unwrap().unwrap().lsn, expected.lsn);
    }
}

#[test]
fn prop_uncompensated_yields_what_a_stack_of_savepoints_leaves() {
    let mut random = Random::new(seed());
    for _ in 0..30 {
        let mut engine = open(memory(), small(), LogStart::first()).unwrap();
        let stamp = engine.begin(A);
        let mut alive = Vec::new();
        for _ in 0..random.between(1, 60) {
            if random.chance(1, 3) && !alive.is_empty() {
                for _ in 0..random.between(1, alive.len().min(5) as u64) {
                    let gsn = alive.pop().unwrap();
                    engine.compensate(A, stamp, gsn).unwrap();
                }
            } else {
                alive.push(engine.change(A, stamp, random.below(300) as usize).unwrap());
            }
            if random.chance(1, 8) {
                engine.log.flush_round().unwrap();
            }
        }
        let slot = engine.log.slot(A);
        let end = slot.lock().end();
        let mut left = Uncompensated::new(slot.backward(end, Lsn(0)), stamp);
        while let Some(record) = left.next_record().unwrap() {
            assert_eq!(Some(record.header.gsn), alive.pop());
        }
        assert!(alive.is_empty(), "not undone: {alive:?}");
    }
}

#[test]
fn prop_redo_windows_give_every_durable_record_once_in_page_order() {
    let mut random = Random::new(seed());
    for _ in 0..10 {
        let dir = memory();
        let mut engine = open(dir.clone(), small(), LogStart::first()).unwrap();
        let (a, b) = (engine.begin(A), engine.begin(B));
        for _ in 0..random.between(1, 80) {
            let (slot, stamp) = if random.chance(1, 2) { (A, a) } else { (B, b) };
            engine.page_gsn = engine
                .change(slot, stamp, random.below(300) as usize)
                .unwrap();
            if random.chance(1, 6) {
                engine.log.flush_round().unwrap();
            }
        }
        engine.log.flush_round().unwrap();
        let reader = LogReader::open(&*dir, LogPosition::default(), Verdict::default()).unwrap();
        let mut windows = RedoWindows::new(reader, 2000);
        let mut seen = 0;
        let mut pages = std::collections::BTreeMap::new();
        while let Some(window) = windows.next_window().unwrap() {
            let mut before = None;
            for (_, record) in window.records() {
                let at = (record.header.page, record.header.gsn);
                assert!(before < Some(at));
                before = Some(at);
                let highest = pages.insert(record.header.page, record.header.gsn);
                assert!(highest.is_none_or(|gsn| gsn < record.header.gsn));
                seen += 1;
            }
        }
        assert_eq!(
            seen,
            engine.model.slots.values().map(Vec::len).sum::<usize>()
        );
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn polled_wait_is_held_back_by_a_pending_timestamp_and_woken_by_its_withdrawal() {
    let mut engine = open(memory(), small(), LogStart::first()).unwrap();
    let other = engine.begin(B);
    engine.change(B, other, 10).unwrap();
    let pending = {
        let mut guard = engine.log.slot(B).lock();
        let pending = engine.tick();
        guard.set_pending(Some(pending));
        pending
    };
    let stamp = engine.begin(A);
    engine.change(A, stamp, 10).unwrap();
    let ts = engine.commit(A).unwrap();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert!(engine.log.poll_harden(ts, &waker).is_pending());
    assert_eq!(engine.log.horizon(), pending);
    assert_eq!(count.0.load(Ordering::SeqCst), 0, "woken for nothing");
    engine.log.slot(B).lock().set_pending(None);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(matches!(
        engine.log.poll_harden(ts, &waker),
        Poll::Ready(Ok(()))
    ));
    assert!(engine.log.horizon() > ts);
}

#[test]
fn served_polls_are_woken_and_serving_stops() {
    let mut engine = open(memory(), small(), LogStart::first()).unwrap();
    let stamp = engine.begin(A);
    engine.change(A, stamp, 10).unwrap();
    let ts = engine.commit(A).unwrap();
    let log = &engine.log;
    std::thread::scope(|scope| {
        let server = scope.spawn(|| while log.serve_one().unwrap() {});
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        while log.poll_harden(ts, &waker).is_pending() {
            std::thread::yield_now();
        }
        log.stop_serving();
        server.join().unwrap();
    });
    assert!(log.horizon() > ts);
}

/// The server is told to stop behind its round, and never comes again.
#[test]
fn polls_lead_rounds_once_serving_was_stopped_whoever_noticed() {
    // Rounds come until the server does, which may take its thread a while.
    let config = LogConfig {
        log_bytes_max: 64 << 20,
        ..small()
    };
    let engine = open(memory(), config, LogStart::first()).unwrap();
    let log = &engine.log;
    let commit = || {
        let slot = log.slot(A);
        slot.reserve(RECORD_HEADER_BYTES + 8).unwrap();
        let mut guard = slot.lock();
        guard.begin_transaction(engine.tick());
        let ts = engine.tick();
        let gsn = guard.draw(Gsn::ZERO);
        guard.append(&header(COMMIT, 0, 0, gsn), &[&ts.0.to_le_bytes()], &[]);
        guard.end_transaction();
        ts
    };
    let polls = |ts, count: &Arc<Count>| log.poll_harden(ts, &Waker::from(count.clone()));
    let count = Arc::new(Count::default());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| log.serve_one());
        // As long as nobody serves, polls lead.
        while polls(commit(), &count).is_ready() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(server.join().unwrap().unwrap());
    });
    let before = count.0.load(Ordering::SeqCst);
    let ts = commit();
    assert!(polls(ts, &count).is_pending());
    log.stop_serving();
    assert_eq!(
        count.0.load(Ordering::SeqCst),
        before + 1,
        "nobody else leads"
    );
    assert!(polls(ts, &count).is_ready());
    assert!(polls(commit(), &count).is_ready());
}

#[test]
fn many_threads_commit_and_every_hardened_commit_is_there() {
    let dir = memory();
    let engine = open(
        dir.clone(),
        LogConfig {
            log_bytes_max: 64 << 20,
            ..small()
        },
        LogStart::first(),
    )
    .unwrap();
    let hardened = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for id in 0..6_u16 {
            let (engine, hardened) = (&engine, &hardened);
            scope.spawn(move || {
                let slot = engine.log.slot(SlotId(id));
                for i in 0..200_usize {
                    let redo = vec![id as u8; 20 + (i * 37) % 500];
                    slot.reserve(2 * RECORD_HEADER_BYTES + redo.len() + 8)
                        .unwrap();
                    let mut guard = slot.lock();
                    guard.begin_transaction(engine.tick());
                    let gsn = guard.draw(Gsn::ZERO);
                    guard.append(&header(CHANGE, 0, 1, gsn), &[&redo], &[]);
                    let ts = engine.tick();
                    let gsn = guard.draw(Gsn::ZERO);
                    guard.append(&header(COMMIT, 0, 0, gsn), &[&ts.0.to_le_bytes()], &[]);
                    guard.end_transaction();
                    drop(guard);
                    if i % 3 > 0 {
                        engine.log.harden(ts).unwrap();
                        hardened.lock().unwrap().push((ts, gsn));
                    }
                }
            });
        }
    });
    let (found, reader) = everything(&*dir);
    let end = reader.ends()[0];
    let commits: std::collections::BTreeSet<_> = found[&1]
        .slots
        .values()
        .flatten()
        .filter(|r| r.header.kind == COMMIT && r.header.gsn <= end.m)
        .map(|r| Timestamp(u64::from_le_bytes(r.redo[..].try_into().unwrap())))
        .collect();
    for (ts, _) in hardened.into_inner().unwrap() {
        assert!(ts < end.c && commits.contains(&ts));
    }
}

#[test]
fn writer_with_a_full_ring_goes_on_when_enough_is_written_and_before_it_is_durable() {
    let config = LogConfig {
        segment_bytes: 1 << 20,
        log_bytes_max: 4 << 20,
        ..small()
    };
    let engine = open(memory(), config, LogStart::first()).unwrap();
    let (log, slot) = (&engine.log, engine.log.slot(A));
    let redo = vec![7; 6 << 10];
    let record = redo.len() + RECORD_HEADER_BYTES;
    let append = || {
        slot.reserve(record).unwrap();
        let mut guard = slot.lock();
        let gsn = guard.draw(Gsn::ZERO);
        guard.append(&header(CHANGE, 0, 1, gsn), &[&redo], &[]);
        gsn
    };
    let points = TestPoints::new();
    let visited = points.pause("round: slots visited");
    let written = points.pause("round: written");
    let first = append();
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| {
            let _entered = points.enter();
            log.flush_round().unwrap();
        });
        // The round has the first record. Behind it the ring, which has grown four times, is filled.
        visited.wait_reached();
        for _ in 1..4 * small().slot_buffer_bytes / record {
            append();
        }
        let waited = log.statistics().ring_waits;
        let (done, is_done) = std::sync::mpsc::channel();
        scope.spawn(move || done.send(append()).unwrap());
        while log.statistics().ring_waits == waited {
            std::thread::yield_now();
        }
        visited.release();
        written.wait_reached();
        // So long only if it is wrong.
        let went_on = is_done.recv_timeout(std::time::Duration::from_secs(60));
        let durable = log.durable_gsn();
        written.release();
        assert_eq!(waited, 0, "the ring had room until it was full");
        went_on.expect("the writer waits for the sync, or for what the round does not have");
        assert!(durable < first, "what was not synced counts as durable");
        leader.join().unwrap();
        assert!(log.durable_gsn() >= first);
    });
}

#[test]
fn reservation_that_no_segment_takes_is_refused() {
    let engine = open(memory(), small(), LogStart::first()).unwrap();
    let refused = engine.log.slot(A).reserve(1 << 20);
    assert!(matches!(refused, Err(StorageError::MemoryLimit { .. })));
    // Larger than the ring is fine: the ring grows.
    engine.log.slot(A).reserve(16 << 10).unwrap();
    engine.log.slot(A).reserve(10).unwrap();
}

#[test]
fn regress_round_that_panics_leaves_nobody_waiting() {
    let panics = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let panicking = panics.clone();
    let clock = Arc::new(move || {
        assert!(
            !panicking.load(std::sync::atomic::Ordering::Relaxed),
            "planned"
        );
        vellum_base::Timestamp(1)
    });
    let dir = Arc::new(MemoryDirectory::new());
    let log = Log::create(dir, small(), clock, LogStart::first()).unwrap();
    log.flush_round().unwrap();
    panics.store(true, std::sync::atomic::Ordering::Relaxed);
    let round = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| log.flush_round()));
    assert!(round.is_err());
    panics.store(false, std::sync::atomic::Ordering::Relaxed);
    let next = log.flush_round();
    assert!(matches!(next, Err(StorageError::Poisoned)), "{next:?}");
}
