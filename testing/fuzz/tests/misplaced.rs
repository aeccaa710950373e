//! Writes that land elsewhere, or nowhere: told, harmless, or the past; no panic, no hang.

use std::collections::BTreeMap;
use vellum_base::random::Random;
use vellum_fuzz::misplaced::{Outcome, misplace, writes};
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
