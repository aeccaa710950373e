//! Power cuts at every call, bit flips, failing disks.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

mod harness;

use std::sync::Arc;

use harness::*;
use vellum_base::random::Random;
use vellum_base::{Gsn, SlotId, StorageError};
use vellum_io::{
    Call, Directory, Fault, FaultError, OpenOptions, PowerCut, SimulatedDirectory, Torn,
};
use vellum_wal::*;

fn all(dir: &dyn Directory) -> vellum_base::Result<(Recoveries, LogReader)> {
    recover(dir, LogPosition::default(), Verdict::default())
}

type Recoveries = std::collections::BTreeMap<u64, Recovered>;

/// Random transactions until the disk fails or the steps are done.
fn work(engine: &mut Engine, random: &mut Random, steps: u32) -> vellum_base::Result<()> {
    for slot in 0..8 {
        let mut guard = engine.log.slot(SlotId(slot)).lock();
        if guard.live_transaction().is_some() {
            guard.end_transaction();
        }
    }
    let mut live: Vec<Option<_>> = vec![None; 4];
    for _ in 0..steps {
        let at = random.below(4) as usize;
        let slot = SlotId(at as u16 * 2);
        let stamp = match live[at] {
            Some(stamp) => stamp,
            None => *live[at].insert(engine.begin(slot)),
        };
        match random.below(8) {
            0..5 => {
                let most = if random.chance(1, 9) { 5000 } else { 200 };
                let bytes = random.below(most) as usize;
                let gsn = engine.change(slot, stamp, bytes)?;
                if random.chance(1, 3) {
                    engine.page_gsn = gsn;
                }
            }
            5..7 => {
                let ts = engine.commit(slot)?;
                live[at] = None;
                if random.chance(1, 2) {
                    engine.harden(ts)?;
                }
            }
            _ => {
                engine.log.flush_round()?;
                engine.model.durable = engine.log.durable_gsn();
            }
        }
    }
    Ok(())
}

fn none() -> Recovered {
    Recovered::default()
}

fn config() -> LogConfig {
    // Small segments: rounds cross them often.
    LogConfig {
        segment_bytes: 32 << 10,
        log_bytes_max: 40 * (32 << 10),
        ..small()
    }
}

#[test]
fn crash_at_every_call_leaves_a_prefix_with_everything_hardened() {
    let mut seed = seed();
    for _ in 0..4 {
        crash_at_every_call(seed, 250);
        seed = seed.wrapping_add(1);
    }
}

fn crash_at_every_call(seed: u64, steps: u32) {
    let calls = {
        let dir = SimulatedDirectory::new();
        let mut engine = open(Arc::new(dir.clone()), config(), LogStart::first()).unwrap();
        work(&mut engine, &mut Random::new(seed), steps).unwrap();
        dir.mutating_calls()
    };
    assert!(calls > 40);
    for call in 0..calls {
        let dir = SimulatedDirectory::new();
        dir.cut_after(call);
        let mut model = Model::default();
        if let Ok(mut engine) = open(Arc::new(dir.clone()), config(), LogStart::first()) {
            let result = work(&mut engine, &mut Random::new(seed), steps);
            assert!(result.is_err(), "the cut at call {call} went unnoticed");
            model = engine.model;
        }
        for (kind, cut) in PowerCut::KINDS.into_iter().enumerate() {
            let after = dir.power_cut(seed ^ call, cut);
            let (mut found, reader) =
                all(&after).unwrap_or_else(|e| panic!("seed {seed} call {call} cut {kind}: {e}"));
            let Some(&verdict) = reader.ends().first() else {
                assert!(model.hardened.is_empty());
                continue;
            };
            model.check(&found.remove(&1).unwrap_or_else(none), verdict);
        }
    }
}

