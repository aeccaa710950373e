//! A PostgreSQL server of our own: a cluster below the given directory, reached through a socket in it.
//!
//! PostgreSQL refuses to run as root: for root it runs as the user `postgres`, whom the cluster belongs to then, and who must be
//! able to come there: the given directory is made passable, those above it are not ours. The socket is named from
//! the cluster's own directory by the server and through a descriptor by clients: paths of sockets are short. The server ends
//! with the thread that started it, also where that one is killed.

use super::wire::{Failure, Wire};
use crate::PeerSettings;
use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vellum_workload::engine::{EngineError, Result};

/// Where Debian keeps the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Whom the server runs as where we are root.
const USER: &str = "postgres";
/// How long it may take to begin.
const START: Duration = Duration::from_secs(120);
/// Sessions beside those of the workload.
const MORE_SESSIONS: usize = 16;

/// A server that runs.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    programs: PathBuf,
    directory: PathBuf,
    /// Open, so that the socket has a short path.
    handle: File,
}

fn failed(error: std::io::Error) -> EngineError {
    EngineError::failed(error)
}

/// What `program --version` says, if it is there.
fn says(program: &Path) -> Option<String> {
    let told = Command::new(program).arg("--version").output().ok()?;
    told.status
        .success()
        .then(|| String::from_utf8_lossy(&told.stdout).into_owned())
}

/// The folder of the newest server's programs; empty where they are found without one.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let newest = versions
        .map(|version| version.path().join("bin"))
        .filter(|folder| says(&folder.join("postgres")).is_some())
        .max_by_key(|folder| {
            let version = folder.parent().and_then(Path::file_name);
            version.and_then(|version| version.to_str()?.parse::<u32>().ok())
        });
    newest.or_else(|| says(Path::new("postgres")).map(|_| PathBuf::new()))
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// What this machine lacks to run a server, if anything.
pub(crate) fn lacking() -> Option<String> {
    if programs().is_none() {
        return Some(format!(
            "PostgreSQL's server (below {VERSIONS}, or in PATH)"
        ));
    }
    if says(Path::new("setpriv")).is_none() {
        return Some("setpriv, of util-linux".to_owned());
    }
    let user = Command::new("id").arg(USER).output();
    if is_root() && !user.is_ok_and(|user| user.status.success()) {
        return Some(format!("a user {USER}: PostgreSQL does not run as root"));
    }
    None
}

/// `program`, run by the user whom the cluster belongs to.
fn command(program: &Path, ends_with_us: bool) -> Command {
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    if ends_with_us {
        command.args(["--pdeathsig", "INT"]);
    }
    command.arg("--").arg(program).stdin(Stdio::null());
    command
}

/// Runs it to its end.
fn run(command: &mut Command) -> Result<()> {
    let done = command.output().map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(EngineError::Unusable(format!("{command:?}: {said}")))
}

/// Makes the cluster's directory, of the user whom it will belong to.
fn make(directory: &Path, data: &Path) -> Result<()> {
    if !is_root() {
        return fs::create_dir(directory).map_err(failed);
    }
    run(Command::new("install")
        .args(["-d", "-m", "700", "-o", USER, "-g", USER])
        .arg(directory))?;
    let reaches = || run(command(Path::new("test"), false).arg("-x").arg(directory)).is_ok();
    if !reaches() {
        let mode = fs::metadata(data).map_err(failed)?.mode();
        fs::set_permissions(data, Permissions::from_mode(mode | 0o011)).map_err(failed)?;
    }
    if !reaches() {
        return Err(EngineError::Unusable(format!(
            "the user {USER} cannot come to {}: give a directory below one that all may pass",
            data.display()
        )));
    }
    Ok(())
}

impl Server {
    /// Makes the cluster where there is none, and starts its server.
    pub(super) fn start(settings: &PeerSettings) -> Result<Self> {
        if let Some(lacking) = lacking() {
            return Err(EngineError::Unusable(format!("there is no {lacking}")));
        }
        let programs = programs().unwrap_or_default();
        let data = settings.data.canonicalize().map_err(failed)?;
        let directory = data.join("postgresql");
        if !directory.join("PG_VERSION").exists() {
            make(&directory, &data)?;
            run(command(&programs.join("initdb"), false)
                .args([
                    "-A",
                    "trust",
                    "-U",
                    "postgres",
                    "-E",
                    "UTF8",
                    "--locale=C",
                    "-D",
                ])
                .arg(&directory)
                .current_dir(&directory))?;
        }
        let log = data.join("postgresql.log");
        let output = File::create(&log).map_err(failed)?;
        let mut server = command(&programs.join("postgres"), true);
        server.arg("-D").arg(&directory).current_dir(&directory);
        for setting in settings_of(settings) {
            server.args(["-c", &setting]);
        }
        let child = server
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            // What a terminal interrupts are the measured threads, not the server below them.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let handle = File::open(&directory).map_err(failed)?;
        let mut server = Self {
            child,
            programs,
            directory,
            handle,
        };
        server.wait_for_it(&log)?;
        Ok(server)
    }

    fn wait_for_it(&mut self, log: &Path) -> Result<()> {
        let begun = Instant::now();
        loop {
            let Err(error) = self.connect() else {
                return Ok(());
            };
            let ended = self.child.try_wait().map_err(failed)?;
            if ended.is_some() || begun.elapsed() > START {
                let told = fs::read_to_string(log).unwrap_or_default();
                let error = Failure::of_others(error);
                return Err(EngineError::Unusable(format!(
                    "PostgreSQL does not start: {error}; {}",
                    told.trim()
                )));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A connection.
    pub(super) fn connect(&self) -> super::wire::Result<Wire> {
        let directory = self.handle.as_raw_fd();
        Wire::connect(Path::new(&format!(
            "/proc/self/fd/{directory}/.s.PGSQL.5432"
        )))
    }
}

/// Settings beside PostgreSQL's own.
fn settings_of(settings: &PeerSettings) -> Vec<String> {
    let commit = if settings.sync { "on" } else { "off" };
    let mut list = vec![
        format!(
            "shared_buffers={}kB",
            (settings.memory_bytes / 1024).max(128)
        ),
        format!("max_connections={}", settings.sessions + MORE_SESSIONS),
        format!("synchronous_commit={commit}"),
    ];
    let fixed = [
        "fsync=on",
        "listen_addresses=",
        "unix_socket_directories=.",
        "port=5432",
        "default_transaction_isolation=repeatable read",
        // No checkpoint by size in a short run, as in the other engines; no replicas, one server.
        "max_wal_size=4GB",
        "wal_level=minimal",
        "max_wal_senders=0",
        // Tables of a key and a value, statements that are prepared while they are empty: always the key's index.
        "plan_cache_mode=force_generic_plan",
        "enable_seqscan=off",
        "enable_bitmapscan=off",
        "enable_sort=off",
        "jit=off",
        // A conflict is no news, nor is what each process does now.
        "log_min_messages=fatal",
        "update_process_title=off",
    ];
    list.extend(fixed.map(str::to_owned));
    list
}

impl Drop for Server {
    fn drop(&mut self) {
        let stopped = run(command(&self.programs.join("pg_ctl"), false)
            .args(["stop", "-m", "fast", "-w", "-t", "600", "-D"])
            .arg(&self.directory)
            .current_dir(&self.directory));
        if stopped.is_err() {
            // It has ended by itself, or will not: nobody is left to be told.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
