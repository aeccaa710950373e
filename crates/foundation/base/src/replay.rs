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
}
