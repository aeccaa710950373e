//! Installs the clients of other languages that the tests of `frontend/cli` talk to the server with, into `target/clients`, by the package managers of those
//! languages, in the versions that stand beside the tests.
//!
//! What cannot be installed (no such language here, no network) is told, and its tests say that they are skipped: this never fails.

use crate::binaries::{End, run};
use crate::workspace::Workspace;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Where the tests are, from the root.
const FOLDER: &str = "crates/frontend/cli/tests/clients";
/// Longest time that one package manager may take.
const LIMIT: Duration = Duration::from_secs(120);

/// A language.
struct Kind {
    /// Folder below `target/clients`.
    name: &'static str,
    /// What says which versions are wanted, beside the tests.
    wanted: &'static str,
    /// The commands, given that file and the folder.
    commands: fn(&Path, &Path) -> io::Result<Vec<Command>>,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "python",
        wanted: "requirements.txt",
        commands: python,
    },
    Kind {
        name: "node",
        wanted: "package.json",
        commands: node,
    },
    Kind {
        name: "java",
        wanted: "jdbc.txt",
        commands: java,
    },
];

/// Installs what is not there in the wanted versions.
///
/// # Errors
/// If files of this repository cannot be read, or `target` not be written.
pub fn install(workspace: &Workspace) -> io::Result<bool> {
    let target = workspace.target();
    for kind in KINDS {
        let wanted = workspace.root.join(FOLDER).join(kind.wanted);
        let versions = std::fs::read(&wanted)?;
        let folder = target.join("clients").join(kind.name);
        let stamp = folder.join("installed");
        if std::fs::read(&stamp).is_ok_and(|installed| installed == versions) {
            println!("clients: {} is there", kind.name);
            continue;
        }
        // What another version left behind.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        match all((kind.commands)(&wanted, &folder)?) {
            None => {
                std::fs::write(&stamp, versions)?;
                println!("clients: {} is installed", kind.name);
            }
            Some(said) => println!(
                "clients: {} could not be installed, its tests are skipped: {said}",
                kind.name
            ),
        }
    }
    Ok(true)
}

/// Runs commands one after the other; what the first that did not end well said.
fn all(commands: Vec<Command>) -> Option<String> {
    commands.into_iter().find_map(|mut command| {
        let said = match run(&mut command, LIMIT) {
            Ok(End::Passed(_)) => return None,
            Ok(End::Failed(said)) => said,
            Ok(End::Hung(said)) => format!("it took too long: {said}"),
            Err(error) => error.to_string(),
        };
        let name = command.get_program().to_string_lossy().into_owned();
        let last = said
            .trim_end()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        Some(format!("{name}: {last}"))
    })
}

fn python(wanted: &Path, folder: &Path) -> io::Result<Vec<Command>> {
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(folder);
    let mut install = Command::new(folder.join("bin/python"));
    install
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--retries",
            "1",
            "--disable-pip-version-check",
            "-r",
        ])
        .arg(wanted);
    Ok(vec![make, install])
}

fn node(wanted: &Path, folder: &Path) -> io::Result<Vec<Command>> {
    std::fs::copy(wanted, folder.join("package.json"))?;
    let mut install = Command::new("npm");
    install
        .args([
            "install",
            "--no-fund",
            "--no-audit",
            "--ignore-scripts",
            "--fetch-retries",
            "1",
        ])
        .current_dir(folder);
    Ok(vec![install])
}

fn java(wanted: &Path, folder: &Path) -> io::Result<Vec<Command>> {
    let artifact = std::fs::read_to_string(wanted)?;
    let mut fetch = Command::new("mvn");
    fetch
        .args(["-q", "-B", "dependency:copy", "-Dmdep.stripVersion=true"])
        .arg(format!("-Dartifact={}", artifact.trim()))
        .arg(format!("-DoutputDirectory={}", folder.display()))
        // Not in a folder that has a project.
        .current_dir(folder);
    Ok(vec![fetch])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_installed_says_so_and_is_no_error() {
        let mut fails = Command::new("sh");
        fails.args(["-c", "echo first; echo no network >&2; exit 1"]);
        assert_eq!(all(vec![fails]).as_deref(), Some("sh: no network"));
        let missing = all(vec![Command::new("no-such-package-manager")]);
        assert!(missing.is_some_and(|said| said.starts_with("no-such-package-manager: ")));
        assert_eq!(all(vec![Command::new("true")]), None);
    }
}