#[test]
fn crash_twice_judges_each_incarnation_by_its_own_end_for_ever() {
    let seed = seed();
    let mut random = Random::new(seed);
    for turn in 0..60 {
        let mut dir = SimulatedDirectory::new();
        let mut models = Vec::new();
        let mut verdicts: Vec<Verdict> = Vec::new();
        let mut start = LogStart::first();
        for incarnation in 1..=3_u64 {
            dir.cut_after(random.between(3, 60));
            if let Ok(mut engine) = open(Arc::new(dir.clone()), config(), start) {
                let steps = random.between(1, 80) as u32;
                let _ = work(&mut engine, &mut random, steps);
                models.push((start.incarnation, engine.model));
            }
            let kind = random.below(8) as usize;
            dir = dir.power_cut(seed ^ incarnation, PowerCut::KINDS[kind]);
            let (mut found, reader) = all(&dir).unwrap_or_else(|e| panic!("turn {turn}: {e}"));
            for (number, model) in &models {
                let end = reader.ends().iter().find(|end| end.incarnation == *number);
                match end {
                    Some(end) => model.check(&found.remove(number).unwrap_or_else(none), *end),
                    None => assert!(model.hardened.is_empty()),
                }
            }
            // What was once decided stays.
            for (known, now) in verdicts.iter().zip(reader.ends()) {
                assert_eq!(known, now);
            }
            let next = reader.start_after(1);
            if let Some(end) = reader.ends().last()
                && end.incarnation == start.incarnation
            {
                // Durable by the next incarnation's first header only.
                verdicts = reader.ends()[..reader.ends().len() - 1].to_vec();
            }
            start = next;
        }
    }
}

#[test]
fn flipped_bit_in_a_durable_round_is_corruption_and_in_the_last_one_the_end() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    for _ in 0..5 {
        let stamp = engine.begin(SlotId(1));
        engine.change(SlotId(1), stamp, 200).unwrap();
        let ts = engine.commit(SlotId(1)).unwrap();
        engine.harden(ts).unwrap();
    }
    let place = engine.log.position();
    assert_eq!((place.segment, place.offset, place.round), (1, 6 * 4096, 6));
    // The current segment is the only one with rounds in it: find its file.
    let name = dir
        .list("log")
        .unwrap()
        .into_iter()
        .map(|name| format!("log/{name}"))
        .find(|name| {
            dir.read_all(name).unwrap()[4096..8192]
                .iter()
                .any(|b| *b != 0)
        })
        .unwrap();
    // Chunk header, two records, (padding to 8,) trailer.
    let end = 80 + 244 + 40;
    let used = |at: &u64| at % 4096 < end || (368..432).contains(&(at % 4096));
    for offset in (4096..5 * 4096).step_by(13).filter(used) {
        let copy = dir.power_cut(1, PowerCut::CLEAN);
        copy.flip_bit(&name, offset, (offset % 8) as u8).unwrap();
        let error = all(&copy).err();
        assert!(
            matches!(error, Some(StorageError::Corruption { .. })),
            "{offset}: {error:?}"
        );
    }
    let copy = dir.power_cut(1, PowerCut::CLEAN);
    copy.flip_bit(&name, 5 * 4096 + 100, 3).unwrap();
    let (found, reader) = all(&copy).unwrap();
    assert_eq!((found[&1].rounds, reader.ends()[0].last_round), (4, 4));
    // Once an incarnation has named the end, that is damage, too.
    let next = reader.start_after(1);
    let (_, whole) = all(&dir.power_cut(1, PowerCut::CLEAN)).unwrap();
    let named = dir.power_cut(1, PowerCut::CLEAN);
    open(Arc::new(named.clone()), small(), whole.start_after(1)).unwrap();
    named.flip_bit(&name, 5 * 4096 + 100, 3).unwrap();
    assert!(matches!(all(&named), Err(StorageError::Corruption { .. })));
    // And what a recovery did not see does not come back.
    let named = dir.power_cut(1, PowerCut::CLEAN);
    open(Arc::new(named.clone()), small(), next).unwrap();
    assert_eq!(all(&named).unwrap().0[&1].rounds, 4);
}

