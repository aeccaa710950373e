//! The log is bounded: recycling, back-pressure, room for rollback.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

mod harness;

use std::sync::Arc;
use std::sync::Mutex;

use harness::*;
use vellum_base::{Gsn, SlotId, StorageError};
use vellum_io::{Call, Directory, Fault, MemoryDirectory, PowerCut, SimulatedDirectory};
use vellum_wal::*;

const A: SlotId = SlotId(0);
const B: SlotId = SlotId(1);

#[test]
fn released_segments_are_used_again_and_the_log_stays_bounded() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    let mut known = engine.log.known_position();
    for i in 0..400 {
        let slot = SlotId(i % 4);
        let stamp = engine.begin(slot);
        engine.change(slot, stamp, 900).unwrap();
        let ts = engine.commit(slot).unwrap();
        engine.harden(ts).unwrap();
        if i % 7 == 0 && i < 395 {
            known = engine.log.known_position();
            engine.log.release_before(known.0).unwrap();
        }
    }
    assert!(engine.log.oldest_segment() > 20);
    assert!(dir.list("log").unwrap().len() <= 3);
    // Recovery from the last checkpoint finds what came after it, under any cut.
    for cut in PowerCut::KINDS {
        let (found, reader) = recover(&dir.power_cut(7, cut), known.0, known.1).unwrap();
        let end = reader.ends()[0];
        assert!(end.m >= engine.model.durable && end.last_round > known.0.round);
        for (slot, records) in &found[&1].slots {
            let all = &engine.model.slots[slot];
            assert_eq!(records[..], all[all.len() - records.len()..]);
        }
    }
    // A position whose segment was recycled is damage, not an empty log.
    let gone = LogPosition {
        segment: 2,
        offset: 4096,
        round: 2,
    };
    assert!(matches!(
        recover(&dir.power_cut(7, PowerCut::CLEAN), gone, Verdict::default()),
        Err(StorageError::Corruption { .. })
    ));
}

