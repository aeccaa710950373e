//! `cargo xtask soak MINUTES`: the random suites again and again, each time with a fresh seed. With `VELLUM_SEED` the seeds and the order follow from it, so that
//! whoever judges a commit again meets the same, as far as the machine comes in the time.
//!
//! A random test is one whose name begins with `prop_`, `crash_` or `faults_`; beside them run the suites of shuttle, whose
//! schedules follow from the same seed. They take it from `VELLUM_SEED`, and the number of their rounds from `VELLUM_ROUNDS`, which a soak hands on if it is set.
//!
//! A soak of [`THOROUGH`] minutes or more sets `VELLUM_THOROUGH`: what tests take samples of they then try to the end.
//!
//! What fails is printed as the command that does it again, and kept in [`KEPT`] at once; the next soak begins with what is kept there. Who has mended a
//! bug takes its line out, and writes a `regress_` test. A line whose test is gone fails as well.
//!
//! Not here: planted bugs (`planted`), measurements (`vellum-bench`). Not checked: that a failure comes again; some tests run real threads.

use crate::binaries::{self, Binary, End};
use crate::suites;
use crate::tally::Tally;
use crate::workspace::{Workspace, cargo};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Where failures are kept: a command a line, behind it what was said.
const KEPT: &str = "testing/corpus/failures.txt";

/// Prefixes of the names of random tests.
const RANDOM: [&str; 3] = ["prop_", "crash_", "faults_"];

/// Longest time of one run of a binary: a test that hangs is a failure. Every byte of a medium took 48 minutes beside other work.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// What the test harness says behind a test's name, as soon as it knows.
const FAILED: &str = " ... FAILED";

/// Minutes from which on a soak is thorough.
const THOROUGH: u64 = 30;

/// A number from the environment.
fn given(name: &str) -> io::Result<Option<u64>> {
    let Some(text) = std::env::var_os(name) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(error) => Err(io::Error::other(format!("{name}={text}: {error}"))),
    }
}

/// Runs random suites until `minutes` are over. True if nothing failed.
///
/// The binaries are built first, which does not count, and run one by one in an order that changes. The last one is finished in a thorough soak; in a short
/// one, for which somebody waits, it is cut off, which says nothing of it.
///
/// # Errors
/// If cargo cannot be run, or `VELLUM_SEED` or `VELLUM_ROUNDS` is no number, or zero rounds.
pub fn run(workspace: &Workspace, minutes: u64) -> io::Result<bool> {
    let kept = workspace.root.join(KEPT);
    let effort = Effort::of(minutes);
    let mut seeds = Seeds::new(given("VELLUM_SEED")?);
    if given("VELLUM_ROUNDS")? == Some(0) {
        return Err(io::Error::other("VELLUM_ROUNDS=0: nothing would be tried"));
    }
    let mut failures = replay_kept(workspace, &kept)?;
    let Some(mut suites) = suites(workspace)? else {
        println!("soak: the tests are not built");
        return Ok(false);
    };
    let (start, count) = (Instant::now(), suites.len());
    let end = start + Duration::from_secs(minutes.saturating_mul(60));
    let mut runs = 0_u64;
    'time: loop {
        suites.sort_by_cached_key(|_| seeds.next());
        for suite in &mut suites {
            let left = end.saturating_duration_since(Instant::now());
            let failed = suite.run(seeds.next(), effort, left)?;
            // At once: a soak that is stopped has kept what it found.
            keep(&kept, &failed)?;
            failures.extend(failed);
            runs += 1;
            if Instant::now() >= end {
                break 'time;
            }
        }
        suites.retain(|suite| !suite.tests.is_empty());
        if suites.is_empty() {
            break;
        }
    }
    println!(
        "\n=== soak: {runs} runs of {count} suites in {:.0} s, {} failures",
        start.elapsed().as_secs_f64(),
        failures.len()
    );
    for failure in &failures {
        println!("{failure}");
    }
    if !failures.is_empty() {
        println!("soak: a command a failure; they are kept in {KEPT}");
    }
    Ok(failures.is_empty())
}

/// How hard the suites are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effort {
    /// For as long as there is time.
    Short,
    Thorough,
}

impl Effort {
    fn of(minutes: u64) -> Self {
        if minutes >= THOROUGH {
            Self::Thorough
        } else {
            Self::Short
        }
    }