#[test]
fn regress_damaged_header_of_the_newest_segment_is_corruption() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), config(), LogStart::first()).unwrap();
    while engine.log.position().segment < 3 {
        let stamp = engine.begin(SlotId(1));
        engine.change(SlotId(1), stamp, 900).unwrap();
        let ts = engine.commit(SlotId(1)).unwrap();
        engine.harden(ts).unwrap();
    }
    let mut seen = 0;
    for name in dir.list("log").unwrap() {
        let name = format!("log/{name}");
        if dir.read_all(&name).unwrap()[0] == 0 {
            continue;
        }
        for offset in [0, 9, 17, 40, 100] {
            let copy = dir.power_cut(1, PowerCut::CLEAN);
            copy.flip_bit(&name, offset, 1).unwrap();
            let error = recover(
                &copy,
                LogPosition {
                    segment: 1,
                    offset: 4096,
                    round: 1,
                },
                Verdict::default(),
            )
            .err();
            assert!(
                matches!(
                    error,
                    Some(StorageError::Corruption { .. } | StorageError::ForeignFormat { .. })
                ),
                "{name} {offset}: {error:?}"
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[test]
fn regress_segment_that_was_cut_is_corruption_and_not_the_end_of_the_log() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), config(), LogStart::first()).unwrap();
    while engine.log.position().segment < 3 {
        let stamp = engine.begin(SlotId(1));
        engine.change(SlotId(1), stamp, 900).unwrap();
        let ts = engine.commit(SlotId(1)).unwrap();
        engine.harden(ts).unwrap();
    }
    let mut seen = 0;
    for name in dir.list("log").unwrap() {
        let name = format!("log/{name}");
        let bytes = dir.read_all(&name).unwrap();
        if bytes[0] == 0 {
            continue;
        }
        // In the middle of a round, between rounds, and behind all of them.
        for length in [5000, 2 * 4096, bytes.len() as u64 - 1] {
            let copy = dir.power_cut(1, PowerCut::CLEAN);
            let file = copy.open(&name, OpenOptions::existing()).unwrap();
            file.set_len(length).unwrap();
            let error = all(&copy).err();
            assert!(
                matches!(error, Some(StorageError::Corruption { what, .. }) if what.contains("length")),
                "{name} {length}: {error:?}"
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[test]
fn failed_write_is_reported_and_the_same_round_succeeds_later() {
    let seed = seed();
    for turn in 0..80 {
        let mut random = Random::new(seed ^ turn);
        let dir = SimulatedDirectory::new();
        let mut engine = open(Arc::new(dir.clone()), config(), LogStart::first()).unwrap();
        let fault = if turn % 2 == 0 {
            FaultError::Eio
        } else {
            FaultError::Short
        };
        dir.fail(
            Fault::nth(Call::Write, random.below(40))
                .with(fault)
                .on("log/"),
        );
        while let Ok(()) = work(&mut engine, &mut random, 20) {
            if dir.counts().of(Call::Write) > 120 || engine.log.pressure() > 40 {
                break;
            }
        }
        dir.clear_faults();
        let mut guard = engine.log.slot(SlotId(6)).lock();
        if guard.live_transaction().is_some() {
            guard.end_transaction();
        }
        drop(guard);
        let stamp = engine.begin(SlotId(6));
        engine.change(SlotId(6), stamp, 100).unwrap();
        let ts = engine.commit(SlotId(6)).unwrap();
        engine.harden(ts).unwrap();
        for cut in [PowerCut::CLEAN, PowerCut::LUCKY, PowerCut::HARSH] {
            let (found, reader) = all(&dir.power_cut(seed, cut)).unwrap();
            engine.model.check(&found[&1], reader.ends()[0]);
        }
    }
}

/// After a failed flush every round of the incarnation carries its attempt, also the one that starts a segment in
/// the middle of a flush, where reading may have to start.
#[test]
fn regress_log_is_read_from_a_segment_that_a_later_flush_ran_into() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), config(), LogStart::first()).unwrap();
    // Free segments, so that nothing is flushed to make space.
    while engine.log.position().segment < 10 {
        let stamp = engine.begin(SlotId(1));
        engine.change(SlotId(1), stamp, 900).unwrap();
        engine.commit(SlotId(1)).unwrap();
        engine.log.flush_round().unwrap();
    }
    let begin = engine.log.position();
    engine.log.release_before(begin).unwrap();
    let stamp = engine.begin(SlotId(1));
    engine.change(SlotId(1), stamp, 100).unwrap();
    dir.fail(Fault::nth(Call::Write, 0).on("log/"));
    assert!(engine.log.flush_round().is_err());
    let ts = engine.commit(SlotId(1)).unwrap();
    engine.harden(ts).unwrap();
    // Less than half a ring each, so that nothing is flushed before all of it is.
    for slot in [2, 3, 4, 5, 7] {
        let stamp = engine.begin(SlotId(slot));
        for _ in 0..5 {
            engine.change(SlotId(slot), stamp, 1500).unwrap();
        }
    }
    engine.log.flush_round().unwrap();
    let stamp = engine.begin(SlotId(6));
    engine.change(SlotId(6), stamp, 100).unwrap();
    let ts = engine.commit(SlotId(6)).unwrap();
    engine.harden(ts).unwrap();
    let end = engine.log.position();
    let ran_over = begin.segment < end.segment && end.round > begin.round + 3;
    assert!(
        ran_over,
        "a flush of several rounds ran over the end of a segment"
    );
    for segment in begin.segment..=end.segment {
        let start = LogPosition {
            segment,
            ..LogPosition::default()
        };
        let (found, reader) = recover(&dir, start, Verdict::default()).unwrap();
        assert_eq!(reader.ends()[0].last_round + 1, end.round);
        assert_eq!(found[&1].slots[&SlotId(6)].len(), 2);
    }
}

/// A flush that goes over several segments fails at its n-th write; more is appended, so that it is
/// laid out anew; the power fails at the m-th call of the second attempt.
#[test]
fn crash_while_a_failed_flush_over_segments_is_repeated() {
    let seed = seed();
    let fill = |engine: &mut Engine| {
        for slot in [1, 2, 3, 4, 5, 7] {
            let stamp = engine.begin(SlotId(slot));
            for _ in 0..5 {
                engine.change(SlotId(slot), stamp, 1500).unwrap();
            }
        }
    };
    let mut failures = 0;
    for write in 0..8 {
        for call in 0..10 {
            let dir = SimulatedDirectory::new();
            let mut engine = open(Arc::new(dir.clone()), config(), LogStart::first()).unwrap();
            let stamp = engine.begin(SlotId(6));
            engine.change(SlotId(6), stamp, 100).unwrap();
            let ts = engine.commit(SlotId(6)).unwrap();
            engine.harden(ts).unwrap();
            // Files are made now, with a round for each: then one flush takes all that follows.
            for slot in 0..8 {
                engine.log.slot(SlotId(slot)).reserve(8000).unwrap();
            }
            fill(&mut engine);
            dir.fail(Fault::nth(Call::Write, write).on("log/"));
            failures += u32::from(engine.log.flush_round().is_err());
            dir.clear_faults();
            for bytes in [30, 900] {
                let stamp = engine.begin(SlotId(0));
                engine.change(SlotId(0), stamp, bytes).unwrap();
                engine.commit(SlotId(0)).unwrap();
            }
            dir.cut_after(call);
            if engine.log.flush_round().is_ok() {
                engine.model.durable = engine.log.durable_gsn();
            }
            for (kind, cut) in PowerCut::KINDS.into_iter().enumerate() {
                for turn in 0..4 {
                    let after = dir.power_cut(seed ^ turn ^ (call << 8), cut);
                    let (found, reader) = all(&after)
                        .unwrap_or_else(|e| panic!("write {write} call {call} cut {kind}: {e}"));
                    engine.model.check(&found[&1], reader.ends()[0]);
                }
            }
        }
    }
    assert!(failures >= 30, "{failures} flushes failed");
}

/// A flush of several rounds within one segment fails, is repeated with a record more in front, and is cut off: the
/// rounds of the two attempts lie at the same places and do not continue each other.
#[test]
fn crash_leftovers_of_a_failed_flush_are_not_pieced_together_with_its_repetition() {
    let config = LogConfig {
        slots_max: 8,
        slot_buffer_bytes: 1 << 20,
        segment_bytes: 8 << 20,
        log_bytes_max: 8 * (8 << 20),
    };
    let fill = |engine: &mut Engine| {
        for slot in 0..4 {
            let stamp = engine.begin(SlotId(slot));
            for _ in 0..200 {
                engine.change(SlotId(slot), stamp, 3000).unwrap();
            }
        }
    };
    for call in 0..4 {
        let dir = SimulatedDirectory::new();
        let mut engine = open(Arc::new(dir.clone()), config.clone(), LogStart::first()).unwrap();
        // Files are made now, with a round for each: then one flush takes all that follows.
        fill(&mut engine);
        for slot in 0..4 {
            let ts = engine.commit(SlotId(slot)).unwrap();
            engine.harden(ts).unwrap();
        }
        let begin = engine.log.position();
        fill(&mut engine);
        dir.fail(Fault::nth(Call::Write, 2).on("log/"));
        assert!(engine.log.flush_round().is_err());
        let live = engine.log.slot(SlotId(0)).lock().live_transaction();
        let stamp = live.unwrap().0;
        engine.change(SlotId(0), stamp, 3000).unwrap();
        dir.cut_after(call);
        let _ = engine.log.flush_round();
        let place = engine.log.position();
        assert_eq!(
            (place.segment, place.round),
            (1, begin.round),
            "call {call}"
        );
        for seed in 0..16 {
            let whole = PowerCut::KINDS[5];
            assert!(whole.reorder && whole.torn == Torn::None);
            let (found, reader) = all(&dir.power_cut(seed, whole)).unwrap();
            let last = reader.ends()[0];
            engine.model.check(found.get(&1).unwrap_or(&none()), last);
        }
    }
}

#[test]
fn failed_sync_poisons_every_waiter_and_every_later_commit() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    let mut stamps = Vec::new();
    for slot in 0..4 {
        let stamp = engine.begin(SlotId(slot));
        engine.change(SlotId(slot), stamp, 100).unwrap();
        stamps.push(engine.commit(SlotId(slot)).unwrap());
    }
    dir.fail(Fault::nth(Call::Sync, 0));
    let log = &engine.log;
    let errors: Vec<_> = std::thread::scope(|scope| {
        let waits: Vec<_> = stamps
            .iter()
            .map(|ts| scope.spawn(move || log.harden(*ts).unwrap_err()))
            .collect();
        waits.into_iter().map(|wait| wait.join().unwrap()).collect()
    });
    assert!(
        errors
            .iter()
            .any(|error| matches!(error, StorageError::Io { .. })),
        "{errors:?}"
    );
    let known = |e: &StorageError| matches!(e, StorageError::Io { .. } | StorageError::Poisoned);
    assert!(errors.iter().all(known));
    assert!(matches!(log.harden(stamps[0]), Err(StorageError::Poisoned)));
    assert!(matches!(log.flush_round(), Err(StorageError::Poisoned)));
    assert!(matches!(
        log.make_durable(Gsn(1)),
        Err(StorageError::Poisoned)
    ));
    assert_eq!(log.durable_gsn(), Gsn(0));
}