/// Fills the log with one transaction until a reservation fails.
fn fill(engine: &mut Engine) -> (vellum_base::Timestamp, Vec<Gsn>) {
    let stamp = engine.begin(A);
    let mut gsns = Vec::new();
    loop {
        match engine.change(A, stamp, 700) {
            Ok(gsn) => gsns.push(gsn),
            Err(StorageError::OutOfSpace { .. }) => return (stamp, gsns),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn full_log_refuses_the_writer_and_has_room_to_roll_everything_back() {
    let mut engine = open(Arc::new(MemoryDirectory::new()), small(), LogStart::first()).unwrap();
    let (stamp, gsns) = fill(&mut engine);
    assert!(gsns.len() > 50, "{}", gsns.len());
    for gsn in gsns.iter().rev() {
        // As large as the change.
        engine.compensate_with(A, stamp, *gsn, 690).unwrap();
        // The dearest way: a round for each.
        if gsn.0 % 16 == 0 {
            engine.log.flush_round().unwrap();
        }
    }
    engine.log.slot(A).lock().end_transaction();
    engine.log.flush_round().unwrap();
    // Nothing can be kept from being released now.
    let position = engine.log.position();
    engine.log.release_before(position).unwrap();
    let stamp = engine.begin(B);
    engine.change(B, stamp, 700).unwrap();
}

#[test]
fn unbounded_log_goes_on_and_is_cut_back_by_the_next_release() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    let (stamp, _) = fill(&mut engine);
    let bounded = dir.list("log").unwrap().len();
    engine.log.set_unbounded(true);
    for _ in 0..200 {
        engine.change(A, stamp, 700).unwrap();
    }
    engine.commit(A).unwrap();
    engine.log.flush_round().unwrap();
    assert!(dir.list("log").unwrap().len() > bounded);
    engine.log.set_unbounded(false);
    let position = engine.log.position();
    engine.log.release_before(position).unwrap();
    assert!(dir.list("log").unwrap().len() <= bounded);
}

/// Symptom: files of the log stayed on the disk, neither used nor removed, until the next start. Cause: the first that could not be removed ended the
/// release, and the others were known to nobody. Guard: each is tried, and tried again.
#[test]
fn regress_surplus_files_that_cannot_be_removed_go_with_the_next_release() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    let (stamp, _) = fill(&mut engine);
    let bounded = dir.list("log").unwrap().len();
    engine.log.set_unbounded(true);
    for _ in 0..400 {
        engine.change(A, stamp, 700).unwrap();
    }
    engine.commit(A).unwrap();
    engine.log.flush_round().unwrap();
    let many = dir.list("log").unwrap().len();
    assert!(many > bounded + 3, "{many} of {bounded}");
    engine.log.set_unbounded(false);
    let position = engine.log.position();
    dir.fail(Fault::nth(Call::Remove, 0).on("log/"));
    let released = engine.log.release_before(position);
    assert!(matches!(released, Err(StorageError::Io { .. })));
    assert_eq!(engine.log.oldest_segment(), position.segment);
    dir.clear_faults();
    assert!(dir.list("log").unwrap().len() <= bounded + 1, "one is left");
    engine.log.release_before(position).unwrap();
    assert!(dir.list("log").unwrap().len() <= bounded);
}

#[test]
fn full_disk_bounds_the_log_and_rollback_still_fits() {
    let dir = SimulatedDirectory::new();
    dir.set_space_limit(Some(5 * (64 << 10)));
    let config = LogConfig {
        log_bytes_max: 64 << 20,
        ..small()
    };
    let mut engine = open(Arc::new(dir.clone()), config, LogStart::first()).unwrap();
    let (stamp, gsns) = fill(&mut engine);
    for gsn in gsns.iter().rev() {
        // As large as the change.
        engine.compensate_with(A, stamp, *gsn, 690).unwrap();
    }
    engine.log.slot(A).lock().end_transaction();
    engine.log.flush_round().unwrap();
    // Space comes back: writers go on without a restart.
    dir.set_space_limit(None);
    let stamp = engine.begin(B);
    for _ in 0..100 {
        engine.change(B, stamp, 700).unwrap();
    }
}

/// Three files are all that the disk has room for, where the settings would have a thousand: each change is released behind the next.
#[test]
fn regress_log_of_three_files_on_a_full_disk_goes_round() {
    struct Release(std::sync::OnceLock<Arc<Engine>>);
    impl LogSpace for Release {
        fn make_space(&self) -> vellum_base::Result<bool> {
            let log = &self.0.get().unwrap().log;
            log.flush_round()?;
            Ok(log.release_before(log.position())? > 0)
        }
    }
    let dir = SimulatedDirectory::new();
    let config = LogConfig {
        log_bytes_max: 64 << 20,
        ..small()
    };
    let hook = Arc::new(Release(std::sync::OnceLock::new()));
    let engine = open(Arc::new(dir.clone()), config, LogStart::first()).unwrap();
    let engine = Arc::new(engine);
    assert!(hook.0.set(engine.clone()).is_ok());
    engine.log.set_log_space(hook.clone());
    // One more than the two that a log begins with.
    dir.set_space_limit(Some(dir.used_space() + small().segment_bytes));
    for i in 0..600_u16 {
        let slot = engine.log.slot(SlotId(i % 4));
        slot.reserve(2000)
            .unwrap_or_else(|error| panic!("{i}: {error}"));
        let mut guard = slot.lock();
        let gsn = guard.draw(Gsn::ZERO);
        guard.append(&header(CHANGE, 0, 1, gsn), &[&[7; 1500]], &[]);
    }
    assert_eq!(dir.list("log").unwrap().len(), 3);
    // With room it has as many as it wants again.
    dir.set_space_limit(None);
    let mut alone = Arc::into_inner({
        drop(hook);
        engine.log.set_log_space(Arc::new(Nothing));
        engine
    })
    .expect("nobody else has it");
    fill(&mut alone);
    assert!(dir.list("log").unwrap().len() > 100);
}

/// Symptom: a database that could not be opened until others made room. Cause: with as little left free as in a log that is small by its settings, a checkpoint took the last free
/// file, and was killed before it released one.
#[test]
fn regress_log_of_three_files_on_a_full_disk_is_opened_after_a_crash_in_a_checkpoint() {
    for records in [0, 4, 8, 40] {
        let dir = SimulatedDirectory::new();
        let config = LogConfig {
            log_bytes_max: 64 << 20,
            ..small()
        };
        let mut engine = open(Arc::new(dir.clone()), config.clone(), LogStart::first()).unwrap();
        let known = engine.log.known_position();
        dir.set_space_limit(Some(dir.used_space() + small().segment_bytes));
        loop {
            let stamp = engine.begin(A);
            match engine.change(A, stamp, 200) {
                Ok(_) => {}
                Err(StorageError::OutOfSpace { .. }) => break,
                Err(error) => panic!("{error}"),
            }
            let Ok(timestamp) = engine.commit(A) else {
                break;
            };
            engine.harden(timestamp).unwrap();
        }
        for _ in 0..records {
            let slot = engine.log.slot(B);
            if slot.reserve_for(1000, Purpose::Checkpoint).is_err() {
                break;
            }
            let mut guard = slot.lock();
            let gsn = guard.draw(Gsn::ZERO);
            guard.append(&header(CHANGE, 0, 1, gsn), &[&[7; 900]], &[]);
            drop(guard);
            engine.log.flush_round().unwrap();
        }
        drop(engine);
        let cut = dir.power_cut(7, PowerCut::CLEAN);
        cut.set_space_limit(Some(cut.used_space()));
        let (_, reader) = recover(&cut, known.0, known.1).unwrap();
        let opened = open(Arc::new(cut), config, reader.start_after(1));
        assert!(opened.is_ok(), "{records} records: {:?}", opened.err());
    }
}

/// Space that nobody can make.
struct Nothing;

impl LogSpace for Nothing {
    fn make_space(&self) -> vellum_base::Result<bool> {
        Ok(false)
    }
}

#[test]
fn another_writer_waits_for_the_hook_that_recycles() {
    struct Hook(Mutex<u32>, std::sync::OnceLock<Arc<Engine>>);
    impl LogSpace for Hook {
        fn make_space(&self) -> vellum_base::Result<bool> {
            *self.0.lock().unwrap() += 1;
            let log = &self.1.get().unwrap().log;
            // The log is full: the hook's own reservation is refused, not deadlocked.
            let slot = log.slot(SlotId(7));
            assert!(matches!(
                slot.reserve(9000),
                Err(StorageError::OutOfSpace { .. })
            ));
            slot.reserve_for(500, Purpose::Checkpoint)?;
            log.flush_round()?;
            Ok(log.release_before(log.position())? > 0)
        }
    }
    let hook = Arc::new(Hook(Mutex::new(0), std::sync::OnceLock::new()));
    let engine = open(Arc::new(MemoryDirectory::new()), small(), LogStart::first()).unwrap();
    let engine = Arc::new(engine);
    assert!(hook.1.set(engine.clone()).is_ok());
    engine.log.set_log_space(hook.clone());
    for i in 0..600_u16 {
        let slot = engine.log.slot(SlotId(i % 4));
        slot.reserve(2000).unwrap();
        let mut guard = slot.lock();
        let gsn = guard.draw(Gsn::ZERO);
        guard.append(&header(CHANGE, 0, 1, gsn), &[&[7; 1500]], &[]);
    }
    assert!(*hook.0.lock().unwrap() > 3);
    assert!(engine.log.statistics().space_waits > 3);
}

#[test]
fn start_that_would_use_a_segment_number_twice_is_refused() {
    let dir: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    open(dir.clone(), small(), LogStart::first()).unwrap();
    let again = open(dir, small(), LogStart::first()).err();
    assert!(
        matches!(again, Some(StorageError::Corruption { .. })),
        "{again:?}"
    );
}

#[test]
fn live_transaction_keeps_its_segments_until_it_is_carried_forward() {
    let config = LogConfig {
        log_bytes_max: 1 << 20,
        ..small()
    };
    let mut engine = open(Arc::new(MemoryDirectory::new()), config, LogStart::first()).unwrap();
    let stamp = engine.begin(A);
    let mut gsns = Vec::new();
    for i in 0..300 {
        gsns.push(engine.change(A, stamp, 700).unwrap());
        if i % 5 == 0 {
            engine.log.flush_round().unwrap();
        }
        if i == 150 {
            for _ in 0..20 {
                let gsn = gsns.pop().unwrap();
                engine.compensate(A, stamp, gsn).unwrap();
            }
        }
    }
    engine.log.flush_round().unwrap();
    let position = engine.log.position();
    assert!(position.segment > 3);
    assert_eq!(engine.log.release_before(position).unwrap(), 0);
    assert_eq!(engine.log.slots_before(position), [A]);
    // In two steps: first up to segment 3, then the rest.
    let mut carried = Vec::new();
    for segment in [3, position.segment] {
        let before = engine.log.pressure();
        let mut carry = engine
            .log
            .slot(A)
            .carry(segment)
            .expect("something to carry");
        assert_eq!(carry.stamp, stamp);
        let mut step = Vec::new();
        while let Some(record) = carry.records.next_record().unwrap() {
            step.push(record.header.gsn);
        }
        step.reverse();
        carried.extend(step);
        assert!(engine.log.slot(A).lock().set_carried(stamp, carry.to));
        let to = LogPosition {
            segment,
            ..position
        };
        assert!(engine.log.release_before(to).unwrap() > 0);
        assert!(engine.log.pressure() < before);
        assert_eq!(engine.log.oldest_segment(), segment);
    }
    // Carried and what is left together are exactly what is alive.
    let slot = engine.log.slot(A);
    let (end, low) = {
        let guard = slot.lock();
        (guard.end(), guard.carried())
    };
    let mut left = Uncompensated::new(slot.backward(end, low), stamp);
    let mut rest = Vec::new();
    while let Some(record) = left.next_record().unwrap() {
        rest.push(record.header.gsn);
    }
    rest.reverse();
    carried.extend(rest);
    assert_eq!(carried, gsns);
}

#[test]
fn incarnation_after_a_full_log_starts_and_keeps_what_recovery_needs() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    fill(&mut engine);
    engine.log.flush_round().unwrap();
    let mut dir = dir.power_cut(3, PowerCut::CLEAN);
    for _ in 0..5 {
        let (found, reader) = recover(&dir, LogPosition::default(), Verdict::default()).unwrap();
        assert!(found[&1].rounds > 0);
        let start = reader.start_after(1);
        open(Arc::new(dir.clone()), small(), start).unwrap();
        dir = dir.power_cut(3, PowerCut::CLEAN);
    }
    // With nothing left to keep, the surplus goes.
    let (_, reader) = recover(&dir, LogPosition::default(), Verdict::default()).unwrap();
    let engine = open(Arc::new(dir.clone()), small(), reader.start_after(1)).unwrap();
    engine.log.release_before(engine.log.position()).unwrap();
    assert!(dir.list("log").unwrap().len() <= 3, "{:?}", dir.list("log"));
}

