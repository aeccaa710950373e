//! `vellum serve` as a program: what it prints, who gets in, how it ends.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// A server that was started as a program.
struct Program {
    child: Child,
    /// What it said before it served.
    said: Vec<String>,
}

impl Program {
    fn start(directory: &Path, more: &[&str]) -> Self {
        let mut child = command(directory, more).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        while !said
            .last()
            .is_some_and(|l: &String| l.starts_with("connect with: "))
        {
            match lines.next() {
                Some(line) => said.push(line.unwrap()),
                None => panic!("it ended after {said:?}: {}", end(child).1),
            }
        }
        Self { child, said }
    }

    fn port(&self) -> u16 {
        let told = |line: &String| line.strip_prefix("listening on 127.0.0.1:")?.parse().ok();
        self.said.iter().find_map(told).unwrap()
    }

    /// Lets a client in with the password that is written in `directory`.
    fn let_in(&self, directory: &Path) {
        let password = std::fs::read_to_string(directory.join("password")).unwrap();
        let client = postgres::Config::new()
            .host("127.0.0.1")
            .port(self.port())
            .user("vellum")
            .password(password.trim_end())
            .connect_timeout(LONG)
            .connect(postgres::NoTls);
        drop(client.unwrap());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

fn command(directory: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum"));
    command
        .args(["serve", "--data"])
        .arg(directory)
        .args(["--listen", "127.0.0.1:0", "--pool-mib", "16"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Exit code and standard error.
fn end(mut child: Child) -> (i32, String) {
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (child.wait().unwrap().code().unwrap_or(-1), text)
}

#[test]
fn it_says_how_to_connect_and_ends_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("db");
    let first = Program::start(&directory, &[]);
    first.let_in(&directory);
    let password = directory.join("password");
    assert!(password.is_file());
    let told = first
        .said
        .iter()
        .any(|line| line.contains("password of `vellum` was made"));
    assert!(told, "{:?}", first.said);
    let expected = format!(
        "connect with: PGPASSWORD=$(cat {}) psql -h 127.0.0.1 -p {} -U vellum vellum",
        password.display(),
        first.port()
    );
    assert_eq!(first.said.last(), Some(&expected));
    first.signal(Signal::TERM);
    let (code, log) = end(first.child);
    assert_eq!(code, 0, "{log}");
    // Closed in good order: what looks at closed databases finds nothing to recover.
    let stat = Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(["stat", "--json"])
        .arg(&directory)
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&stat.stdout).unwrap();
    assert_eq!(report["recovery"], "not due");
    let second = Program::start(&directory, &[]);
    assert!(!second.said.iter().any(|line| line.contains("was made")));
    second.signal(Signal::INT);
    assert_eq!(end(second.child).0, 0);
}

#[test]
fn crash_a_server_that_was_killed_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Program::start(folder.path(), &[]);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let second = Program::start(folder.path(), &[]);
    second.let_in(folder.path());
    second.signal(Signal::TERM);
    assert_eq!(end(second.child).0, 0);
}

#[test]
fn what_cannot_be_served_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], i32, &str); 4] = [
        (&["--listen", "0.0.0.0:0"], 2, "--insecure-listen"),
        (&["--http", "0.0.0.0:0"], 2, "--insecure-http"),
        (&["--connections-max", "3"], 2, "connections_reserved"),
        (&["--config", "nowhere.toml"], 2, "nowhere.toml"),
    ];
    for (more, code, reason) in cases {
        let child = command(folder.path(), more).spawn().unwrap();
        let (ended, text) = end(child);
        assert_eq!(ended, code, "{more:?}: {text}");
        assert!(text.contains(reason), "{more:?}: {text}");
    }
    let first = Program::start(folder.path(), &[]);
    let (code, text) = end(command(folder.path(), &[]).spawn().unwrap());
    assert_eq!(code, 3, "{text}");
    first.signal(Signal::TERM);
    assert_eq!(end(first.child).0, 0);
}

#[test]
fn settings_are_printed_as_a_file_that_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let printed = command(folder.path(), &["--print-config", "--log-format", "json"])
        .env("VELLUM_CONNECTIONS_MAX", "77")
        .output()
        .unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(text.contains("connections_max = 77\n"), "{text}");
    assert!(text.contains("log_format = \"json\"\n"), "{text}");
    let file = folder.path().join("vellum.toml");
    std::fs::write(&file, &text).unwrap();
    let again = Command::new(env!("CARGO_BIN_EXE_vellum"))
        .args(["serve", "--print-config", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
}
