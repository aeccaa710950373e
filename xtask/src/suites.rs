//! The test suites: everything on the standard library, and what is written for loom and shuttle.
//!
//! A crate has a loom (shuttle) suite if it has a test whose name begins with `loom_` (`shuttle_`).
//! These are compiled with `--cfg loom` (`--cfg shuttle`), which switches `vellum_sync` over, into
//! a target folder of their own, because the flag would throw away everything else's build.

use crate::steps::Steps;
use crate::workspace::{Workspace, cargo};
use std::io;
use std::path::Path;
use std::process::Command;

/// The two model checkers that `vellum_sync` knows.
const CHECKERS: [&str; 2] = ["loom", "shuttle"];

/// How many tests of a binary run at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Runs every test of the workspace: unit, integration, documentation, loom, shuttle.
///
/// # Errors
/// If the source cannot be searched for suites.
pub fn all(workspace: &Workspace, steps: &mut Steps) -> io::Result<()> {
    let mut everything = test(workspace);
    // Most tests wait half of their time, for the disk or for each other. (A checker's compute.)
    if std::env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        everything.env(THREADS, (2 * cores).to_string());
    }
    steps.tests("tests", 1, everything.arg("--workspace"));
    for checker in CHECKERS {
        if let Some(mut suite) = checked(workspace, checker)? {
            let name = format!("{checker}: {}", suite.names.join(", "));
            steps.tests(&name, suite.least, &mut suite.command);
        }
    }
    Ok(())
}

/// The suite of a checker.
pub struct Checked {
    /// Runs it.
    pub command: Command,
    /// The packages that have tests of it.
    pub names: Vec<String>,
    /// Tests that are written.
    pub least: u64,
}

/// The tests that are written for `checker`; `None` if there are none.
///
/// # Errors
/// If the source cannot be searched for them.
pub fn checked(workspace: &Workspace, checker: &str) -> io::Result<Option<Checked>> {
    let suites = find(workspace, checker)?;
    if suites.is_empty() {
        return Ok(None);
    }
    let least = suites.iter().map(|(_, count)| count).sum();
    let names: Vec<String> = suites.into_iter().map(|(name, _)| name).collect();
    let mut command = test(workspace);
    command.args(["--release", "--tests", "--target-dir"]);
    command.arg(workspace.root.join(format!("target-{checker}")));
    for name in &names {
        command.args(["-p", name]);
    }
    command.arg(format!("{checker}_"));
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg {checker}"));
    // What makes the product fast makes these builds slow, and assertions are what they are for.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off");
    command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
    Ok(Some(Checked {
        command,
        names,
        least,
    }))
}

/// `cargo test` as every suite wants it: all binaries, even after one failed.
fn test(workspace: &Workspace) -> Command {
    let mut command = cargo();
    command
        .current_dir(&workspace.root)
        .args(["test", "--no-fail-fast"]);
    if std::env::var_os("CI").is_some() {
        command.arg("--locked");
    }
    command
}

/// Packages that have tests for `checker`, with the number of these.
fn find(workspace: &Workspace, checker: &str) -> io::Result<Vec<(String, u64)>> {
    let mut suites = Vec::new();
    for package in &workspace.packages {
        let mut count = 0;
        // The crates' sources and tests; this program names the prefixes without having such tests.
        for folder in ["src", "tests"] {
            if package.name != env!("CARGO_PKG_NAME") {
                count += count_below(&workspace.root.join(&package.folder).join(folder), checker)?;
            }
        }
        if count > 0 {
            suites.push((package.name.clone(), count));
        }
    }
    Ok(suites)
}

fn count_below(folder: &Path, checker: &str) -> io::Result<u64> {
    let mut count = 0;
    if !folder.is_dir() {
        return Ok(0);
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            count += count_below(&path, checker)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            count += count_tests(&std::fs::read_to_string(path)?, checker);
        }
    }
    Ok(count)
}

/// Number of functions in `text` that are named for `checker` and stand under `#[test]`.
fn count_tests(text: &str, checker: &str) -> u64 {
    let mut under_test = false;
    let mut count = 0;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            under_test = true;
        } else if let Some(name) = line.strip_prefix("fn ") {
            count += u64::from(under_test && name.starts_with(&format!("{checker}_")));
            under_test = false;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_a_checker_are_counted_and_what_only_looks_like_one_is_not() {
        let text = "#[test]\n#[should_panic]\nfn loom_a() {}\nfn loom_model() {}\n#[test]\nfn shuttle_b() {}\n\
                    // #[test] fn loom_c() {}\n    #[test]\n    fn loom_d() {}";
        assert_eq!(count_tests(text, "loom"), 2);
        assert_eq!(count_tests(text, "shuttle"), 1);
    }
}
