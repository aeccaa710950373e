//! Lives of a server: it serves in a process of its own, sessions talk to it from theirs, and then it is killed.
//!
//! In a life one session may be killed before, in the middle of whatever it does: the others go on. What was under way has an end that nobody
//! knows. The files are verified, and the next life begins with the recovery. In the end this process starts the server,
//! reads everything, and stops it in good order; the workload judges what was recorded.
//!
//! Not deterministic: the seed replays what each session wants to do, and who is killed.

use crate::Workload;
use crate::client::{Client, Gone};
use crate::packets::{Listener, pair};
use postgres::{Client as Connection, NoTls};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use vellum_base::random::Random;
use vellum_clients::run::conclude;
use vellum_crash::kill::Victim;
use vellum_history::Recorder;

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Sessions at the same time.
    pub sessions: u64,
    /// Lives that end with a kill.
    pub lives: u64,
    /// Where everything random comes from.
    pub seed: u64,
}

/// Events of a life before the server is killed, at least and at most.
const EVENTS: [u64; 2] = [200, 500];
/// Transactions that a run must have acknowledged: most of the events of its last life.
const LEAST: usize = 60;
/// Longer than any start or login takes: who waits so long has failed.
const LONG: Duration = Duration::from_secs(60);
/// What a server says when it serves, before its port.
pub const SERVES: &str = "serves at port ";

/// A server in a process of its own, killed when dropped.
struct Server {
    victim: Victim,
    port: u16,
    complaints: JoinHandle<String>,
}

impl Server {
    fn start(program: &Path, directory: &Path) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg("serve").arg(directory).stdout(Stdio::piped());
        let mut child = spawn(command)?;
        let complaints = listen(child.stderr.take());
        let said = child.stdout.take().expect("it is piped");
        let victim = Victim(child);
        let mut line = String::new();
        BufReader::new(said)
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        match line.trim_end().strip_prefix(SERVES).map(str::parse) {
            Some(Ok(port)) => Ok(Self {
                victim,
                port,
                complaints,
            }),
            _ => {
                drop(victim);
                let what = complaints.join().unwrap_or_default();
                Err(format!("the server does not start: {line}{what}"))
            }
        }
    }

    /// Ends it, and says what it complained of.
    fn kill(self) -> String {
        drop(self.victim);
        self.complaints.join().unwrap_or_default()
    }
}

fn spawn(mut command: Command) -> Result<Child, String> {
    let command = command.stdin(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| error.to_string())
}

/// Everything that a process complains of, to its end.
fn listen(complaints: Option<ChildStderr>) -> JoinHandle<String> {
    let mut complaints = complaints.expect("it is piped");
    std::thread::spawn(move || {
        let mut text = String::new();
        // What was heard before a failure is better than nothing.
        let _ = complaints.read_to_string(&mut text);
        text
    })
}

/// Logs in, with the password that the server wrote.
///
/// # Errors
/// What the server says, or the file.
pub fn connect(port: u16, directory: &Path) -> Result<Connection, String> {
    let password = std::fs::read_to_string(directory.join("password"));
    let password = password.map_err(|error| error.to_string())?;
    let connection = postgres::Config::new()
        .host("127.0.0.1")
        .port(port)
        .user("vellum")
        .password(password.trim_end())
        .connect_timeout(LONG)
        .connect(NoTls);
    connection.map_err(|error| format!("no login: {error}"))
}

