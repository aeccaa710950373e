//! `cargo xtask soak MINUTES`: the random suites again and again, each time with a fresh seed.
//!
//! A random test is one whose name begins with `prop_` or `crash_`. It takes its seed from
//! `VELLUM_SEED` and the number of its rounds from `VELLUM_ROUNDS`.

use crate::workspace::{Workspace, cargo};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs random suites until `minutes` are over or one fails. True if none did.
///
/// The time is looked at between runs: the last run is finished.
///
/// # Errors
/// If cargo cannot be run.
pub fn run(workspace: &Workspace, minutes: u64) -> io::Result<bool> {
    let build = Command::new(cargo())
        .current_dir(&workspace.root)
        .args([
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--no-run",
        ])
        .status()?;
    if !build.success() {
        return Ok(false);
    }
    let end = Instant::now() + Duration::from_secs(minutes.saturating_mul(60));
    let mut runs = 0_u64;
    while runs == 0 || Instant::now() < end {
        let seed = std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish();
        println!("\n=== soak: run {runs}, seed {seed}");
        let status = command(workspace)
            .env("VELLUM_SEED", seed.to_string())
            .stdin(Stdio::null())
            .status()?;
        if !status.success() {
            println!("soak: failed; again with VELLUM_SEED={seed} and the test's name:");
            println!("  VELLUM_SEED={seed} cargo test --workspace -- NAME");
            return Ok(false);
        }
        runs += 1;
    }
    println!("soak: {runs} runs, none failed");
    Ok(true)
}

fn command(workspace: &Workspace) -> Command {
    let mut command = Command::new(cargo());
    command.current_dir(&workspace.root).args([
        "test",
        "--quiet",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--",
        "prop_",
        "crash_",
    ]);
    command
}
