//! Counts tests by what libtest prints. It knows no test that finds out while it runs that it cannot be run here (a program is not
//! installed): such a one passes, and says `test skipped: REASON` past libtest's capture, by which it is counted as skipped.
//!
//! Not counted: a harness of another shape than libtest's.

use std::fmt;

/// What the result lines of some test binaries add up to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, and test binaries that died before their result.
    pub failed: u64,
    /// Tests that are switched off.
    pub skipped: u64,
    started: u64,
    finished: u64,
    /// Tests of the binary that runs which said that they are skipped.
    excused: u64,
}

impl Tally {
    /// Takes in one line of a test binary's output.
    pub fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("running ") {
            let count = rest.strip_suffix(" tests").or(rest.strip_suffix(" test"));
            self.started += u64::from(count.is_some_and(|count| count.parse::<u64>().is_ok()));
        }
        if line.contains("test skipped: ") {
            self.excused += 1;
        }
        // A test that printed no line end stands before its own result.
        let Some((_, result)) = line.split_once("test result: ") else {
            return;
        };
        self.finished += 1;
        let excused = std::mem::take(&mut self.excused);
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            if let (Some(Ok(count)), Some(what)) =
                (words.next().map(str::parse::<u64>), words.next())
            {
                match what {
                    "passed" => {
                        let excused = excused.min(count);
                        self.passed += count - excused;
                        self.skipped += excused;
                    }
                    "failed" => self.failed += count,
                    "ignored" => self.skipped += count,
                    _ => {}
                }
            }
        }
    }

    /// Tests that ran or were switched off.
    pub fn seen(&self) -> u64 {
        self.passed + self.failed + self.skipped
    }

    /// Called once the output of a run has ended. In a run that failed, binaries that began and gave
    /// no result died, and if nothing else failed (it did not build) the run itself counts as one.
    pub fn close(&mut self, success: bool) {
        if !success {
            self.failed += self.started.saturating_sub(self.finished);
            self.failed = self.failed.max(1);
        }
        (self.started, self.finished, self.excused) = (0, 0, 0);
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: Self) {
        debug_assert!(
            other.started == 0 && other.finished == 0,
            "only closed runs are added up"
        );
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str], success: bool) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.line(line));
        tally.close(success);
        tally
    }

    const OK: &str = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.02s";
    const BAD: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s";

    #[test]
    fn results_of_all_binaries_add_up() {
        let mut all = tally(&["running 13 tests", OK, "running 3 tests", BAD], false);
        assert_eq!(all.to_string(), "13 passed, 2 failed, 1 skipped");
        all.add(tally(
            &[
                "running 1 test",
                "noise test result: ok. 1 passed; 0 failed",
            ],
            true,
        ));
        assert_eq!(all.to_string(), "14 passed, 2 failed, 1 skipped");
        assert_eq!(Tally::default().to_string(), "0 passed, 0 failed");
    }

    #[test]
    fn a_test_that_says_it_was_skipped_is_not_counted_as_passed() {
        let said = "test psql ... test skipped: psql is not installed";
        let one = tally(
            &["running 13 tests", said, OK, "running 13 tests", OK],
            true,
        );
        assert_eq!(one.to_string(), "23 passed, 0 failed, 3 skipped");
    }

    #[test]
    fn a_binary_that_dies_and_a_build_that_fails_are_failures() {
        assert_eq!(
            tally(&["running 5 tests", "test a ... ok"], false).failed,
            1
        );
        assert_eq!(
            tally(&["running 5 tests", "running 3 tests", BAD], false).failed,
            3
        );
        assert_eq!(tally(&[], false).failed, 1);
        assert_eq!(tally(&["running late, as ever"], true).failed, 0);
    }
}
