//! Chores of the repository: `cargo xtask <chore>`.
//!
//! | chore | what |
//! | --- | --- |
//! | `test` | every test: unit, integration, documentation, loom, shuttle; the last line counts them |
//! | `style` | format, clippy, documentation, tidy |
//! | `ci` | `style`, then `test` |
//! | `tidy` | the rules of the house that no compiler checks |
//! | `clients` | installs what the tests of other languages' clients need, where that is possible |
//! | `planted` | whether the tools of `testing` catch the bugs that are planted for them |
//! | `soak MINUTES` | the random suites with fresh seeds |
//! | `miri`, `tsan` | the same tests under checkers of a nightly toolchain; exit code 77 if there is none |
//! | `count WORKLOAD` | instructions and cache misses of one operation, or of one row (`load`, `scan`); `few`: of two workloads; `all`: of every one; `--check`: whether they are more than `docs/benchmarks/counts.md` says, `--update`: writes it |
//! | `flame WORKLOAD` | a flame graph, by perf or by callgrind |
//! | `held WORKLOAD SECONDS [ARGUMENT…]` | what an old snapshot costs a workload of `vellum-bench`, beside the same without one on the other processor |
//! | `pgbench [SECONDS]` | pgbench on PostgreSQL and on Vellum: processor time of the server for a transaction |
//! | `jdbc [SECONDS]` | TPC-C and TATP through JDBC, measured in the same way |
#![forbid(unsafe_code)]

mod binaries;
mod callgrind;
mod clients;
mod count;
mod flame;
mod held;
mod jdbc;
mod pgbench;
mod planted;
mod sanitize;
mod servers;
mod soak;
mod steps;
mod suites;
mod tally;
mod tidy;
mod workspace;

use std::io;
use std::process::ExitCode;
use steps::Steps;
use workspace::{Workspace, cargo};

const USAGE: &str = "\
cargo xtask <chore>
  test          every test: unit, integration, documentation, loom, shuttle
  style         format, clippy, documentation, tidy
  ci            style, then test
  tidy          the rules of the house that no compiler checks
  clients       installs what the tests of other languages' clients need
  planted       whether the tools of testing/ catch the bugs that are planted for them
  soak MINUTES  the random suites with fresh seeds
  miri, tsan    tests under miri and the thread sanitizer, if there is a nightly toolchain
  count NAME    instructions and cache misses of one operation (read, rmw, update, sync, tpcc, tatp, queue, hot, hekaton)
                or row (load, scan), or of few or all; --check: whether they are more than docs/benchmarks/counts.md says; --update: writes it
  flame NAME    a flame graph of the same workloads, by perf or by callgrind
  held NAME SECONDS [ARGUMENT...]
                what an old snapshot costs a workload of vellum-bench, beside the same without one on the other processor
  pgbench [SECONDS]
                pgbench on PostgreSQL and on Vellum in turn: processor time of the server for a transaction; 10 s a run
  jdbc [SECONDS]
                TPC-C and TATP through JDBC on both, measured in the same way; what `clients` installs is needed; 10 s a run";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["test"] => chore(false, true),
        ["style"] => chore(true, false),
        ["ci"] => chore(true, true),
        ["tidy"] => Workspace::load().and_then(|workspace| tidy::run(&workspace)),
        ["clients"] => Workspace::load().and_then(|workspace| clients::install(&workspace)),
        ["planted"] => Workspace::load().and_then(|workspace| planted::run(&workspace, "")),
        ["planted", name] => Workspace::load().and_then(|workspace| planted::run(&workspace, name)),
        ["soak", minutes] if minutes.parse::<u64>().is_ok() => {
            let minutes = minutes.parse().expect("checked in the pattern's guard");
            Workspace::load().and_then(|workspace| soak::run(&workspace, minutes))
        }
        ["miri"] => return sanitized(sanitize::miri),
        ["tsan"] => return sanitized(sanitize::races),
        ["count", name] => counted(name, count::Then::Tell),
        ["count", name, "--check"] => counted(name, count::Then::Check),
        ["count", name, "--update"] => counted(name, count::Then::Update),
        ["flame", name] => Workspace::load().and_then(|workspace| flame::run(&workspace, name)),
        ["held", name, seconds, more @ ..] if seconds.parse::<u64>().is_ok() => {
            let seconds = seconds.parse().expect("checked in the pattern's guard");
            Workspace::load().and_then(|workspace| held::run(&workspace, name, seconds, more))
        }
        ["pgbench"] => Workspace::load().and_then(|workspace| pgbench::run(&workspace, 10)),
        ["pgbench", seconds] if seconds.parse::<u64>().is_ok_and(|seconds| seconds > 0) => {
            let seconds = seconds.parse().expect("checked in the pattern's guard");
            Workspace::load().and_then(|workspace| pgbench::run(&workspace, seconds))
        }
        ["jdbc"] => Workspace::load().and_then(|workspace| jdbc::run(&workspace, 10)),
        ["jdbc", seconds] if seconds.parse::<u64>().is_ok_and(|seconds| seconds > 0) => {
            let seconds = seconds.parse().expect("checked in the pattern's guard");
            Workspace::load().and_then(|workspace| jdbc::run(&workspace, seconds))
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn counted(name: &str, then: count::Then) -> io::Result<bool> {
    Workspace::load().and_then(|workspace| count::run(&workspace, name, then))
}

/// Exit code of a chore that was left out, as test harnesses have it.
const LEFT_OUT: u8 = 77;

fn sanitized(chore: impl FnOnce(&Workspace) -> io::Result<sanitize::Sanitized>) -> ExitCode {
    match Workspace::load().and_then(|workspace| chore(&workspace)) {
        Ok(sanitize::Sanitized::Well) => ExitCode::SUCCESS,
        Ok(sanitize::Sanitized::Ill) => ExitCode::FAILURE,
        Ok(sanitize::Sanitized::LeftOut) => ExitCode::from(LEFT_OUT),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the steps that were asked for; the last line that is printed counts the tests.
fn chore(style: bool, test: bool) -> io::Result<bool> {
    let mut steps = Steps::default();
    let done = run_steps(style, test, &mut steps);
    let well = steps.summary();
    if let Err(error) = &done {
        println!("xtask: {error}");
        // What could not even be looked for is not without failure.
        steps.tally.close(false);
    }
    if test {
        println!("{}", steps.tally);
    }
    Ok(well && done.is_ok())
}

fn run_steps(style: bool, test: bool, steps: &mut Steps) -> io::Result<()> {
    let workspace = Workspace::load()?;
    if style {
        check_style(&workspace, steps);
    }
    if test {
        suites::all(&workspace, steps)?;
    }
    Ok(())
}

fn check_style(workspace: &Workspace, steps: &mut Steps) {
    let cargo = |arguments: &[&str]| {
        let mut command = cargo();
        command.current_dir(&workspace.root).args(arguments);
        if std::env::var_os("CI").is_some() && arguments[0] != "fmt" {
            command.arg("--locked");
        }
        command
    };
    steps.step("tidy", || tidy::run(workspace));
    steps.program("format", &mut cargo(&["fmt", "--all", "--check"]));
    let mut clippy = cargo(&["clippy", "--workspace", "--all-targets", "--keep-going"]);
    steps.program("clippy", clippy.args(["--", "-D", "warnings"]));
    let mut documentation = cargo(&["doc", "--workspace", "--no-deps", "--keep-going"]);
    steps.program(
        "documentation",
        documentation.env("RUSTDOCFLAGS", "-D warnings"),
    );
}
