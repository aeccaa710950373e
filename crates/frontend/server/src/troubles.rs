//! Errors of statements that whoever runs the server has to know of: the disk fails or is full, bytes are damaged, something inside is wrong. The client that is told
//! may be a program that tells nobody.
//!
//! Cost: nothing but a look at the SQLSTATE for all other errors.

use std::sync::{Mutex, PoisonError};
use vellum_base::clock::monotonic_nanos;
use vellum_sql::SqlError;

/// Events in a row.
const MOST: u64 = 10;
/// One more after so long.
const PAUSE_NANOS: u64 = 6_000_000_000;

/// How much of the log such errors may take: a database that is poisoned answers every write with one.
#[derive(Debug, Default)]
pub struct Troubles {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Events that are used up, as time that gives them back: until this moment (monotonic, nanoseconds).
    until: u64,
    /// Those that were not told since the last.
    left_out: u64,
}

impl Troubles {
    /// Tells the log of an error of a session's statement, if it is one of those.
    pub fn hear(&self, process: u32, error: &SqlError) {
        let state = error.sqlstate();
        if !is_one(state.as_str()) {
            return;
        }
        if let Some(left_out) = self.admit(monotonic_nanos()) {
            tracing::warn!(session = process, sqlstate = %state, error = error.message(), left_out, "a statement failed");
        }
    }

    /// How many were left out before one that is told now; none if it is left out.
    fn admit(&self, now: u64) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let from = state.until.max(now);
        if from - now > (MOST - 1) * PAUSE_NANOS {
            state.left_out += 1;
            return None;
        }
        state.until = from + PAUSE_NANOS;
        Some(std::mem::take(&mut state.left_out))
    }
}

/// I/O, a full disk, damage, and what should not be.
fn is_one(sqlstate: &str) -> bool {
    sqlstate.starts_with("58")
        || sqlstate.starts_with("XX")
        || ["53100", "08007"].contains(&sqlstate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_a_row_are_told_and_then_one_in_six_seconds() {
        let troubles = Troubles::default();
        let begin = 1_000 * PAUSE_NANOS;
        let told = (0..25).filter(|_| troubles.admit(begin).is_some());
        assert_eq!(told.count(), 10);
        assert_eq!(troubles.admit(begin + PAUSE_NANOS - 1), None);
        assert_eq!(troubles.admit(begin + PAUSE_NANOS), Some(16));
        assert_eq!(troubles.admit(begin + PAUSE_NANOS), None);
    }

    #[test]
    fn errors_of_the_disk_and_of_damage_are_told_and_no_others() {
        for state in ["58030", "53100", "08007", "XX000", "XX001"] {
            assert!(is_one(state), "{state}");
        }
        for state in ["23505", "40001", "53300", "53400", "57014", "0A000"] {
            assert!(!is_one(state), "{state}");
        }
    }
}
