//! What random tests take from the environment, so that a failure can be run again: `VELLUM_SEED` and `VELLUM_ROUNDS`.
//!
//! A value that is none is a panic, and so are no rounds: a test that ran with another seed than it was given, or tried nothing, would pass and say nothing.

use crate::random::Random;

/// The seed of a random test: `VELLUM_SEED`, else a fresh one that is short enough to be typed.
///
/// # Panics
/// If `VELLUM_SEED` is no number.
#[track_caller]
pub fn seed() -> u64 {
    number("VELLUM_SEED", 0).unwrap_or_else(|| Random::fresh_seed() >> 32)
}

/// How many rounds a random test runs: `VELLUM_ROUNDS`, else the default.
///
/// # Panics
/// If `VELLUM_ROUNDS` is no number, or zero.
#[track_caller]
pub fn rounds(default: u64) -> u64 {
    number("VELLUM_ROUNDS", 1).unwrap_or(default)
}

/// How many times its rounds a random test goes on for what has not come.
const PATIENCE: u64 = 8;

/// Whether a random test ends that has run `done` rounds and is to meet certain cases: behind as many rounds as [`rounds`] says if all of them `came`, else
/// behind eight times as many. Fewer than the default, of a replay, are never exceeded, and need not meet everything.
///
/// What a few rounds in a hundred meet is missing under some seeds. A test that fails then fails by luck, one that always ran long enough would be slow under
/// every seed; one that goes on is slow under few.
///
/// # Panics
/// As [`rounds`].
#[track_caller]
pub fn ends(done: u64, default: u64, came: impl FnOnce() -> bool) -> bool {
    is_end(done, rounds(default), default, came)
}

fn is_end(done: u64, rounds: u64, default: u64, came: impl FnOnce() -> bool) -> bool {
    done >= rounds && (rounds < default || done / PATIENCE >= rounds || came())
}

#[track_caller]
fn number(name: &str, least: u64) -> Option<u64> {
    let text = std::env::var_os(name)?;
    match parse(&text.to_string_lossy(), least) {
        Ok(number) => Some(number),
        Err(what) => panic!("{name}={}: {what}", text.display()),
    }
}

fn parse(text: &str, least: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number < least => Err(format!("{least} is the least")),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_refused_and_so_are_no_rounds() {
        for text in ["abc", "", "-1", "7 ", "18446744073709551616"] {
            assert!(parse(text, 0).is_err(), "{text}");
        }
        assert_eq!(parse("0", 0), Ok(0));
        assert!(parse("0", 1).is_err());
        assert_eq!(parse("1", 1), Ok(1));
    }

    #[test]
    fn a_test_goes_on_for_what_has_not_come_unless_it_is_a_replay() {
        let ends = |done, rounds, came| is_end(done, rounds, 10, || came);
        for came in [false, true] {
            assert!(!ends(9, 10, came) && ends(80, 10, came));
            assert!(!ends(2, 3, came) && ends(3, 3, came));
            assert!(!ends(19, 20, came) && ends(160, 20, came));
        }
        assert!(ends(10, 10, true) && !ends(10, 10, false) && !ends(79, 10, false));
    }
}
