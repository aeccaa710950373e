//! `vellum serve`, started as a program on a free port.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server that was started as a program.
pub struct Program {
    pub child: Child,
    /// What it said before it served.
    pub said: Vec<String>,
}

impl Program {
    /// Starts a server by a command, that of [`command`] or one around it.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
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

    pub fn port(&self) -> u16 {
        let told = |line: &String| line.strip_prefix("listening on 127.0.0.1:")?.parse().ok();
        self.said.iter().find_map(told).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

pub fn command(directory: &Path, more: &[&str]) -> Command {
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
pub fn end(mut child: Child) -> (i32, String) {
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    (child.wait().unwrap().code().unwrap_or(-1), text)
}