    /// What a run may take of the time that is left.
    fn limit(self, left: Duration) -> Duration {
        match self {
            // Also a soak of no minutes builds, and replays what is kept.
            Self::Short => left,
            Self::Thorough => LIMIT,
        }
    }
}

/// Numbers that nobody has drawn before, or that follow from one.
struct Seeds {
    from: Option<u64>,
    drawn: u64,
}

impl Seeds {
    fn new(from: Option<u64>) -> Self {
        Self { from, drawn: 0 }
    }

    fn next(&mut self) -> u64 {
        self.drawn += 1;
        let drawn = match self.from {
            // Neither the seed nor the hasher's keys are of this run.
            Some(from) => {
                BuildHasherDefault::<DefaultHasher>::default().hash_one((from, self.drawn))
            }
            None => RandomState::new().hash_one(self.drawn),
        };
        // Short enough to be typed.
        drawn >> 32
    }
}

/// The random tests of one binary.
struct Suite {
    binary: Binary,
    /// The names of those of its tests that are random.
    tests: Vec<String>,
    /// How they are built again: what stands before and after `cargo test`.
    again: (&'static str, &'static str),
}

fn suites(workspace: &Workspace) -> io::Result<Option<Vec<Suite>>> {
    let mut command = cargo();
    command.current_dir(&workspace.root).args([
        "test",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
    ]);
    let mut built = vec![(Some(command), &RANDOM[..], ("", ""))];
    let shuttle = suites::checked(workspace, "shuttle")?.map(|checked| checked.command);
    let again = (
        "RUSTFLAGS='--cfg shuttle' CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true ",
        "--release --target-dir target-shuttle ",
    );
    built.push((shuttle, &["shuttle_"], again));
    let mut suites = Vec::new();
    for (command, prefixes, again) in built {
        let Some(command) = command else { continue };
        let Some(binaries) = binaries::build(workspace, command)? else {
            return Ok(None);
        };
        for binary in binaries {
            let mut tests = binary.tests()?;
            tests.retain(|test| {
                let name = test.rsplit("::").next().unwrap_or(test);
                prefixes.iter().any(|prefix| name.starts_with(prefix))
            });
            if !tests.is_empty() {
                suites.push(Suite {
                    binary,
                    tests,
                    again,
                });
            }
        }
    }
    Ok(Some(suites))
}

impl Suite {
    /// Runs it with a seed; a command for each test that failed. These are left out of later runs: once is enough to know.
    fn run(&mut self, seed: u64, effort: Effort, left: Duration) -> io::Result<Vec<String>> {
        let start = Instant::now();
        let (before, flags) = self.again;
        let selection = self.binary.selection();
        let mut command = self.binary.command();
        command.args(&self.tests).arg("--exact");
        command.env("VELLUM_SEED", seed.to_string());
        let mut settings = format!("VELLUM_SEED={seed}");
        if effort == Effort::Thorough {
            command.env("VELLUM_THOROUGH", "1");
            settings.push_str(" VELLUM_THOROUGH=1");
        }
        if let Ok(rounds) = std::env::var("VELLUM_ROUNDS") {
            settings.push_str(&format!(" VELLUM_ROUNDS={rounds}"));
        }
        let again = format!("{settings} {before}cargo test {flags}{selection} -- --exact");
        let end = binaries::run(&mut command, effort.limit(left))?;
        let (how, said) = match &end {
            End::Passed(_) => ("ok", None),
            End::Failed(said) => ("FAILED", Some(said)),
            End::Hung(said) if effort == Effort::Short && !said.contains(FAILED) => ("cut", None),
            End::Hung(said) => ("no end", Some(said)),
        };
        println!(
            "{:>6.1} s  {how:<6}  seed {seed:<10}  {selection} ({} tests)",
            start.elapsed().as_secs_f64(),
            self.tests.len()
        );
        let Some(said) = said else {
            return Ok(Vec::new());
        };
        println!("{said}");
        let mut failed = Failed::default();
        said.lines().for_each(|line| failed.line(line));
        let mut failures: Vec<String> = failed
            .tests
            .iter()
            .map(|(name, said)| format!("{again} {name} # {said}"))
            .collect();
        if failures.is_empty() {
            failures.push(format!("{again} {} # {how}", self.tests.join(" ")));
            self.tests.clear();
        }
        self.tests.retain(|test| !failed.tests.contains_key(test));
        Ok(failures)
    }
}

