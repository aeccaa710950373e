//! `cargo xtask miri` and `cargo xtask tsan`: what compilers can check at run time, where the toolchain has it (a nightly one).
//!
//! | chore | what it finds | what it runs |
//! | --- | --- | --- |
//! | `miri` | undefined behaviour: reads of what is not there, aliasing, misaligned words | unit tests of what is plain memory: `base`, `sync`, and of `buffer` the words and private copies of pages |
//! | `tsan` | data races between threads, on the machine's schedules | unit tests of `sync`, `wal`, `buffer`, `btree`, `txn`; the concurrent clients |
//!
//! Not covered: miri knows neither `mmap` with our flags nor io_uring, so the pool and real files are not run under it; the
//! thread sanitizer does not understand fences, so a pair of fences that orders relaxed accesses (page versions, watermarks) may be reported
//! though it is right (loom is for those: `cargo xtask test`). Server and SQL are not among what it runs: all of DataFusion would have to be built
//! for it. Neither is part of CI.

use crate::workspace::Workspace;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Packages and filters of tests that miri runs.
const MIRI: [(&str, &[&str]); 3] = [
    ("vellum-base", &[]),
    ("vellum-sync", &[]),
    ("vellum-buffer", &["tests::words", "private"]),
];

/// Packages that the thread sanitizer runs.
const RACES: [&str; 6] = [
    "vellum-sync",
    "vellum-wal",
    "vellum-buffer",
    "vellum-btree",
    "vellum-txn",
    "vellum-clients",
];

/// What such a run came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sanitized {
    /// Nothing was found.
    Well,
    /// Something was.
    Ill,
    /// It was left out: the toolchain lacks it. What to install was printed.
    LeftOut,
}

impl Sanitized {
    fn of(well: bool) -> Self {
        if well { Self::Well } else { Self::Ill }
    }
}

/// Undefined behaviour.
///
/// # Errors
/// If cargo cannot be run.
pub fn miri(workspace: &Workspace) -> io::Result<Sanitized> {
    if !answers(nightly(workspace).args(["miri", "--version"]))? {
        return missing("rustup toolchain install nightly --component miri,rust-src");
    }
    let mut well = true;
    for (package, filters) in MIRI {
        println!("\n=== miri: {package} {}", filters.join(" "));
        let mut command = nightly(workspace);
        command.args(["miri", "test", "-p", package, "--lib", "--"]);
        // Random tests read the clock for their seed; few rounds, as everything is a hundred times slower.
        command
            .args(filters)
            .env("MIRIFLAGS", "-Zmiri-disable-isolation");
        command.env("VELLUM_ROUNDS", "1");
        // Tests that panic on purpose take minutes to find their symbols.
        command.env("RUST_BACKTRACE", "0");
        well &= command.status()?.success();
    }
    Ok(Sanitized::of(well))
}

/// Data races.
///
/// # Errors
/// If cargo cannot be run.
pub fn races(workspace: &Workspace) -> io::Result<Sanitized> {
    if !has_library_source(workspace)? {
        return missing("rustup toolchain install nightly --component rust-src");
    }
    let mut command = nightly(workspace);
    // The standard library too, or what it does looks like races.
    command.args([
        "test",
        "-Zbuild-std",
        "--target",
        TARGET,
        "--lib",
        "--tests",
    ]);
    command
        .arg("--target-dir")
        .arg(workspace.root.join("target-tsan"));
    for package in RACES {
        command.args(["-p", package]);
    }
    command.env(
        "RUSTFLAGS",
        "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer",
    );
    Ok(Sanitized::of(command.status()?.success()))
}

/// Where the sanitizer exists and Vellum is tried.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn nightly(workspace: &Workspace) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(&workspace.root).arg("+nightly");
    // What a cargo that runs this says of itself is of another toolchain.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

fn answers(command: &mut Command) -> io::Result<bool> {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    match quiet.status() {
        Ok(status) => Ok(status.success()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a nightly toolchain has what the standard library is built from.
fn has_library_source(workspace: &Workspace) -> io::Result<bool> {
    let mut command = Command::new("rustc");
    command
        .current_dir(&workspace.root)
        .args(["+nightly", "--print", "sysroot"])
        .env_remove("RUSTUP_TOOLCHAIN");
    let root = match command.stderr(Stdio::null()).output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let root = String::from_utf8_lossy(&root).trim_end().to_owned();
    let library = Path::new(&root).join("lib/rustlib/src/rust/library/Cargo.lock");
    Ok(library.is_file())
}

fn missing(how: &str) -> io::Result<Sanitized> {
    println!("left out: the toolchain lacks it; {how}");
    Ok(Sanitized::LeftOut)
}
