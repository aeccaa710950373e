//! `cargo xtask soak MINUTES`: the random suites again and again, each time with a fresh seed.
//!
//! A random test is one whose name begins with `prop_`, `crash_` or `faults_`; beside them run the suites of shuttle, whose
//! schedules follow from the same seed. They take it from `VELLUM_SEED`, and the number of their rounds from `VELLUM_ROUNDS`.
//!
//! What fails is printed as the command that does it again, and kept in [`KEPT`]; the next soak begins with what is kept there. Who has mended a
//! bug takes its line out, and writes a `regress_` test.
//!
//! Not here: planted bugs (`planted`), measurements (`vellum-bench`). Not checked: that a failure comes again; some tests run real threads.

use crate::steps::stream;
use crate::suites;
use crate::workspace::{Workspace, cargo};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Where failures are kept: a command a line, behind it what was said.
const KEPT: &str = "testing/corpus/failures.txt";

/// Prefixes of the names of random tests.
const RANDOM: [&str; 3] = ["prop_", "crash_", "faults_"];

/// Longest time of one run of a suite: a test that hangs is a failure.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Runs random suites until `minutes` are over. True if nothing failed.
///
/// The time is looked at between runs: the last run is finished.
///
/// # Errors
/// If cargo cannot be run.
pub fn run(workspace: &Workspace, minutes: u64) -> io::Result<bool> {
    let kept = workspace.root.join(KEPT);
    let mut failures = replay_kept(workspace, &kept)?;
    let end = Instant::now() + Duration::from_secs(minutes.saturating_mul(60));
    let mut runs = 0_u64;
    while runs == 0 || Instant::now() < end {
        let seed = std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish();
        println!("\n=== soak: run {runs}, seed {seed}");
        for mut suite in suites(workspace)? {
            suite.command.env("VELLUM_SEED", seed.to_string());
            failures.extend(run_suite(suite, seed)?);
        }
        runs += 1;
    }
    println!("\n=== soak: {runs} runs, {} failures", failures.len());
    for failure in &failures {
        println!("{failure}");
    }
    keep(&kept, &failures)?;
    Ok(failures.is_empty())
}

/// Some tests, and how one of them is run again.
struct Suite {
    command: Command,
    /// The command before the test's name.
    again: String,
}

fn suites(workspace: &Workspace) -> io::Result<Vec<Suite>> {
    const EVERYTHING: [&str; 5] = [
        "--workspace",
        "--no-fail-fast",
        "--lib",
        "--bins",
        "--tests",
    ];
    let mut random = Command::new(cargo());
    random
        .current_dir(&workspace.root)
        .arg("test")
        .args(EVERYTHING)
        .arg("--")
        .args(RANDOM);
    let mut suites = vec![Suite {
        command: random,
        again: format!("cargo test {} -- --exact", EVERYTHING.join(" ")),
    }];
    if let Some(checker) = suites::checked(workspace, "shuttle")? {
        let again = format!(
            "RUSTFLAGS='--cfg shuttle' CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true cargo test --release --tests --target-dir target-shuttle \
             {} -- --exact",
            checker
                .names
                .iter()
                .map(|name| format!("-p {name}"))
                .collect::<Vec<_>>()
                .join(" ")
        );
        suites.push(Suite {
            command: checker.command,
            again,
        });
    }
    Ok(suites)
}

fn run_suite(suite: Suite, seed: u64) -> io::Result<Vec<String>> {
    let mut failed = Failed::default();
    let ok = stream(&mut merged(&suite.command), Some(LIMIT), |line| {
        failed.line(line)
    })?;
    let mut failures: Vec<String> = failed
        .tests
        .iter()
        .map(|(name, said)| format!("VELLUM_SEED={seed} {} {name} # {said}", suite.again))
        .collect();
    if !ok && failures.is_empty() {
        failures.push(format!(
            "VELLUM_SEED={seed} {} # no end, or no build",
            suite.again
        ));
    }
    Ok(failures)
}

/// The same command with its errors among its output.
fn merged(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec \"$@\" 2>&1", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell
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
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
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

/// Runs again what was kept; what still fails.
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
        if !stream(&mut command, Some(LIMIT), |_| {})? {
            failures.push(line.to_owned());
        }
    }
    Ok(failures)
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
    fn what_failed_is_kept_once() {
        let folder = std::env::temp_dir().join(format!("soak-{}", std::process::id()));
        let kept = folder.join("corpus/failures.txt");
        for _ in 0..2 {
            keep(
                &kept,
                &["VELLUM_SEED=1 true # a".into(), "false # b".into()],
            )
            .unwrap();
        }
        let text = std::fs::read_to_string(&kept).unwrap();
        assert_eq!(text, "VELLUM_SEED=1 true # a\nfalse # b\n");
        let workspace = Workspace {
            root: folder.clone(),
            packages: Vec::new(),
        };
        let failures = replay_kept(&workspace, &kept).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(failures, ["false # b"], "what passes now is no failure");
    }
}