/// What the test harness says of tests that failed.
#[derive(Default)]
struct Failed {
    /// What each said first.
    tests: BTreeMap<String, String>,
    /// Whose output is being shown, and whether its message comes next.
    shown: Option<(String, bool)>,
}

impl Failed {
    fn line(&mut self, line: &str) {
        if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(FAILED))
        {
            self.tests.entry(name.to_owned()).or_default();
        } else if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.shown = Some((name.to_owned(), false));
        } else if let Some((name, next)) = &mut self.shown {
            if *next {
                let said = self.tests.entry(name.clone()).or_default();
                *said = line.chars().take(120).collect();
                self.shown = None;
            } else {
                *next = line.contains("panicked at");
            }
        }
    }
}

/// Runs again what was kept; what still fails, and what runs no test any more: a test that is gone, or has another name, says nothing of its bug.
fn replay_kept(workspace: &Workspace, kept: &Path) -> io::Result<Vec<String>> {
    let text = match std::fs::read_to_string(kept) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut failures = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        println!("\n=== soak: kept: {line}");
        let mut command = Command::new("sh");
        // Behind `#` stands what was said: the shell leaves it out.
        command.current_dir(&workspace.root).args(["-c", line]);
        let said = match binaries::run(&mut command, LIMIT)? {
            End::Passed(said) if tests_in(&said) > 0 => continue,
            End::Passed(said) => format!("{said}\nno test was run: has it another name now?"),
            End::Failed(said) | End::Hung(said) => said,
        };
        println!("{said}");
        failures.push(line.to_owned());
    }
    Ok(failures)
}

/// How many tests passed, by what was said.
fn tests_in(said: &str) -> u64 {
    let mut tally = Tally::default();
    said.lines().for_each(|line| tally.line(line));
    tally.passed
}

/// Adds what is not kept yet.
fn keep(kept: &Path, failures: &[String]) -> io::Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let there = std::fs::read_to_string(kept).unwrap_or_default();
    if let Some(folder) = kept.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(kept)?;
    for failure in failures {
        if !there.lines().any(|line| line == failure) {
            writeln!(file, "{failure}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_is_found_with_what_it_said_first() {
        let mut failed = Failed::default();
        let said = "test a::prop_x ... ok\ntest prop_y ... FAILED\nfailures:\n---- prop_y stdout ----\nVELLUM_SEED=3\n\
                    thread 'prop_y' panicked at a.rs:1:2:\nit is wrong\nmore\nfailures:\n    prop_y";
        said.lines().for_each(|line| failed.line(line));
        let expected = BTreeMap::from([("prop_y".to_owned(), "it is wrong".to_owned())]);
        assert_eq!(failed.tests, expected);
    }

    #[test]
    fn seeds_follow_from_a_seed_and_are_fresh_without_one() {
        let some = |from| {
            let mut seeds = Seeds::new(from);
            [seeds.next(), seeds.next(), seeds.next()]
        };
        assert_eq!(some(Some(7)), some(Some(7)));
        assert_ne!(some(Some(7)), some(Some(8)));
        assert_ne!(some(None), some(None));
    }

    #[test]
    fn what_failed_is_kept_once_and_a_test_that_is_gone_is_not_mended() {
        const PASSES: &str = "echo 'test result: ok. 1 passed; 0 failed' # a";
        const GONE: &str = "echo 'test result: ok. 0 passed; 0 failed; 7 filtered out' # c";
        let folder = std::env::temp_dir().join(format!("soak-{}", std::process::id()));
        let kept = folder.join("corpus/failures.txt");
        for _ in 0..2 {
            keep(&kept, &[PASSES.into(), "false # b".into()]).unwrap();
        }
        keep(&kept, &[GONE.into()]).unwrap();
        let text = std::fs::read_to_string(&kept).unwrap();
        assert_eq!(text, format!("{PASSES}\nfalse # b\n{GONE}\n"));
        let workspace = Workspace {
            root: folder.clone(),
            packages: Vec::new(),
        };
        let failures = replay_kept(&workspace, &kept).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            failures,
            ["false # b", GONE],
            "what passes now is no failure"
        );
    }
}
