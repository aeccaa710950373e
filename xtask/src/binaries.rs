//! Test binaries: built once, then run as they are, one by one, so that sources may change meanwhile.
//!
//! Not here: suites that cargo runs as a whole (`suites`).

use crate::workspace::Workspace;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// Its package.
    pub package: String,
    /// Name of its target.
    pub name: String,
    /// `lib`, `bin` or `test`.
    kind: String,
    path: PathBuf,
    /// Where its tests expect to run.
    folder: PathBuf,
}

impl Binary {
    /// The arguments of `cargo test` that run it and nothing else.
    pub fn selection(&self) -> String {
        let package = &self.package;
        match &*self.kind {
            "lib" => format!("-p {package} --lib"),
            kind => format!("-p {package} --{kind} {}", self.name),
        }
    }

    /// A command that runs it, in its package's folder.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder);
        command
    }

    /// The names of its tests.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn tests(&self) -> io::Result<Vec<String>> {
        let output = self
            .command()
            .args(["--list", "--format", "terse"])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }
}

/// Builds the tests that `command`, a `cargo test`, would run; `None` if that fails (what failed was printed).
///
/// # Errors
/// If cargo cannot be run.
pub fn build(workspace: &Workspace, mut command: Command) -> io::Result<Option<Vec<Binary>>> {
    command
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let output = child.stdout.take().expect("it is piped");
    let mut binaries = Vec::new();
    for line in BufReader::new(output).lines() {
        binaries.extend(
            serde_json::from_str(&line?)
                .ok()
                .and_then(|message| artifact(workspace, &message)),
        );
    }
    Ok(child.wait()?.success().then_some(binaries))
}

/// The test binary that a message of cargo's is about.
fn artifact(workspace: &Workspace, message: &Value) -> Option<Binary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let below = folder.strip_prefix(&workspace.root).ok()?.to_str()?;
    let package = workspace
        .packages
        .iter()
        .find(|package| package.folder == below)?;
    Some(Binary {
        package: package.name.clone(),
        name: message["target"]["name"].as_str()?.to_owned(),
        kind: message["target"]["kind"][0].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
        folder: folder.to_owned(),
    })
}

/// How a program ended, with all that it said.
#[derive(Debug)]
pub enum End {
    /// Without an error; with all that it said.
    Passed(String),
    /// With one.
    Failed(String),
    /// Not at all: it was killed with everything that it had started.
    Hung(String),
}

/// Runs a program to its end, or to `limit`.
///
/// # Errors
/// If it cannot be run, or its output not be kept.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<End> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    // A file needs no reader.
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let output = std::env::temp_dir().join(format!("xtask-{}-{run}.txt", std::process::id()));
    let file = std::fs::File::create(&output)?;
    // A group of its own, so that everything below it can be ended.
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0)
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            let group = format!("-{}", child.id());
            Command::new("kill")
                .args(["-KILL", "--", &group])
                .status()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut said = Vec::new();
    std::fs::File::open(&output)?.read_to_end(&mut said)?;
    std::fs::remove_file(&output)?;
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok(match status {
        Some(status) if status.success() => End::Passed(said),
        Some(_) => End::Failed(said),
        None => End::Hung(said),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn test_binaries_are_found_in_what_cargo_says_and_programs_are_not() {
        let workspace = Workspace {
            root: "/r".into(),
            packages: vec![Package {
                name: "vellum-wal".into(),
                folder: "crates/wal".into(),
                dependencies: Vec::new(),
            }],
        };
        let message = |test: bool| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "manifest_path": "/r/crates/wal/Cargo.toml",
                "target": {"kind": ["test"], "name": "rounds"},
                "profile": {"test": test},
                "executable": "/r/target/debug/deps/rounds-1a2b",
            })
        };
        let binary = artifact(&workspace, &message(true)).expect("a binary");
        assert_eq!(binary.selection(), "-p vellum-wal --test rounds");
        assert_eq!(binary.path, Path::new("/r/target/debug/deps/rounds-1a2b"));
        assert_eq!(artifact(&workspace, &message(false)), None);
    }

    #[test]
    fn what_hangs_is_ended_with_what_it_said() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run(&mut command, Duration::from_secs(2)).unwrap()
        };
        assert!(matches!(shell("echo well"), End::Passed(said) if said == "well\n"));
        assert!(matches!(shell("echo ill >&2; exit 3"), End::Failed(said) if said == "ill\n"));
        assert!(
            matches!(shell("echo here; sleep 1000 & wait"), End::Hung(said) if said == "here\n")
        );
    }
}
