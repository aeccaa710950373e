//! The comparison tested on itself: the model against the model agrees on every history, and each
//! subject that is wrong on purpose is caught.

use vellum_model::run::{Failure, Outcome, ends, first_seed, rounds};
use vellum_model::subject::ModelSubject;
use vellum_model::{Defect, Profile, Step, Subject, run_history};

const KEY_LIMIT: usize = 512;

fn profile() -> Profile {
    Profile {
        page_size: 4096,
        key_limit: KEY_LIMIT,
        open_max: 6,
        power_cuts: true,
        reopens: true,
        ddl: true,
        drops_large_values: true,
        classes: false,
        hot: false,
        words: false,
        burst_max: 40,
    }
}

fn subject(defect: Option<Defect>) -> impl Fn() -> Box<dyn Subject> {
    move || Box::new(ModelSubject::new(KEY_LIMIT, defect))
}

#[test]
fn prop_the_model_agrees_with_itself_and_histories_reach_every_answer() {
    const ROUNDS: u64 = 60;
    let (first, mut all) = (first_seed(), Outcome::default());
    eprintln!("VELLUM_SEED={first}");
    let kinds = [
        "conflict",
        "key exists",
        "key too long",
        "range outside value",
        "read only",
    ];
    let more = [
        "no such table",
        "table exists",
        "transaction over",
        "found",
        "not found",
    ];
    let rest = ["rows", "no rows", "many", "contents", "done"];
    let kinds: Vec<&str> = kinds.into_iter().chain(more).chain(rest).collect();
    let came = |all: &Outcome, kind: &str| all.answers.get(kind).is_some_and(|count| *count > 5);
    for round in 0.. {
        if ends(round, ROUNDS, || kinds.iter().all(|kind| came(&all, kind))) {
            break;
        }
        let seed = first.wrapping_add(round);
        match run_history(seed, 400, &profile(), "prop_the_model", &subject(None)) {
            Ok(outcome) => all.add(&outcome),
            Err(failure) => panic!("{failure:?}"),
        }
    }
    eprintln!("{all:?}");
    assert!(!all.answers.contains_key("other"), "{all:?}");
    if rounds(ROUNDS) >= ROUNDS {
        for kind in kinds {
            assert!(came(&all, kind), "{kind}: {all:?}");
        }
        let skipped = all.answers.get("skipped").copied().unwrap_or_default();
        assert!(
            skipped * 50 < all.steps,
            "too many steps do nothing: {all:?}"
        );
    }
}

#[test]
fn prop_every_wrong_subject_is_caught() {
    let first = first_seed();
    eprintln!("VELLUM_SEED={first}");
    for defect in Defect::ALL {
        let mut caught = (0..3000).filter_map(|round| {
            let seed = first.wrapping_add(round);
            run_history(seed, 300, &profile(), "prop_every", &subject(Some(defect))).err()
        });
        let earliest = caught.next();
        let earliest = earliest.unwrap_or_else(|| panic!("{defect:?} is never caught"));
        // One in thousands is not made small: then one of the next is.
        let is_small = |failure: &Failure| failure.history.len() <= 40;
        let failure = if is_small(&earliest) {
            earliest
        } else {
            caught
                .take(3)
                .find(|failure| is_small(failure))
                .unwrap_or(earliest)
        };
        assert!(
            is_small(&failure),
            "{defect:?} is not made small: {failure:?}"
        );
        eprintln!(
            "{defect:?}: round {}, {failure:?}",
            failure.seed.wrapping_sub(first)
        );
        let last = failure.difference.index;
        assert!(last <= failure.history.len());
        let begins = failure
            .history
            .iter()
            .any(|step| matches!(step, Step::Begin { .. }));
        assert!(
            begins,
            "{defect:?} differs before anything happened: {failure:?}"
        );
    }
}
