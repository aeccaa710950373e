//! PostgreSQL and Vellum, in turn on one machine: processor time of the server for what a client does.
//!
//! Time on the wall says little where clients and server share two cores; what the server takes for a transaction says what a machine of any size can
//! serve. It is that of the server's process and its children, before and after. Both servers commit asynchronously, as the goals are given: their
//! clients ask for it ([`ASYNCHRONOUS`]).
//!
//! Not measured: latencies, anything beyond one machine; the first load of PostgreSQL finds its caches empty.

use crate::workspace::{Workspace, cargo};
use std::fs;
use std::io::{self, Error};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a session is asked for at its begin.
pub const ASYNCHRONOUS: &str = "-c synchronous_commit=off";
/// How often each is measured.
pub const ROUNDS: usize = 3;
/// How long a server may take to begin.
const START: Duration = Duration::from_secs(120);
/// Where Debian keeps the programs of each version of PostgreSQL.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The two servers, each on an empty folder.
pub struct Servers {
    /// PostgreSQL and Vellum. They end before their folder goes.
    servers: [Server; 2],
    folder: Folder,
    programs: PathBuf,
}

/// What was measured of something: its name, and of each server processor time in us, once a round.
pub struct Row(String, [Vec<f64>; 2]);

impl Servers {
    /// Builds Vellum and starts both; `None`, and says why, where there is no PostgreSQL that has the needed programs beside its server's, or
    /// Vellum cannot be built.
    pub fn start(workspace: &Workspace, needed: &[&str]) -> io::Result<Option<Self>> {
        let Some(programs) = programs(needed) else {
            let needed = needed.join(" and ");
            let with = if needed.is_empty() { "" } else { " with its " };
            eprintln!("there is no PostgreSQL{with}{needed} (below {VERSIONS})");
            return Ok(None);
        };
        let built = cargo()
            .args(["build", "--release", "--package", "vellum-cli"])
            .current_dir(&workspace.root)
            .status()?;
        if !built.success() {
            return Ok(None);
        }
        let folder = Folder::new()?;
        let servers = [
            Server::postgresql(&programs, &folder.0)?,
            Server::vellum(&workspace.target().join("release/vellum"), &folder.0)?,
        ];
        Ok(Some(Self {
            servers,
            folder,
            programs,
        }))
    }

    /// Where PostgreSQL's programs are.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// A folder that goes with this.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// PostgreSQL and Vellum.
    pub fn each(&self) -> &[Server; 2] {
        &self.servers
    }

    /// Does something with one server after the other, `rounds` times; `what` gets the round and says how many transactions it was.
    pub fn in_turn(
        &self,
        name: &str,
        rounds: usize,
        mut what: impl FnMut(&Server, usize) -> io::Result<f64>,
    ) -> io::Result<Row> {
        let mut found = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            for (server, found) in self.servers.iter().zip(&mut found) {
                let before = server.processor_ticks()?;
                let transactions = what(server, round)?;
                let each = server.seconds_since(before)? * 1e6 / transactions;
                eprintln!("{name}, round {round}: {}: {each:.1} us", server.name);
                found.push(each);
            }
        }
        Ok(Row(name.to_owned(), found))
    }
}

/// Prints the medians, under a line that says what they are of.
pub fn print(title: &str, rows: Vec<Row>) {
    println!("{title}");
    println!("| what | PostgreSQL | Vellum | ratio |\n| --- | --- | --- | --- |");
    for Row(name, [one, other]) in rows {
        let (one, other) = (median(one), median(other));
        println!("| {name} | {one:.1} | {other:.1} | {:.2} |", one / other);
    }
}

fn median(mut found: Vec<f64>) -> f64 {
    found.sort_by(f64::total_cmp);
    let half = found.len() / 2;
    match found.len() % 2 {
        0 => f64::midpoint(found[half - 1], found[half]),
        _ => found[half],
    }
}

/// The folder of the newest PostgreSQL's programs that has the needed ones beside the server's.
fn programs(needed: &[&str]) -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    let complete = |folder: &PathBuf| {
        let mut needed = ["initdb", "postgres"].iter().chain(needed);
        needed.all(|name| folder.join(name).exists())
    };
    let number = |folder: &PathBuf| {
        let version = folder.parent().and_then(Path::file_name);
        version.and_then(|version| version.to_str()?.parse::<u32>().ok())
    };
    folders.filter(complete).max_by_key(number)
}