/// Takes down what the sessions of a life say, in the order in which they say it.
fn take_down(
    listener: &Listener,
    recorder: &Recorder,
    life: u64,
    heard: &AtomicU64,
) -> Result<(), String> {
    /// Sessions and transactions of a process, of which each has its own numbers from zero.
    const NUMBERS: u64 = 1 << 24;
    let mut packet = Vec::new();
    while let Some(number) = listener
        .next(&mut packet)
        .map_err(|error| error.to_string())?
    {
        let mut event: vellum_history::Event =
            serde_json::from_slice(&packet).map_err(|error| error.to_string())?;
        event.p += u64::from(number) * NUMBERS;
        event.t += u64::from(number) * NUMBERS;
        recorder.take(life, event);
        heard.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Starts session `number`; its events go to `mouth`.
fn start_session(
    program: &Path,
    arguments: &[String],
    number: u64,
    seed: u64,
    mouth: &OwnedFd,
) -> Result<Child, String> {
    let mouth = mouth.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("session").args(arguments);
    command.args([number, seed].map(|number| number.to_string()));
    command.stdout(mouth);
    spawn(command)
}

/// One life: true if anybody said anything.
fn live(
    program: &Path,
    directory: &Path,
    name: &str,
    (life, plan): (u64, Plan),
    server: Server,
    recorder: &Recorder,
    random: &mut Random,
) -> Result<(), String> {
    let (listener, mouth) = pair().map_err(|error| error.to_string())?;
    let arguments = [
        name.to_owned(),
        directory.display().to_string(),
        server.port.to_string(),
        life.to_string(),
    ];
    let mut sessions = Vec::new();
    let mut complaints = Vec::new();
    for number in 0..plan.sessions {
        let mut child = start_session(program, &arguments, number, random.next_u64(), &mouth)?;
        complaints.push(listen(child.stderr.take()));
        sessions.push(Victim(child));
    }
    // From here on only the sessions can speak, so the listener hears the end of the last.
    drop(mouth);
    let heard = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| take_down(&listener, recorder, life, &heard));
        // When enough was said, or from now on: also logins are cut off.
        let [least, most] = EVENTS;
        let wanted = match life == plan.lives || random.chance(3, 4) {
            true => random.between(least, most),
            false => 0,
        };
        while heard.load(Ordering::Relaxed) < wanted && !taking.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let part = |random: &mut Random| Duration::from_micros(random.between(2_000, 50_000));
        std::thread::sleep(part(random));
        if random.chance(1, 2) {
            drop(sessions.pop());
            std::thread::sleep(part(random));
        }
        let complained = server.kill();
        if !complained.is_empty() {
            return Err(format!("life {life}: the server complains: {complained}"));
        }
        // They notice that nobody answers, and end.
        let end = std::time::Instant::now() + LONG;
        for Victim(session) in &mut sessions {
            while matches!(session.try_wait(), Ok(None)) {
                if std::time::Instant::now() > end {
                    return Err(format!("life {life}: a session hangs"));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        drop(sessions);
        taking.join().map_err(|_| "the listener panicked")??;
        for complaint in complaints {
            let text = complaint.join().unwrap_or_default();
            if !text.is_empty() {
                return Err(format!("life {life}: {text}"));
            }
        }
        Ok(())
    })
}

/// Looks into the files that a killed server left.
fn verified(directory: &Path) -> Result<(), String> {
    let inspected = vellum::verify_path(directory, vellum::Inspection::default());
    let mut report = inspected.map_err(|error| format!("cannot be verified: {error}"))?;
    if report.is_sound() {
        let memory = vellum::Inspection::default().memory_bytes;
        let opened = vellum::Database::open_detached(directory, vellum::Config::default(), memory);
        let database = opened.map_err(|error| format!("cannot be looked at: {error}"))?;
        let checked = vellum_sql::verify(&database, &mut |finding| report.find(finding));
        checked.map_err(|error| format!("its SQL cannot be verified: {error}"))?;
    }
    match report.is_sound() {
        true => Ok(()),
        false => Err(format!("is not sound: {report:?}")),
    }
}

/// Runs a workload from processes at a server of its own, life after life on one directory.
///
/// # Errors
/// What is wrong, with the place where the history was kept.
pub fn over_kills(
    workload: &dyn Workload,
    name: &str,
    program: &Path,
    directory: &Path,
    plan: Plan,
) -> Result<String, String> {
    let mut random = Random::new(plan.seed);
    let recorder = Recorder::new();
    let directory: PathBuf = directory.into();
    let result = (|| {
        for life in 1..=plan.lives {
            let server = Server::start(program, &directory)?;
            if life == 1 {
                let mut connection = connect(server.port, &directory)?;
                let prepared = workload.prepare(&mut connection);
                prepared.map_err(|error| format!("{:?}", Gone::from(error)))?;
            }
            let at = (life, plan);
            live(
                program,
                &directory,
                name,
                at,
                server,
                &recorder,
                &mut random,
            )?;
            recorder.crashed();
            verified(&directory).map_err(|what| format!("after life {life}: {what}"))?;
        }
        let server = Server::start(program, &directory)?;
        let connection = connect(server.port, &directory)?;
        let last = plan.lives + 1;
        let events = recorder.events();
        let mut client = Client::new(connection, recorder.session(), last, 0, plan.seed);
        let read = workload.read_all(&mut client, &events);
        read.map_err(|gone| format!("the final read failed: {gone:?}"))?;
        drop(client);
        drop(server);
        verified(&directory)
    })();
    conclude(result, &recorder, LEAST, |events| workload.judge(events))
}
