//! Writes that land elsewhere, or nowhere: told, harmless, or the past; no panic, no hang.

use std::collections::BTreeMap;
use vellum_base::random::Random;
use vellum_fuzz::misplaced::{Outcome, Work, misplace, writes};
use vellum_io::{TraceEntry, WriteLie};
use vellum_model::run::{first_seed, rounds};

/// Tries as many of the writes as there are rounds (all of them, each once, if there are more rounds).
fn try_writes(default_rounds: u64, lie: impl Fn(&TraceEntry, &mut Random) -> WriteLie) -> [u32; 3] {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let mut random = Random::new(seed);
    let mut writes = writes().expect("a database");
    while writes.len() as u64 > rounds(default_rounds) {
        writes.swap_remove(random.below(writes.len() as u64) as usize);
    }
    let mut counts = [0; 3];
    for write in &writes {
        let outcome = misplace(write, lie(write, &mut random));
        let outcome = outcome.unwrap_or_else(|what| panic!("VELLUM_SEED={seed}: {what}"));
        counts[outcome as usize] += 1;
    }
    let [harmless, detected, past] = counts;
    eprintln!("{harmless} harmless, {detected} detected, {past} show the past");
    counts
}

#[test]
fn prop_lost_writes_are_harmless_detected_or_show_the_past() {
    let counts = try_writes(120, |_, _| WriteLie::Lost);
    assert!(
        counts[Outcome::Detected as usize] > 0,
        "nothing was detected"
    );
}

#[test]
fn prop_misdirected_writes_never_show_bytes_of_something_else() {
    let mut places: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for write in writes().expect("a database") {
        let offsets = places.entry(write.file.to_string()).or_default();
        offsets.push(write.offset);
    }
    let counts = try_writes(120, |write, random| {
        // Where something else was written, as far as something was.
        let places = &places[&*write.file];
        let place = places[random.below(places.len() as u64) as usize];
        let next = write.offset + write.length;
        WriteLie::Misdirected(if place == write.offset { next } else { place })
    });
    assert!(
        counts[Outcome::Detected as usize] > 0,
        "nothing was detected"
    );
}

#[test]
fn prop_misplaced_writes_of_a_database_at_work_end_in_no_panic() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let mut random = Random::new(seed);
    let work = Work::new().expect("a database");
    let mut writes = work.writes.clone();
    let all = writes.len();
    while writes.len() as u64 > rounds(60) {
        writes.swap_remove(random.below(writes.len() as u64) as usize);
    }
    for write in &writes {
        let lie = match random.below(3) {
            0 => WriteLie::Misdirected(work.writes[random.below(all as u64) as usize].offset),
            _ => WriteLie::Lost,
        };
        if let Err(what) = work.misplace(write, lie) {
            panic!("VELLUM_SEED={seed}: {what}");
        }
    }
    eprintln!("{} of {all} writes", writes.len());
    assert!(all > 100, "the database was hardly worked on");
}

/// A writer never came back: its remembered leaf covered the key and was full, while the way down from the root, past a page whose last write was
/// lost, led to another leaf that covers it and has room, so no room was made. Who asked for room now goes down from the root, too; and who writes to a
/// leaf that does not cover the key is told of damage.
#[test]
fn regress_a_lost_write_sends_no_writer_round_and_round() {
    let work = Work::new().expect("a database");
    for write in &work.writes {
        if let Err(what) = work.misplace(write, WriteLie::Lost) {
            panic!("{what}");
        }
    }
}