/// A flush whose first write fails, and the same again.
fn flush_at_the_second_attempt(dir: &SimulatedDirectory, engine: &Engine) {
    dir.fail(Fault::nth(Call::Write, 0).on("log/"));
    assert!(engine.log.flush_round().is_err());
    dir.clear_faults();
    engine.log.flush_round().unwrap();
}

#[test]
fn regress_rounds_that_failed_keep_no_log_space() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    for _ in 0..100 {
        let stamp = engine.begin(A);
        engine.change(A, stamp, 700).unwrap();
        engine.commit(A).unwrap();
        flush_at_the_second_attempt(&dir, &engine);
        engine.log.flush_round().unwrap();
        engine.log.release_before(engine.log.position()).unwrap();
    }
}

#[test]
fn regress_round_that_failed_keeps_what_is_set_aside_for_undo_with_its_records() {
    let mut freed = Vec::new();
    for fails in [false, true] {
        let dir = SimulatedDirectory::new();
        let config = LogConfig {
            log_bytes_max: 1 << 20,
            ..small()
        };
        let mut engine = open(Arc::new(dir.clone()), config, LogStart::first()).unwrap();
        let stamp = engine.begin(A);
        for _ in 0..20 {
            for _ in 0..8 {
                engine.change(A, stamp, 900).unwrap();
            }
            if fails {
                flush_at_the_second_attempt(&dir, &engine);
            } else {
                engine.log.flush_round().unwrap();
            }
        }
        let position = engine.log.position();
        let before = engine.log.pressure();
        let carry = engine.log.slot(A).carry(position.segment).unwrap();
        assert!(engine.log.slot(A).lock().set_carried(stamp, carry.to));
        engine.log.flush_round().unwrap();
        freed.push(before - engine.log.pressure());
    }
    // What is set aside for what was carried is free again, also where the round was written twice.
    assert!(freed[0] > 5, "{freed:?}");
    assert!(freed[0].abs_diff(freed[1]) <= 1, "{freed:?}");
}

