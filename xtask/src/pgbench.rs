//! pgbench on PostgreSQL and on Vellum, in turn on one machine: processor time of the server for a transaction ([`crate::servers`]).

use crate::servers::{self, ASYNCHRONOUS, ROUNDS, Server, Servers, whole};
use crate::workspace::Workspace;
use std::io::{self, Error};
use std::path::Path;
use std::process::Command;

const SCALE: &str = "20";
const CLIENTS: &str = "8";

/// What is measured: its name, and pgbench's arguments.
const RUNS: [(&str, &[&str]); 4] = [
    ("lookups, simple", &["-S", "-M", "simple"]),
    ("lookups, prepared", &["-S", "-M", "prepared"]),
    ("TPC-B, simple", &["-M", "simple"]),
    ("TPC-B, prepared", &["-M", "prepared"]),
];

/// Loads and runs pgbench on both, and prints a table.
pub fn run(workspace: &Workspace, seconds: u64) -> io::Result<bool> {
    let Some(both) = Servers::start(workspace, &["pgbench"])? else {
        return Ok(false);
    };
    let programs = both.programs();
    let load = both.in_turn(&format!("load of scale {SCALE}"), 1, |server, _| {
        pgbench(server, programs, &["-i", "-q", "-s", SCALE]).map(|_| 1.0)
    })?;
    let mut rows = vec![load];
    let length = seconds.to_string();
    for (name, arguments) in RUNS {
        let mut all = vec!["-n", "-c", CLIENTS, "-j", "2", "-T", &length];
        all.extend(arguments);
        rows.push(both.in_turn(name, ROUNDS, |server, _| {
            let said = pgbench(server, programs, &all)?;
            transactions(&said).ok_or_else(|| {
                Error::other(format!("pgbench does not say how many there were: {said}"))
            })
        })?);
    }
    let title = format!(
        "{CLIENTS} clients, scale {SCALE}, {seconds} s a run; processor time of the server in us, medians of {ROUNDS} rounds (the load: once)"
    );
    servers::print(&title, rows);
    Ok(true)
}

/// What pgbench says of its transactions.
fn transactions(said: &str) -> Option<f64> {
    let line = said
        .lines()
        .find(|line| line.starts_with("number of transactions actually processed:"))?;
    let count = line.rsplit(' ').next()?.split('/').next()?;
    count.parse().ok()
}

fn pgbench(server: &Server, programs: &Path, arguments: &[&str]) -> io::Result<String> {
    let mut command = Command::new(programs.join("pgbench"));
    command
        .args(["-h", "127.0.0.1", "-p", &server.port.to_string()])
        .args(["-U", server.user])
        .args(arguments)
        .arg(server.user)
        .env("PGOPTIONS", ASYNCHRONOUS);
    whole(&mut command)
}

#[cfg(test)]
mod tests {
    use super::transactions;

    #[test]
    fn what_pgbench_prints_is_read() {
        let said = "tps\nnumber of transactions actually processed: 1234\nmore 5\n";
        assert_eq!(transactions(said), Some(1234.0));
        let of = "number of transactions actually processed: 80/80\n";
        assert_eq!(transactions(of), Some(80.0));
        assert_eq!(transactions("nothing"), None);
    }
}
