//! Files with something changed: no wrong answer, no panic, no hang.

use vellum_base::random::Random;
use vellum_buffer::page::kind;
use vellum_fuzz::corpus::{self, CONTROL, DATA, PAGE};
use vellum_fuzz::damage::{Outcome, Place, flip, forge, forge_control, forge_page};
use vellum_fuzz::each::{chunks, pages, place};
use vellum_fuzz::garbage;
use vellum_io::SimulatedDirectory;
use vellum_model::run::{first_seed, rounds, thorough};

/// Bytes of a page's head, a node's included.
const HEAD: usize = 48;
/// Bytes of the longest head in the log.
const FRAME_HEAD: usize = 88;

/// Every byte of every head: of the control file, of the data file, of a page of each kind, of a segment, a round and a chunk; and the rest of these, and of
/// a chunk with each kind of record.
fn places(disk: &SimulatedDirectory) -> (Vec<Place>, Vec<Place>) {
    let (mut heads, mut rest) = (Vec::new(), Vec::new());
    let mut add = |file: &str, range: std::ops::Range<usize>, head: usize| {
        let to_head = range.start + head;
        for at in range {
            let file = file.to_owned();
            let place = Place { file, at };
            if at < to_head {
                heads.push(place)
            } else {
                rest.push(place)
            }
        }
    };
    let control = corpus::bytes_of(disk, CONTROL).expect("a control file");
    add(CONTROL, 0..control.len(), control.len());
    let pages = pages(disk).expect("a data file").into_values();
    for number in std::iter::once(0).chain(pages).map(|page| page as usize) {
        add(DATA, number * PAGE..(number + 1) * PAGE, HEAD);
    }
    // First come a segment's head, a trailer, and a chunk; heads of the other chunks are no different.
    for (number, stretch) in (0..).zip(chunks(disk).expect("a log")) {
        let head = if number < 3 { FRAME_HEAD } else { 0 };
        add(&stretch.file, stretch.bytes, head);
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
    let all = thorough();
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

/// What cannot be read of a database that opens with an error is detected damage, unless nobody needs it.
#[test]
fn prop_damage_of_garbage_keeps_no_database_shut() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let garbage = garbage::make().expect("a database");
    for wanted in [kind::INNER, kind::LEAF, kind::OVERFLOW] {
        let found = garbage.pages.iter().filter(|(kind, _)| *kind == wanted);
        let found = found.count();
        eprintln!("{found} pages of kind {wanted}");
        assert!(found > 1, "kind {wanted}");
    }
    let mut random = Random::new(seed);
    for (_, page) in &garbage.pages {
        let verifies = thorough() || random.chance(1, 8);
        let flipped = garbage::flip(&garbage, *page, place(&mut random), verifies);
        flipped.unwrap_or_else(|what| panic!("VELLUM_SEED={seed}: {what}"));
    }
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

/// Opening panicked where a leaf said that its keys share more bytes than its fences do. The pool asked nobody for the form of pages before there were
/// trees, and redo works on pages before: what it read was believed, and stayed in memory. Now redo registers the check (D4 of `redo`).
#[test]
fn regress_pages_that_only_redo_reads_are_checked_for_their_form() {
    const PREFIX_AT: usize = 36;
    let disk = corpus::make().expect("a database");
    let mut detected = 0;
    for (of, page) in pages(&disk).expect("a data file") {
        for byte in [1, 255] {
            let outcome = forge_page(&disk, page, PREFIX_AT, byte);
            detected += u32::from(
                outcome.unwrap_or_else(|what| panic!("{of:?}: {what}")) == Outcome::Detected,
            );
        }
    }
    assert!(detected > 0, "no node was read");
}

/// Reading the log panicked where the control file named an offset beyond its segment. Each number of the control file, at the ends of its range and
/// next to what it is, is answered.
#[test]
fn regress_numbers_of_the_control_file_at_their_ends_are_answered() {
    let disk = corpus::make().expect("a database");
    let control = corpus::bytes_of(&disk, "control").expect("a control file");
    let mut detected = 0;
    for at in (0..control.len() - 7).step_by(8) {
        let own = u64::from_le_bytes(control[at..at + 8].try_into().expect("eight bytes"));
        let near = [
            own.wrapping_sub(1),
            own.wrapping_add(1),
            own ^ (1 << 12),
            own ^ (1 << 48),
        ];
        let ends = [0, 1, u64::from(u32::MAX), (1 << 62) - 1, 1 << 62, u64::MAX];
        for number in near.into_iter().chain(ends) {
            let outcome = forge_control(&disk, at, number);
            let outcome = outcome.unwrap_or_else(|what| panic!("{at}: {number}: {what}"));
            detected += u32::from(outcome == Outcome::Detected);
        }
    }
    assert!(detected > 0, "no number was looked at");
}
