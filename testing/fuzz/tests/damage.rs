//! Files with something changed: no wrong answer, no panic, no hang.

use std::collections::BTreeMap;
use vellum_base::random::Random;
use vellum_fuzz::corpus::{self, CONTROL, DATA, PAGE};
use vellum_fuzz::damage::{Outcome, Place, flip, forge, forge_control};
use vellum_io::SimulatedDirectory;
use vellum_model::run::{first_seed, rounds};

/// Bytes of a page's head, and of a chunk's and a trailer's.
const HEAD: usize = 48;

/// Every byte of every head, of one page and one chunk of each kind, and of the shortest chunk; and the rest of these pages and chunks.
fn places(disk: &SimulatedDirectory) -> (Vec<Place>, Vec<Place>) {
    let (mut heads, mut rest) = (Vec::new(), Vec::new());
    let mut add = |file: &str, range: std::ops::Range<usize>, head: usize| {
        for at in range.clone() {
            let place = Place {
                file: file.to_owned(),
                at,
            };
            if at < range.start + head {
                heads.push(place)
            } else {
                rest.push(place)
            }
        }
    };
    let control = corpus::bytes_of(disk, CONTROL).expect("a control file");
    add(CONTROL, 0..control.len(), control.len());
    let data = corpus::bytes_of(disk, DATA).expect("a data file");
    let mut kinds = BTreeMap::new();
    for (number, page) in data.chunks_exact(PAGE).enumerate() {
        kinds.entry(page[4]).or_insert(number);
    }
    for number in kinds.into_values() {
        add(DATA, number * PAGE..(number + 1) * PAGE, HEAD);
    }
    // The first segment that is in use: its head, its last chunk, the trailer behind it.
    for name in corpus::segments(disk).expect("a log") {
        let bytes = corpus::bytes_of(disk, &name).expect("a segment");
        let chunks = corpus::chunks(&bytes);
        let shortest = chunks.iter().min_by_key(|(_, length)| *length);
        if let (Some((at, length)), Some((short, rest))) = (chunks.last(), shortest) {
            add(&name, 0..88, 88);
            add(&name, *at..at + 80 + length + 64, 80);
            // Of one of them every byte.
            add(&name, *short..short + 80 + rest, 80 + rest);
            break;
        }
    }
    (heads, rest)
}

#[test]
fn prop_damage_of_a_medium_is_detected_or_harmless() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let disk = corpus::make().expect("a database");
    let (heads, rest) = places(&disk);
    let mut random = Random::new(seed);
    let samples = rounds(80) as usize;
    // All of them in a soak: one round a place.
    let all = samples >= rest.len();
    let mut counts = [0_u32; 2];
    let mut try_at = |place: &Place, random: &mut Random| {
        let outcome = flip(
            &disk,
            place,
            random.below(8) as u8,
            all || random.chance(1, 4),
        );
        match outcome.unwrap_or_else(|what| panic!("VELLUM_SEED={seed}: {what}")) {
            Outcome::Harmless => counts[0] += 1,
            Outcome::Detected => counts[1] += 1,
        }
    };
    for place in &heads {
        try_at(place, &mut random);
    }
    if all {
        rest.iter().for_each(|place| try_at(place, &mut random));
    } else {
        for _ in 0..samples {
            try_at(&rest[random.below(rest.len() as u64) as usize], &mut random);
        }
    }
    eprintln!(
        "{} places of heads, {} others: {} harmless, {} detected",
        heads.len(),
        rest.len(),
        counts[0],
        counts[1]
    );
    assert!(counts[1] > 0, "nothing was detected");
}

#[test]
fn prop_bytes_that_nobody_wrote_are_answered_without_a_panic() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let disk = corpus::make().expect("a database");
    let mut counts = [0_u32; 2];
    for round in 0..rounds(300) {
        match forge(&disk, seed.wrapping_add(round)).unwrap_or_else(|what| panic!("{what}")) {
            Outcome::Harmless => counts[0] += 1,
            Outcome::Detected => counts[1] += 1,
        }
    }
    eprintln!("{} without an error, {} with one", counts[0], counts[1]);
}

/// Opening panicked where the control file, or a record of the log, held a timestamp at the end of time: the clock was set behind it without
/// asking whether any clock had ever been there. Now it is damage that is told.
#[test]
fn regress_a_timestamp_that_no_clock_has_reached_is_damage() {
    const FLOOR_AT: usize = 48;
    let disk = corpus::make().expect("a database");
    for floor in [u64::MAX, u64::MAX - (1 << 32)] {
        assert_eq!(forge_control(&disk, FLOOR_AT, floor), Ok(Outcome::Detected));
    }
}
