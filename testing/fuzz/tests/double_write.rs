//! The double-write area with something changed: no wrong answer, no panic, no hang; and what nobody needs hurts nobody.

use vellum_fuzz::corpus;
use vellum_fuzz::damage::Outcome;
use vellum_fuzz::double_write::{Change, change, tear_each};
use vellum_model::run::{ends, first_seed, rounds};

/// Changes the area in one way, round after round, and on until all `came`: how often that was harmless, and how often told.
fn try_all(how: Change, default_rounds: u64, came: impl Fn([u32; 2]) -> bool) -> [u32; 2] {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let disk = corpus::make().expect("a database");
    let mut counts = [0_u32; 2];
    for round in 0.. {
        if ends(round, default_rounds, || came(counts)) {
            break;
        }
        match change(&disk, how, seed.wrapping_add(round)).unwrap_or_else(|what| panic!("{what}")) {
            Outcome::Harmless => counts[0] += 1,
            Outcome::Detected => counts[1] += 1,
        }
    }
    eprintln!("{} without an error, {} with one", counts[0], counts[1]);
    counts
}

#[test]
fn prop_each_torn_page_is_repaired_from_the_double_write_area() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let disk = corpus::make().expect("a database");
    let pages = tear_each(&disk, seed).unwrap_or_else(|what| panic!("{what}"));
    assert!(pages > 8, "only {pages} pages have an image");
}

#[test]
fn prop_damage_of_the_double_write_area_is_told_only_by_who_needs_it() {
    let [harmless, _] = try_all(Change::Bit, 60, |[harmless, _]| harmless > 0);
    assert!(harmless > 0 || rounds(60) < 60, "the area is always needed");
}

#[test]
fn prop_headers_of_the_double_write_area_that_nobody_wrote_put_no_image_elsewhere() {
    let both = |counts: [u32; 2]| !counts.contains(&0);
    let counts = try_all(Change::Header, 120, both);
    assert!(rounds(120) < 120 || both(counts), "{counts:?}");
}

#[test]
fn prop_images_of_the_double_write_area_that_nobody_wrote_are_answered() {
    try_all(Change::Image, 120, |_| true);
}

/// A leaf whose upper fence lay within it: a scan went on behind that fence, to the same leaf, for ever. Guard: `Tree::read_leaf` asks whether it gets further.
#[test]
fn regress_a_leaf_that_leads_back_to_itself_ends_a_scan_with_an_error() {
    let disk = corpus::make().expect("a database");
    change(&disk, Change::Image, 1_820_007_225).unwrap_or_else(|what| panic!("{what}"));
}