#[test]
fn regress_round_that_failed_says_whose_records_it_starts_with() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    let first = engine.begin(A);
    engine.change(A, first, 100).unwrap();
    engine.log.flush_round().unwrap();
    engine.change(A, first, 100).unwrap();
    engine.commit(A).unwrap();
    let second = engine.begin(A);
    engine.change(A, second, 100).unwrap();
    flush_at_the_second_attempt(&dir, &engine);
    let (from, known) = (LogPosition::default(), Verdict::default());
    let mut reader = LogReader::open(&dir.power_cut(1, PowerCut::CLEAN), from, known).unwrap();
    let mut stamps = Vec::new();
    while let Some(round) = reader.next_round().unwrap() {
        stamps.extend(round.chunks.iter().map(|chunk| chunk.stamp));
    }
    assert_eq!(stamps, [vellum_base::Timestamp::ZERO, first]);
}

#[test]
fn regress_slot_whose_reservation_is_withdrawn_comes_to_rest() {
    let engine = open(Arc::new(MemoryDirectory::new()), small(), LogStart::first()).unwrap();
    let before = engine.log.pressure();
    let slot = engine.log.slot(B);
    slot.reserve_for(10_000, Purpose::Optional).unwrap();
    for _ in 0..3 {
        engine.log.flush_round().unwrap();
    }
    assert!(engine.log.pressure() > before, "what was promised stays");
    slot.withdraw();
    engine.log.flush_round().unwrap();
    assert_eq!(engine.log.pressure(), before);
    // It comes back like any other.
    slot.reserve_for(10_000, Purpose::Optional).unwrap();
}

