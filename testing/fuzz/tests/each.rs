//! Every byte of a page and of a chunk of each kind.

use vellum_base::random::Random;
use vellum_btree::record::TRIM;
use vellum_buffer::page::{FLAG_FAT, FLAG_TEMPORARY, kind};
use vellum_fuzz::aged::Aged;
use vellum_fuzz::corpus;
use vellum_fuzz::damage::in_time;
use vellum_fuzz::each::{chunks, flip_log, flip_page, pages, place, pool, rounds_from};
use vellum_fuzz::kinds;
use vellum_io::SimulatedDirectory;
use vellum_model::run::{ends, first_seed, rounds, thorough};

/// Bytes of a chunk that are all tried; of what a longer one has behind them a sixteenth, if not all of it is to be tried.
const LONG: usize = 8192;

/// Trims: no workload of the corpus writes them, so they are flipped where [`kinds`] made them up.
const MADE_UP: [u8; 1] = [TRIM];

/// Every bit of a page of each kind; the kinds that there were.
fn every_bit(disk: &SimulatedDirectory) -> Vec<(u8, u8, u64)> {
    let pages = pages(disk).expect("a data file");
    for (of, page) in &pages {
        // A new one for each: what was read as it was stays in it.
        let pool = pool(disk).expect("a pool");
        let tried = flip_page(disk, &pool, *page)
            .unwrap_or_else(|what| panic!("{of:?}, page {page}: {what}"));
        assert_eq!(tried, 8 * corpus::PAGE as u64);
    }
    eprintln!("every bit of {} pages: {:?}", pages.len(), pages.keys());
    pages.into_keys().collect()
}

#[test]
fn every_bit_of_a_page_of_each_kind_is_noticed_by_who_reads_it() {
    let kinds = every_bit(&corpus::make().expect("a database"));
    for expected in [kind::BITMAP, kind::INNER, kind::LEAF, kind::OVERFLOW] {
        assert!(
            kinds.iter().any(|(kind, ..)| *kind == expected),
            "no page of kind {expected}"
        );
    }
    let trees = kinds
        .iter()
        .filter(|(kind, ..)| *kind == kind::LEAF)
        .count();
    assert!(trees >= 5, "leaves of {trees} trees only");
}

#[test]
fn every_bit_of_a_page_of_old_versions_is_noticed_by_who_reads_it() {
    let aged = Aged::make().expect("a database");
    let kinds = every_bit(&aged.disk);
    let has = |flag: u8| {
        kinds
            .iter()
            .filter(|(_, flags, _)| flags & flag != 0)
            .count()
    };
    assert!(has(FLAG_FAT) > 0, "no leaf with fat rows");
    assert!(
        has(FLAG_TEMPORARY) > 2,
        "no deltas and graveyards: {}",
        has(FLAG_TEMPORARY)
    );
}

/// Flips a bit of each byte of the chunks of a log; of what lies behind `LONG` bytes of one, a sample. How many were noticed.
fn every_byte(disk: &SimulatedDirectory, seed: u64) -> u32 {
    let mut random = Random::new(seed);
    let whole = rounds_from(disk, 0).expect("a log");
    let (mut noticed, mut harmless) = (0_u32, 0_u32);
    let stretches = chunks(disk).expect("a log");
    for stretch in &stretches {
        let head = stretch.bytes.start + LONG;
        for at in stretch.bytes.clone() {
            if at >= head && !thorough() && !random.chance(1, 16) {
                continue;
            }
            let bit = random.below(8) as u8;
            match flip_log(disk, &whole, &stretch.file, at, bit) {
                Ok(true) => noticed += 1,
                Ok(false) => harmless += 1,
                Err(what) => panic!("VELLUM_SEED={seed}: {what}"),
            }
        }
    }
    eprintln!(
        "{} stretches of {} rounds: {noticed} noticed, {harmless} of the last round",
        stretches.len(),
        whole.len()
    );
    assert_eq!(rounds_from(disk, 0).expect("as it was"), whole);
    noticed
}

#[test]
fn prop_every_byte_of_a_chunk_of_each_kind_is_noticed_or_was_the_last() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let short = kinds::make_log().expect("a log");
    assert_eq!(kinds::found(&short).expect("a log"), kinds::defined());
    for stretch in chunks(&short).expect("a log") {
        assert!(stretch.bytes.len() <= LONG, "not all of {stretch:?}");
    }
    assert!(every_byte(&short, seed) > 1000, "too few are there");
    let real = corpus::make().expect("a database");
    let missing = kinds::defined();
    let missing: Vec<u8> = missing
        .difference(&kinds::found(&real).expect("a log"))
        .copied()
        .collect();
    assert_eq!(missing, MADE_UP, "kinds that no database here wrote");
    assert!(every_byte(&real, seed) > 1000, "too few are there");
}

#[test]
fn prop_damage_under_an_open_database_is_detected_or_harmless() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let mut random = Random::new(seed);
    let aged = Aged::make().expect("a database");
    let pages: Vec<_> = pages(&aged.disk)
        .expect("a data file")
        .into_iter()
        .collect();
    let mut told = 0;
    for round in 0.. {
        if ends(round, 150, || told > 0) {
            break;
        }
        let (of, page) = pages[random.below(pages.len() as u64) as usize];
        let (at, bit) = place(&mut random);
        told += u32::from(aged.flip(page, at, bit).unwrap_or_else(|what| {
            panic!("VELLUM_SEED={seed}: {of:?}, page {page}, byte {at}, bit {bit}: {what}")
        }));
    }
    eprintln!("{told} were told");
    assert_eq!(aged.look(), Ok(false), "nothing is left of it");
    // One alone may be harmless.
    assert!(
        told > 0 || rounds(150) < 150,
        "nothing was read from the disk"
    );
}

#[test]
fn prop_bytes_that_nobody_wrote_under_an_open_database_end_in_no_panic() {
    let first = first_seed();
    eprintln!("VELLUM_SEED={first}");
    let mut told = 0;
    for round in 0.. {
        if ends(round, 40, || told > 0) {
            break;
        }
        let seed = first.wrapping_add(round);
        let tried = in_time(move || {
            let aged = Aged::make().map_err(|error| error.to_string())?;
            aged.forge(&mut Random::new(seed))
        });
        let (_, errors) =
            tried.unwrap_or_else(|what| panic!("VELLUM_SEED={seed} VELLUM_ROUNDS=1: {what}"));
        told += errors;
    }
    eprintln!("{told} errors");
    // One alone may be harmless.
    assert!(
        told > 0 || rounds(40) < 40,
        "nothing was read from the disk"
    );
}