#[test]
fn read_error_in_recovery_is_an_error_and_not_the_end_of_the_log() {
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), small(), LogStart::first()).unwrap();
    let stamp = engine.begin(SlotId(1));
    engine.change(SlotId(1), stamp, 200).unwrap();
    let ts = engine.commit(SlotId(1)).unwrap();
    engine.harden(ts).unwrap();
    for read in 0..3 {
        let copy = dir.power_cut(1, PowerCut::CLEAN);
        copy.fail(Fault::nth(Call::Read, read));
        assert!(
            matches!(all(&copy), Err(StorageError::Io { .. })),
            "read {read}"
        );
    }
}

#[test]
fn prop_damaged_log_files_never_panic() {
    let seed = seed();
    let mut random = Random::new(seed);
    let dir = SimulatedDirectory::new();
    let mut engine = open(Arc::new(dir.clone()), config(), LogStart::first()).unwrap();
    work(&mut engine, &mut random, 60).unwrap();
    let names = dir.list("log").unwrap();
    for _ in 0..300 {
        let copy = dir.power_cut(seed, PowerCut::LUCKY);
        for _ in 0..random.between(1, 30) {
            let name = &names[random.below(names.len() as u64) as usize];
            copy.flip_bit(&format!("log/{name}"), random.below(20 << 10), 5)
                .unwrap();
        }
        // An error or a shorter log, whichever.
        let _ = all(&copy);
    }
}