/// A folder of our own that is removed again.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let name = format!("vellum-xtask-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that runs and lets everybody in; it ends when this is dropped.
pub struct Server {
    pub name: &'static str,
    pub port: u16,
    /// Its first user, whose name is that of its database, too.
    pub user: &'static str,
    child: Child,
}

impl Server {
    /// A cluster of its own. PostgreSQL refuses to run as root: then it is run as the user `postgres`.
    fn postgresql(programs: &Path, folder: &Path) -> io::Result<Self> {
        let data = folder.join("postgresql");
        let root = fs::metadata("/proc/self")?.uid() == 0;
        let program = |name: &str| {
            let program = programs.join(name);
            if !root {
                return Command::new(program);
            }
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "postgres", "--regid", "postgres"]);
            command.args(["--clear-groups", "--"]).arg(program);
            command
        };
        fs::create_dir(&data)?;
        if root {
            whole(Command::new("chown").arg("postgres:postgres").arg(&data))?;
        }
        whole(
            program("initdb")
                .args(["-A", "trust", "-U", "postgres", "-D"])
                .arg(&data),
        )?;
        let port = free_port()?;
        let child = program("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-c", "shared_buffers=1GB"])
            .args(["-c", "listen_addresses=127.0.0.1", "-c"])
            .arg("unix_socket_directories=")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Self::begun("PostgreSQL", "postgres", port, child)
    }

    fn vellum(program: &Path, folder: &Path) -> io::Result<Self> {
        let rules = folder.join("rules");
        fs::write(&rules, "host all all 127.0.0.1/32 trust\n")?;
        let port = free_port()?;
        let child = Command::new(program)
            .args(["serve", "--data"])
            .arg(folder.join("vellum"))
            .args(["--listen", &format!("127.0.0.1:{port}"), "--host-rules"])
            .arg(&rules)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Self::begun("Vellum", "vellum", port, child)
    }

    fn begun(name: &'static str, user: &'static str, port: u16, child: Child) -> io::Result<Self> {
        let mut server = Self {
            name,
            port,
            user,
            child,
        };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if server.child.try_wait()?.is_some() || started.elapsed() > START {
                return Err(Error::other(format!("{name} has not begun")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        // PostgreSQL opens its socket before it lets anybody in.
        std::thread::sleep(Duration::from_secs(1));
        Ok(server)
    }

    /// Processor time of the server and its children, those that have ended among them, in ticks.
    fn processor_ticks(&self) -> io::Result<u64> {
        let root = self.child.id();
        let mut ticks = 0;
        for entry in fs::read_dir("/proc")?.flatten() {
            let Ok(number) = entry.file_name().to_string_lossy().parse::<u32>() else {
                continue;
            };
            // It may have ended meanwhile.
            let Ok(text) = fs::read_to_string(entry.path().join("stat")) else {
                continue;
            };
            let Some((parent, own, ended)) = times(&text) else {
                continue;
            };
            if number == root {
                ticks += own + ended;
            } else if parent == root {
                ticks += own;
            }
        }
        Ok(ticks)
    }

    fn seconds_since(&self, before: u64) -> io::Result<f64> {
        // Linux counts a hundred a second for programs, whatever it does itself.
        let ticks = self.processor_ticks()?.saturating_sub(before);
        Ok(f64::from(u32::try_from(ticks).unwrap_or(u32::MAX)) / 100.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let number = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &number]).status();
        let _ = self.child.wait();
    }
}

/// Of a line of `/proc/PID/stat`: the parent, the process's own time, and that of children that have ended.
fn times(stat: &str) -> Option<(u32, u64, u64)> {
    // The name stands in parentheses, and may have blanks and parentheses.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let parent = u32::try_from(number(1)?).ok()?;
    Some((parent, number(11)? + number(12)?, number(13)? + number(14)?))
}

fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    listener.local_addr().map(|address| address.port())
}

/// Runs a program to its end; what it prints.
pub fn whole(command: &mut Command) -> io::Result<String> {
    let done = command.stdin(Stdio::null()).output()?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(Error::other(format!("{command:?}: {said}")))
}

#[cfg(test)]
mod tests {
    use super::{median, times};

    #[test]
    fn what_the_system_prints_of_a_process_is_read() {
        let stat = "17 (a (b) c) S 3 17 17 0 -1 4194304 1 2 3 4 50 6 70 8 20 0 1 0\n";
        assert_eq!(times(stat), Some((3, 56, 78)));
        assert_eq!(times("17"), None);
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}