#[test]
fn regress_names_of_files_that_could_not_be_made_are_used_again() {
    let dir = SimulatedDirectory::new();
    dir.set_space_limit(Some(3 * (64 << 10)));
    let config = LogConfig {
        log_bytes_max: 1 << 20,
        ..small()
    };
    let mut engine = open(Arc::new(dir.clone()), config, LogStart::first()).unwrap();
    let (stamp, _) = fill(&mut engine);
    for _ in 0..20 {
        assert!(engine.change(A, stamp, 700).is_err());
    }
    dir.set_space_limit(None);
    for _ in 0..100 {
        engine.change(A, stamp, 700).unwrap();
    }
    let names = dir.list("log").unwrap();
    let highest = names
        .iter()
        .map(|name| name.parse::<usize>().unwrap())
        .max();
    assert!(highest < Some(names.len()), "{names:?}");
}

#[test]
fn regress_name_with_a_sign_is_no_name_of_a_log_file() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    let stamp = engine.begin(A);
    engine.change(A, stamp, 100).unwrap();
    engine.log.flush_round().unwrap();
    let dir = dir.power_cut(1, PowerCut::CLEAN);
    dir.open("log/+0000001", vellum_io::OpenOptions::create())
        .unwrap();
    let before = dir.list("log").unwrap();
    let (found, reader) = recover(&dir, LogPosition::default(), Verdict::default()).unwrap();
    assert_eq!(found[&1].slots[&A].len(), 1);
    open(Arc::new(dir.clone()), small(), reader.start_after(1)).unwrap();
    let after = dir.list("log").unwrap();
    assert!(
        before.iter().all(|name| after.contains(name)),
        "{before:?} {after:?}"
    );
}

