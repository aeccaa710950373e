//! TPC-C and TATP through JDBC (`bench/jdbc`) on PostgreSQL and on Vellum, in turn on one machine: processor time of the server for a transaction
//! ([`crate::servers`]).
//!
//! A transaction is one that has ended: committed, or rolled back as the workload's description lets it. What was lost to a conflict and run again counts
//! once, with the time of all its attempts. After the rounds the tables are checked, unmeasured.

use crate::servers::{self, ASYNCHRONOUS, ROUNDS, Server, Servers, whole};
use crate::workspace::Workspace;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the programs are, from the root.
const FOLDER: &str = "bench/jdbc";
/// Where `cargo xtask clients` puts the driver, below cargo's folder.
const DRIVER: &str = "clients/java/postgresql.jar";
const THREADS: &str = "4";

/// The workloads: their names in the table and for the program.
const WORKLOADS: [(&str, &str); 2] = [
    ("TPC-C, 4 warehouses, repeatable read", "tpcc"),
    ("TATP, 100,000 subscribers", "tatp"),
];

/// Loads, runs and checks both workloads on both, and prints a table.
pub fn run(workspace: &Workspace, seconds: u64) -> io::Result<bool> {
    for program in ["java", "javac"] {
        let found = Command::new(program)
            .arg("-version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !found.is_ok_and(|status| status.success()) {
            eprintln!("there is no {program}");
            return Ok(false);
        }
    }
    let driver = workspace.target().join(DRIVER);
    if !driver.exists() {
        eprintln!("there is no JDBC driver: `cargo xtask clients` installs it");
        return Ok(false);
    }
    let Some(both) = Servers::start(workspace, &[])? else {
        return Ok(false);
    };
    let classes = both.folder().join("classes");
    compile(&workspace.root.join(FOLDER), &driver, &classes)?;
    let path = std::env::join_paths([classes, driver]).map_err(Error::other)?;
    let program = |server: &Server, verb: &str, workload: &str, more: &[&str]| {
        let mut command = Command::new("java");
        command.arg("-cp").arg(&path).arg("Main").arg(url(server));
        whole(command.args([verb, workload]).args(more))
    };
    let mut rows = Vec::new();
    let length = seconds.to_string();
    for (name, workload) in WORKLOADS {
        rows.push(both.in_turn(&format!("{name}: load"), 1, |server, _| {
            program(server, "load", workload, &[]).map(|_| 1.0)
        })?);
        rows.push(both.in_turn(name, ROUNDS, |server, round| {
            let seed = (round + 1).to_string();
            let said = program(server, "run", workload, &[&length, THREADS, &seed])?;
            eprint!("{said}");
            transactions(&said)
                .ok_or_else(|| Error::other(format!("it is not said how many there were: {said}")))
        })?);
        for server in both.each() {
            program(server, "check", workload, &[])?;
        }
    }
    let title = format!(
        "{THREADS} connections, {seconds} s a run; processor time of the server in us, medians of {ROUNDS} rounds (the loads: once)"
    );
    servers::print(&title, rows);
    Ok(true)
}

fn compile(sources: &Path, driver: &Path, classes: &Path) -> io::Result<()> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(sources)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "java")
        {
            files.push(path);
        }
    }
    let mut command = Command::new("javac");
    command.arg("-d").arg(classes).arg("-cp").arg(driver);
    whole(command.args(files)).map(drop)
}

/// The database of a server, with what the driver is told: statements are prepared in the server from their first execution on, and inserts of a batch
/// are rewritten to few of many rows.
fn url(server: &Server) -> String {
    let &Server { port, user, .. } = server;
    let options = ASYNCHRONOUS.replace(' ', "%20").replace('=', "%3D");
    format!(
        "jdbc:postgresql://127.0.0.1:{port}/{user}?user={user}&prepareThreshold=1&reWriteBatchedInserts=true&options={options}"
    )
}

/// What the program says of its transactions.
fn transactions(said: &str) -> Option<f64> {
    let mut lines = said.lines();
    let count = lines.find_map(|line| line.strip_prefix("transactions "))?;
    count.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::transactions;

    #[test]
    fn what_the_program_prints_is_read() {
        let said = "seconds 5.00\ntransactions 1234\ncommitted 1200\n";
        assert_eq!(transactions(said), Some(1234.0));
        assert_eq!(transactions("nothing"), None);
    }
}
