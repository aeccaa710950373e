//! PostgreSQL 15 as a peer: a cluster of its own in a folder for temporary files, where one is installed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A cluster that runs until it is dropped. It keeps nothing: no fsync.
#[derive(Debug)]
pub struct Peer {
    binaries: PathBuf,
    directory: PathBuf,
    port: u16,
}

/// A program as a user that the server lets in: it refuses to run as root.
fn unprivileged(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    // The folder that a test runs in may be closed to others.
    command.current_dir("/");
    command
}

fn said(command: &mut Command) -> Option<String> {
    let Output { status, stdout, .. } = command.output().ok()?;
    let text = String::from_utf8(stdout).ok()?;
    status.success().then(|| text.trim().to_owned())
}

impl Peer {
    /// A new cluster, with collation C and time zone UTC; none if PostgreSQL 15 is not installed: the test is then counted as skipped
    /// (`xtask/src/tally.rs`).
    pub fn start() -> Option<Self> {
        let peer = Self::with("");
        if peer.is_none() {
            // Not by a macro: those are captured.
            let mut out = std::io::stdout();
            let _ = writeln!(out, "test skipped: PostgreSQL 15 is not installed");
        }
        peer
    }

    /// The same with further options of `postgres`; where there is no PostgreSQL, nothing is said of it.
    pub fn with(further: &str) -> Option<Self> {
        let binaries = PathBuf::from("/usr/lib/postgresql/15/bin");
        if !binaries.join("postgres").exists() {
            return None;
        }
        let folder =
            said(unprivileged(Path::new("mktemp")).args(["-d", "-t", "vellum-peer-XXXXXX"]))?;
        let directory = PathBuf::from(folder);
        let made = said(
            unprivileged(&binaries.join("initdb"))
                .args([
                    "-U",
                    "vellum",
                    "-A",
                    "trust",
                    "-E",
                    "UTF8",
                    "--locale=C",
                    "--no-sync",
                    "-D",
                ])
                .arg(&directory),
        );
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .ok()?
            .local_addr()
            .ok()?
            .port();
        let peer = Self {
            binaries,
            directory,
            port,
        };
        made?;
        let options = format!(
            "-c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c timezone=UTC \
             -c max_wal_size=4GB -c work_mem=64MB {further}"
        );
        let started = unprivileged(&peer.binaries.join("pg_ctl"))
            .args(["start", "-w", "-t", "120", "-l"])
            .arg(peer.directory.join("log"))
            .args(["-o", &options, "-D"])
            .arg(&peer.directory)
            .stdout(std::process::Stdio::null())
            .status();
        started.ok()?.success().then_some(peer)
    }

    /// A session.
    ///
    /// # Errors
    /// What it says.
    pub fn connect(&self) -> Result<postgres::Client, postgres::Error> {
        postgres::Config::new()
            .host("127.0.0.1")
            .port(self.port)
            .user("vellum")
            .dbname("postgres")
            .connect(postgres::NoTls)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // What is left behind lies in a folder for temporary files.
        let _ = unprivileged(&self.binaries.join("pg_ctl"))
            .args(["stop", "-m", "immediate", "-D"])
            .arg(&self.directory)
            .output();
        let _ = unprivileged(Path::new("rm"))
            .arg("-rf")
            .arg(&self.directory)
            .output();
    }
}