#[test]
fn buffers_of_many_writers_stay_within_their_memory_and_what_they_hold_is_kept() {
    const FIRST: u64 = 64 << 10;
    const SLOTS: u16 = 400;
    let dir = SimulatedDirectory::new();
    let config = LogConfig {
        slots_max: SLOTS,
        slot_buffer_bytes: FIRST as usize,
        segment_bytes: 4 << 20,
        log_bytes_max: 64 << 20,
    };
    let mut engine = open(Arc::new(dir.clone()), config, LogStart::first()).unwrap();
    let rings = |engine: &Engine| engine.log.statistics().ring_bytes;
    // One alone gets a larger one before it waits.
    let stamp = engine.begin(A);
    for _ in 0..(7 * FIRST / 2 / 2000) {
        engine.change(A, stamp, 1900).unwrap();
    }
    assert_eq!(rings(&engine), 4 * FIRST);
    assert_eq!(engine.log.statistics().ring_waits, 0);
    engine.commit(A).unwrap();
    engine.log.flush_round().unwrap();
    engine.log.flush_round().unwrap();
    assert_eq!(rings(&engine), FIRST, "at rest");
    // All at once.
    let stamps: Vec<_> = (0..SLOTS).map(|slot| engine.begin(SlotId(slot))).collect();
    for round in 0..20 {
        for (slot, stamp) in (0..SLOTS).zip(&stamps) {
            engine.change(SlotId(slot), *stamp, 900).unwrap();
            let most = 128 * FIRST + u64::from(SLOTS - 128) * (16 << 10);
            let now = rings(&engine);
            assert!(now <= most, "round {round}, slot {slot}: {now} of {most}");
        }
    }
    // A small one waits for rounds, and gets no more.
    let before = (rings(&engine), engine.log.statistics().ring_waits);
    for _ in 0..40 {
        engine
            .change(SlotId(SLOTS - 1), stamps[usize::from(SLOTS - 1)], 900)
            .unwrap();
    }
    let after = (rings(&engine), engine.log.statistics().ring_waits);
    assert!(after.0 == before.0 && after.1 > before.1, "{after:?}");
    for slot in 0..SLOTS {
        engine.commit(SlotId(slot)).unwrap();
    }
    engine.log.flush_round().unwrap();
    engine.log.flush_round().unwrap();
    let resting = rings(&engine);
    assert!(resting <= 64 * FIRST, "{resting}");
    // Who comes back to a slot without a ring gets one.
    for slot in 0..SLOTS {
        let stamp = engine.begin(SlotId(slot));
        engine.change(SlotId(slot), stamp, 900).unwrap();
        engine.commit(SlotId(slot)).unwrap();
    }
    engine.log.flush_round().unwrap();
    let start = LogPosition::default();
    let (found, _) = recover(
        &dir.power_cut(1, PowerCut::CLEAN),
        start,
        Verdict::default(),
    )
    .unwrap();
    for (slot, records) in &engine.model.slots {
        assert_eq!(&found[&1].slots[slot], records);
    }
}
